"""A socket on which the keeper of an index answers other processes of the same user, one question a connection.

Who asks sends one line of JSON. The keeper sends a line that takes the question, with its process id, and then a line
with the answer; either may be a refusal with a code instead. A connection that ends early takes the question back.

The socket file has the key of the index and the version of the protocol in its name, so nobody meets a keeper of
another release. Only who holds the keeper's lock of the index makes it, and removes what a killed keeper left behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from memory_tui.core import atomic
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled, MemoryTuiError

RefusalCode = Literal[
    "absent",
    "behind",
    "foreign",
    "silent",
    "gone",
    "late",
    "busy",
    "version",
    "settings",
    "unwell",
    "closing",
    "malformed",
]
SENTENCES: Mapping[RefusalCode, str] = {
    "absent": "No keeper listens.",
    "behind": "Notes changed that the keeper has not indexed yet.",
    "foreign": "The socket belongs to another user.",
    "silent": "The keeper does not take the question.",
    "gone": "The keeper ended before it had answered.",
    "late": "The keeper takes too long.",
    "busy": "The keeper answers too many questions already.",
    "version": "The keeper is of another release.",
    "settings": "The keeper works with other settings.",
    "unwell": "The keeper has trouble that another process may not have.",
    "closing": "The keeper is about to end.",
    "malformed": "What was sent is no question.",
}
"""Why a keeper did not answer; the process that asked then answers by itself."""

MOST_PATH_BYTES = 100
"""What every system takes for the path of a socket; Linux takes 107."""
REQUEST_BYTES = 1 << 20
REPLY_BYTES = 16 << 20
_CONNECT_SECONDS = 0.05
TAKEN_SECONDS = 1.0
"""How long a keeper that is there may take to take a question; one that is frozen takes for ever."""
_LINE_SECONDS = 2.0
"""How long a line of ours may take to arrive, and one of theirs to be sent."""
_MOST_CONNECTIONS = 32
_MOST_RUNNING = 4
"""Questions that are answered at the same time; more wait."""
_PAUSE_SECONDS = 0.05
_GOODBYE_SECONDS = 0.1
_BACKLOG = 64
_PIECE = 1 << 16
_LINUX_PEER = struct.Struct("3i")
_DARWIN_LOCAL, _DARWIN_PEER, _DARWIN_CREDENTIALS = 0, 1, struct.Struct("2I")


class KeeperRefusal(Struct, frozen=True):
    """No answer came from a keeper: the code, and what it concerns where the code alone does not say it."""

    code: RefusalCode
    detail: str = ""

    @property
    def sentence(self) -> str:
        """Why, for a person."""
        said = SENTENCES[self.code]
        return f"{said.rstrip('.')} ({self.detail})." if self.detail else said


class KeeperReply(Struct, frozen=True):
    """What the keeper with the process id `pid` answered."""

    pid: int
    value: Mapping[str, Any]


def socket_path(index: str | os.PathLike[str], version: str, state: Path) -> Path | None:
    """Where the keeper of `index` listens: in the folder `state`, where that is too long in the runtime folder.

    None where sockets have no files, or no path is short enough.
    """
    if not hasattr(socket, "AF_UNIX"):
        return None
    key = hashlib.sha256(os.fsencode(os.path.realpath(index)) + b"\0" + os.fsencode(state)).hexdigest()[:12]
    name = f"{key}-{hashlib.sha256(version.encode()).hexdigest()[:6]}.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folders = [state / "keeper", *([Path(runtime) / "memory-tui"] if runtime else [])]
    paths = [folder / name for folder in folders]
    return next((path for path in paths if len(os.fsencode(path)) <= MOST_PATH_BYTES), None)


# --- lines ---------------------------------------------------------------------------------------------------------


class _Broken(Exception):
    """The other side ended, or sent what is no line of JSON."""


class _Lines:
    """The lines that come in on a connection; several may come at once."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def read(self, seconds: float, most: int) -> dict[str, Any]:
        """The object in the next line, of so many bytes at most. Raises TimeoutError, OSError, _Broken."""
        end, parts, size = time.monotonic() + seconds, [self._rest], len(self._rest)
        while b"\n" not in parts[-1]:
            if size > most or (left := end - time.monotonic()) <= 0:
                raise _Broken if size > most else TimeoutError
            self._connection.settimeout(left)
            part = self._connection.recv(_PIECE)
            if not part:
                raise _Broken
            parts.append(part)
            size += len(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise _Broken from None
        if not isinstance(value, dict):
            raise _Broken
        return value


def _send(connection: socket.socket, value: Mapping[str, Any]) -> None:
    """Send `value` as a line. Raises OSError, TimeoutError among them."""
    connection.settimeout(_LINE_SECONDS)
    connection.sendall(json.dumps(value, separators=(",", ":")).encode() + b"\n")


def _peer(connection: socket.socket) -> int | None:
    """The user at the other end; None where the system does not tell."""
    user: int | None = None
    # Where no answer comes, the other end is nobody's.
    with contextlib.suppress(OSError, struct.error):
        if sys.platform == "linux":
            data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX_PEER.size)
            user = _LINUX_PEER.unpack(data)[1]
        elif sys.platform == "darwin":
            data = connection.getsockopt(_DARWIN_LOCAL, _DARWIN_PEER, 128)
            user = _DARWIN_CREDENTIALS.unpack_from(data)[1]
    return user


def _is_ours(connection: socket.socket) -> bool:
    return _peer(connection) == os.geteuid()


@contextlib.contextmanager
def _closing(connection: socket.socket) -> Iterator[socket.socket]:
    """Inside, `connection` is open; after it whoever waits for it is told."""
    try:
        yield connection
    finally:
        _end(connection)
        connection.close()


def _end(connection: socket.socket) -> None:
    """Let nobody wait for `connection`, on either side."""
    # The other side may have ended it.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


# --- who asks ------------------------------------------------------------------------------------------------------


class Patience(NamedTuple):
    """How many seconds a keeper may take to take a question, and to answer it."""

    taken: float
    answered: float


def ask(
    path: Path, version: str, settings: Mapping[str, str], question: Mapping[str, Any], patience: Patience, stop: Stop
) -> KeeperReply | KeeperRefusal:
    """Ask the keeper at `path`, which has to be of this `version` and to work with `settings`, with `patience`.

    Where it raises a MemoryTuiError, its name, message and next step are the `error` of the answer. Raises Cancelled
    when `stop` is set meanwhile.
    """
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        # Too many files are open.
        return KeeperRefusal("absent", error.strerror or "")
    with _closing(connection), stop.around(lambda: _end(connection)):
        try:
            return _asked(connection, path, {"version": version, "settings": settings, "question": question}, patience)
        finally:
            stop.check()


def _asked(
    connection: socket.socket, path: Path, request: Mapping[str, Any], patience: Patience
) -> KeeperReply | KeeperRefusal:
    try:
        connection.settimeout(_CONNECT_SECONDS)
        connection.connect(str(path))
    except OSError as error:
        return KeeperRefusal("busy" if isinstance(error, BlockingIOError | TimeoutError) else "absent")
    if not _is_ours(connection):
        return KeeperRefusal("foreign")
    # It may refuse without reading to the end; why is in what it sent.
    with contextlib.suppress(OSError):
        _send(connection, request)
    lines = _Lines(connection)
    try:
        taken = lines.read(patience.taken, REPLY_BYTES)
    except TimeoutError:
        return KeeperRefusal("silent")
    except (OSError, _Broken):
        return KeeperRefusal("gone")
    if (refused := _refusal(taken)) is not None:
        return refused
    try:
        answered = lines.read(patience.answered, REPLY_BYTES)
    except TimeoutError:
        return KeeperRefusal("late")
    except (OSError, _Broken):
        return KeeperRefusal("gone")
    pid = taken.get("pid")
    return _refusal(answered) or (KeeperReply(pid, answered) if isinstance(pid, int) else KeeperRefusal("malformed"))


def _refusal(line: Mapping[str, Any]) -> KeeperRefusal | None:
    code = line.get("refused")
    if code is None:
        return None
    return KeeperRefusal(code if code in SENTENCES else "malformed", str(line.get("detail", "")))


# --- who answers ---------------------------------------------------------------------------------------------------

Answering = Callable[[Mapping[str, Any], Stop], Mapping[str, Any] | KeeperRefusal]
"""Answers a question. Raises MemoryTuiError, whose name, message and next step are then the answer."""


class KeeperSocket:
    """The keeper's end: listens at `path` from `listen` to `close`."""

    def __init__(self, path: Path, version: str, settings: Mapping[str, str], answer: Answering) -> None:
        self.path = path
        self._version, self._settings, self._answer = version, dict(settings), answer
        self._closing = Stop()
        self._connections = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._running = threading.BoundedSemaphore(_MOST_RUNNING)
        self._listening: socket.socket | None = None
        self._made: tuple[int, int] | None = None
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name="keeper-socket", daemon=True)

    def listen(self) -> None:
        """Begin to answer; only for who holds the keeper's lock. Raises OSError where no socket can be made there."""
        folder = self.path.parent
        atomic.make_folder(folder)
        found = folder.stat()
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{folder} is open to others")
        # Of this index, and of every release: who holds the lock is its only keeper.
        for old in folder.glob(f"{self.path.name.partition('-')[0]}-*.sock"):
            if stat.S_ISSOCK(old.lstat().st_mode):
                old.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(str(self.path))
            self.path.chmod(0o600)
            made = self.path.lstat()
            listening.listen(_BACKLOG)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        self._made, self._listening = (made.st_dev, made.st_ino), listening
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more: questions that run are given up, and who asked answers by itself."""
        self._closing.set()
        listening, self._listening = self._listening, None
        if listening is not None:
            # Another keeper may have made its own, where the lock was lost.
            with contextlib.suppress(OSError):
                found = self.path.lstat()
                if (found.st_dev, found.st_ino) == self._made:
                    self.path.unlink()
            # The thread may have ended by now.
            with contextlib.suppress(OSError):
                self._wake.send(b"\0")
            self._thread.join(_GOODBYE_SECONDS)
            listening.close()
        self._wake.close()
        if self._thread.ident is None:
            self._woken.close()

    def _accept(self) -> None:
        # By the thread itself, which may end only after `close` has.
        with self._woken:
            self._take_connections()

    def _take_connections(self) -> None:
        while not self._closing.is_set() and (listening := self._listening) is not None:
            try:
                select.select([listening, self._woken], [], [])
                connection, _ = listening.accept()
            except BlockingIOError:
                continue
            except (OSError, ValueError):
                # Too many files are open, or it was closed.
                self._closing.wait(_PAUSE_SECONDS)
                continue
            if not self._connections.acquire(blocking=False):
                with _closing(connection):
                    _refuse(connection, KeeperRefusal("busy"))
                continue
            try:
                threading.Thread(target=self._serve, args=(connection,), name="keeper-answer", daemon=True).start()
            except RuntimeError:
                # The system has no thread left.
                connection.close()
                self._connections.release()

    def _serve(self, connection: socket.socket) -> None:
        """One connection, from its question to its answer."""
        try:
            with _closing(connection):
                question = self._question(connection)
                if isinstance(question, KeeperRefusal):
                    _refuse(connection, question)
                    return
                _send(connection, {"pid": os.getpid()})
                answer = self._answer_while_connected(connection, question)
                if self._closing.is_set():
                    answer = KeeperRefusal("closing")
                if isinstance(answer, KeeperRefusal):
                    _refuse(connection, answer)
                    return
                _send(connection, answer)
        except (OSError, Cancelled):
            # Who asked is gone, and answers by itself where it still wants an answer.
            return
        finally:
            self._connections.release()

    def _question(self, connection: socket.socket) -> Mapping[str, Any] | KeeperRefusal:
        """What is asked. Raises OSError."""
        if not _is_ours(connection):
            return KeeperRefusal("foreign")
        try:
            request = _Lines(connection).read(_LINE_SECONDS, REQUEST_BYTES)
        except _Broken:
            return KeeperRefusal("malformed")
        settings, question = request.get("settings"), request.get("question")
        if request.get("version") != self._version:
            return KeeperRefusal("version")
        if not isinstance(settings, dict) or not isinstance(question, dict):
            return KeeperRefusal("malformed")
        names = sorted(settings.keys() | self._settings.keys())
        if others := [name for name in names if settings.get(name) != self._settings.get(name)]:
            return KeeperRefusal("settings", ", ".join(name[:40] for name in others[:10]))
        return question

    def _answer_while_connected(
        self, connection: socket.socket, question: Mapping[str, Any]
    ) -> Mapping[str, Any] | KeeperRefusal:
        """The answer; given up when the connection ends. Raises Cancelled."""
        stop = Stop(self._closing)

        def follow() -> None:
            # Nothing more is to come; an end, or anything else, is no wish for an answer.
            with contextlib.suppress(OSError):
                connection.recv(1)
            stop.set()

        connection.settimeout(None)
        threading.Thread(target=follow, name="keeper-follow", daemon=True).start()
        while not self._running.acquire(timeout=_PAUSE_SECONDS):
            stop.check()
        try:
            return self._answer(question, stop)
        except Cancelled:
            raise
        except MemoryTuiError as error:
            return {"error": {"name": type(error).__name__, "message": error.message, "nextStep": error.next_step}}
        finally:
            self._running.release()


def _refuse(connection: socket.socket, refusal: KeeperRefusal) -> None:
    # Who does not read why is told nothing.
    with contextlib.suppress(OSError):
        _send(connection, {"refused": refusal.code, "detail": refusal.detail})
