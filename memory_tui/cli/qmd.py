"""Commands for QMD. They update it, show its state, and compare its answers with those of the built-in index."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_tui.cli.context import confirmed, opened
from memory_tui.cli.output import print_json, print_lines, waiting
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import LabelError, QueryError

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine


def qmd(args: argparse.Namespace) -> int:
    """Carry out an action of QMD."""

    with opened(args) as engine:
        if args.action in ("update", "embed") and not _agreed(args, engine):
            return 1
        found = _RUN[args.action](engine)
        if args.json:
            print_json(found)
        else:
            print_lines(_told(args.action, found))
    return 1 if found.get("failed") else 0


def _agreed(args: argparse.Namespace, engine: Engine) -> bool:
    """Whether the program may be started: a person is shown the command line, and who names it."""

    client = engine.backend.client
    found = client.found()
    if client.approved(found):
        return True
    question = f"{client.options.named_by} asks to run this program: {found.line}. Run it?"
    if confirmed(question, args):
        client.approve("qmd --yes" if args.yes else "qmd")
        return True
    print_lines([question, "To agree: memory-tui qmd approve."])
    return False


def _update(engine: Engine) -> dict[str, Any]:
    from memory_tui.qmd.upkeep import Upkeep, sentence

    report = Upkeep(engine.backend.client).update(Stop())
    engine.backend.recovered()
    return {**to_builtins(report), "sentence": sentence(report)}


def _embed(engine: Engine) -> dict[str, Any]:
    from memory_tui.qmd.upkeep import Upkeep, sentence

    report = Upkeep(engine.backend.client).embed(Stop())
    engine.backend.recovered()
    return {**to_builtins(report), "sentence": sentence(report)}


def _reset(engine: Engine) -> dict[str, Any]:
    from memory_tui.qmd.upkeep import Upkeep

    return {"deleted": Upkeep(engine.backend.client).reset()}


def _approve(engine: Engine) -> dict[str, Any]:
    client = engine.backend.client
    found = client.approve("qmd approve")
    engine.backend.recovered()
    return {"approved": found.line, "namedBy": client.options.named_by}


def _revoke(engine: Engine) -> dict[str, Any]:
    from memory_tui.qmd.client import APPROVED_AS

    return {"revoked": [made.host for made in engine.providers.approvals.revoke(APPROVED_AS)]}


def _probe(engine: Engine) -> dict[str, Any]:
    failed = engine.backend.probe()
    return {"answers": failed is None, "fallback": failed.as_dict() if failed else None, "failed": failed is not None}


def _status(engine: Engine) -> dict[str, Any]:
    from memory_tui.qmd import index, models
    from memory_tui.qmd.folder import QmdFailure

    client = engine.backend.client
    program: dict[str, Any] = {"command": "", "version": "", "namedBy": client.options.named_by, "approved": False}
    program |= {"problem": "", "nextStep": ""}
    try:
        found = client.found()
        program |= {"command": found.line, "approved": client.approved(found)}
        program["version"] = client.startable().version
    except QmdFailure as failure:
        program |= {"problem": failure.message, "nextStep": failure.next_step}
    kept = client.place.upkeep()
    known, problem, step = None, "", ""
    try:
        known = index.read(client.place.index)
    except QmdFailure as failure:
        problem, step = failure.message, failure.next_step
    seen = index.coverage(known, client.wanted, kept.updated) if known is not None else None
    return {
        "state": engine.backend.state().sentence if engine.backend.is_qmd else "builtin",
        "program": program,
        "folder": str(client.place.folder),
        "searchMode": client.options.mode,
        "collections": [_collection(one, known) for one in client.wanted],
        "problem": problem,
        "nextStep": step,
        "documents": known.documents if known is not None else 0,
        "vectors": index.embedded(client.place.index) if known is not None else 0,
        "behind": seen.behind if seen is not None else 0,
        "missing": list(seen.missing) if seen is not None else [],
        "ghosts": list(seen.ghosts) if seen is not None else [],
        "changed": list(seen.changed) if seen is not None else [],
        "lastUpdateAt": kept.updated or None,
        "upkeep": to_builtins(kept),
        "models": [
            {"role": one.role, "named": one.named, "file": str(one.file or ""), "problem": one.problem}
            for one in models.models(client.place).values()
        ],
        "fallback": failed.as_dict() if (failed := engine.backend.fallback()) else None,
    }


def _collection(wanted: Any, known: Any) -> dict[str, Any]:  # noqa: ANN401 - a wanted collection, an index or None
    serving = known.serving(wanted) if known is not None else None
    return {
        "name": serving.name if serving is not None else wanted.name,
        "path": wanted.path,
        "pattern": wanted.pattern,
        "source": wanted.source,
        "documents": len(serving.documents) if serving is not None else None,
    }


_RUN: dict[str, Callable[[Engine], dict[str, Any]]] = {
    "update": _update,
    "embed": _embed,
    "status": _status,
    "reset": _reset,
    "approve": _approve,
    "revoke": _revoke,
    "probe": _probe,
}


def _told(action: str, found: dict[str, Any]) -> Iterator[str]:
    """What an action did, for a person."""
    from memory_tui.render import qmd_text

    match action:
        case "status":
            yield from qmd_text.status(found)
        case "reset":
            yield from (f"Deleted: {path}" for path in found["deleted"])
            yield "QMD's index is empty now: memory-tui qmd update makes it anew."
        case "approve":
            yield f"Approved: memory-tui may run {found['approved']}"
            yield "To withdraw: memory-tui qmd revoke."
        case "revoke":
            yield from (f"Approval withdrawn: {line}" for line in found["revoked"] or ["there was none"])
        case "probe":
            yield "QMD answers." if found["answers"] else f"QMD does not answer: {found['fallback']['reason']}"
        case _:
            yield from found["changes"]
            yield found["sentence"]


# --- side by side --------------------------------------------------------------------------------------------------


def compare(args: argparse.Namespace) -> int:
    """Answer queries by both, or tell what another index of QMD lacks."""

    as_json = args.json
    with opened(args) as engine:
        if args.their_index is not None:
            from memory_tui.engine.compare_qmd import compare_their_index
            from memory_tui.render import qmd_text

            with waiting("Reading QMD's index"):
                found = compare_their_index(engine, args.their_index)
            if as_json:
                print_json(qmd_text.their_index_data(found))
            else:
                print_lines(qmd_text.their_index(found))
            return 0
        engine.index.catch_up()
        return _both(engine, list(_questions(args)), as_json=as_json)


def _both(engine: Engine, questions: list[tuple[str, dict[str, set[int]]]], *, as_json: bool) -> int:
    """Ask both every question, and print the answers, then the measures of several or labelled questions."""
    from memory_tui.engine import compare_qmd
    from memory_tui.render import qmd_text

    if not questions:
        raise QueryError("There is no query.", 'For instance: memory-tui qmd compare "router vlan".')
    ours, theirs = compare_qmd.Tally(), compare_qmd.Tally()
    labelled = sum(bool(right) for _, right in questions)
    whole = len(questions) == 1 or not labelled
    rows, failed = [], 0
    for query, right in questions:
        with waiting(f"Asking both: {query}"):
            found = compare_qmd.compare(engine, query, explained=whole)
        ours.add(found.builtin, right)
        if not found.failure:
            theirs.add(found.qmd_hits, right)
        failed += bool(found.failure)
        if as_json:
            rows.append(qmd_text.comparison_data(found))
        elif whole or found.failure:
            print_lines(qmd_text.comparison(found))
    if as_json:
        sums = {"builtin": qmd_text.measures_data(ours.measures()), "qmd": qmd_text.measures_data(theirs.measures())}
        print_json({"comparisons": rows, "labelled": labelled, "failed": failed, **sums})
    elif len(questions) > 1 or labelled:
        print_lines(qmd_text.measures(ours.measures(), theirs.measures(), labelled))
    return 1 if failed == len(questions) else 0


def _questions(args: argparse.Namespace) -> Iterator[tuple[str, dict[str, set[int]]]]:
    """Each query with the lines that answer it, by path; none where it has no labels."""
    yield from ((query, {}) for query in args.query)
    if args.stdin:
        yield from _parsed(sys.stdin.read(), "standard input")
    if args.labels is not None:
        try:
            text = Path(args.labels).expanduser().read_text("utf-8")
        except (OSError, UnicodeError) as error:
            raise LabelError(f"The labels in {args.labels} cannot be read: {error}.", "Check the file.") from error
        yield from _parsed(text, args.labels)


def _parsed(text: str, name: str) -> Iterator[tuple[str, dict[str, set[int]]]]:
    """Queries, one a line; a line of JSON may name the lines that answer it, or whole notes."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield line.strip(), {}
            continue
        try:
            item = json.loads(line)
            right: dict[str, set[int]] = {}
            for label in item.get("relevant", ()):
                lines = right.setdefault(str(label["path"]), set())
                if label.get("grade", 1) and "line" in label:
                    lines.add(int(label["line"]))
            yield str(item["query"]), right
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LabelError(
                f"{name}, line {number}, is no labelled query: {error}.",
                'Write {"query": "...", "relevant": [{"path": "...", "line": 1}]}.',
            ) from error
