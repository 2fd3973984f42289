"""The sample workspace: dates that follow today, labels that point at their answers, and nothing else on disk."""

import datetime as dt
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui import demo, plan, recall_log
from memory_tui.backends.lancedb import folder_of
from memory_tui.cli.context import engine_options
from memory_tui.cli.main import main, parse
from memory_tui.config import places
from memory_tui.config.config_patch import patch
from memory_tui.config.settings import OWN_PROFILE, TUNE_KEYS, compose
from memory_tui.demo import SUGGESTED, WORKSPACE, keep_queries, labelled_queries, materialize, own_folder
from memory_tui.errors import WorkspaceError
from memory_tui.explain import trace_json
from memory_tui.notes.journal import Journal, Typing
from memory_tui.plan import Options
from memory_tui.search.excerpts import excerpts
from memory_tui.tui.run import run
from tests.demo import demo_log
from tests.support.index import run_sql
from tests.support.workspace import options_of, synced

TODAY = dt.date(2026, 3, 14)
ANY_DAY = [TODAY, dt.date(2024, 2, 29), dt.date(2025, 1, 1), dt.date(2027, 12, 31)]
DAY_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-[a-z-]+)?\.md")


def notes(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


def day_of(name):
    """Return the day of a dated note; None for any other, and for a day that no month has."""
    match = DAY_NAME.search(name)
    try:
        return dt.date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("today", ANY_DAY, ids=str)
def test_the_sample_follows_the_day(tmp_path, today, more):
    """Logs of ten months up to today name their own day, links lead to notes, labels point at their answers."""
    texts = notes(materialize(tmp_path / "w", today, more=more))
    ages = sorted((today - day).days for day in map(day_of, texts) if day)
    assert (ages[0], 280 <= ages[-1] <= 310) == (0, True)
    for name, text in texts.items():
        day = day_of(name)
        assert day is None or day.isoformat() in text.split("\n")[0] or more, name
        assert not re.search(r"\{(date|weekday|long|month|zh)|[\x00-\x09\x0b-\x1f\x7f-\x9f\ufeff\ufffd]", text), name
        if not more:
            linked = [f"{name.rpartition('/')[0]}/{link}" for link in re.findall(r"\]\(([^)]+\.md)\)", text)]
            assert {*linked, *re.findall(r"memory/[^\s`),;]+\.md", text)} <= texts.keys(), name
    queries = labelled_queries(today)
    assert {*SUGGESTED} < {query.text for query in queries}
    for query in queries:
        assert bool(query.relevant) == (not query.unanswerable), query.id
        for label in query.relevant:
            assert label.answer in texts[label.path].split("\n")[label.line - 1], (query.id, label)


@pytest.mark.parametrize(("place", "reason"), [("", "not empty"), ("mine.md", "exists"), ("mine.md/below", "exists")])
def test_a_place_that_is_taken_is_refused_and_left_alone(tmp_path, place, reason):
    (tmp_path / "mine.md").write_text("keep me", encoding="utf-8")
    with pytest.raises(WorkspaceError, match=reason) as refusal:
        materialize(tmp_path / place, TODAY)
    assert refusal.value.next_step
    assert notes(tmp_path) == {"mine.md": "keep me"}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    workspace, config = materialize(folder / "workspace", TODAY, more=True), folder / "config.json"
    config.write_text("{}")
    keep_queries(workspace, config, TODAY)
    now = dt.datetime.combine(TODAY, dt.time(20), dt.UTC).timestamp()
    options = options_of(workspace, folder / "i.sqlite", ("sync.watch", "false"), config=str(config), now=now)
    with synced(options) as engine:
        yield engine


def test_the_inbox_of_the_demo_has_something_to_decide(opened):
    findings = opened.inbox.examine(kinds=["dead path"])
    assert all(findings.quiet.values()), "a reason for silence without lines is none"
    kinds = {each.kind for each in findings.suggestions}
    assert kinds >= {"secret", "instruction", "said twice", "dead path", "bad date", "promotion"}


def test_the_line_of_the_tour_is_offered_the_headings_of_the_workspaces_memory(opened):
    plan = opened.notes.curator.plan
    titles = plan.choices(plan.spot(demo.named("memory/day-002.md", TODAY), 4))
    assert titles[0].startswith("Home network and lab")
    assert "Family" in titles


def test_agents_asked_in_the_demo_and_it_goes_with_it(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with own_folder() as folder:
        workspace = materialize(folder / WORKSPACE, TODAY, more=True)
        demo.keep_recalls(workspace, TODAY)
        texts = notes(workspace)
        asked = recall_log.read(recall_log.recall_log_path(workspace)).entries
        assert {entry.client for entry in asked} == {"openclaw", "claude-code", "codex"}
        for hit in (hit for entry in asked for hit in entry.hits):
            # A passage may go on behind its best chunk.
            assert max(hit.end_line, hit.last_line) <= len(texts[hit.path].split("\n")), hit
            assert hit.first_line <= hit.last_line, hit
        for entry in asked:
            days = [day for hit in entry.hits if (day := day_of(hit.path))]
            assert all(day <= dt.date.fromtimestamp(entry.at) for day in days), entry.query
        assert {entry.reply for entry in asked} == {"found", "found in part", "perhaps not answered", "not answered"}
        assert len({entry.client for entry in asked if entry.reply == "perhaps not answered"}) > 1
    assert not kept_of_demo(tmp_path / "state")


def kept_of_demo(state):
    """What is left of a demo: files but the state database, and rows of the journal in it."""
    files = [path for path in state.rglob("*") if path.is_file() and path.name != "state.sqlite"]
    if not (state / "memory-tui" / "state.sqlite").exists():
        return list(files)
    database = state / "memory-tui" / "state.sqlite"
    tables = {name for (name,) in run_sql(database, "SELECT name FROM sqlite_schema")} & {"note_change", "note_blob"}
    return [*files, *(row for table in tables for row in run_sql(database, f"SELECT * FROM {table}"))]


def test_the_log_of_the_demo_is_what_the_server_answers(tmp_path):
    """Where this fails because the ranking is another one: python -m tests.demo.demo_log."""
    kept = {fields["query"]: fields for fields in demo_log.questions()}
    knobs = compose(OWN_PROFILE, {}, {})
    for fields, entry in demo_log.answers(tmp_path):
        made = demo_log.as_line(fields, entry)
        logged = kept[entry.query]
        for name in ("provider", "model", "mode", "level"):
            assert made[name] == logged[name], (entry.query, name)
        assert [hit["path"] for hit in made["hits"][:1]] == [hit["path"] for hit in logged["hits"][:1]], entry.query
        assert entry.settings == {key: knobs.values[key].value for key in TUNE_KEYS}


def test_a_demo_that_was_killed_says_where_its_unsaved_text_is(temporary, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(temporary / "state"))
    workspace = temporary / "memory-tui-demo-1" / WORKSPACE
    workspace.mkdir(parents=True)
    assert [*demo.leftovers()] == []
    Typing(Journal(places.journal_folder(workspace)), "MEMORY.md").keep(1, "half a sent", None)
    [sentence] = demo.leftovers()
    assert f"memory-tui {workspace} opens it" in sentence

    def shown(*_, doubt, **_more):
        raise InterruptedError(doubt)

    monkeypatch.setattr("memory_tui.tui.run.TerminalApp", shown)
    with pytest.raises(InterruptedError, match="opens it"):
        run(Options, demo=True)
    assert sentence in capsys.readouterr().err


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A temporary folder of its own, for this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_demo_neither_reads_nor_writes_the_configuration_of_its_user(temporary, monkeypatch):
    theirs = places.own_path()
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text('{"query": {"maxResults": 3}}')
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", str(theirs.parent / "openclaw.json"))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    written: list[str] = []

    def screen(options, *_more, **_named):
        chosen = options()
        choices = plan.choose(replace(chosen, changes=(*chosen.changes, ("query.minScore", "0.2"))))
        assert choices.settings.values["query.maxResults"].value == 6
        found = patch(choices.config, choices.settings, choices.as_written())
        assert "0.2" in found.diff()
        assert folder_of(choices).startswith(str(Path(chosen.workspace or "").parent)), "nobody's own memories"
        assert places.openclaw_path().is_relative_to(temporary), "nobody's own OpenClaw"
        left = engine_options(parse([str(chosen.workspace)]))
        assert (left.sample, left.config, left.index) == (True, chosen.config, chosen.index), "its saved questions"
        written.extend(str(file.path) for file in found.files)
        found.write()
        return 0

    monkeypatch.setattr("memory_tui.tui.run.run", screen)
    assert main(["demo", "--provider", "none"]) == 0
    assert {Path(path).is_relative_to(temporary) for path in written} == {True}
    assert theirs.read_text() == '{"query": {"maxResults": 3}}'


AFTER_THE_LAST_LOG = dt.datetime(2023, 5, 7, tzinfo=dt.UTC).timestamp()


def answers(workspaces, queries, index, profile, results=20, characters=0, now=AFTER_THE_LAST_LOG):
    by_workspace = defaultdict(list)
    for query in queries:
        by_workspace[query["workspace"]].append(query)
    found = {}
    for name, asked in by_workspace.items():
        bounds = (("query.maxResults", str(results)), ("query.maxCharacters", str(characters)))
        changes = (("profile", profile), *bounds)
        with synced(options_of(workspaces / name, index / name / "index.sqlite", *changes, now=now)) as engine:
            for query in asked:
                trace = engine.search.search(query["question"])
                found[query["id"]] = trace_json.answer(trace, excerpts(trace))["results"]
    return found


def measured(judge, name, found):
    return judge.mean(judge.evaluate(name, found))


# The scorer is somebody else's script and leaves its files for the garbage collector to close.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("name", "ndcg"), [("en", 0.95), ("zh", 0.95)])
def test_recommended_recalls_what_was_said(judge, memorybank, tmp_path, name, ndcg):
    queries = judge.load_queries(name)
    ours = measured(judge, name, answers(memorybank / name / "workspaces", queries, tmp_path, "recommended"))
    print({key: round(value, 3) for key, value in ours.items()})
    assert ours["ndcg@10"] >= ndcg
    assert ours["recall@6"] >= 0.95
    sent = measured(judge, name, answers(memorybank / name / "workspaces", queries, tmp_path, "recommended", 6, 3600))
    assert sent["snip@6"] >= 0.95, "an agent gets the line that answers"
    theirs = measured(judge, name, answers(memorybank / name / "workspaces", queries, tmp_path, "openclaw-2026.3", 6))
    print({key: round(value, 3) for key, value in theirs.items()})
    # The built-in cosines are lifted there, so minScore hardly bites; the order is what the defaults lose.
    assert theirs["ndcg@10"] < ours["ndcg@10"] - 0.02
