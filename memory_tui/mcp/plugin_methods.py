"""Private methods for the plugin in OpenClaw's memory slot: what the host asks beside the agent's tools.

Shapes are those of OpenClaw's memory manager (2026.9.6). A hit carries the annotations of the one entry that it stands
in; a piece that holds several entries carries none, because triggers of one say nothing about the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_tui import jsstring
from memory_tui.cancel import Stop
from memory_tui.errors import MemoryTuiError, QueryError
from memory_tui.mcp import tools
from memory_tui.mcp.schemas import arguments
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.workspace import roots
from memory_tui.workspace.annotations import Annotations, without_markers
from memory_tui.workspace.chunking_2026_9 import chunk_note

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

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


def answer(method: str, memory: Engine, args: Mapping[str, Any], cancel: Stop) -> dict[str, Any]:
    """Answer one of the private methods. Raises QueryError for wrong parameters, Cancelled."""
    match method.rpartition("/")[2]:
        case "search":
            return search(memory, args, cancel)
        case "entries":
            return entries(memory, args)
        case _:
            return status(memory)


def search(memory: Engine, args: Mapping[str, Any], cancel: Stop) -> dict[str, Any]:
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


def entries(memory: Engine, args: Mapping[str, Any]) -> dict[str, Any]:
    """List entries of MEMORY.md and USER.md that have {with: "triggers" | "project"}, at most `limit`."""
    member, limit = args.get("with"), args.get("limit")
    if member not in ("triggers", "project"):
        raise QueryError("with is triggers or project.", "Say which entries are meant.")
    most = min(limit, _MOST_ENTRIES) if isinstance(limit, int) and limit > 0 else _MOST_ENTRIES
    fitting = [entry for entry in _entries(memory) if getattr(entry.notes, member)]
    return {"entries": [_candidate(entry, memory) for entry in fitting[:most]]}


def status(memory: Engine) -> dict[str, Any]:
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
