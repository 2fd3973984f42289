"""The host of the server's memory: opened when first needed, shared by threads, closed at the end.

A client waits for the server to start, so what answers questions is imported by whoever opens the memory.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, IndexUnavailable, MemoryTuiError
from memory_tui.core.sanitize import one_line
from memory_tui.hosts.wiring import PROOF_CLIENT
from memory_tui.openclaw.prompt import GET, RECALL, SEARCH, disabled_rule, recall_rule
from memory_tui.recalls.recalled_lines import Mode, mode_of
from memory_tui.records import dataclass

if TYPE_CHECKING:
    from memory_tui.core.events import Event
    from memory_tui.engine.engine import Engine
    from memory_tui.ltm.agent_answers import ToolAnswer
    from memory_tui.mcp.tools import AnswerRules
    from memory_tui.mcp.types import GetAnswer, SearchAnswer
    from memory_tui.recalls.recall_log import RecallEntry

_FIRST_INDEX_SECONDS = 600.0
_GOODBYE_SECONDS = 1.0
TOO_LATE = "This answer came too late and was not delivered."


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the command line asked of the server; None where it said nothing, so that the configuration decides."""

    citations: Mode | None = None
    session_key: str = ""
    max_injected_chars: int | None = None
    log: bool | None = None
    prompts: bool = True
    resources: bool = True
    """Whether prompts and resources are offered: some hosts turn them into tools that the agent has no use for."""
    entries: bool = False
    """Whether the long-term memories in LanceDB are offered: where they are the agent's memory."""
    allow_write: bool = False
    """Whether the agent may store and forget long-term memories."""
    disabled: str = ""
    """Why the configuration gives the agent no memory search, as a sentence; empty where it does."""


class ServedMemory:
    """Answers the tools, from any thread. A memory that cannot be opened is tried again at the next question."""

    def __init__(self, open_memory: Callable[[], Engine], wishes: ServerOptions) -> None:
        self.news = ""
        """What is being done meanwhile, for somebody who waits."""
        self._open_memory = open_memory
        self.wishes = wishes
        # A signal may close the host while its own thread does.
        self._lock = threading.RLock()
        self._memory: Engine | None = None
        self._closed = Stop()
        self._warming = False

    def rule(self, citations: Mode) -> str:
        """When to search the memory, or that the configuration switched that off."""
        disabled = self.wishes.disabled
        return disabled_rule(disabled) if disabled else recall_rule(citations)

    def memory(self) -> Engine:
        """The open memory. Raises MemoryTuiError, Cancelled when it was closed."""
        with self._lock:
            if self._closed.is_set():
                raise Cancelled
            if self._memory is None:
                memory = self._open_memory()
                memory.listen(self._heard)
                memory.start()
                self._memory = memory
            return self._memory

    def warm(self) -> None:
        """Open the memory in the background, so that the first question finds everything in place."""
        if not self._warming:
            self._warming = True
            threading.Thread(target=self._warm, name="memory-warm", daemon=True).start()

    def _warm(self) -> None:
        from memory_tui.providers import registry

        try:
            memory = self.memory()
            # A remote provider is not paid for a question that nobody has asked.
            question = "" if registry.sends(memory.plan.provider) else "memory"
            try:
                # As written: where no note holds the word, every word of the index would be read to correct it.
                evidence = memory.queries.gather(question, as_written=True)
            except IndexUnavailable:
                # The first index is being made.
                memory.indexer.writer.wait_idle(_FIRST_INDEX_SECONDS)
                evidence = memory.queries.gather(question, as_written=True)
            memory.queries.rank(evidence, memory.plan.settings)
        except Cancelled:
            return
        except MemoryTuiError as error:
            # Whoever asks is told again; this is for the log of the client.
            complain(error)

    def close(self) -> None:
        """Stop everything; questions that run are given up, and a memory that is slow to open is not waited for."""
        self._closed.set()
        if self._lock.acquire(timeout=_GOODBYE_SECONDS):
            try:
                if self._memory is not None:
                    self._memory.close()
            finally:
                self._lock.release()

    def _heard(self, event: Event) -> None:
        from memory_tui.core.events import ModelFetching, SyncFinished, SyncProgress, VectorsMade

        match event:
            case SyncProgress():
                self.news = f"indexing {event.done} of {event.total}: {one_line(event.path)}"
            case VectorsMade():
                self.news = f"embedding {event.done} of {event.total} chunks"
            case ModelFetching():
                self.news = f"fetching the model {one_line(event.name)}: {event.progress}"
            case SyncFinished():
                self.news = ""

    def citations(self) -> Mode:
        """The mode of citations: as wished, else as configured, else auto."""
        if self.wishes.citations is not None:
            return self.wishes.citations
        try:
            return mode_of(self.memory().plan.config.value("memory.citations"))
        except MemoryTuiError:
            return "auto"

    def profile(self) -> str:
        """The profile that ranks the answers; empty while the memory cannot be opened."""
        with self._lock:
            return "" if self._memory is None else self._memory.plan.settings.word("profile")

    def _manner(self, memory: Engine, session_key: str) -> AnswerRules:
        from memory_tui.mcp.tools import AnswerRules

        most = self.wishes.max_injected_chars
        return AnswerRules(
            self.citations(),
            session_key or self.wishes.session_key,
            memory.plan.settings.whole("recall.maxInjectedChars") if most is None else most,
        )

    def search(
        self, given: Mapping[str, Any], session_key: str, client: str, cancel: Stop, late: bool = False
    ) -> SearchAnswer:
        """memory_search, written down where that is wanted. Raises QueryError, Cancelled."""
        from memory_tui.mcp.tools import memory_search, unavailable
        from memory_tui.recalls import recall_log, rerun

        at, began = time.time(), time.perf_counter()
        try:
            memory = self.memory()
        except Cancelled:
            raise
        except MemoryTuiError as error:
            return unavailable(error)
        manner = self._manner(memory, session_key)
        found = memory_search(memory, given, manner, cancel, late=late)
        if self._logs(memory) and not client.startswith(PROOF_CLIENT):
            answer = found.answer
            outcome = answer["empty"]["sentence"] if "empty" in answer else answer.get("error", "")
            entry = recall_log.RecallEntry(
                SEARCH,
                str(given.get("query")),
                at,
                client,
                memory.plan.agent.id,
                str(given.get("corpus") or ""),
                outcome=outcome,
                ms=(time.perf_counter() - began) * 1000,
                most_characters=manner.max_injected_chars,
                by_words=late,
                backend=answer.get("backend", ""),
            )
            # Whoever asked has been given another answer when this one comes too late.
            came = 0 if cancel.is_set() else len(answer["results"])
            is_cut = "clamped" in answer and bool(answer["clamped"]["cut"])
            if found.trace is not None:
                entry = rerun.with_trace(entry, found.trace, came, is_cut=is_cut)
            elif answer.get("backend") == "qmd" and not cancel.is_set():
                entry = _with_hits_of_qmd(entry, answer)
            note_down(memory, replace(entry, outcome=TOO_LATE) if cancel.is_set() else entry)
        return found.answer

    def get(self, given: Mapping[str, Any], client: str) -> GetAnswer:
        """memory_get, written down where that is wanted. Raises QueryError, Cancelled."""
        from memory_tui.mcp.tools import memory_get, refused
        from memory_tui.recalls import recall_log

        at, began = time.time(), time.perf_counter()
        try:
            memory = self.memory()
        except Cancelled:
            raise
        except MemoryTuiError as error:
            return refused(str(given.get("path", "")), error)
        found = memory_get(memory, given)
        if self._logs(memory):
            first = found.get("from", 1)
            last = first + found.get("lines", 0) - 1
            note_down(
                memory,
                recall_log.RecallEntry(
                    GET,
                    found["path"],
                    at,
                    client,
                    memory.plan.agent.id,
                    outcome=f"lines {first} to {last}"
                    if found["status"] == "ok"
                    else found.get("error", "There is no such note."),
                    ms=(time.perf_counter() - began) * 1000,
                    first_line=first if found["status"] == "ok" else 0,
                    last_line=last if found["status"] == "ok" else 0,
                ),
            )
        return found

    def entries(self, tool: str, given: Mapping[str, Any], client: str) -> ToolAnswer:
        """memory_recall, written down where that is wanted; memory_store, memory_forget. Raises MemoryTuiError."""
        from memory_tui.ltm import agent_answers
        from memory_tui.mcp.types import entry_arguments

        asked, at, began = entry_arguments(tool, given), time.time(), time.perf_counter()
        memory = self.memory()
        try:
            found = agent_answers.answer(memory.memories, tool, asked)
        except MemoryTuiError as error:
            if tool == RECALL and self._logs(memory):
                note_down(memory, _recall_of_memories(memory, asked, client, (at, began), (), error.message))
            raise
        if tool == RECALL and self._logs(memory):
            hits = found.details.get("memories", ())
            outcome = "" if hits else "No memory was near enough."
            note_down(memory, _recall_of_memories(memory, asked, client, (at, began), hits, outcome))
        return found

    def _logs(self, memory: Engine) -> bool:
        return memory.plan.settings.on("recall.log") if self.wishes.log is None else self.wishes.log


def _recall_of_memories(
    memory: Engine,
    asked: Mapping[str, Any],
    client: str,
    began: tuple[float, float],
    hits: Sequence[Mapping[str, Any]],
    outcome: str,
) -> RecallEntry:
    """A recall of long-term memories for the log: ids and scores, no text."""
    from memory_tui.recalls.recall_log import LoggedHit, RecallEntry

    return RecallEntry(
        RECALL,
        asked["query"],
        began[0],
        client,
        memory.plan.agent.id,
        outcome=outcome,
        ms=(time.perf_counter() - began[1]) * 1000,
        requested={"limit": asked["limit"]} if "limit" in asked else {},
        hits=tuple(LoggedHit(one["id"], 0, 0, one["score"], one["score"], 0.0) for one in hits),
    )


def _with_hits_of_qmd(entry: RecallEntry, answer: SearchAnswer) -> RecallEntry:
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


def note_down(memory: Engine, entry: RecallEntry) -> None:
    """Log `entry`; a log that cannot be written costs nobody an answer, and is complained of."""
    from memory_tui.recalls import recall_log

    try:
        recall_log.append_recall(recall_log.recall_log_path(memory.plan.roots.workspace), entry)
    except (OSError, MemoryTuiError) as error:
        complain(error)


def complain(error: Exception) -> None:
    """Say on stderr, which clients keep as the log of the server, what went wrong."""
    step = error.next_step if isinstance(error, MemoryTuiError) else ""
    sys.stderr.write(f"memory-tui: {one_line(f'{error} {step}')}\n")
