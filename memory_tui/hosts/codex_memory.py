"""Codex's memory: a folder that Codex writes by itself, of what earlier sessions came to.

MEMORY.md groups tasks, memory_summary.md begins each session, raw_memories.md and rollout_summaries/ are what both are
made of. Codex rewrites all of it: what a person adds or corrects is a note of its own in extensions/ad_hoc/notes,
which Codex reads when it next makes its memory (source: the instructions in Codex 0.169.0).
"""

from __future__ import annotations

import datetime as dt
import os
import re
from pathlib import Path

from memory_tui.hosts import codex

NOTES = "extensions/ad_hoc/notes"
_MOST_SLUG = 80


def folder() -> Path:
    """Where Codex keeps its memory, whether it is there or not."""
    return codex.home() / "memories"


def is_memory(workspace: Path) -> bool:
    """Whether a workspace is Codex's memory."""
    return os.path.realpath(workspace) == os.path.realpath(folder())


def note_path(text: str, at: dt.datetime) -> str:
    """The stored path of a note that adds `text`: Codex takes no other form of name."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    slug = "-".join(re.findall(r"[a-z0-9]+", first.casefold()))[:_MOST_SLUG].strip("-") or "note"
    return f"{NOTES}/{at:%Y-%m-%dT%H-%M-%S}-{slug}.md"
