"""Checks of the machine. They examine SQLite, full-text search, vectors, watching, folders, clock and terminal."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tui.cancel import Stop
from memory_tui.doctor.check import Check, CheckOutcome, failed, ok, skipped, warning

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine

_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afpfs",
        "fuse.sshfs",
        "vboxsf",
        "davfs",
        "ceph",
        "fuse.rclone",
        "fuse.s3fs",
    }
)
"""File systems on which locks, shared memory or change events are not to be relied on."""
_LEAST_FREE = 200_000_000
_SIGHT_SECONDS = 3.0


def _python(_: Engine) -> CheckOutcome:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.maxsize < 2**32:
        return warning(f"Python {version}, 32 bits: a large index may not fit.", "Use a 64-bit Python.")
    return ok(f"Python {version}, {sys.platform}.")


def _sqlite(_: Engine) -> CheckOutcome:
    import apsw

    version = apsw.sqlite_lib_version()
    # contentless_delete came with 3.43.
    if tuple(map(int, version.split(".")[:2])) >= (3, 43):
        return ok(f"SQLite {version}, through apsw.")
    return failed(f"SQLite {version} is too old.", "Install apsw anew: its wheel brings a newer SQLite.")


def _full_text(_: Engine) -> CheckOutcome:
    from memory_tui.index import abilities

    reason = abilities.fts5()
    if reason:
        return failed(f"No full-text search: {reason}.", "Unset MEMORY_TUI_DISABLE, or install apsw from its wheel.")
    return ok("A table was made, filled and searched.")


def _trigram(engine: Engine) -> CheckOutcome:
    from memory_tui.index import abilities

    if engine.plan.settings.word("store.fts.tokenizer") != "trigram":
        return skipped("The configuration does not use trigrams.")
    reason = abilities.trigram()
    return (
        warning(f"No trigrams: {reason}. unicode61 cuts the words.", "Leave store.fts.tokenizer out.")
        if reason
        else ok("A table was made, filled and searched.")
    )


def _vec0(engine: Engine) -> CheckOutcome:
    from memory_tui.index import abilities

    if not engine.plan.settings.on("store.vector.enabled"):
        return skipped("store.vector.enabled is off; numpy compares the vectors, with the same answers.")
    state = abilities.vec0(engine.index.opener.vec0())
    if not state.ready:
        return warning(
            f"sqlite-vec is not used: {state.detail}. numpy answers the same.",
            "Reinstall sqlite-vec, or set store.vector.enabled to false.",
        )
    return ok("A vec0 table was made, filled and asked for the nearest vector.")


def _clock(engine: Engine) -> CheckOutcome:
    now = time.time()
    if now < 1_704_067_200:
        return failed(f"This machine believes it is {time.strftime('%Y-%m-%d', time.gmtime(now))}.", "Set the clock.")
    ahead = [row.path for row in engine.notes.files() if row.mtime > now + 86_400]
    if ahead:
        return warning(
            f"Saved more than a day in the future by this clock: {', '.join(ahead[:3])}.",
            "Check the clock of this machine and of the one that saves the notes.",
        )
    return ok("No note was saved in the future.")


def _terminal(_: Engine) -> CheckOutcome:
    # The app draws over what stands in for standard output while it runs.
    stream = sys.__stdout__
    written = stream.encoding if stream is not None else "utf-8"
    if written.lower().replace("-", "") not in ("utf8", "utf8sig", "cp65001"):
        return warning(
            f"Output is written as {written}: other letters become question marks.",
            "Set LANG to a UTF-8 locale, for instance C.UTF-8.",
        )
    if os.environ.get("TERM", "") == "dumb":
        return warning("TERM is dumb: the app cannot draw there.", "Use a terminal, or the commands.")
    return ok(f"UTF-8, TERM {os.environ.get('TERM', 'not set')}.")


def _index_folder(engine: Engine) -> CheckOutcome:
    folder = engine.plan.index.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        return failed(f"{folder} cannot be written.", "Name another file with --index, or change its permissions.")
    index = engine.plan.index
    if index.exists() and os.name == "posix" and stat.S_IMODE(index.stat().st_mode) & 0o077:
        return warning(f"{index} can be read by others; it holds your notes.", f"chmod 600 {index}")
    return ok(f"{engine.plan.index.parent} can be written, and nobody else reads the index.")


def _free_space(engine: Engine) -> CheckOutcome:
    folder = engine.plan.index.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    size = engine.plan.index.stat().st_size if engine.plan.index.exists() else 0
    needed = max(_LEAST_FREE, 2 * size)
    if free < needed:
        return warning(
            f"{free / 1e6:,.0f} MB are free where the index is; a rebuild needs up to {needed / 1e6:,.0f}.",
            "Make room, or name another place with --index.",
        )
    return ok(f"{free / 1e9:,.1f} GB are free where the index is.")


def _file_system(path: Path) -> str:
    """Return the type of the file system that `path` is on; empty where the system does not tell."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    real, best, kind = os.path.realpath(path), "", ""
    for line in mounts:
        parts = line.split(" ")
        point = parts[1].replace("\\040", " ") if len(parts) > 2 else ""
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, parts[2]
    return kind


def _index_file_system(engine: Engine) -> CheckOutcome:
    kind = _file_system(engine.plan.index.parent)
    if kind in _NETWORK:
        return failed(
            f"The index is on {kind}, where SQLite's log is not safe.", "Name a file on a local disk with --index."
        )
    return ok(f"The index is on {kind}.") if kind else skipped("Cannot detect the file system.")


def _notes_file_system(engine: Engine) -> CheckOutcome:
    kind = _file_system(engine.plan.roots.workspace)
    if kind in _NETWORK:
        return warning(
            f"The notes are on {kind}: changes made elsewhere may not be announced.",
            "Leave sync.onSearch on; it looks before each search.",
        )
    return ok(f"The notes are on {kind}.") if kind else skipped("Cannot detect the file system.")


def _watch_limit(engine: Engine) -> CheckOutcome:
    try:
        limit = int(Path("/proc/sys/fs/inotify/max_user_watches").read_text("ascii"))
    except (OSError, ValueError):
        return skipped("This system has no such limit.")
    folders = len({row.path.rpartition("/")[0] for row in engine.notes.files()}) + len(engine.plan.roots.extra)
    if folders * 2 > limit:
        return warning(
            f"{limit:,} folders may be watched, and the notes are in {folders:,}.", "Raise fs.inotify.max_user_watches."
        )
    return ok(f"{limit:,} folders may be watched; the notes are in {folders:,}.")


def _sees_a_save(_: Engine) -> CheckOutcome:
    import watchfiles

    with tempfile.TemporaryDirectory(prefix="memory-tui-doctor-") as folder:
        stop, seen, refused = Stop(), threading.Event(), ""

        def watch() -> None:
            nonlocal refused
            try:
                for changes in watchfiles.watch(
                    folder, stop_event=stop, rust_timeout=100, yield_on_timeout=True, debounce=50
                ):
                    if changes:
                        seen.set()
                        return
            except (OSError, RuntimeError) as error:
                # The system has no watch left to give (watchfiles says what its native part reports as RuntimeError);
                # or the folder is gone, because this thread came too late.
                refused = str(error)
                stop.set()

        watcher = threading.Thread(target=watch, name="doctor-watch", daemon=True)
        watcher.start()
        began, number = time.monotonic(), 0
        while not seen.wait(0.05) and not stop.is_set() and time.monotonic() - began < _SIGHT_SECONDS:
            # The watch may not be armed yet when the first file is written.
            number += 1
            (Path(folder) / f"{number}.md").write_text("saved", "utf-8")
        stop.set()
        watcher.join(1)
        took = (time.monotonic() - began) * 1000
    if seen.is_set():
        return ok(f"A file that was saved was noticed within {took:.0f} ms.")
    told = f"no watch was given: {refused}" if refused else f"nothing was announced within {_SIGHT_SECONDS:.0f} s"
    return warning(
        f"A file was saved, and {told}.", "Leave sync.onSearch on; in a container, set WATCHFILES_FORCE_POLLING=true."
    )


def _terminal_tools(_: Engine) -> CheckOutcome:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    program = shutil.which(editor.split()[0]) if editor.split() else None
    if program is None:
        return warning(f"The editor {editor} is not there.", "Set VISUAL or EDITOR.")
    return ok(f"Notes are edited with {program}.")


CHECKS: tuple[Check, ...] = (
    Check("python", "machine", "Python", _python),
    Check("sqlite", "machine", "SQLite", _sqlite),
    Check("full-text", "machine", "Full-text search works", _full_text),
    Check("trigram", "machine", "Trigrams work", _trigram),
    Check("vec0", "machine", "sqlite-vec works", _vec0),
    Check("watcher", "machine", "A saved file is noticed", _sees_a_save),
    Check("watch-limit", "machine", "Enough folders may be watched", _watch_limit),
    Check("index-folder", "machine", "The index can be written, by you alone", _index_folder),
    Check("free-space", "machine", "There is room for a rebuild", _free_space),
    Check("index-file-system", "machine", "The index is on a local disk", _index_file_system),
    Check("notes-file-system", "machine", "Changes of the notes are announced", _notes_file_system),
    Check("clock", "machine", "The clock is right", _clock),
    Check("terminal", "machine", "The terminal shows every letter", _terminal),
    Check("editor", "machine", "There is an editor", _terminal_tools),
)
