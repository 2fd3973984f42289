"""JSON-RPC over standard streams: one message a line; a line that is no message gets an error.

JavaScript writes half of a character as `"\\ud83d"`, which is JSON, but no text: in parameters it becomes U+FFFD, and
an id comes back as it was sent. A blank line is nothing, and neither is a byte order mark before a message.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from msgspec import Struct

from memory_tui import jsstring

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603

Id = str | int
_NO_ID = "Invalid request: a request needs an id, which is text or a whole number."
_ECHOED = ("requestId", "progressToken")


class Request(Struct, frozen=True):
    """A message that wants an answer."""

    id: Id
    method: str
    params: Mapping[str, Any]


class Notification(Struct, frozen=True):
    """A message that wants no answer."""

    method: str
    params: Mapping[str, Any]


class InvalidMessage(Struct, frozen=True):
    """A line, or a part of one, that is no message: the error that answers it."""

    code: int
    message: str
    id: Id | None = None


Message = Request | Notification | InvalidMessage


# --- what a line says ----------------------------------------------------------------------------------------------


def read_line(line: bytes) -> Message | None:
    """Return the message in `line`; None for a blank line or for an answer, which nobody waits for."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff")
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except RecursionError:
        return InvalidMessage(INVALID_REQUEST, "Invalid request: it is nested too deeply.")
    except ValueError:
        return InvalidMessage(PARSE_ERROR, "Parse error: not JSON.")
    if isinstance(value, list) and value:
        return InvalidMessage(INVALID_REQUEST, "Invalid request: a batch. Send one message a line.")
    if "\\u" in text and isinstance(value, dict) and "params" in value:
        value["params"] = _well_formed(value["params"])
    message = _message(value)
    if isinstance(message, Notification) and not message.method.startswith("notifications/"):
        return InvalidMessage(INVALID_REQUEST, _NO_ID)
    return message


def _message(value: object) -> Message | None:
    """`value` as a message; None for an answer."""
    if not isinstance(value, dict):
        return InvalidMessage(INVALID_REQUEST, "Invalid request: JSON, but not a JSON-RPC 2.0 message.")
    number = value.get("id")
    request_id = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    method, params = value.get("method"), value.get("params")
    if value.get("jsonrpc") != "2.0" or not (params is None or isinstance(params, dict)):
        return InvalidMessage(INVALID_REQUEST, "Invalid request: JSON, but not a JSON-RPC 2.0 message.", request_id)
    if method is None and ("result" in value or "error" in value):
        return None
    if not isinstance(method, str):
        return InvalidMessage(INVALID_REQUEST, "Invalid request: it names no method.", request_id)
    if request_id is not None:
        return Request(request_id, method, params or {})
    return InvalidMessage(INVALID_REQUEST, _NO_ID) if "id" in value else Notification(method, params or {})


def _well_formed(value: object) -> object:
    """Return `value` with every half of a character as U+FFFD, but not in what is sent back as it came.

    No recursion, so that no depth is too much.
    """
    holder: list[Any] = [value]
    todo: list[Any] = [holder]
    while todo:
        inside = todo.pop()
        members = list(inside.items()) if isinstance(inside, dict) else list(enumerate(inside))
        for key, member in members:
            if isinstance(member, str) and key not in _ECHOED:
                inside[key] = jsstring.well_formed(member)
            elif isinstance(member, dict | list):
                todo.append(member)
            if isinstance(key, str) and (name := jsstring.well_formed(key)) != key:
                inside[name] = inside.pop(key)
    return holder[0]


# --- answers -------------------------------------------------------------------------------------------------------


def error(request_id: Id | None, code: int, message: str, data: object = None) -> dict[str, Any]:
    """The answer that says why a request failed."""
    fault = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": request_id, "error": fault}


def result(request_id: Id, value: Mapping[str, Any]) -> dict[str, Any]:
    """The answer that holds what was asked for."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


# --- the pipes -----------------------------------------------------------------------------------------------------


class Pipes:
    """Standard input and output for the protocol alone: what is printed by accident goes to standard error."""

    def __init__(self) -> None:
        self._input = _claimed(0, "rb", lambda: os.open(os.devnull, os.O_RDONLY))
        self._output = _claimed(1, "wb", _beside)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="mcp-writer", daemon=True)
        self._unread: Callable[[], None] = _nothing

    def start(self, hear: Callable[[bytes], None], ended: Callable[[], None], unread: Callable[[], None]) -> None:
        """Call, on threads of their own, `hear` for each line, `ended` after the last one, `gone` if nobody reads."""
        self._unread = unread
        self._writer.start()

        def read() -> None:
            try:
                for line in self._input:
                    hear(line)
            finally:
                ended()

        threading.Thread(target=read, name="mcp-reader", daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Have a message written; it waits for nobody. Half of a character goes out as JSON's escape of it."""
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        self._lines.put(line.encode("utf-8", "backslashreplace"))

    def close(self, seconds: float) -> None:
        """Write what is waiting, for so long at most."""
        self._lines.put(None)
        self._writer.join(seconds)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._output.write(line + b"\n")
                self._output.flush()
            except (OSError, ValueError):
                # The client is gone, and with it everybody who could be told.
                self._unread()
                return


def _nothing() -> None:
    """Nobody asked to be told."""


def _claimed(number: int, mode: str, beside: Callable[[], int]) -> BinaryIO:
    """A private copy of a standard stream, whose own number then leads to what `beside` opens."""
    copy = os.dup(number)
    other = beside()
    os.dup2(other, number)
    os.close(other)
    return os.fdopen(copy, mode, closefd=False)  # type: ignore[return-value]


def _beside() -> int:
    try:
        return os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    except (OSError, ValueError):
        return os.open(os.devnull, os.O_WRONLY)
