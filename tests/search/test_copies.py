"""A passage that stands in several notes takes one place in an answer, and the answer says where else it stands."""

import datetime as dt

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.notices import Notice
from memory_tui.plan import Options
from tests.support.workspace import put

NOW = dt.datetime(2026, 3, 20, 12, tzinfo=dt.UTC).timestamp()
LOG = "memory/2026-02-07.md"
ASIDE = [
    "memory/archive/2026-02-07.md",
    "memory/backup-2026-02-08/2026-02-07.md",
    "memory/old/2026-02-07.md",
    "memory/2026-02-07 (conflict 2026-02-09).md",
]
SAME = "# Club\n\n- The bridge club meets at the harbour hall on Thursdays.\n"


def opened(folder, profile="recommended"):
    changes = (("profile", profile), ("query.minScore", "0"))
    options = Options(workspace=str(folder), index=str(folder / "i.sqlite"), now=NOW, changes=changes, provider="none")
    engine = Engine.open(options)
    engine.index.sync()
    return engine


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3"])
def test_copies_take_one_place_and_openclaw_gives_them_all(tmp_path, profile):
    put(tmp_path, LOG, *ASIDE[1:], text=SAME)
    put(tmp_path, ASIDE[0], text=SAME.replace("\n\n", "\r\n \r\n"))
    put(tmp_path, "memory/club.md", text="The bridge club has cards with a red back.\n")
    with opened(tmp_path, profile) as engine:
        trace = engine.search.search("bridge club")
        hits = {hit.chunk.path: hit for hit in trace.recalled}
        if profile != "recommended":
            assert {LOG, *ASIDE} <= hits.keys()
            assert not any(hit.copies for hit in trace.recalled)
            return
        assert hits.keys() == {LOG, "memory/club.md"}
        assert sorted(copy.citation for copy in hits[LOG].copies) == sorted(f"{path}#L1-L3" for path in ASIDE)
        assert (hits[LOG].also, hits["memory/club.md"].also) == ("also in 4 other notes", "")
        evidence = engine.search.gather(trace.query)
        for path in ASIDE:
            fate = engine.search.why(evidence, path, 3).fate
            assert isinstance(fate, Notice)
            assert (fate.kind, fate.fields["citation"]) == ("copy_of", f"{LOG}#L1-L3")


def test_a_sentence_that_many_logs_repeat_takes_one_place(tmp_path):
    said = "- The bridge club meets at the harbour hall on Thursdays."
    days = [dt.date(2026, 1, 1) + dt.timedelta(days) for days in range(55)]
    for day in days:
        put(tmp_path, f"memory/{day}.md", text=f"# Log\n\n- Then there was number{day.toordinal()}.\n{said}\n")
    put(tmp_path, "memory/club.md", text="The bridge club has cards with a red back.\n")
    with opened(tmp_path) as engine:
        evidence = engine.search.gather("when does the bridge club meet")
        trace = engine.search.search(evidence.query)
        assert [hit.chunk.path for hit in trace.recalled] == [f"memory/{days[-1]}.md", "memory/club.md"]
        assert trace.recalled[0].also == "also in 54 other notes"
        fate = engine.search.why(evidence, f"memory/{days[1]}.md", 4).fate
        assert isinstance(fate, Notice)
        assert (fate.kind, fate.fields["citation"]) == ("copy_of", f"memory/{days[-1]}.md#L1-L4")
        assert fate.fields["what"] == "line", "the rest of the note stands there alone"
    with opened(tmp_path, "openclaw-2026.3") as engine:
        assert not any(hit.copies for hit in engine.search.search("bridge club").recalled)


def test_the_newest_is_shown_but_that_of_a_day_that_is_asked_for(tmp_path):
    put(tmp_path, "memory/2026-03-05.md", "memory/2026-03-09.md", "memory/2026-03-07.md", text=SAME)
    with opened(tmp_path) as engine:
        for question, path in (
            ("bridge club", "memory/2026-03-09.md"),
            ("bridge club on 5 March", "memory/2026-03-05.md"),
        ):
            (hit,) = engine.search.search(question).recalled
            assert (hit.chunk.path, hit.also) == (path, "also in 2 other notes")
