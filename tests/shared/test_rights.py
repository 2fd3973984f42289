"""What a login may do that nobody let: nothing; and that each test of it notices a schema without the guard."""

import uuid

import psycopg
import pytest

from memory_tui.shared import publish
from tests.support.shared_index import Home

TABLES = ("workspace", "member", "file", "chunk", "vec", "since_crash")

_READING = {
    "files": "files('default', %(ws)s, 0)",
    "chunks": "chunks('default', %(ws)s, '{MEMORY.md}')",
    "vectors": "vectors('default', %(ws)s, array(select generate_series(0, 99)))",
    "workspaces": "workspaces('default', true, '{}', '{}')",
    "passages": "passages('default', array[%(ws)s]) n where n > 0",
    "known_vectors": "known_vectors('default', %(space)s, array[%(hash)s])",
}
"""What a reader may ask."""


@pytest.fixture
def laptop(server, team, tmp_path):
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    home.write(MEMORY="# Facts\n\nThe router.\n", garden="# Garden\n\nThe roses.\n")
    home.join()
    home.publish()
    return home


def trespasses(server, team, login="bob"):
    """What `login` gets or changes of anna's workspace, by raw SQL: the names of what worked."""
    state = server.run("select sum(generation) + sum(epoch) from memory_tui.workspace", team)
    [(ws, digest, space)] = server.run(
        "select ws, hash, space from memory_tui.vec join memory_tui.workspace using (ws) order by seq limit 1", team
    )
    done = set()
    with server.connected(team, login) as connection:

        def tries(name, sql, values=None):
            try:
                with connection.transaction():
                    rows = connection.execute(sql, values)
                    if not rows.description or (rows.rowcount > 0 and rows.fetchone()[0] not in (None, 0)):
                        done.add(name)
            except psycopg.Error:
                pass

        for table in TABLES:
            tries(f"read {table}", f"select count(*) from memory_tui.{table}")
            tries(f"copy {table}", f"with x as (select * from memory_tui.{table}) select count(*) from x")
            tries(f"update {table}", f"with x as (update memory_tui.{table} set tenant = 'mine' returning 1) table x")
            tries(f"delete {table}", f"with x as (delete from memory_tui.{table} returning 1) table x")
            tries(f"truncate {table}", f"truncate memory_tui.{table} cascade")
            tries(f"lock {table}", f"lock table memory_tui.{table} in access exclusive mode")
            tries(f"no rights {table}", f"set local row_security = off; select 1 from memory_tui.{table}")
        for name, call in _READING.items():
            tries(name, f"select count(*) from memory_tui.{call}", {"ws": ws, "hash": digest, "space": space})
        tries("insert", "insert into memory_tui.member values ('default', %s, 'bob', true) returning 1", (ws,))
        tries("become the owner", "set role owner")
        name = ("default", "anna/laptop")
        never = uuid.uuid4()
        take = "select count(*) from memory_tui.take(%s, %s, 'bob 1', 0, 'r', 's', 0, 'i', %s, 0, 'x')"
        tries("take", take, (*name, never))
        tries("drop", "select 1 from memory_tui.drop_file(%s, %s, 1, 'memory/garden.md')", name)
        tries("finish", "select memory_tui.finish(%s, %s, 1, 'x', true)", name)
        tries("allow", "select 1 from memory_tui.allow(%s, %s, 'bob', true)", name)
        tries("leave", "select 1 from memory_tui.leave(%s, %s)", name)
        tries("join", "select memory_tui.join_workspace(%s, %s)", name)
        tries("forget", "select 1 from memory_tui.forget_chunks('default', %s, 'memory/garden.md')", (ws,))
        tries("advance", "select 1 from memory_tui.advance(%s, %s, 1)", name)
    if server.run("select sum(generation) + sum(epoch) from memory_tui.workspace", team) != state:
        done.add("change")
    return done


def test_bob_reads_writes_locks_and_learns_nothing_without_a_grant(server, team, laptop):
    assert trespasses(server, team) == set()


def test_a_reader_reads_and_does_no_more(server, team, laptop):
    publish.allow(laptop.access, "bob", reads=True)
    assert trespasses(server, team) == _READING.keys()
    publish.allow(laptop.access, "bob", reads=False)
    assert trespasses(server, team) == set()


def test_who_is_in_a_role_reads_what_the_role_may(server, team, laptop):
    server.run("create role garden_club nologin")
    publish.allow(laptop.access, "garden_club", reads=True)
    assert trespasses(server, team) == set()
    server.run("grant garden_club to bob")
    assert "chunks" in trespasses(server, team)
    server.run("revoke garden_club from bob")


_EVERYBODY = """
create or replace function memory_tui.readable(t text) returns bigint[] language sql stable security definer
    as 'select array(select ws from memory_tui.workspace)';
create or replace function memory_tui.reads(t text, w bigint) returns boolean language sql stable security definer
    as 'select true'
"""
_ANYBODY = "create or replace function memory_tui.published(t text, n text) returns bigint language sql stable "
_ANYBODY += "security definer as 'select ws from memory_tui.workspace where tenant = $1 and name = $2'"


@pytest.mark.parametrize(
    ("guard", "noticed"),
    [
        (
            "grant select on memory_tui.chunk to memory_tui_member; "
            "alter table memory_tui.chunk disable row level security",
            {"read chunk", "copy chunk"},
        ),
        ("grant update on memory_tui.chunk to memory_tui_member", {"lock chunk"}),
        ("grant truncate on memory_tui.vec to memory_tui_member", {"lock vec", "truncate vec"}),
        (_EVERYBODY, {*_READING}),
        (_ANYBODY, {"take", "allow", "leave"}),
        ("grant owner to bob", {"become the owner"}),
        ("grant execute on function memory_tui.forget_chunks to memory_tui_member", {"forget"}),
    ],
)
def test_each_guard_is_needed(guard, noticed, server, team, laptop):
    try:
        server.run(guard, team)
        assert noticed <= trespasses(server, team)
    finally:
        server.run("revoke owner from bob")


def explained(server, team, select):
    """What bob learns of a path, and of one that is not there, by having a statement explained."""
    with server.connected(team, "bob") as connection:
        connection.execute("set enable_seqscan = off")
        for path in ("memory/garden.md", "memory/nobody.md"):
            try:
                plain = f"explain (analyze, buffers off, timing off, summary off) {select}"
                rows = connection.execute(plain, {"p": path})
                yield [line.replace(path, "") for (line,) in rows]
            except psycopg.errors.InsufficientPrivilege as error:
                yield error.sqlstate


def test_bob_learns_no_path_by_explain(server, team, laptop):
    server.run("analyze", team)
    asks = [f"select from memory_tui.{table} where path = %(p)s" for table in ("file", "chunk")]
    [(ws,)] = server.run("select ws from memory_tui.workspace", team)
    asks.append(f"select from memory_tui.files('default', {ws}, 0) where path = %(p)s")
    asks.append(f"select from memory_tui.chunks('default', {ws}, array[%(p)s])")
    for ask in asks:
        there, none = explained(server, team, ask)
        assert there == none
    # Row rights alone tell it, by what a filter removed.
    server.run("grant select on memory_tui.file to memory_tui_member", team)
    there, none = explained(server, team, asks[0])
    assert there != none


def test_row_rights_bind_the_owner_of_the_tables_too(server, team, laptop):
    server.run("create role keeper nologin")
    server.run("grant usage on schema memory_tui to keeper", team)
    server.run("alter table memory_tui.chunk owner to keeper", team)
    with server.connected(team) as connection:
        connection.execute("set role keeper")
        assert connection.execute("select count(*) from memory_tui.chunk").fetchone() == (0,)


def test_no_login_may_stop_a_publisher_by_a_lock_of_its_own(server, team, laptop):
    with server.connected(team, "bob") as connection:
        connection.execute("select pg_advisory_lock(n) from generate_series(0, 99) n")
        laptop.write(garden="# Garden\n\nNo roses.\n")
        assert laptop.publish().files == 1
