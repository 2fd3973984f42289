"""The gate gives each candidate its verdict. It applies minScore, the relaxed floor and the limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from memory_tui.core import jsstring
from memory_tui.core.tokens import as_asked, left_out
from memory_tui.search.evidence import Evidence, Flags, KeywordSide, Rows
from memory_tui.search.formulas import MOST_CANDIDATES, Floats
from memory_tui.search.score import Rules, column, keyword_hits
from memory_tui.search.trace import (
    AllBelowGate,
    BlankQuery,
    EmptyIndex,
    EmptyReason,
    Mode,
    NothingMatched,
    NoUsableWord,
    Table,
)


class Gate(Struct, frozen=True):
    """Which candidates pass under each rule: arrays of (rules, candidates), or of (rules, 1)."""

    passed: Flags
    floor: Floats
    relaxed: Flags
    """Whether the relaxed floor is in force, because no score reaches minScore."""
    keyword: Flags
    """Over candidates: those that the relaxed floor lets through; none where it is not in force."""
    rescued: Flags
    """Keyword hits that follow those over minScore, although they are below it (OpenClaw 2026.9)."""


def pass_gate(scores: Floats, table: Table, rules: Sequence[Rules], mode: Mode) -> Gate:
    """Apply OpenClaw's selection: scores of at least minScore, else the keyword hits over the relaxed floor."""
    if rules[0].profile.rescues:
        return _rescue(scores, table, rules, mode)
    floor = column([rule.min_score for rule in rules])
    passed = scores >= floor
    hybrid = mode == "hybrid"
    relaxed = column([hybrid and rule.profile.relaxed_floor for rule in rules]) > 0
    relaxed &= ~passed.any(axis=1, keepdims=True)
    hits = keyword_hits(table) if relaxed.any() else np.zeros(scores.shape[1], dtype=np.bool_)
    relaxed &= hits.any()
    floor = np.where(relaxed, np.minimum(floor, column([rule.text_weight for rule in rules])), floor)
    return Gate(np.where(relaxed, hits & (scores >= floor), passed), floor, relaxed, hits, np.zeros_like(passed))


def _rescue(scores: Floats, table: Table, rules: Sequence[Rules], mode: Mode) -> Gate:
    """Apply the selection of 2026.9: those over minScore, then keyword hits without a vector score; without any of the
    former every keyword hit that is not below 0 (sections 7.4 and 7.8 of the profile's specification).
    """
    floor = column([rule.min_score for rule in rules])
    passed = scores >= floor
    relaxed = np.asarray(~passed.any(axis=1, keepdims=True))
    hits = keyword_hits(table) if mode != "vectors only" else np.zeros(scores.shape[1], dtype=np.bool_)
    relaxed &= hits.any()
    room = np.maximum(MOST_CANDIDATES, column([rule.results for rule in rules]))
    open_places = np.count_nonzero(passed, axis=1)[:, None] < room
    rescued = ~passed & hits & (table["vector"] == 0.0) & ~relaxed & open_places & (mode == "hybrid")
    through = np.where(relaxed, hits & (scores >= 0.0), passed | rescued)
    return Gate(
        through, np.where(relaxed, 0.0, floor), relaxed, hits if relaxed.any() else np.zeros_like(hits), rescued
    )


def without_repeats(order: Sequence[int], ranges: Rows, strict: Flags, rescued: Flags) -> Flags:
    """Return `rescued` without those on the lines of a `strict` hit or of one before it in `order` (section 7.8)."""
    seen, first = set(ranges[strict].tolist()), np.zeros_like(rescued)
    for item in order:
        if rescued[item] and ranges[item] not in seen:
            seen.add(int(ranges[item]))
            first[item] = True
    return first


def empty_reason(
    evidence: Evidence, side: KeywordSide, mode: Mode, scores: Floats, min_score: float, fresh: int
) -> EmptyReason:
    """Return why nothing was recalled, given all `scores`; an empty answer must never look like an empty memory.

    `fresh` candidates would reach minScore without age.
    """
    if not jsstring.trim(evidence.query):
        return BlankQuery()
    if evidence.chunks == 0:
        pending = sum(item.state == "pending" for item in evidence.unsearchable)
        unreadable = sum(
            item.state in ("failed", "changed while read", "missing root") for item in evidence.unsearchable
        )
        return EmptyIndex(evidence.files, pending, unreadable)
    if len(scores):
        return AllBelowGate(len(scores), float(scores.max()), min_score, fresh)
    if mode == "nothing":
        return NoUsableWord(left_out(side.plan.dropped, evidence.query), evidence.pointless)
    missing = as_asked((word for word in side.plan.words if side.frequency.get(word, 1) == 0), evidence.query)
    return NothingMatched(missing, "AND" if side is evidence.openclaw else "OR", evidence.elsewhere)
