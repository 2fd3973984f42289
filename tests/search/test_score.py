"""Ranking: the formulas with documented numbers, gates and verdicts, and what holds for any evidence and settings."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.search.corpus import exact_cosines, products
from memory_tui.search.excerpts import window
from memory_tui.search.rank import Likeness, mmr, rank
from memory_tui.sentences import why_empty
from tests.support.search import evidence, settings


def jaccard(a, b):
    return len(a & b) / len(a | b) if a or b else 1.0


def reference_mmr(scores, tokens, lam):
    """The published greedy loop, written as plainly as possible."""
    low, high = min(scores), max(scores)
    relevance = [(s - low) / (high - low) if high > low else 1.0 for s in scores]
    chosen: list[int] = []
    while len(chosen) < len(scores):
        best, best_value = -1, -math.inf
        for i in range(len(scores)):
            if i in chosen:
                continue
            similar = max((jaccard(tokens[i], tokens[j]) for j in chosen), default=0.0)
            value = lam * relevance[i] - (1 - lam) * similar
            if value > best_value or (value == best_value and scores[i] > scores[best]):
                best, best_value = i, value
        chosen.append(best)
    return chosen


@given(
    st.lists(st.tuples(st.integers(0, 20), st.frozensets(st.sampled_from("abcdef"))), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)
def test_mmr_equals_the_plain_greedy_loop(items, lam):
    scores = [score / 20 for score, _ in items]
    tokens = [words for _, words in items]
    fast = list(mmr(scores, Likeness(tokens).row, lam))
    assert sorted(c.item for c in fast) == list(range(len(items)))
    plain = reference_mmr(scores, tokens, lam)
    # Sums of floats in another order can turn a tie; then both orders must be worth the same at the first difference.
    for place, (a, b) in enumerate(zip([c.item for c in fast], plain, strict=True)):
        if a != b:
            before = plain[:place]
            worth = [
                lam * fast[[c.item for c in fast].index(i)].relevance
                - (1 - lam) * max((jaccard(tokens[i], tokens[j]) for j in before), default=0.0)
                for i in (a, b)
            ]
            assert worth[0] == pytest.approx(worth[1], abs=1e-9)
            break


@given(st.integers(0, 40), st.sampled_from([1, 2, 7, 32, 256]), st.integers(0, 99))
def test_a_cosine_is_summed_in_the_order_of_its_numbers(rows, dims, seed):
    """Number by number in single precision, as sqlite-vec does, however many vectors are compared."""
    some = np.random.default_rng(seed)
    vectors, query = some.standard_normal((rows, dims), dtype=np.float32), some.standard_normal(dims, dtype=np.float32)

    def total(numbers):
        return float(np.add.accumulate(numbers, dtype=np.float32)[-1])

    for found, own in zip(exact_cosines(vectors, query).tolist(), vectors, strict=True):
        lengths = math.sqrt(total(own * own)) * math.sqrt(total(query * query))
        assert found == 1.0 - float(np.float32(1.0 - total(own * query) / lengths))


def test_a_product_is_the_same_to_the_digit_wherever_its_row_stands():
    generator = np.random.default_rng(7)
    for dims in (8, 256, 384):
        rows = generator.standard_normal((23, dims)).astype(np.float32)
        vector = generator.standard_normal(dims).astype(np.float32)
        whole = products(rows, vector)
        for first in range(9):
            for last in range(first, 24):
                assert (products(rows[first:last].copy(), vector) == whole[first:last]).all()
        many = np.concatenate([rows] * 200)
        assert (products(many, vector) == np.concatenate([whole] * 200)).all()


OPENCLAW = "openclaw-2026.3"


def test_cosines_of_the_built_in_table_are_lifted_where_they_mostly_stand_alone_against_min_score():
    found = evidence([0.8, 0.1, 0.0], {0: -1.0})
    ours = replace(found, provider="builtin")
    for profile, floor in ((OPENCLAW, 0.35), ("openclaw-2026.2", 0.35), ("openclaw-2026.9", 0.0)):
        for asked, own in ((ours, floor), (found, 0.0)):
            trace = rank(asked, settings(profile, minScore=0))
            scores = {c.chunk.rowid: c.vector for c in (*trace.recalled, *trace.lost)}
            assert [scores[row] for row in (0, 1)] == pytest.approx([own + (1 - own) * cosine for cosine in (0.8, 0.1)])
            assert scores.get(2, 0.0) == 0.0, "a vector of zeros is like nothing"
    assert rank(ours, settings("recommended")).recalled == rank(found, settings("recommended")).recalled


def test_the_relaxed_floor_admits_keyword_hits_when_nothing_passes():
    # Text score 1 times weight 0.3, plus a little vector: over 0.3, under 0.35.
    trace = rank(evidence([0.05, 0.4], {0: -99.0}), settings(OPENCLAW))
    assert [c.chunk.rowid for c in trace.recalled] == [0]
    assert trace.recalled[0].verdict.fields == {"place": 1, "relaxed": True, "rescued": False, "kept_back": False}
    assert trace.floor == pytest.approx(0.3)
    assert rank(evidence([0.05, 0.4], {0: -99.0}), settings("openclaw-2026.2", minScore=0.36)).recalled == ()


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=4),
    st.floats(0, 1),
    st.floats(0, 0.5),
    st.floats(0, 1),
    st.sets(st.integers(0, 3)),
)
def test_scores_of_recommended_run_from_0_to_1(cosines, weight, recency, boost, named):
    chosen = settings("recommended", **{"secondStage.weight": weight, "recency.weight": recency, "dateBoost": boost})
    found = rank(evidence(cosines, {0: -3.0}, ages=[0.0] * len(cosines), named=frozenset(named)), chosen)
    every = [*found.recalled, *found.lost]
    assert all(0 <= one.score <= 1 + 1e-9 for one in every)
    for one in every:
        second = 0.0 if one.second is None else one.second.points - one.second.lost
        parts = one.first_share * one.hybrid + second + one.age_points + one.date_points
        assert one.score == pytest.approx(parts)


def test_mmr_names_the_twin():
    texts = ["router vlan admin", "router vlan admin", "coffee machine"]
    both = {"maxResults": 2, "mmr.enabled": True, "mmr.lambda": 0.5}
    trace = rank(evidence([0.9, 0.89, 0.8], {}, texts=texts), settings(OPENCLAW, **both))
    assert [c.chunk.rowid for c in trace.recalled] == [0, 2]
    verdict = trace.lost[0].verdict
    assert verdict.kind == "displaced_by_mmr"
    assert verdict.fields["twin"].rowid == 0
    assert verdict.fields["similarity"] == 1.0


def test_hits_without_any_word_of_the_question_are_said_to_be_so():
    def said(trace):
        return "meaning_alone" in {notice.code for notice in trace.notices}

    assert said(rank(evidence([0.3, 0.2], {}), settings("recommended")))
    assert not said(rank(evidence([0.3, 0.2], {1: -1.0}), settings("recommended")))
    assert not said(rank(evidence([0.9], {}), settings(OPENCLAW))), "there all words have to match"


any_evidence = st.integers(1, 12).flatmap(
    lambda n: st.builds(
        evidence,
        st.lists(st.floats(-1, 1), min_size=n, max_size=n),
        st.dictionaries(st.integers(0, n - 1), st.floats(-20, -1e-6)),
        ages=st.lists(st.one_of(st.just(math.nan), st.integers(-10, 1000)), min_size=n, max_size=n),
        texts=st.lists(st.text("ab ", max_size=8), min_size=n, max_size=n),
        named=st.frozensets(st.integers(0, n - 1)),
    )
)
KNOBS = {
    **dict.fromkeys(("vectorWeight", "textWeight", "minScore", "mmr.lambda"), st.floats(0, 1)),
    **dict.fromkeys(("temporalDecay.enabled", "mmr.enabled", "hybrid.enabled"), st.booleans()),
    **{"maxResults": st.integers(1, 8), "halfLifeDays": st.integers(1, 400)},
}
any_profile = st.sampled_from(["recommended", OPENCLAW, "openclaw-2026.2"])
any_settings = st.builds(lambda profile, knobs: settings(profile, **knobs), any_profile, st.fixed_dictionaries(KNOBS))


def every(trace):
    return [*trace.recalled, *trace.lost]


@given(any_evidence, any_settings)
def test_every_candidate_has_one_verdict_that_holds(found, chosen):
    trace = rank(found, chosen)
    limit = chosen.whole("query.maxResults")
    rows = [c.chunk.rowid for c in every(trace)]
    assert len(rows) == len(set(rows)) == trace.funnel["candidates"]
    assert len(trace.recalled) == trace.funnel["recalled"] <= limit
    assert [c.verdict.fields["place"] for c in trace.recalled] == list(range(1, len(trace.recalled) + 1))
    for candidate in trace.lost:
        verdict = candidate.verdict
        assert verdict.kind != "recalled"
        if verdict.kind in ("below_min_score", "lowered_by_decay"):
            assert candidate.score < verdict.fields["floor"]
            assert verdict.fields["margin"] == pytest.approx(verdict.fields["floor"] - candidate.score)
        else:
            assert candidate.score >= trace.floor
            assert verdict.fields["place"] > limit
        assert verdict.message
        assert verdict.short
    assert (trace.empty is None) == bool(trace.recalled)
    if trace.empty is not None:
        assert all(why_empty(trace.empty, trace.rules.profile.name))


@pytest.mark.parametrize(
    "before",
    ["😀" * 650 + " ", "😀" * 480 + " ", "x" * 690 + " ", "é😀 " * 300, "summer days " * 90],
    ids=["wide", "a wide line", "narrow", "mixed", "words"],
)
@pytest.mark.parametrize("after", ["", " 😀y" * 400], ids=["nothing", "much"])
def test_a_snippet_holds_the_words_it_is_made_around_whatever_stands_beside_them(before, after):
    shown = window(f"{before}the kestrel wifi is on channel eleven{after}", ["kestrel", "channel"])
    assert "kestrel wifi is on channel" in shown
    start = f"{before}the kestrel".rindex(shown.partition("kestrel")[0] + "kestrel")
    assert start == 0 or before[start - 1].isspace() or not before[start].isalnum() or not before[start - 1].isalnum()
    assert len(shown) <= 700
