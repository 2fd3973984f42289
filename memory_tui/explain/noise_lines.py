"""The noise floor as lines of text for a person, and as JSON-ready data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memory_tui.explain import wording
from memory_tui.explain.noise import NoiseFloor, Trade
from memory_tui.explain.record import kind, plain

BUCKETS = 20
_BAR = 40


def lines(floor: NoiseFloor, results: Sequence[float] = ()) -> Iterator[str]:
    """Both distributions on one axis, with minScore and the scores of `results`, then what to think of it."""
    source = "labels" if floor.labelled else "lines out of the notes"
    yield f"{len(floor.nonsense)} unrelated questions (#, best hit), {len(floor.related)} right chunks by {source} (+)"
    yield from _axis(floor, results)
    yield f"Unrelated: median {floor.percentile(0.5):.3f}, 95 % below {floor.percentile(0.95):.3f}"
    yield f"now        {_trade(floor.now)}"
    if floor.suggested is not None:
        yield f"suggested  {_trade(floor.suggested)}"
    for found in floor.doubts:
        yield wording.doubt(found)


def _trade(trade: Trade) -> str:
    return (
        f"minScore {trade.min_score:.2f}: {trade.nonsense:.0%} of unrelated questions recall something, "
        f"{trade.related:.0%} of the right chunks reach it"
    )


def _axis(floor: NoiseFloor, results: Sequence[float]) -> Iterator[str]:
    gate = _bucket(floor.now.min_score)
    counts = [[_bucket(score) for score in scores] for scores in (floor.nonsense, floor.related, results)]
    top = max(counts[0].count(at) + counts[1].count(at) for at in range(BUCKETS))
    scale = min(1.0, _BAR / max(1, top))
    for at in range(BUCKETS):
        bars = "".join(sign * round(part.count(at) * scale) for sign, part in zip("#+", counts, strict=False))
        hits = "  < " + wording.plural(counts[2].count(at), "result") if counts[2].count(at) else ""
        mark = "-- minScore " if at == gate else ""
        yield f"{at / BUCKETS:5.2f} | {bars}{hits}{'  ' if mark else ''}{mark}".rstrip()


def _bucket(score: float) -> int:
    return min(BUCKETS - 1, max(0, int(score * BUCKETS + 1e-9)))


def record(floor: NoiseFloor) -> dict[str, Any]:
    """The noise floor with its whole curve."""
    return {
        "nonsense": list(floor.nonsense),
        "related": list(floor.related),
        "cosines": list(floor.cosines),
        "labelled": floor.labelled,
        "median": floor.percentile(0.5),
        "p95": floor.percentile(0.95),
        "now": plain(floor.now),
        "suggested": plain(floor.suggested) if floor.suggested else None,
        "curve": plain(floor.curve),
        "warnings": [
            {"kind": kind(type(found).__name__), **plain(found), "sentence": wording.doubt(found)}
            for found in floor.doubts
        ],
    }
