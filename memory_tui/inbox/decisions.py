"""Decisions about inbox entries: dismissed for good, or snoozed until a day."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_tui.core import state_db
from memory_tui.core.errors import EditRefused, StateUnavailable
from memory_tui.inbox.entries import Suggestion

TABLE = state_db.Table("inbox_decisions")
_FOREVER = "keep"


class Decisions:
    """The decisions of the workspace whose changes are kept in `folder`; several processes may decide at once.

    Everything may raise EditRefused; `notice` gets what a person should know.
    """

    def __init__(self, folder: Path, notice: state_db.Notice = state_db.warn) -> None:
        self._old = folder / "inbox.json"
        self._records = TABLE.of(str(folder), self._read_old, notice=notice)

    def _read_old(self) -> dict[str, Any]:
        """What earlier releases kept in a file of its own. Raises OSError, ValueError."""
        try:
            data = json.loads(self._old.read_bytes())
        except FileNotFoundError:
            return {}
        return data if isinstance(data, dict) else {}

    def open(self, found: Sequence[Suggestion], now: float) -> tuple[Suggestion, ...]:
        """Return the suggestions that are neither dismissed nor snoozed at `now` (epoch seconds)."""
        data = self._read()
        return tuple(one for one in found if not _hidden(data.get(one.id), now))

    def hidden(self, found: Sequence[Suggestion], now: float) -> dict[str, float]:
        """Return id -> end of snooze (epoch seconds, infinite if dismissed) of each suggestion hidden at `now`."""
        data = self._read()
        return {
            one.id: math.inf if data[one.id] == _FOREVER else data[one.id]
            for one in found
            if _hidden(data.get(one.id), now)
        }

    def decided(self) -> frozenset[str]:
        """Return the ids of all dismissed or snoozed suggestions, due again or not."""
        return frozenset(self._read())

    def keep(self, suggestion: Suggestion) -> None:
        """Dismiss a suggestion for good."""
        self._set(suggestion.id, _FOREVER)

    def snooze(self, suggestion: Suggestion, until: float) -> None:
        """Hide a suggestion until `until` (epoch seconds)."""
        self._set(suggestion.id, until)

    def reopen(self, identifier: str) -> bool:
        """Undo a decision; returns False when there was none."""
        return self._set(identifier, None)

    def _read(self) -> dict[str, Any]:
        try:
            return self._records.read()
        except StateUnavailable as error:
            raise EditRefused(error.message, error.next_step) from error

    def _set(self, identifier: str, value: str | float | None) -> bool:
        try:
            return self._records.change(identifier, lambda _: value) is not None
        except StateUnavailable as error:
            raise EditRefused(error.message, error.next_step) from error


def _hidden(decision: object, now: float) -> bool:
    return decision == _FOREVER or (isinstance(decision, int | float) and now < decision)
