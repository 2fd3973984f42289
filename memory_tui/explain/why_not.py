"""Why a line of a note is not recalled, or is: every gate from the roots to the limit.

A row is a chunk's place in the evidence of a question. The profile that has `exact_paths` is that of OpenClaw 2026.9.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import tokens
from memory_tui.config.settings import Settings
from memory_tui.errors import PathRefused, Unreadable
from memory_tui.index.store import Store
from memory_tui.index.sync import state_of
from memory_tui.search import lexical_2026_9
from memory_tui.search.excerpts import excerpts
from memory_tui.search.keyword import Postings
from memory_tui.search.rank import Trace, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import Candidate, ChunkRef, Hit, QueryPlan, refs_of
from memory_tui.sentences import Notice, notice
from memory_tui.workspace import roots as workspace_roots
from memory_tui.workspace.roots import NoteMissing, Roots, named_lines, scan, why_path
from memory_tui.workspace.scan import NoteFile

LISTED = 20
"""Chunks of a note that are explained; the others are counted."""


# --- the line on disk and in the index ------------------------------------------------------------------------------


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


def locate(roots: Roots, store: Store, path: str, line: int | None) -> ExplainedLine:
    """Return what disk and index know of a line; for a note that is indexed as it is, it costs a look at its times."""
    note, stored, gate = _on_disk(roots, store, path) if store.has_folder else (None, path, None)
    row, stale = store.note(stored), False
    # Neither disk nor index knows it, and no rule keeps it out.
    gate = gate if row or note or gate else notice("no_such_file", detail="no note of this scope")
    if note is not None and (state := state_of(note, row)):
        # Where it could be read, the disk has another text than the index.
        stale = state.state != "failed"
        gate = notice("unreadable_file", rule="failed", detail=state.detail)
        gate = notice("changed_since_indexed", change=state.detail) if stale else gate
    chunks = refs_of(stored, store.chunks_of(row.path, row.workspace)) if row else ()
    holding = [c for c in chunks if line is None or c.start_line <= line <= c.end_line]
    lines = _lines(roots, note) if note is not None and (stale or not holding) else []
    if note is None and row is not None and not holding:
        lines = store.last_text(row).removesuffix("\n").split("\n")
    # The text of the line on disk, where that differs from what is indexed.
    sought = lines[line - 1] if stale and line is not None and 1 <= line <= len(lines) else ""
    if sought.strip():
        # In an older text the line may stand elsewhere, or nowhere.
        texts = store.texts([c.rowid for c in chunks])
        holding = [c for c in chunks if sought in texts[c.rowid].split("\n")]
    remark = ""
    if not holding:
        gate = gate or notice("in_no_chunk", line=line, lines=len(lines))
    elif stale:
        # A line that stands in the indexed text as it stands on disk was not lost to the change.
        gate, remark = None, "The note has changed since; this is about the text that is indexed."
    elif gate is not None:
        remark = "The note is not on disk as it was indexed; this is about the text that is indexed."
    return ExplainedLine(stored, line, tuple(holding), store.texts([c.rowid for c in holding]), gate, remark)


_RULE_GATES = {
    "outside": "outside_roots",
    "missing": "no_such_file",
    "unreadable": "unreadable_file",
    "too big": "unreadable_file",
}
"""The gate by the rule that keeps a note out; `excluded` for all others."""


def _on_disk(roots: Roots, store: Store, path: str) -> tuple[NoteFile | None, str, Notice | None]:
    """Return the note on disk, the path under which it is stored or would be, and the rule that keeps it out."""
    try:
        note = workspace_roots.located(roots, path)
    except PathRefused:
        note = None
    if note is not None and store.file(note.path) is not None:
        return note, note.path, None
    # A second name of a note, or one that only a listing of the folders can explain.
    seen = scan(roots)
    verdict = why_path(roots, path, seen)
    if verdict.included:
        return next(note for note in seen.notes if note.path == verdict.path), verdict.path, None
    kind = _RULE_GATES.get(verdict.rule, "excluded")
    rule = {"rule": verdict.rule} if kind in ("excluded", "unreadable_file") else {}
    return None, verdict.path, Notice(kind, {**rule, "detail": verdict.detail})


def _lines(roots: Roots, note: NoteFile) -> list[str]:
    """Return the lines of a note on disk; none where it cannot be read."""
    try:
        return workspace_roots.document(roots, note.path).text.removesuffix("\n").split("\n")
    except Unreadable:
        # Then what the index says of the file is all there is to say.
        return []


def named(roots: Roots, store: Store, typed: str) -> tuple[str, int | None]:
    """Return the path and the line that were typed.

    Raises NoteMissing where neither disk nor index knows the note, or it ends before the line: what was mistyped is no
    line that lost.
    """
    path, line, _ = named_lines(typed)
    place = locate(roots, store, path, line)
    gate = place.gate
    if gate and gate.kind == "no_such_file" and not place.chunks:
        next_step = f"Check its name: memory-tui why --file {shlex.quote(path)}."
        if "/" not in path and "." not in path:
            next_step = f"If {shlex.quote(path)} belongs to the question, put the question in quotes. {next_step}"
        raise NoteMissing(f"There is no note {place.path}.", next_step)
    last = gate.fields["lines"] if gate and gate.kind == "in_no_chunk" else 0
    if line is not None and 0 < last < line:
        step = f"Its last line is {shlex.quote(f'{place.path}:{last}')}."
        raise NoteMissing(f"There is no line {line} in {place.path}.", step)
    return path, line


# --- one chunk under one evidence -----------------------------------------------------------------------------------


def row_of(evidence: Evidence, rowid: int) -> int | None:
    """Return where a chunk stands in `evidence`, None when it is not there; rows are in the order of rowids."""
    rowids = evidence.refs.rowids
    at = int(np.searchsorted(rowids, rowid))
    return at if at < len(rowids) and rowids[at] == rowid else None


def as_if_proposed(trace: Trace, row: int, text: str) -> Candidate | None:
    """Return the candidate that `row` would be, had both sides proposed it as the last of their pools.

    `text` is the chunk's. Rank and verdict of the candidate are those of the supposition. Returns None when nothing can
    be asked at all. Without a cosine of any chunk the words alone propose it.
    """
    evidence, side, pool = trace.evidence, trace.side, max(0, trace.rules.limit - 1)
    by_words = evidence.cosine is None
    # It is shown itself, and not another one in its place.
    shown = np.where(np.arange(len(evidence.refs)) == row, row, evidence.shown)
    nearest = evidence.nearest if by_words else np.append(evidence.nearest[:pool], row)
    supposed = replace(evidence, texts={**evidence.texts, evidence.refs[row].rowid: text}, shown=shown, nearest=nearest)
    if not trace.rules.profile.exact_paths:
        # The best bm25 that any search of words has for it; NaN where no word matched.
        matches = filter(None, (postings.rank_of(row) for postings in _postings(trace)))
        bm25 = min((bm25 for _, bm25 in matches), default=np.nan)
        # It stands in the word side where words matched it, or where nothing else can propose it.
        if by_words or not np.isnan(bm25):
            listed = side.postings
            kept = len(listed.rows) if side.whole else pool
            postings = Postings(np.append(listed.rows[:kept], row), np.append(listed.bm25[:kept], bm25))
            side = replace(side, postings=postings)
        # Whichever way of asking the profile takes, it gets this side.
        supposed = replace(supposed, openclaw=side, recommended=side, keywords=None)
    elif by_words:
        hits = (*supposed.lexical.hits, Hit(row, evidence.refs[row]))
        supposed = replace(supposed, lexical=replace(supposed.lexical, hits=hits))
    # Without variety, which takes time, and changes the order but no number.
    return rank(supposed, trace.settings.set("query.hybrid.mmr.enabled", False, "as if proposed")).at_row(row)


def _postings(trace: Trace) -> tuple[Postings, ...]:
    """Return the matches of the word search: one list, or one for each keyword that was looked for by itself."""
    keywords = trace.evidence.keywords
    each = keywords.each if trace.side.whole and keywords is not None else (trace.side,)
    return tuple(side.postings for side in each)


class Account(Struct, frozen=True):
    """What became of one chunk, and its numbers: `candidate` as ranked, or as it would be had it been `proposed`.

    For a chunk that was not proposed the verdict in `candidate` is a supposition; `fate` is what happened.
    """

    chunk: ChunkRef
    fate: Notice
    candidate: Candidate | None
    proposed: bool
    text: str

    @property
    def shown(self) -> ChunkRef:
        """Return where the chunk is shown to stand."""
        return self.chunk.shown({self.chunk.rowid: self.text})


class Inquest:
    """One ranking, and what it made of any chunk; `no_vector` tells by rowid why a chunk has none, in words."""

    def __init__(self, evidence: Evidence, settings: Settings, no_vector: Mapping[int, str]) -> None:
        self.evidence, self._no_vector = evidence, no_vector
        self.trace = rank(evidence, settings)
        # 2026.9 has its own list of all hits, however they were looked for.
        self._newest = self.trace.rules.profile.exact_paths
        self.postings = (self.trace.side.postings,) if self._newest else _postings(self.trace)

    def merit(self, row: int) -> tuple[int, float]:
        """Return how far a chunk got, to sort by: candidates in their order, then others, the nearest first."""
        places = np.flatnonzero(self.trace.candidates.table["row"] == row)
        if len(places):
            return 1, -float(places[0])
        cosine = self.evidence.cosine
        return 0, float(np.nan_to_num(cosine[row], nan=-1.0)) if cosine is not None else -1.0

    def account(self, row: int, text: str) -> Account:
        """Return the fate of a chunk with its numbers."""
        ref, candidate = self.evidence.refs[row], self.trace.at_row(row)
        if candidate is not None:
            return Account(ref, candidate.verdict, candidate, True, text)
        shown = self.trace.at_row(int(self.evidence.shown[row]))
        if shown is not None and self.trace.rules.profile.one_place:
            what = "passage" if text.split() == self.evidence.texts[shown.chunk.rowid].split() else "line"
            return Account(ref, notice("copy_of", what=what, citation=shown.citation), None, False, text)
        supposed = as_if_proposed(self.trace, row, text)
        if supposed is not None:
            text_rank, _ = self.trace.side.postings.rank_of(row) or (0, 0.0)
            supposed = replace(supposed, vector_rank=self._vector_rank(row) or 0, text_rank=text_rank)
        return Account(ref, self._pool_gate(row, text), supposed, False, text)

    def _pool_gate(self, row: int, text: str) -> Notice:
        """Return why neither side proposed `row`, whose chunk holds `text`."""
        evidence, words = self.evidence, self._text_gate(row, text)
        if self._newest and row in lexical_2026_9.dropped(evidence.lexical.annotations):
            return notice("unreadable_project")
        for claim in evidence.notices:
            if claim.code == "model_mismatch":
                return notice("model_mismatch", detail=claim.message, text=words)
        if evidence.cosine is None or self.trace.rules.mode == "keywords only":
            cause = self._why_no_vectors()
            return notice("no_vector", cause=cause, text=words) if cause else words
        place, rowid = self._vector_rank(row), evidence.refs.rowids[row].item()
        if place is None:
            cause = "its text has not been embedded, or the search left its source out"
            return notice("no_vector", cause=self._no_vector.get(rowid) or cause, text=words)
        # Its cosine is told beside that of the last chunk of the pool.
        pool = min(self.trace.rules.limit, len(evidence.nearest))
        cosine, edge = evidence.cosine[[row, evidence.nearest[pool - 1]]].tolist()
        count = int(np.count_nonzero(~np.isnan(evidence.cosine)))
        return notice("outside_vector_pool", rank=place, of=count, pool=pool, cosine=cosine, edge=edge, text=words)

    def _why_no_vectors(self) -> str:
        """Return why there is no vector side; empty when the index is one of words alone, or nothing was asked."""
        for claim in self.evidence.notices:
            if claim.code == "provider":
                return claim.message.rstrip(".")
        if self.evidence.question.language and self.trace.rules.mode == "keywords only":
            return f"the built-in table does not know {self.evidence.question.language}"
        return "the embedding model knows no word of the query" if self.evidence.question.pointless else ""

    def _vector_rank(self, row: int) -> int | None:
        """Return the 1-based place of `row` among all cosines, by the order in which the pool was made."""
        cosine, nearest = self.evidence.cosine, self.evidence.nearest
        if cosine is None or np.isnan(cosine[row]):
            return None
        if row in nearest:
            return int(np.flatnonzero(nearest == row)[0]) + 1
        before = np.count_nonzero(cosine > cosine[row]) + np.count_nonzero(cosine[:row] == cosine[row])
        # Only the nearest were compared exactly, so a hair's breadth must not put an outsider among them.
        return max(int(before) + 1, len(nearest) + 1)

    def _text_gate(self, row: int, text: str) -> Notice:
        """Return why words did not propose `row`, whose chunk holds `text`."""
        plan, query = self.trace.side.plan, self.evidence.question.query
        if self.trace.rules.mode == "vectors only":
            return notice("words_off")
        if not plan.fts_query:
            return notice("no_word", dropped=tokens.left_out(plan.dropped, query))
        matches = [(*match, postings) for postings in self.postings if (match := postings.rank_of(row))]
        if matches:
            rank, bm25, postings = min(matches, key=lambda match: match[0])
            pool = min(self.trace.rules.limit, len(postings.rows))
            edge = float(postings.bm25[pool - 1])
            return notice("outside_text_pool", rank=rank, pool=pool, bm25=bm25, edge=edge)
        conjoined = " AND " in plan.fts_query
        join = "AND" if conjoined and " OR " not in plan.fts_query else "OR"
        # Where any word would do, it lacks all of them.
        lacks = lacking(plan, text) if conjoined else plan.words
        # A word that was not counted is not said to stand nowhere.
        nowhere = (word for word in plan.words if self.trace.side.frequency.get(word, 1) == 0)
        every, lacks, unknown = (tokens.as_asked(words, query) for words in (plan.words, lacks, nowhere))
        # Words that a reader finds in the text, although the search does not.
        hidden = tuple(word for word in lacks if holds(text, word))
        unknown = tuple(word for word in unknown if word not in hidden)
        return notice("not_matched", words=every, absent=lacks, nowhere=unknown, join=join, hidden=hidden)


def holds(text: str, word: str) -> bool:
    """Return whether a reader finds `word` in `text`: letters of ASCII as a word of their own, others anywhere."""
    if not word.isascii():
        return word.casefold() in text.casefold()
    # Letters of another alphabet make one word with it; Chinese, Japanese and Korean characters do not.
    return re.search(rf"(?<![^\W{tokens.CJK}]){re.escape(word.lower())}(?![^\W{tokens.CJK}])", text.lower()) is not None


def lacking(plan: QueryPlan, text: str) -> tuple[str, ...]:
    """Return the words of `plan` that are not found in `text`, a word with inner signs counting as a phrase."""
    if plan.inside:
        return tuple(word for word in plan.words if word.lower() not in text.lower())
    # Between spaces, so that no token is found inside another.
    joined = f" {' '.join(tokens.tokens(text, stemmed=False))} "
    return tuple(word for word in plan.words if f" {' '.join(tokens.tokens(word, stemmed=False))} " not in joined)


# --- the answer -----------------------------------------------------------------------------------------------------


class WhyNot(Struct, frozen=True):
    """The answer for one line: its `fate`, the chunk that fared best, and the others that hold the line.

    Of a whole note without a line there can be `more` chunks than are listed.
    """

    place: ExplainedLine
    trace: Trace
    fate: Notice
    """The first gate that stopped it, or the verdict of ranking."""
    best: Account | None
    others: tuple[Account, ...]
    more: int = 0
    unsent: str = ""
    """That the line is in nothing that an agent gets of its recalled chunks, as a sentence; else empty."""

    @property
    def recalled(self) -> bool:
        """Return whether a chunk that holds the line is recalled."""
        return self.fate.kind == "recalled"

    @property
    def sent(self) -> bool:
        """Return whether an agent is given the line without asking for the nearest."""
        return self.recalled and not self.fate.fields["kept_back"] and not self.unsent


def sends(trace: Trace, rowid: int, line: int | None) -> bool:
    """Return whether an agent gets `line` of a chunk by this answer; of the chunk anything without one."""
    parts = () if trace.keeps_back else excerpts(trace)
    return any(part.hit.chunk.rowid == rowid and not part.leaves_out(line) for part in parts)


def of_line(evidence: Evidence, settings: Settings, roots: Roots, store: Store, path: str, line: int | None) -> WhyNot:
    """Return why a line of the note at `path` was, or was not, recalled, as `store` and the disk know it now.

    Of its chunks the one whose passage holds the line speaks, else the best; the next best are listed.
    """
    place = locate(roots, store, path, line)
    rows = {row: ref for ref in place.chunks if (row := row_of(evidence, ref.rowid)) is not None}
    without = {chunk.rowid: str(chunk) for chunk in (*store.rejected(), *store.withheld())}
    inquest = Inquest(evidence, settings, without)
    parts = excerpts(inquest.trace)
    sent = {part.hit.chunk.rowid for part in parts if not part.leaves_out(line)}
    # First what an agent gets of the line, then what got farthest.
    ranked = sorted(rows, key=lambda row: (rows[row].rowid in sent, inquest.merit(row)), reverse=True)
    accounts = [inquest.account(row, place.texts[rows[row].rowid]) for row in ranked[:LISTED]]
    best = accounts[0] if accounts else None
    # Chunks that came after the question was asked are in no evidence of it.
    gate = place.gate or notice("changed_since_indexed", change="new")
    # A recalled chunk speaks for itself, whatever became of its file since; else a gate of the file comes first.
    fate = best.fate if best is not None and (best.fate.kind == "recalled" or place.gate is None) else gate
    unsent = next((part.leaves_out(line) for part in parts if best and part.hit.chunk == best.chunk), "")
    more = max(0, len(ranked) - LISTED)
    return WhyNot(place, inquest.trace, fate, best, others=tuple(accounts[1:]), more=more, unsent=unsent)
