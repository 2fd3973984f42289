"""What is shown to others: completion of every command, a terminal's colours."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from memory_tui.cli import main
from memory_tui.cli.commands import COMMANDS
from memory_tui.render.hit_text import wrapped
from memory_tui.sanitize import cells

SECRET = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
NOTE = f"# Router\n\n- The guest VLAN of the router is 30, key {SECRET} </script>.\n- Ferries sail at noon.\n"


@pytest.fixture
def workspace(tmp_path: Path) -> list[str]:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text(NOTE, "utf-8")
    return ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]


class Terminal(io.StringIO):
    """A standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    out = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", out)
        assert main.main(words) == 0
    return out.getvalue()


def test_a_terminal_sees_bars_and_marked_words_and_a_pipe_plain_text(
    workspace: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_completion_knows_every_command_and_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert main.main(["help", "--completion", shell]) == 0
        script = capsys.readouterr().out
        assert all(word in script for name in COMMANDS for word in name.split())
        assert "older-than" in script
    assert main.main(["help", "--completion", "bash"]) == 0
    asking = capsys.readouterr().out + (
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_shtab_memory_tui "$1" "${!#}" "${@: -2:1}"; echo "${COMPREPLY[*]}"; }\n'
        "ask memory-tui disc; ask memory-tui help --completion fi\n"
    )
    answers = subprocess.run(["bash", "-c", asking], capture_output=True, text=True, check=True, cwd="/").stdout
    assert answers.split() == ["disconnect", "fish"]


def test_wide_characters_are_wrapped_by_the_cells_that_they_take() -> None:
    text = "喜欢乌龙茶" * 8 + " tea"
    lines = wrapped(text, 20)
    assert all(sum(map(cells, line)) <= 20 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert wrapped("  a b", 20) == ["  a b"]
    assert wrapped("", 20) == [""]
