"""Help shows the keys of the focused pane. It explains the signs on the screen, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input

from memory_tui.formatting import plural
from memory_tui.inbox.checks import CHECKS
from memory_tui.recalls.recall_log import Reply
from memory_tui.render.hit_text import ADDED, FADED, TEXT, VECTOR
from memory_tui.tui.action import Action
from memory_tui.tui.action_table import ACTIONS
from memory_tui.tui.draw import wrapped
from memory_tui.tui.key_meanings import MEANINGS, bound, key_of, shown
from memory_tui.tui.keymap import PLACES, keys_at
from memory_tui.tui.views.inbox.inbox_proposal import SIGNS as SEVERITIES
from memory_tui.tui.views.index.openclaw_index import MEANINGS as STATES_COMPARED
from memory_tui.tui.views.index.openclaw_index import SIGNS as COMPARED
from memory_tui.tui.views.index.recalls_view import SIGNS as REPLIES
from memory_tui.tui.views.view import Dialog
from memory_tui.tui.widgets.file_tree import SIGNS, TRUST
from memory_tui.tui.widgets.query import Box

_STATES = {
    "fresh": "indexed as it is on disk",
    "new": "new, not indexed yet",
    "changed": "changed since then",
    "deleted": "gone from the disk; the next sync removes it",
    "failed": "could not be indexed; view 3 says why",
    "absent": "read at session start, but the file does not exist",
}
_FILES = [(SIGNS[state][0], words) for state, words in _STATES.items()]
_CHUNKS = [
    ("╭ │ ╰", "where a chunk begins and ends; chunks overlap, so there are two columns"),
    ("▌", "the lines that the citation names"),
    ("▐", "the lines that you marked"),
    ("•", "a line that some search recalled"),
]
_LISTED = [
    ("12d ×.76 1.2k 3c", "age in days (none: never fades), what age leaves of its score, bytes, chunks"),
    (
        " ".join(letter for letter, _ in TRUST.values()),
        "whether OpenClaw 2026.9 trusts it: agent, edited since, untrusted, not "
        f"recorded, a link, not known ({key_of('go trust')})",
    ),
    ("+.02", "instead of ×.76 where the profile adds to the score of what is recent"),
]
_HITS = [
    (VECTOR, "points for meaning (vector)"),
    (TEXT, "points for words (text)"),
    (ADDED, "points added for a recent day, or a day that the query names"),
    (FADED, "points taken off: by age, or for a better hit beside it"),
    ("none", "evergreen: the note has no date, so it never fades"),
    ("+2 -1 =", "places up, down, or the same as under the baseline"),
    ("*", "a knob changed since the app opened or since the last write"),
    ("new out", "recalled only now, or no longer"),
    ("✓ ½ ✗", "you judged it: it answers, helps, or is wrong"),
]
_REPLIES: dict[Reply, str] = {
    "found": "the notes hold what was asked",
    "nearby only": "the notes hold too few of its words, or of words like them; scores only order the hits",
    "nothing": "no note holds these words, or nothing was recalled",
    "no answer": "the memory could not be searched, or not in time",
    "no level": "the log does not say how well: of an older release, QMD, long-term memories, a profile without levels",
}

SIGNS_OF = {
    "browse": [*_FILES, *_LISTED, *_CHUNKS],
    "reader": _CHUNKS,
    "search": _HITS,
    "index": [*_FILES, ("×", "left out: not part of the memory, with the rule that says so")],
    "inbox": [
        (sign, "; ".join(check.title for check in CHECKS if check.severity == severity))
        for severity, (sign, _) in SEVERITIES.items()
    ],
    "recalls": [(f"{REPLIES[reply][0]} {reply}", words) for reply, words in _REPLIES.items()],
    "compare": [(f"{glyph} {word}", STATES_COMPARED[name]) for name, (glyph, word, _) in COMPARED.items()],
}

WORDS_OF = {
    "editor": f"{key_of('save')} saves the note. What others wrote to other lines "
    "meanwhile is kept; where they changed the same "
    f"lines, you see both and choose. Lines that another program changed are underlined. {key_of('find text')} finds "
    f"text; ctrl+z takes back what was typed, ctrl+y types it again.",
    "history": "Every change made with memory-tui, newest first, with its effect; "
    f"{key_of('undo')} undoes it. Texts that could "
    "not be written are kept here too. Commits of git stand between, where there are any.",
    "browse": "Notes are the Markdown files the agent remembers. Each is cut into chunks, the pieces a search finds.",
    "search": "A search scores chunks by meaning and by words. Those over minScore, best first, are recalled: given to "
    "the agent. Below the line are those that were not, and why.",
    "index": "The index is a copy made for searching. It can be deleted at any time; the notes are the truth.",
    "reader": "The note as it is on disk.",
    "inbox": "What in the notes needs attention, the most urgent first. You see a change as a difference before "
    f"it is made, and {key_of('undo')} undoes it. Keeping or putting off changes no note. Secrets are masked here.",
    "compare": "What OpenClaw's own index holds of the notes on disk. memory-tui reads it and never writes it: "
    "run OpenClaw itself to bring it up to date.",
    "recalls": "What agents asked and how well it was answered, with the best score that went out. "
    f"{key_of('show poor')} shows the poor ones alone, {key_of('compare')} asks one again over the notes as they are.",
    "trust": "OpenClaw 2026.9 keeps the hash of each memory file after its own last write. A file that another program "
    "edited becomes untrusted at the agent's next write: it is not put into the prompt, triggers no recall and is not "
    "promoted. Once you approve it, edits made here move the hash along, so that the file stays the agent's.",
    "repair": "The whole note as it would go into the agent's prompt again. Read it, press enter and type its name; "
    f"{key_of('undo')} undoes it.",
    "write": "The values that would be written and where, then the difference line by line. Comments stay, a backup is "
    "kept, and a file that somebody changed meanwhile is left alone.",
    "knob_search": "One half of your judged queries is searched for better knobs; the other half tests them. A gain "
    "that may be chance is no evidence.",
    "side_by_side": "Two rankings of the same evidence, aligned by chunk. A side is a profile, the knobs as they are, "
    "or the baseline; a chunk that one side loses shows the reason there.",
    "saved_queries": "Your saved queries with their scores: under the baseline, and with the current knobs. "
    "nDCG, recall and MRR are best at 1; noise counts the hits without a correct line, best at 0. Broke: a "
    "correct line is no longer recalled.",
    "whynot": "What became of one line: the first gate that stopped it, its arithmetic, the smallest turn of each knob "
    "that recalls it with what else that brings in and pushes out, and words to add to the query.",
}


class Pages(VerticalScroll):
    """The text of the help; its frame says when there is more below."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Another part is in sight."""
        super().watch_scroll_y(old_value, new_value)
        self.retitle()

    def on_resize(self) -> None:
        """More or less is in sight."""
        self.call_after_refresh(self.retitle)

    def retitle(self) -> None:
        """Say in the frame how much is below."""
        below = int(self.max_scroll_y - self.scroll_offset.y)
        more = f"▼ {plural(below, 'line')} below: j, ctrl+d    " if below > 0 else ""
        self.border_subtitle = f"{more}esc closes"


INDENT = 20
"""Cells before what a key or sign means, on every line of it."""


def _entry(sign: str, meaning: str, width: int) -> Iterator[Content]:
    """A key or sign, and beside it what it means."""
    for at, line in enumerate(wrapped(meaning, width - INDENT)):
        yield Content.assemble((f"  {'' if at else sign:<{INDENT - 3}} ", "bold"), line.rstrip())


def written(places: Sequence[str], width: int) -> Iterator[Content]:
    """The help for `places`, nearest first, as lines of `width` cells at most."""
    for place in places:
        if place in WORDS_OF:
            yield from (Content(line.rstrip()) for line in wrapped(WORDS_OF[place], width))
            yield Content("")
    for place in places:
        actions = [action for action in ACTIONS if action.where == place and _keys(action)]
        if actions:
            yield Content.styled(PLACES[place], "bold $key")
        for action in actions:
            yield from _entry(_keys(action), action.help, width)
        if actions:
            yield Content("")
    for place in places:
        if place in SIGNS_OF:
            yield Content.styled("Signs", "bold $key")
            for sign, meaning in SIGNS_OF[place]:
                yield from _entry(sign, meaning, width)
            yield Content("")


def _keys(action: Action) -> str:
    """The keys of `action` where it is done, as people write them."""
    return " ".join(map(shown, keys_at(action)))


def matching(letters: str, width: int) -> Iterator[Content]:
    """The keys of every view that hold each word of `letters`, in their help, meaning or place."""
    target = letters.lower().split()
    for action in ACTIONS:
        if not _keys(action):
            continue
        place = PLACES[action.where]
        rest = f"{_keys(action)} {action.help} {MEANINGS[action.meaning].words} {place} {action.also}".lower()
        if all(word in rest for word in target):
            yield from _entry(_keys(action), f"{action.help}  [{place}]", width)


class Words(Widget):
    """The help for some places, written for the width that there is; while letters are typed, every key with them."""

    def __init__(self, places: Sequence[str]) -> None:
        super().__init__()
        self._places = places
        self._letters = ""

    def show(self, letters: str) -> None:
        """Show what holds `letters`, in every view; without any the help for the places."""
        self._letters = letters.strip()
        self.refresh(layout=True)

    def _lines(self, width: int) -> list[Content]:
        if not self._letters:
            return list(written(self._places, width))
        return list(matching(self._letters, width)) or [Content(f"No key has “{self._letters}”.")]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as it takes."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        """All of it."""
        return Content("\n").join(self._lines(self.content_size.width))


GENERAL = ("everywhere", "list", "notes")
"""Places whose keys work in most panes: help finds them, and does not repeat them in each."""


class Help(Dialog[None]):
    """Scrolls when it is longer than the screen; f finds a key of any view; esc, q and ? close it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(f"escape,enter,q,{bound('help')}", "close", "Close"),
        Binding(bound("find", "ask"), "find", "Find"),
        Binding("j,down", "scroll(1)", "Down"),
        Binding("k,up", "scroll(-1)", "Up"),
        Binding("ctrl+d,pagedown,space", "scroll(10)", "Page down"),
        Binding("ctrl+u,pageup", "scroll(-10)", "Page up"),
    ]

    def __init__(self, places: Sequence[str]) -> None:
        super().__init__()
        self._places = places

    @property
    def hints(self) -> Sequence[tuple[str, str]]:
        """Find, scroll, close."""
        return (key_of("find"), "Find"), ("j", "Down"), ("k", "Up"), ("esc", "Close")

    def compose(self) -> ComposeResult:
        """A box to find keys by words, and the text."""
        with Pages(id="help") as box:
            box.border_title = "Help"
            yield Box(placeholder=f"{key_of('find')} finds a key of any view by words", id="find-key")
            yield Words([place for place in self._places if place not in GENERAL])

    def on_mount(self) -> None:
        """Keys scroll until somebody types."""
        self.query_one(Pages).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one(Words).show(event.value)
        self.call_after_refresh(self.query_one(Pages).retitle)

    def action_find(self) -> None:
        """Find keys by words."""
        self.query_one(Box).focus()

    def action_close(self) -> None:
        """From the box to the text, then close."""
        box = self.query_one(Box)
        if box.value:
            box.value = ""
            self.query_one(Pages).focus()
        else:
            self.dismiss()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(Pages).scroll_relative(y=lines, animate=False)
