"""QMD for tests: the real program from npm, a stand-in for it, and a workspace whose engines have it as backend.

The stand-in keeps the tables of QMD 2.8, answers as the real program was seen to answer, and does wrong when told to;
the tests marked `real_host` drive the real one.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memory_tui.backends import qmd
from memory_tui.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.events import Event
from memory_tui.plan import Options
from tests.support.npm import installed, node
from tests.support.workspace import put_all

VERSION = "2.8.3"


def program() -> str:
    """What `memory.qmd.command` names to run the real QMD. Skips the test, with the reason, where npm cannot."""
    folder = installed(f"qmd-{VERSION}", {"@tobilu/qmd": VERSION})
    return f"{node()} {folder / 'node_modules' / '@tobilu' / 'qmd' / 'dist' / 'cli' / 'qmd.js'}"


SCRIPT = r'''
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
control = json.loads((here / "control.json").read_text())
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\n")
words = sys.argv[1:]
if words == ["--version"]:
    print(control.get("version", "qmd 2.8.3 (facd35e)"))
    raise SystemExit(control.get("version_status", 0))
behave = control.get(words[0], {})
if behave.get("child"):
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (here / "child").write_text(str(child.pid))
if behave.get("hang"):
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (here / "hanging").write_text(str(os.getpid()))
    time.sleep(600)
if "print" in behave:
    sys.stdout.write(behave["print"] * behave.get("times", 1))
    sys.stdout.flush()
if "error" in behave:
    sys.stderr.write(behave["error"])
if behave.get("kill"):
    import signal
    os.kill(os.getpid(), signal.SIGKILL)
if "status" in behave or "print" in behave:
    raise SystemExit(behave.get("status", 0))
import hashlib, sqlite3
folder = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "qmd"
folder.mkdir(parents=True, exist_ok=True)
store = sqlite3.connect(folder / "index.sqlite")
store.executescript("""
CREATE TABLE IF NOT EXISTS store_collections (name TEXT PRIMARY KEY, path TEXT, pattern TEXT);
CREATE TABLE IF NOT EXISTS documents (id INTEGER PRIMARY KEY, collection TEXT, path TEXT, title TEXT, hash TEXT,
    created_at TEXT, modified_at TEXT, active INTEGER, UNIQUE(collection, path));
CREATE TABLE IF NOT EXISTS content_vectors (hash TEXT, seq INTEGER);
CREATE VIRTUAL TABLE IF NOT EXISTS documents_fts USING fts5(filepath, title, body, tokenize='porter unicode61');
""")
names = [words[i + 1] for i, word in enumerate(words) if word == "-c"]
if words[0] == "collection" and words[1] == "add":
    try:
        store.execute("INSERT INTO store_collections VALUES (?, ?, ?)", (words[4], words[2], words[6]))
    except sqlite3.IntegrityError:
        raise SystemExit(f"Collection '{words[4]}' already exists.")
elif words[0] == "collection" and words[1] == "remove":
    name = (words[2],)
    store.execute("DELETE FROM documents_fts WHERE rowid IN (SELECT id FROM documents WHERE collection = ?)", name)
    store.execute("DELETE FROM documents WHERE collection = ?", name)
    store.execute("DELETE FROM store_collections WHERE name = ?", name)
elif words[0] == "update":
    store.execute("DELETE FROM documents")
    store.execute("DELETE FROM documents_fts")
    for name, path, pattern in store.execute("SELECT * FROM store_collections").fetchall():
        root = pathlib.Path(path)
        for file in sorted(root.rglob("*.md") if "*" in pattern else root.glob(pattern)):
            text = file.read_text("utf-8", "replace")
            if text.strip():
                below = str(file.relative_to(root))
                cursor = store.execute(
                    "INSERT INTO documents VALUES (NULL, ?, ?, ?, ?, ?, ?, 1)",
                    (name, below, below, hashlib.sha256(text.encode()).hexdigest(), "2026", "2026"))
                store.execute("INSERT INTO documents_fts(rowid, filepath, title, body) VALUES (?, ?, ?, ?)",
                              (cursor.lastrowid, f"{name}/{below}", below, text))
elif words[0] == "embed":
    store.execute("INSERT INTO content_vectors SELECT hash, 0 FROM documents")
elif words[0] == "search":
    known = {row[0] for row in store.execute("SELECT name FROM store_collections")}
    for name in names:
        if name not in known:
            raise SystemExit(f"Collection not found: {name}")
    match = " AND ".join('"%s"*' % word for word in words[1].split() if word.isalnum())
    rows = []
    if match:
        for collection, path, body in store.execute(
            "SELECT d.collection, d.path, f.body FROM documents_fts f JOIN documents d ON d.id = f.rowid "
            "WHERE documents_fts MATCH ? ORDER BY rank", (match,)):
            if collection in names:
                lines = body.splitlines()
                at = next((i for i, line in enumerate(lines) if words[1].split()[0].lower() in line.lower()), 0)
                rows.append({"docid": "#abcdef", "score": 0, "file": f"qmd://{collection}/{path}", "line": at + 1,
                             "title": path, "snippet": f"@@ -{at + 1},1 @@ ({at} before, 0 after)\n{lines[at]}"})
    print(json.dumps(rows[: int(words[words.index("-n") + 1])]))
store.commit()
'''


class QmdStub:
    """The stub in `folder`, as an executable `qmd`; `calls` are the command lines so far."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.program = folder / "qmd"
        self.program.write_text(f"#!{sys.executable} -S\n{SCRIPT}")
        self.program.chmod(0o755)
        self.behave()

    def behave(self, **control: Any) -> None:
        """What each command does from now on instead of its work."""
        (self.folder / "control.json").write_text(json.dumps(control))

    @property
    def calls(self) -> list[list[str]]:
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


NOTES = {
    "MEMORY.md": "# Memory\n\n- Alice prefers dark roast\n- Router VLAN 41 is for guests\n",
    "memory/2026-11-01.md": "# Day\n\nRouter firmware updated\n",
    "memory/garden.md": "# Garden\n\nTomatoes need water\n",
}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder, self.workspace = folder, folder / "W"
        put_all(self.workspace, NOTES)
        self.stub = QmdStub(folder / "bin")
        self.events: list[Event] = []
        self.qmd_index = folder / "index.sqlite.qmd" / "xdg-cache" / "qmd" / "index.sqlite"

    def options(self, command: str = "", **settings: Any) -> Options:
        changes = {"qmd.command": command or str(self.stub.program), "qmd.limits.timeoutMs": 20_000, **settings}
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in changes.items()}
        place = {"workspace": str(self.workspace), "index": str(self.folder / "index.sqlite")}
        return Options(**place, provider="none", backend="qmd", changes=tuple(texts.items()))

    @contextmanager
    def engine(self, command: str = "", **settings: Any) -> Iterator[Engine]:
        with Engine.open(self.options(command, **settings), self.events.append) as engine:
            yield engine

    def updated(self, **settings: Any) -> None:
        with self.engine(**settings) as engine:
            qmd.update(engine.backend.client, Stop())
