"""Ask while another process makes the index anew again and again, and hold every hit against the lines that it cites.

python tests/harness/rebuild.py FOLDER ANSWERS REBUILDS SEED

Each line of a note names its note and its number, so that the text of one note under the name of another shows. A child
makes the index anew, cut otherwise each time, while notes come, go, grow and shrink; this process asks in three ways
(search, why, an agent's tool). Prints what was wrong and a count, and exits with 1 when anything was.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.mcp import tools
from memory_tui.plan import Options
from tests.support.paths import ROOT

NOTES = 8
WORDS = ("garden", "router", "coffee", "violin", "harbour", "lantern", "pepper", "glacier")
TOKENS = (48, 64, 90, 128)

REBUILDING = """
import random, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.harness.rebuild import TOKENS, reshape
from memory_tui.engine.engine import Engine; from memory_tui.plan import Options
folder, rebuilds, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
for number in range(rebuilds):
    reshape(folder / "notes", rng)
    changes = (("chunking.tokens", str(TOKENS[number % len(TOKENS)])), ("chunking.overlap", "0"))
    options = Options(workspace=str(folder / "notes"), index=str(folder / "i.sqlite"), provider="scripted",
                      changes=changes)
    with Engine.open(options) as engine:
        assert engine.index.sync().rebuilt or not number, number
        assert engine.index.writer.wait_idle(60)
    print(number, flush=True)
"""


def line(path: str, number: int) -> str:
    return f"{path} line {number} tells of {WORDS[(number * 7 + len(path)) % len(WORDS)]} number{number}"


def reshape(workspace: Path, rng: random.Random) -> None:
    """Notes come, go, grow and shrink; each line of theirs stays a matter of its place alone."""
    # Five notes that vanish at once would be asked about.
    going = rng.sample(range(1, NOTES), 2)
    for number in range(NOTES):
        path = f"memory/{'x' * (number % 3)}n{number}.md"
        note = workspace / path
        if number in going and rng.random() < 0.7:
            note.unlink(missing_ok=True)
        elif rng.random() < 0.5 or not note.exists():
            new = note.with_suffix(".new")
            new.write_text("".join(line(path, at) + "\n" for at in range(1, rng.randrange(10, 60))))
            new.replace(note)


def wrong(path: str, start: int, end: int, text: str) -> str:
    """What is wrong with `text` as that of these lines of `path`; empty when nothing is."""
    expected = "\n".join(line(path, at) for at in range(start, end + 1))
    return (
        ""
        if text.strip() and expected.startswith(text.strip("\n"))
        else f"{path}:{start}-{end} has {text[:60]!r} ... {text[-60:]!r}"
    )


class Asking:
    """Counts answers and keeps what is wrong in them."""

    def __init__(self, engine: Engine, answers: int) -> None:
        self.engine = engine
        self.left = answers
        self.answers = self.hits = 0
        self.found: list[str] = []
        self._lock = threading.Lock()

    def ask_on(self, seed: int, enough: Callable[[], bool]) -> None:
        rng = random.Random(seed)
        while self._more() or not enough():
            query = f"{rng.choice(WORDS)} number{rng.randrange(60)}"
            try:
                hits, found = self._ask(query, rng)
            except MemoryTuiError as error:
                hits, found = 0, [f"{error.code}: {error.message}"]
            except Exception as error:  # noqa: BLE001 - a thread that dies would look like one that is content
                hits, found = 0, [f"{type(error).__name__}: {error}"]
            with self._lock:
                self.answers += 1
                self.hits += hits
                self.found += found

    def _more(self) -> bool:
        with self._lock:
            self.left -= 1
            return self.left >= 0

    def _ask(self, query: str, rng: random.Random) -> tuple[int, list[str]]:
        if rng.random() < 0.1:
            answer = tools.memory_search(self.engine, {"query": query}).answer
            places = [
                (hit["path"], hit["startLine"], hit["endLine"], hit["snippet"].partition("\n\nSource: ")[0])
                for hit in answer["results"]
            ]
            return len(places), list(filter(None, (wrong(*place) for place in places)))
        evidence = self.engine.search.gather(query)
        trace = self.engine.search.rank(evidence, self.engine.plan.settings)
        hits = [*trace.recalled, *trace.lost[:5]]
        found = [
            wrong(hit.chunk.path, hit.chunk.start_line, hit.chunk.end_line, text)
            for hit in hits
            for text in ([hit.snippet] if hit.snippet else []) + [evidence.texts[hit.chunk.rowid]]
        ]
        if hits and rng.random() < 0.2:
            found += self._why(evidence, hits[0].chunk.path, hits[0].chunk.start_line)
        return len(hits), list(filter(None, found))

    def _why(self, evidence: object, path: str, number: int) -> list[str]:
        answer = self.engine.search.why(evidence, path, number)  # type: ignore[arg-type]
        best = answer.best
        if best is None:
            return []
        chunk = best.chunk
        found = [wrong(chunk.path, chunk.start_line, chunk.end_line, best.text)]
        row = answer.row
        if row is not None:
            ref = answer.evidence.refs[row]
            same = (ref.path, ref.start_line, ref.end_line) == (chunk.path, chunk.start_line, chunk.end_line)
            found.append("" if same else f"why speaks of {chunk} by the evidence of {ref}")
        return found


def main() -> int:
    folder, answers, rebuilds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    (folder / "notes" / "memory").mkdir(parents=True)
    reshape(folder / "notes", random.Random(seed))
    changes = (("sync.onSearch", "off"), ("sync.watch", "off"), ("chunking.tokens", "48"), ("chunking.overlap", "0"))
    options = Options(
        workspace=str(folder / "notes"), index=str(folder / "i.sqlite"), provider="scripted", changes=changes
    )
    with Engine.open(options) as engine:
        engine.index.sync()
        code = REBUILDING.format(tests=os.fspath(ROOT))
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(folder), str(rebuilds), str(seed + 1)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        asking = Asking(engine, answers)
        threads = [
            threading.Thread(target=asking.ask_on, args=(seed + n, lambda: child.poll() is not None)) for n in range(2)
        ]
        for thread in threads:
            thread.start()
        out, err = child.communicate()
        for thread in threads:
            thread.join()
    if child.returncode:
        asking.found.append(err)
    print("\n".join(asking.found[:20]))
    done = len(out.splitlines())
    print(f"{asking.answers} answers, {asking.hits} hits beside {done} rebuilds, {len(asking.found)} wrong")
    return 1 if asking.found or asking.hits < asking.answers else 0


if __name__ == "__main__":
    sys.exit(main())
