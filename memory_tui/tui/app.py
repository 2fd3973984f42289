"""The app holds the views as modes. It has the theme and the command palette."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from msgspec.structs import replace
from textual import events, on
from textual.app import ScreenStackError
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen
from textual.signal import Signal
from textual.theme import Theme

from memory_tui.cancel import exit_status, report_signal
from memory_tui.errors import MemoryTuiError
from memory_tui.events import (
    Event,
    ModelFetching,
    ProviderChanged,
    RootsChanged,
    SyncFinished,
    SyncProgress,
    SyncStarted,
    VectorsMade,
)
from memory_tui.settings import BY_KEY, TUNE_KEYS
from memory_tui.tui import signals, workers
from memory_tui.tui.action import Action
from memory_tui.tui.action_table import ACTIONS
from memory_tui.tui.colours import (
    THEMES,
    ask_ground,
    asked_theme,
    first_theme,
    roles,
    theme_of,
)
from memory_tui.tui.draw import LastingStyles
from memory_tui.tui.global_actions import GlobalActions
from memory_tui.tui.key_meanings import MEANINGS
from memory_tui.tui.key_queue import KeyQueue
from memory_tui.tui.keymap import bindings, found_by
from memory_tui.tui.navigation import MODES, NUMBERED, make
from memory_tui.tui.note_changes import left_over
from memory_tui.tui.note_info import Marking
from memory_tui.tui.state import KEPT, Facts, Pace
from memory_tui.tui.views.inbox.inbox_count import InboxCount
from memory_tui.tui.views.view import View
from memory_tui.tui.widgets.status_bars import IndexingProgress
from memory_tui.tui.workers import OpenEngine, WorkerJobs, task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.plan import Options
    from memory_tui.search.trace import Trace
    from memory_tui.tui.tuning import Tuning
    from memory_tui.tui.widgets.reader import Reader

TERMINAL_EVERY = 1.0
"""Seconds between two looks at whether the terminal is still there."""
SWEPT_FACTS_SECONDS = 600.0
"""For how long facts hold where sweeps find nothing new; ages are counted in days."""
FACTS_EVERY = 0.5
"""Seconds between two redrawings of the lists while files are being indexed."""

AGAIN_SECONDS = 1.0
"""After how long facts that could not be gathered are gathered again."""


BETWEEN = "between"
"""The mode that is shown while one agent's views go and another's come."""


def _commands() -> type[Provider]:

    return ActionPalette


class MemoryApp(GlobalActions):
    """The app over an engine that `opener` opens on a worker thread, so that the first frame waits for nothing."""

    TITLE = "memory-tui"
    CSS_PATH = "app.tcss"
    DEFAULT_MODE = "browse"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("everywhere"))
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_commands}
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared without ClassVar where it is overridden
        (0, "-tiny"),
        (60, "-narrow"),
        (100, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-flat"),
        (20, "-short"),
        (30, "-tall"),
    ]
    ALLOW_IN_MAXIMIZED_VIEW: ClassVar[str] = "#top, #below, WhichKey"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = MEANINGS["commands"].keys[-1]

    def __init__(
        self,
        opener: OpenEngine,
        *,
        name: str = "",
        query: str = "",
        suggestions: Sequence[str] = (),
        doubt: str = "",
        ground: str = "",
    ) -> None:
        self.set_reactive(GlobalActions.theme, first_theme(ground))
        super().__init__()
        self.stylesheet = LastingStyles(self.get_css_variables())
        self.jobs = WorkerJobs(self, opener)
        self.engine: Engine | None = None
        self.tuning: Tuning | None = None
        self.facts: Facts | None = None
        self.progress: IndexingProgress | None = None
        self.workspace_name = name
        self.suggestions = tuple(suggestions)
        self.news: deque[Event] = deque(maxlen=KEPT)
        self.error: MemoryTuiError | None = None
        self.facts_signal: Signal[Facts] = Signal(self, "facts")
        self.events_signal: Signal[Sequence[Event]] = Signal(self, "events")
        self.started = time.time()
        self.recalled = Marking()
        self.shares, self.typed = {}, {}
        self.pace = Pace()
        self.key_queue = KeyQueue(self, self._strike)
        self.last_input = 0.0
        """When somebody used the app last, in seconds of the monotonic clock."""
        self.inbox_count = InboxCount(self, lambda: time.monotonic() - self.last_input)
        self.signals: signals.Signals | None = None
        """Who ends the app when a signal comes; None where it runs without a terminal."""
        self.last_words = ""
        """What became of unsaved text when the app ended unasked."""
        self.typed_early: str | None = None
        """What was typed while the terminal was asked in vain what its ground is; None where it answered."""
        self.doubt = doubt
        """Why something of the user's own, such as keys.toml, is not used."""
        self._query = query
        self._told_facts = self._gathered_facts = 0.0
        self._provider: ProviderChanged | None = None
        self._add_modes()

    # --- views ---------------------------------------------------------------------------------------------------

    def _add_modes(self) -> None:
        """Let the numbered views be there; each is made when it is first shown."""
        for row in NUMBERED:
            arguments = (self._query,) if row.key == "search" else ()
            self.add_mode(row.key, partial(make, row.target, *arguments))

    def _forget(self, name: str) -> None:
        """Know nothing, as before the engine was opened, of what is called `name` from now on."""
        self.engine, self.tuning, self.facts, self.progress = None, None, None, None
        self.findings = 0
        self.failing_agents = 0
        self.workspace_name, self.suggestions, self._query, self.started = name, (), "", time.time()
        self.news.clear()
        self.recalled.clear()

    def was_recalled(self, trace: Trace | None) -> None:
        """Remember which lines an answer gave, for the reader to mark."""
        if trace is None or self.engine is None or not self.recalled.took(trace):
            return
        self.pace.answered.append(sum(trace.timings.values()))
        writing = self.recalled.writing(self.engine)
        if writing is not None:
            self.jobs.report(writing)

    @property
    def available_themes(self) -> dict[str, Theme]:
        """Our own colours beside those that come with Textual."""
        return {**THEMES, **super().available_themes}

    def get_theme(self, theme_name: str) -> Theme | None:
        """The theme of a name; every widget's style asks for it, so that all of them are not copied for each."""
        return THEMES.get(theme_name) or super().get_theme(theme_name)

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours, and the roles that are made from them."""
        reply = super().get_css_variables()
        self.theme_variables = {**reply, **roles(self.current_theme, reply)}
        return self.theme_variables

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        """Count a new screen as drawn in today's colours: it was made with them.

        Textual would read every rule twice more before it shows the screen, as if the theme had changed.
        """
        super()._load_screen_css(screen)
        screen._css_update_count = self._css_update_count

    def clear_selection(self) -> None:
        """Mark no text, on a view that is still being made neither.

        From Python 3.12 on, Textual runs what mounts a view before the view is on its stack, and a box of text in it
        calls this.
        """
        with suppress(ScreenStackError):
            super().clear_selection()

    def _end_batch(self) -> None:
        """Let the views behind a dialog be laid out too, not only the screen in front.

        Textual drops the idle time of a screen while updates are batched, and wakes only the app afterwards. A view
        that changed just before a dialog was pushed would stay as it was until the dialog closes.
        """
        super()._end_batch()
        with suppress(ScreenStackError):
            # It may be in front until a dialog that is on its way covers it.
            self.screen.check_idle()
            for screen in self._background_screens:
                # The dialog shows what is behind it as that was drawn last, so it is drawn after it.
                screen.call_after_refresh(self.screen.refresh)

    async def on_event(self, event: events.Event) -> None:
        """Give keys to the panes one by one, everything else at once."""
        if isinstance(event, events.InputEvent | events.Paste):
            self.last_input = time.monotonic()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded and self.is_running:
            await self.key_queue.take(event)
        else:
            await super().on_event(event)

    def _answered(self, answer: str) -> None:
        """The terminal said late what its ground is."""
        if self.theme == first_theme():
            self.theme = theme_of(answer)

    async def _strike(self, event: events.Event) -> None:
        """Give a key to the panes, unless a prefix waits for it."""
        if not (isinstance(event, events.Key) and self.take_second(event)):
            await super().on_event(event)

    def on_mount(self) -> None:
        """Open the engine beside the first frame."""
        if self.signals is not None:
            self.signals.listen(asyncio.get_running_loop())
            self.set_interval(TERMINAL_EVERY, self._look_for_terminal)
        if self.typed_early is not None:
            self.key_queue.expect_answer(self._answered)
        if self.typed_early:
            self.call_after_refresh(self.key_queue.type_early, self.typed_early)
        self.jobs.open()
        if self._query:
            self.step_done("asked")
            self.switch_mode("search")

    def _look_for_terminal(self) -> None:
        """End where the terminal is closed, and nobody sent the signal that says so."""
        if self.signals is not None and not self.signals.number and not signals.has_terminal():
            self.signals.hear(signals.CLOSED)

    def action_command_palette(self) -> None:
        """Open the palette, where it is not open."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def leave(self, code: int) -> None:
        """End with exit `code` whatever is on screen; what was typed and not saved is kept as a draft."""
        self.last_words = " ".join(filter(None, [view.leaving() for view in self.views]))
        self.exit(code)

    def on_exit_app(self) -> None:
        """Keep what was typed and not saved where the server ends the app, because the browser's tab is closed."""
        if not self._exit:
            self.leave(0)

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

    def close_engine(self) -> None:
        """Close the engine, within half a second."""
        self.jobs.close()

    def on_unmount(self) -> None:
        """Close the engine before the worker threads are waited for."""
        self.jobs.close()

    # --- news ----------------------------------------------------------------------------------------------------

    @on(workers.EngineOpened)
    def _opened(self, event: workers.EngineOpened) -> None:
        from memory_tui.tui.tuning import Tuning

        self.engine = event.engine
        self.tuning = Tuning.start(event.engine.plan.settings)
        for view in self.views:
            view.engine_opened()
        self.jobs.report(partial(left_over, event.engine))
        self.read_shares()
        if self.doubt:
            self.show_message(self.doubt)

    @on(workers.EngineRefused)
    def _refused(self, event: workers.EngineRefused) -> None:
        self.error = event.error
        self.exit(event.error.exit_status)

    @on(workers.FactsArrived)
    def _facts_arrived(self, event: workers.FactsArrived) -> None:
        if not self.jobs.current(event.number):
            return
        self.jobs.refreshed()
        if event.facts is not None:
            self._gathered_facts = time.monotonic()
            self.facts = event.facts
            self.facts_signal.publish(event.facts)
            self.facts_known()
        elif event.error is not None:
            self._facts_failed(event.error)

    @on(workers.EventsArrived)
    def _events_arrived(self) -> None:
        news = self.jobs.fetch()
        self.news.extend(news)
        for event in news:
            match event:
                case SyncStarted() if event.total:
                    self.progress = IndexingProgress(total=event.total)
                case SyncProgress():
                    self.pace.rates.append(event.rate)
                    self.progress = replace(
                        self.progress or IndexingProgress(),
                        done=event.done,
                        total=event.total,
                        path=event.path,
                        rate=event.rate,
                        seconds_left=event.seconds_left,
                        rebuilding=event.rebuilding,
                    )
                case VectorsMade():
                    self.progress = replace(
                        self.progress or IndexingProgress(),
                        asked=event.done,
                        lacking=event.total,
                        pace=event.pace,
                        fetching="",
                    )
                case ModelFetching() if self.progress is not None:
                    self.progress = replace(self.progress, fetching=f"{event.name}: {event.progress}")
                case SyncFinished():
                    self.progress = None
                    self.pace.rates.clear()
                case _:
                    pass
        if self.facts is not None:
            self.facts = self.facts.after(news)
        self.events_signal.publish(news)
        if any(isinstance(event, RootsChanged) for event in news):
            self._roots_changed()
        # All of them are heard, because each may be what the next one is compared with.
        new = sum(self._is_new(event) for event in news)
        if self.progress is None:
            if new or time.monotonic() - self._gathered_facts > SWEPT_FACTS_SECONDS:
                self.jobs.refresh()
        elif self.facts is not None and time.monotonic() - self._told_facts > FACTS_EVERY:
            self._told_facts = time.monotonic()
            self.facts_signal.publish(self.facts)

    def _is_new(self, event: Event) -> bool:
        """Whether an event can change the facts; a sweep once a minute mostly finds everything as it was."""
        match event:
            case SyncStarted():
                return event.reason != "sweep" or event.total > 0
            case SyncFinished():
                done = event.indexed + event.removed + event.failed + event.embedded
                return event.reason != "sweep" or done > 0 or bool(event.error)
            case ProviderChanged():
                before, self._provider = self._provider, event
                return before is None or replace(before, at=event.at) != event
        return True

    def _facts_failed(self, error: MemoryTuiError) -> None:
        """The facts on screen may not be so any more: say that, and look again until they are known."""
        if self.facts is None or self.facts.doubt != error.message:
            self.show_message(error.message)
        if self.facts is not None:
            self.facts = replace(self.facts, doubt=error.message)
            self.facts_signal.publish(self.facts)
        self.set_timer(AGAIN_SECONDS, self.jobs.refresh)

    def _roots_changed(self) -> None:
        """Say at once what became of the roots: the facts that follow may wait for a file system that hangs."""
        if self.facts is not None and self.engine is not None:
            self.facts = self.facts.beside(self.engine.index.root_watch.states())
            self.facts_signal.publish(self.facts)

    def do_agent(self) -> None:
        """Ask for an agent, and go there when its workspace can be opened."""
        from memory_tui.sanitize import one_line
        from memory_tui.tui.views.dialogs import Picker

        engine = self.engine
        if engine is None:
            return
        if any(getattr(view, "unsaved", False) for view in self.views):
            self.show_message("Your text is not saved yet: save it or drop it, then go to another agent.")
            return
        ids = {
            f"{agent.id}  {one_line(str(agent.workspace))}": agent.id
            for agent in engine.plan.config.agents
            if agent.id != engine.plan.agent.id
        }

        Picker(f"Agents; this is {engine.plan.agent.id}", list(ids)).ask(
            self, lambda name: self._go_to_agent(ids[name])
        )

    @task("agent")
    async def _go_to_agent(self, agent: str) -> None:
        """Close everything of this agent, and open `agent` where that is possible."""
        options = await self.jobs.run(lambda engine: _checked(engine, agent))
        self.add_mode(BETWEEN, Screen)
        await self.switch_mode(BETWEEN)
        for mode in MODES:
            await self.remove_mode(mode)
        self._forget(options.agent)
        self._add_modes()
        self.jobs.reopen(opener_of(options))
        await self.switch_mode(self.DEFAULT_MODE)
        await self.remove_mode(BETWEEN)

    @on(workers.Reported)
    def _told(self, event: workers.Reported) -> None:
        if event.text:
            self.show_message(event.text)


def _checked(engine: Engine, agent: str) -> Options:
    """The options that open `agent`. Raises what opening it would raise."""
    from memory_tui import plan

    options = plan.of_agent(engine.plan.options, agent)
    plan.plan(options).require_enabled()
    return options


def opener_of(options: Options) -> OpenEngine:
    """Opens the engine of `options`."""

    def opener(listener: Callable[[Event], None]) -> Engine:
        from memory_tui.engine.engine import Engine

        return Engine.open(options, listener)

    return opener


def run(
    options: Options,
    query: str = "",
    suggestions: Sequence[str] = (),
    *,
    leads: bool = False,
    doubt: str = "",
) -> int:
    """Open the app on a workspace, with the first steps where it `leads`, and with a `doubt` to be said.

    Returns the exit code, and says on stderr why it could not.
    """
    from memory_tui.sanitize import one_line

    name = one_line(Path(options.workspace or ".").expanduser().resolve().name, 40)
    asks = not (asked_theme() or signals.is_served() or os.environ.get("TERM") == "linux")
    ground, typed = ask_ground() if asks else ("", "")
    app = MemoryApp(opener_of(options), name=name, query=query, suggestions=suggestions, doubt=doubt, ground=ground)
    app.typed_early = typed if typed or (asks and not ground) else None
    if leads:
        app.do_first_steps()
    with signals.heard(app) as event, signals.screen_alone():
        code = app.run()
    if event.number:
        report_signal(event.number, app.last_words)
        return exit_status(event.number)
    if app.error is not None:
        raise app.error
    return app.return_code or 0 if code is None else code


class Palette(CommandPalette):
    """Where a command is looked for."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Go once, as a dialog does."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()


class ActionPalette(Provider):
    """Actions of the view in front; behind the name of one that cannot be done now stands why."""

    def _offered(self) -> Iterator[tuple[Action, str]]:
        view = self.screen
        if not isinstance(view, View):
            return
        context, places = view.context(), view.places()
        for action in ACTIONS:
            if action.palette and action.where in places:
                yield action, action.refuse(context)

    def _title(self, action: Action) -> str:
        keys = f"  ({action.shown_keys})" if action.keys else ""
        return action.help[:1].upper() + action.help[1:] + keys

    def _beside(self, name: Content, refusal: str) -> Content:
        """A command's name, and why it cannot be done now, on the same line so that it is no command of its own."""
        return Content.assemble(name, (f"  Not now. {refusal}", "$quiet")) if refusal else name

    def _run(self, action: Action) -> Callable[[], None]:
        app, chosen = cast("MemoryApp", self.app), [action.id]

        def run() -> None:
            # A command that was chosen twice at once is done once.
            if chosen:
                app.call_later(app.action_do, chosen.pop())

        return run

    async def discover(self) -> Hits:
        """Everything, in the table's order."""
        for action, refusal in self._offered():
            title = self._title(action)
            yield DiscoveryHit(self._beside(Content(title), refusal), self._run(action), title)

    async def search(self, query: str) -> Hits:
        """What holds every word of `query`, then what has words like them; of a number the line of the note."""
        from memory_tui.sanitize import one_line

        matcher, target = self.matcher(query), query.lower().split()
        for action, refusal in self._offered():
            title = self._title(action)
            if score := found_by(action, target):
                yield Hit(score, self._beside(matcher.highlight(title), refusal), self._run(action), title)
        for key in TUNE_KEYS if self.screen.query("TuneStrip") else ():
            title = f"Turn {BY_KEY[key].label}: {BY_KEY[key].help}"
            if all(word in f"{title} {key}".lower() for word in target):
                yield Hit(1.5, matcher.highlight(title), partial(self._turn, key))
        number, reader = query.strip().removeprefix(":"), self._reader()
        if number.isdecimal() and len(number) < 10 and reader is not None and reader.page is not None:
            title = f"Go to line {int(number)} of {one_line(reader.page.path)}"
            yield Hit(2.0, matcher.highlight(title), partial(self._go_to_line, reader, int(number)))

    def _reader(self) -> Reader | None:
        """The reader of the view in front, where it shows a note."""
        from memory_tui.tui.widgets.reader import Reader

        drawn = (reader for reader in self.screen.query(Reader) if reader.display and reader.page is not None)
        return next(drawn, None)

    def _go_to_line(self, reader: Reader, line: int) -> None:
        """Put the cursor of `reader` on `line`, on the last one where there are fewer."""
        reader.focus()
        reader.go_to_line(line)

    def _turn(self, key: str) -> None:
        """Go to the knob `key`."""
        from memory_tui.tui.widgets.tune_strip import TuneStrip

        strip = self.screen.query_one(TuneStrip)
        strip.focus()
        strip.select(key)
