"""What a person said in a past conversation is asked again, to tell what the memory knew of it."""

from __future__ import annotations

from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.errors import QueryError
from memory_tui.openclaw.prompt import citation
from memory_tui.profiles import OWN
from memory_tui.recalls.agent_turns import AgentTurn, SessionTurns

DAY_SECONDS = 86_400.0
_LONGEST_SAID, _MOST_UNASKED = 400, 20
"""Characters of what a person said, beyond which it is no question; turns of a session that are looked up."""


def with_known(engine: Engine, session: SessionTurns) -> SessionTurns:
    """Return `session` with what the memory knows for its newest turns without a question: where it is found alone.

    By words, so that nothing of a conversation goes to a provider. Raises IndexUnavailable, Cancelled.
    """
    settings = engine.plan.with_profile(OWN)

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
