"""A conflict is resolved part by part. Each part has base, mine and the other side's."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece, fit, wrapped
from memory_tui.tui.key_meanings import bound, key_of
from memory_tui.tui.views.view import Dialog
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.notes.changes import ThreeWay
    from memory_tui.notes.merge import Hunk

Side = Literal["mine", "theirs", "both"]

CONTEXT = 2
"""Unchanged lines that are shown around a place where somebody changed something."""

_STYLES = {"mine": "good", "theirs": "warn", "base": "muted", "": ""}


def result(hunks: Sequence[Hunk], choices: Sequence[Side]) -> bytes:
    """The note with `choices` for its conflicts, in order; where nothing touches both changes are kept."""
    left = iter(choices)
    lines: list[bytes] = []
    for hunk in hunks:
        side = next(left) if hunk.side == "conflict" else None
        if side is None:
            lines += hunk.lines
        else:
            lines += {"mine": hunk.mine, "theirs": hunk.other, "both": _ended(hunk.other, hunk.mine)}[side]
    return b"".join(lines)


def _ended(first: tuple[bytes, ...], then: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Two runs of lines, the first with a line end at its end."""
    if first and then and not first[-1].endswith(b"\n"):
        first = (*first[:-1], first[-1] + b"\n")
    return first + then


class MergeRow(Struct, frozen=True):
    """One line of the view: who wrote it, its text, and the number of the conflict (from 0; -1 for none)."""

    who: str
    text: str
    conflict: int = -1
    head: bool = False


def rows_of(hunks: Sequence[Hunk]) -> Iterator[MergeRow]:
    """The hunks as rows; long runs of unchanged lines are told by their number."""
    number = 0
    for at, hunk in enumerate(hunks):
        if hunk.side == "same":
            yield from _same(hunk.base, first=at == 0, last=at == len(hunks) - 1)
            continue
        if hunk.side == "conflict":
            yield MergeRow("", f"conflict {number + 1}", number, head=True)
            yield from (MergeRow("base", _text(line), number) for line in hunk.base)
            yield from (MergeRow("mine", _text(line), number) for line in hunk.mine)
            yield from (MergeRow("theirs", _text(line), number) for line in hunk.other)
            number += 1
            continue
        who = "both" if hunk.side == "both" else "theirs" if hunk.side == "theirs" else "mine"
        if not hunk.lines:
            yield MergeRow(who, f"({len(hunk.base)} lines taken out)")
        yield from (MergeRow(who, _text(line)) for line in hunk.lines)


def _same(lines: Sequence[bytes], *, first: bool, last: bool) -> Iterator[MergeRow]:
    before = [] if first else lines[:CONTEXT]
    after = [] if last else lines[max(len(before), len(lines) - CONTEXT) :]
    yield from (MergeRow("", _text(line)) for line in before)
    hidden = len(lines) - len(before) - len(after)
    if hidden == 1:
        yield MergeRow("", _text(lines[len(before)]))
    elif hidden:
        yield MergeRow("", f"… {hidden:,} lines that nobody changed …", head=True)
    yield from (MergeRow("", _text(line)) for line in after)


def _text(line: bytes) -> str:
    return safe(line.decode("utf-8", "replace").rstrip("\r\n"))


class Merging(RowList):
    """The rows of a three-way view; the cursor goes from conflict to conflict."""

    PLACES: ClassVar[tuple[str, ...]] = ("list",)

    def __init__(self, rows: Sequence[MergeRow], choices: list[Side]) -> None:
        super().__init__(id="merging")
        self._rows, self._choices = rows, choices

    def count(self) -> int:
        """Lines."""
        return len(self._rows)

    def key_of(self, row: int, /) -> Hashable:
        """The head of a conflict; other lines are looked at only."""
        item = self._rows[row]
        return item.conflict if item.head and item.conflict >= 0 else None

    @property
    def conflict(self) -> int:
        """The conflict under the cursor; -1 without any."""
        return self._rows[self.cursor].conflict if 0 <= self.cursor < len(self._rows) else -1

    def height_of(self, row: int, width: int, /) -> int:
        """As many lines as the text needs."""
        return len(wrapped(self._rows[row].text, width - 9))

    def draw(self, row: int, line: int, width: int, /) -> Iterable[Piece]:
        """Who, and what; what is not taken stands back."""
        item = self._rows[row]
        if item.head:
            if item.conflict < 0:
                return [(fit(f" {item.text}", width), "muted")]
            chosen = self._choices[item.conflict]
            words = "  ".join(f"[{side}]" if side == chosen else f" {side} " for side in ("mine", "theirs", "both"))
            return [(fit(f" {item.text}: {words} {'─' * width}", width), "mark")]
        taken = (
            item.conflict < 0
            or item.who in (self._choices[item.conflict], "")
            or (self._choices[item.conflict] == "both" and item.who != "base")
        )
        part = wrapped(item.text, width - 9)[line]
        return [
            (f" {item.who if line == 0 else '':<7}", _STYLES.get(item.who, "muted")),
            (part, _STYLES.get(item.who, "") if taken else "lost"),
        ]


class Resolve(Dialog[bytes]):
    """m, t and b choose for the conflict under the cursor; ctrl+s saves the result, esc leaves the note alone.

    It is dismissed with the new bytes, or with None.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "choose('mine')", "Mine"),
        Binding("t", "choose('theirs')", "Theirs"),
        Binding("b", "choose('both')", "Both"),
        Binding(bound("save"), "save", "Save"),
        Binding("escape,q", "dismiss(None)", "Leave"),
        Binding("j,down,n", "move('down')", "Next"),
        Binding("k,up,N", "move('up')", "Previous"),
    ]

    def __init__(self, view: ThreeWay, kept: str) -> None:
        super().__init__()
        self._view, self._kept = view, kept
        self._choices: list[Side] = ["mine"] * len(view.merge.conflicts)

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """The choices where changes overlap, then save and leave."""
        sides = (("m", "Mine"), ("t", "Theirs"), ("b", "Both")) if self._choices else ()
        return *sides, (key_of("save"), "Save"), ("esc", "Leave")

    def compose(self) -> ComposeResult:
        """What happened, the three texts, and the buttons."""
        count = len(self._choices)
        places = (
            "Your edit and the agent's are in different lines. Saving keeps both."
            if not count
            else (f"The changes overlap in {count} place{'' if count == 1 else 's'}. Choose for each, then save.")
        )
        with Vertical(id="resolve") as box:
            box.border_title = Content(f"{one_line(self._view.path)} also changed on disk")
            yield Static(f"{places} {self._kept}".strip(), id="effect", markup=False)
            yield Merging(list(rows_of(self._view.merge.hunks)), self._choices)
            with Horizontal():
                for side, key in (("mine", "m"), ("theirs", "t"), ("both", "b")):
                    yield Button(f"{side.capitalize()} ({key})", id=f"take-{side}", compact=True, disabled=not count)
                yield Button("Leave (esc)", id="no", compact=True)
                yield Button(f"Save ({key_of('save')})", id="yes", compact=True, variant="warning")

    def on_mount(self) -> None:
        """Show the first conflict."""
        merging = self.query_one(Merging)
        merging.rows_changed()
        merging.focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        match str(event.button.id).removeprefix("take-"):
            case "mine" | "theirs" | "both" as side:
                self.action_choose(side)
            case "yes":
                self.action_save()
            case _:
                self.dismiss(None)

    def action_choose(self, side: Side) -> None:
        """Take one side, or both, for the conflict under the cursor, and go to the next."""
        merging = self.query_one(Merging)
        if 0 <= merging.conflict < len(self._choices):
            self._choices[merging.conflict] = side
            merging.refresh()
            merging.do_down()

    def action_move(self, way: str) -> None:
        """Go to another conflict, or scroll."""
        getattr(self.query_one(Merging), f"do_{way}")()

    def action_save(self) -> None:
        """Hand over what was chosen."""
        self.dismiss(result(self._view.merge.hunks, self._choices))
