"""Writers in processes of their own that never rest, and somebody who changes the same notes beside them.

Every line that either side writes has a number, so that at the end each is there exactly once or was lost.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_tui.notes.edit import Curator
from memory_tui.tui import editor
from tests.support.curate import curator
from tests.support.waiting import LONG

LOG = "memory/2026-01-12.md"
CLOCK = 1_768_226_700.0
"""A time on the day of LOG."""

WAYS = ("appends", "replaces", "halves")
"""Programs that look before they write."""

_WRITER = """
import os, select, sys
path, way, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])


def rests(seconds):
    # The end of standard input is the end of the work.
    return bool(select.select([0], [], [], seconds)[0])


def appends(line, number):
    with open(path, "ab", buffering=0) as file:
        file.write(line)


def replaces(line, number):
    # A careful program: it replaces the file that it has open, and looks whether that is still the note.
    while True:
        try:
            with open(path, "r+b", buffering=0) as held:
                if os.fstat(held.fileno()).st_ino != os.stat(path).st_ino:
                    continue
                text = held.read()
                with open(path + "~", "wb") as new:
                    new.write(text.replace(b"## Agent\\n", b"## Agent\\n" + line, 1))
                os.replace(path + "~", path)
                return
        except FileNotFoundError:
            continue


def halves(line, number):
    middle = len(line) // 2
    with open(path, "ab", buffering=0) as file:
        file.write(line[:middle])
        if number % 2:
            rests(pause / 4)
            file.write(line[middle:])
            return
    rests(pause / 4)
    with open(path, "ab", buffering=0) as file:
        file.write(line[middle:])


number = 0
while True:
    globals()[way](b"- agent %d %s\\n" % (number, way.encode()), number)
    number += 1
    if rests(pause):
        break
print(number)
"""


class Writer:
    """A process that writes numbered lines to `note` in one of WAYS, `pause` seconds apart, from `with` to its end."""

    def __init__(self, note: Path, way: str, pause: float) -> None:
        self._note, self._way, self._pause = note, way, pause
        self.count = 0
        """How many lines it wrote, known at the end."""

    def __enter__(self) -> Writer:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(self._note), self._way, str(self._pause)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.wrote()
        return self

    def __exit__(self, *exc: object) -> None:
        said, _ = self._process.communicate(timeout=LONG)
        assert self._process.returncode == 0
        self.count = int(said)

    def wrote(self) -> None:
        """Wait until the note holds a line of the writer that it does not hold now."""
        seen = self._lines()
        until = time.monotonic() + LONG
        while self._lines() == seen:
            assert time.monotonic() < until, "the writer wrote nothing"
            assert self._process.poll() is None, "the writer ended"
            time.sleep(0.0005)

    def _lines(self) -> int:
        return self._note.read_bytes().count(f" {self._way}\n".encode())

    def missing(self, folder: Path) -> list[str]:
        """Lines that are not there exactly once."""
        found = lines_of(folder)
        wanted = [f"- agent {number} {self._way}" for number in range(self.count)]
        wrong = [f"{line}: {found[line]} times" for line in wanted if found[line] != 1]
        return wrong + [line for line in found if line.startswith("- agent") and line not in set(wanted)]


def lines_of(folder: Path) -> Counter[str]:
    texts = [path.read_text("utf-8") for path in sorted(folder.rglob("*.md"))]
    return Counter(line for text in texts for line in text.split("\n"))


class Desk:
    """Somebody who changes the notes of `folder` through a curator; `mine` is how often each own line must be there.

    Each change is planned on what the notes held before the writer wrote once more, so that every one is a race.
    Steps are made as the screen makes them: beside what others wrote.
    """

    def __init__(self, folder: Path, writer: Callable[[], None], own: int = 30) -> None:
        self.folder, self._wrote = folder, writer
        self.curator: Curator = curator(folder, clock=lambda: CLOCK)
        self.mine: Counter[str] = Counter(f"- user {number}." for number in range(own))
        self._turn, self._undoable = 0, False

    @staticmethod
    def prepare(folder: Path, own: int = 30) -> None:
        """The log as it is before anybody writes: room for the writer, then the lines of the user."""
        lines = "".join(f"- user {number}.\n" for number in range(own))
        (folder / LOG).write_text(f"# 2026-01-12\n\n## Agent\n\n## Mine\n{lines}", "utf-8")

    def save(self) -> None:
        """Change one line in an editor and save."""
        before = self.curator.read(LOG)
        old = self._line()
        new = f"- user {self._turn}, saved."
        self._wrote()
        text = before.decode("utf-8").replace(f"{old}\n", f"{new}\n", 1)
        editor.save(self.curator, path=LOG, before=before, text=text)
        self._became(Counter({new: 1}), Counter({old: 1}))

    def promote(self) -> None:
        line, move = self._line(), bool(self._turn % 2)
        change = self.curator.plan.promote(self._spot(LOG, line), to="Home", move=move)
        self._wrote()
        self.curator.apply(change)
        self._became(Counter({f"{line} (from {LOG})": 1}), Counter({line: 1} if move else {}))

    def remember(self) -> None:
        self._wrote()
        done = self.curator.remember(f"user {self._fresh()}, captured.")
        at = f"{self.curator.plan.now():%H:%M}"
        assert done.change.kind == "capture"
        self._became(Counter({f"- {at} user {self._turn}, captured.": 1}), Counter())

    def undo(self) -> None:
        """Take the last change back, a save where there is none."""
        if not self._undoable:
            self.save()
        before, after = self._sides
        self._wrote()
        self.curator.undo(self.curator.stack("undo")[0].id, merging=True)
        self.mine.subtract(after)
        self.mine.update(before)
        self._undoable = False

    def redo(self) -> None:
        self.undo()
        before, after = self._sides
        self._wrote()
        self.curator.redo(self.curator.stack("redo")[0].id, merging=True)
        self.mine.subtract(before)
        self.mine.update(after)

    def wrong(self) -> list[str]:
        """Own lines that are not there as often as they must be, and hidden files that were left."""
        found = lines_of(self.folder)
        names = {line for line in found if "user" in line} | set(self.mine)
        wrong = [
            f"{line}: {found[line]} times, not {self.mine[line]}" for line in names if found[line] != self.mine[line]
        ]
        return wrong + [path.name for path in self.folder.rglob(".memory-tui-*")]

    def _became(self, after: Counter[str], before: Counter[str]) -> None:
        self.mine.update(after)
        self.mine.subtract(before)
        self._sides = (before, after)
        self._undoable = True

    def _fresh(self) -> int:
        self._turn += 1
        return self._turn

    def _line(self) -> str:
        self._turn += 1
        text = (self.folder / LOG).read_text("utf-8").split("\n")
        mine = [line for line in text if line.startswith("- user") and "[[" not in line and self.mine[line] == 1]
        return mine[self._turn % len(mine)]

    def _spot(self, path: str, line: str) -> Any:
        """`line` of the note `path`, which the writer may move between two looks."""
        while True:
            data = self.curator.read(path)
            spot = self.curator.plan.spot(path, data.decode().split("\n").index(line) + 1)
            if spot.texts() == [line]:
                return spot
