"""Recall of profiles on labelled sets: `python tests/bench/recall.py SET… [--profile P] [--step N] [--second-stage W]`.

A set is a folder with `workspaces/` and `queries.jsonl`, judged by the `score.py` beside it or above it: recall in the
first six, and novelty nDCG in the first ten. `--second-stage` also ranks the first 30 again by the plain reference of
tests/support/second_stage.py, W being its share of the score (0.6 is tried).
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.util
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search.trace import Candidate, Trace
from tests.support import second_stage

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.md$")


def judge_of(folder: Path) -> ModuleType:
    """The `score.py` of a set."""
    path = next(path for path in (folder / "score.py", folder.parent / "score.py") if path.is_file())
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def day_after(workspace: Path) -> float | None:
    """Noon of the day after the last log; None where no note has a day."""
    days = [found[1] for path in workspace.rglob("*.md") if (found := _DAY.search(path.name))]
    if not days:
        return None
    return (dt.datetime.fromisoformat(max(days)).replace(tzinfo=dt.UTC) + dt.timedelta(days=1.5)).timestamp()


def rows(hits: list[Candidate]) -> list[dict[str, Any]]:
    """Hits as the judge reads them."""
    return [{"path": h.chunk.path, "startLine": h.chunk.start_line, "endLine": h.last_line} for h in hits]


def first_of(trace: Trace, count: int) -> list[Candidate]:
    """The best candidates by their score, recalled or not."""
    return sorted([*trace.recalled, *trace.lost], key=lambda one: -one.score)[:count]


def measured(folder: Path, given: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """What the judge says of each answer, by the way of ranking."""
    judge = judge_of(folder)
    by_workspace: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        for line in list(file)[:: given.step]:
            query = json.loads(line)
            by_workspace[query["workspace"]].append(query)
    found: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as place:
        for name, queries in by_workspace.items():
            workspace = folder / "workspaces" / name
            options = Options(
                workspace=str(workspace),
                index=str(Path(place) / f"{name}.sqlite"),
                provider=given.provider,
                now=day_after(workspace),
                read_only=True,
                changes=(("profile", given.profile), ("query.maxResults", "20"), ("sync.watch", "false")),
            )
            with Engine.open(options) as engine:
                engine.indexer.sync()
                for query in queries:
                    evidence = engine.queries.gather(query["question"])
                    trace = engine.queries.rank(evidence, engine.plan.settings)
                    found[given.profile].append(_judged(judge, folder, query, rows(list(trace.recalled))))
                    if given.second_stage:
                        order = second_stage.reranked(first_of(trace, 30), evidence, given.second_stage)
                        kept = rows([*order, *first_of(trace, 40)[30:]])[:20]
                        found["second stage"].append(_judged(judge, folder, query, kept))
    return found


def _judged(judge: Any, folder: Path, query: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, float]:
    judge.BASE = str(folder.parent)
    answer: dict[str, float] = judge.judge(folder.name, query, results, 700)
    return answer


def main() -> None:
    """Print a line a set and way of ranking."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--profile", default="recommended")
    parser.add_argument("--provider", default="builtin")
    parser.add_argument("--step", type=int, default=1, help="every Nth question")
    parser.add_argument("--second-stage", type=float, default=0.0, metavar="W")
    given = parser.parse_args()
    for folder in given.sets:
        began = time.perf_counter()
        for way, answers in measured(folder.resolve(), given).items():
            recall, ndcg = (float(np.mean([one[key] for one in answers])) for key in ("recall@6", "ndcg@10"))
            print(f"{folder.name:<14}{way:<18}{len(answers):>6} questions  R@6 {recall:.3f}  nDCG@10 {ndcg:.3f}")
        print(f"{'':<14}{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
