"""Decide which provider is used: its health, its pauses, when the fallback takes its place, and who answers now.

A provider is never replaced within a call, and never silently: the vectors of two are not comparable, so the index
has to be made again with the other one, which has another identity.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import state_db
from memory_tui.errors import ProviderError, StateUnavailable
from memory_tui.formatting import minute
from memory_tui.providers import registry
from memory_tui.providers.base import Identity, Kind, Provider, Vectors
from memory_tui.providers.failures import OF_THE_TEXT, PASSING, Cause, ProviderFailure, state_of
from memory_tui.providers.options import ProviderSettings, may_send, on_this_machine, require_approval, takes_secrets

if TYPE_CHECKING:
    from memory_tui.providers.batch import BatchService

NONE = "none"
_PROBE = "A note about embeddings."
_FIRST_SECONDS, _LONGEST_SECONDS, _LASTING_SECONDS = 30.0, 600.0, 300.0
_MOST_DOUBLINGS = 5
Role = Literal["chosen", "automatic", "fallback"]
T = TypeVar("T")


# --- records ---------------------------------------------------------------------------------------------------------


_NAMES = {"source": "from", "cause": "reason", "at": "since", "next_try": "retryAt"}


class Fallback(Struct, frozen=True, rename=_NAMES):
    """That `to` with its own `model` took the place of `source`, the cause as a sentence, and when (epoch seconds).

    `source` is not asked again before `next_try` (epoch seconds; None: when somebody does something about it).
    """

    source: str
    to: str
    model: str
    cause: str
    at: float
    next_try: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-ready fields: from, to, model, reason, since, retryAt."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class LastFailure(Struct, frozen=True, rename="camel"):
    """That the last index run got no vectors from `provider` at `host`: its own sentence, what to do, and when.

    `at` (the beginning of the outage), `latest` and `next_try` are in epoch seconds; `state` is a value of `Cause`.
    """

    provider: str
    model: str
    host: str
    state: str
    message: str
    next_step: str
    at: float
    next_try: float | None = None
    latest: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether a test passed since."""
        return passed_since(self.provider, self.model, self.host, self.latest)


class Traffic(Struct, frozen=True):
    """What a provider was given in some time: calls, how many failed, texts, their UTF-8 bytes, about their tokens."""

    calls: int = 0
    failed: int = 0
    texts: int = 0
    bytes: int = 0
    tokens: int = 0

    def with_call(self, texts: Sequence[str], *, failed: bool) -> Traffic:
        """Return this, and one call more."""
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
        return Identity(self.provider, self.model, self.key, self.dims)


_TESTS = state_db.Table("provider_tests", most=100)


def record_pass(provider: str, model: str, host: str, at: float) -> None:
    """Save that a test of the provider passed, for every process that leaves it alone after a failure."""
    # Without it their pauses end by themselves, only later.
    with suppress(StateUnavailable):
        _TESTS.of("").put(f"{provider} {model} {host}", at)


def passed_since(provider: str, model: str, host: str, at: float) -> bool:
    """Tell whether a test of the provider passed after `at` (epoch seconds), in any process."""
    try:
        passed = _TESTS.of("").read().get(f"{provider} {model} {host}")
    except StateUnavailable:
        return False
    return isinstance(passed, float) and passed > at


# --- one provider ----------------------------------------------------------------------------------------------------


class ChainMember(Provider):
    """A provider of the chain, with its health: after a failure it is left alone until `next_try` (epoch seconds).

    `embed` and `identity` report to the chain how they went. Safe for any thread.
    """

    def __init__(
        self,
        name: str,
        role: Role,
        settings: ProviderSettings,
        on_failure: Callable[[ChainMember, ProviderError, bool], bool],
    ) -> None:
        self.name, self.role, self.settings = name, role, settings
        self.error: ProviderError | None = None
        self.failed_at: float | None = None
        self.failed_latest = 0.0
        self.next_try: float | None = None
        self.failed_before: LastFailure | None = None
        """How it failed when an earlier process asked it; None once it has answered."""
        self.worked = False
        self._last_ms = 0.0
        self._failures = 0
        self._counting = threading.Lock()
        self._traffic = self._today = Traffic()
        self._day = dt.date.today()
        self._on_failure = on_failure
        self._provider: Provider | None = None
        self._batches: BatchService | None = None

    @cached_property
    def host(self) -> str:
        """Where it sends text; empty when it sends none, or lacks too much to be asked."""
        return registry.host(self.name, self.settings)

    @cached_property
    def model(self) -> str:
        """The model it asks for; empty where there is only one."""
        return registry.model(self.name, self.settings)

    @property
    def takes_secrets(self) -> bool:
        """Whether it may get text that looks like a secret."""
        return takes_secrets(self.host, self.settings)

    @property
    def slow(self) -> bool:
        """Whether a call takes seconds of this machine."""
        return self.name in registry.ROWS and registry.ROWS[self.name].slow

    @property
    def lacks_approval(self) -> bool:
        """Whether nothing may be sent, because nobody approved it."""
        return not may_send(self.name, self.host, self.settings)

    def lacks(self) -> ProviderError | None:
        """Return why `auto` cannot choose it, if it cannot; ask nobody."""
        try:
            registry.check(self.name, self.settings)
            require_approval(self.name, self.host, self.settings)
        except ProviderError as error:
            return error
        return None

    def make(self) -> Provider:
        """Make the provider, once. Raises ProviderError, also when nobody approved it."""
        require_approval(self.name, self.host, self.settings)
        return self._create()

    def _create(self) -> Provider:
        if self._provider is None:
            self._provider = registry.create(self.name, self.settings)
        return self._provider

    @property
    def _ready(self) -> Provider:
        return self._provider or self.make()

    def batches(self) -> BatchService | None:
        """Return its batch service, where it has one and it is switched on; ask nobody. Raises ProviderError."""
        if self._batches is None and self.settings.jobs.enabled:
            self._batches = registry.batch_service(self.name, self.settings)
        return self._batches

    def preview(self) -> ProviderPreview:
        """Return what can be told before it is asked anything. Raises ProviderError for what it lacks but approval."""
        if wire := registry.wire_of(self.name, self.settings):
            model, key, dims, most = wire.model, wire.key, wire.dims or 0, wire.max_input_bytes
        else:
            provider = self._create()
            space = provider.identity if provider.identity_known else Identity(self.name, self.model, "", 0)
            model, key, dims, most = space.model, space.key, space.dims, provider.max_input_bytes
        elsewhere = bool(self.host) and not on_this_machine(self.host)
        return ProviderPreview(
            self.name, model, self.host, key, dims, most, elsewhere, not self.lacks_approval, self.takes_secrets
        )

    # What a provider does.

    @property
    def identity(self) -> Identity:
        """The space of its vectors; may block on the network, so not for the screen's thread. Raises ProviderError."""
        return self._call(lambda provider: provider.identity)

    @property
    def identity_known(self) -> bool:
        """Whether the space of its vectors can be told without asking anybody."""
        return self._ready.identity_known

    def expected(self, space: Identity) -> Identity:
        """Return the space of its vectors as far as can be told without asking anybody, the rest from `space`.

        Raises ProviderError for what it lacks.
        """
        if self.identity_known:
            return self.identity
        preview = self.preview()
        return Identity(preview.provider, preview.model, preview.key or space.key, preview.dims or space.dims)

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that it takes whole."""
        return self._ready.max_input_bytes

    @property
    def detail(self) -> str:
        """How it works, or why it does not, in a few words."""
        return self.error.message if self.error else self._provider.detail if self._provider else "not used yet"

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return float32 (len(texts), dims) of unit vectors. Raises ProviderError, Cancelled."""
        self.heed_tests()
        vectors = self._call(lambda provider: self._counted(provider, texts, kind), asks=True)
        self.reset()
        self.worked, self.failed_before = True, None
        return vectors

    def try_out(self, text: str, kind: Kind = "document") -> tuple[Vectors, Identity]:
        """Embed `text` twice, now; return the vectors and their space. For a text of the program's own: nobody has to
        approve it. Raises ProviderError, Cancelled.
        """
        self.reset()
        try:
            provider = self._create()
        except ProviderError as error:
            self.failed(error)
            raise
        result = self._call(lambda provider: (self._counted(provider, [text, text], kind), provider.identity), provider)
        self.worked, self.failed_before = True, None
        return result

    def _call(self, ask: Callable[[Provider], T], provider: Provider | None = None, *, asks: bool = False) -> T:
        """Return what the provider answers, unless it is paused; note its failures.

        Without `provider` that of the member, which needs an approval where it `asks`.
        """
        try:
            if asks:
                # An approval can be taken back at any time, by another process too.
                require_approval(self.name, self.host, self.settings)
            provider = provider or self._ready
            if asks or not provider.identity_known:
                self._check_pause()
            try:
                return ask(provider)
            except ProviderFailure as failure:
                self._pause(failure)
                raise
        except ProviderError as error:
            self.failed(error)
            raise

    def _counted(self, provider: Provider, texts: Sequence[str], kind: Kind) -> Vectors:
        started, failed = time.perf_counter(), True
        try:
            vectors = provider.embed(texts, kind)
            failed = False
        finally:
            with self._counting:
                self._last_ms = (time.perf_counter() - started) * 1000
                if self._day != (day := dt.date.today()):
                    self._day, self._today = day, Traffic()
                self._traffic = self._traffic.with_call(texts, failed=failed)
                self._today = self._today.with_call(texts, failed=failed)
        return vectors

    def close(self) -> None:
        """Release what it holds, and give up what it does."""
        if self._batches is not None:
            self._batches.close()
        if self._provider is not None:
            self._provider.close()

    # How it is.

    def leave(self, failure: LastFailure) -> None:
        """Do not ask it before the time that `failure` names. Raises ProviderError for what it lacks."""
        self.make()
        if self.host or self.slow:
            self.error = ProviderFailure(Cause(failure.state), failure.message, failure.next_step)
            self.failed_at, self.failed_latest, self.next_try = failure.at, failure.latest, failure.next_try
            self._failures = max(1, self._failures)

    def reset(self) -> None:
        """Let it be asked again although it failed."""
        self.error, self.next_try, self._failures = None, None, 0

    def heed_tests(self) -> None:
        """End its pause where a test of it passed since, in any process."""
        if self.next_try is not None and passed_since(self.name, self.model, self.host, self.failed_latest):
            self.reset()
            self.failed_before = None

    def _check_pause(self) -> None:
        """Raise why it is paused, with the time of the next try, while that is not reached."""
        error, until = self.error, self.next_try
        if error is None or until is None or self.settings.clock.now() >= until:
            return
        at = dt.datetime.fromtimestamp(until).astimezone().strftime("%H:%M:%S")
        again = ProviderFailure(state_of(error), f"{error.message} It is asked again at {at}.", error.next_step)
        again.repeats = True
        raise again

    def _pause(self, failure: ProviderFailure) -> None:
        """Leave a provider alone that needs time or a network: the longer, the more often it failed in a row."""
        if failure.state in OF_THE_TEXT or not (self.host or self.slow):
            return
        wait = _LASTING_SECONDS
        if failure.state in PASSING:
            wait = min(_FIRST_SECONDS * 2 ** min(self._failures, _MOST_DOUBLINGS), _LONGEST_SECONDS)
        self._failures += 1
        self.failed_latest = self.settings.clock.now()
        self.next_try = failure.next_try = self.failed_latest + max(wait, failure.retry_after or 0)

    def failed(self, error: ProviderError) -> bool:
        """Note why it failed and tell the chain; return whether another one is in its place now."""
        state, before = state_of(error), self.failed_before
        if state in OF_THE_TEXT:
            return False
        again = self.error is not None and state_of(self.error) is state
        # A provider that is left alone repeats why; what it said itself, and when, stays.
        if not (isinstance(error, ProviderFailure) and error.repeats):
            self.error = error
            if not again or self.failed_at is None:
                goes_on = before is not None and before.state == state.value
                self.failed_at = before.at if before is not None and goes_on else self.settings.clock.now()
        return self._on_failure(self, error, again)

    def show(self, active: bool, before: bool) -> MemberState:
        """Return its state, where it is the `active` one or comes `before` that."""
        error = self.error
        if active:
            state: Literal["in use", "waiting", "failing", "paused", "given up"] = (
                "in use" if error is None else "paused" if self.next_try else "failing"
            )
        else:
            state = "given up" if before else "waiting"
        return MemberState(
            self.name,
            self.role,
            state,
            detail=self.detail,
            host=self.host,
            error=error.message if error else "",
            cause=state_of(error).value if error else "",
            next_step=error.next_step if error else "",
            next_try=self.next_try,
            failed_at=self.failed_at,
            last_ms=self._last_ms,
            calls=self._traffic.calls,
            texts=self._traffic.texts,
            traffic=self._traffic,
            today=self._today if self._day == dt.date.today() else Traffic(),
            model=self.model,
            approved=not self.lacks_approval,
            worked=self.worked,
        )


# --- all of them -----------------------------------------------------------------------------------------------------


class Chain:
    """The providers that may be used, and which one is. Safe for any thread.

    `on_change` is told of every change for the worse, once: a provider that cannot be made, one that begins to fail,
    and one that takes another's place. It is called on the thread that met the failure.
    """

    def __init__(self, settings: ProviderSettings, on_change: Callable[[ProviderError], None]) -> None:
        self.settings = settings
        self.name = settings.requested or "auto"
        self.fallback: Fallback | None = None
        """The last replacement, None while the first choice is used."""
        self.restored = 0
        """How often somebody asked for the first choice to be tried again."""
        self._on_change = on_change
        self._lock = threading.RLock()
        self._members: list[ChainMember] = []
        self._passed: list[ChainMember] = []
        self._active = 0

    # What is used.

    def provider(self) -> ChainMember | None:
        """Return the provider in use, None when there is none, on purpose or because of `error`. Ask nobody.

        Hold on to it for one piece of work only, because the next call may answer with another one.
        """
        if self.name == NONE:
            return None
        while True:
            with self._lock:
                member = self._current()
                try:
                    member.make()
                    return member
                except ProviderError as error:
                    failure = error
            if not member.failed(failure):
                return None

    def batches(self) -> BatchService | None:
        """Return the batch service of the provider in use, where it has one and it is switched on. Ask nobody."""
        member = self.provider()
        return member.batches() if member else None

    def known_identity(self) -> Identity | None:
        """Return the space of the vectors of the provider in use, where that can be told without asking anybody."""
        member = self.provider()
        return member.identity if member and member.identity_known else None

    @property
    def error(self) -> ProviderError | None:
        """Why there are no vectors although they were asked for; None while all is well."""
        self.heed_tests()
        with self._lock:
            error, fallback = self._members[self._active].error if self._members else None, self.fallback
        if error is None or fallback is None:
            return error
        message = f"{fallback.cause} {fallback.to}, in its place: {error.message}"
        return ProviderFailure(state_of(error), message, error.next_step)

    def failure(self) -> LastFailure | None:
        """Return why the provider in use gives no vectors now, for the next process; None while it does."""
        error = self.error
        if error is None:
            return None
        member = self._current()
        return LastFailure(
            member.name,
            member.model,
            member.host,
            state_of(error).value,
            error.message,
            error.next_step,
            member.failed_at or self.settings.clock.now(),
            member.next_try,
            member.failed_latest,
        )

    def members(self) -> tuple[MemberState, ...]:
        """Return every provider of the chain in order, with its state; first those that `auto` passed over."""
        if self.name == NONE:
            return ()
        with self._lock:
            members = self._all()
            passed = [_passed_over(member) for member in self._passed]
            states = [member.show(at == self._active, at < self._active) for at, member in enumerate(members)]
            return (*passed, *states)

    @property
    def next_try(self) -> float | None:
        """Epoch second at which a provider that failed may be asked again."""
        with self._lock:
            members = self._members[: self._active + 1]
        return min((member.next_try for member in members if member.error and member.next_try), default=None)

    @property
    def proposal(self) -> MemberState | None:
        """The provider that would be used once a person approves it; None when that is not it."""
        with self._lock:
            if self.name == NONE:
                return None
            first = self._all()[0]
            if first.lacks_approval:
                return first.show(self._active == 0, self._active > 0)
            return next((state for state in map(_passed_over, self._passed) if not state.approved), None)

    def preview(self, name: str = "") -> ProviderPreview | None:
        """Return what can be told of the provider called `name`; without a name of the one that waits for a person's
        word, else of the one in use; None without any. Ask nobody. Raises ProviderError for what it lacks.
        """
        waiting = self.proposal
        if self.name == NONE or (not name and self.provider() is None and waiting is None):
            return None
        with self._lock:
            name = name or (waiting.name if waiting else self._current().name)
            return next((member.preview() for member in (*self._all(), *self._passed) if member.name == name), None)

    # What a person does.

    def try_out(self, name: str = "") -> dict[str, Any]:
        """Make one real call, now, to the provider in use or to the one called `name`; return `ok`, and what came back
        or `error`.

        `norm` is the length of a vector, `selfSimilarity` the cosine of one text embedded twice; both should be 1.
        """
        with self._lock:
            members = [] if self.name == NONE else self._all()
            member = next((one for one in members if one.name == (name or self._current().name)), None)
        if member is None:
            return {"ok": False}
        started = time.perf_counter()
        try:
            (first, second), identity = member.try_out(_PROBE)
        except ProviderError as error:
            answer = {"ok": False, "provider": member.name, "error": error.message, "nextStep": error.next_step}
            return {**answer, "state": state_of(error).value}
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
            for member in self._members:
                member.heed_tests()
            fallback, first = self.fallback, self._members[0] if self._members else None
            if fallback and first and passed_since(first.name, first.model, first.host, fallback.at):
                self._active, self.fallback = 0, None

    def restore(self) -> None:
        """Go back to the first choice, and ask at once whoever is paused, for what was refused before too."""
        with self._lock:
            self._active, self.fallback = 0, None
            self.restored += 1
            for member in self._members:
                member.reset()

    def choose_again(self) -> None:
        """Begin anew, because what decides the choice has changed: an approval, a key, a file."""
        with self._lock:
            members, self._members, self._passed = self._members, [], []
            self._active, self.fallback = 0, None
        for member in members:
            member.close()

    def close(self) -> None:
        """Give up every call that is under way and release what the providers hold; takes 0.3 s at most."""
        for member in self._members:
            member.close()

    # What a sync does.

    def replaces(self, fallback: Fallback) -> bool:
        """Tell whether `fallback`, which an earlier process wrote down, is of the providers that are chosen now."""
        if self.name == NONE:
            return False
        with self._lock:
            return [member.name for member in self._all()[:2]] == [fallback.source, fallback.to]

    def resume(self, fallback: Fallback) -> None:
        """Start where an earlier process ended: with the fallback, while the first choice is not to be asked."""
        if fallback.next_try is None or self.settings.clock.now() >= fallback.next_try:
            return
        with self._lock:
            if self._active == 0 and self.replaces(fallback):
                self._active, self.fallback = 1, fallback
                self.heed_tests()

    def remember(self, failure: LastFailure, *, leave: bool) -> None:
        """Remember what an earlier process met: an outage that goes on began then. With `leave` nobody is asked before
        its time.

        For a command that asks once: the wait for a host that is down would come with each of them.
        """
        if self.name == NONE or failure.ended:
            return
        with self._lock:
            member = self._current()
            if (failure.provider, failure.model, failure.host) != (member.name, member.model, member.host):
                return
            member.failed_before = failure
            if leave and failure.next_try is not None and self.settings.clock.now() < failure.next_try:
                member.leave(failure)

    def proven(self, space: Identity | None) -> ChainMember | None:
        """Return the provider in use; where its vectors would take the place of those of `space`, one that answers.

        Ask the first choice again when its time has come. None when there is none, on purpose or because of `error`:
        then what is there should stay.
        """
        self._reconsider()
        while (member := self.provider()) is not None:
            try:
                if space is not None and not member.worked and member.identity != space:
                    member.try_out(_PROBE, self.settings.batches.probe)
            except ProviderError:
                if self._current() is member:
                    return None
            else:
                return member
        return None

    def _reconsider(self) -> None:
        """Go back to the first choice when its time has come and it answers."""
        with self._lock:
            fallback, first = self.fallback, self._all()[0] if self.fallback else None
        if fallback is None or first is None or first.lacks_approval:
            return
        due = first.next_try or fallback.next_try
        if due is None or self.settings.clock.now() >= due:
            with suppress(ProviderError):
                first.try_out(_PROBE, self.settings.batches.probe)
                with self._lock:
                    self._active, self.fallback = 0, None

    def of_space(self, space: Identity) -> ChainMember | None:
        """Return the provider that makes vectors of `space`, where the chain has it; otherwise the one in use."""
        if self.name == NONE:
            return None
        with self._lock:
            others = [member for member in self._all() if member is not self._current()]
        same = (member for member in others if member.name == space.provider and member.lacks() is None)
        return next(same, None) or self.provider()

    def makes(self, space: Identity) -> bool:
        """Tell whether a question can be compared with vectors of `space`, as far as is known without asking."""
        member = self.of_space(space)
        return member is not None and _expected(member, space) == space

    def space_to_make(self, space: Identity | None) -> Identity | None:
        """Return the space that an index should be made in, as far as is known without asking anybody; `space` is the
        one that it has. None where nothing is known: then what is there should stay.
        """
        if space is None:
            return self.known_identity()
        member = self.provider()
        return _expected(member, space) if member else None

    # What happens by itself.

    def _current(self) -> ChainMember:
        with self._lock:
            return self._all()[self._active]

    def _all(self) -> list[ChainMember]:
        """Return the members; with `auto`, what each provider needs is looked at when they are first asked for."""
        if not self._members:
            automatic = self.settings.automatic
            chosen = self._automatic() if automatic else [self._member(self.name, "chosen", self.settings)]
            then = self.settings.fallback
            if then and then not in (NONE, chosen[0].name):
                follows = self._member(then, "fallback", self.settings.for_provider(then))
                chosen = [chosen[0], follows, *(one for one in chosen[1:] if one.name == "builtin" != then)]
            self._members = chosen
        return self._members

    def _automatic(self) -> list[ChainMember]:
        members: list[ChainMember] = []
        self._passed = []
        for name in registry.AUTOMATIC:
            # What was said about endpoint and key is for one provider, and must not be sent to another one.
            taken = any(registry.sends(one.name) for one in members) or any(one.lacks_approval for one in self._passed)
            settings = self.settings.for_provider(name) if taken else replace(self.settings, requested=name)
            member = self._member(name, "automatic", settings)
            (self._passed if member.lacks() else members).append(member)
        return members

    def _member(self, name: str, role: Role, settings: ProviderSettings) -> ChainMember:
        return ChainMember(name, role, settings, self._failed)

    def _failed(self, member: ChainMember, error: ProviderError, again: bool) -> bool:
        """Replace a member that failed where that is right; return whether another one is in its place now."""
        with self._lock:
            members = self._all()
            follows = members[self._active + 1] if self._active + 1 < len(members) else None
            moved = member is members[self._active] and follows is not None and _gives_way(member, follows, error)
            if moved and follows is not None:
                self._active += 1
                now = self.settings.clock.now()
                self.fallback = Fallback(member.name, follows.name, follows.model, error.message, now, member.next_try)
                message = f"{error.message} {follows.name} is used instead of {member.name}."
                error = ProviderFailure(state_of(error), message, error.next_step)
        if moved or not again:
            self._on_change(error)
        return moved


def _passed_over(member: ChainMember) -> MemberState:
    error = member.lacks() or ProviderError("It was chosen too late.", "")
    state = replace(
        member.show(False, False),
        state="passed over",
        detail=error.message,
        error=error.message,
        next_step=error.next_step,
    )
    return replace(state, cause=state_of(error).value)


def _gives_way(member: ChainMember, to: ChainMember, error: ProviderError) -> bool:
    """Tell whether `to` should take the place of `member` after `error`.

    A chosen fallback always does. Otherwise a provider that has worked keeps its place through troubles that pass,
    because a change means to embed every note again.
    """
    return to.role == "fallback" or not member.worked or state_of(error) not in PASSING


def _expected(member: ChainMember, space: Identity) -> Identity | None:
    """Return the space of `member` as far as is known; None for one that lacks what it needs, as `error` says."""
    try:
        return member.expected(space)
    except ProviderError:
        return None


# --- who answers -----------------------------------------------------------------------------------------------------

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
LOST = "Meaning-based recall is off"


class ServingProvider(Struct, frozen=True):
    """Who answers questions by meaning, and why it is not who was asked for.

    The first line, `status`, `provider`, `doctor`, `index`, `search` and MCP are all made of it. `requested` and
    `requested_model` are as chosen (auto: nobody chose), `answers` and `model` of the provider whose vectors are
    compared, both empty where words alone answer. `mode` is what questions are answered by now, in the record of one
    question what that one was. `reason` is the provider's own sentence, `next_step` what a person can do, `since` when
    it began and `retry_at` when the provider is asked again, both in epoch seconds, None where unknown; `host` and
    `cause` (a value of `Cause`) are of the provider that failed, `detail` is what the one that answers says of itself.
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
    host: str = ""
    cause: str = ""

    @property
    def fine(self) -> bool:
        """Whether who was asked for answers, or nothing stands in the way."""
        return self.standing in ("ok", "not asked", "off", "not indexed")

    @property
    def label(self) -> str:
        """The record in a few words, for the first line."""
        name, fallback = self.answers or self.requested, self.fallback
        labels: dict[Standing, str] = {
            "off": "embedding off",
            "ok": f"{name} ok",
            "not asked": f"{name} not asked yet",
            "not indexed": f"{name} ok",
            "needs approval": f"{name} needs approval",
            "failed": f"{name} {self._trouble or 'failed'}",
            "other model": "index of another model",
        }
        if fallback is None or self.standing in labels:
            return labels.get(self.standing, f"{self.requested} failed")
        if self.standing == "fallback failed":
            return f"{fallback.source} and {fallback.to} failed"
        verb = "instead of" if self.standing == "fallback" else "takes over from"
        return f"{fallback.to} {verb} {fallback.source}"

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
        name = f"{self.answers or self.requested} {self.model or self.requested_model}".rstrip()
        match self.standing:
            case "off":
                return "No embedding provider is asked for: words alone are searched."
            case "ok":
                return f"{name} answers."
            case "not asked":
                return f"{name} answers; this process has not asked it yet."
            case "not indexed":
                return f"{name} is chosen; the index has no vectors yet, and words alone are searched."
        if self.fallback is not None and self.standing in ("fallback", "fallback starts"):
            instead = f"{self.fallback.to} {self.fallback.model}".rstrip()
            if self.standing == "fallback":
                since = minute(self.fallback.at)
                return f"{instead} answers instead of {self.fallback.source} since {since}: {self.reason}"
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
        source = self.fallback.source if self.fallback else self.requested
        return Fallback(source, "none", "fts-only", self.reason, self.since or 0.0, self.retry_at).as_dict() | {
            "since": self.since
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON-ready fields, with its sentence."""
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


class _Lost(NamedTuple):
    """Why who was asked for does not answer: fields of ServingProvider."""

    reason: str = ""
    next_step: str = ""
    since: float | None = None
    retry_at: float | None = None
    host: str = ""
    cause: str = ""


_NOTHING = _Lost()


def who(
    chain: Chain,
    space: Identity | None,
    *,
    hybrid: bool = True,
    recorded: Fallback | None = None,
    last: LastFailure | None = None,
) -> ServingProvider:
    """Return who answers questions to an index whose vectors are of `space` (None: it has none); ask nobody.

    `recorded` and `last` are what the index run before wrote down, for a process that has not asked yet.
    """
    if chain.name == NONE:
        return ServingProvider(NONE, "", "off")
    chain.provider()
    used = [member for member in chain.members() if member.state != "passed over"]
    active = next(member for member in used if member.state in ("in use", "failing", "paused"))
    error, tried = chain.error, any(member.calls or member.error or member.worked for member in used)
    model = used[0].model if chain.name == used[0].name else chain.settings.model
    mode: Mode = "hybrid" if hybrid else "vectors only"

    def of(standing: Standing, by: MemberState | None = None, lost: _Lost = _NOTHING) -> ServingProvider:
        record = ServingProvider(chain.name, model, standing, *(by.name, by.model, mode) if by else ())
        return replace(record, **lost._asdict(), fallback=fallback, detail=by.detail if by else "")

    if last is not None and (tried or last.ended or not any(_is_of(last, member) for member in used)):
        last = None
    fallback = chain.fallback
    if fallback is None and recorded is not None and chain.replaces(recorded):
        of_it = (space is not None and space.provider == recorded.to) or (last and last.provider == recorded.to)
        fallback = recorded if of_it else None
    if error is not None:
        alone: Standing = "needs approval" if active.cause == Cause.NEEDS_APPROVAL.value else "failed"
        cause = state_of(error).value
        lost = _Lost(error.message, error.next_step, active.failed_at, chain.next_try, active.host, cause)
        return of("fallback failed" if fallback else alone, None, lost)
    if last is not None and last.state != Cause.NEEDS_APPROVAL.value and (not fallback or last.provider == fallback.to):
        lost = _Lost(last.message, last.next_step, last.at, last.next_try, last.host, last.state)
        return of("fallback failed" if fallback else "failed", None, lost)
    named = {member.name: member for member in reversed(used)}
    if fallback is not None:
        source = named.get(fallback.source, active)
        lost = _Lost(fallback.cause, source.next_step, fallback.at, fallback.next_try, source.host, source.cause)
        if space is None or space.provider != fallback.to:
            return of("fallback starts", None, lost)
        return of("fallback", named.get(fallback.to, active), lost)
    if space is None:
        return of("not indexed")
    if not chain.makes(space):
        old, now = f"{space.provider} {space.model}".rstrip(), f"{active.name} {active.model}".rstrip()
        other = f"not with {now}" if old != now else "at another address, with other headers or another length"
        reason = f"The index was made with {old}, {other}: its vectors cannot be compared."
        return of("other model", None, _Lost(reason, "Run memory-tui index."))
    answering = named.get(space.provider, active)
    return of("not asked" if answering.host and not answering.worked else "ok", answering)


def _is_of(last: LastFailure, member: MemberState) -> bool:
    return (last.provider, last.model, last.host) == (member.name, member.model, member.host)


def as_recorded(member: MemberState, who: ServingProvider) -> MemberState:
    """Return `member`, whose process has asked nobody yet, with what the record `who` keeps of an earlier one."""
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
