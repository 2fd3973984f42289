"""What a why pane is about: a hit of the list, or a line that somebody asked about, with what is known so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tui.search.trace import Candidate, ChunkRef, Trace

if TYPE_CHECKING:
    from memory_tui.explain.flips import Flip, Flips
    from memory_tui.explain.rephrase import Rephrased
    from memory_tui.explain.whynot import WhyNot
    from memory_tui.search.evidence import Evidence

Grade = Callable[[ChunkRef], int | None]


def no_grade(chunk: ChunkRef) -> int | None:
    """Nothing is marked."""
    del chunk
    return None


@dataclass(frozen=True, slots=True)
class Subject:
    """A chunk under one answer. `candidate` is None for a line that no chunk holds; `answer` is there for a line.

    `changes` are the flips found so far, `working` tells that more are being looked for; `questions` are the words to
    add, None before they were looked for. `grade` says what labels make of a chunk.
    """

    evidence: Evidence
    trace: Trace
    candidate: Candidate | None
    answer: WhyNot | None = None
    changes: Flips | None = None
    questions: tuple[Rephrased, ...] | None = None
    working: str = ""
    grade: Grade = no_grade

    @property
    def key(self) -> str:
        """What the subject is about, so that a pane knows whether it is another one."""
        if self.answer is not None:
            return f"{self.answer.place.path}:{self.answer.place.line}"
        return self.candidate.chunk.id if self.candidate is not None else ""

    @property
    def flips(self) -> tuple[Flip, ...]:
        """The changes that turn the verdict, nearest first."""
        return self.changes.found if self.changes is not None else ()
