"""The sessions view shows how close each session is to its memory flush."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_tui.core.sanitize import one_line
from memory_tui.tui.draw import fit
from memory_tui.tui.views.index.listing import Listing
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.rowlist import Line, text

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.openclaw.sessions import Nearness


_BAR = 20


class Flushes(Struct, frozen=True):
    """What the view shows: sessions, the last used first, today's log and whether it is there."""

    sessions: tuple[Nearness, ...]
    folder: str
    today: str
    written: bool


class SessionsView(View):
    """A bar a session."""

    PLACE = "sessions"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing = Listing(
            self,
            title="Sessions and their memory flush",
            waiting="Reading the sessions ...",
            gather=_flushes,
            lines=_sessions,
            summary=lambda found: f"{found.today} {'was written today' if found.written else 'is not written yet'}",
        )
        self.parts = (self.listing,)


def _flushes(engine: Engine) -> Flushes:
    """Every session of the agent."""
    from memory_tui.openclaw import prompt, sessions

    config = engine.plan.config
    now = dt.datetime.fromtimestamp(engine.now(), dt.UTC).astimezone(config.time_zone)
    today = prompt.daily(now.date())
    return Flushes(
        sessions.near(config), str(sessions.folder(config.agent)), today, (engine.plan.roots.workspace / today).exists()
    )


def _sessions(found: Flushes, width: int) -> list[Line]:
    """The last used first."""
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
