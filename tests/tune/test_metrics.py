"""Metrics: worked by hand, and the same as the scorer that lies beside the shared questions."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from types import ModuleType

import pytest

from memory_tui.search.trace import ChunkRef
from memory_tui.tune import evaluate
from memory_tui.tune.evaluate import gain, mean, measure
from memory_tui.tune.judgments import Label, Query

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def hit(path: str, start: int, end: int) -> ChunkRef:
    return ChunkRef(0, "", path, "memory", start, end)


A, B, C = hit("a.md", 1, 9), hit("b.md", 1, 9), hit("c.md", 1, 9)


def test_by_hand() -> None:
    query = Query("q", (Label("a.md", 3), Label("b.md", 3), Label("b.md", 4), Label("c.md", 1, 0)))
    found = measure(query, [C, A, B])
    assert found["recall@1"] == 0
    assert found["recall@3"] == found["recall"] == 1
    assert found["mrr@10"] == 0.5
    gained = 1 / 1.584962500721156 + 2 / 2
    assert found["ndcg@10"] == pytest.approx(gained / (1 + 1 / 1.584962500721156 + 1 / 2))
    assert (found["noise"], found["wrong"]) == (1, 1)


def test_grades_count_and_novelty_is_what_counts() -> None:
    query = Query("q", (Label("a.md", 3, 2), Label("b.md", 3, 1)))
    best, worse = measure(query, [A, B]), measure(query, [B, A])
    assert best["ndcg@10"] == 1
    assert worse["ndcg@10"] < 1
    assert measure(query, [A, hit("a.md", 2, 5), B])["ndcg@10"] < 1, "the same line twice is no news"


def test_a_question_that_the_notes_cannot_answer_wants_an_empty_answer() -> None:
    query = Query("q", unanswerable=True)
    assert measure(query, [])["ndcg@10"] == 1
    assert measure(query, [])["noise"] == 0
    assert measure(query, [A, B])["recall"] == 0
    assert measure(query, [A, B])["noise"] == 2


@pytest.fixture(scope="module")
def judge(memorybank: Path) -> ModuleType:
    """The scorer that lies beside the questions."""
    spec = importlib.util.spec_from_file_location("judge", memorybank / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_numbers_are_those_of_the_scorer(judge: ModuleType) -> None:
    rng = random.Random(3)
    compared = 0
    for asked in judge.load_queries("en"):
        evidence = [*asked["evidence"], {"path": asked["evidence"][0]["path"], "line": rng.randint(1, 30)}]
        answers = [
            hit(rng.choice(evidence)["path"], start, start + rng.randint(0, 12))
            for start in rng.choices(range(1, 25), k=rng.randint(0, 25))
        ]
        answers += [hit("memory/other.md", 1, 9)] * rng.randint(0, 4)
        rng.shuffle(answers)
        theirs = judge.judge(
            "en",
            {**asked, "evidence": evidence},
            [{"path": ref.path, "startLine": ref.start_line, "endLine": ref.end_line} for ref in answers],
            700,
        )
        query = Query(asked["question"], tuple(Label(e["path"], e["line"]) for e in evidence))
        ours = measure(Query(query.text, tuple(dict.fromkeys(query.labels))), answers)
        for name in ("recall@1", "recall@6", "recall@10", "recall@20", "mrr@10", "ndcg@10"):
            assert ours[name] == pytest.approx(theirs[name], abs=1e-12), (asked["id"], name)
            compared += ours[name] > 0
    assert compared > 100


def test_the_mean_is_over_questions() -> None:
    one, two = measure(Query("q", (Label("a.md", 1),)), [A]), measure(Query("q", (Label("a.md", 1),)), [B])
    assert mean([one, two])["recall"] == 0.5
    assert measure(Query("q", (Label("a.md", 1),)), []) == dict.fromkeys(evaluate.NAMES, 0.0), "an empty answer"
    assert mean([]) == {}


def test_the_interval_of_a_gain() -> None:
    rng = random.Random(1)
    noise = [rng.random() for _ in range(60)]
    same = gain(noise, rng.sample(noise, 60))
    assert not same.sure
    assert same.low < 0 < same.high
    better = gain(noise, [value + 0.2 + rng.random() / 10 for value in noise])
    assert better.sure
    assert 0.2 < better.low < better.mean < better.high < 0.3
    assert gain([], []).sure is False
    assert gain(noise, noise) == evaluate.Gain(0.0, 0.0, 0.0)
    json.dumps(better.mean)
