"""From what a person asks for to a Change, with the notes as they are now; nothing is written here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from memory_tui.curate import budget, capture, headings, promote, relink, tidy
from memory_tui.curate.budget import Budget, Host
from memory_tui.curate.folder import parent
from memory_tui.curate.lines import Lines, block_at
from memory_tui.curate.links import LinkIndex
from memory_tui.curate.promote import Spot
from memory_tui.curate.record import Change
from memory_tui.curate.tidy import Stored
from memory_tui.curate.write import current
from memory_tui.errors import EditRefused
from memory_tui.workspace.document import shown_day
from memory_tui.workspace.roots import ROOT_NOTES, NoteMissing, Roots, destination, scan


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans changes of the notes below `roots`; `clock` gives epoch seconds. Every method may raise EditRefused,
    PathRefused and Unreadable.
    """

    roots: Roots
    clock: Callable[[], float]
    hosts: tuple[Host, ...] = ()
    """Who reads the curated note, for what a change does to its budget."""
    links: LinkIndex | None = None
    """Where links are looked for, so that they follow a note that moves."""

    def now(self) -> dt.datetime:
        """The time of this machine's zone, in which days are counted."""
        return dt.datetime.fromtimestamp(self.clock()).astimezone()

    def memory(self) -> str:
        """The path of the curated note: MEMORY.md, or memory.md where only that is there."""
        return next((name for name in ROOT_NOTES if current(self.roots, name) is not None), ROOT_NOTES[0])

    def spot(self, path: str, first: int, last: int | None = None) -> Spot:
        """Lines of a note; without `last` the list item or paragraph that line `first` belongs to."""
        path = self._stored(path)
        data = current(self.roots, path)
        if data is None:
            raise NoteMissing(f"There is no note {path}.", "Look for its path in the list of files.")
        texts = Lines.of(data, path).texts()
        if last is None and 1 <= first <= len(texts):
            first, last = block_at(texts, first)
        found = Spot(path, data, first, last if last is not None else first)
        found.lines()
        return found

    def remember(self, text: str) -> Change:
        """Append `text` with the time to today's log."""
        now = self.now()
        path = capture.log_path(now.date())
        return capture.capture(text, now, current(self.roots, path), self._log_before(path))

    def beginning(self, path: str) -> str:
        """The text that a daily log which is not there begins with, its heading like that of the log before it."""
        day = shown_day(path)
        return capture.beginning(day, self._log_before(path)) if day is not None else ""

    def _log_before(self, path: str) -> bytes | None:
        """The last daily log before `path`, None without one."""
        logs = [
            note.path
            for note in scan(self.roots).found
            if note.path.count("/") == 1 and shown_day(note.path) and note.path < path
        ]
        return current(self.roots, logs[-1]) if logs else None

    def new_note(self, title: str, body: str = "", path: str = "") -> Change:
        """A new topic note, at `path` or where its title says. Raises EditRefused when something is there."""
        path = self._stored(path or capture.topic_path(title))
        self._vacant(path)
        return capture.new_note(path, title, body)

    def edit(self, path: str, before: bytes | None, text: str) -> Change:
        """What an editor made of a note: `before` are the bytes it was opened with, `text` is the new text."""
        return capture.edit(self._stored(path), before, text)

    def choices(self, spot: Spot, target: str = "") -> list[headings.Choice]:
        """The headings of `target` (the curated note) that the lines could go below, the best first."""
        data = current(self.roots, target or self.memory())
        return headings.ranked(Lines.of(data).texts(), "\n".join(spot.texts()), spot.heading())

    def promote(self, spot: Spot, *, to: str = "", move: bool = False, target: str = "") -> Change:
        """Copy or move lines to the curated note, below the heading `to` or the one that fits."""
        target = self._stored(target or self.memory())
        return self._budgeted(promote.promote(spot, target, current(self.roots, target), to=to, move=move))

    def demote(self, spot: Spot, target: str, *, to: str = "", move: bool = True) -> Change:
        """Move lines to the topic note `target`, a path or a title."""
        path = self._stored(target if target.endswith(".md") else capture.topic_path(target))
        return self._budgeted(promote.demote(spot, path, current(self.roots, path), to=to, move=move))

    def delete_lines(self, spots: Iterable[Spot]) -> Change:
        """Delete lines."""
        return tidy.delete_lines(spots)

    def trash_lines(self, spot: Spot) -> Change:
        """Move lines to the trash."""
        return tidy.trash_lines(spot)

    def merge_duplicates(self, keep: Spot, others: Iterable[Spot]) -> Change:
        """Keep the lines of one spot and delete the others."""
        return tidy.merge_duplicates(keep, tuple(others))

    def trash(self, path: str) -> Change:
        """Move a note to the trash."""
        return tidy.trash(self._stored(path), self._note(path))

    def rename(self, path: str, new: str) -> Change:
        """Give a note another path; links to it follow. Raises EditRefused when something is there."""
        target = self._stored(new)
        self._vacant(target)
        return self._relinked(tidy.rename(self._stored(path), target, self._note(path)))

    def archive(self, days: int) -> Change:
        """Move daily logs older than `days` to memory/archive/memory/; links to them follow."""
        today = self.now().date()
        paths = [note.path for note in scan(self.roots).found]
        old = [
            path
            for path in paths
            if path.startswith("memory/")
            and path.count("/") == 1
            and (day := shown_day(path)) is not None
            and (today - day).days > days
        ]
        return self._relinked(tidy.archive({path: self._note(path) for path in old}, paths, today, days))

    def budget(self, data: bytes | None = None) -> tuple[Budget, ...]:
        """How the curated note stands with each host; with `data` as if that was in it."""
        name = self.memory()
        text = current(self.roots, name) if data is None else data
        return tuple(budget.measure(text, host, name) for host in self.hosts)

    def _relinked(self, change: Change) -> Change:
        """`change` with the links of all notes to those that it moves, and of those that it moves, led there."""
        moves = tidy.moves(change)
        if self.links is None or not moves:
            return change
        texts = {path: data for path in self.links.sources(moves) if (data := current(self.roots, path)) is not None}
        return relink.follow(change, moves, texts, self.links.paths())

    def _budgeted(self, change: Change) -> Change:
        """`change` with what it does to the curated note's budget among its notes."""
        said = tuple(
            budget.effect(file.before, file.after, host)
            for file in change.files
            if file.path in ROOT_NOTES
            for host in self.hosts
        )
        return replace(change, notes=change.notes + said)

    def _stored(self, path: str) -> str:
        """The path under which a note is stored. Raises PathRefused."""
        return destination(self.roots, path)[2]

    def _vacant(self, path: str) -> None:
        with parent(self.roots, path) as (folder, name):
            if folder is not None and folder.status(name) is not None:
                raise EditRefused(f"There is a note {path} already.", "Choose another name.")

    def _note(self, path: str) -> Stored:
        with parent(self.roots, path) as (folder, name):
            data = None if folder is None else folder.read(name)
            status = None if folder is None else folder.status(name)
        if data is None or status is None:
            raise NoteMissing(f"There is no note {path}.", "Look for its path in the list of files.")
        return Stored(data, status.st_mode & 0o7777, status.st_mtime_ns)
