"""OpenClaw's own index: what it lacks is told, what it cannot be is told, and no byte of it is ever changed."""

import hashlib
import json
import os
import random
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw
import pytest

from memory_tui.explain.trace_json import plain
from memory_tui.index import database
from memory_tui.index.database import scope_hash
from memory_tui.index.store import Store
from memory_tui.openclaw import compare, open_foreign
from memory_tui.openclaw.compare import HostProblem, IndexComparison
from memory_tui.workspace.notes import MediaRules, read
from memory_tui.workspace.roots import Roots, scan
from tests.support.index import run_sql
from tests.support.paths import oracles
from tests.support.workspace import put_all

MODEL = "text-embedding-3-small"

OWN_FILE = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files(path TEXT PRIMARY KEY, source TEXT NOT NULL DEFAULT 'memory', hash TEXT NOT NULL,
    mtime INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE TABLE chunks(id TEXT PRIMARY KEY, path TEXT NOT NULL, text TEXT NOT NULL);
"""
AGENT_DATABASE = """
CREATE TABLE sessions(id TEXT PRIMARY KEY, body TEXT) STRICT;
CREATE TABLE memory_index_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE memory_index_sources(id INTEGER PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory',
    hash TEXT NOT NULL, mtime REAL NOT NULL, size INTEGER NOT NULL, UNIQUE(path, source)) STRICT;
CREATE TABLE memory_index_chunks(chunk_rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, path TEXT NOT NULL,
    text TEXT NOT NULL) STRICT;
CREATE TABLE memory_index_state(id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER NOT NULL) STRICT;
CREATE TRIGGER memory_index_sources_revision AFTER INSERT ON memory_index_sources BEGIN
    UPDATE memory_index_state SET revision = revision + 1; END;
INSERT INTO memory_index_state VALUES(1, 0);
PRAGMA user_version = 23;
"""


@dataclass
class Content:
    """What is to be in the database; tests change it before it is written."""

    files: dict[str, tuple[str, int]]
    """Hash and size by path."""
    meta: dict[str, object]


def content(workspace: Path, **meta: object) -> Content:
    """What OpenClaw has indexed of `workspace` when it has just finished, each note as one chunk."""
    roots = Roots.open(workspace)
    files = {found.path: (read(found).hash, read(found).size) for found in scan(roots).notes}
    space = {"model": MODEL, "provider": "openai", "providerKey": "ab" * 32, "vectorDims": 2}
    cut = {"sources": ["memory"], "scopeHash": scope_hash(roots.extra), "chunkTokens": 400, "chunkOverlap": 80}
    return Content(files, {**space, **cut, **meta})


def own_file(path: Path, what: Content, journal: str = "delete") -> Path:
    """Write `what` as OpenClaw 2026.3 does."""
    return _filled(path, what, journal, OWN_FILE, ("meta", "files", "chunks"))


def agent_database(path: Path, what: Content, journal: str = "wal") -> Path:
    """Write `what` as OpenClaw does since it has an agent database, as an older release of those."""
    what.meta = {**what.meta, "ftsTokenizer": "unicode61", "provenanceVersion": 1}
    names = "memory_index_meta", "memory_index_sources", "memory_index_chunks"
    return _filled(path, what, journal, AGENT_DATABASE, names)


def _filled(path: Path, what: Content, journal: str, tables: str, names: tuple[str, str, str]) -> Path:
    meta, files, chunks = names
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", journal)
        connection.execute(tables)
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO {meta}(key, value) VALUES(?, ?)", (database.RECIPE, json.dumps(what.meta)))
        for name, (digest, size) in what.files.items():
            row = name, digest, 1790000000000.5, size
            connection.execute(f"INSERT INTO {files}(path, hash, mtime, size) VALUES(?, ?, ?, ?)", row)
            connection.execute(f"INSERT INTO {chunks}(id, path, text) VALUES(?, ?, 'some text')", (digest + name, name))
        connection.execute("COMMIT")
    return path


BOTH = pytest.mark.parametrize("write", [own_file, agent_database], ids=["own file", "agent database"])


@pytest.fixture
def workspace(tmp_path):
    day = "".join(f"line {i} of the day, VLAN {i}\n" for i in range(200))
    notes = {"MEMORY.md": "# Facts\n- Router: Omada ER605\n- 喜欢乌龙茶\n", "memory/2026-11-18.md": day}
    return put_all(tmp_path / "notes", notes | {"memory/empty.md": "\n\n", "memory/work.md": "standup at ten\n"})


@pytest.fixture
def db(tmp_path):
    return tmp_path / "state" / "memory" / "main.sqlite"


def against(workspace, db, wanted=None):
    found = compare.compare_workspace(Roots.open(workspace), db, wanted)
    assert isinstance(found, IndexComparison), found
    return found


def differences(found):
    return {file.path: file.difference for file in found.files}


def problem(path):
    found = compare.compare_workspace(Roots.open(Path(__file__).parent), path)
    assert isinstance(found, HostProblem), found
    return found


def traces(folder):
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


FORGET = "c.execute(\"DELETE FROM memory_index_sources WHERE path = 'memory/work.md'\")"


@contextmanager
def writer(db, script):
    """Another process with `c`, a connection to `db`, that waits after `script` and is killed at the end."""
    code = f"import apsw\nc = apsw.Connection({str(db)!r})\n{script}\nprint('ready', flush=True)\ninput()\n"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@BOTH
def test_missing_stale_and_extra_notes(workspace, db, write):
    write(db, content(workspace))
    (workspace / "memory" / "new.md").write_text("written since\n")
    (workspace / "memory" / "work.md").write_text("standup at eleven\n")
    (workspace / "memory" / "empty.md").unlink()
    found = against(workspace, db)
    assert differences(found) == {"memory/new.md": "missing", "memory/work.md": "stale", "memory/empty.md": "extra"}
    assert found.summary == {"same": 2, "missing": 1, "stale": 1, "extra": 1}


def test_a_file_left_out_on_disk_is_extra_with_the_reason(workspace, db):
    own_file(db, content(workspace))
    note = workspace / "memory" / "work.md"
    note.rename(workspace / "work.md")
    note.symlink_to(workspace / "work.md")
    (file,) = against(workspace, db).files
    assert file.difference == "extra"
    assert "symlink" in file.detail


@BOTH
def test_a_note_that_waits_to_be_indexed_again_is_stale(workspace, db, write):
    made = content(workspace)
    made.files["MEMORY.md"] = "", 0
    found = against(workspace, write(db, made))
    assert differences(found) == {"MEMORY.md": "stale"}
    assert "marked" in found.files[0].detail


def test_an_index_of_a_newer_release_is_remarked(workspace, db):
    own_file(db, content(workspace))
    run_sql(db, "ALTER TABLE files ADD COLUMN mood TEXT; PRAGMA user_version = 99")
    assert against(workspace, db).remarks == ("It was written by a newer OpenClaw than memory-tui knows.",)


def test_the_identity_is_held_against_the_configuration(workspace, db):
    own_file(db, content(workspace))
    same = {"provider": "openai", "model": MODEL, "sources": "memory", "chunking": "400/80"}
    assert against(workspace, db, {**same, "scope": database.scope_hash(())}).mismatches == ()
    other = {"provider": "voyage", "model": "voyage-3", "sources": "memory, sessions", "chunking": "200/80"}
    other["scope"] = database.scope_hash(("/elsewhere",))
    found = against(workspace, db, other)
    assert [mismatch.code for mismatch in found.mismatches] == ["model", "provider", "sources", "scope", "chunking"]
    assert "everything again" in found.consequence


@pytest.mark.parametrize(
    "record", [None, "not json", "[]", '{"model": 7, "sources": "memory"}', "[" * 100_000, "1" * 5_000]
)
def test_a_record_that_makes_no_sense(workspace, db, record):
    own_file(db, content(workspace))
    run_sql(db, "DELETE FROM meta")
    if record is not None:
        run_sql(db, "INSERT INTO meta VALUES('memory_index_meta_v1', ?)", record)
    found = against(workspace, db)
    readable = record is not None and record.startswith("{")
    assert (found.mismatches == ()) is readable, "without a wish a record is as good as another"
    json.dumps(plain(found))


def test_columns_that_hold_anything(workspace, db):
    own_file(db, content(workspace))
    run_sql(db, "UPDATE files SET hash = 3 WHERE path = 'MEMORY.md'")
    run_sql(db, "UPDATE files SET size = 'many', hash = 1e300 WHERE path = 'memory/work.md'")
    run_sql(db, "INSERT INTO files VALUES(NULL, 'memory', '', 0, 0)")
    assert {"MEMORY.md", "memory/work.md", ""} <= set(differences(against(workspace, db)))


@pytest.mark.parametrize("configuration", ["default", "chunk100-20"])
def test_what_the_real_program_has_written_is_the_same(oracle_data, oracle_workspace, db, configuration):
    folder = oracle_data / "2026.3.13" / configuration
    files = [json.loads(line) for line in (folder / "files.jsonl").read_text().splitlines()]
    meta = json.loads((folder / "meta.json").read_text())["meta"]["memory_index_meta_v1"]
    own_file(db, Content({row["path"]: (row["hash"], row["size"]) for row in files}, meta))
    sizes = f"{meta['chunkTokens']}/{meta['chunkOverlap']}"
    found = against(oracle_workspace, db, {"model": "hash-256", "chunking": sizes, "scope": database.scope_hash(())})
    assert differences(found) == {}
    assert found.mismatches == ()
    assert found.summary == {"same": len(files)}


def test_what_is_not_there_and_what_is_no_file(tmp_path):
    assert problem(tmp_path / "none.sqlite").state == "missing"
    assert problem(tmp_path / "none" / "none.sqlite").state == "missing"
    assert problem(tmp_path).state == "unreadable"
    os.mkfifo(tmp_path / "pipe")
    assert problem(tmp_path / "pipe").state == "unreadable"
    assert problem(Path("a\0b")).state == "unreadable"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert problem(tmp_path / "loop").state in ("missing", "unreadable")


def test_what_is_no_database(tmp_path):
    path = tmp_path / "list.sqlite"
    # An encrypted database begins with any bytes.
    for data in (b"my shopping list\n" * 400, hashlib.shake_256(b"key").digest(16_384)):
        path.write_bytes(data)
        before = traces(tmp_path)
        assert problem(path).state == "damaged"
        assert problem(path).detail == f"{path} is not an SQLite database, or is encrypted."
        assert traces(tmp_path) == before


def test_other_schemas_are_left_as_they_are(workspace, db, tmp_path):
    agent_database(db, content(workspace))
    run_sql(db, "ALTER TABLE memory_index_sources RENAME COLUMN hash TO digest")
    before = traces(db.parent)
    run_sql(tmp_path / "other.sqlite", "CREATE TABLE photos(name)")
    (tmp_path / "empty.sqlite").touch()
    Store.open(tmp_path / "ours.sqlite").close()
    for path in (db, tmp_path / "other.sqlite", tmp_path / "empty.sqlite", tmp_path / "ours.sqlite"):
        assert problem(path).state == "unknown schema"
        assert "no memory index of OpenClaw" in problem(path).detail
    assert traces(db.parent) == before


def test_damage_anywhere_is_a_state_and_never_a_crash(workspace, db):
    for i in range(30):
        note = workspace / "memory" / f"n{i}.md"
        note.write_text(f"note {i} of many\n" * 40)
    whole = own_file(db, content(workspace)).read_bytes()
    chance = random.Random(7)
    states = set()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 30)):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        db.write_bytes(data[: chance.randrange(1, len(data))] if chance.random() < 0.3 else data)
        found = compare.compare_workspace(Roots.open(workspace), db)
        json.dumps(plain(found))
        states.add(found.state)
    assert {"ok", "damaged"} <= states <= {"ok", "damaged", "unknown schema", "unreadable"}


@BOTH
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_an_index_that_has_just_been_made_lacks_nothing_and_is_only_read(workspace, db, write, journal):
    write(db, content(workspace), journal)
    before = traces(db.parent)
    for _ in range(2):
        found = against(workspace, db)
        assert (differences(found), found.mismatches, found.remarks) == ({}, (), ())
        assert (found.summary, found.chunks) == ({"same": 4}, 4)
        assert (found.provider, found.model) == ("openai", MODEL)
    assert traces(db.parent) == before
    assert list(db.parent.iterdir()) == [db]


def test_a_link_and_odd_names_lead_to_the_same_index(workspace, db, tmp_path):
    odd = agent_database(tmp_path / "st?te #1 100%" / "main.sqlite", content(workspace))
    link = tmp_path / "link.sqlite"
    link.symlink_to(odd)
    assert differences(against(workspace, link)) == {}
    assert list(odd.parent.iterdir()) == [odd]


def test_what_another_program_has_committed_is_seen_while_it_runs(workspace, db):
    agent_database(db, content(workspace))
    with writer(db, FORGET):
        assert (db.parent / "main.sqlite-wal").stat().st_size > 0
        before = traces(db.parent)
        found = against(workspace, db)
        assert traces(db.parent) == before
    assert "memory/work.md" in differences(found)
    # Killed: log and shared memory stay behind, and are read without being touched.
    assert traces(db.parent) == before
    assert differences(against(workspace, db)) == differences(found)
    assert traces(db.parent) == before


@pytest.fixture
def crashed(workspace, db):
    """A database with a log that a killed process left, which no shared memory tells of."""
    agent_database(db, content(workspace))
    with writer(db, FORGET):
        pass
    (db.parent / "main.sqlite-shm").unlink()


@pytest.mark.usefixtures("crashed")
def test_a_log_left_behind_is_read_in_a_copy(workspace, db):
    before = traces(db.parent)
    found = against(workspace, db)
    assert "memory/work.md" in differences(found)
    assert any("next start" in remark for remark in found.remarks)
    assert traces(db.parent) == before


@pytest.mark.usefixtures("crashed")
def test_a_huge_file_that_a_crash_left_is_not_copied(db):
    os.truncate(db, 2 << 30)
    sizes = {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in db.parent.iterdir()}
    found = problem(db)
    assert found.state == "unreadable"
    assert found.detail.endswith("2.1 GB: too much to copy.")
    assert "Start OpenClaw once" in found.next_step
    assert {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in db.parent.iterdir()} == sizes


def test_a_write_that_was_cut_off_is_rolled_back_in_a_copy(workspace, db):
    own_file(db, content(workspace))
    half = (
        "c.pragma('cache_size', 1)\nc.pragma('cache_spill', 1)\nc.execute('BEGIN')\n"
        "c.execute(\"UPDATE files SET hash = 'gone'\")\nc.cache_flush()"
    )
    with writer(db, half):
        pass
    assert (db.parent / "main.sqlite-journal").stat().st_size > 0
    before = traces(db.parent)
    found = against(workspace, db)
    assert differences(found) == {}
    assert any("next start" in remark for remark in found.remarks)
    assert traces(db.parent) == before


def test_a_locked_index_is_told_soon(workspace, db):
    own_file(db, content(workspace))
    with writer(db, "c.execute('BEGIN EXCLUSIVE')"):
        before = db.stat().st_mtime_ns
        found = problem(db)
    assert found.state == "locked"
    assert "Try again" in found.next_step
    assert db.stat().st_mtime_ns == before


def test_an_index_that_never_rests_is_read_in_one_go_or_not_at_all(workspace, db):
    own_file(db, content(workspace), "wal")
    with closing(apsw.Connection(str(db))) as other:
        other.execute("SELECT count(*) FROM files").fetchall()

        def write_and_count(connection):
            def count():
                ((number,),) = connection.execute("SELECT count(*) FROM files").fetchall()
                return number

            first = count()
            other.execute("INSERT INTO files VALUES(hex(randomblob(8)), 'memory', '', 0, 0)")
            return first, count()

        first, second = open_foreign.read_foreign(db, write_and_count)
        assert first == second == 7

        def for_ever(connection):
            other.execute("INSERT INTO files VALUES(hex(randomblob(8)), 'memory', '', 0, 0)")
            if connection.in_transaction:
                endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
                connection.execute(endless).fetchall()
            return 0

        with pytest.raises(open_foreign.NotSeen) as raised:
            open_foreign.read_foreign(db, for_ever)
        assert raised.value.state == "locked"


def test_a_file_that_is_written_while_it_is_read_without_locks(workspace, db):
    """In WAL mode without a log the file is read as immutable; whoever writes then is noticed."""
    agent_database(db, content(workspace))
    asked = 0

    def disturbed(connection):
        nonlocal asked
        asked += 1
        if asked == 1:
            run_sql(db, "DELETE FROM memory_index_sources")
        ((count,),) = connection.execute("SELECT count(*) FROM memory_index_sources").fetchall()
        return count

    assert open_foreign.read_or_copy(db, disturbed) == (0, False)
    assert asked == 2


def test_a_folder_that_cannot_be_written_is_no_obstacle(workspace, db):
    agent_database(db, content(workspace))
    db.chmod(0o444)
    db.parent.chmod(0o555)
    try:
        assert differences(against(workspace, db)) == {}
    finally:
        db.parent.chmod(0o755)


@pytest.fixture
def run(workspace, tmp_path, command, monkeypatch):
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "state"))
    return partial(command, "openclaw", "compare-index", "--workspace", str(workspace), "--index", str(tmp_path / "i"))


def test_the_command_finds_the_index_of_the_default_agent(workspace, db, run):
    assert run()[0] == 2
    own_file(db, content(workspace))
    (workspace / "memory" / "new.md").write_text("since\n")
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "before 2026.7" in out
    assert "4 same, 1 missing" in out
    assert "Missing:       memory/new.md" in out
    newer = db.parents[1] / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    run_sql(_parents(newer), "CREATE TABLE sessions(id)")
    assert "before 2026.7" in run()[1], "an agent's database without a memory is not its index"
    newer.unlink()
    agent_database(newer, content(workspace))
    assert "from 2026.7" in run()[1]
    assert not (db.parents[2] / "i").exists(), "nothing of ours is indexed for that"


def _parents(path):
    path.parent.mkdir(parents=True)
    return path


def test_the_index_of_the_configured_agent_and_place_is_found(workspace, db, run):
    config = db.parents[1] / "openclaw.json"
    search = {"provider": "openai", "sources": ["memory", "sessions"], "extraPaths": ["/elsewhere"]}
    search["experimental"] = {"sessionMemory": True}
    agents = {"list": [{"id": "ops", "default": True, "workspace": str(workspace)}]}
    own_file(db.with_name("ops.sqlite"), content(workspace))
    config.write_text(json.dumps({"agents": {**agents, "defaults": {"memorySearch": search}}}))
    found = json.loads(run("--json")[1])
    assert found["path"] == str(db.with_name("ops.sqlite"))
    assert [mismatch["code"] for mismatch in found["mismatches"]] == ["sources", "scope"]
    assert "Not as wanted: sources is memory, wanted: memory, sessions" in run()[1]

    search["store"] = {"path": str(db.parent / "{agentId}-here.sqlite")}
    db.with_name("ops.sqlite").rename(db.with_name("ops-here.sqlite"))
    config.write_text(json.dumps({"agents": {**agents, "defaults": {"memorySearch": search}}}))
    assert json.loads(run("--json")[1])["path"] == str(db.with_name("ops-here.sqlite"))


@pytest.mark.parametrize(
    ("data", "state", "code"),
    [(None, "missing", 2), (b"no database at all" * 99, "damaged", 1), (b"", "unknown schema", 1)],
)
def test_problems_get_a_sentence_and_a_code(db, run, data, state, code):
    if data is not None:
        _parents(db).write_bytes(data)
    got, out, err = run(str(db))
    assert (got, out) == (code, "")
    assert err.startswith("memory-tui: ")
    got, out, _ = run(str(db), "--json")
    assert (got, json.loads(out)["error"]["code"]) == (code, state)


def test_hostile_names_in_their_index_are_shown_and_obeyed_by_nobody(workspace, db, run):
    made = content(workspace)
    made.files["memory/\x1b[2J\u202eevil\x9b.md"] = "", 0
    made.meta = {**made.meta, "model": "m\x1b]0;x\x07", "sources": ["\x1b[31m"]}
    own_file(db, made)
    run_sql(db, 'ALTER TABLE files ADD COLUMN "x\x1b[2J" TEXT')
    controls = {chr(n) for n in (*range(32), *range(0x7F, 0xA0), 0x202E)} - {"\n"}
    for arguments in ((), ("--json",)):
        _, out, err = run(*arguments)
        assert "evil" in out
        assert not set(out + err) & controls


RELEASE = oracles() / "oracle-2026.9" / "2026.9.6"


def written(name, path):
    """The agent database that the real program had for the recorded configuration `name`."""
    files = [json.loads(line) for line in (RELEASE / name / "files.jsonl").read_text("utf-8").splitlines()]
    meta = json.loads((RELEASE / name / "meta.json").read_text())["memory_index_meta_v1"]
    return agent_database(path, Content({row["path"]: (row["hash"], row["size"]) for row in files}, meta))


@pytest.mark.parametrize(("name", "workspace"), [("w1-default", "oracle"), ("w2-default", "rules")])
def test_the_recorded_index_has_every_note_as_it_is_read_here(name, workspace, oracle_workspaces, tmp_path):
    found = against(oracle_workspaces[workspace], written(name, tmp_path / "agent.sqlite"))
    assert (found.files, found.standing, found.remarks) == ((), "current", ())


@pytest.mark.parametrize(
    ("fields", "wanted", "standing", "code"),
    [
        ({}, {}, "current", ""),
        ({"chunkingVersion": 3}, {}, "stale", "chunking_version"),
        ({"chunkingVersion": 6}, {}, "stale", "chunking_version"),
        ({"provenanceVersion": None}, {}, "stale", "provenance"),
        ({"chunkingVersion": 3}, {"model": "other"}, "stale", "chunking_version"),
        ({}, {"model": "other"}, "paused", "model"),
        ({}, {"scope": scope_hash((), (), MediaRules())}, "paused", "scope"),
        ({"scopeHash": scope_hash((), (), MediaRules())}, {"scope": scope_hash((), (), MediaRules())}, "current", ""),
        ({"chunkOverlap": 40}, {}, "paused", "chunking"),
        ({}, {"fts_tokenizer": "trigram"}, "paused", "fts_tokenizer"),
    ],
)
def test_what_openclaw_does_with_it_and_which_command_mends_it(
    fields, wanted, standing, code, oracle_workspaces, tmp_path
):
    database = written("w1-default", tmp_path / "agent.sqlite")
    if fields:
        ((text,),) = run_sql(database, "SELECT value FROM memory_index_meta WHERE key = 'memory_index_meta_v1'")
        record = {key: value for key, value in {**json.loads(text), **fields}.items() if value is not None}
        run_sql(database, "UPDATE memory_index_meta SET value = ? WHERE key LIKE '%meta%'", json.dumps(record))
    found = against(oracle_workspaces["oracle"], database, wanted)
    assert ["newer OpenClaw" in remark for remark in found.remarks] == [True] * (fields.get("chunkingVersion") == 6)
    assert (found.standing, next((one.code for one in found.mismatches), "")) == (standing, code)
    assert ("openclaw memory status --index --agent main" in found.consequence) is (standing == "paused")
    assert ("at its next search" in found.consequence) is (standing == "stale")


def test_without_its_record_it_is_made_again(oracle_workspaces, tmp_path):
    database = written("w1-default", tmp_path / "agent.sqlite")
    run_sql(database, "DELETE FROM memory_index_meta")
    found = against(oracle_workspaces["oracle"], database)
    assert (found.standing, found.mismatches[0].code) == ("stale", "metadata_missing")
