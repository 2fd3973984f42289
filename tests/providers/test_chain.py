"""Which provider is used, what takes its place, and that whoever looks can see why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from memory_tui.errors import ProviderError
from memory_tui.providers.chain import Chain
from memory_tui.providers.failures import Cause, ProviderFailure, state_of
from memory_tui.providers.options import ProviderSettings, Secret
from tests.support.embed import KEY, Time, settings_for
from tests.support.provider_server import Play, hang, status, well
from tests.support.waiting import LONG


class Made:
    """Chains that are closed after the test."""

    open: ClassVar[list[Chain]] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while Made.open:
        Made.open.pop().close()


def chain_for(play: Play | None, name: str = "openai", **more: Any) -> tuple[Chain, list[ProviderError]]:
    told: list[ProviderError] = []
    Made.open.append(Chain(settings_for(play, name, **more), told.append))
    return Made.open[-1], told


def states(chain: Chain) -> list[tuple[str, str]]:
    return [(link.name, link.state) for link in chain.members()]


def embed(chain: Chain, kind: str = "document") -> Any:
    provider = chain.provider()
    assert provider is not None
    return provider.embed(["a note"], kind)


def fails(chain: Chain, kind: str = "document") -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        embed(chain, kind)
    return caught.value


# --- auto ----------------------------------------------------------------------------------------------------------


def test_without_any_key_the_builtin_provider_is_used_and_the_others_say_what_they_lack() -> None:
    chain, told = chain_for(None, "auto", api_keys=())
    provider = chain.provider()
    assert provider is not None
    assert provider.identity.provider == "builtin"
    assert told == []
    assert (chain.error, chain.fallback) == (None, None)
    found = {link.name: link for link in chain.members()}
    for name in ("openai", "gemini", "voyage", "mistral"):
        assert (found[name].state, found[name].cause) == ("passed over", "no key")
        assert "API_KEY" in found[name].next_step
    assert found["builtin"].state == "in use"
    assert "ollama" not in found


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, "openai"),
        ({"GOOGLE_API_KEY": "k", "VOYAGE_API_KEY": "k"}, "gemini"),
        ({"VOYAGE_API_KEY": "k", "MISTRAL_API_KEY": "k"}, "voyage"),
        ({"MISTRAL_API_KEY": "k"}, "mistral"),
        ({"OLLAMA_API_KEY": "k"}, "builtin"),
    ],
)
def test_auto_takes_the_first_that_has_a_key(env: dict[str, str], name: str) -> None:
    chain, _ = chain_for(None, "auto", api_keys=(), env=env.get)
    provider = chain.provider()
    assert provider is not None
    assert provider.identity.provider == name


def test_an_automatic_choice_that_never_worked_gives_way_and_the_cause_is_kept(play: Play) -> None:
    play.usual = status(401, {"error": {"message": "no such key"}})
    time = Time()
    chain, told = chain_for(play, "auto", time=time)
    error = fails(chain)
    assert state_of(error) is Cause.BAD_KEY
    assert embed(chain).shape == (1, 256)
    assert chain.provider().identity.provider == "builtin"
    assert chain.fallback is not None
    assert chain.fallback.as_dict() == {
        "from": "openai",
        "to": "builtin",
        "model": "minilm-trained-256",
        "reason": error.message,
        "since": time.at,
        "retryAt": time.at + 300,
    }
    assert [one.message for one in told] == [f"{error.message} builtin is used instead of openai."]
    assert states(chain)[-2:] == [("openai", "given up"), ("builtin", "in use")]
    assert chain.error is None


def test_the_endpoint_and_key_of_the_first_are_not_for_the_next(play: Play) -> None:
    play.usual = status(401, "no")
    chain, _ = chain_for(play, "auto", env={"VOYAGE_API_KEY": "voyage-key"}.get)
    fails(chain)
    provider = chain.provider()
    assert provider is not None
    assert provider.identity.provider == "voyage"
    assert next(link.host for link in chain.members() if link.name == "voyage") == "api.voyageai.com"


def test_an_automatic_choice_that_has_worked_keeps_its_place_through_passing_troubles(play: Play) -> None:
    time = Time()
    chain, told = chain_for(play, "auto", time=time)
    embed(chain)
    play.usual = status(503, "busy")
    fails(chain)
    fails(chain)
    assert chain.provider().identity.provider == "openai"
    assert chain.fallback is None
    assert chain.error is not None
    assert len(told) == 1
    link = next(link for link in chain.members() if link.name == "openai")
    assert (link.state, link.cause, link.next_try) == ("paused", "server error", time.at + 30)
    time.at += 31
    play.usual = well
    embed(chain)
    assert chain.error is None


# --- chosen --------------------------------------------------------------------------------------------------------


def test_a_chosen_provider_without_a_key_fails_closed() -> None:
    chain, told = chain_for(None, "openai", api_keys=())
    assert chain.provider() is None
    assert chain.provider() is None
    assert len(told) == 1
    assert state_of(told[0]) is Cause.NO_KEY
    assert chain.error.message == told[0].message
    assert chain.try_out()["error"] == told[0].message
    assert states(chain) == [("openai", "failing")]


def test_a_chosen_provider_that_fails_is_not_replaced(play: Play) -> None:
    play.usual = status(500, "oops")
    chain, told = chain_for(play)
    fails(chain)
    fails(chain)
    assert chain.provider().max_input_bytes == 8000
    assert len(told) == 1
    assert chain.fallback is None
    assert states(chain) == [("openai", "paused")]


def test_an_unknown_name_fails_closed_with_the_known_ones() -> None:
    chain, told = chain_for(None, "opanai")
    assert chain.provider() is None
    assert told[0].next_step == "Did you mean openai?"


def test_none_is_a_choice_and_no_failure() -> None:
    chain, told = chain_for(None, "none")
    assert chain.provider() is None
    assert (chain.error, chain.members(), told) == (None, (), [])


# --- fallback ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["document", "query"])
def test_the_fallback_takes_over_when_notes_or_questions_cannot_be_embedded(play: Play, kind: str) -> None:
    time = Time()
    chain, told = chain_for(play, fallback="scripted", model="big-model", time=time)
    before = chain.provider()
    play.usual = status(500, "oops")
    error = fails(chain, kind)
    after = chain.provider()
    assert before is not after
    assert (after.identity.provider, after.identity.model) == ("scripted", "hash-256")
    assert chain.fallback is not None
    assert (chain.fallback.source, chain.fallback.to, chain.fallback.cause, chain.fallback.at) == (
        "openai",
        "scripted",
        error.message,
        time.at,
    )
    assert len(told) == 1
    assert states(chain) == [("openai", "given up"), ("scripted", "in use")]


def test_the_spaces_of_two_providers_differ_even_where_the_length_is_the_same(play: Play) -> None:
    chain, _ = chain_for(play, fallback="scripted")
    first = chain.provider().identity
    play.usual = status(500, "oops")
    fails(chain)
    second = chain.provider().identity
    assert first.dims == second.dims == 256
    assert first != second


def test_a_fallback_is_made_when_the_chosen_provider_cannot_be(play: Play) -> None:
    chain, told = chain_for(None, "voyage", api_keys=(), fallback="builtin")
    assert chain.provider().identity.provider == "builtin"
    assert chain.fallback.source == "voyage"
    assert "No API key" in told[0].message


def test_a_fallback_has_its_own_model_key_and_endpoint(play: Play) -> None:
    chain, _ = chain_for(
        play, "openai", model="m", fallback="gemini", env={"GEMINI_API_KEY": "g"}.get, headers={"X-Only": "openai"}
    )
    play.usual = status(401, "no")
    fails(chain)
    identity = chain.provider().identity
    assert (identity.provider, identity.model) == ("gemini", "gemini-embedding-001")
    assert chain.members()[1].host == "generativelanguage.googleapis.com"


def test_when_the_fallback_fails_too_both_reasons_are_told() -> None:
    chain, told = chain_for(None, "voyage", api_keys=(), fallback="mistral")
    assert chain.provider() is None
    assert 'provider "voyage"' in chain.error.message
    assert 'provider "mistral"' in chain.error.message
    assert len(told) == 2


@pytest.mark.parametrize("fallback", ["", "none", "openai"])
def test_no_fallback_and_oneself_are_no_fallback(play: Play, fallback: str) -> None:
    chain, _ = chain_for(play, fallback=fallback)
    assert states(chain) == [("openai", "in use")]


def test_auto_prefers_the_fallback_that_was_named(play: Play) -> None:
    chain, _ = chain_for(play, "auto", fallback="scripted", env={"VOYAGE_API_KEY": "v"}.get)
    embed(chain)
    play.usual = status(503, "busy")
    fails(chain)
    assert chain.provider().identity.provider == "scripted"
    assert [link.name for link in chain.members() if link.state != "passed over"] == ["openai", "scripted", "builtin"]


def test_the_first_choice_can_be_restored(play: Play) -> None:
    chain, told = chain_for(play, fallback="scripted")
    play.say(status(401, "no"))
    fails(chain)
    chain.restore()
    assert chain.fallback is None
    assert embed(chain).any()
    assert chain.provider().identity.provider == "openai"
    assert states(chain) == [("openai", "in use"), ("scripted", "waiting")]
    assert len(told) == 1


def test_a_text_that_is_too_long_is_not_the_providers_fault(play: Play) -> None:
    chain, told = chain_for(play, fallback="scripted")
    play.usual = status(400, {"error": "input too long"})
    fails(chain)
    assert (chain.error, chain.fallback, told) == (None, None, [])


def test_after_a_failure_nobody_is_asked_until_the_next_try_and_each_pause_is_longer(play: Play) -> None:
    time = Time()
    chain, _ = chain_for(play, time=time)
    play.usual = status(503, "busy")
    first = fails(chain)
    asked = len(play.asked)
    again = fails(chain)
    assert (len(play.asked), state_of(again), first.next_try) == (asked, Cause.SERVER, time.at + 30)
    assert "asked again at" in again.message
    (link,) = chain.members()
    assert (link.error, link.calls, link.failed_at) == (first.message, 1, time.at)
    for wait in (60, 120, 240, 480, 600, 600):
        time.at = chain.next_try + 1
        fails(chain)
        assert chain.next_try == time.at + wait
    play.say(status(401, "no"))
    time.at = chain.next_try + 1
    fails(chain)
    assert chain.next_try == time.at + 300
    time.at += 301
    play.usual = well
    assert embed(chain).any()
    assert (chain.next_try, chain.error) == (None, None)


def test_a_provider_that_names_the_time_is_left_alone_until_then(play: Play) -> None:
    time = Time()
    chain, _ = chain_for(play, time=time)
    play.usual = status(429, "", Retry_After="3600")
    assert fails(chain, "query").next_try == chain.next_try == time.at + 3600


# --- testing by hand -----------------------------------------------------------------------------------------------


def test_trying_out_makes_one_real_call_and_tells_what_came_back(play: Play) -> None:
    chain, _ = chain_for(play)
    found = chain.try_out()
    assert len(play.asked) == 1
    assert (found["ok"], found["provider"], found["dims"], found["host"]) == (
        True,
        "openai",
        256,
        play.url.removeprefix("http://"),
    )
    assert found["norm"] == pytest.approx(1)
    assert found["selfSimilarity"] == pytest.approx(1)
    assert found["ms"] > 0
    assert chain.try_out()["ok"]


def test_trying_out_does_not_wait_for_the_next_try_and_shows_no_key(play: Play) -> None:
    chain, _ = chain_for(play)
    play.usual = status(401, {"error": {"message": f"bad key {KEY}"}})
    first = chain.try_out()
    second = chain.try_out()
    assert len(play.asked) == 2
    assert first == second
    assert (first["ok"], first["state"]) == (False, "bad key")
    assert KEY not in str(first) + str(chain.members())
    play.usual = well
    assert chain.try_out()["ok"]
    assert chain.error is None


def test_the_one_that_was_given_up_can_be_tried_out(play: Play) -> None:
    chain, _ = chain_for(play, fallback="scripted")
    play.say(status(401, "no"))
    fails(chain)
    assert chain.try_out("openai")["ok"]
    assert chain.try_out()["provider"] == "scripted"
    assert chain.try_out("nobody") == {"ok": False}


# --- all of it -----------------------------------------------------------------------------------------------------


def test_settings_never_show_a_key() -> None:
    settings = ProviderSettings(api_keys=(Secret(KEY),), headers={"X-Key": KEY})
    assert KEY not in repr(settings) + str(settings)
    assert KEY not in str(ProviderFailure(Cause.NO_KEY, "none").as_dict())


QUIT = """
import sys, threading
from memory_tui.providers.chain import Chain
from memory_tui.providers.options import ProviderSettings
from memory_tui.providers.options import Secret
from memory_tui.errors import Cancelled
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


def test_a_provider_that_never_answers_does_not_delay_the_end_of_the_process(play: Play) -> None:
    play.usual = hang
    process = subprocess.Popen(
        [sys.executable, "-c", QUIT, play.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert play.hanging.acquire(timeout=LONG)
    out, _ = process.communicate("quit\n", timeout=LONG)
    assert out.split() == ["cancelled"]
    assert process.returncode == 0
