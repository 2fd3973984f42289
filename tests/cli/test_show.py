"""What is shown: the layers of an answer, completion of every command, colours, commands that nobody knows."""

import io
import json
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from memory_tui.cli import main, output
from memory_tui.cli.commands import COMMANDS, GLOBAL, SHARED, command_and_words
from memory_tui.errors import SettingError
from memory_tui.explain.hit_text import wrapped
from memory_tui.formatting import cells
from tests.support.commands import Terminal, alone
from tests.support.waiting import LONG
from tests.support.workspace import put_all

SECRET = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
NOTE = f"# Router\n\n- The guest VLAN of the router is 30, key {SECRET} </script>.\n- Ferries sail at noon.\n"


@pytest.fixture
def workspace(tmp_path):
    notes = put_all(tmp_path / "notes", {"MEMORY.md": NOTE})
    return ["--workspace", str(notes), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]


def shown(words, monkeypatch):
    out = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", out)
        assert main.main(words) == 0
    return out.getvalue()


def test_a_terminal_sees_bars_and_marked_words_and_a_pipe_plain_text(workspace, printed, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    asked = [*workspace, "search", "routers vlan"]
    seen = shown(asked, monkeypatch)
    assert "\x1b[1;4;33mVLAN\x1b[0m" in seen
    assert "\x1b[1;4;33mRouter\x1b[0m" in seen, "stems as matched"
    assert "never fades" in seen
    assert "▒" in seen
    monkeypatch.setenv("NO_COLOR", "1")
    without = shown(asked, monkeypatch)
    assert "\x1b[1;4mVLAN\x1b[0m" in without
    assert "\x1b[3" not in without
    assert "Ferries" in shown([*asked, "--full"], monkeypatch)
    assert "\x1b" not in printed(*asked)


def test_completion_knows_every_command_and_its_options(printed):
    for shell in ("bash", "zsh", "fish"):
        script = printed("help", "--completion", shell)
        assert all(word in script for name in COMMANDS for word in name.split())
        assert "older-than" in script
    assert "--completion prints a script, not JSON." in printed("help", "--completion", "bash", "--json", code=2)
    asking = printed("help", "--completion", "bash") + (
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_shtab_memory_tui "$1" "${!#}" "${@: -2:1}"; echo "${COMPREPLY[*]}"; }\n'
        "ask memory-tui disc; ask memory-tui help --completion fi\n"
    )
    answers = subprocess.run(["bash", "-c", asking], capture_output=True, text=True, check=True, cwd="/").stdout
    assert answers.split() == ["disconnect", "fish"]


def test_wide_characters_are_wrapped_by_the_cells_that_they_take():
    text = "喜欢乌龙茶" * 8 + " tea"
    lines = wrapped(text, 20)
    assert all(sum(map(cells, line)) <= 20 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert wrapped("  a b", 20) == ["  a b"]
    assert wrapped("", 20) == [""]


def test_status_indexes_first_and_names_each_file(tmp_path, command, printed):
    note = put_all(tmp_path / "notes", {"memory/a.md": "The router is an Omada\n"}) / "memory/a.md"
    place = ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]
    before = json.loads(printed("status", *place, "--json"))
    assert (before["files"], before["embeddingProbe"]) == (0, None)
    code, out, err = command("status", *place, "--sync", "--verbose", "--json")
    after = json.loads(out)
    assert (code, after["files"], after["embeddingProbe"]["ok"]) == (0, 1, True)
    assert err.splitlines() == ["indexed memory/a.md: 1 chunk, 1 embedded"]
    assert json.loads(printed("status", *place, "--deep", "--json"))["embeddingProbe"]["ok"]
    note.unlink()
    assert "removed memory/a.md" in command("index", *place, "--verbose", "--accept-shrink")[2]
    assert command("index", *place)[2] == "", "only who asks for each file is told of it"


def test_a_terminal_is_told_what_takes_long_and_a_pipe_is_not(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(output, "QUIET", 0.0)
    for screen in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", screen)
        with output.waiting("Asking") as tell:
            tell(1, 1_200)
            end = time.monotonic() + LONG
            while screen.isatty() and "Asking: 1 of 1,200, 0 s; ctrl+c stops" not in screen.getvalue():
                assert time.monotonic() < end
                time.sleep(0.001)
        shown = screen.getvalue()
        assert shown.endswith("\r\x1b[K") if screen.isatty() else not shown
        assert not any(thread.name == "progress" for thread in threading.enumerate())


@pytest.fixture
def run(tmp_path, command):
    days = {f"memory/2026-11-{day:02}.md": f"Router log number {day}\nThe garden got garlic\n" for day in range(1, 12)}
    folder = put_all(tmp_path / "notes", {"MEMORY.md": "# Facts\n- Router: Omada ER605, VLAN 10\n", **days})
    where = ["--workspace", str(folder), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]
    return partial(command, *where, "--now", "2026-11-20")


def test_text_for_people(run, tmp_path):
    code, out, _ = run("why", "omada router", "MEMORY.md:2")
    assert code == 0
    assert out.startswith("RECALLED 1st  MEMORY.md#L1-L2\n")
    assert "cosine" in out
    (tmp_path / "notes" / "memory" / "empty.md").write_text("\n\n")
    code, out, _ = run("why", "omada router", "memory/empty.md:1")
    assert "NOT RECALLED (in no chunk)" in out
    assert "Line 1 is in no chunk: only blank lines are there." in out


FIXED = ("--profile", "openclaw-2026.9", "--set", "vectorWeight=0.5")
NO_SETTING = "2026.9 has no setting for this; recommended has"


def test_a_setting_that_the_release_fixed_is_not_ignored_in_silence(run, tmp_path):
    """Once as text, among the notices of JSON, for each command that ranks; and not under another profile."""
    place, labels = "MEMORY.md:2", tmp_path / "labels.jsonl"
    labels.write_text('{"query": "router", "relevant": [{"path": "MEMORY.md", "line": 2}]}\n')
    measured = ("eval", "--labels", str(labels))
    for asked in (("search", "router"), ("why", "router", place), measured, ("index",)):
        code, _, err = run(*FIXED, *asked)
        assert err.count(NO_SETTING) == 1, asked
        assert "query.hybrid.vectorWeight" in err
    for asked in (("search", "router"), ("why", "router", place), measured, ("status",)):
        code, out, _ = run(*FIXED, *asked, "--json")
        said = [one for one in json.loads(out)["notices"] if NO_SETTING in one["message"]]
        assert [one["code"] for one in said] == ["setting"], asked
        assert code == 0
    assert run("--profile", "recommended", "--set", "vectorWeight=0.5", "why", "router", place)[2] == ""


MODULES = {command.run.partition(":")[0] for command in COMMANDS.values()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_function_and_a_help_without_the_options_of_all(name, printed):
    assert callable(COMMANDS[name].load())
    text = printed(*name.split(), "--help")
    described = {line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")}
    assert not {option.names[0] for option in GLOBAL} & described
    assert SHARED in " ".join(text.split())


def test_help_lists_every_command_in_its_group_and_every_shared_option(printed):
    lines = printed("--help").splitlines()
    at = 0
    for name, command in COMMANDS.items():
        at = lines.index(f"  {name:<23} {command.help}", at)
        assert f"{command.group}:" in lines[:at]
    assert all(any(line.startswith(f"  {option.names[0]}") for line in lines) for option in GLOBAL)


@pytest.mark.parametrize(
    ("arguments", "module"), [(["search", "--help"], None), (["get", "x.md"], "ask"), (["serch"], None)]
)
def test_only_the_module_of_the_command_is_imported(arguments, module):
    code = (
        "import contextlib, io, json, sys\nfrom memory_tui.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main({arguments!r})\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('memory_tui.cli.')]))"
    )
    loaded = {name.rpartition(".")[2] for name in json.loads(alone(code))} & MODULES
    assert loaded - {"main"} == ({module} if module else set())


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("indx", "index"), ("vlan", ""), ("x" * 50_000, ""), ("Search", "search"), ("version", "--version"),
        ("why-file", "why --file"), ("compare-index", "openclaw compare-index"), ("trust", "openclaw trust"),
        ("write-config", "config --write"), ("redo", "undo --redo"), ("journal", "history"),
        ("budget", "prompt --budget"), ("tune", "eval --tune"), ("completion", "help --completion"),
    ],
)  # fmt: skip
def test_a_word_that_is_no_command_names_the_nearest(words, command):
    with pytest.raises(SettingError) as refused:
        command_and_words([words, "--json"])
    assert refused.value.next_step == (
        f"Did you mean {command}?" if command else "memory-tui --help lists the commands."
    )
    assert len(refused.value.message) < 120
