"""The page behind `?`: what each view is for, and the keys that matter first."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from textual.binding import ActiveBinding, Binding, BindingType
from textual.content import Content
from textual.keys import format_key

from memory_tui.tui.dialogs import Page
from memory_tui.tui.keys import BY_ID

VIEWS = (
    ("app.notes", "read, edit and promote what your agent remembers"),
    ("app.search", "ask as your agent does; see why, and why not"),
    ("app.status", "who answers, how fresh the index is, a provider"),
    ("app.inbox", "secrets, twins, lost lines, and their cure"),
    ("app.history", "what changed, and any text as it was before"),
    ("app.agents", "connect Claude Code, Codex, OpenClaw; what they asked"),
)
KEYS = (
    ("app.ask", "ask your notes from anywhere"),
    ("list.open", "open what is under the cursor"),
    ("search.miss", "the first passage that is not sent, and its cure"),
    ("note.copy", "copy text with its citation"),
    ("notes.add", "add a line to today's log"),
    ("app.undo", "take back the last change, or what was tried"),
    ("app.palette", "find any command by a word: delete, openai, theme"),
    ("app.quit", "quit; unsaved text is kept; a demo asks first"),
)

WORDS = (
    ("second look", "the best passages are read again, line by line; words and meaning gain by it"),
    ("beside a better one", "it loses points next to a better passage of its note"),
    ("┃ ░ ● beside a text", "the line that decided, lines your agent never reads, lines you marked"),
)


def text(keymap: Mapping[str, str], width: int) -> Content:
    """Return the page in `width` cells, with the keys as a person has them."""

    def rows(table: tuple[tuple[str, str], ...]) -> Iterator[Content]:
        """Yield the lines of a table: key, name, and words that wrap below each other."""
        for id_, words in table:
            key = format_key(keymap.get(id_, BY_ID[id_].keys).partition(",")[0])
            # A longer name has no room in its column, and the words say as much.
            name = BY_ID[id_].words if len(BY_ID[id_].words) < 10 else ""
            lead = Content.assemble((f" {key:>3} ", "$accent bold"), (f"{name:<9} ", "bold"))
            for line in Content(words).wrap(width - lead.cell_length):
                yield lead + line + Content("\n")
                lead = Content(" " * lead.cell_length)

    return Content.assemble(
        *rows(VIEWS),
        "\n",
        *rows(KEYS),
        "\n",
        *(Content.assemble((f" {word}: ", "bold"), f"{words}\n") for word, words in WORDS),
        "\nThe last line shows keys of where you are; ? again lists all.\n",
        ("memory-tui help lists the pages of the manual.", "$foreground-muted"),
    )


def every(active: Iterable[ActiveBinding]) -> Content:
    """Return the keys of the app that work now, a line each, those of the focus first."""
    # Textual's own, which have no row of ours, move cursors.
    rows = [(f" {format_key(key.key):>6}  ", key.description) for _, key, *_ in active if key.id in BY_ID]
    return Content("\n").join(Content.assemble((key, "$accent bold"), words) for key, words in rows)


class Help(Page):
    """The page; the key that opened it goes on to the list of all keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "all", "All keys")]

    def __init__(self, keymap: Mapping[str, str], width: int) -> None:
        super().__init__("What is where", text(keymap, width))

    async def action_all(self) -> None:
        """List every key."""
        await self.dismiss()
        await self.app.run_action("keys")
