"""One question and the knobs turned for it: what is compared with what, and the way back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from memory_tui.search.trace import Trace
from memory_tui.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings, Value, show

if TYPE_CHECKING:
    from memory_tui.config.writing import Written
    from memory_tui.search.evidence import Evidence

Rank = Callable[["Evidence", Settings], Trace]

PAIR = {"query.hybrid.vectorWeight": "query.hybrid.textWeight", "query.hybrid.textWeight": "query.hybrid.vectorWeight"}
"""Weights that add up to 1: turning one turns the other."""

ORIGIN = "tuned on screen"
OPENED = "as opened"
"""What the baseline is called that nobody named."""

DATE = Knob("date", "date", 0, "what will be recalled on that day", -365, 365, 5, 1, "d", most=36_500)
"""A knob of the screen alone: days from now."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is compared with: `name` is a letter, `title` says what it is, `days` from now it is asked."""

    name: str
    title: str
    settings: Settings
    days: int = 0


@dataclass(frozen=True, slots=True)
class Stand:
    """Everything that a step changes and that can be undone: the knobs, the date as days from now, the baseline."""

    settings: Settings
    baseline: Baseline
    days: int = 0


@dataclass(frozen=True, slots=True)
class Write:
    """Knobs that were written into `target`: their `values`, the `files` to restore, what was as `opened` before."""

    target: str
    values: Mapping[str, Scalar]
    files: tuple[Written, ...]
    opened: Settings
    title: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where the knobs are, where they were, and what they are compared with; immutable.

    `opened` is what the configuration says: as it was when the app was opened, or as it was written since (`writes`).
    """

    opened: Settings
    stand: Stand
    past: tuple[Stand, ...] = ()
    future: tuple[Stand, ...] = ()
    writes: tuple[Write, ...] = ()

    @classmethod
    def start(cls, settings: Settings) -> Tuning:
        """Nothing turned yet; the baseline is what the app was opened with."""
        return cls(settings, Stand(settings, Baseline("A", OPENED, settings)))

    @property
    def settings(self) -> Settings:
        """The knobs as they are now."""
        return self.stand.settings

    @property
    def baseline(self) -> Baseline:
        """What they are compared with."""
        return self.stand.baseline

    @property
    def days(self) -> int:
        """The date that ages are counted from, in days from now."""
        return self.stand.days

    def _step(self, stand: Stand) -> Tuning:
        return replace(self, stand=stand, past=(*self.past, self.stand), future=())

    def to(self, settings: Settings) -> Tuning:
        """The knobs at `settings`; the same tuning when that changes nothing."""
        return self if same(settings, self.settings) else self._step(replace(self.stand, settings=settings))

    def at(self, days: int) -> Tuning:
        """Ages counted from `days` after now; the same tuning when they are already."""
        return self if days == self.days else self._step(replace(self.stand, days=days))

    def set(self, key: str, value: Scalar) -> Tuning:
        """`key` at `value`; a weight takes its partner along. Raises SettingError."""
        if key == DATE.key:
            return self.at(int(value))
        changes: dict[str, object] = {key: value}
        if key in PAIR:
            changes[PAIR[key]] = round(1 - float(value), 4)
        return self.to(self.settings.update(changes, ORIGIN))

    def reset(self, key: str) -> Tuning:
        """`key` (and the other weight) as it was when the app was opened."""
        if key == DATE.key:
            return self.at(0)
        keys = [key, PAIR[key]] if key in PAIR else [key]
        values = {**self.settings.values, **{k: self.opened.values[k] for k in keys}}
        return self.to(Settings(MappingProxyType(values)))

    def reset_all(self) -> Tuning:
        """Every knob as it was when the app was opened, and the date as it is."""
        return self._step(replace(self.stand, settings=self.opened, days=0)) if self.tuned else self

    def undo(self) -> Tuning:
        """One step back, if there is one."""
        if not self.past:
            return self
        return replace(self, stand=self.past[-1], past=self.past[:-1], future=(self.stand, *self.future))

    def redo(self) -> Tuning:
        """One step forward again, if there is one."""
        if not self.future:
            return self
        return replace(self, stand=self.future[0], past=(*self.past, self.stand), future=self.future[1:])

    def wrote(self, target: str, values: Mapping[str, Scalar], files: tuple[Written, ...]) -> Tuning:
        """The `values` were written into `target`: from now on they are as opened, and what was compared with that."""
        origin = f"written to {target}"
        # Under another profile every knob that was not written stands as that profile has it.
        before = self.settings if "profile" in values else self.opened
        opened = Settings(
            MappingProxyType({**before.values, **{key: Value(value, origin) for key, value in values.items()}})
        )
        write = Write(target, values, files, self.opened, self._opened_title)
        return replace(self._based(opened, f"as {origin}"), writes=(*self.writes, write))

    def unwrote(self) -> Tuning:
        """The last write was taken back: as opened is what was before it."""
        if not self.writes:
            return self
        last = self.writes[-1]
        return replace(self._based(last.opened, last.title), writes=self.writes[:-1])

    @property
    def _opened_title(self) -> str:
        return f"as written to {self.writes[-1].target}" if self.writes else OPENED

    def _based(self, opened: Settings, title: str) -> Tuning:
        """Everything that was compared with how the app was opened, compared with `opened`; named baselines stay."""

        def moved(stand: Stand) -> Stand:
            base = stand.baseline
            if base.settings is not self.opened or base.title != self._opened_title:
                return stand
            return replace(stand, baseline=replace(base, title=title, settings=opened))

        return replace(
            self,
            opened=opened,
            stand=moved(self.stand),
            past=tuple(map(moved, self.past)),
            future=tuple(map(moved, self.future)),
        )

    @property
    def written(self) -> str:
        """Where the knobs are written as they stand now, as words; empty when they are not, or were not written."""
        return self._opened_title if self.writes and not self.tuned else ""

    def rebase(self, title: str = "") -> Tuning:
        """The knobs as they are now become the baseline, under the next letter and the name `title`."""
        stand = self.stand
        name = title.strip() or self.difference() or self._opened_title
        base = Baseline(self.next_letter, name, stand.settings, stand.days)
        return self._step(replace(stand, baseline=base))

    @property
    def next_letter(self) -> str:
        """The letter that the next baseline gets."""
        return chr(ord("A") + (ord(self.baseline.name) - ord("A") + 1) % 26)

    @property
    def tuned(self) -> bool:
        """Whether any knob differs from how the app was opened."""
        return bool(self.days) or not same(self.settings, self.opened)

    @property
    def compared(self) -> bool:
        """Whether any knob differs from the baseline."""
        return self.days != self.baseline.days or not same(self.settings, self.baseline.settings)

    def difference(self) -> str:
        """What differs from how the app was opened, as `label value` words."""
        turned = [
            f"{BY_KEY[key].label} {show(BY_KEY[key], self.settings.values[key].value)}"
            for key in TUNE_KEYS
            if self.settings.values[key].value != self.opened.values[key].value
        ]
        return ", ".join(turned + ([f"date {self.days:+d} d"] if self.days else []))


def brought(before: Stand, after: Stand) -> str:
    """What a step from `before` to `after` brought, as `label value` words: a profile for all the knobs it sets."""
    keys = [key for key in TUNE_KEYS if before.settings.values[key].value != after.settings.values[key].value]
    if "profile" in keys:
        keys = ["profile"]
    words = [f"{BY_KEY[key].label} {show(BY_KEY[key], after.settings.values[key].value)}" for key in keys]
    if before.days != after.days:
        words.append(f"date {after.days:+d} d")
    if before.baseline != after.baseline:
        words.append(f"baseline {after.baseline.name}")
    return ", ".join(words) or "the knobs"


def same(one: Settings, other: Settings) -> bool:
    """Whether two settings have equal values, wherever these came from."""
    return all(one.values[key].value == other.values[key].value for key in BY_KEY)


def stepped(knob: Knob, value: Scalar, direction: int, *, fine: bool = False) -> Scalar:
    """`value` one step up (+1) or down (-1) on the knob's own grid, kept in its range; switches and choices turn."""
    if knob.choices:
        at = knob.choices.index(str(value)) if value in knob.choices else 0
        return knob.choices[(at + direction) % len(knob.choices)]
    if isinstance(knob.default, bool):
        return direction > 0
    step = knob.fine if fine else knob.step
    grid = float(value) / step
    # 1e-9 of a step absorbs the error of decimal fractions, so that 0.35 counts as a point of the grid.
    target = (math.floor(grid + 1e-9) + 1 if direction > 0 else math.ceil(grid - 1e-9) - 1) * step
    kept = min(knob.top, max(knob.low, round(target, 6)))
    return kept if isinstance(knob.default, float) else int(kept)


@dataclass(frozen=True, slots=True)
class Change:
    """How a chunk's place differs from the baseline: `mark` is =, +2, -1, new, out or empty."""

    mark: str
    was: int | None = None


def changes(now: Trace, before: Trace) -> dict[int, Change]:
    """For each chunk (rowid) that is recalled now or was before, what became of it."""
    old = {candidate.chunk.rowid: place for place, candidate in enumerate(before.recalled, 1)}
    new = {candidate.chunk.rowid: place for place, candidate in enumerate(now.recalled, 1)}
    found = {}
    for rowid, place in new.items():
        was = old.get(rowid)
        if was is None:
            found[rowid] = Change("new")
        else:
            found[rowid] = Change("=" if was == place else f"{was - place:+d}", was)
    for rowid, was in old.items():
        if rowid not in new:
            found[rowid] = Change("out", was)
    return found


def summary(marks: dict[int, Change]) -> str:
    """`2 up, 1 down, 1 new, 2 out, 2 same`."""
    counts = {"up": 0, "down": 0, "new": 0, "out": 0, "same": 0}
    for change in marks.values():
        word = {"=": "same", "new": "new", "out": "out"}.get(change.mark) or ("up" if change.mark[0] == "+" else "down")
        counts[word] += 1
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing recalled"


def dated(evidence: Evidence, days: int) -> Evidence:
    """`evidence` with the ages it will have `days` from now."""
    if not days:
        return evidence
    from memory_tui.search.evidence import later

    return later(evidence, days)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, ranked under the knobs and under the baseline; `evidence` is as it was found, today."""

    evidence: Evidence
    days: int
    trace: Trace
    baseline: Trace
    compared: Baseline

    @classmethod
    def of(cls, rank: Rank, evidence: Evidence, tuning: Tuning, last: Answer | None = None) -> Answer:
        """`evidence` ranked; the baseline of the `last` answer is used again where it is still the same."""
        trace, base = rank(dated(evidence, tuning.days), tuning.settings), tuning.baseline
        if not tuning.compared:
            return cls(evidence, tuning.days, trace, trace, base)
        known = (
            last is not None
            and last.evidence is evidence
            and last.compared is base
            and (last.baseline.settings is base.settings)
        )
        before = last.baseline if last and known else rank(dated(evidence, base.days), base.settings)
        return cls(evidence, tuning.days, trace, before, base)

    @property
    def dated(self) -> Evidence:
        """The evidence with the ages of the day that the date knob names."""
        return dated(self.evidence, self.days)
