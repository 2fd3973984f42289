"""What the benches share: the cost of work here and in another process, probes of the machine, how a line looks."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import psutil

LARGE = 98_000
"""Chunks of a run that is `--large`."""
CHUNKS_A_NOTE = 3.9
"""Chunks that a note of 4,000 characters is cut into."""


class Cost(NamedTuple):
    """Milliseconds of CPU, and by the clock."""

    cpu: float
    wall: float

    def __str__(self) -> str:
        return f"{self.cpu:,.2f} ({self.wall:,.2f})" if self.cpu < 100 else f"{self.cpu:,.0f} ({self.wall:,.0f})"


def cost_of(run: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return Cost((time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000)


def share(found: list[Cost], part: float) -> Cost:
    """The cost that `part` of those that were `found` do not exceed."""
    at = min(int(len(found) * part), len(found) - 1)
    return Cost(sorted(cost.cpu for cost in found)[at], sorted(cost.wall for cost in found)[at])


def middle(run: Callable[[], object], times: int) -> Cost:
    return share([cost_of(run) for _ in range(times)], 0.5)


def cost_of_process(arguments: list[str]) -> Cost:
    """What a process costs from its start to its end."""
    wall, before = time.perf_counter(), os.times()
    done = subprocess.run(arguments, capture_output=True, check=False)
    after = os.times()
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr.decode()}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(cpu * 1000, (time.perf_counter() - wall) * 1000)


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def program(*arguments: str) -> list[str]:
    return python("-m", "memory_tui", *arguments)


class Watched:
    """Another process as it runs."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def cpu(self) -> float:
        """Milliseconds of CPU until now; the system counts in tens."""
        spent = self._process.cpu_times()
        return (spent.user + spent.system) * 1000

    def screen(self) -> float:
        """Milliseconds of CPU of its first thread, which is the screen's; 0 where the system does not tell."""
        path = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/schedstat")
        return int(path.read_text("ascii").split()[0]) / 1e6 if path.exists() else 0.0

    def settled(self, look: Callable[[], object] = lambda: None) -> float:
        """`cpu` when the process used none for four tenths of a second, or after a minute; `look` is called often."""
        last, still, end = self.cpu(), 0, time.monotonic() + 60
        while still < 4 and time.monotonic() < end:
            time.sleep(0.1)
            look()
            now = self.cpu()
            still = still + 1 if now == last else 0
            last = now
        return last

    def memory(self) -> tuple[float, float]:
        """MB of resident memory, and of those that no other process shares and no file backs."""
        path = Path(f"/proc/{self._process.pid}/smaps_rollup")
        lines = path.read_text("ascii").splitlines() if path.exists() else []
        private = sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1000
        return self._process.memory_info().rss / 1e6, private


def show(what: str, value: object, note: str = "") -> None:
    """One line: what was measured, the value, and a goal or a ratio."""
    print(f"{what:<74}{value!s:>18}   {note}".rstrip(), flush=True)


def ratio(ours: float, other: float, of: str) -> str:
    return f"{ours / other:.2f} x {of}" if other else ""


def begin(title: str | None, place: Path) -> None:
    """Give the processes of a bench a home in `place`, and say what is run where: the first line of each."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        os.environ[name] = str(place / "home" / name)
    # Else each process would compile every module again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(
        f"{(title or '').split(chr(10))[0]}\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {load}, ", end=""
    )
    print(f"numpy {version('numpy')}, CPU first and by the clock in brackets\n", flush=True)
