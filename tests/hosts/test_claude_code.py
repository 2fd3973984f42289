"""What Claude Code and Codex remember as a workspace: where it is kept, what is searched, what is added."""

import datetime as dt
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.cli import main
from memory_tui.hosts import claude_code, registry
from tests.support import coding_agents


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


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


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


def put(file, named):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"autoMemoryDirectory": named}))


def test_each_setting_moves_it_and_an_own_one_counts_more(home, tmp_path, monkeypatch):
    root = repository(tmp_path / "repo")
    (root / "src").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(root / "src")
    managed: list[Path] = []
    monkeypatch.setattr(claude_code, "_managed", lambda: managed)
    unmoved = claude_code.auto_memory(root)
    for name, file in settings_of(home, root, root / "src").items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{")
        put(file, f"~/{name}")
        assert claude_code.auto_memory(root / "src") == tmp_path / name
        assert claude_code.is_auto_memory(tmp_path / name / "MEMORY.md")
    # What the folder src shares counts there alone; a file of one's own at the root counts in the whole repository.
    assert claude_code.auto_memory(root) == tmp_path / "root"
    managed.append(tmp_path / "managed.json")
    put(managed[0], str(tmp_path / "managed"))
    assert claude_code.auto_memory(root) == tmp_path / "managed"
    for wrong in ("relative/folder", "~", "~/", "~/../other", "/", "", "/a\0b"):
        put(managed[0], wrong)
        assert claude_code.auto_memory(root) == unmoved, "the others do not count then"
    assert not claude_code.is_auto_memory(tmp_path / "elsewhere" / "MEMORY.md")


@pytest.mark.real_host
def test_claude_code_itself_keeps_it_there(tmp_path, monkeypatch):
    """The real program tells its model where its memory is."""
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
            put(file, str(tmp_path / f"moved-{name}"))
            assert claude_code.auto_memory(root / "src").name == f"moved-{name}"
            is_told(root / "src")
        put(root / ".claude" / "settings.local.json", "relative")
        is_told(root / "src")


NAME = re.compile(r"extensions/ad_hoc/notes/\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-[a-z0-9][a-z0-9-]{0,79}\.md")
"""The names that Codex 0.169.0 takes."""


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "codex" / "memories"
    (folder / "rollout_summaries").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Task Group: release\n\n## Task 1: Tag\n\n- Tags begin with v.\n")
    (folder / "memory_summary.md").write_text("# User profile\n\nPrefers the ferry from pier 3.\n")
    (folder / "raw_memories.md").write_text("# Raw\n\nThe bassoon is in the attic.\n")
    (folder / "rollout_summaries" / "2026-11-02T10-00-00-AbCd-router.md").write_text("# Router\n\nThe Omada moved.\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


def run(capsys, *words):
    assert main.main([*words, "--json", "--provider", "none"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("chosen", ["--codex", "--workspace"])
def test_every_part_is_searched(chosen, memory, capsys):
    words = ["--codex"] if chosen == "--codex" else ["--workspace", str(memory)]
    wanted = {
        "tags begin": "MEMORY.md",
        "ferry pier": "memory_summary.md",
        "bassoon attic": "raw_memories.md",
        "Omada moved": "rollout_summaries/2026-11-02T10-00-00-AbCd-router.md",
    }
    for query, path in wanted.items():
        assert run(capsys, "search", query, *words)["results"][0]["path"] == path  # type: ignore[index]


def test_what_is_remembered_is_a_note_that_codex_takes_up(memory, capsys):
    before = {path: path.read_bytes() for path in memory.rglob("*.md")}
    for words in (["remember", "The plumber is Mrs Ödön."], ["promote", "memory_summary.md:3"]):
        assert main.main([*words, "--workspace", str(memory), "--provider", "none", "--yes"]) == 0
        capsys.readouterr()
    added = sorted(path for path in memory.rglob("*.md") if path not in before)
    names = [path.relative_to(memory).as_posix() for path in added]
    assert all(NAME.fullmatch(name) for name in names), names
    assert {path.read_text() for path in added} == {
        "The plumber is Mrs Ödön.\n",
        "Prefers the ferry from pier 3.\n\n(from memory_summary.md)\n",
    }
    assert all(path.read_bytes() == data for path, data in before.items()), "what Codex makes stays as it is"


@given(st.text(max_size=200))
def test_every_text_has_a_name_that_codex_takes(text):
    assert NAME.fullmatch(registry.codex_note(text, dt.datetime(2026, 11, 23, 4, 5, 6)))
