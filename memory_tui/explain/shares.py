"""Shares tell what each word gives to a score. A word of the query gives to bm25 with its boost, one of a chunk to its
cosine.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import profiles, tokens
from memory_tui.core.cancel import Stop
from memory_tui.explain.matched_words import Span, sentences
from memory_tui.explain.why_not import Account
from memory_tui.providers import registry
from memory_tui.providers.provider_protocol import Identity, Provider
from memory_tui.search import rules_2026_9
from memory_tui.search.formulas import K1, fts5_idf, length_damping, lucene_idf
from memory_tui.search.trace import Trace
from memory_tui.source.protocol import ChunkSource
from memory_tui.source.rows import Form

if TYPE_CHECKING:
    from memory_tui.providers.wires.builtin import StaticTable

BUILTIN = "builtin"
"""The provider whose vectors are sums of the vectors of tokens, so that a cosine falls into parts."""
_MOST_SENTENCES = 40
"""Sentences of a chunk that are left out, one at a time."""
_REMEMBERED = 64
"""Chunks of which it is remembered what their cosine loses."""
_CLOSES_BM25, _CLOSES_COSINE = 1e-9, 2e-5
"""How near the parts have to come to the whole, relative to bm25, and to a cosine, whose vectors have 32 bits."""


class WordShare(Struct, frozen=True):
    """A word of the question gives `points` of bm25: idf x tf.

    idf = max(ln((chunks - holding + 0.5) / (holding + 0.5)), 0.000001), of our own profile
    ln(1 + (chunks - holding + 0.5) / (holding + 0.5)), and
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


class BoostShare(Struct, frozen=True):
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


class CosineShare(Struct, frozen=True):
    """A word of the chunk, or a line of its note from 1, gives `points` of the cosine; `times` it stands there."""

    word: str
    line: int
    times: int
    points: float


Piece = tuple[int, int, int]
"""A part of a line: the number of the line in its note, first character, the one behind the last."""


class WithoutSentence(Struct, frozen=True):
    """Without the sentence `text`, which stands at `pieces`, the cosine of the chunk is lower by `points`, or higher.

    One sentence is left out at a time: what they give does not add up.
    """

    text: str
    pieces: tuple[Piece, ...]
    points: float


class Shares(Struct, frozen=True):
    """What bm25 and the cosine of one chunk are made of; empty where they do not fall into parts that add up.

    `without` are there for providers whose cosines do not: for one on this machine, for others where somebody asks.
    """

    words: tuple[WordShare, ...] = ()
    tokens: tuple[CosineShare, ...] = ()
    lines: tuple[CosineShare, ...] = ()
    without: tuple[WithoutSentence, ...] = ()
    boosts: tuple[BoostShare, ...] = ()

    @property
    def claims(self) -> tuple[ShareClaim, ...]:
        """Everything that is said."""
        return (*self.words, *self.boosts, *self.tokens, *self.lines, *self.without)


ShareClaim = WordShare | BoostShare | CosineShare | WithoutSentence


def shares_of(
    reader: Callable[[], AbstractContextManager[ChunkSource]],
    of_space: Callable[[Identity], Provider | None],
    account: Account | None,
    trace: Trace,
    *,
    send: bool = False,
    stop: Stop | None = None,
) -> Shares:
    """The parts of the chunk of `account`, which `reader` reads; a provider elsewhere is asked where `send` says so.

    Raises Cancelled, IndexUnavailable, ProviderError.
    """
    if account is None:
        return Shares()
    with reader() as source, source.snapshot():
        space, found = source.identity(), shares(source, account, trace)
    cosine = account.candidate.vector.cosine if account.candidate is not None else None
    if space is None or cosine is None or trace.provider == BUILTIN or (registry.sends(space.provider) and not send):
        return found
    # The index is let go before a provider is asked, which can take seconds.
    provider = of_space(space)
    if provider is None or provider.identity != space:
        return found
    return replace(found, without=without_sentences(provider, trace.query, account, stop or Stop()))


def shares(source: ChunkSource, account: Account, trace: Trace) -> Shares:
    """The parts of both sides of a chunk, greatest first; those of the cosine where its vector is made of the table."""
    part = account.candidate
    if part is None:
        return Shares()
    by_word = tuple(_by_word(source, account, trace)) if part.text.bm25 is not None else ()
    if not by_word or not math.isclose(-sum(one.points for one in by_word), part.text.bm25 or 0, rel_tol=_CLOSES_BM25):
        by_word = ()
    found = Shares(by_word, boosts=_of_boost(account, trace))
    if part.vector.cosine is None or trace.provider != BUILTIN:
        return found
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
    plan, any_word = trace.plan, profile.join == "OR"
    asked: Sequence[str] = tokens.WORD.findall(term) if term else (*plan.words, *plan.counted)
    if not any_word and not term:
        # FTS5 adds up what is asked twice.
        often = Counter(tokens.WORD.findall(trace.query))
        asked = [word for word in asked for _ in range(often[word] or 1)]
    form: Form = "stemmed" if any_word else "plain"
    rowid, words = account.chunk.rowid, source.words
    lengths, chunks = words.lengths(form), words.size(form)
    at = int(np.searchsorted(lengths.rowids, rowid))
    if at == len(lengths.rowids) or lengths.rowids[at] != rowid:
        return
    length, mean = int(lengths.counts[at]), int(lengths.counts.sum(dtype=np.int64)) / max(1, chunks)
    found = []
    for word in asked:
        own = words.occurrences(word, form, "any" if any_word else "all", rowid - 1)
        if not len(own.rowids) or own.rowids[0] != rowid:
            continue
        times, holding = int(own.counts[0]), words.frequency([word], form)[0]
        idf = (lucene_idf if any_word else fts5_idf)(holding, chunks)
        tf = times * (K1 + 1) / (times + length_damping(length, mean or 1.0))
        found.append(WordShare(word, holding, chunks, times, length, mean, idf, tf, idf * tf))
    yield from sorted(found, key=lambda one: -one.points)


def _of_boost(account: Account, trace: Trace) -> tuple[BoostShare, ...]:
    """What each word of the question adds to the score of bm25 under 2026.9; that of the text's length is no word's."""
    part = account.candidate.lexical if account.candidate is not None else None
    if part is None or not part.body:
        return ()
    asked = sorted(tokens.words_of(trace.query))
    inside = {word for word in asked if rules_2026_9.words_in_text([word], account.text)}
    named = {word for word in asked if rules_2026_9.words_in_path([word], account.chunk.path)}
    found = (
        BoostShare(
            word,
            part.asked / len(inside) if word in inside else 0.0,
            part.held / len(inside) if word in inside else 0.0,
            part.path_words / len(named) if word in named else 0.0,
        )
        for word in asked
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


_lock = threading.Lock()
_known: OrderedDict[tuple[Identity, str, str], list[float]] = OrderedDict()
"""Cosines by space, question and text: of the whole, then without each sentence."""


def without_sentences(provider: Provider, query: str, account: Account, stop: Stop) -> tuple[WithoutSentence, ...]:
    """How much lower the cosine is without each sentence, the most first; none where there is only one part.

    `provider` gets all of these texts in one call, once. Raises ProviderError, Cancelled.
    """
    text = account.text
    spans = _parts(text)[:_MOST_SENTENCES]
    if len(spans) < 2:
        return ()
    key = provider.identity, query, text
    with _lock:
        cosines = _known.get(key)
    if cosines is None:
        stop.check()
        asked = provider.embed([query], "query")[0].astype(np.float64)
        stop.check()
        texts = [text, *(text[:first] + text[last:] for first, last in spans)]
        cosines = (provider.embed(texts, "document").astype(np.float64) @ asked).tolist()
        with _lock:
            _known[key] = cosines
            while len(_known) > _REMEMBERED:
                _known.popitem(last=False)
    found = [
        WithoutSentence(text[first:last], _pieces(text, first, last, account.chunk.start_line), cosines[0] - one)
        for (first, last), one in zip(spans, cosines[1:], strict=True)
    ]
    return tuple(sorted(found, key=lambda one: -one.points))


def _parts(text: str) -> list[Span]:
    """The sentences of `text`; where nothing ends one, its lines that hold a word."""
    found = sentences(text)
    if len(found) > 1:
        return found
    ends = itertools.accumulate((len(line) + 1 for line in text.split("\n")), initial=0)
    lines = ((begin, begin + len(line)) for begin, line in zip(ends, text.split("\n"), strict=False))
    return [(first, last) for first, last in lines if any(map(str.isalnum, text[first:last]))]


def _pieces(text: str, first: int, last: int, number: int) -> tuple[Piece, ...]:
    """Where characters `first` to `last` of a chunk stand, whose lines begin with `number`."""
    found, begin = [], 0
    for at, line in enumerate(text.split("\n"), number):
        a, b = max(first, begin) - begin, min(last - begin, len(line))
        if a < b:
            found.append((at, a, b))
        begin += len(line) + 1
    return tuple(found)


def _sum(table: StaticTable, word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The summed vectors of the tokens of a word."""
    found = table.rows(np.array(table.ids(word), np.int64)).astype(np.float64)
    return np.asarray(found.sum(axis=0))


def _greatest(found: Sequence[CosineShare]) -> tuple[CosineShare, ...]:
    return tuple(sorted(found, key=lambda one: -one.points))
