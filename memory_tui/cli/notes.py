"""Commands that change notes: each change is shown first; `undo` reverses it. `inbox` lists what needs a decision."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from msgspec import to_builtins

from memory_tui.cli.context import agreed, curator_of, opened
from memory_tui.cli.output import say, show, waiting
from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused, QueryError, SettingError
from memory_tui.explain import trace_json
from memory_tui.formatting import plural
from memory_tui.inbox import checks
from memory_tui.inbox.entries import Findings, Group, Suggestion
from memory_tui.notes import diff
from memory_tui.notes.changes import Change
from memory_tui.notes.curator import AppliedChange, Curator
from memory_tui.workspace.roots import named_lines


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
    lines = [change.title, *change.notes, *diff.text(change).splitlines()]
    may = agreed(args, lines, "" if notes.read_only else "Write this?") or (bool(notes.read_only) and not args.dry_run)
    if not may and not args.dry_run:
        say("Nothing was written, because nobody agreed. A script adds --yes, or --dry-run to see the difference.")
    return may


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
    }
    if done is None:
        return show(args, data, (), 0 if args.dry_run else 2)
    merged = f" Lines that others wrote meanwhile are kept: {', '.join(done.merged)}." if done.merged else ""
    again = {"undo": "memory-tui undo --redo redoes it.", "redo": "memory-tui undo undoes it."}
    way = again.get(change.kind, f"memory-tui undo {done.entry.id} undoes it.")
    return show(args, data, [f"Written as change {done.entry.id}; {way}{merged}"])


# --- the inbox -----------------------------------------------------------------------------------------------------

_DAY_SECONDS = 86_400.0


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
            findings = engine.inbox.examine(kind=kind or ("all" if args.id else ""))
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
    lines += [f"Off: {name}, because {why}; --kind {name} lists them." for name, why in off.items()]
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
        lines = [change.title, *change.notes, *map(str, diff.masked_lines(change))]
        if agreed(args, lines, "Change these notes?"):
            number = curator.apply(change).entry.id
            report = f"Written as change {number}; memory-tui undo {number} undoes it."
        elif args.dry_run:
            return show(args, data | {"title": change.title, "diff": lines[1 + len(change.notes) :]})
        else:
            raise EditRefused("Nothing was changed.", "Use --yes to change notes without a question.")
    elif args.dry_run:
        report = f"No note would change: {args.do} only decides about {plural(len(chosen), 'suggestion')}."
    elif action == "keep":
        for each in chosen:
            decisions.keep(each)
        report = f"Kept{many}; {back}"
    elif action == "none":
        for each in chosen:
            decisions.none(each)
        report = f"Taken for none{many}: the inbox, masks and providers leave it alone, and what is like it; {back}"
    else:
        for each in chosen:
            decisions.snooze(each, engine.plan.clock() + args.days * _DAY_SECONDS)
        report = f"Put off for {args.days:g} days{many}; {back}"
    return show(args, data, [report])
