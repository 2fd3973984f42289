"""Redaction masks secrets of a conversation with OpenClaw's own patterns.

The patterns are its documented defaults, in their order, with JavaScript's meaning: `\\w`, `\\d`, `\\b` and letter case
are ASCII, `\\s` is JavaScript's white space.
"""

from __future__ import annotations

import re

from memory_tui.core import jsstring

_SPACE = re.escape(jsstring.WHITESPACE)
_PATTERNS = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        rf"\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)\b[{_SPACE}]*[=:][{_SPACE}]*([\"']?)([^{_SPACE}\"'\\]+)\1",
        rf'"(?:apiKey|token|secret|password|passwd|accessToken|refreshToken)"[{_SPACE}]*:[{_SPACE}]*"([^"]+)"',
        rf"--(?:api[-_]?key|token|secret|password|passwd)[{_SPACE}]+([\"']?)([^{_SPACE}\"']+)\1",
        rf"Authorization[{_SPACE}]*[:=][{_SPACE}]*Bearer[{_SPACE}]+([A-Za-z0-9._\-+=]+)",
        rf"\bBearer[{_SPACE}]+([A-Za-z0-9._\-+=]{{18,}})\b",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----",
        r"\b(sk-[A-Za-z0-9_-]{8,})\b",
        r"\b(ghp_[A-Za-z0-9]{20,})\b",
        r"\b(github_pat_[A-Za-z0-9_]{20,})\b",
        r"\b(xox[baprs]-[A-Za-z0-9-]{10,})\b",
        r"\b(xapp-[A-Za-z0-9-]{10,})\b",
        r"\b(gsk_[A-Za-z0-9_-]{10,})\b",
        r"\b(AIza[0-9A-Za-z\-_]{20,})\b",
        r"\b(pplx-[A-Za-z0-9_-]{10,})\b",
        r"\b(npm_[A-Za-z0-9]{10,})\b",
        r"\bbot(\d{6,}:[A-Za-z0-9_-]{20,})\b",
        r"\b(\d{6,}:[A-Za-z0-9_-]{20,})\b",
    )
)
_LONG = 32_768
_SLICE = 16_384
_KEPT = (6, 4)
_SHORTEST_SHOWN = 18


def redact(text: str) -> str:
    """`text` with every secret masked; of long ones the first 6 and the last 4 characters stay.

    Text of more than 32,768 UTF-16 units is looked at in slices of 16,384, so that a secret across a cut can stay.
    """
    for pattern in _PATTERNS:
        if jsstring.utf16_len(text) > _LONG:
            text = "".join(pattern.sub(_masked, part) for part in jsstring.utf16_slices(text, _SLICE))
        else:
            text = pattern.sub(_masked, text)
    return text


def _masked(match: re.Match[str]) -> str:
    whole = match.group()
    if "PRIVATE KEY-----" in whole:
        return "***"
    token = next((group for group in reversed(match.groups()) if group), whole)
    return whole.replace(token, _mask(token), 1)


def _mask(token: str) -> str:
    if jsstring.utf16_len(token) < _SHORTEST_SHOWN:
        return "***"
    units = jsstring.utf16_slices(token, 1)
    return "".join((*units[: _KEPT[0]], "…", *units[-_KEPT[1] :]))
