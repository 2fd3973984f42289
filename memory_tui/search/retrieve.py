"""Retrieval turns a query into evidence for any profile or knob."""

from __future__ import annotations

import datetime as dt
import time
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui import jsstring, tokens
from memory_tui.errors import ProviderError, QueryError
from memory_tui.index.rows import Rejected, Withheld
from memory_tui.index.store import Store
from memory_tui.notices import Notice, notice
from memory_tui.providers.base import Identity, Provider, Vectors
from memory_tui.providers.chain import ChainMember
from memory_tui.search import formulas, lexical_2026_9
from memory_tui.search.corpus import (
    Corpus,
    Flags,
    cosines,
    cosines_of_nearest,
    distinct,
    vectors_of,
)
from memory_tui.search.day_spans import day_at
from memory_tui.search.evidence import Age, Evidence, Lexical, Rows
from memory_tui.search.formulas import MOST_CANDIDATES, Floats
from memory_tui.search.keyword import Matcher, candidates
from memory_tui.search.question_dates import Time, time_in
from memory_tui.search.score import Rules
from memory_tui.search.trace import NUMPY, SQLITE_VEC, NearestBy, Unsearchable
from memory_tui.settings import Settings
from memory_tui.workspace import chunking_2026_9

MAX_QUERY = 50_000
"""Characters of the longest query."""
_ROUNDING = 1e-6
"""More than single precision loses in a cosine."""


class SearchContext(Struct, frozen=True):
    """What a query is searched in: a store, its chunks in memory, and what an answer has to say of both."""

    store: Store
    corpus: Corpus
    provider: Provider | None
    unsearchable: tuple[Unsearchable, ...] = ()
    notices: tuple[Notice, ...] = ()
    first: bool = False
    projects: frozenset[str] = frozenset()
    """Keys of the projects that the agent works on."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Who notes are from by OpenClaw's ledger, by path: a class of it for each that it has."""
    reads_time: bool = True
    """Whether words of a query that name a time are read as one, and not searched."""
    spells: bool = True
    """Whether words that no note holds are corrected."""
    in_parts: bool = True
    """Whether a question that asks several things is taken apart."""
    any_word: bool = True
    """Whether chunks that hold any word of a query are matched, which no profile of OpenClaw ranks."""
    most: int = MOST_CANDIDATES
    """Candidates of each side that are ranked."""
    zone: dt.tzinfo | None = None
    """The time zone of the user, in which days begin; None for this machine's."""


class _Clock(Struct):
    """Milliseconds per stage."""

    timings: dict[str, float] = field(default_factory=dict)
    since: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.timings[stage] = (now - self.since) * 1000
        self.since = now


class Asking(Struct, frozen=True):
    """A query with its vector in the space `identity`, or why it has none.

    `pointless` tells that there is a vector side, and a vector that points nowhere. `seconds` is what embedding took.
    """

    query: str
    identity: Identity | None
    vector: Vectors | None = None
    pointless: bool = False
    notices: tuple[Notice, ...] = ()
    seconds: float = 0.0


def embed(query: str, identity: Identity | None, provider: Provider | None) -> Asking:
    """Return the vector of `query` in the space `identity` of an index; asks the provider, so it can take seconds.

    Raises QueryError for a query that is too long.
    """
    if len(query) > MAX_QUERY:
        raise QueryError(
            f"The query has {len(query):,} characters; at most {MAX_QUERY:,} are searched.", "Ask in fewer words."
        )
    began, result = time.perf_counter(), Asking(jsstring.trim(query), identity)
    if identity is not None and provider is not None and result.query:
        result = _embedded(result, identity, provider)
    return replace(result, seconds=time.perf_counter() - began)


def ranked_by(context: SearchContext, settings: Settings) -> SearchContext:
    """`context` for an answer that `settings` alone rank: nothing is matched or compared that they do not rank."""
    rules = Rules.of(settings, "hybrid")
    # Of 2026.9 all that was found tells which chunks are never recalled.
    most = MOST_CANDIDATES if rules.profile.exact_paths else rules.limit
    return replace(context, any_word=rules.corrects, most=most)


def gather(query: str, context: SearchContext, now: float, source: str = "", asked: Asking | None = None) -> Evidence:
    """Everything the index knows about `query`; `source` keeps to memory or sessions. `now` is in epoch seconds.

    `asked` is the query where it was embedded before. All of the answer is of one state of the index: that of
    `context.corpus`, which whoever calls has read in the snapshot that is open, or from an index that nobody writes.

    Raises QueryError for a query that is too long, Cancelled when the store was interrupted.
    """
    corpus = context.corpus
    embedded = asked or embed(query, corpus.identity, context.provider)
    with context.store.snapshot():
        return _gather(query, embedded, context, now, source)


def _gather(query: str, embedded: Asking, context: SearchContext, now: float, source: str) -> Evidence:
    corpus, notices = context.corpus, [*context.notices, *embedded.notices]
    clock = _Clock({"embed": embedded.seconds * 1000})
    kept = _of_source(corpus, source)
    asked, vector, pointless = embedded.query, embedded.vector, embedded.pointless
    time_asked = time_in(asked, day_at(now, context.zone)) if context.reads_time else None
    full_text = context.store.words.cut()
    matcher = Matcher(
        context.store.words,
        corpus,
        kept,
        full_text,
        by_text=vector is None,
        spells=context.spells,
        in_parts=context.in_parts,
        any_word=context.any_word,
    )
    if not full_text:
        notices.append(notice("no_full_text", reason=context.store.words.missing(), by_text=vector is None))
    if (different := len(set(tokens.WORD.findall(asked)))) > tokens.MOST_ALTERNATIVES:
        notices.append(
            notice("long_question", different=different, rarest=tokens.MOST_ALTERNATIVES, first=tokens.MOST_WORDS)
        )
    theirs, ours = matcher.openclaw(asked), matcher.recommended(asked, time_asked)
    notices += [notice("searched_otherwise", correction=item) for item in ours.plan.corrections]
    notices += (
        [notice("read_as_time", words=ours.plan.time_words, days=str(ours.plan.time), alone=ours.plan.time_alone)]
        if ours.plan.time
        else []
    )
    notices += (
        [notice("asked_in_parts", parts=tuple(item.asked for item in ours.plan.parts))] if ours.plan.parts else []
    )
    single = matcher.keywords(asked) if vector is None else None
    chunking = context.store.chunking()
    newest = chunking == chunking_2026_9.VERSION
    result, read = lexical_2026_9.search(context.store, matcher, asked, theirs) if newest else (Lexical.none(), {})
    result = replace(result, active=context.projects, origins=context.origins)
    clock.lap("text")
    sides = (theirs, ours, *(single.each if single else ()))
    matched = [*candidates(*sides, most=context.most), *(hit.row for hit in result.hits)]
    cosine: Floats | None = None
    nearest = np.empty(0, dtype=np.int64)
    found_by: NearestBy = ""
    if vector is not None:
        cosine, found_by = _cosine(context, vector, kept, matched)
        nearest = _nearest(context, vector, cosine, np.array(matched, dtype=np.int64))
        notices += _zero_vectors(corpus)
    clock.lap("vector")
    language, share = _hardly_known(asked, corpus.identity) if vector is not None or pointless else ("", 1.0)
    pool = list(dict.fromkeys([*nearest.tolist(), *matched]))
    rowids = corpus.rowids[pool].tolist()
    without_vector: list[Rejected | Withheld] = [*context.store.rejected(), *context.store.withheld()]
    known = {rowid: read[rowid] for rowid in rowids if rowid in read}
    texts = known | context.store.texts([rowid for rowid in rowids if rowid not in known])
    if len(texts) < len(pool):
        raise context.store.damaged("chunks are missing")
    clock.lap("read")
    return Evidence(
        query=query,
        now=now,
        generation=corpus.generation,
        provider=corpus.identity.provider if corpus.identity else "none",
        model=corpus.identity.model if corpus.identity else "fts-only",
        refs=corpus.refs,
        pool=np.array(pool, dtype=np.int64),
        files=corpus.files_with_chunks,
        cosine=cosine,
        embedded=int(np.count_nonzero(corpus.embedded)),
        nearest=nearest,
        nearest_by=found_by,
        openclaw=theirs,
        recommended=ours,
        keywords=single,
        pointless=pointless,
        full_text=bool(full_text),
        texts=texts,
        openclaw_age=Age(corpus.dates_2026_3, now),
        recommended_age=Age(corpus.dates, now, zone=context.zone),
        of_named_time=_of_time(corpus, time_asked),
        zone=context.zone,
        lexical=result,
        chunking=chunking,
        lexical_age=Age(corpus.dates_2026_9, now),
        unsearchable=context.unsearchable,
        notices=tuple(notices),
        timings=clock.timings,
        withheld={chunk.rowid: str(chunk) for chunk in without_vector},
        first=context.first,
        uuid=corpus.uuid,
        source=source,
        language=language,
        known_share=0.0 if pointless else share,
        any_word=context.any_word,
        # The places that a store knows are among all of its chunks.
        vector=vector if found_by == SQLITE_VEC else None,
    )


def _of_time(corpus: Corpus, named_time: Time | None) -> frozenset[int]:
    """Return the files whose name carries a day of the time that was asked about."""
    if named_time is None:
        return frozenset()
    return frozenset(file for file, day in corpus.named() if named_time.holds(day))


def _of_source(corpus: Corpus, source: str) -> Flags | None:
    """Return which rows are of `source`; None for all."""
    if not source:
        return None
    needed = np.array([name == source for name in corpus.files.sources], dtype=np.bool_)
    return needed[corpus.file_of] if len(needed) else np.zeros(len(corpus), dtype=np.bool_)


# --- meaning -------------------------------------------------------------------------------------------------------


def _embedded(question: Asking, needed: Identity, provider: Provider) -> Asking:
    """Return the query with its vector in the space of the index, or with a notice of why there is no vector side."""
    try:
        # What only an answer tells, its own answer tells: nobody is asked twice for one question.
        identity = provider.expected(needed) if isinstance(provider, ChainMember) else provider.identity
        if identity == needed:
            vector = provider.embed([question.query], "query")[0]
            identity = provider.identity
        if identity != needed:
            built, used = (f"{item.provider} {item.model}" for item in (needed, identity))
            return replace(question, notices=(notice("other_model", made_with=built, asked_with=used),))
    except ProviderError as error:
        return replace(question, notices=(notice("meaning_off", cause=error.message, remedy=error.next_step),))
    # A query without any known token points nowhere; the original skips its vector side as well.
    return replace(question, vector=vector) if vector.any() else replace(question, pointless=True)


_KNOWN_LANGUAGE, _LEAST_KNOWN = 0.75, 0.1
"""How much of a question the built-in table has to know for meaning to count in full, and at all. Questions in English
and German have 0.9 or more, those in other scripts less than 0.6, those in other alphabets next to nothing."""
_SPOKEN = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}
"""The language of a script that one language is written in; of characters that several share, the commonest."""


def _hardly_known(query: str, identity: Identity | None) -> tuple[str, float]:
    """The language of `query`, or its script, where the built-in table hardly knows it; and how much of it that knows.

    An empty language and 1 where it knows enough, and of vectors that another provider made.
    """
    if identity is None or identity.provider != "builtin" or query.isascii():
        return "", 1.0
    from memory_tui.providers.builtin import static_table

    share = static_table().known(query)
    if share >= _KNOWN_LANGUAGE:
        return "", 1.0
    scripts = Counter(unicodedata.name(item, "unknown").split()[0] for item in query if item.isalpha())
    first = next((script for script in _SPOKEN if script in scripts), max(scripts, key=scripts.__getitem__))
    return _SPOKEN.get(first, first.title()), share if share >= _LEAST_KNOWN else 0.0


def _nearest(context: SearchContext, vector: Vectors, cosine: Floats, by_words: Rows) -> Rows:
    """Return the nearest rows, greatest first; `cosine` is made precise of these and of `by_words`."""
    nearest = _best(cosine, context.most)
    precise = distinct(np.concatenate([nearest, by_words]))
    precise = precise[~np.isnan(cosine[precise])]
    cosine[precise] = formulas.cosine(vectors_of(context.store, context.corpus, precise), vector)
    # By index order first, so that what is equal to the last bit does not keep the order of rounding errors.
    nearest = np.sort(nearest)
    return nearest[np.argsort(-cosine[nearest], kind="stable")][: context.most]


def _cosine(
    context: SearchContext, vector: Vectors, eligible: Flags | None, matched: Sequence[int]
) -> tuple[Floats, NearestBy]:
    """Return the cosine of every row, NaN without a vector; by vec0 only of the nearest rows and of those in `matched`.

    Also who found the nearest. Of one source numpy does, because vec0 knows the nearest of all.
    """
    corpus, found_by = context.corpus, NUMPY
    # A vector of zeros has no direction: it counts 0, although the original gives it 1.
    comparable = corpus.embedded if eligible is None else corpus.embedded & eligible
    if corpus.dims:
        result = cosines(corpus, vector).astype(np.float64)
    elif eligible is not None:
        rows, result = np.flatnonzero(eligible), np.full(len(corpus), np.nan)
        result[rows] = vectors_of(context.store, corpus, rows) @ vector
    else:
        pointless = np.flatnonzero(corpus.embedded & ~corpus.has_vector)
        scores, by_vec0 = cosines_of_nearest(context.store, corpus, vector, MOST_CANDIDATES, [*matched, *pointless])
        result, found_by = scores.astype(np.float64), SQLITE_VEC if by_vec0 else NUMPY
        result[np.isneginf(result)] = np.nan
    result[~comparable] = np.nan
    return result, found_by


def _best(cosine: Floats, most: int) -> Rows:
    """The rows of the `most` greatest cosines and of those that rounding alone may have put below them, 800 at most;
    greatest first, equal ones in index order.
    """
    comparable = np.flatnonzero(~np.isnan(cosine))
    if len(comparable) > most:
        cut = np.partition(cosine[comparable], len(comparable) - most)[len(comparable) - most]
        comparable = comparable[cosine[comparable] >= cut - _ROUNDING]
    return comparable[np.argsort(-cosine[comparable], kind="stable")][: 4 * MOST_CANDIDATES].astype(np.int64)


# --- what is missing ------------------------------------------------------------------------------------------------


def _zero_vectors(corpus: Corpus) -> list[Notice]:
    """Return how many chunks have a vector that points nowhere, if any has."""
    zeros = int(np.count_nonzero(corpus.embedded & ~corpus.has_vector))
    return [notice("zero_vectors", count=zeros, profile="")] if zeros else []
