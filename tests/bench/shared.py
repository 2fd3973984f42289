"""What it costs to publish an index to PostgreSQL on loopback, and to mirror it, beside indexing with cached vectors.

python -m tests.bench.shared [--team 20] [--passages 20000]

A team publishes that many workspaces, whose mirror answers beside one index of all their notes, under each profile.
"""

import argparse
import datetime as dt
import re
import shutil
import statistics
import tempfile
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.shared import publish
from tests.bench.corpus import questions, write
from tests.bench.measure import CHUNKS_A_NOTE, Cost, cost_of, middle, ratio, show
from tests.support.postgres import Server
from tests.support.shared_index import Home, shared_database

PROFILES = ("openclaw-2026.3", "openclaw-2026.9", "recommended")
_NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
"""When questions are asked, for a verdict tells the age."""


def changed(notes: Path, count: int) -> None:
    files = sorted((notes / "memory").glob("*.md"))
    for path in files[:count]:
        path.write_text(f"{path.read_text()}\n- changed\n")
    for path in files[-3:]:
        path.unlink()


def published(home: Home, engine: Engine) -> publish.Published:
    with engine.index.reader() as store:
        return publish.publish(store, home.access, publish.consent(engine.plan, home.access))


def summed(costs: list[Cost]) -> Cost:
    return Cost(*map(sum, zip(*costs, strict=True)))


def team(server: Server, place: Path, size: int, passages: int) -> None:
    """Show what it costs to publish a team's workspaces and to mirror all, and whether the mirror answers alike."""
    database, each = shared_database(server), int(passages / CHUNKS_A_NOTE / size)
    whole = Home(place / "whole", server.url(database, "carl"), "carl/whole")
    homes = []
    for number in range(size):
        home = Home(place / f"home{number}", server.url(database, "anna"), f"anna/w{number:03}")
        shutil.rmtree(home.notes)
        # In the order of their names they have the order of their days, as one index of all has them.
        write(home.notes, each, kind="prose", first=each * (size - 1 - number))
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
        costs: tuple[list[Cost], list[Cost]] = [], []
        for home in homes:
            with Engine.open(home.options) as engine:
                engine.index.sync()
                costs[0].append(cost_of(partial(engine.index.sync, force=True)))
                costs[1].append(cost_of(partial(published, home, engine)))
        indexing, publishing = map(summed, costs)
        show(f"{profile}: indexing {size} workspaces with cached vectors", indexing)
        show("publishing them", publishing, f"CPU {ratio(publishing.cpu, indexing.cpu, 'indexing')}, goal <= 1.5")
        with Engine.open(desk.options) as other, Engine.open(whole.options) as engine:
            other.index.sync()
            first = cost_of(partial(other.scopes.fill, "all"))
            words = f"CPU {ratio(first.cpu, indexing.cpu, 'indexing')}, wall {ratio(first.wall, indexing.wall, 'it')}"
            show("first mirror of all", first, f"{words}, goal <= .6")
            engine.index.sync()
            # Who watches the folder need not look at it for each question.
            engine.start()
            alike(engine, other.of_scope("all")[0], 200)
    with Engine.open(homes[0].options) as engine, Engine.open(desk.options) as other:
        steps = {"publishing": partial(published, homes[0], engine), "mirroring": partial(other.scopes.fill, "all")}
        for name, step in steps.items():
            show(f"{name} where nothing is new", middle(step, 5))
        changed(homes[0].notes, 50)
        engine.index.sync()
        for name, step in steps.items():
            show(f"{name} 50 changed and 3 deleted notes", cost_of(step), "goal <= 500 with the other part")


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
    parser.add_argument("--team", type=int, default=1)
    parser.add_argument("--passages", type=int, default=4_000)
    args = parser.parse_args()
    server = Server(hasty=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            team(server, Path(folder), args.team, args.passages)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
