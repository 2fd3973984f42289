"""Everything that is said of lines and of whole workspaces is tried by brute force, and found true."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_tui.explain import trace_json
from tests.harness.claims import World, adversarial, open_world, run

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
    counts = run(world)
    assert sum(counts.values()) > 50
    assert len(counts) >= 3


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
