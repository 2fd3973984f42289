"""What QMD gives as lines of text or as JSON-ready data. That is answers, comparisons and its state."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line, safe
from memory_tui.explain.trace_json import tagged

if TYPE_CHECKING:
    from memory_tui.engine.compare_qmd import Measures, QmdComparison, QmdIndexComparison, SharedRow
    from memory_tui.qmd.client import QmdAnswer

NOT_COMPARABLE = "QMD's own score, not comparable"


def answer(value: QmdAnswer, *, explain: bool) -> dict[str, Any]:
    """What `search --json` prints of an answer of QMD."""
    found: dict[str, Any] = {
        "results": [hit.as_dict() for hit in value.hits],
        "backend": "qmd",
        "provider": "qmd",
        "model": "qmd",
        "mode": value.mode,
        "fallback": None,
        "empty": None if value.empty is None else {**tagged(value.empty), "sentence": value.empty.sentence},
        "notices": [{"code": "qmd", "message": one.sentence, "nextStep": "", **tagged(one)} for one in value.remarks],
    }
    return {**found, "trace": value.trace()} if explain else found


def lines(value: QmdAnswer, *, explain: bool) -> Iterator[str]:
    """The hits by QMD's rank, with its number where the answer is to be explained."""
    for place, hit in enumerate(value.hits):
        if place:
            yield ""
        yield f"#{hit.rank} {one_line(hit.citation)}"
        if explain:
            yield f"    {NOT_COMPARABLE}: {hit.score:g}; collection {one_line(hit.collection)}"
        yield safe(hit.snippet, keep_newlines=True).strip("\n")
    if not value.hits:
        yield f"No matches. {one_line(value.empty.sentence) if value.empty is not None else ''}".rstrip()
    if explain:
        yield ""
        yield f"QMD {value.mode}, run as {value.way}, {value.ms:.0f} ms, collections {', '.join(value.asked) or 'none'}"
        yield f"QMD's index as of {_time(value.updated)}; {plural(value.behind, 'file')} changed since"


def comparison(value: QmdComparison) -> Iterator[str]:
    """Both answers to one question, row by row."""
    yield f"{one_line(value.query)}"
    if value.failure:
        yield f"  QMD gave no answer: {one_line(value.failure)} {one_line(value.next_step)}".rstrip()
    yield f"  {'builtin':>7}  {'QMD':>4}"
    for row in value.rows:
        yield from _row(row)
    if not value.rows:
        yield "  Neither found anything."


def _row(row: SharedRow) -> Iterator[str]:
    ours = str(row.builtin.rank) if row.builtin else "-"
    theirs = str(row.qmd.rank) if row.qmd else "-"
    hit = row.hit
    yield f"  {ours:>7}  {theirs:>4}  {one_line(hit.path)}:{hit.start_line}-{hit.end_line}"
    if row.why_not_builtin:
        yield f"{'':17}not builtin: {one_line(row.why_not_builtin)}"
    if row.why_not_qmd:
        yield f"{'':17}not QMD: {one_line(row.why_not_qmd)}"


def comparison_data(value: QmdComparison) -> dict[str, Any]:
    """The same as JSON-ready data."""
    return {
        "query": value.query,
        "failure": {"reason": value.failure, "nextStep": value.next_step} if value.failure else None,
        "qmd": value.qmd.trace() if value.qmd is not None else None,
        "rows": [
            {
                "path": row.hit.path,
                "startLine": row.hit.start_line,
                "endLine": row.hit.end_line,
                "builtin": row.builtin.rank if row.builtin else None,
                "qmd": row.qmd.rank if row.qmd else None,
                "whyNotBuiltin": row.why_not_builtin or None,
                "whyNotQmd": row.why_not_qmd or None,
            }
            for row in value.rows
        ],
    }


def measures(builtin: Measures, qmd: Measures, labelled: int) -> Iterator[str]:
    """Both backends over all questions; means only where questions have labels."""
    yield f"{plural(builtin.questions, 'question')}, {labelled} with labels"
    head = f"{'':10}" + ("  hit@1  recall@6    MRR" if labelled else "") + "  empty answers"
    yield head
    for name, one in (("builtin", builtin), ("QMD", qmd)):
        means = f"  {one.hit_at_1:5.2f}  {one.recall_at_6:8.2f}  {one.mrr:5.2f}" if labelled else ""
        yield f"{name:10}{means}  {one.empty:13}"


def measures_data(value: Measures) -> dict[str, Any]:
    """The same as JSON-ready data."""
    return {
        "questions": value.questions,
        "hit@1": value.hit_at_1,
        "recall@6": value.recall_at_6,
        "mrr": value.mrr,
        "empty": value.empty,
    }


def their_index(value: QmdIndexComparison) -> Iterator[str]:
    """What an index of QMD holds of the files on disk."""
    counts = ", ".join(f"{count:,} {name}" for name, count in value.summary.items())
    held = f"{plural(value.documents, 'document')}, {plural(value.vectors, 'vector')}"
    yield f"{one_line(value.path)} (only read): {held}"
    yield f"Collections: {', '.join(map(one_line, value.collections)) or 'none'}"
    yield f"Files: {counts}"
    for file in value.files:
        yield f"  {file.difference}: {one_line(file.collection)}/{one_line(file.path)}  {one_line(file.detail)}"


def their_index_data(value: QmdIndexComparison) -> dict[str, Any]:
    """The same as JSON-ready data."""
    return {
        "path": value.path,
        "collections": list(value.collections),
        "documents": value.documents,
        "vectors": value.vectors,
        "summary": value.summary,
        "files": [to_builtins(file) for file in value.files],
    }


def status(value: dict[str, Any]) -> Iterator[str]:
    """The state of QMD, step by step."""
    program = value["program"]
    yield f"State:        {one_line(value['state'])}"
    if program["problem"]:
        yield f"Program:      {one_line(program['problem'])} {one_line(program['nextStep'])}".rstrip()
    else:
        yield f"Program:      {one_line(program['command'])} ({one_line(program['version'])})"
    yield f"Folder:       {one_line(value['folder'])}"
    yield f"Mode:         {value['searchMode']}"
    for one in value["collections"]:
        there = "not in QMD's index" if one["documents"] is None else plural(one["documents"], "document")
        yield f"Collection:   {one_line(one['name'])}  {one_line(one['path'])}  {one_line(one['pattern'])}  {there}"
    if value["problem"]:
        yield f"Index:        {one_line(value['problem'])} {one_line(value['nextStep'])}".rstrip()
    else:
        behind = plural(value["behind"], "file") + " changed since" if value["behind"] else "up to date"
        yield f"Index:        {plural(value['documents'], 'document')}, {plural(value['vectors'], 'vector')}, {behind}"
    yield f"Last update:  {_time(value['lastUpdateAt'] or 0.0)}"
    if value["upkeep"]["error"]:
        yield f"Last failure: {one_line(value['upkeep']['error'])} Again at {_time(value['upkeep']['again'])}."
    for one in value["models"]:
        yield f"Model:        {one['role']}: {one_line(one['problem'] or one['file'])}"


def _time(at: float) -> str:
    return f"{dt.datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}" if at else "never"
