"""Lexical search is the keyword side of OpenClaw 2026.9. It looks for the question, its keywords and paths, and adds
boosts.

Nothing here depends on a knob: the list of hits is evidence (sections 6.2 to 6.7 of the profile's specification).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct, field

from memory_tui.core import tokens as core_tokens
from memory_tui.index.store import Store
from memory_tui.search import formulas, rules_2026_9
from memory_tui.search.corpus import Corpus
from memory_tui.search.evidence import Flags, KeywordSide, Lexical, Rows, TermSearch
from memory_tui.search.formulas import Floats
from memory_tui.search.keyword import Matcher
from memory_tui.search.path_search import PathIndex
from memory_tui.search.rules_2026_9 import (
    LIMIT,
    NO_BOOST,
    Boost,
    Hit,
    boosted,
    boosts,
    limited,
    merged,
    merged_and_limited,
    words_in_text,
)
from memory_tui.workspace.annotations import Annotations


class LexicalCache(Struct, frozen=True):
    """What of one corpus does not depend on the question: its paths, and what the annotations of rows say."""

    paths: PathIndex
    said: Mapping[int, Annotations]
    uuid: str
    distinct: dict[int, int]
    """How many different words chunks have, by rowid, as far as anybody asked."""
    plain: dict[int, int]
    """Characters of the texts that were read, by rowid, where full-text search cuts the same words; -1 elsewhere."""
    places: dict[int, tuple[str, int, int, str]]
    """Path, first and last line, id, by row, of those that were found."""


_known: WeakKeyDictionary[Corpus, LexicalCache] = WeakKeyDictionary()


def known(store: Store, corpus: Corpus, *, trigram: bool) -> LexicalCache:
    """What is known of `corpus`, worked out once; the paths of the corpus before it stay where no note came or went."""
    found = _known.get(corpus)
    if found is None or found.paths.trigram != trigram:
        rowids = store.annotations()
        rows = corpus.rows_of(list(rowids))
        said = {
            int(row): Annotations(*own) for row, own in zip(rows.tolist(), rowids.values(), strict=True) if row >= 0
        }
        others = (other.paths for other in list(_known.values()))
        gone = _gone(store, corpus)
        same = next((paths for paths in others if paths.is_of(corpus.files, gone) and paths.trigram == trigram), None)
        before = next((other for other in list(_known.values()) if other.uuid == corpus.uuid), None)
        counted, plain = (before.distinct, before.plain) if before else ({}, {})
        paths = same or PathIndex(corpus.files, gone, trigram=trigram)
        found = _known[corpus] = LexicalCache(paths, said, corpus.uuid, counted, plain, {})
    return found


def _gone(store: Store, corpus: Corpus) -> frozenset[int]:
    """The files of `corpus` that were removed; a note without text has no chunk either, but its path counts."""
    paths = corpus.files.paths
    empty = np.flatnonzero(np.bincount(corpus.file_of, minlength=len(paths)) == 0).tolist()
    there = store.known()
    return frozenset(file for file in empty if paths[file] not in there)


def search(store: Store, matcher: Matcher, query: str, whole: KeywordSide) -> tuple[Lexical, dict[int, str]]:
    """All that words and paths find for `query`, in the order of the original, and the texts read for it by rowid.

    `whole` is what the words of the whole query found.

    Raises QueryError, Cancelled.
    """
    seen = known(store, matcher.corpus, trigram=matcher.full_text == "trigram")
    found = _Search(store, matcher, seen, query)
    return found.all(whole), found.texts


class _Found(Struct, frozen=True):
    """What one search found: `every` row with its words, the best `rows` of them with bm25 and text score, and hits by
    `paths`.
    """

    every: Rows
    rows: Rows
    bm25: Floats
    text: Floats
    is_matched: bool
    paths: Sequence[Hit]


class _Search(Struct, dict=True):
    """One question."""

    store: Store
    matcher: Matcher
    seen: LexicalCache
    query: str
    texts: dict[int, str] = field(default_factory=dict)
    """By rowid."""
    gains: dict[int, Boost] = field(default_factory=dict)
    """By row."""
    shared: dict[int, int] = field(default_factory=dict)
    """How many of the words texts hold beside those that are `unknown`, by rowid, where full-text search tells."""
    unknown: frozenset[str] = frozenset()
    searches: list[TermSearch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asked = core_tokens.words_of(self.query)
        self.in_paths = [word for word in self.asked if word in self.seen.paths.all_contents]
        self.levels = self.seen.paths.exact(self.query)
        corpus = self.matcher.corpus
        files = corpus.file_of if self.matcher.kept is None else corpus.file_of[self.matcher.kept]
        self.counts = np.bincount(files, minlength=len(corpus.files.paths)) if len(corpus) else np.zeros(0)

    def all(self, whole: KeywordSide) -> Lexical:
        first = self.one(self.query, whole)
        found = [first, *(self.one(term, self.matcher.openclaw(term)) for term in self.terms(first))]
        rows = self.needed(found)
        self.read([rowid for rowid in self.matcher.corpus.rowids[rows].tolist() if rowid not in self.texts])
        self.gain(rows)
        among = self.among(rows)
        hits = limited(merged([self.hits(one, term, among[one.rows]) for term, one in enumerate(found)]))
        plan = self.searches[0].plan
        return Lexical(
            plan,
            tuple(self.searches),
            tuple(hits),
            self.seen.said,
            self.levels,
            self.matcher.corpus.files.mtimes_ms,
            self.seen.paths.order,
        )

    def terms(self, first: _Found) -> tuple[str, ...]:
        """The keywords that are looked for one by one after the whole question found `first` (6.7)."""
        rows = {*first.rows.tolist(), *(hit.row for hit in first.paths)}
        if sum(self.file(row) not in self.levels for row in rows) >= LIMIT:
            return ()
        found = rules_2026_9.fallback_terms(self.query, trigram=self.matcher.full_text == "trigram")
        # The same words in the same order would be the same search again.
        asked, again = (core_tokens.WORD.findall(text.lower()) for text in (self.query, " ".join(found)))
        return () if rows and asked == again else found

    def one(self, query: str, side: KeywordSide) -> _Found:
        """One search: in texts, where `side` found its words, and in paths (6.2, 6.4)."""
        rows, bm25 = side.postings.rows[:LIMIT], side.postings.bm25[:LIMIT]
        matched = self.matcher.matches(query)
        paths = self.paths(query, len(self.searches))
        self.searches.append(
            TermSearch(query, side.plan, len(side.postings.rows), len(rows), len(paths), side.frequency)
        )
        return _Found(
            side.postings.rows, rows, bm25, formulas.saturated(bm25) if matched else np.zeros(len(rows)), matched, paths
        )

    def needed(self, found: Sequence[_Found]) -> Rows:
        """The rows, in order, that can come into the answer by what is known without their texts.

        A row is left out where 200 others are before it whatever the texts hold: the boost of a text has bounds.
        """
        rows = np.concatenate([one.rows for one in found])
        rows, at = np.unique(rows, return_inverse=True)
        cut = any(one.paths and len(one.paths) + len(one.rows) > LIMIT for one in found)
        if len(rows) <= LIMIT or cut or not all(one.is_matched for one in found) or not self.asked:
            return rows
        text = np.zeros(len(rows))
        np.maximum.at(text, at, np.concatenate([one.text for one in found]))
        files = self.matcher.corpus.file_of[rows].tolist()
        low, high = self.bounds(found, rows, files)
        low, high = np.minimum(1.0, text + low), np.minimum(1.0, text + high)
        named = {hit.row for one in found for hit in one.paths}
        exact = np.array([file in self.levels for file in files])
        others = np.flatnonzero(~exact)
        if len(others) <= LIMIT:
            return rows
        last = others[np.lexsort((-text[others], -low[others]))[LIMIT - 1]]
        behind = (high < low[last]) | ((high == low[last]) & (text < text[last]))
        needed: Flags = exact | ~behind | self.among(np.array(list(named), dtype=np.int64))[rows]
        return rows[needed]

    def bounds(self, found: Sequence[_Found], rows: Rows, files: Sequence[int]) -> tuple[Floats, Floats]:
        """The least and the most that the text of each of `rows` can gain it."""
        rowids, seen = self.matcher.corpus.rowids[rows].tolist(), self.seen
        self.count([rowid for rowid in rowids if rowid not in seen.distinct])
        distinct = np.array([seen.distinct.get(rowid, 0) for rowid in rowids])
        units = np.array([seen.plain.get(rowid, -1) for rowid in rowids])
        is_plain = units >= 0
        # In a plain text stand those of the words that full-text search finds there.
        possible = {word for word in self.asked if word.isascii() and "_" not in word}
        by_term = {search.term: one for search, one in zip(self.searches, found, strict=True)}
        held = np.zeros(len(rows), dtype=np.int64)
        for word in possible & by_term.keys():
            held += self.among(by_term[word].every)[rows]
        self.unknown = frozenset(possible - by_term.keys())
        self.shared = dict(zip(np.array(rowids)[is_plain].tolist(), held[is_plain].tolist(), strict=True))
        least = np.where(is_plain, held, 0)
        most = np.where(is_plain, held + len(self.unknown), len(self.asked))
        # So many words with a character between them are so long at least.
        short = np.where(is_plain, units, np.maximum(2 * distinct - 1, 0))
        paths = np.array(self.words_in(files))
        return (
            rules_2026_9.bounded_boost(len(self.asked), least, distinct, paths, short, least=True),
            rules_2026_9.bounded_boost(len(self.asked), most, distinct, paths, np.where(is_plain, units, 1000)),
        )

    def among(self, rows: Rows) -> Flags:
        """Which rows of the corpus are `rows`."""
        flags = np.zeros(len(self.matcher.corpus), dtype=np.bool_)
        flags[rows] = True
        return flags

    def hits(self, found: _Found, term: int, own: Flags) -> list[Hit]:
        """Those of its `own` that one search found, with their boosts, and by paths (6.2, 6.4, 6.6)."""
        rows, files = found.rows[own].tolist(), self.matcher.corpus.file_of[found.rows[own]].tolist()
        hits = []
        for row, file, rank, score in zip(rows, files, found.bm25[own].tolist(), found.text[own].tolist(), strict=True):
            gain, bm25 = self.gains[row], rank if found.is_matched else np.nan
            level, place = self.levels.get(file, 0), self.order_of(row)
            hits.append(Hit(row, place, level, True, boosted(score, gain), score, 0.0, bm25, gain, term))
        return merged_and_limited([hits, found.paths])

    def paths(self, query: str, term: int) -> list[Hit]:
        """The first chunk of each file whose path was found (6.4)."""
        found = []
        for hit in self.seen.paths.search(query, self.query, self.has_chunk):
            row = self.first_row(hit.file)
            score = 1.0 if hit.level else hit.score
            place = self.order_of(row)
            found.append(Hit(row, place, hit.level, False, score, 0.0, hit.score, np.nan, NO_BOOST, term))
        found.sort(key=Hit.order)
        exact = [hit for hit in found if hit.level]
        return (exact + [hit for hit in found if not hit.level][:LIMIT])[: 2 * LIMIT]

    def read(self, rowids: Sequence[int]) -> None:
        """Read texts, and how many different words those have that nobody asked about."""
        if rowids:
            self.texts |= (texts := self.store.texts(rowids))
            if self.matcher.full_text == "unicode61":
                self.seen.plain.update(
                    (rowid, len(text) if text.isascii() and "_" not in text else -1) for rowid, text in texts.items()
                )
            self.count([rowid for rowid in rowids if rowid not in self.seen.distinct])

    def count(self, rowids: Sequence[int]) -> None:
        """Read how many different words chunks have."""
        if rowids:
            self.seen.distinct.update(self.store.word_counts(rowids))

    def gain(self, rows: Rows) -> None:
        """Work out what the text of each of `rows` gains it."""
        corpus, counts = self.matcher.corpus, self.seen.distinct
        rowids = corpus.rowids[rows].tolist()
        texts = [self.texts.get(rowid, "") for rowid in rowids]
        for rowid, text in zip(rowids, texts, strict=True):
            if rowid not in counts:
                # It was indexed before anybody counted.
                counts[rowid] = len(core_tokens.words_of(text))
        shared = [
            words_in_text(self.asked, text) if known is None else known + words_in_text(self.unknown, text)
            for text, known in zip(texts, map(self.shared.get, rowids), strict=True)
        ]
        distinct = [counts[rowid] for rowid in rowids]
        in_path = self.words_in(corpus.file_of[rows].tolist())
        self.gains = dict(zip(rows.tolist(), boosts(len(self.asked), shared, texts, distinct, in_path), strict=True))

    def words_in(self, files: Sequence[int]) -> Sequence[int]:
        """How many of the words that were asked for stand in the path of each of `files`."""
        if not self.in_paths:
            return [0] * len(files)
        paths = self.matcher.corpus.files.paths
        found = {file: rules_2026_9.words_in_path(self.in_paths, paths[file]) for file in dict.fromkeys(files)}
        return [found[file] for file in files]

    def file(self, row: int) -> int:
        """The file that `row` is of."""
        return int(self.matcher.corpus.file_of[row])

    def order_of(self, row: int) -> tuple[str, int, int, str]:
        found = self.seen.places.get(row)
        if found is None:
            corpus = self.matcher.corpus
            found = corpus.path(row), int(corpus.start_lines[row]), int(corpus.end_lines[row]), corpus.chunk_id(row)
            self.seen.places[row] = found
        return found

    def has_chunk(self, file: int) -> bool:
        return bool(self.counts[file])

    def rows_of(self, file: int) -> Sequence[int]:
        return np.flatnonzero(self.matcher.corpus.file_of == file).tolist()

    def first_row(self, file: int) -> int:
        return min(self.rows_of(file), key=lambda row: self.order_of(row)[1:])
