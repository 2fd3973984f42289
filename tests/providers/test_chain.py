"""Which provider is used, what takes its place, and that whoever looks can see why."""

import subprocess
import sys

import msgspec
import pytest

from memory_tui.errors import ProviderError
from memory_tui.providers import Cause, state_of
from tests.support.embed import KEY, Time
from tests.support.provider_server import hang, status, well
from tests.support.waiting import LONG

REFUSED, BUSY = status(401, {"error": {"message": "no such key"}}), status(503, "busy")


def states(chain):
    return [(link.name, link.state) for link in chain.members() if link.state != "passed over"]


def embed(chain, kind="document"):
    return chain.provider().embed(["a note"], kind)


def fails(chain, kind="document"):
    with pytest.raises(ProviderError) as caught:
        embed(chain, kind)
    return caught.value


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({}, "builtin"),
        ({"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, "openai"),
        ({"GOOGLE_API_KEY": "k", "VOYAGE_API_KEY": "k"}, "gemini"),
        ({"VOYAGE_API_KEY": "k", "MISTRAL_API_KEY": "k"}, "voyage"),
        ({"MISTRAL_API_KEY": "k"}, "mistral"),
        ({"OLLAMA_API_KEY": "k"}, "builtin"),
    ],
)
def test_auto_takes_the_first_that_has_a_key_and_the_others_say_what_they_lack(chain, env, name):
    made, news = chain("auto", None, api_keys=(), env=env.get)
    assert made.provider().identity.provider == name
    assert (news, made.state().error, made.state().fallback) == ([], None, None)
    passed = [link for link in made.members() if link.state == "passed over" and link.name != "local"]
    assert all((link.cause, "API_KEY" in link.next_step) == ("no key", True) for link in passed)
    assert "ollama" not in [link.name for link in made.members()]


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("openai", {}, "No API key"),
        ("opanai", {}, "no embedding provider"),
        ("voyage", {"fallback": "mistral"}, '"voyage".*"mistral"'),
    ],
)
def test_a_chosen_provider_that_cannot_be_made_fails_closed_and_says_why_once(chain, name, more, words):
    made, news = chain(name, None, api_keys=(), **more)
    assert (made.provider(), made.provider()) == (None, None)
    assert len(news) == (2 if more else 1)
    with pytest.raises(ProviderError, match=words):
        raise made.state().error
    assert made.try_out()["error"] in made.state().error.message
    assert states(made)[-1][1] == "failing"


def test_an_automatic_choice_that_never_worked_gives_way_and_the_cause_is_kept(play, chain):
    play.usual, time = REFUSED, Time()
    made, news = chain("auto", time=time)
    error = fails(made)
    assert state_of(error) is Cause.BAD_KEY
    assert embed(made).shape == (1, 256)
    assert msgspec.to_builtins(made.state().fallback) == {
        "from": "openai",
        "to": "builtin",
        "model": "minilm-trained-256",
        "reason": error.message,
        "since": time.at,
        "retryAt": time.at + 300,
    }
    assert [each.message for each in news] == [f"{error.message} builtin is used instead of openai."]
    assert (states(made), made.state().error) == ([("openai", "given up"), ("builtin", "in use")], None)


def test_an_automatic_choice_that_has_worked_keeps_its_place_through_passing_troubles(play, chain):
    time = Time()
    made, news = chain("auto", time=time)
    embed(made)
    play.usual = BUSY
    fails(made)
    fails(made)
    assert (made.provider().identity.provider, made.state().fallback, len(news)) == ("openai", None, 1)
    link = next(link for link in made.members() if link.name == "openai")
    assert (link.state, link.cause, link.next_try) == ("paused", "server error", time.at + 30)
    time.at, play.usual = time.at + 31, well
    embed(made)
    assert made.state().error is None


@pytest.mark.parametrize("kind", ["document", "query"])
def test_a_fallback_takes_over_with_another_space_and_the_first_choice_can_be_restored(play, chain, kind):
    time = Time()
    made, news = chain(fallback="scripted", model="big-model", output_dimensionality=256, time=time)
    first = made.provider().identity
    play.usual = status(500, "oops")
    error = fails(made, kind)
    second, fallback = made.provider().identity, made.state().fallback
    assert (second.provider, second.model, second.dims, first.dims) == ("scripted", "hash-256", 256, 256)
    assert (fallback.source, fallback.to, fallback.cause, fallback.at) == ("openai", "scripted", error.message, time.at)
    assert (len(news), states(made)) == (1, [("openai", "given up"), ("scripted", "in use")])
    play.usual = well
    made.restore()
    assert (embed(made).any(), made.state().fallback, made.provider().identity) == (True, None, first)
    assert (len(news), states(made)) == (1, [("openai", "in use"), ("scripted", "waiting")])


@pytest.mark.parametrize(
    ("name", "more", "then"),
    [
        ("openai", {"fallback": "gemini", "env": {"GEMINI_API_KEY": "g"}.get, "headers": {"X-A": "openai"}}, "gemini"),
        ("auto", {"env": {"VOYAGE_API_KEY": "voyage-key"}.get}, "voyage"),
    ],
)
def test_endpoint_model_and_key_of_the_first_are_not_for_the_next(play, chain, name, more, then):
    made, _ = chain(name, model="m", **more)
    play.usual = REFUSED
    fails(made)
    identity, link = made.provider().identity, next(link for link in made.members() if link.name == then)
    assert (identity.provider, identity.model != "m", link.host.endswith(".com")) == (then, True, True)


def test_auto_prefers_the_fallback_that_was_named_and_oneself_is_none(play, chain):
    for fallback in ("", "none", "openai"):
        assert states(chain(fallback=fallback)[0]) == [("openai", "in use")]
    made, _ = chain("auto", fallback="scripted", env={"VOYAGE_API_KEY": "v"}.get)
    embed(made)
    play.usual = BUSY
    fails(made)
    assert [name for name, _ in states(made)] == ["openai", "scripted", "builtin"]
    assert made.provider().identity.provider == "scripted"


def test_a_text_that_is_too_long_is_not_the_providers_fault(play, chain):
    made, news = chain(fallback="scripted")
    play.usual = status(400, {"error": "input too long"})
    fails(made)
    assert (made.state().error, made.state().fallback, news) == (None, None, [])


def test_after_a_failure_nobody_is_asked_until_the_next_try_and_each_pause_is_longer(play, chain):
    time = Time()
    made, _ = chain(time=time)
    play.usual = BUSY
    first = fails(made)
    asked = len(play.asked)
    again = fails(made)
    assert (len(play.asked), state_of(again), made.state().next_try) == (asked, Cause.SERVER, time.at + 30)
    assert "asked again at" in again.message
    (link,) = made.members()
    assert (link.error, link.failed_at) == (first.message, time.at)
    for wait in (60, 120, 240, 480, 600, 600):
        time.at = made.state().next_try + 1
        fails(made)
        assert made.state().next_try == time.at + wait
    for reply, wait in ((REFUSED, 300), (status(429, "", Retry_After="3600"), 3600)):
        play.usual, time.at = reply, made.state().next_try + 1
        fails(made, "query")
        assert made.state().next_try == time.at + wait
    play.usual, time.at = well, made.state().next_try
    assert (embed(made).any(), made.state().next_try, made.state().error) == (True, None, None)


def test_what_one_process_met_is_known_to_all_of_its_workspace_and_to_no_other(play, chain):
    time = Time()
    made, _ = chain(time=time, scope="here")
    play.usual = BUSY
    error = fails(made)
    homes = (("here", True), ("here", False), ("there", True))
    other, stays, elsewhere = (chain(time=time, scope=scope, once=once)[0] for scope, once in homes)
    assert (other.state().error.message, states(elsewhere)) == (error.message, [("openai", "in use")])
    assert "asked again at" in fails(other).message
    play.usual = well
    assert embed(stays).any()
    assert (made.state().error, other.state().error) == (None, None)


def test_trying_out_makes_one_real_call_at_once_and_shows_no_key(play, chain):
    made, _ = chain(fallback="scripted")
    play.usual = status(401, {"error": {"message": f"bad key {KEY}"}})
    first, second = made.try_out(), made.try_out("openai")
    assert (len(play.asked), first, first["ok"], first["state"]) == (2, second, False, "bad key")
    assert KEY not in str(first) + str(made.members())
    play.usual = well
    answer = made.try_out("openai")
    assert (answer["provider"], answer["dims"], answer["host"]) == ("openai", 256, play.url.removeprefix("http://"))
    assert answer["ms"] > 0
    assert made.try_out("nobody") == {"ok": False}


QUIT = """
import sys, threading
from memory_tui.errors import Cancelled
from memory_tui.providers.chain import Chain
from memory_tui.providers.registry import ProviderSettings
from memory_tui.secrets import Secret
chain = Chain(ProviderSettings("openai", base_url=sys.argv[1], api_keys=(Secret("k"),)), print)
def work():
    try:
        chain.provider().embed(["note"], "document")
    except Cancelled:
        print("cancelled")
caller = threading.Thread(target=work)
caller.start()
sys.stdin.readline()
chain.close()
caller.join()
"""


def test_a_provider_that_never_answers_does_not_delay_the_end_of_the_process(play):
    play.usual = hang
    words = [sys.executable, "-c", QUIT, play.url]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert play.hanging.acquire(timeout=LONG)
    out, _ = process.communicate("quit\n", timeout=LONG)
    assert (out.split(), process.returncode) == (["cancelled"], 0)
