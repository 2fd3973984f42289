"""Models of the MCP SDK that are built when they are first used.

The SDK declares more than four hundred pydantic models: its own, and one set for each era of the protocol. Building
them is half of its import, and a connection needs a handful. Two things put that off, each for the models it suits:

- `wire_models`: the sets of the eras, which only the SDK's tables of methods name, are recorded as they are declared;
  a model is made of what was recorded when something is validated with it.
- `deferred`: the SDK's own models, which are imported by name, are classes at once, but their validators, and those of
  adapters, are built at first use: pydantic's `defer_build`.

What fits neither is imported as it is (`sdk.load`). Tests hold both against the whole import: the same JSON schema for
every model, the same answers to good and bad messages.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
