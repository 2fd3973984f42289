"""A regular expression that is compiled when it is first used."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    """A pattern that is compiled when one of its methods is first asked for; each is kept then."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method or a value of the pattern
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def compiled_later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile` at the first use: a start imports hundreds of patterns, 0.1 to 2 milliseconds each, and uses few.

    Functions of `re` do not take what this returns; its methods do all that they do.
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
