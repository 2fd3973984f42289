"""What would change the answer: every flip, applied, turns the verdict, and one step less does not."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui import demo
from memory_tui.core import profiles
from memory_tui.core.settings import BY_KEY, TUNE_KEYS, Settings
from memory_tui.engine.engine import Engine
from memory_tui.explain import counterfactuals as flipping
from memory_tui.explain.counterfactuals import WHOLE, Flip, Flips, flips, outwards, turned
from memory_tui.plan import Options
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import rank
from tests.search.test_rank import any_evidence, any_settings
from tests.support.search import evidence as made
from tests.support.search import settings as chosen

OPENCLAW = "openclaw-2026.3"
NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
HALF_LIFE = "query.hybrid.temporalDecay.halfLifeDays"


def with_profile(name: str) -> Settings:
    return profiles.compose(name, {}, {})


def recalled(found: Evidence, settings: Settings, rowid: int) -> bool:
    return any(c.chunk.rowid == rowid for c in rank(found, settings).recalled)


def nearer(flip: Flip) -> list[Settings]:
    """The settings at every value of the knob that is nearer than the flip's on its side, nearest last."""
    knob = BY_KEY[flip.key]
    if knob.choices or isinstance(knob.default, bool):
        return []
    up = flip.value > flip.was  # type: ignore[operator]
    values = []
    for value in outwards(knob, flip.was):
        if value == flip.value:
            break
        if (value > flip.was) == up:  # type: ignore[operator]
            values.append(value)
    base = flip.settings.update(turned(knob, flip.was), "test")
    return [base.update(turned(knob, value), "test") for value in values]


def check(found: Evidence, settings: Settings, row: int, answer: Flips) -> None:
    rowid = found.refs[row].rowid
    before = {c.chunk for c in rank(found, settings).recalled}
    now = recalled(found, settings, rowid)
    assert answer.recalled == now
    for flip in answer.found:
        trace = rank(found, flip.settings)
        after = [c.chunk for c in trace.recalled]
        assert recalled(found, flip.settings, rowid) != now, flip
        if not now:
            assert flip.place is not None
            assert after[flip.place - 1].rowid == rowid
        assert set(flip.comes_in) == {ref for ref in after if ref not in before and ref.rowid != rowid}
        assert set(flip.drops_out) == {ref for ref in before if ref not in after and ref.rowid != rowid}
        for settings_before in nearer(flip)[-1:]:
            assert recalled(found, settings_before, rowid) == now, "one step less does not turn it"
    order = [(flip.key in WHOLE, flip.harm, flip.presses) for flip in answer.found]
    assert order == sorted(order), "the least harm comes first, another way of ranking last"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The sample workspace."""
    out = tmp_path_factory.mktemp("flips")
    folder = demo.materialize(out / "notes", dt.date(2026, 11, 20))
    with Engine.open(
        Options(workspace=str(folder), index=str(out / "index.sqlite"), now=NOW, changes=(("sync.onSearch", "off"),))
    ) as engine:
        engine.index.sync()
        yield engine


@pytest.mark.parametrize("variant", ["recommended", OPENCLAW, "openclaw-2026.2", "decay", "mmr"])
def test_every_flip_of_every_chunk_of_the_sample(engine: Engine, variant: str) -> None:
    name = variant if variant in profiles.PROFILES else OPENCLAW
    settings = engine.plan.with_profile(name)
    if variant == "decay":
        settings = settings.update({"query.hybrid.temporalDecay.enabled": True, HALF_LIFE: 15}, "test")
    if variant == "mmr":
        settings = settings.update({"query.hybrid.mmr.enabled": True, "query.minScore": 0.2}, "test")
    kinds: Counter[str] = Counter()
    for number, labelled in enumerate(demo.labelled_queries(dt.date(2026, 11, 20))[:3]):
        found = engine.search.gather(labelled.text)
        for row in range(number, found.chunks, 8):
            answer = flips(found, settings, row, engine.plan.with_profile)
            check(found, settings, row, answer)
            kinds.update(flip.key for flip in answer.found)
    print(variant, dict(kinds))
    assert len(kinds) >= 3


def test_what_flips_of_other_settings_worked_out_changes_none(engine: Engine) -> None:
    found = engine.search.gather(demo.labelled_queries(dt.date(2026, 11, 20))[0].text)
    one = engine.plan.settings
    other = one.update({HALF_LIFE: 15, "query.minScore": 0.6}, "test")
    flips(found, one, 1, with_profile)
    for settings, row in ((other, 1), (one, 2)):
        assert flips(found, settings, row, with_profile) == flips(replace(found), settings, row, with_profile)


def is_the_nearest(found: Evidence, settings: Settings, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, found.chunks - 1))
    answer = flips(found, settings, row, with_profile)
    check(found, settings, row, answer)
    reported = {flip.key: flip.value for flip in answer.found}
    for key in TUNE_KEYS:
        if key in (flipping.TEXT, HALF_LIFE, "profile"):
            continue
        knob, now = BY_KEY[key], recalled(found, settings, row)
        real = next(
            (
                value
                for value in outwards(knob, settings.values[key].value)
                if recalled(found, settings.update(turned(knob, value), "test"), row) != now
            ),
            None,
        )
        assert reported.get(key) == real, key


@hypothesis_settings(max_examples=10, deadline=None)
@given(any_evidence, any_settings, st.data())
def test_a_flip_is_the_nearest_there_is(found: Evidence, settings: Settings, data: st.DataObject) -> None:
    is_the_nearest(found, settings, data)


@pytest.mark.soak
@hypothesis_settings(max_examples=100, deadline=None)
@given(any_evidence, any_settings, st.data())
def test_of_a_hundred_each_flip_is_the_nearest_there_is(
    found: Evidence, settings: Settings, data: st.DataObject
) -> None:
    is_the_nearest(found, settings, data)


def test_half_life_is_walked_and_not_solved() -> None:
    """Half-life alone clears the gate early, but rivals rise too: the flip is where the limit lets it in."""
    cosines = [0.9] + [0.55 + i / 100 for i in range(8)]
    ages = [49.0] + [48.0] * 8
    found = made(cosines, {}, ages=ages)
    settings = chosen(OPENCLAW, maxResults=6, **{"temporalDecay.enabled": True, "halfLifeDays": 10})
    answer = flips(found, settings, 0, with_profile)
    flip = next(f for f in answer.found if f.key == HALF_LIFE)
    check(found, settings, 0, answer)
    assert flip.value > 10


def test_a_knob_that_does_not_do_it_alone_says_how_near_it_came() -> None:
    found = made([0.9 - i / 100 for i in range(8)] + [0.3], {})
    answer = flips(found, chosen(OPENCLAW), 8, with_profile)
    gate = next(n for n in answer.not_alone if n.key == "query.minScore")
    assert (gate.passes, gate.place, gate.limit) == (True, 9, 6)
    assert all(flip.key != "query.minScore" for flip in answer.found)
    assert "query.hybrid.mmr.lambda" not in {n.key for n in answer.not_alone}, "MMR is off: the knob moves nothing"


def test_a_knob_that_only_moves_a_chunk_away_is_no_way_to_it() -> None:
    """Nothing is gained by raising minScore for a chunk that is over it, behind the limit."""
    found = made([0.9 - i / 100 for i in range(8)] + [0.3], {})
    answer = flips(found, chosen(OPENCLAW, minScore=0), 8, with_profile)
    assert (answer.recalled, answer.found[0].key) == (False, "query.maxResults")
    assert answer.not_alone
    assert all(one.passes for one in answer.not_alone), "it is over minScore now"
    # From 0 every other value of minScore is a higher one, and the first of them stops more.
    lost = flips(made([0.9 - i / 100 for i in range(8)] + [0.005], {}), chosen(OPENCLAW, minScore=0), 8, with_profile)
    assert "query.minScore" not in {one.key for one in lost.not_alone}


def test_the_steps_go_outwards_on_the_grid() -> None:
    half = list(outwards(BY_KEY[HALF_LIFE], 30))
    assert half[:4] == [31, 29, 32, 28]
    assert (min(half), max(half), len(half)) == (1, 3650, 724)
    low = list(outwards(BY_KEY["query.minScore"], 0.355))
    assert low[:3] == [0.36, 0.35, 0.37]
    assert (min(low), max(low)) == (0.0, 1.0)
    assert list(outwards(BY_KEY["query.hybrid.mmr.enabled"], False)) == [True]
    assert set(outwards(BY_KEY["profile"], "recommended")) == {OPENCLAW, "openclaw-2026.2", "openclaw-2026.9"}
    assert next(iter(outwards(BY_KEY["query.maxResults"], 60))) == 50, "from beyond the slider to its end"


def test_the_weights_turn_together() -> None:
    assert turned(BY_KEY[flipping.VECTOR], 0.35) == {flipping.VECTOR: 0.35, flipping.TEXT: 0.65}


def test_what_labels_say_of_a_flip(engine: Engine) -> None:
    found = made([0.9, 0.8, 0.7, 0.6, 0.5], {})
    settings = chosen(OPENCLAW, maxResults=2)
    flip = next(f for f in flips(found, settings, 4, with_profile).found if f.key == "query.maxResults")
    assert flip.value == 5
    assert [ref.rowid for ref in flip.comes_in] == [2, 3]
    grades = {2: 1, 3: 0}
    assert flipping.side_effects(flip, lambda ref: grades.get(ref.rowid)) == (1, 1)
    assert math.isclose(flip.presses, 3)
