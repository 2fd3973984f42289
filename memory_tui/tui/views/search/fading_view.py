"""The fading view lists the hits that age will drop. It says when and at which gate."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.widget import Widget

from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.explain import wording
from memory_tui.tui.draw import Piece, fit, fit_path
from memory_tui.tui.judging import CURVE_DAYS, Faded, find_fading
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.tuning import dated
from memory_tui.tui.views.search.lab import Report
from memory_tui.tui.views.view import KnobHistory, View
from memory_tui.tui.widgets.curves import MOST, Curve, Curves, Picture
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import PostPart

if TYPE_CHECKING:
    from memory_tui.explain.decay import Ahead, Fading
    from memory_tui.tui.views.search.search_view import SearchView

HORIZON = 90
LETTERS = "ABCD"
TICKS = ((0, "today"), (45, "45 days"), (90, "90 days"), (135, "135 days"), (CURVE_DAYS, "180 days"))


def _told(sign: str, one: Ahead) -> str:
    """A curve in words."""
    when = f"leaves in about {one.leaves} days" if one.leaves is not None else f"stays for {CURVE_DAYS} days"
    place = f"{one_line(one.chunk.path)}:{one.chunk.start_line}"
    return f"{sign}  {place}  {when}, {one.scores[0][1]:.2f} → {one.scores[-1][1]:.2f}"


def _note_cells(width: int) -> int:
    """Cells for the name of a note, so that what becomes of the hit has room behind it."""
    return max(16, min(32, width - 40))


DECAY = "query.hybrid.temporalDecay.enabled"


class FadingView(View):
    """A row a hit, soonest first; enter reads the note."""

    PLACE = "fading"
    MORE_PLACES = ("fading", "notes", "report")

    def __init__(self, below: SearchView) -> None:
        super().__init__(below)
        self.search = below
        self.report = Report(self, self, f"Fading within {HORIZON} days")
        self.parts = (KnobHistory(self), self.report)
        self.faded: Faded | None = None
        self.curves = Curves("curves")

    def compose_view(self) -> Iterable[Widget]:
        """The curves over the list."""
        yield self.curves
        yield from super().compose_view()

    def on_mount(self) -> None:
        """Have the saved questions asked, whose hits fade as well."""
        super().on_mount()
        self.search.judge.measure()

    def work(self) -> Callable[[PostPart], object] | None:
        """The question on screen first, then the saved ones whose evidence is there."""
        tuning = self.home.tuning
        if tuning is None:
            return None
        answer, evaluation = self.search.shown.answer, self.search.judge.evaluation
        evidences = [answer.evidence] if answer is not None else []
        evidences += [case.evidence for case in evaluation.cases.values() if case.query.text != self.search.question]
        return find_fading(tuning.settings, [dated(evidence, tuning.days) for evidence in evidences], HORIZON)

    def arrived(self, value: Faded) -> None:
        """What is known by now."""
        self.faded = value
        self._draw()

    def _draw(self) -> None:
        """One curve a hit that fades, with the day it leaves; those that leave first in front."""
        faded, tuning = self.faded, self.home.tuning
        if faded is None or tuning is None:
            return
        moving = [one for one in faded.ahead if one.scores[-1][1] < one.scores[0][1]]
        shown = sorted(moving, key=lambda one: (one.leaves is None, one.leaves or 0, one.place))[:MOST]
        floor = float(tuning.settings.number("query.minScore"))
        scores = [score for one in shown for _, score in one.scores]
        # Without a minScore near them, curves would lie flat on a scale that begins at 0.
        low = max(0.0, min([floor or 1.0, *scores], default=0.0) - 0.02)
        picture = Picture(
            [
                Curve([(day / CURVE_DAYS, score) for day, score in one.scores], sign)
                for sign, one in zip(LETTERS, shown, strict=False)
            ],
            low,
            max([floor, *scores], default=1.0),
            [(day / CURVE_DAYS, words) for day, words in TICKS],
            [_told(sign, one) for sign, one in zip(LETTERS, shown, strict=False)]
            + [f"{plural(len(faded.ahead) - len(moving), 'hit')} of {len(faded.ahead)} never fade within 180 days"],
            (floor, f"minScore {floor:.2f}") if floor >= low else None,
        )
        self.curves.display = bool(shown)
        self.curves.show(picture, f"Scores over the next {CURVE_DAYS} days: {one_line(self.search.question, 60)}")

    def summary(self) -> str:
        """How many questions were looked at."""
        return f"over {plural(self.faded.questions, 'question')}" if self.faded is not None else ""

    @property
    def _ages(self) -> bool:
        tuning = self.home.tuning
        return tuning is not None and tuning.settings.on(DECAY)

    def report_lines(self, width: int) -> Sequence[Line]:
        """Why nothing fades, or the list."""
        if self.home.tuning is not None and not self._ages:
            return [
                *text("Nothing fades: decay is off.", width, "strong"),
                ([(f" Enter switches decay on to show what would fade; {key_of('undo')} undoes it.", "muted")], DECAY),
            ]
        if self.faded is None:
            return text("Looking at the days ahead ...", width, "muted")
        if not self.faded.found:
            return [
                *text(f"No hit of today fades within {HORIZON} days.", width, "strong"),
                *text(
                    f"In Search, {key_of('tune')} turns minScore and half-life; then more may fade.",
                    width,
                    "muted",
                ),
            ]
        head = f" {'when':<16}{'place':<7}{'note':<{_note_cells(width)}}then"
        return [
            ([(fit(head, width), "muted")], None),
            *(self._row(number, fade, width) for number, fade in enumerate(self.faded.found)),
        ]

    def _row(self, number: int, fade: Fading, width: int) -> Line:
        start = dt.datetime.fromtimestamp(self._now, dt.UTC).date()
        when = f"in {fade.days} d, {start + dt.timedelta(days=fade.days):%b %d}" if fade.days else "lost already"
        lines = f":{fade.chunk.start_line}-{fade.chunk.end_line}"
        cells = _note_cells(width)
        place = fit_path(safe(fade.chunk.path), cells - 1 - len(lines)) + lines
        ordinal = wording.ordinal(fade.place)
        pieces: list[Piece] = [
            (f" {fit(when, 16)}", "bad" if not fade.days else "warn" if fade.days <= 30 else ""),
            (fit(ordinal if fade.days else f"({ordinal})", 7), ""),
            (fit(place, cells), ""),
        ]
        reason = one_line(wording.reason(fade.verdict))
        pieces.append((f"{reason}  ", "muted"))
        room = width - 25 - cells - len(reason) - 2
        return [*pieces, (fit(one_line(fade.query, 200), room) if room > 8 else "", "muted")], number

    @property
    def _now(self) -> float:
        engine, tuning = self.home.engine, self.home.tuning
        return (engine.now() if engine else 0.0) + (tuning.days if tuning else 0) * 86_400

    @property
    def fade(self) -> Fading | None:
        """The hit under the cursor."""
        key = self.report.rows.key
        return self.faded.found[key] if self.faded is not None and isinstance(key, int) else None

    @on(RowList.Chosen)
    def _read(self) -> None:
        tuning, fade = self.home.tuning, self.fade
        if tuning is not None and self.report.rows.key == DECAY:
            self.home.turn(tuning.set(DECAY, True))
        if fade is not None:
            self.read_note(fade.chunk.path, (fade.chunk.start_line, fade.chunk.end_line))

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
