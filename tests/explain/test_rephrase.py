"""Words of a question: those that would recall a chunk, and those that a text is marked with."""

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui import demo
from memory_tui.explain import hit_text, wording
from memory_tui.explain.counterfactuals import remedies
from memory_tui.explain.wording import MatchedWords
from memory_tui.search.trace import QueryPlan
from tests.support.workspace import options_in, synced

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    out = tmp_path_factory.mktemp("rephrase")
    demo.materialize(out / "notes", dt.date(2026, 11, 20))
    with synced(options_in(out, "sync.onSearch=off", now=NOW)) as engine:
        yield engine


def other_questions(engine, answer, asked):
    """The questions that recall what speaks in `answer`; those that are tried are added to `asked`."""
    return remedies(answer, engine.plan.with_profile, lambda query: asked.append(query) or engine.search.gather(query))


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3"])
def test_every_suggestion_recalls_the_chunk(engine, profile):
    settings = engine.plan.with_profile(profile)
    evidence = engine.search.gather("How is the VLAN on the Omada router set up?")
    suggested = 0
    for path in ("memory/people.md", "memory/读书笔记.md", "memory/house.md", "memory/2026-09-20.md"):
        answer = engine.search.why(evidence, path, None, settings)
        assert not answer.recalled
        for found in other_questions(engine, answer, []).rephrased:
            suggested += 1
            trace = engine.search.search(found.query, settings)
            assert trace.recalled[found.place - 1].chunk == answer.best.chunk
            assert (found.word in answer.best.text.lower()) if found.word else found.left_out
            assert wording.rephrased(found)
    assert suggested


def test_a_recalled_chunk_needs_no_other_question(engine):
    evidence = engine.search.gather("omada vlan")
    top = engine.search.rank(evidence, engine.plan.settings).recalled[0].chunk
    asked: list[str] = []
    answer = engine.search.why(evidence, top.path, top.start_line)
    assert answer.recalled
    assert other_questions(engine, answer, asked).rephrased == ()
    assert asked == []


def test_where_all_words_are_needed_the_missing_ones_can_be_left_out(engine):
    settings = engine.plan.with_profile("openclaw-2026.3").update(
        {"query.maxResults": 1, "query.hybrid.candidateMultiplier": 1, "query.minScore": 0}, "test"
    )
    evidence = engine.search.gather("zebra voicemail omada vlan switch")
    answer = engine.search.why(evidence, "memory/people.md", None, settings)
    assert not answer.recalled
    found = other_questions(engine, answer, []).rephrased
    assert any(one.left_out == ("zebra", "omada", "vlan", "switch") for one in found), found


def test_words_of_the_line_that_was_asked_about_come_first_and_say_where_they_stand(engine):
    evidence = engine.search.gather("How is the VLAN on the Omada router set up?")
    lines = engine.notes.read("memory/2026-09-20.md").text.split("\n")
    line = next(at for at, text in enumerate(lines, 1) if "Biscuit" in text)
    answer = engine.search.why(evidence, "memory/2026-09-20.md", line)
    asked: list[str] = []
    found = other_questions(engine, answer, asked).rephrased
    assert asked[0].split()[-1] in lines[line - 1].lower()
    assert found
    for one in found:
        assert one.word in lines[one.line - 1].lower()
        assert f"of line {one.line}" in wording.rephrased(one)


def test_a_knob_that_sends_the_passage_without_the_line_is_named(engine):
    evidence = engine.search.gather("when is wei's mother leaving")
    miss = next(hit for hit in engine.search.rank(evidence, engine.plan.settings).lost if hit.line)
    answer = engine.search.why(evidence, miss.chunk.path, line := miss.last_line)
    changes = remedies(answer, engine.plan.with_profile, engine.search.gather)
    said = f"With results 7 its passage would be sent, but not line {line} of it."
    assert said in [*hit_text.answer(answer, changes)]
    assert "results 7" not in map(wording.turn, (change.turns[0] for change in changes.singles))


WORDS = ["vlan", "router", "run", "晚餐", "naïve", "foo_bar", "set"]
TEXTS = st.lists(
    st.sampled_from(
        ["VLANs", "runs", "running", "今天晚餐吃饭", "naive", "NAÏVE", "foo-bar", "—", "🦊", "set", "reset", "\n"]
    ),
    max_size=12,
).map(" ".join)


def marked(text, words, profile="recommended", *, inside=False):
    found = MatchedWords(QueryPlan(words, (), "", inside=inside), profile)
    return [text[start:end] for start, end in found.spans(text)]


def test_stems_bigrams_and_what_a_profile_needs_as_written():
    text = "VLANs on the Omada — 今天晚餐吃, settings reset"
    assert marked(text, ("vlan", "omada", "set", "晚餐")) == ["VLANs", "Omada", "晚餐", "settings"]
    assert marked("三体問題", ("三体", "体問", "問題")) == ["三体問題"], "bigrams that meet are one mark"
    assert marked(text, ("omada", "vlan", "set"), "openclaw-2026.3") == ["Omada"], "OpenClaw has no stems"
    assert marked(text, ("set",), "openclaw-2026.3", inside=True) == ["set", "set"], "trigrams find parts of words"
    assert marked("foo bar foo-bar", ("foo_bar",)) == ["foo bar", "foo-bar"], "a phrase is marked whole"


@given(TEXTS, st.sets(st.sampled_from(WORDS), min_size=1), st.sampled_from(["recommended", "openclaw-2026.3"]))
def test_marks_are_apart_and_counts_are_of_marks(text, words, profile):
    found = MatchedWords(QueryPlan(tuple(sorted(words)), (), ""), profile)
    spans = found.spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    for word, count in found.counts(text).items():
        assert bool(count) == bool(marked(text, (word,), profile))
