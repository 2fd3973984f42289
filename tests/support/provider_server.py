"""A server on loopback that plays the wire formats of all providers, and every way in which they fail."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory_tui.providers.builtin import hash_vector
from tests.support.waiting import LONG


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: Any
    size: int

    @property
    def texts(self) -> list[str]:
        if "requests" in self.body:
            return [one["content"]["parts"][0]["text"] for one in self.body["requests"]]
        if "content" in self.body:
            return [self.body["content"]["parts"][0]["text"]]
        found = self.body.get("input", self.body.get("prompt"))
        return [found] if isinstance(found, str) else found


Reply = Callable[["Handler", Asked], None]


def vector(text: str, dims: int = 256) -> list[float]:
    """Not of unit length, as real providers' need not be."""
    return [3.0 * float(x) for x in hash_vector(text)[:dims]]


def shaped(asked: Asked, rows: list[Any]) -> Any:
    """`rows` in the format that belongs to the path."""
    if asked.path.endswith(":embedContent"):
        return {"embedding": {"values": rows[0]}}
    if asked.path.endswith(":batchEmbedContents"):
        return {"embeddings": [{"values": row} for row in rows]}
    if asked.path.endswith("/api/embed"):
        return {"model": "m", "embeddings": rows}
    if asked.path.endswith("/api/embeddings"):
        return {"embedding": rows[0]}
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)],
    }


def well(handler: Handler, asked: Asked) -> None:
    handler.json(200, shaped(asked, [vector(text, handler.play.dims) for text in asked.texts]))


def rows(change: Callable[[list[Any]], list[Any]]) -> Reply:
    return lambda handler, asked: handler.json(200, shaped(asked, change([vector(t) for t in asked.texts])))


def tree(value: Any) -> Reply:
    return lambda handler, asked: handler.json(200, value)


def status(code: int, body: Any = "", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, str):
        return lambda handler, asked: handler.raw(code, body.encode(), named)
    return lambda handler, asked: handler.json(code, body, named)


def html(code: int = 200) -> Reply:
    page = "<html><head><style>b{}</style></head><body><h1>502 Bad gateway</h1></body></html>"
    return lambda handler, asked: handler.raw(code, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


def reversed_rows(handler: Handler, asked: Asked) -> None:
    answer = shaped(asked, [vector(text) for text in asked.texts])
    answer["data"].reverse()
    handler.json(200, answer)


def reset(handler: Handler, asked: Asked) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def cut_off(handler: Handler, asked: Asked) -> None:
    """Half of what was announced."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def hang(handler: Handler, asked: Asked) -> None:
    """Nothing, until the client has gone or the server ends."""
    handler.play.hanging.release()
    handler.play.ended.wait(4 * LONG)
    handler.close_connection = True


def drip(handler: Handler, asked: Asked) -> None:
    """A byte now and then, for ever: no pause is as long as a timeout between two reads."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.play.ended.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def echo_headers(code: int) -> Reply:
    """An error that repeats what it was sent, as some gateways do."""
    return lambda handler, asked: handler.json(code, {"error": {"message": f"rejected: {asked.headers}"}})


@dataclass
class Play:
    """The server: answers from `script` while there are any, then with `usual`."""

    dims: int = 256
    usual: Reply = well
    most_items: int | None = None
    script: deque[Reply] = field(default_factory=deque)
    asked: list[Asked] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)
    hanging: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def say(self, *replies: Reply) -> None:
        self.script.extend(replies)

    def next(self) -> Reply:
        with self.lock:
            return self.script.popleft() if self.script else self.usual


class Quiet(BaseHTTPRequestHandler):
    """Answers with whole bodies, and prints nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def raw(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Handler(Quiet):
    play: Play
    _busy = False

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        asked = Asked(self.path, dict(self.headers), json.loads(self.rfile.read(size)), size)
        with self.play.lock:
            self.play.asked.append(asked)
            self.play.at_once += 1
            self.play.most_at_once = max(self.play.most_at_once, self.play.at_once)
        self._busy = True
        try:
            if self.play.most_items is not None and len(asked.texts) > self.play.most_items:
                said = f"batch size {len(asked.texts)} > maximum allowed batch size {self.play.most_items}"
                self.json(400, {"error": {"message": said}})
            else:
                self.play.next()(self, asked)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            self._done()

    def _done(self) -> None:
        """Count a request as answered, once, and before the answer is on its way: the next one can come at once."""
        with self.play.lock:
            self.play.at_once -= self._busy
        self._busy = False

    def json(self, code: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self.raw(code, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def raw(self, code: int, data: bytes, headers: dict[str, str]) -> None:
        self._done()
        super().raw(code, data, headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what many tests are about."""


@contextlib.contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def serving(play: Any, handler: type[BaseHTTPRequestHandler] = Handler) -> Any:
    """`play` on a free port of loopback."""
    with listening(type("Playing", (handler,), {"play": play})) as port:
        play.url = f"http://127.0.0.1:{port}"
        try:
            yield play
        finally:
            play.ended.set()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.contextmanager
def refusing() -> Iterator[str]:
    """An address of loopback where nobody listens; it is kept meanwhile, so that nobody else can be there instead."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{kept.getsockname()[1]}"


@dataclass
class Shelf:
    """Files at `/user/repo/resolve/main/x`, told of as the hub does, with size and checksum."""

    files: dict[str, bytes] = field(default_factory=dict)
    checksum: str | None = None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    ended: threading.Event = field(default_factory=threading.Event)


class FileHandler(Quiet):
    play: Shelf

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        shelf = self.play
        shelf.asked.append((self.path, dict(self.headers)))
        data = shelf.files.get(self.path.partition("?")[0].rpartition("/")[2])
        self.send_response(404 if data is None else 200)
        data = data or b""
        digest = shelf.checksum or hashlib.sha256(data).hexdigest()
        told = {"ETag": f'"{digest}"', "X-Repo-Commit": "1" * 40, "Content-Length": str(len(data))}
        for name, value in told.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)
