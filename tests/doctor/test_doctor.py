"""The doctor: every check finds what is wrong where something is, and says what to do; none stops the others."""

import json
import shutil
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import watchfiles

from memory_tui import doctor
from memory_tui.cli import main
from memory_tui.config import openclaw_release
from memory_tui.doctor import CHECKS, Check, CheckOutcome
from memory_tui.engine.engine import Engine
from memory_tui.engine.search import Search
from memory_tui.errors import MemoryTuiError
from memory_tui.hosts import openclaw
from memory_tui.hosts.openclaw import plugin_folder
from memory_tui.plan import Options
from tests.support.waiting import LONG
from tests.support.workspace import install_agents, options_of, put_all


@pytest.fixture
def workspace(tmp_path):
    log = {"memory/2020-01-12.md": "set up the guest network on the router\n" * 3}
    return put_all(tmp_path / "notes", {"MEMORY.md": "# Lasting\n- the router is an Omada ER605 with VLAN 20\n", **log})


@pytest.fixture
def open_engine(workspace, tmp_path):
    with ExitStack() as engines:

        def go(*changes, provider="scripted", sync=True):
            options = options_of(workspace, tmp_path / "place/index.sqlite", *changes, provider=provider)
            engine = engines.enter_context(Engine.open(options))
            if sync:
                engine.index.sync()
            return engine

        yield go


@pytest.fixture(autouse=True)
def _sharp_eyes(monkeypatch):
    """How soon a busy machine tells of a saved file is no part of these tests."""
    monkeypatch.setattr(doctor, "_SIGHT_SECONDS", LONG)


def found(engine, key):
    [result] = doctor.examine(engine, [check for check in doctor.CHECKS if check.key == key], LONG)
    return result


def test_a_note_of_which_some_words_are_not_found_is_no_clean_bill(workspace, open_engine):
    assert found(open_engine(), "readable").state == "ok"
    (workspace / "memory" / "bakery.md").write_bytes("Die Bäckerei schließt um eins.\n".encode("cp1252"))
    engine = open_engine()
    outcome = found(engine, "readable")
    assert outcome.state == "warning"
    assert "memory/bakery.md: 2 byte sequences are not UTF-8" in outcome.evidence
    assert [note.path for note in engine.status().in_part] == ["memory/bakery.md"]
    (workspace / "memory" / "bakery.md").write_text("Die Bäckerei schließt um eins.\n")
    assert engine.status().in_part == (), "it waits to be indexed, which is said of it already"
    engine.index.sync()
    assert found(engine, "readable").state == "ok"


def test_a_healthy_memory_has_no_failure(open_engine):
    engine = open_engine()
    results = list(doctor.examine(engine, doctor.checks_of(engine), LONG))
    assert {check.key for check in doctor.CHECKS} - {result.check for result in results} == {"qmd-answers", "ltm-table"}
    assert [result for result in results if result.state in ("failed", "no answer")] == []
    assert doctor.verdict(results) == 0
    assert all(result.evidence for result in results)
    assert all(result.fix for result in results if result.state == "warning")


def test_a_workspace_without_notes_fails(open_engine, workspace):
    (workspace / "MEMORY.md").unlink()
    (workspace / "memory/2020-01-12.md").unlink()
    engine = open_engine()
    assert found(engine, "readable").state == "failed"
    assert found(engine, "curated").state == "warning"


def test_a_note_that_was_saved_since_is_named(open_engine, workspace):
    engine = open_engine(("sync.onSearch", "off"), sync=False)
    assert found(engine, "fresh").state == "failed", "there is no index"
    engine.index.sync()
    assert found(engine, "fresh").state == "ok"
    (workspace / "memory/2020-01-13.md").write_text("new")
    finding = found(engine, "fresh")
    assert finding.state == "warning"
    assert "2020-01-13.md" in finding.evidence


def test_a_provider_that_is_not_there_fails(open_engine):
    engine = open_engine(provider="openai")
    assert found(engine, "provider").state == "failed"
    assert found(engine, "provider").fix
    assert found(open_engine(provider="none"), "provider").state == "skipped"


def test_the_watcher_is_tried_for_real(open_engine, monkeypatch):
    engine = open_engine()
    assert found(engine, "watcher").state == "ok"
    monkeypatch.setattr(doctor, "_SIGHT_SECONDS", 0.1)
    monkeypatch.setattr(watchfiles, "watch", lambda *_, **__: iter(lambda: time.sleep(0.01), 0))
    assert found(engine, "watcher").state == "warning"

    def refusing(*_, **__):
        raise OSError(28, "OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", refusing)
    assert "limit reached" in found(engine, "watcher").evidence


def test_a_check_that_breaks_or_hangs_stops_no_other(open_engine, monkeypatch):
    engine, never = open_engine(), threading.Event()

    def breaks(_):
        raise ZeroDivisionError("oh")

    def refuses(_):
        raise MemoryTuiError("No.", "Do that.")

    def hangs(_):
        never.wait(LONG)
        return CheckOutcome("ok", "late")

    runs = {"a": breaks, "b": refuses, "c": hangs, "d": lambda _: CheckOutcome("ok", "fine")}
    table = [Check(name, "machine", name, run) for name, run in runs.items()]
    results: dict[str, CheckOutcome] = {}

    def now():
        """The deadline comes when all but one have answered."""
        return 0.0 if len(results) < len(table) - 1 else LONG - 0.01

    monkeypatch.setattr(doctor, "time", SimpleNamespace(monotonic=now, perf_counter=time.perf_counter))
    for result in doctor.examine(engine, table, LONG):
        results[result.check] = result
    never.set()
    states = {key: finding.state for key, finding in results.items()}
    assert states == {"a": "failed", "b": "failed", "c": "no answer", "d": "ok"}
    assert "ZeroDivisionError" in results["a"].evidence
    assert results["b"].fix == "Do that."


def test_the_command_tells_what_is_wrong_first(workspace, tmp_path, printed):
    place = ["--workspace", str(workspace), "--index", str(tmp_path / "i"), "--deadline", str(LONG), "--provider"]
    place, without = [*place, "scripted"], [*place, "openai"]
    data = json.loads(printed("doctor", *place, "--json"))
    assert data["ok"] is True
    assert sum(data["counts"].values()) == len(data["checks"]) == len(doctor.CHECKS) - 2
    (workspace / "MEMORY.md").unlink()
    out = printed("doctor", *place)
    assert "warn There is one MEMORY.md" in out
    assert "Fix: memory-tui restore MEMORY.md" in out
    assert "ok   " not in out
    assert "ok   sqlite-vec works" in printed("doctor", *place, "--all")
    assert "FAIL" in printed("doctor", *without, code=1)
    (tmp_path / "file").touch()
    place += ["--index", str(tmp_path / "file" / "i")]
    assert "FAIL The index can be written, by you alone" in printed("doctor", *place, code=1)


def test_an_index_that_is_damaged_is_said_to_be(open_engine, monkeypatch):
    engine = open_engine()
    assert found(engine, "index-whole").state == "ok"
    monkeypatch.setattr(Search, "problems", lambda _: ("row 7 missing from index chunks_by_hash",))
    finding = found(engine, "index-whole")
    assert finding.state == "failed"
    assert "row 7" in finding.evidence


def test_a_connected_agent_is_proved_again(open_engine, workspace, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    install_agents(tmp_path / "programs", monkeypatch)
    engine = open_engine()
    assert found(engine, "agents").state == "skipped"
    shown = engine.plan.settings.word("profile")
    place = ["--workspace", str(engine.plan.workspace), "--index", str(tmp_path / "other")]
    assert main.main(["connect", "codex", "--yes", *place, "--profile", shown]) == 0
    finding = found(engine, "agents")
    assert finding.state == "ok"
    assert f"with profile {shown}" in finding.evidence
    config = tmp_path / "home" / ".codex" / "config.toml"
    config.write_text("")
    finding = found(engine, "agents")
    assert finding.state == "failed"
    assert "lost mcp_servers.memory" in finding.evidence
    assert "memory-tui connect codex" in finding.fix


(SLOT,) = (check.run for check in CHECKS if check.key == "openclaw-slot")


@pytest.fixture
def plugin(tmp_path):
    return Path(shutil.copytree(plugin_folder(), tmp_path / "plugin"))


@pytest.fixture
def open_with(tmp_path, monkeypatch):
    engines: list[Engine] = []
    monkeypatch.setattr(openclaw_release, "installed_release", lambda: None)
    notes = tmp_path / "notes"
    notes.mkdir()

    def go(plugins, *changes, **more):
        config = tmp_path / "openclaw.json"
        config.write_text(json.dumps({"agents": {"defaults": {"workspace": str(notes), **more}}, "plugins": plugins}))
        engines.append(Engine.open(Options(config=str(config), index=str(tmp_path / "i.sqlite"), changes=changes)))
        return engines[-1]

    yield go
    for engine in engines:
        engine.close()


def slot(folder, command=sys.executable, **entries):
    """The section that connects memory-tui by the plug-in in `folder`."""
    return {
        "load": {"paths": [str(folder)]},
        "slots": {"memory": "memory-tui"},
        "entries": {"memory-tui": {"enabled": True, "config": {"command": command}}, **entries},
    }


def edited(plugin):
    (plugin / "index.js").write_text("// of yesterday\n")
    return slot(plugin)


OTHERWISE = ("profile", "openclaw-2026.3")


@pytest.mark.parametrize(
    ("section", "changes", "state", "evidence"),
    [
        (lambda _: {}, (), "skipped", "OpenClaw's agent asks memory-core, not memory-tui."),
        (slot, (), "ok", "profile recommended"),
        (slot, (OTHERWISE,), "warning", "recommended; what you see here is ranked by openclaw-2026.3."),
        (lambda plugin: slot(plugin / "gone"), (), "failed", "no folder in plugins.load.paths holds the plug-in"),
        (lambda plugin: slot(plugin, "/nowhere/memory-tui"), (), "failed", "/nowhere/memory-tui, which is not there"),
        (edited, (), "warning", "is of another version: index.js"),
    ],
)
def test_what_is_broken_is_named_with_the_command_that_mends_it(open_with, plugin, section, changes, state, evidence):
    found: CheckOutcome = SLOT(open_with(section(plugin), *changes))
    assert found.state == state
    assert evidence in found.evidence
    assert "memory-tui connect openclaw" in found.fix or state in ("skipped", "ok") or changes


def test_connecting_warns_of_dreaming_until_it_is_switched_off(open_with, plugin):
    assert openclaw.dreams(open_with(slot(plugin)).plan)
    for core in ({"enabled": False}, {"config": {"dreaming": {"enabled": False}}}):
        assert not openclaw.dreams(open_with(slot(plugin, **{"memory-core": core})).plan)
    assert not openclaw.dreams(open_with(slot(plugin), memorySearch={"provider": "none"}).plan)
