"""Commands that change notes: each change is shown first; `undo` reverses it."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from typing import Any

from msgspec import to_builtins

from memory_tui import plan
from memory_tui.cli.context import confirmed, options
from memory_tui.cli.output import print_lines, say, show
from memory_tui.errors import EditRefused, QueryError, SettingError
from memory_tui.notes import diff
from memory_tui.notes.annotate import annotate as annotated
from memory_tui.notes.annotate import described, entries
from memory_tui.notes.changes import Change
from memory_tui.notes.curator import AppliedChange, Curator, curator
from memory_tui.notes.journal import LOST, JournalEntry
from memory_tui.workspace.annotations import annotations_of
from memory_tui.workspace.roots import NoteMissing, named_lines


def curator_of(args: argparse.Namespace, *, looks: bool = False) -> Curator:
    """Return the curator, after what an earlier process left half done is settled.

    Who only `looks` is shown what is there also where that cannot be settled.
    """
    notes = curator(plan.plan(options(args)))
    try:
        settled = notes.recover()
    except EditRefused:
        if not looks:
            raise
        settled = ()
    if not args.json:
        print_lines(f"{entry.title}: {entry.reason}." for entry in settled)
    return notes


def remember(args: argparse.Namespace) -> int:
    """Write a line into today's log."""
    notes = curator_of(args)
    text = sys.stdin.read() if args.text == "-" else args.text
    return _make(notes, notes.plan.remember(text), args)


def promote(args: argparse.Namespace) -> int:
    """Copy lines of a log to MEMORY.md."""
    path, first, last = named_lines(args.place)
    if first is None:
        raise QueryError(f"{args.place!r} names no lines.", "For instance memory/2026-01-12.md:12 or :12-14.")
    notes = curator_of(args)
    spot = notes.plan.spot(path, first, last)
    return _make(notes, notes.plan.promote(spot, to=args.to, move=args.move), args)


def archive(args: argparse.Namespace) -> int:
    """Move old logs to the archive."""
    notes = curator_of(args)
    return _make(notes, notes.plan.archive(args.older_than), args)


def annotate(args: argparse.Namespace) -> int:
    """List the entries of a note with their annotations, or set those of one entry."""
    notes = curator_of(args)
    chosen = {name: getattr(args, name) for name in ("importance", "triggers", "project")}
    chosen = {name: setting for name, setting in chosen.items() if setting is not None}
    named, line, _ = named_lines(args.place or "")
    if bool(chosen) != (line is not None):
        raise QueryError("An entry and its annotations belong together.", "For instance: MEMORY.md:12 --importance 8.")
    path = named or notes.plan.memory()
    data = notes.read(path)
    listed = entries(data, path)
    if line is None:
        rows = [f"{path}:{entry.first}  {entry.words[:60]}  ({described(entry.said)})" for entry in listed]
        none = f"{path} has no entries: lines of MEMORY.md or USER.md that begin with “- ”."
        return show(args, [to_builtins(entry) | {"said": entry.said._asdict()} for entry in listed], rows or [none])
    entry = next((entry for entry in listed if entry.first <= line <= entry.last), None)
    if entry is None:
        raise EditRefused(f"{args.place} is in no entry.", f"memory-tui annotate {path} lists the entries.")
    fields = entry.said._asdict() | chosen
    now = annotations_of(fields["importance"], fields["triggers"], fields["project"])
    return _make(notes, annotated(notes.plan, path, data, {entry.first: now}), args)


def undo(args: argparse.Namespace) -> int:
    """Undo a change, or redo an undone one."""
    notes = curator_of(args)
    change = notes.planned_step("redo" if args.redo else "undo", args.id)
    if not _agreed(change, args, notes.read_only):
        return _finish(change, None, args)
    run = notes.redo if args.redo else notes.undo
    return _finish(change, run(args.id, merging=args.merge), args)


# --- a change ------------------------------------------------------------------------------------------------------


def _make(notes: Curator, change: Change, args: argparse.Namespace) -> int:
    """Show `change`, ask, and make it. Raises EditRefused."""
    if not _agreed(change, args, notes.read_only):
        return _finish(change, None, args)
    return _finish(change, notes.apply(change), args)


def _agreed(change: Change, args: argparse.Namespace, read_only: str = "") -> bool:
    """Show the change; return whether it is to be made."""
    if not args.json:
        print_lines([change.title, *change.notes, *diff.text(change).splitlines()])
    if args.dry_run:
        return False
    if read_only or confirmed("Write this?", args):
        return True
    say("Nothing was written, because nobody agreed. A script adds --yes, or --dry-run to see the difference.")
    return False


def _finish(change: Change, done: AppliedChange | None, args: argparse.Namespace) -> int:
    rows = change if done is None else done.change
    data = {
        "kind": rows.kind,
        "title": rows.title,
        "paths": list(rows.paths),
        "notes": list(change.notes),
        "diff": diff.text(rows),
        "made": done is not None,
        "id": done.entry.id if done else 0,
        "merged": list(done.merged) if done else [],
        "trust": list(done.entry.trust) if done else [],
        "untold": done.untold if done else "",
    }
    lines = []
    if done is not None:
        merged = f" Lines that others wrote meanwhile are kept: {', '.join(done.merged)}." if done.merged else ""
        again = {"undo": "memory-tui undo --redo redoes it.", "redo": "memory-tui undo undoes it."}
        way = again.get(change.kind, f"memory-tui undo {done.entry.id} undoes it.")
        lines = [f"Written as change {done.entry.id}; {way}{merged}", *filter(None, [done.untold])]
    return show(args, data, lines, 0 if done is not None or args.dry_run else 2)


# --- the journal ---------------------------------------------------------------------------------------------------


def journal(args: argparse.Namespace) -> int:
    """List the changes, show one, or bring an earlier text of a note back."""
    if args.restore is not None:
        return _restore(args)
    notes = curator_of(args, looks=True)
    undoable = {entry.id for entry in notes.undoable()}
    entries_ = notes.journal.entries()
    if args.show is not None:
        entry = next((entry for entry in entries_ if entry.id == args.show), None)
        if entry is None:
            raise EditRefused(f"The journal has no change {args.show}.", "Run memory-tui journal to list them.")
        text = diff.text(notes.journal.change_of(entry))
        data = {**_row(entry, undoable), "diff": text}
        return show(args, data, [_line(entry, undoable), *text.splitlines()])
    rows = [entry for entry in reversed(entries_) if args.path is None or args.path in entry.paths]
    none = f"{args.path} was not changed with memory-tui." if args.path else "No note was changed yet."
    return show(
        args,
        {"folder": str(notes.journal.folder), "changes": [_row(entry, undoable) for entry in rows]},
        [_line(entry, undoable) for entry in rows] or [none],
    )


def _restore(args: argparse.Namespace) -> int:
    """List the texts that a note had, or bring one back."""
    # It needs numpy, which the other changes of notes do without.
    from memory_tui.notes import restore

    if args.path is None:
        raise SettingError("Which note is to be restored?", "memory-tui journal PATH --restore lists its texts.")
    notes = curator_of(args)
    if args.restore:
        change = restore.to_version(notes, args.path, args.restore, lost_lines=args.lost_lines)
        return _make(notes, change, args)
    now = notes.read(args.path)
    versions = restore.versions(notes.journal, notes.git, args.path, now)
    if now is None and not versions:
        raise NoteMissing(f"There is no note {args.path}, and no text of one is kept.", "Check its name.")
    if args.yes or args.lost_lines:
        refs = ", ".join(version.ref for version in versions)
        raise SettingError(
            f"--restore names no text of {args.path}.",
            f"Choose one of {refs}: memory-tui journal {args.path} --restore REF."
            if refs
            else "No other text is kept.",
        )
    width = max((len(version.ref) for version in versions), default=0)
    lines = [f"{each.ref:<{width}}  {_when(each.at, '%Y-%m-%d %H:%M')}  {each.title}" for each in versions]
    lines += (
        [f"memory-tui journal {args.path} --restore REF shows what one would change."]
        if versions
        else [f"Neither the journal nor git has another text of {args.path}."]
    )
    return show(args, [to_builtins(version) for version in versions], lines)


def _row(entry: JournalEntry, undoable: set[int]) -> dict[str, Any]:
    names = ("id", "at", "state", "kind", "title", "undoes", "redoes", "reason")
    row: dict[str, Any] = {name: getattr(entry, name) for name in names}
    return row | {"paths": list(dict.fromkeys(entry.paths)), "undoable": entry.id in undoable}


_STATES = {"intent": " (cut off)", "refused": " (not made)", "draft": " (draft that was not written)"}


def _line(entry: JournalEntry, undoable: set[int]) -> str:
    state = _STATES.get(entry.state, "")
    if entry.state == "done" and not (entry.undoes or entry.redoes or entry.kind == LOST or entry.id in undoable):
        state = " (undone)"
    reason = entry.reason and f": {entry.reason}"
    return f"{entry.id:>4}  {_when(entry.at, '%Y-%m-%d %H:%M:%S')}  {entry.title}{state}{reason}"


def _when(at: float, pattern: str) -> str:
    return dt.datetime.fromtimestamp(at).astimezone().strftime(pattern)
