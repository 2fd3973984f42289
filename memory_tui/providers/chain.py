"""The chain of providers decides when the fallback takes the place of the one in use.

A provider is never replaced within a call, and never silently: the vectors of two are not comparable, so the index
has to be made again with the other one, which has another identity.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.errors import ProviderError
from memory_tui.providers import registry
from memory_tui.providers.chain_member import ChainMember, MemberState, ProviderPreview, Role
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
from memory_tui.providers.provider_options import ProviderSettings

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.provider_protocol import Health, Identity, Provider


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
        from memory_tui.providers.provider_protocol import Health

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
