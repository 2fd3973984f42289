"""What git knows of a note. It has commits, differences and old texts; git runs nothing that a repository names.

A repository may come with a workspace that somebody else packed, and its configuration names programs: filters, hooks,
differs, a monitor of files, a place to fetch missing objects from. So git never gets to see that configuration. It
works in a repository of our own that is made for the moment, without configuration, hooks and attributes, and only
borrows the objects of the other one; what HEAD is is read here. A library would do as well,
but the pure ones walk long histories slowly, and they too read the configuration and run the filters that it names.
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

from msgspec import Struct, field
from msgspec.structs import force_setattr

from memory_tui.core.errors import EditRefused

_SECONDS = 20.0
_FORMAT = "%H%x00%at%x00%an%x00%s%x00"
_MOST = 32 * 1024 * 1024
_MOST_NAMES = 4 * 1024 * 1024
"""Bytes of the largest file of names (packed references, configuration) that is read."""
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--patch")
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(
    r"refs/heads/(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\0-\x20\x7f~^:?*\[\\.][^\0-\x20\x7f~^:?*\[\\]*"
)


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
        # Its patterns take ten milliseconds, which a first frame without commits need not wait for.
        from memory_tui.core.secret_finder import masked

        force_setattr(self, "subject", masked(self.subject))


class History:
    """The repository that holds `workspace`; paths are those under which notes are stored."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    def top(self) -> Path | None:
        """The folder of the repository, None when there is none or no git."""
        found = _find(self._workspace) if shutil.which("git") else None
        return None if found is None else found.top

    def log(self, path: str, limit: int = 100) -> tuple[Commit, ...]:
        """The commits that changed a note, newest first, through its renames; empty without a repository."""
        name = self._own(path)
        if self.top() is None:
            return ()
        with self._borrowed() as git:
            if not git.head:
                return ()
            found = git(
                "log", f"--max-count={limit}", "--follow", f"--format={_FORMAT}", git.head, "--", git.name(name)
            )
        return tuple(_commits(found))

    def diff(self, path: str, commit: str) -> str:
        """What a commit changed in a note; a unified diff. Raises GitFailed."""
        name = self._own(path)
        with self._borrowed() as git:
            return git("show", "--format=", *_PLAIN, _hash(commit), "--", git.name(name)).decode("utf-8", "replace")

    def text(self, path: str, commit: str) -> bytes:
        """The bytes of a note as they were at a commit. Raises GitFailed when it was not there."""
        name, commit = self._own(path), _hash(commit)
        with self._borrowed() as git:
            return git("cat-file", "blob", f"{commit}:{git.name(name)}")

    @contextmanager
    def _borrowed(self) -> Iterator[_Borrowed]:
        found = _find(self._workspace)
        if found is None:
            raise GitFailed("The notes are in no git repository.", "Run git init to make one.")
        with tempfile.TemporaryDirectory(prefix="memory-tui-git-") as folder:
            yield _Borrowed(found, Path(folder), self._workspace)

    def _own(self, path: str) -> str:
        """`path` as it is below the workspace, or refused."""
        name = os.path.normpath(path)
        if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir or "\0" in name:  # noqa: PTH117, PTH206
            raise EditRefused(f"{path} is outside the workspace, so its repository is not asked.", "Name another note.")
        return name


class _Repository(Struct, frozen=True):
    """A repository on disk: its folder of notes, what belongs to this working tree, and what all of them share."""

    top: Path
    own: Path
    shared: Path

    def head(self) -> tuple[str, str]:
        """Branch and commit that HEAD means, each empty where there is none. Raises GitFailed."""
        text = _line(self.own / "HEAD")
        if _HASH.fullmatch(text):
            return "", text
        branch = text.removeprefix("ref: ").strip()
        if not _BRANCH.fullmatch(branch):
            raise GitFailed("The HEAD of the repository names no branch.", "Look at it with git.")
        return branch, self._reference(branch)

    def _reference(self, branch: str) -> str:
        if (self.shared / "reftable").exists():
            raise GitFailed("The repository keeps its branches in a reftable, which is not read.", "Use git itself.")
        text = _line(self.shared / branch)
        if _HASH.fullmatch(text):
            return text
        for line in _text(self.shared / "packed-refs").splitlines():
            value, _, name = line.partition(" ")
            if name == branch and _HASH.fullmatch(value):
                return value
        return ""


class _Borrowed(Struct):
    """git at work in the empty repository `folder`, over the objects of `of`."""

    of: _Repository
    folder: Path
    workspace: Path
    branch: str = ""
    head: str = ""
    _environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.branch, self.head = self.of.head()
        for name in ("refs", "objects"):
            (self.folder / name).mkdir()
        (self.folder / "HEAD").write_text("ref: refs/heads/none\n")
        newer = len(self.head) == 64 or re.search(r"(?im)^\s*objectformat\s*=\s*sha256", self._configuration())
        self._settle("[extensions]\n\tobjectFormat = sha256\n" if newer else "")
        # Where a copy is shallow, its oldest commits name parents that are not there.
        shallow = [line for line in _text(self.of.shared / "shallow").splitlines() if _HASH.fullmatch(line)]
        if shallow:
            (self.folder / "shallow").write_text("".join(f"{line}\n" for line in shallow))
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
            "GIT_DIR": str(self.folder),
            "GIT_OBJECT_DIRECTORY": str(self.of.shared / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }

    def _configuration(self) -> str:
        return _text(self.of.shared / "config")

    def _settle(self, extensions: str, more: str = "") -> None:
        version = 1 if extensions else 0
        text = f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = true\n\tquotePath = false\n{more}{extensions}"
        (self.folder / "config").write_text(text, "utf-8")

    def name(self, name: str) -> str:
        """A note's name below the top of the repository, as git spells it."""
        below = os.path.relpath(os.path.realpath(self.workspace), os.path.realpath(self.of.top))
        return Path(os.path.normpath(Path(below) / name)).as_posix()

    def __call__(self, *arguments: str) -> bytes:
        """What git says. Raises GitFailed."""
        try:
            done = subprocess.run(
                ["git", "--no-pager", "--literal-pathspecs", "--no-optional-locks", *arguments],
                cwd=self.folder,
                env=self._environment,
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


def _find(workspace: Path) -> _Repository | None:
    """The repository around `workspace`, as git would find it, on its file system; None without one."""
    start = Path(os.path.realpath(workspace))
    try:
        device = start.stat().st_dev
        for folder in (start, *start.parents):
            if folder.stat().st_dev != device:
                return None
            mark = folder / ".git"
            own = mark if mark.is_dir() else folder / _line(mark).removeprefix("gitdir: ") if mark.is_file() else None
            if own is None or not (own / "HEAD").exists():
                continue
            other = _line(own / "commondir")
            return _Repository(folder, own, Path(os.path.normpath(own / other)) if other else own)
    except OSError:
        return None
    return None


def _bytes(path: Path, most: int = _MOST) -> bytes | None:
    """The bytes of a regular file, None when there is none of that name or it is too large."""
    try:
        if not path.is_file() or path.stat().st_size > most:
            return None
        return path.read_bytes()
    except OSError:
        return None


def _text(path: Path) -> str:
    return (_bytes(path, _MOST_NAMES) or b"").decode("utf-8", "surrogateescape")


def _line(path: Path) -> str:
    """The first line of a small file, empty when there is none."""
    return _text(path).split("\n", 1)[0].strip()


def _commits(found: bytes) -> Iterator[Commit]:
    fields = [field.lstrip("\n") for field in os.fsdecode(found).split("\0")]
    for at in range(0, len(fields) - 3, 4):
        yield Commit(fields[at], float(fields[at + 1]), fields[at + 2], fields[at + 3])


def _hash(commit: str) -> str:
    """A commit's name that can be nothing else, an option for instance. Raises EditRefused."""
    if not commit or len(commit) > 64 or not all(letter in "0123456789abcdef" for letter in commit):
        raise EditRefused(f"{commit!r} is not the hash of a commit.", "Choose one from the list.")
    return commit
