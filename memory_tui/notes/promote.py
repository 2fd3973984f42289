"""Promoting plans how lines of a daily log come into MEMORY.md, below a heading, copied or moved."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace
from rapidfuzz import fuzz, process, utils

from memory_tui.errors import EditRefused
from memory_tui.formatting import plural
from memory_tui.hosts import claude_memory
from memory_tui.notes.changes import HEADING, ITEM, Change, FileChange, Lines, Section, sections
from memory_tui.tokens import function_words, segmented, stop_words, tokens

CATCH_ALL = "Notes"
"""The heading that is made when nothing fits."""
ENOUGH = 0.12
"""A section that shares less of a text's weight than this does not fit it."""
_TITLE_COUNTS = 3
_LEAD_COUNTS = 2
_LEAD = 3
"""Words with which an item begins."""
_NAMED = 75.0
"""rapidfuzz's score from which a typed name means a heading."""
_LOOSE = re.compile(r"(notes?|misc\w*|other|general|inbox|various|sonstiges|divers)\W*", re.IGNORECASE)


_ROW, _RULER = re.compile(r"\s*\|"), re.compile(r"\s*\|[-|: \t]*-[-|: \t]*$")


class RankedSection(Struct, frozen=True):
    """A section and how much of the text's weight of words it shares, 0 to 1."""

    section: Section
    score: float


def ranked(texts: Sequence[str], block: str, heading: str = "") -> list[RankedSection]:
    """The sections of a note that `block` could go below, the best first, equal ones in the order of the note.

    A word counts by how few sections have it (inverse document frequency), once a section, more in a title, and still
    more there when it is of the `heading` that the block stood below; "Morning" in a text is no such sign. A word
    with which both the block and an item of the section begin says what they are about.
    """
    candidates = [section for section in sections(texts) if section.line]
    # A note's own title holds everything, so it says nothing about a place in it.
    if len(candidates) > 1 and candidates[0].level == 1 and sum(s.level == 1 for s in candidates) == 1:
        candidates = candidates[1:]
    words = [_words((section.title,)) for section in candidates]
    bodies = [_words(texts[section.line : section.last]) for section in candidates]
    spread = Counter(word for title_words, body in zip(words, bodies, strict=True) for word in title_words | body)
    above = _words((heading,))
    query = _words((block,)) | above
    weight = {word: math.log(1 + len(candidates) / (1 + spread[word])) for word in query}
    total = sum(weight.values()) or 1.0

    begins = _leads((block,))
    leads = [begins & _leads(texts[section.line : section.last]) for section in candidates]

    def counts(word: str, title: set[str], lead: set[str]) -> int:
        return (
            (_TITLE_COUNTS if word in title else 1)
            * (_TITLE_COUNTS if word in title & above else 1)
            * (_LEAD_COUNTS if word in lead else 1)
        )

    scores = [
        sum(weight[word] * counts(word, title_words, lead) for word in query & (title_words | body)) / total
        for title_words, body, lead in zip(words, bodies, leads, strict=True)
    ]
    choices = [RankedSection(section, min(1.0, score)) for section, score in zip(candidates, scores, strict=True)]
    return sorted(choices, key=lambda choice: -choice.score)


def best(texts: Sequence[str], block: str, heading: str = "") -> Section | None:
    """The section that fits `block`, else one for odds and ends; None when the note has neither."""
    choices = ranked(texts, block, heading)
    if choices and choices[0].score >= ENOUGH:
        return choices[0].section
    return next(
        (c.section for c in sorted(choices, key=lambda c: c.section.line) if _LOOSE.fullmatch(c.section.title)), None
    )


def named(texts: Sequence[str], title: str) -> Section | None:
    """The section that somebody means by `title`, by fuzzy match; None when no heading is like it."""

    candidates = [section for section in sections(texts) if section.line]
    same = next((section for section in candidates if section.title.casefold() == title.strip().casefold()), None)
    if same is not None:
        return same
    hit = process.extractOne(
        title,
        [section.title for section in candidates],
        scorer=fuzz.WRatio,
        processor=utils.default_process,
        score_cutoff=_NAMED,
    )
    return candidates[hit[2]] if hit else None


def _leads(texts: Iterable[str]) -> set[str]:
    """The stems of the words with which list items begin."""
    items = (line[mark.end() :] for text in texts for line in text.split("\n") if (mark := ITEM.match(line)))
    return _words(" ".join(re.findall(r"\w+", item)[:_LEAD]) for item in items)


def _words(texts: Iterable[str]) -> set[str]:
    """The stems of texts, Chinese, Japanese and Korean as bigrams, without function words, letters and numbers."""
    text = segmented("\n".join(texts)).encode("utf-8", "replace").decode()
    stops = function_words() | stop_words("en")
    plain = " ".join(
        word
        for word in re.findall(r"\w+", text.lower())
        if word not in stops and len(word) > 1 and not word.isdecimal()
    )
    return set(tokens(plain, stemmed=True))


def without(note: Lines, removed: Collection[int], protected: Collection[int] = ()) -> tuple[Lines, tuple[str, ...]]:
    """Return `note` without the lines `removed` (from 1), and the titles of headings that have nothing left below.

    A heading that had nothing below it before stays, and the title of the note, and any heading among `protected`.
    """
    texts = note.texts()
    empty = _emptied(texts, set(removed), set(protected))
    whole = {number for section in empty for number in range(section.line, section.last + 1)}
    runs: list[list[int]] = []
    for number in sorted(whole.union(removed)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    if runs and runs[-1][1] == len(texts) and whole.intersection(range(runs[-1][0], len(texts) + 1)):
        # What stood between this heading and the text above it would be blank lines at the end.
        while runs[-1][0] > 1 and not texts[runs[-1][0] - 2].strip():
            runs[-1][0] -= 1
    for first, last in reversed(runs):
        note = note.delete(first, last)
    return note, tuple(section.title for section in empty)


def heading_notes(titles: Sequence[str]) -> tuple[str, ...]:
    """What a person should know of headings that go."""
    return tuple(f"Nothing is left below the heading {title}, so it goes too." for title in titles)


def _emptied(texts: Sequence[str], removed: set[int], protected: set[int]) -> list[Section]:
    """Return the headings that have nothing left below without `removed`, in order; the lowest decide first."""
    headings = sections(texts)[1:]
    empty: set[int] = set()
    for at in reversed(range(len(headings))):
        section = headings[at]
        if section.line in removed or section.line in protected or _is_title(headings, at):
            continue
        body = {number for number in range(section.line + 1, section.last + 1) if texts[number - 1].strip()}
        parts = _headings_below(headings, at)
        going = [part for part in parts if part in empty or headings[part].line in removed]
        if (body or going) and body <= removed and len(going) == len(parts):
            empty.add(at)
    return [headings[at] for at in sorted(empty)]


def _headings_below(headings: Sequence[Section], at: int) -> list[int]:
    """Where the headings below heading `at` are."""
    end = next((n for n in range(at + 1, len(headings)) if headings[n].level <= headings[at].level), len(headings))
    return list(range(at + 1, end))


def _is_title(headings: Sequence[Section], at: int) -> bool:
    """Whether heading `at` names the whole note: the first one, of level 1 or above all others."""
    return at == 0 and (headings[0].level == 1 or len(_headings_below(headings, 0)) == len(headings) - 1)


_TIME = re.compile(r"(?:\*\*|\[|\()?\d{1,2}:\d{2}(?:\*\*|\]|\))?(?::?\s*[-–—]\s+|:\s+|\s+)")


class Spot(Struct, frozen=True):
    """Lines `first` to `last` (from 1) of the note `path`, which holds `data`."""

    path: str
    data: bytes | None
    first: int
    last: int

    def lines(self) -> Lines:
        """The note, once it is sure that the lines are there. Raises EditRefused."""
        note = Lines.of(self.data, self.path)
        note.check(self.first, self.last, self.path)
        return note

    def texts(self) -> list[str]:
        """The lines themselves."""
        return self.lines().texts()[self.first - 1 : self.last]

    def below_headings(self) -> list[int]:
        """The numbers of the lines that are no headings."""
        titles = {section.line for section in sections(self.lines().texts())}
        return [number for number in range(self.first, self.last + 1) if number not in titles]

    def facts(self) -> list[list[str]]:
        """The lines in runs, without headings and what is blank; rows of a table come with its head.

        Raises EditRefused where nothing else is there.
        """
        texts = self.lines().texts()
        runs: list[list[str]] = []
        before = 0
        for number in self.below_headings():
            if number != before + 1 or not runs:
                runs.append(_table_head(texts, number))
            runs[-1].append(texts[number - 1])
            before = number
        facts = [run for run in runs if any(text.strip() for text in run)]
        if not facts and any(text.strip() for text in self.texts()):
            raise EditRefused("A heading alone cannot be promoted.", "Choose the lines below it.")
        return facts or [self.texts()]

    def heading(self) -> str:
        """The title that the lines stand below, empty without one; the title of the whole note is none."""
        above = [section for section in sections(self.lines().texts()) if section.line < self.first]
        return above[-1].title if above and above[-1].level > 1 else ""

    def __str__(self) -> str:
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


def _table_head(texts: Sequence[str], number: int) -> list[str]:
    """What stands above row `number` (from 1) of the first two lines of its table; nothing where it is of none."""
    top = number
    while top and _ROW.match(texts[top - 1]):
        top -= 1
    return list(texts[top : min(top + 2, number - 1)]) if top + 1 < number and _RULER.match(texts[top + 1]) else []


def promote(
    spot: Spot, target: str, into: bytes | None, *, to: str = "", move: bool = False, source: bool = True
) -> Change:
    """Copy or move the lines of `spot` to the right heading of the note `target`, each with its source.

    `to` names the heading, by fuzzy match, and is made when none is like it; without it the heading is the one that
    shares the lines' words. Times of the day are left out, headings are no facts and stay. Raises EditRefused.
    """
    cited = f" (from {spot.path})" if source else ""
    items = [item for run in spot.facts() for item in _items(run, cited, timeless=True)]
    return _carry("promote", spot, items, target, into, to, removed=spot.below_headings() if move else ())


def promote_all(
    spots: Sequence[Spot], target: str, into: bytes | None, plan: Callable[[Spot, bytes | None], Change]
) -> Change:
    """Copy the lines of several spots as one change; `plan` promotes a spot into the note `target` as it is by then.

    Lines that two spots share are promoted once, and each part below a heading of its own goes where it fits. What
    cannot be promoted stays, and a note says why; raises EditRefused where that is all of it.
    """
    files: dict[str, FileChange] = {}
    notes: list[str] = []
    refused: list[EditRefused] = []
    done: list[Spot] = []
    for spot in _joined(spots):
        try:
            change = plan(spot, into)
        except EditRefused as error:
            refused.append(error)
            notes.append(f"{spot} stays: {error.message}")
            continue
        for file in change.files:
            files[file.path] = replace(files[file.path], after=file.after) if file.path in files else file
        into = files[target].after if target in files else into
        notes += change.notes
        done.append(spot)
    if not done:
        raise refused[0] if refused else EditRefused("No lines are chosen.", "Choose at least one.")
    whence = sorted({spot.path for spot in done})
    count = plural(sum(bool(text.strip()) for spot in done for text in spot.texts()), "line")
    title = f"Promote {count} of {plural(len(whence), 'note') if len(whence) > 1 else whence[0]} to {target}"
    return Change("promote", title, tuple(files.values()), tuple(dict.fromkeys(notes)))


def _joined(spots: Iterable[Spot]) -> list[Spot]:
    """The parts of `spots` below each heading in the order of the spots' notes, without lines that come twice."""
    by_path: dict[str, tuple[Spot, set[int]]] = {}
    for spot in spots:
        by_path.setdefault(spot.path, (spot, set()))[1].update(spot.below_headings())
    parts: list[Spot] = []
    for spot, numbers in by_path.values():
        texts = spot.lines().texts()
        run: list[int] = []
        for number in [*sorted(number for number in numbers if texts[number - 1].strip()), 0]:
            # Blank lines between two items part nothing; a heading or a line that is not meant does.
            between = range(run[-1] + 1, number) if run and number else ()
            if run and (not number or any(at not in numbers and texts[at - 1].strip() for at in between)):
                parts.append(replace(spot, first=run[0], last=run[-1]))
                run = []
            run.append(number)
    return parts


def promote_fact(
    spot: Spot, index: str, into: bytes | None, vacant: Callable[[str], bool], *, kind: str = "", move: bool = False
) -> Change:
    """Write the lines of `spot` as a fact of Claude Code's memory, with a line in its `index` that points to it.

    `kind` is the type of the fact, "project" where it is none; `vacant` tells whether a path is free.

    Raises EditRefused.
    """
    if index == spot.path:
        raise EditRefused(f"The lines are in {index} already.", "Choose lines of another note.")
    body = "\n".join(line for run in spot.facts() for line in _items(run, f" (from {spot.path})", timeless=True))
    plain = "\n".join(line for run in spot.facts() for line in _items(run, "", timeless=True))
    fact = claude_memory.fact_named(plain, kind if kind in claude_memory.TYPES else "project")
    folder = index.rpartition("/")[0]
    name, number = fact.name, 2
    while not vacant(path := f"{folder}/{claude_memory.file_of(fact)}".lstrip("/")):
        fact, number = replace(fact, name=f"{name}-{number}"), number + 1
    note = Lines.of(into, index)
    if into is None:
        note = Lines(False, ()).insert(1, ["# Memory index", ""])
    last = max((at for at, text in enumerate(note.texts(), 1) if text.strip()), default=0)
    note = note.insert(last + 1, [claude_memory.pointer(fact, path.rpartition("/")[2])])
    files = [FileChange(path, None, claude_memory.written(fact, body).encode("utf-8", "replace"))]
    files.append(FileChange(index, into, note.data))
    notes = [f"A fact of the type {fact.type}, with a line in {index}."]
    taken, emptied = _taken_out(spot, spot.below_headings() if move else ())
    return Change("promote", f"Promote {spot} to {path}", (*files, *taken), (*notes, *emptied))


def _taken_out(spot: Spot, removed: Collection[int]) -> tuple[list[FileChange], tuple[str, ...]]:
    """Return the note of `spot` without the lines `removed`, and what a person should know of it."""
    if not removed:
        return [], ()
    left, emptied = without(spot.lines(), removed)
    return [FileChange(spot.path, spot.data, left.data)], heading_notes(emptied)


def demote(spot: Spot, target: str, into: bytes | None, *, to: str = "", move: bool = True) -> Change:
    """Move lines, for instance of MEMORY.md, to the topic note `target`, which is made when it is not there."""
    items = _items(spot.texts(), "", timeless=False)
    return _carry("demote", spot, items, target, into, to, removed=range(spot.first, spot.last + 1) if move else ())


def section_for(texts: Sequence[str], block: str, heading: str, to: str) -> tuple[Section | None, str]:
    """The section for `block`, which stood below `heading`, or the heading that has to be made; never both."""
    if to:
        section = named(texts, to)
        return section, "" if section else to.strip().lstrip("#").strip()
    section = best(texts, block, heading)
    if section is None and not any(section.level > 1 for section in sections(texts)):
        # A note without parts gets no first one for a single line.
        return sections(texts)[-1], ""
    return section, "" if section else CATCH_ALL


def _carry(
    kind: str, spot: Spot, items: list[str], target: str, into: bytes | None, to: str, *, removed: Collection[int]
) -> Change:
    if target == spot.path:
        raise EditRefused(f"The lines are in {target} already.", "Name another note.")
    note = Lines.of(into, target)
    if into is None:
        title = target.rpartition("/")[2].removesuffix(".md")
        if kind == "demote":
            title = title.replace("-", " ").strip()
            title = title[:1].upper() + title[1:]
        note = Lines(False, ()).insert(1, [f"# {title}"])
    section, heading = section_for(note.texts(), "\n".join(spot.texts()), spot.heading(), to)
    note = _appended(note, section, items) if section is not None else _new_section(note, heading, items)
    name = heading if section is None else section.title if into is not None else ""
    title = f"{spot} to {target}, {name}" if name else f"{spot} to {target}"
    files = [FileChange(target, into, note.data)]
    notes = [] if section is not None or not heading else [f"The heading {heading} is new."]
    taken, emptied = _taken_out(spot, removed)
    return Change(kind, f"{kind.capitalize()} {title}", (*files, *taken), (*notes, *emptied))


def _items(texts: Sequence[str], source: str, *, timeless: bool) -> list[str]:
    """Lines as list items at the left edge, each item with its source; what belongs to an item stays below it."""
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise EditRefused("These lines are blank.", "Choose lines with text.")
    edge = min(len(text) - len(text.lstrip()) for text in texts)
    rows = list(takewhile(_ROW.match, texts))
    out = [f"{'  ' if number else '- '}{row.strip()}" for number, row in enumerate(rows)]
    if rows and source:
        # In a line of the table it would be a cell.
        out += ["", f"  {source.strip()}"]
    for number, text in enumerate((text[edge:] for text in texts[len(rows) :]), bool(rows)):
        item, heading = ITEM.match(text), HEADING.match(text)
        if heading:
            out.append(f"- {heading[2]}{source}")
        elif text[:1].isspace():
            out.append(text)
        elif item:
            words = text[item.end() :]
            mark = item[2] if item[2] in "-*+" else "-"
            out.append(f"{mark} {_TIME.sub('', words, count=1) if timeless and _TIME.match(words) else words}{source}")
        elif number:
            # A paragraph goes on.
            out.append(f"  {text}")
        else:
            out.append(f"- {text}{source}")
    return out


def _appended(note: Lines, section: Section, items: list[str]) -> Lines:
    """`items` at the end of the section's own text, in the mark of its list."""
    texts = note.texts()
    last = section.last
    while last > section.line and not texts[last - 1].strip():
        last -= 1
    items_there = [item for text in texts[section.line : last] if (item := ITEM.match(text)) and not item[1]]
    mark = next((item[2] for item in reversed(items_there) if item[2] in "-*+"), "")
    if mark:
        items = [f"{mark}{item[1:]}" if item[:2] in ("- ", "* ", "+ ") else item for item in items]
    gap: list[str] = []
    if (
        not (items_there and _in_list(texts[section.line : last]))
        and last > 0
        and (last > section.line or _airy(texts))
    ):
        gap = [""]
    return note.insert(last + 1, [*gap, *items])


def _in_list(body: Sequence[str]) -> bool:
    """Whether a section's text ends with a list."""
    last = next((text for text in reversed(body) if text.strip() and not text[:1].isspace()), "")
    return ITEM.match(last) is not None


def _airy(texts: Sequence[str]) -> bool:
    """Whether the note has a blank line below most of its headings."""
    below = [
        texts[section.line].strip() == "" for section in sections(texts) if section.line and section.line < len(texts)
    ]
    return sum(below) * 2 > len(below)


def _new_section(note: Lines, title: str, items: list[str]) -> Lines:
    texts = note.texts()
    level = max(2, min((s.level for s in sections(texts) if s.level > 1), default=2))
    gap = [""] if texts and texts[-1].strip() else []
    return note.insert(len(texts) + 1, [*gap, f"{'#' * level} {title}", *([""] if _airy(texts) else []), *items])
