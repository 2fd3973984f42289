"""Trust is whether OpenClaw 2026.9 still takes a memory file for its agent's own.

OpenClaw keeps the hash of each memory file after its own last write in a ledger. When the file has another text at the
agent's next write, it becomes untrusted for good: it is no longer put into the prompt, triggers no recall and is not
promoted; search still finds it. The ledger is only read, until a person approves for a workspace that edits made here
move its hash along.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import apsw
import msgspec
import platformdirs
from msgspec import Struct, field

from memory_tui.approval import Approval, Approvals
from memory_tui.config import places
from memory_tui.errors import EditRefused
from memory_tui.formatting import minute, plural
from memory_tui.openclaw import open_foreign
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
_COVERED = re.compile(r"MEMORY\.md|memory\.md|USER\.md|users/[^/]+/USER\.md|memory/.+\.md", re.DOTALL)
_MOST_ROWS = 100_000
_OF_KEY = "WHERE plugin_id = ? AND namespace = ? AND entry_key = ?"
_BUSY_MS = 2000
_APPROVAL = ("openclaw", "trust ledger")

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
        row, since = self.rows.get(key), 0.0
        state: State = "unknown" if key in self.rows else "unrecorded"
        if row is not None:
            state, since = row.origin_class, row.observed_at / 1000
            if state == "agent" and row.file_hash != file_hash:
                state = "edited"
        return FileTrust(path, state, _WORDS[state].format(since=_time(since)), since)


class TrustReport(Struct, frozen=True):
    """The trust of every covered file, by path; `approved` tells whether edits made here keep it."""

    ledger: str
    approved: bool
    problem: str
    next_step: str
    remarks: tuple[str, ...]
    files: tuple[FileTrust, ...]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def covered(path: str) -> bool:
    """Tell whether the ledger keeps the note stored as `path`."""
    return bool(_COVERED.fullmatch(path)) and not path.startswith(("memory/dreaming/", "memory/.dreams/"))


def text_hash(data: bytes) -> str:
    """Return the hash of a file as OpenClaw takes it: SHA-256 of its text, where what is no UTF-8 becomes U+FFFD."""
    return _sha256(data.decode("utf-8", "replace"))


def workspace_key(workspace: Path) -> str:
    """Return how the ledger names a workspace: by its real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()


class Trust:
    """The ledger of `workspace` in `database`.

    `expected` tells that OpenClaw's agent works there; of another folder only what the ledger knows is told.
    """

    def __init__(self, workspace: Path, database: Path, *, expected: bool = True) -> None:
        self._workspace = workspace
        self._expected = expected
        self._database = database
        self._last: tuple[open_foreign.Traces, Ledger] | None = None

    # --- reading ---------------------------------------------------------------------------------------------------

    def ledger(self) -> Ledger:
        """Return the ledger as it is, read again only when the database changed; it is never written by this."""
        name = str(self._database)
        try:
            traces = open_foreign.traces(self._database)
            if self._last is None or self._last[0] != traces:
                self._last = traces, self._of_values(name, *open_foreign.read_foreign(self._database, _values)[0])
            return self._last[1]
        except open_foreign.NotSeen as error:
            if error.state == "missing":
                return Ledger(name, absent=True)
            return Ledger(name, problem=error.detail, next_step=error.next_step)

    def report(self, paths: Iterable[str]) -> TrustReport:
        """Return the trust of those of `paths` that the ledger covers, and of what else it has rows of.

        Reads the notes that the ledger has rows of.
        """
        ledger = self.ledger()
        more = (path for path in (*_ROOT, *ledger.classes) if os.path.lexists(self._workspace / path))
        listed = () if ledger.problem or ledger.absent else sorted({*filter(covered, paths), *filter(covered, more)})
        files = tuple(self._of_disk(ledger, path) for path in listed)
        return TrustReport(
            ledger.database if not ledger.absent else "",
            self.approved,
            ledger.problem,
            ledger.next_step,
            ledger.remarks,
            files,
        )

    def of(self, path: str) -> FileTrust | None:
        """Return the trust of the note `path`; None where the ledger does not cover it, or there is none."""
        ledger = self.ledger() if covered(path) else None
        return None if ledger is None or ledger.absent or ledger.problem else self._of_disk(ledger, path)

    def _of_values(self, name: str, values: Sequence[tuple[str, str]] | None, version: int) -> Ledger:
        if values is None:
            return Ledger(name, absent=True)
        here, remarks, rows = workspace_key(self._workspace), list[str](), dict[str, LedgerRow | None]()
        if version > NEWEST_SCHEMA:
            remarks.append(f"The ledger is of a newer OpenClaw (schema {version}); it is read and never written.")
        for key, text in values:
            folder, _, digest = key.partition(":")
            if folder == here:
                row = _parsed(text)
                rows[digest] = row if row is not None and _sha256(row.relative_path) == digest else None
        if unread := sum(row is None for row in rows.values()):
            remarks.append(
                f"{plural(unread, 'row')} of the ledger cannot be read: the trust of these files is unknown."
            )
        return Ledger(name, rows, not rows and not self._expected, remarks=tuple(remarks))

    def _of_disk(self, ledger: Ledger, path: str) -> FileTrust:
        if (self._workspace / path).is_symlink():
            return FileTrust(path, "ignored", _WORDS["ignored"])
        return ledger.of(path, self._hash(path) if path in ledger.classes else "")

    def _hash(self, path: str) -> str:
        """Return the hash of a note on disk, empty if it cannot be read."""
        try:
            return text_hash((self._workspace / path).read_bytes())
        except (OSError, ValueError):
            return ""

    # --- what an edit does -----------------------------------------------------------------------------------------

    def effects(self, files: Iterable[Written]) -> tuple[str, ...]:
        """Say what writing `files` does to their trust: one sentence for each that the ledger covers."""
        notes = [file for file in files if covered(file[0])]
        ledger = self.ledger() if notes else None
        if ledger is None or ledger.absent:
            return ()
        if ledger.problem:
            return (f"Trust: OpenClaw's ledger cannot be read, so what this does to it is not known. {ledger.problem}",)
        effects = (self._effect(ledger, *file) for file in notes)
        return tuple(f"Trust: {words}" for words in effects if words)

    def _effect(self, ledger: Ledger, path: str, before: bytes | None, after: bytes | None) -> str:
        trust = ledger.of(path, "" if before is None else text_hash(before))
        if trust.state in ("unrecorded", "untrusted"):
            # It has no trust to lose.
            return ""
        if trust.state == "unknown":
            return f"{path} is {trust.words}."
        if after is None:
            return f"OpenClaw's ledger keeps its row of {path}: a new one that the agent writes will be untrusted."
        if trust.state == "edited":
            return f"{path} is {trust.words}. memory-tui openclaw trust --repair {path} changes that."
        if self.approved:
            return f"{path} stays agent: memory-tui updates its hash in OpenClaw's ledger."
        return (
            f"the agent's next write to {path} will make it untrusted: {_LOSS}. "
            "memory-tui openclaw trust --approve lets edits made here keep it."
        )

    def movable(self, files: Iterable[Written]) -> frozenset[str]:
        """Return those of `files` whose hash may move along with an edit: approved, class agent, not edited before."""
        if not self.approved:
            return frozenset()
        ledger = self.ledger()
        return frozenset(
            path
            for path, before, after in files
            if before is not None
            and after is not None
            and covered(path)
            and ledger.of(path, text_hash(before)).state == "agent"
        )

    def follow(self, files: Sequence[Written]) -> None:
        """Move the hashes of `files` from before to after, all or none, while each row is agent at before.

        Raises EditRefused when OpenClaw wrote meanwhile, or the ledger cannot be written; then it is as it was.
        """
        with self._writing() as connection:
            for path, before, after in files:
                _, fields = self._row(connection, path)
                if fields.get("originClass") != "agent" or fields.get("fileHash") != text_hash(before or b""):
                    raise EditRefused(
                        f"OpenClaw wrote {path} meanwhile, so its trust is what OpenClaw made of it.",
                        "The edit stands; memory-tui openclaw trust shows the file.",
                    )
                self._put(connection, path, _renewed(fields, after or b""))

    def repaired_row(self, path: str, seen: bytes) -> tuple[str, str]:
        """Return the row of `path` as it is, and with the class agent for the text that a person has `seen`.

        Raises EditRefused where there is no row, or the ledger cannot be read.
        """
        with self._writing() as connection:
            was, fields = self._row(connection, path)
        return was, _renewed(fields, seen)

    def exchange(self, path: str, was: str, becomes: str, seen: bytes | None = None) -> None:
        """Write the row `becomes` of `path` in the place of `was`, while the file has the text `seen`, if any is given.

        Raises EditRefused when the row or the file is another one now, or the ledger cannot be written.
        """
        with self._writing() as connection:
            if self._row(connection, path)[0] != was:
                raise EditRefused(f"OpenClaw wrote {path} since, so its row was left as it is.", "Look at it again.")
            try:
                same = seen is None or (self._workspace / path).read_bytes() == seen
            except OSError as error:
                reason = error.strerror or str(error)
                raise EditRefused(f"{path} cannot be read: {reason}.", "Nothing was changed.") from None
            if not same:
                raise EditRefused(f"{path} changed after you saw it.", "Nothing was changed. Look at it again.")
            self._put(connection, path, becomes)

    # --- approval --------------------------------------------------------------------------------------------------

    @property
    def approved(self) -> bool:
        """Tell whether a person approved that edits made here move hashes along."""
        return self._approvals.find(*_APPROVAL) is not None

    def approve(self, how: str) -> Approval:
        """Remember the approval for this workspace. Raises ApprovalUnsaved."""
        return self._approvals.approve(*_APPROVAL, how)

    def withdraw(self) -> bool:
        """Forget the approval; returns whether there was one. Raises ApprovalUnsaved."""
        return bool(self._approvals.revoke())

    @property
    def _approvals(self) -> Approvals:
        folder = platformdirs.user_state_path("memory-tui", appauthor=False) / "ledger-approvals"
        return Approvals(self._workspace, folder)

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """Open one transaction on the ledger: all of it, or nothing. Raises EditRefused."""
        try:
            with closing(open_foreign.opened(str(self._database), apsw.SQLITE_OPEN_READWRITE, _BUSY_MS)) as connection:
                connection.transaction_mode = "IMMEDIATE"
                with connection:
                    if not 0 < int(connection.pragma("user_version")) <= NEWEST_SCHEMA:
                        raise EditRefused(
                            f"{self._database} is of another OpenClaw than memory-tui knows.",
                            "Its ledger was left as it is.",
                        )
                    yield connection
        except (apsw.BusyError, apsw.LockedError):
            raise EditRefused("OpenClaw is writing its ledger.", "The ledger was left as it is; try again.") from None
        except apsw.Error as error:
            raise EditRefused(
                f"OpenClaw's ledger {self._database} cannot be written: {error}.", "It was left as it is."
            ) from None

    def _row(self, connection: apsw.Connection, path: str) -> tuple[str, dict[str, object]]:
        """Return the row of `path` as it is stored, and its fields. Raises EditRefused without one that can be read."""
        key = f"{workspace_key(self._workspace)}:{_sha256(path)}"
        value = connection.execute(f"SELECT value_json FROM {TABLE} {_OF_KEY}", (PLUGIN, NAMESPACE, key)).get
        if _parsed(str(value)) is None:
            raise EditRefused(f"OpenClaw's ledger has no row of {path} that can be read.", "It was left as it is.")
        fields: dict[str, object] = json.loads(str(value))
        return str(value), fields

    def _put(self, connection: apsw.Connection, path: str, text: str) -> None:
        key = f"{workspace_key(self._workspace)}:{_sha256(path)}"
        connection.execute(f"UPDATE {TABLE} SET value_json = ? {_OF_KEY}", (text, PLUGIN, NAMESPACE, key))


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
        other = f"{connection.filename} has another ledger than OpenClaw 2026.9."
        raise open_foreign.NotSeen("damaged", other, "Trust is not shown; update memory-tui.")
    query = (
        f"SELECT CAST(entry_key AS TEXT), CAST(value_json AS TEXT) FROM {TABLE} WHERE plugin_id = ? AND namespace = ?"
    )
    rows = connection.execute(f"{query} LIMIT {_MOST_ROWS}", (PLUGIN, NAMESPACE))
    return [(str(key or ""), str(value or "")) for key, value in rows], version


def _renewed(fields: Mapping[str, object], data: bytes) -> str:
    """Return a row as it is stored, with the class agent for the text `data`."""
    renewed = {"originClass": "agent", "fileHash": text_hash(data), "reservationId": str(uuid.uuid4())}
    return json.dumps({**fields, **renewed}, ensure_ascii=False, separators=(",", ":"))


def _parsed(text: str) -> LedgerRow | None:
    """Return one value as it is stored; None where it does not parse."""
    try:
        return msgspec.json.decode(text, type=LedgerRow)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _time(at: float) -> str:
    try:
        return minute(at)
    except (ValueError, OverflowError, OSError):
        return "a time that cannot be"


# --- in words --------------------------------------------------------------------------------------------------------


def trust_lines(value: TrustReport) -> Iterator[str]:
    """Yield the trust of every note, and what can be done."""
    yield f"Ledger: {value.ledger}"
    yield f"Trust: {trust_summary(value)}."
    yield from value.remarks
    for file in value.files:
        yield f"  {file.path}: {file.words}"


def trust_summary(value: TrustReport) -> str:
    """Return how many notes OpenClaw trusts, in one sentence."""
    if value.problem:
        return f"{value.problem} {value.next_step}"
    counts = Counter(file.state for file in value.files)
    words = {"edited": "agent, edited since", "unrecorded": "not recorded yet", "ignored": "a link"}
    counted = ", ".join(f"{count:,} {words.get(state, state)}" for state, count in counts.most_common())
    ledger = "edits made here update the ledger" if value.approved else "the ledger is only read"
    return f"{counted or 'no note is covered'}; {ledger}"
