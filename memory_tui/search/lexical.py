"""Lexical search is the keyword side of OpenClaw 2026.9: the question, its keywords, paths, boosts.

Nothing here depends on a knob: the list of hits is evidence (sections 6.2 to 6.7 of the profile's specification).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from memory_tui.core import tokens as core_tokens
from memory_tui.search import formulas, rules_2026_9
from memory_tui.search.corpus import Corpus
from memory_tui.search.evidence import Lexical, TermSearch
from memory_tui.search.keyword import Matcher
from memory_tui.search.path_search import PathIndex
from memory_tui.search.rules_2026_9 import (
    LIMIT,
    NO_BOOST,
    Boost,
    Hit,
    boost,
    boosted,
    limited,
    merged,
    merged_and_limited,
)
from memory_tui.source.protocol import ChunkSource
from memory_tui.workspace.annotations import Annotations


@dataclass(frozen=True, slots=True)
class LexicalCache:
    """What of one corpus does not depend on the question: its paths, and what the annotations of rows say."""

    paths: PathIndex
    said: Mapping[int, Annotations]
    uuid: str
    distinct: dict[int, int]
    """How many different words chunks have, by rowid, as far as anybody asked."""


_known: WeakKeyDictionary[Corpus, LexicalCache] = WeakKeyDictionary()


def known(store: ChunkSource, corpus: Corpus, *, trigram: bool) -> LexicalCache:
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
        counted = next((other.distinct for other in list(_known.values()) if other.uuid == corpus.uuid), {})
        paths = same or PathIndex(corpus.files, gone, trigram=trigram)
        found = _known[corpus] = LexicalCache(paths, said, corpus.uuid, counted)
    return found


def _gone(store: ChunkSource, corpus: Corpus) -> frozenset[int]:
    """The files of `corpus` that were removed; a note without text has no chunk either, but its path counts."""
    paths = corpus.files.paths
    empty = np.flatnonzero(np.bincount(corpus.file_of, minlength=len(paths)) == 0).tolist()
    there = store.known()
    return frozenset(file for file in empty if paths[file] not in there)


def search(store: ChunkSource, matcher: Matcher, query: str) -> tuple[Lexical, dict[int, str]]:
    """All that words and paths find for `query`, in the order of the original, and the texts read for it by rowid.

    Raises QueryError, Cancelled.
    """
    seen = known(store, matcher.corpus, trigram=matcher.full_text == "trigram")
    found = _Search(store, matcher, seen, query)
    return found.all(), found.texts


@dataclass
class _Search:
    """One question."""

    store: ChunkSource
    matcher: Matcher
    seen: LexicalCache
    query: str
    texts: dict[int, str] = field(default_factory=dict)
    """By rowid."""
    gains: dict[int, Boost] = field(default_factory=dict)
    places: dict[int, tuple[str, int, int, str]] = field(default_factory=dict)
    in_path: dict[int, int] = field(default_factory=dict)
    searches: list[TermSearch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asked = core_tokens.words_of(self.query)
        self.levels = self.seen.paths.exact(self.query)
        corpus = self.matcher.corpus
        self.counts = np.bincount(corpus.file_of, minlength=len(corpus.files.paths)) if len(corpus) else np.zeros(0)

    def all(self) -> Lexical:
        first = self.one(self.query)
        lists = [first]
        terms = self.terms(first)
        lists += [self.one(term) for term in terms]
        hits = limited(merged(lists))
        plan = self.searches[0].plan
        return Lexical(
            plan, tuple(self.searches), tuple(hits), self.seen.said, self.levels, self.matcher.corpus.files.mtimes
        )

    def terms(self, first: Sequence[Hit]) -> tuple[str, ...]:
        """The keywords that are looked for one by one after the whole question found `first` (6.7)."""
        if sum(not hit.level for hit in first) >= LIMIT:
            return ()
        found = rules_2026_9.fallback_terms(self.query, trigram=self.matcher.full_text == "trigram")
        # The same words in the same order would be the same search again.
        asked, again = (core_tokens.WORD.findall(text.lower()) for text in (self.query, " ".join(found)))
        return () if first and asked == again else found

    def one(self, query: str) -> list[Hit]:
        """One search: in texts and in paths (6.2, 6.4, 6.6)."""
        side = self.matcher.openclaw(query)
        rows, bm25 = side.postings.rows[:LIMIT], side.postings.bm25[:LIMIT]
        term = len(self.searches)
        bodies = self.bodies(rows.tolist(), bm25.tolist(), term, is_matched=self.matcher.matches(query))
        paths = self.paths(query, term)
        self.searches.append(
            TermSearch(query, side.plan, len(side.postings.rows), len(bodies), len(paths), side.frequency)
        )
        return merged_and_limited([bodies, paths])

    def bodies(self, rows: Sequence[int], bm25: Sequence[float], term: int, *, is_matched: bool) -> list[Hit]:
        """The chunks `rows`, whose text was found, with their boosts."""
        corpus = self.matcher.corpus
        rowids, files = corpus.rowids[rows].tolist(), corpus.file_of[rows].tolist()
        self.read([rowid for rowid in rowids if rowid not in self.texts])
        scores = formulas.saturated(np.array(bm25)).tolist() if is_matched else [0.0] * len(rows)
        found = []
        for row, rowid, file, rank, score in zip(rows, rowids, files, bm25, scores, strict=True):
            gain = self.gain(rowid, file)
            found.append(
                Hit(
                    row,
                    self.order_of(row),
                    self.levels.get(file, 0),
                    True,
                    boosted(score, gain),
                    score,
                    0.0,
                    rank if is_matched else np.nan,
                    gain,
                    term,
                )
            )
        return found

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
        if not rowids:
            return
        self.texts |= self.store.texts(rowids)
        counts = self.seen.distinct
        if uncounted := [rowid for rowid in rowids if rowid not in counts]:
            counts.update(self.store.word_counts(uncounted))

    def gain(self, rowid: int, file: int) -> Boost:
        found = self.gains.get(rowid)
        if found is None:
            if file not in self.in_path:
                self.in_path[file] = rules_2026_9.words_in_path(self.asked, self.matcher.corpus.files.paths[file])
            text, counts = self.texts.get(rowid, ""), self.seen.distinct
            if rowid not in counts:
                # It was indexed before anybody counted.
                counts[rowid] = len(core_tokens.words_of(text))
            found = self.gains[rowid] = boost(self.asked, text, counts[rowid], self.in_path[file])
        return found

    def order_of(self, row: int) -> tuple[str, int, int, str]:
        found = self.places.get(row)
        if found is None:
            corpus = self.matcher.corpus
            found = corpus.path(row), int(corpus.start_lines[row]), int(corpus.end_lines[row]), corpus.chunk_id(row)
            self.places[row] = found
        return found

    def has_chunk(self, file: int) -> bool:
        return bool(self.counts[file]) and (self.matcher.kept is None or bool(self.matcher.kept[self.rows_of(file)[0]]))

    def rows_of(self, file: int) -> Sequence[int]:
        return np.flatnonzero(self.matcher.corpus.file_of == file).tolist()

    def first_row(self, file: int) -> int:
        return min(self.rows_of(file), key=lambda row: self.order_of(row)[1:])
