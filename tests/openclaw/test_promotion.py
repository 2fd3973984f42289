"""What dreaming promotes next: the counts, the gates, their words, compared with the real program."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memory_tui.cli import main
from memory_tui.core.errors import EditRefused
from memory_tui.engine.engine import Engine
from memory_tui.inbox.checks import change, changes, rewritten
from memory_tui.inbox.entries import Suggestion
from memory_tui.openclaw.dreaming import MOST, Promotions, promotions
from memory_tui.plan import Options
from tests.support.ledger import HostLedger
from tests.support.npm import CACHE, node
from tests.support.waiting import LONG

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostLedger:
    for name, folder in (("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    workspace = tmp_path / ".openclaw" / "workspace"
    workspace.mkdir(parents=True)
    (tmp_path / ".openclaw/openclaw.json").write_text('{memory: {search: {provider: "none"}}}')
    return HostLedger.make(tmp_path / ".openclaw", workspace)


def iso(days: float) -> str:
    """A time so many days ago, as OpenClaw writes it."""
    return dt.datetime.fromtimestamp(NOW - days * 86_400, dt.UTC).isoformat().replace("+00:00", "Z")


def entry(number: int, **changes: Any) -> dict[str, Any]:
    """What OpenClaw counts of a passage that passes every gate."""
    return {
        "key": f"memory:memory/2026-11-1{number % 10}.md:{number}:{number}",
        "path": f"memory/2026-11-1{number % 10}.md",
        "startLine": number,
        "endLine": number,
        "source": "memory",
        "snippet": f"the router has number {number}",
        "recallCount": 8,
        "dailyCount": 1,
        "groundedCount": 0,
        "totalScore": 8.1,
        "maxScore": 0.95,
        "firstRecalledAt": iso(9),
        "lastRecalledAt": iso(1),
        "queryHashes": ["a", "b", "c", "d"],
        "userQueryHashes": ["a", "b", "c", "d"],
        "recallDays": ["2026-11-12", "2026-11-14", "2026-11-19"],
        "conceptTags": ["router", "network", "house", "wlan"],
        "provenance": {"originClass": "agent", "sessionKind": "interactive", "observedAt": 1},
        **changes,
    }


HELD = {
    "its origin is untrusted": {"provenance": {"originClass": "untrusted", "sessionKind": "unknown", "observedAt": 1}},
    "promoted 2026-11-18": {"promotedAt": "2026-11-18T03:00:00.000Z"},
    "2 signals, at least 3 are needed": {"recallCount": 1, "totalScore": 1.8},
    "2 queries, at least 3 are needed": {"userQueryHashes": ["a", "b", "b"]},
    "last recalled 31 days ago, at most 30 count": {"lastRecalledAt": iso(31)},
}


def store(ledger: HostLedger, entries: list[dict[str, Any]], phases: dict[str, dict[str, Any]] | None = None) -> None:
    """Write `entries` where OpenClaw keeps them."""
    own = hashlib.sha256(str(ledger.workspace).encode()).hexdigest()
    rows = [("short-term-recall", one["key"], one) for one in entries]
    rows += [("short-term-phase-signals", key, value) for key, value in (phases or {}).items()]
    for namespace, key, value in rows:
        text = json.dumps({"version": 1, "workspaceKey": own, "key": key, "value": value}).replace("'", "''")
        digest = hashlib.sha256(key.encode()).hexdigest()
        ledger.run(
            "INSERT OR REPLACE INTO plugin_state_entries VALUES "
            f"('memory-core', '{namespace}', '{own}:{digest}', '{text}', 1, NULL)"
        )


def found(ledger: HostLedger) -> Promotions:
    return promotions(ledger.workspace, ledger.database, NOW)


@pytest.mark.parametrize(("words", "changes"), HELD.items(), ids=list(HELD))
def test_the_gate_that_holds_a_passage_is_named(ledger: HostLedger, words: str, changes: dict[str, Any]) -> None:
    store(ledger, [entry(1), entry(2, **changes)])
    passing, held = found(ledger).passages
    assert (passing.held, held.held) == ("", words)
    assert passing.score > 0.75


def test_a_low_score_and_ten_better_ones_hold(ledger: HostLedger) -> None:
    store(ledger, [entry(n, totalScore=8.1 + n / 100) for n in range(12)] + [entry(20, totalScore=1.0)])
    every = found(ledger).passages
    assert len(found(ledger).next) == MOST
    assert [one.held for one in every[MOST:12]] == ["10 others score more"] * 2
    assert every[12].held.startswith("score 0.")


def test_other_workspaces_reports_and_rows_that_do_not_parse_are_left_out(ledger: HostLedger) -> None:
    store(ledger, [entry(1), entry(2, path="memory/topics.md"), entry(3, path="memory/dreaming/deep/2026-11-11.md")])
    ledger.run("INSERT INTO plugin_state_entries VALUES ('memory-core', 'short-term-recall', 'x:y', '{', 1, NULL)")
    before = ledger.database.read_bytes()
    assert [one.first for one in found(ledger).passages] == [1]
    assert ledger.database.read_bytes() == before


def test_without_a_state_database_there_is_nothing_and_a_damaged_one_says_so(ledger: HostLedger) -> None:
    ledger.database.write_bytes(b"no database" * 500)
    assert found(ledger).problem
    ledger.database.unlink()
    assert found(ledger) == Promotions()


def test_the_command_and_the_inbox_tell_it(ledger: HostLedger, capsys: pytest.CaptureFixture[str]) -> None:
    store(ledger, [entry(1), entry(2, promotedAt="2026-11-18T03:00:00.000Z"), entry(3, userQueryHashes=["a"])])
    assert main.main(["openclaw", "dreaming", "--json"]) == 0
    assert [one["held"][:8] for one in json.loads(capsys.readouterr().out)["passages"]] == ["", "promoted", "1 query,"]
    assert main.main(["openclaw", "dreaming"]) == 0
    said = capsys.readouterr().out
    assert "promotes 1 passage into MEMORY.md" in said
    assert "1 query, at least 3 are needed: score" in said
    key = entry(2)["key"]
    text = f"# Facts\n\n- a fact\n\n<!-- openclaw-memory-promotion:{key} -->\n- the router has number 2\n"
    (ledger.workspace / "MEMORY.md").write_text(text)
    with Engine.open(Options(now=NOW, changes=(("sync.watch", "false"),))) as engine:
        one = next(one for one in engine.notes.examine() if one.kind == "promotion")
        assert (one.place.first, one.place.last, one.actions[0]) == (5, 6, "keep")
        assert "8 recalls by 4 queries" in one.reason
        made = engine.notes.curator.apply(change(one, "delete", engine.notes.curator))
        assert (ledger.workspace / "MEMORY.md").read_text() == "# Facts\n\n- a fact\n\n"
        engine.notes.curator.undo(made.entry.id)
        assert (ledger.workspace / "MEMORY.md").read_text() == text


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
    return [one for one in engine.notes.examine() if one.kind == "promotion"]


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


_SCRIPT = """
import { readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const [folder, workspaceDir, file, now] = process.argv.slice(2);
const rows = JSON.parse(readFileSync(file, 'utf8'));
const named = async (prefix, wanted) => {
  for (const name of readdirSync(folder).filter((name) => name.startsWith(prefix) && name.endsWith('.mjs'))) {
    if (!readFileSync(`${folder}/${name}`, 'utf8').includes(`function ${wanted}(`)) continue;
    const found = Object.values(await import(pathToFileURL(`${folder}/${name}`).href));
    const one = found.find((one) => one?.name === wanted);
    if (one) return one;
  }
  throw new Error(wanted);
};
(await named('dreaming-state-', 'configureMemoryCoreDreamingState'))((options) => ({
  entries: async () => rows.filter((row) => row.namespace === options.namespace)
}));
const rank = await named('short-term-promotion-', 'rankShortTermPromotionCandidates');
const found = await rank({ workspaceDir, nowMs: Number(now), minScore: 0.75, minRecallCount: 3, minUniqueQueries: 3,
  maxAgeDays: 30, limit: 10 });
console.log(JSON.stringify(found.map((one) => [one.key, one.score])));
process.exit(0);
"""


def test_the_real_program_chooses_the_same(ledger: HostLedger, tmp_path: Path) -> None:
    package = CACHE / "openclaw-2026.9.6" / "node_modules" / "openclaw" / "dist"
    if not package.is_dir():
        pytest.skip("OpenClaw 2026.9.6 is not installed in the cache of the tests")
    entries = [entry(n, totalScore=6.5 + n / 7, lastRecalledAt=iso(n / 3), recallCount=6 + n % 4) for n in range(16)]
    entries += [entry(30 + n, **changes) for n, changes in enumerate(HELD.values())]
    entries.append(entry(50, groundedCount=2, recallDays=["2026-11-19"], conceptTags=[]))
    phases = {
        entry(3)["key"]: {
            "key": entry(3)["key"],
            "lightHits": 4,
            "remHits": 2,
            "lastLightAt": iso(2),
            "lastRemAt": iso(5),
        }
    }
    store(ledger, entries, phases)
    own = hashlib.sha256(str(ledger.workspace).encode()).hexdigest()
    rows = [
        {"namespace": namespace, "key": f"{own}:{n}", "value": {"workspaceKey": own, "key": key, "value": value}}
        for n, (namespace, key, value) in enumerate(
            [
                *(("short-term-recall", one["key"], one) for one in entries),
                *(("short-term-phase-signals", key, value) for key, value in phases.items()),
            ]
        )
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    (tmp_path / "rank.mjs").write_text(_SCRIPT)
    command = [node(), str(tmp_path / "rank.mjs"), str(package), str(ledger.workspace), str(tmp_path / "rows.json")]
    done = subprocess.run([*command, str(int(NOW * 1000))], capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = [(one.key, one.score) for one in found(ledger).next]
    assert [key for key, _ in ours] == [key for key, _ in theirs]
    assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-9)
