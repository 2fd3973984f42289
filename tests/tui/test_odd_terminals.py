"""Terminals that are tiny, dumb, resized all the time, not UTF-8, or none: usable, or a plain sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from memory_tui.tui.widgets.results import HitList
from tests.support.terminal import Terminal
from tests.support.tui import LARGE, SMALL, ask, drive, lines_of, make_app, press, sample
from tests.support.waiting import LONG

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminal")


def homes(tmp_path: Path, **more: str) -> dict[str, str]:
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
    return {**{name: str(tmp_path / name) for name in names}, **more}


def opened(tmp_path: Path, columns: int, rows: int, **env: str) -> Terminal:
    notes = tmp_path / "notes"
    sample(notes)
    command = [sys.executable, "-m", "memory_tui", str(notes), "--index", str(tmp_path / "index.sqlite")]
    return Terminal(command, columns=columns, rows=rows, env=homes(tmp_path, **env), cwd=tmp_path)


def leaves(terminal: Terminal) -> None:
    terminal.type("q")
    assert terminal.ended() == 0
    terminal.restored()
    assert "Traceback" not in terminal.text()


def test_a_tiny_terminal_says_so_and_a_larger_one_works(tmp_path: Path) -> None:
    with opened(tmp_path, 20, 5) as terminal:
        terminal.until("needs")
        at = len(terminal.read())
        terminal.resize(80, 24)
        terminal.until("fresh", after=at)
        leaves(terminal)


def test_a_storm_of_resizes_is_survived(tmp_path: Path) -> None:
    with opened(tmp_path, 80, 24) as terminal:
        terminal.until("fresh")
        for step in range(120):
            terminal.resize(20 + step * 7 % 140, 5 + step * 5 % 50)
            terminal.read(0.0)
        terminal.resize(100, 30)
        at = len(terminal.read())
        terminal.type("3")
        terminal.until("Events", after=at)
        terminal.type("1")
        leaves(terminal)


@pytest.mark.parametrize(
    "env", [{"TERM": "dumb"}, {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}, {"NO_COLOR": "1"}], ids=str
)
def test_the_app_is_usable_or_says_why_not(tmp_path: Path, env: dict[str, str]) -> None:
    with opened(tmp_path, 80, 24, **env) as terminal:
        if env.get("TERM") == "dumb":
            assert terminal.ended() == 2
            assert "cannot show the app" in terminal.text()
            assert "\x1b" not in terminal.output.decode()
            return
        terminal.until("fresh")
        leaves(terminal)


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}], ids=str)
def test_a_pipe_gets_utf_8_without_escapes(tmp_path: Path, env: dict[str, str]) -> None:
    notes = sample(tmp_path / "notes")
    command = [sys.executable, "-m", "memory_tui", "--workspace", str(notes), "--index", str(tmp_path / "i.sqlite")]
    given = {**os.environ, **homes(tmp_path, **env)}
    found = subprocess.run([*command, "search", "林薇"], env=given, capture_output=True, timeout=LONG, check=True)
    assert b"\x1b" not in found.stdout + found.stderr
    assert "memory" in found.stdout.decode("utf-8", "strict").lower()
    alone = subprocess.run(command, env=given, capture_output=True, stdin=subprocess.DEVNULL, timeout=LONG, check=False)
    assert alone.returncode == 2
    assert b"The app needs a terminal" in alone.stderr


# --- columns -------------------------------------------------------------------------------------------------------

WIDE = (
    ("memory/日本語のメモ帳-とても長い名前のファイル.md", "日本語のメモ: omada ルーター"),
    ("memory/cafe\u0301-re\u0301sume\u0301.md", "e\u0301crit: omada cafe\u0301"),
    ("memory/👩\u200d👩\u200d👧-family.md", "👩\u200d👩\u200d👧 omada ❤️ 👍🏽 1️⃣ 🇩🇪"),
    ("memory/한국어-노트.md", "한국어 omada 공유기"),
    ("memory/ｆｕｌｌｗｉｄｔｈ.md", "ｆｕｌｌｗｉｄｔｈ omada"),
    ("memory/plain.md", "plain omada router"),
)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "120x36"])
def test_columns_stay_aligned_beside_wide_and_combining_glyphs(tmp_path: Path, size: tuple[int, int]) -> None:
    notes = tmp_path / "notes"
    (notes / "memory").mkdir(parents=True)
    for path, text in WIDE:
        (notes / path).write_text(f"# {text}\n\n- {text}\n", "utf-8")
    app = make_app(notes)

    async def steps(pilot: Pilot[int]) -> None:
        seen = []
        for keys in (["1"], ["2"], ["3"], ["4"], ["1", "o"]):
            if keys == ["2"]:
                await ask(pilot, "omada")
            else:
                await press(pilot, *keys)
            for line in lines_of(app):
                assert cell_len(line) == size[0], (keys, line)
            seen += lines_of(app)
        assert any("日本語" in line for line in seen)
        await press(pilot, "escape", "2")
        results = app.screen.query_one(HitList)
        # The path stands at the same cell in every row, and what follows it too.
        width = results.inner_width
        rows = ["".join(piece[0] for piece in results.draw(row, 0, width)) for row in range(results.count())]
        hits = [row for row in rows if ".md" in row]
        assert len(hits) == len(WIDE)
        assert len({cell_len(row[: row.index("never fades")]) for row in hits}) == 1

    drive(app, steps, size)
