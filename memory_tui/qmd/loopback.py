"""A server of QMD on loopback answers without the start of a process."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from memory_tui.core.cancel import Stop
from memory_tui.core.sanitize import one_line
from memory_tui.qmd.folder import QmdFailure, QmdFolder
from memory_tui.qmd.program import MOST_OUTPUT, Program, end_group, start

_HOST = "127.0.0.1"
_READY_SECONDS = 20.0
_PAUSE_SECONDS = 0.05


class QmdServer:
    """One `qmd mcp --http` of this process; `close` ends it. Any thread may ask."""

    def __init__(self, program: Program, place: QmdFolder, folder: Path) -> None:
        self._program, self._place, self._folder = program, place, folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._ready = False
        self._closed = Stop()

    @property
    def ready(self) -> bool:
        """Whether it answers now; a search does not wait for its start."""
        return self._ready and self._process is not None and self._process.poll() is None

    def warm(self) -> None:
        """Start it in the background, where it does not run."""
        with self._lock:
            alive = self._process is not None and self._process.poll() is None
            if alive or self._closed.is_set():
                return
            self._ready = False
            self._port = _free_port()
            arguments = ["mcp", "--http", "--host", _HOST, "--port", str(self._port)]
            self._process = start(self._program.words, arguments, self._place.environment(), self._folder)
            process = self._process
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                threading.Thread(target=_drain, args=(pipe,), name="qmd-server-output", daemon=True).start()
        threading.Thread(target=self._wait, args=(process,), name="qmd-server", daemon=True).start()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _READY_SECONDS
        while time.monotonic() < end and process.poll() is None and not self._closed.wait(_PAUSE_SECONDS):
            try:
                status, _ = self._request("GET", "/health", None, 1.0)
            except OSError:
                # It is still starting.
                continue
            if status == http.client.OK:
                self._ready = process is self._process
                return

    def query(
        self, searches: Sequence[dict[str, str]], collections: Sequence[str], limit: int, seconds: float
    ) -> list[Any]:
        """The rows of an answer. Raises QmdFailure."""
        body = {"searches": list(searches), "collections": list(collections), "limit": limit, "rerank": False}
        try:
            status, text = self._request("POST", "/query", json.dumps(body).encode(), seconds)
        except TimeoutError:
            raise QmdFailure(
                "timeout", f"QMD's server did not answer in {seconds:g} s.", "Run memory-tui doctor."
            ) from None
        except (OSError, http.client.HTTPException) as error:
            self._ready = False
            raise QmdFailure("exit", f"QMD's server ended: {error}.", "It is started again.") from error
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if status != http.client.OK or not isinstance(found, dict) or not isinstance(found.get("results"), list):
            raise QmdFailure(
                "answer", f"QMD's server answered {status}: {one_line(text, 80)}.", "Run memory-tui doctor."
            )
        results: list[Any] = found["results"]
        return results

    def _request(self, method: str, path: str, body: bytes | None, seconds: float) -> tuple[int, str]:
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=seconds)
        try:
            connection.request(method, path, body, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read(4 * MOST_OUTPUT).decode("utf-8", "replace")
        finally:
            connection.close()

    def close(self) -> None:
        """End it, with all that it started."""
        self._closed.set()
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            end_group(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _drain(pipe: IO[bytes]) -> None:
    """Read what nobody needs, so that the writer does not wait."""
    with pipe:
        while pipe.read(65_536):
            continue
