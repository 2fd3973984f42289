"""The other end of the process that holds a local model: start it, ask it, notice its death, end it at once."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from memory_tui.embed.failure import ProviderFailure, State
from memory_tui.embed.provider import Vectors

SCRIPT = Path(__file__).with_name("llama_worker.py")
_LAST_WORDS = 4000
_GOODBYE_SECONDS = 0.2


class Worker:
    """A process with a loaded model, asked by one thread at a time; `close` may come from any thread."""

    def __init__(self, model: Path, threads: int, script: Path = SCRIPT) -> None:
        self._name = model.name
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._late = False
        # -P keeps the current folder, which may be anybody's, and the script's own off the module path.
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(script), str(model), str(threads)],
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

    def ask(self, text: str, seconds: float) -> Vectors:
        """The vector of `text` as the model makes it, float32 (dims,). Raises ProviderFailure; after the states
        CRASHED and TIMEOUT the process is gone.
        """
        with self._watched(seconds):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(text).encode() + b"\n")
            self._process.stdin.flush()
            return np.frombuffer(self._read(4 * int(self._header()["dims"])), "<f4").astype(np.float32)

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
                State.BROKEN,
                f"The local model {self._name} cannot be used: {header['error']}.",
                "Choose another GGUF file that makes embeddings.",
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
                State.TIMEOUT,
                f"The local model {self._name} did not answer in {seconds:g} s.",
                "Choose a smaller model, or give it more threads.",
            )
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return ProviderFailure(
            State.CRASHED, f"The process of the local model {self._name} ended ({how}){self._words()}"
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
