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
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol
from urllib.parse import quote, unquote

from msgspec import Struct

from memory_tui.core.errors import PathRefused, Unreadable
from memory_tui.hosts import claude_memory
from memory_tui.workspace import notes
from memory_tui.workspace.roots import Roots, locate, scan
from memory_tui.workspace.scan import Found

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
        found = {_plain(name): path for name, path in self._called.items()}
        # Of two notes with one name the one nearer to the top is meant.
        for path in sorted(self._paths, key=lambda path: (-path.count("/"), path), reverse=True):
            found[_plain(path.rpartition("/")[2])] = path
        return found

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


class NoteLinks(Struct, frozen=True):
    """What `links` lead out of a note, which links of others lead `back` to it, and which notes name it in words."""

    links: tuple[NoteLink, ...]
    back: tuple[NoteLink, ...]
    named: tuple[NoteLink, ...]


class TextIndex(Protocol):
    """What a full-text index knows of the notes."""

    def holding(self, phrases: Sequence[str]) -> frozenset[str] | None:
        """The stored paths of the notes in which the words of any of `phrases` follow each other; None: it cannot tell.

        Case and what stands between words do not count.
        """
        ...

    def not_indexed(self, found: Iterable[Found]) -> frozenset[str]:
        """The stored paths of those `found` that the index does not hold as they are."""
        ...

    def all_notes(self) -> frozenset[str] | None:
        """The stored paths of all notes, where the last look at the disk found each of them indexed as it is."""
        ...


class IndexedLinks:
    """The links of single notes: of the others only those are read that an index says hold the name of the note.

    Any thread may ask.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._paths: frozenset[str] = frozenset()
        self._names = Names(())
        self._called: dict[str, str] = {}
        self._waiting: frozenset[str] = frozenset()
        self._texts: dict[str, tuple[tuple[int, int], str]] = {}

    def about(self, path: str, index: TextIndex, state: Hashable = None) -> NoteLinks | None:
        """All of a note's links, both ways; None where `index` cannot tell which notes hold its name.

        `state` is that of `LinkIndex.about`.
        """
        name = _spelled(path)
        holding = index.holding(_spellings(path))
        if holding is None:
            return None
        with self._lock:
            if state is None or state != self._state or path not in self._paths:
                self._look(index, None if state is None else index.all_notes())
                self._state = state
            own = [name for name, at in self._called.items() if at == path]
            holding |= (index.holding(own) if own else None) or frozenset()
            every = sorted((holding | self._waiting | {path}) & self._paths)
            texts = {other: self._text(other) for other in every}
            names = self._names
        leading = {other: links(other, text, names) for other, text in texts.items()}
        back = [link for other in every if other != path for link in leading[other] if link.target == path]
        named = (
            () if _DAY.search(name) else [one for other in every for one in mentions(other, texts[other], name, path)]
        )
        return NoteLinks(leading.get(path, ()), tuple(back), tuple(named))

    def _look(self, index: TextIndex, indexed: frozenset[str] | None) -> None:
        """Learn which notes there are: those `indexed`, where somebody watches the others, else by the disk."""
        if indexed is None:
            found = scan(self._roots).found
            self._waiting = index.not_indexed(found)
            indexed = frozenset(note.path for note in found)
        else:
            self._waiting = frozenset()
        paths = frozenset([path for path in indexed if path.endswith(".md")])
        called = _called(self._roots, self._facts(paths))
        if paths != self._paths or called != self._called:
            self._names = Names(paths, called)
        self._paths, self._called = paths, called
        self._texts = {path: known for path, known in self._texts.items() if path in paths}

    def _facts(self, paths: Iterable[str]) -> dict[str, str]:
        """Where the notes in the folders of Claude Code's memory are."""
        folders = claude_memory.folders(self._roots)
        own = [path for path in paths if claude_memory.in_folders(path, folders)] if folders else []
        places = {}
        for path in own:
            # One that is gone meanwhile has no name.
            with suppress(PathRefused):
                places[path] = locate(self._roots, path).absolute
        return places

    def _text(self, path: str) -> str:
        """The text of a note as it is now; "" where nobody can read it."""
        try:
            note = locate(self._roots, path)
            stamp = note.mtime_ns, note.size
            known = self._texts.get(path)
            if known is None or known[0] != stamp:
                known = self._texts[path] = (stamp, notes.read(note).text)
        except (PathRefused, Unreadable):
            # The list of files says so; what nobody can read has no links.
            return ""
        return known[1]


def _called(roots: Roots, absolute: Mapping[str, str]) -> dict[str, str]:
    """The paths of facts in Claude Code's memory by their names, which need not be those of their files."""
    facts = claude_memory.facts(roots, absolute)
    return {fact.name: path for path, fact in facts.items()}


_DAY = re.compile(r"\d{4} \d{2} \d{2}")
"""In the name of a day's log, which is not looked for in the words of other notes."""


def _spellings(path: str) -> list[str]:
    """How links spell the name of a note: case folds to other letters, and addresses are quoted, more or less."""
    stem, folded = path.rpartition("/")[2].removesuffix(".md"), _spelled(path).casefold()
    fully = "".join(quote(c) if c.isalnum() or not c.isascii() else f"%{ord(c):02X}" for c in stem)
    return list(
        dict.fromkeys([_spelled(path), folded, folded.replace("ss", "ß"), stem.replace(" ", "%20"), quote(stem), fully])
    )


def _spelled(path: str) -> str:
    """The name of a note in words."""
    return path.rpartition("/")[2].removesuffix(".md").replace("-", " ").replace("_", " ")


class LinkIndex:
    """The links between all notes below `roots`, in memory; each look reads only what changed since the last one.

    The first look reads every note. Any thread may look.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._texts: dict[str, tuple[tuple[int, int], str]] = {}
        self._places: dict[str, str] = {}
        self._state: Hashable = None
        self._called: dict[str, str] = {}
        self._links: dict[str, tuple[NoteLink, ...]] = {}
        self._back: Mapping[str, tuple[NoteLink, ...]] = {}
        self._named: dict[str, tuple[NoteLink, ...]] = {}
        """By note, as far as anybody asked since something changed."""

    def about(self, path: str, state: Hashable = None) -> NoteLinks:
        """All of a note's links, both ways, with one look at the disk.

        `state` stands for all notes as somebody who watches them knows them: while it stays the same, only the note
        itself is looked at. None where nobody watches.
        """
        with self._lock:
            if state is None or state != self._state or self._moved(path):
                self._refresh()
            self._state = state
            links, back, named = self._links.get(path, ()), self._back.get(path, ()), self._named
        if path not in named:
            named[path] = self._mentions(path)
        return NoteLinks(links, back, named[path])

    def _mentions(self, path: str) -> tuple[NoteLink, ...]:
        name = _spelled(path)
        if _DAY.search(name):
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

    def _moved(self, path: str) -> bool:
        """Whether a note is not the one that was read."""
        try:
            status = Path(self._places[path]).lstat()
        except (KeyError, OSError):
            return True
        return (status.st_mtime_ns, status.st_size) != self._texts[path][0]

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
            del self._texts[path], self._places[path]
        for path in changed:
            note = found[path]
            self._places[path] = note.absolute
            try:
                self._texts[path] = ((note.mtime_ns, note.size), notes.read(note).text)
            except Unreadable:
                # The list of files says so; what nobody can read has no links.
                self._texts[path] = ((note.mtime_ns, note.size), "")
        called = _called(self._roots, self._places)
        names = Names(self._texts, called)
        # A note that came or went can be what a link of any note means.
        again = self._texts if gone or new or called != self._called else changed
        self._called = called
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
