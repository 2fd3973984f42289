"""Past questions asked again: why a line never came, lines that none reached, the same week under other settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tui.cli import explain
from memory_tui.engine import past_questions
from memory_tui.engine.past_questions import PastQuestions
from memory_tui.explain.counterfactuals import turned
from memory_tui.explain.why_never import (
    NoOneChange,
    OneChange,
    PastQuestion,
    Reached,
    StoppedTimes,
    WhyNever,
    own_questions,
)
from memory_tui.recalls import recall_log
from memory_tui.recalls.recall_log import LoggedHit, RecallEntry
from memory_tui.settings import Settings
from memory_tui.tune import judgments
from memory_tui.tune.judgments import Label, Notebook, Query
from tests.harness.claims import NOW, World, adversarial, open_world


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
        hits = engine.search.search(question).recalled
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


def recalling(world: World, never: WhyNever, settings: Settings) -> set[str]:
    """Return the questions that recall a chunk of the line under `settings`, each asked anew."""
    search, found = world.engine.search, set[str]()
    for question, answer in never.answers:
        accounts = [account.chunk.rowid for account in (answer.best, *answer.others) if account]
        ranked = search.rank(search.gather(question.text, source=question.source), settings)
        found |= {question.text} if {hit.chunk.rowid for hit in ranked.recalled}.intersection(accounts) else set()
    return found


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
    never = past_questions.never_of(world.engine, asked_in(world, 7), path, line)
    settings, texts = world.engine.plan.settings, {question.text for question, _ in never.answers}
    now = recalling(world, never, settings)
    for claim in never.claims:
        match claim:
            case Reached():
                own = [question.text for question, _ in never.answers if question.asker == claim.asker]
                assert (claim.questions, claim.recalled) == (len(own), len(now.intersection(own)))
            case StoppedTimes():
                assert claim.gate
                assert not now.intersection(claim.questions)
            case OneChange():
                then = recalling(world, never, settings.update(turned({claim.key: claim.value}), "test"))
                assert claim.lost == len(texts - now)
                assert set(claim.questions) == then - now
            case NoOneChange():
                assert claim.lost == len(texts - now)
                for key, value in claim.points[::9]:
                    assert recalling(world, never, settings.update(turned({key: value}), "test")) <= now, (key, value)
    assert {Reached, StoppedTimes} <= {type(claim) for claim in never.claims}
    assert sum(each.questions for each in never.reached) == len(never.answers)
    said = list(explain.never_lines(never))
    assert len(said) == 1 + len(never.claims)
    assert all(sentence.endswith(".") for sentence in said[1:])


def test_lines_that_nothing_reached_are_those_that_nothing_delivered(world: World) -> None:
    asked = asked_in(world, 30)
    found = past_questions.unreached(world.engine, asked)
    delivered = [hit for entry in asked.entries for hit in entry.hits]
    for lines in found.lines:
        there = (world.folder / lines.path).read_text().splitlines()
        assert 1 <= lines.first <= lines.last <= len(there), lines
        for hit in delivered:
            assert hit.path != lines.path or hit.end_line < lines.first or lines.last < hit.start_line, (lines, hit)
    assert not any(lines.path == "MEMORY.md" for lines in found.lines), "an agent read it"
    assert any(lines.path == "memory/2026-05-03.md" for lines in found.lines)
    assert (found.questions, found.reads) == (4, 1)


def test_questions_are_made_of_the_words_of_a_note() -> None:
    text = "# Home network\n\nthe router is an Omada ER605 in the closet\nshort line"
    assert own_questions(text) == [
        PastQuestion("Home network", "own words"),
        PastQuestion("the router is an Omada ER605 in the closet", "own words"),
        PastQuestion("network closet router", "own words"),
    ]
    assert own_questions(text, "short line")[1].text == "short line"
    assert own_questions("") == []
