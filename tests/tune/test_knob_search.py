"""`memory-tui tune`: a planted optimum is found, random labels give "no evidence", few labels give none either."""

import random

import pytest

from memory_tui.cli import explain
from memory_tui.tune import evaluate
from memory_tui.tune.evaluate import Case
from memory_tui.tune.judgments import Label, Query
from memory_tui.tune.knob_search import FEWEST, Better, NoEvidence, beyond_chance, tune
from tests.support.search import evidence, settings

OPENCLAW = "openclaw-2026.3"
WEIGHT = "query.hybrid.vectorWeight"
CHUNKS = 24


def saturating(score):
    """The bm25 whose text score is `score` in OpenClaw."""
    return -score / (1 - score)


def planted(number):
    """The right chunk is good in both ways, and the wrong ones are best in one: neither weight alone finds it."""
    rng = random.Random(number)

    def near(value):
        return value + rng.uniform(-0.03, 0.03)

    right = rng.randrange(CHUNKS)
    by_meaning = [row % 2 == 0 for row in range(CHUNKS)]
    cosines = [near(0.5) if row == right else near(0.9 if by_meaning[row] else 0.05) for row in range(CHUNKS)]
    bm25 = {
        row: saturating(near(0.6)) if row == right else saturating(near(0.9))
        for row in range(CHUNKS)
        if row == right or not by_meaning[row]
    }
    query = Query(f"planted {number}", (Label(f"memory/{right}.md", 2),))
    return Case.of(query, evidence(cosines, bm25))


def accidental(seed):
    """Questions whose right chunk was drawn by lot."""
    rng = random.Random(seed)
    cases = []
    for number in range(50):
        cosines = [rng.uniform(0.1, 0.9) for _ in range(CHUNKS)]
        bm25 = {row: -rng.uniform(0.1, 9) for row in rng.sample(range(CHUNKS), 10)}
        query = Query(f"{seed} {number}", (Label(f"memory/{rng.randrange(CHUNKS)}.md", 2),))
        cases.append(Case.of(query, evidence(cosines, bm25)))
    return cases


@pytest.mark.parametrize("weight", [0.95, 0.05])
def test_a_planted_optimum_is_found(weight):
    now = settings(OPENCLAW, vectorWeight=weight, textWeight=1 - weight, maxResults=3, candidateMultiplier=20)
    found = tune([planted(number) for number in range(40)], now)
    assert isinstance(found, Better)
    assert 0.36 < found.changes[WEIGHT] < 0.62  # type: ignore[operator]
    assert found.held_out.low > 0.3
    assert found.after["ndcg@10"] > found.before["ndcg@10"] + 0.4
    assert found.after["ndcg@10"] > 0.9
    assert set(found.changes) <= {WEIGHT, "query.hybrid.textWeight"}, "no knob is turned that does not earn it"


def test_random_labels_give_no_evidence():
    """Not even where a lower minScore finds more of anything; nor does what may be chance name no gain."""
    for seed in range(2):
        outcome = tune(accidental(seed), settings("openclaw-2026.2", minScore=0.7), seed=seed)
        assert isinstance(outcome, NoEvidence)
        assert outcome.reason in ("within chance", "nothing better")
        said = explain.verdict(outcome)
        assert "this needs" not in said


def test_neither_more_hits_nor_fewer_are_a_gain_beyond_chance():
    """Wide settings find more of anything; fewer hits hold fewer lines that are right for others."""
    cases = accidental(1)
    narrow = settings("openclaw-2026.2", minScore=0.8, vectorWeight=1, textWeight=0)
    wide = narrow.set("query.minScore", 0.0, "test")
    few, many = (
        evaluate.mean([evaluate.measure(case.query, case.hits(one)) for case in cases])["recall"]
        for one in (narrow, wide)
    )
    assert many > few + 0.05, "by itself it looks like a gain"
    more = beyond_chance(cases, narrow, wide, "recall", 1)
    assert more.low < 0 < more.high
    assert beyond_chance(cases, wide, narrow, "recall", 1).mean <= few - many + 1e-9 < 0


def test_few_labels_give_no_evidence_however_good():
    now = settings(OPENCLAW, vectorWeight=0.95, textWeight=0.05, maxResults=3)
    found = tune([planted(number) for number in range(FEWEST - 1)], now)
    assert found == NoEvidence("few labels", FEWEST - 1, FEWEST, {}, None)
