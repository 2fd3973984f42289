"""Evidence is all that one query retrieves, before any knob applies."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from memory_tui.index.sync import FileState
from memory_tui.notices import Notice
from memory_tui.providers.chain import ServingProvider
from memory_tui.search.corpus import Files
from memory_tui.search.trace import ChunkRef, Chunks, Floats, NearestBy, QueryPlan
from memory_tui.workspace.annotations import Annotations

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Join = Literal["AND", "OR", ""]
"""How a profile asks for words: for each of them, for any; empty for both ways."""


def first_shown(shown: Rows, rows: Rows, most: int) -> Rows:
    """Return the first `most` of `rows`, each of those that are folded as the one that is `shown` for it."""
    room = most + int(np.count_nonzero(shown != np.arange(len(shown))))
    return np.array(list(dict.fromkeys(shown[rows[:room]].tolist()))[:most], np.int64)


class Postings(Struct, frozen=True):
    """What full-text search returned, best first: corpus `rows` (a row can stand twice) and their `bm25`."""

    rows: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    bm25: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, rows: Rows, bm25: Floats) -> Postings:
        """Put matches that stand as in the corpus into this order; of equal ones the earlier is better."""
        best = np.argsort(bm25, kind="stable")
        return cls(rows[best], bm25[best])

    def rank_of(self, row: int) -> tuple[int, float] | None:
        """Return the 1-based rank of `row` among all matches, and its bm25; None where it is no match."""
        there = np.flatnonzero(self.rows == row)
        return (int(there[0]) + 1, float(self.bm25[there[0]])) if len(there) else None

    def spread(self, chunks: int) -> Floats:
        """Return bm25 for each of `chunks` rows, NaN for those that did not match."""
        values = np.full(chunks, np.nan)
        values[self.rows] = self.bm25
        return values


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


class KeywordSearch(Struct, frozen=True):
    """Keywords looked for one by one: the `plan` of all of them together, and what `each` found alone."""

    plan: QueryPlan
    each: tuple[KeywordSide, ...]


class Boost(NamedTuple):
    """What a chunk gains over its bm25 score: shares of the question's words, words in its path, length."""

    query: float
    text: float
    path: float
    length: float


NO_BOOST = Boost(0.0, 0.0, 0.0, 0.0)


class Hit(NamedTuple):
    """A chunk that words or a path found in OpenClaw 2026.9; `row` is its place in the corpus.

    `score` is the keyword score, `bm25` FTS5's own number (NaN where nothing was matched). `level` is how exactly the
    question names its path. `body` tells whether its text was found, `term` which search gave the score.
    """

    row: int
    ref: ChunkRef
    level: int
    body: bool
    score: float
    text_score: float
    path_score: float
    bm25: float
    gain: Boost
    term: int


class TermSearch(Struct, frozen=True):
    """One search of the lexical side: for the whole question, or for one `term` of it."""

    term: str
    plan: QueryPlan
    frequency: Mapping[str, int]


class Lexical(Struct, frozen=True):
    """The keyword side of OpenClaw 2026.9: its searches, the whole question first, and their `hits` as one list.

    `annotations` are those of rows that have any; `active` are the keys of the projects that the agent works on.
    """

    plan: QueryPlan = QueryPlan()
    searches: tuple[TermSearch, ...] = ()
    hits: tuple[Hit, ...] = ()
    annotations: Mapping[int, Annotations] = {}
    levels: Mapping[int, int] = {}
    """How exactly the question names each file that it names, by file."""
    active: frozenset[str] = frozenset()
    origins: Mapping[str, str] = {}
    """Who notes are from by OpenClaw's ledger, by path."""


class Closest(Struct, frozen=True):
    """How near the notes are by a language model: of each row the `cosine` of the nearest window, or of the chunk where
    its windows have no vectors; NaN without any. `median` and `best` are of all rows.

    A model's cosines lie close together, so that only what is above the median tells notes apart.
    """

    cosine: Floats
    median: float
    best: float


class Evidence(Struct, frozen=True, dict=True):
    """One query's findings. `row` means a position in the index as it was at `generation`.

    `cosine` gives a value per row, NaN without a vector, and is None when there is no vector side at all; `nearest`
    holds the 200 best rows by cosine, or those that the settings rank which it was gathered for. `texts` has, by rowid,
    every chunk that any setting can make a candidate, or reads it. `pointless` tells that there are vectors, but that
    of the question is all zeros. `keywords` is there when nothing has a cosine.
    """

    query: str
    now: float
    generation: int
    provider: str
    model: str
    refs: Chunks
    """Where every row stands."""
    files: int
    cosine: Floats | None
    embedded: int
    """How many chunks have a vector."""
    nearest: Rows
    shown: Rows
    """For each row the one that our own profile shows in its place: itself, where it says what no other says."""
    openclaw: KeywordSide
    recommended: KeywordSide
    keywords: KeywordSearch | None
    pointless: bool
    texts: Mapping[int, str]
    notes: Files
    """What their ages are told from."""
    of_named_time: Mapping[int, float]
    """Files of the days that the query names or of those soon after, with what they count."""
    of_days: Rows
    """What is of that time, the newest first, where the query says nothing else that a note holds, or is the newest of
    what holds what is asked for now."""
    titled: Rows
    """The first row of each note whose title or file name the query is, where it names no time."""
    notices: tuple[Notice, ...]
    timings: Mapping[str, float]
    unsearchable: tuple[FileState, ...] = ()
    nearest_by: NearestBy = ""
    """Who found the `nearest`."""
    lexical: Lexical = Lexical()
    """What the newest release finds by words and paths, and the annotations of chunks."""
    chunking: str = ""
    """The release by whose rules the notes were cut; empty where that is not known."""
    first: bool = False
    """Whether the index was made for this very question."""
    uuid: str = ""
    """Of the index: its rowids mean nothing in an index with another one."""
    source: str = ""
    """What the question was kept to: memory, sessions, or empty for all."""
    zone: dt.tzinfo | None = None
    """The time zone in which the days of a question begin; None for this machine's."""
    who: ServingProvider | None = None
    """Who answered by meaning, and why it is not who was asked for; None where nobody told."""
    language: str = ""
    """That of the question, or its script, where the table that made the vectors hardly knows it."""
    known_share: float = 1.0
    """How much of such a question the table knows."""
    closest: Closest | None = None
    """What our own profile compares in the place of `cosine`; None by the built-in table."""
    join: Join = ""
    """The way of asking whose postings it has: those of the other would be ranked by no profile; empty for both."""

    @cached_property
    def reusable(self) -> dict[tuple[Any, ...], Any]:
        """Return what one ranking worked out and the next can use, because no knob changes it.

        Nothing in it may refer to this evidence: a circle of megabytes would stay until Python looks for garbage.
        """
        return {}

    @property
    def chunks(self) -> int:
        """Return how many chunks the index has."""
        return len(self.refs)
