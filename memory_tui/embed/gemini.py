"""Gemini's embedding endpoints: task types for model 001, a text prefix for model 2."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from memory_tui.embed.answers import Malformed, field
from memory_tui.embed.failure import ProviderFailure, State
from memory_tui.embed.options import ProviderSettings
from memory_tui.embed.wire import (
    Headers,
    Kind,
    Wire,
    endpoint,
    fingerprint,
    listed,
    missing_key,
    usable_keys,
    without_prefix,
    without_slash,
)

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
