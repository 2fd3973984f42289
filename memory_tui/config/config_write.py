"""A configuration file is written in one step, with a backup that undo restores."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from memory_tui import durable
from memory_tui.errors import ConfigError, ConfigUnsaved


class ConfigWrite(Struct, frozen=True):
    """One write that can be undone: `backup` holds what was there, empty where there was no file; times in seconds."""

    path: str
    backup: str
    before: str
    after: str
    at: float


def backups() -> Path:
    """The folder of backups, in the user's state folder; configurations hold keys, so nobody else may read it."""
    import platformdirs

    return platformdirs.user_state_path("memory-tui", appauthor=False) / "config-backups"


def read(path: Path) -> bytes | None:
    """The bytes of a file, None where there is none. Raises ConfigError."""
    try:
        return durable.read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.", "Check its permissions.") from error


def write(path: Path, before: bytes | None, after: bytes) -> ConfigWrite:
    """Put `after` in the place of `before`, keeping a backup. Raises ConfigError when the file is another by now."""
    real = Path(os.path.realpath(path))
    _still(real, before)
    try:
        folder = backups()
        durable.make_folder(folder)
        backup = ""
        if before is not None:
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            backup = str(folder / f"{real.stem}-{stamp}-{digest(before)[:8]}{real.suffix}")
            durable.replace_file(Path(backup), before)
        done = ConfigWrite(str(real), backup, digest(before), digest(after), time.time())
        # First the way back: a line about a write that was not made after all is passed over by `last`.
        _note(to_builtins(done))
        durable.make_folder(real.parent)
        _still(real, before)
        durable.replace_file(real, after, real.stat().st_mode & 0o777 if before is not None else durable.PRIVATE)
    except OSError as error:
        raise ConfigUnsaved(
            f"{real} cannot be written: {error.strerror or error}.",
            "Nothing was changed; check permissions and free space.",
        ) from error
    return done


def last(path: Path | None = None) -> ConfigWrite | None:
    """The newest write of `path`, or of any file, that was not undone. Raises ConfigError.

    A file that holds what it held before a write does not count as written: that write was cut off, or taken back.
    """
    real = os.path.realpath(path) if path else None
    undone: set[tuple[str, float]] = set()
    for item in reversed(_noted()):
        if "undone" in item:
            undone.add((str(item.get("path")), item["undone"]))
            continue
        try:
            done = ConfigWrite(**item)
        except TypeError:
            continue
        if (done.path, done.at) in undone or real not in (None, done.path):
            continue
        if done.before == done.after or digest(read(Path(done.path))) != done.before:
            return done
    return None


def undo(done: ConfigWrite) -> None:
    """Bring back what was there before. Raises ConfigError when the file was changed since."""
    path = Path(done.path)
    now = read(path)
    if digest(now) != done.after:
        raise ConfigError(
            f"{path} was changed after memory-tui wrote it; nothing was undone.",
            f"What it was before is in {done.backup}." if done.backup else "Change it by hand.",
        )
    try:
        if done.backup:
            durable.replace_file(path, Path(done.backup).read_bytes(), path.stat().st_mode & 0o777)
        else:
            durable.remove_file(path)
    except OSError as error:
        raise ConfigUnsaved(
            f"{path} cannot be restored: {error.strerror or error}.", f"Its backup is {done.backup}."
        ) from error
    try:
        _note({"path": done.path, "undone": done.at})
    except OSError as error:
        raise ConfigUnsaved(
            f"{path} is as it was before, but that could not be noted: {error.strerror or error}.",
            f"Make room on the disk that holds {backups()}.",
        ) from error


def _note(fields: dict[str, Any]) -> None:
    """Write one line of the log. Raises OSError."""
    log = backups() / "log.jsonl"
    line = json.dumps(fields).encode("ascii") + b"\n"
    durable.append_line(log, line)


def _noted() -> list[dict[str, Any]]:
    """The lines of the log, oldest first; one that was cut off is left out."""
    items = []
    for line in (read(backups() / "log.jsonl") or b"").split(b"\n"):
        try:
            item = json.loads(line)
        except ValueError:
            continue
        if isinstance(item, dict):
            items.append(item)
    return items


def _still(path: Path, before: bytes | None) -> None:
    if read(path) != before:
        raise ConfigError(
            f"{path} was changed by somebody else in the meantime; nothing was written.",
            "Look at the new difference and try again.",
        )


def digest(data: bytes | None) -> str:
    """The SHA-256 of `data`, empty for no file."""
    return hashlib.sha256(data).hexdigest() if data is not None else ""
