"""The command palette: every command by its name and by what people call it, view by view, machinery last."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Command as CommandRow
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.keys import format_key
from textual.message import Message
from textual.screen import Screen
from textual.theme import ThemeProvider
from textual.widgets import Input

from memory_tui.formatting import one_line
from memory_tui.tui.keys import BY_ID, Hints, named
from memory_tui.tui.session import ReadNote
from memory_tui.tui.views.notes import NotesView


class Command(NamedTuple):
    """A command: `target` is the id of a key, or an action without one; it is done in `view`, empty for any."""

    view: str
    title: str
    target: str
    synonyms: str = ""

    @property
    def action(self) -> str:
        """Return the action."""
        return BY_ID[self.target].action if self.target in BY_ID else self.target

    def works(self, screen: Screen[object]) -> bool:
        """Return whether its key works where the focus of `screen` is."""
        return any(each.binding.id == self.target for each in screen.active_bindings.values())

    @property
    def key(self) -> str:
        """Return the key as it comes, for a person; empty where there is none."""
        return format_key(BY_ID[self.target].keys.partition(",")[0]) if self.target in BY_ID else ""


TABLE: tuple[Command, ...] = (
    Command("", "Ask your notes", "app.ask", "search find query question recall"),
    Command("notes", "Copy text with its citation", "note.copy", "yank clipboard quote"),
    Command("notes", "Copy the citation alone", "note.cite", "yank clipboard quote reference path line"),
    Command("", "Take back the last change", "app.undo", "undo revert restore mistake read as otherwise typo spelling"),
    Command("", "Index now", "app.index", "sync reindex refresh update look again reload"),
    Command("notes", "Read the notes", "app.notes", "files list preview view open browse"),
    Command("notes", "What the agent never reads", "unread", "session start limit budget unread cut too long prompt"),
    Command("notes", "Filter the notes", "notes.filter", "find file go to open name title"),
    Command("notes", "Add a line to today's log", "notes.add", "remember capture write append daily"),
    Command("notes", "Begin a new note", "notes.new", "create topic file add"),
    Command("notes", "Edit this note", "note.edit", "write change modify"),
    Command("notes", "Open this note in your editor", "note.editor", "external vim emacs nano code EDITOR"),
    Command("notes", "Show this note rendered", "note.rendered", "preview markdown html print"),
    Command("notes", "Promote to MEMORY.md", "note.promote", "copy move keep long-term curate"),
    Command("notes", "Move lines of MEMORY.md to another note", "move", "promote demote topic"),
    Command("notes", "A newer line overtakes this one", "note.overtake", "correct supersede wrong outdated contradict"),
    Command("notes", "Delete lines or notes", "note.delete", "trash remove forget erase throw away"),
    Command("notes", "Rename this note", "notes.rename", "move file path"),
    Command("notes", "Archive old daily logs", "archive", "tidy clean old"),
    Command("notes", "What links here", "note.links", "backlinks references wiki"),
    Command("notes", "What changed in this note", "note.history", "history versions diff log blame author who wrote"),
    Command("notes", "Calendar of written days", "calendar", "days dates month today yesterday"),
    Command("search", "Why not: go to the first miss", "search.miss", "missing recalled dropped lost explain limit"),
    Command("search", "Show the whole sum of the score", "search.sum", "why details trace bm25 chart second look"),
    Command("search", "Turn the ranking", "search.turn", "knobs tune settings minScore half-life weights chart limit"),
    Command("search", "Back to my settings", "own_ranking", "reset default ranking knobs then tried untry"),
    Command("search", "Compare two rankings", "search.compare", "difference side by side profile openclaw"),
    Command("search", "Mark right or wrong", "search.judge", "judge label relevant rate evaluate"),
    Command("search", "Ask about any line", "search.line", "why line not recalled forgot lost explain"),
    Command("search", "Search another scope", "scope", "shared team others workspace group all mirror postgres"),
    Command("search", "Saved questions", "search.saved", "queries judgments ndcg evaluate better settings"),
    Command("status", "Set up a provider", "page('setup')", "openai gemini voyage mistral ollama key model settings"),
    Command("status", "Show the status", "app.status", "index state events news pause watch approve fallback"),
    Command("status", "Read the configuration again", "reopen", "reload openclaw.json config settings restart"),
    Command("status", "Examine everything", "page('doctor')", "doctor diagnose check health problem"),
    Command("inbox", "Open the inbox", "app.inbox", "secrets password duplicates contradictions lost merge repeats"),
    Command("history", "Show what changed, and restore", "app.history", "undo versions revert journal git log lost"),
    Command("agents", "Connect an agent", "app.agents", "claude codex openclaw mcp host install disconnect"),
    Command("status", "What agents asked", "page('asked')", "recalls log questions"),
    Command("agents", "What OpenClaw keeps", "openclaw", "trust dreams sessions flush memories lancedb own index"),
    Command("", "Take the tour, or end it", "tour", "first steps tutorial learn introduction begin"),
    Command("", "Help", "app.help", "keys manual what how"),
    Command("", "List every key of this view (? twice)", "keys", "forgot shortcuts bindings reference"),
    Command("", "Change the colours", "change_theme", "theme dark light mode settings appearance"),
    Command("", "Rebuild the index", "rebuild", "force reindex anew scratch repair"),
    Command("", "Put the app into the background", "suspend_process", "ctrl+z shell stop"),
    Command("", "Quit", "app.quit", "exit leave close"),
)


class Palette(CommandPalette):
    """Textual's palette, with keys of its own below; enter means what was typed, not what is still listed."""

    BINDINGS: ClassVar[list[BindingType]] = named("Back", "text.back", action="escape")

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Hints()

    @on(Input.Submitted)
    async def take(self, event: Input.Submitted) -> None:
        """Do the command under the cursor, once the list is that of the typed words; a second enter does nothing."""
        event.prevent_default().stop()
        # The list is filled by workers of the palette.
        await asyncio.gather(*(each.wait() for each in self.workers if each.node is self), return_exceptions=True)
        row = self.query_one(CommandList).highlighted_option
        if self.is_active and isinstance(row, CommandRow):
            # Textual's own way is two messages long, and what is typed ahead comes between them.
            self.dismiss()
            self.app.call_later(row.hit.command)


@dataclass
class Chosen(Message):
    """A command was chosen."""

    command: Command


def matches(query: str) -> Iterator[tuple[float, Command]]:
    """Yield the commands that hold the most words of `query`, and how well: a word of the title counts more."""
    words = query.lower().split()
    texts = {command: f"{command.title} {command.synonyms}".lower() for command in TABLE}
    held = {command: sum(word in text for word in words) for command, text in texts.items()}
    for command in TABLE:
        # Titles with all words come before those that hold as many with their synonyms.
        if held[command] == max(held.values()) > 0:
            yield 2.0 if all(word in command.title.lower() for word in words) else 1.5, command


class Themes(ThemeProvider):
    """Offers the themes, the one in force first."""

    @property
    def commands(self) -> list[tuple[str, Callable[[], None]]]:
        """Return the names, and what each does."""
        every = sorted(super().commands, key=lambda row: row[0] != self.app.theme)
        return [(f"{name}, in force", do) if name == self.app.theme else (name, do) for name, do in every]


class Commands(Provider):
    """Offers the commands, and the lines of the note that is shown by their numbers."""

    async def discover(self) -> Hits:
        """Yield every command, in the table's order."""
        for command in self._offered:
            choose = partial(self.app.post_message, Chosen(command))
            yield DiscoveryHit(self._row(Content(command.title), command), choose, command.title)

    async def search(self, query: str) -> Hits:
        """Yield what holds the words; where nothing does, what has letters like them."""
        matcher = self.matcher(query)
        # Empty where no command holds a word: then the letters are compared.
        exact = {command: score for score, command in matches(query)}
        for command in self._offered:
            if score := exact.get(command, 0.0) if exact else matcher.match(command.title):
                row = self._row(matcher.highlight(command.title), command)
                yield Hit(score, row, partial(self.app.post_message, Chosen(command)), command.title)
        # The score of 3 puts it above every command; more digits are no line of a note.
        number = query.strip().removeprefix(":")
        if number.isdecimal() and len(number) < 10:
            title = f"Go to line {int(number)} of the note"
            yield Hit(3.0, title, partial(self.app.post_message, ReadNote("", int(number))), title)

    @property
    def _offered(self) -> list[Command]:
        """Return the commands: MEMORY.md is not promoted, lines of no other are moved; a scope needs a shared index."""
        # What is not offered; a text times False is the empty one, which no command has for a target.
        notes = self.screen.query(NotesView)
        off = ("move", "note.promote")[any(each.display and each.path == "MEMORY.md" for each in notes)]
        return [each for each in TABLE if each.target not in (off, "scope" * (not self.app.check_action("scope", ())))]

    def _row(self, title: Content, command: Command) -> Content:
        """Return a row with its key, and where that works unless it does so here: in a view, or on a note."""
        notes = self.screen.query(NotesView) if command.target.startswith(("note.", "notes.rename")) else ()
        where = next((view.path for view in notes if view.path), command.view.title())
        more = command.key if not command.key or command.works(self.screen) else f"{command.key} in {where}"
        return Content.assemble(title, (f"  {one_line(more)}", "$foreground-muted"))
