"""What worker threads do for the reports of the search view: noise floor, fading, and the search of the knobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_tui.tui.bridge import Tell
from memory_tui.tui.tasks import Progress

if TYPE_CHECKING:
    from memory_tui.engine import Engine
    from memory_tui.explain.fading import Fading
    from memory_tui.explain.noise import NoiseFloor
    from memory_tui.explain.probes import Probes
    from memory_tui.search.evidence import Evidence
    from memory_tui.settings import Settings
    from memory_tui.tune.evaluate import Case
    from memory_tui.tune.labels import Query
    from memory_tui.tune.patch import Patch
    from memory_tui.tune.sweep import Outcome


OFTEN = 0.15
"""Seconds between two parts of a long list."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise floor under some knobs, and the questions it was measured with, which serve for other knobs too."""

    floor: NoiseFloor
    probes: Probes


def measure_noise(
    engine: Engine, settings: Settings, cases: Sequence[Case], known: Probes | None
) -> Callable[[Tell], Noise]:
    """Asks unrelated questions (unless `known`), tells how far it is, and measures what they score."""

    def run(tell: Tell) -> Noise:
        from memory_tui.explain import noise, probes
        from memory_tui.tune import evaluate

        def ask(query: str) -> Evidence:
            tell(None)
            return engine.gather(query)

        def progress(done: int, total: int) -> None:
            tell(Progress("asking unrelated questions", done, total))

        asked = known or probes.ask_all(ask, evaluate.probes(cases), progress)
        return Noise(noise.measure(asked, settings), asked)

    return run


@dataclass(frozen=True, slots=True)
class Faded:
    """What age takes, question by question, as far as it has been looked at."""

    found: tuple[Fading, ...]
    questions: int


def find_fading(settings: Settings, evidences: Sequence[Evidence], horizon: int) -> Callable[[Tell], Faded]:
    """Tells after each question what fades of its answer; returns all of it, soonest first."""

    def run(tell: Tell) -> Faded:
        from memory_tui.explain.fading import fading

        found: list[Fading] = []
        told = 0.0
        for done, evidence in enumerate(evidences, 1):
            for one in fading(evidence, settings, horizon):
                tell(None)
                found.append(one)
            found.sort(key=lambda fade: fade.days)
            if time.monotonic() - told > OFTEN:
                tell(Faded(tuple(found), done))
                told = time.monotonic()
        return Faded(tuple(found), len(evidences))

    return run


def search_knobs(
    engine: Engine, settings: Settings, queries: Sequence[Query], cases: Sequence[Case], metric: str
) -> Callable[[Tell], Outcome]:
    """Asks the saved `queries` where `cases` lack them, then looks for better knobs; tells what it is doing."""

    def run(tell: Tell) -> Outcome:
        from memory_tui.tune import sweep
        from memory_tui.tune.evaluate import Case

        known = {case.query.text: case for case in cases}
        found = []
        for done, query in enumerate(queries):
            tell(Progress("asking saved questions", done, len(queries)))
            found.append(known.get(query.text) or Case.of(query, engine.gather(query.text)))
        return sweep.tune(found, settings, metric, progress=lambda words: tell(Progress(words)))

    return run


def propose_write(engine: Engine, settings: Settings) -> Callable[[Tell], Patch]:
    """What would make the knobs of the strip hold from now on, by the configuration as it is on disk now.

    Raises ConfigError.
    """

    def run(_tell: Tell) -> Patch:
        from memory_tui import launch
        from memory_tui.settings import TUNE_KEYS, Settings
        from memory_tui.tune.patch import patch

        choices = launch.choose(engine.plan.asked)
        written = replace(choices, settings=settings).as_written()
        tuned = Settings({**written.values, **{key: settings.values[key] for key in TUNE_KEYS}})
        return patch(choices.config, tuned, written)

    return run
