"""JSON Schema from types, so that what a tool says of itself and what it does cannot differ."""

from __future__ import annotations

import dataclasses
import types
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict


@dataclasses.dataclass(frozen=True, slots=True)
class Says:
    """What a type cannot say of a field: what it means, its name in JSON where that is none in Python, its range."""

    text: str
    name: str = ""
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """One field of an object: its names in Python and in JSON, its type, what it means, and if it must be there."""

    field: str
    name: str
    kind: Any
    says: Says
    required: bool


def members(kind: type) -> tuple[Member, ...]:
    """The fields of a dataclass or of a typed dictionary."""
    hints = get_type_hints(kind, include_extras=True)
    optional = (
        {f.name for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING}
        if (dataclasses.is_dataclass(kind))
        else set()
    )
    return tuple(_member(name, hint, name in optional) for name, hint in hints.items())


def _member(field: str, hint: Any, optional: bool) -> Member:  # noqa: ANN401 - any type
    if get_origin(hint) is NotRequired:
        hint, optional = get_args(hint)[0], True
    says = Says("")
    if get_origin(hint) is Annotated:
        hint, says = get_args(hint)[0], next(note for note in get_args(hint)[1:] if isinstance(note, Says))
    return Member(field, says.name or _camel(field), without_none(hint), says, not optional)


def without_none(hint: Any) -> Any:  # noqa: ANN401
    """`X | None` as `X`: in JSON such a field is left out."""
    if get_origin(hint) in (Union, types.UnionType):
        kept = [part for part in get_args(hint) if part is not type(None)]
        return kept[0] if len(kept) == 1 else hint
    return hint


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def schema(kind: type) -> dict[str, Any]:
    """The schema of an object; nothing else than its fields may be there."""
    found = members(kind)
    return {
        "type": "object",
        "properties": {member.name: _field(member) for member in found},
        "required": [member.name for member in found if member.required],
        "additionalProperties": False,
    }


_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _field(member: Member) -> dict[str, Any]:
    says = member.says
    extras = {"description": says.text or None, "minimum": says.low, "maximum": says.high}
    return {**_kind(member.kind), **{key: value for key, value in extras.items() if value is not None}}


def _kind(kind: Any) -> dict[str, Any]:  # noqa: ANN401
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        return {"type": "array", "items": _kind(get_args(kind)[0])}
    if dataclasses.is_dataclass(kind) or is_typeddict(kind):
        return schema(kind)
    raise TypeError(f"no schema for {kind!r}")
