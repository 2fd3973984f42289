"""A file of entries holds a table as JSON Lines: what it was made by, then an entry a line with its vector."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_tui import durable
from memory_tui.core.errors import MemoryTuiError
from memory_tui.ltm import entry, entry_table
from memory_tui.ltm.entry import EntryRefused, MemoryEntry
from memory_tui.ltm.vector_space import record_of

if TYPE_CHECKING:
    from memory_tui.ltm.memories import Memories

_FORMAT = "memory-tui-ltm"
_MOST_BYTES = 1 << 30


class ImportReport(Struct, frozen=True):
    """How many entries were added, and for each that was not, why not."""

    added: int
    left: tuple[str, ...]


def write(memories: Memories, path: Path) -> int:
    """Write every entry with its vector into a new file; returns how many. Raises EntryRefused, MemoriesUnavailable."""
    import numpy as np

    table = memories.table()
    rows = table.columns((*entry_table.SHOWN, "vector"))
    vectors = entry_table.vectors_of(rows, table.dims)
    lines = [json.dumps({"format": _FORMAT, "version": 1, "dims": table.dims, "model": dict(table.recorded)})]
    for one, vector in zip(entry_table.entries_of(rows), vectors, strict=True):
        fields = one.as_dict()
        if np.isfinite(vector).all():
            fields["vector"] = base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
        lines.append(json.dumps(fields, ensure_ascii=False))
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    try:
        durable.create_file(path, data)
    except FileExistsError:
        raise EntryRefused(f"{path} is there already, and stays as it is.", "Name another file.") from None
    except OSError as error:
        raise EntryRefused(f"{path} cannot be written: {error.strerror}.", "Name another file.") from error
    return len(lines) - 1


def read(memories: Memories, path: Path) -> ImportReport:
    """Add the entries of a file that are not there yet, as one change. Raises EntryRefused and what storing raises."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise EntryRefused(f"{path} is larger than a gigabyte.", "Split it.")
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise EntryRefused(f"{path} cannot be read: {error}.", "Check the file.") from error
    model: object = {}
    entries: list[MemoryEntry] = []
    vectors: dict[str, Any] = {}
    for number, fields in _lines(text, path):
        if fields.get("format") == _FORMAT:
            model = fields.get("model")
            continue
        one, vector = _parsed(fields, f"{path}, line {number}")
        entries.append(one)
        if vector is not None:
            vectors[one.id] = vector
    fits = bool(model) and model == _model_of(memories)
    left = memories.add_all(entries, vectors if fits else {}, f"import {path.name}")
    return ImportReport(len(entries) - len(left), tuple(left))


def _model_of(memories: Memories) -> Mapping[str, Any]:
    """What makes the vectors of the table, or will."""
    if memories.exists():
        return memories.table().recorded
    return record_of(memories.space.identity({}))


def _lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise EntryRefused(f"{path}, line {number}, is no JSON: {error}.", "Nothing was imported.") from error
        if not isinstance(fields, dict):
            raise EntryRefused(f"{path}, line {number}, is no object.", "Nothing was imported.")
        yield number, fields


def _parsed(fields: Mapping[str, Any], where: str) -> tuple[MemoryEntry, Any]:
    """An entry of a file, with its vector where it has one."""
    import numpy as np

    try:
        key, text = str(fields["id"]).lower(), entry.require_storable(str(fields["text"]))
        if not entry.is_id(key):
            raise EntryRefused("its id is no UUID.")
        importance = entry.require_importance(float(fields.get("importance", entry.IMPORTANCE)))
        category = entry.require_category(str(fields.get("category") or entry.category_of(text)))
        created = float(fields["createdAt"])
        if not math.isfinite(created):
            raise EntryRefused("createdAt is no number.")
        raw = fields.get("vector")
        vector = np.frombuffer(base64.b64decode(raw, validate=True), "<f4") if isinstance(raw, str) else None
    except MemoryTuiError as error:
        raise EntryRefused(f"{where}: {error.message}", "Nothing was imported.") from error
    except (KeyError, ValueError, TypeError) as error:
        raise EntryRefused(f"{where}, is no entry: {error}.", "Nothing was imported.") from error
    return MemoryEntry(key, text, importance, category, created), vector
