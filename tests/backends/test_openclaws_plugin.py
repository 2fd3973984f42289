"""OpenClaw's own plug-in and memory-tui on one table, and the real QMD: each reads what the other made."""

import json

import pytest

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.backends import qmd as backend
from memory_tui.backends.lancedb import Memories
from memory_tui.backends.lancedb import answer as answer_tool
from memory_tui.backends.qmd import QmdFailure
from memory_tui.cancel import Stop
from memory_tui.plan import Options
from memory_tui.providers.chain import Chain
from memory_tui.providers.registry import ProviderSettings
from tests.support import memory_lancedb, real_openclaw
from tests.support.paths import MODEL
from tests.support.provider_server import Play, serving
from tests.support.qmd import program as qmd
from tests.support.real_openclaw import OpenClaw
from tests.support.scripted_model import Model
from tests.support.workspace import put

pytestmark = pytest.mark.real_host


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    return memory_lancedb.folder(tmp_path_factory.mktemp("plugins") / "memory-lancedb")


@pytest.fixture
def config(tmp_path):
    """The section of the plug-in, whose embeddings come from a server on loopback."""
    chain = Chain(ProviderSettings("builtin"), lambda _error: None)
    with serving(Play(usual=memory_lancedb.unit_vectors(chain))) as play:
        embedding = {"apiKey": "none", "model": "test-model", "baseUrl": f"{play.url}/v1", "dimensions": 256}
        yield {"embedding": embedding, "dbPath": str(tmp_path / "lancedb")}


@pytest.fixture
def memories(config, tmp_path):
    file = tmp_path / "openclaw.json"
    plugins = {"slots": {"memory": "memory-lancedb"}, "entries": {"memory-lancedb": {"config": config}}}
    file.write_text(json.dumps({"plugins": plugins}))
    every: list[Memories] = []

    def opened():
        choices = plan.choose(Options(workspace=str(tmp_path), config=str(file)))
        every.append(Memories(choices, Approvals(tmp_path)))
        return every[-1]

    yield opened
    for one in every:
        one.close()


def test_a_table_of_memory_tui_is_read_and_written_by_the_plugin(plugin, config, memories):
    ours = memories()
    kept = ours.store("We use Postgres").entry
    ours.store("The router is in the cellar")
    said = ("memory_recall", {"query": "where is the router"})
    theirs = memory_lancedb.call(
        plugin,
        config,
        said,
        ("memory_store", {"text": "We use Postgres"}),
        ("memory_store", {"text": "The printer is upstairs", "category": "fact", "importance": 0.4}),
        ("memory_forget", {"query": "We use Postgres"}),
    )
    before = memories()
    assert theirs[1]["details"]["existingId"] == kept.id
    assert theirs[3]["details"] == {"action": "deleted", "id": kept.id}
    assert {one.text for one in before.table().entries()} == {"The router is in the cellar", "The printer is upstairs"}
    assert before.store("The boiler is new").action == "created"
    before.undo()
    before.forget([theirs[2]["details"]["id"]])
    # The same question over the same entries, by each.
    ours.store("We use Postgres")
    answer = answer_tool(ours, "memory_recall", {"query": "where is the router"})
    assert answer.text == theirs[0]["content"][0]["text"]
    found = [(one["text"], one["category"]) for one in theirs[0]["details"]["memories"]]
    assert [(one["text"], one["category"]) for one in answer.details["memories"]] == found
    for one, other in zip(answer.details["memories"], theirs[0]["details"]["memories"], strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-6)


def test_a_table_of_the_plugin_is_read_and_written_by_memory_tui(plugin, config, memories, tmp_path):
    said = {"role": "user", "content": "I prefer tabs to spaces"}
    [made, _] = memory_lancedb.call(
        plugin,
        {**config, "autoCapture": True},
        ("memory_store", {"text": "The router is in the cellar", "category": "fact"}),
        ("agent_end", {"success": True, "messages": [said]}),
    )
    ours = memories()
    assert {(one.text, one.category) for one in ours.table().entries()} == {
        ("I prefer tabs to spaces", "preference"),
        ("The router is in the cellar", "fact"),
    }
    assert ours.search("router")
    ours.approve("test")
    stored = ours.store("Mira likes oranges").entry
    ours.forget([one.id for one in ours.table().entries() if "tabs" in one.text])
    ours.undo()
    [found] = memory_lancedb.call(plugin, config, ("memory_recall", {"query": "Mira likes oranges", "limit": 9}))
    texts = {one["text"]: one for one in found["details"]["memories"]}
    assert set(texts) == {"I prefer tabs to spaces", "The router is in the cellar", "Mira likes oranges"}
    assert texts["The router is in the cellar"]["id"] == made["details"]["id"]
    assert texts["Mira likes oranges"]["id"] == stored.id
    # OpenClaw's own command, over the same table.
    openclaw = OpenClaw(real_openclaw.OLDEST, tmp_path / "home", tmp_path / "notes", Model())
    openclaw.workspace.mkdir()
    entries = {"memory-lancedb": {"enabled": True, "config": config}}
    allowed = {"allow": ["memory-lancedb"], "load": {"paths": [str(plugin)]}}
    openclaw.configure({**allowed, "slots": {"memory": "memory-lancedb"}, "entries": entries})
    done = openclaw.run("ltm", "stats")
    assert "Total memories: 3" in done.stdout, done.stdout + done.stderr


SLOW = {"qmd.limits.timeoutMs": 60_000}


@pytest.fixture
def real(bench):
    with bench.engine(qmd(), **SLOW) as engine:
        backend.update(engine.backend.client, Stop())
        yield engine


def test_a_search_a_deleted_index_and_a_mode_without_models(bench, printed):
    words = ["--backend", "qmd", "--workspace", str(bench.workspace), "--index", str(bench.folder / "index.sqlite")]
    words += ["--provider", "none", "--set", f"qmd.command={qmd()}", "--set", "qmd.limits.timeoutMs=60000", "--json"]

    def run(*more, mode="search"):
        return json.loads(printed(*words, "--set", f"qmd.searchMode={mode}", *more))

    first = run("search", "Router VLAN")
    assert first["backend"] == "qmd"
    assert [(hit["path"], hit["startLine"], hit["endLine"]) for hit in first["results"]] == [("MEMORY.md", 3, 4)]
    for side in ("", "-wal", "-shm"):
        bench.qmd_index.with_name(f"index.sqlite{side}").unlink(missing_ok=True)
    second = run("search", "Router VLAN")
    assert second["backend"] == "builtin"
    assert second["results"]
    assert "empty or stale" in second["fallback"]["reason"]
    assert run("status")["fallback"]["from"] == "qmd"
    run("qmd", "update")
    assert run("search", "Router VLAN")["backend"] == "qmd"
    third = run("search", "Router VLAN", mode="query")
    assert "embeddinggemma-300M-Q8_0.gguf" in third["fallback"]["reason"]


@pytest.mark.skipif(not MODEL.is_file(), reason="the shared GGUF file is not here")
def test_with_an_embedding_model_alone_vsearch_is_a_typed_query(bench, monkeypatch):
    monkeypatch.setenv("QMD_EMBED_MODEL", str(MODEL))
    monkeypatch.setenv("QMD_FORCE_CPU", "1")
    settings = {**SLOW, "qmd.searchMode": "vsearch", "qmd.update.embedTimeoutMs": 240_000}
    with bench.engine(qmd(), **settings) as engine:
        backend.update(engine.backend.client, Stop(), vectors=False)
        with pytest.raises(QmdFailure, match="no vectors"):
            engine.backend.client.ask("drinks", 3)
        assert backend.update(engine.backend.client, Stop())["vectors"] >= 3
        found = engine.backend.client.ask("drinks", 3)
    assert found.hits
    assert any("--no-rerank" in claim.sentence for claim in found.remarks)


def test_a_project_of_qmds_own_in_the_workspace_takes_nothings_place(bench):
    put(bench.workspace, ".qmd/index.yml", text=f"collections:\n  theirs:\n    path: {bench.workspace}\n")
    with bench.engine(qmd(), **SLOW) as engine:
        backend.update(engine.backend.client, Stop())
        found = engine.backend.ask("Router VLAN")
    assert [hit.collection for hit in found.hits] == ["memory-root-main"]
    assert [file.name for file in (bench.workspace / ".qmd").iterdir()] == ["index.yml"]
