"""Reading what was found, whichever source it is of: notes as they are, transcripts as conversations."""

from __future__ import annotations

from memory_tui.workspace import document, transcripts
from memory_tui.workspace.document import Document
from memory_tui.workspace.roots import Roots, locate
from memory_tui.workspace.walk import Found

__all__ = ["Document", "note", "read", "shown"]


def read(found: Found) -> Document:
    """`found` as it is indexed. Raises Unreadable."""
    return transcripts.read(found) if found.source == transcripts.SOURCE else document.read(found)


def shown(roots: Roots, path: str) -> Document:
    """What a person reads at the stored `path`, a transcript with its lines where the file has them.

    Raises PathRefused, Unreadable.
    """
    found = located(roots, path)
    return transcripts.shown(found) if found.source == transcripts.SOURCE else document.read(found)


def located(roots: Roots, path: str) -> Found:
    """The note or transcript `path` as it is on disk now. Raises PathRefused."""
    if path.startswith(transcripts.SOURCE + "/") and not path.endswith(".md"):
        return transcripts.locate(roots.sessions, roots.archives, path)
    return locate(roots, path)


def note(roots: Roots, path: str) -> Document:
    """The note `path`; never a transcript, because memory_get gives none. Raises PathRefused, Unreadable."""
    return document.read(locate(roots, path))
