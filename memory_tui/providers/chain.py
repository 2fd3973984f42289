"""The chain of providers decides when the fallback takes the place of the one in use.

A provider is never replaced within a call, and never silently: the vectors of two are not comparable, so the index
has to be made again with the other one, which has another identity.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.errors import ProviderError
from memory_tui.core.formatting import minute
from memory_tui.providers import registry
from memory_tui.providers.base import Health, Identity, Provider, Vectors
from memory_tui.providers.failures import (
    OF_THE_TEXT,
    PASSING,
    Cause,
    LastFailure,
    ProviderFailure,
    passed_since,
    record_pass,
    state_of,
)
from memory_tui.providers.options import (
    Kind,
    ProviderSettings,
    may_send,
    on_this_machine,
    require_approval,
    takes_secrets,
)

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.http import Breaker


class Fallback(Struct, frozen=True):
    """That `to` with its own `model` took the place of `source`, the cause as a sentence, and when (epoch seconds).

    `source` is not asked again before `next_try` (epoch seconds; None: when somebody does something about it).
    """

    source: str
    to: str
    model: str
    cause: str
    at: float
    next_try: float | None = None

    def as_dict(self) -> dict[str, str | float | None]:
        """JSON-ready: from, to, model, reason, since, retryAt."""
        return {
            "from": self.source,
            "to": self.to,
            "model": self.model,
            "reason": self.cause,
            "since": self.at,
            "retryAt": self.next_try,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Fallback:
        """What `as_dict` gave. Raises KeyError."""
        return cls(fields["from"], fields["to"], fields["model"], fields["reason"], fields["since"], fields["retryAt"])


NONE = "none"
_PROBE = "A note about embeddings."


class Chain:
    """The providers that may be used, and which one is. Safe for any thread.

    `on_change` is told of every change for the worse, once: a provider that cannot be made, one that begins to fail,
    and one that takes another's place. It is called on the thread that met the failure.
    """

    def __init__(self, settings: ProviderSettings | str, on_change: Callable[[ProviderError], None]) -> None:
        self.settings = ProviderSettings(requested=settings) if isinstance(settings, str) else settings
        self.name = self.settings.requested or "auto"
        self.fallback: Fallback | None = None
        """The last replacement, None while the first choice is used."""
        self.restored = 0
        """How often somebody asked for the first choice to be tried again."""
        self._on_change = on_change
        self._lock = threading.RLock()
        self._members: list[ChainMember] | None = None
        self._passed_over: list[MemberState] = []
        self._passed: list[ChainMember] = []
        self._active = 0

    # --- what is used ----------------------------------------------------------------------------------------------

    def provider(self) -> Provider | None:
        """The provider in use, or None when there is none, on purpose or because of `error`. Asks nobody.

        Hold on to it for one piece of work only, because the next call may answer with another one.
        """
        if self.name == NONE:
            return None
        while True:
            with self._lock:
                member = self._all()[self._active]
                try:
                    member.make()
                    return member
                except ProviderError as error:
                    failure = error
            if not self._failed(member, failure):
                return None

    def batches(self) -> BatchService | None:
        """The batch service of the provider in use, where it has one and it is switched on. Asks nobody."""
        if self.provider() is None:
            return None
        with self._lock:
            return self._all()[self._active].batches()

    def known_identity(self) -> Identity | None:
        """The space of the vectors of the provider in use, where that can be told without asking anybody."""
        member = self.provider()
        return member.known_identity if isinstance(member, ChainMember) else None

    @property
    def error(self) -> ProviderError | None:
        """Why there are no vectors although they were asked for; None while all is well."""
        self.heed_tests()
        with self._lock:
            member = self._members[self._active] if self._members else None
            error, fallback = member.error if member else None, self.fallback
        if error is None or fallback is None:
            return error
        return ProviderFailure(
            state_of(error), f"{fallback.cause} {fallback.to}, in its place: {error.message}", error.next_step
        )

    def failure(self) -> LastFailure | None:
        """Why the provider in use gives no vectors now, for the next process; None while it does."""
        error = self.error
        if error is None:
            return None
        member = self._current()
        at = member.failed_at or self.settings.clock.now()
        return LastFailure(
            member.name,
            member.model,
            member.host,
            state_of(error).value,
            error.message,
            error.next_step,
            at,
            member.next_try,
            member.failed_latest,
        )

    def health(self) -> Health:
        """The state in words; asks nobody."""
        from memory_tui.providers.base import Health

        provider, error, fallback = self.provider(), self.error, self.fallback
        if error is not None or provider is None:
            return Health(error is None, error.message if error else "no vectors, search by words alone")
        health = provider.health()
        return replace(health, detail=f"{health.detail}; in place of {fallback.source}") if fallback else health

    def members(self) -> tuple[MemberState, ...]:
        """Every provider of the chain in order, with its state; first those that `auto` passed over."""
        if self.name == NONE:
            return ()
        with self._lock:
            members = self._all()
            return (
                *self._passed_over,
                *(member.show(at == self._active, at < self._active) for at, member in enumerate(members)),
            )

    # --- what a person does ----------------------------------------------------------------------------------------

    def try_out(self, name: str = "") -> dict[str, Any]:
        """One real call, now, to the provider in use or to the one called `name`: `ok`, and what came back or `error`.

        `norm` is the length of a vector, `selfSimilarity` the cosine of one text embedded twice; both should be 1.
        """
        with self._lock:
            member = (
                next((one for one in self._all() if one.name == name), None)
                if name
                else self._all()[self._active]
                if self.name != NONE
                else None
            )
        if member is None:
            error = self.error
            return {"ok": False, **({"error": error.message, "nextStep": error.next_step} if error else {})}
        started = time.perf_counter()
        try:
            (first, second), identity = member.try_out(_PROBE)
        except ProviderError as error:
            return {
                "ok": False,
                "provider": member.name,
                "error": error.message,
                "nextStep": error.next_step,
                "state": state_of(error).value,
            }
        record_pass(member.name, member.model, member.host, self.settings.clock.now())
        self.heed_tests()
        return {
            "ok": True,
            "provider": identity.provider,
            "model": identity.model,
            "dims": identity.dims,
            "ms": (time.perf_counter() - started) * 1000,
            "norm": float(first @ first) ** 0.5,
            "selfSimilarity": float(first @ second),
            "host": member.host,
        }

    def heed_tests(self) -> None:
        """End the pause of each provider, and the fallback's turn, where a test passed since, in any process."""
        with self._lock:
            for member in self._members or ():
                member.heed_tests()
            fallback, first = self.fallback, self._members[0] if self._members else None
            if fallback and first and passed_since(first.name, first.model, first.host, fallback.at):
                self._active, self.fallback = 0, None

    def restore(self) -> None:
        """Go back to the first choice, and ask at once whoever is paused, for what was refused before too."""
        with self._lock:
            self._active, self.fallback = 0, None
            self.restored += 1
            for member in self._members or ():
                member.reset()

    def choose_again(self) -> None:
        """Begin anew, because what decides the choice has changed: an approval, a key, a file."""
        with self._lock:
            members, self._members, self._passed_over, self._passed = self._members, None, [], []
            self._active, self.fallback = 0, None
        for member in members or ():
            member.close()

    def close(self) -> None:
        """Give up every call that is under way and release what the providers hold; takes 0.3 s at most."""
        for member in self._members or ():
            member.close()

    # --- what a sync does ------------------------------------------------------------------------------------------

    def resume(self, fallback: Fallback) -> None:
        """Start where an earlier process ended: with the fallback, while the first choice is not to be asked."""
        if self.name == NONE or fallback.next_try is None or self.settings.clock.now() >= fallback.next_try:
            return
        with self._lock:
            if self._active == 0 and self.replaces(fallback):
                self._active, self.fallback = 1, fallback
                self.heed_tests()

    def remember(self, failure: LastFailure, *, leave: bool) -> None:
        """What an earlier process met: an outage that goes on began then. With `leave` nobody is asked before its time.

        For a command that asks once: the wait for a host that is down would come with each of them.
        """
        if self.name == NONE or failure.ended:
            return
        with self._lock:
            member = self._all()[self._active]
            if (failure.provider, failure.model, failure.host) != (member.name, member.model, member.host):
                return
            member.failed_before = failure
            if leave and failure.next_try is not None and self.settings.clock.now() < failure.next_try:
                member.leave(failure)

    def _reconsider(self) -> None:
        """Go back to the first choice when its time has come and it answers."""
        with self._lock:
            fallback, first = self.fallback, self._all()[0] if self.fallback else None
        if fallback is None or first is None:
            return
        due = first.next_try or fallback.next_try
        if first.lacks_approval or (due is not None and self.settings.clock.now() < due):
            return
        try:
            first.try_out(_PROBE, self.settings.batches.probe)
        except ProviderError:
            return
        with self._lock:
            self._active, self.fallback = 0, None

    def proven(self, space: Identity | None) -> Provider | None:
        """The provider in use; where its vectors would take the place of those of `space`, one that answers.

        Asks the first choice again when its time has come. None when there is none, on purpose or because of `error`:
        then what is there should stay.
        """
        self._reconsider()
        while (provider := self.provider()) is not None:
            member = self._current()
            try:
                if space is not None and not member.worked and member.identity != space:
                    member.try_out(_PROBE, self.settings.batches.probe)
            except ProviderError:
                if self._current() is member:
                    return None
            else:
                return provider
        return None

    def of_space(self, space: Identity) -> Provider | None:
        """The provider that makes vectors of `space`, where the chain has it; otherwise the one in use."""
        if self.name == NONE:
            return None
        with self._lock:
            for member in self._all():
                if member.name == space.provider and member is not self._current() and member.lacks() is None:
                    return member
        return self.provider()

    def makes(self, space: Identity) -> bool:
        """Whether a question can be compared with vectors of `space`, as far as can be told without asking anybody."""
        member = self.of_space(space)
        return isinstance(member, ChainMember) and _told(member, space) == space

    def wanted(self, space: Identity | None) -> Identity | None:
        """The space that an index should be made in, as far as can be told without asking anybody; `space` is the one
        that it has. None where nothing can be told: then what is there should stay.
        """
        member = self.provider()
        if not isinstance(member, ChainMember):
            return None
        return member.known_identity if space is None else _told(member, space)

    @property
    def next_try(self) -> float | None:
        """Epoch second at which a provider that failed may be asked again."""
        with self._lock:
            members = self._members or []
            times = [member.next_try for member in members[: self._active + 1] if member.error is not None]
        return min((at for at in times if at is not None), default=None)

    @property
    def proposal(self) -> MemberState | None:
        """The provider that would be used once a person approves it; None when that is not it."""
        with self._lock:
            if self.name == NONE:
                return None
            members = self._all()
            waiting = [state for state in self._passed_over if not state.approved]
            if members[0].lacks_approval:
                return members[0].show(self._active == 0, self._active > 0)
        return waiting[0] if waiting else None

    def preview(self, name: str = "") -> ProviderPreview | None:
        """What can be told of the provider called `name`; without a name of the one that waits for the person's word,
        else of the one in use; None without any. Asks nobody. Raises ProviderError for what it lacks.
        """
        if self.name == NONE or (not name and self.provider() is None and self.proposal is None):
            return None
        waiting = self.proposal
        with self._lock:
            wanted = name or (waiting.name if waiting else self._all()[self._active].name)
            every = [*self._all(), *self._passed]
        return next((member.preview() for member in every if member.name == wanted), None)

    # --- what happens by itself ------------------------------------------------------------------------------------

    def _all(self) -> list[ChainMember]:
        """The members; with `auto`, what each provider needs is looked at when they are first asked for."""
        if self._members is None:
            chosen = (
                self._automatic() if self.settings.automatic else [self._member(self.name, "chosen", self.settings)]
            )
            then = self.settings.fallback
            if then and then not in (NONE, chosen[0].name):
                follows = self._member(then, "fallback", self.settings.for_provider(then))
                rest = [member for member in chosen[1:] if member.name == "builtin" != then]
                chosen = [chosen[0], follows, *rest]
            self._members = chosen
        return self._members

    def replaces(self, fallback: Fallback) -> bool:
        """Whether `fallback`, which an earlier process wrote down, is of the providers that are chosen now."""
        if self.name == NONE:
            return False
        with self._lock:
            return [member.name for member in self._all()[:2]] == [fallback.source, fallback.to]

    def _automatic(self) -> list[ChainMember]:
        found: list[ChainMember] = []
        for name in registry.automatic():
            # What was said about endpoint and key is for one provider, and must not be sent to another one.
            taken = any(registry.sends(member.name) for member in found) or any(
                not state.approved for state in self._passed_over
            )
            settings = self.settings.for_provider(name) if taken else replace(self.settings, requested=name)
            member = self._member(name, "automatic", settings)
            if (error := member.lacks()) is None:
                found.append(member)
            else:
                self._passed.append(member)
                self._passed_over.append(
                    MemberState(
                        name,
                        "automatic",
                        "passed over",
                        error.message,
                        error=error.message,
                        next_step=error.next_step,
                        cause=state_of(error).value,
                        host=member.host,
                        model=member.model,
                        approved=state_of(error) is not Cause.NEEDS_APPROVAL,
                    )
                )
        return found

    def _current(self) -> ChainMember:
        with self._lock:
            return self._all()[self._active]

    def _member(self, name: str, role: Role, settings: ProviderSettings) -> ChainMember:
        return ChainMember(name, role, settings, self._failed)

    def _failed(self, member: ChainMember, error: ProviderError) -> bool:
        """Note that `member` failed; whether another one is in its place now."""
        if state_of(error) in OF_THE_TEXT:
            return False
        with self._lock:
            members, known = self._all(), member.error is not None and state_of(member.error) is state_of(error)
            if not (known and member.error is not None and error.message.startswith(member.error.message)):
                # A provider that is left alone repeats why; what it said itself, and when, stays.
                member.error, before = error, member.failed_before
                goes_on = before is not None and before.state == state_of(error).value
                member.failed_at = before.at if before is not None and goes_on else self.settings.clock.now()
            follows = members[self._active + 1] if self._active + 1 < len(members) else None
            moved = member is members[self._active] and follows is not None and _gives_way(member, follows, error)
            if moved:
                self._active += 1
                to = members[self._active].name
                self.fallback = Fallback(
                    member.name,
                    to,
                    members[self._active].model,
                    error.message,
                    self.settings.clock.now(),
                    member.next_try,
                )
                error = ProviderFailure(
                    state_of(error), f"{error.message} {to} is used instead of {member.name}.", error.next_step
                )
        if moved or not known:
            self._on_change(error)
        return moved


def _gives_way(member: ChainMember, to: ChainMember, error: ProviderError) -> bool:
    """Whether `to` should take the place of `member` after `error`.

    A chosen fallback always does. Otherwise a provider that has worked keeps its place through troubles that pass,
    because a change means to embed every note again.
    """
    return to.role == "fallback" or not member.worked or state_of(error) not in PASSING


def _told(member: ChainMember, space: Identity) -> Identity | None:
    """The space of `member` as far as can be told; None for one that lacks what it needs, which `Chain.error` tells."""
    try:
        return member.expected(space)
    except ProviderError:
        return None


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
        from memory_tui.providers.base import Identity

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
        from memory_tui.providers.base import Identity

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


Mode = Literal["hybrid", "keywords only", "vectors only", "nothing"]
Standing = Literal[
    "ok",
    "not asked",
    "off",
    "not indexed",
    "needs approval",
    "failed",
    "fallback",
    "fallback starts",
    "fallback failed",
    "other model",
]
FINE: frozenset[Standing] = frozenset({"ok", "not asked", "off", "not indexed"})
"""Standings that ask nothing of anybody."""
ANSWERING: frozenset[Standing] = frozenset({"ok", "not asked", "fallback"})
"""Standings in which questions are answered by meaning."""
LOST = "Meaning-based recall is off"


class ServingProvider(Struct, frozen=True):
    """Who answers questions by meaning, and why it is not who was asked for.

    `requested` and `requested_model` are as chosen (auto: nobody chose), `answers` and `model` of the provider whose
    vectors are compared, both empty where words alone answer. `mode` is what questions are answered by now, in the
    record of one question what that one was. `reason` is the provider's own sentence, `next_step` what a person can
    do, `since` when it began and `retry_at` when the provider is asked again, both in epoch seconds, None where
    unknown. Standings: `not asked` has not been asked by this process; `not indexed` has no vectors in the index yet;
    `fallback starts` took over, and the index is still of the other one; `other model` means that the index has
    vectors that nobody here can compare with.
    """

    requested: str
    requested_model: str
    standing: Standing
    answers: str
    model: str
    mode: Mode
    reason: str = ""
    next_step: str = ""
    since: float | None = None
    retry_at: float | None = None
    fallback: Fallback | None = None
    detail: str = ""
    """What the provider that answers says of itself."""
    host: str = ""
    cause: str = ""
    """Where the provider that failed was asked, and a value of `Cause`."""

    @property
    def fine(self) -> bool:
        """Whether who was asked for answers, or nothing stands in the way."""
        return self.standing in FINE

    @property
    def _name(self) -> str:
        return f"{self.answers or self.requested} {self.model or self.requested_model}".rstrip()

    @property
    def label(self) -> str:
        """The record in a few words, for the first line."""
        match self.standing:
            case "off":
                return "embedding off"
            case "not asked":
                return f"{self.answers} not asked yet"
            case "ok" | "not indexed":
                return f"{self.answers or self.requested} ok"
            case "needs approval":
                return f"{self.requested} needs approval"
            case "failed":
                return f"{self.requested} {self._trouble or 'failed'}"
            case "other model":
                return "index of another model"
        if self.fallback is None:
            return f"{self.requested} failed"
        if self.standing == "fallback":
            return f"{self.fallback.to} instead of {self.fallback.source}"
        if self.standing == "fallback starts":
            return f"{self.fallback.to} takes over from {self.fallback.source}"
        return f"{self.fallback.source} and {self.fallback.to} failed"

    @property
    def _trouble(self) -> str:
        """Where and why the provider failed, in a few words."""
        refused = self.cause == Cause.NETWORK.value and "refused" in self.reason
        return f"{self.host} {'refused' if refused else self.cause}".strip()

    @property
    def line(self) -> str:
        """The label, the host with the cause, and the time of the next try: what a line shows before it is cut."""
        why = "" if self.standing == "failed" and self._trouble else f": {self._trouble or self.reason}"
        again = f" · again {minute(self.retry_at)[-5:]}" if self.retry_at else ""
        return f"{self.label}{why}{again}"

    @property
    def sentence(self) -> str:
        """The record as a sentence or two, with the provider's own reason."""
        match self.standing:
            case "off":
                return "No embedding provider is asked for: words alone are searched."
            case "ok":
                return f"{self._name} answers."
            case "not asked":
                return f"{self._name} answers; this process has not asked it yet."
            case "not indexed":
                return f"{self._name} is chosen; the index has no vectors yet, and words alone are searched."
            case "needs approval" | "failed" | "other model":
                return f"{LOST}: {self.reason}"
        if self.fallback is None:
            return f"{LOST}: {self.reason}"
        instead = f"{self.fallback.to} {self.fallback.model}".rstrip()
        since = f" since {minute(self.fallback.at)}"
        if self.standing == "fallback":
            return f"{instead} answers instead of {self.fallback.source}{since}: {self.reason}"
        if self.standing == "fallback starts":
            return (
                f"{instead} takes over from {self.fallback.source}; until the index is rebuilt with its vectors, words "
                f"alone are searched: {self.reason}"
            )
        return f"{LOST}: {self.reason}"

    @property
    def instead(self) -> dict[str, Any] | None:
        """What is used instead of who was asked for, JSON-ready: from, to, model, reason, since, retryAt.

        Where words alone answer, `to` and `model` are OpenClaw's names for that. None while nothing is lost.
        """
        if self.fine:
            return None
        if self.standing == "fallback" and self.fallback is not None:
            return self.fallback.as_dict()
        return {
            "from": self.fallback.source if self.fallback else self.requested,
            "to": "none",
            "model": "fts-only",
            "reason": self.reason,
            "since": self.since,
            "retryAt": self.retry_at,
        }

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON-ready fields, with its sentence."""
        return {
            "requested": self.requested,
            "requestedModel": self.requested_model,
            "standing": self.standing,
            "answers": self.answers,
            "model": self.model,
            "mode": self.mode,
            "reason": self.reason,
            "nextStep": self.next_step,
            "since": self.since,
            "retryAt": self.retry_at,
            "sentence": self.sentence,
            "fallback": self.instead,
        }


def who(
    chain: Chain,
    space: Identity | None,
    *,
    hybrid: bool = True,
    recorded: Fallback | None = None,
    last: LastFailure | None = None,
) -> ServingProvider:
    """Who answers questions to an index whose vectors are of `space` (None: it has none); asks nobody.

    `recorded` and `last` are what the index run before wrote down, for a process that has not asked yet.
    """
    if chain.name == "none":
        return ServingProvider("none", "", "off", "", "", "keywords only")
    chain.provider()
    used = [member for member in chain.members() if member.state != "passed over"]
    active = next(member for member in used if member.state in ("in use", "failing", "paused"))
    error, asked = chain.error, any(member.calls or member.error or member.worked for member in used)
    model = used[0].model if chain.name == used[0].name else chain.settings.model
    make = _Maker(chain.name, model, "hybrid" if hybrid else "vectors only")
    if last is not None and (asked or last.ended or not any(_is_of(last, member) for member in used)):
        last = None
    fallback = chain.fallback
    if fallback is None and recorded is not None and chain.replaces(recorded):
        of_it = (space is not None and space.provider == recorded.to) or (last and last.provider == recorded.to)
        fallback = recorded if of_it else None
    if error is not None:
        alone: Standing = "needs approval" if active.cause == Cause.NEEDS_APPROVAL.value else "failed"
        lost = FallbackReason(
            error.message, error.next_step, active.failed_at, chain.next_try, active.host, state_of(error).value
        )
        return make.lost("fallback failed" if fallback else alone, lost, fallback)
    if last is not None and last.state != Cause.NEEDS_APPROVAL.value and (not fallback or last.provider == fallback.to):
        lost = FallbackReason(last.message, last.next_step, last.at, last.next_try, last.host, last.state)
        return make.lost("fallback failed" if fallback else "failed", lost, fallback)
    if fallback is not None:
        source = next((member for member in used if member.name == fallback.source), active)
        lost = FallbackReason(
            fallback.cause, source.next_step, fallback.at, fallback.next_try, source.host, source.cause
        )
        if space is None or space.provider != fallback.to:
            return make.lost("fallback starts", lost, fallback)
        return make.lost(
            "fallback", lost, fallback, next((member for member in used if member.name == fallback.to), active)
        )
    if space is None:
        return make.fine("not indexed", active)
    if not chain.makes(space):
        made, now = f"{space.provider} {space.model}".rstrip(), f"{active.name} {active.model}".rstrip()
        other = f"not with {now}" if made != now else "at another address, with other headers or another length"
        reason = f"The index was made with {made}, {other}: its vectors cannot be compared."
        return make.lost("other model", FallbackReason(reason, "Run memory-tui index."))
    answering = next((member for member in used if member.name == space.provider), active)
    return make.fine("not asked" if answering.host and not answering.worked else "ok", answering)


class FallbackReason(NamedTuple):
    """Why who was asked for does not answer: a sentence, what to do, since when, when it is asked again, where, and
    the cause in the words of `Cause`.
    """

    reason: str
    next_step: str
    since: float | None = None
    retry_at: float | None = None
    host: str = ""
    cause: str = ""


class _Maker(Struct, frozen=True):
    """Makes the record of what was `requested`; `mode` is that of questions which are answered by meaning."""

    requested: str
    model: str
    mode: Mode

    def fine(self, standing: Standing, by: MemberState) -> ServingProvider:
        answers = standing in ANSWERING
        return ServingProvider(
            self.requested,
            self.model,
            standing,
            by.name if answers else "",
            by.model if answers else "",
            self.mode if answers else "keywords only",
            detail=by.detail,
        )

    def lost(
        self, standing: Standing, lost: FallbackReason, fallback: Fallback | None = None, by: MemberState | None = None
    ) -> ServingProvider:
        return ServingProvider(
            self.requested,
            self.model,
            standing,
            by.name if by else "",
            by.model if by else "",
            self.mode if by else "keywords only",
            *lost[:4],
            fallback,
            host=lost.host,
            cause=lost.cause,
        )


def _is_of(last: LastFailure, member: MemberState) -> bool:
    return (last.provider, last.model, last.host) == (member.name, member.model, member.host)


def as_recorded(member: MemberState, who: ServingProvider) -> MemberState:
    """`member`, whose process has asked nobody yet, with what the record `who` keeps of an earlier one."""
    if member.calls or member.worked or member.error or member.state == "passed over":
        return member
    if who.standing == "fallback" and who.fallback is not None:
        if member.name == who.fallback.source:
            return replace(member, state="given up", detail=who.reason, next_step=who.next_step)
        if member.name == who.fallback.to:
            return replace(member, state="in use", detail="answers")
    if who.standing in ("failed", "fallback failed") and member.state == "in use":
        return replace(member, state="failing", detail=who.reason, next_step=who.next_step)
    return member
