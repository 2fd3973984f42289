"""Codex's memory as a workspace: all of its parts are searched, and what is added is a note that Codex takes up."""

import datetime as dt
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.cli import main
from memory_tui.hosts import registry

NAME = re.compile(r"extensions/ad_hoc/notes/\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-[a-z0-9][a-z0-9-]{0,79}\.md")
"""The names that Codex 0.169.0 takes."""


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "codex" / "memories"
    (folder / "rollout_summaries").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Task Group: release\n\n## Task 1: Tag\n\n- Tags begin with v.\n")
    (folder / "memory_summary.md").write_text("# User profile\n\nPrefers the ferry from pier 3.\n")
    (folder / "raw_memories.md").write_text("# Raw\n\nThe bassoon is in the attic.\n")
    (folder / "rollout_summaries" / "2026-11-02T10-00-00-AbCd-router.md").write_text("# Router\n\nThe Omada moved.\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def run(capsys, *words):
    assert main.main([*words, "--json", "--provider", "none"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("chosen", ["--codex", "--workspace"])
def test_every_part_is_searched(chosen, memory, capsys):
    words = ["--codex"] if chosen == "--codex" else ["--workspace", str(memory)]
    wanted = {
        "tags begin": "MEMORY.md",
        "ferry pier": "memory_summary.md",
        "bassoon attic": "raw_memories.md",
        "Omada moved": "rollout_summaries/2026-11-02T10-00-00-AbCd-router.md",
    }
    for query, path in wanted.items():
        assert run(capsys, "search", query, *words)["results"][0]["path"] == path  # type: ignore[index]


def test_what_is_remembered_is_a_note_that_codex_takes_up(memory, capsys):
    before = {path: path.read_bytes() for path in memory.rglob("*.md")}
    for words in (["remember", "The plumber is Mrs Ödön."], ["promote", "memory_summary.md:3"]):
        assert main.main([*words, "--workspace", str(memory), "--provider", "none", "--yes"]) == 0
        capsys.readouterr()
    added = sorted(path for path in memory.rglob("*.md") if path not in before)
    names = [path.relative_to(memory).as_posix() for path in added]
    assert all(NAME.fullmatch(name) for name in names), names
    assert {path.read_text() for path in added} == {
        "The plumber is Mrs Ödön.\n",
        "Prefers the ferry from pier 3.\n\n(from memory_summary.md)\n",
    }
    assert all(path.read_bytes() == data for path, data in before.items()), "what Codex makes stays as it is"


@given(st.text(max_size=200))
def test_every_text_has_a_name_that_codex_takes(text):
    assert NAME.fullmatch(registry.codex_note(text, dt.datetime(2026, 11, 23, 4, 5, 6)))
