"""Many settings at once give what ranking gives one by one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain import why_not
from memory_tui.explain.reranking import Reranking
from memory_tui.plan import Options
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import rank
from memory_tui.search.trace import Recalled
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


@hypothesis_settings(max_examples=30)
@given(st.randoms(use_true_random=False), st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0]))
def test_variety_among_many_alike_is_that_of_ranking(chance: Random, balance: float) -> None:
    texts = [" ".join(chance.choices("abcdefgh", k=chance.randint(0, 5))) for _ in range(30)]
    found = evidence([chance.randint(20, 99) / 100 for _ in texts], {}, texts=texts)
    tries = [
        settings("openclaw-2026.3", maxResults=count, minScore=lowest, **{"mmr.enabled": True, "mmr.lambda": balance})
        for count in (1, 4, 9, 29)
        for lowest in (0.0, 0.5)
    ]
    replay, row = Reranking(found), chance.randrange(len(texts))
    whole = [tuple(c.chunk.rowid for c in rank(found, one).recalled) for one in tries]
    assert replay.recalled_each(tries) == whole
    for standing, hits in zip(replay.standings(row, tries), whole, strict=True):
        assert standing.recalled == (row in hits)
        assert not standing.recalled or hits[standing.place - 1] == row


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


@pytest.mark.parametrize("provider", ["scripted", "none"])
def test_a_batch_is_ranking_under_2026_9(tmp_path: Path, provider: str) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text(
        "# Facts\n- router vlan ten <!-- importance: 9 -->\n- bread on Sunday <!-- importance: 1 -->\n"
        "- router password <!-- project: ; -->\n"
    )
    for day in range(1, 25):
        text = f"# Day {day}\n\nrouter vlan {'bread ' * (day % 3)}garden {day}\n"
        (tmp_path / "memory" / f"2026-01-{day:02}.md").write_text(text)
    (tmp_path / "memory" / "router.md").write_text("# The router\n\nOmada\n")
    options = Options(
        workspace=str(tmp_path),
        index=str(tmp_path / "index.sqlite"),
        provider=provider,
        now=1_770_000_000,
        changes=(("profile", "openclaw-2026.9"),),
    )
    with Engine.open(options) as engine:
        engine.index.sync()
        for question in ("router", "router vlan garden", "bread", "omada sunday"):
            evidence = engine.search.gather(question)
            tries = [
                engine.plan.settings.update({"query.minScore": floor, "query.maxResults": most}, "test")
                for floor in (0.0, 0.2, 0.35, 0.6, 0.95)
                for most in (1, 4, 30)
            ]
            traces = [rank(evidence, one) for one in tries]
            assert Reranking(evidence).recalled_each(tries) == [
                tuple(why_not.row_of(evidence, hit.chunk.rowid) for hit in trace.recalled) for trace in traces
            ]
            assert not any("password" in hit.snippet for trace in traces for hit in [*trace.recalled, *trace.lost])
            for trace in traces:
                places = [hit.verdict.place for hit in trace.recalled if isinstance(hit.verdict, Recalled)]
                assert places == list(range(1, len(trace.recalled) + 1))


def test_2026_9_adds_the_pieces_of_a_long_line_once(tmp_path: Path) -> None:
    """As the real program answers: 200 notes are nearer than the long line, so its four pieces have no vector score."""
    pieces = [" ".join(["alpha beta", *(f"w{piece}{word}" for word in range(300))]) for piece in range(4)]
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("alpha beta\n")
    (tmp_path / "memory" / "long.md").write_text(" ".join(pieces))
    for day in range(220):
        (tmp_path / "memory" / f"n{day}.md").write_text(f"alpha day{day}\n")
    options = Options(
        workspace=str(tmp_path),
        index=str(tmp_path / "index.sqlite"),
        provider="scripted",
        changes=(("profile", "openclaw-2026.9"), ("query.minScore", "0.9"), ("query.maxResults", "6")),
    )
    with Engine.open(options) as engine:
        engine.index.sync()
        evidence = engine.search.gather("alpha beta")
        trace = rank(evidence, engine.plan.settings)
        assert [hit.chunk.path for hit in trace.recalled] == ["MEMORY.md", "memory/long.md"]
        assert Reranking(evidence).recalled_each([engine.plan.settings]) == [
            tuple(why_not.row_of(evidence, hit.chunk.rowid) for hit in trace.recalled)
        ]
