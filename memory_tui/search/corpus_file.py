"""A corpus file holds the chunks of an index as arrays that processes share by mapping it into memory.

It lies beside the index, says of which uuid and generation it is, and can be removed at any time: what changed since is
taken from the change log, and without it, or where anything does not fit, the index itself is read. The header and
what is behind it each have a checksum: a flipped bit could name another note, and still be a vector of length 1.
Vectors stand there twice: rounded, which a question compares all of, and whole, of which it reads few.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
from collections.abc import Callable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash
from msgspec.structs import astuple

from memory_tui.core import atomic
from memory_tui.core.files import read_beside
from memory_tui.providers.provider_protocol import Identity, Vectors
from memory_tui.search.corpus import Block, ChunkIds, Corpus, Files, VectorsOfFile
from memory_tui.search.meaning import rounded
from memory_tui.search.meaning.rounded import Rounded
from memory_tui.source.protocol import ChunkSource

LEAST = 1_000
"""Chunks from which a file is made: fewer are read from the index in some 50 ms."""
_FORMAT = 4
PAGE = 4096
_CHECK_BYTES = 8
_MARK = b'{"format": '


Write = Callable[[bytes], None]
Array = npt.NDArray[Any]
_ROOM = 1.02
"""Rows of the file for each that it holds, for what comes next; who needs more takes a copy."""
_SPARE = 256
_PIECE = 1 << 24
_CHECKED_AT_ONCE = 1 << 18
"""Bytes that stay in the cache of a processor between reading them and their checksum."""


def size_of(shape: tuple[int, ...], kind: str) -> int:
    """Bytes of an array."""
    return math.prod(shape) * np.dtype(kind).itemsize


def padding(size: int) -> int:
    """Bytes from the end of an array of `size` bytes to the next page."""
    return -size % PAGE


@contextlib.contextmanager
def writing(path: Path, header: Mapping[str, Any]) -> Iterator[Write]:
    """Write the file piece by piece behind its header, whose first field is `format`; it gets its name at the end.

    A file of another program stays as it is, for which FileExistsError is raised. Raises OSError.
    """
    if path.exists() and not read_beside(path, PAGE, whole=False).startswith(_MARK):
        raise FileExistsError(errno.EEXIST, "another program's file has this name", str(path))
    with atomic.replacing(path) as write:
        page = json.dumps(header).encode().ljust(PAGE - _CHECK_BYTES)
        write(page + _check_of(page))
        yield write


def _check_of(data: bytes | memoryview) -> bytes:
    """The checksum (XXH3) of some bytes, as it stands behind them."""
    return xxhash.xxh3_64_digest(data)


def header_of(path: Path) -> dict[str, Any]:
    """The header of the file, as it was written. Raises OSError, ValueError."""
    page = read_beside(path, PAGE, whole=False)
    found = json.loads(page[:-_CHECK_BYTES])
    if not isinstance(found, dict) or page[-_CHECK_BYTES:] != _check_of(page[:-_CHECK_BYTES]):
        raise ValueError("a header that is none")
    return found


def remove_newer(path: Path, store: ChunkSource) -> None:
    """Remove the file at `path` where it is of a later generation of `store` than this one; before anything is written.

    Then an older index was put back, or a power cut took the last changes, and others are about to get their numbers.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        header = header_of(path)
        if header["uuid"] == store.uuid() and header["generation"] > store.generation():
            atomic.remove_file(path)


def mapped(file: Path | FileIO, at: int, shape: tuple[int, ...], kind: str, *, writable: bool = False) -> Array:
    """One array of the file; pages that are written are of this process alone. Raises OSError, ValueError."""
    if not math.prod(shape):
        return np.empty(shape, kind)
    return np.asarray(np.memmap(file, kind, "c" if writable else "r", at, shape))


# --- the chunks ------------------------------------------------------------------------------------------------------


def path_of(index: Path) -> Path:
    """Where the file of `index` lies."""
    return index.with_name(f"{index.name}.corpus")


def _layout(header: Mapping[str, Any]) -> Iterator[tuple[str, int, tuple[int, ...], str]]:
    """Name, place in the file, shape and type of each array."""
    room, dims, at = header["room"], header["space"][-1], PAGE
    for name, shape, kind in (
        ("rowids", (room,), "<i8"),
        ("notes", (room,), "<i8"),
        ("lines", (2, room), "<i4"),
        ("flags", (2, room), "|b1"),
        ("ids", (room,), f"|S{header['width']}"),
        ("mean", (dims,), "<f4"),
        ("rounded", (room, dims), "|i1"),
        ("numbers", (3, room), "<f4"),
        ("matrix", (room, dims), "<f4"),
    ):
        yield name, at, shape, kind
        at += size_of(shape, kind) + padding(size_of(shape, kind))


def save(path: Path, corpus: Corpus) -> None:
    """Write the file of `corpus` in one step, where it has vectors and is large. Without a file nothing is lost."""
    identity, count = corpus.identity, len(corpus)
    if identity is None or not corpus.dims or count < LEAST:
        return
    ids = np.array([corpus.chunk_id(row).encode() for row in range(count)])
    room = int(count * _ROOM) + _SPARE
    header = {
        "format": _FORMAT,
        "uuid": corpus.uuid,
        "generation": corpus.generation,
        "space": list(astuple(identity)),
        "rows": count,
        "room": room,
        "width": ids.dtype.itemsize,
    }
    numbers = np.full(len(corpus.files.paths), -1, np.int64)
    for number, at in corpus.files.index.items():
        numbers[at] = number
    columns: dict[str, Array] = {
        "rowids": corpus.rowids,
        "notes": numbers[corpus.file_of],
        "lines": np.stack([corpus.start_lines, corpus.end_lines]),
        "flags": np.stack([corpus.embedded, corpus.has_vector]),
        "ids": ids,
    }
    with contextlib.suppress(OSError), writing(path, header) as write:
        check = xxhash.xxh3_64()
        for piece in _pieces(corpus, header, columns):
            check.update(piece)
            write(piece)
        write(check.digest())


def _pieces(corpus: Corpus, header: Mapping[str, Any], columns: dict[str, Array]) -> Iterator[bytes]:
    """What stands between the header and the checksum of this."""
    count, room = header["rows"], header["room"]
    each = max(1, _PIECE // (4 * corpus.dims))

    def vectors() -> Iterator[Vectors]:
        for first in range(0, count, each):
            yield corpus.vectors(range(first, min(first + each, count)))

    mean = np.sum([one.sum(axis=0, dtype=np.float64) for one in vectors()], axis=0) / count
    columns["mean"], columns["numbers"] = mean.astype(np.float32), np.zeros((3, count), np.float32)
    for name, _, shape, kind in _layout(header):
        if name in ("rounded", "matrix"):
            at = 0
            for few in vectors():
                if name == "matrix":
                    yield few.tobytes()
                else:
                    own = Rounded.of(few, columns["mean"])
                    columns["numbers"][:, at : at + len(few)] = own.numbers
                    at += len(few)
                    yield own.rows.tobytes()
            yield bytes(size_of((room - count, corpus.dims), kind))
        elif name == "mean":
            yield columns[name].tobytes()
        else:
            whole = np.zeros(shape, kind)
            whole[..., :count] = columns[name]
            yield whole.tobytes()
        yield bytes(padding(size_of(shape, kind)))


def load(path: Path, store: ChunkSource) -> Corpus | None:
    """The chunks of `store` by the file at `path`, brought up to date; None where it is of no use.

    Raises IndexUnavailable, Cancelled.
    """
    with store.snapshot():
        identity, notes = store.identity(), store.notes()
        try:
            header = header_of(path)
            if identity is None or header["format"] != _FORMAT or header["uuid"] != store.uuid():
                return None
            if header["space"] != list(astuple(identity)) or not 0 <= header["generation"] <= store.generation():
                return None
            saved = _saved(path, header, Files.of(notes), identity)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        corpus = saved.refresh(store)
        return corpus if len(corpus) == sum(notes.chunks) else None


def _saved(path: Path, header: dict[str, Any], files: Files, identity: Identity) -> Corpus:
    """The corpus as it was written. Raises OSError, ValueError for what makes no sense."""
    rows, arrays = header["rows"], dict[str, Array]()
    # One file in all of it, although another one can get its name meanwhile.
    with path.open("rb", buffering=0) as file:
        _check(file, header)
        places = {name: place for name, place, _, _ in _layout(header)}
        for name, place, shape, kind in _layout(header):
            # Pages that are written, for chunks that come later, are of this process alone.
            arrays[name] = mapped(file, place, shape, kind, writable=True)
        in_file = VectorsOfFile.of(file, places["matrix"], rows, identity.dims)
    order = np.array(sorted(files.index), np.int64)
    file_indices = np.array([files.index[number] for number in order.tolist()], np.int32)
    file_of = np.zeros(len(arrays["rowids"]), np.int32)
    if len(order):
        # The chunks of a note that is gone since go with what changed.
        at = np.minimum(np.searchsorted(order, arrays["notes"][:rows]), len(order) - 1)
        file_of[:rows] = file_indices[at]
    block = Block(
        rows,
        arrays["rowids"],
        file_of,
        arrays["lines"],
        arrays["matrix"],
        ChunkIds(arrays["ids"][:rows]),
        mapped=True,
        in_file=in_file,
        rounded=Rounded(arrays["mean"], arrays["rounded"], arrays["numbers"])
        if rounded.serve(rows, identity.dims)
        else None,
    )
    flags = arrays["flags"][:, :rows]
    return Corpus(header["generation"], header["uuid"], identity, files, block, np.arange(rows), flags)


def _check(file: FileIO, header: Mapping[str, Any]) -> None:
    """Raise ValueError where the arrays are not as they were written.

    The file is read rather than mapped, because what was mapped once stays resident.
    """
    end = max(at + size_of(shape, kind) + padding(size_of(shape, kind)) for _, at, shape, kind in _layout(header))
    piece = memoryview(bytearray(_CHECKED_AT_ONCE))
    check, left = xxhash.xxh3_64(), end - PAGE
    file.seek(PAGE)
    while left and (size := file.readinto(piece[: min(left, len(piece))])):
        check.update(piece[:size])
        left -= size
    if left or file.read(_CHECK_BYTES + 1) != check.digest():
        raise ValueError("arrays that are not as they were written")
