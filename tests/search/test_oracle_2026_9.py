"""The recorded answers of OpenClaw 2026.9.6, for every recorded configuration and query.

bm25 ties by row, so the index is written in the recorded order of files; equal distances stand as sqlite-vec 0.1.9
leaves them (section 7.5 of the specification), because the recorded program cuts inside such ties.
"""

import json
import time
from collections import Counter
from contextlib import closing

import numpy as np
import pytest
from msgspec.structs import replace

from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json
from memory_tui.index import index_write
from memory_tui.index.index_write import cut
from memory_tui.index.store import Store
from memory_tui.jsstring import utf16_head
from memory_tui.plan import Options, plan
from memory_tui.providers.builtin import hash_vector
from memory_tui.search.corpus import Corpus
from memory_tui.search.rank import LENGTH
from memory_tui.workspace import roots
from tests.support.paths import oracles

ORACLE = oracles() / "oracle-2026.9"
RELEASE = ORACLE / "2026.9.6"
CONFIGURATIONS = sorted(path.parent.name for path in RELEASE.glob("*/config.json") if "sessions" not in str(path))
"""All but sessions, which are conversations of OpenClaw's own database and archives of it."""


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def configuration(name):
    return json.loads((RELEASE / name / "config.json").read_text("utf-8"))


def opened(name, workspaces, place):
    """An engine on the configuration `name` as it was recorded, its index written in the recorded order of files."""
    recorded = configuration(name)
    workspace = workspaces[recorded["workspace"]]
    config = place / "openclaw.json"
    config.write_text(json.dumps(recorded["config"]).replace("WORKSPACE", str(workspace)))
    changes = {"profile": "openclaw-2026.9"}
    changes |= {key: str(recorded["options"][key]) for key in ("maxResults", "minScore") if key in recorded["options"]}
    options = Options(
        config=str(config),
        index=str(place / "index.sqlite"),
        # The vectors that the recorded program was given, without the server that gave them.
        provider="" if recorded["config"]["memory"]["search"]["provider"] == "none" else "scripted",
        now=recorded["nowMs"] / 1000,
        changes=tuple(changes.items()),
        projects=tuple(recorded["options"].get("activeProjectKeys", ())),
    )
    engine = Engine.open(options)
    engine.index.sync()
    order = RELEASE / (recorded["indexOf"] or name) / "chunks.jsonl"
    if order.is_file():
        rewrite(place / "index.sqlite", plan(options).roots, [row["path"] for row in lines(order)])
    return engine


def rewrite(index, places, paths):
    """Put the files of the index at `index` into the order of `paths`."""
    found = {note.path: note for note in roots.scan(places).notes}
    with closing(Store.open(index)) as store:
        recipe = store.recipe()
        new = [cut(roots.read(found[path]), "memory", recipe, time.time()) for path in dict.fromkeys(paths)]
        hashes = [chunk.hash for one in new for chunk in one.chunks]
        index_write.replace_files(store, new, recipe.identity.model, store.cached(recipe.identity, hashes))


def total(products):
    """The sums of rows, added up one by one in single precision as sqlite-vec does."""
    return np.add.accumulate(products, axis=-1, dtype=np.float32)[..., -1]


def in_their_order(evidence, corpus, squares, store):
    """`evidence` with the 200 nearest as sqlite-vec 0.1.9 gives them; `squares` are those of lengths in `corpus`."""
    matrix = corpus.matrix
    if evidence.cosine is None:
        return evidence
    if not matrix.any(axis=1).all():
        # The recorded program loses its whole vector side by one vector of zeros, a fault that is not copied.
        return replace(evidence, nearest=evidence.nearest[:0])
    query = hash_vector(evidence.question.query.strip())

    apart = np.sqrt(total((matrix - query) ** 2)).astype(np.float32)
    rows = np.arange(len(matrix))
    by_l2 = np.lexsort((-rows, rows // 1024, apart))[:1600]
    lengths = np.sqrt(squares) * np.sqrt(total(query * query).astype(np.float64))
    distance = (1.0 - total(matrix * query).astype(np.float64) / lengths).astype(np.float32)
    nearest = by_l2[np.argsort(distance[by_l2], kind="stable")][:200]
    more = store.texts([rowid for rowid in corpus.refs.rowids[nearest].tolist() if rowid not in evidence.texts])
    return replace(evidence, nearest=nearest, texts={**evidence.texts, **more})


def result(candidate, trace):
    """A hit in the shape that the recorded program gives."""
    found = trace_json.result(candidate, trace.rules.profile.name)
    own = ["citation"] if trace.rules.mode == "hybrid" else ["citation", "vectorScore"]
    return {key: value for key, value in found.items() if key not in own}


def expected(recorded, texts, mtimes):
    """A recorded hit with what the recording leaves out because it is as usual."""
    found = {key: value for key, value in recorded.items() if key != "chunk"}
    snippet = found.get("snippet", texts.get(recorded["chunk"]))
    if "provenance" not in found:
        observed = int(mtimes[recorded["path"]])
        found["provenance"] = {"originClass": "agent", "sessionKind": "unknown", "observedAt": observed}
    return {**found, "snippet": snippet}


def differs(ours, theirs):
    """The first difference of two answers, empty where they are the same."""
    places = [[(hit["path"], hit["startLine"], hit["endLine"]) for hit in found] for found in (ours, theirs)]
    if places[0] != places[1]:
        return f"hits {places[0]} are not {places[1]}"
    for mine, real in zip(ours, theirs, strict=True):
        if mine.keys() != real.keys():
            return f"fields {list(mine)} are not {list(real)}"
        for key, value in real.items():
            same = abs(mine[key] - value) <= 1e-6 if isinstance(value, float) else mine[key] == value
            if value is not None and not same:
                return f"{key} of {mine['path']} is {mine[key]!r}, not {value!r}"
    return ""


def texts_of(name):
    """The recorded snippets by row; the texts stand with the default configuration of a workspace."""
    recorded = configuration(name)
    base = {"oracle": "w1-default", "rules": "w2-default"}.get(recorded["workspace"])
    own = RELEASE / (recorded["indexOf"] or name) / "chunks.jsonl"
    if base is None or not own.is_file():
        return {}

    def placed(rows):
        seen: Counter[tuple[str, int, int]] = Counter()
        for row in rows:
            place = row["path"], row["start_line"], row["end_line"]
            seen[place] += 1
            yield (*place, seen[place]), row

    texts = {place: utf16_head(row["text"], LENGTH) for place, row in placed(lines(RELEASE / base / "chunks.jsonl"))}
    return {row["chunk_rowid"]: texts[place] for place, row in placed(lines(own)) if place in texts}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_answers_are_those_of_the_real_program(name, oracle_workspaces, tmp_path):
    recorded, texts = configuration(name), texts_of(name)
    files = RELEASE / (recorded["indexOf"] or name) / "files.jsonl"
    mtimes = {row["path"]: row["mtime"] for row in lines(files)} if files.is_file() else {}
    wrong = []
    with (
        opened(name, oracle_workspaces, tmp_path) as engine,
        closing(Store.open(tmp_path / "index.sqlite", read_only=True)) as store,
    ):
        corpus = Corpus.load(store)
        matrix = corpus.matrix
        squares = total(matrix * matrix).astype(np.float64) if matrix.size else np.zeros(len(matrix))
        for item in lines(RELEASE / name / "queries.jsonl"):
            evidence = engine.search.gather(item["query"], by_words=bool(recorded["options"].get("lexicalOnly")))
            trace = engine.search.rank(in_their_order(evidence, corpus, squares, store), engine.plan.settings)
            ours = [result(hit, trace) for hit in trace.recalled]
            if found := differs(ours, [expected(hit, texts, mtimes) for hit in item["results"]]):
                wrong.append((item["id"], item["query"][:60], found))
    assert not wrong, (len(wrong), wrong[:5])
