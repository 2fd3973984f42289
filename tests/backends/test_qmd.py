"""Who answers: QMD where it is well, the built-in index where it is not; and what commands tell of it."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui import locks, recall_log
from memory_tui.backends import qmd
from memory_tui.backends.qmd import QmdFailure
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled
from memory_tui.events import Noticed
from memory_tui.mcp.server import ServedMemory, ServerOptions
from memory_tui.mcp.tools import AnswerRules, memory_get, memory_search
from memory_tui.mcp.wire import Caller
from memory_tui.openclaw.prompt import SEARCH
from tests.support.qmd import Bench, alive
from tests.support.waiting import LONG, until
from tests.support.workspace import put, synced


def reason(backend):
    failed = backend.fallback()
    return f"{failed.reason} {failed.next_step}"


def test_the_first_search_ever_makes_the_index_and_is_answered_by_qmd(bench):
    with bench.engine() as engine:
        answer = engine.backend.ask("Router VLAN")
    assert [(hit.path, hit.start_line, hit.end_line, hit.rank) for hit in answer.hits] == [("MEMORY.md", 4, 4, 1)]
    [search] = [call for call in bench.stub.calls if call[0] == "search"]
    assert search[1:4] == ["Router VLAN", "--json", "-n"]
    assert search.count("-c") == 3


GARDEN = {"file": "qmd://memory-dir-main/garden.md", "score": 0.5, "snippet": "@@ -1,1 @@\nx"}


def row(**changes):
    return {"search": {"print": json.dumps([{**GARDEN, **changes}])}}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "killed in the middle": ({"search": {"print": "[{", "kill": True}}, "killed by signal 9"),
    "garbage": ({"search": {"print": "what a day\n"}}, "cannot be read"),
    "300,000 characters": ({"search": {"print": "x" * 1000, "times": 300}}, "more than 200,000"),
    "exit status": ({"search": {"error": "Error: boom\n", "status": 1}}, "boom"),
    "broken configuration": (
        {"search": {"error": "YAMLParseError: bad index.yml\n    at parse (x.js:1)\n", "status": 1}},
        "YAMLParseError: bad index.yml.*Move the folder away",
    ),
    "no object": ({"search": {"print": "[1]"}}, "row 1"),
    "out of the root": (row(file="qmd://memory-dir-main/../MEMORY.md"), "row 1"),
    "encoded way out": (row(file="qmd://memory-dir-main/%2e%2e/MEMORY.md"), "row 1"),
    "absolute": (row(file="qmd://memory-dir-main//etc/passwd"), "row 1"),
    "escape": (row(file="qmd://memory-dir-main/a\x1b[31m.md"), "row 1"),
    "encoded NUL": (row(file="qmd://memory-dir-main/a%00.md"), "row 1"),
    "another collection": (row(file="qmd://theirs/a.md"), "row 1"),
    "no address": (row(file="/etc/passwd"), "row 1"),
    "a link out of the collection": (row(file="qmd://memory-dir-main/link.md"), "row 1"),
    "no snippet": (row(snippet=None), "row 1"),
    "no number": (row(score=float("nan")), "row 1"),
    "version 0.9": ({"version": "qmd 0.9.0"}, "0.9.0 is not supported.*npm install --global @tobilu/qmd@2.8.3"),
    "another program": ({"version": "QMD is a band"}, "is no QMD"),
    "it cannot start": ({"version": "Error: bun not found", "version_status": 1}, "--version failed"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("qmd"))
    bench.updated()
    (bench.folder / "secret.md").write_text("secret\n")
    (bench.workspace / "memory" / "link.md").symlink_to(bench.folder / "secret.md")
    return bench


@pytest.mark.parametrize("case", BAD)
def test_what_qmd_cannot_answer_is_answered_by_the_builtin_index(shared, case):
    control, pattern = BAD[case]
    shared.stub.behave(**control)
    # Another file is another program, whose version is asked again.
    os.utime(shared.stub.program, (time.time(), time.time() + len(case)))
    with shared.engine() as engine:
        engine.backend.recovered()
        answer = memory_search(engine, {"query": "Router VLAN"}).answer
        text = reason(engine.backend)
    assert (answer["backend"], bool(answer["results"])) == ("builtin", True)
    assert re.search(pattern, text), text


def test_other_programs_are_refused_with_what_installs_the_right_one(bench, tmp_path):
    for command in ("no-such-qmd", f"node {tmp_path / 'no.js'}"):
        with bench.engine(command) as engine:
            assert engine.backend.ask("Router") is None
            assert "npm install" in reason(engine.backend)


def test_noise_before_the_answer_is_passed_over_and_lines_are_those_of_the_file(ready):
    garden = {**GARDEN, "snippet": "@@ -3,9 @@ (2 before)\nTomatoes"}
    ready.stub.behave(search={"print": f"[node-llama-cpp] warming up\n{json.dumps([garden])}\n"})
    with ready.engine() as engine:
        answer = engine.backend.ask("Tomatoes")
    assert [(hit.path, hit.start_line, hit.end_line) for hit in answer.hits] == [("memory/garden.md", 3, 3)]


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_program_that_hangs_ends_with_all_it_started(ready, cancelled):
    ready.stub.behave(search={"hang": True, "child": True})
    began, stop, marker = time.monotonic(), Stop(), ready.stub.folder / "hanging"
    with ready.engine(**{"qmd.limits.timeoutMs": 600_000 if cancelled else 1500}) as engine:
        if cancelled:
            threading.Thread(target=lambda: (until(marker.exists, "QMD runs"), stop.set()), daemon=True).start()
            with pytest.raises(Cancelled):
                engine.backend.ask("Router", stop=stop)
            assert engine.backend.fallback() is None
        else:
            assert engine.backend.ask("Router") is None
            assert "1.5 s" in reason(engine.backend)
    assert time.monotonic() - began < LONG
    for name in ("hanging", "child"):
        until(lambda name=name: not alive(int((ready.stub.folder / name).read_text())), "the process ended")


def test_a_failure_costs_one_search_and_pauses_double_up_to_ten_minutes(ready):
    ready.stub.behave(search={"error": "Error: boom", "status": 1})

    def due():
        failed = engine.backend.client.place.remembered("fallback")
        engine.backend.client.place.remember("fallback", {**failed, "retry_at": 0.0})

    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        count = len(ready.stub.calls)
        assert [engine.backend.ask("Router") for _ in range(10)] == [None] * 10
        failed = engine.backend.fallback()
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        # Another process knows it too.
        assert engine.backend.fallback() == failed
        assert (failed.retry_at - failed.since, len(ready.stub.calls)) == (30, count)
        pauses = []
        for _ in range(6):
            due()
            assert engine.backend.ask("Router") is None
            failed = engine.backend.fallback()
            pauses.append(failed and failed.pause)
        assert pauses == [60, 120, 240, 480, 600, 600]
        assert sum(isinstance(event, Noticed) and "boom" in event.text for event in ready.events) == 1
        ready.stub.behave()
        due()
        assert engine.backend.ask("Router") is not None
        assert engine.backend.fallback() is None
    # What was set otherwise since a failure is tried at once.
    with ready.engine(**{"qmd.searchMode": "query"}) as engine:
        assert engine.backend.ask("Router") is None
        assert "embeddinggemma-300M-Q8_0.gguf" in reason(engine.backend)
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is not None
    assert not any(call[0] in ("query", "vsearch") for call in ready.stub.calls)


def test_a_question_has_files_that_changed_read_first_unless_a_person_does_that(ready):
    (ready.workspace / "memory" / "new.md").write_text("A zebra\n")
    with ready.engine() as engine:
        # The last update was a moment ago.
        assert engine.backend.ask("zebra") is None
        assert "it holds 3 documents, and 4 files belong to its collections" in reason(engine.backend)
        engine.backend.recovered()
    with ready.engine(**{"qmd.update.debounceMs": 0, "qmd.update.interval": "0"}) as engine:
        assert engine.backend.ask("zebra") is None
        engine.backend.recovered()
    with ready.engine(**{"qmd.update.debounceMs": 0}) as engine:
        answer = engine.backend.ask("zebra")
        assert [hit.path for hit in answer.hits] == ["memory/new.md"]
        updates = sum(call[0] == "update" for call in ready.stub.calls)
        assert engine.backend.ask("Router") is not None
    assert sum(call[0] == "update" for call in ready.stub.calls) == updates == 2


def test_an_index_that_is_gone_or_no_database_is_said_and_made_again(ready):
    ready.qmd_index.unlink()
    with ready.engine() as engine:
        client = engine.backend.client
        assert engine.backend.ask("Router") is None
        assert "empty or stale" in reason(engine.backend)
        assert engine.status().backend == "builtin"
        qmd.update(client, Stop())
        engine.backend.recovered()
        assert engine.backend.ask("Router") is not None
        assert engine.status().backend_state == "qmd"
        for side in ("-wal", "-shm"):
            ready.qmd_index.with_name(f"index.sqlite{side}").unlink(missing_ok=True)
        ready.qmd_index.write_bytes(b"garbage " * 600)
        assert engine.backend.ask("Router") is None
        assert "not an SQLite database" in reason(engine.backend)
        assert "Move the folder away" in reason(engine.backend)
        with pytest.raises(QmdFailure):
            qmd.update(client, Stop())
        ready.qmd_index.unlink()
        qmd.update(client, Stop())
        engine.backend.recovered()
        assert engine.backend.ask("Router") is not None


def test_a_model_that_is_no_gguf_is_refused_before_qmd_would_delete_it(ready, tmp_path):
    model = tmp_path / "model.gguf"
    model.write_text("no model")
    config = ready.folder / "index.sqlite.qmd" / "xdg-config"
    put(config, "index.yml", text=f"collections: {{}}\nmodels:\n  embed: {model}\n")
    count = len(ready.stub.calls)
    with ready.engine() as engine:
        assert engine.backend.ask("Router") is None
        assert "not in GGUF format" in reason(engine.backend)
        with pytest.raises(QmdFailure):
            qmd.update(engine.backend.client, Stop())
    assert (len(ready.stub.calls), model.read_text()) == (count, "no model")


QUESTIONS = ["-n Router", "--help", 'he said "Router"', "Router\nVLAN", "Router\0VLAN", "'; DROP TABLE documents; --"]


def test_no_question_becomes_an_option_or_ends_the_answer(ready):
    with ready.engine() as engine:
        for query in QUESTIONS:
            assert engine.backend.ask(query) is not None
            command = ready.stub.calls[-1]
            assert (command[0], command[1].startswith("-"), command[2]) == ("search", False, "--json"), query
        count = len(ready.stub.calls)
        assert engine.backend.ask(" ") is None
        assert engine.backend.ask("x" * (1 << 20)) is None
        assert (engine.backend.fallback(), len(ready.stub.calls)) == (None, count)


def test_an_empty_answer_counts_only_where_every_file_has_a_document(ready):
    file = ready.workspace / "MEMORY.md"
    os.utime(file, (time.time() + 5, time.time() + 5))
    with ready.engine() as engine:
        answer = engine.backend.ask("zebra")
        assert [claim.kind for claim in answer.claims] == ["not-every-word", "behind"]
        assert engine.status().backend_state == "qmd, behind (1 file changed)"


def test_a_program_that_a_file_names_is_run_after_an_agreement(bench, tmp_path):
    config = tmp_path / "openclaw.json"
    config.write_text(json.dumps({"memory": {"backend": "qmd", "qmd": {"command": str(bench.stub.program)}}}))
    options = replace(bench.options(), changes=(), backend="", config=str(config))
    with Engine.open(options, bench.events.append) as engine:
        assert engine.backend.ask("Router") is None
        assert bench.stub.calls == []
        assert str(bench.stub.program) in reason(engine.backend)
        assert "openclaw.json" in reason(engine.backend)
        engine.backend.client.approve("a test")
        engine.backend.recovered()
        assert engine.backend.ask("Router") is not None


def test_an_update_mends_collections_and_runs_once_at_a_time(ready):
    with sqlite3.connect(ready.qmd_index) as store:
        store.execute("UPDATE store_collections SET pattern = '*.txt' WHERE name = 'memory-dir-main'")
        store.execute("INSERT INTO store_collections VALUES ('old-thing', '/gone', '*.md')")
    with ready.engine() as engine:
        client = engine.backend.client
        report = qmd.update(client, Stop())
        assert {"collection memory-dir-main removed", "collection old-thing removed"} <= set(report["changes"])
        lock = locks.WriterLock.acquire(client.lock)
        assert lock is not None
        with lock:
            # A search does not wait for it.
            assert engine.backend.ask("Router") is not None
            with pytest.raises(QmdFailure, match="Another memory-tui"):
                qmd.update(client, Stop())


def test_a_mode_with_vectors_has_them_made_by_the_command(ready, tmp_path, monkeypatch):
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF and more")
    monkeypatch.setenv("QMD_EMBED_MODEL", str(model))
    with ready.engine(**{"qmd.searchMode": "vsearch"}) as engine:
        assert engine.backend.ask("drinks") is None
        assert "no vectors. Run memory-tui qmd update" in reason(engine.backend)
        assert qmd.update(engine.backend.client, Stop())["vectors"]
        engine.backend.recovered()
        ready.stub.behave(query={"print": "[]"})
        answer = engine.backend.ask("drinks")
    assert ready.stub.calls[-1][:3] == ["query", "vec: drinks", "--no-rerank"]
    assert [claim.kind for claim in answer.claims][:2] == ["nothing-near", "typed"]


GROUP = "agent:main:telegram:group:7"
ANY = [{"action": "allow"}]


def rules(default, action, **match):
    return {"default": default, "rules": [{"action": action, "match": match}]}


@pytest.mark.parametrize(
    ("scope", "key", "rule"),
    [
        (None, "", ""),
        (None, "agent:main:main", ""),
        (None, "agent:main:telegram:direct:7", ""),
        (None, GROUP, "The default, direct chats alone, of memory.qmd.scope"),
        (None, "agent:main:slack:channel:c", "The default"),
        (None, "agent:main:subagent:x", "The default"),
        ("allow", GROUP, "The default, direct chats alone, of openclaw.json:1 memory.qmd.scope"),
        ({"rules": []}, GROUP, ""),
        ({"default": "deny", "rules": []}, GROUP, "The default of openclaw.json:1 memory.qmd.scope"),
        (rules("deny", "allow", channel="telegram", chatType="group"), GROUP.upper(), ""),
        (rules("allow", "deny", chatType="dm"), "agent:main:tg:dm:1", "Rule 1"),
        (rules("deny", "allow", keyPrefix="slack:"), GROUP, "The default"),
        (rules("deny", "allow", keyPrefix="agent:main:"), GROUP, ""),
        ({"rules": [*rules("", "deny", rawKeyPrefix="agent:main:t")["rules"], *ANY]}, GROUP, "Rule 1 of openclaw.json"),
        ({"rules": ["allow", *ANY]}, GROUP, "Rule 1"),
        ({"rules": 7}, GROUP, "Rule 1"),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_chat_that_the_scope_denies_gets_no_hits_whoever_would_answer(shared, tmp_path, scope, key, rule, late):
    shared.stub.behave()
    config = tmp_path / "openclaw.json"
    config.write_text(json.dumps({"memory": {"qmd": {} if scope is None else {"scope": scope}}}))
    with synced(replace(shared.options(), config=str(config))) as engine:
        count = len(shared.stub.calls)
        answer = memory_search(engine, {"query": "Router"}, AnswerRules(session_key=key), by_words=late).answer
    said = " ".join(answer.get("notices", ()))
    assert (bool(answer["results"]), rule in said, "denies this chat" in said) == (not rule, True, bool(rule))
    assert not rule or len(shared.stub.calls) == count


def test_hits_are_within_the_bounds(ready):
    files = ("memory-dir-main/garden.md", "memory-dir-main/2026-11-01.md", "memory-root-main/MEMORY.md")
    rows = [{"file": f"qmd://{file}", "score": 1, "snippet": f"@@ -1,1 @@\n{'a' * 900}"} for file in files]
    ready.stub.behave(search={"print": json.dumps(rows)})
    with ready.engine(**{"qmd.limits.maxInjectedChars": 1000}) as engine:
        answer = engine.backend.ask("Router")
        assert [len(hit.snippet) for hit in answer.hits] == [700, 300]
        assert "1 hit left out" in answer.remarks[0].sentence
        ready.stub.behave()
        [hit] = memory_search(engine, {"query": "Router VLAN"}, AnswerRules("on")).answer["results"]
    assert (hit["path"], hit["rank"], hit["citation"], "vectorScore" in hit) == ("MEMORY.md", 1, "MEMORY.md#L4", False)


def test_a_hit_outside_of_the_workspace_is_named_by_its_collection_and_can_be_read(ready):
    folder = ready.folder / "books"
    put(folder, "a.md", text="Router in a book\n")
    (ready.folder / "secret.md").write_text("secret\n")
    with ready.engine(**{"qmd.paths": [{"path": str(folder), "name": "Books!"}]}) as engine:
        qmd.update(engine.backend.client, Stop())
        paths = [hit["path"] for hit in memory_search(engine, {"query": "Router"}).answer["results"]]
        assert "qmd/books--main/a.md" in paths
        assert memory_get(engine, {"path": "qmd/books--main/a.md"})["text"] == "Router in a book"
        for path in ("qmd/books--main/../secret.md", "qmd/books--main/b.md", "qmd/nope/a.md"):
            assert memory_get(engine, {"path": path})["status"] != "ok", path


def test_what_qmd_gave_is_logged_by_rank(ready):
    served = ServedMemory(lambda: Engine.open(ready.options()), ServerOptions(log=True, max_injected_chars=40))
    served.answer(SEARCH, {"query": "Router"}, Caller("an agent", {}, Stop()))
    ready.stub.behave(search={"error": "Error: boom", "status": 1})
    served.answer(SEARCH, {"query": "Tomatoes"}, Caller("an agent", {}, Stop()))
    served.close()
    place = recall_log.recall_log_path(ready.workspace)
    of_qmd, instead = recall_log.read(place).entries
    assert (of_qmd.backend, of_qmd.provider, instead.backend) == ("qmd", "qmd", "builtin")
    assert [(hit.rank, hit.vector_score, hit.cut) for hit in of_qmd.hits] == [(1, 0.0, False), (2, 0.0, True)]
    assert "VLAN" not in place.read_text()


@pytest.fixture
def run(bench, command):
    def call(*words, backend="qmd"):
        given = ["--workspace", str(bench.workspace), "--index", str(bench.folder / "index.sqlite")]
        given += ["--provider", "none", "--set", f"qmd.command={bench.stub.program}"]
        given += ["--set", "qmd.limits.timeoutMs=20000", *(["--backend", backend] if backend else [])]
        return command(*given, *words)

    return call


def data(answer):
    return json.loads(answer[1])


def test_each_action_answers_in_json_and_in_words(run, bench):
    report = data(run("qmd", "update", "--json"))
    assert (report["documents"], report["vectors"]) == (3, 0)
    assert "QMD update: 3 documents" in run("qmd", "update")[1]
    status = data(run("qmd", "status", "--json"))
    assert (status["state"], status["documents"], status["lacking"], status["problem"]) == ("qmd", 3, 0, "")
    assert [one["name"] for one in status["collections"]] == ["memory-root-main", "memory-alt-main", "memory-dir-main"]
    assert "Collection:   memory-dir-main" in run("qmd", "status")[1]
    code, out, err = run("qmd", "update", "--set", "qmd.searchMode=vsearch", "--json")
    assert (code, "embed model" in err) == (1, True)
    assert json.loads(out)["error"]["code"] == "qmd"


def test_an_answer_tells_who_gave_it_and_why_not_qmd(run, bench):
    found = data(run("search", "Router VLAN", "--json"))
    assert (found["backend"], found["fallback"], found["mode"]) == ("qmd", None, "search")
    assert [hit["rank"] for hit in found["results"]] == [1]
    assert "#1 MEMORY.md#L4-L4" in run("search", "Router VLAN")[1]
    assert "which QMD's search requires" in run("search", "zebra")[1]
    bench.stub.behave(search={"error": "Error: boom", "status": 1})
    found = data(run("search", "Router VLAN", "--json"))
    assert found["backend"] == "builtin"
    assert found["results"]
    assert found["fallback"] | {"since": 0, "retryAt": 0} == {
        "from": "qmd",
        "to": "builtin",
        "reason": "QMD search failed: Error: boom.",
        "nextStep": "Run memory-tui doctor to see which step fails.",
        "since": 0,
        "retryAt": 0,
    }
    assert "The built-in index answered: QMD search failed: Error: boom." in run("search", "Router")[2]
    status = data(run("status", "--json"))
    assert (status["backend"], status["fallback"]["from"]) == ("builtin", "qmd")
    assert status["custom"]["fallback"]["disabled"] is True
    assert status["backendState"].startswith("builtin because: QMD search failed: Error: boom, again at ")


def test_whoever_chose_the_index_hears_nothing_of_qmd(run):
    found = data(run("search", "Router", "--json", backend=""))
    assert (found["backend"], found["fallback"]) == ("builtin", None)
    status = data(run("status", "--json", backend=""))
    assert (status["backend"], status["backendState"], status["custom"]) == ("builtin", "builtin", None)
    assert data(run("status", "--json", backend="builtin"))["backendState"] == "builtin (chosen)"


def test_doctor_asks_and_names_what_mends_it(run, bench):
    def steps():
        found = json.loads(run("doctor", "--json")[1])
        rows = found["checks"] if isinstance(found, dict) else found
        return {row["check"]: row for row in rows if row["check"].startswith("qmd-")}

    before = steps()["qmd-answers"]
    assert (before["state"], before["fix"]) == ("failed", "Run memory-tui qmd update.")
    run("qmd", "update")
    assert steps()["qmd-answers"]["state"] == "ok"
    bench.stub.behave(search={"error": "Error: boom", "status": 1})
    assert data(run("search", "Router", "--json"))["backend"] == "builtin"
    assert steps()["qmd-answers"]["state"] == "failed"
    bench.stub.behave()
    assert steps()["qmd-answers"]["state"] == "ok"
    # Searches ask it again too.
    assert data(run("search", "Router", "--json"))["backend"] == "qmd"


def test_a_command_that_is_ended_leaves_no_process_of_qmd(run, bench):
    run("qmd", "update")
    bench.stub.behave(search={"hang": True, "child": True})
    words = [sys.executable, "-m", "memory_tui", "--workspace", str(bench.workspace), "--backend", "qmd", "--index"]
    words += [str(bench.folder / "index.sqlite"), "--set", f"qmd.command={bench.stub.program}"]
    words += ["--set", "qmd.limits.timeoutMs=600000", "search", "Router"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        marker = bench.stub.folder / "hanging"
        until(lambda: marker.exists() and marker.read_text(), "QMD runs")
        process.terminate()
        assert process.wait(LONG) == 128 + signal.SIGTERM
    for name in ("hanging", "child"):
        until(lambda name=name: not alive(int((bench.stub.folder / name).read_text())), "the process ended")
