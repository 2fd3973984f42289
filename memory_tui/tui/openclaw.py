"""The page of what OpenClaw keeps: trust of notes, dreams, sessions, long-term memories, its index, other agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from memory_tui import plan as plans
from memory_tui.backends.memories import Memories, MemoryEntry, TableMissing
from memory_tui.config.model import Config
from memory_tui.engine.engine import Engine
from memory_tui.errors import Unreadable
from memory_tui.formatting import plural
from memory_tui.notes.promote import Spot
from memory_tui.openclaw import flush
from memory_tui.openclaw.dreaming import folds
from memory_tui.openclaw.flush import Nearness
from memory_tui.openclaw.trust import NO_WAY_BACK, TrustReport, trust_summary
from memory_tui.plan import Options
from memory_tui.sanitize import one_line, safe
from memory_tui.tui import changes
from memory_tui.tui.dialogs import Line
from memory_tui.tui.facts import BAD, MUTED, WARN, Fact, Facts, Listing, heading
from memory_tui.tui.keys import bindings
from memory_tui.tui.session import ReadNote, Reopen, opener_of
from memory_tui.tui.status_facts import PAGES
from memory_tui.tui.view import View

_NO_LEDGER = "OpenClaw keeps no ledger of these notes. It does from 2026.8 on, in its state folder."
_TRUST = {"untrusted": BAD, "edited": WARN, "ignored": MUTED, "unknown": WARN}


def kept(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield what OpenClaw keeps of this workspace, each part under its heading."""
    rows = [*trust(engine.notes.trust()), Fact("")]
    yield [*rows, Fact("Reading the notes ...", style=MUTED)]
    rows += [*dreams(engine), Fact(""), *sessions(flush.near(engine.plan.config)), Fact("")]
    rows += [
        Fact("Long-term memories", "memories", does=f"in LanceDB, {engine.memories.location.label}"),
        Fact("Its own index", "compare", does="beside the notes"),
        Fact(""),
        *agents(engine.plan.config),
    ]
    yield rows


def trust(report: TrustReport | None) -> Iterator[Fact]:
    """Yield what the ledger says of the notes, those that are not trusted first."""
    yield heading("Trust")
    if report is None or not report.ledger:
        yield Fact(_NO_LEDGER, style=MUTED)
        return
    yield Fact(one_line(trust_summary(report)), mark=WARN if report.problem else "")
    yield from (Fact(one_line(remark), mark=WARN) for remark in report.remarks)
    for file in report.files:
        if mark := _TRUST.get(file.state):
            yield Fact(f"{one_line(file.path)}: {file.words}", mark=mark)
    if any(file.state == "untrusted" for file in report.files):
        yield Fact(NO_WAY_BACK, style=MUTED)


def dreams(engine: Engine) -> Iterator[Fact]:
    """Yield what dreaming wrote into the notes."""
    yield heading("Dreams")
    count = 0
    for row in engine.notes.files():
        try:
            text = engine.notes.read(row.path).text if row.source == "memory" else ""
        except Unreadable:
            continue
        for fold in folds(text):
            count += 1
            words = f"{one_line(row.path)}:{fold.first}-{fold.last}  {one_line(fold.title)}"
            yield Fact(words, f"note:{row.path}:{fold.first}", does="enter reads it")
    if not count:
        yield Fact("Dreaming wrote nothing into these notes.", style=MUTED)


def sessions(rows: Sequence[Nearness]) -> Iterator[Fact]:
    """Yield how many sessions there are, and which of them is to be flushed now."""
    due = sum(row.decision.flush for row in rows)
    words = f"{len(rows):,}, {due:,} to be flushed now" if rows else "none has a transcript"
    yield Fact("Sessions", "sessions", WARN if due else "", does=words)


def agents(config: Config) -> Iterator[Fact]:
    """Yield the agents of the configuration."""
    others = [agent for agent in config.agents if agent.id != config.agent.id]
    yield heading(f"This is the workspace of {one_line(config.agent.id)}")
    for agent in others:
        words = f"{one_line(agent.id)}  {one_line(str(agent.workspace))}"
        yield Fact(words, f"agent:{agent.id}", does="enter opens it")
    if not others:
        yield Fact("The configuration has no other agent.", style=MUTED)


_MOST = 400
"""Entries that are listed, the newest first; older ones are found by asking."""


def entry(item: MemoryEntry, *, score: str = "", opened: bool = False) -> Iterator[Fact]:
    """Yield an entry as a row; the whole text below it where it is opened."""
    words = f"{item.category:<10} {one_line(item.text)}"
    yield Fact(words, f"entry:{item.id}", label=score or item.day, most=1)
    if opened:
        yield from (Fact(line or " ", indent=2) for line in safe(item.text, keep_newlines=True).split("\n"))
        yield Fact(f"{item.day}, importance {item.importance:.1f}, {item.id}", indent=2, style=MUTED)


class MemoriesPage(Listing):
    """The entries of one table."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(
        "app.ask", "notes.add", "note.delete", "note.promote", "app.undo", "text.back"
    )

    @dataclass
    class Changed(Message):
        """A change of the table is due; a person has to agree first that memory-tui writes it at all."""

        deed: Callable[[Memories], str]
        agreed: bool

    def __init__(self, view: View) -> None:
        super().__init__("Long-term memories", view, self.read, "Loading LanceDB ...")
        self.question, self.opened, self.entries = "", "", dict[str, MemoryEntry]()

    def read(self, engine: Engine) -> Iterator[Sequence[Fact]]:
        """Yield the entries, or the answer to the question with why the others are none. Raises MemoriesUnavailable."""
        memories = engine.memories
        where = f"{memories.location.label}{'' if memories.writable else ', only read so far'}"
        try:
            every = memories.table().entries()
        except TableMissing:
            yield [Fact("There are no memories here yet; a stores the first one."), Fact(where, style=MUTED)]
            return
        self.entries = {item.id: item for item in every}
        if not self.question:
            newest = sorted(every, key=lambda item: item.created_at, reverse=True)
            head = Fact(f"{plural(len(every), 'memory')}: {where}", style=MUTED)
            keys = Fact("/ searches them   a stores one   x forgets   p promotes   u takes back", style=MUTED)
            yield [head, keys, *(fact for item in newest[:_MOST] for fact in self.row(item))]
            return
        answer = memories.search(self.question)
        rows = [Fact(f"For: {one_line(self.question)}", style="bold")]
        rows += [fact for hit in answer.hits for fact in self.row(hit.entry, f"{hit.score:.3f}")]
        rows += [] if answer.hits else [Fact("No memory is near enough.", style=WARN)]
        for miss in answer.misses:
            rows += [*self.row(miss.entry, f"{miss.score:.3f}"), Fact(miss.why_not, indent=2, style=MUTED)]
        yield rows

    def row(self, item: MemoryEntry, score: str = "") -> Iterator[Fact]:
        """Yield one entry."""
        return entry(item, score=score, opened=item.id == self.opened)

    @property
    def entry(self) -> MemoryEntry | None:
        """Return the entry under the cursor; where there is none, that is said."""
        fact = self.query_one(Facts).fact
        item = self.entries.get(fact.key.removeprefix("entry:")) if fact is not None else None
        if item is None:
            self.notify("No memory is under the cursor.", markup=False)
        return item

    async def act(self, key: str) -> None:
        """Show the whole text, or a line of it again."""
        name = key.removeprefix("entry:")
        self.opened = "" if self.opened == name else name
        self.reload()

    async def action_ask(self) -> None:
        """Rank the memories by a question; an empty one lists all."""

        def typed(question: str | None) -> None:
            self.question = question or ""
            self.reload()

        await self.app.push_screen(Line("Search the memories", "what they should say; empty lists all"), typed)

    async def action_add(self) -> None:
        """Store a sentence."""

        def typed(text: str | None) -> None:
            if text:
                self.change(lambda memories: f"Stored: {memories.store(text).action}. u takes it back.")

        await self.app.push_screen(Line("Store a memory", "one sentence"), typed)

    def action_delete(self) -> None:
        """Forget the entry under the cursor."""
        if item := self.entry:
            self.change(
                lambda memories: f"Forgot {plural(len(memories.forget([item.id]).entries), 'memory')}. u takes it back."
            )

    def action_undo(self) -> None:
        """Take the last change of the table back."""
        self.change(lambda memories: f"Took back: {memories.undo().kind}.")

    @work(thread=True, exclusive=True, group="page")
    def change(self, deed: Callable[[Memories], str]) -> None:
        """Change the table, once a person agreed that memory-tui writes it."""
        agreed = self.view.attempt(lambda engine: engine.memories.writable or not engine.memories.exists())
        if agreed is not None:
            self.post_message(self.Changed(deed, agreed))

    @on(Changed)
    def changed(self, message: Changed) -> None:
        """Do it, or ask first."""

        def deed(engine: Engine) -> str:
            if not message.agreed:
                engine.memories.approve("in the app")
            return message.deed(engine.memories)

        if message.agreed:
            self.view.perform(deed, self.reload)
        else:
            words = Content("memory-tui has only read these memories so far. Each change can be taken back.")
            self.view.post_message(View.Asks("Write these memories", words, "Agree", deed, self.reload))

    async def action_promote(self) -> None:
        """Show the line of MEMORY.md that the entry under the cursor would be, and write it; the entry stays."""
        if item := self.entry:
            line = f"- {' '.join(item.text.split())}\n".encode("utf-8", "replace")
            spot = Spot(f"LanceDB {item.id[:8]}", line, 1, 1)
            await changes.propose(self.view, lambda curator: curator.plan.promote(spot))


class OpenClawPage(Listing):
    """What OpenClaw keeps; enter reads or opens."""

    def __init__(self, view: View) -> None:
        super().__init__("What OpenClaw keeps", view, kept)

    async def act(self, key: str) -> None:
        """Do what the row says."""
        kind, _, name = key.partition(":")
        match kind:
            case "memories":
                await self.app.push_screen(MemoriesPage(self.view))
            case "sessions" | "compare":
                await self.app.push_screen(PAGES[kind](self.view))
            case "note":
                path, _, line = name.rpartition(":")
                self.leave(ReadNote(path, int(line)))
            case _:
                self.switch(name)

    @work(thread=True, exclusive=True, group="page")
    def switch(self, agent: str) -> None:
        """Open the workspace of another agent, where that is possible."""

        def options(engine: Engine) -> Options:
            other = plans.of_agent(engine.plan.options, agent)
            plans.plan(other).require_enabled()
            return other

        if other := self.view.attempt(options):
            self.app.call_later(self.leave, Reopen(opener_of(other)))
