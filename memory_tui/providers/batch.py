"""Ask a batch service, which turns a file of texts into a file of vectors within hours, at a lower price.

The index remembers jobs and tries again (`memory_tui/index/batch_jobs.py`). A call blocks on the network; `close` ends
it at once, and jobs go on at the provider.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import Struct, field

from memory_tui.cancel import Stop
from memory_tui.jsstring import well_formed
from memory_tui.providers.base import Malformed, Vectors, unit_vectors
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.http import Http
from memory_tui.providers.options import ProviderSettings, require_approval
from memory_tui.providers.services import Wire

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_UPLOAD_SECONDS, _CALL_SECONDS = 600.0, 60.0
_LONGEST_LINE = 4 << 20
_NO_LIST = frozenset({Cause.UNKNOWN_MODEL, Cause.REFUSED})
_BAD_STATUS = 400
Phase = Literal["running", "completed", "failed", "expired", "cancelled"]
_PHASES: Mapping[str, Phase] = {
    "completed": "completed",
    "succeeded": "completed",
    "done": "completed",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
"""States in which a job has ended; in all others (validating, in_progress, finalizing ...) it runs."""
T = TypeVar("T")


class JobStatus(Struct, frozen=True):
    """How far a job is: how many of its texts are `done`, of how many, 0 where unknown.

    `files` hold results or errors once it has ended; `why` is the provider's reason for a bad end.
    """

    phase: Phase
    done: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    why: str = ""


class JobVectors(Struct):
    """Unit vectors and errors of a job by the text's id; `broken` lines say nothing at all."""

    vectors: dict[str, Vectors] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    broken: int = 0


def pick(tree: object, *paths: str) -> object:
    """Return what stands below `tree` at the first of `paths` that leads to something, such as "data.0.message"."""
    for path in paths:
        at = tree
        for step in path.split("."):
            if isinstance(at, list):
                at = at[int(step)] if step.isdigit() and int(step) < len(at) else None
            else:
                at = at.get(step) if isinstance(at, dict) else None
        if at:
            return at
    return None


def _text(tree: object, *paths: str) -> str:
    value = pick(tree, *paths)
    return value if isinstance(value, str) else ""


def _count(tree: object, *paths: str) -> int:
    digits = str(pick(tree, *paths) or "")
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def _name(value: str) -> str:
    """Return the name of a job or file without its folder. Raises Malformed for one that could lead elsewhere."""
    name = value.removeprefix("files/").removeprefix("batches/")
    if not _ID.fullmatch(name):
        raise Malformed("a name that is none")
    return name


class BatchService:
    """OpenAI's batch service. Only the first key is used: a job belongs to the account that made it.

    Every call raises ProviderFailure, and Cancelled after `close`.
    """

    window = "24h"
    recent, job, cancelling = "/batches?limit=100", "/batches/{}", "/batches/{}/cancel"
    content = "/files/{}/content"
    listed: tuple[str, ...] = ("data",)

    def __init__(self, wire: Wire, settings: ProviderSettings) -> None:
        self.settings, self.jobs, self.label = settings, settings.jobs, wire.label
        self.space = (wire.name, wire.model, wire.key)
        """Provider, model and key of the vectors' space."""
        self._wire, self._stop = wire, Stop()
        self._http = Http(wire.label, wire.base_url, self._stop, wire.headers, wire.auth[:1])

    # --- the format ------------------------------------------------------------------------------------------------

    def line(self, text_id: str, text: str) -> Mapping[str, object]:
        """Write the request for one text."""
        _, body = self._wire.request([text], "document")
        return {"custom_id": text_id, "method": "POST", "url": "/v1/embeddings", "body": {**body, "input": text}}

    def form(self, name: str) -> tuple[str, str, list[tuple[str, bytes]], str]:
        """Return path and kind of the upload of a file, what comes before it, and its headers."""
        purpose = ('Content-Disposition: form-data; name="purpose"', b"batch")
        file = (
            f'Content-Disposition: form-data; name="file"; filename="{name}.jsonl"\r\nContent-Type: application/jsonl'
        )
        return "/files", "form-data", [purpose], file

    def body(self, file_id: str) -> tuple[str, Mapping[str, object]]:
        """Return path and body that make a job of a file."""
        more = {"endpoint": "/v1/embeddings", "completion_window": self.window, "metadata": {"source": "memory-tui"}}
        return "/batches", {"input_file_id": file_id, **more}

    def made_of(self, job: object, file_id: str) -> bool:
        """Tell whether a job of the list was made of the file."""
        return pick(job, "input_file_id") == file_id

    def read_status(self, job: object) -> JobStatus:
        """Read what a job is doing. Raises Malformed."""
        state = _text(job, "status")
        if not state:
            raise Malformed("a job without a state")
        return JobStatus(
            _PHASES.get(state, "running"),
            _count(job, "request_counts.completed"),
            _count(job, "request_counts.total"),
            tuple(map(_name, filter(None, (_text(job, "output_file_id"), _text(job, "error_file_id"))))),
            _text(job, "errors.data.0.message"),
        )

    def read_line(self, line: object) -> tuple[str, object, str]:
        """Read a line of results: the text's id, its vector, and why there is none."""
        error = pick(line, "error.message", "error", "response.body.error.message", "response.body.error")
        status = pick(line, "response.status_code")
        if not error and isinstance(status, int) and status >= _BAD_STATUS:
            error = f"refused with {status}"
        return _text(line, "custom_id"), pick(line, "response.body.data.0.embedding"), str(error or "")

    # --- calls -----------------------------------------------------------------------------------------------------

    def upload(self, texts: Sequence[tuple[str, str]]) -> str:
        """Send a file of (id, text); return what it is called there."""
        require_approval(self.space[0], self._http.host, self.settings)
        lines = (json.dumps(self.line(at, well_formed(text)), ensure_ascii=False) for at, text in texts)
        content = "\n".join(lines).encode()
        digest = hashlib.sha256(content).hexdigest()
        path, kind, before, headers = self.form(f"memory-tui-{digest[:32]}")
        boundary = f"memory-tui-{digest}"
        pieces = [f"--{boundary}\r\n{about}\r\n\r\n".encode() + part for about, part in [*before, (headers, content)]]
        data = b"\r\n".join([*pieces, f"--{boundary}--\r\n".encode()])
        about = {"Content-Type": f"multipart/{kind}; boundary={boundary}"}
        answer = self._http.ask("POST", path, _UPLOAD_SECONDS, data, about)
        return self._read(lambda: _name(_text(answer, "file.name", "id", "name")))

    def create(self, file_id: str) -> str:
        """Make a job of the file; return what it is called there."""
        path, body = self.body(file_id)
        answer = self._http.ask("POST", path, _CALL_SECONDS, json.dumps(body, ensure_ascii=False).encode())
        return self._read(lambda: _name(_text(answer, "id", "name")))

    def find(self, file_id: str) -> str:
        """Return the job that was made of the file, empty when there is none, or no list."""
        try:
            jobs = pick(self._http.ask("GET", self.recent, _CALL_SECONDS), *self.listed)
        except ProviderFailure as failure:
            if failure.state in _NO_LIST:
                return ""
            raise
        mine = [job for job in jobs if self.made_of(job, file_id)] if isinstance(jobs, list) else []
        return self._read(lambda: _name(_text(mine[0], "id", "name"))) if mine else ""

    def status(self, job_id: str) -> JobStatus:
        """Return what a job is doing."""
        answer = self._http.ask("GET", self.job.format(job_id), _CALL_SECONDS)
        return self._read(lambda: self.read_status(answer))

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end a job."""
        self._http.ask("POST", self.cancelling.format(job_id), _CALL_SECONDS, b"{}")

    def fetch(self, status: JobStatus, dims: int) -> JobVectors:
        """Return what a job that has ended brought. Of two lines about one text the first good one counts."""
        results = JobVectors()
        for name in status.files:
            with tempfile.TemporaryFile() as file:
                try:
                    self._http.save(self.content.format(name), file, _CALL_SECONDS)
                except OSError as error:
                    why = f"The results of {self.label} cannot be put on disk: {error.strerror}."
                    step = "Free some space; they are fetched again at the next start."
                    raise ProviderFailure(Cause.BROKEN, why, step) from error
                file.seek(0)
                while raw := file.readline(_LONGEST_LINE):
                    if raw.strip():
                        self._take(raw, dims, results)
        return results

    def discard(self, files: Sequence[str]) -> str:
        """Delete the files of a finished job, which hold notes; return why some stay, else nothing. Tries once."""
        try:
            for name in filter(None, files):
                self._http.ask("DELETE", f"/files/{name}", _CALL_SECONDS)
        except ProviderFailure as failure:
            return f"files of the job stay at {self.label}: {failure.message}"
        return ""

    def wait(self, seconds: float) -> None:
        """Let time pass. Raises Cancelled once `close` is called."""
        self.settings.clock.pause(self._stop, seconds)

    def close(self) -> None:
        """Give up every call and every wait, at once. Jobs go on."""
        self._stop.set()
        self._http.close()

    def _take(self, raw: bytes, dims: int, results: JobVectors) -> None:
        try:
            text_id, vector, error = self.read_line(json.loads(raw.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            text_id = ""
        if not text_id:
            results.broken += 1
        elif text_id not in results.vectors:
            try:
                if error or not vector:
                    raise Malformed(error or "no vector came back")
                results.vectors[text_id] = unit_vectors([vector], 1, dims)[0]
                results.errors.pop(text_id, None)
            except Malformed as why:
                results.errors[text_id] = self._http.hidden(str(why))

    def _read(self, how: Callable[[], T]) -> T:
        try:
            return how()
        except Malformed as error:
            why = str(error)
        raise ProviderFailure(Cause.MALFORMED, f"{self.label} ({self._http.host}) answered with {why}.")


class VoyageBatches(BatchService):
    """Voyage's batch service: what all requests have in common goes with the job, which ends within twelve hours."""

    window = "12h"

    def line(self, text_id: str, text: str) -> Mapping[str, object]:
        """Write the request for one text."""
        return {"custom_id": text_id, "body": {"input": text}}

    def body(self, file_id: str) -> tuple[str, Mapping[str, object]]:
        """Return path and body that make a job of a file."""
        path, body = super().body(file_id)
        _, request = self._wire.request([""], "document")
        return path, {**body, "request_params": {name: value for name, value in request.items() if name != "input"}}


class GeminiBatches(BatchService):
    """Gemini's batch service: each line is what a direct request holds; a job bears the name of its file."""

    recent, cancelling, content = "/batches?pageSize=100", "/batches/{}:cancel", "/files/{}:download?alt=media"
    listed = ("operations", "batches")

    def line(self, text_id: str, text: str) -> Mapping[str, object]:
        """Write the request for one text."""
        _, body = self._wire.request([text], "document")
        return {"key": text_id, "request": pick(body, "requests.0")}

    def form(self, name: str) -> tuple[str, str, list[tuple[str, bytes]], str]:
        """Return path and kind of the upload of a file, what comes before it, and its headers."""
        base = self._wire.base_url
        root = base.replace("/v1beta", "/upload/v1beta") if "/v1beta" in base else f"{base}/upload"
        about = json.dumps({"file": {"displayName": name, "mimeType": "application/jsonl"}}).encode()
        before = [("Content-Type: application/json; charset=UTF-8", about)]
        return f"{root}/files?uploadType=multipart", "related", before, "Content-Type: application/jsonl"

    def body(self, file_id: str) -> tuple[str, Mapping[str, object]]:
        """Return path and body that make a job of a file."""
        job = {"displayName": f"memory-tui-{file_id}", "inputConfig": {"file_name": f"files/{file_id}"}}
        return f"/models/{self._wire.model}:asyncBatchEmbedContent", {"batch": job}

    def made_of(self, job: object, file_id: str) -> bool:
        """Tell whether a job of the list was made of the file."""
        return pick(job, "displayName", "metadata.displayName") == f"memory-tui-{file_id}"

    def read_status(self, job: object) -> JobStatus:
        """Read what a job is doing, in each form that releases of the service have. Raises Malformed."""
        state, error = _text(job, "state", "metadata.state"), pick(job, "error.message", "error")
        if not state and not pick(job, "done", "name", "metadata"):
            raise Malformed("a job without a state")
        phase = _PHASES.get(state.upper().rpartition("STATE_")[2].lower(), "running")
        if not state and pick(job, "done"):
            phase = "failed" if error else "completed"
        outputs = ("metadata.output.responsesFile", "response.responsesFile", "output.responsesFile")
        file = _text(job, "outputConfig.file", "outputConfig.fileId", *outputs)
        return JobStatus(
            phase,
            _count(job, "metadata.batchStats.successfulRequestCount", "batchStats.successfulRequestCount"),
            _count(job, "metadata.batchStats.requestCount", "batchStats.requestCount"),
            (_name(file),) if file else (),
            str(error or ""),
        )

    def read_line(self, line: object) -> tuple[str, object, str]:
        """Read a line of results: the text's id, its vector, and why there is none."""
        error = pick(line, "error.message", "error", "response.error.message", "response.error")
        vector = pick(line, "embedding.values", "response.embedding.values")
        return _text(line, "key", "custom_id", "request_id"), vector, str(error or "")


SERVICES: Mapping[str, type[BatchService]] = {
    "openai": BatchService,
    "voyage": VoyageBatches,
    "gemini": GeminiBatches,
}
