"""Ask a batch service, which turns a file of texts into a file of vectors within hours, at a lower price.

The index remembers the job (`memory_tui/index/embedding.py`). A call blocks on the network; `close` ends it at once,
and the job goes on at the provider.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_tui.cancel import Stop
from memory_tui.jsstring import well_formed
from memory_tui.providers.base import Cause, Malformed, ProviderFailure, Vectors, unit_vectors
from memory_tui.providers.http import Http
from memory_tui.providers.registry import ProviderSettings, Wire, require_approval

_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_UPLOAD_SECONDS, _CALL_SECONDS, _LONGEST_LINE = 600.0, 60.0, 4 << 20
_ENDED = {"completed", "succeeded", "failed", "expired", "cancelled", "canceled"}
"""States in which a job has ended; in all others (validating, in_progress, finalizing ...) it runs."""
_ERRORS = ("error.message", "response.error.message", "response.body.error.message", "error", "response.body.error")


class JobStatus(Struct, frozen=True):
    """How far a job is: `phase` is "running", "completed" or the word for a bad end, of which `why` is the reason;
    `files` hold results or errors once it has ended.
    """

    phase: str
    files: tuple[str, ...] = ()
    why: str = ""


def pick(tree: object, *paths: str) -> object:
    """Return what stands below `tree` at the first of `paths` that leads to something, such as "data.0.message"."""
    for path in paths:
        node = tree
        for step in path.split("."):
            if isinstance(node, list):
                is_index = step.isdigit() and int(step) < len(node)
                node = node[int(step)] if is_index else None
            else:
                node = node.get(step) if isinstance(node, dict) else None
        if node:
            return node
    return None


def _text(tree: object, *paths: str) -> str:
    """Return the text that `pick` finds; empty where it is no text, or there is none."""
    value = pick(tree, *paths)
    return value if isinstance(value, str) else ""


class BatchService:
    """The batch service of OpenAI or Gemini. Only the first key is used: a job belongs to its account.

    Every call raises ProviderFailure, and Cancelled after `close`.
    """

    def __init__(self, wire: Wire, settings: ProviderSettings) -> None:
        self.settings, self.jobs, self.label = settings, settings.jobs, wire.row.label
        self.space = (wire.row.name, wire.model, wire.key)
        """Provider, model and key of the vectors' space."""
        self._wire, self._stop = wire, Stop()
        self._gemini = wire.row.name == "gemini"
        self._http = Http(self.label, wire.base_url, self._stop, wire.headers, auth=wire.auth[:1])

    def _line(self, text_id: str, text: str) -> Mapping[str, object]:
        """Write the request for one text."""
        _, body = self._wire.request([text], "document")
        if self._gemini:
            return {"key": text_id, "request": pick(body, "requests.0")}
        return {"custom_id": text_id, "method": "POST", "url": "/v1/embeddings", "body": {**body, "input": text}}

    def upload(self, texts: Sequence[tuple[str, str]]) -> str:
        """Send a file of (id, text) as two parts, of which the first says what the second is; return its name there."""
        require_approval(self._wire.row.name, self._http.host, self.settings)
        lines = (json.dumps(self._line(text_id, well_formed(text)), ensure_ascii=False) for text_id, text in texts)
        content = "\n".join(lines).encode()
        digest = hashlib.sha256(content).hexdigest()
        # Of the content, so that the line between the parts cannot stand in it by accident.
        name, boundary = f"memory-tui-{digest[:32]}", f"memory-tui-{digest}"
        if self._gemini:
            path = f"{self._wire.base_url.replace('/v1beta', '/upload/v1beta')}/files?uploadType=multipart"
            kind = "related"
            about_head = "Content-Type: application/json; charset=UTF-8"
            about = json.dumps({"file": {"displayName": name, "mimeType": "application/jsonl"}}).encode()
            content_head = "Content-Type: application/jsonl"
        else:
            path, kind = "/files", "form-data"
            about_head, about = 'Content-Disposition: form-data; name="purpose"', b"batch"
            disposition = f'Content-Disposition: form-data; name="file"; filename="{name}.jsonl"'
            content_head = f"{disposition}\r\nContent-Type: application/jsonl"
        parts = ((about_head, about), (content_head, content))
        pieces = [f"--{boundary}\r\n{head}\r\n\r\n".encode() + part for head, part in parts]
        data = b"\r\n".join([*pieces, f"--{boundary}--\r\n".encode()])
        headers = {"Content-Type": f"multipart/{kind}; boundary={boundary}"}
        return self._name(_text(self._http.ask("POST", path, _UPLOAD_SECONDS, data, headers), "file.name", "id"))

    def create(self, file_id: str) -> str:
        """Make a job of the file; return what it is called there."""
        if self._gemini:
            path = f"/models/{self._wire.model}:asyncBatchEmbedContent"
            about = {"displayName": f"memory-tui-{file_id}", "inputConfig": {"file_name": f"files/{file_id}"}}
            return self._name(_text(self._http.post(path, {"batch": about}, _CALL_SECONDS), "name"))
        body = {"input_file_id": file_id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
        return self._name(_text(self._http.post("/batches", body, _CALL_SECONDS), "id"))

    def find(self, file_id: str) -> str:
        """Return the job that was made of the file, empty when there is none: after an answer of `create` got lost."""
        answer = self._http.ask("GET", f"/batches?{'pageSize' if self._gemini else 'limit'}=100", _CALL_SECONDS)
        jobs = pick(answer, "operations" if self._gemini else "data")
        for job in jobs if isinstance(jobs, list) else ():
            file = _text(job, "input_file_id", "metadata.displayName", "displayName")
            if file.removeprefix("memory-tui-") == file_id:
                return self._name(_text(job, "id", "name"))
        return ""

    def status(self, job_id: str) -> JobStatus:
        """Return what a job is doing."""
        job = self._http.ask("GET", f"/batches/{job_id}", _CALL_SECONDS)
        # Gemini writes BATCH_STATE_SUCCEEDED or JOB_STATE_SUCCEEDED, where OpenAI writes completed.
        state = _text(job, "status", "metadata.state", "state").upper().rpartition("STATE_")[2].lower()
        if not state:
            raise self._malformed("a job without a state")
        responses = _text(job, "metadata.output.responsesFile", "response.responsesFile", "output.responsesFile")
        files = (_text(job, "output_file_id"), _text(job, "error_file_id"), responses)
        return JobStatus(
            phase=state.replace("succeeded", "completed") if state in _ENDED else "running",
            files=tuple(self._name(file) for file in files if file),
            why=str(pick(job, "errors.data.0.message", "error.message") or ""),
        )

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end a job."""
        self._http.ask("POST", f"/batches/{job_id}{':' if self._gemini else '/'}cancel", _CALL_SECONDS, b"{}")

    def fetch(self, status: JobStatus, dims: int) -> tuple[dict[str, Vectors], dict[str, str]]:
        """Return the unit vectors that a job brought, and why others are none, by the ids of the texts."""
        vectors: dict[str, Vectors] = {}
        errors: dict[str, str] = {}
        for name in status.files:
            path = f"/files/{name}:download?alt=media" if self._gemini else f"/files/{name}/content"
            with tempfile.TemporaryFile() as file:
                try:
                    self._http.save(path, file, _CALL_SECONDS)
                except OSError as error:
                    why = f"The results of {self.label} cannot be put on disk: {error.strerror}."
                    step = "Free some space; they are fetched again at the next start."
                    raise ProviderFailure(Cause.BROKEN, why, step) from error
                file.seek(0)
                while raw := file.readline(_LONGEST_LINE):
                    self._take(raw, dims, vectors, errors)
        return vectors, {text_id: why for text_id, why in errors.items() if text_id not in vectors}

    def _take(self, raw: bytes, dims: int, vectors: dict[str, Vectors], errors: dict[str, str]) -> None:
        """Put what a line of results says of its text into `vectors` or `errors`.

        Of several lines about one text the first with a good vector counts. A line that is no JSON, or names no text,
        is ignored.
        """
        try:
            line = json.loads(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return
        text_id = _text(line, "custom_id", "key")
        if not text_id or text_id in vectors:
            return
        vector = pick(line, "response.body.data.0.embedding", "response.embedding.values")
        error = pick(line, *_ERRORS)
        try:
            if error or not vector:
                raise Malformed(str(error or "no vector came back"))
            vectors[text_id] = unit_vectors([vector], 1, dims)[0]
        except Malformed as why:
            errors[text_id] = self._http.hidden(str(why))

    def discard(self, files: Sequence[str]) -> str:
        """Delete the files of a finished job, which hold notes; return why some stay, else nothing. Tries once."""
        try:
            for name in files:
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

    def _name(self, text: str) -> str:
        """Return the name of a job or file without its folder. Raises ProviderFailure where it could lead elsewhere."""
        name = text.removeprefix("files/").removeprefix("batches/")
        if not _ID.fullmatch(name):
            raise self._malformed("a name that is none")
        return name

    def _malformed(self, why: str) -> ProviderFailure:
        return ProviderFailure(Cause.MALFORMED, f"{self.label} ({self._http.host}) answered with {why}.")
