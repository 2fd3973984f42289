"""The state of the engine, read once by a worker for every widget."""

from __future__ import annotations

import datetime as dt
import os
from collections import deque
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import profiles
from memory_tui.events import Event, FileFailed, FileIndexed, FileRemoved, WatchChanged
from memory_tui.search.trace import Mode
from memory_tui.tui.action import READ_ONLY
from memory_tui.workspace.days import note_date
from memory_tui.workspace.roots import RootState, lost, root_of

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import FileRow, Status
    from memory_tui.index.sync import FileState
    from memory_tui.recalls.connected_agents import AgentRanking


KEPT = 2000
"""Events that are remembered."""


class Aging(Struct, frozen=True):
    """The rule in force: `rule` is multiply or add (see profiles), `half_life` in days; `now` in epoch seconds.

    `bonus` is the most that being recent adds, where the rule adds.
    """

    rule: str
    on: bool
    half_life: float
    now: float
    bonus: float = 0.0

    def days(self, row: FileRow) -> float | None:
        """The age that a search counts; None for notes that do not age."""
        if self.rule == "multiply":
            if row.source == "sessions":
                return None
            dated = note_date(row.path)
            day = dated.day
            if dated.basis == "evergreen":
                return None
        else:
            day = row.day
            if day is None and row.source != "sessions":
                return None
        since = row.mtime if day is None else dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp()
        return max(0.0, (self.now - since) / 86_400)

    def factor(self, row: FileRow) -> float | None:
        """exp(-ln 2 / half-life x age), 1 for what does not age; None while decay is off."""
        if not self.on:
            return None
        # The first frame does without numbers, and without what they take to import.
        from memory_tui.search.formulas import left_by_age

        return left_by_age(self.days(row), self.half_life)


RATES, QUESTIONS = 60, 100
"""Rates of indexing and times of questions that are kept."""


class Pace(Struct, frozen=True):
    """How fast files are indexed (files a second, while they are) and questions are answered (milliseconds)."""

    rates: deque[float] = field(default_factory=lambda: deque(maxlen=RATES))
    answered: deque[float] = field(default_factory=lambda: deque(maxlen=QUESTIONS))


class PartStatus(Struct, frozen=True):
    """One part of the machinery: its name in words, whether it works, and why not."""

    words: str
    ok: bool
    detail: str = ""


class Facts(Struct, frozen=True):
    """The status, and what the screen adds to it: every note, how notes age, whether they can be written."""

    status: Status
    rows: tuple[FileRow, ...]
    unwritable: str
    """Why notes cannot be changed, as a sentence; empty when they can."""
    index_moved: bool
    """Whether the index is a temporary file, because it cannot be written in its own place."""
    today: date
    aging: Aging
    agents: tuple[AgentRanking, ...] = ()
    """How the answers of the agents that ask this memory are ranked."""
    doubt: str = ""
    """Why nobody knows whether all this is still so; empty where it is known."""

    @property
    def mode(self) -> Mode:
        """What queries are answered by, before one is asked; an index with no vector at all has only words."""
        status = self.status
        return "keywords only" if status.chunks and not status.embedded else status.who.mode

    @property
    def failed(self) -> tuple[FileState, ...]:
        """Notes that could not be indexed, for any reason."""
        freshness = self.status.freshness
        return (*freshness.failed, *freshness.unsettled, *freshness.missing)

    @property
    def vector(self) -> PartStatus:
        """What compares vectors."""
        if self.status.chunks and not self.status.embedded:
            return PartStatus("no vectors", True, "nothing is embedded")
        vector = self.status.vector
        dims = f" {vector.dims}d" if vector.dims else ""
        return PartStatus(("vec0" if vector.engine.startswith("sqlite-vec") else "numpy") + dims, True, vector.engine)

    @property
    def text(self) -> PartStatus:
        """What matches words."""
        return PartStatus("fts5", self.status.fts.available, self.status.fts.engine)

    @property
    def provider(self) -> PartStatus:
        """Who makes the vectors."""
        who = self.status.who
        return PartStatus(who.label, who.fine, who.detail if who.fine else who.reason)

    @property
    def requested(self) -> str:
        """The provider that was asked for, and where."""
        return f"{self.status.requested_provider} ({self.status.provider_origin})"

    @property
    def model(self) -> str:
        """The model that makes vectors now, else the one that made those of the index."""
        return self.status.who.model or self.status.model

    @property
    def keeper(self) -> str:
        """Which other process keeps the index up to date; empty where it is this one or none."""
        keeper = self.status.keeper
        return f"process {keeper.pid}" if keeper is not None and not keeper.ours else ""

    @property
    def trust(self) -> dict[str, str]:
        """The state of each note in OpenClaw's ledger, by path; empty where it keeps none."""
        return {file.path: file.state for file in self.status.trust.files} if self.status.trust else {}

    @property
    def shrink(self) -> str:
        """Why notes that vanished are kept until a person agrees; empty where none are."""
        shrink = self.status.freshness.shrink
        if shrink is None:
            return ""
        return (
            f"{shrink.missing:,} of {shrink.known:,} notes vanished at once: they stay in the index until you "
            "agree (enter in this pane)"
        )

    @property
    def lost(self) -> tuple[RootState, ...]:
        """The roots of which something is to be said, the most important first."""
        return lost(self.status.roots)

    @property
    def lost_notes(self) -> RootState | None:
        """Why no note of the workspace can be read; None where they can."""
        return next((root for root in self.lost if root.main and not root.readable), None)

    def beside(self, roots: tuple[RootState, ...]) -> Facts:
        """These facts when the roots are as `roots` say: no note is fresh that cannot be read."""
        if roots == self.status.roots:
            return self
        rows = tuple(_unread(row, root_of(row.path, roots)) for row in self.rows)
        freshness = replace(self.status.freshness, fresh=sum(row.state == "fresh" for row in rows))
        return replace(self, status=replace(self.status, roots=roots, freshness=freshness), rows=rows)

    def after(self, news: Sequence[Event]) -> Facts:
        """These facts with what `news` say of single files and the watcher; counts follow with the next gathering."""
        text: dict[str, tuple[str, str, int | None]] = {}
        status = self.status
        watching, detail = status.watching, status.watch_detail
        for event in news:
            match event:
                case FileIndexed():
                    text[event.path] = ("fresh", "", event.chunks)
                case FileFailed():
                    text[event.path] = ("failed", event.reason, None)
                case FileRemoved():
                    text[event.path] = ("removed", "", None)
                case WatchChanged():
                    watching, detail = event.on, event.detail
                case _:
                    pass
        if not text:
            return replace(self, status=replace(status, watching=watching, watch_detail=detail))
        rows = tuple(_told(row, text.get(row.path)) for row in self.rows if text.get(row.path, ("",))[0] != "removed")
        stale = {
            path: note for path, note in status.freshness.stale.items() if note.state != "pending" or path not in text
        }
        status = replace(
            status,
            watching=watching,
            watch_detail=detail,
            chunks=sum(row.chunks for row in rows),
            files=sum(row.chunks > 0 or row.state == "fresh" for row in rows),
            freshness=replace(status.freshness, stale=stale),
        )
        return replace(self, status=status, rows=rows)


def _told(row: FileRow, told: tuple[str, str, int | None] | None) -> FileRow:
    if told is None:
        return row
    state, detail, chunks = told
    return replace(row, state=state, detail=detail, chunks=row.chunks if chunks is None else chunks)


def _unread(row: FileRow, root: RootState | None) -> FileRow:
    if root is None or root.readable or row.state != "fresh":
        return row
    return replace(row, state="missing root", detail=root.detail)


def gather(engine: Engine) -> Facts:
    """The facts as they are now; looks at the disk, so for worker threads only. Raises MemoryTuiError."""
    from memory_tui.recalls import connected_agents

    status = engine.status()
    return Facts(
        status=status,
        rows=engine.notes.files(),
        unwritable=_unwritable(status),
        index_moved=status.db_path != os.path.realpath(engine.plan.index),
        today=datetime.fromtimestamp(engine.plan.clock(), UTC).astimezone(engine.plan.config.time_zone).date(),
        aging=_aging(engine),
        agents=connected_agents.rankings(engine.plan),
    )


def _unwritable(status: Status) -> str:
    if status.read_only:
        return READ_ONLY
    return "" if os.access(status.workspace_dir, os.W_OK) else "You may not write to the folder of the notes."


def _aging(engine: Engine) -> Aging:
    settings = engine.plan.settings
    return Aging(
        profiles.get(settings.word("profile")).age,
        settings.on("query.hybrid.temporalDecay.enabled"),
        settings.number("query.hybrid.temporalDecay.halfLifeDays"),
        engine.plan.clock(),
        settings.number("recency.weight"),
    )
