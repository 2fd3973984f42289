"""A line of a note is overtaken by its mark alone: it is struck, or it begins with "(superseded 2026-03-08)"."""

from __future__ import annotations

import re

_LEAD = r"^\s*(?:[-*+]\s+|\d+[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?(?:\*\*)?"
_STRUCK = re.compile(rf"{_LEAD}~~(?:(?!~~).)+~~[\s.。|*]*$")
_MARK = re.compile(
    rf"{_LEAD}[(（\[]\s*(?:[^\W\d]{{1,4}}\s)?(?:superseded?|überholt|veraltet|obsoleto|obsolet|已作废|已过时|廃止|устарело)"
    r"(?P<day>[\s:,]*\d{4}-\d\d-\d\d)?[^)）\]]{0,60}[)）\]]\s*",
    re.IGNORECASE,
)


def is_overtaken(line: str) -> bool:
    """Tell whether a line says itself that another one overtook it, or that it is done."""
    return _MARK.match(line) is not None or _STRUCK.match(line) is not None


def overtaken_in(text: str, first: int = 1) -> list[int]:
    """Return the numbers of the overtaken lines in a text whose first line has the number `first`."""
    return [number for number, line in enumerate(text.split("\n"), first) if is_overtaken(line)]


def is_marked(line: str) -> bool:
    """Tell whether a line begins with a mark such as "(superseded 2026-03-08)"."""
    return _MARK.match(line) is not None


def without_mark(line: str) -> str:
    """Return a line without the mark, and without what strikes it through."""
    return _MARK.sub("", line, count=1).replace("~~", "")


def marked(line: str, day: str) -> str:
    """Return a line with the mark of `day` in front of its words."""
    lead = re.match(r"\s*(?:[-*+]\s+|\d+[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?", line)
    at = lead.end() if lead else 0
    return f"{line[:at]}(superseded {day}) {line[at:]}"
