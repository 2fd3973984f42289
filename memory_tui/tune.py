"""Tuning by evidence: saved queries with judgments, metrics over them, and a search of the knobs.

Judgments say which lines answer a saved query. One file keeps them all:
{"query", "relevant": [{"path", "line", "grade"}]}; grade 0 is a wrong hit, 1 helps, 2 answers. Files of other origin
are read too: "question" for the query, "evidence" or "labels" for the lines, or one label a line.
A document is a line of a note, `memory/a.md#L12`, blanks in its path written as %20.

An evaluation asks saved queries once, then measures them under any settings, or searches for better ones.
The search finds settings on one half of the judgments, then tests them on the other. More hits find more of anything,
so a gain only counts as far as it is greater than what the same change gains when the questions are judged by each
other's labels.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, reduce
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memory_tui import durable, locks
from memory_tui.config.places import own_path, private_name
from memory_tui.config.settings import BY_KEY, TUNE_KEYS, Scalar, Settings
from memory_tui.errors import IndexBusy, IndexUnavailable, LabelError, MemoryTuiError
from memory_tui.explain.counterfactuals import TEXT, Ask, spread, turned
from memory_tui.search.rank import Reranking, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.score import tuned
from memory_tui.search.trace import ChunkRef
from memory_tui.workspace.notes import Document

# --- saved queries with judgments ------------------------------------------------------------------------------------

WRONG, HELPS, ANSWERS = 0, 1, 2
"""Grades of a label."""


class Label(Struct, frozen=True):
    """A judgement of one line: `grade` 0 wrong, 1 helps, 2 answers.

    `answer` is a part of the line, by which it is found again after it moved; empty where it is not known.
    """

    path: str
    line: int
    grade: int = HELPS
    answer: str = ""


class Query(Struct, frozen=True):
    """A question that is kept, with its labels; `unanswerable` when the notes do not know, so that any hit is noise.

    `more` holds what else the file says of it.
    """

    text: str
    labels: tuple[Label, ...] = ()
    id: str = ""
    unanswerable: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def relevant(self) -> tuple[Label, ...]:
        """Return the lines that answer or help."""
        return tuple(label for label in self.labels if label.grade > WRONG)

    @property
    def judged(self) -> bool:
        """Return whether it can be measured: it has a right line, or is known to have none."""
        return bool(self.relevant) or self.unanswerable

    def grade(self, chunk: ChunkRef) -> int | None:
        """Return the best grade of a line in `chunk`, None when none is labelled."""
        lines = range(chunk.start_line, chunk.end_line + 1)
        grades = (label.grade for label in self.labels if label.path == chunk.path and label.line in lines)
        return max(grades, default=None)

    def mark(self, label: Label) -> Query:
        """Return a copy with this judgement, which replaces another of the same line."""
        labels = (*self.unmark(label.path, label.line).labels, label)
        return replace(self, labels=labels, unanswerable=self.unanswerable and label.grade == WRONG)

    def unmark(self, path: str, line: int) -> Query:
        """Return a copy without a judgement of that line."""
        return replace(self, labels=tuple(old for old in self.labels if (old.path, old.line) != (path, line)))


class Notebook(Struct, frozen=True):
    """All questions that are kept, in the order of the file."""

    queries: tuple[Query, ...] = ()

    def find(self, text: str) -> Query | None:
        """Return the question `text`, whatever blanks surround it."""
        return next((query for query in self.queries if query.text == text.strip()), None)

    def put(self, query: Query) -> Notebook:
        """Return a copy in which `query` stands in the place of the one with the same text, or at the end."""
        if self.find(query.text) is None:
            return Notebook((*self.queries, query))
        return Notebook(tuple(query if old.text == query.text else old for old in self.queries))

    def without(self, text: str) -> Notebook:
        """Return a copy that does not keep question `text`."""
        return Notebook(tuple(query for query in self.queries if query.text != text.strip()))

    @property
    def judged(self) -> tuple[Query, ...]:
        """Return the questions that can be measured."""
        return tuple(query for query in self.queries if query.judged)


def notebook_path(workspace: Path, config: Path | None = None) -> Path:
    """Return where the notebook of `workspace` lies: beside memory-tui's own configuration, one file a workspace.

    `config` is such a file that was named for this run; a notebook that lies in the usual place already stays there.
    """
    name = f"{private_name(workspace)}.jsonl"
    usual = own_path().parent / "labels" / name
    return usual if config is None or usual.exists() else config.parent / "labels" / name


def load(path: Path) -> Notebook:
    """Return the notebook at `path`, empty without a file. Raises LabelError with the number of a bad line."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Notebook()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8"
        raise LabelError(f"The labels in {path} cannot be read: {reason}.", "Check the file.") from error
    return parse(text, str(path))


def parse(text: str, name: str = "the labels") -> Notebook:
    """Return the notebook in `text`; labels of one question may stand on several lines. Raises LabelError."""
    notebook = Notebook()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            query = _query(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LabelError(
                f"{name}, line {number}, is no labelled query.",
                'Write {"query": "...", "relevant": [{"path": "MEMORY.md", "line": 1, "grade": 2}]}. '
                "Lines count from 1; grade 0 is wrong, 1 helps, 2 answers.",
            ) from error
        notebook = notebook.put(reduce(Query.mark, query.labels, notebook.find(query.text) or query))
    return notebook


def _query(fields: dict[str, Any]) -> Query:
    """Read one query with its labels, in any of the documented spellings. Raises ValueError, KeyError, TypeError."""
    text = next((fields.pop(name) for name in ("query", "question") if name in fields), None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(text)
    rows = next((fields.pop(name) for name in ("relevant", "labels", "evidence") if name in fields), None)
    # A file with one label a line has its members beside the question.
    alone = {name: fields.pop(name) for name in ("path", "line", "grade", "answer") if name in fields}
    if rows is None:
        rows = [alone] if "path" in alone else []
    labels = [
        Label(str(row["path"]), int(row["line"]), int(row.get("grade", HELPS)), str(row.get("answer", "")))
        for row in rows
    ]
    if any(label.grade < WRONG or label.line < 1 for label in labels):
        raise ValueError(labels)
    # What is left in `fields` now is kept as it is.
    name, unanswerable = str(fields.pop("id", "")), bool(fields.pop("unanswerable", False))
    return reduce(Query.mark, labels, Query(text.strip(), id=name, unanswerable=unanswerable, more=fields))


def _fields(query: Query) -> dict[str, Any]:
    """Return a query as a row of the file; what is empty is left out."""
    rows = map(asdict, query.labels)
    labels = [{name: value for name, value in row.items() if name != "answer" or value} for row in rows]
    unanswerable = {"unanswerable": True} if query.unanswerable else {}
    identity = {"id": query.id} if query.id else {}
    return {**identity, "query": query.text, "relevant": labels, **unanswerable, **query.more}


def save(path: Path, notebook: Notebook) -> None:
    """Write the notebook in one step, so that nobody ever reads half of it. Raises LabelError."""
    text = "".join(json.dumps(_fields(query), ensure_ascii=False) + "\n" for query in notebook.queries)
    with _writing(path):
        # In the place that a link leads to, because the file is the user's own.
        durable.replace_file(Path(os.path.realpath(path)), text.encode("utf-8", "replace"), None)


_EDITING = threading.Lock()


def edit(path: Path, read: Callable[[str], Document], changes: Iterable[Callable[[Notebook], Notebook]]) -> Notebook:
    """Apply `changes` to the notebook as it is on disk now, and write it; returns it with every label settled.

    `read` returns a note, by which labels are led to where their lines stand now. One edit at a time, in every process.
    Without a change nothing is written. Raises LabelError.
    """
    with _EDITING, _writing(path), locks.wait_for(path):
        before = load(path)
        edited = reduce(lambda notebook, change: change(notebook), changes, settled(before, read))
        if edited != before:
            save(path, edited)
        return edited


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make the folder of the notebook, and say what keeps it from being written. Raises LabelError."""
    try:
        durable.make_folder(path.parent, 0o777)
        yield
    except IndexBusy as error:
        raise LabelError(f"Another memory-tui is writing the labels in {path}.", "Try again in a moment.") from error
    except (OSError, IndexUnavailable) as error:
        reason = error.message if isinstance(error, IndexUnavailable) else f"{error.strerror or error}."
        step = "Check the folder and its permissions."
        raise LabelError(f"The labels cannot be written to {path}: {reason}", step) from error


def settled(notebook: Notebook, read: Callable[[str], Document]) -> Notebook:
    """Return `notebook` with every label where its answer stands in the notes now; `read` is the engine's.

    A label of a note that is gone stays as it is, and counts as not found.
    """

    @cache
    def lines(path: str) -> list[str]:
        """Return the lines of a note; none where it cannot be read."""
        try:
            return read(path).text.split("\n")
        except MemoryTuiError:
            return []

    def moved(label: Label) -> Label:
        """Return `label` on the line nearest to its own that holds its answer; as it is where none does."""
        if not label.answer:
            return label
        numbers = [number for number, line in enumerate(lines(label.path), 1) if label.answer in line]
        return replace(label, line=min(numbers, key=lambda number: abs(number - label.line), default=label.line))

    return Notebook(tuple(replace(query, labels=tuple(map(moved, query.labels))) for query in notebook.queries))


_BLANK = re.compile(r"\{[\w+-]+\}")


def absent(notebook: Notebook, read: Callable[[str], Document]) -> tuple[str, ...]:
    """Return the notes that labels name and that cannot be read, and the lines behind an end; `read` is the engine's.

    Raises LabelError for one with a blank to fill in, such as `memory/{date}.md`: nobody wrote that label for a note.
    """
    missing: list[str] = []
    places = sorted({(label.path, label.line) for query in notebook.queries for label in query.labels})
    for path, labels in groupby(places, lambda place: place[0]):
        try:
            text = read(path).text.removesuffix("\n")
            missing += [f"{path}:{line}" for _, line in labels if line > text.count("\n") + 1]
        except MemoryTuiError as error:
            if blank := _BLANK.search(path):
                step = f"Write the name of the note in the place of {blank[0]}."
                raise LabelError(f"The labels are a template: there is no note {path}.", step) from error
            missing.append(path)
    return tuple(missing)


# --- metrics over saved queries --------------------------------------------------------------------------------------

_SAME = 1e-9


class Case(Struct, frozen=True, dict=True):
    """A labelled question and what the index knows about it."""

    query: Query
    evidence: Evidence

    @cached_property
    def replay(self) -> Reranking:
        """Return its rankings, which have much in common."""
        return Reranking(self.evidence)

    def hits(self, settings: Settings) -> tuple[ChunkRef, ...]:
        """Return what is recalled under `settings`, in order."""
        (rows,) = self.replay.recalled([tuned(settings)])
        return tuple(self.evidence.refs[row] for row in rows)


def level_counts(cases: Sequence[Case], settings: Settings) -> dict[str, int] | None:
    """Return how often levels mislead: of the `answerable` queries so many are `doubted`, of others `trusted`.

    None under a profile that tells no level. No knob of the ranking changes them.
    """
    if not settings.profile.second_stage:
        return None
    levels = [(case.query, level.level) for case in cases if (level := rank(case.evidence, settings).level)]
    answerable = [level == "found" for query, level in levels if query.relevant]
    unanswerable = [level == "found" for query, level in levels if query.unanswerable]
    counts = {"doubted": answerable.count(False), "answerable": len(answerable)}
    return {**counts, "trusted": unanswerable.count(True), "unanswerable": len(unanswerable)}


class Measured(Struct, frozen=True):
    """One question's answer: its metrics and what was recalled."""

    query: Query
    scores: Scores
    hits: tuple[ChunkRef, ...]


Card = Mapping[str, Measured]
"""All questions measured under one set of settings: the answers by question."""


def collect(ask: Ask, notebook: Notebook, progress: Callable[[int, int], None]) -> tuple[Case, ...]:
    """Ask every question of `notebook` that can be measured; on a worker thread. Raises LabelError without any."""
    if not (queries := notebook.judged):
        raise LabelError("No query has a label.", "Mark hits as right or wrong first, or name a file of labels.")
    cases = []
    for done, query in enumerate(queries, 1):
        cases.append(Case(query, ask(query.text)))
        progress(done, len(queries))
    return tuple(cases)


def score(cases: Sequence[Case], settings: Settings) -> Card:
    """Return the metrics of `cases` under `settings`; about a millisecond a question."""
    answers = [(case.query, case.hits(settings)) for case in cases]
    return {query.text: Measured(query, measure(query, hits), hits) for query, hits in answers}


def missed(means: Scores, floors: Mapping[str, float]) -> dict[str, float]:
    """Return those of `floors` that their metrics miss (of noise and wrong: the ceilings that they exceed)."""
    # How far each is better than its floor; of noise and wrong less is better.
    over = {name: floor - means[name] if name in COSTS else means[name] - floor for name, floor in floors.items()}
    # A little below is floating point.
    return {name: floor for name, floor in floors.items() if over[name] < -_SAME}


DEPTHS = (1, 3, 6, 10, 20)
NAMES: tuple[str, ...] = (*(f"recall@{k}" for k in DEPTHS), "recall", "mrr@10", "ndcg@10", "noise", "wrong")
"""Every metric. `recall` counts all hits that are given, `noise` those of them that hold no right line, `wrong` those
marked wrong, all where the notes do not know; of these two less is better."""
COSTS = frozenset({"noise", "wrong"})
_CUT = 10

Scores = Mapping[str, float]


def measure(query: Query, hits: Sequence[ChunkRef]) -> Scores:
    """Return the metrics of one answer.

    A hit is right when it holds a line of a grade above 0. nDCG counts novelty: a hit gains the grades of the lines
    that no hit before it held, and the ideal has one line a rank. Without a right line (unanswerable) all but noise
    and wrong are 1 for an empty answer and 0 for any other.
    """
    grades = {(label.path, label.line): label.grade for label in query.relevant}
    # A hit without a labelled line (None) counts as one that holds no right line.
    noise = float(sum((query.grade(hit) or WRONG) == WRONG for hit in hits))
    wrong = noise if query.unanswerable else float(sum(query.grade(hit) == WRONG for hit in hits))
    if not grades:
        return {**dict.fromkeys(NAMES, 0.0 if hits else 1.0), "noise": noise, "wrong": wrong}
    seen: set[tuple[str, int]] = set()
    # The share of right lines that the first hits hold, by how many hits; 0 for no hit.
    recall_by_depth, first_right, gain = [0.0], 0, 0.0
    for place, hit in enumerate(hits, 1):
        held = {(path, line) for path, line in grades if path == hit.path and hit.start_line <= line <= hit.end_line}
        if held and not first_right:
            first_right = place
        if place <= _CUT:
            gain += sum(grades[line] for line in held - seen) / math.log2(place + 1)
        seen |= held
        recall_by_depth.append(len(seen) / len(grades))
    best = sorted(grades.values(), reverse=True)[:_CUT]
    ideal = sum(grade / math.log2(place + 1) for place, grade in enumerate(best, 1))
    return {
        **{f"recall@{depth}": recall_by_depth[min(depth, len(hits))] for depth in DEPTHS},
        "recall": recall_by_depth[-1],
        "mrr@10": 1 / first_right if 0 < first_right <= _CUT else 0.0,
        "ndcg@10": min(1.0, gain / ideal),
        "noise": noise,
        "wrong": wrong,
    }


def mean(scores: Sequence[Scores]) -> Scores:
    """Return each metric's mean over questions; empty without any."""
    return {name: sum(of_query[name] for of_query in scores) / len(scores) for name in NAMES} if scores else {}


def means(card: Card) -> Scores:
    """Return the mean of each metric over all answers of a scorecard."""
    return mean([row.scores for row in card.values()])


class Gain(Struct, frozen=True):
    """A mean difference per question, and the 95 % interval of it by resampling the questions."""

    mean: float
    low: float
    high: float


RESAMPLES = 2000


def gain(before: Sequence[float], after: Sequence[float], seed: int = 1) -> Gain:
    """Return how much better `after` is than `before`, question by question (paired bootstrap, percentiles)."""
    differences = np.array(after) - np.array(before)
    # RESAMPLES times as many questions as there are, drawn with repeats.
    picks = np.random.default_rng(seed).integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.percentile(differences[picks].mean(axis=1), [2.5, 97.5])
    return Gain(float(differences.mean()), float(low), float(high))


# --- a search of the knobs -------------------------------------------------------------------------------------------

METRIC = "ndcg@10"
"""What a search is to raise."""
FEWEST = 20
"""Fewest judged queries; with fewer the search claims nothing."""
ORIGIN = "tuned on labels"
_LEFT_ALONE = {"profile", TEXT, "query.maxResults", "query.hybrid.enabled"}
"""A choice of the user's (profile, budget), or turned by another knob."""
_ROUNDS = 4
"""How often all knobs are turned one after the other."""
_SHUFFLES = 5
"""Other questions by whose labels a question is judged, to tell chance from gain."""
_POINTS = 21
"""Values of a knob that are tried in each round."""

Reason = Literal["few labels", "nothing better", "within chance"]


class Better(Struct, frozen=True):
    """Settings that are better on held-out queries.

    `changes` are the knobs to turn; `held_out` is the gain there beyond chance, `before` and `after` the means.
    """

    changes: Mapping[str, Scalar]
    settings: Settings
    held_out: Gain
    before: Scores
    after: Scores


class NoEvidence(Struct, frozen=True):
    """Why nothing is recommended: of FEWEST labelled questions there are `have`, or the gain may be chance.

    `changes` and `held_out` are those of the best that was found, if anything was.
    """

    reason: Reason
    have: int
    changes: Mapping[str, Scalar] = {}
    held_out: Gain | None = None


Outcome = Better | NoEvidence


def better_settings(
    cases: Sequence[Case], settings: Settings, seed: int = 1, progress: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Return better settings than `settings` for the labelled `cases`, or that there is no evidence for any.

    `seed` decides which half is held out. Seconds of arithmetic: for a worker thread.
    """
    answerable = sum(bool(case.query.relevant) for case in cases)
    if answerable < FEWEST:
        return NoEvidence("few labels", answerable)
    # Where a question belongs depends on its text, so that a new label moves few of the others.
    ordered = sorted(cases, key=lambda case: hashlib.sha256(f"{seed}:{case.query.text}".encode()).digest())
    training, held_out = ordered[0::2], ordered[1::2]
    best = _search(training, settings, progress)
    if not (changes := difference(settings, best)):
        return NoEvidence("nothing better", answerable)
    gained = beyond_chance(held_out, settings, best, METRIC, seed)
    if gained.low <= 0:
        return NoEvidence("within chance", answerable, changes, gained)
    return Better(changes, best, gained, *_table(held_out, [settings, best]))


def difference(before: Settings, after: Settings) -> dict[str, Scalar]:
    """Return the knobs whose values differ, with those of `after`."""
    return {key: after.values[key].value for key in TUNE_KEYS if after.values[key].value != before.values[key].value}


def beyond_chance(cases: Sequence[Case], before: Settings, after: Settings, metric: str, seed: int) -> Gain:
    """Return the gain per question less what it gains by the labels of other questions, which only chance can help.

    What others lose by it, as they do where fewer hits come, is no gain.
    """
    baseline, reached = [], []
    for number, case in enumerate(cases):
        old, new = case.hits(before), case.hits(after)
        # From the next case on, round to the one before.
        others = (_foreign(other.query, case.query) for other in [*cases[number + 1 :], *cases[:number]])
        strangers = list(islice((query for query in others if query.labels), _SHUFFLES))
        gains = [measure(query, new)[metric] - measure(query, old)[metric] for query in strangers]
        # Added to what was before, so that only what goes beyond it counts as a gain.
        chance = sum(gains) / max(1, len(gains))
        baseline.append(measure(case.query, old)[metric] + max(0.0, chance))
        reached.append(measure(case.query, new)[metric])
    return gain(baseline, reached, seed)


def _foreign(other: Query, query: Query) -> Query:
    """Return `query` with the right lines of another question as its own, but for those that answer it as well."""
    mine = {(label.path, label.line) for label in query.relevant}
    return Query(query.text, tuple(label for label in other.relevant if (label.path, label.line) not in mine))


def _table(cases: Sequence[Case], chosen: Sequence[Settings]) -> list[Scores]:
    """Return the means over `cases` under each of `chosen`."""
    tried = [tuned(settings) for settings in chosen]
    by_case = []
    for case in cases:
        answers, refs = case.replay.recalled(tried), case.evidence.refs
        # Many settings give the same answer: each different one is measured once.
        scores_of = {rows: measure(case.query, [refs[row] for row in rows]) for rows in set(answers)}
        by_case.append([scores_of[rows] for rows in answers])
    return [mean(of_settings) for of_settings in zip(*by_case, strict=True)]


def _search(cases: Sequence[Case], base: Settings, progress: Callable[[str], None]) -> Settings:
    """Return the best settings on `cases`: knob after knob is turned to its best value, until a round changes nothing.

    Knobs that earn nothing are turned back to their values in `base` at the end.
    """
    reached: dict[tuple[Scalar, ...], float] = {}
    knobs = [BY_KEY[key] for key in TUNE_KEYS if key not in {*_LEFT_ALONE, *base.profile.ignores}]

    def best_of(chosen: Sequence[Settings]) -> Settings:
        """Return the best of `chosen`; the first where none is better."""
        keys = [tuple(tuned(settings).values()) for settings in chosen]
        # Settings that were tried before are not measured again.
        new = {key: settings for key, settings in zip(keys, chosen, strict=True) if key not in reached}
        for key, scores in zip(new, _table(cases, list(new.values())), strict=True):
            reached[key] = scores[METRIC]
        values = [reached[key] for key in keys]
        is_better = max(values) > values[0] + _SAME
        return chosen[values.index(max(values))] if is_better else chosen[0]

    best = base
    for _ in range(_ROUNDS):
        before = best
        for knob in knobs:
            progress(f"searching {knob.label}")
            now = best.values[knob.key].value
            nearest_first = sorted(spread(knob.key, now, _POINTS), key=lambda value: abs(float(value) - float(now)))
            best = best_of([best, *(best.update(turned({knob.key: value}), ORIGIN) for value in nearest_first)])
        if best is before:
            break
    for key in difference(base, best):
        if key != TEXT:
            # The old values of the knob and of the one that turns with it; 0 stands for any value, as keys alone count.
            back = {name: base.values[name].value for name in turned({key: 0})}
            # Of two that are as good `best_of` takes the first, so that a knob which earns nothing is turned back.
            best = best_of([best.update(back, ORIGIN), best])
    return best
