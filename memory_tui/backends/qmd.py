"""Ask QMD a question, once it is seen that QMD can answer it, and bring its index up to date.

The program runs in a folder of its own; its index is only read.
"""

# ruff: noqa: PTH118

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import apsw
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from memory_tui import durable, jsstring, locks
from memory_tui.approval import Approvals
from memory_tui.cancel import Stop
from memory_tui.config.places import expand
from memory_tui.config.settings import BY_PATH, QMD
from memory_tui.errors import IndexUnavailable, MemoryTuiError, PathRefused, StateUnavailable, Unreadable
from memory_tui.formatting import one_line, plural, safe
from memory_tui.openclaw.open_foreign import NotSeen, read_foreign
from memory_tui.plan import Plan
from memory_tui.state_db import Table
from memory_tui.workspace import notes
from memory_tui.workspace.notes import Document
from memory_tui.workspace.roots import fits_pattern
from memory_tui.workspace.scan import NoteFile

MOST_OUTPUT = 200_000
"""Bytes of output after which a run is given up."""
INSTALL = "Install QMD, with Node 22 or newer: npm install --global @tobilu/qmd@2.8.3"
"""Under Node 20 npm installs 0.9.0, which cannot run there."""
RESET = "Move the folder away that memory-tui qmd status names, then run memory-tui qmd update."
_STATE = Table("qmd")
_PAUSE, _GOODBYE, _VERSION_SECONDS = 0.01, 5.0, 10.0
_running: set[subprocess.Popen[bytes]] = set()
"""What was started and has not been ended, for the end of this process."""


class QmdFailure(MemoryTuiError):
    """QMD cannot answer."""

    code = "qmd"


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
        config = dict.fromkeys(("XDG_CONFIG_HOME", "QMD_CONFIG_DIR"), str(self.index_yml.parent))
        return {**variables, **config, "XDG_CACHE_HOME": str(self.folder / "xdg-cache"), "NO_COLOR": "1"}

    def make(self) -> None:
        """Make the folders; the models that the user has already are shared. Raises QmdFailure."""
        try:
            for folder in (self.index_yml.parent, self.index.parent):
                durable.make_folder(folder)
            usual = Path.home() / ".cache" / "qmd" / "models"
            if usual.is_dir() and not os.path.lexists(self.models):
                self.models.symlink_to(usual)
        except OSError as error:
            step = "Name another folder with --qmd-home."
            raise QmdFailure(f"{self.folder} cannot be made: {error.strerror}.", step) from error

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
    """Return the words of a command line that starts the program: `command` is a name on PATH, a path, or
    `node …/qmd.js`. Raises QmdFailure.

    As OpenClaw does, only `node` may have a second word, the script; of any other program the first word counts.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    if len(words) > 1 and Path(words[0]).stem == "node":
        script = Path(words[1]).expanduser()
        if not script.is_file():
            raise QmdFailure(f"There is no file {script}.", INSTALL)
        return _on_path(words[0]), os.path.realpath(script)
    path = Path(_on_path(words[0] if words else "qmd")).resolve()
    # Where npm puts the package: around the folder of the launcher, or beside it.
    for folder in (path.parent.parent, path.parent / "node_modules" / "@tobilu" / "qmd"):
        # The launcher passes no signal on, and QMD would go on when a run is given up: so QMD's script is started.
        script = folder / "dist" / "cli" / "qmd.js"
        if script.is_file() and folder.name == "qmd":
            return _on_path("node"), str(script)
    return (_on_path("node"), str(path)) if path.suffix == ".js" else (str(path),)


def _on_path(name: str) -> str:
    """Return the path of the program `name`. Raises QmdFailure where it is not there."""
    path = shutil.which(os.path.expanduser(name))  # noqa: PTH111 - an unknown user is no error
    if path is None:
        raise QmdFailure(f"The program {name} is not there.", INSTALL)
    return path


def version(words: Sequence[str], place: QmdFolder, stop: Stop | None = None) -> str:
    """Return what the program says of itself, asked once for each file it starts. Raises QmdFailure, Cancelled."""
    try:
        stats = [(word, Path(word).stat()) for word in words]
    except OSError as error:
        raise QmdFailure(f"{error.filename} cannot be read: {error.strerror}.", INSTALL) from error
    # Lists, because the record comes back from JSON, which has no tuples.
    stamp = [[word, status.st_mtime_ns, status.st_size] for word, status in stats]
    record = place.remembered("program")
    text = str(record.get("version", "")) if record.get("files") == stamp else ""
    if not text:
        output = run(words, ["--version"], place.environment(), Path("/"), _VERSION_SECONDS, stop)
        text = finished(output, "--version").strip()[:80]
        place.remember("program", {"files": stamp, "version": text})
    number = re.search(r"qmd\s+v?(\d+)\.\d+\.\d+", text, re.IGNORECASE)
    if number is None:
        raise QmdFailure(f"{shlex.join(words)} says {one_line(text, 60)!r}, which is no QMD.", INSTALL)
    if number[1] != "2":
        raise QmdFailure(f"{number[0]} is not supported: its commands and index differ.", INSTALL)
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
    """Run a program with `args` to its end, at most `seconds`; at the end nothing that it started is left.

    Raises QmdFailure where it cannot be started, takes too long or prints too much, and Cancelled when stopped.
    """
    stop = stop or Stop()
    end = time.monotonic() + seconds
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                [*words, *args],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise QmdFailure(f"{words[0]} cannot be started: {reason}.", INSTALL) from error
        _running.add(process)
        try:
            while process.poll() is None and time.monotonic() < end and not stop.wait(_PAUSE):
                if os.fstat(out.fileno()).st_size > MOST_OUTPUT:
                    break
            # Before the group is killed, which would be the status then; None where the program still runs.
            code = process.poll()
        finally:
            _end_group(process)
        stop.check()
        if os.fstat(out.fileno()).st_size > MOST_OUTPUT:
            raise QmdFailure(f"QMD printed more than {plural(MOST_OUTPUT, 'character')}.", _DOCTOR)
        if code is None:
            raise QmdFailure(
                f"QMD did not answer in {seconds:g} s.",
                "Give it more time (memory.qmd.limits.timeoutMs, memory.qmd.update), or leave the answers to builtin.",
            )
        out.seek(0)
        err.seek(0)
        stdout, stderr = (file.read(MOST_OUTPUT).decode("utf-8", "replace") for file in (out, err))
    return Output(stdout, stderr, code)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with all that it started; nothing of it is left when this returns."""
    _running.discard(process)
    if sys.platform == "win32":
        process.kill()
    else:
        # Also where the program itself has ended: others that it started may run on in its group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # A process the system does not let go of is its matter.
        process.wait(_GOODBYE)


@atexit.register
def _end_all() -> None:
    """End what this process started and has not ended yet."""
    for process in tuple(_running):
        _end_group(process)


_DOCTOR = "Run memory-tui doctor to see which step fails."
_NOISE = re.compile(r"^\s*(at |\^|node:|Node\.js v|\{|\}|$)|^\s*throw ")


def finished(output: Output, what: str) -> str:
    """Return what a run printed that ended well. Raises QmdFailure with the most telling line of its errors.

    `what` names the command for the sentence.
    """
    if not output.code:
        return output.stdout
    lines = [line.strip() for line in (output.stderr or output.stdout).splitlines() if not _NOISE.search(line)]
    # "rror" is in Error and error.
    errors = [line for line in lines if "rror" in line or "not found" in line]
    first_line = (errors or lines or [f"exit status {output.code}"])[0]
    reason = one_line(first_line, 200).rstrip(".")
    if output.code < 0:
        reason = f"it was killed by signal {-output.code}"
    is_broken = re.search("not a database|malformed|YAML|index.yml", output.stderr + output.stdout)
    raise QmdFailure(f"QMD {what} failed: {reason}.", RESET if is_broken else _DOCTOR)


# --- models --------------------------------------------------------------------------------------------------------

MODELS = {
    "embed": "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf",
    "generate": "hf:tobil/qmd-query-expansion-1.7B-gguf/qmd-query-expansion-1.7B-q4_k_m.gguf",
    "rerank": "hf:ggml-org/Qwen3-Reranker-0.6B-Q8_0-GGUF/qwen3-reranker-0.6b-q8_0.gguf",
}
"""What QMD 2.8.3 uses where neither its configuration nor the environment names another."""


def models(place: QmdFolder) -> dict[str, str]:
    """Return by role why QMD cannot load the model, empty where it can.

    QMD would download a model that is missing, and delete one that is no GGUF. Its configuration names the models, else
    the environment. Raises QmdFailure.
    """
    try:
        text = place.index_yml.read_text("utf-8", "replace") if place.index_yml.exists() else ""
    except OSError as error:
        raise QmdFailure(f"{place.index_yml} cannot be read: {error.strerror}.", "Check it.") from error
    # The lines below `models:` that are indented, without a parser of YAML.
    section = re.search(r"^models:[ \t]*\n((?:[ \t]+.*\n?)*)", f"{text}\n", re.MULTILINE)
    line = r"^[ \t]+(?P<role>embed|generate|rerank):[ \t]*(?P<quote>['\"]?)(?P<name>.+?)(?P=quote)[ \t]*(?:#.*)?$"
    lines = re.finditer(line, section[1] if section else "", re.MULTILINE)
    configured = {match["role"]: match["name"] for match in lines}
    usual = {role: os.environ.get(f"QMD_{role.upper()}_MODEL") or default for role, default in MODELS.items()}
    return {role: _model_problem(configured.get(role) or usual[role], place) for role in MODELS}


def _model_problem(name: str, place: QmdFolder) -> str:
    """Return why QMD cannot load the model `name`; empty where it can."""
    path = Path(name).expanduser()
    if name.startswith("hf:"):
        user = name.removeprefix("hf:").partition("/")[0]
        file = name.rpartition("/")[2]
        # node-llama-cpp puts the user before the name of the file.
        path = place.models / f"hf_{user}_{file}"
        path = path if path.is_file() else place.models / file
    try:
        with path.open("rb") as opened:
            is_gguf = opened.read(4) == b"GGUF"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return "" if is_gguf else f"{path} is not in GGUF format, and QMD would delete it"


def require_models(place: QmdFolder, command: str, roles: Sequence[str] = ()) -> None:
    """Raise QmdFailure unless QMD can load the models of `roles`, and also where it would delete any model.

    `command` is what needs them, for the sentence.
    """
    for role, problem in models(place).items():
        if problem and (role in roles or "would delete" in problem):
            step = f"Run qmd pull, name another in {place.index_yml}, or set memory.qmd.searchMode to search."
            raise QmdFailure(f"QMD's {command} needs its {role} model: {problem}.", step)


# --- the index of QMD -------------------------------------------------------------------------------------------------

UPDATE = "Run memory-tui qmd update."
_SKIPPED = frozenset({"node_modules", ".git", ".cache", "vendor", "dist", "build"})
"""Folders that QMD never enters; nor any that begins with a dot."""
_MOST_BLANK = 256
_EVERY_NOTE = "**/*.md"


class Collection(Struct, frozen=True):
    """A collection that QMD has, or should have: an absolute folder, the pattern of its files, and the paths of its
    active documents below the folder.
    """

    name: str
    path: str
    pattern: str
    documents: frozenset[str] = frozenset()


class QmdIndex(Struct, frozen=True):
    """One state of QMD's index; `vectors` counts embedded chunks."""

    collections: Mapping[str, Collection]
    vectors: int = 0

    @property
    def documents(self) -> int:
        """Count the active documents of all collections."""
        return sum(len(collection.documents) for collection in self.collections.values())

    def serving(self, spec: Collection) -> Collection | None:
        """Return the collection with the folder and pattern of `spec`, which may have another name; None without."""
        place = (spec.path, spec.pattern)
        return next((item for item in self.collections.values() if (item.path, item.pattern) == place), None)


def read(file: Path) -> QmdIndex:
    """Return the state of the index in `file`. Raises QmdFailure."""
    try:
        return read_foreign(file, _index)
    except NotSeen as error:
        if error.state == "missing":
            raise QmdFailure("QMD's index is empty or stale: it has not been made yet.", UPDATE) from None
        step = RESET if error.state == "damaged" else UPDATE
        raise QmdFailure(f"QMD's index cannot be read: {error.detail.rstrip('.')}.", step) from None
    except apsw.Error as error:
        raise QmdFailure(f"{file} is no index of QMD 2.x: {error}.", RESET) from None


def _index(connection: apsw.Connection) -> QmdIndex:
    """Return what QMD's database holds."""
    documents: dict[str, list[str]] = {}
    for name, path in connection.execute("SELECT collection, path FROM documents WHERE active = 1"):
        documents.setdefault(str(name), []).append(str(path))
    rows = connection.execute("SELECT name, path, pattern FROM store_collections")
    collections = {
        str(name): Collection(str(name), str(path), str(pattern), documents=frozenset(documents.get(str(name), ())))
        for name, path, pattern in rows
    }
    has_vectors = connection.table_exists(None, "content_vectors")
    vectors: Any = connection.execute("SELECT count(*) FROM content_vectors").get if has_vectors else 0
    return QmdIndex(collections, vectors)


# --- the files on disk ---------------------------------------------------------------------------------------------


def files_of(folder: str, pattern: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each file that QMD takes for a collection: its path below `folder`, and its stat.

    Folders that cannot be read have no files. Only a name in the list of a folder counts: on some file systems
    MEMORY.md opens memory.md too.
    """
    # Commas part the masks, but not those inside braces: a comma that a `}` follows before any `{`.
    masks = re.split(r",(?![^{]*\})", pattern)
    # A plain name is a file of `folder` itself.
    is_deep = re.search(r"[/*?\[{]", pattern) is not None
    for base, folders, names in os.walk(folder):
        # In place, because `os.walk` enters the folders that stay in its own list.
        folders[:] = [name for name in folders if is_deep and name not in _SKIPPED and not name.startswith(".")]
        prefix = os.path.relpath(base, folder).replace(os.sep, "/") + "/"
        for name in sorted(names):
            below = f"{prefix}{name}".removeprefix("./")
            path = os.path.join(base, name)
            fits = below.endswith(".md") if pattern == _EVERY_NOTE else fits_pattern(below, masks)
            if fits and not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield below, os.stat(path)  # noqa: PTH116


def _is_blank(path: str, size: int) -> bool:
    """Tell whether a file holds nothing but blanks, so that QMD leaves it out."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return size <= _MOST_BLANK and not file.read(_MOST_BLANK).strip()
    except OSError:
        # QMD cannot read it either, and leaves it out.
        return True


class Coverage(Struct, frozen=True):
    """How well the index covers the files of the wanted collections, as far as names and times tell.

    `lacking` counts files that the index has not, and documents whose file is gone; `changed` counts newer files.
    """

    files: int = 0
    documents: int = 0
    lacking: int = 0
    changed: int = 0

    @property
    def behind(self) -> int:
        """Return how many files are not in the index as they are on disk."""
        return self.lacking + self.changed

    def sentence(self) -> str:
        """Return what an empty answer of such an index means."""
        return (
            f"QMD's index is empty or stale: it holds {plural(self.documents, 'document')}, and "
            f"{plural(self.files, 'file')} belong{'s' if self.files == 1 else ''} to its collections."
        )


def coverage(index: QmdIndex, specs: Sequence[Collection], updated: float) -> Coverage:
    """Return how `index`, last brought up to date at `updated` (epoch seconds), stands to the files of `specs`."""
    files = documents = lacking = changed = 0
    for spec in specs:
        collection = index.serving(spec)
        indexed = collection.documents if collection is not None else frozenset()
        times = {
            below: status.st_mtime
            for below, status in files_of(spec.path, spec.pattern)
            if below in indexed or not _is_blank(os.path.join(spec.path, below), status.st_size)
        }
        files += len(times)
        documents += len(indexed)
        # On one side alone: files without a document, and documents without a file.
        lacking += len(times.keys() ^ indexed)
        # Without a time of the last update nobody can tell which files are newer.
        if updated > 0:
            changed += sum(times[path] > updated for path in times.keys() & indexed)
    return Coverage(files, documents, lacking, changed)


APPROVED_AS = "qmd"
"""What the approval to run QMD is saved under."""
_NEEDED = {"search": (), "vsearch": ("embed",), "query": ("embed", "generate", "rerank")}
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class QmdOptions(Struct, frozen=True):
    """What is configured below `memory.qmd`, by key; `named_by` is the file that names the program."""

    agent: str
    workspace: str
    named_by: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, choices: Plan) -> QmdOptions:
        """Return the options of what was chosen."""
        values = {path.removeprefix(QMD): choices.backend_value(path) for path in BY_PATH if path.startswith(QMD)}
        # Empty where the command line chose QMD, or nobody: then no file starts a program without an agreement.
        named_by = "" if choices.backend_origin in ("--backend", "default") else choices.backend_origin
        command = choices.config.entries.get(f"{QMD}command")
        if command is not None and f"{QMD}command" not in choices.backend_values:
            named_by = str(command.places[-1])
        return cls(choices.agent.id, os.path.realpath(choices.workspace), named_by, values)

    @property
    def mode(self) -> str:
        """Return how QMD searches: search, vsearch or query."""
        return str(self.values["searchMode"])

    def whole(self, name: str) -> int:
        """Return a number."""
        return int(self.values[name])

    def seconds(self, name: str) -> float:
        """Return a time that is configured in milliseconds."""
        return self.whole(name) / 1000

    def collections(self) -> tuple[Collection, ...]:
        """Return the collections that QMD should have, with the names that OpenClaw gives them."""
        wanted: list[Collection] = []
        if self.values["includeDefaultMemory"]:
            wanted = [
                Collection("memory-root", self.workspace, "MEMORY.md"),
                Collection("memory-alt", self.workspace, "memory.md"),
                Collection("memory-dir", os.path.join(self.workspace, "memory"), _EVERY_NOTE),
            ]
        paths = self.values["paths"]
        for number, item in enumerate(paths if isinstance(paths, Sequence) else (), 1):
            if isinstance(item, Mapping) and str(item.get("path") or "").strip():
                folder = os.path.normpath(os.path.join(self.workspace, expand(str(item["path"]))))
                name = str(item.get("name") or f"custom-{number}")
                wanted.append(Collection(name, folder, str(item.get("pattern") or _EVERY_NOTE)))
        by_name: dict[str, Collection] = {}
        for collection in wanted:
            base = name = re.sub(r"[^a-z0-9-]+", "-", f"{collection.name}-{self.agent}".lower()).strip("-")
            number = 1
            while name in by_name:
                number += 1
                name = f"{base}-{number}"
            by_name[name] = replace(collection, name=name)
        return tuple(by_name.values())


def denial(scope: Any, session_key: str) -> str:  # noqa: ANN401 - as configured
    """Return which rule of `memory.qmd.scope` keeps the chat of `session_key` from the notes; empty where none does.

    The first rule that fits decides; one that cannot be read fits every chat. A person without a session may ask.
    """
    key = session_key.strip().lower()
    if not key:
        return ""
    # agent:ID:CHANNEL:... without the agent.
    without_agent = re.sub(r"^agent:[^:]*:", "", key)
    channel, kind = _chat(without_agent)
    if not isinstance(scope, Mapping):
        # Nothing is configured.
        return "" if kind == "direct" else "The default, direct chats alone,"
    rules = scope.get("rules") or ()
    for number, rule in enumerate(rules if isinstance(rules, Sequence) else [rules], 1):
        rule = rule if isinstance(rule, Mapping) else {}
        match = rule["match"] if isinstance(rule.get("match"), Mapping) else {}
        prefix, raw_prefix = (str(match.get(name) or "").strip().lower() for name in ("keyPrefix", "rawKeyPrefix"))
        # A prefix may name the agent, too.
        prefixed = key if prefix.startswith("agent:") else without_agent
        # What a rule does not name fits every chat.
        if (
            str(match.get("channel") or channel).lower() == channel
            and str(match.get("chatType") or kind).lower().replace("dm", "direct") == kind
            and prefixed.startswith(prefix)
            and key.startswith(raw_prefix)
        ):
            return "" if rule.get("action") == "allow" else f"Rule {number}"
    return "" if (scope.get("default") or "allow") == "allow" else "The default"


def _chat(key: str) -> tuple[str, str]:
    """Return channel and kind of chat of a session key without its agent; both empty for a subagent's."""
    if key.startswith("subagent:"):
        return "", ""
    channel, _, rest = key.partition(":")
    kinds = {"group": "group", "channel": "channel", "direct": "direct", "dm": "direct"}
    kind = kinds.get(rest.partition(":")[0])
    if kind is None:
        # The word for it may stand further behind, as in telegram:default:group:1.
        kind = next((word for word in ("group", "channel") if f":{word}:" in f":{key}:"), "direct")
    return channel if rest else "", kind


# --- an answer -----------------------------------------------------------------------------------------------------


class QmdHit(Struct, frozen=True, rename="camel"):
    """One hit, number `rank` of QMD's answer; lines are 1-based and inclusive, clamped to the file as it is.

    `score` is QMD's own number, which is not comparable with any other; `path` is the stored path of the note, or
    `qmd/collection/path` outside the workspace.
    """

    rank: int
    path: str
    start_line: int
    end_line: int
    snippet: str
    score: float
    collection: str
    source: str = "memory"

    def as_dict(self) -> dict[str, Any]:
        """Return the documented shape of a hit, with its rank."""
        return {**to_builtins(self), "citation": f"{self.path}#L{self.start_line}-L{self.end_line}"}


class QmdRemark(Struct, frozen=True):
    """What a person should know of one answer: a kind for programs, a sentence."""

    kind: str
    sentence: str


class QmdAnswer(Struct, frozen=True):
    """One answer of QMD: `empty` says why there is no hit, `remarks` what else a person should know."""

    mode: str
    hits: tuple[QmdHit, ...] = ()
    behind: int = 0
    empty: QmdRemark | None = None
    remarks: tuple[QmdRemark, ...] = ()

    @property
    def claims(self) -> tuple[QmdRemark, ...]:
        """Return all remarks on the answer; first, where it is empty, the reason."""
        return (*((self.empty,) if self.empty is not None else ()), *self.remarks)


def rows_of(stdout: str) -> list[Any]:
    """Return the rows that QMD printed: from the first line on that begins with `[` and is JSON. Raises QmdFailure."""
    for begin in re.finditer(r"^\[", stdout, re.MULTILINE):
        try:
            rows, _ = json.JSONDecoder().raw_decode(stdout, begin.start())
        except (ValueError, RecursionError):
            # A line of noise may begin with a bracket as well.
            continue
        return list(rows)
    if "no results found" in stdout.lower():
        return []
    excerpt = one_line(stdout.strip(), 80) or "nothing"
    raise QmdFailure(f"QMD's answer cannot be read: it printed {excerpt!r}.", "Run memory-tui doctor.")


def _inside(folder: str, below: str) -> str:
    """Return the real path of the file at `below` in a folder; empty where a link or ".." leads out of the folder."""
    absolute = os.path.realpath(os.path.join(folder, below))
    root = os.path.realpath(folder)
    return absolute if absolute.startswith(root.rstrip(os.sep) + os.sep) else ""


def _hit(rank: int, row: Any, collections: Mapping[str, Collection], workspace: str) -> QmdHit:  # noqa: ANN401
    """Return the hit of a row that QMD printed, the number `rank` of its answer. Raises QmdFailure for an unsound row.

    A row is unsound without a score or text, of an unknown collection, or where its file is hidden, or lies outside the
    collection. It names its file as `qmd://COLLECTION/PATH`, the path below the collection's folder.
    """
    row = row if isinstance(row, Mapping) else {}
    file, score, snippet = row.get("file"), row.get("score"), row.get("snippet", row.get("body"))
    address = re.fullmatch(r"qmd://([^/?#]+)/([^?#]+)(?:\?[^#]*)?", file) if isinstance(file, str) else None
    name, below = (unquote(part) for part in address.groups()) if address else ("", "")
    collection = collections.get(name)
    # A row has a part of the text as `snippet`, or the whole of it as `body`.
    is_complete = isinstance(snippet, str) and isinstance(score, int | float) and math.isfinite(score)
    is_plain = not _HIDDEN.search(below) and {"", ".", ".."}.isdisjoint(below.split("/"))
    absolute = _inside(collection.path, below) if collection is not None and is_plain else ""
    if not is_complete or collection is None or not absolute:
        excerpt = one_line(json.dumps(row, default=str), 80)
        raise QmdFailure(f"QMD's answer cannot be used: row {rank} is {excerpt}.", "Run memory-tui doctor.")
    start, end, text = _lines(str(snippet), absolute)
    path = os.path.relpath(os.path.join(collection.path, below), workspace).replace(os.sep, "/")
    # Outside the workspace a path begins with `..`, which no stored path does.
    path = f"qmd/{name}/{below}" if path.startswith(os.pardir) else path
    return QmdHit(rank, path, start, end, text, score=float(score or 0), collection=name)


def _lines(snippet: str, absolute: str) -> tuple[int, int, str]:
    """Return the first and the last line of a snippet, and its text without the head `@@ -FIRST,COUNT @@`.

    The head tells the lines, which are clamped to the file as it is now; a snippet without one is of the whole file.
    """
    try:
        with open(absolute, "rb") as file:  # noqa: PTH123
            length = max(1, sum(1 for _ in file))
    except OSError:
        # QMD answers from a file that is gone; that its index is behind the files the answer tells anyway.
        length = 1
    head = re.match(r"@@ -(?P<first>\d{1,9})(?:,(?P<count>\d{1,9}))? @@[^\n]*(?:\n|\Z)", snippet)
    if head is None:
        return 1, length, snippet
    last = int(head["first"]) + int(head["count"] or 1) - 1
    start = min(max(1, int(head["first"])), length)
    return start, min(max(start, last), length), snippet[head.end() :]


def bounded(hits: Sequence[QmdHit], most: int, snippet: int, altogether: int) -> list[QmdHit]:
    """Return the hits that an agent gets: at most `most`, each cut to `snippet` UTF-16 units, all to `altogether`."""
    # `altogether` falls to what is left for the next hits. A hit of which nothing is left ends the list.
    chosen = []
    for hit in hits[:most]:
        text = jsstring.utf16_head(hit.snippet, min(snippet, altogether))
        if not text and hit.snippet:
            break
        chosen.append(replace(hit, snippet=text))
        altogether -= jsstring.utf16_len(text)
    return chosen


# --- asking --------------------------------------------------------------------------------------------------------


class Ready(Struct, frozen=True):
    """That QMD can be asked: the program, how its index stands to the files, the collections by name."""

    words: tuple[str, ...]
    coverage: Coverage
    collections: Mapping[str, Collection]


class QmdClient:
    """QMD of one plan. Every method may be called from any thread."""

    def __init__(self, choices: Plan, approvals: Approvals) -> None:
        self.options = QmdOptions.of(choices)
        index = choices.index.absolute()
        named = choices.options.qmd_home
        # Beside an index that a person named lie files of others, so that QMD's folder is called after the index there.
        beside = index.with_name(f"{index.name}.qmd") if choices.options.index else index.parent / "qmd"
        folder = Path(named).expanduser().absolute() if named else beside
        self.place = QmdFolder(folder, owned=not named)
        self.lock = folder / "upkeep"
        """The file beside which whoever updates the index has its lock."""
        self.specs = self.options.collections()
        """The collections that its index should have."""
        self._approvals = approvals

    @property
    def folder(self) -> Path:
        """Return where QMD is run: in the workspace, as OpenClaw does.

        A folder .qmd there, or above, would take the place of the index and of its configuration; then elsewhere.
        """
        workspace = Path(self.options.workspace)
        taken = any((folder / ".qmd").exists() for folder in (workspace, *workspace.parents))
        return self.place.folder if taken else workspace

    def words(self) -> tuple[str, ...]:
        """Return the words that start the program, which is not started. Raises QmdFailure."""
        return find(str(self.options.values["command"] or "qmd"))

    @property
    def unapproved(self) -> str:
        """Return a sentence that asks whether the program may be run; empty where a person named it, or agreed to it.

        Raises QmdFailure.
        """
        line = shlex.join(self.words())
        if not self.options.named_by or self._approvals.find(APPROVED_AS, line) is not None:
            return ""
        return f"{self.options.named_by} asks to run this program: {line}"

    def approve(self, how: str) -> str:
        """Save that the program may be started; returns its command line. Raises QmdFailure, ApprovalUnsaved."""
        line = shlex.join(self.words())
        self._approvals.approve(APPROVED_AS, line, how)
        return line

    def startable(self, stop: Stop | None = None) -> tuple[str, ...]:
        """Return the words of the program, approved and of a known version. Raises QmdFailure, Cancelled."""
        if question := self.unapproved:
            raise QmdFailure(f"{question}; you have not agreed.", "To agree: memory-tui qmd approve.")
        words = self.words()
        version(words, self.place, stop)
        # No roles: QMD may lack models, but whatever it runs, it would delete a file that is no model.
        require_models(self.place, "configuration")
        return words

    @property
    def updated(self) -> float:
        """Return when the index was last brought up to date, in epoch seconds; 0 for never."""
        return float(self.place.remembered("upkeep").get("updated", 0.0))

    def coverage(self) -> Coverage:
        """Return how well the index covers the files; of one that is not made yet, that it has none."""
        index = read(self.place.index) if self.place.index.exists() else QmdIndex({})
        return coverage(index, self.specs, self.updated)

    def ready(self, stop: Stop | None = None) -> Ready:
        """Return what can be known without asking, in milliseconds. Raises QmdFailure where QMD cannot be asked."""
        words = self.startable(stop)
        require_models(self.place, self.options.mode, _NEEDED[self.options.mode])
        index = read(self.place.index)
        covered = coverage(index, self.specs, self.updated)
        serving = [collection for collection in map(index.serving, self.specs) if collection is not None]
        if not serving or not covered.documents:
            raise QmdFailure(covered.sentence(), UPDATE)
        if self.options.mode != "search" and not index.vectors:
            raise QmdFailure("QMD's index has no vectors.", UPDATE)
        return Ready(words, covered, {collection.name: collection for collection in serving})

    def ask(self, query: str, most: int, stop: Stop | None = None) -> QmdAnswer:
        """Return QMD's answer of at most `most` hits. Raises QmdFailure, Cancelled."""
        options = self.options
        ready = self.ready(stop)
        limit = min(most, options.whole("limits.maxResults"))
        question = query.replace("\0", " ")
        # A leading dash would be an option, and QMD drops the options behind `--`.
        args = [options.mode, f" {question}" if question.startswith("-") else question]
        remarks = []
        if options.mode == "vsearch" and models(self.place)["generate"]:
            # vsearch has a model rewrite the question; a query whose kind (`vec:`) is told is searched as it stands.
            args = ["query", f"vec: {' '.join(question.split())}", "--no-rerank"]
            typed = "vsearch ran as query 'vec: …' --no-rerank, because QMD's generation model is not on disk."
            remarks.append(QmdRemark("typed", typed))
        args += ["--json", "-n", str(limit), *(word for name in ready.collections for word in ("-c", name))]
        seconds = options.seconds("limits.timeoutMs")
        output = run(ready.words, args, self.place.environment(), self.folder, seconds, stop)
        rows = rows_of(finished(output, args[0]))
        every_hit = [_hit(rank, row, ready.collections, options.workspace) for rank, row in enumerate(rows, 1)]
        if not every_hit and ready.coverage.lacking:
            raise QmdFailure(ready.coverage.sentence(), UPDATE)
        units, all_units = options.whole("limits.maxSnippetChars"), options.whole("limits.maxInjectedChars")
        hits = bounded(every_hit, limit, units, all_units)
        omitted = len(every_hit) - len(hits)
        if omitted:
            remarks.append(QmdRemark("left-out", f"{plural(omitted, 'hit')} left out by the bounds."))
        behind = ready.coverage.behind
        if behind:
            changed = f"{plural(behind, 'file')} changed since QMD's last update: memory-tui qmd update."
            remarks.append(QmdRemark("behind", changed))
        empty = None if every_hit else _EMPTY.get(options.mode, _NOTHING_NEAR)
        return QmdAnswer(options.mode, tuple(hits), behind, empty, remarks=tuple(remarks))

    def document(self, path: str) -> Document:
        """Return the file that a hit calls `qmd/collection/path`. Raises PathRefused, Unreadable."""
        name, _, below = path.removeprefix("qmd/").partition("/")
        # Only the collections that are configured now, although the index may have others.
        serving = map(read(self.place.index).serving, self.specs)
        by_name = {collection.name: collection for collection in serving if collection is not None}
        collection = by_name.get(name)
        if collection is None or below not in collection.documents:
            raise PathRefused(f"{path} is no document of QMD.", "Name it as memory_search does.")
        absolute = _inside(collection.path, below)
        if not absolute:
            raise PathRefused(f"{path} leads out of its collection.", "Only files inside a collection are read.")
        try:
            status = os.lstat(absolute)
        except OSError as error:
            raise Unreadable(f"{path} cannot be read: {error.strerror}.", UPDATE) from error
        return notes.read(NoteFile.of(path, absolute, status, os.path.realpath(collection.path)))


_EMPTY = {
    "search": QmdRemark("not-every-word", "No note holds every word of the question, which QMD's search requires.")
}
_NOTHING_NEAR = QmdRemark("nothing-near", "QMD found nothing near the question.")


# --- upkeep -----------------------------------------------------------------------------------------------------------


def update(client: QmdClient, stop: Stop, *, vectors: bool = True) -> dict[str, Any]:
    """Mend the collections, read the files anew, and make the vectors that the mode needs where `vectors` says so.

    Return documents, vectors, and what changed as sentences. Raises QmdFailure, Cancelled.
    """
    words = client.startable(stop)
    client.place.make()
    # The time before anything is read: a note that is saved meanwhile counts as changed.
    began = time.time()
    try:
        with locks.wait_for(client.lock, stop):
            changes = _mend(client, words, stop)
            _run(client, words, ["update"], "updateTimeoutMs", stop)
            if vectors and client.options.mode != "search":
                require_models(client.place, "embed", ("embed",))
                _run(client, words, ["embed"], "embedTimeoutMs", stop)
            client.place.remember("upkeep", {"updated": began})
    except IndexUnavailable as error:
        raise QmdFailure("Another memory-tui is bringing QMD up to date.", "Wait for it.") from error
    index = read(client.place.index)
    return {"documents": index.documents, "vectors": index.vectors, "changes": changes}


def _mend(client: QmdClient, words: tuple[str, ...], stop: Stop) -> list[str]:
    """Let QMD have the wanted collections, and return what changed, as sentences.

    In a folder of QMD that is not memory-tui's own, collections of other names are left alone.
    """
    index = read(client.place.index) if client.place.index.exists() else QmdIndex({})
    names = {spec.name for spec in client.specs}
    # A collection whose folder is gone is removed: QMD would go on to answer from it.
    specs = [spec for spec in client.specs if Path(spec.path).is_dir()]
    serving = {collection.name for collection in map(index.serving, specs) if collection is not None}
    changes = []
    for name in index.collections:
        if name not in serving and (client.place.owned or name in names):
            _run(client, words, ["collection", "remove", name], "commandTimeoutMs", stop)
            changes.append(f"collection {name} removed")
    for spec in specs:
        if index.serving(spec) is None:
            args = ["collection", "add", spec.path, "--name", spec.name, "--mask", spec.pattern]
            try:
                _run(client, words, args, "commandTimeoutMs", stop)
            except QmdFailure as failure:
                if "already exists" not in failure.message:
                    raise
                # QMD's configuration alone still has that name.
                _run(client, words, ["collection", "remove", spec.name], "commandTimeoutMs", stop)
                _run(client, words, args, "commandTimeoutMs", stop)
            changes.append(f"collection {spec.name} added: {spec.path}, {spec.pattern}")
    return changes


def _run(client: QmdClient, words: tuple[str, ...], args: list[str], limit: str, stop: Stop) -> None:
    """Run QMD with `args` for as long as the setting `limit` allows. Raises QmdFailure, Cancelled."""
    seconds = client.options.seconds(f"update.{limit}")
    finished(run(words, args, client.place.environment(), client.folder, seconds, stop), " ".join(args[:2]))


# --- in words --------------------------------------------------------------------------------------------------------


def qmd_answer(value: QmdAnswer) -> dict[str, Any]:
    """Return what `search --json` prints of an answer of QMD."""
    notices = [{"code": "qmd", "kind": item.kind, "message": item.sentence, "nextStep": ""} for item in value.remarks]
    return {
        "results": [hit.as_dict() for hit in value.hits],
        **dict.fromkeys(("backend", "provider", "model"), "qmd"),
        "mode": value.mode,
        "fallback": None,
        "empty": to_builtins(value.empty),
        "notices": notices,
    }


def qmd_lines(value: QmdAnswer) -> Iterator[str]:
    """Yield the hits by QMD's rank."""
    for hit in value.hits:
        yield f"#{hit.rank} {one_line(hit.as_dict()['citation'])}"
        yield safe(hit.snippet, keep_newlines=True).strip("\n")
        yield ""
    if value.empty is not None:
        yield f"No matches. {value.empty.sentence}"
