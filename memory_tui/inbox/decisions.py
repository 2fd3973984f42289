"""Decisions about inbox entries: dismissed for good, or snoozed until a day."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_tui.core import atomic, locks
from memory_tui.core.errors import EditRefused, IndexBusy, IndexUnavailable
from memory_tui.inbox.entries import Suggestion

_FOREVER = "keep"


class Decisions:
    """The decisions of one workspace, in `folder`; several processes may decide at once. May raise EditRefused."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "inbox.json"

    def open(self, found: Sequence[Suggestion], now: float) -> tuple[Suggestion, ...]:
        """Those of `found` that are neither kept nor put off at `now` (epoch seconds)."""
        data = self._read()
        return tuple(one for one in found if not _hidden(data.get(one.id), now))

    def hidden(self, found: Sequence[Suggestion], now: float) -> dict[str, float]:
        """Until when (epoch seconds, infinite for good) each of `found` that is not open at `now` is put off, by id."""
        data = self._read()
        return {
            one.id: math.inf if data[one.id] == _FOREVER else data[one.id]
            for one in found
            if _hidden(data.get(one.id), now)
        }

    def decided(self) -> frozenset[str]:
        """The ids of everything that was kept or put off, due again or not."""
        return frozenset(self._read())

    def keep(self, suggestion: Suggestion) -> None:
        """Never show it again."""
        self._set(suggestion.id, _FOREVER)

    def snooze(self, suggestion: Suggestion, until: float) -> None:
        """Show it again at `until`, epoch seconds."""
        self._set(suggestion.id, until)

    def reopen(self, identifier: str) -> bool:
        """Take a decision back; False when there was none."""
        return self._set(identifier, None)

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise EditRefused(
                f"{self._path} cannot be read: {error}.", "Delete it; what was kept is suggested again."
            ) from error
        return data if isinstance(data, dict) else {}

    def _set(self, identifier: str, value: str | float | None) -> bool:
        try:
            atomic.make_folder(self._path.parent)
            with locks.wait_for(self._path, threading.Event()):
                data = self._read()
                known = identifier in data
                data.pop(identifier, None)
                if value is not None:
                    data[identifier] = value
                atomic.replace_file(self._path, json.dumps(data).encode("ascii"))
        except IndexBusy as error:
            raise EditRefused(
                f"{self._path} is being written by another memory-tui.", "Try again in a moment."
            ) from error
        except IndexUnavailable as error:
            raise EditRefused(error.message, "Check permissions and free space.") from error
        except OSError as error:
            raise EditRefused(
                f"{self._path} cannot be written: {error.strerror or error}.", "Check permissions and free space."
            ) from error
        return known


def _hidden(decision: object, now: float) -> bool:
    return decision == _FOREVER or (isinstance(decision, int | float) and now < decision)
