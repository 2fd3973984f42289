"""Past questions in words: why a line never came, which lines none reached, or what other settings would do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from memory_tui.core.formatting import plural
from memory_tui.engine.past_questions import PastQuestions, Unreached
from memory_tui.explain import trace_json, wording
from memory_tui.explain.why_never import (
    Asker,
    NeverClaim,
    NoOneChange,
    OneChange,
    Reached,
    StoppedTimes,
    UnreachedLines,
    WhyNever,
)

_QUOTED = 3
"""Questions that are quoted; the others are counted."""
_BY: dict[Asker, str] = {"saved": "saved", "logged": "asked by agents", "own words": "made of its own words"}


def claim(value: NeverClaim) -> str:
    """Return what is said of a line over many questions, as a sentence."""
    match value:
        case Reached():
            return f"{plural(value.asked, 'question')} {_BY[value.asker]}: {value.recalled:,} recalled it."
        case StoppedTimes():
            quoted = ", ".join(f'"{text}"' for text in value.questions[:_QUOTED])
            more = len(value.questions) - _QUOTED
            return (
                f"{plural(len(value.questions), 'question')} stopped by {value.gate.removeprefix('excluded: ')}: "
                f"{quoted}{f' and {more} more' if more > 0 else ''}."
            )
        case OneChange():
            return (
                f"With {wording.turn(value.key, value.value)} it would be recalled for {len(value.questions):,} of "
                f"{plural(value.lost, 'question')} without it; {plural(value.moved, 'other hit')} would come or go."
            )
        case NoOneChange():
            return f"No single setting recalls it for any of {plural(value.lost, 'question')} without it."
        case _ as never:
            assert_never(never)


def never(report: WhyNever) -> Iterator[str]:
    """Everything that is said of one line."""
    yield report.path if report.line is None else f"{report.path}:{report.line}"
    yield from map(claim, report.claims)


def never_data(report: WhyNever) -> dict[str, Any]:
    """The same as JSON-ready data: the claims, and the verdict of each question."""
    return {
        "path": report.path,
        "line": report.line,
        "claims": [{**trace_json.tagged(each), "sentence": claim(each)} for each in report.claims],
        "questions": [
            {**trace_json.plain(question), "verdict": trace_json.verdict(answer.fate)}
            for question, answer in report.answers
        ],
    }


def left_out(questions: PastQuestions) -> Iterator[str]:
    """How many questions were not asked again, and why; nothing where all were."""
    if questions.left_out:
        count = plural(questions.left_out, "question")
        yield f"{count} not asked again: too old, or the log masks a secret or cut them."


def reach(report: Unreached) -> str:
    """Over what the lines were looked for, as a sentence."""
    if not report.questions and not report.reads:
        return (
            f"No question was logged in the last {plural(report.days, 'day')}, "
            "so nothing tells which lines agents got. "
            "memory-tui mcp --log-recalls writes down what they ask."
        )
    count = sum(each.last - each.first + 1 for each in report.lines)
    return (
        f"{plural(count, 'indexed line')} that nothing delivered in the last {plural(report.days, 'day')} "
        f"({plural(report.questions, 'question')}, {plural(report.reads, 'read')} of notes)."
    )


def lines_place(report: UnreachedLines) -> str:
    """Where the lines stand."""
    return f"{report.path}:{report.first}" + (f"-{report.last}" if report.last > report.first else "")


def unreached_data(report: Unreached) -> dict[str, Any]:
    """The same as JSON-ready data."""
    return {**trace_json.plain(report), "sentence": reach(report)}
