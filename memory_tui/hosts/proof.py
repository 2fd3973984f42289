"""A proof starts the server as a host does. It asks a question and says who answered."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from memory_tui.errors import MemoryTuiError
from memory_tui.hosts.wiring import PROFILE, PROOF_CLIENT, ServerStart
from memory_tui.sanitize import one_line

SECONDS = 60.0
"""How long a server may take for its answer: the first one may wait for the first index."""
_REVISION = "2025-06-18"
_QUESTION = "What was decided?"
_WORD = re.compile(r"[^\W\d_]{3,}")
_WORDS = 8


class NoAnswer(MemoryTuiError):
    """The server that a host starts gave no answer."""

    code = "no_answer"


class Proof(Struct, frozen=True):
    """Who answered: milliseconds until the tools were listed and for the question, hits, the first one's place."""

    server: str
    version: str
    tools_ms: float
    answer_ms: float
    profile: str
    provider: str
    question: str
    hits: int
    first: str

    def as_dict(self) -> dict[str, Any]:
        """Return the proof as JSON-ready fields."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if not name.endswith("_ms")}
        return {**fields, "toolsMs": round(self.tools_ms, 1), "answerMs": round(self.answer_ms, 1)}

    def sentence(self) -> str:
        """What a person is told."""
        place = f", the first is {self.first}" if self.first else ""
        return (
            f"{self.server} {self.version} listed its tools in {self.tools_ms:.0f} ms and answered "
            f"{self.question!r} in {self.answer_ms:.0f} ms with profile {self.profile or 'unknown'}: "
            f"{self.hits} {'hit' if self.hits == 1 else 'hits'}{place}."
        )


def question_of(start: ServerStart) -> str:
    """What the server that `start` names is asked: the first line of its MEMORY.md that has words."""
    words = start.words
    folder = Path(words[words.index("--workspace") + 1]) if "--workspace" in words[:-1] else Path()
    try:
        lines = (folder / "MEMORY.md").read_text("utf-8", "replace").splitlines()
    except OSError:
        # A memory without that note, or one that the server itself looks for, is asked something else.
        lines = []
    sentences = (
        " ".join(_WORD.findall(line)[:_WORDS]) for line in lines if not line.lstrip().startswith(("#", "<", "---"))
    )
    return one_line(next((text for text in sentences if text.count(" ") >= 2), _QUESTION), 80)


def prove(start: ServerStart, question: str, seconds: float = SECONDS) -> Proof:
    """Start the server, ask `question`, end it. Raises NoAnswer."""
    environment = None
    if start.variables is not None:
        environment = {name: os.environ[name] for name in start.variables if name in os.environ}
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                start.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment
            )
        except OSError as error:
            raise NoAnswer(
                f"{start.words[0]} cannot be started: {error.strerror or error}.", "Run memory-tui connect again."
            ) from error
        try:
            return _conversation(_Talk(process, log, time.monotonic() + seconds), question)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What the server did not take is written once more here; its end was reported.
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()


def _conversation(talk: _Talk, question: str) -> Proof:
    began = time.perf_counter()
    greeting = talk.ask(
        "initialize",
        {
            "protocolVersion": _REVISION,
            "capabilities": {},
            "clientInfo": {"name": PROOF_CLIENT, "version": "1"},
        },
    )
    talk.send({"method": "notifications/initialized"})
    offered = {tool.get("name") for tool in talk.ask("tools/list", {}).get("tools", ())}
    listed = time.perf_counter()
    if "memory_search" not in offered:
        raise NoAnswer("The server offers no memory_search.", "Run memory-tui connect again.")
    # Hosts start a server long before the first question; the clock of the answer starts when it is asked.
    result = talk.ask(
        "tools/call",
        {"name": "memory_search", "arguments": {"query": question}, "_meta": {PROFILE: True}},
    )
    answered = time.perf_counter()
    answer: Mapping[str, Any] = result.get("structuredContent") or {}
    if result.get("isError") or answer.get("disabled"):
        raise NoAnswer(
            one_line(str(answer.get("error") or "The memory cannot be searched."), 300),
            one_line(str(answer.get("action") or "Run memory-tui doctor."), 300),
        )
    hits = answer.get("results") or []
    info = greeting.get("serverInfo") or {}
    return Proof(
        str(info.get("name", "")),
        str(info.get("version", "")),
        (listed - began) * 1000,
        (answered - listed) * 1000,
        str((result.get("_meta") or {}).get(PROFILE, "")),
        str(answer.get("provider", "")),
        question,
        len(hits),
        f"{hits[0]['path']}:{hits[0]['startLine']}" if hits else "",
    )


class _Talk:
    """JSON-RPC with a process over its pipes; each answer is waited for until the deadline."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes], end: float) -> None:
        self._process, self._log, self._end = process, log, end
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._number = 0
        threading.Thread(target=self._read, name="proof-reader", daemon=True).start()

    def _read(self) -> None:
        pipe = self._process.stdout
        while pipe is not None and (line := pipe.readline()):
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message. Raises NoAnswer."""
        try:
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                self._process.stdin.flush()
        except OSError as error:
            raise self._no_answer() from error

    def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """The result of a request. Raises NoAnswer."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, self._end - time.monotonic()))
            except queue.Empty:
                raise NoAnswer(f"The server did not answer {method} in time.", "Run memory-tui doctor.") from None
            if not line:
                raise self._no_answer()
            try:
                message = json.loads(line)
            except ValueError:
                raise NoAnswer(f"The server wrote what is no message: {one_line(repr(line), 120)}.", "") from None
            if message.get("id") != self._number:
                continue
            if "error" in message:
                raise NoAnswer(one_line(str(message["error"].get("message")), 300), "Run memory-tui doctor.")
            result: Mapping[str, Any] = message["result"]
            return result

    def _no_answer(self) -> NoAnswer:
        self._process.wait(5)
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode("utf-8", "replace").split("\n")
        reason = next((one_line(line, 300).rstrip(".") for line in reversed(lines) if line.strip()), "it said nothing")
        return NoAnswer(f"The server ended: {reason}.", "Mend what it says, then connect again.")
