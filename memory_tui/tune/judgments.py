"""Judgments say which lines answer a saved query. One file keeps them all.

{"query", "relevant": [{"path", "line", "grade"}]}; grade 0 is a wrong hit, 1 helps, 2 answers. Files of other origin
are read too: "question" for the query, "evidence" or "labels" for the lines, or one label a line.

A document is a line of a note, `memory/a.md#L12`, blanks in its path written as %20.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, reduce
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memory_tui import durable, locks
from memory_tui.config.places import own_path, private_name
from memory_tui.errors import IndexBusy, IndexUnavailable, LabelError, MemoryTuiError
from memory_tui.search.trace import ChunkRef
from memory_tui.workspace.notes import Document

WRONG, HELPS, ANSWERS = 0, 1, 2
"""Grades of a label."""


class Label(Struct, frozen=True):
    """A judgement of one line: `grade` 0 wrong, 1 helps, 2 answers.

    `answer` is a part of the line, by which it is found again after it moved; empty where it is not known.
    """

    path: str
    line: int
    grade: int = HELPS
    answer: str = ""


class Query(Struct, frozen=True):
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
        """Return the lines that answer or help."""
        return tuple(label for label in self.labels if label.grade > WRONG)

    @property
    def judged(self) -> bool:
        """Return whether it can be measured: it has a right line, or is known to have none."""
        return bool(self.relevant) or self.unanswerable

    def grade(self, chunk: ChunkRef) -> int | None:
        """Return the best grade of a line in `chunk`, None when none is labelled."""
        lines = range(chunk.start_line, chunk.end_line + 1)
        grades = (label.grade for label in self.labels if label.path == chunk.path and label.line in lines)
        return max(grades, default=None)

    def mark(self, label: Label) -> Query:
        """Return a copy with this judgement, which replaces another of the same line."""
        labels = (*self.unmark(label.path, label.line).labels, label)
        return replace(self, labels=labels, unanswerable=self.unanswerable and label.grade == WRONG)

    def unmark(self, path: str, line: int) -> Query:
        """Return a copy without a judgement of that line."""
        return replace(self, labels=tuple(old for old in self.labels if (old.path, old.line) != (path, line)))


class Notebook(Struct, frozen=True):
    """All questions that are kept, in the order of the file."""

    queries: tuple[Query, ...] = ()

    def find(self, text: str) -> Query | None:
        """Return the question `text`, whatever blanks surround it."""
        return next((query for query in self.queries if query.text == text.strip()), None)

    def put(self, query: Query) -> Notebook:
        """Return a copy in which `query` stands in the place of the one with the same text, or at the end."""
        if self.find(query.text) is None:
            return Notebook((*self.queries, query))
        return Notebook(tuple(query if old.text == query.text else old for old in self.queries))

    def without(self, text: str) -> Notebook:
        """Return a copy that does not keep question `text`."""
        return Notebook(tuple(query for query in self.queries if query.text != text.strip()))

    @property
    def judged(self) -> tuple[Query, ...]:
        """Return the questions that can be measured."""
        return tuple(query for query in self.queries if query.judged)


def notebook_path(workspace: Path, config: Path | None = None) -> Path:
    """Return where the notebook of `workspace` lies: beside memory-tui's own configuration, one file a workspace.

    `config` is such a file that was named for this run; a notebook that lies in the usual place already stays there.
    """
    name = f"{private_name(workspace)}.jsonl"
    usual = own_path().parent / "labels" / name
    return usual if config is None or usual.exists() else config.parent / "labels" / name


def load(path: Path) -> Notebook:
    """Return the notebook at `path`, empty without a file. Raises LabelError with the number of a bad line."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Notebook()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8"
        raise LabelError(f"The labels in {path} cannot be read: {reason}.", "Check the file.") from error
    return parse(text, str(path))


def parse(text: str, name: str = "the labels") -> Notebook:
    """Return the notebook in `text`; labels of one question may stand on several lines. Raises LabelError."""
    notebook = Notebook()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            query = _query(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LabelError(
                f"{name}, line {number}, is no labelled query.",
                'Write {"query": "...", "relevant": [{"path": "MEMORY.md", "line": 1, "grade": 2}]}. '
                "Lines count from 1; grade 0 is wrong, 1 helps, 2 answers.",
            ) from error
        notebook = notebook.put(reduce(Query.mark, query.labels, notebook.find(query.text) or query))
    return notebook


def _query(fields: dict[str, Any]) -> Query:
    """Read one query with its labels, in any of the documented spellings. Raises ValueError, KeyError, TypeError."""
    text = next((fields.pop(name) for name in ("query", "question") if name in fields), None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(text)
    rows = next((fields.pop(name) for name in ("relevant", "labels", "evidence") if name in fields), None)
    # A file with one label a line has its members beside the question.
    alone = {name: fields.pop(name) for name in ("path", "line", "grade", "answer") if name in fields}
    if rows is None:
        rows = [alone] if "path" in alone else []
    labels = [
        Label(str(row["path"]), int(row["line"]), int(row.get("grade", HELPS)), str(row.get("answer", "")))
        for row in rows
    ]
    if any(label.grade < WRONG or label.line < 1 for label in labels):
        raise ValueError(labels)
    # What is left in `fields` now is kept as it is.
    name, unanswerable = str(fields.pop("id", "")), bool(fields.pop("unanswerable", False))
    return reduce(Query.mark, labels, Query(text.strip(), id=name, unanswerable=unanswerable, more=fields))


def _fields(query: Query) -> dict[str, Any]:
    """Return a query as a row of the file; what is empty is left out."""
    rows = map(asdict, query.labels)
    labels = [{name: value for name, value in row.items() if name != "answer" or value} for row in rows]
    unanswerable = {"unanswerable": True} if query.unanswerable else {}
    identity = {"id": query.id} if query.id else {}
    return {**identity, "query": query.text, "relevant": labels, **unanswerable, **query.more}


def save(path: Path, notebook: Notebook) -> None:
    """Write the notebook in one step, so that nobody ever reads half of it. Raises LabelError."""
    text = "".join(json.dumps(_fields(query), ensure_ascii=False) + "\n" for query in notebook.queries)
    with _writing(path):
        # In the place that a link leads to, because the file is the user's own.
        durable.replace_file(Path(os.path.realpath(path)), text.encode("utf-8", "replace"), None)


_EDITING = threading.Lock()


def edit(path: Path, read: Callable[[str], Document], changes: Iterable[Callable[[Notebook], Notebook]]) -> Notebook:
    """Apply `changes` to the notebook as it is on disk now, and write it; returns it with every label settled.

    One edit at a time, in every process. Without a change nothing is written. Raises LabelError.
    """
    with _EDITING, _writing(path), locks.wait_for(path):
        before = load(path)
        edited = reduce(lambda notebook, change: change(notebook), changes, settled(before, read))
        if edited != before:
            save(path, edited)
        return edited


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make the folder of the notebook, and say what keeps it from being written. Raises LabelError."""
    try:
        durable.make_folder(path.parent, 0o777)
        yield
    except IndexBusy as error:
        raise LabelError(f"Another memory-tui is writing the labels in {path}.", "Try again in a moment.") from error
    except (OSError, IndexUnavailable) as error:
        reason = error.message if isinstance(error, IndexUnavailable) else f"{error.strerror or error}."
        step = "Check the folder and its permissions."
        raise LabelError(f"The labels cannot be written to {path}: {reason}", step) from error


def settled(notebook: Notebook, read: Callable[[str], Document]) -> Notebook:
    """Return `notebook` with every label where its answer stands in the notes now; `read` is the engine's.

    A label of a note that is gone stays as it is, and counts as not found.
    """

    @cache
    def lines(path: str) -> list[str]:
        try:
            return read(path).text.split("\n")
        except MemoryTuiError:
            return []

    def moved(label: Label) -> Label:
        if not label.answer:
            return label
        numbers = [number for number, line in enumerate(lines(label.path), 1) if label.answer in line]
        return replace(label, line=min(numbers, key=lambda number: abs(number - label.line), default=label.line))

    return Notebook(tuple(replace(query, labels=tuple(map(moved, query.labels))) for query in notebook.queries))


_BLANK = re.compile(r"\{[\w+-]+\}")


def absent(notebook: Notebook, read: Callable[[str], Document]) -> tuple[str, ...]:
    """Return the notes that labels name and that cannot be read, and the lines behind an end; `read` is the engine's.

    Raises LabelError for one with a blank to fill in, such as `memory/{date}.md`: nobody wrote that label for a note.
    """
    missing: list[str] = []
    places = sorted({(label.path, label.line) for query in notebook.queries for label in query.labels})
    for path, labels in groupby(places, lambda place: place[0]):
        try:
            text = read(path).text.removesuffix("\n")
            missing += [f"{path}:{line}" for _, line in labels if line > text.count("\n") + 1]
        except MemoryTuiError as error:
            if blank := _BLANK.search(path):
                step = f"Write the name of the note in the place of {blank[0]}."
                raise LabelError(f"The labels are a template: there is no note {path}.", step) from error
            missing.append(path)
    return tuple(missing)
