"""The corpus file gives what the index gives, whatever was written since, and is of no use where it is damaged."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from memory_tui.cli.main import main
from memory_tui.core.errors import IndexBusy
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.search import corpus_file, postings_file
from memory_tui.search.corpus import Corpus, cosines
from memory_tui.search.index_in_memory import Dates
from memory_tui.search.meaning import rounded
from tests.support.stores import SqliteMade, cut_note, vectors_for
from tests.support.waiting import LONG


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_file, "LEAST", 1)
    monkeypatch.setattr(rounded, "LEAST", 1)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[SqliteMade]:
    index = SqliteMade(tmp_path / "index.sqlite")
    yield index
    index.close()


def write(made: SqliteMade, name: str, seed: int) -> None:
    rng = random.Random(seed)
    text = "\n".join(
        " ".join(rng.choices(["rose", "oak", "garden", "tomato"], k=40)) for _ in range(rng.randint(1, 30))
    )
    files = [cut_note(f"memory/{name}.md", text)]
    made.add(files, vectors_for(files))


def assert_same(one: Corpus, other: Corpus) -> None:
    assert one.generation == other.generation
    assert one.rowids.tolist() == other.rowids.tolist()
    rows = range(len(one))
    assert [one.path(row) for row in rows] == [other.path(row) for row in rows]
    assert [one.chunk_id(row) for row in rows] == [other.chunk_id(row) for row in rows]
    for name in ("start_lines", "end_lines", "embedded", "has_vector", "matrix"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for row in rows:
        # One alone is read from the file.
        assert np.array_equal(one.vectors([row]), other.matrix[[row]])
    times = [dict(zip(each.files.paths, each.files.mtimes.tolist(), strict=True)) for each in (one, other)]
    assert all(times[0][path] == time for path, time in times[1].items())


def assert_rounded(corpus: Corpus) -> None:
    query = corpus.matrix[0] * np.float32(0.5) + corpus.matrix[-1] * np.float32(0.5)
    bounds = corpus.bounds(query)
    assert bounds is not None
    low, high = bounds
    exact = cosines(corpus, query)
    assert (low - 4e-6 <= exact).all()
    assert (exact <= high + 4e-6).all()
    assert float((high - low).max()) < 0.1


def test_it_gives_what_the_index_gives_whatever_was_written_since(made: SqliteMade, tmp_path: Path) -> None:
    path, rng = tmp_path / "index.sqlite.corpus", random.Random(3)
    for number in range(12):
        write(made, f"n{number}", number)
    with made.reader() as store:
        corpus_file.save(path, Corpus.load(store))
        dates: Dates | None = None
        for step in range(60):
            name = f"n{rng.randint(0, 20)}"
            if f"memory/{name}.md" in store.known() and rng.random() < 0.4:
                made.remove([f"memory/{name}.md"])
            else:
                write(made, name, 100 + step)
            loaded = corpus_file.load(path, store)
            assert loaded is not None
            assert_same(loaded, Corpus.load(store))
            assert_rounded(loaded)
            # To compare all of them lets pages of the file go, and loses none that was written since.
            assert np.array_equal(cosines(loaded, loaded.matrix[-1]), cosines(Corpus.load(store), loaded.matrix[-1]))
            assert_same(loaded, Corpus.load(store))
            dates = Dates.of(loaded, dates)
            afresh = Dates.of(loaded)
            every = np.arange(len(loaded.files.paths), dtype=np.int32)
            assert list(dates.days()) == list(afresh.days())
            for one, other in ((dates.openclaw, afresh.openclaw), (dates.newest, afresh.newest)):
                # As a question asks: some files first.
                some = one.seconds(every[:: 1 + step % 3])
                assert np.array_equal(some, other.seconds(every)[:: 1 + step % 3], equal_nan=True)
                assert np.array_equal(one.seconds(every), other.seconds(every), equal_nan=True)
            if step % 20 == 19:
                corpus_file.save(path, loaded)
                again = corpus_file.load(path, store)
                assert again is not None
                assert again.mapped


def test_a_time_in_whole_milliseconds_stays_what_it_is(made: SqliteMade) -> None:
    """OpenClaw 2026.9 cuts to them; a cut of decimal fractions would take one away from many a whole second."""
    seconds = (1.0, 1_762_000_000.001, 1_762_000_000.0, 1_700_000_000.129)
    files = [
        replace(cut_note(f"extra/{number}.md", "rose"), mtime_ns=round(second * 1000) * 1_000_000 + number)
        for number, second in enumerate(seconds)
    ]
    made.add(files, vectors_for(files))
    with made.reader() as store:
        dates = Dates.of(Corpus.load(store))
    assert sorted(dates.newest.seconds(np.arange(len(seconds), dtype=np.int32)).tolist()) == sorted(seconds)


def test_after_the_log_forgot_the_index_is_read(made: SqliteMade, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite.corpus"
    write(made, "a", 1)
    with made.reader() as store:
        corpus_file.save(path, Corpus.load(store))
        write(made, "b", 2)
        made.forget_log()
        loaded = corpus_file.load(path, store)
        assert loaded is not None
        assert not loaded.mapped
        assert_same(loaded, Corpus.load(store))


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "vector", "rowids", "other uuid", "none"])
def test_a_file_that_does_not_fit_is_of_no_use(made: SqliteMade, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "index.sqlite.corpus"
    for number in range(5):
        write(made, f"n{number}", number)
    with made.reader() as store:
        corpus = Corpus.load(store)
        corpus_file.save(path, corpus)
        data = bytearray(path.read_bytes())
        if damage == "cut":
            data = data[: len(data) // 2]
        elif damage == "empty":
            data = bytearray()
        elif damage == "noise":
            data[:200] = random.Random(1).randbytes(200)
        elif damage == "vector":
            at = data.rindex(corpus.vectors([0])[0].tobytes())
            data[at : at + 4] = b"\xff\xff\x7f\x7f"
        elif damage == "rowids":
            data[4096:4104] = (1 << 40).to_bytes(8, "little")
        elif damage == "other uuid":
            data = bytearray(bytes(data).replace(store.uuid().encode(), b"0" * 32))
        path.write_bytes(data)
        if damage == "none":
            path.unlink()
        assert corpus_file.load(path, store) is None


def test_no_flipped_bit_is_believed(made: SqliteMade, tmp_path: Path) -> None:
    path, rng = tmp_path / "index.sqlite.corpus", random.Random(5)
    for number in range(5):
        write(made, f"n{number}", number)
    with made.reader() as store:
        corpus = Corpus.load(store)
        corpus_file.save(path, corpus)
        data = path.read_bytes()
        assert corpus_file.load(path, store) is not None
        # The sign of a number of a vector, a rounded one, the note of a chunk, the generation, and any other bit.
        block = corpus_file.load(path, store)._block  # type: ignore[union-attr]
        assert block.rounded is not None
        byte = data.index(block.rounded.rows[0].tobytes())
        sign = data.rindex(corpus.vectors([0])[0].tobytes()) + 3
        note = 2 * corpus_file.PAGE
        generation = data.index(b'"generation": ') + len('"generation": ')
        for at in (sign, byte, note, generation, *(rng.randrange(len(data)) for _ in range(200))):
            damaged = bytearray(data)
            damaged[at] ^= 1 << 7 if at == sign else 1
            path.write_bytes(damaged)
            assert corpus_file.load(path, store) is None, at


def test_a_file_of_another_program_stays(made: SqliteMade, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite.corpus"
    path.write_bytes(b"letters of somebody else")
    write(made, "a", 1)
    with made.reader() as store:
        assert corpus_file.load(path, store) is None
        corpus_file.save(path, Corpus.load(store))
    assert path.read_bytes() == b"letters of somebody else"


def test_who_stays_makes_it_and_the_next_process_starts_with_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    for number in range(8):
        (notes / f"{number}.md").write_text(f"note {number} about gardens\n" * 30)
    options = Options(workspace=str(notes.parent), index=str(tmp_path / "i.sqlite"), provider="scripted")
    with Engine.open(options) as first:
        first.indexer.start()
        assert first.indexer.writer.wait_idle(LONG)
        trace = first.queries.search("gardens")
        assert first.indexer.writer.wait_idle(LONG)
    assert corpus_file.path_of(tmp_path / "i.sqlite").stat().st_mode & 0o077 == 0
    with Engine.open(options) as later:
        assert [hit.chunk for hit in later.queries.search("gardens").recalled] == [hit.chunk for hit in trace.recalled]
        with later.queries.reader() as store, later.queries.state(store) as known:
            assert known.corpus.mapped


def test_a_command_that_indexes_makes_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    index, said = tmp_path / "i.sqlite", ["--workspace", str(notes.parent), "--index", str(tmp_path / "i.sqlite")]
    (notes / "1.md").write_text("note about gardens\n" * 30)
    assert main(["index", *said, "--provider", "scripted"]) == 0
    made = corpus_file.path_of(index).read_bytes()
    (notes / "2.md").write_text("note about oaks\n" * 30)
    assert main(["index", *said, "--provider", "scripted"]) == 0
    assert corpus_file.path_of(index).read_bytes() == made, "what came since is taken from the change log"
    options = Options(workspace=str(notes.parent), index=str(index), provider="scripted")
    with Engine.open(options) as engine, engine.queries.reader() as store, engine.queries.state(store) as known:
        assert known.corpus.mapped
        assert len(known.corpus) == 2


def test_a_file_that_is_cut_short_while_it_is_mapped_ends_no_process(made: SqliteMade, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite.corpus"
    for number in range(5):
        write(made, f"n{number}", number)
    with made.reader() as store:
        corpus_file.save(path, Corpus.load(store))
        corpus = corpus_file.load(path, store)
        assert corpus is not None
        os.truncate(path, 100)
        with pytest.raises(IndexBusy, match="cut off"):
            corpus.vectors([0])
        assert_same(corpus.refresh(store), Corpus.load(store))


def test_an_older_index_that_was_put_back_gets_no_file_of_what_came_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written next gets the numbers of what is gone, and the files would take the one for the other."""
    monkeypatch.setattr(postings_file, "LEAST", 1)
    index, notes = tmp_path / "i.sqlite", tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    said = ["--workspace", str(notes.parent), "--index", str(index), "--provider", "scripted"]

    def indexed(name: str, text: str) -> None:
        (notes / f"{name}.md").write_text(f"{text}\n" * 30)
        assert main(["index", *said]) == 0

    indexed("0", "gardens")
    for path in (corpus_file.path_of(index), postings_file.path_of(index)):
        path.unlink()
    before = {path: path.read_bytes() for path in tmp_path.glob("i.sqlite*")}
    indexed("1", "roses")
    (notes / "1.md").unlink()
    for path, data in before.items():
        path.write_bytes(data)
    killed = tmp_path / ".i.sqlite.corpus.1-1.part"
    killed.write_bytes(bytes(9))
    options = Options(workspace=str(notes.parent), index=str(index), provider="scripted")
    with Engine.open(options) as engine:
        for name in "234":
            (notes / f"{name}.md").write_text(f"oaks {name}\n" * 30)
            engine.indexer.sync()
        assert not killed.exists(), "nor is half a file left that a killed process wrote"
        with engine.queries.reader() as store, engine.queries.state(store) as known:
            assert_same(known.corpus, Corpus.load(store))
            assert known.lists is not None
            for word in ("roses", "oaks"):
                ours = known.lists.match(store.words, [word], "plain", "any")
                assert ours.rowids.tolist() == store.words.match([word], "plain", "any").rowids.tolist()
