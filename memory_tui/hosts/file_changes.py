"""Changes of a host's files that can be taken back, whatever else was written there meanwhile.

JSON and JSON5 get members and items, TOML gets a table at its end, a plain file is copied whole. Comments, order and
layout of what stands there stay. `applied` gives the new bytes with what taking back needs; `reverted` takes each
change out of the text as it is then, and refuses where one was edited.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config import json5
from memory_tui.config.json5 import Node, SourceText, parse_json5
from memory_tui.errors import ConfigError

_UNCHANGED = "Mend it; nothing was changed."
_BY_HAND = "Take it out by hand, or bring back what was written."


class HostChange(Struct, frozen=True):
    """One change: `keys` lead to a member of an object, a list that gets an item, a table of TOML; none for a copy.

    Once applied, `old` is the text that stood in its place, and `there` counts the keys that were there before.
    """

    kind: Literal["member", "item", "table", "copy"]
    keys: tuple[str, ...]
    value: object
    old: str | None = None
    there: int = 0


class FileEdit(Struct, frozen=True):
    """The changes of one file."""

    path: Path
    changes: tuple[HostChange, ...]


def applied(edit: FileEdit, before: bytes | None) -> tuple[bytes, tuple[HostChange, ...]]:
    """Return the bytes of a file after its changes, and the changes as taking back needs them. Raises ConfigError."""
    [first, *_] = edit.changes
    if first.kind == "copy":
        return str(first.value).encode(), (first,)
    text, done = _text(edit.path, before), list[HostChange]()
    for change in edit.changes:
        text, applied_change = (_with_table if change.kind == "table" else _with)(edit.path, text, change)
        done += [applied_change] if applied_change is not None else []
    return _encoded(text, before), tuple(done)


def reverted(edit: FileEdit, now: bytes | None) -> bytes | None:
    """Return the bytes of a file without its changes, None where nothing is left. Raises ConfigError."""
    [first, *_] = edit.changes
    if first.kind == "copy":
        if now not in (None, str(first.value).encode()):
            raise ConfigError(f"{edit.path} was edited after memory-tui wrote it.", "Delete it by hand.")
        return None
    if now is None:
        return None
    text = _text(edit.path, now)
    for change in reversed(edit.changes):
        text = (_without_table if change.kind == "table" else _without)(edit.path, text, change)
    return _encoded(text, now)


def _text(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: byte {error.start}.", _UNCHANGED) from error


def _encoded(text: str, like: bytes | None) -> bytes:
    return (b"\xef\xbb\xbf" if (like or b"").startswith(b"\xef\xbb\xbf") else b"") + text.encode()


# --- JSON ----------------------------------------------------------------------------------------------------------


def _tree(path: Path, text: str) -> Node:
    root = parse_json5(SourceText(path, text))
    if not isinstance(root.value, dict):
        raise ConfigError(f"{path} holds no object.", _UNCHANGED)
    return root


def _with(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    """Return `text` with a member or an item, and the change as it was made; None where it is there already."""
    text = text if text.strip() else "{\n}\n"
    node, keys, there = _tree(path, text), change.keys, 0
    while there < len(keys):
        if not isinstance(node.value, dict):
            raise _no_place(path, node, keys[:there], "object")
        if (below := node.value.get(keys[there])) is None:
            value: object = [change.value] if change.kind == "item" else change.value
            for key in reversed(keys[there + 1 :]):
                value = {key: value}
            splices = json5.insert(node, {keys[there]: value})
            return json5.spliced(text, splices), replace(change, there=there)
        node, there = below, there + 1
    if change.kind == "item":
        if not isinstance(node.value, list):
            raise _no_place(path, node, keys, "list")
        if any(item.plain() == change.value for item in node.value):
            return text, None
        return json5.spliced(text, json5.append(node, change.value)), replace(change, there=there)
    if node.plain() == change.value:
        return text, None
    splice = json5.Splice(node.start, node.end, json.dumps(change.value, ensure_ascii=False))
    return json5.spliced(text, [splice]), replace(change, old=text[node.start : node.end], there=there)


def _no_place(path: Path, node: Node, keys: Sequence[str], kind: str) -> ConfigError:
    return ConfigError(f"{'.'.join(keys)} is no {kind} (line {node.line} of {path}).", _UNCHANGED)


def _without(path: Path, text: str, change: HostChange) -> str:
    """Return `text` without a member or an item, and without what is empty then and was not there before."""
    node = _tree(path, text).get(*change.keys)
    if node is None:
        return text
    if change.kind == "item":
        items = node.value if isinstance(node.value, list) else []
        item = next((item for item in items if item.plain() == change.value), None)
        if item is None:
            return text
        text = json5.spliced(text, json5.remove(node, item))
        if len(items) > 1:
            return text
    elif node.plain() != change.value:
        named = ".".join(change.keys)
        raise ConfigError(f"{named} was edited after memory-tui wrote it (line {node.line} of {path}).", _BY_HAND)
    elif change.old is not None:
        return json5.spliced(text, [json5.Splice(node.start, node.end, change.old)])
    for depth in range(len(change.keys), change.there, -1):
        root = _tree(path, text)
        below, above = root.get(*change.keys[:depth]), root.get(*change.keys[: depth - 1])
        if below is None or above is None or (depth < len(change.keys) and below.value):
            break
        text = json5.spliced(text, json5.remove(above, below))
    return text


# --- TOML ----------------------------------------------------------------------------------------------------------


def _table(change: HostChange, newline: str) -> str:
    """Return the table of a change; its values are text, truth values and lists of text.

    Text is a basic string of TOML: JSON's, except that it wants DEL escaped as well.
    """
    members = change.value if isinstance(change.value, Mapping) else {}
    rows = [f"{key} = {json.dumps(member, ensure_ascii=False)}" for key, member in members.items()]
    return newline.join([f"[{'.'.join(change.keys)}]", *rows, ""]).replace("\x7f", "\\u007f")


def _value(path: Path, text: str, keys: Sequence[str]) -> object:
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", _UNCHANGED) from error
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _with_table(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    """Return `text` with a table at its end, and the change as it was made; None where it is there already."""
    value, named = _value(path, text, change.keys), ".".join(change.keys)
    if value == change.value:
        return text, None
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    after = f"{text}{gap}{_table(change, newline)}"
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        by_hand = f"Take {named} out by hand, then connect again; nothing was changed."
        raise ConfigError(f"{path} has a {named} of its own, or in a form that takes no other.", by_hand) from None
    return after, change


def _without_table(path: Path, text: str, change: HostChange) -> str:
    """Return `text` without a table, and without the blank line that sets it off."""
    if _value(path, text, change.keys) is None:
        return text
    # Somebody else may have written with other ends of lines since.
    newline = "\r\n" if _table(change, "\r\n") in text else "\n"
    before, table, after = text.partition(_table(change, newline))
    if not table or _value(path, before + after, change.keys) is not None:
        raise ConfigError(f"[{'.'.join(change.keys)}] of {path} was edited after memory-tui wrote it.", _BY_HAND)
    if change.old is None and before.endswith(newline * 2):
        before = before.removesuffix(newline)
    return f"{before}{change.old or ''}{after}"
