"""Answer a call of a tool, and say what is to be logged of it. Imported when the memory is first asked."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import jsstring
from memory_tui.backends import memories
from memory_tui.backends.memories import ToolAnswer
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError, QueryError
from memory_tui.hosts.wiring import PROOF_CLIENT
from memory_tui.mcp import tools
from memory_tui.mcp.schemas import arguments
from memory_tui.mcp.tools import AnswerRules, memory_get, memory_search
from memory_tui.openclaw.prompt import GET, RECALL, SEARCH
from memory_tui.recalls import rerun
from memory_tui.recalls.recall_log import NONE_NEAR, LoggedHit, RecallEntry
from memory_tui.workspace import roots
from memory_tui.workspace.annotations import Annotations, without_markers
from memory_tui.workspace.chunking_2026_9 import chunk_note

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

TOO_LATE = "This answer came too late and was not delivered."


class Call(Struct):
    """Who calls a tool of `memory`, and when that began."""

    memory: Engine
    tool: str
    client: str
    at: float = 0.0
    began: float = 0.0

    def __post_init__(self) -> None:
        self.at, self.began = time.time(), time.perf_counter()

    def entry(self, query: str, outcome: str) -> RecallEntry:
        """Return what is logged of the call, which ends now."""
        ms = (time.perf_counter() - self.began) * 1000
        return RecallEntry(self.tool, query, self.at, self.client, self.memory.plan.agent.id, outcome=outcome, ms=ms)


def search(
    memory: Engine, args: Mapping[str, Any], rules: AnswerRules, client: str, cancel: Stop, *, late: bool = False
) -> tuple[dict[str, Any], RecallEntry | None]:
    """Answer memory_search. Raises QueryError, Cancelled."""
    call = Call(memory, SEARCH, client)
    traced = memory_search(memory, args, rules, cancel, late=late)
    answer = traced.answer
    if client.startswith(PROOF_CLIENT):
        return answer, None
    outcome = answer["empty"]["sentence"] if "empty" in answer else answer.get("error", "")
    entry = replace(
        call.entry(str(args.get("query")), outcome),
        corpus=str(args.get("corpus") or ""),
        most_characters=rules.max_injected_chars,
        by_words=late,
        backend=answer.get("backend", ""),
    )
    # Whoever asked has been given another answer when this one comes too late.
    too_late = cancel.is_set()
    if traced.trace is not None:
        is_cut = "clamped" in answer and bool(answer["clamped"]["cut"])
        entry = rerun.with_trace(entry, traced.trace, () if too_late else traced.delivered, is_cut=is_cut)
    elif answer.get("backend") == "qmd" and not too_late:
        entry = _with_hits_of_qmd(entry, answer)
    return answer, replace(entry, outcome=TOO_LATE, level="") if too_late else entry


def get(memory: Engine, args: Mapping[str, Any], client: str) -> tuple[dict[str, Any], RecallEntry]:
    """Answer memory_get. Raises QueryError."""
    call = Call(memory, GET, client)
    answer = memory_get(memory, args)
    if answer["status"] != "ok":
        return answer, call.entry(answer["path"], answer.get("error", "There is no such note."))
    first, last = answer["from"], answer["from"] + answer["lines"] - 1
    entry = call.entry(answer["path"], f"lines {first} to {last}")
    return answer, replace(entry, first_line=first, last_line=last)


def entries(memory: Engine, tool: str, args: Mapping[str, Any], client: str) -> tuple[ToolAnswer, RecallEntry | None]:
    """Answer memory_recall, memory_store or memory_forget. Raises MemoryTuiError."""
    request, call = arguments(tool, args), Call(memory, tool, client)
    answer = memories.answer(memory.memories, tool, request)
    if tool != RECALL:
        return answer, None
    hits: Sequence[Mapping[str, Any]] = answer.details.get("memories", ())
    return answer, replace(
        call.entry(request["query"], "" if hits else NONE_NEAR),
        requested={"limit": request["limit"]} if "limit" in request else {},
        hits=tuple(LoggedHit(hit["id"], 0, 0, hit["score"], hit["score"], 0.0) for hit in hits),
    )


def failed_recall(memory: Engine, args: Mapping[str, Any], client: str, error: MemoryTuiError) -> RecallEntry:
    """Return what is logged of a memory_recall that failed."""
    return Call(memory, RECALL, client).entry(str(args.get("query")), error.message)


def _with_hits_of_qmd(entry: RecallEntry, answer: dict[str, Any]) -> RecallEntry:
    """Return `entry` with the hits that went out, by QMD's ranks and scores; of its index nothing would last."""
    clamped = answer.get("clamped")
    last = len(answer["results"]) if clamped and clamped["cut"] else 0
    hits = tuple(
        LoggedHit(
            hit["path"],
            hit["startLine"],
            hit["endLine"],
            hit["score"],
            0.0,
            0.0,
            cut=place == last,
            rank=hit.get("rank", place),
        )
        for place, hit in enumerate(answer["results"], 1)
    )
    ranked = len(hits) + (clamped["dropped"] if clamped else 0)
    outcome = "" if hits else "QMD found nothing."
    return replace(entry, provider="qmd", model="qmd", hits=hits, ranked=ranked, outcome=outcome)


# --- what the plugin of OpenClaw asks ---------------------------------------------------------------------------------

_BY_ENTRIES = ("MEMORY.md", "USER.md")
_MOST_ENTRIES = 512
_SNIPPET_UNITS = 700


class Entry(NamedTuple):
    """An annotated entry of a curated note: its lines (1-based, both included), its text without the markers."""

    path: str
    first: int
    last: int
    text: str
    notes: Annotations


def plugin_answer(method: str, memory: Engine, args: Mapping[str, Any], cancel: Stop) -> dict[str, Any]:
    """Answer one of the private methods. Raises QueryError for wrong parameters, Cancelled."""
    match method.rpartition("/")[2]:
        case "search":
            return plugin_search(memory, args, cancel)
        case "entries":
            return plugin_entries(memory, args)
        case _:
            return plugin_status(memory)


def plugin_search(memory: Engine, args: Mapping[str, Any], cancel: Stop) -> dict[str, Any]:
    """Answer {query, maxResults?, minScore?, sources?, lexicalOnly?, sessionKey?}; `lexicalOnly` waits for no provider.

    Raises QueryError and Cancelled; a memory that cannot be asked is an answer with `disabled`.
    """
    sources = args.get("sources")
    query = {name: args.get(name) for name in ("query", "maxResults", "minScore")}
    if isinstance(sources, list) and len(sources) == 1:
        query["corpus"] = sources[0]
    key = args.get("sessionKey")
    manner = tools.AnswerRules(session_key=key if isinstance(key, str) else "")
    answer: dict[str, Any]
    if args.get("lexicalOnly") is True:
        answer = {**_by_words(memory, query, manner, cancel)}
    else:
        answer = {**tools.memory_search(memory, query, manner, cancel).answer}
    entries = tuple(_entries(memory))
    answer["results"] = [_annotated(hit, entries, memory) for hit in answer["results"]]
    return answer


def _by_words(memory: Engine, args: Mapping[str, Any], manner: tools.AnswerRules, cancel: Stop) -> dict[str, Any]:
    request = arguments(SEARCH, args)
    if not jsstring.trim(request["query"]):
        raise QueryError("query required", "Say what to look for.")
    try:
        memory.plan.require_enabled()
        settings = tools.requested(memory.plan.settings, request.get("maxResults"), request.get("minScore"))
        source = "" if request.get("corpus", "all") == "all" else request["corpus"]
        evidence = memory.search.gather(request["query"], cancel, source, by_words=True)
        ranked = tools.Ranked(memory.search.rank(evidence, settings), evidence)
        return tools.answer(ranked, memory.plan.provider, manner)
    except QueryError:
        raise
    except MemoryTuiError as error:
        return tools.unavailable(error)


def plugin_entries(memory: Engine, args: Mapping[str, Any]) -> dict[str, Any]:
    """List entries of MEMORY.md and USER.md that have {with: "triggers" | "project"}, at most `limit`."""
    member, limit = args.get("with"), args.get("limit")
    if member not in ("triggers", "project"):
        raise QueryError("with is triggers or project.", "Say which entries are meant.")
    most = min(limit, _MOST_ENTRIES) if isinstance(limit, int) and limit > 0 else _MOST_ENTRIES
    fitting = [entry for entry in _entries(memory) if getattr(entry.notes, member)]
    return {"entries": [_candidate(entry, memory) for entry in fitting[:most]]}


def plugin_status(memory: Engine) -> dict[str, Any]:
    """Tell the state of the index in the names of OpenClaw's status."""
    now = memory.status()
    fallback = now.fallback or {}
    return {
        "backend": now.backend,
        "provider": now.provider,
        "model": now.model,
        "requestedProvider": now.requested_provider,
        "files": now.files,
        "chunks": now.chunks,
        "dirty": bool(now.freshness.stale),
        "workspaceDir": now.workspace_dir,
        "dbPath": now.db_path,
        "extraPaths": list(now.extra_paths),
        "sources": list(now.sources),
        "sourceCounts": [{"source": row.source, "files": row.files, "chunks": row.chunks} for row in now.source_counts],
        "cache": {"enabled": now.cache.enabled, "entries": now.cache.entries},
        "fts": {"enabled": now.fts.enabled, "available": now.fts.available},
        "vector": {
            "enabled": now.vector.enabled,
            "available": now.provider != "none",
            "semanticAvailable": now.provider != "none",
            **({"dims": now.vector.dims} if now.vector.dims else {}),
        },
        **({"fallback": {"from": fallback["from"], "reason": fallback["reason"]}} if fallback else {}),
        "custom": {
            "profile": now.profile,
            "profileOrigin": now.profile_origin,
            "agentId": now.agent_id,
            "answeredBy": os.getpid(),
        },
    }


def _entries(memory: Engine) -> Iterator[Entry]:
    """The annotated entries of the curated notes; a note that is not there has none."""
    for path in _BY_ENTRIES:
        try:
            text = roots.document(memory.plan.roots, path).text
        except MemoryTuiError:
            continue
        for chunk, notes in chunk_note(text, path):
            if notes != Annotations():
                yield Entry(path, chunk.start_line, chunk.end_line, chunk.text, notes)


def _candidate(entry: Entry, memory: Engine) -> dict[str, Any]:
    return {
        "path": entry.path,
        "startLine": entry.first,
        "endLine": entry.last,
        "score": 0.0,
        "snippet": tools.visible(jsstring.utf16_head(entry.text, _SNIPPET_UNITS)),
        "source": "memory",
        **_members(entry.notes),
        "observedAt": _observed(memory, entry.path),
    }


def _annotated(hit: Mapping[str, Any], entries: tuple[Entry, ...], memory: Engine) -> dict[str, Any]:
    inside = [
        entry.notes
        for entry in entries
        if entry.path == hit["path"] and entry.first <= hit["startLine"] and hit["endLine"] <= entry.last
    ]
    members = _members(inside[0]) if inside else {}
    return {
        **hit,
        "snippet": without_markers(hit["snippet"]),
        **members,
        "observedAt": _observed(memory, hit["path"]) if hit["source"] == "memory" else 0,
    }


def _members(notes: Annotations) -> dict[str, Any]:
    members = {"importance": notes.importance, "triggers": notes.triggers, "projectKey": notes.project}
    return {name: value for name, value in members.items() if value}


def _observed(memory: Engine, path: str) -> int:
    """When the note was last changed, in milliseconds; 0 where nobody can tell."""
    try:
        return roots.locate(memory.plan.roots, path).mtime_ns // 1_000_000
    except MemoryTuiError:
        return 0
