"""Compares what is published of a workspace with itself, with the index here, and with the notes on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memory_tui.errors import PathRefused, Unreadable
from memory_tui.index.store import IndexedNote, Store, holds
from memory_tui.shared.connection import Access, Connection, joined
from memory_tui.shared.publish import Consent, Passages, kind_of
from memory_tui.workspace import roots
from memory_tui.workspace.roots import Roots

_ROWS = """
select seq, ordinal, occurrence, start_line, end_line, chunk_id, c.hash, annotations, prefix, text,
    array(select vec from memory_tui.vectors(%(t)s, %(w)s, array[seq]) order by place)
from memory_tui.chunks(%(t)s, %(w)s, array[%(p)s]) c order by seq
"""


def verify(access: Access, store: Store, allowed: Consent, disk: Roots | None = None) -> list[str]:
    """Return what is wrong with what is published of this workspace, in words; with `disk` also against the notes.

    Raises SharedUnavailable.
    """
    with joined(access) as connection, connection.transaction(), store.snapshot():
        connection.execute("set transaction isolation level repeatable read")
        row = connection.execute(
            "select ws, base from memory_tui.workspaces(%s, false, %s, '{}')", (access.tenant, [access.name])
        ).fetchone()
        if row is None:
            return [f"Nothing is published as {access.name}, or this login may not read it."]
        unsound = connection.execute("select memory_tui.unsound(%s, %s)", (access.tenant, row[0])).fetchall()
        return [*(text for (text,) in unsound), *_differences(connection, access, row, store, allowed, disk)]


def _differences(
    connection: Connection, access: Access, row: tuple[Any, ...], store: Store, allowed: Consent, disk: Roots | None
) -> Iterator[str]:
    ws, base = row
    here = {path: note for path, note in store.indexed().items() if kind_of(note) in allowed.kinds}
    there: dict[str, str] = dict(
        connection.execute(
            "select path, hash from memory_tui.files(%s, %s, 0) where state <> 'gone'",
            (access.tenant, ws),
        ).fetchall()
    )
    yield from (f"{path}: it is published, and not in the index" for path in there.keys() - here.keys())
    passages = Passages(store, allowed.cleared, base)
    for path, note in here.items():
        if path not in there:
            yield f"{path}: it is in the index, and not published"
            continue
        rows = connection.execute(_ROWS, {"t": access.tenant, "w": ws, "p": path}, binary=True).fetchall()
        if not all(holds(text.decode("utf-8", "surrogatepass"), digest) for *_, digest, _, _, text, _ in rows):
            yield f"{path}: a text is not what was hashed"
        _, columns, vectors = passages.of(note)
        ours = [(*each, [vector.data for seq, _, _, vector in vectors if seq == each[0]]) for each in columns]
        if rows != ours or there[path] != note.hash:
            yield f"{path}: it is not published as it is indexed"
        if disk is not None and (wrong := _on_disk(disk, note)):
            yield f"{path}: {wrong}"


def _on_disk(disk: Roots, note: IndexedNote) -> str:
    """Return how a note differs from its file; empty where it does not."""
    try:
        return "" if roots.read(roots.located(disk, note.path)).hash == note.hash else "its file is another one by now"
    except (PathRefused, Unreadable) as error:
        return error.message
