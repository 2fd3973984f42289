"""The folder of a demo that was killed is swept away when the next demo starts, and nothing else ever is."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui import demo, locks, plan
from memory_tui.backends.memories import TableLocation
from memory_tui.cli.main import main
from memory_tui.config import places
from memory_tui.config.config_patch import patch
from memory_tui.plan import Options

CHILD = """
import sys
from memory_tui import demo as folders
with folders.own_folder() as folder:
    (folder / "workspace").mkdir()
    (folder / "workspace" / "MEMORY.md").write_text("a note")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of its own, for this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def child(temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo in another process, which ends when its input does."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def made(child: subprocess.Popen[str]) -> Path:
    assert child.stdout is not None
    return Path(child.stdout.readline().strip())


def test_the_folder_of_a_killed_demo_goes_and_that_of_a_living_one_stays(temporary, child):
    folder = made(child)
    assert folder.parent == temporary
    assert demo.sweep(temporary) == []
    assert (folder / "workspace" / "MEMORY.md").exists()
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert (folder / "workspace" / "MEMORY.md").exists(), "nobody tidied up"
    with demo.own_folder() as mine:
        assert not folder.exists()
        assert mine.exists()


def test_nothing_else_is_removed(temporary):
    dead = json.dumps({"pid": os.getpid(), "started": "1", "since": 0.0})
    elsewhere = temporary / "elsewhere"
    for name in ("memory-tui-demo-unmarked", "memory-tui-demo-damaged", "memory-tui-demo-ours", "other-demo"):
        (temporary / name).mkdir()
        (temporary / name / "note.md").write_text("a note")
    elsewhere.mkdir()
    (elsewhere / "note.md").write_text("a note")
    (elsewhere / "demo.lock").write_text(dead)
    (temporary / "memory-tui-demo-file").write_text("a file")
    (temporary / "memory-tui-demo-link").symlink_to(elsewhere)
    (temporary / "other-demo" / "demo.lock").write_text(dead)
    (temporary / "memory-tui-demo-damaged" / "demo.lock").write_text("{")
    (temporary / "memory-tui-demo-ours" / "demo.lock").write_text(
        json.dumps({"pid": os.getpid(), "started": locks.process_start(os.getpid()), "since": 0.0})
    )
    linked = temporary / "memory-tui-demo-linkedmark"
    linked.mkdir()
    (linked / "demo.lock").symlink_to(elsewhere / "demo.lock")
    before = sorted(temporary.rglob("*"))
    assert demo.sweep(temporary) == []
    assert sorted(temporary.rglob("*")) == before


def test_a_process_with_the_same_number_is_another_one(temporary):
    old = temporary / "memory-tui-demo-old"
    (old / "workspace").mkdir(parents=True)
    (old / "workspace" / "link").symlink_to(temporary)
    (old / "demo.lock").write_text(json.dumps({"pid": os.getpid(), "started": "1", "since": 0.0}))
    if not locks.process_start(os.getpid()):
        pytest.skip("This system does not tell when a process started.")
    assert demo.sweep(temporary) == [old]
    assert not old.exists()
    assert temporary.exists()


def test_a_folder_whose_lock_is_held_stays(temporary):
    """As by a demo in another container, whose process number means nothing here."""
    folder = temporary / "memory-tui-demo-held"
    folder.mkdir()
    with locks.WriterLock.acquire(folder / demo.MARK) or pytest.fail("it was free"):
        (folder / "demo.lock").write_text(json.dumps({"pid": os.getpid(), "started": "1", "since": 0.0}))
        assert demo.sweep(temporary) == []
    assert folder.exists()


def test_a_demo_neither_reads_nor_writes_the_configuration_of_its_user(temporary, monkeypatch):
    theirs = places.own_path()
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text('{"query": {"maxResults": 3}}')
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", str(theirs.parent / "openclaw.json"))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    written: list[str] = []

    def screen(chosen: Options, *_more: object, **_named: object) -> int:
        choices = plan.choose(replace(chosen, changes=(*chosen.changes, ("query.minScore", "0.2"))))
        assert choices.settings.values["query.maxResults"].value == 6
        found = patch(choices.config, choices.settings, choices.as_written())
        assert "0.2" in found.diff()
        assert TableLocation.of(choices).uri.startswith(str(Path(chosen.workspace or "").parent)), (
            "nobody's own memories"
        )
        assert places.openclaw_path().is_relative_to(temporary), "nobody's own OpenClaw"
        written.extend(str(file.path) for file in found.files)
        found.write()
        return 0

    monkeypatch.setattr("memory_tui.tui.run.run", screen)
    assert main(["demo", "--provider", "none"]) == 0
    assert written
    assert all(Path(path).is_relative_to(temporary) for path in written)
    assert theirs.read_text() == '{"query": {"maxResults": 3}}'
