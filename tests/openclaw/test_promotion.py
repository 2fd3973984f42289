"""Entries that dreaming promoted: moved back, edited, deleted, several at once, with one undo."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused
from memory_tui.inbox.checks import changes, rewritten
from memory_tui.inbox.entries import Suggestion
from memory_tui.plan import Options
from tests.support.ledger import HostLedger

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLedger:
    for name, folder in (("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    workspace = tmp_path / ".openclaw" / "workspace"
    workspace.mkdir(parents=True)
    (tmp_path / ".openclaw/openclaw.json").write_text('{memory: {search: {provider: "none"}}}')
    return HostLedger.make(tmp_path / ".openclaw", workspace)


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


def promoted(engine: Engine) -> list[Suggestion]:
    return [one for one in engine.inbox.examine().suggestions if one.kind == "promotion"]


def test_promotions_are_moved_back_together_and_undone_as_one(ledger: HostLedger) -> None:
    memory, day = ledger.workspace / "MEMORY.md", ledger.workspace / "memory/2026-11-11.md"
    memory.write_text(PROMOTED)
    day.parent.mkdir()
    day.write_text("# 2026-11-11\n\n- the router has number 1\n")
    with Engine.open(Options(now=NOW, changes=(("sync.watch", "false"),))) as engine:
        one, two, three = promoted(engine)
        assert one.reason.startswith("OpenClaw promoted it on 2026-11-18")
        curator = engine.notes.curator
        with pytest.raises(EditRefused, match="names no note"):
            changes([one, three], "move back", curator)
        change = changes([one, two], "move back", curator)
        assert "memory/2026-11-11.md still says it, about line 3." in change.notes
        made = curator.apply(change)
        assert "k1" not in memory.read_text()
        assert "- nobody knows where" in memory.read_text()
        back = ledger.workspace / "memory/2026-11-12.md"
        assert back.read_text() == "# 2026-11-12\n\n- the printer sits in the hall.\n"
        assert day.read_text().count("number 1") == 1
        curator.undo(made.entry.id)
        assert memory.read_text() == PROMOTED
        assert not back.exists()
        gone = changes(promoted(engine), "delete", curator)
        curator.apply(gone)
        assert memory.read_text() == "# Facts\n\n- a fact\n"
        curator.undo()
        assert memory.read_text() == PROMOTED


def test_a_promoted_entry_is_edited_below_its_marker(ledger: HostLedger) -> None:
    memory = ledger.workspace / "MEMORY.md"
    memory.write_text(PROMOTED)
    with Engine.open(Options(now=NOW, changes=(("sync.watch", "false"),))) as engine:
        one = promoted(engine)[0]
        curator = engine.notes.curator
        curator.apply(rewritten(one, "- the router is number 1", curator))
        assert "<!-- openclaw-memory-promotion:k1 -->\n- the router is number 1\n<!--" in memory.read_text()
        with pytest.raises(EditRefused, match="changed since"):
            rewritten(one, "- again", curator)
        with pytest.raises(EditRefused, match="as it was"):
            rewritten(promoted(engine)[0], "- the router is number 1", curator)


def test_the_command_decides_about_all_of_a_kind(ledger: HostLedger, capsys: pytest.CaptureFixture[str]) -> None:
    (ledger.workspace / "MEMORY.md").write_text(PROMOTED)
    where = ["--workspace", str(ledger.workspace)]
    assert main.main(["inbox", "--kind", "promotion", "--do", "keep", *where]) == 0
    assert "Kept (3 suggestions)" in capsys.readouterr().out
    assert main.main(["inbox", "--kind", "promotion", "--do", "keep", *where]) != 0
    assert main.main(["inbox", "--do", "keep", *where]) != 0
    assert main.main(["inbox", "--kind", "promotion", "--do", "reopen", *where]) != 0
