"""Prove by a read lease that no process is writing a file.

While the lease is held, whoever opens the file to write waits; after it is given back they go on. So what is read
under the lease is what is there until the file is replaced, and what is read of a replaced file under a new lease is
its last content. Elsewhere the file is watched for a moment instead.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from enum import Enum

_PAUSE_SECONDS = 0.002
_SETTLED_SECONDS = 0.05
"""Where there are no leases, a file that did not change for so long is taken to be at rest."""


class WriterState(Enum):
    """What is known of a file's writers."""

    HELD = "nobody has it open to write, and nobody can until the lease is given back"
    WRITER = "somebody has it open to write"
    UNKNOWN = "the system does not tell"


if sys.platform == "linux":
    import fcntl

    def _try(descriptor: int) -> WriterState:
        try:
            # The signal that tells of a waiting writer would end the process; this one is ignored by default.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            # A lease on a file of somebody else, or on a file system without leases, is refused with other errors.
            return WriterState.WRITER if error.errno == errno.EAGAIN else WriterState.UNKNOWN
        return WriterState.HELD

    def give_back(descriptor: int) -> None:
        """Let those who wait open the file."""
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def unbroken(descriptor: int) -> bool:
        """Return whether a lease is held and nobody waits for it."""
        return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_RDLCK
else:

    def _try(descriptor: int) -> WriterState:
        del descriptor
        return WriterState.UNKNOWN

    def give_back(descriptor: int) -> None:
        """Let those who wait open the file."""
        del descriptor

    def unbroken(descriptor: int) -> bool:
        """Return whether a lease is held and nobody waits for it."""
        del descriptor
        return False


def quiet(descriptor: int, seconds: float) -> WriterState:
    """Wait up to `seconds` until nobody has the file open to write; with HELD the lease is ours until `give_back`.

    `descriptor` must be open for reading only. UNKNOWN comes after the file was at rest for a moment.
    """
    until = time.monotonic() + seconds
    while (state := _try(descriptor)) is WriterState.WRITER and time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
    if state is WriterState.UNKNOWN:
        _rest(descriptor, until)
    return state


def _rest(descriptor: int, until: float) -> None:
    """Wait until size and time of the file stay the same for a moment."""
    seen = None
    while time.monotonic() < until:
        status = os.fstat(descriptor)
        if (status.st_size, status.st_mtime_ns) == seen:
            return
        seen = (status.st_size, status.st_mtime_ns)
        time.sleep(_SETTLED_SECONDS)
