"""Why a provider gave no vectors: a closed set of states, what to do about each, and the error that carries one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from memory_tui.errors import ProviderError

if TYPE_CHECKING:
    from memory_tui.embed.provider import Vectors


class State(Enum):
    """What is wrong, in the words that the screen shows."""

    RATE_LIMIT = "rate limit"
    QUOTA = "quota exhausted"
    NO_CONSENT = "needs your word"
    NO_KEY = "no key"
    BAD_KEY = "bad key"
    UNKNOWN_MODEL = "unknown model"
    TOO_LONG = "text too long"
    TOO_LARGE = "batch too large"
    NO_VECTOR = "no vector for a text"
    REFUSED = "request refused"
    SERVER = "server error"
    NETWORK = "network down"
    TIMEOUT = "no answer in time"
    MALFORMED = "malformed answer"
    NOT_INSTALLED = "not installed"
    NO_FILE = "model file missing"
    CRASHED = "local model crashed"
    BROKEN = "broken"


RETRIED = frozenset({State.RATE_LIMIT, State.SERVER, State.NETWORK})
"""Worth another attempt within the same call."""
PASSING = RETRIED | {State.TIMEOUT, State.MALFORMED}
"""Likely to be over after a while, without anybody doing anything."""
OF_THE_TEXT = frozenset({State.TOO_LONG, State.TOO_LARGE, State.NO_VECTOR})
"""About what was sent, not about the provider."""

ADVICE: Mapping[State, str] = {
    State.RATE_LIMIT: "Wait; memory-tui tries again by itself, with one request at a time.",
    State.QUOTA: "Look at plan and billing of the account, or choose another provider.",
    State.NO_CONSENT: "See what would be sent: memory-tui index --dry-run. To agree: memory-tui index --yes.",
    State.NO_KEY: "Put the key into the environment or into remote.apiKey, or choose another provider.",
    State.BAD_KEY: "Check the key, and that it may be used for embeddings.",
    State.UNKNOWN_MODEL: "Check model and remote.baseUrl.",
    State.TOO_LONG: "Make chunking.tokens smaller, or choose a model that takes longer text.",
    State.TOO_LARGE: "Nothing to do: smaller batches are sent from now on.",
    State.NO_VECTOR: "Nothing to do: words still find it. Other words in that note, or another model, may help.",
    State.REFUSED: "Check model, remote.baseUrl and remote.headers.",
    State.SERVER: "Wait; memory-tui tries again by itself.",
    State.NETWORK: "Check the network, a proxy if there is one, and remote.baseUrl.",
    State.TIMEOUT: "Check the network, or whether the server is overloaded.",
    State.MALFORMED: "Check remote.baseUrl and model: this is not what an embedding endpoint answers.",
    State.NOT_INSTALLED: "Install it: pip install 'memory-tui[local]' (llama-cpp-python is compiled, which takes "
    "minutes).",
    State.NO_FILE: "Check local.modelPath.",
    State.CRASHED: "Try another GGUF file; this one does not work with the installed llama-cpp-python.",
    State.BROKEN: "Choose another provider.",
}


class ProviderFailure(ProviderError):
    """A ProviderError with its `state`.

    `retry_after` is how many seconds the provider asked to be left alone, `next_try` the epoch second before which it
    is not asked again. `done` holds the unit vectors of those texts of the call, by position, that were made (and
    paid for) before it failed. `broke_off` tells that a connection was made and broke, as servers do with requests
    that are too much for them.
    """

    def __init__(self, state: State, message: str, next_step: str = "", retry_after: float | None = None) -> None:
        # What comes from a program ends as it likes, and more is said behind it.
        ended = message if message.rstrip().endswith((".", "!", "?", ":")) else f"{message.rstrip()}."
        super().__init__(ended, next_step or ADVICE[state])
        self.state = state
        self.retry_after = retry_after
        self.next_try: float | None = None
        self.broke_off = False
        self.done: dict[int, Vectors] = {}

    def as_dict(self) -> dict[str, str]:
        """The error as JSON-ready fields: code, message, nextStep, state."""
        return {**super().as_dict(), "state": self.state.value}


def state_of(error: ProviderError) -> State:
    """The state that `error` tells, BROKEN for one that tells none."""
    return error.state if isinstance(error, ProviderFailure) else State.BROKEN
