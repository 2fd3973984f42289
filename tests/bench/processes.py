"""What a process of its own costs: a cold search, the server's start, and its memory after sixty questions.

python tests/bench/processes.py [--chunks 4000] [--times 5] [--large]
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from corpus import questions, write
from measure import (
    CHUNKS_A_NOTE,
    LARGE,
    Cost,
    Watched,
    begin,
    cost_of_process,
    installed,
    program,
    python,
    ratio,
    share,
    show,
)

SDK = "import mcp.server.lowlevel, mcp.server.stdio"
"""The public server over stdio: what a start is compared with."""


class Agent:
    """A client that does nothing but write and read lines."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            program("mcp", *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._number = 0
        self.watched = Watched(self._process.pid)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}) + "\n"
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def search(self, query: str) -> dict[str, Any]:
        return self.ask("tools/call", name="memory_search", arguments={"query": query})["result"]["structuredContent"]

    def close(self) -> None:
        self._process.communicate()


def commands(arguments: list[str], environment: dict[str, str], times: int) -> None:
    """Processes that begin and end, in turn, beside a Python that imports numpy."""
    runs = {
        "Python that imports numpy": (python("-c", "import numpy"), ""),
        "the SDK's server over stdio imported": (python("-c", SDK), ""),
        "search": (program("search", *arguments, questions(1)[0]), "<= 220 where numpy takes 120"),
        "--version": (program("--version"), ""),
    }
    found: dict[str, list[Cost]] = {name: [] for name in runs}
    for number in range(times + (times > 1)):
        for name, (words, _) in runs.items():
            cost = cost_of_process(words, environment)[0]
            # In the first of several rounds modules are compiled.
            if number or times == 1:
                found[name].append(cost)
    base = share(found["Python that imports numpy"], 0.5)
    for name, (_, goal) in runs.items():
        cost = share(found[name], 0.5)
        show(f"{name}: a process, ms", cost, "; ".join(filter(None, (ratio(cost.cpu, base.cpu, "numpy"), goal))))


def served(arguments: list[str], environment: dict[str, str]) -> None:
    """A server until its first answers, and its memory after sixty questions."""
    agent = Agent(arguments, environment)
    client = {"name": "bench", "version": "1"}
    agent.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    show("MCP: start to handshake, ms of CPU", f"{agent.watched.cpu():.0f}", "<= 1.5 x the import of the SDK")
    agent.search("router")
    show("MCP: start to a first question answered", f"{agent.watched.cpu():.0f}", "<= 400 where numpy takes 120")
    before = agent.watched.settled()
    for question in questions(60):
        agent.search(question)
    show("MCP: a new question, ms of CPU", f"{(agent.watched.cpu() - before) / 60:.1f}")
    resident, private = agent.watched.memory()
    show("MCP: MB resident, and private, after 60 questions", f"{resident:.0f}, {private:.0f}", "<= 70, large 190")
    agent.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=4_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} chunks")
    args = parser.parse_args()
    begin(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        workspace = write(place / "w", round((LARGE if args.large else args.chunks) / CHUNKS_A_NOTE))
        arguments = ["--workspace", str(workspace), "--index", str(place / "i" / "index.sqlite")]
        environment = installed(place)
        show("index: a process, ms", cost_of_process(program("index", *arguments), environment)[0])
        commands(arguments, environment, args.times)
        served(arguments, environment)


if __name__ == "__main__":
    main()
