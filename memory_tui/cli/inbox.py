"""The command `inbox` lists what needs a decision, or carries one out."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from msgspec import to_builtins

from memory_tui.cli.common import Command, confirmed, opened, waiting
from memory_tui.core.errors import EditRefused, SettingError

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.inbox.entries import Action, Suggestion

_DAY_SECONDS = 86_400.0
_MOST_DAYS = 36_500
_ACTIONS = (
    *(
        "merge",
        "merge-other",
        "delete",
        "demote",
        "trash-note",
        "rename",
        "archive-note",
        "restore",
        "move-back",
        "convert",
        "edit",
    ),
    *("keep", "snooze", "reopen"),
)


def _declare_inbox(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--do", choices=_ACTIONS, metavar="ACTION", help=f"carry out one of {', '.join(_ACTIONS)}")
    parser.add_argument("--id", metavar="ID", help="on the suggestion of this id")
    parser.add_argument("--days", type=_days, default=7.0, metavar="N", help="snooze: for how long (default: 7)")
    parser.add_argument("--kind", metavar="KIND", help="only suggestions of this kind; with --do all of them at once")
    parser.add_argument("--text", metavar="TEXT", help="edit: what the entry says from now on")
    parser.add_argument("--yes", action="store_true", help="do not ask before a note is changed")


def _days(text: str) -> float:
    """A number of days above 0, as an argument's type."""
    try:
        days = float(text)
    except ValueError:
        days = 0.0
    if not 0 < days <= _MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days from above 0 to {_MOST_DAYS:,}")
    return days


def _inbox(given: argparse.Namespace) -> int:
    named, acts = hasattr(given, "id"), hasattr(given, "do")
    if (named and not acts) or (acts and not named and (given.do == "reopen" or not hasattr(given, "kind"))):
        raise SettingError(
            "--do needs --id, or --kind for all of a kind.", "For instance: memory-tui inbox --id 3f9a12 --do merge."
        )
    if acts and (given.do == "edit") != hasattr(given, "text"):
        raise SettingError("--do edit and --text belong together.", "--text is what the entry says from now on.")

    kind = _kind(given.kind) if hasattr(given, "kind") else None
    with opened(given) as engine:
        engine.indexer.catch_up()
        if acts and given.do == "reopen":
            return _reopen(given, engine)
        with waiting("Examining the notes"):
            found = engine.inbox.examine()
        if acts:
            chosen = [_named(found, given.id)] if named else [one for one in found if one.kind == kind]
            return _do(given, engine, chosen)
        _list(given, [one for one in found if kind in (None, one.kind)], kind)
    return 0


def _kind(text: str) -> str:
    """The kind that `text` names, with or without hyphens. Raises SettingError."""
    from memory_tui.inbox.checks import BY_KIND

    found = text.strip().lower().replace("-", " ").replace("_", " ")
    if found not in BY_KIND:
        raise SettingError(f"There is no kind {text!r} of suggestions.", f"Choose one of {', '.join(BY_KIND)}.")
    return found


def _suggested(one: Suggestion) -> dict[str, object]:
    """A suggestion as JSON-ready data, its finding with kind, evidence and sentence."""
    from memory_tui.explain import trace_json

    said = {**trace_json.tagged(one.finding), "sentence": one.reason}
    return {"id": one.id, **to_builtins(one), "reason": one.reason, "finding": said}


def _list(given: argparse.Namespace, found: list[Suggestion], kind: str | None) -> None:
    from memory_tui.inbox.checks import BY_KIND
    from memory_tui.render import as_text

    if hasattr(given, "json"):
        as_text.print_json([_suggested(one) for one in found])
        return
    for one in found:
        as_text.print_lines([f"{one.id}  {one.place}  {BY_KIND[one.kind].title}", f"    {one.reason}"])
        as_text.print_lines([f"    | {line}" for line in one.place.text.split("\n")[:3] if line.strip()])
        as_text.print_lines([f"    {', '.join(action.replace(' ', '-') for action in one.actions)}"])
    of = f" of the kind {kind}" if kind else ""
    as_text.print_lines([f"Open suggestions{of}: {len(found)}." if found else f"Nothing{of} needs attention."])


def _named(found: tuple[Suggestion, ...], identifier: str) -> Suggestion:
    fitting = [one for one in found if one.id.startswith(identifier)]
    if len(fitting) != 1:
        raise EditRefused(
            f"{'No' if not fitting else 'More than one'} open suggestion has the id {identifier!r}.",
            "Run memory-tui inbox to list them.",
        )
    return fitting[0]


def _reopen(given: argparse.Namespace, engine: Engine) -> int:
    """Take back that a suggestion was kept or put off."""
    from memory_tui.render import as_text

    fitting = [name for name in engine.inbox.decisions.decided() if name.startswith(given.id)]
    if len(fitting) != 1:
        raise EditRefused(
            f"{'Nothing' if not fitting else 'More than one thing'} with the id {given.id!r} was kept or put off.",
            "The id is the one that memory-tui inbox showed when it was decided.",
        )
    engine.inbox.decisions.reopen(fitting[0])
    if hasattr(given, "json"):
        as_text.print_json({"id": fitting[0], "done": "reopen"})
    else:
        as_text.print_lines([f"{fitting[0]} is open again."])
    return 0


def _do(given: argparse.Namespace, engine: Engine, chosen: list[Suggestion]) -> int:
    from memory_tui.inbox import checks
    from memory_tui.notes import diff
    from memory_tui.render import as_text

    if not chosen:
        raise EditRefused(f"No open suggestion is of the kind {given.kind}.", "Nothing was changed.")
    one = chosen[0]
    action: Action = next((name for name in one.actions if name.replace(" ", "-") == given.do), "keep")
    if action.replace(" ", "-") != given.do:
        raise EditRefused(f"{given.do} is no action of this suggestion.", f"There is {', '.join(one.actions)}.")
    many = f" ({len(chosen)} suggestions)" if len(chosen) > 1 else ""
    which = f"--id {one.id}" if len(chosen) == 1 else "--id ID"
    back = f"memory-tui inbox {which} --do reopen undoes it."
    if action == "keep":
        for each in chosen:
            engine.inbox.decisions.keep(each)
        said = f"Kept{many}; {back}"
    elif action == "snooze":
        for each in chosen:
            engine.inbox.decisions.snooze(each, engine.now() + given.days * _DAY_SECONDS)
        said = f"Put off for {given.days:g} days{many}; {back}"
    else:
        curator = engine.notes.curator
        if action == "edit":
            change = checks.rewritten(one, given.text, curator)
        else:
            change = checks.changes(chosen, action, curator)
        if not hasattr(given, "json"):
            as_text.print_lines([change.title, *change.notes, *map(str, diff.masked_lines(change))])
        if not confirmed("Change these notes?", given):
            raise EditRefused("Nothing was changed.", "Use --yes to change notes without a question.")
        number = engine.notes.curator.apply(change).entry.id
        said = f"Written as change {number}; memory-tui undo {number} undoes it."
    if hasattr(given, "json"):
        ids = {"ids": [each.id for each in chosen]} if len(chosen) > 1 else {}
        as_text.print_json({"id": one.id, "done": given.do, **ids})
    else:
        as_text.print_lines([said])
    return 0


COMMANDS: dict[str, Command] = {"inbox": Command(_inbox, _declare_inbox)}
