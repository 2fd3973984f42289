"""The command that lists what in the notes should be looked at, and carries out what is decided about one of them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_tui.cli.common import Declare, Run, agreed, opened
from memory_tui.errors import EditRefused, SettingError

if TYPE_CHECKING:
    from memory_tui.curate.suggestion import Action, Suggestion
    from memory_tui.engine import Engine

_DAY_SECONDS = 86_400.0
_MOST_DAYS = 36_500
_ACTIONS = ("merge", "delete", "demote", "trash-note", "rename", "archive-note", "keep", "snooze", "reopen")


def add(command: Declare) -> None:
    """Declare the command."""
    inbox = command("inbox", "what in the notes should be looked at: repeats, secrets, passed dates, dead paths, junk")
    inbox.add_argument("--do", choices=_ACTIONS, metavar="ACTION", help=f"carry out one of {', '.join(_ACTIONS)}")
    inbox.add_argument("--id", metavar="ID", help="on the suggestion of this id")
    inbox.add_argument("--days", type=_days, default=7.0, metavar="N", help="snooze: for how long (default: 7)")
    inbox.add_argument("--kind", metavar="KIND", help="only suggestions of this kind, such as 'secret'")
    inbox.add_argument("--yes", action="store_true", help="do not ask before a note is changed")


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
    if hasattr(given, "do") != hasattr(given, "id"):
        raise SettingError("--do and --id belong together.", "For instance: memory-tui inbox --id 3f9a12 --do merge.")
    kind = _kind(given.kind) if hasattr(given, "kind") else None
    with opened(given) as engine:
        engine.catch_up()
        if getattr(given, "do", "") == "reopen":
            return _reopen(given, engine)
        found = engine.inbox()
        if hasattr(given, "do"):
            return _do(given, engine, _named(found, given.id))
        _list(given, [one for one in found if kind in (None, one.kind)], kind)
    return 0


def _kind(text: str) -> str:
    """The kind that `text` names, with or without hyphens. Raises SettingError."""
    from memory_tui.curate.suggestion import TITLES

    found = text.strip().lower().replace("-", " ").replace("_", " ")
    if found not in TITLES:
        raise SettingError(f"There is no kind {text!r} of suggestions.", f"Choose one of {', '.join(TITLES)}.")
    return found


def _list(given: argparse.Namespace, found: list[Suggestion], kind: str | None) -> None:
    from memory_tui import report
    from memory_tui.curate.suggestion import TITLES

    if hasattr(given, "json"):
        report.data([{"id": one.id, **asdict(one)} for one in found])
        return
    for one in found:
        report.text([f"{one.id}  {one.place}  {TITLES[one.kind]}", f"    {one.reason}"])
        report.text([f"    | {line}" for line in one.place.text.split("\n")[:3] if line.strip()])
        report.text([f"    {', '.join(action.replace(' ', '-') for action in one.actions)}"])
    of = f" of the kind {kind}" if kind else ""
    report.text([f"{len(found)} to look at{of}." if found else f"Nothing{of} needs to be looked at."])


def _named(found: tuple[Suggestion, ...], identifier: str) -> Suggestion:
    fitting = [one for one in found if one.id.startswith(identifier)]
    if len(fitting) != 1:
        raise EditRefused(
            f"{'No' if not fitting else 'More than one'} open suggestion has the id {identifier!r}.",
            "memory-tui inbox lists them.",
        )
    return fitting[0]


def _reopen(given: argparse.Namespace, engine: Engine) -> int:
    """Take back that a suggestion was kept or put off."""
    from memory_tui import report

    fitting = [name for name in engine.decisions.decided() if name.startswith(given.id)]
    if len(fitting) != 1:
        raise EditRefused(
            f"{'Nothing' if not fitting else 'More than one thing'} with the id {given.id!r} was kept or put off.",
            "The id is the one that memory-tui inbox showed when it was decided.",
        )
    engine.decisions.reopen(fitting[0])
    if hasattr(given, "json"):
        report.data({"id": fitting[0], "done": "reopen"})
    else:
        report.text([f"{fitting[0]} is open again."])
    return 0


def _do(given: argparse.Namespace, engine: Engine, one: Suggestion) -> int:
    from memory_tui import report
    from memory_tui.curate import inbox, masked

    action: Action = next((name for name in one.actions if name.replace(" ", "-") == given.do), "keep")
    if action.replace(" ", "-") != given.do:
        raise EditRefused(f"{given.do} is nothing that can be done about this.", f"There is {', '.join(one.actions)}.")
    back = f"memory-tui inbox --id {one.id} --do reopen takes it back."
    if action == "keep":
        engine.decisions.keep(one)
        said = f"Kept; {back}"
    elif action == "snooze":
        engine.decisions.snooze(one, engine.now() + given.days * _DAY_SECONDS)
        said = f"Put off for {given.days:g} days; {back}"
    else:
        change = inbox.change(one, action, engine.curator.plan)
        if not hasattr(given, "json"):
            report.text([change.title, *change.notes, *map(str, masked.lines(change))])
        if not agreed("Change these notes?", given):
            raise EditRefused("Nothing was changed.", "Say --yes to change notes without being asked.")
        number = engine.curator.apply(change).entry.id
        said = f"Written as change {number}; memory-tui undo {number} takes it back."
    if hasattr(given, "json"):
        report.data({"id": one.id, "done": given.do})
    else:
        report.text([said])
    return 0


RUN: dict[str, Run] = {"inbox": _inbox}
