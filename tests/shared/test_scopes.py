"""Scopes of a shared index, as people and agents ask them: two homes, one server, and every state in its words."""

import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.errors import QueryError, SettingError
from memory_tui.index import index_write
from memory_tui.index.store import Store
from memory_tui.mcp import wire
from memory_tui.mcp.tools import OTHERS, memory_get, memory_search
from memory_tui.plan import plan
from memory_tui.shared import Record, Scope, mirror, publish, workspace_of
from memory_tui.shared.connection import VERSION, SharedUnavailable
from tests.support.commands import alone
from tests.support.shared_index import ROSES, Home
from tests.support.waiting import LONG
from tests.support.workspace import synced


@pytest.fixture
def run(desk, command):
    def go(*words):
        options = desk.options
        return command(*words, "--workspace", options.workspace, "--config", options.config, "--index", options.index)

    return go


def configure(home, **shared):
    path = Path(home.options.config)
    path.write_text(json.dumps({"shared": json.loads(path.read_text())["shared"] | shared}))


def standing(home, scope):
    with synced(home.options) as engine:
        return engine.of_scope(scope)[1]


def paths(home, scope, question):
    with synced(home.options) as engine:
        return [hit.chunk.path for hit in engine.of_scope(scope)[0].search.search(question).recalled]


def kept_by(home, path):
    """A note as the mirror has it that is kept at `home`, None where it has none; asks no server."""
    file = next(iter(mirror.complete(mirror.folder(home.access))), None)
    if file is None:
        return None
    with closing(Store.open(file, read_only=True)) as store, store.snapshot():
        note = store.note(path)
        return note and store.last_text(note)


def test_bob_finds_a_note_of_anna_by_its_citation_and_reads_it(run):
    code, out, _ = run("search", "who is Gertrude", "--scope", "all", "--json")
    answer = json.loads(out)
    assert (code, answer["shared"]["state"]) == (0, "live")
    assert answer["shared"]["workspaces"] == ["anna/laptop", "bob/desk"]
    assert answer["results"][0]["path"] == "anna/laptop:memory/2026-03-10.md"
    assert answer["results"][0]["citation"] == "anna/laptop:memory/2026-03-10.md#L1-L5"
    code, out, _ = run("get", "anna/laptop:memory/2026-03-10.md", "--json")
    note = json.loads(out)
    assert (code, note["path"], note["text"]) == (0, "anna/laptop:memory/2026-03-10.md", ROSES)
    code, out, err = run("search", "who is Gertrude", "--scope", "anna/laptop")
    assert (code, err.split("\n")[0]) == (0, "memory-tui: Shared index, anna/laptop: live.")
    assert "anna/laptop:memory/2026-03-10.md#L1" in out
    assert "Gertrude" not in run("search", "who is Gertrude")[1]


def test_a_note_is_read_without_a_search_before_and_one_of_ones_own_keeps_its_path(run, desk):
    assert run("get", "anna/laptop:MEMORY.md")[1].endswith("The router of anna is an Omada.\n")
    code, _, err = run("get", "anna/laptop:memory/none.md")
    assert (code, "There is no note" in err) == (2, True)
    (desk.notes / "memory" / "x:y.md").write_text("# Odd\n\nA note with a colon.\n")
    assert "A note with a colon." in run("get", "memory/x:y.md")[1]
    assert paths(desk, "all", "the kettle of bob")[0] == "MEMORY.md"


def test_a_note_that_was_read_before_is_asked_for_again(run, server, laptop, desk):
    note = "anna/laptop:memory/2026-03-10.md"
    for scope in ("anna/laptop", "all"):
        assert run("search", "who is Gertrude", "--scope", scope)[0] == 0
    assert run("get", note)[1] == ROSES
    laptop.write(**{"2026-03-10": "# Garden\n\nNo roses.\n"})
    laptop.publish()
    assert json.loads(run("get", note, "--json")[1])["text"] == "# Garden\n\nNo roses.\n"
    publish.allow(laptop.access, "bob", reads=False)
    code, out, err = run("get", note)
    assert (code, out, "no right to read anna/laptop" in err) == (1, "", True)
    publish.allow(laptop.access, "bob", reads=True)
    assert run("get", note)[0] == 0
    laptop.remove("2026-03-10")
    laptop.publish()
    code, out, err = run("get", note)
    assert (code, out, "There is no note" in err) == (2, "", True)
    with server.stopped():
        code, out, err = run("get", "anna/laptop:MEMORY.md")
        assert (code, "an Omada" in out, "store unreachable since" in err) == (0, True, True)
        answer = json.loads(run("get", "anna/laptop:MEMORY.md", "--json")[1])
        assert (answer["shared"]["state"], answer["shared"]["asOf"][:2]) == ("unreachable", "20")


def test_what_one_mirror_lost_the_right_to_no_other_one_serves_while_the_database_is_away(run, server, laptop):
    for scope in ("anna/laptop", "all"):
        assert run("search", "who is Gertrude", "--scope", scope)[0] == 0
    publish.allow(laptop.access, "bob", reads=False)
    assert run("search", "who is Gertrude", "--scope", "all")[0] == 0
    with server.stopped():
        for words in (("get", "anna/laptop:MEMORY.md"), ("search", "Gertrude", "--scope", "anna/laptop")):
            code, out, err = run(*words)
            assert (code, out, "cannot be reached" in err) == (1, "", True)


def test_a_note_of_which_passages_are_withheld_says_so(run, laptop):
    key = "AKIA" + "IOSFODNN7QQXMPLE"
    more = "It grows by the wall. " * 100
    laptop.write(key=f"The key of the bucket is {key}\n", some=f"# Some\n\n{more}\n\nThe key of the bucket is {key}\n")
    laptop.publish()
    code, out, err = run("get", "anna/laptop:memory/key.md")
    assert (code, out, "not published, as it may hold a secret: 1 passage" in err) == (1, "", True)
    code, out, err = run("get", "anna/laptop:memory/some.md")
    assert (code, "by the wall" in out, "not published, as it may hold a secret: 1 passage" in err) == (0, True, True)


def test_a_database_that_nobody_reached_yet_is_told_by_its_cause(run, desk):
    configure(desk, url="postgresql://bob@127.0.0.1:1/team")
    for words in (("search", "roses", "--scope", "all"), ("shared", "mirror", "all"), ("get", "anna/laptop:MEMORY.md")):
        code, _, err = run(*words)
        assert (words, code, "cannot be reached" in err, "Traceback" in err) == (words, 1, True, False)


def test_a_mirror_that_is_kept_hears_of_a_change_and_does_not_wait_for_its_next_look(desk, laptop, monkeypatch):
    monkeypatch.setattr("memory_tui.engine.engine.KEPT_SECONDS", 10 * LONG)
    configure(desk, mirror={"scope": "anna/laptop"})
    with Engine.open(desk.options) as engine:
        engine.start()
        end, seen = time.monotonic() + LONG, set()
        while len(seen) < 2:
            assert time.monotonic() < end
            # Who does not listen yet misses the first notices.
            laptop.write(news=f"# News\n\nWritten at {time.monotonic()}.\n")
            laptop.publish()
            text = kept_by(desk, "anna/laptop:memory/news.md")
            seen |= {text} if text else set()


def test_agents_search_a_scope_read_a_citation_and_are_told_whose_it_is(desk):
    with synced(desk.options) as engine:
        answer = memory_search(engine, {"query": "who is Gertrude", "scope": "all"}).answer
        jsonschema.validate(answer, wire.listed_tools(shared=True)["memory_search"]["outputSchema"])
        assert answer["shared"]["state"] == "live"
        assert answer["about"].startswith(OTHERS)
        hit = answer["results"][0]
        note = memory_get(engine, {"path": f"{hit['path']}#L{hit['startLine']}-L{hit['endLine']}"})
        jsonschema.validate(note, wire.listed_tools(shared=True)["memory_get"]["outputSchema"])
        assert (note["path"], note["text"]) == (hit["path"], ROSES.removesuffix("\n"))
        assert note["shared"]["words"] == ["live"]
        assert note["about"].startswith(OTHERS)
        assert "shared" not in memory_search(engine, {"query": "kettle"}).answer


def test_who_configured_nothing_meets_no_word_of_it(tmp_path):
    assert "scope" not in wire.listed_tools()["memory_search"]["inputSchema"]["properties"]
    assert "shared" not in wire.listed_tools()["memory_search"]["outputSchema"]["properties"]
    (tmp_path / "MEMORY.md").write_text("# Facts\n\nThe kettle is green.\n")
    code = (
        "import sys\nfrom memory_tui.cli.main import main\n"
        "for words in (['search', 'kettle', '--json'], ['status', '--json'], ['get', 'MEMORY.md', '--json']):\n"
        f"    main([*words, '--workspace', {str(tmp_path)!r}, '--index', {str(tmp_path / 'i.sqlite')!r}])\n"
        "sys.exit('psycopg' in sys.modules)"
    )
    assert '"shared":' not in alone(code)
    with Engine.open(replace(Home(tmp_path / "h", "", "").options, config=None)) as engine, pytest.raises(QueryError):
        memory_search(engine, {"query": "kettle", "scope": "all"})


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.9"])
def test_notes_of_several_workspaces_keep_their_dates_and_what_memory_is(laptop, desk, profile):
    changes = (("profile", profile), ("query.hybrid.temporalDecay.enabled", "true"), ("query.minScore", "0"))
    for home in (laptop, desk):
        home.options = replace(home.options, changes=changes)
        home.publish()
    bases = {}
    for home, scope in ((laptop, "this"), (desk, "this"), (desk, "all")):
        with synced(home.options) as engine:
            trace = engine.of_scope(scope)[0].search.search("anna bob router kettle lawn roses")
            hits = (*trace.recalled, *trace.lost)
            bases[home.name, scope] = {hit.chunk.path: (hit.age_basis, round(hit.age_days or 0)) for hit in hits}
    there = {f"anna/laptop:{path}": basis for path, basis in bases["anna/laptop", "this"].items()}
    assert len(there) == 2
    assert bases["bob/desk", "all"] == there | bases["bob/desk", "this"]


def test_an_index_of_words_alone_is_mirrored_too(laptop, desk):
    for home in (laptop, desk):
        home.options = replace(home.options, provider="none")
        home.publish()
    assert paths(desk, "all", "Gertrude") == ["anna/laptop:memory/2026-03-10.md"]


def test_a_group_means_what_its_role_may_read(server, team, laptop, desk):
    server.run("create role builders; grant builders to bob")
    with pytest.raises(SharedUnavailable, match="group:builders: no right to read group:builders"):
        standing(desk, "group:builders")
    publish.allow(laptop.access, "builders", reads=True)
    assert standing(desk, "group:builders").workspaces == ("anna/laptop",)


def test_a_scope_is_read_as_it_is_written():
    assert str(Scope.of(" group:team, bob/desk,this ", "anna/laptop")) == "anna/laptop,bob/desk,group:team"
    assert str(Scope.of("bob/desk,all", "anna/laptop")) == "all"
    for text in ("", "bob", "a/b/c", "group:"):
        with pytest.raises(SettingError):
            Scope.of(text, "anna/laptop")
    assert workspace_of("anna/laptop:MEMORY.md") == "anna/laptop"
    assert workspace_of("a:b'%s/x y:memory/c:d.md") == "a:b'%s/x y"
    assert {workspace_of(path) for path in ("MEMORY.md", "a:b.md", "/x:y", "C:/x/y.md", "a/b/c:d.md", "a/b:")} == {""}


def test_a_stopped_server_is_told_the_mirror_answers_and_is_live_again(server, run):
    assert run("search", "Gertrude", "--scope", "all")[0] == 0
    with server.stopped():
        code, out, err = run("search", "Gertrude", "--scope", "all", "--json")
        answer = json.loads(out)
        assert (code, answer["shared"]["state"]) == (0, "unreachable")
        assert answer["results"][0]["path"] == "anna/laptop:memory/2026-03-10.md"
        clock = time.strftime("%H:")
        assert answer["shared"]["words"][0].startswith(f"store unreachable since {clock}")
        assert f", mirror of {clock}" in answer["shared"]["words"][0]
        code, out, err = run("search", "Gertrude", "--scope", "all")
        assert (code, "store unreachable since" in err.split("\n")[0]) == (0, True)
        assert run("get", "anna/laptop:memory/2026-03-10.md")[1] == ROSES
        code, _, err = run("search", "Gertrude", "--scope", "anna/laptop")
        assert (code, "cannot be reached" in err) == (1, True)
    began = time.monotonic()
    while json.loads(run("search", "Gertrude", "--scope", "all", "--json")[1])["shared"]["state"] != "live":
        assert time.monotonic() - began < 10


def test_status_tells_how_the_mirror_stands_that_is_kept_or_was_asked_last(run, desk):
    assert "shared" not in json.loads(run("status", "--json")[1])
    assert run("search", "roses", "--scope", "all")[0] == 0
    assert "Shared index, all: live." in run("status")[1]
    configure(desk, mirror={"scope": "anna/laptop"})
    assert json.loads(run("status", "--json")[1])["shared"]["words"] == ["live"]
    assert "Shared index, anna/laptop: live." in run("status")[1]


def test_who_waits_longer_than_that_is_answered_from_the_mirror(server, team, laptop, desk):
    assert standing(desk, "all").state == "live"
    laptop.write(bees="# Bees\n\nA new hive called Beatrice.\n")
    laptop.publish()
    configure(desk, askTimeoutMs=300)
    with server.connected(team) as other, Engine.open(desk.options) as engine, other.transaction():
        other.execute("lock table memory_tui.file in access exclusive mode")
        began = time.monotonic()
        answering, state = engine.of_scope("all")
        assert time.monotonic() - began < 2
        assert (state.state, state.words[0].endswith(" s behind")) == ("behind", True)
        assert answering.search.search("Gertrude").recalled
    configure(desk, askTimeoutMs=2000)
    assert standing(desk, "all").state == "live"
    assert paths(desk, "all", "Beatrice")[0] == "anna/laptop:memory/bees.md"


def test_a_silent_publisher_a_lost_right_and_a_newer_schema_are_told(server, team, laptop, desk):
    server.run("update memory_tui.workspace set heard = now() - interval '3 hours 5 min' where ws = 1", team)
    assert standing(desk, "all").words == ("live", "publisher of anna/laptop silent for 3 h")
    words = standing(desk, "anna/laptop,anna/other").words[1:]
    assert words == ("publisher of anna/laptop silent for 3 h", "no right to read anna/other")
    server.run("update memory_tui.about set version = 99", team)
    state = standing(desk, "all")
    assert (state.state, state.words[0].split(",")[0]) == ("newer", "schema newer than this program")
    assert paths(desk, "all", "Gertrude")[0] == "anna/laptop:memory/2026-03-10.md"
    server.run(f"update memory_tui.about set version = {VERSION}", team)
    publish.allow(laptop.access, "bob", reads=False)
    for nobodys in ("anna/laptop", "nobody/nothing"):
        with pytest.raises(SharedUnavailable, match=f"nothing to read for {nobodys}: no right to read {nobodys}"):
            standing(desk, nobodys)
    assert standing(desk, "all").workspaces == ("bob/desk",)
    assert "anna/laptop:memory/2026-03-10.md" not in paths(desk, "all", "Gertrude")


def test_what_is_cut_otherwise_or_too_much_is_not_mirrored_and_told(laptop, desk):
    laptop.options = replace(laptop.options, changes=(("chunking.tokens", "100"),))
    laptop.publish()
    with pytest.raises(SharedUnavailable, match="anna/laptop is cut or embedded otherwise, and not searched"):
        standing(desk, "anna/laptop")
    configure(desk, mirror={"maxChunks": 1})
    with pytest.raises(SettingError, match="2 passages, and a mirror at most 1"):
        standing(desk, "bob/desk")


def _rows(home, scope="all"):
    with synced(home.options) as engine:
        mirror = engine.of_scope(scope)[0]
        assert mirror.search.problems() == ()
        with mirror.index.reader() as store:
            return {note.shown: [row[1:8] for row in store.passages(note)] for note in store.indexed().values()}


def test_a_restored_backup_is_noticed(server, team, laptop, desk):
    for table in ("workspace", "file", "chunk", "vec"):
        server.run(f"create table public.old_{table} as table memory_tui.{table}", team)
    before = _rows(desk)
    laptop.write(bees="# Bees\n\nA new hive.\n", **{"2026-03-10": "# Garden\n\nNo roses.\n"})
    laptop.publish()
    assert _rows(desk).keys() - before.keys() == {"anna/laptop:memory/bees.md"}
    columns = "generation = o.generation, incarnation = o.incarnation, index_state = o.index_state"
    server.run(f"update memory_tui.workspace w set {columns} from public.old_workspace o where o.ws = w.ws", team)
    for table in ("vec", "chunk", "file"):
        server.run(f"delete from memory_tui.{table}", team)
        server.run(f"insert into memory_tui.{table} select * from public.old_{table}", team)
    assert _rows(desk) == before
    laptop.publish()
    after = _rows(desk)
    assert after.keys() - before.keys() == {"anna/laptop:memory/bees.md"}
    assert "No roses" in str(after["anna/laptop:memory/2026-03-10.md"])
    publish.leave(plan(laptop.options), laptop.access)
    laptop.join()
    laptop.publish()
    publish.allow(laptop.access, "bob", reads=True)
    assert _rows(desk) == after


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_that_is_a_day_off_neither_silences_a_publisher_nor_loses_a_mirror(hours, laptop, desk, monkeypatch):
    assert standing(desk, "all").words == ("live",)
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + hours * 3600)
        laptop.write(bees="# Bees\n\nA new hive called Beatrice.\n")
        assert laptop.publish().files == 1
        assert standing(desk, "all").words == ("live",)
        assert paths(desk, "all", "Beatrice")[0] == "anna/laptop:memory/bees.md"
    assert standing(desk, "all").words == ("live",)
    assert len(_rows(desk)) == 5


def test_quotes_signs_and_other_scripts_may_be_in_the_names_of_a_workspace_and_a_note(server, team, tmp_path, run):
    name, note = 'anna/it\'s "100%s" %(x)s \\ 日本', "memory/a'b\"%27 %s.md"
    home = Home(tmp_path / "odd", server.url(team, "anna"), name)
    (home.notes / note).write_text("# Odd\n\nThe heron is called Sieglinde.\n")
    home.join()
    home.publish()
    publish.allow(home.access, "bob", reads=True)
    code, out, err = run("search", "who is Sieglinde", "--scope", name, "--json")
    assert (code, json.loads(out)["results"][0]["path"], err) == (0, f"{name}:{note}", "")
    assert json.loads(run("get", f"{name}:{note}", "--json")[1])["text"].startswith("# Odd")


@pytest.mark.parametrize(
    "harm",
    [
        "update memory_tui.chunk set text = '\\xff' where ws = 1",
        "update memory_tui.chunk set text = 'another text' where ws = 1",
        "update memory_tui.chunk set start_line = 0 where ws = 1",
        "update memory_tui.chunk set annotations = '{' where ws = 1",
        "update memory_tui.vec set vec = '[1, 2, 3]' where ws = 1",
        "update memory_tui.vec set vec = vec + vec where ws = 1",
        "update memory_tui.vec set place = 1, hash = '' where ws = 1",
        "update memory_tui.file set title = '\\xff' where ws = 1",
    ],
)
def test_rows_that_no_publisher_of_ours_wrote_harm_nobody(harm, server, team, laptop, desk):
    server.run(harm, team)
    words = standing(desk, "all").words
    assert words == ("live", "what is new of anna/laptop makes no sense, and was left out")
    assert paths(desk, "all", "the kettle of bob")[0] == "MEMORY.md"
    assert _rows(desk).keys() == {"MEMORY.md", "memory/2026-03-11.md"}


def test_who_is_killed_while_it_fetches_leaves_whole_workspaces_and_two_may_fetch_at_once(desk):
    options = desk.options
    where = ["--workspace", options.workspace, "--config", options.config, "--index", options.index]
    code = (
        "import os, sys\nfrom memory_tui.cli.main import main\nfrom memory_tui.index import index_write\n"
        "if sys.argv[1] == 'killed':\n    index_write.attach_windows = lambda *_: os._exit(9)\n"
        f"sys.exit(main(['shared', 'mirror', 'all', *{where!r}]))"
    )
    assert subprocess.run([sys.executable, "-c", code, "killed"], check=False).returncode == 9
    (path,) = mirror.folder(desk.access).glob("*.sqlite")
    with closing(Store.open(path)) as store:
        assert store.indexed() == {}
    both = [subprocess.Popen([sys.executable, "-c", code, "whole"], stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate(timeout=LONG)[0] for process in both] == [b"Shared index, all: live.\n"] * 2
    assert len(_rows(desk)) == 4


def test_a_mirror_that_nobody_asked_for_in_a_month_is_deleted(desk):
    standing(desk, "anna/laptop")
    place = mirror.folder(desk.access)
    (old,) = mirror.complete(place)
    record = Record.read(old.with_suffix(".json"))
    replace(record, as_of=record.as_of - 29 * 86_400).write(old.with_suffix(".json"))
    standing(desk, "all")
    assert len(mirror.complete(place)) == 2
    replace(record, as_of=record.as_of - 31 * 86_400).write(old.with_suffix(".json"))
    standing(desk, "all")
    assert [path.name for path in place.iterdir() if path.name.startswith(old.stem)] == []
    assert standing(desk, "anna/laptop").state == "live"


def test_a_damaged_mirror_is_fetched_again_and_never_filled_with_notes_of_this_machine(run, desk):
    before = _rows(desk)
    with Engine.open(desk.options) as engine:
        path = engine.scopes.mirror("all")[0]
    with closing(Store.open(path)) as store, store.writing():
        store.query("UPDATE chunks SET text = 'another text'")
    run("search", "Gertrude", "--scope", "all")
    assert run("search", "Gertrude", "--scope", "all")[0] == 0
    assert _rows(desk) == before
    with closing(Store.open(path, read_only=True)) as store:
        assert not store.has_folder


def test_a_workspace_is_there_whole_or_not_at_all(server, team, desk):
    server.run("revoke execute on function memory_tui.vectors from memory_tui_member", team)
    with pytest.raises(SharedUnavailable):
        standing(desk, "anna/laptop")
    server.run("grant execute on function memory_tui.vectors to memory_tui_member", team)
    assert len(_rows(desk, "anna/laptop")) == 2


def test_a_note_whose_vectors_came_later_keeps_its_place_and_windows_come_along(laptop, desk):
    before = _ids(desk)
    with synced(laptop.options) as engine:

        def change(store):
            with store.writing():
                store.query("UPDATE files SET mtime = mtime + 1 WHERE path = 'MEMORY.md'")
            digest = store.passages(store.file("MEMORY.md"))[0].hash
            ids = store.cached(store.identity(), [digest])
            index_write.attach_windows(store, {digest: [ids[digest], ids[digest]]})
            return store.windows()[1].tolist()

        windows = engine.index.writer.run(change)
        with engine.index.reader() as store:
            publish.publish(store, laptop.access, publish.consent(engine.plan, laptop.access))
    assert _ids(desk) == before
    with Engine.open(desk.options) as engine:
        mirror = engine.of_scope("anna/laptop")[0]
        with mirror.index.reader() as store:
            assert store.windows()[1].tolist() == windows
            assert not store.has_folder
        assert not mirror.index.sync(force=True).changed


def _ids(home):
    with synced(home.options) as engine, engine.of_scope("anna/laptop")[0].index.reader() as store:
        return [row.rowid for note in store.indexed().values() for row in store.chunks_of(note.path, note.workspace)]
