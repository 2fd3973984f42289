"""The command line: what it prints, what it exits with, and that bad input gets a sentence and loses nothing."""

import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from memory_tui import __version__
from memory_tui.cli import main
from memory_tui.cli.commands import COMMANDS, EXIT_CODES, GLOBAL
from memory_tui.inbox.checks import BY_KIND
from tests.support.commands import alone
from tests.support.workspace import put_all


@pytest.fixture
def workspace(tmp_path):
    facts = {"MEMORY.md": "# Facts\n- Router: Omada ER605, VLAN 10\n- 喜欢乌龙茶\n"}
    day = {"memory/2026-11-18.md": "# Wednesday\nMoved the printer to VLAN 20 [x] done [a](b) [/b]\n"}
    return put_all(tmp_path / "notes", facts | day)


@pytest.fixture
def run(workspace, tmp_path, command):
    def go(*arguments, folder=workspace):
        where = ["--workspace", str(folder)] if folder else []
        return command(*where, "--index", str(tmp_path / "index.sqlite"), *arguments)

    return go


def fingerprint(folder):
    """Every file below `folder` with its content and modification time."""
    return {
        str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and os.access(path, os.R_OK)
    }


def test_shared_options_stand_before_or_after_each_command_and_none_is_lost():
    needs = {
        **{"get": ["MEMORY.md"], "remember": ["a"], "promote": ["a:1"], "archive": ["--older-than", "3"]},
        **{"hook": ["codex"], "blame": ["a"], "openclaw inject": ["a"], "qmd": ["status"], "ltm": ["list"]},
        "shared mirror": ["all"],
    }
    shared = [
        word
        for option in GLOBAL
        for word in (
            option.names[0],
            *([] if option.keywords.get("action") == "store_true" else option.keywords.get("choices", ["x"])[:1]),
        )
    ]
    for name in COMMANDS:
        words = [*name.split(), *needs.get(name, [])]
        assert main.parse([*shared, *words]) == main.parse([*words, *shared]), name
    args = main.parse(["--set", "a=1", "--extra", "x", "search", "y", "--set", "b=2", "--set", "a=3"])
    assert (args.set, args.extra, args.query) == (["a=1", "b=2", "a=3"], ["x"], "y")


@pytest.mark.parametrize(
    "words", ["./notes --query x", "--query x ./notes", "--read-only ./notes --query=x", "open ./notes --query x"]
)
def test_a_bare_path_opens_the_app_wherever_the_options_stand(words):
    args = main.parse(words.split())
    assert (args.command, args.path, args.query) == ("open", "./notes", "x")


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "none"])
def test_a_missing_folder_is_the_only_complaint(run, tmp_path, terminal, monkeypatch):
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    code, out, err = run(str(tmp_path / "nowhere"), folder=None)
    assert (code, out) == (2, "")
    assert f"There is no folder {tmp_path / 'nowhere'}." in err
    assert "terminal" not in err


REFUSED: list[tuple[list[str], str]] = [
    (["search"], "There is no query."),
    (["search", "x", "-n", "0"], "is not a whole number from 1"),
    (["search", "x", "--min-score", "2"], "memory-tui: --min-score goes from 0 to 1; 2 is outside."),
    (["search", "x", "--set", "qmd.searchMode=fast"], "one of search, vsearch, query"),
    (["search", "x", "--set", "qmd.limits.timeoutMs=soon"], "whole number"),
    (["search", "x", "--backend", "lancedb"], "one of builtin, qmd"),
    (["search", "x", "--set", "nonsense=1"], "nonsense"),
    (["search", "x", "--set", "minScore"], "--set takes KEY=VALUE"),
    (["search", "x", "--profile", "mine"], "mine"),
    (["search", "x", "--now", "tomorrow"], "--now takes an ISO date"),
    (["search", "x" * 1_048_576], ""),
    (["search", "x", "--provider", "openia"], "openia"),
    (["search", "x", "--source", "foo"], "'memory', 'sessions'"),
    (["search", "router", "vlan"], 'search "router vlan". memory-tui search --help'),
    (["search", "x", "--limit", "3"], "memory-tui search --help"),
    (["search", "-vlan"], "memory-tui search -- -vlan."),
    (["why", "-vlan", "MEMORY.md"], "memory-tui why -- -vlan."),
    (["why", "x"], "A query and a line belong together."),
    (["why", "router", "MEMORY.md:99"], "Its last line is MEMORY.md:3."),
    (["openclaw"], "openclaw trust"),
    (["why", "bicycle", "door"], "If door belongs to the question, put the question in quotes."),
    (["get", "nope.md"], "There is no note nope.md."),
    *((["get", path], "") for path in ("/etc/passwd", "memory/../../x.md", "MEMORY.txt", "", "memory", "a\0b.md")),
    (["get", "../nope.md"], "outside the places"),
    (["get", "MEMORY.md", "--from", "9999"], "MEMORY.md has 3 lines; there is no line 9,999."),
    (["get", "MEMORY.md:3-2"], "Line 2 of MEMORY.md stands before line 3."),
    (["search", "x", "-n", "99999"], "--max-results goes from 1 to 1000; 99999 is outside."),
    *((["search", "x", "--index", folder], f"--index {folder} names a folder.") for folder in ("/", ".")),
    (["restore", "MEMORY.md", "--before", "999"], "There is no change 999."),
    (["get", "memory/empty.md", "--from", "9999"], "memory/empty.md is empty; there is no line 9,999."),
    (["status", "extra"], "Unrecognized arguments: extra."),
    (["status", "--config", "/nowhere.json"], "/nowhere.json"),
    (["status", "--index", "~nobody-of-this-name/index.sqlite"], "there is no such home folder"),
    (["config", "--workspace", "~nobody-of-this-name/notes"], "begins with ~ and a name that no user"),
    (["index", "--nonsense"], "--nonsense"),
    (["--bogus", "search", "x"], "There is no option --bogus that stands before a command."),
    (["--worspace", "notes", "search", "x"], "Did you mean --workspace?"),
    (["frobnicate"], "There is no command 'frobnicate', and no such folder."),
    (["promote", "nope.md:1"], "There is no note nope.md."),
    *((["promote", f"MEMORY.md:{lines}"], "") for lines in ("99", "9" * 5000, "2-99")),
    *((["promote", place], "") for place in ("nonsense", "../x.md:1", "/etc/passwd:1")),
    (["restore"], "Which note is to be restored?"),
    (["undo"], "Nothing is left to undo."),
    (["undo", "999"], "There is no change 999."),
    (["undo", "--", "-3"], "is not a whole number from 1"),
    (["inbox", "--kind", "foo"], next(iter(BY_KIND))),
    (["doctor", "--deadline", "nan"], "is not a number from 0.1 up"),
    (["ltm", "search", "tea", "--min-score", "inf"], "is not a number from 0 up"),
    (["eval", "--fail-under", "recall=nan"], "--fail-under takes METRIC=NUMBER"),
    (["recall-log", "last"], "memory-tui connect AGENT --log-recalls"),
    (["provider", "--provider", "builtin", "--approve", "builtin"], "builtin needs no approval: it runs inside"),
    (["provider", "--approve", "scripted"], "scripted is not configured here"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED, ids=[" ".join(a)[:40] for a, _ in REFUSED])
def test_what_cannot_be_done_gets_a_sentence_and_changes_nothing(run, workspace, arguments, sentence):
    (workspace / "memory" / "empty.md").touch()
    before = fingerprint(workspace)
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert sentence in err
    assert err.startswith("memory-tui: ")
    code, out, _ = run("--json", *arguments)
    error = json.loads(out)["error"]
    next_step = f"  {error['nextStep']}\n" if error["nextStep"] else ""
    assert (code, err) == (2, f"memory-tui: {error['message']}\n{next_step}")
    assert fingerprint(workspace) == before


def test_search_indexes_first_and_prints_hits_with_citations(run):
    code, out, err = run("search", "omada router")
    assert (code, err) == (0, "")
    assert "MEMORY.md#L1-L3" in out, "the note has three lines"
    agent = json.loads(run("search", "omada router", "--json")[1])["results"]
    assert all(line in out.splitlines() for hit in agent for line in hit["snippet"].strip("\n").split("\n"))
    few = run("search", "omada router", "--max-characters", "60")[1]
    assert re.search(r"^\d\.\d{3} \S+#L\d+-L\d+, shortened from L\d+-L\d+", few, re.M)
    out = run("search", "omada router", "-n", "1", "--explain")[1]
    assert "cosine" in out
    assert "2nd, limit 1" in out


def test_a_question_a_line_gets_an_answer_a_line(run, monkeypatch):
    long = json.dumps({"id": "long", "query": "x" * 60_000})
    lines = f'vlan\n{{"id": "q7", "query": "乌龙茶"}}\n{{"id": 1}}\n{{broken\n\n{long}\n{{"query":{"[" * 100_000}\n'
    lines += '[1]\n{"query": "vlan", "options": {"maxResults": 1, "bogus": 2}}\n[x] done\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    code, out, _ = run("search", "--stdin")
    answers = [json.loads(line) for line in out.strip().split("\n")]
    assert (code, [answer["id"] for answer in answers]) == (0, [None, "q7", 1, None, "long", *[None] * 4])
    assert answers[1]["results"][0]["path"] == "MEMORY.md"
    assert ["error" in answer for answer in answers] == [False, False, *[True] * 6, False]
    assert "no option 'bogus'" in answers[7]["error"]["message"]


def test_a_budget_of_characters_holds_for_questions_a_line(run, monkeypatch):
    queries = [{"query": "vlan", "options": {"maxCharacters": most}} for most in (60, None, 0)]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps(query) + "\n" for query in queries)))
    out = run("search", "--stdin", "--max-characters", "900")[1]
    texts = [[each["snippet"] for each in json.loads(line)["results"]] for line in out.splitlines()]
    small, large, whole = (
        [
            each["snippet"]
            for each in json.loads(run("search", "vlan", "--max-characters", most, "--json")[1])["results"]
        ]
        for most in ("60", "900", "0")
    )
    assert texts == [small, large, whole]
    assert len(small) == len(large) == len(whole)
    assert sum(map(len, small)) <= 60 < sum(map(len, large)) <= 900


def test_a_note_that_waits_is_named_in_text_and_json(run, workspace):
    late = ("--set", "sync.onSearch=off", "search", "zeppelin")
    assert json.loads(run("search", "router", "--json")[1])["stale"] is False
    (workspace / "memory" / "2026-11-19.md").write_text("The zeppelin lands on Sunday.\n")
    err = run(*late)[2]
    assert "No note holds" not in err
    assert "Not in this answer as on disk: memory/2026-11-19.md. Run memory-tui index" in err
    answer = json.loads(run(*late, "--json")[1])
    assert answer["stale"] is True
    assert "memory/2026-11-19.md" in answer["warning"]
    assert "memory-tui index" in answer["action"]


@pytest.mark.parametrize(
    "query",
    [
        *("!!! ??? ---", '"', '""" OR "', "router NOT vlan OR NEAR(a b, 3) host*", "path: router text: vlan", "a AND"),
        *("* ^ ( )", "🚀" * 50, "\x00 nul", "x" * 9_999, "a " * 4_000, "\u202e", "%_%"),
    ],
)
def test_any_query_is_answered(run, query):
    for profile in ("recommended", "openclaw-2026.3"):
        code, out, err = run("search", query, "--json", "--profile", profile)
        assert code == 0, err
        answer = json.loads(out)
        assert answer["results"] or answer["empty"]["sentence"]


def test_a_word_without_end_is_not_said_whole(run):
    for words in ("search", "x" * 40_000), ("search", "x" * 40_000, "--explain"), ("why", "x" * 40_000, "MEMORY.md:2"):
        code, out, err = run(*words)
        assert code == 0, (words[2:], err[:300])
        assert max(map(len, (out + err).splitlines())) < 2_000, words[:1]
        assert "xxx" in out + err


def test_get_prints_lines_and_says_what_it_leaves_out(run, workspace):
    (workspace / "memory" / "long.md").write_text("".join(f"line {i}\n" for i in range(1, 301)))
    for cited in (["", "--from", "5", "--lines", "2"], [":5-6"], ["#L5-L6"], [":5", "--lines", "2"]):
        assert run("get", f"memory/long.md{cited[0]}", *cited[1:])[:2] == (0, "line 5\nline 6\n")
    note = json.loads(run("get", "memory/long.md", "--json")[1])
    assert (note["lines"], note["totalLines"], note["nextFrom"]) == (120, 300, 121)
    assert run("get", "memory/long.md", "--from", "299")[1] == "line 299\nline 300\n"
    (workspace / "memory" / "line.md").write_text("x" * 40_000 + "\nend\n")
    assert "line 1 is longer than 12,000 characters and was cut" in run("get", "memory/line.md")[2]
    (workspace / "memory" / "empty.md").write_text("")
    assert run("get", "memory/empty.md") == (0, "", "memory-tui: memory/empty.md is empty.\n")


def test_why_file_gives_a_reason_for_any_path(run, workspace):
    os.mkfifo(workspace / "memory" / "pipe.md")
    (workspace / "memory" / "link.md").symlink_to(workspace / "MEMORY.md")
    assert run("index")[0] == 0
    for path, reason in (("MEMORY.md", "Indexed as it is on disk, in 1 chunk."), ("memory/pipe.md", "not a file")):
        assert reason in run("why", "--file", path)[1]
    assert "symlink" in run("why", "--file", str(workspace / "memory" / "link.md"))[1]
    code, out, _ = run("why", "--file", "memory/none.md")
    assert (code, "missing" in out) == (2, True)
    verdict = json.loads(run("why", "--file", "/etc/passwd", "--json")[1])
    assert (verdict["included"], verdict["rule"]) == (False, "outside")


CONTROLS = {chr(n) for n in (*range(32), *range(0x7F, 0xA0), 0x202E)} - {"\n"}


def test_hostile_text_is_shown_and_obeyed_by_nobody(run, workspace):
    evil = "\x1b]52;c;ZXZpbA==\x07 \x1b[31mred\x9b \u202eright [x] [/b]"
    (workspace / "memory" / "evil\x1b[2J.md").write_text(f"router {evil}\n")
    note = "memory/evil\x1b[2J.md"
    search = ["search", "router"]
    for arguments in ([*search, "--explain"], [*search, "--json"], ["status"], ["get", note], ["why", "--file", note]):
        _, out, err = run(*arguments)
        assert not set(out + err) & CONTROLS, arguments
    hits = json.loads(run(*search, "--json")[1])["results"]
    assert any(evil in hit["snippet"] for hit in hits), "JSON carries the text unchanged"


def test_an_answer_by_words_alone_is_an_answer_and_an_index_without_its_vectors_is_not(run):
    code, out, err = run("search", "router", "--provider", "openai")
    assert (code, "MEMORY.md" in out, "Meaning-based recall is off" in err) == (0, True, True)
    assert run("index", "--provider", "openai")[0] == 1
    promised = " ".join(EXIT_CODES.split())
    assert "0 done; an answer without hits is an answer, and so is one by words alone, with a notice" in promised


def test_status_counts_the_files_that_are_no_memory(run, workspace):
    (workspace / "other.md").write_text("x\n")
    assert "1 other Markdown file is no memory. memory-tui --whole yes reads all." in run("status")[1]
    assert json.loads(run("status", "--json")[1])["beside"] == 1


def test_a_missing_and_an_empty_workspace(run, tmp_path):
    code, _, err = run("search", "x", folder=tmp_path / "nowhere")
    assert (code, "nowhere" in err) == (2, True)
    (tmp_path / "bare").mkdir()
    code, out, _ = run("search", "x", "--index", str(tmp_path / "bare.sqlite"), folder=tmp_path / "bare")
    assert (code, "holds no notes yet" in out) == (0, True)
    code, out, err = run("search", "router", "--extra", "no/such")
    assert (code, bool(out), "--extra no/such: there is nothing at " in err) == (0, True, True)
    assert "nothing at" not in run("search", "router", "--extra", "memory")[2]


SHOPPING = "this is not a database, it is my shopping list\n" * 100


@pytest.mark.parametrize("words", ["search router", "index", "index --force", "doctor", "status"])
def test_a_file_that_is_no_index_is_refused_and_stays(run, tmp_path, words):
    index = tmp_path / "index.sqlite"
    index.write_text(SHOPPING)
    before = index.lstat()
    code, out, err = run(*words.split())
    assert "is not an index of memory-tui, so memory-tui leaves it alone" in out + err
    assert code == (0 if words == "status" else 2)
    after = index.lstat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)
    assert index.read_text() == SHOPPING
    assert list(tmp_path.glob("index.sqlite?*")) == []


def test_version_needs_neither_numpy_nor_a_screen():
    code = (
        "import sys; sys.argv = ['memory-tui', '--version']\nfrom memory_tui.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'textual', 'rich', 'apsw', 'tokenizers', 'json5'} & set(sys.modules)))"
    )
    assert alone(code).split() == ["memory-tui", __version__, "[]"]


@pytest.mark.parametrize("arguments", [["status"], ["search", "router"]])
def test_a_command_loads_only_what_it_needs(run, workspace, tmp_path, arguments):
    """An agent's host waits for each start; masked arrays alone take a search a twentieth of its time."""
    run("index")
    words = [*arguments, "--workspace", str(workspace), "--index", str(tmp_path / "index.sqlite")]
    heavy = {"numpy.ma", "rapidfuzz", "shtab", "watchfiles", "memory_tui.doctor", "memory_tui.demo", "memory_tui.notes"}
    heavy |= {"textual", "rich", "openai", "google", "mcp"}
    code = f"import sys\nfrom memory_tui.cli import main\nmain.main({words})\nprint({heavy} & {{*sys.modules}})"
    assert alone(code).endswith("\nset()\n")


def test_a_reader_that_has_seen_enough_and_an_ascii_terminal_are_no_errors_and_a_full_disk_is(workspace, tmp_path):
    where = ["--workspace", str(workspace), "--index", str(tmp_path / "i")]
    words = [sys.executable, "-m", "memory_tui", "search", "乌龙茶", *where]
    program = shlex.join([*words, "--json"])
    command = f"{program} | head -1; {{ {program}; echo $? >&2; }} | :"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{\n", "0\n")
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    answer = subprocess.run(words, capture_output=True, check=True, env=ascii_only)
    assert "喜欢乌龙茶" in answer.stdout.decode()
    for end in ("", " --json"):
        full = f"{shlex.join(words)}{end} >/dev/full"
        done = subprocess.run(["sh", "-c", full], capture_output=True, text=True, check=False)
        said = "memory-tui: Standard output cannot be written: no space left on device.\n  Send it to a place"
        assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr
