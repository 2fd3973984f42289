"""JSON5 becomes a tree that remembers the position of each value.

pyjson5 says what is JSON5 and what its values are. It keeps no positions, which messages name and the editor needs:
those are counted here, in a text that it has read.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from memory_tui.durable import open_regular
from memory_tui.errors import ConfigError
from memory_tui.secrets import Discreet

MAX_DEPTH = 200

_SPACE = re.compile(r"(?:[\s\ufeff]++|//[^\n\r\u2028\u2029]*+|/\*.*?\*/)*+", re.DOTALL)
_TOKEN = re.compile(
    r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|[^\s\ufeff{}\[\]:,/"']++""",
    re.DOTALL,
)
_REASONS = {
    "Json5NestingTooDeep": f"more than {MAX_DEPTH} brackets inside each other",
    "Json5ExtraData": "nothing may follow the value",
    "Json5EOF": "a value is missing, cannot be read, or is never closed",
}

_PLACE = re.compile(r"near (\d+)")

Scalar = str | int | float | bool | None


class SourceText(Discreet, frozen=True):
    """A text and the file it came from."""

    HIDDEN = ("text",)

    path: Path
    text: str

    def at(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character, both from 1; columns count code points."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)


class Node(Discreet, frozen=True):
    """One value: what it is, and its characters `source.text[start:end]`.

    `value` is a scalar, a list of nodes, or a dictionary of nodes; of a key that an object has more than once, the last
    one counts. Never shown by repr: a configuration holds secrets.
    """

    HIDDEN = ("value", "source")

    value: Scalar | list[Node] | dict[str, Node]
    source: SourceText
    start: int
    end: int

    @property
    def line(self) -> int:
        """Return the line it begins on, from 1."""
        return self.source.at(self.start)[0]

    def get(self, *keys: str) -> Node | None:
        """Return the node below, key by key; None where there is no such thing."""
        node: Node | None = self
        for key in keys:
            if node is None or not isinstance(node.value, dict):
                return None
            node = node.value.get(key)
        return node

    def children(self) -> Iterator[tuple[str, Node]]:
        """Yield key and node of an object's members; nothing for any other value."""
        if isinstance(self.value, dict):
            yield from self.value.items()

    def plain(self) -> object:
        """Return the value as ordinary dictionaries, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def word_of(node: Node | None) -> str:
    """Return the text of `node` without blanks around it; empty where it is no text."""
    return node.value.strip() if node is not None and isinstance(node.value, str) else ""


def parse_json5(source: SourceText) -> Node:
    """Return the tree of `source`. Raises ConfigError with line and column where it stops being JSON5."""
    import pyjson5

    try:
        pyjson5.decode(source.text, MAX_DEPTH)
    except pyjson5.Json5DecoderException as error:
        name, words, what = type(error).__name__, str(error.args[0]), error.args[-1]
    else:
        return _node(source, blank_end(source.text, 0))
    # Raised here because what pyjson5 raises holds all values so far, secrets too.
    place = _PLACE.search(words)
    line, column = source.at(max(0, int(place[1]) - 1) if place else 0)
    reason = _REASONS.get(name) or f"{what if isinstance(what, str) else ','!r} cannot stand here; text needs quotes"
    raise ConfigError(
        f"{source.path} is not valid JSON5 near line {line}, column {column}: {reason}.",
        "Mend that line; nothing was changed.",
        line,
        column,
    )


def read_json5(path: Path, most: int) -> Node:
    """Return the tree of the file at `path`. Raises OSError, for one of more than `most` bytes too, and ConfigError."""
    with open_regular(path) as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MB")
    return parse_json5(SourceText(path, raw.decode("utf-8", "replace")))


def blank_end(text: str, at: int) -> int:
    """Return where the white space and the comments that begin at `at` end."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _node(source: SourceText, start: int) -> Node:
    """Return the value that begins at `start` of a text that is JSON5."""
    import pyjson5

    text, members, items = source.text, dict[str, Node](), list[Node]()
    if text[start] not in "{[":
        end = _token_end(text, start)
        return Node(pyjson5.decode(text[start:end]), source, start, end)
    in_object = text[start] == "{"
    at = blank_end(text, start + 1)
    while text[at] not in "}]":
        key = ""
        if in_object:
            end = _token_end(text, at)
            key = text[at:end]
            if not key.isidentifier():
                key = pyjson5.decode(key if key[0] in "\"'" else f'"{key}"')
            at = blank_end(text, blank_end(text, end) + 1)
        node = _node(source, at)
        if in_object:
            members[key] = node
        else:
            items.append(node)
        at = blank_end(text, node.end)
        if text[at] == ",":
            at = blank_end(text, at + 1)
    return Node(members if in_object else items, source, start, at + 1)


def _token_end(text: str, at: int) -> int:
    token = _TOKEN.match(text, at)
    assert token is not None
    return token.end()


# --- edits ------------------------------------------------------------------------------------------------------------

_SPACES = re.compile(r"[ \t]*")
_KEY = re.compile(r'"([A-Za-z_$][\w$]*)":', re.ASCII)
"""A key in quotes that could be written without; in a text a quote has a backslash."""
_TAIL = re.compile(r"(?:[ \t]|/\*(?:[^*\n]|\*(?!/))*\*/)*(?://[^\n]*)?", re.DOTALL)
"""What may follow a value on its line: spaces and comments."""


class Splice(Struct, frozen=True):
    """Put `text` in the place of the characters `start` to `end` of a file."""

    start: int
    end: int
    text: str


def spliced(text: str, splices: Sequence[Splice]) -> str:
    """Return `text` after all of `splices`, which must not overlap; those at one place come in their order."""
    parts: list[str] = []
    at = 0
    for splice in sorted(splices, key=lambda s: s.start):
        parts += [text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*parts, text[at:]])


def replace(node: Node, value: Scalar) -> Splice:
    """Put `value` in the place of `node`'s."""
    return Splice(node.start, node.end, json.dumps(value, ensure_ascii=False))


def insert(parent: Node, members: Mapping[str, object]) -> list[Splice]:
    """Put new members at the end of the object `parent`, on lines and without quotes where its others are.

    A member is a scalar, or a mapping that becomes an object. Comments stay with the member they stand beside.
    """
    text, siblings, at = parent.source.text, _siblings(parent), parent.start + 1
    comment = "" if siblings else text[at : parent.end - 1].strip()
    broken = bool(comment) or "\n" in (text[siblings[-1].end : parent.end] if siblings else text)
    newline, outer, step = _newline(text), _indent(text, parent.start), _step(text)
    indent = _indent(text, siblings[-1].start) if siblings else outer + step
    whole = json.dumps(members, ensure_ascii=False, indent=step if broken else None)
    # Keys are written in quotes where they all are, and where none is seen.
    whole = _KEY.sub(r"\1:", whole) if re.search(r"[{,]\s*[A-Za-z_$][\w$]*\s*:", text) else whole
    lines = [line.removeprefix(step) for line in whole.split("\n")[1:-1]] if broken else [whole[1:-1]]
    inside = f"{newline}{indent}".join(lines)
    if siblings:
        return _behind(siblings[-1], parent, inside, indent if broken else None)
    if not broken:
        return [Splice(at, parent.end - 1, f" {inside} ")]
    inside = f"{newline}{indent}{inside}"
    return [Splice(at, at, f"{inside},") if comment else Splice(at, parent.end - 1, f"{inside}{newline}{outer}")]


def append(array: Node, value: object) -> list[Splice]:
    """Put `value` at the end of `array`, on a line of its own where the others have one."""
    text, siblings, item = array.source.text, _siblings(array), json.dumps(value, ensure_ascii=False)
    if not siblings:
        at = array.end - 1
        return [Splice(array.start + 1 if not text[array.start + 1 : at].strip() else at, at, item)]
    broken = "\n" in text[array.start : siblings[-1].start]
    return _behind(siblings[-1], array, item, _indent(text, siblings[-1].start) if broken else None)


def _behind(last: Node, parent: Node, item: str, indent: str | None) -> list[Splice]:
    """Put `item` behind the last one, on a line with `indent` if there is one; a comma at the end stays there."""
    text = parent.source.text
    comma = _comma_after(text, last.end)
    at = last.end if comma is None else comma + 1
    if indent is None:
        return [Splice(at, at, f", {item}" if comma is None else f" {item},")]
    end = _line_end(text, at)
    added = Splice(end, end, f"{_newline(text)}{indent}{item}{',' if comma is not None else ''}")
    return [added] if comma is not None else [Splice(last.end, last.end, ","), added]


def remove(parent: Node, child: Node) -> list[Splice]:
    """Take `child`, a member or an item of `parent`, out with its key, its comma, its line; comments stay."""
    text, siblings = parent.source.text, _siblings(parent)
    at = next(number for number, node in enumerate(siblings) if node.start == child.start)
    before = _comma_after(text, siblings[at - 1].end) if at else None
    after = _comma_after(text, child.end)
    begin = blank_end(text, parent.start + 1 if before is None else before + 1)
    end = child.end if after is None else after + 1
    splices = [Splice(before, before + 1, "")] if after is None and before is not None else []
    line = begin
    while line and text[line - 1] in " \t":
        line -= 1
    trailing = _SPACES.match(text, end)
    rest = trailing.end() if trailing else end
    if len(siblings) == 1 and not text[parent.start + 1 : begin].strip() and not text[end : parent.end - 1].strip():
        begin, end = parent.start + 1, parent.end - 1
    elif text[line - 1 : line] == "\n" and text[rest : rest + 1] in ("\r", "\n"):
        begin = line - 1 - (text[line - 2 : line - 1] == "\r")
        end = rest
    elif after is not None and at + 1 < len(siblings):
        end = rest
    else:
        begin = max(line, 0 if before is None else before + 1)
    return [*splices, Splice(begin, end, "")]


def _siblings(parent: Node) -> list[Node]:
    """Return the members or items that stand between the brackets of `parent` itself, in the order of the text."""
    nodes = parent.value if isinstance(parent.value, list) else [node for _, node in parent.children()]
    inside = [node for node in nodes if node.source is parent.source and parent.start < node.start < parent.end]
    return sorted(inside, key=lambda node: node.start)


def _indent(text: str, at: int) -> str:
    """Return the white space that the line of a character begins with."""
    match = _SPACES.match(text, text.rfind("\n", 0, at) + 1)
    return match[0] if match else ""


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    """Return one level of indentation, as the first indented line of the file has it."""
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match else "  "


def _comma_after(text: str, at: int) -> int | None:
    """Return where the comma after a value is, past comments; None where there is none."""
    at = blank_end(text, at)
    return at if text[at] == "," else None


def _line_end(text: str, at: int) -> int:
    """Return the end of what belongs to a value on its line: before the break, or before more that is no comment."""
    match = _TAIL.match(text, at)
    end = match.end() if match else at
    return end - 1 if text[end - 1 : end] == "\r" and end > at else end
