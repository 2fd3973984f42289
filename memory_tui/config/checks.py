"""Whether a written value is what its documented key wants, and what it then means."""

from __future__ import annotations

import math
import re

from memory_tui.config.documented import Key
from memory_tui.config.environment import Environment
from memory_tui.config.extra import ExtraPath
from memory_tui.config.tree import Node
from memory_tui.errors import SettingError
from memory_tui.settings import BY_KEY, check

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|tb)?", re.IGNORECASE)
_UNITS = {"b": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4}
_LONGEST = 40
"""Longer text is cut in messages."""


def checked(key: Key, node: Node, environment: Environment) -> object:
    """The value of `node` for `key`; None for a secret, which stays in the file. Raises SettingError."""
    value = _substituted(key, node, environment)
    match key.kind:
        case "knob":
            return check(BY_KEY[key.path], value if not isinstance(value, dict | list) else _shown(node))
        case "switch":
            return _typed(key, isinstance(value, bool), value, "true or false", node)
        case "whole" | "number":
            return _number(key, value, node)
        case "choice":
            return _typed(key, value in key.choices, value, f"one of {', '.join(key.choices)}", node)
        case "choices":
            return _choices(key, node)
        case "text" | "path":
            return _typed(key, isinstance(value, str), value, "text", node)
        case "paths":
            return _paths(key, node, environment)
        case "size":
            return _size(key, value, node)
        case "secret":
            _typed(key, isinstance(value, str | dict), value, "text or a secret reference", node, secret=True)
        case "headers":
            fine = isinstance(value, dict) and all(isinstance(each.value, str | dict) for _, each in node.children())
            _typed(key, fine, value, "an object of texts", node, secret=True)
    return node.plain() if key.kind == "any" else None


def _substituted(key: Key, node: Node, environment: Environment) -> object:
    value = node.value
    if not isinstance(value, str) or key.kind == "secret":
        return value
    text, missing = environment.substitute(value)
    if missing:
        raise SettingError(f"{key.path} names the variable {missing[0]}, which is not set.", "")
    return text


def _typed(key: Key, fits: bool, value: object, wanted: str, node: Node, *, secret: bool = False) -> object:
    if not fits:
        raise SettingError(f"{key.path} is {wanted}" + ("." if secret else f", not {_shown(node)}."), "")
    return value


def _shown(node: Node) -> str:
    value = node.value
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else value[:_LONGEST] + "…")
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return f"{value:g}"


def _number(key: Key, value: object, node: Node) -> float:
    kind = "whole number" if key.kind == "whole" else "number"
    span = f"from {key.low:g}" + (f" to {key.high:g}" if math.isfinite(key.high) else "")
    wanted = f"a {kind} {span}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(f"{key.path} is {wanted}, not {_shown(node)}.", "")
    if not key.low <= value <= key.high or (key.kind == "whole" and value != int(value)):
        raise SettingError(f"{key.path} is {wanted}, not {value:g}.", "")
    return int(value) if key.kind == "whole" else float(value)


def _choices(key: Key, node: Node) -> tuple[str, ...]:
    items = [item.value for item in node.value] if isinstance(node.value, list) else [node.value]
    if not isinstance(node.value, list) or any(item not in key.choices for item in items):
        raise SettingError(
            f"{key.path} is a list of {' and '.join(key.choices)}, not {_shown(node)}."
            if not isinstance(node.value, list)
            else f"{key.path} may only hold {', '.join(key.choices)}.",
            "",
        )
    return tuple(dict.fromkeys(str(item) for item in items)) or tuple(map(str, key.default))  # type: ignore[call-overload]


def _paths(key: Key, node: Node, environment: Environment) -> tuple[str | ExtraPath, ...]:
    if not isinstance(node.value, list):
        raise SettingError(f"{key.path} is a list of paths, not {_shown(node)}.", "")
    found: list[str | ExtraPath] = []
    for item in node.value:
        inner, pattern = item.get("path") or item, item.get("pattern")
        if not isinstance(inner.value, str) or not (pattern is None or isinstance(pattern.value, str)):
            raise SettingError(f"{key.path} is a list of paths, and {_shown(item)} is none.", "")
        if path := str(_substituted(key, inner, environment)).strip():
            found.append(ExtraPath(path, str(pattern.value)) if pattern is not None and pattern.value else path)
    return tuple(dict.fromkeys(found))


def _size(key: Key, value: object, node: Node) -> int:
    if isinstance(value, str) and (found := _SIZE.fullmatch(value.strip())):
        return int(float(found[1]) * 1024 ** _UNITS[(found[2] or "b").lower()])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise SettingError(f"{key.path} is a number of bytes or a size such as 2mb, not {_shown(node)}.", "")
    return int(value)
