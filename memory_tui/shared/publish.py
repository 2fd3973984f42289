"""Publishes the index of a workspace: a transaction a note, in the order of the index, without reading a note.

Once, or in the background: after each sync, and once a minute, by which others know that it lives.

What may leave this machine a person says for each workspace and database: the notes, MEMORY.md and transcripts each by
name. A passage that looks like it holds a secret never does.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, LiteralString

import msgspec
import psycopg
from msgspec import Struct, field
from psycopg.rows import TupleRow, namedtuple_row

from memory_tui.approval import Approvals
from memory_tui.approval import cleared as cleared_findings
from memory_tui.cancel import Stop
from memory_tui.errors import ApprovalMissing, Cancelled, IndexEmpty, MemoryTuiError, PathRefused, Unreadable
from memory_tui.formatting import plural
from memory_tui.index.database import Recipe
from memory_tui.index.store import IndexedNote, Passage, Store, StoreReader, holds
from memory_tui.jsstring import sha256_hex
from memory_tui.plan import Plan
from memory_tui.providers import Identity
from memory_tui.secrets import finder
from memory_tui.secrets.finder import Known
from memory_tui.shared.connection import Access, Connection, Vector, access, joined
from memory_tui.state_db import Table
from memory_tui.workspace import roots, transcripts
from memory_tui.workspace.chunking import sealed, windows
from memory_tui.workspace.roots import Roots

NOTES, MEMORY, SESSIONS = "shared", "shared MEMORY.md", "shared transcripts"
"""What a person approves, each by itself."""
_AHEAD = 32
"""Notes that are sent, each in a transaction of its own, before the answers are waited for."""
_PUBLISHED = Table("shared")
"""What this machine remembers of each database: as whom it publishes, and how far it came."""


def kind_of(note: IndexedNote) -> str:
    """Return the approval that `note` needs."""
    if note.source == transcripts.SOURCE:
        return SESSIONS
    return MEMORY if note.path.rpartition("/")[2].lower() == "memory.md" else NOTES


class Consent(Struct, frozen=True):
    """Which notes of a workspace may go to a database, and what a person took for no secret."""

    kinds: frozenset[str]
    cleared: frozenset[tuple[str, str]]

    @property
    def mark(self) -> str:
        """Return a short hash, which is another one as soon as a person agrees to more or less."""
        return sha256_hex(repr((sorted(self.kinds), sorted(self.cleared))))[:16]


def consent(plan: Plan, access: Access) -> Consent:
    """Return what a person agreed to for this workspace and database."""
    approvals = Approvals(plan.workspace)
    kinds = frozenset(kind for kind in (NOTES, MEMORY, SESSIONS) if approvals.find(kind, access.where))
    return Consent(kinds, cleared_findings(plan.workspace))


ChunkColumns = tuple[int, int, int, int, int, str, str, str, bytes, bytes]
"""Number, ordinal, occurrence, first and last line, id, hash, annotations, words above and text of a passage."""
VectorColumns = tuple[int, int, str, Vector]
"""Number of the passage, place, hash of the text, and the vector of it."""


class Passages:
    """Makes the rows of notes as they are published; numbers begin at `base`."""

    def __init__(self, store: Store, cleared: frozenset[tuple[str, str]], base: int = 0) -> None:
        self._store, self._cleared, self._base = store, cleared, base

    @cached_property
    def _known(self) -> Known:
        """Return what the notes tell to be ids, which are no secrets, as in the inbox."""
        return finder.known_of((text for (text,) in self._store.query("SELECT text FROM chunks")), self._cleared)

    def hides(self, text: str) -> bool:
        """Tell whether `text` looks like it holds a secret, and so stays here."""
        # First without the ids of the notes: to gather those every chunk is read.
        return bool(finder.kinds(text, Known(cleared=self._cleared)) and finder.kinds(text, self._known))

    def rows_of(self, note: IndexedNote) -> tuple[int, list[ChunkColumns], list[VectorColumns]]:
        """Return how many passages of a note are withheld, and the rows of the others."""
        withheld = 0
        chunks: list[ChunkColumns] = []
        vectors: list[VectorColumns] = []
        for ordinal, passage in enumerate(self._store.passages(note)):
            if self.hides("\n".join((passage.above, passage.text, passage.triggers, passage.project))):
                withheld += 1
                continue
            seq = self._base + passage.rowid
            place = seq, ordinal, passage.occurrence, passage.start_line, passage.end_line
            values = passage.importance, passage.triggers, passage.project
            annotations = json.dumps(values) if any(values) else ""
            texts = annotations, _bytes(passage.above), _bytes(passage.text)
            chunks.append((*place, passage.chunk_id, passage.hash, *texts))
            vectors += _vectors(seq, passage)
        return withheld, chunks, vectors


def _vectors(seq: int, passage: Passage) -> Iterator[VectorColumns]:
    """Yield the vector of a passage, and those of its windows."""
    if passage.vector is None:
        return
    yield seq, 0, passage.hash, Vector(passage.vector)
    # The vectors of the windows follow each other in one blob.
    size = len(passage.vector)
    window_vectors = [passage.windows[start : start + size] for start in range(0, len(passage.windows), size)]
    hashes = [sealed(1, 1, window).hash for window in windows(passage.text)] if window_vectors else []
    if len(hashes) != len(window_vectors):
        # A text too short for windows has one all the same, with the vector of the passage: no hash is sent with it.
        hashes = [""] * len(window_vectors)
    for place, (digest, vector) in enumerate(zip(hashes, window_vectors, strict=True), 1):
        yield seq, place, digest, Vector(vector)


class Preview(Struct):
    """What would be published of one kind of notes."""

    files: int = 0
    passages: int = 0
    bytes: int = 0
    withheld: int = 0


def preview(store: Store, cleared: frozenset[tuple[str, str]]) -> dict[str, Preview]:
    """Return what would be published, by the approval that it needs; seconds for ten thousand passages."""
    passages = Passages(store, cleared)
    previews = {kind: Preview() for kind in (NOTES, MEMORY, SESSIONS)}
    for note in store.indexed().values():
        preview = previews[kind_of(note)]
        withheld, rows, _ = passages.rows_of(note)
        preview.files += 1
        preview.withheld += withheld
        preview.passages += len(rows)
        preview.bytes += sum(len(text) for *_, text in rows)
    return previews


class Published(Struct):
    """What one run published; `left` are notes without consent, by the approval that they lack."""

    files: int = 0
    removed: int = 0
    passages: int = 0
    vectors: int = 0
    withheld: int = 0
    generation: int = 0
    left: Counter[str] = field(default_factory=Counter)


def publish(store: Store, access: Access, allowed: Consent, stop: Stop | None = None) -> Published:
    """Make the shared index hold what `store` holds, as far as that is `allowed`.

    Raises SharedUnavailable, ApprovalMissing, IndexEmpty, Cancelled; whole notes are published then.
    """
    if not allowed.kinds:
        message = f"Nobody agreed that the notes of this workspace go to {access.where}."
        raise ApprovalMissing(message, "memory-tui shared join.")
    with joined(access) as connection:
        return _Run(store, access, allowed, connection).go(stop or Stop())


class _Run:
    """One run of `publish`, in the epoch that it took."""

    def __init__(self, store: Store, access: Access, allowed: Consent, connection: Connection) -> None:
        recipe = store.recipe()
        if recipe is None:
            raise IndexEmpty("Nothing is indexed yet, so there is nothing to publish.", "memory-tui index.")
        self._store, self._access, self._allowed, self._connection = store, access, allowed, connection
        self.report = Published()
        # What the database is told once all is published: while it is the same, nothing has to be.
        self._state = f"{store.generation()} {allowed.mark}"
        self._memory = _PUBLISHED.of(f"{access.where}\0{access.tenant}\0{access.name}")
        self._ws, self._epoch, self._incarnation, self.report.generation, self._done, self._base = self._take(recipe)
        self._passages = Passages(store, allowed.cleared, self._base)

    def _take(self, recipe: Recipe) -> tuple[Any, ...]:
        """Ask to be the one who publishes this workspace. Raises SharedUnavailable where another one does.

        Return what the database has of it: its number, the epoch, the incarnation, the generation, the state that was
        published completely, and where the numbers of its passages begin.
        """
        memory = self._memory.read()
        publisher = memory.get("publisher")
        if publisher is None:
            publisher = f"{socket.gethostname()} {secrets.token_hex(8)}"
            self._memory.put("publisher", publisher)
        incarnation, generation = memory.get("reached", (None, 0))
        row = self._connection.execute(
            "select * from memory_tui.take(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                *(self._access.tenant, self._access.name, publisher, float(self._access.silent_seconds)),
                *(msgspec.json.encode(recipe).decode(), space_of(recipe.identity), recipe.identity.dims),
                *(str(self._store.meta("uuid")), incarnation, generation, self._state),
            ),
        ).fetchone()
        assert row is not None
        return row

    def go(self, stop: Stop) -> Published:
        """Publish what differs, remove what is gone, and say that all is done."""
        report = self.report
        local = self._local()
        if self._done == self._state:
            # This state of the index was published under this consent.
            return report
        # A mark is a hash of what the index has of a note: where both are the same, the note need not be sent.
        there = _there(self._connection, self._access, self._ws, "mark")
        # A note of which passages are withheld has a mark of its own, and need not be sent again either.
        new = [path for path, mark in local.items() if there.get(path) not in (mark, self._with_withheld(mark))]
        changes = [partial(self._put, path, local[path]) for path in new]
        changes += [partial(self._drop, path) for path in there.keys() - local.keys()]
        for first in range(0, len(changes), _AHEAD):
            stop.check()
            with self._connection.pipeline(), self._connection.transaction():
                for change in changes[first : first + _AHEAD]:
                    change()
                    # Ends the transaction of this note, and begins that of the next one.
                    self._connection.execute("commit and chain")
        changed = bool(report.files or report.removed)
        (report.generation,) = self._call("finish(%s, %s, %s, %s, %s)", self._state, changed).fetchone() or (0,)
        self._memory.put("reached", (str(self._incarnation), report.generation))
        return report

    def _call(self, function: str, *values: object) -> psycopg.Cursor[TupleRow]:
        """Call a function of the shared schema, whose first three arguments say who publishes."""
        return self._connection.execute(
            f"select memory_tui.{function}".encode(), (self._access.tenant, self._access.name, self._epoch, *values)
        )

    def _local(self) -> dict[str, str]:
        """Return the marks of the notes that may be published, by path, in the order of the index."""
        with self._store.snapshot():
            firsts = self._store.firsts()
            notes = self._store.indexed()
        local = {}
        for path, first in firsts.items():
            # The row's id is another one after a rebuild, which changes nothing of the note.
            _id, _path, *facts = notes[path]
            if (kind := kind_of(notes[path])) in self._allowed.kinds:
                local[path] = sha256_hex(repr((tuple(facts), first, self._base)))[:16]
            else:
                self.report.left[kind] += 1
        return local

    def _drop(self, path: str) -> None:
        """Remove a note that is gone from the shared index."""
        self._call("drop_file(%s, %s, %s, %s)", path)
        self.report.removed += 1

    def _with_withheld(self, mark: str) -> str:
        """Return the mark of a note of which passages are withheld, until a person clears one."""
        return f"{mark} {self._allowed.mark}"

    def _put(self, path: str, mark: str) -> None:
        """Publish a note as it is indexed, without what may hold a secret."""
        with self._store.snapshot():
            note = self._store.file(path)
            if note is None:
                # It is gone since; the next run removes it.
                return
            withheld, chunks, vectors = self._passages.rows_of(note)
        secrets_kept = f"not published, as it may hold a secret: {plural(withheld, 'passage')}" if withheld else ""
        # Columns that are called the same there. Bytes are written as PostgreSQL does: \x and hex digits.
        same = ("path", "source", "hash", "size", "state", "indexed_at", "dated")
        row = {
            **{name: getattr(note, name) for name in same},
            "mtime": note.mtime_ns,
            "detail": "; ".join(filter(None, (note.detail.replace("\0", " "), secrets_kept))),
            "title": "" if self._passages.hides(note.title) else f"\\x{_bytes(note.title).hex()}",
            "mark": self._with_withheld(mark) if withheld else mark,
            "first_seq": chunks[0][0] if chunks else 0,
            "chunks": len(chunks),
        }
        self._call(_PUT, json.dumps(row), *_lists(chunks, width=10), *_lists(vectors, width=4))
        self.report.files += 1
        self.report.passages += len(chunks)
        self.report.withheld += withheld
        self.report.vectors += len(vectors)


def _there(connection: Connection, access: Access, ws: int, column: LiteralString) -> dict[str, str]:
    """Return `column` of each note that is published of a workspace, by path."""
    query = f"select path, {column} from memory_tui.files(%s, %s, 0) where state <> 'gone'"
    return dict(connection.execute(query, (access.tenant, ws)).fetchall())


_PUT = (
    "put_file(%s, %s, %s, %s::jsonb, %b::bigint[], %b::int[], %b::int[], %b::int[], %b::int[], %b::text[], %b::text[], "
    "%b::text[], %b::bytea[], %b::bytea[], %b::bigint[], %b::int[], %b::text[], %b)"
)


def _lists(rows: Sequence[tuple[object, ...]], width: int) -> Iterator[list[object]]:
    """Yield each column of `rows` as a list; of no rows `width` empty ones."""
    columns = zip(*rows, strict=True) if rows else [()] * width
    return map(list, columns)


def _bytes(text: str) -> bytes:
    """Return `text` as bytes, because PostgreSQL's text takes no NUL and no half of a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")


def space_of(identity: Identity) -> str:
    """Return what stands for the space of vectors."""
    return json.dumps([*identity.space, identity.dims])


# --- joining -------------------------------------------------------------------------------------------------------

_ALLOW = "select memory_tui.allow(%s, %s, %s, %s)"


def join(plan: Plan, access: Access, kinds: Sequence[str], how: str) -> None:
    """Remember that the notes that need `kinds` may go to the database, and enter the workspace there.

    Raises SharedUnavailable, ApprovalUnsaved.
    """
    with joined(access) as connection:
        connection.execute("select memory_tui.join_workspace(%s, %s)", (access.tenant, access.name))
        for kind in kinds:
            Approvals(plan.workspace).approve(kind, access.where, how)


def allow(access: Access, reader: str, *, reads: bool) -> None:
    """Let a login or a role read this workspace, or no longer. Raises SharedUnavailable."""
    with joined(access) as connection:
        connection.execute(_ALLOW, (access.tenant, access.name, reader, reads))


def rehearse(access: Access, readers: Sequence[str]) -> None:
    """Raise SharedUnavailable where this workspace may not join, or not let `readers` read it; nothing is changed."""
    with joined(access) as connection, connection.transaction(force_rollback=True):
        connection.execute("select memory_tui.join_workspace(%s, %s)", (access.tenant, access.name))
        for reader in readers:
            connection.execute(_ALLOW, (access.tenant, access.name, reader, True))


def leave(plan: Plan, access: Access) -> None:
    """Take everything of this workspace out of the shared index, and the consent back. Raises SharedUnavailable."""
    with joined(access) as connection:
        connection.execute("select memory_tui.leave(%s, %s)", (access.tenant, access.name))
    for kind in (NOTES, MEMORY, SESSIONS):
        Approvals(plan.workspace).revoke(kind)


# --- vectors of the team -------------------------------------------------------------------------------------------


def vectors_of(access: Access, identity: Identity, hashes: Sequence[str]) -> dict[str, bytes]:
    """Return the vectors that members have of texts with these hashes, as float32 bytes by hash.

    Only those in workspaces that this login may read: by a hash nobody learns what they may not read. Raises
    SharedUnavailable.
    """
    with joined(access) as connection:
        rows = connection.execute(
            "select hash, vec from memory_tui.known_vectors(%s, %s, %s)",
            (access.tenant, space_of(identity), list(hashes)),
            binary=True,
        ).fetchall()
    return dict(rows)


# --- publishing in the background ------------------------------------------------------------------------------------

BEAT_SECONDS, RETRY_SECONDS = 60.0, 5.0
GOODBYE_SECONDS = 1.0
_BETWEEN_SECONDS = 1.0
"""The least time between two runs: each tells everybody who listens to look."""


class Publisher:
    """Publishes what `reader` opens while `keeps` says that this process keeps the index; `tell` hears each failure."""

    def __init__(self, plan: Plan, reader: StoreReader, keeps: Callable[[], bool], tell: Callable[[str], None]) -> None:
        self._plan, self._reader, self._keeps, self._tell = plan, reader, keeps, tell
        self._stop = Stop()
        self._due = threading.Event()
        self._failure = ""
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
        # At once, and not only when the first beat is over.
        self._due.set()
        self._thread.start()

    def wake(self) -> None:
        """Publish soon."""
        self._due.set()

    def close(self) -> None:
        """End after the note that is under way, or leave it: a database that does not answer is not waited for."""
        self._stop.set()
        self._due.set()
        self._thread.join(GOODBYE_SECONDS)

    def _run(self) -> None:
        """Publish after each sync, and once a minute, while this process keeps the index."""
        while not self._stop.is_set():
            self._due.wait(RETRY_SECONDS if self._failure else BEAT_SECONDS)
            self._due.clear()
            if not self._stop.is_set() and self._keeps():
                self._publish()
            self._stop.wait(_BETWEEN_SECONDS)

    def _publish(self) -> None:
        """Publish once, and tell a failure that is new."""
        try:
            target = access(self._plan)
            with self._reader() as store:
                publish(store, target, consent(self._plan, target), self._stop)
            failure = ""
        except (Cancelled, IndexEmpty):
            return
        except MemoryTuiError as error:
            failure = f"{error.message} {error.next_step}"
        if failure and failure != self._failure:
            self._tell(failure)
        self._failure = failure


# --- checking what is published --------------------------------------------------------------------------------------

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
        ws, base = row
        problems = [text for (text,) in connection.execute("select memory_tui.unsound(%s, %s)", (access.tenant, ws))]
        here = {path: note for path, note in store.indexed().items() if kind_of(note) in allowed.kinds}
        there = _there(connection, access, ws, "hash")
        passages = Passages(store, allowed.cleared, base)
        cursor: psycopg.Cursor[Any] = connection.cursor(row_factory=namedtuple_row)
        problems += (f"{path}: it is published, and not in the index" for path in there.keys() - here.keys())
        for path, note in here.items():
            if path not in there:
                problems.append(f"{path}: it is in the index, and not published")
                continue
            rows = cursor.execute(_ROWS, {"t": access.tenant, "w": ws, "p": path}, binary=True).fetchall()
            if not all(holds(row.text.decode("utf-8", "surrogatepass"), row.hash) for row in rows):
                problems.append(f"{path}: a text is not what was hashed")
            _, chunks, vectors = passages.rows_of(note)
            # As `_ROWS` returns them: the columns of a passage, then the list of its vectors by place. A vector comes
            # after the number of its passage, its place and its hash.
            ours = [(seq, *rest, [vector.data for of, _, _, vector in vectors if of == seq]) for seq, *rest in chunks]
            if rows != ours or there[path] != note.hash:
                problems.append(f"{path}: it is not published as it is indexed")
            if disk is not None and (flaw := _on_disk(disk, note)):
                problems.append(f"{path}: {flaw}")
        return problems


def _on_disk(disk: Roots, note: IndexedNote) -> str:
    """Return how a note differs from its file; empty where it does not."""
    try:
        return "" if roots.read(roots.located(disk, note.path)).hash == note.hash else "its file is another one by now"
    except (PathRefused, Unreadable) as error:
        return error.message
