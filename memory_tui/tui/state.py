"""What the engine is like right now, gathered in one go on a worker thread; widgets only read it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from memory_tui import profiles
from memory_tui.events import Event, FileFailed, FileIndexed, FileRemoved, WatchChanged
from memory_tui.search.trace import Mode, Notice
from memory_tui.tui.aging import Aging
from memory_tui.workspace import presence
from memory_tui.workspace.presence import RootState

if TYPE_CHECKING:
    from memory_tui.embed.who import Who
    from memory_tui.engine import Engine
    from memory_tui.overview import FileRow, Item, Status


@dataclass(frozen=True, slots=True)
class Health:
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
    pending: tuple[Item, ...]
    failed: tuple[Item, ...]
    left_out: tuple[Item, ...]
    vector: Health
    text: Health
    who: Who
    provider: Health
    requested: str
    model: str
    watching: bool
    watch_detail: str
    index_file: str
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
        return presence.lost(self.roots)

    @property
    def lost_notes(self) -> RootState | None:
        """Why no note of the workspace can be read; None where they can."""
        return next((root for root in self.lost if root.main and not root.readable), None)

    def beside(self, roots: tuple[RootState, ...]) -> Facts:
        """These facts when the roots are as `roots` say: no note is fresh that cannot be read."""
        if roots == self.roots:
            return self
        rows = tuple(_unread(row, presence.root_of(row.path, roots)) for row in self.rows)
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
        rows=engine.files(),
        pending=status.freshness.pending,
        failed=(*status.freshness.failed, *status.freshness.unsettled, *status.freshness.missing),
        left_out=status.freshness.left_out,
        vector=_vector(status),
        text=Health("fts5", bool(status.fts["available"]), str(status.fts["engine"])),
        who=who,
        provider=Health(who.label, who.fine, who.detail if who.fine else who.reason),
        requested=f"{status.requested_provider} ({status.provider_origin})",
        model=who.model or status.model,
        watching=status.watching,
        watch_detail=status.watch_detail,
        index_file=status.db_path,
        index_bytes=status.db_bytes,
        cached=int(status.cache["entries"]),
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
    settings = engine.settings
    return Aging(
        profiles.get(settings.word("profile")).age,
        settings.on("query.hybrid.temporalDecay.enabled"),
        settings.number("query.hybrid.temporalDecay.halfLifeDays"),
        engine.now(),
        settings.number("recency.weight"),
    )


def _vector(status: Status) -> Health:
    if status.chunks and not status.embedded:
        return Health("no vectors", True, "nothing is embedded")
    dims = f" {status.vector['dims']}d" if status.vector["dims"] else ""
    engine = str(status.vector["engine"])
    # sqlite-vec may work and still have nothing to do: small indexes have no vec0 table.
    return Health(("vec0" if engine.startswith("sqlite-vec") else "numpy") + dims, True, engine)


def _mode(status: Status) -> Mode:
    """What questions are answered by, before one is asked; an index with no vector at all has only words."""
    return "keywords only" if status.chunks and not status.embedded else status.who.mode
