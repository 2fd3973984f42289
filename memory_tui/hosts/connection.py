"""A connection is what memory-tui wrote into the files of a host, with the way back.

What is written is recorded first, in the user's state folder, with a backup of every file. A file that nobody touched
since gets its old bytes back; of another one the changes alone are taken out, and where one of them was edited the
files stay as they are.
"""

from __future__ import annotations

import difflib
import errno
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, convert, to_builtins

from memory_tui import durable
from memory_tui.config.config_patch import digest, read
from memory_tui.errors import ConfigError, ConfigUnsaved
from memory_tui.hosts.file_changes import FileEdit, HostChange, applied, reverted
from memory_tui.hosts.wiring import Host, Scope, ServerStart, Wiring
from memory_tui.secrets.finder import masked, redact

Ending = Literal["restored", "removed", "changes taken out", "as before"]


class ConnectedFile(Struct, frozen=True):
    """A file that was written: sums of its bytes before and after, empty for no file; `folders` were made for it."""

    path: Path
    backup: str
    before: str
    after: str
    changes: tuple[HostChange, ...]
    folders: tuple[str, ...] = ()


class HostConnection(Struct, frozen=True):
    """A host that is connected: the server that it starts, its profile, when it was connected (epoch seconds)."""

    host: str
    scope: Scope
    project: Path
    start: ServerStart
    profile: str
    at: float
    files: tuple[ConnectedFile, ...]


class PlannedFile(Struct, frozen=True):
    """A file as it is, as it was before it was ever connected, as it will be; None for no file."""

    path: Path
    now: bytes | None
    base: bytes | None
    then: bytes | None
    changes: tuple[HostChange, ...] = ()


class RestoredFile(Struct, frozen=True):
    """A file as it is, as it will be without the connection, and what became of it."""

    path: Path
    now: bytes | None
    then: bytes | None
    ending: Ending


# --- the record ----------------------------------------------------------------------------------------------------


def folder() -> Path:
    """Where connections are recorded, with backups that hold the keys of the files they are of."""
    import platformdirs

    return platformdirs.user_state_path("memory-tui", appauthor=False) / "connections"


def _record_path(host: str, scope: Scope, project: Path) -> Path:
    return folder() / (f"{host}.json" if scope == "user" else f"{host}-{digest(os.fsencode(project))[:12]}.json")


def recorded(host: str, scope: Scope, project: Path) -> HostConnection | None:
    """The connection of a host, None where there is none. Raises ConfigError."""
    return _read(_record_path(host, scope, project))


def every() -> tuple[HostConnection, ...]:
    """All connections that are recorded, by host. Raises ConfigError."""
    connections = (_read(path) for path in sorted(folder().glob("*.json")))
    return tuple(connection for connection in connections if connection is not None)


def _read(path: Path) -> HostConnection | None:
    data = read(path)
    if data is None:
        return None
    try:
        return convert(
            json.loads(data), HostConnection, dec_hook=lambda kind, value: Path(value) if kind is Path else value
        )
    except ValueError as error:
        raise ConfigError(
            f"The record {path} of a connection cannot be read: {error}.", "Undo the connection by hand, delete it."
        ) from error


def _typed(kind: type, value: object) -> object:
    return Path(str(value)) if kind is Path else value


# --- connecting ----------------------------------------------------------------------------------------------------


def planned(host: Host, wiring: Wiring) -> tuple[PlannedFile, ...]:
    """Every file that connecting writes, an earlier connection's left out. Raises ConfigError."""
    earlier = recorded(host.name, wiring.scope, wiring.project)
    undone = {restored.path: restored.then for restored in restorations(earlier)} if earlier else {}
    planned = []
    for edit in host.edits(wiring):
        path = Path(os.path.realpath(edit.path))
        now = read(path)
        base = undone.pop(path, now)
        after, changes = applied(FileEdit(path, edit.changes), base)
        planned.append(PlannedFile(path, now, base, after if changes else base, changes))
    # What an earlier connection wrote, and this one does not.
    planned += [PlannedFile(path, read(path), then, then) for path, then in undone.items()]
    return tuple(planned)


def difference(files: Sequence[PlannedFile | RestoredFile]) -> Iterator[str]:
    """The lines of a unified difference, with keys of other servers masked; a copied file is one line."""
    if text := "\n".join(_differences(files)):
        yield from redact(masked(text)).split("\n")


def _differences(files: Sequence[PlannedFile | RestoredFile]) -> Iterator[str]:
    for file in files:
        if file.now == file.then:
            continue
        if file.now is None and isinstance(file, PlannedFile) and file.changes[0].kind == "copy":
            yield f"new file {file.path} ({len(file.then or b''):,} bytes)"
            continue
        before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in (file.now, file.then))
        old, new = ("no file" if data is None else str(file.path) for data in (file.now, file.then))
        yield from difflib.unified_diff(before, after, old, new, lineterm="")


class Overtaken(ConfigError):
    """A file was written by somebody else after it was planned."""


_Step = tuple[Path, bytes | None, bytes | None]
"""A file, its bytes, and those that it gets; None for no file."""
_TRIES = 3
"""How often a plan is made again for a host that writes its own file meanwhile."""


def connect(host: Host, wiring: Wiring, files: Sequence[PlannedFile], tries: int = _TRIES) -> HostConnection:
    """Write `files` as planned. Raises ConfigError; then every file is as it was."""
    changed = [file for file in files if file.changes]
    record = _record_path(host.name, wiring.scope, wiring.project)
    earlier = _read(record)
    folders = {folder for file in earlier.files for folder in file.folders} if earlier else set()
    connection = HostConnection(
        host.name,
        wiring.scope,
        wiring.project,
        host.start(wiring),
        wiring.profile,
        time.time(),
        tuple(_backed_up(file, folders) for file in changed),
    )
    entry = json.dumps(to_builtins(connection, enc_hook=str), indent=1).encode()
    try:
        _write_all([(record, read(record), entry), *((file.path, file.now, file.then) for file in files)])
    except Overtaken:
        again = planned(host, wiring)
        # What was agreed to is written, beside whatever else the file holds now.
        if not tries or [file.changes for file in again] != [file.changes for file in files]:
            raise
        return connect(host, wiring, again, tries - 1)
    return connection


def _backed_up(file: PlannedFile, earlier: Collection[str]) -> ConnectedFile:
    """The way back for a file, its backup written; folders that an `earlier` connection made go as well.

    Raises ConfigError.
    """
    backup = ""
    try:
        saved = folder() / "backups" / f"{digest(file.base)[:16]}-{file.path.name}"
        durable.make_folder(saved.parent)
        if file.base is not None:
            durable.replace_file(saved, file.base)
            backup = str(saved)
    except OSError as error:
        raise _unwritten(folder(), error) from error
    folders = [str(parent) for parent in file.path.parents if not parent.exists() or str(parent) in earlier]
    return ConnectedFile(file.path, backup, digest(file.base), digest(file.then), file.changes, tuple(folders))


def _write_all(steps: Sequence[_Step]) -> None:
    """Write every file, or none. Raises ConfigError."""
    done: list[_Step] = []
    folders: list[Path] = []
    for path, now, then in steps:
        try:
            if read(path) != now:
                raise Overtaken(
                    f"{path} was changed by somebody else in the meantime; nothing was written.",
                    "Look at the new difference and try again.",
                )
            folders[:0] = [parent for parent in path.parents if not parent.exists()]
            _put(path, now, then)
        except (OSError, ConfigError) as error:
            _take_back(done, folders)
            if isinstance(error, ConfigError):
                raise
            raise _unwritten(path, error) from error
        done.insert(0, (path, now, then))


def _take_back(done: Sequence[_Step], folders: Sequence[Path]) -> None:
    """Let files and folders be as before `done`, the last step first. Raises ConfigError; then the record stays."""
    for path, now, then in done:
        try:
            if read(path) != then:
                raise OSError(errno.EBUSY, "Somebody else wrote it meanwhile")
            _put(path, then, now)
        except OSError as error:
            raise ConfigUnsaved(
                f"Writing failed, and {path} cannot be put back: {error.strerror or error}.",
                "memory-tui disconnect HOST takes out what was written.",
            ) from error
    _remove_empty(folders)


def _remove_empty(folders: Iterable[Path]) -> None:
    for path in folders:
        try:
            durable.remove_empty_folder(path)
        except OSError as error:
            raise ConfigUnsaved(
                f"{path} cannot be removed: {error.strerror or error}.", "Delete it by hand."
            ) from error


def _put(path: Path, now: bytes | None, then: bytes | None) -> None:
    """Let `path` hold `then`. Raises OSError."""
    if now == then:
        return
    if then is None:
        durable.remove_file(path)
        return
    durable.make_folder(path.parent, 0o755)
    durable.replace_file(path, then, path.stat().st_mode & 0o777 if path.exists() else durable.PRIVATE)


def _unwritten(path: Path, error: OSError) -> ConfigError:
    return ConfigUnsaved(
        f"{path} cannot be written: {error.strerror or error}.", "Nothing was changed; check permissions and space."
    )


# --- the way back --------------------------------------------------------------------------------------------------


def restorations(connection: HostConnection) -> tuple[RestoredFile, ...]:
    """Every file of `connection` as it will be without it. Raises ConfigError where a later edit prevents that."""
    return tuple(_restoration(file) for file in connection.files)


def _restoration(file: ConnectedFile) -> RestoredFile:
    now = read(file.path)
    if digest(now) == file.before:
        return RestoredFile(file.path, now, now, "as before")
    if digest(now) == file.after:
        then = read(Path(file.backup)) if file.backup else None
        if then is not None or not file.backup:
            return RestoredFile(file.path, now, then, "restored" if file.backup else "removed")
    return RestoredFile(file.path, now, reverted(FileEdit(file.path, file.changes), now), "changes taken out")


def disconnect(connection: HostConnection, files: Sequence[RestoredFile], tries: int = _TRIES) -> None:
    """Write `files`, forget the connection. Raises ConfigError; then every file is as it was."""
    record = _record_path(connection.host, connection.scope, connection.project)
    # The last file first: what names another one goes before it.
    steps: list[_Step] = [(file.path, file.now, file.then) for file in reversed(files)]
    try:
        _write_all([*steps, (record, read(record), None)])
    except Overtaken:
        if not tries:
            raise
        disconnect(connection, restorations(connection), tries - 1)
        return
    _remove_empty(Path(path) for file in connection.files for path in file.folders)


def wired(connection: HostConnection) -> list[str]:
    """What of `connection` is not in its files any more, as sentences; none where all of it is."""
    lost = []
    for file in connection.files:
        now = read(file.path)
        if now is None:
            lost.append(f"{file.path} is gone.")
        elif digest(now) != file.after:
            if file.changes[0].kind == "copy":
                lost.append(f"{file.path} was edited after memory-tui wrote it.")
                continue
            try:
                changes = tuple(HostChange(change.kind, change.keys, change.value) for change in file.changes)
                _, missing = applied(FileEdit(file.path, changes), now)
            except ConfigError as error:
                lost.append(error.message)
                continue
            lost += [f"{file.path} lost {'.'.join(change.keys)}." for change in missing]
    return lost
