"""The level of an answer: what it goes by, what it does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.engine.search import Search, UnrelatedRecords
from memory_tui.events import Event, LevelsMeasured
from memory_tui.explain import noise, trace_json
from memory_tui.explain.noise import UNRELATED
from memory_tui.plan import Options
from memory_tui.search.level import (
    USUAL,
    AnswerSignals,
    ByKind,
    LevelBasis,
    UnrelatedEvidence,
    level_of,
    likelihood,
    points_apart,
)
from memory_tui.search.trace import Trace
from memory_tui.settings import Settings
from tests.support.tui import NOW, sample

SHARES = st.floats(0, 1)
NOTHING = "nothing holds these words"


def bounds(doubt: float, nothing: float) -> Settings:
    return Settings.defaults().update({"answer.doubtBelow": doubt, "answer.nothingBelow": nothing}, "test")


def signals(window: float = 0.0, closeness: float = 0.0, cosine: float | None = 0.0) -> AnswerSignals:
    return AnswerSignals(closeness, window, window, closeness, cosine, closeness)


HERE = UnrelatedEvidence(3.0, 24, 7)
ALL_HERE: ByKind = dict.fromkeys(USUAL, HERE)


@given(SHARES, SHARES, SHARES, SHARES)
def test_more_of_any_signal_never_makes_an_answer_less_likely(
    window: float, closeness: float, cosine: float, more: float
) -> None:
    before = signals(window, closeness, cosine)
    for name in ("window", "closeness", "cosine", "rarest"):
        assert likelihood(replace(before, **{name: getattr(before, name) + more}), HERE) >= likelihood(before, HERE)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=24), st.floats(-5, 5))
def test_the_likelihood_goes_by_the_distance_from_unrelated_questions(reached: list[float], shift: float) -> None:
    asked = signals(0.3, 0.4, 0.5)
    here, elsewhere = (UnrelatedEvidence.of([one + by for one in reached], 1, 9) for by in (0.0, shift))
    assert elsewhere.mean - here.mean == pytest.approx(shift)
    assert (likelihood(asked, elsewhere) <= likelihood(asked, here) + 1e-12) == (shift >= 0 or shift > -1e-9)


def test_a_few_unrelated_questions_that_the_notes_answer_move_nothing() -> None:
    nothing_held = [2.0] * 20
    assert (
        UnrelatedEvidence.of([*nothing_held, 14.0, 15.0, 16.0, 17.0], 1, 9).mean
        == UnrelatedEvidence.of(nothing_held, 1, 9).mean
    )
    assert UnrelatedEvidence.of([4.0], 1, 9).mean == 4.0


def test_so_many_points_above_unrelated_questions_are_as_likely_as_not() -> None:
    asked = signals(0.3, 0.4, 0.5)
    usual = USUAL[asked.kind]
    for mean in (usual.mean, 3.0, 10.0):
        here = UnrelatedEvidence(mean)
        found = replace(asked, window=asked.window + (mean + points_apart(asked.kind, here) - asked.evidence) / 3)
        assert likelihood(found, here) == pytest.approx(0.5)
    for one in (replace(asked, pairs=True), replace(asked, cosine=None)):
        assert points_apart(one.kind, USUAL[one.kind]) < points_apart(asked.kind, usual), "they reach fewer points"
        assert USUAL[one.kind].mean < usual.mean


def test_what_unrelated_questions_reach_above_the_usual_is_followed_in_part() -> None:
    asked, usual = signals(0.3, 0.4, 0.5), USUAL["words"]
    more = UnrelatedEvidence(usual.mean + 2.1, 24, 1, 9)
    assert points_apart("words", usual) == 8.8
    assert more.mean + points_apart("words", more) == pytest.approx(usual.mean + 8.8 + 0.6 * 2.1)
    said = level_of(asked, bounds(0.5, 0.1), {"words": more}).explanation
    assert "as likely as not at +7.96 = 8.8 - 0.4 x (8.00 - 5.9 as usual); likelihood" in said
    assert "as usual" not in level_of(asked, bounds(0.5, 0.1), {}).explanation
    said = level_of(asked, bounds(0.5, 0.1), {"words": UnrelatedEvidence(asked.evidence - 3)}).explanation
    assert "+3.00 points" in said


def test_a_word_that_everybody_uses_is_less_evidence_than_a_rare_one() -> None:
    common, rare = (replace(signals(0.3, 0.6, 0.5), rarest=one) for one in (0.4, 1.0))
    assert level_of(common, bounds(0.5, 0.1), {}).level == "nearby only"
    assert level_of(rare, bounds(0.5, 0.1), {}).level == "found"


def test_the_bounds_part_three_levels_and_the_lower_one_never_passes_the_upper() -> None:
    asked = signals(0.3, 0.3, 0.2)
    value = likelihood(asked, HERE)
    assert level_of(asked, bounds(value, 0.0), ALL_HERE).level == "found"
    assert level_of(asked, bounds(value + 0.01, value), ALL_HERE).level == "nearby only"
    assert level_of(asked, bounds(value + 0.01, value + 0.005), ALL_HERE).level == NOTHING
    assert level_of(asked, bounds(value, 1.0), ALL_HERE).level == "found", "what is not doubted is not nothing"


def test_what_is_near_in_meaning_is_never_nothing() -> None:
    # "What happened on July 20th?" over the log of that day: no word in common, and the right answer.
    asked = signals(0.0, 0.0, 0.34)
    assert level_of(asked, bounds(0.5, 0.1), ALL_HERE).level == "nearby only"
    assert level_of(signals(0.0, 0.0, 0.2), bounds(0.5, 0.1), ALL_HERE).level == NOTHING
    assert level_of(signals(0.0, 0.0, None), bounds(0.5, 0.1), ALL_HERE).level == NOTHING


def test_the_words_of_a_level_hold_its_numbers() -> None:
    said = level_of(signals(0.1, 0.25, 0.31), bounds(0.9, 0.0), ALL_HERE).sentence
    assert said.startswith("Nearby only")
    assert "25%" in said
    assert "0.31" in said
    assert "cosine" not in level_of(signals(cosine=None), bounds(0.0, 0.0), ALL_HERE).sentence


def asked(engine: Engine, question: str, **changes: object) -> Trace:
    settings = engine.plan.with_profile("recommended").update(changes, "test")
    return engine.search.rank(engine.search.gather(question), settings)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    place = tmp_path_factory.mktemp("level")
    options = Options(
        workspace=str(sample(place / "notes")), index=str(place / "index.sqlite"), provider="builtin", now=NOW
    )
    with Engine.open(options) as opened:
        opened.index.sync()
        yield opened


def test_what_the_notes_hold_is_found_and_nonsense_is_not(engine: Engine) -> None:
    for question in ("How is the VLAN on the Omada router set up?", "omada er605"):
        found = asked(engine, question).level
        assert found is not None
        assert found.level == "found", found.sentence
    levels = [asked(engine, question).level for question in UNRELATED]
    assert sum(one is not None and one.level != "found" for one in levels) >= 0.9 * len(UNRELATED)


def test_no_knob_of_the_ranking_changes_the_level(engine: Engine) -> None:
    question = "Who installed the fibre?"
    plain = asked(engine, question).level
    changes = (
        {"query.hybrid.vectorWeight": 0.9},
        {"query.maxResults": 1},
        {"secondStage.weight": 0.0},
        {"recency.weight": 0.4},
    )
    assert all(asked(engine, question, **one).level == plain for one in changes)


def test_the_answer_in_json_says_what_is_held(engine: Engine) -> None:
    trace = asked(engine, UNRELATED[0])
    told = trace_json.answer(trace, explain=False)["answerLevel"]
    assert trace.level is not None
    assert told["level"] == trace.level.level
    assert told["sentence"] == trace.level.sentence
    assert set(told["signals"]) == {"coverage", "line", "window", "closeness", "cosine", "rarest", "pairs"}
    assert told["explanation"] == trace.level.explanation


def test_words_alone_are_compared_with_words_alone(engine: Engine) -> None:
    probes, settings = tuple(noise.ask_unrelated(engine.search.gather)), engine.plan.with_profile("recommended")
    here = noise.unrelated_evidence(probes, settings)
    assert here["words alone"].mean < here["words"].mean - 2, "like words and meaning give points of their own"
    # As where the provider does not answer a question, which notes were measured with.
    found = engine.search.gather("How is the VLAN on the Omada router set up?")
    failed = replace(found, cosine=None, nearest=found.nearest[:0], unrelated=here)
    level = engine.search.rank(failed, settings).level
    assert level is not None
    assert (level.signals.kind, level.unrelated, level.level) == ("words alone", here["words alone"], "found")


def test_what_levels_are_compared_with_is_said_in_words() -> None:
    def said(measured: ByKind, profile: str = "recommended") -> str:
        return LevelBasis(profile, measured).sentence

    assert said({}, "openclaw-2026.3") == "none under openclaw-2026.3"
    assert said({}).startswith("usual values: unrelated questions reach 5.90 points")
    here = {"words": UnrelatedEvidence(5.31, 24, 7, 1234), "words alone": UnrelatedEvidence(1.9, 24, 7, 1234)}
    assert said(here) == (
        "24 unrelated questions, asked over 1,234 chunks, reach 5.31 points by words and meaning, "
        "1.90 points by words alone"
    )
    assert LevelBasis("recommended", here).as_dict() == {"sentence": said(here), "measured": here}


def test_levels_go_by_what_was_measured_here_once_it_was(engine: Engine) -> None:
    before = asked(engine, "omada er605").level
    assert before is not None
    assert before.unrelated == USUAL["words"]
    probes = tuple(noise.ask_unrelated(engine.search.gather))
    settings = engine.plan.with_profile("recommended")
    engine.search.unrelated.keep(probes, settings)
    found = asked(engine, "omada er605").level
    assert found is not None
    assert found.unrelated == noise.unrelated_evidence(probes, settings)["words"]
    assert found.unrelated.questions == len(UNRELATED)
    assert found.level == "found"
    rates = noise.level_rates(probes, [engine.search.gather("omada er605")], settings)
    assert rates is not None
    assert rates.false_recalls <= 0.1
    assert rates.doubted == 0.0


def test_another_process_reads_what_was_measured(engine: Engine, tmp_path: Path) -> None:
    probes = tuple(noise.ask_unrelated(engine.search.gather))
    settings, workspace = engine.plan.with_profile("recommended"), engine.plan.roots.workspace
    state = tmp_path / "state.sqlite"
    uuid = probes[0].uuid
    elsewhere = UnrelatedRecords(workspace, path=state)
    assert elsewhere.of(uuid) == {}
    UnrelatedRecords(workspace, writes=False, path=state).keep(probes, settings)
    assert not state.exists(), "who may not write keeps it to itself"
    UnrelatedRecords(workspace, path=state).keep(probes, settings)
    assert elsewhere.of(uuid) == noise.unrelated_evidence(probes, settings)
    assert elsewhere.of("another index") == {}
    assert elsewhere.of(uuid).keys() == {"words", "words alone"}, "it was not measured in another script"


def test_it_is_measured_again_once_the_notes_have_grown_by_half(tmp_path: Path) -> None:
    workspace = sample(tmp_path / "notes")
    options = Options(workspace=str(workspace), index=str(tmp_path / "index.sqlite"), provider="builtin", now=NOW)
    with Engine.open(replace(options, changes=(("profile", "openclaw-2026.3"),))) as opened:
        opened.index.sync()
        assert not opened.search.measure_unrelated(Stop()), "that release knows no levels"
    with Engine.open(replace(options, sample=True, changes=(("profile", "recommended"),))) as opened:
        opened.index.sync()
        assert opened.search.measure_unrelated(Stop()), "and of a sample nothing is kept"
    with Engine.open(replace(options, changes=(("profile", "recommended"),))) as opened:
        opened.index.sync()
        assert opened.search.measure_unrelated(Stop())
        found = asked(opened, "omada er605").level
        assert found is not None
        chunks = found.unrelated.chunks
        assert found.unrelated.questions == len(UNRELATED)
        assert f"{len(UNRELATED)} asked here, over {chunks} chunks" in found.explanation
        assert not opened.search.measure_unrelated(Stop()), "nothing has changed"
        for more in range(chunks):
            (workspace / "memory" / f"more-{more}.md").write_text(f"Of the {more}th kind.\n")
        opened.index.sync()
        assert opened.search.measure_unrelated(Stop())


def test_no_question_leaves_the_machine_unasked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_tui.engine.search.embeds_here", lambda _: False)
    monkeypatch.setattr(engine.search.unrelated, "_here", {})
    assert not engine.search.measure_unrelated(Stop())


def test_an_engine_that_stays_measures_after_an_index_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(workspace=str(sample(tmp_path / "notes")), index=str(tmp_path / "index.sqlite"))
    options = replace(options, provider="builtin", changes=(("profile", "recommended"), ("sync.watch", "false")))
    measured = threading.Event()
    monkeypatch.setattr("memory_tui.engine.engine.UPKEEP_SECONDS", 0.01)
    monkeypatch.setattr(Search, "measure_unrelated", lambda *_: measured.set())
    with Engine.open(options) as engine:
        engine.start()
        assert measured.wait(30)


def test_who_shows_an_answer_hears_that_its_level_may_be_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(workspace=str(sample(tmp_path / "notes")), index=str(tmp_path / "index.sqlite"))
    options = replace(options, provider="builtin", changes=(("profile", "recommended"), ("sync.watch", "false")))
    measured = threading.Event()
    monkeypatch.setattr("memory_tui.engine.engine.UPKEEP_SECONDS", 0.01)

    def hear(event: Event) -> None:
        if isinstance(event, LevelsMeasured):
            measured.set()

    with Engine.open(options, hear) as engine:
        engine.start()
        assert measured.wait(60)
        assert engine.status().levels.measured


def test_openclaw_profiles_give_no_level(engine: Engine) -> None:
    settings = engine.plan.with_profile("openclaw-2026.3")
    trace = engine.search.rank(engine.search.gather("omada"), settings)
    assert trace.level is None
    assert trace_json.answer(trace, explain=False)["answerLevel"] is None
