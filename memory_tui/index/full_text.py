"""Full-text search of an index by FTS5."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Literal

import apsw
import numpy as np

from memory_tui.core.errors import IndexDamaged, QueryError
from memory_tui.core.tokens import and_query, or_query
from memory_tui.index import database
from memory_tui.index.database import Database, explained
from memory_tui.source.rows import Form, Matches, RowIds

_TABLES = {"plain": "chunks_fts", "stemmed": "chunks_words"}


class FullText:
    """The word index of an SQLite index (`source.protocol.WordIndex`); `generation` reads that of the index."""

    def __init__(self, index: Database, generation: Callable[[], int]) -> None:
        self._index = index
        self._generation = generation
        self._frequencies: tuple[int, dict[tuple[Form, str], int]] = (-1, {})

    def cut(self) -> Literal["unicode61", "trigram", ""]:
        """Say how OpenClaw's full-text table cuts words; empty where there is no full-text search."""
        if database.fts5():
            return ""
        match self._index.value("SELECT value FROM meta WHERE key = 'full_text'"):
            case None | "":
                return ""
            case "unicode61":
                return "unicode61"
            case "trigram":
                return "trigram"
        raise self._index.damaged("the tokenizer of its full-text search makes no sense")

    def missing(self) -> str:
        """Say why this machine has no full-text search; empty where it has."""
        return database.fts5()

    def match(self, words: Sequence[str], form: Form, join: Literal["all", "any"]) -> Matches:
        """Find the chunks that hold all, or any, of `words`. Raises QueryError, Cancelled."""
        table = _TABLES[form]
        expression = or_query(words) if join == "any" else and_query(words)
        if not words:
            return Matches(np.empty(0, np.int64), np.empty(0))
        if "\0" in expression:
            raise QueryError("A query cannot hold NUL characters.")
        try:
            pairs = self._index.connection.execute(
                f"SELECT rowid, bm25({table}) FROM {table} WHERE {table} MATCH ?", (expression,)
            ).fetchall()
        except apsw.SQLError as error:
            if isinstance(found := explained(error, self._index.path), IndexDamaged):
                raise found from None
            raise QueryError(f"Full-text search cannot read the query: {error}.", "Ask in fewer words.") from None
        except apsw.Error as error:
            raise explained(error, self._index.path) from None
        # Sorting here is cheaper than SQLite's sorter, which cannot stop early either.
        both = np.fromiter(itertools.chain.from_iterable(pairs), np.float64, 2 * len(pairs)).reshape(-1, 2)
        rowids, bm25 = both[:, 0].astype(np.int64), both[:, 1]
        order = np.lexsort((rowids, bm25))
        return Matches(rowids[order], bm25[order])

    def frequency(self, words: Sequence[str], form: Form) -> list[int]:
        """Count the chunks that hold each word, a lone CJK character as the beginning of a token."""
        generation = self._generation()
        if self._frequencies[0] != generation:
            self._frequencies = generation, {}
        known, table = self._frequencies[1], _TABLES[form]
        for word in words:
            if (form, word) not in known:
                sql = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"
                known[form, word] = self._index.value(sql, (or_query([word.replace("\0", " ")]),))
        return [known[form, word] for word in words]

    def containing(self, term: str) -> RowIds:
        """Find the chunks whose text holds `term` anywhere (LIKE, as OpenClaw 2026.4.15 looks for very short terms)."""
        pattern = "%" + "".join("\\" + c if c in "\\%_" else c for c in term) + "%"
        rows = self._index.query(r"SELECT id FROM chunks WHERE text LIKE ? ESCAPE '\' ORDER BY id", (pattern,))
        return np.fromiter(itertools.chain.from_iterable(rows), np.int64, len(rows))

    def originals(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        """Map the rowids of repeats to the chunk that each repeats."""
        wanted = json.dumps([int(rowid) for rowid in rowids])
        repeats = self._index.query(
            "SELECT id, file_id, chunk_id FROM chunks WHERE occurrence > 0 AND id IN (SELECT value FROM json_each(?))",
            (wanted,),
        )
        # Joined here: SQL would go through all chunks of a note for each repeat in it.
        files = json.dumps(sorted({file for _, file, _ in repeats}))
        firsts = {
            (file, chunk): rowid
            for rowid, file, chunk in self._index.query(
                "SELECT id, file_id, chunk_id FROM chunks "
                "WHERE occurrence = 0 AND file_id IN (SELECT value FROM json_each(?))",
                (files,),
            )
        }
        return {rowid: firsts[file, chunk] for rowid, file, chunk in repeats if (file, chunk) in firsts}
