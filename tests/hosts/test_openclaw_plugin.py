"""The plugin for OpenClaw's memory slot: its JavaScript by itself, and what its files have to agree on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from memory_tui import profiles
from memory_tui.config import release
from memory_tui.mcp.schemas import recorded
from tests.support.paths import ROOT
from tests.support.waiting import LONG

FOLDER = ROOT / "memory_tui" / "hosts" / "openclaw_plugin"
TESTS = ROOT / "tests" / "hosts" / "openclaw_plugin" / "plugin.test.mjs"


def test_its_javascript_does_what_its_own_tests_ask() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here to run the plugin's own tests")
    run = subprocess.run(
        [node, "--test", str(TESTS)],
        check=False,
        env={**os.environ, "PLUGIN": str(FOLDER)},
        capture_output=True,
        text=True,
        timeout=2 * LONG,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_its_manifest_agrees_with_the_program() -> None:
    manifest = json.loads((FOLDER / "openclaw.plugin.json").read_text())
    package = json.loads((FOLDER / "package.json").read_text())
    assert manifest["id"] == package["name"] == release.PLUGIN
    assert manifest["configSchema"]["properties"]["profile"]["enum"] == list(profiles.PROFILES)
    assert "dependencies" not in package
    assert "scripts" not in package


def test_its_tools_take_what_the_server_takes() -> None:
    source = (FOLDER / "tools.js").read_text()
    for kind in ("SearchArguments", "GetArguments"):
        for name in recorded()[kind]["properties"]:
            assert f"{name}: {{" in source, f"{kind}.{name}"


def test_every_module_is_reached_from_its_entry() -> None:
    reached, waiting = set(), [FOLDER / "index.js"]
    while waiting:
        module = waiting.pop()
        if module in reached:
            continue
        reached.add(module)
        for line in module.read_text().splitlines():
            if ' from "./' in line:
                waiting.append(module.parent / line.partition(' from "./')[2].partition('"')[0])
            assert "require(" not in line
    assert reached == set(FOLDER.glob("*.js"))
