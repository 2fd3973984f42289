"""An index in memory between queries: its chunks, the dates of its files, its postings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from memory_tui.search import corpus_file
from memory_tui.search.corpus import Corpus, distinct
from memory_tui.search.formulas import Floats
from memory_tui.search.postings import PostingLists
from memory_tui.source.protocol import ChunkSource
from memory_tui.workspace import transcripts
from memory_tui.workspace.notes import NoteDate, note_date, note_date_2026_9, shown_day

Basis = Literal["name", "mtime", "evergreen"]
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class _Names:
    """What the names of files say of their dates: midnights in epoch seconds, NaN without one, by each rule."""

    openclaw: Floats
    openclaw_basis: list[Basis]
    shown: Floats
    shown_basis: list[Basis]
    newest: Floats
    newest_basis: list[Basis]
    days: list[str]

    @classmethod
    def of(cls, paths: Sequence[str], sources: Sequence[str]) -> _Names:
        """Those of the files with these stored paths.

        A transcript never ages in OpenClaw 2026.3, which looks for its file in the workspace, where there is none.
        """
        told = [name == transcripts.SOURCE for name in sources]
        both = list(zip(paths, told, strict=True))
        theirs = [NoteDate(None, "evergreen") if is_told else note_date(path) for path, is_told in both]
        newest = [NoteDate(None, "mtime") if is_told else note_date_2026_9(path) for path, is_told in both]
        shown = [None if is_told else shown_day(path) for path, is_told in both]
        return cls(
            _midnights(one.day for one in theirs),
            [one.basis for one in theirs],
            _midnights(shown),
            ["name" if day else "mtime" if is_told else "evergreen" for day, is_told in zip(shown, told, strict=True)],
            _midnights(one.day for one in newest),
            [one.basis for one in newest],
            [day.isoformat() if day else "" for day in shown],
        )

    def followed_by(self, more: _Names) -> _Names:
        """These, and `more`."""
        return _Names(
            np.concatenate([self.openclaw, more.openclaw]),
            self.openclaw_basis + more.openclaw_basis,
            np.concatenate([self.shown, more.shown]),
            self.shown_basis + more.shown_basis,
            np.concatenate([self.newest, more.newest]),
            self.newest_basis + more.newest_basis,
            self.days + more.days,
        )


def _midnights(days: Iterable[dt.date | None]) -> Floats:
    return np.array([(day.toordinal() - _EPOCH) * _DAY_SECONDS if day else np.nan for day in days], dtype=np.float64)


def _aged(named: Floats, basis: Sequence[Basis], mtimes: Floats) -> Floats:
    """What files are aged from: the day in the name, else the modification time where that is the basis."""
    by_time = np.fromiter((one == "mtime" for one in basis), np.bool_, len(basis))
    return np.where(by_time & np.isnan(named), mtimes, named)


@dataclass(frozen=True, slots=True)
class Dates:
    """What each file of a corpus is aged from, by both rules: epoch seconds (NaN: evergreen) and the basis."""

    openclaw: Floats
    openclaw_basis: Sequence[Basis]
    shown: Floats
    shown_basis: Sequence[Basis]
    newest: Floats
    """By the rule of OpenClaw 2026.9, by which transcripts age too."""
    newest_basis: Sequence[Basis]
    days: Sequence[str]
    """The ISO day in each file's name, empty without one."""
    files: int
    """How many files have a chunk."""
    names: _Names
    paths: Sequence[str]

    @classmethod
    def of(cls, corpus: Corpus, before: Dates | None = None) -> Dates:
        """The dates of every file of `corpus`; depends on names, sources and modification times alone.

        Names that `before` knows already, of an earlier state of the corpus, are not read again.
        """
        paths, sources, mtimes = corpus.files.paths, corpus.files.sources, corpus.files.mtimes
        if before is not None and before.paths == paths[: len(before.paths)]:
            known = len(before.paths)
            more = _Names.of(paths[known:], sources[known:])
            names = before.names.followed_by(more) if known < len(paths) else before.names
        else:
            names = _Names.of(paths, sources)
        return cls(
            _aged(names.openclaw, names.openclaw_basis, mtimes),
            names.openclaw_basis,
            _aged(names.shown, names.shown_basis, mtimes),
            names.shown_basis,
            _aged(names.newest, names.newest_basis, mtimes // 1e-3 / 1e3),
            names.newest_basis,
            names.days,
            len(distinct(corpus.file_of)),
            names,
            paths,
        )


@dataclass(frozen=True, slots=True)
class IndexInMemory:
    """What of an index stays in memory between queries, all of one generation.

    A command that asks `once` has no `lists`: it lets FTS5 weigh the matches, and need not read the chunks' lengths.
    With `light` no vectors are in memory where the store finds the nearest.
    """

    corpus: Corpus
    dates: Dates
    lists: PostingLists | None
    light: bool = False

    @classmethod
    def load(cls, store: ChunkSource, index: Path | None = None, *, once: bool, light: bool = False) -> IndexInMemory:
        """Read it all, with the chunks from the corpus file beside `index` where it is of use.

        Raises IndexUnavailable, Cancelled.
        """
        by_store = light and store.finds_nearest()
        corpus = corpus_file.load(corpus_file.path_of(index), store) if index and not by_store else None
        if corpus is None:
            corpus = Corpus.load_light(store) if light else Corpus.load_once(store) if once else Corpus.load(store)
        return cls(corpus, Dates.of(corpus), None if once else PostingLists.of(store), light)

    def save(self, index: Path) -> None:
        """Write the chunks into the corpus file beside `index`, for the next process."""
        corpus_file.save(corpus_file.path_of(index), self.corpus)

    def refresh(self, store: ChunkSource) -> IndexInMemory:
        """The same as it is now: this one if nothing changed, else another whose making costs what changed."""
        # The table of the store comes with the first index, and goes where the vectors become others.
        heavy = self.corpus.dims > 0 or self.corpus.identity is None
        again = self.light and self.corpus.generation != store.generation() and heavy == store.finds_nearest()
        corpus = Corpus.load_light(store) if again else self.corpus.refresh(store)
        lists = self.lists.refresh(store) if self.lists else None
        if corpus is self.corpus and lists is self.lists:
            return self
        dates = self.dates if corpus is self.corpus else Dates.of(corpus, self.dates)
        return IndexInMemory(corpus, dates, lists, self.light)
