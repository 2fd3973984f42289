"""Commands for QMD. They update it, show its state, and compare its answers with those of the built-in index."""

from __future__ import annotations

import argparse
import datetime as dt
import shlex
from collections.abc import Iterable
from typing import Any

from msgspec import to_builtins

from memory_tui.backends import qmd_index, qmd_program, qmd_upkeep
from memory_tui.backends.qmd import APPROVED_AS
from memory_tui.backends.qmd_program import QmdFailure
from memory_tui.cancel import Stop
from memory_tui.cli.context import confirmed, opened
from memory_tui.cli.output import print_lines, show, waiting
from memory_tui.engine import compare_qmd
from memory_tui.engine.engine import Engine
from memory_tui.errors import QueryError
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line

Answer = tuple[dict[str, Any], Iterable[str], int]
"""What is printed as JSON, what a person reads, the exit code."""


def qmd(args: argparse.Namespace) -> int:
    """Carry out an action of QMD."""
    with opened(args) as engine:
        client = engine.backend.client
        if args.action in ("update", "embed") and (question := client.unapproved):
            if not confirmed(f"{question}. Run it?", args):
                print_lines([question, "To agree: memory-tui qmd approve."])
                return 1
            client.approve("qmd --yes" if args.yes else "qmd")
        data, lines, status = _RUN[args.action](engine)
    return show(args, data, lines, status)


def _update(engine: Engine) -> Answer:
    return _done(engine, qmd_upkeep.update(engine.backend.client, Stop()))


def _embed(engine: Engine) -> Answer:
    return _done(engine, qmd_upkeep.embed(engine.backend.client, Stop()))


def _done(engine: Engine, report: qmd_upkeep.Report | None) -> Answer:
    report = report or {}
    engine.backend.recovered()
    counts = f"{plural(report['documents'], 'document')}, {plural(report['vectors'], 'vector')}"
    sentence = f"QMD {report['action']}: {counts}, {report['seconds']:.1f} s."
    return {**report, "sentence": sentence}, [*report["changes"], sentence], 0


def _reset(engine: Engine) -> Answer:
    paths = qmd_upkeep.reset(engine.backend.client)
    lines = [*(f"Deleted: {path}" for path in paths), "QMD's index is empty now: memory-tui qmd update makes it anew."]
    return {"deleted": paths}, lines, 0


def _approve(engine: Engine) -> Answer:
    line = engine.backend.client.approve("qmd approve")
    engine.backend.recovered()
    lines = [f"Approved: memory-tui may run {line}", "To withdraw: memory-tui qmd revoke."]
    return {"approved": line, "namedBy": engine.backend.client.options.named_by}, lines, 0


def _revoke(engine: Engine) -> Answer:
    lines = [approval.host for approval in engine.providers.approvals.revoke(APPROVED_AS)]
    return {"revoked": lines}, [f"Approval withdrawn: {line}" for line in lines or ["there was none"]], 0


def _probe(engine: Engine) -> Answer:
    failed = engine.backend.probe()
    data = {"answers": failed is None, "fallback": failed.as_dict() if failed else None, "failed": failed is not None}
    return data, [f"QMD does not answer: {failed.reason}" if failed else "QMD answers."], 1 if failed else 0


def _status(engine: Engine) -> Answer:
    client = engine.backend.client
    program: dict[str, Any] = {"command": "", "version": "", "namedBy": client.options.named_by, "approved": False}
    program |= {"problem": "", "nextStep": ""}
    index, problem, step = qmd_index.QmdIndex({}), "", ""
    try:
        program |= {"command": shlex.join(client.words()), "approved": not client.unapproved}
        program["version"] = qmd_program.version(client.startable(), client.place)
    except QmdFailure as failure:
        program |= {"problem": failure.message, "nextStep": failure.next_step}
    try:
        index = qmd_index.read(client.place.index)
    except QmdFailure as failure:
        problem, step = failure.message, failure.next_step
    upkeep, failed, state = qmd_upkeep.state(client), engine.backend.fallback(), engine.status().backend_state
    seen = qmd_index.coverage(index, client.specs, upkeep["updated"])
    serving = {item.name: index.serving(item) for item in client.specs}
    collections = [
        {**to_builtins(item), "documents": len(there.documents) if (there := serving[item.name]) is not None else None}
        for item in client.specs
    ]
    models = [to_builtins(item) for item in qmd_program.models(client.place).values()]
    data = {
        "state": state,
        "program": program,
        "folder": str(client.place.folder),
        "searchMode": client.options.mode,
        "collections": collections,
        "problem": problem,
        "nextStep": step,
        "documents": index.documents,
        "vectors": index.vectors,
        "behind": len(seen.behind),
        **{name: list(getattr(seen, name)) for name in ("missing", "ghosts", "changed")},
        "lastUpdateAt": upkeep["updated"] or None,
        "upkeep": upkeep,
        "models": models,
        "fallback": failed.as_dict() if failed else None,
    }
    updated = dt.datetime.fromtimestamp(upkeep["updated"]) if upkeep["updated"] else None
    counts = f"{plural(index.documents, 'document')}, {plural(index.vectors, 'vector')}"
    rows = [
        ("State", state),
        ("Program", program["problem"] or f"{program['command']} ({program['version']})"),
        ("Folder", client.place.folder),
        ("Mode", client.options.mode),
        *(("Collection", f"{item['name']}  {item['path']}  {item['pattern']}") for item in collections),
        ("Index", problem or f"{counts}, {plural(len(seen.behind), 'file')} changed since"),
        ("Last update", f"{updated:%Y-%m-%d %H:%M:%S}" if updated else "never"),
        ("Last failure", upkeep["error"] or "none"),
        *(("Model", f"{item['role']}: {item['problem'] or item['file']}") for item in models),
    ]
    return data, [f"{name + ':':14}{one_line(str(text))}" for name, text in rows], 0


_RUN = {
    "update": _update,
    "embed": _embed,
    "status": _status,
    "reset": _reset,
    "approve": _approve,
    "revoke": _revoke,
    "probe": _probe,
}


def compare(args: argparse.Namespace) -> int:
    """Ask the built-in index and QMD the same queries."""
    if not args.query:
        raise QueryError("There is no query.", 'For instance: memory-tui qmd compare "router vlan".')
    with opened(args) as engine:
        engine.index.catch_up()
        with waiting("Asking both"):
            every = [compare_qmd.compare(engine, query) for query in args.query]
    failed = sum(bool(item.failure) for item in every)
    rows = [
        {
            "query": item.query,
            "failure": {"reason": item.failure, "nextStep": item.next_step} if item.failure else None,
            "qmd": item.qmd.trace() if item.qmd is not None else None,
            "rows": [row.as_dict() for row in item.rows],
        }
        for item in every
    ]
    lines = [line for item in every for line in _side_by_side(item)]
    return show(args, {"comparisons": rows, "failed": failed}, lines, int(failed == len(every)))


def _side_by_side(answer: compare_qmd.QmdComparison) -> Iterable[str]:
    yield one_line(answer.query)
    if answer.failure:
        yield f"  QMD gave no answer: {one_line(answer.failure)} {one_line(answer.next_step)}".rstrip()
    yield "  builtin   QMD"
    for row in answer.rows:
        yield f"  {row.builtin or '-':>7}  {row.qmd or '-':>4}  {one_line(row.path)}:{row.start_line}-{row.end_line}"
        for side, why in (("builtin", row.why_not_builtin), ("QMD", row.why_not_qmd)):
            yield from [f"{'':17}not {side}: {one_line(why)}"] if why else []
