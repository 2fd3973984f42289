"""What the doctor says of OpenClaw's agent, whose memory is memory-tui or another."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from memory_tui.config import release
from memory_tui.doctor import CHECKS, CheckOutcome
from memory_tui.engine.engine import Engine
from memory_tui.hosts import registry
from memory_tui.hosts.registry import plugin_folder
from memory_tui.plan import Options

(SLOT,) = (check.run for check in CHECKS if check.key == "openclaw-slot")


@pytest.fixture
def plugin(tmp_path):
    return Path(shutil.copytree(plugin_folder(), tmp_path / "plugin"))


@pytest.fixture
def open_with(tmp_path, monkeypatch):
    engines: list[Engine] = []
    monkeypatch.setattr(release, "installed", lambda: None)
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


def test_another_memory_is_no_matter(open_with):
    found = SLOT(open_with({}))
    assert (found.state, found.evidence) == ("skipped", "OpenClaw's agent asks memory-core, not memory-tui.")


def test_a_connected_agent_ranks_as_the_screen_does(open_with, plugin):
    found = SLOT(open_with(slot(plugin)))
    assert found.state == "ok", found
    assert "profile recommended" in found.evidence


def test_a_screen_that_ranks_otherwise_is_said(open_with, plugin):
    found = SLOT(open_with(slot(plugin), ("profile", "openclaw-2026.3")))
    assert found.state == "warning"
    assert found.evidence == "The agent recalls by profile recommended; what you see here is ranked by openclaw-2026.3."


@pytest.mark.parametrize(
    ("break_it", "state", "evidence"),
    [
        (lambda plugin: slot(plugin / "gone"), "failed", "no folder in plugins.load.paths holds the plug-in"),
        (lambda plugin: slot(plugin, "/nowhere/memory-tui"), "failed", "/nowhere/memory-tui, which is not there"),
        (edited, "warning", "is of another version: index.js"),
    ],
)
def test_what_is_broken_is_named_with_the_command_that_mends_it(open_with, plugin, break_it, state, evidence):
    found: CheckOutcome = SLOT(open_with(break_it(plugin)))
    assert found.state == state
    assert evidence in found.evidence
    assert "memory-tui connect openclaw" in found.fix


def test_connecting_warns_of_dreaming_until_it_is_switched_off(open_with, plugin):
    assert registry.dreams(open_with(slot(plugin)).plan.config)
    for core in ({"enabled": False}, {"config": {"dreaming": {"enabled": False}}}):
        assert not registry.dreams(open_with(slot(plugin, **{"memory-core": core})).plan.config)
    assert not registry.dreams(open_with(slot(plugin), memorySearch={"provider": "none"}).plan.config)
