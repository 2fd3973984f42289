"""The batch services of OpenAI and Voyage: the same endpoints, and each its own lines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from memory_tui.embed.answers import Malformed
from memory_tui.embed.batch import Line, Look, Phase, Upload, failure_of, fields, name_in, number, text
from memory_tui.embed.wire import Wire

_SOURCE = "memory-tui"
_PHASES: Mapping[str, Phase] = {
    "completed": "completed",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
"""States in which a job has ended; in all others (validating, in_progress, finalizing ...) it runs."""
_BAD = 400


@dataclass(frozen=True, slots=True)
class OpenAiBatches:
    """OpenAI's, and with `shared` Voyage's: there what all requests have in common is said once, for the job."""

    wire: Wire
    shared: bool = False

    def line(self, text_id: str, text: str) -> Mapping[str, object]:
        """`{custom_id, method, url, body}`, or `{custom_id, body: {input}}` where the rest is shared."""
        if self.shared:
            return {"custom_id": text_id, "body": {"input": text}}
        _, body = self.wire.request([text], "document")
        return {"custom_id": text_id, "method": "POST", "url": "/v1/embeddings", "body": {**body, "input": text}}

    def upload(self, lines: bytes, name: str) -> Upload:
        """A form with `purpose` and the file."""
        boundary = f"memory-tui-{hashlib.sha256(lines).hexdigest()}"
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{boundary}\r\n'
            f'Content-Disposition: form-data; name="file"; filename="{name}.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        return Upload(
            "/files",
            f"multipart/form-data; boundary={boundary}",
            head.encode() + lines + f"\r\n--{boundary}--\r\n".encode(),
        )

    def file_id(self, answer: object) -> str:
        """`id` of the file."""
        return name_in(text(answer, "id"))

    def create(self, file_id: str) -> tuple[str, Mapping[str, object]]:
        """A job within a day, or within twelve hours at Voyage."""
        body: dict[str, object] = {
            "input_file_id": file_id,
            "endpoint": "/v1/embeddings",
            "completion_window": "12h" if self.shared else "24h",
            "metadata": {"source": _SOURCE},
        }
        if self.shared:
            _, request = self.wire.request([""], "document")
            body["request_params"] = {name: value for name, value in request.items() if name != "input"}
        return "/batches", body

    def job_id(self, answer: object) -> str:
        """`id` of the job."""
        return name_in(text(answer, "id"))

    def recent(self) -> str:
        """The list of jobs, the newest first."""
        return "/batches?limit=100"

    def find(self, answer: object, file_id: str) -> str:
        """By `input_file_id`."""
        jobs = fields(answer).get("data")
        found = [job for job in jobs if text(job, "input_file_id") == file_id] if isinstance(jobs, list) else []
        return self.job_id(found[0]) if found else ""

    def job(self, job_id: str) -> str:
        """`/batches/<id>`."""
        return f"/batches/{job_id}"

    def cancel(self, job_id: str) -> str:
        """`/batches/<id>/cancel`."""
        return f"/batches/{job_id}/cancel"

    def look(self, answer: object) -> Look:
        """`status`, `request_counts`, `output_file_id`, `error_file_id` and the first of `errors`."""
        status = text(answer, "status")
        if not status:
            raise Malformed("a job without a status")
        ids = [text(answer, "output_file_id"), text(answer, "error_file_id")]
        errors = fields(answer, "errors").get("data")
        return Look(
            _PHASES.get(status, "running"),
            number(answer, "request_counts", "completed"),
            number(answer, "request_counts", "failed"),
            number(answer, "request_counts", "total"),
            tuple(name_in(one) for one in ids if one),
            text(errors[0], "message") if isinstance(errors, list) and errors else failure_of(answer),
        )

    def file(self, file_id: str) -> str:
        """`/files/<id>`."""
        return f"/files/{file_id}"

    def content(self, file_id: str) -> str:
        """`/files/<id>/content`."""
        return f"/files/{file_id}/content"

    def result(self, line: Mapping[str, object]) -> Line:
        """`{custom_id, error?, response: {status_code, body: {data: [{embedding}]}}}`."""
        text_id, response = text(line, "custom_id"), fields(line, "response")
        status = response.get("status_code")
        body = fields(response, "body")
        error = failure_of(line) or failure_of(body)
        if not error and isinstance(status, int) and status >= _BAD:
            error = f"refused with {status}"
        rows = body.get("data")
        vector = rows[0].get("embedding") if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None
        return Line(text_id, None, error) if error else Line(text_id, vector, "" if vector else "no vector came back")
