"""The first moments of an index: several openers at once, and readers that come too early."""

from __future__ import annotations

import threading
from pathlib import Path

from memory_tui.index.connections import Readers
from memory_tui.index.store import Store
from memory_tui.notices import Notice
from tests.support.waiting import LONG


def test_whoever_opens_an_index_that_is_being_made_finds_it_whole_or_not_there(tmp_path: Path) -> None:
    notices: list[Notice] = []
    ready = threading.Barrier(3)

    def make(path: Path) -> None:
        ready.wait(LONG)
        Store.open(path, notices=notices).close()

    for number in range(30):
        path, readers, found = tmp_path / f"{number}.sqlite", Readers(), False
        makers = [threading.Thread(target=make, args=(path,)) for _ in range(2)]
        for maker in makers:
            maker.start()
        ready.wait(LONG)
        while not found:
            with readers.borrow(path) as store:
                found = store is not None and store.recipe() is None
        for maker in makers:
            maker.join(LONG)
        readers.close()
    assert notices == []
    assert sorted(file.name for file in tmp_path.glob("*damaged*")) == []


def test_a_file_without_anything_in_it_is_no_index_yet(tmp_path: Path) -> None:
    import apsw

    from memory_tui.index import schema

    path = tmp_path / "i.sqlite"
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", schema.APPLICATION_ID)
    connection.close()
    readers = Readers()
    with readers.borrow(path) as store:
        assert store is None
    readers.close()
