"""Finds text that holds a password or a key. It gives kind and position, never the secret itself.

The finder knows keys in the format that their maker documents, and what people write: values after a label in many
languages and in Markdown, passwords beside a user's name, codes in a sentence that names what they open, words of a
wallet, a password made of words and signs. It verifies nothing over the network, and takes nothing for a secret merely
because it looks random: notes are full of ids, commits, digests and hosts.

Conversations are masked by OpenClaw's own patterns: its documented defaults, in their order, with JavaScript's meaning.
A word, a digit, a border of words and letter case are ASCII there, white space is JavaScript's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from memory_tui import jsstring
from memory_tui.secrets import tables
from memory_tui.secrets.labels import LABELLED, NOTHING_KNOWN, Known, Label, Span, placeholder, prefix_of, written


class KeyFormat(NamedTuple):
    """How the keys of a maker look: group 1 of a match, or all of it, is the key.

    A key begins where a word does, unless it is so telling that it counts `anywhere`.
    It has 16 signs or more, as few words of a text, and no space, unless it may be `short`.
    """

    kind: str
    pattern: str
    anywhere: bool = False
    short: bool = False


BASIC, COMMAND = "Basic Auth Credentials", "password in a command"
TOKEN, PRIVATE = "JSON Web Token", "Private Key"


@cache
def signs() -> tuple[tuple[str, KeyFormat], ...]:
    """Return every format, once with each of the words of which its keys hold one, in lower case; read once.

    A row of the file has kind, words and pattern.
    """
    formats = tables("formats.toml")
    return tuple(
        (word, KeyFormat(kind, pattern, anywhere=name == "anywhere", short=kind in formats["short"]))
        for name in ("at_words", "anywhere")
        for kind, holds, pattern in formats[name]
        for word in holds
    )


_LONGEST_PIECE = 8000
"""Characters that are looked at together, because some patterns take quadratic time; cut between lines where it can."""

MASK = "***"

_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_REST = r"[A-Za-z0-9_+/=.~-]*"
"""Goes on to the end of a key, because some patterns know only how it starts."""
_BESIDE = re.compile(r"[`* \t/:,;|-]{1,5}([0-9a-f]{32,64}|(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)[\w+/=]{20,200})(?![\w.-])")
"""What looks random beside a key is the other half of a pair, and has no form of its own."""
_CUT_FOR_SHOW = re.compile(r"\.{3}|…")
_ID = re.compile(r"(?<![\w/-])[A-Za-z][A-Za-z0-9]{1,20}+[_-][A-Za-z0-9_-]{12,80}")
_ADDRESS = re.compile(r"https?://\S{8,400}")
_ADDRESS_PART = re.compile(r"[\w-]{16,}")
_FEWEST_IDS, _BEFORE = 3, 200
"""Values that make a prefix one of ids, and characters before each in which a label is looked for."""


class Finding(Struct, frozen=True):
    """That something at `start` to `end` (characters) looks like a secret: of which `kind`, and in which line from 1.

    `label` is what stood before it, where that made it one. It does not hold the text, so that no log or traceback can.
    """

    kind: str
    line: int
    start: int
    end: int
    label: Label | None = None


def find(text: str, known: Known = NOTHING_KNOWN) -> tuple[Finding, ...]:
    """Find everything in `text` that looks like a secret, by position; what overlaps is one finding."""
    spans = [
        (piece_start + start, piece_start + end, kind, label)
        for piece_start, piece in _pieces(text)
        for start, end, kind, label in (*_by_maker(piece), *written(piece, known))
    ]
    spans += _private(text)
    findings: list[Finding] = []
    line, counted_to = 1, 0
    for start, end, kind, label in sorted(spans, key=lambda span: (span[0], -span[1])):
        last = findings[-1] if findings else None
        if last is not None and start < last.end:
            # The first to begin has the more telling name, unless that only tells of a label.
            if last.kind != LABELLED or kind == LABELLED:
                kind, label = last.kind, last.label
            findings[-1] = Finding(kind, last.line, last.start, max(end, last.end), label)
        else:
            line += text.count("\n", counted_to, start)
            counted_to = start
            findings.append(Finding(kind, line, start, end, label))
    return tuple(finding for finding in findings if exactly(text[finding.start : finding.end]) not in known.cleared)


def is_doubtful(text: str, findings: Iterable[Finding], known: Known) -> bool:
    """Tell whether one of `findings`, which were made without what is `known` of the workspace, may be none with it."""
    values = "\n".join(text[finding.start : finding.end] for finding in findings)
    parts = _ADDRESS_PART.findall(values)
    return not known.in_addresses.isdisjoint(parts) or any(prefix in values for prefix in known.prefixes)


def exactly(text: str) -> tuple[str, str]:
    """Return what stands for one value or line, and nothing else, among what a person took for none."""
    return "", hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def known_of(texts: Iterable[str], cleared: Collection[tuple[str, str]] = ()) -> Known:
    """Return what `texts` tell of values that are no secrets, and the labels with prefixes that a person `cleared`.

    A prefix that three or more different values have, of which fewer than half stand after a label, is one of ids.
    """
    address_parts: set[str] = set()
    values: dict[str, set[str]] = defaultdict(set)
    lines: dict[str, set[str]] = defaultdict(set)
    # Piece by piece, because nothing else runs while a pattern is looked for, and a note may have 30 MB.
    for text in (piece for whole in texts for _, piece in _pieces(whole)):
        for address in _ADDRESS.findall(text):
            address_parts.update(_ADDRESS_PART.findall(address))
        for match in _ID.finditer(text):
            prefix = prefix_of(match[0])
            values[prefix].add(match[0])
            # The value with what stands before it on its line, which may be the label of a secret.
            lines[prefix].add(text[max(0, match.start() - _BEFORE) : match.end()].rpartition("\n")[2])
    id_prefixes = set()
    for prefix, ids in values.items():
        if len(ids) >= _FEWEST_IDS:
            labelled = ((line, finding) for line in lines[prefix] for finding in find(line) if finding.kind == LABELLED)
            secrets = {line[finding.start : finding.end] for line, finding in labelled}
            if 2 * len(secrets & ids) < len(ids):
                id_prefixes.add(prefix)
    return Known(in_addresses=frozenset(address_parts), prefixes=frozenset(id_prefixes), cleared=frozenset(cleared))


def masked(text: str, mask: Callable[[str], str] = lambda _secret: MASK) -> str:
    """Return `text` with `mask` of what looks like a secret in its place."""
    return covered(text, find(text), mask)


def covered(text: str, findings: Iterable[Finding], mask: Callable[[str], str] = lambda _secret: MASK) -> str:
    """Return `text` with `mask` of each of `findings` in its place."""
    parts: list[str] = []
    last_end = 0
    for finding in findings:
        parts += (text[last_end : finding.start], mask(text[finding.start : finding.end]))
        last_end = finding.end
    return "".join((*parts, text[last_end:]))


def kinds(text: str, known: Known = NOTHING_KNOWN) -> tuple[str, ...]:
    """Return the kinds of what `find` finds, each once."""
    return tuple(dict.fromkeys(finding.kind for finding in find(text, known)))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield parts of `text` with their positions; mostly all of it. They are cut between lines, else between words."""
    start = 0
    while len(text) - start > _LONGEST_PIECE:
        most = start + _LONGEST_PIECE
        # Behind the last line end; 0 where there is none, then behind the last blank, else anywhere.
        end = text.rfind("\n", start, most) + 1 or text.rfind(" ", start, most) + 1 or most
        yield start, text[start:end]
        start = end
    yield start, text[start:]


def _private(text: str) -> Iterator[Span]:
    """Yield private keys from their first line to their last, however long."""
    searched_to = 0
    while (start := text.find("-----BEGIN", searched_to)) >= 0:
        searched_to = start + 1
        if match := _PRIVATE_KEY.match(text, start):
            last_line = text.find("-----END", match.end())
            # One that is cut off goes on to a blank line.
            end = text.find("\n", last_line) if last_line >= 0 else text.find("\n\n", match.end())
            searched_to = end if end >= 0 else len(text)
            yield start, searched_to, PRIVATE, None


def _by_maker(text: str) -> Iterator[Span]:
    """Yield keys whose maker gave them a form of their own."""
    lower_text = text.lower()
    # A key without spaces has 16 signs or more, so that it is in a word that is as long.
    long_words = " ".join([word for word in lower_text.split() if len(word) >= 16])
    # Few texts hold any of these words, and all texts are looked at; a format may have several words.
    formats = dict.fromkeys([form for word, form in signs() if word in (lower_text if form.short else long_words)])
    for form in formats:
        for match in _compiled(form).finditer(text):
            # The group that is the key, where the pattern has one; else all of it.
            start, end = match.span(match.lastindex or 0)
            if form.kind in (BASIC, COMMAND) and (placeholder(match[1]) or _GAP.fullmatch(match[1])):
                continue
            if (form.kind == TOKEN and not _is_token(match[0])) or _CUT_FOR_SHOW.match(text, end):
                continue
            yield start, end, form.kind, None
            if half := _BESIDE.match(text, end):
                yield *half.span(1), form.kind, None


@cache
def _compiled(form: KeyFormat) -> re.Pattern[str]:
    """Return the pattern of a format, which begins at a word unless its keys count anywhere."""
    if form.anywhere:
        return re.compile(form.pattern + _REST, re.ASCII)
    return re.compile(rf"(?<![A-Za-z0-9]){form.pattern}")


def _is_token(text: str) -> bool:
    """Tell whether the first two parts of `text` are JSON in Base64, as a JSON Web Token has them."""
    try:
        for part in text.split(".")[:2]:
            # Base64 without the signs that fill it up to four, which are put back.
            json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return False
    return True


_GAP = re.compile(r"(?:[<{].*|.*\*{3}.*|x{3,}|\.{3,}|pass(?:word)?|pw|pwd|secret|token)", re.IGNORECASE)
"""What stands in an example in the place of a password."""


@cache
def _of_openclaw() -> tuple[re.Pattern[str], ...]:
    """Return OpenClaw's own patterns; compiled once, at the first conversation."""
    space = re.escape(jsstring.WHITESPACE)
    patterns = (pattern.replace("{space}", space) for pattern in tables("formats.toml")["openclaw"])
    return tuple(re.compile(pattern, re.ASCII | re.IGNORECASE) for pattern in patterns)


_SLICED_FROM, _SLICE = 32_768, 16_384
_CLEAR_HEAD, _CLEAR_TAIL = 6, 4
_SHORTEST_SHOWN = 18


def redact(text: str) -> str:
    """Return `text` with every secret masked; of long ones the first 6 and the last 4 characters stay.

    Text of more than 32,768 UTF-16 units is looked at in slices of 16,384, so that a secret across a cut can stay.
    """
    # In slices as OpenClaw looks at it, so that the same secrets stay.
    for pattern in _of_openclaw():
        is_long = jsstring.utf16_len(text) > _SLICED_FROM
        slices = jsstring.utf16_slices(text, _SLICE) if is_long else [text]
        text = "".join(pattern.sub(_masked, part) for part in slices)
    return text


def _masked(match: re.Match[str]) -> str:
    """Return what a pattern of OpenClaw matched with a mask for the secret: its last group, or all of it."""
    whole = match.group()
    if "PRIVATE KEY-----" in whole:
        return MASK
    groups = [group for group in match.groups() if group]
    secret = groups[-1] if groups else whole
    # OpenClaw counts as JavaScript does.
    units = jsstring.utf16_slices(secret, 1)
    is_short = len(units) < _SHORTEST_SHOWN
    mask = MASK if is_short else "".join((*units[:_CLEAR_HEAD], "…", *units[-_CLEAR_TAIL:]))
    return whole.replace(secret, mask, 1)
