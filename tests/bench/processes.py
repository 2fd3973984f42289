"""What a process of its own costs: a cold search, the server's start, and its memory after sixty questions.

python -m tests.bench.processes [--large]
"""

import argparse
import tempfile
from pathlib import Path

from tests.bench.corpus import questions, write
from tests.bench.measure import (
    CHUNKS_A_NOTE,
    LARGE,
    Cost,
    Watched,
    begin,
    cost_of_process,
    program,
    python,
    ratio,
    share,
    show,
)
from tests.support.mcp import Wire

TIMES = 5
SDK = "import mcp.server.lowlevel, mcp.server.stdio"
"""The public server over stdio: what a start is compared with."""


def commands(arguments: list[str]) -> None:
    """Processes that begin and end, in turn, beside a Python that imports numpy."""
    runs = {
        "Python that imports numpy": (python("-c", "import numpy"), ""),
        "the SDK's server over stdio imported": (python("-c", SDK), ""),
        "search": (program("search", *arguments, questions(1)[0]), "<= 200 where numpy takes 120"),
        "--version": (program("--version"), ""),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in runs}
    # In the first round modules are compiled.
    for number in range(TIMES + 1):
        for name, (words, _) in runs.items():
            cost = cost_of_process(words)
            costs[name] += [cost] if number else []
    base = share(costs["Python that imports numpy"], 0.5)
    for name, (_, goal) in runs.items():
        cost = share(costs[name], 0.5)
        show(f"{name}: a process, ms", cost, "; ".join(filter(None, (ratio(cost.cpu, base.cpu, "numpy"), goal))))


def served(arguments: list[str]) -> None:
    """A server until its first answers, and its memory after sixty questions."""
    agent = Wire(arguments)
    watched = Watched(agent.process.pid)
    agent.greet()
    show("MCP: start to handshake, ms of CPU", f"{watched.cpu():.0f}", "<= 1.5 x the import of the SDK")
    agent.search(1, "router")
    show("MCP: start to a first question answered", f"{watched.cpu():.0f}", "<= 400 where numpy takes 120")
    before = watched.settled()
    for number, question in enumerate(questions(60), 2):
        agent.search(number, question)
    show("MCP: a new question, ms of CPU", f"{(watched.cpu() - before) / 60:.1f}")
    resident, private = watched.memory()
    show("MCP: MB resident, and private, after 60 questions", f"{resident:.0f}, {private:.0f}", "<= 70, large 190")
    agent.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help=f"{LARGE:,} chunks")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        begin(__doc__, place)
        workspace = write(place / "w", round((LARGE if args.large else 4_000) / CHUNKS_A_NOTE))
        arguments = ["--workspace", str(workspace), "--index", str(place / "i" / "index.sqlite")]
        show("index: a process, ms", cost_of_process(program("index", *arguments)))
        commands(arguments)
        served(arguments)


if __name__ == "__main__":
    main()
