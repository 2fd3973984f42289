"""The arguments of the tools, read by their recorded schemas.

A number may be written as text (`"5"`), as OpenClaw allows; where a whole number is wanted, a fraction is cut off. A
truth may be written as a number or a word (1, `"yes"`). What is null counts as left out. Nothing else is guessed: true
is no number, and a name that is unknown is an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from memory_tui.core.errors import QueryError
from memory_tui.core.sanitize import one_line
from memory_tui.mcp.schemas import recorded

if TYPE_CHECKING:
    from memory_tui.mcp.types import GetArguments, SearchArguments

_TRUE = frozenset({"1", "t", "true", "y", "yes", "on"})
_FALSE = frozenset({"0", "f", "false", "n", "no", "off"})


class _Unfit(Exception):
    """A value is not what its argument takes, which is `wanted`."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted


def search_arguments(given: Mapping[str, Any]) -> SearchArguments:
    """`given` as the arguments of memory_search. Raises QueryError."""
    return cast("SearchArguments", _read("SearchArguments", given))


def get_arguments(given: Mapping[str, Any]) -> GetArguments:
    """`given` as the arguments of memory_get. Raises QueryError."""
    return cast("GetArguments", _read("GetArguments", given))


def entry_arguments(tool: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """`given` as the arguments of memory_recall, memory_store or memory_forget. Raises QueryError."""
    kinds = {
        "memory_recall": "RecallArguments",
        "memory_store": "StoreArguments",
        "memory_forget": "ForgetArguments",
    }
    return _read(kinds[tool], given)


def _read(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` by the schema of the type `kind`, in the order of that. Raises QueryError for the first thing wrong."""
    schema = recorded()[kind]
    fields: Mapping[str, Mapping[str, Any]] = schema["properties"]
    present = {name: value for name, value in given.items() if value is not None}
    # A name that is unknown is the likelier cause of one that is missing.
    for name in present:
        if name not in fields:
            raise _unknown(name, fields)
    found = {}
    for name, field in fields.items():
        if name in present:
            try:
                found[name] = _value(present[name], field)
            except _Unfit as error:
                shown = _shown(given[name])
                raise QueryError(f"{name} is {error.wanted}, not {shown}.", _meaning(field)) from None
        elif name in schema["required"]:
            raise QueryError(f"{name} is required.", _meaning(field))
    return found


def _value(value: object, field: Mapping[str, Any]) -> object:
    """`value` as `field` wants it. Raises _Unfit."""
    kind = field["type"]
    if kind in ("integer", "number"):
        number = _number(value)
        if number is None:
            raise _Unfit("a whole number" if kind == "integer" else "a number")
        return _bounded(math.trunc(number) if kind == "integer" else number, field)
    if kind == "boolean":
        return _truth(value)
    if "enum" in field and value not in field["enum"]:
        raise _Unfit(f"one of {', '.join(field['enum'])}")
    if not isinstance(value, str):
        raise _Unfit("text")
    return value


def _number(value: object) -> float | None:
    """A finite number, written as one or as text; None for anything else."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        if math.isfinite(number):
            return number
    return None


def _bounded(number: float, field: Mapping[str, Any]) -> float:
    if number < (least := field.get("minimum", -math.inf)):
        raise _Unfit(f"at least {least:g}")
    if number > (most := field.get("maximum", math.inf)):
        raise _Unfit(f"at most {most:g}")
    return number


def _truth(value: object) -> bool:
    word = value.lower() if isinstance(value, str) else str(int(value)) if value in (0, 1) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    # As every value that is none of the others is refused.
    raise _Unfit("text")


def _meaning(field: Mapping[str, Any]) -> str:
    return str(field.get("description", ""))


def _unknown(name: str, fields: Mapping[str, object]) -> QueryError:
    import difflib

    near = difflib.get_close_matches(name, fields, n=1, cutoff=0.6)
    return QueryError(
        f"There is no argument {_shown(name)}.",
        f"Did you mean {near[0]}?" if near else f"There are {', '.join(fields)}.",
    )


def _shown(value: object) -> str:
    return one_line(repr(value), 60)
