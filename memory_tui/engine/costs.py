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
from memory_tui.providers.base import Identity
from memory_tui.providers.chain import ChainMember
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


def forecast(plan: Plan, store: Store, seen: Scan, member: ChainMember) -> Forecast:
    """Read and cut every note, look up what is cached, and look for secrets; seconds for ten thousand chunks.

    Raises ProviderError for what the provider lacks but approval.
    """
    space, facts, jobs = member.space(), registry.row(member.name), member.settings.jobs
    unreadable: list[tuple[str, str]] = []
    texts: dict[str, str] = {}
    flagged: list[Flagged] = []
    secret: set[str] = set()
    files = chunks = 0
    withholding = not member.takes_secrets and plan.settings.on("remote.withholdSecrets")
    for note in _cut(plan, seen, space, member.max_input_bytes, unreadable):
        files += 1
        for chunk in note.chunks:
            chunks += not chunk.occurrence
            texts[chunk.hash] = chunk.text
            if not member.takes_secrets and not chunk.occurrence and (kinds := secret_finder.kinds(chunk.text)):
                flagged.append(Flagged(note.path, chunk.start_line, chunk.end_line, kinds))
                secret.add(chunk.hash)
    cached = set(store.cached(space, list(texts)))
    cached |= embedding.shared_hashes(plan.sibling, space, texts.keys() - cached)
    waiting = batch_jobs.sent(store, (space.provider, space.model, space.key)) & (texts.keys() - cached)
    passed_over = cached | waiting | embedding.known_rejected(store, space, list(texts))
    lacking = [digest for digest in texts if digest not in passed_over]
    send = [texts[digest] for digest in lacking if not (withholding and digest in secret)]
    tokens = sum(map(registry.about_tokens, send))
    # Nothing is paid where no text leaves this machine.
    each = registry.price_per_million(space.provider, space.model, member.host) if member.elsewhere else 0.0
    usd = None if each is None else each * tokens / 1e6
    batches = jobs.enabled and facts.batch_price and len(send) >= jobs.least
    return Forecast(
        provider=space.provider,
        model=space.model,
        host=member.host,
        elsewhere=member.elsewhere,
        approved=not member.lacks_approval,
        takes_secrets=member.takes_secrets,
        files=files,
        chunks=chunks,
        cached=len(cached),
        waiting=len(waiting),
        withheld=len(lacking) - len(send),
        send=len(send),
        tokens=tokens,
        bytes=sum(len(text.encode("utf-8", "replace")) for text in send),
        usd=usd,
        usd_per_million=each,
        batch_usd=usd * facts.batch_price if batches and usd is not None else None,
        prices_of=registry.PRICES_AS_OF,
        withholding=withholding,
        flagged=tuple(flagged),
        unreadable=tuple(unreadable),
    )


def _cut(
    plan: Plan, seen: Scan, space: Identity, most_bytes: int, unreadable: list[tuple[str, str]]
) -> Iterator[NewFile]:
    recipe = recipe_of(plan.roots, plan.settings, space, most_bytes)
    for note in seen.notes:
        try:
            yield cut(roots.read(note), note.source, recipe, time.time())
        except Unreadable as error:
            unreadable.append((note.path, error.message))
