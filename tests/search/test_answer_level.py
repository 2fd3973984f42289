"""The level of an answer: what it goes by, what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json
from memory_tui.explain.noise import UNRELATED
from memory_tui.plan import Options
from memory_tui.search.answer_level import AnswerSignals, level_of, likelihood
from memory_tui.search.trace import Trace
from tests.support.tui import NOW, sample

SHARES = st.floats(0, 1)
NOTHING = "nothing holds these words"


def bounds(doubt: float, nothing: float) -> Settings:
    return Settings.defaults().update({"answer.doubtBelow": doubt, "answer.nothingBelow": nothing}, "test")


def signals(coverage: float = 0.0, line: float = 0.0, window: float = 0.0, cosine: float | None = 0.0) -> AnswerSignals:
    return AnswerSignals(coverage, line, window, cosine)


@given(SHARES, SHARES, SHARES, SHARES, SHARES)
def test_more_of_any_signal_never_makes_an_answer_less_likely(
    coverage: float, line: float, window: float, cosine: float, more: float
) -> None:
    before = signals(coverage, line, window, cosine)
    for name in ("coverage", "line", "window", "cosine"):
        assert likelihood(replace(before, **{name: getattr(before, name) + more})) >= likelihood(before)


def test_the_bounds_part_three_levels_and_the_lower_one_never_passes_the_upper() -> None:
    asked = signals(0.3, 0.3, 0.3, 0.4)
    value = likelihood(asked)
    assert level_of(asked, bounds(value, 0.0)).level == "found"
    assert level_of(asked, bounds(value + 0.01, value)).level == "nearby only"
    assert level_of(asked, bounds(value + 0.01, value + 0.005)).level == NOTHING
    assert level_of(asked, bounds(value, 1.0)).level == "found", "what is not doubted is not nothing"


def test_what_is_near_in_meaning_is_never_nothing() -> None:
    # "What happened on July 20th?" over the log of that day: no word in common, and the right answer.
    asked = signals(0.0, 0.0, 0.0, 0.54)
    assert level_of(asked, bounds(0.07, 0.01)).level == "nearby only"
    assert level_of(signals(0.0, 0.0, 0.0, 0.4), bounds(0.07, 0.01)).level == NOTHING
    assert level_of(signals(0.0, 0.0, 0.0, None), bounds(0.07, 0.01)).level == NOTHING


def test_the_words_of_a_level_hold_its_numbers() -> None:
    said = level_of(signals(0.25, 0.1, 0.1, 0.31), bounds(0.9, 0.0)).sentence
    assert said.startswith("Nearby only")
    assert "25%" in said
    assert "0.31" in said
    assert "cosine" not in level_of(signals(cosine=None), bounds(0.0, 0.0)).sentence


def asked(engine: Engine, question: str, **changes: object) -> Trace:
    settings = engine.plan.with_profile("recommended").update(changes, "test")
    return engine.queries.rank(engine.queries.gather(question), settings)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    place = tmp_path_factory.mktemp("level")
    options = Options(
        workspace=str(sample(place / "notes")), index=str(place / "index.sqlite"), provider="builtin", now=NOW
    )
    with Engine.open(options) as opened:
        opened.indexer.sync()
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
    assert set(told["signals"]) == {"coverage", "line", "window", "cosine"}


def test_openclaw_says_nothing_of_it(engine: Engine) -> None:
    settings = engine.plan.with_profile("openclaw-2026.3")
    trace = engine.queries.rank(engine.queries.gather("omada"), settings)
    assert trace.level is None
    assert trace_json.answer(trace, explain=False)["answerLevel"] is None
