"""What git knows of a note, where the workspace is in a repository: its commits, its differences, its old texts.

git is run with arguments that no name can change, without hooks, pagers, external diffs and other programs that a
repository may name. Nothing is committed unless somebody asks.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memory_tui.errors import EditRefused
from memory_tui.text.secrets import masked

_SECONDS = 20.0
_FORMAT = "%H%x00%at%x00%an%x00%s%x00"
_SAFE = (
    "--no-pager",
    "--literal-pathspecs",
    "--no-optional-locks",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "diff.external=",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.quotePath=false",
)
_MOST = 32 * 1024 * 1024


class GitFailed(EditRefused):
    """git is not there, or did not do what it was asked to; the message has its words."""

    code = "git"
    exit_status = 1


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its full hash, `at` in epoch seconds (author's date), author and first line, secrets masked."""

    hash: str
    at: float
    author: str
    subject: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", masked(self.subject))


class History:
    """The repository that holds `workspace`; paths are those under which notes are stored."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    def top(self) -> Path | None:
        """The folder of the repository, None when there is none or no git."""
        try:
            found = self._git("rev-parse", "--show-toplevel")
        except GitFailed:
            return None
        return Path(os.fsdecode(found).rstrip("\n"))

    def log(self, path: str, limit: int = 100) -> tuple[Commit, ...]:
        """The commits that changed a note, newest first, through its renames; empty without a repository."""
        if self.top() is None:
            return ()
        try:
            found = self._git("log", f"--max-count={limit}", "--follow", f"--format={_FORMAT}", "--", self._own(path))
        except GitFailed as error:
            if "does not have any commits" in error.message:
                return ()
            raise
        fields = [field.lstrip("\n") for field in os.fsdecode(found).split("\0")]
        return tuple(
            Commit(fields[at], float(fields[at + 1]), fields[at + 2], fields[at + 3])
            for at in range(0, len(fields) - 3, 4)
        )

    def diff(self, path: str, commit: str = "") -> str:
        """What a commit changed in a note, or with none, what is not committed; a unified diff. Raises GitFailed."""
        plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--patch")
        found = (
            self._git("show", "--format=", *plain, _hash(commit), "--", self._own(path))
            if commit
            else self._git("diff", *plain, "HEAD", "--", self._own(path))
        )
        return found.decode("utf-8", "replace")

    def text(self, path: str, commit: str) -> bytes:
        """The bytes of a note as they were at a commit. Raises GitFailed when it was not there."""
        return self._git("show", "--no-textconv", f"{_hash(commit)}:./{self._own(path)}")

    def commit(self, paths: Iterable[str], message: str) -> Commit:
        """Commit these notes as they are on disk, removed ones too, and nothing else; no hook is run.

        Raises GitFailed, for instance when nothing differs.
        """
        names = [self._own(path) for path in paths]
        if not names or not message.strip():
            raise EditRefused("A commit needs notes and a message.", "Say what was changed.")
        known = [name for name in names if (self._workspace / name).exists() or self._tracked(name)]
        self._git("add", "--all", "--", *known)
        self._git("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--only", f"--message={message}", "--", *known)
        return self._newest()

    def _newest(self) -> Commit:
        found = os.fsdecode(self._git("log", "--max-count=1", f"--format={_FORMAT}")).split("\0")
        return Commit(found[0], float(found[1]), found[2], found[3])

    def _tracked(self, name: str) -> bool:
        return bool(self._git("ls-files", "-z", "--", name))

    def _own(self, path: str) -> str:
        """`path` as git is told it: below the workspace, or refused."""
        name = os.path.normpath(path)
        if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir or "\0" in name:  # noqa: PTH117, PTH206
            raise EditRefused(f"{path} is outside the workspace, so its repository is not asked.", "Name another note.")
        return name

    def _git(self, *arguments: str) -> bytes:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            done = subprocess.run(
                ["git", *_SAFE, *arguments],
                cwd=self._workspace,
                env=environment,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git cannot be run: {error}.", "Install git, or look at the journal instead.") from None
        if done.returncode or len(done.stdout) > _MOST:
            words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
            raise GitFailed(f"git {arguments[0]}: {words or done.returncode}.", "Look at the repository with git.")
        return done.stdout


def _hash(commit: str) -> str:
    """A commit's name that can be nothing else, an option for instance. Raises EditRefused."""
    if not commit or len(commit) > 64 or not all(letter in "0123456789abcdef" for letter in commit):
        raise EditRefused(f"{commit!r} is not the hash of a commit.", "Take one of the list.")
    return commit
