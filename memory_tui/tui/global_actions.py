"""Actions run here: the nearest pane's `do_` method, else an overlay, else what works in every view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual import events, widgets
from textual.app import App
from textual.widgets import Input

from memory_tui.errors import MemoryTuiError
from memory_tui.sanitize import one_line
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.keymap import after_prefix, find, typed, why_nothing
from memory_tui.tui.navigation import make, overlay
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.status_bars import WhichKey
from memory_tui.tui.workers import alive, task, warm

if TYPE_CHECKING:
    from memory_tui.backends.qmd import QmdClient
    from memory_tui.engine.engine import Engine
    from memory_tui.tui.key_queue import KeyQueue
    from memory_tui.tui.state import Facts
    from memory_tui.tui.tuning import Tuning
    from memory_tui.tui.views.dialogs import LineDialog
    from memory_tui.tui.views.inbox.inbox_count import InboxCount
    from memory_tui.tui.widgets.first_steps import FirstSteps
    from memory_tui.tui.workers import WorkerJobs


class GlobalActions(App[int]):
    """The app's own `do_` methods; views and panes have theirs, and come first."""

    jobs: WorkerJobs
    engine: Engine | None
    findings = 0
    """Suggestions of the inbox that are neither kept nor put off, as far as somebody looked."""
    failing_agents = 0
    """Agents that fail, as far as somebody looked."""
    first_steps: FirstSteps | None = None
    """Where somebody new stands; None where nobody is led."""
    shares: dict[str, float]
    suggestions: tuple[str, ...]
    typed: dict[tuple[str, str], str]
    _warmed: Engine | None = None
    """The engine that is ready for a first question, or is being made so."""
    _asked_from = "browse"
    """The numbered view in which a question was chosen that the search view answers; leaving that leads back."""
    _which: WhichKey | None = None
    """What waits for the second letter of a key, in the view where its first one was pressed."""
    facts: Facts | None
    key_queue: KeyQueue
    inbox_count: InboxCount
    tuning: Tuning | None
    """Where the knobs are; known when the engine is open."""

    @property
    def views(self) -> list[View]:
        """Every view that exists, shown or not."""
        return [screen for stack in self._screen_stacks.values() for screen in stack if isinstance(screen, View)]

    def turn(self, tuning: Tuning | None) -> None:
        """The knobs go to `tuning`; every view that shows an answer follows."""
        if tuning is not None and tuning is not self.tuning:
            self.tuning = tuning
            for view in self.views:
                view.tuned()
                if view.is_mounted and alive(view):
                    view.show_top()

    @property
    def view(self) -> View | None:
        """The view in front; None while a dialog or the palette is."""
        return self.screen if isinstance(self.screen, View) else None

    @property
    def badges(self) -> Mapping[str, str]:
        """Files behind, findings, agents that fail; nothing where there are none, or nobody looked yet."""
        pending = len(self.facts.status.freshness.pending) if self.facts is not None else 0
        counts = {"index": pending, "inbox": self.findings, "agents": self.failing_agents}
        return {key: f"{count:,}" for key, count in counts.items() if count}

    @property
    def question(self) -> str:
        """The question that some view shows an answer to, empty without one."""
        return next((view.question for view in self.views if view.question), "")

    @property
    def can_suspend(self) -> bool:
        """Whether the terminal can be handed to another program."""
        return not (self.is_headless or self.is_web)

    async def action_do(self, name: str) -> None:
        """Do the action called `name` where the user is, or say why not; what needs the index waits for it."""
        view = self.view
        if view is None:
            return
        action, context = find(name, view.places()), view.context()
        if sentence := action.waits(context):
            self._postpone(view, name, sentence)
            return
        reason = action.refuse(context)
        if reason:
            view.show_message(reason)
            return
        method, row = _method(view, name), overlay(name)
        if method is not None:
            method()
        elif row is not None:
            self.push_screen(make(row.target, view))
        view.update_hints()

    def _postpone(self, view: View, name: str, sentence: str) -> None:
        """Do `name` when the index is open, unless `view` is no longer in front; keys that follow wait behind it."""

        async def later() -> None:
            if self.view is view:
                await self.action_do(name)

        self.key_queue.postpone(later, lambda: self.show_message("Taken back: no key waits for the index any more."))
        view.show_message(sentence)

    def step_done(self, deed: str) -> None:
        """Something was really done, not only asked for: go on to the next step where that is what it waits for."""
        before = self.first_steps
        if before is None:
            return
        self.first_steps = before.after(deed)
        if self.first_steps is None:
            # The view that the last step leads to is in front only in a moment.
            sentence = (
                f"That was the last of the first steps. {key_of('help')} explains each "
                f"pane, {key_of('commands')} finds any command."
            )
            self.call_later(self.show_message, sentence)
        if self.first_steps != before:
            self._show_steps()

    def _show_steps(self) -> None:
        for view in self.views:
            view.show_steps()

    def do_first_steps(self) -> None:
        """Begin the five first steps."""
        from memory_tui.tui.widgets.first_steps import FirstSteps

        self.first_steps = FirstSteps()
        self._show_steps()

    def do_narrower(self) -> None:
        """Where there are no panes side by side."""
        self.show_message("This view has one pane.")

    do_wider = do_narrower

    @task("shares", exclusive=False)
    async def keep_share(self, place: str) -> None:
        """Write down the part of the width that a pane was given, by the name of its share."""
        from memory_tui.tui.widgets.panes import SCOPE, SHARES

        # The sample workspace leaves nothing behind for others; it alone suggests questions.
        if self.suggestions or (self.engine is not None and self.engine.plan.read_only):
            return
        share = round(self.shares[place], 4)
        await self.jobs.write(lambda _: SHARES.of(SCOPE).put(place, share))

    @task("shares")
    async def read_shares(self) -> None:
        """Read how wide panes were left, and have them follow."""
        from memory_tui.tui.widgets.panes import Panes, read_shares

        reply = await self.jobs.attempt(lambda _: read_shares())
        if isinstance(reply, dict):
            self.shares.update(reply)
            for view in self.views:
                for panes in view.query(Panes):
                    panes.follow(self.shares)

    def facts_known(self) -> None:
        """The engine is open and its facts are on screen: do what waited for that."""
        self.key_queue.resume()
        if self.facts is not None:
            self.inbox_count.facts_came(self.facts)
        if self._warmed is not self.engine:
            self._warmed = self.engine
            self._warm()

    @task("warm")
    async def _warm(self) -> None:
        """Do in a worker what the first question would be slow by; quitting stops it."""
        await self.jobs.stoppable(warm)

    def action_prefix(self, prefix: str) -> None:
        """Wait for the second letter of a key such as `gt`; after a moment, list what there is."""
        view = self.view
        if view is not None:
            self._which = view.query_one(WhichKey)
            self._which.wait(prefix, after_prefix(prefix, view.places()), view.context())

    def take_second(self, event: events.Key) -> bool:
        """Take the second letter of a key, where a prefix waits for it; another key takes the list away and says so."""
        which, self._which = self._which, None
        prefix, view = which.leave() if which is not None else "", self.view
        if not prefix or view is None:
            return False
        reply = after_prefix(prefix, view.places()).get(event.character or "")
        if reply is not None:
            self.call_later(self.action_do, reply.id)
        elif event.key != "escape":
            key = typed(event)
            view.show_message(why_nothing(f"{prefix}{key}" if len(key) == 1 else key, view.places()))
        return True

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        view = self.view
        if view is not None and event.key not in view.active_bindings:
            view.show_message(why_nothing(typed(event), view.places()))

    def do_ask(self) -> None:
        """Go to the query box."""

        def focus() -> None:
            for box in self.screen.query("#query").results(Input):
                if not box.has_focus:
                    box.focus()
                    # What is typed is another question; any other key keeps this one.
                    box.action_select_all()

        self._go_to("search", focus)

    def _go_to(self, mode: str, then: Callable[[], object] | None = None) -> None:
        """Go to a numbered view, and leave what lies over it; text that is not saved stays in front."""
        self.switch_mode(mode)
        self._asked_from = self.DEFAULT_MODE

        def uncover() -> None:
            while self.view is not None and len(self.screen_stack) > 1 and not getattr(self.view, "unsaved", False):
                self.pop_screen()
            if then is not None:
                then()

        self.key_queue.when_drawn(uncover)

    def do_browse(self) -> None:
        """View 1."""
        self._go_to("browse")

    def do_search(self) -> None:
        """View 2."""
        self._go_to("search")

    def do_index(self) -> None:
        """View 3."""
        self._go_to("index")

    def do_inbox(self) -> None:
        """View 4."""
        self._go_to("inbox")
        self.step_done("inbox")

    def do_map(self) -> None:
        """View 5."""
        self._go_to("map")

    def do_agents(self) -> None:
        """View 6."""
        self._go_to("agents")

    def do_backend(self) -> None:
        """Let QMD answer, after an agreement where a file names the program; or the built-in index again."""
        engine = self.engine
        if engine is None:
            return
        if engine.backend.is_qmd:
            engine.backend.choose("builtin")
            self._answered_by("The built-in index answers from now on.")
            return
        from memory_tui.errors import MemoryTuiError

        try:
            client = engine.backend.client
            question = client.unapproved
        except MemoryTuiError as error:
            self.show_message(f"{error.message} {error.next_step}")
            return
        if not question:
            self._use_qmd()
            return
        from memory_tui.tui.views.dialogs import Confirm

        def answered(_yes: bool) -> None:
            self._approve_qmd(client)

        Confirm("Run QMD?", question, "Run it").ask(self, answered)

    @task("write", exclusive=False)
    async def _approve_qmd(self, client: QmdClient) -> None:
        await self.jobs.write(lambda _engine: client.approve("the app"))
        if self.engine is not None:
            self.engine.backend.recovered()
            self._use_qmd()

    def _use_qmd(self) -> None:
        if self.engine is not None:
            self.engine.backend.choose("qmd")
            self._answered_by("QMD answers from now on; where it fails, the built-in index does.")

    def _answered_by(self, sentence: str) -> None:
        self.jobs.refresh()
        for view in self.views:
            view.backend_changed()
        self.show_message(sentence)

    def do_commands(self) -> None:
        """Open the palette."""
        self.action_command_palette()

    def do_help(self) -> None:
        """Keys and signs of the pane in focus."""
        from memory_tui.tui.views.help import Help

        if self.view is not None:
            self.push_screen(Help(self.view.places()))

    def do_next_pane(self) -> None:
        """Next pane."""
        self.action_focus_next()

    def do_previous_pane(self) -> None:
        """Previous pane."""
        self.action_focus_previous()

    def do_jump(self) -> None:
        """Letters on the panes."""
        from memory_tui.tui.views.dialogs import Jump

        Jump(self.screen.focus_chain).ask(self, lambda pane: pane.focus())

    def do_zoom(self) -> None:
        """Enlarge the pane in focus."""
        pane = self.screen.focused
        if pane is None or not self.screen.maximize(pane, container=False):
            self.show_message("This pane already shows everything, so it is not enlarged.")

    def do_unzoom(self) -> None:
        """Back to all panes."""
        self.screen.minimize()

    def ask_for(self, question: str, sentence: str = "") -> None:
        """Ask `question` in the search view, in front of what lies over it, and say `sentence` there."""
        from memory_tui.tui.views.search.search_view import SearchView

        def go() -> None:
            if isinstance(self.view, SearchView):
                self.view.ask_again(question)
                self.show_message(sentence)
            else:
                self.show_message(f"Your text is not saved yet. Press {key_of('save')}, then ask again.")

        asked_from = self.current_mode
        self._go_to("search", go)
        self._asked_from = asked_from if asked_from != "search" else self.DEFAULT_MODE

    def do_theme(self) -> None:
        """Choose colours."""
        from memory_tui.tui.views.dialogs import choose_theme

        choose_theme(self)

    def do_redraw(self) -> None:
        """Draw the screen again."""
        self.refresh(layout=True)

    def do_suspend(self) -> None:
        """Go into the background."""
        self.action_suspend_process()

    def do_back(self) -> None:
        """One step back."""
        if self._back():
            return
        if self.first_steps is not None:
            self.first_steps = None
            self._show_steps()
        else:
            self.show_message(f"Nothing to go back to; {key_of('leave')} quits.")

    def do_leave(self) -> None:
        """One step back, from another view to the notes, and from there out."""
        if self._back():
            return
        if self.current_mode == self.DEFAULT_MODE:
            self.do_leave_app()
        else:
            mode = self._asked_from if self.current_mode == "search" else self.DEFAULT_MODE
            self._asked_from = self.DEFAULT_MODE
            self.switch_mode(mode)

    def do_leave_app(self) -> None:
        """Quit; what was typed and not saved is asked about."""
        from memory_tui.tui.views.dialogs import Confirm

        if any(getattr(view, "unsaved", False) for view in self.views):
            Confirm(
                "Quit without saving?",
                f"What you wrote is not in its note yet. Press esc to go back, {key_of('save')} to save it.",
                "Throw it away",
            ).ask(self, lambda _yes: self.exit(0))
        else:
            self.exit(0)

    async def action_quit(self) -> None:
        """What Textual's own key for it does, where keys.toml has another one."""
        self.do_leave_app()

    def do_remember(self) -> None:
        """Add a line to today's log."""
        from memory_tui.tui.views.dialogs import LineDialog, looks_secret

        effects: list[str] = []
        query = "One line, added with the time to today's log."

        def remark(text: str) -> str:
            return looks_secret(text) or " ".join(effects)

        dialog = LineDialog("Remember this", query, "Keep", remark=remark)
        dialog.ask(self, lambda words: words and self._remember(words))
        self._foresee(effects, dialog)

    @task("plan")
    async def _foresee(self, effects: list[str], dialog: LineDialog) -> None:
        """Find where a line in today's log goes, and what it does to its trust."""
        reply = await self.jobs.attempt(lambda engine: engine.notes.curator.plan.remember("-"))
        if not isinstance(reply, MemoryTuiError):
            effects += map(one_line, (reply.end, *(words for words in reply.notes if "changes nothing" not in words)))
            dialog.remark_again()

    @task("write", exclusive=False)
    async def _remember(self, text: str) -> None:
        done = await self.jobs.write(lambda engine: engine.notes.curator.remember(text))
        self.show_message(f"Kept in {', '.join(done.change.paths)}. {key_of('undo')} in Notes undoes it.")
        # The view of the notes shows it; the others have no place for it.
        getattr(self.view, "remembered", lambda *_: None)(done.change.files[0], text)
        self.jobs.refresh()

    def refused(self, error: MemoryTuiError) -> str:
        """Why a task came to nothing."""
        return sentence_of(error)

    def update_hints(self) -> None:
        """Bring the key hints of the view in front up to date."""
        if self.view is not None:
            self.view.update_hints()

    def edited(self, path: str, line: int, sentence: str) -> None:
        """A note was edited on screen: show it as it is now in the view in front."""
        for part in self.view.parts if self.view is not None else ():
            part.edited(path, line)
        self.show_message(sentence)

    def action_help_quit(self) -> None:
        """What ctrl+c says when nothing is selected."""
        typing = isinstance(self.focused, Input | widgets.TextArea)
        self.show_message(f"ctrl+c copies what is selected; {key_of('quit' if typing else 'leave')} quits.")

    def _back(self) -> bool:
        if self.screen.maximized is not None:
            self.screen.minimize()
            return True
        return self.view is not None and self.view.back()

    def show_message(self, sentence: str) -> None:
        """Show a sentence in the message line of the view in front."""
        if self.view is not None:
            self.view.show_message(sentence)

    def do_sync(self) -> None:
        """Index changed files."""
        if self.engine is not None:
            self.engine.index.request_sync()
            self.show_message("Looking for changed files.")

    def do_edit_here(self) -> None:
        """Edit the note under the cursor, at its line."""
        view, place = self.view, self.view.place_in_note() if self.view else None
        if view is not None and place is not None:
            self.push_screen(make("notes.edit:EditView", place[0], view.line_in_note()))

    def do_own_editor(self) -> None:
        """Hand the terminal to the editor, at the line under the cursor."""
        from memory_tui.tui import external

        if self.view is not None:
            external.hand_over(self.view)

    def do_why_line(self) -> None:
        """Why the line under the cursor is, or is not, recalled; for the question on screen, or one that is typed."""
        view, place = self.view, self.view.place_in_note() if self.view else None
        if view is None or place is None:
            return
        line = view.line_in_note()

        def show_why_not(question: str | None) -> None:
            from memory_tui.tui.views.search.why_not_view import WhyNotView

            if question:
                self.push_screen(WhyNotView(question, place[0], line))

        if self.question:
            show_why_not(self.question)
            return
        from memory_tui.tui.views.dialogs import Prompt

        self.push_screen(Prompt(f"Why not line {line}?", "the query that it should answer"), show_why_not)

    def do_cite(self) -> None:
        """Copy the citation."""
        place = self.view.place_in_note() if self.view else None
        if place is not None:
            self.cite_places([place])

    def cite_places(self, places: Sequence[tuple[str, int, int]]) -> None:
        """Copy the citations of `places`: path, first and last line."""
        what = "the citation" if len(places) == 1 else f"{len(places)} citations"
        self._copy("\n".join(f"{path}#L{first}-L{last}" for path, first, last in places), what)

    def do_copy(self) -> None:
        """Copy as: text with its citation, citation, Markdown, JSON, the command that shows this."""
        place = self.view.place_in_note() if self.view else None
        if self.view is not None and place is not None:
            self.copy_places([(place, self.view.text_in_note())])

    def copy_places(self, places: Sequence[tuple[tuple[str, int, int], str]]) -> None:
        """Ask how to copy `places` with their texts, and do it."""
        from memory_tui.tui import external
        from memory_tui.tui.views.dialogs import Picker

        engine = self.engine
        if engine is None:
            return
        question = self.question if self.current_mode == "search" else ""
        reply = external.forms(places, question, *external.on_screen(engine, self.tuning))
        title = "Copy as" if len(places) == 1 else f"Copy {len(places)} places as"
        Picker(title, list(reply)).ask(self, lambda name: self._copy(reply[name], name))

    def _copy(self, text: str, what: str) -> None:
        from memory_tui.sanitize import safe
        from memory_tui.tui import external

        drawn = safe(text, keep_newlines=True)
        self.copy_to_clipboard(drawn)
        self.show_message(f"Sent {what} to the clipboard of the terminal{external.repeated(drawn)}")


def _method(view: View, name: str) -> Callable[[], None] | None:
    """What does the action called `name`: the focused node's method, else the nearest one's above it, or a part's."""
    for node in (view.focused or view).ancestors_with_self:
        for owner in (node, *getattr(node, "parts", ())):
            method: Callable[[], None] | None = getattr(owner, f"do_{name}", None)
            if method is not None:
                return method
    return None
