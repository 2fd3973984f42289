"""How fast notes become searchable and questions are answered, as ratios to what the machine can do in the same run.

python tests/bench/index_and_search.py [--files 1000] [--chunks 10000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import apsw
import numpy as np
from corpus import questions, write

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options


def milliseconds(run, times: int) -> float:
    """Median wall time of `run`."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        found.append((time.perf_counter() - began) * 1000)
    return statistics.median(found)


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
        show("index bytes a chunk", f"{status.db_bytes / status.chunks:,.0f}")


def searching(folder: Path, place: Path) -> None:
    with Engine.open(Options(workspace=str(folder), index=str(place / "index.sqlite"))) as engine:
        engine.indexer.sync()
        chunks = engine.status().chunks
        asked = questions(240)
        engine.queries.search(asked[0])
        found, stages = [], {}
        for question in asked[1:]:
            began = time.perf_counter()
            trace = engine.queries.search(question)
            found.append((time.perf_counter() - began) * 1000)
            for stage, ms in trace.timings.items():
                stages.setdefault(stage, []).append(ms)
        show(f"hybrid search over {chunks:,} chunks, p50 ms", f"{statistics.median(found):.2f}", "<= 10 at 10,000")
        show("  p95", f"{sorted(found)[int(len(found) * 0.95)]:.2f}")
        for stage, times in stages.items():
            show(f"  {stage}", f"{statistics.median(times):.2f}")
        evidence = engine.queries.gather(asked[1])
        ours = engine.plan.settings
        tries = {
            "recommended": ours,
            "openclaw-2026.3": engine.plan.with_profile("openclaw-2026.3"),
            "recommended with mmr": ours.set("query.hybrid.mmr.enabled", True, "bench"),
        }
        for title, settings in tries.items():
            show(f"re-ranking {title}, ms", f"{milliseconds(partial(engine.queries.rank, evidence, settings), 30):.2f}")
    against_the_machine(place / "index.sqlite", statistics.median(found))


def against_the_machine(index: Path, ours: float) -> None:
    """The same rows by a bandwidth probe, by sqlite-vec's own scan, and by the documented SQL."""
    from memory_tui.index.store import Store
    from memory_tui.search.corpus import Corpus, cosines

    store = Store.open(index)
    corpus = Corpus.load(store)
    query = corpus.vectors([0])[0].copy()
    block = np.ones(50_000_000, np.float32)
    probe = milliseconds(block.sum, 7)
    floor = corpus.matrix.nbytes / (block.nbytes / probe)
    scan = milliseconds(lambda: cosines(corpus, query), 30)
    show("all cosines in memory, ms", f"{scan:.3f}")
    show("  times the memory bandwidth floor", f"{scan / floor:.1f}")
    if store.finds_nearest():
        knn = milliseconds(lambda: store.nearest(query, 24), 10)
        show("sqlite-vec's own nearest 24, ms", f"{knn:.2f}", f"{knn / scan:.1f} x ours")
        documented = (
            "SELECT c.id, vec_distance_cosine(v.embedding, ?) AS d FROM chunks_vec v JOIN chunks c "
            "ON c.id = v.rowid WHERE c.model = ? ORDER BY d LIMIT 24"
        )
        blob, model = query.tobytes(), store.recipe().identity.model  # type: ignore[union-attr]
        sql = milliseconds(lambda: store.connection.execute(documented, (blob, model)).fetchall(), 5)
        show("the documented SQL, vector side alone, ms", f"{sql:.2f}", f"{sql / ours:.1f} x our whole search")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=1000, help="notes for the indexing part")
    parser.add_argument("--chunks", type=int, default=10_000, help="chunks for the search part")
    given = parser.parse_args()
    print(f"SQLite {apsw.sqlite_lib_version()}, numpy {np.__version__}, {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        indexing(write(place / "a", given.files), place / "ia")
        searching(write(place / "b", given.chunks // 4 + 1), place / "ib")


if __name__ == "__main__":
    main()
