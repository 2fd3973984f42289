"""Remote providers under load and under every failure: what is retried, what is not, what is never kept or shown."""

import contextlib
import email.utils
import gzip
import json
import socket
import threading
import time
import traceback
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memory_tui.errors import Cancelled
from memory_tui.providers import Cause, ProviderFailure
from memory_tui.providers.builtin import hash_vector
from memory_tui.providers.registry import RequestLimits, RetryClock
from memory_tui.secrets import Secret
from tests.support.embed import KEY, Time, quick
from tests.support.provider_server import (
    Play,
    cut_off,
    drip,
    echo_headers,
    hang,
    html,
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


def fails(provider, texts=None, kind="document"):
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(texts or ["one", "two"], kind)
    assert caught.value.next_step
    return caught.value


def test_vectors_come_back_in_order_of_unit_length_and_blank_texts_are_not_sent(play, provider):
    play.usual = reversed_rows
    texts = ["alpha beta", "  \n", "gamma", "delta " * 900, "epsilon"]
    vectors = provider().embed(texts, "document")
    assert (vectors.dtype, vectors.shape, vectors[1].any()) == (np.float32, (5, 256), False)
    for at in (0, 2, 3, 4):
        assert vectors[at] == pytest.approx(hash_vector(texts[at]), abs=1e-6)
    assert all(text.strip() for asked in play.asked for text in asked.texts)
    play.asked.clear()
    assert (len(provider().embed([], "document")), len(provider().embed([""], "query")), play.asked) == (0, 1, [])


@pytest.mark.parametrize(
    ("name", "most", "items"),
    [("openai", 200_000, 2048), ("voyage", 120_000, 1000), ("mistral", 16_000, 128), ("gemini", 200_000, 100)],
)
def test_a_request_holds_what_the_provider_takes(play, provider, name, most, items):
    provider(name, batches=RequestLimits()).embed(["x" * 1600] * 250, "document")
    sizes = [sum(len(text.encode()) for text in asked.texts) for asked in play.asked]
    assert (sum(sizes), max(sizes) <= most) == (250 * 1600, True)
    assert len(sizes) == -(-250 // min(most // 1600, items))
    play.asked.clear()
    # Bytes of UTF-8 count, and a longer text goes alone.
    provider().embed(["é" * 1000] * 9 + ["x" * 9000] + ["y" * 10], "document")
    assert sorted(len(asked.texts) for asked in play.asked) == [1, 1, 1, 4, 4]


def test_four_requests_run_at_once_and_one_after_two_failures_until_things_go_well(play, provider):
    met = threading.Barrier(4)

    def together(handler, asked):
        met.wait(LONG)
        well(handler, asked)

    play.usual, remote = together, provider()
    remote.embed(["z" * 8000] * 8, "document")
    assert play.most_at_once == 4
    play.usual = well
    play.say(status(429, "slow"), status(429, "slow"))
    remote.embed(["w" * 8000] * 4, "document")
    play.most_at_once = 0
    remote.embed(["w" * 8000] * 8, "document")
    assert (play.most_at_once, "one request at a time" in remote.detail) == (1, True)
    remote.embed(["w" * 8000] * 32, "document")
    assert "one request" not in remote.detail


def test_questions_get_through_while_notes_are_sent(play, provider):
    began, goes_on = threading.Event(), threading.Event()

    def slow_notes(handler, asked):
        if asked.texts != ["question"]:
            began.set()
            goes_on.wait(LONG)
        well(handler, asked)

    play.usual, remote = slow_notes, provider()
    notes = threading.Thread(target=remote.embed, args=(["n" * 8000] * 8, "document"))
    notes.start()
    assert began.wait(LONG)
    assert remote.embed(["question"], "query").any()
    goes_on.set()
    notes.join(LONG)


def packed(encoding, pack):
    def reply(handler, asked):
        assert "gzip" in asked.headers["Accept-Encoding"]
        answer = json.dumps(shaped(asked, [vector(text) for text in asked.texts])).encode()
        handler.raw(200, pack(answer), {"Content-Type": "application/json", "Content-Encoding": encoding})

    return reply


def test_an_answer_may_be_packed(play, provider):
    for encoding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        play.usual = packed(encoding, pack)
        assert provider().embed(["note"] * 200, "document").any(axis=1).all()


@pytest.mark.parametrize("refusal", [status(429, "slow down"), status(503, "overloaded")], ids=["429", "503"])
def test_a_large_request_that_does_not_get_through_is_sent_in_small_ones(play, provider, refusal):
    def small_alone(handler, asked):
        (refusal if sum(map(len, asked.texts)) > 8000 else well)(handler, asked)

    play.usual, remote = small_alone, provider(batches=RequestLimits())
    texts = [f"{number:04} " * 200 for number in range(40)]
    vectors = remote.embed(texts, "document")
    assert all(vectors[at] @ hash_vector(text) > 0.999 for at, text in enumerate(texts))
    assert len([asked for asked in play.asked if len(asked.texts) == 40]) == RequestLimits().attempts
    play.asked.clear()
    remote.embed(texts, "document")
    assert max(sum(map(len, asked.texts)) for asked in play.asked) <= 8000, "remembered"


@pytest.mark.parametrize(
    ("reply", "calls"), [(status(503, "down"), 6), (status(429, "", Retry_After="3600"), 1)], ids=["down", "long wait"]
)
def test_a_provider_that_is_down_is_not_asked_for_each_small_request(play, provider, reply, calls):
    play.usual = reply
    fails(provider(batches=RequestLimits(concurrency=1)), ["w" * 1600] * 40)
    assert len(play.asked) == calls


def test_a_batch_that_is_too_large_is_halved_and_the_limit_remembered(play, provider):
    play.most_items, remote = 10, provider()
    texts = [f"text {n}" for n in range(64)]
    vectors = remote.embed(texts, "document")
    assert all(vectors[at] @ hash_vector(text) > 0.999 for at, text in enumerate(texts))
    play.asked.clear()
    remote.embed(texts, "document")
    assert max(len(asked.texts) for asked in play.asked) == 8
    play.most_items = None
    play.asked.clear()
    play.say(status(413, "Request Entity Too Large"))
    assert provider().embed(["one", "two", "three"], "document").any(axis=1).all()
    assert [len(asked.texts) for asked in play.asked] == [3, 2, 1]


def test_a_batch_that_breaks_the_connection_is_halved_unless_every_one_does(play, provider):
    play.usual = lambda handler, asked: (reset if len(asked.texts) > 2 else well)(handler, asked)
    assert provider().embed([f"note {n}" for n in range(7)], "document").any(axis=1).all()
    play.asked.clear()
    play.usual = reset
    failure = fails(provider(batches=RequestLimits(attempts=1)), [f"note {n}" for n in range(64)])
    assert (failure.state, len(play.asked) <= 8) == (Cause.NETWORK, True)


def test_a_text_over_the_models_limit_is_embedded_in_parts_and_none_of_it_is_lost(play, provider):
    def limited(handler, asked):
        long = any(len(text) > 200 for text in asked.texts)
        reply = status(400, {"error": {"message": "This model's maximum context length is 50 tokens"}})
        (reply if long else well)(handler, asked)

    play.usual = limited
    text = " ".join(f"word{n}" for n in range(80))
    whole = provider().embed([text, "short"], "document")[0]
    assert np.linalg.norm(whole) == pytest.approx(1)
    assert whole @ hash_vector(text) > 0.99
    accepted = [asked.texts[0] for asked in play.asked if len(asked.texts[0]) <= 200 and asked.texts != ["short"]]
    assert "".join(accepted) == text


def to_poison(refusal):
    return lambda handler, asked: (refusal if any("poison" in text for text in asked.texts) else well)(handler, asked)


# What Ollama says of a text for which its model makes no numbers.
NO_NUMBERS = status(500, {"error": "failed to encode response: json: unsupported value: NaN"})
TOO_LONG = status(400, {"error": {"message": "maximum context length is 8 tokens"}})


def zeroed(handler, asked):
    handler.json(200, shaped(asked, [[0.0] * 256 if "poison" in text else vector(text) for text in asked.texts]))


@pytest.mark.parametrize(
    ("reply", "state"),
    [(to_poison(NO_NUMBERS), Cause.NO_VECTOR), (zeroed, Cause.NO_VECTOR), (to_poison(TOO_LONG), Cause.TOO_LONG)],
)
def test_a_text_that_gets_no_vector_costs_the_others_nothing(play, provider, reply, state):
    play.usual = reply
    texts = [f"some words, {at} {'poison' if at in (3, 700) else ''}" for at in range(1000)]
    failure = fails(provider(), texts)
    assert failure.state is state
    assert set(range(1000)) - set(failure.done) == {3, 700}
    assert failure.done[4] == pytest.approx(hash_vector(texts[4]), abs=1e-6)


def test_zeros_are_the_fault_of_the_provider_until_it_has_made_a_vector(play, provider):
    play.usual, remote = zeroed, provider()
    assert fails(remote, ["poison"]).state is Cause.MALFORMED
    remote.embed(["good"], "document")
    assert fails(remote, ["poison"]).state is Cause.NO_VECTOR


def over_the_limit(handler, asked):
    """A good answer, but for 64 MiB of blanks in front."""
    good = json.dumps(shaped(asked, [vector(text) for text in asked.texts])).encode()
    with contextlib.suppress(OSError):
        handler.raw(200, b" " * (64 << 20) + good, {})


BAD_ANSWERS = {
    "one row too few": rows(lambda found: found[:-1]),
    "one row too many": rows(lambda found: [*found, found[0]]),
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
    "no embedding": tree({"data": [{"index": 0}, {"index": 1}]}),
    "an index twice": tree({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}),
    "an index that is a list": tree({"data": [{"index": [], "embedding": [1.0]}, 7]}),
    "a web page": html(200),
    "nothing": status(200, ""),
    "JSON without end": status(200, "[" * 200_000),
    "packed wrongly": packed("gzip", lambda data: b"\x1f\x8b" + data),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_an_answer_that_is_no_answer_is_not_kept(play, provider, name):
    play.usual = BAD_ANSWERS[name]
    failure = fails(provider())
    assert (failure.state, failure.done) == (Cause.MALFORMED, {})


DAILY = {"message": "used up", "details": [{"quotaId": "EmbedContentRequestsPerDayPerProject"}]}
ERRORS = [
    (status(401, {"error": {"message": "Incorrect API key provided"}}), Cause.BAD_KEY, 1),
    (status(403, {"error": "forbidden"}), Cause.BAD_KEY, 1),
    (status(400, {"error": {"message": "API key not valid. Please pass a valid API key."}}), Cause.BAD_KEY, 1),
    (status(404, {"error": {"message": "`x` does not exist", "code": "model_not_found"}}), Cause.UNKNOWN_MODEL, 1),
    (status(400, {"error": {"message": "Invalid model: x"}}), Cause.UNKNOWN_MODEL, 1),
    (status(400, {"error": 'model "x" not found, try pulling it first'}), Cause.UNKNOWN_MODEL, 1),
    (status(402, {"message": "payment"}), Cause.QUOTA, 1),
    (status(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}), Cause.QUOTA, 1),
    (status(429, {"error": {"message": "slow down"}}), Cause.RATE_LIMIT, 3),
    (status(429, {"error": DAILY}), Cause.QUOTA, 1),
    (status(400, {"error": {"message": "something else"}}), Cause.REFUSED, 1),
    (status(400, "[" * 200_000), Cause.REFUSED, 1),
    (status(500, "oops"), Cause.SERVER, 3),
    (html(502), Cause.SERVER, 3),
    (status(408, ""), Cause.SERVER, 3),
    # Asked three times with both texts, and as often with the first alone.
    (reset, Cause.NETWORK, 6),
    (cut_off, Cause.NETWORK, 6),
]


@pytest.mark.parametrize(("reply", "state", "calls"), ERRORS)
def test_every_error_has_its_state_and_only_passing_ones_are_tried_again(play, provider, reply, state, calls):
    play.usual, time = reply, Time()
    failure = fails(provider(time=time))
    assert (failure.state, len(play.asked)) == (state, calls)
    assert time.slept == pytest.approx([0.55, 1.1] * (calls // 3))
    assert "<" not in failure.message


def test_retry_after_is_obeyed_as_seconds_and_as_a_date(play, provider):
    clock = Time()
    remote = provider(time=clock)
    play.say(status(429, "", Retry_After="7"), status(429, {"error": {"details": [{"retryDelay": "2.5s"}]}}))
    assert remote.embed(["note"], "document").any()
    assert clock.slept == [7, 2.5]
    play.say(status(503, "", Retry_After=email.utils.formatdate(time.time() + 80_000, usegmt=True)))
    assert 60 < (fails(remote, ["note"]).retry_after or 0) <= 80_000
    play.say(status(429, "", Retry_After="45"))
    assert fails(remote, ["question"], "query").retry_after == 45
    for headers in ({"Retry_After": "9" * 20}, {"retry_after_ms": "inf"}):
        play.say(status(429, "", **headers))
        assert fails(remote).retry_after == 86_400
    assert clock.slept == [7, 2.5]


def test_redirects_are_not_followed(play, provider):
    with serving(Play()) as other:
        play.usual = status(307, "", Location=f"{other.url}/embeddings")
        failure = fails(provider())
    assert (failure.state, other.asked) == (Cause.REFUSED, [])
    assert other.url.removeprefix("http://") in failure.message


def test_requests_that_meet_the_same_refusal_all_get_the_next_key(play, provider):
    met, refused = threading.Barrier(4), []

    def spent(handler, asked):
        if "first" not in asked.headers["Authorization"]:
            well(handler, asked)
            return
        refused.append(asked)
        met.wait(LONG)
        status(429, {"error": {"code": "insufficient_quota", "message": "spent"}})(handler, asked)

    play.usual = spent
    remote = provider(api_keys=(Secret("sk-first-key"), Secret("sk-second-key")))
    assert remote.embed(["z" * 8000] * 8, "document").any(axis=1).all()
    assert len(refused) == 4


def everything_shown(failure, provider):
    """What a person could get to see, the local variables of a traceback included."""
    trace = traceback.TracebackException.from_exception(failure, capture_locals=True)
    return "".join([*trace.format(), str(failure.as_dict()), repr(failure), provider.detail])


@pytest.mark.parametrize(
    "reply", [echo_headers(400), echo_headers(401), echo_headers(500), reset, html(200)], ids=lambda reply: ""
)
def test_no_key_header_or_password_is_ever_shown(play, provider, reply):
    play.usual = reply
    remote = provider(headers={"X-Team": "header-secret-42"})
    shown = everything_shown(fails(remote), remote)
    headers = play.asked[-1].headers
    assert (headers["Authorization"], headers["X-Team"]) == (f"Bearer {KEY}", "header-secret-42")
    remote = provider(api_keys=(), at=Play(url=play.url.replace("http://", "http://user:pa55word-x@")))
    shown += everything_shown(fails(remote), remote)
    login = play.asked[-1].headers["Authorization"]
    assert login.startswith("Basic ")
    for secret in (KEY, "header-secret-42", "pa55word-x", login.split()[1]):
        assert secret not in shown


def called(*args, **more):
    return ThreadPoolExecutor(1).submit(*args, **more)


class Look:
    """A look-up of host names that hangs until it is let go."""

    def __init__(self, monkeypatch):
        self.began, self.goes_on = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []
        self.crashed: list[object] = []
        self._usual = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)
        monkeypatch.setattr(threading, "excepthook", self.crashed.append)

    def __call__(self, *args, **more):
        self.threads.append(threading.current_thread())
        self.began.set()
        self.goes_on.wait(LONG)
        return self._usual(*args, **more)

    def let_go(self):
        self.goes_on.set()
        self.threads[0].join(LONG)


@pytest.mark.parametrize("reply", [hang, drip])
def test_a_call_has_a_time_limit_in_all_and_is_not_repeated(play, provider, reply):
    play.usual = reply
    failure = fails(provider(batches=quick(0.1)))
    assert (failure.state, "0.1 s" in failure.message) == (Cause.TIMEOUT, True)
    # None at all where the machine was too busy to bring even the first one to the server in time.
    assert len(play.asked) <= 1


@pytest.mark.parametrize("closes", [True, False])
def test_a_look_up_that_hangs_is_left_and_sends_nothing_afterwards(play, provider, monkeypatch, closes):
    look = Look(monkeypatch)
    remote = provider() if closes else provider(batches=quick(0.05, attempts=1))
    call = called(remote.embed, ["note"], "query")
    assert look.began.wait(LONG)
    if closes:
        remote.close()
    assert type(call.exception(LONG)) is (Cancelled if closes else ProviderFailure)
    look.let_go()
    assert (look.crashed, play.asked) == ([], [])


def part_of_an_answer(handler, asked):
    handler.close_connection = True
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.play.ended.wait(4 * LONG)


@pytest.mark.parametrize("reply", [hang, drip, part_of_an_answer, status(503, "", Retry_After="20")])
def test_closing_ends_every_call_at_once_and_nobody_is_asked_afterwards(play, provider, reply, monkeypatch):
    arrived = threading.Semaphore(0)

    def noted(handler, asked):
        arrived.release()
        reply(handler, asked)

    play.usual = noted
    remote = provider(clock=RetryClock(), batches=RequestLimits(8000, concurrency=2))
    calls = [called(remote.embed, ["n" * 8000] * 2, "document") for _ in range(2)]
    for _ in range(2):
        assert arrived.acquire(timeout=LONG)
    started = time.monotonic()
    remote.close()
    assert [type(call.exception(LONG)) for call in calls] == [Cancelled, Cancelled]
    assert time.monotonic() - started < LONG, "it waited for the answer"
    begun: list[object] = []
    monkeypatch.setattr(threading.Thread, "start", begun.append)
    for texts in ([], [" "], ["note"]):
        with pytest.raises(Cancelled):
            remote.embed(texts, "document")
    assert begun == []


@pytest.fixture
def silent():
    """A server that takes connections, and neither reads nor says anything."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


LARGE = ["x" * (32 << 20)]
"""More than fits into the buffers of a connection."""


@pytest.mark.parametrize(("scheme", "texts"), [("https", ["note"]), ("http", LARGE)], ids=["handshake", "upload"])
def test_a_server_that_neither_reads_nor_speaks_is_given_up_and_gets_no_more_text(silent, provider, scheme, texts):
    at = Play(url=f"{scheme}://127.0.0.1:{silent.getsockname()[1]}")
    assert fails(provider(at=at, batches=quick(0.2, attempts=1)), texts).state is Cause.TIMEOUT
    silent.accept()[0].close()
    remote = provider(at=at, clock=RetryClock())
    call = called(remote.embed, texts, "document")
    connection, _ = silent.accept()
    with connection:
        connection.recv(1, socket.MSG_PEEK)  # It has begun.
        remote.close()
        assert type(call.exception(LONG)) is Cancelled
        if scheme == "http":
            came = 0
            while data := connection.recv(1 << 20):
                came += len(data)
            assert came < len(LARGE[0]) / 2, "no text leaves after the stop"
