"""The conformance suite and the inspector of MCP, from npm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.npm import installed, node
from tests.support.waiting import LONG

VERSIONS = {"@modelcontextprotocol/conformance": "0.1.16", "@modelcontextprotocol/inspector": "2.12.0"}
_START = {
    "@modelcontextprotocol/conformance": "dist/index.js",
    "@modelcontextprotocol/inspector": "clients/launcher/build/index.js",
}


def folder() -> Path:
    """Where they are installed. Skips the test, with the reason, where npm cannot install them."""
    return installed("mcp-tools", VERSIONS)


def run(package: str, home: Path, *words: str) -> str:
    """What a tool prints; a failure fails the test with all that it said."""
    program = node()
    start = folder() / "node_modules" / package / _START[package]
    path = f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [program, str(start), *words],
        check=False,
        cwd=home,
        env={**os.environ, "HOME": str(home), "PATH": path, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * LONG,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
