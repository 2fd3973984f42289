"""Past questions are asked again. That tells why a line never came, which lines none reached, and what other settings
would do.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.errors import ProviderError, SettingError
from memory_tui.engine.queries import TOGETHER
from memory_tui.explain import why_never
from memory_tui.explain.reranking import Reranking, prepare
from memory_tui.explain.why_never import PastQuestion, UnreachedLines, WhyNever
from memory_tui.openclaw.prompt import GET, SEARCH
from memory_tui.recalls import recall_log
from memory_tui.search.evidence import later
from memory_tui.search.rank import can_rank
from memory_tui.search.trace import ChunkRef
from memory_tui.tune import judgments
from memory_tui.tune.evaluate import measure

if TYPE_CHECKING:
    from memory_tui.core.settings import Settings
    from memory_tui.engine.engine import Engine
    from memory_tui.explain.counterfactuals import Saved
    from memory_tui.recalls.recall_log import RecallEntry
    from memory_tui.run_options import Options
    from memory_tui.search.corpus import Corpus
    from memory_tui.search.evidence import Evidence
    from memory_tui.tune.judgments import Notebook, Query

DAY_SECONDS = 86_400.0
MOST = 200
"""Questions that are asked again; the newest ones where more were logged."""


class PastQuestions(Struct, frozen=True):
    """What was asked in the last `days`: `entries` of the log, saved ones, and of both each `questions` once.

    `left_out` questions are masked, too long to be kept whole, or more than are asked again.
    """

    days: int
    entries: tuple[RecallEntry, ...]
    notebook: Notebook
    questions: tuple[PastQuestion, ...]
    left_out: int


def past_questions(engine: Engine, now: float, days: int, most: int = MOST) -> PastQuestions:
    """The questions of the last `days` before `now` (epoch seconds), the newest first, after the saved ones.

    Raises IndexUnavailable, LabelError.
    """
    plan = engine.plan
    log = recall_log.read(recall_log.recall_log_path(plan.roots.workspace))
    entries = tuple(entry for entry in log.entries if now - days * DAY_SECONDS <= entry.at <= now + DAY_SECONDS)
    notebook = judgments.load(judgments.notebook_path(plan.roots.workspace, plan.own_named))
    notebook = judgments.settled(notebook, engine.notes.read)
    saved = [PastQuestion(query.text, "saved") for query in notebook.queries]
    known = {question.text for question in saved}
    logged = [one for one in _logged(entries) if one.text not in known]
    whole = [one for one in logged if not recall_log.is_partial(one.text)]
    asked = (*saved, *whole)[:most]
    return PastQuestions(days, entries, notebook, asked, len(saved) + len(logged) - len(asked))


def _logged(entries: tuple[RecallEntry, ...]) -> Iterator[PastQuestion]:
    """Each question of the log once, the newest first."""
    seen = set()
    for entry in reversed(entries):
        key = entry.query.strip(), entry.corpus
        if entry.tool == SEARCH and entry.query.strip() and key not in seen:
            seen.add(key)
            source = entry.corpus if entry.corpus in ("memory", "sessions") else ""
            yield PastQuestion(entry.query.strip(), "logged", source)


Progress = Callable[[int, int], None]


# --- why never -----------------------------------------------------------------------------------------------------


def never_of(
    engine: Engine, asked: PastQuestions, path: str, line: int | None, progress: Progress | None = None
) -> WhyNever:
    """Why a line of a note (None: any line) does not come, over `asked` and questions out of its own words.

    Raises IndexUnavailable, QueryError, Cancelled.
    """
    own = _own_words(engine, path, line)
    questions = [*asked.questions, *own]
    answers = []
    for done, question in enumerate(questions, 1):
        evidence = engine.queries.gather(question.text, source=question.source)
        answers.append((question, engine.queries.why(evidence, path, line)))
        if progress is not None:
            progress(done, len(questions))
    return why_never.why_never(path, line, answers, engine.plan.settings)


def _own_words(engine: Engine, path: str, line: int | None) -> list[PastQuestion]:
    """Questions out of the words of the chunk that holds the line; of the first chunk of a note."""
    refs = engine.queries.chunks_of(path)
    ref = next((one for one in refs if line is None or one.start_line <= line <= one.end_line), None)
    if ref is None:
        return []
    with engine.queries.reader() as store:
        text = store.texts([ref.rowid]).get(ref.rowid, "")
    lines = text.split("\n")
    at = (line or ref.start_line) - ref.start_line
    return why_never.own_questions(text, lines[at] if line is not None and at < len(lines) else "")


class Unreached(Struct, frozen=True):
    """The `lines` that none of the `questions` of the last `days` delivered, nor a read of their note."""

    days: int
    questions: int
    reads: int
    lines: tuple[UnreachedLines, ...]


def unreached(engine: Engine, asked: PastQuestions) -> Unreached:
    """The indexed lines of notes that nothing which was logged delivered. Raises IndexUnavailable, Cancelled."""
    if not asked.entries:
        # Nobody knows what was delivered.
        return Unreached(asked.days, 0, 0, ())
    delivered: dict[str, set[int]] = defaultdict(set)
    for entry in asked.entries:
        for hit in entry.hits:
            first, last = hit.lines
            delivered[hit.path].update(range(first, last + 1))
        if entry.tool == GET and entry.last_line:
            delivered[entry.query].update(range(entry.first_line, entry.last_line + 1))
    with engine.queries.reader() as store, engine.queries.state(store) as known:
        refs = _chunks(known.corpus)
        lines = why_never.unreached(refs, delivered)
        # Chunks count the empty line behind the last line end, which is none of the note.
        ends = {(ref.path, ref.end_line): ref.rowid for ref in refs}
        texts = store.texts([ends[one.path, one.last] for one in lines if (one.path, one.last) in ends])
    lines = tuple(
        one if not texts.get(ends.get((one.path, one.last), 0), "").endswith("\n") else replace(one, last=one.last - 1)
        for one in lines
    )
    searches = sum(entry.tool == SEARCH for entry in asked.entries)
    reads = sum(entry.tool == GET for entry in asked.entries)
    return Unreached(asked.days, searches, reads, tuple(one for one in lines if one.first <= one.last))


def _chunks(corpus: Corpus) -> list[ChunkRef]:
    """The lines of every chunk."""
    starts, ends, rowids = corpus.start_lines, corpus.end_lines, corpus.rowids
    return [
        ChunkRef(int(rowids[row]), "", corpus.path(row), "", int(starts[row]), int(ends[row]))
        for row in range(len(corpus))
    ]


def saved_effect(engine: Engine) -> Saved | None:
    """What settings do to the saved questions of the workspace; None without any. Raises LabelError, QueryError."""
    from memory_tui.tune import evaluate

    found = judgments.load(judgments.notebook_path(engine.plan.roots.workspace, engine.plan.own_named))
    if not found.judged:
        return None
    settled = judgments.settled(found, engine.notes.read)
    return evaluate.saved_effect(evaluate.collect(engine.queries.gather, settled), engine.plan.settings)


# --- under other settings ------------------------------------------------------------------------------------------

Outcome = Literal["mended", "broken", "moved", "unchanged"]


class Replayed(Struct, frozen=True):
    """One question before and after a change of settings: the hits that come, and those that go.

    Of a question with labels `right` are the right lines before and after: more is mended, fewer broken. Of another
    one mended is a first hit, broken the loss of all; of one that the notes do not answer it is the other way round.
    Else hits moved, or they are the same.
    """

    question: PastQuestion
    outcome: Outcome
    gained: tuple[ChunkRef, ...]
    lost: tuple[ChunkRef, ...]
    hits: tuple[int, int]
    right: tuple[int, int] | None


def replay_under(
    engine: Engine, asked: PastQuestions, after: Settings, days_ahead: float = 0, progress: Progress | None = None
) -> tuple[Replayed, ...]:
    """Each question under the settings of the plan and under `after`, as it will be `days_ahead`.

    Raises SettingError where the index is not cut for the profile of `after`, IndexUnavailable, QueryError, Cancelled.
    """
    found: list[Replayed] = []
    each = engine.queries.gather_each([(one.text, one.source) for one in asked.questions])
    while few := list(itertools.islice(each, TOGETHER)):
        ranked = _ranked_under(few, engine.plan.settings, after, days_ahead)
        for question, rows, evidence in zip(asked.questions[len(found) :], ranked, few, strict=False):
            hits = [tuple(evidence.refs[row] for row in own) for own in rows]
            found.append(_replayed(question, asked.notebook.find(question.text), hits[0], hits[1]))
            if progress is not None:
                progress(len(found), len(asked.questions))
    return tuple(found)


def _ranked_under(
    gathered: Sequence[Evidence], before: Settings, after: Settings, days_ahead: float
) -> Iterator[list[tuple[int, ...]]]:
    """For each of `gathered` what `before` recalls and what `after` recalls, as rows; all texts are read together."""
    name = after.word("profile")
    if not all(can_rank(evidence, name) for evidence in gathered):
        raise SettingError(
            f"This index is not cut as profile {name} cuts notes.", f"Open this memory with --profile {name}."
        )
    if not days_ahead:
        rankings = [Reranking(evidence) for evidence in gathered]
        prepare(rankings, [before, after])
        yield from (ranking.recalled_each([before, after]) for ranking in rankings)
        return
    now, then = ([Reranking(later(evidence, days)) for evidence in gathered] for days in (0.0, days_ahead))
    prepare(now, [before])
    prepare(then, [after])
    yield from ([one.recalled(before), other.recalled(after)] for one, other in zip(now, then, strict=True))


@contextmanager
def other_model(asked: Options, provider: str) -> Iterator[Engine]:
    """The same notes in an index of their own, which is thrown away, with the vectors of another provider.

    A provider elsewhere gets the notes only where it is approved. Raises ProviderError, IndexUnavailable.
    """
    import tempfile

    from memory_tui.engine.engine import Engine

    with tempfile.TemporaryDirectory(prefix="memory-tui-") as place:
        index = str(Path(place) / "index.sqlite")
        with Engine.open(replace(asked, provider=provider, index=index, once=False)) as other:
            other.indexer.sync(reason="cli")
            with other.queries.reader() as store:
                space = store.identity()
            if space is None or space.provider != provider:
                raise ProviderError(
                    f"There are no vectors of {provider} to try.",
                    "Approve and test it first: memory-tui index --dry-run, memory-tui status --deep.",
                )
            yield other


def replay_between(
    engine: Engine, other: Engine, asked: PastQuestions, progress: Progress | None = None
) -> tuple[Replayed, ...]:
    """Each question asked of the index of `engine` and of another one of the same notes, such as one with the vectors
    of another model. Raises IndexUnavailable, QueryError, Cancelled.
    """
    settings, found = engine.plan.settings, []
    texts = [(one.text, one.source) for one in asked.questions]
    both = zip(engine.queries.gather_each(texts), other.queries.gather_each(texts), strict=True)
    for done, (question, pair) in enumerate(zip(asked.questions, both, strict=True), 1):
        before, after = (
            # The numbers of rows mean nothing in another index.
            tuple(replace(own.refs[row], rowid=0) for row in Reranking(own).recalled(settings))
            for own in pair
        )
        found.append(_replayed(question, asked.notebook.find(question.text), before, after))
        if progress is not None:
            progress(done, len(asked.questions))
    return tuple(found)


def _replayed(
    question: PastQuestion, saved: Query | None, before: Sequence[ChunkRef], after: Sequence[ChunkRef]
) -> Replayed:
    gained = tuple(ref for ref in after if ref not in before)
    lost = tuple(ref for ref in before if ref not in after)
    outcome, right = outcome_of(saved, before, after)
    if outcome == "unchanged" and (gained or lost):
        outcome = "moved"
    return Replayed(question, outcome, gained, lost, (len(before), len(after)), right)


def outcome_of(
    saved: Query | None, before: Sequence[ChunkRef], after: Sequence[ChunkRef]
) -> tuple[Outcome, tuple[int, int] | None]:
    """Whether a question is mended, broken, or neither ("unchanged"), and its right lines before and after."""
    right: tuple[int, int] | None = None
    gain = bool(after) - bool(before)
    if saved is not None and saved.relevant:
        count = len({(label.path, label.line) for label in saved.relevant})
        right = (round(measure(saved, before)["recall"] * count), round(measure(saved, after)["recall"] * count))
        gain = right[1] - right[0]
    elif saved is not None and saved.unanswerable:
        gain = -gain
    return ("mended" if gain > 0 else "broken" if gain < 0 else "unchanged"), right
