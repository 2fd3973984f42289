"""A stand-in for the program QMD: a process that keeps the tables of QMD 2.8 and does, when told, what goes wrong.

It follows what the real program was seen to do (names of tables, words of errors, exit statuses); the tests marked
`real_host` drive the real one.
"""

import json
import sys
from pathlib import Path
from typing import Any

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
