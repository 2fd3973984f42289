"""Batch jobs from notes to vectors: claimed by a sync, followed beside it, remembered by the index across restarts."""

import errno
import gzip
import io
import json
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled
from memory_tui.events import BatchNews, Event
from memory_tui.index.store import Store
from tests.support.batch_server import BatchHandler, BatchPlay, Made, refused, text_of
from tests.support.embed import KEY, Time, configure, options
from tests.support.provider_server import Reply, hang, reset, serving, status
from tests.support.waiting import LONG, until
from tests.support.workspace import put

DATA = Path(__file__).parent / "data"


class Flowing(Time):
    """A clock whose time passes while somebody sleeps, and only then."""

    def clock(self):
        def sleep(stop, seconds):
            self.slept.append(seconds)
            self.at += seconds

        return replace(super().clock(), sleep=sleep)


@dataclass
class World:
    play: BatchPlay
    folder: Path
    batch: dict[str, Any] = field(default_factory=dict)
    time: Flowing = field(default_factory=Flowing)
    least: int = 3
    tokens: int = 8
    host: str = ""
    withhold: str = "true"
    events: list[Event] = field(default_factory=list)

    def write(self, count, name="MEMORY.md"):
        put(self.folder / "notes", name, text="".join(f"fact {i:03} {name} word{i}\n" for i in range(count)))

    def open(self, *, once=False):
        batch = {"enabled": True, "pollIntervalMs": 10, **self.batch}
        remote = {"baseUrl": f"{self.host or self.play.url}/v1", "apiKey": KEY, "batch": batch}
        chunking, sync = {"tokens": self.tokens, "overlap": 0}, {"watch": False}
        configure(self.folder, "", remote=remote, chunking=chunking, sync=sync)
        Approvals(self.folder / "notes").approve("openai", "embed.example", "test")
        changes = (("remote.withholdSecrets", self.withhold),)
        return Engine.open(options(self.folder, provider="openai", once=once, changes=changes), self.events.append)

    @property
    def index(self):
        return self.folder / "i.sqlite"

    @property
    def news(self):
        return [event for event in self.events if isinstance(event, BatchNews)]

    @property
    def stages(self):
        return [event.stage for event in self.news]

    @property
    def direct(self):
        """Texts that were sent directly, without the first one that finds out how long vectors are."""
        return [text for asked in self.play.asked for text in asked.texts if text != "memory"]


@pytest.fixture
def world(tmp_path, monkeypatch):
    usual = plan.settings
    (tmp_path / "notes").mkdir()
    with serving(BatchPlay(), BatchHandler) as play:
        found = World(play, tmp_path)

        def settings(*args):
            made = usual(*args)
            return replace(made, clock=found.time.clock(), jobs=replace(made.jobs, least=found.least))

        monkeypatch.setattr(plan, "settings", settings)
        yield found


def cached(world):
    with closing(Store.open(world.index, read_only=True)) as store:
        return store.counts().cached


def lacking(engine):
    state = engine.status()
    return state.chunks - state.embedded


def test_jobs_of_an_earlier_version_are_followed_and_paid_once(world, monkeypatch):
    """The index and what the provider had were written by an earlier version: one job submitted, one claimed."""
    flight = json.loads((DATA / "batch_in_flight.json").read_text())
    monkeypatch.setenv("HTTP_PROXY", world.play.url)
    world.host = "http://embed.example"
    world.index.write_bytes(gzip.decompress((DATA / "batch_in_flight.sqlite.gz").read_bytes()))
    world.play.files |= flight["sent"]
    world.play.sent |= flight["sent"]
    ((job, file, body),) = flight["jobs"]
    world.play.jobs.append(Made(job, file, body, deque(["completed"])))
    world.write(6)
    world.write(4, "memory/later.md")
    with world.open() as engine:
        report = engine.index.sync(reason="cli")
        assert (report.error, report.embedded, lacking(engine)) == ("", 10, 0)
    assert world.direct == []
    assert world.play.count("POST /files") == world.play.count("POST /batches") == 1
    later = [f"fact {i:03} memory/later.md word{i}" for i in range(4)]
    assert [text_of(line).rstrip() for line in world.play.requests(1)] == later
    assert not any(world.play.files)


def leave(world, call, reply=hang):
    """Open an engine as the app does, and close it while it waits for `call`."""
    world.play.fail(call, reply)
    with world.open() as engine:
        engine.start()
        assert world.play.hanging.acquire(timeout=LONG)


def everything_sent(world):
    return "\n".join([*world.play.sent.values(), *world.direct])


@pytest.mark.parametrize("when", ["always", "after it was claimed"])
def test_what_looks_like_a_secret_is_in_no_job(world, monkeypatch, when):
    # The server on loopback is the proxy on the way to a provider elsewhere.
    monkeypatch.setenv("HTTP_PROXY", world.play.url)
    world.host = "http://embed.example"
    world.tokens = 16
    world.write(12)
    secret = "ghp_" + "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX"
    put(world.folder / "notes", "memory/forge.md", text=f"forge {secret}\n")
    if when != "always":
        world.withhold = "false"
        leave(world, "POST /files")
        world.withhold = "true"
    with world.open() as engine:
        assert engine.index.sync(reason="cli").embedded == 6
        assert lacking(engine) == 1
        assert len(engine.status().withheld) == 1
    assert len(world.play.jobs) == 1
    assert "word7" in everything_sent(world)
    assert secret not in everything_sent(world)


def _lose_the_answer(handler, asked):
    handler._create({"input_file_id": "in-0"})
    reset(handler, asked)


def _some(lines):
    return ["nonsense", *lines[4:], lines[5]], [refused(lines[0])]


PASSING = (status(503), status(429, "", Retry_After="7"), reset)
NO_RIGHT = status(403, {"error": {"message": "not allowed to delete"}})
Fault = tuple[str, Reply]


@dataclass(frozen=True)
class Case:
    """What the provider does with a job of ten texts, and what is said of that; `direct` texts go directly."""

    faults: tuple[Fault, ...] = ()
    change: Callable[[list[Any]], tuple[list[Any], list[Any]]] | None = None
    states: tuple[str, ...] = ("completed",)
    batch: tuple[tuple[str, Any], ...] = ()
    least: int = 3
    jobs: int = 1
    direct: int = 0
    words: str = ""


CASES = {
    "few texts": Case(least=256, jobs=0, direct=10),
    "not asked for": Case(batch=(("enabled", False),), jobs=0, direct=10),
    "no batches there": Case((("POST /files", status(404, {"error": {"message": "not found"}})),), jobs=0, direct=10),
    "some are not brought": Case(
        change=_some, direct=4, words="4 texts came back without a vector and are sent directly; too long"
    ),
    "some that nobody sent": Case(change=lambda lines: ([*lines, {**lines[0], "custom_id": "f" * 64}], [])),
    "it stumbles": Case(
        (*[("GET /batches", status(502))] * 7, *[("GET /files", status(500))] * 4), states=("in_progress", "completed")
    ),
    "its file stays there": Case((("DELETE /files", NO_RIGHT),), words="not allowed to delete"),
    "the answer is lost": Case((("POST /batches", _lose_the_answer),)),
    "it takes too long": Case(
        states=("in_progress",), batch=(("timeoutMinutes", 30),), direct=10, words="not done after 30 minutes"
    ),
    **{
        f"{call} fails {at}": Case(((call, fault),))
        for call in ("POST /files", "POST /batches")
        for at, fault in enumerate(PASSING)
    },
}


@pytest.mark.parametrize("name", CASES)
def test_every_text_gets_its_vector_once_and_no_file_stays_there(world, name):
    case = CASES[name]
    world.least, world.batch, world.play.states = case.least, dict(case.batch), case.states
    world.play.change = case.change or world.play.change
    for call, fault in case.faults:
        world.play.fail(call, fault)
    world.write(10)
    with world.open() as engine:
        report = engine.index.sync(reason="cli")
        assert (report.embedded, report.error, lacking(engine)) == (10, "", 0)
    assert cached(world) == 10
    assert (len(world.play.jobs), len(world.direct)) == (case.jobs, case.direct)
    assert world.play.count("POST /batches") == 1 or name != "the answer is lost"
    assert world.play.files == {} or case.change is not _some
    assert case.words in (world.news[-1].detail if world.news else "")
    assert world.play.cancelled == (["job_0"] if name == "it takes too long" else [])


def _drop_the_name(handler, asked):
    handler._create({"input_file_id": "in-0"})
    hang(handler, asked)


@pytest.mark.parametrize("meanwhile", ["its name never arrived", "it is gone there", "the key is refused"])
def test_a_job_that_an_earlier_process_left(world, meanwhile):
    world.batch = {"wait": False}
    world.play.states = ("in_progress", "completed")
    world.write(6)
    if meanwhile == "its name never arrived":
        leave(world, "POST /batches", _drop_the_name)
    else:
        with world.open() as engine:
            engine.index.sync(reason="cli")
    assert all(KEY.encode() not in file.read_bytes() for file in world.folder.glob("i.sqlite*"))
    if meanwhile == "it is gone there":
        world.play.jobs.clear()
    elif meanwhile == "the key is refused":
        world.play.fail("GET /batches", status(401, {"error": {"message": "Incorrect API key"}}))
        with world.open() as engine:
            engine.index.sync(reason="cli")
            assert lacking(engine) == 6
        assert "remembered" in world.news[-1].detail
    world.batch = {}
    with world.open() as engine:
        assert engine.index.sync(reason="cli").embedded == 6
    gone = meanwhile == "it is gone there"
    assert (len(world.play.jobs), len(world.direct)) == ((0, 6) if gone else (1, 0))


@pytest.mark.parametrize("state", ["failed", "expired", "cancelled"])
def test_after_two_failures_texts_go_directly(world, state):
    world.play.states = (state,)
    world.play.change = lambda lines: ([], [])
    with world.open() as engine:
        for at in range(3):
            world.write(4, f"memory/{at}.md")
            report = engine.index.sync(reason="cli")
            assert (report.embedded, report.error) == (4, "")
            assert lacking(engine) == 0
    assert len(world.play.jobs) == 2
    assert world.stages == ["submitted", "failed", "submitted", "failed"]
    assert len(world.direct) == 12


def test_one_job_runs_at_a_time_until_all_texts_have_their_vector(world, monkeypatch):
    monkeypatch.setattr("memory_tui.index.embedding.MOST_TEXTS", 5)
    world.play.states = ("in_progress", "completed")
    world.write(14)
    with world.open() as engine:
        assert engine.index.sync(reason="cli").embedded == 14
    assert [len(world.play.requests(at)) for at in range(3)] == [5, 5, 4]
    assert world.stages == ["submitted", "done"] * 3
    assert world.direct == []


def test_without_wait_a_command_ends_and_the_next_one_fetches(world):
    world.batch = {"wait": False}
    world.write(6)
    with world.open() as engine:
        report = engine.index.sync(reason="cli")
        assert (report.claimed, report.embedded) == (6, 0)
        assert lacking(engine) == 6
    with world.open() as engine:
        assert lacking(engine) == 6
        ahead = engine.providers.forecast()
        assert (ahead.waiting, ahead.send) == (6, 0)
        assert ["6 texts wait" in notice.message for notice in engine.status().notices] == [True]
        assert engine.index.sync(reason="cli").embedded == 6
        assert lacking(engine) == 0
        assert engine.status().notices == ()
    assert (len(world.play.jobs), world.direct) == (1, [])


@pytest.mark.parametrize("call", ["GET /batches", "GET /files", "POST /files", "POST /batches"])
def test_a_restart_goes_on_with_the_job(world, call):
    world.play.states = ("in_progress", "completed")
    world.write(6)
    leave(world, call)
    with world.open() as engine:
        assert lacking(engine) == 6
        engine.start()
        until(lambda: lacking(engine) == 0)
    assert len(world.play.jobs) == 1
    assert world.play.count("POST /files") == (2 if call == "POST /files" else 1)
    assert world.direct == []


def test_notes_that_change_meanwhile_lose_nothing(world):
    world.batch = {"wait": False}
    world.play.states = ("in_progress", "completed")
    world.write(6)
    with world.open() as engine:
        engine.index.sync(reason="cli")
        (world.folder / "notes" / "MEMORY.md").write_text("something else entirely\n")
        world.write(1, "memory/new.md")
        assert engine.index.sync(reason="cli").embedded == 2
        assert lacking(engine) == 0
        # What was paid for is kept, in case the text comes back.
        engine.index.sync(reason="cli")
        assert cached(world) == 8
    assert len(world.play.jobs) == 1


def test_results_that_find_no_room_on_disk_are_fetched_at_the_next_start(world, monkeypatch):
    class Full(io.BytesIO):
        def writelines(self, lines):
            raise OSError(errno.ENOSPC, "No space left on device")

    world.write(6)
    with monkeypatch.context() as patch, world.open() as engine:
        patch.setattr("tempfile.TemporaryFile", Full)
        assert engine.index.sync(reason="cli").embedded == 0
        assert any(notice.code == "batch" and "6 texts" in notice.message for notice in engine.notices())
    assert "No space left" in world.news[-1].detail
    with world.open() as engine:
        assert engine.index.sync(reason="cli").embedded == 6
        assert engine.notices() == ()
    assert len(world.play.jobs) == 1


@pytest.mark.parametrize("count", [4, 10])
def test_an_index_that_is_made_anew_gets_its_vectors_too(world, count):
    world.write(count)
    with world.open() as engine:
        engine.index.sync(reason="cli")
    jobs, world.tokens = len(world.play.jobs), 16
    with world.open() as engine:
        report = engine.index.sync(reason="cli")
        assert (report.rebuilt, report.embedded) == (True, count // 2)
        assert lacking(engine) == 0
    assert len(world.play.jobs) - jobs == (1 if count // 2 >= world.least else 0)


def test_an_index_that_is_made_anew_keeps_the_job_that_runs(world):
    world.batch = {"wait": False}
    world.play.states = ("in_progress", "in_progress", "completed")
    world.write(6)
    with world.open() as engine:
        engine.index.sync(reason="cli")
        assert engine.index.sync(reason="cli", force=True).rebuilt
        assert lacking(engine) == 6
        engine.index.sync(reason="cli")
        assert lacking(engine) == 0
    assert (len(world.play.jobs), world.direct) == (1, [])


def test_a_single_question_neither_submits_nor_waits(world):
    world.write(6)
    with world.open(once=True) as engine:
        engine.index.catch_up()
        assert lacking(engine) == 6
        assert engine.search.search("word3").recalled is not None
    assert world.play.log == []
    with world.open() as engine:
        assert engine.index.sync(reason="cli").embedded == 6


def test_closing_wakes_who_waits_for_a_job(world):
    world.play.fail("GET /batches", hang)
    world.write(6)
    with ThreadPoolExecutor() as pool, world.open() as engine:
        command = pool.submit(engine.index.sync, reason="cli")
        assert world.play.hanging.acquire(timeout=LONG)
        engine.close()
        assert isinstance(command.exception(LONG), Cancelled | None)
