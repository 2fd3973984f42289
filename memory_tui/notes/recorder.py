"""The recorder looks at the notes on disk and writes into the record what became of them, whoever did it.

The watcher names what changed at each of its ticks; a look at all of them finds what changed while nobody watched. A
note that is gone counts as deleted at the second look: whoever writes a file anew takes it away for a moment. Of a note
whose root or device is away nothing is known.
"""

# ruff: noqa: PTH112, PTH116, PTH120
# Paths are strings, as in `workspace.roots`.

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable

from memory_tui.cancel import Stop
from memory_tui.errors import EditRefused, MemoryTuiError, WorkspaceError
from memory_tui.formatting import plural
from memory_tui.notes.authors import name_authors
from memory_tui.notes.changes import Busy
from memory_tui.notes.history import is_loss, who
from memory_tui.notes.journal import Edit, Journal, Sight
from memory_tui.notes.write import parent
from memory_tui.workspace.roots import MEMORY, Roots, destination, missing, scan
from memory_tui.workspace.scan import settled_of

_BATCH, _BATCH_BYTES = 100, 16 * 1024 * 1024
"""So many notes, or bytes of them, are written down in one transaction."""
_PATIENCE_SECONDS = 1.0
"""How long a change of this program is waited for; then the notes are looked at again at the next tick."""
_AGAIN_SECONDS = 0.2
_SLACK_NS = 2_000_000_000
"""Clocks of files are coarser than the clock."""


class Recorder:
    """Records what becomes of the notes below `roots`; `tell` hears what a person should know. Nothing is raised.

    Every method may be called from any thread; one look waits for another. It ends between some notes when `stop` says
    so; the next look goes on.
    """

    def __init__(self, roots: Roots, journal: Journal, stop: Stop, tell: Callable[[str], None]) -> None:
        self._roots, self._journal, self._stop, self._tell = roots, journal, stop, tell
        self._lock = threading.Lock()
        self._waiting: set[str] = set()
        """Notes to be looked at again, by stored path."""
        self._gone: set[str] = set()
        self._mark: tuple[object, ...] | None = None
        """What the last complete look was of; None where it left something to see."""
        self._trouble = ""
        self._untold = deque[Edit]()
        """Recorded edits that took lines away, of which nobody was told yet."""
        self._telling, self._teller = threading.Lock(), threading.Thread()

    def see(self, changed: Collection[str] | None = None, fingerprint: int | None = None) -> None:
        """Record the notes at the absolute paths `changed`, and those that wait since the last look.

        With None all notes are looked at, and those that are gone once more a moment later. No note has changed since
        a look at all with the same `fingerprint`, which may be None.
        """
        if changed is None:
            with self._lock, self._journal.kept():
                self._look(fingerprint)
                if self._gone and not self._stop.is_set():
                    time.sleep(_AGAIN_SECONDS)
                    self._record(self._waiting, fresh=None)
            self.tell_losses()
            return
        if self._untold and not self._teller.is_alive():
            # Who did it may take seconds to find out; the next version is recorded meanwhile.
            self._teller = threading.Thread(target=self.tell_losses, name="losses", daemon=True)
            self._teller.start()
        if not changed and not self._waiting:
            return
        with self._lock, self._journal.kept():
            # Where a folder changed, it is not known which notes did.
            if any(self._holds_notes(path) for path in changed if not path.endswith(".md")):
                self._look(None)
            else:
                notes = {self._roots.stored(path) for path in changed if path.endswith(".md")}
                self._record(notes | self._waiting, fresh=None)

    def tell_losses(self) -> None:
        """Say which recorded notes lost lines, or are gone, and by whom.

        Not those whose text stands at another path, nor what git did.
        """
        with self._telling, self._journal.kept():
            edits = [self._untold.popleft() for _ in range(len(self._untold))]
            try:
                losses = {edit.id for edit in edits if is_loss(self._journal, edit)}
                if not losses:
                    return
                name_authors(self._journal, self._roots, time.time())
                texts = {head.blob for head in self._journal.heads().values()}
                # Oldest first, now with their authors.
                named = [edit for edit in self._journal.edits(since=min(losses) - 1) if edit.id in losses][::-1]
                missing = [edit for edit in named if edit.after is not None or edit.before not in texts]
                if losing := [edit for edit in missing if is_loss(self._journal, edit)]:
                    first = losing[0]
                    what = f"{first.path} {'lost' if first.after else 'vanished, with'} {plural(first.minus, 'line')}"
                    if len(losing) > 1:
                        what = f"{first.path} and {plural(len(losing) - 1, 'other note')} lost lines"
                    self._tell(f"{what}: {who(first)} did it. The inbox offers to bring them back.")
            except EditRefused as error:
                self._fail(error)

    # --- only while locked -------------------------------------------------------------------------------------------

    def _look(self, fingerprint: int | None) -> None:
        """Record what changed since the last look; nothing where the scan has the `fingerprint` of that one."""
        start = time.time_ns()
        try:
            # A record that was emptied begins at another time.
            known = self._journal.numbers()
            mark = fingerprint, known.start
            if mark == self._mark and None not in mark and not self._waiting:
                # No note changed: only the time of this look is written down.
                self._record((), fresh=None, began=start)
                return
            heads = self._journal.heads()
            # Fields 1 to 3 of a head are size, mtime_ns and ctime_ns.
            seen = scan(self._roots, settled_of((path, *head[1:4]) for path, head in heads.items()))
            now = {note.path: (note.size, note.mtime_ns, note.ctime_ns) for note in seen.notes if note.source == MEMORY}
            left_out = {left.path for left in seen.left_out}
            gone = {*missing(self._roots, seen, heads.keys() - left_out)} | (heads.keys() & left_out)
        except WorkspaceError:
            # Of notes that cannot be reached nothing is known.
            return
        except EditRefused as error:
            self._fail(error)
            return
        # What is too large to be indexed is recorded all the same.
        paths = gone | {left.path for left in seen.left_out if left.rule == "too big"}
        paths |= {path for path, state in now.items() if (heads.get(path) or ())[1:4] != state}
        # A note that was never seen, and did not change since all were, was read by nobody before.
        fresh = start if known.began is None else min(known.began, start) - _SLACK_NS
        self._mark = mark
        self._record(paths | self._waiting, fresh=fresh, began=start)

    def _record(self, paths: Iterable[str], *, fresh: int | None, began: int | None = None) -> None:
        """Record the notes `paths`, all of them when `began` says since when they are looked at.

        One that was never seen is new unless it is older than `fresh` (ns).
        """
        left, batch = sorted(paths), list[Sight]()
        self._waiting = set()
        # Even without a note to record, a look at all of them writes down when it began.
        is_over = not left and began is None
        try:
            # What the watcher saw is written down to the end.
            while not is_over and (began is None or not self._stop.is_set()):
                with self._journal.locked(_PATIENCE_SECONDS):
                    batch, left = self._sights(left, fresh)
                    is_over = not left
                    edits = self._journal.observe(batch, began if is_over else None)
                    if is_over and began is not None:
                        self._journal.tidy()
                # It is written down, so that nothing of it waits if the next batch fails.
                batch = []
                self._untold.extend(edit for edit in edits if edit.minus)
            if self._trouble:
                self._trouble = ""
                self._tell("What becomes of the notes is recorded again.")
        except EditRefused as error:
            self._fail(error)
        self._waiting |= {*left, *(sight.path for sight in batch)}

    def _fail(self, error: EditRefused) -> None:
        """Tell once why nothing is recorded; a journal that is only busy is waited for."""
        if not isinstance(error, Busy) and error.message != self._trouble:
            self._trouble = error.message
            self._tell(f"What becomes of the notes is not recorded now. {error.message} {error.next_step}")

    # --- one note ----------------------------------------------------------------------------------------------------

    def _holds_notes(self, path: str) -> bool:
        """Return whether `path` is a folder, or was one with notes in it when they were last seen."""
        if os.path.isdir(path):
            return True
        try:
            return bool(self._journal.heads(self._roots.stored(path)))
        except EditRefused as error:
            self._fail(error)
            return False

    def _sights(self, paths: list[str], fresh: int | None) -> tuple[list[Sight], list[str]]:
        """Return what is at the first of the stored paths, as much as one transaction takes, and the other paths."""
        sights, size = list[Sight](), 0
        for at, path in enumerate(paths):
            if len(sights) >= _BATCH or size >= _BATCH_BYTES:
                return sights, paths[at:]
            if (sight := self._sight(path, fresh)) is not None:
                sights.append(sight)
                size += len(sight.data or b"")
        return sights, []

    def _sight(self, path: str, fresh: int | None) -> Sight | None:
        """Return what is at a stored path; None where that cannot be known, or is to be seen again first."""
        try:
            with parent(self._roots, path) as (folder, name):
                # Before its bytes: what is written meanwhile differs from it at the next look.
                status = folder.status(name) if folder is not None else None
                data = folder.read(name) if folder is not None and status is not None else None
            if status is None or data is None:
                return self._missing(path)
            self._gone.discard(path)
        except (MemoryTuiError, OSError):
            # The list of files says what cannot be read.
            self._mark = None
            return None
        at = min(time.time(), status.st_ctime_ns / 1e9)
        now = len(data), status.st_mtime_ns, status.st_ctime_ns, status.st_dev
        return Sight(path, data, at, *now, fresh=fresh is None or status.st_ctime_ns >= fresh)

    def _missing(self, path: str) -> Sight | None:
        """Return that a note is gone, when it is missing twice in a row on the disk that it was on; else None."""
        root, absolute, _ = destination(self._roots, path)
        # The nearest folder above that is still there tells on which device the note would be.
        folder = os.path.dirname(absolute)
        while not os.path.isdir(folder) and folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
        status = os.stat(folder)
        head = self._journal.heads(path).get(path)
        # A device of 0 is one that is not known.
        if head is None or not os.path.isdir(root) or head.device not in (0, status.st_dev):
            self._gone.discard(path)
            return None
        if path not in self._gone:
            self._gone.add(path)
            self._waiting.add(path)
            return None
        self._gone.discard(path)
        return Sight(path, None, min(time.time(), status.st_ctime_ns / 1e9))
