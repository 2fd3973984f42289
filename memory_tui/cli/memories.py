"""Commands of the long-term memories in LanceDB."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.backends import agent_memories, memories
from memory_tui.backends.lancedb import MemoryEntry, TableMissing
from memory_tui.backends.memories import Memories
from memory_tui.cli.context import confirmed, options
from memory_tui.cli.output import show, waiting
from memory_tui.errors import QueryError
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line

Answer = tuple[dict[str, Any], list[str]]
"""What is printed as JSON, what a person reads."""


@contextmanager
def _opened(args: argparse.Namespace) -> Iterator[Memories]:
    """Yield the memories that the options name; no workspace has to be there."""
    choices = plan.choose(options(args))
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
            data, lines = _RUN[args.action](opened, args)
    return show(args, data, lines)


def _words(args: argparse.Namespace, what: str) -> str:
    """Return the words as one text. Raises QueryError where there is none."""
    text = " ".join(args.words)
    if not text.strip():
        raise QueryError(f"memory-tui ltm {args.action} takes {what}.", f"memory-tui ltm {args.action} {what}")
    return text


def _line(entry: MemoryEntry) -> str:
    return f"{entry.id[:8]}  {entry.day}  {entry.category:<10}  {entry.importance:.1f}  {one_line(entry.text)}"


def _list(opened: Memories, args: argparse.Namespace) -> Answer:
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


def _search(opened: Memories, args: argparse.Namespace) -> Answer:
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


def _store(opened: Memories, args: argparse.Namespace) -> Answer:
    importance = memories.IMPORTANCE if args.importance is None else args.importance
    done = opened.store(_words(args, "TEXT"), importance, args.category)
    data = {"action": done.action, "entry": done.entry.as_dict(), "score": round(done.score, 6)}
    if done.action == "created":
        return data, [f"Stored: {_line(done.entry)}", "To undo: memory-tui ltm undo."]
    return data, [f"Not stored: it repeats {done.entry.id} (score {done.score:.3f}): {one_line(done.entry.text)}"]


def _forget(opened: Memories, args: argparse.Namespace) -> Answer:
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


def _undo(opened: Memories, _args: argparse.Namespace) -> Answer:
    done = opened.undo()
    lines = [f"Undone, {done.kind}: {_line(item)}" for item in done.entries]
    return {"undone": done.kind, "entries": [item.as_dict() for item in done.entries]}, lines


def _approve(opened: Memories, _args: argparse.Namespace) -> Answer:
    opened.approve("ltm approve")
    label = opened.location.label
    return {"approved": label}, [f"memory-tui may write the memories in {label}.", "To withdraw: ltm revoke."]


def _revoke(opened: Memories, _args: argparse.Namespace) -> Answer:
    hosts = [approval.host for approval in opened.approvals.revoke(memories.WRITES)]
    return {"revoked": hosts}, [f"Approval withdrawn: {item}" for item in hosts] or ["There was no approval."]


_RUN: dict[str, Callable[[Memories, argparse.Namespace], Answer]] = {
    "list": _list,
    "search": _search,
    "store": _store,
    "forget": _forget,
    "undo": _undo,
    "approve": _approve,
    "revoke": _revoke,
}


def hook(args: argparse.Namespace) -> int:
    """Print memories before an answer, or store what the user said; standard input holds it as the host has it."""
    texts, ended_well = _user_texts(sys.stdin.read())
    with _opened(args) as opened:
        if args.name == "recall":
            block = agent_memories.block(opened, texts[-1]) if texts else ""
            return show(args, {"prependContext": block}, block.splitlines())
        if opened.rule("autoCapture") is not True:
            off = "Capture is off: plugins.entries.memory-lancedb.config.autoCapture is not true."
            return show(args, {"stored": 0, "off": off}, [off])
        stored, left = agent_memories.capture(opened, texts if ended_well else ())
    entries = [{"action": item.action, "id": item.entry.id, "text": item.entry.text} for item in stored]
    data = {"entries": entries, "left": [{"text": text, "why": why} for text, why in left]}
    return show(args, data, [agent_memories.captured(stored, left)])


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
