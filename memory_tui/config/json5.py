"""JSON5 becomes a tree that remembers the position of each value.

pyjson5 says what is JSON5 and what its values are. It keeps no positions, which messages name and the editor needs:
those are counted here, in a text that it has read.
"""

from __future__ import annotations

import errno
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from memory_tui.durable import open_regular
from memory_tui.errors import ConfigError
from memory_tui.secrets.discreet import Discreet

MAX_DEPTH = 200

_SPACE = re.compile(
    r"(?:[\t\n\v\f\r \xa0\ufeff\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]++"
    r"|//[^\n\r\u2028\u2029]*+|/\*.*?\*/)*+",
    re.DOTALL,
)
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


class SourceText(Discreet, frozen=True, dict=True):
    """A text and the file it came from; knows the line of every character."""

    HIDDEN = ("text",)

    path: Path
    text: str

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\n", self.text))]

    def at(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character, both from 1; columns count code points."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


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

    @property
    def column(self) -> int:
        """Return the column it begins at, from 1."""
        return self.source.at(self.start)[1]

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
    reason = _REASONS.get(name) or f"{what!r} cannot stand here; text needs quotes"
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
