"""The second stage: its parts, its counterfactuals, and what is left without its table. `tests/golden` has numbers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.errors import ProviderError
from memory_tui.providers.builtin import StaticTable
from memory_tui.search import corpus, second_stage
from memory_tui.search.rank import Reranking, rank
from memory_tui.search.score import tuned
from memory_tui.search.second_stage import MEASURES, SecondStage
from memory_tui.search.trace import QuestionPart
from tests.support import search as made

TOLD = "router Router-Admin vlan omada_er605 deploys went deploying Mutter größe 路由器 喜欢读书 a — 😀"
LINES = st.lists(st.sampled_from(TOLD.split()), max_size=40).map(" ".join) | st.sampled_from("😀\u200b")
TEXTS = st.lists(LINES, min_size=1, max_size=6).map("\n".join)
ASKED = "router vlan deploy goes er605 mutter 路由 读书 unknown"
QUESTIONS = st.lists(st.sampled_from(ASKED.split()), max_size=4, unique=True)


def stage_of(query, words, left_out, texts, meaning=0.0):
    """Words alone where `meaning` is 0, over `texts` as they stand."""
    counts, texts = {"frequency": dict.fromkeys(words, 1), "chunks": 9}, dict(enumerate(texts))
    return SecondStage(query, words=words, left_out=left_out, reference=texts, meaning=meaning, **counts)


@settings(max_examples=40, deadline=None)
@example(["router", "vlan"], ["router\n\u200b", "vlan"], True)
@given(QUESTIONS, st.lists(TEXTS, min_size=1, max_size=8), st.booleans())
def test_a_text_is_measured_alone_as_it_is_among_others(words, texts, meaning):
    def measured(rows):
        stage = stage_of(" ".join(words), words, (), texts[:1], meaning)
        return stage.measure(rows, [texts[row] for row in rows])

    together = measured(range(len(texts)))
    for row in range(len(texts)):
        assert measured([row])[0] == pytest.approx(together[row], abs=2e-6)


def test_small_products_are_made_by_one_thread_whoever_imported_numpy_first(monkeypatch):
    library = corpus._openblas()
    if library is None:
        pytest.skip("numpy multiplies by another library here")
    before, inside = library.scipy_openblas_get_num_threads64_(), []

    def q(self):
        inside.append(library.scipy_openblas_get_num_threads64_())
        return self.__dict__["q"]

    stage = stage_of("router", ["router"], (), ["the router"], meaning=1.0)
    monkeypatch.setattr(StaticTable, "q", property(q), raising=False)
    try:
        library.scipy_openblas_set_num_threads64_(2)
        stage.measure([0], ["the router"])
        assert (inside[-1], library.scipy_openblas_get_num_threads64_()) == (1, 2)
    finally:
        library.scipy_openblas_set_num_threads64_(before)


@pytest.mark.skipif(not Path("/proc/self/task").exists() or os.cpu_count() == 1, reason="threads are not counted here")
def test_numpy_begins_with_one_thread_whatever_module_imports_it():
    program = "import memory_tui.cli.admin, numpy, os; print(len(os.listdir('/proc/self/task')))"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    assert subprocess.check_output([sys.executable, "-c", program], env=environment, text=True) == "1\n"


def test_a_word_that_is_not_searched_tells_one_line_from_another_and_finds_nothing():
    texts = ["he wants tea\nhello there", "she wants tea\nhello there", "she sings\nhello there"]
    asked = ["wants", "tea"], ["what", "does", "she"]
    of_lines = [one.name for one in MEASURES].index("line words")
    with_she = stage_of("what tea does she want", *asked, texts)
    without = stage_of("what tea does she want", asked[0], [], texts)
    his, hers, neither = with_she.measure(range(3), texts)[:, of_lines].tolist()
    assert hers > his > neither > 0
    assert without.measure(range(3), texts)[:, of_lines].tolist() == pytest.approx([his, his, 0.0])
    assert with_she.signals == without.signals, "whether notes hold what was asked is told by what was searched"


def test_a_heading_answers_only_where_no_other_line_does():
    texts = ["# House\n\n## Boiler\n- Cleaned.\n- Came for the service.\n## Cat\n- The service fed it", "## Boiler"]
    stage = stage_of("when was the boiler service", ["boiler", "service"], [], texts)
    stage.measure(range(2), texts)
    assert [stage.places(row, text)[0] for row, text in enumerate(texts)] == [4, 0]


def one_note(texts, cosines, bm25, words):
    """Chunks of two notes, some of which touch."""
    found = made.evidence(cosines, bm25, texts=texts)
    plan = replace(found.recommended.plan, words=words)
    side = replace(found.recommended, plan=plan, frequency=dict.fromkeys(words, 3))
    numbers = np.arange(len(texts))
    refs = replace(found.refs, file_of=numbers % 2, first_lines=1 + numbers * 4, last_lines=5 + numbers * 4)
    question = replace(found.question, query=" ".join(words))
    return replace(found, question=question, recommended=side, refs=refs)


def every(trace):
    return [*trace.recalled, *trace.lost]


@st.composite
def searches(draw):
    count = draw(st.integers(1, 40))
    texts = [f"{draw(TEXTS)} {number % 7}" for number in range(count)]
    cosines = draw(st.lists(st.floats(-0.2, 1), min_size=count, max_size=count))
    matched = draw(st.sets(st.integers(0, count - 1)))
    bm25 = {row: -draw(st.floats(0.1, 9)) for row in matched}
    knobs = {
        "secondStage.weight": draw(st.sampled_from([0.0, 0.3, 0.6, 1.0])),
        "secondStage.neighbour": draw(st.sampled_from([0.0, 0.1, 0.5])),
        "hybrid.vectorWeight": draw(st.sampled_from([0.4, 0.9])),
        "maxResults": draw(st.integers(1, 50)),
    }
    return one_note(texts, cosines, bm25, tuple(draw(QUESTIONS))), made.settings("recommended", **knobs)


@settings(max_examples=25, deadline=None)
@given(searches())
def test_counterfactuals_rank_by_the_same_stage(given_):
    evidence, chosen = given_
    knobs = [chosen.set("secondStage.weight", value / 10, "test") for value in range(11)]
    knobs += [chosen.set("secondStage.neighbour", value / 10, "test") for value in range(6)]
    replay = Reranking(evidence)
    for one, rows in zip(knobs, replay.recalled([*map(tuned, knobs)]), strict=True):
        assert [hit.chunk.rowid for hit in rank(evidence, one).recalled] == list(rows)


@settings(max_examples=15, deadline=None)
@given(searches(), st.integers(2, 4), st.sampled_from([0.0, 0.2, 0.35]), st.booleans())
def test_the_best_of_each_part_comes_before_all_others(given_, count, floor, varied):
    words = ("router", "vlan", "deploy", "mutter")[:count]
    side = given_[0].recommended
    plan = replace(side.plan, words=words, parts=tuple(QuestionPart(word, (word,)) for word in words))
    question = replace(given_[0].question, query=" ".join(words))
    evidence = replace(given_[0], question=question, recommended=replace(side, plan=plan))
    chosen = given_[1].update({"query.minScore": floor, "query.hybrid.mmr.enabled": varied}, "test")
    tries = [chosen.set("query.maxResults", most, "test") for most in (1, 3, 50)]
    traces = [rank(evidence, one) for one in tries]
    best: dict[str, float] = {}
    for hit in traces[-1].recalled:
        if hit.second is not None and hit.second.measures:
            best[hit.second.asked] = max(hit.score, best.get(hit.second.asked, 0.0))
    leading = [hit for hit in traces[-1].recalled if hit.second is not None and hit.second.leads]
    assert {hit.second.asked: hit.score for hit in leading if hit.second} == best
    assert list(traces[-1].recalled[: len(leading)]) == leading
    for trace, rows in zip(traces, Reranking(evidence).recalled([*map(tuned, tries)]), strict=True):
        assert [hit.chunk.rowid for hit in trace.recalled] == list(rows)
    assert {hit.chunk: hit.score for hit in every(traces[0])} == {hit.chunk: hit.score for hit in every(traces[-1])}


def test_the_line_that_answers_beats_twenty_that_do_not():
    noise = "\n".join(f"- bread and garden number {number}" for number in range(20))
    texts = [f"{noise}\n- the router password is kept in the blue book", "router\nrouter\npassword\n" + noise]
    found = one_note(texts, [0.5, 0.5], {0: -2.0, 1: -2.2}, ("router", "password", "book"))
    hits = rank(found, made.settings("recommended")).recalled
    assert hits[0].chunk.rowid == 0
    assert hits[0].line == hits[0].chunk.start_line + 20


def test_a_table_that_cannot_be_read_leaves_words_and_says_so(monkeypatch):
    def broken():
        raise ProviderError("The table cannot be read.", "")

    monkeypatch.setattr(second_stage, "static_table", broken)
    trace = rank(one_note(["router", "vlan"], [0.5, 0.4], {0: -1.0}, ("router",)), made.settings("recommended"))
    assert "second_stage" in [notice.code for notice in trace.notices]
    names = {one.name for one in trace.recalled[0].second.measures}
    assert names == {"line words", "letters", "like words"}
