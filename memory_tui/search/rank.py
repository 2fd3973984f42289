"""Ranking: evidence becomes a trace under one set of settings."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import jsstring, profiles, tokens
from memory_tui.notices import Notice, notice, other_vectors
from memory_tui.profiles import OWN, Profile
from memory_tui.search import formulas, lexical_2026_9
from memory_tui.search.evidence import Evidence, Flags, KeywordSide, Rows
from memory_tui.search.excerpts import Snippet, head, window
from memory_tui.search.formulas import MOST_CANDIDATES, Floats
from memory_tui.search.level import level_of
from memory_tui.search.score import (
    SCORED,
    Candidates,
    Likeness,
    Rules,
    ages_of,
    candidates_of,
    column,
    compares,
    groups,
    keyword_hits,
    leads,
    mode_of,
    ranges,
    score,
    second_part,
    side_of,
)
from memory_tui.search.trace import (
    AllBelowGate,
    BelowMinScore,
    BeyondLimit,
    BlankQuery,
    Candidate,
    ChunkRef,
    DisplacedByMmr,
    EmptyIndex,
    EmptyReason,
    Factor,
    Funnel,
    LexicalPart,
    LoweredByDecay,
    MmrPart,
    Mode,
    NothingMatched,
    NoUsableWord,
    Numbers,
    Provenance,
    Recalled,
    Table,
    Trace,
    Verdict,
)
from memory_tui.settings import Settings
from memory_tui.tokens import as_asked, left_out
from memory_tui.workspace.annotations import NOTHING_SAID, origin_class
from memory_tui.workspace.roots import MEMORY


def not_copied(evidence: Evidence, mode: Mode, profile: Profile) -> Iterator[Notice]:
    """Yield what OpenClaw itself would not have answered to this query."""
    if not profile.faults:
        return
    # A question that is kept back, or a provider that fails, leaves the vectors where they are.
    if mode == "keywords only" and evidence.provider == "none":
        yield notice("emptied_there", profile=profile.name)
    if evidence.first:
        yield notice("first_search_there", profile=profile.name)


_ASCII_TOKENS = re.compile(r"[a-z0-9_]+")


def mmr_tokens(profile: Profile, text: str) -> frozenset[str]:
    """Return what MMR compares of a chunk: the ASCII words of its snippet (OpenClaw), or its words and bigrams."""
    if profile.exact_paths:
        return lexical_2026_9.mmr_tokens(head(text).text)
    snippet = head(text).text.lower()
    if profile.snippet == "head":
        return frozenset(_ASCII_TOKENS.findall(snippet))
    return frozenset(tokens.WORD.findall(tokens.segmented(snippet)))


def likeness(evidence: Evidence, profile: Profile, rows: Rows) -> Likeness:
    """Return how alike the texts at `rows` are by the words that `profile` compares."""
    rowids = evidence.refs.rowids[rows].tolist()
    return Likeness([mmr_tokens(profile, evidence.texts.get(rowid, "")) for rowid in rowids])


def rank(evidence: Evidence, settings: Settings) -> Trace:
    """Return `evidence` under `settings`: a frozen record with a verdict for every candidate."""
    began = time.perf_counter()
    mode = mode_of(evidence, settings)
    rules = Rules.of(settings, mode, evidence.known_share)
    side = side_of(evidence, mode, rules)
    ranking = Ranking.of(evidence, side, mode, rules)
    candidates, table = ranking.candidates, ranking.table
    stages, of_its_days = candidates.stages, bool(table["named"].any())
    # Where vectors answer without full-text search nobody knows which words a window holds.
    knows = bool(stages) and (evidence.full_text or evidence.cosine is None)
    level = level_of(stages[0].signals, settings, evidence.unrelated, of_its_days=of_its_days) if knows else None
    ranking = replace(ranking, keeps_back=level is not None and level.keeps_back)
    count = min(rules.results, int(np.count_nonzero(table["passed"])))
    recalled = tuple(ranking.candidate(place) for place in range(count))
    losers = (count + np.argsort(-table["score"][count:], kind="stable")).tolist()
    empty = None
    if not recalled:
        empty = empty_reason(evidence, side, mode, table["score"], rules.min_score, ranking.fresh())
    return Trace(
        query=evidence.query,
        now=evidence.now,
        mode=mode,
        profile=rules.profile.name,
        settings=settings,
        provider=evidence.provider,
        model=evidence.model,
        generation=evidence.generation,
        plan=replace(side.plan, elsewhere=evidence.elsewhere),
        candidate_limit=rules.limit,
        vector_scale=candidates.vector_scale,
        text_scale=candidates.text_scale,
        floor=ranking.floor,
        funnel=_funnel(ranking),
        recalled=recalled,
        lost=Losers(ranking, losers),
        losers=losers,
        candidates=table,
        chunks=evidence.refs.take(table["row"]),
        unsearchable=evidence.unsearchable,
        notices=(
            *_as_told(evidence.notices, rules),
            *_other_chunks(evidence, rules.profile),
            *(other_vectors(rules.profile.name, evidence.provider) if mode != "keywords only" else ()),
            *_never_recalled(evidence, rules.profile),
            *_weights_notice(settings, rules),
            *(_meaning_alone(side, mode, ranking, recalled) or _waiting(evidence, empty)),
            *_words_alone(evidence, rules, recalled),
            *_no_table(candidates),
            *not_copied(evidence, mode, rules.profile),
        ),
        empty=empty,
        nearest_by=evidence.nearest_by,
        timings={**evidence.timings, "rank": (time.perf_counter() - began) * 1000},
        who=replace(evidence.who, mode=mode) if evidence.who else None,
        uuid=evidence.uuid,
        level=level,
    )


def can_rank(evidence: Evidence, name: str) -> bool:
    """Return whether `evidence` has what the profile `name` goes by: 2026.9 finds words in chunks of its own alone."""
    of = profiles.get(name)
    return (evidence.any_word or of.join == "AND") and (not of.exact_paths or evidence.chunking in ("", of.chunking))


def _as_told(notices: Sequence[Notice], rules: Rules) -> Iterator[Notice]:
    """Yield those of `notices` that are true under `rules`, as they are true of the release."""
    for each_item in notices:
        elsewhere = each_item.kind == "setting_ignored" and each_item.fields["profile"] != rules.profile.name
        if each_item.kind == "zero_vectors" and rules.profile.exact_paths:
            yield notice("zero_vectors", count=each_item.fields["count"], profile=rules.profile.name)
        elif elsewhere or (each_item.kind == "trust_unread" and not rules.profile.exact_paths):
            continue
        elif rules.corrects or each_item.kind not in ("read_as_time", "searched_otherwise", "asked_in_parts"):
            yield each_item


def _other_chunks(evidence: Evidence, profile: Profile) -> tuple[Notice, ...]:
    """Say that the index was cut by the rules of another release than the one whose rules rank."""
    if not evidence.chunking or profile.name == OWN or evidence.chunking == profile.chunking:
        return ()
    return (notice("cut_otherwise", chunking=evidence.chunking, profile=profile.name),)


def _never_recalled(evidence: Evidence, profile: Profile) -> tuple[Notice, ...]:
    """Return chunks that were found and are never recalled, because their project marker cannot be read."""
    if not profile.exact_paths:
        return ()
    result = {*evidence.nearest.tolist(), *(hit.row for hit in evidence.lexical.hits)}
    never = sorted(result & lexical_2026_9.dropped(evidence.lexical.annotations))
    return (
        (
            notice(
                "never_recalled_there",
                profile=profile.name,
                citations=tuple(evidence.refs[row].citation for row in never),
            ),
        )
        if never
        else ()
    )


def _meaning_alone(
    side: KeywordSide, mode: Mode, ranking: Ranking, recalled: tuple[Candidate, ...]
) -> tuple[Notice, ...]:
    """Say that no note holds a word that was looked for: something is always nearest, however far it is."""
    any_word = ranking.rules.profile.join == "OR"
    applies = any_word and mode == "hybrid" and side.plan.words and not ranking.candidates.text_matches
    if not applies or not recalled:
        return ()
    near = sum((hit.cosine or 0.0) > 0 for hit in recalled)
    plan = replace(side.plan, elsewhere=ranking.evidence.elsewhere)
    return (
        notice(
            "found_by_meaning_alone",
            plan=plan,
            hits=len(recalled),
            near=near,
            dated=sum(hit.date_points > 0 for hit in recalled),
        ),
    )


def _waiting(evidence: Evidence, empty: EmptyReason | None) -> tuple[Notice, ...]:
    """Say that a note which waits holds a word that no indexed one does; an answer without a match says so itself."""
    by_itself = isinstance(empty, NothingMatched)
    return (notice("waiting_holds", elsewhere=evidence.elsewhere),) if evidence.elsewhere.held and not by_itself else ()


def _words_alone(evidence: Evidence, rules: Rules, recalled: tuple[Candidate, ...]) -> tuple[Notice, ...]:
    """That there are vectors, but the model made none of this query, too little to count, or none across languages."""
    if evidence.language and rules.profile.second_stage:
        return (notice("language_unknown", language=evidence.language, known=evidence.known_share),)
    return ((notice("words_unknown", recalled=len(recalled)),) if evidence.pointless else ()) + _not_translated(
        evidence, rules
    )


def _not_translated(evidence: Evidence, rules: Rules) -> tuple[Notice, ...]:
    """That words in another script than the Latin one are in no note, and have no meaning in another language here."""
    spelled = {each_item.asked for each_item in evidence.recommended.plan.corrections} if rules.corrects else ()
    words = (word for word in tokens.WORD.findall(evidence.query) if word not in spelled)
    foreign = dict.fromkeys(word for word in words if _LETTERS.search(word))
    if evidence.provider != "builtin" or not foreign:
        return ()
    sides = (evidence.openclaw, evidence.recommended)
    is_matched = any(count for side in sides for word, count in side.frequency.items() if _LETTERS.search(word))
    return () if is_matched else (notice("not_translated", words=tuple(foreign)),)


_LETTERS = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
"""A letter of another script than the Latin one."""


def _no_table(candidates: Candidates) -> tuple[Notice, ...]:
    """Say that lines and windows were compared by their words alone."""
    problems = [stage.problem for stage in candidates.stages if stage.problem]
    return (notice("passages_by_words", problem=problems[0]),) if problems else ()


def _weights_notice(settings: Settings, rules: Rules) -> tuple[Notice, ...]:
    """Return what became of weights that do not add up to 1."""
    vector, text = settings.values["query.hybrid.vectorWeight"], settings.values["query.hybrid.textWeight"]
    if abs(float(vector.value) + float(text.value) - 1.0) < 1e-6:
        return ()
    fields = {"vector": float(vector.value), "vector_origin": vector.origin}
    fields |= {"text": float(text.value), "text_origin": text.origin}
    counts = {"vector_counts": rules.vector_weight, "text_counts": rules.text_weight}
    return (notice("uneven_weights", **fields, **counts),)


class Gate(Struct, frozen=True):
    """Which candidates pass under each rule: arrays of (rules, candidates), or of (rules, 1)."""

    passed: Flags
    floor: Floats
    relaxed: Flags
    """Whether the relaxed floor is in force, because no score reaches minScore."""
    keyword: Flags
    """Over candidates: those that the relaxed floor lets through; none where it is not in force."""
    rescued: Flags
    """Keyword hits that follow those over minScore, although they are below it (OpenClaw 2026.9)."""


def pass_gate(scores: Floats, table: Table, rules: Sequence[Rules], mode: Mode) -> Gate:
    """Apply OpenClaw's selection: scores of at least minScore, else the keyword hits over the relaxed floor."""
    if rules[0].profile.rescues:
        return _rescue(scores, table, rules, mode)
    floor = column([rule.min_score for rule in rules])
    passed = scores >= floor
    hybrid = mode == "hybrid"
    relaxed = column([hybrid and rule.profile.relaxed_floor for rule in rules]) > 0
    relaxed &= ~passed.any(axis=1, keepdims=True)
    hits = keyword_hits(table) if relaxed.any() else np.zeros(scores.shape[1], dtype=np.bool_)
    relaxed &= hits.any()
    floor = np.where(relaxed, np.minimum(floor, column([rule.text_weight for rule in rules])), floor)
    return Gate(np.where(relaxed, hits & (scores >= floor), passed), floor, relaxed, hits, np.zeros_like(passed))


def _rescue(scores: Floats, table: Table, rules: Sequence[Rules], mode: Mode) -> Gate:
    """Apply the selection of 2026.9: those over minScore, then keyword hits without a vector score; without any of the
    former every keyword hit that is not below 0 (sections 7.4 and 7.8 of the profile's specification).
    """
    floor = column([rule.min_score for rule in rules])
    passed = scores >= floor
    relaxed = np.asarray(~passed.any(axis=1, keepdims=True))
    hits = keyword_hits(table) if mode != "vectors only" else np.zeros(scores.shape[1], dtype=np.bool_)
    relaxed &= hits.any()
    room = np.maximum(MOST_CANDIDATES, column([rule.results for rule in rules]))
    open_places = np.count_nonzero(passed, axis=1)[:, None] < room
    rescued = ~passed & hits & (table["vector"] == 0.0) & ~relaxed & open_places & (mode == "hybrid")
    through = np.where(relaxed, hits & (scores >= 0.0), passed | rescued)
    return Gate(
        through, np.where(relaxed, 0.0, floor), relaxed, hits if relaxed.any() else np.zeros_like(hits), rescued
    )


def without_repeats(order: Sequence[int], ranges: Rows, strict: Flags, rescued: Flags) -> Flags:
    """Return `rescued` without those on the lines of a `strict` hit or of one before it in `order` (section 7.8)."""
    seen, first = set(ranges[strict].tolist()), np.zeros_like(rescued)
    for item in order:
        if rescued[item] and ranges[item] not in seen:
            seen.add(int(ranges[item]))
            first[item] = True
    return first


def empty_reason(
    evidence: Evidence, side: KeywordSide, mode: Mode, scores: Floats, min_score: float, fresh: int
) -> EmptyReason:
    """Return why nothing was recalled, given all `scores`; an empty answer must never look like an empty memory.

    `fresh` candidates would reach minScore without age.
    """
    if not jsstring.trim(evidence.query):
        return BlankQuery()
    if evidence.chunks == 0:
        pending = sum(item.state == "pending" for item in evidence.unsearchable)
        unreadable = sum(
            item.state in ("failed", "changed while read", "missing root") for item in evidence.unsearchable
        )
        return EmptyIndex(evidence.files, pending, unreadable)
    if len(scores):
        return AllBelowGate(len(scores), float(scores.max()), min_score, fresh)
    if mode == "nothing":
        return NoUsableWord(left_out(side.plan.dropped, evidence.query), evidence.pointless)
    missing = as_asked((word for word in side.plan.words if side.frequency.get(word, 1) == 0), evidence.query)
    return NothingMatched(missing, "AND" if side is evidence.openclaw else "OR", evidence.elsewhere)


class Ranking(Struct, frozen=True):
    """One ranking: `table` has the candidates in their final order, those that pass the gate first."""

    evidence: Evidence
    side: KeywordSide
    mode: Mode
    rules: Rules
    candidates: Candidates
    table: Table
    floor: float
    relaxed: bool
    keeps_back: bool = False
    """Whether the level of the answer keeps its hits back."""

    @classmethod
    def of(cls, evidence: Evidence, side: KeywordSide, mode: Mode, rules: Rules) -> Ranking:
        """Score the candidates, put them in order, tell those that pass."""
        candidates = candidates_of(evidence, side, mode, rules)
        table, scored = candidates.table.copy(), score(candidates, [rules])
        for name in SCORED.names or ():
            table[name] = scored[name][0]
        if not rules.decay:
            table["age_days"] = np.nan
        passing = pass_gate(scored["score"], table, [rules], mode)
        lead = leads(scored["part"], scored["score"], passing.passed)[0]
        table["leads"], table["keyword"], table["twin"] = lead > 0, passing.keyword, -1
        passed, rescued = passing.passed[0], passing.rescued[0]
        floor, relaxed = float(passing.floor[0, 0]), bool(passing.relaxed[0, 0])
        ordered = groups(table, table["merit"] + lead, table["score"] + lead)
        plain = order = np.concatenate([*ordered, np.empty(0, dtype=np.int64)])
        if rules.mmr and len(order) > 1:
            order = _varied(evidence, table, ordered, lead, rules)
        if rescued.any():
            strict = passed & ~rescued
            rescued = without_repeats(order.tolist(), ranges(table), strict, rescued)
            passed = strict | rescued
        order, plain = (np.concatenate([rows[~rescued[rows]], rows[rescued[rows]]]) for rows in (order, plain))
        table["passed"], table["rescued"] = passed, rescued
        # A vector-only hit faces minScore even while keyword hits face the relaxed floor.
        table["bar"] = np.where(passing.keyword, floor, rules.min_score)
        table["faded"] = ~passed & (table["age_factor"] < 1.0) & (table["fresh"] >= table["bar"])
        through = order[passed[order]]
        table["place"][through] = np.arange(1, len(through) + 1)
        # Without variety these would be recalled.
        first = plain[passed[plain]][: rules.results]
        table["displaced"][first] = (table["place"][first] > rules.results) & bool(table["chosen"].any())
        order = np.concatenate([through, order[~passed[order]]])
        place = np.empty(len(order) + 1, np.int64)
        place[order], place[-1] = np.arange(len(order)), -1
        table["twin"], table["beside"] = place[table["twin"]], place[table["beside"]]
        texts = [candidates.texts[at] for at in order.tolist()] if candidates.texts else ()
        candidates = replace(candidates, table=candidates.table[order], texts=texts)
        return cls(evidence, side, mode, rules, candidates, table[order], floor, relaxed)

    def fresh(self) -> int:
        """Count those that were stopped and would reach minScore without age."""
        fresh = self.table["fresh"]
        if self.rules.decay and self.rules.profile.age == "add":
            # Where age adds, it takes a share of the score from all else.
            fresh = score(self.candidates, [replace(self.rules, decay=False)])["score"][0]
        return int(np.count_nonzero(~self.table["passed"] & (fresh >= self.rules.min_score)))

    def verdict(self, at: int) -> Verdict:
        """Return what became of the candidate at `at`."""
        entry, limit = self.table[at], self.rules.results
        place, relaxed = int(entry["place"]), bool(self.relaxed and entry["keyword"])
        if place > limit and entry["displaced"] and entry["twin"] >= 0:
            twin = self.evidence.refs[int(self.table["row"][entry["twin"]])]
            return DisplacedByMmr(twin, float(entry["similarity"]), place, limit)
        if place > limit:
            return BeyondLimit(place, limit)
        if place:
            return Recalled(place, self.relaxed, bool(entry["rescued"]), self.keeps_back)
        bar = float(entry["bar"])
        margin = bar - float(entry["score"])
        if entry["faded"]:
            return LoweredByDecay(bar, margin, float(entry["age_days"]), float(entry["age_factor"]), relaxed)
        return BelowMinScore(bar, margin, relaxed)

    def candidate(self, at: int) -> Candidate:
        """Write out the candidate at `at` with all that made its score."""
        evidence, rules, entry = self.evidence, self.rules, self.table[at]
        row, verdict = int(entry["row"]), self.verdict(at)
        ref = evidence.refs[row]
        text = evidence.texts[ref.rowid]
        snippet = self._snippet(text, isinstance(verdict, Recalled))
        # OpenClaw counts what follows the last line end of a note as one more line.
        blank_end = ref.source == MEMORY and text.endswith("\n")
        annotations = evidence.lexical.annotations.get(row, NOTHING_SAID)
        second = second_part(self.candidates, self.table, at, rules, evidence.refs)
        columns: list[Any] = [None if value != value else value for value in entry[list(_NUMBERS)].item()]
        factors = {"importance": str(annotations.importance or ""), "project": annotations.project}
        return Candidate(
            *columns,
            chunk=ref,
            verdict=verdict,
            snippet=snippet.text,
            snippet_line=min(ref.end_line, ref.start_line + snippet.lines_before),
            last_line=max(ref.start_line, ref.end_line - blank_end),
            vector_weight=rules.vector_weight,
            text_weight=rules.text_weight,
            first_share=rules.share(self.candidates.dated) * (1.0 - rules.second_weight if second else 1.0),
            age_basis=ages_of(evidence, rules.profile).basis(int(entry["file"])) if rules.decay else "off",
            mmr=self._choice(entry),
            factors=tuple(
                Factor(term, float(entry[term]), factors[term])
                for term in ("importance", "project")
                if term in rules.profile.terms
            ),
            lexical=self._lexical(row),
            annotations=annotations,
            provenance=self._provenance(row, ref),
            second=second,
        )

    def _choice(self, entry: np.void) -> MmrPart | None:
        if not entry["chosen"]:
            return None
        twin = self.evidence.refs[int(self.table["row"][entry["twin"]])] if entry["twin"] >= 0 else None
        return MmrPart(float(entry["relevance"]), float(entry["similarity"]), twin, int(entry["chosen"]))

    def _provenance(self, row: int, ref: ChunkRef) -> Provenance | None:
        evidence = self.evidence
        # Where the index was cut by the rules of another release, its lexical search did not run.
        if not self.rules.profile.exact_paths or ref.source != MEMORY or not evidence.lexical.searches:
            return None
        changed_ms = int(evidence.notes.mtimes_ns[int(evidence.refs.file_of[row])]) // 1_000_000
        return Provenance(origin_class(ref.path, evidence.lexical.origins), "unknown", changed_ms)

    def _lexical(self, row: int) -> LexicalPart | None:
        """Return how words and paths found a candidate; None where they did not, or no such side counts."""
        hits = self.evidence.lexical.hits if self.rules.profile.exact_paths else ()
        hit = next((hit for hit in hits if hit.row == row), None)
        if hit is None:
            return None
        term = self.evidence.lexical.searches[hit.term].term if hit.term else ""
        score = hit.text_score if np.isnan(hit.bm25) else float(formulas.saturated(np.array(hit.bm25)))
        return LexicalPart(term, hit.body, score, hit.text_score, hit.path_score, hit.level, *hit.gain)

    def _snippet(self, text: str, recalled: bool) -> Snippet:
        if not recalled or self.rules.profile.snippet == "head":
            return head(text)
        chunks, frequency = self.evidence.chunks, self.side.frequency
        return window(text, {word: np.log1p(chunks / (1 + frequency.get(word, 0))) for word in self.side.plan.words})


_NUMBERS = Numbers.__struct_fields__


def _varied(evidence: Evidence, table: Table, ordered: list[Rows], lead: Floats, rules: Rules) -> Rows:
    """Put each group of candidates in the order of variety; fills in what made each choice."""
    alike = likeness(evidence, rules.profile, table["row"])
    order: list[int] = []
    for group in ordered:
        values = table["merit" if table["level"][group[0]] else "score"][group]
        for step in formulas.mmr(values, alike.among(group), rules.mmr_lambda, lead[group]):
            item = int(group[step.item])
            order.append(item)
            table["relevance"][item], table["similarity"][item] = step.relevance, step.similarity
            table["twin"][item] = group[step.nearest] if step.nearest >= 0 else -1
            table["chosen"][item] = len(order)
    return np.array(order, dtype=np.int64)


class Losers(Sequence[Candidate]):
    """Those not recalled, by falling score; each is written out when somebody looks at it."""

    def __init__(self, ranking: Ranking, places: Sequence[int]) -> None:
        self._ranking, self._places = ranking, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, at: int | slice) -> Candidate | tuple[Candidate, ...]:
        if isinstance(at, slice):
            return tuple(map(self._ranking.candidate, self._places[at]))
        return self._ranking.candidate(self._places[at])


def _funnel(ranking: Ranking) -> Funnel:
    evidence, table = ranking.evidence, ranking.table
    passed = int(np.count_nonzero(table["passed"]))
    by_words = int(np.count_nonzero(table["text_rank"]))
    return Funnel(
        chunks=evidence.chunks,
        files=evidence.files,
        vector_matches=evidence.embedded if compares(evidence, ranking.rules.profile) else 0,
        vector_pool=int(np.count_nonzero(table["vector_rank"])),
        text_matches=ranking.candidates.text_matches if by_words else 0,
        text_pool=by_words,
        candidates=len(table),
        removed_by_decay=int(np.count_nonzero(table["faded"])),
        over_gate=passed,
        displaced=int(np.count_nonzero(table["displaced"])),
        recalled=min(passed, ranking.rules.results),
    )
