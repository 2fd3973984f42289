"""A program on a terminal of its own: what it writes, the modes it leaves, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

from tests.support.waiting import LONG

_MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_SEQUENCE = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[@-_]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class Terminal:
    """`command` in a terminal of `columns` x `rows`, as the leader of a session, as a shell in a window starts it."""

    def __init__(
        self, command: list[str], *, columns: int = 80, rows: int = 24, env: dict[str, str] | None = None, cwd: Path
    ) -> None:
        self.output = b""
        self._main, other = pty.openpty()
        self.resize(columns, rows, told=False)
        self.before = termios.tcgetattr(other)
        self.name = os.ttyname(other)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), other)
        more = {"cwd": cwd, "env": {**os.environ, "TERM": "xterm-256color", **(env or {})}, "start_new_session": True}
        self.process = subprocess.Popen(in_front(command), **pipes, **more)
        # Held open, so that how the terminal takes keys can be read after the program has ended.
        self._other = other

    def resize(self, columns: int, rows: int, *, told: bool = True) -> None:
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if told:
            os.kill(self.process.pid, signal.SIGWINCH)

    def read(self, seconds: float = 0.05) -> bytes:
        """What was written until now, from the beginning."""
        while select.select([self._main], [], [], seconds)[0]:
            try:
                new = os.read(self._main, 65_536)
            except OSError:
                break
            if not new:
                break
            self.output += new
            seconds = 0.0
        return self.output

    def until(self, text: str | bytes, *, after: int = 0) -> int:
        """Wait until `text` is written after position `after`; returns the position behind it."""
        wanted = text.encode() if isinstance(text, str) else text
        end = time.monotonic() + LONG
        while (at := self.read().find(wanted, after)) < 0:
            assert self.process.poll() is None, f"it ended: {self.text()[-3000:]}"
            assert time.monotonic() < end, f"{text!r} did not come: {self.text()[-3000:]}"
        return at + len(wanted)

    def type(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def kill(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def ended(self) -> int:
        """Wait for the end; returns the exit status, below 0 for a signal that killed it."""
        end = time.monotonic() + LONG
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < end, f"it did not end: {self.text()[-3000:]}"
        self.read()
        return self.process.returncode

    def close(self) -> None:
        """Close the window; the program is killed if it is still there after that."""
        for descriptor in (self._main, self._other):
            if descriptor >= 0:
                os.close(descriptor)
        self._main = self._other = -1

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LONG)
        self.close()

    # --- what it shows -------------------------------------------------------------------------------------------

    def text(self) -> str:
        return _SEQUENCE.sub(b"", self.output).decode("utf-8", "replace")

    def modes(self) -> dict[int, bool]:
        """Each private mode that was ever switched, as it was left."""
        left = {}
        for numbers, switch in _MODE.findall(self.output):
            left.update(dict.fromkeys(map(int, numbers.split(b";")), switch == b"h"))
        return left

    def keys(self) -> list[Any]:
        """How the terminal takes keys now."""
        return termios.tcgetattr(self._other)

    def afterwards(self) -> list[str]:
        """The lines that stand below the shell's when the app has left the screen."""
        return _SEQUENCE.sub(b"", self.output.rpartition(b"\x1b[?1049l")[2]).decode("utf-8", "replace").splitlines()

    def restored(self) -> None:
        """Every mode that was set is reset, the cursor is shown, and keys are taken as before."""
        left = self.modes()
        assert {number for number, on in left.items() if on} <= {7, 25}, left
        assert left.get(25, True)
        assert left.get(7, True)
        assert self.output.count(b"\x1b[<u") >= len(re.findall(rb"\x1b\[>\d+u", self.output))
        assert self.keys() == self.before


_LEADER = """
import fcntl, os, signal, sys, termios
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def in_front(command: list[str]) -> list[str]:
    """`command` with every signal switched on, which a shell's background job, this one perhaps, has not."""
    return [sys.executable, "-c", _LEADER, *command]
