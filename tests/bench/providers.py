"""What embedding providers cost beside their own time: secrets, cache, waiting, and the real local model.

python tests/bench/providers.py [--chunks 4000] [--model FILE.gguf] [--onnx FOLDER]

The server runs in a process of its own, behind HTTP_PROXY, so that the program takes it for another machine.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from corpus import questions, write
from measure import begin, cost_of, show

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.support.paths import MODEL  # noqa: E402 - the checkout is no installed package

WAITS = 50, 200
"""Milliseconds that a request takes, whatever it asks for."""
AT_ONCE = 4

SERVER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tests.support import provider_server as server
wait, mode = float(sys.argv[2]), sys.argv[3]
known = {}
def slow(handler, asked):
    began = time.perf_counter()
    rows = [known.setdefault(text, server.vector(text)) for text in asked.texts]
    answer = server.shaped(asked, rows)
    time.sleep(max(0, wait - (time.perf_counter() - began)))
    handler.json(200, answer)
with server.serving(server.Play(usual=slow if mode == "well" else server.hang)) as play:
    print(play.url, flush=True)
    for line in sys.stdin:
        print(len(play.asked), sum(len(asked.texts) for asked in play.asked), flush=True)
        play.asked.clear()
"""


class Server:
    """A provider that answers after `wait` milliseconds, or never."""

    def __init__(self, wait: float, mode: str = "well") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(HERE.parents[1]), str(wait / 1000), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.environ["HTTP_PROXY"] = self._process.stdout.readline().strip()

    def asked(self) -> tuple[int, int]:
        """Requests and texts since the last time."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        requests, texts = self._process.stdout.readline().split()
        return int(requests), int(texts)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def options(folder: Path, place: Path):
    from memory_tui.plan import Options

    config = place / "openclaw.json"
    section = {
        "provider": "openai",
        "outputDimensionality": 256,
        "remote": {"baseUrl": "http://embed.example/v1", "apiKey": "sk-bench-0123456789"},
    }
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
    return Options(
        workspace=str(folder),
        config=str(config),
        index=str(place / "index.sqlite"),
        provider="openai",
        changes=(("profile", "recommended"),),
    )


def secrets(folder: Path, most: int) -> None:
    from memory_tui.core import secret_finder as scanner

    text = "".join(path.read_text() for path in sorted((folder / "memory").iterdir()))
    chunks = [text[at : at + 1600] for at in range(0, len(text), 1600)]
    chunks = (chunks * (most // len(chunks) + 1))[:most]
    scanner.find("password: none")
    cost = cost_of(lambda: [scanner.find(chunk) for chunk in chunks])
    show("looking for secrets, microseconds of CPU a chunk", f"{cost.cpu / most * 1000:.0f}")


def waiting(folder: Path, place: Path, wait: int) -> None:
    """With a server that answers after `wait` ms: all the time beside that of the requests, four at once."""
    from memory_tui.engine.engine import Engine

    place.mkdir()
    server = Server(wait)
    warm = place / "warm"
    warm.mkdir()
    with Engine.open(options(write(warm / "few", 3), warm)) as engine:
        engine.indexer.sync()
    server.asked()
    with Engine.open(options(folder, place)) as engine:
        reports = []
        cost = cost_of(lambda: reports.append(engine.indexer.sync()))
    report, took = reports[0], cost.wall / 1000
    requests, _ = server.asked()
    ideal, bare = -(-requests // AT_ONCE) * wait / 1000, bare_client(requests)
    show(
        f"{report.chunks:,} chunks, {requests} requests of {wait} ms, {AT_ONCE} at once: seconds",
        f"{took:.2f}",
        f"ideal {ideal:.2f}",
    )
    show("  the same requests by a client that does nothing else", f"{bare:.2f}", "this machine's ideal, now")
    show("  times that", f"{took / bare:.2f}", "<= 1.3 where requests are many; 401 chunks: 5 requests and 0.8 s")
    show("  ms of CPU in all", f"{cost.cpu:.0f}")
    show("  a file a request, as others ask, by the same client: seconds", f"{bare_client(report.indexed):.2f}")
    server.close()


def bare_client(requests: int) -> float:
    """Seconds for as many requests of the same size, as many at once, whose answers are read and thrown away."""
    host = os.environ["HTTP_PROXY"].removeprefix("http://")
    body = json.dumps({"model": "m", "input": [f"{n} {'x' * 1500}" for n in range(5)]}).encode()

    def post(count: int) -> None:
        connection = http.client.HTTPConnection(host)
        for _ in range(count):
            connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
            connection.getresponse().read()
        connection.close()

    shares = [len(range(at, requests, AT_ONCE)) for at in range(AT_ONCE)]
    threads = [threading.Thread(target=post, args=(share,)) for share in shares]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def cached(folder: Path, place: Path) -> None:
    """The whole index again: every vector comes from the cache."""
    from memory_tui.engine.engine import Engine

    server = Server(0)
    with Engine.open(options(folder, place)) as engine:
        first = engine.indexer.sync()
        server.asked()
        began = time.perf_counter()
        again = engine.indexer.sync(force=True)
        took = time.perf_counter() - began
        requests, texts = server.asked()
        show(f"{again.chunks:,} chunks indexed again ({first.chunks:,} at first): requests", f"{requests}", "0")
        show("  texts sent", f"{texts}", "0")
        show("  seconds", f"{took:.1f}")
    server.close()


def never(folder: Path, place: Path) -> None:
    """A provider that never answers: the first answer by words, and the end."""
    from memory_tui.core.errors import IndexUnavailable
    from memory_tui.engine.engine import Engine

    alone = place / "alone"
    alone.mkdir()
    chosen = options(folder, alone)
    question = questions(1)[0]

    def first_answer(engine: Engine) -> float:
        began = time.perf_counter()
        engine.start()
        while True:
            try:
                if engine.queries.gather(question, by_words=True).chunks:
                    return time.perf_counter() - began
            except IndexUnavailable:  # Nothing is there yet.
                time.sleep(0.005)

    from msgspec.structs import replace

    with Engine.open(replace(chosen, provider="none", index=str(alone / "none.sqlite"))) as engine:
        without = first_answer(engine)
    server = Server(0, "never")
    engine = Engine.open(chosen)
    took = first_answer(engine)
    time.sleep(1)
    began = time.perf_counter()
    engine.close()
    end = time.perf_counter() - began
    show("a provider that never answers: first answer by words, seconds", f"{took:.2f}", f"without one {without:.2f}")
    show("  closing while it is asked, seconds", f"{end:.2f}", "< 0.5")
    server.close()


FLASH = """
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
for flash in (True, False):
    model = worker.Model(sys.argv[2], 1, flash)
    model.embed("warm")
    began = time.process_time()
    for n in range(10):
        model.embed(f"{n} " + "the quick brown fox jumps over " * 83)
    print((time.process_time() - began) / 10)
"""


def in_a_process(name: str, model: Path) -> None:
    """What a model costs in its process, and how near it is to all-MiniLM-L6-v2 where it is that one."""
    import numpy as np
    import psutil

    from memory_tui.providers import registry
    from memory_tui.providers.provider_options import ProviderSettings

    provider = registry.create(name, ProviderSettings(name, model_path=str(model), threads=1))
    recorded = json.loads((HERE.parent / "providers" / "embed_reference.json").read_text("utf-8"))
    vectors = provider.embed([one["text"] for one in recorded], "document")
    likeness = []
    for one, vector in zip(recorded, vectors, strict=True):
        expected = np.frombuffer(base64.b64decode(one["vector"]), "<f2").astype(np.float32)
        if expected.shape == vector.shape:
            likeness.append(float(vector @ expected / np.linalg.norm(expected)))
    if likeness:
        show(f"{name}: least cosine to the recorded vectors of MiniLM", f"{min(likeness):.5f}", ">= 0.999, int8 0.998")
    process = psutil.Process(provider._worker.pid)

    def spent() -> float:
        times = process.cpu_times()
        return times.user + times.system

    began = spent()
    for question in questions(60):
        provider.embed([question], "query")
    show(f"{name}: a question, milliseconds of CPU", f"{(spent() - began) / 60 * 1000:.1f}", "< 20")
    began = spent()
    provider.embed([f"{n} " + "the quick brown fox jumps over " * 50 for n in range(32)], "document")
    show(f"{name}: chunks of 300 tokens a CPU-second", f"{32 / (spent() - began):.1f}")
    show(f"{name}: resident memory of the process, MB", f"{process.memory_info().rss >> 20}")
    provider.close()


def local(model: Path) -> None:
    """The real model in its own process."""
    if importlib.util.find_spec("llama_cpp") is None or not model.is_file():
        show("local model", "skipped", "needs llama-cpp-python and the model file")
        return
    from memory_tui.providers.wires.local import SCRIPT

    in_a_process("local", model)
    done = subprocess.run(
        [sys.executable, "-P", "-c", FLASH, str(SCRIPT), str(model)], capture_output=True, text=True, check=True
    )
    with_it, without = map(float, done.stdout.split())
    show("local: chunks of 500 tokens a CPU-second with flash attention", f"{1 / with_it:.1f}")
    show("  times that without it", f"{without / with_it:.2f}", ">= 2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=4_000)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--onnx", type=Path, metavar="FOLDER", help="an ONNX model, for the provider onnx")
    given = parser.parse_args()
    begin(__doc__)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for home in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            os.environ[home] = str(place / "home")
        small = write(place / "small", max(2, given.chunks // 40))
        secrets(small, given.chunks)
        for wait in WAITS:
            waiting(small, place / f"wait{wait}", wait)
        never(small, place)
        cached(write(place / "large", max(2, given.chunks // 4)), place)
    local(given.model)
    if given.onnx is not None:
        in_a_process("onnx", given.onnx)


if __name__ == "__main__":
    main()
