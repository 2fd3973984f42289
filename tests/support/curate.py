"""A workspace with a curator, and the agent that writes to the same notes."""

import subprocess
import sys
import time
from pathlib import Path

from memory_tui.notes.changes import Change, FileChange
from memory_tui.notes.edit import Curator, Planner
from memory_tui.notes.journal import Journal, JournalEntry
from memory_tui.notes.links import LinkIndex
from memory_tui.workspace.roots import Roots


def workspace(folder: Path, **notes: bytes) -> Path:
    """A folder with MEMORY.md and memory/, and notes by path."""
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_bytes(b"# Memory\n\n## Home\n- one\n")
    return folder


def curator(folder: Path, *extra: Path, clock=time.time, trust=None, zone=None, journal=None, **options) -> Curator:
    roots = Roots.open(folder, extra)
    planner = Planner(roots, clock, LinkIndex(roots), trust=trust, zone=zone)
    return Curator(planner, journal or journal_of(folder.parent), **options)


def journal_of(folder: Path) -> Journal:
    return Journal(folder / "journal", folder / "state.sqlite")


def entries(curator: Curator, path: str | None = None, state: str = "done") -> list[JournalEntry]:
    """The changes that were made, or the drafts that were left, of one note or all, newest first."""
    every = reversed(curator.journal.entries())
    return [entry for entry in every if entry.state == state and path in (None, *entry.paths)]


def put(path: str, before: bytes | None, after: bytes | None, kind: str = "edit") -> Change:
    return Change(kind, f"{kind} {path}", (FileChange(path, before, after),))


def hidden(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".memory-tui-*"))


AGENT = """
import os, sys, time
path, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
for number in range(count):
    with open(path, "ab", buffering=0) as file:
        file.write(b"- agent %d\\n" % number)
    if number == 0:
        print("started", flush=True)
    if pause:
        time.sleep(pause)
"""


def agent(path: Path, count: int, pause: float = 0.0) -> subprocess.Popen[str]:
    """A process that appends `count` lines to `path`, each in an opening of its own; it has begun when this returns."""
    words = [sys.executable, "-c", AGENT, str(path), str(count), str(pause)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    return process


def git(folder: Path, *words: str) -> str:
    """Run git in a folder as somebody; returns what it prints."""
    me = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *me, *words], cwd=folder, check=True, capture_output=True, text=True).stdout
