"""Explanations in words for a person. Verdicts, reasons and modes have their sentences here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, assert_never

from memory_tui.core.formatting import plural
from memory_tui.core.profiles import OWN
from memory_tui.core.settings import BY_KEY, Scalar, show
from memory_tui.explain.claims import (
    AbsentWords,
    InvisibleToTokenizer,
    LeftOutReason,
    LineClaim,
    NoChunkHoldsAll,
    NoChunkMatches,
    NoPair,
    NoRephrasing,
    NoSingleKnob,
    NotLookedThrough,
    SearchedInPieces,
    SearchedRange,
    StillLostWithout,
    StoppedByAlone,
    WaitingNoteHolds,
    WordClaim,
    WordsLeftOut,
    of_empty,
)
from memory_tui.explain.verdicts import (
    ChangedSinceIndexed,
    Excluded,
    Fate,
    FileGate,
    InNoChunk,
    LostInTheirIndex,
    ModelMismatch,
    NoSuchFile,
    NotDelivered,
    NotMatched,
    NoVector,
    NoWord,
    OutsideRoots,
    OutsideTextPool,
    OutsideVectorPool,
    PoolGate,
    TextGate,
    UnreadableFile,
    UnreadableProject,
    WordsOff,
)
from memory_tui.search.trace import (
    AllBelowGate,
    BelowMinScore,
    BeyondLimit,
    BlankQuery,
    DisplacedByMmr,
    EmptyIndex,
    EmptyReason,
    LoweredByDecay,
    Mode,
    NothingMatched,
    NoUsableWord,
    Recalled,
    Verdict,
)

if TYPE_CHECKING:
    from memory_tui.explain.counterfactuals import ChangeSet, Flip, KnobTurn, NotAlone, SavedEffect
    from memory_tui.explain.rephrase import Rephrased
    from memory_tui.explain.why_not import WhyNot


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st ..."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def margin(value: float) -> str:
    """A shortfall with as many digits as it takes to be more than nothing."""
    return f"{value:.3f}" if value >= 0.0005 else f"{value:.1g}"


def age(days: float) -> str:
    """An age as the lists show it: 5d; below a day, today; before its date, future."""
    return "today" if 0 <= days < 1 else f"in {-days:.0f}d" if days < 0 else f"{days:.0f}d"


def reason(verdict: Verdict) -> str:
    """Why a candidate lost, in two or three words for a list."""
    match verdict:
        case Recalled(rescued=True):
            return "recalled, by words"
        case Recalled(relaxed=relaxed):
            return "recalled, relaxed" if relaxed else "recalled"
        case BelowMinScore():
            return f"{margin(verdict.margin)} below"
        case LoweredByDecay():
            return f"decay, {verdict.age_days:.0f}d old"
        case DisplacedByMmr():
            return f"like {verdict.twin.citation}"
        case BeyondLimit():
            return f"{ordinal(verdict.place)}, limit {verdict.limit}"
        case _ as never:
            assert_never(never)


def gate(fate: Fate) -> str:  # noqa: C901
    """The gate that stopped a line, in two or three words; empty when nothing did."""
    match fate:
        case Recalled():
            return ""
        case BelowMinScore():
            return "minScore"
        case LoweredByDecay():
            return "decay"
        case DisplacedByMmr():
            return "mmr"
        case BeyondLimit():
            return "limit"
        case OutsideVectorPool() | OutsideTextPool():
            return "not a candidate"
        case NotMatched() | NoWord() | WordsOff():
            return "no match"
        case NoVector():
            return "no vector"
        case ModelMismatch():
            return "other model"
        case UnreadableProject():
            return "project marker"
        case OutsideRoots():
            return "outside the roots"
        case Excluded():
            return f"excluded: {fate.rule}"
        case NoSuchFile():
            return "no such file"
        case UnreadableFile():
            return fate.rule
        case ChangedSinceIndexed():
            return "not indexed yet"
        case InNoChunk():
            return "in no chunk"
        case LostInTheirIndex():
            return "lost in OpenClaw's index"
        case NotDelivered():
            return "not delivered"
        case _ as never:
            assert_never(never)


def label(fate: Fate) -> str:
    """What became of a line as a title: RECALLED 3rd, NEAREST 3rd, or NOT RECALLED with the gate that stopped it."""
    if not isinstance(fate, Recalled):
        return f"NOT RECALLED ({gate(fate)})"
    return f"NEAREST {ordinal(fate.place)}, kept back" if fate.kept_back else f"RECALLED {ordinal(fate.place)}"


def sentence(fate: Fate) -> str:
    """What became of a line as a whole sentence."""
    match fate:
        case Recalled():
            how = " over the relaxed floor for keyword hits" if fate.relaxed else ""
            if fate.rescued:
                how = ", although it is below minScore: words found it and meaning did not"
            if fate.kept_back:
                why = "probably no note answers the query, so an agent gets it only if it asks for the nearest"
                return f"The {ordinal(fate.place)} of the nearest{how}. It is kept back: {why}."
            return f"Recalled as the {ordinal(fate.place)} hit{how}."
        case BelowMinScore():
            return f"Its score is {margin(fate.margin)} below {_floor(fate)}."
        case LoweredByDecay():
            return (
                f"Age lowered its score below {_floor(fate)}. The note is {fate.age_days:.0f} days old, so its score "
                f"was multiplied by {fate.factor:.3f}; it lacks {margin(fate.margin)}."
            )
        case DisplacedByMmr():
            return (
                f"By its score it is among the first {fate.limit}, but it shares {fate.similarity:.0%} of its words "
                f"with {fate.twin.citation}, which MMR chose before it. MMR ranks it {ordinal(fate.place)}; the limit "
                f"is {plural(fate.limit, 'result')}."
            )
        case BeyondLimit():
            return f"It ranked {ordinal(fate.place)}; the limit is {plural(fate.limit, 'result')}."
        case (
            OutsideVectorPool()
            | NoVector()
            | ModelMismatch()
            | NotMatched()
            | NoWord()
            | WordsOff()
            | OutsideTextPool()
            | UnreadableProject()
        ):
            return _pool_sentence(fate)
        case OutsideRoots() | Excluded() | NoSuchFile() | UnreadableFile() | ChangedSinceIndexed() | InNoChunk():
            return _file_sentence(fate)
        case LostInTheirIndex():
            return (
                f"From the notes on disk it would be the {ordinal(fate.place)} hit, but OpenClaw's own index cannot "
                f"recall it: {fate.detail}"
            )
        case NotDelivered():
            bound = f" in {fate.most_characters:,} characters" if fate.most_characters else ""
            went = f"{plural(fate.delivered, 'hit')} delivered{bound}"
            return f"It ranked {ordinal(fate.place)}, but was not among the {went}."
        case _ as never:
            assert_never(never)


def _floor(fate: BelowMinScore | LoweredByDecay) -> str:
    """What a score had to reach, by its name."""
    return f"{number(fate.floor)}, the relaxed floor" if fate.relaxed else f"minScore {number(fate.floor)}"


def without(claim: StoppedByAlone | StillLostWithout) -> str:
    """What becomes of a line without the gate that stopped it, as a sentence."""
    if isinstance(claim, StoppedByAlone):
        return f"With {claim.gate} off it would be recalled ({ordinal(claim.place)})."
    floor = " minScore" if isinstance(claim.then, BelowMinScore) else ""
    return f"With {claim.gate} off it would not be recalled either ({reason(claim.then)}{floor})."


def account(answer: WhyNot) -> str:
    """What became of a line, with what its gate alone has to do with it."""
    return " ".join([sentence(answer.fate), *([without(answer.without)] if answer.without else [])])


def left_out(claim: WordsLeftOut, words: Sequence[str]) -> str:
    """`words`, which stand for those of `claim`, with why they were not searched for."""
    return f"{', '.join(words)} ({_REASONS[claim.reason]})"


_REASONS: dict[LeftOutReason, str] = {
    "common": "in over half of the chunks: counted with others",
    "stop word": "stop words",
    "number": "numbers alone",
    "short": "too short",
}
"""Why words are not searched for."""


def _file_sentence(fate: FileGate) -> str:
    match fate:
        case OutsideRoots():
            return f"The file is outside the folders of the notes. {fate.detail}"
        case Excluded():
            return f"The file is not part of this memory ({fate.rule}). {fate.detail}"
        case NoSuchFile() | UnreadableFile():
            return fate.detail
        case ChangedSinceIndexed(change="new"):
            return "The note is new and has not been indexed yet."
        case ChangedSinceIndexed():
            return "The note has changed since it was indexed, and this line is not in what was indexed."
        case InNoChunk() if fate.line is None or not fate.lines:
            return "The note holds no text."
        case InNoChunk() if fate.line is not None and 1 <= fate.line <= fate.lines:
            return f"Line {fate.line} is in no chunk: only blank lines are there."
        case InNoChunk():
            return f"There is no line {fate.line}: the note ends with line {fate.lines}."
        case _ as never:
            assert_never(never)


def _pool_sentence(fate: PoolGate) -> str:
    match fate:
        case OutsideVectorPool():
            return (
                f"By meaning it ranks {ordinal(fate.rank)} of {fate.of:,} (cosine {fate.cosine:.3f}); only the "
                f"{fate.pool} nearest are candidates (down to {fate.edge:.3f}). By words: {_text(fate.text)}."
            )
        case NoVector():
            return f"Meaning could not find it: {fate.cause}. By words: {_text(fate.text)}."
        case ModelMismatch():
            return f"{fate.detail} By words: {_text(fate.text)}."
        case UnreadableProject():
            return (
                "OpenClaw 2026.9 never recalls it: a project marker (<!-- project: ... -->) of its entry is not "
                "closed, or names no project."
            )
        case WordsOff() | NoWord() | NotMatched() | OutsideTextPool():
            text = _text(fate)
            return f"{text[0].upper()}{text[1:]}, and there are no vectors to go by."
        case _ as never:
            assert_never(never)


def _text(gate: TextGate) -> str:
    match gate:
        case WordsOff():
            return f"they do not count, {gate.cause}"
        case NoWord():
            left = f" (left out: {', '.join(gate.dropped)})" if gate.dropped else ""
            return f"the query has no word to search for{left}"
        case NotMatched(join="OR"):
            return f"{_lacked(gate)}{_nowhere(gate)}"
        case NotMatched():
            every = {1: "the word is", 2: "both words are"}.get(len(gate.words), f"all {len(gate.words)} words are")
            return f"{every} needed, and {_lacked(gate)}{_nowhere(gate)}"
        case OutsideTextPool():
            return (
                f"it ranks {ordinal(gate.rank)} by bm25 ({-gate.bm25:.2f}), and only the {gate.pool} best are "
                f"candidates (down to {-gate.edge:.2f})"
            )
        case _ as never:
            assert_never(never)


def _lacked(gate: NotMatched) -> str:
    """What a chunk lacks, and what it holds where its tokenizer cannot see it."""
    lacks = tuple(word for word in gate.absent if word not in gate.hidden)
    said = []
    if lacks:
        none = gate.join == "OR" and len(lacks) > 1
        said.append(f"it {'holds none of' if none else 'lacks'} {_listed(lacks)}")
    if gate.hidden:
        inside, them = ("a longer word", "it") if len(gate.hidden) == 1 else ("longer words", "them")
        said.append(f"it holds {_listed(gate.hidden)} only inside {inside}, where this tokenizer cannot see {them}")
    return "; ".join(said)


def _nowhere(gate: NotMatched) -> str:
    if not gate.nowhere:
        return ""
    return f"; {_listed(gate.nowhere)} {'occurs' if len(gate.nowhere) == 1 else 'occur'} nowhere"


def _listed(words: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(f'"{word}"' for word in words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


def turn(key: str, value: Scalar) -> str:
    """A knob at a value, in words: `half-life 50 d`, `mmr on`, `vector : text .45 : .55`."""
    if key == "query.hybrid.vectorWeight":
        return f"vector : text {value:.2f} : {1 - float(value):.2f}".replace("0.", ".")
    return f"{BY_KEY[key].label} {show(BY_KEY[key], value)}"


def flip(found: Flip) -> str:
    """A change that turns a verdict, for a list: `half-life 50 d: would be recalled (6th)`."""
    then = f"would be recalled ({ordinal(found.place)})" if found.place else "would be dropped"
    return f"{turn(found.key, found.value)}: {then}"


def no_flip(*, recalled: bool) -> str:
    """That no knob alone changes the verdict on a chunk, which is `recalled` now or not."""
    return f"No single setting on the strip would {'drop this hit' if recalled else 'recall this line'}"


def no_single_knob(claim: NoSingleKnob) -> str:
    """That no knob alone changes a verdict, with the values that were tried, as a sentence."""
    return f"{no_flip(recalled=claim.recalled)}. Tried: {', '.join(map(_range, claim.ranges))}."


NO_PAIR = "No two settings that were tried recall it together either"
"""That none of some pairs does."""


def no_pair(claim: NoPair) -> str:
    """That no two settings together recall a chunk, with the values that were tried, as a sentence."""
    tried = []
    for key, points in groupby(claim.points, key=lambda point: point[0]):
        name = "weights" if key == "query.hybrid.vectorWeight" else BY_KEY[key].label
        tried.append(f"{name} {' '.join(_plainly(value) for _, value in points)}")
    return f"{NO_PAIR}. Tried: {', '.join(tried)}."


def _plainly(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _range(tried: SearchedRange) -> str:
    """`results 1 to 50`, `minScore 0 to 1 by 0.01`."""
    knob = BY_KEY[tried.key]
    name = "weights" if tried.key == "query.hybrid.vectorWeight" else knob.label
    if tried.choices:
        return f"{name} {', '.join(tried.choices)}"
    if isinstance(knob.default, bool):
        return f"{name} on and off"
    step = f" by {tried.step:g}" if tried.step != 1 else ""
    return f"{name} {tried.low:g} to {tried.high:g}{step}"


def flip_sentence(found: Flip) -> str:
    """What a change does, as a whole sentence."""
    what = f"Recalled as the {ordinal(found.place)}" if found.place else "No longer recalled"
    also = [
        f"{verb} {plural(len(refs), 'other')}"
        for verb, refs in (("brings in", found.comes_in), ("pushes out", found.drops_out))
        if refs
    ]
    return f"{what} with {turn(found.key, found.value)}{'; it also ' + ' and '.join(also) if also else ''}."


def effects(verb: str, count: int, right: int, wrong: int) -> str:
    """What else a change does, with what labels say of it: `pushes out 2, 1 of them marked right`."""
    marked = [f"{n} of them marked {word}" for n, word in ((right, "right"), (wrong, "wrong")) if n]
    return f"{verb} {', '.join([f'{count:,}', *marked])}"


def not_alone(found: NotAlone) -> str:
    """Why turning one knob alone does not recall a chunk: `not by minScore alone (9th; the limit is 6 results)`."""
    return f"not by {_name(found)} alone ({_nearest(found)})"


def _name(found: NotAlone) -> str:
    return "weights" if found.key == "query.hybrid.vectorWeight" else BY_KEY[found.key].label


def _nearest(found: NotAlone) -> str:
    """How near a knob brings a chunk at its best value."""
    if found.place:
        return f"{ordinal(found.place)}; the limit is {plural(found.limit, 'result')}"
    if found.passes or found.score is None:
        return f"not among the first {found.limit}" if found.passes else "never a candidate"
    return f"below minScore {number(found.floor)} with {against(found.score, found.floor)} at most"


def none_alone(found: Sequence[NotAlone]) -> str:
    """The knobs that do not recall a chunk alone, with how near they bring it, in one sentence; empty without any."""
    near = ", ".join(f"{_name(one)} ({_nearest(one)})" for one in found)
    return f"Not by one of these alone: {near}." if found else ""


def rephrased(found: Rephrased) -> str:
    """A question that recalls a chunk: `add "garlic" of line 7 (2nd)`."""
    at = f" of line {found.line}" if found.line else ""
    change = f'add "{found.word}"{at}' if found.word else f"leave out {_listed(found.left_out, len(found.left_out))}"
    return f"{change} ({ordinal(found.place)})"


def no_rephrasing(claim: NoRephrasing) -> str:
    """Which words and which shorter question do not recall a chunk, as a sentence."""
    tried = [f"adding one of these words of the chunk ({', '.join(claim.words)})"] if claim.words else []
    tried += [f'the question "{claim.shorter}"'] if claim.shorter else []
    return f"The chunk is not recalled by {' or '.join(tried)}."


def empty(reason: EmptyReason, profile: str) -> tuple[str, str]:
    """Why nothing was recalled under `profile`, and what to do next."""
    match reason:
        case BlankQuery():
            return "The query is empty.", "Type a query."
        case EmptyIndex():
            if reason.pending:
                return (
                    f"Nothing is indexed yet: {plural(reason.pending, 'file')} waiting.",
                    "Wait for the index, or run memory-tui index.",
                )
            if reason.unreadable:
                return (
                    f"Nothing is indexed: {plural(reason.unreadable, 'file')} could not be read.",
                    "Run memory-tui status to see each file and the reason.",
                )
            return "This workspace holds no notes yet.", "Write MEMORY.md or memory/YYYY-MM-DD.md, then search again."
        case NoUsableWord(pointless=True):
            return (
                "The query has no word to search for, and the embedding model knows nothing in it.",
                "Add a word.",
            )
        case NoUsableWord():
            return "The query has no word to search for, and there are no vectors to go by.", "Add a word."
        case NothingMatched():
            said = of_empty(reason, profile)
            return " ".join(word_claim(one) for one in said if isinstance(one, WordClaim)), _next_word(said)
        case AllBelowGate():
            fade = f" Without age {reason.decayed} of them would reach it." if reason.decayed else ""
            floor, best = f"below minScore {number(reason.floor)}", against(reason.best, reason.floor)
            every = f"all score {floor}; the best has {best}" if reason.candidates > 1 else f"it has {best}, {floor}"
            lower = f"Lower minScore{'' if profile == OWN else f', or try the profile {OWN}'}."
            return f"{plural(reason.candidates, 'chunk')} found, but {every}.{fade}", lower
        case _ as never:
            assert_never(never)


def claim(said: WordClaim | LineClaim) -> str:
    """What a claim says, as a sentence."""
    match said:
        case StoppedByAlone() | StillLostWithout():
            return without(said)
        case NoSingleKnob():
            return no_single_knob(said)
        case NoPair():
            return no_pair(said)
        case NoRephrasing():
            return no_rephrasing(said)
        case WordsLeftOut():
            return f"Not searched for: {left_out(said, said.words)}."
        case _:
            return word_claim(said)


def word_claim(claim: WordClaim) -> str:
    """What is said of the words of a question that found nothing, as a sentence."""
    match claim:
        case AbsentWords():
            words = "the word" if len(claim.words) == 1 else "the words"
            return f"No {'indexed ' if claim.indexed else ''}note contains {words} {_listed(claim.words)}."
        case InvisibleToTokenizer():
            them = "it" if len(claim.words) == 1 else "them"
            if claim.part_of:
                one = "one word" if len(claim.part_of) == 1 else "one word each"
                return (
                    f"Notes hold {_listed(claim.words)}, part of {_listed(claim.part_of)}, which profile "
                    f"{claim.profile} takes for {one}."
                )
            return (
                f"Notes hold {_listed(claim.words)}, but only inside longer words, where profile "
                f"{claim.profile} cannot see {them}."
            )
        case SearchedInPieces():
            pieces = f"{'its' if len(claim.words) == 1 else 'their'} characters and pairs of them"
            none = "no note holds one of these as a word"
            return f"Notes hold {_listed(claim.words)}, but profile {claim.profile} looks for {pieces}, and {none}."
        case WaitingNoteHolds():
            return f'The note {claim.path}, which is not indexed yet, holds "{claim.word}".'
        case NotLookedThrough():
            notes = "note waits" if claim.waiting == 1 else "notes wait"
            return f"{claim.waiting:,} {notes} to be indexed, and {claim.unread:,} of them were not looked through."
        case NoChunkHoldsAll():
            return "No chunk was found to hold all of these words, and meaning found none."
        case NoChunkMatches():
            return "No chunk matches."
        case _ as never:
            assert_never(never)


def _next_word(said: Sequence[object]) -> str:
    """What to do next where words found nothing."""
    kinds = {type(one) for one in said}
    if kinds & {InvisibleToTokenizer, SearchedInPieces}:
        return f"Use the profile {OWN}, or store.fts.tokenizer trigram."
    if kinds & {WaitingNoteHolds, NotLookedThrough}:
        return "Ask again when it is indexed, or run memory-tui index."
    if absent := next((one for one in said if isinstance(one, AbsentWords)), None):
        return "Try another word for it." if len(absent.words) == 1 else "Try other words for them."
    if NoChunkHoldsAll in kinds:
        return f"Use fewer words, or the profile {OWN}, which accepts any of them."
    return "Try other words."


def number(value: float) -> str:
    """A setting as it was given, without the digits that arithmetic adds."""
    return f"{value:.10g}"


def against(score: float, floor: float) -> str:
    """`score` with enough digits to see on which side of `floor` it is."""
    ways = (f"{score:.{digits}f}" for digits in range(3, 18))
    return next((shown for shown in ways if (float(shown) >= floor) == (score >= floor)), repr(score))


def mode(value: Mode) -> str:
    """What searches go by, as the first word of the screen."""
    return "NO SEARCH" if value == "nothing" else value.upper()


WEIGHT = "query.hybrid.vectorWeight"


def turned(found: Flip | ChangeSet) -> str:
    """What is set, for a list: `results 9`, `results 9 + minScore .20`."""
    return " + ".join(turn(one.key, one.value) for one in _turns(found))


def preview(found: Flip | ChangeSet) -> str:
    """What setting it does besides, as a sentence: `results 8: 1 other hit in, 0 out; 26 saved ...`."""
    effects = _moved(len(found.comes_in), len(found.drops_out))
    return f"{turned(found)}: {'; '.join(filter(None, (effects, saved(found.saved))))}."


def _moved(comes: int, goes: int) -> str:
    if not comes and not goes:
        return "no other hit moves"
    return f"{plural(comes, 'other hit')} in, {goes:,} out"


def _turns(found: Flip | ChangeSet) -> tuple[Flip | KnobTurn, ...]:
    return (found,) if not hasattr(found, "turns") else found.turns


def change_set(found: ChangeSet) -> str:
    """A set of changes, for a list: `results 9 + minScore .20: would be recalled (9th)`."""
    return f"{turned(found)}: would be recalled ({ordinal(found.place)})"


def change_set_sentence(found: ChangeSet) -> str:
    """What a set of changes does, as a whole sentence."""
    turns = " and ".join(turn(one.key, one.value) for one in found.turns)
    also = [
        f"{verb} {plural(len(refs), 'other')}"
        for verb, refs in (("brings in", found.comes_in), ("pushes out", found.drops_out))
        if refs
    ]
    return f"Recalled as the {ordinal(found.place)} with {turns} together{'; it also ' if also else ''}" + (
        f"{' and '.join(also)}."
    )


def accepted(found: Flip | ChangeSet) -> str:
    """How far each knob may go, as a clause: `any results from 7 to 12`; empty where none may go further."""
    far = [_far(one.key, *one.accepted) for one in _turns(found) if one.accepted[0] != one.accepted[1]]
    return f"any {', '.join(far)}" if far else ""


def _far(key: str, low: Scalar, high: Scalar) -> str:
    knob = BY_KEY[key]
    name = "vector weight" if key == WEIGHT else knob.label
    return f"{name} from {show(knob, low)} to {show(knob, high)}"


def saved(effect: SavedEffect | None) -> str:
    """What a change does to saved questions, as a clause: `26 saved questions: 1 mended, 0 broken`; empty of none."""
    if effect is None:
        return ""
    return f"{plural(effect.asked, 'saved question')}: {len(effect.mended):,} mended, {len(effect.broken):,} broken"
