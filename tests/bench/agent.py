"""How fast an agent gets answers over MCP: start, first answer, questions, and what of it is the protocol's.

python tests/bench/agent.py [--chunks 10000]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from corpus import questions, write
from index_and_search import show

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options

TIMES = 7
WHOLE = "import mcp.server.lowlevel, mcp.server.stdio"
TYPES = "import mcp_types"
PYDANTIC = "from pydantic import TypeAdapter"
NUMBERS = "import numpy, apsw, tokenizers"
WHOLE_AT = 6
"""The yardstick's column: CPU-seconds that depend on the machine and on its hour, and not on us."""


class Agent:
    """A client that does nothing but write and read lines."""

    def __init__(self, arguments: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "memory_tui", "mcp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}) + "\n"
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def greet(self) -> None:
        self.ask(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bench", "version": "1"}
        )

    def search(self, query: str) -> dict[str, Any]:
        return self.ask("tools/call", name="memory_search", arguments={"query": query})["result"]["structuredContent"]

    def cpu(self) -> float:
        """CPU-seconds the server has used so far."""
        spent = psutil.Process(self._process.pid).cpu_times()
        return spent.user + spent.system

    def close(self) -> None:
        self._process.communicate()


def timed(run: Callable[[], object]) -> float:
    """Wall time of `run` in milliseconds."""
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


def spread(found: list[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    return statistics.median(found), sorted(found)[int(len(found) * 0.95)]


def starting(arguments: list[str]) -> None:
    """The server's start and what it is compared with, in turn, so that a busy moment of the machine hits all alike."""
    rows: list[list[float]] = []
    for _ in range(TIMES):
        began = time.perf_counter()
        agent = Agent(arguments)
        agent.greet()
        greeted, greeted_cpu = time.perf_counter() - began, agent.cpu()
        agent.ask("tools/list")
        listed, listed_cpu = time.perf_counter() - began, agent.cpu()
        agent.search("router")
        rows.append(
            [
                greeted,
                listed,
                time.perf_counter() - began,
                greeted_cpu,
                listed_cpu,
                agent.cpu(),
                *(seconds(code) for code in (WHOLE, TYPES, PYDANTIC, NUMBERS)),
            ]
        )
        agent.close()
    middle, best = ([pick(column) for column in zip(*rows, strict=True)] for pick in (statistics.median, min))
    names = (
        "start to handshake answered, s",
        "start to tools listed, s",
        "start to a first question answered, s",
        "  CPU-seconds until the handshake was answered",
        "  CPU-seconds until the tools were listed",
        "  CPU-seconds until the question was answered",
        "yardstick: the SDK's server over stdio imported, CPU-seconds",
        "  its package of types alone",
        "  pydantic",
        "  numpy, apsw and tokenizers",
    )
    ratios = {at: f"{middle[at] / middle[WHOLE_AT]:.2f} x the yardstick" for at in (3, 4, 5, 7, 8, 9)}
    aims = {0: "<= 0.7", **ratios, 3: f"{ratios[3]}, <= 1.5", 4: f"{ratios[4]}, <= 0.30 s"}
    found = importlib.util.find_spec("mcp_types")
    kept = found and found.origin and Path(importlib.util.cache_from_source(found.origin)).exists()
    print(f"median (best) of {TIMES}; ratios are of medians; compiled modules are {'there' if kept else 'not kept'}")
    for at, name in enumerate(names):
        show(name, f"{middle[at]:.2f} ({best[at]:.2f})", aims.get(at, ""))


def seconds(code: str) -> float:
    """CPU-seconds of a Python that runs `code`."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def asking(arguments: list[str], options: Options) -> None:
    asked = questions(240)
    with Engine.open(options) as engine:
        engine.queries.search(asked[0])
        engine.indexer.writer.wait_idle(60)
        agent = Agent(arguments)
        agent.greet()
        agent.search(asked[0])
        agent.search(asked[0])
        over, inside, pings = [], [], []
        # One after the other in turn, so that a busy moment of the machine hits all alike.
        for question in asked[1:]:
            over.append(timed(lambda question=question: agent.search(question)))
            inside.append(timed(lambda question=question: engine.queries.search(question)))
            pings.append(timed(lambda: agent.ask("ping")))
        same = sum(
            [(hit["path"], hit["startLine"]) for hit in agent.search(question)["results"]]
            == [(hit.chunk.path, hit.chunk.start_line) for hit in engine.queries.search(question).recalled]
            for question in asked
        )
        agent.close()
    show("memory_search over MCP, p50 (p95), ms", "{:.1f} ({:.1f})".format(*spread(over)), "<= 15 at 10,000")
    show("  the engine alone", "{:.1f} ({:.1f})".format(*spread(inside)))
    show("  the protocol alone (ping)", "{:.1f} ({:.1f})".format(*spread(pings)))
    show("answers that are the engine's own", f"{same} of {len(asked)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chunks", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        workspace, index = write(place / "w", given.chunks // 4 + 1), str(place / "i" / "index.sqlite")
        options = Options(workspace=str(workspace), index=index)
        with Engine.open(options) as engine:
            engine.indexer.sync()
            print(f"{engine.status().chunks:,} chunks, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        arguments = ["--workspace", str(workspace), "--index", index]
        starting(arguments)
        asking(arguments, options)


if __name__ == "__main__":
    main()
