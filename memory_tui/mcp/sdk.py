"""The MCP SDK is loaded without its HTTP half, with its models built on first use.

The SDK declares more than four hundred pydantic models: its own, and one set for each era of the protocol. Building
them is half of its import, and a connection needs a handful. Two things put that off, each for the models it suits:

- `wire_models`: the sets of the eras, which only the SDK's tables of methods name, are recorded as they are declared;
  a model is made of what was recorded when something is validated with it.
- `deferred`: the SDK's own models, which are imported by name, are classes at once, but their validators, and those of
  adapters, are built at first use: pydantic's `defer_build`.

What fits neither is imported as it is (`sdk.load`). Tests hold both against the whole import: the same JSON schema for
every model, the same answers to good and bad messages.

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
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

import pydantic

WIRE_BASE = "mcp_types._wire_base"
_MAKING = threading.RLock()
_MADE: dict[Late, Any] = {}
"""Classes of models; built only where they are in `_READY` too."""
_READY: dict[Late, Any] = {}
_BUILDING: list[Late] = []

Adapted = TypeVar("Adapted")


class Late(type):
    """The type of a model that is recorded: it becomes the model whenever it is used as one."""

    _parts: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, name: str, bases: tuple[Any, ...], namespace: dict[str, Any]) -> Late:
        """Record a declaration. Raises TypeError for one that cannot be repeated later."""
        if "__classcell__" in namespace:
            raise TypeError(f"{name} has methods that know their class")
        kept = {key: namespace[key] for key in ("__module__", "__qualname__")}
        made = super().__new__(cls, name, bases, kept)
        made._parts = (bases, namespace)
        return made

    def __init__(cls, name: str, bases: tuple[Any, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401 - any attribute of the model
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(model(cls), name)

    def __call__(cls, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - an instance of the model
        return model(cls)(*given, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, model(cls))

    def __get_pydantic_core_schema__(cls, source: object, handler: pydantic.GetCoreSchemaHandler) -> Any:  # noqa: ANN401
        del source
        # Inside another model this one needs no validator of its own.
        return handler.generate_schema(_made(cls) if _BUILDING else model(cls))


def model(late: Late) -> Any:  # noqa: ANN401 - a class of models
    """The model itself, ready to validate; one that cannot be made alone is imported with all of its module."""
    with _MAKING:
        if late not in _READY:
            _READY[late] = _built(late) or _whole(late)
        return _READY[late]


def _built(late: Late) -> Any:  # noqa: ANN401
    """The model with its validator; None where that cannot be made of what was recorded."""
    _BUILDING.append(late)
    try:
        made = _made(late)
        return None if made.model_rebuild() is False else made
    except Exception:  # noqa: BLE001 - whatever hinders it, the SDK's own import has the model
        return None
    finally:
        _BUILDING.pop()


def _made(late: Late) -> Any:  # noqa: ANN401
    """The class of models that was recorded, with its bases; models it names stay late."""
    if late not in _MADE:
        bases, namespace = late._parts
        real = tuple(_made(base) for base in bases)
        _MADE[late] = type(real[0])(late.__name__, real, dict(namespace), defer_build=True)
    return _MADE[late]


def _whole(late: Late) -> Any:  # noqa: ANN401
    """The model from its module as the SDK has it."""
    module = sys.modules.get(late.__module__)
    if module is None or isinstance(getattr(module, late.__name__, None), Late):
        sys.modules.pop(late.__module__, None)
        module = importlib.import_module(late.__module__)
    return getattr(module, late.__name__)


@contextmanager
def wire_models() -> Iterator[None]:
    """While inside, models of the protocol's eras are recorded instead of made."""
    base = importlib.import_module(WIRE_BASE)
    plain = base.WireModel
    namespace = {"__module__": WIRE_BASE, "__qualname__": "WireModel"}
    late = Late("WireModel", (), namespace)
    _MADE[late] = plain
    base.__dict__["WireModel"] = late
    try:
        yield
    finally:
        base.__dict__["WireModel"] = plain


@contextmanager
def deferred() -> Iterator[None]:
    """While inside, models and adapters that are declared build their validators at first use."""
    plain, adapter = pydantic.BaseModel, pydantic.TypeAdapter

    class Deferred(plain):  # type: ignore[misc, valid-type]
        model_config = pydantic.ConfigDict(defer_build=True)

        @classmethod
        def model_rebuild(cls, **given: object) -> None:
            """Nothing now: at first use every name that a model refers to is there."""
            del given

    class Adapter(adapter[Adapted]):  # type: ignore[misc, valid-type]
        def __init__(self, kind: Any) -> None:  # noqa: ANN401 - any type
            super().__init__(kind, config=pydantic.ConfigDict(defer_build=True))

    vars(pydantic).update(BaseModel=Deferred, TypeAdapter=Adapter)
    try:
        yield
    finally:
        vars(pydantic).update(BaseModel=plain, TypeAdapter=adapter)
        del Deferred.model_rebuild


@contextmanager
def metadata() -> Iterator[None]:
    """While inside, functions of `importlib.metadata` import it when they are called; pydantic hardly ever does."""
    name = "importlib.metadata"
    if name in sys.modules:
        yield
        return
    played = ModuleType(name)

    def late(function: str) -> Callable[..., Any]:
        if function.startswith("__"):
            raise AttributeError(function)

        def called(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - any function
            return getattr(importlib.import_module(name), function)(*given, **named)

        return called

    played.__dict__["__getattr__"] = late
    sys.modules[name] = played
    try:
        yield
    finally:
        if sys.modules.get(name) is played:
            del sys.modules[name]


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

    with metadata():
        with deferred():
            types = importlib.import_module(_MODELS)
        with wire_models():
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
