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

# White space and comments, as many as there are; then a text in quotes, or a word without.
_SPACE = re.compile(r"(?:[\s\ufeff]++|//[^\n\r\u2028\u2029]*+|/\*.*?\*/)*+", re.DOTALL)
_TOKEN = re.compile(r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|[^\s\ufeff{}\[\]:,/"']++""", re.DOTALL)
_REASONS = {
    "Json5NestingTooDeep": f"more than {MAX_DEPTH} brackets inside each other",
    "Json5ExtraData": "nothing may follow the value",
    "Json5EOF": "a value is missing, cannot be read, or is never closed",
}
"""What is wrong in a text, in words, by the name of what pyjson5 raises."""
_OFFSET = re.compile(r"near (\d+)")
"""The number of the character, from 1, in a message of pyjson5."""

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

    def items(self) -> list[Node]:
        """Return the nodes of a list; nothing for any other value."""
        return self.value if isinstance(self.value, list) else []

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
        kind = type(error).__name__
        offset = _OFFSET.search(str(error.args[0]))
        # The last argument is the character in the way, or what was read before a comma was missing.
        character = error.args[-1] if isinstance(error.args[-1], str) else ","
    else:
        return _node(source, blank_end(source.text, 0))
    # Raised here because what pyjson5 raises holds all values so far, secrets too.
    line, column = source.at(max(0, int(offset[1]) - 1) if offset else 0)
    reason = _REASONS.get(kind, f"{character!r} cannot stand here; text needs quotes")
    message = f"{source.path} is not valid JSON5 near line {line}, column {column}: {reason}."
    raise ConfigError(message, "Mend that line; nothing was changed.", line, column)


def read_json5(path: Path, most: int) -> Node:
    """Return the tree of the file at `path`. Raises OSError, for one of more than `most` bytes too, and ConfigError."""
    with open_regular(path) as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MB")
    return parse_json5(SourceText(path, raw.decode("utf-8", "replace")))


def blank_end(text: str, start: int) -> int:
    """Return where the white space and the comments that begin at `start` end."""
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _node(source: SourceText, start: int) -> Node:
    """Return the value that begins at `start` of a text that is JSON5."""
    import pyjson5

    text = source.text
    if text[start] not in "{[":
        end = _token_end(text, start)
        return Node(pyjson5.decode(text[start:end]), source, start, end)
    is_object = text[start] == "{"
    members: dict[str, Node] = {}
    items: list[Node] = []
    # `at` is where the next member or item begins, or the closing bracket stands.
    at = blank_end(text, start + 1)
    while text[at] not in "}]":
        if is_object:
            end = _token_end(text, at)
            key = text[at:end]
            if not key.isidentifier():
                # In quotes, or without and with an escape in it, which is read as if it were in quotes.
                key = pyjson5.decode(key if key[0] in "\"'" else f'"{key}"')
            colon = blank_end(text, end)
            node = members[key] = _node(source, blank_end(text, colon + 1))
        else:
            node = _node(source, at)
            items.append(node)
        at = blank_end(text, node.end)
        if text[at] == ",":
            at = blank_end(text, at + 1)
    return Node(members if is_object else items, source, start, at + 1)


def _token_end(text: str, start: int) -> int:
    """Return where the word or the text in quotes ends that begins at `start`: pyjson5 has read that there is one."""
    token = _TOKEN.match(text, start)
    assert token is not None
    return token.end()


# --- edits ------------------------------------------------------------------------------------------------------------

_SPACES = re.compile(r"[ \t]*")
_QUOTED_KEY = re.compile(r'"([A-Za-z_$][\w$]*)":', re.ASCII)
"""A key in quotes that could be written without; in a text a quote has a backslash."""
_BARE_KEY = re.compile(r"[{,]\s*[A-Za-z_$][\w$]*\s*:")
"""A key without quotes: in a text that has one, new keys are written without, too."""
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
    # How much of `text` is in `parts` already.
    at = 0
    for splice in sorted(splices, key=lambda s: s.start):
        parts += [text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*parts, text[at:]])


def replace(node: Node, value: Scalar) -> Splice:
    """Return the splice that puts `value` in the place of `node`'s."""
    return Splice(node.start, node.end, json.dumps(value, ensure_ascii=False))


def insert(parent: Node, members: Mapping[str, object]) -> list[Splice]:
    """Return the splices that put new members at the end of the object `parent`, in the style of the file.

    They get lines of their own where the members before have them, and keys without quotes where the file has such
    keys. A member is a scalar, or a mapping that becomes an object. Comments stay with the member they stand beside.
    """
    text = parent.source.text
    siblings = _siblings(parent)
    begin, end = parent.start + 1, parent.end - 1
    # Between brackets without members nothing else than a comment can stand.
    comment = "" if siblings else text[begin:end].strip()
    # Lines of their own: behind the last member there is a line end; without members, the file has lines at all.
    on_lines = bool(comment) or "\n" in (text[siblings[-1].end : end] if siblings else text)
    step = _step(text)
    outer = _indent(text, parent.start)
    indent = _indent(text, siblings[-1].start) if siblings else outer + step
    written = json.dumps(members, ensure_ascii=False, indent=step if on_lines else None)
    if _BARE_KEY.search(text):
        written = _QUOTED_KEY.sub(r"\1:", written)
    # Without its brackets, which are the first and last line, or character; with lines each has one level less then.
    lines = [line.removeprefix(step) for line in written.split("\n")[1:-1]] if on_lines else [written[1:-1]]
    line_start = f"{_newline(text)}{indent}"
    inside = line_start.join(lines)
    if siblings:
        return _behind(siblings[-1], inside, indent if on_lines else None)
    if comment:
        return [Splice(begin, begin, f"{line_start}{inside},")]
    return [Splice(begin, end, f"{line_start}{inside}{_newline(text)}{outer}" if on_lines else f" {inside} ")]


def append(array: Node, value: object) -> list[Splice]:
    """Return the splices that put `value` at the end of `array`, on a line of its own where the others have one."""
    text = array.source.text
    siblings = _siblings(array)
    item = json.dumps(value, ensure_ascii=False)
    if not siblings:
        begin, end = array.start + 1, array.end - 1
        # Behind a comment between the brackets; blanks alone make way.
        has_comment = bool(text[begin:end].strip())
        return [Splice(end if has_comment else begin, end, item)]
    last = siblings[-1]
    on_lines = "\n" in text[array.start : last.start]
    return _behind(last, item, _indent(text, last.start) if on_lines else None)


def _behind(last: Node, item: str, indent: str | None) -> list[Splice]:
    """Return the splices that put `item` behind the `last` one: on a line of its own, behind `indent`.

    It stands on the same line where `indent` is None. Where the `last` one has a comma behind it, `item` gets one, too.
    """
    text = last.source.text
    comma = _comma_after(text, last.end)
    # `at` is behind the last one, or behind its comma.
    if comma is None:
        comma_at_end, at = "", last.end
    else:
        comma_at_end, at = ",", comma + 1
    if indent is None:
        return [Splice(at, at, f" {item}," if comma_at_end else f", {item}")]
    end = _line_end(text, at)
    added = Splice(end, end, f"{_newline(text)}{indent}{item}{comma_at_end}")
    return [added] if comma_at_end else [Splice(last.end, last.end, ","), added]


def remove(parent: Node, child: Node) -> list[Splice]:
    """Return the splices that take `child` out of `parent`, with its key, its comma and its line; comments stay.

    It is a member of an object or an item of a list.
    """
    text = parent.source.text
    siblings = _siblings(parent)
    index = [node.start for node in siblings].index(child.start)
    comma_before = _comma_after(text, siblings[index - 1].end) if index else None
    comma_after = _comma_after(text, child.end)
    # Between what is before it and the end of `parent`: there its key begins, behind spaces and comments that stay.
    outer_start, outer_end = parent.start + 1, parent.end - 1
    if comma_before is not None:
        outer_start = comma_before + 1
    begin = blank_end(text, outer_start)
    end = child.end if comma_after is None else comma_after + 1
    # The same with the spaces before it on its line, and behind it.
    indent_start = len(text[:begin].rstrip(" \t"))
    spaces_end = len(text) - len(text[end:].lstrip(" \t"))
    has_no_comments = not f"{text[outer_start:begin]}{text[end:outer_end]}".strip()
    if len(siblings) == 1 and has_no_comments:
        # Nothing else is between the brackets: they close up.
        begin, end = outer_start, outer_end
    elif text[:indent_start].endswith("\n") and text[spaces_end:].startswith(("\r", "\n")):
        # It has its lines for itself: the break before them goes too.
        begin = len(text[:indent_start].removesuffix("\n").removesuffix("\r"))
        end = spaces_end
    elif comma_after is not None and index + 1 < len(siblings):
        # The next one takes its place on the line.
        end = spaces_end
    else:
        begin = max(indent_start, outer_start)
    splices = [Splice(begin, end, "")]
    if comma_after is None and comma_before is not None:
        # The one before it is the last now, and keeps no comma, as this one had none.
        splices.insert(0, Splice(comma_before, comma_before + 1, ""))
    return splices


def _siblings(parent: Node) -> list[Node]:
    """Return the members or items that stand between the brackets of `parent` itself, in the order of the text."""
    nodes = [*parent.items(), *(node for _, node in parent.children())]
    inside = [node for node in nodes if node.source is parent.source and parent.start < node.start < parent.end]
    return sorted(inside, key=lambda node: node.start)


def _indent(text: str, at: int) -> str:
    """Return the white space that the line of a character begins with."""
    match = _SPACES.match(text, text.rfind("\n", 0, at) + 1)
    return match[0] if match else ""


def _newline(text: str) -> str:
    """Return the line end of a file: that of Windows where it has one."""
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    """Return one level of indentation, as the first indented line of the file has it."""
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match else "  "


def _comma_after(text: str, end: int) -> int | None:
    """Return where the comma after a value that ends at `end` is, past comments; None where there is none."""
    following = blank_end(text, end)
    return following if text[following] == "," else None


def _line_end(text: str, start: int) -> int:
    """Return the end of what belongs to a value on its line: before the break, or before more that is no comment."""
    match = _TAIL.match(text, start)
    return start + len(match[0].removesuffix("\r")) if match else start
