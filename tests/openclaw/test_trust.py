"""The trust ledger: what it says of each note, and what an edit does to it."""

import datetime as dt
import hashlib
import json
import os
import subprocess

import pytest

from memory_tui.config.places import state_database
from memory_tui.engine.engine import Engine
from memory_tui.openclaw import open_foreign
from memory_tui.openclaw.trust import Trust, covered, text_hash
from memory_tui.plan import Options
from tests.support import curate
from tests.support.ledger import HostLedger
from tests.support.npm import CACHE
from tests.support.waiting import LONG
from tests.support.workspace import put

NOW = 1_795_400_000.0


@pytest.fixture
def ledger(home):
    """A workspace whose MEMORY.md the agent has written, and OpenClaw's ledger of it."""
    workspace = home / ".openclaw" / "workspace"
    put(home / ".openclaw", "openclaw.json", text='{memory: {search: {provider: "none"}}}')
    put(workspace, "memory/2026-11-20.md", text="- the wlan is on\n")
    found = HostLedger.make(home / ".openclaw", workspace)
    found.agent_writes("MEMORY.md", b"- the router is an Omada\n")
    assert state_database() == found.database
    return found


@pytest.fixture
def trust(ledger):
    return Trust(ledger.workspace, ledger.database)


@pytest.fixture
def curator(ledger, trust):
    return curate.curator(ledger.workspace, trust=trust, clock=lambda: NOW)


def edit(curator, text, path="MEMORY.md"):
    change = curator.plan.edit(path, curator.read(path), text)
    curator.apply(change)
    return tuple(note for note in change.notes if note.startswith("Trust: "))


def state(trust, path="MEMORY.md"):
    return trust.of(path).state


def digest(path):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(path.parent.iterdir())}


@pytest.mark.parametrize(
    ("paths", "known"),
    [
        ("MEMORY.md memory.md USER.md users/ann/USER.md memory/2026-11-20.md memory/deep/er/x.md", True),
        ("memory/dreaming/light/2026-11-20.md memory/.dreams/x.md DREAMS.md SOUL.md", False),
        ("users/a/b/USER.md memory/x.txt /elsewhere/memory/x.md", False),
    ],
)
def test_which_files_the_ledger_covers(paths, known):
    assert {path: covered(path) for path in paths.split()} == dict.fromkeys(paths.split(), known)


def test_the_four_classes_in_words(ledger, trust):
    assert trust.of("memory/2026-11-20.md").words == "not recorded yet"
    assert state(trust) == "agent"
    (ledger.workspace / "MEMORY.md").write_bytes(b"- a person wrote this\n")
    words = trust.of("MEMORY.md").words
    assert words == "agent, edited since: the agent's next write will make it untrusted"
    assert ledger.agent_writes("MEMORY.md", b"- more\n") == "untrusted"
    found = trust.of("MEMORY.md")
    assert found.words.startswith("untrusted since 2026-11-")
    assert "search still finds it" in found.words
    assert ledger.agent_writes("MEMORY.md", b"- even more\n") == "untrusted"


def test_bytes_that_are_no_utf8_are_hashed_as_openclaw_reads_them(ledger, trust):
    data = b"\xef\xbb\xbfcaf\xe9\r\n"
    (ledger.workspace / "MEMORY.md").write_bytes(data)
    ledger.put("MEMORY.md", {**(ledger.row("MEMORY.md") or {}), "fileHash": text_hash(data)})
    assert text_hash(data) == hashlib.sha256("\ufeffcaf\ufffd\r\n".encode()).hexdigest()
    assert state(trust) == "agent"


def test_reading_writes_nothing_and_other_folders_are_told_nothing(ledger, trust, tmp_path):
    before = digest(ledger.database)
    assert trust.report(["MEMORY.md"]).files
    assert digest(ledger.database) == before
    none = Trust(tmp_path, tmp_path / "none.sqlite")
    assert none.report(["MEMORY.md"]).ledger == ""
    assert none.effects([("MEMORY.md", b"a", b"b")]) == ()
    assert Trust(tmp_path, ledger.database, expected=False).report(["MEMORY.md"]).files == ()
    assert Trust(ledger.workspace, ledger.database, expected=False).of("MEMORY.md") is not None


def test_the_preview_warns_and_the_ledger_is_only_read(ledger, trust, curator):
    before = ledger.row("MEMORY.md")
    (said,) = edit(curator, "- the router is an Omada\n- mine\n")
    assert "the agent's next write to MEMORY.md will make it untrusted" in said
    assert "OpenClaw has no way back" in said
    assert ledger.row("MEMORY.md") == before
    assert state(trust) == "edited"
    assert ledger.agent_writes("MEMORY.md", b"- x\n") == "untrusted"


def test_undo_brings_the_text_back_that_openclaw_knows(ledger, trust, curator):
    edit(curator, "- other\n")
    assert curator.undo().change.notes[-1] == "Trust: MEMORY.md is as OpenClaw wrote it again, and stays the agent's."
    assert state(trust) == "agent"


def test_lines_that_move_between_notes_say_it_of_both(ledger, curator):
    ledger.agent_writes("memory/2026-11-20.md", b"- the wlan is on\n")
    notes = curator.plan.promote(curator.plan.spot("memory/2026-11-20.md", 1, 1), move=True).notes
    assert [note for note in notes if "will make it untrusted" in note and "memory/2026-11-20.md" in note]
    assert [note for note in notes if "will make it untrusted" in note and "MEMORY.md" in note]
    assert not any("Trust:" in note for note in curator.plan.remember("x").notes), "it has none to lose"
    assert "keeps its row" in curator.plan.trash("MEMORY.md").notes[-1]


def damaged(ledger):
    ledger.run("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(ledger.database.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)
    ledger.database.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "spoil", [lambda ledger: ledger.run("ALTER TABLE plugin_state_entries RENAME COLUMN value_json TO it"), damaged]
)
def test_a_ledger_that_cannot_be_read_is_one_sentence_and_stays(ledger, trust, curator, spoil):
    spoil(ledger)
    before = ledger.database.read_bytes()
    found = trust.report(["MEMORY.md"])
    assert found.problem.endswith(".")
    assert found.problem.count(". ") == 0
    assert found.next_step
    (said,) = edit(curator, "- mine\n")
    assert "cannot be read" in said
    assert ledger.database.read_bytes() == before


@pytest.mark.parametrize(
    "value",
    ["not JSON", "[]", "null", '{"version":2}', "[" * 5000, {"version": 1, "relativePath": "MEMORY.md"}],
    ids=["no JSON", "list", "null", "newer", "deep", "half"],
)
def test_a_row_that_does_not_parse_is_unknown(ledger, trust, curator, value):
    ledger.put("MEMORY.md", value)
    found = trust.report(["MEMORY.md"])
    assert found.files[0].state == "unknown"
    assert found.remarks == ("1 row of the ledger cannot be read: the trust of these files is unknown.",)
    (said,) = edit(curator, "- mine\n")
    assert "MEMORY.md is unknown" in said
    ledger.agent_writes("memory/a.md", b"a\n")
    ledger.put("memory/2026-11-20.md", ledger.row("memory/a.md") or {})
    assert state(trust, "memory/2026-11-20.md") == "unknown", "a row under the key of another file is not believed"


def test_a_link_to_a_workspace_is_that_workspace(ledger, home):
    (home / "link").symlink_to(ledger.workspace)
    assert state(Trust(home / "link", ledger.database)) == "agent"
    ledger.put("MEMORY.md", {**(ledger.row("MEMORY.md") or {}), "observedAt": 10**30, "originClass": "untrusted"})
    assert "a time that cannot be" in Trust(ledger.workspace, ledger.database).of("MEMORY.md").words


def test_a_linked_memory_file_is_ignored_by_openclaw(ledger, trust):
    (ledger.workspace / "MEMORY.md").rename(ledger.workspace / "real.md")
    (ledger.workspace / "MEMORY.md").symlink_to("real.md")
    found = trust.report([])
    assert [(file.path, file.state) for file in found.files] == [("MEMORY.md", "ignored")]


def test_status_and_inbox_know_it(ledger, printed):
    (ledger.workspace / "MEMORY.md").write_bytes(b"- a person wrote this\n")
    found = json.loads(printed("status", "--json"))["trust"]
    states = [(file["path"], file["state"]) for file in found["files"]]
    assert states == [("MEMORY.md", "edited"), ("memory/2026-11-20.md", "unrecorded")]
    with Engine.open(Options()) as engine:
        said = [one.reason for one in engine.inbox.examine().suggestions if one.kind == "trust"]
    assert said == ["OpenClaw's ledger says: agent, edited since: the agent's next write will make it untrusted."]


def origins(engine):
    hits = engine.search.search("router wlan").recalled
    return {hit.chunk.path: hit.provenance["originClass"] for hit in hits if hit.provenance is not None}


def test_a_hit_has_the_class_of_the_ledger(ledger, monkeypatch):
    """The class of a row goes before the path; the ledger is read again only when it changed."""
    the_day_after = dt.datetime(2026, 11, 21, 12).timestamp()
    with Engine.open(Options(now=the_day_after, changes=(("profile", "openclaw-2026.9"),))) as engine:
        engine.index.sync()
        assert origins(engine) == {"MEMORY.md": "agent", "memory/2026-11-20.md": "agent"}
        ledger.put("MEMORY.md", {**(ledger.row("MEMORY.md") or {}), "originClass": "untrusted"})
        with monkeypatch.context() as watched:
            reads, read = [], open_foreign.read_foreign
            watched.setattr(open_foreign, "read_foreign", lambda *args: (reads.append(args), read(*args))[1])
            for _ in range(3):
                assert origins(engine) == {"MEMORY.md": "untrusted", "memory/2026-11-20.md": "agent"}
            assert len(reads) == 1
        ledger.put("MEMORY.md", "no row at all")
        assert origins(engine)["MEMORY.md"] == "agent"
        ledger.run("DELETE FROM plugin_state_entries")
        assert origins(engine)["MEMORY.md"] == "agent"


def test_the_command_lists_every_note_and_says_that_there_is_no_way_back(ledger, printed):
    out = printed("openclaw", "trust")
    assert ("  MEMORY.md: agent\n" in out, "no command" in out) == (True, False)
    (ledger.workspace / "MEMORY.md").write_bytes(b"- by another program\n")
    ledger.agent_writes("MEMORY.md", b"- first\n")
    ledger.run("PRAGMA user_version = 19")
    out = printed("openclaw", "trust")
    assert "OpenClaw has no command that trusts a note again" in out
    assert "newer OpenClaw (schema 19)" in out
    ledger.database.unlink()
    printed("openclaw", "trust", code=2)


_SCRIPT = """
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
const [folder, workspaceDir, relativePath, contentBefore, contentAfter] = process.argv.slice(2);
const name = readdirSync(folder).find((name) => name.startsWith('memory-artifact-provenance-'));
const found = Object.values(await import(pathToFileURL(join(folder, name)).href));
const named = (wanted) => found.find((one) => one.name === wanted);
await named('recordMemoryArtifactWriteProvenance')(
  { workspaceDir, relativePath, contentBefore, contentAfter, originClass: 'agent', observedAt: Date.now() });
console.log((await named('readMemoryArtifactProvenance')({ workspaceDir, relativePath })).originClass);
process.exit(0);
"""


@pytest.mark.real_host
def test_the_real_program_agrees(home, tmp_path):
    dist = CACHE / "openclaw-2026.9.6" / "node_modules" / "openclaw" / "dist"
    nodes = sorted(CACHE.glob("node-*/node_modules/node-*/bin/node"))
    if not dist.is_dir() or not nodes:
        pytest.skip(f"OpenClaw 2026.9.6 and a Node for it are not in {CACHE}")
    workspace, script = tmp_path / "workspace", tmp_path / "write.mjs"
    workspace.mkdir()
    script.write_text(_SCRIPT)

    def agent_appends(text):
        file = workspace / "MEMORY.md"
        before = file.read_bytes() if file.exists() else b""
        file.write_bytes(before + text)
        words = [str(script), str(dist), str(workspace), "MEMORY.md", before.decode(), (before + text).decode()]
        environment = {**os.environ, "HOME": str(home), "OPENCLAW_STATE_DIR": str(home / ".openclaw")}
        more = {"capture_output": True, "text": True, "timeout": LONG, "env": environment}
        ran = subprocess.run([str(nodes[-1]), *words], check=False, **more)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    assert agent_appends(b"- by the agent\n") == "agent"
    trust = Trust(workspace, state_database())
    edit(curate.curator(workspace, trust=trust), "- by the agent\n- by a person: caf\u00e9\n")
    assert state(trust) == "edited"
    assert agent_appends(b"- by the agent again\n") == "untrusted"
    assert state(trust) == "untrusted"
