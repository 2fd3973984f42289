"""Dreaming is what OpenClaw 2026.9 writes into notes at night, between markers that it looks for again.

Whoever breaks a marker makes OpenClaw write its block a second time, or lose what stands around it. So an edit that
leaves half of a pair, or changes a marker, is not made.

Promotion is how it chooses what goes from daily notes into MEMORY.md. It counts how often each passage of a daily note
was recalled, by how many queries, on which days. A passage that passes every gate is promoted at the next deep sleep,
the best ten first. The counts are read, and never written.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct
from msgspec.structs import replace

from memory_tui.core.errors import EditRefused
from memory_tui.core.formatting import plural
from memory_tui.openclaw import open_foreign
from memory_tui.openclaw.trust import TABLE

_PROMOTED = re.compile(r"## Promoted From Short-Term Memory\b.*")
_SECTION = re.compile(r"#{1,2}(?:\s|$)")
_PAIR = re.compile(r"<!--\s*openclaw:dreaming:(diary|deep|light|rem):(start|end)\s*-->")
_PROMOTION = re.compile(r"<!--\s*openclaw-memory-promotion:([^\n]*?)\s*-->")
_TITLES = {"diary": "dream diary", "deep": "deep sleep", "light": "light sleep", "rem": "REM sleep"}


class DreamBlock(Struct, frozen=True):
    """What OpenClaw wrote on lines `first` to `last` (from 1), markers included; `kind` is promotion or a phase."""

    kind: str
    first: int
    last: int
    key: str = ""


def dream_blocks(text: str) -> list[DreamBlock]:
    """List what OpenClaw's dreaming wrote into a note, in its order; a half pair is none."""
    found: list[DreamBlock] = []
    begun: dict[str, int] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for kind, side in _PAIR.findall(line):
            if side == "start":
                begun[kind] = number
            elif kind in begun:
                found.append(DreamBlock(kind, begun.pop(kind), number))
        if promoted := _PROMOTION.search(line):
            entry = number < len(lines) and lines[number].startswith("- ")
            found.append(DreamBlock("promotion", number, number + entry, promoted[1]))
    return sorted(found, key=lambda block: (block.first, block.last))


class Fold(Struct, frozen=True):
    """What OpenClaw wrote on lines `first` to `last` (from 1), and its `title` where it is not shown in full."""

    first: int
    last: int
    title: str


def folds(text: str) -> list[Fold]:
    """List the parts of a note that dreaming wrote and a person rarely reads: blocks and promoted sections, apart."""
    if "openclaw" not in text:
        return []
    blocks = dream_blocks(text)
    found = [
        Fold(block.first, block.last, f"OpenClaw's {_TITLES[block.kind]}")
        for block in blocks
        if block.kind != "promotion" and block.last > block.first
    ]
    lines = text.split("\n")
    for first, line in enumerate(lines, 1):
        if _PROMOTED.match(line):
            end = next((at for at in range(first, len(lines)) if _SECTION.match(lines[at])), len(lines))
            last = max(at for at in range(first, end + 1) if at == first or lines[at - 1].strip())
            count = sum(block.kind == "promotion" and first <= block.first <= last for block in blocks)
            if last > first and count:
                night = line[line.find("(") :].strip("() \r") if "(" in line else "earlier"
                found.append(Fold(first, last, f"{plural(count, 'entry')} promoted {night}"))
    apart: list[Fold] = []
    for fold in sorted(found, key=lambda one: (one.first, -one.last)):
        if not apart or fold.first > apart[-1].last:
            apart.append(fold)
    return apart


def broken(before: str, after: str) -> str:
    """Say how a change from `before` to `after` breaks a block that was whole; empty where it breaks none.

    A block may go as a whole, and one that was broken before may stay so. Markers that stay keep every byte.
    """
    if "openclaw" not in before:
        return ""
    old, new = _sides(before), _sides(after)
    for kind, title in _TITLES.items():
        if not _whole(old[kind]):
            continue
        if not _whole(new[kind]):
            return f"it breaks the markers of OpenClaw's {title} block"
        known = {marker for _, marker in old[kind]}
        if any(marker not in known and marker != _canonical(kind, side) for side, marker in new[kind]):
            return f"it changes a marker of OpenClaw's {title} block"
    return _promotion_broken(before.split("\n"), after.split("\n"), dream_blocks(before))


def _promotion_broken(before: list[str], after: list[str], blocks: list[DreamBlock]) -> str:
    """Say how promoted entries lose their markers, or markers their entries."""
    known, kept = set(before), Counter(after)
    following = {line: after[at] if at < len(after) else "" for at, line in enumerate(after, 1)}
    changed = any(line not in known and "openclaw-memory-promotion" in line for line in after)
    for block in blocks:
        if block.kind != "promotion" or block.last == block.first:
            continue
        marker, entry = before[block.first - 1], before[block.last - 1]
        if not kept[marker]:
            if kept[entry]:
                return f"it takes the promotion marker {block.key} from its entry"
            if changed:
                return f"it changes the promotion marker {block.key}"
        elif (now := following[marker]) != entry and (kept[entry] or (now.startswith("- ") and now in known)):
            return f"it puts another entry below the promotion marker {block.key}"
    return ""


def _canonical(kind: str, side: str) -> str:
    return f"<!-- openclaw:dreaming:{kind}:{side} -->"


def require_whole(path: str, before: bytes | None, after: bytes | None) -> None:
    """Raises EditRefused where writing `after` for `before` breaks a block of `path`."""
    if before is None or after is None:
        return
    if reason := broken(before.decode("utf-8", "replace"), after.decode("utf-8", "replace")):
        raise EditRefused(
            f"{path} was not written: {reason}.",
            "Leave the markers as they are, or take the whole block away.",
        )


def _sides(text: str) -> dict[str, list[tuple[str, str]]]:
    """Side and bytes of each marker, by kind, in their order."""
    found: dict[str, list[tuple[str, str]]] = {kind: [] for kind in _TITLES}
    for marker in _PAIR.finditer(text):
        found[marker[1]].append((marker[2], marker[0]))
    return found


def _whole(markers: list[tuple[str, str]]) -> bool:
    """Whether every start is followed by its end."""
    sides = [side for side, _ in markers]
    return Counter(sides)["start"] == Counter(sides)["end"] and all(
        side == ("start", "end")[number % 2] for number, side in enumerate(sides)
    )


PLUGIN, RECALLS, PHASES = "memory-core", "short-term-recall", "short-term-phase-signals"
LEAST_SCORE, LEAST_SIGNALS, LEAST_QUERIES, MOST_DAYS, MOST = 0.75, 3, 3, 30, 10
"""OpenClaw's gates where the configuration sets none."""
WEIGHTS: Mapping[str, float] = {
    "mean recall score": 0.30,
    "signals": 0.24,
    "queries": 0.15,
    "recency": 0.15,
    "days": 0.10,
    "tags": 0.06,
}
_HALF_LIFE_DAYS = 14.0
_LIGHT, _REM, _HITS = 0.06, 0.09, 6
_MOST_ROWS = 100_000
_DAILY = re.compile(r"(?:^|/)memory/(?:[^/]+/)*\d{4}-\d{2}-\d{2}(?:-[^/]+)?\.md$|^\d{4}-\d{2}-\d{2}(?:-[^/]+)?\.md$")
_CORPUS = re.compile(r"(?:^|/)memory/\.dreams/session-corpus/\d{4}-\d{2}-\d{2}\.(?:md|txt)$")
_DREAMT = re.compile(r"(?:^|/)memory/dreaming/")


class Promotable(Struct, frozen=True):
    """A passage that was recalled: where it stands, its counts, its score by part, and which gate holds it.

    `held` is empty for what the next deep sleep promotes; `promoted` is the ISO time of its promotion, if any.
    """

    key: str
    path: str
    first: int
    last: int
    text: str
    recalls: int
    signals: int
    queries: int
    days: float
    score: float
    parts: Mapping[str, float]
    promoted: str
    held: str

    @property
    def night(self) -> str:
        """The day (ISO) of its promotion where memory-tui runs, empty where it was not promoted."""
        return _night(self.promoted)

    @property
    def evidence(self) -> str:
        """The counts in words."""
        return (
            f"score {self.score:.3f}, {plural(self.recalls, 'recall')} by {_queries(self.queries)}, "
            f"{plural(self.signals, 'signal')}, last {self.days:.0f} d ago, from {self.path}:{self.first}-{self.last}"
        )


class Promotions(Struct, frozen=True):
    """Every passage that OpenClaw counts, those that come next first; `problem` is why its counts cannot be read."""

    passages: tuple[Promotable, ...] = ()
    problem: str = ""
    next_step: str = ""

    @property
    def next(self) -> tuple[Promotable, ...]:
        """What the next deep sleep promotes."""
        return tuple(one for one in self.passages if not one.held)

    @property
    def nights(self) -> Mapping[str, tuple[Promotable, ...]]:
        """What was promoted, by night, the newest first."""
        found: dict[str, list[Promotable]] = {}
        for one in self.passages:
            if one.night:
                found.setdefault(one.night, []).append(one)
        return {night: tuple(found[night]) for night in sorted(found, reverse=True)}


def promotions(workspace: Path, database: Path, now: float) -> Promotions:
    """Read what OpenClaw counts of the notes in `workspace`, as it is at `now` (epoch seconds)."""
    # As OpenClaw, which does not follow links here.
    own = hashlib.sha256(os.fsencode(Path(os.path.normpath(workspace.absolute())))).hexdigest()

    def read(connection: apsw.Connection) -> tuple[list[Any], list[Any]]:
        return _rows(connection, RECALLS, own, now), _rows(connection, PHASES, own, now)

    try:
        recalls, phases = open_foreign.read_foreign(database, read)[0]
    except open_foreign.NotSeen as error:
        return Promotions() if error.state == "missing" else Promotions((), error.detail, error.next_step)
    signals = {str(key): value for key, value in phases}
    found = [one for key, value in recalls if (one := _passage(str(key), value, signals, now)) is not None]
    order = sorted(found, key=lambda one: (bool(one.held), -one.score, -one.recalls, one.path))
    late = f"{MOST} others score more"
    return Promotions(tuple(one if one.held or at < MOST else replace(one, held=late) for at, one in enumerate(order)))


def _rows(connection: apsw.Connection, namespace: str, own: str, now: float) -> list[Any]:
    """Key and value of each row of this workspace; rows that do not parse are left out."""
    if connection.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = 'expires_at'", (TABLE,)).fetchone() is None:
        return []
    rows = connection.execute(
        f"SELECT CAST(value_json AS TEXT) FROM {TABLE} WHERE plugin_id = ? AND namespace = ? AND entry_key LIKE ? "
        f"AND (expires_at IS NULL OR expires_at > ?) LIMIT {_MOST_ROWS}",
        (PLUGIN, namespace, f"{own}:%", int(now * 1000)),
    )
    found = []
    for (text,) in rows:
        try:
            fields = json.loads(text)
            if fields["workspaceKey"] == own and isinstance(fields["value"], dict):
                found.append((fields["key"], fields["value"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return found


def _passage(key: str, value: Mapping[str, Any], phases: Mapping[str, Any], now: float) -> Promotable | None:
    path = str(value.get("path") or "").replace("\\", "/").removeprefix("./")
    corpus = bool(_CORPUS.search(path))
    if value.get("source") != "memory" or _DREAMT.search(path) or not (_DAILY.search(path) or corpus):
        return None
    recalls, daily, grounded = (_count(value.get(name)) for name in ("recallCount", "dailyCount", "groundedCount"))
    signals = recalls + daily + grounded
    if not signals:
        return None
    queries = value.get("userQueryHashes")
    if not isinstance(queries, list):
        queries = value.get("queryHashes") if not daily and not grounded else None
    asked = len(set(_texts(queries)))
    last = _time(value.get("lastRecalledAt"))
    days = max(0.0, (now - last) / 86_400) if last is not None else 0.0
    parts = {
        "mean recall score": _share(_number(value.get("totalScore")) / max(1, signals)),
        "signals": _share(math.log1p(signals) / math.log1p(10)),
        "queries": _share(asked / 5),
        "recency": _recency(days),
        "days": max(_spread(_texts(value.get("recallDays"))), _share(grounded / 3)),
        "tags": _share(len(set(_texts(value.get("conceptTags")))) / 6),
    }
    score = _share(sum(WEIGHTS[name] * part for name, part in parts.items()) + _boost(phases.get(key), now))
    promoted = str(value.get("promotedAt") or "")
    return Promotable(
        key,
        path,
        _count(value.get("startLine")),
        _count(value.get("endLine")),
        str(value.get("snippet") or ""),
        recalls,
        signals,
        asked,
        days,
        score,
        parts,
        promoted,
        _held(value, promoted, signals, asked, days, score),
    )


def _held(value: Mapping[str, Any], promoted: str, signals: int, queries: int, days: float, score: float) -> str:
    """The first gate that a passage does not pass, in words; empty where it passes all."""
    provenance = value.get("provenance")
    origin = provenance.get("originClass") if isinstance(provenance, dict) else ""
    if origin in ("untrusted", "system"):
        return f"its origin is {origin}"
    if promoted:
        return f"promoted {_night(promoted)}"
    if signals < LEAST_SIGNALS:
        return f"{plural(signals, 'signal')}, at least {LEAST_SIGNALS} are needed"
    if queries < LEAST_QUERIES:
        return f"{_queries(queries)}, at least {LEAST_QUERIES} are needed"
    if days > MOST_DAYS:
        return f"last recalled {days:.0f} days ago, at most {MOST_DAYS} count"
    return f"score {score:.3f}, at least {LEAST_SCORE} is needed" if score < LEAST_SCORE else ""


def _night(promoted: str) -> str:
    at = _time(promoted)
    return promoted[:10] if at is None else dt.datetime.fromtimestamp(at).astimezone().date().isoformat()


def _queries(count: int) -> str:
    return f"{count} {'query' if count == 1 else 'queries'}"


def _spread(days: Sequence[str]) -> float:
    """How well recalls are spread over days: by their number and their span."""
    known = sorted(day for text in days[-16:] if (day := _time(f"{text[:10]}T00:00:00Z")) is not None)
    if len(known) < 2:
        return 0.2 if days else 0.0
    spacing = _share(math.log1p(len(known) - 1) / math.log1p(4))
    return _share(0.55 * spacing + 0.45 * _share((known[-1] - known[0]) / 86_400 / 7))


def _boost(value: object, now: float) -> float:
    """What light and REM sleep add."""
    if not isinstance(value, dict):
        return 0.0
    total = 0.0
    for most, hits, seen in ((_LIGHT, "lightHits", "lastLightAt"), (_REM, "remHits", "lastRemAt")):
        strength = _share(math.log1p(_count(value.get(hits))) / math.log1p(_HITS))
        at = _time(value.get(seen))
        total += most * strength * (0.0 if at is None else _recency(max(0.0, (now - at) / 86_400)))
    return _share(total)


def _recency(days: float) -> float:
    return math.exp(-math.log(2) / _HALF_LIFE_DAYS * days)


def _share(value: float) -> float:
    return max(0.0, min(1.0, value)) if math.isfinite(value) else 0.0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _count(value: object) -> int:
    number = _number(value)
    return max(0, math.floor(number)) if math.isfinite(number) else 0


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str) and one.strip()] if isinstance(value, list) else []


def _time(value: object) -> float | None:
    try:
        return dt.datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return None
