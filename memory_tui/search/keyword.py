"""Keyword search of a question: OpenClaw's way, ours, which corrects words, or word by word without vectors.

FTS5 cuts text into words, or into trigrams, which cannot find a word of one or two characters: for those the text is
looked through.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import filterfalse
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import jsstring, tokens
from memory_tui.errors import ProviderError
from memory_tui.index.store import FullText
from memory_tui.providers.builtin import static_table
from memory_tui.search.corpus import Corpus, places_in
from memory_tui.search.question import ParsedQuery, question_parts
from memory_tui.search.trace import Correction, Flags, Floats, QueryPlan, Rows

Join = Literal["AND", "OR", ""]
"""How a profile asks for words: for each of them, for any; empty for both ways."""
_MOST_REPEATED = 32
"""Words up to which a question is asked with its repeats, as OpenClaw does; of a longer one they are added up here."""
_MOST_COUNTED = 64
"""Words of a question without a match of which it is said how often each stands somewhere."""
TRIGRAM = 3
"""Characters without which trigrams find nothing."""
ALIKE = 0.9
"""What the best line of a chunk holds of what the best of all holds, to say the same (now-images; .7 to .95 alike)."""
NEWEST = 10
"""How many of the newest that hold what is asked are candidates where it asks for now (now-images; 10 to 40 alike)."""


class Postings(Struct, frozen=True):
    """What full-text search returned, best first: corpus `rows` (a row can stand twice) and their `bm25`."""

    rows: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    bm25: Floats = field(default_factory=lambda: np.empty(0))

    def rank_of(self, row: int) -> tuple[int, float] | None:
        """Return the 1-based rank of `row` among all matches, and its bm25; None where it is no match."""
        there = np.flatnonzero(self.rows == row)
        return (int(there[0]) + 1, float(self.bm25[there[0]])) if len(there) else None


class KeywordSide(Struct, frozen=True):
    """Full-text search in one of the two ways: what was asked, and what came back."""

    plan: QueryPlan = QueryPlan()
    postings: Postings = field(default_factory=Postings)
    frequency: Mapping[str, int] = {}
    """In how many chunks each word of the plan stands."""
    whole: bool = False
    """Whether all postings are candidates, because what they were merged from was cut already."""
    newest: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    """The newest that hold about as much of the question as any, where it asks how things are now."""
    each: tuple[KeywordSide, ...] = ()
    """What each keyword found alone, where they were looked for one by one."""


class Matcher(Struct, frozen=True):
    """Looks for words in those chunks of `corpus` that `eligible` marks.

    `cut` is how FTS5 cuts words: unicode61 or trigram. Where `join` is AND, `recommended` returns a plan of words and
    matches no chunk by them.
    """

    words: FullText
    corpus: Corpus
    eligible: Flags
    cut: str
    join: Join = ""

    def openclaw(self, query: str) -> KeywordSide:
        """Return the chunks that hold every word of `query`.

        Words that are too short for trigrams are looked for in the texts, all others by full-text search.
        """
        written = tokens.WORD.findall(query)
        unique = tuple(dict.fromkeys(written))[: tokens.MOST_WORDS]
        looked_through = dict.fromkeys(filter(self._is_looked_through, unique))
        # Full-text search then gets the words with their repeats, and adds up their ranks itself.
        as_written = not looked_through and len(written) <= _MOST_REPEATED
        needed = written if as_written else [word for word in unique if word not in looked_through]
        result: tuple[Rows, Floats] | None = self.words.match(needed) if needed else None
        if result is not None and not as_written:
            result = self._repeated(result, {word: count - 1 for word, count in Counter(written).items()})
        for word in looked_through:
            result = _intersection(result, self._holding(word))
            if not len(result[0]):
                break
        # None where the query has no word.
        postings = self._postings(result or _NOTHING)
        # Only an answer without a match has to tell which word killed it.
        counted = () if len(postings.rows) else unique[:_MOST_COUNTED]
        frequency = {word: len(self._holding(word)) for word in counted}
        # The expression is told to people: FTS5 never sees a LIKE.
        letters = (f"text LIKE {tokens.quoted(f'%{word}%')}" for word in looked_through)
        expressions = *map(tokens.quoted, needed), *letters
        plan = QueryPlan(unique, (), " AND ".join(expressions), inside=self.cut != "unicode61")
        return KeywordSide(plan, postings, frequency)

    def matches(self, query: str) -> bool:
        """Return whether full-text search is asked for any word of `query`, and not the texts alone."""
        return any(not self._is_looked_through(word) for word in tokens.WORD.findall(query))

    def recommended(self, query: ParsedQuery, *, spells: bool = True) -> KeywordSide:
        """Return the chunks that hold, by stems, any word of `query` that says something.

        Words that name its time are not searched. Where it `spells`, words that no chunk holds are corrected.
        """
        frequency: dict[str, int] = {}

        def count(words: Sequence[str]) -> Sequence[int]:
            """Return in how many chunks each of `words` stands, and write it into `frequency`."""
            counts = self.words.frequency(words)
            frequency.update(zip(words, counts, strict=True))
            return counts

        words = tokens.split(query.rest)
        # Called for what it writes into `frequency`, by which common words are told.
        count(words)
        terms = tokens.terms(words, frequency, len(self.corpus))
        meant = *terms.searched, *terms.common
        corrected: tuple[Correction, ...] = ()
        # FTS5 has to find words whole.
        if spells and self.cut == "unicode61" and not query.plan.time_alone:
            # Under AND nothing is matched by corrections, which are only told: so those of an ASCII question are looked
            # for only where some word is in no chunk.
            tells_all = self.join != "AND" or not query.rest.isascii()
            if tells_all or not all(count(meant)):
                corrected = corrections(query.rest, meant, lambda word: count([word])[0], self._vocabulary)
        searched = _searched(terms.searched, corrected) if corrected else terms.searched
        all_words = *searched, *terms.common
        # A word that was not counted would weigh as if no chunk held it.
        count((*searched, *tokens.syllable_pairs(query.text)))
        matches = bool(searched) and self.join != "AND"
        plan = replace(
            query.plan,
            words=searched,
            dropped=terms.stops + terms.common,
            fts_query=tokens.or_query(searched),
            common=tokens.left_out(terms.common, query.rest) if terms.common else (),
            counted=terms.common,
            corrections=corrected,
            parts=question_parts(query.parts, all_words, corrected) if len(query.parts) > 1 else (),
        )
        postings = self._by_any(searched, terms.common, frequency) if matches else Postings()
        newest = self._newest_of_same(all_words) if matches and plan.for_now else _NOTHING[0]
        return KeywordSide(plan, postings, frequency, newest=newest)

    def _vocabulary(self) -> Vocabulary:
        """Return the words of the index, read when a query first needs them."""
        return self.corpus.once("vocabulary", lambda: Vocabulary(self.words.vocabulary()))

    def _by_any(self, words: Sequence[str], common: Sequence[str], frequency: Mapping[str, int]) -> Postings:
        """Return the chunks that hold any of `words`, with their bm25 by Lucene's idf, to which `common` words add.

        That of FTS5 gives a word of half the chunks no weight: so a name that many notes hold tells none from another.
        """
        norm = self.corpus.once("norm", self._norm)
        bm25, matched = np.zeros(len(norm)), np.zeros(len(norm), np.bool_)
        for number, word in enumerate((*words, *common)):
            counts = self._counts(word)
            bm25 -= lucene_idf(frequency[word], len(norm)) * (K1 + 1) * counts / (counts + norm)
            # The common words come last: they add points, and match nothing alone.
            matched |= (counts > 0) & (number < len(words))
        rows = np.flatnonzero(matched & self.eligible)
        best = rows[np.argsort(bm25[rows], kind="stable")]
        return Postings(best, bm25[best])

    def _norm(self) -> Floats:
        """Return what bm25 adds to the count of a word in each row, by its length over the mean."""
        lengths = self.words.lengths(self.corpus.refs.rowids)
        return length_norm(lengths, lengths.sum() / max(1, len(lengths)))

    def _counts(self, word: str) -> Rows:
        """Return how often `word` stands in each row, by stems."""
        # A chunk's rowid comes once for each place of the word in it.
        rows = self.corpus.refs.rowids.searchsorted(self.words.places(word))
        return np.bincount(rows, minlength=len(self.corpus))

    def _newest_of_same(self, words: Sequence[str]) -> Rows:
        """Return the newest chunks that hold about as much of `words`, by idf, as any does; the newest first.

        Words that only ask do not count.
        """
        held, files = np.zeros(len(self.corpus)), self.corpus.files
        for word in filterfalse(tokens.only_asks, words):
            rows = np.flatnonzero((self._counts(word) > 0) & self.eligible)
            held[rows] += lucene_idf(len(rows), len(self.corpus))
        rows = np.flatnonzero(held >= ALIKE * held.max(initial=0.0)) if held.any() else _NOTHING[0]
        written = [files.written(file) for file in self.corpus.refs.file_of[rows].tolist()]
        return rows[np.argsort(-np.array(written, np.int64), kind="stable")][:NEWEST]

    def _repeated(self, result: tuple[Rows, Floats], more: Mapping[str, int]) -> tuple[Rows, Floats]:
        """Return `result` with the rank of each word counted as often as the question has it.

        `more` tells by word how often it comes after the first time. The rank of an expression is the sum of the ranks
        of its words; FTS5, given a word a thousand times, compares each of its places with all the others.
        """
        rowids, bm25 = result[0], result[1].copy()
        for word, times in more.items():
            if times and len(rowids) and not self._is_looked_through(word):
                match = self.words.match([word])
                places, there = places_in(rowids, match.rowids)
                bm25[places] += times * match.bm25[there]
        return rowids, bm25

    def keywords(self, query: str) -> KeywordSide:
        """Return the keywords of `query` one by one; the whole of it when it has none (OpenClaw without a provider)."""
        trigram = self.cut == "trigram"
        chosen = keywords(query, trigram=trigram)[: tokens.MOST_WORDS]
        # Without a keyword the whole query is asked, and no piece of it is dropped.
        cut = dict.fromkeys(pieces(query, trigram=trigram) if chosen else ())
        dropped = tuple(word for word in cut if word not in {*chosen})
        each = tuple(side for side in map(self.openclaw, chosen or (query,)) if side.plan.fts_query)
        searched = tuple(word for side in each for word in side.plan.words)
        expressions = [side.plan.fts_query for side in each]
        if len(each) > 1:
            expressions = [f"({text})" if " AND " in text else text for text in expressions]
        return KeywordSide(QueryPlan(searched, dropped, " OR ".join(expressions), inside=trigram), each=each)

    def _is_looked_through(self, word: str) -> bool:
        """Return whether a word is too short for trigrams, so that texts are looked through for it."""
        return self.cut == "trigram" and len(word) < TRIGRAM

    def _holding(self, word: str) -> Rows:
        """Return the rowids of the chunks that hold `word`."""
        return self.words.containing(word) if self._is_looked_through(word) else self.words.match([word]).rowids

    def _postings(self, result: tuple[Rows, Floats]) -> Postings:
        """Return matches as corpus rows, a repeat standing for the chunk that it repeats."""
        rowids, bm25 = result
        rows = self.corpus.rows_of(rowids)
        repeats = rows < 0
        if repeats.any():
            # A repeat has no row of its own.
            firsts = self.words.originals(rowids[repeats])
            rows[repeats] = self.corpus.rows_of([firsts.get(rowid, rowid) for rowid in rowids[repeats].tolist()])
        # A rowid that is gone has row -1, which leads to the last flag: that one says no.
        counts = np.append(self.eligible, False)[rows]
        rows, bm25 = rows[counts], bm25[counts]
        # Of equal ones that which stands first in the corpus is better.
        best = np.argsort(bm25, kind="stable")
        return Postings(rows[best], bm25[best])


_NOTHING: tuple[Rows, Floats] = (np.empty(0, dtype=np.int64), np.empty(0))


def _intersection(result: tuple[Rows, Floats] | None, rowids: Rows) -> tuple[Rows, Floats]:
    """Return those matches of `result` that are among `rowids`; all of `rowids` where `result` is None.

    A match by its letters alone has rank 0, and so the text score 1.
    """
    if result is None:
        return rowids, np.zeros(len(rowids))
    stay = np.isin(result[0], rowids)
    return result[0][stay], result[1][stay]


def lucene_idf(holding: int, chunks: int) -> float:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)): above 0 for every word, unlike that of FTS5 (Lucene BM25Similarity)."""
    return math.log1p((max(0, chunks - holding) + 0.5) / (holding + 0.5))


K1, B = 1.2, 0.75
"""The constants of bm25, as FTS5 has them."""


def okapi_bm25(counts: Floats, idf: Floats, lengths: Floats, mean_length: float) -> Floats:
    """Return Okapi bm25: idf x tf (k1 + 1) / (tf + k1 (1 - b + b x length / mean length)).

    `counts` is (terms, passages), `idf` (terms,), `lengths` (passages,); returns (passages,), 0 where no term stands
    (Robertson and Zaragoza 2009).
    """
    norm = length_norm(lengths, mean_length)
    return np.asarray((idf[:, None] * counts * (K1 + 1) / (counts + norm)).sum(axis=0), dtype=np.float64)


def length_norm(lengths: Floats, mean_length: float) -> Floats:
    """Return k1 (1 - b + b x length / mean length): a count that is equal to it gives half of what a word can."""
    return K1 * (1 - B + B * lengths / mean_length)


def _searched(words: Sequence[str], corrected: Sequence[Correction]) -> tuple[str, ...]:
    """Return `words` with corrections in the place of those that were misspelled, and all corrections behind, once."""
    instead: dict[str, Sequence[str]] = {}
    for item in corrected:
        if not item.also:
            # Of two words that are searched as one, the first is replaced and the second goes.
            first, *rest = tokens.WORD.findall(item.asked)
            instead |= {first: item.searched, **dict.fromkeys(rest, ())}
    more = [word for item in corrected for word in item.searched]
    return tuple(dict.fromkeys([*(new for word in words for new in instead.get(word, (word,))), *more]))


# --- spelling --------------------------------------------------------------------------------------------------------

FEWEST_CORRECTED, FEWEST_MISSPELLED = 4, 5
MOST_LETTERS = 64
"""Letters of a word that may be misspelled, or be two that were written as one: each place to split it is tried."""
TWO_EDITS_FROM = 8
_WORD = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPT = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]{2,}")
_LINKED = re.compile(rf"(?<!\w)([^\W_]{{2,{MOST_LETTERS}}})(-| )(?=([^\W_]{{2,{MOST_LETTERS}}})(?!\w))")
_GERMAN, _ENGLISH = ("der", "und", "die", "nicht"), ("the", "and", "of", "not")

# A word of 5 to 64 letters, or of 4 that lacks one, is corrected to the nearest word of the index, of equally near ones
# the most frequent: an edit away (a letter too much, too few, another one but for the first, two in the wrong order),
# from eight letters on two where the first letter is the same (optimal string alignment, a restricted form of Damerau
# 1964). A word that the token table knows as a whole is no error, nor is one on a list of stop words, nor any of a
# question in another language than the notes: "wann" is no "want". Compounds keep their hyphen, their space or neither
# in one note and lose it in the next, so that "pihole", "Pi-hole" and "Pi hole" find each other. German notes are left
# alone: their compounds and endings are an edit apart and mean other things (560 words of 1,190 questions would have
# been changed).
#
# A name in another script than the one that is asked in is found by how it is spelled, letter by letter: "Moskva" and
# "Москва". That needs no dictionary, and knows none: "Moscow" is left as it is. Of Chinese, Japanese and Korean a name
# of two characters finds its Latin form ("北京", "Beijing"), not the reverse, as the index has no words of these; a
# Japanese one is read as Chinese.


class Vocabulary(Struct, frozen=True, dict=True):
    """The words of an index in lower case, and how many chunks hold each."""

    chunks_of: Mapping[str, int]

    @cached_property
    def _by_letter(self) -> Mapping[str, Sequence[str]]:
        """Return the words of letters alone, which may be what was meant, by their first letter."""
        words = defaultdict[str, list[str]](list)
        for word in self.chunks_of:
            if len(word) >= FEWEST_CORRECTED - 1 and _WORD.fullmatch(word) and not tokens.is_cjk(word):
                words[word[0]].append(word)
        return words

    @cached_property
    def is_german(self) -> bool:
        """Return whether more chunks hold German function words than English ones."""
        german, english = (sum(self.chunks_of.get(word, 0) for word in words) for words in (_GERMAN, _ENGLISH))
        return german > english

    @cached_property
    def language(self) -> str:
        """Return the language whose function words most chunks hold."""
        return tokens.language_of(self.chunks_of)

    @cached_property
    def _by_sound(self) -> Mapping[str, str]:
        """Return the words in other scripts by their spelling in Latin letters; of equal ones the most frequent."""
        other = (word for word in self.chunks_of if not word.isascii() and _OTHER_SCRIPT.fullmatch(word))
        foreign = [word for word in other if not tokens.is_cjk(word)]
        # Of words that are spelled alike the most frequent comes last, and takes the place of the others.
        return {_in_latin(word): word for word in sorted(foreign, key=self.chunks_of.__getitem__)} if foreign else {}

    def in_another_script(self, word: str) -> str:
        """Return the word that is spelled as `word` is, in another script; empty where none is."""
        if _OTHER_SCRIPT.fullmatch(word):
            spelled = _in_latin(word)
            return spelled if len(spelled) >= FEWEST_CORRECTED and spelled in self.chunks_of else ""
        return self._by_sound.get(word.lower(), "") if len(word) >= FEWEST_CORRECTED else ""

    def nearest(self, word: str) -> str:
        """Return the word that was meant: the nearest by edits, of equally near ones the most frequent.

        Empty where none is near enough. `edits_of` has the edits of each word that may be meant.
        """
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        most = 1 if len(word) < TWO_EDITS_FROM else 2
        words = self._by_letter
        near = process.extract(word, words.get(word[0], ()), scorer=OSA.distance, score_cutoff=most, limit=None)
        edits_of = {other: int(edits) for other, edits, _ in near}
        # Two edits with another first letter are another word, and that alone is in a short one: "scolding" is no
        # "holding", "floss" no "gloss".
        rests = (word, word[1:]) if most > 1 else (word,)
        # The first letter is too much, stands in the wrong order, is missing, or is another one.
        turned = word[1:], word[1::-1] + word[2:], *(letter + rest for letter in words for rest in rests)
        there = (other for other in turned if other[0] != word[0] and other in self.chunks_of)
        edits_of |= {other: 1 for other in there if other in words.get(other[0], ())}
        # A short word may lack a letter; with another one in its place it is too often another word.
        shortest = len(word) - most if len(word) >= FEWEST_MISSPELLED else len(word) + 1
        ranked = ((edits, -self.chunks_of[other], other) for other, edits in edits_of.items() if len(other) >= shortest)
        # The word stands last, behind what it is ranked by.
        return min(ranked, default=(0, 0, ""))[-1]


def _in_latin(word: str) -> str:
    """Return `word` of another script as it is spelled in Latin letters, in lower case."""
    # Its tables are read when the first such word is met.
    from anyascii import anyascii

    return anyascii(word).lower()


def corrections(
    query: str, searched: Sequence[str], frequency: Callable[[str], int], vocabulary: Callable[[], Vocabulary]
) -> tuple[Correction, ...]:
    """Return what `searched` words were meant to be; `frequency` tells in how many chunks a word, or two, stand.

    `vocabulary` is only read where a word is not held.
    """
    result = []
    for first, gap, second in _LINKED.findall(query.lower()):
        # Between spaces both must be words that count: "in to" is no "into".
        if (gap == "-" or {first, second} <= {*searched}) and frequency(first + second):
            is_apart = bool(frequency(f"{first} {second}"))
            result.append(Correction(f"{first}{gap}{second}", (first + second,), also=is_apart))
    # German notes are left alone, as by `_meant`; that they are German tells the vocabulary, which takes time to read.
    if result and vocabulary().is_german:
        return ()
    for word in searched:
        if len(word) > MOST_LETTERS or not _WORD.fullmatch(word):
            continue
        if (word.isascii() and len(word) < FEWEST_CORRECTED) or frequency(word):
            continue
        if meant := vocabulary().in_another_script(word) or _meant(word, query, vocabulary(), frequency):
            result.append(Correction(word, tuple(meant.split())))
    return tuple(result)


def _meant(word: str, query: str, words: Vocabulary, frequency: Callable[[str], int]) -> str:
    """Return the two words that notes write `word` as, or the nearest word; empty where it is no error or none is near.

    A word that the token table knows as a whole is no error.
    """
    if len(word) < FEWEST_CORRECTED or tokens.is_cjk(word) or words.is_german:
        return ""
    with suppress(ProviderError):
        if len(static_table().ids(word)) <= 1:
            return ""
    splits = [(word[:at], word[at:]) for at in range(2, len(word) - 1)]
    pairs = [" ".join(pair) for pair in splits if all(words.chunks_of.get(part) for part in pair)]
    # Of several pairs that notes hold side by side the one whose first word is longest.
    if apart := next(filter(frequency, reversed(pairs)), ""):
        return apart
    language = tokens.language_of(dict.fromkeys(tokens.WORD.findall(query.lower()), 1))
    is_foreign = tokens.is_listed(word) or (language != "en" and words.language != language)
    return "" if is_foreign else words.nearest(word)


# --- keywords, as OpenClaw chooses them without vectors ------------------------------------------------------------

# Scripts are told apart by segment: Japanese by its kana, Chinese, Korean, and everything else as it stands. The stop
# words are those that OpenClaw itself leaves out, because they decide what is looked for.
FEWEST_LETTERS = 3
"""Letters of the shortest keyword that is written in ASCII (OpenClaw)."""


@cache
def stop_words() -> Mapping[str, frozenset[str]]:
    """Return the words that OpenClaw leaves out, by two-letter language.

    A word of two languages stands under one of them.
    """
    words: dict[str, frozenset[str]] = {}
    for row in Path(__file__).with_name("keywords.txt").read_text("utf-8").splitlines():
        if not row.startswith("#"):
            language, _, listed = row.partition(": ")
            words[language] = words.get(language, frozenset()) | {*listed.split()}
    return words


# The nominal particles of Korean; of two that fit, the longer one is taken off.
_PARTICLES = "에서 으로 에게 한테 처럼 같이 보다 까지 부터 마다 밖에 대로 은 는 이 가 을 를 의 에 로 와 과 도 만"
_KANA = "[\u3040-\u30ff]"
_HAN = "[\u4e00-\u9fff]"
_HANGUL = "[\uac00-\ud7af\u3131-\u3163]"
_JAPANESE = "[a-z0-9_]+|[\u30a0-\u30ffー]+|[\u4e00-\u9fff]+|[\u3040-\u309f]{2,}"
LATIN = re.compile(r"[a-z0-9_]+")


def keywords(query: str, *, trigram: bool = False) -> tuple[str, ...]:
    """Return the keywords of `query` in order, lower-cased, without repeats; possibly none (OpenClaw 2026.2.22 on).

    With `trigram` a run of Chinese characters stays whole, because trigrams find its parts by themselves.
    """
    return tuple(dict.fromkeys(word for word in pieces(query, trigram=trigram) if is_keyword(word)))


def pieces(query: str, *, trigram: bool = False) -> list[str]:
    """Return what `keywords` chooses from: segments between spaces and punctuation, cut further by their script."""
    ends = (item in jsstring.WHITESPACE or unicodedata.category(item)[0] == "P" for item in query.lower())
    spaced = "".join(" " if is_end else item for item, is_end in zip(query.lower(), ends, strict=True))
    return [token for segment in filter(None, spaced.split(" ")) for token in _cut(segment, trigram)]


def is_keyword(token: str) -> bool:
    """Return whether `token` says enough to be searched for."""
    is_short = token.isalpha() and len(token) < FEWEST_LETTERS
    if token.isascii() and (token.isdigit() or is_short):
        return False
    if any(token in listed for listed in stop_words().values()):
        return False
    # Punctuation and symbols alone say nothing.
    return not all(unicodedata.category(character)[0] in "PS" for character in token)


def _cut(segment: str, trigram: bool) -> Iterator[str]:
    """Yield the pieces of a `segment` by its script; for a `trigram` index runs of Chinese characters stay whole."""
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
    """Return each two characters of `run` that follow one another."""
    return (run[at : at + 2] for at in range(len(run) - 1))


def _korean(segment: str) -> Iterator[str]:
    """Yield a Korean word and its stem without a particle, each only where it is no stop word."""
    stops = stop_words()["ko"]
    particle = next((end for end in _PARTICLES.split() if segment.endswith(end) and segment != end), "")
    stem = segment.removesuffix(particle) if particle else ""
    if stem in stops:
        return
    if segment not in stops:
        yield segment
    has_syllable = any("\uac00" <= character <= "\ud7af" for character in stem)
    if (len(stem) > 1 and has_syllable) or LATIN.fullmatch(stem):
        yield stem
