"""Changes of a host's files that can be taken back, whatever else was written there meanwhile.

JSON and JSON5 get members and items, TOML gets tables, a plain file is copied whole. Comments, order and layout of what
stands there stay. `applied` gives the new bytes with what taking back needs; `reverted` takes each change out of the
text as it is then, and refuses where one was edited.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config import json5_edit
from memory_tui.config.json5 import Node, SourceText, parse_json5
from memory_tui.errors import ConfigError

Kind = Literal["member", "item", "table", "copy"]
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_HEADER = re.compile(r"[ \t]*(?P<keys>\[.+\])[ \t]*(?:#.*)?\r?\n?\Z")
_BLANK = re.compile(r"\n(\r?\n)\Z")


class HostChange(Struct, frozen=True):
    """One change: `keys` lead to a member of an object, a list that gets an item, a table of TOML; none for a copy.

    Once applied, `old` is the text that stood in its place, and `there` counts the keys that were there before.
    """

    kind: Kind
    keys: tuple[str, ...]
    value: object
    old: str | None = None
    there: int = 0


class FileEdit(Struct, frozen=True):
    """The changes of one file."""

    path: Path
    changes: tuple[HostChange, ...]


def applied(edit: FileEdit, before: bytes | None) -> tuple[bytes, tuple[HostChange, ...]]:
    """The bytes of a file after its changes, and the changes as taking back needs them. Raises ConfigError."""
    [first, *_] = edit.changes
    if first.kind == "copy":
        return str(first.value).encode(), (first,)
    text = _text(edit.path, before)
    done: list[HostChange] = []
    for change in edit.changes:
        text, applied_change = _APPLY[change.kind](edit.path, text, change)
        done += [applied_change] if applied_change is not None else []
    return _encoded(text, before), tuple(done)


def reverted(edit: FileEdit, now: bytes | None) -> bytes | None:
    """The bytes of a file without its changes, None where nothing is left. Raises ConfigError where one was edited."""
    if now is None:
        return None
    [first, *_] = edit.changes
    if first.kind == "copy":
        if now == str(first.value).encode():
            return None
        raise ConfigError(f"{edit.path} was edited after memory-tui wrote it.", "Delete it by hand.")
    text = _text(edit.path, now)
    for change in reversed(edit.changes):
        text = _REVERT[change.kind](edit.path, text, change)
    return _encoded(text, now)


def _text(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: byte {error.start}.", "Mend the file; nothing was changed.") from error


def _encoded(text: str, like: bytes | None) -> bytes:
    return (b"\xef\xbb\xbf" if (like or b"").startswith(b"\xef\xbb\xbf") else b"") + text.encode()


# --- JSON ----------------------------------------------------------------------------------------------------------


def _tree(path: Path, text: str) -> Node:
    root = parse_json5(SourceText(path, text))
    if not isinstance(root.value, dict):
        raise ConfigError(f"{path} holds no object.", "Mend the file; nothing was changed.")
    return root


def _nearest(path: Path, root: Node, keys: Sequence[str]) -> tuple[Node, int]:
    """The node that `keys` reach, and how many of them. Raises ConfigError where one leads into no object."""
    node, there = root, 0
    for key in keys:
        if not isinstance(node.value, dict):
            named = ".".join(keys[:there])
            raise ConfigError(f"{named} is no object (line {node.line} of {path}).", "Mend it; nothing was changed.")
        child = node.value.get(key)
        if child is None:
            break
        node, there = child, there + 1
    return node, there


def _inserted(node: Node, keys: Sequence[str], value: object) -> list[json5_edit.Splice]:
    [first, *rest] = keys
    for key in reversed(rest):
        value = {key: value}
    return json5_edit.insert(node, {first: value})


def _set_member(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    text = text if text.strip() else "{\n}\n"
    node, there = _nearest(path, _tree(path, text), change.keys)
    if there < len(change.keys):
        splices = _inserted(node, change.keys[there:], change.value)
        return json5_edit.spliced(text, splices), replace(change, there=there)
    if node.plain() == change.value:
        return text, None
    new = json.dumps(change.value, ensure_ascii=False)
    splice = json5_edit.Splice(node.start, node.end, new)
    return json5_edit.spliced(text, [splice]), replace(change, old=text[node.start : node.end], there=there)


def _add_item(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    text = text if text.strip() else "{\n}\n"
    node, there = _nearest(path, _tree(path, text), change.keys)
    applied_change = replace(change, there=there)
    if there < len(change.keys):
        return json5_edit.spliced(text, _inserted(node, change.keys[there:], [change.value])), applied_change
    if not isinstance(node.value, list):
        named = ".".join(change.keys)
        raise ConfigError(f"{named} is no list (line {node.line} of {path}).", "Mend it; nothing was changed.")
    if any(item.plain() == change.value for item in node.value):
        return text, None
    return json5_edit.spliced(text, json5_edit.append(node, change.value)), applied_change


def _unset_member(path: Path, text: str, change: HostChange) -> str:
    node = _tree(path, text).get(*change.keys)
    if node is None:
        return text
    if node.plain() != change.value:
        raise ConfigError(
            f"{'.'.join(change.keys)} was edited after memory-tui wrote it (line {node.line} of {path}).",
            "Take it out by hand, or bring back what was written.",
        )
    if change.old is not None:
        return json5_edit.spliced(text, [json5_edit.Splice(node.start, node.end, change.old)])
    return _without(path, text, change.keys, change.there)


def _take_item(path: Path, text: str, change: HostChange) -> str:
    node = _tree(path, text).get(*change.keys)
    items = node.value if node is not None and isinstance(node.value, list) else []
    item_node = next((item for item in items if item.plain() == change.value), None)
    if node is None or item_node is None:
        return text
    text = json5_edit.spliced(text, json5_edit.remove(node, item_node))
    return text if len(items) > 1 else _without(path, text, change.keys, change.there)


def _without(path: Path, text: str, keys: Sequence[str], there: int) -> str:
    """`text` without the member at `keys`, and without those above it that are empty then and were not there before."""
    for depth in range(len(keys), there, -1):
        root = _tree(path, text)
        node, parent = root.get(*keys[:depth]), root.get(*keys[: depth - 1])
        if node is None or parent is None or (depth < len(keys) and node.value):
            break
        text = json5_edit.spliced(text, json5_edit.remove(parent, node))
    return text


# --- TOML ----------------------------------------------------------------------------------------------------------


def toml_table(keys: Sequence[str], value: object) -> str:
    """The table `keys` of TOML; values are text, truth values and lists of text."""
    members = value if isinstance(value, Mapping) else {}
    name = ".".join(key if _BARE.match(key) else _toml(key) for key in keys)
    return "".join([f"[{name}]\n", *(f"{key} = {_toml(member)}\n" for key, member in members.items())])


def _toml(value: object) -> str:
    """Text is a basic string of TOML: JSON's, except that it wants DEL escaped as well."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parsed_toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", "Mend it; nothing was changed.") from error


def _at(data: Mapping[str, Any], keys: Sequence[str]) -> Any:  # noqa: ANN401
    value: Any = data
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _set_table(path: Path, text: str, change: HostChange) -> tuple[str, HostChange | None]:
    before = _parsed_toml(path, text)
    value = _at(before, change.keys)
    if value == change.value:
        return text, None
    begin, end = (len(text), len(text)) if value is None else _table_span(text, change.keys)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if begin < end or not text.strip() else newline if text.endswith("\n") else newline * 2
    table = toml_table(change.keys, change.value).replace("\n", newline)
    after = f"{text[:begin]}{gap}{table}{text[end:]}"
    _check_toml(path, after, _with(before, change.keys, change.value), change.keys)
    return after, replace(change, old=text[begin:end] or None)


def _unset_table(path: Path, text: str, change: HostChange) -> str:
    before = _parsed_toml(path, text)
    value = _at(before, change.keys)
    if value is None:
        return text
    if value != change.value:
        raise ConfigError(
            f"[{'.'.join(change.keys)}] of {path} was edited after memory-tui wrote it.",
            "Take it out by hand, or bring back what was written.",
        )
    begin, end = _table_span(text, change.keys)
    rest = text[:begin]
    if change.old is None and (gap := _BLANK.search(rest)) is not None:
        # The blank line that sets the table off goes with it.
        rest = rest[: gap.start(1)]
    after = f"{rest}{change.old or ''}{text[end:]}"
    old = _at(_parsed_toml(path, change.old or ""), change.keys)
    _check_toml(path, after, _with(before, change.keys, old), change.keys)
    return after


def _check_toml(path: Path, after: str, expected: object, keys: Sequence[str]) -> None:
    """Raise ConfigError unless `after` says what is wanted: the table may be written in a form that is not cut."""
    try:
        right = _filled(tomllib.loads(after)) == _filled(expected)
    except tomllib.TOMLDecodeError:
        right = False
    if not right:
        raise ConfigError(
            f"{path} holds {'.'.join(keys)} in a form that memory-tui does not edit.",
            "Take it out by hand; nothing was changed.",
        )


def _with(data: object, keys: Sequence[str], value: object) -> dict[str, Any]:
    """`data` with `value` at `keys`."""
    table = data if isinstance(data, dict) else {}
    [first, *rest] = keys
    return {**table, first: _with(table.get(first), rest, value) if rest else value}


def _filled(data: object) -> object:
    """`data` without empty tables: a header that leads to others may be left over."""
    if not isinstance(data, dict):
        return data
    members = {key: _filled(member) for key, member in data.items()}
    return {key: member for key, member in members.items() if member not in (None, {})}


def _table_span(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """Where the table `keys` with those below it begins and ends; comments before the next header are outside."""
    begin, end, at = None, len(text), 0
    for line in text.splitlines(keepends=True):
        inside = _header(line)[: len(keys)] == list(keys)
        # What looks like a header may stand in a string or in a list: there the text before it is not whole.
        if (inside if begin is None else not inside and _HEADER.match(line)) and _is_toml(text[:at]):
            if begin is not None:
                end = at
                break
            begin = at
        at += len(line)
    begin = len(text) if begin is None else begin
    lines = text[begin:end].splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        end -= len(lines.pop())
    return begin, end


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _header(line: str) -> list[str]:
    """The keys of a table's header, nothing for any other line."""
    match = _HEADER.match(line)
    if match is None:
        return []
    try:
        data: Any = tomllib.loads(match["keys"])
    except tomllib.TOMLDecodeError:
        return []
    keys = []
    while data and isinstance(data, dict):
        [(key, data)] = data.items()
        keys.append(key)
    return keys


_APPLY: dict[Kind, Callable[[Path, str, HostChange], tuple[str, HostChange | None]]] = {
    "member": _set_member,
    "item": _add_item,
    "table": _set_table,
}
_REVERT: dict[Kind, Callable[[Path, str, HostChange], str]] = {
    "member": _unset_member,
    "item": _take_item,
    "table": _unset_table,
}
