"""Commands about other programs: OpenClaw's index, flushes, triggers and ledger of trust; QMD and its index."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.backends import lancedb
from memory_tui.backends import qmd as qmd_backend
from memory_tui.cancel import Stop
from memory_tui.cli.context import confirmed, engine_options, opened
from memory_tui.cli.output import print_lines, show, waiting
from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused, MemoryTuiError, QueryError
from memory_tui.explain import trace_json
from memory_tui.formatting import one_line, plural, second
from memory_tui.openclaw import compare
from memory_tui.openclaw import flush as flushes
from memory_tui.openclaw.prompt import injected_lines
from memory_tui.openclaw.trust import of_plan, trust_lines
from memory_tui.workspace.roots import scan


def compare_index(args: argparse.Namespace) -> int:
    """Tell what OpenClaw's own index holds of the notes."""
    chosen = plan.plan(engine_options(args))
    path = Path(args.db).expanduser() if args.db is not None else None
    with waiting("Reading OpenClaw's index"):
        outcome = compare.compare_configured(chosen.config, chosen.settings, chosen.roots, path)
    lines = [f"{label + ':':<15}{one_line(words)}" for label, words in compare.statements(outcome)]
    if isinstance(outcome, compare.HostProblem):
        error = MemoryTuiError(outcome.detail, outcome.next_step)
        error.code = outcome.state
        error.exit_status = 2 if outcome.state == "missing" else 1
        raise error
    return show(args, trace_json.plain(outcome), lines)


def inject(args: argparse.Namespace) -> int:
    """Tell which entries OpenClaw puts before its agent for a message."""
    with opened(args) as engine:
        if engine.plan.settings.on("sync.onSearch"):
            engine.index.catch_up()
        entries = engine.notes.injected(args.message)
    return show(args, [to_builtins(each) for each in entries], injected_lines(entries))


def flush(args: argparse.Namespace) -> int:
    """Tell of every session of the agent whether OpenClaw lets it write down now what it knows."""
    choices = plan.choose(engine_options(args))
    data, lines = [], []
    for each in flushes.near(choices.config):
        head = {"session": each.session, "transcript": str(each.transcript)}
        data.append({**head, **to_builtins(each.decision), "flushedAt": each.flushed_at})
        lines.append(each.sentence)
    return show(args, data, lines or [f"OpenClaw keeps no session of {choices.agent.id} here."])


def trust(args: argparse.Namespace) -> int:
    """Tell whether OpenClaw still trusts each note."""
    chosen = plan.plan(engine_options(args))
    report = of_plan(chosen).report(note.path for note in scan(chosen.roots).notes)
    if not report.ledger:
        raise EditRefused("OpenClaw keeps no ledger of these notes.", "It does from 2026.8 on, in its state folder.")
    return show(args, to_builtins(report), trust_lines(report), 1 if report.problem else 0)


# --- QMD -----------------------------------------------------------------------------------------------------------

Answer = tuple[dict[str, Any], list[str]]
"""What is printed as JSON, what a person reads."""


def qmd(args: argparse.Namespace) -> int:
    """Carry out an action of QMD."""
    with opened(args) as engine:
        client = engine.backend.client
        if args.action == "update" and (question := client.unapproved):
            if not confirmed(f"{question}. Run it?", args):
                print_lines([question, "To agree: memory-tui qmd approve."])
                return 1
            client.approve("qmd --yes" if args.yes else "qmd")
        data, lines = _RUN[args.action](engine)
    return show(args, data, lines)


def _update(engine: Engine) -> Answer:
    report = qmd_backend.update(engine.backend.client, Stop())
    engine.backend.recovered()
    counts = f"{plural(report['documents'], 'document')}, {plural(report['vectors'], 'vector')}"
    return report, [*report["changes"], f"QMD update: {counts}."]


def _approve(engine: Engine) -> Answer:
    line = engine.backend.client.approve("qmd approve")
    engine.backend.recovered()
    return {"approved": line}, [f"Approved: memory-tui may run {line}", "To withdraw: memory-tui qmd revoke."]


def _revoke(engine: Engine) -> Answer:
    lines = [approval.host for approval in engine.providers.approvals.revoke(qmd_backend.APPROVED_AS)]
    return {"revoked": lines}, [f"Approval withdrawn: {line}" for line in lines or ["there was none"]]


def _state(engine: Engine) -> Answer:
    """Return what QMD is configured to do, what its index holds, and what is wrong."""
    client, status = engine.backend.client, engine.status()
    problem, words, coverage = "", [], qmd_backend.Coverage()
    try:
        words = list(client.words())
        coverage = client.coverage()
    except qmd_backend.QmdFailure as failure:
        problem = f"{failure.message} {failure.next_step}".strip()
    data = {
        "state": status.backend_state,
        "program": shlex.join(words),
        "problem": problem,
        "folder": str(client.place.folder),
        "searchMode": client.options.mode,
        "collections": [to_builtins(item) for item in client.specs],
        **to_builtins(coverage),
        "lastUpdateAt": client.updated or None,
        "fallback": status.fallback,
    }
    counts = f"{plural(coverage.documents, 'document')}, {plural(coverage.behind, 'file')} changed since"
    rows = [
        ("State", data["state"]),
        ("Program", data["program"] or "none"),
        ("Folder", data["folder"]),
        ("Mode", data["searchMode"]),
        *(("Collection", f"{item.name}  {item.path}  {item.pattern}") for item in client.specs),
        ("Index", problem or counts),
        ("Last update", second(client.updated) if client.updated else "never"),
    ]
    return data, [f"{name + ':':14}{one_line(str(text))}" for name, text in rows]


_RUN = {"update": _update, "status": _state, "approve": _approve, "revoke": _revoke}

# --- memories ---------------------------------------------------------------------------------------------------------


def ltm(args: argparse.Namespace) -> int:
    """Carry out an action on the long-term memories; no workspace has to be there."""
    choices = plan.choose(engine_options(args))
    with closing(lancedb.Memories(choices, Approvals(choices.workspace))) as opened:
        if args.action in ("store", "forget", "undo") and not args.read_only:
            # A person agrees once; what refuses to write says how to agree.
            question = f"memory-tui has only read the memories in {opened.label} so far. May it write them?"
            if opened.exists() and not opened.writable and confirmed(question, args):
                opened.approve("ltm --yes" if args.yes else "ltm")
        with waiting("Working on the memories"):
            data, lines = _MEMORIES[args.action](opened, args)
    return show(args, data, lines)


def _words(args: argparse.Namespace, what: str) -> str:
    """Return the words as one text. Raises QueryError where there is none."""
    text = " ".join(args.words)
    if not text.strip():
        raise QueryError(f"memory-tui ltm {args.action} takes {what}.", f"memory-tui ltm {args.action} {what}")
    return text


def _line(entry: lancedb.MemoryEntry) -> str:
    return f"{entry.id[:8]}  {entry.day}  {entry.category:<10}  {entry.importance:.1f}  {one_line(entry.text)}"


def _list(opened: lancedb.Memories, args: argparse.Namespace) -> Answer:
    """Return the newest entries, and how many there are."""
    try:
        table = opened.table()
    except lancedb.TableMissing as missing:
        return {"entries": [], "total": 0}, [missing.message, missing.next_step]
    every = table.entries()
    newest = sorted(every, key=lambda item: item.created_at, reverse=True)[: args.limit or 50]
    data = {
        "entries": [item.as_dict() for item in newest],
        "total": len(every),
        "place": opened.label,
        "writable": opened.writable,
        "model": dict(table.model) or None,
    }
    total = f"{plural(len(every), 'entry')} in {opened.label}"
    return data, [*map(_line, newest), total if opened.writable else f"{total}, only read: memory-tui ltm approve"]


def _search(opened: lancedb.Memories, args: argparse.Namespace) -> Answer:
    least = lancedb.COMMAND_MIN if args.min_score is None else args.min_score
    hits = opened.search(_words(args, "QUERY"), args.limit or lancedb.LIMIT, least)
    lines = [f"{hit.score:.3f}  (distance {hit.distance:.3f})  {_line(hit.entry)}" for hit in hits]
    data = {"query": " ".join(args.words), "minScore": least, "results": [item.as_dict() for item in hits]}
    return data, lines or [f"No entry reaches the score {least:g}."]


def _store(opened: lancedb.Memories, args: argparse.Namespace) -> Answer:
    importance = lancedb.IMPORTANCE if args.importance is None else args.importance
    done = opened.store(_words(args, "TEXT"), importance, args.category)
    data = {"action": done.action, "entry": done.entry.as_dict(), "score": round(done.score, 6)}
    if done.action == "created":
        return data, [f"Stored: {_line(done.entry)}", "To undo: memory-tui ltm undo."]
    return data, [f"Not stored: it repeats {done.entry.id} (score {done.score:.3f}): {one_line(done.entry.text)}"]


def _forget(opened: lancedb.Memories, args: argparse.Namespace) -> Answer:
    text = _words(args, "ID or QUERY")
    entry = opened.named(text)
    done = opened.forget([entry.id]) if entry else opened.forget_by_query(text, lancedb.COMMAND_MIN)
    data = {
        "action": "deleted" if done.entries else "candidates",
        "deleted": [item.as_dict() for item in done.entries],
        "candidates": [item.as_dict() for item in done.candidates],
    }
    if done.entries:
        return data, [*(f"Forgotten: {_line(item)}" for item in done.entries), "To undo: memory-tui ltm undo."]
    lines = [f"{item.score:.3f}  {_line(item.entry)}" for item in done.candidates]
    return data, [f"Nothing is forgotten: {'name one of these by its id' if lines else 'no entry is near'}.", *lines]


def _undo(opened: lancedb.Memories, _args: argparse.Namespace) -> Answer:
    done = opened.undo()
    lines = [f"Undone, {done.kind}: {_line(item)}" for item in done.entries]
    return {"undone": done.kind, "entries": [item.as_dict() for item in done.entries]}, lines


def _approve_memories(opened: lancedb.Memories, _args: argparse.Namespace) -> Answer:
    opened.approve("ltm approve")
    label = opened.label
    return {"approved": label}, [f"memory-tui may write the memories in {label}.", "To withdraw: ltm revoke."]


def _revoke_memories(opened: lancedb.Memories, _args: argparse.Namespace) -> Answer:
    hosts = [approval.host for approval in opened.approvals.revoke(lancedb.WRITES)]
    return {"revoked": hosts}, [f"Approval withdrawn: {item}" for item in hosts] or ["There was no approval."]


_MEMORIES: dict[str, Callable[[lancedb.Memories, argparse.Namespace], Answer]] = {
    "list": _list,
    "search": _search,
    "store": _store,
    "forget": _forget,
    "undo": _undo,
    "approve": _approve_memories,
    "revoke": _revoke_memories,
}
