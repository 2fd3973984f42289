"""What a process of its own costs: a cold search, the server's start, and many servers over one index.

python tests/bench/processes.py [--chunks 4000] [--servers 4] [--times 5] [--large]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus import questions, write
from measure import (
    CHUNKS_A_NOTE,
    LARGE,
    Cost,
    Watched,
    begin,
    cost_of,
    cost_of_process,
    installed,
    numpy_import,
    program,
    python,
    ratio,
    share,
    show,
    spread,
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

    def greet(self) -> None:
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)

    def search(self, query: str) -> dict[str, Any]:
        return self.ask("tools/call", name="memory_search", arguments={"query": query})["result"]["structuredContent"]

    def close(self) -> None:
        self._process.communicate()


def commands(arguments: list[str], environment: dict[str, str], times: int) -> None:
    """Commands of processes that begin and end, beside a Python that imports numpy, in turn."""
    question = questions(1)[0]
    lexical = [*arguments[:2], "--provider", "none", "--index", f"{arguments[3]}.words"]
    runs: dict[str, tuple[Callable[[], list[str]], str]] = {
        "Python that imports numpy": (lambda: python("-c", "import numpy"), ""),
        "search": (lambda: program("search", *arguments, question), "<= 220 where numpy takes 120"),
        "search --provider none": (lambda: program("search", *lexical, question), "<= 150 where numpy takes 120"),
        "search --json": (lambda: program("search", *arguments, "--json", question), ""),
        "--version": (lambda: program("--version"), ""),
    }
    found: dict[str, list[Cost]] = {name: [] for name in runs}
    said: dict[str, bytes] = {}
    cost_of_process(program("index", *lexical), environment)
    for number in range(times + (times > 1)):
        for name, (words, _) in runs.items():
            cost, said[name] = cost_of_process(words(), environment)
            # In the first of several rounds modules are compiled.
            if number or times == 1:
                found[name].append(cost)
    base = share(found["Python that imports numpy"], 0.5)
    for name, (_, goal) in runs.items():
        cost = share(found[name], 0.5)
        show(f"{name}: a process, ms", cost, "; ".join(filter(None, (ratio(cost.cpu, base.cpu, "numpy"), goal))))
    show("search --json, bytes", f"{len(said['search --json']):,}", "<= 20,000")


def starting(arguments: list[str], environment: dict[str, str], times: int) -> None:
    """The server until its first answers, beside the import of the SDK's server, in turn."""
    rows: list[tuple[float, ...]] = []
    if times > 1:
        cost_of_process(python("-c", SDK), environment)
    for _ in range(times):
        agent = Agent(arguments, environment)
        greeted = cost_of(agent.greet).wall
        shaken = agent.watched.cpu()
        listed = cost_of(lambda agent=agent: agent.ask("tools/list")).wall
        known = agent.watched.cpu()
        answered = cost_of(lambda agent=agent: agent.search("router")).wall
        first = agent.watched.cpu()
        agent.close()
        sdk = cost_of_process(python("-c", SDK), environment)[0]
        base = numpy_import(environment)
        rows.append((shaken, greeted, known, greeted + listed, first, greeted + listed + answered, *sdk, *base))
    columns = [statistics.median(column) for column in zip(*rows, strict=True)]
    sdk, base = columns[6], columns[8]
    for at, (what, goal) in enumerate(
        (
            ("start to handshake", f"{ratio(columns[0], sdk, 'the import of the SDK')}, <= 1.5"),
            ("start to tools listed", ratio(columns[2], sdk, "the import of the SDK")),
            ("start to a first question answered", f"{ratio(columns[4], base, 'numpy')}; <= 400 where numpy takes 120"),
            ("the SDK's server over stdio imported", ""),
            ("numpy imported", ""),
        )
    ):
        show(f"MCP: {what}, ms", Cost(columns[2 * at], columns[2 * at + 1]), goal)


def many(arguments: list[str], environment: dict[str, str], servers: int, note: Path) -> None:
    """Servers over one index, of which the first keeps it. What a first answer, a save and a question cost."""
    agents: list[Agent] = []
    base = numpy_import(environment)
    for number, question in enumerate(questions(servers), 1):
        agent = Agent(arguments, environment)
        agents.append(agent)
        spent = cost_of(lambda agent=agent, question=question: (agent.greet(), agent.search(question))).wall
        first = Cost(agent.watched.cpu(), spent)
        agent.watched.settled()
        (resident, private), unshared = agent.watched.memory(), agent.watched.unshared()
        show(
            f"MCP server {number}: start to a first question answered, ms",
            first,
            f"{ratio(first.cpu, base.cpu, 'numpy')}; <= 350 where numpy takes 120",
        )
        show(
            f"MCP server {number}: MB resident; private; with private pages of files",
            f"{resident:.0f}; {private:.0f}; {unshared:.0f}",
        )
    saved(agents, note)
    asked = questions(10 * servers)
    agent = agents[-1]
    by_clock = [cost_of(lambda question=question: agent.search(question)).wall for question in asked]
    before = agent.watched.cpu()
    for question in asked:
        agent.search(question)
    show("MCP: a question asked again, ms of CPU", f"{(agent.watched.cpu() - before) / len(asked):.1f}")
    show("MCP: a new question, by the clock, p50 (p95) ms", spread(by_clock))
    pings = [cost_of(lambda: agent.ask("ping")).wall for _ in asked]
    show("MCP: a ping, by the clock, p50 (p95) ms", spread(pings))
    for agent in reversed(agents):
        agent.close()


def saved(agents: list[Agent], note: Path) -> None:
    """What one save costs each of the servers."""
    before = [agent.watched.cpu() for agent in agents]
    note.write_text(f"{note.read_text()}\nA line about the lighthouse.\n")
    for agent in agents:
        agent.watched.settled(10)
    spent = [agent.watched.cpu() - start for agent, start in zip(agents, before, strict=True)]
    others = ", ".join(f"{one:.0f}" for one in spent[1:])
    show("MCP: one save, ms of CPU in the keeper; in the others", f"{spent[0]:.0f}; {others}", "indexed once")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=4_000)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} chunks")
    given = parser.parse_args()
    begin(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        workspace = write(place / "w", round((LARGE if given.large else given.chunks) / CHUNKS_A_NOTE))
        arguments = ["--workspace", str(workspace), "--index", str(place / "i" / "index.sqlite")]
        environment = installed(place)
        cost, _ = cost_of_process(program("index", *arguments), environment)
        show("index: a process, ms", cost)
        commands(arguments, environment, given.times)
        starting(arguments, environment, given.times)
        many(arguments, environment, given.servers, next(iter(sorted(workspace.rglob("*.md")))))


if __name__ == "__main__":
    main()
