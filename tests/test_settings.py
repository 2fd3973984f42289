"""Knobs and profiles: what is accepted, where it came from, and what is said about the rest."""

import pytest

from memory_tui.errors import SettingError
from memory_tui.settings import BY_KEY, PROFILES, TUNE_KEYS, Value, compose, find_knob, parse


def test_the_tune_strip_has_no_knob_that_needs_a_new_index():
    assert all(key.startswith(("query.", "recency", "dateBoost", "secondStage", "profile")) for key in TUNE_KEYS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("minScore", "2"), ("minScore", "nan"), ("minScore", "inf"), ("minScore", "x"), ("minScore", ""),
        ("halfLifeDays", "0"), ("maxResults", "0"), ("maxResults", "2.5"), ("vectorWeight", "-1"),
        ("mmr.enabled", "maybe"), ("profile", "openclaw"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_with_the_range(name, text):
    with pytest.raises(SettingError) as caught:
        parse(find_knob(name), text)
    assert find_knob(name).key in caught.value.message


def test_a_short_name_finds_its_knob_and_a_wrong_one_suggests():
    assert find_knob("minScore").key == "query.minScore"
    assert find_knob("half-life").key == "query.hybrid.temporalDecay.halfLifeDays"
    with pytest.raises(SettingError, match="could mean"):
        find_knob("enabled")
    with pytest.raises(SettingError) as caught:
        find_knob("query.minscore")
    assert "query.minScore" in caught.value.next_step


def test_profiles_set_only_known_knobs_within_range():
    for profile in PROFILES.values():
        assert compose(profile.name, {}, {}).word("profile") == profile.name
        assert set(profile.ignores) <= set(BY_KEY)


def test_a_profile_beats_the_configuration_only_where_it_says_something():
    written = {"query.minScore": Value(0.5, "openclaw.json"), "query.maxResults": Value(9, "openclaw.json")}
    ours = compose("recommended", written, {})
    assert (ours.number("query.minScore"), ours.whole("query.maxResults")) == (0.0, 9)
    assert compose("openclaw-2026.3", written, {}).number("query.minScore") == 0.5
    chosen = compose("recommended", written, {"query.minScore": Value(0.1, "--set")})
    assert chosen.values["query.minScore"] == Value(0.1, "--set")


def test_a_slider_ends_before_what_may_be_typed():
    knob = find_knob("maxResults")
    assert parse(knob, "400") == 400 > knob.high
    with pytest.raises(SettingError, match="1 to 1000"):
        parse(knob, "1001")
