"""The real OpenClaw takes what `connect` writes, and has its old configuration after `disconnect`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.real_openclaw import NEWEST, OpenClaw
from tests.support.scripted_model import Model

FACT = "- The Omada controller runs on port 8043 in VLAN 20.\n"


def test_the_slot_is_taken_and_given_back(tmp_path: Path) -> None:
    installed = OpenClaw(NEWEST, tmp_path, tmp_path / "notes", Model())
    installed.workspace.mkdir()
    (installed.workspace / "MEMORY.md").write_text(FACT)
    installed.configure({})
    before = installed.config_path.read_bytes()

    def memory_tui(*words: str) -> dict[str, object]:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("memory-tui")), *words, "--yes", "--json"],
            check=False,
            cwd=tmp_path,
            env=installed.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    made = memory_tui("connect", "openclaw")
    assert made["proof"]["profile"] == "recommended"  # type: ignore[index]
    assert made["proof"]["first"] == "MEMORY.md:1"  # type: ignore[index]
    said = installed.run("plugins", "inspect", "memory-tui", "--json")
    assert said.returncode == 0, said.stdout + said.stderr
    plugin = json.loads(said.stdout[said.stdout.index("{") :])["plugin"]
    assert plugin["status"] == "loaded"
    assert plugin["activated"]
    memory_tui("disconnect", "openclaw")
    assert installed.config_path.read_bytes() == before
    assert not (tmp_path / ".data" / "memory-tui" / "openclaw_plugin").exists()
