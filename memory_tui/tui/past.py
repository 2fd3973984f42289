"""What is known of how notes came to be: the journal's changes and drafts, and git's commits; for worker threads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tui.curate.history import Commit, History
from memory_tui.errors import EditRefused

if TYPE_CHECKING:
    from memory_tui.curate.diff import DiffLine
    from memory_tui.curate.journal import Entry
    from memory_tui.engine import Engine


@dataclass(frozen=True, slots=True)
class Past:
    """The changes and commits of a note, newest first, and which changes can be taken back or made again.

    `trouble` is what git said where it could not be asked; `repository` whether the workspace is in one.
    """

    entries: tuple[Entry | Commit, ...] = ()
    undoable: frozenset[int] = frozenset()
    redoable: frozenset[int] = frozenset()
    repository: bool = False
    uncommitted: bool = False
    trouble: str = ""


def past(engine: Engine, path: str | None) -> Past:
    """What is known of `path`, of every note without one."""
    curator = engine.curator
    drafts = [entry for entry in curator.drafts() if path is None or path in entry.paths]
    commits, repository, uncommitted, trouble = _commits(engine, path)
    every: list[Entry | Commit] = [*curator.history(path), *drafts, *commits]
    return Past(
        tuple(sorted(every, key=lambda entry: -entry.at)),
        frozenset(entry.id for entry in curator.undoable()),
        frozenset(entry.id for entry in curator.redoable()),
        repository,
        uncommitted,
        trouble,
    )


def _commits(engine: Engine, path: str | None) -> tuple[Sequence[Commit], bool, bool, str]:
    git = History(engine.workspace)
    if path is None or git.top() is None:
        return (), False, False, ""
    try:
        commits = git.log(path)
        return commits, True, not commits or git.uncommitted(path), ""
    except EditRefused as error:
        return (), True, False, error.message


def difference(engine: Engine, entry: Entry | Commit, path: str | None) -> Sequence[DiffLine]:
    """What a change or a commit did, below what the journal says of it. Raises EditRefused when a text is gone."""
    from memory_tui.curate import diff
    from memory_tui.curate.diff import DiffLine

    if isinstance(entry, Commit):
        return tuple(_parsed(History(engine.workspace).diff(path or "", entry.hash)))
    said = [DiffLine("hunk", f"{entry.reason[0].upper()}{entry.reason[1:]}.")] if entry.reason else []
    return *said, *diff.lines(engine.curator.change_of(entry))


def _parsed(text: str) -> Iterator[DiffLine]:
    """git's unified diff as lines; its own head of names and modes is left out."""
    from memory_tui.curate.diff import DiffLine

    old = new = 0
    inside = False
    for line in text.split("\n"):
        if hunk := re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", line):
            old, new, inside = int(hunk[1]), int(hunk[2]), True
            yield DiffLine("hunk", line)
        elif not inside:
            if line.startswith(("--- ", "+++ ")):
                yield DiffLine("file", line)
        elif line.startswith("diff --git "):
            inside = False
        elif line[:1] == "-":
            yield DiffLine("gone", line[1:], old)
            old += 1
        elif line[:1] == "+":
            yield DiffLine("new", line[1:], 0, new)
            new += 1
        elif line[:1] == " ":
            yield DiffLine("same", line[1:], old, new)
            old, new = old + 1, new + 1


def commit(engine: Engine, path: str, message: str) -> str:
    """Commit this note and nothing else; what was done, in words. Raises EditRefused."""
    made = History(engine.workspace).commit([path], message)
    return f"Committed {path} as {made.hash[:10]}."
