"""What a search needs of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

from memory_tui.core.errors import IndexDamaged
from memory_tui.providers.base import Identity, Vectors
from memory_tui.source.rows import (
    ChunkPage,
    ChunkRow,
    CosineRank,
    Delta,
    Form,
    IndexedNote,
    Matches,
    NoteColumns,
    Rejected,
    RowIds,
    Withheld,
)


class WordIndex(Protocol):
    """Full-text search of one store.

    A word is matched by what the analysis of its form makes of it: one token, or several that have to follow each
    other; none never match. In the form `plain` tokens are FTS5's unicode61, or trigrams; in `stemmed` porter stems.
    """

    def cut(self) -> Literal["unicode61", "trigram", ""]:
        """Say how the form `plain` is cut; empty where there is no full-text search."""
        ...

    def missing(self) -> str:
        """Say why this machine has no full-text search; empty where it has, though the store may be made without."""
        ...

    def match(self, words: Sequence[str], form: Form, join: Literal["all", "any"]) -> Matches:
        """Find the chunks that hold all, or any, of `words`, with the bm25 of every match.

        A word that is given twice counts twice. With "any", a lone Chinese, Japanese or Korean character matches as the
        beginning of a token. bm25 is FTS5's: the sum over the words of
        -max(ln((N - df + 0.5) / (df + 0.5)), 1e-6) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / mean length)),
        N chunks of that form, `df` of which hold the word, `tf` times in this one; lengths count tokens.
        Raises QueryError, Cancelled.
        """
        ...

    def size(self, form: Form) -> int:
        """Count the chunks of that form."""
        ...

    def frequency(self, words: Sequence[str], form: Form) -> list[int]:
        """Count the chunks of that form that hold each word; a lone CJK character as the beginning of a token."""
        ...

    def vocabulary(self) -> Mapping[str, int]:
        """Read every token of the form `plain`, where it is cut into words, and how many chunks hold it."""
        ...

    def containing(self, term: str) -> RowIds:
        """Find the chunks, repeats included, whose text holds `term` anywhere, in the order of their rowids.

        ASCII letters match in either case.
        """
        ...

    def originals(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        """Map the rowids of repeats to the chunk of the same note that each repeats; other rowids are left out."""
        ...


class ChunkSource(Protocol):
    """One store, read by one thread; only `interrupt` may be called from another.

    Every method raises Cancelled when interrupted, and IndexUnavailable (IndexDamaged for content that makes no sense).
    """

    @property
    def words(self) -> WordIndex:
        """The full-text search of this store."""
        ...

    def interrupt(self) -> None:
        """Stop what runs now, which then raises Cancelled; safe from any thread."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Hold one generation: all that is read inside is of it, whoever writes meanwhile. May be entered again."""
        ...

    def damaged(self, what: str) -> IndexDamaged:
        """Make the error that says that `what` this store answered makes no sense."""
        ...

    # --- the whole -------------------------------------------------------------------------------------------------

    def uuid(self) -> str:
        """Name the store: rowids and generations mean nothing in one with another name."""
        ...

    def generation(self) -> int:
        """Count the writes so far; grows whenever anything changes."""
        ...

    def identity(self) -> Identity | None:
        """Name the space of the vectors; None without any."""
        ...

    # --- notes and chunks ------------------------------------------------------------------------------------------

    def known(self) -> Mapping[str, IndexedNote]:
        """Map the stored path of each note to its row; the next call may change what this one returned."""
        ...

    def notes(self) -> NoteColumns:
        """Read what is known of each note in columns, without a row for each."""
        ...

    def file(self, path: str) -> IndexedNote | None:
        """Read the row of one note."""
        ...

    def chunks_of(self, path: str) -> list[ChunkRow]:
        """List the chunks of a note in their order, repeats included."""
        ...

    def texts(self, rowids: Sequence[int] | RowIds) -> dict[int, str]:
        """Read the texts of chunks by rowid; those that are gone are missing."""
        ...

    def annotations(self) -> dict[int, tuple[int, str, str]]:
        """Read importance (0: none), triggers and project of each chunk that has annotations, by rowid."""
        ...

    def word_counts(self, rowids: Sequence[int] | RowIds) -> dict[int, int]:
        """Read how many different words chunks have (`tokens.words_of`), by rowid; some may be missing."""
        ...

    def chunking(self) -> str:
        """Name the release of OpenClaw by whose rules notes are cut; empty where nothing was indexed yet."""
        ...

    def page(self, after: int, count: int, *, vectors: bool = True) -> ChunkPage:
        """Read the next `count` chunks with a rowid above `after`; without `vectors` their dimensions are 0."""
        ...

    def delta(self, generation: int, most: int, *, vectors: bool = True) -> Delta | None:
        """Tell what changed since `generation`; None when that is not known any more, or is more than `most` rows."""
        ...

    # --- vectors ---------------------------------------------------------------------------------------------------

    def vectors(self, rowids: Sequence[int] | RowIds) -> Vectors:
        """Read the vectors of chunks as float32 (len(rowids), dims), zeros without a vector."""
        ...

    def finds_nearest(self) -> bool:
        """Whether `nearest` answers without reading every vector."""
        ...

    def nearest(self, query: Vectors, count: int) -> RowIds | None:
        """Find the `count` chunks of the greatest cosine with the unit vector `query`, in any order.

        None when the store cannot tell them exactly: chunks within 1e-6 of each other lie on both sides of the edge,
        or they are more than it finds at once. Only where `finds_nearest`.
        """
        ...

    def standings(self, query: Vectors, rowids: Sequence[int] | RowIds) -> dict[int, CosineRank]:
        """Compute the exact place of chunks by their cosine with the unit vector `query`; no vector, no place.

        Of cosines within 1e-6 the smaller rowid comes first. It may read every vector, once for all `rowids`.
        """
        ...

    def rejected(self) -> list[Rejected]:
        """List the chunks without a vector that the provider of `identity` refused, by path and line."""
        ...

    def withheld(self) -> list[Withheld]:
        """List the chunks without a vector that are not sent to any provider, by path and line."""
        ...


@contextmanager
def making_sense(damaged: Callable[[str], IndexDamaged]) -> Iterator[None]:
    """Around code that does nothing but take the rows of a store apart: what it trips over is damage."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise damaged(f"a row makes no sense: {type(error).__name__}") from error
