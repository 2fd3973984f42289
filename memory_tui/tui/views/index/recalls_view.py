"""The recalls view lists what agents asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from textual import on

from memory_tui.errors import MemoryTuiError
from memory_tui.formatting import plural
from memory_tui.sanitize import one_line
from memory_tui.tui.draw import Piece, fit
from memory_tui.tui.key_meanings import key_of
from memory_tui.tui.views.index.listings import Listing
from memory_tui.tui.views.view import View, sentence_of
from memory_tui.tui.widgets.rowlist import Line, RowList, text
from memory_tui.tui.workers import task

if TYPE_CHECKING:
    from memory_tui.engine.engine import Engine
    from memory_tui.recalls.recall_log import Log, RecallEntry, Reply
    from memory_tui.recalls.rerun import Rerun


NOTE_READ = "The agent read a note here; there is no query to ask."
MEMORIES_ASKED = (
    f"The agent asked its long-term memories here: {key_of('go memories')}, then {key_of('ask')} asks them again."
)
SIGNS: Mapping[Reply | Literal[""], tuple[str, str]] = {
    "found": ("✓", "good"),
    "nearby only": ("~", "warn"),
    "nothing": ("✗", "bad"),
    "no answer": ("!", "bad"),
    "no level": ("?", "muted"),
    "": (" ", "muted"),
}
"""The sign of each way to be answered, and its style; the words always stand with it."""
NONE = "memory-tui mcp --log-recalls writes down what agents ask and get, on this machine only."


class RecallsView(View):
    """The newest first, all or the poorly answered ones; enter takes one to the search view, `c` asks it again here."""

    PLACE = "recalls"

    def __init__(self, below: View | None = None, *, poor: bool = False) -> None:
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
        self._letters, self._poor = "", poor

    def _summary(self, log: Log) -> str:
        """How many there are, and how many of them are shown."""
        unread = f", {plural(log.unread, 'line')} unreadable" if log.unread else ""
        everyone = plural(len(log.entries), "recall")
        if not self._letters and not self._poor:
            return f"{everyone}{unread}"
        poor, letters = " poor" * self._poor, f" with “{self._letters}”" if self._letters else ""
        return f"{len(self._shown(log)):,}{poor} of {everyone}{letters}{unread}"

    def _shown(self, log: Log) -> list[RecallEntry]:
        """The entries whose row holds the letters that were typed, the newest first; of all or of the poor ones."""
        letters = self._letters.lower()
        return [
            entry
            for entry in reversed(log.entries)
            if letters in _words(entry).lower() and (entry.is_poor or not self._poor)
        ]

    def _lines(self, log: Log, width: int) -> list[Line]:
        """What there is of each kind, then a line a recall."""
        from memory_tui.recalls.rerun import replayed

        if not log.entries:
            return [*text("", width), *text("No recall is logged.", width, "strong"), *text(NONE, width, "muted")]
        written = text(self._head(log), width, "muted")
        for entry in self._shown(log):
            written.append((_row(entry, width), entry.id))
            if self._replay is not None and self._replay.entry.id == entry.id:
                written += [line for words in list(replayed(self._replay))[2:] for line in text(words, width, "", 3)]
        return written if self._shown(log) else [*written, *text(self._none(), width, "muted")]

    def _head(self, log: Log) -> str:
        """How many questions were answered how well, and what shows the poor ones alone, or all."""
        from memory_tui.recalls.rerun import tally

        poor, key = sum(entry.is_poor for entry in log.entries), key_of("show poor")
        reads = sum(not entry.reply for entry in log.entries)
        counts = [tally(log), plural(reads, "read") + " of notes" if reads else ""]
        way = f" {key} shows the poor {'one' if poor == 1 else 'ones'}." if poor else ""
        return f"{'; '.join(filter(None, counts))}.{f' {key} shows all.' if self._poor else way}"

    def _none(self) -> str:
        """Why no row is shown."""
        if self._letters:
            return f"No recall contains “{self._letters}”; esc shows all."
        return "No question was answered poorly, as far as the log tells; esc shows all."

    @property
    def entry(self) -> RecallEntry | None:
        """The recall under the cursor."""
        log, key = self.listing.found, self.listing.rows.key
        return log.find(key) if log is not None and isinstance(key, str) and key else None

    def _question(self) -> RecallEntry | None:
        """The recall under the cursor, where it is a question; else why not is said."""
        entry = self.entry
        if entry is not None and entry.subject == "notes":
            return entry
        other = MEMORIES_ASKED if entry is not None and entry.subject == "memories" else NOTE_READ
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
        from memory_tui.recalls.rerun import received, settings_of

        then = settings_of(entry.settings, tuning.settings)
        self.home.turn(tuning.to(then))
        turned = self.home.tuning is not tuning
        knobs = "The knobs are as they were then" if entry.settings else "The log does not have the knobs of then"
        knobs += f"; {key_of('undo')} undoes it." if turned else "."
        self.home.ask_for(entry.query, f"{received(entry)} {knobs}")

    @task("replay")
    async def do_then_now(self) -> None:
        """What the recall under the cursor got then, and would get now."""
        entry = self._question()
        if entry is None:
            return
        from memory_tui.recalls.rerun import replay

        reply = await self.home.jobs.attempt(lambda engine: replay(entry, engine.plan.settings, engine.search.gather))
        if isinstance(reply, MemoryTuiError):
            self._replay = None
            self.show_message(sentence_of(reply))
        else:
            self._replay = reply
        self.listing.show()

    def do_filter(self) -> None:
        """Ask for letters, and show only the recalls that hold them."""
        from memory_tui.tui.views.dialogs import Prompt

        def take(letters: str) -> None:
            self._letters = letters
            self.listing.show()

        Prompt("Show which recalls?", "letters of the row: a word, an agent, “nearby”, “nothing”", self._letters).ask(
            self.app, take
        )

    def do_poor(self) -> None:
        """Show the questions that were answered poorly alone, or all again."""
        self._poor = not self._poor
        self.listing.show()

    def back(self) -> bool:
        """Close what is open below a row, then show all again, then back to the view below."""
        if self._replay is not None:
            self._replay = None
            self.listing.show()
            return True
        if not self._letters and not self._poor:
            return super().back()
        self._letters, self._poor = "", False
        self.listing.show()
        return True


def poor_recalls(below: View) -> RecallsView:
    """The view with what was answered poorly alone."""
    return RecallsView(below, poor=True)


def _log(engine: Engine) -> Log:
    """The log of this workspace."""
    from memory_tui.recalls import recall_log

    return recall_log.read(recall_log.recall_log_path(engine.plan.roots.workspace))


def _who(entry: RecallEntry) -> str:
    """Who asked."""
    return one_line(entry.client or entry.agent) or "an agent"


def _words(entry: RecallEntry) -> str:
    """What the row of a recall says, for those who look for it by words."""
    return "  ".join(
        (_who(entry), "poor" * entry.is_poor, entry.level, entry.reply, one_line(entry.got), one_line(entry.query))
    )


def _row(entry: RecallEntry, width: int) -> list[Piece]:
    """When, who, how well it was answered with the best score, and what was asked; what was poor stands out."""
    from memory_tui.recalls.recall_log import moment

    at = moment(entry.at)
    # The year gives way to the name of who asked, and the time to the question.
    if at[:1].isdigit():
        at = at if width >= 100 else at[5:16] if width >= 72 else at[5:10]
    sign, style = SIGNS[entry.reply]
    if entry.is_poor and not entry.reply:
        sign, style = SIGNS["nothing"]
    who, room = (16, 24) if width >= 100 else (11, 16) if width >= 72 else (8, 13)
    pieces = [
        (f" {at}  ", "muted"),
        (f"{fit(_who(entry), who)}  ", ""),
        (f"{sign} {fit(_answer(entry, room), room)}  ", style),
    ]
    left = width - sum(cell_len(words) for words, _ in pieces)
    return [*pieces, (fit(one_line(entry.query), max(8, left)), "strong" if entry.is_poor else "")]


def _answer(entry: RecallEntry, room: int) -> str:
    """How well it was answered and by which score, or what came of a read; as much as there is room for."""
    if not entry.reply:
        return one_line(entry.got) or "read"
    words = entry.reply if entry.best is None else f"{entry.reply} {entry.best:.2f}"
    if room > 16 and (entry.hits or entry.outcome):
        return f"{words}, {one_line(entry.got)}"
    return words if len(words) <= room else words.replace(" only", "")
