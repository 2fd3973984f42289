"""What a login may do that nobody let: nothing; and that each test of it notices a schema without the guard."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from memory_tui.shared import publish
from tests.support.shared_index import Home

TABLES = ("workspace", "member", "file", "chunk", "vec")


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
    [(ws, digest)] = server.run("select ws, hash from memory_tui.vec order by seq limit 1", team)
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
        tries("insert", "insert into memory_tui.member values ('default', %s, 'bob', true) returning 1", (ws,))
        tries("learn a vector", "select vec::text from memory_tui.vec where hash = %s", (digest,))
        tries("become the owner", "set role owner")
        name = ("default", "anna/laptop")
        never = uuid.uuid4()
        take = "select count(*) from memory_tui.take(%s, %s, 'bob 1', 0, 'r', 's', 0, 'i', %s, 0)"
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
    reads = {f"{how} {table}" for table in TABLES for how in ("read", "copy")} | {"learn a vector"}
    assert trespasses(server, team) == reads
    publish.allow(laptop.access, "bob", reads=False)
    assert trespasses(server, team) == set()


def test_who_is_in_a_role_reads_what_the_role_may(server, team, laptop):
    server.run("create role garden_club nologin")
    publish.allow(laptop.access, "garden_club", reads=True)
    assert trespasses(server, team) == set()
    server.run("grant garden_club to bob")
    assert "read chunk" in trespasses(server, team)
    server.run("revoke garden_club from bob")


_EVERYBODY = "create or replace function memory_tui.readable() returns table (tenant text, ws bigint) language sql "
_EVERYBODY += "stable security definer as 'select tenant, ws from memory_tui.workspace'"
_ANYBODY = "create or replace function memory_tui.published(t text, n text) returns bigint language sql stable "
_ANYBODY += "security definer as 'select ws from memory_tui.workspace where tenant = $1 and name = $2'"


@pytest.mark.parametrize(
    ("guard", "noticed"),
    [
        ("alter table memory_tui.chunk disable row level security", {"read chunk", "copy chunk"}),
        ("grant update on memory_tui.chunk to memory_tui_member", {"lock chunk"}),
        ("grant truncate on memory_tui.vec to memory_tui_member", {"lock vec", "truncate vec"}),
        (_EVERYBODY, {"read vec", "learn a vector"}),
        (_ANYBODY, {"take", "allow", "leave"}),
        ("grant owner to bob", {"become the owner"}),
        (
            "grant execute on function memory_tui.forget_chunks to memory_tui_member",
            {"forget"},
        ),
    ],
)
def test_each_guard_is_needed(guard, noticed, server, team, laptop):
    try:
        server.run(guard, team)
        assert noticed <= trespasses(server, team)
    finally:
        server.run("revoke owner from bob")


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
