"""An MCP server as a process of its own, asked over its bare pipes."""

import contextlib
import json
import subprocess
import sys
from typing import IO, Any, Self

from tests.support.waiting import LONG

PROGRAM = [sys.executable, "-m", "memory_tui", "mcp"]
STARTED: list[subprocess.Popen[bytes]] = []


def end_all() -> None:
    """Whatever became of a test, its servers and their pipes are no trouble to the next one."""
    while STARTED:
        process = STARTED.pop()
        process.kill()
        with contextlib.suppress(BrokenPipeError), process:
            process.wait()


class Pipes:
    """Two ends of pipes with a server at the others."""

    def __init__(self, writing: IO[bytes], reading: IO[bytes]) -> None:
        self.writing, self.reading = writing, reading

    def send(self, line: bytes | dict[str, Any]) -> None:
        self.writing.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.writing.flush()

    def read(self) -> dict[str, Any]:
        return json.loads(self.reading.readline())

    def ask(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.read()


class Wire(Pipes):
    """The bare pipes of a server that `command` starts."""

    def __init__(self, arguments: list[str], command: list[str] = PROGRAM) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([*command, *arguments], **pipes)
        STARTED.append(self.process)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        super().__init__(self.process.stdin, self.process.stdout)

    def end(self) -> None:
        """Let it end with its input, in good order."""
        self.process.communicate(timeout=LONG)
        assert self.process.returncode == 0

    def greet(self) -> Self:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
        assert self.ask(0, "initialize", **client)["result"]["serverInfo"]["name"] == "memory-tui"
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def search(self, number: int, query: str = "omada") -> dict[str, Any]:
        return self.ask(number, "tools/call", name="memory_search", arguments={"query": query})


def scripted(code: str, *arguments: str) -> Wire:
    """A server made by `code`, which finds server, Engine and Options imported."""
    start = (
        "import os, sys, subprocess\nfrom memory_tui.mcp import server\n"
        "from memory_tui.engine.engine import Engine; from memory_tui.plan import Options\n"
    )
    return Wire(list(arguments), [sys.executable, "-c", start + code])
