"""Configurations that nobody recorded: the OpenClaw profiles against a plain reading of the documented rules."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_tui import plan
from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json
from memory_tui.plan import Options
from memory_tui.workspace.roots import Roots, scan
from tests.support import openclaw_reference as reference
from tests.support.workspace import put

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
HYBRID = "query.hybrid."


def queries(oracle_data: Path) -> list[str]:
    """Those that were recorded, and stranger ones."""
    return [*(item["query"] for item in recorded(oracle_data / "2026.3.13/default")), *STRANGE]


def recorded(folder: Path) -> list[dict[str, Any]]:
    """What was asked and answered under one configuration."""
    return [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").strip("\n").split("\n")]


SIGNS = '_ ___ 路由器 中 の パスポート 여권 🚀🚀🚀 ½ Ⅷ １２３ ﬁnance İstanbul " "" "router router* ^router -router'
STRANGE = [
    *["", " ", "\ufeff", "\x85", "\x1c", "  router  ", "router\x00vlan", "\x00", "\ud83d", "router \ud83d\ude80"],
    *["a" * 5000, "router " * 2000, "router AND", "{text}: router", "NEAR(router vlan)", "a b c d e f g h i j"],
    *["same line repeated for overlap tests same line", "and of", "cafe\u0301", "👩\u200d💻"],
    *SIGNS.split(" "),
    *["(router", "same", "the"],
]

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "weights 0/0": {HYBRID + "vectorWeight": 0, HYBRID + "textWeight": 0},
    "text alone": {HYBRID + "vectorWeight": 0, HYBRID + "textWeight": 1, "query.minScore": 0},
    "vector alone": {HYBRID + "vectorWeight": 1, HYBRID + "textWeight": 0, "query.minScore": 0},
    "only textWeight": {HYBRID + "textWeight": 1},
    "small weights": {HYBRID + "vectorWeight": 0.01, HYBRID + "textWeight": 0.03},
    "text heavy": {HYBRID + "vectorWeight": 0.2, HYBRID + "textWeight": 0.8},
    "multiplier 1": {HYBRID + "candidateMultiplier": 1, "query.minScore": 0},
    "multiplier 20": {HYBRID + "candidateMultiplier": 20, "query.minScore": 0, "query.maxResults": 100},
    "one result": {"query.maxResults": 1},
    "one candidate": {"query.maxResults": 1, HYBRID + "candidateMultiplier": 1},
    "100 results": {"query.maxResults": 100, "query.minScore": 0},
    "minScore 1": {"query.minScore": 1},
    "minScore 0.3": {"query.minScore": 0.3},
    "minScore 0.5": {"query.minScore": 0.5},
    "decay 1": {HYBRID + "temporalDecay.enabled": True, HYBRID + "temporalDecay.halfLifeDays": 1, "query.minScore": 0},
    "decay 365": {HYBRID + "temporalDecay.enabled": True, HYBRID + "temporalDecay.halfLifeDays": 365},
    "mmr 0": {HYBRID + "mmr.enabled": True, HYBRID + "mmr.lambda": 0, "query.minScore": 0},
    "mmr 1": {HYBRID + "mmr.enabled": True, HYBRID + "mmr.lambda": 1, "query.minScore": 0},
    "mmr and decay": {
        HYBRID + "mmr.enabled": True,
        HYBRID + "mmr.lambda": 0.5,
        HYBRID + "temporalDecay.enabled": True,
        "query.minScore": 0.1,
    },
    "hybrid off": {
        HYBRID + "enabled": False,
        "query.minScore": 0.2,
        HYBRID + "mmr.enabled": True,
        HYBRID + "temporalDecay.enabled": True,
    },
}


def options(settings: dict[str, Any], newer: bool) -> reference.Options:
    """`settings` as the plain reading has them."""
    names = {
        "query.maxResults": "max_results",
        "query.minScore": "min_score",
        HYBRID + "enabled": "hybrid",
        HYBRID + "vectorWeight": "vector_weight",
        HYBRID + "textWeight": "text_weight",
        HYBRID + "candidateMultiplier": "multiplier",
        HYBRID + "temporalDecay.enabled": "decay",
        HYBRID + "temporalDecay.halfLifeDays": "half_life",
        HYBRID + "mmr.enabled": "mmr",
        HYBRID + "mmr.lambda": "mmr_lambda",
    }
    return reference.Options(**{names[key]: value for key, value in settings.items()}, newer=newer)


def configured(place: Path, workspace: Path, search: dict[str, Any]) -> Path:
    """An openclaw.json with the keys of `search` below memorySearch."""
    tree: dict[str, Any] = {}
    for key, value in search.items():
        *above, last = key.split(".")
        at = tree
        for name in above:
            at = at.setdefault(name, {})
        at[last] = value
    place.mkdir(exist_ok=True)
    file = place / "openclaw.json"
    file.write_text(json.dumps({"agents": {"defaults": {"workspace": str(workspace), "memorySearch": tree}}}))
    return file


def opened(
    place: Path, workspace: Path, search: dict[str, Any], provider: str = "scripted"
) -> tuple[Engine, reference.Program]:
    """Both programs over the same notes, in the same order."""
    config = configured(place, workspace, search)
    engine = Engine.open(Options(config=str(config), index=str(place / "index.sqlite"), provider=provider, now=NOW))
    engine.index.sync()
    roots = Roots.open(workspace, search.get("extraPaths", ()))
    files = [(found.path, Path(found.absolute)) for found in scan(roots).notes]
    return engine, reference.Program(
        workspace,
        files,
        search.get("chunking.tokens", 400),
        search.get("chunking.overlap", 80),
        vec=search.get("store.vector.enabled", True),
    )


def assert_same(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], about: object) -> None:
    """Every documented field of every hit, in order."""
    assert [(r["path"], r["startLine"], r["endLine"], r["snippet"], r["source"]) for r in ours] == [
        (r["path"], r["startLine"], r["endLine"], r["snippet"], r["source"]) for r in theirs
    ], about
    assert [r["score"] for r in ours] == pytest.approx([r["score"] for r in theirs], abs=1e-6), about


@pytest.fixture(scope="module")
def both(
    oracle_workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, reference.Program]]:
    engine, program = opened(tmp_path_factory.mktemp("both"), oracle_workspace, {})
    with engine:
        yield engine, program


def test_the_plain_reading_gives_the_recorded_answers(
    both: tuple[Engine, reference.Program], oracle_data: Path
) -> None:
    _, program = both
    for name in ("default", "minscore0-max20", "hybrid-off", "decay30"):
        query = json.loads((oracle_data / "2026.3.13" / name / "config.json").read_text())
        search = query["agents"]["defaults"]["memorySearch"].get("query", {})
        flat = {f"query.{key}": value for key, value in search.items() if key != "hybrid"}
        for key, value in search.get("hybrid", {}).items():
            inner = value.items() if isinstance(value, dict) else ()
            flat |= {f"{HYBRID}{key}.{k}": v for k, v in inner} if inner else {HYBRID + key: value}
        for told in recorded(oracle_data / "2026.3.13" / name):
            found = reference.answer(program.search(told["query"], options(flat, newer=True), NOW))
            assert [r["score"] for r in found] == pytest.approx([r["score"] for r in told["results"]], abs=1e-6), (
                name,
                told["id"],
            )


def assert_agree(
    engine: Engine,
    program: reference.Program,
    asked: Iterable[str],
    place: Path,
    names: Iterable[str],
    profile: str = "openclaw-2026.3",
) -> None:
    """Both programs answer `asked` alike under each of the settings called `names`."""
    chosen = {
        name: plan.choose(
            Options(
                config=str(configured(place, engine.plan.roots.workspace, SETTINGS[name])),
                changes=(("profile", profile),),
            )
        ).settings
        for name in names
    }
    for query in asked:
        evidence = engine.search.gather(query)
        for name, told in chosen.items():
            asked_for = options(SETTINGS[name], profile.endswith(".3"))
            expected = (
                program.search_words(query, asked_for)
                if evidence.provider == "none"
                else program.search(query, asked_for, NOW)
            )
            assert_same(
                trace_json.answer(engine.search.rank(evidence, told))["results"],
                reference.answer(expected),
                (name, query[:40]),
            )


@pytest.mark.parametrize("profile", ["openclaw-2026.3", "openclaw-2026.2"])
def test_every_setting_gives_the_documented_answer(
    both: tuple[Engine, reference.Program], oracle_data: Path, tmp_path: Path, profile: str
) -> None:
    engine, program = both
    assert_agree(engine, program, queries(oracle_data)[::12], tmp_path, SETTINGS, profile)
    assert_agree(engine, program, STRANGE, tmp_path, ["default", "mmr and decay"], profile)


@pytest.mark.parametrize(("tokens", "overlap"), [(8, 7), (25, 500), (3000, 200)])
def test_every_size_of_chunks(
    oracle_workspace: Path, oracle_data: Path, tmp_path: Path, tokens: int, overlap: int
) -> None:
    engine, program = opened(tmp_path, oracle_workspace, {"chunking.tokens": tokens, "chunking.overlap": overlap})
    with engine:
        assert_agree(
            engine,
            program,
            queries(oracle_data)[::9],
            tmp_path,
            ["default", "minScore 0.3", "mmr and decay", "100 results", "one candidate"],
        )


def test_a_chunk_on_the_same_lines_as_a_keyword_hit_passes_the_relaxed_floor(tmp_path: Path) -> None:
    """The original knows its keyword hits by path and lines, and slices of one long line share those."""
    workspace = tmp_path / "workspace"
    slices = ["kiwi " + "plum " * 319, "plum kiwi date " + "plum " * 317]
    put(workspace, "MEMORY.md", text="".join(slices) + "\n")
    put(workspace, "memory/other.md", text="nothing of the kind\n")
    engine, program = opened(tmp_path, workspace, {"chunking.overlap": 0})
    with engine:
        assert_agree(
            engine,
            program,
            ["kiwi date", "plum date", "date kiwi plum", "kiwi"],
            tmp_path,
            ["default", "minScore 0.3", "minScore 1", "text heavy", "small weights"],
        )


@pytest.mark.parametrize("profile", ["openclaw-2026.3", "openclaw-2026.2"])
def test_without_a_provider_every_keyword_is_asked_alone(
    oracle_workspace: Path, oracle_data: Path, tmp_path: Path, profile: str
) -> None:
    engine, program = opened(tmp_path, oracle_workspace, {}, "none")
    with engine:
        assert_agree(
            engine,
            program,
            queries(oracle_data)[::2],
            tmp_path,
            ["default", "100 results", "minScore 0.5", "one candidate", "mmr and decay", "hybrid off"],
            profile,
        )


EACH = "router VLAN vlan coffee the a x1 snake_case 路由器 中 パス 여권 🚀 é e\u0301 !!! --- 3.14 ＦＵＬＬ ß"
WORDS = st.sampled_from([*EACH.split(" "), "\x00", "\ufeff", "\u3000", "\r", "plum plum plum", "z" * 40])
LINES = st.lists(WORDS, max_size=12).map(" ".join) | WORDS.map(lambda word: f"{word} " * 60)
NOTE = st.lists(LINES, min_size=1, max_size=8).map("\n".join)
NAMES = [
    *["MEMORY.md", "memory.md", "memory/2026-11-01.md", "memory/2026-11-19.md", "memory/2026-13-01.md"],
    *["memory/2027-01-01.md", "memory/sub/2026-11-01.md", "memory/2026-11-01-slug.md", "memory/a.md", "more/b.md"],
    *["more/memory/2026-10-01.md", "memory/0050-01-01.md"],
]
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "query.maxResults": st.sampled_from([1, 2, 6, 100]),
        "query.minScore": st.sampled_from([0, 0.2, 0.3, 0.35, 0.7, 1]),
        HYBRID + "vectorWeight": st.sampled_from([0, 0.1, 0.5, 1]),
        HYBRID + "textWeight": st.sampled_from([0, 0.1, 0.5, 1]),
        HYBRID + "candidateMultiplier": st.sampled_from([1, 2, 20]),
        HYBRID + "enabled": st.booleans(),
        HYBRID + "temporalDecay.enabled": st.booleans(),
        HYBRID + "temporalDecay.halfLifeDays": st.sampled_from([1, 7, 365]),
        HYBRID + "mmr.enabled": st.booleans(),
        HYBRID + "mmr.lambda": st.sampled_from([0, 0.3, 0.7, 1]),
    },
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    notes=st.dictionaries(st.sampled_from(NAMES), NOTE, min_size=1, max_size=8),
    asked=st.lists(st.lists(WORDS, max_size=5).map(" ".join), min_size=1, max_size=4),
    chosen=st.lists(CHOICES, min_size=1, max_size=4),
    sizes=st.sampled_from([(1, 0), (10, 3), (40, 40), (400, 80)]),
    profile=st.sampled_from(["openclaw-2026.3", "openclaw-2026.2"]),
)
def test_any_notes_under_any_settings(
    tmp_path_factory: pytest.TempPathFactory,
    notes: dict[str, str],
    asked: list[str],
    chosen: list[dict[str, Any]],
    sizes: tuple[int, int],
    profile: str,
) -> None:
    place = tmp_path_factory.mktemp("any")
    workspace = place / "workspace"
    workspace.mkdir()
    for number, (name, text) in enumerate(notes.items()):
        put(workspace, name)
        (workspace / name).write_bytes(text.encode())
        os.utime(workspace / name, (NOW - 86_400 * 9 * number,) * 2)
    engine, program = opened(
        place, workspace, {"extraPaths": ["more"], "chunking.tokens": sizes[0], "chunking.overlap": sizes[1]}
    )
    with engine:
        for query in asked:
            evidence = engine.search.gather(query)
            for changes in chosen:
                config = configured(place / "settings", workspace, changes)
                told = plan.choose(Options(config=str(config), changes=(("profile", profile),))).settings
                expected = program.search(query, options(changes, profile.endswith(".3")), NOW)
                assert_same(
                    trace_json.answer(engine.search.rank(evidence, told))["results"],
                    reference.answer(expected),
                    (query, changes),
                )
