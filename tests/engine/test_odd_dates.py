"""Names of notes with dates that cannot be, are far away, or stand in other places: age, boost, and what is said."""

import datetime as dt
import os

import pytest

from memory_tui.engine.engine import Engine
from tests.support.workspace import options_of

NOW = dt.datetime(2026, 3, 20, 12, tzinfo=dt.UTC)
INVALID = ("memory/2026-13-40.md", "memory/2026-02-30.md", "memory/0026-01-01.md", "memory/topics/2026-02-31.md")
FUTURE = "memory/2199-01-01.md"
TODAY = "memory/2026-03-20.md"
SLUG, NESTED = "memory/2026-01-02-slug.md", "memory/topics/deep/2026-01-02.md"


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    for path in (*INVALID, FUTURE, TODAY, SLUG, NESTED, "MEMORY.md"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"# Note\n\n- the router of {path} is an Omada\n")
        os.utime(folder / path, (NOW.timestamp(), NOW.timestamp()))
    return folder


def opened(notes, tmp_path, profile):
    return Engine.open(
        options_of(
            notes,
            tmp_path / "index.sqlite",
            ("profile", profile),
            ("query.hybrid.temporalDecay.enabled", "true"),
            ("query.maxResults", "50"),
            provider="scripted",
            now=NOW.timestamp(),
        )
    )


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3"])
def test_impossible_dates_are_evergreen_and_future_ones_get_no_boost(tmp_path, notes, profile):
    with opened(notes, tmp_path, profile) as engine:
        engine.index.sync()
        trace = engine.search.search("omada router")
        found = {one.chunk.path: one for one in [*trace.recalled, *trace.lost]}
    assert len(found) == 9
    assert found["MEMORY.md"].age_basis == "evergreen"
    for path in INVALID:
        # The original takes the time of the file where the name has the shape of a daily log and is no day.
        daily = path.count("/") == 1 and profile != "recommended"
        assert found[path].age_basis == ("mtime" if daily else "evergreen"), path
    ahead, today = found[FUTURE], found[TODAY]
    assert ahead.age_days is not None
    assert ahead.age_days < -60_000
    assert ahead.age_factor == pytest.approx(1.0)
    assert ahead.age_points <= today.age_points + 1e-3
    if profile == "recommended":
        # OpenClaw reads an age from `memory/YYYY-MM-DD.md` alone; ours from a name that begins with the day.
        assert found[SLUG].age_basis == found[NESTED].age_basis == "name"
        assert found[SLUG].age_days == found[NESTED].age_days
        assert found[SLUG].age_points < today.age_points


def test_an_age_is_never_shown_below_nothing(tmp_path, notes):
    from memory_tui.explain.wording import explain

    with opened(notes, tmp_path, "recommended") as engine:
        engine.index.sync()
        trace = engine.search.search("omada router")
        one = next(one for one in [*trace.recalled, *trace.lost] if one.chunk.path == FUTURE)
        detail = next(line.detail for line in explain(one, trace) if line.label == "recency")
    assert detail.startswith("1.000 x 0.0196  dated 63,1")
    assert " d ahead, so not aged" in detail
