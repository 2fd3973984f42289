"""Exported transcripts are notes that QMD can search: one for each session."""

from __future__ import annotations

import os
import time
from pathlib import Path

from memory_tui.config.places import state_folder
from memory_tui.core import atomic
from memory_tui.core.errors import Unreadable
from memory_tui.qmd.folder import QmdFailure
from memory_tui.qmd.options import QmdOptions
from memory_tui.workspace import transcripts

_TITLE = "# Session "
_DAY = 86_400.0


def export(options: QmdOptions, folder: Path) -> int:
    """Write the agent's transcripts into `folder` and delete those whose session is gone or too old; returns how many.

    A file that does not begin as an exported transcript does is somebody's own, and stays. Raises QmdFailure.
    """
    sessions = state_folder() / "agents" / options.agent / "sessions"
    oldest = time.time() - options.retention_days * _DAY if options.retention_days else 0.0
    wanted: set[str] = set()
    try:
        atomic.make_folder(folder)
        for found in transcripts.listing(str(sessions), archives=False).found:
            if found.mtime_ns / 1e9 < oldest:
                continue
            name = os.path.basename(found.absolute).removesuffix(".jsonl")  # noqa: PTH119 - undecodable names
            try:
                text = transcripts.read(found).text
            except Unreadable:
                # The other sessions are searched all the same; the list of files says why this one is not.
                continue
            wanted.add(f"{name}.md")
            _write(folder / f"{name}.md", f"{_TITLE}{name}\n\n{text or '(empty)'}\n")
        for file in folder.glob("*.md"):
            if file.name not in wanted and _is_exported(file):
                atomic.remove_file(file)
    except OSError as error:
        raise QmdFailure(
            "index", f"Transcripts cannot be exported to {folder}: {error.strerror}.", "Check the folder."
        ) from error
    return len(wanted)


def _write(file: Path, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if file.exists() and not _is_exported(file):
        return
    # What did not change keeps its time, so that nothing is behind.
    if not file.exists() or file.read_bytes() != data:
        atomic.replace_file(file, data)


def _is_exported(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_TITLE)) == _TITLE.encode()
