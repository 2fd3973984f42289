"""Past questions are asked again. That tells why a line never came, and which lines none reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.errors import QueryError
from memory_tui.explain import why_never
from memory_tui.explain.counterfactuals import Saved
from memory_tui.explain.why_never import PastQuestion, UnreachedLines, WhyNever
from memory_tui.openclaw.prompt import GET, SEARCH
from memory_tui.profiles import OWN
from memory_tui.recalls import recall_log
from memory_tui.recalls.agent_turns import AgentTurn, SessionTurns
from memory_tui.recalls.recall_log import RecallEntry
from memory_tui.recalls.recalled_lines import citation
from memory_tui.tune import evaluate, judgments
from memory_tui.tune.judgments import Notebook

DAY_SECONDS = 86_400.0
MOST = 200
"""Questions that are asked again; the newest ones where more were logged."""
_LONGEST_SAID, _MOST_UNASKED = 400, 20
"""Characters of what a person said, beyond which it is no question; turns of a session that are looked up."""


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
    """Return the questions of the last `days` before `now` (epoch seconds), the newest first, after the saved ones.

    Raises IndexUnavailable, LabelError.
    """
    plan = engine.plan
    log = recall_log.read(recall_log.recall_log_path(plan.roots.workspace))
    entries = tuple(entry for entry in log.entries if now - days * DAY_SECONDS <= entry.at <= now + DAY_SECONDS)
    notebook = _notebook(engine)
    saved = [PastQuestion(query.text, "saved") for query in notebook.queries]
    texts = {question.text for question in saved}
    logged = [question for question in _logged(entries) if question.text not in texts]
    whole = [question for question in logged if not recall_log.is_partial(question.text)]
    questions = (*saved, *whole)[:most]
    return PastQuestions(days, entries, notebook, questions, len(saved) + len(logged) - len(questions))


def _notebook(engine: Engine) -> Notebook:
    """Return the saved queries, each judged line where it stands now."""
    plan = engine.plan
    notebook = judgments.load(judgments.notebook_path(plan.roots.workspace, plan.own_named))
    return judgments.settled(notebook, engine.notes.read)


def _logged(entries: tuple[RecallEntry, ...]) -> Iterator[PastQuestion]:
    """Yield each question of the log once, the newest first."""
    seen = set()
    for entry in reversed(entries):
        key = entry.query.strip(), entry.corpus
        if entry.tool == SEARCH and entry.query.strip() and key not in seen:
            seen.add(key)
            source = entry.corpus if entry.corpus in ("memory", "sessions") else ""
            yield PastQuestion(entry.query.strip(), "logged", source)


def with_known(engine: Engine, session: SessionTurns) -> SessionTurns:
    """Return `session` with what the memory knows for its newest turns without a question: where it is found alone.

    By words, so that nothing of a conversation goes to a provider. Raises IndexUnavailable, Cancelled.
    """
    settings = engine.plan.with_profile(OWN)

    def known(turn: AgentTurn) -> AgentTurn:
        if turn.recalls or not turn.said.strip() or len(turn.said) > _LONGEST_SAID:
            return turn
        try:
            trace, _ = engine.search.ranked(turn.said, settings, by_words=True)
        except QueryError:
            return turn
        is_known = trace.level is not None and trace.level.level == "found" and trace.recalled
        hit = trace.recalled[0] if is_known else None
        return (
            turn if hit is None else replace(turn, knew=citation(hit.chunk.path, hit.chunk.start_line, hit.last_line))
        )

    at = len(session.turns) - _MOST_UNASKED
    turns = (known(turn) if number >= at else turn for number, turn in enumerate(session.turns))
    return replace(session, turns=tuple(turns))


Progress = Callable[[int, int], None]


# --- why never -----------------------------------------------------------------------------------------------------


def never_of(
    engine: Engine, past: PastQuestions, path: str, line: int | None, progress: Progress | None = None
) -> WhyNever:
    """Return why a line of a note (None: any line) does not come, over `past` and questions out of its own words.

    Raises IndexUnavailable, QueryError, Cancelled.
    """
    further = _own_words(engine, path, line)
    questions = [*past.questions, *further]
    answers = []
    for done, question in enumerate(questions, 1):
        evidence = engine.search.gather(question.text, source=question.source)
        answers.append((question, engine.search.why(evidence, path, line)))
        if progress is not None:
            progress(done, len(questions))
    return why_never.why_never(path, line, answers, engine.plan.settings)


def _own_words(engine: Engine, path: str, line: int | None) -> list[PastQuestion]:
    """Return questions out of the words of the chunk that holds the line; of the first chunk of a note."""
    refs = engine.search.chunks_of(path)
    ref = next((chunk for chunk in refs if line is None or chunk.start_line <= line <= chunk.end_line), None)
    if ref is None:
        return []
    with engine.search.reader() as store:
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


def unreached(engine: Engine, past: PastQuestions) -> Unreached:
    """Return the indexed lines of notes that nothing which was logged delivered. Raises IndexUnavailable, Cancelled."""
    if not past.entries:
        # Nobody knows what was delivered.
        return Unreached(past.days, 0, 0, ())
    delivered: dict[str, set[int]] = defaultdict(set)
    for entry in past.entries:
        for hit in entry.hits:
            first, last = hit.lines
            delivered[hit.path].update(range(first, last + 1))
        if entry.tool == GET and entry.last_line:
            delivered[entry.query].update(range(entry.first_line, entry.last_line + 1))
    with engine.search.reader() as store, engine.search.state(store) as corpus:
        refs = list(corpus.refs)
        lines = why_never.unreached(refs, delivered)
        # Chunks count the empty line behind the last line end, which is none of the note.
        ends = {(ref.path, ref.end_line): ref.rowid for ref in refs}
        texts = store.texts([rowid for place in lines if (rowid := ends.get((place.path, place.last)))])
    blank = [texts.get(ends.get((place.path, place.last), 0), "").endswith("\n") for place in lines]
    lines = tuple(replace(place, last=place.last - end) for place, end in zip(lines, blank, strict=True))
    searches = sum(entry.tool == SEARCH for entry in past.entries)
    reads = sum(entry.tool == GET for entry in past.entries)
    return Unreached(past.days, searches, reads, tuple(place for place in lines if place.first <= place.last))


def saved_effect(engine: Engine) -> Saved | None:
    """What settings do to the saved questions of the workspace; None without any. Raises LabelError, QueryError."""
    book = _notebook(engine)
    if not book.judged:
        return None
    return evaluate.saved_effect(evaluate.collect(engine.search.gather, book), engine.plan.settings)
