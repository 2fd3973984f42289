"""Dialogs over a view. They ask a question, take a line, offer a list, or show a preview."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from memory_tui.formatting import plural
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.colours import THEMES, environment_theme, keep_theme
from memory_tui.tui.draw import Piece, fit_path
from memory_tui.tui.home import home_of
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.note_page import closest
from memory_tui.tui.views.view import Dialog
from memory_tui.tui.widgets.note_side import DiffList
from memory_tui.tui.widgets.query import Box
from memory_tui.tui.widgets.rowlist import RowList

if TYPE_CHECKING:
    from memory_tui.tui.note_changes import Planned

Remark = Callable[[str], str]
"""What is to be said of what is typed, while it is typed."""


def looks_secret(text: str) -> str:
    """A word of warning where `text` looks as if it held a password or key."""
    from memory_tui.secrets.finder import find as secrets_in

    reply = secrets_in(text)
    return f"This looks like a secret ({reply[0].kind}); notes are read by agents." if reply else ""


class LineDialog(Dialog[str]):
    """Enter hands over what was typed; esc hands over None, and what was typed stands there the next time."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close")]

    def __init__(self, title: str, explained: str, verb: str, *, value: str = "", remark: Remark | None = None) -> None:
        super().__init__()
        self._title, self._explained, self._verb, self._value = title, explained, verb, value
        self._remark = remark

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Enter, and the way out."""
        return ("enter", self._verb), ("esc", "Cancel")

    def compose(self) -> ComposeResult:
        """What for, the box, and the buttons."""
        with Vertical(id="dialog") as box:
            box.border_title = self._title
            yield Static(self._explained, markup=False)
            yield Box(placeholder="", id="line")
            yield Static("", id="remark", markup=False)
            with Horizontal():
                yield Button("Cancel (esc)", id="no", compact=True)
                yield Button(f"{self._verb} (enter)", id="yes", compact=True, variant="primary")

    def on_mount(self) -> None:
        """Begin to type."""
        box = self.query_one(Box)
        box.value = home_of(self).typed.get(self._asked, self._value)
        box.cursor_position = len(box.value)
        box.focus()
        self.remark_again()

    @on(Input.Changed)
    def _changed(self) -> None:
        self.remark_again()

    def remark_again(self) -> None:
        """Say what is to be said of what is typed, of which more may be known by now; nothing before and after."""
        for line in self.query("#remark").results(Static):
            line.update(self._remark(self.query_one(Box).value) if self._remark else "")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self._hand_over(event.value)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._hand_over(self.query_one(Box).value)
        else:
            self.action_leave()

    @property
    def _asked(self) -> tuple[str, str]:
        """What tells this question from others."""
        return self._title, self._value

    def _hand_over(self, typed: str) -> None:
        home_of(self).typed.pop(self._asked, None)
        self.dismiss(typed.strip())

    def action_leave(self) -> None:
        """Keep what was typed, and hand nothing over."""
        home, typed = home_of(self), self.query_one(Box).value
        self.dismiss(None)
        if typed.strip() and typed != self._value:
            home.typed[self._asked] = typed
            # The view is in front again.
            home.show_message(f"“{self._title}” keeps what you typed for the next time.")
        else:
            home.typed.pop(self._asked, None)


class Confirm(Dialog[bool]):
    """y does it; n, esc, q and enter on the default button do not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
        Binding("left,h", "app.focus_previous", "Previous"),
        Binding("right,l", "app.focus_next", "Next"),
    ]

    def __init__(self, title: str, text: str, verb: str) -> None:
        super().__init__()
        self._title, self._text, self._verb = title, text, verb

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Yes and no."""
        return ("y", self._verb), ("n", "Cancel")

    def compose(self) -> ComposeResult:
        """The question, and two buttons."""
        with Vertical(id="dialog") as box:
            box.border_title = self._title
            yield Static(self._text, markup=False)
            with Horizontal():
                yield Button("Cancel (n)", id="no", compact=True)
                yield Button(f"{self._verb} (y)", id="yes", compact=True, variant="warning")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """Answer by key."""
        self.dismiss(yes)


SHOWN = 8
"""Proposals at most."""
CLOSE = 75
"""How like a name letters are that may mean it, of 100."""

Propose = Callable[[str], Sequence[str]]


def nothing(_typed: str, /) -> Sequence[str]:
    """No proposals."""
    return ()


def path_of(letters: str, paths: Mapping[str, str]) -> tuple[str, str]:
    """The path that `letters` mean, of `paths` by their safe names, and why there is none, as a sentence.

    Part of one name is enough. What looks like a path of no note is returned as it is: the engine knows why.
    """
    if letters in paths:
        return paths[letters], ""
    reply = [path for name, path in paths.items() if letters.casefold() in name.casefold()]
    if len(reply) == 1 or (not reply and ("/" in letters or letters.endswith(".md"))):
        return (reply or [letters])[0], ""
    count = f"{len(reply):,} notes have" if reply else "No note has"
    way = f"{key_of('why line')}, then tab completes it." if reply else f"{key_of('ask')} asks for words."
    return "", f"{count} “{one_line(letters)}” in the name. {way}"


def near(paths: Sequence[str]) -> Propose:
    """Proposes the `paths` most like what is typed before a colon, and keeps the line number after it.

    A whole name comes first. So does what is typed where it reads as a place of its own: a note that is not there can
    be asked about as well.
    """

    def propose(typed: str) -> Sequence[str]:
        from rapidfuzz import fuzz, process

        name, colon, line = typed.partition(":")
        if not name.strip():
            return paths[:SHOWN]
        reply = process.extract(
            name.strip().lower(),
            {path: path.lower() for path in paths},
            scorer=fuzz.partial_ratio,
            limit=SHOWN,
            score_cutoff=CLOSE,
        )
        whole = name.strip().lower()
        close = [f"{path}{colon}{line}" for _, _, path in sorted(reply, key=lambda row: row[2].lower() != whole)]
        new = typed.strip()
        return close if new in close or not set(new) & set("/:#.") else [new, *close]

    return propose


class Prompt(Dialog[str]):
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

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Enter, the keys of the proposals where there are any, and the way out."""
        chosen = () if self._propose is nothing else (("tab", "Complete"), ("down", "Choose"))
        return ("enter", "Take"), *chosen, ("esc", "Leave")

    def compose(self) -> ComposeResult:
        """The box, what it wants, and the proposals."""
        with Vertical(id="dialog") as frame:
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
        proposals.add_options([Option(Content(safe(row))) for row in self._proposed])
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


class NameList(RowList):
    """The names that fit what was typed, best first."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(id="choices")
        self.names: Sequence[str] = ()
        self._new = ""

    def show(self, names: Sequence[str], new: str = "") -> None:
        """List `names`; the last is a `new` one where there is a word for it."""
        self.names, self._new = names, new
        self.rows_changed()

    def count(self) -> int:
        """Names."""
        return len(self.names)

    def key_of(self, row: int, /) -> Hashable:
        """The name."""
        return self.names[row]

    def opens_at_once(self, _row: int, /) -> bool:
        """A click on the name under the cursor takes it."""
        return True

    def draw(self, row: int, _line: int, width: int, /) -> Iterable[Piece]:
        """The name, its end in sight."""
        new = f"  ({self._new})" if self._new and row == len(self.names) - 1 else ""
        return [(f" {fit_path(safe(self.names[row]), width - 1 - len(new))}", ""), (new, "muted")]


NO_NAME = "none has these letters: backspace, or esc leaves"
LEAST_PICKED, AROUND_PICKED = 6, 4
"""Lines of the shortest list of names, and those that stand around it."""


class Picker(Dialog[str]):
    """Letters narrow the list, arrows move in it, enter takes a name, esc none.

    Where there is a word for what is `new`, what was typed can be taken as it is. Of names that fit
    as well the shortest comes first, or the first where they are `ordered`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close"),
        Binding("enter", "take", "Take", priority=True),
        Binding("down,ctrl+n", "move('down')", "Down"),
        Binding("up,ctrl+p", "move('up')", "Up", priority=True),
        Binding("pagedown,ctrl+d", "move('page_down')", "Page down", priority=True),
        Binding("pageup,ctrl+u", "move('page_up')", "Page up", priority=True),
    ]

    def __init__(self, title: str, names: Sequence[str], *, new: str = "", ordered: bool = False) -> None:
        super().__init__()
        self._title, self._names, self._new, self._ordered = title, names, new, ordered
        self._narrowed = ""
        self._folded = [name.removeprefix("memory/") for name in names]

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Enter, the arrows, and the way out."""
        return ("enter", "Take"), ("down", "Next"), ("up", "Previous"), ("esc", "Close")

    def compose(self) -> ComposeResult:
        """Letters above the list."""
        with Vertical(id="picker") as box:
            box.border_title = self._title
            box.styles.max_height = max(LEAST_PICKED, len(self._names) + 1) + AROUND_PICKED
            yield Box(placeholder="a few letters of it", id="letters")
            yield NameList()

    def on_mount(self) -> None:
        """All names, until something is typed."""
        self._narrow("")
        # What is behind was not drawn yet when another dialog has just gone.
        self.call_after_refresh(self.refresh)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def _narrow(self, letters: str) -> None:
        self._narrowed = letters
        typed = letters.strip()
        reply = [self._names[at] for at in closest(self._folded, typed, shortest=not self._ordered)]
        offered = [typed] if self._new and typed and typed not in reply else []
        self.query_one(NameList).show([*reply, *offered], self._new if offered else "")
        listed = f"{len(reply):,} to choose from, up and down choose, enter takes" if reply or offered else NO_NAME
        self.query_one("#picker", Vertical).border_subtitle = listed

    def action_move(self, way: str) -> None:
        """Move in the list while typing."""
        getattr(self.query_one(NameList), f"do_{way}")()

    def action_take(self) -> None:
        """Close with the name under the cursor; who types quickly means what stands in the box by now."""
        letters = self.query_one(Box).value
        if letters != self._narrowed:
            self._narrow(letters)
        choices = self.query_one(NameList)
        self.dismiss(choices.names[choices.cursor] if 0 <= choices.cursor < len(choices.names) else None)

    @on(RowList.Chosen)
    def _clicked(self) -> None:
        self.action_take()


def choose_theme(app: App[Any]) -> None:
    """Ask which theme to draw in, ours first; the next start has it too, where that can be."""

    def take(name: str) -> None:
        home = home_of(app)
        app.theme = name
        if environment_theme():
            home.show_message(f"{name}, until you quit: NO_COLOR or TEXTUAL_THEME names the theme of each start.")
        elif home.engine is not None and home.engine.plan.read_only:
            home.show_message(f"{name}, until you quit: read-only writes nothing down.")
        else:
            home.jobs.report(lambda: keep_theme(name))

    names = sorted(app.available_themes, key=lambda name: (name not in THEMES, name))
    Picker("Which theme?", names, ordered=True).ask(app, take)


CHOICES: tuple[tuple[str, int], ...] = (("1", 1), ("7", 7), ("3", 30))
"""Keys and days."""


class Snooze(Dialog[int]):
    """A strip of choices; esc puts nothing off."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"put_off({days})", f"{days} days") for key, days in CHOICES),
        Binding("escape,q", "leave", "Leave"),
        Binding("down,j", "app.focus_next", "Next"),
        Binding("up,k", "app.focus_previous", "Previous"),
    ]

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Days, and the way out."""
        return *((key, plural(days, "day")) for key, days in CHOICES), ("esc", "Leave")

    def compose(self) -> ComposeResult:
        """What is put off, and a button for each choice."""
        with Vertical(id="snooze") as frame:
            frame.border_title = Content("Ask again in ...")
            yield Static(Content(fit_path(self._place, 44)))
            with Vertical(id="choices"):
                for key, days in CHOICES:
                    words = f" {plural(days, 'day')}"
                    yield Button(Content.assemble((f" {key} ", "bold $key"), words), id=f"days{days}", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A click is its key."""
        event.stop()
        self.dismiss(int(str(event.button.id).removeprefix("days")))

    def action_put_off(self, days: int) -> None:
        """Choose by key."""
        self.dismiss(days)

    def action_leave(self) -> None:
        """Never mind."""
        self.dismiss(None)


LETTERS = "asdfghjkl"


class Jump(Dialog[Widget]):
    """Lies over the view while it waits for a letter; every other key, and a click, takes it away."""

    def __init__(self, panes: Sequence[Widget]) -> None:
        super().__init__()
        self._panes = dict(zip(LETTERS, panes, strict=False))

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """The letters."""
        return (" ".join(self._panes), "Go there"), ("esc", "Stay")

    def compose(self) -> Iterator[Static]:
        """A letter in the upper left corner of each pane."""
        for letter, pane in self._panes.items():
            mark = Static(f" {letter} ", classes="letter", markup=False)
            mark.styles.offset = (pane.region.x + 1, pane.region.y)
            yield mark

    def on_key(self, event: events.Key) -> None:
        """Go where the letter stands."""
        event.stop()
        self.dismiss(self._panes.get(event.key))

    def on_click(self) -> None:
        """Never mind."""
        self.dismiss(None)


class Preview(Dialog[str]):
    """enter and y make the change ("yes"); n, esc and q do not (None); an option is its key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('yes')", "Yes"),
        Binding("n,escape,q", "dismiss(None)", "No"),
        Binding("j,down", "scroll(1)", "Down"),
        Binding("k,up", "scroll(-1)", "Up"),
        Binding("ctrl+d,pagedown,space", "scroll(10)", "Page down"),
        Binding("ctrl+u,pageup", "scroll(-10)", "Page up"),
        Binding("left", "app.focus_previous", "Previous"),
        Binding("right", "app.focus_next", "Next"),
    ]

    def __init__(self, planned: Planned, verb: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._planned, self._verb, self._options = planned, verb, dict(options or {})

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Enter, the options, and the way out."""
        return ("enter", self._verb), *self._options.items(), ("j", "Down"), ("k", "Up"), ("esc", "Cancel")

    def compose(self) -> ComposeResult:
        """Title, effect, diff, and the buttons."""
        with Vertical(id="preview") as box:
            box.border_title = Content(one_line(self._planned.change.title))
            text = [*self._planned.effect, *self._planned.change.notes]
            if text:
                yield Static("\n".join(map(one_line, text)), id="effect", markup=False)
            yield DiffList()
            with Horizontal():
                for key, label in self._options.items():
                    yield Button(f"{label} ({key})", id=f"option-{key}", compact=True)
                yield Button("Cancel (esc)", id="no", compact=True)
                yield Button(f"{self._verb} (enter)", id="yes", compact=True, variant="warning")

    def on_mount(self) -> None:
        """Show the change; enter makes it, and undo takes it back."""
        self.query_one(DiffList).show(self._planned.lines)
        self.query_one("#yes").focus()
        # What is behind was not drawn yet when another dialog has just gone.
        self.call_after_refresh(self.refresh)

    def on_resize(self) -> None:
        """Leave room for the buttons under the difference, however low the screen is."""
        self.query_one(DiffList).styles.max_height = None
        self.call_after_refresh(self._leave_room)

    def _leave_room(self) -> None:
        diff, buttons = self.query_one(DiffList), self.query_one("#preview Horizontal")
        hidden = buttons.virtual_region.bottom - self.query_one("#preview").size.height
        if hidden > 0:
            diff.styles.max_height = max(diff.outer_size.height - hidden, 3)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(None if event.button.id == "no" else str(event.button.id).removeprefix("option-"))

    def on_key(self, event: events.Key) -> None:
        """An option by its key."""
        if event.character in self._options:
            event.stop()
            self.dismiss(event.character)

    def action_answer(self, answer: str) -> None:
        """Answer by key."""
        self.dismiss(answer)

    def action_scroll(self, lines: int) -> None:
        """Scroll the diff."""
        self.query_one(DiffList).scroll_relative(y=lines, animate=False)
