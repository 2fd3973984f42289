"""What is shown to others: a report without secrets, completion and man page of every command, a terminal's colours."""

from __future__ import annotations

import io
import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from memory_tui.cli import main, show

SECRET = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
NOTE = f"# Router\n\n- The guest VLAN of the router is 30, key {SECRET} </script>.\n- Ferries sail at noon.\n"


@pytest.fixture
def workspace(tmp_path: Path) -> list[str]:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text(NOTE, "utf-8")
    return ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]


def test_a_report_is_one_file_without_text_unless_asked_and_never_with_secrets(
    tmp_path: Path, workspace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    page, text = tmp_path / "r.html", tmp_path / "r.md"
    assert main.main([*workspace, "report", "router vlan", "--out", str(page)]) == 0
    assert main.main([*workspace, "report", f"router {SECRET}", "--with-text", "--out", str(text)]) == 0
    html, markdown = page.read_text("utf-8"), text.read_text("utf-8")
    assert "http" not in html.replace("-equiv", ""), "it loads nothing"
    assert "<script" not in html
    assert "MEMORY.md#L1" in html
    assert "Ferries" not in html, "no text of a note unless asked"
    picture = html[html.index("<svg") : html.index("</svg>") + 6]
    assert len(list(ET.fromstring(picture).iter("circle"))) == 1, "a point a chunk"
    for heading in ("Recalled", "How each score came about", "Profiles side by side", "Doctor"):
        assert f"<h2>{heading}</h2>" in html
        assert f"## {heading}" in markdown
    assert "Ferries" in markdown
    assert "‹VLAN›" not in markdown, "only words that were asked are marked"
    assert "‹router›" in markdown
    assert SECRET not in markdown
    capsys.readouterr()
    assert main.main([*workspace, "report", "router", "--out", str(tmp_path / "r.pdf")]) == 2
    assert "neither HTML nor Markdown" in capsys.readouterr().err


def test_a_report_asks_the_index_of_the_other_release_where_it_is_there(
    tmp_path: Path, workspace: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    unnamed = [*workspace[:2], "--provider", "none"]

    def heads() -> str:
        assert main.main([*unnamed, "--profile", "openclaw-2026.3", "report", "router"]) == 0
        lines = capsys.readouterr().out.split("\n")
        return next(line for line in lines if line.startswith("| note |"))

    assert "openclaw-2026.9" not in heads()
    assert main.main([*unnamed, "--profile", "openclaw-2026.9", "index"]) == 0
    capsys.readouterr()
    assert heads() == "| note | openclaw-2026.3 | recommended | openclaw-2026.9 | openclaw-2026.2 |"


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
        assert main.main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert all(name in script for name in main.COMMANDS)
        assert "with-text" in script
    asking = show.script("bash") + (
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _memory_tui; echo "${COMPREPLY[*]}"; }\n'
        "ask memory-tui repo; ask memory-tui report --wi; ask memory-tui --json completion fi\n"
    )
    answers = subprocess.run(["bash", "-c", asking], capture_output=True, text=True, check=True, cwd="/").stdout
    assert answers.split("\n")[:3] == ["report", "--with-text", "fish"]


def test_the_man_page_comes_from_the_same_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(".TH MEMORY-TUI 1")
    assert all(f"\n.B {name}\n" in page for name in main.COMMANDS)
    assert "\\fB\\-\\-with\\-text\\fR" in page
    assert not [line for line in page.split("\n") if line.startswith("'")], "no line is taken for a request"
    assert json.dumps(page)
