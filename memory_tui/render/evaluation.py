"""Evaluations as lines of text or as JSON-ready data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from memory_tui.explain.trace_json import plain
from memory_tui.formatting import plural, signed
from memory_tui.sanitize import one_line
from memory_tui.settings import TUNE_KEYS, Settings
from memory_tui.tune.evaluate import (
    COSTS,
    TABLE_METRICS,
    QueryChange,
    Rival,
    Scorecard,
    ScoreComparison,
    Scores,
    Shortfall,
)
from memory_tui.tune.knob_search import Better, Outcome

COLUMNS = ("recall", "recall@6", "mrr@10", "ndcg@10", "noise", "wrong")
"""The metrics of a table for people."""
_WIDTH = 9
_NAMED = 3
"""Names of notes in a sentence."""


def scorecard_lines(value: Scorecard) -> Iterator[str]:
    """Yield each query's metrics, and the means."""
    yield f"{plural(len(value.rows), 'query')} with labels" + (
        f", {plural(value.unjudged, 'query')} without" if value.unjudged else ""
    )
    if value.absent:
        text = ", ".join(one_line(path, 60) for path in value.absent[:_NAMED])
        more = f" and {len(value.absent) - _NAMED} more" if len(value.absent) > _NAMED else ""
        yield f"Labels of {plural(len(value.absent), 'note')} that cannot be read count as not found: {text}{more}."
    yield _row("", COLUMNS)
    for row in value.rows:
        yield f"{_row('', _numbers(row.scores))}  {row.query.text}"
    yield _row("mean", _numbers(value.mean))


def comparison_lines(value: ScoreComparison) -> Iterator[str]:
    """Yield the means before and after, how sure the difference is, and the queries that changed."""
    if not value.changes:
        yield "Nothing to compare: the two files share no query."
        return
    yield f"Against the baseline, over {plural(len(value.changes), 'query')}" + (
        f"; {plural(value.missing, 'query')} in only one of the two" if value.missing else ""
    )
    yield _row("", COLUMNS)
    yield _row("before", _numbers(value.before))
    yield _row("after", _numbers(value.after))
    yield _row("gain", [signed(value.gains[name].mean) for name in COLUMNS])
    yield _row("95% from", [signed(value.gains[name].low) for name in COLUMNS])
    yield _row("to", [signed(value.gains[name].high) for name in COLUMNS])
    for title, changes in (("Broke", value.broke), ("Mended", value.mended)):
        for change in changes:
            yield f"{title}: {_recall(change)}  {change.text}"


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
    return [
        {
            "name": each.name,
            "metrics": {metric: plain(gain) for metric, gain in each.means.items()},
            "gains": {metric: {**plain(gain), "sure": gain.sure} for metric, gain in each.gains.items()},
        }
        for each in value
    ]


def shortfall(missed: Shortfall) -> str:
    """Return a metric that misses what was asked of it, as a sentence."""
    ways = (f"{missed.value:.{digits}f}" for digits in range(3, 18))
    text = next((way for way in ways if float(way) != missed.bound), repr(missed.value))
    return f"{missed.metric} is {text}, {'above' if missed.metric in COSTS else 'below'} {missed.bound:g}."


def shortfall_data(missed: Sequence[Shortfall]) -> list[dict[str, Any]]:
    """Return the metrics that miss what was asked of them."""
    return [
        {"metric": each.metric, "value": each.value, "wanted": each.bound, "sentence": shortfall(each)}
        for each in missed
    ]


def verdict(value: Outcome) -> str:
    """Say in a sentence what the knob search found."""
    if isinstance(value, Better):
        gain = value.held_out
        return (
            f"On held-out queries, {value.metric} rises by {gain.mean:.3f} beyond chance "
            f"(95 % from {gain.low:.3f} to {gain.high:.3f})."
        )
    if value.reason == "few labels":
        return f"No evidence: {plural(value.have, 'query')} with a correct hit; the search starts at {value.needed}."
    if value.held_out is None:
        return "No evidence: no settings are better on the half of the labelled queries that is searched."
    if not (value.held_out.low or value.held_out.high):
        return "No evidence: the best settings for the half that is searched gain nothing on held-out queries."
    return (
        f"No evidence: the best settings gain {signed(value.held_out.mean)} on held-out queries, "
        f"which may be chance (95 % from {signed(value.held_out.low)} to {signed(value.held_out.high)}). "
        f"With {plural(value.have, 'query')} a gain under {value.missed:.2f} may be missed; more labels find "
        "smaller gains."
    )


def outcome_lines(value: Outcome) -> Iterator[str]:
    """Yield the verdict, the knobs to turn, before and after, and what minScore and results trade."""
    yield verdict(value)
    for key, setting in value.changes.items():
        yield f"{'    ' if isinstance(value, Better) else '    not: '}--set {key}={json.dumps(setting)}"
    if isinstance(value, Better):
        yield _row("", COLUMNS)
        yield _row("before", _numbers(value.before))
        yield _row("after", _numbers(value.after))
    if value.front:
        yield "Recall against noise on the held-out queries, with these knobs:"
        yield _row("", ("recall", "noise", "minScore", "results"))
        for point in value.front:
            yield _row("", (f"{point.recall:.3f}", f"{point.noise:.2f}", f"{point.min_score:g}", str(point.results)))


def _recall(change: QueryChange) -> str:
    return f"recall {change.before['recall']:.2f} > {change.after['recall']:.2f}"


def _numbers(scores: Scores) -> list[str]:
    return [f"{scores[name]:.3f}" for name in COLUMNS]


def _row(title: str, cells: Sequence[str]) -> str:
    return f"{title:<9}" + "".join(f"{cell:>{_WIDTH}}" for cell in cells)


def scorecard_data(value: Scorecard, settings: Settings) -> dict[str, Any]:
    """Means, and each query with its metrics and hits; `restored` reads it as a baseline."""
    return {
        "questions": len(value.rows),
        "unjudged": value.unjudged,
        "absent": list(value.absent),
        "metrics": dict(value.mean),
        "settings": {key: plain(settings.values[key]) for key in TUNE_KEYS},
        "queries": [
            {
                "query": row.query.text,
                "id": row.query.id,
                "metrics": dict(row.scores),
                "hits": [ref.citation for ref in row.hits],
            }
            for row in value.rows
        ],
    }


def comparison_data(value: ScoreComparison) -> dict[str, Any]:
    """Before and after, in sum and by query."""
    return {
        "before": dict(value.before),
        "after": dict(value.after),
        "gains": {name: {**plain(gain), "sure": gain.sure} for name, gain in value.gains.items()},
        "broke": [change.text for change in value.broke],
        "mended": [change.text for change in value.mended],
        "queries": [_change(change) for change in value.changes],
        "missing": value.missing,
    }


def _change(value: QueryChange) -> dict[str, Any]:
    return {"query": value.text, "before": dict(value.before), "after": dict(value.after)}


def outcome_data(value: Outcome) -> dict[str, Any]:
    """Return what a search of the knobs found; `evidence` tells whether anything is recommended."""
    missed = {
        "evidence": isinstance(value, Better),
        "reason": "",
        "changes": dict(value.changes),
        "heldOut": {**plain(value.held_out), "sure": value.held_out.sure} if value.held_out else None,
        "training": None,
        "before": None,
        "after": None,
        "front": plain(value.front),
        "sentence": verdict(value),
    }
    if isinstance(value, Better):
        return {**missed, "training": plain(value.training), "before": dict(value.before), "after": dict(value.after)}
    return {**missed, "reason": value.reason}
