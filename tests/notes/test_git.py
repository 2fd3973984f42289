"""git is asked what it did to notes, and runs nothing that a repository names."""

import shutil
import subprocess

import pytest

from memory_tui.notes.authors import Repository
from memory_tui.notes.changes import FileChange
from tests.support.curate import git, workspace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def folder(tmp_path):
    folder = workspace(tmp_path / "notes")
    git(folder, "init", "-q")
    return folder


def commit(folder, name, message):
    git(folder, "add", "-A", "--", name)
    git(folder, "commit", "-q", "-m", message, "--", name)
    return git(folder, "rev-parse", "HEAD").strip()


def switched(folder):
    """Commit MEMORY.md, another text of it on a branch, and check the first one out; return that change of it."""
    commit(folder, "MEMORY.md", "first")
    before = (folder / "MEMORY.md").read_bytes()
    git(folder, "checkout", "-q", "-b", "side")
    (folder / "MEMORY.md").write_bytes(b"# Other\n")
    commit(folder, "MEMORY.md", "--looks like an option")
    git(folder, "checkout", "-q", "-")
    return FileChange("MEMORY.md", b"# Other\n", before)


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


def test_nothing_that_a_repository_names_is_run(folder, trap, monkeypatch):
    program, canary = trap
    change = switched(folder)
    (folder / ".gitattributes").write_text("*.md diff=trap merge=trap\nother.* filter=trap\n")
    (folder / "other.md").write_text("stored through a filter\n")
    git(folder, "add", "other.md")
    trapped(folder, program)
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_ASKPASS"):
        monkeypatch.setenv(name, str(program))
    history = Repository(folder)
    (folder / "other.md").write_text("changed, so that its filter is asked for\n")
    assert history.root()
    assert history.made(history.moves(0.0)[-1], change)
    assert not canary.exists(), canary.read_text()
    # The trap is one: git itself, asked for the same, runs it.
    subprocess.run(["git", "diff", "HEAD"], cwd=folder, capture_output=True, check=False, timeout=60)
    assert canary.exists()


def test_a_missing_object_is_not_fetched(folder, trap):
    program, canary = trap
    change = switched(folder)
    tree = git(folder, "rev-parse", "HEAD^{tree}").strip()
    trapped(folder, program)
    (folder / ".git/objects" / tree[:2] / tree[2:]).unlink()
    history = Repository(folder)
    assert not history.made(history.moves(0.0)[-1], change)
    assert not canary.exists(), canary.read_text()


def test_other_working_trees_and_shallow_copies_are_read(folder, tmp_path):
    change = switched(folder)
    git(folder, "gc", "-q")
    git(folder, "worktree", "add", "-q", str(tmp_path / "side"), "side")
    git(tmp_path / "side", "checkout", "-q", "--detach", "HEAD~1")
    side = Repository(tmp_path / "side")
    assert side.made(side.moves(0.0)[-1], change)
    git(tmp_path, "clone", "-q", "--depth", "1", folder.as_uri(), "copy")
    assert Repository(tmp_path / "copy").root() == git(tmp_path / "copy", "rev-parse", "HEAD").strip()


def test_a_workspace_below_the_top(folder):
    first = (folder / "MEMORY.md").read_bytes()
    (folder / "memory/x.md").write_bytes(b"a\nb\n")
    commit(folder, "memory/x.md", "x")
    git(folder, "checkout", "-q", "-b", "none")
    git(folder, "rm", "-q", "memory/x.md")
    git(folder, "commit", "-q", "-m", "gone")
    git(folder, "checkout", "-q", "-")
    below = Repository(folder / "memory")
    assert below.made(below.moves(0.0)[-1], FileChange("x.md", None, b"a\nb\n"))
    for path in ("MEMORY.md", "../MEMORY.md"):
        assert not below.made(below.moves(0.0)[-1], FileChange(path, None, first))


def test_without_a_repository(tmp_path):
    history = Repository(workspace(tmp_path / "plain"))
    assert (history.top(), history.root(), history.moves(0.0)) == (None, "", [])
