"""Everything that is said of lines and of whole workspaces is tried by brute force, and found true."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_tui import demo, profiles
from memory_tui.explain import trace_json
from memory_tui.notices import Notice, notice
from memory_tui.search import trace
from memory_tui.search.rank import rank
from tests.explain.test_exhaustive import TIGHT, Asked, check_chunks
from tests.harness.claims import Case, Report, World, adversarial, open_world, run, run_files

TODAY = dt.date(2026, 11, 20)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str, str], World]]:
    """The adversarial workspace, opened under a profile with a provider."""
    worlds: list[World] = []
    questions = adversarial(tmp_path / "notes")

    def opened(profile: str, provider: str) -> World:
        index = tmp_path / f"{profile}.{provider}.sqlite"
        worlds.append(open_world("adversarial", tmp_path / "notes", index, profile, provider, questions))
        return worlds[-1]

    yield opened
    for world in worlds:
        world.engine.close()


@pytest.mark.parametrize(
    ("profile", "provider"),
    [
        ("openclaw-2026.3", "none"),
        ("openclaw-2026.3", "builtin"),
        ("recommended", "builtin"),
        ("openclaw-2026.9", "none"),
    ],
)
def test_nothing_untrue_is_said_of_odd_notes(small: Callable[[str, str], World], profile: str, provider: str) -> None:
    world = small(profile, provider)
    report = Report()
    run(world, report)
    run_files(world, report)
    assert report.untrue == []
    assert sum(report.counts.values()) > 60
    assert len(report.counts) >= 5


def test_an_untrue_claim_is_caught(small: Callable[[str, str], World]) -> None:
    """Claims that were once made, or that are true of another line, fail their checkers."""
    world = small("openclaw-2026.3", "builtin")
    settings = world.engine.plan.settings.update({"query.maxResults": 2, "query.minScore": 0.2}, "test")
    evidence = world.engine.search.gather("router omada")
    ranked = rank(evidence, settings)
    lost = ranked.lost[0]
    row = next(row for row in range(evidence.chunks) if evidence.refs[row].rowid == lost.chunk.rowid)
    case = Case(world, evidence, settings, ranked, row)
    fields = {"words": ("router",), "absent": ("router",), "nowhere": ("router",), "join": "AND", "hidden": ()}
    false: list[object] = [
        *(notice("absent_words", words=(word,), indexed=False) for word in ("router", "WiFi", "密码")),
        notice("invisible_to_tokenizer", words=("giraffe",), profile="openclaw-2026.3", part_of=()),
        Notice("no_chunk_matches", {}),
        notice("words_left_out", words=("giraffe",), reason="common"),
        trace.BlankQuery(),
        trace.AllBelowGate(1, 0.1, 0.2, 0),
        Notice("not_matched", fields),
    ]
    report = Report()
    case.path = "MEMORY.md"
    for claim in false:
        report.check(claim, case)
    assert len(report.untrue) == len(false), report.counts


def test_json_carries_the_claims_with_their_evidence(small: Callable[[str, str], World]) -> None:
    engine = small("openclaw-2026.3", "none").engine
    (found,) = trace_json.answer(engine.search.search("密码"))["empty"]["claims"]
    assert found.pop("sentence").startswith('Notes hold "密码"')
    assert found == {
        "kind": "invisible_to_tokenizer",
        "words": ["密码"],
        "profile": "openclaw-2026.3",
        "partOf": [],
    }
    evidence = engine.search.gather("did anna move 42")
    said = trace_json.why(engine.search.why(evidence, "MEMORY.md", 1))["claims"]
    assert "words_left_out" in {claim["kind"] for claim in said}


@pytest.mark.soak
@pytest.mark.parametrize("provider", ["builtin", "none"])
@pytest.mark.parametrize("profile", list(profiles.PROFILES))
@pytest.mark.parametrize("name", ["adversarial", "demo", "oracle", "en", "zh"])
def test_nothing_untrue_is_said_at_all(
    name: str, profile: str, provider: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Words and every seventh chunk of all questions; "en" and "zh" are shared workspaces."""
    if name == "adversarial":
        folder = tmp_path / "notes"
        questions = adversarial(folder)
    elif name == "demo":
        folder = demo.materialize(tmp_path / "notes", TODAY)
        questions = [labelled.query for labelled in demo.labelled_queries(TODAY)]
    elif name in ("en", "zh"):
        bank = request.getfixturevalue("memorybank") / name
        folder = bank / "workspaces" / "user-00"
        asked = map(json.loads, (bank / "queries.jsonl").read_text().splitlines())
        questions = [one["question"] for one in asked if one["workspace"] == folder.name]
    else:
        folder = request.getfixturevalue("oracle_workspace")
        questions = ["router", "vlan deploy", "what happened yesterday", "密码", "giraffe", "the of"]
    world = open_world(name, folder, tmp_path / "i.sqlite", profile, provider, questions)
    report, tight = Report(), world.engine.plan.settings.update(TIGHT, "test")
    try:
        run(world, report)
        kinds = [kind for query in questions for kind in check_chunks(Asked(world, query, tight), step=7)]
    finally:
        world.engine.close()
    assert report.untrue == []
    assert kinds
