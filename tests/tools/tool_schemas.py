"""Make memory_tui/mcp/schemas.json of the types of the tools.

python -m tests.tools.tool_schemas
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from msgspec import Meta

from memory_tui.mcp import types
from memory_tui.mcp.schemas import PATH

KINDS = (
    *(types.SearchArguments, types.SearchAnswer, types.GetArguments, types.GetAnswer),
    *(types.RecallArguments, types.StoreArguments, types.ForgetArguments),
)
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema(kind: Any) -> dict[str, Any]:
    """The schema of `kind` without references, titles and docstrings, which some clients do not take or show twice."""
    if is_typeddict(kind):
        return _of_fields(get_type_hints(kind, include_extras=True))
    if get_origin(kind) is Annotated:
        inside, *notes = get_args(kind)
        return schema(inside) | {key: value for note in notes for key, value in _of_note(note).items()}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        return {"type": "array", "items": schema(*get_args(kind))}
    return {"type": PLAIN[kind]}


def _of_fields(fields: dict[str, Any]) -> dict[str, Any]:
    optional = {name for name, kind in fields.items() if get_origin(kind) is NotRequired}
    return {
        "type": "object",
        "properties": {name: schema(get_args(kind)[0] if name in optional else kind) for name, kind in fields.items()},
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def _of_note(note: Meta) -> dict[str, Any]:
    found = {"minimum": note.ge, "maximum": note.le, "description": note.description}
    return {key: value for key, value in found.items() if value is not None}


def made() -> dict[str, Any]:
    """All schemas by the name of their type."""
    return {kind.__name__: schema(kind) for kind in KINDS}


if __name__ == "__main__":
    PATH.write_text(json.dumps(made(), indent=1, ensure_ascii=False) + "\n", "utf-8")
