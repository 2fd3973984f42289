"""An entry is one long-term memory of an agent, with the rules of OpenClaw's plug-in memory-lancedb for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from memory_tui.core import jsstring
from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.formatting import plural

CATEGORIES = ("preference", "fact", "decision", "entity", "other")
IMPORTANCE = 0.7
"""The importance of an entry that nobody rated."""
DUPLICATE = 0.95
"""From this score on a new text is a duplicate of the nearest entry."""
MOST_CAPTURED = 500
"""Characters of the longest text that is captured, where nothing is configured."""
MOST_STORED = 10_000
"""Characters of the longest text that is stored at all."""
SHORTEST_CAPTURED, MOST_CAPTURES, _MOST_EMOJI = 10, 3, 3

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


class EntryRefused(MemoryTuiError):
    """A change of entries that is not made; the table is as it was."""

    code = "entry_refused"
    exit_status = 2


class MemoryEntry(Struct, frozen=True):
    """One entry: `importance` from 0 to 1, `created_at` in milliseconds since 1970."""

    id: str
    text: str
    importance: float
    category: str
    created_at: float

    def as_dict(self) -> dict[str, Any]:
        """The entry as JSON-ready fields, named as in the table."""
        return {
            "id": self.id,
            "text": self.text,
            "importance": self.importance,
            "category": self.category,
            "createdAt": self.created_at,
        }


def is_id(text: str) -> bool:
    """Whether `text` is a UUID: nothing else is ever put into a filter."""
    return _UUID.fullmatch(text) is not None


def normalised(text: str) -> str:
    """`text` as duplicates are found by: NFC, line ends as LF, trimmed."""
    return jsstring.trim(unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n"))


# --- categories ----------------------------------------------------------------------------------------------------

_CATEGORY: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("preference", re.compile("prefer|radši|like|love|hate|want")),
    ("decision", re.compile("rozhodli|decided|will use|budeme")),
    ("entity", re.compile(r"\+\d{10,}|@[\w.-]+\.\w+|is called|jmenuje se", re.ASCII)),
    ("fact", re.compile("is|are|has|have|je|má|jsou")),
)


def category_of(text: str) -> str:
    """The category that OpenClaw gives `text`: the first whose pattern is anywhere in it, inside words too."""
    lower = text.lower()
    return next((name for name, pattern in _CATEGORY if pattern.search(lower)), "other")


# --- what is refused -----------------------------------------------------------------------------------------------

_INJECTIONS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE | re.ASCII))
    for name, pattern in (
        (
            "ignore ... instructions",
            r"ignore (all|any|previous|above|prior)( (all|any|previous|above|prior))* instructions",
        ),
        ("do not follow the system", r"do not follow (the )?(system|developer)"),
        ("system prompt", r"\bsystem prompt\b"),
        ("developer message", r"\bdeveloper message\b"),
        ("<system>", r"<\s*(system|assistant|developer|tool|function|relevant-memories)\b"),
        ("run ... tool", r"\b(run|execute|call|invoke)\b.{0,40}\b(tool|command)\b"),
    )
)


def injection(text: str) -> str:
    """The pattern by which `text` looks like instructions to an agent; empty where it does not."""
    flat = " ".join(text.split())
    return next((name for name, pattern in _INJECTIONS if pattern.search(flat)), "")


def require_storable(text: str, most: int = MOST_STORED) -> str:
    """`text` trimmed, where it may become an entry. Raises EntryRefused with what is wrong with it."""
    found = normalised(text)
    if not found:
        raise EntryRefused("There is no text to store.", 'For instance: memory-tui ltm store "I prefer tabs".')
    if "\0" in found or jsstring.well_formed(found) != found:
        raise EntryRefused("The text holds a NUL or half a character.", "Take it out.")
    if len(found) > most:
        raise EntryRefused(
            f"The text has {len(found):,} characters; an entry has at most {most:,}.",
            "Store one sentence, or write a note: memory-tui remember.",
        )
    if pattern := injection(found):
        raise EntryRefused(
            f'The text looks like instructions to an agent: it matches the pattern "{pattern}".',
            "Say it as a fact.",
        )
    return found


def require_importance(value: float) -> float:
    """`value` from 0 to 1. Raises EntryRefused."""
    if not 0 <= value <= 1:
        raise EntryRefused(f"Importance is a number from 0 to 1, not {value:g}.", "For instance --importance 0.7.")
    return float(value)


def require_category(name: str) -> str:
    """A category by its name. Raises EntryRefused."""
    if name not in CATEGORIES:
        raise EntryRefused(f"There is no category {name!r}.", f"Choose one of {', '.join(CATEGORIES)}.")
    return name


# --- capture -------------------------------------------------------------------------------------------------------

_TRIGGERS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"zapamatuj si|pamatuj|remember",
        r"preferuji|radši|nechci|prefer",
        r"rozhodli jsme|budeme používat",
        r"\+[0-9]{10,}",
        r"[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+\.[A-Za-z0-9_]+",
        r"můj\s+[A-Za-z0-9_]+\s+je|je\s+můj",
        r"my\s+[A-Za-z0-9_]+\s+is|is\s+my",
        r"i (like|prefer|hate|love|want|need)",
        r"always|never|important",
    )
)
_EMOJI = re.compile("[\U0001f300-\U0001f9ff]")


def not_captured(text: str, most: int = MOST_CAPTURED, triggers: Sequence[str] = ()) -> str:
    """Why OpenClaw does not capture `text` by itself, as a sentence; empty where it does."""
    length = jsstring.utf16_len(text)
    if length < SHORTEST_CAPTURED or length > most:
        return f"It has {plural(length, 'character')}; from {SHORTEST_CAPTURED} to {most:,} are captured."
    if "<relevant-memories>" in text:
        return "It is a block of recalled memories."
    if text.startswith("<") and "</" in text:
        return "It looks like markup."
    if "**" in text and "\n-" in text:
        return "It looks like a formatted answer."
    if len(_EMOJI.findall(text)) > _MOST_EMOJI:
        return f"It has more than {_MOST_EMOJI} emoji."
    if pattern := injection(text):
        return f'It looks like instructions to an agent: it matches the pattern "{pattern}".'
    lower = text.lower()
    if any(pattern.search(text) for pattern in _TRIGGERS) or any(word.lower() in lower for word in triggers):
        return ""
    return "No trigger word is in it."
