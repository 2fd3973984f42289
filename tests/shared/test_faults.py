"""The commands as a person runs them; each thing that can be wrong with a database has a code and a next step."""

import contextlib
import json
import os
import subprocess
import sys

import psycopg
import pytest
from msgspec.structs import replace

from memory_tui import events
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options, plan
from memory_tui.shared import connection
from memory_tui.shared.connection import FAULTS, SharedUnavailable
from tests.support.postgres import DEBIAN, Server
from tests.support.shared_index import Home, config


def refused(tmp_path, url, **more):
    options = Options(workspace=str(tmp_path), config=config(tmp_path, url, "anna/laptop", **more))

    def meet():
        with connection.joined(connection.access(plan(options))):
            pass

    with pytest.raises(SharedUnavailable) as caught:
        meet()
    error = caught.value
    assert error.next_step
    assert error.message
    assert "correct horse" not in json.dumps(error.as_dict())
    assert "hunter2" not in json.dumps(error.as_dict())
    return error.code


def test_a_wrong_address_is_named(server, team, tmp_path):
    url = server.url(team, "anna")
    assert refused(tmp_path, url.replace(str(server.port), "1")) == "shared_unreachable"
    assert refused(tmp_path, "postgresql://anna@no-such-host.invalid/team") == "shared_host"
    assert refused(tmp_path, server.url("nowhere", "anna")) == "shared_database"
    assert refused(tmp_path, url, password="hunter2") == "shared_password"
    assert refused(tmp_path, url, password="") == "shared_password"
    assert refused(tmp_path, server.url(team, "nobody at all")) in ("shared_password", "shared_setting")
    assert refused(tmp_path, "mysql://team") == "shared_setting"
    assert refused(tmp_path, "") == "shared_setting"
    assert refused(tmp_path, url.replace("anna@", "anna:hunter2@")) == "shared_setting"
    assert refused(tmp_path, f"{url}?service=team") == "shared_setting"


def test_a_password_comes_from_the_environment_a_file_or_a_reference_and_is_not_shown(
    server, team, tmp_path, monkeypatch, printed
):
    url, passes = server.url(team, "anna"), tmp_path / "pgpass"
    passes.write_text(f"127.0.0.1:{server.port}:{team}:anna:correct horse\n")
    passes.chmod(0o600)
    for name, value, password in (
        ("PGPASSWORD", "correct horse", ""),
        ("PGPASSFILE", str(passes), ""),
        ("TEAM_PASSWORD", "correct horse", "${TEAM_PASSWORD}"),
        ("TEAM_PASSWORD", "correct horse", {"source": "env", "provider": "default", "id": "TEAM_PASSWORD"}),
    ):
        assert refused(tmp_path, url, password=password) == "shared_password", name
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            options = Options(workspace=str(tmp_path), config=config(tmp_path, url, "anna/laptop", password=password))
            there = connection.access(plan(options))
            with connection.joined(there):
                pass
            assert "correct horse" not in repr(there) + printed("config", "--json", "--config", str(options.config))


def test_nothing_is_sent_to_another_machine_without_proof_of_its_name(server, team, tmp_path):
    # The address is of this machine, but the name is not: the server has no certificate of it.
    url = server.url(team, "anna").replace("127.0.0.1", "db.example.com") + "?hostaddr=127.0.0.1"
    assert refused(tmp_path, url) == "shared_certificate"
    for mode in ("disable", "prefer", "require", "verify-ca"):
        assert refused(tmp_path, f"{url}&sslmode={mode}") == "shared_setting"
    assert refused(tmp_path, server.url(team, "anna") + "?hostaddr=192.0.2.1&sslmode=require") == "shared_setting"


def test_what_a_server_cannot_do_is_named(server, team, tmp_path):
    url = server.url(team, "anna")
    server.run("update pg_extension set extversion = '0.6.2' where extname = 'vector'", team)
    assert refused(tmp_path, url) == "shared_no_extension"
    server.run("update pg_extension set extversion = '0.8.0' where extname = 'vector'", team)
    for setting, undo, code in (
        ("connection limit 0", "connection limit -1", "shared_connections"),
        ("set role = 'bob'", "reset role", "shared_pooled"),
    ):
        server.run("grant bob to anna")
        server.run(f"alter role anna {setting}")
        try:
            assert refused(tmp_path, url) == code
        finally:
            server.run(f"alter role anna {undo}")
            server.run("revoke bob from anna")
    server.run("revoke usage on schema memory_tui from memory_tui_member", team)
    assert refused(tmp_path, url) == "shared_no_right"
    server.run("alter table memory_tui.about rename column version to edition", team)
    assert refused(tmp_path, server.socket_url(team)) == "shared_altered"


def test_a_server_without_a_free_connection_is_named(server, team, tmp_path):
    with contextlib.ExitStack() as held:
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                held.enter_context(server.connected(team, "carl"))
        assert refused(tmp_path, server.url(team, "anna")) == "shared_connections"


def test_a_server_that_is_too_old_is_named(server, team, tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "OLDEST_SERVER", 99)
    assert refused(tmp_path, server.url(team, "anna")) == "shared_old_server"


def test_a_publisher_meets_a_database_that_is_read_only_or_altered(server, team, tmp_path):
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    home.write(garden="# Garden\n\nThe roses.\n")
    home.join()
    for sql, undo, code in (
        (
            f"alter database {team} set default_transaction_read_only = on",
            f"alter database {team} reset all",
            "read_only",
        ),
        ("alter table memory_tui.chunk rename to passage", "alter table memory_tui.passage rename to chunk", "altered"),
        ("alter table memory_tui.chunk add extra int", "alter table memory_tui.chunk drop extra", ""),
    ):
        server.run(sql, team)
        if code:
            with pytest.raises(SharedUnavailable) as caught:
                home.publish()
            assert caught.value.code == f"shared_{code}"
        with server.connected(team) as connection:
            connection.execute("set default_transaction_read_only = off")
            connection.execute(undo)
    assert home.publish().files == 1


def test_a_workspace_that_has_not_joined_is_told_how(server, team, tmp_path):
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    home.write(garden="# Garden\n\nThe roses.\n")
    home.join()
    server.run("delete from memory_tui.workspace", team)
    with pytest.raises(SharedUnavailable, match="has not joined") as caught:
        home.publish()
    assert caught.value.next_step == "memory-tui shared join."


@pytest.fixture(scope="module")
def bare():
    """PostgreSQL 15 of Debian: it has no pgvector, and speaks TLS."""
    assert DEBIAN.is_dir(), "Debian's postgresql-15 is not here: apt-get install postgresql-15"
    server = Server(DEBIAN)
    yield server
    server.remove()


def test_a_server_without_pgvector_is_refused_with_what_to_install(bare, tmp_path):
    options = Options(workspace=str(tmp_path), config=config(tmp_path, bare.socket_url(), "anna/laptop"))
    there = connection.access(plan(options))
    with connection.connect(there) as hung, pytest.raises(SharedUnavailable) as caught:
        connection.make_schema(hung, there)
    assert caught.value.code == "shared_no_extension"
    assert "create extension vector" in caught.value.next_step
    assert refused(tmp_path, bare.socket_url()) == "shared_no_schema"


def test_a_certificate_has_to_be_of_the_server_and_of_an_authority_that_is_trusted(bare, tmp_path):
    key, certificate = bare.folder / "key", bare.folder / "certificate"
    words = ["-subj", "/CN=db.example.com", "-addext", "subjectAltName=DNS:db.example.com"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *words]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    owner = bare.folder.stat()
    os.chown(key, owner.st_uid, owner.st_gid)
    key.chmod(0o600)
    for name, value in (("ssl_cert_file", certificate), ("ssl_key_file", key), ("ssl", "on")):
        bare.run(f"alter system set {name} = '{value}'")
    bare.stop()
    bare.start()
    url, trusted = bare.url("postgres", "anna"), f"?hostaddr=127.0.0.1&sslrootcert={certificate}"
    # It is reached, and only lacks a shared index.
    assert refused(tmp_path, url.replace("127.0.0.1", "db.example.com") + trusted) == "shared_no_schema"
    assert refused(tmp_path, url.replace("127.0.0.1", "other.example.com") + trusted) == "shared_certificate"
    unknown = url.replace("127.0.0.1", "db.example.com") + "?hostaddr=127.0.0.1"
    assert refused(tmp_path, unknown) == "shared_certificate"


def test_each_fault_has_a_next_step_that_can_be_filled_in():
    for fault in FAULTS:
        fields = {"where": "W", "login": "L", "detail": "D"}
        assert fault.text.format(**fields)
        assert fault.next_step.format(**fields)
    assert len({fault.code for fault in FAULTS}) == len(FAULTS)


@pytest.fixture
def run(server, database, tmp_path, command):
    home = Home(tmp_path / "laptop", server.url(database, "anna"), "anna/laptop")
    home.write(MEMORY="# Facts\n\nThe router.\n", garden="# Garden\n\nThe roses.\n")

    def go(*words, url=""):
        place = config(tmp_path, url, "anna/owner") if url else home.options.config
        where = ["--workspace", str(home.notes), "--config", place, "--index", home.options.index]
        return command(*words, *where)

    go.home = home
    return go


def test_from_an_empty_database_to_a_published_workspace(run, server, database):
    owner = server.socket_url(database)
    code, out, _ = run("shared", "init", "--dry-run", "--admit", "anna", url=owner)
    assert (code, "create table if not exists memory_tui.file" in out, "\u240a" in out) == (0, True, False)
    code, _, err = run("shared", "join", "--yes")
    assert (code, "has no shared index" in err) == (1, True)
    code, out, _ = run("shared", "init", "--admit", "anna", "--yes", "--json", url=owner)
    assert (code, json.loads(out)["written"]) == (0, True)
    code, _, err = run("shared", "join", "--let", "bob", "--unlet", "carl's")
    assert (code, "MEMORY.md: nothing without --memory-md" in err) == (1, True)
    assert """memory-tui shared join --let bob --unlet 'carl'"'"'s' --yes.""" in err
    code, _, err = run("shared", "join", "--let", "nobody")
    assert (code, "there is no login or role nobody" in err, "MEMORY.md" in err) == (1, True, False)
    code, out, err = run("shared", "join", "--yes", "--let", "bob", "--json")
    assert (code, err, json.loads(out)["approved"], json.loads(out)["let"]) == (0, "", ["shared"], ["bob"])
    code, out, _ = run("shared", "publish", "--once")
    assert (code, "1 note published" in out, "shared join --memory-md" in out) == (0, True, True)
    code, out, _ = run("shared", "verify", "--against-disk")
    assert (code, "is published as it is indexed" in out) == (0, True)
    run.home.write(garden="# Garden\n\nNo roses.\n")
    code, out, _ = run("shared", "verify", "--against-disk", "--json")
    assert (code, json.loads(out)["problems"]) == (1, ["memory/garden.md: its file is another one by now"])
    code, out, _ = run("provider")
    assert "shared at 127.0.0.1" in out
    code, out, _ = run("shared", "join", "--leave")
    assert (code, server.run("select count(*) from memory_tui.chunk", database)) == (0, [(0,)])
    code, _, err = run("shared", "publish", "--once")
    assert (code, "Nobody agreed" in err) == (1, True)


def test_an_owner_is_warned_that_no_right_binds_a_superuser(run, server, database):
    owner = server.socket_url(database)
    run("shared", "init", "--yes", url=owner)
    code, _, err = run("shared", "join", "--yes", url=owner)
    assert (code, "it is a superuser, or has BYPASSRLS" in err) == (0, True)


def test_a_login_that_is_not_there_is_not_admitted(run, server, database):
    code, _, err = run("shared", "init", "--admit", "nosuch", "--yes", url=server.socket_url(database))
    assert (code, "there is no login or role nosuch" in err, "drop" in err) == (1, True, False)


@pytest.mark.parametrize(
    "name",
    ["", "laptop", "bob/laptop", "anna/a,b", "anna/a\nb", "anna/a:b", "anna/a ", "anna/a/b", "anna/\x7f", "anna/\x85"],
)
def test_a_name_begins_with_the_login_and_can_be_written(name, run, server, database, tmp_path, command):
    run("shared", "init", "--admit", "anna", "--yes", url=server.socket_url(database))
    home = Home(tmp_path / "other", server.url(database, "anna"), name)
    code, _, err = command("shared", "join", "--yes", "--workspace", str(home.notes), "--config", home.options.config)
    assert (code in (1, 2), "MEMORY.md" in err) == (True, False)
    assert server.run("select count(*) from memory_tui.workspace", database) == [(0,)]


def test_without_the_extra_the_line_that_installs_it_is_told(run, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "psycopg" or "memory_tui.shared." in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "memory_tui.cli.shared", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    code, _, err = run("shared", "verify")
    assert (code, ".[postgres]" in err) == (1, True)
    code, _, err = run("index")
    assert (code, "postgres" in err) == (0, False)
    place = config(run.home.notes.parent, "postgresql://anna@127.0.0.1:1/team", "anna/keeper", publish=True)
    news = []
    with Engine.open(replace(run.home.options, config=place), news.append) as engine:
        engine.start()
        assert any("extra postgres" in event.text for event in news if isinstance(event, events.Noticed))
