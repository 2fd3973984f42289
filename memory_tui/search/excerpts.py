"""Excerpts are what an agent reads of an answer: a passage of each hit, all within a budget of characters.

A chunk spends most of a budget on lines that do not answer. So each hit gives the line that answers best, and what is
left of the budget goes to the lines around, best hit first. No hit is left out: what is recalled is what an agent gets.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence, Set

from msgspec import Struct

from memory_tui import jsstring, tokens
from memory_tui.search.retrieve import Evidence
from memory_tui.search.score import kept_stage
from memory_tui.search.second_stage import Window
from memory_tui.search.trace import Candidate, ChunkRef, Trace

# --- snippets ------------------------------------------------------------------------------------------------------

LENGTH = 700
"""UTF-16 units of a snippet (OpenClaw)."""


class Snippet(Struct, frozen=True):
    """The text shown, and how many lines of the chunk stand before it."""

    text: str
    lines_before: int


def head(text: str) -> Snippet:
    """Return the first 700 UTF-16 units, never half a character (OpenClaw)."""
    return Snippet(jsstring.utf16_head(text, LENGTH), 0)


def matches(text: str, weights: Mapping[str, float]) -> list[tuple[int, str]]:
    """Return where the words of `weights` stand in `text`, as (character, word) in order; words match by stem."""
    stem_of = {stem: word for word in weights for stem in tokens.word_stems(word)}
    result = [(start, stem_of[stem]) for start, _, stem in tokens.spans(text) if stem in stem_of]
    if not text.isascii():
        data = text.encode("utf-8", "replace")
        result = [(len(data[:start].decode("utf-8", "replace")), word) for start, word in result]
    # unicode61 sees a whole clause of Chinese as one word, so bigrams are looked up as they are.
    for gram in (word for word in weights if tokens.is_cjk(word)):
        result += [(match.start(), gram) for match in re.finditer(f"(?={re.escape(gram)})", text)]
    return sorted(result)


_WITHIN_WORD = re.compile(r"[^\W\u2e80-\uffff]{2}")
"""Two characters of one word, where words end with a space."""


def window(text: str, weights: Mapping[str, float], length: int = LENGTH) -> Snippet:
    """Return `length` UTF-16 units around the words that say most, no half of a line end at their end."""
    units, start = jsstring.utf16_places(text), 0
    if units[-1] > length and (words := matches(text, weights)):
        first, last = _densest([(units[at], units[at] + jsstring.utf16_len(word), word) for at, word in words], weights)
        room = length - (last - first)
        start = text.rfind("\n", 0, bisect_left(units, first)) + 1
        # Begin with the line of the first word when it is near, otherwise where the room allows.
        if first - units[start] > room:
            start = bisect_left(units, max(0, min(first - room // 2, units[-1] - length)))
        if start and _WITHIN_WORD.match(text, start - 1):
            start = next((at + 1 for at in range(start, bisect_left(units, first)) if text[at].isspace()), start)
    return Snippet(jsstring.utf16_head(text[start:], length).removesuffix("\r"), text.count("\n", 0, start))


def _densest(words: Sequence[tuple[int, int, str]], weights: Mapping[str, float]) -> tuple[int, int]:
    """Return where the window of LENGTH begins and ends whose distinct `words` (start, end, word) weigh most."""
    best, bounds, end, inside = -1.0, (0, 0), 0, Counter[str]()
    for at, (start, _, first) in enumerate(words):
        # The window moves along the words: each enters it once and leaves it once.
        while end < len(words) and (end < at or words[end][1] <= start + LENGTH):
            inside[words[end][2]] += 1
            end += 1
        # A repeated word counts a little, so that of two windows with the same words the denser one wins.
        value = sum(weights[word] for word, count in inside.items() if count) + 0.01 * (end - at)
        if value > best:
            best, bounds = value, (start, words[end - 1][1] if end > at else start)
        inside[first] -= end > at
    return bounds


# --- excerpts ------------------------------------------------------------------------------------------------------

MOST = 1000
"""Characters of a line; of a longer one a passage has what is around the words."""
_RULER = r"[ \t]*(?=.*-)[-|: \t]+"
_LEADS = re.compile(rf"\s*\n|[ ]{{0,3}}#{{1,6}}\s|{_RULER}\n|[ \t]*\|.*\n{_RULER}\Z|.*:[*_]*\s*\n")
"""A line that tells nothing without the next: blank, a heading, a ruler, the head of a table, or one with a colon."""


class Excerpt(Struct, frozen=True):
    """What an agent reads of `hit`: lines `first` to `last` (1-based, inclusive) of its note."""

    hit: Candidate
    first: int
    last: int
    text: str
    is_whole: bool = True
    """Whether it is all of its chunk."""

    @property
    def lines(self) -> tuple[int, int]:
        """Return the first and the last line of the note that an agent reads."""
        first = self.hit.snippet_line if self.text == self.hit.snippet else self.first
        return first, min(self.last, first + self.text.count("\n"))

    def leaves_out(self, line: int | None) -> str:
        """Return that `line` of the hit's chunk is not sent, and what is, as a sentence; empty for one that is sent."""
        first, last = self.lines
        sent = f"an agent gets {self.hit.chunk.path}#L{first}-L{last} of it"
        return "" if first <= (line or first) <= last else f"Line {line} is not sent: {sent}."


class _Line(Struct, frozen=True):
    """A line of a note; the pieces of one long line share its number."""

    path: str
    number: int
    text: str


class _Core(Struct, frozen=True):
    """Lines `first` to `last` (from 0) of the `lines` of a chunk: the one that answers best, with where it leads."""

    lines: Sequence[_Line]
    first: int
    last: int

    @property
    def own(self) -> Sequence[_Line]:
        """Return the lines themselves."""
        return self.lines[self.first : self.last + 1]


def excerpts(trace: Trace, evidence: Evidence, characters: int) -> tuple[Excerpt, ...]:
    """Return what an agent gets of the answer: a passage of each recalled hit, in their order.

    `evidence` is what `trace` was made of. Without `characters`, or a second stage, they are the snippets.
    """
    stage = kept_stage(evidence, trace.mode)
    texts = [evidence.texts[hit.chunk.rowid] for hit in trace.recalled]
    if stage is None or not characters:
        return tuple(
            Excerpt(hit, hit.chunk.start_line, hit.last_line, hit.snippet, hit.snippet.strip() == text.strip())
            for hit, text in zip(trace.recalled, texts, strict=True)
        )
    weights, taken, cores = dict.fromkeys(trace.plan.words, 1.0), set[_Line](), list[_Core]()
    for hit, text, items in zip(trace.recalled, texts, stage.windows(texts), strict=True):
        cores.append(_core(_lines(hit.chunk, text, weights), items, taken))
        taken.update(cores[-1].own)
    # The best line of each hit stays whole up to half its share; the rest goes to the best hits (FAQs, chats, XQuAD).
    share = characters // (2 * len(cores) or 1)
    reserved, result = sum(min(_cost(core.own), share) for core in cores), list[Excerpt]()
    for hit, text, core in zip(trace.recalled, texts, cores, strict=True):
        reserved -= min(_cost(core.own), share)
        room = characters - reserved
        own = _grown(core, room, taken)
        taken.update(own)
        piece = window("\n".join(line.text for line in own), weights, max(0, room - 1))
        first, last = (own[at].number for at in (piece.lines_before, piece.lines_before + piece.text.count("\n")))
        result.append(Excerpt(hit, first, last, piece.text, piece.text.strip() == text.strip()))
        characters -= len(piece.text) + 1
    return tuple(result)


def _cost(lines: Sequence[_Line]) -> int:
    return sum(len(line.text) + 1 for line in lines)


def _lines(ref: ChunkRef, text: str, weights: Mapping[str, float]) -> list[_Line]:
    """The lines of a chunk; of long ones what is around the words asked."""
    return [
        _Line(ref.path, min(number, ref.end_line), line if len(line) <= MOST else window(line, weights).text)
        for number, line in enumerate(text.split("\n"), ref.start_line)
    ]


def _core(lines: Sequence[_Line], items: Sequence[Window], taken: Set[_Line]) -> _Core:
    """Return the line of `lines` that answers best, where there is one that was not `taken`, and where it leads."""
    first = max(items, key=lambda item: (lines[item.line] not in taken, item.share)).line if items else 0
    last = _led_to(lines, first)
    return _Core(lines, first, last if last < len(lines) else first)


def _grown(core: _Core, room: int, taken: Set[_Line]) -> Sequence[_Line]:
    """Return the core with the lines around it that were not `taken`, as far as there is `room`.

    A line that leads to another comes with that one, unless nothing else is there; none is blank at either end.
    """
    lines, first, last = core.lines, core.first, core.last

    def fits(start: int, end: int) -> bool:
        added = (*lines[start:first], *lines[last + 1 : end + 1])
        return _cost(lines[start : end + 1]) <= room and taken.isdisjoint(added)

    grown: tuple[int, ...] = ()
    while grown != (grown := (first, last)):
        if (below := _led_to(lines, last + 1)) < len(lines) and fits(first, below):
            last = below
        if first and fits(first - 1, last):
            first -= 1
    while first < last and _led_to(lines, last) == len(lines):
        last -= 1
    while first < last and not lines[first].text.strip():
        first += 1
    return lines[first : last + 1]


def _led_to(lines: Sequence[_Line], at: int) -> int:
    """Return the first line from `at` on that says something itself; the number of lines where none does."""
    while at < len(lines) and _LEADS.match(lines[at].text + "\n" + (lines[at + 1].text if at + 1 < len(lines) else "")):
        at += 1
    return at
