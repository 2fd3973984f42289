"""An edit is planned, then made: the planner turns a wish into new text, the curator previews, writes and undoes it.

Whose bytes an edit in another program holds cannot be told: an agent may have written to the note meanwhile. So that
change says what the note was before and after, and names the changes of the journal that were made in between.

Making a change waits for the disk, for the journal and at worst a second or two for another program, so it belongs on
a worker thread. Planning reads one or two notes and writes nothing.

Archived logs go to memory/archive/memory/. They stay readable and searchable, and they go on ageing: OpenClaw 2026.3
ages a note by the day in its name only directly below a folder called memory, so that in memory/archive/ alone an old
log would count as evergreen and rank above newer ones.
"""

from __future__ import annotations

import datetime as dt
import os
import posixpath
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.config import places
from memory_tui.config.places import journal_folder
from memory_tui.errors import EditRefused, MemoryTuiError
from memory_tui.formatting import one_line, plural
from memory_tui.hosts import claude_code, codex
from memory_tui.notes import budget, changes
from memory_tui.notes import journal as journals
from memory_tui.notes import promote as promoting
from memory_tui.notes.budget import Budget, HostLimit
from memory_tui.notes.changes import HEADING, ITEM, Change, Conflict, FileChange, Lines, ReadOnly, ShownLines, ThreeWay
from memory_tui.notes.journal import Journal, JournalEntry
from memory_tui.notes.links import LinkIndex, follow, mentions
from memory_tui.notes.promote import Spot
from memory_tui.notes.write import SameLinesChanged, current, deadline, planned, standing, tag, write
from memory_tui.openclaw import trust as trusted
from memory_tui.openclaw.dreaming import require_whole
from memory_tui.openclaw.trust import Trust
from memory_tui.plan import Plan
from memory_tui.secrets.finder import masked
from memory_tui.workspace.notes import is_overtaken, marked, shown_day
from memory_tui.workspace.roots import ROOT_NOTES, NoteMissing, Roots, destination, scan

ARCHIVE = "memory/archive/memory"
_TIMED = re.compile(r"([-*+]\s+)(\*\*|\[|\(|)\d{1,2}:\d{2}((?:\*\*|\]|\)|)(?::?\s*[-–—]\s+|:\s+|\s+))")
"""An entry with a time: its mark, and what stands before and behind the time."""
_MARK = re.compile(r"\A\s*[-*+](\s+|\Z)")
"""The mark of an item before a text: an entry has its own."""
_MOST = 20_000
"""Characters of the longest text that is captured."""


class Planner(Struct, frozen=True):
    """Plans changes of the notes below `roots`; `clock` gives epoch seconds. Every method may raise EditRefused,
    PathRefused and Unreadable.
    """

    roots: Roots
    clock: Callable[[], float]
    links: LinkIndex
    """Where links are looked for, so that they follow a note that moves."""
    hosts: tuple[HostLimit, ...] = ()
    """Who reads the curated note, for what a change does to its budget."""
    trust: Trust | None = None
    """OpenClaw's ledger, for what a change does to the trust of a note."""
    zone: dt.tzinfo | None = None
    """The user's time zone, None for this machine's."""

    def now(self) -> dt.datetime:
        """Return the time in the user's zone, in which days are counted."""
        return dt.datetime.fromtimestamp(self.clock(), dt.UTC).astimezone(self.zone)

    def memory(self) -> str:
        """Return the path of the curated note: MEMORY.md, or memory.md where only that is there."""
        return next((name for name in ROOT_NOTES if current(self.roots, name) is not None), ROOT_NOTES[0])

    def spot(self, path: str, first: int, last: int | None = None, seen: ShownLines | None = None) -> Spot:
        """Return lines of a note; without `last` the list item or paragraph that line `first` belongs to.

        With `seen` the numbers are of the lines that a person saw: they are found where they stand now.
        """
        # The block is looked for when it is known where the line stands now.
        is_block = last is None
        last = first if last is None else last
        note = self._note(path)
        lines = Lines.of(note.before, note.path)
        if seen is not None:
            if (now := seen.now_at(first, last, lines)) is None:
                what = f"These lines of {note.path} changed after you saw them."
                raise EditRefused(what, "Nothing was changed. Look at them again.")
            first, last = now
        if is_block and 1 <= first <= len(lines.lines):
            first, last = changes.block_at(lines.texts(), first)
        lines.check(first, last, note.path)
        return Spot(note.path, note.before, first, last)

    # --- new text ----------------------------------------------------------------------------------------------------

    def remember(self, text: str) -> Change:
        """Append `text` with the time to today's log; Codex's memory gets a note of its own, which Codex takes up."""
        now = self.now()
        if codex.is_memory(self.roots.workspace):
            return self._note_for_codex("capture", f"{_words(text)}\n")
        return self.with_trust(capture(text, now, current(self.roots, f"memory/{now.date().isoformat()}.md")))

    def supersede(self, text: str, place: Spot) -> Change:
        """Append `text` to today's log, with the line that it overtakes; that one stays, with a mark and the day.

        Of a heading it is the first line below that says something.
        """
        place = self.said(place)
        change = self.remember(f"{text.rstrip()} (supersedes {place.path}:{place.first})")
        log = change.files[0]
        title = f"Add to {log.path}, and mark {place} as superseded"
        if log.path != place.path:
            return replace(change, title=title, files=(*change.files, *self.overtaken([place]).files))
        # The new line stands at the end of the same log, so that the number of the older one holds.
        with_mark = self._superseded(Lines.of(log.after, log.path), {place.first})
        return replace(change, title=title, files=(replace(log, after=with_mark),))

    def said(self, place: Spot) -> Spot:
        """Return the first item or paragraph that says something, from the first line of `place` on."""
        lines = enumerate(place.lines().texts()[place.first - 1 :], place.first)
        first = next((number for number, line in lines if line.strip() and not HEADING.match(line)), None)
        if first is None:
            raise EditRefused(f"{place} says nothing.", "Name a line of words.")
        return self.spot(place.path, first)

    def overtaken(self, spots: Sequence[Spot]) -> Change:
        """Mark the first line of each spot as superseded today; nothing is deleted."""
        files = []
        for path, spot in {spot.path: spot for spot in spots}.items():
            numbers = {spot.first for spot in spots if spot.path == path}
            files.append(FileChange(path, spot.data, self._superseded(spot.lines(), numbers)))
        return self.with_trust(Change("edit", f"Mark {', '.join(map(str, spots[:3]))} as superseded", tuple(files)))

    def _superseded(self, note: Lines, numbers: Collection[int]) -> bytes:
        """Return a note with the mark of today on those lines of it that have none."""
        day = self.now().date().isoformat()
        lines = (
            marked(line, day) if number in numbers and not is_overtaken(line) else line
            for number, line in enumerate(note.lines, 1)
        )
        return Lines(note.bom, tuple(lines)).data

    def beginning(self, path: str) -> str:
        """Return the text that a daily log which is not there begins with; empty for any other note."""
        day = shown_day(path)
        return "" if day is None else f"# {day.isoformat()}\n\n"

    def new_note(self, title: str) -> Change:
        """Make a topic note where its title says. Raises EditRefused when something is there."""
        path = self._vacant(topic_path(title))
        text = f"# {title.strip()}\n\n".encode("utf-8", "replace")
        return self.with_trust(Change("new", f"New note {path}", (FileChange(path, None, text),)))

    def edit(self, path: str, before: bytes | None, text: str) -> Change:
        """Return what an editor made of a note: `before` are the bytes it was opened with, `text` is the new text."""
        path = self._stored(path)
        return self.with_trust(
            Change("edit", f"Edit {path}", (FileChange(path, before, changes.edited(before, text, path)),))
        )

    # --- lines to another note ---------------------------------------------------------------------------------------

    def choices(self, spot: Spot) -> Sequence[str]:
        """Return the titles of the curated note that the lines could go below, the best first, equal ones once.

        Titles that differ in letter case alone are equal.
        """
        texts = Lines.of(current(self.roots, self._target())).texts()
        titles: dict[str, str] = {}
        for _, section in promoting.ranked(texts, "\n".join(spot.texts()), spot.around()):
            titles.setdefault(section.title.casefold(), section.title)
        return list(filter(None, titles.values()))

    def promote(self, spot: Spot, *, to: str = "", move: bool = False) -> Change:
        """Copy or move lines to the curated note, below the heading `to` or the one that fits."""
        if codex.is_memory(self.roots.workspace):
            return self._promote_for_codex([spot])
        target = self._target()
        return self._budgeted(promoting.promote(spot, target, current(self.roots, target), to=to, move=move))

    def promote_all(self, places: Sequence[tuple[str, int, int]]) -> Change:
        """Copy lines of several places to the curated note as one change, each part where it fits.

        A place is path, first and last line, 0 for the end of the note; one that goes on behind the end of the note
        stops there.
        """
        spots = []
        for path, first, last in places:
            note = self._note(path)
            most = max(1, len(Lines.of(note.before, note.path).lines))
            spots.append(Spot(note.path, note.before, min(first, most), min(last or most, most)))
        if codex.is_memory(self.roots.workspace):
            return self._promote_for_codex(spots)
        target = self._target()
        if not (parts := promoting.parts(spot for spot in spots if spot.path != target)):
            raise EditRefused("No lines are chosen that could be promoted.", "Choose lines with text of other notes.")
        before = after = current(self.roots, target)
        notes: list[str] = []
        for part in parts:
            change = promoting.promote(part, target, after)
            after = change.files[0].after
            notes += change.notes
        count = sum(line.strip() != "" for part in parts for line in part.texts())
        sources = {part.path for part in parts}
        source = plural(len(sources), "note") if len(sources) > 1 else parts[0].path
        title = f"Promote {plural(count, 'line')} of {source} to {target}"
        change = Change("promote", title, (FileChange(target, before, after),), tuple(dict.fromkeys(notes)))
        return self._budgeted(change)

    def demote(self, spot: Spot, target: str) -> Change:
        """Move lines to the topic note `target`, a path or a title, whole sections as they are."""
        path = self._stored(target if target.endswith(".md") else topic_path(target))
        return self._budgeted(promoting.demote(spot, path, current(self.roots, path)))

    # --- lines and notes that go or move -----------------------------------------------------------------------------

    def delete_lines(
        self, spots: Iterable[Spot], *, kind: str = "delete", title: str = "", keep: Spot | None = None
    ) -> Change:
        """Delete lines of notes; with the kind "trash" the journal lists them as moved to the trash.

        A line that two spots name is deleted once. Headings that have nothing left below them go too, but none that is
        a line of `keep`.
        """
        by_path: dict[str, list[Spot]] = defaultdict(list)
        for spot in spots:
            by_path[spot.path].append(spot)
        if not by_path:
            raise EditRefused("No lines are chosen.", "Choose at least one.")
        files, notes = list[FileChange](), list[str]()
        for path, chosen in by_path.items():
            # `lines()` is called because it raises EditRefused for a spot that is not there.
            numbers = {number for spot in chosen if spot.lines() for number in range(spot.first, spot.last + 1)}
            protected = range(keep.first, keep.last + 1) if keep is not None and keep.path == path else ()
            remaining, emptied = promoting.without(chosen[0].lines(), numbers, protected)
            files.append(FileChange(path, chosen[0].data, remaining.data))
            notes += emptied
        if not title:
            what = ", ".join(str(spot) for chosen in by_path.values() for spot in chosen[:3])
            title = f"Move {what} to the trash" if kind == "trash" else f"Delete {what}"
        return self.with_trust(Change(kind, title, tuple(files), tuple(notes)))

    def merge_duplicates(self, keep: Spot, others: Iterable[Spot]) -> Change:
        """Keep the lines of one spot and delete the others. Raises EditRefused when one of them is the kept one."""
        others = tuple(others)
        # Two runs of lines overlap where each begins before the other ends.
        if any(spot.path == keep.path and spot.first <= keep.last and keep.first <= spot.last for spot in others):
            raise EditRefused(f"{keep} cannot be both kept and deleted.", "Choose which one to keep.")
        # Raises EditRefused where the lines to keep are not there.
        keep.lines()
        removed = ", ".join(map(str, others[:3])) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        return self.delete_lines(others, kind="merge", title=f"Keep {keep}, delete {removed}", keep=keep)

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
        return self._moved({note.path: self._vacant(target)}, "rename", f"Rename {note.path} to {target}")

    def archive(self, days: int) -> Change:
        """Move daily logs older than `days` to memory/archive/memory/; links follow.

        Only logs directly below memory/ with a day in their name are moved. Raises EditRefused when there are none.
        """
        today = self.now().date()
        paths = {note.path for note in scan(self.roots).notes}
        logs = [(path, shown_day(path)) for path in sorted(paths) if posixpath.dirname(path) == "memory"]
        old = [path for path, day in logs if day is not None and (today - day).days > days]
        targets = {path: f"{ARCHIVE}/{posixpath.basename(path)}" for path in old}
        notes = [f"{target} is there already, so {path} stays." for path, target in targets.items() if target in paths]
        if not (moved := {path: target for path, target in targets.items() if target not in paths}):
            raise EditRefused(f"No daily log is older than {days} days.", " ".join(notes) or "Nothing was moved.")
        what = plural(len(moved), "log") if len(moved) > 1 else next(iter(moved))
        return self._moved(moved, "archive", f"Archive {what} older than {days} days to {ARCHIVE}/", notes)

    # --- what a change does ------------------------------------------------------------------------------------------

    def budget(self, data: bytes | None = None) -> tuple[Budget, ...]:
        """Return how the curated note stands with each host; with `data` as if that was in it."""
        name = self.memory()
        text = current(self.roots, name) if data is None else data
        return tuple(budget.measure(text, host, name) for host in self.hosts)

    def with_trust(self, change: Change) -> Change:
        """Return `change` with what it does to the trust of notes, and the secrets it brings back, among its notes."""
        files = [(file.path, file.before, file.after) for file in change.files]
        effects = self.trust.effects(files) if self.trust is not None else ()
        return replace(change, notes=change.notes + effects + changes.unmaskings(change))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _target(self) -> str:
        """Return the curated note. Raises EditRefused where it is the index of Claude Code's memory."""
        target = self.memory()
        if claude_code.in_folders(target, claude_code.folders(self.roots)):
            step = "Write a note of its own, and a line in the index that points to it."
            raise EditRefused(f"{target} is Claude Code's index of facts.", step)
        return target

    def _promote_for_codex(self, spots: Sequence[Spot]) -> Change:
        """Return the change that tells Codex to remember these lines, with the notes that they are from."""
        body = "\n".join(line for spot in spots for run in spot.facts() for line in run)
        sources = ", ".join(dict.fromkeys(spot.path for spot in spots))
        return self._note_for_codex("promote", f"{body}\n\n(from {sources})\n")

    def _note_for_codex(self, kind: str, text: str) -> Change:
        """Make a note that tells Codex what to remember: Codex makes MEMORY.md anew, and would lose a line in it."""
        path = self._vacant(codex.note_path(text, self.now()))
        title = f"Add {path}: {masked(text.splitlines()[0])[:60]}"
        file = FileChange(path, None, text.encode("utf-8", "replace"))
        return self.with_trust(Change(kind, title, (file,), ("Codex takes it up when it next makes its memory.",)))

    def _moved(self, targets: Mapping[str, str], kind: str, title: str, notes: Iterable[str] = ()) -> Change:
        """Give notes other paths, with their bytes, mode and time, and lead the links of all notes there."""
        old = [self._note(path) for path in targets]
        new = [replace(note, path=targets[note.path], before=None, after=note.before) for note in old]
        # Notes come before others go, so that nothing is lost in between.
        change = Change(kind, title, (*new, *(FileChange(note.path, note.before, None) for note in old)), tuple(notes))
        # The notes that move, and those that link to one of them.
        texts = {path: data for path in self.links.sources(targets) if (data := current(self.roots, path)) is not None}
        change = follow(change, texts, paths := self.links.paths())
        return self.with_trust(replace(change, notes=(*change.notes, *mentions(self.roots, targets, paths))))

    def _budgeted(self, change: Change) -> Change:
        """Return `change` with what it does to the curated note's budget among its notes."""
        curated = [file for file in change.files if file.path in ROOT_NOTES]
        hosts = [host for host in self.hosts if host.limit]
        effects = tuple(budget.effect(file.before, file.after, host) for file in curated for host in hosts)
        return self.with_trust(replace(change, notes=change.notes + effects))

    def _stored(self, path: str) -> str:
        """Return the path under which a note is stored. Raises PathRefused."""
        _root, _absolute, stored = destination(self.roots, path)
        return stored

    def _vacant(self, path: str) -> str:
        """Return the path under which a note is stored that is not there yet. Raises EditRefused, PathRefused."""
        path = self._stored(path)
        # Mode and time are both 0 only where nothing is there.
        if any(standing(self.roots, path)):
            raise EditRefused(f"There is a note {path} already.", "Choose another name.")
        return path

    def _note(self, path: str) -> FileChange:
        """Return the change that removes a note, with its mode and time. Raises NoteMissing."""
        path = self._stored(path)
        mode, mtime_ns = standing(self.roots, path)
        if (data := current(self.roots, path)) is None:
            raise NoteMissing(f"There is no note {path}.", "Look for its path in the list of files.")
        return FileChange(path, before=data, after=None, mode=mode, mtime_ns=mtime_ns)


def topic_path(title: str) -> str:
    """Return a stored path for a topic of this title: letters and digits of any script, joined by hyphens."""
    if not (name := "-".join(re.findall(r"\w+", title.casefold()))[:60].strip("-")):
        raise EditRefused("A topic needs a name with letters or digits.", "For instance: network.")
    return f"memory/{name}.md"


# --- what is remembered ----------------------------------------------------------------------------------------------


def capture(text: str, now: dt.datetime, log: bytes | None) -> Change:
    """Append `- HH:MM text` to today's `log`, in its style; None where there is none yet.

    Raises EditRefused for no text or too much.
    """
    words = _words(_MARK.sub("", text))
    day = now.date().isoformat()
    path = f"memory/{day}.md"
    old = Lines.of(log, path)
    texts = old.texts()
    # A log of blank lines counts as one that is not begun: it gets its heading.
    is_begun = "".join(texts).strip() != ""
    above = _gap(texts) if is_begun else [f"# {day}", ""]
    base = old if is_begun else Lines(old.bom, ())
    new = base.insert(len(base.lines) + 1, [*above, *_entry(words, now, texts)])
    # A secret is looked for before the line is cut, because half of it would not be known for one.
    title = f"Add to {path}: {one_line(masked(words.splitlines()[0]), 60)}"
    return Change("capture", title, (FileChange(path, log, new.data),))


def _words(text: str) -> str:
    """Return a text without blanks at its ends and those of its lines. Raises EditRefused for none, or too much."""
    words = "\n".join(line.rstrip() for line in re.split("\r\n?|\n", text)).strip().replace("\0", "")
    if not words:
        raise EditRefused("There is nothing to remember.", 'For instance: memory-tui remember "Bins go out on Friday".')
    if len(words) > _MOST:
        what = f"The text has {len(words):,} characters; at most {_MOST:,} are captured."
        raise EditRefused(what, "Make a note of its own of it.")
    return words


def _entry(words: str, now: dt.datetime, style: list[str]) -> list[str]:
    """Return the lines of an entry, written as the last entry with a time, else with the mark of the last item."""
    # What stands before and behind the time in the entries, and the marks of bullet lists; the last of each is taken.
    # `style` are the lines of the log so far.
    timed = [match.groups() for line in style if (match := _TIMED.match(line))]
    marks = ["-", *(match[2] for line in style if (match := ITEM.match(line)) and match[2] in "-*+")]
    mark, before_time, after_time = timed[-1] if timed else (f"{marks[-1]} ", "", " ")
    first, *rest = words.split("\n")
    indented = (" " * len(mark) + line if line else "" for line in rest)
    return [f"{mark}{before_time}{now:%H:%M}{after_time}{first}", *indented]


def _gap(texts: list[str]) -> list[str]:
    """Return the lines to put in front of a new entry at the end of `texts`: a blank one, or none.

    None is needed behind another entry, and behind a line that is blank already.
    """
    last = texts[-1]
    # What is indented belongs to the item above it.
    outer = [line for line in texts if ITEM.match(line) or not line.startswith((" ", "\t"))]
    follows_item = bool(outer) and ITEM.match(outer[-1]) is not None and not HEADING.match(last)
    return [] if follows_item or not last.strip() else [""]


# --- the curator -----------------------------------------------------------------------------------------------------


class ExternalEdit(Struct, frozen=True):
    """A note as another program gets it: its stored and absolute path, and its bytes `before`.

    `was` are mode and time (ns) of its file; `last` is the number of the journal's newest change, 0 for none.
    """

    path: str
    absolute: str
    before: bytes | None
    was: tuple[int, int]
    last: int


class AppliedChange(Struct, frozen=True):
    """A change that was made. `change` is as it came out; `merged` names notes where others' changes were kept too."""

    entry: JournalEntry
    change: Change
    merged: tuple[str, ...] = ()


Changed = Callable[[tuple[str, ...]], object]
"""Is called with the paths of the notes that a change was made to; `len` takes them and does nothing."""


class Curator:
    """Changes of notes, with their `journal`. Every method may be called from any thread.

    `plan` makes the changes that `apply` writes, unless the notes are `read_only`; `changed` is called after each
    change with its paths.
    """

    def __init__(self, plan: Planner, journal: Journal, *, read_only: bool = False, changed: Changed = len) -> None:
        self.plan, self.roots = plan, plan.roots
        self.journal, self.read_only, self._changed = journal, read_only, changed

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a note now, None when it is not there. Raises PathRefused, Unreadable."""
        return current(self.roots, path)

    # --- making ------------------------------------------------------------------------------------------------------

    def apply(self, change: Change, *, merging: bool = True, draft: int = 0) -> AppliedChange:
        """Make `change`. What others changed meanwhile is kept by a merge where it does not touch.

        `draft` is the one that an earlier attempt left: it goes when the change is made, and holds the newer text when
        it is not. Raises Conflict, its text kept as a draft, when it touches or with `merging` off; ReadOnly, Busy,
        NothingToChange, EditRefused, PathRefused, Unreadable. Then every note is as others left it.
        """
        if self.read_only:
            raise ReadOnly("memory-tui was started with --read-only.", "Start without --read-only to change notes.")
        with self.journal.locked():
            self._settle()
            until = deadline()
            # Again as long as somebody writes between the plan and the write, up to the deadline.
            for attempt in count():
                try:
                    files = planned(self.roots, change.files, merging=merging)
                except SameLinesChanged as news:
                    raise self._conflict(change, news.view, draft) from None
                # An undo is written down even where somebody took the change back by hand.
                if not files and attempt == 0 and not change.of:
                    self._forget(draft)
                    raise changes.NothingToChange("The notes already have this change.", "Nothing was written.")
                for file in files if change.kind not in ("undo", "redo", "restore") else ():
                    require_whole(file.path, file.before, file.after)
                try:
                    entry, result = self._written(change, files, until)
                    break
                except SameLinesChanged as news:
                    # Somebody changed the same lines during the writing. Planning again tells whether they still clash.
                    if time.monotonic() > until:
                        raise self._conflict(change, news.view, draft) from None
            self._forget(draft)
        self._changed(change.paths)
        # A file that came out otherwise than it was wished has what others wrote, too.
        wishes = {file.path: (file.before, file.after) for file in change.files}
        merged = tuple(file.path for file in result if wishes[file.path] != (file.before, file.after))
        return AppliedChange(entry, replace(change, files=result), merged)

    def resolve(self, conflict: Conflict, data: bytes) -> AppliedChange:
        """Make the whole change of `conflict`, with `data` for the note that both changed. Raises like `apply`."""
        view = conflict.view
        # Where others removed the note, empty `data` leave it removed.
        after = None if view.other is None and not data else data
        files = tuple(
            replace(file, before=view.other, after=after) if file.path == view.path else file
            for file in conflict.change.files
        )
        return self.apply(replace(conflict.change, files=files), draft=conflict.draft)

    def remember(self, text: str) -> AppliedChange:
        """Append `text` with the time to today's log, whatever others write to it. Raises like `apply`."""
        try:
            return self.apply(self.plan.remember(text))
        except Conflict as error:
            # Somebody has begun today's log in another way, or has gone on in its last line.
            return self.apply(self.plan.remember(text), draft=error.draft)

    def undo(self, number: int | None = None, *, merging: bool = False) -> AppliedChange:
        """Take back change `number`, or the last one that is not taken back yet.

        Raises Conflict when a note has changed since; with `merging` only when the same lines have.
        """
        return self.apply(self.preview("undo", number), merging=merging)

    def redo(self, number: int | None = None, *, merging: bool = False) -> AppliedChange:
        """Make change `number`, or the last one that was taken back, again. Raises like `undo`."""
        return self.apply(self.preview("redo", number), merging=merging)

    def preview(self, kind: str, number: int | None = None) -> Change:
        """Return what "undo" or "redo" would do. Raises EditRefused."""
        entries = self.journal.entries()
        stack = _stack(entries, kind)
        # `last` is what is taken back: the change itself, its undo, or the redo after that.
        for entry, last in stack:
            if number in (None, entry.id):
                files = tuple(file.reverse() for file in reversed(self.journal.change_of(last).files))
                return self.plan.with_trust(Change(kind, f"{kind.capitalize()}: {entry.title}", files, of=entry.id))
        step = "Run memory-tui history to list the changes."
        if stack:
            verb = "undone" if kind == "undo" else "redone"
            step = f"These can be {verb}: {', '.join(str(entry.id) for entry, _ in stack[:8])}."
        raise EditRefused(f"Nothing is left to {kind}." if number is None else _why_not(entries, number, kind), step)

    def begin_external_edit(self, path: str) -> ExternalEdit:
        """Return the note as it is before another program gets it. Raises PathRefused, Unreadable, EditRefused."""
        _root, absolute, stored = destination(self.roots, path)
        # Before the note is read, so that a change which is made in between counts as made meanwhile.
        last = max((edit.id for edit in self.journal.edits(most=1)), default=0)
        before = current(self.roots, stored)
        return ExternalEdit(stored, absolute, before=before, was=standing(self.roots, stored), last=last)

    def finish_external_edit(self, edit: ExternalEdit, program: str) -> AppliedChange | None:
        """Keep what became of a note while `program` had it as one change; None when it is as it was.

        Where the journal has changes of the note from meanwhile, this one begins where the last of them ended, so that
        each takes back its own. Raises Busy, PathRefused, Unreadable, EditRefused: then the note is as the program left
        it, without an entry.
        """
        reason = "what the note held when the editor opened and when it closed, whoever wrote it"
        with self.journal.locked():
            self._settle()
            before = edit.before
            after = current(self.roots, edit.path)
            later = self.journal.entries(edit.last)
            if meanwhile := [entry for entry in later if entry.state == "done" and edit.path in entry.paths]:
                before = self.journal.text(next(file.after for file in meanwhile[-1].files if file.path == edit.path))
                numbers = ", ".join(str(entry.id) for entry in meanwhile)
                reason += f"; it begins where change {numbers} of this journal ended, which was made meanwhile"
            if after == before:
                return None
            verb = "Make" if before is None else "Remove" if after is None else "Edit"
            title = f"{verb} {edit.path} in the outside editor {one_line(program, 40)}"
            change = Change("edit", title, (FileChange(edit.path, before, after, *edit.was),))
            entry = self.journal.record(change, reason, edit.last)
        self._changed((edit.path,))
        return AppliedChange(entry, change)

    def recover(self) -> tuple[JournalEntry, ...]:
        """Settle what an earlier process left half done; each entry has its reason. Raises EditRefused."""
        if self.read_only or not self.journal.unsettled():
            return ()
        with self.journal.locked():
            settled = journals.recover(self.roots, self.journal)
        self._changed(tuple(path for entry in settled for path in entry.paths))
        return settled

    # --- looking -----------------------------------------------------------------------------------------------------

    def stack(self, kind: str) -> tuple[JournalEntry, ...]:
        """Return the changes that can be taken back ("undo") or made again ("redo"), the next one first."""
        return tuple(entry for entry, _ in _stack(self.journal.entries(), kind))

    def forget_draft(self, number: int) -> None:
        """Throw a draft away. Raises EditRefused when there is none of that number."""
        with self.journal.locked():
            if not self._forget(number):
                raise EditRefused(f"There is no draft {number}.", "memory-tui history lists the drafts.")

    # --- inside ------------------------------------------------------------------------------------------------------

    def _written(
        self, change: Change, files: tuple[FileChange, ...], until: float
    ) -> tuple[JournalEntry, tuple[FileChange, ...]]:
        """Write `files`, which `change` was planned to; return the entry and the files as they came out.

        Raises SameLinesChanged; then nothing of it is left.
        """
        # What somebody took back by hand counts as taken back, with the texts that it takes to make it again.
        # Mode and time are those of before, so that an undo can give them back.
        recorded = tuple(
            FileChange(file.path, file.before, file.after, *standing(self.roots, file.path))
            for file in files or change.files
        )
        entry = self.journal.begin(replace(change, files=recorded))
        result = []
        # The hidden names of replaced files that a writer still has open.
        left: list[str] = []
        try:
            for number, file in enumerate(files):
                made, open_still = write(self.roots, file, tag(entry.id, number), until)
                result.append(replace(recorded[number], before=made.before, after=made.after))
                left += open_still
            done = replace(entry, state="done", left=journals.clear(self.roots, entry, left))
            # Without a result the journal keeps the texts that it has of the beginning.
            return self.journal.settle(done, result or None), tuple(result) or recorded
        except (SameLinesChanged, MemoryTuiError) as error:
            is_theirs = isinstance(error, SameLinesChanged)
            reason = "another program changed the same lines" if is_theirs else str(error)
            try:
                end = journals.settle(self.roots, self.journal, entry, reason)
            except (MemoryTuiError, OSError) as problem:
                what = f"{reason} It may be made in part, and that could not be settled: {problem}"
                raise changes.Unfinished(what, "The next start or change settles it.") from None
            # Only where every note has the change after all is it made in spite of the error.
            if end.state != "done" or end.reason:
                raise
            return end, self.journal.change_of(end).files

    def _conflict(self, change: Change, view: ThreeWay, draft: int) -> Conflict:
        """Return the error of a change that touches what others did; its text is kept, in the place of `draft`."""
        what = "was removed" if view.other is None else "is there already" if view.base is None else "has changed"
        if change.of:
            # The journal has this text already.
            step = "Change the note by hand; the journal shows the old text."
            if view.merge.merged is not None:
                step = "Your change and theirs are in different lines. Use --merge to keep both."
            return Conflict(f"{view.path} {what} since. Nothing was written.", step, view, change=change)
        number = self.journal.draft(view, change.title, draft).id
        message = f"{view.path} {what} since it was read, and the changes touch. Nothing was written."
        step = f"Your text is kept as draft {number} of the history; look at both and make the change again."
        return Conflict(message, step, view, number, change=change)

    def _forget(self, draft: int) -> bool:
        """Throw a draft away; False where there is none of that number, and for 0. Only while locked."""
        # Entries come in the order of their numbers, so the first after `draft - 1` is the draft, if there is one.
        for entry in self.journal.entries(since=draft - 1)[:1] if draft else ():
            if entry.id == draft and entry.state == "draft":
                self.journal.put(replace(entry, state="refused", reason="the draft was thrown away"))
                return True
        return False

    def _settle(self) -> None:
        """Settle what was cut off, and forget old changes. Only while locked."""
        journals.recover(self.roots, self.journal)
        self.journal.tidy()


def curator(plan: Plan, changed: Changed = len) -> Curator:
    """Return what changes the notes of `plan`; `changed` is called after each change with its paths."""
    journal = Journal(journal_folder(plan.roots.workspace))
    journal.most_days = plan.settings.whole("history.days")
    journal.most_bytes = plan.settings.whole("history.megabytes") * 1024 * 1024
    hosts = budget.hosts(plan.config, plan.roots.workspace)
    # Without OpenClaw's database there is no ledger, so that no change affects the trust of a note.
    trust = trusted.of_plan(plan) if os.path.lexists(places.state_database()) else None
    links = LinkIndex(plan.roots)
    planner = Planner(plan.roots, plan.clock, links, hosts=hosts, trust=trust, zone=plan.config.time_zone)
    return Curator(planner, journal, read_only=plan.options.read_only, changed=changed)


# --- undo and redo ---------------------------------------------------------------------------------------------------


def _stack(entries: tuple[JournalEntry, ...], kind: str) -> list[tuple[JournalEntry, JournalEntry]]:
    """Return what can be undone or redone, the next one first, each with the newest change that made or undid it.

    Both are the same entry for a change that was never undone. After a new change nothing can be redone.
    """
    undo, redo = dict[int, tuple[JournalEntry, JournalEntry]](), dict[int, tuple[JournalEntry, JournalEntry]]()
    for entry in entries:
        if entry.state != "done" or entry.kind == "trust":
            # Changes of trust wrote OpenClaw's ledger, which is only read now.
            continue
        # 0, for a change that is no undo or redo, is the number of no change.
        if entry.undoes in undo:
            original, _ = undo.pop(entry.undoes)
            redo[original.id] = original, entry
        elif entry.redoes in redo:
            original, _ = redo.pop(entry.redoes)
            undo[original.id] = original, entry
        elif not entry.undoes and not entry.redoes:
            undo[entry.id] = entry, entry
            redo.clear()
    return list(reversed(undo.values() if kind == "undo" else redo.values()))


def _why_not(entries: tuple[JournalEntry, ...], number: int, kind: str) -> str:
    """Return why change `number` is not among those that can be undone or redone, as a sentence."""
    if (entry := next((entry for entry in entries if entry.id == number), None)) is None:
        return f"There is no change {number}."
    if entry.undoes or entry.redoes:
        what = f"an undo of change {entry.undoes}" if entry.undoes else f"a redo of change {entry.redoes}"
        return f"Change {number} is {what}: name that one."
    if entry.state != "done" or entry.kind == "trust":
        return f"Change {number} wrote no note."
    return f"Change {number} is {'undone already' if kind == 'undo' else 'not undone, or others came after it'}."
