"""Jobs on worker threads, and the tasks that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from textual.pilot import Pilot

from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, MemoryTuiError
from memory_tui.tui.views.notes.history import Changes, HistoryView
from memory_tui.tui.workers import PostPart, WorkerJobs, task
from tests.support.tui import drive, make_app, press, said, sample, until


class Broken(MemoryTuiError):
    """Something that goes wrong on purpose."""

    code = "broken"


@pytest.fixture
def jobs() -> WorkerJobs:
    made = WorkerJobs(cast("object", None), lambda _listener: pytest.fail("nothing is opened here"))  # type: ignore[arg-type]
    made._engine = cast("Engine", SimpleNamespace(plan=SimpleNamespace(read_only=False)))
    return made


def test_what_a_job_returns_and_raises_comes_to_the_task(jobs: WorkerJobs) -> None:
    def fails(_engine: Engine) -> int:
        raise Broken("It is broken.")

    async def steps() -> None:
        assert await jobs.run(lambda _engine: 42) == 42
        with pytest.raises(Broken):
            await jobs.run(fails)
        assert isinstance(await jobs.attempt(fails), Broken)
        assert not jobs.busy

    asyncio.run(steps())


def test_parts_come_in_order_and_the_result_last(jobs: WorkerJobs) -> None:
    def work(tell: PostPart) -> str:
        for number in range(5):
            tell(number)
            tell(None)
        return "done"

    async def steps() -> None:
        assert [part async for part in jobs.parts(work)] == [0, 1, 2, 3, 4, "done"]
        assert not jobs.busy

    asyncio.run(steps())


def test_a_task_that_is_cancelled_hears_nothing_more_and_its_thread_ends(jobs: WorkerJobs) -> None:
    heard: list[object] = []
    told, go_on = threading.Event(), threading.Event()

    def work(tell: PostPart) -> None:
        tell("first")
        told.set()
        go_on.wait()
        tell("too late")
        pytest.fail("nobody wants this any more")

    async def listen() -> None:
        hear = heard.append
        async for part in jobs.parts(work):
            hear(part)

    async def steps() -> None:
        task = asyncio.create_task(listen())
        await until(lambda: told.is_set() and heard)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert jobs.busy, "its thread still runs"
        go_on.set()
        await until(lambda: not jobs.busy)

    asyncio.run(steps())
    assert heard == ["first"]


def test_a_search_that_nobody_waits_for_is_stopped(jobs: WorkerJobs) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def search(_engine: Engine) -> None:
        begun.set()
        stopped.wait()
        raise Cancelled

    async def steps() -> None:
        task = asyncio.create_task(jobs.run(search, stop=stopped.set))
        await until(begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not jobs.busy)

    asyncio.run(steps())


@pytest.mark.parametrize("way", ["run", "write"])
def test_a_write_is_done_though_nobody_waits_and_other_work_is_not_begun(jobs: WorkerJobs, way: str) -> None:
    done: list[str] = []
    gate = threading.Event()

    async def steps() -> None:
        loop = asyncio.get_running_loop()
        threads = [loop.run_in_executor(None, gate.wait) for _ in range(64)]
        try:
            start: Callable[[Callable[[Engine], None]], object] = getattr(jobs, way)
            task = asyncio.ensure_future(start(lambda _engine: done.append(way)))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not done, "every thread is taken"
        finally:
            gate.set()
        await asyncio.gather(*threads)
        await until(lambda: not jobs.busy)

    asyncio.run(steps())
    assert done == (["write"] if way == "write" else [])


def test_without_an_index_nothing_is_asked(jobs: WorkerJobs) -> None:
    jobs._engine = None

    async def steps() -> None:
        with pytest.raises(Cancelled):
            await jobs.run(lambda _engine: pytest.fail("there is nothing to ask"))

    asyncio.run(steps())


@pytest.mark.parametrize("fails", [False, True])
def test_a_task_of_a_view_that_is_gone_touches_nothing(tmp_path: Path, fails: bool) -> None:
    app = make_app(sample(tmp_path / "notes"))

    async def steps(pilot: Pilot[int]) -> None:
        await press(pilot, "g", "h")
        view = app.screen
        assert isinstance(view, HistoryView)
        await press(pilot, "escape")
        shown, before, ended = app.screen, said(app), asyncio.Event()

        class Pane:
            """A part of the view that is gone."""

            def __init__(self) -> None:
                self.view = view

            def refused(self, error: MemoryTuiError) -> str:
                self.view.query_one(Changes).focus()
                return error.message

            @task("late")
            async def late(self) -> None:
                try:
                    if fails:
                        raise Broken("It is broken.")
                    self.view.query_one(Changes).focus()
                finally:
                    ended.set()

        Pane().late()
        await ended.wait()
        await pilot.pause()
        assert (app.screen, said(app)) == (shown, before)

    drive(app, steps)
