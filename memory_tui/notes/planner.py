"""The planner decides a change: a wish (capture, promote, move, delete, archive) becomes new text; nothing is written.

Archived logs go to memory/archive/memory/. They stay readable and searchable, and they go on ageing: OpenClaw 2026.3
ages a note by the day in its name only directly below a folder called memory, so that in memory/archive/ alone an old
log would count as evergreen and rank above newer ones.
"""

from __future__ import annotations

import datetime as dt
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.errors import EditRefused
from memory_tui.formatting import plural
from memory_tui.hosts import claude_memory, codex
from memory_tui.notes import budget
from memory_tui.notes import promote as promoting
from memory_tui.notes.budget import Budget, HostLimit
from memory_tui.notes.changes import (
    HEADING,
    ITEM,
    Change,
    FileChange,
    Lines,
    ShownLines,
    bare,
    block_at,
    edited,
    end_of,
)
from memory_tui.notes.links import LinkIndex, Names, NoteLink, links
from memory_tui.notes.promote import Spot
from memory_tui.notes.write import current, parent, standing
from memory_tui.openclaw.trust import Trust
from memory_tui.secrets.finder import masked
from memory_tui.workspace.annotations import without_markers
from memory_tui.workspace.notes import shown_day
from memory_tui.workspace.roots import ROOT_NOTES, NoteMissing, Roots, destination, scan

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_WEEKDAY = re.compile("|".join(_WEEKDAYS))
_TIMED = re.compile(
    r"(?P<mark>[-*+])(?P<gap>\s+)(?P<open>\*\*|\[|\()?\d{1,2}:\d{2}(?P<close>\*\*|\]|\))?"
    r"(?P<sep>:?\s*[-–—]\s+|:\s+|\s+)"
)
_MOST = 20_000
"""Characters of the longest text that is captured."""


def log_path(day: dt.date) -> str:
    """The stored path of a day's log."""
    return f"memory/{day.isoformat()}.md"


def capture(text: str, now: dt.datetime, log: bytes | None, model: bytes | None = None) -> Change:
    """Append `- HH:MM text` to today's `log`, in its style; a new log begins with a heading like that of `model`.

    `log` is None when there is none yet; `model` is an earlier log. Raises EditRefused for no text or too much.
    """
    words = _words(text)
    path = log_path(now.date())
    old = Lines.of(log, path)
    texts = old.texts()
    style = texts if any(ITEM.match(line) for line in texts) else Lines.of(model).texts()
    entry = _entry(words, now, style)
    if log is None or not "".join(texts).strip():
        new = Lines(old.bom, ()).insert(1, [_heading(now.date(), Lines.of(model).texts()), "", *entry])
        if model is not None and Lines.of(model).end == "\r\n":
            new = Lines(new.bom, tuple(line.replace("\n", "\r\n") for line in new.lines))
    else:
        new = old.insert(len(old.lines) + 1, [*_gap(texts), *entry])
    # A secret is looked for before the line is cut, because half of it would not be known for one.
    title = f"Remember in {path}: {masked(words.splitlines()[0])[:60]}"
    return Change("capture", title, (FileChange(path, log, new.data),))


def beginning(day: dt.date, model: bytes | None) -> str:
    """What the log of a day begins with: a heading like that of the earlier log `model`, and room below it."""
    return f"{_heading(day, Lines.of(model).texts())}\n\n"


def new_note(path: str, title: str, body: str = "") -> Change:
    """A new topic note with a heading, and `body` below it."""
    text = f"# {title.strip()}\n\n" + (body.strip("\r\n") + "\n" if body.strip() else "")
    return Change("new", f"New note {path}", (FileChange(path, None, text.encode("utf-8", "replace")),))


def edit(path: str, before: bytes | None, text: str) -> Change:
    """The change from a note to what somebody made of its text in an editor (`editor_text`)."""
    return Change("edit", f"Edit {path}", (FileChange(path, before, edited(before, text, path)),))


def topic_path(title: str) -> str:
    """A stored path for a topic of this title: letters and digits of any script, joined by hyphens."""
    name = "-".join(re.findall(r"\w+", title.casefold()))[:60].strip("-")
    if not name:
        raise EditRefused("A topic needs a name with letters or digits.", "For instance: network.")
    return f"memory/{name}.md"


def _words(text: str) -> str:
    words = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")).strip("\n")
    words = words.strip().replace("\0", "")
    if not words:
        raise EditRefused("There is nothing to remember.", 'For instance: memory-tui remember "Bins go out on Friday".')
    if len(words) > _MOST:
        raise EditRefused(
            f"The text has {len(words):,} characters; at most {_MOST:,} are captured.", "Make a note of its own of it."
        )
    return words


def _entry(words: str, now: dt.datetime, style: list[str]) -> list[str]:
    """The lines of an entry, in the way the last entry with a time is written."""
    timed = next((match for line in reversed(style) if (match := _TIMED.match(line))), None)
    first, *rest = words.split("\n")
    time = f"{now:%H:%M}"
    if timed:
        mark = timed["mark"] + timed["gap"]
        lead = f"{mark}{timed['open'] or ''}{time}{timed['close'] or ''}{timed['sep']}"
    else:
        match = next((item for line in reversed(style) if (item := ITEM.match(line)) and item[2] in "-*+"), None)
        mark = f"{match[2] if match else '-'} "
        lead = f"{mark}{time} "
    return [lead + first, *(" " * len(mark) + line if line else "" for line in rest)]


def _gap(texts: list[str]) -> list[str]:
    """A blank line in front of an entry that does not follow another one."""
    last = texts[-1]
    if not last.strip():
        return []
    above = next((line for line in reversed(texts) if ITEM.match(line) or not line.startswith((" ", "\t"))), "")
    return [] if ITEM.match(above) and not HEADING.match(last) else [""]


def _heading(day: dt.date, model: list[str]) -> str:
    """The heading of a new log: that of an earlier one with its date, and its weekday, changed."""
    first = next((line for line in model if line.strip()), "")
    if HEADING.match(first) and _ISO.search(first):
        return _WEEKDAY.sub(_WEEKDAYS[day.weekday()], _ISO.sub(day.isoformat(), first))
    return f"# {day.isoformat()}"


ARCHIVE = "memory/archive/memory"


def delete_lines(spots: Iterable[Spot], *, kind: str = "delete", title: str = "", keep: Spot | None = None) -> Change:
    """Delete lines of one or several notes; a line that two spots name is deleted once.

    Headings that have nothing left below them go too, but none that is a line of `keep`.
    """
    by_path: dict[str, list[Spot]] = defaultdict(list)
    for spot in spots:
        by_path[spot.path].append(spot)
    if not by_path:
        raise EditRefused("No lines are chosen.", "Choose at least one.")
    files: list[FileChange] = []
    notes: list[str] = []
    for path, places in by_path.items():
        left, emptied = _without(places, keep)
        files.append(FileChange(path, places[0].data, left))
        notes += promoting.heading_notes(emptied)
    what = ", ".join(str(spot) for places in by_path.values() for spot in places[:3])
    return Change(
        kind,
        title or (f"Move {what} to the trash" if kind == "trash" else f"Delete {what}"),
        tuple(files),
        tuple(notes),
    )


def merge_duplicates(keep: Spot, others: Sequence[Spot]) -> Change:
    """Keep the lines of one spot and delete the others. Raises EditRefused when one of them is the kept one."""
    if any(spot.path == keep.path and spot.first <= keep.last and keep.first <= spot.last for spot in others):
        raise EditRefused(f"{keep} cannot be both kept and deleted.", "Choose which one to keep.")
    keep.lines()
    removed = ", ".join(map(str, others[:3])) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return delete_lines(others, kind="merge", title=f"Keep {keep}, delete {removed}", keep=keep)


def moved_notes(change: Change) -> dict[str, str]:
    """Which notes a change moves, and where to: each is a note that comes, followed by one that goes."""
    return {
        old.path: new.path
        for new, old in pairwise(change.files)
        if new.before is None and old.after is None and new.after == old.before
    }


def _moved(note: FileChange, new: str) -> tuple[FileChange, FileChange]:
    """Return the files of a note that gets another path, with the same bytes, mode and time."""
    return replace(note, path=new, before=None, after=note.before), FileChange(note.path, note.before, None)


def _without(spots: Sequence[Spot], keep: Spot | None) -> tuple[bytes, tuple[str, ...]]:
    """What is left of the note of `spots`, and the titles of the headings that go with them."""
    numbers = {number for spot in spots if spot.lines() for number in range(spot.first, spot.last + 1)}
    protected = range(keep.first, keep.last + 1) if keep is not None and keep.path == spots[0].path else ()
    left, titles = promoting.without(spots[0].lines(), numbers, protected)
    return left.data, titles


# --- entries that OpenClaw promoted ----------------------------------------------------------------------------------

_EVIDENCE = re.compile(r"\s*\[score=[^\]]*?source=(?P<path>[^\]\s]+?\.md):(?P<first>\d+)-\d+\]")
_SOURCE = re.compile(r"\s*Source: (?P<path>\S+?\.md)#L(?P<first>\d+)(?:-L?\d+)?\s*$")
_MARK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+", re.MULTILINE)
_ENOUGH = 120
"""Characters of an entry that tell it from others."""


class PromotedEntry(Struct, frozen=True):
    """What a promoted entry says without marker, counts and annotations, and the note and line it came from."""

    words: str
    path: str
    line: int


def promoted_entry(lines: Sequence[str]) -> PromotedEntry:
    """Read the lines of a promoted entry, its marker included; the path is empty where it names none."""
    text = without_markers("\n".join(line for line in lines if not line.lstrip().startswith("<!--")))
    source = _EVIDENCE.search(text) or _SOURCE.search(text)
    words = _SOURCE.sub("", _EVIDENCE.sub("", text))
    path, line = (source["path"], int(source["first"])) if source else ("", 0)
    return PromotedEntry(_MARK.sub("", words).strip(), path, line)


def move_back(spots: Sequence[Spot], read: Callable[[str], bytes | None]) -> Change:
    """Delete the promoted entries of `spots`; what their daily notes lack goes back there. `read` gives a note.

    Raises EditRefused where an entry names no note that it came from.
    """
    notes: dict[str, tuple[bytes | None, Lines]] = {}
    remarks = []
    for spot in spots:
        entry = promoted_entry(spot.texts())
        if not entry.path.startswith("memory/") or ".." in entry.path:
            raise EditRefused(f"{spot} names no note that it came from.", "Delete it, or keep it.")
        if entry.path not in notes:
            data = read(entry.path)
            notes[entry.path] = data, Lines.of(data, entry.path)
        data, note = notes[entry.path]
        if _plain(entry.words)[:_ENOUGH] in _plain("\n".join(note.texts())):
            remarks.append(f"{entry.path} still says it, about line {entry.line}.")
            continue
        day = shown_day(entry.path)
        head = [f"# {day or entry.path}", ""] if not note.lines else []
        first, *rest = entry.words.split("\n")
        item = [f"- {first}", *(f"  {line.strip()}" for line in rest)]
        notes[entry.path] = data, note.insert(len(note.lines) + 1, [*head, *item])
    single = len(spots) == 1
    title = f"Move {spots[0] if single else plural(len(spots), 'promoted entry')} back"
    change = delete_lines(spots, kind="move back", title=title)
    back = [FileChange(path, data, note.data) for path, (data, note) in notes.items() if note.data != (data or b"")]
    # Notes get their lines before MEMORY.md loses them, so that nothing is lost in between.
    return replace(change, files=(*back, *change.files), notes=(*change.notes, *dict.fromkeys(remarks)))


def _plain(text: str) -> str:
    return " ".join(_MARK.sub("", text).lower().split())


# --- links that follow -----------------------------------------------------------------------------------------------


def follow(change: Change, moves: Mapping[str, str], texts: Mapping[str, bytes], paths: Iterable[str]) -> Change:
    """`change`, which moves notes (new paths by old ones), with all links in `texts` led to where they led before.

    `paths` are the stored paths of all notes. A note that is UTF-16 keeps its links as they are, and says so.
    """
    before, after = Names(paths), Names([*(set(paths) - moves.keys()), *moves.values()])
    files = {file.path: file for file in change.files}
    notes = list(change.notes)
    for path, data in texts.items():
        try:
            new = _led(data, path, moves, before, after)
        except EditRefused as error:
            notes.append(error.message)
            continue
        if new == data:
            continue
        target = moves.get(path, path)
        files[target] = replace(files[target], after=new) if target in files else FileChange(path, data, new)
    # Notes come before others go, so that nothing is lost in between.
    ordered = sorted(files.values(), key=lambda file: file.after is None)
    led = len(files) - len(change.files)
    if led:
        notes.append(f"Links in {plural(led, 'other note')} follow.")
    return replace(change, files=tuple(ordered), notes=tuple(notes))


def _led(data: bytes, path: str, moves: Mapping[str, str], before: Names, after: Names) -> bytes:
    """The note `path` with every link spelled so that it leads where it led."""
    lines = Lines.of(data, path)
    here = moves.get(path, path)
    out = list(lines.lines)
    for link in reversed(links(path, "\n".join(lines.texts()), before)):
        target = moves.get(link.target, link.target)
        if not target or (after.find(link.written, here) == target and not _strays(link, path, here, target)):
            continue
        text, end = bare(out[link.line - 1]), end_of(out[link.line - 1])
        spelled = text[link.start : link.end].replace(link.written, _spelled(link, target, here, after), 1)
        out[link.line - 1] = text[: link.start] + spelled + text[link.end :] + end
    return Lines(lines.bom, tuple(out)).data


def _strays(link: NoteLink, path: str, here: str, target: str) -> bool:
    """Whether a link that other programs could follow, from the note's own folder, is one no more."""
    return _beside(link.written, path) == link.target and _beside(link.written, here) != target


def _beside(written: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(written)))


def _spelled(link: NoteLink, target: str, here: str, names: Names) -> str:
    """How a link in the note `here` names `target`: in the way it was written, as far as that leads there."""
    name = target.rpartition("/")[2].removesuffix(".md")
    if link.kind == "wiki":
        return name if "/" not in link.written and names.find(name, here) == target else target.removesuffix(".md")
    beside = posixpath.relpath(target, posixpath.dirname(here) or ".")
    from_top = posixpath.normpath(link.written) == link.target
    path = target if from_top and names.find(target, here) == target else beside
    return quote(path, safe="/") if link.kind == "markdown" and (" " in path or "%" in link.written) else path


class Planner(Struct, frozen=True):
    """Plans changes of the notes below `roots`; `clock` gives epoch seconds. Every method may raise EditRefused,
    PathRefused and Unreadable.
    """

    roots: Roots
    clock: Callable[[], float]
    hosts: tuple[HostLimit, ...] = ()
    """Who reads the curated note, for what a change does to its budget."""
    links: LinkIndex | None = None
    """Where links are looked for, so that they follow a note that moves."""
    trust: Trust | None = None
    """OpenClaw's ledger, for what a change does to the trust of a note."""
    zone: dt.tzinfo | None = None
    """The user's time zone, None for this machine's."""

    def now(self) -> dt.datetime:
        """The time in the user's zone, in which days are counted."""
        return dt.datetime.fromtimestamp(self.clock(), dt.UTC).astimezone(self.zone)

    def memory(self) -> str:
        """The path of the curated note: MEMORY.md, or memory.md where only that is there."""
        return next((name for name in ROOT_NOTES if current(self.roots, name) is not None), ROOT_NOTES[0])

    def spot(self, path: str, first: int, last: int | None = None, seen: ShownLines | None = None) -> Spot:
        """Lines of a note; without `last` the list item or paragraph that line `first` belongs to.

        With `seen` the numbers are of the lines that a person saw: they are found where they stand now.
        """
        path = self._stored(path)
        data = current(self.roots, path)
        if data is None:
            raise NoteMissing(f"There is no note {path}.", "Look for its path in the list of files.")
        note = Lines.of(data, path)
        if seen is not None:
            found_at = seen.now_at(first, last or first, note)
            if found_at is None:
                raise EditRefused(
                    f"These lines of {path} changed after you saw them.",
                    "Nothing was changed. Look at them again.",
                )
            first, last = found_at[0], None if last is None else found_at[1]
        texts = note.texts()
        if last is None and 1 <= first <= len(texts):
            first, last = block_at(texts, first)
        place = Spot(path, data, first, last if last is not None else first)
        place.lines()
        return place

    def remember(self, text: str) -> Change:
        """Append `text` with the time to today's log; Codex's memory gets a note of its own, which Codex takes up."""
        now = self.now()
        if codex.is_memory(self.roots.workspace):
            return self._note_for_codex("capture", f"{_words(text)}\n")
        path = log_path(now.date())
        return self.with_trust(capture(text, now, current(self.roots, path), self._log_before(path)))

    def beginning(self, path: str) -> str:
        """The text that a daily log which is not there begins with, its heading like that of the log before it."""
        day = shown_day(path)
        return beginning(day, self._log_before(path)) if day is not None else ""

    def _log_before(self, path: str) -> bytes | None:
        """The last daily log before `path`, None without one."""
        logs = [
            note.path
            for note in scan(self.roots).notes
            if note.path.count("/") == 1 and shown_day(note.path) and note.path < path
        ]
        return current(self.roots, logs[-1]) if logs else None

    def new_note(self, title: str, body: str = "", path: str = "") -> Change:
        """A new topic note, at `path` or where its title says. Raises EditRefused when something is there."""
        path = self._stored(path or topic_path(title))
        self._vacant(path)
        return self.with_trust(new_note(path, title, body))

    def edit(self, path: str, before: bytes | None, text: str) -> Change:
        """What an editor made of a note: `before` are the bytes it was opened with, `text` is the new text."""
        return self.with_trust(edit(self._stored(path), before, text))

    def choices(self, spot: Spot, target: str = "") -> list[promoting.RankedSection]:
        """The headings of `target` (the curated note) that the lines could go below, the best first."""
        data = current(self.roots, target or self.memory())
        return promoting.ranked(Lines.of(data).texts(), "\n".join(spot.texts()), spot.heading())

    def promote(self, spot: Spot, *, to: str = "", move: bool = False, target: str = "") -> Change:
        """Copy or move lines to the curated note, below the heading `to` or the one that fits.

        In Claude Code's memory they become a fact of the type `to`, and MEMORY.md points to it.
        """
        target = self._stored(target or self.memory())
        if codex.is_memory(self.roots.workspace) and target in ROOT_NOTES:
            body = "\n".join(line for run in spot.facts() for line in run)
            return self._note_for_codex("promote", f"{body}\n\n(from {spot.path})\n")
        if self._is_claude_index(target):
            into = current(self.roots, target)
            return self._budgeted(promoting.promote_fact(spot, target, into, self._is_free, kind=to, move=move))
        return self._budgeted(promoting.promote(spot, target, current(self.roots, target), to=to, move=move))

    def promote_all(self, places: Sequence[tuple[str, int, int]]) -> Change:
        """Copy lines of several places to the curated note as one change.

        A place is path, first and last line, 0 for the end of the note; lines that are not there any more are none.
        """
        spots = []
        for path, first, last in places:
            data = self._note(path).before
            most = max(1, len(Lines.of(data, path).lines))
            spots.append(Spot(self._stored(path), data, min(first, most), min(last or most, most)))
        target = self._stored(self.memory())
        into = current(self.roots, target)
        if codex.is_memory(self.roots.workspace):
            whence = list(dict.fromkeys(spot.path for spot in spots))
            body = "\n".join(line for spot in spots for run in spot.facts() for line in run)
            return self._note_for_codex("promote", f"{body}\n\n(from {', '.join(whence)})\n")
        new_paths: set[str] = set()

        def plan(spot: Spot, so_far: bytes | None) -> Change:
            if not self._is_claude_index(target):
                return promoting.promote(spot, target, so_far)
            fact = promoting.promote_fact(
                spot, target, so_far, lambda path: path not in new_paths and self._is_free(path)
            )
            new_paths.update(fact.paths)
            return fact

        return self._budgeted(promoting.promote_all(spots, target, into, plan))

    def demote(self, spot: Spot, target: str, *, to: str = "", move: bool = True) -> Change:
        """Move lines to the topic note `target`, a path or a title."""
        path = self._stored(target if target.endswith(".md") else topic_path(target))
        return self._budgeted(promoting.demote(spot, path, current(self.roots, path), to=to, move=move))

    def delete_lines(self, spots: Iterable[Spot], *, kind: str = "delete", title: str = "") -> Change:
        """Delete lines; with the kind "trash" the journal lists them as moved to the trash."""
        return self.with_trust(delete_lines(spots, kind=kind, title=title))

    def merge_duplicates(self, keep: Spot, others: Iterable[Spot]) -> Change:
        """Keep the lines of one spot and delete the others."""
        return self.with_trust(merge_duplicates(keep, tuple(others)))

    def trash(self, *paths: str) -> Change:
        """Move notes to the trash as one change: they are deleted, and the journal can bring them back."""
        if not paths:
            raise EditRefused("No note is chosen.", "Choose at least one.")
        what = plural(len(paths), "note") if len(paths) > 1 else self._stored(paths[0])
        return self.with_trust(Change("trash", f"Move {what} to the trash", tuple(self._note(path) for path in paths)))

    def rename(self, path: str, new: str) -> Change:
        """Give a note another path; links to it follow. Raises EditRefused when something is there."""
        target, note = self._stored(new), self._note(path)
        if note.path == target:
            raise EditRefused(f"The note is called {target} already.", "Choose another name.")
        self._vacant(target)
        return self._relinked(Change("rename", f"Rename {note.path} to {target}", _moved(note, target)))

    def archive(self, days: int, only: Collection[str] | None = None) -> Change:
        """Move daily logs older than `days`, or those of them in `only`, to memory/archive/memory/; links follow.

        Only logs directly below memory/ with a day in their name are moved. What else is in `only` stays, and a note
        says so. Raises EditRefused when there are none.
        """
        today = self.now().date()
        paths = [note.path for note in scan(self.roots).notes]
        old = [
            path
            for path in paths
            if path.startswith("memory/")
            and path.count("/") == 1
            and (day := shown_day(path)) is not None
            and (today - day).days > days
            and (only is None or path in only)
        ]
        targets = {path: f"{ARCHIVE}/{path.rpartition('/')[2]}" for path in sorted(old)}
        moved = {path: target for path, target in targets.items() if target not in paths}
        notes = (
            *(f"{targets[path]} is there already, so {path} stays." for path in targets.keys() - moved.keys()),
            *(
                f"{path} stays: only daily logs of earlier days are archived."
                for path in sorted(set(only or ()).difference(old))
            ),
        )
        if not moved:
            aged = f"is older than {days} days" if days else "of an earlier day is among them"
            raise EditRefused(f"No daily log {aged}.", " ".join(notes) or "Nothing was moved.")
        files = tuple(file for path, target in moved.items() for file in _moved(self._note(path), target))
        many = plural(len(moved), "log") if len(moved) > 1 else next(iter(moved))
        aged = f" older than {days} days" if days else ""
        return self._relinked(Change("archive", f"Archive {many}{aged} to {ARCHIVE}/", files, notes))

    def budget(self, data: bytes | None = None) -> tuple[Budget, ...]:
        """How the curated note stands with each host; with `data` as if that was in it."""
        name = self.memory()
        text = current(self.roots, name) if data is None else data
        return tuple(budget.measure(text, host, name) for host in self.hosts)

    def _relinked(self, change: Change) -> Change:
        """`change` with the links of all notes to those that it moves, and of those that it moves, led there."""
        moves = moved_notes(change)
        if self.links is None or not moves:
            return self.with_trust(change)
        texts = {path: data for path in self.links.sources(moves) if (data := current(self.roots, path)) is not None}
        return self.with_trust(follow(change, moves, texts, self.links.paths()))

    def _budgeted(self, change: Change) -> Change:
        """`change` with what it does to the curated note's budget among its notes."""
        effects = tuple(
            budget.effect(file.before, file.after, host)
            for file in change.files
            if file.path in ROOT_NOTES
            for host in self.hosts
            if host.limit
        )
        return self.with_trust(replace(change, notes=change.notes + effects))

    def with_trust(self, change: Change) -> Change:
        """`change` with what it does to the trust of notes among its notes."""
        if self.trust is None:
            return change
        files = [(file.path, file.before, file.after) for file in change.files]
        return replace(change, notes=change.notes + self.trust.effects(files, self.clock()))

    def _stored(self, path: str) -> str:
        """The path under which a note is stored. Raises PathRefused."""
        return destination(self.roots, path)[2]

    def _note_for_codex(self, kind: str, text: str) -> Change:
        """A note that tells Codex what to remember: Codex makes MEMORY.md anew, and would lose a line in it."""
        path = self._stored(codex.note_path(text, self.now()))
        self._vacant(path)
        title = f"Remember in {path}: {masked(text.splitlines()[0])[:60]}"
        change = Change(kind, title, (FileChange(path, None, text.encode("utf-8", "replace")),))
        return self.with_trust(replace(change, notes=("Codex takes it up when it next makes its memory.",)))

    def _is_claude_index(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return name == claude_memory.INDEX and claude_memory.in_folders(path, claude_memory.folders(self.roots))

    def _is_free(self, path: str) -> bool:
        return current(self.roots, path) is None

    def _vacant(self, path: str) -> None:
        with parent(self.roots, path) as (folder, name):
            if folder is not None and folder.status(name) is not None:
                raise EditRefused(f"There is a note {path} already.", "Choose another name.")

    def _note(self, path: str) -> FileChange:
        """Return a note as a file that goes. Raises NoteMissing."""
        path = self._stored(path)
        mode, mtime_ns = standing(self.roots, path)
        if (data := current(self.roots, path)) is None:
            raise NoteMissing(f"There is no note {path}.", "Look for its path in the list of files.")
        return FileChange(path, data, None, mode, mtime_ns)
