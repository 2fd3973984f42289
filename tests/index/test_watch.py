"""The watcher notices every way in which notes change, and nothing else."""

import shutil
import threading
import time
from types import SimpleNamespace

import pytest
import watchfiles
from watchfiles import Change

from memory_tui.events import NotesChanged
from memory_tui.index import watch
from memory_tui.index.watch import Watcher
from memory_tui.workspace.roots import Roots
from tests.support.waiting import LONG
from tests.support.workspace import put, put_all

QUIET = 0.1
SOON = LONG


class Hand:
    """The watcher's clock, moved by hand, and how many sets of changes the watcher is done with."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        self.changes: set[tuple[Change, str]] = set()
        self.sets = 0
        self._more = threading.Condition()
        real = watchfiles.watch

        def told(*paths, **options):
            for changes in real(*paths, **options):
                yield changes
                # The watcher asks for the next set only when it is done with this one.
                with self._more:
                    self.sets += bool(changes)
                    self.changes |= changes
                    self._more.notify_all()

        monkeypatch.setattr(watchfiles, "watch", told)
        monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: self.now, time=time.time))

    def wait_for(self, fact):
        with self._more:
            assert self._more.wait_for(fact, SOON)


class Seen:
    """A watcher on a workspace, and how often it called; with `hand` time passes for it only there."""

    def __init__(self, folder, extra=(), quiet=QUIET, hand=None):
        self.folder = folder
        self._hand, self._quiet = hand, quiet
        self.calls: list[float] = []
        self.trouble: list[str] = []
        self.waits: list[float] = []
        self._more = threading.Condition()
        self.watcher = Watcher(Roots.open(folder, extra), quiet, self._call, self._hear, lambda _: None)

    def _hear(self, event):
        if isinstance(event, NotesChanged):
            self.waits.append(watch.time.monotonic())
        elif event.detail not in ("on", "switched off"):
            self.trouble.append(event.detail)

    def _call(self):
        with self._more:
            self.calls.append(time.monotonic())
            self._more.notify_all()

    def __enter__(self):
        self.watcher.switch(True)
        assert self.watcher.armed.wait(SOON)
        if self._hand is not None:
            self._hand.now += self._quiet
        assert self.next_after(0)
        return self

    def __exit__(self, *exc):
        self.watcher.end()
        assert not self.watcher.on

    def next_after(self, count, timeout=SOON):
        with self._more:
            return self._more.wait_for(lambda: len(self.calls) > count, timeout)

    def until(self, fact):
        with self._more:
            return self._more.wait_for(fact, SOON)

    def notices(self, change):
        """Whether the watcher calls because of `change`, and is ready for the next."""
        count = len(self.calls)
        change()
        return self.next_after(count) and self.watcher.armed.wait(SOON)


@pytest.fixture
def folder(tmp_path):
    return put_all(tmp_path / "notes", {"MEMORY.md": "one", "memory/a.md": "one"})


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
    put(tmp_path, "ready/y.md")
    with Seen(folder) as seen:
        assert seen.notices(lambda: put(folder, "memory/c/d/e/x.md"))
        assert seen.notices(lambda: (folder / "memory/c/d/e/x.md").write_text("deeper"))
        assert seen.notices(lambda: (tmp_path / "ready").rename(folder / "memory/moved"))
        assert seen.notices(lambda: shutil.rmtree(folder / "memory/c"))


def test_memory_that_is_made_later_and_again(folder):
    shutil.rmtree(folder / "memory")

    def make():
        put(folder, "memory/a.md")

    with Seen(folder) as seen:
        assert seen.notices(make)
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed"))
        assert seen.notices(lambda: shutil.rmtree(folder / "memory"))
        assert seen.notices(make)
        assert seen.notices(lambda: (folder / "memory/a.md").write_text("changed again"))


def test_extra_folders_and_files(folder, tmp_path):
    extra, single = tmp_path / "extra", tmp_path / "single.md"
    extra.mkdir()
    single.write_text("one")
    with Seen(folder, [str(extra), str(single)]) as seen:
        assert seen.notices(lambda: (extra / "x.md").write_text("new"))
        assert seen.notices(lambda: single.write_text("changed"))


def appended(path):
    """A save that is one event of the system."""
    with path.open("a") as note:
        note.write("more\n")


def test_a_burst_is_one_call(folder, monkeypatch):
    hand = Hand(monkeypatch)
    with Seen(folder, quiet=0.25, hand=hand) as seen:
        for number in range(1000):
            (folder / f"memory/{number}.md").write_text("new")
        (folder / "memory/a.md").unlink()
        hand.wait_for(lambda: (Change.deleted, str(folder / "memory/a.md")) in hand.changes)
        assert len(seen.calls) == 1, "there was no quiet time yet"
        hand.now += 0.25
        assert seen.next_after(1)
        assert len(seen.calls) == 2


def test_a_note_that_never_rests_is_announced_all_the_same(folder, monkeypatch):
    hand = Hand(monkeypatch)
    with Seen(folder, quiet=0.25, hand=hand) as seen:
        start = hand.now
        while len(seen.calls) == 1 and hand.now < start + 5:
            sets = hand.sets
            appended(folder / "memory/a.md")
            hand.wait_for(lambda sets=sets: hand.sets > sets)
            hand.now += 0.125
        assert len(seen.calls) == 2
        assert hand.now - start >= 5 * 0.25
        assert len(seen.waits) == 5, "it is told at once, then each quarter of a second, and the last announced"


def test_a_change_is_told_before_the_quiet_time_and_a_start_is_none(folder, monkeypatch):
    hand = Hand(monkeypatch)
    with Seen(folder, quiet=0.5, hand=hand) as seen:
        assert not seen.waits
        appended(folder / "memory/a.md")
        hand.wait_for(lambda: hand.sets)
        assert len(seen.waits) == 1
        assert len(seen.calls) == 1


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


def test_stopping_does_not_wait_for_an_event(folder):
    with Seen(folder) as seen:
        start = time.monotonic()
        seen.watcher.end()
        assert time.monotonic() - start < LONG
