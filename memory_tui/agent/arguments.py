"""Arguments as an agent writes them, made into what a tool takes, or a sentence about the one that is wrong.

A number may be written as text (`"5"`), as OpenClaw allows; where a whole number is wanted, a fraction is cut off. What
is null counts as left out. Nothing else is guessed: true is no number, and a name that is unknown is an error.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from memory_tui.agent.schema import Member, members
from memory_tui.errors import QueryError
from memory_tui.text.display import one_line

Wanted = TypeVar("Wanted")


def read(kind: type[Wanted], given: Mapping[str, Any]) -> Wanted:
    """`given` as a `kind`, a dataclass. Raises QueryError."""
    known = {member.name: member for member in members(kind)}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
            raise QueryError(
                f"There is no argument {_shown(name)}.",
                f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}.",
            )
    present = {name: value for name, value in given.items() if value is not None}
    for name, member in known.items():
        if member.required and name not in present:
            raise QueryError(f"{name} is required.", member.says.text)
    return kind(**{known[name].field: _value(known[name], value) for name, value in present.items()})


def _value(member: Member, value: object) -> object:
    if member.kind is str:
        if isinstance(value, str):
            return value
        raise _wrong(member, "text", value)
    if get_origin(member.kind) is Literal:
        choices = get_args(member.kind)
        if value in choices:
            return value
        raise _wrong(member, f"one of {', '.join(choices)}", value)
    return _number(member, value)


def _number(member: Member, value: object) -> float | int:
    says, whole = member.says, member.kind is int
    number = _read_number(value)
    if number is None:
        raise _wrong(member, "a whole number" if whole else "a number", value)
    if whole:
        number = math.trunc(number)
    if says.low is not None and number < says.low:
        raise QueryError(f"{member.name} is at least {says.low:g}, not {_shown(value)}.", says.text)
    if says.high is not None and number > says.high:
        raise QueryError(f"{member.name} is at most {says.high:g}, not {_shown(value)}.", says.text)
    return number


def _read_number(value: object) -> float | None:
    """A finite number, written as one or as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _wrong(member: Member, wanted: str, value: object) -> QueryError:
    return QueryError(f"{member.name} is {wanted}, not {_shown(value)}.", member.says.text)


def _shown(value: object) -> str:
    return one_line(repr(value), 60)
