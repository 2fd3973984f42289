"""The command `inbox`: list what needs a decision, or carry one out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from msgspec import to_builtins

from memory_tui.cli.context import confirmed, opened
from memory_tui.cli.output import print_lines, show, waiting
from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused, SettingError
from memory_tui.explain import trace_json
from memory_tui.inbox import checks
from memory_tui.inbox.entries import Action, Suggestion
from memory_tui.notes import diff

_DAY_SECONDS = 86_400.0


def inbox(args: argparse.Namespace) -> int:
    """List the open suggestions, or carry out `--do`."""
    if (args.id and not args.do) or (args.do and not args.id and (args.do == "reopen" or not args.kind)):
        raise SettingError(
            "--do needs --id, or --kind for all of a kind.", "For instance: memory-tui inbox --id 3f9a12 --do merge."
        )
    if args.do and (args.do == "edit") != (args.text is not None):
        raise SettingError("--do edit and --text belong together.", "--text is what the entry says from now on.")
    kind = _kind(args.kind) if args.kind is not None else None
    with opened(args) as engine:
        engine.index.catch_up()
        if args.do == "reopen":
            return _reopen(args, engine)
        with waiting("Examining the notes"):
            suggestions = engine.notes.examine()
        if args.do:
            chosen = [_named(suggestions, args.id)] if args.id else [each for each in suggestions if each.kind == kind]
            return _do(args, engine, chosen)
        rows = [each for each in suggestions if kind in (None, each.kind)]
        return show(args, lambda: [_data(each) for each in rows], _lines(rows, kind))


def _kind(text: str) -> str:
    """Return the kind that `text` names, with or without hyphens. Raises SettingError."""
    kind = text.strip().lower().replace("-", " ").replace("_", " ")
    if kind not in checks.BY_KIND:
        raise SettingError(f"There is no kind {text!r} of suggestions.", f"Choose one of {', '.join(checks.BY_KIND)}.")
    return kind


def _data(each: Suggestion) -> dict[str, object]:
    finding = {**trace_json.tagged(each.finding), "sentence": each.reason}
    return {"id": each.id, **to_builtins(each), "reason": each.reason, "finding": finding}


def _lines(rows: Sequence[Suggestion], kind: str | None) -> list[str]:
    lines = []
    for each in rows:
        lines += [f"{each.id}  {each.place}  {checks.BY_KIND[each.kind].title}", f"    {each.reason}"]
        lines += [f"    | {line}" for line in each.place.text.split("\n")[:3] if line.strip()]
        lines.append(f"    {', '.join(map(_word, each.actions))}")
    of = f" of the kind {kind}" if kind else ""
    return [*lines, f"Open suggestions{of}: {len(rows)}." if rows else f"Nothing{of} needs attention."]


def _word(action: str) -> str:
    return action.replace(" ", "-")


def _named(suggestions: Sequence[Suggestion], identifier: str) -> Suggestion:
    fitting = [each for each in suggestions if each.id.startswith(identifier)]
    if len(fitting) != 1:
        raise EditRefused(
            f"{'No' if not fitting else 'More than one'} open suggestion has the id {identifier!r}.",
            "Run memory-tui inbox to list them.",
        )
    return fitting[0]


def _reopen(args: argparse.Namespace, engine: Engine) -> int:
    """Take back that a suggestion was kept or put off."""
    fitting = [name for name in engine.notes.decisions.decided() if name.startswith(args.id)]
    if len(fitting) != 1:
        raise EditRefused(
            f"{'Nothing' if not fitting else 'More than one thing'} with the id {args.id!r} was kept or put off.",
            "The id is the one that memory-tui inbox showed when it was decided.",
        )
    engine.notes.decisions.reopen(fitting[0])
    return show(args, {"id": fitting[0], "done": "reopen"}, [f"{fitting[0]} is open again."])


def _do(args: argparse.Namespace, engine: Engine, chosen: Sequence[Suggestion]) -> int:
    """Carry out an action on the chosen suggestions, which are of one kind."""
    if not chosen:
        raise EditRefused(f"No open suggestion is of the kind {args.kind}.", "Nothing was changed.")
    first = chosen[0]
    action = next((action for action in first.actions if _word(action) == args.do), None)
    if action is None and args.do != "keep":
        raise EditRefused(f"{args.do} is no action of this suggestion.", f"There is {', '.join(first.actions)}.")
    many = f" ({len(chosen)} suggestions)" if len(chosen) > 1 else ""
    back = f"memory-tui inbox --id {first.id if len(chosen) == 1 else 'ID'} --do reopen undoes it."
    decisions = engine.notes.decisions
    if action is None or action == "keep":
        for each in chosen:
            decisions.keep(each)
        report = f"Kept{many}; {back}"
    elif action == "snooze":
        for each in chosen:
            decisions.snooze(each, engine.plan.clock() + args.days * _DAY_SECONDS)
        report = f"Put off for {args.days:g} days{many}; {back}"
    else:
        number = _changed(args, engine, chosen, action)
        report = f"Written as change {number}; memory-tui undo {number} undoes it."
    ids = {"ids": [each.id for each in chosen]} if len(chosen) > 1 else {}
    return show(args, {"id": first.id, "done": args.do, **ids}, [report])


def _changed(args: argparse.Namespace, engine: Engine, chosen: Sequence[Suggestion], action: Action) -> int:
    """Show the change, ask, and make it; return its number."""
    curator = engine.notes.curator
    edits = action == "edit"
    change = checks.rewritten(chosen[0], args.text, curator) if edits else checks.changes(chosen, action, curator)
    if not args.json:
        print_lines([change.title, *change.notes, *map(str, diff.masked_lines(change))])
    if not confirmed("Change these notes?", args):
        raise EditRefused("Nothing was changed.", "Use --yes to change notes without a question.")
    return curator.apply(change).entry.id
