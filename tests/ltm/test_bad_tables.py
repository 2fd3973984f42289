"""A table that cannot be used is one sentence and an exit status, and no byte of it changes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_tui.cli import main
from memory_tui.doctor import runner
from memory_tui.doctor.check import CheckOutcome
from memory_tui.engine.engine import Engine
from memory_tui.ltm import lance
from memory_tui.ltm.lance import MemoriesUnavailable
from memory_tui.plan import Options
from tests.ltm.conftest import Opened, bytes_of
from tests.support.waiting import LONG


def zeroed(folder: Path) -> None:
    for path in (folder / "memories.lance" / "data").iterdir():
        path.write_bytes(bytes(path.stat().st_size))


def cut(folder: Path) -> None:
    for path in (folder / "memories.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes()[:200])


def junk_manifest(folder: Path) -> None:
    for path in (folder / "memories.lance" / "_versions").iterdir():
        path.write_bytes(b"junk" * 50)


def no_versions(folder: Path) -> None:
    shutil.rmtree(folder / "memories.lance" / "_versions")


def no_data(folder: Path) -> None:
    shutil.rmtree(folder / "memories.lance" / "data")


def panics(folder: Path) -> None:
    """The places of the last tables of a data file are gone: the library panics on a thread of its own."""
    [file] = (folder / "memories.lance" / "data").iterdir()
    data = bytearray(file.read_bytes())
    data[-92:-28] = bytes(64)
    file.write_bytes(data)


def aborts(folder: Path) -> None:
    """A data file claims some four billion buffers: the library asks for that much memory, and ends the process."""
    [file] = (folder / "memories.lance" / "data").iterdir()
    data = bytearray(file.read_bytes())
    data[-13] = 255
    file.write_bytes(data)


def begins_in_the_middle(folder: Path) -> None:
    [file] = (folder / "memories.lance" / "_versions").glob("*.manifest")
    data = bytearray(file.read_bytes())
    data[-16:-8] = (300).to_bytes(8, "little")
    file.write_bytes(data)


DAMAGES = [zeroed, cut, panics, aborts, begins_in_the_middle, junk_manifest, no_versions, no_data]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_a_sentence_and_stays_as_it_is(
    damage: Callable[[Path], None], copied: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    damage(copied)
    before = bytes_of(copied)
    for words in (["list"], ["search", "tabs"], ["stats"], ["store", "The printer is upstairs", "--yes"]):
        code = main.main(["--workspace", str(tmp_path), "--memories", str(copied), "ltm", *words, "--json"])
        out, err = capsys.readouterr()
        if words == ["stats"] and code == 0:
            pytest.fail("damage was not seen")
        assert code == 1
        assert json.loads(out)["error"]["code"] == "memories"
        assert "is damaged" in err
        assert len(err.strip().splitlines()) == 2
        assert ".rs:" not in err
    assert bytes_of(copied) == before


def test_a_place_without_a_table_is_said_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], opened: Opened
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, said in (("nowhere", "no memories"), ("empty", "no memories"), ("file", "is no folder")):
        code = main.main(["--workspace", str(tmp_path), "--memories", str(tmp_path / name), "ltm", "search", "tabs"])
        assert code == 1
        assert said in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()
    assert list((tmp_path / "empty").iterdir()) == []
    assert main.main(["--workspace", str(tmp_path), "--memories", str(tmp_path / "nowhere"), "ltm", "list"]) == 0
    for place in ("ftp://x/y", "s3://", "s3:// /x"):
        assert main.main(["--workspace", str(tmp_path), "--memories", place, "ltm", "list"]) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_may_not_be_written_is_read(opened: Opened, copied: Path) -> None:
    memories = opened(copied)
    memories.approve("test")
    for path in (copied, *copied.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert len(memories.table().page(10)) == 4
        with pytest.raises(MemoriesUnavailable, match="cannot be written"):
            memories.store("The printer is upstairs")
    finally:
        for path in (copied, *copied.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
    assert [one.state for one in memories.journal.changes()] == ["intent"]


def test_a_vector_that_is_no_number_is_left_out_and_not_lost(opened: Opened, copied: Path) -> None:
    import lancedb
    import pyarrow as pa

    table = lancedb.connect(str(copied)).open_table("memories")
    [row] = table.search().limit(1).to_arrow().to_pylist()
    key = "00000000-0000-4000-8000-0000000000ff"
    row |= {"id": key, "vector": None, "text": "An entry without a vector"}
    table.add(pa.Table.from_pylist([row], schema=table.schema))
    memories = opened(copied)
    memories.approve("test")
    assert len(memories.table().entries()) == 5
    assert len(memories.table().vectors()[0]) == 4
    assert key not in [hit.entry.id for hit in memories.search("entry without a vector", 10, 0.0).hits]
    memories.forget([key])
    memories.undo()
    assert memories.get(key).text == "An entry without a vector"


def test_another_table_is_no_memory(opened: Opened, tmp_path: Path) -> None:
    import lancedb

    lancedb.connect(str(tmp_path / "other")).create_table("memories", [{"id": "1", "name": "x"}])
    with pytest.raises(MemoriesUnavailable, match="holds no memories: it has no column text"):
        opened(tmp_path / "other").table()


def test_a_panic_is_a_sentence_and_a_closed_table(opened: Opened, copied: Path, tmp_path: Path) -> None:
    import lancedb

    whole = shutil.copytree(copied, tmp_path / "whole")
    panics(copied)
    with pytest.raises(BaseException, match="panicked") as real:
        lancedb.connect(str(copied)).open_table("memories").search().to_arrow()
    assert type(real.value).__name__ in lance._PANICS
    memories = opened(copied)
    table = memories.table()
    with pytest.raises(MemoriesUnavailable, match="is damaged") as told:
        table.page(1)
    assert ".rs" not in told.value.message
    assert table.closed
    shutil.rmtree(copied)
    shutil.move(whole, copied)
    assert len(memories.table().page(10)) == 4


def test_a_panic_that_is_no_exception_is_a_sentence(
    opened: Opened, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(copied).table()

    class PanicException(BaseException):
        pass

    def panic(*_: object) -> Any:
        raise PanicException("index out of bounds, /x/y/z.rs:1:2")

    monkeypatch.setattr(table._table, "search", panic, raising=False)
    with pytest.raises(MemoriesUnavailable, match="index out of bounds") as told:
        table.page(1)
    assert ".rs" not in told.value.message


def test_a_store_that_cannot_be_reached_is_said_in_time(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "never-shown-anywhere")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(MemoriesUnavailable, match="cannot be reached") as told:
            opened("s3://mem/x").table()
        assert "never-shown" not in str(told.value)
        silent.listen()
        monkeypatch.setattr(lance, "REMOTE_SECONDS", 0.5)
        with pytest.raises(MemoriesUnavailable, match=r"no answer within 0\.5 seconds"):
            opened("s3://mem/x").table()


def test_without_the_library_the_sentence_says_how_to_get_it(
    opened: Opened, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lancedb", None)
    for place in (copied, copied / "absent"):
        with pytest.raises(MemoriesUnavailable, match="is not installed") as told:
            opened(place).table()
        assert "'.[lancedb]'" in told.value.next_step


# --- what the doctor says ------------------------------------------------------------------------------------------


def examined(tmp_path: Path, place: Path, **more: Any) -> dict[str, CheckOutcome]:
    """The state and fix of each check of the memories, where the slot of a configuration names them."""
    (tmp_path / "notes").mkdir(exist_ok=True)
    plugin = {"config": {"dbPath": str(place)}}
    plugins = {"slots": {"memory": "memory-lancedb"}, "entries": {"memory-lancedb": plugin}}
    config = tmp_path / "openclaw.json"
    config.write_text(json.dumps({"plugins": plugins}))
    notes, index = str(tmp_path / "notes"), str(tmp_path / "i.sqlite")
    options = Options(workspace=notes, config=str(config), index=index, **{"provider": "builtin", **more})
    with Engine.open(options) as engine:
        checks = [check for check in runner.checks_of(engine) if check.key.startswith("ltm-")]
        return {one.check.key: one.finding for one in runner.examine(engine, checks, LONG)}


def test_the_doctor_names_each_fault_of_the_memories_and_what_mends_it(
    tmp_path: Path, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    well = examined(tmp_path, copied)
    assert [one.state for one in well.values()] == ["ok"] * 4
    assert "4 entries embedded again" in " ".join(one.evidence for one in well.values()).replace(" of at most 20", "")
    absent = examined(tmp_path, tmp_path / "nowhere")
    assert (absent["ltm-table"].state, "memory-tui ltm store" in absent["ltm-table"].fix) == ("warning", True)
    assert absent["ltm-model"].state == "skipped"
    other = examined(tmp_path, copied, provider="scripted")["ltm-model"]
    assert (other.state, "--provider" in other.fix) == ("failed", True)
    assert "made with another model" in other.evidence
    shutil.copytree(copied, tmp_path / "damaged")
    zeroed(tmp_path / "damaged")
    damaged = examined(tmp_path, tmp_path / "damaged")["ltm-table"]
    assert (damaged.state, "is damaged" in damaged.evidence, "backup" in damaged.fix) == ("failed", True, True)
    monkeypatch.setitem(sys.modules, "lancedb", None)
    bare = examined(tmp_path, copied)
    assert [bare[name].state for name in ("ltm-library", "ltm-table", "ltm-model")] == ["failed"] * 3
    assert "'.[lancedb]'" in bare["ltm-library"].fix


def test_the_doctor_names_who_has_the_memories_locked_and_what_was_cut_off(
    tmp_path: Path, copied: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = opened(copied)
    memories.approve("test")
    with monkeypatch.context() as patch:
        patch.setattr(type(memories.table()), "delete", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            memories.forget([memories.table().entries()[0].id])
    cut = examined(tmp_path, copied)["ltm-journal"]
    assert (cut.state, cut.fix) == ("warning", "memory-tui ltm undo --list")
    with memories.journal.locked():
        locked = examined(tmp_path, copied)["ltm-journal"]
    assert (locked.state, f"kill {os.getpid()}" in locked.fix) == ("warning", True)
