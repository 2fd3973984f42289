"""An index in memory between queries: its chunks, the dates of its files, its postings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from memory_tui.search.corpus import Corpus, distinct
from memory_tui.search.formulas import Floats
from memory_tui.search.postings import PostingLists
from memory_tui.source.protocol import ChunkSource
from memory_tui.workspace import transcripts
from memory_tui.workspace.notes import NoteDate, note_date, note_date_2026_9, shown_day


@dataclass(frozen=True, slots=True)
class Dates:
    """What each file of a corpus is aged from, by both rules: epoch seconds (NaN: evergreen) and the basis."""

    openclaw: Floats
    openclaw_basis: Sequence[Literal["name", "mtime", "evergreen"]]
    shown: Floats
    shown_basis: Sequence[Literal["name", "mtime", "evergreen"]]
    newest: Floats
    """By the rule of OpenClaw 2026.9, by which transcripts age too."""
    newest_basis: Sequence[Literal["name", "mtime", "evergreen"]]
    days: Sequence[str]
    """The ISO day in each file's name, empty without one."""
    files: int
    """How many files have a chunk."""

    @classmethod
    def of(cls, corpus: Corpus) -> Dates:
        """The dates of every file of `corpus`; depends on names, sources and modification times alone.

        A transcript never ages in OpenClaw 2026.3, which looks for its file in the workspace, where there is none.
        """
        told = [name == transcripts.SOURCE for name in corpus.files.sources]
        theirs = [
            NoteDate(None, "evergreen") if is_told else note_date(path)
            for path, is_told in zip(corpus.files.paths, told, strict=True)
        ]
        shown = [None if is_told else shown_day(path) for path, is_told in zip(corpus.files.paths, told, strict=True)]
        times = corpus.files.mtimes
        newest = [
            NoteDate(None, "mtime") if is_told else note_date_2026_9(path)
            for path, is_told in zip(corpus.files.paths, told, strict=True)
        ]
        return cls(
            np.array(
                [
                    _midnight(d.day) if d.day else times[i] if d.basis == "mtime" else np.nan
                    for i, d in enumerate(theirs)
                ],
                dtype=np.float64,
            ),
            [d.basis for d in theirs],
            np.array(
                [_midnight(day) if day else times[i] if told[i] else np.nan for i, day in enumerate(shown)],
                dtype=np.float64,
            ),
            ["name" if day else "mtime" if told[i] else "evergreen" for i, day in enumerate(shown)],
            np.array(
                [
                    _midnight(d.day) if d.day else times[i] // 1e-3 / 1e3 if d.basis == "mtime" else np.nan
                    for i, d in enumerate(newest)
                ],
                dtype=np.float64,
            ),
            [d.basis for d in newest],
            [day.isoformat() if day else "" for day in shown],
            len(distinct(corpus.file_of)),
        )


def _midnight(day: dt.date) -> float:
    return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp()


@dataclass(frozen=True, slots=True)
class IndexInMemory:
    """What of an index stays in memory between queries, all of one generation.

    A command that asks `once` has no `lists`: it lets FTS5 weigh the matches, and need not read the chunks' lengths.
    """

    corpus: Corpus
    dates: Dates
    lists: PostingLists | None

    @classmethod
    def load(cls, store: ChunkSource, *, once: bool) -> IndexInMemory:
        """Read it all. Raises IndexUnavailable, Cancelled."""
        corpus = Corpus.load_once(store) if once else Corpus.load(store)
        return cls(corpus, Dates.of(corpus), None if once else PostingLists.of(store))

    def refresh(self, store: ChunkSource) -> IndexInMemory:
        """The same as it is now: this one if nothing changed, else another whose making costs what changed."""
        corpus, lists = self.corpus.refresh(store), self.lists.refresh(store) if self.lists else None
        if corpus is self.corpus and lists is self.lists:
            return self
        return IndexInMemory(corpus, self.dates if corpus is self.corpus else Dates.of(corpus), lists)
