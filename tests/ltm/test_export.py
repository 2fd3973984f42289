"""An export is the same rows whatever cut it off before, in a folder and in an object store."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from memory_tui.ltm import export, lance, location
from memory_tui.ltm.export import ExportReport
from memory_tui.plan import Options
from tests.ltm.conftest import Opened
from tests.support.object_store import BUCKET, SECRET, ObjectStore, serving

Rows = list[dict[str, Any]]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n- 数据库 is Postgres\n")
    for day in range(10, 20):
        (folder / "memory" / f"2026-11-{day}.md").write_text(f"- The printer moved to room {day}\n")
    return folder


@pytest.fixture
def engine(notes: Path, tmp_path: Path) -> Iterator[Engine]:
    options = Options(workspace=str(notes), index=str(tmp_path / "i.sqlite"), provider="builtin")
    with Engine.open(options) as made:
        made.indexer.catch_up()
        yield made


def exported(engine: Engine, folder: Path | str, since: int | None = None) -> ExportReport:
    place = location.at(str(folder), "test", table="chunks")
    with engine.queries.reader() as store:
        return export.export_chunks(store, place, "W", since)


def rows(folder: Path | str) -> Rows:
    import lancedb

    options = {"allow_http": "true"} if str(folder).startswith("s3:") else None
    found = lancedb.connect(str(folder), storage_options=options).open_table("chunks").to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["key"])


def test_every_chunk_is_there_with_its_vector_and_words(engine: Engine, tmp_path: Path) -> None:
    report = exported(engine, tmp_path / "out")
    found = rows(tmp_path / "out")
    assert (report.put, report.deleted, len(found)) == (11, 0, 11)
    [facts] = [row for row in found if row["path"] == "MEMORY.md"]
    assert (facts["workspace"], facts["source"], facts["startLine"]) == ("W", "memory", 1)
    assert "数据 据库" in facts["words"]
    assert facts["model"] == "builtin/minilm-trained-256"
    with engine.queries.reader() as store:
        page = store.page(0, 100)
        by_id = dict(zip(page.chunk_ids, page.vectors, strict=True))
    assert facts["vector"] == by_id[facts["chunkId"]].tolist()
    assert exported(engine, tmp_path / "out").unchanged == 11
    assert rows(tmp_path / "out") == found


def test_the_next_export_puts_what_is_new_and_deletes_what_is_gone(engine: Engine, notes: Path, tmp_path: Path) -> None:
    first = exported(engine, tmp_path / "out")
    (notes / "memory" / "2026-11-20.md").write_text("- The heating is repaired\n")
    engine.indexer.catch_up()
    since = exported(engine, tmp_path / "out", first.generation)
    assert (since.put, since.deleted, since.unchanged) == (1, 0, 0)
    (notes / "memory" / "2026-11-10.md").unlink()
    (notes / "MEMORY.md").write_text("# Facts\n- Router: another\n")
    engine.indexer.catch_up()
    last = exported(engine, tmp_path / "out", since.generation)
    assert (last.put, last.deleted) == (1, 2)
    exported(engine, tmp_path / "clean")
    assert rows(tmp_path / "out") == rows(tmp_path / "clean")
    with pytest.raises(lance.MemoryTuiError, match="no export of generation 999"):
        exported(engine, tmp_path / "out", 999)


class Killed(BaseException):
    pass


def test_cut_off_at_any_write_the_next_export_completes_it(
    engine: Engine, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "BATCH", 3)
    exported(engine, tmp_path / "out")
    for path in sorted((notes / "memory").iterdir())[:4]:
        path.unlink()
    for path in sorted((notes / "memory").iterdir())[:4]:
        path.write_text("- Another sentence\n")
    engine.indexer.catch_up()
    bounded, allowed = lance.bounded, 0

    def counted(place: Any, doing: str, run: Callable[[], Any], seconds: float = 0.0) -> Any:
        nonlocal left
        left -= doing == "Writing"
        if left < 0:
            raise Killed
        return bounded(place, doing, run, seconds)

    monkeypatch.setattr(lance, "bounded", counted)
    while True:
        left = allowed
        try:
            exported(engine, tmp_path / "out")
            break
        except Killed:
            allowed += 1
    assert allowed >= 2
    left = 1000
    exported(engine, tmp_path / "clean")
    assert rows(tmp_path / "out") == rows(tmp_path / "clean")


def test_memories_are_copied_and_never_into_their_own_table(opened: Opened, copied: Path, tmp_path: Path) -> None:
    memories = opened(copied)
    place = location.at(str(tmp_path / "out"), "test")
    assert export.export_entries(memories, place).put == 4
    memories.approve("test")
    memories.forget([memories.table().entries()[0].id])
    memories.edit(memories.table().entries()[0].id, importance=0.1)
    report = export.export_entries(memories, place)
    assert (report.put, report.deleted, report.unchanged) == (1, 1, 2)
    with pytest.raises(lance.MemoryTuiError, match="into their own table"):
        export.export_entries(memories, memories.location)


def test_keys_come_from_variables_alone(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--workspace", str(notes), "--index", str(tmp_path / "i.sqlite"), "export", "lancedb", "s3://mem/x"]
    for option, said in (
        ("aws_secret_access_key=abc", "a command line is seen by others"),
        ("aws_secret_access_key=${NOT_SET_ANYWHERE}", "is not set"),
        ("region", "takes KEY=VALUE"),
    ):
        assert main.main([*words, "--storage-option", option]) == 2
        assert said in capsys.readouterr().err
    assert main.main(words) == 2
    assert "has no approval to get the notes" in capsys.readouterr().err


# --- an object store -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with serving(tmp_path_factory.mktemp("seaweed")) as made:
        yield made


@pytest.mark.xdist_group("object store")
def test_an_object_store_holds_the_same_rows_and_faults_are_sentences(
    engine: Engine, notes: Path, store: ObjectStore, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    (notes / "memory" / "2026-11-21.md").write_text("- password: hunter2-Zq8Lw0xVt5Rk\n")
    engine.indexer.catch_up()
    report = exported(engine, f"s3://{BUCKET}/x")
    assert (report.put, report.withheld) == (11, 1)
    exported(engine, tmp_path / "clean")
    kept = [row for row in rows(tmp_path / "clean") if "hunter2" not in row["text"]]
    assert rows(f"s3://{BUCKET}/x") == kept
    memories = opened(f"s3://{BUCKET}/entries")
    made = memories.store("I prefer tabs").entry
    assert [hit.entry for hit in opened(f"s3://{BUCKET}/entries").search("tabs").hits] == [made]
    memories.forget([made.id])
    memories.undo()
    assert memories.get(made.id).text == "I prefer tabs"
    with pytest.raises(lance.MemoriesUnavailable, match="no bucket"):
        opened("s3://nowhere/entries").store("I prefer tabs")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(lance.MemoriesUnavailable, match="refuses the keys") as told:
        opened(f"s3://{BUCKET}/entries").table()
    assert SECRET not in str(told.value)


def killed_ten_times(words: list[str], env: dict[str, str], seconds: float) -> None:
    """Run a command, kill it at ten points spread over its run, then let it end."""
    dice = random.Random(14)
    for _ in range(10):
        process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(seconds * dice.random())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.soak
@pytest.mark.parametrize("where", ["folder", "object store"])
def test_killed_at_ten_points_and_run_again_it_is_a_clean_export(
    where: str, engine: Engine, notes: Path, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    for number in range(600):
        (notes / "memory" / f"topic-{number}.md").write_text(f"- Fact {number} about printer {number * 7919}\n")
    engine.indexer.catch_up()
    place = str(tmp_path / "out") if where == "folder" else f"s3://{BUCKET}/killed"
    words = [sys.executable, "-c", "from memory_tui.ltm import export; export.BATCH = 20\n"]
    words[2] += "from memory_tui.cli.main import main; import sys; raise SystemExit(main(sys.argv[1:]))"
    words += ["--workspace", str(notes), "--index", str(tmp_path / "i.sqlite"), "--provider", "builtin"]
    words += ["export", "lancedb", place, "--yes"]
    env = {**os.environ, **store.variables}
    began = time.monotonic()
    measured = [*words[:-2], str(tmp_path / "measured"), "--yes"]
    subprocess.run(measured, env=env, check=True, stdout=subprocess.DEVNULL)
    killed_ten_times(words, env, time.monotonic() - began)
    assert rows(place) == rows(tmp_path / "measured")
    assert json.dumps(rows(place)).count('"key"') == 611
