"""The MCP SDK without its HTTP half, which a server over standard input never uses, and with its models built late.

Importing any part of the SDK imports all of it: client, web server, authorisation, cryptography, and the models of each
era of the protocol. That takes four times what is needed, and an agent waits for it at each start. So its packages are
entered without running their `__init__`, web modules are played by empty ones while the server is imported, and models
are built at first use (`late`). Then a greeting is validated, a wrong one refused, and an answer made, which a client
asks for in a moment anyway. Where any of that does not work, because the SDK or pydantic was built otherwise, the SDK
is imported as it is.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_MODELS = "mcp_types"
_ENTERED = ("mcp", "mcp.server")
"""Packages whose modules are wanted, but not what their `__init__` imports."""
_PLAYED = (
    "starlette",
    "sse_starlette",
    "uvicorn",
    "mcp.server.auth",
    "mcp.server.streamable_http",
    "mcp.server.streamable_http_manager",
    "mcp.server.transport_security",
)
_WANTED = ("mcp.server.lowlevel", "mcp.server.stdio")


class _Played(ModuleType):
    """A module in which every name is a class of no use."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {})
        setattr(self, name, made)
        return made


class _Finder:
    """Finds the played modules, and those below them."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        if any(name == played or name.startswith(f"{played}.") for played in _PLAYED):
            return ModuleSpec(name, _Finder, is_package=True)  # type: ignore[arg-type]
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return _Played(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        del module


def load() -> bool:
    """Import the SDK's server; False when that took all of the SDK.

    For a process that is a server and nothing else: other parts of the SDK cannot be imported after it.
    """
    with _hurried():
        if any(name in sys.modules for name in _ENTERED):
            return False
        try:
            _enter()
            return True
        except Exception:  # noqa: BLE001 - whatever the SDK has come to look like, it can be imported as it is
            _leave()
            for name in _WANTED:
                importlib.import_module(name)
            return False


@contextmanager
def _hurried() -> Iterator[None]:
    """No search for pydantic's plug-ins, and no garbage collection among classes that stay for good."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _enter() -> None:
    found = importlib.util.find_spec(_ENTERED[0])
    if found is None or not found.submodule_search_locations:
        raise ImportError(_ENTERED[0])
    _hollow(_ENTERED[0], list(found.submodule_search_locations))
    _hollow(_ENTERED[1], [os.path.join(folder, "server") for folder in found.submodule_search_locations])  # noqa: PTH118
    sys.meta_path.insert(0, _Finder)
    try:
        _models()
        for name in _WANTED:
            importlib.import_module(name)
    finally:
        sys.meta_path.remove(_Finder)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _Played)]:
            del sys.modules[name]


def _models() -> None:
    """Import the models of the protocol late, and see that they validate. Raises where they do not."""
    from memory_tui.agent import late

    with late.metadata():
        with late.deferred():
            types = importlib.import_module(_MODELS)
        with late.wire_models():
            methods = importlib.import_module(f"{_MODELS}.methods")
        _rehearse(types, methods)


def _rehearse(types: Any, methods: Any) -> None:  # noqa: ANN401 - modules
    """A greeting, its answer, and a wrong one. Raises where they do not come out as they should."""
    newest = importlib.import_module(f"{_MODELS}.version").LATEST_HANDSHAKE_VERSION
    program = {"name": "memory-tui", "version": ""}
    greeting = {"protocolVersion": newest, "capabilities": {}, "clientInfo": program}
    answer = {"protocolVersion": newest, "capabilities": {}, "serverInfo": program}
    message = types.jsonrpc_message_adapter.validate_python(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting}, by_name=False
    )
    methods.validate_client_request(message.method, newest, message.params)
    if methods.serialize_server_result(message.method, newest, answer) != answer:
        raise ImportError("an answer to a greeting comes out otherwise")
    try:
        methods.validate_client_request(message.method, newest, {"clientInfo": program})
    except ValueError:
        return
    raise ImportError("a wrong greeting is not refused")


def _hollow(name: str, places: Sequence[str]) -> None:
    module = ModuleType(name)
    module.__path__ = list(places)
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    sys.modules[name] = module


def _leave() -> None:
    """Forget what was imported by halves."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mcp", _MODELS)]:
        del sys.modules[name]
