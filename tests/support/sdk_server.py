"""A server that the official SDK makes of this server's answers: what the SDK does with a request is the reference."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TextIO

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.mcp.server import PRIVATE, Handlers, ServedMemory, ServerOptions
from memory_tui.mcp.wire import INTERNAL_ERROR, INVALID_PARAMS, Caller, Method, Refusal
from memory_tui.plan import Options
from tests.support.mcp import Pipes
from tests.support.waiting import LONG

PARAMS: dict[str, Any] = {"tools/list": types.PaginatedRequestParams, "tools/call": types.CallToolRequestParams}


def answering(method: Method) -> Any:
    """A handler of the SDK that gives what `method` gives."""

    async def handle(ctx: Any, params: Any) -> Mapping[str, Any]:
        try:
            plain = params.model_dump(by_alias=True, exclude_none=True, mode="json")
            found = await anyio.to_thread.run_sync(method, plain, Caller("", ctx.meta or {}, Stop()))
            return {**found, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
        except Refusal as refusal:
            raise MCPError(refusal.code, refusal.message, refusal.data) from None
        except MemoryTuiError as error:
            raise MCPError(INVALID_PARAMS if error.exit_status == 2 else INTERNAL_ERROR, error.message) from None

    return handle


class SdkServer(Pipes):
    """The SDK's server on a thread, so that its import is paid for once, with a pipe each way."""

    def __init__(self, workspace: str, index: str) -> None:
        theirs, ours = os.pipe(), os.pipe()
        super().__init__(os.fdopen(theirs[1], "wb"), os.fdopen(ours[0], "rb"))
        ends = (os.fdopen(theirs[0], encoding="utf-8", errors="replace"), os.fdopen(ours[1], "w", encoding="utf-8"))
        self.pool = ThreadPoolExecutor(1)
        self.running = self.pool.submit(anyio.run, serve, workspace, index, *ends)

    def end(self) -> None:
        """Let it end with its input, in good order."""
        self.writing.close()
        self.running.result(LONG)
        self.pool.shutdown()
        assert self.reading.read() == b""
        self.reading.close()


async def serve(workspace: str, index: str, asked: TextIO, answers: TextIO) -> None:
    options = Options(workspace=workspace, index=index, provider="scripted")
    host = ServedMemory(lambda: Engine.open(options), ServerOptions())
    interface = Handlers(host).interface()
    more = {key: interface.info[key] for key in ("version", "title")}
    made: Server[Any] = Server(interface.info["name"], **more, instructions=interface.instructions)
    for name, method in interface.methods.items():
        # The private ones are no part of the protocol.
        if name not in PRIVATE:
            made.add_request_handler(name, PARAMS[name], answering(method))
    with asked, answers:
        async with stdio_server(anyio.wrap_file(asked), anyio.wrap_file(answers)) as (reading, writing):
            await made.run(reading, writing, made.create_initialization_options())
    host.close()
