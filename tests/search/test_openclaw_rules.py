"""Settings of 2026.3 and 2026.2 that nobody recorded, against a plain reading of the documented rules.

The reading was a program of its own, with loops instead of arrays and sqlite-vec for every distance; it gave the
recorded answers of the real program too. `openclaw_rules.jsonl` holds what it answered: by index, profile and question
each answer with the settings that lead to it, how many hits it has, and its first five. It is
`tests/support/openclaw_reference.py` of commit f097ebeb.
"""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from memory_tui import plan
from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from tests.support.workspace import put

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
READING = [
    json.loads(line) for line in Path(__file__).with_name("openclaw_rules.jsonl").read_text("utf-8").splitlines()
]
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
def engine(request, oracle_workspace, tmp_path_factory):
    """An index of the recorded notes, or of one long line, of which the original knows hits by path and lines alone."""
    place, search = tmp_path_factory.mktemp("rules"), {"provider": "scripted", **INDEXES[request.param]}
    workspace = oracle_workspace
    if request.param == "slices":
        workspace = place / "workspace"
        put(workspace, "MEMORY.md", text="kiwi " + "plum " * 319 + "plum kiwi date " + "plum " * 317 + "\n")
        put(workspace, "memory/other.md", text="nothing of the kind\n")
    config, provider = configured(place, workspace, search), search["provider"]
    with Engine.open(Options(config=config, index=str(place / "index.sqlite"), provider=provider, now=NOW)) as opened:
        opened.index.sync()
        yield request.param, opened


@pytest.fixture
def settings(tmp_path, engine):
    def chosen(name, profile):
        config = configured(tmp_path / "settings", engine[1].plan.roots.workspace, {"query": SETTINGS[name]})
        return plan.choose(Options(config=config, changes=(("profile", profile),))).settings

    return chosen


def test_every_setting_gives_the_documented_answer(engine, settings):
    name, opened = engine
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
