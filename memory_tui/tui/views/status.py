"""View 3 is the status: three lamps that open, notices, the way to everything else about the index, what happened."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from memory_tui.approval import Approval
from memory_tui.config import config_patch
from memory_tui.engine import sending
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.events import Event
from memory_tui.formatting import one_line, plural
from memory_tui.providers import registry
from memory_tui.shared import Standing
from memory_tui.tui.changes import is_writable
from memory_tui.tui.dialogs import Box, Dialog, Options
from memory_tui.tui.facts import Facts, Listing, coloured, drawn
from memory_tui.tui.keys import named
from memory_tui.tui.session import OpenView, ReadNote, Reopen, Session, opener_of
from memory_tui.tui.status_facts import doctor, news, sent, statements
from memory_tui.tui.view import View
from memory_tui.workspace.roots import beside

_DRAW_SECONDS = 0.2
"""Events come in bursts; the lists are drawn once for each."""


class StatusView(View):
    """The state on the left or above, the events beside or below it."""

    NAME = "status"
    FOCUS = "#status-list"
    BINDINGS: ClassVar[list[BindingType]] = named("Index now", "app.index")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.unfolded: set[str] = set()
        self.known: tuple[Sequence[Approval], Standing | MemoryTuiError | None, Sequence[str]] = (), None, ()
        """Who may get the notes, how the mirror stands, how many files of the folder are no memory."""
        self.due = False
        """Whether a drawing is on its way."""

    def compose(self) -> ComposeResult:
        """Lay out the state, and beside or below it what happened."""
        with Container(classes="panes"):
            yield Facts(id="status-list")
            with VerticalScroll(id="status-news"):
                yield Static(id="news-text")

    def on_mount(self) -> None:
        """Name the list and the pane."""
        self.query_one("#status-list").border_title = "Status"
        self.query_one("#status-news").border_title = "What happened"

    # --- showing ---------------------------------------------------------------------------------------------------

    def state_changed(self) -> None:
        """Draw the state, and read what stands with it while a person looks."""
        self.draw()
        if self.display:
            self.read_approvals()

    on_show = state_changed

    def events_arrived(self, _events: Sequence[Event]) -> None:
        """Draw once for a burst of events."""
        if not self.due:
            self.due = True
            self.set_timer(_DRAW_SECONDS, self.draw)

    # A window of another size is a burst, too.
    on_resize = events_arrived

    def draw(self) -> None:
        """Draw the list and the pane."""
        self.due = False
        self.query_one("#status-list", Facts).show(statements(self.session, self.unfolded, *self.known))
        text = self.query_one("#news-text", Static)
        rows = (drawn(fact, text.size.width) for fact in news(self.session))
        # Behind another view it must not have the whole screen laid out.
        text.update(Content("\n").join(rows), layout=self.display)

    @work(thread=True, exclusive=True, group="approvals")
    def read_approvals(self) -> None:
        """Read who may get the notes, how the mirror stands, and what else is in the folder."""
        approvals = self.attempt(lambda engine: engine.providers.approvals.every()) or ()
        others = self.attempt(lambda engine: beside(engine.plan.roots)) or ()
        self.known = approvals, self.attempt(lambda engine: engine.mirrored()), others
        self.call_later(self.draw)

    # --- acting ----------------------------------------------------------------------------------------------------

    @on(OptionList.OptionSelected)
    async def selected(self) -> None:
        """Open a lamp or a page, read a note, or do what the row under the cursor says."""
        fact, engine = self.query_one("#status-list", Facts).fact, self.session.engine
        kind, _, name = (fact.key if fact is not None else "").partition(":")
        if engine is None or not kind:
            return
        match kind:
            case "lamp":
                self.unfolded ^= {f"lamp:{name}"}
                self.draw()
            case "page":
                await self.action_page(name)
            case "note":
                path, _, line = name.rpartition(":")
                self.post_message(ReadNote(path, int(line)) if path and line.isdigit() else ReadNote(name))
            case "approve":
                self.forecast(name)
            case "pause":
                self.turn(engine.index.resume if engine.index.paused else engine.index.pause)
            case "watch":
                self.turn(lambda: engine.index.watcher.switch(not engine.index.watcher.on))
            case "retry":
                self.turn(engine.providers.retry)
            case _:
                self.ask(kind, name)

    async def action_page(self, name: str) -> None:
        """Go to what agents asked, or open the page of the doctor, or the form of a provider."""
        if name == "asked":
            self.session.to_asked = True
            self.post_message(OpenView("agents"))
        elif name == "doctor":
            await self.app.push_screen(Listing("Doctor", self, doctor))
        elif is_writable(self):
            await self.app.push_screen(SetUp(self, registry.SMALL if name == "better" else ""), self.agree)

    def ask(self, kind: str, name: str) -> None:
        """Ask before a deed that no key undoes or that leaves this machine, by `kind` of row and provider `name`."""
        status = self.session.status
        host = next((one_line(link.host) for link in (status.links if status else ()) if link.name == name), "")
        asks = {
            "revoke": (f"Withdraw the approval of {name}", f"{name} gets no text of these notes any more."),
            "shrink": ("Forget the notes that vanished", "The index forgets what it kept of them. No file is touched."),
            "test": (f"Test {name}", f"{name}{host and f' at {host}'} gets one sentence of memory-tui, no note."),
        }
        title, words = asks[kind]

        def deed(engine: Engine) -> str:
            """Do what the row says, on a worker thread; return the sentence of what became of it."""
            if kind == "revoke":
                engine.providers.revoke(name)
                return f"{name} gets no text of these notes from now on."
            if kind == "shrink":
                return f"{plural(engine.index.sync(reason='accept', accept_shrink=True).removed, 'note')} forgotten."
            trial = engine.providers.chain.try_out(name)
            if trial["ok"]:
                return f"{name} answers: {trial['dims']:,} dimensions in {trial['ms']:.0f} ms."
            return one_line(f"{name} failed: {trial.get('error', 'no answer')} {trial.get('nextStep', '')}")

        # A provider without a host is on this machine: its test is not asked about.
        if kind == "test" and not host:
            self.perform(deed, self.read_approvals)
        else:
            self.post_message(self.Asks(title, Content(words), title, deed, self.read_approvals))

    def turn(self, switch: Callable[[], object]) -> None:
        """Call `switch` on a worker thread, and say what it returns, if anything: the list shows what it did."""
        self.perform(lambda _engine: str(switch() or ""))

    @work(thread=True, exclusive=True, group="forecast")
    def forecast(self, name: str) -> None:
        """Find out what a provider would get, then ask for the approval."""

        def look(engine: Engine) -> str:
            """Return what the provider would get, in words; empty where it waits for no approval any more."""
            member = engine.providers.waiting(name)
            return "" if member is None else sent(engine.providers.forecast(), name, one_line(member.host))

        def deed(engine: Engine) -> str:
            """Approve the provider; return the sentence that says so."""
            engine.providers.approve(name)
            return f"{name} may have the notes; the index is brought up to date with it."

        if words := self.attempt(look):
            text = Content(f"{words}\n\nThe approval holds for this workspace until you withdraw it.")
            self.post_message(self.Asks(f"Let {name} have the notes", text, "Allow it", deed, self.read_approvals))

    # --- a provider ------------------------------------------------------------------------------------------------

    def agree(self, setup: sending.ProviderSetup | None) -> None:
        """Show what would be written for a provider that answered."""
        if setup is not None:
            title = f"Write to {one_line(str(setup.patch.target))}"

            def deed(engine: Engine) -> str:
                """Write the configuration; return the sentence that says so."""
                self.session.config_writes.append((setup.patch.write(), self.session.opener))
                engine.reread()
                # One that the command line named would go before that of the configuration.
                self.session.opener = opener_of(lambda: replace(engine.plan.options, provider=""))
                return f"{setup.trial['provider']} is set up; u takes it back."

            self.post_message(self.Asks(title, shown_patch(setup), "Write it", deed, self.action_reopen))

    def action_reopen(self) -> None:
        """Open the workspace with the configuration as it is now."""
        self.post_message(Reopen())

    def undo(self) -> bool:
        """Take the last provider that was set up here out of the configuration."""
        steps = self.session.config_writes

        def deed(engine: Engine) -> str:
            """Take the last configuration back; return the sentence that says so."""
            writes, opener = steps[-1]
            for done in writes:
                config_patch.undo(done)
            engine.reread()
            # Only now: what was refused may be tried again.
            steps.pop()
            self.session.opener = opener
            return "The configuration is as it was."

        if steps:
            self.perform(deed, self.action_reopen)
        return bool(steps)


# --- the form of a provider: tested before it is written --------------------------------------------------------------

FIELDS = (
    ("address", "address", "where it listens"),
    ("variable", "key in variable", "name of the environment variable; empty for none"),
    ("model", "model", "empty for its usual one"),
)
"""Id, label and hint of each line of the form."""
_FIRST, _NEVER = ("openai-compatible", "ollama"), {"scripted", "none"}
KINDS = (*_FIRST, *(name for name in registry.NAMES if name not in {*_FIRST, *_NEVER}))
"""Kinds that can be set up; what listens on this machine comes first."""


def shown_patch(setup: sending.ProviderSetup) -> Content:
    """Return what the test came to, and the difference of the file."""
    key = next((str(change.after) for change in setup.patch.changes if change.key == "remote.apiKey"), "")
    read = f" The key is read from the variable {key.strip('${}')}." if key else ""
    return Content("\n\n").join([Content(one_line(setup.answer + read)), coloured(setup.patch.diff().splitlines())])


class SetUp(Dialog[sending.ProviderSetup]):
    """The form over `view`; enter goes from line to line, and on the last one asks the provider."""

    FOCUS = "Rows"

    def __init__(self, view: View, kind: str = "") -> None:
        super().__init__("Set up a provider")
        self.view, self.kind = view, kind

    def body(self) -> ComposeResult:
        """Return the kinds, the lines, and what is to be done."""
        rows = {name: Content.assemble(f" {name:<18} ", (_hint(name), "$foreground-muted")) for name in KINDS}
        # The kind that is asked for comes first.
        yield Options(*(Option(rows[name], id=name) for name in sorted(KINDS, key=lambda name: name != self.kind)))
        for id_, label, hint in FIELDS:
            with Horizontal(classes="field"):
                yield Label(label, markup=False)
                yield Box(hint=hint, id=id_)
        yield Static("Nothing is written before it answered and you agreed.", id="outcome", markup=False)

    @on(OptionList.OptionSelected)
    def chosen(self, event: OptionList.OptionSelected) -> None:
        """Fill in what is usual for the kind; one that needs nothing is tested at once."""
        self.kind = event.option.id or ""
        row = registry.row(self.kind)
        self.query_one(".dialog").set_class(bool(row.shape), "-form")
        self.query_one(".dialog").border_title = Content(f"Set up a provider: {self.kind}")
        # What was typed for the kind before goes before what is usual.
        usual = (row.base_url, "" if row.keyless else sending.usual_variable(row, row.base_url), row.model)
        for (id_, _, _), value in zip(FIELDS, usual, strict=True):
            self.query_one(f"#{id_}", Input).value = self.view.session.typed.get((self.kind, id_), value)
        self.query_one("#model", Input).placeholder = FIELDS[-1][-1] if row.model else "its name, as the server has it"
        if row.shape:
            self.say("Enter goes on; after the model it asks the provider. Nothing is written before you agreed.")
            self.set_focus(self.query_one("#address"))
        else:
            self.test()

    @on(Input.Changed)
    def keep(self, event: Input.Changed) -> None:
        """Keep what is typed for the next time that the form is opened."""
        self.view.session.typed[self.kind, str(event.input.id)] = event.value

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Go to the next line, or ask the provider."""
        at = [id_ for id_, _, _ in FIELDS].index(str(event.input.id))
        if at + 1 < len(FIELDS):
            self.set_focus(self.query_one(f"#{FIELDS[at + 1][0]}"))
        else:
            self.test()

    def test(self) -> None:
        """Ask the provider for the vector of one sentence."""
        address, variable, model = (self.query_one(f"#{id_}", Input).value.strip() for id_, _, _ in FIELDS)
        if model or registry.row(self.kind).model:
            self.say(f"Asking {address or self.kind} ... escape stops.")
            self.prepare(address, variable, model)
        else:
            self.say("The model is empty. Write its name, as the server has it.", "$error")

    def say(self, words: str, style: str = "") -> None:
        """Write under the form."""
        self.query_one("#outcome", Static).update(Content.styled(one_line(words), style))

    @work(thread=True, exclusive=True, group="set up")
    def prepare(self, address: str, variable: str, model: str) -> None:
        """Ask on a worker thread; what comes after the form was closed is dropped."""
        engine: Engine | None = self.view.session.engine
        if engine is None:
            return
        outcome: sending.ProviderSetup | MemoryTuiError
        try:
            outcome = sending.prepare(engine.plan, sending.choice(self.kind, address, variable, model))
        except MemoryTuiError as error:
            outcome = error
        if not get_current_worker().is_cancelled:
            self.call_later(self.tested, outcome)

    def tested(self, outcome: sending.ProviderSetup | MemoryTuiError) -> None:
        """Hand on what answered; say why something did not, and leave the form as it is."""
        if isinstance(outcome, MemoryTuiError):
            # The form has no lines of that name.
            self.say(f"{outcome.message} {outcome.next_step}".replace(" (remote.baseUrl)", ""), "$error")
        else:
            self.dismiss(outcome)


def _hint(name: str) -> str:
    """Return where a kind of provider is asked."""
    row = registry.row(name)
    if not row.shape:
        # How long it takes, for which a row has no room, the lamp of who answers says.
        return row.cost.rpartition(", ")[0] or f"{row.label} in memory-tui, no key{', slow' * row.slow}"
    return row.base_url.removeprefix("https://") or "any address that speaks OpenAI's embeddings"


VIEW = StatusView
