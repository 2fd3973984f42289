"""A database behind a pool, on a replica, on a disk that is full, and one that cuts off who asks or listens."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_tui.approval import Approvals
from memory_tui.engine.engine import Engine
from memory_tui.shared import publish
from memory_tui.shared.connection import SharedUnavailable
from tests.shared.test_lives import HALF, until, wrong
from tests.shared.test_scopes import configure, kept_by, paths, standing
from tests.support.postgres import POOLER, Server, pooled
from tests.support.shared_index import Home, shared_database
from tests.support.waiting import LONG


@pytest.mark.skipif(POOLER is None, reason="PgBouncer is not here: apt-get install pgbouncer")
def test_a_pool_of_transactions_publishes_mirrors_and_is_looked_at_now_and_then(server, team, tmp_path, monkeypatch):
    monkeypatch.setattr("memory_tui.engine.engine.KEPT_SECONDS", 0.1)
    with pooled(server) as port:
        laptop = Home(tmp_path / "laptop", f"postgresql://anna@127.0.0.1:{port}/{team}", "anna/laptop")
        laptop.write(garden="# Garden\n\nThe roses are by the gate.\n")
        laptop.join()
        assert laptop.publish().files == 1
        publish.allow(laptop.access, "bob", reads=True)
        url = f"postgresql://bob@127.0.0.1:{port}/{team}"
        desk = Home(tmp_path / "desk", url, "bob/desk", askTimeoutMs=20_000, mirror={"scope": "anna/laptop"})
        desk.write(bees="# Bees\n\nA hive.\n")
        assert standing(desk, "anna/laptop").words == ("live",)
        assert paths(desk, "anna/laptop", "roses by the gate")[0] == "anna/laptop:memory/garden.md"
        with Engine.open(desk.options) as engine:
            engine.start()
            laptop.write(garden="# Garden\n\nNo roses.\n")
            laptop.publish()
            until(lambda: "No roses" in kept_by(desk, "anna/laptop:memory/garden.md"))


def test_a_replica_is_mirrored_with_how_far_it_is_behind_and_not_published_to(server, team, laptop, desk):
    replica = Server(primary=server)
    try:
        configure(desk, url=replica.url(team, "bob"))
        assert standing(desk, "all").words == ("live",)
        replica.run("select pg_wal_replay_pause()")
        server.run("update memory_tui.workspace set heard = now()", team)
        until(lambda: replica.run("select pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()") == [(True,)])
        until(lambda: standing(desk, "all").words != ("live",))
        assert re.fullmatch(r"live; replica \d+ s behind its primary", "; ".join(standing(desk, "all").words))
        replica.run("select pg_wal_replay_resume()")
        until(lambda: standing(desk, "all").words == ("live",))
        Approvals(str(desk.notes)).approve(publish.NOTES, desk.access.where, "test")
        for act in (desk.publish, desk.join):
            with pytest.raises(SharedUnavailable, match="it is a replica, or read-only") as caught:
                act()
            assert caught.value.next_step == "Name the primary in shared.url."
        with (replica.data / "postgresql.conf").open("a") as settings:
            settings.write("hot_standby = off\n")
        replica.stop()
        replica.start()
        # It only recovers now, and lets nobody in.
        assert standing(desk, "all").words[0].startswith("store unreachable since")
    finally:
        replica.remove()


_CUT = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'bob' and "


def test_a_question_that_is_cut_off_is_answered_from_the_mirror_with_the_reason(server, team, laptop, desk):
    assert standing(desk, "all").words == ("live",)
    laptop.write(bees="# Bees\n\nA new hive called Beatrice.\n")
    laptop.publish()
    with server.connected(team) as other, Engine.open(desk.options) as engine, ThreadPoolExecutor() as pool:
        with other.transaction():
            other.execute("lock table memory_tui.file in access exclusive mode")
            asking = pool.submit(engine.of_scope, "all")
            until(lambda: server.run(f"{_CUT} wait_event_type = 'Lock'", team))
            answering, state = asking.result(LONG)
        assert (state.state, "mirror of" in state.words[0]) == ("unreachable", True)
        assert answering.search.search("Gertrude").recalled
    assert paths(desk, "all", "Beatrice")[0] == "anna/laptop:memory/bees.md"


def test_a_mirror_that_is_kept_goes_on_when_its_listening_was_cut_off(server, team, laptop, desk, monkeypatch):
    monkeypatch.setattr("memory_tui.engine.engine.KEPT_SECONDS", 0.1)
    configure(desk, mirror={"scope": "anna/laptop"})
    with Engine.open(desk.options) as engine:
        engine.start()
        until(lambda: server.run(f"{_CUT} query = 'listen memory_tui'", team))
        laptop.write(news="# News\n\nA heron.\n")
        laptop.publish()
        until(lambda: kept_by(desk, "anna/laptop:memory/news.md"))
        until(lambda: server.run(f"{_CUT} query = 'listen memory_tui'", team))


@pytest.fixture
def disk():
    """A server, and where it has a tablespace on a disk of 20 MB."""
    server = Server()
    place = server.folder / "disk"
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        server.remove()
        pytest.skip("this user may mount no disk")
    owner = server.folder.stat()
    os.chown(place, owner.st_uid, owner.st_gid)
    server.run(f"create tablespace small location '{place}'")
    yield server, place
    server.stop("immediate")
    subprocess.run(["umount", str(place)], check=True)
    server.remove()


def test_a_full_disk_is_told_loses_nothing_and_is_gone_on_with(disk, tmp_path):
    server, place = disk
    team = shared_database(server)
    server.run(f"alter database {team} set tablespace small")
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    home.write(**{f"note{number:02}": f"# Note {number}\n\n{'It grows. ' * 3000}\n" for number in range(20)})
    home.join()
    filler, has = place / "filler", os.statvfs(place)
    filler.write_bytes(bytes(has.f_bavail * has.f_bsize - 200_000))
    with pytest.raises(SharedUnavailable, match=r"disk of the database .* is full") as caught:
        home.publish()
    assert caught.value.next_step == "Make room there."
    assert server.run(HALF, team) == [(0,)]
    [(there,)] = server.run("select count(*) from memory_tui.file", team)
    filler.unlink()
    assert home.publish().files == 20 - there
    assert wrong(home) == []
