"""Excerpts are what an agent reads of an answer: a passage of each hit, all within a budget of characters.

A chunk spends most of a budget on lines that do not answer. So each hit gives the line by which it was scored, and what
is left of the budget goes to the lines around, best hit first. No hit is left out: what is recalled is what an agent
gets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence, Set

from msgspec import Struct

from memory_tui import tokens
from memory_tui.search.rank import LENGTH, Trace
from memory_tui.search.trace import Candidate

# --- cutting -------------------------------------------------------------------------------------------------------


def _matches(text: str, words: Collection[str]) -> list[tuple[int, str]]:
    """Return where `words` stand in `text`, as (character, word) in order; words match by stem."""
    stem_of = {stem: word for word in words for stem in tokens.word_stems(word)}
    # Spans count the bytes of UTF-8, which outside ASCII are more than the characters.
    result = [(start, stem_of[stem]) for start, _, stem in tokens.spans(text) if stem in stem_of]
    if not text.isascii():
        data = text.encode("utf-8", "replace")
        result = [(len(data[:start].decode("utf-8", "replace")), word) for start, word in result]
    # unicode61 sees a whole clause of Chinese as one word, so bigrams are looked up as they are, overlapping ones too.
    for gram in filter(tokens.is_cjk, words):
        result += [(match.start(), gram) for match in re.finditer(f"(?={re.escape(gram)})", text)]
    return sorted(result)


_WITHIN_WORD = r"[^\W\u2e80-\uffff]{2}"
"""Two characters of one word, where words end with a space. It takes long to compile, so that this waits for a line
that is cut."""


def window(line: str, words: Collection[str], length: int = LENGTH) -> str:
    """Return the `length` characters of a line that hold most of `words`, from the first on when they are near."""
    places = _matches(line, words) if len(line) > length else []
    if not places:
        return line[:length]
    first, last = _densest(places, length)
    # As much before the words as behind them, unless all of them stand in the beginning.
    start = max(0, min(first - (length - (last - first)) // 2, len(line) - length)) if last > length else 0
    if start and re.match(_WITHIN_WORD, line[start - 1 : start + 1]):
        # It begins behind the next space before the words.
        start = next((at + 1 for at in range(start, first) if line[at].isspace()), start)
    return line[start : start + length]


def _densest(places: Sequence[tuple[int, str]], length: int) -> tuple[int, int]:
    """Return where the first and the last word begins and ends of the window of `length` that holds most words.

    `places` are (character, word), in order; at equal numbers of words the first window wins.
    """
    # The end of each word in the line.
    ends = [start + len(word) for start, word in places]
    inside, best, bounds = Counter[str](), -1.0, (0, 0)
    # The number of the first word behind the window; `at` is that of its first word.
    end = 0
    for at, (start, word) in enumerate(places):
        # The window moves along the words: each enters it once and leaves it once.
        while end < len(places) and (end < at or ends[end] <= start + length):
            inside[places[end][1]] += 1
            end += 1
        # Different words count. A repeated one counts a little: of two windows with the same words the denser wins.
        value = sum(count > 0 for count in inside.values()) + 0.01 * (end - at)
        if value > best:
            # A word that is longer than the window leaves it without any.
            best, bounds = value, (start, ends[end - 1] if end > at else start)
        if end > at:
            inside[word] -= 1
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
        """Return the first and the last line of the note that an agent reads; a text may be cut before `last`."""
        return self.first, min(self.last, self.first + self.text.count("\n"))

    def leaves_out(self, line: int | None) -> str:
        """Return that `line` of the hit's chunk is not sent, and what is, as a sentence.

        It is empty for a line that is sent, and for None.
        """
        first, last = self.lines
        sent = f"an agent gets {self.hit.chunk.path}#L{first}-L{last} of it"
        # The pieces of one long line are lines of the chunk's text, which so has more of them than the note.
        is_sent = first <= min(line or first, self.hit.chunk.end_line) <= last
        return "" if is_sent else f"Line {line} is not sent: {sent}."


class _Line(Struct, frozen=True):
    """A line of a note; the pieces of one long line share its number."""

    path: str
    number: int
    text: str


class _Core(Struct, frozen=True):
    """Lines `first` to `last` (from 0) `of_chunk`: the one that decided, down to the line that it introduces."""

    of_chunk: Sequence[_Line]
    first: int
    last: int

    @property
    def lines(self) -> Sequence[_Line]:
        """Return those lines alone."""
        return self.of_chunk[self.first : self.last + 1]


def excerpts(trace: Trace) -> tuple[Excerpt, ...]:
    """Return what an agent gets of the answer: a passage of each recalled hit, in their order.

    Where the settings bound no characters, there is room for all; without a second stage they are the snippets.
    """
    texts = [trace.evidence.texts[hit.chunk.rowid] for hit in trace.recalled]
    if not all(hit.line for hit in trace.recalled):
        return tuple(
            Excerpt(hit, hit.chunk.start_line, hit.last_line, hit.snippet, hit.snippet.strip() == text.strip())
            for hit, text in zip(trace.recalled, texts, strict=True)
        )
    budget = trace.settings.whole("query.maxCharacters") or sum(len(text) + 1 for text in texts)
    cores = [_core(hit, text, trace.side.plan.words) for hit, text in zip(trace.recalled, texts, strict=True)]
    taken = {line for core in cores for line in core.lines}
    # The line that decided stays whole up to half its share; the rest goes to the best hits (FAQs, chats, XQuAD).
    share = budget // (2 * len(cores) or 1)
    reserved = sum(min(_cost(core.lines), share) for core in cores)
    result = []
    for hit, text, core in zip(trace.recalled, texts, cores, strict=True):
        # What stays reserved is for the cores of the hits that follow.
        reserved -= min(_cost(core.lines), share)
        room = max(0, budget - reserved - 1)
        # A cost counts a line end for each line, and the last one has none.
        lines = _grown(core, room + 1, taken)
        taken.update(lines)
        # Only where there is no room for the core something is cut, and then the line that decided stands first.
        written = window(lines[0].text, trace.side.plan.words, room), *(line.text for line in lines[1:])
        passage = "\n".join(written)[:room].removesuffix("\r")
        last = lines[passage.count("\n")].number
        result.append(Excerpt(hit, lines[0].number, last, passage, is_whole=passage.strip() == text.strip()))
        budget -= len(passage) + 1
    return tuple(result)


def _cost(lines: Sequence[_Line]) -> int:
    """Return the characters of `lines`, each with its line end."""
    return sum(len(line.text) + 1 for line in lines)


def _core(hit: Candidate, text: str, words: Collection[str]) -> _Core:
    """Return the line that decided of a hit, whose chunk holds `text`, with the lines that it leads to.

    Of long lines only what is around the `words` of the question is kept.
    """
    lines = [
        _Line(hit.chunk.path, min(number, hit.chunk.end_line), line if len(line) <= MOST else window(line, words))
        for number, line in enumerate(text.split("\n"), hit.chunk.start_line)
    ]
    first = hit.line - hit.chunk.start_line
    last = _led_to(lines, first)
    # A line that leads to nothing stands alone.
    return _Core(lines, first, last if last < len(lines) else first)


def _grown(core: _Core, room: int, taken: Set[_Line]) -> Sequence[_Line]:
    """Return the core with the lines around it that were not `taken`, as far as there is `room`.

    A line that leads to another comes with that one, unless nothing else is there; none is blank at either end.
    """
    lines, first, last = core.of_chunk, core.first, core.last

    def fits(start: int, end: int) -> bool:
        """Return whether the lines from `start` to `end` have room, and none beside the core is another hit's."""
        # The core itself is taken already, by this hit: only lines beside it count as new.
        added = (*lines[start:first], *lines[last + 1 : end + 1])
        return _cost(lines[start : end + 1]) <= room and taken.isdisjoint(added)

    # A step goes down to the next line that says something itself, and one line up, each where it fits.
    grows = True
    while grows:
        below = _led_to(lines, last + 1)
        grows_down = below < len(lines) and fits(first, below)
        last = below if grows_down else last
        grows_up = first > 0 and fits(first - 1, last)
        first = first - 1 if grows_up else first
        grows = grows_down or grows_up
    while first < last and not lines[first].text.strip():
        first += 1
    return lines[first : last + 1]


def _led_to(lines: Sequence[_Line], start: int) -> int:
    """Return the first line from `start` on that says something itself; the number of lines where none does."""
    for at in range(start, len(lines)):
        below = lines[at + 1].text if at + 1 < len(lines) else ""
        if not _LEADS.match(f"{lines[at].text}\n{below}"):
            return at
    return len(lines)
