"""The thread that writes an index answers every job that it was given, also when it is told to end just then."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, IndexUnavailable
from memory_tui.index.connections import Writer
from memory_tui.index.store import Store
from tests.support.waiting import LONG


class Hesitating:
    """A queue that puts a job in only after `closing` was set, and the end was put in or was not for a while."""

    def __init__(self, closing: Stop) -> None:
        self._closing = closing
        self._real: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.reached, self.ended = threading.Event(), threading.Event()
        self.get = self._real.get

    def put(self, job: object) -> None:
        if job is not None:
            self.reached.set()
            assert self._closing.wait(LONG)
            self.ended.wait(0.3)
        self._real.put(job)
        if job is None:
            self.ended.set()


def test_a_job_that_comes_while_the_writer_is_closed_is_refused_and_not_forgotten(tmp_path: Path) -> None:
    writer = Writer(lambda damage: Store.open(tmp_path / "i.sqlite"), lambda store: store.close(), lambda error: None)
    writer._jobs = jobs = Hesitating(writer.closing)  # type: ignore[assignment]
    given: list[Future[int]] = []
    asking = threading.Thread(target=lambda: given.append(writer.submit(lambda store: store.generation())))
    asking.start()
    assert jobs.reached.wait(LONG)
    writer.close(LONG)
    asking.join(LONG)
    with pytest.raises(Cancelled):
        given[0].result(LONG)


def refuse(_store: object) -> None:
    raise IndexUnavailable("The disk is full.", "Make room.")


def test_who_waits_is_told_although_the_failure_cannot_be_reported(tmp_path: Path) -> None:
    def fail(_error: object) -> None:
        raise MemoryError

    writer = Writer(lambda damage: Store.open(tmp_path / "i.sqlite"), lambda store: store.close(), fail)
    with pytest.raises(IndexUnavailable, match="The disk is full"):
        writer.run(refuse)
    assert writer.run(lambda store: store.value("SELECT 7")) == 7
    writer.close(LONG)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_waits_for_a_thread_that_ended_without_an_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used_up(_self: object, _error: object) -> None:
        raise MemoryError

    writer = Writer(lambda damage: Store.open(tmp_path / "i.sqlite"), lambda store: store.close(), lambda error: None)
    with monkeypatch.context() as patched:
        patched.setattr(Future, "set_exception", used_up)
        with pytest.raises(IndexUnavailable, match="its thread has ended"):
            writer.run(refuse)
    assert writer.run(lambda store: store.value("SELECT 7")) == 7, "another thread goes on"
    writer.close(LONG)


def test_a_job_that_runs_out_of_its_own_time_is_answered_as_such(tmp_path: Path) -> None:
    def late(_store: object) -> None:
        raise TimeoutError("late")

    writer = Writer(lambda damage: Store.open(tmp_path / "i.sqlite"), lambda store: store.close(), lambda error: None)
    with pytest.raises(TimeoutError, match="late"):
        writer.run(late)
    writer.close(LONG)
