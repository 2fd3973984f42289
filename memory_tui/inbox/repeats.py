"""Repeats by their cause: copied files, copied blocks, and what is left said twice.

Logs say again what was true again, and notes with the same headings are records of one kind, so most equal lines are no
repeats. They are counted with the reason, and nothing is proposed about them. Headings, numbers, negations and names
are compared as they are: no likeness counts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, takewhile

from msgspec import Struct

from memory_tui.inbox.entries import DatedNote, lines_of, plain
from memory_tui.notes.changes import HEADING, ITEM
from memory_tui.openclaw.dreaming import dream_blocks
from memory_tui.workspace.notes import date_of

_LONG = 25
"""Characters of a line that hardly repeats by chance."""
_MOST_NOTES, _MOST_PLACES = 12, 20
"""What stands in more notes or places is a template; a note that repeats itself 700 times has 245,000 pairs."""
_COPY_SHARE, _COPY_LINES = 0.75, 5
_FORM = 3
"""Headings that tell of which kind a note is."""
_BLOCK = 4
_FEWEST_WORDS = 10
_VENDOR = re.compile(
    r"(?:^|/)(?:node_modules|vendor|fixtures|skills|scripts|[Tt]emplates|site-packages|\.venv|\.trash|\.recycle|\.stversions"
    r"|\.dreams|logseq/(?:bak|version-files)|dreaming/(?:light|rem|deep))/"
)
_ARCHIVE = re.compile(
    r"(?:^|[/_. -])(?:archiv\w*|backups?|bak|old|cop(?:y|ies)|conflict\w*|trash)(?=$|[/_. (-])", re.IGNORECASE
)
_CLOCK = re.compile(r"\d\d?:\d{2}(?::\d{2})?")
_TIME = re.compile(r"\d(?:\d?:\d{2}(?::\d{2})?|\d{3}-\d\d-\d\d|(?<![\d.]\d)\d?\.\d{1,2}\.(?:\d{4})?(?!\d))")
"""It begins with a digit, so that a search passes all else at once."""
_HOST_LINE = re.compile(
    r"\W*(?:session (?:key|id|source)|user:|assistant:|system:|heartbeat|read heartbeat|\[(?:telegram|whatsapp|discord"
    r"|signal|slack|message_id|imessage)|</?[a-z!]|(?:created|updated|modified|time|timestamp|mode|date|source|status|confidence)\W*:"
    r"|candidate:|staged)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\W*$|\s*>|[\s*_+\d.)-]*(?:\[\[|\[[^\]]*\]\(|https?://\S+\s*$|\[[^\]]*\]\W*$|`[^`\s]+`\W*$)")
"""What has no word, quotations, and what begins with a link or is a name alone: many notes may hold it."""
_FIELD = re.compile(r"\W*([^\W\d][^:：|]{0,40})[:：]")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2}|[^\W\d_]{2,}")
_ROLE = re.compile(r"\W{0,4}(?:user|assistant|human)\W{0,2}: ", re.IGNORECASE)
_DAY_AT_HEAD = re.compile(r"(?<!\d)(?:19|20)\d\d-\d\d-\d\d(?!\d|\.md)")
_LOG = re.compile(r"(?:^|[/_. -])(?:change|work)?(?:log|journal|diary|heartbeat)s?\b[^/]*$", re.IGNORECASE)
_ENTRY = re.compile(r"#{1,6} .*?(?:(?<!\d)(?:19|20)\d\d[-/.年]\d|(?<!\d)\d{1,2}:\d\d(?!\d))")
"""A heading with a day or a time, as logs have them."""

DAYS = "lines that logs say again"
PROMOTED = "lines that a log and a lasting note say"
FIELDS = "fields of records"
TEMPLATE = "lines of a template"
HOST = "lines that a host or a hook wrote"
MARKS = "links, labels, brackets and quotations"
SHORT = "short lines"
TALK = "lines of a talk"
BEATS = "lines of a log that differ in time or number alone, as a heartbeat's do"
FORMS = "lines of notes with the same headings"
APART = "lines that two sections or two notes say"
PARTS = "notes that hold most of another, and more"
VENDOR = "notes in the folder of a program"


class Repeat(Struct, frozen=True):
    """Lines of the note `path` that lines of `twin` say, too; `family` joins what has one cause."""

    kind: str
    family: str
    path: str
    first: int
    last: int
    twin: str
    twin_first: int
    twin_last: int


class _Row(Struct, frozen=True, eq=False, gc=False):
    note: int
    line: int
    text: str
    key: str
    heading: str
    counts: bool
    """Whether a finding may begin here: not in code, no heading, not of the host."""

    @property
    def is_long(self) -> bool:
        return self.counts and len(self.key) >= _LONG


def is_dated(note: DatedNote) -> bool:
    """Tell whether a note is of a day, a week or a month, or a log: by its path, front matter, first words, headings.

    MEMORY.md lasts, whatever days stand in it.
    """
    if note.path.endswith("MEMORY.md"):
        return False
    days = [_ENTRY.match(line) is not None for line in note.text.split("\n") if HEADING.match(line)][1:]
    head = note.text.removeprefix("\ufeff")[:160].split("\n")
    return (
        note.day is not None
        or date_of(note.path, note.text) != ""
        or _LOG.search(note.path) is not None
        or sum(days) >= max(_FORM, len(days) / 3)
        or _DAY_AT_HEAD.search("\n".join(takewhile(lambda line: not ITEM.match(line), head))) is not None
    )


class Repeats:
    """What repeats in notes: `found` with a proposal, and `quiet` by reason, the note's number and the line."""

    def __init__(self, notes: Sequence[DatedNote], check: Callable[[], None]) -> None:
        self.notes = notes
        self.found: list[Repeat] = []
        self.quiet: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._check = check
        self._dated = [is_dated(note) for note in notes]
        self._talks = {
            at for at, note in enumerate(notes) if sum(map(bool, map(_ROLE.match, note.text.split("\n")))) >= 3
        }
        self._rows: list[list[_Row]] = []
        for at, note in enumerate(notes):
            check()
            vendor = _VENDOR.search(note.path) is not None
            self._rows.append([] if vendor else list(_rows(at, note)))
            if vendor:
                self.quiet[VENDOR].append((note.path, 1))
        self._headings = [{row.heading for row in rows[1:] if row.key.startswith("#")} for rows in self._rows]
        self._gone: set[_Row] = set()
        """Rows that have a finding, so that no other begins there."""
        self._files()
        self._blocks()
        self._beats()
        self._lines()

    def _rank(self, note: int) -> tuple[bool, bool, int, int, str]:
        """Sort key: what lies outside archives stays, a lasting note before logs, the newest of those."""
        path, day = self.notes[note].path, self.notes[note].day
        return _ARCHIVE.search(path) is not None, day is not None, -day.toordinal() if day else 0, len(path), path

    def _is_form(self, left: int, right: int) -> bool:
        """Tell whether two notes are records of one kind: half of the headings of one are those of the other, too."""
        mine, theirs = self._headings[left], self._headings[right]
        return left != right and len(mine & theirs) >= max(_FORM, min(len(mine), len(theirs)) / 2)

    def _places(self, rows: Iterable[_Row], key: Callable[[_Row], str]) -> Iterator[tuple[str, list[_Row]]]:
        by_key: dict[str, list[_Row]] = defaultdict(list)
        for row in rows:
            by_key[key(row)].append(row)
        self._check()
        yield from ((name, places) for name, places in by_key.items() if len(places) > 1)

    def _all(self) -> Iterator[_Row]:
        return (row for rows in self._rows for row in rows if row not in self._gone)

    # --- copied files ----------------------------------------------------------------------------------------------

    def _files(self) -> None:
        """Propose the copies of a file; a piece of it, or a copy of another day, is set aside."""
        keys = [{_CLOCK.sub("0:00", row.key) for row in rows if row.is_long} for rows in self._rows]
        holders: dict[str, list[int]] = defaultdict(list)
        for at, lines in enumerate(keys):
            for line in lines:
                holders[line].append(at)
        shared = Counter(
            pair for held in holders.values() if 1 < len(held) <= _MOST_NOTES for pair in combinations(held, 2)
        )
        edges = [
            (left, right)
            for (left, right), count in shared.items()
            if count >= max(_COPY_LINES, _COPY_SHARE * min(len(keys[left]), len(keys[right])))
        ]
        # Folders that differ by a number are one: snapshots of the same notes.
        folders = [re.sub(r"\d+", "0", note.path.rpartition("/")[0]) for note in self.notes]
        twins = {(folders[at], folders[to]) for edge in edges for at, to in (edge, edge[::-1])}
        # A folder that holds what lies in three others gathers their notes, so they stay and its own go.
        gathers = {folder for folder, count in Counter(at for at, to in twins if at != to).items() if count >= 3}
        for members in _families(edges):
            keep, *copies = sorted(members, key=lambda at: (self._rank(at)[0], folders[at] in gathers, self._rank(at)))
            name = folders[copies[-1]]  # Families whose last copy lies in one folder have one cause.
            for at in copies:
                path, twin, last = self.notes[at].path, self.notes[keep].path, self._rows[keep][-1].line
                whole = {row.key for row in self._rows[at]} <= {row.key for row in self._rows[keep]}
                days = {self.notes[note].day for note in (at, keep)} - {None}
                # A piece of a longer note has a use of its own, and so has the report of another day.
                if whole and len(days) < 2 and 2 * len(keys[at]) >= len(keys[keep]):
                    self.found.append(Repeat("copied file", name, path, 1, self._rows[at][-1].line, twin, 1, last))
                else:
                    self.quiet[PARTS].append((path, 1))
                self._rows[at] = []

    # --- copied blocks ---------------------------------------------------------------------------------------------

    def _blocks(self) -> None:
        """Propose the longest runs of equal lines first; a line is in one proposal."""
        runs = [run for run in self._runs() if self._is_block(*run)]
        family = {at: members for members in _families((left, right) for left, right, *_ in runs) for at in members}
        covered: set[tuple[int, int]] = set()
        for left, right, start, other, length in sorted(runs, key=lambda run: -run[4]):
            kept, lost = ((left, start), (right, other))
            if left != right and self._rank(right) < self._rank(left):
                kept, lost = lost, kept
            here, there = ([*self._rows[note][at : at + length]] for note, at in (lost, kept))
            if any((row.note, row.line) in covered for row in (*here, *there)):
                continue
            covered.update((row.note, row.line) for row in here)
            self._gone.update(here)
            names = self.notes[lost[0]].path, here[0].line, here[-1].line
            twins = self.notes[kept[0]].path, there[0].line, there[-1].line
            members = family.get(left, {left})
            self.found.append(Repeat("copied block", self.notes[min(members)].path, *names, *twins))

    def _runs(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield two notes, where in each a run of equal lines starts, and how long it is."""
        seeds: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for note, rows in enumerate(self._rows):
            keys, long = [row.key for row in rows], [row.is_long for row in rows]
            for at in range(len(rows) - _BLOCK + 1):
                if sum(long[at : at + _BLOCK]) >= _BLOCK // 2:
                    seeds[tuple(keys[at : at + _BLOCK])].append((note, at))
        diagonals: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for places in seeds.values():
            if 1 < len(places) <= _MOST_PLACES and len({note for note, _ in places}) <= _MOST_NOTES:
                for (left, start), (right, other) in combinations(places, 2):
                    if left != right or other - start >= _BLOCK:
                        diagonals[left, right, other - start].append(start)
        for (left, right, apart), starts in diagonals.items():
            starts.sort()
            begun = before = starts[0]
            for at in (*starts[1:], -1):
                if at != before + 1:
                    yield left, right, begun, begun + apart, before - begun + _BLOCK
                    begun = at
                before = at

    def _is_block(self, left: int, right: int, start: int, other: int, length: int) -> bool:
        lines = len({row.key for row in self._rows[left][start : start + length] if row.is_long})
        return (
            (left != right or other - start >= length)
            # What an archive holds is to stay as it was.
            and not (self._dated[left] or self._dated[right])
            and not any(_ARCHIVE.search(self.notes[at].path) for at in (left, right))
            and not self._is_form(left, right)
            and lines >= _BLOCK
        )

    # --- beats of logs ---------------------------------------------------------------------------------------------

    def _beats(self) -> None:
        """Set aside what logs say three times or more, but for the time and the number."""
        for _, rows in self._places((row for row in self._all() if row.is_long), lambda row: _TIME.sub("0", row.key)):
            dated = [row for row in rows if self._dated[row.note]]
            if len(rows) >= 3 and len(dated) >= 0.6 * len(rows):
                self._gone.update(dated)
                self._silence(BEATS, dated)

    # --- what is left ----------------------------------------------------------------------------------------------

    def _lines(self) -> None:
        fields = self._fields()
        every = (row for rows in self._rows for row in rows if row not in self._gone and not row.key.startswith("#"))
        for _, rows in self._places(every, lambda row: row.key):
            if reason := self._reason(rows, fields):
                self._silence(reason, rows)
            else:
                self._twice(rows)

    def _reason(self, rows: Sequence[_Row], fields: frozenset[tuple[str, str]]) -> str:
        """Tell why nothing is proposed about equal lines; empty where something may be."""
        row, notes = rows[0], {row.note for row in rows}
        dated = sum(self._dated[note] for note in notes)
        headings = Counter(row.heading for row in rows)
        label = _FIELD.match(row.key)
        folder = self.notes[row.note].path.rpartition("/")[0]
        if not all(row.counts for row in rows):
            return HOST if _HOST_LINE.match(row.text) else MARKS if _ASIDE.match(row.text) else ""
        if row.text.strip().strip("-* ").endswith((":", ":**")):
            return MARKS
        if label and (folder, label[1].strip()) in fields:
            return FIELDS
        if notes <= self._talks:
            return TALK
        if dated == len(notes):
            return DAYS
        if dated and dated < len(notes):
            return PROMOTED
        if any(self._is_form(*pair) for pair in combinations(notes, 2)):
            return FORMS
        return TEMPLATE if len(notes) >= 3 and headings.most_common(1)[0][1] >= 3 else ""

    def _fields(self) -> frozenset[tuple[str, str]]:
        """Return the labels that three notes of a folder have, by folder."""
        holders: dict[tuple[str, str], set[int]] = defaultdict(set)
        for row in self._all():
            if label := _FIELD.match(row.key):
                holders[self.notes[row.note].path.rpartition("/")[0], label[1].strip()].add(row.note)
        return frozenset(name for name, notes in holders.items() if len(notes) >= 3)

    def _twice(self, rows: Sequence[_Row]) -> None:
        """Propose that of equal lines one stays, or set them aside."""
        if not rows[0].counts or _words(rows[0].key) < _FEWEST_WORDS or len(rows) > _MOST_PLACES:
            self._silence(SHORT, rows)
            return
        ranked = sorted(rows, key=lambda row: (self._rank(row.note), row.line))
        pairs = [(row, twin) for twin, row in combinations(ranked, 2) if self._is_twin(row, twin)]
        # Of several twins the first one stays.
        twins = dict(reversed(pairs))
        self._silence(APART, (row for row in rows if row not in twins and row not in twins.values()))
        for row, twin in twins.items():
            place, name = self.notes[row.note].path, self.notes[twin.note].path
            self.found.append(Repeat("said twice", name, place, row.line, row.line, name, twin.line, twin.line))

    def _is_twin(self, row: _Row, twin: _Row) -> bool:
        """Tell whether MEMORY.md, which sessions read anyway, or the same section says a line already.

        Other notes that share lines are versions, extracts and records, and a heading gives its lines another sense.
        So does the line above to what is indented.
        """
        if row.note != twin.note:
            return self.notes[twin.note].path == "MEMORY.md"
        return row.heading == twin.heading and row.text[0] not in " \t|"

    def _silence(self, reason: str, rows: Iterable[_Row]) -> None:
        for row in rows:
            self.quiet[reason].append((self.notes[row.note].path, row.line))


def _words(key: str) -> int:
    return len(_WORD.findall(re.sub(r"https?://\S+", " ", key)))


def _rows(at: int, note: DatedNote) -> Iterator[_Row]:
    """Yield the lines of a note that are not blank and not front matter."""
    lines = note.text.removeprefix("\ufeff").split("\n")
    dreams = {line for block in dream_blocks(note.text) for line in range(block.first, block.last + 1)}
    front = lines.index("---", 1) + 1 if lines[0].strip() == "---" and "---" in lines[1:40] else 0
    heading = ""
    for number, text, fence in lines_of(note):
        if number <= front or not text.strip():
            continue
        if not fence and HEADING.match(text):
            heading = " ".join(text.lower().split())
            yield _Row(at, number, text, key=heading, heading=heading, counts=False)
        else:
            counts = not fence and number not in dreams and not (_HOST_LINE.match(text) or _ASIDE.match(text))
            yield _Row(at, number, text, f"`{text.strip()}" if fence else plain(text), heading, counts)


def _families(edges: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Join what edges connect."""
    family: dict[int, set[int]] = {}
    for left, right in edges:
        fewer, more = sorted((family.setdefault(left, {left}), family.setdefault(right, {right})), key=len)
        if fewer is not more:
            more |= fewer
            family.update(dict.fromkeys(fewer, more))
    return list({id(members): members for members in family.values()}.values())
