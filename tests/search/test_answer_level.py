"""The level of an answer: what it goes by, what it does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.engine.search import UnrelatedRecords
from memory_tui.events import Event, LevelsMeasured
from memory_tui.explain import noise, trace_json
from memory_tui.explain.noise import UNRELATED
from memory_tui.plan import Options
from memory_tui.search.level import USUAL, AnswerSignals, ByKind, LevelBasis, UnrelatedEvidence, level_of, likelihood
from memory_tui.search.trace import Trace
from memory_tui.settings import Settings
from tests.support.tui import NOW, sample

NOTHING = "nothing holds these words"


def bounds(doubt: float, nothing: float) -> Settings:
    return Settings.defaults().update({"answer.doubtBelow": doubt, "answer.nothingBelow": nothing}, "test")


def signals(window: float = 0.0, closeness: float = 0.0, cosine: float | None = 0.0) -> AnswerSignals:
    return AnswerSignals(closeness, window, window, closeness, cosine, closeness)


HERE = UnrelatedEvidence(3.0, 24, 7)
ALL_HERE: ByKind = dict.fromkeys(USUAL, HERE)


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
