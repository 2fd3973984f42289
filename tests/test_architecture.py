"""The promises that the code's shape keeps: size budgets, types, one direction of imports, and no swallowed reasons."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

MODULES = sorted((ROOT / "memory_tui").rglob("*.py"))
TREES = {path: ast.parse(path.read_text("utf-8")) for path in MODULES}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_module_is_longer_than_one_concept_needs() -> None:
    lines = {name(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {path: count for path, count in lines.items() if count > 600} == {}


def test_functions_stay_short() -> None:
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for tree in TREES.values() for node in functions(tree))
    assert lengths[int(len(lengths) * 0.9)] <= 30


def test_every_function_says_what_it_returns() -> None:
    missing = [
        f"{name(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in functions(tree)
        if node.returns is None
    ]
    assert missing == []


def test_every_module_says_what_it_is_for() -> None:
    assert [name(path) for path, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_public_things_have_docstrings() -> None:
    missing = []
    for path, tree in TREES.items():
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node):
                missing.append(f"{name(path)}: {node.name}")
    assert missing == []


def test_no_reason_is_swallowed() -> None:
    """No bare except, and no handler that only passes."""
    found = [
        f"{name(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or [type(line) for line in node.body] == [ast.Pass])
    ]
    assert found == []


# A database of SQLite is its own durability: what stands in these is not written by core/atomic.
SQL = {"memory_tui/index", "memory_tui/openclaw/host_index.py", "memory_tui/core/state_db.py"}


def test_sql_stands_where_databases_are_kept() -> None:
    verbs = r"\s*(SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE (VIRTUAL )?TABLE) "
    statement = re.compile(verbs, re.DOTALL)
    found = [
        f"{name(path)}:{node.lineno}"
        for path, tree in TREES.items()
        if not SQL & {name(path), name(path.parent)}
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and statement.match(node.value)
    ]
    assert found == []


def test_imports_go_one_way() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


STARTS = re.compile(r"\b(Thread|run_in_executor|to_thread|ThreadPoolExecutor)\(|\bthread=True\b")


def test_threads_of_the_screen_start_in_one_place_and_touch_no_widget() -> None:
    """Jobs of worker threads are functions inside workers.py; of the app they use nothing but `post_message`."""
    screen = ROOT / "memory_tui" / "tui"
    threaded = {
        name(path) for path in MODULES if path.is_relative_to(screen) and STARTS.search(path.read_text("utf-8"))
    }
    assert threaded == {"memory_tui/tui/workers.py"}
    jobs = [node for node in functions(TREES[screen / "workers.py"]) if node.name == "job"]
    assert len(jobs) >= 5
    used = {
        ast.unparse(node)
        for job in jobs
        for node in ast.walk(job)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self._app"
    }
    assert used == {"self._app.post_message"}


def test_every_package_lists_its_modules_and_imports_nothing() -> None:
    for path, tree in TREES.items():
        if path.name != "__init__.py" or path.parent.name in ("memory_tui", "manual"):
            continue
        listed = set(re.findall(r"^- (\w+):", ast.get_docstring(tree) or "", re.MULTILINE))
        folder = {
            item.stem for item in path.parent.iterdir() if item.suffix == ".py" or (item / "__init__.py").is_file()
        }
        assert listed == folder - {"__init__"}, name(path)
        assert len(tree.body) == 1 or path.parent.name == "engine", name(path)


def files_of_the_project() -> list[Path]:
    """What git tracks; in an archive, or where git does not trust the folder, everything that belongs to a checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0:
        return [ROOT / os.fsdecode(path) for path in listed.stdout.split(b"\0") if path]
    return [
        *(path for path in ROOT.iterdir() if path.is_file()),
        *(path for folder in ("memory_tui", "tests", "screenshots", ".ci") for path in (ROOT / folder).rglob("*")),
    ]


def test_no_path_of_a_developers_machine_is_in_the_project() -> None:
    machine = re.compile(r"(?<![\w.])/(root|home/\w+|Users/\w+)/")
    texts = [
        path
        for path in files_of_the_project()
        if path.name.endswith((".py", ".md", ".toml", ".tcss", ".txt", ".svg", "run"))
    ]
    assert len(texts) > len(MODULES)
    found = [name(path) for path in texts if path.is_file() and machine.search(path.read_text("utf-8", "replace"))]
    assert found == []


WRITING = {
    "os": {
        *("write", "pwrite", "writev", "fsync", "fdatasync", "posix_fallocate", "copy_file_range", "sendfile"),
        *("replace", "rename", "renames", "link", "symlink", "unlink", "remove", "rmdir", "mkdir", "makedirs"),
        *("truncate", "ftruncate", "fchmod"),
    },
    "shutil": {"copy", "copy2", "copyfile", "copyfileobj", "copytree", "move", "rmtree"},
    "tempfile": {"NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory", "mkstemp", "mkdtemp"},
}
OF_PATHS = {"write_text", "write_bytes", "unlink", "hardlink_to", "symlink_to", "touch", "rmdir", "mkdir"}
NOT_DURABLE = {
    "memory_tui/core/atomic.py": "the room itself",
    "memory_tui/curate/git.py": "objects and references of git, and a private folder without configuration",
    "memory_tui/demo/demo.py": "the demo's temporary folder, which goes with it",
    "memory_tui/doctor/checks_machine.py": "a probe in a temporary folder, to be seen by the watcher",
    "memory_tui/providers/batch.py": "a file without a name, for an answer that is read at once",
    "memory_tui/providers/wires/llama_process.py": "a file without a name, for what a model says while it loads",
    "memory_tui/providers/wires/llama_worker.py": "the pipe to the process that asked",
    "memory_tui/mcp/wire.py": "the pipe to the client that started the server",
    "memory_tui/index/database.py": "a private copy of an index on a disk that takes nothing, gone after the look",
    "memory_tui/openclaw/open_foreign.py": "a private copy of another program's database, gone after the look",
    "memory_tui/index/index_file.py": "the private folder below the temporary one, for an index without a place",
    "memory_tui/tui/signals.py": "the terminal, which is given back on the way out",
}


def test_every_durable_write_is_in_one_room() -> None:
    """Bytes that are kept go to the disk by memory_tui.core.atomic alone, so that each fault of a disk can be tried."""
    found: dict[str, list[str]] = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            words = ast.unparse(node.func)
            owner, _, called = words.rpartition(".")
            arguments = ast.unparse(node)
            writes = (
                called in WRITING.get(owner, ())
                or (called in OF_PATHS and owner not in ("atomic", "atomic.calls", "calls"))
                or (called == "open" and re.search(r"\bO_(WRONLY|RDWR|CREAT)\b", arguments) and owner == "os")
                or (called in ("open", "fdopen") and re.search(r"""['"][rbt]*[wax+][bt+]*['"]""", arguments))
            )
            if writes:
                found.setdefault(name(path), []).append(f"{node.lineno}: {words}")
    assert {path: calls for path, calls in found.items() if path not in NOT_DURABLE} == {}
    assert sorted(found) == sorted(NOT_DURABLE)
