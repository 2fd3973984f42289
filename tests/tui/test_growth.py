"""The app in a terminal, letters typed, beside agents that write: what it takes does not grow."""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path
from statistics import fmean

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from tests.support.terminal import Terminal
from tests.tui.test_odd_terminals import homes

SECONDS = 60.0
MOST_GROWN, MOST = 30.0, 230.0
"""Megabytes between the mean of the first half minute and that of the second, and at the end."""


def anonymous(pid: int) -> float:
    """Megabytes of a process that no file backs."""
    [kilobytes] = re.findall(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what no file backs")
def test_letters_beside_writing_agents_leave_nothing_behind(tmp_path: Path) -> None:
    chance = random.Random(3)
    words = ["".join(chance.choices(["ka", "re", "mo", "ti", "su"], k=4)) for _ in range(2_000)]
    folder = tmp_path / "notes" / "memory"
    folder.mkdir(parents=True)
    notes = [folder / f"{number}.md" for number in range(1_500)]

    def write(note: Path) -> None:
        note.write_text("# Note\n\n" + " ".join(chance.choices(words, k=180)))

    for note in notes:
        write(note)
    index = tmp_path / "index.sqlite"
    with Engine.open(Options(workspace=str(folder.parent), index=str(index), provider="builtin")) as engine:
        engine.index.sync()
    command = [sys.executable, "-m", "memory_tui", str(folder.parent), "--index", str(index), "--provider", "builtin"]
    sizes: list[tuple[float, float]] = []
    with Terminal(command, columns=120, rows=36, env=homes(tmp_path), cwd=tmp_path) as terminal:
        terminal.until("1,500")
        terminal.type("/")
        began = time.monotonic()
        while (now := time.monotonic() - began) < SECONDS:
            for at in range(9):
                write(chance.choice(notes))
                end = began + now + (at + 1) / 9
                while (left := end - time.monotonic()) > 0:
                    terminal.read(left)
            terminal.type("\x15" if chance.random() < 0.1 else chance.choice("".join(words)))
            sizes.append((now, anonymous(terminal.process.pid)))
    early, late = ([size for at, size in sizes if 10 <= at < 30], [size for at, size in sizes if at >= 30])
    assert fmean(late) - fmean(early) <= MOST_GROWN
    assert sizes[-1][1] <= MOST
