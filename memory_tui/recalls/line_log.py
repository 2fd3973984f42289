"""A line log is a file of lines in the user's state folder, to which several processes append.

Each writes a whole line under the lock of the file; the older half goes when it is too large.
"""

from __future__ import annotations

import time
from pathlib import Path

from memory_tui.config.places import private_name
from memory_tui.core import atomic, locks
from memory_tui.core.errors import IndexUnavailable

_TRIES, _PAUSE_SECONDS = 2500, 0.002


def log_path(workspace: Path, kind: str) -> Path:
    """Where the file of a workspace is, in the folder `kind`; two names of one workspace share it."""
    import platformdirs

    folder = platformdirs.user_state_path("memory-tui", appauthor=False) / kind
    return folder / f"{private_name(workspace)}.jsonl"


def append_line(path: Path, line: bytes, most_bytes: int) -> None:
    """Write `line`, which ends with a line feed, behind the others; then no more than `most_bytes` are kept.

    Raises OSError, and IndexUnavailable when another process holds the file for five seconds.
    """
    atomic.make_folder(path.parent)
    with _held(path):
        # Who waits for an answer does not wait for the disk as well: the power may take the last lines of a log.
        atomic.append_line(path, line, flush=False)
        if path.stat().st_size > most_bytes:
            _drop_older_half(path)


def lines(path: Path) -> list[bytes]:
    """The lines that are not blank; none where there is no file. Raises IndexUnavailable when it cannot be read."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise IndexUnavailable(f"{path} cannot be read: {error.strerror}.", "Check the file and its folder.") from None
    return [line for line in data.split(b"\n") if line.strip()]


def clear(path: Path) -> bool:
    """Delete the file; False when there was none. Raises IndexUnavailable."""
    if not path.exists():
        return False
    with _held(path):
        try:
            atomic.remove_file(path)
        except OSError as error:
            raise IndexUnavailable(
                f"{path} cannot be deleted: {error.strerror}.", "Check the file and its folder."
            ) from None
    return True


def _held(path: Path) -> locks.WriterLock:
    """The lock of the file; a line takes less than a millisecond. Raises IndexUnavailable after five seconds."""
    for _ in range(_TRIES):
        held = locks.WriterLock.acquire(path)
        if held is not None:
            return held
        time.sleep(_PAUSE_SECONDS)
    raise IndexUnavailable(f"Another process keeps {path} locked.", "See which memory-tui still runs.")


def _drop_older_half(path: Path) -> None:
    """Replace the file by its newer half; a reader sees the one or the other."""
    data = path.read_bytes()
    atomic.replace_file(path, data[len(data) - len(data) // 2 :].partition(b"\n")[2])
