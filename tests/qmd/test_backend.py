"""Who answers: QMD where it is well, the built-in index in the same call where it is not."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, QueryError
from memory_tui.core.events import BackendChanged, Noticed
from memory_tui.engine.backend import Backend
from memory_tui.qmd import program
from memory_tui.qmd.folder import QmdFailure
from memory_tui.qmd.remarks import OutOfScope
from memory_tui.qmd.upkeep import Upkeep
from tests.qmd.conftest import Bench, alive, until
from tests.support.waiting import LONG


def reason(backend: Backend) -> str:
    failed = backend.fallback()
    assert failed is not None
    return failed.reason


def test_the_first_search_ever_makes_the_index_and_is_answered_by_qmd(bench: Bench) -> None:
    with bench.engine() as engine:
        found = engine.backend.ask("Router VLAN")
    assert found is not None
    assert [(hit.path, hit.start_line, hit.end_line, hit.rank) for hit in found.hits] == [("MEMORY.md", 4, 4, 1)]
    [search] = [call for call in bench.stub.calls if call[0] == "search"]
    assert search[1:4] == ["Router VLAN", "--json", "-n"]
    assert search.count("-c") == 3


def test_a_deleted_index_is_no_empty_answer_and_update_brings_qmd_back(ready: Bench) -> None:
    ready.qmd_index.unlink()
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        assert "empty or stale" in reason(engine.backend)
        assert engine.backend.state().answers == "builtin"
        Upkeep(engine.backend.client).update(Stop())
        engine.backend.recovered()
        assert engine.backend.ask("Router") is not None
        assert engine.backend.state().sentence == "qmd"


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "killed in the middle": ({"search": {"print": "[{", "kill": True}}, "exit", "killed by signal 9"),
    "garbage": ({"search": {"print": "what a day\n"}}, "answer", "cannot be read"),
    "300,000 characters": ({"search": {"print": "x" * 1000, "times": 300}}, "answer", "more than 200,000"),
    "exit status": ({"search": {"error": "Error: boom\n", "status": 1}}, "exit", "boom"),
    "unknown collection": ({"search": {"error": "Collection not found: nope", "status": 1}}, "exit", "not found"),
    "no object": ({"search": {"print": "[1]"}}, "answer", "row 1 is no object"),
    "no score": ({"search": {"print": '[{"file": "qmd://a/b", "snippet": "", "score": NaN}]'}}, "answer", "finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_qmd_cannot_answer_is_answered_by_the_builtin_index(ready: Bench, case: str) -> None:
    control, kind, said = BAD[case]
    ready.stub.behave(**control)
    before = {path: path.read_bytes() for path in ready.workspace.rglob("*.md")}
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        failed = engine.backend.fallback()
        engine.index.catch_up()
        assert engine.search.search("Router").recalled
    assert failed is not None
    assert (failed.kind, said in failed.reason) == (kind, True), failed.reason
    assert {path: path.read_bytes() for path in ready.workspace.rglob("*.md")} == before


ROWS = {
    "out of the root": {"file": "qmd://memory-dir-main/../MEMORY.md"},
    "encoded way out": {"file": "qmd://memory-dir-main/%2e%2e/MEMORY.md"},
    "absolute": {"file": "qmd://memory-dir-main//etc/passwd"},
    "escape": {"file": "qmd://memory-dir-main/a\x1b[31m.md"},
    "encoded NUL": {"file": "qmd://memory-dir-main/a%00.md"},
    "another collection": {"file": "qmd://theirs/a.md"},
    "no address": {"file": "/etc/passwd"},
    "no snippet": {"snippet": None},
    "text as a score": {"score": "0.5"},
}


@pytest.mark.parametrize("case", ROWS)
def test_a_row_that_cannot_be_trusted_refuses_the_answer(ready: Bench, case: str) -> None:
    row = {"file": "qmd://memory-dir-main/garden.md", "score": 0.5, "snippet": "@@ -1,1 @@\nx", **ROWS[case]}
    ready.stub.behave(search={"print": json.dumps([row])})
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        assert "row 1" in reason(engine.backend)


def test_a_link_that_leads_out_of_a_collection_is_refused(ready: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret\n")
    (ready.workspace / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
    row = {"file": "qmd://memory-dir-main/link.md", "score": 0.5, "snippet": "@@ -1,1 @@\nx"}
    ready.stub.behave(search={"print": json.dumps([row])})
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        assert "leads out" in reason(engine.backend)


def test_noise_before_the_answer_is_passed_over(ready: Bench) -> None:
    row = {"file": "qmd://memory-dir-main/garden.md", "score": 0.5, "snippet": "@@ -3,9 @@ (2 before)\nTomatoes"}
    ready.stub.behave(search={"print": f"[node-llama-cpp] warming up\n{json.dumps([row])}\n"})
    with ready.engine() as engine:
        found = engine.backend.ask("Tomatoes")
    assert found is not None
    assert [(hit.path, hit.start_line, hit.end_line) for hit in found.hits] == [("memory/garden.md", 3, 3)]


def test_a_program_that_ignores_the_signal_ends_with_all_it_started(ready: Bench) -> None:
    ready.stub.behave(search={"hang": True, "child": True})
    began = time.monotonic()
    with ready.engine(**{"qmd.limits.timeoutMs": 1500}) as engine:
        assert engine.backend.ask("Router") is None
        assert time.monotonic() - began < LONG
        assert "1.5 s" in reason(engine.backend)
    for name in ("hanging", "child"):
        pid = int((ready.stub.folder / name).read_text())
        until(lambda pid=pid: not alive(pid), "the process ended")


def test_whoever_cancels_a_search_ends_the_process(ready: Bench) -> None:
    import threading

    ready.stub.behave(search={"hang": True})
    stop = Stop()
    with ready.engine() as engine:
        marker = ready.stub.folder / "hanging"
        threading.Thread(target=lambda: (until(marker.exists, "QMD runs"), stop.set()), daemon=True).start()
        with pytest.raises(Cancelled):
            engine.backend.ask("Router", stop=stop)
        assert engine.backend.fallback() is None
        until(lambda: not alive(int(marker.read_text())), "the process ended")


def test_a_failure_costs_one_search_and_the_next_ones_nothing(ready: Bench) -> None:
    ready.stub.behave(search={"error": "Error: boom", "status": 1})
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        count = len(ready.stub.calls)
        assert [engine.backend.ask("Router") for _ in range(10)] == [None] * 10
        failed = engine.backend.fallback()
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        # Another process knows it too.
        assert engine.backend.fallback() == failed
    assert failed is not None
    assert failed.retry_at - failed.since == 30
    assert len(ready.stub.calls) == count
    assert sum(isinstance(event, Noticed) and "boom" in event.text for event in ready.events) == 1


def test_pauses_double_up_to_ten_minutes_and_one_success_ends_them(ready: Bench) -> None:
    ready.stub.behave(search={"error": "Error: boom", "status": 1})
    with ready.engine() as engine:
        engine.backend.ask("Router")
        pauses = []
        for _ in range(6):
            failed = engine.backend.probe()
            assert failed is not None
            pauses.append(failed.pause)
        assert pauses == [60, 120, 240, 480, 600, 600]
        ready.stub.behave()
        assert engine.backend.probe() is None
        assert engine.backend.ask("Router") is not None


def test_an_engine_that_stays_probes_by_itself_when_it_is_time(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_tui.engine.backend._FIRST_PAUSE", 0.2)
    ready.stub.behave(search={"error": "Error: boom", "status": 1})
    with ready.engine() as engine:
        engine.start()
        assert engine.backend.ask("Router") is None
        ready.stub.behave()
        until(lambda: engine.backend.fallback() is None, "QMD answers again")
        until(lambda: any(isinstance(event, BackendChanged) for event in ready.events), "it is told")
        assert engine.backend.ask("Router") is not None


def test_what_was_set_otherwise_since_a_failure_is_tried_at_once(ready: Bench) -> None:
    with ready.engine(**{"qmd.searchMode": "query"}) as engine:
        assert engine.backend.ask("Router") is None
        assert "embeddinggemma-300M-Q8_0.gguf" in reason(engine.backend)
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is not None
    assert not any(call[0] in ("query", "vsearch") for call in ready.stub.calls)


VERSIONS = {
    "qmd 0.9.0": "0.9.0 is not supported",
    "qmd 1.1.6 (abc)": "1.1.6 is not supported",
    "QMD is a band": "is no QMD",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_other_versions_are_refused_by_name_with_what_installs_the_right_one(bench: Bench, version: str) -> None:
    bench.stub.behave(version=version)
    with bench.engine() as engine:
        assert engine.backend.ask("Router") is None
        failed = engine.backend.fallback()
    assert failed is not None
    assert VERSIONS[version] in failed.reason
    assert "npm install --global @tobilu/qmd@2.8.3" in failed.next_step


def test_a_version_that_cannot_start_and_an_old_node_are_refused(bench: Bench, tmp_path: Path) -> None:
    bench.stub.behave(version="Error: bun not found", version_status=1)
    with bench.engine() as engine:
        assert engine.backend.ask("Router") is None
        assert "--version failed" in reason(engine.backend)
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v20.1.0\n")
    node.chmod(0o755)
    (tmp_path / "qmd.js").write_text("")
    with bench.engine(f"{node} {tmp_path / 'qmd.js'}") as engine:
        assert engine.backend.ask("Router") is None
        assert "needs Node 22 or newer" in reason(engine.backend)


def test_a_program_that_is_absent_is_named_with_the_line_that_installs_it(bench: Bench) -> None:
    with bench.engine("no-such-qmd") as engine:
        assert engine.backend.ask("Router") is None
        failed = engine.backend.fallback()
    assert failed is not None
    assert "no-such-qmd is not there" in failed.reason
    assert "npm install" in failed.next_step


def test_an_index_that_is_no_database_is_said_and_reset_makes_room(ready: Bench) -> None:
    for side in ("-wal", "-shm"):
        ready.qmd_index.with_name(f"index.sqlite{side}").unlink(missing_ok=True)
    ready.qmd_index.write_bytes(b"garbage " * 600)
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        failed = engine.backend.fallback()
        assert failed is not None
        assert "not an SQLite database" in failed.reason
        assert "qmd reset" in failed.next_step
        keeper = Upkeep(engine.backend.client)
        with pytest.raises(QmdFailure):
            keeper.update(Stop())
        assert keeper.reset()
        keeper.update(Stop())
        assert engine.backend.ask("Router") is not None


def test_a_broken_configuration_of_qmd_is_its_failure(ready: Bench) -> None:
    ready.stub.behave(search={"error": "YAMLParseError: bad index.yml\n    at parse (x.js:1)\n", "status": 1})
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        failed = engine.backend.fallback()
    assert failed is not None
    assert "YAMLParseError: bad index.yml" in failed.reason
    assert "qmd reset" in failed.next_step


def test_a_model_that_is_no_gguf_is_refused_before_qmd_would_delete_it(ready: Bench, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_text("no model")
    config = ready.folder / "index.sqlite.qmd" / "xdg-config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "index.yml").write_text(f"collections: {{}}\nmodels:\n  embed: {model}\n")
    count = len(ready.stub.calls)
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        assert "not in GGUF format" in reason(engine.backend)
        with pytest.raises(QmdFailure):
            Upkeep(engine.backend.client).update(Stop())
    assert len(ready.stub.calls) == count
    assert model.read_text() == "no model"


QUESTIONS = ["-n Router", "--help", 'he said "Router"', "Router\nVLAN", "Router\0VLAN", "'; DROP TABLE documents; --"]


@pytest.mark.parametrize("query", QUESTIONS)
def test_no_question_becomes_an_option_or_ends_the_answer(ready: Bench, query: str) -> None:
    with ready.engine() as engine:
        assert engine.backend.ask(query) is not None
    asked = ready.stub.calls[-1]
    assert asked[0] == "search"
    assert not asked[1].startswith("-")
    assert asked[2] == "--json"


def test_an_empty_question_starts_nothing_and_a_huge_one_is_refused(ready: Bench) -> None:
    count = len(ready.stub.calls)
    with ready.engine() as engine:
        found = engine.backend.ask(" ")
        assert found is not None
        assert not found.hits
        with pytest.raises(QueryError):
            engine.backend.ask("x" * (1 << 20))
        assert engine.backend.fallback() is None
    assert len(ready.stub.calls) == count


def test_an_empty_answer_counts_only_where_every_file_has_a_document(ready: Bench) -> None:
    with ready.engine() as engine:
        found = engine.backend.ask("zebra")
        assert found is not None
        assert not found.hits
        (ready.workspace / "memory" / "new.md").write_text("A zebra\n")
        assert engine.backend.ask("zebra") is None
        assert reason(engine.backend) == (
            "QMD's index is empty or stale: it holds 3 documents, and 4 files belong to its collections."
        )


def test_files_that_changed_since_the_update_are_counted(ready: Bench) -> None:
    file = ready.workspace / "MEMORY.md"
    file.write_text(file.read_text() + "- Router is in the attic\n")
    later = time.time() + 5
    os.utime(file, (later, later))
    with ready.engine() as engine:
        found = engine.backend.ask("Router")
        assert engine.backend.state().sentence == "qmd, behind (1 file changed)"
    assert found is not None
    assert found.behind == 1


def only(action: str, **match: str) -> dict[str, Any]:
    other = {"allow": "deny", "deny": "allow"}[action]
    return {"default": other, "rules": [{"action": action, "match": match}]}


SCOPES: list[tuple[dict[str, Any] | None, str, bool]] = [
    (None, "", True),
    (None, "agent:main:main", True),
    (None, "agent:main:telegram:direct:7", True),
    (None, "agent:main:telegram:group:7", False),
    (None, "agent:main:slack:channel:c", False),
    ({"default": "allow"}, "agent:main:slack:channel:c", True),
    ({"rules": []}, "agent:main:slack:channel:c", True),
    (
        {"default": "deny", "rules": [{"action": "allow", "match": {"channel": "slack"}}]},
        "agent:main:slack:group:1",
        True,
    ),
    (
        {"default": "deny", "rules": [{"action": "allow", "match": {"keyPrefix": "slack:"}}]},
        "agent:main:tg:dm:1",
        False,
    ),
    (
        {"default": "allow", "rules": [{"action": "deny", "match": {"rawKeyPrefix": "agent:x:"}}]},
        "agent:x:tg:dm:1",
        False,
    ),
]


@pytest.mark.parametrize(("scope", "key", "may"), SCOPES)
def test_the_scope_answers_before_qmd_is_started(
    ready: Bench, scope: dict[str, Any] | None, key: str, may: bool
) -> None:
    count = len(ready.stub.calls)
    with ready.engine(**({} if scope is None else {"qmd.scope": scope})) as engine:
        found = engine.backend.ask("Router", session_key=key)
        assert found is not None
        assert (bool(found.hits), isinstance(found.empty, OutOfScope)) == (may, not may)
        assert engine.backend.fallback() is None
    assert (len(ready.stub.calls) > count) == may


def test_a_program_that_a_file_names_is_run_after_an_agreement(bench: Bench, tmp_path: Path) -> None:
    from msgspec.structs import replace

    config = tmp_path / "openclaw.json"
    config.write_text(json.dumps({"memory": {"backend": "qmd", "qmd": {"command": str(bench.stub.program)}}}))
    from memory_tui.engine.engine import Engine

    options = replace(bench.options(), changes=(), backend="", config=str(config))
    with Engine.open(options, bench.events.append) as engine:
        assert engine.backend.is_qmd
        assert engine.backend.ask("Router") is None
        assert bench.stub.calls == []
        said = reason(engine.backend)
        assert str(bench.stub.program) in said
        assert "openclaw.json" in said
        engine.backend.client.approve("a test")
        engine.backend.recovered()
        assert engine.backend.ask("Router") is not None


def test_a_collection_that_is_bound_otherwise_is_made_again(ready: Bench) -> None:
    with sqlite3.connect(ready.qmd_index) as store:
        store.execute("UPDATE store_collections SET pattern = '*.txt' WHERE name = 'memory-dir-main'")
        store.execute("INSERT INTO store_collections VALUES ('old-thing', '/gone', '*.md')")
    with ready.engine() as engine:
        report = Upkeep(engine.backend.client).update(Stop())
        assert {"collection memory-dir-main removed", "collection old-thing removed"} <= set(report.changes)
        assert engine.backend.state().sentence == "qmd"


def test_failures_of_upkeep_wait_a_minute_then_two_and_one_success_ends_that(ready: Bench) -> None:
    ready.stub.behave(update={"error": "Error: boom", "status": 1})
    with ready.engine() as engine:
        keeper, pauses = Upkeep(engine.backend.client), []
        for _ in range(8):
            with pytest.raises(QmdFailure):
                keeper.update(Stop())
            pauses.append(round(engine.backend.client.place.upkeep().again - time.time()))
        assert [round(pause, -1) for pause in pauses] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
        assert not keeper.due(time.time())
        ready.stub.behave()
        keeper.update(Stop())
        assert engine.backend.client.place.upkeep().failures == 0


def test_two_processes_do_not_bring_qmd_up_to_date_at_once(ready: Bench) -> None:
    from memory_tui import locks

    with ready.engine() as engine:
        held = locks.WriterLock.acquire(engine.backend.client.place.folder / "upkeep")
        assert held is not None
        with held, pytest.raises(QmdFailure, match="Another memory-tui"):
            Upkeep(engine.backend.client).update(Stop())


def test_a_search_waits_a_moment_for_an_update_that_runs(ready: Bench) -> None:
    from memory_tui import locks

    with ready.engine() as engine:
        held = locks.WriterLock.acquire(engine.backend.client.place.folder / "upkeep")
        assert held is not None
        began = time.monotonic()
        with held:
            assert engine.backend.ask("Router") is not None
        assert time.monotonic() - began >= 0.5


def test_a_mode_with_vectors_embeds_after_the_update_and_then_hourly(
    ready: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF and more")
    monkeypatch.setenv("QMD_EMBED_MODEL", str(model))
    settings = {"qmd.searchMode": "vsearch", "qmd.update.debounceMs": 1}
    with ready.engine(**settings) as engine:
        engine.start()
        until(lambda: any(call[0] == "embed" for call in ready.stub.calls), "texts are embedded")
        until(lambda: engine.backend.client.place.upkeep().embedded, "it is remembered")
        updates = sum(call[0] == "update" for call in ready.stub.calls)
        engine.backend.notes_changed()
        until(lambda: sum(call[0] == "update" for call in ready.stub.calls) > updates, "another update")
    assert sum(call[0] == "embed" for call in ready.stub.calls) == 1


def test_an_engine_that_stays_updates_after_notes_changed(ready: Bench) -> None:
    with ready.engine(**{"qmd.update.debounceMs": 1}) as engine:
        engine.start()
        until(lambda: sum(call[0] == "update" for call in ready.stub.calls) >= 2, "the update at the start")
        until(lambda: engine.index.last_sync is not None, "the first index")
        assert len(engine.notes.files()) == 3
        assert engine.search.search("Router").recalled
        (ready.workspace / "memory" / "new.md").write_text("A zebra\n")
        until(lambda: bool((found := engine.backend.ask("zebra")) and found.hits), "QMD has the new note")


def test_hits_of_both_sources_come_in_turn_and_within_the_bounds(ready: Bench) -> None:
    rows = [
        {"file": "qmd://memory-dir-main/garden.md", "score": 1, "snippet": f"@@ -1,1 @@\n{'a' * 900}"},
        {"file": "qmd://memory-dir-main/2026-11-01.md", "score": 1, "snippet": f"@@ -1,1 @@\n{'b' * 900}"},
        {"file": "qmd://memory-root-main/MEMORY.md", "score": 1, "snippet": f"@@ -1,1 @@\n{'c' * 900}"},
    ]
    ready.stub.behave(search={"print": json.dumps(rows)})
    with ready.engine(**{"qmd.limits.maxInjectedChars": 1000}) as engine:
        found = engine.backend.ask("Router")
    assert found is not None
    assert [len(hit.snippet) for hit in found.hits] == [700, 300]
    assert any("1 hit left out" in claim.sentence for claim in found.remarks)


def test_a_run_that_prints_nothing_is_ended_at_its_time(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(QmdFailure, match="did not answer"):
        program.run(("/bin/sleep",), ["600"], dict(os.environ), tmp_path, 0.2)
    assert time.monotonic() - began < LONG


def test_a_hit_outside_the_workspace_is_named_by_its_collection(
    ready: Bench, paths: Callable[[Any], list[str]]
) -> None:
    folder = ready.folder / "more"
    folder.mkdir()
    (folder / "a.md").write_text("Router in a book\n")
    with ready.engine(**{"qmd.paths": [{"path": str(folder), "name": "Books!"}]}) as engine:
        Upkeep(engine.backend.client).update(Stop())
        found = engine.backend.ask("Router")
    assert "qmd/books--main/a.md" in paths(found)
