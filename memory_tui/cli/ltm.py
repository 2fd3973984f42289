"""Commands of the long-term memories in LanceDB."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_tui.cli.common import Command, at_least, confirmed, options, positive, spoken, waiting
from memory_tui.core.errors import QueryError, SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory_tui.ltm.memories import Memories
    from memory_tui.recalls.recall_log import RecallEntry

_PAGE = 50
Answer = tuple[Any, Iterable[str], int]
"""What is printed as JSON, what a person reads, the exit code."""


def _declare_ltm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=tuple(_RUN),
        metavar="ACTION",
        help=f"one of {', '.join(_RUN)}",
    )
    parser.add_argument(
        "words", nargs="*", default=[], type=spoken, metavar="WORD", help="a text, a query, an id, a file or a change"
    )
    parser.add_argument("-n", "--limit", type=positive, metavar="N", help="how many (default: list 50, else 5 or 10)")
    parser.add_argument("--offset", type=at_least(0), metavar="N", help="list: how many of the newest to pass over")
    parser.add_argument("--min-score", type=at_least(0), metavar="F", help="search, duplicates: the least score")
    parser.add_argument("--category", metavar="NAME", help="preference, fact, decision, entity or other")
    parser.add_argument("--importance", type=at_least(0), metavar="F", help="store, edit: from 0 to 1")
    parser.add_argument("--text", type=spoken, help="edit: the new text")
    parser.add_argument("--cols", metavar="A,B", help="query: columns (default: all but the vector)")
    parser.add_argument("--filter", type=spoken, metavar="X", help="query: one comparison, like 'importance >= 0.8'")
    parser.add_argument("--order-by", metavar="COLUMN[:desc]", help="query: the column that orders the rows")
    parser.add_argument("--list", action="store_true", help="undo: list the changes instead")
    parser.add_argument("--yes", action="store_true", help="agree that memory-tui writes this table")


@contextmanager
def _opened(given: argparse.Namespace) -> Iterator[Memories]:
    """The memories that the options name; no workspace has to be there."""
    from memory_tui import plan
    from memory_tui.approval import Approvals
    from memory_tui.ltm.memories import Memories

    choices = plan.choose(options(given))
    memories = Memories(choices, Approvals(choices.workspace))
    try:
        yield memories
    finally:
        memories.close()


def _ltm(given: argparse.Namespace) -> int:
    from memory_tui.render import as_text

    run, writes = _RUN[given.action]
    with _opened(given) as memories:
        if writes and not hasattr(given, "list"):
            _agree(given, memories)
        with waiting("Working on the memories"):
            data, lines, status = run(memories, given)
        if hasattr(given, "json"):
            as_text.print_json(data)
        else:
            as_text.print_lines(lines)
    return status


def _agree(given: argparse.Namespace, memories: Memories) -> None:
    """Ask a person once whether a table that is there may be written; what refuses to write says how to agree."""
    if hasattr(given, "read_only") or not memories.exists() or memories.writable:
        return
    question = f"memory-tui has only read the memories in {memories.location.shown} so far. May it write them?"
    if confirmed(question, given):
        memories.approve("ltm --yes" if hasattr(given, "yes") else "ltm")


def _word(given: argparse.Namespace, what: str) -> str:
    """The words as one text. Raises QueryError where there is none."""
    text = " ".join(given.words)
    if not text.strip():
        raise QueryError(f"memory-tui ltm {given.action} takes {what}.", f"memory-tui ltm {given.action} {what}")
    return text


# --- reading -------------------------------------------------------------------------------------------------------


def _list(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.ltm import entry
    from memory_tui.ltm.lance import TableMissing
    from memory_tui.render import ltm_text

    limit, offset = getattr(given, "limit", _PAGE), int(getattr(given, "offset", 0))
    category = entry.require_category(given.category) if hasattr(given, "category") else ""
    try:
        table = memories.table()
    except TableMissing as missing:
        return {"entries": [], "total": 0, "offset": 0}, [missing.message, missing.next_step], 0
    entries, total = table.page(limit, offset, category), table.facts().rows
    if category:
        total = sum(one.category == category for one in table.entries())
    data = {"entries": [one.as_dict() for one in entries], "total": total, "offset": offset}
    return data, ltm_text.page(entries, total, offset), 0


def _search(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.ltm.memories import COMMAND_MIN, LIMIT
    from memory_tui.render import ltm_text

    found = memories.search(
        _word(given, "QUERY"),
        getattr(given, "limit", LIMIT),
        getattr(given, "min_score", COMMAND_MIN),
        getattr(given, "category", ""),
    )
    return ltm_text.search_data(found), ltm_text.search(found), 0


def _query(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.core.sanitize import one_line
    from memory_tui.ltm import entry_table

    columns = [name.strip() for name in getattr(given, "cols", "").split(",") if name.strip()]
    rows = entry_table.queried(
        memories.table(),
        columns,
        getattr(given, "filter", "") or " ".join(given.words),
        getattr(given, "limit", 10),
        getattr(given, "order_by", ""),
    )
    return {"rows": rows}, ("  ".join(one_line(f"{name}={row[name]}") for name in row) for row in rows), 0


def _stats(memories: Memories, _given: argparse.Namespace) -> Answer:
    from memory_tui.render import ltm_text

    found = ltm_text.stats_data(memories)
    return found, ltm_text.stats(found), 0


def _show(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.core.sanitize import safe
    from memory_tui.render import ltm_text

    found = memories.get(_word(given, "ID"))
    return found.as_dict(), [found.id, ltm_text.entry(found), "", *safe(found.text, keep_newlines=True).split("\n")], 0


def _duplicates(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.render import ltm_text

    pairs = memories.near_duplicates(getattr(given, "min_score", 0.9), getattr(given, "limit", 100))
    data = [{"score": round(score, 6), "entries": [one.as_dict(), other.as_dict()]} for one, other, score in pairs]
    lines = [
        line
        for one, other, score in pairs
        for line in (f"{score:.3f}  {ltm_text.entry(one)}", f"       {ltm_text.entry(other)}", "")
    ]
    return {"pairs": data}, lines or ["No two entries are near each other."], 0


def recalled_again(given: argparse.Namespace, entry: RecallEntry) -> int:
    """What a logged recall of an agent got, and would get now."""
    from memory_tui.ltm.memories import LIMIT, TOOL_MIN
    from memory_tui.render import as_text, ltm_text

    if hasattr(given, "why"):
        raise QueryError(f"{entry.id} asked the long-term memories, not the notes.", "memory-tui ltm search says why.")
    with _opened(given) as memories:
        found = memories.search(entry.query, int(entry.requested.get("limit", LIMIT)), TOOL_MIN, explained=False)
    if hasattr(given, "json"):
        as_text.print_json(ltm_text.recalled_again_data(entry, found))
    else:
        as_text.print_lines(ltm_text.recalled_again(entry, found))
    return 0


# --- changing ------------------------------------------------------------------------------------------------------


def _store(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.ltm.entry import IMPORTANCE
    from memory_tui.render import ltm_text

    done = memories.store(
        _word(given, "TEXT"), getattr(given, "importance", IMPORTANCE), getattr(given, "category", "")
    )
    data = {"action": done.action, "entry": done.entry.as_dict(), "score": round(done.score, 6), "change": done.change}
    return data, ltm_text.stored(done), 0


def _edit(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.render import ltm_text

    if len(given.words) != 1:
        raise QueryError("memory-tui ltm edit takes one ID.", 'memory-tui ltm edit ID --text "TEXT" --importance 0.9')
    wanted = {name: getattr(given, name) for name in ("text", "importance", "category") if hasattr(given, name)}
    if not wanted:
        raise SettingError("What is to be changed?", "Name --text, --importance or --category.")
    found, change = memories.edit(given.words[0], **wanted)
    line = f"Changed: {ltm_text.entry(found)}" if change else "Nothing is different."
    return {"entry": found.as_dict(), "change": change}, [line], 0


def _forget(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.ltm import entry
    from memory_tui.render import ltm_text

    text = _word(given, "ID or QUERY")
    named = [memories.get(word).id for word in given.words] if all(map(entry.is_id, given.words)) else []
    done = memories.forget(named) if named else memories.forget_by_query(text, by_words=True)
    data = {
        "action": "deleted" if done.entries else "candidates",
        "deleted": [one.as_dict() for one in done.entries],
        "candidates": [one.as_dict() for one in done.candidates],
        "change": done.change,
    }
    return data, ltm_text.forgotten(done), 0


def _undo(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.render import ltm_text

    if hasattr(given, "list"):
        changes = memories.journal.changes()
        lines = [ltm_text.change(one) for one in reversed(changes)] or ["No change was made yet."]
        return {"changes": [one.shown for one in changes]}, lines, 0
    word = given.words[0] if given.words else "0"
    if not (word.isascii() and word.isdigit()):
        raise QueryError("memory-tui ltm undo takes the number of a change.", "memory-tui ltm undo --list shows them.")
    done = memories.undo(int(word))
    return done.shown, [f"Done: {ltm_text.change(done)}"], 0


def _export(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.ltm import entry_file

    path = Path(_word(given, "FILE")).expanduser()
    count = entry_file.write(memories, path)
    return {"entries": count, "file": str(path)}, [f"Wrote {count:,} entries to {path}."], 0


def _import(memories: Memories, given: argparse.Namespace) -> Answer:
    from memory_tui.ltm import entry_file

    done = entry_file.read(memories, Path(_word(given, "FILE")).expanduser())
    lines = [f"Added {done.added:,} entries.", *(f"Left out: {why}" for why in done.left)]
    return {"added": done.added, "left": list(done.left)}, lines, 0


def _approve(memories: Memories, _given: argparse.Namespace) -> Answer:
    memories.approve("ltm approve")
    shown = memories.location.shown
    return {"approved": shown}, [f"memory-tui may write the memories in {shown}.", "To withdraw: ltm revoke."], 0


def _revoke(memories: Memories, _given: argparse.Namespace) -> Answer:
    from memory_tui.ltm.memories import WRITES

    gone = [made.host for made in memories.approvals.revoke(WRITES)]
    return {"revoked": gone}, [f"Approval withdrawn: {one}" for one in gone] or ["There was no approval."], 0


# --- hooks ---------------------------------------------------------------------------------------------------------


def hook(given: argparse.Namespace) -> int:
    """Long-term memories before an answer, or out of what the user said; standard input holds it as the host has it."""
    from memory_tui.ltm import agent_answers
    from memory_tui.render import as_text

    said, ended_well = _said(given)
    with _opened(given) as memories:
        if given.name == "recall":
            block = agent_answers.block(memories, said[-1]) if said and memories.rules.auto_recall else ""
            as_text.print_json({"prependContext": block}) if hasattr(given, "json") else as_text.print_lines(
                block.splitlines()
            )
            return 0
        if not memories.rules.auto_capture:
            off = "Capture is off: plugins.entries.memory-lancedb.config.autoCapture is not true."
            as_text.print_json({"stored": 0, "off": off}) if hasattr(given, "json") else as_text.print_lines([off])
            return 0
        done = agent_answers.capture(memories, said if ended_well else ())
    if hasattr(given, "json"):
        stored = [{"action": one.action, "id": one.entry.id, "text": one.entry.text} for one in done.stored]
        as_text.print_json({"entries": stored, "left": [{"text": text, "why": why} for text, why in done.left]})
    else:
        as_text.print_lines([done.sentence])
    return 0


def _said(given: argparse.Namespace) -> tuple[list[str], bool]:
    """What the user said, and whether the run ended well: JSON of a host's event, a transcript, or plain text."""
    if hasattr(given, "transcript"):
        from memory_tui.openclaw import session_note

        path = Path(given.transcript).expanduser()
        session_note.require(path)
        return [one.text for one in session_note.messages(path) if one.role == "user"], True
    text = sys.stdin.read()
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return [text] if text.strip() else [], True
    if not isinstance(event, dict):
        return [], True
    if isinstance(event.get("prompt"), str):
        return [event["prompt"]], True
    rows = event.get("messages")
    users = (
        [row for row in rows if isinstance(row, dict) and row.get("role") == "user"] if isinstance(rows, list) else []
    )
    return [part for row in users for part in _parts(row.get("content"))], event.get("success", True) is True


def _parts(content: object) -> list[str]:
    """The texts of a message, which is a text or a list of parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [str(part["text"]) for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


_RUN: dict[str, tuple[Callable[[Memories, argparse.Namespace], Answer], bool]] = {
    "list": (_list, False),
    "search": (_search, False),
    "query": (_query, False),
    "stats": (_stats, False),
    "show": (_show, False),
    "duplicates": (_duplicates, False),
    "store": (_store, True),
    "edit": (_edit, True),
    "forget": (_forget, True),
    "undo": (_undo, True),
    "export": (_export, False),
    "import": (_import, True),
    "approve": (_approve, False),
    "revoke": (_revoke, False),
}
"""Each action, and whether it writes the table."""

COMMANDS: dict[str, Command] = {"ltm": Command(_ltm, _declare_ltm)}
