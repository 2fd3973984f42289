"""What age takes: every hit that fades does so on the first day on which a fresh ranking lacks it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.core.settings import Settings
from memory_tui.explain.decay import fading
from memory_tui.search.evidence import Evidence, later
from memory_tui.search.rank import rank
from memory_tui.search.trace import AllBelowGate
from tests.support.search import evidence as made
from tests.support.search import settings as chosen

OPENCLAW = "openclaw-2026.3"
DECAY = "query.hybrid.temporalDecay.enabled"


def recalled(found: Evidence, settings: Settings, days: int = 0) -> list[int]:
    return [candidate.chunk.rowid for candidate in rank(later(found, days), settings).recalled]


def decaying(**changes: object) -> Settings:
    return chosen(OPENCLAW, **{DECAY: True, **changes})


ages = st.lists(st.one_of(st.just(math.nan), st.floats(0, 200)), min_size=1, max_size=8)


@hypothesis_settings(max_examples=40, deadline=None)
@given(ages, st.data(), st.integers(5, 60), st.integers(1, 4))
def test_each_hit_fades_on_the_first_day_that_lacks_it(
    days: list[float], data: st.DataObject, half_life: int, results: int
) -> None:
    cosines = [data.draw(st.floats(0.3, 1.0)) for _ in days]
    found = made(cosines, {}, ages=days)
    settings = decaying(halfLifeDays=half_life, maxResults=results)
    faded = list(fading(found, settings, 40))
    today = recalled(found, settings)
    expected = {}
    for day in range(1, 41):
        now = recalled(found, settings, day)
        for rowid in today:
            if rowid not in now:
                expected.setdefault(rowid, day)
    assert {fade.chunk.rowid: fade.days for fade in faded if fade.days} == expected
    ageless = recalled(found, settings.set(DECAY, False, "test"))
    assert {fade.chunk.rowid for fade in faded if not fade.days} == set(ageless) - set(today)


def test_an_empty_answer_counts_what_would_pass_without_age() -> None:
    """Where age adds, it takes a share of the score from all else, so that an old note loses by it too."""
    found = made([0.9, 0.8], {}, ages=[400.0, 500.0])
    for profile in ("recommended", OPENCLAW):
        open_wide = chosen(profile, minScore=0.0, **{DECAY: True})
        aged, ageless = (rank(found, one).recalled[0].score for one in (open_wide, open_wide.set(DECAY, False, "test")))
        assert aged < ageless
        empty = rank(found, open_wide.set("query.minScore", (aged + ageless) / 2, "test")).empty
        assert isinstance(empty, AllBelowGate)
        assert empty.decayed > 0


def test_evergreen_notes_do_not_fade() -> None:
    found = made([0.9, 0.8], {}, ages=[math.nan, 1.0])
    assert [fade.chunk.rowid for fade in fading(found, decaying(halfLifeDays=5))] == [1]


def test_nothing_fades_while_decay_is_off() -> None:
    found = made([0.9, 0.8], {}, ages=[100.0, 300.0])
    assert list(fading(found, chosen(OPENCLAW))) == []


def test_the_reason_is_that_of_the_day_on_which_it_is_lost() -> None:
    found = made([0.6], {}, ages=[0.0])
    (fade,) = fading(found, decaying(halfLifeDays=30))
    # 0.7 x 0.6 = 0.42 falls below 0.35 when 0.5^(d/30) < 0.8333: after 7.89 days.
    assert (fade.days, fade.place) == (8, 1)
    assert type(fade.verdict).__name__ == "LoweredByDecay"


def test_a_day_counted_from_today_is_not_moved_and_that_is_told() -> None:
    found = made([0.6], {}, ages=[0.0])
    assert later(replace(found, query="what happened yesterday"), 30).notices == (), "the time was not read"
    side = replace(found.recommended, plan=replace(found.recommended.plan, time="2026-03-15"))
    found = replace(found, recommended=side)
    assert later(replace(found, query="what happened on 2026-03-15"), 30).notices == ()
    (notice,) = later(replace(found, query="what happened yesterday"), 30).notices
    assert notice.message == "The time that the query names is still counted from today."
