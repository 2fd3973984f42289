"""What goes over the wire: JSON-RPC over standard streams, the tools as they are listed, and their arguments.

One message a line; a line that is no message gets an error. JavaScript writes half of a character as `"\\ud83d"`, which
is JSON, but no text: in parameters it becomes U+FFFD, and an id comes back as it was sent. A blank line is nothing, and
neither is a byte order mark before a message.

The tools stand in tools.json, and what they take and give in schemas.json. Names and meaning are OpenClaw's. `about`
comes first in every order: hosts that sort the keys put it before what it speaks of, too.

A number may be written as text (`"5"`), as OpenClaw allows; where a whole number is wanted, a fraction is cut off. A
truth may be written as a number or a word (1, `"yes"`). What is null counts as left out. Nothing else is guessed: true
is no number, and a name that is unknown is an error.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from msgspec import Struct, field

from memory_tui import jsstring
from memory_tui.cancel import Stop
from memory_tui.errors import MemoryTuiError, QueryError
from memory_tui.formatting import one_line

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603

Id = str | int
_NO_MESSAGE = "Invalid request: JSON, but not a JSON-RPC 2.0 message."
_ECHOED = ("requestId", "progressToken")
"""Members of parameters that go back to the client exactly as it sent them."""


class Refusal(Exception):
    """A line, or a request, that is answered with an error of the protocol; without an id, where it has none."""

    def __init__(self, code: int, message: str, data: object = None, id: Id | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.id = code, message, data, id


class Request(Struct, frozen=True):
    """A message that wants an answer; without an id, one that wants none."""

    id: Id | None
    method: str
    params: Mapping[str, Any]


# --- what a line says ----------------------------------------------------------------------------------------------


def read_line(line: bytes) -> Request | None:
    """Return the message in `line`; None for a blank line or for an answer, which nobody waits for. Raises Refusal."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff")
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except RecursionError:
        raise Refusal(INVALID_REQUEST, "Invalid request: it is nested too deeply.") from None
    except ValueError:
        raise Refusal(PARSE_ERROR, "Parse error: not JSON.") from None
    if isinstance(value, list) and value:
        raise Refusal(INVALID_REQUEST, "Invalid request: a batch. Send one message a line.")
    if not isinstance(value, dict):
        raise Refusal(INVALID_REQUEST, _NO_MESSAGE)
    # Half of a character can only come from an escape: the bytes of the line were decoded to whole ones.
    if "\\u" in text and "params" in value:
        value["params"] = _well_formed(value["params"])
    return _request(value)


def _request(value: dict[str, Any]) -> Request | None:
    """Return `value` as a message; None for an answer. Raises Refusal."""
    method = value.get("method")
    params = value.get("params")
    id = value.get("id")
    request_id = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    if value.get("jsonrpc") != "2.0" or not (params is None or isinstance(params, dict)):
        raise Refusal(INVALID_REQUEST, _NO_MESSAGE, id=request_id)
    if method is None and ("result" in value or "error" in value):
        return None
    if not isinstance(method, str):
        raise Refusal(INVALID_REQUEST, "Invalid request: it names no method.", id=request_id)
    # An id that is null or of another kind, or none at all where an answer is wanted.
    if request_id is None and ("id" in value or not method.startswith("notifications/")):
        raise Refusal(INVALID_REQUEST, "Invalid request: a request needs an id, which is text or a whole number.")
    return Request(request_id, method, params or {})


def _well_formed(value: object) -> object:
    """Return `value` with every half of a character as U+FFFD, but not in what is sent back as it came.

    No recursion, so that no depth is too much.
    """
    # `value` itself may be a text: as the only item of a list it can be replaced, like any other member.
    holder: list[Any] = [value]
    todo: list[Any] = [holder]
    while todo:
        container = todo.pop()
        members = list(container.items()) if isinstance(container, dict) else list(enumerate(container))
        for key, member in members:
            if isinstance(member, str) and key not in _ECHOED:
                container[key] = jsstring.well_formed(member)
            elif isinstance(member, dict | list):
                todo.append(member)
            # Of a list the keys are indices.
            if isinstance(key, str) and (well_formed_key := jsstring.well_formed(key)) != key:
                container[well_formed_key] = container.pop(key)
    return holder[0]


# --- the pipes -----------------------------------------------------------------------------------------------------


class Pipes:
    """Standard input and output for the protocol alone: what is printed by accident goes to standard error."""

    def __init__(self) -> None:
        self._input = _claimed(0, "rb", lambda: os.open(os.devnull, os.O_RDONLY))
        self._output = _claimed(1, "wb", _stderr)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        """What is to be sent; None behind the last line."""
        self._writer = threading.Thread(target=self._write, name="mcp-writer", daemon=True)
        self.ended = threading.Event()
        """Set when there is nothing more to hear."""
        self.unread = threading.Event()
        """Set when nobody reads what is sent."""

    def start(self, hear: Callable[[bytes], None]) -> None:
        """Call `hear`, on a thread of its own, for each line."""
        self._writer.start()

        def read() -> None:
            """Call `hear` for each line until the input ends."""
            try:
                for line in self._input:
                    hear(line)
            finally:
                self.ended.set()

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
        """Write the lines in their order, until None comes or nobody reads them."""
        while (line := self._lines.get()) is not None:
            try:
                self._output.write(line + b"\n")
                self._output.flush()
            except (OSError, ValueError):
                # The client is gone, and with it everybody who could be told.
                self.unread.set()
                self.ended.set()
                return


def _claimed(number: int, mode: str, substitute: Callable[[], int]) -> BinaryIO:
    """Return a private copy of a standard stream, whose own number then leads to what `substitute` opens."""
    copy = os.dup(number)
    opened = substitute()
    os.dup2(opened, number)
    os.close(opened)
    return cast("BinaryIO", os.fdopen(copy, mode, closefd=False))


def _stderr() -> int:
    """Open standard error once more, or nothing where there is none."""
    try:
        return os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
    except (OSError, ValueError):
        return os.open(os.devnull, os.O_WRONLY)


# --- methods ----------------------------------------------------------------------------------------------------------

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that a connection agrees on by `initialize`; a client that names another one is offered the last."""
STATELESS = "2026-07-28"
"""The revision in which each request carries what `initialize` said before."""
UNSUPPORTED_VERSION = -32022
_PREFIX = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES, _CLIENT = f"{_PREFIX}protocolVersion", f"{_PREFIX}clientCapabilities", f"{_PREFIX}clientInfo"


class Caller(Struct, frozen=True):
    """Who asks: name and version of the program, the `_meta` of the request, how to tell it of progress (or None).

    `stop` is set when the client cancels the request.
    """

    client: str
    meta: Mapping[str, Any]
    stop: Stop
    report: Callable[[int, str], None] | None = None


Method = Callable[[Mapping[str, Any], Caller], dict[str, Any]]
"""What answers the parameters of a method."""
_CACHED = ("tools/list", "server/discover")
"""Methods whose results say since 2026-07-28 how long they may be kept: not at all."""


class ServerInterface(Struct, frozen=True):
    """What a server offers: who it is, what it tells the agent, its methods."""

    info: Mapping[str, str]
    instructions: str
    methods: Mapping[str, Method]

    def described(self) -> dict[str, Any]:
        """Return capabilities and instructions, which each handshake tells."""
        return {"capabilities": {"tools": {"listChanged": False}}, "instructions": self.instructions}


# --- parameters ----------------------------------------------------------------------------------------------------


def text(params: Mapping[str, Any], name: str) -> str:
    """Return a member that has to be text. Raises Refusal."""
    value = params.get(name)
    if not isinstance(value, str):
        raise Refusal(INVALID_PARAMS, f"Invalid parameters: {name} is text.")
    return value


def members(params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a member that is an object; an empty one where it is not there. Raises Refusal."""
    value = params.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refusal(INVALID_PARAMS, f"Invalid parameters: {name} is an object.")
    return value


def only_page(params: Mapping[str, Any]) -> None:
    """Raise Refusal where `params` ask for a page after the only one."""
    if params.get("cursor") is not None:
        text(params, "cursor")
        raise Refusal(INVALID_PARAMS, "This is no cursor of this list. It has one page: leave cursor out.")


def _program(info: Mapping[str, Any]) -> str:
    """Return name and version of a program. Raises Refusal."""
    return f"{text(info, 'name')} {text(info, 'version')}"[:100]


# --- a connection --------------------------------------------------------------------------------------------------


class Connection(Struct):
    """One client: hears its lines in order, on one thread, runs requests in `pool` and sends what answers them."""

    interface: ServerInterface
    send: Callable[[dict[str, Any]], None]
    answered: Callable[[str], None]
    """Called with the method of each request once its answer is under way."""
    pool: Executor
    running: dict[Id, Stop] = field(default_factory=dict)
    """What stops each request that is not answered yet."""
    _stateless: bool | None = None
    """Whether each request says what `initialize` said before 2026-07-28; None until the first request tells."""
    _version: str = ""
    """The revision that `initialize` agreed on; empty before it, and in a stateless connection."""
    _client: str = ""

    def hear(self, line: bytes) -> None:
        """Take one line: answer a request, stop one that is cancelled; any other notification needs nothing."""
        try:
            request = read_line(line)
        except Refusal as refusal:
            self._reply(refusal.id, refusal)
            return
        if request is None:
            return
        if request.id is not None:
            self._request(request, request.id)
        elif request.method == "notifications/cancelled":
            cancelled = request.params.get("requestId")
            if isinstance(cancelled, str | int) and (stop := self.running.get(cancelled)) is not None:
                stop.set()

    def _request(self, request: Request, id: Id) -> None:
        """Answer what can be answered at once; a thread answers the rest."""
        try:
            if self._stateless is None:
                self._stateless = request.method != "initialize" and _VERSION in members(request.params, "_meta")
            caller = self._caller(request)
            if (result := self._at_once(request)) is None:
                method = self._method(request.method)
                self.running[id] = caller.stop
                self.pool.submit(self._run, request, id, method, caller)
                return
            self._reply(id, result)
        except Refusal as refusal:
            self._reply(id, refusal)
        except RuntimeError:
            # No thread can be started. The request waits in the pool: a thread that gets free finds it stopped.
            self.running.pop(id, Stop()).set()
            self._reply(id, Refusal(INTERNAL_ERROR, "No thread can be started. Ask again."))
        self.answered(request.method)

    def _reply(self, id: Id | None, answer: dict[str, Any] | Refusal) -> None:
        """Send the result of a request, or the error that refuses it."""
        outcome = {"result": answer}
        if isinstance(answer, Refusal):
            data = {} if answer.data is None else {"data": answer.data}
            outcome = {"error": {"code": answer.code, "message": answer.message, **data}}
        self.send({"jsonrpc": "2.0", "id": id, **outcome})

    def _run(self, request: Request, id: Id, method: Method, caller: Caller) -> None:
        """Run `method` for a request, on a thread of the pool, and answer it; one that was cancelled gets no answer."""
        answer: dict[str, Any] | Refusal
        try:
            result = method(request.params, caller)
            answer = self._complete(request, result) if self._stateless else result
        except Refusal as error:
            answer = error
        except MemoryTuiError as error:
            code = INVALID_PARAMS if error.exit_status == 2 else INTERNAL_ERROR
            answer = Refusal(code, f"{error.message} {error.next_step}".rstrip(), error.as_dict())
        except Exception as error:  # noqa: BLE001 - a fault of ours must not take the connection with it
            report_fault()
            answer = Refusal(INTERNAL_ERROR, f"memory-tui failed inside: {type(error).__name__}.")
        try:
            if not caller.stop.is_set():
                self._reply(id, answer)
                self.answered(request.method)
        finally:
            # Whoever ends the server waits for the requests that run: the answer has to be out before.
            self.running.pop(id, None)

    # --- what a request has to say of itself ---

    def _caller(self, request: Request) -> Caller:
        """Return who asks, by the rules of the connection's era. Raises Refusal."""
        meta = members(request.params, "_meta")
        report = self._reporting(meta)
        if not self._stateless:
            if _VERSION in meta and request.method != "initialize":
                raise Refusal(INVALID_REQUEST, f"This connection began with initialize; {STATELESS} needs its own.")
            return Caller(self._client, meta, Stop(), report)
        if request.method == "initialize":
            version = request.params.get("protocolVersion")
            data = {"supported": [STATELESS], **({"requested": version} if isinstance(version, str) else {})}
            raise Refusal(UNSUPPORTED_VERSION, f"This connection speaks {STATELESS}, which has no handshake.", data)
        if missing := [key for key in (_VERSION, _CAPABILITIES) if key not in meta]:
            raise Refusal(INVALID_PARAMS, f"Invalid parameters: _meta lacks {', '.join(missing)}.")
        if (version := text(meta, _VERSION)) != STATELESS:
            supported = {"supported": [STATELESS], "requested": version}
            raise Refusal(UNSUPPORTED_VERSION, "Unsupported protocol version.", supported)
        # Both are called for what they raise: the method has to exist, the capabilities have to be an object.
        if request.method != "server/discover":
            self._method(request.method)
        members(meta, _CAPABILITIES)
        client = members(meta, _CLIENT)
        return Caller(_program(client) if client else "", meta, Stop(), report)

    def _reporting(self, meta: Mapping[str, Any]) -> Callable[[int, str], None] | None:
        """Return what tells the client of progress; None where it did not ask for that. Raises Refusal."""
        token = meta.get("progressToken")
        if token is None:
            return None
        if not isinstance(token, str | int) or isinstance(token, bool):
            raise Refusal(INVALID_PARAMS, "Invalid parameters: progressToken is text or a whole number.")

        def report(steps: int, message: str) -> None:
            """Send the client a message of progress; `steps` rises with each."""
            params = {"progressToken": token, "progress": steps, "message": message}
            self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

        return report

    def _at_once(self, request: Request) -> dict[str, Any] | None:
        """Return the result of a handshake or a ping, which need no thread; None for other methods. Raises Refusal."""
        if self._stateless:
            if request.method != "server/discover":
                return None
            return self._complete(request, {"supportedVersions": [STATELESS], **self.interface.described()})
        if request.method == "ping":
            return {}
        if request.method != "initialize":
            # Raises Refusal for a method that is not there, whether the handshake was made or not.
            self._method(request.method)
            if not self._version:
                raise Refusal(INVALID_PARAMS, "Invalid request: initialize comes first.")
            return None
        version = text(request.params, "protocolVersion")
        if not isinstance(request.params.get("capabilities"), dict):
            raise Refusal(INVALID_PARAMS, "Invalid parameters: capabilities is an object.")
        self._client = _program(members(request.params, "clientInfo"))
        self._version = version if version in HANDSHAKES else HANDSHAKES[-1]
        return {"protocolVersion": self._version, "serverInfo": dict(self.interface.info), **self.interface.described()}

    def _method(self, name: str) -> Method:
        """Return the method called `name`. Raises Refusal where there is none."""
        method = self.interface.methods.get(name)
        if method is None:
            raise Refusal(METHOD_NOT_FOUND, "Method not found.", name)
        return method

    def _complete(self, request: Request, result: dict[str, Any]) -> dict[str, Any]:
        """Return `result` with the members that the protocol wants of each result since 2026-07-28."""
        expiry = {"ttlMs": 0, "cacheScope": "private"} if request.method in _CACHED else {}
        meta = {f"{_PREFIX}serverInfo": dict(self.interface.info)}
        return {**result, **expiry, "resultType": "complete", "_meta": meta}


def report_fault() -> None:
    """Write the exception that is being handled to stderr, which clients keep as the log of the server."""
    traceback.print_exc(file=sys.stderr)


# --- the tools, and their arguments ----------------------------------------------------------------------------------

_SCHEMAS = Path(__file__).with_name("schemas.json")


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Return the schemas by name."""
    return cast("dict[str, dict[str, Any]]", json.loads(_SCHEMAS.read_text("utf-8")))


@cache
def listed_tools(*, shared: bool = False) -> dict[str, dict[str, Any]]:
    """Return each tool by its name as it is listed, with its schemas; with `shared` a search takes a scope."""
    tools: list[dict[str, Any]] = json.loads(_SCHEMAS.with_name("tools.json").read_text("utf-8"))
    for tool in tools:
        for key in tool.keys() & {"inputSchema", "outputSchema"}:
            # The file names each schema, such as SearchArguments; what a shared index adds to it has another name.
            schema = schemas()[tool[key]]
            added = tool[key].replace("Search", "Shared").replace("GetAnswer", "SharedAnswer")
            more = schemas()[added]["properties"] if shared else {}
            tool[key] = {**schema, "properties": schema["properties"] | more}
    return {tool["name"]: tool for tool in tools}


def arguments(tool: str, args: Mapping[str, Any], *, shared: bool = False) -> dict[str, Any]:
    """Return `args` by the schema of `tool`, in its order. Raises QueryError for the first thing wrong."""
    schema = listed_tools(shared=shared)[tool]["inputSchema"]
    fields: Mapping[str, Mapping[str, Any]] = schema["properties"]
    present = {name: value for name, value in args.items() if value is not None}
    # A name that is unknown is the likelier cause of one that is missing.
    for name in present:
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1, cutoff=0.6)
            step = f"Did you mean {near[0]}?" if near else f"There are {', '.join(fields)}."
            raise QueryError(f"There is no argument {one_line(repr(name), 60)}.", step)
    values = {}
    for name, argument in fields.items():
        if name in present:
            try:
                values[name] = _value(present[name], argument)
            except ValueError as error:
                what = f"{name} is {error}, not {one_line(repr(args[name]), 60)}."
                raise QueryError(what, argument["description"]) from None
        elif name in schema["required"]:
            raise QueryError(f"{name} is required.", argument["description"])
    return values


_TRUTHS = dict.fromkeys(("1", "t", "true", "y", "yes", "on"), True) | dict.fromkeys(
    ("0", "f", "false", "n", "no", "off"), False
)


def _value(value: object, field: Mapping[str, Any]) -> object:
    """Return `value` as `field` takes it. Raises ValueError with the words for what it takes."""
    match field["type"]:
        case "integer" | "number":
            return _number(value, field)
        case "boolean" if (truth := _TRUTHS.get(str(value).lower())) is not None:
            return truth
        case "boolean":
            raise ValueError("true or false")
    if "enum" in field and value not in field["enum"]:
        raise ValueError(f"one of {', '.join(field['enum'])}")
    if not isinstance(value, str):
        raise ValueError("text")
    return value


def _number(value: object, field: Mapping[str, Any]) -> float:
    """Return a finite number within the bounds of `field`, written as one or as text; whole for an integer.

    Raises ValueError with the words for what is taken.
    """
    is_whole = field["type"] == "integer"
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("a whole number" if is_whole else "a number")
    number = math.trunc(number) if is_whole else number
    if number < (least := field.get("minimum", -math.inf)):
        raise ValueError(f"at least {least:g}")
    if number > (most := field.get("maximum", math.inf)):
        raise ValueError(f"at most {most:g}")
    return number
