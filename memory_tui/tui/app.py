"""The app: views as modes, one way for every action, and the engine's news on their way to the views."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ScreenStackError
from textual.binding import BindingType
from textual.command import Provider
from textual.signal import Signal
from textual.theme import Theme

from memory_tui import stop_signals
from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event, RootsChanged, SyncFinished, SyncProgress, SyncStarted, VectorsMade
from memory_tui.tui import messages, signals
from memory_tui.tui.actions import bindings
from memory_tui.tui.bridge import Bridge, Opener
from memory_tui.tui.doing import Doing
from memory_tui.tui.draft import left_over
from memory_tui.tui.facts import Facts
from memory_tui.tui.marking import Marking
from memory_tui.tui.modes import VIEWS, make
from memory_tui.tui.theme import THEMES, first_theme, greys
from memory_tui.tui.typed_ahead import TypedAhead
from memory_tui.tui.widgets.event_log import KEPT
from memory_tui.tui.widgets.truth_bar import Progress

if TYPE_CHECKING:
    from memory_tui.engine import Engine, Options
    from memory_tui.search.trace import Trace
    from memory_tui.tui.session import Tuning


TERMINAL_EVERY = 1.0
"""Seconds between two looks at whether the terminal is still there."""
FACTS_EVERY = 0.5
"""Seconds between two redrawings of the lists while files are being indexed."""

AGAIN_SECONDS = 1.0
"""After how long facts that could not be gathered are gathered again."""


def _commands() -> type[Provider]:
    from memory_tui.tui.palette import Actions

    return Actions


class MemoryApp(Doing):
    """The app over an engine that `opener` opens on a worker thread, so that the first frame waits for nothing."""

    TITLE = "memory-tui"
    CSS_PATH = "app.tcss"
    DEFAULT_MODE = "browse"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("everywhere"))
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_commands}
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared without ClassVar where it is overridden
        (0, "-thin"),
        (80, "-narrow"),
        (100, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-low"),
        (24, "-short"),
        (30, "-tall"),
    ]
    ALLOW_IN_MAXIMIZED_VIEW: ClassVar[str] = "TruthBar, KeyHints"
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, opener: Opener, *, name: str = "", query: str = "", suggestions: Sequence[str] = ()) -> None:
        self.set_reactive(Doing.theme, first_theme())
        super().__init__()
        self.bridge = Bridge(self, opener)
        self.engine: Engine | None = None
        self.tuning: Tuning | None = None
        self.facts: Facts | None = None
        self.progress: Progress | None = None
        self.workspace_name = name
        self.suggestions = tuple(suggestions)
        self.news: deque[Event] = deque(maxlen=KEPT)
        self.error: MemoryTuiError | None = None
        self.facts_signal: Signal[Facts] = Signal(self, "facts")
        self.events_signal: Signal[Sequence[Event]] = Signal(self, "events")
        self.started = time.time()
        self.recalled = Marking()
        self.typed_ahead = TypedAhead(self, super().on_event)
        self.signals: signals.Signals | None = None
        """Who ends the app when a signal comes; None where it runs without a terminal."""
        self.last_words = ""
        """What became of unsaved text when the app ended unasked."""
        self._query = query
        self._told_facts = 0.0
        self.add_modes(VIEWS)

    # --- views ---------------------------------------------------------------------------------------------------

    def add_modes(self, modes: Sequence[str]) -> None:
        """Let `modes` be there; each makes its view when it is first shown."""
        for mode in modes:
            self.add_mode(mode, partial(make, mode, self._query))

    def forget(self, name: str) -> None:
        """Know nothing, as before the engine was opened, of what is called `name` from now on."""
        self.engine, self.tuning, self.facts, self.progress = None, None, None, None
        self.workspace_name, self.suggestions, self._query, self.started = name, (), "", time.time()
        self.news.clear()
        self.recalled.clear()

    def was_recalled(self, trace: Trace | None) -> None:
        """Remember which lines an answer gave, for the reader to mark."""
        if trace is None or self.engine is None or not self.recalled.took(trace):
            return
        writing = self.recalled.writing(self.engine)
        if writing is not None:
            self.bridge.tell(writing)

    @property
    def available_themes(self) -> dict[str, Theme]:
        """Our own colours beside those that come with Textual."""
        return {**THEMES, **super().available_themes}

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Two greys of our own, for every theme."""
        return greys(self.current_theme)

    def clear_selection(self) -> None:
        """Mark no text, on a view that is still being made neither.

        From Python 3.12 on, Textual runs what mounts a view before the view is on its stack, and a box of text in it
        calls this.
        """
        with suppress(ScreenStackError):
            super().clear_selection()

    async def on_event(self, event: events.Event) -> None:
        """Give keys to the panes one by one, everything else at once."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded and self.is_running:
            await self.typed_ahead.take(event)
        else:
            await super().on_event(event)

    def on_mount(self) -> None:
        """Open the engine beside the first frame."""
        if self.signals is not None:
            self.signals.listen(asyncio.get_running_loop())
            self.set_interval(TERMINAL_EVERY, self._look_for_terminal)
        self.bridge.open()
        if self._query:
            self.switch_mode("search")

    def _look_for_terminal(self) -> None:
        """End where the terminal is closed, and nobody sent the signal that says so."""
        if self.signals is not None and not self.signals.number and not signals.has_terminal():
            self.signals.hear(signals.CLOSED)

    def leave(self, code: int) -> None:
        """End with exit `code` whatever is on screen; what was typed and not saved is kept as a draft."""
        self.last_words = " ".join(filter(None, [view.leaving() for view in self.views]))
        self.exit(code)

    def woken(self) -> None:
        """Set the terminal up again, and draw everything: the process was stopped without being told."""
        if self._driver is not None:
            self._driver.suspend_application_mode()
            self._driver.resume_application_mode()
            self.draw_anew()

    def draw_anew(self) -> None:
        """Draw everything, on a terminal that shows something else by now."""
        self.screen.refresh(layout=True)
        self.refresh(layout=True)

    def on_unmount(self) -> None:
        """Close the engine before the worker threads are waited for."""
        self.bridge.close()
        gc.unfreeze()

    # --- news ----------------------------------------------------------------------------------------------------

    @on(messages.EngineOpened)
    def _opened(self, event: messages.EngineOpened) -> None:
        from memory_tui.tui.session import Tuning

        self.engine = event.engine
        self.tuning = Tuning.start(event.engine.settings)
        # What is loaded by now stays; looking through it again and again would stop the screen for 50 ms each time.
        gc.freeze()
        for view in self.views:
            view.engine_opened()
        self.bridge.tell(partial(left_over, event.engine))

    @on(messages.EngineRefused)
    def _refused(self, event: messages.EngineRefused) -> None:
        self.error = event.error
        self.exit(event.error.exit_status)

    @on(messages.FactsArrived)
    def _facts_arrived(self, event: messages.FactsArrived) -> None:
        if not self.bridge.current("facts", event.number):
            return
        self.bridge.looked()
        if event.facts is not None:
            self.facts = event.facts
            self.facts_signal.publish(event.facts)
        elif event.error is not None:
            self._facts_failed(event.error)

    @on(messages.EventsArrived)
    def _events_arrived(self) -> None:
        news = self.bridge.fetch()
        self.news.extend(news)
        for event in news:
            match event:
                case SyncStarted() if event.total:
                    self.progress = Progress(total=event.total)
                case SyncProgress():
                    self.progress = replace(
                        self.progress or Progress(),
                        done=event.done,
                        total=event.total,
                        path=event.path,
                        rate=event.rate,
                        seconds_left=event.seconds_left,
                        rebuilding=event.rebuilding,
                    )
                case VectorsMade():
                    self.progress = replace(self.progress or Progress(), asked=event.done, lacking=event.total)
                case SyncFinished():
                    self.progress = None
                case _:
                    pass
        if self.facts is not None:
            self.facts = self.facts.after(news)
        self.events_signal.publish(news)
        if any(isinstance(event, RootsChanged) for event in news):
            self._roots_changed()
        if self.progress is None:
            self.bridge.look()
        elif self.facts is not None and time.monotonic() - self._told_facts > FACTS_EVERY:
            self._told_facts = time.monotonic()
            self.facts_signal.publish(self.facts)

    def _facts_failed(self, error: MemoryTuiError) -> None:
        """The facts on screen may not be so any more: say that, and look again until they are known."""
        if self.facts is None or self.facts.doubt != error.message:
            self.tell(error.message)
        if self.facts is not None:
            self.facts = replace(self.facts, doubt=error.message)
            self.facts_signal.publish(self.facts)
        self.set_timer(AGAIN_SECONDS, self.bridge.look)

    def _roots_changed(self) -> None:
        """Say at once what became of the roots: the facts that follow may wait for a file system that hangs."""
        if self.facts is not None and self.engine is not None:
            self.facts = self.facts.beside(self.engine.roots())
            self.facts_signal.publish(self.facts)

    @on(messages.Gathered)
    def _gathered(self, event: messages.Gathered) -> None:
        if self.bridge.current("search", event.number):
            for view in self.views:
                view.answered(event.number, event.evidence, event.error)

    @on(messages.PageRead)
    def _page_read(self, event: messages.PageRead) -> None:
        if self.bridge.current("page", event.number):
            for view in self.views:
                view.page_came(event.number, event.page, event.error)

    @on(messages.Done)
    async def _done(self, event: messages.Done) -> None:
        if event.kind == "agent" and self.bridge.current(event.kind, event.number):
            await self._go_to_agent(event)
        elif self.bridge.current(event.kind, event.number):
            for view in self.views:
                view.work_done(event)

    async def _go_to_agent(self, event: messages.Done) -> None:
        from memory_tui.tui import agents

        if event.error is not None:
            self.tell(f"{event.error.message} {event.error.next_step}")
        else:
            await agents.go(self, event.value)  # type: ignore[arg-type]

    @on(messages.Worked)
    def _worked(self, event: messages.Worked) -> None:
        if self.bridge.current(event.kind, event.number):
            for view in self.views:
                view.worked(event)

    @on(messages.Told)
    def _told(self, event: messages.Told) -> None:
        if event.text:
            self.tell(event.text)


def run(options: Options, query: str = "", suggestions: Sequence[str] = ()) -> int:
    """Open the app on a workspace; returns the exit code, and says on stderr why it could not."""

    def opener(listener: Callable[[Event], None]) -> Engine:
        from memory_tui.engine import Engine

        return Engine.open(options, listener)

    from memory_tui.text.display import one_line

    name = one_line(Path(options.workspace or ".").expanduser().resolve().name, 40)
    app = MemoryApp(opener, name=name, query=query, suggestions=suggestions)
    with signals.heard(app) as heard:
        code = app.run()
    if heard.number:
        stop_signals.say(heard.number, app.last_words)
        return stop_signals.exit_status(heard.number)
    if app.error is not None:
        raise app.error
    return app.return_code or 0 if code is None else code
