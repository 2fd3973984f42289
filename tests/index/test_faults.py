"""What can happen to an index file: it is noticed, told, put aside, and made again from notes that nobody touched."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from memory_tui import durable, events
from memory_tui.engine.engine import Engine
from memory_tui.index import connections
from memory_tui.plan import Options
from tests.support.index import run_sql
from tests.support.paths import TESTS
from tests.support.waiting import LONG
from tests.support.workspace import options_of, put_all, synced

NOTES = 30


@pytest.fixture
def workspace(tmp_path):
    for number in range(NOTES):
        lines = [f"line {at} of note {number} about gardens and coffee number{number}\n" for at in range(40)]
        folder = put_all(tmp_path / "notes", {f"memory/{number}.md": "".join(lines)})
    return folder


@pytest.fixture
def index(tmp_path):
    return tmp_path / "i" / "index.sqlite"


@pytest.fixture
def opened(workspace, index, heard):
    before = untouched(workspace)
    with ExitStack() as engines:

        def one(**changes):
            changes = (("sync.watchDebounceMs", "50"), *changes.items())
            options = options_of(workspace, index, *changes, provider="scripted")
            return engines.enter_context(Engine.open(options, heard))

        yield one
    assert untouched(workspace) == before or os.environ.get("EDITED") == "1", "the notes are nobody's to change"


def untouched(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "memory").iterdir()}


def said(heard):
    return "\n".join(event.text for event in heard.events if isinstance(event, events.Noticed))


def whole(engine):
    """All notes are fresh and found, and nothing is wrong with the file."""
    status = engine.status()
    assert (status.freshness.fresh, status.freshness.pending) == (NOTES, ())
    assert engine.search.search("number7").recalled[0].chunk.path == "memory/7.md"
    assert engine.search.problems() == ()


def flip(path, seed, count=400):
    """Turn bits over all of a file but its first page."""
    data = bytearray(path.read_bytes())
    rng = random.Random(seed)
    for _ in range(count):
        data[rng.randrange(16384, len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


BROKEN: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("my shopping list\n" * 900),
    "zeroed header": lambda path: path.write_bytes(bytes(4096) + path.read_bytes()[4096:]),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped bits": lambda path: flip(path, 1),
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_happened_while_it_was_closed_is_noticed_and_mended(opened, index, heard, how):
    with opened() as engine:
        engine.index.sync()
    BROKEN[how](index)
    with opened() as engine:
        assert engine.index.sync().indexed == NOTES
        assert "rebuilds it from the notes" in said(heard)
        whole(engine)
    kept = [path.name for path in index.parent.glob("*.damaged-*")]
    assert bool(kept) == (how not in ("empty", "deleted"))


@pytest.mark.parametrize("how", BROKEN)
def test_what_happens_while_it_is_open_is_noticed_and_mended(opened, index, heard, how):
    engine = opened()
    engine.start()
    heard.wait_for(lambda e: isinstance(e, events.SyncFinished))
    assert engine.index.writer.wait_idle(LONG)
    other = index.with_name("other")
    if how != "deleted":
        run_sql(index, "VACUUM INTO ?", str(other))
        BROKEN[how](other)
    # The file last: as soon as it is gone the engine may make another one, with a log that is not to be removed.
    for side in ("-wal", "-shm"):
        index.with_name(index.name + side).unlink(missing_ok=True)
    if how == "deleted":
        index.unlink()
    else:
        other.replace(index)
    engine.index.request_sync("search")
    assert engine.index.writer.wait_idle(LONG)
    heard.wait_for(lambda e: isinstance(e, events.Noticed))
    whole(engine)


def crashed(workspace, index, folder):
    """A copy of an index in the middle of its life, with a write-ahead log that was never folded in."""
    with synced(Options(workspace=str(workspace), index=str(index), provider="scripted")):
        folder.mkdir()
        for side in ("", "-wal"):
            shutil.copy(index.with_name(index.name + side), folder / (index.name + side))
    return folder / index.name


@pytest.mark.parametrize("log", ["cut early", "cut late", "missing", "of another index", "flipped"])
def test_a_log_that_power_or_a_hand_spoiled(workspace, index, tmp_path, heard, log):
    copy = crashed(workspace, index, tmp_path / "copy")
    path = copy.with_name(copy.name + "-wal")
    data = bytearray(path.read_bytes())
    assert data
    if log == "of another index":
        other = crashed(workspace, tmp_path / "o" / index.name, tmp_path / "other")
        shutil.copy(other.with_name(other.name + "-wal"), path)
    elif log == "missing":
        path.unlink()
    elif log == "flipped":
        data[len(data) // 2] ^= 255
        path.write_bytes(data)
    else:
        os.truncate(path, len(data) // (50 if log == "cut early" else 3) + 7)
    with synced(Options(workspace=str(workspace), index=str(copy), provider="scripted"), heard) as engine:
        whole(engine)


# Python does not notice that a compiled module was cut short, and leaves it to every later process of this checkout.
FULL = """
import resource, sys
sys.dont_write_bytecode = True
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
from memory_tui.errors import MemoryTuiError
workspace, index, room, force = sys.argv[1:]
with Engine.open(Options(workspace=workspace, index=index, provider="scripted")) as engine:
    engine.status()
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
    try:
        engine.index.sync(force=force == "force")
        print("went through")
    except MemoryTuiError as error:
        print(type(error).__name__, error.message)
    status = engine.status()
    print(status.chunks, len(status.freshness.of("failed")))
"""


def with_room(workspace, index, room, force=""):
    words = [sys.executable, "-c", FULL, str(workspace), str(index), str(room), force]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("room", [20_000, 300_000])
@pytest.mark.parametrize("force", ["", "force"], ids=["first index", "rebuild"])
def test_a_disk_that_fills_up_leaves_what_was_there(opened, workspace, index, room, force):
    chunks = 0
    if force:
        with opened() as engine:
            engine.index.sync()
            chunks = engine.status().chunks
    lines = with_room(workspace, index, room, force)
    assert "went through" in lines[0] or "IndexUnavailable" in lines[0]
    if force:
        assert lines[1].split() == [str(chunks), "0"]
    with opened() as engine:
        engine.index.sync()
        whole(engine)


READERS = """
import sys, threading
from pathlib import Path
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
enough, notes = threading.Event(), Path(sys.argv[1])
threading.Thread(target=lambda: (sys.stdin.read(), enough.set()), daemon=True).start()
with Engine.open(Options(workspace=sys.argv[1], index=sys.argv[2], provider="scripted",
                         changes=(("sync.onSearch", "off"),))) as engine:
    asked = 0
    while not enough.is_set():
        evidence = engine.search.gather(f"number{asked % 30} gardens")
        trace = engine.search.rank(evidence, engine.plan.settings)
        assert trace.recalled, trace
        for hit in (*trace.recalled, *trace.lost[:5]):
            cited = (notes / hit.chunk.path).read_text().split("\\n")[hit.chunk.start_line - 1 : hit.chunk.end_line]
            for text in filter(None, (hit.snippet, evidence.texts[hit.chunk.rowid])):
                assert text.strip("\\n") in "\\n".join(cited), (hit.chunk, text)
        why = engine.search.why(evidence, trace.recalled[0].chunk.path, trace.recalled[0].chunk.start_line)
        assert why.best.text in (notes / why.best.chunk.path).read_text()
        assert engine.status().chunks
        asked += 1
        if asked == 1:
            print("asking", flush=True)
print(asked)
"""


def test_many_processes_beside_rebuilds_hear_of_no_lock_and_get_the_text_of_their_lines(
    opened, workspace, index, heard
):
    """Each rebuild cuts the notes otherwise, so that a chunk of one index under the name of another would show."""
    opened().index.sync()
    command = [sys.executable, "-c", READERS, str(workspace), str(index)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    readers = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
    began = [reader.stdout.readline() for reader in readers if reader.stdout is not None]
    for tokens in ("48", "64", "90", "128", "400"):
        with opened(**{"chunking.tokens": tokens, "chunking.overlap": "0"}) as engine:
            assert engine.index.sync().rebuilt
    for reader in readers:
        out, err = reader.communicate(timeout=LONG)
        assert reader.returncode == 0, err
        assert int(out) > 5
    assert began == ["asking\n"] * 2
    assert "lock" not in said(heard)


SPOILED = {
    "generation": "UPDATE meta SET value = 'junk' WHERE key = 'generation'",
    "no generation": "DELETE FROM meta WHERE key = 'generation'",
    "recipe": "UPDATE meta SET value = '{' WHERE key = 'memory_index_meta_v1'",
    "uuid": "DELETE FROM meta WHERE key = 'uuid'",
    "tokenizer": "UPDATE meta SET value = 'unicodd61' WHERE key = 'full_text'",
    "path without UTF-8": "UPDATE files SET path = cast(x'ff6d' AS TEXT) WHERE id = 7",
    "reading of a file": "UPDATE files SET indexed_at = 'x' WHERE id = 7",
    "chunks of a file": "UPDATE files SET chunks = 9000000000000 WHERE id = 7",
    "lines": "UPDATE chunks SET start_line = 900 WHERE id = 8",
    "file of a chunk": "UPDATE chunks SET file_id = 9999 WHERE id = 8",
    "text": "UPDATE chunks SET text = replace(text, 'gardens', 'hardens')",
    "vector": "UPDATE chunks_vec_vector_chunks00 SET vectors = zeroblob(7)",
    "vector of no number": "UPDATE chunks_vec_vector_chunks00 SET vectors = "
    "cast(x'0000c07f' || substr(vectors, 5) AS BLOB)",
    "table": "DROP TABLE chunks_words",
}


@pytest.mark.parametrize("what", SPOILED)
def test_values_that_make_no_sense_are_damage_to_a_reader_and_mended(opened, index, heard, what):
    """The file stays as it was closed, as far as size and time can tell: the reader finds it."""
    with opened() as engine:
        engine.index.sync()
        before = [hit.chunk for hit in engine.search.search("number7 gardens").recalled]
    run_sql(index, SPOILED[what])
    index.with_name(f"{index.name}.seal").write_text(json.dumps([index.stat().st_size, index.stat().st_mtime_ns]))
    with opened(**{"sync.onSearch": "off"}) as engine:
        assert [hit.chunk for hit in engine.search.search("number7 gardens").recalled] == before
        engine.index.sync()
        whole(engine)


def answers(engine):
    """What a few questions recall, to the last digit."""
    return [
        (hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line, hit.snippet, hit.score)
        for query in ("number7 gardens", "coffee number12", "note 3")
        for hit in engine.search.search(query).recalled
    ]


def one_byte_at(opened, index, heard, copies, how):
    with opened() as engine:
        engine.index.sync()
        expected = answers(engine)
    whole_file, mark = index.read_bytes(), connections.mark_path(index).read_bytes()
    rng = random.Random(copies)
    positions = [*range(0, 100, max(1, 2000 // copies)), *(rng.randrange(len(whole_file)) for _ in range(copies))]
    for at in positions[-copies:]:
        for path in index.parent.glob(f"{index.name}-*"):
            path.unlink()
        index.write_bytes(whole_file[:at] + bytes([whole_file[at] ^ 0xFF]) + whole_file[at + 1 :])
        connections.mark_path(index).write_bytes(mark)
        heard.events.clear()
        with opened() as engine:
            if how == "index":
                engine.index.sync(reason="cli")
            else:
                engine.index.catch_up()
            assert answers(engine) == expected, at
            assert engine.search.problems() == (), at
        kept = [path for path in index.parent.glob("*.damaged-*") if not path.name.endswith(("-wal", "-shm"))]
        assert all(str(path) in said(heard) for path in kept), at
        assert bool(kept) == ("It is kept as" in said(heard)), at
        for path in kept:
            path.unlink()


@pytest.mark.parametrize("how", ["index", "search"])
def test_one_flipped_byte_is_healed(opened, index, heard, how):
    one_byte_at(opened, index, heard, 4, how)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("how", ["index", "search"])
def test_one_flipped_byte_in_each_of_two_hundred_and_ten_copies_is_healed(opened, index, heard, how):
    one_byte_at(opened, index, heard, 210, how)


OTHERS: dict[str, Callable[[Path, Path], object]] = {
    "pipe": lambda path, _: os.mkfifo(path),
    "link": lambda path, target: path.symlink_to(target),
    "text": lambda path, target: path.write_bytes(target.read_bytes()),
    "folder": lambda path, _: path.mkdir(),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_not_ours_in_the_place_of_the_seal_stays(opened, index, tmp_path, what):
    index.parent.mkdir()
    path, target = connections.mark_path(index), tmp_path / "theirs"
    target.write_text("my shopping list")
    OTHERS[what](path, target)
    before = path.lstat()
    for _ in range(2):
        with opened() as engine:
            engine.index.sync()
            whole(engine)
    after = path.lstat()
    # When a link was last followed is no change of it.
    assert [(s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns) for s in (before, after)].count(
        (before.st_ino, before.st_mode, before.st_size, before.st_mtime_ns)
    ) == 2
    assert target.read_text() == "my shopping list"


def test_on_a_file_system_of_other_machines_there_is_no_log_to_share(opened, index, heard, monkeypatch):
    monkeypatch.setattr(durable, "shared", lambda path: "nfs4")
    engine = opened()
    engine.index.sync()
    assert "other machines" in said(heard)
    assert not index.with_name(f"{index.name}-wal").exists()
    whole(engine)
    assert engine.index.sync(force=True).rebuilt
    whole(engine)


@pytest.mark.parametrize(("point", "shared"), [("/", ""), ("/mnt/a b", "9p"), ("/mnt", "nfs4"), ("/host", "fakeowner")])
def test_the_nearest_mount_tells_the_kind(tmp_path, monkeypatch, point, shared):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "30 27 0:9 / /mnt rw shared:1 - nfs4 host:/x rw\n"
        "31 30 0:9 / /mnt/a\\040b rw - 9p host rw\nrubbish\n"
        "32 27 0:10 / /over rw - ext4 /dev/vdb rw\n"
        "33 32 0:11 / /over rw - virtiofs host rw\n"
        "34 27 0:12 / /host rw - fakeowner host rw\n"
    )
    monkeypatch.setattr(durable, "_MOUNTS", mounts)
    assert durable.shared(Path(point) / "deep" / "i") == shared


HARNESS = TESTS / "harness" / "kill.py"


def kills(folder, kills, seed):
    words = [sys.executable, str(HARNESS), str(folder), str(kills), str(seed)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=480, check=False)
    bad = [line for line in done.stdout.splitlines() if not line.endswith("fine")]
    assert done.returncode == 0, "\n".join(bad) + done.stderr
    return done.stdout


def test_kills_at_ten_steps_are_all_clean(tmp_path):
    assert kills(tmp_path, 10, 7).endswith("10 kills, 0 bad\n")


@pytest.mark.soak
def test_kills_at_two_hundred_steps_are_all_clean(tmp_path):
    assert kills(tmp_path, 200, 11).endswith("200 kills, 0 bad\n")
