"""What a publisher puts into the shared index: the rows of its own index, nothing else, and what changed since."""

import pytest
from msgspec.structs import replace
from psycopg.conninfo import conninfo_to_dict

from memory_tui.engine.engine import Engine
from memory_tui.errors import ApprovalMissing
from memory_tui.shared import connection as connections
from memory_tui.shared import publish
from memory_tui.shared.connection import VERSION, Access, SharedUnavailable, connect, joined
from tests.support.shared_index import Home

ODD = f"# Od\x00d\n\nNUL \x00, a word {'x' * 3000}\n\n日本語のメモ <!-- trigger: rose --> <!-- importance: 7 -->\n"


@pytest.fixture
def laptop(server, team, tmp_path):
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    home.write(MEMORY="# Facts\n\nThe router is an Omada ER605.\n", garden="# Garden\n\nThe roses are by the gate.\n")
    home.join()
    return home


def rows_here(home):
    with Engine.open(home.options) as engine, engine.index.reader() as store:
        for path in store.firsts():
            note = store.file(path)
            for ordinal, p in enumerate(store.passages(note)):
                yield path, note.hash, p.rowid, ordinal, p.chunk_id, p.hash, p.text, p.above, p.vector


def rows_there(home):
    with joined(home.access) as connection:
        rows = connection.execute(
            "select f.path, f.hash, c.seq, ordinal, chunk_id, c.hash, text, prefix, vec "
            "from memory_tui.workspaces('default', true, '{}', '{}') w, memory_tui.files('default', w.ws, 0) f, "
            "memory_tui.chunks('default', w.ws, array[f.path]) c "
            "left join memory_tui.vectors('default', c.ws, array[c.seq]) v on place = 0 order by first_seq, c.seq",
            binary=True,
        ).fetchall()
        for *ids, text, prefix, vector in rows:
            yield *ids, text.decode("utf-8", "surrogatepass"), prefix.decode(), vector


def test_the_rows_there_equal_those_of_the_index(laptop):
    laptop.write(odd=ODD, **{"100%27'\"s": "a name\n"})
    report = laptop.publish()
    assert (report.files, report.passages) == (4, report.vectors)
    assert list(rows_there(laptop)) == list(rows_here(laptop))
    # Only what changed goes again, and what vanished goes; the order stays the publisher's.
    laptop.write(garden="# Garden\n\nThe roses are gone.\n", bees="# Bees\n\nA new hive.\n")
    laptop.remove("odd")
    report = laptop.publish()
    assert (report.files, report.removed) == (2, 1)
    assert list(rows_there(laptop)) == list(rows_here(laptop))
    again = laptop.publish()
    assert (again.files, again.removed, again.passages, again.generation) == (0, 0, 0, report.generation)


def test_nothing_leaves_without_consent_and_memory_only_by_name(server, team, tmp_path):
    home = Home(tmp_path / "h", server.url(team, "anna"), "anna/desktop")
    home.write(MEMORY="# Facts\n\nThe router.\n", garden="# Garden\n\nThe roses.\n")
    with pytest.raises(ApprovalMissing):
        home.publish()
    home.join(publish.NOTES)
    report = home.publish()
    assert (report.files, dict(report.left)) == (1, {publish.MEMORY: 1})
    assert [row[0] for row in rows_there(home)] == ["memory/garden.md"]
    home.join(publish.MEMORY)
    assert home.publish().files == 1
    assert [row[0] for row in rows_there(home)] == ["MEMORY.md", "memory/garden.md"]


def test_a_passage_that_looks_like_a_secret_never_leaves(server, team, laptop):
    key = "AKIA" + "IOSFODNN7QQXMPLE"
    laptop.write(keys=f"# Keys\n\nThe key of the bucket is {key}\n", headed=f"# password: hunter2{key}\n\nbelow\n")
    assert laptop.publish().withheld == 2
    whole = server.run(
        "select string_agg(text::text || prefix::text || annotations, '') from memory_tui.chunk", team
    ) + server.run("select string_agg(title::text || detail, '') from memory_tui.file", team)
    assert key.encode().hex() not in str(whole)
    assert b"roses".hex() in str(whole)


def test_another_recipe_or_a_restored_backup_begins_a_new_incarnation(server, team, laptop):
    def state():
        return server.run("select incarnation, generation from memory_tui.workspace", team)[0]

    laptop.publish()
    first, _ = state()
    server.run("create table kept as select * from memory_tui.workspace", team)
    laptop.write(garden="# Garden\n\nNo roses.\n")
    laptop.publish()
    assert state()[0] == first
    # The backup has the workspace as it was, with its generation of then.
    server.run("update memory_tui.workspace w set generation = k.generation from kept k", team)
    laptop.publish()
    second, _ = state()
    assert second != first
    # An index that was made again counts its passages anew; nobody sees a gap.
    with Engine.open(laptop.options) as engine:
        engine.index.sync(force=True)
    laptop.publish()
    assert state()[0] == second
    there, here = ([row[:2] + row[3:] for row in rows(laptop)] for rows in (rows_there, rows_here))
    assert there == here
    laptop.options = replace(laptop.options, changes=(("chunking.tokens", "50"), ("chunking.overlap", "5")))
    laptop.publish()
    assert state()[0] != second
    there, here = ([row[:2] + row[3:] for row in rows(laptop)] for rows in (rows_there, rows_here))
    assert there == here


TABLES = ("about", "workspace", "member", "file", "chunk", "vec", "since_crash")


def access(url: str, password: str = "") -> Access:
    parameters = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    return Access(parameters, password, "team", "default", "anna/laptop", 600, 2000)


def test_the_schema_is_made_again_and_admits_by_name(server, database):
    server.run("create role dora login")
    owner, dora = access(server.socket_url(database)), access(server.socket_url(database, "dora"))
    with connect(owner) as connection:
        connections.make_schema(connection, owner)
        with pytest.raises(SharedUnavailable) as caught, joined(dora):
            pass
        assert (caught.value.code, "--admit dora" in caught.value.next_step) == ("shared_no_right", True)
        connections.make_schema(connection, owner, ("dora",))
    with joined(dora) as connection:
        assert connection.execute("select version from memory_tui.about").fetchone() == (VERSION,)


def test_what_would_run_is_shown_and_nothing_runs(server, database):
    owner = access(server.socket_url(database))
    server.run('create role "an""na"')
    with connect(owner) as connection:
        script = "\n".join(connections.schema_statements(connection, owner, ('an"na',)))
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
        connections.make_schema(connection, owner)
        connection.execute("update memory_tui.about set version = %s", (version,))
        with pytest.raises(SharedUnavailable) as caught, joined(owner):
            pass
        assert caught.value.code == code
        if version == 0:
            connections.make_schema(connection, owner)
            with joined(owner):
                pass
        else:
            with pytest.raises(SharedUnavailable, match="newer version"):
                connections.make_schema(connection, owner)


def test_an_older_schema_is_migrated_once_with_its_rows(server, database, monkeypatch):
    owner = access(server.socket_url(database))
    with connect(owner) as connection:
        connections.make_schema(connection, owner)
        connection.execute("select memory_tui.join_workspace('default', 'owner/laptop')")
        more = "alter table memory_tui.workspace add motto text default 'none';"
        monkeypatch.setitem(connections.MIGRATIONS, VERSION + 1, more)
        monkeypatch.setattr(connections, "VERSION", VERSION + 1)
        with pytest.raises(SharedUnavailable, match="older version"), joined(owner):
            pass
        for _ in range(2):
            connections.make_schema(connection, owner)
        with joined(owner):
            rows = connection.execute("select name, motto from memory_tui.workspace").fetchall()
            assert rows == [("owner/laptop", "none")]


def test_the_schema_of_another_owner_is_not_touched(server, database):
    owner, anna = access(server.socket_url(database)), access(server.socket_url(database, "anna"))
    with connect(owner) as connection:
        connections.make_schema(connection, owner, ("anna",))
    with connect(anna) as connection, pytest.raises(SharedUnavailable, match="belongs to owner"):
        connections.make_schema(connection, anna)


def test_row_rights_bind_everybody_on_every_table(server, database):
    owner = access(server.socket_url(database))
    with connect(owner) as connection:
        connections.make_schema(connection, owner)
    rows = server.run(
        "select relname, relrowsecurity, relforcerowsecurity from pg_class "
        "where relnamespace = 'memory_tui'::regnamespace and relkind = 'r'",
        database,
    )
    assert {name: (on, forced) for name, on, forced in rows} == dict.fromkeys(TABLES, (True, True))
