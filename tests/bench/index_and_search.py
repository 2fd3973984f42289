"""How fast notes become searchable and questions are answered, as ratios to what the machine can do in the same run.

python tests/bench/index_and_search.py [--files 1000] [--chunks 10000] [--large]

Times are given in CPU time and, in brackets, by the clock, which other work on the machine makes longer.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import apsw
from corpus import questions, write

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options


class Cost(NamedTuple):
    """Milliseconds of CPU, and by the clock."""

    cpu: float
    wall: float

    def __str__(self) -> str:
        return f"{self.cpu:.2f} ({self.wall:.2f})"


def cost_of(run) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return Cost((time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000)


def share(found: list[Cost], part: float) -> Cost:
    """The cost that `part` of those that were `found` do not exceed."""
    at = min(int(len(found) * part), len(found) - 1)
    return Cost(sorted(cost.cpu for cost in found)[at], sorted(cost.wall for cost in found)[at])


def milliseconds(run, times: int) -> Cost:
    """Median cost of `run`."""
    return share([cost_of(run) for _ in range(times)], 0.5)


def show(what: str, value: str, goal: str = "") -> None:
    print(f"{what:<62}{value:>16}   {goal}")


def indexing(folder: Path, place: Path) -> None:
    with Engine.open(Options(workspace=str(folder), index=str(place / "index.sqlite"))) as engine:
        began = time.process_time()
        report = engine.indexer.sync()
        cpu = time.process_time() - began
        show(f"indexing {report.indexed} files, chunks per CPU-second", f"{report.chunks / cpu:,.0f}", ">= 1,000")
        before = engine.status().generation
        began = time.process_time()
        again = engine.indexer.sync()
        cpu = (time.process_time() - began) / again.found * 1e6
        show("second run, microseconds of CPU a file", f"{cpu:.1f}", "<= 50")
        assert not again.changed
        assert before == engine.status().generation
        began = time.process_time()
        for _ in range(5):
            for entry in os.scandir(folder / "memory"):
                entry.stat()
        bare = (time.process_time() - began) / 5 / again.found * 1e6
        show("  of which a bare scandir and stat", f"{bare:.1f}")
        status = engine.status()
        chunks = status.chunks
    # Closed, so that the log is folded into it.
    show("index bytes a chunk", f"{(place / 'index.sqlite').stat().st_size / chunks:,.0f}")


def searching(folder: Path, place: Path, kind: str) -> None:
    print(f"\n{kind}")
    with Engine.open(Options(workspace=str(folder), index=str(place / "index.sqlite"))) as engine:
        engine.indexer.sync()
        chunks = engine.status().chunks
        asked = questions(240, kind)
        show("first question of the process, ms", str(cost_of(partial(engine.queries.search, asked[0]))))
        once = [cost_of(partial(engine.queries.search, question)) for question in asked[1:]]
        goal = "<= 10" if chunks < 20_000 else "<= 12"
        show(f"hybrid search over {chunks:,} chunks, each question new, p50 ms", str(share(once, 0.5)), goal)
        show("  p95", str(share(once, 0.95)), "<= 20")
        again = [cost_of(partial(engine.queries.search, question)) for question in asked[1:]]
        show("  words that were asked for before, p50", str(share(again, 0.5)), goal)
        show("  p95", str(share(again, 0.95)), "<= 20")
        stages: dict[str, list[float]] = {}
        for question in asked[1:60]:
            for stage, ms in engine.queries.search(question).timings.items():
                stages.setdefault(stage, []).append(ms)
        for stage, times in stages.items():
            show(f"  {stage}, by the clock", f"{statistics.median(times):.2f}")
        show("resident memory, MB", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
        evidence = engine.queries.gather(asked[1])
        ours = engine.plan.settings
        tries = {
            "recommended": ours,
            "openclaw-2026.3": engine.plan.with_profile("openclaw-2026.3"),
            "recommended with mmr": ours.set("query.hybrid.mmr.enabled", True, "bench"),
        }
        for title, settings in tries.items():
            show(f"re-ranking {title}, ms", str(milliseconds(partial(engine.queries.rank, evidence, settings), 30)))
    against_the_machine(place / "index.sqlite", share(again, 0.5).cpu)


def against_the_machine(index: Path, ours: float) -> None:
    """The same rows by a bandwidth probe, by sqlite-vec's own scan, and by the documented SQL."""
    # Not at the top: the engine says how many threads numpy may start, before it is imported.
    import numpy as np

    from memory_tui.index.store import Store
    from memory_tui.search.corpus import Corpus, cosines

    store = Store.open(index)
    corpus = Corpus.load(store)
    query = corpus.vectors([0])[0].copy()
    block = np.ones(50_000_000, np.float32)
    probe = milliseconds(block.sum, 7).cpu
    floor = corpus.matrix.nbytes / (block.nbytes / probe)
    scan = milliseconds(lambda: cosines(corpus, query), 30).cpu
    show("all cosines in memory, ms", f"{scan:.3f}")
    show("  times the memory bandwidth floor", f"{scan / floor:.1f}")
    if store.finds_nearest():
        knn = milliseconds(lambda: store.nearest(query, 24), 10).cpu
        show("sqlite-vec's own nearest 24, ms", f"{knn:.2f}", f"{knn / scan:.1f} x ours")
        documented = (
            "SELECT c.id, vec_distance_cosine(v.embedding, ?) AS d FROM chunks_vec v JOIN chunks c "
            "ON c.id = v.rowid WHERE c.model = ? ORDER BY d LIMIT 24"
        )
        blob, model = query.tobytes(), store.recipe().identity.model  # type: ignore[union-attr]
        sql = milliseconds(lambda: store.connection.execute(documented, (blob, model)).fetchall(), 5).cpu
        show("the documented SQL, vector side alone, ms", f"{sql:.2f}", f"{sql / ours:.1f} x our whole search")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=1000, help="notes for the indexing part")
    parser.add_argument("--chunks", type=int, default=10_000, help="chunks for the search part")
    parser.add_argument("--large", action="store_true", help="98,000 chunks for the search part")
    given = parser.parse_args()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"SQLite {apsw.sqlite_lib_version()}, numpy {version('numpy')}, {os.cpu_count()} cores, load {load}\n")
    notes = (98_000 if given.large else given.chunks) // 4 + 1
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        indexing(write(place / "a", given.files), place / "ia")
        for kind in ("frequent", "prose"):
            searching(write(place / kind, notes, kind=kind), place / f"i{kind}", kind)


if __name__ == "__main__":
    main()
