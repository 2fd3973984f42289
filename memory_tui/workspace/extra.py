"""Entries of extraPaths: a note or a folder, with a pattern or without one."""

# Paths are strings: names may hold undecodable bytes.
# ruff: noqa: PTH111, PTH118
from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from memory_tui.config.extra import ExtraPath
from memory_tui.text import js

__all__ = ["ExtraPath", "admitted", "entries"]


def entries(base: str, written: Iterable[str | ExtraPath]) -> tuple[ExtraPath, ...]:
    """What was `written`, with absolute paths: `~` stands for home, relative ones start in `base`; no repeats."""
    extra = (item if isinstance(item, ExtraPath) else ExtraPath(item) for item in written)
    return tuple(
        dict.fromkeys(
            ExtraPath(os.path.normpath(os.path.join(base, os.path.expanduser(path))), item.pattern)
            for item in extra
            if (path := js.trim(item.path))
        )
    )


def admitted(extra: Iterable[ExtraPath]) -> Callable[[str], bool]:
    """Tells whether any entry of `extra` reads the file at an absolute path; all of them are looked at.

    A pattern is matched against the path from its entry as OpenClaw does from 2026.8 on, which is as minimatch does:
    `*` and `?` stay within a name and find no leading dot, `**` goes through folders.
    """
    from wcmatch import glob

    flags = glob.GLOBSTAR | glob.BRACE | glob.EXTGLOB | glob.FORCEUNIX | glob.CASE
    found = [(item.path.rstrip(os.sep) + os.sep, item.pattern.replace("\\", "/")) for item in extra]

    def admits(absolute: str) -> bool:
        return any(
            absolute.startswith(folder)
            and (not pattern or glob.globmatch(absolute[len(folder) :].replace(os.sep, "/"), pattern, flags=flags))
            for folder, pattern in found
        )

    return admits
