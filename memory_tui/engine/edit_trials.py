"""Edit trials: questions are asked of a copy of the index in which notes are changed, before anybody changes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.curate import note_edits
from memory_tui.curate.changes import Change
from memory_tui.curate.note_edits import EditedLine, NoteEdit, NoteLine
from memory_tui.engine.past_questions import Outcome, Replayed, outcome_of
from memory_tui.engine.provider_setup import embeds_here
from memory_tui.explain.reranking import Reranking
from memory_tui.explain.why_never import PastQuestion
from memory_tui.explain.why_not import side_of
from memory_tui.index.rebuild import trial
from memory_tui.search.retrieve import Asked, SearchContext, gather, reading_later

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.curate.curator import Curator
    from memory_tui.engine.engine import Engine
    from memory_tui.engine.past_questions import PastQuestions, Progress
    from memory_tui.explain.why_not import WhyNot
    from memory_tui.index.store import Store
    from memory_tui.search.index_in_memory import IndexInMemory
    from memory_tui.search.trace import ChunkRef
    from memory_tui.tune.judgments import Notebook

WANTED, MOST_OTHERS = 3, 60
"""Edits that are given, and other questions that each of them is measured on."""

Hits = tuple["ChunkRef", ...]


class EditRemedy(Struct, frozen=True):
    """An edit after which a line is recalled for the question that was asked, as number `place`.

    Of the `lost` questions of the line that lose it now it is recalled for `mended`. `comes_in` and `drops_out` are the
    other hits of the question that was asked that come and go. Of `asked` other questions `broken` lose a right line,
    or their only hits, and `moved` have other hits. `without_vector` new texts were judged by their words alone.
    A pair of edits is given where none of the edits `alone` gets the line recalled.
    """

    edit: NoteEdit
    place: int
    mended: tuple[str, ...]
    lost: int
    comes_in: Hits
    drops_out: Hits
    asked: int
    broken: tuple[str, ...]
    moved: int
    without_vector: int
    alone: tuple[NoteEdit, ...] = ()


class NoEdit(Struct, frozen=True):
    """None of the edits `tried`, pairs among them, gets the line recalled for the question that was asked."""

    tried: tuple[NoteEdit, ...]


class EditsFound(Struct, frozen=True):
    """The edits that get a line recalled, smallest first; else which were tried."""

    found: tuple[EditRemedy, ...]
    none: NoEdit | None = None

    @property
    def claims(self) -> tuple[EditRemedy | NoEdit, ...]:
        """Everything that is said."""
        return (*self.found, *([self.none] if self.none else []))


class _Trials:
    """One state of an index, in which questions are asked before and after changes of notes.

    Before each of them `ask_on` is called, which raises Cancelled where nobody waits any more.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        known: IndexInMemory,
        questions: Sequence[PastQuestion],
        now: float,
        ask_on: Callable[[], object] = lambda: None,
    ) -> None:
        self._ask_on = ask_on
        self._engine, self._store, self._known, self._questions, self._now = engine, store, known, questions, now
        identity = store.identity()
        provider = engine.providers.chain.of_space(identity) if identity is not None else None
        # A text that is not saved is sent to nobody.
        self._writing = provider if identity is not None and embeds_here(identity) else None
        self._asked = self._embedded()

    def _embedded(self) -> list[Asked]:
        queries, identity = self._engine.queries, self._known.corpus.identity
        found = []
        for one in self._questions:
            self._ask_on()
            found.append(queries.embedded(one.text, identity, by_words=False))
        return found

    def before(self, which: Sequence[int], settings: Settings) -> list[Hits]:
        """The hits of each of the questions as the notes are."""
        return self._hits(self._store, self._known, which, settings)

    @contextmanager
    def after(self, change: Change) -> Iterator[tuple[Callable[[Sequence[int], Settings], list[Hits]], int]]:
        """The hits of questions as they would be after `change`, and how many new texts have no vector."""
        with trial(self._store) as copy:
            missing = copy.put({file.path: file.after for file in change.files}, self._writing)
            # Lists of postings are of one state of the index; the copy's own full-text index answers instead.
            known = replace(self._known, lists=None).refresh(copy.source)
            yield lambda which, settings: self._hits(copy.source, known, which, settings), missing

    def _hits(self, store: Store, known: IndexInMemory, which: Sequence[int], settings: Settings) -> list[Hits]:
        plan = self._engine.plan
        context = SearchContext(
            store,
            known.corpus,
            known.dates,
            None,
            projects=plan.projects,
            lists=known.lists,
            reads_time=plan.settings.on("questionTime.enabled"),
            spells=plan.settings.on("spelling.enabled"),
            zone=plan.config.time_zone,
        )
        found = []
        for at in which:
            self._ask_on()
            question = self._questions[at]
            evidence = gather(question.text, reading_later(context), self._now, question.source, self._asked[at])
            found.append(tuple(evidence.refs[row] for row in Reranking(evidence).recalled(settings)))
        return found


def remedies(
    engine: Engine, answer: WhyNot, asked: PastQuestions | None, progress: Progress | None = None
) -> EditsFound | None:
    """The smallest edits of the note that get the line of `answer` recalled, or the smallest pair where none does.

    None for a line that needs none, or that has no note to edit. `asked` are the other questions that the edits are
    measured on.

    Raises IndexUnavailable, EditRefused, ProviderError, QueryError, Cancelled.
    """
    line, path = answer.place.line, answer.place.path
    if answer.recalled or line is None or answer.best is None:
        return None
    curator = engine.notes.curator
    data = curator.read(path)
    if data is None:
        return None
    wanted = EditedLine(path, data, line, _asked_words(answer), _day(answer))
    tried = note_edits.candidates(wanted, curator.read)
    if not tried:
        return None
    own, others = _questions(answer, asked)
    with engine.queries.reader() as store, engine.queries.state(store) as known:
        done = 0

        def ask_on() -> None:
            if progress is not None:
                progress(done, len(tried))

        trials = _Trials(engine, store, known, [*own, *others], answer.evidence.now, ask_on)
        notebook = asked.notebook if asked else None
        search = _Search(trials, answer.trace.settings, own, others, notebook, wanted, curator)

        def counted(edits: Sequence[NoteEdit]) -> Iterator[NoteEdit]:
            nonlocal done
            for edit in edits:
                done += 1
                yield edit
                ask_on()

        found = sorted(search.recalled_by(counted(tried), WANTED), key=lambda one: one.edit.size)
        if not found:
            single, two = tuple(tried), note_edits.pairs(wanted, curator.read)
            tried += two
            found = [
                replace(one, alone=single if one.edit.first else ()) for one in search.recalled_by(counted(two), 1)
            ]
    return EditsFound(tuple(found), None if found else NoEdit(tuple(tried)))


def _asked_words(answer: WhyNot) -> tuple[str, ...]:
    """The words that were searched or are too common for it, those that were corrected as they were asked."""
    plan = side_of(answer.evidence, answer.trace.settings).plan
    asked = {word: one.asked for one in plan.corrections if not one.also for word in one.searched}
    return tuple(dict.fromkeys(asked.get(word, word) for word in (*plan.words, *plan.common)))


def _day(answer: WhyNot) -> dt.date | None:
    """The one day that the question names."""
    try:
        return dt.date.fromisoformat(side_of(answer.evidence, answer.trace.settings).plan.time)
    except ValueError:
        return None


def _questions(answer: WhyNot, asked: PastQuestions | None) -> tuple[list[PastQuestion], list[PastQuestion]]:
    """The questions of the line, the one that was asked first, and others."""
    own = [PastQuestion(answer.evidence.query, "logged", answer.evidence.source)]
    if asked is None:
        return own, []
    place = answer.place.path, answer.place.line
    right = {
        query.text
        for query in asked.notebook.queries
        if any((label.path, label.line) == place for label in query.relevant)
    }
    rest = [one for one in asked.questions if one.text != own[0].text]
    own += [one for one in rest if one.text in right]
    return own, [one for one in rest if one.text not in right][:MOST_OTHERS]


class _Search:
    """What the questions get now, and what an edit makes of that."""

    def __init__(
        self,
        trials: _Trials,
        settings: Settings,
        own: Sequence[PastQuestion],
        others: Sequence[PastQuestion],
        notebook: Notebook | None,
        wanted: EditedLine,
        curator: Curator,
    ) -> None:
        self.trials, self.settings, self.notebook = trials, settings, notebook
        self.wanted, self.curator = wanted, curator
        self.questions = [*own, *others]
        self.own, self.others = range(len(own)), range(len(own), len(self.questions))

    @cached_property
    def before(self) -> list[Hits]:
        """The hits of each question as the notes are, asked once an edit gets the line recalled."""
        return self.trials.before(range(len(self.own) + len(self.others)), self.settings)

    def recalled_by(self, edits: Iterable[NoteEdit], most: int) -> Iterator[EditRemedy]:
        """What the first `most` of `edits` do after which the line is recalled, each with the words it needs alone."""
        given: list[NoteEdit] = []
        for edit in edits:
            # Where few words do, more of them are no remedy.
            if any(note_edits.is_part(one, edit) for one in given):
                continue
            if (remedy := self.tried(edit)) is not None:
                remedy = self.smallest(remedy)
                given.append(remedy.edit)
                yield remedy
            if len(given) == most:
                return

    def smallest(self, remedy: EditRemedy) -> EditRemedy:
        """`remedy`, or what does with some of its words, none of which can go."""
        tries = map(self.tried, note_edits.with_fewer_words(self.wanted, remedy.edit, self.curator.read))
        less = next(filter(None, tries), None)
        return remedy if less is None else self.smallest(less)

    def tried(self, edit: NoteEdit) -> EditRemedy | None:
        """What `edit` does; None where the line is not recalled after it."""
        edit = replace(edit, change=self.curator.plan.with_trust(edit.change))
        was, origin = edit.was, note_edits.origins(edit.change, edit)
        with self.trials.after(edit.change) as (ask, missing):
            after = ask(self.own, self.settings)
            places = [_place(hits, edit.path, edit.line) for hits in after]
            if not places[0]:
                return None
            after += ask(self.others, self.settings)
        changed = set(edit.change.paths)
        lost = [at for at in self.own if not _place(self.before[at], *was)]
        replays = [
            replayed_edited(self.questions[at], self.notebook, self.before[at], after[at], origin, changed)
            for at in self.others
        ]
        asked = replayed_edited(self.questions[0], None, self.before[0], after[0], origin, changed)
        return EditRemedy(
            edit,
            places[0],
            tuple(self.questions[at].text for at in lost if places[at]),
            len(lost),
            tuple(ref for ref in asked.gained if not _holds(ref, *was)),
            tuple(ref for ref in asked.lost if not _holds(ref, *was)),
            len(replays),
            tuple(one.question.text for one in replays if one.outcome == "broken"),
            sum(one.outcome != "unchanged" for one in replays),
            missing,
        )


def _holds(ref: ChunkRef, path: str, line: int) -> bool:
    return ref.path == path and ref.start_line <= line <= ref.end_line


def _place(hits: Hits, path: str, line: int) -> int:
    """The place of the first hit that holds a line, 0 without one."""
    return next((place for place, ref in enumerate(hits, 1) if _holds(ref, path, line)), 0)


def replayed_edited(
    question: PastQuestion,
    notebook: Notebook | None,
    before: Hits,
    after: Hits,
    origin: dict[NoteLine, NoteLine],
    changed: set[str],
) -> Replayed:
    """A question before and after a change of the notes `changed`; lines count by where they stood before it."""
    moved = tuple(_moved_back(ref, origin) if ref.path in changed else ref for ref in after)
    gained = tuple(ref for ref in moved if not any(_same(ref, one, changed) for one in before))
    lost = tuple(ref for ref in before if not any(_same(ref, one, changed) for one in moved))
    outcome: Outcome
    outcome, right = outcome_of(notebook.find(question.text) if notebook else None, before, moved)
    if outcome == "unchanged" and (gained or lost):
        outcome = "moved"
    return Replayed(question, outcome, gained, lost, (len(before), len(after)), right)


def _moved_back(ref: ChunkRef, origin: dict[NoteLine, NoteLine]) -> ChunkRef:
    """A chunk of a changed note by where its lines stood before; one of new lines alone stays where it is."""
    stood = [origin[ref.path, line] for line in range(ref.start_line, ref.end_line + 1) if (ref.path, line) in origin]
    if not stood:
        return ref
    paths = [path for path, _ in stood]
    path = max(dict.fromkeys(paths), key=paths.count)
    lines = [line for own, line in stood if own == path]
    return replace(ref, path=path, start_line=min(lines), end_line=max(lines))


def _same(one: ChunkRef, other: ChunkRef, changed: set[str]) -> bool:
    """Whether two hits are the same: by their lines, in a changed note by any line that they share."""
    if one.path != other.path:
        return False
    if one.path in changed:
        return one.start_line <= other.end_line and other.start_line <= one.end_line
    return (one.start_line, one.end_line, one.id) == (other.start_line, other.end_line, other.id)


def replay_edited(
    engine: Engine, asked: PastQuestions, change: Change, now: float, progress: Progress | None = None
) -> tuple[Replayed, ...]:
    """Each past question as the notes are and as it would be after `change`, under the settings of the plan.

    Raises IndexUnavailable, ProviderError, QueryError, Cancelled.
    """
    settings, origin, changed = engine.plan.settings, note_edits.origins(change), set(change.paths)
    found = []
    with engine.queries.reader() as store, engine.queries.state(store) as known:
        trials = _Trials(engine, store, known, asked.questions, now)
        before = trials.before(range(len(asked.questions)), settings)
        with trials.after(change) as (ask, _):
            for at, question in enumerate(asked.questions):
                (after,) = ask([at], settings)
                found.append(replayed_edited(question, asked.notebook, before[at], after, origin, changed))
                if progress is not None:
                    progress(at + 1, len(asked.questions))
    return tuple(found)


def replay_with_texts(
    engine: Engine, asked: PastQuestions, texts: Mapping[str, str], now: float
) -> tuple[Replayed, ...]:
    """Each past question as the notes are and as it would be with other texts of some, by their paths.

    Raises PathRefused, EditRefused, and what `replay_edited` raises.
    """
    curator = engine.notes.curator
    edits = [curator.plan.edit(path, curator.read(path), text) for path, text in texts.items()]
    files = tuple(file for edit in edits for file in edit.files)
    return replay_edited(engine, asked, Change("edit", "Try other texts", files), now)
