"""The host of the server's memory. It is opened when first needed, shared by threads, and closed at the end.

A client waits for the server to start, so what answers questions is imported by whoever opens the memory.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError, QueryError
from memory_tui.openclaw.prompt import RECALL, disabled_rule, recall_rule
from memory_tui.recalls.recalled_lines import Mode, mode_of
from memory_tui.sanitize import one_line

if TYPE_CHECKING:
    from memory_tui.backends.memories import ToolAnswer
    from memory_tui.engine.engine import Engine
    from memory_tui.events import Event
    from memory_tui.plan import Plan
    from memory_tui.recalls.recall_log import RecallEntry

_FIRST_INDEX_SECONDS = 600.0
_GOODBYE_SECONDS = 1.0


class ServerOptions(Struct, frozen=True):
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
    """Whether the agent may correct lines of the notes, and store and forget long-term memories."""
    disabled: str = ""
    """Why the configuration gives the agent no memory search, as a sentence; empty where it does."""


class ServedMemory:
    """Answers the tools, from any thread. A memory that cannot be opened is tried again at the next question."""

    def __init__(self, open_memory: Callable[[], Engine], options: ServerOptions) -> None:
        self.news = ""
        """What is being done meanwhile, for somebody who waits."""
        self._open_memory = open_memory
        self.options = options
        # A signal may close the host while its own thread does.
        self._lock = threading.RLock()
        self._memory: Engine | None = None
        self._closed = Stop()
        self._warming = self._asks = False

    def rule(self, citations: Mode) -> str:
        """When to search the memory, or that the configuration switched that off."""
        disabled = self.options.disabled
        return disabled_rule(disabled) if disabled else recall_rule(citations)

    def memory(self) -> Engine:
        """Return the memory, opened where it is not open. Raises MemoryTuiError, Cancelled when it was closed."""
        with self._lock:
            if self._closed.is_set():
                raise Cancelled
            if self._memory is None:
                memory = self._open_memory()
                memory.listen(self._follow)
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
            if self._asks:
                # Who asks already waits for the same, and not for another question.
                return
            # A remote provider is not paid for a question that nobody has asked.
            question = "" if registry.sends(memory.plan.provider) else "memory"
            try:
                # As written: where no note holds the word, every word of the index would be read to correct it.
                evidence = memory.search.gather(question, as_written=True)
            except IndexUnavailable:
                # The first index is being made.
                memory.index.writer.wait_idle(_FIRST_INDEX_SECONDS)
                evidence = memory.search.gather(question, as_written=True)
            memory.search.rank(evidence, memory.plan.settings)
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

    def _follow(self, event: Event) -> None:
        from memory_tui.events import ModelFetching, SyncFinished, SyncProgress, VectorsMade

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
        if self.options.citations is not None:
            return self.options.citations
        try:
            return mode_of(self.plan().config.value("memory.citations"))
        except MemoryTuiError:
            return "auto"

    def profile(self) -> str:
        """Return the profile that ranks the answers; empty while the memory cannot be opened."""
        return "" if self._memory is None else self._memory.plan.settings.word("profile")

    def plan(self) -> Plan:
        """Return the run plan of the memory. Raises MemoryTuiError, Cancelled."""
        return self.memory().plan

    def search(
        self, args: Mapping[str, Any], session_key: str, client: str, cancel: Stop, late: bool = False
    ) -> dict[str, Any]:
        """Answer memory_search, logged where that is wanted. Raises QueryError, Cancelled."""
        from memory_tui.mcp import questions, tools

        try:
            memory = self._asked()
            most = self.options.max_injected_chars
            rules = tools.AnswerRules(
                self.citations(),
                session_key or self.options.session_key,
                memory.plan.settings.whole("recall.maxInjectedChars") if most is None else most,
            )
            answer, entry = questions.search(memory, args, rules, client, cancel, late=late)
        except (QueryError, Cancelled):
            raise
        except MemoryTuiError as error:
            return tools.unavailable(error)
        self._log(memory, entry)
        return answer

    def get(self, args: Mapping[str, Any], client: str) -> dict[str, Any]:
        """Answer memory_get, logged where that is wanted. Raises QueryError, Cancelled."""
        from memory_tui.mcp import questions, tools

        try:
            memory = self._asked()
            answer, entry = questions.get(memory, args, client)
        except (QueryError, Cancelled):
            raise
        except MemoryTuiError as error:
            return tools.refused(str(args.get("path", "")), error)
        self._log(memory, entry)
        return answer

    def correct(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Answer memory_correct. Raises MemoryTuiError, Cancelled."""
        from memory_tui.mcp import tools

        return tools.memory_correct(self._asked(), args)

    def private(self, method: str, args: Mapping[str, Any], cancel: Stop) -> dict[str, Any]:
        """Answer the plugin in OpenClaw's memory slot. Raises MemoryTuiError, Cancelled."""
        from memory_tui.mcp import questions

        return questions.plugin_answer(method, self._asked(), args, cancel)

    def entries(self, tool: str, args: Mapping[str, Any], client: str) -> ToolAnswer:
        """Answer memory_recall, logged where that is wanted; memory_store, memory_forget. Raises MemoryTuiError."""
        from memory_tui.mcp import questions

        memory = self._asked()
        try:
            answer, entry = questions.entries(memory, tool, args, client)
        except QueryError:
            raise
        except MemoryTuiError as error:
            if tool == RECALL:
                self._log(memory, questions.failed_recall(memory, args, client, error))
            raise
        self._log(memory, entry)
        return answer

    def _asked(self) -> Engine:
        self._asks = True
        return self.memory()

    def _log(self, memory: Engine, entry: RecallEntry | None) -> None:
        """Log `entry`; a log that cannot be written costs nobody an answer, and is complained of."""
        from memory_tui.recalls import recall_log

        target = self.options.log
        if entry is None or not (memory.plan.settings.on("recall.log") if target is None else target):
            return
        try:
            recall_log.append_recall(recall_log.recall_log_path(memory.plan.roots.workspace), entry)
        except (OSError, MemoryTuiError) as error:
            complain(error)


def complain(error: Exception) -> None:
    """Say on stderr, which clients keep as the log of the server, what went wrong."""
    step = error.next_step if isinstance(error, MemoryTuiError) else ""
    sys.stderr.write(f"memory-tui: {one_line(f'{error} {step}')}\n")
