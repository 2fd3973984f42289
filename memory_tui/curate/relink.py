"""Links follow a note that moves: those of others to it, and its own to others."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import quote, unquote

from memory_tui.curate.lines import Lines, bare, end_of
from memory_tui.curate.links import Link, Names, links
from memory_tui.curate.record import Change, FileChange
from memory_tui.errors import EditRefused


def follow(change: Change, moves: Mapping[str, str], texts: Mapping[str, bytes], paths: Iterable[str]) -> Change:
    """`change`, which moves notes (new paths by old ones), with all links in `texts` led to where they led before.

    `paths` are the stored paths of all notes. A note that is UTF-16 keeps its links as they are, and says so.
    """
    before, after = Names(paths), Names([*(set(paths) - moves.keys()), *moves.values()])
    files = {file.path: file for file in change.files}
    notes = list(change.notes)
    for path, data in texts.items():
        try:
            new = _led(data, path, moves, before, after)
        except EditRefused as error:
            notes.append(error.message)
            continue
        if new == data:
            continue
        target = moves.get(path, path)
        files[target] = replace(files[target], after=new) if target in files else FileChange(path, data, new)
    # Notes come before others go, so that nothing is lost in between.
    ordered = sorted(files.values(), key=lambda file: file.after is None)
    led = len(files) - len(change.files)
    if led:
        notes.append(f"Links in {led} other note{'s' if led > 1 else ''} follow.")
    return replace(change, files=tuple(ordered), notes=tuple(notes))


def _led(data: bytes, path: str, moves: Mapping[str, str], before: Names, after: Names) -> bytes:
    """The note `path` with every link spelled so that it leads where it led."""
    lines = Lines.of(data, path)
    here = moves.get(path, path)
    out = list(lines.lines)
    for link in reversed(links(path, "\n".join(lines.texts()), before)):
        target = moves.get(link.target, link.target)
        if not target or (after.find(link.written, here) == target and not _strays(link, path, here, target)):
            continue
        text, end = bare(out[link.line - 1]), end_of(out[link.line - 1])
        spelled = text[link.start : link.end].replace(link.written, _spelled(link, target, here, after), 1)
        out[link.line - 1] = text[: link.start] + spelled + text[link.end :] + end
    return Lines(lines.bom, tuple(out)).data


def _strays(link: Link, path: str, here: str, target: str) -> bool:
    """Whether a link that other programs could follow, from the note's own folder, is one no more."""
    return _beside(link.written, path) == link.target and _beside(link.written, here) != target


def _beside(written: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(written)))


def _spelled(link: Link, target: str, here: str, names: Names) -> str:
    """How a link in the note `here` names `target`: in the way it was written, as far as that leads there."""
    name = target.rpartition("/")[2].removesuffix(".md")
    if link.kind == "wiki":
        return name if "/" not in link.written and names.find(name, here) == target else target.removesuffix(".md")
    beside = posixpath.relpath(target, posixpath.dirname(here) or ".")
    from_top = posixpath.normpath(link.written) == link.target
    path = target if from_top and names.find(target, here) == target else beside
    return quote(path, safe="/") if link.kind == "markdown" and (" " in path or "%" in link.written) else path
