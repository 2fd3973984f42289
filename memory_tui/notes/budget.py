"""The budget of a note is how much of it the host gives the agent. It says where the host cuts, too.

OpenClaw keeps the head and the tail of MEMORY.md and puts a marker between: from `agents.defaults.bootstrapMaxChars`
JavaScript characters (UTF-16 units) on, counted without white space at the end. Up to 2026.7 the head is 70 % of the
limit and the tail 20 %; from 2026.8 they share what the marker leaves, 75 to 25. `bootstrapTotalMaxChars` bounds all
files of the prompt together, of which MEMORY.md is the last. Claude Code loads the first 200 lines or 25 KB, whichever
ends first; the K is taken as 1000 and the cut as at a line end, which is the smaller reading of both.
"""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import jsstring
from memory_tui.config.config_file import Config, load
from memory_tui.config.settings import INJECTION
from memory_tui.errors import ConfigError, SettingError

MAX_CHARS = 20_000
"""OpenClaw's limit of one file where the configuration names none."""
TOTAL_CHARS, NEWER_TOTAL_CHARS = 150_000, 60_000
"""OpenClaw's limit of all files together, up to 2026.7 and from 2026.8 on."""
CLAUDE_LINES, CLAUDE_BYTES = 200, 25_000
_HEAD, _TAIL = 0.7, 0.2
_NEWER_HEAD, _NEWER_TAIL = 0.75, 0.25
_FEWEST = 16
"""From 2026.8 on, a marker that would leave less than this is replaced by a short one."""
_UNITS_PER_TOKEN = 4
_BEFORE_IT = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md")
"""What OpenClaw puts into the prompt before MEMORY.md."""
_USER_CHARS = 4_000
"""OpenClaw's limit of USER.md from 2026.8 on."""
_NEWER = "memory.search"
"""The place of the settings that tells a configuration of 2026.8 or later."""


class HostLimit(Struct, frozen=True):
    """How much of a note a host reads: `limit` counts characters for OpenClaw, bytes for Claude Code.

    `newer` means OpenClaw's rules from 2026.8 on; `origin` names the source of the limit. That is 0 where OpenClaw puts
    no file into the prompt.
    """

    name: Literal["openclaw", "claude-code"]
    limit: int = MAX_CHARS
    newer: bool = False
    origin: str = "OpenClaw's default"


Unit = Literal["characters", "bytes", "lines"]
_NAMES = {"openclaw": "OpenClaw", "claude-code": "Claude Code"}
CLAUDE_CODE = HostLimit("claude-code", CLAUDE_BYTES, origin="its documentation")


class Cut(Struct, frozen=True):
    """What a host leaves out: from `line` and `column` to just before `until_line` and `until_column`, all from 1.

    A column counts characters. `until_line` is 0 where everything to the end is lost. `lost` is in `Budget.unit`.
    """

    line: int
    column: int
    until_line: int
    until_column: int
    lost: int

    @property
    def whole(self) -> tuple[int, int]:
        """Return the first and the last line of which nothing is read; the last is 0 where that is so to the end."""
        first = self.line if self.column == 1 else self.line + 1
        return first, self.until_line - 1 if self.until_line else 0

    @property
    def lines(self) -> str:
        """Return which lines they are, in words."""
        first, last = self.whole
        if not self.until_line:
            return f"lines from {first} on"
        return f"lines {first} to {last}" if first <= last else f"a part of line {self.line}"


class Budget(Struct, frozen=True):
    """How a note stands with one host. `used` of `limit` are in `unit`; `cut` is None where all of it is read."""

    host: HostLimit
    unit: Unit
    used: int
    limit: int
    cut: Cut | None
    lines: int
    tokens: int

    @property
    def sentence(self) -> str:
        """Return the state in words."""
        name = _NAMES[self.host.name]
        if not self.limit:
            return f"{name} puts no file into the prompt, for contextInjection is never; the note has {self.used:,}."
        state = f"{name} reads {self.limit:,} {self.unit} at most; the note has {self.used:,}"
        return f"{state}{self.loss or ', all of it is read'}."

    @property
    def loss(self) -> str:
        """Return what is cut out, in words; empty where nothing is."""
        if self.cut is None:
            return ""
        mark = " (its marker needs room, too)" if self.cut.lost > self.used - self.limit else ""
        return f"; it cuts out {self.cut.lines}: {self.cut.lost:,} {self.unit} are not read{mark}"


State = tuple[Unit, int, int, Cut | None]
"""Of a budget its unit, what is used, the limit, the cut."""


def _limit(config: Config, key: str, usual: int) -> tuple[int, str]:
    """Return OpenClaw's limit `key`, `usual` unless `config` sets a number above 0, with where it is from in words."""
    entry = config.entries.get(f"agents.defaults.{key}")
    if entry is None or not isinstance(entry.value, int) or entry.value <= 0:
        return usual, "OpenClaw's default"
    return entry.value, str(entry.places[-1])


def hosts(config: Config, workspace: Path) -> tuple[HostLimit, ...]:
    """Return OpenClaw as its own file sets the limit, whether or not `config` is that file, then Claude Code."""
    if config.kind != "openclaw":
        # OpenClaw does not start with a file that it cannot read, so it reads nothing by it.
        with suppress(ConfigError, SettingError):
            other = load(None, workspace)
            config = other if other.kind == "openclaw" else config
    if config.value(INJECTION) == "never":
        origin = str(config.entries[INJECTION].places[-1])
        return HostLimit("openclaw", limit=0, newer=True, origin=origin), CLAUDE_CODE
    newer = config.layout == _NEWER
    limit, origin = _limit(config, "bootstrapMaxChars", MAX_CHARS)
    room, room_origin = _limit(config, "bootstrapTotalMaxChars", NEWER_TOTAL_CHARS if newer else TOTAL_CHARS)
    # What the files before MEMORY.md leave for it of the limit of all.
    for name in _BEFORE_IT:
        with suppress(OSError):
            most = min(limit, _USER_CHARS) if newer and name == "USER.md" else limit
            text = (workspace / name).read_text("utf-8", "replace").rstrip(jsstring.WHITESPACE)
            room -= min(most, jsstring.utf16_len(text))
    # 0 would mean that no file is put into the prompt.
    room = max(1, room)
    limit, origin = (room, room_origin) if room < limit else (limit, origin)
    return HostLimit("openclaw", limit, newer, origin), CLAUDE_CODE


def effect(before: bytes | None, after: bytes | None, host: HostLimit) -> str:
    """Return what a change of the note does to its budget, as a sentence."""
    old, new = measure(before, host), measure(after, host)
    used = f"{old.used:,} -> {new.used:,}" if old.unit == new.unit else f"{new.used:,}"
    return f"{_NAMES[host.name]}: {used} {new.unit} (limit {new.limit:,}){new.loss}."


def measure(data: bytes | None, host: HostLimit, name: str = "MEMORY.md") -> Budget:
    """Return how the note `name` that holds `data` stands with `host`; other files of the prompt count as empty."""
    text = (data or b"").decode("utf-8", "replace")
    unit, used, limit, cut = _claude(text, host) if host.name == "claude-code" else _openclaw(text, host, name)
    lines = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    tokens = math.ceil(jsstring.utf16_len(text) / _UNITS_PER_TOKEN)
    return Budget(host, unit, used=used, limit=limit, cut=cut, lines=lines, tokens=tokens)


def in_prompt(text: str, host: HostLimit, name: str = "MEMORY.md") -> str:
    """Return the note `name` as OpenClaw puts it into a prompt: whole, or head and tail around its marker.

    It is empty where OpenClaw puts no file into a prompt.
    """
    if not host.limit:
        return ""
    whole = text.rstrip(jsstring.WHITESPACE)
    length = jsstring.utf16_len(whole)
    if length <= host.limit:
        return text
    head, tail = shares(length, host.limit, name, newer=host.newer)
    # Where head and tail meet, nothing is cut out.
    if head >= length - tail:
        return whole
    first, last = whole[: _index(whole, head)], whole[_index(whole, length - tail, forward=True) :]
    if host.newer and _is_short(host.limit, length, name):
        return f"{first}{_short_marker(head, tail, length)}{last}"
    return "\n".join(filter(None, (first, _marker(head, tail, length, name), last)))


def shares(length: int, limit: int, name: str, *, newer: bool) -> tuple[int, int]:
    """Return how many characters OpenClaw keeps at head and tail of a file that is longer than `limit`.

    From 2026.8 on they share what the marker leaves; as its length depends on theirs, that is worked out three times.
    """
    if not newer:
        # Where the tail is 0, OpenClaw's slice(-0) is JavaScript's for the whole text.
        return int(limit * _HEAD), int(limit * _TAIL) or length

    def marked(head: int, tail: int) -> int:
        """Count the characters of the marker between head and tail, and of the line ends around it."""
        if _is_short(limit, length, name):
            return len(_short_marker(head, tail, length))
        return jsstring.utf16_len(_marker(head, tail, length, name)) + sum(share > 0 for share in (head, tail))

    # The first estimate is of the marker that keeps nothing.
    head = tail = 0
    for _ in range(3):
        room = max(0, limit - marked(head, tail))
        head, tail = int(room * _NEWER_HEAD), int(room * _NEWER_TAIL)
    # What is still too long goes from the tail first.
    while (over := head + tail + marked(head, tail) - limit) > 0 and (head or tail):
        head, tail = (head, max(0, tail - over)) if tail else (max(0, head - over), 0)
    # One character is kept rather than none, where it has room beside its marker.
    return (1, 0) if not head and not tail and 1 + marked(1, 0) <= limit else (head, tail)


def _is_short(limit: int, length: int, name: str) -> bool:
    """Tell whether the marker would leave so little that a short one stands in its place."""
    # 2 for the line ends around it.
    return limit - jsstring.utf16_len(_marker(0, 0, length, name)) - 2 < _FEWEST


def _short_marker(head: int, tail: int, length: int) -> str:
    """Return the marker of a limit that leaves too little room for the usual one."""
    return f"[…truncated {head}+{tail}/{length}]"


def _marker(head: int, tail: int, length: int, name: str) -> str:
    """Return what OpenClaw puts between head and tail of a file that it cut."""
    return (
        f"\n[...truncated, read {name} for full content...]\n"
        f"…(truncated {name}: kept {head}+{tail} chars of {length})…\n"
    )


def _openclaw(text: str, host: HostLimit, name: str) -> State:
    """Return how much of the note `name` OpenClaw reads, in characters, and where it cuts."""
    trimmed = text.rstrip(jsstring.WHITESPACE)
    length = jsstring.utf16_len(trimmed)
    head, tail = shares(length, host.limit, name, newer=host.newer) if length > host.limit else (length, 0)
    cut = None
    if head < length - tail:
        start, end = _index(trimmed, head), _index(trimmed, length - tail, forward=True)
        cut = _cut(trimmed, start, end, goes_on=tail > 0)
    return "characters", length, host.limit, cut


def _claude(text: str, host: HostLimit) -> State:
    """Return how much Claude Code reads, by lines or by bytes, whichever ends first, and where it cuts."""
    trimmed = text.strip(jsstring.WHITESPACE)
    lines = trimmed.count("\n") + 1 if trimmed else 0
    size = len(trimmed.encode())
    # How many characters each of the two limits keeps.
    by_lines = len("\n".join(trimmed.split("\n", CLAUDE_LINES)[:CLAUDE_LINES]))
    by_bytes = len(trimmed.encode()[: host.limit].decode("utf-8", "ignore"))
    # A line end just behind the limit (+ 1) leaves the last line whole.
    last_end = trimmed.rfind("\n", 0, by_bytes + 1)
    if size > host.limit and last_end >= 0:
        # The cut goes back to the end of the last whole line, if there is one.
        by_bytes = last_end
    kept = min(by_lines, by_bytes)
    cut = None
    if kept < len(trimmed):
        # `kept` counts in the trimmed text, a cut in the whole note.
        start = text.find(trimmed)
        # What is lost begins with a character, not with the end of the last line that is read.
        from_next_line = kept + 1 if trimmed[kept] == "\n" else kept
        cut = _cut(text[: start + len(trimmed)], start + from_next_line, start + len(trimmed))
    if lines > CLAUDE_LINES and by_lines <= by_bytes:
        return "lines", lines, CLAUDE_LINES, replace(cut, lost=lines - CLAUDE_LINES) if cut else None
    return "bytes", size, host.limit, replace(cut, lost=size - len(trimmed[:kept].encode())) if cut else None


def _cut(text: str, start: int, end: int, *, goes_on: bool = False) -> Cut:
    """Return the cut of the characters from `start` to `end`; the host reads on behind them only where it `goes_on`."""
    line, column = _place(text, start)
    until_line, until_column = _place(text, end) if goes_on else (0, 0)
    return Cut(line, column, until_line, until_column, lost=jsstring.utf16_len(text[start:end]))


def _place(text: str, index: int) -> tuple[int, int]:
    """Return line and column of a character, both from 1."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _index(text: str, units: int, *, forward: bool = False) -> int:
    """Return the index of the character behind the first `units` UTF-16 units of a text.

    Where they end in the middle of a character, it is the index of that one, or with `forward` of the next.
    """
    # A unit has two bytes. Half a character is decoded as a high surrogate at the end.
    head = text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass")
    is_halved = bool(head) and "\ud800" <= head[-1] <= "\udbff"
    return len(head) - 1 if is_halved and not forward else len(head)
