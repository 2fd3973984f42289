"""Recall of profiles on labelled sets: `python tests/bench/recall.py SET… [--profile P] [--step N] [--set KEY=VALUE]`.

A set is a folder with `workspaces/` and `queries.jsonl`. Measured are recall in the first six
and novelty nDCG in the first ten, of the profile or, with `--plain`, of bm25 alone. With `--foreign SET…` each
workspace is also asked questions of those sets, which it does not answer: how many answers are doubted (not "found"),
and how many are "nothing". `--provider P --config FILE` measures another provider than the built-in table.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search.trace import Trace
from memory_tui.settings import Settings
from memory_tui.tune.evaluate import Scores, measure, plain_words
from memory_tui.tune.judgments import Label, Query

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.md$")


def day_after(workspace: Path) -> float | None:
    """Noon of the day after the last log; None where no note has a day."""
    days = [found[1] for path in workspace.rglob("*.md") if (found := _DAY.search(path.name))]
    if not days:
        return None
    return (dt.datetime.fromisoformat(max(days)).replace(tzinfo=dt.UTC) + dt.timedelta(days=1.5)).timestamp()


def questions(folder: Path, step: int) -> list[dict[str, Any]]:
    """Every `step`-th question of a set."""
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in list(file)[::step]]


@dataclass
class Found:
    """The metrics of each answer, and the levels of answers to own and to foreign questions."""

    answers: list[Scores] = field(default_factory=list)
    own: Counter[str] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)


def measured(folder: Path, given: argparse.Namespace) -> Found:
    """All questions of a set, asked in its workspaces."""
    found = Found()
    by_workspace: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for query in questions(folder, given.step):
        by_workspace[query["workspace"]].append(query)
    foreign = [query["question"] for other in given.foreign for query in questions(other.resolve(), 1)]
    with tempfile.TemporaryDirectory() as place:
        for name, queries in by_workspace.items():
            workspace = folder / "workspaces" / name
            options = Options(
                workspace=str(workspace),
                index=str(Path(place) / f"{name}.sqlite"),
                provider=given.provider,
                config=given.config,
                now=day_after(workspace),
                read_only=True,
                changes=(
                    ("profile", given.profile),
                    ("query.maxResults", "20"),
                    ("sync.watch", "false"),
                    *(tuple(one.split("=", 1)) for one in given.set),
                ),
            )
            with Engine.open(options) as engine:
                if error := engine.index.sync().error:
                    sys.exit(f"{given.provider} made no vectors: {error}")

                settings = plain_words(engine.plan.settings) if given.plain else engine.plan.settings

                def ask(question: str, engine: Engine = engine, settings: Settings = settings) -> Trace:
                    return engine.search.rank(engine.search.gather(question), settings)

                for query in queries:
                    trace = ask(query["question"])
                    found.answers.append(judged(query, trace))
                    found.own[level_of(trace)] += 1
                for question in random.Random(name).sample(foreign, min(len(foreign), FOREIGN)):
                    found.foreign[level_of(ask(question))] += 1
    return found


FOREIGN = 40
"""Questions of other sets that a workspace is asked."""


def level_of(trace: Trace) -> str:
    """The level of an answer, as the bench prints it."""
    return trace.level.level if trace.level else "none"


def judged(query: Mapping[str, Any], trace: Trace) -> Scores:
    """The metrics of an answer, by the lines that the set names; what is blank at a chunk's end holds none of them."""
    labels = tuple(Label(one["path"], one["line"]) for one in query["evidence"])
    return measure(Query(query["question"], labels), [hit.chunk for hit in trace.recalled])


def main() -> None:
    """Print a line a set and way of ranking."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--profile", default="recommended")
    parser.add_argument("--provider", default="builtin")
    parser.add_argument("--config", help="the openclaw.json that says more about the provider")
    parser.add_argument("--plain", action="store_true", help="bm25 alone")
    parser.add_argument("--step", type=int, default=1, help="every Nth question")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--foreign", nargs="*", type=Path, default=[], help="sets with questions that are not answered")
    given = parser.parse_args()
    for folder in given.sets:
        began = time.perf_counter()
        found = measured(folder.resolve(), given)
        recall, ndcg = (float(np.mean([one[key] for one in found.answers])) for key in ("recall@6", "ndcg@10"))
        print(f"{folder.name:<14}{len(found.answers):>6} questions  R@6 {recall:.3f}  nDCG@10 {ndcg:.3f}")
        for name, levels in (("own", found.own), ("foreign", found.foreign)):
            if total := levels.total():
                shares = (1 - levels["found"] / total, levels["nothing holds these words"] / total)
                print(f"{'':<14}{total:>6} {name:<9}  doubted {shares[0]:.3f}  nothing {shares[1]:.3f}")
        print(f"{'':<14}{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
