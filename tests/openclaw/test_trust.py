"""The trust ledger: what it says of each note, what an edit does to it, and who may write it."""

import datetime as dt
import hashlib
import json
import os
import subprocess
from contextlib import closing, contextmanager

import apsw
import pytest

from memory_tui.cli import main
from memory_tui.config.places import state_database
from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused
from memory_tui.notes.curator import Curator
from memory_tui.openclaw import open_foreign
from memory_tui.openclaw.trust import Trust, covered, text_hash
from memory_tui.plan import Options
from memory_tui.workspace.roots import Roots
from tests.support.ledger import HostLedger
from tests.support.npm import CACHE
from tests.support.waiting import LONG

pytest_plugins = ("tests.support.config",)

NOW = 1_795_400_000.0


@pytest.fixture
def ledger(home):
    """A workspace whose MEMORY.md the agent has written, and OpenClaw's ledger of it."""
    workspace = home / ".openclaw" / "workspace"
    (workspace / "memory").mkdir(parents=True)
    (home / ".openclaw" / "openclaw.json").write_text('{memory: {search: {provider: "none"}}}')
    found = HostLedger.make(home / ".openclaw", workspace)
    found.agent_writes("MEMORY.md", b"- the router is an Omada\n")
    (workspace / "memory" / "2026-11-20.md").write_text("- the wlan is on\n")
    assert state_database() == found.database
    return found


@pytest.fixture
def trust(ledger):
    return Trust(ledger.workspace, ledger.database)


@pytest.fixture
def curator(ledger, trust):
    return Curator(Roots.open(ledger.workspace), trust=trust, clock=lambda: NOW)


def edit(curator, text, path="MEMORY.md"):
    """Edit a note; returns what the preview said of trust."""
    change = curator.plan.edit(path, curator.read(path), text)
    curator.apply(change)
    return tuple(note for note in change.notes if note.startswith("Trust: "))


def state(trust, path="MEMORY.md"):
    found = trust.of(path)
    assert found is not None
    return found.state


def digest(path):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(path.parent.iterdir())}


# --- what it says ---------------------------------------------------------------------------------------------------


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
    assert trust.of("memory/2026-11-20.md").words == "not recorded yet"  # type: ignore[union-attr]
    assert state(trust) == "agent"
    (ledger.workspace / "MEMORY.md").write_bytes(b"- a person wrote this\n")
    words = trust.of("MEMORY.md").words  # type: ignore[union-attr]
    assert words == "agent, edited since: the agent's next write will make it untrusted"
    assert ledger.agent_writes("MEMORY.md", b"- more\n") == "untrusted"
    found = trust.of("MEMORY.md")
    assert found is not None
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


# --- what an edit does ----------------------------------------------------------------------------------------------


def test_without_approval_the_preview_warns_and_the_ledger_is_only_read(ledger, trust, curator):
    before = ledger.row("MEMORY.md")
    (said,) = edit(curator, "- the router is an Omada\n- mine\n")
    assert "the agent's next write to MEMORY.md will make it untrusted" in said
    assert "memory-tui openclaw trust --approve" in said
    assert ledger.row("MEMORY.md") == before
    assert state(trust) == "edited"
    assert ledger.agent_writes("MEMORY.md", b"- x\n") == "untrusted"


def test_with_approval_the_agent_stays_the_author(ledger, trust, curator):
    trust.approve("test")
    before = ledger.row("MEMORY.md") or {}
    (said,) = edit(curator, "- the router is an Omada\n- mine\n")
    assert said == "Trust: MEMORY.md stays agent: memory-tui updates its hash in OpenClaw's ledger."
    after = ledger.row("MEMORY.md") or {}
    assert {key for key in before if before[key] != after[key]} == {"fileHash", "reservationId"}
    assert list(before) == list(after)
    assert curator.history()[0].trust == ("MEMORY.md",)
    text = (ledger.workspace / "MEMORY.md").read_bytes()
    assert ledger.agent_writes("MEMORY.md", text + b"- the agent's\n") == "agent"


def test_undo_and_redo_move_the_hash_with_the_text(ledger, trust, curator):
    trust.approve("test")
    before = (ledger.row("MEMORY.md") or {})["fileHash"]
    edit(curator, "- other\n")
    after = (ledger.row("MEMORY.md") or {})["fileHash"]
    assert "stays agent" in curator.preview("undo").notes[-1]
    curator.undo()
    assert (ledger.row("MEMORY.md") or {})["fileHash"] == before
    curator.redo()
    assert (ledger.row("MEMORY.md") or {})["fileHash"] == after
    assert state(trust) == "agent"


def test_an_edit_in_an_outside_editor_moves_the_hash_too(ledger, trust, curator):
    ledger.agent_writes("MEMORY.md", b"- by the agent\n")
    trust.approve("test")
    edit = curator.begin_external_edit("MEMORY.md")
    (ledger.workspace / "MEMORY.md").write_bytes(b"- by the agent\n- in the editor\n")
    done = curator.finish_external_edit(edit, "vi")
    assert done is not None
    assert done.entry.trust == ("MEMORY.md",)
    assert ledger.agent_writes("MEMORY.md", b"- by the agent\n- in the editor\n- more\n") == "agent"
    edit = curator.begin_external_edit("MEMORY.md")
    ledger.agent_writes("MEMORY.md", b"- the agent wrote meanwhile\n")
    (ledger.workspace / "MEMORY.md").write_bytes(b"- saved over it\n")
    done = curator.finish_external_edit(edit, "vi")
    assert done is not None
    assert done.entry.trust == ()


@pytest.mark.parametrize("origin", ["untrusted", "edited"])
def test_no_edit_makes_a_file_agent_again(ledger, trust, curator, origin):
    trust.approve("test")
    (ledger.workspace / "MEMORY.md").write_bytes(b"- by another program\n")
    if origin == "untrusted":
        ledger.agent_writes("MEMORY.md", b"- by the agent\n")
    before = ledger.row("MEMORY.md")
    edit(curator, "- mine\n")
    assert ledger.row("MEMORY.md") == before
    assert state(trust) == origin


def test_a_write_of_openclaw_in_between_leaves_the_ledger_to_openclaw(ledger, trust, curator, monkeypatch):
    trust.approve("test")
    other = (ledger.row("MEMORY.md") or {}) | {"fileHash": "0" * 64}
    follow = trust.follow

    def late(files):
        ledger.put("MEMORY.md", other)
        follow(files)

    monkeypatch.setattr(trust, "follow", late)
    done = curator.apply(curator.plan.edit("MEMORY.md", curator.read("MEMORY.md"), "- mine\n"))
    assert done.untold.startswith("OpenClaw wrote MEMORY.md meanwhile")
    assert done.entry.trust == ()
    assert ledger.row("MEMORY.md") == other
    assert (ledger.workspace / "MEMORY.md").read_text() == "- mine\n"


def test_of_several_files_all_move_or_none(ledger, trust):
    ledger.agent_writes("memory/a.md", b"a\n")
    before = ledger.row("memory/a.md"), ledger.row("MEMORY.md")
    with pytest.raises(EditRefused, match="meanwhile"):
        trust.follow([("memory/a.md", b"a\n", b"b\n"), ("MEMORY.md", b"not this\n", b"c\n")])
    assert (ledger.row("memory/a.md"), ledger.row("MEMORY.md")) == before


def test_lines_that_move_between_notes_say_it_of_both(ledger, curator):
    ledger.agent_writes("memory/2026-11-20.md", b"- the wlan is on\n")
    spot = curator.plan.spot("memory/2026-11-20.md", 1, 1)
    notes = curator.plan.promote(spot, move=True).notes
    assert [note for note in notes if "will make it untrusted" in note and "memory/2026-11-20.md" in note]
    assert [note for note in notes if "will make it untrusted" in note and "MEMORY.md" in note]
    assert not any("Trust:" in note for note in curator.plan.remember("x").notes), "it has none to lose"
    assert "keeps its row" in curator.plan.trash("MEMORY.md").notes[-1]


def test_repair_wants_the_text_that_was_seen(ledger, trust, curator):
    (ledger.workspace / "MEMORY.md").write_bytes(b"- by another program\n")
    ledger.agent_writes("MEMORY.md", b"- seen\n")
    assert state(trust) == "untrusted"
    with pytest.raises(EditRefused, match="changed after you saw it"):
        curator.repair("MEMORY.md", b"- another text\n")
    assert state(trust) == "untrusted"
    curator.repair("MEMORY.md", b"- seen\n")
    assert state(trust) == "agent"
    assert ledger.agent_writes("MEMORY.md", b"- seen\n- more\n") == "agent"
    with pytest.raises(EditRefused, match="no row"):
        curator.repair("memory/2026-11-20.md", b"- the wlan is on\n")
    assert [entry.kind for entry in curator.history()] == ["trust"]
    looker = Curator(Roots.open(ledger.workspace), trust=trust, read_only="Opened with --read-only.")
    with pytest.raises(EditRefused, match="read-only"):
        looker.repair("MEMORY.md", b"- seen\n- more\n")


def test_undo_and_redo_of_a_repair_write_the_row_alone(ledger, trust, curator):
    (ledger.workspace / "MEMORY.md").write_bytes(b"- by another program\n")
    ledger.agent_writes("MEMORY.md", b"- seen\n")
    before = ledger.row("MEMORY.md")
    made = curator.repair("MEMORY.md", b"- seen\n")
    # What stands in the note by then does not matter: only the row goes back.
    (ledger.workspace / "MEMORY.md").write_bytes(b"- seen\n- and more\n")
    assert curator.undo().entry.undoes == made.id
    assert ledger.row("MEMORY.md") == before
    curator.redo()
    assert (ledger.row("MEMORY.md") or {})["originClass"] == "agent"
    (ledger.workspace / "MEMORY.md").write_bytes(b"- seen\n")
    ledger.agent_writes("MEMORY.md", b"- seen\n- by the agent\n")
    with pytest.raises(EditRefused, match=r"OpenClaw wrote MEMORY\.md since"):
        curator.undo()
    assert state(trust) == "agent"
    assert (ledger.workspace / "MEMORY.md").read_bytes() == b"- seen\n- by the agent\n"


# --- a ledger that is not as it should be: one sentence, nothing written ---------------------------------------------


def another_table(ledger):
    ledger.run("DROP TABLE plugin_state_entries; CREATE TABLE plugin_state_entries(id INTEGER PRIMARY KEY)")


def damaged(ledger):
    ledger.run("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(ledger.database.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)
    ledger.database.write_bytes(bytes(data))


@pytest.mark.parametrize("spoil", [another_table, damaged])
def test_a_ledger_that_cannot_be_read_is_one_sentence_and_stays(ledger, trust, curator, spoil):
    trust.approve("test")
    spoil(ledger)
    before = ledger.database.read_bytes()
    found = trust.report(["MEMORY.md"])
    assert found.problem.endswith(".")
    assert found.problem.count(". ") == 0
    assert found.next_step
    (said,) = edit(curator, "- mine\n")
    assert "cannot be read" in said
    assert ledger.database.read_bytes() == before


@contextmanager
def locked(ledger):
    with closing(apsw.Connection(str(ledger.database))) as openclaw:
        openclaw.execute("BEGIN IMMEDIATE")
        yield
        openclaw.execute("ROLLBACK")


@contextmanager
def newer(ledger):
    ledger.run("PRAGMA user_version = 19")
    yield


@contextmanager
def closed(ledger):
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    ledger.database.chmod(0o400)
    yield


@pytest.mark.parametrize(
    ("spoiled", "untold"),
    [
        (locked, "OpenClaw is writing its ledger. The ledger was left as it is; try again."),
        (newer, "of another OpenClaw"),
        (closed, "cannot be written"),
    ],
)
def test_a_ledger_that_cannot_be_written_is_left_alone_and_the_edit_stands(
    ledger, trust, curator, monkeypatch, spoiled, untold
):
    monkeypatch.setattr("memory_tui.openclaw.trust._BUSY_MS", 20)
    trust.approve("test")
    before = ledger.row("MEMORY.md")
    change = curator.plan.edit("MEMORY.md", curator.read("MEMORY.md"), "- mine\n")
    with spoiled(ledger):
        assert untold in curator.apply(change).untold
    assert ledger.row("MEMORY.md") == before
    assert state(trust) == "edited"
    remarks = trust.report(["MEMORY.md"]).remarks
    assert any("newer OpenClaw (schema 19)" in remark for remark in remarks) == (spoiled is newer)


@pytest.mark.parametrize(
    "value",
    ["not JSON", "[]", "null", '{"version":2}', "[" * 5000, {"version": 1, "relativePath": "MEMORY.md"}],
    ids=["no JSON", "list", "null", "newer", "deep", "half"],
)
def test_a_row_that_does_not_parse_is_unknown(ledger, trust, curator, value):
    trust.approve("test")
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


# --- where a person meets it ----------------------------------------------------------------------------------------


def test_status_doctor_and_inbox_know_it(ledger, capsys):
    (ledger.workspace / "MEMORY.md").write_bytes(b"- a person wrote this\n")
    assert main.main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["trust"]
    assert found["approved"] is False
    assert [(file["path"], file["state"]) for file in found["files"]] == [
        ("MEMORY.md", "edited"),
        ("memory/2026-11-20.md", "unrecorded"),
    ]
    main.main(["doctor", "--json"])
    check = next(one for one in json.loads(capsys.readouterr().out)["checks"] if one["check"] == "trust")
    assert (check["state"], "MEMORY.md: agent, edited since" in check["evidence"]) == ("warning", True)
    with Engine.open(Options()) as engine:
        said = [one.reason for one in engine.inbox.examine().suggestions if one.kind == "trust"]
    assert said == ["OpenClaw's ledger says: agent, edited since: the agent's next write will make it untrusted."]


def origins(engine):
    hits = engine.search.search("router wlan").recalled
    return {hit.chunk.path: hit.provenance.origin_class for hit in hits if hit.provenance is not None}


def test_a_hit_has_the_class_of_the_ledger(ledger, monkeypatch):
    """The class of a row goes before the path; the ledger is read again only when it changed."""
    the_day_after = dt.datetime(2026, 11, 21, 12).timestamp()
    with Engine.open(Options(now=the_day_after, changes=(("profile", "openclaw-2026.9"),))) as engine:
        engine.index.sync()
        assert origins(engine) == {"MEMORY.md": "agent", "memory/2026-11-20.md": "agent"}
        row = {**(ledger.row("MEMORY.md") or {}), "originClass": "untrusted"}
        ledger.put("MEMORY.md", row)
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


def test_the_command_lists_approves_and_repairs_one_note_by_its_name(ledger, capsys, monkeypatch):
    assert main.main(["openclaw", "trust"]) == 0
    assert "  MEMORY.md: agent\n" in capsys.readouterr().out
    assert main.main(["openclaw", "trust", "--approve", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["approved"] is True
    assert main.main(["openclaw", "trust", "--withdraw", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["approved"] is False
    assert main.main(["openclaw", "trust", "--repair", "MEMORY.md"]) == 2
    assert "needs no repair" in capsys.readouterr().err
    (ledger.workspace / "MEMORY.md").write_bytes(b"- by another program\n")
    ledger.agent_writes("MEMORY.md", b"- first\n- last line of all\n")
    for typed, code in (("yes\n", 2), ("", 2), ("MEMORY.md\n", 0)):
        monkeypatch.setattr("sys.stdin", __import__("io").StringIO(typed))
        assert main.main(["openclaw", "trust", "--repair", "MEMORY.md"]) == code
        assert "- last line of all" in capsys.readouterr().out
    assert (ledger.row("MEMORY.md") or {})["originClass"] == "agent"
    assert main.main(["--read-only", "openclaw", "trust", "--withdraw"]) == 2


# --- the real program -----------------------------------------------------------------------------------------------

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
@pytest.mark.parametrize(("approved", "origin"), [(True, "agent"), (False, "untrusted")])
def test_the_real_program_agrees(home, tmp_path, approved, origin):
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
        ran = subprocess.run(
            [str(nodes[-1]), *words], check=False, capture_output=True, text=True, timeout=LONG, env=environment
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    assert agent_appends(b"- by the agent\n") == "agent"
    trust = Trust(workspace, state_database())
    if approved:
        trust.approve("test")
    curator = Curator(Roots.open(workspace), trust=trust)
    edit(curator, "- by the agent\n- by a person: caf\u00e9\n")
    assert state(trust) == ("agent" if approved else "edited")
    assert agent_appends(b"- by the agent again\n") == origin
    assert state(trust) == origin
