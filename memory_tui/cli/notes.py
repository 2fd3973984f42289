"""Commands about notes: what changes them, shown first; what became of them, and back again; what needs a decision."""

from __future__ import annotations

import argparse
import datetime as dt
import difflib
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import PurePath
from typing import Any

from msgspec import to_builtins

from memory_tui.cli.context import agreed, curator_of, opened, settled
from memory_tui.cli.output import say, show, waiting
from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused, PathRefused, QueryError, SettingError
from memory_tui.explain import trace_json
from memory_tui.formatting import minute, plural, second
from memory_tui.inbox import checks
from memory_tui.inbox.entries import Findings, Group, Suggestion
from memory_tui.notes import authors
from memory_tui.notes import history as histories
from memory_tui.notes.changes import Change, diff_lines, diff_text
from memory_tui.notes.edit import AppliedChange, Curator
from memory_tui.notes.history import OWN, SOMEBODY
from memory_tui.notes.journal import OTHERS, Edit, JournalEntry
from memory_tui.search.corpus import DAY_SECONDS
from memory_tui.workspace.roots import MEMORY, NoteMissing, destination, named_lines, scan


def remember(args: argparse.Namespace) -> int:
    """Write a line into today's log."""
    notes = curator_of(args)
    text = sys.stdin.read() if args.text == "-" else args.text
    if args.supersedes is None:
        return make(notes, notes.plan.remember(text), args)
    path, line, last = named_lines(args.supersedes)
    if line is None or last not in (None, line):
        raise QueryError(f"{args.supersedes!r} names no single line.", "Name one, for instance MEMORY.md:12.")
    return make(notes, notes.plan.supersede(text, notes.plan.spot(path, line)), args)


def promote(args: argparse.Namespace) -> int:
    """Copy lines of a log to MEMORY.md."""
    path, first, last = named_lines(args.place)
    if first is None:
        raise QueryError(f"{args.place!r} names no lines.", "For instance memory/2026-01-12.md:12 or :12-14.")
    notes = curator_of(args)
    spot = notes.plan.spot(path, first, last)
    return make(notes, notes.plan.promote(spot, to=args.to, move=args.move), args)


def archive(args: argparse.Namespace) -> int:
    """Move old logs to the archive."""
    notes = curator_of(args)
    return make(notes, notes.plan.archive(args.older_than), args)


def undo(args: argparse.Namespace) -> int:
    """Undo a change, or redo an undone one."""
    notes, kind = curator_of(args), "redo" if args.redo else "undo"
    change = notes.preview(kind, args.id)
    may = _may(notes, change, args)
    return _finish(
        change, (notes.undo if kind == "undo" else notes.redo)(args.id, merging=args.merge) if may else None, args
    )


# --- a change ------------------------------------------------------------------------------------------------------


def make(notes: Curator, change: Change, args: argparse.Namespace) -> int:
    """Show `change`, ask, and make it. Raises EditRefused."""
    return _finish(change, notes.apply(change) if _may(notes, change, args) else None, args)


def _may(notes: Curator, change: Change, args: argparse.Namespace) -> bool:
    """Show the change; return whether it is to be made. What is read-only refuses by itself."""
    lines = [change.title, *change.notes, *diff_text(change).splitlines()]
    may = agreed(args, lines, "" if notes.read_only else "Write this?") or (bool(notes.read_only) and not args.dry_run)
    if not may and not args.dry_run:
        say("Nothing was written, because nobody agreed. A script adds --yes, or --dry-run to see the difference.")
    return may


def _finish(change: Change, done: AppliedChange | None, args: argparse.Namespace) -> int:
    """Show a change, or what was `done` of it with the way back; without a yes the exit code is 2."""
    rows = change if done is None else done.change
    data = {
        "kind": rows.kind,
        "title": rows.title,
        "paths": list(rows.paths),
        "notes": list(change.notes),
        "diff": diff_text(rows),
        "made": done is not None,
        "id": done.entry.id if done else 0,
        "merged": list(done.merged) if done else [],
    }
    if done is None:
        return show(args, data, (), 0 if args.dry_run else 2)
    merged = f" Lines that others wrote meanwhile are kept: {', '.join(done.merged)}." if done.merged else ""
    again = {"undo": "memory-tui undo --redo redoes it.", "redo": "memory-tui undo undoes it."}
    way = again.get(change.kind, f"memory-tui undo {done.entry.id} undoes it.")
    return show(args, data, [f"Written as change {done.entry.id}; {way}{merged}"])


# --- the inbox -----------------------------------------------------------------------------------------------------


def inbox(args: argparse.Namespace) -> int:
    """List the open findings by their cause, what was kept silent, or carry out `--do`."""
    if args.do and not args.id and (args.do == "reopen" or not args.kind):
        raise SettingError(
            "--do needs --id, or --kind for all of a kind.", "For instance: memory-tui inbox --id 3f9a12 --do merge."
        )
    kind = (args.kind or "").strip().lower().replace("-", " ").replace("_", " ")
    if args.kind is not None and kind not in (*checks.BY_KIND, *checks.GONE):
        kinds = ", ".join(checks.BY_KIND)
        raise SettingError(f"There is no kind {args.kind!r} of suggestions.", f"Choose one of {kinds}.")
    with opened(args) as engine:
        engine.index.catch_up()
        if args.do == "reopen":
            decisions = engine.inbox.decisions
            number = _only(decisions.decided(), args.id, "suggestion that was kept or put off")
            if not args.dry_run:
                decisions.reopen(number)
            line = f"{number} {'would be' if args.dry_run else 'is'} open again."
            return show(args, {"id": number, "done": "" if args.dry_run else "reopen"}, [line])
        with waiting("Examining the notes"):
            findings = engine.inbox.examine(kinds=checks.BY_KIND if args.id else (kind,))
        if args.quiet:
            silent = {reason: [_data(row) for row in rows] for reason, rows in findings.silent.items()}
            return show(args, silent, _silent(findings))
        groups = _chosen(findings, kind, args.id)
        if args.do:
            return _do(args, engine, [row for group in groups for row in group.suggestions])
        data = [_group_data(group) for group in groups] if args.json else []
        return show(args, data, _listed(groups, findings, kind, every=bool(args.id or kind)))


def _chosen(findings: Findings, kind: str, start: str | None) -> list[Group]:
    """Return the groups of a kind, or what an id names."""
    if start:
        singles = [group for row in findings.suggestions for group in checks.grouped([row])]
        named = {group.id: group for group in (*singles, *findings.groups)}
        return [named[_only(named, start, "open suggestion")]]
    return [group for group in findings.groups if kind in ("", group.kind)]


def _spelled(action: str) -> str:
    """Return the word of an action on a command line."""
    return action.replace(" ", "-")


def _only(names: Iterable[str], start: str, what: str) -> str:
    """Return the one of `names` that begins with `start`. Raises EditRefused."""
    fitting = [name for name in names if name.startswith(start)]
    if len(fitting) != 1:
        how_many = "More than one" if fitting else "No"
        raise EditRefused(f"{how_many} {what} has the id {start!r}.", "Run memory-tui inbox to list them.")
    return fitting[0]


def _data(each: Suggestion) -> dict[str, object]:
    finding = {**trace_json.tagged(each.finding), "sentence": each.reason}
    return {"id": each.id, **to_builtins(each), "reason": each.reason, "finding": finding}


def _group_data(group: Group) -> dict[str, object]:
    """Return a group as its first finding, with cause and count of all, and where the others are."""
    cause = {**trace_json.tagged(group.cause), "sentence": group.cause.message}
    rows = [_data(row) for row in group.suggestions]
    members = {"count": group.count, "proposal": group.proposal, "actions": group.actions, "suggestions": rows}
    return {**rows[0], "id": group.id, "reason": group.cause.message, "cause": cause, **members}


_SHOWN = 10


def _listed(groups: Sequence[Group], findings: Findings, kind: str, *, every: bool) -> list[str]:
    """Return the groups with their first passages, then how many there are, what is off and what is kept silent."""
    lines = []
    for group in groups:
        lines += [f"{group.id}  {checks.BY_KIND[group.kind].title}: {group.cause.message}"]
        for row in group.suggestions if every else group.suggestions[:_SHOWN]:
            lines.append(f"    {row.place}" + (f"  {row.reason}" if len(group.suggestions) > 1 else ""))
            lines += [f"    | {line}" for line in row.place.text.split("\n")[:3] if line.strip()]
            lines += [f"    > {row.other}  {row.other.text.partition(chr(10))[0]}" for _ in (1,) if row.other]
        if not every and len(group.suggestions) > _SHOWN:
            lines.append(f"    and {len(group.suggestions) - _SHOWN} more: memory-tui inbox --id {group.id}")
        lines.append(f"    {', '.join(map(_spelled, group.actions))}")
    of_kind = f" of the kind {kind}" if kind else ""
    lines.append(f"Open suggestions{of_kind}: {len(groups)}." if groups else f"Nothing{of_kind} needs attention.")
    off = {check.kind: check.off for check in checks.CHECKS if check.off and not kind}
    lines += [f"Off: {name}, because {why}; --kind {_spelled(name)} lists them." for name, why in off.items()]
    silent = sum(findings.quiet.values())
    return [*lines, f"Kept silent: {silent:,}; memory-tui inbox --quiet."] if silent and not kind else lines


def _silent(findings: Findings) -> list[str]:
    lines = []
    for reason, rows in findings.silent.items():
        lines += [f"{reason}: {len(rows)}", *(f"    {row.place}  {row.place.text}" for row in rows)]
    return lines or ["Nothing was kept silent."]


def _do(args: argparse.Namespace, engine: Engine, chosen: Sequence[Suggestion]) -> int:
    """Carry out an action on the chosen suggestions, which are of one kind."""
    if not chosen:
        raise EditRefused(f"No open suggestion is of the kind {args.kind}.", "Nothing was changed.")
    first, decisions, curator = chosen[0], engine.inbox.decisions, engine.notes.curator
    action = next((action for action in first.actions if _spelled(action) == args.do), None)
    if action is None:
        offered = ", ".join(map(_spelled, first.actions))
        raise EditRefused(f"{args.do} is no action of this suggestion.", f"There is {offered}.")
    ids = {"ids": [each.id for each in chosen]} if len(chosen) > 1 else {}
    data = {"id": first.id, "done": "" if args.dry_run else args.do, **ids}
    many = f" ({len(chosen)} suggestions)" if len(chosen) > 1 else ""
    back = f"memory-tui inbox --id {first.id if len(chosen) == 1 else 'ID'} --do reopen undoes it."
    if action not in ("keep", "none", "snooze"):
        change = checks.changes(chosen, action, curator)
        lines = [change.title, *change.notes, *map(str, diff_lines(change))]
        if agreed(args, lines, "Change these notes?"):
            number = curator.apply(change).entry.id
            report = f"Written as change {number}; memory-tui undo {number} undoes it."
        elif args.dry_run:
            return show(args, data | {"title": change.title, "diff": lines[1 + len(change.notes) :]})
        else:
            raise EditRefused("Nothing was changed.", "Use --yes to change notes without a question.")
    elif args.dry_run:
        report = f"No note would change: {args.do} only decides about {plural(len(chosen), 'suggestion')}."
    else:
        until = engine.plan.clock() + args.days * DAY_SECONDS
        none = f"Taken for none{many}: the inbox, masks and providers leave it alone, and what is like it"
        deeds: dict[str, tuple[Callable[[Suggestion], None], str]] = {
            "keep": (decisions.keep, f"Kept{many}"),
            "none": (decisions.none, none),
            "snooze": (partial(decisions.snooze, until=until), f"Put off for {args.days:g} days{many}"),
        }
        decide, words = deeds[action]
        for each in chosen:
            decide(each)
        report = f"{words}; {back}"
    return show(args, data, [report])


# --- what became of the notes ---------------------------------------------------------------------------------------

_PAGE = 500
_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@contextmanager
def _recorded(args: argparse.Namespace) -> Iterator[Curator]:
    """Yield the curator once it is recorded what became of the notes, and by whom."""
    with opened(args) as engine:
        notes = settled(engine.notes.curator, args, looks=True)
        engine.notes.record()
        for problem in engine.notes.attribute():
            say(problem)
        yield notes


def history(args: argparse.Namespace) -> int:
    """List what became of the notes, or show one change."""
    with _recorded(args) as notes:
        undoable = {entry.id for entry in notes.stack("undo")}
        if args.show is not None:
            entry = _entry(notes, args.show)
            text = diff_text(notes.journal.change_of(entry))
            by = [authors.sentence(entry.author)] if entry.kind == OTHERS else []
            lines = [_line(entry, undoable), *by, *text.splitlines()]
            return show(args, {**_row(entry, undoable), "diff": text}, lines)
        filtered = args.by is not None or args.deleted
        # What is joined may be many.
        most = -1 if filtered else max(_PAGE, 5 * args.newest)
        path = args.path and _note(notes, args.path)
        entries = histories.history(notes.journal, path, most=most, joined=not args.json)
        names = {histories.who(entry) for entry in entries}
        if args.by not in {None, SOMEBODY, OWN, *authors.HOSTS, *names}:
            those = f"Those who did: {', '.join(sorted(names))}." if names else "Nobody changed one yet."
            raise SettingError(f"Nobody called {args.by!r} changed a note.", those)
        chosen = [entry for entry in entries if _fits(entry, args)]
        none = f"{path} was not changed yet." if path else "No note was changed yet."
        data = {"folder": str(notes.journal.folder), "changes": [_row(row, undoable) for row in chosen[: args.newest]]}
        lines = [_line(entry, undoable) for entry in chosen[: args.newest]]
        if len(chosen) > args.newest:
            lines.append("There are older changes; -n lists more.")
        others = ((entry.author, len(entry.files)) for entry in chosen if entry.kind == OTHERS)
        lines += filter(None, [authors.unknown_share(others)] if args.by is None else [])
        return show(args, data, lines or ["No change fits." if entries else none])


def since(args: argparse.Namespace) -> int:
    """List what others changed since a person last looked, and remember that they looked; or since a time."""
    at = None if args.when is None else _time(args.when, "since takes a time")
    with _recorded(args) as notes:
        journal, last = notes.journal, ""
        if at is None:
            edits, then = journal.unviewed(), "you last looked"
            if not notes.read_only:
                journal.view()
                last = "The next since starts from now; memory-tui since 2h looks back." if edits else ""
        else:
            edits = tuple(edit for edit in journal.edits() if edit.at >= at and edit.kind == OTHERS)
            then = minute(at)
            last = f"The record begins at {minute(start)}." if at < (start := journal.numbers().start or at) else ""
        entries = histories.by_others(edits, joined=not args.json)
        words = histories.news(edits)
        lines = [_line(entry, set()) for entry in entries]
        sentence = f"Since {then}: {words}." if words else f"Nobody else changed a note since {then}."
        return show(args, [_row(entry, set()) for entry in entries], [*lines, sentence, *filter(None, [last])])


def _entry(notes: Curator, number: int) -> JournalEntry:
    """Return a change of the history. Raises EditRefused."""
    listed = histories.history(notes.journal, until=number + 1, most=1, joined=False)
    entry = next((entry for entry in listed if entry.id == number), None)
    if entry is None:
        raise EditRefused(f"There is no change {number}.", "Run memory-tui history to list them.")
    return entry


def _note(notes: Curator, typed: str) -> str:
    """Return the stored path of a note that is there or in the record; its name alone may tell it.

    Raises PathRefused, with what could be meant.
    """
    refusal: PathRefused = NoteMissing(f"There is no note {typed}.", "memory-tui history lists those that changed.")
    try:
        stored = destination(notes.roots, typed)[2]
        if notes.journal.edits(stored, most=1) or notes.read(stored) is not None:
            return stored
    except PathRefused as error:
        refusal = error
    paths = {note.path for note in scan(notes.roots).notes if note.source == MEMORY}
    paths |= {edit.path for edit in notes.journal.edits()}
    name = typed.casefold().removesuffix(".md")
    alike = [path for path in sorted(paths) if f"/{path.casefold().removesuffix('.md')}".endswith(f"/{name}")]
    if len(alike) == 1:
        return alike[0]
    near = {PurePath(path).stem: path for path in paths}
    meant = alike[:3] or [near[word] for word in difflib.get_close_matches(PurePath(typed).stem, near, cutoff=0.7)]
    raise NoteMissing(f"There is no note {typed}.", f"Did you mean {' or '.join(meant)}?") if meant else refusal


def blame(args: argparse.Namespace) -> int:
    """Say of each line of a note when and by whom it came."""
    path, first, last = named_lines(args.place)
    with _recorded(args) as notes:
        path = _note(notes, path)
        data = notes.read(path)
        if data is None:
            raise NoteMissing(f"There is no note {path}.", "memory-tui history lists what became of it.")
        edits = histories.blame(notes.journal, path, data)
        texts = data.decode("utf-8", "replace").split("\n")
        numbers = range(first or 1, (last or first or len(edits)) + 1)
        if first is not None and not 1 <= first <= numbers[-1] <= len(edits):
            raise QueryError(f"{path} has {plural(len(edits), 'line')}.", f"memory-tui blame {path} shows them.")
        rows = [_blamed(number, texts[number - 1].rstrip("\r"), edits[number - 1]) for number in numbers]
        width = max((len(row["by"]) for row in rows), default=0)
        lines = [
            f"{second(row['at']) if row['at'] else ' ' * 19}  {row['by']:<{width}}  {row['line']:>4}  {row['text']}"
            for row in rows
        ]
        return show(args, rows, lines)


def _blamed(number: int, text: str, edit: Edit | None) -> dict[str, Any]:
    if edit is None:
        return {"line": number, "text": text, "id": 0, "at": None, "by": "before the record", "session": ""}
    session = edit.author.session if edit.author is not None else ""
    return {"line": number, "text": text, "id": edit.id, "at": edit.at, "by": histories.who(edit), "session": session}


def restore_notes(args: argparse.Namespace) -> int:
    """Bring one note, or all, back to what they were; without a time list the texts that a note had."""
    if args.all == (args.path is not None):
        raise SettingError("Which note is to be restored?", "Name one, or say --all --before TIME.")
    with _recorded(args) as notes:
        args.path = args.path and _note(notes, args.path)
        if (when := args.before) is None:
            return _versions(args, notes)
        is_number = when.isascii() and when.isdigit()
        point: dict[str, Any] = {"change": _entry(notes, int(when)).id} if is_number else {"at": _time(when)}
        return make(notes, histories.restore_before(notes, args.path, **point), args)


def _versions(args: argparse.Namespace, notes: Curator) -> int:
    """List the texts that a note had."""
    if args.path is None:
        raise SettingError("--all needs a time.", "memory-tui restore --all --before 2h shows what it would change.")
    versions = histories.versions(notes.journal, args.path, notes.read(args.path))
    command = f"memory-tui restore {args.path} --before"
    if args.yes:
        numbers = ", ".join(str(edit.id) for edit in versions)
        next_step = f"Choose one of {numbers}: {command}." if versions else "No other text is kept."
        raise SettingError(f"Which text of {args.path} is to be brought back?", next_step)
    data = [{"ref": f"{edit.id}", "at": edit.at, "title": f"before: {histories.title_of(edit)}"} for edit in versions]
    lines = [f"{row['ref']:<4}  {minute(edit.at)}  {row['title']}" for row, edit in zip(data, versions, strict=True)]
    none = f"The record has no other text of {args.path}."
    return show(args, data, [*lines, f"{command} N shows what one would change." if versions else none])


def _time(words: str, who: str = "--before takes a time or a change") -> float:
    """Return a time that a person writes, by the clock of this machine. Raises SettingError, which `who` begins.

    Where it ends with "a change", the next step names the number of one as well.
    """
    if span := _SPAN.fullmatch(words):
        return time.time() - int(span[1]) * _SECONDS[span[2]]
    try:
        return dt.datetime.fromisoformat(words).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        number = ", or a number of the history" * who.endswith("change")
        raise SettingError(f"{who}, not {words!r}.", f"For instance 2026-11-20T12:30, 2h, 3d{number}.") from None


# --- rows ----------------------------------------------------------------------------------------------------------


def _fits(entry: JournalEntry, args: argparse.Namespace) -> bool:
    gone = any(file.after is None for file in entry.files)
    return args.by in (None, histories.who(entry)) and (not args.deleted or gone)


def _row(entry: JournalEntry, undoable: set[int]) -> dict[str, Any]:
    names = ("id", "at", "state", "kind", "title", "undoes", "redoes", "reason")
    row: dict[str, Any] = {name: getattr(entry, name) for name in names}
    author = to_builtins(entry.author) if entry.author is not None else None
    paths = list(dict.fromkeys(entry.paths))
    by = "" if (name := histories.who(entry)) == SOMEBODY else name
    return row | {"paths": paths, "undoable": entry.id in undoable, "by": by, "author": author}


_STATES = {"intent": " (cut off)", "refused": " (not made)", "draft": " (draft that was not written)"}


def _line(entry: JournalEntry, undoable: set[int]) -> str:
    state = _STATES.get(entry.state, "")
    mine = entry.kind != OTHERS
    if entry.state == "done" and mine and not (entry.undoes or entry.redoes or entry.id in undoable):
        state = " (undone)"
    reason = entry.reason and f": {entry.reason}"
    return f"{entry.id:>4}  {second(entry.at)}  {entry.title}{state}{reason}"
