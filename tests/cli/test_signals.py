"""Every way out but SIGKILL: the terminal as it was, one line, 128 and the number, locks free, drafts kept."""

import json
import os
import signal
import subprocess
import sys

import pytest

from memory_tui import plan
from memory_tui.notes.edit import curator
from memory_tui.notes.journal import left
from memory_tui.plan import Options
from tests.support.terminal import Terminal, in_front
from tests.support.tui import sample
from tests.support.waiting import LONG
from tests.support.workspace import put_all

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither these signals nor this terminal")

READY = "words + meaning"
MANY = 2000
"""Files that take seconds to index, so that a key pressed meanwhile comes in the middle on a busy machine too."""


def app(tmp_path, *arguments, **given):
    notes = tmp_path / "notes"
    if not notes.exists():
        sample(notes)
    command = [sys.executable, "-m", "memory_tui", str(notes), "--index", str(tmp_path / "index.sqlite"), *arguments]
    size = {"columns": given.get("columns", 80), "rows": given.get("rows", 24)}
    return Terminal(command, **size, cwd=tmp_path)


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_the_app_and_restores_the_terminal(tmp_path, number):
    with app(tmp_path) as terminal:
        terminal.until(READY)
        assert terminal.modes()[1049]
        terminal.kill(number)
        assert terminal.ended() == 128 + number
        terminal.restored()
        name = "ctrl+c" if number == signal.SIGINT else number.name
        assert terminal.afterwards() == [f"memory-tui: stopped by {name}."]
        assert "Traceback" not in terminal.text()


def test_what_was_typed_is_kept(tmp_path):
    with app(tmp_path) as terminal:
        at = terminal.until(READY)
        terminal.type("e")
        terminal.until("Edit MEMORY.md", after=at)
        terminal.type("kept")
        terminal.until("not saved yet", after=at)
        terminal.kill(signal.SIGTERM)
        assert terminal.ended() == 128 + signal.SIGTERM
        terminal.restored()
        assert "Your unsaved text of MEMORY.md is kept" in terminal.text()
    notes = curator(plan.plan(Options(workspace=str(tmp_path / "notes"))))
    assert [unsaved.text[0] for unsaved in left(notes.journal)] == ["k"]


def test_a_closed_terminal_ends_the_app(tmp_path):
    with app(tmp_path) as terminal:
        terminal.until(READY)
        terminal.close()
        assert terminal.process.wait(60) == 128 + signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGSTOP], ids=lambda number: number.name)
def test_a_stopped_app_comes_back_and_leaves_the_terminal_in_order(tmp_path, number):
    with app(tmp_path) as terminal:
        at = terminal.until(READY)
        terminal.kill(number)
        # Somebody has to read what it still writes, or it would wait for that before it stops.
        while not (state := os.waitpid(terminal.process.pid, os.WUNTRACED | os.WNOHANG))[0]:
            terminal.read()
        assert state == (terminal.process.pid, 0x7F | signal.SIGSTOP << 8)
        terminal.read()
        if number == signal.SIGTSTP:
            terminal.restored()
        at = len(terminal.output)
        terminal.kill(signal.SIGCONT)
        terminal.until(READY, after=at)
        assert terminal.modes()[1049]
        terminal.type("q")
        assert terminal.ended() == 0
        terminal.restored()


def test_ctrl_c_stops_indexing_and_the_next_run_goes_on(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    for i in range(MANY):
        lines = [f"- line {line} of the router and its network {i * 31 + line * 17}" for line in range(20)]
        (notes / f"{i}.md").write_text("\n".join([f"# {i}", "", *lines, ""]))
    index = ["--workspace", str(notes), "--extra", ".", "--index", str(tmp_path / "index.sqlite")]
    command = [sys.executable, "-m", "memory_tui"]
    with Terminal([*command, "index", *index], columns=100, cwd=tmp_path) as terminal:
        terminal.until(f" of {MANY:,} files")
        shown = terminal.text()
        terminal.type("\x03")
        assert terminal.ended() == 130
        assert f"of {MANY:,} files" in shown
        assert terminal.text().splitlines()[-1] == (
            "memory-tui: stopped by ctrl+c. What is indexed so far stays; memory-tui index goes on from there."
        )
        assert "Traceback" not in terminal.text()
    ran = subprocess.run([*command, "index", "--json", *index], capture_output=True, check=True)
    assert 0 < json.loads(ran.stdout)["indexed"] < MANY
    assert all(b"ctrl+c stops" in line for line in ran.stderr.splitlines()), "a pipe gets lines of progress alone"
    status = subprocess.run([*command, "status", "--json", *index], capture_output=True, check=True)
    assert json.loads(status.stdout)["freshness"]["fresh"] == MANY


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("search --stdin", signal.SIGINT),
        ("search --stdin", signal.SIGTERM),
        ("mcp", signal.SIGHUP),
        ("mcp", signal.SIGTERM),
        ("mcp", signal.SIGINT),
    ],
)
def test_a_signal_ends_a_command_in_one_line(tmp_path, command, number):
    notes = put_all(tmp_path / "notes", {"MEMORY.md": "# M\n\n- the router\n"})
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, "-m", "memory_tui", *command.split(), "--workspace", str(notes)]
    with subprocess.Popen(in_front(words), **pipes) as started:
        started.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "query": "router"}\n')
        started.stdin.flush()
        assert started.stdout.readline()
        started.send_signal(number)
        said = started.communicate(timeout=LONG)[1].decode()
    name = "ctrl+c" if number == signal.SIGINT else number.name
    assert started.returncode == 128 + number
    assert said == f"memory-tui: stopped by {name}.\n"
    if number == signal.SIGTERM:
        free = [sys.executable, "-m", "memory_tui", "index", "--workspace", str(notes)]
        subprocess.run(free, check=True, capture_output=True, timeout=LONG)


def test_a_signal_while_modules_load_is_no_fault_of_the_program():
    code = (
        "import signal, sys\nfrom memory_tui.__main__ import main\n"
        "class Finder:\n    def find_spec(self, name, *_):\n"
        "        if name == 'memory_tui.cli.main':\n            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\nsys.exit(main())"
    )
    ran = subprocess.run(in_front([sys.executable, "-c", code]), check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "memory-tui: stopped by ctrl+c.\n")
