"""Changes that carry lines from one note to another: a daily line to MEMORY.md, a part of MEMORY.md to a topic note."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory_tui.curate import headings
from memory_tui.curate.emptied import said, without
from memory_tui.curate.lines import HEADING, ITEM, Lines, Section, sections
from memory_tui.curate.record import Change, FileChange
from memory_tui.errors import EditRefused

_TIME = re.compile(r"(?:\*\*|\[|\()?\d{1,2}:\d{2}(?:\*\*|\]|\))?(?::?\s*[-–—]\s+|:\s+|\s+)")


@dataclass(frozen=True, slots=True)
class Spot:
    """Lines `first` to `last` (from 1) of the note `path`, which holds `data`."""

    path: str
    data: bytes | None
    first: int
    last: int

    def lines(self) -> Lines:
        """The note, once it is sure that the lines are there. Raises EditRefused."""
        found = Lines.of(self.data, self.path)
        found.check(self.first, self.last, self.path)
        return found

    def texts(self) -> list[str]:
        """The lines themselves."""
        return self.lines().texts()[self.first - 1 : self.last]

    def below_headings(self) -> list[int]:
        """The numbers of the lines that are no headings."""
        titles = {section.line for section in sections(self.lines().texts())}
        return [number for number in range(self.first, self.last + 1) if number not in titles]

    def facts(self) -> list[list[str]]:
        """The lines in runs, without headings and what is blank. Raises EditRefused where nothing else is there."""
        texts = self.lines().texts()
        runs: list[list[str]] = []
        before = 0
        for number in self.below_headings():
            if number != before + 1 or not runs:
                runs.append([])
            runs[-1].append(texts[number - 1])
            before = number
        found = [run for run in runs if any(text.strip() for text in run)]
        if not found and any(text.strip() for text in self.texts()):
            raise EditRefused("A heading says nothing by itself.", "Choose the lines below it.")
        return found or [self.texts()]

    def heading(self) -> str:
        """The title that the lines stand below, empty without one; the title of the whole note is none."""
        above = [section for section in sections(self.lines().texts()) if section.line < self.first]
        return above[-1].title if above and above[-1].level > 1 else ""

    def __str__(self) -> str:
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")


def promote(
    spot: Spot, target: str, into: bytes | None, *, to: str = "", move: bool = False, source: bool = True
) -> Change:
    """Copy or move the lines of `spot` to the right heading of the note `target`, each with its source.

    `to` names the heading, by fuzzy match, and is made when none is like it; without it the heading is the one that
    shares the lines' words. Times of the day are left out, headings are no facts and stay. Raises EditRefused.
    """
    cited = f" (from {spot.path})" if source else ""
    items = [item for run in spot.facts() for item in _items(run, cited, timeless=True)]
    return _carry("promote", spot, items, target, into, to, gone=spot.below_headings() if move else ())


def demote(spot: Spot, target: str, into: bytes | None, *, to: str = "", move: bool = True) -> Change:
    """Move lines, for instance of MEMORY.md, to the topic note `target`, which is made when it is not there."""
    items = _items(spot.texts(), "", timeless=False)
    gone = range(spot.first, spot.last + 1) if move else ()
    if into is None:
        title = target.rpartition("/")[2].removesuffix(".md").replace("-", " ").strip()
        into = f"# {title[:1].upper()}{title[1:]}\n".encode("utf-8", "replace")
        made = _carry("demote", spot, items, target, into, to, gone=gone)
        first = FileChange(target, None, made.files[0].after)
        return Change(made.kind, made.title, (first, *made.files[1:]), made.notes)
    return _carry("demote", spot, items, target, into, to, gone=gone)


def place(texts: Sequence[str], block: str, heading: str, to: str) -> tuple[Section | None, str]:
    """The section for `block`, which stood below `heading`, or the heading that has to be made; never both."""
    if to:
        section = headings.named(texts, to)
        return section, "" if section else to.strip().lstrip("#").strip()
    found = headings.best(texts, block, heading)
    if found is None and not any(section.level > 1 for section in sections(texts)):
        # A note without parts gets no first one for a single line.
        return sections(texts)[-1], ""
    return found, "" if found else headings.CATCH_ALL


def _carry(
    kind: str, spot: Spot, items: list[str], target: str, into: bytes | None, to: str, *, gone: Collection[int]
) -> Change:
    if target == spot.path:
        raise EditRefused(f"The lines are in {target} already.", "Name another note.")
    note = Lines.of(into, target)
    if into is None:
        note = Lines(False, ()).insert(1, [f"# {target.rpartition('/')[2].removesuffix('.md')}"])
    section, made = place(note.texts(), "\n".join(spot.texts()), spot.heading(), to)
    note = _below(note, section, items) if section is not None else _new_section(note, made, items)
    name = made if section is None else section.title if into is not None else ""
    title = f"{spot} to {target}, {name}" if name else f"{spot} to {target}"
    files = [FileChange(target, into, note.data)]
    notes = [] if section is not None or not made else [f"The heading {made} is new."]
    if gone:
        left, emptied = without(spot.lines(), gone)
        files.append(FileChange(spot.path, spot.data, left.data))
        notes += said(emptied)
    verb = {"promote": "Promote", "demote": "Demote"}[kind]
    return Change(kind, f"{verb} {title}", tuple(files), tuple(notes))


def _items(texts: Sequence[str], source: str, *, timeless: bool) -> list[str]:
    """Lines as list items at the left edge, each item with its source; what belongs to an item stays below it."""
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise EditRefused("These lines are blank.", "Choose lines with text.")
    edge = min(len(text) - len(text.lstrip()) for text in texts)
    out: list[str] = []
    for number, text in enumerate(text[edge:] for text in texts):
        item, heading = ITEM.match(text), HEADING.match(text)
        if heading:
            out.append(f"- {heading[2]}{source}")
        elif text[:1].isspace():
            out.append(text)
        elif item:
            said = text[item.end() :]
            mark = item[2] if item[2] in "-*+" else "-"
            out.append(f"{mark} {_TIME.sub('', said, count=1) if timeless and _TIME.match(said) else said}{source}")
        elif number:
            # A paragraph goes on.
            out.append(f"  {text}")
        else:
            out.append(f"- {text}{source}")
    return out


def _below(note: Lines, section: Section, items: list[str]) -> Lines:
    """`items` at the end of the section's own text, in the mark of its list."""
    texts = note.texts()
    last = section.last
    while last > section.line and not texts[last - 1].strip():
        last -= 1
    own = [item for text in texts[section.line : last] if (item := ITEM.match(text)) and not item[1]]
    mark = next((item[2] for item in reversed(own) if item[2] in "-*+"), "")
    if mark:
        items = [f"{mark}{item[1:]}" if item[:2] in ("- ", "* ", "+ ") else item for item in items]
    gap: list[str] = []
    if not (own and _in_list(texts[section.line : last])) and last > 0 and (last > section.line or _airy(texts)):
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
