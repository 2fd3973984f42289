"""Matched words: where the words of a query stand in a text, found as the search finds them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

import numpy as np

from memory_tui import profiles, tokens
from memory_tui.providers.builtin import StaticTable
from memory_tui.search.second_stage import passage_table
from memory_tui.search.trace import QueryPlan, Trace

Span = tuple[int, int]
"""Start and end of a piece of text, in characters."""

REMEMBERED = 512
"""Texts of which it is remembered where the words stand."""


class MatchedWords:
    """The words of one query, to be found in any text; of a query that no words answered there are none."""

    def __init__(self, plan: QueryPlan, profile: str) -> None:
        self.stemmed = profiles.get(profile).join == "OR"
        letters = plan.inside or self.stemmed
        self._as_written = tuple(
            word.lower() for word in plan.words if plan.inside or (letters and tokens.is_cjk(word))
        )
        whole = () if plan.inside else plan.words
        cut = (
            tuple(tokens.tokens(word, stemmed=self.stemmed)) for word in whole if word.lower() not in self._as_written
        )
        self._cut = tuple(filter(None, cut))
        self.spans = lru_cache(REMEMBERED)(self._spans)
        """Where the words stand in a text, in order and apart from each other."""

    @classmethod
    def of(cls, trace: Trace | None) -> MatchedWords:
        """Return the words that `trace` was answered by."""
        if trace is None or trace.mode in ("vectors only", "nothing"):
            return cls(QueryPlan((), (), ""), profiles.OWN)
        return cls(trace.plan, trace.profile)

    def __bool__(self) -> bool:
        return bool(self._as_written or self._cut)

    def _spans(self, text: str) -> tuple[Span, ...]:
        spans = [*self._written_in(text), *self._tokens_in(text)]
        return tuple(_merged(sorted(spans)))

    def _written_in(self, text: str) -> Iterator[Span]:
        lowered = _lowered(text) if self._as_written else ""
        for word in self._as_written:
            at = lowered.find(word)
            while at >= 0:
                yield at, at + len(word)
                at = lowered.find(word, at + 1)

    def _tokens_in(self, text: str) -> Iterator[Span]:
        if not self._cut:
            return
        # Runs of Chinese, Japanese or Korean are found as written; beside them words end.
        plain = tokens.CJK_RUN.sub(lambda run: " " * len(run.group()), text) if self.stemmed else text
        cut = tokens.spans(plain, stemmed=self.stemmed)
        place = _characters(plain)
        words = [token for token, _, _ in cut]
        for word in self._cut:
            for at in range(len(words) - len(word) + 1):
                if words[at] == word[0] and tuple(words[at : at + len(word)]) == word:
                    yield place[cut[at][1]], place[cut[at + len(word) - 1][2]]


def _lowered(text: str) -> str:
    """Return `text` in lower case, as many characters as before."""
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)


def _characters(text: str) -> range | list[int]:
    """Return for each UTF-8 byte of `text`, and its end, the number of the character that it belongs to."""
    if text.isascii():
        return range(len(text) + 1)
    sizes = [len(character.encode("utf-8", "replace")) for character in text]
    at = [0] * (sum(sizes) + 1)
    for number, byte in enumerate(accumulate(sizes, initial=0)):
        at[byte] = number
    return at


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    start, end = -1, -1
    for first, last in spans:
        if first <= end:
            end = max(end, last)
            continue
        if end > start:
            yield start, end
        start, end = first, last
    if end > start:
        yield start, end


# --- the nearest sentence ------------------------------------------------------------------------------------------

_LEAST = 3
"""Letters and digits below which a piece of text is no sentence."""


def sentences(text: str) -> list[Span]:
    """The sentences of `text`; the end of a line is the end of a sentence only before a blank line or a list item."""
    spans: list[Span] = []
    for block in re.finditer(r"(?:(?!\n\s*\n|\n\s*(?:[-*+#>|]|\d+[.)])).)+", text, re.DOTALL):
        start = block.start()
        for end in (*(cut.end() for cut in re.finditer(r"[.!?](?=\s)|[。！？]", block.group())), len(block.group())):
            piece = text[start : block.start() + end]
            inner = len(piece) - len(piece.lstrip())
            if sum(map(str.isalnum, piece)) >= _LEAST:
                spans.append((start + inner, start + len(piece.rstrip())))
            start = block.start() + end
    return spans


def nearest_sentence(query: str, text: str, table: StaticTable | None = None) -> Span | None:
    """The sentence of `text` that is nearest to `query` in meaning, by the built-in table, whose vectors are sums.

    None where nothing of either is in the table. Raises ProviderError when the table cannot be read.
    """
    table = table or passage_table()
    question = _meaning(query, table)
    if question is None:
        return None
    best: tuple[float, Span] | None = None
    for start, end in sentences(text):
        meaning = _meaning(text[start:end], table)
        if meaning is not None and (best is None or float(meaning @ question) > best[0]):
            best = float(meaning @ question), (start, end)
    return best[1] if best is not None else None


def _meaning(text: str, table: StaticTable) -> np.ndarray[tuple[int], np.dtype[np.float32]] | None:
    ids = table.ids(text)
    if not len(ids):
        return None
    summed = table.rows(np.array(ids, dtype=np.int64)).sum(axis=0)
    length = float(np.sqrt(summed @ summed))
    return summed / np.float32(length) if length > 0 else None
