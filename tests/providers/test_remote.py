"""Remote providers under load and under every failure: what is retried, what is not, and what is never kept."""

from __future__ import annotations

import contextlib
import email.utils
import json
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from memory_tui.core.errors import Cancelled
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.openai import OPENAI
from memory_tui.providers.options import ProviderSettings, RequestLimits, RetryClock, Secret
from tests.support.embed import KEY, Time, provider_for, quick
from tests.support.provider_server import (
    Asked,
    Handler,
    Play,
    cut_off,
    drip,
    echo_headers,
    hang,
    html,
    refusing,
    reset,
    reversed_rows,
    rows,
    serving,
    shaped,
    status,
    tree,
    vector,
    well,
)
from tests.support.waiting import LONG


@pytest.fixture
def play() -> Iterator[Play]:
    with serving(Play()) as running:
        yield running


def unit(text: str) -> np.ndarray:
    one = np.array(vector(text), np.float32)
    return one / np.linalg.norm(one)


def fails(provider: object, texts: list[str] | None = None, kind: str = "document") -> ProviderFailure:
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(texts or ["one", "two"], kind)
    return caught.value


def test_vectors_come_back_in_order_of_unit_length_and_blank_texts_have_none(play: Play) -> None:
    provider = provider_for(play)
    texts = ["alpha beta", "  \n", "gamma", "delta " * 900, "epsilon"]
    vectors = provider.embed(texts, "document")
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, 256)
    assert not vectors[1].any()
    for at in (0, 2, 3, 4):
        assert vectors[at] == pytest.approx(unit(texts[at]), abs=1e-6)
    assert np.linalg.norm(vectors[[0, 2, 3, 4]], axis=1) == pytest.approx(np.ones(4), abs=1e-6)
    assert all(text.strip() for asked in play.asked for text in asked.texts)
    provider.close()


def test_nothing_to_embed_asks_nobody(play: Play) -> None:
    provider = provider_for(play)
    assert provider.embed([], "document").shape[0] == 0
    assert provider.embed([""], "query").shape[0] == 1
    assert play.asked == []
    provider.close()


def test_requests_hold_8000_bytes_and_a_longer_text_goes_alone(play: Play) -> None:
    provider = provider_for(play)
    provider.embed(["é" * 1000] * 9 + ["x" * 9000] + ["y" * 10], "document")
    sizes = sorted([len(text.encode()) for text in asked.texts] for asked in play.asked)
    assert sizes == [[10], [2000], [2000] * 4, [2000] * 4, [9000]]
    provider.close()


@pytest.mark.parametrize(
    ("name", "most"), [("openai", 200_000), ("voyage", 120_000), ("mistral", 16_000), ("gemini", 200_000)]
)
def test_a_request_holds_what_the_provider_takes(play: Play, name: str, most: int) -> None:
    provider = provider_for(play, name, batches=RequestLimits())
    provider.embed(["x" * 1600] * 250, "document")
    sizes = [sum(len(text.encode()) for text in asked.texts) for asked in play.asked]
    assert sum(sizes) == 250 * 1600
    assert max(sizes) <= most
    items = 100 if name == "gemini" else 128
    assert len(sizes) == -(-250 // min(most // 1600, items if name in ("gemini", "mistral") else 1000))
    provider.close()


def test_openai_itself_gets_as_many_tokens_as_it_documents() -> None:
    wire = OPENAI.wire(ProviderSettings(requested="openai", api_keys=(Secret("sk-first-key"),)))
    assert (wire.most_items, wire.most_bytes) == (2048, 300_000)


@pytest.mark.parametrize("refusal", [status(429, "slow down"), status(503, "overloaded")], ids=["429", "503"])
def test_a_large_request_that_does_not_get_through_is_sent_in_small_ones(play: Play, refusal: Any) -> None:
    def small_alone(handler: Any, asked: Any) -> None:
        (refusal if sum(map(len, asked.texts)) > 8000 else well)(handler, asked)

    play.usual = small_alone
    provider = provider_for(play, batches=RequestLimits())
    texts = [f"{number:04} " * 200 for number in range(40)]
    vectors = provider.embed(texts, "document")
    assert all(vectors[at] @ unit(text) > 0.999 for at, text in enumerate(texts))
    attempts = [asked.texts for asked in play.asked if len(asked.texts) == 40]
    assert len(attempts) == RequestLimits().attempts
    play.asked.clear()
    provider.embed(texts, "document")
    assert max(sum(map(len, asked.texts)) for asked in play.asked) <= 8000, "remembered"
    provider.close()


def test_a_provider_that_is_down_is_not_asked_for_each_small_request(play: Play) -> None:
    play.usual = status(503, "down")
    provider = provider_for(play, batches=RequestLimits(concurrency=1))
    assert fails(provider, ["w" * 1600] * 40).state is Cause.SERVER
    assert len(play.asked) == 2 * RequestLimits().attempts
    provider.close()


def test_a_provider_that_asks_for_a_long_wait_gets_no_small_requests(play: Play) -> None:
    play.usual = status(429, "", Retry_After="3600")
    provider = provider_for(play, batches=RequestLimits(concurrency=1))
    assert fails(provider, ["w" * 1600] * 40).state is Cause.RATE_LIMIT
    assert len(play.asked) == 1
    provider.close()


def test_four_requests_run_at_once_and_no_more(play: Play) -> None:
    met = threading.Barrier(4)

    def together(handler: object, asked: object) -> None:
        met.wait(LONG)
        well(handler, asked)

    play.usual = together
    provider = provider_for(play)
    provider.embed(["z" * 8000] * 8, "document")
    assert play.most_at_once == 4
    provider.close()


def test_rows_are_ordered_by_their_index(play: Play) -> None:
    play.usual = reversed_rows
    provider = provider_for(play)
    vectors = provider.embed(["first", "second", "third"], "document")
    assert np.array([unit("first"), unit("second"), unit("third")]) == pytest.approx(vectors, abs=1e-6)
    provider.close()


def over_the_limit(handler: Handler, asked: Asked) -> None:
    """A good answer, but for 64 MiB of blanks in front."""
    good = json.dumps(shaped(asked, [vector(text) for text in asked.texts])).encode()
    with contextlib.suppress(OSError):
        handler.raw(200, b" " * (64 << 20) + good, {})


NAN = float("nan")
BAD_ANSWERS = {
    "one row too few": rows(lambda found: found[:-1]),
    "one row too many": rows(lambda found: [*found, found[0]]),
    "NaN": rows(lambda found: [[NAN, *row[1:]] for row in found]),
    "infinity": rows(lambda found: [[float("inf"), *row[1:]] for row in found]),
    "zeros": rows(lambda found: [found[0], [0.0] * len(found[0])]),
    "lengths that differ": rows(lambda found: [found[0], found[1][:-1]]),
    "empty rows": rows(lambda found: [[] for _ in found]),
    "null": rows(lambda found: [None, *found[1:]]),
    "words": rows(lambda found: [["a"] * len(row) for row in found]),
    "numbers without end": rows(lambda found: [[10**400, *row[1:]] for row in found]),
    "more numbers than an index holds": rows(lambda found: [[1.0] * 100_001 for _ in found]),
    "more than 64 MiB": over_the_limit,
    "no list": tree({"data": "none"}),
    "a list": tree([1, 2]),
    "no embedding": tree({"data": [{"index": 0}, {"index": 1}]}),
    "an index twice": tree({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}),
    "a web page": html(200),
    "nothing": status(200, ""),
    "half a JSON": status(200, '{"data": [{"embedd'),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_an_answer_that_is_no_answer_is_not_kept(play: Play, name: str) -> None:
    play.usual = BAD_ANSWERS[name]
    provider = provider_for(play)
    failure = fails(provider)
    assert failure.state is Cause.MALFORMED
    assert failure.next_step
    assert failure.done == {}
    assert not provider.health().ok
    provider.close()


def test_a_model_whose_length_is_known_must_answer_with_that_length(play: Play) -> None:
    provider = provider_for(play, output_dimensionality=512)
    assert "256 numbers where 512" in fails(provider).message
    assert provider.identity.dims == 512
    provider.close()


def test_once_answered_the_length_stays(play: Play) -> None:
    provider = provider_for(play)
    assert provider.identity.dims == 256
    play.dims = 128
    assert fails(provider).state is Cause.MALFORMED
    assert provider.identity.dims == 256
    provider.close()


ERRORS = [
    (status(401, {"error": {"message": "Incorrect API key provided"}}), Cause.BAD_KEY, 1),
    (status(403, {"error": "forbidden"}), Cause.BAD_KEY, 1),
    (status(400, {"error": {"message": "API key not valid. Please pass a valid API key."}}), Cause.BAD_KEY, 1),
    (
        status(404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}),
        Cause.UNKNOWN_MODEL,
        1,
    ),
    (status(400, {"error": {"message": "Invalid model: x"}}), Cause.UNKNOWN_MODEL, 1),
    (status(400, {"error": 'model "x" not found, try pulling it first'}), Cause.UNKNOWN_MODEL, 1),
    (status(402, {"message": "payment"}), Cause.QUOTA, 1),
    (status(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}), Cause.QUOTA, 1),
    (status(429, {"error": {"message": "slow down"}}), Cause.RATE_LIMIT, 3),
    (
        status(
            429, {"error": {"message": "used up", "details": [{"quotaId": "EmbedContentRequestsPerDayPerProject"}]}}
        ),
        Cause.QUOTA,
        1,
    ),
    (status(400, {"error": {"message": "something else"}}), Cause.REFUSED, 1),
    (status(418, "tea"), Cause.REFUSED, 1),
    (status(500, "oops"), Cause.SERVER, 3),
    (status(529, "overloaded"), Cause.SERVER, 3),
    (html(502), Cause.SERVER, 3),
    (status(408, ""), Cause.SERVER, 3),
    # Asked three times with both texts, and as often with the first alone.
    (reset, Cause.NETWORK, 6),
    (cut_off, Cause.NETWORK, 6),
]


@pytest.mark.parametrize(("reply", "state", "calls"), ERRORS)
def test_every_error_has_its_state_and_only_passing_ones_are_tried_again(
    play: Play,
    reply: object,
    state: Cause,
    calls: int,
) -> None:
    play.usual = reply
    time = Time()
    provider = provider_for(play, time=time)
    failure = fails(provider)
    assert failure.state is state
    assert len(play.asked) == calls
    assert time.slept == pytest.approx([0.55, 1.1] * (calls // 3))
    assert "<" not in failure.message
    assert provider.health().detail == failure.message
    provider.close()


def test_a_server_that_is_not_there_is_a_network_that_is_down() -> None:
    with refusing() as url:
        provider = provider_for(Play(url=url))
        failure = fails(provider)
    assert failure.state is Cause.NETWORK
    assert "127.0.0.1" in failure.message
    provider.close()


@pytest.mark.parametrize("reply", [hang, drip])
def test_a_call_has_a_time_limit_in_all_and_is_not_repeated(play: Play, reply: object) -> None:
    play.usual = reply
    provider = provider_for(play, batches=quick(0.1))
    failure = fails(provider)
    assert failure.state is Cause.TIMEOUT
    assert "0.1 s" in failure.message
    # None at all where the machine was too busy to bring even the first one to the server in time.
    assert len(play.asked) <= 1
    provider.close()


@pytest.mark.parametrize("reply", [hang, drip, status(503, "", Retry_After="20")])
def test_closing_ends_a_call_that_waits_at_once(play: Play, reply: object) -> None:
    arrived = threading.Event()

    def noted(handler: object, asked: object) -> None:
        arrived.set()
        reply(handler, asked)

    play.usual = noted
    provider = provider_for(play, clock=RetryClock())
    ended: list[BaseException] = []

    def call() -> None:
        try:
            provider.embed(["note"], "document")
        except (Cancelled, ProviderFailure) as error:
            ended.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert arrived.wait(LONG)
    started = time.monotonic()
    provider.close()
    caller.join(LONG)
    assert time.monotonic() - started < LONG, "it waited for the answer"
    assert [type(error) for error in ended] == [Cancelled]
    with pytest.raises(Cancelled):
        provider.embed(["note"], "document")


def test_retry_after_is_obeyed_as_seconds_and_as_a_date(play: Play) -> None:
    clock = Time()
    provider = provider_for(play, time=clock)
    play.say(status(429, "", Retry_After="7"), status(429, {"error": {"details": [{"retryDelay": "2.5s"}]}}))
    assert provider.embed(["note"], "document").any()
    assert clock.slept == [7, 2.5]
    tomorrow = email.utils.formatdate(time.time() + 80_000, usegmt=True)
    play.say(status(503, "", Retry_After=tomorrow))
    failure = fails(provider, ["note"])
    assert failure.retry_after is not None
    assert 60 < failure.retry_after <= 80_000
    provider.close()


def test_a_wait_that_is_too_long_for_a_question_ends_the_call_and_names_the_time(play: Play) -> None:
    time = Time()
    provider = provider_for(play, time=time)
    play.say(status(429, "", Retry_After="45"))
    failure = fails(provider, ["question"], "query")
    assert (failure.state, failure.retry_after) == (Cause.RATE_LIMIT, 45)
    assert failure.next_try == provider.breaker.next_try == time.at + 45
    assert time.slept == []
    provider.close()


def test_after_a_failure_nobody_is_asked_until_the_next_try(play: Play) -> None:
    time = Time()
    provider = provider_for(play, time=time)
    play.usual = status(503, "busy")
    first = fails(provider)
    asked = len(play.asked)
    again = fails(provider)
    assert len(play.asked) == asked
    assert again.state is Cause.SERVER
    assert again.next_try == first.next_try == time.at + 30
    assert "asked again at" in again.message
    time.at += 31
    fails(provider)
    assert len(play.asked) == 2 * asked
    assert provider.breaker.next_try == time.at + 60
    time.at += 61
    play.usual = well
    assert provider.embed(["note"], "document").any()
    assert provider.breaker.next_try is None
    assert provider.health().ok
    provider.close()


def test_a_test_by_hand_asks_at_once(play: Play) -> None:
    provider = provider_for(play)
    play.say(status(401, "no"))
    fails(provider)
    provider.breaker.worked()
    assert provider.embed(["note"], "document").any()
    provider.close()


def test_a_batch_that_is_too_large_is_halved_and_the_limit_remembered(play: Play) -> None:
    play.most_items = 10
    provider = provider_for(play)
    texts = [f"text {n}" for n in range(64)]
    vectors = provider.embed(texts, "document")
    assert all(vectors[at] @ unit(text) > 0.999 for at, text in enumerate(texts))
    assert max(len(asked.texts) for asked in play.asked) == 64
    play.asked.clear()
    provider.embed(texts, "document")
    assert max(len(asked.texts) for asked in play.asked) == 8
    assert provider.health().ok
    provider.close()


def test_413_is_a_batch_that_is_too_large(play: Play) -> None:
    provider = provider_for(play)
    play.say(status(413, "Request Entity Too Large"))
    assert provider.embed(["one", "two", "three"], "document").any(axis=1).all()
    assert [len(asked.texts) for asked in play.asked] == [3, 2, 1]
    provider.close()


def test_a_text_over_the_models_limit_is_embedded_in_parts_and_none_of_it_is_lost(play: Play) -> None:
    def limited(handler: object, asked: object) -> None:
        if any(len(text) > 200 for text in asked.texts):
            handler.json(400, {"error": {"message": "This model's maximum context length is 50 tokens"}})
        else:
            well(handler, asked)

    play.usual = limited
    provider = provider_for(play)
    text = " ".join(f"word{n}" for n in range(80))
    vector_of_it = provider.embed([text, "short"], "document")[0]
    assert np.linalg.norm(vector_of_it) == pytest.approx(1)
    assert vector_of_it @ unit(text) > 0.99
    accepted = [asked.texts[0] for asked in play.asked if len(asked.texts[0]) <= 200 and asked.texts != ["short"]]
    assert "".join(accepted) == text
    provider.close()


def test_a_text_that_no_cut_makes_short_enough_fails_without_blaming_the_provider(play: Play) -> None:
    play.usual = status(400, {"error": {"message": "input too long"}})
    provider = provider_for(play)
    assert fails(provider, ["tiny"]).state is Cause.TOO_LONG
    assert provider.health().ok
    assert provider.breaker.next_try is None
    provider.close()


def test_what_was_made_before_a_failure_is_handed_over(play: Play) -> None:
    def picky(handler: object, asked: object) -> None:
        (status(400, "no") if "bad" in asked.texts[0] else well)(handler, asked)

    play.usual = picky
    provider = provider_for(play, batches=RequestLimits(8000, concurrency=1))
    texts = ["good " * 1600, "fine " * 1600, "bad " * 2000, "never " * 1300]
    failure = fails(provider, texts)
    assert sorted(failure.done) == [0, 1]
    assert failure.done[1] == pytest.approx(unit(texts[1]), abs=1e-6)
    assert len(play.asked) == 3
    provider.close()


def test_two_failed_batches_switch_to_one_at_a_time_until_things_go_well(play: Play) -> None:
    provider = provider_for(play)
    play.say(status(429, "slow"), status(429, "slow"))
    provider.embed(["w" * 8000] * 4, "document")
    play.most_at_once = 0
    provider.embed(["w" * 8000] * 8, "document")
    assert play.most_at_once == 1
    assert "one request at a time" in provider.health().detail
    provider.embed(["w" * 8000] * 32, "document")
    assert "one request" not in provider.health().detail
    provider.close()


def test_redirects_are_not_followed(play: Play) -> None:
    with serving(Play()) as other:
        play.usual = status(307, "", Location=f"{other.url}/embeddings")
        provider = provider_for(play)
        failure = fails(provider)
        assert failure.state is Cause.REFUSED
        assert other.url.removeprefix("http://") in failure.message
        assert other.asked == []
        provider.close()


def everything_shown(failure: ProviderFailure, provider: object) -> str:
    """What a person could get to see, the local variables of a traceback included."""
    trace = traceback.TracebackException.from_exception(failure, capture_locals=True)
    return "".join([*trace.format(), str(failure.as_dict()), repr(failure), provider.health().detail])


@pytest.mark.parametrize("reply", [echo_headers(400), echo_headers(401), echo_headers(500), reset, html(200)])
def test_no_key_is_ever_shown(play: Play, reply: object) -> None:
    play.usual = reply
    header = "header-secret-42"
    provider = provider_for(play, headers={"X-Team": header})
    failure = fails(provider)
    assert play.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert play.asked[0].headers["X-Team"] == header
    shown = everything_shown(failure, provider)
    assert KEY not in shown
    assert header not in shown
    assert KEY not in repr(provider._settings)
    provider.close()


@pytest.mark.parametrize("reply", [echo_headers(400), reset])
def test_a_password_in_the_address_is_sent_but_never_shown(play: Play, reply: object) -> None:
    play.usual = reply
    provider = provider_for(play, api_keys=(), base_url=play.url.replace("http://", "http://user:pa55word-x@"))
    shown = everything_shown(fails(provider), provider) + repr(provider._settings) + provider.host
    assert play.asked[0].headers["Authorization"].startswith("Basic ")
    assert "pa55word-x" not in shown
    assert play.asked[0].headers["Authorization"].split()[1] not in shown
    provider.close()


def test_requests_that_meet_the_same_refusal_all_get_the_next_key(play: Play) -> None:
    met = threading.Barrier(4)
    refused = 0

    def spent(handler: object, asked: object) -> None:
        nonlocal refused
        if "first" not in asked.headers["Authorization"]:
            well(handler, asked)
            return
        with play.lock:
            refused += 1
            early = refused <= 4
        if early:
            met.wait(LONG)
        status(429, {"error": {"code": "insufficient_quota", "message": "spent"}})(handler, asked)

    play.usual = spent
    provider = provider_for(play, api_keys=(Secret("sk-first-key"), Secret("sk-second-key")))
    vectors = provider.embed(["z" * 8000] * 8, "document")
    assert vectors.any(axis=1).all()
    assert refused == 4
    provider.close()


@pytest.mark.parametrize("headers", [{"Retry_After": "9" * 20}, {"retry_after_ms": "inf"}], ids=["long", "endless"])
def test_a_wait_without_end_is_a_day(play: Play, headers: dict[str, str]) -> None:
    play.usual = status(429, "", **headers)
    provider = provider_for(play)
    assert fails(provider).retry_after == 86_400
    assert "asked again at" in fails(provider).message
    provider.close()


@pytest.mark.parametrize("code", [200, 400, 500])
def test_an_answer_nested_without_end_is_an_answer_that_makes_no_sense(play: Play, code: int) -> None:
    play.usual = status(code, "[" * 200_000)
    provider = provider_for(play)
    assert fails(provider).state in (Cause.MALFORMED, Cause.REFUSED, Cause.SERVER)
    provider.close()


def nan_in_json(handler: object, asked: object) -> None:
    """What Ollama says of a text for which its model makes no numbers."""
    if any("poison" in text for text in asked.texts):
        status(500, {"error": "failed to encode response: json: unsupported value: NaN"})(handler, asked)
    else:
        well(handler, asked)


def zeros_for_poison(handler: object, asked: object) -> None:
    handler.json(200, shaped(asked, [[0.0] * 256 if "poison" in text else vector(text) for text in asked.texts]))


@pytest.mark.parametrize("reply", [nan_in_json, zeros_for_poison])
def test_a_text_that_gets_no_vector_costs_the_others_nothing(play: Play, reply: object) -> None:
    play.usual = reply
    provider = provider_for(play)
    texts = [f"a text of several words, {at} {'poison' if at in (3, 700) else ''}" for at in range(1000)]
    failure = fails(provider, texts)
    assert failure.state is Cause.NO_VECTOR
    assert set(range(1000)) - set(failure.done) == {3, 700}
    assert failure.done[4] == pytest.approx(unit(texts[4]), abs=1e-6)
    assert provider.breaker.next_try is None
    provider.close()


def test_zeros_for_everything_are_the_fault_of_the_provider(play: Play) -> None:
    play.usual = zeros_for_poison
    provider = provider_for(play)
    assert fails(provider, ["poison"]).state is Cause.MALFORMED
    provider.breaker.worked()
    provider.embed(["good"], "document")
    assert fails(provider, ["poison"]).state is Cause.NO_VECTOR
    provider.close()


def test_a_refusal_of_one_half_keeps_the_other_half(play: Play) -> None:
    def picky(handler: object, asked: object) -> None:
        long = any("x" * 50 in text for text in asked.texts)
        reply = status(400, {"error": {"message": "maximum context length is 8 tokens"}}) if long else well
        reply(handler, asked)

    play.usual = picky
    provider = provider_for(play)
    texts = ["short"] * 7 + ["x" * 60]
    failure = fails(provider, texts)
    assert failure.state is Cause.TOO_LONG
    assert sorted(failure.done) == list(range(7))
    provider.close()


def test_a_key_with_a_line_break_is_refused_without_being_shown() -> None:
    with serving(Play()) as play, pytest.raises(ProviderFailure) as caught:
        provider_for(play, api_keys=(Secret("sk-\nsecret-part"),))
    assert caught.value.state is Cause.BAD_KEY
    assert "secret-part" not in str(caught.value)


def test_queries_get_through_while_notes_are_sent(play: Play) -> None:
    """A call for a question is not queued behind the requests of a call for notes."""
    held, let_go = threading.Event(), threading.Event()

    def slow_notes(handler: object, asked: object) -> None:
        if asked.texts != ["question"]:
            held.set()
            let_go.wait(LONG)
        well(handler, asked)

    play.usual = slow_notes
    provider = provider_for(play)
    notes = threading.Thread(target=provider.embed, args=(["n" * 8000] * 8, "document"))
    notes.start()
    assert held.wait(LONG)
    assert provider.embed(["question"], "query").any()
    assert not let_go.is_set()
    let_go.set()
    notes.join(LONG)
    provider.close()


def test_a_batch_that_breaks_the_connection_is_halved(play: Play) -> None:
    def reply(handler: Any, asked: Any) -> None:
        (reset if len(asked.texts) > 2 else well)(handler, asked)

    play.usual = reply
    provider = provider_for(play)
    vectors = provider.embed([f"note {n}" for n in range(7)], "document")
    assert vectors.any(axis=1).all()
    assert max(len(asked.texts) for asked in play.asked if len(asked.texts) <= 2) == 2
    provider.close()


def test_a_server_that_breaks_every_connection_is_not_asked_for_each_text(play: Play) -> None:
    play.usual = reset
    provider = provider_for(play, batches=RequestLimits(attempts=1))
    failure = fails(provider, [f"note {n}" for n in range(64)])
    assert failure.state is Cause.NETWORK
    assert len(play.asked) <= 8
    provider.close()
