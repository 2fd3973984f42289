"""Where an index file lies, what happens to a bad one, and that nothing which is not ours is ever touched."""

import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memory_tui.errors import IndexDamaged, IndexUnavailable
from memory_tui.index import integrity, schema
from memory_tui.index.connections import Readers
from memory_tui.index.store import Store
from memory_tui.notices import Notice
from tests.support.waiting import LONG

NOW = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))
Put = Callable[[Path], object]


def made_by(script: str) -> Put:
    def put(path: Path) -> None:
        connection = apsw.Connection(str(path))
        connection.execute(script)
        connection.close()

    return put


def bytes_of(data: bytes) -> Put:
    return lambda path: path.write_bytes(data)


def link(path: Path) -> None:
    path.with_name("theirs").write_text("my shopping list")
    path.symlink_to(path.with_name("theirs"))


TEXT = b"just some text, longer than a page header of SQLite " * 50
OPENCLAW = "CREATE TABLE meta(key, value); CREATE TABLE files(path); CREATE TABLE chunks(id); "
STRANGERS: dict[str, tuple[str, Put, str]] = {
    "text": ("i.sqlite", bytes_of(TEXT), "is not an index of memory-tui"),
    "short": ("i.sqlite", bytes_of(b"x"), "is not an index of memory-tui"),
    "zeros": ("i.sqlite", bytes_of(bytes(20000)), "is not an index of memory-tui"),
    "magic": ("i.sqlite", bytes_of(b"SQLite format 3\0" + b"\xff" * 9000), "database of another program"),
    "database": ("i.sqlite", made_by("CREATE TABLE recipes(name)"), "database of another program"),
    "emptied database": ("i.sqlite", made_by("CREATE TABLE r(n); DROP TABLE r"), "database of another program"),
    "other mark": ("i.sqlite", made_by("PRAGMA application_id = 7; CREATE TABLE chunks(id)"), "of another program"),
    "openclaw": ("main.sqlite", made_by(f"{OPENCLAW}CREATE TABLE embedding_cache(h)"), "database of another program"),
    "openclaw 2026.9": (
        "main.sqlite",
        made_by("CREATE TABLE memory_index_meta(key, value)"),
        "database of another program",
    ),
    "note": ("MEMORY.md", bytes_of(b"keep me"), "cannot be the index"),
    "folder": ("folder", Path.mkdir, "cannot be the index"),
    "loop": ("loop", lambda path: path.symlink_to(path), ""),
    "NUL": ("a\0b", lambda path: None, ""),
    "long name": ("x" * 300, lambda path: None, ""),
    "pipe": ("i.sqlite", os.mkfifo, ""),
    **{f"log {side} pipe": (f"i.sqlite{side}", os.mkfifo, "") for side in ("-wal", "-shm", "-journal")},
    **{f"log {side} folder": (f"i.sqlite{side}", Path.mkdir, "") for side in ("-wal", "-shm", "-journal")},
    **{f"log {side} link": (f"i.sqlite{side}", link, "") for side in ("-wal", "-shm", "-journal")},
}


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in folder.iterdir()}


@pytest.mark.parametrize("what", STRANGERS)
def test_what_is_not_ours_is_refused_and_stays(tmp_path, what):
    name, put, why = STRANGERS[what]
    put(tmp_path / name)
    before = everything(tmp_path)
    index = tmp_path / (name if not name.startswith("i.sqlite") else "i.sqlite")
    for read_only in (False, True):
        with pytest.raises(IndexUnavailable, match=why or None) as error:
            Store.open(index, read_only=read_only)
        assert error.value.message
        assert error.value.next_step
    assert everything(tmp_path) == before


def test_an_index_with_two_names_is_not_written(tmp_path):
    Store.open(tmp_path / "i.sqlite").close()
    os.link(tmp_path / "i.sqlite", tmp_path / "second.sqlite")
    with pytest.raises(IndexUnavailable, match="hard link"):
        Store.open(tmp_path / "i.sqlite")
    Store.open(tmp_path / "i.sqlite", read_only=True).close()


def spoiled(index: Path) -> None:
    Store.open(index).close()
    data = bytearray(index.read_bytes())
    data[100:2000] = b"\xa5" * 1900
    index.write_bytes(data)


def newer(index: Path) -> None:
    store = Store.open(index)
    store.query("PRAGMA user_version = 99")
    store.close()


OURS: dict[str, tuple[Put, str]] = {
    "text": (bytes_of(TEXT), "is damaged"),
    "zeros": (bytes_of(bytes(20000)), "is damaged"),
    "spoiled": (spoiled, "is damaged"),
    "newer version": (newer, "schema version 99"),
}


@pytest.mark.parametrize("what", OURS)
def test_what_is_left_of_an_index_is_moved_aside_and_not_by_a_reader(tmp_path, what):
    put, why = OURS[what]
    index, notices = tmp_path / "memory.sqlite", list[Notice]()
    put(index)
    before = index.read_bytes()
    with pytest.raises(IndexDamaged, match=why):
        Store.open(index, read_only=True, expected=lambda: True)
    assert index.read_bytes() == before
    store = Store.open(index, notices=notices, expected=lambda: True)
    assert store.generation() == 0
    store.close()
    [aside] = [path for path in tmp_path.glob("*damaged*") if not path.name.endswith(("-wal", "-shm"))]
    assert aside.read_bytes() == before
    assert why in notices[0].message
    assert str(aside) in notices[0].message


def test_one_bit_of_the_header_does_not_make_an_index_a_stranger(tmp_path):
    path = tmp_path / "i.sqlite"
    Store.open(path).close()
    whole = path.read_bytes()
    for at in range(0, 100, 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        Store.open(path).close()


def test_an_index_is_private_to_its_user(tmp_path):
    path = tmp_path / "cache" / "memory.sqlite"
    store = Store.open(path)
    modes = [stat.S_IMODE(file.stat().st_mode) for file in (path, path.parent)]
    with store.writing():
        modes.append(stat.S_IMODE(path.with_name("memory.sqlite-wal").stat().st_mode))
    assert modes == [0o600, 0o700, 0o600]
    assert store.value("PRAGMA page_size") == 16384
    assert store.value("PRAGMA application_id") == schema.APPLICATION_ID
    store.close()
    path.chmod(0o644)
    Store.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "a lax one is made private"


# --- the first moments --------------------------------------------------------------------------------------------


def test_whoever_opens_an_index_that_is_being_made_finds_it_whole_or_not_there(tmp_path):
    notices: list[Notice] = []
    ready = threading.Barrier(3)

    def make(path: Path) -> None:
        ready.wait(LONG)
        Store.open(path, notices=notices).close()

    for number in range(30):
        path, readers, whole = tmp_path / f"{number}.sqlite", Readers(), False
        makers = [threading.Thread(target=make, args=(path,)) for _ in range(2)]
        for maker in makers:
            maker.start()
        ready.wait(LONG)
        while not whole:
            with readers.borrow(path) as store:
                whole = store is not None and store.recipe() is None
        for maker in makers:
            maker.join(LONG)
        readers.close()
    assert notices == []
    assert list(tmp_path.glob("*damaged*")) == []


# --- what was moved aside does not pile up ------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "i"
    folder.mkdir()
    Store.open(folder / "index.sqlite").close()
    return folder / "index.sqlite"


def moved(index: Path, days: float, more: str = "", data: bytes | None = None) -> Path:
    """An index that was moved aside that many days ago."""
    at = time.strftime("%Y%m%d-%H%M%S", time.localtime(NOW - days * 86_400))
    path = index.with_name(f"{index.name}.damaged-{at}{more}")
    path.write_bytes(index.read_bytes() if data is None else data)
    return path


def test_the_newest_three_and_the_young_stay(index):
    old = [moved(index, days) for days in (100, 200, 300, 400)]
    old[3].with_name(old[3].name + "-wal").write_text("log")
    assert [text.startswith(f"{old[3]} was removed") for text in integrity.sweep(index, NOW)] == [True]
    assert [path.exists() for path in old] == [True, True, True, False]
    assert not list(index.parent.glob("*-wal"))
    young = [moved(index, days) for days in (1, 5, 20, 29)]
    twin = moved(index, 31, "~2")
    assert len(integrity.sweep(index, NOW)) == 4
    assert all(path.exists() for path in young)
    assert not any(path.exists() for path in (*old, twin))
    assert integrity.sweep(index, NOW) == []


def test_what_is_not_surely_ours_stays(index, tmp_path, monkeypatch):
    for days in (1, 2, 3):
        moved(index, days)
    made_by("CREATE TABLE t(x)")(tmp_path / "theirs.sqlite")
    foreign = [
        moved(index, 100, data=(tmp_path / "theirs.sqlite").read_bytes()),
        moved(index, 101, data=b"my shopping list\n" * 900),
        moved(index, 102, data=b""),
        moved(index, 103, data=bytes(4096) + index.read_bytes()[4096:]),
        moved(index, 104, ".bak"),
        moved(index, 105, "~x"),
    ]
    other = index.with_name("another.sqlite.damaged-20200101-000000")
    date = index.with_name(index.name + ".damaged-20209901-000000")
    for path in (other, date):
        path.write_bytes(index.read_bytes())
    (pointer := index.with_name(index.name + ".damaged-20200102-000000")).symlink_to(other)
    (folder := index.with_name(index.name + ".damaged-20200103-000000")).mkdir()
    assert integrity.sweep(index, NOW) == []
    assert all(os.path.lexists(path) for path in (*foreign, other, date, pointer, folder))
    old = moved(index, 400)
    monkeypatch.setattr(os, "geteuid", lambda: old.stat().st_uid + 1)
    assert integrity.sweep(index, NOW) == [], "a file of another user"
