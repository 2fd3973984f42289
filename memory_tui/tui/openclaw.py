"""The page of what OpenClaw keeps: trust of notes, dreams, sessions, long-term memories, its index, other agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from textual import work
from textual.content import Content

from memory_tui import plan as plans
from memory_tui.config.model import Config
from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused, Unreadable
from memory_tui.openclaw import flush
from memory_tui.openclaw.dreaming import folds
from memory_tui.openclaw.flush import Nearness
from memory_tui.openclaw.trust import FileTrust, Trust, TrustReport, trust_summary
from memory_tui.plan import Options
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.facts import BAD, GOOD, MUTED, WARN, Fact, Listing, heading
from memory_tui.tui.memories import MemoriesPage
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
    if not report.problem and report.approved:
        yield Fact("Edits made here keep a note the agent's.", "withdraw", GOOD, does="enter withdraws that")
    elif not report.problem:
        words = "The ledger is only read: a note of the agent that is edited here becomes untrusted."
        yield Fact(words, "approve", WARN, does="enter lets edits made here update it")
    yield from map(_trusted, filter(lambda file: file.state in _TRUST, report.files))


def _trusted(file: FileTrust) -> Fact:
    mends = file.state in ("untrusted", "edited")
    does = "enter shows it, to trust it again" if mends else ""
    return Fact(
        f"{one_line(file.path)}: {file.words}", f"repair:{file.path}" if mends else "", _TRUST[file.state], does=does
    )


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


class OpenClawPage(Listing):
    """What OpenClaw keeps; enter reads, opens, approves or repairs."""

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
            case "agent":
                self.switch(name)
            case "repair":
                self.repair(name)
            case "approve":
                words = (
                    "memory-tui then writes OpenClaw's ledger at each edit of a note that is the agent's, nothing else."
                )
                self.ask(
                    "Let edits made here update OpenClaw's ledger", words, lambda ledger: ledger.approve("in the app")
                )
            case _:
                words = "The ledger is only read then; a note that is edited here becomes untrusted."
                self.ask("Withdraw the approval", words, Trust.withdraw)

    def ask(self, title: str, words: str, change: Callable[[Trust], object]) -> None:
        """Ask for a change of who keeps the ledger."""

        def deed(engine: Engine) -> str:
            ledger = engine.notes.curator.trust
            if ledger is None:
                raise EditRefused(_NO_LEDGER, "Nothing was changed.")
            change(ledger)
            return "Done."

        self.view.post_message(View.Asks(title, Content(words), "Do it", deed, self.reload))

    @work(thread=True, exclusive=True, group="page")
    def repair(self, path: str) -> None:
        """Show the whole text of a note, and trust it again where a person agrees to that text."""
        seen = self.view.attempt(lambda engine: engine.notes.curator.read(path))
        if seen is None:
            return
        words = "Everything below goes into the agent's prompt again. Read it, then agree."
        text = Content.assemble((f"{words}\n\n", "bold"), safe(seen.decode("utf-8", "replace"), keep_newlines=True))

        def deed(engine: Engine) -> str:
            engine.notes.curator.repair(path, seen)
            return f"{path} is trusted again. u takes it back."

        self.view.post_message(View.Asks(f"Trust {one_line(path)} again", text, "Trust it", deed, self.reload))

    @work(thread=True, exclusive=True, group="page")
    def switch(self, agent: str) -> None:
        """Open the workspace of another agent, where that is possible."""

        def options(engine: Engine) -> Options:
            other = plans.of_agent(engine.plan.options, agent)
            plans.plan(other).require_enabled()
            return other

        if other := self.view.attempt(options):
            self.app.call_later(self.leave, Reopen(opener_of(other)))
