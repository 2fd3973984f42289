"""Rephrased questions: the word to add, or to leave out, that recalls a chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from memory_tui import tokens
from memory_tui.explain.counterfactuals import Flips, Saved, WithProfile, flips
from memory_tui.explain.why_not import WhyNot
from memory_tui.notices import Notice, notice
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import rank
from memory_tui.settings import Settings

TRIES = 8
"""Searches at most; with a remote provider each of them embeds a question."""
ENOUGH = 3
LONGEST_RUN = 8
"""Characters of the longest run of Chinese, Japanese or Korean that is offered as a word."""
_LANGUAGE = "en"


class Rephrased(Struct, frozen=True):
    """A question that recalls the chunk as number `place`: the old one with `word` added, or without `left_out`.

    The word stands on line `line` of the note, 0 for none.
    """

    query: str
    word: str
    left_out: tuple[str, ...]
    place: int
    line: int = 0


class Rephrasings(Struct, frozen=True):
    """The questions that recall a chunk; else which changes of the question were tried, None where there was none."""

    rephrased: tuple[Rephrased, ...] = ()
    none: Notice | None = None


def rephrase(
    ask: Callable[[str], Evidence],
    evidence: Evidence,
    settings: Settings,
    text: str,
    rowid: int,
    absent: tuple[str, ...] = (),
    first: int = 1,
    line: int | None = None,
) -> Rephrasings:
    """Questions that recall the chunk `rowid`, of which `text` is the text; the shortest change first.

    Words of `line` are tried before others of the chunk, which begins at line `first` of its note. `ask` gathers
    evidence, on a worker thread. `absent` are the words that a search for all words failed on.
    Raises QueryError, ProviderError and what else `ask` raises.
    """
    shorter = _without(evidence.query, absent)
    lines = [set(_words(one)) for one in text.split("\n")]
    own = lines[line - first] if line is not None and first <= line < first + len(lines) else set()
    words = salient(text, evidence)
    words = list(dict.fromkeys([*[word for word in words if word in own][: TRIES // 2], *words]))
    tries = (["", *words] if shorter else words)[:TRIES]
    found: list[Rephrased] = []
    for word in tries:
        query = f"{evidence.query} {word}" if word else shorter
        trace = rank(ask(query), settings)
        place = next((i for i, c in enumerate(trace.recalled, 1) if c.chunk.rowid == rowid), None)
        if place is not None:
            at = next((at for at, held in enumerate(lines, first) if word in held), 0)
            found.append(Rephrased(query, word, () if word else absent, place, (line or 0) if word in own else at))
        if len(found) == ENOUGH:
            break
    none = None if found or not tries else notice("no_rephrasing", words=tuple(filter(None, tries)), shorter=shorter)
    return Rephrasings(tuple(found), none)


def of_answer(ask: Callable[[str], Evidence], answer: WhyNot) -> Rephrasings:
    """Return questions that recall the chunk that speaks in `answer`; none for one that is recalled already."""
    best = answer.best
    if best is None or best.recalled:
        return Rephrasings()
    gate = best.fate.fields.get("text", best.fate) if isinstance(best.fate, Notice) else None
    needed = gate is not None and gate.kind == "not_matched" and gate.fields["join"] == "AND"
    absent = gate.fields["absent"] if gate is not None and needed else ()
    where = best.chunk.start_line, answer.place.line
    return rephrase(ask, answer.evidence, answer.trace.settings, best.text, best.chunk.rowid, absent, *where)


def remedies(
    answer: WhyNot, settings: Settings, with_profile: WithProfile, ask: Callable[[str], Evidence], saved: Saved | None
) -> tuple[Flips | None, Rephrasings]:
    """Return the settings and the words that would change what `answer` says; no settings where no chunk speaks.

    Raises QueryError, ProviderError and what else `ask` raises.
    """
    row = answer.row
    changes = None if row is None else flips(answer.evidence, settings, row, with_profile, saved)
    return changes, of_answer(ask, answer)


def salient(text: str, evidence: Evidence) -> list[str]:
    """The words of `text` that say most about it: frequent there, rare among the other candidates, not asked yet."""
    question_words = set(tokens.WORD.findall(evidence.query.lower()))
    counts = Counter(word for word in _words(text) if word not in question_words)
    others = Counter(word for other in evidence.texts.values() for word in set(_words(other)))
    stops = tokens.stop_words(_LANGUAGE)
    usable = [
        word for word in counts if word not in stops and (len(word) > 2 or tokens.is_cjk(word)) and not word.isdigit()
    ]
    return sorted(usable, key=lambda word: (others[word] / counts[word], -len(word), word))


def _words(text: str) -> list[str]:
    """The words of `text`; of Chinese, Japanese and Korean, which put no blanks between words, short whole runs."""
    words = []
    for word in tokens.WORD.findall(text.lower()):
        words += tokens.CJK_RUN.sub(" ", word).split()
        words += [run for run in tokens.CJK_RUN.findall(word) if 1 < len(run) <= LONGEST_RUN]
    return words


def _without(query: str, absent: tuple[str, ...]) -> str:
    """Return `query` without the words `absent`; empty when nothing is left, or nothing was taken away."""
    absent_words = set(absent)
    rest = tokens.WORD.sub(lambda match: "" if match.group() in absent_words else match.group(), query)
    rest = " ".join(rest.split())
    return rest if tokens.WORD.search(rest) and rest != query else ""
