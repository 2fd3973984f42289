"""A question to the memory: a call of a tool or of a private method, with all that its answer depends on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.hosts.wiring import PROOF_CLIENT
from memory_tui.openclaw.prompt import GET, SEARCH
from memory_tui.recalls.recalled_lines import Mode, mode_of

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.mcp.tools import AnswerRules
    from memory_tui.plan import Plan
    from memory_tui.recalls.recall_log import RecallEntry

TOO_LATE = "This answer came too late and was not delivered."


class AgentQuestion(Struct, frozen=True):
    """A call of `tool` with the arguments `given`, by the program `client`.

    `late` asks for what can be had at once. `citations`, `most_characters` and `log` are what the server was told,
    None where the configuration decides.
    """

    tool: str
    args: Mapping[str, Any]
    client: str = ""
    session_key: str = ""
    late: bool = False
    citations: Mode | None = None
    most_characters: int | None = None
    log: bool | None = None

    def cites(self, plan: Plan) -> Mode:
        """The mode of citations: as told, else as configured."""
        return self.citations or mode_of(plan.config.value("memory.citations"))

    def logged(self, plan: Plan) -> bool:
        """Whether the question is written down."""
        return plan.settings.on("recall.log") if self.log is None else self.log


Answered = tuple[dict[str, Any], "RecallEntry | None"]
"""The answer to a question, and what is to be written down of it."""


def answered(memory: Engine, question: AgentQuestion, cancel: Stop) -> Answered:
    """What `memory` answers. Raises QueryError, Cancelled; for a private method other errors too."""
    if question.tool == SEARCH:
        return _searched(memory, question, cancel)
    if question.tool == GET:
        return _read(memory, question)
    from memory_tui.mcp import plugin_methods

    return plugin_methods.answer(question.tool, memory, question.args, cancel), None


def _searched(memory: Engine, question: AgentQuestion, cancel: Stop) -> Answered:
    from memory_tui.mcp.tools import memory_search
    from memory_tui.recalls import recall_log, rerun

    at, began = time.time(), time.perf_counter()
    manner = _manner(memory, question)
    traced = memory_search(memory, question.args, manner, cancel, late=question.late)
    answer = traced.answer
    if not question.logged(memory.plan) or question.client.startswith(PROOF_CLIENT):
        return {**answer}, None
    outcome = answer["empty"]["sentence"] if "empty" in answer else answer.get("error", "")
    entry = recall_log.RecallEntry(
        SEARCH,
        str(question.args.get("query")),
        at,
        question.client,
        memory.plan.agent.id,
        str(question.args.get("corpus") or ""),
        outcome=outcome,
        ms=(time.perf_counter() - began) * 1000,
        most_characters=manner.max_injected_chars,
        by_words=question.late,
        backend=answer.get("backend", ""),
    )
    # Whoever asked has been given another answer when this one comes too late.
    came = () if cancel.is_set() else traced.delivered
    is_cut = "clamped" in answer and bool(answer["clamped"]["cut"])
    if traced.trace is not None:
        entry = rerun.with_trace(entry, traced.trace, came, is_cut=is_cut)
    elif answer.get("backend") == "qmd" and not cancel.is_set():
        entry = _with_hits_of_qmd(entry, answer)
    return {**answer}, replace(entry, outcome=TOO_LATE, level="") if cancel.is_set() else entry


def _manner(memory: Engine, question: AgentQuestion) -> AnswerRules:
    from memory_tui.mcp.tools import AnswerRules

    most = question.most_characters
    return AnswerRules(
        question.cites(memory.plan),
        question.session_key,
        memory.plan.settings.whole("recall.maxInjectedChars") if most is None else most,
    )


def _read(memory: Engine, question: AgentQuestion) -> Answered:
    from memory_tui.mcp.tools import memory_get
    from memory_tui.recalls import recall_log

    at, began = time.time(), time.perf_counter()
    answer = memory_get(memory, question.args)
    if not question.logged(memory.plan):
        return {**answer}, None
    ok, first = answer["status"] == "ok", answer.get("from", 1)
    last = first + answer.get("lines", 0) - 1
    entry = recall_log.RecallEntry(
        GET,
        answer["path"],
        at,
        question.client,
        memory.plan.agent.id,
        outcome=f"lines {first} to {last}" if ok else answer.get("error", "There is no such note."),
        ms=(time.perf_counter() - began) * 1000,
        first_line=first if ok else 0,
        last_line=last if ok else 0,
    )
    return {**answer}, entry


def _with_hits_of_qmd(entry: RecallEntry, answer: dict[str, Any]) -> RecallEntry:
    """`entry` with the hits that went out, by QMD's ranks and scores; of its index nothing is known that would last."""
    from memory_tui.recalls.recall_log import LoggedHit

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
