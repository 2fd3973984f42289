"""How fast notes become searchable and questions are answered.

python -m tests.bench.index_and_search [--large]
"""

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from tests.bench.corpus import questions, write
from tests.bench.measure import CHUNKS_A_NOTE, LARGE, begin, cost_of, cost_of_process, middle, program, share, show


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


def searching(folder: Path, index: Path, kind: str) -> None:
    """Ask an index made by the program itself, with the files that processes map."""
    print(f"\n{kind}")
    cost = cost_of_process(program("index", "--workspace", str(folder), "--index", str(index)))
    show("the command index, seconds of CPU", f"{cost.cpu / 1000:,.0f}")
    options = Options(workspace=str(folder), index=str(index), changes=(("sync.onSearch", "false"),))
    with Engine.open(options) as engine:
        chunks = engine.status().chunks
        asked = questions(121, kind)
        show("first question of the process, ms", cost_of(partial(engine.search.search, asked[0])))
        goal = "<= 10" if chunks < LARGE // 2 else "<= 12"
        for name in (f"search over {chunks:,} chunks, each question new", "  the same questions again"):
            costs = [cost_of(partial(engine.search.search, question)) for question in asked[1:]]
            show(f"{name}, p50 ms", share(costs, 0.5), goal)
            show("  p95", share(costs, 0.95), "<= 20")
        evidence, settings = engine.search.gather(asked[1]), engine.plan.settings
        show("one knob step, ms", middle(partial(engine.search.rank, evidence, settings), 20), "<= 16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} chunks for the search part")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        begin(__doc__, place)
        indexing(write(place / "a", 1000), place / "ia")
        for kind in ("frequent", "prose"):
            notes = round((LARGE if args.large else 10_000) / CHUNKS_A_NOTE)
            searching(write(place / kind, notes, kind=kind), place / f"i{kind}" / "index.sqlite", kind)


if __name__ == "__main__":
    main()
