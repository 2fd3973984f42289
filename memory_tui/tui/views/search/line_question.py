"""The line that a question is about, asked for by its place, a note's name, or words that stand in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memory_tui.errors import MemoryTuiError
from memory_tui.sanitize import one_line, safe
from memory_tui.tui.draw import fit
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.view import Part, View
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.search.trace import Trace

LINES_WITH = "lines with: "
"""Begins the proposal to look for the words themselves."""

MOST_LINES = 200
"""Lines to choose from at most."""


class LineQuestion(Part):
    """Asks which line is meant, by its place, part of a note's name, or words that stand in it; then calls `then`.

    Lines that `trace` recalls are named with their place among the hits.
    """

    def __init__(
        self,
        view: View,
        then: Callable[[str, int | None], object],
        trace: Callable[[], Trace | None] = lambda: None,
    ) -> None:
        super().__init__(view)
        self._then, self._trace = then, trace

    def ask(self, here: tuple[str, int] | None = None) -> None:
        """Propose the place `here` and its note first."""
        from memory_tui.tui.views.dialogs import Prompt, near, path_of
        from memory_tui.workspace.roots import named_lines

        facts = self.home.facts
        # The box shows names made safe, so what was chosen there is looked up.
        paths = {safe(row.path): row.path for row in facts.rows} if facts is not None else {}
        closest = near(sorted(paths, key=lambda path: here is None or paths[path] != here[0]))

        def propose(typed: str) -> Sequence[str]:
            """Names first where a name can be meant, else the lines that hold these words."""
            words = typed.strip()
            if not words:
                return [*([f"{safe(here[0])}:{here[1]}"] if here is not None else []), *closest(typed)]
            letters, names, by_words = named_lines(words)[0], list(closest(typed)), f"{LINES_WITH}{words}"
            if not (any(letters.casefold() in path.casefold() for path in paths) or set(letters) & set("/")):
                names = [name for name in names if name != words]
                if " " in words:
                    return [by_words, *names]
            return [*names, by_words]

        def take(place: str | None) -> None:
            if place is None or not place.startswith(LINES_WITH):
                path, problem = path_of(named_lines(place)[0], paths) if place else ("", "")
                if path:
                    self._then(path, named_lines(place or "")[1])
                elif problem:
                    self.view.show_message(problem)
            else:
                self._find(place.removeprefix(LINES_WITH))

        hint = "PATH:LINE, part of a note's name, or words of the line"
        self.view.app.push_screen(Prompt("Why not this line?", hint, "", propose), take)

    @task("words")
    async def _find(self, words: str) -> None:
        """Find the lines that hold all `words`, and have one of them chosen."""
        from memory_tui.tui.views.dialogs import Picker

        room = min(90, self.view.app.size.width * 4 // 5) - 8
        names = await self.home.jobs.run(lines_holding(words, room, self._trace()))
        if len(names) > 1:
            count = f"{len(names)} lines" if len(names) < MOST_LINES else f"The first {MOST_LINES} lines"
            title = f"Which one? {count} with “{one_line(words, 30)}”"
            Picker(title, list(names)).ask(self.view.app, lambda name: self._then(*names[name]))
        elif names:
            self._then(*next(iter(names.values())))
        else:
            self.view.show_message(
                f"No indexed line holds all words of “{one_line(words, 40)}”. {key_of('ask')} searches for it; in a "
                f"note, {key_of('why')} explains the line under the cursor."
            )


def lines_holding(words: str, width: int, trace: Trace | None = None) -> Callable[[Engine], dict[str, tuple[str, int]]]:
    """Finds the lines that hold all `words`, in any case; `MOST_LINES` at most.

    Maps what names each in `width` cells to path and 1-based line. The index says in which notes to look for whole
    words; where it cannot tell, every note is read. A line that `trace` recalls is named with its place.
    """
    recalled = {
        (hit.chunk.path, line): f"  hit {place}"
        for place, hit in reversed([*enumerate(trace.recalled if trace is not None else (), 1)])
        for line in range(hit.chunk.start_line, hit.chunk.end_line + 1)
    }
    target = re.findall(r"\w+", words.casefold())

    def run(engine: Engine) -> dict[str, tuple[str, int]]:
        reply: dict[str, tuple[str, int]] = {}
        holding = [paths for word in target if (paths := engine.search.holding([word])) is not None]
        text = frozenset.intersection(*holding) if holding else {row.path for row in engine.notes.files()}
        for path in sorted(text) if target else ():
            try:
                lines = engine.notes.read(path).text.split("\n")
            except MemoryTuiError:
                # It is gone since it was indexed; the view of the index says so.
                continue
            for number, line in enumerate(lines, 1):
                if len(reply) < MOST_LINES and all(word in line.casefold() for word in target):
                    place = f"{safe(path.removeprefix('memory/'))}:{number}{recalled.get((path, number), '')}"
                    name = f"{place}  {one_line(line)}"
                    reply[fit(name, width)] = (path, number)
        return reply

    return run
