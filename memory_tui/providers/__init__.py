"""Providers: each turns texts into unit vectors of a space that has an identity, or says why it has none."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from memory_tui.errors import ProviderError
from memory_tui.formatting import install_extra

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_DIMS = 100_000
"""Numbers of the longest vector that an index holds."""
# In quotes, so that to name a provider loads no numpy.
Vectors: TypeAlias = "npt.NDArray[np.float32]"
Kind = Literal["document", "query"]


class Identity(Struct, frozen=True):
    """Which space a vector lives in; vectors of two identities are never compared."""

    provider: str
    model: str
    key: str
    """Fingerprint of endpoint and headers, as hexadecimal SHA-256."""
    dims: int

    @property
    def space(self) -> tuple[str, str, str]:
        """Provider, model and key, by which an index keeps vectors of any length."""
        return self.provider, self.model, self.key


def fingerprint(**fields: object) -> str:
    """Return the SHA-256 of `fields` as JSON in the order given, as JavaScript writes it: the documented key of a
    provider, of `provider` and `model` alone where it has no endpoint.
    """
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


class MediaText(str):
    """The label of a media file, in the place of a text; whoever embeds it sends the file's bytes as well.

    `load` reads type and bytes, no more than `most`. Raises ProviderError where the file is not what was indexed.
    """

    load: Callable[[], tuple[str, bytes]]
    most: int

    def __new__(cls, label: str, most: int, load: Callable[[], tuple[str, bytes]]) -> MediaText:
        """Join `label` and what comes with it."""
        text = super().__new__(cls, label)
        text.most, text.load = most, load
        return text


class Provider:
    """Turns text into vectors. Safe to call from several threads."""

    known: Identity | None = None
    """The space of its vectors, where that can be told without loading a model or asking a server."""

    @property
    def max_input_bytes(self) -> int:
        """UTF-8 bytes of the longest text that is embedded whole; longer chunks are split before they get here."""
        return 8000

    @property
    def detail(self) -> str:
        """How it works, in a few words for the screen."""
        return ""

    @property
    def identity(self) -> Identity:
        """The space of its vectors; the first time it may load a model or ask a server how long they are.

        Raises ProviderError when that fails, and Cancelled after `close`.
        """
        raise NotImplementedError

    def expected(self, space: Identity | None = None) -> Identity:
        """Return the space as far as can be told without asking anybody, completed by that of an index."""
        del space
        return self.identity

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return float32 (len(texts), dims): unit vectors, or zeros for a text without any token.

        Raises ProviderError, and Cancelled after `close`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what it holds, and end at once what it does for other threads."""


# --- what an answer holds --------------------------------------------------------------------------------------------


class Malformed(ValueError):
    """An answer that must not be stored; its text completes the sentence "answered with ..."."""


class NoDirection(Malformed):
    """Vectors of the right length that point nowhere; `every` one of the answer, or some of them."""

    def __init__(self, message: str, every: bool) -> None:
        super().__init__(message)
        self.every = every


def members(answer: object, name: str, member: str = "") -> list[object]:
    """Return the list called `name` in an answer, or with `member` that member of each row.

    Rows that tell their `index` are put into that order first. Raises Malformed.
    """
    rows = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise Malformed(f"JSON that has no list {name!r}")
    if not member:
        return rows
    by_index = {row["index"]: row for row in rows if isinstance(row, dict) and isinstance(row.get("index"), int)}
    if by_index:
        if by_index.keys() != set(range(len(rows))):
            raise Malformed("rows whose indexes are not 0, 1, 2, ...")
        rows = [by_index[index] for index in range(len(rows))]
    if not all(isinstance(row, dict) and member in row for row in rows):
        raise Malformed(f"rows without {member}")
    return [row[member] for row in rows]


def unit_vectors(rows: list[object], count: int, dims: int | None) -> Vectors:
    """Return float32 (count, dims) of unit vectors of the numbers in `rows`; `dims` is None where that is unknown yet.

    Raises Malformed, NoDirection.
    """
    # Late, because the rows of providers import this, and numpy is not needed to read them.
    import numpy as np

    if len(rows) != count:
        raise Malformed(f"{len(rows)} vectors for {count} texts")
    lengths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise Malformed("rows that are not vectors of one length")
    if max(lengths) > MOST_DIMS:
        raise Malformed(f"vectors of {max(lengths):,} numbers, where an index holds at most {MOST_DIMS:,}")
    if dims is not None and lengths != {dims}:
        raise Malformed(f"vectors of {lengths.pop()} numbers where {dims} were expected")
    try:
        values = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise Malformed("vectors that are not made of numbers") from error
    largest = np.abs(values).max(axis=1, keepdims=True)
    # NaN is neither above 0 nor below infinity.
    has_direction = (largest > 0) & (largest < np.inf)
    if not has_direction.all():
        message = "a vector of zeros only" if np.isfinite(largest).all() else "vectors that hold NaN or infinity"
        raise NoDirection(message, every=not has_direction.any())
    # Scaled to at most 1 first, because the squares of very large or very small numbers have no float.
    values /= largest
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)


def in_rows(done: Mapping[int, Vectors], count: int, dims: int) -> Vectors:
    """Return the vectors of `done` by position, float32 (count, dims); zeros where there is none."""
    import numpy as np

    vectors = np.zeros((count, dims), np.float32)
    for position, vector in done.items():
        vectors[position] = vector
    return vectors


# --- why there are no vectors --------------------------------------------------------------------------------------


class Cause(Enum):
    """What is wrong, in the words that the screen shows, and what to do about it."""

    advice: str

    def __new__(cls, word: str, advice: str = "") -> Cause:
        """Make a member that is looked up by its word."""
        member = object.__new__(cls)
        member._value_, member.advice = word, advice
        return member

    RATE_LIMIT = "rate limit", "Wait; memory-tui tries again by itself, with one request at a time."
    QUOTA = "quota exhausted", "Look at plan and billing of the account, or choose another provider."
    NEEDS_APPROVAL = "needs approval"
    NO_KEY = "no key", "Put the key into the environment or into remote.apiKey, or choose another provider."
    BAD_KEY = "bad key", "Check the key, and that it may be used for embeddings."
    UNKNOWN_MODEL = "unknown model", "Check the model and the address (remote.baseUrl)."
    TOO_LONG = "text too long", "Make chunking.tokens smaller, or choose a model that takes longer text."
    TOO_LARGE = "batch too large", "Nothing to do: smaller batches are sent from now on."
    NO_VECTOR = (
        "no vector for a text",
        "Nothing to do: words still find it. Other words in that note, or another model, may help.",
    )
    REFUSED = "request refused", "Check the model, the address (remote.baseUrl) and remote.headers."
    SERVER = "server error", "Wait; memory-tui tries again by itself."
    NETWORK = "network down", "Check the network, a proxy if there is one, and the address (remote.baseUrl)."
    TIMEOUT = "no answer in time", "Check the network, or whether the server is overloaded."
    MALFORMED = (
        "malformed answer",
        "Check the address (remote.baseUrl) and the model: this is not what an embedding endpoint answers.",
    )
    NOT_INSTALLED = "not installed", f"{install_extra('local')} (llama-cpp-python is compiled, which takes minutes)."
    NO_FILE = "model file missing", "Check local.modelPath."
    CRASHED = "local model crashed", "Try another model file; this one does not work with the installed software."
    BROKEN = "broken", "Choose another provider."


OF_THE_TEXT = frozenset({Cause.TOO_LONG, Cause.TOO_LARGE, Cause.NO_VECTOR})
"""About what was sent, not about the provider."""
RETRIED = frozenset({Cause.RATE_LIMIT, Cause.SERVER, Cause.NETWORK})
"""Worth another attempt within the same call."""
PASSING = RETRIED | {Cause.TIMEOUT, Cause.MALFORMED}
"""Likely to be over after a while, without anybody doing anything."""


class ProviderFailure(ProviderError):
    """A ProviderError with its `state`.

    `retry_after` is how many seconds the provider asked to be left alone. `done` holds the unit vectors of those texts
    of the call, by position, that were made (and paid for) before it failed. `broke_off` tells that a connection was
    made and broke, as servers do with requests that are too much for them, `repeats` that a provider which is left
    alone was not asked.
    """

    def __init__(self, state: Cause, message: str, next_step: str = "", retry_after: float | None = None) -> None:
        # What comes from a program ends as it likes, and more is said behind it.
        ended = message if message.rstrip().endswith((".", "!", "?", ":")) else f"{message.rstrip()}."
        super().__init__(ended, next_step or state.advice)
        self.state, self.retry_after = state, retry_after
        self.broke_off = self.repeats = False
        self.done: dict[int, Vectors] = {}

    def as_dict(self) -> dict[str, str]:
        """Return the error as JSON-ready fields: code, message, nextStep, state."""
        return {**super().as_dict(), "state": self.state.value}


def state_of(error: ProviderError) -> Cause:
    """Return the state that `error` tells, BROKEN for one that tells none."""
    return error.state if isinstance(error, ProviderFailure) else Cause.BROKEN


_LONGEST = 300
_LONGEST_WAIT = 86_400.0
_QUOTA_CODES = frozenset({"insufficient_quota", "quota_exceeded", "billing_hard_limit_reached", "billing_not_active"})
_BY_STATUS = {
    **dict.fromkeys((401, 403), Cause.BAD_KEY),
    **dict.fromkeys((402,), Cause.QUOTA),
    **dict.fromkeys((404,), Cause.UNKNOWN_MODEL),
    **dict.fromkeys((408, 425), Cause.SERVER),
    **dict.fromkeys((413, 431), Cause.TOO_LARGE),
}
# Looked for in this order in the text of a 400, 404 or 422, and of a 5xx, which some servers use for bad input;
# compiled for the first failure.
_BY_WORDS = (
    (Cause.BAD_KEY, r"api[ _-]?key (not valid|expired|not found)|invalid api[ _-]?key|api_key_invalid"),
    (
        Cause.TOO_LARGE,
        r"(?<!physical )batch ?size|too many (inputs|requests in|texts|items)|array too long|payload size|"
        r"\bbatch\b(?! size).{0,60}(limit|exceed|larg|most)|number of (inputs|texts)|"
        r"(max(imum)?|at most) .{0,30}(inputs|items|requests|texts)",
    ),
    (
        Cause.TOO_LONG,
        r"context length|context window|too long|max(imum)? input|input length|max(imum)?[ _]tokens?|"
        r"too many tokens|tokens? limit|is too large to process",
    ),
    # What a server says whose JSON cannot hold the vector that its model made of the text.
    (Cause.NO_VECTOR, r"unsupported value: [+-]?(nan|inf)|out of range float values are not json"),
    (
        Cause.UNKNOWN_MODEL,
        r"model.{0,120}(not exist|not found|not supported|unknown|invalid|unavailable|not available)|"
        r"(unknown|invalid|no such|unsupported|does not support).{0,20} model|model_not_found",
    ),
)
_WORDS_COUNT = frozenset({400, 404, 422, 500})
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def diagnose(status: int, headers: Mapping[str, str], body: str) -> tuple[Cause, str, float | None]:
    """Return what an answer with that `status` means, its own words in one line, and the seconds of its Retry-After.

    The seconds are None where it tells none. `headers` are looked up in lower case.
    """
    fields = _error_fields(body)
    wait = _retry_after(headers, body)
    words = " ".join((fields.get("message") or _MARKUP.sub(" ", body)).split())
    if len(words) > _LONGEST:
        words = words[: _LONGEST - 1] + "…"
    text = f"{fields.get('code', '')} {words} {body[:2000]}".lower()
    if status == 429:
        # An account whose quota is spent is told no time to wait for; Gemini names a quota of a day "...PerDay...".
        spent = wait is None and not _QUOTA_CODES.isdisjoint((fields.get("code"), fields.get("type")))
        return Cause.QUOTA if spent or "perday" in text else Cause.RATE_LIMIT, words, wait
    if status in _WORDS_COUNT:
        for cause, pattern in _BY_WORDS:
            if re.search(pattern, text):
                return cause, words, wait
    return _BY_STATUS.get(status, Cause.SERVER if status >= 500 else Cause.REFUSED), words, wait


def _error_fields(body: str) -> dict[str, str]:
    """Return message, code and type, from `{error: {...}}`, `{error: "..."}`, `{detail}` or `{message}`."""
    try:
        answer = json.loads(body)
        # Gemini answers some requests with a list of one.
        answer = answer[0] if isinstance(answer, list) else answer
        error = answer.get("error", answer)
    except (ValueError, RecursionError, IndexError, AttributeError):
        return {}
    if not isinstance(error, dict):
        return {"message": str(error)}
    message = error.get("message") or error.get("detail") or error.get("msg") or ""
    message = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    return {"message": message, "code": str(error.get("code") or ""), "type": str(error.get("type") or "")}


def _retry_after(headers: Mapping[str, str], body: str) -> float | None:
    """Return the seconds of `retry-after-ms`, `Retry-After` or Gemini's `retryDelay`, the first that is there; a day
    at most. None where there is none that can be read.
    """
    text = headers.get("retry-after", "").strip()
    delay = re.search(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"', body)
    wait: float | None = None
    # Late, because it takes 5 ms to load, and the header is rare.
    from email.utils import parsedate_to_datetime

    try:
        if "retry-after-ms" in headers:
            wait = float(headers["retry-after-ms"]) / 1000
        elif re.fullmatch(r"\d+(\.\d+)?", text):
            wait = float(text)
        elif text:
            wait = parsedate_to_datetime(text).timestamp() - time.time()
        elif delay:
            wait = float(delay[1])
    except (ValueError, OverflowError):
        return None
    return None if wait is None else min(max(0.0, wait), _LONGEST_WAIT)
