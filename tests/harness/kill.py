"""Kill a sync again and again, each time at another step, and look at what is left.

python tests/harness/kill.py FOLDER KILLS SEED

Each sync runs in a fork that sends itself SIGKILL at one of the named steps; the parent, which has no index open then,
looks at the files as the next start would. Prints one line a kill and exits with 1 when anything was wrong.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory_tui import cancel
from memory_tui.events import FileIndexed
from memory_tui.index import index_write, sync
from memory_tui.index import integrity as index_integrity
from memory_tui.index import rebuild as index_rebuild
from memory_tui.index.database import Database
from memory_tui.index.embedding import BATCH
from memory_tui.index.store import Store
from memory_tui.workspace import roots
from tests.support.index import Counting, Memory, integrity, text_of

NOTES = 14
WRITES = (
    "reset",
    "prepare_vec0",
    "prepare_full_text",
    "replace_files",
    "_drop_chunks",
    "_put_vec0",
    "add_embeddings",
    "attach",
    "prune",
    "remove_files",
    "touch_files",
    "fail_file",
    "remember",
)


class Hook:
    """Counts steps, and ends this process at step `at`; 0 never ends it."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.steps: list[str] = []
        self.asked: list[str] = []
        """Texts that the provider was asked for."""

    def step(self, name: str) -> None:
        self.steps.append(name)
        if len(self.steps) == self.at:
            print(f"{name}:{len(self.asked)}", end="", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, place: Any, name: str, *, after: bool = False) -> None:
        real = getattr(place, name)

        def hooked(*args: Any, **options: Any) -> Any:
            self.step(name)
            value = real(*args, **options)
            if after:
                self.step(f"after {name}")
            return value

        setattr(place, name, hooked)

    def everywhere(self) -> None:
        for name in WRITES:
            self.around(index_write, name)
        for name in ("_carry_vectors", "_succeed"):
            self.around(index_rebuild, name)
        self.around(sync, "cut")
        self.around(roots, "read")
        self.around(index_integrity, "problems")
        self.around(roots, "scan")
        for name in ("begin", "publish", "discard", "_copy"):
            self.around(index_rebuild, name, after=True)
        real = Database.query

        def query(store: Database, sql: str, values: Any = ()) -> Any:
            if sql == "COMMIT":
                self.step("before commit")
            rows = real(store, sql, values)
            if sql == "COMMIT":
                self.step("after commit")
            return rows

        Database.query = query  # type: ignore[method-assign]


class Noting(Counting):
    """Notes what it is asked for where the hook can tell it."""

    def __init__(self, hook: Hook) -> None:
        super().__init__()
        self._hook = hook

    def embed(self, texts: Any, kind: Any) -> Any:
        self._hook.asked += texts
        return super().embed(texts, kind)


class Stop(cancel.Stop):
    """Never stops; being asked is a step (one for each piece of a copy, too)."""

    def __init__(self, hook: Hook) -> None:
        super().__init__()
        self._hook = hook

    def is_set(self) -> bool:
        self._hook.step("asked to stop")
        return False


def first(memory: Memory) -> None:
    """Nothing is indexed yet."""


def edit(memory: Memory) -> None:
    """Notes were changed, added, deleted and touched."""
    memory.sync()
    for number in range(4):
        memory.write(f"memory/{number}.md", text_of(70, f"changed{number}"))
    memory.write("memory/new.md", text_of(30, "new"))
    (memory.folder / "memory/5.md").unlink()
    os.utime(memory.folder / "memory/6.md")


def rebuild(memory: Memory) -> None:
    """The chunks are to be cut otherwise."""
    memory.sync()
    recut(memory)


def resume(memory: Memory) -> None:
    """A rebuild was begun, and stopped."""
    memory.sync()
    recut(memory)
    memory.sync(listener=lambda event: isinstance(event, FileIndexed) and memory.cancel.set())
    memory.cancel.clear()


def force(memory: Memory) -> None:
    """The same again, by force."""
    memory.sync()


def recut(memory: Memory) -> None:
    memory.settings = memory.settings.set("chunking.tokens", 90, "kill").set("chunking.overlap", 10, "kill")


SCENARIOS: tuple[Callable[[Memory], None], ...] = (first, edit, rebuild, resume, force)


def prepared(folder: Path, scenario: Callable[[Memory], None]) -> None:
    memory = opened(folder)
    for number in range(NOTES):
        memory.write(f"memory/{number}.md", text_of(60, f"n{number}"))
    memory.write("MEMORY.md", "a" * 4800)
    scenario(memory)
    memory.store.close()


def opened(folder: Path) -> Memory:
    memory = Memory(folder / "notes", folder / "i" / "memory.sqlite")
    index_rebuild._PAGES = 8
    return memory


def notes(folder: Path) -> str:
    every = sorted((folder / "notes").rglob("*.md"))
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in every)).hexdigest()


def work(folder: Path, scenario: Callable[[Memory], None], at: int) -> Hook:
    """The sync that is killed at step `at`."""
    memory = opened(folder)
    if scenario in (rebuild, resume):
        recut(memory)
    hook = Hook(at)
    hook.everywhere()
    memory.provider = Noting(hook)
    hook.around(memory.provider, "embed", after=True)
    memory.cancel = Stop(hook)  # type: ignore[assignment]
    memory.sync(force=scenario is force, listener=lambda event: None)
    hook.step("before close")
    memory.store.close()
    hook.step("after close")
    return hook


def in_fork(job: Callable[[], Any]) -> tuple[int, str]:
    """How a fork ended that ran `job`, and what it printed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(writing, 1)
        try:
            job()
        finally:
            os._exit(3)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitpid(child, 0)[1], said


def state(store: Store) -> dict[str, tuple[str, int]]:
    return {path: (row.hash, row.chunks) for path, row in store.indexed().items()}


def verdict(
    folder: Path, scenario: Callable[[Memory], None], old: dict[str, tuple[str, int]], new: dict[str, tuple[str, int]]
) -> list[str]:
    """What is wrong after a kill; runs in a fork of its own, so that no connection is carried over."""
    memory = opened(folder)
    if scenario in (rebuild, resume):
        recut(memory)
    wrong = list(memory.notices) + index_integrity.problems(memory.store) + integrity(memory.store)
    seen = state(memory.store)
    if scenario in (rebuild, resume, force) and seen not in (old, new):
        wrong.append("a mixture of old and new")
    if any(seen[path] not in (old.get(path), new.get(path)) for path in seen):
        wrong.append("a note that is neither old nor new")
    report = memory.sync(force=False)
    print(report.embedded, flush=True)
    wrong += [
        f"not found again: {path}"
        for path in new
        if state(memory.store).get(path) != new[path] and scenario is not force
    ]
    wrong += index_integrity.problems(memory.store) + integrity(memory.store)
    if memory.sync().changed:
        wrong.append("a second sync found something to do")
    memory.store.close()
    wrong += [f"left behind: {path.name}" for path in (folder / "i").glob("*.next*")]
    return wrong


class Scenario:
    """One of SCENARIOS in a folder of its own: its steps, what it embeds, what is indexed before and after."""

    def __init__(self, place: Path, prepare: Callable[[Memory], None]) -> None:
        self.prepare = prepare
        self.name = prepare.__name__
        self.template = place / self.name
        in_fork(lambda: prepared(self.template, prepare))
        self.before = read(self.template)
        trial = place / "trial"
        shutil.copytree(self.template, trial)
        steps, _, needed = in_fork(lambda: show(work(trial, prepare, 0)))[1].partition(":")
        self.steps, self.needed, self.after = int(steps), int(needed), read(trial)
        shutil.rmtree(trial)

    def kill(self, folder: Path, at: int) -> tuple[str, list[str]]:
        """The step at which a sync of a copy in `folder` was killed, and what was wrong then."""
        shutil.copytree(self.template, folder)
        untouched = notes(folder)
        status, last = in_fork(lambda: work(folder, self.prepare, at))
        step, _, asked = last.partition(":")
        wrong = [] if os.WIFSIGNALED(status) else [f"it was not killed ({status})"]
        _, said = in_fork(
            lambda: print("\n".join(verdict(folder, self.prepare, self.before, self.after)) or "fine", flush=True)
        )
        again, *lines = said.splitlines() or ["0", "the next start failed"]
        wrong += [line for line in lines if line != "fine"]
        if int(asked or 0) + int(again) > self.needed + BATCH:
            wrong.append(f"{asked} and {again} texts were embedded, {self.needed} would do")
        wrong += [] if notes(folder) == untouched else ["a note was changed"]
        shutil.rmtree(folder)
        return step, wrong


def main() -> int:
    place, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng, bad = random.Random(seed), 0
    scenarios = [Scenario(place, prepare) for prepare in SCENARIOS]
    for number in range(kills):
        scenario = scenarios[number % len(scenarios)]
        at = 1 + rng.randrange(scenario.steps)
        step, wrong = scenario.kill(place / f"kill-{number}", at)
        bad += bool(wrong)
        print(f"{scenario.name:8} step {at:4} of {scenario.steps:4} {step:20} {'; '.join(wrong) or 'fine'}", flush=True)
    print(f"{kills} kills, {bad} bad")
    return 1 if bad else 0


def show(hook: Hook) -> None:
    print(f"{len(hook.steps)}:{len(hook.asked)}", end="", flush=True)


def read(folder: Path) -> dict[str, tuple[str, int]]:
    """What is indexed, read in a fork."""
    _, said = in_fork(lambda: print(repr(state(Store.open(folder / "i" / "memory.sqlite"))), end="", flush=True))
    found: dict[str, tuple[str, int]] = eval(said)
    return found


if __name__ == "__main__":
    sys.exit(main())
