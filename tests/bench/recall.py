"""Recall of profiles on labelled sets: `python -m tests.bench.recall SET… [--profile P]`.

A set is a folder with `workspaces/` and `queries.jsonl`. Measured are recall in the first six and novelty nDCG in the
first ten. With `--foreign SET…` each workspace is also asked
questions of those sets, which it does not answer: how many answers are doubted (not "found"), and how many are
"nothing". With `--halves` the notes are cut in two, and the questions of one half are foreign to the other. `--record`
writes the figures into recall.json, from which the manual has its table. `--provider P --config FILE` measures another
provider than the built-in table.
"""

import argparse
import datetime as dt
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search.rank import Trace
from memory_tui.tune import Label, Query, Scores, measure

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.md$")


def day_after(workspace: Path) -> float | None:
    """Noon of the day after the last log; None where no note has a day."""
    days = [found[1] for path in workspace.rglob("*.md") if (found := _DAY.search(path.name))]
    if not days:
        return None
    return (dt.datetime.fromisoformat(max(days)).replace(tzinfo=dt.UTC) + dt.timedelta(days=1.5)).timestamp()


def questions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]


@dataclass
class Found:
    """The metrics of each answer, and the levels of answers to own and to foreign questions."""

    answers: list[Scores] = field(default_factory=list)
    own: Counter[str] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)


def asked_in(
    workspace: Path,
    place: str,
    given: argparse.Namespace,
    own: Sequence[dict[str, Any]],
    foreign: Sequence[str],
    found: Found,
) -> None:
    """Ask in `workspace`, whose index is kept in `place`, and count into `found`."""
    options = Options(
        workspace=str(workspace),
        index=str(Path(place) / f"{workspace.name}.sqlite"),
        provider=given.provider,
        config=given.config,
        now=day_after(workspace),
        read_only=True,
        changes=(("profile", given.profile), ("query.maxResults", "20"), ("sync.watch", "false")),
    )
    with Engine.open(options) as engine:
        if error := engine.index.sync().error:
            sys.exit(f"{given.provider} made no vectors: {error}")
        settings = engine.plan.settings
        for query in own:
            trace = engine.search.rank(engine.search.gather(query["question"]), settings)
            found.answers.append(judged(query, trace))
            found.own[level_of(trace)] += 1
        for question in foreign:
            found.foreign[level_of(engine.search.rank(engine.search.gather(question), settings))] += 1


def measured(folder: Path, given: argparse.Namespace) -> Found:
    """All questions of a set, asked in its workspaces."""
    found = Found()
    by_workspace: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for query in questions(folder):
        by_workspace[query["workspace"]].append(query)
    foreign = [query["question"] for other in given.foreign for query in questions(other.resolve())]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        for name, queries in by_workspace.items():
            others = random.Random(name).sample(foreign, min(len(foreign), FOREIGN))
            asked_in(folder / "workspaces" / name, place, given, queries, others, found)
    return found


def halved(folder: Path, given: argparse.Namespace) -> Found:
    """Questions of each half of the notes of a set, asked in that half and in the other."""
    found, every = Found(), questions(folder)
    name = every[0]["workspace"]
    every = [query for query in every if query["workspace"] == name]
    notes = sorted({query["evidence"][0]["path"] for query in every})
    for half in (set(notes[: len(notes) // 2]), set(notes[len(notes) // 2 :])):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            workspace = Path(place) / name
            for path in half:
                (workspace / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / "workspaces" / name / path, workspace / path)
            own, other = (
                [query for query in every if (query["evidence"][0]["path"] in half) is inside]
                for inside in (True, False)
            )
            own, other = (random.Random(name).sample(part, min(len(part), HALF)) for part in (own, other))
            asked_in(workspace, place, given, own, [query["question"] for query in other], found)
    return found


HALF = 50
"""Questions of each half that are asked in either."""
RECORD = Path(__file__).with_name("recall.json")
Figures = dict[str, Any]


def figures(found: Found) -> Figures:
    """Return what is recorded of a set."""
    recall, ndcg = (float(np.mean([each[key] for each in found.answers])) for key in ("recall@6", "ndcg@10"))
    own, foreign = found.own.total(), found.foreign.total()
    # The profiles of OpenClaw tell no level.
    levels = {} if found.own["none"] == own else {"doubted": round(1 - found.own["found"] / own, 4)}
    if foreign:
        levels |= {"foreign": foreign, "caught": round(1 - found.foreign["found"] / foreign, 4)}
    return {"questions": len(found.answers), "recall@6": round(recall, 4), "ndcg@10": round(ndcg, 4), **levels}


def table(record: Mapping[str, Figures]) -> str:
    """Return the recorded figures as the table of the manual."""
    rows = ["| Set | Questions | R@6 | nDCG@10 | Right answers doubted | Foreign questions caught |", f"|{'---|' * 6}"]
    for name, row in sorted(record.items()):
        caught = f"{row['caught']:.0%} of {row['foreign']}" if "caught" in row else ""
        numbers = f"{row['questions']} | {row['recall@6']:.3f} | {row['ndcg@10']:.3f}"
        doubted = f"{row['doubted']:.0%}" if "doubted" in row else ""
        rows.append(f"| {name} | {numbers} | {doubted} | {caught} |")
    return "\n".join(rows)


FOREIGN = 40
"""Questions of other sets that a workspace is asked."""


def level_of(trace: Trace) -> str:
    return trace.level.level if trace.level else "none"


def judged(query: Mapping[str, Any], trace: Trace) -> Scores:
    """The metrics of an answer, by the lines that the set names; what is blank at a chunk's end holds none of them."""
    labels = tuple(Label(one["path"], one["line"]) for one in query["evidence"])
    return measure(Query(query["question"], labels), [hit.chunk for hit in trace.recalled])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--profile", default="recommended")
    parser.add_argument("--provider", default="builtin")
    parser.add_argument("--config", help="the openclaw.json that says more about the provider")
    parser.add_argument("--foreign", nargs="*", type=Path, default=[], help="sets with questions that are not answered")
    parser.add_argument("--halves", action="store_true", help="ask each half of the notes what the other answers")
    parser.add_argument("--record", default="", metavar="NAME", help="what the table calls this set")
    given = parser.parse_args()
    for folder in given.sets:
        began = time.perf_counter()
        row = figures((halved if given.halves else measured)(folder.resolve(), given))
        print(f"{folder.name:<14} {row}  {time.perf_counter() - began:.0f} s", flush=True)
        if given.record:
            record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
            RECORD.write_text(json.dumps(record | {given.record: row}, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
