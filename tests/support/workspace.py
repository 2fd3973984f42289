"""Make files for tests of the workspace."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.events import Listener
from memory_tui.plan import Options

needs_inodes = pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds and names")

FACTS = {"MEMORY.md": "# Facts\n- Router: Omada ER605\n", "memory/2026-11-18.md": "Moved the printer to VLAN 20\n"}


def put(root: Path, *names: str, text: str = "note\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def put_all(folder: Path, notes: Mapping[str, str]) -> Path:
    """The folder with these notes in it, by their paths."""
    for path, text in notes.items():
        put(folder, path, text=text)
    return folder


def options_of(folder: Path, index: Path, *changes: tuple[str, str], **more: Any) -> Options:
    return Options(workspace=str(folder), index=str(index), changes=changes, **more)


@contextlib.contextmanager
def synced(options: Options, *hear: Listener) -> Iterator[Engine]:
    """An engine whose index is up to date."""
    with Engine.open(options, *hear) as engine:
        engine.index.sync()
        yield engine


def own_home(monkeypatch: pytest.MonkeyPatch, folder: Path, home: Path) -> None:
    """A home of its own, with nothing of the hosts that the developer has."""
    monkeypatch.setenv("HOME", str(home))
    for name in ("STATE", "CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))


@contextlib.contextmanager
def unprivileged_folder() -> Iterator[Path]:
    """A folder in which permissions count: the superuser, whom nothing stops, steps down meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid() != 0:
            yield folder
            return
        folder.chmod(0o777)
        os.seteuid(65534)
        try:
            if not os.access(folder, os.W_OK, effective_ids=True):
                pytest.skip("the temporary folder is closed to other users")
            yield folder
        finally:
            os.seteuid(0)


def install_agents(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put agent programs on the PATH, as far as looking for them goes."""
    folder.mkdir()
    for name in ("claude", "codex"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
