"""A batch service turns a file of texts into a file of vectors.

Each provider's row has the wire format; the index remembers the jobs. Every call blocks on the network, so calls belong
on a thread of their own; `close` ends them at once. A job goes on at the provider.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import tenacity
from msgspec import Struct, field

from memory_tui.core.cancel import Stop
from memory_tui.core.jsstring import well_formed
from memory_tui.providers.base import Malformed, Vectors, unit_vectors
from memory_tui.providers.batch_format import BatchFormat, JobStatus, ResultLine
from memory_tui.providers.failures import PASSING, RETRIED, Cause, ProviderFailure
from memory_tui.providers.http import Http
from memory_tui.providers.options import require_approval

if TYPE_CHECKING:
    from memory_tui.providers.options import ProviderSettings, Wire

MOST_LINES = 50_000
"""The most texts of a job, as OpenAI has it for embeddings."""
MOST_BYTES = 4 << 20
"""The most UTF-8 bytes of texts in a job, about a million tokens: two of them fit into what OpenAI lets a new account
have in the queue (3,000,000), and a job that fails costs little.
"""

ReadLine = Callable[[Mapping[str, object]], ResultLine]
T = TypeVar("T")

_FIRST_WAIT, _LONGEST_WAIT = 0.3, 2.0
_LONGEST_OBEYED = 60.0
_UPLOAD_SECONDS, _CALL_SECONDS = 600.0, 60.0
_LONGEST_PAUSE = 60.0
_PATIENCE = 1 / 20
UNSURE = PASSING - {Cause.RATE_LIMIT}
"""After these it is not known whether a job was made."""
_NO_LIST = frozenset({Cause.UNKNOWN_MODEL, Cause.REFUSED})


def pause(interval: float, waited: float) -> float:
    """Seconds until a job that has run for `waited` seconds is asked for again: a twentieth, from `interval` to 60."""
    return max(interval, min(waited * _PATIENCE, _LONGEST_PAUSE))


class BatchService:
    """The batch service of one provider. Only the first key is used: a job belongs to the account that made it."""

    def __init__(self, form: BatchFormat, wire: Wire, settings: ProviderSettings) -> None:
        self.settings = settings
        self.jobs = settings.jobs
        self.label = wire.label
        self.space = (wire.name, wire.model, wire.key)
        """Provider, model and key of the vectors' space."""
        self._format = form
        self._stop = Stop()
        self._http = Http(wire.label, wire.base_url, self._stop, wire.headers, wire.auth[:1])

    def upload(self, texts: Sequence[tuple[str, str]]) -> str:
        """Send a file of (id, text); returns what it is called there. Raises ProviderFailure, Cancelled."""
        require_approval(self.space[0], self._http.host, self.settings)
        content = b"\n".join(
            json.dumps(self._format.line(text_id, well_formed(text)), ensure_ascii=False).encode()
            for text_id, text in texts
        )
        file = self._format.upload(content, f"memory-tui-{hashlib.sha256(content).hexdigest()[:32]}")

        def once() -> str:
            answer = self._http.ask(
                "POST", file.path, _UPLOAD_SECONDS, file.content, {"Content-Type": file.content_type}
            )
            return self._read(self._format.read_file, answer)

        return self._run(once)

    def create(self, file_id: str) -> str:
        """Make a job of the file; returns what it is called there. Raises ProviderFailure, Cancelled.

        After an attempt that may have made one, the provider's list of jobs is asked before the next.
        """
        path, body = self._format.create(file_id)
        content = json.dumps(body, ensure_ascii=False).encode()
        unsure = False

        def once() -> str:
            nonlocal unsure
            if unsure and (made := self._made(file_id)):
                return made
            try:
                return self._read(self._format.read_job, self._http.ask("POST", path, _CALL_SECONDS, content))
            except ProviderFailure as failure:
                unsure = unsure or failure.state in UNSURE
                raise

        return self._run(once)

    def find(self, file_id: str) -> str:
        """The job that was made of the file, empty when there is none. Raises ProviderFailure, Cancelled."""
        return self._run(lambda: self._made(file_id))

    def status(self, job_id: str) -> JobStatus:
        """What a job is doing. Raises ProviderFailure, Cancelled."""

        def once() -> JobStatus:
            path = self._format.path(self._format.job, job_id)
            return self._read(self._format.status, self._http.ask("GET", path, _CALL_SECONDS))

        return self._run(once)

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end a job. Raises ProviderFailure, Cancelled."""
        self._run(lambda: self._http.ask("POST", self._format.path(self._format.cancel, job_id), _CALL_SECONDS, b"{}"))

    def fetch(self, status: JobStatus, dims: int) -> Iterator[ResultPart]:
        """The results of a job that has ended, piece by piece, from files without a name. Raises as the others do."""

        def files() -> Iterator[BinaryIO]:
            for name in status.files:
                with tempfile.TemporaryFile() as file:
                    self._save(name, file)
                    yield file

        for piece in results(files(), self._format.read_line, dims):
            piece.errors = {text_id: self._http.hidden(said) for text_id, said in piece.errors.items()}
            yield piece

    def discard(self, files: Sequence[str]) -> str:
        """Delete the files of a finished job, which hold notes; empty, or why some stay. Tries once."""
        try:
            for name in filter(None, files):
                self._http.ask("DELETE", self._format.path(self._format.file, name), _CALL_SECONDS)
        except ProviderFailure as failure:
            return f"files of the job stay at {self.label}: {failure.message}"
        return ""

    def wait(self, seconds: float) -> None:
        """Let time pass. Raises Cancelled once `close` is called."""
        self.settings.clock.pause(self._stop)(seconds)

    def close(self) -> None:
        """Give up every call and every wait, at once. Jobs go on."""
        self._stop.set()
        self._http.close()

    def _save(self, name: str, file: BinaryIO) -> None:
        def once() -> None:
            file.seek(0)
            file.truncate()
            try:
                self._http.save(self._format.path(self._format.content, name), file, _CALL_SECONDS)
            except OSError as error:
                why = error.strerror
            else:
                return
            raise ProviderFailure(
                Cause.BROKEN,
                f"The results of {self.label} cannot be put on disk: {why}.",
                "Free some space; they are fetched again at the next start.",
            )

        self._run(once)
        file.seek(0)

    def _made(self, file_id: str) -> str:
        try:
            return self._read(
                lambda answer: self._format.find(answer, file_id),
                self._http.ask("GET", self._format.recent, _CALL_SECONDS),
            )
        except ProviderFailure as failure:
            if failure.state in _NO_LIST:
                return ""
            raise

    def _read(self, how: Callable[[object], T], answer: object) -> T:
        try:
            return how(answer)
        except Malformed as error:
            why = str(error)
        raise ProviderFailure(Cause.MALFORMED, f"{self.label} ({self._http.host}) answered with {why}.")

    def _run(self, once: Callable[[], T]) -> T:
        """What `once` gives, asked again after a failure that may pass."""
        clock = self.settings.clock

        def wait(state: tenacity.RetryCallState) -> float:
            failure = state.outcome.exception() if state.outcome else None
            asked = failure.retry_after if isinstance(failure, ProviderFailure) else None
            usual = min(_FIRST_WAIT * 2 ** (state.attempt_number - 1), _LONGEST_WAIT) * (1 + 0.2 * clock.jitter())
            return float(max(usual, asked or 0))

        def may_pass(error: BaseException) -> bool:
            return (
                isinstance(error, ProviderFailure)
                and error.state in RETRIED
                and (error.retry_after or 0) <= _LONGEST_OBEYED
            )

        attempts = tenacity.Retrying(
            sleep=clock.pause(self._stop),
            stop=tenacity.stop_after_attempt(self.jobs.attempts),
            wait=wait,
            retry=tenacity.retry_if_exception(may_pass),
            reraise=True,
        )

        result: T = attempts(once)
        return result


_PIECE = 256
_LONGEST = 4 << 20
"""A longer line is no vector."""


class ResultPart(Struct):
    """Some lines of a result file: unit vectors and errors by the text's id; `broken` lines say nothing at all."""

    vectors: dict[str, Vectors] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    broken: int = 0

    def __len__(self) -> int:
        return len(self.vectors) + len(self.errors) + self.broken


def results(files: Iterable[BinaryIO], read: ReadLine, dims: int) -> Iterator[ResultPart]:
    """What `files` say, a few hundred lines at a time. Of two lines about one text the first good one counts."""
    good: set[str] = set()
    for file in files:
        piece = ResultPart()
        for raw in _lines(file):
            _take(raw, read, dims, piece, good)
            if len(piece) >= _PIECE:
                yield piece
                piece = ResultPart()
        if len(piece):
            yield piece


def _take(raw: bytes, read: ReadLine, dims: int, piece: ResultPart, good: set[str]) -> None:
    try:
        line = read(_object(raw))
        if not line.id:
            raise Malformed("no id")
    except (ValueError, RecursionError):
        piece.broken += 1
        return
    if line.id in good:
        return
    if not line.error:
        try:
            piece.vectors[line.id] = unit_vectors([line.vector], 1, dims)[0]
        except Malformed as error:
            line = ResultLine(line.id, None, str(error))
    if line.error:
        piece.errors[line.id] = line.error
    else:
        good.add(line.id)
        piece.errors.pop(line.id, None)


def _object(raw: bytes) -> Mapping[str, object]:
    tree = json.loads(raw.decode("utf-8", "replace"))
    if not isinstance(tree, dict):
        raise Malformed("no object")
    return tree


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines that hold something; one that is far too long comes in pieces, none of which makes sense."""
    while raw := file.readline(_LONGEST):
        if raw.strip():
            yield raw
