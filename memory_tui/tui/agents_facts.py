"""What each agent program gets and what it asked, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from memory_tui.formatting import minute, plural
from memory_tui.recalls import agent_turns
from memory_tui.recalls.agent_turns import SessionTurns, recall_words
from memory_tui.recalls.connected_agents import AgentProgram
from memory_tui.recalls.recall_log import Log, RecallEntry, Reply
from memory_tui.recalls.rerun import tally
from memory_tui.sanitize import one_line
from memory_tui.tui.facts import BAD, GOOD, MUTED, WARN, Fact, heading

_ENTRIES = 100
"""Logged recalls that are listed."""
ANSWERED: Mapping[Reply, tuple[str, str]] = MappingProxyType(
    {
        "found": ("answered", GOOD),
        "nearby only": ("perhaps not answered", WARN),
        "nothing": ("nothing holds these words", BAD),
        "no answer": ("failed", BAD),
        "no level": ("", MUTED),
    }
)
"""How well a question was answered, with its colour."""


def program_key(row: AgentProgram) -> str:
    """Return what a row is known by: its host, and its project where it is connected in one."""
    made = row.connection
    return f"host:{row.host.name}:{made.project if made is not None and made.scope == 'project' else ''}"


def programs(rows: Sequence[AgentProgram]) -> Iterator[Fact]:
    """Yield each agent program with what it gets from this memory, and what failed."""
    for row in rows:
        lost = [*row.lost, *([row.problem] if row.problem else [])]
        if row.connection is None:
            yield Fact(row.host.title, program_key(row), MUTED, does="not connected; d connects it")
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
        if not row.logs:
            yield Fact("nothing is written down; enter connects it with a log", label="asked", indent=2, style=MUTED)
        if row.failed is not None:
            words = f"{minute(row.failed.at)}  {one_line(row.failed.outcome) or 'no answer'}"
            yield Fact(words, label="last error", indent=2, style=WARN)


def questions(log: Log) -> Iterator[Fact]:
    """Yield what agents asked, the newest first, with how well it was answered."""
    if not log.entries:
        yield Fact("No question is logged. A connection with a log writes down what an agent asks.", style=MUTED)
        return
    poor = sum(entry.is_poor for entry in log.entries)
    yield heading(f"Asked: {tally(log).partition(': ')[2] or plural(len(log.entries), 'recall')}")
    if poor:
        yield Fact(f"{plural(poor, 'question')} may be worth a look: enter says why.", style=MUTED)
    yield from map(question, log.entries[: -_ENTRIES - 1 : -1])
    if len(log.entries) > _ENTRIES:
        yield Fact(f"{len(log.entries) - _ENTRIES:,} older; memory-tui recalls lists them.", style=MUTED)


def turns(sessions: Sequence[SessionTurns], problems: Sequence[str]) -> Iterator[Fact]:
    """Yield each session with its turns, whether the agent asked, and what became of what it got."""
    for number, session in enumerate(sessions):
        yield Fact(one_line(session.title), style="bold", does=session.sentence)
        for at, turn in enumerate(session.turns):
            key, mark, does = "", MUTED, "" if turn.recalls else "did not ask"
            if turn.knew:
                key, mark = f"turn:{number}:{at}", WARN
                does = f"did not ask, and should have: {one_line(turn.knew)} answers it"
            yield Fact(one_line(turn.said, 200), key, mark, minute(turn.at)[5:], 1, does, most=2)
            for place, recall in enumerate(turn.recalls):
                mark = ANSWERED[recall.entry.reply][1] if recall.entry.reply else MUTED
                yield Fact(recall_words(recall), f"recall:{number}:{at}:{place}", mark, indent=3)
    yield from map(Fact, agent_turns.by_note(sessions))
    if not sessions:
        yield Fact("No transcript of an agent with this memory was found for the last seven days.", style=MUTED)
    yield from (Fact(one_line(problem), mark=WARN) for problem in problems)


def question(entry: RecallEntry) -> Fact:
    """Return one recall as a row."""
    words, mark = ANSWERED[entry.reply] if entry.reply else ("read" if entry.delivered else "not read", MUTED)
    best = f"best {entry.best:.2f}" if entry.best is not None else ""
    who = one_line(entry.client or entry.agent, 24)
    told = ", ".join(filter(None, (words, best, who)))
    return Fact(one_line(entry.query, 200), f"recall:{entry.id}", mark, minute(entry.at)[5:], does=told, most=2)
