"""What a search costs under OpenClaw 2026.9, as a ratio to 2026.3 on the same notes, measured in turns.

python tests/bench/profiles.py [--files 3300]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import apsw
from corpus import questions, write
from measure import begin, show

sys.path.insert(0, str(Path(__file__).parents[2]))

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from tests.support.ledger import NAMESPACE, PLUGIN, HostLedger

PROFILES = ("openclaw-2026.3", "openclaw-2026.9")
_WARM = 5
"""Questions that are asked before any is measured."""


def opened(folder: Path, place: Path, profile: str) -> Engine:
    engine = Engine.open(
        Options(
            workspace=str(folder),
            index=str(place / f"{profile}.sqlite"),
            provider="scripted",
            changes=(("profile", profile), ("sync.onSearch", "false")),
        )
    )
    engine.indexer.sync()
    return engine


def record(state: Path, folder: Path) -> None:
    """OpenClaw's trust ledger with a row of each note, as its agent's writes leave it."""
    ledger = HostLedger.make(state, folder)
    usual = {"version": 1, "originClass": "agent", "observedAt": 1, "fileHash": "0" * 64}
    with closing(apsw.Connection(str(ledger.database))) as connection, connection:
        for note in sorted(folder.rglob("*.md")):
            path = note.relative_to(folder).as_posix()
            row = (PLUGIN, NAMESPACE, ledger.key(path), json.dumps({**usual, "relativePath": path}))
            connection.execute("INSERT INTO plugin_state_entries VALUES (?, ?, ?, ?, 1, NULL)", row)


def cpu(engine: Engine, question: str) -> tuple[float, float]:
    """CPU milliseconds of gathering and of ranking one question."""
    began = time.process_time()
    evidence = engine.queries.gather(question)
    middle = time.process_time()
    engine.queries.rank(evidence, engine.plan.settings)
    return (middle - began) * 1000, (time.process_time() - middle) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=3300)
    parser.add_argument("--questions", type=int, default=60)
    given = parser.parse_args()
    begin(__doc__)
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = name
        os.environ["OPENCLAW_STATE_DIR"] = str(Path(name) / "openclaw")
        folder = write(Path(name) / "notes", given.files)
        record(Path(name) / "openclaw", folder)
        engines = {profile: opened(folder, Path(name), profile) for profile in PROFILES}
        costs: dict[str, list[tuple[float, float]]] = {profile: [] for profile in PROFILES}
        asked = questions(given.questions)
        for question in [*asked[:_WARM], *asked]:
            for profile, engine in engines.items():
                costs[profile].append(cpu(engine, question))
        for profile, engine in engines.items():
            found = costs[profile][-len(asked) :]
            gathered, ranked = (statistics.median(part) for part in zip(*found, strict=True))
            whole = statistics.median(sum(each) for each in found)
            chunks = engine.status().chunks
            parts = f"gather {gathered:.1f}, rank {ranked:.1f}"
            show(f"{profile}: a question over {chunks:,} chunks, ms of CPU", f"{whole:.1f}", parts)
            engine.close()
        totals = [statistics.median(sum(each) for each in costs[profile][-len(asked) :]) for profile in PROFILES]
        show("2026.9 / 2026.3", f"{totals[1] / totals[0]:.2f}", "<= 2")


if __name__ == "__main__":
    main()
