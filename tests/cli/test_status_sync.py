"""`status --sync` and `--verbose`: the index is brought up to date first, and each file of it is named."""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from pathlib import Path

import pytest

from memory_tui.cli import output
from memory_tui.cli.main import main
from tests.support.waiting import LONG


def test_status_indexes_first_and_names_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note = tmp_path / "notes/memory/a.md"
    note.parent.mkdir(parents=True)
    note.write_text("The router is an Omada\n")
    place = ["--workspace", str(tmp_path / "notes"), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]
    assert main(["status", *place, "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    assert (before["files"], before["embeddingProbe"]) == (0, None)
    assert main(["status", *place, "--sync", "--verbose", "--json"]) == 0
    told = capsys.readouterr()
    after = json.loads(told.out)
    assert (after["files"], after["embeddingProbe"]["ok"]) == (1, True)
    assert told.err.splitlines() == ["indexed memory/a.md: 1 chunk, 1 embedded"]
    note.unlink()
    assert main(["index", *place, "--verbose", "--accept-shrink"]) == 0
    assert "removed memory/a.md" in capsys.readouterr().err
    assert main(["index", *place]) == 0
    assert capsys.readouterr().err == "", "only who asks for each file is told of it"


def test_a_terminal_is_told_what_takes_long_and_a_pipe_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(output, "QUIET", 0.0)
    for screen in (Screen(), io.StringIO()):
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
