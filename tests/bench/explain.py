"""How quickly a line is explained, a knob re-ranks, all flips and sets of a line are found; in CPU time of one thread.

python tests/bench/explain.py [--chunks 100000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from corpus import questions, write

from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain.counterfactuals import flips
from memory_tui.explain.noise import ask_all, measure
from memory_tui.plan import Options


def milliseconds(run: Callable[[], object]) -> float:
    """CPU time of one run, after one to warm up."""
    run()
    began = time.thread_time()
    run()
    return (time.thread_time() - began) * 1000


def show(what: str, times: list[float], goal: str) -> None:
    print(f"{what:<58}{statistics.median(times):9.2f} ms median {max(times):9.2f} ms worst   {goal}")


def under(engine: Engine, title: str, settings: Settings) -> None:
    """All three under one profile."""
    steps, whys, notes, turns = [], [], [], []
    for question in questions(4):
        evidence = engine.queries.gather(question)
        steps.append(milliseconds(partial(engine.queries.rank, evidence, settings)))
        for row in (7, evidence.chunks // 2, int(evidence.nearest[3]), int(evidence.nearest[150])):
            ref = evidence.refs[row]
            whys.append(milliseconds(partial(engine.queries.why, evidence, ref.path, ref.start_line, settings)))
            notes.append(milliseconds(partial(engine.queries.why, evidence, ref.path, None, settings)))
            turns.append(milliseconds(partial(flips, evidence, settings, row, engine.plan.with_profile)))
    show(f"one knob step, {title}", steps, "<= 16")
    show(f"why not of a line, {title}", whys, "<= 50")
    show(f"why not of a whole note, {title}", notes, "")
    show(f"all flips and sets of a line, {title}", turns, "<= 300 at 10,000 chunks")


def measured(engine: Engine) -> None:
    for profile in ("recommended", "openclaw-2026.3"):
        settings = engine.plan.with_profile(profile)
        under(engine, profile, settings)
        under(engine, f"{profile} with mmr", settings.set("query.hybrid.mmr.enabled", True, "bench"))
    probes = ask_all(engine.queries.gather)
    show("noise floor after a knob step", [milliseconds(lambda: measure(probes, engine.plan.settings))], "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(place / "notes", max(1, given.chunks // 15), 17_000)
        with Engine.open(
            Options(
                workspace=str(place / "notes"), index=str(place / "index.sqlite"), changes=(("sync.onSearch", "off"),)
            )
        ) as engine:
            print(f"{engine.indexer.sync().chunks:,} chunks")
            measured(engine)


if __name__ == "__main__":
    main()
