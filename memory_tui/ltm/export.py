"""An export is a copy of chunks or entries in a LanceDB table that any client can read.

It is made by difference: rows that are missing or other there are put, rows that are gone here are deleted. So an
export that was cut off anywhere is completed by the next one. Only rows of the same workspace are touched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memory_tui.core import tokens
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import EditRefused, SettingError
from memory_tui.core.secret_finder import kinds
from memory_tui.ltm import entry, entry_table, lance
from memory_tui.ltm.location import TableLocation
from memory_tui.source.protocol import ChunkSource
from memory_tui.source.rows import ChunkPage

if TYPE_CHECKING:
    from memory_tui.ltm.memories import Memories

TABLES = ("chunks", "memories")
BATCH = 2000
"""Rows of one commit."""
_DELETED = 500
_KEY, _MARK = "key", "fingerprint"
_LONGEST_DELTA = 1 << 30


class ExportReport(Struct):
    """What an export did to one table: rows `put` and `deleted`, those left `unchanged`, those `withheld`.

    `generation` is that of the index, which the version is tagged with; 0 for entries.
    """

    table: str
    put: int = 0
    deleted: int = 0
    unchanged: int = 0
    withheld: int = 0
    generation: int = 0
    tag: str = ""
    notices: list[str] = field(default_factory=list)


class ExportTable:
    """A table of an export: rows by their key. Every method may raise MemoriesUnavailable."""

    def __init__(self, location: TableLocation, schema: Any) -> None:  # noqa: ANN401 - a schema of Arrow
        self.location = location

        def run() -> Any:  # noqa: ANN401 - a table of LanceDB
            table = lance.made(location, schema)
            if table.schema.remove_metadata().names != schema.names or _dims(table.schema) != _dims(schema):
                raise SettingError(
                    f"The table {location.table} in {location.shown} has other columns, or vectors of another length.",
                    "Name another place.",
                )
            return table

        self._table = lance.bounded(location, "Making a table in", run)
        self._name = schema.names[0]

    def marks(self, own: Mapping[str, str]) -> dict[str, str]:
        """By key the fingerprints of the rows whose columns are as in `own`."""

        def run() -> Any:  # noqa: ANN401 - a table of Arrow
            self._table.checkout_latest()
            return self._table.search().select([self._name, _MARK, *own]).to_arrow()

        rows = lance.bounded(self.location, "Reading", run).to_pylist()
        return {row[self._name]: row[_MARK] for row in rows if all(row[name] == value for name, value in own.items())}

    def put(self, rows: Any) -> None:  # noqa: ANN401 - a table of Arrow
        """Put rows in the place of those with the same key, or beside the others. One commit."""
        merge = self._table.merge_insert(self._name).when_matched_update_all().when_not_matched_insert_all()
        lance.bounded(self.location, "Writing", lambda: merge.execute(rows))

    def delete(self, keys: Sequence[str]) -> None:
        """Delete the rows of `keys`, each made of hexadecimal digits and hyphens."""
        if not all(set(key) <= set("0123456789abcdef-") for key in keys):
            raise EditRefused("A key of the export is none of memory-tui's.", "Nothing was deleted.")
        where = f"{self._name} IN ({', '.join(repr(key) for key in keys)})"
        lance.bounded(self.location, "Writing", lambda: self._table.delete(where))

    def finish(self, tag: str) -> None:
        """Join small files, and give this version the name `tag`."""

        def run() -> None:
            self._table.optimize()
            known = self._table.tags.list()
            (self._table.tags.update if tag in known else self._table.tags.create)(tag, self._table.version)

        lance.bounded(self.location, "Writing", run)

    def tags(self) -> Sequence[str]:
        """The names of its versions."""
        return list(lance.bounded(self.location, "Reading", self._table.tags.list))


def export_chunks(
    source: ChunkSource, place: TableLocation, workspace: str, since: int | None = None, stop: Stop | None = None
) -> ExportReport:
    """Make the rows of `workspace` in `place` those of `source`; after `since` only what changed after that export.

    Raises MemoriesUnavailable, SettingError, Cancelled, IndexUnavailable.
    """
    stop, own = stop or Stop(), {"workspace": workspace}
    with source.snapshot():
        identity, generation = source.identity(), source.generation()
        dims = identity.dims if identity is not None else 0
        model = f"{identity.provider}/{identity.model}" if identity is not None else ""
        table = ExportTable(place, _schema(dims))
        # Generations of two indexes mean nothing to each other.
        name = "".join(filter(str.isalnum, source.uuid()))[:8]
        report = ExportReport(place.table, generation=generation, tag=f"generation-{generation}-{name}")
        known = table.marks(own)
        gone = set(known)
        pages: Iterator[ChunkPage] = _pages(source)
        delta = source.delta(since, _LONGEST_DELTA) if since is not None else None
        if since is not None and f"generation-{since}-{name}" not in table.tags():
            raise SettingError(f"There is no export of generation {since} here.", "Leave --since out.")
        if since is not None and (delta is None or delta.gone):
            report.notices.append("Chunks are gone since then, so that everything is compared.")
        elif delta is not None:
            pages, gone = iter([delta.chunks]), set()
        for page in pages:
            stop.check()
            rows = _rows(source, page, workspace, model, dims)
            if place.remote:
                withheld = [row for row in rows if kinds(row["text"])]
                report.withheld += len(withheld)
                rows = [row for row in rows if row not in withheld]
            gone -= {row[_KEY] for row in rows}
            new = [row for row in rows if known.get(row[_KEY]) != row[_MARK]]
            report.unchanged += len(rows) - len(new)
            if new:
                table.put(_arrow(new, _schema(dims)))
                report.put += len(new)
    report.deleted = _delete(table, sorted(gone), stop)
    table.finish(report.tag)
    return report


def export_entries(memories: Memories, place: TableLocation, stop: Stop | None = None) -> ExportReport:
    """Make the table in `place` a copy of the long-term memories. Raises what reading and writing raise."""
    stop = stop or Stop()
    if place.key == memories.location.key:
        raise SettingError("The memories cannot be exported into their own table.", "Name another place.")
    pa = lance.library("pyarrow")
    source = memories.table()
    rows = source.columns(source.facts().columns)
    rows = rows.append_column(_MARK, pa.array(list(entry_table.digests(rows).values()), pa.string()))
    at = rows.column_names.index("id")
    rows = rows.set_column(at, pa.field("id", pa.string(), nullable=False), rows["id"])
    rows = rows.select(["id", *(name for name in rows.column_names if name != "id")])
    table = ExportTable(place, rows.schema.remove_metadata())
    known = table.marks({})
    report = ExportReport(place.table)
    ids, marks = rows["id"].to_pylist(), rows[_MARK].to_pylist()
    sent = [place.remote and bool(kinds(text or "")) for text in rows["text"].to_pylist()]
    report.withheld = sum(sent)
    new = [
        entry.is_id(key) and not held and known.get(key) != mark
        for key, mark, held in zip(ids, marks, sent, strict=True)
    ]
    report.put = sum(new)
    report.unchanged = len(ids) - report.withheld - report.put
    chosen = rows.filter(pa.array(new))
    for start in range(0, chosen.num_rows, BATCH):
        stop.check()
        table.put(chosen.slice(start, BATCH))
    kept = {key for key, held in zip(ids, sent, strict=True) if not held}
    report.deleted = _delete(table, sorted(set(known) - kept), stop)
    report.tag = f"memories-{source.facts().version}"
    table.finish(report.tag)
    return report


def _delete(table: ExportTable, keys: Sequence[str], stop: Stop) -> int:
    for start in range(0, len(keys), _DELETED):
        stop.check()
        table.delete(keys[start : start + _DELETED])
    return len(keys)


def _pages(source: ChunkSource) -> Iterator[ChunkPage]:
    after = 0
    while len(page := source.page(after, BATCH)):
        yield page
        after = int(page.rowids[-1])


def _rows(source: ChunkSource, page: ChunkPage, workspace: str, model: str, dims: int) -> list[dict[str, Any]]:
    paths = {note.id: note for note in source.known().values()}
    texts = source.texts(page.rowids)
    found = []
    for at, rowid in enumerate(page.rowids.tolist()):
        note, text = paths.get(int(page.notes[at])), texts.get(rowid)
        if note is None or text is None:
            continue
        vector = page.vectors[at] if dims and page.has_vector[at] else None
        row: dict[str, Any] = {
            "workspace": workspace,
            "path": note.path,
            "startLine": int(page.lines[0, at]),
            "endLine": int(page.lines[1, at]),
            "source": note.source,
            "chunkId": page.chunk_ids[at],
            "text": text,
            "words": " ".join(tokens.WORD.findall(tokens.lowered(tokens.segmented(text)))),
            "hash": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            "model": model if vector is not None else "",
        }
        said = json.dumps(row, sort_keys=True).encode() + (vector.tobytes() if vector is not None else b"")
        key = hashlib.sha256(f"{workspace}\0{note.path}\0{page.chunk_ids[at]}".encode("utf-8", "surrogatepass"))
        row |= {_KEY: key.hexdigest()[:32], _MARK: hashlib.sha256(said).hexdigest()[:32]}
        found.append({**row, **({"vector": vector.tolist() if vector is not None else None} if dims else {})})
    return found


def _schema(dims: int) -> Any:  # noqa: ANN401 - a schema of Arrow
    pa = lance.library("pyarrow")
    texts = ("workspace", "path", "source", "chunkId", "text", "words", "hash", "model", _MARK)
    fields = [pa.field(_KEY, pa.string(), nullable=False), *(pa.field(name, pa.string()) for name in texts)]
    fields += [pa.field("startLine", pa.int32()), pa.field("endLine", pa.int32())]
    return pa.schema([*fields, *([pa.field("vector", pa.list_(pa.float32(), dims))] if dims else [])])


def _arrow(rows: Sequence[dict[str, Any]], schema: Any) -> Any:  # noqa: ANN401 - a schema and a table of Arrow
    return lance.library("pyarrow").Table.from_pylist(list(rows), schema=schema)


def _dims(schema: Any) -> int:  # noqa: ANN401 - a schema of Arrow
    return int(schema.field("vector").type.list_size) if "vector" in schema.names else 0
