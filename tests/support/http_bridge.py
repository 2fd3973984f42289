"""A bridge from the HTTP transport of MCP to servers over standard streams, one for each session of a client.

It adds nothing to the protocol: each message is handed on as it came, and an answer goes back to whoever asked.
"""

from __future__ import annotations

import json
import subprocess
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waiting import LONG

SESSION = "mcp-session-id"


class Session:
    """One server; `ask` returns what it answers to a request."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answers: dict[object, Any] = {}
        self._came = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            message = json.loads(line)
            if "id" in message:
                with self._came:
                    self._answers[message["id"]] = message
                    self._came.notify_all()

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, message: Any) -> Any:
        self.send(message)
        with self._came:
            assert self._came.wait_for(lambda: message["id"] in self._answers, LONG), f"no answer to {message}"
            return self._answers.pop(message["id"])

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def bridged(command: Sequence[str]) -> Iterator[str]:
    """The address at which servers started by `command` answer."""
    sessions: dict[str, Session] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            name = self.headers.get(SESSION, "")
            if message.get("method") == "initialize":
                name = uuid.uuid4().hex
                sessions[name] = Session(command)
            if name not in sessions:
                self._answer(404, b"", name)
            elif "id" in message and "method" in message:
                self._answer(200, json.dumps(sessions[name].ask(message)).encode(), name)
            else:
                sessions[name].send(message)
                self._answer(202, b"", name)

        def do_GET(self) -> None:
            self._answer(405, b"", "")

        def do_DELETE(self) -> None:
            found = sessions.pop(self.headers.get(SESSION, ""), None)
            if found is not None:
                found.close()
            self._answer(200, b"", "")

        def _answer(self, status: int, body: bytes, name: str) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if name:
                self.send_header(SESSION, name)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        for session in sessions.values():
            session.close()
