"""Share of the evidence that an agent reads within a budget: `python tests/bench/passages.py SET… [--step N]`.

Hits are what OpenClaw's tool gives, 700 characters of each of the first six; passages are those of `maxCharacters`.
A line of the evidence counts where its text is among what was given. The sets are those of recall.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from recall import day_after, questions

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search.excerpts import excerpts
from memory_tui.search.trace import Candidate

BUDGETS = (2000, 2400, 4200, 10_000)
_ENOUGH = 40
"""Characters of a line that tell it from others."""


def held(text: str, line: str) -> bool:
    """Whether `text` holds the beginning, or of a long line the middle, of `line`."""
    core = line.lstrip("- ").strip()
    middle = core[len(core) // 2 : len(core) // 2 + _ENOUGH]
    return core[:_ENOUGH] in text or (len(core) > 2 * _ENOUGH and middle in text)


def of_hits(hits: list[Candidate], budget: int) -> str:
    """The snippets of the first six, cut at the budget."""
    return "\n".join(hit.snippet for hit in hits[:6])[:budget]


def measured(folder: Path, step: int) -> dict[str, list[float]]:
    """The share of the evidence that each way and budget gives, of each question."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    by_workspace: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for query in questions(folder, step):
        by_workspace[query["workspace"]].append(query)
    with tempfile.TemporaryDirectory() as place:
        for name, queries in by_workspace.items():
            workspace = folder / "workspaces" / name
            changes = (("profile", "recommended"), ("query.maxResults", "20"), ("sync.watch", "false"))
            index = str(Path(place) / f"{name}.sqlite")
            options = Options(
                workspace=str(workspace),
                index=index,
                provider="builtin",
                now=day_after(workspace),
                read_only=True,
                changes=changes,
            )
            with Engine.open(options) as engine:
                engine.indexer.sync()
                for query in queries:
                    evidence = engine.queries.gather(query["question"])
                    trace = engine.queries.rank(evidence, engine.plan.settings)
                    lines = [
                        (workspace / one["path"]).read_text(encoding="utf-8").split("\n")[one["line"] - 1]
                        for one in query["evidence"]
                    ]
                    for budget in BUDGETS:
                        passages = excerpts(trace, evidence, budget)
                        given = {
                            f"hits {budget}": of_hits(list(trace.recalled), budget),
                            f"passages {budget}": "\n".join(one.text for one in passages),
                        }
                        for way, text in given.items():
                            found[way].append(float(np.mean([held(text, line) for line in lines])))
    return found


def main() -> None:
    """Print a line a set, way and budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--step", type=int, default=1, help="every Nth question")
    given = parser.parse_args()
    for folder in given.sets:
        for way, shares in sorted(measured(folder.resolve(), given.step).items()):
            print(f"{folder.name:<14}{len(shares):>6} questions  {way:<16}{float(np.mean(shares)):.3f}")


if __name__ == "__main__":
    main()
