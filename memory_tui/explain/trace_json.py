"""A trace as JSON-ready data, the same record that the screen draws."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import Change, Flips, Rephrasings, SavedEffect
from memory_tui.explain.why_not import Account, Fate, WhyNot
from memory_tui.formatting import camel
from memory_tui.notices import Notice, kind
from memory_tui.search.excerpts import Excerpt
from memory_tui.search.trace import Candidate, ChunkRef, Trace


def plain(value: Any) -> Any:  # noqa: ANN401 - any field of any record
    """Return a record as a dictionary with camelCase keys, recursively; by its own `as_dict` where it has one.

    A notice has its kind and its sentence beside its evidence.
    """
    if hasattr(value, "as_dict"):
        return plain(value.as_dict())
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Notice):
        members = {"kind": value.kind, "code": value.code, "message": value.message, "nextStep": value.next_step}
        return {**members, **{camel(name): plain(item) for name, item in value.fields.items()}}
    if isinstance(value, Struct):
        return {camel(name): plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def tagged(value: object) -> dict[str, Any]:
    """Return a claim as data with its kind."""
    if isinstance(value, Notice):
        # A gate of words within another gate has a kind of its own.
        inner = {name: tagged(part) if isinstance(part, Notice) else plain(part) for name, part in value.fields.items()}
        return {"kind": value.kind, **{camel(name): part for name, part in inner.items()}}
    return {"kind": kind(type(value).__name__), **plain(value)}


def result(candidate: Candidate) -> dict[str, Any]:
    """Return one hit in the documented shape, plus its citation."""
    chunk = candidate.chunk
    return {
        "path": chunk.path,
        "startLine": chunk.start_line,
        "endLine": chunk.end_line,
        "score": candidate.score,
        "vectorScore": candidate.vector,
        "textScore": candidate.lexical.reported if candidate.lexical else candidate.text,
        "snippet": candidate.snippet,
        "source": chunk.source,
        "citation": chunk.citation,
        **_recall_metadata(candidate),
    }


def _recall_metadata(candidate: Candidate) -> dict[str, Any]:
    """Return what OpenClaw 2026.9 adds to a hit; nothing under other profiles."""
    if candidate.provenance is None:
        return {}
    annotations = candidate.annotations
    fields = {"importance": annotations.importance, "triggers": annotations.triggers, "projectKey": annotations.project}
    return {**{key: value for key, value in fields.items() if value}, "provenance": plain(candidate.provenance)}


def verdict(value: Fate) -> dict[str, Any]:
    """Return a verdict with its kind, its evidence, and a sentence."""
    return {**tagged(value), "sentence": wording.sentence(value)}


def chunk(value: ChunkRef) -> dict[str, Any]:
    """Return where a chunk stands."""
    return {
        "id": value.id,
        "path": value.path,
        "startLine": value.start_line,
        "endLine": value.end_line,
        "source": value.source,
        "citation": value.citation,
    }


def components(value: Candidate, *, proposed: bool = True) -> dict[str, Any]:
    """Return every number that makes a score, of a chunk that a side `proposed` or that is supposed to be."""
    terms = {
        "lexical": plain(value.lexical),
        "factors": plain(value.factors),
        "exactPath": value.level,
        "merit": value.merit,
    }
    return {
        "vector": {
            "cosine": value.cosine,
            "rank": value.vector_rank or None,
            "inPool": proposed and value.vector_rank > 0,
            "score": value.vector,
            "weight": value.vector_weight,
            "points": value.vector_points,
        },
        "text": {
            "bm25": value.bm25,
            "rank": value.text_rank or None,
            "inPool": proposed and value.text_rank > 0,
            "score": value.text,
            "weight": value.text_weight,
            "points": value.text_points,
        },
        "hybrid": value.hybrid,
        "age": {
            "ageDays": value.age_days,
            "basis": value.age_basis,
            "factor": value.age_factor,
            "points": value.age_points,
        },
        "datePoints": value.date_points,
        **({"firstShare": value.first_share} if value.first_share != 1.0 else {}),
        **({"second": plain(value.second)} if value.second else {}),
        "mmr": plain(value.mmr) if value.mmr else None,
        **(terms if value.factors else {}),
        "score": value.score,
    }


def candidate(value: Candidate) -> dict[str, Any]:
    """Return every number of one candidate, and its verdict; without its text."""
    place = chunk(value.chunk)
    del place["citation"]
    return {**place, **components(value), "verdict": verdict(value.verdict)}


def _account(value: Account) -> dict[str, Any]:
    """Return one chunk's part in the answer; `components` with `proposed` false are what they would have been."""
    numbers = components(value.candidate, proposed=value.proposed) if value.candidate is not None else None
    return {"chunk": chunk(value.chunk), "components": {"proposed": value.proposed, **numbers} if numbers else None}


def why(value: WhyNot, changes: Flips | None = None, questions: Rephrasings | None = None) -> dict[str, Any]:
    """Return why a line was, or was not, recalled, what would change it, and which questions recall it."""
    best = _account(value.best) if value.best is not None else {"chunk": None, "components": None}
    return {
        "query": value.trace.query,
        "path": value.place.path,
        "line": value.place.line,
        "recalled": value.recalled,
        "verdict": verdict(value.fate),
        "claims": [claim(row) for row in _claims(value, changes, questions)],
        **best,
        "remark": value.place.remark,
        "profile": value.trace.profile,
        "mode": value.trace.mode,
        "others": [{**_account(other), "verdict": verdict(other.fate)} for other in value.others],
        "more": value.more,
        "notices": plain(value.trace.notices),
        "flips": [flip(item) for item in changes.singles] if changes else [],
        "sets": [change_set(item) for item in changes.sets] if changes else [],
        "notAlone": [{**plain(item), "sentence": wording.not_alone(item)} for item in changes.not_alone]
        if changes
        else [],
        "questions": [{**plain(item), "sentence": wording.rephrased(item)} for item in questions.rephrased]
        if questions
        else [],
    }


def claim(value: Notice) -> dict[str, Any]:
    """Return a claim with its kind, its evidence, and a sentence."""
    return {**tagged(value), "sentence": value.message}


def _claims(value: WhyNot, changes: Flips | None, questions: Rephrasings | None) -> Iterator[Notice]:
    """Yield the claims about a line, besides its verdict."""
    if value.without is not None:
        yield value.without
    if changes is not None:
        yield from (row for row in (changes.none, changes.no_pair) if row is not None)
    if questions is not None and questions.none is not None:
        yield questions.none
    yield from wording.left_out(value.trace.plan, value.trace.profile)


def flip(value: Change) -> dict[str, Any]:
    """Return one change that turns the verdict; `presses` is null for another profile."""
    (turn,) = value.turns
    return {
        "knob": turn.key,
        "from": turn.was,
        "to": turn.value,
        "changes": dict(value.changes),
        "place": value.place,
        "presses": value.presses if math.isfinite(value.presses) else None,
        "sentence": wording.change_sentence(value),
        "accepted": list(turn.accepted),
        **_effects(value.comes_in, value.drops_out, value.saved),
    }


def change_set(value: Change) -> dict[str, Any]:
    """Several changes that together recall a chunk; of each knob how far it may go."""
    return {
        "turns": [
            {"knob": one.key, "from": one.was, "to": one.value, "accepted": list(one.accepted)} for one in value.turns
        ],
        "changes": dict(value.changes),
        "place": value.place,
        "presses": value.presses,
        "sentence": wording.change_sentence(value),
        **_effects(value.comes_in, value.drops_out, value.saved),
    }


def _effects(comes_in: Sequence[ChunkRef], drops_out: Sequence[ChunkRef], saved: SavedEffect | None) -> dict[str, Any]:
    """Return what else a change does: other chunks, and saved questions where there are any."""
    return {
        "comesIn": [chunk(ref) for ref in comes_in],
        "dropsOut": [chunk(ref) for ref in drops_out],
        "saved": plain(saved) if saved else None,
    }


def _empty(value: Trace) -> dict[str, Any] | None:
    if value.empty is None:
        return None
    sentence, next_step = wording.empty(value.empty, value.profile)
    claims = [claim(row) for row in wording.word_claims(value.empty, value.profile)]
    return {**tagged(value.empty), "sentence": sentence, "nextStep": next_step, "claims": claims}


def trace(value: Trace) -> dict[str, Any]:
    """Return the whole record; `ftsQuery`, `keywordRank`, `keyword` and `vector` are the original's own names."""
    now = dt.datetime.fromtimestamp(value.now, dt.UTC).isoformat()
    by_words = [
        (value.chunks[at], float(value.candidates["bm25"][at]), float(value.candidates["text"][at]))
        for at in value.pool("text_rank")
    ]
    return {
        "query": value.query,
        "now": now,
        "mode": value.mode,
        "profile": value.profile,
        "generation": value.generation,
        "nearestBy": value.nearest_by or None,
        "settings": {key: plain(item) for key, item in value.settings.values.items()},
        "words": list(value.plan.words),
        "dropped": list(value.plan.dropped),
        "time": value.plan.time or None,
        "timeWords": value.plan.time_words or None,
        "ftsQuery": value.plan.fts_query or None,
        "candidates": value.candidate_limit,
        "floor": value.floor,
        "vectorScale": value.vector_scale,
        "textScale": value.text_scale,
        "funnel": plain(value.funnel),
        "keywordRank": [
            {
                "id": ref.id,
                "path": ref.path,
                "start_line": ref.start_line,
                "end_line": ref.end_line,
                "rank": bm25 if bm25 == bm25 else None,
            }
            for ref, bm25, _ in by_words
        ],
        "keyword": [{"id": ref.id, "textScore": score} for ref, _, score in by_words],
        "vector": [
            {"id": value.chunks[at].id, "score": float(value.candidates["vector"][at])}
            for at in value.pool("vector_rank")
        ],
        "recalled": [candidate(item) for item in value.recalled],
        "lost": [candidate(item) for item in value.lost],
        "unsearchable": plain(value.unsearchable),
        "notices": plain(value.notices),
        "empty": _empty(value),
        "timings": {stage: round(ms, 3) for stage, ms in value.timings.items()},
    }


def passage(value: Excerpt) -> dict[str, Any]:
    """Return a passage with its lines and its citation."""
    return {
        "path": value.hit.chunk.path,
        "startLine": value.first,
        "endLine": value.last,
        "citation": f"{value.hit.chunk.path}#L{value.first}-L{value.last}",
        "score": value.hit.score,
        "text": value.text,
    }


def answer_level(value: Trace) -> dict[str, Any] | None:
    """Return whether the notes hold what was asked, and by which numbers; None under a profile that does not say."""
    if value.level is None:
        return None
    return {**plain(value.level), "sentence": value.level.sentence, "explanation": value.level.explanation}


def answer(value: Trace, *, explain: bool = True) -> dict[str, Any]:
    """What `search --json` prints: results, what they were made with, why there are none; to `explain`, the trace."""
    fields = {
        "results": [result(item) for item in value.recalled],
        "provider": value.provider,
        "model": value.model,
        "profile": value.profile,
        "mode": value.mode,
        "fallback": value.who.instead if value.who else None,
        "answerLevel": answer_level(value),
        "empty": _empty(value),
        "notices": plain(value.notices),
    }
    return {**fields, "trace": trace(value)} if explain else fields
