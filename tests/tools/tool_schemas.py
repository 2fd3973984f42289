"""Make memory_tui/mcp/schemas.json of the types of the tools.

python -m tests.tools.tool_schemas
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from memory_tui.mcp import types
from memory_tui.mcp.schemas import PATH

KINDS = (
    *(types.SearchArguments, types.SearchAnswer, types.GetArguments, types.GetAnswer),
    *(types.RecallArguments, types.StoreArguments, types.ForgetArguments),
)


def schema(kind: Any) -> dict[str, Any]:
    """pydantic's schema without references, titles and docstrings, which some clients do not take or show twice."""
    made = TypeAdapter(kind).json_schema()
    return plain(made, made.get("$defs", {}))


def plain(node: dict[str, Any], named: dict[str, Any], *, member: bool = False) -> dict[str, Any]:
    if "$ref" in node:
        node = named[node["$ref"].rpartition("/")[2]]
    found: dict[str, Any] = {"type": node["type"]} if "type" in node else {}
    for key in ("enum", "minimum", "maximum"):
        if key in node:
            found[key] = node[key]
    if member and "description" in node and "properties" not in node:
        found["description"] = node["description"]
    if "items" in node:
        found["items"] = plain(node["items"], named)
    if "properties" in node:
        found["properties"] = {name: plain(inside, named, member=True) for name, inside in node["properties"].items()}
        found["required"] = node.get("required", [])
        found["additionalProperties"] = False
    return found


def made() -> dict[str, Any]:
    """All schemas by the name of their type."""
    return {kind.__name__: schema(kind) for kind in KINDS}


if __name__ == "__main__":
    PATH.write_text(json.dumps(made(), indent=1, ensure_ascii=False) + "\n", "utf-8")
