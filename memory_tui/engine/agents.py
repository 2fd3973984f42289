"""What agents are told: by another ranking, by entries whose triggers fit, and what the memory knew of past turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from memory_tui import profiles
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import QueryError, SettingError
from memory_tui.openclaw import prompt
from memory_tui.openclaw.prompt import CuratedEntry, Triggered, citation
from memory_tui.plan import Plan
from memory_tui.recalls.agent_turns import AgentTurn, SessionTurns
from memory_tui.workspace.annotations import CURATED, Annotations


@contextmanager
def by_profile(engine: Engine, name: str, stop: Stop | None = None) -> Iterator[Engine]:
    """The same memory under the rules of the profile `name`: `engine` where it has the chunks of that, else an engine
    on the index beside its own, which is made or brought up to date first.

    Raises IndexUnavailable, Cancelled.
    """
    plan = engine.plan
    if _is_cut_as(plan, name):
        yield engine
        return
    index = str(plan.index_cut_by(profiles.get(name).chunking)) if plan.options.index else None
    request = replace(plan.options, index=index, changes=(*plan.options.changes, ("profile", name)), once=False)
    with Engine.open(request) as other, (stop or Stop()).around(other.index.stop):
        other.index.catch_up()
        yield other


def _is_cut_as(plan: Plan, name: str) -> bool:
    return profiles.get(plan.settings.word("profile")).chunking == profiles.get(name).chunking


def injected(engine: Engine, message: str) -> list[Triggered]:
    """Return the curated entries that OpenClaw 2026.9 injects for `message`, each with its reason.

    Raises SettingError where the index was cut by another release's rules.
    """
    plan = engine.plan
    if not _is_cut_as(plan, profiles.NEWEST):
        raise SettingError(
            "Only OpenClaw 2026.9 injects entries by their triggers.", f"Use --profile {profiles.NEWEST}."
        )
    settings = plan.settings.set("query.maxResults", prompt.SEARCHED, "trigger recall")
    settings = settings.set("query.minScore", 0.0, "trigger recall")
    trace = engine.search.rank(engine.search.gather(message, by_words=True), settings)
    scores = {hit.chunk.id: hit.score for hit in trace.recalled}
    trust = {path: engine.notes.trust_of(path) for path in CURATED}
    with engine.search.reader() as store, store.snapshot():
        annotations = {rowid: Annotations(*values) for rowid, values in store.annotations().items()}
        chunks = [
            (path, chunk)
            for path in CURATED
            for chunk in store.chunks_of(path)
            if chunk.rowid in annotations and annotations[chunk.rowid].triggers
        ][: prompt.MOST_CANDIDATES]
        texts = store.texts([chunk.rowid for _, chunk in chunks])
    entries = []
    for path, chunk in chunks:
        place = path, chunk.start_line, chunk.end_line, texts.get(chunk.rowid, "")
        state, score = trust[path], scores.get(chunk.chunk_id, 0.0)
        trusted = state is None or state.state != "untrusted"
        entries.append(CuratedEntry(*place, annotations[chunk.rowid], score, trusted))
    return prompt.triggered(message, entries, plan.projects)


# --- past conversations --------------------------------------------------------------------------------------------

DAY_SECONDS = 86_400.0
_LONGEST_SAID, _MOST_UNASKED = 400, 20
"""Characters of what a person said, beyond which it is no question; turns of a session that are looked up."""


def with_known(engine: Engine, session: SessionTurns) -> SessionTurns:
    """Return `session` with what the memory knows for its newest turns without a question: where it is found alone.

    By words, so that nothing of a conversation goes to a provider. Raises IndexUnavailable, Cancelled.
    """
    settings = engine.plan.with_profile(profiles.OWN)

    def known(turn: AgentTurn) -> AgentTurn:
        if turn.recalls or not turn.said.strip() or len(turn.said) > _LONGEST_SAID:
            return turn
        try:
            trace, _ = engine.search.ranked(turn.said, settings, by_words=True)
        except QueryError:
            return turn
        is_known = trace.level is not None and trace.level.level == "found" and trace.recalled
        hit = trace.recalled[0] if is_known else None
        return (
            turn if hit is None else replace(turn, knew=citation(hit.chunk.path, hit.chunk.start_line, hit.last_line))
        )

    at = len(session.turns) - _MOST_UNASKED
    turns = (known(turn) if number >= at else turn for number, turn in enumerate(session.turns))
    return replace(session, turns=tuple(turns))
