"""Ranking: evidence becomes a trace under one set of settings; under many at once it tells what is recalled.

Scores and gate are the same functions, for all values together; the order ends where the limit is reached.

A row is a chunk's place in the index, a candidate's number its place in the table of candidates. Profiles are told
apart by what they do: OpenClaw 2026.9 alone has `exact_paths`, our own alone a `second_stage` and the `join` OR.
"""

from __future__ import annotations

import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import count, islice
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import jsstring, tokens
from memory_tui.config.settings import OWN_PROFILE, Profile, Scalar, Settings, profile_named
from memory_tui.providers.chain import ServingProvider
from memory_tui.search import lexical_2026_9, score, trace
from memory_tui.search.keyword import LATIN, KeywordSide
from memory_tui.search.retrieve import MOST_CANDIDATES, Evidence
from memory_tui.search.score import Candidates, Rules
from memory_tui.search.second_stage import MEANING, MEASURES, AnswerSignals, SecondStage
from memory_tui.search.trace import Candidate, ChunkRef, Flags, Floats, Rows, Table
from memory_tui.sentences import Notice, notice, other_vectors, quoted
from memory_tui.tokens import as_asked, function_words, left_out, only_asks, word_stems
from memory_tui.workspace.notes import NOTHING_SAID, origin_class
from memory_tui.workspace.roots import MEMORY

LENGTH = 700
"""UTF-16 units of a snippet, which never ends in half a character (OpenClaw)."""


def mmr_tokens(profile: Profile, text: str) -> frozenset[str]:
    """Return what MMR compares of a chunk: the ASCII words of its snippet (OpenClaw), or its words and bigrams."""
    snippet = jsstring.utf16_head(text, LENGTH)
    if profile.exact_paths:
        return lexical_2026_9.mmr_tokens(snippet)
    if not profile.second_stage:
        return frozenset(LATIN.findall(snippet.lower()))
    return frozenset(tokens.WORD.findall(tokens.segmented(snippet.lower())))


def likeness(evidence: Evidence, profile: Profile, rows: Rows) -> Likeness:
    """Return how alike the texts at `rows` are by the words that `profile` compares."""
    rowids = evidence.refs.rowids[rows].tolist()
    return Likeness([mmr_tokens(profile, evidence.texts.get(rowid, "")) for rowid in rowids])


def rank(evidence: Evidence, settings: Settings) -> Trace:
    """Return `evidence` under `settings`: a frozen record with a verdict for every candidate."""
    began = time.perf_counter()
    ranking = Trace.of(evidence, settings)
    rules, table, plan = ranking.rules, ranking.candidates.table, ranking.side.plan
    if stages := ranking.candidates.stages:
        # Where the question asks for now or for a value, `named` tells of that and not of days.
        of_its_days = bool(table["named"].any()) and not (plan.for_now or plan.value)
        level = level_of(stages[0].signals, rules, of_its_days=of_its_days, is_title=len(evidence.titled) > 0)
        ranking = replace(ranking, level=level)
    count = min(rules.results, int(np.count_nonzero(table["passed"])))
    recalled = _marked(tuple(map(ranking.candidate, range(count))), evidence, plan.words)
    losers = (count + np.argsort(-table["score"][count:], kind="stable")).tolist()
    ranking = replace(ranking, recalled=recalled, lost=Losers(ranking, losers))
    return replace(
        ranking,
        notices=(*_as_told(evidence, rules), *_notices(ranking)),
        empty=None if recalled else _empty_reason(ranking),
        who=replace(evidence.who, mode=rules.mode) if evidence.who else None,
        timings={**evidence.timings, "rank": (time.perf_counter() - began) * 1000},
    )


def can_rank(evidence: Evidence, name: str) -> bool:
    """Return whether `evidence` has what the profile `name` goes by: 2026.9 finds words in chunks of its own alone."""
    profile = profile_named(name)
    has_chunks = not profile.exact_paths or evidence.chunking in ("", profile.chunking)
    return has_chunks and evidence.question.join in ("", profile.join)


# --- newer values ----------------------------------------------------------------------------------------------------

MOST_BESIDE, SHARED = 4, 0.5
"""Words of a line beside those of the question, and what two lines share, to state one thing (now-images)."""


class Statement(Struct, frozen=True):
    """The `words` of a line that states something, and its `value`: those that the question does not have."""

    words: Set[str]
    value: Set[str]


def _marked(recalled: tuple[Candidate, ...], evidence: Evidence, words: Sequence[str]) -> tuple[Candidate, ...]:
    """Return the hits; one whose line states an older value names the line that states the newer one."""
    looked_into = [hit for hit in recalled if hit.line]
    lines = [evidence.texts[hit.chunk.rowid].split("\n")[hit.line - hit.chunk.start_line] for hit in looked_into]
    # For each hit the number, among those looked into, of the one that states a newer value; -1 for none.
    newer = newer_values(lines, [hit.age_days for hit in looked_into], words)
    places = [f"{hit.chunk.path}:{hit.line}" for hit in looked_into]
    newer_of = {hit.row: places[number] for hit, number in zip(looked_into, newer, strict=True) if number >= 0}
    return tuple(replace(hit, newer=newer_of.get(hit.row, "")) for hit in recalled)


def newer_values(lines: Sequence[str], ages: Sequence[float | None], words: Sequence[str]) -> list[int]:
    """Return for each of `lines` the newest that states the same with another value, a day newer or more; -1 for none.

    Words that only ask are no part of what is stated.
    """
    question = {stem for word in words if not only_asks(word) for stem in word_stems(word)}
    statements = [_statement(line, question) if question else None for line in lines]
    newest_first = sorted((age, number) for number, age in enumerate(ages) if age is not None)
    result = []
    for age, statement in zip(ages, statements, strict=True):
        # A line without an age is of no time, and nothing is newer than it.
        newer = [number for newer_age, number in newest_first if newer_age + 1 <= (age or 0.0)]
        result.append(next((number for number in newer if _differ(statement, statements[number])), -1))
    return result


def _statement(line: str, question: Set[str]) -> Statement | None:
    """Return what `line` states, which holds all words of the `question` and a few others; None where it does not."""
    words = {" ".join(word_stems(word.strip("-*_`\"'.,:;()"))) for word in line.lower().split()} - {""}
    # A word such as "wi-fi" has two stems; the question holds them one by one.
    value = {word for word in words if not question >= {*word.split()}} - function_words()
    is_about_it = question <= {*" ".join(words).split()}
    return Statement(words, value) if is_about_it and 0 < len(value) <= MOST_BESIDE else None


def _differ(a: Statement | None, b: Statement | None) -> bool:
    """Return whether two lines state the same with different values: they share much, or both are figures."""
    # A value that is part of the other's is no different one.
    if a is None or b is None or a.value <= b.value or b.value <= a.value:
        return False
    # A value with a digit in it is a figure.
    shared = len(a.words & b.words) / len(a.words | b.words)
    return shared >= SHARED or all(any(map(str.isdecimal, "".join(item.value))) for item in (a, b))


# --- what an answer says -------------------------------------------------------------------------------------------


def _as_told(evidence: Evidence, rules: Rules) -> Iterator[Notice]:
    """Yield those notices of `evidence` that are true under `rules`, as they are true of the release."""
    profile = rules.profile
    # Of all profiles our own alone asks by OR, and it alone reads times, corrects words and takes questions apart.
    untrue = set() if profile.join == "OR" else {"read_as_time", "searched_otherwise", "asked_in_parts"}
    untrue |= set() if profile.exact_paths else {"trust_unread"}
    for item in evidence.notices:
        if item.kind == "zero_vectors" and profile.exact_paths:
            yield notice("zero_vectors", count=item.fields["count"], profile=profile.name)
        elif item.kind not in untrue and (item.kind != "setting_ignored" or item.fields["profile"] == profile.name):
            yield item


def _notices(ranking: Trace) -> Iterator[Notice]:
    """Yield what the rules of a profile make of this question, beside what its evidence says."""
    evidence, rules, recalled = ranking.evidence, ranking.rules, ranking.recalled
    profile, mode = rules.profile, rules.mode
    if evidence.chunking and profile.name != OWN_PROFILE and evidence.chunking != profile.chunking:
        yield notice("cut_otherwise", chunking=evidence.chunking, profile=profile.name)
    if mode != "keywords only" and profile.name != OWN_PROFILE:
        yield from other_vectors(profile.name, evidence.provider)
    if profile.exact_paths:
        # Chunks are never recalled where nobody can tell their project.
        reached = {*evidence.nearest.tolist(), *(hit.row for hit in evidence.lexical.hits)}
        if never := sorted(reached & lexical_2026_9.dropped(evidence.lexical.annotations)):
            places = tuple(evidence.refs[row].citation for row in never)
            yield notice("never_recalled_there", profile=profile.name, citations=places)
    vector, text = (ranking.settings.values[f"query.hybrid.{side}Weight"] for side in ("vector", "text"))
    if abs(float(vector.value) + float(text.value) - 1.0) >= 1e-6:
        fields = {"vector": float(vector.value), "vector_origin": vector.origin}
        fields |= {"text": float(text.value), "text_origin": text.origin}
        counts = {"vector_counts": rules.vector_weight, "text_counts": rules.text_weight}
        yield notice("uneven_weights", **fields, **counts)
    plan, matches = ranking.side.plan, ranking.candidates.text_matches
    if recalled and profile.join == "OR" and mode == "hybrid" and plan.words and not matches:
        # By OR only our own profile asks. No word was matched, and something is always nearest, however far it is.
        near = sum((hit.cosine or 0.0) > 0 for hit in recalled)
        dated = sum(hit.date_points > 0 for hit in recalled) if plan.time else 0
        yield notice("found_by_meaning_alone", plan=plan, hits=len(recalled), near=near, dated=dated)
    yield from _unknown(evidence, rules, recalled)
    if problem := next((stage.problem for stage in ranking.candidates.stages if stage.problem), ""):
        yield notice("passages_by_words", problem=problem)
    # What OpenClaw itself would not have answered. A question that is kept back, or a provider that fails, leaves the
    # vectors where they are.
    if profile.faults and mode == "keywords only" and evidence.provider == "none":
        yield notice("emptied_there", profile=profile.name)
    if profile.faults and evidence.first:
        yield notice("first_search_there", profile=profile.name)


def _unknown(evidence: Evidence, rules: Rules, recalled: tuple[Candidate, ...]) -> Iterator[Notice]:
    """Yield that the model makes nothing of this query, too little to count, or nothing across languages."""
    if evidence.question.language and rules.profile.second_stage:
        yield notice("language_unknown", language=evidence.question.language, known=evidence.question.known_share)
        return
    if evidence.question.pointless:
        yield notice("words_unknown", recalled=len(recalled))
    # A word that our own profile (OR) corrected was found in its other spelling.
    spelled = {item.asked for item in evidence.recommended.plan.corrections} if rules.profile.join == "OR" else ()
    words = (word for word in tokens.WORD.findall(evidence.question.query) if word not in spelled)
    foreign = tuple(dict.fromkeys(word for word in words if _LETTERS.search(word)))
    sides = (evidence.openclaw, evidence.recommended)
    matched = any(count for side in sides for word, count in side.frequency.items() if _LETTERS.search(word))
    if evidence.provider == "builtin" and foreign and not matched:
        yield notice("not_translated", words=foreign)


_LETTERS = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
"""A letter of another script than the Latin one."""


def _empty_reason(ranking: Trace) -> Notice:
    """Return why nothing was recalled: an empty answer must never look like an empty memory."""
    evidence, side, scores = ranking.evidence, ranking.side, ranking.candidates.table["score"]
    if not jsstring.trim(evidence.question.query):
        return notice("blank_query")
    if len(evidence.refs) == 0:
        states = [item.state for item in evidence.unsearchable]
        unreadable = sum(state in ("failed", "changed while read", "missing root") for state in states)
        return notice("empty_index", files=evidence.files, pending=states.count("pending"), unreadable=unreadable)
    if len(scores):
        best, floor = float(scores.max()), ranking.rules.min_score
        return notice("all_below_gate", candidates=len(scores), best=best, floor=floor, decayed=ranking.fresh())
    if ranking.rules.mode == "nothing":
        dropped = left_out(side.plan.dropped, evidence.question.query)
        return notice("no_usable_word", dropped=dropped, pointless=evidence.question.pointless)
    missing = as_asked((word for word in side.plan.words if side.frequency.get(word, 1) == 0), evidence.question.query)
    return notice("nothing_matched", missing=missing, join="AND" if side is evidence.openclaw else "OR")


# --- the level of an answer ------------------------------------------------------------------------------------------

# The share from which an answer is found was chosen on German and Russian XQuAD and on MemoryBank: without the words
# that ask, .36 to .39 catch .86 and more in five languages (XQuAD en, de, ru, zh; JSQuAD), and from .37 on MemoryBank
# has more than .10 doubted. That under which nothing holds it was chosen on chats, FriendsQA, the FAQs and MemoryBank.
PAIRS = 0.5
"""What pairs of characters need of what words need: an answer holds few of those of a question (Chinese XQuAD)."""
DATED = 0.6
"""What is needed where there are notes of the days that are named, whose words stand in no note (MemoryBank)."""

Level = Literal["found", "nearby only", "nothing holds these words"]


class AnswerLevel(Struct, frozen=True):
    """How an answer is to be taken: its `level`, by `signals` against two bounds.

    It is found from `doubt_below` on, and nothing under `nothing_below`; in all other cases there are notes nearby.
    """

    level: Level
    signals: AnswerSignals
    doubt_below: float
    nothing_below: float

    @property
    def in_part(self) -> str:
        """Return which words of a found question its best window lacks; empty where it has all."""
        lacks = quoted(self.signals.lacks, 3)
        return f"the best lines lack {lacks}" if self.level == "found" and lacks else ""

    @property
    def sentence(self) -> str:
        """Return the level in words, with what is held."""
        shares = {"held": self.signals.held, "share": self.signals.share, "needs": self.doubt_below}
        return notice("answer_level", level=self.level, part=self.in_part, **shares).message

    @property
    def explanation(self) -> str:
        """Return the arithmetic of the level, as figures that add up."""
        best = self.signals
        lacks = "" if best.cosine is None else f" - {MEANING:g} x {best.known:.3f} x (1 - cosine {best.cosine:.3f})"
        bounds = f"found from {self.doubt_below:.3f}, nothing below {self.nothing_below:.3f}"
        return f"share {best.share:.3f} = held {best.held:.3f}{lacks}; {bounds}"


def level_of(signals: AnswerSignals, rules: Rules, *, of_its_days: bool = False, is_title: bool = False) -> AnswerLevel:
    """Return the level of an answer by its `signals`; `of_its_days` tells that a note is of the days it names.

    A note whose title or name the question is holds all of it, whatever its text says.
    """
    signals = replace(signals, held=1.0, lacks=()) if is_title else signals
    # What is needed falls with the share of pairs, and once more where a note is of the days that are named.
    needs = (1.0 - (1.0 - PAIRS) * signals.pairs) * (DATED if of_its_days else 1.0)
    doubt = needs * rules.doubt_below
    # A question by a day shares no word with the line that answers it.
    nothing = 0.0 if of_its_days else min(needs * rules.nothing_below, doubt)
    level: Level = "found" if signals.share >= doubt else "nearby only"
    if signals.share < nothing:
        level = "nothing holds these words"
    return AnswerLevel(level, signals, doubt, nothing)


# --- the gate ------------------------------------------------------------------------------------------------------


class Gate(Struct, frozen=True):
    """Which candidates pass under each rule: arrays of (rules, candidates), or of (rules, 1)."""

    passed: Flags
    """Without those that are rescued."""
    floor: Floats
    relaxed: Flags
    """Whether the relaxed floor is in force, because no score reaches minScore."""
    keyword: Flags
    """Over candidates: those that the relaxed floor lets through; none where it is not in force."""
    rescued: Flags
    """Keyword hits that follow those over minScore, although they are below it (OpenClaw 2026.9)."""


def pass_gate(scores: Floats, table: Table, rules: Sequence[Rules]) -> Gate:
    """Return what passes OpenClaw's selection: scores of at least minScore, else keyword hits over the relaxed floor.

    2026.9 adds keyword hits without a vector score; without any score over minScore every keyword hit that is not below
    0 passes (sections 7.4 and 7.8 of the profile's specification).
    """
    mode, rescues = rules[0].mode, rules[0].profile.rescues
    hybrid = mode == "hybrid"
    # What is by rule is (rules, 1), `passed` and `rescued` are (rules, candidates), `hits` are by candidate.
    floor = score.column([rule.min_score for rule in rules])
    passed = scores >= floor
    # By rule, (rules, 1): no score reaches minScore, and the profile has a relaxed floor for that.
    relaxed = np.asarray(~passed.any(axis=1, keepdims=True)) & (rescues or (hybrid and rules[0].profile.relaxed_floor))
    # Keyword hits are looked for only where they can pass by other rules than all others.
    looks = mode != "vectors only" if rescues else relaxed.any()
    hits = keyword_hits(table) if looks else np.zeros(len(table), np.bool_)
    relaxed &= hits.any()
    # Words alone reach at most their own weight, so the relaxed floor is no higher than that.
    lower = 0.0 if rescues else np.minimum(floor, score.column([rule.text_weight for rule in rules]))
    floor = np.where(relaxed, lower, floor)
    rescued = np.zeros_like(passed)
    if rescues and hybrid:
        room = np.maximum(MOST_CANDIDATES, score.column([rule.results for rule in rules]))
        has_room = np.count_nonzero(passed, axis=1)[:, None] < room
        rescued = ~passed & hits & (table["vector"] == 0.0) & ~relaxed & has_room
    passed = np.where(relaxed, hits & (scores >= floor), passed)
    return Gate(passed, floor, relaxed, keyword=hits & relaxed.any(), rescued=rescued)


def keyword_hits(table: Table) -> Flags:
    """Return which candidates the relaxed floor takes for keyword hits: those, and all others on the lines of one.

    OpenClaw knows its keyword hits by path and lines, and the pieces of one long line share them.
    """
    hits: Flags = table["text_rank"] > 0
    if hits.all() or not hits.any():
        return hits
    places = ranges(table)
    return np.isin(places, places[hits])


def ranges(table: Table) -> Rows:
    """Return a number for each candidate, the same for those on the very same lines of one note."""
    columns = np.stack([table[name] for name in ("file", "first_line", "last_line")])
    # The second of what comes back is for each column its number among the different ones.
    return np.unique(columns, axis=1, return_inverse=True)[1].reshape(-1)


def over_gate(order: Rows, table: Table, passed: Flags, rescued: Flags) -> Rows:
    """Return the candidates of `order` that `passed`, and behind them those that are `rescued`.

    `order` holds numbers of candidates, the flags are by candidate. A rescued one does not repeat the lines of one that
    passed, or of a rescued one before it (section 7.8).
    """
    strict, added = order[passed[order]], list[int]()
    if rescued.any():
        lines = ranges(table)
        seen = set(lines[strict].tolist())
        for item in order[rescued[order]].tolist():
            if lines[item] not in seen:
                seen.add(int(lines[item]))
                added.append(item)
    return np.concatenate([strict, np.array(added, np.int64)])


# --- the order -----------------------------------------------------------------------------------------------------


LEAD = 4.0
"""More than any score or any step of variety can differ by."""


def leads(part: Rows, total: Floats, passed: Flags) -> Floats:
    """Return LEAD for the best of each part of a question that `passed`, else 0; no score changes by it.

    `part` is the number of the part that each candidate answers, -1 for none; arrays of (rules, candidates).
    """
    lead = np.zeros(total.shape)
    # Not once where no candidate answers a part: the greatest number is -1 then.
    for number in range(1 + int(part.max(initial=-1))):
        answers = passed & (part == number)
        rules = np.flatnonzero(answers.any(axis=1))
        best = np.argmax(np.where(answers, total, -np.inf), axis=1)
        lead[rules, best[rules]] = LEAD
    return lead


def groups(levels: Rows, scored: Table, lead: Floats) -> list[tuple[Rows, Floats]]:
    """Return groups of candidates, one for each level: those that the question names most exactly come first.

    A group has the numbers of its candidates, in their order before variety, and what each is worth. The `lead` of the
    best of a part counts for the order, and not for the worth.
    """
    ordered = []
    for level in sorted(set(levels.tolist()), reverse=True):
        rows = np.flatnonzero(levels == level)
        merit, worth = (scored[name][rows] + lead[rows] for name in ("merit", "score"))
        # `lexsort` sorts by its last key first. Named ones all score 1, so only their merit tells them apart.
        rows = rows[np.lexsort((-merit,) if level else (-merit, -worth))]
        ordered.append((rows, scored["merit" if level else "score"][rows]))
    return ordered


_Entry = dict[str, Any]
"""The numbers of one candidate, by column."""


class Trace(Struct, frozen=True):
    """One search from question to answer. `recalled` is in the agent's order, `lost` by falling score.

    Everything is decided when it is made; only the records of losers are written out when they are looked at.
    `candidates` are in their final order, those that pass the gate first.
    """

    evidence: Evidence
    settings: Settings
    rules: Rules
    side: KeywordSide
    """The words that were searched, and what they found."""
    candidates: Candidates
    floor: float
    """What a score had to reach: minScore, or the relaxed floor where that is in force."""
    relaxed: bool
    level: AnswerLevel | None = None
    """Whether the notes hold what was asked; None under a profile that does not look into its candidates."""
    recalled: tuple[Candidate, ...] = ()
    lost: Sequence[Candidate] = ()
    notices: tuple[Notice, ...] = ()
    empty: Notice | None = None
    """Why nothing was recalled."""
    who: ServingProvider | None = None
    """Who answered by meaning, and why it is not who was asked for; None where nobody told."""
    timings: Mapping[str, float] = {}
    """Milliseconds per stage: embed, vector, text, rank."""

    @classmethod
    def of(cls, evidence: Evidence, settings: Settings) -> Trace:
        """Return the ranking of `evidence` under `settings`: scored, in order, with those told that pass.

        A column is read after it was filled in: the scores before the gate, that before the order, that before the
        places. `twin` and `beside` are places in the pool, and those in the final order at last.
        """
        rules = Rules.of(evidence, score.tuned(settings))
        side = score.side_of(evidence, rules)
        candidates = score.candidates_of(evidence, side, rules)
        table = candidates.table
        scored = score.score(candidates, [rules])
        # What is by rule has one row here, the first. `order`, `by_worth` and `through` hold numbers of candidates.
        for name in score.SCORED.names or ():
            table[name] = scored[name][0]
        if not rules.decay:
            table["age_days"] = np.nan
        gate = pass_gate(scored["score"], table, [rules])
        floor, relaxed = float(gate.floor[0, 0]), bool(gate.relaxed[0, 0])
        lead = leads(scored["part"], scored["score"], gate.passed | gate.rescued)[0]
        table["leads"], table["keyword"], table["twin"] = lead > 0, gate.keyword, -1
        ordered = groups(table["level"], table, lead)
        by_worth = order = np.array([item for rows, _ in ordered for item in rows.tolist()], np.int64)
        if rules.mmr and len(order) > 1:
            steps = varied(ordered, likeness(evidence, rules.profile, table["row"]), lead, rules)
            # The fields of an MmrStep, each as an array over the steps.
            order, *columns = map(np.array, zip(*steps, strict=True))
            table["relevance"][order], table["similarity"][order], table["twin"][order] = columns
            table["chosen"][order] = np.arange(1, len(order) + 1)
        through = over_gate(order, table, gate.passed[0], gate.rescued[0])
        table["passed"][through] = True
        table["place"][through] = np.arange(1, len(through) + 1)
        table["rescued"] = table["passed"] & gate.rescued[0]
        # A vector-only hit faces minScore even while keyword hits face the relaxed floor.
        table["bar"] = np.where(gate.keyword, floor, rules.min_score)
        table["faded"] = ~table["passed"] & (table["age_factor"] < 1.0) & (table["fresh"] >= table["bar"])
        # These would be recalled without variety; none is displaced where variety did not choose.
        plain = over_gate(by_worth, table, gate.passed[0], table["rescued"])[: rules.results]
        table["displaced"][plain] = (table["place"][plain] > rules.results) & bool(table["chosen"].any())
        candidates = _in_order(candidates, np.concatenate([through, order[~table["passed"][order]]]))
        return cls(evidence, settings, rules, side, candidates, floor, relaxed)

    @property
    def funnel(self) -> dict[str, int]:
        """Return how many chunks were left after each stage, by stage."""
        evidence, table = self.evidence, self.candidates.table

        def count(column: str) -> int:
            """Return how many candidates have a value in a column that is not 0."""
            return int(np.count_nonzero(table[column]))

        return {
            "chunks": len(evidence.refs),
            "files": evidence.files,
            "vector_matches": evidence.embedded if score.compares(evidence, self.rules.profile) else 0,
            "vector_pool": count("vector_rank"),
            "text_matches": self.candidates.text_matches if count("text_rank") else 0,
            "text_pool": count("text_rank"),
            "candidates": len(table),
            "removed_by_decay": count("faded"),
            "over_gate": count("passed"),
            "displaced": count("displaced"),
            "recalled": len(self.recalled),
        }

    def pool(self, rank: Literal["vector_rank", "text_rank"]) -> list[int]:
        """Return the places of the candidates that one side proposed, in the order in which it did."""
        ranks = self.candidates.table[rank]
        # Rank 0, of those that it did not propose, sorts first and is cut off.
        return list(map(int, np.argsort(ranks, kind="stable")[np.count_nonzero(ranks == 0) :]))

    def at_row(self, row: int) -> Candidate | None:
        """Return the candidate that stands at `row` of the evidence, without the others being written out."""
        places = np.flatnonzero(self.candidates.table["row"] == row)
        if not len(places):
            return None
        at = int(places[0])
        return self.recalled[at] if at < len(self.recalled) else self.candidate(at)

    @property
    def keeps_back(self) -> bool:
        """Return whether an agent gets none of the hits, unless it asks for the nearest."""
        return self.level is not None and self.level.level == "nothing holds these words"

    def fresh(self) -> int:
        """Count those that were stopped and would reach minScore without age."""
        fresh = self.candidates.table["fresh"]
        if self.rules.decay and self.rules.profile.age == "add":
            # Where age adds, everything else counts less for it: so the score is made anew without age.
            fresh = score.score(self.candidates, [replace(self.rules, decay=False, recency=0.0)])["score"][0]
        return int(np.count_nonzero(~self.candidates.table["passed"] & (fresh >= self.rules.min_score)))

    def _verdict(self, entry: _Entry) -> Notice:
        """Return what became of a candidate; of those that are not recalled a `margin` is what they are short of.

        One that is `kept_back` is among the nearest of an answer whose level says that nothing holds what was asked: an
        agent gets it only if it asks for the nearest.
        """
        place, limit = entry["place"], self.rules.results
        if place > limit and entry["displaced"] and entry["twin"] >= 0:
            twin, similarity = self.ref(entry["twin"]), entry["similarity"]
            return notice("displaced_by_mmr", twin=twin, similarity=similarity, place=place, limit=limit)
        if place > limit:
            return notice("beyond_limit", place=place, limit=limit)
        if place:
            fields = {"relaxed": self.relaxed, "rescued": entry["rescued"], "kept_back": self.keeps_back}
            return notice("recalled", place=place, **fields)
        floor, relaxed = entry["bar"], self.relaxed and entry["keyword"]
        short = {"floor": floor, "margin": floor - entry["score"]}
        if entry["faded"]:
            age = {"age_days": entry["age_days"], "factor": entry["age_factor"]}
            return notice("lowered_by_decay", **short, **age, relaxed=relaxed)
        return notice("below_min_score", **short, relaxed=relaxed)

    def ref(self, at: int) -> ChunkRef:
        """Return where the chunk of candidate number `at` stands."""
        return self.evidence.refs[int(self.candidates.table["row"][at])]

    def candidate(self, at: int) -> Candidate:
        """Return the record of candidate number `at` with all that made its score."""
        evidence, rules = self.evidence, self.rules
        entry: _Entry = dict(zip(score.CANDIDATE.names or (), self.candidates.table[at].item(), strict=True))
        row, ref = entry["row"], evidence.refs[entry["row"]]
        verdict, text = self._verdict(entry), evidence.texts[ref.rowid]
        annotations = evidence.lexical.annotations.get(row, NOTHING_SAID)
        copies = np.flatnonzero(evidence.shown == row).tolist() if rules.profile.one_place else ()
        # stages[0] measured the whole question, stages[1] part 0 of it: so part -1, for no part, leads to the whole.
        stage = self.candidates.stages[1 + entry["part"]] if self.candidates.stages else None
        is_looked_into = entry["inside"] or verdict.kind == "recalled"
        second = self._second(at, entry, stage)
        chosen = entry["chosen"]
        twin = self.ref(entry["twin"]) if entry["twin"] >= 0 else None
        hits = evidence.lexical.hits if rules.profile.exact_paths else ()
        # NaN, which stands for no number, is the one value that differs from itself.
        columns: list[Any] = [entry[name] if entry[name] == entry[name] else None for name in _NUMBERS]
        importance = trace.Factor("importance", entry["importance"], str(annotations.importance or ""))
        project = trace.Factor("project", entry["project"], annotations.project)
        return Candidate(
            *columns,
            chunk=ref,
            verdict=verdict,
            snippet=jsstring.utf16_head(text, LENGTH),
            line=entry["first_line"] + stage.places(row, text)[0] if stage and is_looked_into else 0,
            last_line=ref.shown(evidence.texts).end_line,
            first_share=rules.share(self.candidates.dated) * (1.0 - rules.second_weight if second else 1.0),
            age_basis=score.ages_of(evidence, rules.profile).date(entry["file"]).basis if rules.decay else "off",
            mmr=trace.MmrPart(entry["relevance"], entry["similarity"], twin, chosen) if chosen else None,
            factors=(importance, project) if "importance" in rules.profile.terms else (),
            lexical=next((hit for hit in hits if hit.row == row), None),
            annotations=annotations,
            provenance=self._provenance(row, ref) if rules.profile.exact_paths else None,
            second=second,
            copies=tuple(evidence.refs[copy].shown(evidence.texts) for copy in copies if copy != row),
        )

    def _second(self, at: int, entry: _Entry, stage: SecondStage | None) -> trace.SecondPart | None:
        """Return what the second `stage` made of the candidate at `at`; None where none ran."""
        rules, candidates = self.rules, self.candidates
        if stage is None or not rules.second_weight > 0:
            return None
        weight = rules.share(candidates.dated) * rules.second_weight
        if not entry["inside"]:
            return trace.SecondPart(weight, 0.0, 0.0)
        inside = np.flatnonzero(candidates.table["inside"]).tolist()
        rows = candidates.table["row"][inside].tolist()
        # A measure is told beside its best among all candidates that were looked into.
        values = stage.measure(rows, [candidates.texts[number] for number in inside])
        columns = values[inside.index(at)].tolist(), values.max(axis=0).tolist(), stage.weights.tolist()
        measures = []
        for measure, value, best, counts in zip(MEASURES, *columns, strict=True):
            share = value / best if best > 0 else 0.0
            part = trace.MeasurePart(measure.name, value, best, share, weight=counts, points=share * counts)
            measures += [part] if counts else []
        _, (first, last) = stage.places(entry["row"], candidates.texts[at])
        return trace.SecondPart(
            weight=weight,
            score=entry["second"],
            points=weight * entry["second"],
            measures=tuple(measures),
            lost=entry["lost"],
            beside=self.ref(entry["beside"]) if entry["lost"] else None,
            window=(entry["first_line"] + first, entry["first_line"] + last),
            asked=stage.query if entry["part"] >= 0 else "",
            leads=entry["leads"],
        )

    def _provenance(self, row: int, ref: ChunkRef) -> dict[str, Any] | None:
        """Return what OpenClaw 2026.9 tells of the origin of a chunk; None where it tells nothing."""
        # Where the index was cut by the rules of another release, its lexical search did not run.
        if ref.source != MEMORY or self.evidence.lexical.words is None:
            return None
        changed_ms = int(self.evidence.notes.mtimes_ns[int(self.evidence.refs.file_of[row])]) // 1_000_000
        origin = origin_class(ref.path, self.evidence.lexical.origins)
        return {"originClass": origin, "sessionKind": "unknown", "observedAt": changed_ms}


_NUMBERS = trace.Numbers.__struct_fields__


def _in_order(candidates: Candidates, order: Rows) -> Candidates:
    """Return the candidates in `order`; `twin` and `beside`, which name another candidate, name its new place."""
    # By old number the new one. The last entry stays -1, so that -1, for none, leads to itself.
    table, place = candidates.table, np.full(len(order) + 1, -1, np.int64)
    place[order] = np.arange(len(order))
    table["twin"], table["beside"] = place[table["twin"]], place[table["beside"]]
    texts = [candidates.texts[at] for at in order.tolist()] if candidates.texts else ()
    return replace(candidates, table=table[order], texts=texts)


class Likeness:
    """Jaccard similarity between token sets: shared tokens over all tokens; two empty sets are the same."""

    def __init__(self, sets: Sequence[frozenset[str]]) -> None:
        # A new token gets the next number.
        number: defaultdict[str, int] = defaultdict(count().__next__)
        columns = [[number[token] for token in items] for items in sets]
        # Columns up to a whole number of 64, because 64 bits are packed into one integer.
        holds = np.zeros((len(sets), -(-len(number) // 64) * 64), np.bool_)
        for row, marked in zip(holds, columns, strict=True):
            row[marked] = True
        # A bit a token, so that a set is compared with all others in some microseconds.
        self._bits = np.packbits(holds, axis=1).view(np.uint64)
        self._sizes = np.array([len(items) for items in sets], dtype=np.float64)

    def row(self, i: int) -> Floats:
        """Return the similarity of set `i` to every set."""
        shared = np.bitwise_count(self._bits & self._bits[i]).sum(axis=1, dtype=np.int64).astype(np.float64)
        union = self._sizes + self._sizes[i] - shared
        return np.where(union > 0, shared / np.maximum(union, 1.0), 1.0)


class MmrStep(NamedTuple):
    """One step of MMR: the item, its relevance, and the nearest chosen before it (-1 for the first)."""

    item: int
    relevance: float
    similarity: float
    nearest: int


def mmr(
    scores: Sequence[float] | Floats, likeness: Callable[[int], Floats], lam: float, lead: Floats | float = 0.0
) -> Iterator[MmrStep]:
    """Yield the order of maximal marginal relevance (Carbonell and Goldstein 1998, as in OpenClaw), all items.

    Relevance is (s - min)/(max - min), 1 when all are equal; each step takes the highest lambda x relevance -
    (1 - lambda) x similarity to the chosen; ties go to the higher score, then to the earlier item. `likeness` gives
    the similarity of an item to each. What has a `lead` is worth as much more.
    """
    raw = np.asarray(scores, dtype=np.float64)
    # `argmax` takes the first among equals: in this order that is the one with the higher score. The arrays below stand
    # in this order, `relevance` apart.
    items = np.argsort(-raw, kind="stable")
    low, spread = raw.min(initial=np.inf), np.ptp(raw) if len(raw) else 0.0
    relevance = (raw - low) / spread if spread > 0 else np.ones(len(raw))
    worth = (lam * relevance + lead)[items]
    nearness, nearest = np.zeros(len(raw)), np.full(len(raw), -1)
    for _ in range(len(raw)):
        at = int(np.argmax(worth - (1.0 - lam) * nearness))
        item = int(items[at])
        yield MmrStep(item, float(relevance[item]), float(nearness[at]), int(nearest[at]))
        # What was chosen is never chosen again.
        worth[at] = -np.inf
        alike = likeness(item)[items]
        nearest[(alike > nearness) | (nearest < 0)] = item
        nearness = np.maximum(nearness, alike)


def varied(ordered: Sequence[tuple[Rows, Floats]], alike: Likeness, lead: Floats, rules: Rules) -> Iterator[MmrStep]:
    """Yield the candidates of `groups` in the order of variety, group after group; `lead` is by candidate."""
    for rows, values in ordered:
        # An item of MMR is a place in the group; `rows` leads from there to the candidate, and is bound now, since the
        # loop goes on before `near` is called.

        def near(at: int, rows: Rows = rows) -> Floats:
            """Return how alike the item at place `at` of the group is to each of the group."""
            return alike.row(int(rows[at]))[rows]

        for step in mmr(values, near, rules.mmr_lambda, lead[rows]):
            nearest = int(rows[step.nearest]) if step.nearest >= 0 else -1
            yield step._replace(item=int(rows[step.item]), nearest=nearest)


class Losers(Sequence[Candidate]):
    """Those not recalled, by falling score; each is written out when somebody looks at it."""

    def __init__(self, ranking: Trace, places: Sequence[int]) -> None:
        self._ranking, self._places = ranking, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, at: int | slice) -> Any:  # noqa: ANN401 - one of them, or several
        places, write = self._places[at], self._ranking.candidate
        return write(places) if isinstance(places, int) else tuple(map(write, places))


# --- many settings at once -----------------------------------------------------------------------------------------

Values = Mapping[str, Scalar]
"""A value for each knob that ranks."""


class Standing(Struct, frozen=True):
    """Where a row would stand: its `place` among those over the gate (0: not over it), of which `limit` are recalled.

    With MMR a place is only known up to the limit; one beyond it is the limit plus one. `score` is -inf for a row that
    is no candidate.
    """

    place: int
    limit: int
    score: float

    @property
    def recalled(self) -> bool:
        """Return whether the row is recalled."""
        return 0 < self.place <= self.limit


class Reranking:
    """Rankings of `evidence` under many settings; what several have in common is worked out once and kept."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._pools: dict[_Pool, tuple[Candidates, Likeness | None]] = {}

    def recalled(self, tried: Sequence[Values]) -> list[tuple[int, ...]]:
        """Return the rows that are recalled under each of `tried`, in their order."""
        return [tuple(rows[order[: rules.results]].tolist()) for rules, rows, order, _, _ in self._ranked(tried)]

    def standings(self, row: int, tried: Sequence[Values]) -> list[Standing]:
        """Return where `row` stands under each of `tried`."""
        result = []
        for rules, rows, order, scores, passed in self._ranked(tried):
            # The number of the candidate at `row`; `order` has the numbers of those over the gate.
            candidate = rows.tolist().index(row) if row in rows else -1
            place = order.index(candidate) + 1 if candidate in order else 0
            if candidate >= 0 and passed[candidate] and not place:
                # Variety stops at the limit: what is over the gate and not among the chosen follows them.
                place = len(order) + 1
            result.append(Standing(place, rules.results, float(scores[candidate]) if candidate >= 0 else -math.inf))
        return result

    def _ranked(self, tried: Sequence[Values]) -> list[_Ranked]:
        """Return a ranking by each of `tried`, in their order; those that have the same candidates are made at once."""
        rules = [Rules.of(self._evidence, values) for values in tried]
        # The numbers of the rules that have a pool in common.
        together: dict[_Pool, list[int]] = defaultdict(list)
        for number, rule in enumerate(rules):
            together[rule.profile.name, rule.mode, rule.limit, rule.mmr].append(number)
        result: dict[int, _Ranked] = {}
        for pool, numbers in together.items():
            same = [rules[number] for number in numbers]
            if pool not in self._pools:
                candidates = score.candidates_of(self._evidence, score.side_of(self._evidence, same[0]), same[0])
                alike = likeness(self._evidence, same[0].profile, candidates.table["row"]) if same[0].mmr else None
                self._pools[pool] = candidates, alike
            candidates, alike = self._pools[pool]
            scored = score.score(candidates, same)
            gate = pass_gate(scored["score"], candidates.table, same)
            rows, orders = [candidates.table["row"]] * len(same), _orders(candidates.table, scored, same, gate, alike)
            ranked = zip(same, rows, orders, scored["score"], gate.passed, strict=True)
            result.update(zip(numbers, ranked, strict=True))
        return [result[number] for number in range(len(tried))]


_Pool = tuple[str, trace.Mode, int, bool]
"""What decides on the candidates and how their order is made: profile, mode, limit, variety."""
_Ranked = tuple[Rules, Rows, list[int], Floats, Flags]
"""The rules of a ranking, the rows of its candidates, which of them are over the gate in order, all scores, and which
pass the gate, rescued ones apart."""


def _orders(
    table: Table, scored: Table, rules: Sequence[Rules], gate: Gate, alike: Likeness | None
) -> Iterator[list[int]]:
    """Yield the candidates over the gate in their order, by each of `rules`.

    `alike` is None without MMR. With it only as many are told as are recalled, since each further one costs a look at
    all before it. Under OpenClaw 2026.9 those that the gate rescued come last, without what repeats one that passed.
    """
    lead = leads(scored["part"], scored["score"], gate.passed)

    def order(number: int) -> Iterator[int]:
        """Yield all candidates in their order by rule number `number`; with MMR as far as somebody asks."""
        ordered = groups(table["level"], scored[number], lead[number])
        if alike is None:
            return (item for rows, _ in ordered for item in rows.tolist())
        return (step.item for step in varied(ordered, alike, lead[number], rules[number]))

    if not rules[0].profile.exact_paths:
        for number, (rule, passed) in enumerate(zip(rules, gate.passed, strict=True)):
            yield list(islice(filter(passed.__getitem__, order(number)), rule.results if rule.mmr else None))
        return
    # No knob of this profile changes a score, so the order by the first of `rules` is that by all.
    whole = np.fromiter(order(0), np.int64)
    for passed, rescued in zip(gate.passed, gate.rescued, strict=True):
        yield over_gate(whole, table, passed, rescued).tolist()
