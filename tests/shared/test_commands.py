"""`memory-tui shared`, as a person runs it: the schema, consent with a preview, a publication, what is wrong there."""

import json
import sys

import pytest
from msgspec.structs import replace

from memory_tui import events
from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from tests.support.shared_index import Home, config


@pytest.fixture
def run(server, database, tmp_path, capsys):
    home = Home(tmp_path / "laptop", server.url(database, "anna"), "anna/laptop")
    home.write(MEMORY="# Facts\n\nThe router.\n", garden="# Garden\n\nThe roses.\n")

    def go(*words, url=""):
        place = config(tmp_path, url, "anna/owner") if url else home.options.config
        where = ["--workspace", str(home.notes), "--config", place, "--index", home.options.index]
        code = main.main([*words, *where])
        return code, *capsys.readouterr()

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
def test_a_name_begins_with_the_login_and_can_be_written(name, run, server, database, tmp_path, capsys):
    run("shared", "init", "--admit", "anna", "--yes", url=server.socket_url(database))
    home = Home(tmp_path / "other", server.url(database, "anna"), name)
    code = main.main(["shared", "join", "--yes", "--workspace", str(home.notes), "--config", home.options.config])
    assert (code in (1, 2), "MEMORY.md" in capsys.readouterr().err) == (True, False)
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
