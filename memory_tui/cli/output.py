"""What commands print: JSON or lines on standard output; remarks and progress on standard error."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from memory_tui import events
from memory_tui.formatting import json_safe, one_line, plural, safe


def dumps(value: Any, indent: int | None = None) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Return `value` as JSON in readable Unicode, with what acts on a terminal, or hides there, escaped."""
    return json_safe(json.dumps(value, ensure_ascii=False, indent=indent))


def show(args: argparse.Namespace, data: Any, lines: Iterable[str] = (), code: int = 0) -> int:  # noqa: ANN401
    """Print `data` as JSON with `--json`, else `lines`; return `code`."""
    if args.json:
        print_json(data)
    else:
        print_lines(lines)
    return code


def print_json(value: Any) -> None:  # noqa: ANN401
    """Print `value` as JSON."""
    sys.stdout.write(f"{dumps(value, 2)}\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print `lines`, each made safe to show."""
    for line in lines:
        sys.stdout.write(f"{safe(line)}\n")


def say(text: str) -> None:
    """Print a remark on standard error."""
    sys.stderr.write(f"memory-tui: {one_line(text)}\n")


# --- progress ------------------------------------------------------------------------------------------------------

QUIET, REDRAWN = 0.7, 0.1
"""Seconds until progress is first drawn on a terminal, since most work is done sooner, and between two drawings."""
PATIENCE, REPEATED = 5.0, 30.0
"""The same seconds where standard error is a pipe, which gets a new line each time."""


class Progress:
    """Shows how far a command is that takes long.

    On a terminal that is one line, which is drawn again and goes away; in a pipe it is a new line now and then. With
    `each_file` every file that is indexed has a line.
    """

    def __init__(self, each_file: bool = False) -> None:
        self._each_file = each_file
        self._live = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._since = time.monotonic()
        self._drawn = 0.0
        self._lock = threading.Lock()

    def __call__(self, event: events.Event) -> None:
        """Tell `event`, on the thread that made it."""
        match event:
            case events.VectorsMade():
                pace = event.pace and f", {event.pace}"
                self.draw(f"Embedding {event.done:,} of {event.total:,} chunks{pace}; ctrl+c stops")
            case events.SyncProgress():
                start = "Rebuilding the index: " if event.rebuilding else "Indexing "
                self.draw(f"{start}{event.done:,} of {event.total:,} files; ctrl+c stops")
            case events.SyncFinished():
                self.clear()
            case events.BatchNews():
                detail = event.detail and f", {event.detail}"
                self._line(f"batch {event.stage}: {event.done:,} of {plural(event.total, 'text')}{detail}")
            case events.FileIndexed() if self._each_file:
                self._line(f"indexed {event.path}: {plural(event.chunks, 'chunk')}, {event.embedded:,} embedded")
            case events.FileRemoved() if self._each_file:
                self._line(f"removed {event.path}")
            case events.FileFailed() if self._each_file:
                self._line(f"failed {event.path}: {event.reason}")
            case _:
                pass

    def _line(self, line: str) -> None:
        """Write a line of its own, in the place of the line of progress."""
        self.clear()
        sys.stderr.write(f"{one_line(line)}\n")

    def draw(self, line: str) -> None:
        """Show `line` in place of the one before."""
        quiet, redrawn = (QUIET, REDRAWN) if self._live else (PATIENCE, REPEATED)
        with self._lock:
            now = time.monotonic()
            # Too early for a first line, or too soon after the last one (0: none is drawn).
            if now - self._since < quiet or (self._drawn and now - self._drawn < redrawn):
                return
            self._drawn = now
        if self._live:
            sys.stderr.write(f"\r{one_line(line)[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        else:
            say(line)
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line of progress away."""
        if self._live and self._drawn:
            self._drawn = 0.0
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def waiting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Tell on standard error that `what` is under way, and for how long; yield a function that is told of steps.

    The function takes how many steps are done, and how many there are; it need not be called.
    """
    progress = Progress()
    over = threading.Event()
    start = time.monotonic()
    state = what

    def update(done: int, total: int) -> None:
        """Take the steps into the line that is drawn next."""
        nonlocal state
        state = f"{what}: {done:,} of {total:,}"

    def draw() -> None:
        """Draw the line again and again, on a thread of its own, until the work is over."""
        while not over.wait(QUIET / 2):
            progress.draw(f"{state}, {time.monotonic() - start:.0f} s; ctrl+c stops")

    thread = threading.Thread(target=draw, daemon=True, name="progress")
    thread.start()
    try:
        yield update
    finally:
        over.set()
        thread.join()
        progress.clear()
