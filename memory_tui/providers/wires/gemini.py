"""Gemini's batch service: a related upload, `asyncBatchEmbedContent`, and an operation to look at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from memory_tui.embed.answers import Malformed
from memory_tui.embed.batch import Line, Look, Phase, Upload, failure_of, fields, name_in, number, text
from memory_tui.embed.wire import Wire

_PHASES: Mapping[str, Phase] = {
    "SUCCEEDED": "completed",
    "COMPLETED": "completed",
    "DONE": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "CANCELED": "cancelled",
    "EXPIRED": "expired",
}


@dataclass(frozen=True, slots=True)
class GeminiBatches:
    """Gemini's."""

    wire: Wire

    def line(self, text_id: str, text: str) -> Mapping[str, object]:
        """`{key, request: {content, taskType, model, outputDimensionality?}}`: what a direct request holds."""
        _, body = self.wire.request([text], "document")
        requests = body["requests"]
        assert isinstance(requests, list)
        return {"key": text_id, "request": requests[0]}

    def upload(self, lines: bytes, name: str) -> Upload:
        """Metadata and file as two related parts."""
        base = self.wire.base_url
        root = base.replace("/v1beta", "/upload/v1beta") if "/v1beta" in base else f"{base}/upload"
        boundary = f"memory-tui-{hashlib.sha256(lines).hexdigest()}"
        told = json.dumps({"file": {"displayName": name, "mimeType": "application/jsonl"}})
        head = (
            f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{told}\r\n--{boundary}\r\n"
            "Content-Type: application/jsonl\r\n\r\n"
        )
        return Upload(
            f"{root}/files?uploadType=multipart",
            f"multipart/related; boundary={boundary}",
            head.encode() + lines + f"\r\n--{boundary}--\r\n".encode(),
        )

    def file_id(self, answer: object) -> str:
        """`file.name`, which is `files/<id>`."""
        return name_in(text(answer, "file", "name") or text(answer, "name"), "files")

    def create(self, file_id: str) -> tuple[str, Mapping[str, object]]:
        """A job that bears the name of its file, by which it can be found again."""
        return f"/models/{self.wire.model}:asyncBatchEmbedContent", {
            "batch": {"displayName": _named(file_id), "inputConfig": {"file_name": file_id}}
        }

    def job_id(self, answer: object) -> str:
        """`name`, which is `batches/<id>`."""
        return name_in(text(answer, "name"), "batches")

    def recent(self) -> str:
        """The list of jobs, the newest first."""
        return "/batches?pageSize=100"

    def find(self, answer: object, file_id: str) -> str:
        """By the name that `create` gave."""
        jobs = fields(answer).get("operations") or fields(answer).get("batches")
        found = (
            [job for job in jobs if _named(file_id) in (text(job, "displayName"), text(job, "metadata", "displayName"))]
            if isinstance(jobs, list)
            else []
        )
        return self.job_id(found[0]) if found else ""

    def job(self, job_id: str) -> str:
        """`/batches/<id>`."""
        return f"/batches/{job_id.removeprefix('batches/')}"

    def cancel(self, job_id: str) -> str:
        """`/batches/<id>:cancel`."""
        return f"{self.job(job_id)}:cancel"

    def look(self, answer: object) -> Look:
        """`state` or `metadata.state`, `metadata.batchStats`, and where the results are."""
        told = fields(answer)
        state = text(told, "state") or text(told, "metadata", "state")
        phase = _PHASES.get(state.rpartition("STATE_")[2].upper(), "running")
        if not state and told.get("done") is True:
            phase = "failed" if "error" in told else "completed"
        elif not state and "metadata" not in told and "name" not in told:
            raise Malformed("a job without a state")
        file = (
            text(told, "outputConfig", "file")
            or text(told, "outputConfig", "fileId")
            or text(told, "metadata", "output", "responsesFile")
            or text(told, "response", "responsesFile")
            or text(told, "output", "responsesFile")
        )
        stats = ("metadata", "batchStats") if fields(told, "metadata", "batchStats") else ("batchStats",)
        return Look(
            phase,
            number(told, *stats, "successfulRequestCount"),
            number(told, *stats, "failedRequestCount"),
            number(told, *stats, "requestCount"),
            (name_in(file, "files"),) if file else (),
            failure_of(told),
        )

    def file(self, file_id: str) -> str:
        """`/files/<id>`."""
        return f"/files/{file_id.removeprefix('files/')}"

    def content(self, file_id: str) -> str:
        """`/files/<id>:download`."""
        return f"{self.file(file_id)}:download?alt=media"

    def result(self, line: Mapping[str, object]) -> Line:
        """`{key, embedding: {values}}`, or the same below `response`."""
        text_id = text(line, "key") or text(line, "custom_id") or text(line, "request_id")
        response = fields(line, "response")
        if error := failure_of(line) or failure_of(response):
            return Line(text_id, None, error)
        values = fields(line, "embedding").get("values") or fields(response, "embedding").get("values")
        return Line(text_id, values, "" if values else "no vector came back")


def _named(file_id: str) -> str:
    return f"memory-tui-{file_id.removeprefix('files/')}"
