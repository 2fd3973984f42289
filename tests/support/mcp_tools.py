"""The inspector of MCP, from npm."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.npm import installed, node
from tests.support.waiting import LONG

VERSIONS = {"@modelcontextprotocol/inspector": "2.12.0"}


def folder() -> Path:
    """Where it is installed. Skips the test, with the reason, where npm cannot install it."""
    return installed("mcp-inspector", VERSIONS)


def inspector(home: Path, *words: str) -> str:
    """What it prints; a failure fails the test with all that it said."""
    program = node()
    start = folder() / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
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
