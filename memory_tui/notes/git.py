"""What git did to notes: which of its moves wrote them. It runs nothing that a repository names.

A repository may come with a workspace that somebody else packed, and its configuration names programs: filters, hooks,
differs, a monitor of files, a place to fetch missing objects from. Only commands that read commits and trees are used:
they run none of the first, and for the last no protocol is allowed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from memory_tui.errors import EditRefused
from memory_tui.notes.changes import FileChange
from memory_tui.secrets.finder import masked

_SECONDS = 20.0
_MOST = 32 * 1024 * 1024
"""How long git may take, and how many bytes it may answer."""
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""The environment in which git reads no settings but the repository's, asks nobody and fetches nothing."""
_MOST_MOVES = 1000
_MOVE = re.compile(r"(?P<old>[0-9a-f]+) (?P<new>[0-9a-f]+) .*> (?P<at>\d+) [+-]\d{4}\t(?P<what>.*)")


class GitFailed(EditRefused):
    """git is not there, or did not do what it was asked to; the message has its words."""

    code = "git"
    exit_status = 1


class Move(Struct, frozen=True):
    """A line of the reflog that may have changed files: when (epoch seconds), from which commit to which, by what.

    git writes the line when the files are written; `since` is when the first of them was, as far as that is known.
    """

    at: float
    old: str
    new: str
    what: str
    since: float


class History:
    """The repository that holds `workspace`; paths are those under which notes are stored."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self._trees: dict[str, dict[str, str]] = {}
        """Of each commit that was read: path from the top of the repository -> hash of the file."""

    def top(self) -> Path | None:
        """Return the folder of the repository around the workspace, on its file system; None without one or git."""
        with suppress(OSError):
            device = self._workspace.stat().st_dev
            for folder in (self._workspace, *self._workspace.parents) if shutil.which("git") else ():
                if folder.stat().st_dev != device:
                    break
                if (folder / ".git").exists():
                    return folder
        return None

    def root(self) -> str:
        """Return the first commit of the repository, of several the last that git lists. Raises GitFailed.

        Empty where there is no repository.
        """
        top = self.top()
        return "" if top is None else _git(top, "rev-list", "--max-parents=0", "HEAD").decode().split()[-1]

    def moves(self, since: float) -> list[Move]:
        """Return what moved HEAD after `since` and may have written files; a commit writes none. Raises GitFailed."""
        top = self.top()
        if top is None:
            return []
        where = os.fsdecode(_git(top, "rev-parse", "--git-path", "logs/HEAD")).strip()
        try:
            lines = (top / where).read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        rows = [row for line in lines[-_MOST_MOVES:] if (row := _MOVE.fullmatch(line))]
        moves = [Move(at := float(row["at"]), row["old"], row["new"], masked(row["what"]), since=at) for row in rows]
        return [move for move in moves if move.at >= since and not move.what.startswith("commit")]

    def made(self, move: Move, change: FileChange) -> bool:
        """Tell whether a move made a change of a note; what a reset overwrote is known to nobody."""
        try:
            fits = self._holds(move.new, change.path, change.after)
            return fits and (move.what.startswith("reset") or self._holds(move.old, change.path, change.before))
        except GitFailed:
            # A commit that is gone since made nothing that can be proved.
            return False

    def _holds(self, commit: str, path: str, data: bytes | None) -> bool:
        """Tell whether a commit has the note `path` with the bytes `data`, or lacks it where they are None.

        A reflog names no commit by zeros: then there is no note.
        """
        if not commit.strip("0"):
            return data is None
        top = self.top() or self._workspace
        if commit not in self._trees:
            # A row is mode, kind and hash, then a tab and the path.
            rows = os.fsdecode(_git(top, "ls-tree", "-r", "-z", "--full-tree", commit)).split("\0")
            pairs = (row.partition("\t") for row in rows if row)
            self._trees[commit] = {name: words.split()[-1] for words, _, name in pairs}
        name = Path(os.path.relpath(self._workspace / path, top)).as_posix()
        if data is None:
            return name not in self._trees[commit]
        # Git names a file by the hash of this head and its bytes.
        blob = b"blob %d\0" % len(data) + data
        digest = hashlib.sha1(blob, usedforsecurity=False) if len(commit) == 40 else hashlib.sha256(blob)
        return self._trees[commit].get(name) == digest.hexdigest()


def _git(folder: Path, *words: str) -> bytes:
    """Run git in `folder` and return what it prints. Raises GitFailed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            ["git", "--no-pager", "--no-optional-locks", "-c", "safe.directory=*", *words],
            cwd=folder,
            env=environment | _ALONE,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git cannot be run: {error}.", "Install git, or look at the journal instead.") from None
    if answer.returncode or len(answer.stdout) > _MOST:
        problem = answer.stderr.decode("utf-8", "replace").strip() or answer.returncode
        raise GitFailed(f"git {words[0]}: {problem}.", "Look at the repository with git.")
    return answer.stdout
