"""The commands of QMD, as a person and as a program reads them."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from memory_tui.cli import main
from tests.support.qmd_bench import alive
from tests.support.waiting import LONG, until


@pytest.fixture
def run(bench, capsys):
    def call(*words, backend="qmd"):
        given = ["--workspace", str(bench.workspace), "--index", str(bench.folder / "index.sqlite")]
        given += ["--provider", "none", "--set", f"qmd.command={bench.stub.program}"]
        given += ["--set", "qmd.limits.timeoutMs=20000", *(["--backend", backend] if backend else [])]
        code = main.main([*given, *words])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def data(answer):
    found: dict[str, Any] = json.loads(answer[1])
    return found


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


def test_set_takes_the_keys_of_qmd_and_checks_them(run):
    code, _, err = run("search", "x", "--set", "qmd.searchMode=fast")
    assert (code, "one of search, vsearch, query" in err) == (2, True)
    code, _, err = run("search", "x", "--set", "qmd.limits.timeoutMs=soon")
    assert (code, "whole number" in err) == (2, True)
    code, _, err = run("search", "x", backend="lancedb")
    assert (code, "one of builtin, qmd" in err) == (2, True)
