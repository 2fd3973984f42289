"""The page of what OpenClaw keeps: trust of notes, dreams, sessions, long-term memories, its index."""

from collections import Counter
from collections.abc import Iterator, Sequence

from memory_tui.backends.lancedb import TableMissing
from memory_tui.engine.engine import Engine
from memory_tui.errors import Unreadable
from memory_tui.formatting import one_line, plural
from memory_tui.openclaw import compare, flush
from memory_tui.openclaw.dreaming import TITLES, dream_blocks
from memory_tui.openclaw.prompt import NO_WAY_BACK
from memory_tui.openclaw.trust import TrustReport, trust_summary
from memory_tui.tui.facts import BAD, MUTED, WARN, Fact, Listing
from memory_tui.tui.session import ReadNote
from memory_tui.tui.view import View

_TRUST = {"untrusted": BAD, "edited": WARN, "ignored": MUTED, "unknown": WARN}


def kept(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield what OpenClaw keeps of this workspace, each part under its heading."""
    rows = [*trust(engine.trust()), Fact("")]
    yield [*rows, Fact("Reading the notes ...", style=MUTED)]
    rows += [*dreams(engine), Fact(""), *sessions(flush.near(engine.plan.config)), Fact("")]
    rows.append(Fact("Long-term memories", "memories", does=f"in LanceDB, {engine.memories.label}"))
    rows.append(Fact("Its own index", "compare", does="beside the notes"))
    yield rows


def trust(report: TrustReport | None) -> Iterator[Fact]:
    """Yield what the ledger says of the notes, those that are not trusted first."""
    yield Fact("Trust: which notes changed behind OpenClaw's back", style="bold")
    if report is None or not report.ledger:
        yield Fact("OpenClaw wrote down no hashes of these notes. It does from 2026.8 on, in its ledger.", style=MUTED)
        return
    yield Fact(one_line(trust_summary(report)), mark=WARN if report.problem else "")
    yield from (Fact(one_line(remark), mark=WARN) for remark in report.remarks)
    for file in report.files:
        if mark := _TRUST.get(file.state):
            yield Fact(f"{one_line(file.path)}: {file.words}", mark=mark)
    if any(file.state == "untrusted" for file in report.files):
        yield Fact(NO_WAY_BACK, style=MUTED)


def dreams(engine: Engine) -> Iterator[Fact]:
    """Yield the notes that dreaming wrote into, with what."""
    yield Fact("Dreams: what OpenClaw writes by itself at night", style="bold")
    count = 0
    for row in engine.notes.files():
        try:
            blocks = dream_blocks(engine.notes.read(row.path).text) if row.source == "memory" else []
        except Unreadable:
            continue
        if blocks:
            count += 1
            kinds = Counter(TITLES.get(block.kind, "promoted entry") for block in blocks)
            words = f"{one_line(row.path)}: {', '.join(plural(number, kind) for kind, number in kinds.items())}"
            yield Fact(words, f"note:{row.path}:{blocks[0].first}", does="enter reads it")
    if not count:
        yield Fact("Dreaming wrote nothing into these notes.", style=MUTED)


def sessions(rows: Sequence[flush.Nearness]) -> Iterator[Fact]:
    """Yield the sessions that were used last, and which of them is to be flushed now."""
    yield Fact("Sessions", style="bold")
    for row in rows[:_SESSIONS]:
        yield Fact(one_line(row.sentence), mark=WARN if row.decision.flush else "")
    if len(rows) > _SESSIONS:
        yield Fact(f"memory-tui openclaw flush lists all {len(rows):,}.", style=MUTED)
    if not rows:
        yield Fact("OpenClaw keeps no session of this agent here.", style=MUTED)


def compared(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield what OpenClaw's own index is, then each note that differs from the one on disk."""
    value = compare.compare_configured(engine.plan.config, engine.plan.settings, engine.plan.roots)
    yield [Fact(one_line(words), label=label.lower()) for label, words in compare.statements(value)]


_MOST, _SESSIONS = 400, 12
"""Entries and sessions that are listed."""


def entries(engine: Engine) -> Iterator[Sequence[Fact]]:
    """Yield the long-term memories, the newest first. Raises MemoriesUnavailable."""
    where = engine.memories.label
    try:
        every = engine.memories.table().entries()
    except TableMissing as missing:
        yield [Fact(missing.message), Fact(missing.next_step, style=MUTED)]
        return
    newest = sorted(every, key=lambda item: item.created_at, reverse=True)[:_MOST]
    head = Fact(f"{plural(len(every), 'memory')} in {where}: memory-tui ltm searches and changes them", style=MUTED)
    yield [head, *(Fact(f"{item.category:<10} {one_line(item.text)}", label=item.day) for item in newest)]


class OpenClawPage(Listing):
    """What OpenClaw keeps; enter reads or opens."""

    def __init__(self, view: View) -> None:
        super().__init__("What OpenClaw keeps", view, kept)

    async def act(self, key: str) -> None:
        """Do what the row says."""
        kind, _, name = key.partition(":")
        match kind:
            case "memories":
                await self.app.push_screen(Listing("Long-term memories", self.view, entries, "Loading LanceDB ..."))
            case "compare":
                await self.app.push_screen(Listing("OpenClaw's own index beside the notes", self.view, compared))
            case _:
                path, _, line = name.rpartition(":")
                self.leave(ReadNote(path, int(line)))
