"""Disk usage of an index, table by table."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.index.index_file import rebuild_of
from memory_tui.index.rows import TableSize
from memory_tui.index.store import Store

_KINDS = (
    ("files", ("files",), "SELECT count(*) FROM files", "the notes"),
    ("chunks", ("chunks",), "SELECT count(*) FROM chunks", "their text, cut"),
    (
        "full text",
        ("chunks_fts", "chunks_words"),
        "SELECT count(*) FROM chunks",
        "words, as OpenClaw has them and ours",
    ),
    ("vectors", ("embedding_cache",), "SELECT count(*) FROM embedding_cache", "of chunks, and of text that is gone"),
    ("vec0", ("chunks_vec",), "SELECT count(*) FROM chunks WHERE embedding_id IS NOT NULL", "vectors for sqlite-vec"),
    ("changes", ("changes",), "SELECT count(*) FROM changes", "what other processes follow"),
    ("meta", ("meta",), "SELECT count(*) FROM meta", "what the index was made with"),
)

_VIRTUAL = frozenset({"chunks_fts", "chunks_words", "chunks_vec"})


class FileSize(Struct, frozen=True):
    """A file that belongs to an index: `what` is index, log, beside, lock or aside.

    Of another release's index of the same notes it is always "other release's".
    """

    path: str
    what: str
    bytes: int


def tables(store: Store) -> tuple[TableSize, ...]:
    """The size of every kind of table, and of unused pages; reads every page, so it takes a while on a large index."""
    pages: dict[str, int] = dict(
        store.query("SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name")
    )
    tied: dict[str, str] = dict(
        store.query("SELECT name, tbl_name FROM sqlite_schema WHERE type IN ('table', 'index')")
    )
    sizes, counted = [], 0
    for name, places, count, about in _KINDS:
        size = sum(
            size for page, size in pages.items() if any(_belongs(tied.get(page, page), place) for place in places)
        )
        counted += size
        exists = name != "vec0" or store.vec0_dims() > 0
        sizes.append(TableSize(name, int(store.value(count)) if exists else 0, size, about))
    whole = int(store.value("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"))
    free = int(store.value("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"))
    sizes.append(TableSize("unused", 0, free, "pages for what comes next"))
    sizes.append(TableSize("other", 0, max(0, whole - counted - free), "the schema"))
    return tuple(sizes)


def files(index: Path, sibling: Path | None = None) -> tuple[FileSize, ...]:
    """Every file of an index, what is being made beside it and what was moved aside included; biggest first.

    Those of the `sibling`, the other release's index of the same notes, come last.
    """
    others = files(sibling) if sibling is not None else ()
    kinds = {index.name: "index", rebuild_of(index).name: "beside"}
    sizes = []
    for path in (*index.parent.glob(f"{index.name}*"), *index.parent.glob(f".{index.name}.*.part")):
        try:
            size = path.stat().st_size
        except OSError:
            continue
        sizes.append(FileSize(str(path), kinds.get(path.name) or _kind(path.name), size))
    ordered = sorted(sizes, key=lambda file: -file.bytes)
    return (*ordered, *(replace(file, what="other release's") for file in others if file not in ordered))


def on_disk(index: Path) -> int:
    """Bytes of the index and its write-ahead log."""
    return sum(file.bytes for file in files(index) if file.path in (str(index), f"{index}-wal"))


def _belongs(table: str, place: str) -> bool:
    """Whether `table` is `place`, or one of the tables behind it where that is a virtual one."""
    return table == place or (place in _VIRTUAL and table.startswith(place + "_"))


def _kind(name: str) -> str:
    if ".damaged-" in name:
        return "aside"
    return "log" if name.endswith(("-wal", "-shm")) else "lock"
