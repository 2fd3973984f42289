"""Undo and redo: which changes of this program can be taken back or made again, and what that does to the notes."""

from __future__ import annotations

from memory_tui.errors import EditRefused
from memory_tui.notes.changes import Change
from memory_tui.notes.journal import Journal, JournalEntry


def step(journal: Journal, kind: str, number: int | None = None) -> Change:
    """Return what "undo" or "redo" does of change `number`, or of the next one. Raises EditRefused."""
    entries = journal.entries()
    able = stack(entries, kind)
    target = next((entry for entry in able if number in (None, entry.id)), None)
    if target is None:
        verb = "undone" if kind == "undo" else "redone"
        what = f"Nothing is left to {kind}." if number is None else _why_not(entries, number, kind)
        there = f"These can be {verb}: {', '.join(str(entry.id) for entry in able[:8])}." if able else ""
        raise EditRefused(what, there or "Run memory-tui history to list the changes.")
    last = [
        entry
        for entry in entries
        if entry.state == "done"
        and (entry.undoes == target.id if kind == "redo" else target.id in (entry.id, entry.redoes))
    ][-1]
    files = tuple(file.reverse() for file in reversed(journal.change_of(last).files))
    return Change(kind, f"{kind.capitalize()}: {target.title}", files, of=target.id)


def stack(entries: tuple[JournalEntry, ...], kind: str) -> tuple[JournalEntry, ...]:
    """Return what can be undone or redone, the next one first; a new change ends what can be redone."""
    by_id = {entry.id: entry for entry in entries}
    undo: list[JournalEntry] = []
    redo: list[JournalEntry] = []
    for entry in entries:
        if entry.state != "done" or entry.kind == "trust":
            # Changes of trust wrote OpenClaw's ledger, which is only read now.
            continue
        target = by_id.get(entry.undoes or entry.redoes)
        if entry.undoes and target in undo:
            undo.remove(target)
            redo.append(target)
        elif entry.redoes and target in redo:
            redo.remove(target)
            undo.append(target)
        elif not entry.undoes and not entry.redoes:
            undo.append(entry)
            redo.clear()
    return tuple(reversed(undo if kind == "undo" else redo))


def _why_not(entries: tuple[JournalEntry, ...], number: int, kind: str) -> str:
    """Return why change `number` is not among those that can be undone or redone, as a sentence."""
    entry = next((entry for entry in entries if entry.id == number), None)
    if entry is None:
        return f"There is no change {number}."
    if of := entry.undoes or entry.redoes:
        return f"Change {number} is {'an undo' if entry.undoes else 'a redo'} of change {of}: name that one."
    if entry.state != "done" or entry.kind == "trust":
        return f"Change {number} wrote no note."
    return f"Change {number} is {'undone already' if kind == 'undo' else 'not undone, or others came after it'}."
