"""Judging hits: saved queries with their judgments, measured under the knobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.tui.workers import PostPart

if TYPE_CHECKING:
    from memory_tui.config.config_patch import Patch
    from memory_tui.engine.engine import Engine
    from memory_tui.search.trace import Candidate, ChunkRef, Trace
    from memory_tui.settings import Settings
    from memory_tui.tui.tuning import Tuning
    from memory_tui.tune.evaluate import Case, ScoreComparison
    from memory_tui.tune.judgments import Label, Notebook, Query
    from memory_tui.tune.knob_search import Outcome

REST = 0.08
"""Seconds that a cursor rests on a row before something is worked out for it."""


OFTEN = 0.15
"""Seconds between two parts of a long list."""


class JobProgress(Struct, frozen=True):
    """`done` of `total`, and what is being done."""

    what: str
    done: int = 0
    total: int = 0

    @property
    def words(self) -> str:
        """`asking saved queries 12 of 48`."""
        return f"{self.what} {self.done} of {self.total}" if self.total else self.what


SHORT = {"ndcg@10": "nDCG", "recall": "recall", "mrr@10": "MRR", "noise": "noise"}
"""The metrics that the screen shows, with their short names."""
ANSWER = 120
"""Characters of a marked line that are kept, so that it is found again when it moved."""


class Evaluation(Struct, frozen=True):
    """The notebook, the evidence of its questions by text, and the last comparison with the baseline; immutable."""

    notebook: Notebook | None = None
    cases: Mapping[str, Case] = field(default_factory=dict)
    compared: ScoreComparison | None = None
    progress: str = ""

    def query(self, text: str) -> Query | None:
        """The saved question `text`."""
        return self.notebook.find(text) if self.notebook is not None else None

    def grade(self, text: str, chunk: ChunkRef) -> int | None:
        """The label of a chunk for the question `text`; None without one."""
        reply = self.query(text)
        return reply.grade(chunk) if reply is not None else None

    @property
    def judged(self) -> tuple[Query, ...]:
        """The questions that can be measured."""
        return self.notebook.judged if self.notebook is not None else ()

    def labelled(self, notebook: Notebook) -> Evaluation:
        """The same with another notebook; evidence stays, labels are those of the notebook."""
        rest = {
            query.text: replace(self.cases[query.text], query=query)
            for query in notebook.judged
            if query.text in self.cases
        }
        return replace(self, notebook=notebook, cases=rest, compared=None)

    def missing(self, generation: int | None = None) -> tuple[Query, ...]:
        """The questions that have to be asked, again where the index is of another generation."""
        return tuple(
            query
            for query in self.judged
            if query.text not in self.cases
            or (generation is not None and self.cases[query.text].evidence.generation != generation)
        )


def words(compared: ScoreComparison, text: str = "") -> list[str]:
    """The metrics in sum, or of the question `text`: `nDCG .81 > .84`, `recall .75`; then what broke."""
    change = next((change for change in compared.changes if change.text == text), None) if text else None
    before, after = (change.before, change.after) if change else (compared.before, compared.after)
    parts = [
        f"{short} {_number(before[name])}"
        + (f" > {_number(after[name])}" if _number(before[name]) != _number(after[name]) else "")
        for name, short in SHORT.items()
        if name in after
    ]
    if not change:
        parts += [
            f"{len(reply)} {word}" for reply, word in ((compared.broke, "broke"), (compared.mended, "mended")) if reply
        ]
    return parts


def sides(parts: Sequence[str], baseline: str) -> str:
    """`, A > now` where one of `parts` shows a metric under the baseline and now; else nothing."""
    return f", {baseline} > now" if any(" > " in part for part in parts) else ""


def _number(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.2f}"


# --- what to mark --------------------------------------------------------------------------------------------------


def marked(candidate: Candidate, trace: Trace, text: str, grade: int) -> Label:
    """The label of a hit: the line that Why calls the best, else the one that holds most words of the question.

    Of lines that hold as many it is the one nearest to where the snippet begins.
    """
    from memory_tui.explain.words import MatchedWords
    from memory_tui.tune.judgments import Label

    lines = text.split("\n")
    start, words = candidate.snippet_line - candidate.chunk.start_line, MatchedWords(trace.plan, trace.profile)

    def merit(at: int) -> tuple[int, int]:
        return sum(n > 0 for n in words.counts(lines[at]).values()), -abs(at - start)

    usable = [at for at in range(len(lines)) if lines[at].strip()] or [0]
    second = candidate.second
    named = second.line - candidate.chunk.start_line if second is not None and second.measures else -1
    best = named if named in usable else max(usable, key=merit)
    return Label(
        candidate.chunk.path,
        min(candidate.chunk.end_line, candidate.chunk.start_line + best),
        grade,
        lines[best].strip()[:ANSWER],
    )


def vote(question: str, chunk: ChunkRef, label: Label | None) -> Callable[[Notebook], Notebook]:
    """Marks `chunk` with `label` for `question` in place of what was marked in it; takes marks back without one."""

    def change(notebook: Notebook) -> Notebook:
        from memory_tui.tune.judgments import Query

        query = notebook.find(question) or Query(question.strip())
        for old in query.labels:
            if old.path == chunk.path and chunk.start_line <= old.line <= chunk.end_line:
                query = query.unmark(old.path, old.line)
        return notebook.put(query.mark(label) if label is not None else query)

    return change


def keep(question: str, *, unanswerable: bool | None = None) -> Callable[[Notebook], Notebook]:
    """Saves `question`; `unanswerable` says that the notes do not know, or that they do after all."""

    def change(notebook: Notebook) -> Notebook:
        from memory_tui.tune.judgments import Query

        query = notebook.find(question) or Query(question.strip())
        return notebook.put(query if unanswerable is None else replace(query, unanswerable=unanswerable))

    return change


def forget(question: str) -> Callable[[Notebook], Notebook]:
    """Saves `question` no longer."""
    return lambda notebook: notebook.without(question)


# --- for worker threads --------------------------------------------------------------------------------------------


def edit_notebook(engine: Engine, pending: deque[Callable[[Notebook], Notebook]]) -> Notebook:
    """Read the notebook of the workspace, make the `pending` changes and save it; none of them is lost on failure.

    Returns the notebook. Raises LabelError.
    """
    from memory_tui.tune import judgments

    taken: list[Callable[[Notebook], Notebook]] = []

    def changes() -> Iterator[Callable[[Notebook], Notebook]]:
        # Taken while no other edit is under way: the newest returns what all before it wrote.
        while pending:
            taken.append(pending.popleft())
            yield taken[-1]

    path = judgments.notebook_path(engine.plan.roots.workspace, engine.plan.own_named)
    try:
        return judgments.edit(path, engine.notes.read, changes())
    except Exception:
        pending.extendleft(reversed(taken))
        raise


def collect(engine: Engine, queries: tuple[Query, ...]) -> Callable[[PostPart], dict[str, Case]]:
    """Asks `queries` and tells how far it is; returns what the index knows about each, by its text."""

    def run(post: PostPart) -> dict[str, Case]:
        from memory_tui.tune.evaluate import Case

        cases = {}
        for done, query in enumerate(queries):
            post(JobProgress("asking saved queries", done, len(queries)))
            cases[query.text] = Case.of(query, engine.search.gather(query.text))
        return cases

    return run


def dated_cases(cases: tuple[Case, ...], days: int) -> tuple[Case, ...]:
    """`cases` as they will be `days` from now."""
    from memory_tui.search.evidence import later
    from memory_tui.tune.evaluate import Case

    return tuple(Case.of(case.query, later(case.evidence, days)) for case in cases) if days else cases


def measure(cases: tuple[Case, ...], tuning: Tuning) -> Callable[[PostPart], ScoreComparison]:
    """Compares the knobs as they are now with the baseline, question by question."""

    def run(post: PostPart) -> ScoreComparison:
        from memory_tui.tune.evaluate import by_question, compare, score

        def card(settings: Settings, days: int) -> dict[str, Mapping[str, float]]:
            rows = {}
            for case in dated_cases(cases, days):
                post(None)
                rows.update(by_question(score((case,), settings)))
            return rows

        after = card(tuning.settings, tuning.days)
        before = card(tuning.baseline.settings, tuning.baseline.days) if tuning.compared else after
        return compare(before, after)

    return run


def search_knobs(
    engine: Engine, settings: Settings, queries: Sequence[Query], cases: Sequence[Case], metric: str
) -> Callable[[PostPart], Outcome]:
    """Asks the saved `queries` where `cases` lack them, then looks for better knobs; tells what it is doing."""

    def run(post: PostPart) -> Outcome:
        from memory_tui.tune import knob_search
        from memory_tui.tune.evaluate import Case

        seen = {case.query.text: case for case in cases}
        reply = []
        for done, query in enumerate(queries):
            post(JobProgress("asking saved queries", done, len(queries)))
            reply.append(seen.get(query.text) or Case.of(query, engine.search.gather(query.text)))
        return knob_search.tune(reply, settings, metric, progress=lambda words: post(JobProgress(words)))

    return run


def propose_write(engine: Engine, settings: Settings) -> Callable[[PostPart], Patch]:
    """What would make the knobs of the strip hold from now on, by the configuration as it is on disk now.

    Raises ConfigError.
    """

    def run(_tell: PostPart) -> Patch:
        from memory_tui import plan
        from memory_tui.config.config_patch import patch
        from memory_tui.settings import TUNE_KEYS, Settings

        choices = plan.choose(engine.plan.options)
        written = replace(choices, settings=settings).as_written()
        tuned = Settings({**written.values, **{key: settings.values[key] for key in TUNE_KEYS}})
        return patch(choices.config, tuned, written)

    return run
