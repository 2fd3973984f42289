"""How quickly a line is explained, a knob re-ranks, all flips and sets of a line are found; in CPU time of one thread.

python tests/bench/explain.py [--chunks 10000] [--questions 2] [--large]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from corpus import questions, write
from measure import LARGE, Cost, begin, cost_of, share, show

from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain.counterfactuals import flips
from memory_tui.explain.noise import ask_all, measure
from memory_tui.plan import Options


def milliseconds(run: Callable[[], object]) -> Cost:
    """One run, after one to warm up."""
    run()
    return cost_of(run)


def median(what: str, costs: list[Cost], goal: str) -> None:
    show(f"{what}, ms", share(costs, 0.5), f"{goal}; worst {max(cost.cpu for cost in costs):,.0f}".lstrip("; "))


def under(engine: Engine, title: str, settings: Settings, count: int) -> None:
    """All three under one profile."""
    steps, whys, notes, turns = [], [], [], []
    for question in questions(count):
        evidence = engine.queries.gather(question)
        steps.append(milliseconds(partial(engine.queries.rank, evidence, settings)))
        for row in (
            7,
            evidence.chunks // 2,
            int(evidence.nearest[3]),
            int(evidence.nearest[min(150, len(evidence.nearest) - 1)]),
        ):
            ref = evidence.refs[row]
            whys.append(milliseconds(partial(engine.queries.why, evidence, ref.path, ref.start_line, settings)))
            notes.append(milliseconds(partial(engine.queries.why, evidence, ref.path, None, settings)))
            turns.append(milliseconds(partial(flips, evidence, settings, row, engine.plan.with_profile)))
    median(f"one knob step, {title}", steps, "<= 16")
    median(f"why not of a line, {title}", whys, "<= 50")
    median(f"why not of a whole note, {title}", notes, "")
    median(f"all flips and sets of a line, {title}", turns, "<= 300 at 10,000 chunks")


def measured(engine: Engine, count: int) -> None:
    for profile in ("recommended", "openclaw-2026.3"):
        settings = engine.plan.with_profile(profile)
        under(engine, profile, settings, count)
        under(engine, f"{profile} with mmr", settings.set("query.hybrid.mmr.enabled", True, "bench"), count)
    probes = ask_all(engine.queries.gather)
    median("noise floor after a knob step", [milliseconds(lambda: measure(probes, engine.plan.settings))], "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=2)
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} chunks")
    given = parser.parse_args()
    begin(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(place / "notes", max(1, (LARGE if given.large else given.chunks) // 15), 17_000)
        with Engine.open(
            Options(
                workspace=str(place / "notes"), index=str(place / "index.sqlite"), changes=(("sync.onSearch", "off"),)
            )
        ) as engine:
            print(f"{engine.indexer.sync().chunks:,} chunks")
            measured(engine, given.questions)


if __name__ == "__main__":
    main()
