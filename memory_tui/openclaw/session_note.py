"""A session note is the end of a conversation, saved as memory/YYYY-MM-DD-HHMM.md.

Secrets are masked before anything is written. No note is overwritten; a session that goes on has one note, as long as
nobody else wrote into it. What a conversation quotes of the memory is left
out, so that a note is not found in place of the one that it quotes.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import platformdirs
from msgspec import Struct

from memory_tui import durable, jsstring, locks
from memory_tui.errors import IndexBusy, MemoryTuiError
from memory_tui.openclaw.agent_sessions import ROLES, answer_in, record_of, tail, texts
from memory_tui.secrets.finder import redact

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
