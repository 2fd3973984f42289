"""Links between notes. They are written `[[wiki]]`, `[text](path.md)`, or as plain citations such as
memory/2026-01-12.md#L3-L5.

A target is looked for beside the note, from the workspace and below memory/; a wiki title also by its name alone,
whatever its case, with spaces and hyphens alike. A fact in Claude Code's memory is also found by the name that its
front matter gives it. What stands in fenced code is no link.
"""

from __future__ import annotations

import posixpath
import re
import threading
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct

from memory_tui.errors import Unreadable
from memory_tui.hosts import claude_memory
from memory_tui.workspace import notes
from memory_tui.workspace.roots import Roots, scan

_LINK = re.compile(
    r"\[\[(?P<wiki>[^\[\]\n|#]+)(?:#(?P<anchor>[^\[\]\n|]*))?(?:\|[^\[\]\n]*)?\]\]"
    r"|\]\(<?(?P<path>[^()\s<>]+?\.md)(?:#(?P<part>[^()\s>]*))?>?(?:\s[^()\n]*)?\)"
    r"|(?<![\w/.\-(\[])(?P<cited>(?:\.{1,2}/)*(?:[\w.\-]+/)*[\w.\-]+\.md)(?P<at>[#:]L?\d+(?:-L?\d+)?)?(?![\w/])"
)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"L?(\d+)")
_HINTS = (".md", "[[")
_TURKISH = frozenset("İı")
_SHORTEST_NAME = 4
"""Shorter names are not looked for in the words of other notes."""


class NoteLink(Struct, frozen=True):
    """A link at `line` (from 1) of the note `source`, characters `start` to `end` of that line.

    `target` is the stored path it leads to, empty when no note is there; `target_line` is 0 where it names none.
    `written` is how the target is named.
    """

    source: str
    line: int
    start: int
    end: int
    kind: Literal["wiki", "markdown", "citation", "mention"]
    written: str
    target: str
    target_line: int


class Names:
    """The stored paths of all notes, found by how people write them; `called` are paths by names of their own."""

    def __init__(self, paths: Iterable[str], called: Mapping[str, str] = MappingProxyType({})) -> None:
        self._paths, self._called = frozenset(paths), called

    @cached_property
    def _by_name(self) -> Mapping[str, str]:
        paths = {_plain(name): path for name, path in self._called.items()}
        # Of two notes with one name the one nearer to the top is meant.
        for path in sorted(self._paths, key=lambda path: (-path.count("/"), path), reverse=True):
            paths[_plain(path.rpartition("/")[2])] = path
        return paths

    def find(self, written: str, source: str) -> str:
        """Return the note that `written` means in the note `source`; empty when there is none."""
        name = unquote(written.strip())
        folder = posixpath.dirname(source)
        for base in (folder,) if name.startswith("../") else (folder, "", "memory"):
            for ending in ("", ".md"):
                path = posixpath.normpath(posixpath.join(base, name + ending))
                if path in self._paths:
                    return path
        return self._by_name.get(_plain(name), "") if "/" not in name else ""


def links(path: str, text: str, names: Names) -> tuple[NoteLink, ...]:
    """Return the links of a note in order; milliseconds for a note of any usual size."""
    if not any(hint in text for hint in _HINTS):
        return ()
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    fenced = [match.span() for match in _FENCED.finditer(text)] if "```" in text or "~~~" in text else []
    rows = []
    for match in _LINK.finditer(text):
        if any(a <= match.start() < b for a, b in fenced):
            continue
        line = bisect_right(starts, match.start())
        kind, written, anchor = _parts(match)
        target = names.find(written, path)
        if kind == "citation" and not target:
            # Words such as README.md are links only where they lead somewhere.
            continue
        at = _LINE.fullmatch(anchor.lstrip("#:").partition("-")[0]) if anchor else None
        rows.append(
            NoteLink(
                path,
                line,
                match.start() - starts[line - 1],
                match.end() - starts[line - 1],
                kind,
                written,
                target,
                int(at[1]) if at else 0,
            )
        )
    return tuple(rows)


def mentions(path: str, text: str, name: str, target: str) -> Iterator[NoteLink]:
    """Find where a note names another one in plain words, without a link: whole words, whatever their case."""
    if len(name) < _SHORTEST_NAME or path == target:
        return
    if not _may_name(text, name):
        return
    words = re.compile(rf"(?<![\w/\[-]){re.escape(name)}(?![\w/\]-]|\.md)".replace(r"\ ", r"[\s-]"), re.IGNORECASE)
    for number, line in enumerate(text.split("\n"), 1):
        if not words.search(line):
            continue
        taken = [match.span() for match in _LINK.finditer(line)]
        for match in words.finditer(line):
            if not any(a <= match.start() < b for a, b in taken):
                yield NoteLink(path, number, *match.span(), "mention", match[0], target, 0)


def _may_name(text: str, name: str) -> bool:
    """Return whether the longest word of `name` stands in `text` in any case: a search at the speed of memory."""
    word = max(name.split(), key=len, default="")
    # Only for the Turkish i does ignoring case mean another thing to an expression than folding it.
    return word.casefold() in text.casefold() or not _TURKISH.isdisjoint(text) or not _TURKISH.isdisjoint(word)


class NoteLinks(Struct, frozen=True):
    """What `links` lead out of a note, which links of others lead `back` to it, and which notes name it in words."""

    links: tuple[NoteLink, ...]
    back: tuple[NoteLink, ...]
    named: tuple[NoteLink, ...]


_DAY = re.compile(r"\d{4} \d{2} \d{2}")
"""In the name of a day's log, which is not looked for in the words of other notes."""


def _spelled(path: str) -> str:
    """Return the name of a note in words."""
    return path.rpartition("/")[2].removesuffix(".md").replace("-", " ").replace("_", " ")


class LinkIndex:
    """The links between all notes below `roots`, in memory; each look reads only what changed since the last one.

    The first look reads every note. Any thread may look.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._texts: dict[str, tuple[tuple[int, int], str]] = {}
        self._places: dict[str, str] = {}
        self._called: dict[str, str] = {}
        self._names = Names(())
        self._links: dict[str, tuple[NoteLink, ...]] = {}

    def about(self, path: str, state: Hashable = None) -> NoteLinks:
        """Return all of a note's links, both ways, with one look at the disk.

        `state` stands for all notes as somebody who watches them knows them: while it stays the same, only the note
        itself is looked at. None where nobody watches.
        """
        name = _spelled(path)
        with self._lock:
            if state is None or state != self._state or self._moved(path):
                self._refresh()
            self._state = state
            texts = [] if _DAY.search(name) else [(other, text) for other, (_, text) in sorted(self._texts.items())]
            links, back = self._links.get(path, ()), self._back({path})
        words = tuple(link for other, text in texts for link in mentions(other, text, name, path))
        return NoteLinks(links, tuple(link for link in back if link.source != path), words)

    def sources(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the notes that link to any of these, or are one of them, in order."""
        targets = set(paths)
        with self._lock:
            self._refresh()
            return tuple(sorted(targets | {link.source for link in self._back(targets)}))

    def paths(self) -> frozenset[str]:
        """Return the stored paths of all notes."""
        with self._lock:
            self._refresh()
            return frozenset(self._texts)

    def broken(self) -> tuple[NoteLink, ...]:
        """Return the links that lead to no note, by note and line."""
        with self._lock:
            self._refresh()
            return tuple(link for path in sorted(self._links) for link in self._links[path] if not link.target)

    def _back(self, targets: Collection[str]) -> list[NoteLink]:
        return [link for path in sorted(self._links) for link in self._links[path] if link.target in targets]

    def _moved(self, path: str) -> bool:
        """Return whether a note is not the one that was read."""
        try:
            status = Path(self._places[path]).lstat()
        except (KeyError, OSError):
            return True
        return (status.st_mtime_ns, status.st_size) != self._texts[path][0]

    def _refresh(self) -> None:
        there = {note.path: note for note in scan(self._roots).notes if note.path.endswith(".md")}
        before = self._texts
        self._texts, self._places = {}, {path: note.absolute for path, note in there.items()}
        for path, note in there.items():
            stamp = (note.mtime_ns, note.size)
            if path in before and before[path][0] == stamp:
                self._texts[path] = before[path]
                continue
            try:
                self._texts[path] = stamp, notes.read(note).text
            except Unreadable:
                # The list of files says so; what nobody can read has no links.
                self._texts[path] = stamp, ""
        # Facts in Claude Code's memory have names, which need not be those of their files.
        called = {fact.name: path for path, fact in claude_memory.facts(self._roots, self._places).items()}
        # A note that came or went can be what a link of any note means.
        again = before.keys() != self._texts.keys() or called != self._called
        names = Names(self._texts, called) if again else self._names
        self._called, self._names = called, names
        self._links = {
            path: links(path, text[1], names) if again or before[path] is not text else self._links[path]
            for path, text in self._texts.items()
        }


def _parts(match: re.Match[str]) -> tuple[Literal["wiki", "markdown", "citation"], str, str]:
    """Return what kind of link it is, how it names its target, and the part of the target that it means."""
    if match["wiki"] is not None:
        return "wiki", match["wiki"], match["anchor"] or ""
    if match["path"] is not None:
        return "markdown", match["path"], match["part"] or ""
    return "citation", match["cited"], match["at"] or ""


def _plain(name: str) -> str:
    """Return a note's name without ending, case, and what parts its words."""
    return re.sub(r"[\s_-]+", " ", name.removesuffix(".md")).strip().casefold()
