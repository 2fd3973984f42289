"""Measurements as JSON-ready data, for programs and as baselines of later ones."""

from __future__ import annotations

from typing import Any

from memory_tui.explain.record import plain
from memory_tui.settings import TUNE_KEYS, Settings
from memory_tui.tune import outline
from memory_tui.tune.evaluate import Change, Comparison, Scorecard
from memory_tui.tune.sweep import Better, Outcome


def scorecard(value: Scorecard, settings: Settings) -> dict[str, Any]:
    """Means, and each question with its metrics and hits; `restored` reads it as a baseline."""
    return {
        "questions": len(value.rows),
        "unjudged": value.unjudged,
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


def comparison(value: Comparison) -> dict[str, Any]:
    """Before and after, in sum and by question."""
    return {
        "before": dict(value.before),
        "after": dict(value.after),
        "gains": {name: {**plain(gain), "sure": gain.sure} for name, gain in value.gains.items()},
        "broke": [change.text for change in value.broke],
        "mended": [change.text for change in value.mended],
        "queries": [_change(change) for change in value.changes],
        "missing": value.missing,
    }


def _change(value: Change) -> dict[str, Any]:
    return {"query": value.text, "before": dict(value.before), "after": dict(value.after)}


def outcome(value: Outcome) -> dict[str, Any]:
    """What a search of the knobs found; `evidence` tells whether anything is recommended."""
    found = {
        "evidence": isinstance(value, Better),
        "reason": "",
        "changes": dict(value.changes),
        "heldOut": {**plain(value.held_out), "sure": value.held_out.sure} if value.held_out else None,
        "training": None,
        "before": None,
        "after": None,
        "front": plain(value.front),
        "sentence": outline.verdict(value),
    }
    if isinstance(value, Better):
        return {**found, "training": plain(value.training), "before": dict(value.before), "after": dict(value.after)}
    return {**found, "reason": value.reason}
