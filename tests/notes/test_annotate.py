"""Entries get triggers, importance and project where OpenClaw reads them, byte by byte nothing else changes."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.cli import main
from memory_tui.errors import EditRefused
from memory_tui.notes.curator import Curator
from memory_tui.notes.planner import Planner, entries
from memory_tui.workspace.annotations import Annotations, annotations_of
from memory_tui.workspace.chunking_2026_9 import chunk_note
from memory_tui.workspace.roots import Roots
from tests.support.curate import journal_of

NOTE = """# Facts
- the router is an Omada <!-- importance: 3 --> <!-- trigger: router, wlan -->
- the boiler
  is serviced in October <!-- project: github.com/Me/house -->

## Promoted From Short-Term Memory (2026-11-20)
<!-- openclaw-memory-promotion:k1 -->
- the printer sits in the hall [score=0.790]
- half <!-- trigger: open
"""


@pytest.fixture
def planner(tmp_path):
    (tmp_path / "MEMORY.md").write_text(NOTE)
    return Planner(Roots.open(tmp_path), lambda: 0.0)


def after(planner, first, said, text=NOTE, path="MEMORY.md"):
    return (planner.annotate(path, text.encode(), {first: said}).files[0].after or b"").decode()


def test_entries_are_those_of_openclaw_with_what_it_reads():
    found = entries(NOTE.encode(), "MEMORY.md")
    assert [(one.first, one.last, one.words) for one in found] == [
        (2, 2, "the router is an Omada"),
        (3, 4, "the boiler"),
        (8, 8, "the printer sits in the hall [score=0.790]"),
        (9, 9, "half <!-- trigger: open"),
    ]
    assert found[0].annotations == Annotations(3, "router; wlan")
    assert found[1].annotations == Annotations(project="github.com/Me/house")
    assert entries(NOTE.encode(), "memory/2026-01-01.md") == entries(None, "USER.md") == []


def test_only_what_changes_is_written_at_the_end_of_the_first_line(planner):
    made = after(planner, 2, Annotations(9, "router; wlan"))
    line = "- the router is an Omada <!-- trigger: router, wlan --> <!-- importance: 9 -->"
    assert made == NOTE.replace(NOTE.split("\n")[1], line)
    assert after(planner, 2, Annotations()) == NOTE.replace(NOTE.split("\n")[1], "- the router is an Omada")
    moved = after(planner, 3, Annotations(project="path:/home/me"))
    assert "- the boiler <!-- project: path:/home/me -->\n  is serviced in October\n" in moved


def test_a_promotion_keeps_its_marker(planner, tmp_path):
    curator = Curator(planner.roots, journal=journal_of(tmp_path))
    change = planner.annotate("MEMORY.md", NOTE.encode(), {8: Annotations(5), 2: Annotations(1, "router; wlan")})
    done = curator.apply(change)
    text = (tmp_path / "MEMORY.md").read_text()
    assert "<!-- openclaw-memory-promotion:k1 -->\n- the printer sits in the hall [score=0.790] <!-- imp" in text
    assert done.change.title == "Annotate 2 entries of MEMORY.md"
    curator.undo()
    assert (tmp_path / "MEMORY.md").read_text() == NOTE


@pytest.mark.parametrize(
    ("first", "said", "words"),
    [
        (9, Annotations(4), "would read"),
        (2, Annotations(3, "a --> b"), "would read"),
        (2, Annotations(project="a>b"), "would read"),
        (4, Annotations(4), "begins no entry"),
        (8, Annotations(), "already"),
    ],
)
def test_what_would_have_no_effect_is_refused(planner, first, said, words):
    with pytest.raises(EditRefused, match=words):
        after(planner, first, said)


_WORDS = st.text(st.sampled_from("abc é日-'"), max_size=8)
_TYPED = st.builds(annotations_of, st.integers(0, 10), st.lists(_WORDS).map(",".join), st.lists(_WORDS).map(";".join))


@given(_TYPED, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_written_is_what_the_release_reads(said, end, closed):
    text = f"# A{end}- one <!-- importance: 2 -->{end}- two{end * closed}"
    # One of the two entries is changed whatever is wanted.
    made = after(_PLANNER, 2, said, text) if said != Annotations(2) else text
    made = after(_PLANNER, 3, said, made) if said != Annotations() else made
    found = {one.chunk.start_line: one for one in chunk_note(made, "MEMORY.md")}
    assert found[2].annotations == found[3].annotations == said
    assert [one.words for one in entries(made.encode(), "MEMORY.md")] == ["one", "two"]
    assert made.count("\n") == text.count("\n")


_PLANNER = Planner(Roots.open(Path(__file__).parent), lambda: 0.0)


def test_the_command_lists_and_annotates(tmp_path, monkeypatch, capsys):
    for name, folder in (("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text(NOTE)
    where = ["--workspace", str(notes), "--provider", "none"]
    assert main.main(["annotate", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)[0]["said"] == {
        "importance": 3,
        "triggers": "router; wlan",
        "project": "",
    }
    assert main.main(["annotate", "MEMORY.md:4", "--triggers", "boiler, Hallett", "--yes", *where]) == 0
    assert "- the boiler <!-- trigger: boiler, Hallett -->\n  is serviced" in (notes / "MEMORY.md").read_text()
    assert main.main(["undo", "--yes", *where]) == 0
    assert (notes / "MEMORY.md").read_text() == NOTE
    assert main.main(["annotate", "MEMORY.md:4", *where]) != 0
    assert main.main(["annotate", "MEMORY.md:1", "--importance", "3", *where]) != 0
