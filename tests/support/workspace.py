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


def put_all(folder: Path, notes: Mapping[str, str | bytes]) -> Path:
    """The folder with these notes in it, by their paths."""
    for path, text in notes.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def texts_of(folder: Path) -> dict[str, bytes]:
    """What each note holds, by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.md"))}


def options_of(folder: Path, index: Path, *changes: tuple[str, str], **more: Any) -> Options:
    return Options(workspace=str(folder), index=str(index), changes=changes, **more)


def options_in(place: Path, *changes: str, **more: Any) -> Options:
    """The options for the notes and the index in `place`; a change is told as "profile=recommended"."""
    pairs = tuple((key, value) for key, _, value in (change.partition("=") for change in changes))
    places = {"workspace": str(place / "notes"), "index": str(place / "index.sqlite")}
    return Options(**{**places, "changes": pairs, **more})


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
