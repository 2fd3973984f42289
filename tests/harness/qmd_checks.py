"""Checkers of what is known of a line in QMD's answer: QMD's own tables and the files on disk, read by hand."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_tui.engine.engine import Engine
from memory_tui.qmd import reasons, remarks
from memory_tui.qmd.client import QmdAnswer
from tests.harness.claims import checks, kinds_below
from tests.qmd.conftest import Bench
from tests.support.workspace import put

KINDS: set[type] = kinds_below(reasons.QmdReason) | kinds_below(remarks.QmdRemark)


@dataclass(frozen=True)
class QmdCase:
    """What was asked about one line, what QMD gave, and where its tables lie."""

    engine: Engine
    found: QmdAnswer
    query: str
    path: str
    line: int
    tables: Path
    bench: Bench

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
    _out_of_scope(remarks.OutOfScope(claim.session_key), case)


@checks(remarks.OutOfScope)
def _out_of_scope(claim: remarks.OutOfScope, case: QmdCase) -> None:
    """Who talks to the agent alone gets hits of the same question, and this chat gets none."""
    found = case.engine.backend.ask(case.query, session_key=claim.session_key)
    assert found is not None
    assert not found.hits
    assert not case.found.hits
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


# --- remarks on a whole answer ---------------------------------------------------------------------------------------


def holders(case: QmdCase, names: tuple[str, ...], words: tuple[str, ...]) -> list[set[str]]:
    """For each of `words` the notes of the collections `names` that hold a word which begins with it."""
    notes = case.rows("SELECT d.collection, d.path FROM documents d JOIN documents_fts f ON f.rowid = d.id")
    held = {f"{name}/{path}": case.tokens(name, path) for name, path in notes if name in names}
    assert held
    return [{note for note, own in held.items() if any(o.startswith(word.lower()) for o in own)} for word in words]


@checks(remarks.BlankForQmd)
def _blank(_: remarks.BlankForQmd, case: QmdCase) -> None:
    assert not case.query.strip()


@checks(remarks.NothingOfSource)
def _nothing_of_source(claim: remarks.NothingOfSource, case: QmdCase) -> None:
    """The one source of each collection of these workspaces is that of its name."""
    assert claim.source in ("memory", "sessions")
    assert set(claim.names) == {name for (name,) in case.rows("SELECT name FROM store_collections")}
    assert not any(name.startswith(claim.source) for name in claim.names)
    assert not case.found.asked


@checks(remarks.NoRequiredWord)
def _no_required_word(claim: remarks.NoRequiredWord, case: QmdCase) -> None:
    _no_word(reasons.NoWordForQmd(claim.query), case)


@checks(remarks.NoneHoldsEveryWord)
def _none_holds(claim: remarks.NoneHoldsEveryWord, case: QmdCase) -> None:
    assert not case.found.hits
    asked = case.query.split()
    assert list(claim.words) == [word for word in asked if not word.startswith("-")]
    assert list(claim.ruled_out) == [word[1:] for word in asked if word.startswith("-")]
    assert set(claim.names) == set(case.found.asked)
    both = set.intersection(*holders(case, claim.names, claim.words))
    assert not both - set().union(*holders(case, claim.names, claim.ruled_out))


@checks(remarks.NothingNear)
def _nothing_near(claim: remarks.NothingNear, case: QmdCase) -> None:
    assert (claim.query, claim.names) == (case.query, case.found.asked)
    assert case.found.mode != "search"
    assert case.ranks() == {}


@checks(remarks.HitsLeftOut)
def _left_out(claim: remarks.HitsLeftOut, case: QmdCase) -> None:
    settings = case.engine.plan.settings
    control = json.loads((case.bench.stub.folder / "control.json").read_text())
    assert claim.altogether == case.engine.backend.client.options.max_injected
    assert claim.most == settings.whole("query.maxResults")
    assert claim.given == len(case.found.hits)
    assert sum(len(hit.snippet) for hit in case.found.hits) <= claim.altogether
    assert claim.found == len(json.loads(control["search"]["print"]))


@checks(remarks.AskedAsTyped)
def _as_typed(claim: remarks.AskedAsTyped, case: QmdCase) -> None:
    assert "--no-rerank" in case.found.ran
    assert any(word.startswith("vec: ") for word in case.found.ran)
    assert case.found.mode == "vsearch"
    named = (case.bench.folder / "index.sqlite.qmd" / "xdg-config" / "index.yml").read_text()
    assert re.search(rf"^  (?!{claim.model})embed: ", named, re.MULTILINE)
    assert claim.model == "generate"
    assert len(list(case.bench.folder.rglob("*.gguf"))) == 1


@checks(remarks.FilesChangedSince)
def _changed_since(claim: remarks.FilesChangedSince, case: QmdCase) -> None:
    """Every file that a collection is of, by its hash in QMD's table; one that is gone counts too."""
    changed = 0
    for name, root, pattern in case.rows("SELECT name, path, pattern FROM store_collections"):
        rows = case.rows("SELECT path, hash FROM documents WHERE collection = ? AND active", name)
        found = {path.relative_to(root).as_posix(): path for path in Path(root).glob(pattern) if path.is_file()}
        digests = {below: hashlib.sha256(path.read_bytes()).hexdigest() for below, path in found.items()}
        changed += sum(dict(rows).get(below) != digests.get(below) for below in {*dict(rows), *digests})
    assert claim.files == changed
    assert abs(claim.updated - case.tables.stat().st_mtime) < 60


Said = Iterator[tuple[reasons.QmdReason | remarks.QmdRemark, QmdCase]]


def made(place: Path) -> Said:
    """Lines that QMD gives and that it does not, each for a reason of its own; a chat that its rules keep out.

    Answers that are empty or cut, each for a reason of its own.
    """
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
        yield from _answered(bench, engine, " ", "-Router", "Router giraffe -VLAN", "giraffe")
        yield from _answered(bench, engine, "Router", source="sessions")
        put(bench.workspace, "memory/new.md", text="# New\n\nA cake\n")
        put(bench.workspace, "memory/garden.md", text="# Garden\n\nRouter in the shed\n")
        yield from _asked(bench, engine, [("Router", "memory/new.md", 0), ("Router VLAN", "memory/garden.md", 0)])
        yield from _answered(bench, engine, "Router")
    bench.updated()
    with bench.engine(**{"query.maxResults": "1"}) as engine:
        hits = engine.backend.ask("Router", most=200)
        assert hits is not None
        last = hits.hits[-1].path
        yield from _asked(bench, engine, [("Router", last, 0)])
        word = (bench.workspace / last).read_text().split()[-1]
        yield from _asked(bench, engine, [(f"Router -{word}", last, 0)])
        yield from _asked(bench, engine, [("Router", "MEMORY.md", 4)], "agent:main:telegram:group:7")
        yield from _answered(bench, engine, "Router", session_key="agent:main:telegram:group:7")
        bench.stub.behave(search={"print": "[]"})
        yield from _asked(bench, engine, [("Router VLAN", "MEMORY.md", 0)])
    yield from _of_bounds_and_models(bench)


def _of_bounds_and_models(bench: Bench) -> Said:
    """Rows beyond the bounds; a search by meaning that finds nothing, without the model that rewrites questions."""
    rows = [
        {"file": "qmd://memory-dir-main/garden.md", "score": 1, "snippet": f"@@ -1,1 @@\n{'a' * 900}"},
        {"file": "qmd://memory-dir-main/2026-11-01.md", "score": 1, "snippet": f"@@ -1,1 @@\n{'b' * 900}"},
        {"file": "qmd://memory-root-main/MEMORY.md", "score": 1, "snippet": f"@@ -1,1 @@\n{'c' * 900}"},
    ]
    bench.stub.behave(search={"print": json.dumps(rows)}, query={"print": "[]"})
    with bench.engine(**{"qmd.limits.maxInjectedChars": 1000}) as engine:
        yield from _answered(bench, engine, "Router")
    (bench.folder / "embed.gguf").write_bytes(b"GGUF")
    config = bench.folder / "index.sqlite.qmd" / "xdg-config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "index.yml").write_text(f"collections: {{}}\nmodels:\n  embed: {bench.folder / 'embed.gguf'}\n")
    with closing(sqlite3.connect(bench.qmd_index)) as tables, tables:
        tables.execute("INSERT INTO content_vectors SELECT hash, 0 FROM documents")
    with bench.engine(**{"qmd.searchMode": "vsearch"}) as engine:
        yield from _answered(bench, engine, "Router")


def _answered(bench: Bench, engine: Engine, *asked: str, source: str = "", session_key: str = "") -> Said:
    """What is said of whole answers."""
    for query in asked:
        found = engine.backend.ask(query, session_key=session_key, source=source)
        assert found is not None, engine.backend.fallback()
        case = QmdCase(engine, found, query, "", 0, bench.qmd_index, bench)
        yield from ((claim, case) for claim in found.claims)


def _asked(bench: Bench, engine: Engine, asked: list[tuple[str, str, int]], session_key: str = "") -> Said:
    for query, path, line in asked:
        found = engine.backend.ask(query, session_key=session_key)
        assert found is not None
        case = QmdCase(engine, found, query, path, line, bench.qmd_index, bench)
        yield reasons.why(engine.backend.client, found, path, line), case
