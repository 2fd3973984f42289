"""The noise floor: what unrelated questions score, on one axis with what is right and with the hits on screen."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from memory_tui.explain import wording
from memory_tui.settings import BY_KEY
from memory_tui.tui import paint
from memory_tui.tui.actions import bindings
from memory_tui.tui.bridge import Tell
from memory_tui.tui.measuring import Noise, measure_noise
from memory_tui.tui.paint import Piece, fit
from memory_tui.tui.screens.report import Report
from memory_tui.tui.session import stepped
from memory_tui.tui.widgets.rows import Line, text

if TYPE_CHECKING:
    from memory_tui.explain.noise import NoiseFloor, Trade
    from memory_tui.tui.screens.judging import Judging

FLOOR = BY_KEY["query.minScore"]
BUCKETS = 20
FEWEST = 8
"""Judged questions without which lines out of the notes tell better what is right."""
NONSENSE = "░"
"""The bar of unrelated questions."""


class NoiseView(Report):
    """A row for each twentieth of the score; minScore is a line across it, moved with h and l."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("noise"))
    PLACE = "noise"
    KIND = "noise"
    TITLE = "Noise floor"

    def __init__(self, search: Judging) -> None:
        super().__init__(search)
        self.noise: Noise | None = None

    def work(self) -> Callable[[Tell], object] | None:
        """Ask once, measure for every turn."""
        engine, tuning = self.home.engine, self.home.tuning
        if engine is None or tuning is None:
            return None
        desk = self.search.desk
        cases = [desk.cases[query.text] for query in desk.judged if query.text in desk.cases]
        enough = cases if len(cases) >= FEWEST else ()
        return measure_noise(engine, tuning.settings, enough, self.noise.probes if self.noise else None)

    def came(self, value: object) -> None:
        """The measured floor."""
        if isinstance(value, Noise):
            first, self.noise = self.noise is None, value
            if first:
                # The questions stay while minScore is moved; looking through them for garbage would stop the screen.
                gc.freeze()

    def subtitle(self) -> str:
        """What the right chunks were told by."""
        if self.noise is None:
            return ""
        return "right chunks by your labels" if self.noise.floor.labelled else "right chunks by lines out of the notes"

    # --- lines ---------------------------------------------------------------------------------------------------

    def lines(self, width: int) -> Sequence[Line]:
        """Verdicts first, then the axis."""
        if self.noise is None:
            return text("Unrelated questions are asked, to see what they score ...", width, "muted")
        floor = self.noise.floor
        found = [*text(f"now        {_trade(floor.now)}", width, "strong")]
        if floor.suggested is not None:
            found += text(f"suggested  {_trade(floor.suggested)}  a sets it", width, "good")
        else:
            found += text("suggested  none: no minScore is worth what it would lose", width, "warn")
        for doubt in floor.doubts:
            found += text(f"! {wording.doubt(doubt)}", width, "warn")
        found += text(
            f"Unrelated: median {floor.percentile(0.5):.3f}, 95 % below {floor.percentile(0.95):.3f}; "
            f"cosines {_span(floor.cosines)}",
            width,
            "muted",
        )
        return [*found, ([], None), *self._axis(floor, width)]

    def _axis(self, floor: NoiseFloor, width: int) -> list[Line]:
        room = max(8, (width - 34) // 2)
        counts = [_histogram(scores) for scores in (floor.nonsense, floor.related)]
        most = max(max(part) for part in counts) or 1
        hits = self._hits()
        head: list[Piece] = [
            (fit(" score", 7), "muted"),
            (fit(f"{len(floor.nonsense)} unrelated", room), "bad"),
            (fit(f"{len(floor.related)} right chunks", room), "good"),
            (fit("passing", 12), "muted"),
            ("hits here", "muted"),
        ]
        rows: list[Line] = [(head, None)]
        gate = _bucket(floor.now.min_score)
        top = max([gate, *hits, *(at for part in counts for at in range(BUCKETS) if part[at])])
        for at in reversed(range(top + 1)):
            passing = floor.curve[min(len(floor.curve) - 1, round(at / BUCKETS * (len(floor.curve) - 1)))]
            rows.append(
                (
                    [
                        (f" {at / BUCKETS:4.2f}  ", "muted"),
                        (_bar(NONSENSE, counts[0][at], most, room), "bad"),
                        (_bar(paint.TEXT, counts[1][at], most, room), "good"),
                        (f"{passing.nonsense:4.0%} {passing.related:4.0%}   ", "muted"),
                        (hits.get(at, ""), "strong"),
                    ],
                    None,
                )
            )
            if at == gate:
                label = f"── minScore {floor.now.min_score:.2f} "
                rows.append(([(label, "mark"), ("─" * max(0, width - len(label)), "rule")], None))
        return rows

    def _hits(self) -> dict[int, str]:
        """The places of the hits on screen, by bucket."""
        trace = self.search.trace
        found: dict[int, list[str]] = {}
        for place, hit in enumerate(trace.recalled if trace is not None else (), 1):
            found.setdefault(_bucket(hit.score), []).append(str(place))
        return {at: " ".join(places[:4]) + (" …" if len(places) > 4 else "") for at, places in found.items()}

    # --- actions -------------------------------------------------------------------------------------------------

    def _set(self, value: float) -> None:
        if self.home.tuning is not None:
            self.home.turn(self.home.tuning.set(FLOOR.key, value))

    def _step(self, direction: int) -> None:
        if self.home.tuning is not None:
            self._set(float(stepped(FLOOR, self.home.tuning.settings.values[FLOOR.key].value, direction, fine=True)))

    def do_less(self) -> None:
        """A lower minScore."""
        self._step(-1)

    def do_more(self) -> None:
        """A higher minScore."""
        self._step(1)

    def do_apply(self) -> None:
        """Set the suggested minScore."""
        suggested = self.noise.floor.suggested if self.noise is not None else None
        if suggested is None:
            self.say("There is no minScore to suggest: none keeps noise out without losing more than it is worth.")
        else:
            self._set(suggested.min_score)
            self.say(f"Set: minScore {suggested.min_score:.2f}. u takes it back.")


def _trade(trade: Trade) -> str:
    return (
        f"minScore {trade.min_score:.2f}: {trade.nonsense:.0%} of unrelated questions recall something, "
        f"{trade.related:.0%} of the right chunks reach it"
    )


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}" if values else "none"


def _bucket(score: float) -> int:
    return min(BUCKETS - 1, max(0, int(score * BUCKETS + 1e-9)))


def _histogram(scores: Sequence[float]) -> list[int]:
    found = [0] * BUCKETS
    for score in scores:
        found[_bucket(score)] += 1
    return found


def _bar(glyph: str, count: int, most: int, room: int) -> str:
    """A bar with its count behind it; never empty where something is."""
    if not count:
        return " " * room
    length = max(1, round(count / most * (room - 5)))
    return f"{glyph * length} {count}".ljust(room)
