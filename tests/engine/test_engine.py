"""The engine that front ends hold: fresh answers, honest empty ones, background work, and a quick end."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from memory_tui import events
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, PathRefused
from memory_tui.plan import Options
from tests.support.waiting import LONG

PATIENCE = LONG


class Heard:
    """A listener that can be waited on."""

    def __init__(self) -> None:
        self.events: list[events.Event] = []
        self._news = threading.Condition()

    def __call__(self, event: events.Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def wait_for(self, wanted: Callable[[events.Event], bool]) -> events.Event:
        """The first event that is `wanted`, now or soon."""
        with self._news:
            assert self._news.wait_for(lambda: any(map(wanted, self.events)), PATIENCE), self.events
            return next(filter(wanted, self.events))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605\n")
    (folder / "memory" / "2026-11-18.md").write_text("Moved the printer to VLAN 20\n")
    return folder


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def engine(workspace: Path, tmp_path: Path, heard: Heard) -> Iterator[Engine]:
    options = Options(
        workspace=str(workspace),
        index=str(tmp_path / "i" / "index.sqlite"),
        provider="scripted",
        changes=(("sync.watchDebounceMs", "50"),),
        now=1_795_000_000.0,
    )
    with Engine.open(options, heard) as opened:
        yield opened


def recalled(engine: Engine, query: str) -> list[str]:
    return [hit.chunk.path for hit in engine.search.search(query).recalled]


def test_what_is_synced_is_found_and_a_second_sync_does_nothing(engine: Engine) -> None:
    first = engine.index.sync()
    assert (first.indexed, first.embedded) == (2, 2)
    assert recalled(engine, "omada")[0] == "MEMORY.md"
    again = engine.index.sync()
    assert not again.changed
    assert again.unchanged == 2


def test_the_same_evidence_is_ranked_under_any_profile_without_asking_again(engine: Engine) -> None:
    engine.index.sync()
    evidence = engine.search.gather("omada router")
    for profile in ("recommended", "openclaw-2026.3", "openclaw-2026.2"):
        settings = engine.plan.with_profile(profile)
        live, fresh = engine.search.rank(evidence, settings), engine.search.search("omada router", settings)
        assert [(c.chunk.id, c.score) for c in live.recalled] == [(c.chunk.id, c.score) for c in fresh.recalled]
        assert live.profile == profile


def test_an_edit_is_found_and_a_deleted_note_is_not(engine: Engine, workspace: Path) -> None:
    engine.index.sync()
    assert engine.search.search("zebra").recalled[0].bm25 is None
    (workspace / "memory" / "animals.md").write_text("a zebra crossed the road\n")
    (workspace / "MEMORY.md").unlink()
    engine.index.sync()
    assert recalled(engine, "zebra")[0] == "memory/animals.md"
    assert "MEMORY.md" not in recalled(engine, "omada router")


def test_a_saved_file_is_searchable_without_being_asked(engine: Engine, workspace: Path, heard: Heard) -> None:
    engine.start()
    heard.wait_for(lambda e: isinstance(e, events.WatchChanged) and e.on)
    heard.wait_for(lambda e: isinstance(e, events.SyncFinished))
    engine.index.writer.wait_idle(PATIENCE)
    (workspace / "memory" / "new.md").write_text("quokka sighted near the harbour\n")
    heard.wait_for(lambda e: isinstance(e, events.FileIndexed) and e.path == "memory/new.md")
    assert engine.index.writer.wait_idle(PATIENCE)
    assert recalled(engine, "quokka")[0] == "memory/new.md"
    assert engine.index.watcher.on
    engine.index.watcher.switch(False)
    assert not engine.index.watcher.on


def test_a_search_tells_what_it_could_not_know(engine: Engine, workspace: Path) -> None:
    engine.index.sync()
    (workspace / "memory" / "2026-11-18.md").write_text("now about something else\n")
    (workspace / "memory" / "photo.png").write_bytes(b"x")
    engine.status()
    trace = engine.search.search("router")
    states = {item.path: (item.state, item.detail) for item in trace.unsearchable}
    assert states["memory/2026-11-18.md"] == ("pending", "changed")
    assert states["memory/photo.png"][0] == "excluded"


def test_a_folder_that_cannot_be_read_is_named(engine: Engine, workspace: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (workspace / "memory").chmod(0)
    try:
        engine.index.sync()
        assert any(item.path == "memory" for item in engine.status().freshness.left_out)
    finally:
        (workspace / "memory").chmod(0o755)


def test_files_have_states_days_and_chunks(engine: Engine, workspace: Path) -> None:
    engine.index.sync()
    (workspace / "memory" / "late.md").write_text("not yet indexed")
    rows = {row.path: row for row in engine.notes.files()}
    assert rows["memory/2026-11-18.md"].day == dt.date(2026, 11, 18)
    assert (rows["MEMORY.md"].state, rows["MEMORY.md"].chunks) == ("fresh", 1)
    assert (rows["memory/late.md"].state, rows["memory/late.md"].detail) == ("pending", "new")
    assert [ref.citation for ref in engine.search.chunks_of("MEMORY.md")] == ["MEMORY.md#L1-L3"]
    assert engine.notes.read("MEMORY.md").text == "# Facts\n- Router: Omada ER605\n"
    with pytest.raises(PathRefused):
        engine.notes.read("../elsewhere.md")


def test_a_cancelled_search_stops(engine: Engine) -> None:
    engine.index.sync()
    cancel = Stop()
    cancel.set()
    with pytest.raises(Cancelled):
        engine.search.gather("router", cancel)


def test_searches_go_on_while_files_are_indexed(
    engine: Engine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memory_tui.index import index_write

    real, writing, answered = index_write.replace_files, threading.Semaphore(0), threading.Semaphore(0)

    def held(*arguments: object) -> None:
        real(*arguments)
        writing.release()
        assert answered.acquire(timeout=LONG)

    engine.index.sync()
    for i in range(300):
        (workspace / "memory" / f"note-{i}.md").write_text(f"note {i} about gardens and coffee\n" * 20)
    monkeypatch.setattr(index_write, "replace_files", held)
    engine.index.request_sync()
    for _ in range(3):
        assert writing.acquire(timeout=LONG)
        assert recalled(engine, "omada")[0] == "MEMORY.md"
        assert not engine.index.writer.wait_idle(0)
        answered.release()
    answered.release(300)
    while not engine.index.writer.wait_idle(0):
        assert recalled(engine, "omada")[0] == "MEMORY.md"
    assert engine.search.search("gardens").funnel.chunks > 300


def test_a_command_that_asks_once_gets_the_same_answer_by_vec0(workspace: Path, tmp_path: Path) -> None:
    for i in range(2200):
        (workspace / "memory" / f"note-{i}.md").write_text(f"note {i} about garden {i % 7} and coffee {i % 50}\n")
    place = str(tmp_path / "index.sqlite")
    answers = []
    for once, vec0 in ((False, "on"), (True, "on"), (True, "off")):
        options = Options(
            workspace=str(workspace),
            index=place,
            provider="builtin",
            now=1_795_000_000.0,
            once=once,
            changes=(("store.vector.enabled", vec0),),
        )
        with Engine.open(options) as asked:
            asked.index.sync()
            for query in ("garden 3 coffee", "omada router", "zebra crossing"):
                for profile in ("recommended", "openclaw-2026.3"):
                    evidence = asked.search.gather(query)
                    trace = asked.search.rank(evidence, asked.plan.with_profile(profile))
                    answers.append((once and vec0 == "on", query, profile, trace))
                    assert evidence.cosine is not None
                    found = int((~np.isnan(evidence.cosine)).sum())
                    assert (found < 1000) == (once and vec0 == "on" and asked.status().vector.available)
    third = len(answers) // 3
    for (_, query, profile, whole), *others in zip(
        answers[:third], answers[third : 2 * third], answers[2 * third :], strict=True
    ):
        for _, _, _, other in others:
            assert [c.chunk.id for c in other.recalled] == [c.chunk.id for c in whole.recalled], (query, profile)
            assert [c.score for c in other.recalled] == pytest.approx([c.score for c in whole.recalled], abs=1e-6)
            assert other.funnel == whole.funnel


def test_two_engines_share_one_index(engine: Engine, workspace: Path) -> None:
    engine.index.sync()
    with Engine.open(Options(workspace=str(workspace), index=str(engine.plan.index), provider="scripted")) as other:
        assert recalled(other, "omada")[0] == "MEMORY.md"
        (workspace / "memory" / "shared.md").write_text("walrus\n")
        engine.index.sync()
        assert recalled(other, "walrus")[0] == "memory/shared.md"


def test_another_provider_makes_another_index_and_vectors_are_never_mixed(engine: Engine, workspace: Path) -> None:
    engine.index.sync()
    options = Options(
        workspace=str(workspace), index=str(engine.plan.index), provider="builtin", changes=(("sync.onSearch", "off"),)
    )
    with Engine.open(options) as other:
        trace = other.search.search("omada")
        assert trace.mode == "keywords only"
        assert any(notice.code == "model_mismatch" for notice in trace.notices)
        report = other.index.sync()
        assert report.rebuilt
        assert other.search.search("omada").mode == "hybrid"


def test_closing_in_the_middle_of_a_sync_gives_it_up_and_loses_nothing(
    workspace: Path, tmp_path: Path, heard: Heard
) -> None:
    for i in range(1500):
        (workspace / "memory" / f"note-{i}.md").write_text(f"note {i} about gardens and coffee\n" * 40)
    options = Options(workspace=str(workspace), index=str(tmp_path / "index.sqlite"), provider="scripted")
    engine = Engine.open(options, heard)
    engine.start()
    heard.wait_for(lambda e: isinstance(e, events.FileIndexed))
    engine.close()
    with Engine.open(options) as again:
        report = again.index.sync()
        assert report.found == 1502
        assert report.indexed < 1502, "what was indexed before is not indexed again"
        assert again.status().freshness.fresh == 1502


def test_neither_engine_nor_command_line_loads_a_screen_or_a_providers_software() -> None:
    code = (
        "import sys, memory_tui.engine.engine, memory_tui.cli.main, memory_tui.cli.output\n"
        "print(sorted({'textual', 'rich', 'openai', 'google', 'mcp', 'tokenizers', 'watchfiles'}"
        " & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
