"""The doctor: every check as it comes, with what was seen and the one thing to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from memory_tui.text.display import one_line
from memory_tui.tui.actions import bindings
from memory_tui.tui.bridge import Tell
from memory_tui.tui.messages import Worked
from memory_tui.tui.screens.listing import ListingView
from memory_tui.tui.widgets.rows import Line, text

if TYPE_CHECKING:
    from memory_tui.doctor import Result

SIGNS: Mapping[str, tuple[str, str]] = {
    "failed": ("✗", "bad"),
    "no answer": ("?", "bad"),
    "warning": ("!", "warn"),
    "ok": ("✓", "good"),
    "skipped": ("-", "muted"),
}
"""Glyph and style of each state, the worst first."""


class DoctorView(ListingView):
    """What needs something first, then what is well."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("doctor"))
    PLACE = "doctor"
    TITLE_WORDS = "Doctor"
    WAITING = "Examining machine, notes, index, provider and settings ..."

    def look(self) -> None:
        """Examine everything, side by side."""
        engine = self.home.engine
        self._results: list[Result] = []
        self.show()
        if engine is None:
            return

        def run(tell: Tell) -> int:
            from memory_tui import doctor

            for result in doctor.examine(engine):
                tell(result)
            return len(doctor.CHECKS)

        self.home.bridge.follow("doctor", run)

    def do_again(self) -> None:
        """Examine everything again."""
        self.look()

    def worked(self, event: Worked) -> None:
        """One check more, or the end."""
        if event.kind != "doctor":
            return
        if not event.done:
            self._results.append(event.value)  # type: ignore[arg-type]
            self._found = self._results
        self.show()

    def subtitle(self, _found: object, /) -> str:
        """How many checks came to which end."""
        counts = {state: sum(result.finding.state == state for result in self._results) for state in SIGNS}
        return ", ".join(f"{count} {state}" for state, count in counts.items() if count)

    def lines(self, _found: object, width: int) -> list[Line]:
        """The worst first; evidence below the title, the fix below that."""
        order = list(SIGNS)
        written: list[Line] = []
        for result in sorted(self._results, key=lambda one: order.index(one.finding.state)):
            finding = result.finding
            glyph, style = SIGNS[finding.state]
            written.append(
                (
                    [
                        (f" {glyph} ", style),
                        (one_line(result.check.title), "strong"),
                        (f"  {result.check.group}", "muted"),
                    ],
                    result.check.key,
                )
            )
            written += text(one_line(finding.evidence), width, "", 3)
            written += text(f"Fix: {one_line(finding.fix)}", width, style, 3) if finding.fix else []
        return written

    def on_unmount(self) -> None:
        """Nobody waits for the other checks any more."""
        self.home.bridge.drop("doctor")
