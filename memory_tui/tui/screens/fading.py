"""What age takes: hits of the question on screen and of saved ones that are about to fade, or have faded already."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType

from memory_tui.explain import wording
from memory_tui.text.display import one_line, safe
from memory_tui.tui.actions import bindings
from memory_tui.tui.bridge import Tell
from memory_tui.tui.measuring import Faded, find_fading
from memory_tui.tui.paint import Piece, fit, fit_path, plural
from memory_tui.tui.screens.report import Report
from memory_tui.tui.session import dated
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.rows import Line, Rows, text

if TYPE_CHECKING:
    from memory_tui.explain.fading import Fading
    from memory_tui.tui.screens.judging import Judging

HORIZON = 90
DECAY = "query.hybrid.temporalDecay.enabled"


class FadingView(Report):
    """A row a hit, soonest first; enter reads the note."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("fading"))
    PLACE = "fading"
    KIND = "fading"
    ABOUT_NOTES = True
    TITLE = f"Fading within {HORIZON} days"

    def __init__(self, search: Judging) -> None:
        super().__init__(search)
        self.faded: Faded | None = None

    def work(self) -> Callable[[Tell], object] | None:
        """The question on screen first, then the saved ones whose evidence is there."""
        tuning = self.home.tuning
        if tuning is None:
            return None
        answer, desk = self.search.answer, self.search.desk
        evidences = [answer.evidence] if answer is not None else []
        evidences += [case.evidence for case in desk.cases.values() if case.query.text != self.search.question]
        return find_fading(tuning.settings, [dated(evidence, tuning.days) for evidence in evidences], HORIZON)

    def came(self, value: object) -> None:
        """What is known by now."""
        if isinstance(value, Faded):
            self.faded = value

    def subtitle(self) -> str:
        """How many questions were looked at."""
        return f"over {plural(self.faded.questions, 'question')}" if self.faded is not None else ""

    def more_context(self) -> dict[str, bool]:
        """Whether decay is on besides."""
        return {**super().more_context(), "ages": self._ages}

    @property
    def _ages(self) -> bool:
        tuning = self.home.tuning
        return tuning is not None and tuning.settings.on(DECAY)

    def lines(self, width: int) -> Sequence[Line]:
        """Why nothing fades, or the list."""
        if self.home.tuning is not None and not self._ages:
            return [
                *text("Nothing fades: decay is off, so age does not count.", width, "strong"),
                *text("a switches decay on, to see what it would take; u takes that back.", width, "muted"),
            ]
        if self.faded is None:
            return text("Looking at the days ahead ...", width, "muted")
        if not self.faded.found:
            return text(f"Nothing that is recalled now is lost to age within {HORIZON} days.", width, "strong")
        head = f" {'when':<16}{'place':<7}{'note':<32}then"
        return [
            ([(fit(head, width), "muted")], None),
            *(self._row(number, fade, width) for number, fade in enumerate(self.faded.found)),
        ]

    def _row(self, number: int, fade: Fading, width: int) -> Line:
        start = dt.datetime.fromtimestamp(self._now, dt.UTC).date()
        when = f"in {fade.days} d, {start + dt.timedelta(days=fade.days):%b %d}" if fade.days else "lost already"
        lines = f":{fade.chunk.start_line}-{fade.chunk.end_line}"
        place = fit_path(safe(fade.chunk.path), 31 - len(lines)) + lines
        ordinal = wording.ordinal(fade.place)
        pieces: list[Piece] = [
            (f" {fit(when, 16)}", "bad" if not fade.days else "warn" if fade.days <= 30 else ""),
            (fit(ordinal if fade.days else f"({ordinal})", 7), ""),
            (fit(place, 32), ""),
        ]
        reason = one_line(wording.reason(fade.verdict))
        pieces.append((f"{reason}  ", "muted"))
        room = width - 57 - len(reason) - 2
        return [*pieces, (fit(one_line(fade.query, 200), room) if room > 8 else "", "muted")], number

    @property
    def _now(self) -> float:
        engine, tuning = self.home.engine, self.home.tuning
        return (engine.now() if engine else 0.0) + (tuning.days if tuning else 0) * 86_400

    @property
    def fade(self) -> Fading | None:
        """The hit under the cursor."""
        key = self.query_one(Rows).key
        return self.faded.found[key] if self.faded is not None and isinstance(key, int) else None

    def do_apply(self) -> None:
        """Switch decay on, to see what it takes."""
        tuning = self.home.tuning
        if tuning is not None:
            self.home.turn(tuning.set(DECAY, True))

    @on(RowList.Chosen)
    def _read(self) -> None:
        fade = self.fade
        if fade is not None:
            from memory_tui.tui.screens.reader import ReaderView

            self.app.push_screen(ReaderView(fade.chunk.path, (fade.chunk.start_line, fade.chunk.end_line)))

    def do_open(self) -> None:
        """Read the note at the lines of the hit."""
        self._read()

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The chunk under the cursor."""
        fade = self.fade
        return (fade.chunk.path, fade.chunk.start_line, fade.chunk.end_line) if fade is not None else None

    def line_in_note(self) -> int:
        """Its first line."""
        return self.fade.chunk.start_line if self.fade is not None else 1
