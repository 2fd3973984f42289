"""What git knows of a note: commits, differences and old texts. It runs nothing that a repository names.

A repository may come with a workspace that somebody else packed, and its configuration names programs: filters, hooks,
differs, a monitor of files, a place to fetch missing objects from. So where it lies and what HEAD is is asked of
`git rev-parse`, which runs none of them; everything else works in a repository of our own that is made for the moment,
without configuration, hooks and attributes, and only borrows the objects of the other one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import force_setattr

from memory_tui.errors import EditRefused
from memory_tui.secrets.finder import masked

_SECONDS = 20.0
_FORMAT = "%H%x00%at%x00%an%x00%s%x00"
_MOST = 32 * 1024 * 1024
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--patch")
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class GitFailed(EditRefused):
    """git is not there, or did not do what it was asked to; the message has its words."""

    code = "git"
    exit_status = 1


class Commit(Struct, frozen=True):
    """A commit: its full hash, `at` in epoch seconds (author's date), author and first line, secrets masked."""

    hash: str
    at: float
    author: str
    subject: str

    def __post_init__(self) -> None:
        force_setattr(self, "subject", masked(self.subject))


class History:
    """The repository that holds `workspace`; paths are those under which notes are stored."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    def top(self) -> Path | None:
        """Return the folder of the repository around the workspace, on its file system; None without one or git."""
        start = Path(os.path.realpath(self._workspace))
        try:
            for folder in (start, *start.parents) if shutil.which("git") else ():
                if folder.stat().st_dev != start.stat().st_dev:
                    return None
                if (folder / ".git").exists():
                    return folder
        except OSError:
            return None
        return None

    def log(self, path: str, limit: int = 100) -> tuple[Commit, ...]:
        """Return the commits that changed a note, newest first, through its renames; none without a repository."""
        name = self._name(path)
        if self.top() is None:
            return ()
        with self._borrowed() as git:
            if not git.head:
                return ()
            answer = git("log", f"--max-count={limit}", "--follow", f"--format={_FORMAT}", git.head, "--", name)
        fields = [field.lstrip("\n") for field in os.fsdecode(answer).split("\0")]
        rows = [fields[at : at + 4] for at in range(0, len(fields) - 3, 4)]
        return tuple(Commit(name, float(at), author, subject) for name, at, author, subject in rows)

    def diff(self, path: str, commit: str) -> str:
        """Return what a commit changed in a note; a unified diff. Raises GitFailed."""
        name = self._name(path)
        with self._borrowed() as git:
            return git("show", "--format=", *_PLAIN, _hash(commit), "--", name).decode("utf-8", "replace")

    def text(self, path: str, commit: str) -> bytes:
        """Return the bytes of a note as they were at a commit. Raises GitFailed when it was not there."""
        name = self._name(path)
        with self._borrowed() as git:
            return git("cat-file", "blob", f"{_hash(commit)}:{name}")

    def _name(self, path: str) -> str:
        """Return a note's name below the top of the repository, as git spells it. Raises EditRefused."""
        name = os.path.normpath(path)
        if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir or "\0" in name:  # noqa: PTH117, PTH206
            raise EditRefused(f"{path} is outside the workspace, so its repository is not asked.", "Name another note.")
        below = os.path.relpath(os.path.realpath(self._workspace), self.top() or self._workspace)
        return Path(os.path.normpath(Path(below) / name)).as_posix()

    @contextmanager
    def _borrowed(self) -> Iterator[_Borrowed]:
        top = self.top()
        if top is None:
            raise GitFailed("The notes are in no git repository.", "Run git init to make one.")
        about = ("rev-parse", "--git-path", "objects", "--git-path", "shallow", "--show-object-format", "HEAD")
        answer = _run(top, _environment(), "-c", "safe.directory=*", *about)
        lines = os.fsdecode(answer.stdout).split("\n")
        if len(lines) < 4:
            raise _failed("rev-parse", answer)
        objects, shallow, kind, head = lines[:4]
        with tempfile.TemporaryDirectory(prefix="memory-tui-git-") as place:
            folder = Path(place)
            for name in ("refs", "objects"):
                (folder / name).mkdir()
            (folder / "HEAD").write_text("ref: refs/heads/none\n")
            version = (
                "1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256" if kind == "sha256" else "0\n\tbare = true"
            )
            (folder / "config").write_text(f"[core]\n\tquotePath = false\n\trepositoryFormatVersion = {version}\n")
            # Where a copy is shallow, its oldest commits name parents that are not there.
            if (top / shallow).is_file():
                commits = (top / shallow).read_text("utf-8", "replace").splitlines()
                (folder / "shallow").write_text("".join(f"{line}\n" for line in commits if _HASH.fullmatch(line)))
            environment = _environment() | {"GIT_DIR": place, "GIT_OBJECT_DIRECTORY": os.path.realpath(top / objects)}
            yield _Borrowed(folder, environment, head if _HASH.fullmatch(head) else "")


class _Borrowed(Struct, frozen=True):
    """git at work in an empty repository, over the objects of another one, whose HEAD is `head`."""

    folder: Path
    environment: dict[str, str]
    head: str

    def __call__(self, *arguments: str) -> bytes:
        """Return what git says. Raises GitFailed."""
        answer = _run(self.folder, self.environment, *arguments)
        if answer.returncode or len(answer.stdout) > _MOST:
            raise _failed(arguments[0], answer)
        return answer.stdout


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _run(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "--no-pager", "--literal-pathspecs", "--no-optional-locks", *arguments],
            cwd=folder,
            env=environment,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git cannot be run: {error}.", "Install git, or look at the journal instead.") from None


def _failed(command: str, answer: subprocess.CompletedProcess[bytes]) -> GitFailed:
    words = (answer.stderr or answer.stdout).decode("utf-8", "replace").strip()
    return GitFailed(f"git {command}: {words or answer.returncode}.", "Look at the repository with git.")


def _hash(commit: str) -> str:
    """Return a commit's name that can be nothing else, an option for instance. Raises EditRefused."""
    if not commit or len(commit) > 64 or not all(letter in "0123456789abcdef" for letter in commit):
        raise EditRefused(f"{commit!r} is not the hash of a commit.", "Choose one from the list.")
    return commit
