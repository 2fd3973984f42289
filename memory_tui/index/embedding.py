"""The vectors of texts: from the cache of an index, or from the provider, and kept there as soon as they are made."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Self

import numpy as np

from memory_tui.embed.failure import OF_THE_TEXT, ProviderFailure, state_of
from memory_tui.embed.provider import Identity, Provider, Vectors
from memory_tui.errors import Cancelled, MemoryTuiError, ProviderError
from memory_tui.index import refusals, writes
from memory_tui.index.store import Store
from memory_tui.index.withheld import HERE, Manner, forgive, sendable

Answer = Callable[[], Vectors]
Sent = tuple[Mapping[str, str], list[str], "Future[Vectors] | None"]
BATCH = 64
"""Rows a transaction writes (more when one file has more)."""


class Embedder:
    """Finds or makes vectors in the space of `identity`; `check` raises Cancelled when the work is given up.

    A provider that fails is not asked again; `error` says why. A text that it does not take is passed over, and
    remembered.
    """

    def __init__(
        self,
        store: Store,
        identity: Identity,
        provider: Provider | None,
        check: Callable[[], None],
        manner: Manner = HERE,
    ) -> None:
        self.embedded = 0
        """Texts that the provider was asked for."""
        self.error = ""
        self._store = store
        self._identity = identity
        self._provider = provider
        self._check = check
        self._manner = manner
        if provider is not None and not manner.withheld:
            forgive(store)

    @property
    def working(self) -> bool:
        """Whether there is a provider that has not failed."""
        return self._provider is not None

    def ids(self, texts: Mapping[str, str], *, ask: bool = True) -> tuple[dict[str, int], frozenset[str]]:
        """Embedding ids of `texts` by hash, and which of them the provider was asked for.

        Some are missing when they are withheld, when it must not be asked, and when it fails.
        """
        if not self._identity.dims:
            return {}, frozenset()
        known = self._store.cached(self._identity, list(texts))
        asked: dict[str, int] = {}
        lacking = self._lacking(texts, known)
        for batch in _chunked(lacking if ask else (), self._manner.texts):
            if self._provider is None:
                break
            self._check()
            asked |= self._take(batch, texts, self._asking(batch, texts))
        self.embedded += len(asked)
        return known | asked, frozenset(asked)

    def stream(self, pieces: Iterable[Mapping[str, str]]) -> Iterator[dict[str, int]]:
        """The embedding ids of each of `pieces` in turn; a slow provider is asked while the next ones come."""
        asked: set[str] = set()
        waiting: deque[Sent] = deque()
        with _Ahead(self._manner.later) as ahead:
            try:
                for texts in pieces:
                    known = self._store.cached(self._identity, list(texts))
                    batch = [digest for digest in self._lacking(texts, known) if digest not in asked]
                    asked.update(batch)
                    self._check()
                    sent = ahead.submit(self._asking(batch, texts)) if batch and self._provider is not None else None
                    waiting.append((texts, batch, sent))
                    while waiting and (waiting[0][2] is None or waiting[0][2].done()):
                        yield self._stored(*waiting.popleft())
                while waiting:
                    self._check()
                    yield self._stored(*waiting.popleft())
            except Cancelled:
                self._keep_sent(waiting)
                raise

    def _keep_sent(self, waiting: Iterable[Sent]) -> None:
        """Keep what was sent, and will be paid for, although the work is given up; Cancelled when the engine closes."""
        for texts, batch, sent in waiting:
            if sent is not None and not sent.cancel():
                self._stored(texts, batch, sent)

    def _stored(self, texts: Mapping[str, str], batch: Sequence[str], sent: Future[Vectors] | None) -> dict[str, int]:
        if sent is not None:
            self.embedded += len(self._take(batch, texts, sent.result))
        return self._store.cached(self._identity, list(texts))

    def _lacking(self, texts: Mapping[str, str], known: Mapping[str, int]) -> list[str]:
        """Whose vector the provider may be asked for; what is withheld from it is noted, what it refused left out."""
        lacking = [digest for digest in texts if digest not in known]
        if lacking and self.working:
            refused = refusals.known(self._store, self._identity, lacking)
            lacking = [digest for digest in lacking if digest not in refused]
        return sendable(self._store, texts, lacking) if self._manner.withheld and self.working else lacking

    def _asking(self, batch: Sequence[str], texts: Mapping[str, str]) -> Answer:
        """Asks for the vectors of `batch` when it is called."""
        assert self._provider is not None
        return partial(self._provider.embed, [texts[digest] for digest in batch], "document")

    def _take(self, batch: Sequence[str], texts: Mapping[str, str], answer: Answer) -> dict[str, int]:
        """Store what comes back for `batch`; of a call that fails what was made before."""
        try:
            vectors = answer()
            check_vectors(vectors, len(batch), self._identity)
        except ProviderError as failure:
            self.error = failure.message
            made = self._keep_paid(batch, failure)
            if state_of(failure) not in OF_THE_TEXT:
                self._provider = None
            elif len(batch) == 1 and not made:
                refusals.note(self._store, self._identity, batch[0], failure.message)
            else:
                # It was refused as a whole, or in part: which texts are to blame, each one by itself tells.
                for digest in batch:
                    if digest not in made and self._provider is not None:
                        made |= self._take([digest], texts, self._asking([digest], texts))
            return made
        return writes.add_embeddings(self._store, self._identity, batch, vectors)

    def _keep_paid(self, batch: Sequence[str], failure: ProviderError) -> dict[str, int]:
        """Keep what was made of a batch before it failed."""
        done = failure.done if isinstance(failure, ProviderFailure) else {}
        if not done:
            return {}
        places = sorted(done)
        vectors = np.stack([np.asarray(done[place], np.float32) for place in places])
        try:
            check_vectors(vectors, len(places), self._identity)
        except ProviderError as error:
            self.error = error.message
            return {}
        return writes.add_embeddings(self._store, self._identity, [batch[place] for place in places], vectors)


class _Ahead:
    """Calls functions in their order: two at a time on threads of their own for who is `slow`, otherwise at once.

    With two the provider has work while the answer to the first one is taken apart.
    """

    def __init__(self, slow: bool) -> None:
        self._pool = ThreadPoolExecutor(2, "embed-ahead") if slow else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def submit(self, ask: Answer) -> Future[Vectors]:
        """What `ask` answers, or will answer."""
        if self._pool is not None:
            return self._pool.submit(ask)
        answer: Future[Vectors] = Future()
        try:
            answer.set_result(ask())
        except MemoryTuiError as error:
            answer.set_exception(error)
        return answer


def check_vectors(vectors: object, count: int, identity: Identity) -> None:
    """Raises ProviderError for an answer that must not be stored."""
    if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.shape != (count, identity.dims):
        raise ProviderError(
            f"{identity.provider} answered with vectors of another shape than {count} x {identity.dims}.",
            "Check the model's name and dimensions.",
        )
    if not np.isfinite(vectors).all():
        raise ProviderError(f"{identity.provider} answered with vectors that hold no numbers.", "Check the model.")


def _chunked(items: Iterable[str], size: int) -> Iterator[list[str]]:
    waiting = iter(items)
    while part := list(islice(waiting, size)):
        yield part
