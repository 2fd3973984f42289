"""What an index run would send where, before it does: how much, at what price, and what it would keep back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from memory_tui.embed import prices
from memory_tui.embed.links import Outlook
from memory_tui.errors import Unreadable
from memory_tui.index import jobs
from memory_tui.index.cutting import cut
from memory_tui.index.store import Store
from memory_tui.index.sync import recipe_of
from memory_tui.index.writes import NewFile
from memory_tui.launch import Plan
from memory_tui.text import secrets
from memory_tui.workspace import sources
from memory_tui.workspace.roots import Scan


@dataclass(frozen=True, slots=True)
class Flagged:
    """A chunk that looks like it holds a secret: where, and of which kinds. The secret itself is not here."""

    path: str
    start_line: int
    end_line: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the next index run would do with the provider that is used, or that waits for the person's word.

    `files` and `chunks` are all there are; of the distinct texts `cached` have a vector already, `waiting` were sent
    with a batch job, `withheld` are kept back, and `send` are left for the provider, with about `tokens` tokens and
    `bytes` UTF-8 bytes. `usd` is their price by the list prices of `prices_of`, None when that is unknown. `elsewhere`
    tells whether they leave this machine, `agreed` whether they may. `flagged` look like secrets; with `withholding`
    they are not sent.
    """

    provider: str
    model: str
    host: str
    elsewhere: bool
    agreed: bool
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
    prices_of: str
    withholding: bool
    flagged: tuple[Flagged, ...]
    unreadable: tuple[tuple[str, str], ...]


def forecast(plan: Plan, store: Store, seen: Scan, outlook: Outlook) -> Forecast:
    """Read and cut every note, look up what is cached, and look for secrets; seconds for ten thousand chunks."""
    unreadable: list[tuple[str, str]] = []
    texts: dict[str, str] = {}
    flagged: list[Flagged] = []
    secret: set[str] = set()
    files = chunks = 0
    withholding = plan.settings.on("remote.withholdSecrets")
    for note in _cut(plan, seen, outlook, unreadable):
        files += 1
        for chunk in note.chunks:
            chunks += not chunk.occurrence
            texts[chunk.hash] = chunk.text
            if outlook.elsewhere and not chunk.occurrence and (kinds := secrets.kinds(chunk.text)):
                flagged.append(Flagged(note.path, chunk.start_line, chunk.end_line, kinds))
                secret.add(chunk.hash)
    cached = store.known_hashes(outlook.provider, outlook.model, outlook.key, list(texts))
    waiting = jobs.sent(store, (outlook.provider, outlook.model, outlook.key)) & (texts.keys() - cached)
    lacking = [digest for digest in texts if digest not in cached and digest not in waiting]
    send = [texts[digest] for digest in lacking if not (withholding and digest in secret)]
    count = sum(map(prices.tokens, send))
    each = prices.per_million(outlook.provider, outlook.model, outlook.host) if outlook.elsewhere else 0.0
    return Forecast(
        provider=outlook.provider, model=outlook.model, host=outlook.host, elsewhere=outlook.elsewhere,
        agreed=outlook.agreed, files=files, chunks=chunks, cached=len(cached), waiting=len(waiting),
        withheld=len(lacking) - len(send), send=len(send),
        tokens=count, bytes=sum(len(text.encode("utf-8", "replace")) for text in send),
        usd=None if each is None else each * count / 1e6, usd_per_million=each, prices_of=prices.AS_OF,
        withholding=withholding, flagged=tuple(flagged), unreadable=tuple(unreadable))


def _cut(plan: Plan, seen: Scan, outlook: Outlook, unreadable: list[tuple[str, str]]) -> Iterator[NewFile]:
    recipe = recipe_of(plan.roots, plan.settings, outlook.identity, outlook.max_input_bytes)
    for found in seen.found:
        try:
            yield cut(sources.read(found), found.source, recipe, time.time())
        except Unreadable as error:
            unreadable.append((found.path, error.message))
