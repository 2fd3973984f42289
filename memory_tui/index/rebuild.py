"""A whole index made anew beside the one that answers, and put in its place at once when it is complete.

It lies in a file named like the index with `.next` at the end, which only the holder of the writer lock touches, so
what a dead process left is either continued (same recipe, same index) or removed by the next writer. It is published
by copying its pages over those of the index in one transaction (SQLite's backup): readers see the old index or the new
one, whenever the power fails, and connections and files stay what they were.
"""

from __future__ import annotations

import errno
from pathlib import Path

import apsw

from memory_tui.core import atomic
from memory_tui.errors import IndexUnavailable
from memory_tui.index import carrying, check, refusals, writes
from memory_tui.index.database import explained
from memory_tui.index.place import SIDES, is_private, kind
from memory_tui.index.run import Stop
from memory_tui.index.schema import Recipe
from memory_tui.index.store import Store

_OF = "beside"
_CARRIED = "carried"
_PAGES = 256
"""Pages copied between two looks at whether to stop."""
_ROWS = 256


def path_of(index: Path) -> Path:
    """Where the index that will take the place of `index` is made."""
    return index.with_name(f"{index.name}.next")


def waits(store: Store, recipe: Recipe) -> bool:
    """Whether a rebuild after `recipe` was begun and not finished."""
    path = path_of(store.path)
    if not path.exists():
        return False
    try:
        beside = Store.open(path, read_only=True, use_vec0=False)
    except IndexUnavailable:
        return False
    try:
        return beside.recipe() == recipe and beside.meta(_OF) == store.meta("uuid")
    except IndexUnavailable:
        return False
    finally:
        beside.close()


def begin(store: Store, recipe: Recipe, stop: Stop) -> Store:
    """The index beside `store`: the one that waits, or a new one, with every vector that `store` has kept."""
    if not waits(store, recipe):
        discard(store.path)
    beside = Store.open(path_of(store.path), use_vec0=store.vec0.ready, expected=lambda: is_private(store.path))
    if beside.recipe() is None:
        writes.remember(beside, _OF, store.meta("uuid"))
        writes.reset(beside, recipe)
    refusals.take(beside, refusals.rows(store))
    after = int(beside.meta(_CARRIED) or 0)
    while not stop.is_set() and (rows := carrying.cache_page(store, after, _ROWS)):
        after = rows[-1][0]
        carrying.carry(beside, rows, _CARRIED, after)
    return beside


def publish(store: Store, beside: Store, stop: Stop) -> bool:
    """Put `beside` in the place of `store`, and remove it; False when stopped before that.

    Raises IndexUnavailable when it is not whole; then it is removed, and the old index stays.
    """
    if problems := check.problems(beside):
        beside.close()
        discard(store.path)
        raise IndexUnavailable(
            f"The new index is not whole ({problems[0]}); the old one stays.", "It is made again with the next sync."
        )
    carrying.take_jobs(beside, *carrying.job_rows(store))
    carrying.follow(beside, store.generation() + 1)
    beside.close()
    done = _copy(path_of(store.path), store, stop)
    if done:
        # Only now: who is killed while pages are copied finds what is beside still to be of this index.
        for key in (_OF, _CARRIED):
            writes.remember(store, key, "")
        discard(store.path)
    return done


def discard(index: Path) -> None:
    """Remove what was made beside `index`, if anything; what is not ours stays. Raises IndexUnavailable."""
    path = path_of(index)
    if not (is_private(path) or kind(path) in ("nothing", "empty", "ours", "zeros")):
        return
    # The file itself last: without it nobody could tell whose its logs are.
    for side in reversed(SIDES):
        part = path.with_name(path.name + side)
        try:
            if kind(part) != "no file":
                atomic.remove_file(part)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise IndexUnavailable(
                    f"{part} cannot be removed: {error.strerror}.", "Remove it yourself; it is a half-made index."
                ) from None


def _copy(source: Path, store: Store, stop: Stop) -> bool:
    """All pages of `source` over those of `store`, in one transaction that is rolled back when stopped."""
    try:
        made = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with store.connection.backup("main", made, "main") as copying:
                while not copying.done:
                    if stop.is_set():
                        return False
                    copying.step(_PAGES)
        finally:
            made.close()
    except apsw.Error as error:
        raise explained(error, store.path) from None
    return True
