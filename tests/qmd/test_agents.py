"""What an agent gets over MCP while QMD answers, and while it does not."""

from __future__ import annotations

import json

import pytest

from memory_tui.core.cancel import Stop
from memory_tui.mcp.tools import AnswerRules, memory_get, memory_search
from memory_tui.qmd.upkeep import Upkeep
from tests.qmd.conftest import Bench


def test_an_agent_gets_qmds_hits_with_rank_and_citation(ready: Bench) -> None:
    with ready.engine() as engine:
        found = memory_search(engine, {"query": "Router VLAN"}, AnswerRules("on")).answer
    assert (found["backend"], found["provider"]) == ("qmd", "qmd")
    [hit] = found["results"]
    assert (hit["path"], hit["rank"], hit["citation"]) == ("MEMORY.md", 1, "MEMORY.md#L4")
    assert "vectorScore" not in hit


def test_where_qmd_fails_the_same_call_is_answered_by_the_index(ready: Bench) -> None:
    ready.stub.behave(search={"error": "Error: boom", "status": 1})
    with ready.engine() as engine:
        engine.indexer.catch_up()
        found = memory_search(engine, {"query": "Router VLAN"}).answer
        failed = engine.backend.fallback()
    assert failed is not None
    assert found["results"]
    assert found["backend"] == "builtin"
    told = found["fallback"]
    assert (told["from"], told.get("to"), told.get("retryAt")) == ("qmd", "builtin", failed.retry_at)
    assert "boom" in told["reason"]


def test_a_group_chat_gets_nothing_of_qmd_by_the_documented_scope(ready: Bench) -> None:
    with ready.engine() as engine:
        found = memory_search(engine, {"query": "Router"}, AnswerRules(session_key="agent:main:tg:group:1")).answer
    assert (found["backend"], found["results"]) == ("qmd", [])
    assert "memory.qmd.scope" in found["notices"][0]


def test_a_hit_outside_of_the_workspace_can_be_read(ready: Bench) -> None:
    folder = ready.folder / "books"
    folder.mkdir()
    (folder / "a.md").write_text("Router in a book\n")
    (ready.folder / "secret.md").write_text("secret\n")
    with ready.engine(**{"qmd.paths": [{"path": str(folder), "name": "books"}]}) as engine:
        Upkeep(engine.backend.client).update(Stop())
        paths = [hit["path"] for hit in memory_search(engine, {"query": "Router"}).answer["results"]]
        assert "qmd/books-main/a.md" in paths
        assert memory_get(engine, {"path": "qmd/books-main/a.md"})["text"] == "Router in a book"
        for path in ("qmd/books-main/../secret.md", "qmd/books-main/b.md", "qmd/nope/a.md"):
            assert memory_get(engine, {"path": path})["status"] != "ok", path


def test_transcripts_are_exported_as_notes_and_stale_ones_go(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    state = ready.folder / "state"
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(state))
    sessions = state / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    line = {"type": "message", "message": {"role": "user", "content": "Where is the zebra?"}}
    (sessions / "s1.jsonl").write_text(json.dumps(line) + "\n")
    exported = ready.folder / "index.sqlite.qmd" / "sessions"
    with ready.engine(**{"qmd.sessions.enabled": True}) as engine:
        Upkeep(engine.backend.client).update(Stop())
        assert (exported / "s1.md").read_text() == "# Session s1\n\nUser: Where is the zebra?\n"
        found = engine.backend.ask("zebra")
        assert found is not None
        assert [hit.source for hit in found.hits] == ["sessions"]
        (exported / "mine.md").write_text("A note of my own\n")
        (sessions / "s1.jsonl").unlink()
        Upkeep(engine.backend.client).update(Stop())
    assert [file.name for file in exported.iterdir()] == ["mine.md"]
