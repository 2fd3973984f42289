"""Count what a question, and a new file until it is indexed, run through: `python -m tests.tools.walks [--list]`.

Modules and functions that run, calls, returns (modules that the walk leaves and comes back to, each function seen once)
and climbs (calls from a lower layer to a higher one, by the import contract of pyproject.toml). The third of
equal walks is counted: what is loaded once is left out, and so is what a slow first walk makes due again.
"""

import argparse
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from tests.support.paths import ROOT

PACKAGE = str(ROOT / "memory_tui") + "/"
NOTES = 37
"""One chunk each: the size of the sample workspace."""


class Walk:
    """What ran while a walk was counted; `steps` holds each function once, in the order of its first call."""

    def __init__(self) -> None:
        self.calls = 0
        self.steps: dict[tuple[str, str], None] = {}
        self.climbs: dict[tuple[str, str], None] = {}
        self._layers = layers()

    def observe(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call; the signature is that of `sys.setprofile`."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name[:1] == "<":
            return
        module = code.co_filename[len(PACKAGE) : -3]
        self.calls += 1
        self.steps.setdefault((module, code.co_qualname))
        caller = frame.f_back
        if caller and caller.f_code.co_filename.startswith(PACKAGE):
            below = caller.f_code.co_filename[len(PACKAGE) : -3]
            if self._layer(below) > self._layer(module):
                self.climbs.setdefault((below, f"{module}.{code.co_qualname}"))

    def _layer(self, module: str) -> int:
        return self._layers.get(module.split("/")[0], 0)

    @property
    def modules(self) -> list[str]:
        """Return each module once, in the order of the walk."""
        return list(dict.fromkeys(module for module, _ in self.steps))

    @property
    def returns(self) -> int:
        """Count the modules that the walk comes back to after it has left them."""
        visited: set[str] = set()
        again: set[str] = set()
        previous = ""
        for module, _ in self.steps:
            if module != previous and module in visited:
                again.add(module)
            visited.add(module)
            previous = module
        return len(again)

    def row(self, name: str) -> str:
        counts = (len(self.modules), len(self.steps), self.calls, self.returns, len(self.climbs))
        return f"{name:28}" + "".join(f"{count:>11,}" for count in counts)


def layers() -> dict[str, int]:
    """Return package or top module -> its layer in the import contract, 0 the highest."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {
        name.strip(" ()").removeprefix("memory_tui."): number
        for number, row in enumerate(rows)
        for name in row.split("|")
    }


class Recorder:
    """Watches every thread that starts after it, and counts while a walk goes on."""

    def __init__(self) -> None:
        self._walk: Walk | None = None
        threading.setprofile(self._observe)
        sys.setprofile(self._observe)

    def _observe(self, frame: FrameType, event: str, argument: object) -> None:
        if self._walk:
            self._walk.observe(frame, event, argument)

    def third(self, step: Callable[[int], object]) -> Walk:
        """Count the third call of `step`, which gets the number of the call."""
        step(1)
        step(2)
        walk = self._walk = Walk()
        step(3)
        self._walk = None
        return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print each function, in the order of its first call")
    args = parser.parse_args()
    from memory_tui.library import open_memory

    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "memory").mkdir()
        for number in range(NOTES):
            note = root / "memory" / f"2026-01-{number % 28 + 1:02}-{number}.md"
            note.write_text(f"# Router {number}\n\nThe vlan of room {number} is {number + 10}.\n", "utf-8")

        def add(number: int) -> None:
            (root / "memory" / f"new-{number}.md").write_text(f"# Heron {number}\n\nIt nests in tree {number}.\n")
            memory.index.sync()

        with open_memory(root, index=root / "index.sqlite", provider="builtin") as memory:
            walks = {
                "a question": recorder.third(lambda number: memory.search.search(f"which vlan has room {number}")),
                "a new file until indexed": recorder.third(add),
            }
    print(f"{'':28}" + "".join(f"{head:>11}" for head in ("modules", "functions", "calls", "returns", "climbs")))
    for name, walk in walks.items():
        print(walk.row(name))
        if args.list:
            print(*(f"    {module}.{function}" for module, function in walk.steps), sep="\n")
            print(*(f"    climb: {below} -> {above}" for below, above in walk.climbs), sep="\n")


if __name__ == "__main__":
    main()
