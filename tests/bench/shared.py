"""What it costs to publish an index to PostgreSQL on loopback, and to mirror it, beside indexing with cached vectors.

python -m tests.bench.shared [--files 1027] [--rounds 3]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from corpus import questions, write
from measure import Cost, cost_of, middle, ratio, share, show

from memory_tui.engine.engine import Engine
from memory_tui.secrets import finder
from memory_tui.shared import publish
from tests.support.postgres import Server
from tests.support.shared_index import Home, shared_database


def changed(notes: Path, count: int, mark: str) -> None:
    """Change the first `count` notes, and delete three others."""
    files = sorted((notes / "memory").glob("*.md"))
    for path in files[:count]:
        path.write_text(f"{path.read_text()}\n- {mark}\n")
    for path in files[-3:]:
        path.unlink()


def measured(server: Server, place: Path, files: int, rounds: int) -> None:
    """Show each cost, indexing and publishing in turns."""
    home = Home(place / "home", server.url(shared_database(server), "anna"), "anna/laptop")
    write(place / "corpus", files, kind="prose")
    (home.notes / "memory").rmdir()
    home.notes.rmdir()
    (place / "corpus").rename(home.notes)
    indexing, publishing = [], []
    with Engine.open(home.options) as engine:
        engine.index.sync()

        def run() -> publish.Published:
            with engine.index.reader_or_empty() as store:
                return publish.publish(store, home.access, publish.consent(engine.plan, home.access))

        for _ in range(rounds):
            indexing.append(cost_of(lambda: engine.index.sync(force=True)))
            home.join()
            publishing.append(cost_of(run))
            publish.leave(engine.plan, home.access)
        home.join()
        report = run()
        show("passages", f"{report.passages:,} of {report.files:,} notes")
        index, first = share(indexing, 0.5), share(publishing, 0.5)
        show("indexing again with cached vectors, CPU and wall ms", index)
        show("publishing all of it", first, f"wall {ratio(first.wall, index.wall, 'indexing')}, goal <= 1.5")
        with engine.index.reader_or_empty() as store:
            texts = [text for (text,) in store.query("SELECT text FROM chunks")]
        look = cost_of(lambda: [finder.kinds(text) for text in texts])
        show("  of which looking for secrets", look, f"wall {ratio(look.wall, index.wall, 'indexing')}")
        show("nothing new", middle(run, 5))
        deltas = []
        for number in range(rounds):
            changed(home.notes, 50, f"change {number}")
            engine.index.sync()
            deltas.append(cost_of(run))
        show("a delta of 50 changed and 3 deleted notes", share(deltas, 0.5), "goal <= 500 with the mirror's part")
        publish.allow(home.access, "bob", reads=True)
        mirrored(
            Home(place / "desk", server.url(home.access.parameters["dbname"], "bob"), "bob/desk"), engine, index, run
        )


def mirrored(desk: Home, engine: Engine, indexing: Cost, run: Callable[[], object]) -> None:
    """Show what a second machine pays for the mirror of the first one, and for a search in it."""
    desk.write(MEMORY="# Facts\n\nA kettle.\n")
    with Engine.open(desk.options) as other:
        other.index.sync()
        fills = []
        for _ in range(3):
            fills.append(cost_of(lambda: other.scopes.fill("anna/laptop")))
            path = other.scopes.mirror("anna/laptop")[0]
            shutil.rmtree(path.parent)
        first = share(fills, 0.5)
        show("first mirror", first, f"wall {ratio(first.wall, indexing.wall, 'indexing')}, goal <= .6")
        other.scopes.fill("anna/laptop")
        show("nothing new", middle(lambda: other.scopes.fill("anna/laptop"), 5))
        changed(Path(engine.plan.workspace), 50, "for the mirror")
        engine.index.sync()
        run()
        show("a delta of 50 changed and 3 deleted notes", cost_of(lambda: other.scopes.fill("anna/laptop")))
        mirror = other.of_scope("anna/laptop")[0]
        pairs = [
            [cost_of(lambda one=one, query=query: one.search.search(query)) for one in (engine, mirror)]
            for query in questions(60, "prose")
        ]
        ours, theirs = (share([pair[at] for pair in pairs[10:]], 0.5) for at in (1, 0))
        show("a search in the mirror", ours, f"CPU {ratio(ours.cpu, theirs.cpu, 'embedded')}, goal <= 1.05")


def main() -> None:
    """Measure, against a server that waits for its disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1027)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    server = Server(hasty=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            measured(server, Path(folder), args.files, args.rounds)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
