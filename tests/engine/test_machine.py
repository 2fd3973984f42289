"""Every memory on this machine is listed; one whose project was renamed is known again, and brought after it."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from memory_tui.cli.main import main
from memory_tui.engine import machine
from memory_tui.errors import ConfigError
from memory_tui.hosts import claude_code
from memory_tui.tui.facts import Facts
from memory_tui.tui.machine import Chooser
from tests.support.curate import git
from tests.support.transcripts import claude_said, write
from tests.support.tui import Window, go, make_app, sample
from tests.support.workspace import own_home, put


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with an agent of OpenClaw, two projects of Claude Code, one in a repository, and Codex."""
    own_home(monkeypatch, tmp_path, tmp_path)
    clawed = tmp_path / ".openclaw" / "workspace"
    put(clawed, "MEMORY.md", text="- the agent's\n")
    agents = {"list": [{"id": "main", "workspace": str(clawed)}]}
    put(tmp_path / ".openclaw", "openclaw.json", text=json.dumps({"agents": agents}))
    put(tmp_path / ".codex" / "memories", "MEMORY.md", text="- of Codex\n")
    for name in ("boat", "shed"):
        (tmp_path / name).mkdir()
        memory = claude_code.auto_memory(tmp_path / name)
        talk = [{"type": "summary"}, claude_said("user", "Hello.", 1.0, str(tmp_path / name))]
        write(memory.parent / "s1.jsonl", talk)
        put(memory, "MEMORY.md", text=f"- about the {name}\n")
    git(tmp_path / "boat", "init")
    put(tmp_path / "boat", "hull.txt", text="oak\n")
    git(tmp_path / "boat", "add", ".")
    git(tmp_path / "boat", "commit", "-m", "one")
    return tmp_path


def listed():
    return {f"{each.host} {Path(each.project).name}".strip(): each for each in machine.memories()}


def test_memories_of_every_host_are_listed(home):
    put(home / "plain", "MEMORY.md", text="- mine\n")
    machine.remember(home / "plain")
    machine.remember(home / "boat-that-sank")
    memories = listed()
    assert set(memories) == {"OpenClaw, agent main", "Claude Code boat", "Claude Code shed", "Codex", "Folder"}
    assert {each.notes for each in memories.values()} == {1}
    assert memories["Claude Code boat"].bytes == len("- about the boat\n")
    assert all(each.findings == () for each in memories.values())


def test_a_memory_with_an_index_says_how_many_decisions_wait_and_another_was_not_examined(home, printed):
    put(home / "plain", "MEMORY.md", text="- mine\n")
    (home / "plain" / "MEMORY.md").write_bytes(b"- a caf\xe9 by the lake\n")
    machine.remember(home / "plain")
    printed("index", "--workspace", str(home / "plain"))
    waits = {host: each.decisions for host, each in listed().items()}
    assert (waits.pop("Folder"), set(waits.values())) == (1, {None})
    lines = printed("memories").splitlines()
    assert [line.endswith("1 decision in its inbox") for line in lines if line.startswith("Folder")] == [True]
    assert sum(line.endswith("inbox not examined") for line in lines) == 4


def test_a_worktree_and_a_moved_folder_of_memory_are_followed(home):
    git(home / "boat", "worktree", "add", str(home / "boat-two"))
    (home / ".claude" / "projects" / "-boat-two").mkdir()
    write(home / ".claude/projects/-boat-two/s2.jsonl", [claude_said("user", "Hi.", 1.0, str(home / "boat-two"))])
    put(home / "elsewhere", "MEMORY.md", text="- moved\n")
    moved = json.dumps({"autoMemoryDirectory": str(home / "elsewhere")})
    put(home / "shed" / ".claude", "settings.local.json", text=moved)
    memories = [each for each in machine.memories() if each.host == "Claude Code"]
    assert {each.folder for each in memories} == {claude_code.auto_memory(home / "boat"), home / "elsewhere"}
    assert len(memories) == 2


def test_a_memory_that_the_host_does_not_read_whole_says_so(home):
    put(claude_code.auto_memory(home / "boat"), "MEMORY.md", text="- a line\n" * 300)
    (finding,) = listed()["Claude Code boat"].findings
    assert finding == (
        "Claude Code reads 200 lines at most; the note has 300; it cuts out lines from 201 on: 100 lines are not read."
    )
    assert "1 note of its own" in next(machine.lines(list(listed().values())))


def test_a_machine_without_a_memory_names_the_next_step():
    (line,) = machine.lines([])
    assert "memory-tui demo" in line


def test_a_memory_follows_its_renamed_project_and_goes_back(home, printed):
    machine.memories()
    old = claude_code.auto_memory(home / "boat")
    (home / "boat").rename(home / "a ship")
    new = claude_code.auto_memory(home / "a ship")
    assert listed()["Claude Code boat"].moved_to == new
    said = printed("memories")
    assert f"It is now {home / 'a ship'}." in said
    assert f"memories --move {old} brings it to {new}." in said
    assert printed("memories", "--move", str(old), "--dry-run").splitlines()[0] == f"{old} -> {new}"
    printed("memories", "--move", str(old), code=2)
    assert old.is_dir(), "nobody agreed"
    printed("memories", "--move", str(old), "--yes")
    assert (new / "MEMORY.md").read_text() == "- about the boat\n"
    assert not old.exists()
    printed("memories", "--undo", "--yes")
    assert (old / "MEMORY.md").read_text() == "- about the boat\n"
    assert not new.exists()
    printed("memories", "--undo", "--yes", code=2)


def test_in_the_app_a_move_is_shown_before_enter_makes_it(home):
    machine.memories()
    (home / "boat").rename(home / "ship")
    memory = listed()["Claude Code boat"]
    with Window(make_app(sample(home / "notes"))) as window:
        window.press("6")
        go(window, "Every memory").press("enter").until(lambda: "Bring it to" in window.text)
        go(window, "Bring it to").press("enter").until(lambda: "Move it" in window.text)
        window.press("n")
        assert memory.folder.is_dir()
        go(window, "Bring it to").press("enter", "y").until(memory.moved_to.is_dir)
        window.until(lambda: "Bring it to" not in window.text)
    assert machine.last_move() == (memory.folder, memory.moved_to)


def test_a_memory_is_not_laid_over_another(home, printed):
    machine.memories()
    (home / "boat").rename(home / "ship")
    memory = listed()["Claude Code boat"]
    put(claude_code.auto_memory(home / "ship"), "MEMORY.md", text="- newer\n")
    with pytest.raises(ConfigError, match="not empty"):
        machine.move(memory.folder, memory.moved_to)
    assert (memory.folder / "MEMORY.md").read_text() == "- about the boat\n"
    assert listed()["Claude Code boat"].findings[-1].endswith("bring over by hand what that lacks.")
    printed("memories", "--move", str(memory.folder), "--yes", code=2)


def test_a_move_that_was_cut_off_behind_its_rename_is_taken_back(home, monkeypatch, printed):
    machine.memories()
    (home / "boat").rename(home / "ship")
    memory = listed()["Claude Code boat"]

    def cut_off(_folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("memory_tui.durable.sync_folder", cut_off)
        memory.moved_to.parent.mkdir()
        with pytest.raises(KeyboardInterrupt):
            machine.move(memory.folder, memory.moved_to)
    assert not memory.folder.exists()
    printed("memories", "--undo", "--yes")
    assert (memory.folder / "MEMORY.md").read_text() == "- about the boat\n"


def test_a_large_memory_is_not_examined_and_the_others_are(home):
    for name, lines in (("large", 40_000), ("small", 1)):
        put(home / name, "MEMORY.md", text="- wifi password: Tr0ub4dor-3x\n" + "- a line like any other\n" * lines)
        machine.remember(home / name)
        assert main(["index", "--workspace", str(home / name)]) == 0
    facts = {each.folder.name: each.facts for each in machine.memories()}
    assert facts["large"].endswith("inbox not examined, as it is large")
    assert facts["small"].endswith("1 decision in its inbox")


def test_a_project_that_is_gone_or_was_copied_by_name_alone_is_no_match(home):
    machine.memories()
    shutil.rmtree(home / "boat")
    shutil.rmtree(home / "shed")
    (home / "ship").mkdir()
    git(home / "ship", "init")
    put(home / "ship", "hull.txt", text="steel\n")
    git(home / "ship", "add", ".")
    git(home / "ship", "commit", "-m", "another")
    memories = listed()
    for name in ("boat", "shed"):
        assert memories[f"Claude Code {name}"].moved_to is None
        assert "is gone" in memories[f"Claude Code {name}"].findings[-1]


def test_where_no_workspace_is_meant_a_person_chooses(home):
    memories = machine.memories()

    async def choose():
        app = Chooser(memories)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            facts = app.query_one(Facts)
            assert facts.fact.key, "the cursor stands on no heading"
            facts.highlighted = next(at for at, fact in enumerate(facts.facts) if "Codex" in fact.words)
            await pilot.press("enter")
        return app.return_value

    assert asyncio.run(choose()) == home / ".codex" / "memories"


def test_memories_are_listed_where_transcripts_and_configurations_make_no_sense(home):
    put(home / ".openclaw", "openclaw.json", text="{")
    for path in (home / ".claude" / "projects").glob("*/*.jsonl"):
        path.write_bytes(b'\xff\n[]\n{"cwd": 7}\n{"cwd": "a\\u0000"}\n')
    assert [each.host for each in machine.memories()] == ["Claude Code", "Claude Code", "Codex"]
