"""How each service is asked: its path, body, headers and answer, and what tells its vectors from others."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec.structs import replace

from memory_tui.providers.base import Cause, Kind, MediaText, ProviderFailure, fingerprint, members
from memory_tui.providers.options import OTHERS_BYTES, Headers, ProviderRow, ProviderSettings, Wire, host_of

MEDIA = ("gemini-embedding-2", "gemini-embedding-2-preview")
"""The models that take images and sounds; only the first one takes no task, as OpenClaw asks it."""
_TASKS = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
_PREFIXES = {"query": "task: search result | query: ", "document": "title: none | text: "}
_SMALLEST, _LARGEST = 128, 3072
_OLLAMA_QUERIES = {
    "qwen3-embedding": "Instruct: Given a user query, retrieve relevant memory notes and documents\nQuery:{}",
    "nomic-embed-text": "search_query: {}",
    "mxbai-embed-large": "Represent this sentence for searching relevant passages: {}",
}
"""What some models want around a question, by the beginning of their name."""
_HOLD_A_KEY = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})
"""A new key makes no other vectors, so none of these is in a fingerprint (2026.9.6)."""


def wire(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Describe how `row` is asked as `settings` say; ask nobody. Raises ProviderFailure for what they lack."""
    described = {"openai": _openai, "gemini": _gemini, "ollama": _ollama}[row.shape](row, settings)
    return replace(described, headers=settings.headers)


# --- what the services have in common ------------------------------------------------------------------------------


def _endpoint(row: ProviderRow, settings: ProviderSettings) -> str:
    """Return the base URL. Raises ProviderFailure for one that cannot be asked, and for unusable headers."""
    base = settings.base_url.strip() or row.base_url
    try:
        parts = urlsplit(base)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not base.isprintable():
        why = f"{row.label} cannot be asked: remote.baseUrl names no http or https address."
        raise ProviderFailure(Cause.REFUSED, why, f"Use an address like {row.base_url or 'http://127.0.0.1:8080/v1'}.")
    for name, value in settings.headers.items():
        if not f"{name}{value}".isascii() or not f"{name}{value}".isprintable():
            why = f"A header for {row.label} ({name!r}) holds characters that no header has."
            raise ProviderFailure(Cause.REFUSED, why, "Correct remote.headers.")
    return base


def _keys(row: ProviderRow, settings: ProviderSettings) -> tuple[str, ...]:
    """Return the configured keys, else those in the environment, else the spare ones; a configured one may name a
    variable. Raises ProviderFailure for what cannot be a key, and for none unless that is enough.
    """
    configured = [key.value for key in settings.api_keys]
    keys = [settings.env(key) or "" if key in row.variables else key for key in configured]
    for variable in () if any(keys) else row.variables:
        value = settings.env(variable) or ""
        keys += re.split(r"[\s,;]+", value) if variable.endswith("_KEYS") else [value]
    usable = [key.strip() for key in keys if key.strip()]
    usable = usable or [key.value.strip() for key in settings.spare_keys if key.value.strip()]
    if not all(key.isascii() and key.isprintable() for key in usable):
        why = f"The API key of {row.name} holds characters that no key has."
        raise ProviderFailure(Cause.BAD_KEY, why, "Copy it again, without quotes or line breaks.")
    in_headers = {"authorization", "x-goog-api-key" if row.shape == "gemini" else "authorization"}
    if not usable and not row.keyless and in_headers.isdisjoint(name.lower() for name in settings.headers):
        why = f'No API key found for provider "{row.account or row.name}".'
        step = f"Set {row.variables[0]} or remote.apiKey for {row.label}, or choose another provider."
        raise ProviderFailure(Cause.NO_KEY, why, step)
    return tuple(dict.fromkeys(usable))


def _bearers(keys: Sequence[str]) -> tuple[Headers, ...]:
    return tuple({"Authorization": f"Bearer {key}"} for key in keys)


def _listed(headers: Headers) -> list[list[str]]:
    """Return `headers` as sorted pairs for a fingerprint, without those that hold a key."""
    pairs = [[name, value] for name, value in headers.items() if name.lower() not in _HOLD_A_KEY]
    return sorted(pairs, key=lambda pair: (pair[0].lower(), pair[0].swapcase()))


def _variant(settings: ProviderSettings) -> dict[str, object]:
    """Return what changes the vectors of notes beside the model."""
    kind, size = settings.document_input_type or settings.input_type, settings.output_dimensionality
    return {**({"outputDimensionality": size} if size else {}), **({"inputType": kind} if kind else {})}


def _space_key(row: ProviderRow, base: str, model: str, settings: ProviderSettings) -> str:
    """Return the documented fingerprint: of OpenAI all that is sent, of others what was set beside the model."""
    if row.name == "openai":
        headers = _listed({"Content-Type": "application/json", **settings.headers})
        return fingerprint(provider="openai", baseUrl=base, model=model, headers=headers, **_variant(settings))
    more: dict[str, object] = {"baseUrl": base} if base != row.base_url else {}
    if headers := _listed(settings.headers):
        more["headers"] = headers
    return fingerprint(provider=row.name, model=model, **more, **_variant(settings))


def _without_prefix(model: str, *prefixes: str) -> str:
    """Return `model` without the first of `prefixes` that it has."""
    return next((model.removeprefix(prefix) for prefix in prefixes if model.startswith(prefix)), model)


# --- the shapes ------------------------------------------------------------------------------------------------------


def _openai(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Describe OpenAI and every service with its format. Another server in OpenAI's place needs no key and keeps what
    its models are called.
    """
    base = _endpoint(row, settings)
    if row.name == "lmstudio":
        # It may be written with `/v1`, `/api/v1`, or neither.
        base = re.sub(r"(/api)?/v1$", "", base.rstrip("/"), flags=re.IGNORECASE) + "/v1"
    home = host_of(base) == row.host
    if row.name == "openai" and not home:
        row = replace(row, label="The OpenAI-compatible server", keyless=True, most_bytes=OTHERS_BYTES)
        model = settings.model or row.model
    else:
        model = _without_prefix(settings.model or row.model, f"{row.name}/")
    auth = _bearers(_keys(row, settings))
    if not model:
        message = f"{row.label} is asked for a model by its name, and none is set."
        raise ProviderFailure(Cause.REFUSED, message, "Set model beside provider.")
    size = settings.output_dimensionality if row.size_name else None

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        body: dict[str, object] = {"model": model, "input": list(texts)}
        if size:
            body[row.size_name] = size
        named = (settings.query_input_type if kind == "query" else settings.document_input_type) or settings.input_type
        # A service that knows no length knows no kinds of text either.
        if row.size_name and (named or row.typed):
            body["input_type"] = named or kind
        return "/embeddings", body

    return Wire(
        row=row,
        model=model,
        base_url=base.removesuffix("/"),
        # Another server may call its own model by a known name.
        dims=size or (row.dims.get(model) if home else None),
        key=_space_key(row, base, model, settings),
        auth=auth,
        request=request,
        rows=lambda answer: members(answer, "data", "embedding"),
    )


def gemini_model(text: str) -> str:
    """Return the model of Gemini that a configuration means."""
    return _without_prefix(_without_prefix(text, "models/"), "gemini/", "google/")


def _gemini(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Return how Gemini is asked: each text with its task, or after a prefix that the second model wants."""
    base = _endpoint(row, settings).partition("/openai")[0]
    model = gemini_model(settings.model or row.model)
    second = model.startswith("gemini-embedding-2")
    size = settings.output_dimensionality
    if size is not None and not _SMALLEST <= size <= _LARGEST:
        why = f"{model} makes vectors of {_SMALLEST} to {_LARGEST} numbers, not {size}."
        raise ProviderFailure(Cause.REFUSED, why, "Change outputDimensionality, or leave it out.")
    size = size or (_LARGEST if second else None)
    sized = {"outputDimensionality": size} if size else {}

    def content(text: str, kind: Kind) -> dict[str, object]:
        task = {"taskType": _TASKS[kind]}
        parts: list[object] = [{"text": str(text)}]
        if isinstance(text, MediaText):
            mime, data = text.load()
            parts.append({"inlineData": {"mimeType": mime, "data": base64.b64encode(data).decode("ascii")}})
            task = {} if model == MEDIA[0] else task
        elif second:
            parts, task = [{"text": _PREFIXES[kind] + text}], {}
        return {"content": {"parts": parts}, **task, **sized}

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        if kind == "query" and len(texts) == 1:
            return f"/models/{model}:embedContent", content(texts[0], kind)
        requests = [{**content(text, kind), "model": f"models/{model}"} for text in texts]
        return f"/models/{model}:batchEmbedContents", {"requests": requests}

    def rows(answer: object) -> list[object]:
        if isinstance(answer, dict) and "embedding" in answer:
            answer = {"embeddings": [answer["embedding"]]}
        return members(answer, "embeddings", "values")

    return Wire(
        row=row,
        model=model,
        base_url=base.removesuffix("/"),
        dims=size or (row.dims.get(model) if base == row.base_url else None),
        max_input_bytes=8000 if second else 2048,
        key=fingerprint(provider="gemini", baseUrl=base, model=model, **sized, headers=_listed(settings.headers)),
        auth=tuple(map(_gemini_auth, _keys(row, settings))),
        request=request,
        rows=rows,
    )


def _gemini_auth(key: str) -> Headers:
    """Return the header of a key, which may be a token in JSON."""
    try:
        parsed = json.loads(key) if key.startswith("{") else None
    except ValueError:
        parsed = None
    token = parsed.get("token") if isinstance(parsed, dict) else None
    return {"Authorization": f"Bearer {token}"} if isinstance(token, str) else {"x-goog-api-key": key}


def _ollama(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Describe Ollama, whose vectors are cut to `output_dimensionality` as OpenClaw 2026.9.6 does."""
    base = re.sub(r"/v1$", "", _endpoint(row, settings).rstrip("/"), flags=re.IGNORECASE)
    model = _without_prefix(settings.model or row.model, "ollama/")
    around = next((form for start, form in _OLLAMA_QUERIES.items() if model.rpartition("/")[2].startswith(start)), "{}")
    size = settings.output_dimensionality

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        worded = [around.replace("{}", text, 1) if kind == "query" else text for text in texts]
        # Refused as too long, a text is embedded in parts; by itself the server would cut it without a word.
        return "/api/embed", {"model": model, "input": worded, "truncate": False}

    return Wire(
        row=row,
        model=model,
        base_url=base,
        dims=size,
        key=_space_key(row, base, model, settings),
        auth=_bearers(_keys(row, settings)),
        request=request,
        rows=lambda answer: [each[:size] if isinstance(each, list) else each for each in members(answer, "embeddings")],
    )
