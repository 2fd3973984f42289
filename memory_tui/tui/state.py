"""The state of the engine, read once by a worker for every widget."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from memory_tui.core import profiles
from memory_tui.core.events import Event, FileFailed, FileIndexed, FileRemoved, WatchChanged
from memory_tui.search.trace import Mode, Notice
from memory_tui.workspace import root_state
from memory_tui.workspace.notes import note_date
from memory_tui.workspace.root_state import RootState

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import FileRow, Status
    from memory_tui.providers.serving import Who
    from memory_tui.source.note_state import FileState
    from memory_tui.workspace.scan import LeftOut


@dataclass(frozen=True, slots=True)
class Aging:
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
        days = self.days(row)
        return 1.0 if days is None else math.exp(-math.log(2) / self.half_life * days)


def age_word(days: float | None) -> str:
    """An age in four characters at most: `ever`, `0d`, `170d`, `3y`."""
    if days is None:
        return "ever"
    if days < 1000:
        return f"{int(days)}d"
    return f"{int(days / 365.25)}y"


def effect_word(aging: Aging, factor: float | None) -> str:
    """What age does to a score, in four characters: `×.89` of it is left, `+.02` is added; empty while decay is off."""
    if factor is None:
        return ""
    sign, value = ("×", factor) if aging.rule == "multiply" else ("+", factor * aging.bonus)
    return f"{sign}1" if value >= 0.995 else f"{sign}.{round(value * 100):02}"


def size_word(size: int) -> str:
    """Bytes in four characters: `870`, `1.2k`, `34k`, `1.2M`."""
    if size < 1000:
        return str(size)
    value, unit = (size / 1000, "k") if size < 999_500 else (size / 1_000_000, "M")
    return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part of the machinery: its name in words, whether it works, and why not."""

    words: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the truth bar, the file tree and the index view show."""

    workspace: str
    read_only: bool
    unwritable: str
    """Why notes cannot be changed, as a sentence; empty when they can."""
    profile: str
    profile_origin: str
    mode: Mode
    chunks: int
    files: int
    embedded: int
    on_disk: int
    fresh: int
    rows: tuple[FileRow, ...]
    pending: tuple[FileState, ...]
    failed: tuple[FileState, ...]
    left_out: tuple[LeftOut, ...]
    vector: PartStatus
    text: PartStatus
    who: Who
    provider: PartStatus
    requested: str
    model: str
    watching: bool
    watch_detail: str
    index_file: str
    index_moved: bool
    """Whether that is a temporary file, because the index cannot be written in its own place."""
    index_bytes: int
    cached: int
    config: str
    agent: str
    agents: tuple[str, ...]
    today: date
    aging: Aging
    notices: tuple[Notice, ...]
    paused: bool = False
    keeper: str = ""
    """Which other process keeps the index up to date; empty where it is this one or none."""
    shrink: str = ""
    """Why notes that vanished are kept until a person agrees; empty where none are."""
    roots: tuple[RootState, ...] = ()
    """The workspace, and every other place where notes are read: whether they can be."""
    doubt: str = ""
    """Why nobody knows whether all this is still so; empty where it is known."""

    @property
    def lost(self) -> tuple[RootState, ...]:
        """The roots of which something is to be said, the most important first."""
        return root_state.lost(self.roots)

    @property
    def lost_notes(self) -> RootState | None:
        """Why no note of the workspace can be read; None where they can."""
        return next((root for root in self.lost if root.main and not root.readable), None)

    def beside(self, roots: tuple[RootState, ...]) -> Facts:
        """These facts when the roots are as `roots` say: no note is fresh that cannot be read."""
        if roots == self.roots:
            return self
        rows = tuple(_unread(row, root_state.root_of(row.path, roots)) for row in self.rows)
        return replace(self, roots=roots, rows=rows, fresh=sum(row.state == "fresh" for row in rows))

    def after(self, news: Sequence[Event]) -> Facts:
        """These facts with what `news` say of single files and the watcher; counts follow with the next gathering."""
        told: dict[str, tuple[str, str, int | None]] = {}
        watching, detail = self.watching, self.watch_detail
        for event in news:
            match event:
                case FileIndexed():
                    told[event.path] = ("fresh", "", event.chunks)
                case FileFailed():
                    told[event.path] = ("failed", event.reason, None)
                case FileRemoved():
                    told[event.path] = ("removed", "", None)
                case WatchChanged():
                    watching, detail = event.on, event.detail
                case _:
                    pass
        if not told:
            return replace(self, watching=watching, watch_detail=detail)
        rows = tuple(_told(row, told.get(row.path)) for row in self.rows if told.get(row.path, ("",))[0] != "removed")
        return replace(
            self,
            watching=watching,
            watch_detail=detail,
            rows=rows,
            chunks=sum(row.chunks for row in rows),
            files=sum(row.chunks > 0 for row in rows),
            pending=tuple(item for item in self.pending if item.path not in told),
        )


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
    status = engine.status()
    who = status.who
    return Facts(
        workspace=status.workspace_dir,
        read_only=status.read_only,
        unwritable=_unwritable(status),
        profile=status.profile,
        profile_origin=status.profile_origin,
        mode=_mode(status),
        chunks=status.chunks,
        files=status.files,
        embedded=status.embedded,
        on_disk=status.freshness.total,
        fresh=status.freshness.fresh,
        rows=engine.notes.files(),
        pending=status.freshness.pending,
        failed=(*status.freshness.failed, *status.freshness.unsettled, *status.freshness.missing),
        left_out=status.freshness.left_out,
        vector=_vector(status),
        text=PartStatus("fts5", status.fts.available, status.fts.engine),
        who=who,
        provider=PartStatus(who.label, who.fine, who.detail if who.fine else who.reason),
        requested=f"{status.requested_provider} ({status.provider_origin})",
        model=who.model or status.model,
        watching=status.watching,
        watch_detail=status.watch_detail,
        index_file=status.db_path,
        index_moved=status.db_path != os.path.realpath(engine.plan.index),
        index_bytes=status.db_bytes,
        cached=status.cache.entries,
        config=status.config_path,
        agent=status.agent_id,
        agents=status.agents,
        today=datetime.fromtimestamp(engine.now()).date(),
        aging=_aging(engine),
        notices=status.notices,
        paused=status.paused,
        keeper=f"process {keeper.pid}" if (keeper := status.keeper) is not None and not keeper.ours else "",
        shrink=_shrink(status),
        roots=status.roots,
    )


def _shrink(status: Status) -> str:
    held = status.freshness.shrink
    if held is None:
        return ""
    return f"{held.missing:,} of {held.known:,} notes vanished at once: they stay in the index until you agree (a)"


def _unwritable(status: Status) -> str:
    if status.read_only:
        return "Opened with --read-only: notes are not edited."
    return "" if os.access(status.workspace_dir, os.W_OK) else "You may not write to the folder of the notes."


def _aging(engine: Engine) -> Aging:
    settings = engine.plan.settings
    return Aging(
        profiles.get(settings.word("profile")).age,
        settings.on("query.hybrid.temporalDecay.enabled"),
        settings.number("query.hybrid.temporalDecay.halfLifeDays"),
        engine.now(),
        settings.number("recency.weight"),
    )


def _vector(status: Status) -> PartStatus:
    if status.chunks and not status.embedded:
        return PartStatus("no vectors", True, "nothing is embedded")
    dims = f" {status.vector.dims}d" if status.vector.dims else ""
    engine = status.vector.engine
    # sqlite-vec may work and still have nothing to do: small indexes have no vec0 table.
    return PartStatus(("vec0" if engine.startswith("sqlite-vec") else "numpy") + dims, True, engine)


def _mode(status: Status) -> Mode:
    """What questions are answered by, before one is asked; an index with no vector at all has only words."""
    return "keywords only" if status.chunks and not status.embedded else status.who.mode
