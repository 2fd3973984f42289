"""Sessions of OpenClaw's agent: copied out of its database as transcripts, and ended with a session note.

The database (2026.9) is only read. A copy holds what user and assistant said, on the line that is the message's number,
with secrets masked; it is private, and goes with its session. Cron, heartbeat, dreaming and forgotten sessions are left
out, as OpenClaw's own memory leaves them out.

A session note is the end of a conversation, saved as memory/YYYY-MM-DD-HHMM.md. Secrets are masked before anything is
written. No note is overwritten; a session that goes on has one note, as long as nobody else wrote into it. What a
conversation quotes of the memory is left out, so that a note is not found in place of the one that it quotes.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import platformdirs
from msgspec import Struct

from memory_tui import durable, jsstring, locks
from memory_tui.config import places
from memory_tui.durable import open_regular
from memory_tui.errors import IndexBusy, MemoryTuiError, Unreadable
from memory_tui.openclaw import open_foreign
from memory_tui.openclaw.open_foreign import NotSeen
from memory_tui.plan import Plan
from memory_tui.secrets.finder import redact
from memory_tui.sentences import Notice, notice

ROLES = ("user", "assistant")
MAX_BYTES = 8 << 20
"""Of a longer transcript only the end is read."""
_BLOCKS = ("text", "input_text", "output_text")
_PROMPT = (
    ("input", "cacheRead", "cacheWrite"),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
)
_OUTPUT = ("output", "output_tokens")
"""The names of token counts: of the prompt, and of the answer; OpenClaw's first, then Claude Code's."""
Usage = tuple[int, int]
"""Tokens of the prompt, with what came from a cache, and of the answer."""


def unreadable(path: Path, error: OSError) -> Unreadable:
    """Name the transcript at `path` that `error` keeps from being read."""
    return Unreadable(f"The transcript {path} cannot be read: {error.strerror or error}.", "Check the path.")


def record_of(line: str | bytes) -> dict[str, Any]:
    """Return the record on a line of a transcript; empty where there is none that can be read."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def answer_in(text: str) -> dict[str, Any]:
    """Return the answer of a memory in the `text` of a tool, as data; empty where there is none that can be read.

    The text may say something before the JSON.
    """
    return record_of("{" + text.partition("{")[2])


def texts(content: object) -> list[str]:
    """Return the texts of a message's content, which is one or a list of blocks."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") in _BLOCKS and isinstance(block.get("text"), str)
    ]


def tail(path: Path) -> list[bytes]:
    """Return the lines of a transcript; of a long one those in its last MAX_BYTES. Raises Unreadable."""
    try:
        with open_regular(path) as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - MAX_BYTES))
            lines = file.read(MAX_BYTES).split(b"\n")
    except OSError as error:
        raise unreadable(path, error) from error
    # The first line of a tail is cut off.
    return lines[1:] if end > MAX_BYTES else lines


def usage_in(lines: Iterable[bytes]) -> Usage | None:
    """Return the first usage in `lines` that is not zero, in the form of OpenClaw or of Claude Code; None for none."""
    for line in lines:
        # Most lines hold none, and JSON is slow to read.
        record = record_of(line) if b"usage" in line else {}
        message = record.get("message")
        counts = message.get("usage") if isinstance(message, dict) else record.get("usage")
        if isinstance(counts, dict):
            prompt = max(sum(whole(counts.get(name)) or 0 for name in names) for names in _PROMPT)
            output = max(whole(counts.get(name)) or 0 for name in _OUTPUT)
            if prompt or output:
                return prompt, output
    return None


def whole(value: object) -> int | None:
    """Return a number of JSON from 0 up without its fraction; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        return None
    return int(value)


_LEFT_OUT = re.compile(r"(?:^|[:_-])(?:cron|heartbeat|dreaming)(?:$|[:_-])")
"""Keys of sessions that no person took part in."""
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\Z")
_LONGEST_RECORD = 4 * 1024 * 1024
"""Bytes of the longest record that OpenClaw compresses: a damaged one must not fill the memory."""
_ARCHIVED = (".jsonl.reset.", ".jsonl.deleted.")


class AgentSession(Struct, frozen=True):
    """A session: its `version` changes with what was said, `at` is the time of its last message in epoch seconds."""

    id: str
    version: str
    at: float


def sessions(connection: apsw.Connection) -> Iterator[AgentSession]:
    """Yield the sessions that a memory may hold, of an agent's database."""
    query = """
        SELECT w.session_id, w.session_key, w.updated_at, max(e.created_at), max(e.seq), count(*),
               (SELECT generation FROM transcript_rewrite_watermarks r WHERE r.session_id = w.session_id)
        FROM session_windows w JOIN transcript_events e ON e.session_id = w.session_id
        WHERE w.session_id NOT IN (SELECT session_id FROM memory_session_tombstones)
        GROUP BY w.session_id ORDER BY w.session_id"""
    for session_id, key, updated, last_message, highest, count, generation in connection.execute(query):
        if _SAFE_ID.match(str(session_id)) and not _LEFT_OUT.search(str(key)):
            at = float(last_message or updated or 0) / 1000
            # Newest number, count and rewrites: together they change with whatever is said, taken back or rewritten.
            yield AgentSession(str(session_id), f"{highest}.{count}.{generation or ''}", at)


def _transcript(connection: apsw.Connection, session: AgentSession) -> bytes:
    """Return the text of a copy: a head, then the records of the session's branch from number 1 on, a line for each.

    What is no message is a blank line. The head counts the records that cannot be read. A session that never branched
    has no active events, and all of its records count.
    """
    query = f"""
        SELECT e.seq, {_LINE} FROM transcript_events e
        WHERE e.session_id = ?1 AND (e.seq IN (SELECT event_seq FROM session_transcript_active_events
                                               WHERE session_id = ?1)
              OR NOT EXISTS (SELECT 1 FROM session_transcript_active_events WHERE session_id = ?1))
        ORDER BY e.seq"""
    connection.create_scalar_function("unpacked", _unpacked, 1)
    messages: dict[int, str] = {}
    unread = 0
    for number, text in connection.execute(query, (session.id,)):
        record = record_of(text or b"")
        if not record:
            unread += 1
        elif message := _copied(record):
            messages[int(number)] = message
    head = {"type": "session", "id": session.id, "version": session.version, "unread": unread}
    # Below the head, message number 1 stands on the line after it, and so on.
    lines = [messages.get(number, "") for number in range(1, max(messages, default=0) + 1)]
    return "\n".join([json.dumps(head), *lines, ""]).encode()


class LiveSession(NamedTuple):
    """A session that goes on: its `entry` is what the host keeps of it, `at` its last change in epoch seconds.

    `size` counts the bytes of its transcript, `usage` is the last one there.
    """

    id: str
    key: str
    entry: dict[str, Any]
    at: float
    size: int
    usage: Usage | None


def live(agent: str) -> list[LiveSession]:
    """Return the sessions in the database of `agent` that go on; none where it keeps none. Raises Unreadable."""
    database = places.agent_database(agent)
    if not database.is_file():
        return []
    try:
        return open_foreign.read_foreign(database, lambda connection: list(_live(connection)))
    except NotSeen as error:
        raise Unreadable(f"OpenClaw's sessions cannot be read: {error.detail}", error.next_step) from error


def _live(connection: apsw.Connection) -> Iterator[LiveSession]:
    """Yield the sessions that are not archived, with their size and last usage."""
    if not connection.table_exists(None, "session_nodes"):
        # A database of an older release, which held the memory's index alone.
        return
    connection.create_scalar_function("unpacked", _unpacked, 1)
    query = """
        SELECT n.current_session_id, n.session_key, n.entry_json, n.updated_at,
               (SELECT sum(coalesce(e.event_utf8_bytes, length(CAST(e.event_json AS BLOB))) + 1)
                FROM transcript_events e WHERE e.session_id = n.current_session_id)
        FROM session_nodes n WHERE n.archived_at IS NULL ORDER BY n.current_session_id"""
    newest_first = f"SELECT {_LINE} FROM transcript_events e WHERE e.session_id = ? ORDER BY e.seq DESC"
    # All rows first, because the loop asks the connection another query.
    for session_id, key, text, updated, size in list(connection.execute(query)):
        if size and (entry := record_of(text)):
            usage = usage_in(line or b"" for (line,) in connection.execute(newest_first, (session_id,)))
            yield LiveSession(str(session_id), str(key), entry, float(updated) / 1000, size=int(size), usage=usage)


MOST_EVENTS = 200_000
"""Records that are read at once: a person waits."""


def events(database: Path, since: float) -> list[tuple[str, str, bytes]]:
    """Return session, key and line of each record from `since` (epoch seconds) on, and of each session's first one.

    They are in the order in which they were written, session by session; damaged ones are left out. Raises NotSeen.
    """
    query = f"""
        SELECT e.session_id, coalesce(w.session_key, ''), {_LINE}
        FROM transcript_events e LEFT JOIN session_windows w ON w.session_id = e.session_id
        WHERE e.session_id IN (SELECT DISTINCT session_id FROM transcript_events WHERE created_at >= ?1)
              AND (e.created_at >= ?1 OR e.seq = (SELECT min(seq) FROM transcript_events f
                                                  WHERE f.session_id = e.session_id))
        ORDER BY e.session_id, e.seq LIMIT {MOST_EVENTS}"""

    def read(connection: apsw.Connection) -> list[tuple[str, str, bytes]]:
        """Return the rows of the query; none from a database without transcripts."""
        if not connection.table_exists(None, "transcript_events"):
            return []
        connection.create_scalar_function("unpacked", _unpacked, 1)
        rows = connection.execute(query, (since * 1000,))
        return [(str(session_id), str(key), line) for session_id, key, line in rows if line]

    return open_foreign.read_foreign(database, read)


_LINE = "coalesce(CAST(e.event_json AS BLOB), unpacked(e.event_zstd))"
"""A record as it was written, in a query over connections that know `unpacked`."""


def _unpacked(*values: object) -> bytes | None:
    """Return the record that OpenClaw compressed as the one value; None where it is damaged, cut off or too long."""
    [compressed] = values
    if not isinstance(compressed, bytes):
        return None
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    reader = zstd.ZstdDecompressor()
    try:
        line: bytes = reader.decompress(compressed, max_length=_LONGEST_RECORD + 1)
    except zstd.ZstdError:
        return None
    # Not at its end, the record is longer than what was asked for, or was cut off.
    return line if len(line) <= _LONGEST_RECORD and reader.eof else None


class SessionCopies:
    """The transcripts in `folder`, which follow the sessions in `database` and the archives in `archive`."""

    def __init__(self, database: Path, folder: Path, archive: Path) -> None:
        self._database, self._folder, self._archive = database, folder, archive
        self._traces: tuple[object, ...] = ()
        self.problem: Notice | None = None
        """Why not all of the sessions can be read; None where they can."""

    def refresh(self) -> bool:
        """Bring the copies up to date where the database or the archive changed; tell whether a copy changed.

        Nothing is raised: `problem` has why some sessions are not read.
        """
        database = str(self._database)
        try:
            traces = (*open_foreign.traces(self._database), _trace(self._archive))
            if traces == self._traces:
                return False
            changed = self._copy()
        except NotSeen as error:
            self.problem = notice("sessions_not_read", database=database, detail=error.detail, remedy=error.next_step)
            return False
        except OSError as error:
            reason = error.strerror or str(error)
            self.problem = notice("transcripts_not_written", folder=str(self._folder), reason=reason)
            return False
        self._traces = traces
        return changed

    def _copy(self) -> bool:
        """Write copies that are missing or older, remove those whose session is gone; tell whether any was.

        Raises NotSeen, OSError.
        """
        heads = {path.name: _head(path) for path in self._folder.glob("*.jsonl*")}

        def read(connection: apsw.Connection) -> tuple[set[str], dict[str, tuple[float, bytes]]]:
            """Return the names of all copies, and time and text of those that are to be written."""
            by_name = {f"{session.id}.jsonl": session for session in sessions(connection)}
            copies = {
                name: (session.at, _transcript(connection, session))
                for name, session in by_name.items()
                if heads.get(name, {}).get("version") != session.version
            }
            return set(by_name), copies

        names, copies = open_foreign.read_foreign(self._database, read)
        durable.make_folder(self._folder)
        for name, (at, data) in copies.items():
            durable.replace_file(self._folder / name, data)
            # A transcript is as old as what was said last, however late it is copied.
            os.utime(self._folder / name, (at, at))
            heads[name] = record_of(data.partition(b"\n")[0])
        names |= self._archives()
        stale = heads.keys() - names
        for name in stale:
            durable.remove_file(self._folder / name)
        unread = sum(head.get("unread", 0) for name, head in heads.items() if name in names)
        self.problem = notice("messages_not_read", database=str(self._database), messages=unread) if unread else None
        return bool(copies or stale)

    def _archives(self) -> set[str]:
        """Copy the transcripts of sessions that were reset or deleted, which are files, and return their names.

        One whose copy has its size and time is not copied again.
        """
        names = set()
        for path in sorted(self._archive.glob("*.jsonl.*")):
            if any(mark in path.name for mark in _ARCHIVED) and path.is_file() and not path.is_symlink():
                names.add(path.name)
                copy, status = self._folder / path.name, path.stat()
                if _trace(copy) != (status.st_size, status.st_mtime_ns):
                    durable.replace_file(copy, path.read_bytes())
                    os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        return names


def copies_of(plan: Plan) -> SessionCopies | None:
    """Return the copies that a plan's roots read; None where those are the host's own files, or not searched."""
    agent = plan.agent.id
    folder = places.session_copies(agent)
    if plan.roots.sessions != str(folder):
        return None
    return SessionCopies(places.agent_database(agent), folder, places.session_folder(agent))


def _copied(record: Mapping[str, Any]) -> str:
    """Return a message as the line that is copied, with its role and its texts; empty for any other record."""
    message = record.get("message") if record.get("type") == "message" else None
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        return ""
    content = [{"type": "text", "text": redact(text)} for text in texts(message.get("content"))]
    copy = {"role": message["role"], "content": content}
    return json.dumps({"type": "message", "message": copy, "timestamp": record.get("timestamp")}) if content else ""


def _head(copy: Path) -> dict[str, Any]:
    """Return the first line of a copy; nothing where it is none of ours."""
    try:
        with copy.open("rb") as file:
            return record_of(file.readline(1000))
    except OSError:
        return {}


def _trace(path: Path) -> tuple[int, int] | None:
    """Return size and time of what is at `path`; None where that is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


# --- the session note ------------------------------------------------------------------------------------------------

MESSAGES = 15
_SUMMARY = "## Conversation Summary\n\n"
_SILENT = re.compile(r"\s*NO_REPLY\s*\Z")
_MARKS = re.compile(r"<\|[^|>\n]{1,40}\|>")
_INJECTED = re.compile(
    r"<(?P<tag>system-reminder|(?:local-)?command-[a-z]+|bash-[a-z]+|[a-z-]+-hook|task-notification|ide_[a-z_]+"
    r"|environment_context|user_instructions|turn_aborted)(?: [^>\n]*)?>.*?</(?P=tag)>"
    r"|\A# AGENTS\.md instructions.*</INSTRUCTIONS>",
    re.DOTALL,
)
"""What a coding agent puts among the words of its user: reminders, commands, what they printed, where it runs."""
_RECALLS = re.compile(r"(?:^|_)memory_(?:search|get)\Z")
_LIST_SIGN = re.compile(r"\A[\s>#*+-]+")
_LEAST_WORDS, _LEAST_CHARS = 4, 20
"""A recalled line with fewer of either may stand in any text."""


class Message(Struct, frozen=True):
    """What somebody said; `role` is user or assistant."""

    role: str
    text: str


class EndedSession(Struct, frozen=True):
    """A session that ended: when (aware), and which it was; `reason` is what ended it."""

    at: dt.datetime
    session: str = "unknown"
    reason: str = "unknown"


def messages(transcript: Path, count: int = MESSAGES) -> tuple[Message, ...]:
    """Return the last `count` messages of a conversation of Claude Code or Codex; none where it has no transcript.

    What the assistant quotes of the memory is replaced by the name of the note. Raises Unreadable.
    """
    records = [record_of(line) for line in tail(transcript)] if transcript.exists() else []
    recalled = _recalled(records)
    every = [message for message in map(message_of, records) if message is not None]
    return tuple(_without(message, recalled) if message.role == "assistant" else message for message in every[-count:])


def conversation(messages: Sequence[Message]) -> str:
    """Return the messages as text, one after the other, secrets masked."""
    return "\n".join(f"{message.role}: {redact(message.text)}" for message in messages)


def note(ended: EndedSession, content: str) -> str:
    """Return the text of the note."""
    head = (
        f"# Session: {ended.at:%Y-%m-%d %H:%M:%S} {ended.at.tzname() or 'UTC'}\n\n"
        f"- **Session Key**: unknown\n- **Session ID**: {_flat(ended.session)}\n"
        f"- **Reason**: {_flat(ended.reason)}\n"
    )
    return f"{head}\n{_SUMMARY}{content}\n" if content else head


Write = Callable[[str, bytes | None, bytes], bool]
"""Changes the note of a stored path from its old bytes, None for no note, to new ones.

False where the note holds something else by now; then it stays as it is."""


def save(workspace: Path, ended: EndedSession, content: str, write: Write) -> Path:
    """Write the note of a session, or go on with it; return its path. Raises MemoryTuiError.

    A session has one note. One that somebody else wrote into stays as it is, and the session gets another.
    """
    folder = workspace / "memory"
    try:
        # The hooks of a user and of a project call at the same time.
        with _alone(folder):
            return _keep(folder, ended, content, write)
    except OSError as error:
        why = f"The note cannot be written to {folder}: {error.strerror or error}."
        raise MemoryTuiError(why, "Check permissions and free space.") from error


def _create(folder: Path, ended: EndedSession, data: bytes, write: Write) -> Path:
    """Write the note under the first name that is free; `write` overwrites none."""
    if not folder.is_dir():
        durable.make_folder(folder, 0o777)
    name = f"{ended.at:%Y-%m-%d-%H%M}"
    for number in range(1, 10_000):
        path = folder / (f"{name}.md" if number == 1 else f"{name}-{number}.md")
        if not os.path.lexists(path) and write(f"memory/{path.name}", None, data):
            return path
    raise MemoryTuiError(f"There are too many notes called {name}.", "Archive some of them.")


def _flat(text: str) -> str:
    """Return `text` on one line."""
    return " ".join(text.split()) or "unknown"


def message_of(record: dict[str, Any]) -> Message | None:
    """Return what a record says; None for tools, commands, sub-agents, summaries, injected context and silence."""
    kind = record.get("type")
    if kind not in ("message", "response_item", *ROLES):
        return None
    message = record.get("payload" if kind == "response_item" else "message")
    if not isinstance(message, dict) or message.get("role") not in ROLES or message.get("provenance"):
        return None
    if record.get("isMeta") or record.get("isSidechain") or record.get("isCompactSummary"):
        return None
    # The first block with words; a command of the user begins with a slash.
    cleaned = (jsstring.trim(_MARKS.sub("", _INJECTED.sub("", text))) for text in texts(message.get("content")))
    text = next(filter(None, cleaned), "")
    says_nothing = not text or text.startswith("/") or _SILENT.match(text)
    return None if says_nothing else Message(str(message["role"]), text)


# --- what was recalled ---------------------------------------------------------------------------------------------


def _recalled(records: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return each line that the memory gave during a conversation, in lower case, and the note it is from."""
    calls: set[object] = set()
    lines: dict[str, str] = {}
    # A call comes before its result: what `calls` has are the ids of those that asked the memory.
    for step in (step for record in records for step in _steps(record)):
        if "name" in step:
            if _RECALLS.search(str(step["name"] or "")):
                calls.add(step.get("id") if step.get("type") == "tool_use" else step.get("call_id"))
        # OpenClaw's results of the memory are the only ones that `_steps` yields with a role.
        elif step.get("role") == "toolResult" or (step.get("tool_use_id") or step.get("call_id")) in calls:
            for text in texts(step.get("output", step.get("content"))):
                lines.update(_lines_of(text))
    return lines


def _steps(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calls of tools, which have a name, and their results, which have none, in the record of a transcript.

    Of OpenClaw, whose results name their tool, only those of the memory are yielded.
    """
    payload, message = record.get("payload"), record.get("message")
    if isinstance(payload, dict):
        yield payload
    if isinstance(message, dict):
        if message.get("role") == "toolResult" and _RECALLS.search(str(message.get("toolName") or "")):
            yield message
        content = message.get("content")
        yield from (block for block in (content if isinstance(content, list) else ()) if isinstance(block, dict))


def _lines_of(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the lines in an answer of memory_search or memory_get, in lower case, each with the path of its note.

    Short ones, which may stand in any text, are left out.
    """
    data = answer_in(answer)
    hits = data["results"] if isinstance(data.get("results"), list) else [data]
    for hit in hits:
        text = (hit.get("snippet") or hit.get("text")) if isinstance(hit, dict) else None
        lines = text.splitlines() if isinstance(text, str) else []
        for words in (_LIST_SIGN.sub("", line).split() for line in lines):
            plain = " ".join(words).lower()
            if len(words) >= _LEAST_WORDS and len(plain) >= _LEAST_CHARS:
                yield plain, str(hit.get("path") or "the memory")


def _without(message: Message, recalled: Mapping[str, str]) -> Message:
    """Return `message` with the name of the note in the place of each line that was recalled from it."""
    text = message.text
    plain = " ".join(text.split()).lower()
    # The longest first: a line may hold another one.
    for line in sorted(recalled, key=len, reverse=True):
        if line in plain:
            pattern = r"\s+".join(re.escape(word) for word in line.split())
            # A backslash would begin an escape in what is put in.
            text = re.sub(pattern, f"[see {recalled[line]}]".replace("\\", r"\\"), text, flags=re.IGNORECASE)
    return Message(message.role, text)


# --- one note a session --------------------------------------------------------------------------------------------

_FRONT = re.compile(r"---\nsession: (?P<session>[^\n]+)\nwritten: (?P<sum>[0-9a-f]{16})\n---\n")


def _alone(folder: Path) -> locks.WriterLock:
    """Return the lock, held already, by which one process alone writes session notes into `folder`.

    Raises MemoryTuiError, OSError.
    """
    state = platformdirs.user_state_path("memory-tui", appauthor=False) / "session-notes"
    durable.make_folder(state)
    try:
        return locks.wait_for(state / _sum(os.fsencode(os.path.realpath(folder))))
    except IndexBusy as error:
        why = f"Another memory-tui is writing a session note into {folder}."
        raise MemoryTuiError(why, "Run the hook again in a moment.") from error


def _keep(folder: Path, ended: EndedSession, content: str, write: Write) -> Path:
    """Go on with the note of a session where it has one that nobody else wrote into, else write a new one."""
    if (newest := _note_of(folder, _flat(ended.session))) is not None:
        path, text, data = newest
        # What stands below the heading of the note is the conversation as it was written so far.
        before = text.partition(_SUMMARY)[2].removesuffix("\n")
        longer = _continued(before.split("\n") if before else [], content.split("\n"))
        # A session that said nothing new keeps its note as it is, so that it does not look younger.
        if longer == before or write(f"memory/{path.name}", data, _owned(ended, note(ended, longer))):
            return path
    return _create(folder, ended, _owned(ended, note(ended, content)), write)


def _owned(ended: EndedSession, text: str) -> bytes:
    """Return `text` behind the front matter that names the session, and has the hash of `text`.

    By that hash `_note_of` tells whether somebody else wrote into the note since.
    """
    body = text.encode("utf-8", "replace")
    return f"---\nsession: {_flat(ended.session)}\nwritten: {_sum(body)}\n---\n".encode() + body


def _sum(body: bytes) -> str:
    """Return the first 16 digits of the SHA-256 of `body`."""
    return hashlib.sha256(body).hexdigest()[:16]


def _note_of(folder: Path, session: str) -> tuple[Path, str, bytes] | None:
    """Return the newest note of `session` into which nobody else wrote; None for no such note. Raises OSError.

    It comes as its path, its text without the front matter, and all its bytes.
    """
    for path in sorted(folder.glob("*.md"), reverse=True):
        if not path.is_file() or not os.access(path, os.R_OK):
            # A pipe would never end, and what cannot be read was not written here.
            continue
        with path.open("rb") as file:
            # Enough for the front matter that is written here.
            head = file.read(400)
            front = _FRONT.match(head.decode("utf-8", "replace"))
            if front is None or front["session"] != session:
                continue
            data = head + file.read()
        body = data[len(front[0].encode()) :]
        if _sum(body) == front["sum"]:
            return path, body.decode("utf-8", "replace"), data
    return None


def _continued(before: list[str], now: list[str]) -> str:
    """Return the lines `before`, of a note, and those `now`, of the same conversation later; shared ones stand once."""
    # The most lines that end the note and begin what is said now: the conversation goes on behind them.
    sizes = range(min(len(before), len(now)), 0, -1)
    common = next((size for size in sizes if before[-size:] == now[:size]), 0)
    # Nothing is new: what is said now stands within the note.
    if not common and "\n".join(now) in "\n".join(before):
        return "\n".join(before)
    return "\n".join([*before, *now[common:]])
