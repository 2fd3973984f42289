"""Every command that writes, under faults of the disk and killed at its calls: true words, and a sound next start.

The commands run in forks of one process, each with a disk that fails at one call (support/faults.py).
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from memory_tui.recalls import recall_log, recalled_lines
from tests.support.curate import hidden
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")

RUNNER = """
import json, os, sys, traceback
sys.path.insert(0, sys.argv[1])
from tests.support.faults import Counting, Failing
from memory_tui.cli import main as cli
from memory_tui import durable
import gc, importlib, pkgutil, memory_tui, rapidfuzz.distance, rapidfuzz.fuzz, rapidfuzz.process, tokenizers
for module in pkgutil.walk_packages(memory_tui.__path__, "memory_tui."):
    if not module.name.startswith(("memory_tui.tui", "memory_tui.__main__", "memory_tui.cli.serve")):
        importlib.import_module(module.name)
gc.freeze()

for line in sys.stdin:
    words, home, fault, at, out = json.loads(line)
    child = os.fork()
    if child == 0:
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "TMPDIR"):
            os.environ[name] = home
        os.chdir(home)
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdin = open(0, closefd=False)
        durable.calls = Failing(fault, at) if fault else Counting()
        code = 99
        try:
            code = cli.main(words)
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(file, b"\\nCALLS %d\\n" % len(durable.calls.made))
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

NOTES = {
    "MEMORY.md": b"# Memory\n\n## Home\n- one\n- two\n",
    "memory/2026-01-10.md": b"# 2026-01-10\n\n- a vlan is 7\n- b\n",
    "memory/hall.md": b"# Hall\n\n"
    + 2
    * (
        b"- the printer upstairs in the hall needs black toner cartridges number 44, "
        b"bought from Ola's shop beside the harbour, never from the website, whose boxes leak\n- x\n"
    ),
    "memory/2026-01-20.md": b"# 2026-01-20\n\n- 09:00 morning\n",
}
TIME = re.compile(r"\d{9,}\.\d+")
BESIDE = (".lock", "-wal", "-shm", ".keeper", ".seal")
"""Files beside others that are no part of what is written."""
_LEAST = 4
"""A call in so many fails in CI; of a command with many calls fewer, because each costs three commands."""
FAULTS = ("killed", "killed half-way", "full", "full half-way", "broken")


class Ran(NamedTuple):
    """How a command ended, what it printed, and how many calls it made."""

    code: int
    said: str
    calls: int


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def runner() -> Iterator[Run]:
    command = [sys.executable, "-c", RUNNER, str(ROOT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(stage: Path, words: list[str], fault: str = "", at: int = 0) -> Ran:
            out = stage / "said"
            usual = ["--workspace", str(stage / "notes"), "--now", "2026-01-20T12:30:00Z"]
            if "--config" not in words:
                usual += ["--provider", "none"]
            process.stdin.write(json.dumps([[*usual, *words], str(stage / "home"), fault, at, str(out)]) + "\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            text = out.read_text()
            found = re.search(r"\nCALLS (\d+)\n", text)
            return Ran(code, text, int(found[1]) if found else 0)

        yield run


class Command(NamedTuple):
    """Words of a command, those before it that prepare, and the folders below the stage that it writes.

    `prepare` makes more files in the stage.
    """

    words: list[str]
    before: tuple[list[str], ...] = ()
    writes: tuple[str, ...] = ("notes",)
    prepare: Callable[[Path], None] = lambda _: None


def with_recalls(stage: Path) -> None:
    """An agent has asked something."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(stage / "home"))
        recall_log.append_recall(
            recall_log.recall_log_path(stage / "notes"), recall_log.RecallEntry("memory_search", "vlan", 1.0)
        )
        recall_log.append_line(recalled_lines.marks_path(stage / "notes"), b"{}\n", 1000)


REMEMBER = ["remember", "the vlan of the printer is forty two", "--yes"]
CONFIG = ["config", "--write", "--config", "CONFIG", "--set", "query.minScore=0.25", "--yes"]
HOOK = ["hook", "session-memory", "--transcript", "SESSION", "--session", "abc"]
FLUSH = ["openclaw", "flush", "--session", "main", "--done"]
INDEX = ["index", "--index", "INDEX"]
AGREE = ["provider", "--config", "ASKING", "--yes", "--approve"]
COMMANDS = {
    "remember": Command(REMEMBER),
    "promote": Command(["promote", "memory/2026-01-10.md:3", "--move", "--yes"]),
    "archive": Command(["archive", "--older-than", "3", "--yes"]),
    "undo": Command(["undo", "--yes"], (REMEMBER,)),
    "redo": Command(["undo", "--redo", "--yes"], (REMEMBER, ["undo", "--yes"])),
    "config --write": Command(CONFIG, (), ("config",)),
    "config --undo": Command(["config", "--config", "CONFIG", "--undo"], (CONFIG,), ("config",)),
    "hook": Command(HOOK),
    "inbox --do merge": Command(["inbox", "--id", "SUGGESTION", "--do", "merge", "--yes"]),
    "inbox --do keep": Command(["inbox", "--id", "SUGGESTION", "--do", "keep"], (), ("home/memory-tui/state.sqlite",)),
    "flush": Command(FLUSH, (), ("home/memory-tui/state.sqlite",)),
    "index": Command(INDEX, (), ("index",)),
    "recall-log --clear": Command(["recall-log", "--clear"], (), ("home/memory-tui/recall",), with_recalls),
    "provider --approve": Command(AGREE, (), ("home/memory-tui/consent",)),
    "provider --revoke": Command([*AGREE[:-1], "--revoke"], (AGREE,), ("home/memory-tui/consent",)),
}


def stage_of(folder: Path, run: Run, command: Command) -> Path:
    (folder / "notes" / "memory").mkdir(parents=True)
    (folder / "home").mkdir()
    (folder / "config").mkdir()
    (folder / "index").mkdir()
    (folder / "config" / "openclaw.json").write_text('{"agents": {"defaults": {}}}')
    asking = {"provider": "openai", "remote": {"apiKey": "a-key", "baseUrl": "https://vectors.invalid/v1"}}
    (folder / "asking.json").write_text(json.dumps({"agents": {"defaults": {"memorySearch": asking}}}))
    said = [{"type": "message", "message": {"role": role, "content": "hello"}} for role in ("user", "assistant")]
    (folder / "session.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    for path, data in NOTES.items():
        (folder / "notes" / path).write_bytes(data)
    command.prepare(folder)
    for words in command.before:
        assert run(folder, named(folder, words)).code == 0, (folder / "said").read_text()
    return folder


def named(stage: Path, words: list[str]) -> list[str]:
    places = {
        "CONFIG": "config/openclaw.json",
        "SESSION": "session.jsonl",
        "INDEX": "index/index.sqlite",
        "ASKING": "asking.json",
    }
    return [str(stage / places[word]) if word in places else word for word in words]


def state(stage: Path, command: Command) -> dict[str, str]:
    """The files that the command is to write, by name; of a database its rows, and one without any is no file."""
    found = {}
    for path in sorted(stage.rglob("*")):
        name = str(path.relative_to(stage))
        if not name.startswith(command.writes) or not path.is_file() or path.name.startswith("."):
            continue
        if path.suffix == ".sqlite":
            found.update({name: rows} if (rows := rows_of(path)) else {})
        elif not path.name.endswith(BESIDE):
            found[name] = TIME.sub("TIME", path.read_text())
    return found


def rows_of(path: Path) -> str:
    """Path and hash of every note in an index, else every row, read from a copy: to look at it mends nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for side in path.parent.glob(f"{path.name}*"):
            shutil.copy(side, folder)
        with contextlib.closing(sqlite3.connect(Path(folder) / path.name)) as opened:
            tables = [name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            wanted = ["SELECT path, hash FROM files"] if "files" in tables else [f"SELECT * FROM {t}" for t in tables]
            rows = [row for query in wanted for row in opened.execute(f"{query} ORDER BY 1")]
            return TIME.sub("TIME", repr(rows)) if rows else ""


def sweep(tmp_path: Path, run: Run, name: str, faults: tuple[str, ...], most: int | None = None) -> None:
    """Run the command with each of its calls failing, or `most` of them evenly spread, by turns as `faults` say."""
    command = COMMANDS[name]
    # The journal of a workspace is found by its path, so that every copy has to stand in the same place.
    here, kept = stage_of(tmp_path / "stage", run, command), tmp_path / "kept"
    old = state(here, command)
    shutil.copytree(here, kept)
    words = named(here, command.words)
    if "SUGGESTION" in words:
        found = json.loads(run(here, ["inbox", "--json"]).said.partition("\nCALLS")[0])
        words = [
            next(one["id"] for one in found if "merge" in one["actions"]) if w == "SUGGESTION" else w for w in words
        ]
        shutil.rmtree(here)
        shutil.copytree(kept, here)
    whole = run(here, words)
    assert whole.code == 0, whole.said
    new = state(here, command)
    assert new != old, whole.said
    every = 1 if most is None else max(_LEAST, -(-whole.calls // most))
    for at in range(list(COMMANDS).index(name) % every, whole.calls, every):
        fault = faults[at // every % len(faults)]
        shutil.rmtree(here)
        shutil.copytree(kept, here)
        done = run(here, words, fault, at)
        assert "Traceback" not in done.said, done.said
        assert done.code in (0, 1, -signal.SIGKILL), done.said
        now = state(here, command)
        if done.code == 0 and "for now" in done.said:
            # The index could not be made in its place, and is in a temporary one.
            assert now == old, (at, done.said)
        elif done.code == 0:
            assert now == new, at
        elif "could not be noted" in done.said:
            assert now == new, (at, done.said)
        elif done.code > 0 and not any(words in done.said for words in ("next start", "half-made index")):
            assert now == old, (at, done.said)
        # The next start settles what was left, and nobody has to wait for a lock.
        healing = run(here, ["journal"])
        assert healing.code == 0, healing.said
        assert "cut off, and not settled" not in healing.said
        now = state(here, command)
        assert now in (old, new), (at, done.said)
        assert hidden(here / "notes") == []
        if now != new:
            again = run(here, words)
            assert again.code == 0, (at, again.said)
            assert state(here, command) == new


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_under_faults(tmp_path: Path, runner: Run, name: str) -> None:
    sweep(tmp_path, runner, name, FAULTS, 2 * len(FAULTS))


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_under_a_fault_of_each_call(tmp_path: Path, runner: Run, name: str, fault: str) -> None:
    sweep(tmp_path, runner, name, (fault,))


def test_the_journal_is_read_on_a_disk_that_takes_nothing(tmp_path: Path, runner: Run) -> None:
    stage = stage_of(tmp_path / "stage", runner, COMMANDS["remember"])
    assert runner(stage, REMEMBER).code == 0
    calls = runner(stage, REMEMBER).calls
    # The last calls note that the change is whole, and let the lock go.
    assert runner(stage, REMEMBER, "killed", calls - 2).code == -signal.SIGKILL
    shown = runner(stage, ["journal"], "gone", 0)
    assert shown.code == 0, shown.said
    assert "(cut off)" in shown.said
    refused = runner(stage, REMEMBER, "gone", 0)
    assert refused.code == 1
    assert "Input/output error" in refused.said
    healed = runner(stage, ["journal"])
    assert "cut off and finished at the next start" in healed.said
