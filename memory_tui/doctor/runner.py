"""The doctor runs all checks side by side, each with a deadline."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memory_tui.doctor import checks_machine, checks_memory, checks_openclaw
from memory_tui.doctor.check import Check, CheckOutcome, Result, failed, skipped
from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

__all__ = ["CHECKS", "checks_of", "examine", "verdict"]

CHECKS: tuple[Check, ...] = (
    *checks_machine.CHECKS,
    *checks_memory.NOTE_CHECKS,
    *checks_memory.INDEX_CHECKS,
    *checks_memory.SETTING_CHECKS,
    *checks_openclaw.CHECKS,
)
DEADLINE = 20.0
"""Seconds after which a check that is still running has no answer."""
_AT_ONCE = 6


def checks_of(engine: Engine) -> tuple[Check, ...]:
    """The checks that say something about `engine`: those of QMD and of the memories only where they were chosen."""
    checks = CHECKS
    if engine.backend.is_qmd:
        from memory_tui.doctor.checks_backends import QMD_CHECKS

        checks += QMD_CHECKS
    if engine.plan.recalls_entries:
        from memory_tui.doctor.checks_backends import LTM_CHECKS

        checks += LTM_CHECKS
    return checks


def examine(engine: Engine, checks: Sequence[Check] | None = None, deadline: float = DEADLINE) -> Iterator[Result]:
    """Yield the result of every check as it comes; one that takes too long comes last, as `no answer`.

    The checks run on threads of their own, which are left behind when they hang: closing the engine ends them.
    """
    checks = checks_of(engine) if checks is None else checks
    waiting: queue.SimpleQueue[Check] = queue.SimpleQueue()
    done: queue.SimpleQueue[Result] = queue.SimpleQueue()
    for check in checks:
        waiting.put(check)

    def work() -> None:
        while True:
            try:
                check = waiting.get_nowait()
            except queue.Empty:
                return
            done.put(_run_check(engine, check))

    for _ in range(min(_AT_ONCE, len(checks))):
        threading.Thread(target=work, name="doctor", daemon=True).start()
    left = {check.key: check for check in checks}
    end = time.monotonic() + deadline
    while left and (room := end - time.monotonic()) > 0:
        try:
            result = done.get(timeout=room)
        except queue.Empty:
            break
        del left[result.check.key]
        yield result
    for check in left.values():
        yield Result(
            check,
            CheckOutcome(
                "no answer",
                f"Still running after {deadline:g} s.",
                "Run it again. If it is still slow, the provider or the disk hangs.",
            ),
            deadline * 1000,
        )


def verdict(results: Sequence[Result]) -> int:
    """Return the exit code: 1 when something failed or gave no answer, else 0; warnings are no failure."""
    return int(any(result.finding.state in ("failed", "no answer") for result in results))


def _run_check(engine: Engine, check: Check) -> Result:
    began = time.perf_counter()
    try:
        finding = check.run(engine)
    except (IndexUnavailable, Cancelled) as error:
        finding = skipped(error.message)
    except MemoryTuiError as error:
        finding = failed(error.message, error.next_step)
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, not the end of the others
        finding = failed(f"The check itself broke: {type(error).__name__}: {error}", "Please report it.")
    return Result(check, finding, (time.perf_counter() - began) * 1000)
