"""View 6 is the agents: a row for each agent program, connected or not, with the difference that connects one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import on

from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import Piece
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.navigation import make, overlay
from memory_tui.tui.views.index.listings import Listing
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import PostPart, task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.hosts.connection import HostConnection, Proof
    from memory_tui.hosts.registry import Host
    from memory_tui.hosts.wiring import Scope
    from memory_tui.recalls.connected_agents import AgentProgram, AgentRanking
    from memory_tui.recalls.recall_log import RecallEntry


class ConnectionPlan(Struct, frozen=True):
    """What is to be written: how many files, the lines of the difference, what writes them."""

    files: int
    lines: tuple[str, ...]
    write: Callable[[], object]
    done: str
    """What is said when it is written."""


Planning = tuple[str, "Callable[[Engine], ConnectionPlan]"]
"""The title of a plan, and what works it out on a worker thread."""


def connecting(host: Host, scope: Scope, project: Path, log: bool) -> Planning:
    """Connect an agent program to this memory."""

    def plan(engine: Engine) -> ConnectionPlan:
        from memory_tui.hosts import connection
        from memory_tui.recalls import connected_agents

        wiring = connected_agents.wiring_of(engine.plan, host, scope, project, log=log)
        files = connection.planned(host, wiring)
        return ConnectionPlan(
            sum(file.now != file.then for file in files),
            (*filter(None, (host.loss(),)), *connection.difference(files)),
            lambda: connection.connect(host, wiring, files),
            f"{host.title} is connected. {host.after}",
        )

    return f"Connect {host.title}", plan


def disconnecting(made: HostConnection) -> Planning:
    """Remove a connection, and leave the files as they were."""
    from memory_tui.hosts.registry import host

    title = host(made.host).title

    def plan(_engine: Engine) -> ConnectionPlan:
        from memory_tui.hosts import connection

        files = connection.restorations(made)
        return ConnectionPlan(
            sum(file.now != file.then for file in files),
            tuple(connection.difference(files)),
            lambda: connection.restore_files(made, files),
            f"{title} is disconnected.",
        )

    return f"Disconnect {title}", plan


class ConnectionView(View):
    """The difference, line by line; enter writes it, with a backup of every file."""

    PLACE = "connection"

    def __init__(self, below: View, planning: Planning, changed: Callable[[], None]) -> None:
        super().__init__(below)
        title, plan = planning
        self._writer = ConnectionWriter(below, changed)
        self.listing = Listing(
            self,
            title=title,
            waiting="Reading the files of the agent ...",
            gather=plan,
            lines=_lines,
            summary=_connection_summary,
        )
        self.parts = (self.listing,)

    def do_write(self) -> None:
        """Write the files, then go back and have the agent's server answer."""
        reply = self.listing.found
        if reply is None:
            self.show_message("The difference is not known yet.")
            return
        self._writer.write(reply)
        self.back()


class ConnectionWriter(Part):
    """Writes the files, then calls `changed`; a part of the view below, so that its task outlives the difference."""

    def __init__(self, view: View, changed: Callable[[], None]) -> None:
        super().__init__(view)
        self._changed = changed

    @task("connection", exclusive=False)
    async def write(self, plan: ConnectionPlan) -> None:
        """Write all files of `plan`, or none."""
        await self.home.jobs.write(lambda _engine: plan.write())
        self.view.show_message(plan.done)
        self._changed()


def _connection_summary(plan: ConnectionPlan) -> str:
    return f"{plural(plan.files, 'file')}   enter writes   esc leaves" if plan.files else "nothing to write"


def _lines(plan: ConnectionPlan, width: int) -> list[Line]:
    if not plan.lines:
        return text("The files hold these entries already. Press enter to have its server answer.", width)
    written: list[Line] = []
    for line in plan.lines:
        style = {"+": "good", "-": "bad", "@": "muted"}.get(line[:1], "")
        written += text(safe(line), width, style)
    return written


NOBODY = (
    "No agent has asked yet. Press enter on an agent to connect it; memory-tui connect HOST does the same. "
    "Its line appears with its first query."
)
ASKED = ("what agents asked", "")
"""The key of the row that opens the log of it."""
Key = tuple[str, str]
"""Host and project of a row; no project for a connection of the user."""


class AgentsView(View):
    """What each agent program gets from this memory; enter connects, `d` disconnects, both after the difference."""

    PLACE = "agents"

    def __init__(self) -> None:
        super().__init__()
        self.listing = Listing(
            self,
            title="Agents",
            waiting="Reading which agents are connected ...",
            gather=_rows,
            lines=self._lines,
            summary=_summary,
            arrived=lambda _found: self._prove(),
        )
        self.parts = (self.listing,)
        self._answers: dict[Key, Proof | MemoryTuiError] = {}
        self._asking = False

    def engine_opened(self) -> None:
        """Begin, where the view was opened before the engine was."""
        self.listing.do_again()

    def changed(self) -> None:
        """Read the connections again, and ask the servers: one was written or removed."""
        self._answers.clear()
        self.do_again()
        self.home.jobs.refresh()

    @task("agents")
    async def do_again(self) -> None:
        """Read the connections again, then have every connected agent's server answer a query."""
        reply = await self.home.jobs.attempt(_rows)
        if not isinstance(reply, MemoryTuiError):
            self.listing.found = reply
        self.listing.do_again()
        self._prove()

    @task("proof")
    async def _prove(self) -> None:
        """Start what each connected agent starts, ask it, and show each answer as it comes."""
        rows = [row for row in self.listing.found or () if row.connection is not None]
        self._asking = bool(rows)
        self.listing.show()
        async for answer in self.home.jobs.parts(_proofs(rows)):
            if answer is not None:
                key, reply = answer
                self._answers[key] = reply
                self.listing.show()
        self._asking = False
        self.listing.show()
        failed = {key for key, answer in self._answers.items() if isinstance(answer, MemoryTuiError)}
        self.home.failing_agents = sum(bool(row.lost or row.problem) or _key(row) in failed for row in rows)
        self.show_top()

    # --- actions -------------------------------------------------------------------------------------------------

    @property
    def row(self) -> AgentProgram | None:
        """The agent under the cursor."""
        return next((row for row in self.listing.found or () if _key(row) == self.listing.rows.key), None)

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Ask for what is to be connected, then show the files that change."""
        row = self.row
        if row is None:
            log = overlay("recalls")
            if self.listing.rows.key == ASKED and log is not None:
                self.app.push_screen(make(log.target, self))
            return
        from memory_tui.tui.views.dialogs import Picker

        choices = {
            f"{_WHERE[scope].format(row.host.title)}, {words}": (scope, log)
            for scope in row.host.scopes
            for words, log in _LOGGED
        }

        Picker(f"Connect {row.host.title}", list(choices)).ask(self.app, lambda name: self._show(row, *choices[name]))

    def _show(self, row: AgentProgram, scope: Scope, log: bool) -> None:

        done = row.connection
        project = done.project if done is not None and done.scope == "project" else Path.cwd()
        self.app.push_screen(ConnectionView(self, connecting(row.host, scope, project, log), self.changed))

    def do_disconnect(self) -> None:
        """Show the files as they will be without the connection under the cursor."""

        row = self.row
        if row is None or row.connection is None:
            self.show_message("This agent is not connected. Press enter to connect it.")
            return
        self.app.push_screen(ConnectionView(self, disconnecting(row.connection), self.changed))

    # --- words ---------------------------------------------------------------------------------------------------

    def tuned(self, *, keep: bool = True) -> None:
        """Compare the agents with the knobs as they are now."""
        super().tuned(keep=keep)
        self.listing.show()

    def _lines(self, rows: tuple[AgentProgram, ...], width: int) -> list[Line]:
        written: list[Line] = []
        for row in rows:
            written += [*self._agent(row, width), *text("", width)]
        if not any(row.asked for row in rows):
            written += [*text(NOBODY, width, "muted", 1), *text("", width)]
        words: list[Piece] = [
            (f" {key_of('go recalls')} ", "mark"),
            ("What agents asked, and how well it was answered", ""),
        ]
        return [*written, (words, ASKED)]

    def _agent(self, row: AgentProgram, width: int) -> list[Line]:
        sign, state, style = _state(row)
        title: list[Piece] = [(f" {sign} ", style), (f"{row.host.title:<12}", "strong"), (state, style)]
        written: list[Line] = [(title, _key(row))]

        def add(label: str, words: str, style: str = "") -> None:
            lines = text(one_line(words), width - 18, style)
            for at, (pieces, _) in enumerate(lines):
                written.append(([(f"   {label if at == 0 else '':<15}", "muted"), *pieces], None))

        done = row.connection
        if done is not None:
            if done.scope == "project":
                add("project", str(done.project))
            if row.memory:
                add("memory", f"another one: {row.memory}", "warn")
            if row.ranking is not None:
                tuning = self.home.tuning
                ranking = row.ranking if tuning is None else row.ranking.beside(tuning.settings)
                add("profile", *_profile(ranking, row.memory))
            for sentence in filter(None, (*row.lost, row.problem)):
                add("connection", f"{sentence} Press enter to connect it again.", "bad")
        if row.asked is not None:
            add("last query", _asked(row.asked))
        elif done is not None:
            add("last query", "none is logged." if row.logs else _UNLOGGED, "muted")
        if row.failed is not None:
            add("last error", f"{_when(row.failed.at)}  {row.failed.outcome or 'no answer'}", "warn")
        if done is not None:
            add("latency", *self._latency(row))
        return written

    def _latency(self, row: AgentProgram) -> tuple[str, str]:
        answer = self._answers.get(_key(row))
        if answer is None:
            return (
                "asking its server ..." if self._asking else f"not asked yet; {key_of('look again')} asks its server",
                "muted",
            )
        if isinstance(answer, MemoryTuiError):
            return f"{answer.message} {answer.next_step}".rstrip(), "bad"
        hits = plural(answer.hits, "hit")
        return (
            f"tools in {answer.tools_ms:,.0f} ms, answer in {answer.answer_ms:,.0f} ms ({hits} for "
            f"{answer.question!r})",
            "",
        )


_WHERE = {"user": "in all of {}", "project": "in this project alone"}
_LOGGED = (("log here what it asks", True), ("log nothing", False))
_UNLOGGED = "nothing is written down. Press enter to connect it with a log of its queries."


def _rows(engine: Engine) -> tuple[AgentProgram, ...]:
    """Every agent program."""
    from memory_tui.recalls import connected_agents

    return connected_agents.rows(engine.plan)


def _proofs(rows: list[AgentProgram]) -> Callable[[PostPart], None]:
    def run(post: PostPart) -> None:
        from memory_tui.hosts.connection import prove, question_of

        for row in rows:
            if row.connection is None:
                continue
            start = row.connection.start
            try:
                reply: Proof | MemoryTuiError = prove(start, question_of(start))
            except MemoryTuiError as error:
                reply = error
            post((_key(row), reply))

    return run


def _key(row: AgentProgram) -> Key:
    done = row.connection
    return row.host.name, str(done.project) if done is not None and done.scope == "project" else ""


def _summary(rows: tuple[AgentProgram, ...]) -> str:
    return f"{sum(row.connection is not None for row in rows)} of {len(rows)} connected"


def _state(row: AgentProgram) -> tuple[str, str, str]:
    """Sign, words and style."""
    if row.connection is None:
        return "○", "not connected; enter connects it", "muted"
    if row.lost or row.problem:
        return "✗", "no longer connected", "bad"
    return "✓", "connected", "good"


def _profile(ranking: AgentRanking, memory: str) -> tuple[str, str]:
    """The profile of an agent's answers, and whether the screen, which shows no other `memory`, ranks as it does."""
    if memory:
        return ranking.profile, ""
    if ranking.differing:
        return f"{ranking.profile}; this screen differs in {ranking.difference}", "warn"
    return f"{ranking.profile}, as on this screen", ""


def _asked(entry: RecallEntry) -> str:
    from memory_tui.recalls.rerun import replied

    return f"{_when(entry.at)}  {one_line(entry.query, 200)}  ({one_line(replied(entry), 200)}, {entry.ms:,.0f} ms)"


def _when(at: float) -> str:
    from memory_tui.recalls.recall_log import moment

    return moment(at)
