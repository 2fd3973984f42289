"""Several processes store at once: no entry is there twice, and none is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ltm.conftest import Opened

WRITER = """
import random, sys
from pathlib import Path
from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.ltm import entry_journal
from memory_tui.ltm.memories import Memories
from memory_tui.plan import Options

# Nobody is turned away, however busy the machine is: what counts is that each waits for the others.
entry_journal._LOCK_SECONDS = 600
place, texts, seed = sys.argv[1], Path(sys.argv[2]).read_text("utf-8").split("\\n"), int(sys.argv[3])
random.Random(seed).shuffle(texts)
choices = plan.choose(Options(workspace=str(Path(place).parent), memories=place))
memories = Memories(choices, Approvals(choices.workspace))
print("ready", flush=True)
sys.stdin.readline()
for text in texts:
    done = memories.store(text)
    print(done.action, done.entry.id, flush=True)
"""
THINGS = ("router", "printer", "garden", "violin", "passport", "boiler", "bicycle", "lantern", "compass", "piano")
PLACES = ("Lisbon", "Oslo", "Kyoto", "Quito", "Cairo", "Dublin", "Havana", "Nairobi", "Prague", "Lima")
SAYINGS = ("was bought in", "is insured in")


def race(opened: Opened, folder: Path, texts: list[str]) -> None:
    """Three processes store the same `texts`, each in an order of its own."""
    (folder / "texts").write_text("\n".join(texts), "utf-8")
    place = folder / "table"
    words = [sys.executable, "-c", WRITER, str(place), str(folder / "texts")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": dict(os.environ)}
    writers = [subprocess.Popen([*words, str(seed)], **pipes) for seed in range(3)]  # type: ignore[call-overload]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        said = [writer.communicate()[0].splitlines() for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    lines = [line.split() for lines in said for line in lines]
    assert len(lines) == 3 * len(texts)
    memories = opened(place)
    entries = memories.table().entries()
    created = [key for action, key in lines if action == "created"]
    assert sorted(one.id for one in entries) == sorted(created)
    assert len({one.text for one in entries}) == len(entries) == len(set(created))
    stored = {one.text for one in entries}
    for text in set(texts) - stored:
        # What is not there repeats an entry that is.
        assert memories.search(text, 1).hits[0].score >= 0.95
    assert {key for _, key in lines} <= {one.id for one in entries}
    changes = [json.loads(line) for line in memories.journal.file.read_text("utf-8").splitlines()]
    assert [one["state"] for one in changes] == ["intent", "done"] * len(entries)


def test_three_processes_store_overlapping_texts(opened: Opened, tmp_path: Path) -> None:
    race(opened, tmp_path, [f"The {thing} {SAYINGS[0]} {PLACES[at]}" for at, thing in enumerate(THINGS[:6])])


@pytest.mark.soak
def test_three_processes_store_two_hundred_overlapping_texts_each(opened: Opened, tmp_path: Path) -> None:
    race(
        opened, tmp_path, [f"The {thing} {saying} {town}" for thing in THINGS for saying in SAYINGS for town in PLACES]
    )
