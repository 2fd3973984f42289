"""The index file: rows and bytes of each table, its files, who writes it, and what a rebuild costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from memory_tui.text.display import one_line
from memory_tui.tui.actions import bindings
from memory_tui.tui.paint import fit, plural
from memory_tui.tui.screens.listing import ListingView
from memory_tui.tui.widgets.rows import Line, text
from memory_tui.tui.widgets.state import home

if TYPE_CHECKING:
    from memory_tui.engine import Engine
    from memory_tui.forecast import Estimate
    from memory_tui.index.sizes import TableSize
    from memory_tui.overview import Status, Writing


@dataclass(frozen=True, slots=True)
class Storage:
    """What the view shows, gathered in one go."""

    status: Status
    tables: tuple[TableSize, ...]
    estimate: Estimate


class StorageView(ListingView):
    """Tables, files, processes, cost."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("storage"))
    PLACE = "storage"
    TITLE_WORDS = "The index file"
    WAITING = "Measuring the index ..."

    @staticmethod
    def gather(engine: Engine) -> Storage:
        """Everything about the file."""
        return Storage(engine.status(), engine.tables(), engine.estimate())

    def do_again(self) -> None:
        """Measure again."""
        self.look()

    def subtitle(self, found: object, /) -> str:
        """The size per chunk."""
        if not isinstance(found, Storage) or not found.status.chunks:
            return ""
        return f"{found.status.db_bytes / found.status.chunks / 1000:.1f} KB a chunk"

    def lines(self, found: object, width: int) -> list[Line]:
        """Tables first."""
        if not isinstance(found, Storage):
            return []
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
        written += [*text("", width), *text("Who", width, "head")]
        written += text(_who("The index is kept up to date by", status.keeper), width)
        written += text(_who("It is written by", status.writer), width)
        cost = found.estimate
        price = ", price unknown" if cost.usd is None else f", {cost.usd:.4f} $" if cost.usd else ""
        written += [
            *text("", width),
            *text("Making it anew", width, "head"),
            *text(
                f"{plural(cost.files, 'file')} into {plural(cost.chunks, 'chunk')}, {cost.to_embed:,} texts to embed, "
                f"about {cost.seconds:,.0f} s{price}. Searches go on with the old one meanwhile.",
                width,
            ),
        ]
        return written


def _who(what: str, writing: Writing | None) -> str:
    if writing is None:
        return f"{what} nobody at the moment."
    since = time.strftime("%H:%M:%S", time.localtime(writing.since))
    return f"{what} {'this app' if writing.ours else f'process {writing.pid}'}, since {since}."
