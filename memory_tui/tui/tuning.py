"""Tuning is one query with the knobs turned for it. It knows the way back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import profiles
from memory_tui.sanitize import safe
from memory_tui.search.trace import Trace
from memory_tui.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings, Value, check, parse, show
from memory_tui.tui.draw import fit_path

if TYPE_CHECKING:
    from memory_tui.config.config_patch import ConfigWrite
    from memory_tui.search.evidence import Evidence

Rank = Callable[["Evidence", Settings], Trace]

_DECAY = "query.hybrid.temporalDecay.enabled"

ORIGIN = "tuned on screen"
OPENED = "as opened"
"""What the baseline is called that nobody named."""

DATE = Knob(
    "date", "date", 0, "what will be recalled on that day", -365, 365, 5, 1, 36_500, "d", short="date", second=True
)
"""A knob of the screen alone: days from now."""


class Baseline(Struct, frozen=True):
    """What is compared with: `name` is a letter, `title` says what it is, `days` from now it is asked."""

    name: str
    title: str
    settings: Settings
    days: int = 0


class Stand(Struct, frozen=True):
    """Everything that a step changes and that can be undone: the knobs, the date as days from now, the baseline."""

    settings: Settings
    baseline: Baseline
    days: int = 0


class Write(Struct, frozen=True):
    """Knobs that were written into `target`: their `values`, the `files` to restore, what was as `opened` before."""

    target: str
    values: Mapping[str, Scalar]
    files: tuple[ConfigWrite, ...]
    opened: Settings
    title: str


class Tuning(Struct, frozen=True):
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
        if pair := BY_KEY[key].pair:
            changes[pair] = round(1 - float(value), 4)
        return self.to(self.settings.update(changes, ORIGIN))

    def reset(self, key: str) -> Tuning:
        """`key` (and the other weight) as it was when the app was opened."""
        if key == DATE.key:
            return self.at(0)
        keys = [key, *filter(None, [BY_KEY[key].pair])]
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

    def wrote(self, target: str, values: Mapping[str, Scalar], files: tuple[ConfigWrite, ...]) -> Tuning:
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

    @property
    def turned(self) -> dict[str, Scalar]:
        """The knobs that were turned on screen, with their values."""
        return {key: row.value for key, row in self.settings.values.items() if row.origin == ORIGIN}

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
    rest = min(knob.top, max(knob.low, round(target, 6)))
    return rest if isinstance(knob.default, float) else int(rest)


class PlaceChange(Struct, frozen=True):
    """How a chunk's place differs from the baseline: `mark` is =, +2, -1, new, out or empty."""

    mark: str
    was: int | None = None


def changes(now: Trace, before: Trace) -> dict[int, PlaceChange]:
    """For each chunk (rowid) that is recalled now or was before, what became of it."""
    old = {candidate.chunk.rowid: place for place, candidate in enumerate(before.recalled, 1)}
    new = {candidate.chunk.rowid: place for place, candidate in enumerate(now.recalled, 1)}
    reply = {}
    for rowid, place in new.items():
        was = old.get(rowid)
        if was is None:
            reply[rowid] = PlaceChange("new")
        else:
            reply[rowid] = PlaceChange("=" if was == place else f"{was - place:+d}", was)
    for rowid, was in old.items():
        if rowid not in new:
            reply[rowid] = PlaceChange("out", was)
    return reply


def summary(now: Trace, before: Trace) -> str:
    """`2 up, 1 new, 2 same, 2 out (network.md:24 ...)`: the best hit that is gone is named, it may be out of sight."""
    marks = changes(now, before)
    counts = {"up": 0, "down": 0, "new": 0, "same": 0, "out": 0}
    for change in marks.values():
        word = {"=": "same", "new": "new", "out": "out"}.get(change.mark) or ("up" if change.mark[0] == "+" else "down")
        counts[word] += 1
    lost = [row.chunk for row in before.recalled if marks[row.chunk.rowid].mark == "out"]
    if lost:
        more = " ..." if len(lost) > 1 else ""
        counts[f"out ({fit_path(safe(lost[0].path), 24)}:{lost[0].start_line}{more})"] = counts.pop("out")
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing recalled"


def dated(evidence: Evidence, days: int) -> Evidence:
    """`evidence` with the ages it will have `days` from now."""
    if not days:
        return evidence
    from memory_tui.search.evidence import later

    return later(evidence, days)


class Answer(Struct, frozen=True):
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
        seen = (
            last is not None
            and last.evidence is evidence
            and last.compared is base
            and (last.baseline.settings is base.settings)
        )
        before = last.baseline if last and seen else rank(dated(evidence, base.days), base.settings)
        return cls(evidence, tuning.days, trace, before, base)

    @property
    def dated(self) -> Evidence:
        """The evidence with the ages of the day that the date knob names."""
        return dated(self.evidence, self.days)


TRACK, THUMB = "─", "●"


class Dial(Struct, frozen=True):
    """One knob as the strip shows it; `ignored` says why it has no effect, or is empty.

    `counts` is what a weight comes to, of a pair that does not add up to 1; else empty.
    """

    knob: Knob
    value: Scalar
    origin: str
    ignored: str
    changed: bool
    counts: str = ""
    reach: float = 1.0
    """What a score comes to at most, of the knob that scores are held against."""

    @property
    def shown(self) -> str:
        """The value in a few characters."""
        if self.knob is DATE:
            return f"{self.value:+} d" if self.value else "today"
        return show(self.knob, self.value)

    @property
    def slides(self) -> bool:
        """Whether the value has a place on a scale."""
        return self.knob.high > self.knob.low

    def share(self) -> float:
        """Where the value is on its scale, 0 to 1; wide ranges are logarithmic, typed values can lie beyond the end."""
        low, high = self.knob.low, self.knob.high
        value = min(high, max(low, float(self.value)))
        if _logarithmic(self.knob):
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    def at_share(self, share: float) -> Scalar:
        """The value at `share` of the scale, on the knob's own grid."""
        low, high = self.knob.low, self.knob.high
        share = min(1.0, max(0.0, share))
        value = low * (high / low) ** share if _logarithmic(self.knob) else low + (high - low) * share
        value = min(high, max(low, round(round(value / self.knob.fine) * self.knob.fine, 6)))
        return check(self.knob, value if isinstance(self.knob.default, float) else int(value))

    def moved(self, direction: int, *, fine: bool = False) -> Scalar:
        """The value a step up or down."""
        if self.knob.key == "profile":
            names = tuple(profiles.PROFILES)
            return names[(names.index(str(self.value)) + direction) % len(names)]
        return stepped(self.knob, self.value, direction, fine=fine)

    def typed(self, text: str) -> Scalar:
        """The value that somebody typed. Raises SettingError."""
        return parse(self.knob, text)


def _logarithmic(knob: Knob) -> bool:
    return knob.low > 0 and knob.high / knob.low > 100


def dials(settings: Settings, opened: Settings, days: int = 0) -> list[Dial]:
    """Every knob of the strip in its order, the date as `days` from now."""
    profile = profiles.get(settings.word("profile"))
    reply = []
    counts = _counts(settings)
    for key in TUNE_KEYS:
        knob, value = BY_KEY[key], settings.values[key]
        ignored = profile.ignores.get(key, "")
        # A profile that keeps its weights with one side missing scales what that side gives, so they still count.
        weighs = knob.pair and profile.missing_side != "zero"
        if not ignored and knob.needs and not weighs and not settings.on(knob.needs[0]):
            ignored = knob.needs[1]
        changed = value.value != opened.values[key].value
        origin = value.origin if changed else opened.values[key].origin
        reach = _reach(settings) if key == "query.minScore" else 1.0
        reply.append(Dial(knob, value.value, origin, ignored, changed, counts.get(key, ""), reach))
    frozen = "" if settings.on(_DECAY) else "decay is off, so nothing ages"
    return [*reply, Dial(DATE, days, "days from now; type a number, - for the past", frozen, days != 0)]


def _reach(settings: Settings) -> float:
    """The best score there can be."""
    # Importance and project multiply by as much as this.
    return 1.25 * 1.15 if profiles.get(settings.word("profile")).exact_paths else 1.0


def _counts(settings: Settings) -> dict[str, str]:
    """What the weights come to, where they do not add up to 1."""
    raw = {key: settings.number(key) for key in TUNE_KEYS if BY_KEY[key].pair}
    if abs(sum(raw.values()) - 1) < 1e-6:
        return {}
    from memory_tui.search.formulas import normalised_weights

    return {key: show(BY_KEY[key], value) for key, value in zip(raw, normalised_weights(*raw.values()), strict=True)}


def weighing(dials: Sequence[Dial]) -> str:
    """That weights count for something else than they say: `weights .90 : .60 count as .60 : .40`; else empty."""
    pair = [dial for dial in dials if dial.counts and not dial.ignored]
    text, counted = (" : ".join(words) for words in ([dial.shown for dial in pair], [dial.counts for dial in pair]))
    return f"weights {text} count as {counted}" if pair else ""


def slider(dial: Dial, width: int) -> str:
    """The knob on its scale, `width` cells long."""
    at = round(dial.share() * (width - 1))
    return TRACK * at + THUMB + TRACK * (width - 1 - at)


def describe(dial: Dial) -> str:
    """What the knob does, its range and where its value comes from, in one line."""
    knob = dial.knob
    if dial.ignored:
        return f"{knob.label} has no effect: {dial.ignored}"
    scope = f"  {knob.low:g} to {knob.top:g}{knob.unit and ' '}{knob.unit}" if dial.slides else ""
    pair = (f"; counts as {dial.counts}" if dial.counts else "; both weights add up to 1") if knob.pair else ""
    reach = f"; scores go up to {dial.reach:.2f} with age and day" if dial.reach > 1 else ""
    return f"{knob.label}: {knob.help}{pair}{reach}{scope}  ({dial.origin})"
