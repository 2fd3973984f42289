"""Sentences about a line: its verdict, what would change it, and why nothing was recalled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory_tui import profiles, tokens
from memory_tui.explain.counterfactuals import WEIGHT, Change, NotAlone, Rephrased, SavedEffect
from memory_tui.explain.why_not import Fate
from memory_tui.formatting import plural
from memory_tui.notices import (
    LEFT_OUT,
    Notice,
    against,
    knob_name,
    notice,
    number,
    of,
    ordinal,
    quoted,
)
from memory_tui.search import keywords
from memory_tui.search.trace import ChunkRef, EmptyReason, Mode, NothingMatched, QueryPlan, Recalled
from memory_tui.settings import BY_KEY, Scalar, show


def as_notice(fate: Fate) -> Notice:
    """Return `fate` as a row of the table of sentences."""
    return fate if isinstance(fate, Notice) else of(fate)


def gate(fate: Fate) -> str:
    """Return the gate that stopped a line, in two or three words; empty when nothing did."""
    return as_notice(fate).brief


def sentence(fate: Fate) -> str:
    """Return what became of a line as a whole sentence."""
    return as_notice(fate).message


def label(fate: Fate) -> str:
    """Return what became of a line as a title: RECALLED 3rd, NEAREST 3rd, or NOT RECALLED with its gate."""
    if not isinstance(fate, Recalled):
        return f"NOT RECALLED ({gate(fate)})"
    return f"NEAREST {ordinal(fate.place)}, kept back" if fate.kept_back else f"RECALLED {ordinal(fate.place)}"


def age(days: float) -> str:
    """Return an age as the lists show it: 5d; below a day, today; before its date, future."""
    return "today" if 0 <= days < 1 else f"in {-days:.0f}d" if days < 0 else f"{days:.0f}d"


def mode(value: Mode) -> str:
    """Return what searches go by, as the first word of the screen."""
    return "NO SEARCH" if value == "nothing" else value.upper()


# --- words ----------------------------------------------------------------------------------------------------------


def left_out(plan: QueryPlan, profile: str) -> tuple[Notice, ...]:
    """Return the words of a question that were not searched for, pairs of characters one by one, by reason."""
    any_word = profiles.get(profile).join == "OR"

    def reason(word: str) -> str:
        if any_word:
            return "common" if word in plan.common or tokens.is_cjk(word) else "stop word"
        if word.isdigit():
            return "number"
        return "short" if len(word) < keywords.FEWEST_LETTERS and word.isascii() and word.isalpha() else "stop word"

    words: dict[str, list[str]] = {}
    for word in plan.dropped:
        words.setdefault(reason(word), []).append(word)
    return tuple(notice("words_left_out", words=tuple(each), reason=why) for why, each in words.items())


def with_reason(words: Sequence[str], reason: str) -> str:
    """Return words with why they were not searched for."""
    return f"{', '.join(words)} ({LEFT_OUT[reason]})"


def word_claims(reason: EmptyReason | None, profile: str) -> tuple[Notice, ...]:
    """Return what an empty answer under `profile` says of the words of its question."""
    if not isinstance(reason, NothingMatched):
        return ()
    claims, elsewhere = [], reason.elsewhere
    missing = [word for word in dict.fromkeys(reason.missing) if word in elsewhere.looked]
    hidden = tuple(word for word in missing if word in elsewhere.uncut and word not in elsewhere.whole)
    in_pieces = tuple(word for word in missing if word in elsewhere.uncut and word in elsewhere.whole)
    absent = tuple(word for word in missing if word not in {*elsewhere.uncut, *dict(elsewhere.held)})
    parts = {word: part for word, part in elsewhere.parts if word in absent}
    if absent:
        claims.append(notice("absent_words", words=absent, indexed=bool(elsewhere.held or elsewhere.unread)))
    if hidden:
        claims.append(notice("invisible_to_tokenizer", words=hidden, profile=profile, part_of=()))
    if in_pieces:
        claims.append(notice("searched_in_pieces", words=in_pieces, profile=profile))
    elif parts and not hidden:
        words = tuple(parts.values())
        claims.append(notice("invisible_to_tokenizer", words=words, profile=profile, part_of=tuple(parts)))
    if not claims:
        claims.append(notice("no_chunk_holds_all") if reason.join == "AND" else notice("no_chunk_matches"))
    if elsewhere.held:
        word, path = elsewhere.held[0]
        claims.append(notice("waiting_note_holds", word=word, path=path))
    elif elsewhere.unread:
        claims.append(notice("not_looked_through", waiting=elsewhere.waiting, unread=elsewhere.unread))
    return tuple(claims)


def empty(reason: EmptyReason, profile: str) -> tuple[str, str]:
    """Return why nothing was recalled under `profile`, and what to do next."""
    if claims := word_claims(reason, profile):
        # What was said last is nearest to something that can be done.
        return " ".join(claim.message for claim in claims), claims[-1].next_step
    row = of(reason)
    if row.kind == "all_below_gate" and profile != profiles.OWN:
        return row.message, f"Lower minScore, or try the profile {profiles.OWN}."
    return row.message, row.next_step


# --- what would change it -------------------------------------------------------------------------------------------


def turn(key: str, value: Scalar) -> str:
    """Return a knob at a value, in words: `half-life 50 d`, `mmr on`, `vector : text .45 : .55`."""
    if key == WEIGHT:
        return f"vector : text {value:.2f} : {1 - float(value):.2f}".replace("0.", ".")
    return f"{BY_KEY[key].label} {show(BY_KEY[key], value)}"


def turned(value: Change) -> str:
    """Return what is set, for a list: `results 9`, `results 9 + minScore .20`."""
    return " + ".join(turn(each.key, each.value) for each in value.turns)


def change(value: Change) -> str:
    """Return a change that turns the verdict, for a list: `half-life 50 d: would be recalled (6th)`."""
    then = f"would be recalled ({ordinal(value.place)})" if value.place else "would be dropped"
    return f"{turned(value)}: {then}"


def change_sentence(value: Change) -> str:
    """Return what a change does, as a whole sentence."""
    what = f"Recalled as the {ordinal(value.place)}" if value.place else "No longer recalled"
    turns = " and ".join(turn(each.key, each.value) for each in value.turns)
    together = " together" if len(value.turns) > 1 else ""
    moved = (("brings in", value.comes_in), ("pushes out", value.drops_out))
    also = [f"{verb} {plural(len(refs), 'other')}" for verb, refs in moved if refs]
    return f"{what} with {turns}{together}{'; it also ' + ' and '.join(also) if also else ''}."


def preview(value: Change) -> str:
    """Return what setting it does besides, as a sentence: `results 8: 1 other hit in, 0 out; 26 saved ...`."""
    comes, goes = len(value.comes_in), len(value.drops_out)
    moved = f"{plural(comes, 'other hit')} in, {goes:,} out" if comes or goes else "no other hit moves"
    return f"{turned(value)}: {'; '.join(filter(None, (moved, saved(value.saved))))}."


def effects(verb: str, refs: Sequence[ChunkRef], grade: Callable[[ChunkRef], int | None]) -> str:
    """Return what else a change does, with what labels say of it: `pushes out 2, 1 of them marked right`."""
    right = [bool(mark) for ref in refs if (mark := grade(ref)) is not None]
    counts = ((right.count(True), "right"), (right.count(False), "wrong"))
    marked = [f"{count} of them marked {word}" for count, word in counts if count]
    return f"{verb} {', '.join([f'{len(refs):,}', *marked])}"


def accepted(value: Change) -> str:
    """Return how far each knob may go, as a clause: `any results from 7 to 12`; empty where none may go further."""
    far = [_far(each.key, *each.accepted) for each in value.turns if each.accepted[0] != each.accepted[1]]
    return f"any {', '.join(far)}" if far else ""


def _far(key: str, low: Scalar, high: Scalar) -> str:
    knob = BY_KEY[key]
    name = "vector weight" if key == WEIGHT else knob.label
    return f"{name} from {show(knob, low)} to {show(knob, high)}"


def saved(effect: SavedEffect | None) -> str:
    """Return what a change does to saved questions: `26 saved questions: 1 mended, 0 broken`; empty of none."""
    if effect is None:
        return ""
    return f"{plural(effect.questions, 'saved question')}: {len(effect.mended):,} mended, {len(effect.broken):,} broken"


def not_alone(value: NotAlone) -> str:
    """Return why turning one knob does not recall a chunk: `not by minScore alone (9th; the limit is 6 results)`."""
    return f"not by {knob_name(value.key)} alone ({_nearest(value)})"


def _nearest(value: NotAlone) -> str:
    """Return how near a knob brings a chunk at its best value."""
    if value.place:
        return f"{ordinal(value.place)}; the limit is {plural(value.limit, 'result')}"
    if value.passes or value.score is None:
        return f"not among the first {value.limit}" if value.passes else "never a candidate"
    return f"below minScore {number(value.floor)} with {against(value.score, value.floor)} at most"


def none_alone(values: Sequence[NotAlone]) -> str:
    """Return the knobs that do not recall a chunk alone, with how near they bring it; empty without any."""
    near = ", ".join(f"{knob_name(each.key)} ({_nearest(each)})" for each in values)
    return f"Not by one of these alone: {near}." if values else ""


def rephrased(question: Rephrased) -> str:
    """Return a question that recalls a chunk: `add "garlic" of line 7 (2nd)`."""
    where = f" of line {question.line}" if question.line else ""
    leave = f"leave out {quoted(question.left_out, len(question.left_out))}"
    add = f'add "{question.word}"{where}'
    return f"{add if question.word else leave} ({ordinal(question.place)})"
