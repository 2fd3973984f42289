"""Commands about other programs: OpenClaw's index, flushes, triggers and ledger of trust; QMD and its index."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import to_builtins

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.backends import memories
from memory_tui.backends import qmd as qmd_backend
from memory_tui.backends.memories import Memories, MemoryEntry, TableMissing
from memory_tui.backends.qmd import APPROVED_AS, QmdFailure
from memory_tui.cancel import Stop
from memory_tui.cli.context import confirmed, engine_options, opened
from memory_tui.cli.output import print_lines, say, show, waiting
from memory_tui.engine.engine import Engine
from memory_tui.engine.openclaw_answer import injected
from memory_tui.errors import EditRefused, QueryError
from memory_tui.explain import trace_json
from memory_tui.formatting import plural
from memory_tui.openclaw import compare
from memory_tui.openclaw import flush as flushes
from memory_tui.openclaw.prompt import injected_lines
from memory_tui.openclaw.trust import of_plan, trust_lines
from memory_tui.sanitize import one_line
from memory_tui.workspace.roots import scan


def compare_index(args: argparse.Namespace) -> int:
    """Tell what OpenClaw's own index holds of the notes."""
    chosen = plan.plan(engine_options(args))
    path = Path(args.db).expanduser() if args.db is not None else None
    with waiting("Reading OpenClaw's index"):
        outcome = compare.compare_configured(chosen.config, chosen.settings, chosen.roots, path)
    lines = [f"{label + ':':<15}{one_line(words)}" for label, words in compare.statements(outcome)]
    if isinstance(outcome, compare.HostProblem) and not args.json:
        say(f"{outcome.detail} {outcome.next_step} ({outcome.state})")
        lines = []
    code = {"ok": 0, "missing": 2}.get(outcome.state, 1)
    return show(args, trace_json.plain(outcome), lines, code)


def inject(args: argparse.Namespace) -> int:
    """Tell which entries OpenClaw puts before its agent for a message."""
    with opened(args) as engine:
        if engine.plan.settings.on("sync.onSearch"):
            engine.index.catch_up()
        entries = injected(engine, args.message)
    return show(args, [to_builtins(each) for each in entries], injected_lines(entries))


def flush(args: argparse.Namespace) -> int:
    """Tell of every session of the agent whether OpenClaw lets it write down now what it knows."""
    choices = plan.choose(engine_options(args))
    data, lines = [], []
    for each in flushes.near(choices.config):
        head = {"session": each.session, "transcript": str(each.transcript)}
        data.append({**head, **to_builtins(each.decision), "flushedAt": each.flushed_at})
        verdict = "flush now" if each.decision.flush else "no flush"
        lines.append(f"{each.session}: {verdict}: {each.decision.detail}.")
    return show(args, data, lines or [f"OpenClaw keeps no session of {choices.agent.id} here."])


def trust(args: argparse.Namespace) -> int:
    """Tell whether OpenClaw still trusts each note."""
    chosen = plan.plan(engine_options(args))
    report = of_plan(chosen).report(note.path for note in scan(chosen.roots).notes)
    if not report.ledger:
        raise EditRefused("OpenClaw keeps no ledger of these notes.", "It does from 2026.8 on, in its state folder.")
    return show(args, to_builtins(report), trust_lines(report), 1 if report.problem else 0)


# --- QMD -----------------------------------------------------------------------------------------------------------

T = TypeVar("T")
Answer = tuple[dict[str, Any], list[str], int]
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
        data, lines, code = _RUN[args.action](engine)
    return show(args, data, lines, code)


def _done(engine: Engine, report: qmd_backend.Report | None) -> Answer:
    report = report or {}
    engine.backend.recovered()
    counts = f"{plural(report['documents'], 'document')}, {plural(report['vectors'], 'vector')}"
    sentence = f"QMD {report['action']}: {counts}, {report['seconds']:.1f} s."
    return {**report, "sentence": sentence}, [*report["changes"], sentence], 0


def _reset(engine: Engine) -> Answer:
    paths = qmd_backend.reset(engine.backend.client)
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


def _tried(get: Callable[[], T], otherwise: T) -> tuple[T, dict[str, str]]:
    """Return what `get` gives, and why it gives nothing."""
    try:
        return get(), {"problem": "", "nextStep": ""}
    except QmdFailure as failure:
        return otherwise, {"problem": failure.message, "nextStep": failure.next_step}


def _state(engine: Engine) -> Answer:
    client = engine.backend.client
    words, trouble = _tried(lambda: list(client.words()), list[str]())
    version = ""
    if words:
        version, trouble = _tried(lambda: qmd_backend.version(client.startable(), client.place), "")
    command, approved = shlex.join(words), bool(words) and not client.unapproved
    program = {"command": command, "version": version, "namedBy": client.options.named_by, "approved": approved}
    index, problem = _tried(lambda: qmd_backend.read(client.place.index), qmd_backend.QmdIndex({}))
    upkeep, failed, state = qmd_backend.state(client), engine.backend.fallback(), engine.status().backend_state
    seen = qmd_backend.coverage(index, client.specs, upkeep["updated"])
    serving = ((item, index.serving(item)) for item in client.specs)
    collections = [
        {**to_builtins(item), "documents": len(there.documents) if there is not None else None}
        for item, there in serving
    ]
    models = [to_builtins(item) for item in qmd_backend.models(client.place).values()]
    data = {
        "state": state,
        "program": {**program, **trouble},
        "folder": str(client.place.folder),
        "searchMode": client.options.mode,
        "collections": collections,
        **problem,
        "documents": index.documents,
        "vectors": index.vectors,
        "behind": len(seen.behind),
        **{name: list(getattr(seen, name)) for name in ("missing", "ghosts", "changed")},
        "lastUpdateAt": upkeep["updated"] or None,
        "upkeep": upkeep,
        "models": models,
        "fallback": failed.as_dict() if failed else None,
    }
    counts = f"{plural(index.documents, 'document')}, {plural(index.vectors, 'vector')}"
    rows = [
        ("State", state),
        ("Program", trouble["problem"] or f"{command} ({version})"),
        ("Folder", client.place.folder),
        ("Mode", client.options.mode),
        *(("Collection", f"{item['name']}  {item['path']}  {item['pattern']}") for item in collections),
        ("Index", problem["problem"] or f"{counts}, {plural(len(seen.behind), 'file')} changed since"),
        ("Last update", qmd_backend.qmd_updated(upkeep["updated"])),
        ("Last failure", upkeep["error"] or "none"),
        *(("Model", f"{item['role']}: {item['problem'] or item['file']}") for item in models),
    ]
    return data, [f"{name + ':':14}{one_line(str(text))}" for name, text in rows], 0


_RUN: dict[str, Callable[[Engine], Answer]] = {
    "update": lambda engine: _done(engine, qmd_backend.update(engine.backend.client, Stop())),
    "embed": lambda engine: _done(engine, qmd_backend.embed(engine.backend.client, Stop())),
    "status": _state,
    "reset": _reset,
    "approve": _approve,
    "revoke": _revoke,
    "probe": _probe,
}

# --- memories ---------------------------------------------------------------------------------------------------------

MemoriesAnswer = tuple[dict[str, Any], list[str]]
"""What is printed as JSON, what a person reads."""


@contextmanager
def _opened(args: argparse.Namespace) -> Iterator[Memories]:
    """Yield the memories that the options name; no workspace has to be there."""
    choices = plan.choose(engine_options(args))
    opened = Memories(choices, Approvals(choices.workspace))
    try:
        yield opened
    finally:
        opened.close()


def ltm(args: argparse.Namespace) -> int:
    """Carry out an action on the long-term memories."""
    with _opened(args) as opened:
        if args.action in ("store", "forget", "undo") and not args.read_only:
            # A person agrees once; what refuses to write says how to agree.
            question = f"memory-tui has only read the memories in {opened.location.label} so far. May it write them?"
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


def _line(entry: MemoryEntry) -> str:
    return f"{entry.id[:8]}  {entry.day}  {entry.category:<10}  {entry.importance:.1f}  {one_line(entry.text)}"


def _list(opened: Memories, args: argparse.Namespace) -> MemoriesAnswer:
    category = memories.require_category(args.category) if args.category else ""
    try:
        table = opened.table()
    except TableMissing as missing:
        return {"entries": [], "total": 0}, [missing.message, missing.next_step]
    fitting = [item for item in table.entries() if category in ("", item.category)]
    newest = sorted(fitting, key=lambda item: item.created_at, reverse=True)[: args.limit or 50]
    place, writable = opened.location, opened.writable
    data = {
        "entries": [item.as_dict() for item in newest],
        "total": len(fitting),
        "place": place.label,
        "namedBy": place.named_by,
        "writable": writable,
        "model": dict(table.model) or None,
    }
    total = f"{plural(len(fitting), 'entry')} in {place.label} (named by {place.named_by})"
    return data, [*map(_line, newest), total if writable else f"{total}, only read: memory-tui ltm approve"]


def _search(opened: Memories, args: argparse.Namespace) -> MemoriesAnswer:
    least = memories.COMMAND_MIN if args.min_score is None else args.min_score
    answer = opened.search(_words(args, "QUERY"), args.limit or memories.LIMIT, least, args.category)
    lines = [f"{hit.score:.3f}  (distance {hit.distance:.3f})  {_line(hit.entry)}" for hit in answer.hits]
    lines = lines or [f"No entry reaches the score {least:g}."]
    lines += ["", "Not in the answer:"] if answer.misses else []
    lines += [f"{miss.score:.3f}  {_line(miss.entry)}  {miss.why_not}" for miss in answer.misses[:5]]
    data = {
        "query": " ".join(args.words),
        "minScore": least,
        "model": answer.proof,
        "results": [item.as_dict() for item in answer.hits],
        "misses": [item.as_dict() for item in answer.misses],
    }
    return data, lines


def _store(opened: Memories, args: argparse.Namespace) -> MemoriesAnswer:
    importance = memories.IMPORTANCE if args.importance is None else args.importance
    done = opened.store(_words(args, "TEXT"), importance, args.category)
    data = {"action": done.action, "entry": done.entry.as_dict(), "score": round(done.score, 6)}
    if done.action == "created":
        return data, [f"Stored: {_line(done.entry)}", "To undo: memory-tui ltm undo."]
    return data, [f"Not stored: it repeats {done.entry.id} (score {done.score:.3f}): {one_line(done.entry.text)}"]


def _forget(opened: Memories, args: argparse.Namespace) -> MemoriesAnswer:
    text = _words(args, "ID or QUERY")
    entry = opened.named(text)
    done = opened.forget([entry.id]) if entry else opened.forget_by_query(text, memories.COMMAND_MIN)
    data = {
        "action": "deleted" if done.entries else "candidates",
        "deleted": [item.as_dict() for item in done.entries],
        "candidates": [item.as_dict() for item in done.candidates],
    }
    if done.entries:
        return data, [*(f"Forgotten: {_line(item)}" for item in done.entries), "To undo: memory-tui ltm undo."]
    lines = [f"{item.score:.3f}  {_line(item.entry)}" for item in done.candidates]
    return data, [f"Nothing is forgotten: {'name one of these by its id' if lines else 'no entry is near'}.", *lines]


def _undo(opened: Memories, _args: argparse.Namespace) -> MemoriesAnswer:
    done = opened.undo()
    lines = [f"Undone, {done.kind}: {_line(item)}" for item in done.entries]
    return {"undone": done.kind, "entries": [item.as_dict() for item in done.entries]}, lines


def _approve_memories(opened: Memories, _args: argparse.Namespace) -> MemoriesAnswer:
    opened.approve("ltm approve")
    label = opened.location.label
    return {"approved": label}, [f"memory-tui may write the memories in {label}.", "To withdraw: ltm revoke."]


def _revoke_memories(opened: Memories, _args: argparse.Namespace) -> MemoriesAnswer:
    hosts = [approval.host for approval in opened.approvals.revoke(memories.WRITES)]
    return {"revoked": hosts}, [f"Approval withdrawn: {item}" for item in hosts] or ["There was no approval."]


_MEMORIES: dict[str, Callable[[Memories, argparse.Namespace], MemoriesAnswer]] = {
    "list": _list,
    "search": _search,
    "store": _store,
    "forget": _forget,
    "undo": _undo,
    "approve": _approve_memories,
    "revoke": _revoke_memories,
}


def hook(args: argparse.Namespace) -> int:
    """Print memories before an answer, or store what the user said; standard input holds it as the host has it."""
    texts, ended_well = _user_texts(sys.stdin.read())
    with _opened(args) as opened:
        if args.name == "recall":
            block = memories.block(opened, texts[-1]) if texts else ""
            return show(args, {"prependContext": block}, block.splitlines())
        if opened.rule("autoCapture") is not True:
            off = "Capture is off: plugins.entries.memory-lancedb.config.autoCapture is not true."
            return show(args, {"stored": 0, "off": off}, [off])
        stored, left = memories.capture(opened, texts if ended_well else ())
    entries = [{"action": item.action, "id": item.entry.id, "text": item.entry.text} for item in stored]
    data = {"entries": entries, "left": [{"text": text, "why": why} for text, why in left]}
    return show(args, data, [memories.captured(stored, left)])


def _user_texts(text: str) -> tuple[list[str], bool]:
    """Return what the user said, and whether the run ended well, of a host's event in JSON or plain text."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return [text] if text.strip() else [], True
    if not isinstance(event, dict):
        return [], True
    if isinstance(event.get("prompt"), str):
        return [event["prompt"]], True
    messages = event.get("messages")
    messages = messages if isinstance(messages, list) else []
    contents = [item.get("content") for item in messages if isinstance(item, dict) and item.get("role") == "user"]
    parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return [item for item in texts if isinstance(item, str)], event.get("success", True) is True
