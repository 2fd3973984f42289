"""String rules of JavaScript. OpenClaw's chunk boundaries, ids and snippets depend on them.

Lengths and cuts count UTF-16 units: a character above U+FFFF counts two and can be cut in half, which leaves a lone
surrogate. Everything has a fast path for text without such characters.
"""

from __future__ import annotations

import hashlib

WHITESPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What `String.prototype.trim` and `\\s` take for white space; Python's own set differs in U+FEFF and controls."""


def _units(text: str) -> bytes:
    """Return the UTF-16 units of `text`, two bytes each; a lone surrogate is one of them."""
    return text.encode("utf-16-le", "surrogatepass")


def _text(units: bytes) -> str:
    """Return the text that some UTF-16 units make."""
    return units.decode("utf-16-le", "surrogatepass")


def has_astral(text: str) -> bool:
    """Return whether any character of `text` counts two units."""
    return not text.isascii() and len(_units(text)) != 2 * len(text)


def utf16_len(text: str) -> int:
    """Return the length of `text` in UTF-16 units."""
    return len(text) if text.isascii() else len(_units(text)) // 2


def utf16_slices(text: str, size: int) -> list[str]:
    """Return slices of `size` UTF-16 units in a row; a character that is cut leaves a lone surrogate on both sides."""
    if not has_astral(text):
        return [text[start : start + size] for start in range(0, len(text), size)]
    units = _units(text)
    return [_text(units[start : start + 2 * size]) for start in range(0, len(units), 2 * size)]


def utf16_head(text: str, count: int) -> str:
    """Return the first `count` UTF-16 units, one fewer where the cut would halve a character."""
    # A character has one unit or more, so that no more characters are needed.
    head = text[:count]
    if head.isascii():
        return head
    units = _units(head)
    # Two bytes for each unit.
    if len(head) == len(text) and len(units) <= 2 * count:
        return text
    units = units[: 2 * count]
    # The last byte is the high one of its unit: 0xD8 to 0xDB begin a character of two units, which is cut then.
    if units and 0xD8 <= units[-1] <= 0xDB:
        units = units[:-2]
    return _text(units)


def trim(text: str) -> str:
    """Return `text` without JavaScript white space at both ends."""
    return text.strip(WHITESPACE)


def well_formed(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD, so that it can be stored and encoded.

    Its length in UTF-16 units, its UTF-8 length and its hash stay those of the original.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _units(text).decode("utf-16-le", "replace")
    return text


def sha256_hex(text: str) -> str:
    """Return the SHA-256 of the UTF-8 form of `text`, as 64 hexadecimal digits."""
    try:
        # Most texts, without another call.
        return hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        return hashlib.sha256(well_formed(text).encode()).hexdigest()
