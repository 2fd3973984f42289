"""The real QMD 2.8.3 from npm: what the stub stands in for, and what only the program itself can prove."""

import json

import pytest

from memory_tui.backends import qmd as backend
from memory_tui.backends.qmd import QmdFailure
from memory_tui.cancel import Stop
from memory_tui.cli import main
from tests.support.paths import MODEL
from tests.support.real_qmd import qmd
from tests.support.workspace import put

pytestmark = pytest.mark.real_host

SLOW = {"qmd.limits.timeoutMs": 60_000}


@pytest.fixture
def real(bench):
    with bench.engine(qmd(), **SLOW) as engine:
        backend.update(engine.backend.client, Stop())
        yield engine


def test_a_search_a_deleted_index_and_a_mode_without_models(bench, capsys):
    words = ["--backend", "qmd", "--workspace", str(bench.workspace), "--index", str(bench.folder / "index.sqlite")]
    words += ["--provider", "none", "--set", f"qmd.command={qmd()}", "--set", "qmd.limits.timeoutMs=60000", "--json"]

    def run(*more, mode="search"):
        assert main.main([*words, "--set", f"qmd.searchMode={mode}", *more]) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    first = run("search", "Router VLAN")
    assert first["backend"] == "qmd"
    assert [(hit["path"], hit["startLine"], hit["endLine"]) for hit in first["results"]] == [("MEMORY.md", 3, 4)]  # type: ignore[attr-defined]
    for side in ("", "-wal", "-shm"):
        bench.qmd_index.with_name(f"index.sqlite{side}").unlink(missing_ok=True)
    second = run("search", "Router VLAN")
    assert second["backend"] == "builtin"
    assert second["results"]
    assert "empty or stale" in second["fallback"]["reason"]  # type: ignore[index]
    assert run("status")["fallback"]["from"] == "qmd"  # type: ignore[index]
    run("qmd", "update")
    assert run("search", "Router VLAN")["backend"] == "qmd"
    third = run("search", "Router VLAN", mode="query")
    assert "embeddinggemma-300M-Q8_0.gguf" in third["fallback"]["reason"]  # type: ignore[index]


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
    assert found is not None
    assert [hit.collection for hit in found.hits] == ["memory-root-main"]
    assert [file.name for file in (bench.workspace / ".qmd").iterdir()] == ["index.yml"]
