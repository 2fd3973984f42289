"""What is shown: completion of every command, a terminal's colours, and the work of `status --sync`."""

import io
import json
import subprocess
import sys
import threading
import time

import pytest

from memory_tui.cli import main, output
from memory_tui.cli.commands import COMMANDS
from memory_tui.explain.hit_text import wrapped
from memory_tui.formatting import cells
from tests.support.waiting import LONG

SECRET = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
NOTE = f"# Router\n\n- The guest VLAN of the router is 30, key {SECRET} </script>.\n- Ferries sail at noon.\n"


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text(NOTE, "utf-8")
    return ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]


class Terminal(io.StringIO):
    """A standard output that says it is a terminal."""

    def isatty(self):
        return True


def shown(words, monkeypatch):
    out = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", out)
        assert main.main(words) == 0
    return out.getvalue()


def test_a_terminal_sees_bars_and_marked_words_and_a_pipe_plain_text(workspace, capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
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
    capsys.readouterr()
    assert main.main(asked) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_completion_knows_every_command_and_its_options(capsys):
    for shell in ("bash", "zsh", "fish"):
        assert main.main(["help", "--completion", shell]) == 0
        script = capsys.readouterr().out
        assert all(word in script for name in COMMANDS for word in name.split())
        assert "older-than" in script
    assert main.main(["help", "--completion", "bash", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["message"] == "--completion prints a script, not JSON."
    assert main.main(["help", "--completion", "bash"]) == 0
    asking = capsys.readouterr().out + (
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


def test_status_indexes_first_and_names_each_file(tmp_path, capsys):
    note = tmp_path / "notes/memory/a.md"
    note.parent.mkdir(parents=True)
    note.write_text("The router is an Omada\n")
    place = ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]
    assert main.main(["status", *place, "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    assert (before["files"], before["embeddingProbe"]) == (0, None)
    assert main.main(["status", *place, "--sync", "--verbose", "--json"]) == 0
    told = capsys.readouterr()
    after = json.loads(told.out)
    assert (after["files"], after["embeddingProbe"]["ok"]) == (1, True)
    assert told.err.splitlines() == ["indexed memory/a.md: 1 chunk, 1 embedded"]
    assert main.main(["status", *place, "--deep", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["embeddingProbe"]["ok"]
    note.unlink()
    assert main.main(["index", *place, "--verbose", "--accept-shrink"]) == 0
    assert "removed memory/a.md" in capsys.readouterr().err
    assert main.main(["index", *place]) == 0
    assert capsys.readouterr().err == "", "only who asks for each file is told of it"


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
