"""The knobs of a ranking in a person's words, and the steps they take; plain functions of settings."""

import math
from collections.abc import Mapping, Sequence

from memory_tui.config.settings import BY_KEY, TUNE_KEYS, Knob, Scalar, Settings, profile_named, show
from memory_tui.explain.counterfactuals import TEXT, WEIGHT

ORIGIN = "tried on screen"
RESULTS, FLOOR, PROFILE = "query.maxResults", "query.minScore", "profile"
HALF_LIFE, DECAY = "query.hybrid.temporalDecay.halfLifeDays", "query.hybrid.temporalDecay.enabled"
NAMES: Mapping[str, str] = {
    PROFILE: "ranking",
    WEIGHT: "words : meaning",
    FLOOR: "too weak under",
    DECAY: "age counts",
    HALF_LIFE: "half-life",
    RESULTS: "results",
    "query.hybrid.candidateMultiplier": "candidates",
    "query.hybrid.mmr.enabled": "variety",
    "query.hybrid.mmr.lambda": "score : variety",
    "query.hybrid.enabled": "words count",
    "recency.weight": "age weighs",
    "dateBoost": "a named day weighs",
    "secondStage.weight": "second look",
    "secondStage.neighbour": "beside a better one",
}
"""What the screen calls each knob that ranks; the weight of words goes with that of meaning."""


def figure(value: float, digits: int = 2) -> str:
    """Return a share rounded to `digits` digits: `.65`, `1.00`, `-.10`."""
    unit = 10**digits
    units = round(value * unit)
    sign, rest = ("-" if units < 0 else ""), abs(units)
    return f"{sign}{rest // unit or ''}.{rest % unit:0{digits}d}"


def under(value: float, floor: float) -> str:
    """Return a share that is under `floor` with the fewest digits, 2 to 8, that tell it from `floor`."""
    return figure(value, next((digits for digits in range(2, 9) if figure(value, digits) != figure(floor, digits)), 2))


def shown(key: str, value: Scalar) -> str:
    """Return the value of a knob: `.60 : .40`, `30 d`, `on`."""
    if key in (WEIGHT, "query.hybrid.mmr.lambda"):
        return f"{figure(share(key, value))} : {figure(1 - share(key, value))}"
    return profile_named(str(value)).title if key == PROFILE else show(BY_KEY[key], value)


def turn(key: str, value: Scalar, was: Scalar, time: str = "now") -> str:
    """Return a change of a knob as a remedy names it: `7 results instead of 6`; `time` says when it is `was`."""
    match key:
        case "query.maxResults":
            return f"{value} results instead of {was}"
        case "profile":
            return f"the ranking of {shown(key, value)}"
        case "query.hybrid.enabled":
            return "words as well as meaning" if value else "meaning alone"
        case _ if isinstance(value, bool):
            return f"{NAMES[key]} {'on' if value else 'off'}"
        case _:
            # A higher limit can have a passage sent only by shutting out others, so that is said.
            how = ", so weaker ones drop out" * (time == "now" and key == FLOOR and float(value) > float(was))
            return f"{NAMES[key]} {shown(key, value)} ({time} {shown(key, was)}){how}"


def active(settings: Settings) -> list[str]:
    """Return the keys of the knobs that have an effect under `settings`, in the order of the table."""
    profile = settings.profile

    def counts(knob: Knob) -> bool:
        """Return whether a turn of the knob can change the ranking, by the profile and the knobs it needs."""
        # A weight of words or meaning counts without words, too, where a profile still computes the missing side.
        weighs = bool(knob.pair) and profile.missing_side != "zero"
        return knob.key not in profile.ignores and (not knob.needs or weighs or settings.on(knob.needs))

    return [key for key in NAMES if key == PROFILE or (key in TUNE_KEYS and counts(BY_KEY[key]))]


def stepped(settings: Settings, key: str, way: int, usable: Sequence[str]) -> Scalar:
    """Return the value of a knob one step left (-1) or right (+1) on its own grid, as far as its scale goes.

    Right is more of what its name says first. Of profiles it is the next one of the `usable`.
    """
    knob, value = BY_KEY[key], settings.values[key].value
    if key == PROFILE:
        return usable[(usable.index(str(value)) + way) % len(usable)] if value in usable else value
    if isinstance(knob.default, bool):
        return way > 0
    # In steps of the knob; a ten thousandth of one absorbs the error of decimal fractions.
    grid = float(value) / knob.step
    # This knob is named "words : meaning" and holds the weight of meaning: more words are less of it.
    is_up = way > 0 if key != WEIGHT else way < 0
    target = (math.floor(grid + 1e-4) + 1 if is_up else math.ceil(grid - 1e-4) - 1) * knob.step
    target = min(knob.high, max(knob.low, round(target, 6)))
    return target if isinstance(knob.default, float) else int(target)


def with_value(settings: Settings, key: str, value: Scalar) -> Settings:
    """Return `settings` with a knob at `value`; a weight takes its partner along."""
    changes: dict[str, Scalar] = {key: value}
    if key == WEIGHT:
        changes[TEXT] = round(1 - float(value), 4)
    return settings.update(changes, ORIGIN)


def same(left: Settings, right: Settings) -> bool:
    """Return whether two rankings rank alike."""
    return all(left.values[key].value == right.values[key].value for key in TUNE_KEYS)


def share(key: str, value: Scalar) -> float:
    """Return where a number is on its scale, 0 to 1; of the weight of meaning it is the share that words have."""
    knob = BY_KEY[key]
    low, high, clamped = knob.low, knob.high, min(knob.high, max(knob.low, float(value)))
    # A scale over more than two powers of ten is logarithmic.
    if low > 0 and high / low > 100:
        return math.log(clamped / low) / math.log(high / low)
    part = (clamped - low) / (high - low)
    return 1 - part if key == WEIGHT else part


def slider(key: str, value: Scalar, width: int) -> str:
    """Return a knob on a scale of `width` cells; nothing of one without numbers."""
    if isinstance(value, bool | str):
        return ""
    cells = round(share(key, value) * (width - 1))
    return "─" * cells + "●" + "─" * (width - 1 - cells)


def moved(before: Sequence[int], after: Sequence[int]) -> str:
    """Return how many rows a step lets in and out, of the ids that are sent `before` and `after` it.

    Another order of the same rows counts as no change.
    """
    comes, goes = len({*after} - {*before}), len({*before} - {*after})
    return ", ".join(f"{count} {way}" for count, way in ((comes, "in"), (goes, "out")) if count) or "no change"
