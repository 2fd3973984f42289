"""A root that goes away, may not be read, or is another one now: every surface says so, and takes it back."""

import errno
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from memory_tui import events
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import WorkspaceError
from memory_tui.index import watch
from memory_tui.index.watch import RootWatch, Watcher
from memory_tui.mcp.tools import AnswerRules, memory_search
from memory_tui.plan import Options
from memory_tui.workspace.roots import Roots, scan
from tests.support.waiting import LONG, Heard, until
from tests.support.workspace import options_of, put, put_all, synced

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="only root may mount a file system, or give up its rights")


def notes(folder, count=3):
    texts = {f"memory/{number}.md": f"note {number} about gardens and coffee\n" for number in range(count)}
    return put_all(folder, texts | {"MEMORY.md": "the printer stands in the hall\n"})


@pytest.fixture
def workspace(tmp_path):
    return notes(tmp_path / "notes")


@pytest.fixture
def extra(tmp_path):
    folder = tmp_path / "vault"
    put(folder, "tea.md", text="green tea is in the vault\n")
    return folder


class Life:
    """An engine that runs, and what it tells."""

    def __init__(self, workspace, *extra):
        self.heard = Heard()
        index, soon = workspace.parent / "i" / "index.sqlite", ("sync.watchDebounceMs", "50")
        options = options_of(workspace, index, soon, provider="scripted", extra=tuple(map(str, extra)))
        self.engine = Engine.open(options, self.heard)

    def __enter__(self):
        self.engine.start()
        self.heard.wait_for(lambda event: isinstance(event, events.SyncFinished))
        assert self.engine.index.writer.wait_idle(LONG)
        return self

    def __exit__(self, *exception):
        self.engine.close()

    def state(self, path):
        return {root.path: root.state for root in self.engine.index.root_watch.states()}.get(path, "")

    def becomes(self, path, state):
        self.heard.wait_for(lambda event: isinstance(event, events.RootsChanged) and self.state(path) == state)

    def indexed(self):
        assert self.engine.index.writer.wait_idle(LONG)
        return {row.path for row in self.engine.notes.files() if row.chunks}

    def fresh(self):
        return {row.path for row in self.engine.notes.files() if row.state == "fresh"}

    def comes_back(self, path, fresh):
        self.becomes(path, "there")
        until(lambda: self.fresh() == fresh and self.state(path) == "there")


ALL = {"MEMORY.md", "memory/0.md", "memory/1.md", "memory/2.md"}


def hidden(folder):
    return folder.with_name(f"{folder.name}-hidden")


def test_a_deleted_workspace_is_told_kept_and_comes_back(workspace, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(workspace, copy)
    with Life(workspace) as life:
        assert life.state(".") == "there"
        # At once, as a rename: what is deleted note by note while the watcher listens is deleted.
        workspace.rename(hidden(workspace))
        shutil.rmtree(hidden(workspace))
        life.becomes(".", "gone")
        status = life.engine.status()
        assert {root.state for root in status.roots} == {"gone"}
        assert status.freshness.fresh == 0
        assert {item.path for item in status.freshness.of("missing root")} == ALL
        [notice] = [notice for notice in status.notices if notice.code == "root"]
        assert str(workspace) in notice.message
        assert life.indexed() == ALL
        with pytest.raises(WorkspaceError):
            life.engine.index.sync()
        assert life.indexed() == ALL
        answer = memory_search(life.engine, {"query": "printer"}, AnswerRules()).answer
        assert answer["results"][0]["path"] == "MEMORY.md"
        assert answer["stale"]
        assert [(root["path"], root["state"]) for root in answer["roots"]] == [(".", "gone")]
        assert "index keeps" in answer["warning"]
        shutil.copytree(copy, workspace)
        life.comes_back(".", ALL)
        assert "roots" not in memory_search(life.engine, {"query": "printer"}, AnswerRules()).answer


@pytest.mark.parametrize("count", [1, 3])
def test_a_deleted_folder_of_notes_is_no_deletion_of_few_notes(tmp_path, count):
    workspace = notes(tmp_path / "notes", count)
    with Life(workspace) as life:
        before = life.indexed()
        (workspace / "memory").rename(hidden(workspace))
        life.becomes("memory", "gone")
        life.engine.index.sync()
        assert life.indexed() == before
        assert life.engine.status().freshness.shrink is not None
        assert life.fresh() == {"MEMORY.md"}
        life.engine.index.sync(reason="accept", accept_shrink=True)
        assert life.indexed() == {"MEMORY.md"}
        life.becomes("memory", "")


@pytest.mark.parametrize(("link", "state"), [(False, "gone"), (True, "unreadable")])
def test_one_of_several_extra_paths(workspace, extra, tmp_path, link, state):
    other = tmp_path / "other"
    put(other, "salt.md", text="salt is in the other folder\n")
    everything = ALL | {"../vault/tea.md", "../other/salt.md"}
    with Life(workspace, extra, other) as life:
        assert life.fresh() == everything
        extra.rename(hidden(extra))
        if link:
            extra.symlink_to(hidden(extra))
        life.becomes("../vault", state)
        assert [root.path for root in life.engine.index.root_watch.lost()] == ["../vault"]
        life.engine.index.sync()
        assert life.indexed() == everything
        assert life.fresh() == everything - {"../vault/tea.md"}
        if link:
            extra.unlink()
        hidden(extra).rename(extra)
        life.comes_back("../vault", everything)


def test_a_single_note_as_extra_path_is_saved_by_replacing_it_without_alarm(workspace, extra):
    note = extra / "tea.md"
    with Life(workspace, note) as life:
        before = len(life.heard.events)
        for number in range(3):
            beside = extra / ".tmp"
            beside.write_text(f"black tea {number}\n")
            beside.replace(note)
            life.heard.wait_for(lambda event: isinstance(event, events.FileIndexed))
            life.heard.events.clear()
        assert life.engine.index.writer.wait_idle(LONG)
        assert life.state("../vault/tea.md") == "there"
        assert not [e for e in life.heard.events[before:] if isinstance(e, events.RootsChanged)]


def test_a_workspace_that_may_not_be_read_forgets_nothing(workspace, monkeypatch):
    real = {name: getattr(os, name) for name in ("scandir", "open")}

    def denied(name):
        def call(path, *args, **options):
            if str(path).startswith(str(workspace)):
                raise PermissionError(errno.EACCES, "Permission denied")
            return real[name](path, *args, **options)

        return call

    with Life(workspace) as life:
        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(os, name, denied(name))
            life.becomes(".", "unreadable")
            assert "Permission denied" in life.engine.index.root_watch.states()[0].detail
            assert (life.fresh(), life.indexed()) == (set(), ALL)
        life.comes_back(".", ALL)


@pytest.fixture
def mounted(tmp_path):
    points: list[Path] = []

    def mount(point):
        point.mkdir(exist_ok=True)
        words = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", point]
        done = subprocess.run(words, capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"tmpfs cannot be mounted here: {done.stderr.decode()}")
        points.append(point)

    yield mount
    for point in points:
        subprocess.run(["umount", "-l", point], capture_output=True, check=False)


@needs_root
def test_an_unmounted_workspace_keeps_its_few_notes(tmp_path, mounted):
    workspace = tmp_path / "notes"
    mounted(workspace)
    put(workspace / "memory", "0.md", text="a note on a mounted disk\n")
    with Life(workspace) as life:
        assert life.fresh() == {"memory/0.md"}
        subprocess.run(["umount", "-l", workspace], check=True)
        life.becomes(".", "another device")
        life.engine.index.sync()
        assert life.indexed() == {"memory/0.md"}
        assert life.fresh() == set()
        assert life.state(".") == "another device"
        mounted(workspace)
        put(workspace / "memory", "0.md", text="a note on a mounted disk\n")
        life.comes_back(".", {"memory/0.md"})


@needs_root
def test_a_disk_that_goes_while_its_notes_are_read_is_missed(tmp_path, mounted, monkeypatch):
    workspace = tmp_path / "notes"
    mounted(workspace)
    put(workspace / "memory", "0.md", text="a note on a mounted disk\n")

    def scan_and_lose(*args):
        seen = scan(*args)
        if workspace.is_mount():
            subprocess.run(["umount", "-l", workspace], check=True)
        return seen

    options = Options(workspace=str(workspace), index=str(tmp_path / "i.sqlite"), provider="scripted")
    with synced(options) as engine:
        with monkeypatch.context() as patch:
            patch.setattr("memory_tui.engine.index.scan", scan_and_lose)
            engine.index.sync()
        assert not workspace.is_mount()
        engine.index.sync()
        assert {row.path for row in engine.notes.files() if row.chunks} == {"memory/0.md"}


def test_a_command_without_a_running_engine_knows_the_state(workspace, extra, tmp_path, printed):
    where = ["--workspace", str(workspace), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]
    where += ["--extra", str(extra)]
    printed("index", *where)
    extra.rename(hidden(extra))
    shown = json.loads(printed("status", *where, "--json"))
    assert [(root["path"], root["state"]) for root in shown["roots"]][-1] == ("../vault", "gone")
    assert shown["freshness"]["fresh"] == 4
    assert f"gone: ../vault  {extra} is not there" in printed("status", *where)
    found = json.loads(printed("search", *where, "--json", "tea"))
    assert [(root["path"], root["state"]) for root in found["roots"]] == [("../vault", "gone")]
    assert found["results"][0]["path"] == "../vault/tea.md"


@pytest.mark.parametrize("fault", [ValueError("a fault of ours"), OSError(28, "OS file watch limit reached")])
def test_a_watcher_that_fails_is_told_and_begins_anew(workspace, monkeypatch, fault):
    stuck, real = threading.Event(), watch.Watcher._watch

    def watching(watcher, *args):
        if stuck.is_set():
            raise fault
        real(watcher, *args)

    def listening(watcher, *args):
        for changes in events_of(watcher, *args):
            if stuck.is_set():
                return
            yield changes

    events_of = watch.Watcher._events
    monkeypatch.setattr(watch.Watcher, "_watch", watching)
    monkeypatch.setattr(watch.Watcher, "_events", listening)
    with Life(workspace) as life:
        assert life.engine.index.watcher.armed.wait(LONG)
        stuck.set()
        life.becomes(".", "watcher stalled")
        assert not life.engine.index.watcher.on
        assert str(fault) in life.engine.index.root_watch.states()[0].detail
        stuck.clear()
        life.becomes(".", "there")
        (workspace / "memory" / "after.md").write_text("the watcher that began anew sees this\n")
        life.comes_back(".", ALL | {"memory/after.md"})


def test_a_file_system_that_hangs_is_unreadable_and_nobody_waits_for_it(workspace, monkeypatch):
    go_on, stuck, real = threading.Event(), threading.Event(), os.stat

    def hangs(path, *args, **options):
        if stuck.is_set() and path == str(workspace) and threading.current_thread().name == "engine-roots":
            assert go_on.wait(LONG)
        return real(path, *args, **options)

    monkeypatch.setattr(os, "stat", hangs)
    with Life(workspace) as life:
        stuck.set()
        life.becomes(".", "unreadable")
        assert "does not answer" in life.engine.index.root_watch.states()[0].detail
        stuck.clear()
        go_on.set()
        life.becomes(".", "there")


def test_the_workspace_stands_for_the_notes_within(workspace, extra):
    roots = Roots.open(workspace, [str(extra)])
    watch = RootWatch(roots, Watcher(roots, 1, lambda: None, print, print), print, Stop())
    assert [root.path for root in watch.states()] == [".", "memory", "../vault"]
    shutil.rmtree(workspace)
    watch.comparison = (), {"memory"}
    states = watch.states()
    assert [(root.path, root.state) for root in states] == [(".", "gone"), ("../vault", "there")]
    assert watch.lost() == [states[0]]
