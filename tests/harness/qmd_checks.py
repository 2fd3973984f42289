"""Checkers of what is known of a line in QMD's answer: QMD's own tables and the files on disk, read by hand."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_tui.engine.engine import Engine
from memory_tui.qmd import reasons
from memory_tui.qmd.client import QmdAnswer
from tests.harness.claims import checks, kinds_below
from tests.qmd.conftest import Bench
from tests.support.workspace import put

KINDS: set[type] = kinds_below(reasons.QmdReason)


@dataclass(frozen=True)
class QmdCase:
    """What was asked about one line, what QMD gave, and where its tables lie."""

    engine: Engine
    found: QmdAnswer
    query: str
    path: str
    line: int
    tables: Path

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.tables)) as connection:
            return connection.execute(sql, values).fetchall()

    def file(self, collection: str, below: str) -> Path:
        (root,) = self.rows("SELECT path FROM store_collections WHERE name = ?", collection)
        return Path(root[0]) / below

    def tokens(self, collection: str, below: str) -> list[str]:
        """The words of a note as QMD holds it."""
        ((body,),) = self.rows(
            "SELECT f.body FROM documents d JOIN documents_fts f ON f.rowid = d.id WHERE d.collection = ? AND path = ?",
            collection,
            below,
        )
        return re.findall(r"\w+", body.lower())

    def ranks(self) -> dict[str, int]:
        """The rank of each note among all that QMD has."""
        every = self.engine.backend.ask(self.query, most=200)
        assert every is not None
        return {hit.path: place for place, hit in reversed(list(enumerate(every.hits, 1)))}


@checks(reasons.QmdDenies)
def _denies(claim: reasons.QmdDenies, case: QmdCase) -> None:
    """Who talks to the agent alone gets hits of the same question."""
    assert not case.found.hits
    assert "memory.qmd.scope" in claim.said
    alone = case.engine.backend.ask(case.query, session_key="agent:main:main")
    assert alone is not None
    assert alone.hits


@checks(reasons.QmdGives)
def _gives(claim: reasons.QmdGives, case: QmdCase) -> None:
    hit = case.found.hits[claim.rank - 1]
    assert (hit.path, claim.path, claim.line) == (case.path, case.path, case.line)
    assert not claim.line or hit.start_line <= claim.line <= hit.end_line


@checks(reasons.InNoCollection)
def _no_collection(claim: reasons.InNoCollection, case: QmdCase) -> None:
    collections = case.rows("SELECT name, path, pattern FROM store_collections")
    assert set(claim.names) == {name for name, _, _ in collections}
    assert claim.path == case.path
    note = case.engine.plan.roots.workspace / claim.path
    assert not any(note in Path(root).glob(pattern) for _, root, pattern in collections)


@checks(reasons.NotYetInQmd)
def _not_yet(claim: reasons.NotYetInQmd, case: QmdCase) -> None:
    assert case.file(claim.collection, claim.below).is_file()
    sql = "SELECT count(*) FROM documents WHERE collection = ? AND path = ?"
    assert case.rows(sql, claim.collection, claim.below) == [(0,)]


@checks(reasons.OlderInQmd)
def _older(claim: reasons.OlderInQmd, case: QmdCase) -> None:
    text = case.file(claim.collection, claim.below).read_bytes()
    sql = "SELECT hash FROM documents WHERE collection = ? AND path = ?"
    ((digest,),) = case.rows(sql, claim.collection, claim.below)
    assert digest != hashlib.sha256(text).hexdigest()
    assert claim.detail.endswith(".")


@checks(reasons.OtherPassage)
def _other_passage(claim: reasons.OtherPassage, case: QmdCase) -> None:
    hit = case.found.hits[claim.rank - 1]
    assert (hit.path, hit.start_line, hit.end_line) == (claim.path, claim.first, claim.last)
    assert claim.path == case.path
    assert not claim.first <= case.line <= claim.last
    assert [one.path for one in case.found.hits].count(claim.path) == 1


@checks(reasons.NoWordForQmd)
def _no_word(claim: reasons.NoWordForQmd, case: QmdCase) -> None:
    assert claim.query == case.query
    assert not [part for part in claim.query.split() if re.search(r"\w", part) and not part.startswith("-")]


@checks(reasons.QmdLacksWords)
def _lacks(claim: reasons.QmdLacksWords, case: QmdCase) -> None:
    held = case.tokens(claim.collection, claim.below)
    asked = [word for word in case.query.split() if not word.startswith("-")]
    assert list(claim.words) == [word for word in asked if not any(own.startswith(word.lower()) for own in held)]


@checks(reasons.RuledOut)
def _ruled_out(claim: reasons.RuledOut, case: QmdCase) -> None:
    assert f"-{claim.word}" in case.query.split()
    assert any(own.startswith(claim.word.lower()) for own in case.tokens(claim.collection, claim.below))


@checks(reasons.BelowQmdsLimit)
def _below(claim: reasons.BelowQmdsLimit, case: QmdCase) -> None:
    assert claim.given == len(case.found.hits) < claim.rank
    assert case.ranks()[claim.path] == claim.rank
    assert claim.path == case.path


@checks(reasons.QmdDoesNotSay)
def _does_not_say(claim: reasons.QmdDoesNotSay, case: QmdCase) -> None:
    ranks = case.ranks()
    assert claim.path == case.path
    assert claim.path not in ranks
    assert claim.ranked == len(ranks)


def made(place: Path) -> Iterator[tuple[reasons.QmdReason, QmdCase]]:
    """Lines that QMD gives and that it does not, each for a reason of its own; a chat that its rules keep out."""
    bench = Bench(place)
    bench.updated()
    asked = [
        ("Router VLAN", "MEMORY.md", 4),
        ("Router VLAN", "MEMORY.md", 1),
        ("Router VLAN", "memory/2026-11-01.md", 0),
        ("Router", "more/elsewhere.md", 0),
        ("-Router", "memory/2026-11-01.md", 0),
    ]
    with bench.engine() as engine:
        yield from _asked(bench, engine, asked)
        put(bench.workspace, "memory/new.md", text="# New\n\nA cake\n")
        put(bench.workspace, "memory/garden.md", text="# Garden\n\nRouter in the shed\n")
        yield from _asked(bench, engine, [("Router", "memory/new.md", 0), ("Router VLAN", "memory/garden.md", 0)])
    bench.updated()
    with bench.engine(**{"query.maxResults": "1"}) as engine:
        hits = engine.backend.ask("Router", most=200)
        assert hits is not None
        last = hits.hits[-1].path
        yield from _asked(bench, engine, [("Router", last, 0)])
        word = (bench.workspace / last).read_text().split()[-1]
        yield from _asked(bench, engine, [(f"Router -{word}", last, 0)])
        yield from _asked(bench, engine, [("Router", "MEMORY.md", 4)], "agent:main:telegram:group:7")
        bench.stub.behave(search={"print": "[]"})
        yield from _asked(bench, engine, [("Router VLAN", "MEMORY.md", 0)])


def _asked(
    bench: Bench, engine: Engine, asked: list[tuple[str, str, int]], session_key: str = ""
) -> Iterator[tuple[reasons.QmdReason, QmdCase]]:
    for query, path, line in asked:
        found = engine.backend.ask(query, session_key=session_key)
        assert found is not None
        case = QmdCase(engine, found, query, path, line, bench.qmd_index)
        yield reasons.why(engine.backend.client, found, path, line), case
