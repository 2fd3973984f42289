"""Every kind of claim has a checker, every checker can fail, and what is said of whole workspaces is true."""

from __future__ import annotations

import datetime as dt
import importlib.util
import inspect
import json
import pkgutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

import memory_tui
from memory_tui import demo
from memory_tui.core import profiles
from memory_tui.core.errors import MemoryTuiError
from memory_tui.explain import claims, trace_json, verdicts
from memory_tui.explain.counterfactuals import flips
from memory_tui.inbox import findings
from memory_tui.recalls import rerun
from memory_tui.search import trace
from memory_tui.search.rank import rank
from memory_tui.tune.judgments import Label, Query
from tests.harness import (
    inbox_checks,
    measure_checks,
    past,
    qmd_checks,
    recall_checks,
)
from tests.harness.claims import (
    CHECKERS,
    Case,
    Report,
    World,
    adversarial,
    kinds,
    kinds_below,
    open_world,
    run,
    run_files,
)

TODAY = dt.date(2026, 11, 20)
PARTS = {claims.SearchedRange, rerun.Rerun}
"""Dataclasses that are part of a claim and none themselves."""
EVERY = kinds() | past.KINDS | inbox_checks.KINDS | recall_checks.KINDS
EVERY |= measure_checks.KINDS | qmd_checks.KINDS
"""Every kind of claim that anything says."""
SCENES: dict[str, Callable[[Path, pytest.MonkeyPatch], Iterator[tuple[object, Any]]]] = {
    "inbox": lambda place, _: inbox_checks.made(place),
    "recalls": lambda place, _: recall_checks.made(place),
    "measures": lambda place, _: measure_checks.made(place),
    "qmd": lambda place, _: qmd_checks.made(place),
}
"""Memories that are made so that they give rise to claims of certain kinds."""
OF_SCENES = {
    "inbox": inbox_checks.KINDS,
    "recalls": recall_checks.KINDS,
    "measures": measure_checks.KINDS,
    "qmd": qmd_checks.KINDS,
}
"""The kinds that each has to give rise to."""


def test_every_kind_of_claim_has_a_checker() -> None:
    assert set(CHECKERS) == EVERY
    # A finding may stand in any module, also in one that nothing here imports.
    for found in pkgutil.walk_packages(memory_tui.__path__, "memory_tui."):
        spec = importlib.util.find_spec(found.name)
        source = Path(spec.origin).read_text() if spec is not None and spec.origin else ""
        if "(InboxClaim," in source:
            importlib.import_module(found.name)
    said = kinds_below(findings.InboxClaim)
    assert said <= set(CHECKERS), "a sentence without a checker"
    for module in (claims, verdicts, findings, rerun):
        made = {
            kind
            for kind in vars(module).values()
            if inspect.isclass(kind) and issubclass(kind, Struct) and kind.__module__ == module.__name__
        }
        assert made - PARTS - {findings.InboxClaim} <= set(CHECKERS), "a claim without a checker"


def false_of(claim: Any) -> Any:
    """The same claim with other evidence in every field."""
    return replace(claim, **{name: other(getattr(claim, name)) for name in claim.__struct_fields__})


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 3
    if isinstance(value, str):
        return "recommended" if value in profiles.PROFILES and value != "recommended" else value[::-1] or "otherwise"
    if isinstance(value, tuple):
        return tuple(map(other, value)) or ("otherwise",)
    if isinstance(value, Struct):
        return false_of(value)
    return True if value is None else value


def is_true(claim: object, case: object) -> bool:
    """Whether the checker of `claim` finds nothing wrong; it may also stumble over evidence that cannot be."""
    try:
        CHECKERS[type(claim)](claim, case)  # type: ignore[arg-type]
    except (AssertionError, StopIteration, LookupError, OSError, ValueError, TypeError, AttributeError):
        return False
    except (MemoryTuiError, sqlite3.Error, pytest.fail.Exception):
        return False
    return True


@pytest.mark.parametrize("name", list(SCENES))
def test_nothing_untrue_is_said_of_memories_with_a_fault(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each claim is true, and false with other evidence, or its checker would let anything pass."""
    untrue, caught, said = [], set(), set()
    for claim, case in SCENES[name](tmp_path, monkeypatch):
        said.add(type(claim))
        if not is_true(claim, case):
            untrue.append(claim)
        if claim.__struct_fields__ and not is_true(false_of(claim), case):  # type: ignore[arg-type]
            caught.add(type(claim))
    assert untrue == []
    assert {kind for kind in said if kind.__struct_fields__} == caught, "a checker that cannot fail"
    assert said >= OF_SCENES[name]


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


REDUCED = [
    ("openclaw-2026.3", "none"),
    ("openclaw-2026.3", "builtin"),
    ("recommended", "builtin"),
    ("openclaw-2026.9", "none"),
]


@pytest.mark.parametrize(("profile", "provider"), REDUCED)
def test_nothing_untrue_is_said_of_odd_notes(small: Callable[[str, str], World], profile: str, provider: str) -> None:
    world = small(profile, provider)
    world.questions = world.questions[::3]
    report = Report()
    run(world, report, lines=1, with_flips=0)
    run_files(world, report)
    assert report.untrue == []
    assert sum(report.counts.values()) > 60
    assert len(report.counts) >= 6


def test_nothing_untrue_is_said_of_what_would_change_a_verdict(small: Callable[[str, str], World]) -> None:
    world = small("openclaw-2026.3", "builtin")
    world.questions = ["router omada giraffe"]
    world.saved = (
        Query("router omada", (Label("MEMORY.md", 1),)),
        Query("anna router", (Label("memory/same-0.md", 3),)),
    )
    report = Report()
    run(world, report, lines=1, with_flips=1)
    assert report.untrue == []
    assert report.counts["NotAlone"] + report.counts["Flip"] > 10
    assert report.counts["ChangeSet"] > 3
    assert report.counts["SavedEffect"] > 10


def test_an_untrue_claim_is_caught(small: Callable[[str, str], World]) -> None:
    """Claims that were once made, or that are true of another line, fail their checkers."""
    world = small("openclaw-2026.3", "builtin")
    settings = world.engine.plan.settings.update({"query.maxResults": 2, "query.minScore": 0.2}, "test")
    evidence = world.engine.search.gather("router omada")
    ranked = rank(evidence, settings)
    lost = ranked.lost[0]
    row = next(row for row in range(evidence.chunks) if evidence.refs[row].rowid == lost.chunk.rowid)
    case = Case(world, evidence, settings, ranked, row, flip_settings=world.engine.plan.with_profile)
    place = trace.Recalled(1)
    changes = flips(evidence, settings, row, world.engine.plan.with_profile)
    flip = changes.found[0]
    small_set = next(iter(changes.sets), None)
    false: list[object] = [
        *([] if small_set is None else [replace(small_set, place=small_set.place + 1)]),
        place,
        trace.BelowMinScore(0.99, 0.1),
        trace.LoweredByDecay(0.2, 0.1, 10, 0.5),
        trace.BeyondLimit(1, 2),
        claims.StoppedByAlone("decay", 1),
        claims.AbsentWords(("router",)),
        claims.AbsentWords(("WiFi",)),
        claims.AbsentWords(("密码",)),
        claims.InvisibleToTokenizer(("router",), "openclaw-2026.3"),
        claims.InvisibleToTokenizer(("giraffe",), "openclaw-2026.3"),
        claims.NoChunkMatches(),
        claims.NoSingleKnob(recalled=False, ranges=(claims.SearchedRange("query.maxResults", 1, 50, 1),)),
        claims.WordsLeftOut(("giraffe",), "common"),
        claims.WordsLeftOut(("giraffe",), "stop word"),
        trace.BlankQuery(),
        trace.NothingMatched((), "AND"),
        trace.AllBelowGate(1, 0.1, 0.2, 0),
        verdicts.NotMatched(("router",), ("router",), ("router",), "AND"),
        verdicts.NotDelivered(99, 2, 100),
        verdicts.NoSuchFile("x"),
        replace(flip, place=(flip.place or 0) + 1),
        replace(flip, comes_in=(lost.chunk,)),
        replace(flip, accepted=(flip.accepted[0], flip.accepted[0])),
        claims.NoPair((("query.maxResults", 50), ("query.minScore", 0.0))),
        claims.NoRephrasing(("giraffe",)),
        claims.NoRephrasing((), "router giraffe"),
    ]
    report = Report()
    case.path = "MEMORY.md"
    for claim in false:
        report.check(claim, case)
    assert len(report.untrue) == len(false), report.counts


def test_json_carries_the_claims_with_their_evidence(small: Callable[[str, str], World]) -> None:
    engine = small("openclaw-2026.3", "none").engine
    found = trace_json.answer(engine.search.search("密码"))["empty"]["claims"]
    assert [claim["kind"] for claim in found] == ["invisible_to_tokenizer"]
    assert found[0]["words"] == ["密码"]
    assert found[0]["profile"] == "openclaw-2026.3"
    assert found[0]["sentence"].startswith('Notes hold "密码"')
    evidence = engine.search.gather("did anna move 42")
    said = trace_json.why(engine.search.why(evidence, "MEMORY.md", 1))["claims"]
    assert {"words_left_out"} <= {claim["kind"] for claim in said}
    assert all(claim["sentence"].endswith(".") for claim in said)


@pytest.mark.soak
@pytest.mark.parametrize("provider", ["builtin", "none"])
@pytest.mark.parametrize("profile", list(profiles.PROFILES))
@pytest.mark.parametrize("name", ["adversarial", "demo", "oracle", "en", "zh"])
def test_nothing_untrue_is_said_at_all(
    name: str, profile: str, provider: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Lines of all questions, with everything that would change them; "en" and "zh" are shared workspaces."""
    if name == "adversarial":
        folder = tmp_path / "notes"
        questions = adversarial(folder)
    elif name == "demo":
        folder = demo.materialize(tmp_path / "notes", TODAY)
        questions = [labelled.text for labelled in demo.labelled_queries(TODAY)]
    elif name in ("en", "zh"):
        bank = request.getfixturevalue("memorybank") / name
        folder = bank / "workspaces" / "user-00"
        asked = map(json.loads, (bank / "queries.jsonl").read_text().splitlines())
        questions = [one["question"] for one in asked if one["workspace"] == folder.name]
    else:
        folder = request.getfixturevalue("oracle_workspace")
        questions = ["router", "vlan deploy", "what happened yesterday", "密码", "giraffe", "the of"]
    world = open_world(name, folder, tmp_path / "i.sqlite", profile, provider, questions)
    report = Report()
    try:
        # A seed of its own, so that the combinations look at different lines.
        run(world, report, lines=20, with_flips=1, every=2, seed=zlib.crc32(f"{name} {profile} {provider}".encode()))
        if name == "adversarial":
            run_files(world, report)
    finally:
        world.engine.close()
    print(
        f"\n{name} {profile} {provider}: {sum(report.counts.values())} claims, {len(report.untrue)} untrue", flush=True
    )
    assert report.untrue == []
