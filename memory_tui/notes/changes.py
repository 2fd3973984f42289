"""A change of notes, file by file: the bytes before and the bytes after, their diff, and the merge of two changes.

Bytes that are not UTF-8 stand for themselves (surrogateescape). Lines are counted from 1, and only a line feed ends
one, as everywhere in this program.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from memory_tui.errors import EditRefused
from memory_tui.formatting import plural
from memory_tui.secrets.finder import MASK, masked
from memory_tui.workspace.notes import Heading, headings, name_beside, telling, utf16_of


class FileChange(Struct, frozen=True):
    """One note, by its stored path: its bytes before and after, None where it is not there.

    `mode` and `mtime_ns` are for a note that is made, 0 for the usual; one that is there keeps its mode.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0
    mtime_ns: int = 0

    def reverse(self) -> FileChange:
        """Return what takes it back."""
        return replace(self, before=self.after, after=self.before)


def moves(files: Sequence[FileChange]) -> dict[str, str]:
    """Return old path -> new path of the notes that are moved by a change.

    A note that goes is moved where a note of the same file name comes, or where one note goes and one comes in all.
    """
    new = [file.path for file in files if file.before is None and file.after is not None]
    old = [file.path for file in files if file.before is not None and file.after is None]
    if len(new) == 1 and len(old) == 1:
        return {old[0]: new[0]}
    by_name = {posixpath.basename(path): path for path in new}
    return {path: by_name[name] for path in old if (name := posixpath.basename(path)) in by_name}


class Change(Struct, frozen=True):
    """One or several notes that change together. `title` is a sentence; `notes` are what a person should know of it.

    Neither holds what looks like a secret: they go into lists, messages and the journal.
    `kind` is capture, edit, new, promote, demote, merge, delete, archive, trash, rename, restore,
    session, undo or redo.
    """

    kind: str
    title: str
    files: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    of: int = 0
    """The change that an undo takes back, or a redo makes again; 0 for any other kind."""

    def __post_init__(self) -> None:
        force_setattr(self, "title", masked(self.title))
        force_setattr(self, "notes", tuple(map(masked, self.notes)))

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the stored paths of the notes it changes."""
        return tuple(file.path for file in self.files)

    @property
    def end(self) -> str:
        """Return where what it adds to the end of its first note will stand, as a sentence."""
        first = self.files[0]
        if first.before is None:
            return f"It makes the note {first.path}."
        lines = editor_text(first.before, first.path).split("\n")
        heading = masked(telling(sections(lines)[-1].title, name_beside(first.path)))
        return f"It goes to the end of {first.path}" + (f", under “{heading}”." if heading else ".")


class ThreeWay(Struct, frozen=True):
    """A note that somebody else changed too: what both started from, theirs on disk now, mine that was not written."""

    path: str
    base: bytes | None
    mine: bytes | None
    other: bytes | None
    merge: Merge


class ReadOnly(EditRefused):
    """Nothing may be written: the program was asked not to, or the note or its folder does not allow it."""

    code = "read_only"


class Busy(EditRefused):
    """Another program has the note open for writing, or another memory-tui is changing notes."""

    code = "busy"
    exit_status = 1


class Unfinished(EditRefused):
    """A change that an error of the disk cut off. The journal has its texts; the next start or change settles it."""

    code = "unfinished"
    exit_status = 1


class NothingToChange(EditRefused):
    """The note is already as it should become."""

    code = "nothing_to_change"


class Conflict(EditRefused):
    """Somebody else changed the same lines. `view` shows all three texts; `draft` is where the journal keeps mine.

    `change` is what was to be made, of all its notes.
    """

    code = "conflict"
    exit_status = 1

    def __init__(self, message: str, next_step: str, view: ThreeWay, draft: int = 0, *, change: Change) -> None:
        super().__init__(message, next_step)
        self.view, self.draft, self.change = view, draft, change


BOM = "\ufeff"
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\udc80-\udcff]")
"""What an editor cannot show or takes for the end of a line, and bytes that are not UTF-8."""
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)")


class Lines(Struct, frozen=True):
    """A note: whether it begins with a byte order mark, and its lines, each with its end."""

    bom: bool
    lines: tuple[str, ...]

    @classmethod
    def of(cls, data: bytes | None, path: str = "The note") -> Lines:
        """Return the lines of a note, none for one that is not there. Raises EditRefused for UTF-16 and UTF-32."""
        data = data or b""
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            step = "The inbox writes it as UTF-8; it can be moved and deleted as a whole."
            raise EditRefused(f"{path} is UTF-16, which is shown but not edited line by line.", step)
        text = data.decode("utf-8", "surrogateescape")
        *ended, last = text.removeprefix(BOM).split("\n")
        lines = [line + "\n" for line in ended]
        return cls(text.startswith(BOM), tuple([*lines, last] if last else lines))

    @property
    def data(self) -> bytes:
        """Return the note as bytes."""
        return ((BOM if self.bom else "") + "".join(self.lines)).encode("utf-8", "surrogateescape")

    @property
    def end(self) -> str:
        """Return the line end that most lines have, LF where it is as many as CR LF."""
        windows = sum(line.endswith("\r\n") for line in self.lines)
        return "\r\n" if windows * 2 > sum(line.endswith("\n") for line in self.lines) else "\n"

    def texts(self) -> list[str]:
        """Return all lines without their ends."""
        return [bare(line) for line in self.lines]

    def insert(self, before: int, texts: Iterable[str]) -> Lines:
        """Return a copy with `texts` in front of line `before`, which may be one behind the last.

        They get the line end of the line above; a last line without one gets it, too.
        """
        above, below = self.lines[: before - 1], self.lines[before - 1 :]
        end = (end_of(above[-1]) if above else "") or self.end
        if above and not end_of(above[-1]):
            above = (*above[:-1], above[-1] + end)
        return Lines(self.bom, (*above, *(text + end for text in texts), *below))

    def delete(self, first: int, last: int) -> Lines:
        """Return a copy without lines `first` to `last`; of two blank lines that would meet, one goes too."""
        above, below = self.lines[: first - 1], self.lines[last:]
        # A blank line below goes where the line above is blank, or where there is none above.
        if below and not below[0].strip() and (not above or not above[-1].strip()):
            below = below[1:]
        elif not below and above and end_of(self.lines[-1]) == "":
            # The note had no line end at its end, and has none now.
            above = (*above[:-1], bare(above[-1]))
        return Lines(self.bom, above + below)

    def check(self, first: int, last: int, path: str) -> None:
        """Raise EditRefused unless these lines are there."""
        # An editor shows an empty line behind the last line end, which is no line of the note.
        if first == len(self.lines) + 1 and last == first and (not self.lines or end_of(self.lines[-1])):
            raise EditRefused(f"Line {first} of {path} is empty: the text ends above it.", "Choose lines with text.")
        if not 1 <= first <= last <= len(self.lines):
            step = "Look at the note again; it may have changed."
            raise EditRefused(f"{path} has {len(self.lines)} lines, so there are no lines {first} to {last}.", step)


class ShownLines(Struct, frozen=True):
    """The `lines` of a note as a person saw them; `show` makes of a line what they saw of it."""

    lines: Sequence[str]
    show: Callable[[str], str]

    def now_at(self, first: int, last: int, note: Lines) -> tuple[int, int] | None:
        """Return where lines `first` to `last` stand in `note`, which others may have changed since.

        None where one of them is another one now, or lines came between them.
        """
        # Bytes that are not UTF-8 are shown as U+FFFD, so that they are compared as such.
        now = [self.show(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")) for text in note.texts()]
        moved = 0
        for start, end, _, new_end in changed_spans(self.lines, now):
            # Spans count from 0 and end before `end`, lines count from 1: one that ends at first - 1 or earlier is all
            # above, and only moves the lines; one that begins at `last` or later is all below.
            if end < first:
                moved = new_end - end
            elif start < last:
                return None
        return first + moved, last + moved


def bare(line: str) -> str:
    """Return a line without its end."""
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def end_of(line: str) -> str:
    """Return the end of a line: CR LF, LF or nothing."""
    return line[len(bare(line)) :]


def editor_text(data: bytes | None, path: str = "The note") -> str:
    """Return a note as an editor shows it: no BOM, LF at every line end, U+FFFD for what cannot be shown."""
    lines = Lines.of(data, path).lines
    return _ODD.sub("\ufffd", "".join(bare(line) + ("\n" if end_of(line) else "") for line in lines))


_BY_EDITOR = "Save it as UTF-8 in the editor that wrote it."
_ESCAPED = re.compile("[\udc80-\udcff]+")
"""Bytes that are not UTF-8."""
MOST_ACCENTS = 3
"""Letters with accents and quotation marks that meet in a language of Windows-1252; those of other alphabets go on."""
_WESTERN = {0xDC00 + byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
"""What Windows-1252 makes of each byte that is not UTF-8; of five that it does not know, what Latin-1 does."""


def to_utf8(path: str, data: bytes | None) -> Change:
    """Return the change that writes a note as UTF-8. What is UTF-8 in it stays.

    Other bytes are read as UTF-16 or as Windows-1252. Raises EditRefused where that cannot be, or nothing would change.
    """
    data = data or b""
    codec = utf16_of(data)
    try:
        text = data.decode(codec) if codec else data.decode("utf-8", "surrogateescape")
    except UnicodeDecodeError as error:
        raise EditRefused(f"{path} is not whole {codec.upper()}: {error.reason}.", _BY_EDITOR) from error
    if not codec and max(map(len, _ESCAPED.findall(text)), default=0) > MOST_ACCENTS:
        raise EditRefused(f"{path} is neither UTF-8, UTF-16 nor Windows-1252.", _BY_EDITOR)
    after = (text if codec else text.translate(_WESTERN)).encode()
    if after == data:
        raise EditRefused(f"{path} is UTF-8 already.", "Run the checks again.")
    return Change("convert", f"Write {path} as UTF-8", (FileChange(path, data, after),))


def edited(data: bytes | None, text: str, path: str = "The note") -> bytes:
    """Return the note `data` after somebody changed what `editor_text` gave to `text`.

    Lines that were left alone keep every byte; a changed line keeps its end and what was shown as U+FFFD, where that
    is still in it; a new line gets the end of the line above.
    """
    old = Lines.of(data, path)
    if text == editor_text(data, path):
        return data or b""
    *ended, last = text.replace("\r\n", "\n").split("\n")
    # A line is compared as it is shown, and by whether it has an end.
    shown = [(line, True) for line in ended] + ([(last, False)] if last else [])
    shown_before = [(_ODD.sub("\ufffd", bare(line)), bool(end_of(line))) for line in old.lines]
    lines: list[str] = []
    kept_from = 0
    for start, end, new_start, new_end in changed_spans(shown_before, shown):
        lines += old.lines[kept_from:start]
        # Of new lines more than old ones, each has the empty text as what was there before.
        replaced = [*old.lines[start:end], *[""] * (new_end - new_start)]
        for (line, has_end), before in zip(shown[new_start:new_end], replaced, strict=False):
            above = lines[-1] if lines else ""
            line_end = (end_of(before) or end_of(above) or old.end) if has_end else ""
            lines.append(_with_odd_bytes(bare(before), line) + line_end)
        kept_from = end
    return Lines(old.bom, (*lines, *old.lines[kept_from:])).data


def _with_odd_bytes(before: str, line: str) -> str:
    """Return `line` with what `before` holds for each U+FFFD that was shown for it and is still there."""
    # What was typed may hold half a surrogate pair, which UTF-8 cannot.
    if not _ODD.search(before) or "\ufffd" not in line:
        return line.encode("utf-8", "replace").decode() if not line.isascii() else line
    letters = list(line)
    for start, new_start, count in matching(_ODD.sub("\ufffd", before), line):
        letters[new_start : new_start + count] = before[start : start + count]
    return "".join(letters)


class Section(Struct, frozen=True):
    """A heading and what stands below it up to the next one. `line` is the heading's, 0 for the top of the note.

    `last` is the last line of its own body; `level` is 1 to 6, 0 for the top.
    """

    line: int
    level: int
    title: str
    last: int


def sections(texts: Sequence[str]) -> list[Section]:
    """Return the headings of a note in order, the top of the note first."""
    tops = [Heading(0, 0, ""), *headings("\n".join(texts))]
    ends = [heading.line - 1 for heading in tops[1:]] + [len(texts)]
    return [Section(*heading, last) for heading, last in zip(tops, ends, strict=True)]


def block_at(texts: Sequence[str], line: int) -> tuple[int, int]:
    """Return the first and the last line (from 1) of what `line` belongs to: a list item with what is indented below
    it, or a paragraph. A blank line and a heading are alone.
    """
    # Headings become blank, as both end a block. A blank line in front and one behind end the first and the last block,
    # and the index of a line is its number.
    lines = ["", *("" if HEADING.match(text) else text for text in texts), ""]
    if not lines[line].strip():
        return line, line
    first = last = line
    while lines[first - 1].strip() and not ITEM.match(lines[first]):
        first -= 1
    item = ITEM.match(lines[first])
    while lines[last + 1].strip():
        below = lines[last + 1]
        indent = len(below) - len(below.lstrip())
        # Below an item the next block begins with what is not indented deeper, below a paragraph with an item.
        is_next = indent <= len(item[1]) if item else ITEM.match(below) is not None
        if is_next:
            break
        last += 1
    return first, last


# --- the diff --------------------------------------------------------------------------------------------------------

SECRET, NEW_SECRET, EARLIER_SECRET = "[secret]", "[new secret]", "[earlier secret]"
"""What stands for a secret, and for one that the note did not hold just before, or that comes back.

A mask that it holds stays as it is."""


class DiffLine(Struct, frozen=True):
    """A line of a diff: its text without its end, and its number before and after, 0 where it is not.

    `kind` is file, hunk, same, gone or new; `end` tells of a line end that is not LF: CRLF, or none at the last line.
    """

    kind: Literal["file", "hunk", "same", "gone", "new"]
    text: str
    old: int = 0
    new: int = 0
    end: str = ""

    def __str__(self) -> str:
        mark = {"file": "", "hunk": "", "same": " ", "gone": "-", "new": "+"}[self.kind]
        return mark + self.text + (f"  <{self.end}>" if self.end and self.kind != "same" else "")


def diff_lines(change: Change, context: int = 3) -> tuple[DiffLine, ...]:
    """Return the unified diff of all notes of a change, without their secrets, with `context` lines around changes.

    Text is else as it is in the notes: make it safe before showing it. Of a note that only gets another path, the paths
    are told, not its text.
    """
    lines: list[DiffLine] = []
    by_path = {file.path: file for file in change.files}
    old_paths = {new: old for old, new in moves(change.files).items() if by_path[new].after == by_path[old].before}
    mark = EARLIER_SECRET if change.kind in ("undo", "restore") else NEW_SECRET
    # What a note loses comes before the new note that it goes to.
    for file in sorted(change.files, key=lambda file: file.before is None and file.path not in old_paths):
        if file.path in old_paths:
            lines.append(DiffLine("file", f"{old_paths[file.path]} becomes {file.path}, its text stays as it is"))
        elif file.path not in old_paths.values():
            lines += _diff_of(file, context, mark)
    return tuple(lines)


def diff_text(change: Change) -> str:
    """Return the unified diff as one text, without its secrets."""
    return "".join(f"{line}\n" for line in diff_lines(change))


def unmaskings(change: Change) -> tuple[str, ...]:
    """Tell how many secrets a change that restores puts where a note has masks; undoing a mask needs no word."""
    if change.kind != "restore" or not any(MASK.encode() in (file.before or b"") for file in change.files):
        return ()
    lines = diff_lines(change, context=0)
    count = sum(line.text.count(EARLIER_SECRET) for line in lines if line.kind == "new")
    has_masks = any(MASK in line.text for line in lines if line.kind == "gone")
    return (f"This brings back {plural(count, 'secret')} in the place of masks.",) if count and has_masks else ()


def _diff_of(file: FileChange, context: int, mark: str) -> Iterator[DiffLine]:
    """Yield the unified diff of one file, in which secrets are masked and lines keep their numbers."""
    before, after = _split(file.before), _split(file.after)
    # The text of before comes first, so that a secret which stood there keeps its mark in the text after.
    marks: dict[str, str] = {}
    shown, new_shown = _masked_lines(file.before, SECRET, marks), _masked_lines(file.after, mark, marks)
    yield DiffLine("file", f"--- {file.path if file.before is not None else 'nothing'}")
    yield DiffLine("file", f"+++ {file.path if file.after is not None else 'nothing'}")
    hunks: list[list[tuple[int, int, int, int]]] = []
    last_end = -1
    for span in changed_spans(before, after):
        start, end, _, _ = span
        # Changes whose lines of context would meet are in one hunk.
        if hunks and start - last_end <= 2 * context:
            hunks[-1].append(span)
        else:
            hunks.append([span])
        last_end = end
    for spans in hunks:
        (first_start, _, first_new_start, _), (_, last_end, _, last_new_end) = spans[0], spans[-1]
        start, end = max(0, first_start - context), min(len(before), last_end + context)
        new_start, new_end = start + first_new_start - first_start, end + last_new_end - last_end
        yield DiffLine("hunk", f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@")
        # The empty span at the end brings the unchanged lines behind the last change.
        for gone_from, gone_to, new_from, new_to in [*spans, (end, end, new_end, new_end)]:
            # Up to the change all lines stand so many further down as this one.
            moved = new_from - gone_from
            for at in range(start, gone_from):
                yield DiffLine("same", shown[at], old=at + 1, new=at + moved + 1, end=before[at][1])
            for at in range(gone_from, gone_to):
                yield DiffLine("gone", shown[at], old=at + 1, end=before[at][1])
            for at in range(new_from, new_to):
                yield DiffLine("new", new_shown[at], new=at + 1, end=after[at][1])
            start = gone_to


def _range(start: int, end: int) -> str:
    """Return the lines `start` to `end` (from 0, without `end`) as the head of a hunk has them: first line, count.

    The first line counts from 1; an empty range names the line above it.
    """
    return f"{start + 1 if end > start else start},{end - start}"


def _split(data: bytes | None) -> list[tuple[str, str]]:
    """Return the lines of a note as text, each with the name of its end when that is not LF."""
    *ended, last = (data or b"").decode("utf-8", "surrogateescape").split("\n")
    lines = [(line.removesuffix("\r"), "CRLF" if line.endswith("\r") else "") for line in ended]
    return [*lines, (last, "no line end")] if last else lines


def _masked_lines(data: bytes | None, mark: str, marks: dict[str, str]) -> list[str]:
    """Return the lines of a note with a mark for each secret; their number stays.

    `marks` has the marks of secrets that were met before; a new one gets `mark`, and is added to them. Secrets are
    looked for in the whole note: a key may have many lines.
    """

    def shown(secret: str) -> str:
        """Return the mark of a secret, once for each line that the secret has."""
        return "\n".join([marks.setdefault(secret, mark)] * (secret.count("\n") + 1))

    *ended, last = masked((data or b"").decode("utf-8", "surrogateescape"), shown).split("\n")
    # No LF follows the last line, so that CR at its end is text.
    return [*(line.removesuffix("\r") for line in ended), last]


# --- three-way merge -------------------------------------------------------------------------------------------------

# By lines: a conflict remains where both sides changed the same ones. No line end, invalid byte or missing last line
# end is changed.

Side = Literal["same", "mine", "theirs", "both", "appended", "conflict"]


class Hunk(Struct, frozen=True):
    """A run of lines of all three texts. `side` is who changed it; both alike is "both".

    "appended" is the end of a note to which one only added lines, while the other added or changed some. Where both
    only added, theirs come first, or with `mine_first` mine.
    """

    side: Side
    base: tuple[bytes, ...]
    mine: tuple[bytes, ...]
    other: tuple[bytes, ...]
    mine_first: bool = False

    @property
    def lines(self) -> tuple[bytes, ...]:
        """Return the merged lines; mine for a conflict."""
        if self.side == "appended":
            count = len(self.base)
            mine_adds, other_adds = (text[:count] == self.base for text in (self.mine, self.other))
            # What only adds goes behind the other text.
            if mine_adds and not (other_adds and self.mine_first):
                return self.other + self.mine[count:]
            return self.mine + self.other[count:]
        return self.other if self.side == "theirs" else self.mine


class Merge(Struct, frozen=True):
    """All hunks in order, and the merged text, None where some are conflicts."""

    hunks: tuple[Hunk, ...]
    merged: bytes | None

    @property
    def conflicts(self) -> tuple[Hunk, ...]:
        """Return the hunks that a person must decide."""
        return tuple(hunk for hunk in self.hunks if hunk.side == "conflict")

    @property
    def united(self) -> bytes:
        """Return the merged text with the lines of both, theirs first, where there is a conflict."""
        parts = ((*hunk.other, *hunk.mine) if hunk.side == "conflict" else hunk.lines for hunk in self.hunks)
        return b"".join(line for part in parts for line in part)


def merge(base: bytes | None, mine: bytes | None, other: bytes | None, *, mine_first: bool = False) -> Merge:
    """Merge two changes of `base`; None is a note that is not there, which merges only with what left it alone.

    Where both added lines at the end, theirs come first, because they were on disk first; or mine with `mine_first`.
    """
    texts = base, mine, other
    if mine == other:
        return _whole("both", texts, mine)
    if other == base:
        return _whole("mine", texts, mine)
    if mine == base:
        return _whole("theirs", texts, other)
    if base is None or mine is None or other is None:
        return _whole("conflict", texts, None)
    # A last line without a line end is compared as if it had one; whether it has one is merged by itself.
    # The last lines tell which line end the note has.
    end = b"\r\n" if b"\r\n" in base[-4096:] else b"\n"
    closed = [_closed(text, end) for text in (base, mine, other)]
    hunks = tuple(replace(hunk, mine_first=mine_first) for hunk in _hunks(*map(_lines, closed)))
    if any(hunk.side == "conflict" for hunk in hunks):
        return Merge(hunks, None)
    merged = b"".join(line for hunk in hunks for line in hunk.lines)
    base_ends, mine_ends, other_ends = (text == before for text, before in zip(closed, texts, strict=True))
    # Whoever changed whether there is a last line end is followed.
    is_ended = mine_ends if mine_ends != base_ends else other_ends
    return Merge(hunks, merged if is_ended else merged.removesuffix(end))


def common_head(first: bytes, second: bytes) -> bytes | None:
    """Return the lines with which both begin, None when there are none."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(_lines(first), _lines(second), strict=False))
    return b"".join(line for line, _ in pairs) or None


def _whole(side: Side, texts: tuple[bytes | None, bytes | None, bytes | None], merged: bytes | None) -> Merge:
    """Return a merge of one hunk, which is decided for the whole note; `texts` are base, mine and other."""
    base, mine, other = (tuple(_lines(text or b"")) for text in texts)
    return Merge((Hunk(side, base, mine, other),), merged)


def _closed(text: bytes, end: bytes) -> bytes:
    """Return `text` with the line end `end` behind a last line that has none."""
    return text if not text or text.endswith(b"\n") else text + end


def _lines(text: bytes) -> list[bytes]:
    """Return lines with their ends; only a line feed ends a line."""
    *ended, last = text.split(b"\n")
    lines = [line + b"\n" for line in ended]
    return [*lines, last] if last else lines


def _hunks(base: list[bytes], mine: list[bytes], other: list[bytes]) -> Iterator[Hunk]:
    """Yield the texts cut where all three agree, and between; diff3 as Khanna, Kunal and Pierce describe it (2007)."""
    # Where the last run that all share ended, in base, mine and other. What stands before the next run is changed.
    ends: tuple[int, ...] = (0, 0, 0)
    for *starts, count in _agreed(base, mine, other):
        texts = zip((base, mine, other), ends, starts, strict=True)
        old, my, their = (tuple(text[end:start]) for text, end, start in texts)
        if old or my or their:
            yield Hunk(_side(old, my, their, is_last=starts[0] == len(base)), old, my, their)
        if count:
            same = tuple(base[starts[0] : starts[0] + count])
            yield Hunk("same", same, same, same)
        ends = tuple(start + count for start in starts)


def _side(base: tuple[bytes, ...], mine: tuple[bytes, ...], other: tuple[bytes, ...], *, is_last: bool) -> Side:
    """Return who changed lines; of the last lines of a note that both changed, one may have added only."""
    if mine == other:
        return "both"
    if other == base:
        return "mine"
    if mine == base:
        return "theirs"
    one_adds = mine[: len(base)] == base or other[: len(base)] == base
    return "appended" if is_last and one_adds else "conflict"


def _agreed(base: list[bytes], mine: list[bytes], other: list[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs of lines that all three share: start in each, and length; at last the ends, with length 0."""
    # A run is where it starts in base, where in the other text, and its length.
    with_mine, with_other = deque(matching(base, mine)), deque(matching(base, other))
    while with_mine and with_other:
        first, mine_first, mine_count = with_mine[0]
        second, other_first, other_count = with_other[0]
        start, end = max(first, second), min(first + mine_count, second + other_count)
        if start < end:
            yield start, mine_first + start - first, other_first + start - second, end - start
        # The run that ends first shares nothing more.
        is_mine_over = first + mine_count < second + other_count
        (with_mine if is_mine_over else with_other).popleft()
    yield len(base), len(mine), len(other), 0


_SMALL, _LARGE = 1 << 12, 1 << 29
"""Up to so many pairs of lines the longest run comes first, as a person would see it; a table of more takes 64 MB."""
Run = tuple[int, int, int]
"""A run of equal items: start in the one, start in the other, length."""


def matching(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[Run]:
    """Return the runs that two sequences share, in order."""
    # What both begin and end with (`head` and `tail` items) is quickly seen, and only what is between is compared.
    most = min(len(before), len(after))
    head = next((count for count in range(most) if before[count] != after[count]), most)
    tail = next((count for count in range(most - head) if before[-1 - count] != after[-1 - count]), most - head)
    left, right = before[head : len(before) - tail], after[head : len(after) - tail]
    pairs = len(left) * len(right)
    runs: list[Run] = [(0, 0, head)]
    if _SMALL < pairs <= _LARGE:
        # 7 ms that the first frame and most commands do not wait for.
        from rapidfuzz.distance import LCSseq

        runs += [(head + run.a, head + run.b, run.size) for run in LCSseq.editops(left, right).as_matching_blocks()]
    else:
        # autojunk is quick and rough: only what is too large for the table is compared so.
        blocks = SequenceMatcher(None, left, right, autojunk=pairs > _SMALL).get_matching_blocks()
        runs += [(head + run.a, head + run.b, run.size) for run in blocks]
    runs.append((len(before) - tail, len(after) - tail, tail))
    return [(start, new_start, count) for start, new_start, count in runs if count]


def changed_spans(before: Sequence[Hashable], after: Sequence[Hashable]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where two sequences of lines differ, as start, end, new start, new end: before[a:b] became after[c:d]."""
    runs = [(0, 0, 0), *matching(before, after), (len(before), len(after), 0)]
    for (run_start, new_run_start, count), (end, new_end, _) in pairwise(runs):
        start, new_start = run_start + count, new_run_start + count
        if start < end or new_start < new_end:
            yield start, end, new_start, new_end
