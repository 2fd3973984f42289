"""What agents did, as the transcripts of their hosts tell it: files that they wrote, commands, questions to a memory.

OpenClaw keeps a database for each agent (older releases a file for each session), Claude Code and Codex a file of JSON
lines for each session. They are only read, as far as they were written in the time that is asked for. Whoever can
write a transcript can lie in it: a line that is older than one before it, or than its file, is left out.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import apsw
import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.config import places
from memory_tui.durable import open_regular
from memory_tui.hosts import claude_code, codex
from memory_tui.openclaw import agent_sessions, open_foreign
from memory_tui.openclaw.agent_sessions import message_of
from memory_tui.openclaw.open_foreign import NotSeen

MOST_BYTES = 64 << 20
"""Bytes of the longest transcript that is read."""
MOST_IN_ALL = 512 << 20
"""Bytes of all transcripts that are read at once, the newest ones: a person waits."""
_OLDER_LINE, _OLDER_FILE = 1.0, 5.0
"""Seconds by which a line may be older than the one before it, and than its file."""
_EXIT = re.compile(r"Exit code \d")
"""How Claude Code's answer of a command begins that ran, and ended with a code that is not 0."""

Host = Literal["openclaw", "claude-code", "codex"]
Record = Mapping[str, Any]


class Said(Struct, frozen=True):
    """What `role` (user or assistant) said at `at` (epoch seconds)."""

    at: float
    role: str
    text: str


class ToolUse(Struct, frozen=True):
    """One call of a tool, from `at` to `end` (epoch seconds); `details` is what the host keeps beside its `text`."""

    id: str
    name: str
    args: Record
    cwd: str
    at: float
    end: float
    succeeded: bool
    text: str = ""
    details: Record = field(default_factory=dict)


class HostSession(Struct, frozen=True):
    """What one session of a host said and did, in its order; `cwd` is the folder that it began in.

    `loaded` tells that our hook put memory before it.
    """

    host: Host
    id: str
    agent: str
    items: tuple[Said | ToolUse, ...]
    cwd: str = ""
    loaded: bool = False


def sessions(since: float) -> tuple[list[HostSession], list[str]]:
    """Return the sessions of every host that went on after `since`, and a sentence for each one that is not read.

    A call that a forked or resumed session repeats stands in the oldest session alone.
    """
    problems: list[str] = []
    raw = [*_of_openclaw(since, problems), *_of_files(since, problems)]
    seen: set[tuple[str, ...]] = set()
    current = []
    for session in sorted(raw, key=lambda session: session.items[0].at if session.items else 0.0):
        items = []
        for item in session.items:
            identity = (item.id, item.name) if isinstance(item, ToolUse) else (str(item.at), item.text)
            if item.at >= since and (session.host, *identity) not in seen:
                items.append(item)
            # What is too old is remembered as well: a newer session may repeat it with a later time.
            seen.add((session.host, *identity))
        if items:
            current.append(replace(session, items=tuple(items)))
    return current, problems


# The keys of a workspace begin with its hash and ":event:"; ";" is the character behind ":", so that all are between.
_NOTED = """
SELECT CAST(value_json AS BLOB) FROM plugin_state_entries
WHERE plugin_id = 'memory-core' AND namespace = 'memory-host.events' AND length(value_json) < 16384
  AND entry_key BETWEEN ?1 || ':event:' AND ?1 || ':event;' LIMIT 10000
"""


def noted(workspace: Path, since: float, problems: list[str]) -> list[tuple[str, float]]:
    """Return the questions that the journal of OpenClaw's own memory has of `workspace`, each with its time.

    Only those after `since` (epoch seconds). OpenClaw keeps that journal for its dreaming; it names neither session
    nor turn. Where it cannot be read, `problems` gets a sentence of that.
    """
    workspace_hash = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:24]

    def read(connection: apsw.Connection) -> list[tuple[Any, ...]]:
        """Return the rows of the journal; none from a database without it."""
        has_table = connection.table_exists(None, "plugin_state_entries")
        return connection.execute(_NOTED, (workspace_hash,)).fetchall() if has_table else []

    try:
        rows = open_foreign.read_foreign(places.state_database(), read)
    except NotSeen as error:
        if error.state != "missing":
            problems.append(f"{error.detail} {error.next_step}")
        return []
    events = (agent_sessions.record_of(row).get("event") for (row,) in rows if isinstance(row, bytes))
    queries = ((event.get("query"), epoch(event.get("timestamp"))) for event in events if isinstance(event, dict))
    return [(str(query), at) for query, at in queries if at >= since]


# --- files and databases ---------------------------------------------------------------------------------------------


def _of_openclaw(since: float, problems: list[str]) -> Iterator[HostSession]:
    """Yield the sessions in the databases of OpenClaw's agents."""
    for database in sorted((places.state_folder() / "agents").glob("*/agent/openclaw-agent.sqlite")):
        try:
            # Neither the database nor its log was written after `since`: the cheap look before the long one.
            if max(time_ns for _, _, time_ns in filter(None, open_foreign.traces(database))) < since * 1e9:
                continue
            events = agent_sessions.events(database, since)
        except NotSeen as error:
            problems.append(f"{error.detail} {error.next_step}")
            continue
        by_session: dict[tuple[str, str], list[bytes]] = {}
        for session_id, key, line in events:
            by_session.setdefault((session_id, key), []).append(line)
        for (session_id, key), lines in by_session.items():
            # The database is agents/AGENT/agent/openclaw-agent.sqlite. Its age says nothing about its lines.
            yield _session("openclaw", key or session_id, database.parent.parent.name, lines, birth=0.0)


def _of_files(since: float, problems: list[str]) -> Iterator[HostSession]:
    """Yield the sessions that are files, the newest last: a fork is newer than what it repeats.

    A file that is too long, or for which there is no room beside newer ones, becomes a sentence in `problems`.
    """
    room = MOST_IN_ALL
    chosen: list[tuple[Host, Path, float]] = []
    for changed, host, path, size in sorted(_files(since), reverse=True):
        if size > min(MOST_BYTES, room):
            limit = f"at most {MOST_BYTES >> 20} are read, {MOST_IN_ALL >> 20} of all"
            problems.append(f"The transcript {path} has {size >> 20:,} MB: {limit}.")
        else:
            room -= size
            chosen.append((host, path, changed))
    for host, path, changed in reversed(chosen):
        folder = path.parent
        # A session is called as its file; one of a sub-agent as the session that it belongs to.
        name, agent = path.stem, ""
        if host == "openclaw":
            agent = folder.parent.name
        elif folder.name == "subagents":
            name, agent = folder.parent.name, path.stem.removeprefix("agent-")
        try:
            with open_regular(path) as file:
                yield _session(host, name, agent, file, birth=min(_birth(file.fileno()), changed))
        except OSError as error:
            problems.append(f"The transcript {path} cannot be read: {error.strerror or error}.")


def _files(since: float) -> Iterator[tuple[float, Host, Path, int]]:
    """Yield the transcripts that are files and changed after `since`: when, whose, where, how many bytes."""
    folders: tuple[tuple[Host, Path, str], ...] = (
        ("openclaw", places.state_folder() / "agents", "*/sessions/*.jsonl"),
        ("claude-code", claude_code.home() / "projects", "*/*.jsonl"),
        ("claude-code", claude_code.home() / "projects", "*/*/subagents/agent-*.jsonl"),
        ("codex", codex.memory().parent / "sessions", "*/*/*/rollout-*.jsonl"),
    )
    for host, folder, pattern in folders:
        for path in folder.glob(pattern):
            with suppress(OSError):
                status = path.stat()
                if status.st_mtime >= since:
                    yield status.st_mtime, host, path, status.st_size


def _birth(descriptor: int) -> float:
    """Return when a file was made, in epoch seconds; 0 where the system does not say."""
    if (birth := getattr(os.fstat(descriptor), "st_birthtime", None)) is not None:
        return float(birth)
    # Python has no statx before 3.15. AT_EMPTY_PATH asks for the descriptor itself, STATX_BTIME for the birth. It fills
    # 256 bytes and returns 0: the first four are a mask of what is there, in which STATX_BTIME is 8 in the second byte;
    # the birth is at 80, as seconds and nanoseconds.
    buffer = ctypes.create_string_buffer(256)
    statx = getattr(ctypes.CDLL(None), "statx", None) if sys.platform == "linux" else None
    if statx is None or statx(descriptor, b"", 0x1000, 0x800, buffer) != 0 or not buffer.raw[1] & 8:
        return 0.0
    seconds, nanoseconds = buffer.raw[80:88], buffer.raw[88:92]
    return int.from_bytes(seconds, "little", signed=True) + int.from_bytes(nanoseconds, "little") / 1e9


def _session(host: Host, name: str, agent: str, lines: Iterable[bytes], *, birth: float) -> HostSession:
    """Return what the lines of one session tell; `birth` is when their file was made, 0 where that is not known."""
    reader = _Reader()
    # As if a line before the first were that old: no line that counts is older than the file by over `_OLDER_FILE`.
    newest = birth - _OLDER_FILE + _OLDER_LINE
    for line in lines:
        try:
            record = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        if not isinstance(record, dict):
            continue
        at = epoch(record.get("timestamp"))
        if at:
            if at < newest - _OLDER_LINE:
                continue
            newest = max(newest, at)
        reader.take(record, at)
        # The first folder that is told; later lines may tell another one.
        reader.began_in = reader.began_in or reader.cwd
    items = tuple(reader.items.values())
    return HostSession(host, reader.name or name, agent, items, cwd=reader.began_in, loaded=reader.loaded)


def epoch(value: object) -> float:
    """Return `value` as epoch seconds: it is a number of milliseconds, or a text in ISO's form; 0 for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / 1000
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else 0.0
    except (ValueError, OverflowError):
        return 0.0


# --- what a line tells -----------------------------------------------------------------------------------------------


def _record(value: object) -> Record:
    """Return `value` where it is an object of JSON; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


class _Reader:
    """Joins the calls of one session with their answers, in the form of whichever host."""

    def __init__(self) -> None:
        self.name, self.cwd, self.began_in, self.loaded = "", "", "", False
        self.items: dict[object, Said | ToolUse] = {}
        """What was said, by a number, and the calls that were answered, by id and tool, in the order of the lines."""
        self._calls: dict[str, ToolUse] = {}
        """The calls whose answer has not come yet, by their ids."""

    def take(self, record: dict[str, Any], at: float) -> None:
        """Read one line: Codex has a `payload`, Claude Code and OpenClaw a `message`; others tell of the session."""
        payload, message, attachment = map(record.get, ("payload", "message", "attachment"))
        if isinstance(payload, dict):
            self._step(record, payload, at)
        elif isinstance(message, dict):
            self._message(record, message, at)
        elif record.get("type") == "session":
            self.cwd = str(record.get("cwd") or "")
        elif isinstance(attachment, dict) and attachment.get("type") == "hook_additional_context":
            self.loaded = True

    def said(self, record: dict[str, Any], at: float) -> None:
        """Keep what a person or the assistant said on this line, if anything."""
        message = message_of(record)
        if message is not None:
            self.items[len(self.items)] = Said(at, message.role, message.text)

    def call(self, key: object, name: object, args: object, at: float) -> None:
        """Remember the call of a tool, with the id `key`, until its answer comes; what is malformed is passed over."""
        if isinstance(key, str) and isinstance(name, str):
            if name == "tool_call" and isinstance(args, dict):
                # OpenClaw wraps tools that its agent had to search for.
                name, args = str(args.get("id")), args.get("args")
            self._calls[key] = ToolUse(key, name, _record(args), self.cwd, at=at, end=at, succeeded=False)

    def answer(self, key: object, at: float, succeeded: bool, text: str, details: object) -> None:
        """Join an answer with the call that has the id `key`; an answer without a call, or a second one, is ignored."""
        if isinstance(key, str) and (call := self._calls.pop(key, None)) is not None:
            self.items[key, call.name] = replace(call, end=at, succeeded=succeeded, text=text, details=_record(details))

    def _message(self, record: dict[str, Any], message: Record, at: float) -> None:
        """Read what was said and done as Claude Code and OpenClaw tell it."""
        self.name = self.name or str(record.get("sessionId") or "")
        self.cwd = str(record.get("cwd") or self.cwd)
        self.said(record, at)
        content, details = message.get("content"), message.get("details")
        if message.get("role") == "toolResult":
            # A tool that OpenClaw wrapped, as in `call`, has its answer within the details of the wrapper.
            wrapped = _record(details).get("result")
            if message.get("toolName") == "tool_call" and isinstance(wrapped, dict):
                content, details = wrapped.get("content"), wrapped.get("details")
            text = "\n".join(agent_sessions.texts(content))
            self.answer(message.get("toolCallId"), at, not message.get("isError"), text, details)
        for block in content if isinstance(content, list) else ():
            match block.get("type") if isinstance(block, dict) else None:
                case "toolCall" | "tool_use":
                    self.call(block.get("id"), block.get("name"), block.get("arguments", block.get("input")), at)
                case "tool_result":
                    text = "\n".join(agent_sessions.texts(block.get("content")))
                    # A command that ended with a code of its own ran; one that was refused did not.
                    ran = not block.get("is_error") or _EXIT.match(text) is not None
                    self.answer(block.get("tool_use_id"), at, ran, text, record.get("toolUseResult"))

    def _step(self, record: dict[str, Any], payload: Record, at: float) -> None:
        """Read what was said and done as Codex tells it."""
        kind = str(payload.get("type") or "")
        if record.get("type") == "session_meta":
            self.name, self.cwd = str(payload.get("id") or ""), str(payload.get("cwd") or "")
        elif record.get("type") == "event_msg" and kind == "item_completed":
            self._completed(payload, at)
        elif kind in ("function_call", "custom_tool_call"):
            # A custom tool gets a text, any other one its arguments as JSON.
            args = agent_sessions.record_of(str(payload.get("arguments"))) or {"input": payload.get("input")}
            self.call(payload.get("call_id"), payload.get("name"), args, at)
        elif kind.endswith("_output"):
            # A patch, and the answer of a server, have an "item_completed" beside this line, which tells more.
            call = self._calls.get(str(payload.get("call_id")))
            if call is not None and call.name == "exec_command":
                # What has an output was run, with whatever exit code.
                self.answer(call.id, at, True, str(payload.get("output")), None)
        else:
            self.said(record, at)

    def _completed(self, payload: Record, at: float) -> None:
        """Read what Codex tells of a step that is over; it replaces the answer that the model got, which says less."""
        item = payload.get("item")
        if not isinstance(item, dict):
            return
        key = str(item.get("id") or "")
        cwd = self.cwd
        succeeded = item.get("status") in ("completed", None)
        name, text = "", ""
        args, details = item.get("arguments"), item
        match item.get("type"):
            case "FileChange":
                name = "apply_patch"
            case "CommandExecution":
                # One that ended with a code of its own ran.
                name = "exec_command"
                succeeded = succeeded or bool(item.get("exit_code"))
                args = {"command": item.get("command")}
                cwd = unquote(str(item.get("cwd") or cwd).removeprefix("file://"))
            case "McpToolCall" if isinstance(item.get("result"), dict):
                name, details = str(item.get("tool")), item["result"].get("structuredContent")
                text = "\n".join(agent_sessions.texts(item["result"].get("content")))
        if name:
            # `started_at_ms` is late: the line of the call, where there is one, says when it began.
            call = self._calls.pop(key, None)
            earlier = self.items.get((key, name), call)
            start = earlier.at if earlier is not None else epoch(payload.get("started_at_ms")) or at
            end = epoch(payload.get("completed_at_ms")) or at
            self.items[key, name] = ToolUse(
                key, name, _record(args), cwd, start, end, succeeded=succeeded, text=text, details=_record(details)
            )
