"""The noise floor: where nonsense scores, what minScore does about it, and when it cannot work."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tui.cli import main
from memory_tui.core.settings import Settings
from memory_tui.demo import demo
from memory_tui.engine.engine import Engine
from memory_tui.explain import noise, wording
from memory_tui.explain.noise import UNRELATED, UNRELATED_CHINESE, NoiseQuery, Probes, ask_all, known_items
from memory_tui.explain.verdicts import AboveRight, BelowNoise, Inseparable, KeywordHitsShut, RelativeScores
from memory_tui.plan import Options
from memory_tui.render import noise_text
from memory_tui.search.trace import BelowMinScore, LoweredByDecay
from tests.support.search import evidence, settings

OPENCLAW = "openclaw-2026.3"
TODAY = dt.date(2026, 11, 20)


def probes(nonsense: list[float], related: list[float], *, labelled: bool = True) -> Probes:
    """Questions whose best, or right, chunk has these cosines; all the weight is on cosines below."""
    return Probes(
        tuple(NoiseQuery(evidence([cosine, cosine / 2], {})) for cosine in nonsense),
        tuple(NoiseQuery(evidence([0.0, cosine], {}), frozenset([1])) for cosine in related),
        labelled,
    )


def by_cosine(profile: str = OPENCLAW, **changes: object) -> Settings:
    return settings(profile, vectorWeight=1.0, textWeight=0.0, **changes)


def test_the_trade_of_minscore_by_hand() -> None:
    floor = noise.measure(probes([0.1, 0.2, 0.3, 0.4], [0.35, 0.5, 0.6, 0.7]), by_cosine(minScore=0.25))
    assert floor.nonsense == pytest.approx((0.1, 0.2, 0.3, 0.4))
    assert floor.related == pytest.approx((0.35, 0.5, 0.6, 0.7))
    assert (floor.now.nonsense, floor.now.related) == (0.5, 1.0)
    by_score = {trade.min_score: (trade.nonsense, trade.related) for trade in floor.curve}
    assert by_score[0.0] == (1.0, 1.0)
    assert by_score[0.32] == (0.25, 1.0)
    assert by_score[0.45] == (0.0, 0.75)
    assert len(by_score) == 101
    assert floor.suggested is not None
    assert floor.suggested.apart == 0.75
    assert floor.cosines == floor.nonsense
    assert floor.percentile(0.5) == pytest.approx(0.25)


def test_without_labels_the_lowest_that_keeps_nonsense_out_is_suggested() -> None:
    floor = noise.measure(probes([i / 100 for i in range(40)], [0.8] * 9, labelled=False), by_cosine())
    assert floor.suggested is not None
    assert floor.suggested.min_score == 0.38
    assert floor.suggested.nonsense == 0.05


def test_where_keeping_nonsense_out_loses_too_much_the_best_trade_is_suggested() -> None:
    """One unrelated question in ten scores as high as any; no minScore would be right to be called hopeless for it."""
    floor = noise.measure(probes([0.1] * 9 + [0.9], [0.5] * 10, labelled=False), by_cosine())
    assert floor.suggested is not None
    assert (floor.suggested.nonsense, floor.suggested.related) == (0.1, 1.0)
    assert not any(isinstance(doubt, Inseparable) for doubt in floor.doubts)


def test_where_no_minscore_keeps_nonsense_out_the_highest_is_not_suggested_for_it() -> None:
    """Two of twenty unrelated questions score as high as can be: minScore 1 keeps them out no more than others do."""
    floor = noise.measure(probes([0.0] * 18 + [1.0, 1.0], [1.0] * 10, labelled=False), by_cosine())
    assert floor.suggested is not None
    assert (floor.suggested.nonsense, floor.suggested.related) == (0.1, 1.0)
    assert 0.3 <= floor.suggested.min_score <= 0.7, "the middle of those that do equally"


def test_hits_by_words_alone_have_the_whole_score_where_there_are_no_vectors() -> None:
    nonsense = tuple(NoiseQuery(evidence(None, {0: -3.0})) for _ in range(3))
    asked = Probes(nonsense, (NoiseQuery(evidence(None, {0: -3.0}), frozenset([0])),), labelled=True)
    floor = noise.measure(asked, settings(OPENCLAW))
    assert floor.related[0] > 0.35
    assert not any(isinstance(doubt, KeywordHitsShut) for doubt in floor.doubts)


def test_keyword_hits_that_cannot_pass() -> None:
    found = noise.measure(probes([0.1], [0.9]), settings(OPENCLAW)).doubts
    assert KeywordHitsShut(pytest.approx(0.3), 0.35, relaxed=True) in found  # type: ignore[arg-type]
    assert "0.30 at best, below minScore 0.35" in wording.doubt(found[0])
    older = noise.measure(probes([0.1], [0.9]), settings("openclaw-2026.2")).doubts
    assert isinstance(older[0], KeywordHitsShut)
    assert older[0].relaxed is False
    assert "never" in wording.doubt(older[0])
    half = settings(OPENCLAW, vectorWeight=0.5, textWeight=0.5)
    assert noise.measure(probes([0.1], [0.9]), half).doubts == ()


@pytest.mark.parametrize(
    ("nonsense", "related", "kinds"),
    [
        ([0.5, 0.6, 0.7], [0.8, 0.9, 0.95], {BelowNoise}),
        ([0.1, 0.2], [0.2, 0.25, 0.3], {AboveRight}),
        ([0.1, 0.3, 0.5], [0.1, 0.3, 0.5], {Inseparable, AboveRight}),
        ([0.1, 0.2], [0.8, 0.9], set()),
    ],
)
def test_a_minscore_that_cannot_work_is_told(nonsense: list[float], related: list[float], kinds: set[type]) -> None:
    floor = noise.measure(
        probes(nonsense, related),
        settings("openclaw-2026.2", vectorWeight=1.0, textWeight=0.0, minScore=0.35, **{"hybrid.enabled": False}),
    )
    assert {type(found) for found in floor.doubts} == kinds
    assert (floor.suggested is None) == (Inseparable in kinds)
    for found in floor.doubts:
        assert wording.doubt(found).endswith(".")


def test_shares_of_the_best_hit_cannot_tell_nonsense() -> None:
    floor = noise.measure(probes([0.1, 0.2], [0.9]), settings("recommended"))
    assert RelativeScores("recommended") in floor.doubts
    assert floor.percentile(0.5) > 0.3


def test_chunks_that_are_no_candidate_count_as_shut_out() -> None:
    found = NoiseQuery(evidence([0.9, 0.8, 0.7], {}), frozenset([2]))
    floor = noise.measure(Probes((), (found,), True), by_cosine(maxResults=1, candidateMultiplier=1, minScore=0.1))
    assert floor.related == (0.0,)
    assert floor.nonsense == ()
    assert floor.percentile(0.95) == 0.0


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The sample workspace."""
    out = tmp_path_factory.mktemp("noise")
    folder = demo.materialize(out / "notes", TODAY)
    with Engine.open(
        Options(
            workspace=str(folder),
            index=str(out / "index.sqlite"),
            now=dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp(),
            changes=(("sync.onSearch", "off"),),
        )
    ) as engine:
        engine.indexer.sync()
        yield engine


@pytest.fixture(scope="module")
def asked(engine: Engine) -> Probes:
    return ask_all(engine.queries.gather)


def test_nonsense_scores_less_than_what_is_in_the_notes(engine: Engine, asked: Probes) -> None:
    assert [probe.evidence.query for probe in asked.nonsense] == list(UNRELATED)
    assert len(asked.related) >= 12
    floor = noise.measure(asked, engine.plan.with_profile(OPENCLAW))
    assert floor.percentile(0.5) < floor.related[len(floor.related) // 2] - 0.2
    assert floor.suggested is not None
    assert floor.suggested.nonsense <= 0.1
    assert floor.suggested.related >= 0.8


def test_the_scores_are_those_of_real_searches(engine: Engine, asked: Probes) -> None:
    open_ = engine.plan.with_profile(OPENCLAW).update({"query.minScore": 0.0}, "test")
    floor = noise.measure(asked, engine.plan.with_profile(OPENCLAW))
    best = sorted(engine.queries.search(question, open_).recalled[0].score for question in UNRELATED)
    assert floor.nonsense == pytest.approx(best)


# Each minScore with one of the weights: what `measure` computes for both costs most of a second.
@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
@pytest.mark.parametrize(("weight", "minima"), [(0.2, (0.35, 0.95)), (0.5, (0.2, 0.6))])
def test_what_passes_is_what_a_search_lets_pass(
    engine: Engine, asked: Probes, profile: str, weight: float, minima: tuple[float, ...]
) -> None:
    """The shares at minScore are those of real searches without a limit, with the relaxed floor where there is one."""
    weights = {"query.hybrid.vectorWeight": 1 - weight, "query.hybrid.textWeight": weight}
    for minimum in minima:
        chosen = engine.plan.with_profile(profile).update({**weights, "query.minScore": minimum}, "test")
        floor = noise.measure(asked, chosen)
        opened = chosen.update({"query.maxResults": 50}, "test")
        nonsense = sum(bool(engine.queries.rank(probe.evidence, opened).recalled) for probe in asked.nonsense)
        assert floor.now.nonsense == pytest.approx(nonsense / len(asked.nonsense))
        passed = 0
        for probe in asked.related:
            trace = engine.queries.rank(probe.evidence, opened)
            passed += any(
                c.chunk.rowid in probe.right and not isinstance(c.verdict, BelowMinScore | LoweredByDecay)
                for c in (*trace.recalled, *trace.lost)
            )
        assert floor.now.related == pytest.approx(passed / len(asked.related))
        at = next(trade for trade in floor.curve if trade.min_score == minimum)
        assert (at.nonsense, at.related) == (floor.now.nonsense, floor.now.related)


def test_where_scores_are_relative_no_minscore_is_suggested(engine: Engine, asked: Probes) -> None:
    floor = noise.measure(asked, engine.plan.with_profile("recommended"))
    assert floor.suggested is None
    assert "suggested  none: scores are relative to each question's best hit" in list(noise_text.lines(floor))


def test_chinese_notes_are_asked_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    for day in range(1, 9):
        note = tmp_path / "notes" / "memory" / f"2026-11-0{day}.md"
        note.write_text(f"第{day}天：路由器的设置改好了，晚饭吃了麻婆豆腐。\n", "utf-8")
    with Engine.open(Options(workspace=str(tmp_path / "notes"), index=str(tmp_path / "i.sqlite"))) as engine:
        engine.indexer.sync()
        totals: list[int] = []
        asked = ask_all(engine.queries.gather, progress=lambda _done, total: totals.append(total))
    assert [probe.evidence.query for probe in asked.nonsense] == list(UNRELATED_CHINESE)
    assert len(set(totals)) == 1, "the total stays what it was"
    assert asked.related


def test_a_known_item_is_a_line_of_its_chunk() -> None:
    line = "the router was moved to the cellar because of the noise that it makes at night"
    texts = {1: f"# Head\n{line}\n", 2: "short", 3: ""}
    assert known_items(texts) == [(1, "the router was moved to the cellar because of the noise that")]


def test_lines_and_json(engine: Engine, asked: Probes) -> None:
    floor = noise.measure(asked, engine.plan.with_profile(OPENCLAW))
    text = list(noise_text.lines(floor, [0.41, 0.42]))
    assert sum("|" in line for line in text) == noise.BUCKETS
    assert sum("-- minScore" in line for line in text) == 1
    assert any("2 results" in line for line in text)
    found = json.loads(json.dumps(noise_text.record(floor)))
    assert found["warnings"][0]["kind"] == "keyword_hits_shut"
    assert found["now"]["minScore"] == 0.35


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("The router Omada stands in the cellar, behind the boiler\n")
    (tmp_path / "labels.jsonl").write_text('{"query": "where is the router", "path": "MEMORY.md", "line": 1}\n')
    where = ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite")]
    shared = [*where, "noise", "--json", "router"]
    assert main.main(shared) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["labelled"], len(found["nonsense"]), len(found["results"])) == (False, len(UNRELATED), 1)
    assert main.main([*shared, "--labels", str(tmp_path / "labels.jsonl")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["labelled"], len(found["related"])) == (True, 1)
    assert main.main([word for word in shared if word != "--json"]) == 0
    assert "unrelated questions" in capsys.readouterr().out
