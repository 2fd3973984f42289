"""Run checks side by side, each with a deadline. A check finds one state, its evidence, and one fix."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError

DEADLINE = 20.0
"""Seconds after which a check that is still running has no answer."""
_AT_ONCE = 6

State = Literal["ok", "warning", "failed", "skipped", "no answer"]
Group = Literal["machine", "notes", "index", "provider", "settings"]


class CheckOutcome(Struct, frozen=True):
    """The outcome of one check: `evidence` is what was seen, `fix` the one thing to do, empty where nothing is."""

    state: State
    evidence: str
    fix: str = ""


class Check(Struct, frozen=True):
    """One question that is put to the machine or the memory; `key` names it for programs, `title` for people."""

    key: str
    group: Group
    title: str
    run: Callable[[Engine], CheckOutcome]


class Result(Struct, frozen=True):
    """A check, what it found, and how long it took in milliseconds."""

    check: Check
    finding: CheckOutcome
    milliseconds: float

    def as_dict(self) -> dict[str, object]:
        """Return the result as JSON-ready fields."""
        return {
            "check": self.check.key,
            "group": self.check.group,
            "title": self.check.title,
            "state": self.finding.state,
            "evidence": self.finding.evidence,
            "fix": self.finding.fix,
            "milliseconds": round(self.milliseconds, 1),
        }


def ok(evidence: str) -> CheckOutcome:
    """Make the outcome of a check that found nothing wrong."""
    return CheckOutcome("ok", evidence)


def warning(evidence: str, fix: str) -> CheckOutcome:
    """Make the outcome of what works, and somebody should know of."""
    return CheckOutcome("warning", evidence, fix)


def failed(evidence: str, fix: str) -> CheckOutcome:
    """Make the outcome of what does not work."""
    return CheckOutcome("failed", evidence, fix)


def skipped(evidence: str) -> CheckOutcome:
    """Make the outcome of a question that does not arise."""
    return CheckOutcome("skipped", evidence)


def examine(engine: Engine, checks: Sequence[Check], deadline: float = DEADLINE) -> Iterator[Result]:
    """Yield the result of every check as it comes; one that takes too long comes last, as `no answer`.

    The checks run on threads of their own, which are left behind when they hang: closing the engine ends them.
    """
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
