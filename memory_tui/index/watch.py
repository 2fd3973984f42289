"""The watcher notices saved notes.

The folder memory/ and extra folders are watched with everything below; the workspace itself is not, because it can be
somebody's home. Its root notes, extra files, and whether a folder was made, removed or replaced are seen by asking for
their status at each tick. The watcher calls back and does nothing else.
"""

# ruff: noqa: PTH118, PTH206
# Paths are strings, because watchfiles speaks of them so.

from __future__ import annotations

import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache

from msgspec import Struct
from watchfiles import Change, watch

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import WorkspaceError
from memory_tui.core.formatting import plural
from memory_tui.workspace.media import modality_of
from memory_tui.workspace.roots import FOLDER, Roots, scan
from memory_tui.workspace.scan import Found, known_too_large, too_large

_STEP_MS = 50
"""How long the event stream has to pause before events are handed over."""
_TICK_MS = 200
"""How often quiet time and single files are looked at."""
_PATIENCE = 5
"""Quiet times after which changes are announced although more keep coming."""
_SILENT_SECONDS = 1.0
"""A watcher that ticks gives a sign more often than this."""
_BUSY_SECONDS = 60.0
"""The same while it begins, or lists folders, which takes as long as there are folders."""
_LISTING_SECONDS = 1.0
_LISTING_SHARE = 30
"""Where there are no events: the least time between two listings, and how much longer it is than one takes."""
_NEVER_NOTES = frozenset({".git", "node_modules", ".pnpm-store", ".venv", "venv", ".tox", "__pycache__"})
"""Folders whose other files come and go in masses."""

Changes = set[tuple[Change, str]]
Named = frozenset[str] | None
"""Absolute paths at which something changed; None for anywhere."""


class _View(Struct, frozen=True):
    """What is at the roots now: folders to watch by path and identity, and the status of single files."""

    folders: tuple[tuple[str, int, int], ...]
    singles: tuple[tuple[str, int, int, int], ...]

    @classmethod
    def of(cls, roots: Roots) -> _View:
        base = str(roots.workspace)
        folders, singles = [], []
        # What is too large to be looked through is too large to be watched.
        extra = [path for path in roots.extra if not (known_too_large(path) or _vast(path))]
        places = [os.path.join(base, FOLDER), *extra, *(os.path.join(base, name) for name in roots.root_notes)]
        places += [roots.sessions] if roots.sessions else []
        for path in places:
            try:
                status = os.lstat(path)
            except (OSError, ValueError):
                continue
            if stat.S_ISDIR(status.st_mode):
                folders.append((path, status.st_dev, status.st_ino))
            elif stat.S_ISREG(status.st_mode):
                singles.append((path, status.st_ino, status.st_mtime_ns, status.st_size))
        return cls(tuple(folders), tuple(singles))


@cache
def _vast(path: str) -> bool:
    """Whether `path`, one of extraPaths, is too large to be watched; counted once in the life of the process."""
    return too_large(path)


class Watcher:
    """Calls `on_change` once notes changed and then were left alone for `quiet` seconds.

    It hears the absolute paths of files and folders that changed; of single files (root notes, extra files) it is only
    told that something did. It hears None after the watcher began, after a root was replaced, and wherever it cannot be
    told what changed, because then everything has to be looked at.
    `on_wait` is called at once when something changed, and while more keeps coming each time that as long has gone by.
    Where the system gives no events (no handles left, for instance) it lists the folders again and again instead;
    `on_trouble` hears why. All are called on the watcher's thread.
    """

    def __init__(
        self,
        roots: Roots,
        quiet: float,
        on_change: Callable[[Named], None],
        on_trouble: Callable[[str], None],
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self.armed = threading.Event()
        """Set while changes are seen; what is saved from then on is announced."""
        self.detail = "starting"
        """What it does, in words."""
        self._roots = roots
        self._quiet = quiet
        self._on_change = on_change
        self._on_trouble = on_trouble
        self._on_wait = on_wait
        self._stop = Stop()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._trouble = ""
        self._failure = ""
        self._changed = False
        self._named: Named = frozenset()
        self._first = self._last = self._told = 0.0
        self._sign, self._patience = 0.0, _BUSY_SECONDS

    @property
    def alive(self) -> bool:
        """Whether it was started and not stopped."""
        return self._thread.is_alive() and not self._stop.is_set()

    @property
    def dead(self) -> str:
        """Why its thread ended although nobody stopped it; empty while it runs."""
        ended = self._thread.ident is not None and not self._thread.is_alive() and not self._stop.is_set()
        return (self._failure or "the watcher has ended") if ended else ""

    @property
    def silent(self) -> bool:
        """Whether it runs and has given no sign for longer than it should need."""
        return self.alive and time.monotonic() - self._sign > self._patience

    def start(self) -> None:
        """Begin to watch, on a thread of its own."""
        self._give_sign(_BUSY_SECONDS)
        self._thread.start()

    def _give_sign(self, patience: float) -> None:
        self._sign, self._patience = time.monotonic(), patience

    def stop(self, timeout: float = 1.0) -> None:
        """End the thread; changes that were not announced yet are dropped."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._go_on()
        except Exception as error:  # noqa: BLE001 - whoever asks why it is dead is told
            self._failure = f"the watcher failed: {type(error).__name__} {error}".rstrip()

    def _go_on(self) -> None:
        while not self._stop.is_set():
            self._give_sign(_BUSY_SECONDS)
            try:
                self._watch(_View.of(self._roots))
            except FileNotFoundError:
                # A folder went away between the look and the watch: look again.
                self._stop.wait(_TICK_MS / 1000)
            except (OSError, RuntimeError) as error:
                # watchfiles raises a RuntimeError for what its native part reports.
                self._trouble = str(error)
                self._on_trouble(self._trouble)
            finally:
                self.armed.clear()

    def _watch(self, view: _View) -> None:
        """Look at events and statuses until the folders to watch are others."""
        self._note(None)
        for changes in self._events(view):
            self._give_sign(_SILENT_SECONDS)
            if not self.armed.is_set():
                folders = plural(len(view.folders), "folder")
                self.detail = f"polling {folders}: {self._trouble}" if self._trouble else f"watching {folders}"
                self.armed.set()
            now = _View.of(self._roots)
            named = _named(changes, self._roots)
            if now.folders != view.folders or _any_gone(view, changes) or (named and self._trouble):
                self._note(None)
            elif now != view or named != frozenset():
                self._note(named)
            self._announce()
            if now.folders != view.folders or _any_gone(view, changes):
                return
            view = now

    def _events(self, view: _View) -> Iterator[Changes]:
        """Sets of changes, an empty one at each quiet tick."""
        if self._trouble:
            yield from self._listings()
        elif view.folders:
            yield from watch(
                *(path for path, _, _ in view.folders),
                watch_filter=None,
                debounce=_TICK_MS,
                step=_STEP_MS,
                stop_event=self._stop,
                rust_timeout=_TICK_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
                ignore_permission_denied=True,
            )
        while not self._stop.wait(_TICK_MS / 1000):
            yield set()

    def _listings(self) -> Iterator[Changes]:
        """Changes as they are found by listing; what the listing costs decides how often it is done."""
        before = _listing(self._roots)
        due = time.monotonic()
        while not self._stop.wait(_TICK_MS / 1000):
            if time.monotonic() < due:
                yield set()
                continue
            self._give_sign(_BUSY_SECONDS)
            start = time.monotonic()
            after = _listing(self._roots)
            end = time.monotonic()
            due = end + max(_LISTING_SECONDS, _LISTING_SHARE * (end - start))
            yield {(Change.modified, note.absolute) for note in set(before) ^ set(after)}
            before = after

    def _note(self, named: Named) -> None:
        self._last = time.monotonic()
        if not self._changed:
            # What a watcher that begins has not seen is no news.
            self._first, self._told = self._last, self._last if named is None else -math.inf
        self._changed = True
        self._named = None if named is None or self._named is None else self._named | named

    def _announce(self) -> None:
        now = time.monotonic()
        settled = now - self._last >= self._quiet or now - self._first >= _PATIENCE * self._quiet
        if self._changed and settled:
            self._changed = False
            named, self._named = self._named, frozenset()
            self._on_change(named)
        elif self._changed and now - self._told >= self._quiet:
            self._told = now
            self._on_wait()


def _listing(roots: Roots) -> tuple[Found, ...]:
    try:
        return scan(roots).found
    except WorkspaceError:
        return ()


def _any_gone(view: _View, changes: Changes) -> bool:
    """Whether a watched folder was deleted or moved away: one made in its place at once can have the same identity."""
    return any((Change.deleted, path) in changes for path, _, _ in view.folders)


def _named(changes: Changes, roots: Roots) -> Named:
    """Of which paths there is news; None where a name cannot be told, because it is not UTF-8."""
    paths = frozenset(path for change, path in changes if _can_matter(change, path, roots))
    return None if any("\ufffd" in path for path in paths) else paths


def _can_matter(change: Change, path: str, roots: Roots) -> bool:
    """Whether the change can concern a note: a note itself, or a folder that came or went with notes in it."""
    if path.endswith((".md", ".jsonl")) or (roots.media is not None and modality_of(path)):
        return True
    return change is not Change.modified and _NEVER_NOTES.isdisjoint(path.split(os.sep))
