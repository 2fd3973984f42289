"""The table of entries in LanceDB. It is read in pages, searched exactly, and changed by id alone.

Nothing here decides whether a change is wanted. Each change is one commit of LanceDB: it is there, or it is not. A row
travels whole, with columns that only another program knows.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct

from memory_tui.core.errors import QueryError
from memory_tui.core.sanitize import one_line
from memory_tui.ltm import lance
from memory_tui.ltm.entry import EntryRefused, MemoryEntry, is_id
from memory_tui.ltm.lance import MemoriesUnavailable, TableMissing
from memory_tui.ltm.location import TableLocation

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memory_tui.providers.base import Vectors

T = TypeVar("T")
Rows: TypeAlias = Any
"""Whole rows, as a table of Arrow."""
SHOWN = ("id", "text", "importance", "category", "createdAt")
MODEL = b"memory-tui.model"
"""What the schema of a table says of who made its vectors, as JSON; only tables that memory-tui made have it."""
COMPACT_AT = 100
"""Each store makes a small file; from so many on they are joined. Older versions of the table stay for seven days."""


class TableFacts(Struct, frozen=True):
    """What is known of a table without reading its texts."""

    rows: int
    dims: int
    version: int
    key_declared: bool
    columns: tuple[str, ...]
    size: int
    parts: int


class EntryTable:
    """An open table. Every method raises MemoriesUnavailable; each sees what other programs wrote meanwhile."""

    def __init__(self, location: TableLocation, table: Any) -> None:  # noqa: ANN401 - a table of LanceDB
        self.location = location
        self._table = table
        self.closed = False
        """Whether a call failed, after which the table is opened anew."""
        schema = table.schema
        self.dims = _require_shape(location, schema)
        self.recorded = model_of(schema.metadata)
        """What the table says of who made its vectors; empty where it says nothing."""

    @classmethod
    def open(cls, location: TableLocation) -> EntryTable:
        """The table, which is only read. Raises TableMissing, MemoriesUnavailable; makes no folder."""
        lance.require()
        if not location.remote:
            _require_folder(location)
            lance.require_whole(location)

        def run() -> EntryTable:
            connection = lance.connected(location)
            try:
                table = connection.open_table(location.table)
            except ValueError as error:
                if lance.NOT_FOUND in str(error) and not _broken(location):
                    raise _missing(location) from error
                raise
            return cls(location, table)

        return lance.bounded(location, "Opening", run)

    @classmethod
    def create(cls, location: TableLocation, dims: int, model: Mapping[str, Any]) -> EntryTable:
        """A new table, whose ids are declared as its key so that two writers cannot add one twice."""
        pa = lance.library("pyarrow")
        schema = pa.schema(
            [
                pa.field("id", pa.string(), nullable=False),
                pa.field("text", pa.string()),
                pa.field("vector", pa.list_(pa.float32(), dims)),
                pa.field("importance", pa.float64()),
                pa.field("category", pa.string()),
                pa.field("createdAt", pa.float64()),
            ],
            metadata={MODEL: json.dumps(dict(model), sort_keys=True)},
        )

        def run() -> EntryTable:
            return cls(location, lance.made(location, schema))

        return lance.bounded(location, "Making a table in", run)

    def facts(self) -> TableFacts:
        """What the table is."""

        def run() -> TableFacts:
            schema, stats = self._table.schema, self._table.stats()
            return TableFacts(
                rows=self._table.count_rows(),
                dims=self.dims,
                version=int(self._table.version),
                key_declared=_is_key(schema),
                columns=tuple(schema.names),
                size=int(stats["total_bytes"]),
                parts=int(stats["fragment_stats"]["num_fragments"]),
            )

        return self._call("Reading", run)

    # --- reading ---------------------------------------------------------------------------------------------------

    def page(self, limit: int, offset: int = 0, category: str = "") -> tuple[MemoryEntry, ...]:
        """Entries, the newest first; `category` is one of the known ones."""

        def run() -> Rows:
            query = self._table.search().select(list(SHOWN))
            if category:
                query = query.where(f"category = '{category}'")
            newest = lance.library("lancedb.query").ColumnOrdering(column_name="createdAt", ascending=False)
            return query.order_by([newest]).limit(limit).offset(offset).to_arrow()

        return tuple(_entries(self._call("Reading", run)))

    def columns(self, names: Sequence[str] = SHOWN) -> Rows:
        """Some columns of every row, as a table of Arrow."""
        return self._call("Reading", lambda: self._table.search().select(list(names)).to_arrow())

    def entries(self) -> tuple[MemoryEntry, ...]:
        """Every entry, in the order of the table."""
        return tuple(_entries(self.columns()))

    def vectors(self) -> tuple[tuple[MemoryEntry, ...], npt.NDArray[np.float32]]:
        """Every entry with its vector; those without one, or with a number that is none, are left out."""
        import numpy as np

        rows = self.columns((*SHOWN, "vector"))
        matrix = _matrix(rows["vector"], self.dims)
        fine = np.asarray(np.isfinite(matrix).all(axis=1))
        return tuple(entry for entry, good in zip(_entries(rows), fine, strict=True) if good), matrix[fine]

    def rows(self, ids: Sequence[str]) -> Rows:
        """The whole rows of `ids`, as a table of Arrow. Raises EntryRefused for what is no id."""
        if not ids:
            return self._table.schema.empty_table()
        where = _filter(ids)
        return self._call("Reading", lambda: self._table.search().where(where).to_arrow())

    def nearest(self, vector: Sequence[float], limit: int, category: str = "") -> list[tuple[MemoryEntry, float]]:
        """The nearest entries with their distance (squared L2), exactly: no index may leave one out."""

        def run() -> Rows:
            query = self._table.search([float(number) for number in vector]).bypass_vector_index()
            if category:
                query = query.where(f"category = '{category}'", prefilter=True)
            return query.select([*SHOWN, "_distance"]).limit(limit).to_arrow()

        rows = self._call("Searching", run)
        found = zip(_entries(rows), rows["_distance"].to_pylist(), strict=True)
        return [(entry, float(distance)) for entry, distance in found if distance is not None]

    # --- changing --------------------------------------------------------------------------------------------------

    def new_rows(self, entries: Sequence[MemoryEntry], vectors: Vectors, *, whole: bool = True) -> Rows:
        """Rows for `entries`; other columns are empty.

        Raises EntryRefused where they are to be `whole`, and the table wants a column that nobody here knows.
        """
        pa = lance.library("pyarrow")
        known: dict[str, list[Any]] = {
            "id": [one.id for one in entries],
            "text": [one.text for one in entries],
            "vector": [[float(number) for number in row] for row in vectors],
            "importance": [one.importance for one in entries],
            "category": [one.category for one in entries],
            "createdAt": [one.created_at for one in entries],
        }
        schema = self._table.schema
        for column in schema:
            if whole and column.name not in known and not column.nullable:
                raise EntryRefused(
                    f"The table wants {one_line(column.name)} for every entry, which memory-tui does not know.",
                    "Store it by the program that made the table.",
                )
        arrays = [
            pa.array(_fitting(known[column.name], column.type), column.type)
            if column.name in known
            else pa.nulls(len(entries), column.type)
            for column in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def insert(self, rows: Rows) -> int:
        """Add rows whose ids are not there yet; returns how many were added. One commit.

        A vector with a number that is none is refused by LanceDB, so the entry comes back without one.
        """

        def run() -> int:
            if not _is_key(self._table.schema):
                self._table.add(rows, on_bad_vectors="null")
                return int(rows.num_rows)
            merge = self._table.merge_insert("id").when_not_matched_insert_all()
            return int(merge.execute(rows, on_bad_vectors="null").num_inserted_rows)

        return self._call("Writing", run)

    def replace(self, rows: Rows) -> int:
        """Put rows in the place of those with the same ids; returns how many were replaced. One commit."""

        def run() -> int:
            merge = self._table.merge_insert("id").when_matched_update_all()
            return int(merge.execute(rows, on_bad_vectors="null").num_updated_rows)

        return self._call("Writing", run)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete the rows of `ids`. One commit. Raises EntryRefused for what is no id."""
        where = _filter(ids)
        self._call("Writing", lambda: self._table.delete(where))

    def compact(self) -> bool:
        """Join small files where there are many, which is seen to now and then; no entry changes. Whether it did."""

        def run() -> bool:
            if int(self._table.version) % 10:
                return False
            if int(self._table.stats()["fragment_stats"]["num_small_fragments"]) < COMPACT_AT:
                return False
            self._table.optimize()
            return True

        return self._call("Joining the files of", run)

    def _call(self, doing: str, run: Callable[[], T]) -> T:
        def fresh() -> T:
            self._table.checkout_latest()
            return run()

        try:
            return lance.bounded(self.location, doing, fresh)
        except MemoriesUnavailable:
            self.closed = True
            raise


# --- rows ----------------------------------------------------------------------------------------------------------


def packed(rows: Rows) -> str:
    """Whole rows as text, to the bit; empty for none."""
    if not rows.num_rows:
        return ""
    pa = lance.library("pyarrow")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode("ascii")


def unpacked(text: str) -> Rows | None:
    """The rows that `packed` was given; None for none. Raises ValueError."""
    if not text:
        return None
    ipc = lance.library("pyarrow.ipc")
    return ipc.open_stream(base64.b64decode(text)).read_all()


def digests(rows: Rows) -> dict[str, str]:
    """By id, a fingerprint of each row; equal where every value is."""
    found = {}
    for row in rows.to_pylist():
        text = json.dumps(row, sort_keys=True, default=str, ensure_ascii=True)
        found[str(row["id"])] = hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
    return found


def entries_of(rows: Rows) -> tuple[MemoryEntry, ...]:
    """The entries of whole rows."""
    return tuple(_entries(rows))


def vectors_of(rows: Rows, dims: int) -> npt.NDArray[np.float32]:
    """The vectors of whole rows."""
    return _matrix(rows["vector"], dims)


def model_of(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, Any]:
    """What the metadata of a schema says of its vectors; empty where it says nothing, or nothing that makes sense."""
    with contextlib.suppress(ValueError):
        found = json.loads((metadata or {}).get(MODEL, b"{}"))
        return found if isinstance(found, dict) else {}
    return {}


def _entries(rows: Rows) -> Iterator[MemoryEntry]:
    for row in rows.select([name for name in SHOWN if name in rows.column_names]).to_pylist():
        yield MemoryEntry(
            str(row["id"] or ""),
            str(row["text"] or ""),
            _number(row.get("importance")),
            str(row.get("category") or "other"),
            _number(row.get("createdAt")),
        )


def _number(value: object) -> float:
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    timestamp = getattr(value, "timestamp", None)
    return float(timestamp()) * 1000 if callable(timestamp) else 0.0


def _matrix(column: Any, dims: int) -> npt.NDArray[np.float32]:  # noqa: ANN401 - a column of Arrow
    """A row of not-a-number stands for a vector that is not there."""
    import numpy as np

    found = np.full((len(column), dims), np.nan, np.float32)
    for at, vector in enumerate(column.to_numpy(zero_copy_only=False)):
        if vector is not None and len(vector) == dims:
            found[at] = vector
    return found


def _fitting(values: list[Any], kind: Any) -> list[Any]:  # noqa: ANN401 - a type of Arrow
    """Times as whole numbers where the column has those."""
    whole = str(kind).startswith(("int", "uint"))
    return [round(value) for value in values] if whole else values


# --- checks --------------------------------------------------------------------------------------------------------


def _filter(ids: Sequence[str]) -> str:
    for one in ids:
        if not is_id(one):
            raise EntryRefused(f"{one_line(one, 60)!r} is no id of an entry.", "memory-tui ltm list shows them.")
    return f"id IN ({', '.join(repr(one) for one in ids)})"


def _is_key(schema: Any) -> bool:  # noqa: ANN401 - a schema of Arrow
    return lance.is_key(schema.field("id"))


def _require_shape(location: TableLocation, schema: Any) -> int:  # noqa: ANN401
    """The length of the vectors. Raises MemoriesUnavailable for a table of something else."""
    missing = [name for name in ("id", "text", "vector") if name not in schema.names]
    size = 0 if missing else getattr(schema.field("vector").type, "list_size", 0)
    if missing or not size:
        what = f"it has no column {missing[0]}" if missing else "its vectors have no fixed length"
        raise MemoriesUnavailable(
            f"The table {location.table} in {one_line(location.shown)} holds no memories: {what}.",
            "Name another place: --memories DIR.",
        )
    return int(size)


def _require_folder(location: TableLocation) -> None:
    """Raises TableMissing, MemoriesUnavailable; so that the library, which makes a folder, is not asked."""
    folder = Path(location.uri)
    try:
        if not folder.exists():
            raise _missing(location)
        if not folder.is_dir():
            raise MemoriesUnavailable(
                f"{one_line(location.shown)} is no folder.", "Name the folder of a LanceDB: --memories DIR."
            )
        next(folder.iterdir(), None)
    except OSError as error:
        raise MemoriesUnavailable(
            f"{one_line(location.shown)} cannot be read: {error.strerror}.", "Check the rights of the folder."
        ) from error


def _broken(location: TableLocation) -> bool:
    """Whether files of a table are there although the library finds none."""
    return not location.remote and (Path(location.uri) / f"{location.table}.lance").exists()


def _missing(location: TableLocation) -> TableMissing:
    return TableMissing(
        f"There are no memories in {one_line(location.shown)} yet.",
        'memory-tui ltm store "TEXT" stores the first one.',
    )


_COMPARISON = re.compile(r"\s*(\w+)\s*(==|!=|<>|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "=": operator.eq,
        "==": operator.eq,
        "!=": operator.ne,
        "<>": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)
_LARGE = ("vector",)


def queried(
    table: EntryTable, columns: Sequence[str], comparison: str, limit: int, order_by: str
) -> list[dict[str, Any]]:
    """Some `columns` of the rows that the `comparison` allows, in the `order_by` of a column. Raises QueryError.

    The comparison is made here, so that nothing a person writes gets into a filter of the library.
    """
    known = [name for name in table.facts().columns if name not in _LARGE]
    wanted = list(columns) or known
    column, descending = _order(order_by)
    test = parse(comparison) if comparison.strip() else None
    for name in (*wanted, *((column,) if column else ()), *((test[0],) if test else ())):
        if name not in known:
            raise QueryError(f"There is no column {one_line(name, 40)!r}.", f"Choose one of {', '.join(known)}.")
    found = [row for row in _dicts(table.columns(known)) if test is None or _holds(row[test[0]], test[1], test[2])]
    if column:
        found = [row for row in found if row[column] is not None] + [row for row in found if row[column] is None]
        filled = [row for row in found if row[column] is not None]
        filled.sort(key=lambda row: row[column], reverse=descending)
        found = filled + found[len(filled) :]
    return [{name: row[name] for name in wanted} for row in found[:limit]]


def parse(comparison: str) -> tuple[str, str, str | float]:
    """Column, operator and value of a comparison such as `importance >= 0.8`. Raises QueryError."""
    found = _COMPARISON.fullmatch(comparison)
    if found is None or not found[3]:
        raise QueryError(
            f"{one_line(comparison, 60)!r} is no comparison.", "For instance: --filter 'importance >= 0.8'."
        )
    value = found[3]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return found[1], found[2], value[1:-1]
    try:
        return found[1], found[2], float(value)
    except ValueError:
        return found[1], found[2], value


def _order(text: str) -> tuple[str, bool]:
    """A column, and whether the largest comes first: `createdAt`, `createdAt:desc`, `createdAt desc`."""
    column, _, way = text.strip().replace(":", " ").partition(" ")
    if way.strip().lower() not in ("", "asc", "desc"):
        raise QueryError(f"{one_line(text, 40)!r} is no order.", "For instance: --order-by createdAt:desc.")
    return column, way.strip().lower() == "desc"


def _holds(value: Any, sign: str, wanted: str | float) -> bool:  # noqa: ANN401 - a value of any column
    if value is None:
        return False
    if isinstance(wanted, float) and not isinstance(value, int | float):
        value, wanted = str(value), f"{wanted:g}"
    elif isinstance(wanted, str):
        value = str(value)
    return _OPERATORS[sign](value, wanted)


def _dicts(found: Rows) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = found.to_pylist()
    return result
