"""One line to type over the view, with proposals that follow what is typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from memory_tui.text.display import safe
from memory_tui.tui.widgets.query_box import Box

SHOWN = 8
"""Proposals at most."""

Propose = Callable[[str], Sequence[str]]


def nothing(_typed: str, /) -> Sequence[str]:
    """No proposals."""
    return ()


def near(paths: Sequence[str]) -> Propose:
    """Proposes the `paths` most like what is typed before a colon, and keeps the line number after it.

    What is typed comes first where it reads as a place of its own: a note that is not there can be asked about as well.
    """

    def propose(typed: str) -> Sequence[str]:
        from rapidfuzz import fuzz, process

        name, colon, line = typed.partition(":")
        if not name.strip():
            return paths[:SHOWN]
        found = process.extract(
            name.strip().lower(),
            {path: path.lower() for path in paths},
            scorer=fuzz.partial_ratio,
            limit=SHOWN,
            score_cutoff=60,
        )
        close = [f"{path}{colon}{line}" for _, _, path in found]
        own = typed.strip()
        return close if own in close or not set(own) & set("/:#.") else [own, *close]

    return propose


class Prompt(ModalScreen[str | None]):
    """Enter takes the proposal under the cursor, or what is typed where none is made; tab completes, esc leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("tab", "complete", "Complete", priority=True),
        Binding("down", "choose(1)", "Next"),
        Binding("up", "choose(-1)", "Previous"),
    ]

    def __init__(self, title: str, hint: str, value: str = "", propose: Propose = nothing) -> None:
        super().__init__()
        self._title, self._hint, self._value, self._propose = title, hint, value, propose
        self._proposed: list[str] = []
        self._followed = ""

    def compose(self) -> ComposeResult:
        """The box, what it wants, and the proposals."""
        with Vertical(id="dialogue") as frame:
            frame.border_title = Content(self._title)
            box = Box(placeholder=self._hint, id="answer")
            box.value = self._value
            yield box
            yield OptionList(id="proposals", markup=False)
            yield Static(Content(self._keys), id="prompt-keys")

    @property
    def _keys(self) -> str:
        return (
            "enter takes it   esc leaves"
            if self._propose is nothing
            else ("tab completes   down chooses   enter takes   esc leaves")
        )

    def on_mount(self) -> None:
        """The proposals for an empty box."""
        proposals = self.query_one(OptionList)
        proposals.can_focus = False
        proposals.display = self._propose is not nothing
        self._follow(self._value)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._follow(event.value)

    def _follow(self, typed: str) -> None:
        self._followed, self._proposed = typed, list(self._propose(typed))
        proposals = self.query_one(OptionList)
        proposals.clear_options()
        proposals.add_options([Option(Content(safe(one))) for one in self._proposed])
        proposals.highlighted = 0 if self._proposed else None

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value != self._followed:
            self._follow(event.value)
        at = self.query_one(OptionList).highlighted
        self.dismiss(event.value.strip() if at is None else self._proposed[at])

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self._take(event.option_index)

    def action_leave(self) -> None:
        """Never mind."""
        self.dismiss(None)

    def action_choose(self, direction: int) -> None:
        """Put the cursor on another proposal."""
        proposals = self.query_one(OptionList)
        if self._proposed:
            at = -1 if proposals.highlighted is None else proposals.highlighted
            proposals.highlighted = (at + direction) % len(self._proposed)

    def action_complete(self) -> None:
        """Take the proposal under the cursor, the first without one."""
        self._take(self.query_one(OptionList).highlighted or 0)

    def _take(self, at: int) -> None:
        if at < len(self._proposed):
            box = self.query_one(Box)
            box.value = self._proposed[at]
            box.cursor_position = len(box.value)
            box.focus()
