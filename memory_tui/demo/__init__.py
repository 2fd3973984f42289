"""The sample workspace: ten months of one household's notes, ending today.

The templates name days by their age (`memory/day-049.md`) and hold dates as `{date}`, `{date-7}`, `{long+3}`;
a dated note counts from its own day, every other text from today. So the copy is always about the last ten months,
and line numbers never change.

Beside it lies what other programs left, so that the inbox holds every kind: OpenClaw's ledger does not trust one note
any more, and a session reads less of MEMORY.md than it holds; Claude Code keeps three facts, and its index points to
two; agents asked for weeks; a note lost a line; an editor saved another as Windows-1252.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import apsw
import msgspec

from memory_tui import durable, locks, profiles
from memory_tui.config.places import journal_folder
from memory_tui.errors import EditRefused, IndexUnavailable, MemoryTuiError, WorkspaceError
from memory_tui.notes.journal import Journal
from memory_tui.notes.record import Sight
from memory_tui.openclaw import trust
from memory_tui.openclaw.prompt import SEARCH
from memory_tui.recalls import recall_log
from memory_tui.recalls.recall_log import LoggedHit
from memory_tui.settings import TUNE_KEYS
from memory_tui.tune import judgments
from memory_tui.tune.judgments import Label, Query

SUGGESTED: tuple[str, ...] = (
    "How is the VLAN on the Omada router set up?",
    "Who was our dentist before Dr. Hallett?",
    "Why did we drop Pi-hole?",
    "What was the cause of ERR_GATEWAY_502 the first time?",
    "麻婆豆腐要放什么酱？",
)
"""Labelled queries for somebody who sees the sample for the first time.

No note holds all the words of any of them, so keyword search that joins words with AND stays empty, while each is
answered by notes that hold some.
"""

_TEMPLATE_DAY = re.compile(r"day-(\d{3})")
_PLACEHOLDER = re.compile(r"\{(date|weekday|long|month|zh)([+-]\d+)?\}")


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


# Names of days and months are English everywhere, because nothing here takes over the user's locale.
_FORMS: Mapping[str, Callable[[dt.date], str]] = {
    "date": dt.date.isoformat,
    "weekday": lambda day: f"{day:%A}",
    "long": lambda day: f"{day:%B} {_ordinal(day.day)}",
    "month": lambda day: f"{day:%B}",
    "zh": lambda day: f"{day.month}月{day.day}日",
}


def materialize(target: Path, today: dt.date, *, more: bool = False) -> Path:
    """Write the sample workspace as it stands on `today` into `target`, and return `target`.

    With `more` it has the notes for somebody who looks around, too: what the inbox finds, a conflict, a German note.

    The same day gives the same bytes and mtimes in every time zone and locale. A note's mtime is 18:00 UTC of its
    day, an undated file's that of the last day it speaks of; today's may therefore lie some hours ahead.
    Raises WorkspaceError when `target` is a file, is not empty, or cannot be written.
    """
    try:
        durable.make_folder(target, 0o777)
        if any(target.iterdir()):
            raise WorkspaceError(
                f"{target} is not empty; the sample workspace is only copied into an empty folder.",
                "Name a folder that does not exist yet.",
            )
        texts: dict[str, str] = {}
        for folder in ("workspace", "more") if more else ("workspace",):
            for template, text in _templates(files(__name__) / folder):
                # What more there is of a note goes on where the note ends, so that no line of it moves.
                texts[template] = texts.get(template, "") + text
        for template, text in texts.items():
            _write(target, template, text, today)
    except OSError as error:
        raise WorkspaceError(
            f"The sample workspace cannot be written to {target}: {error.strerror or error}.",
            "Name a folder you may write to.",
        ) from error
    return target


def labelled_queries(today: dt.date) -> list[Query]:
    """Return the questions that come with the sample as it stands on `today`, each with the lines that answer it."""
    text = _fill((files(__name__) / "queries.jsonl").read_text(encoding="utf-8"), today)
    rows = map(json.loads, text.splitlines())
    return [
        Query(
            row["query"], tuple(Label(**each) for each in row["relevant"]), row["id"], unanswerable=not row["relevant"]
        )
        for row in rows
    ]


def keep_queries(workspace: Path, config: Path, today: dt.date) -> None:
    """Save the labelled queries as those of the sample in `workspace`, whose own configuration is `config`."""
    place = judgments.notebook_path(workspace, config)
    judgments.save(place, judgments.Notebook(tuple(labelled_queries(today))))


def _forget(folder: Path) -> None:
    """Remove what the state folder keeps of the demo below `folder`: nobody would find it again."""

    workspace = folder / WORKSPACE
    place = recall_log.recall_log_path(workspace)
    with suppress(OSError, IndexUnavailable):
        recall_log.clear_log(place)
        # Of a workspace that is gone nobody locks the record any more.
        durable.remove_file(locks.lock_path(place))
    journal = Journal(journal_folder(workspace))
    with suppress(EditRefused):
        journal.clear()
    shutil.rmtree(journal.folder, ignore_errors=True)


def _day_of(template: str, today: dt.date) -> dt.date | None:
    match = _TEMPLATE_DAY.search(template)
    return today - dt.timedelta(days=int(match[1])) if match else None


def named(template: str, today: dt.date) -> str:
    """Return the path that a note of the sample has on `today`."""
    return _TEMPLATE_DAY.sub((_day_of(template, today) or today).isoformat(), template)


def _templates(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield relative posix path and text of each template below `folder`, in the order of their names."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".md"):
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


def _write(target: Path, template: str, text: str, today: dt.date) -> None:
    day, note = _day_of(template, today), target / named(template, today)
    edited = day or today - dt.timedelta(days=_youngest_mention(text))
    durable.make_folder(note.parent, 0o777)
    durable.create_file(note, _fill(text, day or today).encode("utf-8"), None)
    evening = int(dt.datetime.combine(edited, dt.time(18), dt.UTC).timestamp())
    os.utime(note, (evening, evening))


def _fill(text: str, day: dt.date) -> str:
    """Return `text` with its placeholders counted from `day`; other braces stay."""
    return _PLACEHOLDER.sub(lambda hole: _FORMS[hole[1]](day + dt.timedelta(days=int(hole[2] or 0))), text)


def _youngest_mention(text: str) -> int:
    """Return the age in days of the latest past day that an undated template speaks of, else a month."""
    offsets = [int(hole[2] or 0) for hole in _PLACEHOLDER.finditer(text)]
    return min((-offset for offset in offsets if offset <= 0), default=30)


WORKSPACE = "workspace"


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a new folder for a demo, which is removed at the end; that of a killed one is left to the system."""
    with tempfile.TemporaryDirectory(prefix="memory-tui-demo-") as name:
        yield Path(name)
        _forget(Path(name))


DISTRUSTED = "memory/errands.md"
LOSING = "memory/day-003.md"
FOREIGN = "memory/bakery.md"
_BAKERY = """# Bäckerei Süß

- Samstags zwei Körnerbrötchen und ein Roggenbrot für Käthe; die Bäckerei schließt um 13 Uhr.
"""
LOST = "- Wei's train gets in at 18:40 on Friday; Theo wants to wait on the platform.\n"
"""The last line of that note until another program wrote it anew."""
_READ_CHARS = 4_000
"""How much of MEMORY.md a session reads, which is less than it holds."""
_STATE = "openclaw"
_FACTS = "claude-memory"


def surround(folder: Path, workspace: Path, today: dt.date) -> Path:
    """Write what stands around the sample in `workspace` into `folder`; returns the folder of Claude Code's facts.

    Where the state folder cannot be written, there are no questions of agents, and no lost line. Raises OSError.
    """
    facts = folder / _FACTS
    durable.make_folder(facts, 0o777)
    templates = files(__name__) / "claude"
    for entry in sorted(templates.iterdir(), key=lambda entry: entry.name):
        durable.create_file(facts / entry.name, entry.read_bytes())
    durable.make_folder(workspace / ".claude", 0o777)
    settings = json.dumps({"autoMemoryDirectory": str(facts)}).encode()
    durable.create_file(workspace / ".claude" / "settings.json", settings)
    _distrust(state_folder(folder), workspace, today)
    config = {"agents": {"defaults": {"workspace": str(workspace), "bootstrapMaxChars": _READ_CHARS}}}
    durable.create_file(state_folder(folder) / "openclaw.json", json.dumps(config, indent=2).encode())
    durable.create_file(workspace / FOREIGN, _BAKERY.encode("cp1252"))
    saved = int(_noon(today - dt.timedelta(days=40)))
    os.utime(workspace / FOREIGN, (saved, saved))
    with suppress(OSError, MemoryTuiError):
        _ask(workspace, today)
        _lose(workspace, today)
    return facts


def state_folder(folder: Path) -> Path:
    """Return where OpenClaw keeps its state for the sample below `folder`."""
    return folder / _STATE


def _noon(day: dt.date) -> float:
    return dt.datetime.combine(day, dt.time(12)).timestamp()


def _distrust(state: Path, workspace: Path, today: dt.date) -> None:
    """Write OpenClaw's ledger, in which one note is the agent's no more."""

    database = state / "state" / "openclaw.sqlite"
    durable.make_folder(database.parent)
    key = trust.workspace_key(workspace)
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute(
            f"CREATE TABLE {trust.TABLE} (plugin_id TEXT NOT NULL, namespace TEXT NOT NULL, entry_key TEXT NOT NULL, "
            "value_json TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER, "
            "PRIMARY KEY (plugin_id, namespace, entry_key)) STRICT"
        )
        connection.pragma("user_version", trust.NEWEST_SCHEMA)
        digest = hashlib.sha256(os.fsencode(DISTRUSTED)).hexdigest()
        noted = _noon(today - dt.timedelta(days=2)) * 1000
        seen = trust.text_hash((workspace / DISTRUSTED).read_bytes())
        value = msgspec.json.encode(trust.LedgerRow(1, DISTRUSTED, "untrusted", seen, noted))
        connection.execute(
            f"INSERT INTO {trust.TABLE} VALUES (?, ?, ?, ?, 1, NULL)",
            (trust.PLUGIN, trust.NAMESPACE, f"{key}:{digest}", value.decode()),
        )


def _ask(workspace: Path, today: dt.date) -> None:
    """Write the log of what agents asked, as a server with the usual knobs wrote it.

    Its index of then is named by no id, because the demo makes its own; `tests/demo/demo_log.py` made the answers.
    """

    place = recall_log.recall_log_path(workspace)
    values = profiles.compose(profiles.OWN, {}, {}).values
    knobs = {key: values[key].value for key in TUNE_KEYS}
    lines = (files(__name__) / "asked.jsonl").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        fields = json.loads(line)
        at = _noon(today - dt.timedelta(days=fields.pop("age"))) + number * 60
        hits = tuple(LoggedHit(**{**hit, "path": named(hit["path"], today)}) for hit in fields.pop("hits"))
        entry = recall_log.RecallEntry(
            SEARCH, at=at, now=at, agent="main", settings=knobs, generation=_GENERATION, hits=hits, **fields
        )
        recall_log.append_recall(place, entry)


_GENERATION = 1
"""The state of the index that answered the agents: the first one, since which notes were indexed."""


def _lose(workspace: Path, today: dt.date) -> None:
    """Record a note that lacks a line, as the journal keeps it when the index saw the line before."""

    path = named(LOSING, today)
    now = (workspace / path).read_bytes()
    at = _noon(today - dt.timedelta(days=1))
    journal = Journal(journal_folder(workspace))
    journal.observe([Sight(path, now + LOST.encode(), at, fresh=False)])
    journal.observe([Sight(path, now, at)])
