"""Exchange with retrieval tools: TREC qrels (`id 0 document grade`), with the questions as `id<TAB>text` beside them.

A document is a line of a note, `memory/a.md#L12`, blanks in its path written as %20.
"""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote, unquote

from memory_tui.errors import LabelError
from memory_tui.tune.labels import Label, Notebook, Query

_DOCUMENT = re.compile(r"(?P<path>.+)#L(?P<line>[1-9]\d*)\Z")


def export(notebook: Notebook) -> tuple[str, str]:
    """The qrels and the topics of `notebook`; a question without an id is called by its number."""
    qrels, topics = [], []
    for number, query in enumerate(notebook.queries, 1):
        name = _word(query.id) or f"q{number}"
        topics.append(f"{name}\t{' '.join(query.text.split())}\n")
        qrels += [f"{name} 0 {_word(label.path)}#L{label.line} {label.grade}\n" for label in query.labels]
    return "".join(qrels), "".join(topics)


def _word(text: str) -> str:
    """`text` without blanks and controls, which are written as %20 and so on."""
    return re.sub(r"[\s%\x00-\x1f]", lambda found: quote(found.group(), safe=""), text)


def read(qrels: str, topics: str) -> Notebook:
    """The notebook of `qrels` and `topics`. Raises LabelError with the number of a line that cannot be understood."""
    queries: dict[str, Query] = {}
    for number, line in enumerate(topics.split("\n"), 1):
        name, tab, text = line.strip("\r").partition("\t")
        if line.strip() and (not tab or not text.strip()):
            raise LabelError(f"Line {number} of the topics is not `id<TAB>question`.", "Write one question a line.")
        if line.strip():
            queries[name] = Query(text.strip(), id=unquote(name))
    for number, line in enumerate(qrels.split("\n"), 1):
        if line.strip():
            name, label = _label(line, number)
            if name not in queries:
                raise LabelError(
                    f"Line {number} of the qrels is of question {name}, which is not among the topics.",
                    "Add it to the topics as `id<TAB>question`.",
                )
            queries[name] = queries[name].mark(label)
    notebook = Notebook()
    for query in queries.values():
        known = notebook.find(query.text)
        notebook = notebook.put(query if known is None else replace(known, labels=(*known.labels, *query.labels)))
    return notebook


def _label(line: str, number: int) -> tuple[str, Label]:
    fields = line.split()
    found = _DOCUMENT.match(fields[2]) if len(fields) == 4 else None
    try:
        grade = int(fields[3]) if found else -1
    except ValueError:
        grade = -1
    if found is None or grade < 0:
        raise LabelError(
            f"Line {number} of the qrels is not `id 0 path#Lline grade`: {line.strip()!r}.",
            "For instance: q1 0 memory/2026-01-12.md#L12 2",
        )
    return fields[0], Label(unquote(found["path"]), int(found["line"]), grade)
