"""git is asked about notes, and runs nothing that a repository names."""

import shutil
import subprocess

import pytest

from memory_tui.errors import EditRefused
from memory_tui.notes.git import GitFailed, History
from tests.support.curate import git, workspace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def folder(tmp_path):
    folder = workspace(tmp_path / "notes")
    git(folder, "init", "-q")
    return folder


def commit(folder, name, message):
    """Commit the note `name`; returns the hash."""
    git(folder, "add", "-A", "--", name)
    git(folder, "commit", "-q", "-m", message, "--", name)
    return git(folder, "rev-parse", "HEAD").strip()


def test_commits_differences_and_old_texts(folder):
    history = History(folder)
    assert history.log("MEMORY.md") == ()
    first = commit(folder, "MEMORY.md", 'First: "quoted"')
    before = (folder / "MEMORY.md").read_bytes()
    (folder / "MEMORY.md").write_bytes(before + b"caf\xe9\r\n")
    second = commit(folder, "MEMORY.md", "--looks like an option")
    assert [one.subject for one in history.log("MEMORY.md")] == ["--looks like an option", 'First: "quoted"']
    assert history.text("MEMORY.md", first) == before
    assert history.text("MEMORY.md", second) == before + b"caf\xe9\r\n"
    assert "+caf" in history.diff("MEMORY.md", second)


HOOKS = """
    applypatch-msg commit-msg fsmonitor-watchman post-checkout post-commit post-index-change post-merge
    post-rewrite pre-commit prepare-commit-msg pre-auto-gc pre-push proc-receive query-watchman
    reference-transaction update
"""
PROGRAMS = """
    core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand
    diff.external diff.trap.textconv diff.trap.command filter.trap.clean filter.trap.smudge filter.trap.process
    merge.trap.driver gpg.program gpg.ssh.program gpg.ssh.defaultKeyCommand gpg.x509.program credential.helper
    remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs sequence.editor pager.log pager.show
    pager.diff interactive.diffFilter uploadpack.packObjectsHook trailer.trap.command trailer.trap.cmd
    difftool.trap.cmd mergetool.trap.cmd web.browser browser.trap.cmd sendemail.sendmailCmd hook.trap.command
"""


def trapped(folder, program):
    """Let everything in the repository of `folder` that can name a program name this one."""
    for where in (".git/hooks", "hooks"):
        for name in HOOKS.split():
            hook = folder / where / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_bytes(program.read_bytes())
            hook.chmod(0o755)
    lines = [f"[core]\n\thooksPath = {folder / 'hooks'}\n\tattributesFile = {folder / 'more'}\n\tbare = false\n"]
    for key in PROGRAMS.split():
        section, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        head = f'[{section} "{name}"]' if name else f"[{section}]"
        lines.append(f"{head}\n\t{last} = {program}\n")
    commands = ("log", "show", "cat-file", "ls-tree", "commit", "config", "check-attr", "update-index")
    lines += [f"[alias]\n\t{name} = !{program}\n" for name in commands]
    lines += [
        f'[remote "origin"]\n\turl = ext::{program}\n\tpromisor = true\n\tpartialCloneFilter = blob:none\n',
        "[extensions]\n\tpartialClone = origin\n\tworktreeConfig = true\n[core]\n\trepositoryFormatVersion = 1\n",
        "[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n[diff]\n\tsubmodule = log\n",
        '[hook "trap"]\n\tevent = pre-commit\n\tevent = post-index-change\n[filter "trap"]\n\trequired = true\n',
        f'[include]\n\tpath = {folder / "included"}\n[includeIf "gitdir:/**"]\n\tpath = {folder / "included"}\n',
        f"[protocol]\n\tallow = always\n[safe]\n\tdirectory = *\n[core]\n\tworktree = {folder.parent}\n",
    ]
    with (folder / ".git/config").open("a") as file:
        file.writelines(lines)
    (folder / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {program}\n")
    (folder / "included").write_text(f"[core]\n\tfsmonitor = {program}\n[diff]\n\texternal = {program}\n")
    (folder / "more").write_text("* filter=trap diff=trap merge=trap\n")
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/grafts").write_text("")


@pytest.fixture
def trap(tmp_path):
    """A program that leaves a canary behind when it is run, and the canary."""
    canary, program = tmp_path / "canary", tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\ncat\n')
    program.chmod(0o755)
    return program, canary


def ask_everything(history, commit):
    history.top()
    assert history.log("MEMORY.md")
    history.text("MEMORY.md", commit)
    history.diff("MEMORY.md", commit)


def test_nothing_that_a_repository_names_is_run(folder, trap, monkeypatch):
    program, canary = trap
    (folder / "MEMORY.md").write_text("# Other\n")
    first = commit(folder, "MEMORY.md", "first")
    (folder / ".gitattributes").write_text("*.md diff=trap merge=trap\nother.* filter=trap\n")
    (folder / "other.md").write_text("stored through a filter\n")
    git(folder, "add", "other.md")
    trapped(folder, program)
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_ASKPASS"):
        monkeypatch.setenv(name, str(program))
    history = History(folder)
    (folder / "other.md").write_text("changed, so that its filter is asked for\n")
    assert "+# Other" in history.diff("MEMORY.md", first)
    ask_everything(history, first)
    assert not canary.exists(), canary.read_text()
    # The trap is one: git itself, asked for the same, runs it.
    subprocess.run(["git", "diff", "HEAD"], cwd=folder, capture_output=True, check=False, timeout=60)
    assert canary.exists()


def test_a_missing_object_is_not_fetched(folder, trap):
    program, canary = trap
    first = commit(folder, "MEMORY.md", "first")
    blob = git(folder, "rev-parse", "HEAD:MEMORY.md").strip()
    trapped(folder, program)
    (folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    history = History(folder)
    assert history.log("MEMORY.md")
    for ask in (history.text, history.diff):
        with pytest.raises(GitFailed):
            ask("MEMORY.md", first)
    assert not canary.exists(), canary.read_text()


def test_other_working_trees_shallow_copies_and_packed_branches_are_read(folder, tmp_path):
    for text in ("one\n", "two\n", "three\n"):
        (folder / "MEMORY.md").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", text.strip())
    git(folder, "pack-refs", "--all")
    git(folder, "gc", "-q")
    assert [commit.subject for commit in History(folder).log("MEMORY.md")] == ["three", "two", "one"]
    git(folder, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = History(tmp_path / "side")
    (tmp_path / "side/MEMORY.md").write_text("four\n")
    commit(tmp_path / "side", "MEMORY.md", "four")
    assert [commit.subject for commit in side.log("MEMORY.md")] == ["four", "three", "two", "one"]
    assert History(folder).log("MEMORY.md")[0].subject == "three"
    git(tmp_path, "clone", "-q", "--depth", "2", folder.as_uri(), "copy")
    assert [commit.subject for commit in History(tmp_path / "copy").log("MEMORY.md")] == ["three", "two"]
    git(folder, "checkout", "-q", "--detach")
    (folder / "MEMORY.md").write_text("five\n")
    commit(folder, "MEMORY.md", "five")
    assert History(folder).log("MEMORY.md")[0].subject == "five"


def test_a_workspace_below_the_top(folder):
    (folder / "memory/x.md").write_bytes(b"a\nb\n")
    named = commit(folder, "memory/x.md", "x")
    assert History(folder / "memory").text("x.md", named) == b"a\nb\n"


def test_without_a_repository_and_outside_of_it(tmp_path):
    folder = workspace(tmp_path / "plain")
    history = History(folder)
    assert history.top() is None
    assert history.log("MEMORY.md") == ()
    for path in ("../x.md", "/etc/passwd"):
        with pytest.raises(EditRefused, match="outside"):
            history.diff(path, "0" * 40)


@pytest.mark.parametrize("name", ["--output=x", "HEAD", "", "zz", "a" * 65])
def test_a_commit_is_named_by_its_hash(folder, name):
    with pytest.raises(EditRefused):
        History(folder).text("MEMORY.md", name)
