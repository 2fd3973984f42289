"""The work of a question grows with its length and with the notes, not with their product: counted, never timed."""

import gc

import numpy as np
import pytest

from memory_tui import tokens
from memory_tui.explain.counterfactuals import flips
from memory_tui.index.store import FullText
from memory_tui.search import keyword
from tests.support.workspace import options_in, put_all, synced


@pytest.fixture
def engine(tmp_path):
    notes = {f"memory/n{number}.md": f"deploy {number} rollback of x{number} " * (number + 1) for number in range(12)}
    notes["memory/line.md"] = "deploy the rollback a-a-a of service " * 4_000
    notes["MEMORY.md"] = "# Facts\n- deploy, then rollback; the deploy took long\n- rollback of a deploy\n"
    put_all(tmp_path / "notes", notes)
    with synced(options_in(tmp_path, "sync.watch=false", provider="scripted")) as opened:
        yield opened


@pytest.fixture
def asked(monkeypatch):
    """The words that full-text search is asked for, those that have to stand together as one list."""
    seen: list[list[str]] = []
    for name, ask in (("match", FullText.match), ("places", FullText.places)):

        def counted(self, words, ask=ask):
            seen.append([words] if isinstance(words, str) else list(words))
            return ask(self, words)

        monkeypatch.setattr(FullText, name, counted)
    return seen


@pytest.mark.parametrize(
    "question",
    ["deploy " * 4_000, "deploy rollback " * 2_000, "a-" * 20_000, "喜欢" * 8_000],
    ids=lambda text: text[:8],
)
def test_a_question_that_repeats_its_words_asks_for_each_once(engine, asked, question):
    engine.search.search(question)
    assert asked
    assert max(map(len, asked)) <= tokens.MOST_ALTERNATIVES
    assert sum(len(word) for words in asked for word in words) < 20_000


def test_repeats_are_added_up_as_fts5_would(engine, monkeypatch):
    question = "deploy rollback deploy deploy of rollback deploy"
    exact = engine.search.gather(question).openclaw.postings
    monkeypatch.setattr(keyword, "_MOST_REPEATED", 2)
    summed = engine.search.gather(question).openclaw.postings
    assert len(exact.rows) > 5
    assert sorted(exact.rows) == sorted(summed.rows)
    by_row = dict(zip(summed.rows.tolist(), summed.bm25.tolist(), strict=True))
    np.testing.assert_allclose([by_row[row] for row in exact.rows.tolist()], exact.bm25, rtol=1e-9)
    assert (np.diff(summed.bm25) >= 0).all()


def test_a_question_of_very_many_words_says_that_it_was_cut(engine, asked):
    many = " ".join(f"w{number}" for number in range(3_000))
    trace = engine.search.search(f"{many} x11 x7")
    assert [notice.code for notice in trace.notices if "3,002 different words" in notice.message] == ["long_question"]
    assert max(map(len, asked)) <= tokens.MOST_WORDS
    assert not [notice for notice in engine.search.search("deploy " * 4_000).notices if notice.code == "long_question"]


def test_a_question_that_was_explained_is_gone_when_nobody_holds_it(engine):
    settings = engine.plan.settings

    def explain(question):
        engine.search.search(question, settings)
        evidence = engine.search.gather(question)
        engine.search.rank(evidence, settings)
        flips(evidence, settings, int(evidence.nearest[-1]), engine.plan.with_profile)

    explain("deploy of service")
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        explain("rollback of x3")
        gc.collect()
        arrays = [found for one in gc.garbage for found in gc.get_referents(one) if isinstance(found, np.ndarray)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not arrays, "they are in circles, which stay until Python looks for garbage"
