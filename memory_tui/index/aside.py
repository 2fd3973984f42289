"""What becomes of damaged index files that were moved aside: the newest stay, and old ones are removed in the end.

Only what is an index of ours by its name, its owner and the mark in its first page is removed. A file of another
program that once lay in the place of the index, or one whose first page is gone, stays until somebody moves it.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

from memory_tui.core import atomic
from memory_tui.index.place import SIDES
from memory_tui.index.schema import APPLICATION_ID

KEPT = 3
"""So many stay, however old they are."""
KEPT_DAYS = 30
"""So long each stays, however many there are."""
_NAME = re.compile(r"\.damaged-(\d{8}-\d{6})(~\d+)?")
_HEADER = 72
_MAGIC, _MARK = b"SQLite format 3\0", slice(68, 72)
"""Of the header of a database file, https://www.sqlite.org/fileformat.html#the_database_header"""


def sweep(index: Path, now: float) -> list[str]:
    """Remove what was moved aside from the place of `index` long before `now` (epoch seconds), but the newest of it.

    Returns a sentence for each file, removed or not; mostly nothing is to be done.
    """
    told = []
    for path, at in _ours(index)[KEPT:]:
        if now - at < KEPT_DAYS * 86_400:
            continue
        try:
            for side in reversed(SIDES):
                atomic.remove_file(path.with_name(path.name + side))
        except OSError as error:
            told.append(f"{path}, a damaged index that was moved aside, cannot be removed: {error.strerror}.")
        else:
            told.append(
                f"{path} was removed: a damaged index, moved aside more than {KEPT_DAYS} days ago; the newest "
                f"{KEPT} stay."
            )
    return told


def _ours(index: Path) -> list[tuple[Path, float]]:
    """Damaged indexes of ours that were moved aside from the place of `index`, and when; the newest first."""
    found = []
    try:
        names = os.listdir(index.parent)
    except OSError:
        return []
    for name in names:
        match = _NAME.fullmatch(name.removeprefix(index.name)) if name.startswith(index.name) else None
        path = index.with_name(name)
        if match and (at := _moved_at(match[1])) is not None and _is_ours(path):
            found.append((path, at))
    return sorted(found, key=lambda item: (item[1], item[0].name), reverse=True)


def _moved_at(text: str) -> float | None:
    try:
        return time.mktime(time.strptime(text, "%Y%m%d-%H%M%S"))
    except (ValueError, OverflowError):
        return None


def _is_ours(path: Path) -> bool:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != getattr(os, "geteuid", lambda: status.st_uid)():
            return False
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return False
    return header.startswith(_MAGIC) and header[_MARK] == APPLICATION_ID.to_bytes(4, "big")
