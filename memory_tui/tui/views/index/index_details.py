"""What agents asked and what they got; enter asks one again, with its knobs: why did my agent not remember?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType

from memory_tui.text.display import one_line
from memory_tui.tui.actions import bindings
from memory_tui.tui.messages import Done
from memory_tui.tui.paint import fit, plural
from memory_tui.tui.screens.listing import ListingView
from memory_tui.tui.widgets.rowlist import RowList
from memory_tui.tui.widgets.rows import Line, Rows, text

if TYPE_CHECKING:
    from memory_tui.agent.recall_log import Entry, Log
    from memory_tui.agent.replay import Replay
    from memory_tui.engine import Engine

NOTE_READ = "That was a note being read, not a question."
NONE = "memory-tui mcp --log-recalls writes down what agents ask and get, on this machine only."


class RecallsView(ListingView):
    """The newest first; enter takes one to the search view, `w` tells below it what it got then and would get now."""

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("recalls"))
    PLACE = "recalls"
    TITLE_WORDS = "What agents asked"
    WAITING = "Reading the log of recalls ..."

    def __init__(self) -> None:
        super().__init__()
        self._replay: Replay | None = None
        self._letters = ""

    @staticmethod
    def gather(engine: Engine) -> Log:
        """The log of this workspace."""
        from memory_tui.agent import recall_log

        return recall_log.read(recall_log.place(engine.workspace))

    def do_again(self) -> None:
        """Read the log again."""
        self.look()

    def subtitle(self, found: object, /) -> str:
        """How many there are, and how many of them are shown."""
        log: Log = found  # type: ignore[assignment]
        unread = f", {plural(log.unread, 'line')} unreadable" if log.unread else ""
        if not self._letters:
            return f"{plural(len(log.entries), 'recall')}{unread}"
        return f"{len(self._shown(log)):,} of {plural(len(log.entries), 'recall')} with “{self._letters}”{unread}"

    def _shown(self, log: Log) -> list[Entry]:
        """The entries that hold the letters that were typed, the newest first."""
        return [entry for entry in reversed(log.entries) if self._letters.lower() in one_line(entry.query).lower()]

    def lines(self, found: object, width: int) -> list[Line]:
        """A line a recall."""
        from memory_tui.agent.recall_lines import moment, replayed

        log: Log = found  # type: ignore[assignment]
        if not log.entries:
            return [*text("", width), *text("No recall is logged.", width, "strong"), *text(NONE, width, "muted")]
        written: list[Line] = []
        for entry in self._shown(log):
            got, style = _got(entry)
            room = 26 if width >= 100 else 12
            written.append(
                (
                    [
                        (f" {moment(entry.at)}  ", "muted"),
                        (fit(got, room), style),
                        (fit(one_line(entry.query), max(10, width - room - 24)), "strong"),
                    ],
                    entry.id,
                )
            )
            if self._replay is not None and self._replay.entry.id == entry.id:
                written += [line for words in list(replayed(self._replay))[2:] for line in text(words, width, "", 3)]
        return written or text(f"No recall holds “{self._letters}”; esc shows all.", width, "muted")

    @property
    def entry(self) -> Entry | None:
        """The recall under the cursor."""
        log: Log | None = self._found  # type: ignore[assignment]
        key = self.query_one(Rows).key
        return log.find(key) if log is not None and isinstance(key, str) and key else None

    def _question(self) -> Entry | None:
        """The recall under the cursor, where it is a question; else why not is said."""
        from memory_tui.agent.prompt import SEARCH

        entry = self.entry
        if entry is not None and entry.tool == SEARCH:
            return entry
        self.say("No recall is under the cursor." if entry is None else NOTE_READ)
        return None

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Take the question to the search view, with the knobs that held then."""
        entry, tuning = self._question(), self.home.tuning
        if entry is None or tuning is None:
            return
        from memory_tui.agent.recall_lines import taken_up
        from memory_tui.agent.replay import settings_of

        then = settings_of(entry, tuning.settings)
        self.home.turn(tuning.to(then))
        turned = self.home.tuning is not tuning
        self.app.pop_screen()
        knobs = "The knobs stand as then; u takes them back." if turned else "The knobs stand as then."
        self.home.ask_for(entry.query, f"{taken_up(entry)} {knobs}")

    def do_then_now(self) -> None:
        """What the recall under the cursor got then, and would get now."""
        entry = self._question()
        if entry is None:
            return

        def ask(engine: Engine) -> Replay:
            from memory_tui.agent.replay import replay

            return replay(engine, entry)

        self.home.bridge.work("replay", ask)

    def do_filter(self) -> None:
        """Ask for letters, and show only the recalls that hold them."""
        from memory_tui.tui.screens.prompt import Prompt

        def take(letters: str | None) -> None:
            if letters is not None:
                self._letters = letters
                self.show()

        self.app.push_screen(Prompt("Show which questions?", "letters that they hold", self._letters), take)

    def work_done(self, done: Done, /) -> None:
        """The answer of now beside that of then."""
        if done.kind == "replay":
            self._replay = done.value if done.error is None else None  # type: ignore[assignment]
            if done.error is not None:
                self.say(f"{done.error.message} {done.error.next_step}".strip())
            self.show()
        super().work_done(done)

    def back(self) -> bool:
        """Show all again, else back to the view below."""
        if not self._letters:
            return super().back()
        self._letters = ""
        self.show()
        return True


def _got(entry: Entry) -> tuple[str, str]:
    """What came back, in a few words, and its style."""
    if entry.hits:
        return plural(len(entry.hits), "hit"), ""
    if entry.outcome:
        return one_line(entry.outcome), "warn"
    return ("read", "muted") if entry.tool == "memory_get" else ("no hit", "warn")
