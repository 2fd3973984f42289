"""The index that 2026.9.6 has written, and what OpenClaw does with it as it is configured."""

import json
import subprocess
import sys
from contextlib import closing

import apsw
import pytest

from memory_tui.index.schema import scope_hash
from memory_tui.openclaw import compare
from memory_tui.openclaw.compare import HostProblem
from memory_tui.workspace.notes import MediaRules
from memory_tui.workspace.roots import Roots
from tests.support.host_index import Content, agent_database
from tests.support.paths import oracles

ORACLE = oracles() / "oracle-2026.9"
RELEASE = ORACLE / "2026.9.6"


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory):
    """The recorded workspaces by name, made afresh."""
    base = tmp_path_factory.mktemp("compare-2026.9")
    for script, *arguments in (
        ("make_workspace.py", "oracle", str(base / "oracle")),
        ("make_workspace9.py", str(base / "rules")),
    ):
        command = [sys.executable, "-B", str(ORACLE / script), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {name: base / name for name in ("oracle", "rules")}


def written(name, path):
    """The agent database that the real program had for the recorded configuration `name`."""
    files = [json.loads(line) for line in (RELEASE / name / "files.jsonl").read_text("utf-8").splitlines()]
    meta = json.loads((RELEASE / name / "meta.json").read_text())["memory_index_meta_v1"]
    return agent_database(path, Content({row["path"]: (row["hash"], row["size"]) for row in files}, meta))


def compared(workspace, database, wanted=None):
    found = compare.compare_workspace(Roots.open(workspace), database, wanted)
    assert not isinstance(found, HostProblem), found
    return found


def renewed(database, **fields):
    """Change fields of the record of how the index was made; None takes one away."""
    with closing(apsw.Connection(str(database))) as connection:
        (text,) = connection.execute(
            "SELECT value FROM memory_index_meta WHERE key = 'memory_index_meta_v1'"
        ).fetchall()[0]
        record = {key: value for key, value in {**json.loads(str(text)), **fields}.items() if value is not None}
        connection.execute("UPDATE memory_index_meta SET value = ? WHERE key LIKE '%meta%'", (json.dumps(record),))


@pytest.mark.parametrize(("name", "workspace"), [("w1-default", "oracle"), ("w2-default", "rules")])
def test_the_recorded_index_has_every_note_as_it_is_read_here(name, workspace, workspaces, tmp_path):
    found = compared(workspaces[workspace], written(name, tmp_path / "agent.sqlite"))
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
        ({}, {"provider": "openai"}, "paused", "provider"),
        ({}, {"sources": "memory, sessions"}, "paused", "sources"),
        ({}, {"scope": scope_hash(("/x",))}, "paused", "scope"),
        ({}, {"scope": scope_hash((), (), MediaRules())}, "paused", "scope"),
        ({"scopeHash": scope_hash((), (), MediaRules())}, {"scope": scope_hash((), (), MediaRules())}, "current", ""),
        ({"chunkOverlap": 40}, {}, "paused", "chunking"),
        ({}, {"fts_tokenizer": "trigram"}, "paused", "fts_tokenizer"),
    ],
)
def test_what_openclaw_does_with_it_and_which_command_mends_it(fields, wanted, standing, code, workspaces, tmp_path):
    database = written("w1-default", tmp_path / "agent.sqlite")
    if fields:
        renewed(database, **fields)
    found = compared(workspaces["oracle"], database, wanted)
    assert (found.standing, next((one.code for one in found.mismatches), "")) == (standing, code)
    assert ("openclaw memory status --index --agent main" in found.consequence) is (standing == "paused")
    assert ("at its next search" in found.consequence) is (standing == "stale")


def test_without_its_record_it_is_made_again(workspaces, tmp_path):
    database = written("w1-default", tmp_path / "agent.sqlite")
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("DELETE FROM memory_index_meta")
    found = compared(workspaces["oracle"], database)
    assert (found.standing, found.mismatches[0].code) == ("stale", "metadata_missing")


def test_a_newer_release_is_remarked(workspaces, tmp_path):
    database = written("w1-default", tmp_path / "agent.sqlite")
    renewed(database, chunkingVersion=6)
    assert "newer OpenClaw" in compared(workspaces["oracle"], database).remarks[0]
