"""The serving provider as a status reports it. It says which one was asked for, which one answers, and why.

The first line, the Cause pane, `status`, `provider`, `doctor`, `index`, `search` and MCP are all made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.formatting import minute
from memory_tui.providers.chain import Fallback
from memory_tui.providers.failures import Cause, LastFailure, state_of

if TYPE_CHECKING:
    from memory_tui.providers.chain import Chain
    from memory_tui.providers.chain_member import MemberState
    from memory_tui.providers.provider_protocol import Identity

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
