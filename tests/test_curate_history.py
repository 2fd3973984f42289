"""git is asked about notes and told to commit them, and runs nothing that a repository names."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from helpers_curate import workspace

from memory_tui.curate.history import GitFailed, History
from memory_tui.errors import EditRefused

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def folder(tmp_path):
    folder = workspace(tmp_path / "notes")
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@example.org")
    return folder


def git(folder, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def test_commits_differences_and_old_texts(folder):
    history = History(folder)
    assert history.log("MEMORY.md") == ()
    first = history.commit(["MEMORY.md"], 'First: "quoted"')
    before = (folder / "MEMORY.md").read_bytes()
    (folder / "MEMORY.md").write_bytes(before + b"caf\xe9\r\n")
    assert "+caf" in history.diff("MEMORY.md")
    second = history.commit(["MEMORY.md"], "-m looks like an option")
    assert [commit.subject for commit in history.log("MEMORY.md")] == ["-m looks like an option", 'First: "quoted"']
    assert history.text("MEMORY.md", first.hash) == before
    assert history.text("MEMORY.md", second.hash) == before + b"caf\xe9\r\n"
    assert "+caf" in history.diff("MEMORY.md", second.hash)
    assert history.diff("MEMORY.md") == ""


def test_only_the_named_notes_are_committed(folder):
    (folder / "memory/-odd *.md").write_bytes(b"x\n")
    (folder / "memory/other.md").write_bytes(b"y\n")
    git(folder, "add", "memory/other.md")
    history = History(folder)
    history.commit(["memory/-odd *.md"], "one")
    assert history.log("memory/other.md") == ()
    (folder / "memory/-odd *.md").unlink()
    history.commit(["memory/-odd *.md"], "gone")
    assert len(history.log("memory/-odd *.md")) == 2
    with pytest.raises(GitFailed):
        history.commit(["memory/-odd *.md"], "nothing")


def test_nothing_of_the_repository_is_run(folder, tmp_path):
    trap = tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    program.chmod(0o755)
    for name in ("pre-commit", "commit-msg", "post-commit", "prepare-commit-msg"):
        hook = folder / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
        hook.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "gpg.program",
        "diff.trap.textconv",
        "diff.trap.command",
    ):
        git(folder, "config", key, str(program))
    git(folder, "config", "commit.gpgSign", "true")
    (folder / ".gitattributes").write_text("*.md diff=trap\n")
    history = History(folder)
    commit = history.commit(["MEMORY.md"], "first")
    (folder / "MEMORY.md").write_text("# Other\n")
    assert "+# Other" in history.diff("MEMORY.md")
    assert history.log("MEMORY.md")
    assert history.text("MEMORY.md", commit.hash)
    history.diff("MEMORY.md", commit.hash)
    assert not trap.exists()


def test_without_a_repository_and_outside_of_it(tmp_path):
    folder = workspace(tmp_path / "plain")
    history = History(folder)
    assert history.top() is None
    assert history.log("MEMORY.md") == ()
    with pytest.raises(GitFailed):
        history.diff("MEMORY.md")
    for path in ("../x.md", "/etc/passwd"):
        with pytest.raises(EditRefused, match="outside"):
            history.diff(path)


@pytest.mark.parametrize("name", ["--output=x", "HEAD", "", "zz", "a" * 65])
def test_a_commit_is_named_by_its_hash(folder, name):
    with pytest.raises(EditRefused):
        History(folder).text("MEMORY.md", name)
