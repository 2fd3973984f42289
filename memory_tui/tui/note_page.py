"""A note as a page of safe lines. It has their layout, markup, chunk boundaries and matches."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.sanitize import safe
from memory_tui.tui.draw import Piece, chop, wrap
from memory_tui.workspace.transcripts import SOURCE

if TYPE_CHECKING:
    from memory_tui.engine.status import FileRow
    from memory_tui.search.trace import ChunkRef
    from memory_tui.workspace.notes import Document

LONGEST_LINE = 20_000
"""Characters of one line that are shown; the rest is counted."""

HEAD = 100_000
"""Characters of a long note that are shown before the rest is ready."""

_PIECE = 1 << 18
_WIDE_LEADS = bytes(range(0xE0, 0xF8))
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")


class Page(Struct, frozen=True):
    """One note: `lines` are safe to show, `chunks` are (first, last) lines, 1-based and sorted.

    `widths` are upper bounds of terminal cells, exact for ASCII. `fences` are the rows (from 0) that open or close a
    block of code. `whole` is False while only the head of a long note is there.
    """

    path: str
    lines: Sequence[str]
    widths: Sequence[int]
    fences: Sequence[int]
    chunks: tuple[tuple[int, int], ...]
    notice: str = ""
    hash: str = ""
    size: int = 0
    whole: bool = True

    def covering(self, line: int) -> Iterator[int]:
        """The numbers (from 0) of the chunks that cover 1-based `line`; the last three where more share a long line."""
        at = bisect_right(self.chunks, (line, len(self.lines) + 1))
        for i in range(max(0, at - 3), at):
            if self.chunks[i][0] <= line <= self.chunks[i][1]:
                yield i

    def chunk_at(self, line: int) -> int:
        """The number (from 0) of the last chunk that covers 1-based `line`; -1 without one."""
        return max(self.covering(line), default=-1)

    def in_code(self, row: int) -> bool:
        """Whether the line `row` (from 0) belongs to a block of code, its fences included."""
        before = bisect_right(self.fences, row)
        return before % 2 == 1 or (before > 0 and self.fences[before - 1] == row)

    def citation(self, first: int, last: int) -> str:
        """`path#Lfirst-Llast`."""
        return f"{self.path}#L{first}-L{last}"


def make_page(document: Document, chunks: Sequence[ChunkRef]) -> Page:
    """`document` with its indexed `chunks`, for the reader."""
    return _page(document, document.text, chunks)


def head_of(document: Document) -> Page | None:
    """The beginning of a long note, to show while the rest and its chunks are made ready; None for a short one."""
    if len(document.text) < 4 * HEAD:
        return None
    end = document.text.rfind("\n", 0, HEAD)
    return _page(document, document.text[: end if end > 0 else HEAD], (), whole=False)


def _page(document: Document, text: str, chunks: Sequence[ChunkRef], *, whole: bool = True) -> Page:
    lines: list[str] = []
    widths: list[int] = []
    fences: list[int] = []
    for piece in _pieces(text):
        first = len(lines)
        lines += [_short(line) for line in safe(piece, keep_newlines=True).split("\n")]
        widths += [_width(line) for line in lines[first:]]
        if "```" in piece or "~~~" in piece:
            fences += [row for row in range(first, len(lines)) if _FENCE.match(lines[row])]
    spans = tuple(sorted((chunk.start_line, chunk.end_line) for chunk in chunks))
    return Page(document.path, lines, widths, fences, spans, _notice(document), document.hash, document.size, whole)


def _pieces(text: str) -> Iterator[str]:
    """`text` in pieces that end where lines do, small enough that no other thread waits long for one."""
    at = 0
    while True:
        end = text.find("\n", at + _PIECE)
        if end < 0:
            yield text[at:]
            return
        yield text[at:end]
        at = end + 1


def line_after(before: Sequence[str], after: Sequence[str], line: int) -> int:
    """Where line `line` (from 1) of a page stands on the page of the same note read again; its number when it is gone.

    What comes before or behind everything that changed is found by its place, anything else by its text, nearest first.
    """
    short = min(len(before), len(after))
    same = next((at for at in range(short) if before[at] != after[at]), short)
    if line <= same:
        return line
    rest = short - same
    behind = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    if line > len(before) - behind:
        return line + len(after) - len(before)
    text = before[line - 1]
    reply = [at + 1 for at in range(same, len(after) - behind) if after[at] == text]
    return min(reply, key=lambda at: abs(at - line), default=line)


def shown_line(line: str) -> str:
    """What a page shows of one line."""
    return _short(safe(line, keep_newlines=True))


def _short(line: str) -> str:
    more = len(line) - LONGEST_LINE
    return line if more <= 0 else f"{line[:LONGEST_LINE]} … {more:,} more characters in this line"


def _width(line: str) -> int:
    """Cells that `line` takes at most: characters of three or four bytes in UTF-8 may be wide, shorter ones are not."""
    if line.isascii():
        return len(line)
    data = line.encode("utf-8", "replace")
    return len(line) + len(data) - len(data.translate(None, _WIDE_LEADS))


def _notice(document: Document) -> str:
    parts = []
    if document.replaced:
        parts.append(f"{document.replaced:,} bytes are not UTF-8 and show as \ufffd")
    if document.nul:
        parts.append("it holds NUL characters")
    return "; ".join(parts)


WRAPPED = 150_000
"""Cells up to which lines are broken at spaces; in a longer note at the edge, which needs no look at the text."""


class Layout:
    """The rows of a page when each has `room` cells; `extra` rows are drawn above some lines (row to how many).

    A range of `folded` rows takes one line.
    """

    def __init__(self, page: Page, room: int, extra: Mapping[int, int], folded: Iterable[range] = ()) -> None:
        self.page, self.room = page, max(8, room)
        self._exact = sum(page.widths) <= WRAPPED
        self._spans: dict[int, list[tuple[int, int]]] = {}
        heights = self._wrapped() if self._exact else self._estimated()
        hidden = set[int]()
        for rows in folded:
            heights[rows.start : rows.stop] = [1, *[0] * (len(rows) - 1)]
            hidden |= set(rows[1:])
        for row, more in extra.items():
            if row < len(heights) and row not in hidden:
                heights[row] += more
        self.tops: list[int] = [0, *accumulate(heights)]

    def _wrapped(self) -> list[int]:
        return [1 if width <= self.room else len(self.spans(row)) for row, width in enumerate(self.page.widths)]

    def _estimated(self) -> list[int]:
        # A wide character that does not fit leaves the last cell empty, hence one cell less where there are any.
        room, lines = self.room, self.page.lines
        return [
            1 if width <= room else -(-width // (room if len(lines[row]) == width else room - 1))
            for row, width in enumerate(self.page.widths)
        ]

    def spans(self, row: int) -> list[tuple[int, int]]:
        """Where the parts of the line `row` begin and end, one a row of the screen."""
        text = self.page.lines[row]
        if self.page.widths[row] <= self.room:
            return [(0, len(text))]
        if row not in self._spans:
            self._spans[row] = list(wrap(text, self.room) if self._exact else chop(text, self.room))
        return self._spans[row]

    def span(self, row: int, part: int) -> tuple[int, int]:
        """Part `part` of the line `row`; empty below its last."""
        spans = self.spans(row)
        end = len(self.page.lines[row])
        return spans[part] if part < len(spans) else (end, end)

    def row_at(self, line: int) -> int:
        """The row of the page that covers `line` of the whole layout."""
        return bisect_right(self.tops, line) - 1


Mark = tuple[int, int, str]
"""First and last character of a part (the last not included), and its style."""

_HEAD = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_QUOTE = re.compile(r"\s{0,3}>")
_RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*$")
_TABLE = re.compile(r"\s*\|.*\|\s*$")
_BEGIN = re.compile(r"\s*(?P<mark>[-*+]|\d{1,9}[.)])\s(?:(?P<box>\[[ xX]\])(?=\s))?")
_INLINE = re.compile(
    r"(?P<code>`+)(?P<in_code>.+?)(?P=code)(?!`)"
    r"|(?P<wiki>\[\[[^\[\]]+\]\])"
    r"|!?\[(?P<label>[^\[\]]*)\]\((?P<target>[^()\s]+)(?:\s[^()]*)?\)"
    r"|(?P<url>https?://[^\s<>)\]]+)"
    r"|(?P<strong>\*\*(?=\S).+?(?<=\S)\*\*|__(?=\S).+?(?<=\S)__)"
    r"|(?P<emphasis>(?<![\w*])\*(?=[^\s*]).+?(?<=[^\s*])\*(?![\w*])|(?<!\w)_(?=[^\s_]).+?(?<=[^\s_])_(?!\w))"
    r"|(?P<comment><!--.*?-->)"
    r"|(?P<tag>(?<![\w#&])#[^\W\d_][\w/-]*)"
)
_STYLES = {
    "code": "code",
    "wiki": "link",
    "label": "link",
    "url": "link",
    "strong": "strong",
    "emphasis": "emphasis",
    "comment": "muted",
    "tag": "mark",
}

_ANNOTATION = re.compile(r"<!--\s*(?P<said>(?:trigger|importance|project)\s*:.*?)\s*-->", re.IGNORECASE)

LOOKED_AT = 2000
"""Characters of a line that are looked at; the rest of a longer one is drawn plain."""


@lru_cache(maxsize=4096)
def marks(line: str, in_code: bool = False) -> tuple[Mark, ...]:
    """The parts of `line` that are drawn in a style, in order and apart from each other."""
    if in_code:
        return ((0, len(line), "code"),)
    if _HEAD.match(line):
        return ((0, len(line), "head"),)
    if _QUOTE.match(line):
        return ((0, len(line), "muted"),)
    if _RULE.match(line):
        return ((0, len(line), "rule"),)
    return tuple(_parts(line[:LOOKED_AT]))


def _parts(line: str) -> Iterator[Mark]:
    at = 0
    if begin := _BEGIN.match(line):
        yield *begin.span("mark"), "mark"
        if begin["box"]:
            yield *begin.span("box"), "good" if begin["box"] != "[ ]" else "warn"
        at = begin.end()
    table = bool(_TABLE.match(line))
    for reply in _INLINE.finditer(line, at):
        if table:
            yield from _bars(line, at, reply.start())
        kind = next(name for name in _STYLES if reply[name] is not None)
        if kind == "comment" and (text := _ANNOTATION.fullmatch(reply[0])):
            first, last = reply.start() + text.start("said"), reply.start() + text.end("said")
            yield from ((reply.start(), first, "muted"), (first, last, "chip"), (last, reply.end(), "muted"))
        else:
            yield *reply.span(), _STYLES[kind]
        at = reply.end()
    if table:
        yield from _bars(line, at, len(line))


def _bars(line: str, start: int, end: int) -> Iterator[Mark]:
    for at in range(start, end):
        if line[at] == "|":
            yield at, at + 1, "rule"


def overlaid(text: str, first: int, layers: Sequence[Sequence[Mark]]) -> Iterator[Piece]:
    """`text`, which begins at character `first` of its line, as pieces; where marks meet, those of later layers win."""
    last = first + len(text)
    cuts = {first, last}
    rest = [[mark for mark in layer if mark[0] < last and mark[1] > first] for layer in layers]
    for layer in rest:
        for start, end, _ in layer:
            cuts |= {max(start, first), min(end, last)}
    at = sorted(cuts)
    for start, end in pairwise(at):
        name = next((name for layer in reversed(rest) for begin, finish, name in layer if begin <= start < finish), "")
        yield text[start - first : end - first], name


Match = tuple[int, int, int]
"""A place that was looked for: row (from 0), first and last character, the last not included."""

MOST = 10_000
"""Matches that are marked in one note."""


def find_in(lines: Sequence[str], text: str) -> list[Match]:
    """Where `text` stands in `lines`, the first MOST; capitals matter only when `text` has one."""
    if not text:
        return []
    pattern = re.compile(re.escape(text), 0 if any(map(str.isupper, text)) else re.IGNORECASE)

    def every() -> Iterator[Match]:
        for row, line in enumerate(lines):
            for reply in pattern.finditer(line):
                yield row, *reply.span()

    return list(islice(every(), MOST))


def closest(names: Sequence[str], letters: str, limit: int = 200, *, shortest: bool = True) -> list[int]:
    """The places in `names` of those that resemble `letters`, best first; all in their order without letters.

    Names that hold the letters as one come first, then those that hold them in their order, then those that are
    merely alike. Of equal ones the `shortest` comes first, else the first.
    """
    from rapidfuzz import fuzz, process

    target = letters.casefold().replace(" ", "")
    if not target:
        return list(range(min(limit, len(names))))
    folded = [name.casefold() for name in names]
    scores = process.cdist([letters.casefold()], folded, scorer=fuzz.partial_ratio)[0]
    ranked = sorted(
        (not _holds(name, target), target not in name, -float(score), len(name) * shortest, at)
        for at, (name, score) in enumerate(zip(folded, scores, strict=True))
    )
    return [at for misses, _, score, _, at in ranked if not misses or score <= -70][:limit]


def _holds(name: str, letters: str) -> bool:
    """Whether `name` has all `letters` in this order, with anything between."""
    rest = iter(name)
    return all(letter in rest for letter in letters)


ROOTS = ("MEMORY.md", "memory.md")
"""Names of the curated memory, in the order in which an agent looks for them."""

ABSENT = "absent"
"""State of a note that an agent looks for at the start of a session and does not find."""


class Group(Struct, frozen=True):
    """Files that belong together; `key` survives a refresh."""

    key: str
    title: str
    files: tuple[FileRow, ...]


def groups(rows: Sequence[FileRow], today: date) -> list[Group]:
    """What a session starts with, then days, newest first, then evergreen notes, those from elsewhere and sessions.

    Every note is in one group.
    """
    if not rows:
        return []
    first = tuple(_first_read(rows, today))
    taken = {row.path for row in first}
    reply: dict[tuple[int, str, str], list[FileRow]] = {}
    for row in rows:
        if row.path not in taken:
            reply.setdefault(_group_of(row, today), []).append(row)
    ordered = sorted(reply.items(), key=lambda item: (item[0][0], _descending(item[0][1])))
    return [
        Group("start", "Read at session start", first),
        *(Group(key, title, tuple(sorted(files, key=by_day))) for (_, key, title), files in ordered),
    ]


def _first_read(rows: Sequence[FileRow], today: date) -> Iterator[FileRow]:
    """MEMORY.md and the logs of today and yesterday; a log that is not there is told as absent."""
    seen = {row.path: row for row in rows}
    yield from [seen[name] for name in ROOTS if name in seen][:1]
    for day in (today, today - timedelta(days=1)):
        path = f"memory/{day.isoformat()}.md"
        yield seen.get(path) or replace(
            rows[0],
            path=path,
            source="memory",
            state=ABSENT,
            detail="no log of that day",
            chunks=0,
            size=0,
            mtime=0.0,
            day=day,
            kind="",
            title="",
        )


def _group_of(row: FileRow, today: date) -> tuple[int, str, str]:
    if row.source == SOURCE:
        return 6, "sessions", "Sessions"
    if row.kind:
        return 4, f"fact-{row.kind}", f"Claude Code: {row.kind}"
    if row.path.startswith("../") or row.path.startswith("/"):
        return 5, "elsewhere", "Extra paths"
    if row.day is None:
        return 4, "evergreen", "Topics"
    if row.day > today:
        return 0, "later", "Dated later than today"
    if row.day == today:
        return 1, "today", "Today"
    if row.day == today - timedelta(days=1):
        return 2, "yesterday", "Yesterday"
    if row.day > today - timedelta(days=7):
        return 3, "9999-week", "Last seven days"
    return 3, row.day.strftime("%Y-%m"), row.day.strftime("%B %Y")


def _descending(key: str) -> tuple[int, ...]:
    return tuple(-ord(character) for character in key)


def by_day(row: FileRow) -> tuple[int, str]:
    """Newest first, then by path; notes without a day come last."""
    return (-row.day.toordinal() if row.day else 0, row.path)


def beside(rows: Sequence[FileRow], at: FileRow | None, today: date, direction: int) -> FileRow | None:
    """The dated note one older (+1) or newer (-1) than `at`; where `at` has no day, the newest whose day has come."""
    dated = sorted((row for row in rows if row.day is not None and row.source != SOURCE), key=by_day)
    if at is None or at.day is None:
        return next((row for row in dated if row.day is not None and row.day <= today), None)
    place = by_day(at)
    if direction > 0:
        return next((row for row in dated if by_day(row) > place), None)
    return next((row for row in reversed(dated) if by_day(row) < place), None)
