"""A question to the real OpenClaw 2026.3.13 from npm, and to memory-tui: the same notes, the same provider on loopback.

python tests/bench/peer.py [--files 1000] [--questions 60]

OpenClaw is asked in a process of Node that stays, by the function that its tool `memory_search` calls. What counts is
the CPU time of each program, without the provider's.
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
from pathlib import Path

from corpus import questions, write
from measure import begin, show

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from tests.support.npm import node
from tests.support.real_openclaw import OLDEST, openclaw

_WARM = 5
"""Questions that are asked before any is measured."""

NO_GATE = {"minScore": 0}
"""So that words drawn by chance have hits."""

SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support import provider_server as server
known = {}
def quick(handler, asked):
    handler.json(200, server.shaped(asked, [known.setdefault(text, server.vector(text)) for text in asked.texts]))
with server.serving(server.Play(usual=quick)) as play:
    print(play.url, flush=True)
    sys.stdin.read()
"""

PEER = """
import { createInterface } from "node:readline";
const { t: getMemorySearchManager } = await import(process.argv[2]);
const cfg = JSON.parse(process.argv[3]);
const { manager, error } = await getMemorySearchManager({ cfg, agentId: "main" });
if (!manager) throw new Error(error);
await manager.sync({ reason: "bench", force: true });
const say = (value) => process.stdout.write("@" + JSON.stringify(value) + "\\n");
say(manager.status());
for await (const question of createInterface({ input: process.stdin })) {
  const before = process.cpuUsage();
  const hits = await manager.search(question);
  const spent = process.cpuUsage(before);
  say({ ms: (spent.user + spent.system) / 1000, hits: hits.map((hit) => [hit.path, hit.startLine, hit.score]) });
}
process.exit(0);
"""


class Peer:
    """OpenClaw in a process of its own, its index up to date."""

    def __init__(self, place: Path, folder: Path, url: str) -> None:
        dist = Path(openclaw(OLDEST)[1]).parent / "dist"
        module = next(dist.glob("search-manager-*.js"))
        script = place / "peer.mjs"
        script.write_text(PEER)
        remote = {"baseUrl": f"{url}/v1/", "apiKey": "none", "batch": {"enabled": False}}
        search = {
            "provider": "openai",
            "model": "hash-256",
            "fallback": "none",
            "remote": remote,
            "query": NO_GATE,
            "sync": {"watch": False, "onSearch": False, "onSessionStart": False},
        }
        config = {"agents": {"defaults": {"workspace": str(folder), "memorySearch": search}}}
        environment = {"PATH": os.environ["PATH"], "HOME": str(place), "OPENCLAW_STATE_DIR": str(place / "openclaw")}
        self._process = subprocess.Popen(
            [node(), str(script), module.as_uri(), json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.chunks: int = self._said()["chunks"]

    def _said(self) -> dict:
        for line in self._process.stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        raise SystemExit(f"OpenClaw ended with exit {self._process.wait()}")

    def ask(self, question: str) -> dict:
        self._process.stdin.write(f"{question}\n")
        self._process.stdin.flush()
        return self._said()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def opened(place: Path, folder: Path, url: str) -> Engine:
    """memory-tui under the profile of the same release, its index up to date."""
    config = place / "openclaw.json"
    remote = {"baseUrl": f"{url}/v1/", "apiKey": "none"}
    search = {"provider": "openai", "model": "hash-256", "remote": remote, "query": NO_GATE}
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": search}}}))
    changes = (("profile", "openclaw-2026.3"), ("sync.onSearch", "false"))
    options = Options(config=str(config), workspace=str(folder), index=str(place / "ours.sqlite"), changes=changes)
    engine = Engine.open(options)
    engine.index.sync()
    engine.close()
    return Engine.open(options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=60)
    given = parser.parse_args()
    begin(__doc__)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = name
        folder = write(place / "notes", given.files)
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(Path(__file__).parents[2])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        url = server.stdout.readline().strip()
        peer, engine = Peer(place, folder, url), opened(place, folder, url)
        theirs, ours, equal = [], [], 0
        asked = questions(given.questions + _WARM)
        for question in asked:
            found = peer.ask(question)
            began = time.process_time()
            hits = engine.search.search(question).recalled
            ours.append((time.process_time() - began) * 1000)
            theirs.append(found["ms"])
            equal += [(path, line) for path, line, _ in found["hits"]] == [
                (hit.chunk.path, hit.chunk.start_line) for hit in hits
            ]
        limits = [statistics.median(costs[_WARM:]) for costs in (theirs, ours)]
        show(f"OpenClaw {OLDEST}: a question over {peer.chunks:,} chunks, ms of CPU", f"{limits[0]:.1f}")
        show("memory-tui, profile openclaw-2026.3", f"{limits[1]:.1f}", f"{engine.status().chunks:,} chunks")
        show("memory-tui / OpenClaw", f"{limits[1] / limits[0]:.3f}", "<= 1/12 = 0.083")
        show("questions whose hits are the same, in order", f"{equal} of {len(theirs)}")
        engine.close()
        peer.close()
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
