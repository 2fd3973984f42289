"""A model on this machine runs in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled
from memory_tui.core.formatting import plural
from memory_tui.core.jsstring import well_formed
from memory_tui.providers.base import Identity, Vectors
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.http import GuardedProvider, in_rows
from memory_tui.providers.options import Kind, ProviderSettings, fingerprint

_TOPOLOGY = Path("/sys/devices/system/cpu")


def usual_threads() -> int:
    """The physical cores that this process may use, less one for everything else; at least 1."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = set()
    for cpu in allowed:
        # Two processors of one core have the same list of siblings.
        try:
            cores.add((_TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list").read_text("ascii").strip())
        except (OSError, ValueError):
            cores.add(str(cpu))
    return max(1, len(cores) - 1)


_LAST_WORDS = 4000
_GOODBYE_SECONDS = 0.2


class ModelProcess:
    """A process with a loaded model, asked by one thread at a time; `close` may come from any thread."""

    def __init__(self, model: Path, threads: int, kind: ModelKind) -> None:
        self._name, self._kind = model.name, kind
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._late = False
        # -P keeps the current folder, which may be anybody's, and the script's own off the module path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(kind.script), str(model), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def hello(self, seconds: float) -> int:
        """The length of the model's vectors, once it is loaded; call this first. Raises ProviderFailure."""
        with self._watched(seconds):
            return int(self._header()["dims"])

    def ask(self, texts: Sequence[str], kind: Kind, seconds: float) -> Vectors:
        """The vectors of `texts` as the model makes them, float32 (len(texts), dims). Raises ProviderFailure; after the
        states CRASHED and TIMEOUT the process is gone.
        """
        with self._watched(seconds):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"texts": texts, "kind": kind}).encode() + b"\n")
            self._process.stdin.flush()
            dims = int(self._header()["dims"])
            numbers = np.frombuffer(self._read(4 * dims * len(texts)), "<f4").astype(np.float32)
            return numbers.reshape(len(texts), dims)

    def close(self) -> None:
        """End the process; a question that waits for its answer ends with CRASHED."""
        self._process.kill()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            # It dies all the same; whoever closes does not wait for that, but somebody has to see it.
            threading.Thread(target=self._process.wait, name="embed-end", daemon=True).start()
        for file in (self._process.stdin, self._process.stdout, self._said):
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
        except (OSError, EOFError, ValueError):  # A closed pipe, and JSON that was cut short.
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
            raise ProviderFailure(
                Cause.BROKEN,
                f"The local model {self._name} cannot be used: {header['error']}.",
                self._kind.remedy,
            )
        return header

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _death(self, seconds: float) -> ProviderFailure:
        if self._late:
            return ProviderFailure(
                Cause.TIMEOUT,
                f"The local model {self._name} did not answer in {seconds:g} s.",
                "Choose a smaller model, or give it more threads: local.threads.",
            )
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return ProviderFailure(
            Cause.CRASHED,
            f"The process of the local model {self._name} ended ({how}){self._words()}",
            self._kind.remedy,
        )

    def _words(self) -> str:
        """The last line that the process said about itself."""
        try:
            size = self._said.seek(0, 2)
            self._said.seek(max(0, size - _LAST_WORDS))
            lines = self._said.read().decode("utf-8", "replace").split("\n")
        except (OSError, ValueError):  # Closed meanwhile.
            return "."
        telling = [line.strip() for line in lines if line.strip()]
        asserted = [line for line in telling if "ASSERT" in line or "rror" in line]
        return f": {(asserted or telling)[-1][:300]}" if telling else "."


class ModelKind(Struct, frozen=True):
    """What runs models of one kind: the `script` of the process, and what it needs to know of their files.

    `check` raises ProviderFailure for software or a file that is missing, `asked` is the model as it was named, `find`
    fetches it where that is necessary and gives its file, `fingerprint` tells files of one name apart. `texts` are
    asked for at once; `remedy` says what to do about one that does not work.
    """

    provider: str
    script: Path
    check: Callable[[ProviderSettings], None]
    asked: Callable[[ProviderSettings], str]
    find: Callable[[ProviderSettings, Stop], Path]
    fingerprint: Callable[[Path], str]
    remedy: str
    texts: int = 1


MAX_INPUT_BYTES = 2048
"""The documented limit of local models. Text of more tokens than a model takes is embedded in parts, never cut."""
_QUERY_SECONDS, _BATCH_SECONDS = 300.0, 600.0
_ATTEMPTS = 2
_OF_ONE_TEXT = frozenset({Cause.MALFORMED, Cause.BROKEN})
"""What is the fault of the text, when the model has made good vectors of others."""


class ModelProcessProvider(GuardedProvider):
    """A local model. The file is fetched where necessary and loaded at the first call of `embed` or `identity`."""

    host = ""

    def __init__(self, settings: ProviderSettings, kind: ModelKind) -> None:
        kind.check(settings)
        super().__init__(settings.clock.now, "ready, loads at first use")
        self._settings, self._kind = settings, kind
        self._source = kind.asked(settings)
        self._threads = settings.threads or usual_threads()
        self._starting = threading.Lock()
        self._worker: ModelProcess | None = None
        self._identity: Identity | None = None
        self._proven = False
        self._closed = Stop()
        self._turns = _Turns()

    @property
    def identity(self) -> Identity:
        """The space of the vectors; fetches and loads the model when it is first asked for, which can take minutes.

        Raises ProviderFailure, Cancelled.
        """
        if self._identity is None:
            self.breaker.check()
            self._loaded()
        assert self._identity is not None
        return self._identity

    @property
    def identity_known(self) -> bool:
        """Whether `identity` answers without loading the model."""
        return self._identity is not None

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest chunk."""
        return MAX_INPUT_BYTES

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Float32 array (len(texts), dims) of unit vectors, zeros for blank texts; a question goes before notes.

        Raises ProviderFailure, with the vectors that were made before it, and Cancelled.
        """
        self.breaker.check()
        started = time.perf_counter()
        limits = self._settings.batches
        seconds = limits.query_seconds or _QUERY_SECONDS if kind == "query" else limits.batch_seconds or _BATCH_SECONDS
        done: dict[int, Vectors] = {}
        refused = None
        try:
            dims = self.identity.dims
            wanted = [at for at, text in enumerate(texts) if text.strip()]
            for begin in range(0, len(wanted), self._kind.texts):
                part = wanted[begin : begin + self._kind.texts]
                with self._turns.mine(first=kind == "query"):
                    left = seconds - (time.perf_counter() - started)
                    made = self._some([well_formed(texts[at]) for at in part], kind, left)
                done.update((at, one) for at, one in zip(part, made, strict=True) if isinstance(one, np.ndarray))
                refused = next((one for one in made if isinstance(one, ProviderFailure)), refused)
            if refused is not None:
                raise refused
        except ProviderFailure as failure:
            failure.done = done
            raise
        self.worked(f"local model, {plural(self._threads, 'thread')}", started)
        return in_rows(done, len(texts), dims)

    def close(self) -> None:
        """End the process of the model, or the download, at once."""
        self._closed.set()
        worker = self._worker
        if worker is not None:
            worker.close()

    def _some(self, texts: Sequence[str], kind: Kind, seconds: float) -> list[Vectors | ProviderFailure]:
        """The unit vector of each of `texts`, or why there is none for it; a model that crashes is started again once.

        Texts that fail together are asked for one by one, once a vector has proven the model.
        """
        for attempt in range(_ATTEMPTS):
            worker = self._loaded()
            try:
                made: list[Vectors | ProviderFailure] = [
                    self._checked(one) for one in worker.ask(texts, kind, max(seconds, 0.001))
                ]
                return made
            except ProviderFailure as failure:
                self._ended(failure)
                if self._proven and failure.state in _OF_ONE_TEXT:
                    if len(texts) == 1:
                        return [ProviderFailure(Cause.NO_VECTOR, failure.message)]
                    return [one for text in texts for one in self._some([text], kind, seconds)]
                if failure.state is not Cause.CRASHED or attempt + 1 == _ATTEMPTS:
                    self.failed(failure)
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _checked(self, vector: Vectors) -> Vectors:
        length = float(np.linalg.norm(vector.astype(np.float64)))
        if not np.isfinite(length) or length == 0:
            raise ProviderFailure(
                Cause.MALFORMED,
                "The local model answered with a vector that has no direction.",
                self._kind.remedy,
            )
        self._proven = True
        return np.asarray(vector / length, np.float32)

    def _ended(self, failure: ProviderFailure) -> None:
        self._closed.check()
        if failure.state in (Cause.CRASHED, Cause.TIMEOUT):
            with self._starting:
                worker, self._worker = self._worker, None
            if worker is not None:
                worker.close()

    def _loaded(self) -> ModelProcess:
        """The running model. Raises ProviderFailure, Cancelled."""
        with self._starting:
            if self._worker is not None:
                return self._worker
            try:
                path = self._kind.find(self._settings, self._closed)
                self._closed.check()
                self._worker = worker = ModelProcess(path, self._threads, self._kind)
                dims = worker.hello(_QUERY_SECONDS)
            except ProviderFailure as failure:
                if self._worker is not None:
                    self._worker.close()
                    self._worker = None
                if self._closed.is_set():
                    raise Cancelled from None
                self.failed(failure)
                raise
            if self._closed.is_set():
                worker.close()
                raise Cancelled
            name = self._kind.provider
            key = fingerprint(provider=name, model=self._source, file=self._kind.fingerprint(path))
            self._identity = Identity(name, self._source, key, dims)
            return worker


class _Turns:
    """Who may ask the model: one at a time, and questions before notes."""

    def __init__(self) -> None:
        self._notes, self._next, self._asking = threading.Lock(), threading.Lock(), threading.Lock()

    @contextmanager
    def mine(self, first: bool) -> Iterator[None]:
        """Wait for the turn. Notes queue among themselves, so that one of them at most is ahead of a question."""
        if first:
            with self._next:
                self._asking.acquire()
        else:
            with self._notes, self._next:
                self._asking.acquire()
        try:
            yield
        finally:
            self._asking.release()
