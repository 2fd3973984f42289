"""Finds text that holds a password or a key. It gives kind and position, never the secret itself.

The finder knows keys in the format that their maker documents, and what people write: values after a label in many
languages and in Markdown, passwords beside a user's name, codes in a sentence that names what they open, words of a
wallet, a password made of words and signs. The words of the languages stand in labels.toml beside this module. It
verifies nothing over the network, and takes nothing for a secret merely because it looks random: notes are full of
ids, commits, digests and hosts, and documents, folders and orders have such names, too.

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
from functools import cache, lru_cache
from typing import NamedTuple, cast

from msgspec import Struct

from memory_tui import jsstring
from memory_tui.secrets import tables

LABELLED, PAIR, SEED, CODES = "labelled password or key", "user and password", "seed phrase", "backup code"


class Label(Struct, frozen=True):
    """What stands before a value, in lower case, and what the value begins with: `bot token`, `chorbot_`."""

    words: str
    prefix: str


class Known(Struct, frozen=True):
    """What is known of a workspace: parts of its addresses, prefixes of its ids, labels with prefixes that are none."""

    in_addresses: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    cleared: frozenset[tuple[str, str]] = frozenset()


NOTHING_KNOWN = Known()
Span = tuple[int, int, str, Label | None]
"""Where a secret starts and ends in the text that is looked at, its kind, and the label before it where that tells."""


# --- what a text holds, and keys as their makers document them -------------------------------------------------------


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
            # A token leaves out the "=" that fill Base64 up to a multiple of four: they are put back.
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


# --- secrets as people write them ----------------------------------------------------------------------------------

# A rule sees one line, and the line before it where only that holds the label.


def _filled(text: str) -> str:
    """Return `text` with what stands in labels.toml under each `{name}`, any of its lines."""
    words = tables("labels.toml")
    return re.sub(r"\{([a-z_]+)\}", lambda part: _filled("|".join(words[part[1]])), text)


class _Pattern:
    """A pattern that is compiled at its first use: most programs that import this module look for no secret."""

    def __init__(self, text: str, flags: int) -> None:
        self._args = text, flags

    def __getattr__(self, name: str) -> object:
        """Compile the pattern, and return its method of this name. Python calls this where the name is not set yet."""
        text, flags = self._args
        method = getattr(re.compile(_filled(text), flags), name)
        # The next time it is found without this method, so that a search costs no more than one of a pattern.
        setattr(self, name, method)
        return method


@cache
def _pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern of which each `{name}` is filled from labels.toml, as if it was compiled already."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


_OF_SECRETS = _pattern(r"{strong}|{short}|{pass}|{net}|{weak}|{wallet}|{backup}|(?<![^\W_])(?:{login}|{admin})")
"""What a line holds, in lower case, where a secret may stand in it or in the next one."""

_TELLING = _pattern(r"[\d/@|!$&*?§]")
"""What a line without a label holds where a secret may stand in it."""


@lru_cache(1 << 15)
def _may_label(word: str) -> bool:
    """Tell whether a word, in lower case, holds a label, or the half of one that has a space in it."""
    return bool(_OF_SECRETS.search(word) or _pattern("{halves}").search(word))


def _hints(line: str) -> bool:
    """Tell whether a line, in lower case, holds a label; word by word first, because most words come again.

    A word of more than 40 letters hardly does, and is not remembered.
    """
    words = line.split()
    may_hold = max(map(len, words), default=0) > 40 or any(map(_may_label, words))
    return may_hold and _OF_SECRETS.search(line) is not None


_NOT_BEFORE = _pattern(r"(?:{not_before})[ _-]?$")
_JOINED = (
    r"(?:[:=：|→—–]|=>|->|:=|(?:\b(?:{is})\b|\b[éè]|[はが是为為는은])(?:\s+(?:now|jetzt|nun|to)\b)?:?|改[成为]了?)"
)
_OPEN = r"(?P<open>[\s\"'*_`|「『«“„(]{0,6})"
_LABEL = _pattern(
    r"(?:(?P<word>(?:{strong})[a-zа-яş\d]{0,3}|{short}|{pass})|(?P<net>{net})|(?P<name>{weak}))"
    rf"(?P<form>(?:_[a-z_]{{1,20}}(?=\s?=))?[\"'*_`)\]]{{0,4}})"
    rf"(?:(?P<between>(?:\s*+\([^()\n]{{0,40}}+\)|\s++[^\s:=：|→—–]{{1,24}}+){{0,6}}?)\s*[\"'*_`)\]]{{0,4}}{_JOINED}"
    rf"|\s+(?=[\"'`])|(?:\s++[^\s:=「『«“„]{{1,24}}+){{0,3}}+\s*+(?=[「『«“„])|(?P<bare>\s+(?:\(\w{{1,12}}\s)?)){_OPEN}",
    re.IGNORECASE,
)
_WORD = _pattern(r"{strong}|{short}|\bpass\b")
_AFTER_NET = _pattern(r"\s+(?:\w{1,5}\s+)?{net}\s+(\S+)", re.IGNORECASE)
_VARIABLE = _pattern(r"[A-Z_]*(?:PASS|PASSWORD|PASSWD|PWD)=[\"']?[A-Za-z0-9._-]{10,60}[\"']?(?=\s|$)")
_NETS, _NET_CODE = _pattern("{net}"), _pattern(r"\d{16,20}")
_OF_LOGIN = _pattern(r"(?<![^\W_])(?:{admin}|{login}|{strong}|{short}|{net})(?![^\W_])", re.IGNORECASE)
_STREWN = _pattern(r"(?:^|[\s:：=(`\"'])([A-Za-z0-9!#$%&*+?^§~@_.-]{8,40})(?=$|[\s,;)`\"'])")
_SIGN_WITHIN = _pattern(r"\w[!#$%&*?^§~]\w|(?<=[a-z])\d(?=[a-z])\w*[-_]")
_WITHIN, _MADE_UP = _pattern(r"\w[!$&*?§]\w"), _pattern(r"(?=.*[a-z]{3}).*\w[!$&*?§]\w")
_FURTHER = _pattern(
    r"(?:\s++[^\s:=]{1,20}+){1,4}?\s++((?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)(?=\S*[^A-Za-z0-9\s])\S{6,60}+)"
)
_VALUE = _pattern(
    r"[^\s\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]+"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,12}(?!(?:19|20)\d\d)\d{2,4}(?=\W*$)"
)
_SHUT = dict(zip("\"'`「『«“„", "\"'`」』»”“", strict=True))
_QUOTES = {mark: _pattern(rf"[^{mark}{shut}\n]{{3,60}}(?={shut})") for mark, shut in _SHUT.items()}
_LONGEST_VALUE = 160
"""Characters of a value that are looked at, because some patterns take quadratic time."""
_TRAILING = ".,;:)]}>*_|\"'`»”"
_WORDS = _pattern(r"[A-Z]{0,4}[^\W\d_A-Z]+(?:[A-Z][^\W\d_A-Z]{2,})*[A-Z]{0,3}")
_CODE_SHAPE = r"(?:\d{4,12}|\d{1,2}(?:-\d{1,2}){2,3}|(?=(?:\D{0,6}\d){2})[A-ZА-Я\d#*]{4,9})[#*]?"
_DIGITS = _pattern(
    rf"(?<![\w.,:/+€$£#№-])(?!(?:19|20)\d\d(?![#*\dA-ZА-Я])){_CODE_SHAPE}(?![\w/:-]|[.,]\d|\s?(?i:[€$%°]|[kcm]?[mg]\b|min|eur|usd|gb"
    r"|mb|px|rpm|hz|\d))"
)
_PIN, _CODE_VALUE = _pattern(r"\d{4,12}[#*]?"), _pattern(_CODE_SHAPE)
_PIN_NAME = _pattern(r"(?:{pin})\d?")
_OF_DIGITS = _pattern(r"(?:{pin}|passcode|密[码碼]|暗証番号|비밀번호|{door})\d?$")
_OF_NET = _pattern(r"(?:{net_name}).*|.*(?:5|2[.,]4|6)g(?:hz)?|(?:[0-9a-f]{2}[:-]){2}.*", re.IGNORECASE)
"""What is the name of a network or its device, and not its key."""
_NOT_NET = _pattern(r"driver|chip|card|adapter|firmware|version|channel|kanal|model|interface|mac|speed|name|ssid$")
_CONSTANT = _pattern(r"\b(?:const|let|var|val)\s[\w ]*$|(?:\be\.g\.|\bz\. ?B\.|\bp\. ?ej\.|例如|например)\W*\w*$")
_MIXED = _pattern(r"(?=\S*[^\W\d])(?=\S*\d)\S+")
_IDENTIFIER = _pattern(r"[A-Za-z]+(?:[_.-](?:[a-z]+|[A-Z]+|v?\d{1,4}[dhm]?)){2,}")
_UUID = _pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_GROUPED = _pattern(r"(?:[A-Za-z0-9]{4,6}-){3,7}[A-Za-z0-9]{4,6}")
_HEX = _pattern(r"(?:0x)?[0-9a-f]{32,64}", re.IGNORECASE)
_DOCUMENTED = _pattern(r"(?:{public})_|sha\d{1,3}[:-]|0x[0-9a-fA-F]{40}$|AAAA[A-Z]")
"""How makers begin the names of what is public: prices, messages, digests, addresses of a chain."""
_REFERENCE = _pattern(
    r"\$?\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|%[A-Z_]+%|<.*>|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
    r"|[a-z_][a-z_.]{2,}[\w.]*[\[(].*[\])]?|[A-Za-z]\w+\(['\"_a-z].*\).*"
)
"""A value that names where the secret is: `${VAR}`, `$(command)`, `DB_PASSWORD`, `getenv("X")`. Letter case counts."""

_HOST = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)*\.(?!(?:{ending})\b)[a-z]{2,12})(?::\d{2,5})?"
_MACHINE = _pattern(rf"(?<![\w./@-]){_HOST}[)`\"*]{{0,2}}[\s,;:(|→-]{{1,4}}$", re.IGNORECASE)
_AFTER_LOGIN = _pattern(r"(?:{login}|{strong})(?P<rest>[^/]{0,20})$", re.IGNORECASE)
_USERS = _pattern(r"{login}|{admin}")
_WIFI = _pattern(r"(?:wi-?fi|wlan|hotspot|ssid)\W[^/]{0,16}$|network [\"'“`]$", re.IGNORECASE)
_MAIL = r"[A-Za-z0-9._+-]{2,40}@[A-Za-z0-9-]{1,40}(?:\.[A-Za-z0-9-]{1,20}){1,4}"
_USER = rf"(?!git@)(?:{_MAIL}|[A-Za-z0-9._+-]{{2,40}}(?!@))"
_PAIRS = {
    sign: _pattern(
        rf"(?<![A-Za-z0-9_/.@+-])(?P<user>{user})[`\"*]{{0,2}}(?P<sep>{between})[`\"*]{{0,2}}(?=(?P<pw>[!-~]{{5,60}}))"
    )
    for sign, user, between in (
        *((sign, _USER, rf"\s{{0,2}}{sign}\s{{0,2}}") for sign in "/:,"),
        (" ", _MAIL, r"(?<=[a-z]) "),
        ("(", _MAIL, r"\s{1,2}\("),
        ("-", _USER, r"\s[-–]\s"),
    )
}
_ADMINS = frozenset(("root", "admin", "administrator", "user", "postgres", "pi", "ubuntu"))
_PHRASE = _pattern(r"(?:1\W+)?[a-zß-ÿ]{3,8}(,?)(?:\s+(?:\d{1,2}[.)]?\s*)?[a-zß-ÿ]{3,8}(?:\1(?=\s)|(?=\W*$))){11,23}")
_CODE = _pattern(
    r"(?<![\w=-])(?:[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,3}|\d{6,10}|\d{4} \d{4}|[0-9a-f]{16})(?![\w-])"
)


def prefix_of(value: str) -> str:
    """Return the letters before the first `_` or `-` of a value, with that sign; empty where there are none."""
    return match[0] if (match := re.match(r"[A-Za-z][A-Za-z0-9]{1,20}[_-]", value)) else ""


_WINDOW, _OVERLAP = 600, 200
"""Characters of a long line in which a label and its value are looked for together, and those looked at twice."""


def written(text: str, known: Known) -> Iterator[Span]:
    """Yield what people write down as a secret."""
    line_start = 0
    # The beginning of a line above that holds a label, for the codes or words in the lines after it.
    above = ""
    # While in a table the labels of its columns, which its first row with a label names.
    labels: dict[int, str] = {}
    for line in text.split("\n"):
        is_row = "|" in line
        spans = list(_in_columns(line, labels)) if is_row else []
        labels = (labels or _columns(line)) if is_row else {}
        has_label = _hints(line.lower())
        if has_label or above or _TELLING.search(line):
            # A long line is looked through in parts, which overlap so that no secret is cut.
            for cut in range(0, max(1, len(line) - _OVERLAP), _WINDOW - _OVERLAP):
                window = _in_window(line[cut : cut + _WINDOW], above, known, has_label=has_label)
                spans += [(cut + start, cut + end, kind, label) for start, end, kind, label in window]
            yield from ((line_start + start, line_start + end, kind, label) for start, end, kind, label in spans)
            if has_label:
                above = line[:_OVERLAP]
            # A line that has some of them may have more below; any other one ends the list.
            elif not any(kind in (SEED, CODES) for _, _, kind, _ in spans):
                above = ""
        line_start += len(line) + 1


def _in_window(line: str, above: str, known: Known, *, has_label: bool) -> Iterator[Span]:
    """Yield the secrets in a line, or in a part of a long one.

    Where the line `has_label` all forms are looked for, else those alone of which a sign stands there. `above` is the
    beginning of a line above whose label may be that of this one, empty for none.
    """
    yield from _opening(line)
    yield from _labelled(line, known) if has_label else ()
    yield from _strewn(line, known) if has_label or _WITHIN.search(line) else ()
    yield from _listed(line, above) if has_label or above else ()
    yield from _pairs(line) if has_label or "/" in line or "@" in line else ()


def _labelled(line: str, known: Known) -> Iterator[Span]:
    """Yield the values after a label in a line, with the label."""
    last_end = 0
    for match in _LABEL.finditer(line):
        start = match.end()
        value = _value(line, match)
        # A label inside the value before it is none.
        if start < last_end or not value or _is_of_another_thing(line, match):
            continue
        name = line[match.start() : match.end("form")].strip("\"'*_`)] ").lower()
        # The beginning of a password is a part of the secret.
        label = Label(name, prefix_of(value) if match["name"] else "")
        # A short value of a declared constant, or of an example by its words, is none.
        is_example = len(value) < 16 and _CONSTANT.search(line, max(0, match.start() - 40), match.start())
        is_cleared = (name, label.prefix) in known.cleared
        if not is_example and not is_cleared and _is_value(line, match, name, value, known):
            last_end = start + len(value)
            yield start, last_end, LABELLED, label
        elif match["word"] and (further := _further(line, match)):
            yield *further.span(1), LABELLED, label


def _is_value(line: str, match: re.Match[str], name: str, value: str, known: Known) -> bool:
    """Tell whether `value` is what the label `name` announces.

    `match` has the group "name" for the label of a key, "net" for that of a network, "word" for that of a password, and
    "bare" where no sign stands between label and value.
    """
    if match["name"]:
        return _is_key(value, name, known, bare=bool(match["bare"]))
    if match["net"]:
        # Words between a network and a sign tell what the value is: "wifi password guests: X".
        if match["between"] is None:
            return False
        between = match["between"].lower()
        if _is_net_key(value) and not _NOT_NET.search(name + between):
            return True
        return _WORD.search(between) is not None and _is_password(value)
    if _PIN_NAME.fullmatch(name):
        return _CODE_VALUE.fullmatch(value) is not None
    before = line[max(0, match.start() - 60) : match.start()].lower()
    of_net = _NETS.search(before) is not None
    if of_net and _is_net_key(value):
        return True
    # After a sign less is asked of a password; without one it has to look like nothing else.
    if not match["bare"]:
        return _is_password(value) or (_VARIABLE.match(line, match.start()) is not None and not placeholder(value))
    if name == "pass":
        return _is_bare_password(value) and (of_net or _USERS.search(before) is not None)
    # The code on the back of a card has three digits, others four or more.
    code = value.zfill(4) if name.startswith("cv") else value
    is_code = _OF_DIGITS.search(name) and _CODE_VALUE.fullmatch(code)
    is_device_key = name.endswith(("schlüssel", "key")) and _NET_CODE.fullmatch(value)
    return bool(is_code or is_device_key) or _is_bare_password(value)


def _further(line: str, match: re.Match[str]) -> re.Match[str] | None:
    """Return the match of a value some words after the label of a password: one with all four classes of signs, or the
    key of a network; group 1 is the value. None where there is neither.
    """
    password = _FURTHER.match(line, match.end("form"))
    if password and _is_bare_password(password[1], 4):
        return password
    net_key = _AFTER_NET.match(line, match.end("form"))
    return net_key if net_key and _is_net_key(net_key[1]) else None


def _is_net_key(value: str) -> bool:
    """Tell whether `value` can be the key of a wireless network."""
    fits = len(value) >= 8 and value.isascii() and _MIXED.fullmatch(value) and not placeholder(value)
    return bool(_NET_CODE.fullmatch(value) or (fits and not _OF_NET.fullmatch(value)))


def _strewn(line: str, known: Known) -> Iterator[Span]:
    """Yield what has the form of a password, all classes of signs in one word, in a line that speaks of a login.

    Where a sign stands between letters, as only people who make up a password write it, no login need be named.
    """
    cleared = {prefix for _, prefix in known.cleared}
    login_ends = [match.end() for match in _OF_LOGIN.finditer(line)]
    for match in _STREWN.finditer(line):
        start = match.start(1)
        value = match[1].rstrip(_TRAILING)
        if len(value) < 8 or not _SIGN_WITHIN.search(value) or _classes(value) < 4:
            continue
        # At most fifty characters behind a word of a login.
        is_near = _MADE_UP.match(value) or any(0 <= start - end <= 50 for end in login_ends)
        is_name = placeholder(value) or _OF_NET.fullmatch(value) or prefix_of(value) in cleared
        if is_near and not is_name:
            yield start, start + len(value), LABELLED, None


def _value(line: str, match: re.Match[str]) -> str:
    """Return what stands after a label; inside quotes all of it, where it has a word of letters and digits."""
    # The sign just before the value, which may be a quotation mark.
    quote = match["open"][-1:]
    quoted = _QUOTES[quote].match(line, match.end()) if quote in _QUOTES else None
    # Several words in quotes are a sentence, unless they are called a passphrase or one of them has digits.
    if quoted:
        is_phrase = match[0].lower().startswith("passphrase")
        if is_phrase or " " not in quoted[0] or any(map(_MIXED.fullmatch, quoted[0].split())):
            return quoted[0]
    plain = _VALUE.match(line, match.end())
    # The text of a link names what it leads to.
    if plain is None or "](" in plain[0] or _REFERENCE.fullmatch(plain[0][:_LONGEST_VALUE].rstrip(".,;:")):
        return ""
    # In JSON the next member may follow without a blank.
    return plain[0].partition(',"')[0].rstrip(_TRAILING)


def _opening(line: str) -> Iterator[Span]:
    """Yield the codes in a sentence that names what is shut and that it is opened by them."""
    codes = list(_DIGITS.finditer(line))
    for match in codes if codes and _pattern("{shut}").search(line.lower()) else ():
        before = line[max(0, match.start() - 70) : match.start()].lower()
        after = line[match.end() : match.end() + 30].lower()
        # Two stars are Markdown's, one is a key of the lock.
        ends_with_key = match[0].endswith(("#", "*")) and "**" not in match[0] + after[:1]
        opens = ends_with_key or _pattern("{opens}").search(before)
        if opens and _pattern("{shut}").search(before + after) and not _pattern("{other}").search(before):
            yield *match.span(), LABELLED, Label("code", "")


def _is_of_another_thing(line: str, match: re.Match[str]) -> bool:
    """Tell whether the value is not the label's: that is a part of another name, or its cell of a table holds more."""
    between = (match["between"] or "").lower()
    if _pattern("{not_after}").match(line.lower(), match.start("form")) or _pattern("{not_after}").search(between):
        return True
    if match["name"] and _NOT_BEFORE.search(line[max(0, match.start() - 14) : match.start()].lower()):
        return True
    # With words between, a cell holds more than the label, or the value is that of another variable.
    joiner = line[match.end("between") : match.start("open")] if between.strip() else ""
    return "|" in joiner or joiner == "="


def placeholder(value: str) -> bool:
    """Tell whether `value` is a template, a reference, a date, an address or a gap to be filled."""
    return bool(_REFERENCE.fullmatch(value[:_LONGEST_VALUE]) or _pattern("{no_value}").match(value[:_LONGEST_VALUE]))


def _is_password(value: str) -> bool:
    """Tell whether `value`, after the label of a password and a sign, is neither a placeholder nor words."""
    if len(value) < 4 or placeholder(value):
        return False
    letters = [sign for sign in value if sign.isalpha()]
    if not letters:
        return bool(_PIN.fullmatch(value))
    # Letters beyond the Latin ones are words, unless digits are among them.
    if max(letters) > "\u024f" and not _MIXED.fullmatch(value):
        return False
    # Words have no digits, and few signs among them.
    if any(sign.isdigit() or not (sign.isalnum() or sign in "_-./'’:@,") for sign in value):
        return True
    return _is_random(value)


def _is_random(value: str) -> bool:
    """Tell whether the letters of `value` change their case as no word's do."""
    if len(value) < 8 or not value.isalpha() or value in (value.lower(), value.upper()):
        return False
    # A third are capitals, or they stand where no word has them.
    return 3 * sum(map(str.isupper, value)) >= len(value) or not _WORDS.fullmatch(value)


def _is_bare_password(value: str, least_classes: int = 3) -> bool:
    """Tell whether `value`, which merely follows a label, can be nothing but a password.

    It has a digit and so many classes of signs; where three are enough, other marks of a password tell, too.
    """
    if len(value) < 6 or max(value) > "\u04ff" or placeholder(value) or not any(map(str.isalpha, value)):
        return False
    classes = _classes(value)
    digits = sum(sign.isdigit() for sign in value)
    has_both = digits > 0 and classes >= least_classes
    # With four classes asked for, no other mark is enough.
    if has_both or least_classes > 3:
        return has_both
    has_odd_sign = classes >= 3 and re.search(r"[^\w\s./':,-]", value) is not None
    return has_odd_sign or (digits > 1 and len(value) >= 8) or _is_random(value)


def _classes(value: str) -> int:
    """Count the classes of signs in `value`: small, capital, digit, other."""
    tests = (str.islower, str.isupper, str.isdigit, lambda sign: not sign.isalnum())
    return sum(any(map(test, value)) for test in tests)


def _is_key(value: str, name: str, known: Known, *, bare: bool) -> bool:
    """Tell whether `value` is a key: long, of letters and digits, and nobody's public name.

    It stands after the label `name`, `bare` without a sign between them.
    """
    if len(value) < 16 or placeholder(value) or _DOCUMENTED.match(value) or not _MIXED.fullmatch(value):
        return False
    if value in known.in_addresses or prefix_of(value) in known.prefixes or not value.isascii():
        return False
    # A token in the form of an id counts only where letter case is mixed.
    if _GROUPED.fullmatch(value) or _UUID.fullmatch(value):
        return "token" not in name or value not in (value.lower(), value.upper())
    if name == "api":
        return _HEX.fullmatch(value) is not None
    # Words and a number, which people make up for a secret of two programs.
    if name.endswith("secret") and re.fullmatch(r"[a-z]+_[a-z_]*[a-z]_\d{2,8}", value):
        return True
    # Words with signs between them are a name: a key has eight letters or digits in a row.
    if _IDENTIFIER.fullmatch(value) or max(map(len, re.split(r"[^A-Za-z0-9]+", value))) < 8:
        return False
    return not bare or bool(_HEX.fullmatch(value)) or _classes(value) >= 3


def _pairs(line: str) -> Iterator[Span]:
    """Yield the passwords beside a user's name: after a login, a machine, or an address of mail."""
    for sign, pattern in _PAIRS.items():
        for match in pattern.finditer(line):
            password = match["pw"].rstrip(_TRAILING)
            if len(password) < 5 or "/" in password or placeholder(password.strip("\"'")):
                continue
            # The id of a user is no password.
            if _DOCUMENTED.match(password) or _UUID.match(password) or _IDENTIFIER.fullmatch(password):
                continue
            before = line[max(0, match.start() - 70) : match.start()]
            if _is_pair(sign, match["user"].lower(), password, before=before, between=match["sep"]):
                yield match.start("pw"), match.start("pw") + len(password), PAIR, None


def _is_pair(sign: str, user: str, password: str, *, before: str, between: str) -> bool:
    """Tell whether a user's name and a password stand beside each other, after what stands `before` them.

    `sign` parts them; `between` is that sign with the blanks around it.
    """
    # The more often a sign parts other things than user and password, the more is asked of the password and before it.
    classes = _classes(password)
    is_admin, is_mail = user in _ADMINS, "@" in user
    if sign == " " or (is_mail and (sign == "-" or between.startswith(" :"))):
        return classes == 4
    if classes < (2 if sign in "/(" else 3) or (sign in ":," and re.search("[:=]", password)):
        return False
    has_digit = re.search(r"\d", password) is not None
    if sign == "/" and _WIFI.search(before[-30:]):
        return len(password) >= 8 and has_digit
    # From here on a word of a login has to stand before, or the user has to be one that machines have.
    login = _AFTER_LOGIN.search(before[-40:])
    if sign == "(":
        has_login = login is not None or user.partition("@")[0] in _ADMINS
        return has_login and len(password) >= 8 and _MIXED.fullmatch(password) is not None
    if sign != "/":
        return (login is not None and ":" in login["rest"]) or (is_admin and (sign == "-" or between == ":"))
    if classes >= 3 and (is_admin or is_mail or login):
        return re.search(r"[^A-Za-z'-]", password) is not None
    is_known = _MACHINE.search(before) is not None or (is_admin and login is not None)
    return is_known and has_digit and (classes >= 3 or is_admin or len(between) > 1)


_COLUMN = _pattern(r"{strong}|pw|pass|pwd|pin")
_NUMBERED, _PHRASES = _pattern(r"\W*\d{1,2}[.):]\s*([a-z]{3,8})\s*"), _pattern("{phrase}", re.IGNORECASE)
_WALLET_LABEL, _CODES_LABEL = _pattern("{wallet}", re.IGNORECASE), _pattern("{backup}", re.IGNORECASE)


def _listed(line: str, above: str) -> Iterator[Span]:
    """Yield the words of a wallet and codes for emergencies, beside their label or in the lines after it."""
    wallet = _WALLET_LABEL.search(line)
    # Beside the label what stands behind it, in the lines after it the whole line; a line may have one numbered word.
    if wallet or _WALLET_LABEL.search(above):
        phrase = _PHRASE.search(line, wallet.end() if wallet else 0)
        word = _NUMBERED.fullmatch(line)
        if phrase and _is_phrase(phrase[0], labelled=_PHRASES.search(line + above) is not None):
            yield phrase.start(), phrase.start() + len(phrase[0].rstrip()), SEED, None
        elif word and _PHRASES.search(above):
            yield *word.span(1), SEED, None
    label = _CODES_LABEL.search(line)
    if label or _CODES_LABEL.search(above):
        for code in _CODE.finditer(line, label.end() if label else 0):
            if any(map(str.isdigit, code[0])):
                yield *code.span(), CODES, None


def _is_phrase(text: str, *, labelled: bool) -> bool:
    """Tell whether small words are those of a wallet: three quarters of them differ, and few are words of a sentence.

    The seed of a wallet has 12, 15, 18, 21 or 24 words. Where they are `labelled` as a phrase, one may be a word of a
    sentence; after the mere name of a wallet none.
    """
    words = re.findall(r"[a-zß-ÿ]+", text)
    most = 1 if labelled else 0
    is_sentence = len(_pattern("{sentence}").findall(text)) > most
    return not is_sentence and len(words) % 3 == 0 and 4 * len(set(words)) >= 3 * len(words)


def _columns(line: str) -> dict[int, str]:
    """Return the cells of a table's first row that are the label of a password: number -> label."""
    cells = enumerate(re.split(r"[ *`]*\|[ *`]*", line.lower()))
    return {number: cell for number, cell in cells if _COLUMN.fullmatch(cell)}


def _in_columns(line: str, labels: dict[int, str]) -> Iterator[Span]:
    """Yield the values in a row of a table whose columns have `labels` by their number."""
    cell_start = 0
    for number, cell in enumerate(line.split("|")):
        value = cell.strip(" *`")
        if number in labels and " " not in value and _is_password(value):
            start = cell_start + cell.index(value)
            yield start, start + len(value), LABELLED, Label(labels[number], "")
        cell_start += len(cell) + 1
