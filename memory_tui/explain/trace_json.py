"""A trace as JSON-ready data, the same record that the screen draws."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config.settings import OWN_PROFILE
from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import Change, Flips
from memory_tui.explain.why_not import Account, WhyNot
from memory_tui.formatting import camel
from memory_tui.search.excerpts import Excerpt
from memory_tui.search.lexical_2026_9 import by_words
from memory_tui.search.rank import Trace
from memory_tui.search.score import Rules
from memory_tui.search.trace import Candidate, ChunkRef, Hit
from memory_tui.sentences import Notice, why_empty
from memory_tui.workspace.notes import Annotations, overtaken_in


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
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        return {camel(member): plain(getattr(value, name)) for name, member in names}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def tagged(claim: Notice) -> dict[str, Any]:
    """Return a claim as data with its kind; a claim among its fields, as the gate of words, has its own kind too."""
    inner = {name: tagged(part) if isinstance(part, Notice) else plain(part) for name, part in claim.fields.items()}
    return {"kind": claim.kind, **{camel(name): part for name, part in inner.items()}}


def chunk(value: ChunkRef) -> dict[str, Any]:
    """Return where a chunk stands."""
    members = plain(value)
    del members["rowid"]
    return {**members, "citation": value.citation}


def _placed(value: Candidate, profile: str) -> dict[str, Any]:
    """Return where a candidate stands, as the profile counts lines.

    OpenClaw counts what follows the last line end of a note as one more line, our own profile does not.
    """
    return chunk(replace(value.chunk, end_line=value.last_line) if profile == OWN_PROFILE else value.chunk)


def overtaken(text: str, first: int) -> dict[str, Any]:
    """Return which lines of what is given say that a newer one overtook them; nothing where none does."""
    lines = overtaken_in(text, first)
    return {"overtaken": True, "overtakenLines": lines} if lines else {}


def markers(notes: Annotations) -> dict[str, Any]:
    """Return what an entry's own markers say of it."""
    members = {"importance": notes.importance, "triggers": notes.triggers, "projectKey": notes.project}
    return {name: value for name, value in members.items() if value}


def result(candidate: Candidate, profile: str) -> dict[str, Any]:
    """Return one hit in the documented shape, with its citation, and what OpenClaw 2026.9 adds to a hit."""
    place, added = _placed(candidate, profile), dict[str, Any]()
    # The documented shape of a hit has no id.
    del place["id"]
    if candidate.copies:
        added["alsoIn"] = [copy.citation for copy in candidate.copies]
    added |= overtaken(candidate.snippet, candidate.chunk.start_line)
    if candidate.newer:
        added["newerValue"] = candidate.newer
    if candidate.provenance is not None:
        added |= {**markers(candidate.annotations), "provenance": candidate.provenance}
    return {
        **place,
        "score": candidate.score,
        "vectorScore": candidate.vector,
        "textScore": candidate.lexical.text_score if candidate.lexical else candidate.text,
        "snippet": candidate.snippet,
        **added,
    }


def verdict(value: Notice) -> dict[str, Any]:
    """Return a verdict, or a claim, with its kind, its evidence, and a sentence."""
    return {**tagged(value), "sentence": value.message}


_AGE = {"ageDays": "age_days", "basis": "age_basis", "factor": "age_factor", "points": "age_points"}


def components(value: Candidate, rules: Rules) -> dict[str, Any]:
    """Return every number that makes a score by `rules`."""
    numbers: dict[str, Any] = {}
    for side, raw in (("vector", "cosine"), ("text", "bm25")):
        ranked = {"rank": getattr(value, f"{side}_rank") or None, "score": getattr(value, side)}
        counted = {"weight": getattr(rules, f"{side}_weight"), "points": getattr(value, f"{side}_points")}
        numbers[side] = {raw: getattr(value, raw), **ranked, **counted}
    numbers["hybrid"] = value.hybrid
    numbers["age"] = {key: getattr(value, column) for key, column in _AGE.items()}
    numbers["datePoints"] = value.date_points
    if value.first_share != 1.0:
        numbers["firstShare"] = value.first_share
    if value.second:
        numbers["second"] = {**plain(value.second), "line": value.line}
    numbers["mmr"] = plain(value.mmr)
    if value.factors:
        numbers |= {"lexical": value.lexical and _lexical(value.lexical), "factors": plain(value.factors)}
        numbers |= {"exactPath": value.level, "merit": value.merit}
    return {**numbers, "score": value.score}


def _lexical(hit: Hit) -> dict[str, Any]:
    """Return how words and a path found a chunk in OpenClaw 2026.9."""
    scores = {"textScore": by_words(hit), "reported": hit.text_score, "pathScore": hit.path_score}
    gain = dict(zip(("asked", "held", "pathWords", "length"), hit.gain, strict=True))
    return {"term": hit.term, "body": hit.body, **scores, "level": hit.level, **gain}


def candidate(value: Candidate, rules: Rules) -> dict[str, Any]:
    """Return every number of one candidate by `rules`, and its verdict; without its text."""
    place = _placed(value, rules.profile.name)
    del place["citation"]
    return {**place, **components(value, rules), "verdict": verdict(value.verdict)}


# --- why a line is recalled, or not ---------------------------------------------------------------------------------


def _account(value: Account | None, rules: Rules) -> dict[str, Any]:
    """Return one chunk's part in the answer by `rules`, None for a chunk that is not known.

    With `proposed` false the `components` are what they would have been.
    """
    if value is None or value.candidate is None:
        return {"chunk": chunk(value.shown) if value else None, "components": None}
    numbers = {"proposed": value.proposed, **components(value.candidate, rules)}
    return {"chunk": _placed(value.candidate, rules.profile.name), "components": numbers}


def why(value: WhyNot, changes: Flips | None = None) -> dict[str, Any]:
    """Return why a line was, or was not, recalled, what would change it, and which questions recall it."""
    claims = [changes.none, changes.no_pair, changes.no_words] if changes else []
    rules = value.trace.rules
    claims += wording.left_out(value.trace.side.plan, rules.profile.name)
    singles, sets, questions = (changes.singles, changes.sets, changes.rephrased) if changes else ((), (), ())
    without = wording.without(changes.without, value.place.line) if changes and changes.without else ""
    # A single change has one turn, whose members stand beside what it does; a set has a list of them.
    return {
        "query": value.trace.evidence.question.query,
        "path": value.place.path,
        "line": value.place.line,
        "recalled": value.recalled,
        "sent": value.sent,
        "label": wording.label(value.fate),
        "verdict": verdict(value.fate),
        "claims": [verdict(row) for row in claims if row is not None],
        **_account(value.best, rules),
        "remark": " ".join(filter(None, (value.place.remark, value.unsent, without))),
        "profile": rules.profile.name,
        "mode": rules.mode,
        "others": [{**_account(other, rules), "verdict": verdict(other.fate)} for other in value.others],
        "more": value.more,
        "notices": plain(value.trace.notices),
        "flips": [{**plain(*change.turns), **_change(change)} for change in singles],
        "sets": [{"turns": plain(change.turns), **_change(change)} for change in sets],
        "questions": [{**plain(row), "sentence": wording.rephrased(row)} for row in questions],
    }


def _change(value: Change) -> dict[str, Any]:
    """Return what a change does, to the chunk and to others."""
    return {
        "changes": dict(value.changes),
        "place": value.place,
        "sentence": wording.change_sentence(value),
        "comesIn": [chunk(ref) for ref in value.comes_in],
        "dropsOut": [chunk(ref) for ref in value.drops_out],
    }


# --- an answer ------------------------------------------------------------------------------------------------------


def _empty(value: Trace) -> dict[str, Any] | None:
    """Return why nothing was recalled, and what to do; None where something was."""
    if value.empty is None:
        return None
    return {**verdict(value.empty), "nextStep": why_empty(value.empty, value.rules.profile.name)[1]}


def _ranked(ref: ChunkRef, bm25: float) -> dict[str, Any]:
    """Return where a chunk stands in the original's own names, with its rank by words, None where none was matched."""
    place = {name: getattr(ref, name) for name in ("id", "path", "start_line", "end_line")}
    return {**place, "rank": None if math.isnan(bm25) else bm25}


def trace(value: Trace) -> dict[str, Any]:
    """Return the whole record; `ftsQuery`, `keywordRank`, `keyword` and `vector` are the original's own names."""
    evidence, rules, plan, candidates = value.evidence, value.rules, value.side.plan, value.candidates
    numbers = candidates.table[["bm25", "text", "vector"]].tolist()
    # What words proposed, best first: where it stands, its bm25, and the score made of that.
    by_words = [(value.ref(at), *numbers[at][:2]) for at in value.pool("text_rank")]
    return {
        "query": evidence.question.query,
        "mode": rules.mode,
        "profile": rules.profile.name,
        "generation": evidence.generation,
        "floor": value.floor,
        "vectorScale": candidates.vector_scale,
        "textScale": candidates.text_scale,
        "funnel": {camel(stage): count for stage, count in value.funnel.items()},
        "unsearchable": plain(evidence.unsearchable),
        "notices": plain(value.notices),
        "now": dt.datetime.fromtimestamp(evidence.now, dt.UTC).isoformat(),
        "nearestBy": evidence.nearest_by or None,
        "settings": plain(value.settings.values),
        "words": list(plan.words),
        "dropped": list(plan.dropped),
        "time": plan.time or None,
        "value": plan.value or None,
        "ftsQuery": plan.fts_query or None,
        "candidates": rules.limit,
        "keywordRank": [_ranked(ref, bm25) for ref, bm25, _ in by_words],
        "keyword": [{"id": ref.id, "textScore": score} for ref, _, score in by_words],
        "vector": [{"id": value.ref(at).id, "score": numbers[at][2]} for at in value.pool("vector_rank")],
        "recalled": [candidate(hit, rules) for hit in value.recalled],
        "lost": [candidate(loser, rules) for loser in value.lost],
        "empty": _empty(value),
        "timings": {stage: round(ms, 3) for stage, ms in value.timings.items()},
    }


def passage(value: Excerpt, profile: str) -> dict[str, Any]:
    """Return a hit as `result` does, with the lines and the text of its passage, where that is not its snippet."""
    if not value.hit.line:
        return result(value.hit, profile)
    place = replace(value.hit.chunk, start_line=value.first, end_line=value.last)
    return result(replace(value.hit, chunk=place, snippet=value.text, last_line=value.last), profile)


def answer(value: Trace, passages: Sequence[Excerpt] = (), *, explain: bool = True) -> dict[str, Any]:
    """Return what `search --json` prints: results, what made them, why there are none; to `explain`, the trace.

    Where there are `passages`, the results are these.
    """
    level, profile = value.level, value.rules.profile.name
    sentences = {"sentence": level.sentence, "explanation": level.explanation} if level else {}
    fields = {
        "results": [passage(part, profile) for part in passages] or [result(hit, profile) for hit in value.recalled],
        "provider": value.evidence.provider,
        "model": value.evidence.model,
        "profile": profile,
        "mode": value.rules.mode,
        "fallback": value.who.instead if value.who else None,
        "answerLevel": {**plain(level), **sentences} if level else None,
        "empty": _empty(value),
        "notices": plain(value.notices),
    }
    return {**fields, "trace": trace(value)} if explain else fields
