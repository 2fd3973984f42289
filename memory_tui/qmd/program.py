"""The program QMD runs with hard limits. It is found and checked first."""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from memory_tui import durable
from memory_tui.core.cancel import Stop
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line
from memory_tui.qmd.folder import QmdFailure, QmdFolder

MOST_OUTPUT = 200_000
"""Characters of output after which a run is given up, as documented."""
_KEPT_ERRORS = 8_000
INSTALL = "npm install --global @tobilu/qmd@2.8.3"
_LEAST_NODE = 22
_SCRIPT = Path("dist", "cli", "qmd.js")
_PACKAGE = "@tobilu/qmd"
_VERSION = re.compile(r"qmd\s+v?(\d+)\.(\d+)\.(\d+)", re.IGNORECASE)
_NODE_VERSION = re.compile(r"v(\d+)\.")
_GOODBYE_SECONDS = 5.0
_VERSION_SECONDS = 10.0


class Output(Struct, frozen=True):
    """What a run printed, its exit status, and how long it took in milliseconds."""

    stdout: str
    stderr: str
    code: int
    ms: float


class Program(Struct, frozen=True):
    """The words that start QMD, checked; `version` is what it says of itself."""

    words: tuple[str, ...]
    version: str = ""

    @property
    def line(self) -> str:
        """The command line as a shell would take it."""
        return shlex.join(self.words)


# --- finding -------------------------------------------------------------------------------------------------------


def find(command: str) -> Program:
    """The program that `command` names: a name on PATH, a path, or `node …/qmd.js`. Raises QmdFailure."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    if not words:
        raise QmdFailure("program", "memory.qmd.command is empty.", "Leave it out, or name the program.")
    if Path(words[0]).name in ("node", "node.exe") and len(words) > 1:
        named = Path(words[1]).expanduser()
        if not named.is_file():
            raise QmdFailure("program", f"There is no file {named}.", f"Install QMD: {INSTALL}")
        return Program((_on_path(words[0]), os.path.realpath(named)))
    # As OpenClaw does, only the first word counts.
    path = Path(_on_path(words[0])).resolve()
    script = _script(path)
    if script is None:
        return Program((str(path),))
    # The launcher forwards no signal, so a run that is given up would go on: what it starts is started directly.
    return Program((_on_path("node"), str(script)))


def _on_path(name: str) -> str:
    found = shutil.which(os.path.expanduser(name))  # noqa: PTH111 - an unknown user is no error
    if found is None:
        step = f"Install Node {_LEAST_NODE} or newer." if name == "node" else f"Install QMD: {INSTALL}"
        raise QmdFailure("program", f"The program {name} is not there.", step)
    return found


def _script(path: Path) -> Path | None:
    """The script of QMD's package that `path` starts; None for another program."""
    if path.suffix == ".js":
        return path
    for folder in (path.parent, path.parent.parent, path.parent / "node_modules" / "@tobilu" / "qmd"):
        try:
            package = json.loads((folder / "package.json").read_text("utf-8"))
        except (OSError, ValueError):
            # Most folders above a program are no package.
            continue
        if isinstance(package, dict) and package.get("name") == _PACKAGE and (folder / _SCRIPT).is_file():
            return folder / _SCRIPT
    return None


def checked(program: Program, place: QmdFolder, stop: Stop | None = None) -> Program:
    """`program` with its version, asked once for each file it starts. Raises QmdFailure, Cancelled."""
    if not program.version:
        known = _remembered(program, place)
        program = Program(program.words, known or _asked(program, place, stop))
        if not known:
            _remember(program, place)
    major = _VERSION.search(program.version)
    if major is None:
        raise QmdFailure(
            "version", f"{program.line} says {one_line(program.version, 60)!r}, which is no QMD.", f"Install: {INSTALL}"
        )
    if major[1] != "2":
        raise QmdFailure(
            "version",
            f"QMD {'.'.join(major.groups())} is not supported: its commands and index differ from those of 2.x.",
            f"Install: {INSTALL} (with Node {_LEAST_NODE} or newer; under Node 20 npm installs 0.9.0)",
        )
    return program


def _asked(program: Program, place: QmdFolder, stop: Stop | None) -> str:
    environment = place.environment()
    if len(program.words) > 1:
        node = run((program.words[0],), ["--version"], environment, Path("/"), _VERSION_SECONDS, stop).stdout
        major = _NODE_VERSION.match(node.strip())
        if major is None or int(major[1]) < _LEAST_NODE:
            raise QmdFailure(
                "version",
                f"QMD needs Node {_LEAST_NODE} or newer, and {program.words[0]} is {one_line(node, 20) or 'none'}.",
                f"Install Node {_LEAST_NODE} or newer, and put it first in PATH.",
            )
    found = run(program.words, ["--version"], environment, Path("/"), _VERSION_SECONDS, stop)
    if found.code:
        raise QmdFailure(
            "version",
            f"{program.line} --version failed: {_last_line(found)}.",
            f"Install: {INSTALL} (under Node 20 npm installs 0.9.0, which cannot run there)",
        )
    return found.stdout.strip()[:80]


def _stamp(program: Program) -> list[list[object]]:
    """What changes when a file that starts is another one. Raises OSError."""
    stats = [(word, Path(word).stat()) for word in program.words]
    return [[word, status.st_mtime_ns, status.st_size] for word, status in stats]


def _remembered(program: Program, place: QmdFolder) -> str:
    try:
        known = json.loads((place.folder / "program.json").read_text("utf-8"))
        return str(known["version"]) if known["files"] == _stamp(program) else ""
    except (OSError, ValueError, KeyError, TypeError):
        # Then it is asked again.
        return ""


def _remember(program: Program, place: QmdFolder) -> None:
    with contextlib.suppress(OSError):  # It costs a tenth of a second each time then.
        durable.make_folder(place.folder)
        data = json.dumps({"files": _stamp(program), "version": program.version})
        durable.replace_file(place.folder / "program.json", data.encode())


# --- running -------------------------------------------------------------------------------------------------------


def run(
    words: Sequence[str],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    seconds: float,
    stop: Stop | None = None,
) -> Output:
    """Run a program to its end, at most `seconds`, in a session of its own that ends as a whole.

    Raises QmdFailure (program, timeout, answer when it prints too much), and Cancelled when stopped.
    """
    stop = stop or Stop()
    began = time.perf_counter()
    process = start(words, arguments, environment, folder)
    try:
        with stop.around(lambda: end_group(process)):
            out, err = _read(process, began + seconds)
            left = max(0.0, began + seconds - time.perf_counter())
            code = process.wait(left)
        stop.check()
    except (subprocess.TimeoutExpired, TimeoutError):
        stop.check()
        raise QmdFailure(
            "timeout",
            f"QMD did not answer in {seconds:g} s.",
            "Give it more time (memory.qmd.limits.timeoutMs, memory.qmd.update), or leave the answers to builtin.",
        ) from None
    finally:
        end_group(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    return Output(out, err, code, (time.perf_counter() - began) * 1000)


def start(
    words: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with both outputs piped. Raises QmdFailure."""
    try:
        process = subprocess.Popen(
            [*words, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise QmdFailure("program", f"{words[0]} cannot be started: {reason}.", f"Install QMD: {INSTALL}") from error
    with _guard:
        if not _running:
            atexit.register(_end_all)
        _running.add(process)
    return process


_guard = threading.Lock()
_running: set[subprocess.Popen[bytes]] = set()
"""What was started and has not been ended, for the end of this process."""


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with all that it started; nothing of it is left when this returns."""
    with _guard:
        _running.discard(process)
    if sys.platform == "win32":
        process.kill()
    else:
        # The group outlives its leader where that started others.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # A process the system does not let go of is its matter.
        process.wait(_GOODBYE_SECONDS)


def _end_all() -> None:
    """Kill everything that was started here and still runs."""
    for process in tuple(_running):
        end_group(process)


def _read(process: subprocess.Popen[bytes], end: float) -> tuple[str, str]:
    """Both outputs to their end. Raises TimeoutError, QmdFailure when there is too much."""
    assert process.stdout is not None
    assert process.stderr is not None
    found: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in found:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, end - time.perf_counter()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                pipe = process.stdout if key.fd == process.stdout.fileno() else process.stderr
                data = os.read(key.fd, 65_536)
                if not data:
                    selector.unregister(pipe)
                elif pipe is process.stderr:
                    found[pipe] = (found[pipe] + data)[-_KEPT_ERRORS:]
                else:
                    found[pipe] += data
                    if len(found[pipe]) > MOST_OUTPUT:
                        raise QmdFailure(
                            "answer",
                            f"QMD printed more than {plural(MOST_OUTPUT, 'character')}.",
                            "Run memory-tui qmd status to see what it searches.",
                        )
    return tuple(text.decode("utf-8", "replace") for text in found.values())  # type: ignore[return-value]


def finished(output: Output, what: str) -> Output:
    """`output` of a run that ended well. Raises QmdFailure with what it said otherwise."""
    if output.code:
        raise QmdFailure("exit", f"QMD {what} failed: {_last_line(output)}.", _remedy(output))
    return output


def _remedy(output: Output) -> str:
    said = output.stderr + output.stdout
    if "not a database" in said or "malformed" in said or "YAML" in said or "index.yml" in said:
        return "Make its index and its configuration anew: memory-tui qmd reset, then memory-tui qmd update."
    if "Collection not found" in said:
        return "Bring its collections up to date: memory-tui qmd update."
    return "Run memory-tui doctor to see which step fails."


_NOISE = re.compile(r"^\s*(at |\^|node:|Node\.js v|\{|\}|$)|^\s*throw ")


def _last_line(output: Output) -> str:
    """The line of its errors that says most, else the exit status."""
    lines = [line.strip() for line in (output.stderr or output.stdout).splitlines() if not _NOISE.search(line)]
    telling = [line for line in lines if "rror" in line or "not found" in line]
    if output.code < 0:
        return f"it was killed by signal {-output.code}"
    status = f"exit status {output.code}"
    return one_line((telling or lines or [status])[0], 200).rstrip(".")


_HOST = "127.0.0.1"
_READY_SECONDS = 20.0
_PAUSE_SECONDS = 0.05


class QmdServer:
    """One `qmd mcp --http` of this process; `close` ends it. Any thread may ask."""

    def __init__(self, program: Program, place: QmdFolder, folder: Path) -> None:
        self._program, self._place, self._folder = program, place, folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._ready = False
        self._closed = Stop()

    @property
    def ready(self) -> bool:
        """Whether it answers now; a search does not wait for its start."""
        return self._ready and self._process is not None and self._process.poll() is None

    def warm(self) -> None:
        """Start it in the background, where it does not run."""
        with self._lock:
            alive = self._process is not None and self._process.poll() is None
            if alive or self._closed.is_set():
                return
            self._ready = False
            self._port = _free_port()
            arguments = ["mcp", "--http", "--host", _HOST, "--port", str(self._port)]
            self._process = start(self._program.words, arguments, self._place.environment(), self._folder)
            process = self._process
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                threading.Thread(target=_drain, args=(pipe,), name="qmd-server-output", daemon=True).start()
        threading.Thread(target=self._wait, args=(process,), name="qmd-server", daemon=True).start()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _READY_SECONDS
        while time.monotonic() < end and process.poll() is None and not self._closed.wait(_PAUSE_SECONDS):
            try:
                status, _ = self._request("GET", "/health", None, 1.0)
            except OSError:
                # It is still starting.
                continue
            if status == http.client.OK:
                self._ready = process is self._process
                return

    def query(
        self, searches: Sequence[dict[str, str]], collections: Sequence[str], limit: int, seconds: float
    ) -> list[Any]:
        """The rows of an answer. Raises QmdFailure."""
        body = {"searches": list(searches), "collections": list(collections), "limit": limit, "rerank": False}
        try:
            status, text = self._request("POST", "/query", json.dumps(body).encode(), seconds)
        except TimeoutError:
            raise QmdFailure(
                "timeout", f"QMD's server did not answer in {seconds:g} s.", "Run memory-tui doctor."
            ) from None
        except (OSError, http.client.HTTPException) as error:
            self._ready = False
            raise QmdFailure("exit", f"QMD's server ended: {error}.", "It is started again.") from error
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if status != http.client.OK or not isinstance(found, dict) or not isinstance(found.get("results"), list):
            raise QmdFailure(
                "answer", f"QMD's server answered {status}: {one_line(text, 80)}.", "Run memory-tui doctor."
            )
        results: list[Any] = found["results"]
        return results

    def _request(self, method: str, path: str, body: bytes | None, seconds: float) -> tuple[int, str]:
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=seconds)
        try:
            connection.request(method, path, body, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read(4 * MOST_OUTPUT).decode("utf-8", "replace")
        finally:
            connection.close()

    def close(self) -> None:
        """End it, with all that it started."""
        self._closed.set()
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            end_group(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def _drain(pipe: IO[bytes]) -> None:
    """Read what nobody needs, so that the writer does not wait."""
    with pipe:
        while pipe.read(65_536):
            continue
