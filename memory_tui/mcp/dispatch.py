"""The Model Context Protocol as this server speaks it. Requests and errors of both its eras stand here.

The handshake era (2024-11-05 to 2025-11-25) begins with `initialize`; since 2026-07-28 each request says by itself in
`_meta` what it speaks. The first request of a connection decides. What is not offered is no method; what is asked for
in the wrong form is wrong parameters. A batch, which only 2025-03-26 knew, is refused.

The official SDK is not imported: its server costs four times the processor time that a client may wait for a start
(tests/bench/processes.py measures both), and no smaller part of its own layout serves. Tests hold this module against
it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from msgspec import Struct, field

from memory_tui.cancel import Stop
from memory_tui.errors import MemoryTuiError
from memory_tui.mcp import wire
from memory_tui.mcp.wire import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Id

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that a connection agrees on by `initialize`; a client that names another one is offered the last."""
STATELESS = "2026-07-28"
"""The revision in which each request carries what `initialize` said before."""
UNSUPPORTED_VERSION = -32022
_PREFIX = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES, _CLIENT = f"{_PREFIX}protocolVersion", f"{_PREFIX}clientCapabilities", f"{_PREFIX}clientInfo"


class Refusal(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Caller(Struct, frozen=True):
    """Who asks: name and version of the program, the `_meta` of the request, how to tell it of progress (or None).

    `stop` is set when the client cancels the request.
    """

    client: str
    meta: Mapping[str, Any]
    stop: Stop
    report: Callable[[int, str], None] | None = None


class Method(Struct, frozen=True):
    """What answers a method; `cached` results say since 2026-07-28 how long they may be kept: not at all."""

    run: Callable[[Mapping[str, Any], Caller], dict[str, Any]]
    cached: bool = False


class ServerInterface(Struct, frozen=True):
    """What a server offers: who it is, what it tells the agent, its methods."""

    info: Mapping[str, str]
    instructions: str
    methods: Mapping[str, Method]

    def described(self) -> dict[str, Any]:
        """Capabilities and instructions."""
        capabilities: dict[str, Any] = {
            name: {"listChanged": False} for name in ("tools", "prompts", "resources") if f"{name}/list" in self.methods
        }
        if "resources" in capabilities:
            capabilities["resources"]["subscribe"] = False
        return {"capabilities": capabilities, "instructions": self.instructions}


# --- parameters ----------------------------------------------------------------------------------------------------


def text(params: Mapping[str, Any], name: str) -> str:
    """A member that has to be text. Raises Refusal."""
    value = params.get(name)
    if not isinstance(value, str):
        raise Refusal(INVALID_PARAMS, f"Invalid parameters: {name} is text.")
    return value


def optional_text(params: Mapping[str, Any], name: str) -> str | None:
    """A member that is text or not there. Raises Refusal."""
    return None if params.get(name) is None else text(params, name)


def members(params: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A member that is an object or not there. Raises Refusal."""
    value = params.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refusal(INVALID_PARAMS, f"Invalid parameters: {name} is an object.")
    return value


def only_page(params: Mapping[str, Any]) -> None:
    """Raise Refusal where `params` ask for a page after the only one."""
    if optional_text(params, "cursor") is not None:
        raise Refusal(INVALID_PARAMS, "This is no cursor of this list. It has one page: leave cursor out.")


def _program(info: Mapping[str, Any]) -> str:
    """Name and version of a program. Raises Refusal."""
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
    _version: str = ""
    _client: str = ""

    def hear(self, line: bytes) -> None:
        """Take one line."""
        match wire.read_line(line):
            case wire.InvalidMessage() as fault:
                self.send(wire.error(fault.id, fault.code, fault.message))
            case wire.Notification(method="notifications/cancelled", params=params):
                cancelled = params.get("requestId")
                if isinstance(cancelled, str | int) and (stop := self.running.get(cancelled)) is not None:
                    stop.set()
            case wire.Request() as request:
                self._request(request)

    def _request(self, request: wire.Request) -> None:
        try:
            if self._stateless is None:
                self._stateless = request.method != "initialize" and _VERSION in _meta_of(request)
            caller = self._caller(request)
            at_once = self._at_once(request)
            method = None if at_once is not None else self._method(request.method)
        except Refusal as refusal:
            self._answer(request, wire.error(request.id, refusal.code, refusal.message, refusal.data))
            return
        if method is None:
            self._answer(request, wire.result(request.id, at_once or {}))
            return
        self.running[request.id] = caller.stop
        try:
            self.pool.submit(self._run, request, method, caller)
        except RuntimeError:
            # No thread can be started: it may still be run by one that gets free, and is answered now.
            caller.stop.set()
            self.running.pop(request.id, None)
            self._answer(request, wire.error(request.id, INTERNAL_ERROR, "No thread can be started. Ask again."))

    def _answer(self, request: wire.Request, answer: dict[str, Any]) -> None:
        self.send(answer)
        self.answered(request.method)

    def _run(self, request: wire.Request, method: Method, caller: Caller) -> None:
        """Answer a request; one that was cancelled gets no answer."""
        try:
            result = method.run(request.params, caller)
            result = self._complete(result, cached=method.cached) if self._stateless else result
            answer = wire.result(request.id, result)
        except Refusal as refusal:
            answer = wire.error(request.id, refusal.code, refusal.message, refusal.data)
        except MemoryTuiError as error:
            code = INVALID_PARAMS if error.exit_status == 2 else INTERNAL_ERROR
            answer = wire.error(request.id, code, f"{error.message} {error.next_step}".rstrip(), error.as_dict())
        except Exception as error:  # noqa: BLE001 - a fault of ours must not take the connection with it
            report_fault()
            answer = wire.error(request.id, INTERNAL_ERROR, f"memory-tui failed inside: {type(error).__name__}.")
        try:
            if not caller.stop.is_set():
                self._answer(request, answer)
        finally:
            # Whoever ends the server waits for the requests that run: the answer has to be out before.
            self.running.pop(request.id, None)

    # --- what a request has to say of itself ---

    def _caller(self, request: wire.Request) -> Caller:
        """Return who asks, by the rules of the connection's era. Raises Refusal."""
        meta = _meta_of(request)
        report = self._reporting(meta)
        if not self._stateless:
            if _VERSION in meta and request.method != "initialize":
                raise Refusal(INVALID_REQUEST, f"This connection began with initialize; {STATELESS} needs its own.")
            return Caller(self._client, meta, Stop(), report)
        if request.method == "initialize":
            version = request.params.get("protocolVersion")
            raise Refusal(
                UNSUPPORTED_VERSION,
                f"This connection speaks {STATELESS}, which has no handshake.",
                {"supported": [STATELESS], **({"requested": version} if isinstance(version, str) else {})},
            )
        if missing := [key for key in (_VERSION, _CAPABILITIES) if key not in meta]:
            raise Refusal(INVALID_PARAMS, f"Invalid parameters: _meta lacks {', '.join(missing)}.")
        if (version := text(meta, _VERSION)) != STATELESS:
            supported = {"supported": [STATELESS], "requested": version}
            raise Refusal(UNSUPPORTED_VERSION, "Unsupported protocol version.", supported)
        if request.method != "server/discover":
            self._method(request.method)
        members(meta, _CAPABILITIES)
        client = members(meta, _CLIENT)
        return Caller(_program(client) if client else "", meta, Stop(), report)

    def _reporting(self, meta: Mapping[str, Any]) -> Callable[[int, str], None] | None:
        token = meta.get("progressToken")
        if token is None:
            return None
        if not isinstance(token, str | int) or isinstance(token, bool):
            raise Refusal(INVALID_PARAMS, "Invalid parameters: progressToken is text or a whole number.")

        def report(steps: int, message: str) -> None:
            params = {"progressToken": token, "progress": steps, "message": message}
            self.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

        return report

    def _at_once(self, request: wire.Request) -> dict[str, Any] | None:
        """The result of what needs no work, None for the rest. Raises Refusal."""
        if self._stateless:
            if request.method != "server/discover":
                return None
            return self._complete({"supportedVersions": [STATELESS], **self.interface.described()}, cached=True)
        if request.method == "ping":
            return {}
        if request.method != "initialize":
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
        method = self.interface.methods.get(name)
        if method is None:
            raise Refusal(METHOD_NOT_FOUND, "Method not found.", name)
        return method

    def _complete(self, result: dict[str, Any], *, cached: bool) -> dict[str, Any]:
        """Return `result` with what each one holds since 2026-07-28."""
        expiry = {"ttlMs": 0, "cacheScope": "private"} if cached else {}
        return {
            **result,
            **expiry,
            "resultType": "complete",
            "_meta": {f"{_PREFIX}serverInfo": dict(self.interface.info)},
        }


def _meta_of(request: wire.Request) -> Mapping[str, Any]:
    """The `_meta` of a request. Raises Refusal."""
    return members(request.params, "_meta")


def report_fault() -> None:
    """Write the exception that is being handled to stderr, which clients keep as the log of the server."""
    traceback.print_exc(file=sys.stderr)
