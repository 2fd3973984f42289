"""Finds text that looks like a password or a key. It gives kind and position, never the secret itself.

The finder knows keys in the format that their maker documents, values after a word like password, in many languages and
in Markdown, and long words that are too random to be made up by a person. It verifies nothing over the network, and
passes hexadecimal digits and public addresses, because notes are full of commits, digests and hosts.

Conversations are masked by OpenClaw's own patterns: its documented defaults, in their order, with JavaScript's meaning.
A word, a digit, a border of words and letter case are ASCII there, white space is JavaScript's.
"""

from __future__ import annotations

import base64
import json
import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct

from memory_tui import jsstring
from memory_tui.secrets.formats import BASIC, FORMATS, PRIVATE, QUOTED, TOKEN, KeyFormat

LABELLED, RANDOM = "labelled password or key", "random-looking text"
_LONGEST_PIECE = 8000
"""Characters that are looked at together, because some patterns take quadratic time; cut between lines where it can."""

_WINDOW, _OVERLAP = 600, 200
"""Characters of a long line in which a label and its value are looked for together, and those looked at twice."""

MASK = "***"


_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")

_LABEL_PARTS = (
    "pass,pw,pin,contrase,senha,mot de,mdp,clave,kennwort,wachtwoord,ordenord,senord,has\u0142o,haslo,ifre,heslo,"
    "parola,jelsz,salasana,adgangskode,kodeord,schl\u00fcssel,密,口令,パス,暗証,암호,비밀,парол,كلمة,סיסמ,κωδικ,रहस्य,"
    "पासवर्ड,mật kh,sandi,key,token,secret"
)
_LABELS_HOLD = _LABEL_PARTS.split(",")
_HINTS = {*_LABELS_HOLD, *(word for form in FORMATS for word in form.holds)} - {":", "-", ".", "gh", "gl", "ac", "sk"}
"""What a text has to hold, in lower case, to be looked through at all; keys of no other mark are long words."""

# As people write them in notes: `**Password:** x`, `| Passwort | x |`, `密码：x`, `the password for the NAS is x`.
_STRONG = (
    r"passw(?:or[dt]|d)|passphrase|passcode|pass[- ]?code|mot de passe|contrase(?:ñ|n\u0303|n)a|senha|kennwort"
    r"|wachtwoord|has[łl]o|(?:ş|s\u0327|s)ifre|l(?:ö|o\u0308)senord|heslo|parola|jelsz[oó]|salasana|adgangskode|kodeord"
    r"|парол[ьяею]|密[码碼]|口令|パスワード|パスコード|暗証番号|암호|비밀번호|كلمة (?:المرور|السر)|סיסמה|κωδικός|पासवर्ड"
    r"|mật khẩu|kata sandi|(?:wlan|wi-?fi|netzwerk|network)[ -]?(?:schlüssel|key|psk)"
)
_WEAK = r"(?<![^\W_])(?:pass|pwd|pw|psk|mdp|clave|pin(?:[ -]?code)?)(?![^\W_])"
_NAMES = (
    r"(?:api|access|auth|secret|private|bearer|app(?:lication)?|account|service|license|master|signing|encryption)"
    r"[ _-]?(?:key|token)|token|secret|(?<=[a-z0-9]_)key"
)
_OF = (
    r"(?:\s*\([^()\n]{0,40}\)"
    r"|\s+(?:for|of|to|on|at|für|zum|zur|vom|von|pour|del?|para|do|da|di|per)\s+[^\n:=.;,|]{1,40}?)?"
)
_JOINED = (
    r"(?:[:=：|→]|=>|->|:=|[—–]|(?:\bis\b|\bwas\b|\bist\b|\blautet\b|\best\b|\bes\b|\bé|\bè)"
    r"(?:\s+(?:now|jetzt|nun)\b)?:?|[はが是为為])"
)
_LABEL = re.compile(
    rf"(?:(?P<word>{_STRONG})|(?P<weak>{_WEAK})|(?P<name>{_NAMES}))[\"'*_`)\]]{{0,4}}"
    rf"(?:{_OF}\s*[\"'*_`)\]]{{0,4}}{_JOINED}|(?P<bare>\s+(?:to\s+|now\s+|as\s+)?))(?P<open>[\s\"'*_`|]{{0,6}})",
    re.IGNORECASE,
)
_SHORTEST = {"word": 4, "name": 16}
_BETWEEN = re.compile(r"[^A-Za-z\u00c0-\u024f]+")
_GAP = re.compile(r"(?:[<{].*|.*\*{3}.*|x{3,}|\.{3,}|pass(?:word)?|pw|pwd|secret|token)", re.IGNORECASE)
_VALUE = re.compile(r"[^\s\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]+")
_QUOTED = {mark: re.compile(rf"[^{mark}\n]{{3,200}}(?={mark})") for mark in "\"'`"}
_PIN = re.compile(r"\d{4,12}")
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:[_-](?:[a-z]+|[A-Z]+|v?\d{1,4})){2,}")
_ADDRESS = re.compile(r"\b(?:https?|ftp|file|mailto|obsidian|data):\S+|\bsha\d{1,3}-\S+|\bAAAA[A-Z]\S+", re.ASCII)
"""Links, images written out, digests of packages and public keys: long and random-looking, and no secret."""
_LONG = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_ENTROPY_BITS = 4.0
"""Bits a character; 24 random characters hardly ever have 4.5."""
_CHANGES = 0.38
"""Share of neighbours that are of two classes (small, capital, digit). In random text it is 0.62, in words 0.1."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SEQUENCES = (
    string.ascii_uppercase * 2 + string.digits + "+/",
    string.digits + string.ascii_uppercase * 2 + "+/",
    (string.digits + string.ascii_uppercase) * 2,
    "0123456789ABCDEFABCDEF" * 2,
    string.ascii_uppercase + "=/",
)
"""Runs through an alphabet, as in examples."""
_REST = re.compile(r"[A-Za-z0-9_+/=.~-]*")
_NO_VALUE = re.compile(
    r"\d{1,4}[-./:]\d{1,2}(?:[-./:]\d{1,4}|$)"  # dates and times
    r"|v?\d+(?:\.\d+)+$"  # versions
    r"|\d+[- ]?(?:char|digit|letter|sign|zeichen|stellig|bit|byte|day|tag|month|monat|min|hour|stunde|week|woche|year"
    r"|jahr)"
    r"|[<\[{][a-z]*$|.*(?:://|\.{3}|…|x{4}|\*{3}|•{3})"  # addresses and gaps
    r"|\W*(?:1|last|kee|nord|dash)pass|\W*(?:bit|vault)warden"  # where it is kept
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}$"  # addresses of people
    r"|(?:~|\.{1,2})?/[\w.-]+/|[\w./-]+\.(?:md|txt|py|js|ts|sh|env|json|ya?ml|toml|pdf|png|jpe?g|html?|kdbx)$|\[\["
    r"|(?:null|none|nil|true|false|undefined)\b|(?:process\.env|os\.|self\.|config\.|settings\.|env\.|secrets?\.)",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"\$?|\{.*\}|<.*>")
_REFERENCE = re.compile(
    r"\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|%[A-Z_]+%|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z_][a-z_.]{2,}[\w.]*[\[(].*[\])]"
)
"""A value that names where the secret is: `${VAR}`, `$(command)`, `DB_PASSWORD`, `getenv("X")`."""
_WORDLIKE = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]{2,})*[A-Z]{0,3}|[A-Z]+")
"""Letters as names and words have them: password, GitHub, keePassXC."""
_UNSPOKEN = re.compile(
    r"[bcdfghjklmnpqrstvwxz]{6}|q[^u]|[bcdfghkmpqtvz]x|j[bcdfghklmnpqrstvwxyz]|[bcdfghklmpqtvwxyz]j|v[bcdfghjkmnpqtwxz]"
    r"|w[gjkmpqtvxz]|x[bdgjklmnrswz]|z[bdfgjkmnpqrsvx]|[cfgjkmpqsvwx]z|[bcdfghjklmnpqrstvwxz]q|[bcdfghjkmpqtvx]v|[fhjkpqv]g"
    r"|k[bcdfgmpqt]|h[bcdfghjkpqvxz]|[fgmv]k|^[^aeiouyäöüéèáíóú]{3,}$",
    re.IGNORECASE,
)
"""Letters that hardly ever stand together in a word, and words without a vowel."""
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_METHODS = re.compile(r"(?:sha|md|argon|bcrypt|pbkdf|base|utf|aes|oauth|rfc|cve|http|ipv|rsa|ed)-?\d", re.IGNORECASE)


class Finding(Struct, frozen=True):
    """That something at `start` to `end` (characters) looks like a secret: of which `kind`, and in which line from 1.

    It does not hold the text, so that no log or traceback can.
    """

    kind: str
    line: int
    start: int
    end: int


def find(text: str) -> tuple[Finding, ...]:
    """Find everything in `text` that looks like a secret, by position, without overlaps."""
    spans = [
        (at + start, at + end, kind)
        for at, piece in _pieces(text)
        for start, end, kind in (*_by_maker(piece), *_labelled(piece), *_random(piece))
    ]
    spans += _private(text)
    findings: list[Finding] = []
    line, counted = 1, 0
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if findings and start < findings[-1].end:
            last = findings[-1]
            # The first to begin has the more telling name, unless it is only said to be random.
            kind = kind if last.kind in (RANDOM, LABELLED) and kind != RANDOM else last.kind
            findings[-1] = Finding(kind, last.line, last.start, max(end, last.end))
        else:
            line += text.count("\n", counted, start)
            counted = start
            findings.append(Finding(kind, line, start, end))
    return tuple(findings)


def masked(text: str, mask: Callable[[str], str] = lambda _secret: MASK) -> str:
    """Return `text` with `mask` of what looks like a secret in its place; plain text costs next to nothing."""
    if not (_LONG.search(text) or any(word in text.lower() for word in _HINTS)):
        return text
    parts: list[str] = []
    at = 0
    for finding in find(text):
        parts += (text[at : finding.start], mask(text[finding.start : finding.end]))
        at = finding.end
    return "".join((*parts, text[at:]))


def masked_head(text: str, most: int) -> str:
    """Return the first `most` characters of `masked(text)`; of a long text no more is looked through than it takes."""
    _, piece = next(_pieces(text))
    head = masked(piece)
    # Near the end of the piece a private key may begin of which the next one holds the first line.
    return (head if len(head) >= most + _OVERLAP else masked(text))[:most]


def kinds(text: str) -> tuple[str, ...]:
    """Return the kinds of what `find` finds, each once."""
    return tuple(dict.fromkeys(finding.kind for finding in find(text)))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield parts of `text` with their positions; mostly all of it. They are cut between lines, else between words."""
    at = 0
    while len(text) - at > _LONGEST_PIECE:
        most = at + _LONGEST_PIECE
        end = text.rfind("\n", at, most) + 1 or text.rfind(" ", at, most) + 1 or most
        yield at, text[at:end]
        at = end
    yield at, text[at:]


def _private(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield private keys from their first line to their last, however long."""
    at = 0
    while (begun := text.find("-----BEGIN", at)) >= 0:
        at = begun + 1
        if match := _PRIVATE_KEY.match(text, begun):
            end = text.find("-----END", match.end())
            line = text.find("\n", end) if end >= 0 else -1
            at = line if line >= 0 else len(text)
            yield begun, at, PRIVATE


def _by_maker(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield keys whose maker gave them a form of their own."""
    small = text.lower()
    for form in FORMATS:
        for match in _compiled(form).finditer(text) if any(word in small for word in form.holds) else ():
            group = 1 if match.re.groups and match[1] is not None else 0
            if form.kind == BASIC and (_REFERENCE.fullmatch(match[1]) or _GAP.fullmatch(match[1])):
                continue
            if form.anywhere and form.kind == TOKEN and not _is_token(match[0]):
                continue
            start, end = match.span(group)
            yield start, _end(text, end) if form.anywhere else end, form.kind


@cache
def _compiled(form: KeyFormat) -> re.Pattern[str]:
    return re.compile(form.pattern, re.ASCII) if form.anywhere else re.compile(rf"(?<![A-Za-z0-9]){form.pattern}")


def _is_token(text: str) -> bool:
    """Tell whether the first two parts of `text` are JSON in Base64, as a JSON Web Token has them."""
    try:
        for part in text.split(".")[:2]:
            json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return False
    return True


def _end(text: str, end: int) -> int:
    """Return where the key that a match ends in at `end` ends itself: some patterns know only how a key starts."""
    rest = _REST.match(text, end)
    return rest.end() if rest else end


def _labelled(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield values after a word like password."""
    small = text.lower()
    labels = [word for word in _LABELS_HOLD if word in small]
    if not labels:
        return
    at = 0
    for line in text.split("\n"):
        small = line.lower()
        if any(word in small for word in labels):
            for cut in range(0, max(1, len(line) - _OVERLAP), _WINDOW - _OVERLAP):
                window = line[cut : cut + _WINDOW]
                yield from ((at + cut + start, at + cut + end, LABELLED) for start, end in _values(window))
        at += len(line) + 1


def _values(line: str) -> Iterator[tuple[int, int]]:
    for match in _LABEL.finditer(line):
        quote = match["open"][-1:]
        at = match.end()
        value_match = _QUOTED[quote].match(line, at) if quote in _QUOTED else None
        if value_match is None or " " in value_match[0]:
            value_match = _VALUE.match(line, at)
        raw = value_match[0].rstrip(".,;:") if value_match else ""
        if not value_match or _REFERENCE.fullmatch(raw) or (match["name"] and _IDENTIFIER.fullmatch(raw)):
            continue
        value = value_match[0].partition(',"')[0].rstrip(".,;:)]}>*_|\"'`")
        if match["bare"]:
            fits = match["name"] is None and _bare_secret(value)
        else:
            fits = len(value) >= _SHORTEST["name" if match["name"] else "word"] and _may_be_secret(value)
        if fits:
            yield at, at + len(value)
    for pattern in QUOTED:
        for match in pattern.finditer(line):
            value = match["value"]
            if (
                len(value) >= 4
                and not re.search(r"\s", value)
                and not _placeholder(value)
                and re.search("[A-Za-z]", value)
            ):
                yield match.span("value")


def _placeholder(value: str) -> bool:
    """Tell whether `value` is a template, a reference, a date, an address or a gap to be filled."""
    return bool(_TEMPLATE.fullmatch(value) or _REFERENCE.fullmatch(value) or _NO_VALUE.match(value))


def _may_be_secret(value: str) -> bool:
    """Tell whether `value`, after a label and a sign, is neither a placeholder nor a word."""
    if _placeholder(value):
        return False
    if value.isdecimal():
        return bool(_PIN.fullmatch(value))
    letters = [sign for sign in value if sign.isalpha()]
    if not letters or max(letters) > "\u024f":
        return False
    if any(not sign.isalpha() and sign not in "_-./'’:@," for sign in value):
        return True
    return len(value) >= 8 and not all(_spoken(part) for part in _BETWEEN.split(value))


def _bare_secret(value: str) -> bool:
    """Tell whether `value`, which merely follows a label, can be nothing but a secret."""
    if len(value) < 8 or _METHODS.match(value) or not value.isascii() or _placeholder(value):
        return False
    digits = sum(sign.isdigit() for sign in value)
    if not any(sign.isalpha() for sign in value):
        return False
    odd = digits and any(not sign.isalnum() and sign not in "_-./':,()" for sign in value)
    return digits > 1 or bool(odd) or not all(_spoken(part) for part in _BETWEEN.split(value))


def _spoken(letters: str) -> bool:
    """Tell whether `letters` are those of a word or a name."""
    if not letters or not letters.isascii():
        return True
    if not _WORDLIKE.fullmatch(letters):
        return False
    return all(part.isupper() or not _UNSPOKEN.search(part) for part in _PART.findall(letters))


def _random(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield long words that nobody can have made up."""
    addresses: list[tuple[int, int]] | None = None
    for match in _LONG.finditer(text):
        word = match[0]
        if not _is_random(word):
            continue
        if addresses is None:
            addresses = [address.span() for address in _ADDRESS.finditer(text)]
        if not any(start <= match.start() < end for start, end in addresses):
            yield *match.span(), RANDOM


def _is_random(word: str) -> bool:
    classes = ["d" if sign.isdigit() else "A" if sign.isupper() else "a" for sign in word if sign.isalnum()]
    if len(set(classes)) < 3:
        return False
    changes = sum(sign != following for sign, following in pairwise(classes))
    return (
        changes >= _CHANGES * (len(classes) - 1)
        and _entropy(word) > _ENTROPY_BITS
        and not _UUID.search(word)
        and not any(word.upper() in sequence for sequence in _SEQUENCES)
    )


def _entropy(word: str) -> float:
    """Return Shannon's entropy in bits a character."""
    return -sum(count / len(word) * math.log2(count / len(word)) for count in Counter(word).values())


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
_SLICED_FROM = 32_768
_SLICE = 16_384
_CLEAR = (6, 4)
_SHORTEST_SHOWN = 18


def redact(text: str) -> str:
    """Return `text` with every secret masked; of long ones the first 6 and the last 4 characters stay.

    Text of more than 32,768 UTF-16 units is looked at in slices of 16,384, so that a secret across a cut can stay.
    """
    for pattern in _PATTERNS:
        if jsstring.utf16_len(text) > _SLICED_FROM:
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
    return "".join((*units[: _CLEAR[0]], "…", *units[-_CLEAR[1] :]))
