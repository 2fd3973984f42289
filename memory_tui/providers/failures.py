"""What an answer other than 200 means: which state, in the provider's own words, and how long to wait."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from memory_tui.embed.failure import State

_LONGEST = 300
_LONGEST_WAIT = 86_400.0
_QUOTA_CODES = frozenset({"insufficient_quota", "quota_exceeded", "billing_hard_limit_reached", "billing_not_active"})
_BY_STATUS = {
    401: State.BAD_KEY,
    402: State.QUOTA,
    403: State.BAD_KEY,
    404: State.UNKNOWN_MODEL,
    408: State.SERVER,
    413: State.TOO_LARGE,
    425: State.SERVER,
    429: State.RATE_LIMIT,
    431: State.TOO_LARGE,
}
# Looked for in this order in the text of a 400, 404 or 422, and of a 5xx, which some servers use for bad input.
_BY_WORDS = (
    (State.BAD_KEY, re.compile(r"api[ _-]?key (not valid|expired|not found)|invalid api[ _-]?key|api_key_invalid")),
    (
        State.TOO_LARGE,
        re.compile(
            r"(?<!physical )batch ?size|too many (inputs|requests in|texts|items)|array too long|payload size|"
            r"\bbatch\b(?! size).{0,60}(limit|exceed|larg|most)|number of (inputs|texts)|"
            r"(max(imum)?|at most) .{0,30}(inputs|items|requests|texts)"
        ),
    ),
    (
        State.TOO_LONG,
        re.compile(
            r"context length|context window|too long|max(imum)? input|input length|max(imum)?[ _]tokens?|"
            r"too many tokens|tokens? limit|is too large to process"
        ),
    ),
    # What a server says whose JSON cannot hold the vector that its model made of the text.
    (State.NO_VECTOR, re.compile(r"unsupported value: [+-]?(nan|inf)|out of range float values are not json")),
    (
        State.UNKNOWN_MODEL,
        re.compile(
            r"model.{0,120}(not exist|not found|not supported|unknown|invalid|unavailable|not available)|"
            r"(unknown|invalid|no such|unsupported|does not support).{0,20} model|model_not_found"
        ),
    ),
)
_WORDS_COUNT = frozenset({400, 404, 422, 500})
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


class Verdict(NamedTuple):
    """A state, the provider's own words in one line, and the seconds it asked to be left alone."""

    state: State
    words: str
    retry_after: float | None


def judge(status: int, headers: Mapping[str, str], body: str) -> Verdict:
    """What an answer with that `status` means. `headers` are looked up in lower case."""
    fields = _error_fields(body)
    words = _one_line(fields.get("message", "") or _MARKUP.sub(" ", body))
    wait = _retry_after(headers, body)
    return Verdict(_state(status, fields, f"{fields.get('code', '')} {words} {body[:2000]}".lower(), wait), words, wait)


def _state(status: int, fields: Mapping[str, str], text: str, wait: float | None) -> State:
    if status == 429:
        spent = {fields.get("code", ""), fields.get("type", "")} & _QUOTA_CODES
        return State.QUOTA if (spent and wait is None) or "perday" in text else State.RATE_LIMIT
    if status in _WORDS_COUNT:
        for state, pattern in _BY_WORDS:
            if pattern.search(text):
                return state
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return State.SERVER if status >= 500 else State.REFUSED


def _error_fields(body: str) -> dict[str, str]:
    """Message, code and type, from `{error: {...}}`, `{error: "..."}`, `{detail}` or `{message}`."""
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(tree, list) and tree:
        tree = tree[0]
    if not isinstance(tree, dict):
        return {}
    error = tree.get("error", tree)
    if not isinstance(error, dict):
        return {"message": str(error)}
    said = error.get("message") or error.get("detail") or error.get("msg") or ""
    if not isinstance(said, str):
        said = json.dumps(said, ensure_ascii=False)
    return {"message": said, "code": str(error.get("code") or ""), "type": str(error.get("type") or "")}


def _retry_after(headers: Mapping[str, str], body: str) -> float | None:
    """Seconds from `Retry-After` (a number or a date), `retry-after-ms`, or Gemini's `retryDelay`; a day at most."""
    asked = _asked_wait(headers, body)
    return None if asked is None else min(max(0.0, asked), _LONGEST_WAIT)


def _asked_wait(headers: Mapping[str, str], body: str) -> float | None:
    said = headers.get("retry-after", "").strip()
    delay = re.search(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"', body)
    try:
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        if re.fullmatch(r"\d+(\.\d+)?", said):
            return float(said)
        if said:
            return parsedate_to_datetime(said).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return float(delay[1]) if delay else None


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
