"""Excerpts are what an agent reads of an answer: passages around what matched, within a budget of characters.

A chunk spends most of a budget on lines that do not answer. So the windows of the first candidates are put in order by
their own measures and the score of their chunk; each is widened to 200 or 250 tokens of whole lines, and given until
the budget is spent. Chunks stay as they are; lines that follow each other in a note become one excerpt.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice

import numpy as np
from msgspec import Struct, field

from memory_tui import jsstring, tokens
from memory_tui.search.evidence import Evidence
from memory_tui.search.score import kept_stage
from memory_tui.search.second_stage import CANDIDATES, Window
from memory_tui.search.trace import BeyondLimit, Candidate, Recalled, Trace

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
    data = text.encode("utf-8", "replace")
    places = ((start, stem) for stem, start, _ in tokens.stems(text) if stem in stem_of)
    result = [(len(data[:start].decode("utf-8", "replace")), stem_of[stem]) for start, stem in places]
    # unicode61 sees a whole clause of Chinese as one word, so bigrams are looked up as they are.
    for gram in (word for word in weights if tokens.is_cjk(word)):
        at = text.find(gram)
        while at >= 0:
            result.append((at, gram))
            at = text.find(gram, at + 1)
    return sorted(result)


_WITHIN_WORD = re.compile(r"[^\W\u2e80-\uffff]{2}")
"""Two characters of one word, where words end with a space."""


def window(text: str, weights: Mapping[str, float]) -> Snippet:
    """700 UTF-16 units around the words that say most: the window with the greatest sum of distinct word weights."""
    units = jsstring.utf16_places(text)
    if units[-1] <= LENGTH:
        return Snippet(text, 0)
    result = [(units[at], word) for at, word in matches(text, weights)]
    if not result:
        return head(text)
    ends = [at + jsstring.utf16_len(word) for at, word in result]
    best, span, end = -1.0, (0, 0), 0
    inside: Counter[str] = Counter()
    for i, (start, first) in enumerate(result):
        # The window moves along the words: each enters it once and leaves it once.
        while end < len(result) and (end < i or ends[end] <= start + LENGTH):
            inside[result[end][1]] += 1
            end += 1
        # A repeated word counts a little, so that of two windows with the same words the denser one wins.
        value = sum(weights[word] for word, count in inside.items() if count) + 0.01 * (end - i)
        if value > best:
            best, span = value, (start, ends[end - 1] if end > i else start)
        inside[first] -= end > i
    room = LENGTH - (span[1] - span[0])
    line = text.rfind("\n", 0, bisect_left(units, span[0])) + 1
    # Begin with the line of the first word when it is near, otherwise where the room allows.
    middle = max(0, min(span[0] - room // 2, units[-1] - LENGTH))
    start = line if span[0] - units[line] <= room else bisect_left(units, middle)
    if start and _WITHIN_WORD.match(text, start - 1):
        start = next((at + 1 for at in range(start, bisect_left(units, span[0])) if text[at].isspace()), start)
    return Snippet(jsstring.utf16_head(text[start:], LENGTH), text.count("\n", 0, start))


# --- excerpts ------------------------------------------------------------------------------------------------------

LEAST, MOST = 800, 1000
"""Characters of a passage: 200 to 250 tokens of four characters."""
_OF_CHUNK = 0.8
"""How much the score of its chunk counts for a window, beside the window's own measures."""
_REPEATED, _FEWEST_WORDS = 0.85, 6
"""A passage that shares so much of its lines, or with one of another note of its words, is not given again."""
_WORD = re.compile(r"\w+")
_RULER = r"[ \t]*(?=.*-)[-|: \t]+"
_LEADS = re.compile(rf"\s*\n|[ ]{{0,3}}#{{1,6}}\s|{_RULER}\n|[ \t]*\|.*\n{_RULER}\Z|.*:[*_]*\s*\n")
"""A line that tells nothing without the next: blank, a heading, a ruler, the head of a table, or one with a colon."""


def repeats(words: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether two texts with these words say the same: they share most of them, and some at all."""
    return len(words & others) >= max(_FEWEST_WORDS, _REPEATED * len(words | others))


class Excerpt(Struct, frozen=True):
    """Lines `first` to `last` (1-based, inclusive) of the note of `hit`, the best candidate that holds any of them."""

    hit: Candidate
    first: int
    last: int
    text: str
    also_in: tuple[str, ...] = ()
    """Other notes with a passage that says the same."""


class _Line(Struct, frozen=True):
    """A line of a note; the pieces of one long line share its number."""

    path: str
    number: int
    text: str


class _Selection(Struct):
    """The lines that are given, each with the candidate that brought it, in the order in which they came."""

    room: int
    by: dict[_Line, Candidate] = field(default_factory=dict)
    passages: list[tuple[_Line, frozenset[str]]] = field(default_factory=list)
    """The first line of each passage, and its words."""
    copies: dict[_Line, list[str]] = field(default_factory=dict)
    """The notes that repeat a passage, by its first line."""

    def cost(self, lines: Sequence[_Line]) -> int:
        """Return the characters that `lines` would add."""
        return sum(len(line.text) + 1 for line in lines if line not in self.by)

    def add(self, lines: Sequence[_Line], hit: Candidate) -> None:
        """Give `lines`, unless they were given, or another note says the same."""
        repeated = sum(len(line.text) for line in lines if line in self.by)
        if repeated >= _REPEATED * sum(len(line.text) for line in lines):
            return
        words = frozenset(_WORD.findall("\n".join(line.text for line in lines).lower()))
        for first, others in self.passages:
            if first.path != lines[0].path and repeats(words, others):
                if lines[0].path not in self.copies.setdefault(first, []):
                    self.copies[first].append(lines[0].path)
                return
        self.passages.append((lines[0], words))
        self.room -= self.cost(lines)
        for line in lines:
            self.by.setdefault(line, hit)


def excerpts(trace: Trace, evidence: Evidence, characters: int) -> tuple[Excerpt, ...]:
    """Return what of the answer fits into so many `characters`, best first, `maxResults` excerpts at most.

    `evidence` is what `trace` was made of. Without a second stage there are none.
    """
    stage = kept_stage(evidence, trace.mode)
    every = (*trace.recalled, *islice(trace.lost, CANDIDATES)) if stage is not None else ()
    over_gate = [hit for hit in every if isinstance(hit.verdict, Recalled | BeyondLimit)]
    hits = [hit for hit in over_gate if hit.second is not None and hit.second.measures][:CANDIDATES]
    if stage is None or not hits:
        return ()
    windows = stage.windows([evidence.texts[hit.chunk.rowid] for hit in hits])
    ordered = [(hit, item) for hit, items in zip(hits, windows, strict=True) for item in items]
    ordered.sort(key=lambda pair: _OF_CHUNK * pair[0].score + (1 - _OF_CHUNK) * pair[1].share, reverse=True)
    selection, weights = _Selection(characters), dict.fromkeys(trace.plan.words, 1.0)
    lines_of = cache(partial(_lines, evidence, weights))
    for hit, item in ordered:
        if selection.room > 0 and (chosen := _passage(lines_of(hit.row), item, selection)):
            selection.add(chosen, hit)
    return tuple(islice(_joined(selection), trace.settings.whole("query.maxResults")))


def _lines(evidence: Evidence, weights: dict[str, float], row: int) -> list[_Line]:
    """The lines of a chunk, and behind it what its last one leads to; of long ones what is around the words asked."""
    start, end, file_of = evidence.refs.first_lines, evidence.refs.last_lines, evidence.refs.file_of
    behind = (start > start[row]) & (start <= end[row] + 1) & (end > end[row])
    lines: list[_Line] = []
    for at in (row, *np.flatnonzero(behind & (file_of == file_of[row]))[:1].tolist()):
        ref, last = evidence.refs[at], lines[-1].number if lines else 0
        lines += [
            _Line(ref.path, number, line if len(line) <= MOST else window(line, weights).text)
            for number, line in enumerate(evidence.texts.get(ref.rowid, "").split("\n"), ref.start_line)
            if number > last
        ]
    length = int(end[row] - start[row])
    return lines[: _led_to(lines, length) + 1]


def _passage(lines: Sequence[_Line], item: Window, selection: _Selection) -> Sequence[_Line]:
    """Return the lines around the best line of a window, first its own, as far as LEAST, MOST and the budget allow.

    A line that leads to another comes with that one, unless the note ends there; none is blank at either end.
    """
    first, last = item.line, _led_to(lines, item.line)
    if last == len(lines):
        last = first

    def fits(first: int, last: int, most: int = MOST) -> bool:
        part = lines[first : last + 1]
        return sum(len(line.text) + 1 for line in part) <= most and selection.cost(part) <= selection.room

    if not fits(first, last, 2 * MOST):
        return ()
    is_growing = True
    while is_growing and sum(len(line.text) + 1 for line in lines[first : last + 1]) < LEAST:
        is_growing = False
        if (below := _led_to(lines, last + 1)) < len(lines) and fits(first, below):
            last, is_growing = below, True
        if first and fits(first - 1, last):
            first, is_growing = first - 1, True
    while first < last and not lines[first].text.strip():
        first += 1
    return lines[first : last + 1]


def _led_to(lines: Sequence[_Line], at: int) -> int:
    """Return the first line from `at` on that says something itself; the number of lines where none does."""
    while at < len(lines) and _LEADS.match(lines[at].text + "\n" + (lines[at + 1].text if at + 1 < len(lines) else "")):
        at += 1
    return at


def _joined(selection: _Selection) -> Iterator[Excerpt]:
    """Yield the given lines as excerpts, in the order in which the first line of each came."""
    place = {line: at for at, line in enumerate(selection.by)}
    runs: list[list[_Line]] = []
    for line in sorted(selection.by, key=lambda line: (line.path, line.number, place[line])):
        if runs and runs[-1][-1].path == line.path and line.number - runs[-1][-1].number <= 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    for run in sorted(runs, key=lambda run: min(map(place.__getitem__, run))):
        hit = selection.by[min(run, key=place.__getitem__)]
        also = dict.fromkeys(path for line in run for path in selection.copies.get(line, ()))
        also |= dict.fromkeys(
            copy.path for line in run for copy in selection.by[line].copies if copy.path != hit.chunk.path
        )
        yield Excerpt(hit, run[0].number, run[-1].number, "\n".join(line.text for line in run), tuple(also))
