"""An entry of extraPaths as it is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtraPath:
    """A path and the pattern that chooses among the notes below it; without one all of them are read."""

    path: str
    pattern: str = ""
