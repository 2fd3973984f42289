"""Servers with OpenAI's wire under the names that OpenClaw 2026.9 has for them, each with an address of its own."""

from __future__ import annotations

import re

from msgspec.structs import replace

from memory_tui.providers.provider_options import OTHERS_BYTES, Kind, ProviderSettings, Wire
from memory_tui.providers.registry import ProviderRow
from memory_tui.providers.wires.openai import compatible, input_type


def _wire(row: ProviderRow, settings: ProviderSettings, *, keyless: bool = True) -> Wire:
    size = settings.output_dimensionality

    def more(kind: Kind) -> dict[str, object]:
        return {**({"dimensions": size} if size else {}), **input_type(settings, kind)}

    return compatible(row, settings, more, size, most_items=2048, most_bytes=OTHERS_BYTES, keyless=keyless)


def _lmstudio(settings: ProviderSettings) -> Wire:
    """LM Studio, whose address may be written with `/v1`, with `/api/v1`, or without either. Raises ProviderFailure."""
    base = (settings.base_url.strip() or LMSTUDIO.base_url).rstrip("/")
    return _wire(LMSTUDIO, replace(settings, base_url=re.sub(r"(/api)?/v1$", "", base, flags=re.IGNORECASE) + "/v1"))


COMPATIBLE: ProviderRow = ProviderRow(
    "openai-compatible", "The OpenAI-compatible server", wire=lambda settings: _wire(COMPATIBLE, settings)
)
LMSTUDIO: ProviderRow = ProviderRow(
    "lmstudio",
    "LM Studio",
    wire=_lmstudio,
    base_url="http://localhost:1234/v1",
    variables=("LM_API_TOKEN",),
    model="text-embedding-nomic-embed-text-v1.5",
)
LLAMA_CPP: ProviderRow = ProviderRow(
    "llama-cpp",
    "llama-server",
    wire=lambda settings: _wire(LLAMA_CPP, settings),
    base_url="http://127.0.0.1:8080/v1",
    variables=("LLAMA_SERVER_API_KEY",),
)
DEEPINFRA: ProviderRow = ProviderRow(
    "deepinfra",
    "DeepInfra",
    wire=lambda settings: _wire(DEEPINFRA, settings, keyless=False),
    base_url="https://api.deepinfra.com/v1/openai",
    variables=("DEEPINFRA_API_KEY",),
    model="BAAI/bge-m3",
    dims={"BAAI/bge-m3": 1024},
)
