"""The rules of the layout (CONTRIBUTING.md), one test each, and a few promises beside them.

Rule 4 for commands is in tests/cli/test_commands.py, rule 8 for complexity is ruff's C901, rule 11 is in
tests/test_start_imports.py.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.tools import shape

PACKAGE = shape.Package(ROOT)
MODULES = PACKAGE.paths


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_left_parsed() -> Iterator[None]:
    """A million nodes would be looked through by each collection of garbage in the tests after these."""
    yield
    PACKAGE.forget()


def trees() -> dict[Path, ast.Module]:
    """The syntax tree of each module."""
    return {path: PACKAGE.trees[PACKAGE.name(path)] for path in MODULES}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("rule", shape.RULES)
def test_what_breaks_a_rule_is_listed_and_the_list_shrinks(rule: str) -> None:
    """A new exception fails; so does one that is gone, until `python tests/tools/shape.py --shrink` takes it out."""
    found, listed = shape.RULES[rule](PACKAGE), shape.exceptions().get(rule, {})
    assert sorted(found - set(listed)) == [], "new"
    assert sorted(set(listed) - found) == [], "gone"
    assert all(len(reason.split()) >= 3 for reason in listed.values())


def test_exceptions_are_those_of_rules() -> None:
    assert set(shape.exceptions()) <= set(shape.RULES)


HANDING_ON = """
import threading
from typing import Protocol

class Speaks(Protocol):
    def speak(self, word): ...
    def rest(self): ...

class Voice:
    def speak(self, word): return word
    def rest(self): return 1

class Speaker:
    def __init__(self, voice: Voice):
        self._voice = voice
    def speak(self, word): return self._voice.speak(word)
    def rest(self): return self._voice.rest()

class Announcer:
    def __init__(self, voice: Voice):
        self._voice, self._event = voice, None
        self._event = threading.Event()
        self._part = Voice()
    def say_it(self, word): return self._part.speak(word)
    def say_loud(self, word): return self._part.speak(word.upper())
    def clear(self): self._event.clear()
    @property
    def resting(self): return self._part.rest()
"""


def test_handing_on_is_told_from_work_and_from_standing_for_a_part(tmp_path: Path) -> None:
    """Only a call to a part of ours with the arguments as they came is found, and not in a protocol's fulfilment."""
    (tmp_path / "memory_tui").mkdir()
    (tmp_path / "memory_tui" / "voices.py").write_text(HANDING_ON)
    found = shape.RULES["6 method that only hands on"](shape.Package(tmp_path))
    assert found == {"memory_tui.voices.Announcer.say_it"}


STOPPING = """
import threading

def job():
    stop, seen = threading.Event(), threading.Event()
    seen.wait()
"""


@pytest.mark.parametrize(("code", "stops"), [(STOPPING, True), (STOPPING.replace("stop, seen", "armed, seen"), False)])
def test_an_event_that_announces_something_is_no_stop(tmp_path: Path, code: str, stops: bool) -> None:
    (tmp_path / "memory_tui").mkdir()
    (tmp_path / "memory_tui" / "jobs.py").write_text(code)
    assert bool(shape.RULES["10 stop of its own"](shape.Package(tmp_path))) == stops


NAMED = """
from threading import Event as Look
Tell = str
KEPT = 1

class Voice:
    def speak(self):
        def again(): ...
        kept = again
        return kept
"""


def test_a_forbidden_name_is_found_in_functions_and_aliases(tmp_path: Path) -> None:
    (tmp_path / "memory_tui").mkdir()
    (tmp_path / "memory_tui" / "voices.py").write_text(NAMED)
    found = shape.RULES["12 forbidden name"](shape.Package(tmp_path))
    assert found == {f"memory_tui.voices.{name}" for name in ("Look", "Tell", "again")}


def test_every_function_says_what_it_returns() -> None:
    missing = [
        f"{name(path)}:{node.lineno}"
        for path, tree in trees().items()
        for node in functions(tree)
        if node.returns is None
    ]
    assert missing == []


def test_every_module_says_what_it_is_for() -> None:
    assert [name(path) for path, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_public_things_have_docstrings() -> None:
    missing = []
    for path, tree in trees().items():
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node):
                missing.append(f"{name(path)}: {node.name}")
    assert missing == []


def test_no_reason_is_swallowed() -> None:
    """No bare except, and no handler that only passes."""
    found = [
        f"{name(path)}:{node.lineno}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or [type(line) for line in node.body] == [ast.Pass])
    ]
    assert found == []


# A database of SQLite is its own durability: what stands in these is not written by core/atomic.
SQL = {
    "memory_tui/index",
    "memory_tui/openclaw/host_index.py",
    "memory_tui/openclaw/agent_sessions.py",
    "memory_tui/openclaw/own_rows.py",
    "memory_tui/openclaw/dreaming.py",
    "memory_tui/openclaw/trust.py",
    "memory_tui/qmd/index.py",
    "memory_tui/core/state_db.py",
    "memory_tui/demo/demo.py",
}


def test_sql_stands_where_databases_are_kept() -> None:
    verbs = r"\s*(SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE (VIRTUAL )?TABLE) "
    statement = re.compile(verbs, re.DOTALL)
    found = [
        f"{name(path)}:{node.lineno}"
        for path, tree in trees().items()
        if not SQL & {name(path), name(path.parent)}
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and statement.match(node.value)
    ]
    assert found == []


def test_imports_go_one_way() -> None:
    """Rule 9, by import-linter; imports for types count."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_every_package_has_its_layer() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    assert "exclude_type_checking_imports" not in linter
    [layout] = [contract for contract in linter["contracts"] if contract["type"] == "layers"]
    layered = set(re.findall(r"memory_tui\.(\w+)", " ".join(layout["layers"])))
    folder = {path.relative_to(ROOT / "memory_tui").parts[0].removesuffix(".py") for path in MODULES}
    assert layered == folder - {"__init__", "__main__"}
    assert "ignore_imports" not in layout
    [screen] = [contract for contract in linter["contracts"] if "textual" in contract.get("forbidden_modules", ())]
    assert {source.removeprefix("memory_tui.") for source in screen["source_modules"]} == layered - {"tui"}


STARTS = re.compile(r"\b(Thread|run_in_executor|to_thread|ThreadPoolExecutor)\(|\bthread=True\b")


def test_threads_of_the_screen_start_in_one_place_and_touch_no_widget() -> None:
    """Jobs of worker threads are functions inside workers.py; of the app they use nothing but `post_message`."""
    screen = ROOT / "memory_tui" / "tui"
    threaded = {
        name(path) for path in MODULES if path.is_relative_to(screen) and STARTS.search(path.read_text("utf-8"))
    }
    assert threaded == {"memory_tui/tui/workers.py"}
    jobs = [node for node in functions(trees()[screen / "workers.py"]) if node.name == "job"]
    assert len(jobs) >= 5
    used = {
        ast.unparse(node)
        for job in jobs
        for node in ast.walk(job)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self._app"
    }
    assert used == {"self._app.post_message"}


def test_every_package_lists_its_modules_and_imports_nothing() -> None:
    """Rule 2: a line for each module with the first sentence of its docstring, then its entry point."""
    for path, tree in trees().items():
        if path.name != "__init__.py" or path.parent.name in ("memory_tui", "manual"):
            continue
        table = re.sub(r"\n  (?=\S)", " ", ast.get_docstring(tree) or "")
        rows = re.findall(r"^- (\w+): (.+?)(?: -> (\w+))?$", table, re.MULTILINE)
        folder = {
            item.stem for item in path.parent.iterdir() if item.suffix == ".py" or (item / "__init__.py").is_file()
        }
        assert {module for module, _, _ in rows} == folder - {"__init__"}, name(path)
        assert len(tree.body) == 1 or path.parent.name == "engine", name(path)
        for module, sentence, entry in rows:
            listed = PACKAGE.trees[f"{PACKAGE.name(path)}.{module}"]
            assert sentence == shape.first_sentence(listed), f"{name(path)}: {module}"
            defined = {getattr(node, "name", "") for node in listed.body} | {
                ast.unparse(target)
                for node in listed.body
                if isinstance(node, ast.Assign | ast.AnnAssign)
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            }
            assert entry in defined or (path.parent / module).is_dir(), f"{name(path)}: {module} -> {entry}"


ROW = re.compile(r"memory_tui(\.\w+)+:\w+")


def test_every_row_of_a_table_names_something_that_is_there() -> None:
    """Rule 4: a row is `module:object`, imported on use."""
    rows = {
        node.value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ROW.fullmatch(node.value)
    }
    for row in rows:
        module, _, entry = row.partition(":")
        assert hasattr(importlib.import_module(module), entry), row


def test_no_list_is_spelt_in_more_places_than_it_must() -> None:
    """Each list stands in its table. The knobs stand in the score too: there each means something else."""
    places = {kind: len(found) for kind, found in shape.spelt(PACKAGE).items()}
    assert {kind: count for kind, count in places.items() if count > SPELT[kind]} == {}


SPELT = {"providers": 1, "knobs": 2, "inbox kinds": 1, "overlay views": 1}


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
    "memory_tui/engine/past_questions.py": "an index in a temporary folder, which goes with it",
    "memory_tui/doctor/checks_machine.py": "a probe in a temporary folder, to be seen by the watcher",
    "memory_tui/providers/batch.py": "a file without a name, for an answer that is read at once",
    "memory_tui/providers/wires/model_process.py": "a file without a name, for what a model says while it loads",
    "memory_tui/providers/wires/llama_worker.py": "the pipe to the process that asked",
    "memory_tui/providers/wires/onnx_worker.py": "the pipe to the process that asked",
    "memory_tui/hosts/proof.py": "a file without a name, for what a server says that does not start",
    "memory_tui/mcp/keeper_socket.py": "the socket of the keeper, which goes with it",
    "memory_tui/cli/main.py": "the null device, for what nobody reads any more",
    "memory_tui/mcp/wire.py": "the pipe to the client that started the server",
    "memory_tui/index/database.py": "a private copy of an index on a disk that takes nothing, gone after the look",
    "memory_tui/openclaw/open_foreign.py": "a private copy of another program's database, gone after the look",
    "memory_tui/index/index_file.py": "the private folder below the temporary one, for an index without a place",
    "memory_tui/tui/colours.py": "the terminal, which is asked what its ground is",
    "memory_tui/tui/signals.py": "the terminal, which is given back on the way out",
}


def test_every_durable_write_is_in_one_room() -> None:
    """Bytes that are kept go to the disk by memory_tui.core.atomic alone, so that each fault of a disk can be tried."""
    found: dict[str, list[str]] = {}
    for path, tree in trees().items():
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
