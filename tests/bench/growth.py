"""What grows with what: seconds of CPU for n, 2n and 4n of each thing that was once quadratic, and their ratios.

python tests/bench/growth.py [PART ...] [--quick] [--scale 4]

Parts: questions line folders secrets merges. Linear work has ratios of about 2; a ratio of about 4 is quadratic.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import begin

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_tui.core import secret_finder
from memory_tui.curate import diff
from memory_tui.curate.changes import Change, FileChange
from memory_tui.curate.merge import merge
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.workspace import scan as workspace_scan
from memory_tui.workspace.chunking import chunk_text
from memory_tui.workspace.roots import Roots, scan
from tests.curate.test_merge import equal, every_second, few_words, rewritten, turned

LINE = "deploy the rollback a-a-a of service number five "


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of the quickest of two runs."""
    found = []
    for _ in range(2):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def show(what: str, sizes: list[int], taken: list[float]) -> None:
    ratios = " ".join(f"{later / max(earlier, 1e-9):5.1f}" for earlier, later in itertools.pairwise(taken))
    values = " ".join(f"{value:9.3f}" for value in taken)
    print(f"{what:<46} n={sizes[0]:<9,} {values}   ratios {ratios}", flush=True)


def grown(what: str, first: float, make: Callable[[int], Callable[[], object]]) -> None:
    sizes = [round(first), 2 * round(first), 4 * round(first)]
    show(what, sizes, [seconds(make(size)) for size in sizes])


def opened(folder: Path, **notes: str) -> Engine:
    """An engine over a new workspace with these notes, indexed."""
    workspace = folder / "notes"
    (workspace / "memory").mkdir(parents=True)
    for name, text in notes.items():
        (workspace / "memory" / f"{name}.md").write_text(text)
    engine = Engine.open(
        Options(workspace=str(workspace), index=str(folder / "index.sqlite"), changes=(("sync.watch", "false"),))
    )
    engine.indexer.sync()
    return engine


def questions(scale: float) -> None:
    """Long questions over a few hundred chunks."""
    with tempfile.TemporaryDirectory() as place:
        lines = {f"n{number}": f"{LINE}{number}\n" * 40 for number in range(100)}
        with opened(Path(place), **lines) as engine:
            grown(
                "question that repeats one word", 1_700 * scale, lambda n: lambda: engine.queries.search("deploy " * n)
            )
            grown("question a-a-a", 6_000 * scale, lambda n: lambda: engine.queries.search("a-" * n))
            grown(
                "question of different words",
                1_000 * scale,
                lambda n: lambda: engine.queries.search(" ".join(f"w{number}" for number in range(n))),
            )


def single_line(scale: float) -> None:
    """Indexing a note of one line, and asking it."""
    sizes = [round(1_000_000 * scale) * times for times in (1, 2, 4)]
    made, asked = [], []
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            began = time.process_time()
            with opened(Path(place), big=(LINE * (size // len(LINE) + 1))[:size]) as engine:
                made.append(time.process_time() - began)
                engine.queries.search("deploy rollback")
                asked.append(seconds(lambda engine=engine: engine.queries.search("deploy rollback")))
    show("note of one line: index", sizes, made)
    show("note of one line: search", sizes, asked)
    grown("note of one line: chunks", 1_000_000 * scale, lambda n: lambda: chunk_text(LINE * (n // len(LINE))))


def folders(scale: float) -> None:
    """Extra paths below and above the limit."""
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        (base / "notes").mkdir()
        for times in (1, 2, 4):
            for number in range(round(50 * scale) * times):
                folder = base / f"x{times}" / f"d{number}"
                folder.mkdir(parents=True)
                for other in range(40):
                    (folder / f"{other}.txt").touch()
        grown(
            "extra path: files looked through",
            2_000 * scale,
            lambda n: lambda: scan(Roots.open(base / "notes", [str(base / f"x{n // round(2_000 * scale)}")])),
        )
    for limit in (round(50_000 * scale / 4) * times for times in (1, 2, 4)):
        os.environ[workspace_scan.LIMIT_VARIABLE] = str(limit)
        with tempfile.TemporaryDirectory() as place:
            taken = seconds(lambda place=place: (workspace_scan._too_large.clear(), scan(Roots.open(place, ["/"]))))
        print(f"extra path /, at most {limit:,} entries: {taken:.3f} s", flush=True)
    del os.environ[workspace_scan.LIMIT_VARIABLE]


def hidden(scale: float) -> None:
    """Secrets: in plain text, and where everything is one."""
    grown(
        "secrets in plain text, characters",
        100_000 * scale,
        lambda n: lambda: secret_finder.find(LINE * (n // len(LINE))),
    )
    grown(
        "secrets everywhere, lines",
        500 * scale,
        lambda n: lambda: secret_finder.masked("password: hunter22 again\n" * n),
    )


def merges(scale: float) -> None:
    """A merge, and the difference that is shown of it, for notes that are hard to compare."""
    random.seed(1)
    for texts in (equal, every_second, few_words, rewritten, turned):

        def merged(size: int, texts: Callable[[int], object] = texts) -> Callable[[], object]:
            base, mine, theirs = (b"".join(lines) for lines in texts(size))
            return lambda: merge(base, mine, theirs)

        def shown(size: int, texts: Callable[[int], object] = texts) -> Callable[[], object]:
            base, mine, _ = (b"".join(lines) for lines in texts(size))
            change = Change("edit", "one", (FileChange("a.md", base, mine),))
            return lambda: diff.lines(change)

        grown(f"merge, lines: {texts.__name__}", max(100, 500 * scale), merged)
        grown(f"difference, lines: {texts.__name__}", max(100, 500 * scale), shown)


def main() -> None:
    parts = {
        "questions": questions,
        "line": lambda scale: single_line(2 * scale),
        "folders": folders,
        "secrets": hidden,
        "merges": merges,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("--quick", action="store_true", help="a quarter of the sizes")
    parser.add_argument("--scale", type=float, default=4, help="sizes; --quick is 1")
    given = parser.parse_args()
    begin(__doc__)
    for part in given.parts or parts:
        parts[part](1 if given.quick else given.scale)


if __name__ == "__main__":
    main()
