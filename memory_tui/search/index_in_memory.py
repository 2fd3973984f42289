"""An index in memory between queries. It has chunks and the dates of its files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import Struct, field

from memory_tui.core.spelling import Vocabulary
from memory_tui.index.store import Store
from memory_tui.search.corpus import Corpus, Files, Integers, distinct
from memory_tui.search.evidence import DAY_SECONDS, Basis
from memory_tui.search.formulas import Floats
from memory_tui.workspace import transcripts
from memory_tui.workspace.notes import NoteDate, note_date, note_date_2026_9, shown_day

_EPOCH = dt.date(1970, 1, 1).toordinal()

Rule = Callable[[str], NoteDate]


def _shown(path: str) -> NoteDate:
    day = shown_day(path)
    return NoteDate(day, "name" if day else "evergreen")


class NameDates:
    """What the names of files say of their dates by one rule, each read when it is first asked for."""

    def __init__(self, files: Files, rule: Rule, told: NoteDate) -> None:
        self._files, self._rule, self._told = files, rule, told
        self._known: dict[int, NoteDate] = {}

    def of(self, file: int) -> NoteDate:
        """The date of one file; that of a transcript is the same for each."""
        found = self._known.get(file)
        if found is None:
            is_told = self._files.sources[file] == transcripts.SOURCE
            found = self._known[file] = self._told if is_told else self._rule(self._files.paths[file])
        return found

    def followed(self, files: Files) -> NameDates:
        """The same of `files`, which are those before and more."""
        other = NameDates(files, self._rule, self._told)
        other._known = dict(self._known)
        return other


class AgedFrom:
    """What each file is aged from by one rule, as far as anybody asked: the day in its name, else when it was changed.

    May be used by several threads at once: each works out the same.
    """

    def __init__(self, names: NameDates, mtimes: Floats) -> None:
        self.names, self._mtimes = names, mtimes
        self._seconds = np.full(len(mtimes), np.nan)
        self._known = np.zeros(len(mtimes), np.bool_)

    def seconds(self, files: Integers) -> Floats:
        """Epoch seconds, NaN for evergreen ones."""
        for file in files[~self._known[files]].tolist():
            date = self.names.of(file)
            if date.day is not None:
                self._seconds[file] = (date.day.toordinal() - _EPOCH) * DAY_SECONDS
            elif date.basis == "mtime":
                self._seconds[file] = self._mtimes[file]
            self._known[file] = True
        found: Floats = self._seconds[files]
        return found

    def basis(self, file: int) -> Basis:
        """What a file is aged by."""
        return self.names.of(file).basis


class Dates(Struct, frozen=True):
    """What each file of a corpus is aged from, by each rule."""

    openclaw: AgedFrom
    """By that of OpenClaw 2026.3."""
    shown: AgedFrom
    newest: AgedFrom
    """By that of OpenClaw 2026.9, by which transcripts age too."""
    files: int
    """How many files have a chunk."""
    paths: Sequence[str]

    @classmethod
    def of(cls, corpus: Corpus, before: Dates | None = None) -> Dates:
        """The dates of every file of `corpus`; depends on names, sources and modification times alone.

        Names that `before` knows already, of an earlier state of the corpus, are not read again.
        """
        paths, mtimes = corpus.files.paths, corpus.files.mtimes
        if before is not None and before.paths == paths[: len(before.paths)]:
            names = [one.names.followed(corpus.files) for one in (before.openclaw, before.shown, before.newest)]
        else:
            # A transcript never ages in OpenClaw 2026.3, which looks for its file in the workspace, where none is.
            names = [
                NameDates(corpus.files, note_date, NoteDate(None, "evergreen")),
                NameDates(corpus.files, _shown, NoteDate(None, "mtime")),
                NameDates(corpus.files, note_date_2026_9, NoteDate(None, "mtime")),
            ]
        openclaw, shown, newest = names
        return cls(
            AgedFrom(openclaw, mtimes),
            AgedFrom(shown, mtimes),
            AgedFrom(newest, corpus.files.mtimes_ms / 1e3),
            len(distinct(corpus.file_of)),
            paths,
        )

    def days(self) -> Iterator[tuple[int, dt.date]]:
        """The files that carry a day in their name, with it."""
        for file in range(len(self.paths)):
            if day := self.shown.names.of(file).day:
                yield file, day


class IndexInMemory(Struct, frozen=True):
    """What of an index stays in memory between queries, all of one generation."""

    corpus: Corpus
    dates: Dates
    vocabularies: dict[int, Vocabulary] = field(default_factory=dict)
    """The words of the index by its generation, where a query needed them."""

    @classmethod
    def load(cls, store: Store, *, once: bool) -> IndexInMemory:
        """Read it all. Raises IndexUnavailable, Cancelled."""
        corpus = Corpus.load(store, vectors=not (once and store.finds_nearest()))
        return cls(corpus, Dates.of(corpus))

    def refresh(self, store: Store) -> IndexInMemory:
        """The same as it is now: this one if nothing changed, else another whose making costs what changed."""
        corpus = self.corpus.refresh(store)
        if corpus is self.corpus:
            return self
        return IndexInMemory(corpus, Dates.of(corpus, self.dates))
