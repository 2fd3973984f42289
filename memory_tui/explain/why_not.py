"""Why a line was, or was not, recalled: the first gate that stopped it, for chunks inside and outside the pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from memory_tui.explain import proposed
from memory_tui.explain.fates import (
    ChangedSinceIndexed,
    Fate,
    FileGate,
    LostInTheirIndex,
    ModelMismatch,
    NotMatched,
    NoVector,
    NoWord,
    OutsideTextPool,
    OutsideVectorPool,
    PoolGate,
    TextGate,
    WordsOff,
)
from memory_tui.search.evidence import Evidence, Postings
from memory_tui.search.rank import rank
from memory_tui.search.trace import (
    BeyondLimit,
    Candidate,
    ChunkRef,
    DisplacedByMmr,
    LoweredByDecay,
    QueryPlan,
    Recalled,
    Trace,
)
from memory_tui.settings import Settings
from memory_tui.text import words

LISTED = 20
"""Chunks of a note that are explained; the others are counted."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a note, and what disk and index know of it.

    `chunks` hold the line (all of the note without one), with their `texts` by rowid. `gate` stopped the file before
    anything was asked; with chunks of an older text there can be both. `remark` is a sentence about such a difference.
    """

    path: str
    line: int | None
    chunks: tuple[ChunkRef, ...]
    texts: Mapping[int, str]
    gate: FileGate | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """What became of one chunk, and its numbers: `candidate` as ranked, or as it would be had it been `proposed`.

    For a chunk that was not proposed the verdict in `candidate` is a supposition; `fate` is what happened.
    """

    chunk: ChunkRef
    fate: Fate
    candidate: Candidate | None
    proposed: bool
    text: str

    @property
    def recalled(self) -> bool:
        """Whether the agent was given the chunk."""
        return isinstance(self.fate, Recalled)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The answer for one line: its `fate`, the chunk that fared best, and the others that hold the line.

    Of a whole note without a line there can be `more` chunks than are listed.
    """

    place: Place
    evidence: Evidence
    trace: Trace
    fate: Fate
    best: Account | None
    others: tuple[Account, ...]
    more: int = 0

    @property
    def recalled(self) -> bool:
        """Whether the agent was given the line."""
        return isinstance(self.fate, Recalled)

    @property
    def row(self) -> int | None:
        """Where the chunk that speaks stands in the evidence."""
        return proposed.row_of(self.evidence, self.best.chunk.rowid) if self.best is not None else None


class Inquest:
    """One ranking, and what it made of any chunk."""

    def __init__(self, evidence: Evidence, settings: Settings) -> None:
        self.evidence = evidence
        self.trace = rank(evidence, settings)
        self._side = proposed.side_of(evidence, settings)

    def fate(self, row: int, text: str) -> Fate:
        """What became of the chunk at `row`, whose text is `text`."""
        found = proposed.find(self.trace, self.evidence, row)
        return found.verdict if found is not None else self._pool_gate(row, text)

    def merit(self, row: int) -> tuple[int, float]:
        """How far a chunk got, to sort by: recalled, over the gate, held back by its age, scored, near by cosine."""
        found = proposed.find(self.trace, self.evidence, row)
        if found is None:
            cosine = self.evidence.cosine
            return 0, float(cosine[row]) if cosine is not None and not np.isnan(cosine[row]) else -1.0
        verdict = found.verdict
        if isinstance(verdict, Recalled):
            return 4, -verdict.place
        if isinstance(verdict, BeyondLimit | DisplacedByMmr):
            return 3, -verdict.place
        return (2 if isinstance(verdict, LoweredByDecay) else 1), found.score

    def account(self, row: int, text: str) -> Account:
        """The fate of a chunk with its numbers."""
        ref = self.evidence.refs[row]
        real = proposed.find(self.trace, self.evidence, row)
        if real is not None:
            return Account(ref, real.verdict, real, True, text)
        supposed = proposed.as_if_proposed(self.evidence, self.trace, row, text)
        if supposed is not None:
            supposed = self._with_true_ranks(supposed, row)
        return Account(ref, self._pool_gate(row, text), supposed, False, text)

    def _with_true_ranks(self, supposed: Candidate, row: int) -> Candidate:
        place = self._outside(self._side.postings, row)
        return replace(
            supposed,
            vector=replace(supposed.vector, rank=self._vector_rank(row), in_pool=False),
            text=replace(supposed.text, rank=place.rank if place else None, in_pool=False),
        )

    # --- the gates of the pools ------------------------------------------------------------------------------------

    def _pool_gate(self, row: int, text: str) -> PoolGate:
        evidence, text_gate = self.evidence, self._text_gate(row, text)
        for notice in evidence.notices:
            if notice.code == "model_mismatch":
                return ModelMismatch(notice.message, text_gate)
        if evidence.cosine is None:
            cause = self._why_no_vectors()
            return NoVector(cause, text_gate) if cause else text_gate
        place = self._vector_rank(row)
        if place is None:
            if kept_back := evidence.withheld.get(evidence.refs[row].rowid):
                return NoVector(kept_back, text_gate)
            return NoVector("its text has not been embedded, or the search left its source out", text_gate)
        known = int(np.count_nonzero(~np.isnan(evidence.cosine)))
        pool = min(self.trace.candidate_limit, len(evidence.nearest))
        edge = float(evidence.cosine[evidence.nearest[pool - 1]])
        return OutsideVectorPool(place, known, pool, float(evidence.cosine[row]), edge, text_gate)

    def _why_no_vectors(self) -> str:
        """Why there is no vector side; empty when the index is one of words alone, or nothing was asked."""
        for notice in self.evidence.notices:
            if notice.code == "provider":
                return notice.message.rstrip(".")
        return "the embedding model knows no word of the query" if self.evidence.pointless else ""

    def _vector_rank(self, row: int) -> int | None:
        """The 1-based place of `row` among all cosines, by the order in which the pool was made."""
        cosine, nearest = self.evidence.cosine, self.evidence.nearest
        if cosine is None or np.isnan(cosine[row]):
            return None
        there = np.flatnonzero(nearest == row)
        if len(there):
            return int(there[0]) + 1
        own = cosine[row]
        before = np.count_nonzero(cosine > own) + np.count_nonzero(cosine[:row] == own)
        # Only the nearest were compared exactly, so a hair's breadth must not put an outsider among them.
        return max(int(before), len(nearest)) + 1

    def _postings(self) -> tuple[Postings, ...]:
        """All matches; of each keyword where they were looked for one by one."""
        keywords = self.evidence.keywords
        return (
            tuple(side.postings for side in keywords.each) if self._side.whole and keywords else (self._side.postings,)
        )

    def _outside(self, postings: Postings, row: int) -> OutsideTextPool | None:
        """The place of `row` among the matches, with the worst that got into the pool."""
        there = np.flatnonzero(postings.rows == row)
        if not len(there):
            return None
        pool = min(self.trace.candidate_limit, len(postings.rows))
        return OutsideTextPool(int(there[0]) + 1, pool, float(postings.bm25[there[0]]), float(postings.bm25[pool - 1]))

    def _text_gate(self, row: int, text: str) -> TextGate:
        plan = self._side.plan
        if self.trace.mode == "vectors only":
            return WordsOff("hybrid search is off" if self.evidence.full_text else "there is no full-text search")
        if not plan.fts_query:
            return NoWord(words.left_out(plan.dropped, self.evidence.query))
        places = [self._outside(postings, row) for postings in self._postings()]
        if found := [place for place in places if place is not None]:
            return min(found, key=lambda place: place.rank)
        conjoined = " AND " in plan.fts_query
        join: Literal["AND", "OR"] = "AND" if conjoined and " OR " not in plan.fts_query else "OR"
        elsewhere, query = self.evidence.elsewhere, self.evidence.query
        lacks = absent(plan, text) if conjoined else plan.words
        nowhere = (word for word in plan.words if self._side.frequency.get(word, 1) == 0)
        every, lacking, unknown = (words.as_asked(found, query) for found in (plan.words, lacks, nowhere))
        # Of notes that wait and were not read nobody knows what they hold.
        seen = {*every} if elsewhere.unread else {*elsewhere.uncut, *(word for word, _ in elsewhere.held)}
        return NotMatched(every, lacking, tuple(word for word in unknown if word not in seen), join)


def absent(plan: QueryPlan, text: str) -> tuple[str, ...]:
    """The words of `plan` that are not found in `text`, a word with inner signs counting as a phrase."""
    if plan.inside:
        return tuple(word for word in plan.words if word.lower() not in text.lower())
    joined = f" {' '.join(words.tokens(text, stemmed=False))} "
    return tuple(word for word in plan.words if f" {' '.join(words.tokens(word, stemmed=False))} " not in joined)


def why(evidence: Evidence, settings: Settings, place: Place) -> WhyNot:
    """Why the line at `place` was, or was not, recalled; the best of its chunks speaks, the next best are listed."""
    inquest = Inquest(evidence, settings)
    found = [(row, ref) for ref in place.chunks if (row := proposed.row_of(evidence, ref.rowid)) is not None]
    found.sort(key=lambda item: inquest.merit(item[0]), reverse=True)
    accounts = [inquest.account(row, place.texts[ref.rowid]) for row, ref in found[:LISTED]]
    best = accounts[0] if accounts else None
    fate: Fate
    if best is not None and (best.recalled or place.gate is None):
        fate = best.fate
    else:
        fate = place.gate or ChangedSinceIndexed("new")
    return WhyNot(place, evidence, inquest.trace, fate, best, tuple(accounts[1:]), len(found) - len(accounts))


def against_their_index(answer: WhyNot, lacks: Callable[[str], str | None]) -> WhyNot:
    """`answer` as it is for OpenClaw's own index; `lacks` tells why that cannot recall a note, None when it can."""
    detail = lacks(answer.place.path) if isinstance(answer.fate, Recalled) else None
    if detail is None or not isinstance(answer.fate, Recalled):
        return answer
    return replace(answer, fate=LostInTheirIndex(answer.fate.place, detail))
