"""The recorded answers of the real program, and those of the documented rules for settings that nobody recorded."""

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.explain import trace_json
from memory_tui.plan import Options
from memory_tui.search.keyword import Postings
from tests.support.workspace import options_in, put, synced

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
RECORDED = [
    f"{version}/{name}"
    for version, names in {
        "2026.3.13": ("default", "chunk100-20", "decay30", "hybrid-off", "minscore0-max20", "mmr0.7"),
        "2026.2.26": ("default", "decay30", "minscore0-max20", "mmr0.7"),
    }.items()
    for name in names
]


def in_their_order(evidence, debug):
    """`evidence` with equal scores in the order of the original, which follows its rows."""
    row_of = {ref.id: row for row, ref in enumerate(evidence.refs)}

    def ordered(rows, ids):
        first = [row_of[i] for i in ids if i in row_of]
        return np.array([*first, *(row for row in rows.tolist() if row not in set(first))], dtype=np.int64)

    assert evidence.cosine is not None or not debug.get("vector")
    side = evidence.openclaw
    rows = ordered(side.postings.rows, list(dict.fromkeys(item["id"] for item in debug.get("keyword", []))))
    bm25_of = dict(zip(side.postings.rows.tolist(), side.postings.bm25.tolist(), strict=True))
    postings = (
        side.postings
        if len(rows) != len(side.postings.rows)
        else Postings(rows, np.array([bm25_of[row] for row in rows.tolist()]))
    )
    nearest = ordered(evidence.nearest, [item["id"] for item in debug.get("vector", [])])
    return replace(evidence, nearest=nearest, openclaw=replace(side, postings=postings))


@dataclass(frozen=True)
class Asked:
    """A recorded query, our answer to it, and our answer with ties as the original had them."""

    query: dict[str, Any]
    ours: dict[str, Any]
    tied: dict[str, Any]


@pytest.fixture(scope="module", params=RECORDED)
def asked(request, oracle_data, oracle_workspace, tmp_path_factory):
    """Every query of one recorded configuration."""
    folder = oracle_data / request.param
    place = tmp_path_factory.mktemp("asked")
    config = place / "openclaw.json"
    config.write_text((folder / "config.json").read_text().replace("WORKSPACE", str(oracle_workspace)))
    profile = "openclaw-2026.3" if request.param.startswith("2026.3") else "openclaw-2026.2"
    own = {"workspace": None, "config": str(config)}
    found = []
    with synced(options_in(place, f"profile={profile}", **own, provider="scripted", now=NOW)) as engine:
        for text in filter(None, (folder / "queries.jsonl").read_text("utf-8").split("\n")):
            query = json.loads(text)
            evidence = engine.search.gather(query["query"])
            both = evidence, in_their_order(evidence, query["debug"])
            found.append(Asked(query, *(trace_json.answer(engine.search.rank(e, engine.plan.settings)) for e in both)))
    return found


def test_results_are_the_same_in_the_same_order(asked):
    for item in asked:
        ours, theirs = item.tied["results"], item.query["results"]
        assert [r["score"] for r in ours] == pytest.approx([r["score"] for r in theirs], abs=1e-6), item.query["id"]
        for key in ("path", "startLine", "endLine", "snippet", "source"):
            assert [r[key] for r in ours] == [r[key] for r in theirs], (item.query["id"], key)


def assert_same(ours, theirs, worst, at):
    """The same values for the same ids; of values equal to the `worst` in a full list, either may have kept others."""
    assert sorted(value for _, value in ours) == pytest.approx(sorted(value for _, value in theirs), abs=1e-6), at
    sure = [(i, v) for i, v in theirs if abs(v - worst) > 1e-6]
    found = {(i, round(v, 5)) for i, v in ours}
    close = {(i, round(v + step, 5)) for i, v in ours for step in (-5e-6, 5e-6)}
    assert {(i, round(v, 5)) for i, v in sure} <= found | close, at


def test_the_trace_has_the_numbers_of_the_original(asked):
    for item in asked:
        trace, debug, at = item.ours["trace"], item.query["debug"], item.query["id"]
        assert trace["candidates"] == debug["candidates"], at
        if item.ours["mode"] == "hybrid":
            assert trace["ftsQuery"] == debug["ftsQuery"], at
            worst = max((row["rank"] for row in debug.get("keywordRank", [])), default=0.0)
            ours, theirs = trace["keywordRank"], debug.get("keywordRank", [])
            assert_same(*([(row["id"], row["rank"]) for row in rows] for rows in (ours, theirs)), worst, at)
            text = dict.fromkeys(row["id"] for row in debug["keyword"])
            mine = {row["id"]: row["textScore"] for row in trace["keyword"]}
            real = {row["id"]: row["textScore"] for row in debug["keyword"]}
            assert sorted(mine.values()) == pytest.approx(sorted(real.values()), abs=1e-6), at
            assert all(mine[i] == pytest.approx(real[i], abs=1e-6) for i in text if i in mine), at
        # Without a single non-zero component in the query's vector the original asks no vectors.
        vector = debug.get("vector", [])
        worst = min((row["score"] for row in vector), default=0.0)
        assert_same(*([(row["id"], row["score"]) for row in rows] for rows in (trace["vector"], vector)), worst, at)


# Settings that nobody recorded, by a plain reading of the documented rules: a program with loops instead of arrays and
# sqlite-vec for every distance, tests/support/openclaw_reference.py of commit f097ebeb, which gave the recorded answers
# too. A line has index, profile and question; each answer the settings that lead to it, how many hits, the first five.
RULES = Path(__file__).with_name("openclaw_rules.jsonl")
READING = [json.loads(line) for line in RULES.read_text("utf-8").splitlines()]
INDEXES: dict[str, dict[str, Any]] = {
    "notes": {},
    "words": {"provider": "none"},
    "chunks of 8": {"chunking": {"tokens": 8, "overlap": 7}},
    "chunks of 25": {"chunking": {"tokens": 25, "overlap": 500}},
    "chunks of 3000": {"chunking": {"tokens": 3000, "overlap": 200}},
    "slices": {"chunking": {"overlap": 0}},
}
NOTHING, OFF = {"minScore": 0}, {"enabled": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "weights 0/0": {"hybrid": {"vectorWeight": 0, "textWeight": 0}},
    "text alone": {"hybrid": {"vectorWeight": 0, "textWeight": 1}} | NOTHING,
    "vector alone": {"hybrid": {"vectorWeight": 1, "textWeight": 0}} | NOTHING,
    "only textWeight": {"hybrid": {"textWeight": 1}},
    "small weights": {"hybrid": {"vectorWeight": 0.01, "textWeight": 0.03}},
    "text heavy": {"hybrid": {"vectorWeight": 0.2, "textWeight": 0.8}},
    "multiplier 1": {"hybrid": {"candidateMultiplier": 1}} | NOTHING,
    "multiplier 20": {"hybrid": {"candidateMultiplier": 20}, "maxResults": 100} | NOTHING,
    "one result": {"maxResults": 1},
    "one candidate": {"maxResults": 1, "hybrid": {"candidateMultiplier": 1}},
    "100 results": {"maxResults": 100} | NOTHING,
    "minScore 1": {"minScore": 1},
    "minScore 0.3": {"minScore": 0.3},
    "minScore 0.5": {"minScore": 0.5},
    "decay 1": {"hybrid": {"temporalDecay": {"enabled": True, "halfLifeDays": 1}}} | NOTHING,
    "decay 365": {"hybrid": {"temporalDecay": {"enabled": True, "halfLifeDays": 365}}},
    "mmr 0": {"hybrid": {"mmr": {"enabled": True, "lambda": 0}}} | NOTHING,
    "mmr 1": {"hybrid": {"mmr": {"enabled": True, "lambda": 1}}} | NOTHING,
    "mmr and decay": {
        "minScore": 0.1,
        "hybrid": {"mmr": {"enabled": True, "lambda": 0.5}, "temporalDecay": {"enabled": True}},
    },
    "hybrid off": {
        "minScore": 0.2,
        "hybrid": {"enabled": False, "mmr": {"enabled": True}, "temporalDecay": {"enabled": True}},
    },
}


def configured(place, workspace, search):
    place.mkdir(exist_ok=True)
    file = place / "openclaw.json"
    file.write_text(json.dumps({"agents": {"defaults": {"workspace": str(workspace), "memorySearch": search}}}))
    return str(file)


@pytest.fixture(scope="module", params=INDEXES)
def ruled(request, oracle_workspace, tmp_path_factory):
    """An index of the recorded notes, or of one long line, of which the original knows hits by path and lines alone."""
    place, search = tmp_path_factory.mktemp("rules"), {"provider": "scripted", **INDEXES[request.param]}
    workspace = oracle_workspace
    if request.param == "slices":
        workspace = place / "workspace"
        put(workspace, "MEMORY.md", text="kiwi " + "plum " * 319 + "plum kiwi date " + "plum " * 317 + "\n")
        put(workspace, "memory/other.md", text="nothing of the kind\n")
    config, provider = configured(place, workspace, search), search["provider"]
    with synced(Options(config=config, index=str(place / "index.sqlite"), provider=provider, now=NOW)) as opened:
        yield request.param, opened


@pytest.fixture
def settings(tmp_path, ruled):
    def chosen(name, profile):
        config = configured(tmp_path / "settings", ruled[1].plan.roots.workspace, {"query": SETTINGS[name]})
        return plan.choose(Options(config=config, changes=(("profile", profile),))).settings

    return chosen


def test_every_setting_gives_the_documented_answer(ruled, settings):
    name, opened = ruled
    for row in [row for row in READING if row["index"] == name]:
        evidence = opened.search.gather(row["query"])
        for names, count, *hits in row["answers"]:
            for each in names:
                found = opened.search.rank(evidence, settings(each, row["profile"])).recalled
                about = (row["query"], row["profile"], each)
                assert len(found) == count, about
                for hit, said in zip(found, hits, strict=False):
                    place, _, score = said.rpartition(" ")
                    chunk = hit.chunk
                    assert f"{chunk.path}:{chunk.start_line}-{chunk.end_line}" == place, about
                    assert hit.score == pytest.approx(float(score), abs=2e-6), about
