"""Promoting plans how lines of a daily log come into MEMORY.md, below a heading, copied or moved."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import groupby, takewhile

from msgspec import Struct
from msgspec.structs import replace
from rapidfuzz import fuzz, process, utils

from memory_tui.errors import EditRefused
from memory_tui.formatting import plural
from memory_tui.notes.changes import ITEM, Change, FileChange, Lines, Section, block_at, sections
from memory_tui.tokens import function_words, segmented, stop_words, tokens
from memory_tui.workspace.notes import together

CATCH_ALL = "Notes"
"""The heading that is made when nothing fits."""
ENOUGH = 0.12
"""A section that shares less of a text's weight than this does not fit it."""
_TITLE_COUNTS, _LEAD_COUNTS = 3, 2
_LEAD = re.compile(r"(?m)^\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\d{1,2}:\d{2}\W+)?((?:\W*\w+){1,3})")
"""Words with which an item begins."""
_NAMED = 75.0
"""rapidfuzz's score from which a typed name means a heading."""
_LOOSE = re.compile(r"(notes?|misc\w*|other|general|inbox|various|sonstiges|divers)\W*", re.IGNORECASE)
_SOURCE, _WORD = re.compile(r" \(from \S+\)$"), re.compile(r"\w+")
_TIME = re.compile(r"(?:\*\*|\[|\()?\d{1,2}:\d{2}(?:\*\*|\]|\))?(?::?\s*[-–—]\s+|:\s+|\s+)")


class Spot(Struct, frozen=True):
    """Lines `first` to `last` (from 1) of the note `path`, which holds `data`."""

    path: str
    data: bytes | None
    first: int
    last: int

    def lines(self) -> Lines:
        """Return the note, once it is sure that the lines are there. Raises EditRefused."""
        note = Lines.of(self.data, self.path)
        note.check(self.first, self.last, self.path)
        return note

    def texts(self) -> list[str]:
        """Return the lines themselves."""
        return self.lines().texts()[self.first - 1 : self.last]

    def below_headings(self) -> list[int]:
        """Return the numbers of the lines that are no headings."""
        titles = {section.line for section in sections(self.lines().texts())}
        return [number for number in range(self.first, self.last + 1) if number not in titles]

    def facts(self) -> list[list[str]]:
        """Return the lines that are no headings in runs. Raises EditRefused where there are none with text."""
        if not (facts := [part.texts() for part in parts([self])]):
            what = "A heading alone cannot be promoted." if "".join(self.texts()).strip() else "These lines are blank."
            raise EditRefused(what, "Choose lines with text.")
        return facts

    def around(self) -> str:
        """Return the section that the lines stand in with its heading; empty below none, or below the note's title."""
        texts = self.lines().texts()
        # The top of the note is a section, so that one is above.
        section = [section for section in sections(texts) if section.line < self.first][-1]
        return "\n".join(texts[section.line - 1 : section.last]) if section.level > 1 else ""

    def __str__(self) -> str:
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


# --- which heading ---------------------------------------------------------------------------------------------------


def ranked(texts: Sequence[str], block: str, around: str = "") -> list[tuple[float, Section]]:
    """Return the sections that `block` could go below, the best first, each with the share of its weight, 0 to 1.

    A word counts by how few sections have it (inverse document frequency), once a section, and more in a title or where
    the block and an item of the section begin with it. What stands `around` the block counts as much as the block.
    """
    candidates = [section for section in sections(texts) if section.line]
    # A note's own title, its only heading of the first level and in front of all, says nothing about a place in it.
    tops = [section for section in candidates if section.level == 1]
    if len(candidates) > 1 and tops == candidates[:1]:
        candidates = candidates[1:]
    titles = [_words(section.title) for section in candidates]
    texts_below = ["\n".join(texts[section.line : section.last]) for section in candidates]
    # The words of a title count as those of its text, too.
    bodies = [_words(text) | title for text, title in zip(texts_below, titles, strict=True)]
    leads = list(map(_leads, texts_below))
    spread = Counter(word for body in bodies for word in body)

    def shares(text: str) -> list[float]:
        """Return the share of the weight of a text that each candidate has."""
        # A word weighs the more the fewer candidates have it.
        weights = {word: math.log(1 + len(candidates) / (1 + spread[word])) for word in _words(text)}
        total, text_leads = sum(weights.values()) or 1.0, _leads(text)

        def share(title: set[str], body: set[str], lead: set[str]) -> float:
            """Return how much of the weight a candidate has, by the words of its title, body and leads of its items."""
            # How often a word counts; what stands further right here, or below, holds.
            counts = dict.fromkeys(body, 1) | dict.fromkeys(body & lead & text_leads, _LEAD_COUNTS)
            counts |= dict.fromkeys(title, _TITLE_COUNTS)
            return min(1.0, sum(counts[word] * weights.get(word, 0.0) for word in body) / total)

        return list(map(share, titles, bodies, leads))

    scores = [(share + near) / 2 for share, near in zip(shares(block), shares(around or block), strict=True)]
    return sorted(zip(scores, candidates, strict=True), key=lambda choice: -choice[0])


def section_for(texts: Sequence[str], block: str, around: str, to: str) -> tuple[Section | None, str]:
    """Return the section that `block` goes to, or None and the title of the heading that has to be made for it.

    `to` is the heading that a person named, empty for the one that fits best to the block and what stood `around` it.
    """
    choices = ranked(texts, block, around)
    top, *headings = sections(texts)
    if to:
        section = _named([*(section for _, section in choices), *headings], to)
        return section, "" if section else to.strip().lstrip("#").strip()
    fitting = [section for share, section in choices if share >= ENOUGH]
    loose = [section for section in headings if _LOOSE.fullmatch(section.title)]
    if fitting or loose:
        return (fitting or loose)[0], ""
    if any(section.level > 1 for section in headings):
        return None, CATCH_ALL
    # A note without parts gets no first one for a single line.
    return (headings[-1] if headings else top), ""


def _named(candidates: Sequence[Section], title: str) -> Section | None:
    """Return the first of `candidates` that somebody means by `title`, by fuzzy match; None when none is like it."""
    for section in candidates:
        if section.title.casefold() == title.strip().casefold():
            return section
    titles = [section.title for section in candidates]
    hit = process.extractOne(title, titles, scorer=fuzz.WRatio, processor=utils.default_process, score_cutoff=_NAMED)
    # A hit is title, score and index.
    return candidates[hit[2]] if hit else None


def _leads(text: str) -> set[str]:
    """Return the stems of the words with which list items begin, which say what they are about."""
    return _words(" ".join(_LEAD.findall(text)))


def _words(text: str) -> set[str]:
    """Return the stems of a text, of CJK languages pairs of signs, without function words, letters and numbers."""
    stops = function_words() | stop_words("en")
    words = re.findall(r"\w+", segmented(text).encode("utf-8", "replace").decode().lower())
    plain = (word for word in words if word not in stops and len(word) > 1 and not word.isdecimal())
    return set(tokens(" ".join(plain), stemmed=True))


# --- what is left ----------------------------------------------------------------------------------------------------


def without(note: Lines, removed: Collection[int], protected: Collection[int] = ()) -> tuple[Lines, tuple[str, ...]]:
    """Return `note` without the lines `removed` (from 1), and a sentence for each heading with nothing left below.

    A heading that had nothing below it before stays, and the title of the note, and any heading among `protected`.
    """
    texts, lines, notes = note.texts(), set(removed), list[str]()
    headings = sections(texts)[1:]
    for at, heading in reversed(list(enumerate(headings))):
        end = _end(heading, headings, texts)
        below = {number for number in range(heading.line + 1, end + 1) if texts[number - 1].strip()}
        is_title = at == 0 and (heading.level == 1 or end == len(texts))
        if below and below <= lines and not is_title and heading.line not in {*removed, *protected}:
            lines.update(range(heading.line, end + 1))
            if end == len(texts):
                # What stood between this heading and the text above it would be blank lines at the end.
                lines.update(takewhile(lambda number: not texts[number - 1].strip(), range(heading.line - 1, 0, -1)))
            notes.append(f"Nothing is left below the heading {heading.title}, so it goes too.")
    # From the end, so that the numbers above hold. Of neighbours in a falling row place and number have one sum.
    for _, run in groupby(enumerate(sorted(lines, reverse=True)), sum):
        numbers = [number for _, number in run]
        note = note.delete(first=numbers[-1], last=numbers[0])
    return note, tuple(reversed(notes))


# --- carrying --------------------------------------------------------------------------------------------------------


def promote(spot: Spot, target: str, into: bytes | None, *, to: str = "", move: bool = False) -> Change:
    """Copy or move the lines of `spot` to the right heading of the note `target`, each with its source.

    `to` names the heading, by fuzzy match, and is made when none is like it; without it the heading is the one that
    shares the lines' words. Times of the day are left out, headings are no facts and stay. Raises EditRefused.
    """
    items = [item for run in spot.facts() for item in _items(run, f" (from {spot.path})")]
    # The first character is the mark of a list, which makes no difference.
    new, old = ([line[1:] for line in lines] for lines in (items, Lines.of(into, target).texts()))
    if set(new) <= set(old):
        raise EditRefused(f"{spot} stands at {target}:{old.index(new[0]) + 1} already.", "Choose other lines.")
    # The same words with other signs, or another source, are kept, and the person is told.
    new, old = ([" ".join(_WORD.findall(_SOURCE.sub("", line.lower()))) for line in lines] for lines in (new, old))
    same = [f"{target}:{old.index(words) + 1} says the same already." for words in new if words and words in old]
    note = _target(spot, target, into)
    section, heading = section_for(note.texts(), "\n".join(spot.texts()), spot.around(), to)
    note = _appended(note, section, items) if section is not None else _new_section(note, heading, items)
    # A note that is new has the heading of its name alone, which says nothing.
    name = section.title if section is not None and into is not None else heading
    title = f"Promote {spot} to {target}" + (f", {name}" if name else "")
    files = [FileChange(target, into, note.data)]
    notes = [*same, f"The heading {heading} is new."] if heading else same
    if move:
        left, emptied = without(spot.lines(), spot.below_headings())
        files.append(FileChange(spot.path, spot.data, left.data))
        notes += emptied
    return Change("promote", title, tuple(files), tuple(notes))


def demote(spot: Spot, target: str, into: bytes | None) -> Change:
    """Move the sections that lines stand in to the end of the topic note `target`, whole and as they are.

    Of a section that has more lines than are to go, those go alone, below its heading, which is repeated; so are the
    headings around it. The note is made when it is not there.
    """
    note, texts, path = _target(spot, target, into), spot.lines().texts(), spot.path
    titles, there = sections(texts)[1:], note.texts()
    # No item, paragraph, fence or table is cut in two: the first and the last line move out to its ends.
    runs = [block_at(texts, spot.first), block_at(texts, spot.last), *together("\n".join(texts))]
    first = min(run[0] for run in runs if run[0] <= spot.first <= run[1])
    last = max(run[1] for run in runs if run[0] <= spot.last <= run[1])
    # The headings above the lines, the innermost last; the title of the note stays with it. Where all of the innermost
    # section goes, its heading goes, too.
    around = [h for h in titles if h.line < first <= _end(h, titles, texts) and (h != titles[0] or h.level > 1)]
    if around and around[-1].last - around[-1].line <= last - first:
        first = around.pop().line
    # A heading among the lines takes everything below it along.
    last = max([last, *(_end(h, titles, texts) for h in titles if first <= h.line <= last)])
    names = [h.title for h in titles if first <= h.line <= last]
    lines = [*(line for h in around for line in (texts[h.line - 1], "")), *texts[first - 1 : last]]
    # A blank line comes in between, unless the note ends with one.
    note = note.insert(len(there) + 1, [*[""] * bool("".join(there[-1:]).strip()), *lines])
    left, emptied = without(spot.lines(), range(first, last + 1))
    what = f", {plural(len(names), 'section')}: {', '.join(names[:4])}" if names else ""
    files = FileChange(target, into, note.data), FileChange(path, spot.data, left.data)
    notes = f"Lines {first} to {last} leave {path}{what}{', ...' if len(names) > 4 else '.'}", *emptied
    return Change("demote", f"Move {path}:{first}-{last} to {target}", files, notes)


def _end(heading: Section, headings: Sequence[Section], texts: Sequence[str]) -> int:
    """Return the last line of a heading's part with all deeper headings in it: up to the next of its level or above."""
    following = (other for other in headings if other.line > heading.line and other.level <= heading.level)
    return next((other.line - 1 for other in following), len(texts))


def _target(spot: Spot, target: str, into: bytes | None) -> Lines:
    """Return the note that lines go to, with its name as its title where it is new. Raises EditRefused."""
    if target == spot.path:
        raise EditRefused(f"The lines are in {target} already.", "Choose another note.")
    title = target.rpartition("/")[2].removesuffix(".md").replace("-", " ").strip()
    return Lines(False, ()).insert(1, [f"# {title[:1].upper()}{title[1:]}"]) if into is None else Lines.of(into, target)


def parts(spots: Iterable[Spot]) -> list[Spot]:
    """Return the runs of lines in `spots`, each below one heading and without lines that come twice, note by note."""
    # By note the first spot in it, for its text, and the numbers of the lines of all spots in it.
    by_path: dict[str, tuple[Spot, set[int]]] = {}
    for spot in spots:
        by_path.setdefault(spot.path, (spot, set()))[1].update(spot.below_headings())
    runs: list[Spot] = []
    for spot, numbers in by_path.values():
        texts = spot.lines().texts()
        # Blank lines between two items part nothing; a heading or a line that is not meant does.
        stops = [number for number, text in enumerate(texts, 1) if number not in numbers and text.strip()]
        chosen = (number for number in sorted(numbers) if texts[number - 1].strip())
        # bisect counts the stops above a line: lines for which it is the same number have none between them.
        for _, run in groupby(chosen, partial(bisect, stops)):
            lines = list(run)
            runs.append(replace(spot, first=lines[0], last=lines[-1]))
    return runs


def _items(texts: Sequence[str], source: str) -> list[str]:
    """Return lines as list items at the left edge, each with its source; what belongs to an item stays below it.

    Times in front of an item's words are left out.
    """
    texts = [text for text in texts if text.strip()]
    # The left edge: what all lines are indented by.
    edge = min(len(text) - len(text.lstrip()) for text in texts)
    out: list[str] = []
    for text in (text[edge:] for text in texts):
        item = ITEM.match(text)
        if text[:1].isspace():
            out.append(text)
        elif item:
            mark = item[2] if item[2] in "-*+" else "-"
            time = _TIME.match(text, item.end())
            words = text[time.end() if time else item.end() :]
            out.append(f"{mark} {words}{source}")
        elif out:
            # A paragraph goes on.
            out.append(f"  {text}")
        else:
            out.append(f"- {text}{source}")
    return out


def _appended(note: Lines, section: Section, items: list[str]) -> Lines:
    """Return a note with `items` at the end of the section's own text, in the mark of its list."""
    texts = note.texts()
    body = texts[section.line : section.last]
    while body and not body[-1].strip():
        body.pop()
    # Lines that are not indented: items of the outer list, and what is no list.
    at_edge = [text for text in body if not text[:1].isspace()]
    marks = [item[2] for text in at_edge if (item := ITEM.match(text)) and item[2] in "-*+"]
    if marks:
        items = [f"{marks[-1]}{item[1:]}" if item[:2] in ("- ", "* ", "+ ") else item for item in items]
    in_list = bool(at_edge) and ITEM.match(at_edge[-1]) is not None
    last = section.line + len(body)
    # A blank line parts a new list from what is no list, and from the heading where the note has it so.
    gap = [""] if last and not in_list and (body or _airy(texts)) else []
    return note.insert(last + 1, [*gap, *items])


def _airy(texts: Sequence[str]) -> bool:
    """Tell whether the note has a blank line below most of its headings, so that a new one gets one, too."""
    below = [not texts[part.line].strip() for part in sections(texts) if part.line and part.line < len(texts)]
    return sum(below) * 2 > len(below)


def _new_section(note: Lines, title: str, items: list[str]) -> Lines:
    """Return a note with `items` below a new heading at its end, of the level that its parts have."""
    texts = note.texts()
    level = min((section.level for section in sections(texts) if section.level > 1), default=2)
    gap = [""] if texts and texts[-1].strip() else []
    return note.insert(len(texts) + 1, [*gap, f"{'#' * level} {title}", *([""] if _airy(texts) else []), *items])
