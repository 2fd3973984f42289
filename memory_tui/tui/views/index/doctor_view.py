"""The doctor view shows what each check finds. It examines machine, notes, index, provider and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from memory_tui.core.sanitize import one_line
from memory_tui.tui.draw import Piece
from memory_tui.tui.views.index.listing import Listing
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.rowlist import Line, text
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.doctor.check import Result
    from memory_tui.engine.engine import Engine


SIGNS: Mapping[str, tuple[str, str]] = {
    "failed": ("✗", "bad"),
    "no answer": ("?", "bad"),
    "warning": ("!", "warn"),
    "ok": ("✓", "good"),
    "skipped": ("-", "muted"),
}
"""Glyph and style of each state, the worst first."""


class DoctorView(View):
    """What needs something first, then what is well."""

    PLACE = "doctor"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing: Listing[list[Result]] = Listing(
            self,
            title="Doctor",
            waiting="Examining machine, notes, index, provider and settings ...",
            gather=None,
            lines=_results,
            summary=_counts,
        )
        self.parts = (self.listing,)

    def on_mount(self) -> None:
        """Begin."""
        super().on_mount()
        self.do_again()

    @task("doctor")
    async def do_again(self) -> None:
        """Examine everything, side by side, and show each check as it ends."""
        engine = self.home.engine
        if engine is None:
            return
        results: list[Result] = []
        async for result in self.home.jobs.parts(_examine(engine)):
            if result is not None:
                results.append(result)
                self.listing.found = results
            self.listing.show()


def _examine(engine: Engine) -> Callable[[PostPart], None]:
    def run(post: PostPart) -> None:
        from memory_tui.doctor import runner

        for result in runner.examine(engine):
            post(result)

    return run


def _counts(results: list[Result]) -> str:
    """How many checks came to which end."""
    counts = {state: sum(result.finding.state == state for result in results) for state in SIGNS}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _results(results: list[Result], width: int) -> list[Line]:
    """The worst first; evidence below the title, the fix below that."""
    order = list(SIGNS)
    written: list[Line] = []
    for result in sorted(results, key=lambda one: order.index(one.finding.state)):
        finding = result.finding
        glyph, style = SIGNS[finding.state]
        title: list[Piece] = [
            (f" {glyph} ", style),
            (one_line(result.check.title), "strong"),
            (f"  {result.check.group}", "muted"),
        ]
        written.append((title, result.check.key))
        written += text(one_line(finding.evidence), width, "", 3)
        written += text(f"Fix: {one_line(finding.fix)}", width, style, 3) if finding.fix else []
    return written
