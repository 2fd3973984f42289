"""Lines that questions asked in the app recalled: marked at once, and written down for the next time it is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.errors import MemoryTuiError

if TYPE_CHECKING:
    from memory_tui.agent.marks import Span
    from memory_tui.engine import Engine
    from memory_tui.search.trace import Trace


class Marking:
    """What was recalled since the app was opened, by note."""

    def __init__(self) -> None:
        self._lines: dict[str, set[int]] = {}
        self._last: tuple[Span, ...] = ()

    def lines(self, path: str) -> frozenset[int]:
        """The lines (from 1) of the note `path`."""
        return frozenset(self._lines.get(path, ()))

    def clear(self) -> None:
        """Know nothing."""
        self._lines.clear()
        self._last = ()

    def took(self, trace: Trace) -> bool:
        """Mark what an answer gave; False when it is what the last one gave."""
        spans = tuple((hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line) for hit in trace.recalled)
        for path, first, last in spans:
            self._lines.setdefault(path, set()).update(range(first, last + 1))
        new = bool(spans) and spans != self._last
        self._last = spans or self._last
        return new

    def writing(self, engine: Engine) -> Callable[[], str] | None:
        """What writes the last answer down, for a worker thread; it returns what went wrong. None where not wanted."""
        if not engine.settings.on("recall.marks"):
            return None
        workspace, spans, at = engine.workspace, self._last, engine.now()
        return lambda: _write(workspace, spans, at)


def _write(workspace: Path, spans: tuple[Span, ...], at: float) -> str:
    from memory_tui.agent import marks

    try:
        marks.append(marks.place(workspace), spans, at)
    except OSError as error:
        return f"The marks of this answer last until the app is closed: {error.strerror or error}."
    except MemoryTuiError as error:
        return f"The marks of this answer last until the app is closed: {error.message} {error.next_step}"
    return ""
