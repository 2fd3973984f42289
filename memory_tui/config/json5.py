"""JSON5 becomes a tree that remembers the position of each value.

Read here and not by a package because the pure Python reader of JSON5 that keeps positions takes two seconds for
100 KB and a quarter of a second to be imported, on every command.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from memory_tui.core.discreet import Discreet
from memory_tui.core.errors import ConfigError

MAX_DEPTH = 200

_SPACE = re.compile(
    r"(?:[\t\n\v\f\r \xa0\ufeff\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]++"
    r"|//[^\n\r\u2028\u2029]*+|/\*.*?\*/)*+",
    re.DOTALL,
)
_STRING = {
    '"': re.compile(r'"((?:[^"\\\n\r]++|\\(?:\r\n|.))*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\\n\r]++|\\(?:\r\n|.))*+)'", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(0(?![0-9])|\r\n|[^0-9ux]))", re.DOTALL)
_BAD_ESCAPE = re.compile(r"\\(?:[1-9]|0[0-9]|u(?![0-9a-fA-F]{4})|x(?![0-9a-fA-F]{2}))")
_ESCAPED = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "0": "\0",
    "\n": "",
    "\r": "",
    "\r\n": "",
    "\u2028": "",
    "\u2029": "",
}
_NUMBER = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|(Infinity|NaN)"
    r"|((?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?))(?![\w$.])"
)
_NAME = re.compile(r"(?:[^\W\d]|\$|\\u[0-9a-fA-F]{4})(?:[\w$\u200c\u200d]|\\u[0-9a-fA-F]{4})*")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

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
        """Line and column of a character, both from 1; columns count code points."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


class Node(Discreet, frozen=True):
    """One value: what it is, and its characters `source.text[start:end]`.

    `value` is a scalar, a list of nodes, or a dictionary of nodes; `repeated` are the keys that an object has more
    than once, of which the last one counts. Never shown by repr: a configuration holds secrets.
    """

    HIDDEN = ("value", "source")

    value: Scalar | list[Node] | dict[str, Node]
    source: SourceText
    start: int
    end: int
    repeated: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        """The line it begins on, from 1."""
        return self.source.at(self.start)[0]

    @property
    def column(self) -> int:
        """The column it begins at, from 1."""
        return self.source.at(self.start)[1]

    def get(self, *keys: str) -> Node | None:
        """The node below, key by key; None where there is no such thing."""
        node: Node | None = self
        for key in keys:
            if node is None or not isinstance(node.value, dict):
                return None
            node = node.value.get(key)
        return node

    def children(self) -> Iterator[tuple[str, Node]]:
        """Key and node of an object's members; nothing for any other value."""
        if isinstance(self.value, dict):
            yield from self.value.items()

    def plain(self) -> object:
        """The value as ordinary dictionaries, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def parse_json5(source: SourceText) -> Node:
    """The tree of `source`. Raises ConfigError with line and column where it stops being JSON5."""
    reader = _Reader(source)
    root = reader.value(reader.skip(0), 0)
    rest = reader.skip(root.end)
    if rest < len(source.text):
        raise reader.error(rest, "nothing may follow the value")
    return root


def blank_end(text: str, at: int) -> int:
    """Where the white space and the comments that begin at `at` end."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


class _Reader:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text

    def error(self, offset: int, wanted: str) -> ConfigError:
        line, column = self.source.at(offset)
        return ConfigError(
            f"{self.source.path} is not valid JSON5: line {line}, column {column}: {wanted}.",
            "Mend that line; nothing was changed.",
            line,
            column,
        )

    def skip(self, at: int) -> int:
        """The next character that is neither white space nor comment."""
        at = blank_end(self.text, at)
        if self.text.startswith("/*", at):
            raise self.error(at, "this comment is never closed")
        return at

    def value(self, at: int, depth: int) -> Node:
        first = self.text[at : at + 1]
        if depth > MAX_DEPTH:
            raise self.error(at, f"more than {MAX_DEPTH} brackets inside each other")
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        if first in ("'", '"'):
            text, end = self._string(at)
            return Node(text, self.source, at, end)
        return self._bare(at)

    def _bare(self, at: int) -> Node:
        if number := _NUMBER.match(self.text, at):
            return Node(_number(number), self.source, at, number.end())
        word = _NAME.match(self.text, at)
        if word is None or word[0] not in _WORDS:
            raise self.error(at, "a value is missing" if word is None else "a word that is no value; text needs quotes")
        return Node(_WORDS[word[0]], self.source, at, word.end())

    def _object(self, start: int, depth: int) -> Node:
        members: dict[str, Node] = {}
        repeated: list[str] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "}":
            key, at = self._key(at)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise self.error(at, "a colon is missing after the key")
            if key in members:
                repeated.append(key)
            members[key] = node = self.value(self.skip(at + 1), depth + 1)
            at = self._comma(node.end, "}")
        return Node(members, self.source, start, at + 1, tuple(repeated))

    def _array(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            items.append(self.value(at, depth + 1))
            at = self._comma(items[-1].end, "]")
        return Node(items, self.source, start, at + 1)

    def _comma(self, at: int, closing: str) -> int:
        at = self.skip(at)
        if self.text[at : at + 1] == ",":
            return self.skip(at + 1)
        if self.text[at : at + 1] != closing:
            raise self.error(at, f"a comma or {closing} is missing")
        return at

    def _key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] in ('"', "'"):
            return self._string(at)
        name = _NAME.match(self.text, at)
        if name is None:
            raise self.error(at, "a key or } is missing")
        return _unescaped(name[0]), name.end()

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING[self.text[at]].match(self.text, at)
        if found is None:
            raise self.error(at, "this text is never closed on its line")
        if "\\" not in found[1]:
            return found[1], found.end()
        # Escaped backslashes are put out of the way, so that what follows one is not taken for an escape.
        if bad := _BAD_ESCAPE.search(found[1].replace("\\\\", "  ")):
            raise self.error(at + 1 + bad.start(), "an escape that JSON5 does not know")
        return _unescaped(found[1]), found.end()


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda m: chr(int(m[1] or m[2], 16)) if m[3] is None else _ESCAPED.get(m[3], m[3]), text)
    # Two escapes can be one character; half of one is none.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(found: re.Match[str]) -> int | float:
    sign = -1 if found[1] == "-" else 1
    if found[2]:
        return sign * int(found[2], 16)
    text = found[3] or found[4]
    # Longer than any whole number that a float tells apart from its neighbours.
    return sign * (int(text) if text.isdigit() and len(text) < 300 else float(text))
