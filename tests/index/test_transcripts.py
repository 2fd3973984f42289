"""Transcripts in the index: opt-in, cut and hashed as documented, patient about growth, and never with a secret."""

import json
import threading

import pytest
from msgspec.structs import replace

from memory_tui.config.settings import Settings
from memory_tui.index.sync import SyncRun, compare, sync, waits
from memory_tui.index.watch import Watcher
from memory_tui.jsstring import sha256_hex
from memory_tui.workspace import transcripts
from memory_tui.workspace.roots import Roots, scan
from tests.support.index import Memory
from tests.support.waiting import LONG

SECRET = "sk-abcdefghijklmnopqrstuvwxyz"


def said(role, text):
    return json.dumps({"type": "message", "message": {"role": role, "content": text}}) + "\n"


CONVERSATION = json.dumps({"type": "session"}) + "\n"
CONVERSATION += said("user", "Where is the zeppelin?") + said("toolResult", "zeppelin.txt") + "{broken\n"
CONVERSATION += said("assistant", f"In the hangar, the key is {SECRET}.")


class Told(Memory):
    """A memory whose sessions are indexed too."""

    sources = ("memory", "sessions")

    @property
    def roots(self):
        return Roots.open(self.folder, self.extra, sources=self.sources, sessions=self.folder.parent / "sessions")

    def told(self, name, text):
        path = self.folder.parent / "sessions" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, reason, *, force=False):
        run = SyncRun(self.store, self.roots, self.settings, scan(self.roots), provider=self.provider)
        return sync(replace(run, force=force, reason=reason))

    def states(self):
        now = compare(scan(self.roots), self.store.indexed(), self.roots, self.settings)
        return {state.path: state.detail for state in now.stale.values()}


@pytest.fixture
def memory(tmp_path):
    memory = Told(tmp_path / "notes", tmp_path / "memory.sqlite")
    memory.write("MEMORY.md", "The zeppelin is green.\n")
    memory.told("a.jsonl", CONVERSATION)
    yield memory
    memory.store.close()


def test_a_transcript_is_cut_with_the_lines_of_its_file(memory):
    memory.run("cli")
    (chunk,) = memory.store.chunks_of("sessions/a.jsonl")
    text = "User: Where is the zeppelin?\nAssistant: In the hangar, the key is sk-abc…wxyz."
    assert (chunk.start_line, chunk.end_line, chunk.source) == (2, 5, "sessions")
    assert memory.store.texts([chunk.rowid])[chunk.rowid] == text
    assert chunk.hash == sha256_hex(text)
    assert chunk.chunk_id == sha256_hex(f"sessions:sessions/a.jsonl:2:5:{chunk.hash}:{chunk.model}")
    row = memory.store.file("sessions/a.jsonl")
    assert row.hash == sha256_hex(text + "\n2,5")
    assert row.detail == "1 line is not JSON and was skipped"
    assert memory.store.counts().by_source == {"memory": (1, 1), "sessions": (1, 1)}


def test_taking_sessions_away_takes_them_out_of_the_index(memory):
    memory.run("cli")
    memory.sources = ("memory",)
    report = memory.run("cli")
    assert (report.rebuilt, report.removed) == (True, 1)
    assert set(memory.store.indexed()) == {"MEMORY.md"}


def test_the_first_index_and_a_sync_by_name_wait_for_nothing(memory):
    assert memory.run("search").indexed == 2
    memory.told("a.jsonl", CONVERSATION + said("user", "And the balloon?"))
    assert memory.run("cli").indexed == 1
    memory.told("b.jsonl", CONVERSATION)
    assert memory.run("watch", force=True).indexed == 3


@pytest.mark.parametrize("reason", ["watch", "search", "start"])
def test_a_sync_by_itself_waits_until_a_transcript_has_grown(memory, reason):
    memory.run("cli")
    memory.told("a.jsonl", CONVERSATION + said("user", "And the balloon?"))
    memory.write("MEMORY.md", "The zeppelin is blue.\n")
    report = memory.run(reason)
    assert (report.indexed, report.waiting, report.unchanged) == (1, 1, 0)
    detail = memory.states()["sessions/a.jsonl"]
    assert "grew by 80 bytes and 1 line;" in detail
    assert "100,000 bytes or 50 lines" in detail
    memory.told("a.jsonl", CONVERSATION + said("user", "And the balloon?") * 50)
    assert memory.run(reason).indexed == 1
    assert memory.states() == {}
    memory.told("a.jsonl", CONVERSATION + "x" * 200_000)
    assert memory.run(reason).indexed == 1


@pytest.mark.parametrize(
    ("bytes_", "messages", "limits", "expected"),
    [
        (99_999, 49, (100_000, 50), False), (100_000, 0, (100_000, 50), True), (10, 50, (100_000, 50), True),
        (1, 0, (0, 50), True), (0, 0, (0, 0), False), (1, 0, (0, 0), True), (99, 0, (100, 0), False),
    ],
)  # fmt: skip
def test_when_growth_is_enough(memory, bytes_, messages, limits, expected):
    memory.told("a.jsonl", "x" * (bytes_ - messages) + "\n" * messages)
    note = next(n for n in scan(memory.roots).notes if n.source == transcripts.SOURCE)
    names = ("sync.sessions.deltaBytes", "sync.sessions.deltaMessages")
    settings = Settings.defaults().update(dict(zip(names, limits, strict=True)), "here")
    assert (waits(note, None, settings) == "") is expected


def test_a_transcript_that_shrank_counts_whole(memory):
    memory.told("a.jsonl", CONVERSATION * 3)
    memory.run("cli")
    memory.told("a.jsonl", CONVERSATION)
    note = next(n for n in scan(memory.roots).notes if n.source == transcripts.SOURCE)
    words = waits(note, memory.store.file("sessions/a.jsonl"), Settings.defaults())
    assert words.startswith(f"grew by {len(CONVERSATION):,} bytes and 5 lines; ")


def test_the_watcher_sees_transcripts(memory, tmp_path):
    seen = threading.Event()
    watcher = Watcher(memory.roots, 0.05, seen.set, lambda _: None, lambda _: None)
    watcher.switch(True)
    try:
        assert watcher.armed.wait(LONG)
        assert seen.wait(LONG)
        seen.clear()
        memory.told("a.jsonl", CONVERSATION * 2)
        assert seen.wait(LONG)
    finally:
        watcher.end()
