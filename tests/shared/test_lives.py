"""Publishers that die, that are two, that are silent; a server that goes away under them; and vectors of the team."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import uuid

import psycopg
import pytest
from msgspec.structs import replace

from memory_tui import events
from memory_tui.engine.engine import Engine
from memory_tui.errors import MemoryTuiError
from memory_tui.index.store import Store
from memory_tui.shared import mirror, publish
from memory_tui.shared.connection import SharedUnavailable
from tests.support.paths import ROOT
from tests.support.postgres import Server
from tests.support.provider_server import Play, serving
from tests.support.shared_index import Home, shared_database
from tests.support.waiting import LONG, until
from tests.support.workspace import synced

HALF = """
select count(*) from memory_tui.file f where state <> 'gone' and chunks <> (
    select count(*) from memory_tui.chunk c where (c.tenant, c.ws, c.path) = (f.tenant, f.ws, f.path))
"""

QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def machine(folder, server, team, name="anna/laptop", login="anna", **more):
    home = Home(folder, server.url(team, login), name, **more)
    home.write(garden="# Garden\n\nThe roses are by the gate.\n", router="# Router\n\nIt is an Omada.\n")
    home.join()
    return home


@pytest.fixture
def laptop(server, team, tmp_path):
    return machine(tmp_path / "laptop", server, team)


def command(home):
    words = ["shared", "publish", "--once", "--workspace", str(home.notes), "--config", str(home.options.config)]
    return [sys.executable, "-m", "memory_tui", *words, "--index", str(home.options.index)]


def wrong(home):
    with Engine.open(home.options) as engine, engine.index.reader() as store:
        return publish.verify(home.access, store, publish.consent(engine.plan, home.access), engine.plan.roots)


def take(connection, who, silent=600.0, recipe="r", index="i"):
    sql = "select epoch from memory_tui.take('default', 'anna/laptop', %s, %s, %s, 's', 0, %s, %s, 0, 'x')"
    return connection.execute(sql, (who, silent, recipe, index, uuid.uuid4())).fetchone()[0]


def test_an_epoch_that_has_passed_changes_nothing(server, team, laptop):
    laptop.publish()
    state = "select path, state, generation from memory_tui.file order by path"
    with server.connected(team, "anna") as connection:
        server.run("update memory_tui.workspace set recipe = 'r', publisher = ''", team)
        old = take(connection, "a 1")
        now = take(connection, "a 1")
        assert now == old + 1
        before = server.run(state, team)
        for call in ("drop_file(%s, %s, %s, 'memory/garden.md')", "finish(%s, %s, %s, 'x', true)"):
            with pytest.raises(psycopg.DatabaseError) as caught:
                connection.execute(f"select memory_tui.{call}", ("default", "anna/laptop", old))
            assert caught.value.sqlstate == "MT001"
        assert server.run(state, team) == before
        connection.execute("select memory_tui.drop_file('default', 'anna/laptop', %s, 'memory/garden.md')", (now,))
        assert server.run(state, team) != before


def test_a_second_machine_of_the_same_name_waits_for_silence_and_takes_over(
    server, team, laptop, tmp_path, monkeypatch
):
    laptop.publish()
    mine = os.environ["XDG_STATE_HOME"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    other = machine(tmp_path / "desktop", server, team)
    with pytest.raises(SharedUnavailable, match=r"did so .* s ago") as caught:
        other.publish()
    assert (caught.value.code, "shared.name" in caught.value.next_step) == ("shared_taken", True)
    # By the clock of the server, whatever that of a machine says.
    server.run("update memory_tui.workspace set heard = now() - interval '601 s'", team)
    assert other.publish().files == 2
    assert wrong(other) == []
    monkeypatch.setenv("XDG_STATE_HOME", mine)
    with pytest.raises(SharedUnavailable) as caught:
        laptop.publish()
    assert caught.value.code == "shared_taken"


@pytest.mark.parametrize(("dies", "when"), [("publisher", 3), ("session", 40), ("server", 90)])
def test_who_dies_amid_a_publication_leaves_whole_notes_and_another_run_the_rest(dies, when, server, team, laptop):
    laptop.write(**{f"note{n}": f"# Note {n}\n\n{'It grows. ' * 400}\n" for n in range(200)})
    with Engine.open(laptop.options) as engine:
        engine.index.sync()
    with subprocess.Popen(command(laptop), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        count = "select count(*) from memory_tui.file"
        until(lambda: child.poll() is not None or server.run(count, team)[0][0] >= when)
        if dies == "publisher":
            child.send_signal(signal.SIGKILL)
        elif dies == "session":
            server.run("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'anna'", team)
        else:
            server.kill()
        _, err = child.communicate(timeout=LONG)
    if dies == "server":
        server.start()
    ends = (-signal.SIGKILL, False) if dies == "publisher" else (1, True)
    assert (child.returncode, b"cannot be reached" in err) == ends
    assert server.run(HALF, team) == [(0,)]
    [(there,)] = server.run(count, team)
    # A server that crashes may take back what did not reach its disk.
    assert (0 if dies == "server" else when) <= there < 202
    assert laptop.publish().files == 202 - there
    assert wrong(laptop) == []


def test_a_keeper_goes_on_when_the_server_is_there_again(server, team, tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(publish, "_BETWEEN_SECONDS", 0.01)
    home = machine(tmp_path / "laptop", server, team, publish=True)
    news = []

    def published(path):
        return server.run("select 1 from memory_tui.file where path = %s and state <> 'gone'", team, values=(path,))

    with Engine.open(home.options, news.append) as engine:
        engine.start()
        until(lambda: published("memory/garden.md"))
        for name in ("bees", "hives"):
            server.kill()
            home.write(**{name: "# Bees\n\nA new hive.\n"})
            engine.index.sync()
            until(lambda: any("cannot be reached" in e.text for e in news if isinstance(e, events.Noticed)))
            server.start()
            until(lambda name=name: published(f"memory/{name}.md"))
            news.clear()
    assert server.run(HALF, team) == [(0,)]
    assert wrong(home) == []


def test_the_command_publishes_each_change_until_it_is_stopped(server, team, tmp_path):
    home = machine(tmp_path / "laptop", server, team, publish=True)
    words = [word for word in command(home) if word != "--once"]
    words += ["--set", "sync.watchDebounceMs=10"]
    there = "select path from memory_tui.file where state <> 'gone'"
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        until(lambda: len(server.run(there, team)) == 2)
        home.write(bees="# Bees\n\nA new hive.\n")
        until(lambda: ("memory/bees.md",) in server.run(there, team))
        home.remove("bees")
        until(lambda: ("memory/bees.md",) not in server.run(there, team))
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=LONG)
        assert (child.returncode, b"Traceback" in err) == (143, False)


def test_a_keeper_is_heard_of_although_nothing_changes(server, team, tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(publish, "_BETWEEN_SECONDS", 0.01)
    home = machine(tmp_path / "laptop", server, team, publish=True)
    heard = "select generation, heard from memory_tui.workspace where index_state <> ''"

    def beats():
        """Whether it is heard of again, in the same generation."""
        [(generation, first)] = until(lambda: server.run(heard, team))
        until(lambda: server.run(heard, team)[0][1] > first)
        return server.run(heard, team)[0][0] == generation

    with Engine.open(home.options) as engine:
        engine.start()
        until(beats)


def read_on(home, texts, stop, looks, wrongs):
    """Bring the mirror of all up to date again and again; note whatever in it is no whole text that was written."""
    with synced(home.options) as engine:
        while not stop.is_set():
            # The database is killed now and then.
            with contextlib.suppress(MemoryTuiError):
                engine.scopes.fill("all")
            for file in mirror.complete(mirror.folder(home.access)):
                with contextlib.closing(Store.open(file, read_only=True)) as store, store.snapshot():
                    for note in store.indexed().values():
                        ids = [(passage.chunk_id, passage.occurrence) for passage in store.passages(note)]
                        if store.last_text(note).rstrip() not in texts or len(set(ids)) != len(ids):
                            wrongs.append(note.shown)
                    looks[home.name] = len(store.indexed())
            stop.wait(0.5)


@pytest.mark.soak
@pytest.mark.timeout(5400)
def test_two_hundred_kills_under_three_publishers_and_eight_readers_lose_nothing_and_leave_nothing_half(
    server, team, tmp_path
):
    rng, kills, texts, wrongs, looks, stop = random.Random(1), 0, {"# Own\n\nA kettle."}, [], {}, threading.Event()
    homes = [machine(tmp_path / f"m{n}", server, team, f"anna/m{n}") for n in range(3)]
    readers = [Home(tmp_path / f"r{n}", server.url(team, "bob"), f"bob/r{n}") for n in range(8)]
    for home in homes:
        texts |= {path.read_text().rstrip() for path in (home.notes / "memory").iterdir()}
        publish.allow(home.access, "bob", reads=True)
    for reader in readers:
        reader.write(own="# Own\n\nA kettle.\n")
    threads = [threading.Thread(target=read_on, args=(each, texts, stop, looks, wrongs)) for each in readers]
    for thread in threads:
        thread.start()
    generations = "select coalesce(sum(generation), 0) from memory_tui.workspace"
    while kills < 200:
        for home in homes:
            lines = "\n".join(f"It grew {rng.random()}." for _ in range(rng.randint(1, 200)))
            texts.add(text := f"# {kills}\n\n{lines}")
            home.write(**{f"note{rng.randint(0, 60)}": f"{text}\n" for _ in range(20)})
            with Engine.open(home.options) as engine:
                engine.index.sync()
        children = [subprocess.Popen(command(home), cwd=ROOT, **QUIET) for home in homes]
        while alive := [child for child in children if child.poll() is None]:
            aim = server.run(generations, team)[0][0] + rng.randint(1, 20)
            until(lambda: server.run(generations, team)[0][0] >= aim or any(c.poll() is not None for c in alive))  # noqa: B023
            victim = rng.choice(alive)
            # Who has ended already is not killed.
            kills += victim.poll() is None
            if kills % 8 == 7:
                server.kill()
                server.start()
            else:
                victim.kill()
                victim.wait(LONG)
        for child in children:
            child.wait(LONG)
        assert server.run(HALF, team) == [(0,)]
    for home in homes:
        home.publish()
        assert wrong(home) == []
    notes = server.run("select count(*) from memory_tui.file where state <> 'gone'", team)[0][0]
    until(lambda: wrongs or [*looks.values()] == [notes] * len(readers))
    stop.set()
    for thread in threads:
        thread.join(LONG)
    assert (wrongs, len(looks)) == ([], len(readers))


def test_what_a_crash_of_the_server_takes_back_no_mirror_keeps(tmp_path):
    """Notes are committed without waiting for the disk; each mirror may have read them before they were lost."""
    server = Server()
    try:
        database = shared_database(server)
        laptop = machine(tmp_path / "laptop", server, database)
        desk = Home(tmp_path / "desk", server.url(database, "bob"), "bob/desk", askTimeoutMs=20_000)
        laptop.publish()
        publish.allow(laptop.access, "bob", reads=True)
        server.run("alter system set wal_writer_delay = '10s'")
        server.run("select pg_reload_conf()")
        state = "select generation, incarnation from memory_tui.workspace"
        with server.connected(database, "anna") as connection:
            [run] = server.run("select publisher, 600.0, recipe, index_uuid from memory_tui.workspace", database)
            epoch = take(connection, *run)
            [before] = server.run(state, database)
            sql = "select memory_tui.drop_file('default', 'anna/laptop', %s, 'memory/garden.md')"
            connection.execute(sql, (epoch,))
            assert read_by(desk) == {"anna/laptop:memory/router.md"}
            server.kill()
        server.start()
        assert server.run(state, database) == [before]
        # One note changes, so the generation is the one that the mirror has of what was lost.
        laptop.write(router="# Router\n\nIt is new.\n")
        laptop.publish()
        [after] = server.run(state, database)
        assert (after[0], after[1] != before[1]) == (before[0] + 1, True)
        assert read_by(desk) == {"anna/laptop:memory/garden.md", "anna/laptop:memory/router.md"}
    finally:
        server.remove()


def read_by(home):
    """The notes of others that the mirror of all has, brought up to date."""
    with synced(home.options) as engine, engine.of_scope("anna/laptop")[0].index.reader() as store:
        return {note.shown for note in store.indexed().values()}


def test_who_listens_is_told_to_look_and_nothing_else(server, team, laptop):
    with server.connected(team, "bob") as connection:
        connection.execute("listen memory_tui")
        laptop.publish()
        [notice] = connection.notifies(timeout=LONG, stop_after=1)
        assert (notice.channel, notice.payload) == ("memory_tui", "")
        assert laptop.publish().files == 0
        assert list(connection.notifies(timeout=0.2)) == []


def test_a_second_machine_with_the_same_notes_embeds_nothing(server, team, tmp_path):
    with serving(Play()) as play:
        remote = {"baseUrl": play.url, "apiKey": "k"}
        beside = {"provider": "openai-compatible", "model": "small", "remote": remote}
        laptop = machine(tmp_path / "laptop", server, team, beside=beside)
        desktop = machine(tmp_path / "desktop", server, team, "anna/desktop", beside=beside)
        stranger = machine(tmp_path / "bob", server, team, "bob/laptop", "bob", beside=beside)

        for home in (laptop, desktop, stranger):
            # Long enough for windows, which have vectors of their own.
            home.write(diary="# Diary\n\n" + "".join(f"On day {n} the hive grew by {n} frames.\n" for n in range(40)))

        def embedded(home, index):
            sent = len(play.asked)
            with Engine.open(replace(home.options, index=f"{home.options.index}.{index}")) as engine:
                report = engine.index.sync()
            texts = [text for ask in play.asked[sent:] for text in ask.texts if text != "memory"]
            assert len(texts) == report.embedded
            return report.embedded, report.shared

        alone = embedded(laptop, 1)
        assert (alone[0] > 5, alone[1]) == (True, 0)
        laptop.publish()
        assert embedded(desktop, 1) == (0, alone[0])
        # Who may not read her notes learns no vector by the hash of a text.
        assert embedded(stranger, 1) == alone
        publish.allow(laptop.access, "bob", reads=True)
        assert embedded(stranger, 2) == (0, alone[0])
        # What is no vector is not taken for one.
        server.run("update memory_tui.vec set vec = vec + vec", team)
        assert embedded(stranger, 4) == alone
        # Where the database is away, the provider is asked, and the report says why.
        server.run("alter role bob connection limit 0")
        try:
            assert embedded(stranger, 3) == alone
        finally:
            server.run("alter role bob connection limit -1")
