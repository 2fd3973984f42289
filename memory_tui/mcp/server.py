"""The MCP server of a memory: its tools, and the memory that answers them, opened when first needed.

Standard output carries the protocol and nothing else. A request that is wrong is answered, and the server lives on; it
ends when its input ends, and takes its threads with it. The handshake and the lists are answered before anything is
imported that opens the memory; that begins when the tools were listed, or soon after the first request.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import __version__, jsstring
from memory_tui.cancel import Stop, call_after, exit_status, report_signal, signals_heard
from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError, QueryError
from memory_tui.formatting import one_line
from memory_tui.hosts.wiring import PROFILE
from memory_tui.mcp import wire
from memory_tui.openclaw import prompt
from memory_tui.openclaw.prompt import CORRECT, FORGET, GET, RECALL, SEARCH, STORE

if TYPE_CHECKING:
    from memory_tui.backends.lancedb import ToolAnswer
    from memory_tui.engine.engine import Engine
    from memory_tui.events import Event
    from memory_tui.mcp.tools import AnswerRules
    from memory_tui.recall_log import RecallEntry


Answer: TypeAlias = "dict[str, Any] | ToolAnswer"

SESSION_KEY = "memory-tui/sessionKey"
"""Member of a request's `_meta` that says in which session it is asked."""
PATIENCE = "memory-tui/patienceSeconds"
"""Member of a request's `_meta` by which a host that waits less long says so."""
PRIVATE = ("memory-tui/search", "memory-tui/entries", "memory-tui/status")
"""Methods beside the protocol, for the plugin in OpenClaw's memory slot."""
PATIENCE_SECONDS = 25.0
"""How long a question may take; after that there is only what its words find."""
LAST_SECONDS = 5.0
"""How long that second answer, by words, may take."""
WORKERS = 4
"""Questions that are answered at the same time; more wait. A search keeps a processor busy."""
_THREADS = 64
"""Threads for questions: one that hangs keeps its own."""
_NEWS_SECONDS = 0.5
"""How often a client that asked for progress is told of it."""
_GOODBYE_SECONDS = 1.0
_LAST_LOOK_SECONDS = 0.02
"""How often it is looked whether the last answers are out, once the input has ended."""
_OPENING_SECONDS = 1.0
"""How long after its first request a client may take to list the tools, before the memory is opened for it."""


class Handlers(Struct):
    """What is done for each request."""

    host: ServedMemory
    limit: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(WORKERS))
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "mcp-question"))

    def interface(self) -> wire.ServerInterface:
        """Return what this server can be asked."""
        methods = {"tools/list": self.list_tools, "tools/call": self.call_tool}
        methods |= {name: functools.partial(self.call_private, name) for name in PRIVATE}
        info = {"name": "memory-tui", "title": "memory-tui", "version": __version__}
        disabled = self.host.options.disabled
        rule = prompt.disabled_rule(disabled) if disabled else prompt.recall_rule("auto")
        return wire.ServerInterface(info, rule, methods)

    def offered(self) -> list[dict[str, Any]]:
        """Return the tools to list.

        Those that write are among them where the agent may write, those of the long-term memories where these are the
        agent's.
        """
        options = self.host.options
        hidden = () if options.entries else (RECALL, STORE, FORGET)
        tools = [tool for name, tool in wire.listed_tools(shared=options.shared).items() if name not in hidden]
        return [tool for tool in tools if options.allow_write or tool["annotations"]["readOnlyHint"]]

    def list_tools(self, params: Mapping[str, Any], _caller: wire.Caller) -> dict[str, Any]:
        """Answer with the list of tools."""
        wire.only_page(params)
        return {"tools": self.offered()}

    def call_tool(self, params: Mapping[str, Any], caller: wire.Caller) -> dict[str, Any]:
        """Run a tool; what is wrong with its arguments is told as an error the agent can read."""
        name = wire.text(params, "name")
        args = wire.members(params, "arguments")
        names = [tool["name"] for tool in self.offered()]
        if name not in names:
            raise wire.Refusal(wire.INVALID_PARAMS, f"Unknown tool: {name[:100]}", {"tools": names})
        try:
            return self._answer(name, args, caller)
        except Cancelled:
            raise
        except MemoryTuiError as error:
            return _failed(f"{error.message} {error.next_step}".rstrip())
        except Exception as error:  # noqa: BLE001 - a fault of ours must not take the connection with it
            wire.report_fault()
            return _failed(f"memory-tui failed inside: {type(error).__name__}.")

    def _answer(self, name: str, args: Mapping[str, Any], caller: wire.Caller) -> dict[str, Any]:
        """Run a tool; one that reads the notes and takes too long is run again for what their words find.

        What writes is not tried a second time.
        """
        reads_notes = name in (SEARCH, GET)
        # Numbers the messages of progress, which must rise over both tries.
        steps = itertools.count()
        seconds = _patience(caller.meta)
        run = functools.partial(self.host.answer, name, args)
        answer = self._within(seconds, run, caller, steps)
        if answer is None and reads_notes:
            answer = self._within(LAST_SECONDS, functools.partial(run, late=True), caller, steps)
        if answer is not None:
            # Only who asks for the profile is told it, so that answers to agents stay as OpenClaw's.
            meta = {"_meta": {PROFILE: self.host.profile()}} if caller.meta.get(PROFILE) else {}
            return {**_result(answer), **meta}
        if reads_notes:
            from memory_tui.mcp import tools

            error = IndexUnavailable(f"No answer within {seconds + LAST_SECONDS:g} seconds.", "Ask again in a moment.")
            return _result(tools.failed(name, args, error, timed_out=True))
        # It may have been written all the same: to look comes before another try.
        step = "Read the line before you correct it again." if name == CORRECT else "Recall before you store again."
        return _failed(f"No answer within {seconds:g} seconds. {step}")

    def call_private(self, name: str, params: Mapping[str, Any], caller: wire.Caller) -> dict[str, Any]:
        """Answer the plugin in OpenClaw's memory slot."""
        with self.limit:
            return self.host.private(name, params, caller)

    def _within(
        self, seconds: float, run: Callable[[wire.Caller], Answer], caller: wire.Caller, steps: Iterator[int]
    ) -> Answer | None:
        """Call `run` on a thread of its own, and return what it returns; after `seconds` stop it, and return None.

        Meanwhile a client that asked for progress is told what goes on, numbered by `steps`. Raises what `run` raises.
        """
        stop = Stop(caller.stop)
        end = time.monotonic() + seconds
        future = self.pool.submit(self._limited, run, replace(caller, stop=stop))
        while True:
            wait_seconds = max(0.0, end - time.monotonic())
            if caller.report is not None:
                caller.report(next(steps), self.host.news or "searching")
                wait_seconds = min(wait_seconds, _NEWS_SECONDS)
            if wait([future], wait_seconds).done:
                return future.result()
            if time.monotonic() >= end:
                stop.set()
                return None

    def _limited(self, run: Callable[[wire.Caller], Answer], caller: wire.Caller) -> Answer:
        """Call `run` once fewer than WORKERS questions run. Raises Cancelled for one that was stopped meanwhile."""
        with self.limit:
            caller.stop.check()
            return run(caller)


def _patience(meta: Mapping[str, Any]) -> float:
    """Return how many seconds a question may take: as the `meta` of its request says, PATIENCE_SECONDS at most."""
    seconds = meta.get(PATIENCE)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return PATIENCE_SECONDS
    return min(float(seconds), PATIENCE_SECONDS)


def _result(answer: Answer) -> dict[str, Any]:
    """Return an answer as the protocol wants it: as one text, and as data.

    An answer of the long-term memories brings a text of its own; of any other the text is the data as JSON.
    """
    if isinstance(answer, dict):
        text, data = json.dumps(answer, ensure_ascii=False), answer
    else:
        text, data = jsstring.well_formed(answer.text), dict(answer.details)
    is_error = data.get("status") == "error"
    return {"content": [{"type": "text", "text": text}], "structuredContent": data, "isError": is_error}


def _failed(message: str) -> dict[str, Any]:
    """Return an error that the agent can read."""
    return {"content": [{"type": "text", "text": jsstring.well_formed(message)}], "isError": True}


def serve(host: ServedMemory) -> None:
    """Serve until the input ends, nobody reads the output any more, or a signal says so."""

    def stop(number: int, _frame: object) -> None:
        """Leave at once: the thread that reads the input hangs in that read, and nothing can interrupt it."""
        host.close()
        report_signal(number)
        os._exit(exit_status(number))

    pipes, requests = wire.Pipes(), ThreadPoolExecutor(_THREADS, "mcp-request")
    connection = wire.Connection(Handlers(host).interface(), pipes.send, host.prepare, requests)
    with signals_heard(stop):
        try:
            pipes.start(connection.hear)
            pipes.ended.wait()
            # A client that sent all its questions and closed its end still reads the answers.
            while connection.running and not pipes.unread.wait(_LAST_LOOK_SECONDS):
                pass
        finally:
            host.close()
    pipes.close(_GOODBYE_SECONDS)
    _exit_despite_threads()


def _exit_despite_threads() -> None:
    """Give all threads a second to end, then leave the process if one still hangs: Python would wait for ever."""
    end = time.monotonic() + _GOODBYE_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        if not thread.daemon:
            thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        os._exit(0)


_FIRST_INDEX_SECONDS = 600.0
"""How long the memory that is opened ahead of a question waits for its first index."""


class ServerOptions(Struct, frozen=True):
    """What the command line asked of the server; None where it said nothing, so that the configuration decides."""

    citations: prompt.Mode | None = None
    session_key: str = ""
    max_injected_chars: int | None = None
    log: bool | None = None
    entries: bool = False
    """Whether the long-term memories in LanceDB are offered: where they are the agent's memory."""
    allow_write: bool = False
    """Whether the agent may correct lines of the notes, and store and forget long-term memories."""
    disabled: str = ""
    """Why the configuration gives the agent no memory search, as a sentence; empty where it does."""
    shared: bool = False
    """Whether a search may ask a shared index."""


class ServedMemory:
    """Answers the tools, from any thread. A memory that cannot be opened is tried again at the next question."""

    def __init__(self, open_memory: Callable[[], Engine], options: ServerOptions) -> None:
        self.news = ""
        """What is being done meanwhile, for somebody who waits."""
        self._open_memory = open_memory
        self.options = options
        # Reentrant, because a signal may call `close` on a thread that holds the lock already.
        self._lock = threading.RLock()
        self._memory: Engine | None = None
        self._closed = Stop()
        self._warming = self._asks = False
        """Whether the memory is, or was, opened ahead of a question; and whether anybody has asked one."""

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

    def prepare(self, method: str) -> None:
        """Open the memory for who asked `method`: at once where a question is near, else soon."""
        if method in ("tools/list", "tools/call"):
            self.warm()
        else:
            call_after(_OPENING_SECONDS, self.warm)

    def warm(self) -> None:
        """Open the memory in the background, so that the first question finds everything in place."""
        if not self._warming:
            self._warming = True
            threading.Thread(target=self._warm, name="memory-warm", daemon=True).start()

    def _warm(self) -> None:
        """Answer a question that nobody asked, so that the first real one waits for no import and no first index.

        Nothing where somebody asks already.
        """
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
        # Stops a memory that is still to be opened; one that is being opened holds the lock.
        self._closed.set()
        if self._lock.acquire(timeout=_GOODBYE_SECONDS):
            try:
                if self._memory is not None:
                    self._memory.close()
            finally:
                self._lock.release()

    def _follow(self, event: Event) -> None:
        """Keep in `news` what the engine does; other events leave it as it is."""
        from memory_tui.events import SyncFinished, SyncProgress, VectorsMade

        match event:
            case SyncProgress():
                self.news = f"indexing {event.done} of {event.total}: {one_line(event.path)}"
            case VectorsMade():
                self.news = f"embedding {event.done} of {event.total} chunks"
            case SyncFinished():
                self.news = ""

    def profile(self) -> str:
        """Return the profile that ranks the answers; empty while the memory cannot be opened."""
        return "" if self._memory is None else self._memory.plan.settings.word("profile")

    def answer(self, tool: str, args: Mapping[str, Any], caller: wire.Caller, *, late: bool = False) -> Answer:
        """Run a tool, logged where that is wanted; why it cannot answer is an answer. Raises QueryError, Cancelled."""
        from memory_tui.mcp import tools

        self._asks = True
        try:
            memory = self.memory()
            log = functools.partial(self._log, memory)
            return tools.answer(memory, tools.Call(tool, args, caller, self._rules(memory, caller), log, late))
        except (QueryError, Cancelled):
            raise
        except MemoryTuiError as error:
            return tools.failed(tool, args, error)

    def _rules(self, memory: Engine, caller: wire.Caller) -> AnswerRules:
        """Return how to answer: as the request says, else as the command line does, else as it is configured."""
        from memory_tui.mcp.tools import AnswerRules

        options = self.options
        citations = options.citations or prompt.mode_of(memory.plan.config.value("memory.citations"))
        session_key = caller.meta.get(SESSION_KEY)
        if not session_key or not isinstance(session_key, str):
            session_key = options.session_key
        max_chars = options.max_injected_chars
        if max_chars is None:
            max_chars = memory.plan.settings.whole("recall.maxInjectedChars")
        return AnswerRules(citations, session_key, max_chars)

    def private(self, method: str, args: Mapping[str, Any], caller: wire.Caller) -> dict[str, Any]:
        """Answer the plugin in OpenClaw's memory slot. Raises MemoryTuiError, Cancelled."""
        from memory_tui.mcp import tools

        self._asks = True
        return tools.plugin_answer(method, self.memory(), args, caller.stop)

    def _log(self, memory: Engine, entry: RecallEntry) -> None:
        """Log `entry` where that is wanted; a log that cannot be written is told on stderr, and costs no answer."""
        from memory_tui import recall_log

        is_wanted = self.options.log
        if is_wanted is None:
            is_wanted = memory.plan.settings.on("recall.log")
        if not is_wanted:
            return
        try:
            recall_log.append_recall(recall_log.recall_log_path(memory.plan.roots.workspace), entry)
        except (OSError, MemoryTuiError) as error:
            complain(error)


def complain(error: MemoryTuiError | OSError) -> None:
    """Say on stderr, which clients keep as the log of the server, what went wrong."""
    if isinstance(error, MemoryTuiError):
        sentence = f"{error} {error.next_step}"
    else:
        sentence = f"The recall log cannot be written: {error.strerror}: {error.filename}."
    sys.stderr.write(f"memory-tui: {one_line(sentence)}\n")
