"""The tools of OpenClaw's memory, and the methods of its plugin; each call tells what is logged of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import jsstring
from memory_tui.backends import lancedb
from memory_tui.backends.qmd import QmdAnswer
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.errors import Cancelled, IndexUnavailable, MemoryTuiError, PathRefused, ProviderError, QueryError
from memory_tui.explain import wording
from memory_tui.explain.trace_json import markers, overtaken, plain
from memory_tui.formatting import one_line, safe
from memory_tui.hosts.wiring import PROOF_CLIENT
from memory_tui.mcp.schemas import OTHERS, UNTRUSTED, arguments
from memory_tui.mcp.wire import Caller
from memory_tui.openclaw import prompt
from memory_tui.recalls import rerun
from memory_tui.recalls.recall_log import NONE_NEAR, LoggedHit, RecallEntry, hit_of
from memory_tui.search import excerpts
from memory_tui.search.excerpts import Excerpt
from memory_tui.search.retrieve import Evidence
from memory_tui.search.trace import Mode, Trace
from memory_tui.secrets import instructions
from memory_tui.sentences import as_notice, why_empty
from memory_tui.workspace import roots
from memory_tui.workspace.annotations import Annotations, is_overtaken, without_markers
from memory_tui.workspace.chunking import Chunk, chunk_note
from memory_tui.workspace.roots import NoteMissing, RootState, named_lines

NEAREST_MISSES = 3
_STARTING_SECONDS = 25.0
"""How long the first answer waits for the first index."""
_UNDER_WAY_SECONDS = 0.25
"""How long any answer waits for notes that are being indexed already."""
_PAUSE_SECONDS = 0.05
_KNOBS = {"maxResults": "query.maxResults", "minScore": "query.minScore", "maxCharacters": "query.maxCharacters"}
"""What an agent may ask for, with the knob that it turns."""
Ranking: TypeAlias = tuple[Trace, Evidence]


class AnswerRules(Struct, frozen=True):
    """How answers are given: citations, the session they depend on, and a bound on injected characters (0: none)."""

    citations: prompt.Mode = "auto"
    session_key: str = ""
    max_injected_chars: int = 0


class TracedAnswer(Struct, frozen=True):
    """An answer, and the trace it was made of; None where there was no search."""

    answer: dict[str, Any]
    trace: Trace | None
    delivered: tuple[Excerpt, ...] = ()
    """What went out of `trace` after every cut."""


def memory_search(
    memory: Engine,
    args: Mapping[str, Any],
    manner: AnswerRules | None = None,
    cancel: Stop | None = None,
    *,
    by_words: bool = False,
) -> TracedAnswer:
    """Ask the memory; `by_words` asks for what can be had at once: words of what is indexed by now.

    A memory that cannot be asked is an answer too (`disabled`). Raises QueryError and Cancelled.
    """
    request = arguments(prompt.SEARCH, args, shared=memory.scopes.configured)
    if not jsstring.trim(request["query"]):
        raise QueryError("query required.", "Say what to look for.")
    manner, cancel = manner or AnswerRules(), cancel or Stop()
    corpus = request.get("corpus", "all")
    source = "" if corpus == "all" else corpus
    try:
        memory.plan.require_enabled()
        if (refusal := memory.backend.refusal(manner.session_key)) is not None:
            return TracedAnswer(_of_qmd(refusal, request, manner), None)
        memory, standing = memory.of_scope(request.get("scope", ""))
        _require(memory, source)
        knobs = {knob: request[name] for name, knob in _KNOBS.items() if name in request}
        settings = memory.plan.settings.update(knobs, "the agent")
        most = settings.whole("query.maxResults")
        if not by_words and (of_qmd := memory.backend.ask(request["query"], most, source, cancel)) is not None:
            return TracedAnswer(_of_qmd(of_qmd, request, manner), None)
        rank = partial(memory.search.ranked, request["query"], settings, cancel, source)
        trace, evidence = rank(by_words=True) if by_words else _waited(memory, rank, cancel)
        is_sent = request.get("nearest", False) or not trace.keeps_back
        parts = excerpts.excerpts(trace, evidence, settings.whole("query.maxCharacters")) if is_sent else ()
    except (QueryError, Cancelled):
        raise
    except MemoryTuiError as error:
        return TracedAnswer(unavailable(error), None)
    reply = _ranked_answer(trace, parts, memory.plan.provider, manner)
    if standing is None:
        _say_what_is_lost(reply, memory.index.root_watch.lost())
    else:
        reply |= {"about": f"{OTHERS} {UNTRUSTED}", "shared": standing.as_dict()}
    if memory.backend.is_qmd and (failed := memory.backend.fallback()) is not None:
        reply["backend"] = "builtin"
        reason = one_line(f"{failed.reason} {failed.next_step}".strip())
        since = {"since": failed.since, "retryAt": failed.retry_at}
        reply["fallback"] = {"from": "qmd", "to": "builtin", "reason": reason, **since}
    return TracedAnswer(reply, trace, parts[: len(reply["results"])])


def _of_qmd(reply: QmdAnswer, request: dict[str, Any], manner: AnswerRules) -> dict[str, Any]:
    """Return what an agent is told of QMD's answer."""
    results = [
        {
            **_place(hit.path, hit.start_line, hit.end_line),
            "score": hit.score,
            "rank": hit.rank,
            "snippet": visible(hit.snippet),
            "source": hit.source,
        }
        for hit in reply.hits
        # As OpenClaw does: QMD's numbers know no minScore but one that the agent names.
        if hit.score >= request.get("minScore", 0.0)
    ]
    answer: dict[str, Any] = {
        "about": UNTRUSTED,
        "results": results,
        **dict.fromkeys(("backend", "provider", "model"), "qmd"),
        "citations": manner.citations,
    }
    _cite_and_clamp(answer, manner)
    if reply.behind:
        answer["stale"] = True
    if reply.claims:
        answer["notices"] = [one_line(claim.sentence) for claim in reply.claims]
    return answer


def _require(memory: Engine, source: str) -> None:
    if source and source not in memory.plan.roots.sources:
        what = "The transcripts of sessions are" if source == "sessions" else "The notes are"
        raise IndexUnavailable(
            f"{what} not part of this memory.",
            "Leave corpus out, or add the source to sources in the configuration"
            + (" and set experimental.sessionMemory." if source == "sessions" else "."),
        )


def _waited(memory: Engine, rank: Callable[[], Ranking], cancel: Stop) -> Ranking:
    """Return the ranking, once notes that are being indexed, or the first index, are there or have taken too long."""
    _wait(memory, _UNDER_WAY_SECONDS, cancel)
    if (ranking := _indexed(rank)) is not None:
        return ranking
    memory.index.request_sync("search")
    end = time.monotonic() + _STARTING_SECONDS
    while time.monotonic() < end:
        _wait(memory, end - time.monotonic(), cancel)
        # The first index may be made by another process, whose end cannot be waited for.
        if not memory.index.written_elsewhere or (ranking := _indexed(rank)) is not None:
            break
        time.sleep(_PAUSE_SECONDS)
    return ranking or rank()


def _indexed(rank: Callable[[], Ranking]) -> Ranking | None:
    """Return the ranking, None while nothing is indexed."""
    try:
        ranking = rank()
    except IndexUnavailable:
        return None
    return None if (empty := ranking[0].empty) and empty.kind == "empty_index" else ranking


def _wait(memory: Engine, seconds: float, cancel: Stop) -> None:
    """Wait until nothing is being indexed, or `seconds` are over. Raises Cancelled."""
    for _ in range(round(seconds / _PAUSE_SECONDS)):
        cancel.check()
        if memory.index.writer.wait_idle(_PAUSE_SECONDS):
            return


# --- answers -------------------------------------------------------------------------------------------------------


def _ranked_answer(trace: Trace, parts: Sequence[Excerpt], provider: str, manner: AnswerRules) -> dict[str, Any]:
    """Return what an agent is told of a ranking, of which it gets `parts`; `provider` is the one that was asked for."""
    reply: dict[str, Any] = {
        "about": UNTRUSTED,
        "results": [_row(part) for part in parts],
        "provider": trace.provider,
        "citations": manner.citations,
        "mode": _MODES[trace.mode],
    }
    if trace.provider != "none":
        reply["model"] = trace.model
    if (instead := _instead(trace, provider)) is not None:
        reply["fallback"] = instead
    if trace.level is not None and trace.recalled:
        level = {"level": trace.level.level, "held": trace.level.signals.share}
        nearest = {} if parts else {"nearest": len(trace.recalled)}
        reply["answerLevel"] = {**level, "sentence": one_line(trace.level.sentence), **nearest}
    if trace.empty is not None:
        sentence, step = map(one_line, why_empty(trace.empty, trace.profile))
        reply["empty"] = {"reason": trace.empty.kind, "sentence": sentence, "nextStep": step}
        reply["nearestMisses"] = [
            {
                **_place(lost.chunk.path, lost.chunk.start_line, lost.last_line),
                "score": lost.score,
                "reason": one_line(as_notice(lost.verdict).message),
            }
            for lost in trace.lost[:NEAREST_MISSES]
        ]
    _cite_and_clamp(reply, manner)
    if (waiting := wording.notes_lacking(trace, "memory_get", by_itself=True)) is not None:
        reply["stale"], (reply["warning"], reply["action"]) = True, waiting
    # What OpenClaw would have answered helps a person, not an agent; what is said of hits needs hits.
    spared = "" if reply["results"] else "found_by_meaning_alone"
    if notices := [row for row in trace.notices if not row.not_copied and row.kind != spared]:
        reply["notices"] = [one_line(notice.sentence) for notice in notices]
    return reply


def _instead(trace: Trace, provider: str) -> dict[str, Any] | None:
    """What answered instead of `provider`, of who answers, or of what was lost for this question alone."""
    instead = trace.who.instead if trace.who else None
    if instead is not None:
        members = ("from", "to", "reason", "model", "since", "retryAt")
        told = {name: instead[name] for name in members if instead[name] not in (None, "")}
        return told | {"reason": one_line(instead["reason"])}
    lost = next((notice for notice in trace.notices if notice.code in ("provider", "model_mismatch")), None)
    return {"from": provider, "reason": one_line(lost.sentence)} if lost else None


_MODES: dict[Mode, str] = {
    "hybrid": "hybrid",
    "keywords only": "fts-only",
    "vectors only": "vector-only",
    "nothing": "none",
}


def visible(text: str) -> str:
    """`text` of a note for an agent: tabs and line ends stay, what hides, steers or commands is made visible."""
    return "\t".join(safe(part, keep_newlines=True) for part in instructions.marked(text).split("\t"))


def _place(path: str, first: int, last: int) -> dict[str, Any]:
    """Return how each row begins: the lines that it is of."""
    return {"path": path, "startLine": first, "endLine": last}


def _row(part: Excerpt) -> dict[str, Any]:
    """Return the lines and the text of a part with the scores of its hit."""
    hit = part.hit
    row: dict[str, Any] = {
        **_place(hit.chunk.path, part.first, part.last),
        "score": hit.score,
        "vectorScore": hit.vector,
        "textScore": hit.text,
        "snippet": visible(part.text),
        "source": hit.chunk.source,
    }
    if also := [*dict.fromkeys(copy.path for copy in hit.copies if copy.path != hit.chunk.path)]:
        row |= {"copies": len(also), "alsoIn": also}
    if hit.newer:
        row["newerValue"] = hit.newer
    return row | overtaken(part.text, part.lines[0])


def _cite_and_clamp(answer: dict[str, Any], manner: AnswerRules) -> None:
    """Name the source of each hit where that is wanted, and keep the bound on injected characters."""
    if prompt.included(manner.citations, manner.session_key):
        for row in answer["results"]:
            row["citation"] = prompt.citation(row["path"], row["startLine"], row["endLine"])
    if clamped := clamp(answer["results"], manner.max_injected_chars):
        answer["clamped"] = clamped


def clamp(results: list[dict[str, Any]], most: int) -> dict[str, Any] | None:
    """Keep `most` UTF-16 units of snippets in all: the one that does not fit is cut, those after it are left out.

    OpenClaw does this for QMD (`memory.qmd.limits.maxInjectedChars`). None when everything fits, or `most` is 0.
    """
    room = most
    for at, hit in enumerate(results if most else ()):
        size = jsstring.utf16_len(hit["snippet"])
        if size > room:
            hit["snippet"] = jsstring.utf16_head(hit["snippet"], room)
            count = at + bool(hit["snippet"])
            dropped = len(results) - count
            del results[count:]
            return {"maxInjectedChars": most, "cut": count - at, "dropped": dropped}
        room -= size
    return None


def _say_what_is_lost(answer: dict[str, Any], roots: Iterable[RootState]) -> None:
    """Name the `roots` whose notes cannot be read: hits from there are what the index keeps of them."""
    for root in roots:
        detail = one_line(root.detail)
        answer.setdefault("roots", []).append({"path": one_line(root.path), "state": root.state, "detail": detail})
        if not root.readable:
            answer["stale"] = True
            answer["warning"] = f"{detail} Hits from there are what the index keeps of it."
            answer["action"] = "Tell the user that these notes cannot be read now."


_QUOTA = re.compile(r"insufficient_quota|quota|429")
"""OpenClaw's own pattern, so that agents read what OpenClaw tells them. It takes a rate limit for a used-up quota."""


def unavailable(error: MemoryTuiError, *, timed_out: bool = False) -> dict[str, Any]:
    """What an agent is told when there was no search: that the memory was not asked, why, and what to do."""
    reason = one_line(error.message) or "memory search unavailable"
    warning, action = "Memory search is unavailable. Tell the user that the memory was not searched.", error.next_step
    if isinstance(error, ProviderError):
        warning = "Memory search is unavailable: the embedding provider failed."
        action = action or "Check the configuration of the embedding provider, then ask again."
        if _QUOTA.search(reason.lower()):
            warning = "Memory search is unavailable: the quota of the embedding provider is exhausted."
            action = "Top up or switch the embedding provider, then ask again."
    answer: dict[str, Any] = {
        "results": [],
        "disabled": True,
        "unavailable": True,
        "error": reason,
        "warning": warning,
        "action": one_line(action) or "Run memory-tui status.",
    }
    return {**answer, "timedOut": True} if timed_out else answer


# --- reading -------------------------------------------------------------------------------------------------------


def memory_get(memory: Engine, args: Mapping[str, Any]) -> dict[str, Any]:
    """Lines of a note below the roots, at most 120 and 12,000 characters. Raises QueryError for wrong arguments.

    A note that is not there is empty text (`not_found`); a path that may not be read, or cannot be, is an `error`.
    """
    request = arguments(prompt.GET, args)
    path, first, last = named_lines(jsstring.trim(request["path"]))
    start, lines = request.get("from") or 0, request.get("lines") or 0
    if first is not None and not start:
        # A citation says them all.
        start, lines = max(1, first), lines or max(1, (last or first) - first + 1)
    if not path:
        raise QueryError("path required.", "Name a note, for instance MEMORY.md.")
    try:
        memory.plan.require_enabled()
        if "://" in path:
            raise PathRefused("This is a URL, not the path of a note.", "Name it as memory_search does.")
        memory, standing = memory.of_note(path)
        note = memory.notes.get(path, start or 1, lines or None)
    except NoteMissing:
        return {"status": "not_found", "path": jsstring.well_formed(path), "text": ""}
    except MemoryTuiError as error:
        return refused(path, error)
    answer: dict[str, Any] = {
        **({"about": f"{OTHERS} {UNTRUSTED}", "shared": standing.as_dict()} if standing else {"about": UNTRUSTED}),
        "status": "ok",
        "path": note.path,
        "text": visible(note.text.removesuffix("\n")),
        "from": note.start,
        "lines": note.lines,
        "totalLines": note.total_lines,
        **overtaken(note.text, note.start),
    }
    remarks = []
    if note.cut_line is not None:
        remarks.append(f"Line {note.cut_line} is longer than what is read at once, and was cut.")
    if note.next_from is not None:
        remarks.append(f"There is more: go on with from={note.next_from}.")
        answer["nextFrom"] = note.next_from
    if remarks:
        answer |= {"truncated": True, "text": f"{answer['text']}\n\n[{' '.join(remarks)}]"}
    return answer


def failed(tool: str, args: Mapping[str, Any], error: MemoryTuiError, *, timed_out: bool = False) -> dict[str, Any]:
    """Return what an agent is told where `tool` failed. Raises `error` where that is told by itself."""
    if tool == prompt.SEARCH:
        return unavailable(error, timed_out=timed_out)
    if tool == prompt.GET:
        return refused(str(args.get("path", "")), error)
    raise error


def refused(path: str, error: MemoryTuiError) -> dict[str, Any]:
    """What an agent is told when a note cannot be read."""
    code = "MEMORY_PATH_NOT_ALLOWED" if isinstance(error, PathRefused) else error.code.upper()
    return {
        "status": "error",
        "path": one_line(path, 200),
        "text": "",
        **({} if isinstance(error, PathRefused) else {"disabled": True}),
        "error": one_line(error.message, 500),
        "code": code,
        "action": one_line(error.next_step),
    }


# --- correcting ------------------------------------------------------------------------------------------------------


def memory_correct(memory: Engine, args: Mapping[str, Any]) -> dict[str, Any]:
    """Write a dated line that overtakes an older one, which stays with a mark; one change that `undo` takes back.

    Raises QueryError, EditRefused and PathRefused.
    """
    request = arguments(prompt.CORRECT, args)
    path, line, last = named_lines(request["supersedes"])
    if line is None or last not in (None, line):
        raise QueryError("supersedes names no single line.", "Name it as MEMORY.md:12 or MEMORY.md#L12.")
    curator = memory.notes.curator
    spot = curator.plan.said(curator.plan.spot(path, line))
    was = spot.texts()[0]
    if is_overtaken(was):
        raise QueryError(f"{spot.path}:{spot.first} is overtaken already.", "Correct the line that overtakes it.")
    done = curator.apply(curator.plan.supersede(request["text"], spot))
    return {
        "status": "ok",
        "path": done.change.files[0].path,
        "overtaken": f"{spot.path}:{spot.first}",
        "was": visible(was),
        "change": done.entry.id,
        "undo": f"memory-tui undo {done.entry.id}",
    }


# --- calls of hosts --------------------------------------------------------------------------------


TOO_LATE = "This answer came too late and was not delivered."


class Call(Struct, frozen=True):
    """One call of a tool: how it is answered, what takes the line for the log; `late` wants what can be had at once."""

    tool: str
    args: Mapping[str, Any]
    caller: Caller
    rules: AnswerRules
    log: Callable[[RecallEntry], None]
    late: bool = False
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)

    def entry(self, memory: Engine, query: str, outcome: str) -> RecallEntry:
        """Return what is logged of the call, which ends now."""
        ms, agent = (time.perf_counter() - self.began) * 1000, memory.plan.agent.id
        return RecallEntry(self.tool, query, self.at, self.caller.client, agent, outcome=outcome, ms=ms)


def answer(memory: Engine, call: Call) -> dict[str, Any] | lancedb.ToolAnswer:
    """Answer a call of an agent. Raises MemoryTuiError, Cancelled."""
    match call.tool:
        case "memory_search":
            return _search(memory, call)
        case "memory_get":
            return _get(memory, call)
        case "memory_correct":
            return memory_correct(memory, call.args)
        case _:
            return _entry_tool(memory, call)


def _search(memory: Engine, call: Call) -> dict[str, Any]:
    """Answer memory_search, and log what was delivered; with `late` words alone are searched."""
    rules, cancel = call.rules, call.caller.stop
    traced = memory_search(memory, call.args, rules, cancel, by_words=call.late)
    answer = traced.answer
    if call.late and traced.trace is not None:
        reason = "The whole search took too long; only words were looked for."
        answer |= {"partial": True, "timedOut": True, "fallback": {"from": memory.plan.provider, "reason": reason}}
    if call.caller.client.startswith(PROOF_CLIENT):
        return answer
    outcome = answer["empty"]["sentence"] if "empty" in answer else answer.get("error", "")
    entry = replace(
        call.entry(memory, str(call.args.get("query")), outcome),
        corpus=str(call.args.get("corpus") or ""),
        most_characters=rules.max_injected_chars,
        by_words=call.late,
        backend=answer.get("backend", ""),
    )
    # Whoever asked has been given another answer when this one comes too late.
    too_late = cancel.is_set()
    if traced.trace is not None:
        is_cut = "clamped" in answer and bool(answer["clamped"]["cut"])
        parts = () if too_late else traced.delivered
        entry = rerun.with_trace(entry, traced.trace, parts, is_cut=is_cut)
    elif answer.get("backend") == "qmd" and not too_late:
        entry = _with_hits_of_qmd(entry, answer)
    call.log(replace(entry, outcome=TOO_LATE, level="") if too_late else entry)
    return answer


def _get(memory: Engine, call: Call) -> dict[str, Any]:
    answer = memory_get(memory, call.args)
    first, last, outcome = 0, 0, answer.get("error", "There is no such note.")
    if answer["status"] == "ok":
        first, last = answer["from"], answer["from"] + answer["lines"] - 1
        outcome = f"lines {first} to {last}"
    call.log(replace(call.entry(memory, answer["path"], outcome), first_line=first, last_line=last))
    return answer


def _entry_tool(memory: Engine, call: Call) -> lancedb.ToolAnswer:
    """Answer memory_recall, memory_store or memory_forget."""
    request = arguments(call.tool, call.args)
    try:
        answer = lancedb.answer(memory.memories, call.tool, request)
    except MemoryTuiError as error:
        if call.tool == prompt.RECALL and not isinstance(error, QueryError):
            call.log(call.entry(memory, request["query"], error.message))
        raise
    if call.tool == prompt.RECALL:
        hits: Sequence[Mapping[str, Any]] = answer.details.get("memories", ())
        entry = replace(
            call.entry(memory, request["query"], "" if hits else NONE_NEAR),
            requested={"limit": request["limit"]} if "limit" in request else {},
            hits=tuple(LoggedHit(hit["id"], 0, 0, hit["score"], hit["score"], 0.0) for hit in hits),
        )
        call.log(entry)
    return answer


def _with_hits_of_qmd(entry: RecallEntry, answer: dict[str, Any]) -> RecallEntry:
    """Return `entry` with the hits that went out, by QMD's ranks and scores; of its index nothing would last."""
    clamped = answer.get("clamped")
    last = len(answer["results"]) if clamped and clamped["cut"] else 0
    hits = tuple(
        replace(hit_of(row), cut=place == last, rank=row.get("rank", place))
        for place, row in enumerate(answer["results"], 1)
    )
    ranked = len(hits) + (clamped["dropped"] if clamped else 0)
    outcome = "" if hits else next(iter(answer.get("notices", ())), "QMD found nothing.")
    return replace(entry, provider="qmd", model="qmd", hits=hits, ranked=ranked, outcome=outcome)


# --- what the plugin of OpenClaw asks ---------------------------------------------------------------------------------

_BY_ENTRIES = ("MEMORY.md", "USER.md")
_MOST_ENTRIES = 512
_SNIPPET_UNITS = 700
_OF_STATUS = (
    *("backend", "provider", "model", "requestedProvider", "files", "chunks", "workspaceDir", "dbPath", "extraPaths"),
    *("sources", "sourceCounts", "cache", "fts"),
)
"""Members of the status that are told as they are."""


def plugin_answer(method: str, memory: Engine, args: Mapping[str, Any], cancel: Stop) -> dict[str, Any]:
    """Answer one of the private methods. Raises QueryError for wrong parameters, Cancelled."""
    match method.rpartition("/")[2]:
        case "search":
            return _plugin_search(memory, args, cancel)
        case "entries":
            return _plugin_entries(memory, args)
        case _:
            return _plugin_status(memory)


def _plugin_search(memory: Engine, args: Mapping[str, Any], cancel: Stop) -> dict[str, Any]:
    """Answer {query, maxResults?, minScore?, sources?, lexicalOnly?, sessionKey?}; `lexicalOnly` waits for no provider.

    Raises QueryError and Cancelled; a memory that cannot be asked is an answer with `disabled`.
    """
    sources = args.get("sources")
    query = {name: args.get(name) for name in ("query", "maxResults", "minScore")}
    if isinstance(sources, list) and len(sources) == 1:
        query["corpus"] = sources[0]
    key = args.get("sessionKey")
    manner = AnswerRules(session_key=key if isinstance(key, str) else "")
    by_words = args.get("lexicalOnly") is True
    answer = memory_search(memory, query, manner, cancel, by_words=by_words).answer
    entries = tuple(_entries(memory))
    for hit in answer["results"]:
        first, last = hit["startLine"], hit["endLine"]
        of_entry = (
            notes
            for path, chunk, notes in entries
            if path == hit["path"] and chunk.start_line <= first and last <= chunk.end_line
        )
        hit["snippet"] = without_markers(hit["snippet"])
        hit |= markers(next(of_entry, Annotations()))
        hit["observedAt"] = _observed(memory, hit["path"]) if hit["source"] == "memory" else 0
    return answer


def _plugin_entries(memory: Engine, args: Mapping[str, Any]) -> dict[str, Any]:
    """List entries of MEMORY.md and USER.md that have {with: "triggers" | "project"}, at most `limit`."""
    member, limit = args.get("with"), args.get("limit")
    if member not in ("triggers", "project"):
        raise QueryError("with is triggers or project.", "Say which entries are meant.")
    most = min(limit, _MOST_ENTRIES) if isinstance(limit, int) and limit > 0 else _MOST_ENTRIES
    fitting = [entry for entry in _entries(memory) if getattr(entry[2], member)]
    return {
        "entries": [
            {
                **_place(path, chunk.start_line, chunk.end_line),
                "score": 0.0,
                "snippet": visible(jsstring.utf16_head(chunk.text, _SNIPPET_UNITS)),
                "source": "memory",
                **markers(notes),
                "observedAt": _observed(memory, path),
            }
            for path, chunk, notes in fitting[:most]
        ]
    }


def _plugin_status(memory: Engine) -> dict[str, Any]:
    """Tell the state of the index in the names of OpenClaw's status."""
    now = memory.status()
    told = plain(now)
    by_meaning = now.provider != "none"
    state: dict[str, Any] = {
        **{name: told[name] for name in _OF_STATUS},
        "dirty": bool(now.freshness.stale),
        "vector": {"enabled": now.vector.enabled, "available": by_meaning, "semanticAvailable": by_meaning},
        "custom": {"profile": now.profile, "agentId": now.agent_id},
    }
    if now.vector.dims:
        state["vector"]["dims"] = now.vector.dims
    if now.fallback:
        state["fallback"] = {name: now.fallback[name] for name in ("from", "reason")}
    return state


def _entries(memory: Engine) -> Iterator[tuple[str, Chunk, Annotations]]:
    """The annotated entries of the curated notes, without their markers; a note that is not there has none."""
    for path in _BY_ENTRIES:
        try:
            text = roots.document(memory.plan.roots, path).text
        except MemoryTuiError:
            continue
        yield from ((path, chunk, notes) for chunk, notes in chunk_note(text, path) if notes != Annotations())


def _observed(memory: Engine, path: str) -> int:
    """When the note was last changed, in milliseconds; 0 where nobody can tell."""
    try:
        return roots.locate(memory.plan.roots, path).mtime_ns // 1_000_000
    except MemoryTuiError:
        return 0
