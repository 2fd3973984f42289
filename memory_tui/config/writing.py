"""Writing a configuration file: only if it is still what was read, in one step, with a backup that undo brings back."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from memory_tui.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Written:
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
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.", "Check its permissions.") from error


def write(path: Path, before: bytes | None, after: bytes) -> Written:
    """Put `after` in the place of `before`, keeping a backup. Raises ConfigError when the file is another by now."""
    real = Path(os.path.realpath(path))
    _still(real, before)
    try:
        folder = backups()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = ""
        if before is not None:
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            kept = str(folder / f"{real.stem}-{stamp}-{_sum(before)[:8]}{real.suffix}")
            _put(Path(kept), before, 0o600)
        real.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _put(real, after, real.stat().st_mode & 0o777 if before is not None else 0o600)
        done = Written(str(real), kept, _sum(before), _sum(after), time.time())
        with os.fdopen(
            os.open(folder / "log.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
        ) as log:
            log.write(json.dumps(asdict(done)) + "\n")
    except OSError as error:
        raise ConfigError(
            f"{real} cannot be written: {error.strerror or error}.",
            "Nothing was changed; check permissions and free space.",
        ) from error
    return done


def last(path: Path | None = None) -> Written | None:
    """The newest write of `path`, or of any file, that was not undone."""
    log = backups() / "log.jsonl"
    if not log.is_file():
        return None
    wanted = os.path.realpath(path) if path else None
    undone: set[tuple[str, float]] = set()
    for line in reversed(log.read_text("utf-8").splitlines()):
        item = json.loads(line)
        if "undone" in item:
            undone.add((item["path"], item["undone"]))
        elif (item["path"], item["at"]) not in undone and wanted in (None, item["path"]):
            return Written(**item)
    return None


def undo(done: Written) -> None:
    """Bring back what was there before. Raises ConfigError when the file was changed since."""
    path = Path(done.path)
    now = read(path)
    if _sum(now) != done.after:
        raise ConfigError(
            f"{path} was changed after memory-tui wrote it; nothing was undone.",
            f"What it was before is in {done.backup}." if done.backup else "Change it by hand.",
        )
    try:
        if done.backup:
            _put(path, Path(done.backup).read_bytes(), path.stat().st_mode & 0o777)
        else:
            path.unlink()
        with (backups() / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"path": done.path, "undone": done.at}) + "\n")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be restored: {error.strerror or error}.", f"Its backup is {done.backup}."
        ) from error


def _still(path: Path, before: bytes | None) -> None:
    if read(path) != before:
        raise ConfigError(
            f"{path} was changed by somebody else in the meantime; nothing was written.",
            "Look at the new difference and try again.",
        )


def _sum(data: bytes | None) -> str:
    return hashlib.sha256(data).hexdigest() if data is not None else ""


def _put(path: Path, data: bytes, mode: int) -> None:
    """Write a whole file or nothing of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
