"""Keyword search of a question or of its parts: OpenClaw's way, ours, or word by word without vectors.

FTS5 cuts text into words, or into trigrams, which cannot find a word of one or two characters: for those the text is
looked through.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import filterfalse
from pathlib import Path

import numpy as np
from msgspec import Struct

from memory_tui import jsstring
from memory_tui import tokens as core_tokens
from memory_tui.errors import ProviderError
from memory_tui.index.store import Form, FullText
from memory_tui.providers.builtin import static_table
from memory_tui.search.corpus import Corpus, Flags, distinct
from memory_tui.search.evidence import Join, KeywordSearch, KeywordSide, Postings, Rows
from memory_tui.search.intent import ALIKE, NEWEST, asks, value_asked, words_for_now
from memory_tui.search.question_dates import Time, without
from memory_tui.search.spelling import Correction, corrections
from memory_tui.search.trace import Floats, QueryPlan, QuestionPart

_MOST_REPEATED = 32
"""Words up to which a question is asked with its repeats, as OpenClaw does; of a longer one they are added up here."""
_MOST_COUNTED = 64
"""Words of a question without a match of which it is said how often each stands somewhere."""
_STEMMED: Form = "stemmed"
_TRIGRAM = 3
"""Characters without which trigrams find nothing."""


class Matcher(Struct, frozen=True):
    """Looks for words in the chunks of `corpus`, or in those of them that `eligible` marks.

    `cut` is how FTS5 cuts words. Where the way to `join` words is AND, our own way tells its words alone.
    """

    words: FullText
    corpus: Corpus
    eligible: Flags | None
    cut: str
    join: Join = ""

    def openclaw(self, query: str) -> KeywordSide:
        """Return all words of `query` at once, each of them needed."""
        every = core_tokens.WORD.findall(query)
        unique = tuple(dict.fromkeys(every))[: core_tokens.MOST_WORDS]
        inside = {word: None for word in unique if self._is_looked_through(word)}
        as_written = not inside and len(every) <= _MOST_REPEATED
        needed = every if as_written else [word for word in unique if word not in inside]
        if not unique:
            return KeywordSide()
        result: tuple[Rows, Floats] | None = self.words.match(needed, "plain", "all") if needed else None
        if result is not None and not as_written:
            result = self._repeated(result, {word: n - 1 for word, n in Counter(every).items() if word not in inside})
        for word in inside:
            result = _both(result, self.words.containing(word))
            if not len(result[0]):
                break
        postings = self._postings(result or _NOTHING)
        # Only an answer without a match has to tell which word killed it.
        uncounted = () if len(postings.rows) else unique[:_MOST_COUNTED]
        frequency = dict(zip(uncounted, self._frequency(uncounted, "plain"), strict=True))
        plan = QueryPlan(
            unique,
            (),
            " AND ".join(
                (*map(core_tokens.quoted, needed), *(f"text LIKE {core_tokens.quoted(f'%{word}%')}" for word in inside))
            ),
            inside=self.cut != "unicode61",
        )
        return KeywordSide(plan, postings, frequency)

    def matches(self, query: str) -> bool:
        """Return whether full-text search is asked for any word of `query`, and not the texts alone."""
        return any(not self._is_looked_through(word) for word in core_tokens.WORD.findall(query))

    def recommended(
        self, query: str, time: Time | None, *, reads_time: bool = True, spells: bool = True, in_parts: bool = True
    ) -> KeywordSide:
        """Return the chunks that hold any word of `query` that says something, by stems, but for those of its `time`.

        Where it `spells`, words that no chunk holds are corrected; `in_parts` a query that asks several things is taken
        apart.
        """
        named = ("", "") if time is None else (time.spelled, query[time.start : time.end])
        rest = without(query, time)
        alone = time is not None and rest == query
        frequency: dict[str, int] = {}

        def count(words: Sequence[str]) -> Sequence[int]:
            result = self._frequency(words, "stemmed")
            frequency.update(zip(words, result, strict=True))
            return result

        for_now = "" if time or not reads_time else words_for_now(query)
        count(every := core_tokens.split(rest))
        terms = core_tokens.terms(every, frequency, len(self.corpus))
        searched = *terms.searched, *terms.common
        corrected: tuple[Correction, ...] = ()
        # Words are found whole. Where nothing is matched, only words that no chunk holds are told.
        spells = spells and self.cut == "unicode61" and not alone
        if spells and (self.join != "AND" or not rest.isascii() or not all(count(searched))):
            vocabulary = partial(self.corpus.vocabulary, self.words)
            corrected = corrections(rest, searched, lambda word: count([word])[0], vocabulary, _is_word)
        chosen = _searched(terms.searched, corrected)
        # A word that was not counted would weigh as if no chunk held it.
        count([word for word in chosen if word not in frequency])
        count(core_tokens.syllable_pairs(query))
        dropped, matched, newest = terms.stops + terms.common, _NOTHING, _NOTHING[0]
        if chosen and self.join != "AND":
            matched = self._by_any(chosen, terms.common)
            newest = self._newest_of_same((*chosen, *terms.common)) if for_now else newest
        plan = QueryPlan(
            chosen,
            dropped,
            core_tokens.or_query(chosen),
            *named,
            common=core_tokens.left_out(terms.common, rest),
            counted=terms.common,
            corrections=corrected,
            parts=_parts(rest, (*chosen, *terms.common), corrected) if in_parts else (),
            time_alone=alone,
            for_now=for_now,
            value="" if time or for_now else value_asked(query),
        )
        return KeywordSide(plan, self._postings(matched), frequency, newest=newest)

    def _by_any(self, words: Sequence[str], common: Sequence[str]) -> tuple[Rows, Floats]:
        """Return the chunks that hold any of `words`, with their bm25 by Lucene's idf, to which `common` words add.

        That of FTS5 gives a word of half the chunks no weight: so a name that many notes hold tells none from another.
        """
        every, form = (*words, *common), _STEMMED
        chunks = self.words.size(form)
        factors = [lucene_idf(n, chunks) / fts5_idf(n, chunks) for n in self.words.frequency(every, form)]
        each = [self.words.match([word], form, "any") for word in every]
        rowids = distinct(np.concatenate([item.rowids for item in each[: len(words)]]))
        bm25 = np.zeros(len(rowids))
        for item, factor in zip(each, factors, strict=True):
            at = np.searchsorted(rowids, item.rowids)
            there = np.append(rowids, -1)[at] == item.rowids
            bm25[at[there]] += item.bm25[there] * factor
        return rowids, bm25

    def _newest_of_same(self, words: Sequence[str]) -> Rows:
        """Return the newest chunks that hold about as much of `words` as any does, without those that only ask."""
        held, files = np.zeros(len(self.corpus)), self.corpus.files
        for word in filterfalse(asks, words):
            rows = self._postings(self.words.match([word], _STEMMED, "any")).rows
            held[rows] += lucene_idf(len(rows), len(self.corpus))
        rows = np.flatnonzero(held >= ALIKE * held.max(initial=0.0)) if held.any() else distinct(_NOTHING[0])
        written = [files.written(file) for file in self.corpus.refs.file_of[rows].tolist()]
        return rows[np.argsort(-np.array(written, np.int64), kind="stable")][:NEWEST]

    def _repeated(self, result: tuple[Rows, Floats], more: Mapping[str, int]) -> tuple[Rows, Floats]:
        """Return `result` with the rank of each word counted as many times `more` as the question repeats it.

        The rank of an expression is the sum of the ranks of its words; FTS5, given a word a thousand times, compares
        each of its places with all the others.
        """
        rowids, bm25 = result[0], result[1].copy()
        for word, times in more.items():
            if times and len(rowids):
                alone, rank = self.words.match([word], "plain", "all")
                at = np.searchsorted(rowids, alone)
                hit = (at < len(rowids)) & (rowids[np.minimum(at, len(rowids) - 1)] == alone)
                bm25[at[hit]] += times * rank[hit]
        return rowids, bm25

    def keywords(self, query: str) -> KeywordSearch:
        """Return the keywords of `query` one by one; the whole of it when it has none (OpenClaw without a provider)."""
        trigram = self.cut == "trigram"
        chosen = keywords(query, trigram=trigram)[: core_tokens.MOST_WORDS]
        tokens = pieces(query, trigram=trigram) if chosen else []
        chosen_words = set(chosen)
        dropped = tuple(dict.fromkeys(token for token in tokens if token not in chosen_words))
        each = tuple(side for side in map(self.openclaw, chosen or (query,)) if side.plan.fts_query)
        several = len(each) > 1
        expressions = (
            f"({side.plan.fts_query})" if several and len(side.plan.words) > 1 else side.plan.fts_query for side in each
        )
        searched = tuple(word for side in each for word in side.plan.words)
        plan = QueryPlan(searched, dropped, " OR ".join(expressions), inside=trigram)
        return KeywordSearch(plan, each)

    def _is_looked_through(self, word: str) -> bool:
        return self.cut == "trigram" and len(word) < _TRIGRAM

    def _frequency(self, words: Sequence[str], form: Form) -> list[int]:
        """Return in how many chunks each word stands, by the way in which it is looked for."""
        if form == "stemmed":
            return self.words.frequency(words, form)
        matched = [word for word in words if not self._is_looked_through(word)]
        counted = dict(zip(matched, self.words.frequency(matched, form), strict=True))
        return [counted[word] if word in counted else len(self.words.containing(word)) for word in words]

    def _postings(self, result: tuple[Rows, Floats]) -> Postings:
        """Return matches as corpus rows, a repeat standing for the chunk that it repeats."""
        rowids, bm25 = result
        if not len(rowids):
            return Postings()
        rows = self.corpus.rows_of(rowids)
        if rows.min(initial=0) < 0:
            firsts = self.words.originals(rowids[rows < 0])
            rows = self.corpus.rows_of([firsts.get(rowid, rowid) for rowid in rowids.tolist()])
        elif self.eligible is None:
            return Postings.of(rows, bm25)
        is_row = rows >= 0 if self.eligible is None else (rows >= 0) & self.eligible[rows]
        return Postings.of(rows[is_row], bm25[is_row])


_NOTHING: tuple[Rows, Floats] = (np.empty(0, dtype=np.int64), np.empty(0))


def _both(result: tuple[Rows, Floats] | None, rowids: Rows) -> tuple[Rows, Floats]:
    """Return what was found and is among `rowids`; a match by its letters alone has rank 0, and so the text score 1."""
    if result is None:
        return rowids, np.zeros(len(rowids))
    stay = np.isin(result[0], rowids)
    return result[0][stay], result[1][stay]


def fts5_idf(holding: int, chunks: int) -> float:
    """ln((N - n + 0.5) / (n + 0.5)), and 0.000001 for a word of half the chunks or more (bm25 of SQLite's FTS5)."""
    result = math.log((max(0, chunks - holding) + 0.5) / (holding + 0.5))
    return result if result > 0 else 1e-6


def lucene_idf(holding: int, chunks: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)): above 0 for every word, unlike that of FTS5 (Lucene BM25Similarity)."""
    return math.log1p((max(0, chunks - holding) + 0.5) / (holding + 0.5))


def _searched(words: Sequence[str], corrected: Sequence[Correction]) -> tuple[str, ...]:
    """Return `words`, those that were corrected in their places."""
    instead: dict[str, Sequence[str]] = {}
    for item in corrected:
        if not item.also:
            first, *rest = core_tokens.WORD.findall(item.asked)
            instead |= {first: item.searched, **dict.fromkeys(rest, ())}
    more = [word for item in corrected for word in item.searched]
    return tuple(dict.fromkeys([*(new for word in words for new in instead.get(word, (word,))), *more]))


_MOST_PARTS = 4
_ASKS = core_tokens.words_by_use()["asks"]
_ENDS = r"(?<=[?？；;])\s*|(?<=[.!。！])\s+|(?:[，,]\s*|以及|还有)(?=(?-i:[\u3400-\u9fff]))|" + "|".join(
    rf"\s*,?\s+(?:{words})\s+(?:also\s+|auch\s+)?(?=(?:{_ASKS[language]})\b)"
    for language, words in core_tokens.words_by_use()["joins"].items()
)
# "was" asks in German alone, and is a verb in English.
_QUESTION = core_tokens.either("asks").replace("|was|", "|") + r"|¿|か[?？]|^\W*was\b"
_VERB = rf"\W*{core_tokens.either('begins')}"


def parts_of(question: str) -> tuple[str, ...]:
    """Return what `question` asks one by one, in its order; the whole of it where that is one thing.

    A part begins after the end of a sentence, or after "and" before a word that asks. It has a word that asks, or
    begins with a verb: what follows "Dr." has neither. What asks nothing belongs to the part before, where that has not
    ended by "?", else to the part that follows, or to the last one.
    """
    parts: list[tuple[int, int]] = []
    start = last = 0
    for end in (*re.finditer(_ENDS, question, re.IGNORECASE), None):
        stop, following = end.span() if end else (len(question), len(question))
        piece, begins = question[last:stop], question[:last].rstrip()[-1:] in ("", *"?？；;")
        if re.search(_QUESTION, piece, re.IGNORECASE) or (begins and re.match(_VERB, piece, re.IGNORECASE)):
            parts.append((start, stop))
            start = following
        elif parts and start == last and question[parts[-1][1] - 1] in ".!":
            parts[-1] = parts[-1][0], stop
            start = following
        last = following
    if parts and question[start:].strip():
        parts[-1] = parts[-1][0], len(question)
    return tuple(question[a:b].strip() for a, b in parts) if 1 < len(parts) <= _MOST_PARTS else (question,)


def _parts(query: str, words: Sequence[str], corrected: Sequence[Correction]) -> tuple[QuestionPart, ...]:
    """Return the parts of `query` with their `words`; none where fewer than two have any but function words."""
    result = []
    pieces = parts_of(query)
    for part in pieces if len(pieces) > 1 else ():
        stems = {stem for _, _, stem in core_tokens.spans(part)}
        meant = {word for item in corrected if item.asked.lower() in part.lower() for word in item.searched}
        part_words = tuple(
            word
            for word in words
            if word in meant
            or (word in part if core_tokens.is_cjk(word) else not stems.isdisjoint(core_tokens.word_stems(word)))
        )
        if part_words:
            result.append(QuestionPart(part, part_words))
    return tuple(result) if len(result) > 1 else ()


def _is_word(word: str) -> bool:
    """Return whether the token table knows a word as a whole; it then is no error, though no note holds it."""
    try:
        return len(static_table().ids(word)) <= 1
    except ProviderError:
        return False


# --- keywords, as OpenClaw chooses them without vectors ------------------------------------------------------------

# Scripts are told apart by segment: Japanese by its kana, Chinese, Korean, and everything else as it stands. The stop
# words are those that OpenClaw itself leaves out, because they decide what is looked for.
FEWEST_LETTERS = 3
"""Letters of the shortest keyword that is written in ASCII (OpenClaw)."""


@cache
def _lists() -> Mapping[str, frozenset[str]]:
    """Return the words that say nothing, by two-letter language; one of two languages stands in the first alone."""
    words: dict[str, frozenset[str]] = {}
    for row in Path(__file__).with_name("keywords.txt").read_text("utf-8").splitlines():
        if not row.startswith("#"):
            language, _, listed = row.partition(": ")
            words[language] = words.get(language, frozenset()) | {*listed.split()}
    return words


def stop_words(language: str) -> frozenset[str]:
    """Return the words of a two-letter `language` that OpenClaw leaves out."""
    return _lists()[language]


# The nominal particles of Korean; of two that fit, the longer one is taken off.
_PARTICLES = "에서 으로 에게 한테 처럼 같이 보다 까지 부터 마다 밖에 대로 은 는 이 가 을 를 의 에 로 와 과 도 만"
_KANA = "[\u3040-\u30ff]"
_HAN = "[\u4e00-\u9fff]"
_HANGUL = "[\uac00-\ud7af\u3131-\u3163]"
_SYLLABLE = "[\uac00-\ud7af]"
_JAPANESE = "[a-z0-9_]+|[\u30a0-\u30ffー]+|[\u4e00-\u9fff]+|[\u3040-\u309f]{2,}"
_ASCII_STEM = re.compile(r"[a-z0-9_]+", re.ASCII)
_DIGITS = re.compile(r"[0-9]+")
_LETTERS = re.compile(r"[A-Za-z]+")


@cache
def every_stop_word() -> frozenset[str]:
    """Return the words that are left out in any language."""
    return frozenset().union(*_lists().values())


def keywords(query: str, *, trigram: bool = False) -> tuple[str, ...]:
    """The keywords of `query` in their order, lower-cased, without repeats; possibly none (OpenClaw 2026.2.22 on).

    With `trigram` a run of Chinese characters stays whole, because trigrams find its parts by themselves.
    """
    return tuple(dict.fromkeys(word for word in pieces(query, trigram=trigram) if is_keyword(word)))


def pieces(query: str, *, trigram: bool = False) -> list[str]:
    """Return what `keywords` chooses from: segments between spaces and punctuation, cut further by their script."""
    return [token for segment in _segments(jsstring.trim(query.lower())) for token in _cut(segment, trigram)]


def is_keyword(token: str) -> bool:
    """Return whether `token` says enough to be searched for."""
    if token in every_stop_word() or _DIGITS.fullmatch(token):
        return False
    if len(token) < FEWEST_LETTERS and _LETTERS.fullmatch(token):
        return False
    return not all(unicodedata.category(character)[0] in "PS" for character in token)


def _segments(text: str) -> Iterator[str]:
    start = 0
    for at, character in enumerate(text):
        if character in jsstring.WHITESPACE or unicodedata.category(character)[0] == "P":
            if at > start:
                yield text[start:at]
            start = at + 1
    if start < len(text):
        yield text[start:]


def _cut(segment: str, trigram: bool) -> Iterator[str]:
    if segment.isascii():
        yield segment
    elif re.search(_KANA, segment):
        for part in re.findall(_JAPANESE, segment):
            yield part
            if re.match(_HAN, part) and not trigram:
                yield from _bigrams(part)
    elif characters := re.findall(_HAN, segment):
        # Letters between the characters are lost, as in the original.
        if trigram:
            yield "".join(characters)
        else:
            yield from characters
            yield from _bigrams("".join(characters))
    elif re.search(_HANGUL, segment):
        yield from _korean(segment)
    else:
        yield segment


def _bigrams(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def _korean(segment: str) -> Iterator[str]:
    """Yield a Korean word and its stem without a particle, each only where it is no stop word."""
    stops = stop_words("ko")
    stem = next(
        (segment.removesuffix(end) for end in _PARTICLES.split() if segment.endswith(end) and segment != end), ""
    )
    stemmed_to_stop = bool(stem) and stem in stops
    if segment not in stops and not stemmed_to_stop:
        yield segment
    if stem and not stemmed_to_stop and _useful(stem):
        yield stem


def _useful(stem: str) -> bool:
    return (len(stem) >= 2 and re.search(_SYLLABLE, stem) is not None) or _ASCII_STEM.fullmatch(stem) is not None
