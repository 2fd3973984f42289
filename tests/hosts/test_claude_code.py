"""What Claude Code and Codex remember as a workspace: where it is kept, what is searched, what is added."""

import datetime as dt
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused
from memory_tui.hosts import claude_code, codex
from memory_tui.hosts.claude_code import ClaudeFact, fact_of
from memory_tui.notes.links import LinkIndex
from memory_tui.plan import Options
from tests.support import coding_agents
from tests.support.curate import git
from tests.support.workspace import put, put_all


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "claude"
    folder.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    return folder


def test_a_repository_has_one_memory_for_all_its_folders(home, tmp_path):
    root = tmp_path / "my.repo"
    inside = root / "src" / "deep"
    inside.mkdir(parents=True)
    alone = claude_code.auto_memory(inside)
    (root / ".git").mkdir()
    name = os.path.realpath(root).replace("/", "-").replace(".", "-").replace("_", "-")
    assert claude_code.auto_memory(inside) == claude_code.auto_memory(root) == home / "projects" / name / "memory"
    assert alone != claude_code.auto_memory(inside)


def repository(folder):
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_worktree_shares_the_memory_of_its_repository(home, tmp_path):
    root = repository(tmp_path / "repo")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree" / "src").mkdir()
    assert claude_code.auto_memory(tmp_path / "tree" / "src") == claude_code.auto_memory(root)
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    assert claude_code.auto_memory(tmp_path / "other").parent.name.endswith("-bare-git")
    # A folder that only says so is no worktree of that repository.
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / ".git").write_bytes((tmp_path / "tree" / ".git").read_bytes())
    assert claude_code.auto_memory(tmp_path / "stranger").parent.name.endswith("-stranger")


def test_a_long_name_is_cut_off_as_claude_code_does(home):
    folder = "/" + "l" * 150 + "/" + "m" * 150
    name = f"-{'l' * 150}-{'m' * 48}-"
    assert claude_code.auto_memory(Path(folder)).parent.name == name + "xtoznk"


def settings_of(home, root, folder):
    """The files that may move a memory, the last one that counts first."""
    return {
        "user": home / "settings.json",
        "shared": folder / ".claude" / "settings.json",
        "folder": folder / ".claude" / "settings.local.json",
        "root": root / ".claude" / "settings.local.json",
    }


def move(file, named):
    put(file.parent, file.name, text=json.dumps({"autoMemoryDirectory": named}))


def test_each_setting_moves_it_and_an_own_one_counts_more(home, tmp_path, monkeypatch):
    root = repository(tmp_path / "repo")
    (root / "src").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(root / "src")
    managed: list[Path] = []
    monkeypatch.setattr(claude_code, "_managed", lambda: managed)
    unmoved = claude_code.auto_memory(root)
    for name, file in settings_of(home, root, root / "src").items():
        put(file.parent, file.name, text="{")
        move(file, f"~/{name}")
        assert claude_code.auto_memory(root / "src") == tmp_path / name
        assert claude_code.is_auto_memory(tmp_path / name / "MEMORY.md")
    # What the folder src shares counts there alone; a file of one's own at the root counts in the whole repository.
    assert claude_code.auto_memory(root) == tmp_path / "root"
    managed.append(tmp_path / "managed.json")
    move(managed[0], str(tmp_path / "managed"))
    assert claude_code.auto_memory(root) == tmp_path / "managed"
    for wrong in ("relative/folder", "~", "~/", "~/../other", "/", "", "/a\0b"):
        move(managed[0], wrong)
        assert claude_code.auto_memory(root) == unmoved, "the others do not count then"
    assert not claude_code.is_auto_memory(tmp_path / "elsewhere" / "MEMORY.md")


@pytest.mark.real_host
def test_claude_code_itself_keeps_it_there(tmp_path, monkeypatch):
    root, home = repository(tmp_path / "repo"), tmp_path / "home"
    (root / "src").mkdir()
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    long = tmp_path / ("l" * 120) / ("m" * 120)
    long.mkdir(parents=True)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    words = [coding_agents.program("@anthropic-ai/claude-code")]
    with coding_agents.scripted_model() as model:
        more = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1"}
        more["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"

        def is_told(folder):
            model.requests.clear()
            coding_agents.CodingAgent(words, home, folder, model, more).run("-p", "hello")
            place = claude_code.auto_memory(folder)
            assert f"{place}/" in json.dumps([body for _, body in model.requests]), place

        for folder in (root / "src", tmp_path / "tree", long):
            is_told(folder)
        for name, file in settings_of(home / ".claude", root, root / "src").items():
            move(file, str(tmp_path / f"moved-{name}"))
            assert claude_code.auto_memory(root / "src").name == f"moved-{name}"
            is_told(root / "src")
        move(root / ".claude" / "settings.local.json", "relative")
        is_told(root / "src")


NAME = re.compile(r"extensions/ad_hoc/notes/\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-[a-z0-9][a-z0-9-]{0,79}\.md")
"""The names that Codex 0.169.0 takes."""


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    facts = {
        "MEMORY.md": "# Task Group: release\n\n## Task 1: Tag\n\n- Tags begin with v.\n",
        "memory_summary.md": "# User profile\n\nPrefers the ferry from pier 3.\n",
        "raw_memories.md": "# Raw\n\nThe bassoon is in the attic.\n",
        "rollout_summaries/2026-11-02T10-00-00-AbCd-router.md": "# Router\n\nThe Omada moved.\n",
    }
    return put_all(tmp_path / "codex" / "memories", facts)


def run(printed, *words):
    return json.loads(printed(*words, "--json", "--provider", "none"))


@pytest.mark.parametrize("chosen", ["--codex", "--workspace"])
def test_every_part_is_searched(chosen, memory, printed):
    words = ["--codex"] if chosen == "--codex" else ["--workspace", str(memory)]
    wanted = {
        "tags begin": "MEMORY.md",
        "ferry pier": "memory_summary.md",
        "bassoon attic": "raw_memories.md",
        "Omada moved": "rollout_summaries/2026-11-02T10-00-00-AbCd-router.md",
    }
    for query, path in wanted.items():
        assert run(printed, "search", query, *words)["results"][0]["path"] == path


def test_what_is_remembered_is_a_note_that_codex_takes_up(memory, printed):
    before = {path: path.read_bytes() for path in memory.rglob("*.md")}
    for words in (["remember", "The plumber is Mrs Ödön."], ["promote", "memory_summary.md:3"]):
        printed(*words, "--workspace", str(memory), "--provider", "none", "--yes")
    added = sorted(path for path in memory.rglob("*.md") if path not in before)
    names = [path.relative_to(memory).as_posix() for path in added]
    assert all(NAME.fullmatch(name) for name in names), names
    told = {"The plumber is Mrs Ödön.\n", "Prefers the ferry from pier 3.\n\n(from memory_summary.md)\n"}
    assert {path.read_text() for path in added} == told
    assert all(path.read_bytes() == data for path, data in before.items()), "what Codex makes stays as it is"


@given(st.text(max_size=200))
def test_every_text_has_a_name_that_codex_takes(text):
    assert NAME.fullmatch(codex.note_path(text, dt.datetime(2026, 11, 23, 4, 5, 6)))


ROLE = """---
name: user-role
description: The user keeps the network of a house
metadata:
  type: user
---

Keeps a house with an Omada router. See [[not-written-yet]].
"""
TESTING = """---
name: feedback-testing
description: "Run the tests: all of them"
type: feedback
---

Run all tests before a commit.
"""


@pytest.fixture
def facts(tmp_path, monkeypatch):
    """The memory of a repository, from a folder deep inside it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    deep = tmp_path / "repo" / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    monkeypatch.chdir(deep)
    index = "# Index\n\n- [Role](user_role.md) — who the user is\n- [Gone](project_gone.md) — a file that went\n"
    day = "# 2026-11-20\n\n- 10:15 The ferry leaves at 18:10 from pier 3.\n"
    texts = {"MEMORY.md": index, "user_role.md": ROLE, "feedback_testing.md": TESTING, "memory/2026-11-20.md": day}
    return put_all(claude_code.auto_memory(deep), texts)


def opened(folder, tmp_path):
    index = str(tmp_path / "index.sqlite")
    return Engine.open(Options(workspace=str(folder), extra=(str(folder),), index=index, provider="none", now=1.8e9))


def test_front_matter_names_the_fact_and_its_type():
    assert fact_of(ROLE) == ClaudeFact("user-role", "The user keeps the network of a house", "user")
    assert fact_of(TESTING) == ClaudeFact("feedback-testing", "Run the tests: all of them", "feedback")
    assert fact_of("# A note\n") is None
    assert fact_of("---\nname: x\n") is None, "it never ends"
    assert fact_of("---\nname: x\nmetadata:\n  type: poem\n---\n") == ClaudeFact("x", "", "")


def test_the_inbox_names_facts_without_a_pointer_and_pointers_without_a_file(facts, tmp_path):
    with opened(facts, tmp_path) as engine:
        engine.index.catch_up()
        findings = engine.inbox.examine(kinds=["dead path"])
        found = {(one.kind, one.place.path): one.reason for one in findings.suggestions}
        kinds = {row.path: row.kind for row in engine.notes.files()}
    assert kinds["user_role.md"] == "user"
    assert kinds["feedback_testing.md"] == "feedback"
    assert kinds["MEMORY.md"] == ""
    line = "Add: - [Feedback testing](feedback_testing.md) — Run the tests: all of them"
    assert found["unlisted", "feedback_testing.md"].endswith(line)
    assert found["dead path", "MEMORY.md"] == "project_gone.md is not there."
    assert not {path for kind, path in found if kind in ("unlisted", "dead path")} & {"user_role.md"}


def test_a_link_names_a_fact_whatever_its_file_is_called(facts, tmp_path):
    (facts / "project_boat.md").write_text("---\nname: the-ferry\nmetadata:\n  type: project\n---\n\nPier 3.\n")
    (facts / "user_role.md").write_text(ROLE + "\nTakes [[the-ferry]], and [[feedback-testing]].\n")
    with opened(facts, tmp_path) as engine:
        engine.index.catch_up()
        index = LinkIndex(engine.plan.roots)
        back = index.about("project_boat.md").back
        assert [(link.source, link.written) for link in back] == [("user_role.md", "the-ferry")]
        leads = {link.written: link.target for link in index.about("user_role.md").links}
        known = {"the-ferry": "project_boat.md", "feedback-testing": "feedback_testing.md"}
        assert leads == {"not-written-yet": "", **known}
        # The file stays, the fact gets another name.
        (facts / "project_boat.md").write_text("---\nname: the-boat\nmetadata:\n  type: project\n---\n\nPier 4.\n")
        assert index.about("project_boat.md").back == ()


def test_a_line_is_not_promoted_into_the_index(facts, tmp_path):
    with opened(facts, tmp_path) as engine:
        plan = engine.notes.curator.plan
        with pytest.raises(EditRefused, match="Claude Code's index"):
            plan.promote(plan.spot("memory/2026-11-20.md", 3))
