"""Connecting a host: what it will start answers, and the way back leaves its files as they were."""

import errno
import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memory_tui import durable, recall_log
from memory_tui.hosts import connection, openclaw, wiring
from tests.support.workspace import install_agents, own_home, put

FACT = "- The Omada controller runs on port 8043 in VLAN 20.\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    own_home(monkeypatch, tmp_path, folder)
    notes = tmp_path / "notes"
    put(notes, "MEMORY.md", text=f"# Memory\n\n{FACT}")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    install_agents(tmp_path / "programs", monkeypatch)
    return folder


@pytest.fixture
def unasked(monkeypatch):
    """Servers that were to be started: a start costs seconds, and the tests that need none do without."""
    started: list[wiring.ServerStart] = []

    def prove(start):
        started.append(start)
        return connection.Proof("memory-tui", "1", 1.0, 1.0, "recommended", "builtin", "router", 0, "")

    monkeypatch.setattr(connection, "prove", prove)
    return started


@pytest.fixture
def run(home, tmp_path, command):
    def run(*words, code=0):
        named = [] if words[0] == "disconnect" else ["--workspace", str(tmp_path / "notes")]
        status, out, err = command(*words, "--json", *named)
        assert status == code, err
        return json.loads(out)

    return run


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


CODEX = '# mine\nmodel = "x"\n\n[projects."/a"]\ntrust_level = "trusted"\n'
CLAUDE = '{\n  "numStartups": 3,\n  "mcpServers": {"other": {"command": "y"}}\n}\n'


def fill(home):
    put(home / ".codex", "config.toml", text=CODEX)
    (home / ".claude.json").write_text(CLAUDE)
    (home / ".claude.json").chmod(0o640)
    return files(home)


@pytest.mark.parametrize(("name", "scope"), [("claude-code", ()), ("codex", ("--project",))])
def test_there_and_back(name, scope, home, run):
    before = fill(home)
    planned = run("connect", name, *scope, "--dry-run")
    assert files(home) == before
    assert files(Path.cwd()) == {}
    assert not planned["written"]
    made = run("connect", name, *scope, "--yes")
    assert {**planned, "written": True, "proof": made["proof"]} == made
    said = made["proof"]
    proof = (said["server"], said["profile"], said["hits"], said["first"])
    assert proof == ("memory-tui", "recommended", 1, "MEMORY.md:1")
    assert (files(home) == before) == bool(scope)
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o640
    [row] = run("connect", name, "--status")["hosts"]
    assert row["connected"]
    assert row["proof"]["hits"] == 1
    told = run("disconnect", name, *scope, "--yes")
    assert [file["ending"] for file in told["files"]] == ["removed" if scope else "restored", "removed"]
    assert files(home) == before
    assert list(Path.cwd().iterdir()) == []
    gone = {"host": name, "title": connection.host(name).title, "connected": False}
    assert run("connect", name, "--status")["hosts"] == [gone]


@pytest.mark.usefixtures("unasked")
def test_a_difference_shows_no_key_of_another_server(home, run):
    key = "sk-proj-" + "Ab3dE6gH9jK2mN5p" * 2
    other = {"command": "y", "env": {"API_TOKEN": key, "PASSWORD": "correct-horse-9-battery"}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"other": other}}, indent=2))
    for step in ("--dry-run", "--yes"):
        said = json.dumps(run("connect", "claude-code", step))
        assert "+++" in said
        assert key not in said
        assert "correct-horse" not in said
    assert key in (home / ".claude.json").read_text()


def test_a_dry_run_tells_in_words_what_would_be_and_that_nothing_was_written(home, tmp_path, printed):
    before = fill(home)
    words = ("connect", "claude-code", "--dry-run", "--workspace", str(tmp_path / "notes"))
    *_, server, allowed, hooks, last = printed(*words).splitlines()
    assert server.startswith("Claude Code starts memory-tui mcp")
    assert "may call memory_search and memory_get without asking you" in allowed
    assert hooks.startswith("Hooks of Claude Code show it the newest logs")
    assert last.startswith("Nothing was written")
    assert files(home) == before


def test_what_connecting_would_write_shows_where_the_host_is_not_installed(home, tmp_path, printed, monkeypatch):
    monkeypatch.setenv("PATH", "")
    words = ("connect", "claude-code", "--dry-run", "--workspace")
    first, second, *_, last = printed(*words, str(tmp_path / "notes")).splitlines()
    assert first == "Claude Code is not installed here; this is what connecting would write."
    assert second.startswith("--- ")
    assert last.startswith("Nothing was written")
    refusal = printed(*words[:2], "--yes", "--workspace", str(tmp_path / "notes"), code=2)
    assert f"memory-tui connect claude-code --dry-run --workspace {tmp_path / 'notes'} " in refusal
    sample = tmp_path / "memory-tui-demo-1" / "workspace"
    sample.mkdir(parents=True)
    assert "These notes are the demo's copy, which goes" in printed(*words, str(sample))
    assert files(home) == {}


@pytest.mark.usefixtures("unasked")
def test_the_log_is_of_the_server_alone_and_status_names_the_last_query(home, run, tmp_path):
    assert run("connect", "codex", "--yes", "--log-recalls")["log"]
    server = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["memory"]
    assert "--log-recalls" in server["args"]
    assert "--log-recalls" not in (home / ".codex" / "hooks.json").read_text()
    place = recall_log.recall_log_path(tmp_path / "notes")
    for client, query in (("codex-mcp-client 1", "port of Omada"), ("claude-code 2", "another agent's")):
        hit = recall_log.LoggedHit("MEMORY.md", 1, 3, 1.0, 1.0, 0.0)
        entry = recall_log.RecallEntry("memory_search", query, 1.8e9, client, mode="hybrid", hits=(hit,), ms=12.0)
        recall_log.append_recall(place, entry)
    [row] = run("connect", "codex", "--status")["hosts"]
    assert row["log"]
    assert (row["lastQuery"]["query"], row["lastQuery"]["hits"], row["lastError"]) == ("port of Omada", 1, None)
    assert not run("connect", "codex", "--yes")["log"], "without the switch nothing is written down"


@pytest.mark.usefixtures("unasked")
def test_what_is_written_starts_the_server_and_the_hooks_with_one_memory(home, run, tmp_path):
    words = ["--workspace", str(tmp_path / "notes"), "--profile", "recommended"]
    run("connect", "claude-code", "--yes")
    run("connect", "codex", "--yes")
    claude = json.loads((home / ".claude.json").read_bytes())["mcpServers"]["memory"]
    settings = json.loads((home / ".claude" / "settings.json").read_bytes())
    codex = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["memory"]
    assert claude["args"] == ["mcp", *words]
    assert codex["args"] == ["mcp", *words]
    assert "required" not in codex, "Codex starts without it"
    assert Path(claude["command"]).is_absolute()
    assert Path(codex["command"]).is_absolute()
    assert settings["permissions"]["allow"] == ["mcp__memory__memory_search", "mcp__memory__memory_get"]
    hooks = json.loads((home / ".codex" / "hooks.json").read_bytes())["hooks"]
    for name, found in (("claude-code", settings["hooks"]), ("codex", hooks)):
        for [entry] in found.values():
            [call] = entry["hooks"]
            assert call["command"].endswith(f"hook {name} --workspace {tmp_path / 'notes'} --profile recommended")
            uninstalled = call["command"].replace(claude["command"], str(tmp_path / "gone" / "memory-tui"))
            assert subprocess.run(["sh", "-c", uninstalled], check=False, capture_output=True).stderr == b""


@pytest.mark.usefixtures("unasked")
def test_a_later_edit_elsewhere_stays(home, run):
    fill(home)
    run("connect", "claude-code", "--yes")
    path = home / ".claude.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "numStartups": 4}))
    told = run("disconnect", "claude-code", "--yes")
    assert [file["ending"] for file in told["files"]] == ["changes taken out", "removed"]
    assert json.loads(path.read_bytes()) == {**json.loads(CLAUDE), "numStartups": 4}


@pytest.mark.usefixtures("unasked")
def test_an_edited_entry_prevents_it_and_is_named(home, run):
    run("connect", "claude-code", "--yes")
    path = home / ".claude.json"
    path.write_bytes(path.read_bytes().replace(b'"recommended"', b'"openclaw-2026.9"'))
    there = files(home)
    said = run("disconnect", "claude-code", "--yes", code=2)["error"]
    assert "mcpServers.memory was edited after memory-tui wrote it" in said["message"]
    assert files(home) == there
    [row] = run("connect", "claude-code", "--status", code=1)["hosts"]
    assert "lost mcpServers.memory" in row["error"]


@pytest.mark.usefixtures("unasked")
def test_connecting_again_replaces_the_entries_and_keeps_the_way_back(home, run, tmp_path):
    before = fill(home)
    run("connect", "codex", "--yes")
    first = files(home)
    assert not run("connect", "codex", "--yes")["written"]
    assert files(home) == first
    run("connect", "codex", "--yes", "--profile", "openclaw-2026.9")
    text = (home / ".codex" / "config.toml").read_text()
    assert text.count("[mcp_servers.memory]") == 1
    assert "openclaw-2026.9" in text
    assert (home / ".codex" / "hooks.json").read_text().count("hook codex") == 3
    run("disconnect", "codex", "--yes")
    assert files(home) == before


class Disk(durable.Calls):
    """Calls `before` ahead of each new file and of each change of names, with the path."""

    def __init__(self, before):
        self._before = before

    def open(self, path, flags, mode=durable.PRIVATE, at=None):
        self._before(f"open {path}")
        return super().open(path, flags, mode, at)

    def replace(self, old, new, at=None):
        self._before(f"rename {new}")
        super().replace(old, new, at)

    def exchange(self, one, other, at=None):
        self._before(f"rename {other}")
        return super().exchange(one, other, at)

    def unlink(self, path, at=None):
        self._before(f"remove {path}")
        super().unlink(path, at)


@pytest.mark.parametrize("step", ["connect", "disconnect"])
@pytest.mark.parametrize(("call", "number"), [("open", errno.EROFS), ("open", errno.ENOSPC), ("rename", errno.EPERM)])
@pytest.mark.parametrize(("name", "file"), [("claude-code", "settings.json"), ("codex", "config.toml")])
@pytest.mark.usefixtures("unasked")
def test_a_file_that_cannot_be_written_leaves_every_file(name, file, call, number, step, home, run, monkeypatch):
    fill(home)
    put(home / ".claude", "settings.json", text='{"model": "x"}')
    if step == "disconnect":
        run("connect", name, "--yes")
    before, connected = files(home.parent), connection.every()

    def fail(what):
        if what.startswith(call) and file in what:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(durable, "calls", Disk(fail))
    assert os.strerror(number) in run(step, name, "--yes", code=1)["error"]["message"]
    after = files(home.parent)
    assert {path: after[path] for path in after if "/backups/" not in path} == {
        path: before[path] for path in before if "/backups/" not in path
    }
    assert connection.every() == connected


@pytest.mark.usefixtures("unasked")
@pytest.mark.parametrize("theirs", ["", "# of somebody else\n"])
def test_what_cannot_be_put_back_has_its_record_still(theirs, home, run, monkeypatch):
    fill(home)
    config = home / ".codex" / "config.toml"

    def fail(what):
        if "hooks.json" in what and not what.endswith(".json"):
            config.write_text(config.read_text() + theirs)
            fails.extend([] if theirs else ["config.toml"])
        if any(name in what for name in fails):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    fails = ["hooks.json"]
    with monkeypatch.context() as patch:
        patch.setattr(durable, "calls", Disk(fail))
        error = run("connect", "codex", "--yes", code=1)["error"]
    assert "config.toml cannot be put back" in error["message"]
    assert "[mcp_servers.memory]" in config.read_text()
    run("disconnect", "codex", "--yes")
    assert config.read_text() == CODEX + theirs


@pytest.mark.usefixtures("unasked")
def test_folders_made_for_files_go_when_one_cannot_be_written(home, run, monkeypatch):
    (home / ".claude.json").symlink_to("/proc/no-place.json")
    run("connect", "claude-code", "--yes", code=1)
    (home / ".claude.json").unlink()

    def fail(what):
        if "settings.json" in what:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(durable, "calls", Disk(fail))
    run("connect", "claude-code", "--yes", code=1)
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("unasked")
@pytest.mark.parametrize(("when", "code"), [("before the first write", 0), ("within the writes", 2)])
def test_a_host_that_writes_its_own_file_meanwhile_loses_nothing(when, code, home, run, monkeypatch):
    fill(home)
    path, prove = home / ".claude.json", connection.prove

    def write(what):
        if "claude-code.json" in what:
            path.write_text(json.dumps({**json.loads(path.read_bytes()), "numStartups": 10}))

    if code:
        monkeypatch.setattr(durable, "calls", Disk(write))
    else:
        monkeypatch.setattr(connection, "prove", lambda *args: (write("claude-code.json"), prove(*args))[1])
    run("connect", "claude-code", "--yes", code=code)
    data = json.loads(path.read_bytes())
    assert data["numStartups"] == 10
    assert ("memory" in data["mcpServers"]) == (code == 0)
    assert bool(connection.every()) == (code == 0)


def test_a_server_without_an_answer_is_not_connected(home, run, monkeypatch):
    monkeypatch.setattr(wiring, "command", lambda: ("/bin/false",))
    assert "Nothing was written" in run("connect", "codex", "--yes", code=1)["error"]["message"]
    assert files(home) == {}


def test_a_server_that_does_not_start_is_an_error_with_its_words(home, tmp_path, printed):
    gone = tmp_path / "gone"
    put(gone, "MEMORY.md", text=FACT)
    printed("connect", "codex", "--yes", "--workspace", str(gone), "--set", "query.maxResults=2")
    (gone / "MEMORY.md").unlink()
    gone.rmdir()
    assert str(gone) in printed("connect", "--status", code=1)


@pytest.mark.usefixtures("unasked")
def test_openclaw_gets_slot_entry_and_folder_in_one_write(home, run, tmp_path, monkeypatch, printed):
    packaged = tmp_path / "plugin"
    put(packaged, "index.js", text="export default {}\n")
    monkeypatch.setattr(openclaw, "plugin_folder", lambda: packaged)
    state = home / ".openclaw"
    put(state / "workspace", "MEMORY.md", text=FACT)
    config = state / "openclaw.json"
    config.write_text("{\n  // mine\n  plugins: { slots: { memory: 'memory-core' }, allow: ['memory-core'] },\n}\n")
    before = files(home)
    assert "counts for no promotion" in printed("connect", "openclaw", code=2), "said before the yes"
    printed("connect", "openclaw", "--yes")
    text = config.read_text()
    assert "// mine" in text
    assert 'memory: "memory-tui"' in text
    assert str(openclaw.installed_folder()) in text
    assert """allow: ['memory-core', "memory-tui"]""" in text
    assert (openclaw.installed_folder() / "index.js").read_text() == "export default {}\n"
    (packaged / "index.js").write_text("export default { version: 2 }\n")
    assert run("connect", "openclaw", "--status")["hosts"][0]["outdated"] == ["index.js"]
    printed("connect", "openclaw", "--yes")
    assert run("connect", "openclaw", "--status")["hosts"][0]["outdated"] == []
    order: list[str] = []
    monkeypatch.setattr(durable, "calls", Disk(order.append))
    printed("disconnect", "openclaw", "--yes")
    names = " ".join(what for what in order if what.startswith(("rename", "remove")))
    assert names.index("/openclaw.json") < names.index("index.js"), "no slot without its plug-in"
    assert files(home) == before
    assert not openclaw.installed_folder().exists()


def test_what_cannot_be_meant_is_refused(home, printed, monkeypatch):
    for words, said in (
        (["connect"], "Which host is meant?"),
        (["connect", "emacs"], "There is no host 'emacs'."),
        (["connect", "openclaw", "--project"], "OpenClaw has no files of a project."),
        (["connect", "openclaw"], "OpenClaw is not set up here"),
        (["connect", "openclaw"], "The demo has no OpenClaw"),
        (["connect", "codex", "--workspace", str(home.parent / "notes")], "Nothing was written."),
        (["connect", "codex", "--yes", "--workspace", "NOPE"], "NOPE"),
        (["connect", "claude-code", "--yes", "--workspace", "NOPE"], "NOPE"),
        (["disconnect", "codex"], "Codex was not connected by memory-tui on this machine."),
        (["connect", "codex", "--yes", "--workspace", "../notes"], "Codex is not installed here"),
        (["connect", "claude-code", "--yes", "--workspace", "../notes"], "Claude Code is not installed here"),
    ):
        if "../notes" in words:
            monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("OPENCLAW_STATE_DIR", str(home / ("memory-tui-demo-1" if "demo" in said else "")))
        assert said in printed(*words, code=2)
    assert files(home) == {}
    record = home.parent / "state" / "memory-tui" / "connections" / "codex.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"host": "codex"}')
    assert f"The record {record} of a connection cannot be read" in printed("disconnect", "codex", code=2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes in folders")
@pytest.mark.parametrize(
    ("pipe", "words"),
    [
        ("home/pipe", ["search", "port", "--config", "../home/pipe"]),
        ("home/.openclaw/.env", ["search", "port", "--provider", "openai"]),
        ("home/.codex/config.toml", ["connect", "codex", "--yes"]),
        ("home/.codex/hooks.json", ["connect", "codex", "--yes"]),
        ("home/.claude.json", ["connect", "claude-code", "--yes"]),
        ("home/.claude/settings.json", ["connect", "claude-code", "--yes"]),
        ("home/pipe", ["hook", "claude-code"]),
    ],
)
@pytest.mark.timeout(30)
def test_a_pipe_in_place_of_a_file_is_never_waited_for(pipe, words, home, command, monkeypatch):
    path = home.parent / pipe
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    call = {"hook_event_name": "SessionEnd", "transcript_path": str(path)}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(call)))
    said = "key" if path.name == ".env" else f"{path.name} cannot be read: It is not a regular file"
    assert said in command(*words, "--workspace", str(home.parent / "notes"))[2]
