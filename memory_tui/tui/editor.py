"""Which editor to start, and how each wants to be told the line."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import PurePath

_COLON = {"hx", "helix", "zed", "zeditor", "subl", "sublime_text", "micro"}
_GOTO = {"code", "code-insiders", "codium", "vscodium", "cursor"}
_NO_LINE = {"notepad", "notepad.exe", "open", "xdg-open"}


def command(path: str, line: int, environment: Mapping[str, str]) -> list[str]:
    """The arguments that open `path` at `line` (1-based) in $VISUAL, else $EDITOR, else vi."""
    chosen = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    words = shlex.split(chosen)
    name = PurePath(words[0]).name.removesuffix(".exe")
    if name in _GOTO:
        return [*words, "--wait", "--goto", f"{path}:{line}"]
    if name in _COLON:
        return [*words, f"{path}:{line}"]
    if name in _NO_LINE:
        return [*words, path]
    return [*words, f"+{line}", path]


def edit(path: str, line: int) -> str:
    """Run the editor until it ends; returns what went wrong as a sentence, or nothing."""
    words = command(path, line, os.environ)
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError as error:
        return f"The editor {words[0]} could not be started: {error.strerror or error}. Set $EDITOR."
    return f"The editor {words[0]} ended with status {status}." if status else ""
