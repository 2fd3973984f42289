"""Repeats by their cause: copied files, copied blocks, and what is left said twice.

Logs say again what was true again, and notes with the same headings are records of one kind, so most equal lines are no
repeats. They are counted with the reason, and nothing is proposed about them. Headings, numbers, negations and names
are compared as they are: no likeness counts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations, takewhile

from msgspec import Struct

from memory_tui.inbox import DatedNote, lines_of, plain
from memory_tui.notes.changes import HEADING, ITEM
from memory_tui.openclaw.dreaming import dream_blocks
from memory_tui.workspace.notes import date_of

_MOST_NOTES, _MOST_PLACES = 12, 20
"""What stands in more notes or places is a template; a note that repeats itself 700 times has 245,000 pairs."""
_COPY_SHARE, _COPY_LINES = 0.75, 5
_FORM = 3
"""Headings that tell of which kind a note is."""
_BLOCK = 4
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


Lines = tuple[str, int, int]
"""Lines of a note: its path, the first of them and the last."""


class Repeat(Struct, frozen=True):
    """The `lines` of a note that those of its `twin` say, too; `family` joins what has one cause."""

    family: str
    lines: Lines
    twin: Lines


class _Line(Struct, frozen=True, eq=False, gc=False):
    """A line of the note with the index `note`; lines with one `key` are equal, `heading` is what it stands below."""

    note: int
    number: int
    text: str
    key: str
    heading: str
    counts: bool
    """Whether a finding may begin here: not in code, no heading, not of the host."""

    @property
    def is_long(self) -> bool:
        """Return whether it hardly repeats by chance."""
        return self.counts and len(self.key) >= 25


def is_dated(note: DatedNote) -> bool:
    """Tell whether a note is of a day, a week or a month, or a log: by its path, front matter, first words, headings.

    MEMORY.md lasts, whatever days stand in it.
    """
    if note.path.endswith("MEMORY.md"):
        return False
    if note.day is not None or date_of(note.path, note.text) or _LOG.search(note.path):
        return True
    # The first heading is the title of the note.
    headings = [line for line in note.text.split("\n") if HEADING.match(line)][1:]
    entries = sum(_ENTRY.match(heading) is not None for heading in headings)
    if entries >= max(_FORM, len(headings) / 3):
        return True
    beginning = note.text.removeprefix("\ufeff")[:160].split("\n")
    above_list = takewhile(lambda line: not ITEM.match(line), beginning)
    return _DAY_AT_HEAD.search("\n".join(above_list)) is not None


class Repeats:
    """What repeats in notes: `by_kind` with a proposal, `quiet` by reason, with a note's path and the line.

    A note is meant by its index in `notes`.
    """

    def __init__(self, notes: Sequence[DatedNote], check: Callable[[], None]) -> None:
        self.notes = notes
        self.by_kind: dict[str, list[Repeat]] = defaultdict(list)
        self.quiet: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._check = check
        self._dated = [is_dated(note) for note in notes]
        """Whether each note is a log."""
        turns = (sum(_ROLE.match(line) is not None for line in note.text.split("\n")) for note in notes)
        # Notes with three lines or more that somebody is named as the speaker of.
        self._talks = {note for note, count in enumerate(turns) if count >= 3}
        self._lines: list[list[_Line]] = []
        """The lines of each note; none of one that is a copy, or in the folder of a program."""
        for index, note in enumerate(notes):
            check()
            is_vendor = _VENDOR.search(note.path) is not None
            self._lines.append([] if is_vendor else list(_lines_of(index, note)))
            if is_vendor:
                self.quiet["notes in the folder of a program"].append((note.path, 1))
        self._headings = [{line.heading for line in lines[1:] if line.key.startswith("#")} for lines in self._lines]
        """The headings of each note but its title."""
        self._settled: set[_Line] = set()
        """Lines about which all is said: no other finding begins there."""
        self._copied_files()
        self._copied_blocks()
        self._beats()
        self._equal_lines()

    def _rank(self, note: int) -> tuple[bool, bool, int, int, str]:
        """Return the key by which notes are sorted: of equal texts the one in the first note stays.

        A note outside of archives comes first, a lasting one before logs, the newest of those, short paths first.
        """
        path, day = self.notes[note].path, self.notes[note].day
        is_archived = _ARCHIVE.search(path) is not None
        return is_archived, day is not None, -day.toordinal() if day else 0, len(path), path

    def _is_form(self, left: int, right: int) -> bool:
        """Tell whether two notes are records of one kind: half of the headings of one are those of the other, too."""
        shorter, longer = sorted((self._headings[left], self._headings[right]), key=len)
        return left != right and len(shorter & longer) >= max(_FORM, len(shorter) / 2)

    def _equal(self, lines: Iterable[_Line], key: Callable[[_Line], str]) -> list[list[_Line]]:
        """Return those of `lines` that have the same `key`, two or more, together. Raises Cancelled."""
        by_key: dict[str, list[_Line]] = defaultdict(list)
        for line in lines:
            by_key[key(line)].append(line)
        self._check()
        return [equals for equals in by_key.values() if len(equals) > 1]

    def _open_lines(self) -> Iterator[_Line]:
        """Yield the lines about which nothing is said yet."""
        return (line for lines in self._lines for line in lines if line not in self._settled)

    # --- copied files ----------------------------------------------------------------------------------------------

    def _copied_files(self) -> None:
        """Propose to remove the copies of a file; a piece of it, or a copy of another day, is kept silent."""
        keys = [{_CLOCK.sub("0:00", line.key) for line in lines if line.is_long} for lines in self._lines]
        pairs = _sharing(keys)
        # Folders that differ by a number are one: snapshots of the same notes.
        folders = [re.sub(r"\d+", "0", note.path.rpartition("/")[0]) for note in self.notes]
        neighbours: dict[str, set[str]] = defaultdict(set)
        for left, right in pairs:
            neighbours[folders[left]].add(folders[right])
            neighbours[folders[right]].add(folders[left])
        # A folder that holds what lies in three others gathers their notes, so they stay and its own go.
        gathers = {folder for folder, others in neighbours.items() if len(others - {folder}) >= 3}

        def rank(note: int) -> tuple[object, ...]:
            """Return the key by which copies are sorted: the original comes first."""
            return self._rank(note)[0], folders[note] in gathers, self._rank(note)

        for family in _families(pairs):
            original, *copies = sorted(family, key=rank)
            name = folders[copies[-1]]  # Families whose last copy lies in one folder have one cause.
            lines, day = self._lines[original], self.notes[original].day
            for copy in copies:
                is_whole = {line.key for line in self._lines[copy]} <= {line.key for line in lines}
                days = {self.notes[copy].day, day} - {None}
                # A piece of a longer note has a use of its own, and so has the report of another day.
                if is_whole and len(days) < 2 and 2 * len(keys[copy]) >= len(keys[original]):
                    place, twin = self._span(self._lines[copy], first=1), self._span(lines, first=1)
                    self.by_kind["copied file"].append(Repeat(name, place, twin))
                else:
                    self.quiet["notes that hold most of another, and more"].append((self.notes[copy].path, 1))
                # No other search finds something in a copy.
                self._lines[copy] = []

    def _span(self, lines: Sequence[_Line], first: int = 0) -> Lines:
        """Return where neighbouring lines of one note stand, or from its line `first` to the last of them."""
        return self.notes[lines[0].note].path, first or lines[0].number, lines[-1].number

    # --- copied blocks ---------------------------------------------------------------------------------------------

    def _copied_blocks(self) -> None:
        """Propose the longest runs of equal lines first; a line is in one proposal."""
        blocks = [pair for pair in self._runs() if self._is_block(*pair)]
        families = _families((left[0].note, right[0].note) for left, right in blocks)
        # Notes that share blocks are one cause, which is called like the first of them.
        names = {note: self.notes[min(family)].path for family in families for note in family}
        for pair in sorted(blocks, key=lambda pair: len(pair[0]), reverse=True):
            twin, copy = sorted(pair, key=lambda lines: self._rank(lines[0].note))
            if self._settled.isdisjoint(copy + twin):
                self._settled.update(copy)
                name = names[copy[0].note]
                self.by_kind["copied block"].append(Repeat(name, self._span(copy), self._span(twin)))

    def _runs(self) -> Iterator[tuple[list[_Line], list[_Line]]]:
        """Yield the runs of equal lines, as they are in the one note and in the other, or further down in the same.

        A seed is _BLOCK lines that are equal, half of them long; seeds that begin on neighbouring lines of both notes
        are one run. A run is yielded with its lines in both notes, which may overlap in the same note.
        """
        seeds: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for note, lines in enumerate(self._lines):
            for start in range(len(lines) - _BLOCK + 1):
                block = lines[start : start + _BLOCK]
                if sum(line.is_long for line in block) >= _BLOCK // 2:
                    seeds[tuple(line.key for line in block)].append((note, start))
        # Equal lines of one run lie equally far apart in their two notes.
        starts_by: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for places in seeds.values():
            if 1 < len(places) <= _MOST_PLACES and len({note for note, _ in places}) <= _MOST_NOTES:
                for (left, left_start), (right, right_start) in combinations(places, 2):
                    apart = right_start - left_start
                    if left != right or apart >= _BLOCK:
                        starts_by[left, right, apart].append(left_start)
        for (left, right, apart), starts in starts_by.items():
            # `first` and `last` are the seeds at the ends of a run. -1 follows on no seed, so it ends the last run.
            starts.sort()
            first = last = starts[0]
            for start in (*starts[1:], -1):
                if start != last + 1:
                    end = last + _BLOCK
                    yield self._lines[left][first:end], self._lines[right][first + apart : end + apart]
                    first = start
                last = start

    def _is_block(self, left: Sequence[_Line], right: Sequence[_Line]) -> bool:
        """Tell whether two runs of equal lines are a block and its copy; runs that overlap are not."""
        notes = left[0].note, right[0].note
        if notes[0] == notes[1] and left[-1].number >= right[0].number:
            return False
        # Logs say things again, and what an archive holds is to stay as it was.
        if any(self._dated[note] or _ARCHIVE.search(self.notes[note].path) for note in notes):
            return False
        return len({line.key for line in left if line.is_long}) >= _BLOCK and not self._is_form(*notes)

    # --- beats of logs ---------------------------------------------------------------------------------------------

    def _beats(self) -> None:
        """Set aside what logs say three times or more, but for the time and the number."""
        long = (line for line in self._open_lines() if line.is_long)
        for lines in self._equal(long, lambda line: _TIME.sub("0", line.key)):
            dated = [line for line in lines if self._dated[line.note]]
            if len(lines) >= 3 and len(dated) >= 0.6 * len(lines):
                self._settled.update(dated)
                self._silence("lines of a log that differ in time or number alone, as a heartbeat's do", dated)

    # --- what is left ----------------------------------------------------------------------------------------------

    def _equal_lines(self) -> None:
        """Propose that of equal lines one stays, or set them aside with the reason."""
        fields = self._fields()
        bodies = (line for line in self._open_lines() if not line.key.startswith("#"))
        for lines in self._equal(bodies, lambda line: line.key):
            if reason := self._reason(lines, fields):
                self._silence(reason, lines)
            else:
                self._propose(lines)

    def _reason(self, lines: Sequence[_Line], fields: frozenset[tuple[str, str]]) -> str:
        """Tell why nothing is proposed about equal lines; empty where something may be.

        `fields` are the labels of records, each with its folder.
        """
        line, notes = lines[0], {line.note for line in lines}
        if not all(line.counts for line in lines):
            if _HOST_LINE.match(line.text):
                return "lines that a host or a hook wrote"
            return "links, labels, brackets and quotations" if _ASIDE.match(line.text) else ""
        if line.text.strip().strip("-* ").endswith((":", ":**")):
            return "links, labels, brackets and quotations"
        if self._field(line) in fields:
            return "fields of records"
        if notes <= self._talks:
            return "lines of a talk"
        dated = {note for note in notes if self._dated[note]}
        if dated:
            return "lines that logs say again" if dated == notes else "lines that a log and a lasting note say"
        if any(self._is_form(*pair) for pair in combinations(notes, 2)):
            return "lines of notes with the same headings"
        most_below_heading = max(Counter(line.heading for line in lines).values())
        return "lines of a template" if len(notes) >= 3 and most_below_heading >= 3 else ""

    def _fields(self) -> frozenset[tuple[str, str]]:
        """Return the labels that three notes of a folder have, with the folder."""
        holders: dict[tuple[str, str], set[int]] = defaultdict(set)
        for line in self._open_lines():
            if field := self._field(line):
                holders[field].add(line.note)
        return frozenset(field for field, notes in holders.items() if len(notes) >= 3)

    def _field(self, line: _Line) -> tuple[str, str] | None:
        """Return the folder of a line's note and the label before its colon; None for a line without one."""
        match = _FIELD.match(line.key)
        return (self.notes[line.note].path.rpartition("/")[0], match[1].strip()) if match else None

    def _propose(self, lines: Sequence[_Line]) -> None:
        """Propose that of equal lines one stays, or set them aside."""
        # Fewer than ten words repeat by chance.
        if not lines[0].counts or _words(lines[0].key) < 10 or len(lines) > _MOST_PLACES:
            self._silence("short lines", lines)
            return
        ranked = sorted(lines, key=lambda line: (self._rank(line.note), line.number))
        twins: dict[_Line, _Line] = {}
        for twin, line in combinations(ranked, 2):
            if self._is_twin(line, twin):
                # The best ranked comes first, so that of several twins it is the one that stays.
                twins.setdefault(line, twin)
        apart = (line for line in lines if line not in twins and line not in twins.values())
        self._silence("lines that two sections or two notes say", apart)
        for line, twin in twins.items():
            name = self.notes[twin.note].path
            self.by_kind["said twice"].append(Repeat(name, self._span([line]), self._span([twin])))

    def _is_twin(self, line: _Line, twin: _Line) -> bool:
        """Tell whether MEMORY.md, which sessions read anyway, or the same section says a line already.

        Other notes that share lines are versions, extracts and records, and a heading gives its lines another sense.
        So does the line above to what is indented.
        """
        if line.note != twin.note:
            return self.notes[twin.note].path == "MEMORY.md"
        return line.heading == twin.heading and not line.text.startswith((" ", "\t", "|"))

    def _silence(self, reason: str, lines: Iterable[_Line]) -> None:
        """Count lines as repeats about which nothing is proposed, with the reason."""
        for line in lines:
            self.quiet[reason].append((self.notes[line.note].path, line.number))


def _words(key: str) -> int:
    """Count the words of a line, without the addresses in it."""
    return len(_WORD.findall(re.sub(r"https?://\S+", " ", key)))


def _lines_of(index: int, note: DatedNote) -> Iterator[_Line]:
    """Yield the lines of the note with that `index` that are not blank and not front matter."""
    lines = note.text.removeprefix("\ufeff").split("\n")
    dreams = {number for block in dream_blocks(note.text) for number in range(block.first, block.last + 1)}
    # The number of the line that closes the front matter, 0 where there is none.
    front = lines.index("---", 1) + 1 if lines[0].strip() == "---" and "---" in lines[1:40] else 0
    heading = ""
    for number, text, fence in lines_of(note):
        if number <= front or not text.strip():
            continue
        if not fence and HEADING.match(text):
            heading = " ".join(text.lower().split())
            yield _Line(index, number, text, key=heading, heading=heading, counts=False)
        else:
            # With a sign that no other key has, as code equals code alone.
            key = f"`{text.strip()}" if fence else plain(text)
            is_aside = fence or number in dreams or _HOST_LINE.match(text) or _ASIDE.match(text)
            yield _Line(index, number, text, key=key, heading=heading, counts=not is_aside)


def _sharing(keys: Sequence[Collection[str]]) -> list[tuple[int, int]]:
    """Return the pairs of notes, of which `keys` has the long lines, that share most lines of the shorter one."""
    holders: dict[str, list[int]] = defaultdict(list)
    for note, lines in enumerate(keys):
        for line in lines:
            holders[line].append(note)
    few = (notes for notes in holders.values() if 1 < len(notes) <= _MOST_NOTES)
    shared = Counter(pair for notes in few for pair in combinations(notes, 2))

    def least(left: int, right: int) -> float:
        """Return how many lines two notes have to share."""
        return max(_COPY_LINES, _COPY_SHARE * min(len(keys[left]), len(keys[right])))

    return [pair for pair, count in shared.items() if count >= least(*pair)]


def _families(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Return the sets of notes that `pairs` connect, directly or through others."""
    family_of: dict[int, set[int]] = {}
    for left, right in pairs:
        families = family_of.setdefault(left, {left}), family_of.setdefault(right, {right})
        # The notes of a family have one set in common: the larger one takes the others in.
        smaller, larger = sorted(families, key=len)
        if smaller is not larger:
            larger |= smaller
            family_of.update(dict.fromkeys(smaller, larger))
    # A set cannot be a key, so that each is taken once by its identity.
    return list({id(family): family for family in family_of.values()}.values())
