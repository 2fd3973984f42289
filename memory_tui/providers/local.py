"""Embed by a model on this machine: a GGUF file (`local`) or an ONNX model (`onnx`), in a process of its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_tui.cancel import Stop
from memory_tui.errors import Cancelled
from memory_tui.formatting import install_extra, plural
from memory_tui.jsstring import well_formed
from memory_tui.providers.base import Identity, Kind, Provider, Vectors, fingerprint, in_rows
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import ProviderSettings
from memory_tui.providers.registry import ProviderRow

if TYPE_CHECKING:
    from memory_tui.providers.download import ModelSource

SCRIPT = Path(__file__).with_name("worker.py")
DEFAULT_MODEL = "hf:ggml-org/embeddinggemma-300m-qat-q8_0-GGUF/embeddinggemma-300m-qat-Q8_0.gguf"
LLAMA_CPP, ONNX_RUNTIME = "llama_cpp", "onnxruntime"
"""The packages that run GGUF files and ONNX models."""
_MAGIC = b"GGUF"
_END = 1 << 16
_MODELS = "model.onnx", "onnx/model.onnx"
_TOKENIZER = "tokenizer.json"
_SETTINGS = (
    "config.json",
    "tokenizer_config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
"""What says how token vectors of an ONNX model become one; read where it is there."""
_ENDS_OF_DATA = "_data", ".data"
"""How a file of weights beside an ONNX model is called."""
_NAME_ONE = "Set local.modelPath to a folder with model.onnx and tokenizer.json (help providers)."
_TOPOLOGY = Path("/sys/devices/system/cpu")
_GOODBYE_SECONDS, _QUERY_SECONDS, _BATCH_SECONDS = 0.2, 300.0, 600.0
_LAST_WORDS = 4000
_ATTEMPTS = 2
_OF_ONE_TEXT = frozenset({Cause.MALFORMED, Cause.BROKEN})
"""What is the fault of the text, when the model has made good vectors of others."""


# --- files -----------------------------------------------------------------------------------------------------------


def is_remote(source: str) -> bool:
    """Tell whether `source` names a file elsewhere: an `hf:` URI or a URL."""
    return source.startswith(("hf:", "http:", "https:"))


def _path(source: str) -> Path:
    return Path(os.path.expanduser(source))  # noqa: PTH111 - an unknown user is no error


def _is_file(path: Path) -> bool:
    """Tell whether there is a regular file: what is opened may not be a pipe that nobody writes to."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _no_file(message: str, step: str = "") -> ProviderFailure:
    return ProviderFailure(Cause.NO_FILE, message, step)


def ends_of(path: Path) -> str:
    """Return the SHA-256 of size and both ends of a file: enough to notice that another model has its name."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_END))
        size = file.seek(0, 2)
        file.seek(max(0, size - _END))
        digest.update(file.read(_END) + str(size).encode())
    return digest.hexdigest()


def gguf_model(settings: ProviderSettings) -> str:
    """Return the path, `hf:` URI or URL of the GGUF file."""
    return settings.model_path or DEFAULT_MODEL


def require_gguf(path: Path) -> Path:
    """Raise ProviderFailure unless there is a GGUF file at `path`."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise _no_file(f"The model file {path.name} cannot be read: {error.strerror}.") from error
    if magic != _MAGIC:
        raise _no_file(f"The model file {path.name} is not in GGUF format.")
    return path


def check_gguf(settings: ProviderSettings, on_disk: bool = False) -> None:
    """Raise ProviderFailure when there is no software for GGUF files, or no file at `local.modelPath`.

    What has to be fetched first is refused when it has to be `on_disk`.
    """
    source = gguf_model(settings)
    if on_disk and (not settings.model_path or is_remote(source)):
        raise _no_file(
            "local.modelPath names no file on this machine.",
            "Set it to a GGUF file, or choose the provider local to have one fetched.",
        )
    if find_spec(LLAMA_CPP) is None:
        raise ProviderFailure(Cause.NOT_INSTALLED, "Local models need llama-cpp-python, which is not installed.")
    if not is_remote(source):
        require_gguf(_path(source))


def gguf_sources(settings: ProviderSettings) -> tuple[ModelSource, ...]:
    """Return where the GGUF file is when it is named by an address. Raises ProviderFailure."""
    from memory_tui.providers import download

    source = gguf_model(settings)
    if not is_remote(source):
        raise _no_file("local.modelPath names nothing that could be fetched.")
    return (download.source_of(source, download.hub(settings))._replace(magic=_MAGIC),)


def onnx_model(settings: ProviderSettings) -> str:
    """Return the folder, file, `hf:` URI or URL that `local.modelPath` names; without it there is none."""
    # What the key stands for without a value is a GGUF file.
    return "" if settings.model_path == DEFAULT_MODEL else settings.model_path


def check_onnx(settings: ProviderSettings) -> None:
    """Raise ProviderFailure when onnxruntime or the model is missing; nothing is fetched for that."""
    if find_spec(ONNX_RUNTIME) is None:
        raise ProviderFailure(
            Cause.NOT_INSTALLED,
            "ONNX models need onnxruntime, which is not installed.",
            f"{install_extra('onnx')} (no compiler, no download of a model).",
        )
    find_onnx(settings)


def find_onnx(settings: ProviderSettings) -> Path:
    """Return the ONNX file of the model, which has its tokenizer beside or above it. Raises ProviderFailure."""
    source = onnx_model(settings)
    if not source:
        raise _no_file("local.modelPath names no ONNX model.", _NAME_ONE)
    if is_remote(source):
        model = _fetched(settings)
        if not _is_file(model):
            raise _no_file(
                f"The model {source} is not on this machine.",
                "See addresses, sizes and checksums: memory-tui provider --fetch. To fetch it: the same with --yes.",
            )
        return model
    path = _path(source)
    candidates = [path, *(path / name for name in _MODELS)]
    model = next((one for one in candidates if one.suffix == ".onnx" and _is_file(one)), Path())
    if not model.name:
        raise _no_file(f"{source!r} is no ONNX model: there is no {_MODELS[0]}.", _NAME_ONE)
    if not _is_file(_folder(model) / _TOKENIZER):
        raise _no_file(
            f"The model {model.name} has no {_TOKENIZER} beside it.",
            "Copy it from where the model came from; other forms of tokenizers are not read.",
        )
    return model


def _folder(model: Path) -> Path:
    here = model.parent
    return here if here.name != "onnx" or _is_file(here / _TOKENIZER) else here.parent


def onnx_fingerprint(model: Path) -> str:
    """Return the SHA-256 of what decides the vectors: both ends of the model and its weights, tokenizer, settings."""
    folder, digest = _folder(model), hashlib.sha256(ends_of(model).encode())
    for end in _ENDS_OF_DATA:
        if _is_file(weights := model.with_name(model.name + end)):
            digest.update(ends_of(weights).encode())
    for name in (_TOKENIZER, *_SETTINGS):
        if _is_file(path := folder / name):
            digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def onnx_sources(settings: ProviderSettings) -> tuple[ModelSource, ...]:
    """Return where the files of the model are, the model last: where that is there, all is. Raises ProviderFailure."""
    from memory_tui.providers import download

    text = onnx_model(settings)
    if not is_remote(text):
        raise _no_file("local.modelPath names nothing that could be fetched.", _NAME_ONE)
    model, folder = download.source_of(text, download.hub(settings)), _fetched(settings).parent.name
    base, _, file = model.url.rpartition("/")
    above = base.removesuffix("/onnx")
    return (
        *(download.ModelSource(f"{above}/{name}", f"{folder}/{name}", needed=False) for name in _SETTINGS),
        download.ModelSource(f"{above}/{_TOKENIZER}", f"{folder}/{_TOKENIZER}"),
        *(download.ModelSource(model.url + end, f"{folder}/{file}{end}", needed=False) for end in _ENDS_OF_DATA),
        download.ModelSource(model.url, f"{folder}/{file}", model.sha256),
    )


def _fetched(settings: ProviderSettings) -> Path:
    """Return where the model that was named by an address is kept. Raises ProviderFailure."""
    from memory_tui.providers import download

    text = onnx_model(settings)
    source = download.source_of(text, download.hub(settings))
    name = source.url.rpartition("/")[2]
    if not name.endswith(".onnx"):
        raise _no_file(f"{text} names no ONNX file.", "Write hf:user/repository/onnx/model.onnx, or a URL like it.")
    return download.cache_folder(settings) / source.name.removesuffix(".onnx") / name


# --- the process -----------------------------------------------------------------------------------------------------


def usual_threads() -> int:
    """Return the physical cores that this process may use, less one for everything else; at least 1."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = set()
    for cpu in allowed:
        # Two processors of one core have the same list of siblings.
        try:
            cores.add((_TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list").read_text("ascii").strip())
        except (OSError, ValueError):
            cores.add(str(cpu))
    return max(1, len(cores) - 1)


class ModelProcess:
    """A process with a loaded model, asked by one thread at a time; `close` may come from any thread."""

    def __init__(self, kind: str, model: Path, threads: int, remedy: str) -> None:
        self._name, self._remedy = model.name, remedy
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._late = False
        # -P keeps the current folder, which may be anybody's, and the script's own off the module path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT), kind, str(model), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
        )

    def hello(self, seconds: float) -> int:
        """Return the length of the model's vectors, once it is loaded; call this first. Raises ProviderFailure."""
        with self._watched(seconds):
            return int(self._header()["dims"])

    def ask(self, texts: Sequence[str], kind: Kind, seconds: float) -> Vectors:
        """Return the vectors of `texts` as the model makes them, float32 (len(texts), dims). Raises ProviderFailure;
        after the states CRASHED and TIMEOUT the process is gone.
        """
        import numpy as np

        with self._watched(seconds):
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps({"texts": texts, "kind": kind}).encode() + b"\n")
            self._process.stdin.flush()
            dims = int(self._header()["dims"])
            data = self._process.stdout.read(4 * dims * len(texts))
            return np.frombuffer(data, "<f4").astype(np.float32).reshape(len(texts), dims)

    def close(self) -> None:
        """End the process; a question that waits for its answer ends with CRASHED."""
        self._process.kill()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            # It dies all the same; whoever closes does not wait for that, but somebody has to see it.
            threading.Thread(target=self._process.wait, name="embed-end", daemon=True).start()
        for file in (self._process.stdin, self._process.stdout, self._words):
            with contextlib.suppress(BrokenPipeError):  # What was not sent any more.
                if file is not None:
                    file.close()

    @contextlib.contextmanager
    def _watched(self, seconds: float) -> Iterator[None]:
        """End the process when the work within takes longer. Raises ProviderFailure when it dies meanwhile."""
        watchdog = threading.Timer(seconds, self._give_up)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        except (OSError, EOFError, ValueError):  # A closed pipe, and an answer that was cut short.
            failure = self._death(seconds)
        else:
            return
        finally:
            watchdog.cancel()
        raise failure

    def _give_up(self) -> None:
        self._late = True
        self._process.kill()

    def _header(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        header: dict[str, Any] = json.loads(line)
        if "error" in header:
            message = f"The local model {self._name} cannot be used: {header['error']}."
            raise ProviderFailure(Cause.BROKEN, message, self._remedy)
        return header

    def _death(self, seconds: float) -> ProviderFailure:
        if self._late:
            return ProviderFailure(
                Cause.TIMEOUT,
                f"The local model {self._name} did not answer in {seconds:.3g} s.",
                "Choose a smaller model, or give it more threads: local.threads.",
            )
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        message = f"The process of the local model {self._name} ended ({how}){self._last_words()}"
        return ProviderFailure(Cause.CRASHED, message, self._remedy)

    def _last_words(self) -> str:
        try:
            size = self._words.seek(0, 2)
            self._words.seek(max(0, size - _LAST_WORDS))
            lines = self._words.read().decode("utf-8", "replace").split("\n")
        except (OSError, ValueError):  # Closed meanwhile.
            return "."
        telling = [line.strip() for line in lines if line.strip()]
        asserted = [line for line in telling if "ASSERT" in line or "rror" in line]
        return f": {(asserted or telling)[-1][:300]}" if telling else "."


# --- the providers ---------------------------------------------------------------------------------------------------


class LocalModel(Provider):
    """A GGUF file. It is fetched where necessary and loaded at the first call of `embed` or `identity`."""

    name = "local"
    texts = 1
    """The most texts in one request to the model: a question waits for no more of them."""
    advice = "Choose another GGUF file that makes embeddings."

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._source = self.check()
        self._threads = settings.threads or usual_threads()
        self._starting = threading.Lock()
        self._worker: ModelProcess | None = None
        self._identity: Identity | None = None
        self._proven = False
        self._closed = Stop()
        self._notes, self._next, self._turn = threading.Lock(), threading.Lock(), threading.Lock()

    def check(self) -> str:
        """Return the model as it was named. Raises ProviderFailure for software or a file that is missing."""
        check_gguf(self._settings)
        return gguf_model(self._settings)

    def find(self) -> Path:
        """Return the file of the model, fetched where it is named by an address. Raises ProviderFailure, Cancelled."""
        if not is_remote(self._source):
            return require_gguf(_path(self._source))
        from memory_tui.providers.download import fetch

        return require_gguf(fetch(gguf_sources(self._settings)[0], self._settings, self._closed))

    def fingerprint_of(self, model: Path) -> str:
        """Return what tells files of one name apart."""
        return ends_of(model)

    @property
    def identity(self) -> Identity:
        """The space of the vectors; fetches and loads the model when it is first asked for, which can take minutes.

        Raises ProviderFailure, Cancelled.
        """
        if self._identity is None:
            self._loaded()
        assert self._identity is not None
        return self._identity

    @property
    def identity_known(self) -> bool:
        """Whether `identity` answers without loading the model."""
        return self._identity is not None

    @property
    def max_input_bytes(self) -> int:
        """The documented limit of local models. Text of more tokens than a model takes is embedded in parts."""
        return 2048

    @property
    def detail(self) -> str:
        """How it works, in a few words."""
        return f"local model, {plural(self._threads, 'thread')}" if self._proven else "ready, loads at first use"

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return float32 (len(texts), dims) of unit vectors, zeros for blank texts; a question goes before notes.

        Raises ProviderFailure, with the vectors that were made before it, and Cancelled.
        """
        limits = self._settings.batches
        seconds = limits.query_seconds or _QUERY_SECONDS if kind == "query" else limits.batch_seconds or _BATCH_SECONDS
        ends = time.monotonic() + seconds
        done: dict[int, Vectors] = {}
        refused = None
        filled = [at for at, text in enumerate(texts) if text.strip()]
        try:
            dims = self.identity.dims
            for begin in range(0, len(filled), self.texts):
                part = filled[begin : begin + self.texts]
                with self._turn_of(kind):
                    results = self._some([well_formed(texts[at]) for at in part], kind, ends - time.monotonic())
                for at, result in zip(part, results, strict=True):
                    if isinstance(result, ProviderFailure):
                        refused = result
                    else:
                        done[at] = result
            if refused is not None:
                raise refused
        except ProviderFailure as failure:
            failure.done = done
            raise
        return in_rows(done, len(texts), dims)

    def close(self) -> None:
        """End the process of the model, or the download, at once."""
        self._closed.set()
        worker = self._worker
        if worker is not None:
            worker.close()

    @contextlib.contextmanager
    def _turn_of(self, kind: Kind) -> Iterator[None]:
        """Wait for the turn. Notes queue among themselves, so that one of them at most is ahead of a question."""
        with self._notes if kind == "document" else contextlib.nullcontext(), self._next:
            self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    def _some(self, texts: Sequence[str], kind: Kind, seconds: float) -> list[Vectors | ProviderFailure]:
        """Return the unit vector of each of `texts`, or why there is none; a model that crashes is started again once.

        Texts that fail together are asked for one by one, once a vector has proven the model.
        """
        for attempt in range(_ATTEMPTS):
            worker = self._loaded()
            try:
                return [self._checked(vector) for vector in worker.ask(texts, kind, max(seconds, 0.001))]
            except ProviderFailure as failure:
                self._closed.check()
                if failure.state in (Cause.CRASHED, Cause.TIMEOUT):
                    with self._starting:
                        self._worker = None
                    worker.close()
                if self._proven and failure.state in _OF_ONE_TEXT:
                    if len(texts) == 1:
                        return [ProviderFailure(Cause.NO_VECTOR, failure.message)]
                    return [one for text in texts for one in self._some([text], kind, seconds)]
                if failure.state is not Cause.CRASHED or attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _checked(self, vector: Vectors) -> Vectors:
        import numpy as np

        length = float(np.linalg.norm(vector.astype(np.float64)))
        if not np.isfinite(length) or length == 0:
            message = "The local model answered with a vector that has no direction."
            raise ProviderFailure(Cause.MALFORMED, message, self._remedy)
        self._proven = True
        return np.asarray(vector / length, np.float32)

    @property
    def _remedy(self) -> str:
        if not is_remote(self._source):
            return self.advice
        return f"It may have been cut short: memory-tui provider --fetch --yes fetches it again. {self.advice}"

    def _loaded(self) -> ModelProcess:
        """Return the running model. Raises ProviderFailure, Cancelled."""
        with self._starting:
            if self._worker is not None:
                return self._worker
            try:
                path = self.find()
                self._closed.check()
                self._worker = worker = ModelProcess(self.name, path, self._threads, self._remedy)
                dims = worker.hello(_QUERY_SECONDS)
            except ProviderFailure:
                if self._worker is not None:
                    self._worker.close()
                    self._worker = None
                if self._closed.is_set():
                    raise Cancelled from None
                raise
            if self._closed.is_set():
                worker.close()
                raise Cancelled
            key = fingerprint(provider=self.name, model=self._source, file=self.fingerprint_of(path))
            self._identity = Identity(self.name, self._source, key, dims)
            return worker


class OnnxModel(LocalModel):
    """An ONNX model of sentence-transformers' kind, which needs no compiler. It is fetched by a person alone."""

    name = "onnx"
    texts = 16
    advice = "Choose another ONNX model of sentence-transformers' kind, with its tokenizer.json."

    def check(self) -> str:
        """Return the model as it was named. Raises ProviderFailure for software or a file that is missing."""
        check_onnx(self._settings)
        return onnx_model(self._settings)

    def find(self) -> Path:
        """Return the file of the model. Raises ProviderFailure."""
        return find_onnx(self._settings)

    def fingerprint_of(self, model: Path) -> str:
        """Return what tells models of one name apart."""
        return onnx_fingerprint(model)


LOCAL = ProviderRow(
    "local",
    "a local model",
    make=LocalModel,
    model=DEFAULT_MODEL,
    auto=1,
    check=lambda settings: check_gguf(settings, on_disk=True),
    asked_model=gguf_model,
    files=gguf_sources,
    slow=True,
)
ONNX = ProviderRow(
    "onnx",
    "an ONNX model",
    make=OnnxModel,
    check=check_onnx,
    asked_model=onnx_model,
    files=onnx_sources,
    slow=True,
)
