"""Ask QMD a question, once it is seen that QMD can answer it; say why its answer lacks a line."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from memory_tui import durable, jsstring, locks
from memory_tui.approval import Approvals
from memory_tui.backends import qmd_program
from memory_tui.backends.qmd_program import (
    UPDATE,
    Collection,
    Coverage,
    Output,
    QmdFailure,
    QmdFolder,
    QmdIndex,
    WantedCollection,
)
from memory_tui.cancel import Stop
from memory_tui.config.keys import BY_PATH, QMD
from memory_tui.config.places import expand, state_folder
from memory_tui.errors import IndexUnavailable, PathRefused, QueryError, Unreadable
from memory_tui.formatting import plural
from memory_tui.plan import Plan
from memory_tui.sanitize import one_line
from memory_tui.workspace import notes, transcripts
from memory_tui.workspace.notes import Document
from memory_tui.workspace.scan import NoteFile

MOST_QUERY = 50_000
"""Characters of the longest question, as of the built-in index."""
APPROVED_AS = "qmd"
"""What the approval to run QMD is saved under."""
_NEEDED = {"search": (), "vsearch": ("embed",), "query": ("embed", "generate", "rerank")}
_EVERY_NOTE = "**/*.md"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DIRECT = {"default": "deny", "rules": ({"action": "allow", "match": {"chatType": "direct"}},)}
"""The documented scope where none is configured."""
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class QmdOptions(Struct, frozen=True):
    """What is configured below `memory.qmd`, by key; `named_by` is the file that names the program."""

    agent: str
    workspace: str
    named_by: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, choices: Plan) -> QmdOptions:
        """Return the options of what was chosen."""
        values = {path.removeprefix(QMD): choices.backend_value(path) for path in BY_PATH if path.startswith(QMD)}
        named = choices.config.entries.get(f"{QMD}command")
        by_person = choices.backend_origin in ("--backend", "default")
        named_by = "" if by_person else choices.backend_origin
        if named is not None and f"{QMD}command" not in choices.backend_values:
            named_by = str(named.places[-1])
        return cls(choices.agent.id, os.path.realpath(choices.workspace), named_by, values)

    @property
    def mode(self) -> str:
        """Return how QMD searches: search, vsearch or query."""
        return str(self.values["searchMode"])

    def whole(self, name: str, otherwise: float = 0) -> int:
        """Return a number."""
        value = self.values[name]
        return int(value if isinstance(value, int | float) else otherwise)

    def seconds(self, name: str, otherwise: float = 0) -> float:
        """Return a time that is configured in milliseconds."""
        return self.whole(name, otherwise) / 1000

    def interval(self, name: str, otherwise: float) -> float:
        """Return the seconds of `5m`, `30s`, `1h`; a bare number is minutes."""
        parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", str(self.values[name]).strip(), re.IGNORECASE)
        return float(parts[1]) * _UNITS[(parts[2] or "m").lower()] if parts else otherwise

    def collections(self, exported: Path) -> tuple[WantedCollection, ...]:
        """Return the collections that QMD should have; transcripts are `exported` to a folder."""
        rows: list[tuple[str, str, str, str]] = []
        if self.values["includeDefaultMemory"]:
            notes_folder = os.path.join(self.workspace, "memory")  # noqa: PTH118
            rows.append(("memory-root", self.workspace, "MEMORY.md", "memory"))
            rows.append(("memory-alt", self.workspace, "memory.md", "memory"))
            rows.append(("memory-dir", notes_folder, _EVERY_NOTE, "memory"))
        paths = self.values["paths"]
        for number, item in enumerate(paths if isinstance(paths, Sequence) else (), 1):
            if isinstance(item, Mapping) and str(item.get("path") or "").strip():
                folder = os.path.normpath(os.path.join(self.workspace, expand(str(item["path"]))))  # noqa: PTH118
                name = str(item.get("name") or f"custom-{number}")
                rows.append((name, folder, str(item.get("pattern") or _EVERY_NOTE), "memory"))
        if self.values["sessions.enabled"]:
            rows.append(("sessions", str(exported), _EVERY_NOTE, "sessions"))
        specs: dict[str, WantedCollection] = {}
        for name, *more in rows:
            base = name = re.sub(r"[^a-z0-9-]+", "-", f"{name}-{self.agent}".lower()).strip("-")
            number = 1
            while name in specs:
                number += 1
                name = f"{base}-{number}"
            specs[name] = WantedCollection(name, *more)
        return tuple(specs.values())


def allowed(scope: Any, session_key: str) -> bool:  # noqa: ANN401 - as configured
    """Tell whether the chat of `session_key` may ask QMD; a person without a session may. The first rule decides."""
    key = session_key.strip().lower()
    scope = scope if isinstance(scope, Mapping) else _DIRECT
    if not key:
        return True
    bare = re.sub(r"^agent:[^:]*:", "", key)
    channel, kind = _chat(bare)
    for rule in scope.get("rules") or ():
        match = (rule.get("match") if isinstance(rule, Mapping) else None) or {}
        prefix, raw = (str(match.get(name) or "").lower() for name in ("keyPrefix", "rawKeyPrefix"))
        if (
            str(match.get("channel") or channel).lower() == channel
            and str(match.get("chatType") or kind).lower().replace("dm", "direct") == kind
            and (key if prefix.startswith("agent:") else bare).startswith(prefix)
            and key.startswith(raw)
        ):
            return bool(rule.get("action") == "allow")
    return str(scope.get("default") or "allow") == "allow"


def _chat(bare: str) -> tuple[str, str]:
    """Return channel and kind of chat of a session key; both empty for a subagent's."""
    if bare.startswith("subagent:"):
        return "", ""
    channel, _, rest = bare.partition(":")
    kinds = {"group": "group", "channel": "channel", "direct": "direct", "dm": "direct"}
    other = next((name for name in ("group", "channel") if f":{name}:" in f":{bare}:"), "direct")
    return channel if rest else "", kinds.get(rest.partition(":")[0], other)


# --- an answer -----------------------------------------------------------------------------------------------------


class QmdHit(Struct, frozen=True, rename="camel"):
    """One hit, number `rank` of QMD's answer; lines are 1-based and inclusive, clamped to the file as it is.

    `score` is QMD's own number, which is not comparable with any other; `path` is the stored path of the note, or
    `qmd/collection/path` outside the workspace.
    """

    rank: int
    path: str
    start_line: int
    end_line: int
    source: str
    snippet: str
    score: float
    collection: str

    def as_dict(self) -> dict[str, Any]:
        """Return the documented shape of a hit, with its rank."""
        return {**to_builtins(self), "citation": f"{self.path}#L{self.start_line}-L{self.end_line}"}


class QmdRemark(Struct, frozen=True):
    """What a person should know of one answer: a kind for programs, a sentence."""

    kind: str
    sentence: str


class QmdAnswer(Struct, frozen=True):
    """One answer of QMD, and how it was had: `ran` is the command, `asked` names the collections.

    `empty` says why there is no hit, `remarks` what else a person should know. Times are in epoch seconds and
    milliseconds.
    """

    query: str
    mode: str
    hits: tuple[QmdHit, ...] = ()
    behind: int = 0
    updated: float = 0.0
    ran: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    empty: QmdRemark | None = None
    remarks: tuple[QmdRemark, ...] = ()
    ms: float = 0.0

    @property
    def claims(self) -> tuple[QmdRemark, ...]:
        """Return all remarks on the answer; first, where it is empty, the reason."""
        return (*((self.empty,) if self.empty is not None else ()), *self.remarks)

    def trace(self) -> dict[str, Any]:
        """Return how the answer was made, as JSON-ready data."""
        return {
            "backend": "qmd",
            "mode": self.mode,
            "way": "query vec" if "--no-rerank" in self.ran else self.mode,
            "command": list(self.ran),
            "collections": list(self.collections),
            "behind": self.behind,
            "updatedAt": self.updated or None,
            "milliseconds": round(self.ms, 1),
            "scores": [{"rank": hit.rank, "score": hit.score} for hit in self.hits],
        }


def rows_of(stdout: str) -> list[Any]:
    """Return the rows that QMD printed: from the first line on that begins with `[` and is JSON. Raises QmdFailure."""
    for begin in re.finditer(r"^\[", stdout, re.MULTILINE):
        try:
            rows, _ = json.JSONDecoder().raw_decode(stdout, begin.start())
        except (ValueError, RecursionError):
            # A line of noise may begin with a bracket as well.
            continue
        return list(rows)
    if "no results found" in stdout.lower():
        return []
    excerpt = one_line(stdout.strip(), 80) or "nothing"
    raise QmdFailure("answer", f"QMD's answer cannot be read: it printed {excerpt!r}.", "Run memory-tui doctor.")


def _inside(folder: str, below: str) -> str:
    """Return the real path of a file in a folder; empty where that leads out."""
    absolute, root = os.path.realpath(os.path.join(folder, below)), os.path.realpath(folder)  # noqa: PTH118
    return absolute if absolute.startswith(root.rstrip(os.sep) + os.sep) else ""


def _hit(rank: int, row: Any, sources: Mapping[str, tuple[Collection, str]], workspace: str) -> QmdHit:  # noqa: ANN401
    """Return the hit of a row that QMD printed. Raises QmdFailure where it cannot be trusted."""
    row = row if isinstance(row, Mapping) else {}
    file, score, snippet = row.get("file"), row.get("score"), row.get("snippet", row.get("body"))
    address = re.fullmatch(r"qmd://([^/?#]+)/([^?#]+)(?:\?[^#]*)?", file) if isinstance(file, str) else None
    name, below = (unquote(part) for part in address.groups()) if address else ("", "")
    collection, source = sources.get(name, (None, ""))
    good = isinstance(snippet, str) and isinstance(score, int | float) and math.isfinite(score)
    parts = set(below.split("/")) & {"", ".", ".."}
    absolute = _inside(collection.path, below) if collection is not None and not _HIDDEN.search(below) else ""
    if not good or parts or collection is None or not absolute:
        excerpt = one_line(json.dumps(row, default=str), 80)
        raise QmdFailure("answer", f"QMD's answer cannot be used: row {rank} is {excerpt}.", "Run memory-tui doctor.")
    first, last, text = _lines(str(snippet), absolute)
    path = os.path.relpath(os.path.join(collection.path, below), workspace).replace(os.sep, "/")  # noqa: PTH118
    path = f"qmd/{name}/{below}" if path.startswith(os.pardir) else path
    return QmdHit(rank, path, first, last, source, text, float(score or 0), name)


def _lines(snippet: str, absolute: str) -> tuple[int, int, str]:
    """Return the first and the last line, clamped to the file as it is now, and the text."""
    try:
        with open(absolute, "rb") as file:  # noqa: PTH123
            length = max(1, sum(1 for _ in file))
    except OSError:
        # A ghost: QMD answers from a file that is gone, which the caller says of the whole index.
        length = 1
    header = re.match(r"@@ -(\d{1,9})(?:,(\d{1,9}))? @@[^\n]*(?:\n|\Z)", snippet)
    if header is None:
        return 1, length, snippet
    start = int(header[1])
    first = min(max(1, start), length)
    return first, min(max(first, start + int(header[2] or 1) - 1), length), snippet[header.end() :]


def bounded(hits: Sequence[QmdHit], most: int, snippet: int, altogether: int) -> list[QmdHit]:
    """Return the hits that an agent gets: sources in turn, `most` of them, cut to UTF-16 units each and altogether."""
    queues: dict[str, list[QmdHit]] = {}
    for hit in hits:
        queues.setdefault(hit.source, []).append(hit)
    turns = sorted(((at, order, hit) for order, queue in enumerate(queues.values()) for at, hit in enumerate(queue)),
                   key=lambda turn: turn[:2])  # fmt: skip
    chosen = []
    for _, _, hit in turns[:most]:
        text = jsstring.utf16_head(hit.snippet, min(snippet, altogether))
        if not text and hit.snippet:
            break
        chosen.append(replace(hit, snippet=text))
        altogether -= jsstring.utf16_len(text)
    return chosen


# --- asking --------------------------------------------------------------------------------------------------------


class Ready(Struct, frozen=True):
    """That QMD can be asked: the program, the state of its index, the collections with their source, by name."""

    words: tuple[str, ...]
    index: QmdIndex
    coverage: Coverage
    sources: Mapping[str, tuple[Collection, str]]
    updated: float


class QmdClient:
    """QMD of one plan. Every method may be called from any thread."""

    def __init__(self, choices: Plan, approvals: Approvals) -> None:
        self.options = QmdOptions.of(choices)
        beside = choices.index.absolute()
        beside_index = beside.with_name(f"{beside.name}.qmd") if choices.options.index else beside.parent / "qmd"
        named = choices.options.qmd_home
        self.place = QmdFolder(Path(named).expanduser().absolute() if named else beside_index, owned=not named)
        folder = self.options.values["sessions.exportDir"]
        self.exported = Path(folder).expanduser() if folder else self.place.folder / "sessions"
        self.specs = self.options.collections(self.exported)
        self._approvals = approvals

    @property
    def folder(self) -> Path:
        """Return where QMD is run: in the workspace, as OpenClaw does.

        A folder .qmd there, or above, would take the place of the index and of its configuration; then elsewhere.
        """
        workspace = Path(self.options.workspace)
        taken = any((folder / ".qmd").exists() for folder in (workspace, *workspace.parents))
        return self.place.folder if taken else workspace

    def words(self) -> tuple[str, ...]:
        """Return the words that start the program, which is not started. Raises QmdFailure."""
        return qmd_program.find(str(self.options.values["command"] or "qmd"))

    @property
    def unapproved(self) -> str:
        """Return the question whether the program may be run; empty where a person named it or agreed to these words.

        Raises QmdFailure.
        """
        line = shlex.join(self.words())
        if not self.options.named_by or self._approvals.find(APPROVED_AS, line) is not None:
            return ""
        return f"{self.options.named_by} asks to run this program: {line}"

    def approve(self, how: str) -> str:
        """Save that the program may be started; returns its command line. Raises QmdFailure, ApprovalUnsaved."""
        line = shlex.join(self.words())
        self._approvals.approve(APPROVED_AS, line, how)
        return line

    def startable(self, stop: Stop | None = None) -> tuple[str, ...]:
        """Return the words of the program, approved and of a known version. Raises QmdFailure, Cancelled."""
        if question := self.unapproved:
            raise QmdFailure("approval", f"{question}; you have not agreed.", "To agree: memory-tui qmd approve.")
        words = self.words()
        qmd_program.version(words, self.place, stop)
        qmd_program.require_models(self.place, "configuration")
        return words

    def ready(self, stop: Stop | None = None) -> Ready:
        """Return what can be known without asking, in milliseconds. Raises QmdFailure where QMD cannot be asked."""
        words = self.startable(stop)
        qmd_program.require_models(self.place, self.options.mode, _NEEDED[self.options.mode])
        index, updated = qmd_program.read(self.place.index), float(self.place.remembered("upkeep").get("updated", 0.0))
        seen = qmd_program.coverage(index, self.specs, updated)
        sources = {
            item.name: (item, specs.source) for specs in self.specs if (item := index.serving(specs)) is not None
        }
        if not sources or not seen.documents:
            raise QmdFailure("index", seen.sentence(), UPDATE)
        if self.options.mode != "search" and not index.vectors:
            raise QmdFailure("models", "QMD's index has no vectors.", "Run memory-tui qmd embed.")
        return Ready(words, index, seen, sources, updated)

    def ask(
        self, query: str, most: int, session_key: str = "", source: str = "", stop: Stop | None = None
    ) -> QmdAnswer:
        """Return QMD's answer of at most `most` hits; `source` is memory, sessions, or empty for both.

        Raises QmdFailure, QueryError, Cancelled.
        """
        mode, options = self.options.mode, self.options
        if len(query) > MOST_QUERY:
            message = f"The question has {len(query):,} characters; at most {MOST_QUERY:,} are searched."
            raise QueryError(message, "Ask in fewer words.")
        if not query.strip():
            return QmdAnswer(query, mode, empty=QmdRemark("blank", "There is nothing to search for."))
        if not allowed(options.values["scope"], session_key):
            denied = QmdRemark("out-of-scope", "memory.qmd.scope does not let this chat ask QMD.")
            return QmdAnswer(query, mode, empty=denied)
        began, state = time.perf_counter(), self.ready(stop)
        sources = {name: item for name, item in state.sources.items() if source in ("", item[1])}
        limit = min(most, options.whole("limits.maxResults"))
        ran, every = self._hits(state, query, limit, sources, stop)
        if not every and not state.coverage.whole:
            raise QmdFailure("index", state.coverage.sentence(), UPDATE)
        hits = bounded(every, limit, options.whole("limits.maxSnippetChars"), options.whole("limits.maxInjectedChars"))
        behind, left = len(state.coverage.behind), len(every) - len(hits)
        typed = "vsearch ran as query 'vec: …' --no-rerank, because QMD's generation model is not on disk."
        changed = f"{plural(behind, 'file')} changed since QMD's last update: memory-tui qmd update."
        remarks = [QmdRemark("left-out", f"{plural(left, 'hit')} left out by the bounds.")] if left else []
        remarks += [QmdRemark("typed", typed)] if "--no-rerank" in ran else []
        remarks += [QmdRemark("behind", changed)] if behind else []
        return QmdAnswer(
            query,
            mode,
            tuple(hits),
            behind,
            state.updated,
            ran,
            tuple(sources),
            None if every else _why_empty(mode, source if not sources else ""),
            tuple(remarks),
            (time.perf_counter() - began) * 1000,
        )

    def _hits(
        self, state: Ready, query: str, limit: int, sources: Mapping[str, tuple[Collection, str]], stop: Stop | None
    ) -> tuple[tuple[str, ...], list[QmdHit]]:
        """Return the command line, and QMD's hits as it ranks them. Raises QmdFailure, Cancelled."""
        if not sources:
            return (), []
        words, mode = query.replace("\0", " "), self.options.mode
        # A leading dash would be an option, and QMD drops the options behind `--`.
        args = [mode, f" {words}" if words.startswith("-") else words]
        if mode == "vsearch" and qmd_program.models(self.place)["generate"].problem:
            # As a typed search the question needs no model that rewrites it.
            args = ["query", f"vec: {' '.join(words.split())}", "--no-rerank"]
        args += ["--json", "-n", str(limit), *(word for name in sources for word in ("-c", name))]
        environment, seconds = self.place.environment(), self.options.seconds("limits.timeoutMs")
        output = qmd_program.run(state.words, args, environment, self.folder, seconds, stop)
        rows = rows_of(qmd_program.finished(output, args[0]))
        hits = [_hit(rank, row, sources, self.options.workspace) for rank, row in enumerate(rows, 1)]
        return (*state.words, *args), hits

    def document(self, path: str) -> Document:
        """Return the file that a hit calls `qmd/collection/path`. Raises PathRefused, Unreadable."""
        name, _, below = path.removeprefix("qmd/").partition("/")
        index = qmd_program.read(self.place.index)
        collection = next(
            (item for item in map(index.serving, self.specs) if item is not None and item.name == name), None
        )
        if collection is None or below not in collection.documents:
            raise PathRefused(f"{path} is no document of QMD.", "Name it as memory_search does.")
        absolute = _inside(collection.path, below)
        if not absolute:
            raise PathRefused(f"{path} leads out of its collection.", "Only files inside a collection are read.")
        try:
            status = os.lstat(absolute)
        except OSError as error:
            raise Unreadable(f"{path} cannot be read: {error.strerror}.", UPDATE) from error
        return notes.read(NoteFile.of(path, absolute, status, os.path.realpath(collection.path)))

    # --- why not ---

    def why(self, answer: QmdAnswer, path: str, line: int, stop: Stop | None = None) -> str:
        """Return why line `line` (1-based; 0 for any) of the note `path` is not among the hits, or that it is.

        Raises QmdFailure, Cancelled.
        """
        if answer.empty is not None and answer.empty.kind == "out-of-scope":
            return answer.empty.sentence
        same = [hit for hit in answer.hits if hit.path == path]
        if hit := next((hit for hit in same if not line or hit.start_line <= line <= hit.end_line), None):
            return f"QMD has it at rank {hit.rank}."
        state = self.ready(stop)
        name, below = self._home(state, path)
        if not name:
            return f"It is in no collection of QMD: {', '.join(state.sources)}."
        if f"{name}/{below}" in state.coverage.behind:
            return f"It changed since QMD's last update. {UPDATE}"
        for hit in same:
            lines = f"{hit.start_line} to {hit.end_line} (rank {hit.rank})"
            return f"QMD gives one passage a note, and of this one lines {lines}."
        rule = " QMD gives only notes that hold every word of the question." if answer.mode == "search" else ""
        return f"QMD has it in its index, and not among its {plural(len(answer.hits), 'hit')}.{rule}"

    def _home(self, state: Ready, path: str) -> tuple[str, str]:
        """Return the collection that a stored path belongs to, and its path there; both empty where there is none."""
        if path.startswith("qmd/"):
            name, _, below = path.removeprefix("qmd/").partition("/")
            return (name, below) if name in state.sources else ("", "")
        for name, (item, _) in state.sources.items():
            absolute = os.path.join(self.options.workspace, path)  # noqa: PTH118
            below = os.path.relpath(absolute, item.path).replace(os.sep, "/")
            if below in item.documents or below in dict(qmd_program.files_of(item.path, item.pattern)):
                return name, below
        return "", ""


def _why_empty(mode: str, absent: str) -> QmdRemark:
    """Return why QMD had no row; `absent` is a source that no collection has."""
    if absent:
        return QmdRemark("no-source", f"None of QMD's collections holds {absent}, so QMD was not asked.")
    if mode == "search":
        return QmdRemark("not-every-word", "No note holds every word of the question, which QMD's search requires.")
    return QmdRemark("nothing-near", "QMD found nothing near the question.")


# --- upkeep -----------------------------------------------------------------------------------------------------------

_FIRST_PAUSE, _LONGEST_PAUSE, _DAY = 60.0, 3600.0, 86_400.0
_TRIES, _BOOT_PAUSE = 3, 0.5
_BUSY = ("database is locked", "sqlite_busy", "timed out")
_TITLE = "# Session "


Report = dict[str, Any]
"""What a run of upkeep did: action, seconds, documents, vectors; changes are sentences about collections."""


def state(client: QmdClient) -> dict[str, Any]:
    """Return what upkeep remembers: times in epoch seconds, 0 for never; after `failures` it waits until `again`."""
    return {
        "updated": 0.0, "embedded": 0.0, "failures": 0, "again": 0.0, "error": "", **client.place.remembered("upkeep")
    }  # fmt: skip


def due(client: QmdClient, *, soon: bool) -> bool:
    """Tell whether an update that nobody asked for by hand may run: `soon` because notes changed, or by interval."""
    record, now, interval = state(client), time.time(), client.options.interval("update.interval", 300.0)
    pause = client.options.seconds("update.debounceMs") if soon else interval or float("inf")
    return bool(now >= record["again"] and now - record["updated"] >= pause)


def update(client: QmdClient, stop: Stop, *, boot: bool = False) -> Report:
    """Mend the collections and read the files anew. Raises QmdFailure, Cancelled."""
    return _alone(client, "update", stop, lambda words: _update(client, words, stop, boot))


def embed(client: QmdClient, stop: Stop, *, force: bool = True) -> Report | None:
    """Embed texts that have no vector; None where it is not time, without `force`. Raises QmdFailure, Cancelled."""
    interval = client.options.interval("update.embedInterval", 3600.0)
    if not force and time.time() - state(client)["embedded"] < interval:
        return None

    def work(words: tuple[str, ...]) -> list[str]:
        qmd_program.require_models(client.place, "embed", ("embed",))
        qmd_program.finished(_run(client, words, ["embed"], "embedTimeoutMs", stop), "embed")
        return []

    return _alone(client, "embed", stop, work)


def _alone(client: QmdClient, action: str, stop: Stop, work: Callable[[tuple[str, ...]], list[str]]) -> Report:
    words = client.startable(stop)
    client.place.make()
    began, record = time.time(), state(client)
    try:
        with locks.wait_for(client.place.folder / "upkeep", stop):
            try:
                changes = work(words)
            except QmdFailure as failure:
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** record["failures"])
                failed = {"failures": record["failures"] + 1, "again": time.time() + pause, "error": failure.message}
                client.place.remember("upkeep", {**record, **failed})
                raise
            done = {"updated" if action == "update" else "embedded": began, "failures": 0, "again": 0.0, "error": ""}
            client.place.remember("upkeep", {**record, **done})
    except IndexUnavailable as error:
        raise QmdFailure("index", "Another memory-tui is bringing QMD up to date.", "Wait for it.") from error
    index = qmd_program.read(client.place.index)
    counts = {"documents": index.documents, "vectors": index.vectors, "changes": changes}
    return {"action": action, "seconds": time.time() - began, **counts}


def _update(client: QmdClient, words: tuple[str, ...], stop: Stop, boot: bool) -> list[str]:
    if client.options.values["sessions.enabled"]:
        export(client)
    changes = _mend(client, words, stop)
    for attempt in range(_TRIES if boot else 1):
        output = _run(client, words, ["update"], "updateTimeoutMs", stop)
        busy = output.code and any(word in (output.stderr + output.stdout).lower() for word in _BUSY)
        if not busy or stop.wait(_BOOT_PAUSE * 2**attempt):
            break
    qmd_program.finished(output, "update")
    return changes


def _mend(client: QmdClient, words: tuple[str, ...], stop: Stop) -> list[str]:
    """Let QMD have the wanted collections; those of other people in a folder that is not ours are left alone."""
    index = qmd_program.read(client.place.index) if client.place.index.exists() else QmdIndex({})
    names = {item.name for item in client.specs}
    # QMD would answer from a folder that is gone as it was.
    specs = [item for item in client.specs if Path(item.path).is_dir()]
    serving = {collection.name for collection in map(index.serving, specs) if collection is not None}
    changes = []
    for name in index.collections:
        if name not in serving and (client.place.owned or name in names):
            qmd_program.finished(_run(client, words, ["collection", "remove", name], "", stop), "collection remove")
            changes.append(f"collection {name} removed")
    for item in specs:
        if index.serving(item) is None:
            args = ["collection", "add", item.path, "--name", item.name, "--mask", item.pattern]
            output = _run(client, words, args, "", stop)
            if output.code and "already exists" in output.stderr + output.stdout:
                # QMD's configuration alone still has that name.
                _run(client, words, ["collection", "remove", item.name], "", stop)
                output = _run(client, words, args, "", stop)
            qmd_program.finished(output, "collection add")
            changes.append(f"collection {item.name} added: {item.path}, {item.pattern}")
    return changes


def _run(client: QmdClient, words: tuple[str, ...], args: list[str], limit: str, stop: Stop) -> Output:
    seconds = client.options.seconds(f"update.{limit or 'commandTimeoutMs'}")
    return qmd_program.run(words, args, client.place.environment(), client.folder, seconds, stop)


def reset(client: QmdClient) -> list[str]:
    """Delete QMD's index and configuration that memory-tui made; returns their paths. Raises QmdFailure."""
    place = client.place
    if not place.owned:
        raise QmdFailure("index", f"{place.folder} is not memory-tui's own, so it stays.", "Leave --qmd-home out.")
    files = [*(Path(f"{place.index}{side}") for side in ("", "-wal", "-shm")), place.index_yml]
    try:
        with locks.wait_for(place.folder / "upkeep"):
            deleted = [str(file) for file in files if os.path.lexists(file) and durable.remove_file(file)]
    except (OSError, IndexUnavailable) as error:
        raise QmdFailure("index", f"QMD's index cannot be deleted: {error}.", "Check its folder.") from error
    for name in ("upkeep", "fallback"):
        place.remember(name, None)
    return deleted


def export(client: QmdClient) -> None:
    """Write the agent's transcripts as notes, and delete those whose session is gone or too old.

    A file that does not begin as an exported transcript does is somebody's own, and stays. Raises QmdFailure.
    """
    folder, days = client.exported, client.options.whole("sessions.retentionDays")
    sessions = state_folder() / "agents" / client.options.agent / "sessions"
    exported: set[str] = set()
    try:
        durable.make_folder(folder)
        for item in transcripts.listing(str(sessions), archives=False).notes:
            if days and item.mtime_ns / 1e9 < time.time() - days * _DAY:
                continue
            name = os.path.basename(item.absolute).removesuffix(".jsonl")  # noqa: PTH119 - undecodable names
            try:
                text = transcripts.read(item).text
            except Unreadable:
                # The other sessions are searched all the same; the list of files says why this one is not.
                continue
            exported.add(f"{name}.md")
            file, data = folder / f"{name}.md", f"{_TITLE}{name}\n\n{text or '(empty)'}\n".encode("utf-8", "replace")
            # What did not change keeps its time, so that nothing is behind.
            if not file.exists() or (_is_exported(file) and file.read_bytes() != data):
                durable.replace_file(file, data)
        for file in folder.glob("*.md"):
            if file.name not in exported and _is_exported(file):
                durable.remove_file(file)
    except OSError as error:
        message = f"Transcripts cannot be exported to {folder}: {error.strerror}."
        raise QmdFailure("index", message, "Check the folder.") from error


def _is_exported(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_TITLE)) == _TITLE.encode()
