"""The two lists of the index view: the truth bar in full, and what is not searchable as it is on disk."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len

from memory_tui.explain import wording
from memory_tui.text.display import one_line, safe
from memory_tui.tui.facts import Facts
from memory_tui.tui.paint import Piece, fit, fit_path, plural, wrapped
from memory_tui.tui.widgets.file_tree import SIGNS
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.workspace import presence

LABEL = 12


def statements(facts: Facts) -> list[tuple[str, str, str]]:
    """What the truth bar says, in full: label, words, style."""
    freshness = [
        f"{facts.fresh:,} fresh",
        f"{len(facts.pending):,} pending",
        f"{len(facts.failed):,} failed",
        f"{len(facts.left_out):,} left out",
    ]
    return [
        ("search", _search(facts), "" if facts.mode == "hybrid" and facts.lost_notes is None else "warn"),
        ("rules", f"{facts.profile}  ({facts.profile_origin})", ""),
        ("notes", f"{plural(facts.on_disk, 'file')} on disk: {', '.join(freshness)}", ""),
        (
            "index",
            f"{plural(facts.chunks, 'chunk')} in {plural(facts.files, 'file')}, "
            f"{facts.embedded:,} with a vector, {facts.cached:,} cached",
            "",
        ),
        ("vectors", f"{facts.vector.words}, {facts.vector.detail}", ""),
        ("words", facts.text.detail, ""),
        ("provider", _provider(facts), "" if facts.who.fine else "warn" if facts.who.answers else "bad"),
        ("watcher", *_watched(facts)),
        *([("indexing", "paused: saved files wait; z lets it go on", "warn")] if facts.paused else []),
        *([("vanished", facts.shrink, "bad")] if facts.shrink else []),
        *([("kept by", f"{facts.keeper}; this app reads, and takes over when it ends", "")] if facts.keeper else []),
        ("notes in", home(facts.workspace) + ("  (read-only)" if facts.read_only else ""), ""),
        *[
            (root.state, home(f"{root.detail} {presence.next_step(root)}"), "bad")
            for root in facts.lost
            if not root.readable
        ],
        ("index file", f"{home(facts.index_file)}  ({facts.index_bytes / 1e6:.1f} MB)", ""),
        ("config", facts.config or "none found: defaults", ""),
        *([("agent", f"{facts.agent}, of {', '.join(facts.agents)}", "")] if len(facts.agents) > 1 else []),
        *[("notice", f"{notice.message} {notice.next_step}", "warn") for notice in facts.notices],
    ]


def home(words: str) -> str:
    """`words` with the user's own folder, wherever it is named, written as ~."""
    return words.replace(f"{Path.home()}/", "~/")


def _search(facts: Facts) -> str:
    gone = facts.lost_notes
    return wording.mode(facts.mode) + (f", in what the index keeps: notes {gone.state}" if gone else "")


def _watched(facts: Facts) -> tuple[str, str]:
    """What is said of the watcher, and the style."""
    detail = facts.watch_detail
    if facts.watching:
        return ("on", "") if detail in ("on", "") else (f"on, by listing folders over and over: {detail}", "warn")
    cause = "" if detail == "off" else f": {detail}"
    return f"off{cause}; r looks for changes, P switches it on", "warn"


def _provider(facts: Facts) -> str:
    """Who answers: at length where it is not who was asked for."""
    who, detail = facts.who, facts.provider.detail
    if not who.fine:
        return f"{who.sentence} {who.next_step}".rstrip()
    model = "" if who.standing == "off" else facts.model
    return f"{who.label}{model and ', '}{model}{detail and ': '}{detail}"


class Statements(RowList):
    """One statement per row: label and words, wrapped."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = title
        self._said: list[tuple[str, str, str]] = []

    def say(self, statements: Iterable[tuple[str, str, str]]) -> None:
        """Say `statements`: label, words, style."""
        self._said = [(label, one_line(words), style) for label, words, style in statements]
        self.rows_changed(max(0, self.cursor))

    def count(self) -> int:
        """Statements."""
        return len(self._said)

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the words need."""
        return len(wrapped(self._said[row][1], width - LABEL - 1))

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Label and words."""
        label, words, style = self._said[row]
        part = wrapped(words, width - LABEL - 1)[line]
        return [(f" {label if line == 0 else '':<{LABEL - 1}}", "muted"), (part, style)]


class State(Statements):
    """The truth bar in full."""

    def __init__(self) -> None:
        super().__init__("State", id="state")

    def show(self, facts: Facts) -> None:
        """Say what `facts` are."""
        self.say(statements(facts))


class Attention(RowList):
    """Notes that are not searchable as they are on disk, and paths that are no notes, each with the reason."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="attention")
        self.border_title = "Not in the index as it is on disk"
        self._rows: list[tuple[str, str, str]] = []
        self._longest = 0

    def show(self, facts: Facts) -> None:
        """List what needs attention; what is left out by rule comes last."""
        key = self.key
        self._rows = [
            *([("all notes", "unknown", facts.doubt)] if facts.doubt else []),
            *((root.path, root.state, root.detail) for root in facts.lost),
            *((item.path, "failed", item.detail) for item in facts.failed),
            *((item.path, item.detail, "waits to be indexed") for item in facts.pending),
            *((item.path, "left out", item.detail) for item in facts.left_out),
        ]
        counts = [(len(facts.failed), "failed"), (len(facts.pending), "pending"), (len(facts.left_out), "left out")]
        self.border_subtitle = ", ".join(f"{n:,} {word}" for n, word in counts if n)
        self._longest = max((cell_len(safe(path)) for path, _, _ in self._rows), default=0)
        self.rows_changed(key)

    def count(self) -> int:
        """Rows, or one that says that all is well."""
        return len(self._rows) or 1

    def key_of(self, row: int, /) -> Hashable:
        """The path."""
        return self._rows[row][0] if self._rows else None

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the reason needs."""
        return len(self._reason(row, width)) if self._rows else 1

    def _room(self, width: int) -> int:
        return min(self._longest, (width - 16) // 2)

    def _reason(self, row: int, width: int) -> list[str]:
        return wrapped(one_line(self._rows[row][2]), width - self._room(width) - 15)

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """State, path and reason."""
        if not self._rows:
            return [(" ✓ ", "good"), ("Every note is indexed as it is on disk.", "")]
        path, state, _ = self._rows[row]
        glyph, style = SIGNS.get(state, ("×", "muted"))
        room, reason = self._room(width), self._reason(row, width)[line]
        if line:
            return [(" " * (room + 14), ""), (reason, "muted")]
        return [
            (f" {glyph} ", style),
            (fit(state, 9), style),
            (fit(fit_path(safe(path), room), room), ""),
            (f"  {reason}", "muted"),
        ]
