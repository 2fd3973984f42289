"""The command line: what it prints, what it exits with, and that bad input gets a sentence and loses nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_tui import __version__
from memory_tui.cli import main
from memory_tui.cli.commands import COMMANDS, EXIT_CODES
from memory_tui.core.errors import Unreadable
from memory_tui.workspace import roots
from memory_tui.workspace.notes import Document
from memory_tui.workspace.scan import Found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605, VLAN 10\n- 喜欢乌龙茶\n")
    (folder / "memory" / "2026-11-18.md").write_text("# Wednesday\nMoved the printer to VLAN 20 [x] done [a](b) [/b]\n")
    return folder


@pytest.fixture
def run(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command line on the workspace; returns exit code, stdout and stderr."""

    def go(*arguments: str, folder: Path | None = workspace) -> tuple[int, str, str]:
        where = ["--workspace", str(folder)] if folder else []
        try:
            code = main.main([*where, "--index", str(tmp_path / "index.sqlite"), *arguments])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return go


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below `folder` with its content and modification time."""
    return {
        str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and os.access(path, os.R_OK)
    }


def test_search_indexes_first_and_prints_hits_with_citations(run: Callable) -> None:
    code, out, err = run("search", "omada router")
    assert code == 0
    assert "MEMORY.md#L1-L3" in out, "the note has three lines"
    assert err == ""


@pytest.mark.parametrize("set_back", [False, True])
def test_an_edit_that_keeps_the_size_of_a_note_is_indexed(run: Callable, workspace: Path, set_back: bool) -> None:
    note = workspace / "memory" / "2026-11-18.md"
    assert "VLAN 20" in run("search", "printer")[1]
    before = note.stat()
    note.write_text(note.read_text().replace("printer", "scanner"))
    if set_back:
        os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert note.stat().st_size == before.st_size
    assert "Moved the scanner" in run("search", "scanner")[1]


def test_json_has_the_documented_shape(run: Callable) -> None:
    code, out, _ = run("search", "--json", "--explain", "omada router")
    answer = json.loads(out)
    assert code == 0
    shown = {
        "results",
        "provider",
        "model",
        "profile",
        "mode",
        "fallback",
        "answerLevel",
        "empty",
        "notices",
        "roots",
    } | {"backend", "stale"}
    assert set(answer) == {*shown, "trace"}
    assert set(json.loads(run("search", "--json", "omada router")[1])) == shown
    assert set(answer["results"][0]) == {
        "path",
        "startLine",
        "endLine",
        "score",
        "vectorScore",
        "textScore",
        "snippet",
        "source",
        "citation",
    }
    assert (answer["provider"], answer["profile"], answer["mode"]) == ("builtin", "recommended", "hybrid")
    assert answer["trace"]["funnel"]["recalled"] == len(answer["results"])


def test_global_options_stand_before_or_after_the_command(
    run: Callable, workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["--json", "status", "--workspace", str(workspace), "--index", str(tmp_path / "other")]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["workspaceDir"] == str(workspace)
    assert status["freshness"]["pending"][0]["detail"] == "new"


def test_settings_before_and_after_the_command_all_count() -> None:
    words = ["--set", "a=1", "--extra", "x", "search", "y", "--set", "b=2", "--set", "a=3"]
    given = main.parsed(words)
    assert (given.set, given.extra) == (["a=1", "b=2", "a=3"], ["x"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["./notes", "--query", "x"],
        ["--query", "x", "./notes"],
        ["--read-only", "./notes", "--query=x"],
        ["open", "./notes", "--query", "x"],
        ["--json", "--query", "x", "--workspace", "w", "./notes"],
    ],
)
def test_a_bare_path_opens_the_app_wherever_the_options_stand(arguments: list[str]) -> None:
    given = main.parsed(arguments)
    assert (given.command, given.path, given.query) == ("open", "./notes", "x")


def test_status_has_the_documented_names(run: Callable) -> None:
    run("index")
    status = json.loads(run("status", "--json", "--deep")[1])
    for name in (
        "files",
        "chunks",
        "provider",
        "model",
        "dbPath",
        "vector",
        "fts",
        "cache",
        "fallback",
        "sourceCounts",
        "profile",
        "freshness",
    ):
        assert name in status
    assert (status["files"], status["chunks"], status["freshness"]["fresh"]) == (2, 2, 2)
    assert status["embeddingProbe"]["ok"] is True
    text = run("status")[1]
    assert "2/2 files" in text
    assert "loses nothing but time" in text


def test_a_question_a_line_gets_an_answer_a_line(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    long = json.dumps({"id": "long", "query": "x" * 60_000})
    nested = f'{{"query":{"[" * 100_000}'
    lines = f'vlan\n{{"id": "q7", "query": "乌龙茶"}}\n{{"id": 1}}\n{{broken\n\n{long}\n{nested}\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    code, out, _ = run("search", "--stdin")
    answers = [json.loads(line) for line in out.strip().split("\n")]
    assert code == 0
    assert [answer["id"] for answer in answers] == [None, "q7", 1, None, "long", None]
    assert answers[1]["results"][0]["path"] == "MEMORY.md"
    assert ["error" in answer for answer in answers] == [False, False, True, True, True, True]


def test_a_budget_of_characters_holds_for_questions_a_line(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [{"query": "vlan", "options": {"maxCharacters": most}} for most in (60, 0, None)]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps(one) + "\n" for one in asked)))
    out = run("search", "--stdin", "--max-characters", "900")[1]
    passages = [[one["text"] for one in json.loads(line).get("passages", ())] for line in out.splitlines()]
    small, large = (
        [one["text"] for one in json.loads(run("search", "vlan", "--max-characters", most, "--json")[1])["passages"]]
        for most in ("60", "900")
    )
    assert passages == [small, [], large]
    assert len(small) < len(large)


def test_explain_adds_up_and_names_the_losers(run: Callable) -> None:
    out = run("search", "omada router", "-n", "1", "--explain")[1]
    assert "cosine" in out
    assert "NOT" not in out.split("\n\n")[0]
    assert "2nd, limit 1" in out


def test_a_note_that_waits_is_named_in_text_and_json(run: Callable, workspace: Path) -> None:
    late = ("--set", "sync.onSearch=off", "search", "zeppelin")
    assert json.loads(run("search", "router", "--json")[1])["stale"] is False
    (workspace / "memory" / "2026-11-19.md").write_text("The zeppelin lands on Sunday.\n")
    _, _, said = run(*late)
    assert "No note holds" not in said
    assert said.count('holds "zeppelin"') == 1
    assert "Not in this answer as on disk: memory/2026-11-19.md. Run memory-tui index" in said
    answer = json.loads(run(*late, "--json")[1])
    assert answer["stale"] is True
    assert "memory/2026-11-19.md" in answer["warning"]
    assert "memory-tui index" in answer["action"]


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3"])
def test_a_session_below_its_threshold_is_named_with_its_word(
    run: Callable, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    sessions = tmp_path / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    config = tmp_path / "openclaw.json"
    options = {"sources": ["memory", "sessions"], "experimental": {"sessionMemory": True}}
    config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": options}}}))
    with_sessions = ("--config", str(config), "--profile", profile)
    assert run(*with_sessions, "index")[0] == 0
    said = {"type": "message", "message": {"role": "user", "content": "Where is the zeppelin?"}}
    (sessions / "s.jsonl").write_text(json.dumps(said) + "\n")
    _, _, err = run(*with_sessions, "search", "zeppelin landing", "--min-score", "0.01")
    assert err.count('sessions/s.jsonl, which is not indexed yet, holds "zeppelin"') == 1
    assert "Below the threshold, and not being indexed: sessions/s.jsonl" in err
    assert json.loads(run(*with_sessions, "search", "zeppelin", "--json")[1])["stale"] is True


def test_without_a_log_nothing_tells_what_agents_got(run: Callable) -> None:
    code, out, _ = run("why", "--never")
    assert (code, "nothing tells which lines agents got" in out, "MEMORY.md" in out) == (0, True, False)


@pytest.mark.parametrize(
    ("query", "off", "said", "denied"),
    [
        ("vor drei Tagen", "", 'Read "vor drei Tagen" as', '"drei" was searched'),
        ("北京", "", 'was searched as "beijing"', "No note holds 北京"),
        ("garden map", "fts5", "There is no full-text search", "0% of what was asked"),
    ],
)
def test_notices_of_one_answer_agree(
    run: Callable, workspace: Path, monkeypatch: pytest.MonkeyPatch, query: str, off: str, said: str, denied: str
) -> None:
    (workspace / "MEMORY.md").write_text("She drew a map of the garden in Beijing.\n")
    monkeypatch.setenv("MEMORY_TUI_DISABLE", off)
    err = run("search", query)[2]
    assert said in err
    assert denied not in err


def test_settings_change_the_answer(run: Callable) -> None:
    chosen = ("--profile", "openclaw-2026.2", "--set", "query.minScore=1")
    found = run("search", "omada router", *chosen, "--json", "--explain")[1]
    answer = json.loads(found)
    assert answer["results"] == []
    assert answer["empty"]["kind"] == answer["trace"]["empty"]["kind"] == "all_below_gate"
    assert answer["trace"]["settings"]["query.minScore"] == {"value": 1.0, "origin": "the command line"}


def test_get_prints_lines_and_says_where_to_go_on(run: Callable, workspace: Path) -> None:
    (workspace / "memory" / "long.md").write_text("".join(f"line {i}\n" for i in range(1, 301)))
    code, out, _ = run("get", "memory/long.md", "--from", "5", "--lines", "2")
    assert (code, out) == (0, "line 5\nline 6\n")
    note = json.loads(run("get", "memory/long.md", "--json")[1])
    assert (note["lines"], note["totalLines"], note["nextFrom"]) == (120, 300, 121)
    assert run("get", "memory/long.md", "--from", "299")[1] == "line 299\nline 300\n"


@pytest.mark.parametrize(
    "path",
    ["../secret.md", "/etc/passwd", "memory/../../x.md", "MEMORY.txt", "", "memory", "a\0b.md", "memory/nothing.md"],
)
def test_get_refuses_what_is_not_a_note(run: Callable, path: str) -> None:
    code, out, err = run("get", path)
    assert (code, out) == (2, "")
    assert err.startswith("memory-tui: ")
    assert "Traceback" not in err


def test_get_says_what_it_leaves_out(run: Callable, workspace: Path) -> None:
    (workspace / "memory" / "line.md").write_text("x" * 50_000 + "\nend\n")
    assert "line 1 is longer than 12,000 characters and was cut" in run("get", "memory/line.md")[2]


def test_an_error_is_json_too(run: Callable) -> None:
    code, out, err = run("search", "x", "--set", "minScore=2", "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "setting"
    assert "minScore" in err


def test_an_answer_by_words_alone_is_an_answer_and_an_index_without_its_vectors_is_not(
    run: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, err = run("search", "router", "--provider", "openai")
    assert code == 0
    assert "MEMORY.md" in out
    assert "Meaning-based recall is off" in err
    assert run("index", "--provider", "openai")[0] == 1
    promised = " ".join(EXIT_CODES.split())
    assert "0 done; an answer without hits is an answer, and so is one by words alone, with a notice" in promised


def test_another_provider_has_an_index_of_its_own(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = set()
    for provider in ("builtin", "none", "scripted"):
        assert main.main(["status", "--json", "--workspace", str(workspace), "--provider", provider]) == 0
        paths.add(json.loads(capsys.readouterr().out)["dbPath"])
    assert len(paths) == 3


def test_why_file_gives_a_reason_for_any_path(run: Callable, workspace: Path) -> None:
    (workspace / "memory" / "photo.jpg").write_bytes(b"x")
    (workspace / "memory" / "link.md").symlink_to(workspace / "MEMORY.md")
    run("index")
    assert "part of the memory" in run("why", "--file", "MEMORY.md")[1]
    assert "Indexed as it is on disk, in 1 chunk." in run("why", "--file", "MEMORY.md")[1]
    assert "not markdown" in run("why", "--file", "memory/photo.jpg")[1]
    assert "symlink" in run("why", "--file", str(workspace / "memory" / "link.md"))[1]
    code, out, _ = run("why", "--file", "memory/none.md")
    assert (code, "missing" in out) == (2, True)
    verdict = json.loads(run("why", "--file", "/etc/passwd", "--json")[1])
    assert (verdict["included"], verdict["rule"]) == (False, "outside")


def test_hostile_text_is_shown_and_obeyed_by_nobody(run: Callable, workspace: Path) -> None:
    evil = "\x1b]52;c;ZXZpbA==\x07 \x1b[31mred\x9b \u202eright [x] [/b]"
    (workspace / "memory" / "evil\x1b[2J.md").write_text(f"router {evil}\n")
    for arguments in (
        ["search", "router", "--explain"],
        ["search", "router", "--json"],
        ["status"],
        ["get", "memory/evil\x1b[2J.md"],
        ["why", "--file", "memory/evil\x1b[2J.md"],
    ):
        _, out, err = run(*arguments)
        assert not set(out + err) & CONTROLS, arguments
    found = json.loads(run("search", "router", "--json")[1])
    assert any(evil in hit["snippet"] for hit in found["results"]), "JSON carries the text unchanged"


CONTROLS = {chr(n) for n in (*range(32), *range(0x7F, 0xA0), 0x202E)} - {"\n"}

BAD: list[tuple[list[str], int]] = [
    (["search"], 2),
    (["search", "x", "-n", "0"], 2),
    (["search", "x", "-n", "-3"], 2),
    (["search", "x", "-n", "1e3"], 2),
    (["search", "x", "--min-score", "2"], 2),
    (["search", "x", "--min-score", "nan"], 2),
    (["search", "x", "--min-score", "many"], 2),
    (["search", "x", "--set", "nonsense=1"], 2),
    (["search", "x", "--set", "halfLifeDays=0"], 2),
    (["search", "x", "--set", "minScore"], 2),
    (["search", "x", "--profile", "mine"], 2),
    (["search", "x", "--now", "tomorrow"], 2),
    (["search", "x" * 1_048_576], 2),
    (["search", "x", "--provider", "openia"], 2),
    (["frobnicate/nowhere"], 2),
    (["get", "MEMORY.md", "--from", "0"], 2),
    (["index", "--nonsense"], 2),
    (["serch", "x"], 2),
    (["status", "--config", "/nowhere.json"], 2),
]


@pytest.mark.parametrize(("arguments", "code"), BAD, ids=[" ".join(a)[:40] for a, _ in BAD])
def test_bad_usage_gets_a_sentence(run: Callable, workspace: Path, arguments: list[str], code: int) -> None:
    before = fingerprint(workspace)
    got, out, err = run(*arguments)
    assert got == code, err
    assert out == ""
    assert "memory-tui: " in err
    assert "Traceback" not in err
    assert fingerprint(workspace) == before


def test_why_takes_question_and_place_in_either_order(run: Callable) -> None:
    question, place = "omada router", "MEMORY.md:2"
    assert run("why", place, question)[:2] == run("why", question, place)[:2]
    assert run("why", question, place)[0] == 0
    assert "There is no note nowhere.md" in run("why", question, "nowhere.md")[2]


@pytest.mark.parametrize("words", [("search", "-vlan"), ("search", "-nature"), ("why", "-vlan", "MEMORY.md")])
def test_a_text_that_begins_with_a_dash_is_told_its_way(run: Callable, words: tuple[str, ...]) -> None:
    code, _, err = run(*words)
    assert (code, f"memory-tui {words[0]} -- {words[1]}." in err) == (2, True)
    assert run(words[0], "--", *words[1:])[0] == 0


@pytest.mark.parametrize(
    "query",
    [
        "!!! ??? ---",
        '"',
        '""" OR "',
        "router NOT vlan OR NEAR(a b, 3) host*",
        "path: router text: vlan",
        "a AND",
        "* ^ ( )",
        "🚀" * 50,
        "\x00 nul",
        "x" * 9_999,
        "a " * 4_000,
        "\u202e",
        "%_%",
    ],
)
def test_any_query_is_answered(run: Callable, query: str) -> None:
    for profile in ("recommended", "openclaw-2026.3"):
        code, out, err = run("search", query, "--json", "--profile", profile)
        assert code == 0, err
        answer = json.loads(out)
        assert answer["results"] or answer["empty"]["sentence"]


def test_weights_of_nothing_fall_back_to_the_documented_ones(run: Callable) -> None:
    answer = json.loads(
        run(
            "search",
            "omada",
            "--json",
            "--explain",
            "--profile",
            "openclaw-2026.3",
            "--set",
            "vectorWeight=0",
            "--set",
            "textWeight=0",
            "--set",
            "minScore=0",
        )[1]
    )
    assert answer["trace"]["recalled"][0]["vector"]["weight"] == 0.7


def test_a_missing_and_an_empty_workspace(run: Callable, tmp_path: Path) -> None:
    code, _, err = run("search", "x", folder=tmp_path / "nowhere")
    assert code == 2
    assert "nowhere" in err
    (tmp_path / "bare").mkdir()
    code, out, _ = run("search", "x", folder=tmp_path / "bare")
    assert code == 0
    assert "holds no notes yet" in out


def test_an_extra_path_that_is_not_there_is_said(run: Callable) -> None:
    code, out, err = run("search", "router", "--extra", "no/such")
    assert (code, bool(out)) == (0, True)
    assert "--extra no/such: there is nothing at " in err
    assert "nothing at" not in run("search", "router", "--extra", "memory")[2]


def test_an_index_that_was_never_filled_has_no_provider_yet(run: Callable) -> None:
    assert "no provider yet, nothing is indexed" in run("status")[1]
    run("index")
    assert "none yet" not in run("status")[1]


def test_a_configuration_error_tells_line_and_column(run: Callable, tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text("{\n  agents: {defaults: {memorySearch: {query: {minScore: 0.1,,}}}}\n}")
    code, _, err = run("search", "x", "--config", str(config))
    assert code == 2
    assert "line 2, column " in err


def test_openclaw_s_configuration_chooses_its_profile(run: Callable, tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text("// mine\n{agents: {defaults: {memorySearch: {query: {maxResults: 1, minScore: 7}}}}}")
    out = run("search", "router", "--config", str(config), "--json", "--explain")[1]
    answer = json.loads(out)
    assert answer["profile"] == "openclaw-2026.3"
    assert answer["trace"]["settings"]["query.maxResults"]["value"] == 1
    assert any("minScore" in notice["message"] for notice in answer["notices"])


def test_a_remote_provider_of_the_configuration_gets_nothing_by_itself(run: Callable, tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text('{agents: {defaults: {memorySearch: {provider: "openai", remote: {apiKey: "k"}}}}}')
    code, out, err = run("search", "router", "--config", str(config), "--profile", "recommended")
    assert code == 0
    assert "MEMORY.md" in out
    assert "Meaning-based recall is off" in err
    assert "openai" in err
    assert "memory-tui index --yes" in err
    status = json.loads(run("status", "--config", str(config), "--json")[1])
    assert "Your notes would be sent to api.openai.com" in status["providerState"]


def test_no_vectors_on_purpose(run: Callable) -> None:
    answer = json.loads(run("search", "router", "--provider", "none", "--json")[1])
    assert answer["mode"] == "keywords only"
    assert answer["results"][0]["vectorScore"] == 0


def test_files_that_cannot_be_notes_do_no_harm(run: Callable, workspace: Path) -> None:
    memory = workspace / "memory"
    (memory / "invalid.md").write_bytes(b"router \xff\xfe broken \xc3( bytes\n")
    (memory / "nul.md").write_bytes(b"router\x00nul\n")
    (memory / "line.md").write_text("router " * 1_500_000)
    with (memory / "huge.md").open("wb") as huge:
        huge.truncate(100 * 1024 * 1024)
    os.mkfifo(memory / "pipe.md")
    (memory / "loop").symlink_to(memory)
    (memory / "dir.md").mkdir()
    before = fingerprint(workspace)
    code, _, err = run("index")
    assert code == 0, err
    assert "part of the memory" in run("why", "--file", "memory/invalid.md")[1]
    for name, rule in (("huge.md", "too big"), ("pipe.md", "not a file"), ("loop", "symlink")):
        assert rule in run("why", "--file", f"memory/{name}")[1]
    assert run("search", "router")[0] == 0
    assert fingerprint(workspace) == before


@pytest.mark.parametrize("words", [("index",), ("status", "--sync")])
def test_a_note_that_cannot_be_read_fails_the_command(
    run: Callable, workspace: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    read = roots.read

    def refuse(note: Found) -> Document:
        if note.path == "MEMORY.md":
            raise Unreadable("Input/output error.", "Check the disk.")
        return read(note)

    monkeypatch.setattr(roots, "read", refuse)
    code, out, err = run(*words)
    assert code == 1
    assert "Input/output error" in out + err


def test_an_index_whose_links_lead_in_a_circle_is_refused(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    code, _, err = run("search", "x", "--index", str(tmp_path / "circle"))
    assert code == 2
    assert "its links lead in a circle" in err


def test_a_home_that_nobody_has_is_no_place_for_an_index(run: Callable) -> None:
    code, _, err = run("status", "--index", "~nobody-of-this-name/index.sqlite")
    assert code == 2
    assert "there is no such home folder" in err


def test_a_lock_file_of_another_program_is_refused_and_stays(run: Callable, tmp_path: Path) -> None:
    lock = tmp_path / "poetry.lock"
    lock.write_text("[[package]]\n")
    for command in (("search", "router"), ("index",)):
        code, out, err = run(*command, "--index", str(tmp_path / "poetry"))
        assert code == 2, out + err
        assert "another program's file has this name" in err
    assert lock.read_text() == "[[package]]\n"


@pytest.mark.parametrize("command", [("search", "router"), ("index",), ("index", "--force"), ("doctor",), ("status",)])
def test_a_file_that_is_no_index_is_refused_and_stays(run: Callable, tmp_path: Path, command: tuple[str, ...]) -> None:
    index = tmp_path / "index.sqlite"
    index.write_text("this is not a database, it is my shopping list\n" * 100)
    before = index.lstat()
    code, out, err = run(*command)
    assert "is not an index of memory-tui, so memory-tui leaves it alone" in out + err
    assert code == (0 if command == ("status",) else 2)
    after = index.lstat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)
    assert index.read_text() == "this is not a database, it is my shopping list\n" * 100
    assert list(tmp_path.glob("index.sqlite?*")) == []


def test_a_read_only_workspace_is_indexed_elsewhere(run: Callable, workspace: Path) -> None:
    for folder in (workspace, workspace / "memory"):
        folder.chmod(0o555)
    try:
        assert run("search", "router")[0] == 0
    finally:
        for folder in (workspace, workspace / "memory"):
            folder.chmod(0o755)
    assert sorted(p.name for p in workspace.rglob("*") if p.is_file()) == ["2026-11-18.md", "MEMORY.md"]


def test_the_app_needs_a_terminal(run: Callable) -> None:
    code, _, err = run(folder=None)
    assert code == 2
    assert "memory-tui: " in err


def child(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "memory_tui", *arguments], capture_output=True, check=False, **options)


def test_version_needs_neither_numpy_nor_a_screen() -> None:
    code = (
        "import sys; sys.argv = ['memory-tui', '--version']\nfrom memory_tui.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'textual', 'rich', 'apsw', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["memory-tui", __version__, "[]"]


def test_a_reader_that_has_seen_enough_is_no_error(workspace: Path, tmp_path: Path) -> None:
    program = shlex.join(
        [
            sys.executable,
            "-m",
            "memory_tui",
            "search",
            "router",
            "--workspace",
            str(workspace),
            "--index",
            str(tmp_path / "i"),
            "--json",
        ]
    )
    command = f"{program} | head -1; {{ {program}; echo $? >&2; }} | :"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "{\n"
    assert done.stderr == "0\n"


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "none"])
def test_a_missing_folder_is_the_only_complaint(
    run: Callable, tmp_path: Path, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    code, out, err = run(str(tmp_path / "nowhere"), folder=None)
    assert code == 2
    assert out == ""
    assert f"There is no folder {tmp_path / 'nowhere'}." in err
    assert "terminal" not in err


def test_a_terminal_that_knows_only_ascii_gets_an_answer(workspace: Path, tmp_path: Path) -> None:
    done = child(
        "search",
        "乌龙茶",
        "--workspace",
        str(workspace),
        "--index",
        str(tmp_path / "i"),
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert "喜欢乌龙茶" in done.stdout.decode()


# --- answers that were false or mute -------------------------------------------------------------------------------


def refused(run: Callable, *arguments: str) -> str:
    """What stderr says of `arguments` that cannot be done; with --json the same error stands on stdout."""
    code, out, err = run(*arguments)
    assert code == 2, (arguments, out, err)
    assert out == ""
    assert err.startswith("memory-tui: ")
    assert err.count("\n") == 2, "a sentence and a next step"
    code, out, _ = run(*arguments, "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert err == f"memory-tui: {error['message']}\n  {error['nextStep']}\n"
    return err


def test_a_change_that_is_not_there_cannot_be_undone(run: Callable) -> None:
    assert "There is no change 999." in refused(run, "undo", "999")
    assert "No note was changed yet." in refused(run, "undo")
    assert run("remember", "the first", "--yes")[0] == 0
    assert run("remember", "the second", "--yes")[0] == 0
    assert run("undo", "--yes")[0] == 0
    for verb, number in ((("undo",), 1), (("undo", "--redo"), 2)):
        said = refused(run, *verb, "999")
        assert "There is no change 999; the journal has 1 to 3." in said
        assert f"These can be {'undone' if len(verb) == 1 else 'redone'}: {number}." in said
    assert "Change 2 cannot be undone now." in refused(run, "undo", "2")
    for text in ("-3", "0", "1.5", "last"):
        assert "is not a whole number from 1" in run("undo", "--", text)[2]
    assert run("journal", "nope.md")[1] == "nope.md was not changed with memory-tui.\n"


def test_a_kind_that_is_none_is_refused(run: Callable) -> None:
    from memory_tui.inbox.checks import BY_KIND

    said = refused(run, "inbox", "--kind", "foo")
    assert all(kind in said for kind in BY_KIND)
    for kind in ("dead-path", "dead path", "Dead_Path"):
        assert run("inbox", "--kind", kind) == (0, "Nothing of the kind dead path needs attention.\n", "")


def test_a_line_after_the_end_is_refused_with_the_length(run: Callable, workspace: Path) -> None:
    assert "MEMORY.md has 3 lines; there is no line 9,999." in refused(run, "get", "MEMORY.md", "--from", "9999")
    refused(run, "get", "MEMORY.md", "--from", "4")
    assert run("get", "MEMORY.md", "--from", "3")[1] == "- 喜欢乌龙茶\n"
    (workspace / "memory" / "empty.md").write_text("")
    assert run("get", "memory/empty.md") == (0, "", "memory-tui: memory/empty.md is empty.\n")


@pytest.mark.parametrize("word", ["finish", "indx", "Search", "version"])
def test_a_word_that_is_no_command_is_not_taken_for_a_folder(run: Callable, word: str) -> None:
    code, out, err = run(word, folder=None)
    assert (code, out) == (2, "")
    assert err.startswith(f"memory-tui: There is no command {word!r}, and no such folder.")
    near = {"indx": "index", "Search": "search", "version": "--version"}.get(word)
    assert f"Did you mean {near}?" in err if near else "--help lists the commands" in err


def test_a_folder_with_such_a_name_is_still_a_workspace(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "complete").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "needs a terminal" in run("complete", folder=None)[2]
    assert "There is no folder" in run("./nowhere", folder=None)[2]


GLOBAL = {
    "--workspace": "notes",
    "--config": "c.json",
    "--agent": "main",
    "--extra": "more",
    "--index": "i.sqlite",
    "--provider": "none",
    "--profile": "recommended",
    "--set": "query.minScore=0.1",
    "--now": "2026-11-20",
}


def test_every_global_option_is_taken_after_every_command() -> None:
    needs = {
        "get": ["MEMORY.md"],
        "why": ["a", "b"],
        "remember": ["a"],
        "promote": ["a:1"],
        "archive": ["--older-than", "3"],
        "hook": ["claude-code"],
        "openclaw inject": ["a"],
        "qmd": ["status"],
        "ltm": ["list"],
    }
    for command in COMMANDS:
        for option, value in GLOBAL.items():
            given = main.parsed([*command.split(), *needs.get(command, []), option, value])
            assert value in str(vars(given)[option.strip("-")]), (command, option)
        for option in ("--read-only", "--json", "--claude-code"):
            assert vars(main.parsed([*command.split(), *needs.get(command, []), option]))[option[2:].replace("-", "_")]


def test_the_app_and_the_demo_begin_with_a_question() -> None:
    for command in ("open", "demo"):
        assert main.parsed([command, "--query", "vlan"]).query == "vlan"


def test_an_answer_in_json_is_short_without_explain(run: Callable, workspace: Path) -> None:
    for number in range(60):
        lines = "\n".join(f"- router {number} vlan {line} omada network printer" for line in range(40))
        (workspace / "memory" / f"topic-{number}.md").write_text(f"# Topic {number}\n\n{lines}\n")
    code, out, _ = run("search", "router vlan", "--json")
    assert code == 0
    assert len(json.loads(out)["results"]) == 6
    assert len(out.encode()) < 20_000
    assert "trace" not in json.loads(out)
    assert len(run("search", "router vlan", "--json", "--explain")[1].encode()) > 100_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("doctor", "--deadline", "-5"), "is not a number from 0.1 up"),
        (("doctor", "--deadline", "nan"), "is not a number from 0.1 up"),
        (("eval", "--tolerance", "inf"), "is not a number from 0 up"),
        (("eval", "--fail-under", "recall=nan"), "--fail-under takes METRIC=NUMBER"),
        (("eval", "--fail-under", "recall"), "--fail-under takes METRIC=NUMBER"),
        (("status", "extra"), "Unrecognized arguments: extra."),
        (("--bogus", "search", "x"), "There is no option --bogus that stands before a command."),
        (("--worspace", "notes", "search", "x"), "Did you mean --workspace?"),
        (("why", "bicycle", "door"), "If door belongs to the question, put the question in quotes."),
        (("search", "x", "-n", "0"), "is not a whole number from 1"),
        (("search", "x", "--source", "foo"), "'memory', 'sessions'"),
        (("why", "x"), "A query and a line belong together."),
        (("get", "nope.md"), "There is no note nope.md."),
        (("get", "memory/nope.md"), "There is no note memory/nope.md."),
        (("promote", "nope.md:1"), "There is no note nope.md."),
        (("journal", "memory/nope.md", "--restore"), "There is no note memory/nope.md, and no text of one is kept."),
        (("get", "../nope.md"), "outside the places"),
        (("recall-log", "last"), "memory-tui connect AGENT --log-recalls"),
        (("search", "router", "vlan"), 'search "router vlan". memory-tui search --help'),
        (("search", "x", "--limit", "3"), "memory-tui search --help"),
        (("search", " "), "There is no query."),
        (("why", "", "MEMORY.md:1"), "There is no query."),
        (("get", "memory/empty.md", "--from", "9999"), "memory/empty.md is empty; there is no line 9,999."),
        (("provider", "--provider", "builtin", "--approve", "builtin"), "builtin needs no approval: it runs inside"),
        (("provider", "--approve", "scripted"), "scripted is not configured here"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(
    run: Callable, workspace: Path, arguments: tuple[str, ...], said: str
) -> None:
    (workspace / "memory" / "empty.md").touch()
    assert said in refused(run, *arguments)


@pytest.mark.parametrize("option", ["--workspace", "--config"])
def test_a_path_in_the_home_of_nobody_is_refused_in_one_sentence(run: Callable, option: str) -> None:
    assert "begins with ~ and a name that no user" in refused(run, "config", option, "~nobody-of-this-name/notes")
