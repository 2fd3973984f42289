"""The faults of OpenClaw that its profiles do not copy are named in the answers that they would have changed."""

import json

import pytest
from msgspec.structs import replace

from memory_tui.cli import main
from memory_tui.engine.engine import Engine
from memory_tui.mcp.tools import memory_search
from tests.support.workspace import options_of, put


def written(folder):
    put(folder, "MEMORY.md", text="The router is an Omada ER605\n")
    put(folder, "memory/punct.md", text="---\n***\n...\n")
    return folder


def codes(engine, question="router", **options):
    settings = engine.plan.with_profile(options["profile"]) if options else engine.plan.settings
    return [notice.code for notice in engine.search.rank(engine.search.gather(question), settings).notices]


@pytest.fixture
def options(tmp_path):
    return options_of(
        written(tmp_path / "notes"), tmp_path / "index.sqlite", ("profile", "openclaw-2026.3"), provider="scripted"
    )


def test_a_vector_of_zeros_scores_nothing_and_the_trace_says_so(options):
    with Engine.open(options) as engine:
        engine.index.sync()
        trace = engine.search.search("router")
        assert "zero_vector" in [notice.code for notice in trace.notices]
        every = [*trace.recalled, *trace.lost]
        assert next(hit for hit in every if hit.chunk.path == "memory/punct.md").score == 0


def test_without_a_provider_words_are_searched_and_the_trace_says_what_openclaw_would_do(options):
    with Engine.open(replace(options, provider="none")) as engine:
        engine.index.sync()
        assert "openclaw_emptied" in codes(engine)
        assert "openclaw_emptied" not in codes(engine, profile="recommended")


def test_the_first_search_of_a_new_index_finds_its_notes_and_says_what_openclaw_would_do(options):
    with Engine.open(options) as engine:
        engine.index.catch_up()
        assert "openclaw_first_search" in codes(engine)
        assert "openclaw_first_search" not in codes(engine)
    with Engine.open(options) as engine:
        engine.index.catch_up()
        assert "openclaw_first_search" not in codes(engine)


def test_the_command_line_tells_them_only_where_the_arithmetic_is_asked_for(options, capsys):
    place = ["--workspace", str(options.workspace), "--index", str(options.index)]
    shared = [*place, "--profile", "openclaw-2026.3", "--provider", "none"]
    assert main.main([*shared, "search", "router"]) == 0
    assert "would find nothing" not in capsys.readouterr().err
    assert main.main([*shared, "search", "router", "--explain"]) == 0
    assert "would find nothing" in capsys.readouterr().err
    assert main.main([*shared, "search", "router", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["notices"]
    assert [notice["code"] for notice in told] == ["openclaw_emptied"]


def test_faults_of_2026_9_are_named_and_not_copied(options, tmp_path):
    put(tmp_path / "notes", "memory/open.md", text="- the router stands in the hall <!-- project: house\n")
    newest = replace(options, changes=(("profile", "openclaw-2026.9"),))
    with Engine.open(newest) as engine:
        engine.index.sync()
        trace = engine.search.rank(engine.search.gather("router"), engine.plan.settings)
    told = {notice.code: notice.message for notice in trace.notices}
    assert told["zero_vector"].endswith("OpenClaw 2026.9.6 loses its whole vector side by one of them.")
    assert "memory/open.md#L1-L2" in told["unreadable_project"]
    assert [hit.chunk.path for hit in trace.recalled] == ["MEMORY.md"]
    assert trace.recalled[0].cosine


NOT_THEIRS = "vectors of the built-in table, not OpenClaw's"


def test_every_ranking_by_a_release_says_that_the_vectors_are_not_its_own(options, tmp_path, capsys):
    labels, index = tmp_path / "labels.jsonl", str(tmp_path / "builtin.sqlite")
    labels.write_text(
        json.dumps({"query": "router", "relevant": [{"path": "MEMORY.md", "line": 1, "grade": 2}]}) + "\n"
    )
    where = ["--workspace", str(options.workspace), "--index", index, "--provider", "builtin"]
    for profile, says in (("openclaw-2026.3", True), ("recommended", False)):
        for command in (
            ["search", "router"],
            ["search", "router", "--json"],
            ["why", "router", "MEMORY.md:1", "--json"],
            ["status"],
            ["eval", "--labels", str(labels)],
        ):
            assert main.main([*where, "--profile", profile, *command]) == 0, command
            printed = " ".join("".join(capsys.readouterr()).split())
            assert (NOT_THEIRS in printed) == says, (profile, command)
        changes = (("profile", profile),)
        with Engine.open(replace(options, provider="builtin", index=index, changes=changes)) as engine:
            assert (NOT_THEIRS in json.dumps(memory_search(engine, {"query": "router"}).answer)) == says
