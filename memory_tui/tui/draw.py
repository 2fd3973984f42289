"""Drawing without markup: safe text with style names, cut by terminal cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from weakref import WeakKeyDictionary

from rich.cells import cell_len, get_character_cell_size, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.css.model import RuleSet
from textual.css.styles import RenderStyles
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.strip import Strip

Piece = tuple[str, str]
"""Text that is already safe to show, and the name of its style (empty for the widget's own)."""

NOT_FIRST = "，。、；：？！）」』】》〉”’…"
"""Punctuation that does not begin a line."""


def fit(text: str, width: int, align: str = "left") -> str:
    """`text` in exactly `width` cells; what does not fit is cut and marked with an ellipsis."""
    if width <= 0:
        return ""
    plain = text.isascii() and text.isprintable()
    if not plain and len(text) > (longest := 2 * width + 16) and cell_len(text[:longest]) > width + 2:
        # What comes after it is neither shown nor worth measuring.
        text = text[:longest]
    length = len(text) if plain else cell_len(text)
    if length > width:
        return (text[: width - 1] if plain else set_cell_size(text, width - 1)) + "…"
    space = " " * (width - length)
    return space + text if align == "right" else text + space


def fit_path(path: str, width: int) -> str:
    """`path` in at most `width` cells, its beginning cut off where needed: the end names the note."""
    if cell_len(path) <= width:
        return path
    short = path.removeprefix("memory/")
    if cell_len(short) <= width:
        return short
    while short and cell_len(short) > width - 1:
        short = short[1:]
    return "…" + short


def wrap(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where the lines of `text` begin and end when it is broken at spaces to fit `width` cells; one at least."""
    start, size, width = 0, len(text), max(8, width)
    plain = text.isascii()
    while True:
        end = start + width if plain else _reach(text, start, width)
        if end >= size:
            yield start, size
            return
        if plain or not (is_wide(text[end - 1]) or is_wide(text[end])):
            space = text.rfind(" ", start, end + 1)
            end = space + 1 if space > start else end
        elif text[end] in NOT_FIRST and end > start + 1:
            end -= 1
        yield start, end
        start = end


def wrapped(text: str, width: int) -> list[str]:
    """The lines of `text` when it is broken at spaces to fit `width` cells; one at least."""
    return [text[start:end] for start, end in wrap(text, width)]


def is_wide(character: str) -> bool:
    """Whether a character takes two cells, as those of scripts do that break lines anywhere."""
    return not character.isascii() and cell_len(character) == 2


def chop(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where the lines of `text` begin and end when it is broken at the edge of `width` cells; one at least."""
    start, size, plain = 0, len(text), text.isascii()
    while True:
        end = start + width if plain else _reach(text, start, width)
        yield start, min(end, size)
        if end >= size:
            return
        start = end


def _reach(text: str, start: int, width: int) -> int:
    """The end of the longest slice from `start` that fits `width` cells; one character at least."""
    end = min(len(text), start + width)
    used = 0
    for at in range(start, end):
        used += get_character_cell_size(text[at])
        if used > width:
            end = max(start + 1, at)
            break
    # A selector makes the emoji before it wider than its characters are.
    while "\ufe0f" in text[start:end] and end > start + 1 and cell_len(text[start:end]) > width:
        end -= 1
    return end


def marked(text: str, spans: Iterable[tuple[int, int]], style: str = "") -> list[Piece]:
    """`text` with the `spans` of it, in order, drawn as matched words, and the rest in `style`."""
    pieces: list[Piece] = []
    at = 0
    for start, end in spans:
        # Apart from what it selects, a selector has no width.
        start, end = max(start, at), min(end + text.startswith("\ufe0f", end), len(text))
        if start < end:
            pieces += [(text[at:start], style), (text[start:end], "match")]
            at = end
    return [piece for piece in (*pieces, (text[at:], style)) if piece[0]]


def runs(cells: Iterable[Piece]) -> Iterator[Piece]:
    """`cells` with neighbours of one style as one piece: a picture has thousands of cells and few colours in a row."""
    for style, same in groupby(cells, key=itemgetter(1)):
        yield "".join(text for text, _ in same), style


def strip(pieces: Iterable[Piece], width: int, base: Style, style_of: Callable[[str], Style]) -> Strip:
    """`pieces` as one line of exactly `width` cells."""
    line = Strip([Segment(text, base + style_of(name) if name else base) for text, name in pieces if text])
    return line.adjust_cell_length(width, base)


class PartStyles(dict[str, RenderStyles]):
    """The styles of the parts of a widget, each made when it is first asked for."""

    def __init__(self, parts: frozenset[str], make_style: Callable[[str], RenderStyles]) -> None:
        super().__init__()
        self._parts, self._make_style = parts, make_style

    def __contains__(self, part: object) -> bool:
        return part in self._parts

    def __missing__(self, part: str) -> RenderStyles:
        self[part] = done = self._make_style(part)
        return done


class LastingStyles(Stylesheet):
    """Textual's stylesheet, which styles the parts of a widget when they are drawn, and anew only where something they
    depend on changed.

    Textual does so whenever anything above the widget changes, for each of two dozen parts of every list.
    """

    def __init__(self, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._styled: WeakKeyDictionary[DOMNode, tuple[list[RuleSet], object]] = WeakKeyDictionary()
        self._named: dict[frozenset[str], tuple[set[str], set[str]]] = {}
        self._named_by: list[RuleSet] = []

    def _process_component_classes(self, node: DOMNode) -> None:
        parts = node._get_component_classes()
        if not parts:
            return
        rules, state = self.rules, self._state(node, parts)
        before = self._styled.get(node)
        if before is None or before[0] is not rules or before[1] != state:
            self._styled[node] = rules, state
            drawn, styles = node._component_styles, PartStyles(parts, partial(self._style_part, node))
            node._component_styles = styles
            if any(styles[name] != style for name, style in drawn.items()):
                node.refresh()

    def _style_part(self, node: DOMNode, name: str) -> RenderStyles:
        part = DOMNode(classes=name)
        part._attach(node)
        self.apply(part)
        return part.styles

    def _state(self, node: DOMNode, parts: frozenset[str]) -> object:
        """What a rule about `parts` can ask of `node` and of those it is in."""
        names, pseudo = self._asked(parts)
        return [
            (
                above._id,
                names & above._classes,
                [name for name in pseudo if above.has_pseudo_class(name)],
            )
            for above in node.css_path_nodes
        ]

    def _asked(self, parts: frozenset[str]) -> tuple[set[str], set[str]]:
        """The names and the pseudo-classes in the rules about `parts`."""
        if self._named_by is not self.rules:
            self._named_by, self._named = self.rules, {}
        if parts not in self._named:
            part = DOMNode(classes=" ".join(parts))
            about = [rule for name in part._selector_names for rule in self.rules_map.get(name, ())]
            selectors = [row for rule in about for several in rule.selector_set for row in several.selectors]
            self._named[parts] = (
                {row.name for row in selectors},
                {name for row in selectors for name in row.pseudo_classes},
            )
        return self._named[parts]
