"""What the inbox examines. That is notes on disk, and what recalls returned."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator

from memory_tui import profiles
from memory_tui.errors import Unreadable
from memory_tui.hosts import claude_code
from memory_tui.inbox.checks import InboxInputs
from memory_tui.inbox.entries import DatedNote
from memory_tui.notes import budget
from memory_tui.notes.curator import Curator
from memory_tui.notes.history import lost_notes
from memory_tui.openclaw.trust import TrustReport
from memory_tui.plan import Plan
from memory_tui.workspace import chunking_2026_9, notes
from memory_tui.workspace.days import date_of, span
from memory_tui.workspace.roots import ROOT_NOTES, Roots, scan


def view(
    plan: Plan,
    now: float,
    trust: TrustReport | None,
    curator: Curator | None = None,
    recalled: frozenset[str] | None = None,
    cleared: frozenset[tuple[str, str]] = frozenset(),
) -> InboxInputs:
    """Return everything that suggestions are made of, at `now` (epoch seconds); reads every note."""
    files = trust.files if trust is not None else ()
    workspace = os.path.realpath(plan.roots.workspace)
    folders = tuple(os.path.realpath(folder) + os.sep for folder in (workspace, *plan.roots.extra))

    def exists(path: str) -> bool:
        real = os.path.normpath(os.path.join(workspace, path))  # noqa: PTH118 - names may hold undecodable bytes
        return real.startswith(folders) and os.path.lexists(real)

    notes, claude = tuple(notes_of(plan.roots)), claude_code.folders(plan.roots)
    return InboxInputs(
        notes,
        dt.datetime.fromtimestamp(now, dt.UTC).astimezone(plan.config.time_zone).date(),
        exists,
        _over(plan, notes),
        recalled,
        {file.path: file.words for file in files if file.state in ("untrusted", "edited")},
        frozenset(note.path for note in notes if claude_code.in_folders(note.path, claude)),
        claude_code.unlisted({note.path: note.text for note in notes}, claude) if claude else {},
        trust is not None or profiles.get(plan.settings.word("profile")).chunking == chunking_2026_9.VERSION,
        # None where the journal cannot be read, which the list of changes says.
        lost_notes(curator.journal, curator.read, [(note.path, note.text) for note in notes]) if curator else (),
        cleared,
    )


def host_of(plan: Plan, path: str) -> budget.HostLimit:
    """Return who reads a curated note into its sessions: Claude Code its own, OpenClaw any other."""
    if claude_code.is_auto_memory(plan.roots.workspace / path):
        return budget.CLAUDE_CODE
    return budget.hosts(plan.config, plan.roots.workspace)[0]


def _over(plan: Plan, notes: tuple[DatedNote, ...]) -> dict[str, tuple[int, int]]:
    """Return the lines of curated notes that no session reads."""
    cuts = {}
    for note in notes:
        if note.path.rpartition("/")[2] not in ROOT_NOTES:
            continue
        host = host_of(plan, note.path)
        cut = budget.measure(note.text.encode("utf-8", "replace"), host).cut
        if cut is not None and host.limit:
            cuts[note.path] = cut.line + (cut.column > 1), cut.until_line - 1 if cut.until_line else 0
    return cuts


def notes_of(roots: Roots) -> Iterator[DatedNote]:
    """Yield every note that can be read."""
    for note in scan(roots).notes:
        if note.source != "memory":
            continue
        try:
            data, changed = notes.snapshot(note)
        except Unreadable:
            # The list of files says so; there is nothing to suggest about what nobody can read.
            continue
        read = notes.of_bytes(note.path, data, changed)
        day = span(dated)[0] if (dated := date_of(read.path, read.text)) else None
        yield DatedNote(read.path, read.text, day, read.replaced, bool(notes.utf16_of(data)))
