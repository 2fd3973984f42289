"""Say how each service is asked: its address and headers, the body of a request, the vectors in its answer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from memory_tui.providers.base import Kind, MediaText, fingerprint, members
from memory_tui.providers.failures import Cause, ProviderFailure
from memory_tui.providers.options import ProviderSettings, host_of
from memory_tui.secrets.discreet import Discreet

Headers = Mapping[str, str]
OTHERS_BYTES = 200_000
"""Bytes of a request to a server whose limits nobody documents; of one that is refused the halves are sent."""
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


class ProviderRow(Struct, frozen=True):
    """One provider. With a `shape` text is sent to it; any other embeds on this machine, `slow` where a call takes
    seconds.

    `variables` name its API keys in the environment, one that ends in `_KEYS` several; a `keyless` one is asked without
    any too. `account` is its id in OpenClaw's files. `model` is its usual model, `dims` has the lengths of the vectors
    and `prices` US dollars for a million tokens, of its own models, of which a batch job costs the part `batch_price`,
    0 where it has none. `auto` is its place in what the provider `auto` tries, 0 for never. The length of vectors is
    asked for as `size_name`, where it has one; a `typed` one is told whether a text is a note or a query. A request
    holds at most `most_items` texts and `most_bytes` of UTF-8.
    """

    name: str
    label: str
    shape: str = ""
    base_url: str = ""
    variables: tuple[str, ...] = ()
    account: str = ""
    model: str = ""
    dims: Mapping[str, int] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    batch_price: float = 0.0
    auto: int = 0
    slow: bool = False
    keyless: bool = False
    size_name: str = "dimensions"
    typed: bool = False
    most_items: int = 2048
    most_bytes: int = OTHERS_BYTES

    @property
    def host(self) -> str:
        """The provider's own host; empty where none is asked."""
        return host_of(self.base_url)


class Wire(Discreet, frozen=True):
    """How to ask: `request` makes path and body for some texts, `rows` finds the vectors in an answer (Malformed).

    `key` is the fingerprint of the space. `dims` is None where only an answer can tell. `auth` holds the headers of
    each key. A request holds at most `most_items` texts with `most_bytes` of UTF-8: a token is a byte at least, so
    that a limit in tokens holds too.
    """

    HIDDEN = ("base_url", "headers", "auth")

    name: str
    label: str
    model: str
    base_url: str
    key: str
    dims: int | None
    request: Callable[[Sequence[str], Kind], tuple[str, Mapping[str, object]]]
    rows: Callable[[object], list[object]]
    headers: Headers
    auth: tuple[Headers, ...]
    max_input_bytes: int = 8000
    most_items: int = 2048
    most_bytes: int = OTHERS_BYTES
    concurrency: int = 64
    query_seconds: float = 10.0
    batch_seconds: float = 120.0


def wire(row: ProviderRow, settings: ProviderSettings) -> Wire:
    """Describe how `row` is asked as `settings` say; ask nobody. Raises ProviderFailure for what they lack."""
    return {"openai": _openai, "gemini": _gemini, "ollama": _ollama}[row.shape](row, settings)


# --- what the services have in common --------------------------------------------------------------------------------


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


def _keys(row: ProviderRow, settings: ProviderSettings, *, keyless: bool = False) -> tuple[str, ...]:
    """Return the configured keys, else those in the environment, else the spare ones; a configured one may name a
    variable. Raises ProviderFailure for what cannot be a key, and for none unless that is enough.
    """
    configured = [key.reveal() for key in settings.api_keys]
    keys = [settings.env(key) or "" if key in row.variables else key for key in configured]
    for variable in () if any(keys) else row.variables:
        value = settings.env(variable) or ""
        keys += re.split(r"[\s,;]+", value) if variable.endswith("_KEYS") else [value]
    usable = [key.strip() for key in keys if key.strip()]
    usable = usable or [key.reveal().strip() for key in settings.spare_keys if key.reveal().strip()]
    if not all(key.isascii() and key.isprintable() for key in usable):
        why = f"The API key of {row.name} holds characters that no key has."
        raise ProviderFailure(Cause.BAD_KEY, why, "Copy it again, without quotes or line breaks.")
    in_headers = {"authorization", "x-goog-api-key" if row.shape == "gemini" else "authorization"}
    if not usable and not keyless and in_headers.isdisjoint(name.lower() for name in settings.headers):
        why = f'No API key found for provider "{row.account}".'
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
    keys = _keys(row, settings, keyless=row.keyless)
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
        name=row.name,
        label=row.label,
        model=model,
        base_url=base.removesuffix("/"),
        # Another server may call its own model by a known name.
        dims=size or (row.dims.get(model) if home else None),
        key=_space_key(row, base, model, settings),
        headers=settings.headers,
        auth=_bearers(keys),
        request=request,
        rows=lambda answer: members(answer, "data", "embedding"),
        most_items=row.most_items,
        most_bytes=row.most_bytes,
    )


def gemini_model(text: str) -> str:
    """Return the model of Gemini that a configuration means."""
    return _without_prefix(_without_prefix(text, "models/"), "gemini/", "google/")


def _gemini(row: ProviderRow, settings: ProviderSettings) -> Wire:
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
        name=row.name,
        label=row.label,
        model=model,
        base_url=base.removesuffix("/"),
        dims=size or (row.dims.get(model) if base == row.base_url else None),
        max_input_bytes=8000 if second else 2048,
        key=fingerprint(provider="gemini", baseUrl=base, model=model, **sized, headers=_listed(settings.headers)),
        headers=settings.headers,
        auth=tuple(map(_gemini_auth, _keys(row, settings))),
        request=request,
        rows=rows,
        most_items=row.most_items,
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
        name=row.name,
        label=row.label,
        model=model,
        base_url=base,
        dims=size,
        key=_space_key(row, base, model, settings),
        headers=settings.headers,
        auth=_bearers(_keys(row, settings, keyless=True)),
        request=request,
        rows=lambda answer: [row[:size] if isinstance(row, list) else row for row in members(answer, "embeddings")],
        most_items=row.most_items,
        # It is mostly on this machine, where a request costs nothing and a long one holds up questions.
        most_bytes=row.most_bytes,
        concurrency=1,
        batch_seconds=600.0,
    )
