"""The notebook's file: JSON Lines in the user's hands, one question a line.

{"query", "relevant": [{"path", "line", "grade"}]}; grade 0 is a wrong hit, 1 helps, 2 answers. Files of other origin
are read too: "question" for the query, "evidence" or "labels" for the lines, or one label a line.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_tui.config.places import own_path
from memory_tui.core import atomic
from memory_tui.errors import IndexBusy, IndexUnavailable, LabelError, MemoryTuiError
from memory_tui.index import lock
from memory_tui.tune.labels import HELPS, WRONG, Label, Notebook, Query, settle
from memory_tui.workspace.document import Document

_LINES = ("relevant", "labels", "evidence")
_QUERY = ("query", "question")


def place(workspace: Path, config: Path | None = None) -> Path:
    """Where the notebook of `workspace` lies: beside memory-tui's own configuration, one file a workspace.

    `config` is such a file that was named for this run; a notebook that lies in the usual place already stays there.
    """
    real = os.path.realpath(workspace)
    key = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    name = f"{Path(real).name[:40] or 'root'}-{key}.jsonl"
    usual = own_path().parent / "labels" / name
    return usual if config is None or usual.exists() else config.parent / "labels" / name


def load(path: Path) -> Notebook:
    """The notebook at `path`, an empty one when there is no file. Raises LabelError with the number of a bad line."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Notebook()
    except (OSError, UnicodeError) as error:
        raise LabelError(f"The labels in {path} cannot be read: {error}.", "Check the file.") from error
    return parse(text, str(path))


def parse(text: str, name: str = "the labels") -> Notebook:
    """The notebook in `text`; labels of one question may stand on several lines. Raises LabelError."""
    notebook = Notebook()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            query = _query(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            raise LabelError(
                f"{name}, line {number}, is no labelled question: {error}.",
                'Write {"query": "...", "relevant": [{"path": "...", "line": 1, "grade": 2}]}.',
            ) from error
        known = notebook.find(query.text)
        if known is not None:
            for label in query.labels:
                known = known.mark(label)
        notebook = notebook.put(known or query)
    return notebook


def dump(notebook: Notebook) -> str:
    """The notebook as JSON Lines."""
    return "".join(json.dumps(_fields(query), ensure_ascii=False) + "\n" for query in notebook.queries)


def save(path: Path, notebook: Notebook) -> None:
    """Write the notebook in one step, so that nobody ever reads half of it. Raises LabelError."""
    try:
        atomic.make_folder(path.parent, 0o777)
        # In the place that a link leads to, because the file is the user's own.
        atomic.replace_file(Path(os.path.realpath(path)), dump(notebook).encode("utf-8", "replace"), None)
    except OSError as error:
        raise LabelError(
            f"The labels cannot be written to {path}: {error.strerror or error}.",
            "Check the folder and its permissions.",
        ) from error


_EDITING = threading.Lock()


def edit(path: Path, read: Callable[[str], Document], changes: Iterable[Callable[[Notebook], Notebook]]) -> Notebook:
    """Apply `changes` to the notebook as it is on disk now, and write it; returns it with every label settled.

    One edit at a time, in every process. Without a change nothing is written. Raises LabelError.
    """
    with _EDITING, _alone(path):
        before = load(path)
        found = settled(before, read)
        for change in changes:
            found = change(found)
        if found != before:
            save(path, found)
        return found


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from editing the notebook meanwhile. Raises LabelError."""
    try:
        atomic.make_folder(path.parent, 0o777)
        held = lock.wait_for(path, threading.Event())
    except IndexBusy as error:
        raise LabelError(f"Another memory-tui is writing the labels in {path}.", "Try again in a moment.") from error
    except (OSError, IndexUnavailable) as error:
        reason = error.message if isinstance(error, IndexUnavailable) else f"{error.strerror or error}."
        raise LabelError(
            f"The labels cannot be written to {path}: {reason}", "Check the folder and its permissions."
        ) from error
    with held:
        yield


def settled(notebook: Notebook, read: Callable[[str], Document]) -> Notebook:
    """`notebook` with every label where its answer stands in the notes now; `read` is the engine's."""
    known: dict[str, list[str]] = {}

    def lines(path: str) -> list[str]:
        if path not in known:
            try:
                known[path] = read(path).text.split("\n")
            except MemoryTuiError as error:
                raise LookupError(path) from error
        return known[path]

    return Notebook(tuple(settle(query, lines) for query in notebook.queries))


def _query(fields: Mapping[str, Any]) -> Query:
    text = next((fields[name] for name in _QUERY if name in fields), None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError("it has no query")
    rows: Iterable[Mapping[str, Any]] = next(
        (fields[name] for name in _LINES if name in fields), [fields] if "path" in fields else []
    )
    known = {*_QUERY, *_LINES, "id", "unanswerable", "path", "line", "grade", "answer"}
    query = Query(
        text.strip(),
        (),
        str(fields.get("id", "")),
        bool(fields.get("unanswerable", False)),
        {key: value for key, value in fields.items() if key not in known},
    )
    for row in rows:
        grade = int(row.get("grade", HELPS))
        if grade < WRONG or int(row["line"]) < 1:
            raise ValueError("lines count from 1 and grades from 0")
        query = query.mark(Label(str(row["path"]), int(row["line"]), grade, str(row.get("answer", ""))))
    return query


def _fields(query: Query) -> dict[str, Any]:
    labels = [
        {
            "path": label.path,
            "line": label.line,
            "grade": label.grade,
            **({"answer": label.answer} if label.answer else {}),
        }
        for label in query.labels
    ]
    return {
        **({"id": query.id} if query.id else {}),
        "query": query.text,
        "relevant": labels,
        **({"unanswerable": True} if query.unanswerable else {}),
        **query.more,
    }
