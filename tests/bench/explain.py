"""How quickly a line is explained with its pairs, a knob re-ranks; CPU time of one thread.

python tests/bench/explain.py [--chunks 100000] [--questions 4]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from corpus import questions, write

from memory_tui.core.cancel import Stop
from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain.counterfactuals import flips
from memory_tui.explain.noise import ask_all, measure
from memory_tui.plan import Options
from memory_tui.search.evidence import Evidence


def milliseconds(run: Callable[[], object]) -> float:
    """CPU time of one run, after one to warm up."""
    run()
    began = time.thread_time()
    run()
    return (time.thread_time() - began) * 1000


def once(run: Callable[[], object]) -> float:
    """CPU time of the first run."""
    began = time.thread_time()
    run()
    return (time.thread_time() - began) * 1000


def show(what: str, times: list[float], goal: str) -> None:
    times = sorted(times)
    middle, high = statistics.median(times), times[int(len(times) * 0.9)]
    print(f"{what:<52}{middle:9.1f} ms median {high:9.1f} ms p90 {times[-1]:9.1f} ms worst   {goal}", flush=True)


def explained(engine: Engine, evidence: Evidence, settings: Settings, row: int) -> object:
    """The verdict on a line with everything that would change it: single knobs, pairs, their ranges."""
    ref = evidence.refs[row]
    return engine.queries.why(evidence, ref.path, ref.start_line, settings), flips(
        evidence, settings, row, engine.plan.with_profile
    )


def under(engine: Engine, title: str, settings: Settings, count: int) -> None:
    """All of them under one profile: lines that nothing proposed, and candidates near and far."""
    steps, whys, notes, pairs = [], [], [], []
    for question in questions(count):
        evidence = engine.queries.gather(question)
        near = evidence.nearest
        # Of few notes the farthest there are.
        candidates = (int(near[min(place, len(near) - 1)]) for place in (3, 60, 150))
        for row in (7, evidence.chunks // 2, *candidates):
            ref = evidence.refs[row]
            pairs.append(once(partial(explained, engine, evidence, settings, row)))
            whys.append(milliseconds(partial(engine.queries.why, evidence, ref.path, ref.start_line, settings)))
        notes.append(milliseconds(partial(engine.queries.why, evidence, ref.path, None, settings)))
        steps.append(milliseconds(partial(engine.queries.rank, evidence, settings)))
    show(f"one knob step, {title}", steps, "<= 16")
    show(f"why not of a line, {title}", whys, "<= 50")
    show(f"why not of a whole note, {title}", notes, "")
    show(f"why of a line with pairs, {title}", pairs, "<= 300 at 10,000 chunks, <= 1,000 at 100,000")


def measured(engine: Engine, count: int) -> None:
    for profile in ("recommended", "openclaw-2026.3"):
        settings = engine.plan.with_profile(profile)
        under(engine, profile, settings, count)
        under(engine, f"{profile} with mmr", settings.set("query.hybrid.mmr.enabled", True, "bench"), count)
    probes = ask_all(engine.queries.gather)
    show("noise floor after a knob step", [milliseconds(lambda: measure(probes, engine.plan.settings))], "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=4)
    given = parser.parse_args()
    # As the command line does.
    gc.set_threshold(10_000, 10, 10)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write(place / "notes", max(1, given.chunks // 15), 17_000)
        with Engine.open(
            Options(
                workspace=str(place / "notes"), index=str(place / "index.sqlite"), changes=(("sync.onSearch", "off"),)
            )
        ) as engine:
            print(f"{engine.indexer.sync().chunks:,} chunks")
            # As the command `index` does.
            engine.queries.write_postings_file(Stop())
            measured(engine, given.questions)


if __name__ == "__main__":
    main()
