"""Damaged indexes that were moved aside do not pile up, and nothing that is not surely ours is ever removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw
import pytest

from memory_tui import durable
from memory_tui.core import events
from memory_tui.engine.engine import Engine
from memory_tui.index import index_file, integrity
from memory_tui.index.store import Store
from memory_tui.plan import Options
from tests.engine.test_engine import Heard

NOW = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))


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


def test_the_newest_and_the_young_stay(index: Path) -> None:
    young = [moved(index, days) for days in (1, 5, 20, 29)]
    old = [moved(index, 31), moved(index, 31, "~2"), moved(index, 400)]
    old[0].with_name(old[0].name + "-wal").write_text("log")
    told = integrity.sweep(index, NOW)
    assert all(path.exists() for path in young)
    assert not any(path.exists() for path in old)
    assert len(told) == len(old)
    assert all(any(text.startswith(f"{path} was removed") for text in told) for path in old)
    assert not list(index.parent.glob("*-wal"))
    assert integrity.sweep(index, NOW) == []


def test_the_newest_three_stay_however_old_they_are(index: Path) -> None:
    old = [moved(index, days) for days in (100, 200, 300, 400)]
    integrity.sweep(index, NOW)
    assert [path.exists() for path in old] == [True, True, True, False]


def test_what_is_not_surely_ours_stays(index: Path, tmp_path: Path) -> None:
    for days in (1, 2, 3):
        moved(index, days)
    theirs = tmp_path / "theirs.sqlite"
    connection = apsw.Connection(str(theirs))
    connection.execute("CREATE TABLE t(x)")
    connection.close()
    foreign = [
        moved(index, 100, data=theirs.read_bytes()),
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
    link = index.with_name(index.name + ".damaged-20200102-000000")
    link.symlink_to(other)
    folder = index.with_name(index.name + ".damaged-20200103-000000")
    folder.mkdir()
    assert integrity.sweep(index, NOW) == []
    assert all(os.path.lexists(path) for path in (*foreign, other, date, link, folder))


def test_a_file_of_another_user_stays(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [moved(index, days) for days in (100, 200, 300, 400)]
    monkeypatch.setattr(os, "geteuid", lambda: old[0].stat().st_uid + 1)
    assert integrity.sweep(index, NOW) == []
    assert all(path.exists() for path in old)


def test_what_quarantine_makes_is_what_the_sweep_knows(index: Path) -> None:
    for _ in range(5):
        Store.open(index).close()
        index_file.quarantine(index, "Damaged.")
    assert len(list(index.parent.glob("*.damaged-*"))) == 5
    assert len(integrity.sweep(index, time.time() + 31 * 86_400)) == 2


def test_what_cannot_be_removed_is_said(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [moved(index, days) for days in (100, 200, 300, 400)]

    def refused(old: Path, new: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(durable.calls, "replace", refused)
    assert integrity.sweep(index, NOW) == [
        f"{old[-1]}, a damaged index that was moved aside, cannot be removed: Permission denied."
    ]


def test_the_event_log_says_what_was_removed(index: Path, tmp_path: Path) -> None:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    (tmp_path / "notes" / "memory" / "a.md").write_text("a zebra")
    old = [moved(index, days) for days in (3000, 3001, 3002, 3003)]
    heard = Heard()
    with Engine.open(Options(workspace=str(tmp_path / "notes"), index=str(index), provider="none"), heard) as engine:
        engine.index.sync()
        assert engine.notices() == ()
    [event] = [event for event in heard.events if isinstance(event, events.Noticed) and "was removed" in event.text]
    assert str(old[-1]) in event.text
    assert not old[-1].exists()


def test_a_flipped_bit_in_an_index_of_a_table_is_damage(tmp_path: Path) -> None:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    for name in ("oaks", "roses"):
        (tmp_path / "notes" / "memory" / f"{name}.md").write_text(f"All about {name}.\n")
    index = tmp_path / "i.sqlite"
    with Engine.open(Options(workspace=str(tmp_path / "notes"), index=str(index), provider="none")) as engine:
        engine.index.sync()
    connection = apsw.Connection(str(index))
    ((page,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_files_1'")
    ((size,),) = connection.execute("PRAGMA page_size")
    connection.close()
    data = bytearray(index.read_bytes())
    # The row says roses, and who looks for that path no longer finds it.
    at = data.find(b"roses", (page - 1) * size, page * size)
    assert at >= 0
    data[at] ^= 1
    index.write_bytes(data)
    store = Store.open(index)
    found = integrity.problems(store)
    store.close()
    assert found


def test_what_release_0_2_0_wrote_beside_an_index_is_removed(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Facts\n- Router\n")
    index = tmp_path / "i.sqlite"
    ours, other = index.with_name("i.sqlite.corpus"), index.with_name("i.sqlite.postings")
    ours.write_bytes(b'{"format": 4, ' + bytes(5000))
    other.write_bytes(b"another program's")
    with Engine.open(Options(workspace=str(tmp_path), index=str(index), provider="scripted", once=True)) as engine:
        engine.index.sync()
    assert not ours.exists()
    assert other.exists()
