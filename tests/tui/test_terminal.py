"""The app on a real terminal: signals, odd windows, noise of libraries, keys typed before it is there."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.support.terminal import Terminal
from tests.support.tui import sample
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminal")
READY = "words + meaning"


def opened(tmp_path, columns=80, rows=24, **environment):
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
    homes = {name: str(tmp_path / name) for name in names}
    command = [
        sys.executable,
        "-m",
        "memory_tui",
        str(sample(tmp_path / "notes")),
        "--index",
        str(tmp_path / "i.sqlite"),
    ]
    return Terminal(command, columns=columns, rows=rows, env={**homes, **environment}, cwd=tmp_path)


def leave(terminal):
    terminal.type("q")
    assert terminal.ended() == 0
    terminal.restored()
    assert "Traceback" not in terminal.text()


def test_keys_typed_before_the_first_frame_arrive(tmp_path):
    with opened(tmp_path, 120, 36) as terminal:
        terminal.type("/omada")
        terminal.until("omada", after=terminal.until("\x1b[?1049h"))
        terminal.until(READY)
        terminal.type("\r")
        leave(terminal)


def test_a_storm_of_resizes_is_survived(tmp_path):
    with opened(tmp_path, 20, 5) as terminal:
        terminal.until("MEMORY")
        for step in range(120):
            terminal.resize(1 + step * 7 % 140, 1 + step * 5 % 50)
            terminal.read(0.0)
        at = len(terminal.read())
        terminal.resize(100, 30)
        terminal.type("3")
        terminal.until("What happened", after=at)
        leave(terminal)


@pytest.mark.parametrize("environment", [{"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}, {"NO_COLOR": "1"}], ids=str)
def test_it_opens_and_leaves_in_an_odd_terminal(tmp_path, environment):
    with opened(tmp_path, **environment) as terminal:
        terminal.until(READY)
        if "NO_COLOR" in environment:
            assert b"\x1b[38" not in terminal.output
            assert b"\x1b[48" not in terminal.output
        leave(terminal)


def test_a_dumb_terminal_is_told_why_not(tmp_path):
    with opened(tmp_path, TERM="dumb") as terminal:
        assert terminal.ended() == 2
        assert "cannot show the app" in terminal.text()
        assert "\x1b" not in terminal.output.decode()


def test_a_faulty_key_file_is_said_and_every_key_works(tmp_path):
    keys = tmp_path / "XDG_CONFIG_HOME" / "memory-tui" / "keys.toml"
    keys.parent.mkdir(parents=True)
    keys.write_text('"app.quit" = "e"\n', "utf-8")
    with opened(tmp_path, 120, 36) as terminal:
        # The edge of a pane below may cut what is written of it in two.
        until(lambda: terminal.read() and "app.quit" in terminal.text())
        terminal.until(READY)
        leave(terminal)


def test_the_end_waits_for_no_thread_and_takes_the_demo_with_it(tmp_path):
    code = (
        "import sys, time; from memory_tui.cli.main import main; from memory_tui.engine.engine import Engine\n"
        "Engine.status = lambda self, deep=False: time.sleep(60)\n"
        "import shutil; remove = shutil.rmtree\n"
        "shutil.rmtree = lambda folder, **how: folder.exists() and time.sleep(1) or remove(folder, **how)\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    place = tmp_path / "demo"
    place.mkdir()
    homes = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(place)}
    with Terminal([sys.executable, "-c", code, "demo"], env=homes, cwd=tmp_path) as terminal:
        terminal.until("opening")
        began = time.monotonic()
        leave(terminal)
        assert time.monotonic() - began < 20, "the thread sleeps for sixty"
    assert not [*place.rglob("*")]


def test_the_end_waits_for_no_huge_note(tmp_path):
    with opened(tmp_path) as terminal:
        terminal.until(READY)
        (tmp_path / "notes" / "memory" / "huge.md").write_text("- one of many words in a line\n" * 1_000_000, "utf-8")
        terminal.type("i")
        terminal.until("indexing")
        leave(terminal)
    with closing(sqlite3.connect(tmp_path / "i.sqlite")) as index:
        assert index.execute("SELECT sum(chunks) FROM files WHERE path = 'memory/huge.md'").fetchone() == (None,)


LOUD = """
import os, sys
from memory_tui.tui.run import screen_alone
with screen_alone():
    os.write(2, b"thread 'lance' panicked\\n")
    print("drawn", file=sys.__stderr__, flush=True)
    os.write(1, b"while ")
os.write(1, b"after ")
"""


def test_what_a_library_says_is_kept_off_the_screen_and_said_afterwards():
    done = subprocess.run([sys.executable, "-c", LOUD], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode() == "drawn\nwhile thread 'lance' panicked\nafter "
