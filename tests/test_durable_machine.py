"""Commands on a machine that lacks something: memory, permissions, a home, a writable disk, room for a file."""

import os
import subprocess
import sys

import pytest

from tests.support.workspace import put_all, texts_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits, capabilities and mounts are those of Linux")

NOTES = {
    "MEMORY.md": b"# Memory\n\n## Home\n- the vlan is 7\n",
    "memory/2026-01-20.md": b"# 2026-01-20\n\n- 09:00 morning with a vlan\n" + b"- " + b"x" * 4000 + b"\n",
}
PLACES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
LIMITED = """
import resource, sys
from memory_tui.cli import main as cli
import memory_tui.engine.engine, numpy, apsw
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), used + int(sys.argv[1])))
sys.exit(cli.main(sys.argv[2:]))
"""
# Without the two capabilities by which root reads and enters everything.
AS_A_USER = """
import ctypes, os, sys
for capability in (1, 2):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "memory_tui", *sys.argv[1:]])
"""


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path_factory, monkeypatch):
    """An index without a place goes there, and away with it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture
def notes(tmp_path):
    return put_all(tmp_path / "notes", NOTES)


def run(notes, *words, by=("-m", "memory_tui"), home="", index=None):
    environment = {**os.environ, **(dict.fromkeys(PLACES, home) if home else {})}
    usual = ["--workspace", str(notes), "--now", "2026-01-20T12:30:00Z"]
    place = ["--index", str(index)] if index is not None else []
    command = [sys.executable, *by, *usual, *place, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)


@pytest.mark.parametrize(
    ("words", "megabytes"),
    [(("index", "--force"), 4), (("search", "vlan"), 10), (("remember", "text", "--yes"), 1)],
    ids=["no thread", "no model", "no note"],
)
def test_too_little_memory_is_said_and_damages_nothing(notes, words, megabytes):
    assert run(notes, "index", "--provider", "none").returncode == 0
    done = run(notes, *words, by=("-c", LIMITED, str(megabytes << 20)))
    assert "Traceback" not in done.stderr
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("memory-tui: ")
    assert texts_of(notes) == NOTES
    found = run(notes, "search", "vlan", "--provider", "none")
    assert found.returncode == 0
    assert "the vlan is 7" in found.stdout


def test_what_may_not_be_read_is_named(notes):
    (notes / "memory" / "locked.md").write_text("# locked\n\n- vlan\n")
    (notes / "memory" / "closed").mkdir()
    (notes / "memory" / "locked.md").chmod(0)
    (notes / "memory" / "closed").chmod(0)
    by = ("-c", AS_A_USER) if os.geteuid() == 0 else ("-m", "memory_tui")
    try:
        made = run(notes, "index", "--provider", "none", by=by)
        assert made.returncode == 1, made.stderr
        status = run(notes, "status", "--provider", "none", by=by).stdout
        assert "failed: memory/locked.md  memory/locked.md may not be read." in status
        assert "left out: memory/closed  unreadable: This folder cannot be listed: Permission denied." in status
        assert "the vlan is 7" in run(notes, "search", "vlan", "--provider", "none", by=by).stdout
        refused = run(notes, "get", "memory/locked.md", by=by)
        assert refused.returncode != 0
        assert "Allow your user to read the file" in refused.stderr
    finally:
        (notes / "memory" / "closed").chmod(0o700)
        (notes / "memory" / "locked.md").chmod(0o600)


@pytest.fixture
def read_only(disk):
    """A file system that is mounted read-only, with notes and an empty folder."""
    put_all(disk / "notes", NOTES)
    (disk / "index").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    return disk


def test_notes_on_a_read_only_disk_are_searched_and_not_changed(read_only):
    notes = read_only / "notes"
    assert "the vlan is 7" in run(notes, "search", "vlan", "--provider", "none").stdout
    refused = run(notes, "remember", "text", "--yes")
    assert refused.returncode == 2
    assert "is read-only for you" in refused.stderr
    assert run(notes, "history").stdout == "No note was changed yet.\n"


def test_without_a_home_what_is_missing_is_said_and_notes_are_searched_elsewhere(notes, tmp_path):
    nowhere = "/proc/no-home"
    refused = run(notes, "search", "vlan", "--provider", "none", home=nowhere)
    assert (refused.returncode, "that can be written with --index" in refused.stderr) == (1, True)
    elsewhere = run(notes, "search", "vlan", "--provider", "none", home=nowhere, index=tmp_path / "i.sqlite")
    assert "the vlan is 7" in elsewhere.stdout
    refused = run(notes, "remember", "text", "--yes", home=nowhere)
    assert refused.returncode == 1
    assert "The journal cannot be used: /proc/no-home" in refused.stderr
    assert texts_of(notes) == NOTES
