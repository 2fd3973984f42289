"""How fast notes become searchable and questions are answered, beside the machine's limit and what others do with it.

python tests/bench/index_and_search.py [--files 1000] [--chunks 10000] [--questions 120] [--large | --million]

A million chunks take some 20 minutes of CPU and 10 GB; of them only what their goals ask for is measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import apsw
from corpus import questions, write
from measure import CHUNKS_A_NOTE, LARGE, Cost, begin, cost_of, cost_of_process, middle, program, ratio, share, show

from memory_tui import tokens
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options


def indexing(folder: Path, place: Path) -> None:
    with Engine.open(Options(workspace=str(folder), index=str(place / "index.sqlite"))) as engine:
        cost = cost_of(engine.index.sync)
        status = engine.status()
        chunks, files, before = status.chunks, status.files, status.generation
        show(f"indexing {files:,} files: chunks per CPU-second", f"{chunks / cost.cpu * 1000:,.0f}", ">= 1,000")
        again = cost_of(engine.index.sync)
        show("  without a change, microseconds of CPU a file", f"{again.cpu / files * 1000:.1f}", "<= 50")
        assert before == engine.status().generation

    def bare() -> None:
        for entry in os.scandir(folder / "memory"):
            entry.stat()

    show("  of which a bare scandir and stat", f"{middle(bare, 5).cpu / files * 1000:.1f}")
    # Closed, so that the log is folded into it.
    show("bytes of index a chunk, without the open log", f"{(place / 'index.sqlite').stat().st_size / chunks:,.0f}")


def resident() -> float:
    """MB of resident memory at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def private() -> float:
    """MB of resident memory that no file backs; 0 where the system does not say."""
    path = Path("/proc/self/smaps_rollup")
    lines = path.read_text("ascii").splitlines() if path.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024


def indexed(folder: Path, index: Path) -> Options:
    """An index made by the program itself, with the files that processes map; and how to open it here."""
    cost, _ = cost_of_process(program("index", "--workspace", str(folder), "--index", str(index)), os.environ)
    show("the command index, seconds of CPU", f"{cost.cpu / 1000:,.0f}")
    return Options(workspace=str(folder), index=str(index), changes=(("sync.onSearch", "false"),))


def many(folder: Path, place: Path, count: int) -> None:
    """What a process that starts with the files of an index costs."""
    asked = questions(count + 1)
    with Engine.open(indexed(folder, place / "index.sqlite")) as engine:
        show("start to first answer, ms", cost_of(partial(engine.search.search, asked[0])), "<= 2,000")
        for title in ("each question new", "the same questions again"):
            costs = [cost_of(partial(engine.search.search, question)) for question in asked[1:]]
            show(f"search, {title}, p50 ms", share(costs, 0.5), "<= 60")
        show("resident memory that no file backs, MB", f"{private():.0f}", "<= 400")
        bare = cost_of(engine.index.sync)
        (folder / "MEMORY.md").write_text("# Facts\n- The router is an Eero\n")
        show("a sync without a change, ms", bare)
        show("  with one note saved", cost_of(engine.index.sync))
        show("  the next answer", cost_of(partial(engine.search.search, "Eero router")))


def searching(folder: Path, place: Path, kind: str, count: int) -> None:
    print(f"\n{kind}")
    with Engine.open(indexed(folder, place / "index.sqlite")) as engine:
        chunks = engine.status().chunks
        asked = questions(count + 1, kind)
        show("first question of the process, ms", cost_of(partial(engine.search.search, asked[0])))
        once = [cost_of(partial(engine.search.search, question)) for question in asked[1:]]
        goal = "<= 10" if chunks < LARGE // 2 else "<= 12"
        show(f"search over {chunks:,} chunks, each question new, p50 ms", share(once, 0.5), goal)
        show("  p95", share(once, 0.95), "<= 20")
        again = [cost_of(partial(engine.search.search, question)) for question in asked[1:]]
        show("  the same questions again, p50", share(again, 0.5), goal)
        show("  p95", share(again, 0.95), "<= 20")
        found: list[tuple[Cost, Cost]] = []
        for question in asked[1:]:
            evidence = engine.search.gather(question)
            ranked = cost_of(partial(engine.search.rank, evidence, engine.plan.settings))
            found.append((cost_of(partial(engine.search.gather, question)), ranked))
        for at, what in enumerate(("gather", "rank")):
            show(f"  of which {what}, asked again", share([costs[at] for costs in found], 0.5))
        show("resident memory, MB", f"{resident():.0f}")
        show("  that no file backs", f"{private():.0f}")
        profiles(engine, asked[1 : 1 + max(4, count // 4)])
    beside(place / "index.sqlite", folder, asked[1:], share(once, 0.5).cpu)


def profiles(engine: Engine, asked: list[str]) -> None:
    """A knob step under each profile, in turns."""
    ours = engine.plan.settings
    tries = {
        "recommended": ours,
        "recommended with mmr": ours.set("query.hybrid.mmr.enabled", True, "bench"),
        "openclaw-2026.3": engine.plan.with_profile("openclaw-2026.3"),
        "openclaw-2026.9": engine.plan.with_profile("openclaw-2026.9"),
    }
    steps: dict[str, list[Cost]] = {title: [] for title in tries}
    for question in asked:
        evidence = engine.search.gather(question)
        for title, settings in tries.items():
            engine.search.rank(evidence, settings)
            steps[title].append(cost_of(partial(engine.search.rank, evidence, settings)))
    for title, costs in steps.items():
        show(f"one knob step, {title}, ms", share(costs, 0.5), "<= 16")


def full_text(store, asked: list[str]) -> list[Cost]:
    """FTS5 alone: the 24 best of all that hold any word of a question."""
    sql = "SELECT rowid, bm25(chunks_fts) AS s FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY s LIMIT 24"

    def ask(question: str) -> None:
        words = " OR ".join(f'"{word}"' for word in tokens.tokens(question, stemmed=False))
        store.connection.execute(sql, (words,)).fetchall()

    return [cost_of(partial(ask, question)) for question in asked]


def greps(folder: Path, asked: list[str]) -> list[Cost]:
    """`rg` for any word of a question, as an agent without a memory would look."""

    def ask(question: str) -> None:
        words = [part for word in question.split() for part in ("-e", word)]
        subprocess.run(["rg", "-c", "-i", "-F", *words, str(folder)], stdout=subprocess.DEVNULL, check=False)

    found = []
    for question in asked:
        before = os.times()
        wall = cost_of(partial(ask, question)).wall
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        found.append(Cost(cpu * 1000, wall))
    return found


def vec0(corpus) -> apsw.Connection | None:
    """The vectors of `corpus` in a table of sqlite-vec in memory; None where this machine has none."""
    try:
        import sqlite_vec
    except ImportError:
        return None
    peer = apsw.Connection(":memory:")
    peer.enable_load_extension(True)
    peer.load_extension(sqlite_vec.loadable_path())
    width = corpus.matrix.shape[1]
    peer.execute(f"CREATE VIRTUAL TABLE v USING vec0(embedding float[{width}] distance_metric=cosine)")
    with peer:
        peer.executemany("INSERT INTO v VALUES (?, ?)", ((at, row.tobytes()) for at, row in enumerate(corpus.matrix)))
    return peer


def beside(index: Path, folder: Path, asked: list[str], ours: float) -> None:
    """The same rows by a probe of the memory, by FTS5, by sqlite-vec's own scan, by the documented SQL, and by rg."""
    # Not at the top: the engine says how many threads numpy may start, before it is imported.
    import numpy as np

    from memory_tui.index.store import Store
    from memory_tui.search.corpus import Corpus, cosines

    store = Store.open(index)
    corpus = Corpus.load(store)
    query = corpus.matrix[0].copy()
    block = np.ones(50_000_000, np.float32)
    probe = middle(block.sum, 7).cpu
    floor = corpus.matrix.nbytes / (block.nbytes / probe)
    scan = middle(lambda: cosines(corpus, query), 30).cpu
    show("all cosines in memory, ms", f"{scan:.3f}", ratio(scan, floor, "one read of the vectors"))
    show("  our whole search, each question new", f"{ours:.1f}", ratio(ours, scan, "all cosines"))
    words = share(full_text(store, asked[:20]), 0.5)
    show("FTS5 alone, any word, best 24, ms", words, ratio(words.cpu, ours, "our whole search"))
    if shutil.which("rg"):
        grep = share(greps(folder, asked[:3]), 0.5)
        show("rg for any word, a process, ms", grep, ratio(grep.cpu, ours, "our whole search"))
    peer = vec0(corpus)
    if peer is not None:
        sql = "SELECT rowid, distance FROM v WHERE embedding MATCH ? AND k = 24"
        knn = middle(lambda: peer.execute(sql, (query.tobytes(),)).fetchall(), 10)
        show("sqlite-vec's own nearest 24, ms", knn, ratio(knn.cpu, scan, "all cosines"))
        sql = "SELECT rowid, vec_distance_cosine(embedding, ?) AS d FROM v ORDER BY d LIMIT 24"
        documented = middle(lambda: peer.execute(sql, (query.tobytes(),)).fetchall(), 5)
        show("the documented SQL, vector side alone, ms", documented, ratio(documented.cpu, ours, "our whole search"))
        peer.close()
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="notes for the indexing part")
    parser.add_argument("--chunks", type=int, help="chunks for the search part (default 10,000)")
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--kinds", nargs="+", default=["frequent", "prose"], help="corpora: frequent words, prose")
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} chunks for the search part")
    parser.add_argument("--million", action="store_true", help="a million chunks, or --chunks of them, and their goals")
    given = parser.parse_args()
    begin(__doc__)
    usual = 1_000_000 if given.million else LARGE if given.large else 10_000
    notes = round((given.chunks or usual) / CHUNKS_A_NOTE)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if given.million:
            many(write(place / "many", notes), place / "imany", given.questions)
            return
        indexing(write(place / "a", given.files), place / "ia")
        for kind in given.kinds:
            searching(write(place / kind, notes, kind=kind), place / f"i{kind}", kind, given.questions)


if __name__ == "__main__":
    main()
