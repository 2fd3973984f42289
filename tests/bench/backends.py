"""Measure QMD as the backend: `python -m tests.bench.backends [--questions | --stub]`.

- a search through the backend against the bare `node qmd.js search`, medians of 20, interleaved; and over the server
- with a stub that never answers: the first search, and the median of the next ten against a search of the index
- with --questions: empty answers, hit@1, recall@6 and MRR of both over the 59 questions of QMD's fixtures
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

from memory_tui.core.cancel import Stop
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.qmd.upkeep import Upkeep
from tests.support.qmd_stub import QmdStub
from tests.support.real_qmd import qmd

EVAL = Path(__file__).parents[1] / "qmd" / "eval"
ROUNDS = 20
_READY_SECONDS = 60.0


def opened(folder: Path, command: str, **settings: object) -> Engine:
    """An engine over the documents of the fixtures whose backend is `command`."""
    changes = {"qmd.command": command, **settings}
    return Engine.open(
        Options(
            workspace=str(EVAL),
            index=str(folder / "index.sqlite"),
            backend="qmd",
            changes=tuple(
                (name, value if isinstance(value, str) else json.dumps(value)) for name, value in changes.items()
            ),
        )
    )


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def cpu(work: Callable[[], object]) -> float:
    """Milliseconds of CPU, of every thread: other programs on the machine would be most of a short wait."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def overhead(folder: Path) -> None:
    """The backend against the bare process, and over the server."""
    with opened(folder, qmd()) as engine:
        client = engine.backend.client
        Upkeep(client).update(Stop())
        state = client.ready()
        words = [*state.program.words, "search", "API versioning", "--json", "-n", "6"]
        for name in state.sources:
            words += ["-c", name]
        environment = client.place.environment()

        def bare() -> None:
            subprocess.run(words, env=environment, cwd=client.options.workspace, capture_output=True, check=True)

        def ours() -> None:
            assert engine.backend.ask("API versioning") is not None

        both = [(timed(bare), timed(ours)) for _ in range(ROUNDS)]
    process, through = (statistics.median(column) for column in zip(*both, strict=True))
    limit = 1.15 * process + 10
    print(f"bare process {process:.0f} ms, through the backend {through:.0f} ms (at most {limit:.0f} ms)")
    with opened(folder, qmd(), **{"qmd.server": True}) as engine:
        client = engine.backend.client
        server = client.serve(client.startable())
        end = time.monotonic() + _READY_SECONDS
        while not server.ready and time.monotonic() < end:
            time.sleep(0.05)
        found = engine.backend.ask("API versioning")
        assert found is not None
        assert found.way == "server"
        served = statistics.median(timed(lambda: engine.backend.ask("API versioning")) for _ in range(ROUNDS))
    print(f"over the server {served:.1f} ms (at most {process / 5:.0f} ms)")


def hanging(folder: Path) -> None:
    """A QMD that never answers."""
    stub = QmdStub(folder / "bin")
    seconds = 1.0
    with opened(folder, str(stub.program), **{"qmd.limits.timeoutMs": round(seconds * 1000)}) as engine:
        Upkeep(engine.backend.client).update(Stop())
        engine.indexer.catch_up()
        engine.queries.search("API versioning")
        stub.behave(search={"hang": True})

        def asked() -> None:
            assert engine.backend.ask("API versioning") is None
            engine.queries.search("API versioning")

        first = timed(asked)
        both = [(cpu(lambda: engine.queries.search("API versioning")), cpu(asked)) for _ in range(10)]
    alone, behind = (statistics.median(column) for column in zip(*both, strict=True))
    print(f"hanging QMD: first search {first:.0f} ms (at most {seconds * 1000 + 300:.0f} ms)")
    print(f"the next ten {behind:.2f} ms of CPU, builtin alone {alone:.2f} ms ({behind / alone:.2f} x, at most 1.1 x)")


def questions(folder: Path) -> None:
    """Both backends over the questions, as a person asks for them."""
    words = ["compare-qmd", "--labels", str(EVAL / "queries.jsonl"), "--workspace", str(EVAL)]
    words += ["--index", str(folder / "index.sqlite"), "--set", f"qmd.command={qmd()}"]
    subprocess.run([sys.executable, "-m", "memory_tui", *words], check=True, env=dict(os.environ))


def main() -> None:
    """Measure, and print beside each figure what it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", action="store_true")
    parser.add_argument("--stub", action="store_true", help="only what needs no QMD")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if given.questions:
            questions(Path(name))
            return
        if not given.stub:
            overhead(Path(name) / "real")
        hanging(Path(name) / "stub")


if __name__ == "__main__":
    main()
