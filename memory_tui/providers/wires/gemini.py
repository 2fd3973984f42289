"""Gemini's embedding endpoints, single or batch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tui.providers.answer_rows import Malformed, field
from memory_tui.providers.failures import ProviderFailure, State
from memory_tui.providers.provider_options import (
    Headers,
    Kind,
    ProviderSettings,
    Wire,
    endpoint,
    fingerprint,
    listed,
    missing_key,
    usable_keys,
    without_prefix,
    without_slash,
)

if TYPE_CHECKING:
    from memory_tui.providers.batch import Line, Look, Phase, Upload

_BASE = "https://generativelanguage.googleapis.com/v1beta"
_TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
_PREFIXES = {"query": "task: search result | query: ", "document": "title: none | text: "}
_SMALLEST, _FULL = 128, 3072
_MOST_ITEMS = 100


def gemini(settings: ProviderSettings) -> Wire:
    """Gemini. Raises ProviderFailure."""
    base = endpoint(settings, "Gemini", _BASE)
    cut = base.partition("/openai")[0]
    found = _keys(settings)
    if not found and not {"authorization", "x-goog-api-key"} & {name.lower() for name in settings.headers}:
        raise missing_key("Gemini", "google", "GEMINI_API_KEY")
    model = without_prefix(without_prefix(settings.model or "gemini-embedding-001", "models/"), "gemini/", "google/")
    second = model.startswith("gemini-embedding-2")
    size = _size(settings.output_dimensionality, model, second)
    sized = {"outputDimensionality": size} if size else {}

    def one(text: str, kind: Kind) -> dict[str, object]:
        if second:
            return {"content": {"parts": [{"text": _PREFIXES[kind] + text}]}, **sized}
        return {"content": {"parts": [{"text": text}]}, "taskType": _TASKS[kind], **sized}

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        if kind == "query" and len(texts) == 1:
            return f"/models/{model}:embedContent", one(texts[0], kind)
        requests = [{**one(text, kind), "model": f"models/{model}"} for text in texts]
        return f"/models/{model}:batchEmbedContents", {"requests": requests}

    own = cut == _BASE and model in ("gemini-embedding-001", "gemini-embedding-2", "gemini-embedding-2-preview")
    return Wire(
        name="gemini",
        label="Gemini",
        model=model,
        base_url=without_slash(cut),
        dims=size or (_FULL if own else None),
        max_input_bytes=8000 if second else 2048,
        key=fingerprint(provider="gemini", baseUrl=cut, model=model, **sized, headers=listed(settings.headers)),
        headers=settings.headers,
        auth=tuple(_auth(key) for key in found),
        request=request,
        rows=rows,
        most_items=_MOST_ITEMS,
    )


def rows(answer: object) -> list[object]:
    """The vectors in `{embedding: {values}}` or `{embeddings: [{values}]}`. Raises Malformed."""
    found = [answer["embedding"]] if isinstance(answer, dict) and "embedding" in answer else field(answer, "embeddings")
    if not all(isinstance(row, dict) and "values" in row for row in found):
        raise Malformed("embeddings without values")
    return [row["values"] for row in found if isinstance(row, dict)]


def _keys(settings: ProviderSettings) -> tuple[str, ...]:
    """A configured key may be the name of the variable that holds it; the environment may hold several keys."""
    named = {"GOOGLE_API_KEY", "GEMINI_API_KEY"}
    said = [settings.env(key.reveal()) or "" if key.reveal() in named else key.reveal() for key in settings.api_keys]
    if not any(said):
        several = re.split(r"[\s,;]+", settings.env("GEMINI_API_KEYS") or "")
        said = [settings.env("GEMINI_API_KEY") or "", settings.env("GOOGLE_API_KEY") or "", *several]
    return usable_keys("gemini", said) or usable_keys("gemini", [key.reveal() for key in settings.spare_keys])


def _auth(key: str) -> Headers:
    try:
        told = json.loads(key) if key.startswith("{") else None
    except ValueError:
        told = None
    token = told.get("token") if isinstance(told, dict) else None
    return {"Authorization": f"Bearer {token}"} if isinstance(token, str) else {"x-goog-api-key": key}


def _size(asked: int | None, model: str, second: bool) -> int | None:
    if asked is not None and not _SMALLEST <= asked <= _FULL:
        raise ProviderFailure(
            State.REFUSED,
            f"{model} makes vectors of {_SMALLEST} to {_FULL} numbers, not {asked}.",
            "Change outputDimensionality, or leave it out.",
        )
    return asked or (_FULL if second else None)


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
        from memory_tui.providers.batch import Upload

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
        from memory_tui.providers.batch import name_in, text

        return name_in(text(answer, "file", "name") or text(answer, "name"), "files")

    def create(self, file_id: str) -> tuple[str, Mapping[str, object]]:
        """A job that bears the name of its file, by which it can be found again."""
        return f"/models/{self.wire.model}:asyncBatchEmbedContent", {
            "batch": {"displayName": _named(file_id), "inputConfig": {"file_name": file_id}}
        }

    def job_id(self, answer: object) -> str:
        """`name`, which is `batches/<id>`."""
        from memory_tui.providers.batch import name_in, text

        return name_in(text(answer, "name"), "batches")

    def recent(self) -> str:
        """The list of jobs, the newest first."""
        return "/batches?pageSize=100"

    def find(self, answer: object, file_id: str) -> str:
        """By the name that `create` gave."""
        from memory_tui.providers.batch import fields, text

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
        from memory_tui.providers.batch import Look, failure_of, fields, name_in, number, text

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
        from memory_tui.providers.batch import Line, failure_of, fields, text

        text_id = text(line, "key") or text(line, "custom_id") or text(line, "request_id")
        response = fields(line, "response")
        if error := failure_of(line) or failure_of(response):
            return Line(text_id, None, error)
        values = fields(line, "embedding").get("values") or fields(response, "embedding").get("values")
        return Line(text_id, values, "" if values else "no vector came back")


def _named(file_id: str) -> str:
    return f"memory-tui-{file_id.removeprefix('files/')}"
