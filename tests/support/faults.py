"""A disk that fails: what stands in the place of the system calls of memory_tui.durable.

Never a part of the package: a test puts it in the place of `durable.calls`, in its own process or in a fork.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_tui import durable

GROWS = ("mkdir", "write", "link", "create")
"""What needs room on the disk."""
ERRORS = ("short", "full", "full half-way", "broken", "gone")


class PowerCut(BaseException):
    """The power is gone: this process does nothing any more."""


class Counting(durable.Calls):
    """Does what is asked for, and writes down which calls were made; nothing waits for a real disk."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def step(self, name: str, do: Callable[[], Any]) -> Any:
        self.made.append(name)
        return do()

    def open(self, path, flags, mode=0o600, at=None):
        real = super().open
        if not flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            return real(path, flags, mode, at)
        return self.step("create" if flags & os.O_CREAT else "open", lambda: real(path, flags, mode, at))

    def fsync(self, descriptor):
        self.step("fsync", lambda: None)


def _counted(name: str) -> Callable[..., Any]:
    real = getattr(durable.Calls, name)
    return lambda self, *args, **more: self.step(name, lambda: real(self, *args, **more))


for _name in ("mkdir", "write", "truncate", "chmod", "replace", "exchange", "link", "unlink"):
    setattr(Counting, _name, _counted(_name))


class Failing(Counting):
    """Fails at call `at` (from 0), in the way of `fault`:

    short: a write takes one half. full: the disk is full from then on. full half-way: the same, after a write took one
    half. broken: an I/O error, once. gone: every call from then on fails.
    """

    def __init__(self, fault: str, at: int) -> None:
        super().__init__()
        self.fault, self.at = fault, at
        self.happened = False
        self._full = self._gone = False

    def step(self, name, do):
        now = len(self.made) == self.at
        self.made.append(name)
        if self._gone:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self._full and name in GROWS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if not now:
            return do()
        self.happened = True
        if self.fault in ("broken", "gone"):
            self._gone = self.fault == "gone"
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.fault == "full":
            self._full = True
            if name in GROWS:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return do()

    def write(self, descriptor, data):
        if len(self.made) == self.at and self.fault in ("short", "full half-way") and len(data) > 1:
            data = memoryview(data)[: len(data) // 2]
            self._full = self.fault == "full half-way"
            self.happened = True
            self.made.append("write")
            return durable.Calls.write(self, descriptor, data)
        return super().write(descriptor, data)


class Losing(Counting):
    """Ends at call `at` by a cut of the power; `lose` then takes from the disk what was never flushed.

    Of a file that is its content since the last flush; of a folder, with `names`, the names since its last flush.
    """

    def __init__(self, at: int | None = None) -> None:
        super().__init__()
        self.at = at
        self.happened = False
        self._dirty: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._names: list[tuple[str, Callable[[], None]]] = []

    def step(self, name, do):
        if self.happened or len(self.made) == self.at:
            self.happened = True
            raise PowerCut
        return super().step(name, do)

    def lose(self, *, names: bool) -> None:
        for handle, data in self._dirty.values():
            Path(f"/proc/self/fd/{handle}").write_bytes(data)
            os.close(handle)
        for _, back in reversed(self._names) if names else ():
            back()

    def _keep(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        key = status.st_dev, status.st_ino
        if key not in self._dirty:
            handle = os.open(f"/proc/self/fd/{descriptor}", os.O_PATH)
            self._dirty[key] = handle, self._contents(descriptor, status.st_size)

    @staticmethod
    def _contents(descriptor: int, size: int) -> bytes:
        try:
            # To open a file that is held under a lease would wait for the lease to end.
            return os.pread(descriptor, size, 0)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            return Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def _where(self, path, at) -> Path:
        return Path(path) if at is None else Path(f"/proc/self/fd/{at}").readlink() / path

    def _back(self, where: Path) -> Callable[[], None]:
        """What puts a name back as it is now, with what is surely on the disk of its file."""
        try:
            status = os.lstat(where)
        except FileNotFoundError:
            return lambda: where.unlink(missing_ok=True)
        kept = self._dirty.get((status.st_dev, status.st_ino))
        data = kept[1] if kept else where.read_bytes()

        def back() -> None:
            where.unlink(missing_ok=True)
            where.write_bytes(data)
            where.chmod(stat.S_IMODE(status.st_mode))

        return back

    def _named(self, *places: Path) -> None:
        for where in places:
            self._names.append((os.path.realpath(where.parent), self._back(where)))

    def open(self, path, flags, mode=0o600, at=None):
        where = self._where(path, at)
        if flags & os.O_CREAT and not where.exists() and not self.happened and len(self.made) != self.at:
            self._named(where)
        return super().open(path, flags, mode, at)

    def write(self, descriptor, data):
        if not self.happened:
            self._keep(descriptor)
        return super().write(descriptor, data)

    def truncate(self, descriptor, size):
        if not self.happened:
            self._keep(descriptor)
        super().truncate(descriptor, size)

    def fsync(self, descriptor):
        super().fsync(descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            here = str(Path(f"/proc/self/fd/{descriptor}").readlink())
            self._names = [(folder, back) for folder, back in self._names if folder != here]
        elif (status.st_dev, status.st_ino) in self._dirty:
            os.close(self._dirty.pop((status.st_dev, status.st_ino))[0])

    def replace(self, old, new, at=None):
        if not self.happened and len(self.made) != self.at:
            self._named(self._where(old, at), self._where(new, at))
        super().replace(old, new, at)

    def exchange(self, one, other, at=None):
        if not self.happened and len(self.made) != self.at:
            self._named(self._where(one, at), self._where(other, at))
        return super().exchange(one, other, at)

    def link(self, old, new, at=None):
        if not self.happened and len(self.made) != self.at and not self._where(new, at).exists():
            self._named(self._where(new, at))
        super().link(old, new, at)

    def unlink(self, path, at=None):
        if not self.happened and len(self.made) != self.at and os.path.lexists(self._where(path, at)):
            self._named(self._where(path, at))
        super().unlink(path, at)


@contextmanager
def on(calls: durable.Calls) -> Iterator[Any]:
    before, durable.calls = durable.calls, calls
    try:
        yield calls
    finally:
        durable.calls = before


def count(do: Callable[[], object]) -> list[str]:
    with on(Counting()) as calls:
        do()
    return calls.made


def fill(folder: Path, leave_pages: int) -> None:
    """Fill the disk of `folder`, but for some pages of 4,096 bytes."""
    status = os.statvfs(folder)
    pages = status.f_bfree * status.f_frsize // 4096
    (folder / "ballast").write_bytes(b"\0" * 4096 * (pages - leave_pages))
    status = os.statvfs(folder)
    assert status.f_bfree * status.f_frsize // 4096 == leave_pages
