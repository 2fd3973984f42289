"""Below the editor: what saving would do to the answer of a question."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from memory_tui.text.display import one_line
from memory_tui.tui.actions import bindings
from memory_tui.tui.paint import Piece, fit, fit_path, number
from memory_tui.tui.widgets.query_box import Box
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.curate.preview import Effect, Move


class QuestionInput(Box):
    """The question whose answer is watched."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("watched"))
    PLACES: ClassVar[tuple[str, ...]] = ("watched",)


def mark(move: Move) -> tuple[str, str]:
    """What becomes of a hit, and its style: new, out, =, or places up or down."""
    if move.before is None:
        return "new", "good"
    if move.after is None:
        return "out", "bad"
    if move.place_before == move.place_after:
        return "=", "muted"
    return f"{move.place_before - move.place_after:+d}", "warn"


def summary(effect: Effect) -> str:
    """The effect in a few words."""
    marks = [mark(move)[0] for move in effect.moves]
    counts = [
        (marks.count("new"), "new"),
        (marks.count("out"), "out"),
        (sum(word[0] in "+-" for word in marks), "moved"),
        (marks.count("="), "as before"),
    ]
    said = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing is recalled, before or after"
    return said + (f"; {effect.without_vector} new by words alone" if effect.without_vector else "")


class Moves(RowList):
    """The hits after saving, and those that are gone."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self) -> None:
        super().__init__(id="moves")
        self._moves: tuple[Move, ...] = ()
        self._said = ""

    def show(self, moves: tuple[Move, ...], said: str = "") -> None:
        """List `moves`, or say something where there are none."""
        self._moves, self._said = moves, said
        self.rows_changed()

    def count(self) -> int:
        """Hits, or one sentence."""
        return len(self._moves) or 1

    def key_of(self, _row: int, /) -> Hashable:
        """Looked at, not chosen."""
        return None

    def draw(self, row: int, _line: int, width: int, /) -> Iterable[Piece]:
        """Place, change, score before and after, and where it stands."""
        if not self._moves:
            return [(fit(f" {self._said}", width), "muted")]
        move = self._moves[row]
        word, style = mark(move)
        hit = move.after or move.before
        if hit is None:
            return []
        scores = [number(each.score) if each else "  -  " for each in (move.before, move.after)]
        where = f"{one_line(hit.chunk.path)}:{hit.chunk.start_line}-{hit.chunk.end_line}"
        return [
            (f" {move.place_after or '-':>2} ", "strong"),
            (f"{word:>4} ", style),
            (f" {scores[0]} → {scores[1]}  ", ""),
            (fit_path(where, width - 26), "muted"),
        ]


class Impact(Vertical):
    """The question and what becomes of its answer."""

    def compose(self) -> ComposeResult:
        """Question above hits."""
        with Horizontal(id="asked"):
            yield Static(" after saving, asked ", markup=False)
            yield QuestionInput(placeholder="a question to watch while you write (ctrl+t)", id="watched")
            yield Static("", id="verdict", markup=False)
        yield Moves()

    @property
    def question(self) -> str:
        """What is watched; empty when nothing is."""
        return self.query_one(QuestionInput).value.strip()

    def show(self, effect: Effect) -> None:
        """Show what saving would do."""
        self.query_one(Moves).show(effect.moves)
        self.query_one("#verdict", Static).update(Content(f"{summary(effect)} "))

    def say(self, sentence: str) -> None:
        """Say why there is nothing to show."""
        self.query_one(Moves).show((), one_line(sentence))
        self.query_one("#verdict", Static).update("")
