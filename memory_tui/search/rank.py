"""Ranking: evidence becomes a trace under one set of settings."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core import jsstring, profiles, tokens
from memory_tui.core.profiles import OWN, Profile
from memory_tui.core.settings import Settings
from memory_tui.notices import Notice, notice, other_vectors
from memory_tui.search import formulas, gate, rules_2026_9
from memory_tui.search.answer_level import level_of
from memory_tui.search.evidence import Evidence, Flags, KeywordSide, Rows
from memory_tui.search.formulas import Floats, MmrStep
from memory_tui.search.rules_2026_9 import Hit
from memory_tui.search.score import (
    Components,
    Rules,
    Scores,
    Similarity,
    age_of,
    compares,
    components,
    groups,
    keyword_hits,
    leads,
    mode_of,
    pools,
    ranges,
    score,
    second_part,
    side_of,
)
from memory_tui.search.trace import (
    AgePart,
    Candidate,
    ChunkRef,
    EmptyReason,
    Factor,
    Funnel,
    Lazy,
    LexicalPart,
    Losers,
    MmrPart,
    Mode,
    NothingMatched,
    Provenance,
    Recalled,
    TextPart,
    Trace,
    VectorPart,
)
from memory_tui.workspace.annotations import NOTHING_SAID, origin_class
from memory_tui.workspace.roots import MEMORY

LENGTH = 700
"""UTF-16 units of a snippet (OpenClaw)."""


class Snippet(Struct, frozen=True):
    """The text shown, and how many lines of the chunk stand before it."""

    text: str
    lines_before: int


def head(text: str) -> Snippet:
    """The first 700 UTF-16 units, never half a character (OpenClaw)."""
    return Snippet(jsstring.utf16_head(text, LENGTH), 0)


def matches(text: str, weights: Mapping[str, float]) -> list[tuple[int, str]]:
    """Where the words of `weights` stand in `text`, as (character, word) in order; words match by stem."""
    stem_of = {stem: word for word in weights for stem in tokens.word_stems(word)}
    found: list[tuple[int, str]] = []
    data = text.encode("utf-8", "replace")
    byte, char = 0, 0
    for stem, start, _ in tokens.stems(text):
        if stem in stem_of:
            char += len(data[byte:start].decode("utf-8", "replace"))
            byte = start
            found.append((char, stem_of[stem]))
    # unicode61 sees a whole clause of Chinese as one word, so bigrams are looked up as they are.
    for gram in (word for word in weights if tokens.is_cjk(word)):
        at = text.find(gram)
        while at >= 0:
            found.append((at, gram))
            at = text.find(gram, at + 1)
    return sorted(found)


_WITHIN_WORD = re.compile(r"[^\W\u2e80-\uffff]{2}")
"""Two characters of one word, where words end with a space."""


def window(text: str, weights: Mapping[str, float]) -> Snippet:
    """700 UTF-16 units around the words that say most: the window with the greatest sum of distinct word weights."""
    units = jsstring.utf16_places(text)
    if units[-1] <= LENGTH:
        return Snippet(text, 0)
    found = [(units[at], word) for at, word in matches(text, weights)]
    if not found:
        return head(text)
    best, span = -1.0, (0, 0)
    held: dict[str, int] = {}
    value, end = 0.0, 0
    for i, (start, first) in enumerate(found):
        # The window moves along the words: each enters it once and leaves it once.
        while end < len(found) and (end < i or found[end][0] + jsstring.utf16_len(found[end][1]) <= start + LENGTH):
            word = found[end][1]
            held[word] = held.get(word, 0) + 1
            end += 1
        # A repeated word counts a little, so that of two windows with the same words the denser one wins.
        value = sum(weights[word] for word in held) + 0.01 * (end - i)
        if value > best:
            last = found[end - 1] if end > i else (start, "")
            best, span = value, (start, last[0] + jsstring.utf16_len(last[1]))
        if end > i:
            held[first] -= 1
            if not held[first]:
                del held[first]
    room = LENGTH - (span[1] - span[0])
    line = text.rfind("\n", 0, bisect_left(units, span[0])) + 1
    # Begin with the line of the first word when it is near, otherwise where the room allows.
    middle = max(0, min(span[0] - room // 2, units[-1] - LENGTH))
    start = line if span[0] - units[line] <= room else bisect_left(units, middle)
    if start and _WITHIN_WORD.match(text, start - 1):
        start = next((at + 1 for at in range(start, bisect_left(units, span[0])) if text[at].isspace()), start)
    return Snippet(jsstring.utf16_head(text[start:], LENGTH), text.count("\n", 0, start))


def not_copied(evidence: Evidence, mode: Mode, profile: Profile) -> Iterator[Notice]:
    """What OpenClaw itself would not have answered to this query."""
    if not profile.faults:
        return
    # A question that is kept back, or a provider that fails, leaves the vectors where they are.
    if mode == "keywords only" and evidence.provider == "none":
        yield notice("emptied_there", profile=profile.name)
    if evidence.first:
        yield notice("first_search_there", profile=profile.name)


_ASCII_TOKENS = re.compile(r"[a-z0-9_]+")


def mmr_tokens(profile: Profile, text: str) -> frozenset[str]:
    """What MMR compares of a chunk: the ASCII words of its snippet (OpenClaw), or its words and bigrams."""
    if profile.exact_paths:
        return rules_2026_9.mmr_tokens(head(text).text)
    shown = head(text).text.lower()
    if profile.snippet == "head":
        return frozenset(_ASCII_TOKENS.findall(shown))
    return frozenset(tokens.WORD.findall(tokens.segmented(shown)))


def mmr_words(evidence: Evidence, profile: Profile) -> Callable[[int], frozenset[str]]:
    """What MMR compares of each row of `evidence`, kept for rankings and explanations of the same evidence."""
    found: dict[int, frozenset[str]] = evidence.reusable.setdefault(("mmr", profile.snippet, profile.exact_paths), {})
    texts, refs = evidence.texts, evidence.refs

    def of(row: int) -> frozenset[str]:
        if row not in found:
            found[row] = mmr_tokens(profile, texts.get(refs[row].rowid, ""))
        return found[row]

    return of


def first_varied(
    parts: Components,
    scores: Scores,
    own: Rows,
    likeness: Similarity,
    rules: Rules,
    enough: Callable[[int], bool],
) -> list[MmrStep]:
    """The first steps of MMR over the group `own`, until there are `enough`."""
    items = own.tolist()
    return formulas.mmr_head(
        _valued(parts, scores, own),
        lambda i, j: likeness.of(items[i], items[j]),
        rules.mmr_lambda,
        lambda i: enough(items[i]),
    )


def _valued(parts: Components, scores: Scores, own: Rows) -> Floats:
    values: Floats = (scores.merit if len(own) and parts.level[own[0]] else scores.total)[0, own]
    return values


def rank(evidence: Evidence, settings: Settings) -> Trace:
    """`evidence` under `settings`: a frozen record with a verdict for every candidate."""
    began = time.perf_counter()
    mode = mode_of(evidence, settings)
    rules = Rules.of(settings, mode, evidence.known)
    side = side_of(evidence, mode, rules)
    ranking = _Ranking(evidence, side, mode, rules)
    numbers, decided = ranking.numbers, ranking.decided
    stages, of_its_days = numbers.stages, bool(numbers.named.any())
    # Where vectors answer without full-text search nobody knows which words a window holds.
    knows = bool(stages) and (evidence.full_text or evidence.cosine is None)
    level = level_of(stages[0].signals, settings, evidence.unrelated, of_its_days=of_its_days) if knows else None
    decided.keeps_back = level is not None and level.keeps_back
    recalled = tuple(ranking.candidate(place) for place in decided.recalled)
    rows = numbers.rows[ranking.order[ranking.losers()]].tolist()
    nearest, matched = pools(evidence, side, mode, rules.limit)
    best = float(ranking.scores.total.max()) if len(numbers.rows) else None
    empty = None if recalled else gate.empty_reason(evidence, side, mode, decided, best, ranking.fresh())
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
        vector_scale=numbers.vector_scale,
        text_scale=numbers.text_scale,
        floor=decided.floor,
        funnel=_funnel(ranking, len(nearest), matched),
        recalled=recalled,
        lost=Losers(rows, lambda i: ranking.whole.at_row(rows[i])),
        unsearchable=evidence.unsearchable,
        notices=(
            *_as_told(evidence.notices, rules),
            *_other_chunks(evidence, rules.profile),
            *(other_vectors(rules.profile.name, evidence.provider) if mode != "keywords only" else ()),
            *_never_recalled(evidence, rules.profile),
            *_weights_notice(settings, rules),
            *(_meaning_alone(side, mode, ranking, recalled) or _waiting(evidence, empty)),
            *_words_alone(evidence, rules, recalled),
            *_no_table(numbers),
            *not_copied(evidence, mode, rules.profile),
        ),
        empty=empty,
        keyword_ranks=Lazy(len(matched), lambda i: ranking.keyword_rank(int(matched[i]))),
        vector_ranks=Lazy(len(nearest), lambda i: ranking.vector_rank(int(nearest[i]))),
        nearest_by=evidence.nearest_by,
        timings={**evidence.timings, "rank": (time.perf_counter() - began) * 1000},
        who=replace(evidence.who, mode=mode) if evidence.who else None,
        uuid=evidence.uuid,
        level=level,
    )


def can_rank(evidence: Evidence, name: str) -> bool:
    """Whether `evidence` has what the profile `name` goes by: 2026.9 finds words in chunks of its own alone."""
    of = profiles.get(name)
    return (evidence.any_word or of.join == "AND") and (not of.exact_paths or evidence.chunking in ("", of.chunking))


def _as_told(notices: Sequence[Notice], rules: Rules) -> Iterator[Notice]:
    """Those of `notices` that are true under `rules`, as they are true of the release."""
    for one in notices:
        elsewhere = one.kind == "setting_ignored" and one.fields["profile"] != rules.profile.name
        if one.kind == "zero_vectors" and rules.profile.exact_paths:
            yield notice("zero_vectors", count=one.fields["count"], profile=rules.profile.name)
        elif elsewhere or (one.kind == "trust_unread" and not rules.profile.exact_paths):
            continue
        elif rules.corrects or one.kind not in ("read_as_time", "searched_otherwise", "asked_in_parts"):
            yield one


def _other_chunks(evidence: Evidence, profile: Profile) -> tuple[Notice, ...]:
    """That the index was cut by the rules of another release than the one whose rules rank."""
    if not evidence.chunking or profile.name == OWN or evidence.chunking == profile.chunking:
        return ()
    return (notice("cut_otherwise", chunking=evidence.chunking, profile=profile.name),)


def _never_recalled(evidence: Evidence, profile: Profile) -> tuple[Notice, ...]:
    """Chunks that were found and are never recalled, because their project marker cannot be read."""
    if not profile.exact_paths:
        return ()
    found = {*evidence.nearest.tolist(), *(hit.row for hit in evidence.lexical.hits)}
    never = sorted(found & rules_2026_9.dropped(evidence.lexical.said))
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
    side: KeywordSide, mode: Mode, ranking: _Ranking, recalled: tuple[Candidate, ...]
) -> tuple[Notice, ...]:
    """That no note holds a word that was looked for: something is always nearest, however far it is."""
    any_word = ranking.rules.profile.join == "OR"
    asked = any_word and mode == "hybrid" and side.plan.words and not ranking.numbers.text_matches
    if not asked or not recalled:
        return ()
    near = sum((hit.vector.cosine or 0.0) > 0 for hit in recalled)
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
    """That a note which waits holds a word that no indexed one does; an answer without a match says so itself."""
    by_itself = isinstance(empty, NothingMatched)
    return (notice("waiting_holds", elsewhere=evidence.elsewhere),) if evidence.elsewhere.held and not by_itself else ()


def _words_alone(evidence: Evidence, rules: Rules, recalled: tuple[Candidate, ...]) -> tuple[Notice, ...]:
    """That there are vectors, but the model made none of this query, too little to count, or none across languages."""
    if evidence.language and rules.profile.second_stage:
        return (notice("language_unknown", language=evidence.language, known=evidence.known),)
    return ((notice("words_unknown", recalled=len(recalled)),) if evidence.pointless else ()) + _not_translated(
        evidence, rules
    )


def _not_translated(evidence: Evidence, rules: Rules) -> tuple[Notice, ...]:
    """That words in another script than the Latin one are in no note, and have no meaning in another language here."""
    spelled = {one.asked for one in evidence.recommended.plan.corrections} if rules.corrects else ()
    words = (word for word in tokens.WORD.findall(evidence.query) if word not in spelled)
    asked = dict.fromkeys(word for word in words if _LETTERS.search(word))
    if evidence.provider != "builtin" or not asked:
        return ()
    sides = (evidence.openclaw, evidence.recommended)
    held = any(count for side in sides for word, count in side.frequency.items() if _LETTERS.search(word))
    return () if held else (notice("not_translated", words=tuple(asked)),)


_LETTERS = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
"""A letter of another script than the Latin one."""


def _no_table(numbers: Components) -> tuple[Notice, ...]:
    """That lines and windows were compared by their words alone."""
    problems = [stage.problem for stage in numbers.stages if stage.problem]
    return (notice("passages_by_words", problem=problems[0]),) if problems else ()


def _weights_notice(settings: Settings, rules: Rules) -> tuple[Notice, ...]:
    """What became of weights that do not add up to 1."""
    vector, text = settings.values["query.hybrid.vectorWeight"], settings.values["query.hybrid.textWeight"]
    if abs(float(vector.value) + float(text.value) - 1.0) < 1e-6:
        return ()
    fields = {"vector": float(vector.value), "vector_origin": vector.origin}
    fields |= {"text": float(text.value), "text_origin": text.origin}
    counts = {"vector_counts": rules.vector_weight, "text_counts": rules.text_weight}
    return (notice("uneven_weights", **fields, **counts),)


class _Ranking:
    """One ranking: the numbers, the order they give, and who passed; writes out candidates on demand."""

    def __init__(self, evidence: Evidence, side: KeywordSide, mode: Mode, rules: Rules, *, whole: bool = False) -> None:
        self.evidence, self.side, self.mode, self.rules = evidence, side, mode, rules
        self.numbers = numbers = components(evidence, side, mode, rules)
        self.scores = scores = score(numbers, [rules])
        self.ages = age_of(evidence, rules.profile)
        passing = gate.pass_gate(scores.total, numbers, [rules], mode, lambda: keyword_hits(evidence, numbers))
        self.lead = leads(scores.part, scores.total, passing.passed)[0]
        ordered = groups(numbers, scores.merit[0] + self.lead, scores.total[0] + self.lead)
        self.order = np.concatenate([*ordered, np.empty(0, dtype=np.int64)])
        merit = np.empty(len(self.order))
        # Those over the gate stand in this order where variety changes nothing; of equal scores one is the first.
        merit[self.order] = -np.arange(len(self.order))
        self.choices: list[MmrPart | None] = [None] * len(self.order)
        self._is_whole = whole or not rules.profile.exact_paths
        if rules.mmr and len(self.order) > 1:
            self._diversify(ordered, passing)
        passed, rescued = passing.passed[0], passing.rescued[0]
        if rescued.any():
            strict = passed & ~rescued
            rescued = gate.without_repeats(self.order.tolist(), ranges(evidence, numbers.rows), strict, rescued)
            passed = strict | rescued
            self._put_last(rescued)
            merit = merit - rescued * 1e9
        order = self.order
        self.decided = gate.Decision(
            gate.OrderedCandidates(
                scores=scores.total[0, order],
                before_decay=scores.fresh[0, order],
                factors=scores.factor[0, order],
                ages=numbers.days[order],
                keyword=passing.keyword[order],
                passed=passed[order],
                floor=float(passing.floor[0, 0]),
                relaxed=bool(passing.relaxed[0, 0]),
                min_score=rules.min_score,
                limit=rules.results,
                mmr=self.choices,
                merit=merit[order],
                rescued=rescued[order],
            )
        )

    def fresh(self) -> int:
        """How many of those that were stopped would reach minScore without age."""
        if not self.rules.decay or self.rules.profile.age != "add":
            return self.decided.fresh
        # Where age adds, it takes a share of the score from all else.
        ageless = score(self.numbers, [replace(self.rules, decay=False)]).total[0, self.order]
        return int(np.count_nonzero(~self.decided.passed & (ageless >= self.rules.min_score)))

    def losers(self) -> Rows:
        """The places of those not recalled, by falling score."""
        left = np.ones(len(self.order), dtype=np.bool_)
        left[list(self.decided.recalled)] = False
        places = np.flatnonzero(left)
        return places[np.argsort(-self.scores.total[0, self.order[places]], kind="stable")]

    @cached_property
    def whole(self) -> _Ranking:
        """This ranking with every candidate in its place, where only those that are recalled were put in order."""
        if self._is_whole:
            return self
        return _Ranking(self.evidence, self.side, self.mode, self.rules, whole=True)

    def _diversify(self, ordered: list[Rows], passing: gate.Gate) -> None:
        """Put each group in the order of variety: of all, or until those that are recalled came."""
        refs, rows = self.evidence.refs, self.numbers.rows.tolist()
        likeness = self._similarity(rows)
        order: list[int] = []
        self.choices = []
        last = passing.rescued[0]
        strict = passing.passed[0] & ~last
        wanted = [min(self.rules.results, int(np.count_nonzero(strict))), 0]
        places = ranges(self.evidence, self.numbers.rows) if last.any() else self.numbers.rows
        spare = set(places[last].tolist()) - set(places[strict].tolist())
        wanted[1] = min(self.rules.results - wanted[0], len(spare))

        def enough(item: int) -> bool:
            wanted[0] -= bool(strict[item])
            if last[item] and (place := int(places[item])) in spare:
                spare.discard(place)
                wanted[1] -= 1
            return max(wanted) <= 0

        for own in ordered:
            if self._is_whole:
                alike, values = partial(likeness.among, own), _valued(self.numbers, self.scores, own)
                steps = formulas.mmr(values, alike, self.rules.mmr_lambda, self.lead[own])
            else:
                going = max(wanted) > 0
                steps = first_varied(self.numbers, self.scores, own, likeness, self.rules, enough) if going else []
            for step in steps:
                twin = refs[rows[own[step.nearest]]] if step.nearest >= 0 else None
                order.append(int(own[step.item]))
                self.choices.append(MmrPart(step.relevance, step.similarity, twin, len(order)))
        chosen = set(order)
        order += [item for own in ordered for item in own.tolist() if item not in chosen]
        self.choices += [None] * (len(order) - len(self.choices))
        self.order = np.array(order)

    def at_row(self, row: int) -> Candidate:
        """The record of the candidate that stands at `row` of the evidence."""
        item = int(np.flatnonzero(self.numbers.rows == row)[0])
        return self.candidate(int(np.flatnonzero(self.order == item)[0]))

    def _put_last(self, rescued: Flags) -> None:
        """Move those that are `rescued` behind all others, in their order."""
        last = rescued[self.order]
        places = [*np.flatnonzero(~last).tolist(), *np.flatnonzero(last).tolist()]
        self.order = self.order[places]
        self.choices = [self.choices[place] for place in places]

    def _similarity(self, rows: Sequence[int]) -> Similarity:
        """How like each other the candidates are, kept for rankings that have the same ones."""
        profile = self.rules.profile
        key = "similarity", profile.snippet, profile.exact_paths, self.numbers.rows.tobytes()
        found = self.evidence.reusable.get(key)
        if not isinstance(found, Similarity):
            words = mmr_words(self.evidence, profile)
            found = self.evidence.reusable[key] = Similarity(len(rows), lambda i: words(rows[i]))
        return found

    def keyword_rank(self, row: int) -> tuple[ChunkRef, float, float]:
        """A chunk of the keyword pool with its bm25 and text score."""
        i = int(np.flatnonzero(self.numbers.rows == row)[0])
        return self.evidence.refs[row], float(self.numbers.bm25[i]), float(self.numbers.text[i])

    def vector_rank(self, row: int) -> tuple[ChunkRef, float]:
        """A chunk of the vector pool with its vector score."""
        i = int(np.flatnonzero(self.numbers.rows == row)[0])
        return self.evidence.refs[row], float(self.numbers.vector[i])

    def candidate(self, place: int) -> Candidate:
        """The record of the candidate at `place` in the final order."""
        evidence, numbers, scores, rules = self.evidence, self.numbers, self.scores, self.rules
        i = int(self.order[place])
        ref, verdict = evidence.refs[int(numbers.rows[i])], self.decided.verdict(place)
        shown = self._snippet(evidence.texts[ref.rowid], isinstance(verdict, Recalled))
        vector_rank, text_rank = int(numbers.vector_rank[i]), int(numbers.text_rank[i])
        vector, text = float(numbers.vector[i]), float(numbers.text[i])
        # OpenClaw counts what follows the last line end of a note as one more line.
        blank_end = ref.source == MEMORY and evidence.texts[ref.rowid].endswith("\n")
        return Candidate(
            chunk=ref,
            vector=VectorPart(
                formulas.or_none(numbers.cosine[i]),
                vector_rank or None,
                vector_rank > 0,
                vector,
                rules.vector_weight,
                rules.vector_weight * vector,
            ),
            text=TextPart(
                formulas.or_none(numbers.bm25[i]),
                text_rank or None,
                text_rank > 0,
                text,
                rules.text_weight,
                rules.text_weight * text,
            ),
            hybrid=float(scores.hybrid[0, i]),
            age=self._age(i),
            date_points=float(scores.date[0, i]),
            score=float(scores.total[0, i]),
            mmr=self.choices[place],
            verdict=verdict,
            snippet=shown.text,
            snippet_line=min(ref.end_line, ref.start_line + shown.lines_before),
            last_line=max(ref.start_line, ref.end_line - blank_end),
            factors=self._factors(i),
            lexical=self._lexical(i),
            merit=float(scores.merit[0, i]),
            level=int(numbers.level[i]),
            provenance=self._provenance(i, ref),
            annotations=evidence.lexical.said.get(int(numbers.rows[i]), NOTHING_SAID),
            second=second_part(numbers, scores, i, leads=bool(self.lead[i])),
            first_share=float(scores.first[0, 0]),
        )

    def _factors(self, i: int) -> tuple[Factor, ...]:
        said = self.evidence.lexical.said.get(int(self.numbers.rows[i]), NOTHING_SAID)
        terms = self.numbers.terms
        if not terms:
            return ()
        return (
            Factor("importance", float(terms["importance"][i]), str(said.importance or "")),
            Factor("project", float(terms["project"][i]), said.project),
        )

    def _provenance(self, i: int, ref: ChunkRef) -> Provenance | None:
        if not self.rules.profile.exact_paths or ref.source != MEMORY:
            return None
        mtimes = self.evidence.lexical.mtimes_ms
        if not len(mtimes):
            # The index was cut by the rules of another release, and its lexical search did not run.
            return None
        origin = origin_class(ref.path, self.evidence.lexical.origins)
        return Provenance(origin, "unknown", int(mtimes[int(self.evidence.file_of[self.numbers.rows[i]])]))

    def _lexical(self, i: int) -> LexicalPart | None:
        """How words and paths found a candidate; None where they did not, or under a profile without such a side."""
        hit = self._hits.get(int(self.numbers.rows[i]))
        if hit is None:
            return None
        term = self.evidence.lexical.searches[hit.term].term if hit.term else ""
        score = hit.text_score if np.isnan(hit.bm25) else float(formulas.saturated(np.array(hit.bm25)))
        return LexicalPart(term, hit.body, score, hit.text_score, hit.path_score, hit.level, *hit.gain)

    @cached_property
    def _hits(self) -> Mapping[int, Hit]:
        return {hit.row: hit for hit in self.evidence.lexical.hits} if self.rules.profile.exact_paths else {}

    def _snippet(self, text: str, recalled: bool) -> Snippet:
        if not recalled or self.rules.profile.snippet == "head":
            return head(text)
        return window(text, self._weights)

    @cached_property
    def _weights(self) -> Mapping[str, float]:
        chunks, frequency = self.evidence.chunks, self.side.frequency
        return {word: float(np.log1p(chunks / (1 + frequency.get(word, 0)))) for word in self.side.plan.words}

    def _age(self, i: int) -> AgePart:
        if not self.rules.decay:
            return AgePart(None, "off", 1.0, 0.0)
        file = int(self.evidence.file_of[self.numbers.rows[i]])
        return AgePart(
            formulas.or_none(self.numbers.days[i]),
            self.ages.dates.basis(file),
            float(self.scores.factor[0, i]),
            float(self.scores.recency[0, i]),
        )


def _funnel(ranking: _Ranking, nearest: int, matched: Rows) -> Funnel:
    evidence, decided = ranking.evidence, ranking.decided
    return Funnel(
        chunks=evidence.chunks,
        files=evidence.files,
        vector_matches=evidence.embedded if compares(evidence, ranking.rules.profile) else 0,
        vector_pool=nearest,
        text_matches=ranking.numbers.text_matches if len(matched) else 0,
        text_pool=len(set(matched.tolist())),
        candidates=len(ranking.order),
        removed_by_decay=decided.decayed,
        over_gate=decided.over_gate,
        displaced=decided.displaced,
        recalled=len(decided.recalled),
    )
