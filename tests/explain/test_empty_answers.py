"""An empty answer says what it went by: words that were not found, notes that wait, files that cannot be read."""

import json

import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.index.sync import FileState
from memory_tui.mcp.tools import memory_search
from tests.support.workspace import options_of

STILL = (("sync.watch", "false"), ("sync.onSearch", "false"), ("sync.onSessionStart", "false"))


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes" / "memory"
    folder.mkdir(parents=True)
    (folder.parent / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n")
    return folder


def options(tmp_path, profile, provider="none"):
    return options_of(tmp_path / "notes", tmp_path / "i.sqlite", ("profile", profile), *STILL, provider=provider)


def sentence(trace):
    assert trace.empty is not None
    return wording.empty(trace.empty, trace.profile)[0]


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
def test_a_word_is_said_to_be_in_no_indexed_note_and_notes_that_wait_are_named(notes, tmp_path, profile):
    with Engine.open(options(tmp_path, profile)) as engine:
        engine.index.sync()
        (notes / "new.md").write_text("The Walrus likes cake.\n")
        engine.status()
        assert sentence(engine.search.search("walrus")) == 'The word "walrus" was found in no indexed note.'
        assert "memory/new.md" in memory_search(engine, {"query": "walrus"}).answer["warning"]


def test_a_changed_endpoint_is_a_reason_to_rebuild_before_anybody_is_asked(notes, tmp_path):
    path = tmp_path / "openclaw.json"

    def configured(url):
        section = {"provider": "ollama", "model": "m", "remote": {"baseUrl": url}}
        path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
        return replace(options(tmp_path, "recommended", ""), config=str(path))

    from tests.support.provider_server import Play, serving

    with serving(Play()) as play:
        with Engine.open(configured(play.url)) as engine:
            engine.index.sync()
            assert engine.status().freshness.rebuild == ()
        asked = len(play.asked)
        with Engine.open(configured(f"{play.url}/other")) as engine:
            (why,) = engine.status().freshness.rebuild
            assert why.startswith("endpoint: ")
            assert engine.providers.who().standing == "other model"
            assert "another address" in engine.providers.who().reason
        assert len(play.asked) == asked


def test_a_session_below_the_threshold_is_not_said_to_be_indexed_now(notes, tmp_path):
    state = tmp_path / "state"
    sessions = state / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    path = tmp_path / "openclaw.json"
    section = {"sources": ["memory", "sessions"], "experimental": {"sessionMemory": True}, "provider": "none"}
    path.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    asked = options_of(
        notes.parent, tmp_path / "i.sqlite", ("profile", "recommended"), ("sync.watch", "false"), config=str(path)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_STATE_DIR", str(state))
        with Engine.open(asked) as engine:
            engine.index.sync()
            line = {"type": "message", "message": {"role": "user", "content": "the giraffe came"}}
            (sessions / "s1.jsonl").write_text(json.dumps(line) + "\n")
            engine.index.sync(reason="search")
            engine.status()
            answer = memory_search(engine, {"query": "omada"}).answer
            assert answer["stale"] is True
            assert "being indexed: ask" not in answer["action"]
            assert "after 100,000 bytes or 50 lines" in answer["action"]
            assert "new, with" in answer["action"]
            (waits,) = engine.status().freshness.pending
            assert "it is indexed by itself after" in waits.detail


def test_notes_that_cannot_be_read_are_not_no_notes(notes, tmp_path):
    (notes.parent / "MEMORY.md").write_text("")
    with Engine.open(options(tmp_path, "recommended")) as engine:
        engine.index.sync()
        evidence = replace(
            engine.search.gather("walrus"), unsearchable=(FileState("a.md", "failed", "permission denied"),)
        )
        trace = engine.search.rank(evidence, engine.plan.settings)
        assert sentence(trace) == "Nothing is indexed: 1 file could not be read."
