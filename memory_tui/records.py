"""Data classes as those of the standard library, whose methods are not compiled when the class is made.

`dataclasses` compiles up to six methods for each class, in 0.3 to 0.9 ms of CPU; a cold search makes two hundred
classes and an instance of every third. Here `__init__` is compiled at the first instance, and the others are closures.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False) -> Any:  # noqa: ANN401
        """Make `cls` a data class: `dataclasses.dataclass` with fewer options.

        Fields, their order, equality, hash, text and errors are the same; of the other functions of `dataclasses` each
        works. One kind cannot inherit from the other, where it is frozen.
        """
        return (lambda own: _made(own, frozen, slots)) if cls is None else _made(cls, frozen, slots)


def _made(cls: type, frozen: bool, slots: bool) -> type:
    own = {name for name, value in vars(cls).items() if (name, value) != ("__hash__", None)}
    # The library would take the signature apart for a docstring that nobody reads.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    fields = dataclasses.fields(made)
    compared = [one for one in fields if one.compare]
    methods: dict[str, Any] = {
        "__init__": _first_init(made, fields, frozen),
        "__repr__": _repr([one.name for one in fields if one.repr]),
        "__eq__": _eq(_values([one.name for one in compared])),
        "__hash__": None,
    }
    if frozen:
        methods["__hash__"] = _hash(_values([one.name for one in compared if one.hash is not False]))
        methods |= _refusals(made, frozenset(one.name for one in fields))
        if slots:
            methods |= _state([one.name for one in fields])
    for name, method in methods.items():
        if name not in own:
            if method is not None:
                method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
            setattr(made, name, method)
    return made


def _values(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """What gives the values of `names` as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _first_init(cls: type, fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """An `__init__` that compiles the one in its place."""

    def init(self: object, /, *values: object, **named: object) -> None:
        compiled = _init(cls, fields, frozen)
        if vars(cls)["__init__"] is init:
            cls.__init__ = compiled  # type: ignore[misc]
        compiled(self, *values, **named)

    return init


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """The `__init__` of `cls`."""
    known: dict[str, Any] = {"_new": object(), "_set": object.__setattr__}
    asked, lines = ["self"], []
    for at, one in enumerate(fields):
        value = one.name
        if one.default_factory is not dataclasses.MISSING:
            known[f"_make{at}"] = one.default_factory
            value = f"_make{at}() if {one.name} is _new else {one.name}" if one.init else f"_make{at}()"
            default = "=_new"
        elif one.default is not dataclasses.MISSING:
            known[f"_default{at}"] = one.default
            default = f"=_default{at}"
            value = value if one.init else default[1:]
        else:
            default = ""
        if one.init:
            asked.append(one.name + default)
        lines.append(f" _set(self, {one.name!r}, {value})" if frozen else f" self.{one.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(asked)}):\n" + "\n".join(lines or [" pass"]), known)
    compiled: Callable[..., None] = known["__init__"]
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    return compiled


def _repr(names: list[str]) -> Callable[[object], str]:
    @recursive_repr()
    def text(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return text


def _eq(values: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], bool]:
    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Callable[[object], tuple[object, ...]]) -> Callable[[object], int]:
    def hashed(self: object) -> int:
        return hash(values(self))

    return hashed


def _refusals(cls: Any, names: frozenset[str]) -> dict[str, Any]:  # noqa: ANN401 - mypy takes no type for `super`
    """What keeps the fields of an instance as they are."""

    def assign(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _state(names: list[str]) -> dict[str, Any]:
    """How an instance with slots that cannot be assigned is copied."""

    def state(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    def restore(self: object, state: list[object]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": state, "__setstate__": restore}
