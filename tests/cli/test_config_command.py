"""`memory-tui config`, `--agent`, and a memory that is switched off."""

import json
from pathlib import Path

import pytest

from memory_tui.config.settings import BY_PATH
from tests.support.workspace import put

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def run(home, command, monkeypatch):
    monkeypatch.chdir(home)
    return command


@pytest.fixture
def fleet(home, write):
    """Two agents with notes of their own; the second one has its own settings, the third one no memory search."""
    for name in ("workspace", "workspace-coder", "workspace-mute"):
        put(home / ".openclaw" / name, "MEMORY.md", text=f"# Notes of {name}\nThe router is an Omada ER605\n")
    return write("""// kept
{agents: {
  defaults: {memorySearch: {provider: "none", query: {minScore: 0.2}}},
  list: [
    {id: "main"},
    {id: "coder", memorySearch: {query: {minScore: 0, maxResults: 1}}},
    {id: "mute", memorySearch: {enabled: false}},
  ]}}""")


def values(out):
    return {row["key"]: row for row in json.loads(out)["values"]}


def test_every_documented_key_is_listed_without_any_file(run):
    code, out, err = run("config", "--json")
    assert (code, err) == (0, "")
    found = values(out)
    assert set(found) == set(BY_PATH)
    for key, row in found.items():
        assert row["meaning"], key
        assert row["takesEffect"] == (row["effect"] == "takes effect"), key
        assert row["places"] == []
    assert found["query.minScore"]["value"] == 0
    assert found["query.minScore"]["origin"] == "profile recommended"
    assert found["cache.maxEntries"]["value"] == 50_000
    whole = json.loads(out)
    assert (whole["kind"], whole["agent"], whole["problems"]) == ("none", "main", [])


def test_a_value_tells_file_key_line_and_column(run, fleet):
    whole = json.loads(run("config", "--json", "--agent", "coder")[1])
    row = {row["key"]: row for row in whole["values"]}["query.minScore"]
    assert (row["value"], row["default"], row["written"], row["takesEffect"]) == (0, 0.35, True, True)
    place = {"file": str(fleet), "path": "agents.list[1].memorySearch.query.minScore", "line": 6, "column": 52}
    assert row["places"] == [place]
    found = (whole["agent"], whole["layout"], whole["profile"])
    assert found == ("coder", "agents.defaults.memorySearch", "openclaw-2026.3")
    agents = [(agent["id"], agent["default"]) for agent in whole["agents"]]
    assert agents == [("main", True), ("coder", False), ("mute", False)]
    assert whole["workspace"].endswith("workspace-coder")
    assert whole["openclawIndex"].endswith(str(Path("memory", "coder.sqlite")))


def test_the_listing_for_people_names_agents_problems_and_values(run, write):
    write(
        '{agents: {defaults: {memorySearch: {query: {minScore: 2},\n nonsense: 1, model: "\\u001b[2J"}},'
        ' list: [{id: "a"}, {id: "b"}]}}'
    )
    code, out, err = run("config")
    assert (code, err) == (0, "")
    assert "a (default, " in out
    assert "b (" in out
    assert "query.minScore goes from 0 to 1; 2 is outside. (openclaw.json line 1" in out
    assert "nonsense is not a documented setting. (openclaw.json line 2" in out
    assert "query.minScore = 0.35  (default)" in out
    assert "Takes effect." in out
    assert "\x1b" not in out


def test_secrets_are_never_printed(run, write, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("MY_URL", f"https://{KEY}@host")
    remote = {"apiKey": KEY, "headers": {"Authorization": f"Bearer {KEY}", "x": "${MY_KEY}"}}
    remote["baseUrl"] = f"https://me:{KEY}@host/v1?api-key={KEY}&a=1"
    search = {"provider": "none", "query": {"minScore": 7}, "remote": remote}
    other = {"remote": {"apiKey": 7, "headers": [KEY], "baseUrl": "${MY_URL}"}}
    agents = [{"id": "main"}, {"id": "b", "memorySearch": other}]
    write(
        {
            "agents": {"defaults": {"memorySearch": search}, "list": agents},
            "memory": {"qmd": {"scope": {"secret": KEY}}},
            "plugins": {"entries": {"active-memory": {"config": {"apiKey": KEY}}}},
        }
    )
    for agent in ("main", "b"):
        for form in ((), ("--json",)):
            code, out, err = run("config", "--agent", agent, *form)
            assert code == 0
            assert KEY not in out + err
    found = values(run("config", "--json")[1])
    assert found["remote.apiKey"]["value"] == "set, from the file itself"
    assert found["remote.headers"]["value"]["x"] == "set, from the environment variable MY_KEY"
    assert found["remote.baseUrl"]["value"] == "https://***host/v1?api-key=***&a=1"
    assert found["plugins.entries.active-memory"]["value"] == "set"


def test_an_agent_has_its_own_notes_settings_and_index(run, fleet):
    hits = {}
    for agent in ("main", "coder"):
        code, out, err = run("search", "omada router", "--json", "--explain", "--agent", agent)
        assert code == 0, err
        hits[agent] = json.loads(out)
    assert "workspace-coder" in hits["coder"]["results"][0]["snippet"]
    assert hits["coder"]["trace"]["settings"]["query.maxResults"]["value"] == 1
    assert "openclaw.json:6" in hits["coder"]["trace"]["settings"]["query.maxResults"]["origin"]
    status = json.loads(run("status", "--json", "--agent", "coder")[1])
    assert status["workspaceDir"].endswith("workspace-coder")
    assert (status["agentId"], status["agents"]) == ("coder", ["main", "coder", "mute"])
    assert "coder, of main, coder, mute" in run("status", "--agent", "coder")[1]
    first = run("get", "MEMORY.md", "--agent", "coder")[1].split("\n")[0]
    assert (status["files"], first) == (1, "# Notes of workspace-coder")
    del fleet


def test_a_memory_that_is_switched_off_is_not_searched_but_can_be_looked_at(run, fleet):
    for command in (["search", "omada"], ["index"], ["search", "--stdin"]):
        code, out, err = run(*command, "--agent", "mute")
        assert (code, out) == (2, "")
        assert "disabled by the configuration" in err
        assert f"line 7 of {fleet}" in err
        assert "Set it to true" in err
    code, out, _ = run("status", "--agent", "mute")
    assert code == 0
    assert "Memory search is disabled" in out
    assert run("get", "MEMORY.md", "--agent", "mute")[0] == 0
    assert run("why", "--file", "MEMORY.md", "--agent", "mute")[0] == 0
    assert values(run("config", "--json", "--agent", "mute")[1])["enabled"]["value"] is False
