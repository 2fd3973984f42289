"""Ollama's embedding endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memory_tui.providers.base import Malformed, field
from memory_tui.providers.options import Kind, ProviderSettings, Wire, without_prefix
from memory_tui.providers.registry import ProviderRow, bearers

_QUERIES = {
    "qwen3-embedding": "Instruct: Given a user query, retrieve relevant memory notes and documents\nQuery:{}",
    "nomic-embed-text": "search_query: {}",
    "mxbai-embed-large": "Represent this sentence for searching relevant passages: {}",
}
"""What some models want around a question, by the beginning of their name."""


def ollama(settings: ProviderSettings) -> Wire:
    """Ollama; a key is optional, and vectors are cut to `output_dimensionality` (as OpenClaw 2026.9.6 does).

    A server before 0.3 is asked by its older path. Raises ProviderFailure.
    """
    base = re.sub(r"/v1$", "", OLLAMA.endpoint(settings).rstrip("/"), flags=re.IGNORECASE)
    model = without_prefix(settings.model or OLLAMA.model, "ollama/")
    around = next((form for start, form in _QUERIES.items() if model.rpartition("/")[2].startswith(start)), "{}")

    def worded(text: str, kind: Kind) -> str:
        return around.replace("{}", text, 1) if kind == "query" else text

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        # Refused as too long, a text is embedded in parts; by itself the server would cut it without a word.
        return "/api/embed", {"model": model, "input": [worded(text, kind) for text in texts], "truncate": False}

    def older_request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        return "/api/embeddings", {"model": model, "prompt": worded(texts[0], kind)}

    size = settings.output_dimensionality

    def cut(found: list[object]) -> list[object]:
        return [row[:size] if isinstance(row, list) else row for row in found]

    new = Wire(
        name="ollama",
        label="Ollama",
        model=model,
        base_url=base,
        dims=size,
        max_input_bytes=8000,
        key=OLLAMA.plain_key(base, model, settings),
        headers=settings.headers,
        auth=bearers(OLLAMA.keys(settings)),
        request=request,
        rows=lambda answer: cut(rows(answer)),
        most_items=64,
        # It is mostly on this machine, where a request costs nothing and a long one holds up questions.
        most_bytes=8_000,
        concurrency=1,
        batch_seconds=600.0,
    )
    older = replace(new, request=older_request, rows=lambda answer: cut(older_rows(answer)), most_items=1)
    return replace(new, older=older)


def rows(answer: object) -> list[object]:
    """The vectors in `{embeddings: [[...]]}`. Raises Malformed."""
    return field(answer, "embeddings")


def older_rows(answer: object) -> list[object]:
    """The one vector in `{embedding: [...]}`. Raises Malformed."""
    if not isinstance(answer, dict) or "embedding" not in answer:
        raise Malformed("JSON that has no embedding")
    return [answer["embedding"]]


OLLAMA = ProviderRow(
    "ollama",
    "Ollama",
    wire=ollama,
    base_url="http://127.0.0.1:11434",
    variables=("OLLAMA_API_KEY",),
    model="nomic-embed-text",
)
