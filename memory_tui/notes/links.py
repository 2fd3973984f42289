"""Links between notes. They are written `[[wiki]]`, `[text](path.md)`, or as plain citations such as
memory/2026-01-12.md#L3-L5.

A target is looked for beside the note, from the workspace and below memory/; then by its name or the last part of its
path, whatever the case, with spaces and hyphens alike, and by the title or name of its front matter. What stands in
fenced code is no link. Where notes move, `follow` spells the links of all notes anew.
"""

from __future__ import annotations

import posixpath
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Literal
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import EditRefused, Unreadable
from memory_tui.formatting import one_line, plural
from memory_tui.notes.changes import Change, FileChange, Lines, moves
from memory_tui.workspace import notes
from memory_tui.workspace.notes import front_matter
from memory_tui.workspace.roots import Roots, beside, scan
from memory_tui.workspace.scan import NoteFile

_LINK = re.compile(
    r"\[\[(?P<wiki>[^\[\]\n|#]+)(?:#(?P<anchor>[^\[\]\n|]*))?(?:\|[^\[\]\n]*)?\]\]"
    r"|\]\(<?(?P<path>[^()\s<>]+?\.md)(?:#(?P<part>[^()\s>]*))?>?(?:\s[^()\n]*)?\)"
    r"|(?<![\w/.\-(\[])(?P<cited>(?:\.{1,2}/)*(?:[\w.\-]+/)*[\w.\-]+\.md)(?P<at>[#:]L?\d+(?:-L?\d+)?)?(?![\w/])"
)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"L?(\d+)")
_HINTS = (".md", "[[")
"""What every link holds: a text without any of these has none."""
_MOST_OTHERS, _MOST_BYTES = 200, 400_000
"""Files that are no notes in which a name is looked for, and the bytes of the largest."""


class NoteLink(Struct, frozen=True):
    """A link at `line` (from 1) of the note `source`, characters `start` to `end` of that line.

    `target` is the stored path it leads to, empty when no note is there; `target_line` is 0 where it names none.
    `written` is how the target is named.
    """

    source: str
    line: int
    start: int
    end: int
    kind: Literal["wiki", "markdown", "citation"]
    written: str
    target: str
    target_line: int


class Names:
    """The stored paths of all notes, found by how people write them; `called` are paths by names of their own."""

    def __init__(self, paths: Iterable[str], called: Mapping[str, str] | None = None) -> None:
        self.paths, self.called = frozenset(paths), called or {}

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        """Return the paths of the notes by their file name, or a name of their own, as `_plain` compares names."""
        paths: dict[str, list[str]] = {}
        # Of two notes with one name the one nearer to the top is meant; names from front matter come last.
        ordered = sorted(self.paths, key=lambda path: (path.count("/"), path))
        for name, path in chain(zip(ordered, ordered, strict=True), self.called.items()):
            paths.setdefault(_plain(name.rpartition("/")[2]), []).append(path)
        return paths

    def find(self, written: str, source: str) -> str:
        """Return the note that `written` means in the note `source`; empty when there is none."""
        name = unquote(written.strip())
        folder = posixpath.dirname(source)
        # From the folder of the note, which alone is meant by "../", from the workspace, and from memory/.
        for base in (folder,) if name.startswith("../") else (folder, "", "memory"):
            for ending in ("", ".md"):
                path = posixpath.normpath(posixpath.join(base, name + ending))
                if path in self.paths:
                    return path
        above, _, last = name.rpartition("/")
        paths = self._by_name.get(_plain(last), ())
        # Of a path its last part is enough, as in Obsidian: [[harbour/pump]] is notes/harbour/Pump.md.
        tail = f"/{_plain(above)}" if above else ""
        return next((path for path in paths if f"/{_plain(posixpath.dirname(path))}".endswith(tail)), "")


def links(path: str, text: str, names: Names, *, fenced: bool = False) -> tuple[NoteLink, ...]:
    """Return the links of a note in order, with `fenced` also those in fenced code; milliseconds for a usual note."""
    if not any(hint in text for hint in _HINTS):
        return ()
    # Blanks keep the places of what follows.
    plain = text if fenced else _FENCED.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    rows = []
    for number, line in enumerate(plain.split("\n"), 1):
        for match in _LINK.finditer(line):
            kind, written, anchor = _parts(match)
            target = names.find(written, path)
            # Words such as README.md are links only where they lead somewhere.
            if target or kind != "citation":
                at = _LINE.fullmatch(anchor.lstrip("#:").partition("-")[0])
                rows.append(NoteLink(path, number, *match.span(), kind, written, target, int(at[1]) if at else 0))
    return tuple(rows)


class NoteLinks(Struct, frozen=True):
    """What `links` lead out of a note, and which links of others lead `back` to it."""

    links: tuple[NoteLink, ...]
    back: tuple[NoteLink, ...]


class LinkIndex:
    """The links between all notes below `roots`, in memory; each look reads only what changed since the last one.

    The first look reads every note. Any thread may look.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._lock = threading.Lock()
        self._notes: dict[str, tuple[NoteFile, str]] = {}
        self._names = Names(())
        self._links: dict[str, tuple[NoteLink, ...]] = {}

    def about(self, path: str) -> NoteLinks:
        """Return all of a note's links, both ways."""
        with self._lock:
            self._refresh()
            back = (link for link in self._back({path}) if link.source != path)
            return NoteLinks(self._links.get(path, ()), tuple(back))

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
            return frozenset(self._notes)

    def _back(self, targets: Collection[str]) -> list[NoteLink]:
        """Return the links of all notes that lead to one of `targets`."""
        return [link for path in sorted(self._links) for link in self._links[path] if link.target in targets]

    def _refresh(self) -> None:
        """Read the notes that changed, and find their links; all links again where a note came, went or was renamed."""
        before, files = self._notes, [note for note in scan(self._roots).notes if note.path.endswith(".md")]
        if files == [note for note, _ in before.values()]:
            return
        self._notes = {}
        for note in files:
            old, text = before.get(note.path, (None, ""))
            if old != note:
                try:
                    text = notes.read(note).text
                except Unreadable:
                    # The list of files says so; what nobody can read has no links.
                    text = ""
            self._notes[note.path] = note, text
        fronts = ((path, front_matter(text)) for path, (_, text) in self._notes.items())
        called = {name: path for path, front in fronts for name in (front.get("title"), front.get("name")) if name}
        names = Names(self._notes, called)
        # A note that came or went can be what a link of any note means.
        all_again = (names.paths, names.called) != (self._names.paths, self._names.called)
        self._names = names
        self._links = {
            path: links(path, text, names) if all_again or before[path][0] != note else self._links[path]
            for path, (note, text) in self._notes.items()
        }


def _parts(match: re.Match[str]) -> tuple[Literal["wiki", "markdown", "citation"], str, str]:
    """Return what kind of link it is, how it names its target, and the part of the target that it means."""
    if match["wiki"] is not None:
        # In a table the bar before the shown name is escaped.
        return "wiki", match["wiki"].removesuffix("\\"), match["anchor"] or ""
    if match["path"] is not None:
        return "markdown", match["path"], match["part"] or ""
    return "citation", match["cited"], match["at"] or ""


def _plain(name: str) -> str:
    """Return a note's name without ending, case, and what parts its words."""
    return re.sub(r"[\s_-]+", " ", name.removesuffix(".md")).strip().casefold()


# --- links that follow -----------------------------------------------------------------------------------------------


def follow(change: Change, texts: Mapping[str, bytes], paths: Iterable[str]) -> Change:
    """Return `change`, which moves notes, with all links in `texts` led to where they led before.

    `paths` are the stored paths of all notes. A note that is UTF-16 keeps its links as they are, and says so.
    """
    targets = moves(change.files)
    before, after = Names(paths), Names([*(set(paths) - targets.keys()), *targets.values()])
    files = {file.path: file for file in change.files}
    notes = list(change.notes)
    for path, data in texts.items():
        try:
            new = _respelled(data, path, targets, before, after)
        except EditRefused as error:
            notes.append(error.message)
            continue
        if new != data:
            target = targets.get(path, path)
            # A note that moves is in the change already, under its new path; any other one is added to it.
            files[target] = replace(files.get(target, FileChange(path, data, None)), after=new)
    # Notes come before others go, so that nothing is lost in between.
    ordered = sorted(files.values(), key=lambda file: file.after is None)
    if others := [file for file in files.values() if file.path not in {known.path for known in change.files}]:
        pairs = [zip((f.before or b"").split(b"\n"), (f.after or b"").split(b"\n"), strict=True) for f in others]
        lines = plural(sum(old != new for rows in pairs for old, new in rows), "line")
        notes.append(f"Links in {lines} of {plural(len(others), 'other note')} follow; the name without .md stays.")
    return replace(change, files=tuple(ordered), notes=tuple(notes))


def mentions(roots: Roots, moved: Collection[str], paths: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each file that is no note and names one of the `moved` ones; the notes are at `paths`.

    An agent reads such a file, as TOOLS.md, and goes on using the old name. The largest ones are not looked at.
    """
    others, what = beside(roots)[:_MOST_OTHERS], "it" if len(moved) == 1 else "some of them"
    # What names another such file means no note of that name.
    names = Names([*paths, *others])
    for path in others:
        # Size, time and inode are no part of what is read.
        file = NoteFile(path, str(roots.workspace / path), 0, 0, (0, 0), str(roots.workspace))
        try:
            text = notes.snapshot(file, _MOST_BYTES)[0].decode("utf-8", "replace")
        except Unreadable:
            continue
        if lines := {str(link.line): None for link in links(path, text, names, fenced=True) if link.target in moved}:
            where = f"line{'s' * (len(lines) > 1)} {', '.join([*lines][:9])}{', ...' * (len(lines) > 9)}"
            yield one_line(f"{path} names {what} too ({where}) and is not changed.")


def _respelled(data: bytes, path: str, moves: Mapping[str, str], before: Names, after: Names) -> bytes:
    """Return the note `path` with every link spelled so that it leads where it led."""
    note = Lines.of(data, path)
    new_path = moves.get(path, path)
    lines = list(note.lines)
    # From the end, so that the places of the links before hold.
    for link in reversed(links(path, "\n".join(note.texts()), before)):
        target = moves.get(link.target, link.target)
        leads_there = after.find(link.written, new_path) == target
        if not target or (leads_there and not _breaks_elsewhere(link, path, new_path, target)):
            continue
        line = lines[link.line - 1]
        spelled = line[link.start : link.end].replace(link.written, _spelled(link, target, new_path, after), 1)
        lines[link.line - 1] = line[: link.start] + spelled + line[link.end :]
    return Lines(note.bom, tuple(lines)).data


def _breaks_elsewhere(link: NoteLink, old_path: str, new_path: str, target: str) -> bool:
    """Tell whether other programs can no longer follow a link that they could follow before the notes moved.

    They go from the folder of its note, which was at `old_path` and is at `new_path`, or from the top of the workspace.
    """
    # Only a path with a folder in it is taken from the top; a wiki link leaves out the ending.
    led_from_top = "/" in link.written and _beside(link.written, "") in (link.target, link.target.removesuffix(".md"))
    led_from_folder = _beside(link.written, old_path) == link.target
    leads_from_folder = _beside(link.written, new_path) == target
    return (led_from_top and target != link.target) or (led_from_folder and not leads_from_folder)


def _beside(written: str, path: str) -> str:
    """Return the path that `written` means from the folder of the note `path`, or for an empty one from the top."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(written)))


def _spelled(link: NoteLink, target: str, here: str, names: Names) -> str:
    """Return how a link in the note `here` names `target`: as it was written, as far as that leads there."""
    ending = ".md" if link.kind == "wiki" else ""
    name = posixpath.basename(target).removesuffix(ending)
    # A name alone, in brackets or in prose, stays one.
    if link.kind != "markdown" and "/" not in link.written and names.find(name, here) == target:
        return name
    if link.kind == "wiki":
        return target.removesuffix(ending)
    # A path is from the top of the workspace where the link was written so, and still leads there so; else from `here`.
    is_from_top = _beside(link.written, "") == link.target and names.find(target, here) == target
    path = target if is_from_top else posixpath.relpath(target, posixpath.dirname(here) or ".")
    return quote(path, safe="/") if link.kind == "markdown" and (" " in path or "%" in link.written) else path
