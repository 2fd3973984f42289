"""Notes as MCP resources. A client lists them with sizes, and reads one by its URI."""

from __future__ import annotations

import base64
import hashlib
import urllib.parse

from msgspec import Struct

from memory_tui.errors import PathRefused, QueryError
from memory_tui.mcp import tools
from memory_tui.workspace.roots import MEMORY, Roots, document, locate, scan

SCHEME = "memory:"
PAGE = 500
_SUM = 8


class File(Struct, frozen=True):
    """One note: its URI, stored path, bytes, and modification time in epoch seconds."""

    uri: str
    path: str
    size: int
    mtime: float


def uri(path: str) -> str:
    """The URI of a stored path; opaque, so that nobody resolves the `..` of an extra path."""
    return SCHEME + urllib.parse.quote(path, safe="/")


def path_of(address: str) -> str:
    """The stored path that a URI names. Raises PathRefused."""
    if not address.startswith(SCHEME) or "?" in address:
        raise PathRefused("This is not the URI of a note.", f"URIs of notes look like {uri('MEMORY.md')}.")
    return urllib.parse.unquote(address.removeprefix(SCHEME))


def page(roots: Roots, cursor: str | None) -> tuple[list[File], str | None]:
    """Notes on disk by path, from the one after `cursor`, and the next cursor. Raises WorkspaceError, QueryError."""
    after = "" if cursor is None else _path_in(cursor)
    notes = sorted(scan(roots).notes)
    notes = [item for item in notes if item.source == MEMORY and item.path > after]
    files = [File(uri(item.path), item.path, item.size, item.mtime_ns / 1e9) for item in notes[:PAGE]]
    return files, cursor_at(files[-1].path) if len(notes) > PAGE else None


def cursor_at(path: str) -> str:
    """The cursor of the page after `path`: the path, and a sum that tells it from one that was made up."""
    name = base64.urlsafe_b64encode(path.encode()).decode().rstrip("=")
    return f"{hashlib.sha256(path.encode()).hexdigest()[:_SUM]}{name}"


def _path_in(cursor: str) -> str:
    """The path that a cursor was made of; its note need not be there any more. Raises QueryError."""
    name = cursor[_SUM:]
    try:
        path = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except ValueError:
        path = ""
    if cursor_at(path) != cursor:
        raise QueryError("This is no cursor of this list.", "Begin without one, and use nextCursor as it was given.")
    return path


def text(roots: Roots, address: str) -> str:
    """The whole text of a note, made visible where it hides. Raises PathRefused, Unreadable."""
    path = path_of(address)
    locate(roots, path)
    return tools.visible(document(roots, path).text)
