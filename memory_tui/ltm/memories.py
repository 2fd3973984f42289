"""The memories of one table are the entries in it. Every front end stores, searches and changes them here, and undoes
that.

Entries exist nowhere else, so they are sources: nothing is written before a person agrees once, each change is in the
journal before it is made, and one process at a time makes one.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.errors import QueryError
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line
from memory_tui.ltm import entry, entry_journal, entry_table, location
from memory_tui.ltm.entry import DUPLICATE, IMPORTANCE, EntryRefused, MemoryEntry, normalised
from memory_tui.ltm.entry_journal import ChangeKind, EntryChange, EntryJournal
from memory_tui.ltm.entry_table import EntryTable, Rows
from memory_tui.ltm.lance import MemoriesUnavailable, TableMissing
from memory_tui.ltm.location import EntryRules, TableLocation
from memory_tui.ltm.vector_space import SpaceProof, VectorSpace, record_of

if TYPE_CHECKING:
    from memory_tui.approval import Approvals
    from memory_tui.plan import Choices
    from memory_tui.providers.base import Vectors
    from memory_tui.providers.chain import Chain

WRITES = "ltm"
"""What the agreement to write a table is saved under."""
LIMIT, COMMAND_MIN, TOOL_MIN = 5, 0.3, 0.1
FORGET_MIN, CLEAR = 0.7, 0.9
"""To be forgotten by a query an entry has at least that score, and alone more than that."""
_MORE = 20
"""So many misses are looked at beside the hits."""
_MOST_QUERY = 50_000


class FoundEntry(Struct, frozen=True):
    """An entry that a search looked at: `score` is 1/(1+distance). `why_not` is empty for a hit."""

    entry: MemoryEntry
    distance: float
    why_not: str = ""

    @property
    def score(self) -> float:
        """OpenClaw's score."""
        return 1 / (1 + self.distance)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready fields."""
        fields = {**self.entry.as_dict(), "score": round(self.score, 6), "distance": round(self.distance, 6)}
        return {**fields, "whyNot": self.why_not} if self.why_not else fields


class EntrySearch(Struct, frozen=True):
    """The answer to one query: hits, the nearest of the others, and how the space of the vectors is known."""

    query: str
    hits: tuple[FoundEntry, ...]
    misses: tuple[FoundEntry, ...]
    least: float
    proof: SpaceProof


class StoredEntry(Struct, frozen=True):
    """What became of a text: `created`, or `duplicate` of the entry that is named with its score."""

    action: Literal["created", "duplicate"]
    entry: MemoryEntry
    score: float = 1.0
    change: int = 0


class Forgotten(Struct, frozen=True):
    """What was forgotten, or, where it was not clear what was meant, which entries it could be."""

    entries: tuple[MemoryEntry, ...]
    candidates: tuple[FoundEntry, ...] = ()
    change: int = 0


class EntryPair(NamedTuple):
    """Two entries that are near each other, with the score of one for the other."""

    first: MemoryEntry
    second: MemoryEntry
    score: float


class Memories:
    """The entries of one table. Every method may be called from any thread, belongs on a worker thread, and may raise
    MemoriesUnavailable; those that embed raise ProviderError and OtherVectors, those that write EntryRefused.
    """

    def __init__(
        self,
        choices: Choices,
        approvals: Approvals,
        shared: Chain | None = None,
        place: TableLocation | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.location = place or location.of_choices(choices)
        self.rules = EntryRules.of(choices)
        self.journal = EntryJournal(self.location)
        self.space = VectorSpace(choices, approvals, self.location, shared)
        self._read_only = choices.asked.read_only
        self._clock = clock
        self._lock = threading.RLock()
        self._table: EntryTable | None = None

    def close(self) -> None:
        """Release the provider and the table."""
        self.space.close()
        self._table = None

    # --- agreement ---------------------------------------------------------------------------------------------------

    @property
    def approvals(self) -> Approvals:
        """The agreements about this table: they belong to the table, whatever the workspace."""
        from memory_tui.approval import Approvals

        return Approvals(Path(self.location.uri))

    @property
    def writable(self) -> bool:
        """Whether a person agreed that memory-tui writes the table, here."""
        return not self._read_only and self.approvals.find(WRITES, self.location.host) is not None

    def approve(self, how: str) -> None:
        """Save that a person agreed. Raises ApprovalUnsaved."""
        self.approvals.approve(WRITES, self.location.host, how)

    def exists(self) -> bool:
        """Whether there is a table."""
        try:
            self.table()
        except TableMissing:
            return False
        return True

    def _require_writable(self) -> None:
        if self._read_only:
            raise EntryRefused("The memories are read-only here.", "Leave --read-only out.")
        if not self.writable:
            raise EntryRefused(
                f"Nobody has agreed yet that memory-tui writes the memories in {one_line(self.location.shown)}.",
                "To agree: memory-tui ltm approve.",
            )

    # --- reading -----------------------------------------------------------------------------------------------------

    def table(self) -> EntryTable:
        """The table, opened when first needed. Raises TableMissing."""
        with self._lock:
            if self._table is None or self._table.closed:
                self._table = EntryTable.open(self.location)
            return self._table

    def get(self, key: str) -> MemoryEntry:
        """The entry with the id `key`, or whose id alone begins so. Raises EntryRefused."""
        if entry.is_id(key):
            found = entry_table.entries_of(self.table().rows([key.lower()]))
        else:
            found = tuple(one for one in self.table().entries() if len(key) >= 4 and one.id.startswith(key.lower()))
        if len(found) != 1:
            raise EntryRefused(
                f"{'Several entries begin' if found else 'No entry has an id that begins'} with {one_line(key, 60)!r}.",
                "memory-tui ltm list shows the ids.",
            )
        return found[0]

    def search(
        self, query: str, limit: int = LIMIT, least: float = COMMAND_MIN, category: str = "", *, explained: bool = True
    ) -> EntrySearch:
        """The entries nearest to `query` with at least the score `least`; misses only where `explained`."""
        if not query.strip():
            raise QueryError("There is nothing to search for.", 'For instance: memory-tui ltm search "tabs".')
        if len(query) > _MOST_QUERY:
            raise QueryError(f"The query has more than {_MOST_QUERY:,} characters.", "Ask in fewer words.")
        if category:
            entry.require_category(category)
        table = self.table()
        recorded = table.recorded
        proof = self.space.prove(table)
        [vector] = self.space.embed([query], recorded, query=True)
        if not vector.any():
            raise QueryError("The model knows no word of the query, so nothing can be ranked.", "Ask in other words.")
        found = [FoundEntry(*pair) for pair in table.nearest(vector, limit + _MORE)]
        ranked = found if not category else [FoundEntry(*pair) for pair in table.nearest(vector, limit, category)]
        hits = tuple(one for one in ranked[:limit] if one.score >= least)
        chosen = {one.entry.id for one in hits}
        misses = tuple(
            replace(one, why_not=_why_not(one, rank, limit, least, category))
            for rank, one in enumerate(found, 1)
            if explained and one.entry.id not in chosen
        )
        return EntrySearch(query, hits, misses, least, proof)

    def near_duplicates(self, least: float = 0.9, most: int = 100) -> tuple[EntryPair, ...]:
        """Pairs of entries with at least the score `least` for each other, the most alike first."""
        import numpy as np

        entries, vectors = self.table().vectors()
        found: list[tuple[float, int, int]] = []
        squares = (vectors * vectors).sum(axis=1)
        step = 512
        for start in range(0, len(entries), step):
            block = vectors[start : start + step]
            distances = squares[start : start + step, None] + squares[None, :] - 2 * (block @ vectors.T)
            rows, columns = np.nonzero(1 / (1 + np.maximum(distances, 0)) >= least)
            for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
                if start + row < column:
                    found.append((float(max(distances[row, column], 0)), start + row, column))
        found.sort()
        return tuple(EntryPair(entries[one], entries[other], 1 / (1 + far)) for far, one, other in found[:most])

    # --- changing ----------------------------------------------------------------------------------------------------

    def store(
        self, text: str, importance: float = IMPORTANCE, category: str = "", *, most: int = entry.MOST_STORED
    ) -> StoredEntry:
        """Store `text` unless it is a duplicate. A table that is not there yet is made."""
        text = entry.require_storable(text, most)
        importance = entry.require_importance(importance)
        category = entry.require_category(category) if category else entry.category_of(text)
        if self._read_only or self.exists():
            self._require_writable()
        with self._changing(make=True) as table:
            recorded = table.recorded
            if (same := _same(table.entries(), text)) is not None:
                return StoredEntry("duplicate", same)
            self.space.prove(table)
            vectors = self._embedded([text], recorded)
            for nearest, distance in table.nearest(vectors[0], 1):
                if (score := 1 / (1 + distance)) >= DUPLICATE:
                    return StoredEntry("duplicate", nearest, score)
            made = MemoryEntry(_new_id(text, table), text, importance, category, round(self._clock() * 1000))
            change = self._insert(table, "store", _short(text), table.new_rows([made], vectors))
            if change is None:
                # Another machine stored it since; the key of the table let one of the two in.
                return StoredEntry("duplicate", entry_table.entries_of(table.rows([made.id]))[0])
            table.compact()
            return StoredEntry("created", made, change=change.id)

    def edit(
        self, key: str, text: str | None = None, importance: float | None = None, category: str | None = None
    ) -> tuple[MemoryEntry, int]:
        """Change an entry; a new text is embedded again. Returns it with the number of the change."""
        found = self.get(key)
        made = replace(
            found,
            text=found.text if text is None else entry.require_storable(text),
            importance=found.importance if importance is None else entry.require_importance(importance),
            category=found.category if category is None else entry.require_category(category),
        )
        if made == found:
            return found, 0
        self._require_writable()
        with self._changing() as table:
            before = table.rows([found.id])
            if entry_table.entries_of(before) != (found,):
                raise EntryRefused("The entry was changed meanwhile.", "Look at it again: memory-tui ltm show ID.")
            if made.text == found.text:
                vectors = entry_table.vectors_of(before, table.dims)
            else:
                recorded = table.recorded
                self.space.prove(table)
                vectors = self._embedded([made.text], recorded)
            rows = _changed(before, table.new_rows([made], vectors, whole=False))
            change = self._write(
                entry_journal.change(
                    "edit", _short(made.text), (made.id,), entry_table.packed(before), entry_table.digests(rows)
                ),
                lambda: table.replace(rows) == 1,
            )
        return made, change.id if change else 0

    def forget(self, ids: Sequence[str]) -> Forgotten:
        """Delete the entries of `ids`. Raises EntryRefused where one is not there."""
        self._require_writable()
        with self._changing() as table:
            before = table.rows(ids)
            found = entry_table.entries_of(before)
            if missing := set(ids) - {one.id for one in found}:
                raise EntryRefused(
                    f"There is no entry {one_line(min(missing), 60)}.", "memory-tui ltm list shows the ids."
                )
            return Forgotten(found, change=self._delete(table, "forget", before).id)

    def forget_by_query(self, query: str, *, by_words: bool = False) -> Forgotten:
        """Delete the one entry that `query` clearly means; else nothing, and the candidates.

        With `by_words` an entry that alone holds every word of the query is clearly meant, too.
        """
        found = self.search(query, LIMIT, FORGET_MIN, explained=False)
        candidates = list(found.hits)
        words = frozenset(query.casefold().split())
        holding: list[MemoryEntry] = []
        if by_words:
            holding = [one for one in self.table().entries() if words <= _words(one.text)]
            known = {one.entry.id for one in candidates}
            near = {one.entry.id: one for one in self.search(query, LIMIT, 0.0, explained=False).hits}
            candidates += [near[one.id] for one in holding if one.id in near and one.id not in known]
        clear = len(candidates) == 1 and len(holding) <= 1
        if clear and (candidates[0].score > CLEAR or [candidates[0].entry] == holding):
            return self.forget([candidates[0].entry.id])
        return Forgotten((), tuple(candidates))

    def undo(self, number: int = 0) -> EntryChange:
        """Take back the change `number`, or the last one that is not undone. Raises EntryRefused."""
        self._require_writable()
        with self._changing() as table:
            known = self.journal.changes()
            undone = {one.undoes for one in known if one.state == "done"}
            fitting = [one for one in known if one.state == "done" and one.id not in undone]
            if number:
                fitting = [one for one in fitting if one.id == number]
            else:
                fitting = [one for one in fitting if one.kind != "undo"]
            if not fitting:
                raise EntryRefused(
                    f"There is no change {number} that could be undone." if number else "There is nothing to undo.",
                    "memory-tui ltm undo --list shows the changes.",
                )
            return self._undo(table, fitting[-1])

    def _undo(self, table: EntryTable, last: EntryChange) -> EntryChange:
        now = table.rows(last.ids)
        if entry_table.digests(now) != dict(last.after):
            raise EntryRefused(
                f"{plural(len(last.ids), 'entry')} of this change were changed again since, so it stays.",
                "memory-tui ltm undo --list shows the changes.",
            )
        title = f"undo {last.kind}: {last.title}"
        before = entry_table.unpacked(last.before)
        if before is None:
            return self._delete(table, "undo", now, title, last.id)
        made = entry_journal.change(
            "undo", title, last.ids, entry_table.packed(now), entry_table.digests(before), last.id
        )
        restore = table.replace if last.after else table.insert
        change = self._write(made, lambda: restore(before) == before.num_rows)
        if change is None:
            raise MemoriesUnavailable("Another program changed the memories at the same moment.", "Try again.")
        return change

    def add_all(self, entries: Sequence[MemoryEntry], vectors: Mapping[str, Sequence[float]], title: str) -> list[str]:
        """Add `entries` as they are, in one change; returns, for each that is not added, why not.

        `vectors` are those that may be used as they are, by id; the other texts are embedded.
        """
        import numpy as np

        if self.exists():
            self._require_writable()
        with self._changing(make=True) as table:
            recorded = table.recorded
            self.space.prove(table)
            new, left = _new_ones(entries, table.entries())
            if new:
                rest = [one for one in new if one.id not in vectors]
                made = self._embedded([one.text for one in rest], recorded)
                embedded = {one.id: vector for one, vector in zip(rest, made, strict=True)}
                matrix = np.array([vectors.get(one.id, embedded.get(one.id)) for one in new], np.float32)
                if matrix.shape != (len(new), table.dims) or not np.isfinite(matrix).all():
                    raise EntryRefused("A vector of the file has another length, or a number that is none.", "")
                self._insert(table, "import", title, table.new_rows(new, matrix))
            return left

    # --- how a change is made ----------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, *, make: bool = False) -> Iterator[EntryTable]:
        """The table, while no other process of this user changes it, and nothing that was cut off is left open."""
        with self._lock, self.journal.locked():
            try:
                table = self.table()
            except TableMissing:
                if not make:
                    raise
                identity = self.space.identity({})
                table = self._table = EntryTable.create(self.location, identity.dims, record_of(identity))
                self.approve("made the table")
            for change in self.journal.changes():
                if change.state == "intent":
                    now = entry_table.digests(table.rows(change.ids))
                    self.journal.settle(change, "done" if now == dict(change.after) else "refused")
            yield table

    def _embedded(self, texts: Sequence[str], recorded: Mapping[str, Any]) -> Vectors:
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32)
        vectors = self.space.embed(texts, recorded)
        for text, vector in zip(texts, vectors, strict=True):
            if not vector.any():
                raise EntryRefused(
                    f'The model knows no word of "{_short(text)}", so it could never be found.', "Say it in words."
                )
        return vectors

    def _insert(self, table: EntryTable, kind: ChangeKind, title: str, rows: Rows) -> EntryChange | None:
        after = entry_table.digests(rows)
        return self._write(
            entry_journal.change(kind, title, tuple(after), "", after), lambda: table.insert(rows) == rows.num_rows
        )

    def _delete(
        self, table: EntryTable, kind: ChangeKind, before: Rows, title: str = "", undoes: int = 0
    ) -> EntryChange:
        ids = tuple(entry_table.digests(before))
        title = title or _short(entry_table.entries_of(before)[0].text)
        made = entry_journal.change(kind, title, ids, entry_table.packed(before), {}, undoes)

        def run() -> bool:
            table.delete(ids)
            return True

        change = self._write(made, run)
        assert change is not None
        return change

    def _write(self, made: EntryChange, run: Callable[[], bool]) -> EntryChange | None:
        """Write the change down, make it, write down that it is made; None where it found nothing to change."""
        begun = self.journal.begin(made)
        if not run():
            self.journal.settle(begun, "refused")
            return None
        return self.journal.settle(begun, "done")


def _why_not(found: FoundEntry, rank: int, limit: int, least: float, category: str) -> str:
    if category and found.entry.category != category:
        return f"Its category is {found.entry.category}, not {category}."
    if found.score < least:
        return f"Its score {found.score:.3f} is under the least, {least:g}."
    return f"It is number {rank}; the limit is {limit}."


def _same(entries: Sequence[MemoryEntry], text: str) -> MemoryEntry | None:
    """The entry whose text is exactly `text`, but for its Unicode form and white space around it."""
    return next((one for one in entries if normalised(one.text) == text), None)


def _new_ones(entries: Sequence[MemoryEntry], known: Sequence[MemoryEntry]) -> tuple[list[MemoryEntry], list[str]]:
    """The entries that are not there yet, and for each of the others why it is left out."""
    ids, texts = {one.id: one for one in known}, {normalised(one.text): one for one in known}
    new, left = [], []
    for one in entries:
        text = normalised(one.text)
        if one.id in ids:
            why = (
                "is there already"
                if normalised(ids[one.id].text) == text
                else "is there with another text, which stays"
            )
            left.append(f"{one.id} {why}.")
        elif text in texts:
            left.append(f"{one.id} says the same as {texts[text].id}.")
        else:
            ids[one.id] = texts[text] = one
            new.append(one)
    return new, left


def _new_id(text: str, table: EntryTable) -> str:
    """An id made of the text, so that two machines that store it at once add it once; else any."""
    key = str(uuid.uuid5(uuid.NAMESPACE_OID, normalised(text)))
    return key if not table.rows([key]).num_rows else str(uuid.uuid4())


def _changed(before: Rows, made: Rows) -> Rows:
    """The row `before` with the columns that an entry has as in `made`; what else it holds stays."""
    for name in (*entry_table.SHOWN, "vector"):
        if name in before.column_names:
            at = before.column_names.index(name)
            before = before.set_column(at, before.schema.field(name), made[name])
    return before


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(".,;:!?\"'()[]") for word in text.casefold().split())


def _short(text: str) -> str:
    return one_line(text, 60)
