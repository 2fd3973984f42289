"""What a publisher puts into the shared index: the rows of its own index, nothing else, and what changed since."""

import hashlib

import numpy as np
import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.errors import ApprovalMissing
from memory_tui.shared import publish
from memory_tui.shared.connection import joined
from tests.support.shared_index import Home

ODD = f"# Od\x00d\n\nNUL \x00, a word {'x' * 3000}\n\n日本語のメモ <!-- trigger: rose --> <!-- importance: 7 -->\n"


@pytest.fixture
def laptop(server, team, tmp_path):
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    home.write(MEMORY="# Facts\n\nThe router is an Omada ER605.\n", garden="# Garden\n\nThe roses are by the gate.\n")
    home.join()
    return home


def rows_here(home):
    """Every passage of the local index, as it is published."""
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
    report = laptop.publish()
    assert report.withheld == 2
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


def test_vectors_come_in_the_bytes_of_the_index(laptop):
    laptop.publish()
    (*_, vector), *_ = rows_there(laptop)
    assert np.linalg.norm(np.frombuffer(vector, np.float32)) == pytest.approx(1, abs=1e-5)


def test_the_hash_of_a_passage_is_that_of_its_text(laptop):
    laptop.publish()
    for *_, digest, text, _, _ in rows_there(laptop):
        assert hashlib.sha256(text.encode()).hexdigest() == digest
