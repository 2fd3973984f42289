"""How quickly the screen answers: first frame, a letter, a step, a knob, the app at rest.

python -m tests.bench.screen [--large]

`--large` is 98,000 chunks, and 25,000 notes for the app at rest.
"""

import argparse
import tempfile
import time
from pathlib import Path

from memory_tui.engine.engine import Engine
from memory_tui.plan import Options
from tests.bench.corpus import questions, write
from tests.bench.measure import CHUNKS_A_NOTE, LARGE, Cost, Watched, begin, program, python, ratio, share, show
from tests.support.terminal import Terminal

TIMES = 20
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


class Timed(Terminal):
    """A program, as a rule the app, on a terminal of 120 by 36."""

    def __init__(self, command: list[str], text: str) -> None:
        began = time.perf_counter()
        super().__init__(command, columns=120, rows=36, env={"TEXTUAL_ANIMATIONS": "none"}, cwd=Path.cwd())
        self.watched = Watched(self.process.pid)
        self.until(text)
        self.first = Cost(self.watched.cpu(), (time.perf_counter() - began) * 1000)

    def press(self, key: str) -> None:
        self.type(key)
        size = -1
        while size != len(self.output):
            size = len(self.output)
            self.read(0.15)

    def settled(self) -> float:
        """Milliseconds of CPU until now, when the app has used none for four tenths of a second."""
        return self.watched.settled(lambda: self.read(0))


def starting(workspace: Path, index: Path) -> None:
    commands = python("-c", BARE), program(str(workspace), "--index", str(index))
    costs: tuple[list[Cost], list[Cost]] = [], []
    # In the first round modules are compiled.
    for number in range(TIMES // 4 + 1):
        for command, frames in zip(commands, costs, strict=True):
            with Timed(command, "Notes") as app:
                frames += [app.first] if number else []
    base, frame = (share(frames, 0.5) for frames in costs)
    show("first frame of a bare app of Textual's, ms", base)
    show("first frame, ms", frame, f"{ratio(frame.cpu, base.cpu, 'that')}; <= 1.4 x")


def keys(workspace: Path, index: Path) -> None:
    command = program(str(workspace), "--index", str(index), "--query", questions(1)[0])
    with Timed(command, "Your agent gets") as app:

        def cost(name: str, pair: tuple[str, str], goal: str) -> None:
            """Show what each of two keys costs that take each other back."""
            before, own = app.settled(), app.watched.screen()
            for step in range(TIMES):
                app.press(pair[step % 2])
                after = app.settled()
            screen = (app.watched.screen() - own) / TIMES
            show(
                f"{name}: ms of CPU, and of the screen's thread", f"{(after - before) / TIMES:.1f}, {screen:.1f}", goal
            )

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


def resting(workspace: Path, index: Path) -> None:
    with Timed(program(str(workspace), "--index", str(index)), "Notes") as app:
        started = app.settled()
        before = app.settled()
        show("what follows a start, ms of CPU, once", f"{before - started:.0f}")
        began, before = time.monotonic(), app.watched.cpu()
        while time.monotonic() - began < 1.5 * TIMES:
            app.read(0.2)
        spent = (app.watched.cpu() - before) / 1000 * 60 / (time.monotonic() - began)
        show("the app at rest, seconds of CPU a minute", f"{spent:.2f}", "<= 0.25")


def indexed(place: Path, name: str, notes: int) -> tuple[Path, Path]:
    workspace, index = place / name, place / f"{name}.sqlite"
    write(workspace, notes, 1000 if name == "many" else 4000)
    with Engine.open(Options(workspace=str(workspace), index=str(index))) as engine:
        engine.index.sync()
    return workspace, index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    chunks, many = (LARGE, 25_000) if parser.parse_args().large else (10_000, 5_000)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        begin(__doc__, place)
        starting(*indexed(place, "small", 20))
        keys(*indexed(place, "large", round(chunks / CHUNKS_A_NOTE)))
        resting(*indexed(place, "many", many))


if __name__ == "__main__":
    main()
