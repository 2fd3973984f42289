"""Nothing that a key starts looks through everything; what keys leave is collected when the app rests."""

import gc
import time
import weakref

import pytest

from memory_tui.tui import key_queue
from memory_tui.tui.key_queue import REST, THRESHOLDS, Garbage


class Loop:
    """It is in a cycle with itself, so that only a collection ends it."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def app():
    class App:
        busy = False

        def __init__(self):
            self.waiting = []

        def wait(self, seconds, then):
            self.waiting.append((seconds, then))

        def pass_time(self, seconds):
            clock[0] += seconds
            due, self.waiting[:] = list(self.waiting), []
            for _, then in due:
                then()

    clock = [time.monotonic()]
    found = App()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_queue.time, "monotonic", lambda: clock[0])
        yield found


def test_what_keys_leave_is_collected_when_nobody_uses_the_app(app):
    before = gc.get_threshold()
    collector = Garbage(app.wait, lambda: app.busy)
    collector.begin()
    try:
        assert gc.get_threshold() == THRESHOLDS
        loop = Loop()
        gone = weakref.ref(loop)
        gc.freeze()
        del loop

        collector.touched()
        app.pass_time(REST / 2)
        collector.touched()
        app.pass_time(REST / 2)
        assert gone() is not None, "a key came meanwhile"
        app.busy = True
        app.pass_time(REST)
        assert gone() is not None, "a job is under way"
        app.busy = False
        app.pass_time(REST)
        assert gone() is None
        assert not app.waiting, "an app at rest does nothing more"
        assert gc.get_freeze_count() > 0
    finally:
        collector.end()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
