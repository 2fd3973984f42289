"""How long a merge and the difference that is shown of it take, for notes that are hard to compare: `python
tests/bench/merging.py`. The last column is the time for twice the lines over the time before: 2 is linear.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_tui.curate import diff
from memory_tui.curate.changes import Change, FileChange
from memory_tui.curate.merge import merge
from tests.curate.test_merge import equal, every_second, few_words, rewritten, turned

SIZES = (3_125, 6_250, 12_500, 25_000, 50_000)


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds, the least of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    random.seed(1)
    print(f"{'texts':<14}{'lines':>8}{'merge s':>10}{'ratio':>7}{'diff s':>10}{'ratio':>7}")
    for texts in (equal, every_second, few_words, rewritten, turned):
        last = (0.0, 0.0)
        for size in SIZES:
            base, mine, theirs = (b"".join(lines) for lines in texts(size))
            change = Change("edit", "one", (FileChange("a.md", base, mine),))
            now = (
                seconds(lambda base=base, mine=mine, theirs=theirs: merge(base, mine, theirs)),
                seconds(lambda change=change: diff.lines(change)),
            )
            ratios = [f"{new / old:7.2f}" if old else " " * 7 for new, old in zip(now, last, strict=True)]
            print(f"{texts.__name__:<14}{size:>8}{now[0]:>10.3f}{ratios[0]}{now[1]:>10.3f}{ratios[1]}", flush=True)
            last = now


if __name__ == "__main__":
    main()
