"""What it costs to keep an index that can be trusted, as ratios to what the machine can do in the same run.

python tests/bench/trust.py [PART ...] [--files 10000] [--many 20000] [--seconds 6] [--large]

Parts: looking saving replacing reading size; and those that take minutes: memory. Without any, all but the last.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from corpus import write
from measure import begin, installed, show

from memory_tui.core import events
from memory_tui.core.settings import Settings
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from memory_tui.providers.provider_protocol import Health, Identity, identity_key
from memory_tui.workspace.roots import Roots, scan


class Wide:
    """Vectors of 384 dimensions, made at once: what is measured is the index."""

    identity = Identity("bench", "wide", identity_key("bench", "wide"), 384)
    max_input_bytes = 8000

    def embed(self, texts, kind):
        vectors = np.random.default_rng(len(texts)).standard_normal((len(texts), 384)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def health(self):
        return Health(True, "")

    def close(self):
        pass


def cpu(run: Callable[[], object]) -> float:
    """Milliseconds of this process."""
    began = time.process_time()
    run()
    return (time.process_time() - began) * 1000


def interleaved(*runs: Callable[[], object], times: int = 15) -> list[float]:
    """Median milliseconds of CPU of each, measured in turns so that all meet the same machine."""
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(times):
        for taken, run in zip(found, runs, strict=True):
            taken.append(cpu(run))
    return [statistics.median(taken) for taken in found]


def small(folder: Path, files: int) -> Path:
    """`files` short notes, two hundred in each folder."""
    for number in range(files):
        path = folder / "memory" / f"{number // 200:03}" / f"note-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\nabout gardens, coffee and number {number}\n")
    return folder


def long(folder: Path, files: int) -> Path:
    """`files` notes of four chunks each, made quickly; each line is its own."""
    words = [
        f"{a}{b}" for a in ("gar", "cof", "rou", "vla", "ti", "zeb", "har") for b in ("den", "fee", "ter", "n", "ra")
    ]
    for number in range(files):
        path = folder / "memory" / f"{number // 200:03}" / f"note-{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(
                f"- {number} {line} " + " ".join(words[(number * 7 + line * k) % 35] for k in range(1, 9)) + "\n"
                for line in range(92)
            )
        )
    return folder


BARE = """
import os

def bare(folder):
    count, todo = 0, [os.path.join(folder, "memory")]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count

def leanest(folder):
    count, todo = 0, [os.path.join(folder, "memory")]
    while todo:
        path = todo.pop()
        descriptor = os.open(path, os.O_RDONLY)
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(path + "/" + entry.name)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
        os.close(descriptor)
    return count
"""
"""What cannot be left out: list every folder, and ask for the status of every file. By path, as everybody does it, and
by the descriptor of each folder, which is the least that we know of.
"""
_floors: dict[str, Callable[[Path], int]] = {}
exec(BARE, _floors)  # also run in a process of its own
bare, leanest = _floors["bare"], _floors["leanest"]

COLD = """
import sys, time
import memory_tui.index.sync, memory_tui.index.store
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
loaded = time.process_time()
with Engine.open(Options(workspace=sys.argv[1], index=sys.argv[2], provider="scripted")) as engine:
    report = engine.indexer.sync()
    assert report.indexed == 0, report
    print(loaded * 1000, (time.process_time() - loaded) * 1000)
"""
COLD_BARE = (
    BARE
    + """
import sys, time
began = time.process_time()
bare(sys.argv[1])
print(began * 1000, (time.process_time() - began) * 1000)
"""
)


def child(code: str, place: Path, *arguments: str) -> tuple[float, float]:
    """Milliseconds of CPU that a new process takes to load its modules, and then; those are compiled already."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=installed(place)
    )
    first, second = done.stdout.split()
    return float(first), float(second)


def cold(place: Path, folder: Path, index: str, times: int) -> None:
    """A sync without a change in a process that begins, beside a bare look in one that begins."""
    child(COLD, place, str(folder), index)
    ours, floor = [], []
    for _ in range(times):
        ours.append(child(COLD, place, str(folder), index))
        floor.append(child(COLD_BARE, place, str(folder)))
    loading, taken, least = (
        statistics.median(values) for values in ([o[0] for o in ours], [o[1] for o in ours], [f[1] for f in floor])
    )
    show("in a new process, opening the index and that sync, ms of CPU", f"{taken:.1f}")
    show("  times a bare scandir and stat in a new process", f"{taken / least:.2f}")
    show("  and before that to load Python and our modules, ms of CPU", f"{loading:.0f}")


def opened(folder: Path, place: Path, *changes: tuple[str, str], listener: events.Listener = events.ignore) -> Engine:
    return Engine.open(
        Options(workspace=str(folder), index=str(place / "index.sqlite"), provider="scripted", changes=changes),
        listener,
    )


def looking(place: Path, files: int, times: int) -> None:
    folder, index = small(place / "looking", files), place / "i-looking"
    with opened(folder, index) as engine:
        engine.indexer.sync()
        ours, floor, least = interleaved(
            engine.indexer.sync, lambda: bare(folder), lambda: leanest(folder), times=times
        )
        show(f"a sync of {files:,} files without a change, ms of CPU", f"{ours:.1f}", "<= 50 at 10,000")
        show("  times a bare scandir and stat", f"{ours / floor:.2f}", "<= 1.2")
        show("  times the leanest one, by descriptors of folders", f"{ours / least:.2f}")
        status, _ = interleaved(engine.status, lambda: bare(folder), times=5)
        show("  the whole status, ms of CPU", f"{status:.1f}")
    after_a_save(folder, str(index / "index.sqlite"))
    cold(place, folder, str(index / "index.sqlite"), max(1, times // 3))
    few = small(place / "few", files // 5)
    roots = Roots.open(few)
    ours, floor = interleaved(lambda: scan(roots), lambda: bare(few))
    show(f"a full listing of {files // 5:,} files, times a bare scandir and stat", f"{ours / floor:.2f}")


def after_a_save(folder: Path, index: str) -> None:
    """The look that a sync takes when the watcher has named one note."""
    from memory_tui.engine.change_watch import Scanner
    from memory_tui.index.freshness import compare
    from memory_tui.index.store import Store

    store, roots = Store.open(index, read_only=True), Roots.open(folder)
    scanner, named = Scanner(roots), {str(folder / "memory" / "000" / "note-7.md")}

    def look() -> None:
        scanner.mark_changed(named)
        seen = scanner.scan(store)
        scanner.rely_on_last(store, compare(seen, store.known(), roots=roots))

    look()
    ours, floor = interleaved(look, lambda: bare(folder))
    show("a look after the save of one note, ms of CPU", f"{ours:.2f}")
    show("  times a bare scandir and stat of everything", f"{ours / floor:.3f}")
    store.close()


def saving(place: Path, files: int) -> None:
    folder = small(place / "saving", files)
    heard: list[events.Event] = []
    news = threading.Condition()

    def hear(event: events.Event) -> None:
        with news:
            heard.append(event)
            news.notify_all()

    debounce = 0.3
    with opened(
        folder, place / "i-saving", ("sync.watchDebounceMs", str(int(debounce * 1000))), listener=hear
    ) as engine:
        engine.start()
        with news:
            news.wait_for(lambda: any(isinstance(e, events.SyncFinished) for e in heard), 60)
        engine.queries.search("gardens")
        time.sleep(2)
        taken = []
        for number in range(min(8, files)):
            (folder / "memory" / "000" / f"note-{number}.md").write_text(f"a zebra crossed road {number}\n")
            began = time.perf_counter()
            while not any(
                f"road {number}" in (hit.snippet or "") for hit in engine.queries.search(f"zebra {number}").recalled
            ):
                time.sleep(0.01)
            taken.append(time.perf_counter() - began)
            time.sleep(0.6)
        late = (statistics.median(taken) - debounce) * 1000
        show("a save is found after the debounce and ms", f"{late:.0f}", "<= 200; a search finds some before it")
        heard.clear()
        for number in range(files):
            (folder / "memory" / f"{number // 200:03}" / f"note-{number}.md").write_text(f"burst {number}\n")
        with news:
            news.wait_for(lambda: sum(isinstance(e, events.FileIndexed) for e in heard) >= files, 60)
        engine.indexer.writer.wait_idle(10)
        syncs = [e for e in heard if isinstance(e, events.SyncFinished) and e.indexed]
        show(f"a burst of {files:,} saves, syncs that indexed something", f"{len(syncs)}", "1")


def replacing(place: Path, chunks: int) -> None:
    from memory_tui.index.store import Store
    from memory_tui.index.sync import sync
    from memory_tui.search.corpus import Corpus

    folder = long(place / "replacing", chunks // 4)
    store = Store.open(place / "i-replacing.sqlite")
    roots, settings, provider = Roots.open(folder), Settings.defaults().set("profile", "recommended", "bench"), Wide()
    took = cpu(lambda: sync(store, roots, provider, settings, scan(roots)))
    count = store.counts().chunks
    show(f"indexing {count:,} chunks, chunks per CPU-second", f"{count / took * 1000:,.0f}")
    corpus = Corpus.load(store)
    writing, following, whole = [], [], []
    notes = sorted((folder / "memory" / "000").iterdir())
    for number in range(12):
        note = notes[number * 7 % len(notes)]
        note.write_text(note.read_text()[:-1] + f" changed {number}\n")
        seen = scan(roots, store.known().settled)
        whole.append(cpu(lambda: scan(roots, store.known().settled)))
        writing.append(cpu(lambda seen=seen: sync(store, roots, provider, settings, seen)))
        began = time.process_time()
        corpus = corpus.refresh(store)
        following.append((time.process_time() - began) * 1000)
    show(f"replacing one file among {count:,} chunks, ms of CPU", f"{statistics.median(writing):.1f}", "<= 10")
    show("  and a reader that follows", f"{statistics.median(following):.1f}")
    show("  and the look that finds it", f"{statistics.median(whole):.1f}")
    store.close()


BURN = "while True: pass"
INDEX = """
import sys
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
while True:
    with Engine.open(Options(workspace=sys.argv[1], index=sys.argv[2], provider="scripted")) as engine:
        engine.indexer.sync(force=True)
"""


def reading(place: Path, files: int, seconds: float) -> None:
    folder = write(place / "reading", files)
    with opened(folder, place / "i-reading", ("sync.onSearch", "off")) as engine:
        engine.indexer.sync()
        asked = 0

        def p50(seconds: float) -> float:
            nonlocal asked
            found, end = [], time.monotonic() + seconds
            while time.monotonic() < end:
                began = time.perf_counter()
                engine.queries.search(f"question {asked} router garden")
                found.append((time.perf_counter() - began) * 1000)
                asked += 1
            return statistics.median(found)

        def beside(code: str) -> float:
            command = [sys.executable, "-c", code, str(folder), str(place / "i-reading" / "index.sqlite")]
            other = subprocess.Popen(command)
            time.sleep(seconds / 3)
            try:
                return p50(seconds)
            finally:
                other.kill()
                other.wait()

        alone = p50(seconds / 2)
        burning, indexing = beside(BURN), beside(INDEX)
        again, more = beside(BURN), beside(INDEX)
        show("a search alone, p50 ms", f"{alone:.1f}")
        show("  beside a process that burns CPU", f"{min(burning, again):.1f}")
        show("  beside a process that indexes all anew", f"{min(indexing, more):.1f}")
        show("  the second by the first", f"{(indexing + more) / (burning + again):.2f}", "<= 1.3")


MEMORY = """
import resource, sys, time
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
with Engine.open(Options(workspace=sys.argv[1], index=sys.argv[2], provider="scripted")) as engine:
    began = time.process_time()
    report = engine.indexer.sync()
    cpu = time.process_time() - began
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.process_time()
    again = engine.indexer.sync()
    print(report.indexed, report.chunks, first, cpu, time.process_time() - began,
          resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory(place: Path, files: int) -> None:
    folder = small(place / "memory", files)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(folder), str(place / "i-memory.sqlite")],
        capture_output=True,
        text=True,
        check=True,
    )
    indexed, chunks, peak, took, again, both = done.stdout.split()
    show(f"indexing {int(indexed):,} files ({int(chunks):,} chunks), MB at most", f"{float(peak):.0f}", "<= 300")
    show("  seconds of CPU", f"{float(took):.0f}")
    show("  and once more without a change, seconds of CPU", f"{float(again):.2f}")
    show("  MB at most after that", f"{float(both):.0f}")


def size(place: Path, files: int) -> None:
    from memory_tui.index import disk_usage
    from memory_tui.index.store import Store
    from memory_tui.index.sync import sync

    folder = write(place / "size", files)
    store = Store.open(place / "i-size.sqlite")
    roots = Roots.open(folder)
    count = sync(store, roots, Wide(), Settings.defaults().set("profile", "recommended", "bench"), scan(roots)).chunks
    tables = disk_usage.tables(store)
    store.close()
    whole = (place / "i-size.sqlite").stat().st_size
    show("bytes of index a chunk, 384 dimensions", f"{whole / count:,.0f}", "<= 5,500")
    for table in tables:
        show(f"  {table.name}", f"{table.bytes / count:,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["looking", "saving", "replacing", "reading", "size"])
    parser.add_argument("--files", type=int, default=10_000, help="notes for a sync without a change")
    parser.add_argument("--many", type=int, default=20_000, help="notes, or chunks, where many are asked for")
    parser.add_argument("--seconds", type=float, default=6, help="how long a search is measured beside other processes")
    parser.add_argument("--large", action="store_true", help="100,000 notes or chunks where many are asked for")
    given = parser.parse_args()
    begin(__doc__)
    many = 100_000 if given.large else given.many
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        parts: dict[str, Callable[[], None]] = {
            "looking": lambda: looking(place, given.files, 31 if given.files > 1_000 else 3),
            "saving": lambda: saving(place, min(1_000, given.files)),
            "replacing": lambda: replacing(place, many),
            "reading": lambda: reading(place, min(2_500, given.files // 4), given.seconds),
            "size": lambda: size(place, min(800, given.files // 4)),
            "memory": lambda: memory(place, many),
        }
        for part in given.parts:
            parts[part]()


if __name__ == "__main__":
    main()
