"""What an agent gets over MCP while QMD answers, and while it does not."""

from __future__ import annotations

import json

import pytest

from memory_tui.cli import main
from memory_tui.core.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.mcp.host import ServedMemory, ServerOptions
from memory_tui.mcp.tools import AnswerRules, memory_get, memory_search
from memory_tui.qmd.upkeep import Upkeep
from memory_tui.recalls import recall_log
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
        engine.index.catch_up()
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


def test_what_qmd_gave_is_logged_by_rank_and_said_to_be_beyond_rebuilding(
    ready: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    served = ServedMemory(lambda: Engine.open(ready.options()), ServerOptions(log=True, max_injected_chars=40))
    served.search({"query": "Router"}, "", "an agent", Stop())
    ready.stub.behave(search={"error": "Error: boom", "status": 1})
    served.search({"query": "Tomatoes"}, "", "an agent", Stop())
    served.close()
    ready.stub.behave()
    place = recall_log.recall_log_path(ready.workspace)
    of_qmd, instead = recall_log.read(place).entries
    assert (of_qmd.backend, of_qmd.provider, instead.backend) == ("qmd", "qmd", "builtin")
    assert [(hit.rank, hit.vector_score, hit.cut) for hit in of_qmd.hits] == [(1, 0.0, False), (2, 0.0, True)]
    assert {hit.path for hit in of_qmd.hits} == {"MEMORY.md", "memory/2026-11-01.md"}
    assert "VLAN" not in place.read_text()
    words = ["--workspace", str(ready.workspace), "--index", str(ready.folder / "index.sqlite"), "--provider", "none"]
    words += ["--backend", "qmd", "--set", f"qmd.command={ready.stub.program}", "--set", "qmd.limits.timeoutMs=20000"]

    def said(*more: str) -> str:
        assert main.main([*words, "recall-log", *more]) == 0
        return capsys.readouterr().out

    listed = said()
    assert "2 hits of QMD" in listed
    assert "1 hit in QMD's place" in listed
    again = said(of_qmd.id)
    assert "cannot be rebuilt: QMD gave it" in again
    assert "then 2nd of QMD, now" in again
    assert json.loads(said(of_qmd.id, "--json"))["rebuilt"] is False
    with ready.engine() as engine:
        engine.backend.probe()
    why = said(of_qmd.id, "--why", "memory/garden.md:3")
    assert "By the log it was not delivered." in why
    assert "QMD, asked again now: The note lacks the word Router" in why
    assert "cannot be rebuilt" not in said(instead.id)
