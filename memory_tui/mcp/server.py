"""The MCP server speaks over stdio: tools, resources, the recall rule as a prompt.

Standard output carries the protocol and nothing else. A request that is wrong is answered, and the server lives on; it
ends when its input ends, and takes its threads with it. What the first answer does not need is imported after it.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from memory_tui import __version__
from memory_tui.core import jsstring, stop_signals
from memory_tui.core.errors import IndexUnavailable, MemoryTuiError
from memory_tui.index.connections import Cancel
from memory_tui.mcp.wire import Answered, Answers
from memory_tui.openclaw.prompt import GET, SEARCH

if TYPE_CHECKING:
    from memory_tui.mcp.host import Host
    from memory_tui.mcp.resources import File
    from memory_tui.mcp.types import GetAnswer, SearchAnswer

Outcome = TypeVar("Outcome")

SESSION_KEY = "memory-tui/sessionKey"
"""Member of a request's `_meta` that says in which session it is asked."""
PATIENCE_SECONDS = 25.0
"""How long a question may take; after that there is only what its words find."""
LAST_SECONDS = 5.0
WORKERS = 4
"""Questions that are answered at the same time; more wait. A search keeps a processor busy."""
_NEWS_SECONDS = 0.5
_GOODBYE_SECONDS = 1.0
RECALL = "recall"


@cache
def tools() -> tuple[types.Tool, ...]:
    """Both tools, with the schemas of what they take and give."""
    from memory_tui.mcp.types import Get, GetAnswer, Search, SearchAnswer, schema

    reading = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    return (
        types.Tool(
            name=SEARCH,
            title="Search the memory",
            description="Recall, before you answer anything about earlier work, decisions, dates, people, preferences "
            "or todos: searches MEMORY.md and memory/*.md (and transcripts of sessions where they are "
            "configured) by meaning and by words, and gives the best pieces with path and lines. With "
            "disabled=true the memory could not be searched: tell the user.",
            input_schema=schema(Search),
            output_schema=schema(SearchAnswer),
            annotations=reading,
        ),
        types.Tool(
            name=GET,
            title="Read from the memory",
            description="Read lines of a note that memory_search named, MEMORY.md or memory/*.md: at most 120 lines "
            "and 12,000 characters at once, with where to go on. A note that does not exist is empty "
            "text.",
            input_schema=schema(Get),
            output_schema=schema(GetAnswer),
            annotations=reading,
        ),
    )


@dataclass(frozen=True, slots=True)
class Handlers:
    """What is done for each request; `ctx` is the SDK's context of it."""

    host: Host
    limiter: anyio.CapacityLimiter

    async def list_tools(self, ctx: Any, params: object) -> types.ListToolsResult:  # noqa: ANN401
        """Both tools."""
        del ctx
        _only_page(params)
        return types.ListToolsResult(tools=list(tools()))

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: ANN401
        """Run a tool; what is wrong with its arguments is told as an error the agent can read."""
        given, key, client = params.arguments or {}, _session_key(ctx), _client(ctx)
        runs: dict[str, Callable[[Cancel, bool], SearchAnswer | GetAnswer]] = {
            SEARCH: lambda cancel, late: self.host.search(given, key, client, cancel, late),
            GET: lambda *_: self.host.get(given, client),
        }
        run = runs.get(params.name)
        if run is None:
            raise MCPError(
                types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}", {"tools": [tool.name for tool in tools()]}
            )
        try:
            async with _reporting(ctx, self.host):
                with anyio.move_on_after(PATIENCE_SECONDS):
                    return _result(await self._in_thread(lambda cancel: run(cancel, False)))
                with anyio.move_on_after(LAST_SECONDS):
                    return _result(await self._in_thread(lambda cancel: run(cancel, True)))
            return _result(_late(params.name, str(given.get("path", ""))))
        except MemoryTuiError as error:
            return _failed(f"{error.message} {error.next_step}".rstrip())
        except Exception as error:  # noqa: BLE001 - a fault of ours must not take the connection with it
            traceback.print_exc(file=sys.stderr)
            return _failed(f"memory-tui failed inside: {type(error).__name__}.")

    async def list_resources(
        self,
        ctx: Any,  # noqa: ANN401
        params: types.PaginatedRequestParams | None,
    ) -> types.ListResourcesResult:
        """The notes, a page at a time."""
        del ctx
        from memory_tui.mcp import resources

        cursor = params.cursor if params is not None else None
        found, following = await self._in_thread(lambda _: resources.page(self.host.memory(), cursor))
        return types.ListResourcesResult(resources=[_resource(file) for file in found], next_cursor=following)

    async def list_templates(self, ctx: Any, params: object) -> types.ListResourceTemplatesResult:  # noqa: ANN401
        """How the URI of a note is made."""
        del ctx
        _only_page(params)
        from memory_tui.mcp import resources

        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    name="note",
                    uri_template=resources.TEMPLATE,
                    description="A note by its path.",
                    mime_type="text/markdown",
                )
            ]
        )

    async def read_resource(
        self,
        ctx: Any,  # noqa: ANN401
        params: types.ReadResourceRequestParams,
    ) -> types.ReadResourceResult:
        """The text of a note."""
        del ctx
        from memory_tui.mcp import resources
        from memory_tui.mcp.types import UNTRUSTED

        address = str(params.uri)
        text = await self._in_thread(lambda _: resources.text(self.host.memory(), address))
        return types.ReadResourceResult(
            contents=[
                types.TextResourceContents(
                    uri=address, mime_type="text/markdown", text=text, _meta={"memory-tui/untrusted": UNTRUSTED}
                )
            ]
        )

    async def list_prompts(self, ctx: Any, params: object) -> types.ListPromptsResult:  # noqa: ANN401
        """The rule of recall."""
        del ctx
        _only_page(params)
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=RECALL,
                    title="Recall",
                    description="When to search the memory, and how to cite it.",
                    arguments=[types.PromptArgument(name="question", description="What to answer from memory.")],
                )
            ]
        )

    async def get_prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:  # noqa: ANN401
        """The rule of recall, with a question where one is given."""
        del ctx
        if params.name != RECALL:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}", {"prompts": [RECALL]})
        rule = self.host.rule(await self._in_thread(lambda _: self.host.citations()))
        question = (params.arguments or {}).get("question", "").strip()
        return types.GetPromptResult(
            description="When to search the memory, and how to cite it.",
            messages=[
                types.PromptMessage(
                    role="user",
                    content=types.TextContent(text=jsstring.well_formed(f"{rule}\n\n{question}" if question else rule)),
                )
            ],
        )

    async def _in_thread(self, run: Callable[[Cancel], Outcome]) -> Outcome:
        """What `run` returns, on a thread of its own; it is told to stop when nobody waits any more."""
        cancel = Cancel()
        try:
            return await anyio.to_thread.run_sync(run, cancel, abandon_on_cancel=True, limiter=self.limiter)
        except anyio.get_cancelled_exc_class():
            cancel.cancel()
            raise


def _only_page(params: object) -> None:
    """Raise where `params` ask for a page after the only one."""
    if getattr(params, "cursor", None) is not None:
        raise MCPError(types.INVALID_PARAMS, "This is no cursor of this list. It has one page: leave cursor out.")


def _resource(file: File) -> types.Resource:
    changed = dt.datetime.fromtimestamp(file.mtime, dt.UTC).isoformat()
    return types.Resource(
        name=file.path,
        uri=file.uri,
        size=file.size,
        mime_type="text/markdown",
        annotations=types.Annotations(last_modified=changed),
    )


def _result(answer: SearchAnswer | GetAnswer) -> types.CallToolResult:
    """An answer as OpenClaw gives it, one text of JSON, and the same as data."""
    return types.CallToolResult(
        content=[types.TextContent(text=json.dumps(answer, ensure_ascii=False, indent=2))],
        structured_content=answer,
        is_error=answer.get("status") == "error",
    )


def _late(tool: str, path: str) -> SearchAnswer | GetAnswer:
    """What is said when not even words were looked for in time."""
    from memory_tui.mcp.tools import refused, unavailable

    late = IndexUnavailable(f"No answer within {PATIENCE_SECONDS + LAST_SECONDS:g} seconds.", "Ask again in a moment.")
    return unavailable(late, timed_out=True) if tool == SEARCH else refused(path, late)


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=jsstring.well_formed(message))], is_error=True)


def _session_key(ctx: Any) -> str:  # noqa: ANN401
    value = (ctx.meta or {}).get(SESSION_KEY, "")
    return value if isinstance(value, str) else ""


def _client(ctx: Any) -> str:  # noqa: ANN401
    """Name and version of the program that asks."""
    told = ctx.session.client_params
    return f"{told.client_info.name} {told.client_info.version}"[:100] if told is not None else ""


@asynccontextmanager
async def _reporting(ctx: Any, host: Host) -> AsyncIterator[None]:  # noqa: ANN401
    """While inside, tell a client that asked for progress what is going on."""
    if not ctx.meta:
        yield
        return
    async with anyio.create_task_group() as group:
        group.start_soon(_report, ctx, host)
        yield
        group.cancel_scope.cancel()


async def _report(ctx: Any, host: Host) -> None:  # noqa: ANN401
    steps = 0
    while True:
        await ctx.session.report_progress(steps, None, host.news or "searching")
        steps += 1
        await anyio.sleep(_NEWS_SECONDS)


def server(host: Host, limiter: anyio.CapacityLimiter) -> Server[Any]:
    """The server of one connection."""
    do = Handlers(host, limiter)
    made: Server[Any] = Server(
        "memory-tui",
        version=__version__,
        title="memory-tui",
        instructions=host.rule("auto"),
        on_list_tools=do.list_tools,
        on_call_tool=do.call_tool,
        on_list_resources=do.list_resources,
        on_list_resource_templates=do.list_templates,
        on_read_resource=do.read_resource,
        on_list_prompts=do.list_prompts,
        on_get_prompt=do.get_prompt,
    )

    async def warming(ctx: Any, call_next: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """Open the memory as soon as the first request was answered: the client waits for that one most."""
        try:
            return await _explained(call_next, ctx)
        finally:
            host.warm()

    made.middleware[:] = [warming]
    return made


async def _explained(call_next: Callable[[Any], Any], ctx: Any) -> Any:  # noqa: ANN401
    """Errors of ours as errors of the protocol, with their sentence."""
    try:
        return await call_next(ctx)
    except MemoryTuiError as error:
        raise MCPError(
            types.INVALID_PARAMS if error.exit_status == 2 else types.INTERNAL_ERROR,
            f"{error.message} {error.next_step}".rstrip(),
            error.as_dict(),
        ) from None


async def _serve(host: Host) -> None:
    made = server(host, anyio.CapacityLimiter(WORKERS))
    async with stdio_server() as (reading, writing):
        answers = Answers(writing)
        await made.run(Answered(reading, answers), answers, made.create_initialization_options())


def serve(host: Host) -> None:
    """Serve until the input ends, nobody reads the output any more, or a signal says so."""

    def stop(number: int, frame: object) -> None:
        """Leave at once: the thread that reads the input cannot be called back from it."""
        del frame
        host.close()
        stop_signals.report(number)
        os._exit(stop_signals.exit_status(number))

    with stop_signals.heard(stop):
        try:
            anyio.run(_serve, host)
        except* (BrokenPipeError, anyio.BrokenResourceError):
            # The client is gone, and with it everybody who could be told.
            host.news = ""
        finally:
            host.close()
    _part()


def _part() -> None:
    """Do not wait for a thread that hangs in the disk or the network, as Python would for ever."""
    end = time.monotonic() + _GOODBYE_SECONDS
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        os._exit(0)
