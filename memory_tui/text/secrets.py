"""What looks like a password or key in a text: what it is and where, never the thing itself.

The patterns, the entropy and the heuristics are those of detect-secrets, run on strings: nothing is verified over the
network. Ours is what it does not know of notes: labels in other languages and in Markdown, and which of many
random-looking words are addresses, digests or names. Its plugins for hexadecimal digits and public addresses are left
out, because notes are full of commits, digests and hosts that are no secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

LABELLED, RANDOM = "labelled password or key", "random-looking text"
_LEFT_OUT = frozenset({"Public IP (ipv4)"})
_LONGEST_PIECE = 8000
"""Characters that are looked at together, because some patterns take quadratic time; cut between lines where it can."""

# What every match of a plugin's patterns holds, in lower case: most texts are ruled out by it fifty times faster.
_WORDS = ("key", "pass", "pwd", "pw", "token")
_HOLDS: Mapping[str, tuple[str, ...]] = {
    "Artifactory Credentials": ("akc", *(f"ap{sign}" for sign in "0123456789abcdef")),
    "AWS Access Key": ("a3t", "abia", "acca", "akia", "asia", "aws"),
    "Azure Storage Account access key": ("accountkey=",),
    "Basic Auth Credentials": ("://",),
    "Cloudant Credentials": (*_WORDS, "cloudant.com"),
    "GitHub Token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "IBM Cloud IAM Key": _WORDS,
    "IBM COS HMAC Credentials": ("secret",),
    "JSON Web Token": ("eyj",),
    "Mailchimp Access Key": ("-us",),
    "NPM tokens": ("_authtoken",),
    "OpenAI Token": ("t3blbkfj",),
    "Private Key": ("private key", "putty"),
    "PyPI Token": ("pypi-",),
    "SendGrid API Key": ("sg.",),
    "Slack Token": ("xox", "slack.com"),
    "SoftLayer Credentials": (*_WORDS, "softlayer.com"),
    "Square OAuth Secret": ("sq0csp",),
    "Stripe Access Key": ("k_live_",),
    "Telegram Bot Token": (":",),
}
MASK = "***"
_LABELS_HOLD = (
    *_WORDS,
    "secret",
    "contra",
    "senha",
    "mot de",
    "密",
    "パス",
    "암호",
    "비밀",
    "парол",
    "كلمة",
    "hasło",
    "haslo",
    "şifre",
    "sifre",
)

_HINTS = frozenset({*_LABELS_HOLD, *(word for words in _HOLDS.values() for word in words)} - {":"})
"""What a text has to hold, in lower case, to be looked through at all; keys of no other mark are long words."""

# As people write them in notes: `**Password:** x`, `| Passwort | x |`, `密码：x`, `the password is x`.
_LABEL = re.compile(
    r"(?:(?P<word>passw(?:or[dt]|d)|passphrase|passcode|mot de passe|contrase(?:ñ|n)a|senha|wachtwoord|hasło|şifre"
    r"|парол[ьяе]|密[码碼]|パスワード|암호|비밀번호|كلمة (?:المرور|السر))"
    r"|(?P<name>(?:api|access|auth|secret|private|bearer)[ _-]?(?:key|token)|token|secret))"
    r"[\"'*_`)\]]{0,4}\s*(?:[:=：|]|=>|\bis\b|:=|->|→)[\s\"'*_`|]{0,6}(?P<value>[^\s\"'`|]+)",
    re.IGNORECASE,
)
_SHORTEST = {"word": 6, "name": 16}
_ADDRESS = re.compile(r"\b(?:https?|ftp|file|mailto|obsidian|data):\S+|\bsha\d{1,3}-\S+|\bAAAA[A-Z]\S+", re.ASCII)
"""Links, images written out, digests of packages and public keys: long and random-looking, and no secret."""
_LONG = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_ENTROPY_BITS = 4.0
"""Bits a character; detect-secrets asks for 4.5 in quoted text of any length, which 24 characters hardly ever have."""
_CHANGES = 0.38
"""Share of neighbours that are of two classes (small, capital, digit). In random text it is 0.62, in words 0.1."""
_REST = re.compile(r"[A-Za-z0-9_+/=.~-]*")
_NO_VALUE = re.compile(r"\d{1,4}[-./:]\d{1,2}[-./:]\d{1,4}|.*(?:pass|://|\.{3}|…|x{4}|\*{3})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """That something at `start` to `end` (characters) looks like a secret: of which `kind`, and in which line from 1.

    It does not hold the text, so that no log or traceback can.
    """

    kind: str
    line: int
    start: int
    end: int


def find(text: str) -> tuple[Finding, ...]:
    """Everything in `text` that looks like a secret, by position, without overlaps."""
    spans = [
        (at + start, at + end, kind)
        for at, piece in _pieces(text)
        for start, end, kind in (*_known(piece), *_labelled(piece), *_random(piece))
    ]
    found: list[Finding] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if found and start < found[-1].end:
            last = found[-1]
            # The first to begin has the more telling name, unless it is only said to be random.
            kind = kind if last.kind in (RANDOM, LABELLED) and kind != RANDOM else last.kind
            found[-1] = Finding(kind, last.line, last.start, max(end, last.end))
        else:
            found.append(Finding(kind, text.count("\n", 0, start) + 1, start, end))
    return tuple(found)


def masked(text: str) -> str:
    """`text` without what looks like a secret, for titles and lists; plain text costs next to nothing."""
    if not (_LONG.search(text) or any(word in text.lower() for word in _HINTS)):
        return text
    for found in reversed(find(text)):
        text = f"{text[: found.start]}{MASK}{text[found.end :]}"
    return text


def kinds(text: str) -> tuple[str, ...]:
    """The kinds of what `find` finds, each once."""
    return tuple(dict.fromkeys(found.kind for found in find(text)))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Parts of `text` with their positions; mostly all of it."""
    at = 0
    while len(text) - at > _LONGEST_PIECE:
        end = text.rfind("\n", at, at + _LONGEST_PIECE) + 1 or at + _LONGEST_PIECE
        yield at, text[at:end]
        at = end
    yield at, text[at:]


@lru_cache(maxsize=1)
def _plugins() -> tuple[RegexBasedDetector, ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector

    makers: Mapping[str, type[object]] = get_mapping_from_secret_type_to_class()
    found = (makers[name]() for name in sorted(makers) if name not in _LEFT_OUT)
    return tuple(plugin for plugin in found if isinstance(plugin, RegexBasedDetector))


def _known(text: str) -> Iterator[tuple[int, int, str]]:
    """Keys whose maker gave them a form of their own."""
    small = text.lower()
    for plugin in _plugins():
        holds = _HOLDS.get(plugin.secret_type)
        if holds and not any(word in small for word in holds):
            continue
        for pattern in plugin.denylist:
            for match in pattern.finditer(text):
                if any(plugin.analyze_string(match[0])):
                    start = match.start() + len(match[0]) - len(match[0].lstrip())
                    yield start, _end(text, match), plugin.secret_type


def _end(text: str, match: re.Match[str]) -> int:
    """Where what `match` begins ends: some patterns know only how a key starts."""
    if "PRIVATE KEY" in match[0]:
        end = text.find("-----END", match.end())
        line = text.find("\n", end) if end >= 0 else -1
        return line if line >= 0 else len(text)
    rest = _REST.match(text, match.end())
    return rest.end() if rest and not match[0][-1].isspace() else match.end()


def _labelled(text: str) -> Iterator[tuple[int, int, str]]:
    """Values after a word like password."""
    small = text.lower()
    if not any(word in small for word in _LABELS_HOLD):
        return
    at = 0
    for line in text.split("\n"):
        if any(word in line.lower() for word in _LABELS_HOLD):
            yield from ((at + start, at + end, LABELLED) for start, end in _values(line))
        at += len(line) + 1


def _values(line: str) -> Iterator[tuple[int, int]]:
    from detect_secrets.plugins import keyword

    for match in _LABEL.finditer(line):
        value = match["value"].rstrip(".,;:!?)]}>*_")
        least = _SHORTEST["word" if match["word"] else "name"]
        if len(value) >= least and _may_be_secret(value, line, bare=True):
            yield match.start("value"), match.start("value") + len(value)
    for pattern, group in keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP.items():
        for match in pattern.finditer(line):
            if not re.search(r"\s", match[group]) and _may_be_secret(match[group], line, bare=False):
                yield match.span(group)


def _may_be_secret(value: str, line: str, *, bare: bool) -> bool:
    """Whether `value`, after a label, is no template, reference, date or, where it is `bare` of quotes, word."""
    from detect_secrets.filters import heuristic

    if (
        heuristic.is_templated_secret(value)
        or heuristic.is_prefixed_with_dollar_sign(value)
        or heuristic.is_indirect_reference(line)
        or len(value) < 4
        or _NO_VALUE.match(value)
    ):
        return False
    if not bare:
        return not heuristic.is_not_alphanumeric_string(value)
    letters = any(sign.isalpha() for sign in value)
    others = any(not sign.isalpha() and sign not in "_-./'’:@," for sign in value)
    return (letters and others and value.isascii()) or value.isdecimal()


def _random(text: str) -> Iterator[tuple[int, int, str]]:
    """Long words that nobody can have made up."""
    addresses: list[tuple[int, int]] | None = None
    for match in _LONG.finditer(text):
        word = match[0]
        if not _is_random(word):
            continue
        if addresses is None:
            addresses = [found.span() for found in _ADDRESS.finditer(text)]
        if not any(start <= match.start() < end for start, end in addresses):
            yield *match.span(), RANDOM


def _is_random(word: str) -> bool:
    from detect_secrets.filters import heuristic

    classes = ["d" if sign.isdigit() else "A" if sign.isupper() else "a" for sign in word if sign.isalnum()]
    if len(set(classes)) < 3:
        return False
    changes = sum(one != other for one, other in pairwise(classes))
    return (
        changes >= _CHANGES * (len(classes) - 1)
        and _entropy(word) > _ENTROPY_BITS
        and not heuristic.is_potential_uuid(word)
        and not heuristic.is_sequential_string(word)
    )


def _entropy(word: str) -> float:
    return _base64().calculate_shannon_entropy(word)


@lru_cache(maxsize=1)
def _base64() -> Base64HighEntropyString:
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

    return Base64HighEntropyString(_ENTROPY_BITS)
