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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct

from memory_tui.inbox.entries import DatedNote, lines_of
from memory_tui.notes.changes import HEADING
from memory_tui.workspace.annotations import is_marked, is_overtaken, without_mark

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
    found: set[str] = set()
    text = unicodedata.normalize("NFKC", text).lower()
    for run in _CJK.findall(text):
        pairs = (left + right for left, right in pairwise(run)) if len(run) > 1 else (run,)
        found.update(pair for pair in pairs if not re.fullmatch(r"[\u3040-\u309f]+", pair))
    for word in _WORD.findall(_CJK.sub(" ", text)):
        if not _STOP.fullmatch(word):
            found.add(word if word[0].isdigit() else word[: 5 if len(word) >= 6 else 4])
    return frozenset(found)


def _lines(note: DatedNote) -> Iterator[Line]:
    """Yield the lines of a note that say something, outside fences."""
    heading, day = "", note.day
    for number, text, fence in lines_of(note):
        if not fence and HEADING.match(text):
            heading = text.strip("# ").lower()
            day = note.day or _day(text) or (day if not text.startswith("# ") else None)
        elif not fence and text.strip() and len(text) <= _LONGEST:
            words = _NOW.sub(" ", _OPENER.sub(" ", _LEAD.sub("", without_mark(text), count=1), count=1))
            yield Line(note.path, number, text, heading, day, terms(words))


def _day(text: str) -> dt.date | None:
    match = _ISO.search(text)
    try:
        return dt.date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


class Corrections:
    """The pairs of a workspace's lines."""

    def __init__(self, notes: Iterable[DatedNote], check: Callable[[], None]) -> None:
        self.lines = [line for note in notes for line in _lines(note)]
        self._check = check
        self._holders: dict[str, list[int]] = defaultdict(list)
        for at, line in enumerate(self.lines):
            for term in line.terms:
                self._holders[term].append(at)
        self._common = max(30, len(self.lines) // 100)
        self._rarest = math.log(1 + len(self.lines))
        self._weights = {term: math.log(1 + len(self.lines) / len(held)) for term, held in self._holders.items()}

    def pairs(self) -> list[Correction]:
        """Return each correction once, the surer rule first. Raises Cancelled."""
        pairs: dict[tuple[str, int], Correction] = {}
        for rule in (self._named, self._marked, self._opened, self._put_away, self._labelled, self._opposed):
            self._check()
            for pair in rule():
                pairs.setdefault((pair.old.path, pair.old.number), pair)
        return list(pairs.values())

    def _weight(self, names: Sequence[str] | frozenset[str]) -> float:
        return sum(self._weights.get(name, self._rarest) for name in names)

    def _older(self, new: Line) -> Iterator[tuple[Line, float, float]]:
        """Yield older lines that share a rare term with `new`, with the share of either's weight that is common."""
        weight = self._weight(new.terms)
        near = {at for term in new.terms if len(self._holders[term]) <= self._common for at in self._holders[term]}
        for at in sorted(near):
            old = self.lines[at]
            if not old.terms or len(old.terms) > 18 or not new.terms - old.terms or not _is_older(old, new):
                continue
            if _holds(old) and (shared := new.terms & old.terms):
                common = self._weight(shared)
                yield old, common / self._weight(old.terms), common / weight

    def _best(self, new: Line, fits: Callable[[Line, Line, float, float], bool]) -> Line | None:
        best = [
            (0.5 * s_old + 0.5 * s_new + 0.15 * (old.heading == new.heading), old)
            for old, s_old, s_new in self._older(new)
            if fits(new, old, s_old, s_new)
        ]
        return max(best, key=lambda row: row[0])[1] if best else None

    def _new_lines(self) -> Iterator[tuple[Line, str]]:
        return ((line, _LEAD.sub("", line.text, count=1)) for line in self.lines if _holds(line))

    def _named(self) -> Iterator[Correction]:
        """Yield what a line names itself as overtaken, which is marked; its number may have moved since."""
        for new in self.lines:
            for path, number in SUPERSEDES.findall(new.text):
                marked = [old for old in self.lines if old.path == path and is_overtaken(old.text) and old is not new]
                if marked:
                    yield Correction(new, min(marked, key=lambda old: abs(old.number - int(number))))

    def _opened(self) -> Iterator[Correction]:
        for new, words in self._new_lines():
            if _OPENER.match(words) and (old := self._best(new, _is_corrected)) is not None:
                yield Correction(new, old)

    def _put_away(self) -> Iterator[Correction]:
        for new, words in self._new_lines():
            if len(new.terms) > 24 or "`" in words or _LABEL.match(_NOW.sub("", words)):
                continue
            groups = (value for rule in _AWAY for match in rule.finditer(words) for value in match.groups())
            values = [terms(value) for value in groups if value]
            unit = _amount(words) if _CHANGED.search(words) or _NOW.search(words) else ""
            if (values or unit) and (old := self._best(new, partial(self._is_put_away, values, unit))) is not None:
                yield Correction(new, old)

    def _is_put_away(
        self, values: list[frozenset[str]], unit: str, new: Line, old: Line, s_old: float, _: float
    ) -> bool:
        """Tell whether a lasting line has an amount in `unit`, or one of the `values` that a new line puts away."""
        if old.day is not None or s_old < 0.4:
            return False
        if unit and unit == _amount(old.text) and len(new.terms & old.terms) >= 3:
            return True
        return s_old >= 0.5 and any(
            value
            and self._weight(value & old.terms) >= 0.6 * self._weight(value)
            and self._weight(old.terms - value) >= 0.25 * self._weight(old.terms)
            for value in values
        )

    def _labelled(self) -> Iterator[Correction]:
        """Yield lasting lines `label: value` of which a dated line under the same heading has another value."""
        by_label: dict[tuple[str, str], list[tuple[Line, str]]] = defaultdict(list)
        names: Counter[str] = Counter()
        for line, words in self._new_lines():
            if (match := _LABEL.match(words.replace("**", ""))) and not _NEVER_LABELS.search(match[1]):
                by_label[match[1].strip().lower(), line.heading].append((line, match[2].strip()))
                names[match[1].strip().lower()] += 1
        for (name, heading), rows in by_label.items():
            if not heading or _day(heading) or len(rows) < 2 or names[name] > 3:
                continue
            for old, value in rows:
                newer = [row for row in rows if row[0].path != old.path and old.day is None and row[0].day is not None]
                if newer and _is_changed(value, (last := max(newer, key=lambda row: row[0].day or dt.date.min))[1]):
                    yield Correction(last[0], old)

    def _opposed(self) -> Iterator[Correction]:
        """Yield lines that say a lasting line word for word, but for a negation."""
        by_words: dict[str, list[tuple[Line, int]]] = defaultdict(list)
        for line, text in self._new_lines():
            said, count = _NOT.subn(" ", text)
            words = "".join(_WORD.findall(_ALWAYS.sub(" ", said).lower()))
            # What is shorter, such as "not ready", tells of a state.
            if len(words.encode()) >= 24 and not text.rstrip().endswith(("?", "？")):
                by_words[words].append((line, count % 2))
        for rows in by_words.values():
            old, denied = next((row for row in rows if row[0].day is None), rows[0])
            for new, other in rows if old.day is None else ():
                # A list of what to do and what not may hold both.
                if denied != other and (old.path != new.path or old.heading == new.heading):
                    yield Correction(new, old, opposite=True)
                    break

    def _marked(self) -> Iterator[Correction]:
        """Yield lines that are marked as overtaken, with the line soon below that holds instead."""
        for at, old in enumerate(self.lines):
            if not is_overtaken(old.text) or (not is_marked(old.text) and _TASK.search(old.text)):
                continue
            for new in self.lines[at + 1 : at + 40]:
                if new.path != old.path or new.number > old.number + 25:
                    break
                shared = new.terms & old.terms
                s_old = self._weight(shared) / (self._weight(old.terms) or 1)
                same = new.heading == old.heading and s_old >= 0.3
                if not is_overtaken(new.text) and (same or (len(shared) >= 2 and s_old >= 0.4)):
                    yield Correction(new, old)
                    break


def _holds(line: Line) -> bool:
    """Tell whether a line says something that holds: no task, no title of what follows, nothing overtaken."""
    return not (_TASK.search(line.text) or line.text.rstrip().endswith((":", "：")) or is_overtaken(line.text))


def _is_corrected(new: Line, old: Line, s_old: float, _s_new: float) -> bool:
    return s_old >= 0.45 and len(old.terms & new.terms) >= 2


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
    left, right = old.lower(), new.lower()
    if max(len(left.split()), len(right.split())) > 6 or left in right or right in left:
        return False
    units = _UNIT.match(left), _UNIT.match(right)
    return (units[0][1].strip() == units[1][1].strip()) if units[0] and units[1] else not units[0] and not units[1]
