"""Every bench runs at its smallest size and prints figures; the figures themselves are for people to read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.npm import CACHE
from tests.support.paths import ROOT, TESTS
from tests.support.real_openclaw import OLDEST, openclaw
from tests.support.waiting import LONG

BENCH = TESTS / "bench"
SMALL = {
    "backends": "--stub",
    "contradictions": "",
    "growth": "questions line secrets merges --scale 0.02",
    "inbox": "--chunks 20",
    "index_and_search": "--files 3 --chunks 20 --questions 2 --kinds frequent",
    "passages": "{labelled}",
    "profiles": "--files 3 --questions 2",
    "providers": "--chunks 20 --model none",
    "recall": "{labelled}",
    "simulated": "{place}",
    "trust": "looking saving replacing size --files 20 --many 20",
}
"""Bench -> the arguments of a run that takes a second or two."""
DEARER = {
    "explain": "--chunks 20 --questions 1",
    "processes": "--chunks 20 --times 1 --servers 2",
    "reading": "--megabytes 0.02 --chunks 20 --times 1",
    "screen": "--chunks 20 --files 3 --many 20 --times 2",
}
"""Those that start the app, many processes, or compute for long."""
REAL = {"peer": "--files 3 --questions 2"}
"""Those that run another program, which is installed from npm."""
MODULES = {"corpus", "measure"}
"""What the benches share."""


def labelled(place: Path) -> Path:
    """A set of one workspace and one question."""
    memory = place / "set" / "workspaces" / "one" / "memory"
    memory.mkdir(parents=True)
    (memory / "2026-01-02.md").write_text("# Home\n\n- The guest network is on VLAN 30\n")
    evidence = [{"path": "memory/2026-01-02.md", "line": 3}]
    query = {"workspace": "one", "question": "which vlan is the guest network on", "evidence": evidence}
    (place / "set" / "queries.jsonl").write_text(json.dumps(query) + "\n")
    return place / "set"


def figures(name: str, arguments: str, place: Path) -> list[str]:
    """The lines with a figure that a bench prints."""
    words = arguments.format(place=place, labelled=labelled(place) if "{labelled}" in arguments else "").split()
    # `backends` belongs to a package; the others stand beside what they import.
    script = ["-m", f"tests.bench.{name}"] if name == "backends" else [str(BENCH / f"{name}.py")]
    home = {key: str(place / "home") for key in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    done = subprocess.run(
        [sys.executable, *script, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **home, "TMPDIR": str(place), "MEMORY_TUI_TEST_CACHE": str(CACHE)},
        timeout=4 * LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if re.search(r"\d", line)]


def test_every_bench_is_run() -> None:
    assert {path.stem for path in BENCH.glob("*.py")} == {*SMALL, *DEARER, *REAL, *MODULES}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_bench_runs_at_its_smallest(name: str, tmp_path: Path) -> None:
    assert len(figures(name, SMALL[name], tmp_path)) >= 2


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(DEARER))
def test_a_dear_bench_runs_at_its_smallest(name: str, tmp_path: Path) -> None:
    assert len(figures(name, DEARER[name], tmp_path)) >= 8


@pytest.mark.soak
def test_the_real_openclaw_is_asked_the_same(tmp_path: Path) -> None:
    openclaw(OLDEST)
    assert len(figures("peer", REAL["peer"], tmp_path)) >= 4
