"""Why a line of a note is not recalled, or is: every gate from the roots to the limit."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import profiles, tokens
from memory_tui.errors import PathRefused, Unreadable
from memory_tui.explain.absent_words import holds
from memory_tui.index.note_state import FileState, difference, state_of
from memory_tui.index.rows import CosineRank
from memory_tui.index.store import Store
from memory_tui.notices import Notice, notice
from memory_tui.providers.base import Vectors
from memory_tui.search import lexical_2026_9
from memory_tui.search.evidence import NO_BOOST, Evidence, Hit, KeywordSide, Postings, Rows
from memory_tui.search.formulas import MOST_CANDIDATES
from memory_tui.search.rank import rank
from memory_tui.search.score import Rules, mode_of
from memory_tui.search.score import side_of as side_under
from memory_tui.search.trace import (
    BeyondLimit,
    Candidate,
    ChunkRef,
    DisplacedByMmr,
    LoweredByDecay,
    QueryPlan,
    Recalled,
    Trace,
    Verdict,
)
from memory_tui.settings import Settings
from memory_tui.workspace import roots as workspace_roots
from memory_tui.workspace.roots import NoteMissing, PathVerdict, Roots, named_lines, scan, why_path
from memory_tui.workspace.scan import NoteFile

if TYPE_CHECKING:
    from memory_tui.index.store import Store
    from memory_tui.workspace.roots import Roots


Fate = Notice | Verdict
"""What became of a line: the first gate that stopped it, or the verdict of ranking."""
GATE_SWITCHES: Mapping[str, str] = {
    "decay": "query.hybrid.temporalDecay.enabled",
    "mmr": "query.hybrid.mmr.enabled",
}
"""The setting that switches a gate of ranking off."""


class ExplainedLine(Struct, frozen=True):
    """A line of a note, and what disk and index know of it.

    `chunks` hold the line (all of the note without one), with their `texts` by rowid. `gate` stopped the file before
    anything was asked; with chunks of an older text there can be both. `remark` is a sentence about such a difference.
    """

    path: str
    line: int | None
    chunks: tuple[ChunkRef, ...]
    texts: Mapping[int, str]
    gate: Notice | None = None
    remark: str = ""
    standings: Mapping[int, CosineRank] = field(default_factory=dict)
    """The exact place of chunks by cosine, by rowid, where the evidence lacks it."""


def locate(roots: Roots, store: Store, path: str, line: int | None, vector: Vectors | None = None) -> ExplainedLine:
    """Everything that disk and index know of a line; costs a stat for a note that is indexed as it is.

    With `vector`, which an evidence has that lacks cosines, the store is asked for the exact place of the chunks.
    """
    found, gate = _on_disk(roots, store, path)
    stored = found.path if isinstance(found, NoteFile) else found
    row = store.file(stored)
    if isinstance(found, NoteFile):
        state = state_of(found, row, difference(found, row), None)
        gate = _state_gate(state) if state else None
    chunks = (
        tuple(
            ChunkRef(c.rowid, c.chunk_id, stored, row.source, c.start_line, c.end_line)
            for c in store.chunks_of(stored)
            if c.occurrence == 0
        )
        if row
        else ()
    )
    held = tuple(c for c in chunks if line is None or c.start_line <= line <= c.end_line)
    stale = _is(gate, "changed_since_indexed")
    text = _lines(roots, found) if isinstance(found, NoteFile) and (stale or not held) else []
    if stale and line is not None:
        held = _holding(store, chunks, text[line - 1] if 1 <= line <= len(text) else "", held)
    if not held and gate is None:
        gate = notice("in_no_chunk", line=line, lines=len(text))
    remark = _remark(gate) if held else ""
    # A line that stands in the indexed text as it stands on disk was not lost to the change.
    rowids = [c.rowid for c in held]
    standings = store.standings(vector, rowids) if vector is not None and rowids else {}
    return ExplainedLine(stored, line, held, store.texts(rowids), None if stale and held else gate, remark, standings)


def _on_disk(roots: Roots, store: Store, path: str) -> tuple[NoteFile | str, Notice | None]:
    """Return the note on disk, or the stored path it would have with the rule that keeps it out."""
    try:
        note = workspace_roots.located(roots, path)
    except PathRefused:
        note = None
    if note is not None and store.file(note.path) is not None:
        return note, None
    # A second name of a note, or one that only a listing of the folders can explain.
    seen = scan(roots)
    verdict = why_path(roots, path, seen)
    if not verdict.included:
        return verdict.path, _rule_gate(verdict)
    return next(note for note in seen.notes if note.path == verdict.path), None


def _rule_gate(verdict: PathVerdict) -> Notice:
    match verdict.rule:
        case "outside":
            return notice("outside_roots", detail=verdict.detail)
        case "missing":
            return notice("no_such_file", detail=verdict.detail)
        case "unreadable" | "too big" as rule:
            return notice("unreadable_file", rule=rule, detail=verdict.detail)
        case rule:
            return notice("excluded", rule=rule, detail=verdict.detail)


def _state_gate(state: FileState) -> Notice:
    if state.state == "failed":
        return notice("unreadable_file", rule="failed", detail=state.detail)
    return notice("changed_since_indexed", change=state.detail)


def _lines(roots: Roots, note: NoteFile) -> list[str]:
    try:
        text = workspace_roots.document(roots, note.path).text
    except Unreadable:
        # Then what the index says of the file is all there is to say.
        return []
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _holding(
    store: Store, chunks: tuple[ChunkRef, ...], line: str, by_number: tuple[ChunkRef, ...]
) -> tuple[ChunkRef, ...]:
    """Return the chunks of an older text that hold `line` of the new one; of a blank line those of its number."""
    if not line.strip():
        return by_number
    texts = store.texts([c.rowid for c in chunks])
    return tuple(c for c in chunks if line in texts[c.rowid].split("\n"))


def _is(gate: Notice | None, kind: str) -> bool:
    return gate is not None and gate.kind == kind


def _remark(gate: Notice | None) -> str:
    if _is(gate, "changed_since_indexed"):
        return "The note has changed since; this is about the text that is indexed."
    return "The note is not on disk as it was indexed; this is about the text that is indexed." if gate else ""


def side_of(evidence: Evidence, settings: Settings) -> KeywordSide:
    """Return the word side that counts under `settings`."""
    mode = mode_of(evidence, settings)
    return side_under(evidence, mode, Rules.of(settings, mode))


def row_of(evidence: Evidence, rowid: int) -> int | None:
    """Return where a chunk stands in `evidence`, None when it is not there; rows are in the order of rowids."""
    rowids = evidence.refs.rowids
    at = int(np.searchsorted(rowids, rowid))
    return at if at < len(rowids) and rowids[at] == rowid else None


def subset(evidence: Evidence, also: Iterable[int] = ()) -> tuple[Evidence, Rows]:
    """The evidence of the rows that any setting can make candidates, and of the rows `also`; and which rows those are.

    It ranks as the whole does, at a cost that does not grow with the index; only counts of the funnel differ.
    """
    matched = [side.postings.rows[:MOST_CANDIDATES] for side in _sides(evidence)]
    matched.append(np.array([hit.row for hit in evidence.lexical.hits], dtype=np.int64))
    rows = np.unique(np.concatenate([evidence.nearest, *matched, np.array(list(also), dtype=np.int64)]))
    place = np.full(evidence.chunks, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))

    def narrowed(side: KeywordSide) -> KeywordSide:
        rows = place[side.postings.rows]
        return replace(side, postings=Postings(rows[rows >= 0], side.postings.bm25[rows >= 0]))

    keywords = evidence.keywords
    return replace(
        evidence,
        refs=evidence.refs.take(rows),
        pool=np.arange(len(rows)),
        cosine=None if evidence.cosine is None else evidence.cosine[rows],
        nearest=place[evidence.nearest],
        openclaw=narrowed(evidence.openclaw),
        recommended=narrowed(evidence.recommended),
        keywords=replace(keywords, each=tuple(narrowed(side) for side in keywords.each)) if keywords else None,
        lexical=evidence.lexical.moved(place),
        of_chunks=evidence.indexed,
    ), rows


def _sides(evidence: Evidence) -> Iterator[KeywordSide]:
    yield evidence.openclaw
    yield evidence.recommended
    if evidence.keywords is not None:
        yield from evidence.keywords.each


def as_if_proposed(evidence: Evidence, trace: Trace, row: int, text: str) -> Candidate | None:
    """The candidate that `row` would be, had both sides proposed it as the last of their pools.

    `text` is the chunk's. None when nothing can be asked at all. Its rank and verdict are those of the supposition.
    """
    small, rows = subset(evidence, [row])
    at = int(np.searchsorted(rows, row))
    room = max(0, trace.candidate_limit - 1)
    nearest = np.append(small.nearest[:room], at) if small.cosine is not None else small.nearest
    if profiles.get(trace.profile).exact_paths:
        return _listed_last(small, nearest, trace, at, text)
    side = side_of(small, trace.settings)
    bm25 = _bm25(small, side, at)
    if bm25 is not None or small.cosine is None:
        found = side.postings
        room = len(found.rows) if side.whole else room
        value = np.nan if bm25 is None else bm25
        side = replace(side, postings=Postings(np.append(found.rows[:room], at), np.append(found.bm25[:room], value)))
    supposed = replace(
        small,
        nearest=nearest,
        texts={**evidence.texts, small.refs[at].rowid: text},
        openclaw=side,
        recommended=side,
        keywords=None,
    )
    # Variety chooses among candidates and changes no number of them.
    plain = trace.settings.set("query.hybrid.mmr.enabled", False, "as if proposed")
    return find(rank(supposed, plain), at)


def _listed_last(small: Evidence, nearest: Rows, trace: Trace, at: int, text: str) -> Candidate | None:
    """Return the candidate that row `at` would be under 2026.9: near by meaning; without vectors a hit of no words."""
    hits, ref = small.lexical.hits, small.refs[at]
    if small.cosine is None:
        place = ref.path, ref.start_line, ref.end_line, ref.id
        hits = (*hits, Hit(at, place, 0, False, 0.0, 0.0, 0.0, float("nan"), NO_BOOST, 0))
    supposed = replace(
        small,
        nearest=nearest,
        texts={**small.texts, ref.rowid: text},
        lexical=replace(small.lexical, hits=hits),
    )
    return find(rank(supposed, trace.settings), at)


def _bm25(evidence: Evidence, side: KeywordSide, row: int) -> float | None:
    """The bm25 of a row, the best of them where keywords were looked for one by one; None when it did not match."""
    each = evidence.keywords.each if side.whole and evidence.keywords is not None else (side,)
    found = [float(one.postings.bm25[at]) for one in each for at in np.flatnonzero(one.postings.rows == row)[:1]]
    return min(found, default=None)


def find(trace: Trace, row: int) -> Candidate | None:
    """Return the candidate of `trace` that stands at `row` of its evidence; only its own record is written out."""
    return trace.at_row(row)


LISTED = 20
"""Chunks of a note that are explained; the others are counted."""


class Account(Struct, frozen=True):
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
        """Return whether the agent was given the chunk."""
        return isinstance(self.fate, Recalled)


class WhyNot(Struct, frozen=True):
    """The answer for one line: its `fate`, the chunk that fared best, and the others that hold the line.

    Of a whole note without a line there can be `more` chunks than are listed.
    """

    place: ExplainedLine
    evidence: Evidence
    trace: Trace
    fate: Fate
    best: Account | None
    others: tuple[Account, ...]
    more: int = 0
    without: Notice | None = None
    """What becomes of the line with the gate that stopped it switched off; None for gates that no setting switches."""

    @property
    def recalled(self) -> bool:
        """Return whether the agent was given the line."""
        return isinstance(self.fate, Recalled)

    @property
    def row(self) -> int | None:
        """Return where the chunk that speaks stands in the evidence."""
        return row_of(self.evidence, self.best.chunk.rowid) if self.best is not None else None


class Inquest:
    """One ranking, and what it made of any chunk; `standings` are the places by cosine that `evidence` lacks."""

    def __init__(
        self, evidence: Evidence, settings: Settings, standings: Mapping[int, CosineRank] | None = None
    ) -> None:
        self.evidence = evidence
        self._standings = standings or {}
        self.trace = rank(evidence, settings)
        self._side = side_of(evidence, settings)
        self._by_rules_of_2026_9 = profiles.get(self.trace.profile).exact_paths

    def fate(self, row: int, text: str) -> Fate:
        """Return what became of the chunk at `row`, whose text is `text`."""
        candidate = find(self.trace, row)
        return candidate.verdict if candidate is not None else self._pool_gate(row, text)

    def merit(self, row: int) -> tuple[int, float]:
        """How far a chunk got, to sort by: recalled, over the gate, held back by its age, scored, near by cosine."""
        candidate = find(self.trace, row)
        if candidate is None:
            cosine = self.evidence.cosine
            return 0, float(cosine[row]) if cosine is not None and not np.isnan(cosine[row]) else -1.0
        verdict = candidate.verdict
        if isinstance(verdict, Recalled):
            return 4, -verdict.place
        if isinstance(verdict, BeyondLimit | DisplacedByMmr):
            return 3, -verdict.place
        return (2 if isinstance(verdict, LoweredByDecay) else 1), candidate.score

    def account(self, row: int, text: str) -> Account:
        """Return the fate of a chunk with its numbers."""
        ref = self.evidence.refs[row]
        real = find(self.trace, row)
        if real is not None:
            return Account(ref, real.verdict, real, True, text)
        supposed = as_if_proposed(self.evidence, self.trace, row, text)
        if supposed is not None:
            supposed = self._with_true_ranks(supposed, row)
        return Account(ref, self._pool_gate(row, text), supposed, False, text)

    def _with_true_ranks(self, supposed: Candidate, row: int) -> Candidate:
        place = self._outside(self._side.postings, row)
        rank = place.fields["rank"] if place else 0
        return replace(supposed, vector_rank=self._vector_rank(row) or 0, text_rank=rank)

    # --- the gates of the pools ------------------------------------------------------------------------------------

    def _pool_gate(self, row: int, text: str) -> Notice:
        if self._by_rules_of_2026_9 and row in lexical_2026_9.dropped(self.evidence.lexical.annotations):
            return Notice("unreadable_project", {})
        evidence, text_gate = self.evidence, self._text_gate(row, text)
        for lost in evidence.notices:
            if lost.code == "model_mismatch":
                return notice("model_mismatch", detail=lost.message, text=text_gate)
        if evidence.cosine is None or self.trace.mode == "keywords only":
            cause = self._why_no_vectors()
            return notice("no_vector", cause=cause, text=text_gate) if cause else text_gate
        place = self._vector_rank(row)
        if place is None:
            if kept_back := evidence.withheld.get(evidence.refs[row].rowid):
                return notice("no_vector", cause=kept_back, text=text_gate)
            cause = "its text has not been embedded, or the search left its source out"
            return notice("no_vector", cause=cause, text=text_gate)
        standing = self._standings.get(evidence.refs[row].rowid)
        compared = standing.of if standing else int(np.count_nonzero(~np.isnan(evidence.cosine)))
        pool = min(self.trace.candidate_limit, len(evidence.nearest))
        edge = float(evidence.cosine[evidence.nearest[pool - 1]])
        cosine = float(evidence.cosine[row])
        fields = {"rank": place, "of": compared, "pool": pool, "cosine": cosine, "edge": edge, "text": text_gate}
        return Notice("outside_vector_pool", fields)

    def _why_no_vectors(self) -> str:
        """Return why there is no vector side; empty when the index is one of words alone, or nothing was asked."""
        for lost in self.evidence.notices:
            if lost.code == "provider":
                return lost.message.rstrip(".")
        if self.evidence.language and self.trace.mode == "keywords only":
            return f"the built-in table does not know {self.evidence.language}"
        return "the embedding model knows no word of the query" if self.evidence.pointless else ""

    def _vector_rank(self, row: int) -> int | None:
        """Return the 1-based place of `row` among all cosines, by the order in which the pool was made."""
        cosine, nearest = self.evidence.cosine, self.evidence.nearest
        if cosine is None or np.isnan(cosine[row]):
            return None
        there = np.flatnonzero(nearest == row)
        if len(there):
            return int(there[0]) + 1
        if standing := self._standings.get(self.evidence.refs[row].rowid):
            return max(standing.rank, len(nearest) + 1)
        own_cosine, every = cosine[row], cosine
        before = np.count_nonzero(every > own_cosine) + np.count_nonzero(every[:row] == own_cosine)
        # Only the nearest were compared exactly, so a hair's breadth must not put an outsider among them.
        return max(int(before), len(nearest)) + 1

    def _postings(self) -> tuple[Postings, ...]:
        """Return all matches; of each keyword where they were looked for one by one."""
        keywords = None if self._by_rules_of_2026_9 else self.evidence.keywords
        return (
            tuple(side.postings for side in keywords.each) if self._side.whole and keywords else (self._side.postings,)
        )

    def _outside(self, postings: Postings, row: int) -> Notice | None:
        """Return the place of `row` among the matches, with the worst that got into the pool."""
        place = postings.rank_of(row)
        if place is None:
            return None
        pool = min(self.trace.candidate_limit, len(postings.rows))
        edge = float(postings.bm25[pool - 1])
        return notice("outside_text_pool", rank=place[0], pool=pool, bm25=place[1], edge=edge)

    def _text_gate(self, row: int, text: str) -> Notice:
        plan = self._side.plan
        if self.trace.mode == "vectors only":
            cause = "hybrid search is off" if self.evidence.full_text else "there is no full-text search"
            return notice("words_off", cause=cause)
        if not plan.fts_query:
            return notice("no_word", dropped=tokens.left_out(plan.dropped, self.evidence.query))
        places = [self._outside(postings, row) for postings in self._postings()]
        if gates := [place for place in places if place is not None]:
            return min(gates, key=lambda place: int(place.fields["rank"]))
        conjoined = " AND " in plan.fts_query
        join: Literal["AND", "OR"] = "AND" if conjoined and " OR " not in plan.fts_query else "OR"
        elsewhere, query = self.evidence.elsewhere, self.evidence.query
        lacks = absent(plan, text) if conjoined else plan.words
        nowhere = (word for word in plan.words if self._side.frequency.get(word, 1) == 0)
        every, lacking, unknown = (tokens.as_asked(words, query) for words in (plan.words, lacks, nowhere))
        # Of notes that wait and were not read nobody knows what they hold.
        seen = {*every} if elsewhere.unread else {*elsewhere.uncut, *(word for word, _ in elsewhere.held)}
        absent_words = tuple(word for word in unknown if word in elsewhere.looked and word not in seen)
        hidden = tuple(word for word in lacking if holds(text, word))
        return notice("not_matched", words=every, absent=lacking, nowhere=absent_words, join=join, hidden=hidden)


def absent(plan: QueryPlan, text: str) -> tuple[str, ...]:
    """Return the words of `plan` that are not found in `text`, a word with inner signs counting as a phrase."""
    if plan.inside:
        return tuple(word for word in plan.words if word.lower() not in text.lower())
    joined = f" {' '.join(tokens.tokens(text, stemmed=False))} "
    return tuple(word for word in plan.words if f" {' '.join(tokens.tokens(word, stemmed=False))} " not in joined)


def why(evidence: Evidence, settings: Settings, place: ExplainedLine) -> WhyNot:
    """Why the line at `place` was, or was not, recalled; the best of its chunks speaks, the next best are listed."""
    evidence = _completed(evidence, place)
    inquest = Inquest(evidence, settings, place.standings)
    placed = [(row, ref) for ref in place.chunks if (row := row_of(evidence, ref.rowid)) is not None]
    placed.sort(key=lambda item: inquest.merit(item[0]), reverse=True)
    accounts = [inquest.account(row, place.texts[ref.rowid]) for row, ref in placed[:LISTED]]
    best = accounts[0] if accounts else None
    fate: Fate
    if best is not None and (best.recalled or place.gate is None):
        fate = best.fate
    else:
        fate = place.gate or notice("changed_since_indexed", change="new")
    others, more = tuple(accounts[1:]), len(placed) - len(accounts)
    without = _without_its_gate(evidence, settings, fate, best.chunk.rowid) if best is not None else None
    return WhyNot(place, evidence, inquest.trace, fate, best, others, more, without)


def _without_its_gate(evidence: Evidence, settings: Settings, fate: Fate, rowid: int) -> Notice | None:
    """Return what becomes of a chunk with the gate that stopped it switched off."""
    by_gate: Mapping[type, str] = {LoweredByDecay: "decay", DisplacedByMmr: "mmr"}
    gate, row = by_gate.get(type(fate)), row_of(evidence, rowid)
    if gate is None or row is None or GATE_SWITCHES[gate] in profiles.get(settings.word("profile")).fixed:
        return None
    without = find(rank(evidence, settings.set(GATE_SWITCHES[gate], False, "without its gate")), row)
    if without is None:
        return None
    verdict = without.verdict
    if isinstance(verdict, Recalled):
        return notice("stopped_by_alone", gate=gate, place=verdict.place)
    return notice("still_lost_without", gate=gate, then=verdict)


def _completed(evidence: Evidence, place: ExplainedLine) -> Evidence:
    """Add the cosines of the chunks at `place` that `evidence` lacks."""
    if not place.standings or evidence.cosine is None:
        return evidence
    cosine = evidence.cosine.copy()
    for rowid, standing in place.standings.items():
        row = row_of(evidence, rowid)
        if row is not None and np.isnan(cosine[row]):
            cosine[row] = standing.cosine
    return replace(evidence, cosine=cosine)


def against_their_index(answer: WhyNot, lacks: Callable[[str], str | None]) -> WhyNot:
    """`answer` as it is for OpenClaw's own index; `lacks` tells why that cannot recall a note, None when it can."""
    detail = lacks(answer.place.path) if isinstance(answer.fate, Recalled) else None
    if detail is None or not isinstance(answer.fate, Recalled):
        return answer
    return replace(answer, fate=notice("lost_in_their_index", place=answer.fate.place, detail=detail))


def named(roots: Roots, store: Store, typed: str) -> tuple[str, int | None]:
    """Return the path and the line that were typed.

    Raises NoteMissing where neither disk nor index knows the note, or it ends before the line: what was mistyped is no
    line that lost.
    """
    path, line, _ = named_lines(typed)
    explained = locate(roots, store, path, line)
    if _is(explained.gate, "no_such_file") and not explained.chunks:
        next_step = f"Check its name: memory-tui why --file {shlex.quote(path)}."
        if not set(path) & set("/."):
            next_step = f"If {shlex.quote(path)} belongs to the question, put the question in quotes. {next_step}"
        raise NoteMissing(f"There is no note {explained.path}.", next_step)
    lines = explained.gate.fields["lines"] if explained.gate is not None and explained.gate.kind == "in_no_chunk" else 0
    if line is not None and 0 < lines < line:
        last = f"{explained.path}:{lines}"
        raise NoteMissing(f"There is no line {line} in {explained.path}.", f"Its last line is {shlex.quote(last)}.")
    return path, line


def of_line(evidence: Evidence, settings: Settings, roots: Roots, store: Store, path: str, line: int | None) -> WhyNot:
    """Return why a line of the note at `path` was, or was not, recalled, as `store` and the disk know it now."""
    return why(evidence, settings, locate(roots, store, path, line, evidence.vector))
