"""Per session transcript, how near its memory flush is, and whether today's log was written."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from memory_tui.text.display import one_line
from memory_tui.tui.actions import bindings
from memory_tui.tui.paint import fit
from memory_tui.tui.screens.listing import ListingView
from memory_tui.tui.widgets.rows import Line, text

if TYPE_CHECKING:
    from memory_tui.agent.sessions import Nearness
    from memory_tui.engine import Engine

_BAR = 20


@dataclass(frozen=True, slots=True)
class Flushes:
    """What the view shows: sessions, the last used first, today's log and whether it is there."""

    sessions: tuple[Nearness, ...]
    folder: str
    today: str
    written: bool


class SessionsView(ListingView):
    """A bar a session."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("sessions"))
    PLACE = "sessions"
    TITLE_WORDS = "Sessions and their memory flush"
    WAITING = "Reading the sessions ..."

    @staticmethod
    def gather(engine: Engine) -> Flushes:
        """Every session of the agent."""
        from memory_tui.agent import prompt, sessions
        from memory_tui.agent.session_hook import time_zone

        config = engine.plan.config
        now = dt.datetime.fromtimestamp(engine.now(), dt.UTC).astimezone(time_zone(config))
        today = prompt.daily(now.date())
        return Flushes(
            sessions.near(config), str(sessions.folder(config.agent)), today, (engine.workspace / today).exists()
        )

    def do_again(self) -> None:
        """Read the sessions again."""
        self.look()

    def subtitle(self, found: object, /) -> str:
        """Whether today's log is there."""
        if not isinstance(found, Flushes):
            return ""
        return f"{found.today} {'was written today' if found.written else 'is not written yet'}"

    def lines(self, found: object, width: int) -> list[Line]:
        """The last used first."""
        if not isinstance(found, Flushes):
            return []
        if not found.sessions:
            return [
                *text("", width),
                *text("No session of this agent has a transcript.", width, "strong"),
                *text(f"They would be in {one_line(found.folder)}.", width, "muted"),
            ]
        written: list[Line] = []
        for one in found.sessions:
            decision = one.decision
            style = "warn" if decision.flush else ""
            written.append(
                (
                    [
                        (f" {_bar(one)} ", style),
                        (fit(one_line(one.session), 36), "strong"),
                        (f"  used {time.strftime('%Y-%m-%d %H:%M', time.localtime(one.modified))}", "muted"),
                    ],
                    one.session,
                )
            )
            said = f"{'Flush now' if decision.flush else 'No flush'}: {decision.detail}."
            flushed = (
                ""
                if one.flushed_at is None
                else f" Flushed last at {time.strftime('%Y-%m-%d %H:%M', time.localtime(one.flushed_at))}."
            )
            written += text(f"{said}{flushed}", width, style or "muted", _BAR + 3)
        return written


def _bar(one: Nearness) -> str:
    """How much of the way to the flush is gone, as blocks; dots where nobody knows."""
    decision = one.decision
    if decision.flush:
        return "█" * _BAR
    if decision.tokens is None or decision.threshold <= 0:
        return "·" * _BAR
    full = min(_BAR, decision.tokens * _BAR // decision.threshold)
    return "█" * full + "░" * (_BAR - full)
