"""Past questions in words: why a line never came, which lines none reached, or what other settings would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def claim(said: NeverClaim) -> str:
    """What is said of a line over many questions, as a sentence."""
    match said:
        case Reached():
            return f"{plural(said.asked, 'question')} {_BY[said.asker]}: {said.recalled:,} recalled it."
        case StoppedTimes():
            return f"{_stopped(said.gate)} {_times(len(said.questions))}: {_quoted(said.questions)}."
        case OneChange():
            others = f"{plural(said.moved, 'other hit')} would come or go" if said.moved else "no other hit moves"
            return (
                f"With {wording.turn(said.key, said.value)} it would be recalled for {len(said.questions):,} of the "
                f"{plural(said.lost, 'question')} that {'loses' if said.lost == 1 else 'lose'} it; {others}."
            )
        case NoOneChange():
            return (
                f"No single setting that was tried recalls it for any of the {plural(said.lost, 'question')} that "
                f"{'loses' if said.lost == 1 else 'lose'} it."
            )
        case _ as never:
            assert_never(never)


def _stopped(gate: str) -> str:
    """What kept the line out at one gate, as the beginning of a sentence."""
    rule = gate.removeprefix("excluded: ")
    return _STOPPED.get(gate, f"Its note was left out ({rule})")


_STOPPED = {
    "minScore": "Its score was below minScore",
    "decay": "Decay lowered its score too far",
    "mmr": "MMR chose others before it",
    "limit": "It ranked behind the limit of results",
    "not a candidate": "It was not among the candidates",
    "no match": "Words did not find it",
    "no vector": "Meaning could not find it, and words did not",
    "other model": "Its vector is of another model, and words did not find it",
    "project marker": "Its project marker kept it out",
    "outside the roots": "Its note lies outside the folders of the notes",
    "no such file": "There was no such note",
    "not indexed yet": "It was not indexed yet",
    "in no chunk": "No chunk held it",
}
"""What each gate did to a line; the rules by which a note is left out name themselves."""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _quoted(questions: Sequence[str]) -> str:
    shown = ", ".join(f'"{text}"' for text in questions[:_QUOTED])
    return f"{shown} and {len(questions) - _QUOTED} more" if len(questions) > _QUOTED else shown


def never(found: WhyNever) -> Iterator[str]:
    """Everything that is said of one line."""
    yield found.path if found.line is None else f"{found.path}:{found.line}"
    yield from map(claim, found.claims)


def never_data(found: WhyNever) -> dict[str, Any]:
    """The same as JSON-ready data: the claims, and the verdict of each question."""
    return {
        "path": found.path,
        "line": found.line,
        "claims": [{**trace_json.tagged(one), "sentence": claim(one)} for one in found.claims],
        "questions": [
            {**trace_json.plain(question), "verdict": trace_json.verdict(answer.fate)}
            for question, answer in found.answers
        ],
    }


def left_out(asked: PastQuestions) -> Iterator[str]:
    """How many questions were not asked again, and why; nothing where all were."""
    if asked.left_out:
        yield (
            f"{plural(asked.left_out, 'question')} not asked again: the log keeps them without a secret or not whole, "
            "or there were newer ones."
        )


def reach(found: Unreached) -> str:
    """Over what the lines were looked for, as a sentence."""
    if not found.questions and not found.reads:
        return (
            f"No question was logged in the last {plural(found.days, 'day')}, so nothing tells which lines agents got. "
            "memory-tui mcp --log-recalls, or recall.log in our own configuration, writes down what they ask."
        )
    count = sum(one.last - one.first + 1 for one in found.lines)
    return (
        f"{plural(count, 'indexed line')} that nothing delivered in the last {plural(found.days, 'day')} "
        f"({plural(found.questions, 'question')}, {plural(found.reads, 'read')} of notes)."
    )


def lines_place(found: UnreachedLines) -> str:
    """Where the lines stand."""
    return f"{found.path}:{found.first}" + (f"-{found.last}" if found.last > found.first else "")


def unreached_data(found: Unreached) -> dict[str, Any]:
    """The same as JSON-ready data."""
    return {**trace_json.plain(found), "sentence": reach(found)}
