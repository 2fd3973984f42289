"""Past questions asked again: why a line never came, lines that none reached, the same week under other settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.core.errors import SettingError
from memory_tui.engine import past_questions
from memory_tui.engine.past_questions import PastQuestions
from memory_tui.explain.why_never import (
    NoOneChange,
    OneChange,
    PastQuestion,
    Reached,
    StoppedTimes,
    UnreachedLines,
    own_questions,
)
from memory_tui.recalls import recall_log
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry
from memory_tui.render import past_text
from memory_tui.search.rank import rank
from memory_tui.tune import judgments
from memory_tui.tune.judgments import Label, Notebook, Query
from tests.harness import past
from tests.harness.claims import NOW, Report, World, adversarial, open_world
from tests.harness.past import PastCase, check_never


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The odd notes, with a log of one week and two saved questions."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    notes = tmp_path / "notes"
    questions = adversarial(notes)
    opened = open_world("adversarial", notes, tmp_path / "i.sqlite", "openclaw-2026.3", "builtin", questions)
    engine = opened.engine
    opened.saved = (
        Query("anna router", (Label("memory/same-0.md", 3),)),
        Query("router omada", (Label("memory/long.md", 1),)),
    )
    place = judgments.notebook_path(engine.plan.roots.workspace, engine.plan.own_named)
    judgments.save(place, Notebook(opened.saved))
    log = recall_log.recall_log_path(engine.plan.roots.workspace)
    for days, question in (
        (40, "cable999"),
        (3, "router omada giraffe"),
        (2, "cable999"),
        (1, "cable999"),
        (1, "anna"),
    ):
        hits = engine.queries.search(question).recalled
        logged = tuple(
            LoggedHit(hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line, hit.score, 0.0, 0.0) for hit in hits
        )
        recall_log.append_recall(log, RecallEntry("memory_search", question, NOW - days * 86400, hits=logged))
    recall_log.append_recall(
        log, RecallEntry("memory_get", "MEMORY.md", NOW, outcome="lines 1 to 1", first_line=1, last_line=1)
    )
    yield opened
    engine.close()


def asked_in(world: World, days: int) -> PastQuestions:
    return past_questions.past_questions(world.engine, NOW, days)


def case_of(world: World, asked: PastQuestions) -> PastCase:
    settings = world.engine.plan.settings
    evidence = world.engine.queries.gather("router")
    return PastCase(world, evidence, settings, rank(evidence, settings), asked=asked)


def test_each_question_of_the_days_is_asked_once_the_newest_first(world: World) -> None:
    asked = asked_in(world, 7)
    assert [question.text for question in asked.questions if question.asker == "logged"] == [
        "anna",
        "cable999",
        "router omada giraffe",
    ]
    assert len(asked.entries) == 5
    assert asked_in(world, 2).days == 2
    assert past_questions.past_questions(world.engine, NOW, 7, most=1).left_out == len(asked.questions) - 1


@pytest.mark.parametrize(("path", "line"), [("memory/long.md", None), ("memory/2026-05-02.md", 1), ("MEMORY.md", 1)])
def test_what_is_said_of_a_line_over_many_questions_is_true(world: World, path: str, line: int | None) -> None:
    asked = asked_in(world, 7)
    report, case = Report(), case_of(world, asked)
    case.told = past_questions.never_of(world.engine, asked, path, line)
    check_never(case, report)
    assert report.untrue == []
    assert {"Reached", "StoppedTimes"} <= set(report.counts)
    assert sum(one.asked for one in case.told.reached) == len(case.told.answers)
    said = list(past_text.never(case.told))
    assert len(said) == 1 + len(case.told.claims)
    assert all(sentence.endswith(".") for sentence in said[1:])


def test_lines_that_nothing_reached_are_those_that_nothing_delivered(world: World) -> None:
    asked = asked_in(world, 30)
    found = past_questions.unreached(world.engine, asked)
    report = Report()
    report.check(found, case_of(world, asked))
    assert report.untrue == []
    assert not any(lines.path == "MEMORY.md" for lines in found.lines), "an agent read it"
    assert any(lines.path == "memory/2026-05-03.md" for lines in found.lines)
    assert (found.questions, found.reads) == (4, 1)


def test_the_same_week_under_other_settings_says_what_each_question_wins_and_loses(world: World) -> None:
    asked = asked_in(world, 7)
    report = Report()
    case = case_of(world, asked)
    outcomes = set()
    for changes in ({"query.minScore": 0.99}, {"query.maxResults": 12, "query.minScore": 0.1}, {"query.maxResults": 6}):
        case.after = case.settings.update(changes, "test")
        found = past_questions.replay_under(world.engine, asked, case.after)
        for one in found:
            report.check(one, case)
        outcomes |= {one.outcome for one in found}
        assert past_text.sums(found).startswith(f"{len(asked.questions)} questions: ")
        assert sum(past_text.replay_data(found)["counts"].values()) == len(found)
    assert report.untrue == []
    assert {"broken", "moved", "unchanged"} <= outcomes


def test_of_a_question_without_an_answer_hits_that_go_are_mended(world: World) -> None:
    world.saved = (*world.saved, Query("giraffe ticket7", unanswerable=True))
    notebook = Notebook(world.saved)
    asked = replace(asked_in(world, 7), notebook=notebook, questions=(PastQuestion("giraffe ticket7", "saved"),))
    case = case_of(world, asked)
    low, high = (case.settings.set("query.minScore", value, "test") for value in (0.0, 0.99))
    report = Report()
    for before, after, outcome in ((low, high, "mended"), (high, low, "broken")):
        for key in ("query.minScore",):
            world.engine.plan = replace(world.engine.plan, settings=before.set(key, before.number(key), "test"))
        case.settings, case.after = before, after
        (one,) = past_questions.replay_under(world.engine, asked, after)
        assert one.outcome == outcome
        report.check(one, case)
    assert report.untrue == []


def test_another_day_ages_the_notes(world: World) -> None:
    decays = {
        "query.minScore": 0.45,
        "query.hybrid.temporalDecay.enabled": True,
        "query.hybrid.temporalDecay.halfLifeDays": 20,
    }
    after = world.engine.plan.settings.update(decays, "test")
    asked = asked_in(world, 7)
    soon = past_questions.replay_under(world.engine, asked, after)
    late = past_questions.replay_under(world.engine, asked, after, days_ahead=400)
    assert sum(one.hits[1] for one in late) < sum(one.hits[1] for one in soon)


def test_an_index_that_is_cut_otherwise_is_refused(world: World) -> None:
    with pytest.raises(SettingError, match=r"openclaw-2026\.9"):
        past_questions.replay_under(world.engine, asked_in(world, 7), world.engine.plan.with_profile("openclaw-2026.9"))


def test_questions_are_made_of_the_words_of_a_note() -> None:
    text = "# Home network\n\nthe router is an Omada ER605 in the closet\nshort line"
    assert own_questions(text) == [
        PastQuestion("Home network", "own words"),
        PastQuestion("the router is an Omada ER605 in the closet", "own words"),
        PastQuestion("network closet router", "own words"),
    ]
    assert own_questions(text, "short line")[1].text == "short line"
    assert own_questions("") == []


def test_an_untrue_claim_about_past_questions_is_caught(world: World) -> None:
    asked = asked_in(world, 7)
    case = case_of(world, asked)
    case.told = past_questions.never_of(world.engine, asked, "memory/long.md", None)
    case.after = case.settings.set("query.minScore", 0.99, "test")
    recalled = next(question.text for question, answer in case.told.answers if answer.recalled)
    one = past_questions.replay_under(world.engine, asked, case.after)[0]
    lost = sum(not answer.recalled for _, answer in case.told.answers)
    false = [
        Reached("logged", 3, 99),
        StoppedTimes("limit", (recalled,)),
        OneChange("query.maxResults", 6, 7, ("nobody asked this",), lost, 0),
        NoOneChange((), lost + 1),
        replace(one, outcome="mended"),
        past_questions.Unreached(7, 1, 0, (UnreachedLines("memory/long.md", 1, 1),)),
    ]
    report = Report()
    for claim in false:
        report.check(claim, case)
    assert len(report.untrue) == len(false), report.counts
    assert {type(claim) for claim in false} == past.KINDS
