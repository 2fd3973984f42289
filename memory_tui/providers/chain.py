"""Decide which provider is used: its health, its pauses, when the fallback takes its place, and who answers now.

A provider is never replaced within a call, and never silently: the vectors of two are not comparable, so the index
has to be made again with the other one, which has another identity.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from memory_tui import providers, state_db
from memory_tui.errors import ProviderError, StateUnavailable
from memory_tui.formatting import camel, minute
from memory_tui.providers import Cause, Identity, Kind, Provider, ProviderFailure, Vectors, registry, state_of
from memory_tui.providers.registry import ProviderSettings

if TYPE_CHECKING:
    from memory_tui.providers.http import BatchService

NONE = "none"
_FIRST_PAUSE, _LONGEST_PAUSE, _LASTING_PAUSE = 30.0, 600.0, 300.0
"""Seconds: of a failure that passes by itself at first, and at most; of one that a person has to mend."""
_MOST_DOUBLINGS = 5
"""So many reach the longest pause; without a bound the power of 2 is too large for a float after 1,000 failures."""
_PROBE = "A note about embeddings."
Role = Literal["chosen", "automatic", "fallback"]
Health = Literal["in use", "waiting", "passed over", "failing", "paused", "given up"]


# --- records ---------------------------------------------------------------------------------------------------------


class Fallback(Struct, frozen=True, rename={"source": "from", "cause": "reason", "at": "since", "next_try": "retryAt"}):
    """That `to` with its own `model` took the place of `source`, the cause as a sentence, and when (epoch seconds).

    `source` is not asked again before `next_try` (epoch seconds; None: when somebody does something about it). JSON has
    from, to, model, reason, since, retryAt.
    """

    source: str
    to: str
    model: str
    cause: str
    at: float
    next_try: float | None = None


class Outage(Struct, frozen=True):
    """Why a provider gives no vectors, since when, and when it is asked again, both in epoch seconds.

    So many `failures` in a row were met; `given_up` tells whether another provider has its place.
    """

    error: str = ""
    cause: str = ""
    next_step: str = ""
    next_try: float | None = None
    failed_at: float | None = None
    failures: int = 0
    given_up: bool = False


_WELL = Outage()


class MemberState(Outage, frozen=True, kw_only=True):
    """One provider of the chain for the screen, with its last failure.

    `state` is "in use", "waiting" (its turn has not come), "passed over" (it lacks something), "failing" (in use, and
    its last call failed), "paused" (the same, not asked before `next_try`) or "given up" (another one has its place).
    `approved` tells whether notes may be sent to `host`; nothing has to be approved for this machine, where `host` is
    empty or loopback. `worked` tells whether it has answered this process, a test call included.
    """

    name: str
    role: Role
    state: Health
    detail: str
    host: str
    model: str
    approved: bool
    worked: bool


class ChainState(Struct, frozen=True):
    """How the chain is at one moment.

    `error` is why there are no vectors although they were asked for, None while all is well. `fallback` is the last
    replacement, None while the first choice is used. `next_try` is the epoch second at which a provider that failed may
    be asked again. `outage` is that of the provider in use, or of the one whose place it took.
    """

    error: ProviderError | None = None
    fallback: Fallback | None = None
    next_try: float | None = None
    outage: Outage = _WELL


_OUTAGES = state_db.Table("provider_outages", most=100)
OnFailure = Callable[["ChainMember", ProviderError, bool], bool]
"""Is told of a failure, and whether this process was told of the same one before; returns whether another provider is
in the place of that member now."""


# --- one provider ----------------------------------------------------------------------------------------------------


class ChainMember(Provider):
    """A provider of the chain, with its health: after a failure it is left alone for a while, by every process.

    `embed` and `identity` report to the chain how they went. Safe for any thread.
    """

    def __init__(self, name: str, role: Role, settings: ProviderSettings, on_failure: OnFailure) -> None:
        self.name, self.role, self.settings = name, role, settings
        self._wire = cache(partial(registry.wire_of, name, settings))
        self.host = ""
        self.model = settings.model if name in registry.ROWS else ""
        # What lacks too much to be asked sends nothing anywhere.
        with suppress(ProviderError):
            wire = self._wire()
            if wire is not None:
                self.host = registry.host_of(wire.base_url)
                self.model = wire.model
            else:
                self.model = (settings.model_path if name == "local" else "") or registry.row(name).model
        self._endpoint = f"{name} {self.model} {self.host}"
        """The key by which the processes share its outage."""
        self.slow = name in registry.ROWS and registry.row(name).slow
        self.pauses = bool(self.host) or self.slow
        """Whether it is left alone for a while after a failure."""
        self.is_model = registry.is_model(name)
        self.outage = _WELL
        """How it failed last, as this process or another one met it."""
        self.worked = False
        """Whether it has answered this process."""
        self._on_failure = on_failure
        self._lock = threading.RLock()
        self._shared: Outage | None = None
        """What the processes share of its outage, as it was last read or written."""
        self._mine = False
        """Whether this process met the outage itself."""
        self._provider: Provider | None = None
        self._batches: BatchService | None = None

    @property
    def elsewhere(self) -> bool:
        """Whether text leaves this machine."""
        return bool(self.host) and not registry.on_this_machine(self.host)

    @property
    def takes_secrets(self) -> bool:
        """Whether it may get text that looks like a secret."""
        return registry.takes_secrets(self.host, self.settings)

    @property
    def lacks_approval(self) -> bool:
        """Whether nothing may be sent, because nobody approved it."""
        return not registry.may_send(self.name, self.host, self.settings)

    def lacks(self) -> ProviderError | None:
        """Return why `auto` cannot choose it, if it cannot; ask nobody."""
        try:
            if self._wire() is None and self.slow:
                # Late, because few have a model on this machine.
                from memory_tui.providers import local

                local.check(self.name, self.settings, on_disk=True)
            registry.require_approval(self.name, self.host, self.settings)
        except ProviderError as error:
            return error
        return None

    def make(self, *, approved: bool = True) -> Provider:
        """Return the provider, made once. Raises ProviderError, also when it has to be `approved` and is not."""
        if approved and self.host:
            # An approval can be taken back at any time, by another process too.
            registry.require_approval(self.name, self.host, self.settings)
        with self._lock:
            if self._provider is None:
                self._provider = create(self.name, self.settings)
            return self._provider

    def batches(self) -> BatchService | None:
        """Return its batch service, where it has one and it is switched on; ask nobody. Raises ProviderError."""
        if self._batches is None and self.settings.jobs.enabled and self.name in registry.BATCHING:
            # Late, because it loads the HTTP client.
            from memory_tui.providers.http import BatchService

            wire = self._wire()
            self._batches = BatchService(wire, self.settings) if wire is not None else None
        return self._batches

    # What a provider does.

    @property
    def identity(self) -> Identity:
        """The space of its vectors; may block on the network, so not for the screen's thread. Raises ProviderError."""
        if self._provider is not None and self._provider.known is not None:
            return self._provider.known
        # One that was made already may ask without an approval: it sends a word of the program's own.
        with self._asking(approved=self._provider is None, embeds=False) as provider:
            return provider.identity

    def expected(self, space: Identity | None = None) -> Identity:
        """Return the space of its vectors as far as can be told without asking anybody.

        What cannot be told is taken from `space`, that of an index: the key of a local model that is not loaded, and
        the length where only an answer tells it. Raises ProviderError for what it lacks but approval.
        """
        if self._provider is not None and self._provider.known is not None:
            return self._provider.known
        space = space or Identity("", "", "", 0)
        if (wire := self._wire()) is not None:
            return wire.identity(wire.dims or space.dims)
        return self.make(approved=False).known or replace(space, provider=self.name, model=self.model)

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that it takes whole."""
        return self.make(approved=False).max_input_bytes

    @property
    def detail(self) -> str:
        """How it works, or why it does not, in a few words."""
        return self.outage.error or (self._provider.detail if self._provider else "not used yet")

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return float32 (len(texts), dims) of unit vectors. Raises ProviderError, Cancelled."""
        with self._asking() as provider:
            return provider.embed(texts, kind)

    def try_out(self, kind: Kind = "document") -> Identity:
        """Embed a text of the program's own, now; return the space of its vector. Nobody has to approve it.

        Raises ProviderError, Cancelled.
        """
        with self._asking(approved=False, obeys_pause=False) as provider:
            provider.embed([_PROBE], kind)
            return provider.identity

    @contextmanager
    def _asking(self, *, approved: bool = True, embeds: bool = True, obeys_pause: bool = True) -> Iterator[Provider]:
        """Yield the provider for one call, and note how the call went.

        The provider has to be `approved`. With `obeys_pause` raise, while it is left alone, instead of asking it. Only
        a call that `embeds` shows that it works; one that tells its space may have asked nobody.
        """
        # Only a failure of a provider that was asked calls for a pause.
        reached = False
        try:
            provider = self.make(approved=approved)
            if self.pauses:
                self.take_over_outage()
            # To tell a space that is known asks nobody.
            asks_somebody = embeds or provider.known is None
            if obeys_pause and asks_somebody:
                self._check_pause()
            reached = True
            yield provider
            if embeds:
                self.worked = True
                if self.outage != _WELL:
                    self.note_outage()
        except ProviderError as error:
            self.failed(error, reached)
            raise

    def close(self) -> None:
        """Release what it holds, and give up what it does."""
        for part in (self._batches, self._provider):
            if part is not None:
                part.close()

    # How it is.

    def take_over_outage(self) -> None:
        """Take over the outage that other processes noted since the last look, or that it answered one of them."""
        with suppress(StateUnavailable, msgspec.ValidationError), self._lock:
            outage = msgspec.convert(_OUTAGES.of(self.settings.scope).read().get(self._endpoint), Outage | None)
            if outage != self._shared:
                self._shared, self._mine = outage, False
                self.outage = outage or _WELL

    def note_outage(self, outage: Outage = _WELL) -> None:
        """Remember how it is, well again by default; for other processes too, where time may mend it."""
        with self._lock:
            self.outage, self._mine = outage, True
            # Without a time for the next try another process may succeed, which has another key for instance.
            shared = outage if outage.next_try is not None else None
            if shared != self._shared:
                self._shared = shared
                # Where it cannot be written every process finds out by itself.
                with suppress(StateUnavailable):
                    _OUTAGES.of(self.settings.scope).put(self._endpoint, msgspec.to_builtins(shared))

    def _check_pause(self) -> None:
        """Raise why it is left alone, with the time of the next try, while that is not reached.

        An outage that another process met holds up only commands that ask once: each of them would wait for the same
        host that is down, whereas a resident process meets the outage one time and knows it from then on.
        """
        outage = self.outage
        if outage.next_try is None or self.settings.clock.now() >= outage.next_try:
            return
        if not self._mine and not self.settings.once:
            return
        when = dt.datetime.fromtimestamp(outage.next_try).astimezone().strftime("%H:%M:%S")
        failure = ProviderFailure(Cause(outage.cause), f"{outage.error} It is asked again at {when}.", outage.next_step)
        failure.repeats = True
        raise failure

    def failed(self, error: ProviderError, reached: bool = False) -> bool:
        """Note why it failed, tell the chain, and return whether another provider is in its place now.

        `reached` tells whether it was asked at all: what was wrong before that no pause mends.
        """
        state = state_of(error)
        if state in providers.OF_THE_TEXT:
            # The text is to blame, and the provider is well.
            return False
        outage = self.outage
        # The same trouble as the last time; where another process met it, this one has told nobody yet.
        goes_on = outage.cause == state.value
        told_before = goes_on and self._mine
        failure = error if isinstance(error, ProviderFailure) else None
        # A failure that repeats why it is left alone tells nothing new: the outage stays as it is.
        if failure is None or not failure.repeats:
            now = self.settings.clock.now()
            failures, next_try = outage.failures, None
            if failure is not None and reached and self.pauses:
                next_try = now + _pause_after(failure, failures)
                failures += 1
            since = outage.failed_at if goes_on else now
            self.note_outage(Outage(error.message, state.value, error.next_step, next_try, since, failures=failures))
        return self._on_failure(self, error, told_before)

    def show(self, *, active: bool = False, before: bool = False) -> MemberState:
        """Return its state; `active` is the provider in use, and those that come `before` it in the chain gave up."""
        outage = self.outage
        state: Health = "given up" if before else "waiting"
        if active and outage.error:
            state = "paused" if outage.next_try else "failing"
        elif active:
            state = "in use"
        return MemberState(
            **asdict(outage),
            name=self.name,
            role=self.role,
            state=state,
            detail=self.detail,
            host=self.host,
            model=self.model,
            approved=not self.lacks_approval,
            worked=self.worked,
        )

    def show_passed_over(self) -> MemberState:
        """Return its state where `auto` passed it over."""
        error = self.lacks() or ProviderError("It was chosen too late.", "")
        why, cause = error.message, state_of(error).value
        return replace(self.show(), state="passed over", detail=why, error=why, next_step=error.next_step, cause=cause)


def create(name: str, settings: ProviderSettings) -> Provider:
    """Return the provider called `name`, made as `settings` say; ask nothing of anybody yet.

    Raises ProviderError for a name that is not in registry.NAMES, and for what `settings` lack, a key for instance.
    """
    if answer := registry.wire_of(name, settings):
        from memory_tui.providers.http import Remote

        return Remote(answer, settings)
    if registry.ROWS[name].slow:
        from memory_tui.providers.local import LocalModel

        return LocalModel(registry.ROWS[name], settings)
    from memory_tui.providers import builtin

    return builtin.PROVIDERS[name]()


def _pause_after(failure: ProviderFailure, earlier: int) -> float:
    """Return how many seconds a provider is left alone after `failure`, which `earlier` failures in a row went before.

    A failure that passes by itself doubles the pause each time; one that a person has to mend has always the same. The
    pause is never shorter than the `retry_after` of the failure.
    """
    doubled = min(_FIRST_PAUSE * 2 ** min(earlier, _MOST_DOUBLINGS), _LONGEST_PAUSE)
    return max(doubled if failure.state in providers.PASSING else _LASTING_PAUSE, failure.retry_after or 0)


# --- all of them -----------------------------------------------------------------------------------------------------


class Chain:
    """The providers that may be used, and which one is. Safe for any thread.

    `on_change` is told of every change for the worse, once: a provider that cannot be made, one that begins to fail,
    and one that takes another's place. It is called on the thread that met the failure.
    """

    def __init__(self, settings: ProviderSettings, on_change: Callable[[ProviderError], None]) -> None:
        self.settings, self._on_change = settings, on_change
        self.name = settings.requested or "auto"
        self.restored = 0
        """How often somebody asked for the first choice to be tried again."""
        self._lock = threading.RLock()
        self.links: list[ChainMember] = []
        """The providers in their order; none before one is asked for, because `auto` looks at what each needs."""
        self._passed: list[ChainMember] = []
        """Those that `auto` passed over, because each lacks something."""

    # What is used.

    def provider(self, space: Identity | None = None) -> ChainMember | None:
        """Return the provider in use; None where a person chose none, or where the state has an `error`. Ask nobody.

        With `space`, that of an index, return the provider of the chain that made its vectors, where there is one and
        it lacks nothing. Hold on to it for one piece of work only: the next call may return another one.
        """
        # Again, as long as a provider that cannot be made is replaced by the next one.
        while self.name != NONE:
            with self._lock:
                members, _ = self._standing()
                for member in members:
                    if member.pauses:
                        member.take_over_outage()
                # What other processes met decides who is in use.
                members, active = self._standing()
            if space is not None and space.provider != members[active].name:
                for member in members:
                    if member.name == space.provider and not member.lacks():
                        return member
            try:
                members[active].make()
                return members[active]
            except ProviderError as error:
                if not members[active].failed(error):
                    return None
        return None

    def batches(self) -> BatchService | None:
        """Return the batch service of the provider in use, where it has one and it is switched on. Ask nobody."""
        member = self.provider()
        return member.batches() if member else None

    def state(self) -> ChainState:
        """Return the chain as it is now, whichever process met it so. Ask nobody."""
        if self.name == NONE:
            return ChainState()
        self.provider()
        with self._lock:
            members, active = self._standing()
            now = members[active]
            outage = now.outage
            error = ProviderFailure(Cause(outage.cause), outage.error, outage.next_step) if outage.error else None
            fallback = None
            if active > 0:
                # The one before it, which gave its place up.
                replaced = members[active - 1]
                before = replaced.outage
                since = before.failed_at or 0.0
                fallback = Fallback(replaced.name, now.name, now.model, before.error, since, next_try=before.next_try)
                if error is None:
                    outage = before
                else:
                    message = f"{before.error} {now.name}, in its place: {error.message}"
                    error = ProviderFailure(error.state, message, error.next_step)
            # Whoever may be asked again first: the provider in use, or one whose place it took.
            times = [member.outage.next_try for member in members[: active + 1] if member.outage.next_try]
            return ChainState(error, fallback, min(times, default=None), outage)

    def members(self) -> tuple[MemberState, ...]:
        """Return every provider of the chain in order, with its state; first those that `auto` passed over."""
        if self.name == NONE:
            return ()
        self.provider()
        with self._lock:
            members, active = self._standing()
            passed = [member.show_passed_over() for member in self._passed]
            states = [member.show(active=rank == active, before=rank < active) for rank, member in enumerate(members)]
            return (*passed, *states)

    @property
    def proposal(self) -> MemberState | None:
        """The provider that would be used once a person approves it; None without any."""
        waiting = self.waiting()
        return next((state for state in self.members() if waiting and state.name == waiting.name), None)

    def waiting(self) -> ChainMember | None:
        """Return the provider that waits for a person's word; None without any. Ask nobody."""
        with self._lock:
            members, _ = self._standing()
            return next((member for member in (members[0], *self._passed) if member.lacks_approval), None)

    # What a person does.

    def try_out(self, name: str = "") -> dict[str, Any]:
        """Make one real call, now, to the provider in use or to the one called `name`.

        Return `ok` with what came back, or with the `error`; `ok` alone, which is False, where no provider is asked
        for, or none of that name is in the chain.
        """
        with self._lock:
            members, active = self._standing()
            name = name or members[active].name
            member = next((member for member in members if member.name == name), None)
        if member is None or self.name == NONE:
            return {"ok": False}
        started = time.perf_counter()
        try:
            identity = member.try_out()
        except ProviderError as error:
            failure = {"ok": False, "provider": member.name, "error": error.message, "nextStep": error.next_step}
            return {**failure, "state": state_of(error).value}
        milliseconds = (time.perf_counter() - started) * 1000
        answer = {"ok": True, "provider": identity.provider, "model": identity.model, "dims": identity.dims}
        return {**answer, "ms": milliseconds, "host": member.host}

    def restore(self) -> None:
        """Go back to the first choice, and let every provider be asked at once, also for the texts that it refused."""
        with self._lock:
            self.restored += 1
            for member in self.links:
                member.note_outage()

    def choose_again(self) -> None:
        """Begin anew, because what decides the choice has changed: an approval, a key, a file."""
        with self._lock:
            members, self.links = self.links, self._choose()
        for member in members:
            member.close()

    def close(self) -> None:
        """Give up every call that is under way and release what the providers hold."""
        for member in self.links:
            member.close()

    # What a sync does.

    def proven(self, space: Identity | None) -> ChainMember | None:
        """Return the provider for a sync of an index with the vectors of `space` (None: it has none).

        One whose vectors would take the place of those has to answer a call first. The first choice is asked again when
        its time has come. None where a person chose none, or none can be used: then the vectors should stay.
        """
        # To take over what other processes met.
        self.provider()
        with self._lock:
            members, active = self._standing()
        first = members[0]
        is_due = self.settings.clock.now() >= (first.outage.next_try or 0.0)
        if active > 0 and is_due and not first.lacks_approval:
            with suppress(ProviderError):
                # A success ends its outage, by which it is in use again.
                first.try_out(self.settings.batches.probe)
        while (member := self.provider()) is not None:
            try:
                if space is not None and not member.worked and member.identity != space:
                    member.try_out(self.settings.batches.probe)
            except ProviderError:
                members, active = self._standing()
                # A failure may have put another one in its place, which is tried next.
                if members[active] is member:
                    return None
            else:
                return member
        return None

    # What happens by itself.

    def _standing(self) -> tuple[list[ChainMember], int]:
        """Return the members, and the index of the one in use: the first that was not given up, else the last."""
        self.links = self.links or self._choose()
        in_place = (index for index, member in enumerate(self.links) if not member.outage.given_up)
        return self.links, next(in_place, len(self.links) - 1)

    def _choose(self) -> list[ChainMember]:
        """Return what is tried in turn: the requested provider, or those that `auto` finds; then the fallback."""
        members = self._automatic() if self.settings.automatic else [self._member(self.name, "chosen", first=True)]
        fallback = self.settings.fallback
        if fallback and fallback not in (NONE, members[0].name):
            # Of what `auto` would try after the first only the built-in table stays behind the chosen fallback.
            table = [member for member in members[1:] if member.name == "builtin" and fallback != "builtin"]
            members = [members[0], self._member(fallback, "fallback"), *table]
        return members

    def _automatic(self) -> list[ChainMember]:
        """Return the providers that `auto` can choose; note the others as passed over."""
        members: list[ChainMember] = []
        self._passed = []
        for name in registry.AUTOMATIC:
            # The configured endpoint and key are for the first provider that text is sent to, and for no other one; a
            # provider that lacks an approval alone counts as the first, too.
            taken = any(registry.sends(member.name) for member in members)
            taken = taken or any(member.lacks_approval for member in self._passed)
            member = self._member(name, "automatic", first=not taken)
            place = self._passed if member.lacks() else members
            place.append(member)
        return members

    def _member(self, name: str, role: Role, *, first: bool = False) -> ChainMember:
        """Make a member. Of those that text is sent to the `first` alone gets the configured endpoint and key."""
        settings = replace(self.settings, requested=name) if first else self.settings.for_provider(name)
        return ChainMember(name, role, settings, self._failed)

    def _failed(self, member: ChainMember, error: ProviderError, told_before: bool) -> bool:
        """Replace a member that failed where that is right; return whether another one is in its place now.

        A chosen fallback always follows. Otherwise a provider that has worked keeps its place through troubles that
        pass, because a change means to embed every note again.
        """
        replaced = False
        with self._lock:
            members, active = self._standing()
            # A late failure of one that was replaced already changes nothing, and the last one has no successor.
            if member is members[active] and member is not members[-1]:
                successor = members[active + 1]
                may_recover = member.worked and state_of(error) in providers.PASSING
                replaced = successor.role == "fallback" or not may_recover
                if replaced:
                    member.note_outage(replace(member.outage, given_up=True))
                    successor.note_outage(replace(successor.outage, given_up=False))
                    message = f"{error.message} {successor.name} is used instead of {member.name}."
                    error = ProviderFailure(state_of(error), message, error.next_step)
        if replaced or not told_before:
            self._on_change(error)
        return replaced


# --- who answers -----------------------------------------------------------------------------------------------------

Mode = Literal["hybrid", "keywords only", "vectors only", "nothing"]
Standing = Literal[
    "ok", "not asked", "off", "not indexed", "needs approval", "failed", "fallback", "fallback starts", "other model"
]


class ServingProvider(Struct, frozen=True):
    """Who answers questions by meaning, and why it is not who was asked for.

    The first line, `status`, `provider`, `doctor`, `index`, `search` and MCP are all made of it. `requested` and
    `requested_model` are as chosen (auto: nobody chose), `answers` and `model` of the provider whose vectors are
    compared, both empty where words alone answer. `mode` is what questions are answered by now, in the record of one
    question what that one was. `reason` is the provider's own sentence, `next_step` what a person can do, `since` when
    it began and `retry_at` when the provider is asked again, both in epoch seconds, None where unknown; `cause` (a
    value of `Cause`) is of the provider that failed, `detail` is what the one that answers says of itself.
    Standings: `not asked` has not been asked by this process; `not indexed` has no vectors in the index yet;
    `fallback starts` took over, and the index is still of the other one; `other model` means that the index has
    vectors that nobody here can compare with.
    """

    requested: str
    requested_model: str
    standing: Standing
    answers: str = ""
    model: str = ""
    mode: Mode = "keywords only"
    reason: str = ""
    next_step: str = ""
    since: float | None = None
    retry_at: float | None = None
    fallback: Fallback | None = None
    detail: str = ""
    cause: str = ""

    @property
    def fine(self) -> bool:
        """Whether the provider that was chosen answers, or would as soon as it is asked; also where none is wanted."""
        return self.standing in ("ok", "not asked", "off", "not indexed")

    @property
    def sentence(self) -> str:
        """The record as a sentence or two, with the provider's own reason."""
        name = f"{self.answers or self.requested} {self.model or self.requested_model}".rstrip()
        simple: dict[Standing, str] = {
            "off": "No embedding provider is asked for: words alone are searched.",
            "ok": f"{name} answers.",
            "not asked": f"{name} answers; this process has not asked it yet.",
            "not indexed": f"{name} is chosen; no vectors yet. An index run makes them, also the one before a search.",
        }
        if self.standing in simple:
            return simple[self.standing]
        if self.fallback is None or self.standing not in ("fallback", "fallback starts"):
            return f"Meaning-based recall is off: {self.reason}"
        instead = f"{self.fallback.to} {self.fallback.model}".rstrip()
        if self.standing == "fallback":
            return (
                f"{instead} answers instead of {self.fallback.source} since {minute(self.fallback.at)}: {self.reason}"
            )
        until = "until the index is rebuilt with its vectors, words alone are searched"
        return f"{instead} takes over from {self.fallback.source}; {until}: {self.reason}"

    @property
    def instead(self) -> dict[str, Any] | None:
        """What is used instead of who was asked for, JSON-ready: from, to, model, reason, since, retryAt.

        Where words alone answer, `to` and `model` are OpenClaw's names for that. None while nothing is lost.
        """
        if self.fine:
            return None
        if self.standing == "fallback" and self.fallback is not None:
            return dict(msgspec.to_builtins(self.fallback))
        source = self.fallback.source if self.fallback else self.requested
        words = Fallback(source, "none", "fts-only", self.reason, at=0.0, next_try=self.retry_at)
        # When that began may be unknown.
        return {**msgspec.to_builtins(words), "since": self.since}

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON-ready fields, with its sentence."""
        hidden = ("fallback", "detail", "cause")
        fields = {camel(name): value for name, value in asdict(self).items() if name not in hidden}
        return {**fields, "sentence": self.sentence, "fallback": self.instead}


def who(chain: Chain, space: Identity | None, *, hybrid: bool = True) -> ServingProvider:
    """Return who answers questions to an index whose vectors are of `space` (None: it has none); ask nobody."""
    if chain.name == NONE:
        return ServingProvider(NONE, "", "off")
    member = chain.provider()
    first = chain.links[0]
    # What `auto` chose has its own model; a model that was named for `auto` is told as it was asked for.
    model = first.model if chain.name == first.name else chain.settings.model
    record = ServingProvider(chain.name, model, "not indexed")
    if member is not first or first.outage.error:
        record = _failing(chain.state(), record, space)
    elif space is not None:
        member = chain.provider(space)
        if member is None or member.expected(space) != space:
            return _not_comparable(record, space, first)
        record = replace(record, standing="not asked" if member.host and not member.worked else "ok")
    if member is None or record.standing not in ("ok", "not asked", "fallback"):
        return record
    mode: Mode = "hybrid" if hybrid else "vectors only"
    return replace(record, answers=member.name, model=member.model, mode=mode, detail=member.detail)


def _failing(now: ChainState, record: ServingProvider, space: Identity | None) -> ServingProvider:
    """Return `record` with why the first choice does not answer; `space` is that of the index, None without vectors."""
    outage, fallback = now.outage, now.fallback
    record = replace(record, fallback=fallback, next_step=outage.next_step, cause=outage.cause)
    if now.error is not None:
        waits_for_approval = not fallback and outage.cause == Cause.NEEDS_APPROVAL.value
        standing: Standing = "needs approval" if waits_for_approval else "failed"
        reason = now.error.message
        return replace(record, standing=standing, reason=reason, since=outage.failed_at, retry_at=now.next_try)
    if fallback is None:
        # It has answered meanwhile.
        return replace(record, standing="ok" if space else "not indexed")
    standing = "fallback" if space is not None and space.provider == fallback.to else "fallback starts"
    return replace(record, standing=standing, reason=fallback.cause, since=fallback.at, retry_at=fallback.next_try)


def _not_comparable(record: ServingProvider, space: Identity, active: ChainMember) -> ServingProvider:
    """Return `record` with how the vectors of `space`, which the index has, differ from those of `active`."""
    old, new = f"{space.provider} {space.model}".rstrip(), f"{active.name} {active.model}".rstrip()
    difference = f"not with {new}" if old != new else "at another address, with other headers or another length"
    reason = f"The index was made with {old}, {difference}: its vectors cannot be compared."
    return replace(record, standing="other model", reason=reason, next_step="Run memory-tui index.")
