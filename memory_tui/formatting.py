"""One way to write for a person: any text safe to show, and counts, scores, ages and names of fields alike.

A text cannot steer the terminal, hide itself or reorder its neighbours. What has no form of its own gets one: control
pictures for C0, `<9B>` for C1, `<RLO>` for direction marks, `<ZWSP>` for invisible characters, U+FFFD for halves of
characters. Joiners that letters and emoji need stay. Markup such as `[b]` is ordinary text here and stays as it is;
whoever draws it must not interpret it.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata

TAB = "    "

_NAMES = {
    0x00AD: "-",  # a soft hyphen is drawn by some terminals and not by others
    0x061C: "<ALM>", 0x200E: "<LRM>", 0x200F: "<RLM>",
    0x202A: "<LRE>", 0x202B: "<RLE>", 0x202C: "<PDF>", 0x202D: "<LRO>", 0x202E: "<RLO>",
    0x2066: "<LRI>", 0x2067: "<RLI>", 0x2068: "<FSI>", 0x2069: "<PDI>",
    0x180E: "<MVS>", 0x200B: "<ZWSP>", 0x2060: "<WJ>", 0xFEFF: "<BOM>",
    0x2028: "\u2424", 0x2029: "\u2424", 0x007F: "\u2421", 0x0009: TAB,
}  # fmt: skip

# A flag such as the one of Scotland is a black flag spelled out in tag characters; elsewhere tags only hide text.
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_UNSAFE = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\ud800-\udfff\ufffe\uffff\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# One variation selector belongs to the character before it; bytes can be hidden in a row of them.
_SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
# What makes an emoji wide or dark takes cells on some terminals and none on others; without it all count the same.
# It takes long to compile, so that this waits for a text that is not ASCII.
_DRESS = "\ufe0f|(?<=[\u2600-\U0001faff])[\U0001f3fb-\U0001f3ff]"
_HIDDEN = rf"(?<={_SELECTORS}){_SELECTORS}"
_PRINTABLE_AND_UNSAFE = re.compile(f"[\u034f\u3164\uffa0]|{_HIDDEN}")
_IN_LINES = re.compile(f"[{_UNSAFE}]|{_HIDDEN}")
_EACH_IN_LINES = re.compile(f"{_FLAG}|\r\n|[{_UNSAFE}]|{_HIDDEN}")
_EACH = re.compile(f"{_FLAG}|[{_UNSAFE}\n]|{_HIDDEN}")


def safe(text: str, *, keep_newlines: bool = False) -> str:
    """Return `text` with every character that could act instead of being seen replaced by a visible stand-in.

    With `keep_newlines` line ends stay (CR LF becomes LF), otherwise they are shown as control pictures. A tab
    becomes four spaces. Applying it twice changes nothing more.
    """
    if not text.isprintable() or (not text.isascii() and _PRINTABLE_AND_UNSAFE.search(text)):
        text = (_EACH_IN_LINES if keep_newlines else _EACH).sub(_visible, text)
    return text if text.isascii() else re.sub(_DRESS, "", text)


def one_line(text: str, width: int | None = None) -> str:
    """Return `text` safe and on one line, white space collapsed, cut with an ellipsis to `width` terminal cells."""
    line = safe(" ".join(text.split()))
    # No character takes more than two cells.
    if width is None or 2 * len(line) <= width:
        return line
    # `end` is how much of the line fits before an ellipsis.
    used = end = 0
    for position, character in enumerate(line, 1):
        used += cells(character)
        if used > width:
            return line[:end].rstrip() + "…" if width > 0 else ""
        # One cell is left for the ellipsis.
        if used < width:
            end = position
    return line


def json_safe(text: str) -> str:
    """Return JSON `text` with every character that could act, or hide, as its escape: the same data, made safe."""
    return text if text.isascii() and "\x7f" not in text else _IN_LINES.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it, in UTF-16 units of two bytes."""
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))


def _visible(match: re.Match[str]) -> str:
    """Return the stand-in of what `_EACH` finds: a character that could act, the end of a line, or a flag."""
    text = match[0]
    if len(text) > 1:
        return "\n" if text == "\r\n" else text
    code = ord(text)
    if code in _NAMES:
        return _NAMES[code]
    if code < 0x20:
        # The picture of a control character, such as ␛.
        return chr(0x2400 + code)
    if code < 0xA0:
        return f"<{code:02X}>"
    if 0xD800 <= code <= 0xDFFF or code in (0xFFFE, 0xFFFF):
        return "\ufffd"
    return f"<U+{code:04X}>"


def cells(character: str) -> int:
    """Return the terminal cells of one character: 0 for marks drawn on the one before, 2 for wide ones."""
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# --- values ---------------------------------------------------------------------------------------------------------


def install_extra(name: str) -> str:
    """Return how an extra of this package is installed, as a sentence without its end."""
    return f"In a clone of memory-tui: uv tool install '.[{name}]'"


def plural(count: int, noun: str) -> str:
    """Return `1 file`, `2 files`, `12,345 queries`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{count:,} {noun}s"


def signed(value: float, digits: int = 3) -> str:
    """Return a gain or loss with its sign: `+0.021`, `-0.004`; what rounds to nothing has none: `0.000`."""
    # z: no minus before a zero.
    text = f"{value:+z.{digits}f}"
    return text if float(text) else text[1:]


def minute(at: float) -> str:
    """Return the moment `at` (epoch seconds) to the minute, by the clock of this machine: `2026-01-12 09:30`."""
    return dt.datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def second(at: float) -> str:
    """Return the moment `at` (epoch seconds) to the second, in the same way: `2026-01-12 09:30:05`."""
    return dt.datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")


def camel(name: str) -> str:
    """Return `start_line` as `startLine`."""
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


NEVER = "never fades"
"""The age of a note that does not age."""


def age_words(days: float | None) -> str:
    """Return an age as a person says it: `today`, `14 days`, `10 months`, `3 years`, `in 2 days`; None never fades."""
    if days is None:
        return NEVER
    if days < 0:
        return f"in {plural(round(-days), 'day')}" if days < -0.5 else "today"
    whole = int(days)
    if whole < 1:
        return "today"
    if whole < 100:
        return plural(whole, "day")
    return plural(round(days / 30.44), "month") if whole < 731 else plural(int(days / 365.25), "year")
