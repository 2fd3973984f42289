"""The sessions of OpenClaw 2026.9, read out of the database of an agent without a write to it."""

import json
import subprocess

import apsw
import pytest

from memory_tui.config import places
from memory_tui.engine.engine import Engine
from memory_tui.errors import Unreadable
from memory_tui.openclaw import flush
from memory_tui.openclaw.agent_sessions import SessionCopies
from memory_tui.plan import Options, choose
from tests.support.npm import node
from tests.support.transcripts import SCHEMA as EVENTS
from tests.support.transcripts import zstd
from tests.support.workspace import options_in, put

SCHEMA = f"""{EVENTS}
CREATE TABLE session_transcript_active_events (session_id TEXT NOT NULL, active_position INTEGER NOT NULL,
  event_seq INTEGER NOT NULL, PRIMARY KEY (session_id, active_position)) STRICT;
CREATE TABLE transcript_rewrite_watermarks (session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL);
CREATE TABLE memory_session_tombstones (session_id TEXT NOT NULL PRIMARY KEY);
CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL,
  entry_json TEXT NOT NULL, updated_at INTEGER NOT NULL, archived_at INTEGER) STRICT;
"""
"""The columns that are read, of the tables of 2026.9.6; a test with the real package reads the real ones."""
AT = 1_795_402_688


class Database:
    """An agent's database, as OpenClaw writes it."""

    def __init__(self, path):
        path.parent.mkdir(parents=True)
        self.path, self.connection = path, apsw.Connection(str(path))
        self.connection.pragma("journal_mode", "wal")
        self.connection.execute(SCHEMA)

    def say(self, session, *texts, key="agent:main:main", compress=None):
        """Add messages to a session, by turns of the user and the assistant; `compress` makes rows of long ones."""
        write = self.connection.execute
        write("INSERT OR IGNORE INTO session_windows VALUES (?, ?, ?)", (session, key, AT * 1000))
        sql = "SELECT coalesce(max(seq), 0) FROM transcript_events WHERE session_id = ?"
        (last,) = write(sql, (session,)).fetchall()[0]
        for at, text in enumerate(texts, int(last) + 1):
            content = text if at % 2 else [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
            message = {"role": "user" if at % 2 else "assistant", "content": content}
            line = {"type": "message", "message": message, "timestamp": "2026-11-23T02:58:08Z"}
            record = json.dumps(line, ensure_ascii=False)
            stored = (record, None) if compress is None else (None, compress(record.encode()))
            row = (session, at, stored[0], AT * 1000 + at, stored[1], len(record.encode()))
            write("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?)", row)

    def keep(self, session, key, archived=None, **entry):
        """Keep what a host does of a session that goes on."""
        row = (key, session, json.dumps({"sessionId": session, **entry}), AT * 1000, archived)
        self.connection.execute("INSERT INTO session_nodes VALUES (?, ?, ?, ?, ?)", row)


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "openclaw"))
    made = Database(places.agent_database("main"))
    yield made
    made.connection.close()


@pytest.fixture
def copies(database, tmp_path):
    assert database.path.is_file()
    return SessionCopies(database.path, tmp_path / "copies", tmp_path / "archive")


def copied(tmp_path):
    """The texts of each copy, by session; a line without a message is empty."""
    found = {}
    for path in sorted((tmp_path / "copies").iterdir()):
        lines = path.read_text().split("\n")[1:-1]
        found[path.name] = [json.loads(line)["message"]["content"][0]["text"] if line else "" for line in lines]
    return found


def test_copies_follow_what_is_said_and_stay_on_their_lines(database, copies, tmp_path):
    database.say("a", "Where is the stopcock?", "Under the stairs.")
    database.say("b", "Second session.")
    assert copies.refresh()
    second = {"b.jsonl": ["Second session."]}
    assert copied(tmp_path) == {"a.jsonl": ["Where is the stopcock?", "Under the stairs."], **second}
    copy = tmp_path / "copies" / "a.jsonl"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert int(copy.stat().st_mtime) == AT
    assert not copies.refresh(), "nothing was said"
    before = (tmp_path / "copies" / "b.jsonl").stat().st_ino
    database.say("a", "Thanks.")
    assert copies.refresh()
    assert copied(tmp_path)["a.jsonl"][-1] == "Thanks."
    assert (tmp_path / "copies" / "b.jsonl").stat().st_ino == before, "only what changed is written"
    # A rewound session: its branch has two of the three messages.
    for position, number in enumerate((1, 3)):
        row = ("a", position, number)
        database.connection.execute("INSERT INTO session_transcript_active_events VALUES (?, ?, ?)", row)
    database.connection.execute("INSERT INTO transcript_rewrite_watermarks VALUES ('a', 'g2')")
    assert copies.refresh()
    assert copied(tmp_path)["a.jsonl"] == ["Where is the stopcock?", "", "Thanks."]


def test_sessions_that_a_memory_does_not_hold_are_left_out_and_go(database, copies, tmp_path):
    database.say("a", "Forget this.")
    database.say("c", "Nightly.", key="agent:main:cron:nightly")
    database.say("h", "Tick.", key="agent:main:heartbeat")
    database.say("../x", "A name that leads elsewhere.")
    copies.refresh()
    assert list(copied(tmp_path)) == ["a.jsonl"]
    database.connection.execute("INSERT INTO memory_session_tombstones VALUES ('a')")
    assert copies.refresh()
    assert copied(tmp_path) == {}


def test_secrets_are_masked_and_archives_come_along(database, copies, tmp_path):
    database.say("a", "The key is sk-ant-api03-" + "Ab1" * 30)
    put(tmp_path / "archive", "old.jsonl.reset.2026-11-01", text="{}\n")
    (tmp_path / "archive" / "plain.jsonl").write_text("{}\n")
    copies.refresh()
    assert "Ab1Ab1Ab1Ab1" not in (tmp_path / "copies" / "a.jsonl").read_text()
    names = {path.name for path in (tmp_path / "copies").iterdir()}
    assert names == {"a.jsonl", "old.jsonl.reset.2026-11-01"}


def by_node(data):
    """`data` as OpenClaw 2026.9.6 compresses it: by Node's own zstd, level 1, with a checksum."""
    script = """
        const {zstdCompressSync, constants: {ZSTD_c_compressionLevel: level, ZSTD_c_checksumFlag: sum}} =
            require("node:zlib");
        const data = require("node:fs").readFileSync(0);
        process.stdout.write(zstdCompressSync(data, {params: {[level]: 1, [sum]: true}}));"""
    return subprocess.run([node(), "-e", script], input=data, capture_output=True, check=True).stdout


LONG = ["Wo liegt der Schlüssel? " * 90, "Unter der Fußmatte. 🔑 " * 200]


@pytest.mark.parametrize(
    ("said", "compress", "read"),
    [
        (LONG, zstd.compress, LONG),
        pytest.param(LONG, by_node, LONG, marks=pytest.mark.real_host),
        (["".join(map(chr, range(200, 4000)))], lambda data: zstd.compress(data)[:-20], []),
        (["".join(map(chr, range(200, 4000)))], lambda data: zstd.compress(data)[:40] + bytes(9), []),
        (["x" * (4 * 1024 * 1024)], zstd.compress, []),
    ],
    ids=["whole", "by Node", "cut off", "damaged", "longer than OpenClaw compresses"],
)
def test_long_messages_are_compressed_and_a_damaged_one_leaves_the_others_readable(
    database, copies, tmp_path, said, compress, read
):
    database.say("a", "Short.", "Yes.")
    database.say("a", *said, compress=compress)
    assert copies.refresh()
    assert copied(tmp_path)["a.jsonl"] == ["Short.", "Yes.", *read]
    assert (copies.problem is None) == bool(read)


def test_what_cannot_be_read_is_said(database, copies):
    database.say("a", "Short.", compress=lambda data: b"no such format")
    assert copies.refresh()
    assert str(copies.problem and copies.problem.message).startswith("1 message of OpenClaw's sessions cannot be read")
    database.say("b", "Another one.")
    assert copies.refresh()
    assert copies.problem, "it still cannot be read"
    database.connection.execute("DROP TABLE session_windows")
    assert not copies.refresh()
    assert str(copies.problem and copies.problem.message).startswith("OpenClaw's sessions cannot be read: ")


def test_the_corpus_sessions_is_searched_and_the_database_is_only_read(database, tmp_path):
    put(tmp_path / "notes", "MEMORY.md", text="# Memory\n\n- The router is an Omada.\n")
    search = {"sources": ["memory", "sessions"], "experimental": {"sessionMemory": True}}
    config = tmp_path / "openclaw" / "openclaw.json"
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": search}}}))
    database.say("a", "Where is the stopcock of the house?", "The stopcock is under the stairs.")
    files = [path for path in database.path.parent.iterdir() if not path.name.endswith("-shm")]
    before = [path.read_bytes() for path in files]
    changes = ("sync.watch=false", "profile=recommended")
    options = options_in(tmp_path, *changes, config=str(config), provider="scripted")

    def paths(question):
        found = engine.search.gather(question, source="sessions")
        return [hit.chunk.path for hit in engine.search.rank(found, engine.plan.settings).recalled]

    with Engine.open(options) as engine:
        engine.index.catch_up()
        assert paths("stopcock stairs") == ["sessions/a.jsonl"]
        assert [path.read_bytes() for path in files] == before
        database.say("b", "Who plays the bassoon?", "Wei plays the bassoon.")
        engine.index.sync()
        assert paths("bassoon")[0] == "sessions/b.jsonl"


def test_sessions_in_the_database_are_as_near_to_their_flush_as_openclaw_says(database, tmp_path):
    def near():
        config = choose(Options(workspace=str(tmp_path / "notes"))).config
        return {
            one.session: (one.decision.flush, one.decision.cause, one.decision.tokens) for one in flush.near(config)
        }

    (tmp_path / "notes").mkdir()
    assert near() == {}
    counted = {"totalTokensFresh": True, "totalTokensVersion": 1}
    database.say("full", "Hello.", "Hello.")
    database.keep("full", "agent:main:main", totalTokens=190_000, **counted)
    database.say("flushed", "Hello.")
    done = {"kind": "succeeded", "compactionCount": 2}
    database.keep("flushed", "agent:main:b", totalTokens=190_000, **counted, memoryFlush=done, compactionCount=2)
    database.say("long", *["x" * 1_500_000] * 2, compress=zstd.compress)
    database.keep("long", "agent:main:c", totalTokens=10, **counted)
    database.say("used", "Hello.")
    usage = {"type": "message", "message": {"role": "assistant", "usage": {"input": 500, "output": 20}}}
    row = ("used", 2, AT, zstd.compress(json.dumps(usage).encode()))
    database.connection.execute("INSERT INTO transcript_events VALUES (?, ?, NULL, ?, ?, 99)", row)
    database.keep("used", "agent:main:d")
    database.say("unmarked", "Hello.")
    database.keep("unmarked", "agent:main:f", totalTokens=190_000, totalTokensFresh=True)
    database.say("away", "Hello.")
    database.keep("away", "agent:main:e", archived=AT * 1000)
    found = near()
    assert found.keys() == {"full", "flushed", "long", "used", "unmarked"}
    assert found["unmarked"] == (False, "tokens unknown", None), "2026.9 counts what is marked alone"
    assert found["full"][0]
    assert found["long"][0], "more than 2 MiB of transcript, however small it is stored"
    assert not found["flushed"][0]
    assert found["used"] == (False, "below threshold", 520)
    database.connection.execute("DROP TABLE transcript_events")
    with pytest.raises(Unreadable, match="OpenClaw's sessions cannot be read"):
        near()
    database.connection.execute("DROP TABLE session_nodes")
    assert near() == {}, "a database of before"
