"""Shares: what each word of a question gives to bm25 with its boost, each of a chunk to its cosine."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memory_tui.core import profiles, tokens
from memory_tui.explain.why_not import Account
from memory_tui.providers import registry
from memory_tui.providers.provider_protocol import Identity, Provider
from memory_tui.search import rules_2026_9
from memory_tui.search.trace import Trace
from memory_tui.source.protocol import ChunkSource
from memory_tui.source.rows import Form

if TYPE_CHECKING:
    from memory_tui.providers.wires.builtin import StaticTable

BUILTIN = "builtin"
"""The provider whose vectors are sums of the vectors of tokens, so that a cosine falls into parts."""
_K1, _B, _LEAST_IDF = 1.2, 0.75, 1e-6
"""FTS5's constants of bm25."""
_MOST_LINES = 40
"""Lines of a chunk that are left out, one at a time."""
_CLOSES_BM25, _CLOSES_COSINE = 1e-9, 2e-5
"""How near the parts have to come to the whole, relative to bm25, and to a cosine, whose vectors have 32 bits."""


@dataclass(frozen=True, slots=True)
class WordShare:
    """A word of the question gives `points` of bm25: idf x tf.

    idf = max(ln((chunks - holding + 0.5) / (holding + 0.5)), 0.000001) and
    tf = times x 2.2 / (times + 1.2 x (0.25 + 0.75 x length / mean_length)); lengths count tokens.
    """

    word: str
    holding: int
    chunks: int
    times: int
    length: int
    mean_length: float
    idf: float
    tf: float
    points: float


@dataclass(frozen=True, slots=True)
class BoostShare:
    """A word of the question that OpenClaw 2026.9 adds to the score of bm25, because it stands in text or path.

    Its parts of what the words of the question give, of what their share of the chunk's words gives, of what those in
    the path give.
    """

    word: str
    asked: float
    held: float
    path: float

    @property
    def points(self) -> float:
        """All that the word adds."""
        return self.asked + self.held + self.path


@dataclass(frozen=True, slots=True)
class CosineShare:
    """A word of the chunk, or a line of its note from 1, gives `points` of the cosine; `times` it stands there."""

    word: str
    line: int
    times: int
    points: float


@dataclass(frozen=True, slots=True)
class WithoutLine:
    """Without line `line` of its note the cosine of the chunk is lower by `points`, higher where they are below 0."""

    line: int
    points: float


@dataclass(frozen=True, slots=True)
class Shares:
    """What bm25 and the cosine of one chunk are made of; empty where they do not fall into parts that add up.

    `without` are there for providers whose cosines do not, but that embed on this machine.
    """

    words: tuple[WordShare, ...] = ()
    tokens: tuple[CosineShare, ...] = ()
    lines: tuple[CosineShare, ...] = ()
    without: tuple[WithoutLine, ...] = ()
    boosts: tuple[BoostShare, ...] = ()

    @property
    def claims(self) -> tuple[ShareClaim, ...]:
        """Everything that is said."""
        return (*self.words, *self.boosts, *self.tokens, *self.lines, *self.without)


ShareClaim = WordShare | BoostShare | CosineShare | WithoutLine


def shares_of(
    reader: Callable[[], AbstractContextManager[ChunkSource]],
    of_space: Callable[[Identity], Provider | None],
    account: Account | None,
    trace: Trace,
) -> Shares:
    """The parts of the chunk of `account`, which `reader` reads; a provider embeds here or is not asked.

    Raises Cancelled, IndexUnavailable, ProviderError.
    """
    if account is None:
        return Shares()
    with reader() as source, source.snapshot():
        space = source.identity()
        here = space is not None and not registry.sends(space.provider)
        return shares(source, account, trace, of_space(space) if space is not None and here else None)


def shares(source: ChunkSource, account: Account, trace: Trace, provider: Provider | None) -> Shares:
    """The parts of both sides of a chunk, greatest first; without the table `provider` embeds it line by line."""
    part = account.candidate
    if part is None:
        return Shares()
    by_word = tuple(_by_word(source, account, trace)) if part.text.bm25 is not None else ()
    if not by_word or not math.isclose(-sum(one.points for one in by_word), part.text.bm25 or 0, rel_tol=_CLOSES_BM25):
        by_word = ()
    found = Shares(by_word, boosts=_of_boost(account, trace))
    if part.vector.cosine is None or (trace.provider != BUILTIN and provider is None):
        return found
    if trace.provider != BUILTIN and provider is not None:
        return replace(found, without=_left_out(provider, trace.query, account))
    from memory_tui.providers.wires.builtin import static_table

    by_token, by_line = _of_cosine(static_table(), trace.query, account)
    whole = sum(one.points for one in by_token)
    closes = abs(whole - part.vector.cosine) < _CLOSES_COSINE
    return replace(found, tokens=by_token, lines=by_line) if closes else found


def _by_word(source: ChunkSource, account: Account, trace: Trace) -> Iterator[WordShare]:
    """What each word of the question gives, by the numbers that the full-text index keeps.

    Under 2026.9 a keyword that was looked for alone may have given the score: then its words.
    """
    profile = profiles.get(trace.profile)
    lexical = account.candidate.lexical if account.candidate is not None else None
    term = lexical.term if lexical is not None else ""
    asked: Sequence[str] = tokens.WORD.findall(term) if term else trace.plan.words
    if profile.join == "AND" and not term:
        # FTS5 adds up what is asked twice.
        often = Counter(tokens.WORD.findall(trace.query))
        asked = [word for word in asked for _ in range(often[word] or 1)]
    form: Form = "stemmed" if profile.join == "OR" else "plain"
    rowid, words = account.chunk.rowid, source.words
    lengths, chunks = words.lengths(form), words.size(form)
    at = int(np.searchsorted(lengths.rowids, rowid))
    if at == len(lengths.rowids) or lengths.rowids[at] != rowid:
        return
    length, mean = int(lengths.counts[at]), int(lengths.counts.sum(dtype=np.int64)) / max(1, chunks)
    found = []
    for word in asked:
        own = words.occurrences(word, form, "any" if profile.join == "OR" else "all", rowid - 1)
        if not len(own.rowids) or own.rowids[0] != rowid:
            continue
        times, holding = int(own.counts[0]), words.frequency([word], form)[0]
        idf = max(math.log((chunks - holding + 0.5) / (holding + 0.5)), _LEAST_IDF)
        tf = times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length / (mean or 1.0)))
        found.append(WordShare(word, holding, chunks, times, length, mean, idf, tf, idf * tf))
    yield from sorted(found, key=lambda one: -one.points)


def _of_boost(account: Account, trace: Trace) -> tuple[BoostShare, ...]:
    """What each word of the question adds to the score of bm25 under 2026.9; that of the text's length is no word's."""
    part = account.candidate.lexical if account.candidate is not None else None
    if part is None or not part.body:
        return ()
    asked = tokens.words_of(trace.query)
    inside = {word for word in asked if rules_2026_9.words_in_text([word], account.text)}
    named = {word for word in asked if rules_2026_9.words_in_path([word], account.chunk.path)}
    found = (
        BoostShare(
            word,
            part.asked / len(inside) if word in inside else 0.0,
            part.held / len(inside) if word in inside else 0.0,
            part.path_words / len(named) if word in named else 0.0,
        )
        for word in dict.fromkeys(asked)
    )
    return tuple(sorted((one for one in found if one.points), key=lambda one: -one.points))


def _of_cosine(
    table: StaticTable, query: str, account: Account
) -> tuple[tuple[CosineShare, ...], tuple[CosineShare, ...]]:
    """What each word, and each line, of a chunk gives to its cosine with `query`."""
    asked = table.vectors([query])[0].astype(np.float64)
    lines = account.text.split("\n")
    each = [[(word, _sum(table, word)) for word in line.split()] for line in lines]
    whole = sum((vector for line in each for _, vector in line), np.zeros(len(asked)))
    length = float(np.sqrt(whole @ whole))
    if length == 0:
        return (), ()
    points: defaultdict[str, float] = defaultdict(float)
    times: Counter[str] = Counter()
    by_line = []
    for number, line in enumerate(each, account.chunk.start_line):
        gained = [(word, float(vector @ asked) / length) for word, vector in line]
        for word, own in gained:
            points[word.lower()] += own
            times[word.lower()] += 1
        by_line.append(CosineShare("", number, len(line), sum(own for _, own in gained)))
    by_word = [CosineShare(word, 0, times[word], own) for word, own in points.items()]
    return _greatest(by_word), _greatest([one for one in by_line if one.times])


def _left_out(provider: Provider, query: str, account: Account) -> tuple[WithoutLine, ...]:
    """How much lower the cosine is without each line, the most first."""
    lines = account.text.split("\n")
    kept = [at for at, line in enumerate(lines) if line.strip()][:_MOST_LINES]
    if len(kept) < 2:
        return ()
    texts = [account.text, *("\n".join(lines[:at] + lines[at + 1 :]) for at in kept)]
    asked = provider.embed([query], "query")[0].astype(np.float64)
    cosines = provider.embed(texts, "document").astype(np.float64) @ asked
    found = [
        WithoutLine(account.chunk.start_line + at, float(cosines[0] - one))
        for at, one in zip(kept, cosines[1:], strict=True)
    ]
    return tuple(sorted(found, key=lambda one: -one.points))


def _sum(table: StaticTable, word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The summed vectors of the tokens of a word."""
    found = table.rows(np.array(table.ids(word), np.int64)).astype(np.float64)
    return np.asarray(found.sum(axis=0))


def _greatest(found: Sequence[CosineShare]) -> tuple[CosineShare, ...]:
    return tuple(sorted(found, key=lambda one: -one.points))
