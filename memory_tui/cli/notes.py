"""Commands about notes: what changes them, shown first; what became of them, and back again; what needs a decision."""

from __future__ import annotations

import argparse
import datetime as dt
import difflib
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
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
from memory_tui.inbox import Findings, Group, Suggestion, checks
from memory_tui.notes import authors
from memory_tui.notes import history as histories
from memory_tui.notes.changes import Change, diff_lines, diff_text
from memory_tui.notes.edit import AppliedChange, Curator
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
    notes = curator_of(args)
    change = notes.preview("redo" if args.redo else "undo", args.id)
    # The preview is what a person sees; the change itself is worked out again from what the notes hold then.
    if not _may(notes, change, args):
        return _finish(change, None, args)
    carry_out = notes.redo if args.redo else notes.undo
    return _finish(change, carry_out(args.id, merging=args.merge), args)


# --- a change ------------------------------------------------------------------------------------------------------


def make(notes: Curator, change: Change, args: argparse.Namespace) -> int:
    """Show `change`, ask, and make it. Raises EditRefused."""
    return _finish(change, notes.apply(change) if _may(notes, change, args) else None, args)


def _may(notes: Curator, change: Change, args: argparse.Namespace) -> bool:
    """Show the change, ask a person, and return whether it is to be made.

    Where the notes are read-only nobody is asked, and the answer is yes: making the change then raises why it cannot
    be made.
    """
    lines = [change.title, *change.notes, *diff_text(change).splitlines()]
    has_agreed = agreed(args, lines, "" if notes.read_only else "Write this?")
    may = not args.dry_run and (has_agreed or bool(notes.read_only))
    if not may and not args.dry_run:
        say("Nothing was written, because nobody agreed. A script adds --yes, or --dry-run to see the difference.")
    return may


def _finish(change: Change, applied: AppliedChange | None, args: argparse.Namespace) -> int:
    """Show what became of a change, and return the exit code: 2 where nobody agreed to it.

    `applied` is None where it was not made; else it is told with the way back.
    """
    final = applied.change if applied else change
    data: dict[str, Any] = {"kind": final.kind, "title": final.title}
    data |= {"paths": list(final.paths), "notes": list(change.notes), "diff": diff_text(final)}
    data |= {"made": applied is not None, "id": 0, "merged": []}
    if applied is None:
        return show(args, data, (), 0 if args.dry_run else 2)
    data |= {"id": applied.entry.id, "merged": list(applied.merged)}
    merged = f" Lines that others wrote meanwhile are kept: {', '.join(applied.merged)}." if applied.merged else ""
    ways_back = {"undo": "memory-tui undo --redo redoes it.", "redo": "memory-tui undo undoes it."}
    way_back = ways_back.get(change.kind, f"memory-tui undo {applied.entry.id} undoes it.")
    return show(args, data, [f"Written as change {applied.entry.id}; {way_back}{merged}"])


# --- the inbox -----------------------------------------------------------------------------------------------------


def inbox(args: argparse.Namespace) -> int:
    """List the open findings by their cause, what was kept silent, or carry out `--do`."""
    if args.do and not args.id and (args.do == "reopen" or not args.kind):
        step = "For instance: memory-tui inbox --id 3f9a12 --do merge."
        raise SettingError("--do needs --id, or --kind for all of a kind.", step)
    kind = (args.kind or "").strip().lower().replace("-", " ").replace("_", " ")
    if args.kind is not None and kind not in (*checks.BY_KIND, *checks.GONE):
        kinds = ", ".join(checks.BY_KIND)
        raise SettingError(f"There is no kind {args.kind!r} of suggestions.", f"Choose one of {kinds}.")
    with opened(args) as engine:
        engine.index.catch_up()
        if args.do == "reopen":
            decisions = engine.inbox.decisions
            id = _only(decisions.decided(), args.id, "suggestion that was kept or put off")
            if not args.dry_run:
                decisions.reopen(id)
            line = f"{id} {'would be' if args.dry_run else 'is'} open again."
            return show(args, {"id": id, "done": "" if args.dry_run else "reopen"}, [line])
        # Checks that are off run only where `kinds` names them, and an id may be of one of these.
        with waiting("Examining the notes"):
            findings = engine.inbox.examine(kinds=checks.BY_KIND if args.id else (kind,))
        if args.quiet:
            silent = {reason: [*map(_data, suggestions)] for reason, suggestions in findings.silent.items()}
            return show(args, silent, _silent(findings))
        groups = _chosen(findings, kind, args.id)
        if args.do:
            return _do(args, engine, [suggestion for group in groups for suggestion in group.suggestions])
        data = [_group_data(group) for group in groups] if args.json else []
        return show(args, data, _listed(groups, findings, kind, every=bool(args.id or kind)))


def _chosen(findings: Findings, kind: str, start: str | None) -> list[Group]:
    """Return the groups of a kind, or the group or single suggestion whose id begins with `start`."""
    if start:
        # Each suggestion as a group of its own; an id that a group has as well means the group.
        singles = [group for suggestion in findings.suggestions for group in checks.grouped([suggestion])]
        by_id = {group.id: group for group in (*singles, *findings.groups)}
        return [by_id[_only(by_id, start, "open suggestion")]]
    return [group for group in findings.groups if kind in ("", group.kind)]


def _spelled(action: str) -> str:
    """Return the word of an action on a command line."""
    return action.replace(" ", "-")


def _only(ids: Iterable[str], start: str, kind: str) -> str:
    """Return the only one of `ids` that begins with `start`. Raises EditRefused, which calls it by its `kind`."""
    fitting = [id for id in ids if id.startswith(start)]
    if len(fitting) != 1:
        how_many = "More than one" if fitting else "No"
        raise EditRefused(f"{how_many} {kind} has the id {start!r}.", "Run memory-tui inbox to list them.")
    return fitting[0]


def _data(suggestion: Suggestion) -> dict[str, object]:
    """Return a suggestion as JSON-ready data, with its finding as code, fields and sentence."""
    finding = {**trace_json.tagged(suggestion.finding), "sentence": suggestion.reason}
    return {"id": suggestion.id, **to_builtins(suggestion), "reason": suggestion.reason, "finding": finding}


def _group_data(group: Group) -> dict[str, object]:
    """Return a group as JSON-ready data: the members of its first suggestion, then what is true of all of them."""
    cause = {**trace_json.tagged(group.cause), "sentence": group.cause.message}
    rows = [_data(row) for row in group.suggestions]
    members = {"count": group.count, "proposal": group.proposal, "actions": group.actions, "suggestions": rows}
    return {**rows[0], "id": group.id, "reason": group.cause.message, "cause": cause, **members}


_SHOWN = 10


def _listed(groups: Sequence[Group], findings: Findings, kind: str, *, every: bool) -> list[str]:
    """Return lines for the groups, with their first passages, then how many there are, what is off and what is silent.

    With `every` all passages of a group are listed; with a `kind` only what is of it.
    """
    lines = []
    for group in groups:
        lines.append(f"{group.id}  {checks.BY_KIND[group.kind].title}: {group.cause.message}")
        for row in group.suggestions if every else group.suggestions[:_SHOWN]:
            lines.append(f"    {row.place}" + (f"  {row.reason}" if len(group.suggestions) > 1 else ""))
            lines += [f"    | {line}" for line in row.place.text.split("\n")[:3] if line.strip()]
            if row.other:
                first_line, *_ = row.other.text.split("\n")
                lines.append(f"    > {row.other}  {first_line}")
        if not every and len(group.suggestions) > _SHOWN:
            lines.append(f"    and {len(group.suggestions) - _SHOWN} more: memory-tui inbox --id {group.id}")
        lines.append(f"    {', '.join(map(_spelled, group.actions))}")
    of_kind = f" of the kind {kind}" if kind else ""
    lines.append(f"Open suggestions{of_kind}: {len(groups)}." if groups else f"Nothing{of_kind} needs attention.")
    if kind:
        return lines
    off = [check for check in checks.CHECKS if check.off]
    lines += [f"Off: {check.kind}, because {check.off}; --kind {_spelled(check.kind)} lists them." for check in off]
    silent = sum(findings.quiet.values())
    return [*lines, f"Kept silent: {silent:,}; memory-tui inbox --quiet."] if silent else lines


def _silent(findings: Findings) -> list[str]:
    """Return lines for the suggestions that nobody is shown, by the reason for that."""
    lines = []
    for reason, rows in findings.silent.items():
        lines += [f"{reason}: {len(rows)}", *(f"    {row.place}  {row.place.text}" for row in rows)]
    return lines or ["Nothing was kept silent."]


def _do(args: argparse.Namespace, engine: Engine, chosen: Sequence[Suggestion]) -> int:
    """Carry out the action `--do` on the chosen suggestions, which are of one kind and so have the same actions."""
    if not chosen:
        raise EditRefused(f"No open suggestion is of the kind {args.kind}.", "Nothing was changed.")
    actions = {_spelled(action): action for action in chosen[0].actions}
    action = actions.get(args.do)
    if action is None:
        raise EditRefused(f"{args.do} is no action of this suggestion.", f"There is {', '.join(actions)}.")
    data: dict[str, object] = {"id": chosen[0].id, "done": "" if args.dry_run else args.do}
    if len(chosen) > 1:
        data["ids"] = [suggestion.id for suggestion in chosen]
    # These three only remember a decision, and change no note.
    if action in ("keep", "none", "snooze"):
        return show(args, data, [_decide(args, engine, chosen, action)])
    curator = engine.notes.curator
    change = checks.changes(chosen, action, curator)
    diff = [*map(str, diff_lines(change))]
    # With --dry-run this shows the change and asks nothing.
    may = agreed(args, [change.title, *change.notes, *diff], "Change these notes?")
    if args.dry_run:
        return show(args, data | {"title": change.title, "diff": diff})
    if not may:
        raise EditRefused("Nothing was changed.", "Use --yes to change notes without a question.")
    number = curator.apply(change).entry.id
    return show(args, data, [f"Written as change {number}; memory-tui undo {number} undoes it."])


def _decide(args: argparse.Namespace, engine: Engine, chosen: Sequence[Suggestion], action: str) -> str:
    """Carry out an action that only remembers a decision; return a sentence of it."""
    if args.dry_run:
        return f"No note would change: {args.do} only decides about {plural(len(chosen), 'suggestion')}."
    decisions = engine.inbox.decisions
    until = engine.plan.clock() + args.days * DAY_SECONDS
    many = f" ({len(chosen)} suggestions)" if len(chosen) > 1 else ""
    sentences = {
        "keep": f"Kept{many}",
        "none": f"Taken for none{many}: the inbox, masks and providers leave it alone, and what is like it",
        "snooze": f"Put off for {args.days:g} days{many}",
    }
    decide = {"keep": decisions.keep, "none": decisions.none}.get(action, partial(decisions.snooze, until=until))
    for suggestion in chosen:
        decide(suggestion)
    id = chosen[0].id if len(chosen) == 1 else "ID"
    return f"{sentences[action]}; memory-tui inbox --id {id} --do reopen undoes it."


# --- what became of the notes ---------------------------------------------------------------------------------------

_PAGE = 500
_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@contextmanager
def _recorded(args: argparse.Namespace) -> Iterator[Curator]:
    """Open the memory, record what became of the notes, and by whom, and yield their curator meanwhile."""
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
            author = [authors.sentence(entry.author)] if entry.kind == OTHERS else []
            lines = [_line(entry, undoable), *author, *text.splitlines()]
            return show(args, {**_row(entry, undoable), "diff": text}, lines)
        is_filtered = args.by is not None or args.deleted
        # More than are shown, because several may be joined into one; -1 is all, among which a filter chooses.
        most = -1 if is_filtered else max(_PAGE, 5 * args.newest)
        path = _note(notes, args.path) if args.path else None
        entries = histories.history(notes.journal, path, most=most, joined=not args.json)
        names = {histories.who(entry) for entry in entries}
        if args.by not in {None, histories.SOMEBODY, histories.OWN, *authors.HOSTS, *names}:
            step = f"Those who did: {', '.join(sorted(names))}." if names else "Nobody changed one yet."
            raise SettingError(f"Nobody called {args.by!r} changed a note.", step)
        chosen = [entry for entry in entries if _fits(entry, args)]
        newest = chosen[: args.newest]
        data = {"folder": str(notes.journal.folder), "changes": [_row(entry, undoable) for entry in newest]}
        lines = [_line(entry, undoable) for entry in newest]
        if len(chosen) > len(newest):
            lines.append("There are older changes; -n lists more.")
        others = ((entry.author, len(entry.files)) for entry in chosen if entry.kind == OTHERS)
        if args.by is None and (sentence := authors.unknown_share(others)):
            lines.append(sentence)
        if not entries:
            lines = [f"{path} was not changed yet." if path else "No note was changed yet."]
        return show(args, data, lines or ["No change fits."])


def since(args: argparse.Namespace) -> int:
    """List what others changed since a person last looked, and remember that they looked; or since a time."""
    refusal = SettingError(f"since takes a time, not {args.when!r}.", "For instance 2026-11-20T12:30, 2h, 3d.")
    time_asked = None if args.when is None else _time(args.when, refusal)
    with _recorded(args) as notes:
        hint = ""
        # Without a time it is since the person looked last, and looking now is remembered.
        if time_asked is None:
            edits, since_when = notes.journal.unviewed(), "you last looked"
            if not notes.read_only:
                notes.journal.view()
                hint = "The next since starts from now; memory-tui since 2h looks back." if edits else ""
        else:
            edits = tuple(edit for edit in notes.journal.edits() if edit.at >= time_asked and edit.kind == OTHERS)
            since_when = minute(time_asked)
            start = notes.journal.numbers().start
            hint = f"The record begins at {minute(start)}." if start and start > time_asked else ""
        entries = histories.by_others(edits, joined=not args.json)
        news = histories.news(edits)
        lines = [_line(entry, set()) for entry in entries]
        lines.append(f"Since {since_when}: {news}." if news else f"Nobody else changed a note since {since_when}.")
        return show(args, [_row(entry, set()) for entry in entries], [*lines, hint] if hint else lines)


def _entry(notes: Curator, number: int) -> JournalEntry:
    """Return the change of the history that has the `number`. Raises EditRefused."""
    newest = histories.history(notes.journal, until=number + 1, most=1, joined=False)
    for entry in newest:
        if entry.id == number:
            return entry
    raise EditRefused(f"There is no change {number}.", "Run memory-tui history to list them.")


def _note(notes: Curator, named: str) -> str:
    """Return the stored path of a note that is there or in the record, by its path or its name alone.

    Raises PathRefused, with what could be meant.
    """
    # What is raised where nothing else fits.
    refusal: PathRefused = NoteMissing(f"There is no note {named}.", "memory-tui history lists those that changed.")
    try:
        _, _, stored = destination(notes.roots, named)
        if notes.journal.edits(stored, most=1) or notes.read(stored) is not None:
            return stored
    except PathRefused as error:
        refusal = error
    paths = {note.path for note in scan(notes.roots).notes if note.source == MEMORY}
    paths |= {edit.path for edit in notes.journal.edits()}
    # With the slash before it, so that "log" fits memory/log.md and not memory/catalog.md.
    ending = f"/{named.casefold().removesuffix('.md')}"
    fitting = [path for path in sorted(paths) if f"/{path.casefold().removesuffix('.md')}".endswith(ending)]
    if len(fitting) == 1:
        return fitting[0]
    by_stem = {PurePath(path).stem: path for path in paths}
    similar = [by_stem[stem] for stem in difflib.get_close_matches(PurePath(named).stem, by_stem, cutoff=0.7)]
    if guesses := fitting[:3] or similar:
        raise NoteMissing(f"There is no note {named}.", f"Did you mean {' or '.join(guesses)}?")
    raise refusal


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
        # One line where one is named, and all where none is.
        last = last or first or len(edits)
        if first is not None and not 1 <= first <= last <= len(edits):
            raise QueryError(f"{path} has {plural(len(edits), 'line')}.", f"memory-tui blame {path} shows them.")
        numbers = range(first or 1, last + 1)
        rows = [_blamed(number, texts[number - 1].rstrip("\r"), edits[number - 1]) for number in numbers]
        width = max((len(row["by"]) for row in rows), default=0)
        lines = [
            f"{second(row['at']) if row['at'] else ' ' * 19}  {row['by']:<{width}}  {row['line']:>4}  {row['text']}"
            for row in rows
        ]
        return show(args, rows, lines)


def _blamed(number: int, text: str, edit: Edit | None) -> dict[str, Any]:
    """Return a line of a note as JSON-ready data, with the edit that it came by; None for one before the record."""
    if edit is None:
        return {"line": number, "text": text, "id": 0, "at": None, "by": "before the record", "session": ""}
    session = edit.author.session if edit.author is not None else ""
    return {"line": number, "text": text, "id": edit.id, "at": edit.at, "by": histories.who(edit), "session": session}


def restore_notes(args: argparse.Namespace) -> int:
    """Bring one note, or all, back to what they were; without a time list the texts that a note had."""
    # Both, or neither.
    if args.all == (args.path is not None):
        raise SettingError("Which note is to be restored?", "Name one, or say --all --before TIME.")
    with _recorded(args) as notes:
        args.path = _note(notes, args.path) if args.path else None
        if (before := args.before) is None:
            return _versions(args, notes)
        if before.isascii() and before.isdigit():
            change = histories.restore_before(notes, args.path, change=_entry(notes, int(before)).id)
        else:
            step = "For instance 2026-11-20T12:30, 2h, 3d, or a number of the history."
            refusal = SettingError(f"--before takes a time or a change, not {before!r}.", step)
            change = histories.restore_before(notes, args.path, at=_time(before, refusal))
        return make(notes, change, args)


def _versions(args: argparse.Namespace, notes: Curator) -> int:
    """List the texts that a note had, each by the change that ended it.

    Raises SettingError where `--yes` leaves open which of them is meant.
    """
    if args.path is None:
        raise SettingError("--all needs a time.", "memory-tui restore --all --before 2h shows what it would change.")
    versions = histories.versions(notes.journal, args.path, notes.read(args.path))
    command = f"memory-tui restore {args.path} --before"
    if args.yes:
        numbers = ", ".join(str(edit.id) for edit in versions)
        next_step = f"Choose one of {numbers}: {command}." if versions else "No other text is kept."
        raise SettingError(f"Which text of {args.path} is to be brought back?", next_step)
    data = [{"ref": f"{edit.id}", "at": edit.at, "title": f"before: {histories.title_of(edit)}"} for edit in versions]
    lines = [f"{edit.id:<4}  {minute(edit.at)}  before: {histories.title_of(edit)}" for edit in versions]
    none = f"The record has no other text of {args.path}."
    return show(args, data, [*lines, f"{command} N shows what one would change." if versions else none])


def _time(text: str, refusal: SettingError) -> float:
    """Return the time that `text` names, in epoch seconds: an ISO time, or a span such as 2h before now.

    Raises `refusal` where it is neither.
    """
    if span := _SPAN.fullmatch(text):
        count, unit = span.groups()
        return time.time() - int(count) * _SECONDS[unit]
    try:
        return dt.datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise refusal from None


# --- rows ----------------------------------------------------------------------------------------------------------


def _fits(entry: JournalEntry, args: argparse.Namespace) -> bool:
    """Return whether `--deleted` and `--by` leave an entry in the list."""
    if args.deleted and all(file.after is not None for file in entry.files):
        return False
    return args.by in (None, histories.who(entry))


def _row(entry: JournalEntry, undoable: set[int]) -> dict[str, Any]:
    """Return a change as JSON-ready data; `undoable` are the ids of the changes that can be undone."""
    names = ("id", "at", "state", "kind", "title", "undoes", "redoes", "reason")
    row: dict[str, Any] = {name: getattr(entry, name) for name in names}
    row |= {"paths": list(dict.fromkeys(entry.paths)), "undoable": entry.id in undoable}
    by = histories.who(entry)
    return row | {"by": "" if by == histories.SOMEBODY else by, "author": to_builtins(entry.author)}


_STATES = {"intent": " (cut off)", "refused": " (not made)", "draft": " (draft that was not written)"}


def _line(entry: JournalEntry, undoable: set[int]) -> str:
    """Return a change as a line; `undoable` are the ids of the changes that can be undone."""
    state = _STATES.get(entry.state, "")
    is_own_change = entry.kind != OTHERS and not entry.undoes and not entry.redoes
    if entry.state == "done" and is_own_change and entry.id not in undoable:
        state = " (undone)"
    reason = f": {entry.reason}" if entry.reason else ""
    return f"{entry.id:>4}  {second(entry.at)}  {entry.title}{state}{reason}"
