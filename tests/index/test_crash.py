"""A writer that is killed leaves a whole index, and the next one goes on where it was."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memory_tui.index.embedding import BATCH
from memory_tui.index.store import Store
from memory_tui.providers.builtin import hash_vector
from memory_tui.search.corpus import Corpus, cosines, cosines_of_nearest
from tests.support.index import Memory, integrity, text_of
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

WRITER = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from tests.support.index import Memory
from memory_tui.index import store, index_write as writes

point, count = sys.argv[3].split(":")
memory = Memory(Path(sys.argv[1]), Path(sys.argv[2]))
seen = 0

def die_at(name, real):
    def wrapped(*args, **options):
        global seen
        if name == point:
            seen += 1
            if seen == int(count):
                os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)
    return wrapped

for name in ("replace_files", "add_embeddings", "reset", "tidy", "prepare_vec0", "_put_file", "_drop_chunks",
             "_put_vec0"):
    setattr(writes, name, die_at(name, getattr(writes, name)))
memory.provider.embed = die_at("embed", memory.provider.embed)
memory.sync(listener=lambda event: None)
"""


def write_until(memory_folder: Path, index: Path, point: str) -> int:
    """Run a sync in a child process that kills itself at `point`; returns how the child ended."""
    command = [sys.executable, "-c", WRITER, str(memory_folder), str(index), point, str(ROOT)]
    return subprocess.run(command, timeout=60, check=False).returncode


def whole(store: Store) -> None:
    """Every file row has the chunks it says, in every table."""
    assert integrity(store) == []
    for path, row in store.known().items():
        assert len(store.chunks_of(path)) >= row.chunks
        assert sum(chunk.occurrence == 0 for chunk in store.chunks_of(path)) == row.chunks
    chunks = store.value("SELECT count(*) FROM chunks WHERE occurrence = 0")
    assert sum(row.chunks for row in store.known().values()) == chunks
    assert store.value("SELECT count(*) FROM chunks_words_docsize") == chunks
    if store.vec0_dims():
        corpus = Corpus.load(store)
        query = hash_vector("note about line")
        np.testing.assert_allclose(
            cosines_of_nearest(store, corpus, query, 4096)[0], cosines(corpus, query), rtol=0, atol=1e-6
        )


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    for number in range(40):
        path = folder / "memory" / f"{number:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(80, f"n{number}"))
    (folder / "MEMORY.md").write_text("a" * 4800)
    return folder


@pytest.mark.parametrize(
    "point",
    [
        "reset:1",
        "prepare_vec0:1",
        "embed:1",
        "embed:2",
        "add_embeddings:2",
        "replace_files:2",
        "_put_file:1",
        "_put_file:25",
        "_put_vec0:2",
        "tidy:1",
    ],
)
def test_killed_while_the_first_index_is_made(notes, tmp_path, point):
    index = tmp_path / "memory.sqlite"
    assert write_until(notes, index, point) == -signal.SIGKILL
    memory = Memory(notes, index)
    assert memory.notices == []
    whole(memory.store)
    cached = memory.store.counts().cached
    report = memory.sync()
    assert report.failed == ()
    whole(memory.store)
    assert set(memory.store.known()) == {"MEMORY.md"} | {f"memory/{number:02}.md" for number in range(40)}
    assert memory.store.counts().embedded == memory.store.counts().chunks
    # Nothing that was embedded before the kill is embedded again, but for the batch that was on its way.
    assert report.embedded == memory.store.counts().cached - cached
    embeds_before = int(point.partition(":")[2]) - 1 if point.startswith("embed") else 0
    assert cached >= embeds_before * BATCH // 2
    memory.store.close()


@pytest.mark.parametrize("point", ["_drop_chunks:1", "_put_file:1", "_put_file:5", "_put_vec0:1", "embed:1", "tidy:1"])
def test_killed_while_notes_are_replaced(notes, tmp_path, point):
    index = tmp_path / "memory.sqlite"
    memory = Memory(notes, index)
    memory.sync()
    before = {path: row.hash for path, row in memory.store.known().items()}
    memory.store.close()
    for number in range(10):
        (notes / "memory" / f"{number:02}.md").write_text(text_of(90, f"changed{number}"))
    assert write_until(notes, index, point) == -signal.SIGKILL

    memory = Memory(notes, index)
    whole(memory.store)
    changed = {path for path, row in memory.store.known().items() if row.hash != before[path]}
    if point != "tidy:1":
        assert changed == set()
    report = memory.sync()
    assert report.indexed == 10 - len(changed)
    whole(memory.store)
    memory.store.close()


def test_a_reader_is_not_disturbed_by_a_writer_that_dies(notes, tmp_path):
    index = tmp_path / "memory.sqlite"
    memory = Memory(notes, index)
    memory.sync()
    memory.store.close()
    reader = Store.open(index, read_only=True)
    corpus = Corpus.load(reader)
    (notes / "memory" / "00.md").write_text("changed")
    assert write_until(notes, index, "_put_file:1") == -signal.SIGKILL
    assert corpus.refresh(reader).generation >= corpus.generation
    assert reader.words.match(["changed"], "plain", "all")[0].size == 0
    reader.close()
