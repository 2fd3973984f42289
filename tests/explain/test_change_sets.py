"""Sets of changes: both are needed, none can be nearer, ranges end where they are said to, pairs that fail do fail."""

from __future__ import annotations

import itertools

from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memory_tui.core import profiles
from memory_tui.core.settings import BY_KEY, Scalar, Settings
from memory_tui.explain import trace_json, wording
from memory_tui.explain.counterfactuals import ChangeSet, SavedEffect, beyond, flips, grid, turned
from memory_tui.search.evidence import Evidence
from memory_tui.search.rank import rank
from tests.search.test_rank import any_evidence, any_settings
from tests.support.search import evidence as made
from tests.support.search import settings as chosen

OPENCLAW = "openclaw-2026.3"
RESULTS, FLOOR = "query.maxResults", "query.minScore"


def with_profile(name: str) -> Settings:
    return profiles.compose(name, {}, {})


def place(found: Evidence, settings: Settings, row: int) -> int | None:
    rowid = found.refs[row].rowid
    return next((at for at, c in enumerate(rank(found, settings).recalled, 1) if c.chunk.rowid == rowid), None)


def at(settings: Settings, **values: Scalar) -> Settings:
    names = {"results": RESULTS, "floor": FLOOR}
    return settings.update({names[name]: value for name, value in values.items()}, "test")


def last_of_eight() -> tuple[Evidence, Settings]:
    """The line stands ninth, far below the gate: neither the gate nor the limit alone lets it in."""
    return made([0.9 - i / 100 for i in range(8)] + [0.3], {}), chosen(OPENCLAW)


def test_two_changes_together_recall_what_neither_does_alone() -> None:
    found, settings = last_of_eight()
    answer = flips(found, settings, 8, with_profile)
    best = answer.sets[0]
    assert {turn.key for turn in best.turns} == {FLOOR, RESULTS}
    values = {turn.key: turn.value for turn in best.turns}
    assert values[RESULTS] == 9
    assert best.place == 9 == place(found, best.settings, 8)
    gate = next(turn for turn in best.turns if turn.key == FLOOR)
    assert place(found, at(settings, results=9, floor=float(gate.value)), 8) == 9
    assert place(found, at(settings, results=9, floor=float(gate.value) + 0.01), 8) is None
    assert next(turn for turn in best.turns if turn.key == RESULTS).accepted == (9, 50)
    assert gate.accepted == (0.0, gate.value)


def test_the_words_of_a_set_say_how_far_it_goes() -> None:
    found, settings = last_of_eight()
    best = flips(found, settings, 8, with_profile).sets[0]
    assert wording.change_set(best) == "results 9 + minScore .21: would be recalled (9th)"
    assert wording.accepted(best) == "any results from 9 to 50, minScore from 0 to .21"
    assert wording.change_set_sentence(best) == (
        "Recalled as the 9th with results 9 and minScore .21 together; it also brings in 2 others."
    )
    data = trace_json.change_set(best)
    assert data["turns"][0] == {"knob": RESULTS, "from": 6, "to": 9, "accepted": [9, 50]}
    assert [ref["path"] for ref in data["comesIn"]] == ["memory/6.md", "memory/7.md"]


def test_no_pair_names_what_was_tried_and_none_of_it_does() -> None:
    found = made([0.9 - i / 300 for i in range(120)] + [-0.4], {})
    settings = chosen(OPENCLAW, minScore=0.1)
    answer = flips(found, settings, 120, with_profile)
    assert answer.sets == ()
    assert answer.no_pair is not None
    for pair in itertools.combinations(answer.no_pair.points, 2):
        changes = {k: v for key, value in pair for k, v in turned(BY_KEY[key], value).items()}
        assert pair[0][0] == pair[1][0] or place(found, settings.update(changes, "test"), 120) is None, pair
    said = wording.no_pair(answer.no_pair)
    assert said.startswith(f"{wording.NO_PAIR}. Tried: weights 0 0.25 0.5 0.75 1, ")


def test_saved_questions_tell_the_less_harmful_set_first_of_equal_steps() -> None:
    found, settings = last_of_eight()

    def saved(tried: Settings) -> SavedEffect:
        return SavedEffect(2, ("one",), ("two",) if tried.whole(RESULTS) > 6 else ())

    answer = flips(found, settings, 8, with_profile, saved)
    assert answer.sets[0].saved == SavedEffect(2, ("one",), ("two",))
    assert wording.saved(answer.sets[0].saved) == "2 saved questions: 1 mended, 1 broken"
    assert answer.sets[0].harm == (1, 2)


@hypothesis_settings(max_examples=20, deadline=None)
@given(any_evidence, any_settings, st.data())
def test_every_set_needs_each_of_its_changes(found: Evidence, settings: Settings, data: st.DataObject) -> None:
    # Weights of 0 and 0 count as the defaults, so that a step away from them is none towards the other side.
    assume(settings.number("query.hybrid.vectorWeight") or settings.number("query.hybrid.textWeight"))
    row = data.draw(st.integers(0, found.chunks - 1))
    answer = flips(found, settings, row, with_profile)
    for one in answer.sets:
        check(found, settings, row, one)
    for flip in answer.found:
        if not isinstance(flip.value, bool | str):
            assert flip.value in flip.accepted


def check(found: Evidence, settings: Settings, row: int, one: ChangeSet) -> None:
    assert place(found, settings, row) is None
    assert place(found, one.settings, row) == one.place
    assert all(one.settings.values[key].value == value for key, value in one.changes.items())
    for turn in one.turns:
        knob = BY_KEY[turn.key]
        back = one.settings.update(turned(knob, turn.was), "test")
        assert place(found, back, row) is None, "may be left out"
        if isinstance(turn.value, bool):
            continue
        up = float(turn.value) > float(turn.was)
        low, high = turn.accepted
        inside = [value for value in grid(turn.key) if float(low) <= float(value) <= float(high)]
        for value in inside[:: max(1, len(inside) // 7)]:
            assert place(found, one.settings.update(turned(knob, value), "test"), row) is not None, value
        for value in beyond(knob, high if up else low, up=up)[:1]:
            assert place(found, one.settings.update(turned(knob, value), "test"), row) is None, value
