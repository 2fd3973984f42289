"""A look that passes over what is as it was finds what a look at everything finds, whatever happened to the tree."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tui.index.freshness import compare
from memory_tui.index.note_state import difference
from memory_tui.index.store import Store
from memory_tui.workspace.roots import scan
from memory_tui.workspace.scan import MAX_BYTES
from tests.support.index import Memory
from tests.support.workspace import needs_inodes

NAMES = (
    "MEMORY.md",
    "memory/a.md",
    "memory/b.md",
    "memory/ü.md",
    "memory/deep/a.md",
    "memory/deep/er/b.md",
    "memory/other/a.md",
    "memory/plain.txt",
    "aside/a.md",
    "aside/deep/c.md",
    "single.md",
)
FOLDERS = ("memory", "memory/deep", "memory/deep/er", "memory/other", "aside")
TEXTS = ("one", "two", "longer than both\n")

name, folder = st.sampled_from(NAMES), st.sampled_from(FOLDERS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), name, st.sampled_from(TEXTS)),
        st.tuples(st.just("same size, same times"), name),
        st.tuples(st.just("times"), name, st.sampled_from([0, 1_700_000_000, 4_000_000_000])),
        st.tuples(st.just("mode"), name),
        st.tuples(st.just("delete"), name),
        st.tuples(st.just("move"), name, name),
        st.tuples(st.just("link"), name, name),
        st.tuples(st.just("hard link"), name, name),
        st.tuples(st.just("folder"), name),
        st.tuples(st.just("too big"), name),
        st.tuples(st.just("not UTF-8"), folder),
        st.tuples(st.just("move folder"), folder, folder),
        st.tuples(st.just("link folder"), folder, folder),
        st.tuples(st.just("forget folder"), folder),
        st.tuples(st.just("sync")),
    ),
    max_size=10,
)


def written(memory: Memory, path: str, text: str) -> None:
    """A note that was saved long ago: of one saved just now only its text can tell whether it is as it was."""
    os.utime(memory.write(path, text), (1_600_000_000, 1_600_000_000))


def act(memory: Memory, step: tuple) -> None:
    at = [memory.folder / path for path in step[1:] if isinstance(path, str)]
    match step:
        case ("write", path, text) if not at[0].is_dir() and not at[0].is_symlink():
            written(memory, path, text)
        case ("same size, same times", _) if at[0].is_file() and not at[0].is_symlink():
            before = at[0].stat()
            if before.st_size < MAX_BYTES:
                at[0].write_bytes(at[0].read_bytes()[::-1])
            os.utime(at[0], ns=(before.st_atime_ns, before.st_mtime_ns))
        case ("times", _, seconds) if at[0].is_file():
            os.utime(at[0], (seconds, seconds))
        case ("mode", _) if at[0].is_file():
            at[0].chmod(0o600 if at[0].stat().st_mode & 0o040 else 0o640)
        case ("delete", _) if not at[0].is_dir() or at[0].is_symlink():
            at[0].unlink(missing_ok=True)
        case ("move", _, _) if at[0].is_file() and not at[1].is_dir():
            at[1].parent.mkdir(parents=True, exist_ok=True)
            at[0].replace(at[1])
        case ("link", _, _) if not os.path.lexists(at[1]) and at[1].parent.is_dir():
            at[1].symlink_to(at[0])
        case ("hard link", _, _) if at[0].is_file() and not os.path.lexists(at[1]) and at[1].parent.is_dir():
            os.link(at[0], at[1], follow_symlinks=False)
        case ("folder", _) if not os.path.lexists(at[0]):
            at[0].mkdir(parents=True)
        case ("too big", _) if at[0].is_file():
            os.truncate(at[0], MAX_BYTES + 1)
        case ("not UTF-8", _) if at[0].is_dir():
            Path(os.fsdecode(os.fsencode(at[0]) + b"/\xff.md")).write_text("odd")
        case ("move folder", _, _) if at[0].is_dir() and not os.path.lexists(at[1]) and at[0] not in at[1].parents:
            at[1].parent.mkdir(parents=True, exist_ok=True)
            at[0].rename(at[1])
        case ("link folder", _, _) if not os.path.lexists(at[1]) and at[1].parent.is_dir():
            at[1].symlink_to(at[0])
        case ("forget folder", _) if at[0].is_dir():
            at[0].unlink() if at[0].is_symlink() else shutil.rmtree(at[0])
        case _:
            pass


def done(memory: Memory, step: tuple) -> None:
    """Do `step`; one that the system refuses as things are is none."""
    if step == ("sync",):
        memory.sync(accept=True)
    else:
        with contextlib.suppress(OSError):
            act(memory, step)


def agree(memory: Memory, store: Store) -> None:
    known = store.known()
    fast, full = scan(memory.roots, store.known().settled), scan(memory.roots)
    assert fast.left_out == full.left_out
    assert fast.total == full.total == len(full.notes)
    listed = set(fast.notes)
    assert listed <= set(full.notes)
    quiet = [note for note in full.notes if note not in listed]
    assert [note.path for note in quiet if difference(note, known.get(note.path))] == []
    assert compare(fast, known, roots=memory.roots) == compare(full, known, roots=memory.roots)


@needs_inodes
@settings(max_examples=30)
@given(steps)
def test_the_fast_look_and_the_full_one_agree_whatever_happened(every):
    place = Path(tempfile.mkdtemp(prefix="memory-tui-looks-"))
    try:
        memory = Memory(place / "notes", place / "i" / "memory.sqlite", extra=("aside", "single.md", "memory/deep"))
        memory.provider = None
        for path in ("MEMORY.md", "memory/a.md", "memory/deep/a.md", "aside/a.md"):
            written(memory, path, "one")
        memory.sync()
        assert scan(memory.roots, memory.store.known().settled).quiet == 3
        follower = Store.open(memory.store.path, read_only=True)
        for step in every:
            done(memory, step)
            agree(memory, memory.store)
            # A process that begins, and one that has followed every change, know the same.
            agree(memory, follower)
            fresh = Store.open(memory.store.path, read_only=True)
            assert fresh.known().settled == follower.known().settled == memory.store.known().settled
            fresh.close()
        follower.close()
        memory.store.close()
    finally:
        shutil.rmtree(place)


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path / "notes", tmp_path / "memory.sqlite")
    yield memory
    memory.store.close()


def test_rows_are_read_one_by_one_and_all_at_once_when_many_are_asked_for(memory):
    for number in range(100):
        memory.write(f"memory/{number}.md", f"note {number}")
    memory.sync()
    reader = Store.open(memory.store.path, read_only=True)
    known, every = reader.known(), dict(memory.store.known())
    assert len(known) == 100
    asked: list[str] = []
    reader.connection.trace_v2(1, lambda event: asked.append(event["sql"]) if "FROM files" in event["sql"] else None)
    assert [known[f"memory/{number}.md"] for number in range(3)] == [every[f"memory/{n}.md"] for n in range(3)]
    assert known.get("memory/none.md") is None
    assert len(asked) == 4
    assert [known[path] for path in every] == list(every.values())
    assert dict(known) == every
    assert len(asked) < 70
    reader.close()


@needs_inodes
def test_a_folder_that_becomes_a_link_while_it_is_looked_at_is_not_followed(memory, tmp_path, monkeypatch):
    memory.write("memory/deep/a.md", "one")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.md").write_text("not for you")
    real = os.open

    def swapped(path, *arguments, **named):
        if str(path).endswith("deep") and not (memory.folder / "memory/deep").is_symlink():
            (memory.folder / "memory/deep").rename(tmp_path / "was")
            (memory.folder / "memory/deep").symlink_to(tmp_path / "secret")
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", swapped)
    seen = scan(memory.roots)
    assert seen.notes == ()
    assert [(left.path, left.rule) for left in seen.left_out] == [("memory/deep", "unreadable")]
    monkeypatch.undo()
    assert [(left.path, left.rule) for left in scan(memory.roots).left_out] == [("memory/deep", "symlink")]
