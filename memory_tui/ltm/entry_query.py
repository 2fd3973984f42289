"""A query of columns compares one column with one value, as `openclaw ltm query` does."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from memory_tui.core.errors import QueryError
from memory_tui.core.sanitize import one_line
from memory_tui.ltm.entry_table import EntryTable, Rows

_COMPARISON = re.compile(r"\s*(\w+)\s*(==|!=|<>|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "=": operator.eq,
        "==": operator.eq,
        "!=": operator.ne,
        "<>": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)
_LARGE = ("vector",)


def rows(table: EntryTable, columns: Sequence[str], comparison: str, limit: int, order_by: str) -> list[dict[str, Any]]:
    """Some `columns` of the rows that the `comparison` allows, in the `order_by` of a column. Raises QueryError.

    The comparison is made here, so that nothing a person writes gets into a filter of the library.
    """
    known = [name for name in table.facts().columns if name not in _LARGE]
    wanted = list(columns) or known
    column, descending = _order(order_by)
    test = parse(comparison) if comparison.strip() else None
    for name in (*wanted, *((column,) if column else ()), *((test[0],) if test else ())):
        if name not in known:
            raise QueryError(f"There is no column {one_line(name, 40)!r}.", f"Choose one of {', '.join(known)}.")
    found = [row for row in _dicts(table.columns(known)) if test is None or _holds(row[test[0]], test[1], test[2])]
    if column:
        found = [row for row in found if row[column] is not None] + [row for row in found if row[column] is None]
        filled = [row for row in found if row[column] is not None]
        filled.sort(key=lambda row: row[column], reverse=descending)
        found = filled + found[len(filled) :]
    return [{name: row[name] for name in wanted} for row in found[:limit]]


def parse(comparison: str) -> tuple[str, str, str | float]:
    """Column, operator and value of a comparison such as `importance >= 0.8`. Raises QueryError."""
    found = _COMPARISON.fullmatch(comparison)
    if found is None or not found[3]:
        raise QueryError(
            f"{one_line(comparison, 60)!r} is no comparison.", "For instance: --filter 'importance >= 0.8'."
        )
    value = found[3]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return found[1], found[2], value[1:-1]
    try:
        return found[1], found[2], float(value)
    except ValueError:
        return found[1], found[2], value


def _order(text: str) -> tuple[str, bool]:
    """A column, and whether the largest comes first: `createdAt`, `createdAt:desc`, `createdAt desc`."""
    column, _, way = text.strip().replace(":", " ").partition(" ")
    if way.strip().lower() not in ("", "asc", "desc"):
        raise QueryError(f"{one_line(text, 40)!r} is no order.", "For instance: --order-by createdAt:desc.")
    return column, way.strip().lower() == "desc"


def _holds(value: Any, sign: str, wanted: str | float) -> bool:  # noqa: ANN401 - a value of any column
    if value is None:
        return False
    if isinstance(wanted, float) and not isinstance(value, int | float):
        value, wanted = str(value), f"{wanted:g}"
    elif isinstance(wanted, str):
        value = str(value)
    return _OPERATORS[sign](value, wanted)


def _dicts(found: Rows) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = found.to_pylist()
    return result
