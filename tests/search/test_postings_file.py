"""The postings file gives what FTS5 gives, whatever was written since, and is of no use where it is damaged."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memory_tui.cli.main import main
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled
from memory_tui.engine.engine import Engine
from memory_tui.index import disk_usage
from memory_tui.index.full_text import FullText
from memory_tui.plan import Options
from memory_tui.search import corpus_file, postings_file
from memory_tui.search.index_in_memory import IndexInMemory
from memory_tui.search.postings import PostingLists
from tests.search.test_postings import WORDS, text, write
from tests.support.stores import SqliteMade


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings_file, "LEAST", 1)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SqliteMade]:
    index = SqliteMade(tmp_path / "index.sqlite")
    rng = random.Random(11)
    for number in range(14):
        write(index, f"n{number}", "rose " * 400 if number == 3 else text(rng))
    yield index
    index.close()


@pytest.fixture
def saved(made: SqliteMade) -> Path:
    path = postings_file.path_of(made.path)
    with made.reader() as store:
        postings_file.save(path, store)
    return path


def assert_as_fts5(lists: PostingLists, made: SqliteMade, rng: random.Random) -> None:
    with made.reader() as store:
        for form in ("plain", "stemmed"):
            for join in ("all", "any"):
                words = rng.choices([*WORDS, "咖", "absent"], k=rng.randint(1, 5))
                ours, theirs = (
                    lists.match(store.words, words, form, join),
                    store.words.match(words, form, join),
                )
                assert ours.rowids.tolist() == theirs.rowids.tolist(), (words, form, join)
                assert ours.bm25.tolist() == theirs.bm25.tolist(), (words, form, join)
                assert lists.frequency(store.words, words, form) == store.words.frequency(words, form)
        assert lists.vocabulary(store.words).chunks_of == store.words.vocabulary()


def test_it_gives_what_fts5_gives_whatever_was_written_since(made: SqliteMade, saved: Path) -> None:
    rng = random.Random(3)
    for step in range(14):
        with made.reader() as store:
            lists = PostingLists.of(store, made.path)
            assert lists.mapped
        assert_as_fts5(lists, made, rng)
        name = f"n{rng.randint(0, 30)}"
        if f"memory/{name}.md" in made.store.known() and rng.random() < 0.4:
            made.remove([f"memory/{name}.md"])
        else:
            write(made, name, text(rng))
        with made.reader() as store:
            lists = lists.refresh(store)
        assert_as_fts5(lists, made, rng)
        if step == 9:
            with made.reader() as store:
                postings_file.save(saved, store)


@pytest.mark.parametrize("least", [2, 4])
def test_numbers_of_more_bytes_are_read_as_they_were_written(
    made: SqliteMade, saved: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    fitting = postings_file._bytes_of
    assert [fitting(np.array([most])) for most in (0, 255, 256, 65_535, 65_536)] == [1, 1, 2, 2, 4]
    monkeypatch.setattr(postings_file, "_bytes_of", lambda numbers: max(least, fitting(numbers)))
    with made.reader() as store:
        postings_file.save(saved, store)
        lists = PostingLists.of(store, made.path)
        assert lists.serves()
    assert_as_fts5(lists, made, random.Random(5))


def test_a_process_that_has_it_reads_no_word_by_fts5(
    made: SqliteMade, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("FTS5 was asked")

    for name in ("match", "occurrences", "frequency", "lengths", "vocabulary"):
        monkeypatch.setattr(FullText, name, never)
    with made.reader() as store:
        lists = PostingLists.of(store, made.path)
        assert len(lists.match(store.words, ["rose", "garden"], "plain", "all").rowids)
        assert len(lists.match(store.words, ["roses", "oak", "absent"], "stemmed", "any").rowids)
        assert all(lists.frequency(store.words, ["rose", "oak"], "stemmed"))
        assert "garden" in lists.vocabulary(store.words).chunks_of


def test_words_with_one_hash_are_told_apart(made: SqliteMade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings_file, "_hash_of", len)
    path = postings_file.path_of(made.path)
    with made.reader() as store:
        postings_file.save(path, store)
        found = postings_file.load(path, store)
        assert found is not None
        words = store.words.vocabulary()
        assert len(words) > len({len(word.encode()) for word in words})
        assert {word: found.frequency(word, "plain") for word in words} == words == found.frequencies("plain")
        assert [found.frequency(word, "plain") for word in ("", "rosy", "gardenia" * 9)] == [0, 0, 0]


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "tables", "other uuid", "none"])
def test_a_file_that_does_not_fit_is_of_no_use(made: SqliteMade, saved: Path, damage: str) -> None:
    data = bytearray(saved.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "empty":
        data = bytearray()
    elif damage == "noise":
        data[:200] = random.Random(1).randbytes(200)
    elif damage == "tables":
        data[data.rindex(b"garden")] ^= 1
    elif damage == "other uuid":
        data = bytearray(bytes(data).replace(made.store.uuid().encode(), b"0" * 32))
    saved.write_bytes(data)
    if damage == "none":
        saved.unlink()
    with made.reader() as store:
        assert postings_file.load(saved, store) is None
        lists = PostingLists.of(store, made.path)
    assert not lists.mapped
    assert_as_fts5(lists, made, random.Random(1))


@pytest.mark.parametrize("damage", ["zeros", "swapped"])
def test_a_damaged_word_is_read_by_fts5_until_the_file_is_written_anew(
    made: SqliteMade, saved: Path, damage: str
) -> None:
    whole = saved.read_bytes()
    data = bytearray(whole)
    if damage == "zeros":
        data[4096:4200] = bytes(104)
    else:
        # The numbers of two chunks changed places.
        with made.reader() as store:
            tables = PostingLists.of(store, made.path)._saved._tables["plain"]  # type: ignore[union-attr]
        word = tables.counts.argmax()
        at = int(tables.begins[word])
        # The first two counts, behind all steps.
        at += int(tables.counts[word]) * int(tables.step_bytes[word])
        first = next(one for one in range(at, at + int(tables.counts[word])) if data[one] != data[one + 1])
        data[first : first + 2] = data[first + 1 : first : -1] + data[first : first + 1]
    saved.write_bytes(data)
    with made.reader() as store:
        lists = PostingLists.of(store, made.path)
        assert lists.mapped
        for word in WORDS:
            ours, theirs = (
                lists.match(store.words, [word], "plain", "any"),
                store.words.match([word], "plain", "any"),
            )
            assert [column.tolist() for column in ours] == [column.tolist() for column in theirs]
        assert saved.read_bytes() == data, "who only asks writes nothing"
        IndexInMemory.save_postings(store, made.path, Stop())
        assert saved.read_bytes() == whole


def test_a_file_that_is_cut_short_while_it_is_mapped_ends_no_process(made: SqliteMade, saved: Path) -> None:
    with made.reader() as store:
        lists = PostingLists.of(store, made.path)
        lists.match(store.words, ["rose", "oak"], "plain", "any")
        os.truncate(saved, 100)
        assert not lists.refresh(store).mapped
        assert_as_fts5(lists.refresh(store), made, random.Random(2))


def test_two_who_write_it_at_once_never_give_it_half_a_text(saved: Path) -> None:
    with corpus_file.writing(saved, {"format": 1, "who": "first"}) as first:
        first(b"1" * 50)
        with corpus_file.writing(saved, {"format": 1, "who": "second"}) as second:
            second(b"2" * 50)
        assert saved.read_bytes()[4096:] == b"2" * 50
        first(b"1" * 50)
    assert saved.read_bytes()[4096:] == b"1" * 100
    assert not list(saved.parent.glob("*.part")), "nothing is left"
    dead = saved.with_name(f".{saved.name}.1-1.part")
    dead.write_bytes(bytes(9))
    assert [file.what for file in disk_usage.files(saved.with_suffix("")) if file.bytes == 9] == ["postings"]
    with corpus_file.writing(saved, {"format": 1}):
        assert not dead.exists(), "what a killed process left goes"


def test_a_file_of_another_program_stays(made: SqliteMade) -> None:
    path = postings_file.path_of(made.path)
    path.write_bytes(b"letters of somebody else")
    with made.reader() as store:
        postings_file.save(path, store)
        assert postings_file.load(path, store) is None
    assert path.read_bytes() == b"letters of somebody else"


def test_a_save_that_is_stopped_leaves_the_file_as_it_was(made: SqliteMade, saved: Path) -> None:
    before, stop = saved.read_bytes(), Stop()
    stop.set()
    write(made, "new", "rose garden")
    with made.reader() as store, pytest.raises(Cancelled):
        postings_file.save(saved, store, stop)
    assert saved.read_bytes() == before
    assert not list(saved.parent.glob("*.part"))


def test_it_is_written_by_commands_that_index_and_in_the_background(tmp_path: Path) -> None:
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    (notes / "1.md").write_text("note about gardens\n" * 30)
    index = tmp_path / "i.sqlite"
    said = ["--workspace", str(notes.parent), "--index", str(index), "--provider", "scripted"]
    assert main(["index", *said]) == 0
    path = postings_file.path_of(index)
    made = path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0
    options = Options(workspace=str(notes.parent), index=str(index), provider="scripted")
    with Engine.open(options) as engine:
        engine.queries.write_postings_file(Stop())
        assert path.read_bytes() == made, "it serves"
        path.unlink()
        engine.queries.write_postings_file(Stop())
        assert path.read_bytes() == made
        sizes = {file.what: file.bytes for file in engine.status().storage}
        assert sizes["postings"] == len(made)


def test_a_command_weighs_words_by_the_file_where_there_is_one(made: SqliteMade, saved: Path) -> None:
    """Without it, FTS5 weighs them: to read how long each chunk is takes longer than one question."""
    with made.reader() as store:
        lists = IndexInMemory.load(store, made.path, once=True).lists
        assert lists is not None
        assert lists.mapped
        saved.unlink()
        assert IndexInMemory.load(store, made.path, once=True).lists is None
