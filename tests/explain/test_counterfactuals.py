"""Every change, applied, turns the verdict; a step less does not; none may be left out."""

import math

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_tui.cancel import Stop
from memory_tui.config.settings import TUNE_KEYS, Scalar, Settings, compose
from memory_tui.errors import Cancelled
from memory_tui.explain import wording
from memory_tui.explain.counterfactuals import (
    FLOOR,
    RESULTS,
    TEXT,
    WEIGHT,
    WHOLE,
    Change,
    Flips,
    flips,
    outwards,
    turned,
)
from memory_tui.search.rank import Reranking, rank
from memory_tui.search.retrieve import Evidence
from memory_tui.search.score import tuned
from tests.search.test_score import any_evidence, any_settings
from tests.support.search import evidence as made
from tests.support.search import settings as chosen

OPENCLAW = "openclaw-2026.3"
HALF_LIFE = "query.hybrid.temporalDecay.halfLifeDays"


def with_profile(name: str) -> Settings:
    return compose(name, {}, {})


def place(found: Evidence, settings: Settings, row: int) -> int | None:
    rowid = found.refs[row].rowid
    return next((at for at, c in enumerate(rank(found, settings).recalled, 1) if c.chunk.rowid == rowid), None)


def check(found: Evidence, settings: Settings, row: int, answer: Flips) -> None:
    """Every change is real: its place, what else moves, how near and how far each of its knobs may go."""
    own = found.refs[row]
    before, now = {c.chunk for c in rank(found, settings).recalled}, place(found, settings, row)
    assert answer.recalled == (now is not None)
    for change in (*answer.singles, *answer.sets):
        after = {c.chunk for c in rank(found, change.settings).recalled}
        assert place(found, change.settings, row) == change.place
        assert (change.place is None) == answer.recalled
        assert set(change.comes_in) == after - before - {own}
        assert set(change.drops_out) == before - after - {own}
        assert all(change.settings.values[key].value == value for key, value in change.changes.items())
        for turn in change.turns:
            check_turn(found, settings, row, change, turn.key)
    order = [(one.turns[0].key in WHOLE, one.harm, one.presses) for one in answer.singles]
    assert order == sorted(order), "the least harm comes first, another way of ranking last"


def check_turn(found: Evidence, settings: Settings, row: int, change: Change, key: str) -> None:
    turn = next(turn for turn in change.turns if turn.key == key)

    def lost(value: Scalar) -> bool:
        return place(found, change.settings.update(turned({key: value}), "test"), row) is None

    if len(change.turns) > 1:
        rest = turned({other.key: other.value for other in change.turns if other is not turn})
        assert place(found, settings.update(rest, "test"), row) is None, "may be left out"
    if isinstance(turn.value, bool | str):
        return
    steps = outwards(key, turn.was)
    up = float(turn.value) > float(turn.was)
    nearer = [value for value in steps[: steps.index(turn.value)] if (float(value) > float(turn.was)) == up]
    for value in nearer[-1:]:
        assert lost(value) != (change.place is None), "a step less does not turn it"


@hypothesis_settings(max_examples=6, deadline=None)
@given(any_evidence, any_settings, st.data())
def test_every_change_is_real_and_the_nearest(found, settings, data):
    row = data.draw(st.integers(0, len(found.refs) - 1))
    answer = flips(found, settings, row, with_profile)
    check(found, settings, row, answer)
    reported = {flip.turns[0].key: flip.turns[0].value for flip in answer.singles}
    weights = settings.number(WEIGHT) + settings.number(TEXT)
    for key in TUNE_KEYS:
        if key in (TEXT, HALF_LIFE, "profile") or (key == WEIGHT and abs(weights - 1) > 1e-6):
            continue
        now = settings.values[key].value
        others = ((value, settings.update(turned({key: value}), "test")) for value in outwards(key, now))
        real = next((value for value, one in others if (place(found, one, row) is None) == answer.recalled), None)
        assert reported.get(key) == real, key


@given(any_evidence, st.lists(any_settings, min_size=1, max_size=5))
def test_a_batch_is_ranking(found, several):
    replay = Reranking(found)
    traces = [rank(found, one) for one in several]
    theirs = [tuple(c.chunk.rowid for c in trace.recalled) for trace in traces]
    assert replay.recalled([tuned(one) for one in several]) == theirs
    for row in range(len(found.refs)):
        for standing, trace in zip(replay.standings(row, [tuned(one) for one in several]), traces, strict=True):
            hit = next((c for c in (*trace.recalled, *trace.lost) if c.chunk.rowid == row), None)
            assert standing.recalled == (hit is not None and hit in trace.recalled)
            assert standing.score == hit.score if hit is not None else standing.score == -math.inf
            beyond_limit = standing.limit + 1
            true_place = hit.verdict.fields.get("place", 0) if hit is not None else 0
            assert min(true_place, beyond_limit) == min(standing.place, beyond_limit)


def last_of_eight() -> tuple[Evidence, Settings]:
    """The line stands ninth, far below the gate: neither the gate nor the limit alone lets it in."""
    return made([0.9 - i / 100 for i in range(8)] + [0.3], {}), chosen(OPENCLAW)


def test_a_look_that_nobody_waits_for_ends():
    found, settings = last_of_eight()
    stop = Stop()

    def given_up(profile: str) -> Settings:
        stop.set()
        return with_profile(profile)

    with pytest.raises(Cancelled):
        flips(found, settings, 8, given_up, stop)


def test_two_changes_together_recall_what_neither_does_alone():
    found, settings = last_of_eight()
    answer = flips(found, settings, 8, with_profile)
    check(found, settings, 8, answer)
    assert FLOOR not in {one.turns[0].key for one in answer.singles}
    best = answer.sets[0]
    assert [(turn.key, turn.value) for turn in best.turns] == [(RESULTS, 9), (FLOOR, 0.21)]
    assert wording.change(best) == "results 9 + minScore .21: would be recalled (9th)"
    assert wording.change_sentence(best) == (
        "Recalled as the 9th with results 9 and minScore .21 together; it also brings in 2 others."
    )
    assert [ref.path for ref in best.comes_in] == ["memory/6.md", "memory/7.md"]


def test_that_no_pair_helps_is_said_where_none_was_found():
    found = made([0.9 - i / 300 for i in range(120)] + [-0.4], {})
    answer = flips(found, chosen(OPENCLAW, minScore=0.1), 120, with_profile)
    assert answer.sets == ()
    assert answer.no_pair.message == "No two settings that were tried recall it together either."


def test_the_steps_go_outwards_on_the_grid():
    half = list(outwards(HALF_LIFE, 30))
    assert half[:4] == [31, 29, 32, 28]
    assert (min(half), max(half), len(half)) == (1, 3650, 724)
    assert list(outwards(FLOOR, 0.355))[:3] == [0.36, 0.35, 0.37]
    assert list(outwards("query.hybrid.mmr.enabled", False)) == [True]
    assert next(iter(outwards(RESULTS, 60))) == 50, "from beyond the slider to its end"
    assert turned({WEIGHT: 0.35}) == {WEIGHT: 0.35, TEXT: 0.65}
