"""Retrieval turns a query into evidence: all that the index knows about it, before any profile or knob applies."""

from __future__ import annotations

import datetime as dt
import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import jsstring, tokens
from memory_tui.config.settings import Settings
from memory_tui.errors import ProviderError, QueryError
from memory_tui.index.store import Store
from memory_tui.index.sync import FileState
from memory_tui.providers import Identity, Provider, Vectors
from memory_tui.providers.builtin import static_table
from memory_tui.providers.chain import ServingProvider
from memory_tui.search import lexical_2026_9
from memory_tui.search.corpus import Chunks, Corpus, Files, cosines, distinct, exact_cosines, products, vectors_of
from memory_tui.search.keyword import ALIKE, Join, KeywordSide, Matcher, lucene_idf
from memory_tui.search.lexical_2026_9 import Lexical
from memory_tui.search.question import ParsedQuery, Time, parse
from memory_tui.search.second_stage import CANDIDATES
from memory_tui.search.trace import Floats, NearestBy, Rows
from memory_tui.sentences import Notice, notice
from memory_tui.tokens import only_asks, word_stems
from memory_tui.workspace.chunking import AT_ENTRIES
from memory_tui.workspace.notes import span

MAX_QUERY = 50_000
"""Characters of the longest query."""
MOST_CANDIDATES = 200
"""Candidates of a side at most (OpenClaw manager)."""
_ROUNDING = 1e-6
"""More than single precision loses in a cosine."""


def candidate_limit(max_results: int, multiplier: int, fewest: int) -> int:
    """Return candidates per side: min(200, max(1, results x multiplier)) (OpenClaw manager), but at least `fewest`."""
    return min(MOST_CANDIDATES, max(1, max_results * multiplier, fewest))


class Question(Struct, frozen=True):
    """A query, its `text` without blanks around it, and its vector in the space `identity`, or why it has none.

    `pointless` tells that there is a vector side, and a vector that points nowhere. `seconds` is what embedding took.
    Where it is read, words that name a time are not searched for (`reads_time`), words that no note holds are corrected
    (`spells`), and a query that asks several things is taken apart (`in_parts`). Days begin in `zone`, None for this
    machine's. Of each side `most` candidates are ranked, by the profiles that ask in the way `join`, empty for all.
    """

    query: str
    text: str
    identity: Identity | None
    vector: Vectors | None = None
    pointless: bool = False
    notices: tuple[Notice, ...] = ()
    seconds: float = 0.0
    language: str = ""
    """Its language, or its script, where the table that made the vectors hardly knows it."""
    known_share: float = 1.0
    """How much of such a question the table knows."""
    reads_time: bool = True
    spells: bool = True
    in_parts: bool = True
    zone: dt.tzinfo | None = None
    most: int = MOST_CANDIDATES
    join: Join = ""

    def ranked_by(self, settings: Settings) -> Question:
        """Return the question for an answer that `settings` alone rank."""
        profile, whole = settings.profile, settings.whole
        results, multiplier = whole("query.maxResults"), whole("query.hybrid.candidateMultiplier")
        # OpenClaw 2026.9 never recalls some chunks: to name those, all candidates are needed.
        limit = candidate_limit(results, multiplier, profile.fewest_candidates)
        return replace(self, most=MOST_CANDIDATES if profile.exact_paths else limit, join=profile.join)


def embed(query: str, identity: Identity | None, provider: Provider | None) -> Question:
    """Return the query with its vector in the space of an index, or with a notice of why there is none; takes seconds.

    Raises QueryError for a query that is too long.
    """
    if len(query) > MAX_QUERY:
        cause = f"The query has {len(query):,} characters; at most {MAX_QUERY:,} are searched."
        raise QueryError(cause, "Ask in fewer words.")
    began = time.perf_counter()
    text = query.strip(jsstring.WHITESPACE)
    if identity is None or provider is None or not text:
        return Question(query, text, identity)
    vector, notices = None, tuple[Notice, ...]()
    try:
        # Some providers tell their model only with an answer, so it is compared before and after one request.
        expected = provider.expected(identity)
        if expected == identity:
            vector = provider.embed([text], "query")[0]
            expected = provider.expected(identity)
        if expected != identity:
            vector = None
            built, used = (f"{item.provider} {item.model}" for item in (identity, expected))
            notices = (notice("other_model", made_with=built, asked_with=used),)
    except ProviderError as error:
        vector = None
        notices = (notice("meaning_off", cause=error.message, remedy=error.next_step),)
    # A query without any known token points nowhere; the original skips its vector side as well.
    pointless = vector is not None and not vector.any()
    language, known = _hardly_known(text) if vector is not None and identity.provider == "builtin" else ("", 1.0)
    vector, known = (None, 0.0) if pointless else (vector, known)
    seconds = time.perf_counter() - began
    return Question(query, text, identity, vector, pointless, notices, seconds, language, known)


class Closest(Struct, frozen=True):
    """How near the notes are by a language model: of each row the `cosine` of the nearest window, or of the chunk where
    its windows have no vectors; NaN without any. `median` and `best` are of all rows.

    A model's cosines lie close together, so that only what is above the median tells notes apart.
    """

    cosine: Floats
    median: float
    best: float


class Evidence(Struct, frozen=True):
    """One query's findings. `row` means a position in the index as it was at `generation`.

    `cosine` gives a value per row, NaN without a vector, and is None when there is no vector side at all; `nearest`
    holds the 200 best rows by cosine, or those that the settings rank which it was gathered for. `texts` has, by rowid,
    every chunk that any setting can make a candidate, or reads it. `keywords` is there when nothing has a cosine.
    """

    question: Question
    now: float
    generation: int
    provider: str
    model: str
    refs: Chunks
    """Where every row stands."""
    files: int
    cosine: Floats | None
    embedded: int
    """How many chunks have a vector."""
    nearest: Rows
    shown: Rows
    """For each row the one that our own profile shows in its place: itself, where it says what no other says."""
    openclaw: KeywordSide
    recommended: KeywordSide
    keywords: KeywordSide | None
    texts: Mapping[int, str]
    notes: Files
    """What their ages are told from."""
    of_named_time: Mapping[int, float]
    """Files of the days that the query names or of those soon after, with what they count."""
    of_days: Rows
    """What is of that time, the newest first, where the query says nothing else that a note holds, or is the newest of
    what holds what is asked for now."""
    titled: Rows
    """The first row of each note whose title or file name the query is, where it names no time."""
    notices: tuple[Notice, ...]
    timings: Mapping[str, float]
    unsearchable: tuple[FileState, ...] = ()
    nearest_by: NearestBy = ""
    """Who found the `nearest`."""
    lexical: Lexical = Lexical()
    """What the newest release finds by words and paths, and the annotations of chunks."""
    chunking: str = ""
    """The release by whose rules the notes were cut; empty where that is not known."""
    first: bool = False
    """Whether the index was made for this very question."""
    uuid: str = ""
    """Of the index: its rowids mean nothing in an index with another one."""
    source: str = ""
    """What the question was kept to: memory, sessions, or empty for all."""
    who: ServingProvider | None = None
    """Who answered by meaning, and why it is not who was asked for; None where nobody told."""
    closest: Closest | None = None
    """What our own profile compares in the place of `cosine`; None by the built-in table."""
    reusable: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """What one ranking worked out and the next can use, because no knob changes it.

    Nothing in it may refer to this evidence: a circle of megabytes would stay until Python looks for garbage.
    """


def gather(store: Store, corpus: Corpus, question: Question, now: float, source: str = "") -> Evidence:
    """Return what `corpus` and its store know about `question`; `source` keeps to one. Raises QueryError, Cancelled."""
    with store.snapshot():
        laps = [time.perf_counter()]
        text, vector = question.text, question.vector
        eligible = np.array([source in ("", name) for name in corpus.files.sources], np.bool_)[corpus.refs.file_of]
        query, of_time = _read(question, corpus.files, now)
        matcher = Matcher(store.words, corpus, eligible, store.words.cut(), question.join)
        recommended = matcher.recommended(query, spells=question.spells)
        openclaw, keywords, lexical, texts = _openclaw(store, matcher, text, by_words=vector is None)
        laps.append(time.perf_counter())
        of_days = _dated(matcher, query.time, of_time, recommended, question.most) if query.time else recommended.newest
        shown = _fold(matcher, recommended, of_time, lambda rows: _texts(store, corpus, rows, texts))
        sides = openclaw, *(keywords.each if keywords else ())
        matched = first_shown(shown, recommended.postings.rows, question.most).tolist()
        matched += [row for side in sides for row in side.postings.rows[: question.most].tolist()]
        matched += [hit.row for hit in lexical.hits]
        cosine, nearest, nearest_by = _compared(store, matcher, vector, matched, question.most, shown)
        laps.append(time.perf_counter())
        # The first rows of the notes whose title or file name is all that is asked.
        plan = recommended.plan
        titles = {} if plan.time or plan.for_now or plan.value else corpus.by_title
        titled = [row for row in titles.get(tokens.letters_of(text), ()) if eligible[row]]
        candidates = [*nearest.tolist(), *matched, *of_days.tolist(), *titled]
        # What is folded is read too: where it stands tells of copies.
        _texts(store, corpus, np.flatnonzero(np.isin(shown, shown[candidates])), texts)
        # Milliseconds of embedding, and from each lap to the next, in the order of the names of `timings`.
        spent = 1000 * np.array([question.seconds, *np.diff([*laps, time.perf_counter()])])
        return Evidence(
            question=question,
            now=now,
            generation=corpus.generation,
            provider=corpus.identity.provider if corpus.identity else "none",
            model=corpus.identity.model if corpus.identity else "fts-only",
            refs=corpus.refs,
            files=corpus.once("files", lambda: len(distinct(corpus.refs.file_of))),
            cosine=cosine,
            embedded=int(np.count_nonzero(corpus.embedded)),
            nearest=nearest,
            nearest_by=nearest_by,
            openclaw=openclaw,
            recommended=recommended,
            keywords=keywords,
            texts=texts,
            notes=corpus.files,
            of_named_time=of_time,
            of_days=of_days,
            titled=np.array(titled, dtype=np.int64),
            shown=shown,
            lexical=lexical,
            chunking=corpus.chunking,
            notices=(*question.notices, *_notices(corpus, text, recommended, vector=vector is not None)),
            timings=dict(zip(("embed", "text", "vector", "read"), spent.tolist(), strict=True)),
            uuid=corpus.uuid,
            source=source,
            closest=_closest(store, corpus, vector, cosine) if corpus.has_windows else None,
        )


def _read(question: Question, files: Files, now: float) -> tuple[ParsedQuery, dict[int, float]]:
    """Return the query as it is read, and what the files of its time, or of soon after it, count for that, by file."""
    today = dt.datetime.fromtimestamp(now, dt.UTC).astimezone(question.zone).date()
    query = parse(question.text, today, reads_time=question.reads_time, in_parts=question.in_parts)
    if query.time is None:
        return query, {}
    # A note of a week or a month counts as its first or its last day does, whichever counts less.
    dated = ((file, min(map(query.time.nearness, span(date)))) for file, date in enumerate(files.dates) if date)
    of_time = {file: value for file, value in dated if value}
    if not of_time and str(query.time.first.year) in query.plan.time_words:
        # A date of no note is to come, or long past: a text may name it as the query writes it.
        query = parse(question.text, today, reads_time=False, in_parts=question.in_parts)
    return query, of_time


def first_shown(shown: Rows, rows: Rows, most: int) -> Rows:
    """Return the first `most` rows that are `shown` for `rows`, each once; `shown` is by row of the corpus."""
    # As many more as there are folded ones, each of which may lead to a row that is there already.
    room = most + int(np.count_nonzero(shown != np.arange(len(shown))))
    return np.array(list(dict.fromkeys(shown[rows[:room]].tolist()))[:most], np.int64)


def _openclaw(
    store: Store, matcher: Matcher, text: str, *, by_words: bool
) -> tuple[KeywordSide, KeywordSide | None, Lexical, dict[int, str]]:
    """Return what OpenClaw's words find, where its profiles rank, or words alone; and the texts that were read for it.

    Its newest release finds chunks that are cut as it cuts them.
    """
    # Our own profile, the only one that asks by OR, ranks by none of this.
    if matcher.join == "OR" and not by_words:
        return KeywordSide(), None, Lexical(), {}
    # By words alone an excerpt goes on into chunks that its keywords find.
    side, keywords = matcher.openclaw(text), matcher.keywords(text) if by_words else None
    if matcher.corpus.chunking != AT_ENTRIES:
        return side, keywords, Lexical(), {}
    return side, keywords, *lexical_2026_9.search(store, matcher, text, side)


def _texts(store: Store, corpus: Corpus, rows: Rows, read: dict[int, str]) -> list[str]:
    """Return the texts of `rows`; those that `read` has not, which is by rowid, are read from the store into it."""
    rowids = corpus.refs.rowids[rows].tolist()
    read |= store.texts([*{*rowids} - read.keys()])
    with store.making_sense():
        return [read[rowid] for rowid in rowids]


def _notices(corpus: Corpus, text: str, side: KeywordSide, *, vector: bool) -> list[Notice]:
    """Return what was read, left out or could not be compared."""
    plan, most = side.plan, tokens.MOST_ALTERNATIVES
    # A question of very many words is told first, because it leaves most of them out.
    notices = [notice("searched_otherwise", correction=item) for item in plan.corrections]
    different = len(set(tokens.WORD.findall(text)))
    if different > most:
        notices.insert(0, notice("long_question", different=different, rarest=most, first=tokens.MOST_WORDS))
    if plan.time:
        notices.append(notice("read_as_time", words=plan.time_words, days=str(plan.time), alone=plan.time_alone))
    if plan.parts:
        notices.append(notice("asked_in_parts", parts=tuple(part.asked for part in plan.parts)))
    zeros = int(np.count_nonzero(corpus.embedded & ~corpus.has_vector)) if vector else 0
    return [*notices, notice("zero_vectors", count=zeros, profile="")] if zeros else notices


def _dated(matcher: Matcher, time: Time, of_time: dict[int, float], side: KeywordSide, most: int) -> Rows:
    """Return rows that are candidates for their day: `most` of the files `of_time`, those first that count most.

    They hold something else that the query says, where any note does.
    """
    file_of, found = matcher.corpus.refs.file_of, side.postings.rows
    rows = np.flatnonzero(np.isin(file_of, list(of_time)) & matcher.eligible)
    if len(found) and not (side.plan.time_alone or time.newest):
        # Those of that time which words found, in the order of words.
        rows = found[np.isin(found, rows)]
    return np.array(sorted(rows.tolist(), key=lambda row: -of_time[int(file_of[row])])[:most], np.int64)


FEWEST_WORDS = 5
"""Words of a line that takes one place wherever it stands; shorter ones, as greetings, are no statement (chats)."""
_ASIDE = re.compile(
    r"(?:^|[\W_\d])(?:archived?|archiv|backups?|bak|old|cop(?:y|ies)|conflict|kopie|trash|deleted)(?=$|[\W_\d])",
    re.IGNORECASE,
)
"""What a folder or a file of copies is called."""


def _fold(matcher: Matcher, side: KeywordSide, of_time: Mapping[int, float], read: Callable[[Rows], list[str]]) -> Rows:
    """Return for each row of the corpus the one that is shown in its place, which mostly is itself.

    One row is shown for a passage that stands in several places, and for a line that several notes repeat.
    """
    corpus, files, file_of = matcher.corpus, matcher.corpus.files, matcher.corpus.refs.file_of

    def order(row: int) -> tuple[float, bool, int, str, int]:
        """Return what copies are sorted by: of the time asked for, outside folders of copies, newest, then by path."""
        file = int(file_of[row])
        path = files.paths[file]
        return -of_time.get(file, 0.0), bool(_ASIDE.search(path)), -files.written(file), path, row

    def by_passage() -> Rows:
        """Return for each row the first copy of its passage; `copied` has those of one passage side by side."""
        shown = np.arange(len(corpus))
        rows = corpus.copied[matcher.eligible[corpus.copied]].tolist()
        for _, group in groupby(rows, lambda row: corpus.passages[row]):
            copies = list(group)
            shown[copies] = min(copies, key=order)
        return shown

    # Without a time, and with all sources, passages are folded alike for every question.
    is_usual = matcher.eligible.all() and not of_time
    shown = corpus.once("shown", by_passage).copy() if is_usual else by_passage()
    words = [word for word in (*side.plan.words, *side.plan.counted) if not only_asks(word)]
    idf = {stem: lucene_idf(side.frequency.get(word, 0), len(corpus)) for word in words for stem in word_stems(word)}
    folded = set[str]()
    # When copies are folded other matches move up, which may hold further repeated lines.
    while lines := _repeats(corpus, first_shown(shown, side.postings.rows, CANDIDATES), idf, read) - folded:
        folded |= lines
        # `openclaw` finds the chunks with all words of the line, of which some have it word for word.
        for line in lines:
            rows = distinct(shown[matcher.openclaw(line).postings.rows])
            rows = rows[[_answers_by(line, text, folded, idf) for text in read(rows)]]
            if len(rows):
                best = min(rows.tolist(), key=order)
                shown[rows[file_of[rows] != file_of[best]]] = best
                # What another row was shown for moves along with that one.
                shown = shown[shown]
    return shown


def _lines(text: str) -> list[str]:
    """Return the lines of `text` as they are compared: in lower case, without list signs and emphasis around them."""
    return [line.strip(" -*") for line in text.lower().split("\n")]


def _repeats(corpus: Corpus, first: Rows, idf: Mapping[str, float], read: Callable[[Rows], list[str]]) -> set[str]:
    """Return the lines that several notes of the `first` matches hold word for word, so that such copies are one hit.

    Each holds most of what any line holds of the question, by the `idf` of its stems. Headings repeat by nature.
    """
    # Neighbours in a note have lines in common.
    lines_of: defaultdict[int, set[str]] = defaultdict(set)
    for file, text in zip(corpus.refs.file_of[first].tolist(), read(first), strict=True):
        lines_of[file].update(_lines(text))
    notes = Counter(chain.from_iterable(lines_of.values()))
    several = (line for line, count in notes.items() if count > 1)
    repeated = [line for line in several if len(line.split()) >= FEWEST_WORDS and line[0] != "#"]
    if not repeated:
        return set()
    held = {line: sum(_idf_by_word(line, idf).values()) for line in notes}
    most = max(held.values())
    return {line for line in repeated if held[line] > 0 and held[line] >= ALIKE * most}


def _answers_by(line: str, text: str, folded: set[str], idf: Mapping[str, float]) -> bool:
    """Return whether `text` has `line`, and no other line that is not `folded` has its words of the question."""
    lines, words = _lines(text), _idf_by_word(line, idf)
    others = (other for other in lines if other not in folded and not other.startswith("#"))
    return line in lines and not any(all(word in other for word in words) for other in others)


def _idf_by_word(line: str, idf: Mapping[str, float]) -> dict[str, float]:
    """Return the words of `line` whose stems have an `idf`, with that."""
    return {word: idf[stem] for word in tokens.WORD.findall(line) for stem in word_stems(word) if stem in idf}


_KNOWN_LANGUAGE, _LEAST_KNOWN = 0.75, 0.1
"""How much of a question the built-in table has to know for meaning to count in full, and at all. Questions in English
and German have 0.9 or more, those in other scripts less than 0.6, those in other alphabets next to nothing."""
_SPOKEN = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}
"""The language of a script that one language is written in; of characters that several share, the commonest."""


def _hardly_known(query: str) -> tuple[str, float]:
    """Return the language or script of a question that the built-in table hardly knows, and how much of it is known.

    That is "" and 1 where enough is known.
    """
    if query.isascii():
        return "", 1.0
    share = static_table().share_known(query)
    if share >= _KNOWN_LANGUAGE:
        return "", 1.0
    # The first word of a character's name is its script.
    scripts = Counter(unicodedata.name(letter, "unknown").split()[0] for letter in query if letter.isalpha())
    # Kana tell Japanese and Hangul Korean, however many Chinese characters are beside them; else the commonest counts.
    script = next((script for script in _SPOKEN if script in scripts), max(scripts, key=scripts.__getitem__))
    return _SPOKEN.get(script, script.title()), share if share >= _LEAST_KNOWN else 0.0


def _closest(store: Store, corpus: Corpus, vector: Vectors | None, cosine: Floats | None) -> Closest | None:
    """Return how near each row is by its windows; None without a vector of the question, or of any row."""
    if vector is None or cosine is None:
        return None
    rows, vectors = corpus.once("windows", lambda: corpus.windows(store))
    closest, compared = cosine.copy(), ~np.isnan(cosine)
    # A chunk without windows keeps its own cosine.
    if len(rows):
        # `rows` rise, so that the windows of a chunk stand together; each of `first` is where those of a chunk begin.
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        closest[rows[first]] = np.maximum.reduceat(products(vectors, vector), first)
        closest[~compared] = np.nan
    if not compared.any():
        return None
    return Closest(closest, float(np.median(closest[compared])), float(closest[compared].max()))


def _compared(
    store: Store, matcher: Matcher, vector: Vectors | None, matched: Sequence[int], most: int, shown: Rows
) -> tuple[Floats | None, Rows, NearestBy]:
    """Return the cosine of every row, the `most` nearest rows, greatest first, and who found them.

    A nearest row in whose place another one is `shown` is returned beside the `most`, not among them. A cosine is
    NaN without a vector; where the store finds the nearest, only these and `matched` have one. Those of both are the
    original's to the last bit.
    """
    if vector is None:
        return None, np.empty(0, dtype=np.int64), ""
    corpus, compared = matcher.corpus, matcher.corpus.embedded & matcher.eligible
    # A vector of zeros has no direction: it counts 0, although the original gives it 1.
    also = [*matched, *np.flatnonzero(corpus.embedded & ~corpus.has_vector)]
    cosine, nearest_by = cosines(store, corpus, vector, MOST_CANDIDATES, also)
    cosine[~compared] = np.nan
    nearest = _nearest(cosine, most)
    folded = shown != np.arange(len(shown))
    if folded[nearest].any():
        # Folded ones take no place of others: so the nearest of those that are shown come along.
        nearest = distinct(np.append(nearest, _nearest(np.where(folded, np.nan, cosine), most)))
    precise = distinct(np.concatenate([nearest, shown[nearest], np.array(matched, np.int64)]))
    precise = precise[compared[precise]]
    cosine[precise] = exact_cosines(vectors_of(store, corpus, precise), vector)
    # Equal ones by index, so that what is equal to the last bit does not keep the order of rounding errors.
    nearest = nearest[np.lexsort((nearest, -cosine[nearest]))]
    # Folded ones are returned beside the `most`.
    nearest = nearest[: most + int(np.count_nonzero(folded[nearest]))]
    return cosine, nearest, nearest_by


def _nearest(cosine: Floats, most: int) -> Rows:
    """Return the `most` nearest rows, nearest first, and those that rounding alone may have put below the last of them.

    Rows whose cosine is NaN were not compared.
    """
    nearest = np.flatnonzero(~np.isnan(cosine))
    if len(nearest) > most:
        edge = np.partition(cosine[nearest], len(nearest) - most)[len(nearest) - most] - _ROUNDING
        nearest = nearest[cosine[nearest] >= edge]
    return nearest[np.argsort(-cosine[nearest], kind="stable")][: 4 * MOST_CANDIDATES]
