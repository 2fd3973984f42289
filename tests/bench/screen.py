"""How quickly the screen answers: first frame, a letter, a step, a knob, the app at rest.

python tests/bench/screen.py [--chunks 10000] [--many 5000] [--large]

`--large` is 98,000 chunks, and 25,000 notes for the app at rest.
"""

import argparse
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import time
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from corpus import questions, write
from measure import CHUNKS_A_NOTE, LARGE, Cost, Watched, begin, installed, program, python, ratio, share, show

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options

BARE = """
from textual.app import App
from textual.widgets import Footer, OptionList, Static, Tab, Tabs, TextArea
class Bare(App):
    BINDINGS = [("q", "quit", "Quit")]
    def compose(self):
        yield from (Tabs(Tab("One")), OptionList("a", "b"), TextArea("text"), Static("Notes"), Footer())
Bare().run()
"""
"""The widgets of the first view in an app that does nothing."""


class Terminal:
    """A program, as a rule the app, in a process of its own on a terminal of 120 by 36."""

    def __init__(self, place: Path, *command: str) -> None:
        environment = {**installed(place), "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
        self.began = time.perf_counter()
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.execve(sys.executable, [*command], environment)
        ioctl(self.terminal, TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
        self.watched = Watched(self.child)
        self._seen = b""

    def _read(self, seconds: float) -> bool:
        """Whether something came within `seconds`."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        self._seen += os.read(self.terminal, 65536)
        return True

    def wait_for(self, text: str) -> float:
        """Seconds since the start when `text` is on the screen."""
        while text.encode() not in self._seen:
            if not self._read(120):
                raise SystemExit(f"{text!r} does not appear")
        return time.perf_counter() - self.began

    def press(self, key: str) -> None:
        """Press a key, and wait until nothing more is drawn."""
        os.write(self.terminal, key.encode())
        while self._read(0.15):
            pass

    def settled(self, quiet: int = 4) -> float:
        """Milliseconds of CPU until now, when the app has used none for `quiet` tenths of a second."""
        last, still = self.watched.cpu(), 0
        while still < quiet:
            end = time.monotonic() + 0.1
            while (left := end - time.monotonic()) > 0:
                self._read(left)
            now = self.watched.cpu()
            still = still + 1 if now == last else 0
            last = now
        return last

    def end(self) -> None:
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.terminal)


def starting(place: Path, workspace: Path, index: Path, times: int) -> None:
    commands = python("-c", BARE), program(str(workspace), "--index", str(index))
    costs: tuple[list[Cost], list[Cost]] = [], []
    for number in range(times + (times > 1)):
        for command, frames in zip(commands, costs, strict=True):
            app = Terminal(place, *command)
            wall = app.wait_for("Notes") * 1000
            # In the first of several rounds modules are compiled.
            if number or times == 1:
                frames.append(Cost(app.watched.cpu(), wall))
            app.end()
    base, frame = (share(frames, 0.5) for frames in costs)
    show("first frame of a bare app of Textual's, ms", base)
    show("first frame, ms", frame, f"{ratio(frame.cpu, base.cpu, 'that')}; <= 1.4 x")


def keys(place: Path, workspace: Path, index: Path, times: int) -> None:
    app = Terminal(place, *program(str(workspace), "--index", str(index), "--query", questions(1)[0]))
    app.wait_for("Your agent gets")
    app.settled()

    def cost(name: str, pair: tuple[str, str], goal: str) -> None:
        """Show what each of two keys costs that take each other back."""
        before, own = app.settled(), app.watched.screen()
        for step in range(times):
            app.press(pair[step % 2])
            after = app.settled()
        screen = (app.watched.screen() - own) / times
        show(f"{name}: ms of CPU, and of the screen's thread", f"{(after - before) / times:.1f}, {screen:.1f}", goal)

    cost("a step down the passages", ("j", "k"), "<= 25, 20")
    # The question is selected: behind its end a letter is one more.
    app.press("/")
    app.press("\x1b[F")
    cost("a typed letter", ("s", "\x7f"), "<= 50, 30")
    for key in ("\r", "t"):
        app.press(key)
    cost("a knob key", ("\x1b[C", "\x1b[D"), "<= 38, 28")
    resident, private = app.watched.memory()
    show("the app after that: MB, and private", f"{resident:.0f}, {private:.0f}", "<= 180, 330 at 98,000 chunks")
    app.end()


def resting(place: Path, workspace: Path, index: Path, seconds: float) -> None:
    app = Terminal(place, *program(str(workspace), "--index", str(index)))
    app.wait_for("Notes")
    started = app.settled()
    before = app.settled()
    show("what follows a start, ms of CPU, once", f"{before - started:.0f}")
    began, before = time.monotonic(), app.watched.cpu()
    while time.monotonic() - began < seconds:
        app._read(0.2)
    spent = (app.watched.cpu() - before) / 1000 * 60 / (time.monotonic() - began)
    show("the app at rest, seconds of CPU a minute", f"{spent:.2f}", "<= 0.25")
    app.end()


def indexed(place: Path, name: str, notes: int) -> tuple[Path, Path]:
    """A workspace of so many notes, and its index."""
    workspace, index = place / name, place / f"{name}.sqlite"
    if not workspace.exists():
        write(workspace, notes, 1000 if name == "many" else 4000)
        with Engine.open(Options(workspace=str(workspace), index=str(index))) as engine:
            engine.index.sync()
    return workspace, index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=5_000, help="notes for the app at rest")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--large", action="store_true")
    args = parser.parse_args()
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    begin(__doc__)
    chunks, many = (LARGE, 25_000) if args.large else (args.chunks, args.many)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ["XDG_CONFIG_HOME"] = str(place / "config")
        starting(place, *indexed(place, "small", 20), max(1, args.times // 4))
        keys(place, *indexed(place, "large", round(chunks / CHUNKS_A_NOTE)), args.times)
        resting(place, *indexed(place, "many", many), 1.5 * args.times)


if __name__ == "__main__":
    main()
