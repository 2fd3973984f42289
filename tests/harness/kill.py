"""Kill a sync again and again, each time at another step, and look at what is left.

python tests/harness/kill.py FOLDER KILLS SEED

A step is a statement to the index, a name that changes on the disk, a call of the provider, a look at whether to stop.
Each sync runs in a fork that sends itself SIGKILL at one of them; the parent, which has no index open then, looks at
the files as the next start would. Prints one line a kill and exits with 1 when anything was wrong.
"""

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory_tui.cancel import Stop
from memory_tui.events import FileIndexed
from memory_tui.index.database import Database
from memory_tui.index.embedding import BATCH
from tests.support.index import Memory, integrity, text_of

NOTES = 14
State = dict[str, list[Any]]


def edited(memory: Memory) -> None:
    for number in range(4):
        memory.write(f"memory/{number}.md", text_of(70, f"changed{number}"))
    memory.write("memory/new.md", text_of(30, "new"))
    (memory.folder / "memory/5.md").unlink()
    os.utime(memory.folder / "memory/6.md")


def recut(memory: Memory) -> None:
    memory.settings = memory.settings.set("chunking.tokens", 90, "kill").set("chunking.overlap", 10, "kill")


def stopped(memory: Memory) -> None:
    recut(memory)
    memory.sync(listener=lambda event: isinstance(event, FileIndexed) and memory.cancel.set())
    memory.cancel.clear()


SCENARIOS: dict[str, tuple[Callable[[Memory], object], ...]] = {
    "first": (),
    "edit": (Memory.sync, edited),
    "rebuild": (Memory.sync,),
    "resume": (Memory.sync, stopped),
    "force": (Memory.sync,),
}
"""What happened to the notes and the index before the sync that is killed."""


def opened(folder: Path, name: str) -> Memory:
    memory = Memory(folder / "notes", folder / "i" / "memory.sqlite")
    if name in ("rebuild", "resume"):
        recut(memory)
    return memory


def prepared(folder: Path, name: str) -> None:
    memory = Memory(folder / "notes", folder / "i" / "memory.sqlite")
    for number in range(NOTES):
        memory.write(f"memory/{number}.md", text_of(60, f"n{number}"))
    memory.write("MEMORY.md", "a" * 4800)
    for step in SCENARIOS[name]:
        step(memory)
    memory.store.close()


def work(folder: Path, name: str, at: int) -> list[int]:
    """The sync that is killed at step `at`, or its number of steps and of texts that the provider was asked for."""
    memory = opened(folder, name)
    steps, provider = 0, memory.provider

    def stepping(place: Any, attribute: str) -> None:
        real = getattr(place, attribute)

        def counted(*args: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == at:
                print(json.dumps([len(provider.texts)]), end="", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        setattr(place, attribute, counted)

    for place, names in ((Database, ["query"]), (os, ["rename", "replace", "unlink"]), (Stop, ["is_set"])):
        for attribute in names:
            stepping(place, attribute)
    stepping(provider, "embed")
    memory.sync(force=name == "force", listener=lambda event: None)
    memory.store.close()
    return [steps, len(provider.texts)]


def in_fork(job: Callable[[], object]) -> tuple[int, Any]:
    """How a fork ended that ran `job`, and what it returned or printed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(writing, 1)
        try:
            print(json.dumps(job()), end="", flush=True)
        finally:
            os._exit(3)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitpid(child, 0)[1], json.loads(said) if said else None


def state(memory: Memory) -> State:
    return {path: [row.hash, row.chunks] for path, row in memory.store.indexed().items()}


def texts(folder: Path) -> list[tuple[str, bytes]]:
    return [(path.name, path.read_bytes()) for path in sorted((folder / "notes").rglob("*.md"))]


def verdict(folder: Path, name: str, old: State, new: State) -> tuple[int, list[str]]:
    """How many texts the next start embeds, and what is wrong after a kill."""
    memory = opened(folder, name)
    wrong = [*map(str, memory.notices), *memory.store.problems(), *integrity(memory.store)]
    seen = state(memory)
    if name in ("rebuild", "resume", "force") and seen not in (old, new):
        wrong.append("a mixture of old and new")
    wrong += [f"neither old nor new: {path}" for path in seen if seen[path] not in (old.get(path), new.get(path))]
    embedded = memory.sync().embedded
    if name != "force":
        wrong += [f"not found again: {path}" for path in new if state(memory).get(path) != new[path]]
    wrong += memory.store.problems() + integrity(memory.store)
    if memory.sync().changed:
        wrong.append("a second sync found something to do")
    memory.store.close()
    return embedded, wrong + [f"left behind: {path.name}" for path in (folder / "i").glob("*.next*")]


class Scenario:
    """One of SCENARIOS in a folder of its own: its steps, what it embeds, what is indexed before and after."""

    def __init__(self, place: Path, name: str) -> None:
        self.name, self.template, trial = name, place / name, place / "trial"
        in_fork(lambda: prepared(self.template, name))
        shutil.copytree(self.template, trial)
        self.steps, self.needed = in_fork(lambda: work(trial, name, 0))[1]
        self.before = in_fork(lambda: state(opened(self.template, name)))[1]
        self.after = in_fork(lambda: state(opened(trial, name)))[1]
        shutil.rmtree(trial)

    def kill(self, folder: Path, at: int) -> list[str]:
        """What was wrong after a sync of a copy in `folder` was killed at a step."""
        shutil.copytree(self.template, folder)
        before = texts(folder)
        status, asked = in_fork(lambda: work(folder, self.name, at))
        wrong = [] if os.WIFSIGNALED(status) else [f"it was not killed ({status})"]
        found = in_fork(lambda: verdict(folder, self.name, self.before, self.after))[1]
        again, more = found or (0, ["the next start failed"])
        if asked[0] + again > self.needed + BATCH:
            wrong.append(f"{asked[0]} and {again} texts were embedded, {self.needed} would do")
        wrong += more + ([] if texts(folder) == before else ["a note was changed"])
        shutil.rmtree(folder)
        return wrong


def main() -> int:
    place, kills, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    scenarios, bad = [Scenario(place, name) for name in SCENARIOS], 0
    for number in range(kills):
        scenario = scenarios[number % len(scenarios)]
        at = 1 + rng.randrange(scenario.steps)
        wrong = scenario.kill(place / f"kill-{number}", at)
        bad += bool(wrong)
        print(f"{scenario.name:8} step {at:4} of {scenario.steps:4} {'; '.join(wrong) or 'fine'}", flush=True)
    print(f"{kills} kills, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
