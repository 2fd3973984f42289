"""Ask Gemini for embeddings."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence

from memory_tui.providers.base import Kind, MediaText, fingerprint, members
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import Headers, ProviderSettings, Wire, authorised, listed, without_prefix
from memory_tui.providers.registry import ProviderRow

_TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
_PREFIXES = {"query": "task: search result | query: ", "document": "title: none | text: "}
MEDIA = ("gemini-embedding-2", "gemini-embedding-2-preview")
"""The models that take images and sounds; only the first one takes no task, as OpenClaw asks it."""
_SMALLEST, _FULL = 128, 3072
_MOST_ITEMS = 100


def gemini(settings: ProviderSettings) -> Wire:
    """Describe Gemini. Raises ProviderFailure."""
    base = GEMINI.endpoint(settings)
    cut = base.partition("/openai")[0]
    keys = _keys(settings)
    if not keys and not authorised(settings, "x-goog-api-key"):
        raise GEMINI.missing_key()
    model = model_of(settings.model)
    second = model.startswith("gemini-embedding-2")
    size = _size(settings.output_dimensionality, model, second)
    sized = {"outputDimensionality": size} if size else {}

    def one(text: str, kind: Kind) -> dict[str, object]:
        if isinstance(text, MediaText):
            mime, data = text.load()
            inline = {"mimeType": mime, "data": base64.b64encode(data).decode("ascii")}
            parts = [{"text": str(text)}, {"inlineData": inline}]
            return {"content": {"parts": parts}, **({} if model == MEDIA[0] else {"taskType": _TASKS[kind]}), **sized}
        if second:
            return {"content": {"parts": [{"text": _PREFIXES[kind] + text}]}, **sized}
        return {"content": {"parts": [{"text": text}]}, "taskType": _TASKS[kind], **sized}

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        if kind == "query" and len(texts) == 1:
            return f"/models/{model}:embedContent", one(texts[0], kind)
        requests = [{**one(text, kind), "model": f"models/{model}"} for text in texts]
        return f"/models/{model}:batchEmbedContents", {"requests": requests}

    return Wire(
        name="gemini",
        label="Gemini",
        model=model,
        base_url=cut.removesuffix("/"),
        dims=size or (GEMINI.dims.get(model) if cut == GEMINI.base_url else None),
        max_input_bytes=8000 if second else 2048,
        key=fingerprint(provider="gemini", baseUrl=cut, model=model, **sized, headers=listed(settings.headers)),
        headers=settings.headers,
        auth=tuple(_auth(key) for key in keys),
        request=request,
        rows=rows,
        most_items=_MOST_ITEMS,
    )


def model_of(written: str) -> str:
    """Return the model that a configuration means; the usual one where it names none."""
    return without_prefix(without_prefix(written or GEMINI.model, "models/"), "gemini/", "google/")


def rows(answer: object) -> list[object]:
    """Return the vectors in `{embedding: {values}}` or `{embeddings: [{values}]}`. Raises Malformed."""
    if isinstance(answer, dict) and "embedding" in answer:
        answer = {"embeddings": [answer["embedding"]]}
    return members(answer, "embeddings", "values")


def _keys(settings: ProviderSettings) -> tuple[str, ...]:
    """Return the keys: a configured one may name the variable that holds it, the environment may hold several."""
    single = GEMINI.variables[:2]
    keys = [settings.env(key.reveal()) or "" if key.reveal() in single else key.reveal() for key in settings.api_keys]
    if not any(keys):
        several = re.split(r"[\s,;]+", settings.env(GEMINI.variables[2]) or "")
        keys = [*(settings.env(variable) or "" for variable in single), *several]
    return GEMINI.usable_keys(keys) or GEMINI.usable_keys([key.reveal() for key in settings.spare_keys])


def _auth(key: str) -> Headers:
    try:
        parsed = json.loads(key) if key.startswith("{") else None
    except ValueError:
        parsed = None
    token = parsed.get("token") if isinstance(parsed, dict) else None
    return {"Authorization": f"Bearer {token}"} if isinstance(token, str) else {"x-goog-api-key": key}


def _size(size: int | None, model: str, second: bool) -> int | None:
    if size is not None and not _SMALLEST <= size <= _FULL:
        raise ProviderFailure(
            Cause.REFUSED,
            f"{model} makes vectors of {_SMALLEST} to {_FULL} numbers, not {size}.",
            "Change outputDimensionality, or leave it out.",
        )
    return size or (_FULL if second else None)


GEMINI = ProviderRow(
    "gemini",
    "Gemini",
    wire=gemini,
    base_url="https://generativelanguage.googleapis.com/v1beta",
    variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEYS"),
    model="gemini-embedding-001",
    dims={"gemini-embedding-001": _FULL, "gemini-embedding-2": _FULL, "gemini-embedding-2-preview": _FULL},
    prices={"gemini-embedding-001": 0.15},
    batch_price=0.5,
    auto=3,
)
