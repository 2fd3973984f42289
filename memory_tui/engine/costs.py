"""The cost of an index run before it starts. It counts texts, hosts and tokens, and gives the price."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import Struct

from memory_tui.core import secret_finder
from memory_tui.core.errors import Unreadable
from memory_tui.index import batch_jobs, embedding
from memory_tui.index.freshness import recipe_of
from memory_tui.index.index_write import NewFile
from memory_tui.index.note_rows import cut
from memory_tui.index.store import Store
from memory_tui.plan import Plan
from memory_tui.providers import registry
from memory_tui.providers.base import Identity
from memory_tui.providers.chain import ProviderPreview
from memory_tui.providers.options import BatchOptions
from memory_tui.workspace import roots
from memory_tui.workspace.scan import Scan

_CUT_PER_SECOND = 2_000_000
"""Bytes a second that are read, cut and written where nothing was measured yet."""
_EMBEDDED_PER_SECOND = {"builtin": 5_000.0, "scripted": 5_000.0, "local": 20.0, "onnx": 10.0}
"""Texts a second by provider where nothing was measured yet; others are remote."""
_REMOTE_PER_SECOND = 100.0


class Flagged(Struct, frozen=True):
    """A chunk that looks like it holds a secret: where, and of which kinds. The secret itself is not here."""

    path: str
    start_line: int
    end_line: int
    kinds: tuple[str, ...]


class Forecast(Struct, frozen=True):
    """What the next index run would do with the provider that is used, or that waits for the person's word.

    `files` and `chunks` are all there are; of the distinct texts `cached` have a vector already, `waiting` were sent
    with a batch job, `withheld` are kept back, and `send` are left for the provider, with about `tokens` tokens and
    `bytes` UTF-8 bytes. `usd` is their price by the list prices of `prices_of`, None when that is unknown; `batch_usd`
    that of the batch jobs which they would go with, None where they go directly. `elsewhere` tells whether they leave
    this machine, `approved` whether they may. `flagged` look like secrets; with `withholding` they are not sent.
    """

    provider: str
    model: str
    host: str
    elsewhere: bool
    approved: bool
    takes_secrets: bool
    files: int
    chunks: int
    cached: int
    waiting: int
    withheld: int
    send: int
    tokens: int
    bytes: int
    usd: float | None
    usd_per_million: float | None
    batch_usd: float | None
    prices_of: str
    withholding: bool
    flagged: tuple[Flagged, ...]
    unreadable: tuple[tuple[str, str], ...]


def forecast(plan: Plan, store: Store, seen: Scan, preview: ProviderPreview, jobs: BatchOptions) -> Forecast:
    """Read and cut every note, look up what is cached, and look for secrets; seconds for ten thousand chunks."""
    unreadable: list[tuple[str, str]] = []
    texts: dict[str, str] = {}
    flagged: list[Flagged] = []
    secret: set[str] = set()
    files = chunks = 0
    withholding = not preview.takes_secrets and plan.settings.on("remote.withholdSecrets")
    for note in _cut(plan, seen, preview, unreadable):
        files += 1
        for chunk in note.chunks:
            chunks += not chunk.occurrence
            texts[chunk.hash] = chunk.text
            if not preview.takes_secrets and not chunk.occurrence and (kinds := secret_finder.kinds(chunk.text)):
                flagged.append(Flagged(note.path, chunk.start_line, chunk.end_line, kinds))
                secret.add(chunk.hash)
    cached = store.known_hashes(preview.provider, preview.model, preview.key, list(texts))
    cached |= embedding.shared_hashes(plan.sibling, preview.identity, texts.keys() - cached)
    waiting = batch_jobs.sent(store, (preview.provider, preview.model, preview.key)) & (texts.keys() - cached)
    passed_over = cached | waiting | embedding.known_rejected(store, preview.identity, list(texts))
    lacking = [digest for digest in texts if digest not in passed_over]
    send = [texts[digest] for digest in lacking if not (withholding and digest in secret)]
    count = sum(map(registry.about_tokens, send))
    each = _per_million(preview)
    usd = None if each is None else each * count / 1e6
    batches = jobs.enabled and preview.provider in registry.BATCHING and len(send) >= jobs.least
    return Forecast(
        provider=preview.provider,
        model=preview.model,
        host=preview.host,
        elsewhere=preview.elsewhere,
        approved=preview.approved,
        takes_secrets=preview.takes_secrets,
        files=files,
        chunks=chunks,
        cached=len(cached),
        waiting=len(waiting),
        withheld=len(lacking) - len(send),
        send=len(send),
        tokens=count,
        bytes=sum(len(text.encode("utf-8", "replace")) for text in send),
        usd=usd,
        usd_per_million=each,
        batch_usd=usd * registry.row(preview.provider).batch_price if batches and usd is not None else None,
        prices_of=registry.PRICES_AS_OF,
        withholding=withholding,
        flagged=tuple(flagged),
        unreadable=tuple(unreadable),
    )


def _cut(plan: Plan, seen: Scan, preview: ProviderPreview, unreadable: list[tuple[str, str]]) -> Iterator[NewFile]:
    recipe = recipe_of(plan.roots, plan.settings, preview.identity, preview.max_input_bytes)
    for note in seen.found:
        try:
            yield cut(roots.read(note), note.source, recipe, time.time())
        except Unreadable as error:
            unreadable.append((note.path, error.message))


class Estimate(Struct, frozen=True):
    """The cost of a rebuild: `chunks` are expected by what is indexed now, `to_embed` of them are not in the cache.

    `seconds` goes by the speed of the last sync where one was measured (`measured`). `usd` is 0 on this machine, and
    None where the price of the model is not known.
    """

    files: int
    bytes: int
    chunks: int
    to_embed: int
    tokens: int
    seconds: float
    measured: bool
    usd: float | None
    model: str


def estimate(
    plan: Plan,
    store: Store,
    seen: Scan,
    preview: ProviderPreview | None,
    identity: Identity | None,
    speed: float | None = None,
) -> Estimate:
    """What making the index of the notes of `seen` anew costs, without reading them.

    `preview` is of the provider that would embed, None without one; `identity` is the space of its vectors, as far as
    that is known; `speed` is in texts a second, as last measured. Vectors in the cache are used again.
    """
    size = sum(note.size for note in seen.found)
    tokens_each, overlap = plan.settings.whole("chunking.tokens"), plan.settings.whole("chunking.overlap")
    step = max(1, tokens_each - overlap) * registry.CHARACTERS_A_TOKEN
    recipe = store.recipe()
    same_cut = recipe is not None and (recipe.chunk_tokens, recipe.chunk_overlap) == (tokens_each, overlap)
    chunks = (
        max(store.counts().chunks, len(seen.found))
        if same_cut
        else sum(max(1, -(-note.size // step)) for note in seen.found)
    )
    embeds = preview is not None and preview.approved
    reused = store.reusable(identity) if same_cut and identity else 0
    to_embed = max(0, chunks - reused) if embeds else 0
    characters = size // max(1, chunks) + overlap * registry.CHARACTERS_A_TOKEN
    count = to_embed * characters // registry.CHARACTERS_A_TOKEN
    rate = speed or _EMBEDDED_PER_SECOND.get(preview.provider if preview else "", _REMOTE_PER_SECOND)
    each = _per_million(preview) if preview else 0.0
    return Estimate(
        len(seen.found),
        size,
        chunks,
        to_embed,
        count,
        size / _CUT_PER_SECOND + to_embed / rate,
        speed is not None,
        None if each is None else each * count / 1e6,
        preview.model if preview else "",
    )


def _per_million(preview: ProviderPreview) -> float | None:
    """US dollars for a million tokens; 0 where no text leaves this machine, None where the price is not known."""
    return registry.price_per_million(preview.provider, preview.model, preview.host) if preview.elsewhere else 0.0
