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
    if isinstance(outcome, compare.HostProblem):
        error = MemoryTuiError(outcome.detail, outcome.next_step)
        # The code of the error is the state, for which there is no class of errors.
        error.code = outcome.state
        error.exit_status = 2 if outcome.state == "missing" else 1
        raise error
    lines = [f"{label + ':':<15}{one_line(words)}" for label, words in compare.statements(outcome)]
    return show(args, trace_json.plain(outcome), lines)


def inject(args: argparse.Namespace) -> int:
    """Tell which entries OpenClaw puts before its agent for a message."""
    with opened(args) as engine:
        if engine.plan.settings.on("sync.onSearch"):
            engine.index.catch_up()
        entries = engine.notes.injected(args.message)
    return show(args, [to_builtins(entry) for entry in entries], injected_lines(entries))


def flush(args: argparse.Namespace) -> int:
    """Tell of every session of the agent whether OpenClaw lets it write down now what it knows."""
    choices = plan.choose(engine_options(args))
    sessions = [*flushes.near(choices.config)]
    data = []
    for session in sessions:
        head = {"session": session.session, "transcript": str(session.transcript)}
        data.append({**head, **to_builtins(session.decision), "flushedAt": session.flushed_at})
    none = f"OpenClaw keeps no session of {choices.agent.id} here."
    return show(args, data, [session.sentence for session in sessions] or [none])


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
        # The other actions say by themselves what a person has to agree to.
        if args.action == "update" and (question := client.unapproved):
            if not confirmed(f"{question}. Run it?", args):
                print_lines([question, "To agree: memory-tui qmd approve."])
                return 1
            client.approve("qmd --yes" if args.yes else "qmd")
        data, lines = _RUN[args.action](engine)
    return show(args, data, lines)


def _update(engine: Engine) -> Answer:
    """Bring QMD's index up to date."""
    report = qmd_backend.update(engine.backend.client, Stop())
    # Searches ask QMD again, after a failure made the index stand in for it.
    engine.backend.recovered()
    counts = f"{plural(report['documents'], 'document')}, {plural(report['vectors'], 'vector')}"
    return report, [*report["changes"], f"QMD update: {counts}."]


def _approve(engine: Engine) -> Answer:
    """Save that a person agreed to run QMD."""
    line = engine.backend.client.approve("qmd approve")
    engine.backend.recovered()
    return {"approved": line}, [f"Approved: memory-tui may run {line}", "To withdraw: memory-tui qmd revoke."]


def _revoke(engine: Engine) -> Answer:
    """Take the agreement to run QMD back."""
    commands = [approval.host for approval in engine.providers.approvals.revoke(qmd_backend.APPROVED_AS)]
    return {"revoked": commands}, [f"Approval withdrawn: {command}" for command in commands or ["there was none"]]


def _state(engine: Engine) -> Answer:
    """Return what QMD is configured to do, what its index holds, and what is wrong."""
    client = engine.backend.client
    status = engine.status()
    command, problem = "", ""
    coverage = qmd_backend.Coverage()
    try:
        command = shlex.join(client.words())
        coverage = client.coverage()
    except qmd_backend.QmdFailure as failure:
        problem = f"{failure.message} {failure.next_step}".strip()
    data: dict[str, Any] = {"state": status.backend_state, "program": command, "problem": problem}
    data |= {"folder": str(client.place.folder), "searchMode": client.options.mode}
    data |= {"collections": [to_builtins(spec) for spec in client.specs], **to_builtins(coverage)}
    data |= {"lastUpdateAt": client.updated or None, "fallback": status.fallback}
    counts = f"{plural(coverage.documents, 'document')}, {plural(coverage.behind, 'file')} changed since"
    rows = [
        ("State", data["state"]),
        ("Program", data["program"] or "none"),
        ("Folder", data["folder"]),
        ("Mode", data["searchMode"]),
        *(("Collection", f"{spec.name}  {spec.path}  {spec.pattern}") for spec in client.specs),
        ("Index", problem or counts),
        ("Last update", second(client.updated) if client.updated else "never"),
    ]
    return data, [f"{name + ':':14}{one_line(str(text))}" for name, text in rows]


_RUN = {"update": _update, "status": _state, "approve": _approve, "revoke": _revoke}

# --- memories ---------------------------------------------------------------------------------------------------------


def ltm(args: argparse.Namespace) -> int:
    """Carry out an action on the long-term memories; no workspace has to be there."""
    choices = plan.choose(engine_options(args))
    with closing(lancedb.Memories(choices, Approvals(choices.workspace))) as memories:
        if args.action in ("store", "forget", "undo") and not args.read_only:
            # A person agrees once; what refuses to write says how to agree.
            question = f"memory-tui has only read the memories in {memories.label} so far. May it write them?"
            if memories.exists() and not memories.writable and confirmed(question, args):
                memories.approve("ltm --yes" if args.yes else "ltm")
        with waiting("Working on the memories"):
            data, lines = _MEMORIES[args.action](memories, args)
    return show(args, data, lines)


def _words(args: argparse.Namespace, meaning: str) -> str:
    """Return the words of the command line as one text. Raises QueryError with their `meaning` where there are none."""
    text = " ".join(args.words)
    if not text.strip():
        raise QueryError(f"memory-tui ltm {args.action} takes {meaning}.", f"memory-tui ltm {args.action} {meaning}")
    return text


def _line(entry: lancedb.MemoryEntry) -> str:
    """Return an entry as a line, with the beginning of its id."""
    return f"{entry.id[:8]}  {entry.day}  {entry.category:<10}  {entry.importance:.1f}  {one_line(entry.text)}"


def _list(memories: lancedb.Memories, args: argparse.Namespace) -> Answer:
    """Return the newest entries, and how many there are."""
    try:
        table = memories.table()
    except lancedb.TableMissing as missing:
        return {"entries": [], "total": 0}, [missing.message, missing.next_step]
    entries = sorted(table.entries(), key=lambda entry: entry.created_at, reverse=True)
    newest = entries[: args.limit or 50]
    data = {"entries": [entry.as_dict() for entry in newest], "total": len(entries), "place": memories.label}
    data |= {"writable": memories.writable, "model": dict(table.model) or None}
    rights = "" if memories.writable else ", only read: memory-tui ltm approve"
    return data, [*map(_line, newest), f"{plural(len(entries), 'entry')} in {memories.label}{rights}"]


def _search(memories: lancedb.Memories, args: argparse.Namespace) -> Answer:
    """Return the entries that are most like the words of the command line."""
    min_score = lancedb.COMMAND_MIN if args.min_score is None else args.min_score
    hits = memories.search(_words(args, "QUERY"), args.limit or lancedb.LIMIT, min_score)
    lines = [f"{hit.score:.3f}  (distance {hit.distance:.3f})  {_line(hit.entry)}" for hit in hits]
    data = {"query": " ".join(args.words), "minScore": min_score, "results": [hit.as_dict() for hit in hits]}
    return data, lines or [f"No entry reaches the score {min_score:g}."]


def _store(memories: lancedb.Memories, args: argparse.Namespace) -> Answer:
    """Store the words of the command line as an entry, unless there is one like it."""
    importance = lancedb.IMPORTANCE if args.importance is None else args.importance
    outcome = memories.store(_words(args, "TEXT"), importance, args.category)
    entry = outcome.entry
    data = {"action": outcome.action, "entry": entry.as_dict(), "score": round(outcome.score, 6)}
    if outcome.action == "created":
        return data, [f"Stored: {_line(entry)}", "To undo: memory-tui ltm undo."]
    return data, [f"Not stored: it repeats {entry.id} (score {outcome.score:.3f}): {one_line(entry.text)}"]


def _forget(memories: lancedb.Memories, args: argparse.Namespace) -> Answer:
    """Delete the entry that the words of the command line mean, by its id or as a query; else return candidates."""
    text = _words(args, "ID or QUERY")
    # The beginning of an id names one entry; any other text is searched for, and forgotten only where it is sure.
    entry = memories.named(text)
    outcome = memories.forget([entry.id]) if entry else memories.forget_by_query(text, lancedb.COMMAND_MIN)
    deleted = [item.as_dict() for item in outcome.entries]
    candidates = [item.as_dict() for item in outcome.candidates]
    data = {"action": "deleted" if deleted else "candidates", "deleted": deleted, "candidates": candidates}
    if deleted:
        return data, [*(f"Forgotten: {_line(item)}" for item in outcome.entries), "To undo: memory-tui ltm undo."]
    lines = [f"{item.score:.3f}  {_line(item.entry)}" for item in outcome.candidates]
    return data, [f"Nothing is forgotten: {'name one of these by its id' if lines else 'no entry is near'}.", *lines]


def _undo(memories: lancedb.Memories, _args: argparse.Namespace) -> Answer:
    """Take the last change of the entries back."""
    undone = memories.undo()
    lines = [f"Undone, {undone.kind}: {_line(entry)}" for entry in undone.entries]
    return {"undone": undone.kind, "entries": [entry.as_dict() for entry in undone.entries]}, lines


def _approve_memories(memories: lancedb.Memories, _args: argparse.Namespace) -> Answer:
    """Save that a person agreed to the writing of the table."""
    memories.approve("ltm approve")
    label = memories.label
    return {"approved": label}, [f"memory-tui may write the memories in {label}.", "To withdraw: ltm revoke."]


def _revoke_memories(memories: lancedb.Memories, _args: argparse.Namespace) -> Answer:
    """Take the agreement to write the table back."""
    hosts = [approval.host for approval in memories.approvals.revoke(lancedb.WRITES)]
    return {"revoked": hosts}, [f"Approval withdrawn: {item}" for item in hosts] or ["There was no approval."]


_MEMORIES: dict[str, Callable[[lancedb.Memories, argparse.Namespace], Answer]]
_MEMORIES = {"list": _list, "search": _search, "store": _store, "forget": _forget, "undo": _undo}
_MEMORIES |= {"approve": _approve_memories, "revoke": _revoke_memories}
