"""The thread that writes an index answers every job that it was given, also when it is told to end just then."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled
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
