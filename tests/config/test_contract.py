"""Configurations as OpenClaw's documentation and its hosts have them: every key is honoured, or named as unused."""

import datetime as dt
import json
from typing import Any

import pytest

from memory_tui import plan as plans
from memory_tui.approval import Approvals
from memory_tui.config.settings import BY_PATH, of_backend
from memory_tui.engine.engine import Engine
from memory_tui.errors import SettingError
from memory_tui.notes import budget
from memory_tui.openclaw import flush
from memory_tui.plan import Options
from memory_tui.providers import registry
from memory_tui.tui.note_facts import today_of
from tests.support.config_text import parsed
from tests.support.mcp import Wire
from tests.support.provider_server import Play, serving
from tests.support.workspace import put

# Rewritten from the documentation ("Memory", "Configuration reference", "Models", "Sandboxing") and recorded hosts.
PROXY: dict[str, Any] = {
    "models": {"providers": {"openai": {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "${PROXY_KEY}", "models": []}}},
    "agents": {"defaults": {"memorySearch": {"provider": "openai", "model": "text-embedding-3-small"}}},
}
NOT_ASKED, NO_PLUGIN = "names a provider that memory-tui does not ask", "has no memory plug-in"
OLDER = "{agents: {defaults: {memorySearch: {%s}}}}"
FILES: dict[str, tuple[Any, str]] = {
    "a proxy for everything": (PROXY, ""),
    "Gemini by its own id": (
        "{models: {providers: {google: {apiKey: 'AIza-shared'}}},"
        " agents: {defaults: {memorySearch: {provider: 'gemini', fallback: 'none'}}}}",
        "",
    ),
    "Bedrock takes over": (OLDER % "provider: 'openai', fallback: 'bedrock'", f"fallback {NOT_ASKED}"),
    "a provider with a wire of its own": (
        "{models: {providers: {house: {baseUrl: 'http://127.0.0.1:9/v1', api: 'anthropic-messages'}}},"
        " memory: {search: {provider: 'house'}}}",
        f"provider {NOT_ASKED}",
    ),
    "transcripts without the flag": (OLDER % "sources: ['memory', 'sessions']", "experimental.sessionMemory has to"),
    "entries of LanceDB": (
        "{plugins: {slots: {memory: 'memory-lancedb'}, entries: {'memory-lancedb': {enabled: true, config: {"
        "embedding: {apiKey: '${OPENAI_API_KEY}', model: 'text-embedding-3-small'}, dbPath: '~/memories',"
        " autoCapture: true, storageOptions: {region: 'eu-west-1'}}}}}, agents: {defaults: {}}}",
        "asks another memory plug-in",
    ),
    "no plug-in": ("{plugins: {slots: {memory: 'none'}}, agents: {defaults: {}}}", NO_PLUGIN),
    "an older place": ("{memorySearch: {provider: 'openai'}}", "at the top of the file is an older place"),
    "plug-ins off": ("{plugins: {entries: {'memory-core': {enabled: false}}}, agents: {defaults: {}}}", NO_PLUGIN),
    "a tool denied": (
        "{tools: {deny: ['exec', 'memory_search']}, agents: {defaults: {}}}",
        "may not use memory_search",
    ),
    "a tool denied to one agent": (
        "{agents: {list: [{id: 'main', tools: {deny: ['group:memory']}}]}}",
        "may not use memory_search",
    ),
    "the host of 2026.9": (
        "{gateway: {mode: 'local', bind: 'loopback'}, agents: {defaults: {model: 'scripted/scripted-1'}},"
        " models: {providers: {scripted: {baseUrl: 'http://127.0.0.1:9/v1', api: 'openai-completions'}}},"
        " plugins: {slots: {memory: 'memory-tui'}, entries: {'memory-tui': {enabled: true, config: {"
        "profile: 'recommended'}}}}, memory: {search: {provider: 'none', query: {maxResults: 8}}}}",
        "",
    ),
}


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PROXY_KEY", "sk-of-the-proxy")
    put(tmp_path / "notes", "MEMORY.md", text="# Facts\n- Router: Omada ER605\n")


@pytest.fixture
def asked(tmp_path):
    def make(tree, **more):
        path = tmp_path / "openclaw.json"
        path.write_text(tree if isinstance(tree, str) else json.dumps(tree))
        return Options(workspace=str(tmp_path / "notes"), config=str(path), index=str(tmp_path / "i.sqlite"), **more)

    return make


def where(options):
    return ["--workspace", str(options.workspace), "--config", str(options.config), "--index", str(options.index)]


def settings(options):
    plan = plans.plan(options)
    return plans.settings(plan, Approvals(plan.workspace))


def login(tmp_path, agent, profiles):
    path = tmp_path / "state" / "agents" / agent / "agent" / "auth-profiles.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"version": 1, "profiles": profiles}))


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_a_real_file_is_passed_over_in_silence(name, asked, command):
    tree, wanted = FILES[name]
    options = asked(tree)
    said = " ".join(problem.message for problem in plans.choose(options).config.problems)
    assert (wanted in said, bool(said)) == (True, bool(wanted))
    for words in (["config"], ["status"], ["doctor", "--all"]) if wanted else ():
        out = " ".join(command(*where(options), "--provider", "none", *words)[1].split())
        assert wanted in out or (words[0] == "doctor" and "values not used as written" in out), words


def test_a_key_and_an_address_that_everything_shares_are_used_and_forecast(asked, printed):
    with serving(Play()) as play:
        tree = json.loads(json.dumps(PROXY))
        tree["models"]["providers"]["openai"]["baseUrl"] = f"{play.url}/v1"
        tree["models"]["providers"]["openai"]["headers"] = {"X-Team": "notes"}
        options = asked(tree)
        with Engine.open(options) as engine:
            assert engine.providers.forecast().host == play.url.removeprefix("http://")
            assert play.asked == []
            assert engine.index.sync().error == ""
        headers = play.asked[0].headers
        assert headers["Authorization"] == "Bearer sk-of-the-proxy"
        assert headers["X-Team"] == "notes"
    out = printed(*where(options), "config", "--json")
    assert "sk-of-the-proxy" not in out
    rows = {row["key"]: row for row in json.loads(out)["values"]}
    assert rows["models.providers.openai.baseUrl"]["takesEffect"] is True
    assert rows["models.providers.openai.apiKey"]["value"].startswith("set, from")
    assert rows["models.providers.openai.headers"]["value"] == {"X-Team": "set, from the file itself"}


@pytest.mark.parametrize(
    ("search", "providers", "served"),
    [
        ("provider: 'openai-compatible', model: 'm', remote: {baseUrl: 'URL/v1/', apiKey: 'k'}", "", "m"),
        ("provider: 'lmstudio', remote: {baseUrl: 'URL', apiKey: 'k'}", "", "text-embedding-nomic-embed-text-v1.5"),
        ("provider: 'llama-cpp', model: 'm'", "'llama-cpp': {baseUrl: 'URL/v1', apiKey: 'k'}", "m"),
        ("provider: 'deepinfra'", "deepinfra: {baseUrl: 'URL/v1', apiKey: 'k'}", "BAAI/bge-m3"),
        (
            "provider: 'house', model: 'house/m'",
            "house: {baseUrl: 'URL/v1', api: 'openai-completions', apiKey: 'k'}",
            "m",
        ),
        ("provider: 'house', model: 'm'", "house: {baseUrl: 'URL/v1', headers: {Authorization: 'Bearer k'}}", "m"),
        (
            "provider: 'gpu', model: 'm'",
            "gpu: {baseUrl: 'URL', api: 'ollama', apiKey: 'k'}, ollama: {apiKey: 'of-another-host'}",
            "m",
        ),
    ],
)
def test_a_provider_with_a_known_wire_answers_by_its_documented_name(search, providers, served, asked):
    with serving(Play()) as play:
        text = f"{{models: {{providers: {{{providers}}}}}, memory: {{search: {{{search}}}}}}}"
        with Engine.open(asked(text.replace("URL", play.url))) as engine:
            assert engine.index.sync().error == ""
            assert engine.search.search("router").rules.mode == "hybrid"
        assert {one.body["model"] for one in play.asked} == {served}
        assert {one.headers["Authorization"] for one in play.asked} == {"Bearer k"}


def test_a_key_of_one_address_or_provider_is_not_sent_to_another(asked):
    account = {"baseUrl": "https://proxy.example/v1", "apiKey": "sk-of-the-proxy", "headers": {"X-Team": "notes"}}
    search = {"provider": "openai", "remote": {"baseUrl": "https://elsewhere.example/v1"}}
    found = settings(asked({"models": {"providers": {"openai": account}}, "memory": {"search": search}}))
    found = found.with_shared("openai")
    assert (found.base_url, found.spare_keys, found.headers) == ("https://elsewhere.example/v1", (), {})
    found = settings(asked(PROXY, provider="voyage")).with_shared("voyage")
    assert (found.base_url, found.api_keys, found.spare_keys) == ("", (), ())


def test_a_provider_that_is_not_asked_is_named_and_words_answer(asked, printed):
    options = asked({"memory": {"search": {"provider": "unheard-of"}}})
    out = [printed(*where(options), *words) for words in (["index"], ["search", "router"], ["status"])]
    assert "names unheard-of, which memory-tui does not ask" in " ".join(out[-1].split())


def test_the_order_of_keys_is_openclaws(asked, tmp_path, monkeypatch):
    def key(section):
        tree = json.loads(json.dumps(PROXY))
        tree["agents"]["defaults"]["memorySearch"].update(section)
        wire = registry.wire(registry.row("openai"), settings(asked(tree)).with_shared("openai"))
        return wire.auth[0]["Authorization"].removeprefix("Bearer ") if wire.auth else ""

    assert key({}) == "sk-of-the-proxy"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-variable")
    assert key({}) == "sk-of-the-variable"
    oauth = {"type": "oauth", "provider": "openai", "access": "never"}
    key_of = {"type": "api_key", "provider": "openai", "key": "sk-of-the-login"}
    profiles = {"openai:oauth": oauth, "openai:default": key_of}
    login(tmp_path, "main", profiles)
    assert key({}) == "sk-of-the-login"
    assert key({"remote": {"apiKey": "sk-of-the-search"}}) == "sk-of-the-search"


@pytest.mark.parametrize(
    "key", [path for path, key in BY_PATH.items() if key.kind != "knob" and of_backend(path) is None]
)
def test_set_says_of_every_listed_key_that_it_does_not_take_how_it_is_set(key, tmp_path):
    with pytest.raises(SettingError) as caught:
        plans.choose(Options(workspace=str(tmp_path / "notes"), changes=((key, "1"),)))
    assert key in caught.value.message
    assert "--" in caught.value.next_step


@pytest.mark.parametrize(
    ("sandbox", "per_agent", "key", "flushes"),
    [
        ({}, {}, "agent:main:main", True),
        ({"mode": "all", "workspaceAccess": "ro"}, {}, "agent:main:main", False),
        ({"mode": "all", "workspaceAccess": "rw"}, {"workspaceAccess": "ro"}, "agent:main:main", False),
        ({"mode": "non-main", "workspaceAccess": "ro"}, {}, "agent:main:main", True),
        ({"mode": "non-main", "workspaceAccess": "ro"}, {}, "agent:main:telegram:group:1", False),
    ],
)
def test_a_sandbox_that_may_not_write_is_not_flushed(sandbox, per_agent, key, flushes):
    tree: dict[str, Any] = {"agents": {"defaults": {"sandbox": sandbox}, "list": [{"id": "main"}]}}
    if per_agent:
        tree["agents"]["list"][0]["sandbox"] = per_agent
    assert flush.writable(parsed(json.dumps(tree)), key) is flushes


OFF = {"agents": {"defaults": {"memorySearch": {"enabled": False}}}}


def test_a_prompt_without_memory_search_has_no_rule_to_search(asked, command):
    _, out, err = command(*where(asked(OFF)), "prompt", "--json")
    found = json.loads(out)
    assert found["section"] == ""
    assert "enabled is false" in found["disabled"]
    assert "enabled is false" in err
    assert [file["path"] for file in found["files"]] == ["MEMORY.md"]


@pytest.mark.parametrize("layout", ["agents.defaults.memorySearch", "memory.search"])
@pytest.mark.parametrize("limit", [20_000, 1000])
def test_a_prompt_holds_what_the_budget_says_that_hosts_read(layout, limit, asked, tmp_path, printed):
    text = "".join(f"- fact {number:05} 🦛\n" for number in range(2500))
    (tmp_path / "notes" / "MEMORY.md").write_text(text)
    tree: dict[str, Any] = {"agents": {"defaults": {"bootstrapMaxChars": limit}}}
    at = tree
    for name in layout.split("."):
        at = at.setdefault(name, {})
    at["provider"] = "none"
    options = asked(tree)
    (file,) = json.loads(printed(*where(options), "prompt", "--json"))["files"]
    host = budget.hosts(plans.choose(options).config, tmp_path)[0]
    cut = budget.measure(text.encode(), host).cut
    assert file["cut"] is True
    kept = budget.shares(len(text.encode("utf-16-le")) // 2 - 1, limit, "MEMORY.md", newer=host.newer)[0]
    assert f"kept {kept}+" in file["text"]
    lines = text.split("\n")
    head = "\n".join([*lines[: cut.line - 1], lines[cut.line - 1][: cut.column - 1]])
    assert file["text"].startswith(head + "\n\n[...truncated, read MEMORY.md")
    tail = "\n".join([lines[cut.until_line - 1][cut.until_column - 1 :], *lines[cut.until_line :]]).rstrip("\n")
    assert file["text"].endswith(f"…\n\n{tail}")
    assert len(file["text"].encode("utf-16-le")) // 2 <= limit + 200


def test_a_server_without_memory_search_does_not_tell_its_agent_to_search(asked):
    wire = Wire(where(asked(OFF)))
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
    said = wire.ask(0, "initialize", **client)["result"]["instructions"]
    assert "enabled is false" in said
    assert "search the memory files" not in said
    wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    note = wire.ask(3, "tools/call", name="memory_get", arguments={"path": "MEMORY.md"})
    for answer in (wire.search(2), note):
        assert answer["result"]["structuredContent"]["disabled"] is True


def test_a_day_is_the_users_day(asked, tmp_path):
    for day in (22, 23):
        put(tmp_path / "notes" / "memory", f"2026-11-{day}.md", text=f"# Day\n\nbread {day}\n")
    now = dt.datetime(2026, 11, 22, 23, 30, tzinfo=dt.UTC).timestamp()
    for zone, today, old in (("Asia/Tokyo", 23, 8.5 / 24), ("America/Chicago", 22, 17.5 / 24)):
        tree = {"agents": {"defaults": {"userTimezone": zone}}, "memory": {"search": {"provider": "none"}}}
        with Engine.open(asked(tree, now=now, changes=(("profile", "recommended"),))) as engine:
            engine.index.sync()
            hit = engine.search.search("bread today").recalled[0]
            assert hit.chunk.path == f"memory/2026-11-{today}.md"
            assert hit.age_days == pytest.approx(old, abs=1e-6)
            plan = engine.notes.curator.plan
            assert [file.path for file in plan.remember("a line").files] == [f"memory/2026-11-{today}.md"]
            assert today_of(engine.plan) == dt.date(2026, 11, today)
