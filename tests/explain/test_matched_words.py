"""Words are marked where the search found them, and nowhere else."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memory_tui.explain.words import MatchedWords
from memory_tui.search.trace import QueryPlan

WORDS = ["vlan", "router", "run", "晚餐", "naïve", "foo_bar", "set"]
TEXTS = st.lists(
    st.sampled_from(
        ["VLANs", "runs", "running", "今天晚餐吃饭", "naive", "NAÏVE", "foo-bar", "—", "🦊", "set", "reset", "\n"]
    ),
    max_size=12,
).map(" ".join)


def marked(text: str, words: tuple[str, ...], profile: str = "recommended", *, inside: bool = False) -> list[str]:
    found = MatchedWords(QueryPlan(words, (), "", inside=inside), profile)
    return [text[start:end] for start, end in found.spans(text)]


def test_stems_bigrams_and_what_a_profile_needs_as_written() -> None:
    text = "VLANs on the Omada — 今天晚餐吃, settings reset"
    assert marked(text, ("vlan", "omada", "set", "晚餐")) == ["VLANs", "Omada", "晚餐", "settings"]
    assert marked("三体問題", ("三体", "体問", "問題")) == ["三体問題"], "bigrams that meet are one mark"
    assert marked(text, ("omada", "vlan", "set"), "openclaw-2026.3") == ["Omada"], "OpenClaw has no stems"
    assert marked(text, ("set",), "openclaw-2026.3", inside=True) == ["set", "set"], "trigrams find parts of words"
    assert marked("foo bar foo-bar", ("foo_bar",)) == ["foo bar", "foo-bar"], "a phrase is marked whole"


@given(TEXTS, st.sets(st.sampled_from(WORDS), min_size=1), st.sampled_from(["recommended", "openclaw-2026.3"]))
def test_marks_are_apart_and_counts_are_of_marks(text: str, words: set[str], profile: str) -> None:
    found = MatchedWords(QueryPlan(tuple(sorted(words)), (), ""), profile)
    spans = found.spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    for word, count in found.counts(text).items():
        assert bool(count) == bool(marked(text, (word,), profile))
