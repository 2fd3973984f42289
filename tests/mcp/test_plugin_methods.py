"""The private methods that the plugin in OpenClaw's memory slot asks."""

import json

import pytest

from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import QueryError
from memory_tui.mcp import tools
from memory_tui.mcp.server import PRIVATE
from tests.support.mcp import Wire
from tests.support.provider_server import Play, serving
from tests.support.workspace import options_in, put_all, synced

CURATED = """\
# Facts
- Router: Omada ER605 <!-- trigger: router, closet --> <!-- importance: 8 -->
- Deploys go out on Tuesdays <!-- project: github.com/acme/shop -->
- Plain
"""


@pytest.fixture
def workspace(tmp_path):
    log = {"memory/2026-11-18.md": "Moved the printer to the closet\n"}
    return put_all(tmp_path / "notes", {"MEMORY.md": CURATED, **log})


@pytest.fixture
def memory(workspace, tmp_path):
    with synced(options_in(tmp_path, provider="scripted")) as engine:
        yield engine


def ask(memory, method, **given):
    return tools.plugin_answer(f"memory-tui/{method}", memory, given, Stop())


def test_entries_are_listed_by_what_they_are_annotated_with(memory):
    (router,) = ask(memory, "entries", **{"with": "triggers"})["entries"]
    wanted = {"path": "MEMORY.md", "startLine": 2, "endLine": 2, "snippet": "- Router: Omada ER605"}
    assert router.items() >= {**wanted, "triggers": "router; closet", "importance": 8}.items()
    assert router["observedAt"] > 0
    (deploys,) = ask(memory, "entries", **{"with": "project"})["entries"]
    assert deploys["projectKey"] == "github.com/acme/shop"
    with pytest.raises(QueryError):
        ask(memory, "entries", **{"with": "colours"})


def test_hits_show_no_markers_and_name_the_time_of_their_note(memory, workspace):
    first = ask(memory, "search", query="omada router")["results"][0]
    assert first["path"] == "MEMORY.md"
    assert "<!--" not in first["snippet"]
    assert first["observedAt"] == (workspace / "MEMORY.md").stat().st_mtime_ns // 1_000_000
    # It holds several entries, so that nobody can say which of them a trigger belongs to.
    assert "triggers" not in first


def test_a_hit_inside_one_entry_has_its_annotations(tmp_path):
    put_all(tmp_path / "notes", {"MEMORY.md": "- Router: Omada ER605 <!-- importance: 8 -->"})
    with synced(options_in(tmp_path, provider="scripted")) as engine:
        (hit,) = ask(engine, "search", query="omada", sources=["memory"])["results"]
    assert hit["importance"] == 8


def test_a_search_by_words_asks_no_provider(workspace, tmp_path):
    with serving(Play()) as play:
        config = tmp_path / "config.json"
        remote = {"baseUrl": f"{play.url}/v1", "apiKey": "sk-test-0123456789"}
        config.write_text(json.dumps({"provider": "openai", "remote": remote}))
        with synced(options_in(tmp_path, config=str(config), provider="openai")) as engine:
            before = len(play.asked)
            assert before
            found = ask(engine, "search", query="printer", lexicalOnly=True)
            assert len(play.asked) == before
            ask(engine, "search", query="printer")
            assert len(play.asked) == before + 1
    assert found["results"][0]["path"] == "memory/2026-11-18.md"


def test_a_memory_that_is_off_is_said(workspace, tmp_path):
    config = tmp_path / "config.json"
    config.write_text('{"enabled": false}')
    with Engine.open(options_in(tmp_path, config=str(config), provider="scripted")) as engine:
        for only in (True, False):
            assert ask(engine, "search", query="x", lexicalOnly=only)["disabled"] is True


def test_status_is_in_the_words_of_openclaw(memory, workspace):
    wanted = {"backend": "builtin", "files": 2, "workspaceDir": str(workspace), "dirty": False}
    found = ask(memory, "status")
    assert {name: found[name] for name in wanted} == wanted
    assert found["custom"]["profile"] == "recommended"


def test_the_server_answers_them_and_keeps_the_time_that_a_host_allows(workspace, tmp_path):
    place = ["--workspace", str(workspace), "--index", str(tmp_path / "i.sqlite")]
    server = Wire([*place, "--provider", "scripted"]).greet()
    server.search(1)
    calls = zip(PRIVATE, ({"query": "omada"}, {"with": "triggers"}, {}), strict=True)
    for number, (name, given) in enumerate(calls, start=2):
        assert "result" in server.ask(number, name, **given), name
    wrong = server.ask(9, "memory-tui/search", query=" ")
    assert wrong["error"]["message"].startswith("query required")
