"""Checks of the settings: values that cannot be used, and values that together cannot work."""

from __future__ import annotations

import math
import os
import stat
from typing import TYPE_CHECKING

from memory_tui import profiles
from memory_tui.doctor.record import Check, Finding, ok, skipped, warning
from memory_tui.explain.wording import plural
from memory_tui.search.scoring import candidate_limit

if TYPE_CHECKING:
    from memory_tui.engine import Engine

_DECAY = "query.hybrid.temporalDecay"


def _configuration(engine: Engine) -> Finding:
    config = engine.plan.config
    if config.path is None:
        return ok("There is no configuration; the defaults hold.")
    if config.found:
        return warning(
            f"{plural(len(config.found), 'value')} not used as written: {config.found[0]}",
            "memory-tui config lists every value and where it is from.",
        )
    return ok(f"{config.path} is understood from end to end.")


def _secrets(engine: Engine) -> Finding:
    config = engine.plan.config
    keys = [entry.node.value for path, entry in config.entries.items() if path.endswith(".apiKey")]
    if config.path is None or not any(isinstance(key, str) for key in keys):
        return skipped("No key is written in a configuration.")
    if os.name == "posix" and stat.S_IMODE(config.path.stat().st_mode) & 0o077:
        return warning(f"{config.path} holds a key and can be read by others.", f"chmod 600 {config.path}")
    return ok("The file with the key is readable for you alone.")


def _keyword_gate(engine: Engine) -> Finding:
    settings = engine.settings
    rules, floor = profiles.get(settings.word("profile")), settings.number("query.minScore")
    weight = settings.number("query.hybrid.textWeight")
    if rules.missing_side != "zero" or not settings.on("query.hybrid.enabled"):
        return skipped("These rules work out both sides of every hit.")
    if weight <= floor:
        relaxed = " unless nothing else passes" if rules.relaxed_floor else ""
        return warning(
            f"A hit by words alone scores at most {weight:g}, and minScore is {floor:g}: it is never "
            f"recalled{relaxed}.",
            "Set minScore below textWeight, or try the profile recommended.",
        )
    return ok(f"A hit by words alone can score {weight:g}, over minScore {floor:g}.")


def _forgetting(engine: Engine) -> Finding:
    settings = engine.settings
    rules, floor = profiles.get(settings.word("profile")), settings.number("query.minScore")
    if not settings.on(f"{_DECAY}.enabled") or rules.age != "multiply":
        return ok("No note is lost by age alone.")
    if floor <= 0:
        return ok("Age lowers scores, and no minScore cuts them off.")
    half = settings.number(f"{_DECAY}.halfLifeDays")
    days = half * math.log2(1 / floor)
    dated = sum(row.day is not None for row in engine.files())
    return warning(
        f"With a half-life of {half:g} days even a perfect hit is below minScore {floor:g} after "
        f"{days:.0f} days; {plural(dated, 'note')} carry a date.",
        "Raise the half-life or lower minScore; memory-tui why shows what that brings.",
    )


def _kept_fresh(engine: Engine) -> Finding:
    settings = engine.settings
    on = [name for name in ("sync.watch", "sync.onSearch", "sync.onSessionStart") if settings.on(name)]
    if not on:
        return warning(
            "Nothing brings the index up to date by itself: watch, onSearch and onSessionStart are off.",
            "Switch one of them on.",
        )
    return ok(f"{', '.join(on)} keep the index fresh.")


def _weights(engine: Engine) -> Finding:
    settings = engine.settings
    vector, text = settings.number("query.hybrid.vectorWeight"), settings.number("query.hybrid.textWeight")
    if vector == text == 0:
        return warning("Both weights are 0; 0.7 and 0.3 are used.", "Set one of them.")
    if abs(vector + text - 1) > 1e-6:
        return warning(
            f"The weights {vector:g} and {text:g} do not add up to 1; they are made to.", "Write what they come to."
        )
    return ok(f"Meaning counts {vector:g}, words count {text:g}.")


def _results(engine: Engine) -> Finding:
    settings = engine.settings
    results = settings.whole("query.maxResults")
    looked_at = candidate_limit(
        results,
        settings.whole("query.hybrid.candidateMultiplier"),
        profiles.get(settings.word("profile")).fewest_candidates,
    )
    if results > looked_at:
        return warning(
            f"{results} results are asked for, and {looked_at} candidates a side are looked at.",
            f"Ask for {looked_at} or fewer.",
        )
    return ok(f"{plural(results, 'result')} of up to {looked_at} candidates a side.")


def _sessions(engine: Engine) -> Finding:
    config = engine.plan.config
    asked = config.value("sources")
    if not isinstance(asked, tuple) or "sessions" not in asked:
        return skipped("Transcripts are not asked for.")
    if config.value("experimental.sessionMemory") is not True:
        return warning(
            "Transcripts are among the sources, but experimental.sessionMemory is off: nothing is searched there.",
            "Set experimental.sessionMemory to true.",
        )
    return ok("Transcripts are searched.")


CHECKS: tuple[Check, ...] = (
    Check("configuration", "settings", "The configuration is understood", _configuration),
    Check("key-file", "settings", "Keys are readable for you alone", _secrets),
    Check("keyword-gate", "settings", "A hit by words alone can be recalled", _keyword_gate),
    Check("forgetting", "settings", "Old notes can be recalled", _forgetting),
    Check("kept-fresh", "settings", "Something keeps the index fresh", _kept_fresh),
    Check("weights", "settings", "The weights make sense", _weights),
    Check("results", "settings", "As many candidates as results", _results),
    Check("sessions", "settings", "Transcripts are searched where asked", _sessions),
)
