"""OpenAI's embedding endpoints, single or batch, with those compatible: Voyage, Mistral."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memory_tui.providers.answer_rows import Malformed, field, in_order
from memory_tui.providers.provider_options import (
    Headers,
    Kind,
    ProviderSettings,
    Wire,
    endpoint,
    fingerprint,
    host_of,
    keys,
    listed,
    missing_key,
    plain_key,
    variant,
    without_prefix,
    without_slash,
)

if TYPE_CHECKING:
    from memory_tui.providers.batch import Line, Look, Phase, Upload

_JSON = {"Content-Type": "application/json"}
_OPENAI, _VOYAGE, _MISTRAL = "https://api.openai.com/v1", "https://api.voyageai.com/v1", "https://api.mistral.ai/v1"
_DIMS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    "voyage-4-large": 1024,
    "voyage-4": 1024,
    "voyage-4-lite": 1024,
    "voyage-3-large": 1024,
    "voyage-3.5": 1024,
    "voyage-3.5-lite": 1024,
    "voyage-3": 1024,
    "voyage-3-lite": 512,
    "voyage-code-3": 1024,
    "mistral-embed": 1024,
    "codestral-embed": 1536,
}
"""Length of the vectors of each provider's own models, as the providers document it."""
MAX_INPUT_BYTES = 8000
"""Within the limits of all these models, which start at 8,191 tokens."""


def openai(settings: ProviderSettings) -> Wire:
    """OpenAI, or whatever is at `remote.baseUrl`; there a key is optional. Raises ProviderFailure."""
    base = endpoint(settings, "OpenAI", _OPENAI)
    own = host_of(base) == host_of(_OPENAI)
    found = keys(settings, "openai", "OPENAI_API_KEY")
    if not found and own and not _authorised(settings):
        raise missing_key("OpenAI", "openai", "OPENAI_API_KEY")
    size = settings.output_dimensionality
    model = settings.model or "text-embedding-3-small"
    model = without_prefix(model, "openai/") if own else model

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        return "/embeddings", {
            "model": model,
            "input": list(texts),
            **({"dimensions": size} if size else {}),
            **_input_type(settings, kind),
        }

    return Wire(
        name="openai",
        label="OpenAI" if own else "The OpenAI-compatible server",
        model=model,
        base_url=without_slash(base),
        dims=size or _known_dims(model, own),
        max_input_bytes=MAX_INPUT_BYTES,
        key=fingerprint(
            provider="openai",
            baseUrl=base,
            model=model,
            headers=listed({**_JSON, **settings.headers}),
            **variant(settings),
        ),
        headers=settings.headers,
        auth=_bearers(found),
        request=request,
        rows=rows,
    )


def voyage(settings: ProviderSettings) -> Wire:
    """Voyage, which is told whether a text is a note or a question. Raises ProviderFailure."""
    size = settings.output_dimensionality

    def more(kind: Kind) -> dict[str, object]:
        return {"input_type": kind, **_input_type(settings, kind), **({"output_dimension": size} if size else {})}

    return _relative(settings, _Relative("voyage", "Voyage", _VOYAGE, "voyage-4-large", "VOYAGE_API_KEY", more, size))


def mistral(settings: ProviderSettings) -> Wire:
    """Mistral. Raises ProviderFailure."""
    return _relative(
        settings, _Relative("mistral", "Mistral", _MISTRAL, "mistral-embed", "MISTRAL_API_KEY", lambda _: {}, None)
    )


def rows(answer: object) -> list[object]:
    """The vectors in `{data: [{embedding, index}]}`, by index. Raises Malformed."""
    found = in_order(field(answer, "data"))
    if not all(isinstance(row, dict) and "embedding" in row for row in found):
        raise Malformed("rows without an embedding")
    return [row["embedding"] for row in found if isinstance(row, dict)]


class _Relative(NamedTuple):
    name: str
    label: str
    base: str
    model: str
    variable: str
    more: Callable[[Kind], dict[str, object]]
    dims: int | None


def _relative(settings: ProviderSettings, kin: _Relative) -> Wire:
    base = endpoint(settings, kin.label, kin.base)
    found = keys(settings, kin.name, kin.variable)
    if not found and not _authorised(settings):
        raise missing_key(kin.label, kin.name, kin.variable)
    model = without_prefix(settings.model or kin.model, f"{kin.name}/")
    return Wire(
        name=kin.name,
        label=kin.label,
        model=model,
        base_url=without_slash(base),
        dims=kin.dims or _known_dims(model, base == kin.base),
        max_input_bytes=MAX_INPUT_BYTES,
        key=plain_key(kin.name, kin.base, base, model, settings),
        headers=settings.headers,
        auth=_bearers(found),
        request=lambda texts, kind: ("/embeddings", {"model": model, "input": list(texts), **kin.more(kind)}),
        rows=rows,
        most_items=128,
    )


def _known_dims(model: str, own: bool) -> int | None:
    """Another server may call its own model by a known name, so only the provider's own one is believed."""
    return _DIMS.get(model) if own else None


def _authorised(settings: ProviderSettings) -> bool:
    return "authorization" in {name.lower() for name in settings.headers}


def _input_type(settings: ProviderSettings, kind: Kind) -> dict[str, object]:
    said = (settings.query_input_type if kind == "query" else settings.document_input_type) or settings.input_type
    return {"input_type": said} if said else {}


def _bearers(found: Sequence[str]) -> tuple[Headers, ...]:
    return tuple({"Authorization": f"Bearer {key}"} for key in found)


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
        from memory_tui.providers.batch import Upload

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
        from memory_tui.providers.batch import name_in, text

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
        from memory_tui.providers.batch import name_in, text

        return name_in(text(answer, "id"))

    def recent(self) -> str:
        """The list of jobs, the newest first."""
        return "/batches?limit=100"

    def find(self, answer: object, file_id: str) -> str:
        """By `input_file_id`."""
        from memory_tui.providers.batch import fields, text

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
        from memory_tui.providers.batch import Look, failure_of, fields, name_in, number, text

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
        from memory_tui.providers.batch import Line, failure_of, fields, text

        text_id, response = text(line, "custom_id"), fields(line, "response")
        status = response.get("status_code")
        body = fields(response, "body")
        error = failure_of(line) or failure_of(body)
        if not error and isinstance(status, int) and status >= _BAD:
            error = f"refused with {status}"
        rows = body.get("data")
        vector = rows[0].get("embedding") if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None
        return Line(text_id, None, error) if error else Line(text_id, vector, "" if vector else "no vector came back")
