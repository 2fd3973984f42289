"""Answer a call of a tool, and say what is to be logged of it. Imported when the memory is first asked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.backends import agent_memories
from memory_tui.backends.agent_memories import ToolAnswer
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.hosts.wiring import PROOF_CLIENT
from memory_tui.mcp.schemas import arguments
from memory_tui.mcp.tools import AnswerRules, memory_get, memory_search
from memory_tui.openclaw.prompt import GET, RECALL, SEARCH
from memory_tui.recalls import rerun
from memory_tui.recalls.recall_log import NONE_NEAR, LoggedHit, RecallEntry

TOO_LATE = "This answer came too late and was not delivered."


class Call(Struct):
    """Who calls a tool of `memory`, and when that began."""

    memory: Engine
    tool: str
    client: str
    at: float = 0.0
    began: float = 0.0

    def __post_init__(self) -> None:
        self.at, self.began = time.time(), time.perf_counter()

    def entry(self, query: str, outcome: str) -> RecallEntry:
        """Return what is logged of the call, which ends now."""
        ms = (time.perf_counter() - self.began) * 1000
        return RecallEntry(self.tool, query, self.at, self.client, self.memory.plan.agent.id, outcome=outcome, ms=ms)


def search(
    memory: Engine, args: Mapping[str, Any], rules: AnswerRules, client: str, cancel: Stop, *, late: bool = False
) -> tuple[dict[str, Any], RecallEntry | None]:
    """Answer memory_search. Raises QueryError, Cancelled."""
    call = Call(memory, SEARCH, client)
    traced = memory_search(memory, args, rules, cancel, late=late)
    answer = traced.answer
    if client.startswith(PROOF_CLIENT):
        return answer, None
    outcome = answer["empty"]["sentence"] if "empty" in answer else answer.get("error", "")
    entry = replace(
        call.entry(str(args.get("query")), outcome),
        corpus=str(args.get("corpus") or ""),
        most_characters=rules.max_injected_chars,
        by_words=late,
        backend=answer.get("backend", ""),
    )
    # Whoever asked has been given another answer when this one comes too late.
    too_late = cancel.is_set()
    if traced.trace is not None:
        is_cut = "clamped" in answer and bool(answer["clamped"]["cut"])
        entry = rerun.with_trace(entry, traced.trace, () if too_late else traced.delivered, is_cut=is_cut)
    elif answer.get("backend") == "qmd" and not too_late:
        entry = _with_hits_of_qmd(entry, answer)
    return answer, replace(entry, outcome=TOO_LATE, level="") if too_late else entry


def get(memory: Engine, args: Mapping[str, Any], client: str) -> tuple[dict[str, Any], RecallEntry]:
    """Answer memory_get. Raises QueryError."""
    call = Call(memory, GET, client)
    answer = memory_get(memory, args)
    if answer["status"] != "ok":
        return answer, call.entry(answer["path"], answer.get("error", "There is no such note."))
    first, last = answer["from"], answer["from"] + answer["lines"] - 1
    entry = call.entry(answer["path"], f"lines {first} to {last}")
    return answer, replace(entry, first_line=first, last_line=last)


def entries(memory: Engine, tool: str, args: Mapping[str, Any], client: str) -> tuple[ToolAnswer, RecallEntry | None]:
    """Answer memory_recall, memory_store or memory_forget. Raises MemoryTuiError."""
    request, call = arguments(tool, args), Call(memory, tool, client)
    answer = agent_memories.answer(memory.memories, tool, request)
    if tool != RECALL:
        return answer, None
    hits: Sequence[Mapping[str, Any]] = answer.details.get("memories", ())
    return answer, replace(
        call.entry(request["query"], "" if hits else NONE_NEAR),
        requested={"limit": request["limit"]} if "limit" in request else {},
        hits=tuple(LoggedHit(hit["id"], 0, 0, hit["score"], hit["score"], 0.0) for hit in hits),
    )


def failed_recall(memory: Engine, args: Mapping[str, Any], client: str, error: MemoryTuiError) -> RecallEntry:
    """Return what is logged of a memory_recall that failed."""
    return Call(memory, RECALL, client).entry(str(args.get("query")), error.message)


def _with_hits_of_qmd(entry: RecallEntry, answer: dict[str, Any]) -> RecallEntry:
    """Return `entry` with the hits that went out, by QMD's ranks and scores; of its index nothing would last."""
    clamped = answer.get("clamped")
    last = len(answer["results"]) if clamped and clamped["cut"] else 0
    hits = tuple(
        LoggedHit(
            hit["path"],
            hit["startLine"],
            hit["endLine"],
            hit["score"],
            0.0,
            0.0,
            cut=place == last,
            rank=hit.get("rank", place),
        )
        for place, hit in enumerate(answer["results"], 1)
    )
    ranked = len(hits) + (clamped["dropped"] if clamped else 0)
    outcome = "" if hits else "QMD found nothing."
    return replace(entry, provider="qmd", model="qmd", hits=hits, ranked=ranked, outcome=outcome)
