"""Requests and connections: what they may wait for has an end, whoever waits is let go, and nothing is left behind."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.http import Http, SentHeaders, at_once
from memory_tui.providers.options import RetryClock
from tests.support.embed import provider_for, quick
from tests.support.provider_server import Handler, Play, serving, shaped, vector, well
from tests.support.waiting import LONG


@pytest.fixture
def play() -> Iterator[Play]:
    with serving(Play()) as running:
        yield running


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections, and neither reads nor says anything."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


def at(server: socket.socket, scheme: str = "http") -> Play:
    return Play(url=f"{scheme}://127.0.0.1:{server.getsockname()[1]}")


class Look:
    """A look-up of host names that hangs until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.goes_on = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []
        self.crashed: list[object] = []
        self._usual = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)
        monkeypatch.setattr(threading, "excepthook", self.crashed.append)

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.threads.append(threading.current_thread())
        self.began.set()
        self.goes_on.wait(LONG)
        return self._usual(*args, **more)

    def let_go(self) -> None:
        self.goes_on.set()
        self.threads[0].join(LONG)


class Call:
    """A call on a thread of its own."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self.ended = work, []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.ended.append(self._work())
        except (Cancelled, ProviderFailure) as error:
            self.ended.append(type(error))

    def result(self) -> object:
        self._thread.join(LONG)
        [only] = self.ended
        return only


# --- what a request may wait for -----------------------------------------------------------------------------------


def test_a_look_up_that_ends_after_its_caller_was_let_go_ends_in_silence(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, provider = Look(monkeypatch), provider_for(play)
    call = Call(lambda: provider.embed(["note"], "document"))
    assert look.began.wait(LONG)
    provider.close()
    assert call.result() is Cancelled
    look.let_go()
    assert (look.crashed, play.asked) == ([], [])


def test_a_look_up_counts_to_the_time_of_the_request(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    look, provider = Look(monkeypatch), provider_for(play, batches=quick(0.05, attempts=1))
    with pytest.raises(ProviderFailure, match=r"0\.05 s") as caught:
        provider.embed(["question"], "query")
    assert caught.value.state is Cause.TIMEOUT
    look.let_go()
    assert (look.crashed, play.asked) == ([], [])
    provider.close()


def test_nobody_is_asked_once_it_is_closed(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = provider_for(play)
    provider.close()
    started: list[object] = []
    monkeypatch.setattr(threading.Thread, "start", started.append)
    for texts in ([], [" "], ["note"]):
        with pytest.raises(Cancelled):
            provider.embed(texts, "document")
    assert started == []


LARGE = ["x" * (32 << 20)]
"""More than fits into the buffers of a connection."""


@pytest.mark.parametrize(("scheme", "texts"), [("https", ["note"]), ("http", LARGE)], ids=["handshake", "upload"])
def test_a_server_that_neither_reads_nor_speaks_is_given_up(
    silent: socket.socket, scheme: str, texts: list[str]
) -> None:
    provider = provider_for(at(silent, scheme), batches=quick(0.2, attempts=1))
    with pytest.raises(ProviderFailure) as caught:
        provider.embed(texts, "document")
    assert caught.value.state is Cause.TIMEOUT
    provider.close()


@pytest.mark.parametrize(("scheme", "texts"), [("https", ["note"]), ("http", LARGE)], ids=["handshake", "upload"])
def test_closing_ends_a_handshake_and_an_upload(silent: socket.socket, scheme: str, texts: list[str]) -> None:
    provider = provider_for(at(silent, scheme), clock=RetryClock())
    call = Call(lambda: provider.embed(texts, "document"))
    connection, _ = silent.accept()
    with connection:
        connection.recv(1, socket.MSG_PEEK)  # It has begun.
        provider.close()
        assert call.result() is Cancelled
        if scheme == "http":
            came = 0
            while data := connection.recv(1 << 20):
                came += len(data)
            assert came < len(LARGE[0]) / 2, "no text leaves after the stop"


def test_an_answer_without_a_length_that_is_cut_is_no_answer(play: Play) -> None:
    arrived = threading.Event()

    def endless(handler: Handler, asked: Any) -> None:
        handler.close_connection = True
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b'{"data": [')
        arrived.set()
        play.ended.wait(4 * LONG)

    play.usual = endless
    provider = provider_for(play)
    call = Call(lambda: provider.embed(["note"], "document"))
    assert arrived.wait(LONG)
    provider.close()
    assert call.result() is Cancelled


def test_requests_that_wait_for_their_turn_are_let_go(play: Play) -> None:
    arrived = threading.Semaphore(0)

    def waiting(handler: Handler, asked: Any) -> None:
        arrived.release()
        play.ended.wait(4 * LONG)

    play.usual = waiting
    provider = provider_for(play, batches=quick(LONG))
    calls = [Call(lambda: provider.embed(["n" * 8000] * 4, "document")) for _ in range(2)]
    for _ in range(4):
        assert arrived.acquire(timeout=LONG)
    provider.close()
    assert [call.result() for call in calls] == [Cancelled, Cancelled]
    assert len(play.asked) == 4


# --- connections ---------------------------------------------------------------------------------------------------


class Counting(Handler):
    connections = 0

    def setup(self) -> None:
        Counting.connections += 1
        super().setup()


def test_questions_share_a_connection() -> None:
    Counting.connections = 0
    with serving(Play(), Counting) as play:
        provider = provider_for(play)
        for number in range(6):
            assert provider.embed([f"question {number}"], "query").any()
        provider.close()
    assert (Counting.connections, len(play.asked)) == (1, 6)


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again(play: Play) -> None:
    gone = threading.Event()

    class Leaving(Handler):
        def finish(self) -> None:
            super().finish()
            self.connection.shutdown(socket.SHUT_RDWR)
            gone.set()

    def last(handler: Handler, asked: Any) -> None:
        well(handler, asked)
        handler.close_connection = True

    with serving(Play(usual=last), Leaving) as play:
        provider = provider_for(play, batches=quick(LONG, attempts=1))
        for _ in range(3):
            assert provider.embed(["question"], "query").any()
            assert gone.wait(LONG)
            gone.clear()
        provider.close()


def packed(encoding: str, pack: Callable[[bytes], bytes]) -> Callable[[Handler, Any], None]:
    def reply(handler: Handler, asked: Any) -> None:
        assert "gzip" in asked.headers["Accept-Encoding"]
        answer = json.dumps(shaped(asked, [vector(text) for text in asked.texts])).encode()
        handler.raw(200, pack(answer), {"Content-Type": "application/json", "Content-Encoding": encoding})

    return reply


def deflated(data: bytes) -> bytes:
    pack = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return pack.compress(data) + pack.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", deflated), ("identity", bytes)],
)
def test_an_answer_may_be_packed(play: Play, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    play.usual = packed(encoding, pack)
    provider = provider_for(play)
    assert provider.embed(["note"] * 200, "document").any(axis=1).all()
    provider.close()


def test_an_answer_that_is_packed_wrongly_cannot_be_read(play: Play) -> None:
    play.usual = packed("gzip", lambda data: b"\x1f\x8b" + data)
    provider = provider_for(play)
    with pytest.raises(ProviderFailure, match="cannot be read") as caught:
        provider.embed(["note"], "document")
    assert caught.value.state is Cause.MALFORMED
    provider.close()


# --- addresses and headers -----------------------------------------------------------------------------------------


def test_an_address_is_sent_as_it_is_written(play: Play) -> None:
    http = Http("OpenAI", play.url.replace("//", "//user:p%40ss@") + "/ä b/%7Bx%7D", Stop())
    http.post("?q=ü", {"input": ["note"]}, LONG)
    http.close()
    (asked,) = play.asked
    assert asked.path == "/%C3%A4%20b/%7Bx%7D?q=%C3%BC"
    assert asked.headers["Authorization"] == "Basic dXNlcjpwQHNz"


@pytest.mark.parametrize("text", ["", "/v1", "ftp://host/", "http://", "http://[", "http://h:x/", "http://h/\x1b[31m"])
def test_what_is_no_address_is_not_asked(text: str) -> None:
    with pytest.raises(ProviderFailure, match="cannot be asked") as caught:
        Http("OpenAI", text, Stop()).post("", {}, 1)
    assert caught.value.state is Cause.REFUSED


def test_later_headers_win_and_none_is_shown() -> None:
    one = SentHeaders({"Accept": "a", "X-Key": "old"}, {"x-key": "secret"}).with_more({"ACCEPT": "ü"})
    assert one.lines() == [
        (b"Accept-Encoding", b"gzip, deflate"),
        (b"ACCEPT", "ü".encode()),
        (b"x-key", b"secret"),
    ]
    assert "secret" not in repr(one)


# --- helpers -------------------------------------------------------------------------------------------------------


def test_what_a_helper_raises_reaches_who_waits() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        done.append(number)
        if number == 2:
            raise RuntimeError("the second helper")

    with pytest.raises(RuntimeError, match="second helper"):
        at_once(work, 3)
    assert sorted(done) == [0, 1, 2]
    at_once(work, 0)
