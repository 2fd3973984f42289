"""View 6 is the agents: what each gets from this memory, how to connect it, and what it asked."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList

from memory_tui import agents, recall_log
from memory_tui.engine.engine import Engine
from memory_tui.formatting import minute, one_line, plural, safe
from memory_tui.hosts import connection
from memory_tui.hosts.wiring import SAMPLE_GOES, Scope
from memory_tui.recall_log import Log, RecallEntry
from memory_tui.tui.dialogs import Choice
from memory_tui.tui.facts import BAD, GOOD, MUTED, WARN, Fact, Facts, Listing, coloured
from memory_tui.tui.first_line import FirstLine
from memory_tui.tui.keys import bindings, named
from memory_tui.tui.machine import MachinePage
from memory_tui.tui.note_facts import RECALL_SECONDS
from memory_tui.tui.openclaw import OpenClawPage
from memory_tui.tui.session import AskNotes, OpenView, ReadNote, Session
from memory_tui.tui.view import View

_WHERE: dict[Scope, str] = {"user": "in all of {}", "project": "in this project alone"}
_TURNS = Fact("Turn by turn, from transcripts", "turns", does="what an agent got, and when it forgot to ask")
_MACHINE = Fact("Every memory on this machine", "machine", does="other agents and projects; enter opens one")
_OPENCLAW = Fact("What OpenClaw keeps", "openclaw", does="trust, what its dreaming wrote, sessions, its index")
_ENTRIES = 100
"""Logged recalls that are listed."""
_MARKS = {"found": GOOD, "found in part": WARN, "perhaps not answered": WARN, "not answered": BAD, "failed": BAD}
"""The colour of how well a question was answered, where that is known."""


def program_key(row: agents.AgentProgram) -> str:
    """Return what a row is known by: its host, and its project where it is connected in one."""
    made = row.connection
    return f"host:{row.host.name}:{made.project if made is not None and made.scope == 'project' else ''}"


def programs(rows: Sequence[agents.AgentProgram], log: Log) -> Iterator[Fact]:
    """Yield each agent program with what it gets from this memory, and what failed."""
    for row in rows:
        # Sentences of what does not work any more.
        lost = [*row.lost, *([row.problem] if row.problem else [])]
        if row.connection is None:
            # Before the colon stands what is missing, behind it how to get it.
            absent = one_line(row.problem.partition(":")[0])
            does = "enter says why" if absent else "not connected; d connects it"
            yield Fact(absent or row.host.title, program_key(row), MUTED, does=does)
            continue
        state = "no longer connected; d connects it again" if lost else "connected; d disconnects it"
        yield Fact(row.host.title, program_key(row), BAD if lost else GOOD, does=state, style="bold")
        yield from (Fact(one_line(sentence), indent=2, style=BAD) for sentence in lost)
        if row.connection.scope == "project":
            yield Fact(one_line(str(row.connection.project)), label="project", indent=2)
        if row.memory:
            yield Fact(f"another memory: {one_line(row.memory)}", label="gets", indent=2, style=WARN)
        elif row.profile:
            differs = f"; here {row.difference} differ" if row.difference else ""
            yield Fact(f"this memory, ranked by {row.profile}{differs}", label="gets", indent=2)
        written = "is written down" if log.entries else "is written down; nothing yet"
        asked = written if row.logs else "nothing is written down; enter connects it with a log"
        yield Fact(asked, label="asked", indent=2, style=MUTED)
        if row.failed is not None:
            words = f"{minute(row.failed.at)}  {one_line(row.failed.outcome) or 'no answer'}"
            yield Fact(words, label="last error", indent=2, style=WARN)


def questions(log: Log, *, is_sample: bool = False) -> Iterator[Fact]:
    """Yield what agents asked, the newest first, with how well it was answered then; without a log how to get one."""
    if not log.entries:
        yield Fact("No question is logged yet. A connection with a log writes down what an agent asks.", style=MUTED)
        return
    by = "The demo's agents asked" if is_sample else "Agents asked"
    yield Fact(f"{by} these questions. Answers then: {log.tally or plural(len(log.entries), 'recall')}", style="bold")
    # The last _ENTRIES, backwards.
    yield from map(question, log.entries[: -_ENTRIES - 1 : -1])
    if len(log.entries) > _ENTRIES:
        yield Fact(f"{len(log.entries) - _ENTRIES:,} older; memory-tui recall-log lists them.", style=MUTED)


def turns(sessions: Sequence[agents.SessionTurns], problems: Sequence[str]) -> Iterator[Fact]:
    """Yield each session with its turns, whether the agent asked, and what became of what it got."""
    # The keys tell `TurnsPage.act` session, turn and recall by their positions.
    for number, session in enumerate(sessions):
        yield Fact(one_line(session.title), style="bold", does=session.sentence)
        for at, turn in enumerate(session.turns):
            key, mark, verdict = "", MUTED, "" if turn.recalls else "did not ask: "
            # The place of a passage that answers what was not asked.
            if turn.knew:
                key, mark = f"turn:{number}:{at}", WARN
                verdict = f"should have asked, {one_line(turn.knew)} answers it: "
            yield Fact(f"{verdict}{one_line(turn.said, 200)}", key, mark, label=minute(turn.at)[5:], indent=1, most=2)
            for place, recall in enumerate(turn.recalls):
                mark = _MARKS.get(recall.entry.reply, MUTED)
                yield Fact(agents.recall_words(recall), f"recall:{number}:{at}:{place}", mark, indent=3)
    yield from map(Fact, agents.by_note(sessions))
    if not sessions:
        yield Fact("No agent session of the last seven days used this memory. Agents lists the log.", style=MUTED)
    yield from (Fact(one_line(problem), mark=WARN) for problem in problems)


def question(entry: RecallEntry) -> Fact:
    """Return one recall as a row."""
    # `found in part` is said as `in part`. That no level was worked out is no answer; without a reply, lines of a note
    # were asked for, and the row says whether they were read.
    answer = entry.reply.removeprefix("no level").removeprefix("found ")
    if not entry.reply:
        answer = "read" if entry.delivered else "not read"
    words = f"{answer}: {one_line(entry.query, 200)}" if answer else one_line(entry.query, 200)
    source = "; ".join(filter(None, (entry.best, one_line(entry.program or entry.agent, 40))))
    return Fact(words, f"recall:{entry.id}", _MARKS.get(entry.reply, MUTED), minute(entry.at)[5:], does=source, most=2)


def changed(words: str, files: Sequence[connection.PlannedFile]) -> list[str]:
    """Return the sentence `words`, how to go back, and the difference of `files`; nothing where no file changes."""
    lines = list(connection.difference(files))
    return [f"{words} Every file is backed up; d on the same row goes back.", "", *lines] if lines else []


class AgentsView(View):
    """The agent programs, what they asked, and the way to what OpenClaw keeps, in one list."""

    NAME = "agents"
    FOCUS = "#agents-list"
    BINDINGS: ClassVar[list[BindingType]] = named("Connect", "change.do")
    BINDINGS += [*named("Disconnect", "change.do", action="disconnect"), *bindings("text.back")]

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.is_from_status = False
        """Whether Status led here; then escape leads back."""
        self.rows: Sequence[agents.AgentProgram] | None = None
        self.logged = Log((), 0)

    def compose(self) -> ComposeResult:
        """Lay out the one list."""
        yield Facts(id="agents-list")

    def on_mount(self) -> None:
        """Show what is known by now."""
        self.query_one("#agents-list").border_title = "Agents"
        # A program may be installed, or ask, while a person looks.
        self.set_interval(2.0, lambda: self.display and self.reload())
        self.draw()

    def state_changed(self) -> None:
        """Read the connections and the log anew: an agent may have asked meanwhile."""
        self.reload()

    on_show = state_changed

    def on_hide(self) -> None:
        """Forget that Status led here."""
        self.is_from_status = False

    @work(thread=True, exclusive=True, group="agents")
    def reload(self) -> None:
        """Read connections and log on a worker thread."""

        def read(engine: Engine) -> tuple[Sequence[agents.AgentProgram], Log]:
            """Return the agent programs and the log of what was asked."""
            return agents.rows(engine.plan), recall_log.read(recall_log.recall_log_path(engine.plan.roots.workspace))

        if known := self.attempt(read):
            self.call_later(self.read, *known)

    def read(self, programs: Sequence[agents.AgentProgram], log: Log) -> None:
        """Show what `reload` read: the programs, how many of them lost something, and the log."""
        self.rows, self.logged = programs, log
        lost = sum(bool(row.connection and (row.lost or row.problem)) for row in programs)
        self.screen.query_one(FirstLine).show_count(self.NAME, lost or None)
        self.draw()

    def draw(self) -> None:
        """Show programs, questions and the page of OpenClaw."""
        rows = self.query_one("#agents-list", Facts)
        if self.rows is None:
            rows.show([Fact("Reading which agents are connected ...", style=MUTED)])
            return
        engine = self.session.engine
        logged = [*questions(self.logged, is_sample=engine is not None and engine.plan.options.sample)]
        rows.show([*programs(self.rows, self.logged), Fact(""), _TURNS, _OPENCLAW, _MACHINE, Fact(""), *logged])
        if self.session.to_asked:
            self.session.to_asked, self.is_from_status = False, True
            # The cursor goes to the first question, below the heading; without questions to the one row there is.
            rows.highlighted = len(rows.facts) - max(1, len(logged) - 1)

    # --- acting ----------------------------------------------------------------------------------------------------

    @property
    def program(self) -> agents.AgentProgram | None:
        """Return the agent program under the cursor."""
        fact = self.query_one("#agents-list", Facts).fact
        return next((row for row in self.rows or () if fact is not None and program_key(row) == fact.key), None)

    @on(OptionList.OptionSelected)
    async def selected(self, event: OptionList.OptionSelected) -> None:
        """Offer what can be done with an agent, say why a question was answered so, or open what OpenClaw keeps."""
        key, row = event.option.id or "", self.program
        pages = {_OPENCLAW.key: OpenClawPage, _TURNS.key: TurnsPage, _MACHINE.key: MachinePage}
        # No connection and none possible.
        if row is not None and row.connection is None and row.problem:
            self.tell(row.host.title, one_line(row.problem))
        elif row is not None:
            await self.action_do()
        elif page := pages.get(key):
            await self.app.push_screen(page(self))
        elif entry := self.logged.find(key.removeprefix("recall:")):
            self.explain(entry)

    def tell(self, title: str, problem: str) -> None:
        """Say why an agent cannot be connected, and offer to copy the command that `problem` names, if any."""
        # What follows the command's name are its arguments.
        reason, verb, words = problem.partition("memory-tui connect ")
        if not verb:
            self.notify(problem, markup=False)
            return
        copy = partial(self.app.copy_to_clipboard, verb + words)
        text = Content(f"{reason}\n\n{verb}{words}")
        self.post_message(self.Asks(title, text, "Copy the command", lambda _engine: "The command is copied.", copy))

    async def action_openclaw(self) -> None:
        """Open the page of what OpenClaw keeps."""
        await self.app.push_screen(OpenClawPage(self))

    async def action_do(self) -> None:
        """Let a person choose how the agent under the cursor is connected, and whether what it asks is logged."""
        if (row := self.program) is None:
            return
        # Keys are `SCOPE log`, or `SCOPE ` without a log.
        offers = {
            f"{scope} {'log' if log else ''}": f"connect {_WHERE[scope].format(row.host.title)}, {words}"
            for scope in row.host.scopes
            for words, log in (("log here what it asks and gets", True), ("log nothing", False))
        }
        if (made := row.connection) is not None:
            offers |= {"test": "start its server as it does, and ask it", "disconnect": "disconnect it"}

        def do(choice: str | None) -> None:
            """Act on the choice: a key of `offers`; None where the dialog was closed."""
            if choice == "test" and made is not None:
                self.notify(f"Starting the server of {row.host.title} ...", markup=False)
                self.perform(lambda _engine: connection.prove(made.start).sentence())
            elif choice == "disconnect":
                self.disconnect(row)
            elif choice:
                scope, _, log = choice.partition(" ")
                self.connect(row, "project" if scope == "project" else "user", log=bool(log))

        await self.app.push_screen(Choice(row.host.title, list(offers.items())), do)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The key connects an agent that can be, and disconnects one that is connected."""
        if action in ("do", "disconnect"):
            if (row := self.program) is None or (row.connection is None and row.problem):
                return False
            # One that lost something is connected anew by the same key.
            return (row.connection is None or bool(row.lost)) == (action == "do")
        return (action != "back" or self.is_from_status) and super().check_action(action, parameters)

    def action_back(self) -> None:
        """Go back to Status."""
        self.post_message(OpenView("status"))

    def action_disconnect(self) -> None:
        """Disconnect the agent under the cursor."""
        if row := self.program:
            self.disconnect(row)

    @work(thread=True, exclusive=True, group="plan")
    def connect(self, row: agents.AgentProgram, scope: Scope, *, log: bool) -> None:
        """Show the files that connecting changes, and write them where that is agreed to."""
        made, host = row.connection, row.host
        # The folder that is connected already, else the one where the app was started.
        project = made.project if made is not None and made.scope == "project" else Path.cwd()

        def plan(engine: Engine) -> View.Asks:
            """Return the question whether to connect, with the files as they would be."""
            wiring = agents.wiring_of(engine.plan, host, scope, project, log=log)
            files = connection.planned(host, wiring)
            where = _WHERE[scope].format(host.title) + " and logs here what it asks and gets" * log
            does = " ".join((f"Adds this memory {where}.", *connection.effects(host, files)))
            lines = [*[SAMPLE_GOES] * engine.plan.options.sample, *changed(does, files), host.loss()]

            def deed(_engine: Engine) -> str:
                """Write the files; return the sentence that says so."""
                connection.connect(host, wiring, files)
                return f"{host.title} is connected. {host.after}"

            return self.Asks(f"Connect {host.title}", coloured(lines), "Write it", deed, self.reload)

        if asks := self.attempt(plan):
            self.post_message(asks)

    @work(thread=True, exclusive=True, group="plan")
    def disconnect(self, row: agents.AgentProgram) -> None:
        """Show the files as they will be without the connection, and write them where that is agreed to."""
        made, title = row.connection, row.host.title
        if made is None:
            return

        def plan(_engine: Engine) -> View.Asks:
            """Return the question whether to disconnect, with the files as they would be."""
            files = connection.restorations(made)

            def deed(_engine: Engine) -> str:
                """Write the files as they were; return the sentence that says so."""
                connection.restore_files(made)
                return f"{title} is disconnected."

            what = f"the memory {one_line(row.memory)}" if row.memory else "this memory"
            text = coloured(changed(f"Takes {what} out of {title}.", files))
            return self.Asks(f"Disconnect {title}", text, "Write it", deed, self.reload)

        if asks := self.attempt(plan):
            self.post_message(asks)

    @work(thread=True, exclusive=True, group="plan")
    def explain(self, entry: RecallEntry) -> None:
        """Show what a question got then and would get now, and offer to ask it with the knobs of then."""
        if entry.subject == "memories":
            self.notify("This asked the long-term memories: memory-tui ltm search asks them.", markup=False)
        elif entry.subject != "notes":
            self.post_message(ReadNote(entry.query, max(1, entry.first_line)))
        elif again := self.attempt(lambda engine: recall_log.replay(entry, engine.plan.settings, engine.search.gather)):
            # `again` is what was asked, then and now, and `replayed` tells it in lines.
            text = Content("\n".join(map(safe, recall_log.replayed(again))))
            # A yes does nothing itself; what it calls then asks the question in Search.
            title = one_line(entry.query, 60)
            self.post_message(self.Asks(title, text, "See why in Search", lambda _: "", lambda: self.ask_again(entry)))

    def ask_again(self, entry: RecallEntry) -> None:
        """Ask in the search view with the knobs that held then; u there takes the knobs back."""
        settings = self.session.settings
        then = recall_log.settings_of(entry.settings, settings) if settings is not None and entry.settings else None
        self.post_message(AskNotes(entry.query, then))


class TurnsPage(Listing):
    """What agents recalled, by session and turn; enter explains a recall, or asks what was not asked."""

    def __init__(self, view: AgentsView) -> None:
        super().__init__(_TURNS.words, view, self.turns)
        self.agents = view
        self.sessions: list[agents.SessionTurns] = []

    def turns(self, engine: Engine) -> Iterator[Sequence[Fact]]:
        """Yield the sessions as their transcripts tell them, then with what the memory knew."""
        self.sessions, problems = agents.sessions(engine.plan.roots.workspace, engine.plan.clock() - RECALL_SECONDS)
        yield list(turns(self.sessions, problems))
        for number, session in enumerate(self.sessions):
            self.sessions[number] = engine.notes.with_known(session)
            yield list(turns(self.sessions, problems))

    async def act(self, key: str) -> None:
        """Explain a recall with the knobs of then, or ask what an agent did not ask."""
        # `turn:SESSION:TURN` or `recall:SESSION:TURN:RECALL`, all by position.
        kind, session, at, *place = key.split(":")
        turn = self.sessions[int(session)].turns[int(at)]
        if kind == "turn":
            self.leave(AskNotes(turn.said))
        else:
            self.agents.explain(turn.recalls[int(place[0])].entry)


VIEW = AgentsView
