"""Many settings at once give what ranking gives one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_tui.core.settings import Settings
from memory_tui.explain.counterfactuals import Reranking
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import rank
from tests.search.test_rank import any_evidence, any_settings
from tests.support.search import evidence, settings


@given(any_evidence, st.lists(any_settings, min_size=1, max_size=5))
def test_a_batch_is_ranking(found: Evidence, chosen: list[Settings]) -> None:
    replay = Reranking(found)
    for one in chosen:
        assert replay.recalled(one) == tuple(c.chunk.rowid for c in rank(found, one).recalled)
    for row in range(found.chunks):
        for standing, one in zip(replay.standings(row, chosen), chosen, strict=True):
            trace = rank(found, one)
            place = {c.chunk.rowid: i for i, c in enumerate(trace.recalled, 1)}.get(row)
            assert standing.recalled == (place is not None)
            assert standing.limit == one.whole("query.maxResults")
            loser = next((c for c in trace.lost if c.chunk.rowid == row), None)
            if place is not None:
                assert standing.place == place
                assert standing.score == trace.recalled[place - 1].score
            elif loser is None:
                assert (standing.place, standing.score != standing.score) == (0, True)
            else:
                assert standing.score == loser.score
                beyond = getattr(loser.verdict, "place", 0)
                assert min(beyond, standing.limit + 1) == min(standing.place, standing.limit + 1)


def test_a_row_that_nothing_proposes_stands_nowhere() -> None:
    found = evidence([0.9, 0.8, 0.7], {})
    one = settings("openclaw-2026.3", maxResults=1, candidateMultiplier=1)
    assert not Reranking(found, [2]).standings(2, [one])[0].recalled
    assert Reranking(found, [2]).standings(2, [one])[0].place == 0


def test_a_list_of_settings_gives_a_list_of_answers() -> None:
    found = evidence([0.9, 0.8, 0.7], {2: -9.0}, texts=["a b", "a b", "c"])
    tries = [
        settings("openclaw-2026.3", maxResults=count, **{"mmr.enabled": mmr})
        for count in (1, 2, 3)
        for mmr in (False, True)
    ] + [settings("recommended")]
    assert Reranking(found).recalled_each(tries) == [
        tuple(c.chunk.rowid for c in rank(found, one).recalled) for one in tries
    ]
