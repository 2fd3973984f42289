"""The knobs of the tune strip: how each is shown, stepped and typed, and why some have no effect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memory_tui import profiles
from memory_tui.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings, check, parse, show
from memory_tui.tui.session import DATE, PAIR, stepped

SHORT = {
    "profile": "",
    "query.hybrid.vectorWeight": "vec",
    "query.hybrid.textWeight": "txt",
    "query.minScore": "min",
    "query.hybrid.temporalDecay.enabled": "decay",
    "query.hybrid.temporalDecay.halfLifeDays": "half",
    "query.maxResults": "top",
    "query.hybrid.candidateMultiplier": "cand",
    "query.hybrid.mmr.enabled": "mmr",
    "query.hybrid.mmr.lambda": "lambda",
    "query.hybrid.enabled": "hybrid",
    "recency.weight": "rec",
    "dateBoost": "day",
    "date": "date",
}
"""Labels for a strip of one line."""

_DECAY = "query.hybrid.temporalDecay.enabled"
_NEEDS = {
    "query.hybrid.temporalDecay.halfLifeDays": (_DECAY, "decay is off"),
    "recency.weight": (_DECAY, "decay is off"),
    "query.hybrid.mmr.lambda": ("query.hybrid.mmr.enabled", "mmr is off"),
    "query.hybrid.textWeight": ("query.hybrid.enabled", "hybrid is off: vectors alone decide"),
    "query.hybrid.vectorWeight": ("query.hybrid.enabled", "hybrid is off: vectors alone decide"),
}

TRACK, THUMB = "─", "●"


@dataclass(frozen=True, slots=True)
class Dial:
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
    found = []
    counts = _counts(settings)
    for key in TUNE_KEYS:
        value = settings.values[key]
        ignored = profile.ignores.get(key, "")
        # A profile that keeps its weights with one side missing scales what that side gives, so they still count.
        weighs = key in PAIR and profile.missing_side != "zero"
        if not ignored and key in _NEEDS and not weighs and not settings.on(_NEEDS[key][0]):
            ignored = _NEEDS[key][1]
        changed = value.value != opened.values[key].value
        origin = value.origin if changed else opened.values[key].origin
        reach = _reach(settings) if key == "query.minScore" else 1.0
        found.append(Dial(BY_KEY[key], value.value, origin, ignored, changed, counts.get(key, ""), reach))
    frozen = "" if settings.on(_DECAY) else "decay is off, so nothing ages"
    return [*found, Dial(DATE, days, "days from now; type a number, - for the past", frozen, days != 0)]


def _reach(settings: Settings) -> float:
    """The best score there can be: 1 from vector and text, and what the profile adds for age and a named day."""
    profile = profiles.get(settings.word("profile"))
    if profile.age != "add":
        return 1.0
    recent = settings.number("recency.weight") if settings.on(_DECAY) else 0.0
    return 1.0 + recent + (0.0 if "dateBoost" in profile.ignores else settings.number("dateBoost"))


def _counts(settings: Settings) -> dict[str, str]:
    """What the weights come to, where they do not add up to 1."""
    raw = {key: settings.number(key) for key in sorted(PAIR, reverse=True)}
    if abs(sum(raw.values()) - 1) < 1e-6:
        return {}
    from memory_tui.search.scoring import normalised_weights

    return {key: show(BY_KEY[key], value) for key, value in zip(raw, normalised_weights(*raw.values()), strict=True)}


def weighing(dials: Sequence[Dial]) -> str:
    """That weights count for something else than they say: `weights .90 : .60 count as .60 : .40`; else empty."""
    pair = [dial for dial in dials if dial.counts and not dial.ignored]
    said, counted = (" : ".join(words) for words in ([dial.shown for dial in pair], [dial.counts for dial in pair]))
    return f"weights {said} count as {counted}" if pair else ""


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
    pair = (f"; counts as {dial.counts}" if dial.counts else "; both weights add up to 1") if knob.key in PAIR else ""
    reach = f"; scores go up to {dial.reach:.2f} with age and day" if dial.reach > 1 else ""
    return f"{knob.label}: {knob.help}{pair}{reach}{scope}  ({dial.origin})"
