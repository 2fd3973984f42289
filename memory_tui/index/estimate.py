"""What making the whole index anew would cost."""

from __future__ import annotations

from dataclasses import dataclass

from memory_tui.embed import prices
from memory_tui.embed.provider import Identity
from memory_tui.index.store import Store
from memory_tui.workspace.roots import Scan

_STEP_CHARACTERS = 4
"""A token counts as four characters, as in chunking."""
_CUT_PER_SECOND = 2_000_000
"""Bytes a second that are read, cut and written where nothing was measured yet."""
_EMBEDDED_PER_SECOND = {"builtin": 5_000.0, "scripted": 5_000.0, "none": 1e9, "local": 20.0}
"""Texts a second by provider where nothing was measured yet; others are remote."""
_REMOTE_PER_SECOND = 100.0

_FREE = frozenset({"builtin", "local", "ollama", "scripted", "none"})


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a rebuild: `chunks` are expected by what is indexed now, `to_embed` of them are not in the cache.

    `seconds` goes by the speed of the last sync where one was measured (`measured`). `dollars` is 0 on this machine,
    and None where the price of the model is not known.
    """

    files: int
    bytes: int
    chunks: int
    to_embed: int
    tokens: int
    seconds: float
    measured: bool
    dollars: float | None
    model: str


def estimate(
    store: Store, scan: Scan, identity: Identity | None, chunk_tokens: int, overlap: int, speed: float | None = None,
) -> Estimate:
    """What a rebuild of the notes of `scan` costs; `speed` is in texts a second, as last measured."""
    size = sum(note.size for note in scan.found)
    step = max(1, chunk_tokens - overlap) * _STEP_CHARACTERS
    recipe = store.recipe()
    same_cut = recipe is not None and (recipe.chunk_tokens, recipe.chunk_overlap) == (chunk_tokens, overlap)
    indexed = store.counts()
    chunks = max(indexed.chunks, len(scan.found)) if same_cut else sum(
        max(1, -(-note.size // step)) for note in scan.found)
    reused = store.value(
        "SELECT count(*) FROM chunks WHERE occurrence = 0 AND hash IN (SELECT hash FROM embedding_cache "
        "WHERE provider = ? AND model = ? AND provider_key = ?)",
        (identity.provider, identity.model, identity.key)) if same_cut and identity else 0
    to_embed = max(0, chunks - int(reused)) if identity is None or identity.dims else 0
    tokens = to_embed * (size // max(1, chunks) + overlap * _STEP_CHARACTERS) // _STEP_CHARACTERS
    provider, model = (identity.provider, identity.model) if identity else ("", "")
    rate = speed or _EMBEDDED_PER_SECOND.get(provider, _REMOTE_PER_SECOND)
    return Estimate(
        len(scan.found), size, chunks, to_embed, tokens, size / _CUT_PER_SECOND + to_embed / rate, speed is not None,
        dollars(provider, model, tokens), model)


def dollars(provider: str, model: str, tokens: int) -> float | None:
    """What it costs to embed `tokens`; None when the price is not known."""
    if provider in _FREE:
        return 0.0
    price = prices.per_million(provider, model)
    return None if price is None else price * tokens / 1e6
