"""A session note is the end of a conversation, saved as memory/YYYY-MM-DD-slug.md.

An existing note is never overwritten, and secrets are masked before anything is written or sent to a model.

The conversation is sent to the address that `MEMORY_TUI_SLUG_URL` names and to nobody else, secrets masked.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory_tui.config.model import Config
from memory_tui.core import atomic, jsstring
from memory_tui.core.errors import MemoryTuiError, Unreadable
from memory_tui.core.jsstring import utf16_head
from memory_tui.core.redaction import redact

MESSAGES = 15
MAX_BYTES = 8 << 20
"""Of a longer transcript only the end is read."""
_ROLES = ("user", "assistant")
_SILENT = re.compile(r"\s*NO_REPLY\s*\Z")
_MARKS = re.compile(r"<\|[^|>\n]{1,40}\|>|</?(?:system-reminder|command-[a-z]+|local-command-[a-z]+)>")


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody said; `role` is user or assistant."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class EndedSession:
    """A session that ended: when (aware), and who it was; `reason` is what ended it."""

    at: dt.datetime
    key: str = "unknown"
    session: str = "unknown"
    reason: str = "unknown"


def time_zone(config: Config) -> dt.tzinfo | None:
    """The time zone of the user, as the configuration names it; None for that of this machine."""
    node = config.tree.get("agents", "defaults", "userTimezone") if config.tree else None
    if node is None or not isinstance(node.value, str):
        return None
    try:
        return ZoneInfo(node.value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise MemoryTuiError(
            f"There is no time zone {node.value!r} (line {node.line} of {node.source.path}).",
            "For instance Europe/Berlin.",
        ) from error


def messages(transcript: Path, count: int = MESSAGES) -> tuple[Message, ...]:
    """The last `count` messages of a conversation, in the form of OpenClaw or Claude Code. Raises Unreadable.

    Where a reset has emptied the transcript, its newest archive is read.
    """
    found = tuple(_spoken(_lines(transcript)))[-count:]
    archives = _archives(transcript) if not found else []
    return tuple(_spoken(_lines(archives[-1])))[-count:] if archives else found


def require(transcript: Path) -> None:
    """Raises Unreadable where there is neither a conversation nor an archive of it: a silent one is another thing."""
    try:
        transcript.stat()
    except OSError as error:
        if not _archives(transcript):
            raise _unreadable(transcript, error) from error


def conversation(said: Sequence[Message]) -> str:
    """The messages as text, one after the other, secrets masked."""
    return "\n".join(f"{message.role}: {redact(message.text)}" for message in said)


def slug_of(answer: str) -> str:
    """A model's words as a part of a file name: a-z, 0-9 and single hyphens, at most 30; may be empty."""
    return re.sub(r"-+", "-", re.sub(r"[^a-z0-9-]", "-", answer.strip().lower())).strip("-")[:30].strip("-")


def note(ended: EndedSession, content: str) -> str:
    """The text of the note."""
    zone = ended.at.tzname() or "UTC"
    lines = [
        f"# Session: {ended.at:%Y-%m-%d %H:%M:%S} {zone}",
        "",
        f"- **Session Key**: {_flat(ended.key)}",
        f"- **Session ID**: {_flat(ended.session)}",
        f"- **Reason**: {_flat(ended.reason)}",
        "",
    ]
    if content:
        lines += ["## Conversation Summary", "", content, ""]
    return "\n".join(lines)


def save(workspace: Path, ended: EndedSession, content: str, slug: str) -> Path:
    """Write the note under a name that is free. Raises MemoryTuiError."""
    folder = workspace / "memory"
    name = f"{ended.at:%Y-%m-%d}-{slug or f'{ended.at:%H%M}'}"
    try:
        if not folder.is_dir():
            atomic.make_folder(folder, 0o777)
        return _create(note(ended, content).encode("utf-8", "replace"), folder, name)
    except OSError as error:
        raise MemoryTuiError(
            f"The note cannot be written to {folder}: {error.strerror or error}.", "Check permissions and free space."
        ) from error


def _create(data: bytes, folder: Path, name: str) -> Path:
    """Write the note under the first name that is free, in one step that cannot overwrite."""
    for number in range(1, 10_000):
        path = folder / (f"{name}.md" if number == 1 else f"{name}-{number}.md")
        try:
            atomic.create_file(path, data, 0o644)
        except FileExistsError:
            continue
        return path
    raise MemoryTuiError(f"There are too many notes called {name}.", "Archive some of them.")


def _flat(text: str) -> str:
    return " ".join(text.split()) or "unknown"


def _archives(transcript: Path) -> list[Path]:
    return sorted(transcript.parent.glob(f"{transcript.name}.reset.*"))


def _unreadable(path: Path, error: OSError) -> Unreadable:
    return Unreadable(f"The transcript {path} cannot be read: {error.strerror or error}.", "Check the path.")


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - MAX_BYTES))
            text = file.read(MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(path, error) from error
    lines = text.split("\n")
    return lines[1:] if end > MAX_BYTES else lines


def _spoken(lines: Sequence[str]) -> Iterator[Message]:
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and (message := _message(record)) is not None:
            yield message


def _message(record: dict[str, Any]) -> Message | None:
    """What a record says; None for tools, commands, sub-agents, injected context and silence."""
    kind, held = record.get("type"), record.get("message")
    if kind not in ("message", *_ROLES) or not isinstance(held, dict) or held.get("role") not in _ROLES:
        return None
    if record.get("isMeta") or record.get("isSidechain") or held.get("provenance"):
        return None
    content = held.get("content")
    if isinstance(content, list):
        content = next(
            (
                block["text"]
                for block in content
                if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
            ),
            "",
        )
    text = jsstring.trim(_MARKS.sub("", content)) if isinstance(content, str) else ""
    if not text or text.startswith("/") or _SILENT.match(text):
        return None
    return Message(str(held["role"]), text)


URL, MODEL, KEY = "MEMORY_TUI_SLUG_URL", "MEMORY_TUI_SLUG_MODEL", "MEMORY_TUI_SLUG_KEY"
SECONDS = 15.0
UNITS = 2000
"""UTF-16 units of the conversation that are sent."""


def ask(content: str) -> tuple[str, str]:
    """A slug for the conversation and why there is none; one of the two is empty."""
    base = os.environ.get(URL, "").strip().rstrip("/")
    if not base:
        return "", f"no model is named ({URL})"
    if not content.strip():
        return "", "nothing was said"
    import httpx

    from memory_tui.providers.provider_options import host_of, on_this_machine

    key = os.environ.get(KEY, "")
    body = {
        "model": os.environ.get(MODEL, "default"),
        "max_tokens": 20,
        "messages": [
            {
                "role": "user",
                "content": (
                    "Name this conversation with one or two words, lower case, joined by a hyphen, and answer with "
                    "nothing "
                    f"else.\n\n{utf16_head(content, UNITS)}"
                ),
            }
        ],
    }
    try:
        # No proxy stands between this machine and itself.
        answer = httpx.post(
            f"{base}/chat/completions",
            json=body,
            timeout=SECONDS,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            trust_env=not on_this_machine(host_of(base)),
        )
        answer.raise_for_status()
        words = answer.json()["choices"][0]["message"]["content"]
    except httpx.HTTPStatusError as error:
        return "", f"the model's server answered {error.response.status_code}"
    except httpx.HTTPError as error:
        return "", f"the model cannot be reached: {type(error).__name__}"
    except (ValueError, KeyError, IndexError, TypeError):
        return "", "the model's answer is not understood"
    slug = slug_of(words) if isinstance(words, str) else ""
    return (slug, "") if slug else ("", "the model gave no usable words")
