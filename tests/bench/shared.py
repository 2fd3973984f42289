"""What it costs to publish an index to PostgreSQL on loopback, and to mirror it, beside indexing with cached vectors.

python -m tests.bench.shared [--files 1027] [--rounds 3]
python -m tests.bench.shared --team 20 [--passages 20000] [--questions 200] [--profiles recommended,openclaw-2026.9]
python -m tests.bench.shared --changes 20

A team publishes that many workspaces, whose mirror answers beside one index of all their notes; without questions there
is no such index. Changes are made in one home, and looked for in the mirror of another, which listens.
"""

import argparse
import datetime as dt
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import psycopg
from corpus import questions, write
from measure import CHUNKS_A_NOTE, Cost, cost_of, middle, ratio, share, show
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.secrets import finder
from memory_tui.shared import publish
from tests.support.postgres import Server
from tests.support.shared_index import Home, shared_database

_NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
"""When questions are asked, for a verdict tells the age."""


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
        rights(server, home.access.parameters["dbname"])
        mirrored(
            Home(place / "desk", server.url(home.access.parameters["dbname"], "bob"), "bob/desk"), engine, index, run
        )


def rights(server: Server, database: str) -> None:
    """Show what reading the rows of a workspace costs a member, by functions of the owner, beside plain selects."""
    ((tenant, number),) = server.run("select tenant, ws from memory_tui.workspace", database)
    paths = [path for (path,) in server.run("select path from memory_tui.file order by path", database)]
    seqs = [seq for (seq,) in server.run("select seq from memory_tui.vec order by seq", database)]
    reads = [("files", "file", "generation > %s", [0])]
    reads += [("chunks", "chunk", "path = any(%s)", [paths[at : at + 400] for at in range(0, len(paths), 400)])]
    reads += [("vectors", "vec", "seq = any(%s)", [seqs[at : at + 1000] for at in range(0, len(seqs), 1000)])]
    server.run("analyze", database)
    with server.connected(database, "bob") as member, server.connected(database) as owner:
        for function, table, where, parts in reads:

            def read(connection: psycopg.Connection[Any], rows: str, parts: list[Any] = parts) -> None:
                for part in parts:
                    connection.execute(f"select * from memory_tui.{rows}", (tenant, number, part)).fetchall()

            costs = [
                (
                    cost_of(lambda rows=f"{function}(%s, %s, %s)": read(member, rows)),
                    cost_of(lambda rows=f"{table} where tenant = %s and ws = %s and {where}": read(owner, rows)),
                )
                for _ in range(15)
            ]
            ours, plain = (share(list(each), 0.5) for each in zip(*costs, strict=True))
            show(f"  {function} of it as a member", ours, f"wall {ratio(ours.wall, plain.wall, 'plain select')}")


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
        alike(engine, mirror, 60)


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
        if args.questions:
            shutil.copytree(home.notes, whole.notes, dirs_exist_ok=True)
        home.join()
        publish.allow(home.access, "bob", reads=True)
        homes.append(home)
    desk = Home(place / "desk", server.url(database, "bob"), "bob/desk")
    desk.write(MEMORY="# Facts\n\nA kettle.\n")
    for profile in args.profiles.split(","):
        for home in (*homes, whole, desk):
            home.options = replace(home.options, changes=(("profile", profile),), now=_NOW)
        indexing, publishing = Cost(0, 0), Cost(0, 0)
        for home in homes:
            with Engine.open(home.options) as engine, ExitStack() as stack:
                engine.index.sync()
                again = cost_of(lambda engine=engine: engine.index.sync(force=True))
                store = stack.enter_context(engine.index.reader_or_empty())
                allowed = publish.consent(engine.plan, home.access)
                report = cost_of(
                    lambda store=store, home=home, allowed=allowed: publish.publish(store, home.access, allowed)
                )
            indexing, publishing = (
                Cost(*map(sum, zip(*pair, strict=True))) for pair in ((indexing, again), (publishing, report))
            )
        show(f"{profile}: indexing {args.team} workspaces with cached vectors", indexing)
        show("publishing them", publishing, f"CPU {ratio(publishing.cpu, indexing.cpu, 'indexing')}, goal <= 1.5")
        with Engine.open(desk.options) as other:
            other.index.sync()
            first = cost_of(lambda other=other: other.scopes.fill("all"))
            words = f"CPU {ratio(first.cpu, indexing.cpu, 'indexing')}, wall {ratio(first.wall, indexing.wall, 'it')}"
            show("first mirror of all", first, f"{words}, goal <= .6")
            if args.questions:
                with Engine.open(whole.options) as engine:
                    engine.index.sync()
                    # Who watches the folder need not look at it for each question.
                    engine.start()
                    alike(engine, other.of_scope("all")[0], args.questions)


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


def changes(server: Server, place: Path, count: int) -> None:
    """Show how long it takes from a change on disk to a hit elsewhere."""
    database = shared_database(server)
    home = Home(place / "home", server.url(database, "anna"), "anna/laptop", publish=True)
    desk = Home(place / "desk", server.url(database, "bob"), "bob/desk", mirror={"scope": "anna/laptop"})
    for each in (home, desk):
        each.write(MEMORY="# Facts\n\nA kettle.\n")
    home.join()
    publish.allow(home.access, "bob", reads=True)
    took = []
    with Engine.open(home.options) as engine, Engine.open(desk.options) as other:
        for one in (engine, other):
            one.index.sync()
            one.start()
        home.publish()
        mirror = other.of_scope("anna/laptop")[0]
        for number in range(count):
            word = f"zyx{number}qua"
            begun = time.monotonic()
            home.write(**{f"note{number}": f"# News\n\nThe {word} is here.\n"})
            while not any(word in hit.snippet for hit in mirror.search.search(word).recalled):
                time.sleep(0.05)
            took.append((time.monotonic() - begun) * 1000)
    goal = engine.plan.settings.whole("sync.watchDebounceMs") + 2000
    words = f"goal <= {goal}, the longest {max(took):,.0f}"
    show("from a change on disk to a hit elsewhere, median ms", f"{statistics.median(took):,.0f}", words)


def main() -> None:
    """Measure, against a server that waits for its disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1027)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--team", type=int, default=0)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--profiles", default="recommended,openclaw-2026.3,openclaw-2026.9")
    parser.add_argument("--changes", type=int, default=0)
    args = parser.parse_args()
    server = Server(hasty=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            if args.team:
                team(server, Path(folder), args)
            elif args.changes:
                changes(server, Path(folder), args.changes)
            else:
                measured(server, Path(folder), args.files, args.rounds)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
