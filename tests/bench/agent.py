"""How fast an agent gets answers over MCP: start, first answer, questions, and what of it is the protocol's.

python tests/bench/agent.py [--chunks 10000]
"""

from __future__ import annotations

import argparse
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

from memory_tui.engine import Engine, Options

TIMES = 7
LIGHT = "from memory_tui.agent import sdk; sdk.load(); from memory_tui.agent import server"
WHOLE = "import mcp.server.lowlevel, mcp.server.stdio"


class Agent:
    """A client that does nothing but write and read lines."""

    def __init__(self, arguments: list[str]) -> None:
        self._process = subprocess.Popen([sys.executable, "-m", "memory_tui", "mcp", *arguments],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={},
                 clientInfo={"name": "bench", "version": "1"})

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
    return statistics.median(found), sorted(found)[int(len(found) * .95)]


def starting(arguments: list[str]) -> None:
    greeted, answered, spent = [], [], []
    for _ in range(TIMES):
        began = time.perf_counter()
        agent = Agent(arguments)
        agent.greet()
        greeted.append(time.perf_counter() - began)
        spent.append(agent.cpu())
        agent.search("router")
        answered.append(time.perf_counter() - began)
        agent.close()
    show("start to handshake answered, s, median (best)", f"{statistics.median(greeted):.2f} ({min(greeted):.2f})",
         "<= 0.7")
    show("  CPU-seconds of it (wall time of an idle machine)", f"{statistics.median(spent):.2f} ({min(spent):.2f})")
    show("start to a first question answered, s", f"{statistics.median(answered):.2f} ({min(answered):.2f})")
    bare = [timed(lambda: subprocess.run([sys.executable, "-c", "import numpy, apsw"], check=True)) / 1000
            for _ in range(TIMES)]
    show("  of which Python with numpy and apsw, s", f"{statistics.median(bare):.2f} ({min(bare):.2f})")


def importing() -> None:
    def seconds(code: str) -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    light, whole = (statistics.median(seconds(code) for _ in range(TIMES)) for code in (LIGHT, WHOLE))
    show("server with half of the SDK, CPU-seconds", f"{light:.2f}")
    show("  the whole SDK alone", f"{whole:.2f}", f"{whole / light:.1f} x ours")


def asking(arguments: list[str], options: Options) -> None:
    asked = questions(240)
    with Engine.open(options) as engine:
        engine.search(asked[0])
        engine.wait_idle(60)
        agent = Agent(arguments)
        agent.greet()
        agent.search(asked[0])
        agent.search(asked[0])
        over, inside, pings = [], [], []
        # One after the other in turn, so that a busy moment of the machine hits all alike.
        for question in asked[1:]:
            over.append(timed(lambda question=question: agent.search(question)))
            inside.append(timed(lambda question=question: engine.search(question)))
            pings.append(timed(lambda: agent.ask("ping")))
        same = sum([(hit["path"], hit["startLine"]) for hit in agent.search(question)["results"]] == [
            (hit.chunk.path, hit.chunk.start_line) for hit in engine.search(question).recalled] for question in asked)
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
            engine.sync()
            print(f"{engine.status().chunks:,} chunks, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        arguments = ["--workspace", str(workspace), "--index", index]
        importing()
        starting(arguments)
        asking(arguments, options)


if __name__ == "__main__":
    main()
