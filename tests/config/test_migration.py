"""What 2026.9's doctor would change is shown key by key, and nothing of it is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_tui.cli import main
from memory_tui.config import load
from memory_tui.config.keys import BY_PATH, RETIRED, retired
from memory_tui.config.release import migrations

pytest_plugins = ("tests.support.config",)

PATH = Path("openclaw.json")
_NEW_KEYS = """
enabled rememberAcrossConversations sources extraPaths multimodal.enabled multimodal.modalities multimodal.maxFileBytes
experimental.sessionMemory provider model fallback remote.baseUrl remote.apiKey remote.headers remote.batch.enabled
inputType queryInputType documentInputType outputDimensionality local.modelPath store.fts.tokenizer
store.vector.enabled store.vector.extensionPath query.maxResults query.minScore cache.enabled memory.citations
"""
NEW_KEYS = _NEW_KEYS.split()
"""Every key that 2026.9 has."""


def steps(text: str) -> dict[str, str]:
    tree = load.parse(text, PATH).tree
    assert tree is not None
    return {step.key: step.to for step in migrations(tree)}


def test_every_key_of_2026_9_is_known_and_none_of_them_is_called_retired() -> None:
    assert set(NEW_KEYS) <= set(BY_PATH)
    assert not [key for key in NEW_KEYS if retired(key)]


def test_the_older_section_moves_and_what_2026_9_has_no_setting_for_goes() -> None:
    found = steps(
        """{agents: {defaults: {memorySearch: {provider: "auto", chunking: {tokens: 200}, chunkSize: 300, maxResults: 4,
        query: {minScore: 0.1, hybrid: {vectorWeight: 1}}, sync: {watchDebounceMs: 5}, cache: {maxEntries: 9},
        remote: {batch: {wait: false, enabled: true}, nonBatchConcurrency: 2}, local: {contextSize: 5},
        store: {path: "x", fts: {tokenizer: "trigram"}}}}}}"""
    )
    old = "agents.defaults.memorySearch"
    assert found == {
        old: "memory.search",
        f"{old}.provider": "memory.search.provider",
        f"{old}.maxResults": "memory.search.query.maxResults",
        **dict.fromkeys(
            [
                f"{old}.{key}"
                for key in (
                    "chunking",
                    "chunkSize",
                    "query.hybrid",
                    "sync",
                    "cache.maxEntries",
                    "remote.batch.wait",
                    "remote.nonBatchConcurrency",
                    "local.contextSize",
                    "store.path",
                )
            ],
            "",
        ),
    }


def test_a_value_that_is_at_the_new_place_wins() -> None:
    text = """{memory: {search: {query: {maxResults: 9}}}, memorySearch: {maxResults: 3},
    agents: {entries: {a: {memorySearch: {maxResults: 3, store: {driver: "sqlite"}}}}}}"""
    assert steps(text) == {
        "memorySearch": "memory.search",
        "memorySearch.maxResults": "",
        "agents.entries.a.memorySearch": "agents.entries.a.memory.search",
        "agents.entries.a.memorySearch.maxResults": "agents.entries.a.memory.search.query.maxResults",
        "agents.entries.a.memorySearch.store.driver": "",
    }


def test_qmd_goes_and_what_it_searched_stays_searched() -> None:
    text = '{memory: {backend: "qmd", qmd: {paths: [{path: "~/x"}], sessions: {enabled: true}}, search: {qmd: {}}}}'
    found = steps(text)
    assert found["memory.backend"] == found["memory.qmd"] == found["memory.search.qmd"] == ""
    assert found["memory.qmd.paths"] == "memory.search.extraPaths"
    assert "sources" in found["memory.qmd.sessions.enabled"]


@pytest.mark.parametrize("text", ["{}", "{memory: {search: {query: {minScore: 0.2}}}}", "{memory: 3}", "{agents: []}"])
def test_nothing_to_change(text: str) -> None:
    assert steps(text) == {}


@pytest.mark.parametrize("key", sorted(RETIRED))
def test_a_retired_key_in_the_new_section_is_named_once_with_its_line(key: str) -> None:
    leaf: object = {"tokens": 7} if key == "chunking" else 7
    for part in reversed(key.split(".")):
        leaf = {part: leaf}
    text = json.dumps({"memory": {"search": leaf}})
    said = [found for found in load.parse(text, PATH).problems if "retired" in found.message]
    assert len(said) == 1
    assert said[0].key.startswith(f"memory.search.{key}")
    assert "openclaw doctor --fix" in said[0].used


def test_the_same_keys_are_no_mistake_in_the_older_section() -> None:
    text = "{agents: {defaults: {memorySearch: {chunking: {tokens: 300}, cache: {maxEntries: 7}}}}}"
    assert load.parse(text, PATH).problems == ()


def test_the_command_shows_the_steps_and_leaves_the_file(
    write: Callable[[object], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("{agents: {defaults: {\n memorySearch: {chunking: {tokens: 300}}}}}")
    before = path.read_bytes()
    assert main.main(["config"]) == 0
    shown = capsys.readouterr().out
    assert "line 2: agents.defaults.memorySearch moves to memory.search: " in shown
    assert "agents.defaults.memorySearch.chunking is removed: " in shown
    assert "Retired in 2026.9: chunks are 400 tokens with 80 repeated." in shown
    assert main.main(["config", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [step["to"] for step in found["migrations"]] == ["memory.search", ""]
    assert next(row for row in found["values"] if row["key"] == "store.path")["retired"]
    assert path.read_bytes() == before
