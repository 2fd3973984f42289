"""Lines that are no message: answered with JSON-RPC's errors for them, where the SDK drops them in silence."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

Incoming = SessionMessage | Exception


class Answered:
    """A stream of incoming messages in which none is an error; errors are answered on `writing`."""

    def __init__(self, reading: ReadStream[Incoming], writing: WriteStream[SessionMessage]) -> None:
        self._reading = reading
        self._writing = writing

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - contextvars.Context, or None
        """The context of whoever sent the last message."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> Incoming:
        """The next message."""
        while True:
            item = await self._reading.receive()
            if not isinstance(item, Exception):
                return item
            await self._writing.send(SessionMessage(refusal(item)))

    async def __anext__(self) -> Incoming:
        while True:
            item = await self._reading.__anext__()
            if not isinstance(item, Exception):
                return item
            await self._writing.send(SessionMessage(refusal(item)))

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._reading.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def refusal(error: Exception) -> JSONRPCError:
    """The answer to a line that is not JSON, or JSON that is not a message; with its id where it has one."""
    told = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    if not told or told[0]["type"] == "json_invalid":
        return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message="Parse error: not JSON"))
    inputs = [one.get("input") for one in told]
    asked = next((value["id"] for value in inputs if isinstance(value, dict) and _is_id(value.get("id"))), None)
    return JSONRPCError(
        jsonrpc="2.0",
        id=asked,
        error=ErrorData(code=INVALID_REQUEST, message="Invalid request: JSON, but not a JSON-RPC 2.0 message"),
    )


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
