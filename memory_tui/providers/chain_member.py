"""A chain member is one provider with its health. Its failures and its pauses are part of that."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from memory_tui.core.errors import ProviderError
from memory_tui.providers import registry
from memory_tui.providers.failures import Cause, LastFailure, ProviderFailure, passed_since, state_of
from memory_tui.providers.provider_options import (
    Kind,
    ProviderSettings,
    may_send,
    on_this_machine,
    require_approval,
    takes_secrets,
)

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.http_provider import Breaker
    from memory_tui.providers.provider_protocol import Health, Identity, Provider, Vectors

Role = Literal["chosen", "automatic", "fallback"]


class Traffic(Struct, frozen=True):
    """What a provider was given in some time: calls, how many failed, texts, their UTF-8 bytes, about their tokens."""

    calls: int = 0
    failed: int = 0
    texts: int = 0
    bytes: int = 0
    tokens: int = 0

    def with_call(self, texts: Sequence[str], *, failed: bool) -> Traffic:
        """This, and one call more."""
        return Traffic(
            self.calls + 1,
            self.failed + failed,
            self.texts + len(texts),
            self.bytes + sum(len(text.encode("utf-8", "replace")) for text in texts),
            self.tokens + sum(map(registry.about_tokens, texts)),
        )


class MemberState(Struct, frozen=True):
    """One provider of the chain for the screen.

    `state` is "in use", "waiting" (its turn has not come), "passed over" (it lacks something), "failing" (in use, and
    its last call failed), "paused" (the same, not asked before `next_try`, in epoch seconds) or "given up" (another
    one has its place). `error` and `next_step` are about its last failure, `failed_at` (epoch seconds) is when it was.
    `last_ms` is the time of its last call. `approved` tells whether notes may be sent to `host`; nothing has to be
    approved for this machine, where `host` is empty or loopback.
    """

    name: str
    role: Role
    state: Literal["in use", "waiting", "passed over", "failing", "paused", "given up"]
    detail: str
    host: str = ""
    error: str = ""
    cause: str = ""
    next_step: str = ""
    next_try: float | None = None
    failed_at: float | None = None
    last_ms: float = 0.0
    calls: int = 0
    texts: int = 0
    traffic: Traffic = Traffic()
    """All of this process; `today` is the part of today."""
    today: Traffic = Traffic()
    model: str = ""
    approved: bool = True
    worked: bool = False
    """Whether it has answered this process, a test call included."""


class ProviderPreview(Struct, frozen=True):
    """What can be told of a provider before it is asked anything: which one, where, and the space of its vectors.

    `key` is empty for a local model, and `dims` 0 where only an answer tells. `elsewhere` says that text leaves this
    machine, `approved` that it may, `takes_secrets` that this holds for text that looks like a secret.
    """

    provider: str
    model: str
    host: str
    key: str
    dims: int
    max_input_bytes: int
    elsewhere: bool
    approved: bool
    takes_secrets: bool

    @property
    def identity(self) -> Identity:
        """The space, as far as it is known."""
        from memory_tui.providers.provider_protocol import Identity

        return Identity(self.provider, self.model, self.key, self.dims)


class ChainMember:
    """A provider of the chain; `embed` and `identity` report to the chain how they went. Safe for any thread."""

    def __init__(
        self,
        name: str,
        role: Role,
        settings: ProviderSettings,
        on_failure: Callable[[ChainMember, ProviderError], bool],
    ) -> None:
        self.name, self.role, self.settings = name, role, settings
        self.error: ProviderError | None = None
        self.failed_at: float | None = None
        self.failed_before: LastFailure | None = None
        """How it failed when an earlier process asked it; None once it has answered."""
        self.worked = False
        self.calls = self.texts = 0
        self._counting = threading.Lock()
        self._traffic = self._today = Traffic()
        self._day = dt.date.today()
        self._on_failure = on_failure
        self._provider: Provider | None = None
        self._batches: BatchService | None = None

    @cached_property
    def host(self) -> str:
        """Where it sends text; empty when it sends none, or lacks too much to be asked."""
        try:
            return registry.host(self.name, self.settings)
        except ProviderError:
            return ""

    @property
    def remote(self) -> bool:
        """Whether text leaves this machine."""
        host = self.host
        return bool(host) and not on_this_machine(host)

    @property
    def takes_secrets(self) -> bool:
        """Whether it may get text that looks like a secret."""
        return takes_secrets(self.host, self.settings)

    @property
    def slow(self) -> bool:
        """Whether a call takes seconds of this machine."""
        return self.name in registry.TABLE and registry.row(self.name).slow

    @property
    def failed_latest(self) -> float:
        """When it failed last, in epoch seconds; 0 where it has no pauses."""
        return self._breaker.opened_at if self._breaker else 0.0

    @property
    def next_try(self) -> float | None:
        """Epoch second before which it is not asked."""
        return self._breaker.next_try if self._breaker else None

    def make(self) -> None:
        """Make the provider, once. Raises ProviderError, also when nobody approved it."""
        require_approval(self.name, self.host, self.settings)
        self._create()

    def batches(self) -> BatchService | None:
        """Its batch service, where it has one and it is switched on; asks nobody. Raises ProviderError."""
        if self._batches is None and self.settings.jobs.enabled:
            self._batches = registry.batch_service(self.name, self.settings)
        return self._batches

    def lacks(self) -> ProviderError | None:
        """Why `auto` cannot choose it, if it cannot; asks nobody."""
        try:
            registry.check(self.name, self.settings)
            require_approval(self.name, self.host, self.settings)
        except ProviderError as error:
            return error
        return None

    @cached_property
    def model(self) -> str:
        """The model it asks for; empty where there is only one."""
        return registry.model(self.name, self.settings)

    @property
    def lacks_approval(self) -> bool:
        """Whether nothing may be sent, because nobody approved it."""
        return not may_send(self.name, self.host, self.settings)

    def _create(self) -> Provider:
        if self._provider is None:
            self._provider = registry.create(self.name, self.settings)
        return self._provider

    def try_out(self, text: str, kind: Kind = "document") -> tuple[Vectors, Identity]:
        """The vectors of `text`, twice, and their space. For a text of the program's own: nobody has to agree to it.

        Raises ProviderError, Cancelled.
        """
        self.reset()
        try:
            provider = self._create()
            vectors = provider.embed([text, text], kind)
            identity = provider.identity
        except ProviderError as error:
            self._on_failure(self, error)
            raise
        self.worked, self.failed_before = True, None
        if not self.lacks_approval:
            self.error = None
        return vectors, identity

    def preview(self) -> ProviderPreview:
        """What can be told before it is asked anything. Raises ProviderError for what it lacks, approval apart."""
        model, key, dims, most = registry.preview(self.name, self.settings)
        return ProviderPreview(
            self.name, model, self.host, key, dims, most, self.remote, not self.lacks_approval, self.takes_secrets
        )

    def leave(self, failure: LastFailure) -> None:
        """Do not ask it before the time that `failure` names. Raises ProviderError for what it lacks."""
        found = ProviderFailure(Cause(failure.state), failure.message, failure.next_step)
        self.make()
        if (breaker := self._breaker) is not None and failure.next_try is not None:
            breaker.leave(found, failure.next_try, failure.latest)
            self.error, self.failed_at = found, failure.at

    def reset(self) -> None:
        """Let it be asked again although it failed."""
        self.error = None
        if (breaker := self._breaker) is not None:
            breaker.worked()

    def heed_tests(self) -> None:
        """End its pause where a test of it passed since, in any process."""
        if self.next_try is not None and passed_since(self.name, self.model, self.host, self.failed_latest):
            self.reset()
            self.failed_before = None

    def show(self, active: bool, before: bool) -> MemberState:
        """Its state, where it is the `active` one or comes `before` that."""
        provider, error = self._provider, self.error
        health = provider.health() if provider else None
        next_try = self.next_try
        if active:
            state: Literal["in use", "waiting", "failing", "paused", "given up"] = (
                "in use" if error is None else "paused" if next_try else "failing"
            )
        else:
            state = "given up" if before else "waiting"
        return MemberState(
            self.name,
            self.role,
            state,
            detail=health.detail if health else error.message if error else "not used yet",
            host=self.host,
            error=error.message if error else "",
            cause=state_of(error).value if error else "",
            next_step=error.next_step if error else "",
            next_try=next_try,
            failed_at=self.failed_at,
            last_ms=health.last_ms if health else 0.0,
            calls=self.calls,
            traffic=self._traffic,
            today=self._today if self._day == dt.date.today() else Traffic(),
            texts=self.texts,
            model=self.model,
            approved=not self.lacks_approval,
            worked=self.worked,
        )

    # --- what a provider does --------------------------------------------------------------------------------------

    @property
    def identity(self) -> Identity:
        """The space of its vectors; may block on the network, so not for the screen's thread. Raises ProviderError."""
        try:
            return self._made.identity
        except ProviderError as error:
            self._on_failure(self, error)
            raise

    @property
    def known_identity(self) -> Identity | None:
        """The space of its vectors where that can be told without asking anybody."""
        made = self._made
        return made.identity if getattr(made, "identity_known", True) else None

    def expected(self, space: Identity) -> Identity:
        """The space of its vectors as far as can be told without asking anybody; the rest is taken from `space`.

        Raises ProviderError for what it lacks.
        """
        from memory_tui.providers.provider_protocol import Identity

        if (known := self.known_identity) is not None:
            return known
        told = self.preview()
        return Identity(told.provider, told.model, told.key or space.key, told.dims or space.dims)

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that it takes whole."""
        return self._made.max_input_bytes

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Float32 array (len(texts), dims) of unit vectors. Raises ProviderError, Cancelled."""
        count = len(texts)
        with self._counting:
            self.calls += 1
            self.texts += count
        try:
            # Agreement can be taken back at any time, by another process too.
            require_approval(self.name, self.host, self.settings)
            made = self._made
            self.heed_tests()
            try:
                vectors = made.embed(texts, kind)
            except ProviderError:
                self._count(texts, failed=True)
                raise
            self._count(texts, failed=False)
        except ProviderError as error:
            self._on_failure(self, error)
            raise
        self.worked, self.error, self.failed_before = True, None, None
        return vectors

    def _count(self, texts: Sequence[str], *, failed: bool) -> None:
        """Count a call that was really made."""
        with self._counting:
            if self._day != (day := dt.date.today()):
                self._day, self._today = day, Traffic()
            self._traffic = self._traffic.with_call(texts, failed=failed)
            self._today = self._today.with_call(texts, failed=failed)

    def health(self) -> Health:
        """Its state after the last call; makes no call."""
        return self._made.health()

    def close(self) -> None:
        """Release what it holds, and give up what it does."""
        if self._batches is not None:
            self._batches.close()
        if self._provider is not None:
            self._provider.close()

    @property
    def _breaker(self) -> Breaker | None:
        """The breaker of a provider that is left alone for a while after a failure; None for the others."""
        found: Breaker | None = getattr(self._provider, "breaker", None)
        return found

    @property
    def _made(self) -> Provider:
        if self._provider is None:
            self.make()
        assert self._provider is not None
        return self._provider
