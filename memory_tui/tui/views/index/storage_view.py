"""The storage view shows what the index takes on disk. It lists tables, files, writers, and the cost of a rebuild."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line
from memory_tui.tui.draw import fit
from memory_tui.tui.views.index.listing import Listing
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.index_lists import home
from memory_tui.tui.widgets.rowlist import Line, text

if TYPE_CHECKING:
    from memory_tui.engine.costs import Estimate
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.status import Status, WriterProcess
    from memory_tui.source.rows import TableSize


class Storage(Struct, frozen=True):
    """What the view shows, gathered in one go."""

    status: Status
    tables: tuple[TableSize, ...]
    estimate: Estimate


def _measured(engine: Engine) -> Storage:
    from memory_tui.engine import index_check

    return Storage(engine.status(), index_check.tables(engine.queries), engine.providers.estimate())


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
    for table in found.tables:
        about = fit(table.about, max(0, width - 42))
        written.append(
            (
                [
                    (f" {fit(table.name, 12)}", ""),
                    (f"{table.rows:>12,} rows", ""),
                    (f"{table.bytes / 1e6:>10.2f} MB  ", "strong"),
                    (about, "muted"),
                ],
                table.name,
            )
        )
    written += [*text("", width), *text("Files", width, "head")]
    for file in status.storage:
        written += text(f"{file.bytes / 1e6:>8.2f} MB  {home(one_line(file.path))} ({file.what})", width)
    written += [*text("", width), *text("Writers", width, "head")]
    written += text(_who("The index is kept up to date by", status.keeper), width)
    written += text(_who("It is written by", status.writer), width)
    basis = status.levels.sentence
    written += [*text("", width), *text("Levels of answers", width, "head")]
    written += text(f"{basis[0].upper()}{basis[1:]}.", width)
    cost = found.estimate
    price = ", price unknown" if cost.usd is None else f", {cost.usd:.4f} $" if cost.usd else ""
    written += [
        *text("", width),
        *text("A rebuild", width, "head"),
        *text(
            f"{plural(cost.files, 'file')} into {plural(cost.chunks, 'chunk')}, {cost.to_embed:,} texts to embed, "
            f"about {cost.seconds:,.0f} s{price}. Searches go on with the old one meanwhile.",
            width,
        ),
    ]
    return written


def _who(what: str, writing: WriterProcess | None) -> str:
    if writing is None:
        return f"{what} nobody at the moment."
    since = time.strftime("%H:%M:%S", time.localtime(writing.since))
    return f"{what} {'this app' if writing.ours else f'process {writing.pid}'}, since {since}."
