"""The recalls view lists what agents asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from memory_tui.core.errors import MemoryTuiError
from memory_tui.core.formatting import plural
from memory_tui.core.sanitize import one_line
from memory_tui.tui.draw import fit
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.index.listing import Listing
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.recalls.recall_log import Log, RecallEntry
    from memory_tui.recalls.rerun import Rerun


NOTE_READ = "The agent read a note here; there is no query to ask."
MEMORIES_ASKED = (
    f"The agent asked its long-term memories here: {key_of('go memories')}, then {key_of('ask')} asks them again."
)
NONE = "memory-tui mcp --log-recalls writes down what agents ask and get, on this machine only."


class RecallsView(View):
    """The newest first; enter takes one to the search view, `w` tells below it what it got then and would get now."""

    PLACE = "recalls"

    def __init__(self, below: View | None = None) -> None:
        super().__init__(below)
        self.listing = Listing(
            self,
            title="What agents asked",
            waiting="Reading the log of recalls ...",
            gather=_log,
            lines=self._lines,
            summary=self._summary,
        )
        self.parts = (self.listing,)
        self._replay: Rerun | None = None
        self._letters = ""

    def _summary(self, log: Log) -> str:
        """How many there are, and how many of them are shown."""
        unread = f", {plural(log.unread, 'line')} unreadable" if log.unread else ""
        if not self._letters:
            return f"{plural(len(log.entries), 'recall')}{unread}"
        return f"{len(self._shown(log)):,} of {plural(len(log.entries), 'recall')} with “{self._letters}”{unread}"

    def _shown(self, log: Log) -> list[RecallEntry]:
        """The entries whose row holds the letters that were typed, the newest first."""
        letters = self._letters.lower()
        return [entry for entry in reversed(log.entries) if letters in _words(entry).lower()]

    def _lines(self, log: Log, width: int) -> list[Line]:
        """A line a recall."""
        from memory_tui.recalls.recalled_lines import moment, replayed

        if not log.entries:
            return [*text("", width), *text("No recall is logged.", width, "strong"), *text(NONE, width, "muted")]
        empty = sum(_empty(entry) for entry in log.entries)
        written: list[Line] = []
        if not self._letters:
            everyone = plural(len(log.entries), "recall")
            in_vain = f"{empty:,} of {everyone} got nothing: {key_of('find')} {NOTHING} shows them."
            written = text(in_vain if empty else f"{everyone}; each got an answer.", width, "muted")
        for entry in self._shown(log):
            got, style = _got(entry)
            room, who = (26, 16) if width >= 100 else (12 if width >= 72 else 8, 11)
            at = moment(entry.at)
            # The year gives way to the name of who asked.
            at = at[5:] if width < 100 and at[:1].isdigit() else at
            written.append(
                (
                    [
                        (f" {at}  ", "muted"),
                        (f"{fit(_who(entry), who)}  ", ""),
                        (f"{fit(got, room)} ", style),
                        (fit(one_line(entry.query), max(10, width - room - who - len(at) - 7)), "strong"),
                    ],
                    entry.id,
                )
            )
            if self._replay is not None and self._replay.entry.id == entry.id:
                written += [line for words in list(replayed(self._replay))[2:] for line in text(words, width, "", 3)]
        return written or text(f"No recall contains “{self._letters}”; esc shows all.", width, "muted")

    @property
    def entry(self) -> RecallEntry | None:
        """The recall under the cursor."""
        log, key = self.listing.found, self.listing.rows.key
        return log.find(key) if log is not None and isinstance(key, str) and key else None

    def _question(self) -> RecallEntry | None:
        """The recall under the cursor, where it is a question; else why not is said."""
        entry = self.entry
        if entry is not None and entry.asked == "notes":
            return entry
        other = MEMORIES_ASKED if entry is not None and entry.asked == "memories" else NOTE_READ
        self.show_message("No recall is under the cursor." if entry is None else other)
        return None

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Take the question to the search view, with the knobs that held then."""
        entry, tuning = self._question(), self.home.tuning
        if entry is None or tuning is None:
            return
        from memory_tui.recalls.recalled_lines import claim
        from memory_tui.recalls.rerun import got_then, settings_of

        then = settings_of(entry, tuning.settings)
        self.home.turn(tuning.to(then))
        turned = self.home.tuning is not tuning
        self.app.pop_screen()
        knobs = (
            f"The knobs are as they were then; {key_of('undo')} undoes it."
            if turned
            else "The knobs are as they were then."
        )
        self.home.ask_for(entry.query, f"{claim(got_then(entry))} {knobs}")

    @task("replay")
    async def do_then_now(self) -> None:
        """What the recall under the cursor got then, and would get now."""
        entry = self._question()
        if entry is None:
            return
        from memory_tui.recalls.rerun import replay

        found = await self.home.jobs.attempt(lambda engine: replay(entry, engine.plan.settings, engine.queries.gather))
        if isinstance(found, MemoryTuiError):
            self._replay = None
            self.show_message(sentence_of(found))
        else:
            self._replay = found
        self.listing.show()

    def do_filter(self) -> None:
        """Ask for letters, and show only the recalls that hold them."""
        from memory_tui.tui.views.dialogs import Prompt

        def take(letters: str) -> None:
            self._letters = letters
            self.listing.show()

        Prompt("Show which recalls?", "letters of the row: a word, an agent, “nothing”", self._letters).ask(
            self.app, take
        )

    def back(self) -> bool:
        """Show all again, else back to the view below."""
        if not self._letters:
            return super().back()
        self._letters = ""
        self.listing.show()
        return True


def _log(engine: Engine) -> Log:
    """The log of this workspace."""
    from memory_tui.recalls import recall_log

    return recall_log.read(recall_log.recall_log_path(engine.plan.roots.workspace))


NOTHING = "nothing"
"""What is typed to see the recalls that got nothing."""


def _empty(entry: RecallEntry) -> bool:
    """Whether the agent got nothing at all; of a note that was read, older logs do not say what came back."""
    read = entry.tool == "memory_get" and not entry.outcome
    return not (entry.hits or entry.delivered or read)


def _who(entry: RecallEntry) -> str:
    """Who asked."""
    return one_line(entry.client or entry.agent) or "an agent"


def _words(entry: RecallEntry) -> str:
    """What the row of a recall says, for those who look for it by words."""
    return "  ".join((_who(entry), NOTHING if _empty(entry) else "", _got(entry)[0], one_line(entry.query)))


def _got(entry: RecallEntry) -> tuple[str, str]:
    """What came back, in a few words, and its style."""
    if entry.got:
        return one_line(entry.got), "warn" if _empty(entry) else ""
    return "read", "muted"
