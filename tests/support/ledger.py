"""OpenClaw's trust ledger as 2026.9.6 makes it, and its agent's writes by the documented rule."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.index import run_sql

PLUGIN, NAMESPACE = "core:memory-artifact-provenance", "workspace-files"
SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE plugin_state_entries (plugin_id TEXT NOT NULL, namespace TEXT NOT NULL, entry_key TEXT NOT NULL,
    value_json TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER,
    PRIMARY KEY (plugin_id, namespace, entry_key)) STRICT;
CREATE TABLE other(id INTEGER PRIMARY KEY) STRICT;
INSERT INTO other VALUES (1);
PRAGMA user_version = 18;
"""


def sha(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


@dataclass
class HostLedger:
    """The ledger in `database` of the notes in `workspace`."""

    database: Path
    workspace: Path

    @classmethod
    def make(cls, state_folder: Path, workspace: Path) -> HostLedger:
        database = state_folder / "state" / "openclaw.sqlite"
        database.parent.mkdir(parents=True)
        ledger = cls(database, workspace)
        ledger.run(SCHEMA)
        return ledger

    def key(self, path: str) -> str:
        return f"{sha(os.path.realpath(self.workspace))}:{sha(path)}"

    def row(self, path: str) -> dict[str, Any] | None:
        found = self.run("SELECT value_json FROM plugin_state_entries WHERE entry_key = ?", self.key(path))
        return dict(json.loads(str(found[0][0]))) if found else None

    def recalled(self, number: int, event: dict[str, Any] | str) -> None:
        """Write down a recall, as memory-core does: its journal stands in the same table."""
        value = {"kind": "event", "event": event, "recordedAt": 0, "sequence": number}
        text = event if isinstance(event, str) else json.dumps(value, separators=(",", ":"))
        key = f"{sha(os.path.realpath(self.workspace))[:24]}:event:1:{number:016}"
        row = ("memory-core", "memory-host.events", key, text)
        self.run("INSERT INTO plugin_state_entries VALUES (?, ?, ?, ?, 0, NULL)", *row)

    def put(self, path: str, value: dict[str, Any] | str) -> None:
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        sql = "INSERT OR REPLACE INTO plugin_state_entries VALUES (?, ?, ?, ?, 1, NULL)"
        self.run(sql, PLUGIN, NAMESPACE, self.key(path), text)

    def agent_writes(self, path: str, after: bytes, at: float = 1_795_000_000.0) -> str:
        """The agent writes `after`; returns the class that the file has then, by the documented rule."""
        file, row = self.workspace / path, self.row(path)
        before = file.read_bytes() if file.exists() else b""
        known = row is None or (row["originClass"] == "agent" and row["fileHash"] == sha(before))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(after)
        origin = "agent" if known else "untrusted"
        who = {"sessionId": "s1", "sessionKey": "agent:main:main", "reservationId": str(uuid.uuid4())}
        what = {"relativePath": path, "fileHash": sha(after), "originClass": origin, "observedAt": int(at * 1000)}
        self.put(path, {"version": 1, "workspaceKey": self.key(path).partition(":")[0], **what, **who})
        return origin

    def run(self, sql: str, *bindings: Any) -> list[Any]:
        return run_sql(self.database, sql, *bindings)
