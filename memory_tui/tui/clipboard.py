"""Copying: through the terminal (OSC 52), and through a clipboard program where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess

_PROGRAMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)

MOST_SECONDS = 1.0
"""A clipboard program that takes longer is not waited for."""


def program() -> tuple[str, ...] | None:
    """The clipboard program of this desktop, if one is installed."""
    for variable, words in _PROGRAMS:
        if (not variable or os.environ.get(variable)) and shutil.which(words[0]):
            return words
    return None


def copy(text: str) -> str:
    """Hand `text` to the clipboard program; returns its name, or nothing. Waits MOST_SECONDS at most."""
    words = program()
    if words is None:
        return ""
    try:
        subprocess.run(
            words,
            input=text.encode("utf-8", "replace"),
            timeout=MOST_SECONDS,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        # The terminal was asked as well, so there is nothing to add but that this way failed.
        return ""
    return words[0]
