"""Where an index file lies, what happens to a bad one, what is refused, and that what is not ours is left alone."""

import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_tui.errors import IndexDamaged, IndexUnavailable
from memory_tui.index import database, embedding
from memory_tui.index.connections import Readers
from memory_tui.index.store import Store
from memory_tui.providers import Cause, ProviderFailure
from memory_tui.sentences import Notice
from tests.support.index import Counting, Memory, run_sql
from tests.support.waiting import LONG

Put = Callable[[Path], object]


def made_by(script):
    return lambda path: run_sql(path, script)


def bytes_of(data):
    return lambda path: path.write_bytes(data)


def link(path):
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
    "openclaw 2026.9": ("main.sqlite", made_by("CREATE TABLE memory_index_meta(key, value)"), "of another program"),
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


def everything(folder):
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


def spoiled(index):
    Store.open(index).close()
    data = bytearray(index.read_bytes())
    data[100:2000] = b"\xa5" * 1900
    index.write_bytes(data)


def newer(index):
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
    assert store.value("PRAGMA application_id") == database.APPLICATION_ID
    store.close()
    path.chmod(0o644)
    Store.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "a lax one is made private"


def test_whoever_opens_an_index_that_is_being_made_finds_it_whole_or_not_there(tmp_path):
    notices: list[Notice] = []
    ready = threading.Barrier(3)

    def make(path):
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
                whole = not store.absent and store.recipe() is None
        for maker in makers:
            maker.join(LONG)
        readers.close()
    assert notices == []
    assert list(tmp_path.glob("*damaged*")) == []


class Picky(Counting):
    """Refuses every call that holds a text with the word poison."""

    state = Cause.TOO_LONG

    def embed(self, texts, kind):
        if any("poison" in text for text in texts):
            self.calls.append(list(texts))
            raise ProviderFailure(self.state, "too long for me")
        return super().embed(texts, kind)


class Half(Counting):
    """Makes what it can of a call, and then refuses it for the rest."""

    def embed(self, texts, kind):
        bad = [at for at, text in enumerate(texts) if "poison" in text]
        good = [at for at in range(len(texts)) if at not in bad]
        made = super().embed([texts[at] for at in good], kind) if good else []
        if bad:
            self.texts_refused.extend(texts[at] for at in bad)
            failure = ProviderFailure(Cause.NO_VECTOR, "not this one")
            failure.done = dict(zip(good, made, strict=True))
            raise failure
        return made

    def __init__(self):
        super().__init__()
        self.texts_refused: list[str] = []


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path / "notes", tmp_path / "i" / "memory.sqlite")
    memory.provider = Picky()
    for name in ("a", "b", "poison", "z"):
        memory.write(f"memory/{name}.md", name)
    yield memory
    memory.store.close()


def asked(memory):
    """How often the provider was asked for a refused text since the last time."""
    count = sum("poison" in text for call in memory.provider.calls for text in call)
    memory.provider.calls.clear()
    return count


def later(monkeypatch, seconds):
    now = time.time
    monkeypatch.setattr(embedding.time, "time", lambda: now() + seconds)


def test_it_is_asked_for_once(memory):
    assert memory.sync().error == "too long for me."
    assert asked(memory) == 2, "with the others, and alone"
    assert memory.store.counts().chunks - memory.store.counts().embedded == 1
    for _ in range(3):
        report = memory.sync()
        assert (report.error, report.changed, asked(memory)) == ("", False, 0)
    memory.write("memory/b.md", "another text")
    assert memory.sync().indexed == 1
    assert asked(memory) == 0
    [refused] = memory.store.rejected()
    assert (refused.path, refused.start_line, refused.reason) == ("memory/poison.md", 1, "too long for me.")


def test_a_call_that_was_refused_in_part_tells_which_text_is_to_blame(memory):
    memory.provider = provider = Half()
    memory.sync()
    assert memory.store.counts().embedded == memory.store.counts().chunks - 1
    assert [refused.path for refused in memory.store.rejected()] == ["memory/poison.md"]
    refused = len(provider.texts_refused)
    memory.sync()
    assert len(provider.texts_refused) == refused


@pytest.mark.parametrize(
    ("change", "force", "times"),
    [
        (lambda memory, _: memory.write("memory/poison.md", "more poison"), False, 1),
        (lambda memory, _: setattr(memory, "provider", Picky("another")), False, 2),
        (lambda memory, _: setattr(memory, "settings", memory.settings.set("chunking.tokens", 300, "test")), False, 0),
        (lambda memory, _: None, True, 1),
        (lambda _, monkeypatch: later(monkeypatch, embedding.SECONDS - 60), False, 0),
        (lambda _, monkeypatch: later(monkeypatch, embedding.SECONDS + 60), False, 1),
    ],
    ids=["text", "provider", "chunks", "force", "23 h", "a day"],
)
def test_it_is_asked_for_again_when_there_is_hope(memory, monkeypatch, change, force, times):
    memory.sync()
    asked(memory)
    first = memory.provider
    change(memory, monkeypatch)
    memory.sync(force=force)
    assert asked(memory) == times
    memory.sync()
    assert asked(memory) == 0
    assert len(memory.store.rejected()) == 1
    memory.provider = first
    memory.sync()
    assert asked(memory) == 0, "the first refused it already"
    memory.write("memory/poison.md", "none any more")
    memory.sync()
    assert memory.store.rejected() == []
    assert memory.store.counts().embedded == memory.store.counts().chunks
