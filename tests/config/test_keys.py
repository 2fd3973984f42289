"""The documented tree of OpenClaw's memory, key by key: each one changes something here, or `config` says why not."""

import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.backends.lancedb import Memories
from memory_tui.backends.qmd import QmdOptions
from memory_tui.cli.admin import rows
from memory_tui.config import openclaw_release, settings
from memory_tui.config.settings import BY_KEY, LANCEDB, PROFILES, QMD, TUNE_KEYS, Value, compose, find_knob, parse
from memory_tui.engine.engine import Engine
from memory_tui.errors import ConfigError, SettingError
from memory_tui.notes import budget
from memory_tui.openclaw import compare, flush, prompt
from memory_tui.plan import Options
from memory_tui.providers import registry
from tests.support.workspace import put, put_all, synced

SEARCH, TOP = "agents.defaults.memorySearch", ""
SEARCH_PATHS = frozenset(key.path for key in settings.SEARCH_KEYS)
KINDS: dict[str, object] = {
    "whole": 9,
    "text": "9m",
    "path": "~/elsewhere",
    "secret": "sk-abcdefgh",
    "headers": {"X-Team": "notes"},
    "size": "3mb",
    "zone": "Asia/Tokyo",
    "any": [{"path": "more", "name": "more"}],
}
SPECIAL: dict[str, object] = {
    "sources": ["memory", "sessions"],
    "extraPaths": [{"path": "more", "pattern": "**/a*.md"}],
    "multimodal.modalities": ["image"],
    "provider": "none",
    "remote.baseUrl": "http://127.0.0.1:9/v1",
    "fallback": "builtin",
    "outputDimensionality": 768,
    "store.driver": "sqlite",
    "store.path": "~/elsewhere/{agentId}.sqlite",
    "store.fts.tokenizer": "trigram",
    "chunking.tokens": 20,
    "chunking.overlap": 5,
    "sync.watchDebounceMs": 10,
    "sync.intervalMinutes": 1,
    "sync.sessions.deltaBytes": 10,
    "sync.sessions.deltaMessages": 5,
    "query.maxResults": 1,
    "query.minScore": 0.5,
    "query.hybrid.vectorWeight": 0.1,
    "query.hybrid.textWeight": 0.9,
    "query.hybrid.candidateMultiplier": 1,
    # Without a sign of its age a host is the newest, where both are on.
    "query.hybrid.mmr.enabled": False,
    "query.hybrid.temporalDecay.enabled": False,
    "query.hybrid.mmr.lambda": 0.1,
    "query.hybrid.temporalDecay.halfLifeDays": 2,
    "cache.maxEntries": 1,
    "agents.defaults.workspace": "~/notes/memory",
    "agents.defaults.contextInjection": "never",
    "agents.defaults.sandbox.mode": "all",
    "agents.defaults.sandbox.workspaceAccess": "rw",
    "auth.order": {"openai": ["openai:second"]},
    "meta.lastTouchedVersion": "2026.3.13",
    "plugins.slots.memory": "memory-tui",
    "memory.qmd.scope": {"default": "allow"},
    f"{LANCEDB}embedding.provider": "voyage",
    f"{LANCEDB}captureMaxChars": 900,
    f"{LANCEDB}recallMaxChars": 900,
    **{f"models.providers.{account}.baseUrl": "http://127.0.0.1:9/v1" for account in registry.ACCOUNTS.values()},
}


def _other(key):
    if key.path in SPECIAL:
        return SPECIAL[key.path]
    if isinstance(key.default, bool) or key.kind == "switch":
        return not key.default
    return next(each for each in key.choices if each != key.default) if key.kind == "choice" else KINDS[key.kind]


DOCUMENTED = {key.path: _other(key) for key in (*settings.SEARCH_KEYS, *settings.FILE_KEYS)}

NOTES = {
    "MEMORY.md": "The router is an Omada ER605\n",
    "memory/2026-01-02.md": "Router rebooted, router VLAN 10 set\n",
    "memory/again.md": "Router rebooted, router VLAN 10 set again\n",
    "memory/long.md": "".join(f"line {i} about the router and its VLAN\n" for i in range(40)),
    "more/a.md": "An extra note about the router\n",
    "more/b.md": "Another one\n",
}


class House:
    """A workspace with notes, a session, and a configuration that can be written again and again."""

    def __init__(self, home, write, monkeypatch):
        self.home, self._write, self.monkeypatch = home, write, monkeypatch
        self.workspace = home / "notes"
        self._count = 0
        put_all(self.workspace, NOTES)
        put(home / ".openclaw/agents/main/sessions", "s.jsonl", text="")

    def options(self, values, provider="scripted"):
        tree: dict[str, Any] = {"agents": {"defaults": {"workspace": str(self.workspace)}}}
        for (section, key), value in values.items():
            *above, last = [*section.split("."), *key.split(".")] if section else key.split(".")
            at = tree
            for name in above:
                at = at.setdefault(name, {})
            at[last] = value
        self._count += 1
        places = {"config": str(self._write(tree)), "index": str(self.home / f"{self._count}.sqlite")}
        return Options(**places, provider=provider, now=1_795_000_000.0)


@pytest.fixture
def house(home, write, monkeypatch):
    return House(home, write, monkeypatch)


def _plan(see):
    return lambda house, options: see(plan.plan(options))


def _engine(see):
    def go(house, options):
        with synced(options) as engine:
            return see(engine)

    return go


def _remote(see):
    def go(house, options):
        return see(plan.settings(plan.choose(replace(options, provider="openai")), Approvals(house.workspace)))

    return go


def _enabled(house, options):
    try:
        plan.choose(options).require_enabled()
    except ConfigError as error:
        return error.message
    return "on"


def _kept_after_rewriting(house, options):
    note = house.workspace / "memory/2026-01-02.md"
    with Engine.open(options) as engine:
        for words in ("One\n", "Two\n", "Three\n", "Four\n"):
            note.write_text(words)
            engine.index.sync()
        return engine.status().cache.entries - engine.status().chunks


def _media(house, options):
    return plan.plan(replace(options, provider="")).roots.media


def _chosen(see):
    return lambda house, options: see(plan.choose(options))


def _shared(name):
    def go(house, options):
        found = plan.settings(plan.choose(options), Approvals(house.workspace)).with_shared(name)
        keys = [key.value for key in (*found.api_keys, *found.spare_keys)]
        return found.base_url, keys, dict(found.headers)

    return go


def _login(house, options):
    names = ("first", "second")
    profiles = {f"openai:{n}": {"type": "api_key", "provider": "openai", "key": f"sk-{n}"} for n in names}
    login = json.dumps({"version": 1, "profiles": profiles})
    put(house.home / ".openclaw/agents/main/agent", "auth-profiles.json", text=login)
    found = plan.settings(plan.choose(options), Approvals(house.workspace)).with_shared("openai")
    return found.api_keys[0].value


def _profile(house, options):
    house.monkeypatch.setattr(openclaw_release, "installed_release", lambda: None)
    return plan.choose(options).settings.word("profile")


MEDIA = {"provider": "gemini", "model": "gemini-embedding-2"}
FLUSHES = ("enabled", "softThresholdTokens", "forceFlushTranscriptBytes")
OF_PROVIDER = {
    **{"remote.baseUrl": "base_url", "remote.headers": "headers", "fallback": "fallback", "model": "model"},
    **{"inputType": "input_type", "queryInputType": "query_input_type", "documentInputType": "document_input_type"},
    **{"local.modelPath": "model_path", "local.modelCacheDir": "model_cache"},
    "outputDimensionality": "output_dimensionality",
}
"""What a provider is set up with, by key."""
PROOFS: dict[str, tuple[dict[str, object], Callable[[House, Options], object]]] = {
    "enabled": ({}, _enabled),
    "sources": ({"experimental.sessionMemory": True}, _plan(lambda plan: plan.roots.sources)),
    "experimental.sessionMemory": ({"sources": ["memory", "sessions"]}, _plan(lambda plan: plan.roots.sources)),
    "extraPaths": (
        {},
        _engine(lambda engine: [row.path for row in engine.notes.files() if row.path.startswith("more")]),
    ),
    "provider": ({}, lambda house, options: plan.choose(Options(config=options.config, index=options.index)).provider),
    **{key: ({}, _remote(attrgetter(name))) for key, name in OF_PROVIDER.items()},
    "remote.apiKey": ({}, _remote(lambda found: [key.value for key in found.api_keys])),
    **{
        f"remote.batch.{name}": ({}, _remote(lambda found: found.jobs))
        for name in ("enabled", "wait", "pollIntervalMs", "timeoutMinutes")
    },
    "memory.citations": ({}, _plan(lambda plan: prompt.mode_of(plan.config.value("memory.citations")))),
    "hooks.internal.entries.session-memory.messages": (
        {},
        _plan(lambda plan: plan.config.value("hooks.internal.entries.session-memory.messages")),
    ),
    "multimodal.enabled": (MEDIA, _media),
    "multimodal.modalities": ({**MEDIA, "multimodal.enabled": True}, _media),
    "multimodal.maxFileBytes": ({**MEDIA, "multimodal.enabled": True}, _media),
    "store.path": ({}, _plan(lambda plan: compare.database(plan.config))),
    "sync.embeddingBatchTimeoutSeconds": ({}, _remote(lambda found: found.batches.batch_seconds)),
    "cache.maxEntries": ({}, _kept_after_rewriting),
    "agents.defaults.workspace": ({}, _plan(lambda plan: plan.roots.workspace)),
    **{
        f"agents.defaults.{name}": ({}, _plan(lambda plan: budget.hosts(plan.config, plan.roots.workspace)[0]))
        for name in ("bootstrapMaxChars", "bootstrapTotalMaxChars", "contextInjection")
    },
    "agents.defaults.contextLimits.memoryGetMaxChars": ({}, _engine(lambda engine: engine.notes.get("MEMORY.md").text)),
    "agents.defaults.userTimezone": ({}, _plan(lambda plan: plan.config.time_zone)),
    **{
        f"agents.defaults.compaction.{name}": ({}, _plan(lambda plan: flush.rules_of(plan.config)))
        for name in ("reserveTokensFloor", *(f"memoryFlush.{name}" for name in FLUSHES))
    },
    "auth.order": ({}, _login),
    "memory.backend": ({}, _engine(lambda engine: engine.status().backend_state)),
    "meta.lastTouchedVersion": ({}, _profile),
    "plugins.slots.memory": ({}, _profile),
    "plugins.entries.memory-tui.config.profile": ({"plugins.slots.memory": "memory-tui"}, _profile),
    "agents.defaults.sandbox.mode": ({}, _plan(lambda plan: flush.writable(plan.config, ""))),
    **{
        f"models.providers.{account}.{name}": ({}, _shared(registered))
        for registered, account in registry.ACCOUNTS.items()
        for name in ("baseUrl", "apiKey", "headers")
    },
    "agents.defaults.sandbox.workspaceAccess": (
        {"agents.defaults.sandbox.mode": "all"},
        _plan(lambda plan: flush.writable(plan.config, "")),
    ),
    **{
        key.path: ({settings.BACKEND: "qmd"}, _chosen(QmdOptions.of))
        for key in settings.FILE_KEYS
        if key.path.startswith(QMD) and not key.effect
    },
    # What a knob does is shown where it is turned; here, that the value gets there.
    **{
        key: ({}, _chosen(lambda choices, key=key: choices.settings.values[key].value))
        for key in BY_KEY.keys() & DOCUMENTED.keys()
    },
    f"{LANCEDB}dbPath": ({}, _chosen(lambda choices: Memories(choices, Approvals(choices.workspace)).folder)),
}
"""What shows the effect of a key, and what else has to be set for it."""


@pytest.mark.parametrize("key", DOCUMENTED)
def test_each_documented_key_takes_effect_or_says_why_not(house, key):
    section = SEARCH if key in SEARCH_PATHS else TOP
    base, see = PROOFS.get(key, ({}, None))
    others = {(SEARCH if name in SEARCH_PATHS else TOP, name): other for name, other in base.items()}
    changed = {**others, (section, key): DOCUMENTED[key]}
    chosen = plan.choose(house.options(changed))
    row = next(row for row in rows(chosen.config, chosen.settings) if row["key"] == key)
    assert row["written"]
    assert row["meaning"]
    assert row["places"][0].path == (f"{section}.{key}" if section else key)
    assert "openclaw.json:1" in row["origin"]
    assert not [problem for problem in chosen.config.problems if "not a documented" in problem.message]
    if not row["takesEffect"]:
        assert row["effect"].startswith("none"), key
        assert len(row["effect"]) > len("none here: no"), key
        assert key not in PROOFS
    elif see is not None:
        assert see(house, house.options(others)) != see(house, house.options(changed))


def test_archived_transcripts_are_read_when_they_are_asked_for(house):
    sessions = house.home / ".openclaw/agents/main/sessions"
    said = {"type": "message", "message": {"role": "user", "content": "Where is the zeppelin?"}}
    put(sessions, "old.jsonl.reset.2026-01-01T00-00-00Z", "gone.jsonl.deleted.2026-01-01", text=json.dumps(said) + "\n")
    talks = {(SEARCH, "sources"): ["memory", "sessions"], (SEARCH, "experimental.sessionMemory"): True}
    for asked, count in ((), 0), ((("sessions.archives", "true"),), 2):
        with synced(replace(house.options(talks), changes=asked)) as engine:
            archived = [row for row in engine.notes.files() if ".jsonl." in row.path and row.source == "sessions"]
            assert len([row for row in archived if row.state == "fresh"]) == count
            if count:
                assert "User: Where is the zeppelin?" in engine.notes.read(archived[0].path).text


def test_the_tune_strip_has_no_knob_that_needs_a_new_index():
    assert all(key.startswith(("query.", "recency", "dateBoost", "secondStage", "profile")) for key in TUNE_KEYS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("minScore", "2"), ("minScore", "nan"), ("minScore", "inf"), ("minScore", "x"), ("minScore", ""),
        ("halfLifeDays", "0"), ("maxResults", "0"), ("maxResults", "2.5"), ("vectorWeight", "-1"),
        ("mmr.enabled", "maybe"), ("profile", "openclaw"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_with_the_range(name, text):
    with pytest.raises(SettingError) as caught:
        parse(find_knob(name), text)
    assert find_knob(name).key in caught.value.message


def test_a_short_name_finds_its_knob_and_a_wrong_one_suggests():
    assert find_knob("minScore").key == "query.minScore"
    assert find_knob("half-life").key == "query.hybrid.temporalDecay.halfLifeDays"
    with pytest.raises(SettingError, match="could mean"):
        find_knob("enabled")
    with pytest.raises(SettingError) as caught:
        find_knob("query.minscore")
    assert "query.minScore" in caught.value.next_step


def test_profiles_set_only_known_knobs_within_range():
    for profile in PROFILES.values():
        assert compose(profile.name, {}, {}).word("profile") == profile.name
        assert set(profile.ignores) <= set(BY_KEY)


def test_a_profile_beats_the_configuration_only_where_it_says_something():
    written = {"query.minScore": Value(0.5, "openclaw.json"), "query.maxResults": Value(9, "openclaw.json")}
    ours = compose("recommended", written, {})
    assert (ours.number("query.minScore"), ours.whole("query.maxResults")) == (0.0, 9)
    assert compose("openclaw-2026.3", written, {}).number("query.minScore") == 0.5
    chosen = compose("recommended", written, {"query.minScore": Value(0.1, "--set")})
    assert chosen.values["query.minScore"] == Value(0.1, "--set")


def test_a_slider_ends_before_what_may_be_typed():
    knob = find_knob("maxResults")
    assert parse(knob, "400") == 400 > knob.high
    with pytest.raises(SettingError, match="1 to 1000"):
        parse(knob, "1001")
