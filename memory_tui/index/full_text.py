"""Full-text search of an index by FTS5."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import apsw
import numpy as np

from memory_tui.errors import IndexDamaged, QueryError
from memory_tui.index import abilities
from memory_tui.index.database import Database, explained
from memory_tui.index.rows import Form, Matches, RowIds
from memory_tui.tokens import and_query, or_query, tokens

_MOST_TOKENS = 10_000
"""How many words are remembered with their tokens."""
_MOST_LIKE = 12_000
"""Characters of a pattern: SQLite takes 50,000 bytes, and a character takes up to four."""
_MOST_TRIGRAMS = 1_000
"""Trigrams by which a word is found."""
_TABLES = {"plain": "chunks_fts", "stemmed": "chunks_words"}


class FullText:
    """The word index; `generation` reads that of the index.

    A word is matched by what the analysis of its form makes of it: one token, or several that have to follow each
    other; none never match. In the form `plain` tokens are FTS5's unicode61, or trigrams; in `stemmed` porter stems.
    """

    def __init__(self, index: Database, generation: Callable[[], int]) -> None:
        self._index = index
        self._generation = generation
        self._frequencies: tuple[int, dict[tuple[Form, str], int]] = (-1, {})

    def cut(self) -> Literal["unicode61", "trigram", ""]:
        """Say how OpenClaw's full-text table cuts words; empty where there is no full-text search."""
        if abilities.fts5():
            return ""
        match self._index.meta("full_text"):
            case None | "":
                return ""
            case "unicode61":
                return "unicode61"
            case "trigram":
                return "trigram"
        raise self._index.damaged("the tokenizer of its full-text search makes no sense")

    def missing(self) -> str:
        """Say why this machine has no full-text search; empty where it has."""
        return abilities.fts5()

    def match(self, words: Sequence[str], form: Form, join: Literal["all", "any"]) -> Matches:
        """Find the chunks that hold all, or any, of `words`. Raises QueryError, Cancelled."""
        if not words:
            return Matches(np.empty(0, np.int64), np.empty(0))
        table, words = _TABLES[form], self._cut_short(words, form)
        pairs = self._matching(
            f"SELECT rowid, bm25({table}) FROM {table} WHERE {table} MATCH ?",
            or_query(words) if join == "any" else and_query(words),
        )
        both = np.fromiter(itertools.chain.from_iterable(pairs), np.float64, 2 * len(pairs)).reshape(-1, 2)
        return Matches(both[:, 0].astype(np.int64), both[:, 1].copy())

    def _cut_short(self, words: Sequence[str], form: Form) -> Sequence[str]:
        """The beginnings of `words` where trigrams find them: FTS5 takes 20 KB for each trigram of a word."""
        if form == "stemmed" or self.cut() != "trigram":
            return words
        return [word[:_MOST_TRIGRAMS] for word in words]

    def _look_at_tokens(self, table: str) -> None:
        """Make the table of the tokens of a full-text table; again each time, because a snapshot's end takes it."""
        self._index.query(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_row USING fts5vocab(main, '{table}', 'row')"
        )

    def _is_cut_into_words(self, form: Form) -> bool:
        return form == "stemmed" or self.cut() == "unicode61"

    def size(self, form: Form) -> int:
        """Count the chunks of that form."""
        return int(self._index.value(f"SELECT count(*) FROM {_TABLES[form]}_docsize"))

    def _matching(self, sql: str, expression: str, *more: int) -> list[tuple[Any, ...]]:
        """Rows of a full-text query, in the order of their rowids. Raises QueryError, Cancelled."""
        if "\0" in expression:
            raise QueryError("A query cannot hold NUL characters.")
        try:
            return self._index.connection.execute(sql, (expression, *more)).fetchall()
        except apsw.SQLError as error:
            if isinstance(failure := explained(error, self._index.path), IndexDamaged):
                raise failure from None
            raise QueryError(f"Full-text search cannot read the query: {error}.", "Ask in fewer words.") from None
        except apsw.Error as error:
            raise explained(error, self._index.path) from None

    def frequency(self, words: Sequence[str], form: Form) -> list[int]:
        """Count the chunks that hold each word, a lone CJK character as the beginning of a token."""
        generation = self._generation()
        if self._frequencies[0] != generation:
            self._frequencies = generation, {}
        counts, table = self._frequencies[1], _TABLES[form]
        fresh = [word for word in words if (form, word) not in counts]
        into_words = bool(fresh) and self._is_cut_into_words(form)
        if fresh:
            self._look_at_tokens(table)
        for word in fresh:
            token = _token(word, form) if into_words else None
            if token is not None:
                # Half the time of counting matches.
                sql = f"SELECT doc FROM temp.{table}_row WHERE term = ?"
                counts[form, word] = self._index.value(sql, (token,)) or 0
            else:
                sql = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"
                counts[form, word] = self._index.value(
                    sql, (or_query(self._cut_short([word.replace("\0", " ")], form)),)
                )
        return [counts[form, word] for word in words]

    def vocabulary(self) -> dict[str, int]:
        """Read every token of the form `plain`, and how many chunks hold it; nothing where those are no words."""
        if self.cut() != "unicode61":
            return {}
        self._look_at_tokens("chunks_fts")
        return dict(self._index.query("SELECT term, doc FROM temp.chunks_fts_row"))

    def containing(self, term: str) -> RowIds:
        """Find the chunks whose text holds the beginning of `term`, as much as LIKE takes, anywhere.

        OpenClaw 2026.4.15 looks so for very short terms.
        """
        pattern = "%" + "".join("\\" + c if c in "\\%_" else c for c in term[:_MOST_LIKE]) + "%"
        rows = self._index.query(r"SELECT id FROM chunks WHERE text LIKE ? ESCAPE '\' ORDER BY id", (pattern,))
        return np.fromiter(itertools.chain.from_iterable(rows), np.int64, len(rows))

    def originals(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        """Map the rowids of repeats to the chunk that each repeats."""
        sql = (
            "SELECT r.id, f.id FROM chunks r CROSS JOIN chunks f ON f.file_id = r.file_id AND f.chunk_id = r.chunk_id "
            "AND f.occurrence = 0 WHERE r.occurrence > 0 AND r.id IN (SELECT value FROM json_each(?))"
        )
        return dict(self._index.query(sql, (json.dumps([int(rowid) for rowid in rowids]),)))


@functools.lru_cache(maxsize=_MOST_TOKENS)
def _token(word: str, form: Form) -> str | None:
    """The one token that `word` is matched by; None where it is several, none, or the beginning of one."""
    if or_query([word]).endswith("*"):
        return None
    pieces = tokens(word, stemmed=form == "stemmed")
    return pieces[0] if len(pieces) == 1 and "\0" not in word else None
