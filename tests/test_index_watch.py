"""The watcher notices every way in which notes change, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time

import pytest
from helpers_time import LONG

from memory_tui.index import watch
from memory_tui.index.watch import Watcher
from memory_tui.workspace.roots import Roots

QUIET = 0.1
SOON = LONG


class Seen:
    """A watcher on a workspace, and how often it called."""

    def __init__(self, folder, extra=(), quiet=QUIET):
        self.folder = folder
        self.calls: list[float] = []
        self.trouble: list[str] = []
        self._more = threading.Condition()
        self.watcher = Watcher(Roots.open(folder, extra), quiet, self._call, self.trouble.append)

    def _call(self):
        with self._more:
            self.calls.append(time.monotonic())
            self._more.notify_all()

    def __enter__(self):
        self.watcher.start()
        assert self.watcher.armed.wait(SOON)
        assert self.next_after(0)
        return self

    def __exit__(self, *exc):
        self.watcher.stop()
        assert not self.watcher.alive

    def next_after(self, count, timeout=SOON):
        with self._more:
            return self._more.wait_for(lambda: len(self.calls) > count, timeout)

    def notices(self, change):
        """Whether the watcher calls because of `change`, and is ready for the next."""
        count = len(self.calls)
        change()
        return self.next_after(count) and self.watcher.armed.wait(SOON)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("one")
    (folder / "memory" / "a.md").write_text("one")
    return folder


def replaced(path, text):
    other = path.with_name(".tmp")
    other.write_text(text)
    other.replace(path)


def test_every_kind_of_save(folder):
    with Seen(folder) as seen:
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed"))
        assert seen.notices(lambda: (folder / "memory/new.md").write_text("new"))
        assert seen.notices(lambda: replaced(folder / "memory/a.md", "atomic"))
        assert seen.notices((folder / "memory/new.md").unlink)
        assert seen.notices(lambda: (folder / "memory/a.md").rename(folder / "memory/b.md"))
        assert seen.notices(lambda: (folder / "MEMORY.md").write_text("changed"))
        assert seen.notices(lambda: replaced(folder / "MEMORY.md", "atomic"))
        assert seen.notices((folder / "MEMORY.md").unlink)
        assert seen.notices(lambda: (folder / "memory.md").write_text("new"))


def test_folders_that_come_with_their_notes(folder, tmp_path):
    def deep():
        (folder / "memory/c/d/e").mkdir(parents=True)
        (folder / "memory/c/d/e/x.md").write_text("deep")

    (tmp_path / "ready").mkdir()
    (tmp_path / "ready/y.md").write_text("moved")
    with Seen(folder) as seen:
        assert seen.notices(deep)
        assert seen.notices(lambda: (folder / "memory/c/d/e/x.md").write_text("deeper"))
        assert seen.notices(lambda: (tmp_path / "ready").rename(folder / "memory/moved"))
        assert seen.notices(lambda: shutil.rmtree(folder / "memory/c"))


def test_memory_that_is_made_later_and_again(folder):
    shutil.rmtree(folder / "memory")

    def make():
        (folder / "memory").mkdir()
        (folder / "memory/a.md").write_text("new")

    with Seen(folder) as seen:
        assert seen.notices(make)
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed"))
        assert seen.notices(lambda: shutil.rmtree(folder / "memory"))
        assert seen.notices(make)
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed again"))


def test_a_workspace_that_is_replaced(folder, tmp_path):
    def replace():
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "copy", folder)

    shutil.copytree(folder, tmp_path / "copy")
    with Seen(folder) as seen:
        assert seen.notices(replace)
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("after all"))


def test_extra_folders_and_files(folder, tmp_path):
    extra, single = tmp_path / "extra", tmp_path / "single.md"
    extra.mkdir()
    single.write_text("one")
    with Seen(folder, [str(extra), str(single)]) as seen:
        assert seen.notices(lambda: (extra / "x.md").write_text("new"))
        assert seen.notices(lambda: single.write_text("changed"))


def test_a_burst_is_one_call(folder):
    with Seen(folder, quiet=0.3) as seen:
        def burst():
            for number in range(1000):
                (folder / f"memory/{number}.md").write_text("new")

        assert seen.notices(burst)
        assert len(seen.calls) == 2


def test_a_note_that_never_rests_is_announced_all_the_same(folder):
    with Seen(folder) as seen:
        count, start = len(seen.calls), time.monotonic()
        while len(seen.calls) == count and time.monotonic() < start + SOON:
            with (folder / "memory/a.md").open("a") as note:
                note.write("more\n")
            time.sleep(QUIET / 10)
        assert len(seen.calls) == count + 1
        assert time.monotonic() - start >= QUIET


def test_it_waits_for_the_quiet_time_and_not_much_longer(folder):
    with Seen(folder, quiet=0.5) as seen:
        start = time.monotonic()
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed"))
        assert 0.5 <= seen.calls[-1] - start < 0.5 + LONG


def test_other_files_in_the_workspace_are_not_watched(folder):
    (folder / "project").mkdir()
    (folder / "memory/picture.png").touch()
    with Seen(folder) as seen:
        count = len(seen.calls)
        (folder / "project/x.md").write_text("not a note")
        (folder / "other.md").write_text("not a note")
        (folder / "memory/picture.png").write_bytes(b"changed")
        assert not seen.next_after(count, timeout=4 * QUIET)
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed"))


def test_without_events_of_the_system_it_lists_and_says_so(folder, monkeypatch):
    def refusing(*paths, **options):
        raise OSError(28, "OS file watch limit reached")

    monkeypatch.setattr(watch, "watch", refusing)
    monkeypatch.setattr(watch, "_LISTING_SECONDS", 0.05)
    with Seen(folder) as seen:
        assert "limit reached" in seen.watcher.detail
        assert len(seen.trouble) == 1
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed"))
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("CHANGED"))
        assert seen.notices((folder / "memory/a.md").unlink)
        assert seen.notices(lambda: shutil.rmtree(folder / "memory"))
        assert seen.notices((folder / "memory").mkdir)
        assert seen.notices(lambda: (folder / "memory/b.md").write_text("new"))


def test_stopping_does_not_wait_for_an_event(folder):
    with Seen(folder) as seen:
        start = time.monotonic()
        seen.watcher.stop()
        assert time.monotonic() - start < LONG


NO_HANDLES = """
import os
import subprocess
import sys, resource, sys, threading
import watchfiles
from memory_tui.index.watch import Watcher
from memory_tui.workspace.roots import Roots, scan
roots = Roots.open(sys.argv[1])
scan(roots)
changed = threading.Event()
limit = os.open(os.devnull, os.O_RDONLY) + 1
os.close(limit - 1)
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
watcher = Watcher(roots, 0.05, changed.set, lambda why: print(f"trouble: {why}", flush=True))
watcher.start()
changed.wait(15)
changed.clear()
print("ready", flush=True)
print(changed.wait(15), watcher.detail, flush=True)
watcher.stop()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="handles are limited in another way")
def test_a_process_without_handles_lists_instead_and_says_so(tmp_path):
    """One handle is left: enough to list a folder, not enough for the events of the system."""
    (tmp_path / "memory").mkdir()
    child = subprocess.Popen([sys.executable, "-c", NO_HANDLES, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert "Too many open files" in child.stdout.readline()
        assert child.stdout.readline() == "ready\n"
        (tmp_path / "memory" / "new.md").write_text("a zebra")
        assert child.stdout.readline().startswith("True listing 1 folder over and over")
    finally:
        child.kill()
        child.communicate()
