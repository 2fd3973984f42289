"""A view is a screen with a truth bar above. It has key hints below and a name for where the user is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from msgspec.structs import replace
from textual import events, on
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input

from memory_tui.events import Event
from memory_tui.tui.action import Context
from memory_tui.tui.home import Home, home_of
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import bindings
from memory_tui.tui.navigation import make
from memory_tui.tui.state import Facts
from memory_tui.tui.tuning import brought
from memory_tui.tui.widgets.panes import Panes
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.status_bars import KeyHints, StepsPane, TabLine, TooSmall, TruthBar, WhichKey
from memory_tui.tui.workers import alive

if TYPE_CHECKING:
    from memory_tui.errors import MemoryTuiError
    from memory_tui.search.trace import Trace

T = TypeVar("T")

NO_ROWS = f"Nothing can be marked in this pane. {key_of('help')} shows its keys."
PALETTE_HINTS = (("enter", "Do it"), ("down", "Next"), ("esc", "Close"))
"""The keys of the palette, which is no dialog of ours."""
BROAD = 116
"""Columns from which on there is room beside a reader."""
HUGE = 160
"""Columns from which lists have room for pictures."""
SLIM = 80
"""Columns below which two panes side by side have no room."""


class Part:
    """A part of a view: its actions (`do_`), its tasks, and what it keeps. It hears what the view hears."""

    def __init__(self, view: View) -> None:
        self.view = view

    @property
    def home(self) -> Home:
        """The app, as far as a part may know it."""
        return self.view.home

    def compose(self) -> Iterable[Widget]:
        """The panes of this part, where it has its own."""
        return ()

    def mounted(self) -> None:
        """The view is there, and its panes can be asked for."""

    def resumed(self) -> None:
        """The view is in front again."""

    def moved(self, rows: RowList, /) -> None:
        """The cursor of a list is on another row."""

    def chosen(self, rows: RowList, /) -> None:
        """Enter was pressed on a row of a list, or the row under the cursor was clicked."""

    def typed(self, box: Input, /) -> None:
        """Something else stands in a box of text."""

    def tuned(self, *, keep: bool = True) -> None:
        """The knobs stand elsewhere now; with `keep` the cursor stays on its chunk."""

    def facts_changed(self, facts: Facts, /) -> None:
        """The engine's facts are other ones now."""

    def events_came(self, events: Sequence[Event], /) -> None:
        """The engine told something."""

    def edited(self, path: str, line: int) -> None:
        """A note was edited on screen: show it as it is now."""

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The place in a note that is under the cursor: path, first and last line; None without one."""
        return None

    def line_in_note(self) -> int:
        """The 1-based line at which an editor opens it."""
        return 1

    def text_in_note(self) -> str:
        """The text of that place."""
        return ""

    def context(self) -> dict[str, bool]:
        """The fields of the context that only this part knows."""
        return {}

    def refused(self, error: MemoryTuiError) -> str:
        """Why a task came to nothing, for the message line; empty where it is shown otherwise."""
        return self.view.refused(error)


class KnobHistory(Part):
    """The way back from what turned knobs, and forward again."""

    def context(self) -> dict[str, bool]:
        """Whether there is a way."""
        tuning = self.home.tuning
        return {"undo": bool(tuning and tuning.past), "redo": bool(tuning and tuning.future)}

    def do_undo(self) -> None:
        """Undo the last step: a knob, a change that was applied, the date or the baseline."""
        before = self.home.tuning
        if before is not None and before.past:
            after = before.undo()
            self.home.turn(after)
            self.view.show_message(f"Undone: {brought(before.stand, after.stand)} again.")

    def do_redo(self) -> None:
        """Redo it."""
        before = self.home.tuning
        if before is not None and before.future:
            self.home.turn(before.redo())
            self.view.show_message(f"Redone: {brought(before.stand, before.future[0])}.")


def sentence_of(error: MemoryTuiError) -> str:
    """What went wrong, and what to do next."""
    return f"{error.message} {error.next_step}".strip()


class View(Screen[None]):
    """A screen with truth bar and key hints; subclasses compose what is between and answer to actions.

    An action `x` runs the method `do_x` of the first node, from the focused one up, that has it.
    """

    PLACE = ""
    """The view's place in the keymap."""
    SCROLLED = ""
    """Selects the pane that J and K scroll while another has the focus."""
    SCROLL_LINES = 3
    MORE_PLACES: ClassVar[tuple[str, ...]] = ()
    """Places between the pane in focus and the view itself."""
    unhinted: frozenset[str] = frozenset()
    """Places whose keys work, and are not hinted at now."""
    _following = _was_in_front = False

    def __init_subclass__(cls) -> None:
        """Bind the keys of the view's places."""
        places = dict.fromkeys((*cls.MORE_PLACES, cls.PLACE))
        cls.BINDINGS = [binding for place in places for binding in bindings(place)]
        super().__init_subclass__()

    def __init__(self, below: View | None = None) -> None:
        super().__init__()
        # Panes that are made for the size of the terminal need not be styled again when it is told.
        self.update_classes(self._fitting(self.app.size), update=False)
        self.below = below
        """The view that it was opened over, where it is an overlay."""
        self.parts: tuple[Part, ...] = ()

    @property
    def question(self) -> str:
        """The question that this view has an answer to, if it asks any."""
        return ""

    @property
    def home(self) -> Home:
        """The app, as far as a view may know it."""
        return home_of(self)

    def compose(self) -> ComposeResult:
        """The frame around the view's own panes."""
        with Horizontal(id="top"):
            yield TabLine()
            yield TruthBar(self.home.workspace_name)
        yield from self.compose_view()
        with Vertical(id="below"):
            yield StepsPane()
            yield KeyHints()
        yield WhichKey()
        yield TooSmall()

    def compose_view(self) -> Iterable[Widget]:
        """The panes between truth bar and key hints."""
        for part in self.parts:
            yield from part.compose()

    def panes(self) -> Panes:
        """A row for panes, with the rule between them where this view's was left."""
        return Panes(place=self.PLACE)

    def on_mount(self) -> None:
        """Follow the app's facts and events; called by subclasses first, and by Textual for every class."""
        if self._following:
            return
        self._following = True
        self.home.facts_signal.subscribe(self, self._facts)
        self.home.events_signal.subscribe(self, self._events)
        if self.home.facts is not None:
            self._facts(self.home.facts)
        for part in self.parts:
            part.mounted()

    def _facts(self, facts: Facts) -> None:
        self.show_top()
        for part in self.parts:
            part.facts_changed(facts)
        self.facts_changed(facts)
        self.update_hints()

    def show_top(self) -> None:
        """Bring the first line up to date: tabs and truth."""
        facts, tuning = self.home.facts, self.home.tuning
        if facts is not None and tuning is not None and facts.agents:
            # The screen ranks by the knobs as they were turned, written or not.
            facts = replace(facts, agents=tuple(agent.beside(tuning.settings) for agent in facts.agents))
        self.query_one(TabLine).show(self.home.current_mode, self.home.badges)
        self.query_one(TruthBar).show(facts, self.home.progress)
        self.show_steps()

    def show_steps(self) -> None:
        """Bring the first steps up to date, or take them away."""
        if self.is_mounted and alive(self):
            self.query_one(StepsPane).show(self.home.first_steps)

    def _events(self, events: Sequence[Event]) -> None:
        self.show_top()
        for part in self.parts:
            part.events_came(events)
        self.events_came(events)
        self.update_hints()

    def on_resize(self, event: events.Resize) -> None:
        """Where the screen is broad, there is room beside a reader; where it is slim, lists stand above texts."""
        self.update_classes(self._fitting(event.size))

    def _fitting(self, size: Size) -> dict[str, bool]:
        """Each class that stands for a size of the terminal, and whether it is that of `size`."""
        across, down = self.app.HORIZONTAL_BREAKPOINTS or [], self.app.VERTICAL_BREAKPOINTS or []
        rest = self._get_breakpoint_classes(size.width, across) | self._get_breakpoint_classes(size.height, down)
        return {
            **{name: name in rest for _, name in (*across, *down)},
            "-broad": size.width >= BROAD,
            "-slim": size.width < SLIM,
            "-huge": size.width >= HUGE,
        }

    def facts_changed(self, facts: Facts, /) -> None:
        """The engine's facts are other ones now."""

    def events_came(self, events: Sequence[Event]) -> None:
        """The engine told something."""

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        """The view is in front, for the first time or again."""
        # What was just made has its styles; colours may be other ones when it comes back.
        event.refresh_styles, self._was_in_front = event.refresh_styles and self._was_in_front, True
        self.query_one(KeyHints).cover(None)
        self.show_top()
        self.update_hints()
        for part in self.parts:
            part.resumed()

    def _on_screen_suspend(self) -> None:
        """Something else is in front: no key of this view does anything, and no second letter is waited for."""
        if self.is_mounted and alive(self):
            self.query_one(WhichKey).leave()
            front = self.app.screen
            self.query_one(KeyHints).cover(front.hints if isinstance(front, Dialog) else PALETTE_HINTS)

    @on(RowList.Moved)
    def _tell_moved(self, event: RowList.Moved) -> None:
        for part in self.parts:
            part.moved(event.rows)

    @on(RowList.Chosen)
    def _tell_chosen(self, event: RowList.Chosen) -> None:
        for part in self.parts:
            part.chosen(event.rows)

    @on(Input.Changed)
    def _tell_typed(self, event: Input.Changed) -> None:
        for part in self.parts:
            part.typed(event.input)

    def on_descendant_focus(self) -> None:
        """Another pane is in focus."""
        self.update_hints()

    def places(self) -> tuple[str, ...]:
        """Where the user is, nearest first, in terms of the action table."""
        new = getattr(self.focused, "PLACES", ())
        return tuple(dict.fromkeys((*new, *self.MORE_PLACES, self.PLACE, "everywhere")))

    def context(self) -> Context:
        """What decides which actions can be done now."""
        facts = self.home.facts
        more: dict[str, Any] = {flag: holds for part in self.parts for flag, holds in part.context().items()}
        return Context(
            ready=self.home.engine is not None,
            read_only=facts is not None and facts.status.read_only,
            unwritable=facts.unwritable if facts is not None else "",
            can_suspend=self.home.can_suspend,
            syncing=self.home.progress is not None,
            agents=facts is not None and len(facts.status.agents) > 1,
            zoomed=self.maximized is not None,
            note=self.place_in_note() is not None,
            **more,
            **self.more_context(),
        )

    def more_context(self) -> Mapping[str, Any]:
        """The fields of the context that only this view knows."""
        return {}

    def place_in_note(self) -> tuple[str, int, int] | None:
        """The note under the cursor: path, first and last line; None without one."""
        return next((place for part in self.parts if (place := part.place_in_note()) is not None), None)

    def line_in_note(self) -> int:
        """The 1-based line at which an editor opens it."""
        return max((part.line_in_note() for part in self.parts), default=1)

    def text_in_note(self) -> str:
        """The text of that place."""
        return next((text for part in self.parts if (text := part.text_in_note())), "")

    def leaving(self) -> str:
        """Keep what would be lost when the app ends now, unasked; returns what became of it."""
        return ""

    def engine_opened(self) -> None:
        """The engine can be asked from now on."""

    def backend_changed(self) -> None:
        """Another backend answers from now on."""

    def tuned(self, *, keep: bool = True) -> None:
        """The knobs stand elsewhere now; with `keep` the cursor stays on its chunk."""
        for part in self.parts:
            part.tuned(keep=keep)

    def refused(self, error: MemoryTuiError) -> str:
        """Why a task came to nothing."""
        return sentence_of(error)

    def update_hints(self) -> None:
        """Bring the key hints up to date."""
        if self.is_mounted and alive(self):
            places = [place for place in self.places() if place not in self.unhinted]
            self.query_one(KeyHints).show(places, self.context())

    def show_message(self, sentence: str) -> None:
        """Show a sentence in the message line for three seconds; a view that is being left shows none."""
        if self.is_mounted and alive(self):
            self.query_one(KeyHints).show_message(sentence)

    def read_note(self, path: str, lines: tuple[int, int], asked: Trace | None = None) -> None:
        """Open the reader over this view at the 1-based `lines` of a note, which answered what was `asked`."""
        reader = make("notes.browse:ReaderView", path, lines, asked)
        self.app.push_screen(reader)

    def _screen_resized(self, size: Size) -> None:
        """Wake this view behind a dialog: laying it out from there stops its timer, whatever is still to be drawn."""
        super()._screen_resized(size)
        self.check_idle()

    @on(RowList.Nothing)
    def _nothing_there(self, event: RowList.Nothing) -> None:
        self.show_message(event.sentence)

    @on(RowList.Marked)
    def _marked(self) -> None:
        self.update_hints()

    def _marking(self) -> Widget | None:
        """The list whose rows are marked from the pane in focus."""
        return self.focused

    def do_poor(self) -> None:
        """Show what agents asked that was answered poorly, over this view."""
        self.app.push_screen(make("index.recalls_view:poor_recalls", self))

    def do_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away."""
        if isinstance(rows := self._marking(), RowList):
            rows.marks.row()
        else:
            self.show_message(NO_ROWS)

    def do_mark_all(self) -> None:
        """Mark every row of this kind, or none."""
        if isinstance(rows := self._marking(), RowList):
            rows.marks.kind()
        else:
            self.show_message(NO_ROWS)

    def do_scroll_down(self) -> None:
        """Scroll the other pane without leaving this one."""
        self._scroll(self.SCROLL_LINES)

    def do_scroll_up(self) -> None:
        """Scroll the other pane back."""
        self._scroll(-self.SCROLL_LINES)

    def _scroll(self, lines: int) -> None:
        for pane in self.query(self.SCROLLED) if self.SCROLLED else ():
            pane.scroll_relative(y=lines, animate=False)

    def back(self) -> bool:
        """One step back inside the view, then to the view below; False when there is none."""
        if self.below is None:
            return False
        self.app.pop_screen()
        return True


class Dialog(ModalScreen[T]):
    """A screen in front of a view or of another dialog, both of which are seen behind it."""

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Its keys with what they do, as the line below names them; the way out comes last."""
        return ()

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        """In front, for the first time or again: the view behind hints at the keys of this dialog."""
        del event
        behind = next((screen for screen in reversed(self.app.screen_stack) if isinstance(screen, View)), None)
        if behind is not None and behind.is_mounted and alive(behind):
            behind.query_one(KeyHints).cover(self.hints)

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Go once: a second key or click that came before this was gone closes nothing else."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key does something: nothing does before there is something to see."""
        return self.is_mounted and super().check_action(action, parameters)

    def ask(self, app: App[Any], then: Callable[[T], object]) -> None:
        """Show this dialog and call `then` with the answer; a no, or leaving it, is none."""

        def answered(answer: T | None) -> None:
            if answer is not None and answer is not False:
                then(answer)

        app.push_screen(self, answered)

    def _screen_resized(self, size: Size) -> None:
        """Wake this dialog behind another one, as a view is woken."""
        super()._screen_resized(size)
        self.check_idle()
