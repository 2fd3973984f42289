"""View 6: connections as differences, what agents asked and why it was answered so; what OpenClaw keeps."""

import json
import time

import pytest

from memory_tui.cancel import Stop
from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from memory_tui.hosts import connection
from memory_tui.mcp.server import ServedMemory, ServerOptions
from memory_tui.mcp.wire import Caller
from memory_tui.openclaw.prompt import GET, SEARCH
from memory_tui.plan import Options
from memory_tui.recall_log import RecallEntry
from memory_tui.tui.app import MemoryApp
from memory_tui.tui.facts import BAD, WARN, Facts
from memory_tui.tui.views.agents import question
from tests.support.ledger import HostLedger
from tests.support.transcripts import claude, claude_file, claude_said
from tests.support.tui import LARGE, NOW, SMALL, TINY, Window, go, make_app, sample
from tests.support.workspace import install_agents, own_home

SETTINGS = '{\n  // mine\n  "model": "x"\n}\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with Claude Code, in a project."""
    folder = tmp_path / "home"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text(SETTINGS)
    own_home(monkeypatch, tmp_path, folder)
    install_agents(tmp_path / "programs", monkeypatch)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return folder


def test_an_agent_is_connected_and_disconnected_after_its_difference(home, tmp_path):
    with Window(make_app(sample(tmp_path / "notes"))) as window:
        window.press("6")
        go(window, "Claude Code").press("d")
        assert "log here what it asks and gets" in window.text, "nothing is logged unasked"
        assert "log nothing" in window.text
        window.press("enter")
        lines = [line.strip("│ ▁▂▃▄▅▆▇█") for line in window.text.splitlines()]
        sentence = next(at for at, line in enumerate(lines) if "Adds this memory in all of Claude Code" in line)
        assert sentence < next(at for at, line in enumerate(lines) if "mcpServers" in line)
        assert "d on the same row goes back" in " ".join(lines)
        assert not connection.every()
        window.press("n")
        assert not connection.every()
        window.press("d", "down", "enter", "y").until(connection.every)
        assert "--log-recalls" not in (home / ".claude.json").read_text()
        assert "memory-tui" in (home / ".claude.json").read_text()
        window.until(lambda: "connected; d disconnects it" in window.text and "d Disconnect" in window.text)
        go(window, "Claude Code").press("d", "y").until(lambda: not connection.every())
        assert (home / ".claude" / "settings.json").read_text() == SETTINGS


def test_an_agent_that_is_installed_meanwhile_can_be_connected(home, tmp_path):
    (tmp_path / "programs" / "claude").unlink()
    with Window(make_app(sample(tmp_path / "notes"))) as window:
        window.press("6").until(lambda: "Claude Code is not installed" in window.text)
        go(window, "Claude Code is not").press("enter").until(lambda: "Copy the command?" in window.text)
        assert any(line.strip(" │").startswith("memory-tui connect claude-code ") for line in window.lines)
        window.press("y").until(lambda: window.app.clipboard.startswith("memory-tui connect claude-code --dry-run "))
        (home / ".claude.json").write_text("{}")
        window.until(lambda: "Claude Code  not connected; d connects it" in window.text)


def test_of_openclaw_its_own_file_comes_first_and_the_copies_are_one_line(home, tmp_path):
    notes = sample(tmp_path / "notes")
    (home / ".openclaw").mkdir()
    own = {"agents": {"defaults": {"workspace": str(notes)}}}
    (home / ".openclaw" / "openclaw.json").write_text(json.dumps(own, indent=2))
    with Window(make_app(notes)) as window:
        window.resize(120, 80)
        go(window.press("6"), "OpenClaw").press("enter", "enter").until(lambda: "+++" in window.text)
        first, *others = window.text.split(" new files in ")
        assert len(others) == 1
        assert (first.count("+++"), others[0].count("+++")) == (1, 0)


def test_a_row_that_leads_nowhere_offers_no_enter(asked):
    go(asked, "Agents asked these questions. Answers then").until(lambda: "⏎ Open" not in asked.text)
    go(asked, "aardvark").until(lambda: "⏎ Open" in asked.text)


def test_a_connection_that_lost_its_entry_says_so(home, tmp_path):
    with Window(make_app(sample(tmp_path / "notes"))) as window:
        window.press("6")
        go(window, "Claude Code").press("enter", "enter", "y").until(connection.every)
        (home / ".claude.json").write_text("{}")
        window.press("i").until(lambda: "no longer connected" in window.text)
        assert ".claude.json lost" in window.text
        rows = window.press("colon", *"agents asked", "enter").app.query_one("#agents-list", Facts)
        window.until(lambda: rows.fact.words.startswith("No question is logged yet."))


@pytest.fixture
def asked(workspace):
    """Two questions over the tools that are logged, one in vain, and a read."""
    options = Options(workspace=str(workspace), index=str(workspace.parent / "agent.sqlite"), provider="scripted")
    host = ServedMemory(lambda: Engine.open(options), ServerOptions(log=True))
    host.answer(SEARCH, {"query": "omada router", "maxResults": 2}, Caller("agent \x1b[31m1", {}, Stop()))
    host.answer(SEARCH, {"query": "aardvark", "minScore": 1}, Caller("agent 1", {}, Stop()))
    host.answer(GET, {"path": "MEMORY.md"}, Caller("agent 1", {}, Stop()))
    host.close()
    with Window(make_app(workspace)) as window:
        window.press("6").until(lambda: "aardvark" in window.text)
        yield window


def test_what_agents_asked_stands_there_the_newest_first_behind_its_verdict(asked):
    for size in (TINY, SMALL, LARGE):
        asked.resize(*size)
        go(asked, "omada router")
        assert "\x1b" not in asked.text
        facts = asked.app.query_one("#agents-list", Facts).facts
        rows = [fact.words for fact in facts if fact.key.startswith("recall:")]
        assert rows == ["read: MEMORY.md", "not answered: aardvark", "found: omada router"]


def test_enter_says_why_and_asks_again_with_the_knobs_of_then(asked):
    asked.press("colon", *"agents asked", "enter")
    rows = asked.app.query_one("#agents-list", Facts)
    asked.until(lambda: rows.fact is not None and rows.fact.words == "read: MEMORY.md")
    assert asked.press("escape").app.view.NAME == "status", "escape leads back"
    assert asked.press("6", "escape").app.view.NAME == "agents", "nothing led here"
    assert "Agents asked these questions. Answers then: 1 found, 1 not answered" in asked.text
    go(asked, "omada router").press("enter")
    assert "Ranking: recommended, 2 results, too weak under 0, words + meaning" in asked.text
    assert "Answer: found then and now." in asked.text
    asked.press("y").until(lambda: asked.app.view.NAME == "search")
    asked.until(lambda: "omada router" in asked.text)
    settings = asked.app.session.settings
    assert settings is not None
    assert settings.whole("query.maxResults") == 2
    assert " Of then " in asked.text
    asked.until(lambda: ", of then" in asked.text)
    asked.press("u")
    assert asked.notices[-1] == "You took back the knobs of then."
    assert not asked.app.session.tried
    go(asked.press("6"), "omada router").press("enter", "y").until(lambda: asked.app.view.NAME == "search")
    asked.until(lambda: " Of then " in asked.text)
    asked.ask("omada vlan")
    assert asked.notices[-1] == "Ranked by your own settings again."
    assert " Ranking " in asked.text


def test_a_read_opens_the_note(asked):
    go(asked, "MEMORY.md").press("enter").until(lambda: asked.app.view.NAME == "notes")


def test_a_question_that_was_answered_poorly_is_marked():
    shown = {
        "found in part": ("in part: where is it", WARN),
        "nearby only": ("perhaps not answered: where is it", WARN),
        "nothing holds these words": ("not answered: where is it", BAD),
    }
    rows = {level: question(RecallEntry("memory_search", "where is it", NOW, level=level, id="1")) for level in shown}
    assert {level: (row.words, row.mark) for level, row in rows.items()} == shown


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Notes of which one is the agent's, one was edited since, one is untrusted."""
    for name, folder in (("HOME", ""), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    workspace = tmp_path / ".openclaw" / "workspace"
    (workspace / "memory").mkdir(parents=True)
    (tmp_path / ".openclaw/openclaw.json").write_text('{"memory": {"search": {"provider": "builtin"}}}')
    found = HostLedger.make(tmp_path / ".openclaw", workspace)
    for name in ("MEMORY.md", "USER.md", "memory/2026-03-19.md"):
        found.agent_writes(name, b"- first line\n", NOW - 86_400)
    dream = "<!-- openclaw:dreaming:light:{0} -->\n"
    (workspace / "memory" / "2026-03-18.md").write_text(f"{dream.format('start')}slept\n{dream.format('end')}")
    (workspace / "MEMORY.md").write_bytes(b"- a person wrote this\n")
    found.agent_writes("MEMORY.md", b"- seen\n- the last line of all\n", NOW - 3600)
    (workspace / "USER.md").write_bytes(b"- edited by another program\n")
    return found


@pytest.fixture
def openclaw(ledger):
    assert ledger
    options = Options(now=NOW, changes=(("sync.watch", "false"),))
    with Window(MemoryApp(lambda listener: Engine.open(options, listener))) as window:
        go(window.press("6"), "What OpenClaw keeps").press("enter").until(lambda: "Its own index" in window.text)
        yield window


def test_what_is_not_trusted_comes_with_the_reason_and_dreams_lead_to_their_note(openclaw):
    assert "MEMORY.md: untrusted" in openclaw.text
    assert "USER.md: agent, edited" in openclaw.text
    assert "OpenClaw has no command that trusts a note again" in openclaw.text
    go(openclaw, "memory/2026-03-18.md: 1 light sleep").press("enter")
    openclaw.until(lambda: openclaw.app.view.NAME == "notes")


def test_memories_are_listed(openclaw, tmp_path):
    go(openclaw, "Long-term memories").press("enter").until(lambda: "no memories in" in openclaw.text)
    openclaw.press("escape")
    assert main.main(["ltm", "store", "Ben prefers tabs"]) == 0
    go(openclaw, "Long-term memories").press("enter").until(lambda: "preference Ben prefers tabs" in openclaw.text)


@pytest.mark.parametrize(
    ("client", "shown"),
    [("fox 1", "fox, version 1"), ("claude-code 2.0.14", "claude-code, version 2.0.14"), ("agent x", "agent x")],
)
def test_a_program_is_named_with_its_version_in_words(client, shown):
    assert question(RecallEntry("memory_search", "where is it", NOW, client, id="1")).does == shown


def test_turns_say_who_asked_and_who_should_have(home, tmp_path):
    notes, at = sample(tmp_path / "notes"), time.time() + 1
    reply = json.dumps({"results": [{"path": "MEMORY.md", "startLine": 1, "endLine": 2, "snippet": "nothing"}]})
    call = claude("m1", "mcp__memory__memory_search", {"query": "omada"}, at + 1, str(notes), text=reply)
    other = claude_said("user", "what is the omada vlan of the router", at + 3)
    claude_file(home, [claude_said("user", "Look it up.", at, str(notes)), *call, other])
    with Window(make_app(notes)) as window:
        window.press("6")
        go(window, "Turn by turn").press("enter").until(lambda: "should have asked" in window.text)
        go(window, "asked 'omada'").press("enter").until(
            lambda: "Ranking: " in window.text or "by its transcript" in window.text
        )
        window.press("n")
        go(window, "what is the omada vlan").press("enter").until(lambda: window.app.view.NAME == "search")
        window.until(lambda: "omada vlan" in window.text)


def test_another_memory_on_this_machine_is_opened(home, tmp_path):
    memory = home / ".codex" / "memories"
    memory.mkdir(parents=True)
    (memory / "MEMORY.md").write_text("- what Codex keeps\n")
    with Window(make_app(sample(tmp_path / "notes"))) as window:
        window.press("6")
        go(window, "Every memory").press("enter").until(lambda: "Codex" in window.text)
        go(window, "Codex").press("enter").until(lambda: window.app.session.engine.plan.workspace == memory)
