"""The shape of a folder: a workspace with memory/, a memory of facts beside their index, or notes without either."""

# ruff: noqa: PTH118

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from memory_tui.workspace.scan import most_entries

Shape = Literal["workspace", "facts", "vault"]
HIDDEN = (".*", "node_modules")
"""Folders that hold no notes of a folder that is memory as a whole: settings, rubbish, programs."""
_POINTER = re.compile(r"^\s*[-*+]\s+\[[^\]\n]+\]\(<?(?:\./)?(?P<file>[^)>/\s#]+\.md)>?\)", re.MULTILINE)
_AGENT = ("AGENTS.md", "SOUL.md", "memory")
"""What OpenClaw keeps beside MEMORY.md, of which it reads memory/ alone."""


def shape_of(folder: Path) -> Shape:
    """Return what kind of memory a folder is."""
    index = next((path for name in ("MEMORY.md", "memory.md") if (path := folder / name).is_file()), None)
    if index is None:
        return "workspace" if (folder / "memory").exists() else "vault"
    if any((folder / name).exists() for name in _AGENT):
        return "workspace"
    try:
        listed = _POINTER.findall(index.read_text("utf-8", "replace"))
    except OSError:
        # The scan says so.
        return "workspace"
    return "facts" if any((folder / name).is_file() for name in listed) else "workspace"


def notes_below(folder: Path) -> Iterator[str]:
    """Yield the paths of the Markdown files below a folder, in it and its folders, as far as a scan would look."""
    left = most_entries()
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != HIDDEN[1]]
        left -= len(folders) + len(files)
        if left < 0:
            return
        yield from (os.path.join(place, name) for name in files if name.endswith(".md"))
