"""The only module that imports LanceDB. It does so on first use, and turns its exceptions into our errors.

Nothing else of the package imports lancedb or pyarrow: the two take seconds, and most runs never need them.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.formatting import install_extra
from memory_tui.core.sanitize import one_line
from memory_tui.providers.options import Redactor

if TYPE_CHECKING:
    from memory_tui.ltm.location import TableLocation

T = TypeVar("T")
LOCAL_SECONDS, REMOTE_SECONDS = 600.0, 30.0
"""How long one call of the library may take, on this machine and over the network."""
NOT_FOUND = "was not found"
"""What the library says of a table that is not there."""
_EXTRA = f"{install_extra('lancedb')}."
_LOADING = threading.Lock()
_LONGEST_REASON = 200
_SOURCE = re.compile(r",? ?/\S+\.rs:\d+:\d+")
"""Where in the library's own sources a failure was met."""


_PANICS = ("PanicException", "RustPanic")
_MARK = b"LANC"
_MANIFEST_END, _LENGTH = struct.Struct("<Q4s4s"), struct.Struct("<I")
_DATA_END = struct.Struct("<QQQIIHH4s")
_ROW = 16
"""Bytes of a place with its length."""
_SINCE = (0, 3)
"""The first version of the files of data that end so; it is called 2.0 elsewhere."""
_WRITTEN = "2.0"
"""The version of the files of new tables: the library of OpenClaw's plug-in panics over those of 2.2."""
_HALF = 1 << 63
_DAMAGE = "magic|notfound|invalidrange|filesizeistoosmall|corrupt|panic|manifest|decode|protobuf|lanceerror"


class MemoriesUnavailable(MemoryTuiError):
    """The table of entries cannot be read, written or trusted."""

    code = "memories"


class TableMissing(MemoriesUnavailable):
    """There is no table of entries yet."""

    code = "memories_missing"


def require() -> None:
    """Find the library without loading it. Raises MemoriesUnavailable where it is not there."""
    if importlib.util.find_spec("lancedb") is None:
        raise MemoriesUnavailable("LanceDB, which keeps the memories, is not installed.", _EXTRA)


def library(name: str = "lancedb") -> Any:  # noqa: ANN401 - a module without types
    """The module lancedb, or another one of its packages such as pyarrow. Raises MemoriesUnavailable.

    The first call takes seconds, so it belongs on a worker thread.
    """
    with _LOADING:
        # Read once, when it is loaded: its remarks on standard error would lie on the screen.
        os.environ.setdefault("LANCE_LOG", "error")
        os.environ.setdefault("LANCEDB_LOG", "error")
        os.environ.setdefault("RUST_BACKTRACE", "0")
        try:
            importlib.import_module("lancedb")
            return importlib.import_module(name)
        except ImportError as error:
            raise MemoriesUnavailable(f"LanceDB cannot be loaded: {one_line(str(error))}.", _EXTRA) from error


def connected(location: TableLocation) -> Any:  # noqa: ANN401 - a connection of LanceDB
    """A connection to the folder or store of a table; a folder is made where there is none."""
    return library().connect(location.uri, storage_options=dict(location.options) or None)


def made(location: TableLocation, schema: Any) -> Any:  # noqa: ANN401 - a schema of Arrow, a table of LanceDB
    """The table in `location`, made with `schema` where there is none; its first column is declared as its key."""
    connection = connected(location)
    try:
        table = connection.open_table(location.table)
    except ValueError as error:
        if NOT_FOUND not in str(error):
            raise
        options = {**location.options, "new_table_data_storage_version": _WRITTEN}
        table = connection.create_table(location.table, schema=schema, storage_options=options)
    key = schema.names[0]
    if key in table.schema.names and not is_key(table.schema.field(key)):
        table.set_unenforced_primary_key(key)
    return table


def is_key(column: Any) -> bool:  # noqa: ANN401 - a column of a schema of Arrow
    """Whether a column is declared as the key of its table, so that two writers cannot add a value twice."""
    return any(b"unenforced-primary-key" in name for name in column.metadata or {})


@contextmanager
def sentences(location: TableLocation, doing: str) -> Iterator[None]:
    """Turn whatever the library raises, a panic too, into MemoriesUnavailable: what could not be done, and why."""
    try:
        yield
    except MemoryTuiError:
        raise
    except (ValueError, RuntimeError, OSError, KeyError, TypeError, ImportError, AttributeError) as error:
        raise failure(location, doing, error) from error
    except BaseException as error:
        # A panic in Rust has one of two classes; one is no Exception, so that nobody swallows it by accident.
        if type(error).__name__ not in _PANICS:
            raise
        raise failure(location, doing, error) from error


_OF_STORES = (
    (
        "nosuchbucket|bucketdoesnotexist|bucket.{0,60}notfound",
        "There is no bucket for {}.",
        "Create the bucket, or name another place.",
    ),
    (
        "accessdenied|invalidaccesskey|signaturedoesnotmatch|403|401|unauthorized|permissiondenied",
        "The store refuses the keys for {}.",
        "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    ),
    (
        "kind:connect|connectionrefused|errorsendingrequest|dnserror|timedout|timeout|connect",
        "The store of {} cannot be reached.",
        "Check the address and the network.",
    ),
    ("credential|imds|169.254", "There are no keys for {}.", "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."),
)
"""What an object store says of itself, without blanks and in small letters; the sentence; the next step."""
_OF_DISKS = (
    (
        "permissiondenied|read-onlyfilesystem|oserror13|oserror30|errno13",
        "{} cannot be written: permission denied.",
        "Check the rights of the folder.",
    ),
    ("nospaceleft|oserror28", "The disk of {} is full.", "Free some room and try again."),
    (
        "commitconflict|toomuchwritecontention|concurrent",
        "Another program changed {} at the same moment; nothing was written.",
        "Try again.",
    ),
)
"""The same of any place."""


def failure(location: TableLocation, doing: str, error: BaseException) -> MemoriesUnavailable:
    """What a person is told of `error`."""
    said = Redactor(location.secrets)(str(error))
    low = said.lower().replace(" ", "")
    shown = one_line(location.shown)
    for pattern, sentence, next_step in (*(_OF_STORES if location.remote else ()), *_OF_DISKS):
        if re.search(pattern, low):
            return MemoriesUnavailable(sentence.format(shown), next_step)
    if re.search(_DAMAGE, low):
        return damaged(location, _reason(said))
    return MemoriesUnavailable(f"{doing} {shown} failed: {_reason(said)}.", "")


def damaged(location: TableLocation, reason: str) -> MemoriesUnavailable:
    """What a person is told of a table that cannot be trusted."""
    return MemoriesUnavailable(
        f"The table in {one_line(location.shown)} is damaged: {reason}. memory-tui changes nothing in it.",
        "Restore the folder from a backup, or name another one: --memories DIR.",
    )


def require_whole(location: TableLocation) -> None:
    """Look at the ends of the files of a local table before the library does. Raises MemoriesUnavailable.

    The library believes the lengths that it reads there: a wrong one can end the whole process.
    """
    folder = Path(location.uri) / f"{location.table}.lance"
    versions = {int(file.stem): file for file in (folder / "_versions").glob("*.manifest") if file.stem.isdigit()}
    if not versions:
        return
    # Newer releases count down, so that a listing gives the newest first.
    newest = versions[min(versions) if max(versions) > _HALF else max(versions)]
    try:
        manifest = newest.read_bytes()
        sound = _whole_manifest(manifest)
        named = [file for file in (folder / "data").glob("*.lance") if file.name.encode() in manifest] if sound else []
        bad = next((file for file in named if not _whole_data(file)), None) if sound else newest
    except OSError as error:
        raise failure(location, "Reading", error) from error
    if bad is not None:
        raise damaged(location, f"{bad.name} does not end as such a file does")


def _whole_manifest(data: bytes) -> bool:
    """A manifest ends with the place of its own record, whose length stands there, then version and mark."""
    if len(data) < _MANIFEST_END.size or not data.endswith(_MARK):
        return False
    place = int(_MANIFEST_END.unpack(data[-_MANIFEST_END.size :])[0])
    room = len(data) - _MANIFEST_END.size - _LENGTH.size - place
    return room >= 0 and int(_LENGTH.unpack_from(data, place)[0]) <= room


def _whole_data(file: Path) -> bool:
    """A file of data ends with the places of three tables and the lengths of two, then version and mark."""
    with file.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        if size < _DATA_END.size:
            return False
        opened.seek(size - _DATA_END.size)
        end = opened.read()
    columns_at, offsets_at, buffers_at, buffers, columns, major, minor, mark = _DATA_END.unpack(end)
    if mark != _MARK:
        return False
    room = size - _DATA_END.size
    tables = columns_at <= offsets_at <= buffers_at <= room and buffers_at + buffers * _ROW <= room
    return bool((major, minor) < _SINCE or (tables and offsets_at + columns * _ROW <= buffers_at))


def _reason(text: str) -> str:
    first = _SOURCE.sub("", text.splitlines()[0] if text.strip() else "no reason given")
    return one_line(first.removeprefix("lance error: "), _LONGEST_REASON).rstrip(". ,")


def bounded(location: TableLocation, doing: str, run: Callable[[], T], seconds: float = 0.0) -> T:
    """What `run` returns; a call over the network is given up after a while. Raises MemoriesUnavailable.

    Given up means that nobody waits any more: the library has no way to stop a call.
    """
    limit = seconds or (REMOTE_SECONDS if location.remote else LOCAL_SECONDS)
    if not location.remote:
        with sentences(location, doing):
            return run()
    found: list[T] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            with sentences(location, doing):
                found.append(run())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            failed.append(error)

    thread = threading.Thread(target=call, name="lancedb-call", daemon=True)
    thread.start()
    thread.join(limit)
    if failed:
        raise failed[0]
    if not found:
        raise MemoriesUnavailable(
            f"The store of {one_line(location.shown)} gave no answer within {limit:g} seconds.",
            "Check the address and the network.",
        )
    return found[0]
