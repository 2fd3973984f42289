"""The notebook: questions that somebody keeps, and the lines that answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memory_tui.search.trace import ChunkRef

WRONG, HELPS, ANSWERS = 0, 1, 2
"""Grades of a label."""


@dataclass(frozen=True, slots=True)
class Label:
    """A judgement of one line: `grade` 0 wrong, 1 helps, 2 answers; by `answer`, a part of it, it is found again."""

    path: str
    line: int
    grade: int = HELPS
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A question that is kept, with its labels; `unanswerable` when the notes do not know, so that any hit is noise.

    `more` holds what else the file says of it.
    """

    text: str
    labels: tuple[Label, ...] = ()
    id: str = ""
    unanswerable: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def relevant(self) -> tuple[Label, ...]:
        """The lines that answer or help."""
        return tuple(label for label in self.labels if label.grade > WRONG)

    @property
    def judged(self) -> bool:
        """Whether it can be measured: it has a right line, or is known to have none."""
        return bool(self.relevant) or self.unanswerable

    def grade(self, chunk: ChunkRef) -> int | None:
        """The best grade of a line in `chunk`, None when none is labelled."""
        return max(
            (
                label.grade
                for label in self.labels
                if label.path == chunk.path and chunk.start_line <= label.line <= chunk.end_line
            ),
            default=None,
        )

    def mark(self, label: Label) -> Query:
        """A copy with this judgement, which replaces another of the same line."""
        others = tuple(old for old in self.labels if (old.path, old.line) != (label.path, label.line))
        return replace(self, labels=(*others, label), unanswerable=self.unanswerable and label.grade == WRONG)

    def unmark(self, path: str, line: int) -> Query:
        """A copy without a judgement of that line."""
        return replace(self, labels=tuple(old for old in self.labels if (old.path, old.line) != (path, line)))


@dataclass(frozen=True, slots=True)
class Notebook:
    """All questions that are kept, in the order of the file."""

    queries: tuple[Query, ...] = ()

    def find(self, text: str) -> Query | None:
        """The question `text`, whatever blanks surround it."""
        return next((query for query in self.queries if query.text == text.strip()), None)

    def put(self, query: Query) -> Notebook:
        """A copy in which `query` stands in the place of the one with the same text, or at the end."""
        if self.find(query.text) is None:
            return Notebook((*self.queries, query))
        return Notebook(tuple(query if old.text == query.text else old for old in self.queries))

    def mark(self, text: str, label: Label) -> Notebook:
        """A copy in which question `text` has this label; it is kept from now on."""
        return self.put((self.find(text) or Query(text.strip())).mark(label))

    def without(self, text: str) -> Notebook:
        """A copy that does not keep question `text`."""
        return Notebook(tuple(query for query in self.queries if query.text != text.strip()))

    @property
    def judged(self) -> tuple[Query, ...]:
        """The questions that can be measured."""
        return tuple(query for query in self.queries if query.judged)


def settle(query: Query, lines: Callable[[str], list[str]]) -> Query:
    """`query` with each label moved to where its answer stands now, when its line no longer holds it.

    `lines` gives the lines of a note as it is indexed; it may raise LookupError for one that is gone.
    """
    return replace(query, labels=tuple(_settled(label, lines) for label in query.labels))


def _settled(label: Label, lines: Callable[[str], list[str]]) -> Label:
    if not label.answer:
        return label
    try:
        text = lines(label.path)
    except LookupError:
        # A label of a note that is gone stays as it is, and counts as not found.
        return label
    if label.line <= len(text) and label.answer in text[label.line - 1]:
        return label
    places = [number for number, line in enumerate(text, 1) if label.answer in line]
    return replace(label, line=min(places, key=lambda at: abs(at - label.line))) if places else label
