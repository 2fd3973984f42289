"""Corrections: a newer line that says of an older one that it holds no more. The newer line comes first.

The rules know marks and nothing else: an opener ("Correction:"), a value put away ("no longer", "instead of"), a label
with another value in another note, and a mark on the older line. "Now" is news more often than a correction, and tells
nothing but beside another amount of one unit. Two logs that differ are a diary, no contradiction. A lasting line and
another that differ in a negation alone contradict each other, and nobody knows which holds.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple

from msgspec import Struct

from memory_tui.inbox import DatedNote, lines_of
from memory_tui.notes.changes import HEADING
from memory_tui.workspace.notes import is_marked, is_overtaken, without_mark

_LONGEST = 300
_OPENER = re.compile(
    r"(?:corrections?|erratum|korrektur|berichtigung|richtigstellung|corre(?:cci[oó]n|ç[ãa]o|zione|ctif)"
    r"|rec?tifica(?:tion|ci[oó]n|ção)|rettifica|errata|sprostowanie|korekta|更正|纠正一?下?"
    r"|勘误|訂正|修正(?=：)|исправление|поправка|уточнение|i (?:had it|was) wrong|ich habe mich geirrt|me equivoqué"
    r"|记错了|間違えていた|я ошибся|(?:final|endgültig|最终版|最終決定|итог)(?=[^\w]{0,3}\(?(?:supersedes|ersetzt"
    r"|sustituye|取代|заменяет)))"
    r"\s*(?:[:,、。：，(（]|\s[-–—]\s)",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+|\|\s*)?(?:\*\*)?(?:\[?\d{1,2}:\d{2}\]?\W{0,3})?(?:\*\*)?\s*")
_TASK = re.compile(r"\[[ xX]\]|✅|^\W*Candidate:")
_V = r"((?:[^.,;:。，；、()（）]|(?<=\d)[.,:](?=\d)){1,40}?)"
_END = r"(?=\s*(?:[.,;:。，；、()（）]|$|\b(?:to|but|sondern|sino|mais|mas|ma|lecz|auf|a)\b))"
_AWAY = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:instead of|rather than|statt|anstelle von|en lugar de|en vez de|em vez de|ao invés de"
        rf"|au lieu (?:de |d['’])|plutôt que|invece (?:di|che)|zamiast|вместо) {_V}{_END}",
        rf"\b(?:nicht mehr|ya no(?: es)?|est plus|sont plus|já não(?: é)?|é mais|è più|już nie|больше не) {_V}{_END}",
        rf"\bno longer (?:an? |the |on |at |in |by )?{_V}{_END}",
        rf",\s*(?:not|nicht|а не) {_V}{_END}|, no (?:el|la|los|las|en|por|a) ([^.,;]{{1,30}}){_END}",
        rf"\b(?:\w+ed\b.{{0,40}}?|went|rose|fell|grew) from {_V} to\b|\bvon {_V} (?:auf|nach|zu)\b",
        rf"\bpas\w+ de {_V} (?:a|à|para)\b|\bda {_V} a\b|\bz {_V} na\b|(?<!\w)с {_V} на\b",
        r"(?:^|[,;] )([^\s,;]+(?: [^\s,;]+)?) (?:has|have) (?:retired|left|moved away|closed)\b",
        r"不再是([^，。；、]{1,12})|而不是([^，。；、]{1,12})|从([^，。；、]{1,12}?)(?:改|换|调整)",
        r"([^、。はがをに]{1,12})(?:ではなく|ではない)|([^、。はがを]{1,12})から[^、。]{1,12}変更",
    )
)
_CHANGED = re.compile(
    r"\b(?:\w{3,}ed|cut|set|rose|went) (?:up |down |back )?to\b|\bgeändert\b|\bcambi[oó] a\b|\bизмен\w+ на\b"
    r"|(?:调整|改)[为成到]|に変わった|に変更",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"(?<![\d:.-])\d+(?:[.,]\d+)?\s?(?![年月日])([^\W\d_\u3040-\u9fff]+|[\u3040-\u9fff]{1,2}|[€$])")
SUPERSEDES = re.compile(r"\(supersedes ([^()\s:]+\.md):(\d+)\)")
_NOW = re.compile(
    r"\b(?:from now on|as of now|currently|now|jetzt|inzwischen|ab sofort|ahora|a partir de ahora|actualmente"
    r"|теперь|отныне|сейчас)\b|从现在起|现在|目前|今後は?|今は|現在",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:never|not|do not|don['’]t|no|nie(?:mals)?|nicht|keine?[nmrs]?|nunca|jamás|(?:никогда )?не)\b"
    r"|不要|绝不|从不|千万别|禁止",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"\b(?:always|please|immer|bitte|siempre|всегда)\b|总是|一定要|请", re.IGNORECASE)
_LABEL = re.compile(r"^([^\W\d_][^:：|]{0,30})[:：](?!(?<=\d.)\d)\s*(.{1,60})$")
_NEVER_LABELS = re.compile(
    r"status|version|tests?|weight|mood|disk|time|date|count|progress|results?|next|note|gewicht|stimmung|zeit|datum|anzahl"
    r"|stand|ergebnis|nächst|notiz|peso|estado|fecha|hora|resultado|nota|状态|版本|测试|体重|时间|日期|数量|进度|结果|备注|状態|バージョン"
    r"|テスト|時間|日付|メモ|статус|верси|тест|вес|время|дата|итог|заметк",
    re.IGNORECASE,
)
_STOP = re.compile(
    r"the|an?|is|are|was|of|to|in|on|at|for|and|or|with|der|die|das|ist|sind|eine?|im|am|mit|und|el|los|las?|es|de|en|una?|y|con"
    r"|[вн]а?|и|с"
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_WORD = re.compile(r"\d+(?:[.:,]\d+)*|[^\W\d_]+")
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_UNIT = re.compile(r"^\D*\d[\d.,]*\s*(\D*)$")


class Line(Struct, frozen=True, eq=False):
    """A line of a note, with the date of the note's name or of the nearest dated heading, and its terms."""

    path: str
    number: int
    text: str
    heading: str
    day: dt.date | None
    terms: frozenset[str]


class Correction(Struct, frozen=True):
    """That `new` overtakes `old`; `opposite` where either may hold."""

    new: Line
    old: Line
    opposite: bool = False


def terms(text: str) -> frozenset[str]:
    """Return what two lines are compared by: word stems, numbers, pairs of CJK signs."""
    stems: set[str] = set()
    text = unicodedata.normalize("NFKC", text).lower()
    for run in _CJK.findall(text):
        pairs = map("".join, pairwise(run)) if len(run) > 1 else (run,)
        # Hiragana alone are endings and particles.
        stems.update(pair for pair in pairs if not re.fullmatch(r"[\u3040-\u309f]+", pair))
    for word in _WORD.findall(_CJK.sub(" ", text)):
        if not _STOP.fullmatch(word):
            stem_length = 5 if len(word) >= 6 else 4
            stems.add(word if word[0].isdigit() else word[:stem_length])
    return frozenset(stems)


def _lines(note: DatedNote) -> Iterator[Line]:
    """Yield the lines of a note that say something, outside fences."""
    heading = ""
    day = note.day
    for number, text, fence in lines_of(note):
        if fence:
            continue
        if HEADING.match(text):
            heading = text.strip("# ").lower()
            # A heading of the first level without a date ends the section of a day.
            if note.day is None and (_day(text) or text.startswith("# ")):
                day = _day(text)
        elif text.strip() and len(text) <= _LONGEST:
            # Two lines are compared by what they say: without bullet, time, mark, `Correction:`, `now`.
            words = _LEAD.sub("", without_mark(text), count=1)
            words = _NOW.sub(" ", _OPENER.sub(" ", words, count=1))
            yield Line(path=note.path, number=number, text=text, heading=heading, day=day, terms=terms(words))


def _day(text: str) -> dt.date | None:
    """Return the first day that a text names; None where it names none, or one of no calendar."""
    match = _ISO.search(text)
    try:
        return dt.date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


class _Candidate(NamedTuple):
    """An older line, the share of its weight that the terms of both lines have, and how like the newer one it is."""

    old: Line
    share: float
    likeness: float


class Corrections:
    """The pairs of a workspace's lines: one of them says that the other holds no more.

    A rule is a method that yields such pairs. A term weighs the more, the fewer lines have it.
    """

    def __init__(self, notes: Iterable[DatedNote], check: Callable[[], None]) -> None:
        self.lines = [line for note in notes for line in _lines(note)]
        self._check = check
        self._holders: dict[str, list[int]] = defaultdict(list)
        """The indexes of the lines that have a term."""
        for index, line in enumerate(self.lines):
            for term in line.terms:
                self._holders[term].append(index)
        self._most_holders = max(30, len(self.lines) // 100)
        """A term of more lines is too common to compare them all."""
        # A weight is the logarithm of one divided by the share of the lines that have the term.
        self._rarest = math.log(1 + len(self.lines))
        self._weights = {term: math.log(1 + len(self.lines) / len(lines)) for term, lines in self._holders.items()}

    def pairs(self) -> list[Correction]:
        """Return each correction once, the surer rule first. Raises Cancelled."""
        pairs: dict[tuple[str, int], Correction] = {}
        for rule in (self._named, self._marked, self._opened, self._put_away, self._labelled, self._opposed):
            self._check()
            for pair in rule():
                pairs.setdefault((pair.old.path, pair.old.number), pair)
        return list(pairs.values())

    def _weight(self, terms: frozenset[str]) -> float:
        """Return the weight of all `terms` together; a term of no line weighs as much as one of a single line."""
        return sum(self._weights.get(term, self._rarest) for term in terms)

    def _older(self, new: Line) -> Iterator[_Candidate]:
        """Yield the older lines, none of them long, that share a rare term with `new` and do not say all of it."""
        weight = self._weight(new.terms)
        holders = (self._holders[term] for term in new.terms)
        near = set(chain.from_iterable(indexes for indexes in holders if len(indexes) <= self._most_holders))
        for old in [self.lines[index] for index in sorted(near)]:
            # A line of more terms than 18 is long.
            if len(old.terms) <= 18 and new.terms - old.terms and _is_older(old, new) and _holds(old):
                shared = self._weight(new.terms & old.terms)
                share = shared / self._weight(old.terms)
                # What both share, as a part of each of the two; the same heading tells a little more.
                likeness = 0.5 * share + 0.5 * shared / weight + 0.15 * (old.heading == new.heading)
                yield _Candidate(old, share, likeness)

    def _best(self, new: Line, fits: Callable[[Line, _Candidate], bool]) -> Line | None:
        """Return the older line that is most like `new` of those that fit; None where none does."""
        candidates = [candidate for candidate in self._older(new) if fits(new, candidate)]
        return max(candidates, key=lambda candidate: candidate.likeness).old if candidates else None

    def _holding_lines(self) -> Iterator[tuple[Line, str]]:
        """Yield the lines that say what holds, each with its words: without list mark and time."""
        return ((line, _LEAD.sub("", line.text, count=1)) for line in self.lines if _holds(line))

    def _named(self) -> Iterator[Correction]:
        """Yield lines with "(supersedes path:number)", each with the line that it overtakes.

        That is marked; as its number may have moved since, it is the marked line of that note nearest to the number.
        """
        for new in self.lines:
            for path, number in SUPERSEDES.findall(new.text):
                marked = [old for old in self.lines if old.path == path and is_overtaken(old.text) and old is not new]
                if marked:
                    yield Correction(new, min(marked, key=lambda old: abs(old.number - int(number))))

    def _opened(self) -> Iterator[Correction]:
        """Yield lines that begin with such a word as "Correction:", with the line that is most like them."""
        for new, words in self._holding_lines():
            if _OPENER.match(words) and (old := self._best(new, _is_corrected)) is not None:
                yield Correction(new, old)

    def _put_away(self) -> Iterator[Correction]:
        """Yield lines such as "no longer X", or with another amount of one unit, and the lasting line that has it."""
        for new, words in self._holding_lines():
            # A long line, one with code, and a field with a label state many things or one anew: they put nothing away.
            if len(new.terms) > 24 or "`" in words or _LABEL.match(_NOW.sub("", words)):
                continue
            matches = chain.from_iterable(pattern.finditer(words) for pattern in _AWAY)
            values = [terms(value) for match in matches for value in match.groups() if value]
            unit = _amount(words) if _CHANGED.search(words) or _NOW.search(words) else ""
            if values or unit:
                old = self._best(new, partial(self._is_put_away, values, unit))
                if old is not None:
                    yield Correction(new, old)

    def _is_put_away(self, values: list[frozenset[str]], unit: str, new: Line, candidate: _Candidate) -> bool:
        """Tell whether the older line is lasting, and says what `new` puts away.

        It has an amount in the same `unit`, or most of the terms of one of the `values`; and besides them enough other
        terms to be about the same thing.
        """
        old = candidate.old
        if old.day is not None or candidate.share < 0.4:
            return False
        if unit and unit == _amount(old.text) and len(new.terms & old.terms) >= 3:
            return True
        if candidate.share < 0.5:
            return False
        named = (value for value in values if value and self._weight(value & old.terms) >= 0.6 * self._weight(value))
        return any(self._weight(old.terms - value) >= 0.25 * self._weight(old.terms) for value in named)

    def _labelled(self) -> Iterator[Correction]:
        """Yield lasting lines `label: value` of which a dated line under the same heading has another value."""
        by_label: dict[tuple[str, str], list[tuple[Line, str]]] = defaultdict(list)
        counts: Counter[str] = Counter()
        for line, words in self._holding_lines():
            match = _LABEL.match(words.replace("**", ""))
            if match and not _NEVER_LABELS.search(match[1]):
                label = match[1].strip().lower()
                by_label[label, line.heading].append((line, match[2].strip()))
                counts[label] += 1
        for (label, heading), values in by_label.items():
            # What stands below a day is a log, and what has a label in many places is a field of records.
            if not heading or _day(heading) or counts[label] > 3:
                continue
            dated = [(line.day, line, value) for line, value in values if line.day is not None]
            for old, value in values:
                newer = [(day, new, new_value) for day, new, new_value in dated if new.path != old.path]
                if newer and old.day is None:
                    _, new, new_value = max(newer, key=lambda dated_line: dated_line[0])
                    if _is_changed(value, new_value):
                        yield Correction(new, old)

    def _opposed(self) -> Iterator[Correction]:
        """Yield lines that say a lasting line word for word, but for a negation."""
        by_words: dict[str, list[tuple[Line, bool]]] = defaultdict(list)
        for line, text in self._holding_lines():
            affirmed, negations = _NOT.subn(" ", text)
            words = "".join(_WORD.findall(_ALWAYS.sub(" ", affirmed).lower()))
            # What is shorter, such as "not ready", tells of a state.
            if len(words.encode()) >= 24 and not text.rstrip().endswith(("?", "？")):
                by_words[words].append((line, negations % 2 == 1))
        for lines in by_words.values():
            lasting = [(line, is_negated) for line, is_negated in lines if line.day is None]
            if not lasting:
                continue
            # Lasting lines with the same words say the same or the opposite, so the first stands for all.
            old, old_negated = lasting[0]
            opposites = (line for line, is_negated in lines if is_negated != old_negated)
            # A list of what to do and what not may hold both.
            new = next((line for line in opposites if line.path != old.path or line.heading == old.heading), None)
            if new is not None:
                yield Correction(new, old, opposite=True)

    def _marked(self) -> Iterator[Correction]:
        """Yield lines that are marked as overtaken, with the line soon below that holds instead.

        That is within 25 lines of the note, and shares at least three tenths of the weight of the older line's words.
        """
        for index, old in enumerate(self.lines):
            # A task that is struck through is done, and nothing holds instead.
            if not is_overtaken(old.text) or (not is_marked(old.text) and _TASK.search(old.text)):
                continue
            for new in self.lines[index + 1 : index + 40]:
                # `lines` go on with the next note, and have no blank lines.
                if new.path != old.path or new.number > old.number + 25:
                    break
                # Below the same heading a smaller part of the old line has to come again.
                shared = new.terms & old.terms
                share = self._weight(shared) / (self._weight(old.terms) or 1)
                is_like = (share >= 0.3 and new.heading == old.heading) or (share >= 0.4 and len(shared) >= 2)
                if is_like and not is_overtaken(new.text):
                    yield Correction(new, old)
                    break


def _holds(line: Line) -> bool:
    """Tell whether a line says something that holds: no task, no title of what follows, nothing overtaken."""
    return not (_TASK.search(line.text) or line.text.rstrip().endswith((":", "：")) or is_overtaken(line.text))


def _is_corrected(new: Line, candidate: _Candidate) -> bool:
    """Tell whether an older line is enough like one that begins with "Correction:" to be what that corrects."""
    return candidate.share >= 0.45 and len(candidate.old.terms & new.terms) >= 2


def _amount(text: str) -> str:
    """Return the unit of all numbers of a line; empty where it has none, or several."""
    units = {unit.lower()[:3] for unit in _AMOUNT.findall(text)}
    return units.pop() if len(units) == 1 else ""


def _is_older(old: Line, new: Line) -> bool:
    """Tell whether a line is older: an earlier date, undated before dated, in one note of one date the line above."""
    if old.path == new.path and old.day == new.day:
        return old.number < new.number
    if old.day is None or new.day is None:
        return old.day is None and new.day is not None
    return old.day < new.day


def _is_changed(old: str, new: str) -> bool:
    """Tell whether two short values of a label differ, numbers in the same unit."""
    old, new = old.lower(), new.lower()
    # Long values are sentences, and a value that holds the other one says it more exactly.
    if max(len(old.split()), len(new.split())) > 6 or old in new or new in old:
        return False
    old_unit, new_unit = _UNIT.match(old), _UNIT.match(new)
    if old_unit and new_unit:
        return old_unit[1].strip() == new_unit[1].strip()
    return old_unit is None and new_unit is None
