"""A proof starts the server as a host does. It asks a question and says who answered."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import plural
from memory_tui.hosts.wiring import PROFILE, PROOF_CLIENT, ServerStart
from memory_tui.sanitize import one_line

SECONDS = 60.0
"""How long a server may take for its answer: the first one may wait for the first index."""
_QUESTION = "What was decided?"
_WORD = re.compile(r"[^\W\d_]{3,}")
_WORDS = 8
_AGAIN, _DOCTOR = "Run memory-tui connect again.", "Run memory-tui doctor."


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
        """Return what a person is told."""
        place = f", the first is {self.first}" if self.first else ""
        return (
            f"{self.server} {self.version} listed its tools in {self.tools_ms:.0f} ms and answered "
            f"{self.question!r} in {self.answer_ms:.0f} ms with profile {self.profile or 'unknown'}: "
            f"{plural(self.hits, 'hit')}{place}."
        )


def question_of(start: ServerStart) -> str:
    """Return what the server that `start` names is asked: the first line of its MEMORY.md that has words."""
    words = start.words
    folder = Path(words[words.index("--workspace") + 1]) if "--workspace" in words[:-1] else Path()
    try:
        lines = (folder / "MEMORY.md").read_text("utf-8", "replace").splitlines()
    except OSError:
        # A memory without that note, or one that the server itself looks for, is asked something else.
        lines = []
    prose = (line for line in lines if not line.lstrip().startswith(("#", "<", "---")))
    sentences = (" ".join(_WORD.findall(line)[:_WORDS]) for line in prose)
    return one_line(next((text for text in sentences if text.count(" ") >= 2), _QUESTION), 80)


def prove(start: ServerStart, question: str, seconds: float = SECONDS) -> Proof:
    """Start the server, ask `question`, end it. Raises NoAnswer."""
    variables = os.environ if start.variables is None else start.variables
    environment = {name: os.environ[name] for name in variables if name in os.environ}
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                start.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment
            )
        except OSError as error:
            raise NoAnswer(f"{start.words[0]} cannot be started: {error.strerror or error}.", _AGAIN) from error
        # A server that hangs is killed, which ends the line that is waited for.
        late = threading.Timer(seconds, process.kill)
        late.daemon = True
        late.start()
        try:
            return _proof(process, log, late, question)
        finally:
            late.cancel()
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What the server did not take is written once more here; its end was reported.
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()


def _proof(process: subprocess.Popen[bytes], log: IO[bytes], late: threading.Timer, question: str) -> Proof:
    """Speak MCP with the server, a request after the other."""
    answers: list[dict[str, Any]] = []
    times = [time.perf_counter()]
    client = {"name": PROOF_CLIENT, "version": "1"}
    for method, params in (
        ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        ("tools/list", {}),
        ("tools/call", {"name": "memory_search", "arguments": {"query": question}, "_meta": {PROFILE: True}}),
    ):
        messages: list[dict[str, Any]] = [{"id": len(times), "method": method, "params": params}]
        messages[:0] = [{"method": "notifications/initialized"}] if method == "tools/list" else []
        answers.append(_answer(process, log, late, messages))
        times.append(time.perf_counter())
        if method == "tools/list" and "memory_search" not in {
            tool.get("name") for tool in answers[-1].get("tools", ())
        }:
            raise NoAnswer("The server offers no memory_search.", _AGAIN)
    info, result = answers[0].get("serverInfo") or {}, answers[2]
    answer = result.get("structuredContent") or {}
    if result.get("isError") or answer.get("disabled"):
        reason = str(answer.get("error") or "The memory cannot be searched.")
        raise NoAnswer(one_line(reason, 300), one_line(str(answer.get("action") or _DOCTOR), 300))
    hits = answer.get("results") or []
    return Proof(
        str(info.get("name", "")),
        str(info.get("version", "")),
        (times[2] - times[0]) * 1000,
        (times[3] - times[2]) * 1000,
        str((result.get("_meta") or {}).get(PROFILE, "")),
        str(answer.get("provider", "")),
        question,
        len(hits),
        f"{hits[0]['path']}:{hits[0]['startLine']}" if hits else "",
    )


def _answer(
    process: subprocess.Popen[bytes], log: IO[bytes], late: threading.Timer, messages: list[dict[str, Any]]
) -> dict[str, Any]:
    """Send `messages`, and return the result of the last one. Raises NoAnswer."""
    line = b""
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.writelines(json.dumps({"jsonrpc": "2.0", **item}).encode() + b"\n" for item in messages)
            process.stdin.flush()
    while process.stdout is not None and (line := process.stdout.readline()):
        try:
            message = json.loads(line)
        except ValueError:
            raise NoAnswer(f"The server wrote what is no message: {one_line(repr(line), 120)}.", "") from None
        if message.get("id") == messages[-1]["id"]:
            if "error" in message:
                raise NoAnswer(one_line(str(message["error"].get("message")), 300), _DOCTOR)
            result: dict[str, Any] = message["result"]
            return result
    if late.finished.is_set():
        raise NoAnswer(f"The server did not answer {messages[-1]['method']} in time.", _DOCTOR)
    process.wait(5)
    log.seek(0)
    lines = log.read()[-4000:].decode("utf-8", "replace").split("\n")
    reason = next((one_line(text, 300).rstrip(".") for text in reversed(lines) if text.strip()), "it said nothing")
    raise NoAnswer(f"The server ended: {reason}.", "Mend what it says, then connect again.")
