"""A note at one moment: its text and hash, the parts of its Markdown, its annotations, date and title.

A media file is an image or a sound below extraPaths: its label is indexed, its bytes are embedded.
"""

# ruff: noqa: PTH206
# Paths are strings: names may hold undecodable bytes.

from __future__ import annotations

import codecs
import errno
import hashlib
import json
import os
import posixpath
import re
import stat
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import accumulate, chain
from typing import Literal, NamedTuple

from msgspec import Struct

from memory_tui import jsstring
from memory_tui.config.config_file import Config
from memory_tui.errors import Unreadable
from memory_tui.providers import registry
from memory_tui.workspace.scan import MAX_BYTES, NoteFile

_ATTEMPTS = 3
GET_LINES = 120
GET_CHARACTERS = 12_000
"""The most that one `get` returns (OpenClaw's bound of memory_get)."""


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: a pipe put in the file's place must not stop us.
_FILE = os.O_RDONLY | _NO_LINK | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
# O_PATH: a folder that may be entered but not listed is enough.
_FOLDER = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_PATH", "O_DIRECTORY", "O_CLOEXEC"))


class ChangedWhileRead(Unreadable):
    """A note that was written to during each attempt to read it."""

    code = "changed_while_read"


class Document(Struct, frozen=True):
    """A note's text with BOM and line ends kept; `hash` is the SHA-256 of the text, `size` and `mtime_ns` its stat.

    `replaced` counts the U+FFFD put in for bytes that are not UTF-8, `nul` tells whether there are NUL characters.
    """

    path: str
    text: str
    hash: str
    size: int
    mtime_ns: int
    replaced: int
    nul: bool


def read(note: NoteFile) -> Document:
    """Return the note `note`, whole and unchanged while it was read. Raises Unreadable and ChangedWhileRead."""
    data, status = snapshot(note)
    return of_bytes(note.path, data, status.st_mtime_ns)


def snapshot(note: NoteFile, most_bytes: int = MAX_BYTES) -> tuple[bytes, os.stat_result]:
    """Return bytes and status of `note`, unchanged while it was read; no link below its root is followed.

    Raises Unreadable (missing, not permitted, not a regular file, over `most_bytes`) and ChangedWhileRead.
    """
    # Only a note that changed while it was read is tried again.
    for _ in range(_ATTEMPTS):
        try:
            data_and_status = _snapshot(note, most_bytes)
        except (OSError, ValueError) as error:
            raise _unreadable(note, error) from None
        if data_and_status is not None:
            return data_and_status
    what = f"{note.path} was being written to each time it was read."
    raise ChangedWhileRead(what, "It is read again when it has come to rest.")


def _snapshot(note: NoteFile, most_bytes: int) -> tuple[bytes, os.stat_result] | None:
    """Return the file's bytes, and its status before they were read; None when it changed in between."""
    if os.open in os.supports_dir_fd:
        folder, name = os.path.split(note.absolute)
        folder_descriptor = descend(note.root, folder, _FOLDER)
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder_descriptor)
        finally:
            os.close(folder_descriptor)
    else:
        descriptor = os.open(note.absolute, _FILE)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise Unreadable(f"{note.path} is not a regular file any more.", _KEEP)
        if before.st_size > most_bytes:
            step = "Split it into days or topics."
            raise Unreadable(f"{note.path} has {before.st_size:,} bytes; at most {most_bytes:,} are read.", step)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            # One byte more tells a file that grew.
            data = file.read(before.st_size + 1)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    # A writer who was at work changes size or time, or left more or fewer bytes than the file has.
    is_same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return (data, before) if is_same and len(data) == after.st_size else None


def descend(root: str, folder: str, flags: int) -> int:
    """Open `folder`, which is `root` or lies below it, name by name, so that none can be swapped for a link on the way.

    `flags` are those of `os.open`. Returns the descriptor of `folder`. Raises OSError, ValueError.
    """
    descriptor = os.open(root, flags)
    try:
        for name in filter(None, folder[len(root.rstrip(os.sep)) :].split(os.sep)):
            below = os.open(name, flags | _NO_LINK, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except (OSError, ValueError):
        os.close(descriptor)
        raise
    return descriptor


def of_bytes(path: str, data: bytes, mtime_ns: int) -> Document:
    """Return the note `path` as if `data` were in its file."""
    replaced = 0
    try:
        text = data.decode("utf-8")
        digest = hashlib.sha256(data).hexdigest()
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        digest = hashlib.sha256(text.encode()).hexdigest()
        # U+FFFD that the note holds itself, as these three bytes, was not put in.
        replaced = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    return Document(path, text, digest, size=len(data), mtime_ns=mtime_ns, replaced=replaced, nul="\0" in text)


def utf16_of(data: bytes) -> str:
    """Return the codec by which `data` looks like UTF-16 or UTF-32; empty where it does not.

    Of most letters of most alphabets one byte in two is 0. A file that a crash filled up with zeros has them in a row.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Bytes that are 0, at even places and at odd ones. In UTF-16 they are more than half of the ones and few of the
    # others; in big endian the byte that is 0 comes first.
    even, odd = data[::2].count(0), data[1::2].count(0)
    if max(even, odd) * 4 <= len(data) or min(even, odd) * 20 > max(even, odd):
        return ""
    return "utf-16-be" if even > odd else "utf-16-le"


class NoteLines(Struct, frozen=True):
    """Lines of a note; `next_from` is where to go on when the bound was reached, None at the end.

    `cut_line` is a line that is longer than the bound and not shown whole, None when there is none.
    """

    path: str
    start: int
    lines: int
    total_lines: int
    text: str
    next_from: int | None
    cut_line: int | None = None


def note_lines(document: Document, start: int, lines: int | None, most: int | None = None) -> NoteLines:
    """Return `lines` lines of `document` from `start` (1-based): at most 120 lines, and `most` or 12,000 characters.

    The first of them is there in any case, a longer one cut.
    """
    most = most or GET_CHARACTERS
    every = document.text.removesuffix("\n").split("\n") if document.text else []
    wanted = every[start - 1 : start - 1 + min(lines or GET_LINES, GET_LINES)]
    # How many lines fit: the running total of their lengths with line ends, of which the last one does not count (+ 1).
    fitting = sum(total <= most + 1 for total in accumulate(len(line) + 1 for line in wanted))
    shown = [line[:most] for line in wanted[: max(1, fitting)]]
    following = start + len(shown)
    # Without `lines` the note is read on to its end, with it no further than was asked for.
    last_wanted = min(start - 1 + lines, len(every)) if lines else len(every)
    return NoteLines(
        path=document.path,
        start=start,
        lines=len(shown),
        total_lines=len(every),
        text="".join(f"{line}\n" for line in shown),
        next_from=following if shown and following <= last_wanted else None,
        cut_line=start if shown and len(wanted[0]) > most else None,
    )


def _unreadable(note: NoteFile, error: OSError | ValueError) -> Unreadable:
    """Return what the error of the system means to a person."""
    match getattr(error, "errno", None):
        case errno.ENOENT:
            return Unreadable(f"{note.path} was deleted or renamed before it could be read.", "It is scanned again.")
        case errno.EACCES | errno.EPERM:
            return Unreadable(f"{note.path} may not be read.", "Allow your user to read the file and its folder.")
        case errno.ELOOP | errno.ENOTDIR | errno.EISDIR:
            return Unreadable(f"{note.path} was replaced by a link or a folder.", _KEEP)
        case _:
            return Unreadable(f"{note.path} cannot be read: {error}.", "Check the file and its file system.")


_KEEP = "Only regular files that are reached without symbolic links are read."


# --- media ---------------------------------------------------------------------------------------------------------

Modality = Literal["image", "audio"]
_ENDINGS: Mapping[Modality, tuple[str, ...]] = {
    "image": ("jpg", "jpeg", "png", "webp", "gif", "heic", "heif"),
    "audio": ("mp3", "wav", "ogg", "opus", "m4a", "m2a", "aac", "flac"),
}
_TYPES = {"jpg": "jpeg", "mp3": "mpeg", "m2a": "mpeg", "m4a": "mp4"}
"""Types of content that are not called like the ending of a name."""


class MediaRules(Struct, frozen=True):
    """Which files are media: of these `modalities`, and of `most_bytes` at most."""

    modalities: tuple[Modality, ...] = ("image", "audio")
    most_bytes: int = 10_485_760

    def limit(self, name: str) -> int:
        """Return how many bytes a file called `name` may have; 0 for one that is no media."""
        return self.most_bytes if modality_of(name) in self.modalities else 0


def media_rules(config: Config, provider: str) -> MediaRules | None:
    """Return which media `config` asks for; None where it asks for none, or `provider` or its fallback takes none."""
    model = registry.gemini_model(config.model or registry.row("gemini").model)
    is_gemini = provider == "gemini" and config.provider == "gemini" and model in registry.MEDIA
    has_fallback = config.value("fallback") not in (None, "", "none")
    if config.value("multimodal.enabled") is not True or not is_gemini or has_fallback:
        return None
    names, most = config.value("multimodal.modalities"), config.value("multimodal.maxFileBytes")
    names = names if isinstance(names, tuple) else ()
    chosen = tuple(modality for modality in MediaRules().modalities if modality in names or "all" in names)
    return MediaRules(chosen, most if isinstance(most, int) else MediaRules().most_bytes)


class MediaDocument(Document, frozen=True):
    """A media file at one moment: `text` is its label, `hash` the documented one of path, label, type and bytes."""

    mime: str
    data: bytes


def modality_of(path: str) -> Modality | None:
    """Return what a file is by its name; None for one that is no media."""
    return next((kind for kind, endings in _ENDINGS.items() if _ending(path) in endings), None)


def _ending(path: str) -> str:
    """Return what stands behind the last dot of a path, in small letters."""
    return path.lower().rpartition(".")[2]


def read_media(note: NoteFile) -> MediaDocument:
    """Return the media file `note`, whole and unchanged while it was read. Raises Unreadable."""
    data, status = snapshot(note)
    # A file that was listed as media has a modality, so that "image" stands for none.
    kind, ending = modality_of(note.path) or "image", _ending(note.path)
    label, mime = f"{kind.capitalize()} file: {note.path}", f"{kind}/{_TYPES.get(ending, ending)}"
    entry = {"path": note.path, "contentText": label, "mimeType": mime, "dataHash": hashlib.sha256(data).hexdigest()}
    digest = jsstring.sha256_hex(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return MediaDocument(note.path, label, digest, len(data), status.st_mtime_ns, 0, nul=False, mime=mime, data=data)


def path_in(text: str, digest: str) -> str:
    """Return the path of the media file whose label `text` is; empty where it is the text of a note.

    `digest` is the hash of the chunk: for a note that of `text`, for a media file one that its bytes are part of.
    """
    kind, _, path = text.partition(" file: ")
    is_label = kind in ("Image", "Audio") and modality_of(path) == kind.lower()
    return path if is_label and jsstring.sha256_hex(text) != digest else ""


# --- the parts of its Markdown -------------------------------------------------------------------------------------

_FRONT = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(?=\s*\w[\w .-]*:)(?P<fields>(?:(?:\w[\w .-]*:[^\n]*|[ \t][^\n]*|[-#][^\n]*|)\r?\n)*?)"
    r"(?:---|\.\.\.)[ \t]*\r?$",
    re.MULTILINE,
)
# A pattern that begins with a line end is looked for twenty times as quickly as one with "^": nothing else runs
# meanwhile, and a note may have 30 MB. So a line end stands before the text that these go over.
_ASIDE = re.compile(
    r"\n[ \t]*(?:(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:\n(?![ \t]*(?P=fence)[`~]*[ \t]*\r?$)[^\n]*)*+(?:\n[^\n]*)?"
    r"|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?)|<!--[^\n]{0,500}?-->",
    re.MULTILINE,
)
_HEADING = re.compile(r"\n\ufeff? {0,3}(?P<signs>#{1,6})[ \t]+(?P<title>[^\n]*)")
_TABLE = re.compile(r"\n[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)+")
_SIGNS_OF = {_ASIDE: ("```", "~~~", "<!--"), _TABLE: ("|",)}
"""Signs without any of which a pattern matches nothing: they are found a hundred times as quickly."""
_CLOSING = re.compile(r"(?:^|[ \t]+)#+\s*$")
_FIELD = re.compile(r"(?P<indent>[ \t]*)(?P<key>[\w-]+):[ \t]*(?P<value>[^\n]*?)[ \t\r]*$", re.MULTILINE)


class Heading(NamedTuple):
    """A heading on `line` (from 1); `level` is 1 to 6."""

    line: int
    level: int
    title: str


@lru_cache(maxsize=1)
def front_matter(text: str) -> Mapping[str, str]:
    """Return the fields of the front matter of a note by key, the first of a key; empty for a note without any.

    Those below `metadata` count where no field at the left edge has their name.
    """
    fields: dict[str, str] = {}
    metadata: dict[str, str] = {}
    above = ""
    front = _FRONT.match(text)
    for field in _FIELD.finditer(front["fields"]) if front else ():
        key, value = field["key"], field["value"].strip("\"'")
        # What is indented belongs to the key above it.
        if not field["indent"]:
            above = key
            fields.setdefault(key, value)
        elif above == "metadata":
            metadata.setdefault(key, value)
    # The right operand wins.
    return metadata | fields


def prose(text: str) -> str:
    """Return `text` with blanks for its front matter, fenced code and comments; what is left keeps its place."""
    front = _FRONT.match(text)
    start = front.end() if front else 0
    # The patterns begin with a line end, so one stands before the first line.
    rest = f"\n{text[start:]}"
    if any(sign in rest for sign in _SIGNS_OF[_ASIDE]):
        rest = _ASIDE.sub(lambda aside: _blank(aside[0]), rest)
    return _blank(text[:start]) + rest.removeprefix("\n")


def _blank(text: str) -> str:
    """Return as many lines as `text` has, of blanks."""
    return re.sub(r"[^\n]+", lambda line: " " * len(line[0]), text)


@lru_cache(maxsize=1)
def headings(text: str) -> Sequence[Heading]:
    """Return the headings of a note in order."""
    text = f"\n{prose(text)}"
    matches = list(_HEADING.finditer(text))
    # A match begins with the line end above its heading, which is counted (+ 1). As one stands before the first line,
    # the line ends before a heading are as many as the number of its line.
    lines = _lines_of([match.start() + 1 for match in matches], text)
    titles = [_CLOSING.sub("", match["title"]).strip() for match in matches]
    levels = [len(match["signs"]) for match in matches]
    return list(map(Heading, lines, levels, titles))


def _lines_of(positions: Iterable[int], text: str) -> Iterator[int]:
    """Yield how many line ends of `text` stand before each of ascending positions; the text is gone over once."""
    line = counted_to = 0
    for position in positions:
        line += text.count("\n", counted_to, position)
        counted_to = position
        yield line


@lru_cache(maxsize=1)
def together(text: str) -> Sequence[tuple[int, int]]:
    """Return the first and last line of each run that is read as a whole: a fence, a comment, a table."""
    text = f"\n{text}"
    patterns = (pattern for pattern, signs in _SIGNS_OF.items() if any(sign in text for sign in signs))
    spans = sorted(match.span() for pattern in patterns for match in pattern.finditer(text))
    # A match begins with the line end above it, which counts: the text has one in front of its first line.
    firsts = _lines_of([start + 1 for start, _ in spans], text)
    return [(line, line + text.count("\n", start + 1, end)) for line, (start, end) in zip(firsts, spans, strict=True)]


def heading_on(line: str) -> str | None:
    """Return the words of the heading that a line is; None for any other line."""
    match = _HEADING.match(f"\n{line}")
    return _CLOSING.sub("", match["title"]).strip() if match else None


# --- annotations -----------------------------------------------------------------------------------------------------

# Comments that OpenClaw 2026.9 reads. Triggers, importance and project are taken out of the text before it is cut into
# chunks, and steer recall instead (release 2026.9.6, recall metadata of chunking version 5).

INVALID_PROJECT = "!invalid-project-annotation"
"""The stored project of a chunk whose project marker cannot be read; OpenClaw never recalls such a chunk."""
CURATED = ("MEMORY.md", "memory.md", "USER.md")
"""Files at the top of the workspace of which triggers and importance count."""
MOST_IMPORTANT = 10

_BLANK = r"[^\S\r\n\u2028\u2029]*"
# Compiled when a note with a comment is read first: a search that is a process of its own reads none.
_MARKER = rf"(?i)<!--{_BLANK}(?:trigger|importance|project){_BLANK}:[^\r\n\u2028\u2029]*?-->"
_LINE_ENDS = r"(?<![ \t])[ \t]+(?=[\r\n\u2028\u2029]|\Z)"
_IMPORTANCE = rf"(?i)<!--{_BLANK}importance{_BLANK}:(.*?)-->"
_TRIGGER = rf"(?i)<!--{_BLANK}trigger{_BLANK}:(.*?)-->"
_PROJECT = r"(?i)<!--\s*project\s*:"
_OPENING = r"(?i)<!--\s*(trigger|importance|project)\s*:"


class Annotations(NamedTuple):
    """What the comments of a chunk say: importance 1 to 10 (0: none), triggers and project keys joined by `"; "`."""

    importance: int = 0
    triggers: str = ""
    project: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the project keys one by one."""
        return tuple(self.project.split("; ")) if self.project else ()


NOTHING_SAID = Annotations()


def without_markers(text: str) -> str:
    """Return `text` without the markers that close on their own line.

    Where there was one, blanks at the end of every line go as well; lines keep their numbers.
    """
    if "<!--" not in text:
        return text
    without, count = re.subn(_MARKER, "", text)
    return re.sub(_LINE_ENDS, "", without) if count else text


def read_annotations(lines: Sequence[str], path: str) -> Annotations:
    """Return what the raw `lines` of an entry, or of a chunk, of the note `path` say."""
    if not any("<!--" in line for line in lines):
        return NOTHING_SAID
    project = "" if path == "USER.md" else _project("\n".join(lines))
    if path not in CURATED:
        return Annotations(project=project)
    # A comment with text behind it counts for nothing.
    closed = [line for line in lines if line.rstrip(jsstring.WHITESPACE).endswith("-->")]
    written = (jsstring.trim(value) for line in closed for value in re.findall(_IMPORTANCE, line))
    numbers = [int(value) for value in written if re.fullmatch("[0-9]{1,9}", value)]
    importance = max((number for number in numbers if 1 <= number <= MOST_IMPORTANT), default=0)
    triggers = (trigger for line in closed for trigger in re.findall(_TRIGGER, line))
    return Annotations(importance, _joined(_phrases(triggers)), project)


def _phrases(triggers: Iterable[str]) -> list[str]:
    """Return the phrases of triggers, which are parted by commas and semicolons."""
    phrases = (jsstring.trim(phrase) for trigger in triggers for phrase in re.split("[,;]", trigger))
    return list(filter(None, phrases))


def _joined(parts: Iterable[str]) -> str:
    """Return each part once, in one text parted by "; " as annotations are stored."""
    return "; ".join(dict.fromkeys(parts))


def _project(text: str) -> str:
    """Return the project keys of every marker in `text`, or INVALID_PROJECT where one of them cannot be read."""
    keys: list[str] = []
    for marker in re.finditer(_PROJECT, text):
        if _project_flaw(text, marker.end()):
            return INVALID_PROJECT
        keys += map(project_key, _keys(text[marker.end() : text.index("-->", marker.end())]))
    return _joined(keys)


def _keys(text: str) -> list[str]:
    """Return the keys that a project marker names, which semicolons part."""
    return list(map(jsstring.trim, text.split(";")))


def _project_flaw(text: str, start: int) -> str:
    """Return why a project whose keys begin at `start` loses its entry; empty where it counts."""
    end = text.find("-->", start)
    if end < 0:
        return f"it never closes, {_DROPPED}"
    if any(not key or re.search(r"[\r\n<>]", key) for key in _keys(text[start:end])):
        return f"a key is empty, or holds a line break, < or >, {_DROPPED}"
    return ""


_DROPPED = "so OpenClaw never recalls the entry"


def project_key(written: str) -> str:
    """Return the key of a project as it is compared: a path as it stands, else with its host in lower case."""
    if (key := jsstring.trim(written)).startswith("path:"):
        return key
    host, slash, rest = key.partition("/")
    return host.lower() + slash + rest


def origin_class(path: str, ledger: Mapping[str, str]) -> str:
    """Return who a memory file is from: system, what the `ledger` has of it, else agent or untrusted by its path."""
    if path in ("DREAMS.md", "dreams.md") or path.startswith(("memory/dreaming/", "memory/.dreams/")):
        return "system"
    if path in ledger:
        return ledger[path]
    if path in CURATED or (path.startswith("memory/") and path.endswith(".md")):
        return "agent"
    return "agent" if re.fullmatch(r"users/[^/]+/USER\.md", path) else "untrusted"


class Flaw(NamedTuple):
    """An annotation that does not do what it was written for: its line (from 1), and why."""

    line: int
    reason: str


def flaws(text: str, path: str) -> list[Flaw]:
    """Find the annotations in the note `path` that OpenClaw 2026.9 passes over in silence."""
    if "<!--" not in text:
        return []
    # `line_start` is where the line begins in `text`.
    result, line_start = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        for marker in re.finditer(_OPENING, line):
            name = marker[1].lower()
            if name == "project" and path == "USER.md":
                reason = "it is not read in USER.md"
            elif name == "project":
                # A project marker may close on another line, so it is looked for in the whole text.
                reason = _project_flaw(text, line_start + marker.end())
            else:
                reason = _flaw(name, line, marker.end(), path)
            if reason:
                result.append(Flaw(number, f"{name}: {reason}"))
        line_start += len(line) + 1
    return result


def _flaw(name: str, line: str, start: int, path: str) -> str:
    """Return why a trigger or an importance whose value begins at `start` has no effect; empty where it has one."""
    end = line.find("-->", start)
    if end < 0:
        return "it does not close on its line, so it has no effect and stays in the text"
    if path not in CURATED:
        return "it counts only in MEMORY.md and USER.md"
    if not line.rstrip(jsstring.WHITESPACE).endswith("-->"):
        return "text follows it on its line, so it has no effect"
    value = jsstring.trim(line[start:end])
    if name == "trigger":
        return "" if _phrases([value]) else "it names no phrase"
    fits = re.fullmatch("[0-9]{1,9}", value) and 1 <= int(value) <= MOST_IMPORTANT
    return "" if fits else f"it is a whole number from 1 to {MOST_IMPORTANT}"


# --- overtaken lines -------------------------------------------------------------------------------------------------


_LEAD = r"^\s*(?:[-*+]\s+|\d+[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?(?:\*\*)?"
_STRUCK = re.compile(rf"{_LEAD}~~(?:(?!~~).)+~~[\s.。|*]*$")
_MARK = re.compile(
    rf"{_LEAD}[(（\[]\s*(?:[^\W\d]{{1,4}}\s)?(?:superseded?|überholt|veraltet|obsoleto|obsolet|已作废|已过时|廃止|устарело)"
    r"(?P<day>[\s:,]*\d{4}-\d\d-\d\d)?[^)）\]]{0,60}[)）\]]\s*",
    re.IGNORECASE,
)


def is_overtaken(line: str) -> bool:
    """Tell whether a line says itself that another one overtook it, or that it is done."""
    return _MARK.match(line) is not None or _STRUCK.match(line) is not None


def overtaken_in(text: str, first: int = 1) -> list[int]:
    """Return the numbers of the overtaken lines in a text whose first line has the number `first`."""
    return [number for number, line in enumerate(text.split("\n"), first) if is_overtaken(line)]


def is_marked(line: str) -> bool:
    """Tell whether a line begins with a mark such as "(superseded 2026-03-08)"."""
    return _MARK.match(line) is not None


def without_mark(line: str) -> str:
    """Return a line without the mark, and without what strikes it through."""
    return _MARK.sub("", line, count=1).replace("~~", "")


def marked(line: str, day: str) -> str:
    """Return a line with the mark of `day` in front of its words."""
    lead = re.match(r"\s*(?:[-*+]\s+|\d+[.)]\s+|\|\s*)?(?:\[[ xX]\]\s*)?", line)
    start = lead.end() if lead else 0
    return f"{line[:start]}(superseded {day}) {line[start:]}"


# --- its day, week or month ----------------------------------------------------------------------------------------


class NoteDate(Struct, frozen=True):
    """A note's age by date, by the file's modification time, or never (evergreen); `day` is set for dates only."""

    day: date | None
    basis: Literal["name", "front matter", "mtime", "evergreen"]


def note_date(path: str) -> NoteDate:
    """Return which date ages the note stored as `path` in OpenClaw 2026.3: only memory/YYYY-MM-DD.md goes by its name.

    Other notes below memory/ and the root notes are evergreen; impossible days and extra paths go by mtime.
    """
    normal = path.replace("\\", "/").removeprefix("./")
    return _date_by(_DATED.search(normal), normal, ("MEMORY.md", "memory.md"))


def note_date_2026_9(path: str) -> NoteDate:
    """Which date ages the note stored as `path` in OpenClaw 2026.9: a day in its name in any folder below memory/.

    `2026-01-02.md` and `2026-01-02-router.md` count; an impossible day and extra paths go by mtime, the rest below
    memory/ and the root notes are evergreen (section 7.1 of the profile's specification).
    """
    return _date_by(_DATED_BELOW.search(path), path, ("MEMORY.md", "USER.md"))


def _date_by(match: re.Match[str] | None, path: str, root_notes: tuple[str, ...]) -> NoteDate:
    """Return what ages the note `path`; `match` has year, month and day of its path, and is None for one without."""
    if match:
        # Years below 100 are no dates, as in OpenClaw, whose calendar takes them for 19xx.
        day = None if match[1] < "0100" else _day("-".join(match.groups()))
        return NoteDate(day, "name" if day else "mtime")
    if path in root_notes or path.startswith("memory/"):
        return NoteDate(None, "evergreen")
    return NoteDate(None, "mtime")


_DATED = re.compile(r"(?:^|/)memory/([0-9]{4})-([0-9]{2})-([0-9]{2})\.md\Z")
_DATED_BELOW = re.compile(r"(?:^|/)memory/(?:[^/]+/)*([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-[^/]+)?\.md\Z")


def _day(iso: str) -> date | None:
    """Return the day that is written as ISO 8601 has it; None for one of no calendar."""
    try:
        return date.fromisoformat(iso)
    except ValueError:
        return None


_YEAR = r"(?<![0-9A-Za-z])((?:19|20|21)[0-9]{2})"
_DAY = re.compile(
    rf"{_YEAR}(?:[-_./]([0-9]{{2}})[-_./]([0-9]{{2}})|([0-9]{{2}})([0-9]{{2}})(?:[T_-]?[0-9]{{4}}(?:[0-9]{{2}})?)?)"
    r"(?![0-9])"
)
_WEEK = re.compile(rf"{_YEAR}[-_/ ]?(?:W|KW|week)[-_ ]?([0-9]{{1,2}})(?![0-9])", re.IGNORECASE)
_MONTH = re.compile(rf"{_YEAR}[-_/](0[1-9]|1[0-2])(?![-_./]?[0-9])")
FRONT_DATES = ("date", "created")
"""Fields of front matter that date a note."""


@lru_cache(100_000)
def date_in(words: str) -> str:
    """Return the last day in a path, or else week or month, as ISO 8601 has it: 2026-03-07, 2026-W10, 2026-03."""
    for match in reversed(list(_DAY.finditer(words))):
        # Month and day are groups 2 and 3 where signs part them, 4 and 5 where none do; the other two are None.
        year, *numbers = filter(None, match.groups())
        if _day(iso := "-".join((year, *numbers))):
            return iso
    for match in reversed(list(_WEEK.finditer(words))):
        if _day(iso := f"{match[1]}-W{match[2]:0>2}"):
            return iso
    months = _MONTH.findall(words)
    return "-".join(months[-1]) if months else ""


def date_of(path: str, text: str = "") -> str:
    """Return the date of a note as `date_in` has it: a day in its path, else what its front matter or its path has.

    It is empty for a note without a date.
    """
    in_path = date_in(path.removesuffix(".md")) if path.endswith(".md") else ""
    if len(in_path) == _WHOLE or not text:
        return in_path
    dates = (date_in(front_matter(text).get(field, "")) for field in FRONT_DATES)
    return next(filter(None, dates), in_path)


_WHOLE = len("2026-03-07")
"""The length of a date that names a day; a week or a month is shorter."""


def span(written: str) -> tuple[date, date]:
    """Return the first and the last day of a day, week or month that is `written` as `date_in` has it."""
    if "W" in written:
        first = date.fromisoformat(written)
        return first, first + timedelta(days=6)
    if len(written) == _WHOLE:
        day = date.fromisoformat(written)
        return day, day
    first = date.fromisoformat(f"{written}-01")
    return first, first.replace(day=monthrange(first.year, first.month)[1])


def shown_day(path: str) -> date | None:
    """Return the day that the path of a note names: `2026-01-02.md`, `2026/01/02.md`, `audit-20260102.md`."""
    written = date_of(path)
    return date.fromisoformat(written) if len(written) == _WHOLE else None


def is_daily(path: str) -> bool:
    """Return whether a note is one that an agent appends to day by day."""
    is_dream = path.startswith("memory/dreaming/")
    return path.startswith("memory/") and not is_dream and shown_day(path) is not None


# --- titles ----------------------------------------------------------------------------------------------------------


LONGEST = 200
_DATE = (
    r"(?:\d{4}[-/._]\d{1,2}[-/._]\d{1,2}|\d{4}-?W\d\d|\d{4}年\d{1,2}月(?:\d{1,2}日)?|\d{1,2}\.\d{1,2}\.\d{4}"
    r"|[^\W\d]{3,12}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}|\d{1,2}(?:st|nd|rd|th|\.)? (?:de )?[^\W\d]{3,12}\.?,? (?:de )?"
    r"\d{4})(?:[ T]\d{1,2}:\d\d(?::\d\d)?)?"
)
_AT_ENDS = re.compile(rf"\A\W*{_DATE}(?: ?\(\w+\))?[\s\W]*|[\s\W]*{_DATE}(?: ?\(\w+\))?\W*\Z")
_LINK = re.compile(r"!?\[\[(?:[^\]|]*\|)?([^\]]*)\]\]|!?\[([^\]]*)\]\([^)]*\)")
_SIGNS = re.compile(r"\ufeff|\*+|`+|~~|(?<!\w)_+|_+(?!\w)")
_ITEM = re.compile(r"\s*(?:(?:[-*+]|\d+[.)])\s+(?:\[.\]\s+)?|>\s?|\|)*")
_RECORD = re.compile(r"\W*(?:session|source|date|time|created|updated|status|author|tags|type|id)\b[\w ]*\W*:", re.I)
_SAYS_NOTHING = """
daily day today date time utc week log logs note notes journal diary memory memories entry entries session summary
conversation untitled title for of the vom der
monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun
january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
montag dienstag mittwoch donnerstag freitag samstag sonntag mo di mi do fr sa so
januar februar märz mai juni juli oktober dezember
tag woche kw tagebuch tageslog tagesnotizen notizen notiz protokoll tagesprotokoll eintrag
diario notas nota registro journal semaine semana jour día quotidien carnet
дневник журнал заметки заметка лог день неделя 日記 日志 日记 日報 笔记 メモ ログ 年 月 日
"""
_EMPTY = frozenset(_SAYS_NOTHING.split())
"""Words that tell nothing in a title beside a date."""


def title_of(path: str, text: str, at: int | None = None) -> str:
    """Return the title of the note `path` with this `text`, empty where nothing tells.

    With `at` the text is a part of the note, and the title that of what stands on its line `at`, from 0.

    It is that of the front matter, else the first heading, or the nearest above `at`; then the words in the name of
    a dated note, and its first words. Nothing that only repeats the day or the name is a title.
    """
    heads, front = headings(text), front_matter(text)
    # Empty for a note with a date.
    name = name_beside(path, text)
    candidates: Iterable[str] = (front.get("title", ""), front.get("name", ""))
    if at is not None:
        # Headings count their lines from 1.
        candidates = *(heading.title for heading in reversed(heads) if heading.line <= at + 1), *candidates
    else:
        slug = "" if name else re.sub(rf"{_DATE}|[\d\W_]", " ", posixpath.basename(path).removesuffix(".md"))
        tops = [heading.title for heading in heads if heading.level == 1]
        # Where the name is the heading, the heading of a part says less than the first words.
        parts = [] if _letters(name) in map(_letters, tops) else [heading.title for heading in heads]
        candidates = chain(candidates, tops, (slug,), parts, _first_words(text))
    titles = (telling(words, name) for words in candidates)
    return next(filter(None, titles), "")


def _first_words(text: str) -> Iterator[str]:
    """Yield the lines of a note that are neither headings nor fields of a record, without their list marks."""
    for line in prose(text).split("\n"):
        if not _RECORD.match(line) and heading_on(line) is None:
            yield _ITEM.sub("", line, count=1)


def name_beside(path: str, text: str = "") -> str:
    """Return the name that stands beside the title of a note: none where its date does."""
    return "" if date_of(path, text) else posixpath.basename(path).removesuffix(".md")


def telling(words: str, name: str) -> str:
    """Return what `words` say beside a date, or beside the `name` of a note, as plain text; empty for nothing."""
    plain = _SIGNS.sub("", _LINK.sub(lambda link: link[1] or link[2] or "", words[:LONGEST])).strip()
    rest = re.findall(r"[^\W\d_]+", re.sub(_DATE, " ", plain).casefold())
    # Nothing is left but a date and words such as "notes", or the name again.
    if _EMPTY.issuperset(rest) or _letters(plain) == _letters(name):
        return ""
    return plain if name else _AT_ENDS.sub("", plain)


def _letters(words: str) -> str:
    """Return the letters and digits of a name or title, by which the two are compared."""
    return re.sub(r"[\W_]+", "", words.removesuffix(".md")).casefold()
