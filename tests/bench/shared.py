"""What it costs to publish an index to PostgreSQL on loopback, and to mirror it, beside indexing with cached vectors.

python -m tests.bench.shared
python -m tests.bench.shared --team 20 [--passages 20000]

A team publishes that many workspaces, whose mirror answers beside one index of all their notes, under each profile.
"""

import argparse
import datetime as dt
import re
import shutil
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.secrets import finder
from memory_tui.shared import publish
from tests.bench.corpus import questions, write
from tests.bench.measure import CHUNKS_A_NOTE, Cost, cost_of, middle, ratio, share, show
from tests.support.postgres import Server
from tests.support.shared_index import Home, shared_database

PROFILES = ("recommended", "openclaw-2026.3", "openclaw-2026.9")
_NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
"""When questions are asked, for a verdict tells the age."""


def changed(notes: Path, count: int, mark: str) -> None:
    files = sorted((notes / "memory").glob("*.md"))
    for path in files[:count]:
        path.write_text(f"{path.read_text()}\n- {mark}\n")
    for path in files[-3:]:
        path.unlink()


def measured(server: Server, place: Path) -> None:
    home = Home(place / "home", server.url(shared_database(server), "anna"), "anna/laptop")
    write(place / "corpus", 1027, kind="prose")
    (home.notes / "memory").rmdir()
    home.notes.rmdir()
    (place / "corpus").rename(home.notes)
    indexing, publishing = [], []
    with Engine.open(home.options) as engine:
        engine.index.sync()

        def run() -> publish.Published:
            with engine.index.reader() as store:
                return publish.publish(store, home.access, publish.consent(engine.plan, home.access))

        for _ in range(3):
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
        with engine.index.reader() as store:
            texts = [text for (text,) in store.query("SELECT text FROM chunks")]
        look = cost_of(lambda: [finder.kinds(text) for text in texts])
        show("  of which looking for secrets", look, f"wall {ratio(look.wall, index.wall, 'indexing')}")
        show("nothing new", middle(run, 5))
        deltas = []
        for number in range(3):
            changed(home.notes, 50, f"change {number}")
            engine.index.sync()
            deltas.append(cost_of(run))
        show("a delta of 50 changed and 3 deleted notes", share(deltas, 0.5), "goal <= 500 with the mirror's part")
        publish.allow(home.access, "bob", reads=True)
        desk = Home(place / "desk", server.url(home.access.parameters["dbname"], "bob"), "bob/desk")
        mirrored(desk, engine, index, run)


def mirrored(desk: Home, engine: Engine, indexing: Cost, run: Callable[[], object]) -> None:
    desk.write(MEMORY="# Facts\n\nA kettle.\n")
    with Engine.open(desk.options) as other:
        other.index.sync()
        fills = []
        for _ in range(3):
            fills.append(cost_of(lambda: other.scopes.fill("anna/laptop")))
            shutil.rmtree(other.scopes.mirror("anna/laptop")[0].parent)
        first = share(fills, 0.5)
        show("first mirror", first, f"wall {ratio(first.wall, indexing.wall, 'indexing')}, goal <= .6")
        other.scopes.fill("anna/laptop")
        show("nothing new", middle(lambda: other.scopes.fill("anna/laptop"), 5))
        changed(Path(engine.plan.workspace), 50, "for the mirror")
        engine.index.sync()
        run()
        show("a delta of 50 changed and 3 deleted notes", cost_of(lambda: other.scopes.fill("anna/laptop")))
        alike(engine, other.of_scope("anna/laptop")[0], 60)


def team(server: Server, place: Path, args: argparse.Namespace) -> None:
    """Show what it costs to publish a team's workspaces and to mirror all, and whether the mirror answers alike."""
    database, each = shared_database(server), int(args.passages / CHUNKS_A_NOTE / args.team)
    whole = Home(place / "whole", server.url(database, "carl"), "carl/whole")
    homes = []
    for number in range(args.team):
        home = Home(place / f"home{number}", server.url(database, "anna"), f"anna/w{number:03}")
        shutil.rmtree(home.notes)
        # In the order of their names they have the order of their days, as one index of all has them.
        write(home.notes, each, kind="prose", first=each * (args.team - 1 - number))
        if number:
            (home.notes / "MEMORY.md").unlink()
        shutil.copytree(home.notes, whole.notes, dirs_exist_ok=True)
        home.join()
        publish.allow(home.access, "bob", reads=True)
        homes.append(home)
    desk = Home(place / "desk", server.url(database, "bob"), "bob/desk")
    desk.write(MEMORY="# Facts\n\nA kettle.\n")
    for profile in PROFILES:
        for home in (*homes, whole, desk):
            home.options = replace(home.options, changes=(("profile", profile),), now=_NOW)
        indexing, publishing = Cost(0, 0), Cost(0, 0)
        for home in homes:
            with Engine.open(home.options) as engine, ExitStack() as stack:
                engine.index.sync()
                again = cost_of(lambda engine=engine: engine.index.sync(force=True))
                store = stack.enter_context(engine.index.reader())
                allowed = publish.consent(engine.plan, home.access)
                report = cost_of(
                    lambda store=store, home=home, allowed=allowed: publish.publish(store, home.access, allowed)
                )
            pairs = ((indexing, again), (publishing, report))
            indexing, publishing = (Cost(*map(sum, zip(*pair, strict=True))) for pair in pairs)
        show(f"{profile}: indexing {args.team} workspaces with cached vectors", indexing)
        show("publishing them", publishing, f"CPU {ratio(publishing.cpu, indexing.cpu, 'indexing')}, goal <= 1.5")
        with Engine.open(desk.options) as other:
            other.index.sync()
            first = cost_of(lambda other=other: other.scopes.fill("all"))
            words = f"CPU {ratio(first.cpu, indexing.cpu, 'indexing')}, wall {ratio(first.wall, indexing.wall, 'it')}"
            show("first mirror of all", first, f"{words}, goal <= .6")
            with Engine.open(whole.options) as engine:
                engine.index.sync()
                # Who watches the folder need not look at it for each question.
                engine.start()
                alike(engine, other.of_scope("all")[0], 200)


def alike(engine: Engine, mirror: Engine, count: int) -> None:
    """Ask both in turns; show how many answers are the same, and what a question costs in the mirror."""
    costs, same, widest = [], 0, 0.0

    def hits(one: Engine, query: str) -> list[tuple[str, int, float]]:
        trace = one.search.search(query)
        # In a mirror the path of a note, also of one that a verdict names, has its workspace before it.
        rows = ((row, f"{row.chunk.path} {row.verdict}") for row in (*trace.recalled, *trace.lost))
        return [(re.sub(r"anna/\w+:", "", words), row.chunk.start_line, row.score) for row, words in rows]

    for number, query in enumerate(questions(count, "prose")):
        # Who is asked first embeds the question.
        first, then = (engine, mirror) if number % 2 else (mirror, engine)
        pair = [cost_of(lambda one=one, query=query: hits(one, query)) for one in (first, then)]
        costs.append(pair if number % 2 else pair[::-1])
        ours, theirs = hits(engine, query), hits(mirror, query)
        same += [row[:2] for row in ours] == [row[:2] for row in theirs]
        widest = max([widest, *(abs(one[2] - other[2]) for one, other in zip(ours, theirs, strict=False))])
    show("  the same hits, order and verdicts", f"{same} of {count}", f"largest difference of a score {widest:.1e}")
    own, other = (Cost(*map(statistics.mean, zip(*(pair[at] for pair in costs[10:]), strict=True))) for at in (0, 1))
    show("  a search in one index of all notes, mean", own)
    show("  a search in the mirror", other, f"CPU {ratio(other.cpu, own.cpu, 'one index')}, goal <= 1.05")


def main() -> None:
    """Measure, against a server that waits for its disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--team", type=int, default=0)
    parser.add_argument("--passages", type=int, default=20_000)
    args = parser.parse_args()
    server = Server(hasty=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            if args.team:
                team(server, Path(folder), args)
            else:
                measured(server, Path(folder))
    finally:
        server.remove()


if __name__ == "__main__":
    main()
