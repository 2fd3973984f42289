"""Trust is whether OpenClaw 2026.9 still takes a memory file for its agent's own.

OpenClaw keeps the hash of each memory file after its own last write in a ledger. When the file has another text at the
agent's next write, it becomes untrusted for good: it is no longer put into the prompt, triggers no recall and is not
promoted; search still finds it. The ledger is OpenClaw's own and is only read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import apsw
import msgspec
from msgspec import Struct, field

from memory_tui.config import places
from memory_tui.formatting import minute, plural
from memory_tui.openclaw import open_foreign
from memory_tui.openclaw.prompt import NO_WAY_BACK
from memory_tui.plan import Plan

State = Literal["agent", "edited", "untrusted", "unrecorded", "ignored", "unknown"]
Written = tuple[str, bytes | None, bytes | None]
"""Stored path of a note, its bytes before and after; None where it is not there."""

TABLE = "plugin_state_entries"
PLUGIN, NAMESPACE = "core:memory-artifact-provenance", "workspace-files"
NEWEST_SCHEMA = 18
"""The newest `user_version` of the state database that is known here (OpenClaw 2026.9.6)."""
_COLUMNS = {"plugin_id", "namespace", "entry_key", "value_json"}
_ROOT = ("MEMORY.md", "USER.md")
"""Notes that a report names, as long as they are there, even where no caller lists them."""
_COVERED = re.compile(r"MEMORY\.md|memory\.md|USER\.md|users/[^/]+/USER\.md|memory/.+\.md", re.DOTALL)
_MOST_ROWS = 100_000

_LOSS = "it is not put into the prompt, triggers no recall and is not promoted; search still finds it"
_WORDS: Mapping[State, str] = {
    "agent": "agent",
    "edited": "agent, edited since: the agent's next write will make it untrusted",
    "untrusted": f"untrusted since {{since}}: {_LOSS}",
    "unrecorded": "not recorded yet",
    "ignored": "a link, which OpenClaw 2026.9 ignores",
    "unknown": "unknown: OpenClaw's ledger has a row that cannot be read",
}


class LedgerRow(Struct, frozen=True, rename="camel"):
    """What the ledger has of one file: class, hash after OpenClaw's last write, and when that was (milliseconds)."""

    version: Literal[1]
    relative_path: str
    origin_class: Literal["agent", "untrusted"]
    file_hash: str
    observed_at: float
    session_id: str = ""
    session_key: str = ""


class FileTrust(Struct, frozen=True):
    """The trust of one file: its state, the words a person reads, since when (epoch seconds, 0: not known)."""

    path: str
    state: State
    words: str
    since: float = 0.0


class Ledger(Struct, frozen=True):
    """The ledger of one workspace at one moment: its rows by the hash of the path, None for one that cannot be read.

    `problem` is why it cannot be read, `next_step` what to do then; both are empty where it was. `absent` tells that
    OpenClaw keeps none here.
    """

    database: str
    rows: Mapping[str, LedgerRow | None] = field(default_factory=dict)
    absent: bool = False
    problem: str = ""
    next_step: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def classes(self) -> dict[str, str]:
        """Return the class of each file whose row can be read, by path."""
        return {row.relative_path: row.origin_class for row in self.rows.values() if row is not None}

    def of(self, path: str, file_hash: str) -> FileTrust:
        """Return the trust of a file whose text has the hash `file_hash`."""
        key = _sha256(path)
        row = self.rows.get(key)
        if row is None:
            state: State = "unknown" if key in self.rows else "unrecorded"
            return FileTrust(path, state, _WORDS[state])
        is_edited = row.origin_class == "agent" and row.file_hash != file_hash
        state = "edited" if is_edited else row.origin_class
        since = row.observed_at / 1000
        return FileTrust(path, state, _WORDS[state].format(since=_time(since)), since)


class TrustReport(Struct, frozen=True):
    """The trust of every covered file, by path."""

    ledger: str
    problem: str
    next_step: str
    remarks: tuple[str, ...]
    files: tuple[FileTrust, ...]


def _sha256(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits, as the ledger has it of paths and of what files hold."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def covered(path: str) -> bool:
    """Tell whether the ledger keeps the note stored as `path`."""
    return bool(_COVERED.fullmatch(path)) and not path.startswith(("memory/dreaming/", "memory/.dreams/"))


def text_hash(data: bytes) -> str:
    """Return the hash of a file as OpenClaw takes it: SHA-256 of its text, where what is no UTF-8 becomes U+FFFD."""
    return _sha256(data.decode("utf-8", "replace"))


class Trust:
    """The ledger of `workspace` in `database`.

    `expected` tells that OpenClaw's agent works there; of another folder only what the ledger knows is told.
    """

    def __init__(self, workspace: Path, database: Path, *, expected: bool = True) -> None:
        self._workspace, self._database, self._expected = workspace, database, expected
        self._traces: open_foreign.Traces = ()
        self._last: Ledger | None = None
        """The ledger as it was read last, when the database had these traces."""

    # --- reading ---------------------------------------------------------------------------------------------------

    def ledger(self) -> Ledger:
        """Return the ledger as it is, read again only when the database changed; it is never written by this."""
        name = str(self._database)
        try:
            traces = open_foreign.traces(self._database)
            if self._last is None or traces != self._traces:
                values, version = open_foreign.read_foreign(self._database, _values)
                self._traces, self._last = traces, self._of_values(name, values, version)
            return self._last
        except open_foreign.NotSeen as error:
            if error.state == "missing":
                return Ledger(name, absent=True)
            return Ledger(name, problem=error.detail, next_step=error.next_step)

    def report(self, paths: Iterable[str]) -> TrustReport:
        """Return the trust of those of `paths` that the ledger covers, and of what else it has rows of.

        Reads the notes that the ledger has rows of.
        """
        ledger = self.ledger()
        files: tuple[FileTrust, ...] = ()
        if not ledger.problem and not ledger.absent:
            others = (path for path in (*_ROOT, *ledger.classes) if os.path.lexists(self._workspace / path))
            listed = {path for path in (*paths, *others) if covered(path)}
            files = tuple(self._of_disk(ledger, path) for path in sorted(listed))
        name = "" if ledger.absent else ledger.database
        return TrustReport(name, ledger.problem, ledger.next_step, ledger.remarks, files=files)

    def of(self, path: str) -> FileTrust | None:
        """Return the trust of the note `path`; None where the ledger does not cover it, or there is none."""
        ledger = self.ledger() if covered(path) else None
        if ledger is None or ledger.absent or ledger.problem:
            return None
        return self._of_disk(ledger, path)

    def _of_values(self, name: str, values: Sequence[tuple[str, str]] | None, version: int) -> Ledger:
        """Return the ledger of this workspace in the database `name`, of whose rows `values` are key and text.

        `values` are None where OpenClaw keeps no ledger, `version` is that of its schema. A newer version, and rows
        that cannot be read, become remarks.
        """
        if values is None:
            return Ledger(name, absent=True)
        # The ledger names a workspace by its real path.
        here = hashlib.sha256(os.fsencode(os.path.realpath(self._workspace))).hexdigest()
        remarks, rows = list[str](), dict[str, LedgerRow | None]()
        if version > NEWEST_SCHEMA:
            remarks.append(f"The ledger is of a newer OpenClaw (schema {version}) than memory-tui knows.")
        for key, text in values:
            folder, _, path_hash = key.partition(":")
            if folder == here:
                # It stays None where the row cannot be read, or is filed under the hash of another path.
                rows[path_hash] = None
                with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
                    row = msgspec.json.decode(text, type=LedgerRow)
                    rows[path_hash] = row if _sha256(row.relative_path) == path_hash else None
        if unread := sum(row is None for row in rows.values()):
            count = plural(unread, "row")
            remarks.append(f"{count} of the ledger cannot be read: the trust of these files is unknown.")
        return Ledger(name, rows, absent=not rows and not self._expected, remarks=tuple(remarks))

    def _of_disk(self, ledger: Ledger, path: str) -> FileTrust:
        """Return the trust of the note at `path`, by what it holds now; it is read only if `ledger` has a row of it."""
        if (self._workspace / path).is_symlink():
            return FileTrust(path, "ignored", _WORDS["ignored"])
        # The hash of a file that cannot be read stays empty, so that it differs from OpenClaw's.
        file_hash = ""
        with suppress(OSError, ValueError):
            if path in ledger.classes:
                file_hash = text_hash((self._workspace / path).read_bytes())
        return ledger.of(path, file_hash)

    # --- what an edit does -----------------------------------------------------------------------------------------

    def effects(self, files: Iterable[Written]) -> tuple[str, ...]:
        """Return sentences for what writing `files` does to the trust of those that the ledger covers.

        Empty where none of them has any trust to lose.
        """
        notes = [(path, before, after) for path, before, after in files if covered(path)]
        ledger = self.ledger() if notes else None
        if ledger is None or ledger.absent:
            return ()
        if ledger.problem:
            return (f"Trust: OpenClaw's ledger cannot be read, so what this does to it is not known. {ledger.problem}",)
        effects = (self._effect(ledger, path, before, after) for path, before, after in notes)
        return tuple(f"Trust: {words}" for words in effects if words)

    def _effect(self, ledger: Ledger, path: str, before: bytes | None, after: bytes | None) -> str:
        """Say what a change of a note from `before` to `after` does to its trust; empty where it has none to lose."""
        trust = ledger.of(path, "" if before is None else text_hash(before))
        if trust.state in ("unrecorded", "untrusted"):
            # It has no trust to lose.
            return ""
        if trust.state == "unknown":
            return f"{path} is {trust.words}."
        if after is None:
            return f"OpenClaw's ledger keeps its row of {path}: a new one that the agent writes will be untrusted."
        if ledger.of(path, text_hash(after)).state == "agent":
            return f"{path} is as OpenClaw wrote it again, and stays the agent's."
        return (
            f"the agent's next write to {path} will make it untrusted: {_LOSS}. "
            "Undo this before that write, or have the agent make the change: OpenClaw has no way back."
        )


def of_plan(plan: Plan) -> Trust:
    """Return OpenClaw's ledger of the notes of `plan`, whether OpenClaw keeps one or not."""
    return Trust(plan.roots.workspace, places.state_database(), expected=plan.config.kind == "openclaw")


def _values(connection: apsw.Connection) -> tuple[list[tuple[str, str]] | None, int]:
    """Return keys and values of the ledger, None where plug-ins keep none, and the schema version. Raises NotSeen."""
    columns = {str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (TABLE,))}
    version = int(connection.pragma("user_version"))
    if not columns:
        return None, version
    if not columns >= _COLUMNS:
        why = f"{connection.filename} has another ledger than OpenClaw 2026.9."
        raise open_foreign.NotSeen("damaged", why, "Trust is not shown; update memory-tui.")
    query = f"""
        SELECT CAST(entry_key AS TEXT), CAST(value_json AS TEXT) FROM {TABLE}
        WHERE plugin_id = ? AND namespace = ? LIMIT {_MOST_ROWS}"""
    rows = connection.execute(query, (PLUGIN, NAMESPACE))
    return [(str(key or ""), str(value or "")) for key, value in rows], version


def _time(at: float) -> str:
    """Return the time `at` (epoch seconds) to the minute, in words also where the ledger holds nonsense."""
    try:
        return minute(at)
    except (ValueError, OverflowError, OSError):
        return "a time that cannot be"


# --- in words --------------------------------------------------------------------------------------------------------


def trust_lines(value: TrustReport) -> Iterator[str]:
    """Yield the trust of every note, and what OpenClaw lets a person do."""
    yield f"Ledger: {value.ledger}"
    yield f"Trust: {trust_summary(value)}."
    yield from value.remarks
    for file in value.files:
        yield f"  {file.path}: {file.words}"
    if any(file.state == "untrusted" for file in value.files):
        yield NO_WAY_BACK


def trust_summary(value: TrustReport) -> str:
    """Return how many notes OpenClaw trusts, in one sentence."""
    if value.problem:
        return f"{value.problem} {value.next_step}"
    counts = Counter(file.state for file in value.files)
    words = {"edited": "agent, edited since", "unrecorded": "not recorded yet", "ignored": "a link"}
    counted = ", ".join(f"{count:,} {words.get(state, state)}" for state, count in counts.most_common())
    return counted or "no note is covered"
