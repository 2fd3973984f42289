"""Evaluations as lines of text or as JSON-ready data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memory_tui.explain.trace_json import plain
from memory_tui.formatting import plural, signed
from memory_tui.sanitize import one_line
from memory_tui.settings import TUNE_KEYS, Settings
from memory_tui.tune.evaluate import (
    COSTS,
    TABLE_METRICS,
    Gain,
    LevelCounts,
    Rival,
    Scorecard,
    ScoreComparison,
    Scores,
    Shortfall,
)
from memory_tui.tune.knob_search import Better, Outcome

COLUMNS = ("recall", "recall@6", "mrr@10", "ndcg@10", "noise", "wrong")
"""The metrics of a table for people."""
_NAMED = 3
"""Names of notes in a sentence."""


def _row(title: str, cells: Sequence[str]) -> str:
    return f"{title:<9}" + "".join(f"{cell:>9}" for cell in cells)


def _scores(title: str, scores: Scores) -> str:
    return _row(title, [f"{scores[name]:.3f}" for name in COLUMNS])


def _gains(gains: Mapping[str, Gain]) -> dict[str, Any]:
    return {name: {**plain(gain), "sure": gain.sure} for name, gain in gains.items()}


# --- a measurement -------------------------------------------------------------------------------------------------


def scorecard_lines(value: Scorecard) -> Iterator[str]:
    """Yield each query's metrics, and the means."""
    without = f", {plural(value.unjudged, 'query')} without" if value.unjudged else ""
    yield f"{plural(len(value.rows), 'query')} with labels{without}"
    if value.absent:
        text = ", ".join(one_line(path, 60) for path in value.absent[:_NAMED])
        more = f" and {len(value.absent) - _NAMED} more" if len(value.absent) > _NAMED else ""
        yield f"Labels of {plural(len(value.absent), 'note')} that cannot be read count as not found: {text}{more}."
    yield _row("", COLUMNS)
    yield from (f"{_scores('', row.scores)}  {row.query.text}" for row in value.rows)
    yield _scores("mean", value.mean)


def levels(counts: LevelCounts) -> str:
    """Say how often levels mislead."""
    return (
        f"Levels: {counts.doubted:,} of {plural(counts.answerable, 'query')} with an answer doubted; "
        f"{counts.trusted:,} of {counts.unanswerable:,} without one answered as found."
    )


def scorecard_data(value: Scorecard, settings: Settings) -> dict[str, Any]:
    """Return means, and each query with its metrics and hits; `restored` reads it as a baseline."""
    rows = [
        {
            "query": row.query.text,
            "id": row.query.id,
            "metrics": dict(row.scores),
            "hits": [ref.citation for ref in row.hits],
        }
        for row in value.rows
    ]
    return {
        "questions": len(value.rows),
        "unjudged": value.unjudged,
        "absent": list(value.absent),
        "metrics": dict(value.mean),
        "settings": {key: plain(settings.values[key]) for key in TUNE_KEYS},
        "queries": rows,
    }


def comparison_lines(value: ScoreComparison) -> Iterator[str]:
    """Yield the means before and after, how sure the difference is, and the queries that changed."""
    if not value.changes:
        yield "Nothing to compare: the two files share no query."
        return
    missing = f"; {plural(value.missing, 'query')} in only one of the two" if value.missing else ""
    yield f"Against the baseline, over {plural(len(value.changes), 'query')}{missing}"
    yield _row("", COLUMNS)
    yield _scores("before", value.before)
    yield _scores("after", value.after)
    for title, end in (("gain", "mean"), ("95% from", "low"), ("to", "high")):
        yield _row(title, [signed(getattr(value.gains[name], end)) for name in COLUMNS])
    for title, changes in (("Broke", value.broke), ("Mended", value.mended)):
        for change in changes:
            yield f"{title}: recall {change.before['recall']:.2f} > {change.after['recall']:.2f}  {change.text}"


def comparison_data(value: ScoreComparison) -> dict[str, Any]:
    """Return before and after, in sum and by query."""
    return {
        "before": dict(value.before),
        "after": dict(value.after),
        "gains": _gains(value.gains),
        "broke": [change.text for change in value.broke],
        "mended": [change.text for change in value.mended],
        "queries": [
            {"query": change.text, "before": dict(change.before), "after": dict(change.after)}
            for change in value.changes
        ],
        "missing": value.missing,
    }


def rival_lines(value: Sequence[Rival]) -> Iterator[str]:
    """Yield a table of ways of ranking, with 95 % intervals, and what the one in force gains over each."""
    yield "The same queries under other rules (95 % intervals; gain of the rules in force, query by query)"
    for each in value:
        cells = []
        for metric in TABLE_METRICS:
            mean, gain = each.means[metric], each.gains[metric]
            gained = "" if each is value[0] else f"  gain {signed(gain.mean)} [{signed(gain.low)}, {signed(gain.high)}]"
            cells.append(f"{metric} {mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]{gained}")
        yield f"{each.name:<18}{'   '.join(cells)}"


def rival_data(value: Sequence[Rival]) -> list[dict[str, Any]]:
    """Return the same table as data."""
    return [{"name": each.name, "metrics": plain(each.means), "gains": _gains(each.gains)} for each in value]


def shortfall(missed: Shortfall) -> str:
    """Return a metric that misses what was asked of it, as a sentence."""
    side = "above" if missed.metric in COSTS else "below"
    return f"{missed.metric} is {missed.value:.6g}, {side} {missed.bound:g}."


def shortfall_data(missed: Sequence[Shortfall]) -> list[dict[str, Any]]:
    """Return the metrics that miss what was asked of them."""
    return [
        {"metric": each.metric, "value": each.value, "wanted": each.bound, "sentence": shortfall(each)}
        for each in missed
    ]


# --- a search of the knobs -----------------------------------------------------------------------------------------


def verdict(value: Outcome) -> str:
    """Say in a sentence what the knob search found."""
    gain = value.held_out
    if isinstance(value, Better):
        sure = f"95 % from {value.held_out.low:.3f} to {value.held_out.high:.3f}"
        return f"On held-out queries, {value.metric} rises by {value.held_out.mean:.3f} beyond chance ({sure})."
    if value.reason == "few labels":
        return f"No evidence: {plural(value.have, 'query')} with a correct hit; the search starts at {value.needed}."
    if gain is None or not (gain.low or gain.high):
        return "No evidence: the best settings for the half that is searched gain nothing on held-out queries."
    return (
        f"No evidence: the best settings gain {signed(gain.mean)} on held-out queries, "
        f"which may be chance (95 % from {signed(gain.low)} to {signed(gain.high)}). "
        f"With {plural(value.have, 'query')} a gain under {value.missed:.2f} may be missed; more labels find "
        "smaller gains."
    )


def outcome_lines(value: Outcome) -> Iterator[str]:
    """Yield the verdict, the knobs to turn, before and after, and what minScore and results trade."""
    better = isinstance(value, Better)
    yield verdict(value)
    for key, setting in value.changes.items():
        yield f"{'    ' if better else '    not: '}--set {key}={json.dumps(setting)}"
    if isinstance(value, Better):
        yield _row("", COLUMNS)
        yield _scores("before", value.before)
        yield _scores("after", value.after)
    if value.front:
        yield "Recall against noise on the held-out queries, with these knobs:"
        yield _row("", ("recall", "noise", "minScore", "results"))
        for point in value.front:
            yield _row("", (f"{point.recall:.3f}", f"{point.noise:.2f}", f"{point.min_score:g}", str(point.results)))


def outcome_data(value: Outcome) -> dict[str, Any]:
    """Return what a search of the knobs found; `evidence` tells whether anything is recommended."""
    better = value if isinstance(value, Better) else None
    return {
        "evidence": better is not None,
        "reason": "" if isinstance(value, Better) else value.reason,
        "changes": dict(value.changes),
        "heldOut": _gains({"": value.held_out})[""] if value.held_out else None,
        "training": plain(better.training) if better else None,
        "before": dict(better.before) if better else None,
        "after": dict(better.after) if better else None,
        "front": plain(value.front),
        "sentence": verdict(value),
    }
