"""The command that examines everything: one line a check, what was seen, and what to do."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memory_tui.cli.common import Declare, Run, at_least, opened

if TYPE_CHECKING:
    from memory_tui.doctor import Result

_MARKS = {"ok": "ok  ", "warning": "warn", "failed": "FAIL", "skipped": "-   ", "no answer": "????"}


def add(command: Declare) -> None:
    """Declare the command."""
    asked = command("doctor", "examine machine, notes, index, provider and settings; exit code 1 when something failed")
    asked.add_argument(
        "--deadline",
        type=at_least(0.1),
        default=20.0,
        metavar="S",
        help="seconds after which a check is given up (default: 20)",
    )
    asked.add_argument("--all", action="store_true", help="also show what is well")


def _doctor(given: argparse.Namespace) -> int:
    from memory_tui import doctor, report

    with opened(given) as engine:
        engine.catch_up()
        results = sorted(
            doctor.examine(engine, deadline=given.deadline),
            key=lambda result: [check.key for check in doctor.CHECKS].index(result.check.key),
        )
    code = doctor.verdict(results)
    if hasattr(given, "json"):
        report.data({"ok": not code, "counts": _counts(results), "checks": [result.as_dict() for result in results]})
        return code
    shown = (
        results
        if hasattr(given, "all")
        else [result for result in results if result.finding.state not in ("ok", "skipped")]
    )
    for result in shown:
        report.text(_lines(result))
    counts = ", ".join(f"{number} {state}" for state, number in _counts(results).items() if number)
    report.text(
        [f"{len(results)} checks: {counts}."]
        + ([] if hasattr(given, "all") else ["memory-tui doctor --all shows every one of them."])
    )
    return code


def _lines(result: Result) -> list[str]:
    finding = result.finding
    lines = [f"{_MARKS[finding.state]} {result.check.title}", f"     {finding.evidence}"]
    return [*lines, f"     Fix: {finding.fix}"] if finding.fix else lines


def _counts(results: list[Result]) -> dict[str, int]:
    return {state: sum(result.finding.state == state for result in results) for state in _MARKS}


RUN: dict[str, Run] = {"doctor": _doctor}
