"""The sample workspace: dates that follow today, labels that point at their answers, and nothing else on disk."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from memory_tui import demo
from memory_tui.core import profiles
from memory_tui.core.errors import WorkspaceError
from memory_tui.core.settings import TUNE_KEYS
from memory_tui.core.tokens import WORD, and_query
from memory_tui.demo import SUGGESTED, WORKSPACE, keep_queries, keep_recalls, labelled_queries, materialize, own
from memory_tui.engine.engine import Engine
from memory_tui.explain.counterfactuals import WHOLE, flips
from memory_tui.inbox.checks import BY_KIND
from memory_tui.inbox.entries import Suggestion
from memory_tui.plan import Options
from memory_tui.recalls import recall_log, recalled_lines, rerun
from memory_tui.search.trace import ChunkRef
from memory_tui.tui.widgets.memory_map import OFTEN
from memory_tui.tune import judgments
from memory_tui.workspace.chunking import chunk_text
from tests.tools import demo_log

TODAY = dt.date(2026, 3, 14)
ANY_DAY = [TODAY, dt.date(2024, 2, 29), dt.date(2025, 1, 1), dt.date(2027, 12, 31)]
DAY_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-[a-z-]+)?\.md")


def notes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode("cp1252" if path.match(demo.FOREIGN) else "utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def state(folder: Path) -> list[tuple[str, bytes, int]]:
    return [
        (path.relative_to(folder).as_posix(), path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


def day_of(name: str) -> dt.date | None:
    found = DAY_NAME.search(name)
    return dt.date.fromisoformat(found[1]) if found else None


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return materialize(tmp_path_factory.mktemp("demo") / "workspace", TODAY)


def test_the_folder_is_made_and_returned(tmp_path):
    target = tmp_path / "not" / "there yet"
    assert materialize(target, TODAY) == target
    assert (target / "MEMORY.md").is_file()


def test_it_has_the_files_of_a_real_workspace(sample):
    names = notes(sample)
    assert all(name.endswith(".md") for name in names)
    assert sum(day_of(name) is not None for name in names) in range(19, 24)
    assert sum(bool(re.search(r"\d-[a-z]", name)) for name in names) == 1
    assert sum(name.count("/") > 1 for name in names) == 1
    assert {
        "MEMORY.md",
        "memory/network.md",
        "memory/people.md",
        "memory/projects.md",
        "memory/house.md",
        "memory/code-notes.md",
        "memory/读书笔记.md",
    } <= names.keys()


@pytest.mark.parametrize("today", ANY_DAY, ids=str)
def test_logs_reach_from_today_ten_months_back_and_thin_out(tmp_path, today):
    days = [day for day in map(day_of, notes(materialize(tmp_path / "w", today))) if day]
    ages = sorted((today - day).days for day in days)
    assert ages[0] == 0
    assert 280 <= ages[-1] <= 310
    assert sum(age <= 30 for age in ages) > len(ages) / 2
    assert sum(age > 90 for age in ages) >= 5


@pytest.mark.parametrize("today", ANY_DAY, ids=str)
def test_a_log_speaks_of_its_own_day(tmp_path, today):
    logs = {name: text for name, text in notes(materialize(tmp_path / "w", today)).items() if day_of(name)}
    for name, text in logs.items():
        day = day_of(name)
        heading = text.splitlines()[0]
        assert day.isoformat() in heading
        named = re.search(r"\((\w+day)\)", heading)
        assert (
            named is None
            or named[1] == ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[day.weekday()]
        )
    assert any(text.splitlines()[0].endswith("day)") for text in logs.values())


@pytest.mark.parametrize("today", ANY_DAY, ids=str)
def test_no_placeholder_is_left_and_every_link_leads_to_a_note(tmp_path, today):
    texts = notes(materialize(tmp_path / "w", today))
    for name, text in texts.items():
        assert not re.search(r"\{(date|weekday|long|month|zh)", text), name
        for link in re.findall(r"\]\(([^)]+\.md)\)", text):
            assert f"{name.rpartition('/')[0]}/{link}" in texts, (name, link)
        for mention in re.findall(r"memory/[^\s`),;]+\.md", text):
            assert mention in texts, (name, mention)


@pytest.mark.parametrize("today", ANY_DAY, ids=str)
def test_every_label_points_at_the_line_that_holds_its_answer(tmp_path, today):
    texts = notes(materialize(tmp_path / "w", today))
    for query in labelled_queries(today):
        for label in query.relevant:
            assert label.answer in texts[label.path].split("\n")[label.line - 1], (query.id, label)
        assert len({(label.path, label.line) for label in query.relevant}) == len(query.relevant), query.id


def test_the_queries_cover_what_people_ask():
    queries = labelled_queries(TODAY)
    assert 20 <= len(queries) <= 30
    assert len({query.id for query in queries}) == len({query.query for query in queries}) == len(queries)
    kinds = Counter(query.category for query in queries)
    assert kinds.keys() == {"keyword", "paraphrase", "identifier", "chinese", "dated", "old", "none"}
    assert all(count >= 3 for kind, count in kinds.items() if kind != "none")
    for query in queries:
        best = [label for label in query.relevant if label.grade == 2]
        assert bool(best) == (query.category != "none"), query.id
        assert {label.grade for label in query.relevant} <= {1, 2}
        assert query.note
        if query.category == "chinese":
            assert re.search("[\u4e00-\u9fff]", query.query)


def test_dated_questions_name_the_day_of_their_answer():
    dated = {query.id: query for query in labelled_queries(TODAY) if query.category == "dated"}
    assert "November 8th" in dated["day-fibre"].query
    assert {label.path for label in dated["day-fibre"].relevant} == {"memory/2025-11-08.md"}
    assert "January 12th" in dated["day-decision"].query
    assert dated["day-dinner"].query.startswith("2月19日")


def test_questions_about_old_facts_have_an_answer_older_than_ninety_days():
    for query in labelled_queries(TODAY):
        if query.category == "old":
            days = [day_of(label.path) for label in query.relevant if label.grade == 2]
            assert any(day and (TODAY - day).days > 90 for day in days), query.id


def test_and_joined_keywords_find_nothing_for_the_suggested_questions(sample):
    table = apsw.Connection(":memory:")
    table.execute("CREATE VIRTUAL TABLE chunks USING fts5(text)")
    for text in notes(sample).values():
        table.executemany("INSERT INTO chunks VALUES (?)", [(chunk.text,) for chunk in chunk_text(text)])

    def hits(question: str) -> int:
        return table.execute(
            "SELECT count(*) FROM chunks WHERE chunks MATCH ?", (and_query(WORD.findall(question)),)
        ).get

    labelled = {query.query: query for query in labelled_queries(TODAY)}
    assert 4 <= len(SUGGESTED) <= 6
    for question in SUGGESTED:
        assert labelled[question].relevant
        assert hits(question) == 0
    assert hits("restic repository is already locked") == 1


def test_the_same_day_gives_the_same_files(tmp_path):
    first, second = (materialize(tmp_path / name, TODAY) for name in ("first", "second"))
    assert state(first) == state(second)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system cannot change its time zone")
def test_the_time_zone_changes_nothing(tmp_path, monkeypatch):
    copies = []
    for zone in ("UTC", "Pacific/Kiritimati", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        copies.append(state(materialize(tmp_path / zone, TODAY)))
    monkeypatch.undo()
    time.tzset()
    assert copies[0] == copies[1] == copies[2]


def test_a_note_was_last_written_on_the_evening_of_its_day(sample):
    def written(name: str) -> dt.datetime:
        return dt.datetime.fromtimestamp((sample / name).stat().st_mtime, dt.UTC)

    for name in notes(sample):
        day = day_of(name) or written(name).date()
        assert written(name) == dt.datetime.combine(day, dt.time(18), dt.UTC)
        assert day <= TODAY
    assert written("MEMORY.md").date() == TODAY - dt.timedelta(days=1)
    assert written("memory/work/deploy-runbook.md").date() == TODAY - dt.timedelta(days=28)


def test_text_is_plain_utf_8_with_newlines_and_of_the_promised_size(sample):
    texts = notes(sample)
    for name, text in texts.items():
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ufeff\ufffd]", text), name
    assert 45_000 <= sum(len(text.encode()) for text in texts.values()) <= 60_000
    assert 60 <= texts["MEMORY.md"].count("\n") <= 90
    for name, text in texts.items():
        if day_of(name):
            assert 8 <= text.count("\n") <= 40, name


def test_it_holds_text_that_looks_like_markup(sample):
    everything = "\n".join(notes(sample).values())
    for fragment in (
        "[x] done",
        "[log](",
        "[/b]",
        "[red]",
        "😂",
        "```json",
        "|-----",
        "ERR_GATEWAY_502",
        "getSessionToken()",
        "session_ttl_seconds",
        "b7e03d2",
    ):
        assert fragment in everything


def test_one_long_paragraph_stands_in_two_logs(sample):
    paragraphs = Counter(block for text in notes(sample).values() for block in text.split("\n\n") if len(block) > 200)
    assert [count for count in paragraphs.values() if count > 1] == [2]


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.md").write_text("keep me", encoding="utf-8")
    with pytest.raises(WorkspaceError, match="not empty") as refusal:
        materialize(tmp_path, TODAY)
    assert refusal.value.next_step
    assert notes(tmp_path) == {"mine.md": "keep me"}


def test_a_second_copy_into_the_same_folder_is_refused(tmp_path):
    before = state(materialize(tmp_path, TODAY))
    with pytest.raises(WorkspaceError, match="not empty"):
        materialize(tmp_path, TODAY + dt.timedelta(days=1))
    assert state(tmp_path) == before


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_in_the_way_is_said(tmp_path, name):
    (tmp_path / "file").write_text("a file", encoding="utf-8")
    with pytest.raises(WorkspaceError, match="file") as refusal:
        materialize(tmp_path / name, TODAY)
    assert refusal.value.next_step


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_said(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(WorkspaceError, match="cannot be written"):
        materialize(tmp_path / "workspace", TODAY)


def test_importing_it_loads_no_screen_and_no_numpy():
    code = (
        "import sys, memory_tui.demo as demo, datetime; demo.labelled_queries(datetime.date.today());"
        "print([m for m in ('textual', 'rich', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- what somebody who looks around finds ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The demo as a person opens it."""
    folder = tmp_path_factory.mktemp("shown")
    workspace = materialize(folder / "workspace", TODAY, more=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENCLAW_STATE_DIR", str(demo.state_folder(folder)))
        yield from _opened(folder, workspace, demo.surround(folder, workspace, TODAY))


def _opened(folder: Path, workspace: Path, facts: Path) -> Iterator[Engine]:
    config = folder / "config.json"
    config.write_text("{}")
    keep_queries(workspace, config, TODAY)
    now = dt.datetime.combine(TODAY, dt.time(20), dt.UTC).timestamp()
    options = Options(
        workspace=str(workspace),
        config=str(config),
        index=str(folder / "i.sqlite"),
        extra=(str(facts),),
        now=now,
        changes=(("sync.watch", "false"),),
    )
    with Engine.open(options) as engine:
        engine.indexer.sync()
        yield engine


@pytest.fixture(scope="module")
def findings(opened: Engine) -> list[Suggestion]:
    """What its inbox holds, found where its journal and its log are."""
    return list(opened.inbox.examine())


def test_the_inbox_holds_every_kind(opened: Engine, findings: list[Suggestion]) -> None:
    assert {one.kind for one in findings} == BY_KIND.keys()
    dead = [one.place.path for one in findings if one.kind == "dead path"]
    assert dead == ["memory/errands.md"], "links of an extra folder lead to its files"
    assert not opened.notes.curator.undoable(), "what another program did is nobody's to undo"


def test_agents_asked_in_the_demo_and_it_goes_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with own() as folder:
        workspace = materialize(folder / WORKSPACE, TODAY, more=True)
        demo.surround(folder, workspace, TODAY)
        texts = notes(workspace)
        asked = recall_log.read(recall_log.recall_log_path(workspace)).entries
        assert {entry.client for entry in asked} == {"openclaw", "claude-code", "codex"}
        for hit in (hit for entry in asked for hit in entry.hits):
            assert hit.end_line <= len(texts[hit.path].split("\n")), hit
            assert hit.first_line <= hit.last_line <= hit.end_line, hit
        for entry in asked:
            assert all(dated <= entry.at for dated in map(_noon_of, (hit.path for hit in entry.hits))), entry.query
        assert {entry.reply for entry in asked} == {"found", "nearby only", "nothing"}
        assert len({entry.client for entry in asked if entry.reply == "nearby only"}) > 1
        assert not any(demo.LOST in text for text in texts.values())
    assert not [path for path in (tmp_path / "state").rglob("*") if path.is_file()]


def _noon_of(path: str) -> float:
    """Noon of the day of a dated note, as agents ask it; 0 for any other."""
    found = re.search(r"\d{4}-\d\d-\d\d", path)
    try:
        return dt.datetime.combine(dt.date.fromisoformat(found[0]), dt.time(12)).timestamp() if found else 0.0
    except ValueError:
        return 0.0


def test_the_log_of_the_demo_is_what_the_server_answers(tmp_path: Path) -> None:
    """Where this fails because the ranking is another one: python -m tests.tools.demo_log."""
    kept = {fields["query"]: fields for fields in demo_log.questions()}
    knobs = profiles.compose(profiles.OWN, {}, {})
    for fields, entry in demo_log.answers(tmp_path):
        made = demo_log.as_line(fields, entry)
        logged = kept[entry.query]
        for name in ("provider", "model", "mode", "level"):
            assert made[name] == logged[name], (entry.query, name)
        assert [hit["path"] for hit in made["hits"][:1]] == [hit["path"] for hit in logged["hits"][:1]], entry.query
        assert entry.settings == {key: knobs.values[key].value for key in TUNE_KEYS}


def test_then_and_now_says_nothing_unknown_of_the_log(opened: Engine, tmp_path: Path) -> None:
    workspace = materialize(tmp_path / WORKSPACE, TODAY, more=True)
    demo.surround(tmp_path, workspace, TODAY)
    entries = recall_log.read(recall_log.recall_log_path(workspace)).entries
    assert len(entries) == len(demo_log.questions())
    for entry in entries:
        found = rerun.replay(entry, opened.plan.settings, opened.queries.gather)
        told = "\n".join(recalled_lines.replayed(found))
        assert f"Knobs: recommended, results 6, minScore 0; {entry.mode}\nLevel of the answer: " in told
        assert isinstance(found.remade, rerun.Rebuilt) or found.remade.obstacle == "newer notes", told
        assert "another index" not in told


@pytest.mark.parametrize("today", ANY_DAY, ids=str)
def test_every_label_holds_beside_the_other_notes(tmp_path: Path, today: dt.date) -> None:
    texts = notes(materialize(tmp_path / "w", today, more=True))
    assert {*notes(materialize(tmp_path / "v", today))} < {*texts}
    for query in labelled_queries(today):
        for label in query.relevant:
            assert label.answer in texts[label.path].split("\n")[label.line - 1], (query.id, label)


def test_the_notebook_holds_the_labelled_questions(opened: Engine) -> None:
    book = judgments.load(judgments.notebook_path(opened.plan.roots.workspace, opened.plan.own_named))
    assert len(book.judged) == len(labelled_queries(TODAY)) >= 26


def test_its_recalls_make_candidates_and_go_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with own() as folder:
        workspace = materialize(folder / WORKSPACE, TODAY, more=True)
        keep_recalls(workspace, TODAY)
        found = recalled_lines.activity(workspace)
        texts = notes(workspace)
        for path, spans in found.lines.items():
            assert all(last <= len(texts[path].split("\n")) for _, last in spans), path
        often = [path for path in found.days if path.startswith("memory/2") and found.count(path) >= OFTEN]
        assert len(often) > 1, "logs that are recalled often"
        edge = TODAY - dt.timedelta(days=90)
        logs = {path for path in texts if re.fullmatch(r"memory/20\d\d-\d\d-\d\d.md", path) and "-02-30" not in path}
        old = {path for path in logs if (day := day_of(path)) is not None and day < edge}
        assert old - found.days.keys(), "old logs that nobody recalls"
        assert old & found.days.keys(), "and one that somebody does"
        assert found.weeks("MEMORY.md", TODAY, 8)[-1], "a line of recalls in the list of notes"
    assert not recalled_lines.activity(workspace).days
    assert not [path for path in (tmp_path / "state").rglob("*") if path.is_file()], "nor a lock of a record"


def test_it_holds_a_conflict_and_three_languages(opened: Engine) -> None:
    texts = notes(opened.plan.roots.workspace)
    leads = {path: line for path, text in texts.items() for line in text.split("\n") if line.startswith("- Team lead:")}
    assert len(set(leads.values())) == 2, "the same subject, another value"
    assert len({day_of(path) for path in leads}) == 2, "a later day"
    assert any(re.search("[\u4e00-\u9fff]{6}", text) for text in texts.values())
    hits = opened.queries.search("Wann darf die Hecke geschnitten werden?").recalled
    assert hits[0].chunk.path == "memory/garten.md"


def test_a_wrong_recall_is_mended_by_one_knob(opened: Engine) -> None:
    """A hit that answers nothing goes, and every hit with an answer stays."""
    query = next(one for one in labelled_queries(TODAY) if one.query == SUGGESTED[0])
    evidence = opened.queries.gather(query.query)
    ranked = opened.queries.rank(evidence, opened.plan.settings)

    def right(chunk: ChunkRef) -> bool:
        return any(one.path == chunk.path and chunk.start_line <= one.line <= chunk.end_line for one in query.relevant)

    mended = []
    for hit in ranked.recalled:
        if not right(hit.chunk):
            row = next(row for row, ref in evidence.refs.items() if ref == hit.chunk)
            mended += [
                flip.key
                for flip in flips(evidence, opened.plan.settings, row, opened.plan.with_profile).found
                if flip.key not in WHOLE and not any(right(ref) for ref in flip.drops_out)
            ]
    assert any(right(hit.chunk) for hit in ranked.recalled)
    assert mended
