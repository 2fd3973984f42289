"""A stop: seen at once by every way of asking, from any thread, and never after the job."""

import os
import signal
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled
from tests.support.waiting import LONG


def test_a_stop_is_set_until_it_is_cleared():
    stop = Stop()
    stop.check()
    assert not stop.is_set()
    assert not stop.wait(0)
    stop.set()
    assert stop.is_set()
    assert stop.wait()
    with pytest.raises(Cancelled):
        stop.check()
    stop.clear()
    stop.check()


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans())))
def test_a_stop_of_several_is_set_while_any_is(steps):
    parts = [Stop() for _ in range(3)]
    both = Stop(parts[0], Stop(parts[1], parts[2]))
    each = [*parts, both]
    wished = [False] * 4
    for at, on in steps:
        each[at].set() if on else each[at].clear()
        wished[at] = on
        assert both.is_set() == both.wait(0) == any(wished)
        assert [one.is_set() for one in parts] == wished[:3]


@pytest.mark.parametrize("which", [0, 1])
def test_waiting_ends_with_any_of_them(which):
    parts = [Stop(), Stop()]
    both = Stop(*parts)
    threading.Timer(0.01, parts[which].set).start()
    started = time.monotonic()
    assert both.wait(LONG)
    assert time.monotonic() - started < LONG


def test_waiting_ends_after_its_time():
    assert not Stop(Stop()).wait(0.01)


def test_a_stop_interrupts_what_runs_and_nothing_else():
    interrupted: list[str] = []
    outer = Stop()
    inner = Stop(outer)
    with inner.around(lambda: interrupted.append("first")):
        assert interrupted == []
        outer.set()
        assert interrupted == ["first"]
    outer.set()
    inner.set()
    assert interrupted == ["first"]
    with pytest.raises(Cancelled), inner.around(lambda: interrupted.append("second")):
        raise AssertionError("it does not get here")
    assert interrupted == ["first"]


def test_an_interrupt_never_comes_after_the_job():
    stop, inside, late = Stop(), threading.Event(), []

    def interrupt():
        if not inside.is_set():
            late.append(1)

    setting = threading.Thread(target=lambda: [stop.set() for _ in range(20_000)])
    setting.start()
    while setting.is_alive():
        stop.clear()
        inside.set()
        try:
            with stop.around(interrupt):
                pass
        except Cancelled:
            continue
        finally:
            inside.clear()
    setting.join()
    assert late == []


def test_a_stop_set_by_a_signal_handler_does_not_wait_for_the_thread_it_interrupts():
    stop, calls = Stop(), []

    def interrupt():
        """Called with the lock held; the handler runs before the next line, on this thread."""
        calls.append(1)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: stop.set())
    try:
        with stop.around(interrupt):
            stop.set()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(calls) == 2
