"""The chain of providers: the one in use, then its fallback.

A provider is never replaced within a call, and never silently: the vectors of two are not comparable, so the index
has to be made again with the other one, which has another identity.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memory_tui.core.errors import ProviderError
from memory_tui.providers import registry
from memory_tui.providers.chain_member import Link, LinkState, Outlook, Role
from memory_tui.providers.failures import OF_THE_TEXT, LastFailure, ProviderFailure, State, state_of
from memory_tui.providers.provider_options import ProviderSettings

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService
    from memory_tui.providers.protocol import Health, Identity, Provider


@dataclass(frozen=True, slots=True)
class Fallback:
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
        self._links: list[Link] | None = None
        self._passed_over: list[LinkState] = []
        self._passed: list[Link] = []
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
                link = self._all()[self._active]
                try:
                    link.make()
                    return link
                except ProviderError as error:
                    failure = error
            if not self._failed(link, failure):
                return None

    def batches(self) -> BatchService | None:
        """The batch service of the provider in use, where it has one and it is switched on. Asks nobody."""
        if self.provider() is None:
            return None
        with self._lock:
            return self._all()[self._active].batches()

    def known_identity(self) -> Identity | None:
        """The space of the vectors of the provider in use, where that can be told without asking anybody."""
        link = self.provider()
        return link.known_identity if isinstance(link, Link) else None

    @property
    def error(self) -> ProviderError | None:
        """Why there are no vectors although they were asked for; None while all is well."""
        with self._lock:
            link = self._links[self._active] if self._links else None
            error, fallback = link.error if link else None, self.fallback
        if error is None or fallback is None:
            return error
        return ProviderFailure(
            state_of(error), f"{fallback.cause} {fallback.to}, in its place: {error.message}", error.next_step
        )

    def health(self) -> Health:
        """The state in words; asks nobody."""
        from memory_tui.providers.protocol import Health

        provider, error, fallback = self.provider(), self.error, self.fallback
        if error is not None or provider is None:
            return Health(error is None, error.message if error else "no vectors, search by words alone")
        health = provider.health()
        return replace(health, detail=f"{health.detail}; in place of {fallback.source}") if fallback else health

    def links(self) -> tuple[LinkState, ...]:
        """Every provider of the chain in order, with its state; first those that `auto` passed over."""
        if self.name == NONE:
            return ()
        with self._lock:
            links = self._all()
            return (
                *self._passed_over,
                *(link.show(at == self._active, at < self._active) for at, link in enumerate(links)),
            )

    # --- what a person does ----------------------------------------------------------------------------------------

    def probe(self) -> dict[str, Any]:
        """One real call, in the documented form: `ok`, and the `error` when it failed."""
        return {key: value for key, value in self.try_out().items() if key in ("ok", "error")}

    def try_out(self, name: str = "") -> dict[str, Any]:
        """One real call, now, to the provider in use or to the one called `name`: `ok`, and what came back or `error`.

        `norm` is the length of a vector, `selfSimilarity` the cosine of one text embedded twice; both should be 1.
        """
        with self._lock:
            link = (
                next((one for one in self._all() if one.name == name), None)
                if name
                else self._all()[self._active]
                if self.name != NONE
                else None
            )
        if link is None:
            error = self.error
            return {"ok": False, **({"error": error.message, "nextStep": error.next_step} if error else {})}
        started = time.perf_counter()
        try:
            (first, second), identity = link.try_out(_PROBE)
        except ProviderError as error:
            return {
                "ok": False,
                "provider": link.name,
                "error": error.message,
                "nextStep": error.next_step,
                "state": state_of(error).value,
            }
        return {
            "ok": True,
            "provider": identity.provider,
            "model": identity.model,
            "dims": identity.dims,
            "ms": (time.perf_counter() - started) * 1000,
            "norm": float(first @ first) ** 0.5,
            "selfSimilarity": float(first @ second),
            "host": link.host,
        }

    def restore(self) -> None:
        """Go back to the first choice, and ask at once whoever is paused, for what was refused before too."""
        with self._lock:
            self._active, self.fallback = 0, None
            self.restored += 1
            for link in self._links or ():
                link.reset()

    def choose_again(self) -> None:
        """Begin anew, because what decides the choice has changed: an agreement, a key, a file."""
        with self._lock:
            links, self._links, self._passed_over, self._passed = self._links, None, [], []
            self._active, self.fallback = 0, None
        for link in links or ():
            link.close()

    def close(self) -> None:
        """Give up every call that is under way and release what the providers hold; takes 0.3 s at most."""
        for link in self._links or ():
            link.close()

    # --- what a sync does ------------------------------------------------------------------------------------------

    def resume(self, fallback: Fallback) -> None:
        """Start where an earlier process ended: with the fallback, while the first choice is not to be asked."""
        if self.name == NONE or fallback.next_try is None or self.settings.clock.now() >= fallback.next_try:
            return
        with self._lock:
            if self._active == 0 and self.replaces(fallback):
                self._active, self.fallback = 1, fallback

    def remember(self, failure: LastFailure, *, leave: bool) -> None:
        """What an earlier process met: an outage that goes on began then. With `leave` nobody is asked before its time.

        For a command that asks once: the wait for a host that is down would come with each of them.
        """
        if self.name == NONE:
            return
        with self._lock:
            link = self._all()[self._active]
            if (failure.provider, failure.model, failure.host) != (link.name, link.model, link.host):
                return
            link.failed_before = failure
            if leave and failure.next_try is not None and self.settings.clock.now() < failure.next_try:
                link.leave(failure)

    def reconsider(self) -> bool:
        """Go back to the first choice when its time has come and it answers; whether it did. Asks it."""
        with self._lock:
            fallback, first = self.fallback, self._all()[0] if self.fallback else None
        if fallback is None or first is None:
            return False
        due = first.next_try or fallback.next_try
        if first.lacks_consent or (due is not None and self.settings.clock.now() < due):
            return False
        try:
            first.try_out(_PROBE)
        except ProviderError:
            return False
        with self._lock:
            self._active, self.fallback = 0, None
        return True

    def proven(self, space: Identity | None) -> Provider | None:
        """The provider in use; where its vectors would take the place of those of `space`, one that answers.

        None when there is none, on purpose or because of `error`: then what is there should stay.
        """
        while (provider := self.provider()) is not None:
            link = self._current()
            try:
                if space is not None and not link.worked and link.identity != space:
                    link.try_out(_PROBE)
            except ProviderError:
                if self._current() is link:
                    return None
            else:
                return provider
        return None

    def of_space(self, space: Identity) -> Provider | None:
        """The provider that makes vectors of `space`, where the chain has it; otherwise the one in use."""
        if self.name == NONE:
            return None
        with self._lock:
            for link in self._all():
                if link.name == space.provider and link is not self._current() and link.lacks() is None:
                    return link
        return self.provider()

    def makes(self, space: Identity) -> bool:
        """Whether a question can be compared with vectors of `space`, as far as can be told without asking anybody."""
        link = self.of_space(space)
        return isinstance(link, Link) and _told(link, space) == space

    def wanted(self, space: Identity | None) -> Identity | None:
        """The space that an index should be made in, as far as can be told without asking anybody; `space` is the one
        that it has. None where nothing can be told: then what is there should stay.
        """
        link = self.provider()
        if not isinstance(link, Link):
            return None
        return link.known_identity if space is None else _told(link, space)

    @property
    def next_try(self) -> float | None:
        """Epoch second at which a provider that failed may be asked again."""
        with self._lock:
            links = self._links or []
            times = [link.next_try for link in links[: self._active + 1] if link.error is not None]
        return min((at for at in times if at is not None), default=None)

    @property
    def proposal(self) -> LinkState | None:
        """The provider that would be used if the person agreed that it gets the notes; None when that is not it."""
        with self._lock:
            if self.name == NONE:
                return None
            links = self._all()
            waiting = [state for state in self._passed_over if not state.agreed]
            if links[0].lacks_consent:
                return links[0].show(self._active == 0, self._active > 0)
        return waiting[0] if waiting else None

    def outlook(self, name: str = "") -> Outlook | None:
        """What can be told of the provider called `name`; without a name of the one that waits for the person's word,
        else of the one in use; None without any. Asks nobody. Raises ProviderError for what it lacks.
        """
        if self.name == NONE or (not name and self.provider() is None and self.proposal is None):
            return None
        waiting = self.proposal
        with self._lock:
            wanted = name or (waiting.name if waiting else self._all()[self._active].name)
            every = [*self._all(), *self._passed]
        return next((link.outlook() for link in every if link.name == wanted), None)

    # --- what happens by itself ------------------------------------------------------------------------------------

    def _all(self) -> list[Link]:
        """The links; with `auto`, what each provider needs is looked at when they are first asked for."""
        if self._links is None:
            chosen = self._automatic() if self.settings.automatic else [self._link(self.name, "chosen", self.settings)]
            then = self.settings.fallback
            if then and then not in (NONE, chosen[0].name):
                follows = self._link(then, "fallback", self.settings.for_provider(then))
                rest = [link for link in chosen[1:] if link.name == "builtin" != then]
                chosen = [chosen[0], follows, *rest]
            self._links = chosen
        return self._links

    def replaces(self, fallback: Fallback) -> bool:
        """Whether `fallback`, which an earlier process wrote down, is of the providers that are chosen now."""
        if self.name == NONE:
            return False
        with self._lock:
            return [link.name for link in self._all()[:2]] == [fallback.source, fallback.to]

    def _automatic(self) -> list[Link]:
        found: list[Link] = []
        for name in registry.automatic():
            # What was said about endpoint and key is for one provider, and must not be sent to another one.
            taken = any(registry.sends(link.name) for link in found) or any(
                not state.agreed for state in self._passed_over
            )
            settings = self.settings.for_provider(name) if taken else replace(self.settings, requested=name)
            link = self._link(name, "automatic", settings)
            if (error := link.lacks()) is None:
                found.append(link)
            else:
                self._passed.append(link)
                self._passed_over.append(
                    LinkState(
                        name,
                        "automatic",
                        "passed over",
                        error.message,
                        error=error.message,
                        next_step=error.next_step,
                        cause=state_of(error).value,
                        host=link.host,
                        model=link.model,
                        agreed=state_of(error) is not State.NO_CONSENT,
                    )
                )
        return found

    def _current(self) -> Link:
        with self._lock:
            return self._all()[self._active]

    def _link(self, name: str, role: Role, settings: ProviderSettings) -> Link:
        return Link(name, role, settings, self._failed)

    def _failed(self, link: Link, error: ProviderError) -> bool:
        """Note that `link` failed; whether another one is in its place now."""
        if state_of(error) in OF_THE_TEXT:
            return False
        with self._lock:
            links, known = self._all(), link.error is not None and state_of(link.error) is state_of(error)
            if not (known and link.error is not None and error.message.startswith(link.error.message)):
                # A provider that is left alone repeats why; what it said itself, and when, stays.
                link.error, before = error, link.failed_before
                goes_on = before is not None and before.state == state_of(error).value
                link.failed_at = before.at if before is not None and goes_on else self.settings.clock.now()
            follows = links[self._active + 1] if self._active + 1 < len(links) else None
            moved = link is links[self._active] and follows is not None and link.gives_way(follows, error)
            if moved:
                self._active += 1
                to = links[self._active].name
                self.fallback = Fallback(
                    link.name, to, links[self._active].model, error.message, self.settings.clock.now(), link.next_try
                )
                error = ProviderFailure(
                    state_of(error), f"{error.message} {to} is used instead of {link.name}.", error.next_step
                )
        if moved or not known:
            self._on_change(error)
        return moved


def _told(link: Link, space: Identity) -> Identity | None:
    """The space of `link` as far as can be told; None for one that lacks what it needs, which `Chain.error` tells."""
    try:
        return link.expected(space)
    except ProviderError:
        return None
