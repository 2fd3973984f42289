"""The MCP server of a memory. It has tools, notes as resources, and the recall rule as a prompt.

Standard output carries the protocol and nothing else. A request that is wrong is answered, and the server lives on; it
ends when its input ends, and takes its threads with it. The handshake and the lists are answered before anything is
imported that opens the memory; that begins when the tools were listed, or soon after the first request.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from memory_tui import __version__, jsstring
from memory_tui.cancel import Stop, call_after, exit_status, report_signal, signals_heard
from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError
from memory_tui.hosts.wiring import PROFILE
from memory_tui.mcp import wire
from memory_tui.mcp.schemas import CORRECT, UNTRUSTED, recorded
from memory_tui.mcp.wire import INVALID_PARAMS, Caller, Connection, Method, Pipes, Refusal, ServerInterface
from memory_tui.openclaw.prompt import GET, SEARCH

if TYPE_CHECKING:
    from memory_tui.mcp.host import ServedMemory
    from memory_tui.mcp.tools import File

Outcome = TypeVar("Outcome")

SESSION_KEY = "memory-tui/sessionKey"
"""Member of a request's `_meta` that says in which session it is asked."""
PATIENCE = "memory-tui/patienceSeconds"
"""Member of a request's `_meta` by which a host that waits less long says so."""
PRIVATE = ("memory-tui/search", "memory-tui/entries", "memory-tui/status")
"""Methods beside the protocol, for the plugin in OpenClaw's memory slot."""
PATIENCE_SECONDS = 25.0
"""How long a question may take; after that there is only what its words find."""
LAST_SECONDS = 5.0
WORKERS = 4
"""Questions that are answered at the same time; more wait. A search keeps a processor busy."""
_THREADS = 64
"""Threads for questions: one that hangs keeps its own."""
_NEWS_SECONDS = 0.5
_GOODBYE_SECONDS = 1.0
_LAST_LOOK_SECONDS = 0.02
"""How often it is looked whether the last answers are out, once the input has ended."""
_OPENING_SECONDS = 1.0
"""How long after its first request a client may take to list the tools, before the memory is opened for it."""
RECALL = "recall"
_RULE = "When to search the memory, and how to cite it."
_ALWAYS = {"anthropic/alwaysLoad": True}
"""Claude Code puts the tool before the model from the start, so that no search for tools comes before a recall."""


def tools() -> list[dict[str, Any]]:
    """Both tools, with the schemas of what they take and give."""
    schemas = recorded()
    reading = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    return [
        {
            "name": SEARCH,
            "title": "Search the memory",
            "description": "Recall, before you answer anything about earlier work, decisions, dates, people, "
            "preferences or todos: searches MEMORY.md and memory/*.md (and transcripts of sessions where they are "
            "configured) by meaning and by words, and gives the best pieces with path and lines. With disabled=true "
            "the memory could not be searched: tell the user.",
            "inputSchema": schemas["SearchArguments"],
            "outputSchema": schemas["SearchAnswer"],
            "annotations": reading,
            "_meta": _ALWAYS,
        },
        {
            "name": GET,
            "title": "Read from the memory",
            "description": "Read lines of a note that memory_search named, MEMORY.md or memory/*.md: at most 120 lines "
            "and 12,000 characters at once, with where to go on. A note that does not exist is empty text.",
            "inputSchema": schemas["GetArguments"],
            "outputSchema": schemas["GetAnswer"],
            "annotations": reading,
            "_meta": _ALWAYS,
        },
    ]


def correcting() -> dict[str, Any]:
    """The tool that writes a correction."""
    schemas = recorded()
    return {
        "name": CORRECT,
        "title": "Correct the memory",
        "description": "Write down that a line of the notes holds no more: a dated line with what holds now, which "
        "names the older one; that one stays, marked as superseded. Read the line first. The user can undo it.",
        "inputSchema": schemas["CorrectArguments"],
        "outputSchema": schemas["CorrectAnswer"],
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
        "_meta": _ALWAYS,
    }


ENTRY_TOOLS = ("memory_recall", "memory_store", "memory_forget")
"""The tools of OpenClaw's LanceDB plug-in; all but the first write."""


def entry_tools(*, write: bool) -> list[dict[str, Any]]:
    """The tools of the long-term memories in LanceDB; those that write only with `write`."""
    schemas = recorded()
    described = (
        ("Recall", "Search long-term memories by meaning: preferences, facts, decisions, people.", "RecallArguments"),
        ("Store", "Save what should be remembered for long. A text that repeats one is not stored.", "StoreArguments"),
        ("Forget", "Delete one long-term memory, by its id or by what it says.", "ForgetArguments"),
    )
    return [
        {
            "name": name,
            "title": f"{title} long-term memories",
            "description": text,
            "inputSchema": schemas[kind],
            "annotations": {
                "readOnlyHint": name == ENTRY_TOOLS[0],
                "destructiveHint": name == ENTRY_TOOLS[2],
                "openWorldHint": False,
            },
            "_meta": _ALWAYS,
        }
        for name, (title, text, kind) in zip(ENTRY_TOOLS, described, strict=True)
        if write or name == ENTRY_TOOLS[0]
    ]


class Handlers(Struct):
    """What is done for each request."""

    host: ServedMemory
    limit: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(WORKERS))
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "mcp-question"))

    def interface(self) -> ServerInterface:
        """What this server can be asked."""
        methods = {"tools/list": Method(self.list_tools, cached=True), "tools/call": Method(self.call_tool)}
        if self.host.options.prompts:
            methods["prompts/list"] = Method(self.list_prompts, cached=True)
            methods["prompts/get"] = Method(self.get_prompt)
        if self.host.options.resources:
            methods["resources/list"] = Method(self.list_resources, cached=True)
            methods["resources/templates/list"] = Method(self.list_templates, cached=True)
            methods["resources/read"] = Method(self.read_resource, cached=True)
        for name in PRIVATE:
            methods[name] = Method(functools.partial(self.call_private, name))
        info = {"name": "memory-tui", "title": "memory-tui", "version": __version__}
        return ServerInterface(info, self.host.rule("auto"), methods)

    def list_tools(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """The tools that are offered."""
        del caller
        wire.only_page(params)
        return {"tools": [*tools(), *([correcting()] if self.host.options.allow_write else ()), *self._entry_tools()]}

    def _entry_tools(self) -> list[dict[str, Any]]:
        options = self.host.options
        return entry_tools(write=options.allow_write) if options.entries else []

    def call_tool(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Run a tool; what is wrong with its arguments is told as an error the agent can read."""
        name, args = wire.text(params, "name"), wire.members(params, "arguments")
        try:
            if name in (tool["name"] for tool in self._entry_tools()):
                return self._entries(name, args, caller)
            if name == CORRECT and self.host.options.allow_write:
                return self._correct(args, caller)
            session = caller.meta.get(SESSION_KEY, "")
            return self._notes(name, args, session if isinstance(session, str) else "", caller)
        except (Refusal, Cancelled):
            raise
        except MemoryTuiError as error:
            return _failed(f"{error.message} {error.next_step}".rstrip())
        except Exception as error:  # noqa: BLE001 - a fault of ours must not take the connection with it
            wire.report_fault()
            return _failed(f"memory-tui failed inside: {type(error).__name__}.")

    def _notes(self, name: str, args: Mapping[str, Any], session: str, caller: Caller) -> dict[str, Any]:
        """Search or read the notes; what takes too long is asked once more for what its words find."""
        runs: dict[str, Callable[[bool, Stop], dict[str, Any]]] = {
            SEARCH: lambda late, stop: self.host.search(args, session, caller.client, stop, late),
            GET: lambda *_: self.host.get(args, caller.client),
        }
        run = runs.get(name)
        if run is None:
            raise Refusal(INVALID_PARAMS, f"Unknown tool: {name[:100]}", {"tools": list(runs)})
        steps = itertools.count()
        for late, seconds in ((False, _patience(caller.meta)), (True, LAST_SECONDS)):
            answer = self._within(seconds, functools.partial(run, late), caller, steps)
            if answer is not None:
                meta = {"_meta": {PROFILE: self.host.profile()}} if caller.meta.get(PROFILE) else {}
                return {**_result(answer), **meta}
        return _result(_timed_out(name, str(args.get("path", ""))))

    def _correct(self, args: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Write a correction, once: what writes is not tried a second time."""
        answer = self._within(PATIENCE_SECONDS, lambda _: self.host.correct(args), caller)
        late = f"No answer within {PATIENCE_SECONDS:g} seconds. Read the line before you correct it again."
        return _failed(late) if answer is None else _result(answer)

    def _entries(self, name: str, args: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Run a tool of the long-term memories, once: what writes is not tried a second time."""
        answer = self._within(PATIENCE_SECONDS, lambda _: self.host.entries(name, args, caller.client), caller)
        if answer is None:
            return _failed(f"No answer within {PATIENCE_SECONDS:g} seconds. Recall before you store again.")
        content = [{"type": "text", "text": jsstring.well_formed(answer.text)}]
        return {"content": content, "structuredContent": dict(answer.details), "isError": False}

    def call_private(self, name: str, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Answer the plugin in OpenClaw's memory slot."""
        with self.limit:
            return self.host.private(name, params, caller.stop)

    def list_resources(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """The notes, a page at a time."""
        del caller
        cursor = wire.optional_text(params, "cursor")
        from memory_tui.mcp import tools

        files, following = tools.page(self.host.plan().roots, cursor)
        after = {} if following is None else {"nextCursor": following}
        return {"resources": [_resource(file) for file in files], **after}

    def list_templates(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """How the URI of a note is made."""
        del caller
        wire.only_page(params)
        template = {
            "name": "note",
            "uriTemplate": "memory:{+path}",
            "description": "A note by its path.",
            "mimeType": "text/markdown",
        }
        return {"resourceTemplates": [template]}

    def read_resource(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """The text of a note."""
        del caller
        address = wire.text(params, "uri")
        from memory_tui.mcp import tools

        text = tools.resource_text(self.host.plan().roots, address)
        # First in the object too, for a host that hands on all of it as it stands.
        meta = {"memory-tui/untrusted": UNTRUSTED}
        return {"contents": [{"_meta": meta, "uri": address, "mimeType": "text/markdown", "text": text}]}

    def list_prompts(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """The rule of recall."""
        del caller
        wire.only_page(params)
        question = {"name": "question", "description": "What to answer from memory."}
        return {"prompts": [{"name": RECALL, "title": "Recall", "description": _RULE, "arguments": [question]}]}

    def get_prompt(self, params: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """The rule of recall, with a question where one is given."""
        del caller
        name, args = wire.text(params, "name"), wire.members(params, "arguments")
        if name != RECALL:
            raise Refusal(INVALID_PARAMS, f"Unknown prompt: {name[:100]}", {"prompts": [RECALL]})
        question = (wire.optional_text(args, "question") or "").strip()
        rule = self.host.rule(self.host.citations())
        text = jsstring.well_formed(f"{rule}\n\n{question}" if question else rule)
        return {"description": _RULE, "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    def _within(
        self, seconds: float, run: Callable[[Stop], Outcome], caller: Caller, steps: Iterator[int] | None = None
    ) -> Outcome | None:
        """Return what `run` returns on a thread of its own; None, and `run` is stopped, after `seconds`.

        Meanwhile a client that asked for progress is told what goes on, numbered by `steps`. Raises what `run` raises.
        """
        stop, end = Stop(caller.stop), time.monotonic() + seconds
        future = self.pool.submit(self._limited, run, stop)
        while True:
            left = end - time.monotonic()
            if caller.report is not None and steps is not None:
                caller.report(next(steps), self.host.news or "searching")
                left = min(left, _NEWS_SECONDS)
            if wait([future], max(0.0, left)).done:
                return future.result()
            if time.monotonic() >= end:
                stop.set()
                return None

    def _limited(self, run: Callable[[Stop], Outcome], stop: Stop) -> Outcome:
        with self.limit:
            stop.check()
            return run(stop)


def _patience(meta: Mapping[str, Any]) -> float:
    """How long this question may take: as the host says, at most as long as any."""
    seconds = meta.get(PATIENCE)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return PATIENCE_SECONDS
    return min(float(seconds), PATIENCE_SECONDS)


def _resource(file: File) -> dict[str, Any]:
    changed = dt.datetime.fromtimestamp(file.mtime, dt.UTC).isoformat()
    return {
        "name": file.path,
        "uri": file.uri,
        "size": file.size,
        "mimeType": "text/markdown",
        "annotations": {"lastModified": changed},
    }


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as one text of JSON, and the same as data, as the protocol wants it."""
    return {
        "content": [{"type": "text", "text": json.dumps(answer, ensure_ascii=False)}],
        "structuredContent": answer,
        "isError": answer.get("status") == "error",
    }


def _timed_out(tool: str, path: str) -> dict[str, Any]:
    """What is said when not even words were looked for in time."""
    from memory_tui.mcp.tools import refused, unavailable

    late = IndexUnavailable(f"No answer within {PATIENCE_SECONDS + LAST_SECONDS:g} seconds.", "Ask again in a moment.")
    return unavailable(late, timed_out=True) if tool == SEARCH else refused(path, late)


def _failed(message: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": jsstring.well_formed(message)}], "isError": True}


def _serve(host: ServedMemory, pipes: Pipes) -> None:
    ended, unread = threading.Event(), threading.Event()

    def answered(method: str) -> None:
        if method in ("tools/list", "tools/call"):
            host.warm()
        else:
            call_after(_OPENING_SECONDS, host.warm)

    def unreadable() -> None:
        unread.set()
        ended.set()

    requests = ThreadPoolExecutor(_THREADS, "mcp-request")
    connection = Connection(Handlers(host).interface(), pipes.send, answered, requests)
    pipes.start(connection.hear, ended.set, unreadable)
    ended.wait()
    # A client that sent all its questions and closed its end still reads the answers.
    while connection.running and not unread.wait(_LAST_LOOK_SECONDS):
        pass


def serve(host: ServedMemory) -> None:
    """Serve until the input ends, nobody reads the output any more, or a signal says so."""

    def stop(number: int, frame: object) -> None:
        """Leave at once: the thread that reads the input cannot be called back from it."""
        del frame
        host.close()
        report_signal(number)
        os._exit(exit_status(number))

    pipes = Pipes()
    with signals_heard(stop):
        try:
            _serve(host, pipes)
        finally:
            host.close()
    pipes.close(_GOODBYE_SECONDS)
    _exit_despite_threads()


def _exit_despite_threads() -> None:
    """Do not wait for a thread that hangs in the disk, the network or a pipe, as Python would for ever."""
    end = time.monotonic() + _GOODBYE_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        if not thread.daemon:
            thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        os._exit(0)
