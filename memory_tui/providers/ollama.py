"""Ask Ollama for embeddings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memory_tui.providers.base import Kind, members
from memory_tui.providers.options import ProviderSettings, Wire, bearers, without_prefix
from memory_tui.providers.registry import ProviderRow

_QUERIES = {
    "qwen3-embedding": "Instruct: Given a user query, retrieve relevant memory notes and documents\nQuery:{}",
    "nomic-embed-text": "search_query: {}",
    "mxbai-embed-large": "Represent this sentence for searching relevant passages: {}",
}
"""What some models want around a question, by the beginning of their name."""


def ollama(settings: ProviderSettings) -> Wire:
    """Describe Ollama; a key is optional, and vectors are cut to `output_dimensionality` (as OpenClaw 2026.9.6 does).

    Raises ProviderFailure.
    """
    base = re.sub(r"/v1$", "", OLLAMA.endpoint(settings).rstrip("/"), flags=re.IGNORECASE)
    model = without_prefix(settings.model or OLLAMA.model, "ollama/")
    around = next((form for start, form in _QUERIES.items() if model.rpartition("/")[2].startswith(start)), "{}")
    size = settings.output_dimensionality

    def request(texts: Sequence[str], kind: Kind) -> tuple[str, Mapping[str, object]]:
        worded = [around.replace("{}", text, 1) if kind == "query" else text for text in texts]
        # Refused as too long, a text is embedded in parts; by itself the server would cut it without a word.
        return "/api/embed", {"model": model, "input": worded, "truncate": False}

    def rows(answer: object) -> list[object]:
        return [row[:size] if isinstance(row, list) else row for row in members(answer, "embeddings")]

    return Wire(
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
        rows=rows,
        most_items=64,
        # It is mostly on this machine, where a request costs nothing and a long one holds up questions.
        most_bytes=8_000,
        concurrency=1,
        batch_seconds=600.0,
    )


OLLAMA = ProviderRow(
    "ollama",
    "Ollama",
    wire=ollama,
    base_url="http://127.0.0.1:11434",
    variables=("OLLAMA_API_KEY",),
    model="nomic-embed-text",
)
