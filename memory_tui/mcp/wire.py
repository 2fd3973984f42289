"""Lines that are no MCP message get the JSON-RPC error that the SDK leaves out.

JavaScript writes half of a character as `"\\ud83d"`, which is JSON, but no text that the SDK's parser accepts: such a
half becomes U+FFFD, and the request is answered like any other. A blank line is nothing. A batch, which revision
2025-03-26 of the protocol knows, is taken apart there and its answers go out together; a client of any other revision
gets an error for each request of it. Whatever else it is, its sender learns it under the id it used, if it has one.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from memory_tui.core import jsstring

Incoming = SessionMessage | Exception

BATCHES_SINCE = "2025-03-26"
"""The only revision of the protocol in which an array of messages is a message."""
_NOTIFICATIONS = "notifications/"
_NO_ID = "Invalid request: a request needs an id, which is text or a whole number"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_SHORTEST_ID = re.compile(r'\s*:\s*(-?\d{1,300}(?![\d.eE])|"(?:[^"\\]|\\.){0,300}")')


class Answered:
    """A stream of incoming messages in which none is an error; errors are answered on `writing`."""

    def __init__(self, reading: ReadStream[Incoming], writing: Answers) -> None:
        self._reading = reading
        self._writing = writing
        self._waiting: deque[SessionMessage] = deque()
        self._batches = False

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - contextvars.Context, or None
        """The context of whoever sent the last message."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> Incoming:
        """The next message."""
        while True:
            if self._waiting:
                return self._waiting.popleft()
            if (item := await self._taken(await self._reading.receive())) is not None:
                return item

    async def __anext__(self) -> Incoming:
        while True:
            if self._waiting:
                return self._waiting.popleft()
            if (item := await self._taken(await self._reading.__anext__())) is not None:
                return item

    async def _taken(self, item: Incoming) -> SessionMessage | None:
        """`item` if it is a message, or the one that it was meant to be; None once it was answered or put aside."""
        if isinstance(item, Exception):
            found = meant(item)
            if isinstance(found, list):
                await self._batch(found)
                return None
            if isinstance(found, JSONRPCError):
                await self._writing.send(SessionMessage(found))
                return None
            if found is None:
                return None
            item = found
        method = getattr(item.message, "method", None)
        if method is not None and not hasattr(item.message, "id") and not method.startswith(_NOTIFICATIONS):
            # The SDK takes a request for one of these when its id is of no kind that the protocol knows.
            await self._writing.send(SessionMessage(_error(INVALID_REQUEST, _NO_ID)))
            return None
        if method == "initialize":
            params = getattr(item.message, "params", None) or {}
            self._batches = params.get("protocolVersion") == BATCHES_SINCE
        elif method == "notifications/cancelled":
            await self._writing.forget((getattr(item.message, "params", None) or {}).get("requestId"))
        return item

    async def _batch(self, members: list[object]) -> None:
        """Take a batch apart, or refuse each request of it."""
        made = [_message(member) for member in members]
        if not self._batches:
            why = f"Invalid request: only revision {BATCHES_SINCE} knows batches. Send one message a line."
            ids = [one.id if isinstance(one, JSONRPCError) else _id_of(one) for one in made]
            known: list[str | int | None] = [one for one in ids if one is not None]
            for asked in known or [None]:
                await self._writing.send(SessionMessage(_error(INVALID_REQUEST, why, asked)))
            return
        batch = Batch({asked for one in made if isinstance(one, SessionMessage) and (asked := _id_of(one)) is not None})
        batch.answers += [one for one in made if isinstance(one, JSONRPCError)]
        self._waiting.extend(one for one in made if isinstance(one, SessionMessage))
        await self._writing.expect(batch)

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


@dataclass(slots=True)
class Batch:
    """The answers to one batch: the ids it `waits` for, and those that are there; it goes out as one array."""

    waits: set[str | int]
    answers: list[Any] = field(default_factory=list)

    def model_dump_json(self, **how: Any) -> str:  # noqa: ANN401 - as a message of the SDK
        """The array, written as the SDK writes a message."""
        return f"[{','.join(one.model_dump_json(**how) for one in self.answers)}]"


class Answers:
    """A stream of outgoing messages that holds the answers to a batch back until all of them are there."""

    def __init__(self, writing: WriteStream[SessionMessage]) -> None:
        self._writing = writing
        self._batches: list[Batch] = []

    async def expect(self, batch: Batch) -> None:
        """Collect the answers to `batch`; one that waits for nothing goes out at once, if it has anything to say."""
        if batch.waits:
            self._batches.append(batch)
        elif batch.answers:
            await self._writing.send(SessionMessage(batch))  # type: ignore[arg-type]

    async def forget(self, asked: object) -> None:
        """Wait no longer for the answer to `asked`: a request that is cancelled may get none."""
        for batch in [each for each in self._batches if isinstance(asked, str | int) and asked in each.waits]:
            batch.waits.discard(asked)
            if not batch.waits:
                self._batches.remove(batch)
                await self.expect(batch)

    async def send(self, item: SessionMessage) -> None:
        """Send `item`, or put it to the batch that waits for it."""
        asked = getattr(item.message, "id", None) if not hasattr(item.message, "method") else None
        batch = next((each for each in self._batches if asked in each.waits), None)
        if batch is None:
            await self._writing.send(item)
            return
        batch.waits.discard(asked)
        batch.answers.append(item.message)
        if not batch.waits:
            self._batches.remove(batch)
            await self._writing.send(SessionMessage(batch))  # type: ignore[arg-type]

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._writing.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def meant(error: Exception) -> SessionMessage | JSONRPCError | list[object] | None:
    """What a line was that the SDK could not read: a message, a batch, nothing (None), or the answer that says why."""
    told = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    if not told:
        return _error(PARSE_ERROR, "Parse error: not JSON")
    given = told[0].get("input")
    if told[0]["type"] == "json_invalid":
        line = given if isinstance(given, str) else ""
        if not line.strip():
            return None
        try:
            value = json.loads(line, parse_constant=_refused)
        except RecursionError:
            return _error(INVALID_REQUEST, "Invalid request: it is nested too deeply", _id_in(line))
        except ValueError:
            return _error(PARSE_ERROR, "Parse error: not JSON", _id_in(line) if line.rstrip().endswith("}") else None)
        value = _well_formed(value)
        return value if isinstance(value, list) and value else _message(value)
    inputs = [one.get("input") for one in told]
    batch = next((value for value in inputs if isinstance(value, list)), None)
    if batch and not any(isinstance(value, dict) and "jsonrpc" in value for value in inputs):
        return batch
    return _invalid(next((value for value in inputs if isinstance(value, dict) and _is_id(value.get("id"))), None))


def _message(value: object) -> SessionMessage | JSONRPCError:
    """`value` as a message, or the answer that it is none."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValidationError:
        return _invalid(value)


def _invalid(value: object) -> JSONRPCError:
    asked = value.get("id") if isinstance(value, dict) else None
    return _error(INVALID_REQUEST, "Invalid request: JSON, but not a JSON-RPC 2.0 message", asked)


def _error(code: int, message: str, asked: object = None) -> JSONRPCError:
    known = asked if isinstance(asked, str | int) and _is_id(asked) else None
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=code, message=message))


def _id_of(item: SessionMessage) -> str | int | None:
    """The id of a request; None for a notification."""
    asked = getattr(item.message, "id", None) if hasattr(item.message, "method") else None
    return asked if isinstance(asked, str | int) else None


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _refused(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _well_formed(value: object) -> object:
    """`value` with every half of a character as U+FFFD; nothing is called by itself, however deep it is."""
    holder: list[Any] = [value]
    todo: list[Any] = [holder]
    while todo:
        inside = todo.pop()
        places = list(inside.items()) if isinstance(inside, dict) else list(enumerate(inside))
        for key, member in places:
            if isinstance(member, str):
                inside[key] = jsstring.well_formed(member)
            elif isinstance(member, dict | list):
                todo.append(member)
            if isinstance(key, str) and (name := jsstring.well_formed(key)) != key:
                inside[name] = inside.pop(key)
    return holder[0]


def _id_in(line: str) -> str | int | None:
    """The id of the message in `line`, which cannot be read as a whole."""
    for at in _top_level(line, '"id"'):
        if found := _SHORTEST_ID.match(line, at):
            try:
                asked = json.loads(found[1])
            except ValueError:
                return None
            return jsstring.well_formed(asked) if isinstance(asked, str) else int(asked)
    return None


def _top_level(line: str, name: str) -> Iterator[int]:
    """Where `name` ends, each time it stands directly in the outermost braces."""
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        elif depth == 1 and token[0] == name:
            yield token.end()
