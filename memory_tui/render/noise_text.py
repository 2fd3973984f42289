"""The noise floor as lines of text or as JSON-ready data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memory_tui.core.formatting import plural
from memory_tui.render.as_text import plain_levels

if TYPE_CHECKING:
    from memory_tui.explain.noise import NoiseFloor

_BAR = 40


def lines(floor: NoiseFloor, results: Sequence[float] = ()) -> Iterator[str]:
    """Both distributions on one axis, with minScore and the scores of `results`, then what to think of it."""
    from memory_tui.explain.noise import sentence

    source = "labels" if floor.labelled else "lines out of the notes"
    yield f"{len(floor.nonsense)} unrelated questions (#, best hit), {len(floor.related)} right chunks by {source} (+)"
    yield from _axis(floor, results)
    yield f"Unrelated: median {floor.percentile(0.5):.3f}, 95 % below {floor.percentile(0.95):.3f}"
    now, suggestion, *others = map(sentence, floor.claims)
    yield f"now        {now}"
    yield f"suggested  {suggestion}"
    yield from others


def _axis(floor: NoiseFloor, results: Sequence[float]) -> Iterator[str]:
    from memory_tui.explain.noise import BUCKETS, bucket

    gate = bucket(floor.now.min_score)
    counts = [[bucket(score) for score in scores] for scores in (floor.nonsense, floor.related, results)]
    top = max(counts[0].count(at) + counts[1].count(at) for at in range(BUCKETS))
    scale = min(1.0, _BAR / max(1, top))
    for at in range(BUCKETS):
        bars = "".join(sign * round(part.count(at) * scale) for sign, part in zip("#+", counts, strict=False))
        hits = "  < " + plural(counts[2].count(at), "result") if counts[2].count(at) else ""
        mark = "-- minScore " if at == gate else ""
        yield f"{at / BUCKETS:5.2f} | {bars}{hits}{'  ' if mark else ''}{mark}".rstrip()


def record(floor: NoiseFloor) -> dict[str, Any]:
    """The noise floor with its whole curve."""
    from memory_tui.explain import wording
    from memory_tui.explain.noise import sentence
    from memory_tui.explain.trace_json import plain, tagged

    return {
        "nonsense": list(floor.nonsense),
        "related": list(floor.related),
        "cosines": list(floor.cosines),
        "labelled": floor.labelled,
        "median": floor.percentile(0.5),
        "p95": floor.percentile(0.95),
        "now": plain(floor.now),
        "suggested": plain(floor.suggested) if floor.suggested else None,
        "levels": plain_levels(floor.levels),
        "curve": plain(floor.curve),
        "claims": [{**tagged(said), "sentence": sentence(said)} for said in floor.claims],
        "warnings": [{**tagged(found), "sentence": wording.doubt(found)} for found in floor.doubts],
    }
