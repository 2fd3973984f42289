"""Packages from npm, installed once for all runs into a cache folder, so that no test waits for npm twice."""

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.support.waiting import LONG

# Read before a test changes its home.
CACHE = Path(os.environ.get("MEMORY_TUI_TEST_CACHE") or Path.home() / ".cache" / "memory-tui-tests")
_INSTALL_SECONDS = 240
_NODE = (24, 16)
"""What OpenClaw 2026.9.6 asks for; 2026.3.13 runs on it too."""


def node() -> str:
    """A Node that is new enough: the machine's, else one from npm. Skips the test, with the reason, without one."""
    found = shutil.which("node")
    if found is not None and _version_of(found) >= _NODE:
        return found
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "")
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    if not system or not machine:
        pytest.skip(f"no Node {_NODE[0]} here, and npm has none for {platform.system()} {platform.machine()}")
    package = f"node-{system}-{machine}"
    return str(installed("node-24", {package: "24"}) / "node_modules" / package / "bin" / "node")


def _version_of(program: str) -> tuple[int, int]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=LONG, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def installed(name: str, packages: Mapping[str, str], overrides: Mapping[str, str] = MappingProxyType({})) -> Path:
    """The folder `name` with `packages`, name to version. Skips the test, with the reason, where npm cannot."""
    folder = CACHE / name
    wanted = {"private": True, "dependencies": dict(packages), "overrides": dict(overrides)}
    done = folder / "whole.json"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        # Tests run in several processes, and one installs.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.is_file() and json.loads(done.read_text()) == wanted:
            return folder
        if shutil.which("npm") is None:
            pytest.skip(f"{name} is not installed: there is no npm")
        (folder / "package.json").write_text(json.dumps(wanted))
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"]
        try:
            words = ["npm", "install", *flags]
            more = {"capture_output": True, "text": True, "timeout": _INSTALL_SECONDS}
            run = subprocess.run(words, check=False, cwd=folder, **more)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name} is not installed: npm took more than {_INSTALL_SECONDS} seconds")
        if run.returncode != 0:
            pytest.skip(f"{name} is not installed: {' '.join(run.stderr.split())[-300:]}")
        done.write_text(json.dumps(wanted))
    return folder
