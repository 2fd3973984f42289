"""What OpenClaw's dreaming wrote: recognised, never left half, moved back, edited and deleted with one undo."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused
from memory_tui.inbox.checks import changes
from memory_tui.openclaw.dreaming import broken, dream_blocks
from memory_tui.plan import Options
from tests.support.curate import curator
from tests.support.ledger import HostLedger

NOTE = """# Long-term memory
- tea

## Promoted From Short-Term Memory (2026-11-20)
<!-- openclaw-memory-promotion:k1 -->
- the router is an Omada [score=0.812 signals=4 recalls=3 avg=0.640 source=memory/2026-11-18.md:1-2]
<!-- openclaw-memory-promotion:k2 -->
- the wlan is on

## Deep Sleep
<!-- openclaw:dreaming:deep:start -->
slept
<!-- openclaw:dreaming:deep:end -->
the end
"""


def test_blocks_are_recognised_with_their_lines():
    assert [(block.kind, block.first, block.last, block.key) for block in dream_blocks(NOTE)] == [
        ("promotion", 5, 6, "k1"),
        ("promotion", 7, 8, "k2"),
        ("deep", 11, 13, ""),
    ]
    assert dream_blocks("plain\n<!-- openclaw:dreaming:rem:end -->\n") == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<!-- openclaw:dreaming:deep:end -->\n", "", "deep sleep"),
        ("<!-- openclaw:dreaming:deep:start -->\n", "", "deep sleep"),
        ("dreaming:deep:end -->", "dreaming:deep:END -->", "deep sleep"),
        ("<!-- openclaw:dreaming:deep:start -->", "<!-- openclaw:dreaming:deep:end -->", "deep sleep"),
        ("<!-- openclaw-memory-promotion:k2 -->\n", "", "promotion marker k2"),
        ("promotion:k1 -->", "promotion:k9 -->", "promotion marker k1"),
        ("<!-- openclaw:dreaming:deep:start -->", "<!--openclaw:dreaming:deep:start-->", "changes a marker"),
        (
            "promotion:k2 -->\n- the wlan is on",
            "promotion:k9 -->\n- the wlan is off",
            "changes the promotion marker k2",
        ),
        ("- the wlan is on", "- tea", "another entry below the promotion marker k2"),
        ("promotion:k2 -->\n", "promotion:k2 -->\n\n", "another entry below the promotion marker k2"),
    ],
)
def test_half_a_block_is_broken(old, new, said):
    assert said in broken(NOTE, NOTE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("slept", "slept well\nand long"),
        ("<!-- openclaw:dreaming:deep:start -->\nslept\n<!-- openclaw:dreaming:deep:end -->\n", ""),
        ("- the wlan is on\n", ""),
        ("<!-- openclaw-memory-promotion:k2 -->\n- the wlan is on\n", ""),
        ("- tea", "- coffee"),
    ],
)
def test_what_leaves_whole_blocks_is_fine(old, new):
    assert broken(NOTE, NOTE.replace(old, new)) == ""


@given(st.integers(0, len(NOTE)), st.integers(0, len(NOTE)))
def test_no_deletion_that_is_let_through_leaves_half_a_pair(one, other):
    after = NOTE[: min(one, other)] + NOTE[max(one, other) :]
    if not broken(NOTE, after):
        deep = "<!-- openclaw:dreaming:deep:"
        assert after.count(f"{deep}start -->") == after.count(f"{deep}end -->")


def test_such_an_edit_is_refused_and_the_note_stays_as_it_is(tmp_path):
    note = tmp_path / "notes" / "MEMORY.md"
    note.parent.mkdir()
    note.write_text(NOTE)
    one = curator(note.parent)
    text = NOTE.replace("<!-- openclaw:dreaming:deep:end -->\n", "")
    with pytest.raises(EditRefused, match="breaks the markers of OpenClaw's deep sleep"):
        one.apply(one.plan.edit("MEMORY.md", note.read_bytes(), text))
    assert note.read_text() == NOTE
    one.apply(one.plan.edit("MEMORY.md", note.read_bytes(), NOTE.replace("slept", "slept well")))
    one.undo()
    assert note.read_text() == NOTE


NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()


@pytest.fixture
def ledger():
    state = Path.home() / ".openclaw"
    (state / "workspace").mkdir(parents=True)
    (state / "openclaw.json").write_text('{memory: {search: {provider: "none"}}}')
    return HostLedger.make(state, state / "workspace")


PROMOTED = """# Facts

- a fact

## Promoted From Short-Term Memory (2026-11-18)
<!-- openclaw-memory-promotion:k1 -->
- the router has number 1 [score=0.812 signals=4 recalls=3 avg=0.640 source=memory/2026-11-11.md:3-3]
<!-- openclaw-memory-promotion:k2 -->
- the printer sits in the hall. Source: memory/2026-11-12.md#L3-L4
<!-- openclaw-memory-promotion:k3 -->
- nobody knows where this is from
"""


def promoted(engine):
    return [one for one in engine.inbox.examine().suggestions if one.kind == "promotion"]


def test_promotions_are_deleted_together_and_undone_as_one(ledger):
    memory = ledger.workspace / "MEMORY.md"
    memory.write_text(PROMOTED)
    with Engine.open(Options(now=NOW, changes=(("sync.watch", "false"),))) as engine:
        one, *_ = promoted(engine)
        assert one.reason.startswith("OpenClaw promoted it on 2026-11-18")
        curator = engine.notes.curator
        curator.apply(changes(promoted(engine), "delete", curator))
        assert memory.read_text() == "# Facts\n\n- a fact\n"
        curator.undo()
        assert memory.read_text() == PROMOTED


def test_the_command_decides_about_all_of_a_kind(ledger, printed):
    (ledger.workspace / "MEMORY.md").write_text(PROMOTED)
    where = ["--workspace", str(ledger.workspace)]
    assert "Kept (3 suggestions)" in printed("inbox", "--kind", "promotion", "--do", "keep", *where)
    for words in (["--kind", "promotion", "--do", "keep"], ["--do", "keep"], ["--kind", "promotion", "--do", "reopen"]):
        printed("inbox", *words, *where, code=2)
