"""After a save only what the watcher has named is looked at; what it has missed is found by the looks at everything."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tui.core import events
from memory_tui.core.errors import Unreadable
from memory_tui.engine.engine import Engine
from memory_tui.index import watch
from memory_tui.notes.changes import Change, FileChange
from memory_tui.plan import Options
from tests.engine.test_engine import Heard
from tests.support.waiting import LONG

LONG_AGO = (1_600_000_000, 1_600_000_000)


class Looks:
    """Which files below `folder` are asked for their status, and how many folders the sync lists."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: list[str] = []
        self.folders = 0
        below, real, listing = f"{folder}{os.sep}", {name: getattr(os, name) for name in ("stat", "lstat")}, os.scandir

        def asking(name: str):
            def ask(path, *arguments, **named):
                if isinstance(path, str | Path) and str(path).startswith(below) and str(path).endswith(".md"):
                    self.files.append(str(path))
                return real[name](path, *arguments, **named)

            return ask

        def writing() -> bool:
            return threading.current_thread().name == "engine-writer"

        def listed(path="."):
            # Who edits a note lists its folder too, for the files that an edit which was killed has left.
            self.folders += writing() and (isinstance(path, int) or f"{path}{os.sep}".startswith(below))
            return listing(path)

        for name in real:
            monkeypatch.setattr(os, name, asking(name))
        monkeypatch.setattr(os, "scandir", listed)


class Life:
    """An engine that watches, and has indexed everything that was there."""

    def __init__(self, folder: Path, index: Path, many: int) -> None:
        for number in range(many):
            note = folder / "memory" / f"{number // 200}" / f"{number}.md"
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(f"note {number}")
            os.utime(note, LONG_AGO)
        self.heard = Heard()
        self.engine = Engine.open(
            Options(
                workspace=str(folder), index=str(index), provider="none", changes=(("sync.watchDebounceMs", "50"),)
            ),
            self.heard,
        )
        self.engine.indexer.sync()
        self.engine.indexer.watcher.switch(True)
        self.heard.wait_for(lambda e: isinstance(e, events.SyncFinished) and e.reason == "watch")
        assert self.engine.indexer.writer.wait_idle(LONG)
        self.heard.events.clear()

    def save(self, path: str, text: str) -> None:
        """At once, so that nobody reads half of it."""
        beside = self.engine.plan.roots.workspace / "beside"
        beside.write_text(text)
        beside.replace(self.engine.plan.roots.workspace / path)

    def indexed(self, path: str) -> None:
        self.heard.wait_for(lambda e: isinstance(e, events.FileIndexed) and e.path == path)
        assert self.engine.indexer.writer.wait_idle(LONG)

    def removed(self, path: str) -> None:
        self.heard.wait_for(lambda e: isinstance(e, events.FileRemoved) and e.path == path)
        assert self.engine.indexer.writer.wait_idle(LONG)


@pytest.fixture
def life(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Life]:
    made = Life(tmp_path / "notes", tmp_path / "i" / "index.sqlite", getattr(request, "param", 12))
    yield made
    made.engine.close()


@pytest.mark.parametrize("life", [5000], indirect=True)
def test_a_save_among_5000_notes_costs_a_handful_of_stats(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = life.engine.plan.roots.workspace / "memory"
    looks = Looks(memory, monkeypatch)
    life.save("memory/3/700.md", "a zebra")
    life.indexed("memory/3/700.md")
    life.save("memory/3/new.md", "a lion")
    life.indexed("memory/3/new.md")
    (memory / "4" / "900.md").unlink()
    life.removed("memory/4/900.md")
    assert (set(looks.files), looks.folders) == (
        {str(memory / "3" / "700.md"), str(memory / "3" / "new.md"), str(memory / "4" / "900.md")},
        0,
    )
    assert len(looks.files) < 60
    # Whoever looks at everything sees that nothing else is to be done.
    status = life.engine.status()
    assert (status.freshness.total, status.freshness.fresh) == (5000, 5000)


def test_an_edit_made_here_is_looked_at_alone(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(life.engine.plan.roots.workspace / "memory", monkeypatch)
    curator = life.engine.notes.curator
    curator.apply(
        Change(
            "edit", "a line more", (FileChange("memory/0/1.md", curator.read("memory/0/1.md"), b"note 1\n- a zebra\n"),)
        )
    )
    life.indexed("memory/0/1.md")
    assert looks.folders == 0
    assert {Path(path).name for path in looks.files} == {"1.md"}


def test_a_sync_that_a_person_asks_for_looks_at_everything(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(life.engine.plan.roots.workspace / "memory", monkeypatch)
    life.engine.indexer.sync()
    assert looks.folders == 2


def test_what_comes_with_a_folder_is_found_by_a_look_at_everything(life: Life, tmp_path: Path) -> None:
    (tmp_path / "aside" / "deep").mkdir(parents=True)
    (tmp_path / "aside" / "deep" / "a.md").write_text("a zebra")
    (tmp_path / "aside").rename(life.engine.plan.roots.workspace / "memory" / "came")
    life.indexed("memory/came/deep/a.md")
    (life.engine.plan.roots.workspace / "memory" / "came").rename(tmp_path / "aside")
    life.removed("memory/came/deep/a.md")


def test_what_the_watcher_missed_is_named_by_the_status_and_found_by_the_sweep(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = watch._named
    monkeypatch.setattr(
        watch, "_named", lambda *news: frozenset(path for path in real(*news) or () if not path.endswith("lost.md"))
    )
    life.save("memory/0/lost.md", "a zebra")
    life.save("memory/0/seen.md", "a lion")
    life.indexed("memory/0/seen.md")
    assert [item.path for item in life.engine.status().freshness.pending] == ["memory/0/lost.md"]
    life.engine.indexer.request_sync("sweep")
    life.indexed("memory/0/lost.md")
    assert life.engine.status().freshness.pending == ()


def test_a_note_that_cannot_be_read_stays_named_whatever_else_is_saved(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memory_tui.workspace import notes

    real = notes.of_bytes
    monkeypatch.setattr(notes, "of_bytes", lambda path, *rest: refuse(path) or real(path, *rest))
    life.save("memory/0/bad.md", "a zebra")
    life.heard.wait_for(lambda e: isinstance(e, events.FileFailed) and e.path == "memory/0/bad.md")
    assert life.engine.indexer.writer.wait_idle(LONG)
    looks = Looks(life.engine.plan.roots.workspace / "memory", monkeypatch)
    life.save("memory/0/1.md", "a lion")
    life.indexed("memory/0/1.md")
    assert looks.folders == 0
    assert {Path(path).name for path in looks.files} == {"1.md", "bad.md"}
    monkeypatch.setattr(notes, "of_bytes", real)
    life.save("memory/0/2.md", "a tiger")
    life.indexed("memory/0/2.md")
    life.indexed("memory/0/bad.md")


def refuse(path: str) -> None:
    if path.endswith("bad.md"):
        raise Unreadable("The disk is on fire.")
