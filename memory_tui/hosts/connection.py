"""A connection is what memory-tui wrote into the files of a host, with the way back.

What is written is recorded first, in the user's state folder, with a backup of every file. A file that nobody touched
since gets its old bytes back; of another one the changes alone are taken out, and where one of them was edited the
files stay as they are.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, to_builtins

from memory_tui.config.config_write import digest, read
from memory_tui.core import atomic
from memory_tui.core.errors import ConfigError
from memory_tui.core.secret_finder import masked, redact
from memory_tui.hosts import claude_code, codex
from memory_tui.hosts.file_changes import FileEdit, HostChange, applied, reverted
from memory_tui.hosts.wiring import SERVER, Host, Scope, ServerStart, Wiring, command

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
    found = (_read(path) for path in sorted(folder().glob("*.json")))
    return tuple(connection for connection in found if connection is not None)


def _read(path: Path) -> HostConnection | None:
    data = read(path)
    if data is None:
        return None
    try:
        return _connection(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"The record {path} of a connection cannot be read: {error}.", "Undo the connection by hand, delete it."
        ) from error


def _connection(data: dict[str, Any]) -> HostConnection:
    start = data["start"]
    variables = None if start["variables"] is None else tuple(start["variables"])
    files = tuple(
        ConnectedFile(
            Path(file["path"]),
            file["backup"],
            file["before"],
            file["after"],
            tuple(HostChange(**{**change, "keys": tuple(change["keys"])}) for change in file["changes"]),
            tuple(file["folders"]),
        )
        for file in data["files"]
    )
    return HostConnection(
        data["host"],
        data["scope"],
        Path(data["project"]),
        ServerStart(tuple(start["words"]), variables),
        data["profile"],
        data["at"],
        files,
    )


# --- connecting ----------------------------------------------------------------------------------------------------


def planned(host: Host, wiring: Wiring) -> tuple[PlannedFile, ...]:
    """Every file that connecting writes, an earlier connection's left out. Raises ConfigError."""
    earlier = recorded(host.name, wiring.scope, wiring.project)
    undone = {restored.path: restored.then for restored in restorations(earlier)} if earlier else {}
    found = []
    for edit in host.edits(wiring):
        path = Path(os.path.realpath(edit.path))
        now = read(path)
        base = undone.pop(path, now)
        after, changes = applied(FileEdit(path, edit.changes), base)
        found.append(PlannedFile(path, now, base, after if changes else base, changes))
    # What an earlier connection wrote, and this one does not.
    found += [PlannedFile(path, read(path), then, then) for path, then in undone.items()]
    return tuple(found)


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


def connect(host: Host, wiring: Wiring, files: Sequence[PlannedFile]) -> HostConnection:
    """Write `files` as planned. Raises ConfigError; then every file is as it was."""
    wanted = [file for file in files if file.changes]
    connection = HostConnection(
        host.name,
        wiring.scope,
        wiring.project,
        host.start(wiring),
        wiring.profile,
        time.time(),
        tuple(_kept(file) for file in wanted),
    )
    record = _record_path(host.name, wiring.scope, wiring.project)
    earlier = read(record)
    _write_all(files, record, json.dumps(to_builtins(connection, enc_hook=str), indent=1).encode(), earlier)
    return connection


def _kept(file: PlannedFile) -> ConnectedFile:
    """The way back for a file, its backup written. Raises ConfigError."""
    backup = ""
    try:
        if file.base is not None:
            saved = folder() / "backups" / f"{digest(file.base)[:16]}-{file.path.name}"
            atomic.make_folder(saved.parent)
            atomic.replace_file(saved, file.base)
            backup = str(saved)
    except OSError as error:
        raise _unwritten(file.path, error) from error
    missing = [parent for parent in file.path.parents if not parent.exists()]
    folders = tuple(str(parent) for parent in missing)
    return ConnectedFile(file.path, backup, digest(file.base), digest(file.then), file.changes, folders)


def _write_all(
    files: Sequence[PlannedFile | RestoredFile], record: Path, entry: bytes | None, earlier: bytes | None
) -> None:
    """Write every file, and the record before them; all of it, or nothing. Raises ConfigError."""
    for file in files:
        if read(file.path) != file.now:
            raise ConfigError(
                f"{file.path} was changed by somebody else in the meantime; nothing was written.",
                "Look at the new difference and try again.",
            )
    done: list[PlannedFile | RestoredFile] = []
    try:
        if entry is not None:
            atomic.make_folder(record.parent)
            atomic.replace_file(record, entry)
        for file in files:
            done.append(file)
            _put(file.path, file.now, file.then)
    except OSError as error:
        for file in reversed(done):
            _put(file.path, file.then, file.now)
        _put(record, entry, earlier)
        raise _unwritten(done[-1].path if done else record, error) from error


def _put(path: Path, now: bytes | None, then: bytes | None) -> None:
    """Let `path` hold `then`. Raises OSError."""
    if now == then:
        return
    if then is None:
        atomic.remove_file(path)
        return
    atomic.make_folder(path.parent, 0o755)
    atomic.replace_file(path, then, path.stat().st_mode & 0o777 if path.exists() else atomic.PRIVATE)


def _unwritten(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
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


def disconnect(connection: HostConnection, files: Sequence[RestoredFile]) -> None:
    """Write `files`, forget the connection. Raises ConfigError; then every file is as it was."""
    record = _record_path(connection.host, connection.scope, connection.project)
    earlier = read(record)
    # The last file first: what names another one goes before it.
    _write_all(list(reversed(files)), record, None, earlier)
    try:
        atomic.remove_file(record)
        for file in connection.files:
            for made in file.folders:
                atomic.remove_empty_folder(Path(made))
    except OSError as error:
        raise ConfigError(f"{record} cannot be removed: {error.strerror or error}.", "Delete it by hand.") from error


def wired(connection: HostConnection) -> list[str]:
    """What of `connection` is not in its files any more, as sentences; none where all of it is."""
    lost = []
    for file in connection.files:
        now = read(file.path)
        if now is None:
            lost.append(f"{file.path} is gone.")
        elif digest(now) != file.after:
            try:
                wanted = tuple(HostChange(change.kind, change.keys, change.value) for change in file.changes)
                _, missing = applied(FileEdit(file.path, wanted), now)
            except ConfigError as error:
                lost.append(error.message)
                continue
            lost += [f"{file.path} lost {'.'.join(change.keys)}." for change in missing]
    return lost


CLIENTS = ("claude-code", "codex", "openclaw")


def hooks(events: Sequence[str], host: str, arguments: Sequence[str]) -> dict[str, object]:
    """What makes a host call the hook `host` at `events`; the files of Claude Code and of Codex have one shape."""
    call = {"type": "command", "command": shlex.join((*command(), "hook", host, *arguments))}
    return {"hooks": {event: [{"hooks": [call]}] for event in events}}


def entry(client: str, arguments: Sequence[str]) -> str:
    """What to write for `client`, to start the server with `arguments`."""
    program, *first = command()
    words = [*first, "mcp", *arguments]
    # OpenClaw makes four more tools of prompts and resources, Codex three of resources.
    fewer = [*first, "mcp", "--no-prompts", "--no-resources", *arguments]
    match client:
        case "codex":
            return f"# ~/.codex/config.toml\n{codex.server_entry((program, *fewer))}"
        case "openclaw":
            nested = {"mcp": {"servers": {SERVER: {"command": program, "args": fewer}}}}
            return f"// openclaw.json, beside what is there\n{json.dumps(nested, ensure_ascii=False, indent=2)}"
        case _:
            shared = {"mcpServers": {SERVER: claude_code.server_entry((program, *words))}}
            return (
                f"# {shlex.join(['claude', 'mcp', 'add', SERVER, '--', program, *words])}\n"
                f"# or in .mcp.json of a project, without these two lines:\n"
                f"{json.dumps(shared, ensure_ascii=False, indent=2)}"
            )
