"""Find the program QMD, check it, and run it within hard limits, in folders of one agent."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# ruff: noqa: PTH118
# Paths are strings: names may hold undecodable bytes.
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw
from msgspec import Struct

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.errors import MemoryTuiError, StateUnavailable
from memory_tui.formatting import plural
from memory_tui.openclaw.open_foreign import NotSeen, read_foreign
from memory_tui.sanitize import one_line
from memory_tui.state_db import Table
from memory_tui.workspace.roots import fits_pattern

Kind = Literal["program", "version", "approval", "timeout", "exit", "answer", "index", "models"]
MOST_OUTPUT = 200_000
"""Bytes of output after which a run is given up."""
INSTALL = "Install QMD, with Node 22 or newer: npm install --global @tobilu/qmd@2.8.3"
"""Under Node 20 npm installs 0.9.0, which cannot run there."""
RESET = "Make it anew: memory-tui qmd reset, then memory-tui qmd update."
_STATE = Table("qmd")
_PAUSE, _GOODBYE, _VERSION_SECONDS = 0.01, 5.0, 10.0
_running: set[subprocess.Popen[bytes]] = set()
"""What was started and has not been ended, for the end of this process."""


class QmdFailure(MemoryTuiError):
    """QMD cannot answer; `kind` says at which step it failed."""

    code = "qmd"

    def __init__(self, kind: Kind, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.kind = kind


class QmdFolder(Struct, frozen=True):
    """The folder of one agent's QMD, with its configuration and its index; `owned` where it is memory-tui's own."""

    folder: Path
    owned: bool

    @property
    def index(self) -> Path:
        """Return the path of QMD's database."""
        return self.folder / "xdg-cache" / "qmd" / "index.sqlite"

    @property
    def index_yml(self) -> Path:
        """Return the path of QMD's own configuration."""
        return self.folder / "xdg-config" / "index.yml"

    @property
    def models(self) -> Path:
        """Return the folder where QMD looks for its models."""
        return self.index.with_name("models")

    def environment(self) -> dict[str, str]:
        """Return what QMD runs in: its own folders, no colours, and nothing that moves its index."""
        variables = {name: text for name, text in os.environ.items() if name not in ("INDEX_PATH", "CI", "FORCE_COLOR")}
        config, cache = str(self.index_yml.parent), str(self.folder / "xdg-cache")
        return {
            **variables,
            "XDG_CONFIG_HOME": config,
            "QMD_CONFIG_DIR": config,
            "XDG_CACHE_HOME": cache,
            "NO_COLOR": "1",
        }

    def make(self) -> None:
        """Make the folders; the models that the user has already are shared. Raises QmdFailure."""
        try:
            for folder in (self.index_yml.parent, self.index.parent):
                durable.make_folder(folder)
            usual = Path.home() / ".cache" / "qmd" / "models"
            if usual.is_dir() and not os.path.lexists(self.models):
                durable.calls.symlink(usual, self.models)
        except OSError as error:
            raise QmdFailure(
                "index", f"{self.folder} cannot be made: {error.strerror}.", "Name another folder with --qmd-home."
            ) from error

    def remembered(self, name: str) -> dict[str, Any]:
        """Return what is kept about this QMD for every process under `name`; empty where nothing is."""
        with contextlib.suppress(StateUnavailable):  # Then each process finds it out by itself.
            value = _STATE.of(str(self.folder)).read().get(name)
            return value if isinstance(value, dict) else {}
        return {}

    def remember(self, name: str, value: object) -> None:
        """Keep `value` (JSON; None: nothing) for every process under `name`."""
        with contextlib.suppress(StateUnavailable):
            _STATE.of(str(self.folder)).put(name, value)


# --- finding -------------------------------------------------------------------------------------------------------


def find(command: str) -> tuple[str, ...]:
    """Return the words that start what `command` names: a name on PATH, a path, or `node …/qmd.js`. Raises QmdFailure.

    As OpenClaw does, of anything else but `node` only the first word counts.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    if len(words) > 1 and Path(words[0]).stem == "node":
        script = Path(words[1]).expanduser()
        if not script.is_file():
            raise QmdFailure("program", f"There is no file {script}.", INSTALL)
        return _on_path(words[0]), os.path.realpath(script)
    path = Path(_on_path(words[0] if words else "qmd")).resolve()
    for folder in (path.parent.parent, path.parent / "node_modules" / "@tobilu" / "qmd"):
        # The launcher forwards no signal, so a run that is given up would go on: what it starts is started directly.
        script = folder / "dist" / "cli" / "qmd.js"
        if script.is_file() and folder.name == "qmd":
            return _on_path("node"), str(script)
    return (_on_path("node"), str(path)) if path.suffix == ".js" else (str(path),)


def _on_path(name: str) -> str:
    path = shutil.which(os.path.expanduser(name))  # noqa: PTH111 - an unknown user is no error
    if path is None:
        raise QmdFailure("program", f"The program {name} is not there.", INSTALL)
    return path


def version(words: Sequence[str], place: QmdFolder, stop: Stop | None = None) -> str:
    """Return what the program says of itself, asked once for each file it starts. Raises QmdFailure, Cancelled."""
    try:
        stats = [(word, Path(word).stat()) for word in words]
    except OSError as error:
        raise QmdFailure("program", f"{error.filename} cannot be read: {error.strerror}.", INSTALL) from error
    stamp = [[word, status.st_mtime_ns, status.st_size] for word, status in stats]
    record = place.remembered("program")
    text = str(record.get("version", "")) if record.get("files") == stamp else ""
    if not text:
        text = finished(run(words, ["--version"], place.environment(), Path("/"), _VERSION_SECONDS, stop), "--version")
        text = text.strip()[:80]
        place.remember("program", {"files": stamp, "version": text})
    number = re.search(r"qmd\s+v?(\d+)\.\d+\.\d+", text, re.IGNORECASE)
    if number is None:
        raise QmdFailure("version", f"{shlex.join(words)} says {one_line(text, 60)!r}, which is no QMD.", INSTALL)
    if number[1] != "2":
        raise QmdFailure("version", f"{number[0]} is not supported: its commands and index differ.", INSTALL)
    return text


# --- running -------------------------------------------------------------------------------------------------------


class Output(Struct, frozen=True):
    """What a run printed, and its exit status."""

    stdout: str
    stderr: str
    code: int


def run(
    words: Sequence[str], args: Sequence[str], environment: Mapping[str, str], folder: Path, seconds: float,
    stop: Stop | None = None,
) -> Output:  # fmt: skip
    """Run a program to its end, at most `seconds`, in a session of its own that ends as a whole.

    Raises QmdFailure (program, timeout, answer when it prints too much), and Cancelled when stopped.
    """
    stop, end = stop or Stop(), time.monotonic() + seconds
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = _start([*words, *args], out, err, environment, folder)
        try:
            while process.poll() is None and time.monotonic() < end and not stop.wait(_PAUSE):
                if os.fstat(out.fileno()).st_size > MOST_OUTPUT:
                    break
            code = process.poll()
        finally:
            _end_group(process)
        stop.check()
        if os.fstat(out.fileno()).st_size > MOST_OUTPUT:
            raise QmdFailure("answer", f"QMD printed more than {plural(MOST_OUTPUT, 'character')}.", _DOCTOR)
        if code is None:
            raise QmdFailure(
                "timeout",
                f"QMD did not answer in {seconds:g} s.",
                "Give it more time (memory.qmd.limits.timeoutMs, memory.qmd.update), or leave the answers to builtin.",
            )
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(MOST_OUTPUT).decode("utf-8", "replace"))
    return Output(texts[0], texts[1], code)


def _start(
    words: Sequence[str], out: Any, err: Any, environment: Mapping[str, str], folder: Path  # noqa: ANN401 - files
) -> subprocess.Popen[bytes]:  # fmt: skip
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=folder, start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise QmdFailure("program", f"{words[0]} cannot be started: {reason}.", INSTALL) from error
    _running.add(process)
    return process


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with all that it started; nothing of it is left when this returns."""
    _running.discard(process)
    if sys.platform == "win32":
        process.kill()
    else:
        # The group outlives its leader where that started others.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # A process the system does not let go of is its matter.
        process.wait(_GOODBYE)


@atexit.register
def _end_all() -> None:
    for process in tuple(_running):
        _end_group(process)


_DOCTOR = "Run memory-tui doctor to see which step fails."
_NOISE = re.compile(r"^\s*(at |\^|node:|Node\.js v|\{|\}|$)|^\s*throw ")


def finished(output: Output, what: str) -> str:
    """Return what a run that ended well printed. Raises QmdFailure with the line of its errors that says most."""
    if not output.code:
        return output.stdout
    lines = [line.strip() for line in (output.stderr or output.stdout).splitlines() if not _NOISE.search(line)]
    telling = [line for line in lines if "rror" in line or "not found" in line]
    reason = one_line((telling or lines or [f"exit status {output.code}"])[0], 200).rstrip(".")
    reason = f"it was killed by signal {-output.code}" if output.code < 0 else reason
    broken = re.search("not a database|malformed|YAML|index.yml", output.stderr + output.stdout)
    raise QmdFailure("exit", f"QMD {what} failed: {reason}.", RESET if broken else _DOCTOR)


# --- models --------------------------------------------------------------------------------------------------------

MODELS = {
    "embed": "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf",
    "generate": "hf:tobil/qmd-query-expansion-1.7B-gguf/qmd-query-expansion-1.7B-q4_k_m.gguf",
    "rerank": "hf:ggml-org/Qwen3-Reranker-0.6B-Q8_0-GGUF/qwen3-reranker-0.6b-q8_0.gguf",
}
"""What QMD 2.8.3 uses where neither its configuration nor the environment names another."""


class QmdModel(Struct, frozen=True):
    """A model of QMD: its role, what names it, its file, and why QMD cannot load it."""

    role: str
    named: str
    file: str = ""
    problem: str = ""


def models(place: QmdFolder) -> dict[str, QmdModel]:
    """Return the models as QMD's configuration names them, else the environment. Raises QmdFailure.

    QMD would download a missing one, and delete one that is no GGUF.
    """
    try:
        text = place.index_yml.read_text("utf-8", "replace") if place.index_yml.exists() else ""
    except OSError as error:
        raise QmdFailure("models", f"{place.index_yml} cannot be read: {error.strerror}.", "Check it.") from error
    section = re.search(r"^models:[ \t]*\n((?:[ \t]+.*\n?)*)", f"{text}\n", re.MULTILINE)
    line = r"^[ \t]+(embed|generate|rerank):[ \t]*(['\"]?)(.+?)\2[ \t]*(?:#.*)?$"
    written = {item[1]: item[3] for item in re.finditer(line, section[1] if section else "", re.MULTILINE)}
    named = {role: written.get(role) or os.environ.get(f"QMD_{role.upper()}_MODEL") or MODELS[role] for role in MODELS}
    return {role: _model(role, name, place) for role, name in named.items()}


def _model(role: str, name: str, place: QmdFolder) -> QmdModel:
    path = Path(name).expanduser()
    if name.startswith("hf:"):
        user, file = name.removeprefix("hf:").partition("/")[0], name.rpartition("/")[2]
        # node-llama-cpp puts the user before the name of the file.
        candidates = [place.models / item for item in (f"hf_{user}_{file}", file)]
        path = next((item for item in candidates if item.is_file()), candidates[1])
        if not path.is_file():
            return QmdModel(role, name, problem=f"{file} is not in {place.models}")
    try:
        with path.open("rb") as opened:
            bad = opened.read(4) != b"GGUF"
    except OSError as error:
        return QmdModel(role, name, str(path), f"{path} cannot be read: {error.strerror}")
    problem = f"{path} is not in GGUF format, and QMD would delete it" if bad else ""
    return QmdModel(role, name, str(path), problem)


def require_models(place: QmdFolder, command: str, roles: Sequence[str] = ()) -> None:
    """Raise QmdFailure unless QMD can load all of `roles`; in any case where it would delete one."""
    for item in models(place).values():
        if item.problem and (item.role in roles or "would delete" in item.problem):
            raise QmdFailure(
                "models",
                f"QMD's {command} needs its {item.role} model: {item.problem}.",
                f"Run qmd pull, name another in {place.index_yml}, or set memory.qmd.searchMode to search.",
            )


# --- the index of QMD -------------------------------------------------------------------------------------------------

T = TypeVar("T")
UPDATE = "Run memory-tui qmd update."
_SKIPPED = frozenset({"node_modules", ".git", ".cache", "vendor", "dist", "build"})
"""Folders that QMD never enters; nor any that begins with a dot."""
_MOST_BLANK = 256


class WantedCollection(Struct, frozen=True):
    """A collection that QMD should have: its name, an absolute folder, the pattern of its files."""

    name: str
    path: str
    pattern: str
    source: str = "memory"


class Collection(Struct, frozen=True):
    """A collection of QMD, with the paths of its active documents below the folder."""

    name: str
    path: str
    pattern: str
    documents: frozenset[str]


class QmdIndex(Struct, frozen=True):
    """One state of QMD's index; `vectors` counts embedded chunks."""

    collections: Mapping[str, Collection]
    vectors: int = 0

    @property
    def documents(self) -> int:
        """Count the active documents of all collections."""
        return sum(len(item.documents) for item in self.collections.values())

    def serving(self, specs: WantedCollection) -> Collection | None:
        """Return the collection with the folder and pattern of `wanted`, which may have another name."""
        same = (specs.path, specs.pattern)
        return next((item for item in self.collections.values() if (item.path, item.pattern) == same), None)


def read(file: Path) -> QmdIndex:
    """Return the state of the index in `file`. Raises QmdFailure."""
    return _read(file, _index)


def _read(file: Path, read: Callable[[apsw.Connection], T]) -> T:
    try:
        return read_foreign(file, read)[0]
    except NotSeen as error:
        if error.state == "missing":
            raise QmdFailure("index", "QMD's index is empty or stale: it has not been made yet.", UPDATE) from None
        step = RESET if error.state == "damaged" else UPDATE
        raise QmdFailure("index", f"QMD's index cannot be read: {error.detail.rstrip('.')}.", step) from None
    except apsw.Error as error:
        raise QmdFailure("index", f"{file} is no index of QMD 2.x: {error}.", RESET) from None


def _index(connection: apsw.Connection) -> QmdIndex:
    documents: dict[str, list[str]] = {}
    for name, path in connection.execute("SELECT collection, path FROM documents WHERE active = 1"):
        documents.setdefault(str(name), []).append(str(path))
    rows = connection.execute("SELECT name, path, pattern FROM store_collections")
    collections = {
        str(name): Collection(str(name), str(path), str(pattern), frozenset(documents.get(str(name), ())))
        for name, path, pattern in rows
    }
    embeds = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'content_vectors'").fetchone()
    counted = connection.execute("SELECT count(*) FROM content_vectors").fetchone() if embeds else None
    return QmdIndex(collections, int(counted[0]) if counted else 0)


# --- the files on disk ---------------------------------------------------------------------------------------------


def files_of(folder: str, pattern: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files that QMD takes for a collection, by their path below `folder`; unreadable folders have none.

    Only a name in the list of a folder counts: on some file systems MEMORY.md opens memory.md too.
    """
    masks, deep = re.split(r",(?![^{]*\})", pattern), bool(re.search(r"[/*?\[{]", pattern))
    for base, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if deep and name not in _SKIPPED and not name.startswith(".")]
        prefix = os.path.relpath(base, folder).replace(os.sep, "/") + "/"
        for name in sorted(names):
            below, path = f"{prefix}{name}".removeprefix("./"), os.path.join(base, name)
            fits = below.endswith(".md") if pattern == "**/*.md" else fits_pattern(below, masks)
            if fits and not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield below, os.stat(path)  # noqa: PTH116


def _is_blank(path: str, size: int) -> bool:
    """Tell whether a file holds nothing but blanks, so that QMD leaves it out."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return size <= _MOST_BLANK and not file.read(_MOST_BLANK).strip()
    except OSError:
        # QMD reads it no better.
        return True


class Coverage(Struct, frozen=True):
    """How well the index covers the files of the wanted collections, seen without reading a file."""

    files: int
    documents: int
    missing: tuple[str, ...]
    ghosts: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def behind(self) -> tuple[str, ...]:
        """Return the files that are not in the index as they are on disk."""
        return self.missing + self.ghosts + self.changed

    @property
    def whole(self) -> bool:
        """Tell whether every file has a document, and no document is of a file that is gone."""
        return not self.missing and not self.ghosts

    def sentence(self) -> str:
        """Return what an empty answer of such an index means."""
        return (
            f"QMD's index is empty or stale: it holds {plural(self.documents, 'document')}, and "
            f"{plural(self.files, 'file')} belong{'s' if self.files == 1 else ''} to its collections."
        )


def coverage(index: QmdIndex, specs: Sequence[WantedCollection], updated: float) -> Coverage:
    """Return how `index`, last brought up to date at `updated` (epoch seconds), stands to the files of `wanted`."""
    files = documents = 0
    missing, ghosts, changed = [], [], []
    for item in specs:
        collection = index.serving(item)
        rows = collection.documents if collection is not None else frozenset()
        there = {
            below: status.st_mtime
            for below, status in files_of(item.path, item.pattern)
            if below in rows or not _is_blank(os.path.join(item.path, below), status.st_size)
        }
        files, documents = files + len(there), documents + len(rows)
        missing += [f"{item.name}/{path}" for path in sorted(there.keys() - rows)]
        ghosts += [f"{item.name}/{path}" for path in sorted(rows - there.keys())]
        changed += [f"{item.name}/{path}" for path in sorted(there.keys() & rows) if 0 < updated < there[path]]
    return Coverage(files, documents, tuple(missing), tuple(ghosts), tuple(changed))
