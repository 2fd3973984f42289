"""A server that the official SDK makes of this server's answers: what the SDK does with a request is the reference."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from memory_tui.core.errors import MemoryTuiError
from memory_tui.engine.engine import Engine
from memory_tui.mcp.dispatch import Caller, Method, Refusal
from memory_tui.mcp.host import ServedMemory, ServerOptions
from memory_tui.mcp.server import PRIVATE, Handlers
from memory_tui.mcp.wire import INTERNAL_ERROR, INVALID_PARAMS
from memory_tui.plan import Options

PARAMS: dict[str, Any] = {
    "tools/list": types.PaginatedRequestParams,
    "tools/call": types.CallToolRequestParams,
    "prompts/list": types.PaginatedRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "resources/list": types.PaginatedRequestParams,
    "resources/templates/list": types.PaginatedRequestParams,
    "resources/read": types.ReadResourceRequestParams,
}


def answering(method: Method) -> Any:
    """A handler of the SDK that gives what `method` gives."""

    async def handle(ctx: Any, params: Any) -> Mapping[str, Any]:
        try:
            plain = params.model_dump(by_alias=True, exclude_none=True, mode="json")
            found = await method.run(plain, Caller("", ctx.meta or {}))
            return {**found, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
        except Refusal as refusal:
            raise MCPError(refusal.code, refusal.message, refusal.data) from None
        except MemoryTuiError as error:
            raise MCPError(INVALID_PARAMS if error.exit_status == 2 else INTERNAL_ERROR, error.message) from None

    return handle


async def main() -> None:
    workspace, index = sys.argv[1:3]
    host = ServedMemory(
        lambda: Engine.open(Options(workspace=workspace, index=index, provider="scripted")), ServerOptions()
    )
    interface = Handlers(host).interface()
    made: Server[Any] = Server(
        interface.info["name"],
        version=interface.info["version"],
        title=interface.info["title"],
        instructions=interface.instructions,
    )
    for name, method in interface.methods.items():
        # The private ones are no part of the protocol.
        if name not in PRIVATE:
            made.add_request_handler(name, PARAMS[name], answering(method))
    async with stdio_server() as (reading, writing):
        await made.run(reading, writing, made.create_initialization_options())
    host.close()


if __name__ == "__main__":
    anyio.run(main)
