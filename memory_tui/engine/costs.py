"""The cost of an index run before it starts. It counts texts, hosts and tokens, and gives the price."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import Struct

from memory_tui.errors import Unreadable
from memory_tui.index import batch_jobs, embedding
from memory_tui.index.freshness import recipe_of
from memory_tui.index.index_write import NewFile
from memory_tui.index.note_rows import cut
from memory_tui.index.store import Store
from memory_tui.plan import Plan
from memory_tui.providers import registry
from memory_tui.providers.chain import ProviderPreview
from memory_tui.providers.options import BatchOptions
from memory_tui.secrets import finder as secret_finder
from memory_tui.workspace import roots
from memory_tui.workspace.scan import Scan


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
    for note in seen.notes:
        try:
            yield cut(roots.read(note), note.source, recipe, time.time())
        except Unreadable as error:
            unreadable.append((note.path, error.message))


def _per_million(preview: ProviderPreview) -> float | None:
    """US dollars for a million tokens; 0 where no text leaves this machine, None where the price is not known."""
    return registry.price_per_million(preview.provider, preview.model, preview.host) if preview.elsewhere else 0.0
