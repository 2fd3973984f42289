"""What `shared init` makes: again, by somebody else, of another version, without pgvector, and for whom."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from memory_tui.shared import connection as connections
from memory_tui.shared import schema
from memory_tui.shared.connection import VERSION, Access, SharedUnavailable, connect, joined

TABLES = ("about", "workspace", "member", "file", "chunk", "vec", "since_crash")


def access(url: str, password: str = "") -> Access:
    parameters = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    return Access(parameters, password, "team", "default", "anna/laptop", 600, 2000)


def test_the_schema_is_made_again_and_admits_by_name(server, database):
    server.run("create role dora login")
    owner, dora = access(server.socket_url(database)), access(server.socket_url(database, "dora"))
    with connect(owner) as connection:
        schema.init(connection, owner)
        with pytest.raises(SharedUnavailable) as caught, joined(dora):
            pass
        assert (caught.value.code, "--admit dora" in caught.value.next_step) == ("shared_no_right", True)
        schema.init(connection, owner, ("dora",))
    with joined(dora) as connection:
        assert connection.execute("select version from memory_tui.about").fetchone() == (VERSION,)


def test_what_would_run_is_shown_and_nothing_runs(server, database):
    owner = access(server.socket_url(database))
    server.run('create role "an""na"')
    with connect(owner) as connection:
        script = "\n".join(schema.statements(connection, owner, ('an"na',)))
    assert "create extension vector" in script
    assert 'grant "memory_tui_member" to "an""na";' in script
    assert server.run("select count(*) from pg_namespace where nspname = 'memory_tui'", database) == [(0,)]
    with pytest.raises(SharedUnavailable) as caught, joined(owner):
        pass
    assert caught.value.code == "shared_no_schema"


@pytest.mark.parametrize(("version", "code"), [(0, "shared_old_schema"), (VERSION + 1, "shared_new_schema")])
def test_a_schema_of_another_version_is_named(version, code, server, database):
    owner = access(server.socket_url(database))
    with connect(owner) as connection:
        schema.init(connection, owner)
        connection.execute("update memory_tui.about set version = %s", (version,))
        with pytest.raises(SharedUnavailable) as caught, joined(owner):
            pass
        assert caught.value.code == code
        if version == 0:
            schema.init(connection, owner)
            with joined(owner):
                pass
        else:
            with pytest.raises(SharedUnavailable, match="newer version"):
                schema.init(connection, owner)


def test_an_older_schema_is_migrated_once_with_its_rows(server, database, monkeypatch):
    owner = access(server.socket_url(database))
    with connect(owner) as connection:
        schema.init(connection, owner)
        connection.execute("select memory_tui.join_workspace('default', 'owner/laptop')")
        monkeypatch.setitem(
            schema.MIGRATIONS, VERSION + 1, "alter table memory_tui.workspace add motto text default 'none';"
        )
        monkeypatch.setattr(schema, "VERSION", VERSION + 1)
        monkeypatch.setattr(connections, "VERSION", VERSION + 1)
        with pytest.raises(SharedUnavailable, match="older version"), joined(owner):
            pass
        for _ in range(2):
            schema.init(connection, owner)
        with joined(owner):
            assert connection.execute("select name, motto from memory_tui.workspace").fetchall() == [
                ("owner/laptop", "none")
            ]


def test_the_schema_of_another_owner_is_not_touched(server, database):
    owner, anna = access(server.socket_url(database)), access(server.socket_url(database, "anna"))
    with connect(owner) as connection:
        schema.init(connection, owner, ("anna",))
    with connect(anna) as connection, pytest.raises(SharedUnavailable, match="belongs to owner"):
        schema.init(connection, anna)


def test_row_rights_bind_everybody_on_every_table(server, database):
    owner = access(server.socket_url(database))
    with connect(owner) as connection:
        schema.init(connection, owner)
    rows = server.run(
        "select relname, relrowsecurity, relforcerowsecurity from pg_class "
        "where relnamespace = 'memory_tui'::regnamespace and relkind = 'r'",
        database,
    )
    assert {name: (on, forced) for name, on, forced in rows} == dict.fromkeys(TABLES, (True, True))
