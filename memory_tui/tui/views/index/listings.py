"""A listing is what a worker thread gathered, as rows. Doctor, sessions, storage and dreams are one each."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct
from textual.widget import Widget

from memory_tui.errors import MemoryTuiError
from memory_tui.sanitize import one_line
from memory_tui.tui.draw import Piece, fit
from memory_tui.tui.views.view import Part, View, sentence_of
from memory_tui.tui.widgets.index_lists import home
from memory_tui.tui.widgets.rowlist import Line, Rows, text
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.doctor import Result
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import Status, WriterProcess
    from memory_tui.openclaw.flush import Nearness


F = TypeVar("F")


class Listing(Part, Generic[F]):
    """A list of what `gather` finds on a worker thread, written by `lines`; `summary` stands in the frame.

    `arrived` is called with what is found first. Without `gather` the view itself fills `found`.
    """

    def __init__(
        self,
        view: View,
        *,
        title: str,
        waiting: str,
        gather: Callable[[Engine], F] | None,
        lines: Callable[[F, int], list[Line]],
        summary: Callable[[F], str] = lambda _found: "",
        arrived: Callable[[F], None] = lambda _found: None,
    ) -> None:
        super().__init__(view)
        self._title, self._waiting = title, waiting
        self._gather, self._lines, self._summary, self._arrived = gather, lines, summary, arrived
        self._problem = ""
        self.rows = Rows(id="listing")
        self.found: F | None = None

    def compose(self) -> Iterable[Widget]:
        """The list alone."""
        yield self.rows

    def mounted(self) -> None:
        """Begin."""
        self.do_again()

    @task("listing")
    async def do_again(self) -> None:
        """Gather, once more where that was done before; what was there stays until then."""
        self.show()
        if self._gather is None:
            return
        reply = await self.home.jobs.attempt(self._gather)
        if isinstance(reply, MemoryTuiError):
            self._problem = sentence_of(reply)
            self.show()
        else:
            first, self._problem, self.found = self.found is None, "", reply
            self.show()
            if first:
                self._arrived(reply)

    def show(self) -> None:
        """Draw what is known by now."""
        self.rows.show(self._write, self._title, "" if self.found is None else self._summary(self.found))
        self.view.update_hints()

    def _write(self, width: int) -> list[Line]:
        if self._problem:
            return [*text("", width), *text(one_line(self._problem), width, "bad")]
        return text(self._waiting, width, "muted") if self.found is None else self._lines(self.found, width)


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
        from memory_tui import doctor

        for result in doctor.examine(engine, doctor.checks_of(engine)):
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
    for result in sorted(results, key=lambda row: order.index(row.finding.state)):
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
            summary=lambda reply: f"{reply.today} {'was written today' if reply.written else 'is not written yet'}",
        )
        self.parts = (self.listing,)


def _flushes(engine: Engine) -> Flushes:
    """Every session of the agent."""
    from memory_tui.config.places import session_folder
    from memory_tui.openclaw import flush, prompt

    config = engine.plan.config
    now = dt.datetime.fromtimestamp(engine.plan.clock(), dt.UTC).astimezone(config.time_zone)
    today = prompt.daily(now.date())
    written = (engine.plan.roots.workspace / today).exists()
    return Flushes(flush.near(config), str(session_folder(config.agent.id)), today, written)


def _sessions(found: Flushes, width: int) -> list[Line]:
    """The last used first."""
    if not found.sessions:
        return [
            *text("", width),
            *text("No session of this agent has a transcript.", width, "strong"),
            *text(f"They would be in {one_line(found.folder)}.", width, "muted"),
        ]
    written: list[Line] = []
    for row in found.sessions:
        decision = row.decision
        style = "warn" if decision.flush else ""
        written.append(
            (
                [
                    (f" {_bar(row)} ", style),
                    (fit(one_line(row.session), 36), "strong"),
                    (f"  used {time.strftime('%Y-%m-%d %H:%M', time.localtime(row.modified))}", "muted"),
                ],
                row.session,
            )
        )
        words = f"{'Flush now' if decision.flush else 'No flush'}: {decision.detail}."
        flushed = (
            ""
            if row.flushed_at is None
            else f" Flushed last at {time.strftime('%Y-%m-%d %H:%M', time.localtime(row.flushed_at))}."
        )
        written += text(f"{words}{flushed}", width, style or "muted", _BAR + 3)
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


class Storage(Struct, frozen=True):
    """What the view shows, gathered in one go."""

    status: Status
    tables: list[tuple[str, int]]


def _measured(engine: Engine) -> Storage:

    return Storage(engine.status(), engine.search.tables())


class StorageView(View):
    """Tables, files, processes, cost."""

    PLACE = "storage"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing = Listing(
            self,
            title="The index file",
            waiting="Measuring the index ...",
            gather=_measured,
            lines=_storage,
            summary=_chunk_size,
        )
        self.parts = (self.listing,)


def _chunk_size(found: Storage) -> str:
    """The size per chunk."""
    return f"{found.status.db_bytes / found.status.chunks / 1000:.1f} KB a chunk" if found.status.chunks else ""


def _storage(found: Storage, width: int) -> list[Line]:
    """Tables first."""
    status = found.status
    written = text("Tables", width, "head")
    for name, size in found.tables:
        written.append(([(f" {fit(name, 24)}", ""), (f"{size / 1e6:>10.2f} MB", "strong")], name))
    written += [*text("", width), *text("Files", width, "head")]
    for file in status.storage:
        written += text(f"{file.bytes / 1e6:>8.2f} MB  {home(one_line(file.path))} ({file.what})", width)
    written += [*text("", width), *text("Writers", width, "head")]
    written += text(_who("The index is kept up to date by", status.keeper), width)
    written += text(_who("It is written by", status.writer), width)
    return written


def _who(what: str, writing: WriterProcess | None) -> str:
    if writing is None:
        return f"{what} nobody at the moment."
    since = time.strftime("%H:%M:%S", time.localtime(writing.since))
    return f"{what} {'this app' if writing.ours else f'process {writing.pid}'}, since {since}."
