"""Links between notes: `[[wiki]]`, `[text](path.md)`, plain citations such as memory/2026-01-12.md#L3-L5.

A target is looked for beside the note, from the workspace and below memory/; a wiki title also by its name alone,
whatever its case, with spaces and hyphens alike. What stands in fenced code is no link.
"""

from __future__ import annotations

import posixpath
import re
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from memory_tui.core.errors import Unreadable
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


@dataclass(frozen=True, slots=True)
class NoteLink:
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
    """The stored paths of all notes, found by how people write them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, str] = {}
        # Of two notes with one name the one nearer to the top is meant.
        for path in sorted(self._paths, key=lambda path: (-path.count("/"), path), reverse=True):
            self._by_name[_plain(path.rpartition("/")[2])] = path

    def find(self, written: str, source: str) -> str:
        """The note that `written` means in the note `source`; empty when there is none."""
        name = unquote(written.strip())
        folder = posixpath.dirname(source)
        for base in (folder,) if name.startswith("../") else (folder, "", "memory"):
            for ending in ("", ".md"):
                path = posixpath.normpath(posixpath.join(base, name + ending))
                if path in self._paths:
                    return path
        return self._by_name.get(_plain(name), "") if "/" not in name else ""


def links(path: str, text: str, names: Names) -> tuple[NoteLink, ...]:
    """The links of a note in order; milliseconds for a note of any usual size."""
    if not any(hint in text for hint in _HINTS):
        return ()
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    fenced = [match.span() for match in _FENCED.finditer(text)] if "```" in text or "~~~" in text else []
    found = []
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
        found.append(
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
    return tuple(found)


def mentions(path: str, text: str, name: str, target: str) -> Iterator[NoteLink]:
    """Where a note names another one in plain words, without a link: whole words, whatever their case."""
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
    """Whether the longest word of `name` stands in `text` in any case: a search at the speed of memory."""
    word = max(name.split(), key=len, default="")
    # Only for the Turkish i does ignoring case mean another thing to an expression than folding it.
    return word.casefold() in text.casefold() or not _TURKISH.isdisjoint(text) or not _TURKISH.isdisjoint(word)


@dataclass(frozen=True, slots=True)
class NoteLinks:
    """What `links` lead out of a note, which links of others lead `back` to it, and which notes name it in words."""

    links: tuple[NoteLink, ...]
    back: tuple[NoteLink, ...]
    named: tuple[NoteLink, ...]


class LinkIndex:
    """The links between all notes below `roots`, in memory; each look reads only what changed since the last one.

    The first look reads every note. Any thread may look.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._texts: dict[str, tuple[tuple[int, int], str]] = {}
        self._links: dict[str, tuple[NoteLink, ...]] = {}
        self._back: Mapping[str, tuple[NoteLink, ...]] = {}
        self._named: dict[str, tuple[NoteLink, ...]] = {}
        """By note, as far as anybody asked since something changed."""

    def about(self, path: str) -> NoteLinks:
        """All of a note's links, both ways, with one look at the disk."""
        with self._lock:
            self._refresh()
            links, back, named = self._links.get(path, ()), self._back.get(path, ()), self._named
        if path not in named:
            named[path] = self._mentions(path)
        return NoteLinks(links, back, named[path])

    def links(self, path: str) -> tuple[NoteLink, ...]:
        """The links of a note, those that lead nowhere too."""
        with self._lock:
            self._refresh()
            return self._links.get(path, ())

    def backlinks(self, path: str) -> tuple[NoteLink, ...]:
        """The links of other notes that lead to this one, by note and line."""
        with self._lock:
            self._refresh()
            return self._back.get(path, ())

    def mentions(self, path: str) -> tuple[NoteLink, ...]:
        """Where other notes name this one in plain words, by note and line; a day's log is not looked for."""
        return self.about(path).named

    def _mentions(self, path: str) -> tuple[NoteLink, ...]:
        name = path.rpartition("/")[2].removesuffix(".md").replace("-", " ").replace("_", " ")
        if re.search(r"\d{4} \d{2} \d{2}", name):
            return ()
        with self._lock:
            texts = [(other, text) for other, (_, text) in sorted(self._texts.items())]
        return tuple(found for other, text in texts for found in mentions(other, text, name, path))

    def sources(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The notes that link to any of these, or are one of them, in order."""
        wanted = frozenset(paths)
        with self._lock:
            self._refresh()
            return tuple(sorted(wanted | {link.source for path in wanted for link in self._back.get(path, ())}))

    def paths(self) -> frozenset[str]:
        """The stored paths of all notes."""
        with self._lock:
            self._refresh()
            return frozenset(self._texts)

    def broken(self) -> tuple[NoteLink, ...]:
        """The links that lead to no note, by note and line."""
        with self._lock:
            self._refresh()
            return tuple(link for path in sorted(self._links) for link in self._links[path] if not link.target)

    def _refresh(self) -> None:
        found = {note.path: note for note in scan(self._roots).found if note.path.endswith(".md")}
        gone = self._texts.keys() - found.keys()
        changed = [
            path
            for path, note in found.items()
            if (known := self._texts.get(path)) is None or known[0] != (note.mtime_ns, note.size)
        ]
        if not gone and not changed and self._links:
            return
        self._named = {}
        new = any(path not in self._texts for path in changed)
        for path in gone:
            del self._texts[path]
        for path in changed:
            note = found[path]
            try:
                self._texts[path] = ((note.mtime_ns, note.size), notes.read(note).text)
            except Unreadable:
                # The list of files says so; what nobody can read has no links.
                self._texts[path] = ((note.mtime_ns, note.size), "")
        names = Names(self._texts)
        # A note that came or went can be what a link of any note means.
        again = self._texts if gone or new else changed
        for path in again:
            self._links[path] = links(path, self._texts[path][1], names)
        for path in gone:
            self._links.pop(path, None)
        self._back = _backwards(self._links)


def _backwards(found: Mapping[str, tuple[NoteLink, ...]]) -> Mapping[str, tuple[NoteLink, ...]]:
    back: dict[str, list[NoteLink]] = defaultdict(list)
    for path in sorted(found):
        for link in found[path]:
            if link.target and link.target != path:
                back[link.target].append(link)
    return {path: tuple(each) for path, each in back.items()}


def _parts(match: re.Match[str]) -> tuple[Literal["wiki", "markdown", "citation"], str, str]:
    """What kind of link it is, how it names its target, and the part of the target that it means."""
    if match["wiki"] is not None:
        return "wiki", match["wiki"], match["anchor"] or ""
    if match["path"] is not None:
        return "markdown", match["path"], match["part"] or ""
    return "citation", match["cited"], match["at"] or ""


def _plain(name: str) -> str:
    """A note's name without ending, case, and what parts its words."""
    return re.sub(r"[\s_-]+", " ", name.removesuffix(".md")).strip().casefold()
