"""What git knows of a note. It has commits, differences and old texts; git runs nothing that a repository names.

A repository may come with a workspace that somebody else packed, and its configuration names programs: filters, hooks,
differs, a monitor of files, a place to fetch missing objects from. So git never gets to see that configuration. It
works in a repository of our own that is made for the moment, without configuration, hooks and attributes, and only
borrows the objects of the other one; what HEAD and the index are is read and written here. A library would do as well,
but the pure ones walk long histories slowly, and they too read the configuration and run the filters that it names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import force_setattr

from memory_tui.core.errors import EditRefused
from memory_tui.patterns import compiled_later

_SECONDS = 20.0
_FORMAT = "%H%x00%at%x00%an%x00%s%x00"
_MOST = 32 * 1024 * 1024
_MOST_NAMES = 4 * 1024 * 1024
"""Bytes of the largest file of names (packed references, configuration) that is read."""
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--patch")
_HASH = compiled_later(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = compiled_later(
    r"refs/heads/(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\0-\x20\x7f~^:?*\[\\.][^\0-\x20\x7f~^:?*\[\\]*"
)
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


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

    def uncommitted(self, path: str) -> bool:
        """Whether the note on disk is another than that of the last commit; line ends alone do not count."""
        name = self._own(path)
        with self._borrowed() as git:
            known, now = git.committed(name), git.on_disk(name)
        return known != now and (known is None or now is None or known != now.replace(b"\r\n", b"\n"))

    def commit(self, paths: Iterable[str], message: str) -> Commit:
        """Commit these notes as they are on disk, removed ones too, and nothing else. Runs nothing of the repository.

        Raises GitFailed, for instance when nothing differs, or when the notes are stored through a filter, which would
        have to run.
        """
        names = [self._own(path) for path in paths]
        if not names or not message.strip():
            raise EditRefused("A commit needs notes and a message.", "Say what was changed.")
        with self._borrowed() as git:
            git.refuse_filters(names)
            return git.commit(names, message)

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

    def __call__(self, *arguments: str, data: bytes = b"", **environment: str) -> bytes:
        """What git says. Raises GitFailed."""
        try:
            done = subprocess.run(
                ["git", "--no-pager", "--literal-pathspecs", "--no-optional-locks", *arguments],
                cwd=self.folder,
                env=self._environment | environment,
                check=False,
                input=data,
                capture_output=True,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git cannot be run: {error}.", "Install git, or look at the journal instead.") from None
        if done.returncode or len(done.stdout) > _MOST:
            words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
            raise GitFailed(f"git {arguments[0]}: {words or done.returncode}.", "Look at the repository with git.")
        return done.stdout

    def committed(self, name: str) -> bytes | None:
        """The note as it is in the last commit, None when it is not."""
        if not self.head or not self("ls-tree", "-z", self.head, "--", self.name(name)):
            return None
        return self("cat-file", "blob", f"{self.head}:{self.name(name)}")

    def on_disk(self, name: str) -> bytes | None:
        """The note as it is, None when it is not there. Raises GitFailed for one that is reached through a link."""
        path = self.workspace / name
        if os.path.realpath(path) != os.path.join(os.path.realpath(self.workspace), name):  # noqa: PTH118
            raise GitFailed(f"{name} is reached through a symbolic link.", "Only regular files are committed.")
        return _bytes(path)

    # --- committing ------------------------------------------------------------------------------------------------

    def refuse_filters(self, names: Iterable[str]) -> None:
        """Raises GitFailed where attributes say that one of the notes is not stored as it is."""
        work, own = self.folder / "look", self.of.shared / "info" / "attributes"
        work.mkdir()
        copies = {own: self.folder / "info" / "attributes"} | {
            self.of.top / part / ".gitattributes": work / part / ".gitattributes"
            for name in names
            for part in Path(self.name(name)).parents
        }
        for theirs, copy in copies.items():
            text = _bytes(theirs)
            if text is not None:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(text)
        listed = b"\0".join(os.fsencode(self.name(name)) for name in names) + b"\0"
        found = self(
            "-c", "core.bare=false", "check-attr", "-z", "--stdin", "filter", "working-tree-encoding", data=listed,
            GIT_WORK_TREE=str(work),
        ).split(b"\0")  # fmt: skip
        for name, attribute, value in zip(found[0::3], found[1::3], found[2::3], strict=False):
            if value not in (b"unspecified", b"unset"):
                raise GitFailed(
                    f"{os.fsdecode(name)} is stored through {os.fsdecode(attribute)}={os.fsdecode(value)}, and no "
                    "program that a repository names is run from here.",
                    "Commit it with git itself.",
                )

    def commit(self, names: list[str], message: str) -> Commit:
        """Put the notes on top of HEAD, and into the index. Raises GitFailed."""
        busy = next((name for name in _UNDER_WAY if (self.of.own / name).exists()), "")
        if busy:
            raise GitFailed(f"The repository is in the middle of something ({busy}).", "Finish it with git.")
        index, reference = self.of.own / "index", self.of.shared / self.branch if self.branch else self.of.own / "HEAD"
        logs = [self.of.own / "logs" / "HEAD", *([self.of.shared / "logs" / self.branch] if self.branch else [])]
        for place in (index, reference, self.of.shared / "objects", *logs):
            self._refuse_links(place)
        author, address = self._who()
        entries = [self._entry(name) for name in names]
        trial = str(self.folder / "index")
        self("read-tree", *([self.head] if self.head else ["--empty"]), GIT_INDEX_FILE=trial)
        self("update-index", "-z", "--index-info", data=b"".join(entries), GIT_INDEX_FILE=trial)
        tree = self("write-tree", GIT_INDEX_FILE=trial).decode().strip()
        if self.head and self("rev-parse", f"{self.head}^{{tree}}").decode().strip() == tree:
            raise GitFailed("Nothing differs from the last commit.", "Change the note first.")
        whose = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", author), ("EMAIL", address))
        }
        parents = ["-p", self.head] if self.head else []
        made = self("commit-tree", *parents, tree, data=f"{message.strip()}\n".encode(), **whose).decode().strip()
        # The index says of these notes what the commit says, and of all others what it said.
        self("update-index", "-z", "--index-info", data=b"".join(entries), GIT_INDEX_FILE=str(index))
        self._advance(reference, made)
        line = f"{self.head or '0' * len(made)} {made} {author} <{address}> {int(time.time())} +0000\tcommit: "
        try:
            for log in logs:
                log.parent.mkdir(parents=True, exist_ok=True)
                with log.open("a", encoding="utf-8") as file:
                    file.write(f"{line}{message.strip().splitlines()[0]}\n")
        except OSError as error:
            raise GitFailed(
                f"Committed as {made[:10]}, but the log of the branch has no line of it: {error.strerror}.",
                "Look at the repository with git.",
            ) from None
        return next(iter(_commits(self("log", "--max-count=1", f"--format={_FORMAT}", made))))

    def _refuse_links(self, place: Path) -> None:
        """Raises GitFailed when `place` would be written outside the repository."""
        real = Path(os.path.realpath(place))
        if not any(real.is_relative_to(os.path.realpath(folder)) for folder in (self.of.own, self.of.shared)):
            raise GitFailed(f"{place.name} of the repository is a link that leads out of it.", "Look at it with git.")

    def _who(self) -> tuple[str, str]:
        """Name and address of the author, as git knows them: of this repository, else of the user."""
        # What is read from one file alone, without what it includes, is a value and nothing else.
        theirs = self.folder / "theirs"
        theirs.write_text(self._configuration(), "utf-8", "surrogateescape")
        found = []
        for key, variable in (("user.name", "GIT_AUTHOR_NAME"), ("user.email", "GIT_AUTHOR_EMAIL")):
            value = os.environ.get(variable) or self._value(key, "--file", str(theirs), "--no-includes")
            found.append(" ".join((value or self._value(key, "--global") or self._value(key, "--system")).split()))
        if not all(found):
            raise GitFailed("git does not know who you are.", "Set git config --global user.name and user.email.")
        return found[0], found[1]

    def _value(self, key: str, *where: str) -> str:
        usual = {name: value for name, value in os.environ.items() if name == "GIT_CONFIG_GLOBAL"}
        plain = {name: value for name, value in self._environment.items() if not name.startswith("GIT_CONFIG")}
        try:
            done = subprocess.run(
                ["git", "config", *where, "--get", key],
                cwd=self.folder,
                env=plain | usual,
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git cannot be run: {error}.", "Install git, or look at the journal instead.") from None
        return done.stdout.decode("utf-8", "replace").strip()

    def _entry(self, name: str) -> bytes:
        """A line for the index: the note as it is on disk, or that it is not there."""
        path, now = self.name(name), self.on_disk(name)
        if now is None:
            return b"0 " + b"0" * (len(self.head) or 40) + b"\t" + os.fsencode(path) + b"\0"
        known = self.committed(name)
        if known is not None and b"\r\n" not in known and b"\n" not in now.replace(b"\r\n", b""):
            # What is stored with LF and checked out with CRLF is stored with LF again.
            now = now.replace(b"\r\n", b"\n")
        blob = self("hash-object", "-w", "--no-filters", "--stdin", data=now).strip()
        mode = self("ls-tree", self.head, "--", path)[:6] if known is not None else b"100644"
        return mode + b" " + blob + b"\t" + os.fsencode(path) + b"\0"

    def _advance(self, reference: Path, made: str) -> None:
        """Let the branch, or a HEAD without one, be at the commit `made`. Raises GitFailed when it has moved."""
        lock = reference.with_name(f"{reference.name}.lock")
        try:
            reference.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise GitFailed(
                f"The branch cannot be locked: {error.strerror}.", "Is git at work? Try again when it is done."
            ) from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                if self.of.head() != (self.branch, self.head):
                    raise GitFailed("Another program committed meanwhile.", "Commit again.")
                file.write(f"{made}\n".encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            lock.replace(reference)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise


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
