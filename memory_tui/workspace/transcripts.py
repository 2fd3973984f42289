"""Transcripts are conversations as notes: the JSONL files of an agent's sessions.

What a user and the assistant said becomes one line a message, `User: ...` or `Assistant: ...`, without line breaks and
with secrets masked; tools, thoughts and everything else is left out. Lines count in the JSONL file.
"""

# ruff: noqa: PTH118
# Paths are strings: names may hold undecodable bytes.

from __future__ import annotations

import json
import os
import re
import stat

from msgspec.structs import asdict, replace

from memory_tui import jsstring
from memory_tui.errors import PathRefused
from memory_tui.secrets.finder import redact
from memory_tui.workspace import notes
from memory_tui.workspace.notes import Document
from memory_tui.workspace.scan import MAX_BYTES, LeftOut, NoteFile, Rule, Scan, storable

SOURCE = "sessions"
"""Source of transcripts, and the first part of the path under which one is stored."""

_ARCHIVED = re.compile(r"\.jsonl\.(?:reset|deleted)\.")
_SPACES = re.compile(f"[{re.escape(jsstring.WHITESPACE)}]+")


class Transcript(Document, frozen=True):
    """A conversation: `lines` has the JSONL line (1-based) of each line of `text`; `skipped` lines are not JSON.

    `hash` is the documented one, of text and line numbers.
    """

    lines: tuple[int, ...] = ()
    skipped: int = 0


def listing(folder: str, archives: bool) -> Scan:
    """Return the transcripts in `folder`, not below it; with `archives` also what `/reset` and deletion put aside."""
    files: list[NoteFile] = []
    left_out: list[LeftOut] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                path = f"{SOURCE}/{storable(entry.name)}"
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:
                    left_out.append(LeftOut(path, "unreadable", f"It cannot be looked at: {error.strerror}."))
                    continue
                if (reason := _reason(entry.name, status, archives)) is not None:
                    left_out.append(LeftOut(path, *reason))
                else:
                    files.append(NoteFile.of(path, os.path.join(folder, entry.name), status, folder, SOURCE))
    except FileNotFoundError:
        left_out.append(LeftOut(SOURCE, "missing root", "The agent has no folder of sessions yet."))
    except OSError as error:
        left_out.append(LeftOut(SOURCE, "unreadable", f"The folder of sessions cannot be listed: {error.strerror}."))
    return Scan(tuple(sorted(files)), tuple(sorted(left_out)))


def _reason(name: str, status: os.stat_result, archives: bool) -> tuple[Rule, str] | None:
    """Return why a file is not read as a transcript, as rule and sentence; None for one that is read."""
    is_archived = _ARCHIVED.search(name) is not None
    if not (name.endswith(".jsonl") or is_archived):
        return "not a transcript", "Only .jsonl files are transcripts."
    if is_archived and not archives:
        why = "It was put aside when its session was reset or deleted; --set sessions.archives=true reads it."
        return "not a transcript", why
    if stat.S_ISLNK(status.st_mode):
        return "symlink", "Symbolic links are not followed."
    if not stat.S_ISREG(status.st_mode):
        return "not a file", "It is not a regular file, so it is never opened."
    if status.st_size > MAX_BYTES:
        return "too big", f"It has {status.st_size:,} bytes; at most {MAX_BYTES:,} are read."
    return None


def locate(folder: str, archives: bool, path: str) -> NoteFile:
    """Return the transcript stored as `path`. Raises PathRefused."""
    seen = listing(folder, archives) if folder else Scan((), ())
    for note in seen.notes:
        if note.path == path:
            return note
    reason = next((left.detail for left in seen.left_out if left.path == path), "There is no such transcript.")
    step = "Look for its path in the list of files."
    raise PathRefused(f"{path} cannot be opened. {reason if folder else 'Sessions are not among the sources.'}", step)


def read(note: NoteFile) -> Transcript:
    """Return the conversation in `note` as it is indexed. Raises Unreadable."""
    raw = notes.read(note)
    turns = [_words(line) for line in raw.text.split("\n")]
    spoken = {number: words for number, words in enumerate(turns, 1) if words}
    text = "\n".join(spoken.values())
    # The hash that OpenClaw has of a transcript: the text, a line end, and the numbers of its lines.
    digest = jsstring.sha256_hex(text + "\n" + ",".join(map(str, spoken)))
    fields = asdict(raw) | {"text": text, "hash": digest}
    # `_words` is None for what is not JSON.
    return Transcript(**fields, lines=tuple(spoken), skipped=turns.count(None))


def document(note: NoteFile) -> Document:
    """Return the conversation in `note` for a reader: as many lines as the file has, each message on the line it is on.

    Lines that are not indexed are empty. Raises Unreadable.
    """
    raw = notes.read(note)
    return replace(raw, text="\n".join(_words(line) or "" for line in raw.text.split("\n")))


def newlines(note: NoteFile, start: int) -> int:
    """Count the lines that end behind byte `start` of the file. Raises OSError."""
    count = 0
    with open(note.absolute, "rb") as file:  # noqa: PTH123 - names may hold undecodable bytes
        file.seek(start)
        while block := file.read(1 << 20):
            count += block.count(b"\n")
    return count


# --- what a line says ----------------------------------------------------------------------------------------------


def _words(line: str) -> str | None:
    """Return what a line of the file becomes, empty where it is not indexed; None for what is not JSON."""
    try:
        # NaN and Infinity are no JSON: `int` raises ValueError for these words. A blank line is no error.
        record = json.loads(line, parse_constant=int) if jsstring.trim(line) else None
    except (ValueError, RecursionError):
        return None
    message = record.get("message") if isinstance(record, dict) and record.get("type") == "message" else None
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return ""
    # The content is a text, or a list of blocks of which some are texts.
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    lines = (_SPACES.sub(" ", text).strip(" ") for text in texts if isinstance(text, str))
    words = " ".join(filter(None, lines))
    return f"{message['role'].capitalize()}: {redact(words)}" if words else ""
