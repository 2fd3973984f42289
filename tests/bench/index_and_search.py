"""How fast notes become searchable and questions are answered.

python tests/bench/index_and_search.py [--files 1000] [--chunks 10000] [--questions 120] [--large]
"""

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

from corpus import questions, write
from measure import CHUNKS_A_NOTE, LARGE, begin, cost_of, cost_of_process, middle, program, share, show

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


def indexed(folder: Path, index: Path) -> Options:
    """An index made by the program itself, with the files that processes map; and how to open it here."""
    cost, _ = cost_of_process(program("index", "--workspace", str(folder), "--index", str(index)), os.environ)
    show("the command index, seconds of CPU", f"{cost.cpu / 1000:,.0f}")
    return Options(workspace=str(folder), index=str(index), changes=(("sync.onSearch", "false"),))


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
        evidence, settings = engine.search.gather(asked[1]), engine.plan.settings
        show("one knob step, ms", middle(partial(engine.search.rank, evidence, settings), 20), "<= 16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000, help="notes for the indexing part")
    parser.add_argument("--chunks", type=int, default=10_000, help="chunks for the search part")
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} chunks for the search part")
    args = parser.parse_args()
    begin(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        indexing(write(place / "a", args.files), place / "ia")
        for kind in ("frequent", "prose"):
            notes = round((LARGE if args.large else args.chunks) / CHUNKS_A_NOTE)
            searching(write(place / kind, notes, kind=kind), place / f"i{kind}", kind, args.questions)


if __name__ == "__main__":
    main()
