"""A check finds one state. It gives the evidence for it and one fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

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
