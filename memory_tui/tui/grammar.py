"""The grammar of keys: one meaning a key, the same in every view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_SHOWN = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup"}


def shown(key: str) -> str:
    """A key as people write it."""
    return _SHOWN.get(key, key)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What `keys` mean wherever they work. A key of two letters is a prefix (see PREFIXES) with a second letter."""

    keys: tuple[str, ...]
    words: str


PREFIXES: Mapping[str, str] = MappingProxyType({"g": "go to", "z": "show"})
"""Keys that wait for a second letter."""

MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {
        # Everywhere.
        "view 1": Meaning(("1",), "Notes"),
        "view 2": Meaning(("2",), "Search"),
        "view 3": Meaning(("3",), "Index"),
        "view 4": Meaning(("4",), "Inbox"),
        "view 5": Meaning(("5",), "Map"),
        "view 6": Meaning(("6",), "Agents"),
        "do": Meaning(("enter",), "do what the row says: open, follow, fold, ask, apply; notes change after a preview"),
        "back": Meaning(("escape",), "close the innermost thing: box, filter, marks, zoom, view"),
        "leave": Meaning(("q",), "back, then quit"),
        "quit": Meaning(("ctrl+q",), "quit; asks where text is not saved"),
        "next pane": Meaning(("tab",), "next pane"),
        "previous pane": Meaning(("shift+tab",), "previous pane"),
        "jump": Meaning(("ctrl+o",), "label each pane with a letter, and go to one"),
        "ask": Meaning(("/",), "ask the memory"),
        "help": Meaning(("?", "f1"), "explain this pane"),
        "commands": Meaning((":", "ctrl+p"), "find any command by words"),
        "zoom": Meaning(("+",), "show one pane alone"),
        "unzoom": Meaning(("_",), "show all panes"),
        "return": Meaning(("-",), "back to where a link or a jump began"),
        "remember": Meaning(("a",), "remember a line in today's log"),
        "new note": Meaning(("A",), "begin a topic note"),
        "agent": Meaning(("@",), "go to another agent of the configuration"),
        "look again": Meaning(("r",), "look again: notes, checks, a provider"),
        "rebuild": Meaning(("R",), "rebuild the index (asks first)"),
        "pause": Meaning(("P",), "pause or resume what has the focus: indexing, event log"),
        "redraw": Meaning(("ctrl+l",), "draw the screen again"),
        "suspend": Meaning(("ctrl+z",), "put the app into the background"),
        # Rows.
        "mark": Meaning(("space",), "mark this row for what is done next"),
        "mark all": Meaning(("*",), "mark all rows of this kind"),
        "down": Meaning(("j", "down"), "next row"),
        "up": Meaning(("k", "up"), "previous row; in the query box an earlier query"),
        "first": Meaning(("gg", "home"), "first row"),
        "last": Meaning(("G", "end"), "last row"),
        "page down": Meaning(("ctrl+d", "pagedown"), "half a page down"),
        "page up": Meaning(("ctrl+u", "pageup"), "half a page up"),
        "less": Meaning(("h", "left"), "out, or a step less"),
        "more": Meaning(("l", "right"), "in, or a step more"),
        "less fine": Meaning(("H",), "a fine step less"),
        "more fine": Meaning(("L",), "a fine step more"),
        "scroll down": Meaning(("J",), "scroll the other pane"),
        "scroll up": Meaning(("K",), "scroll the other pane back"),
        "find": Meaning(("f",), "find in this pane: fewer rows, or a place in a text"),
        "next match": Meaning(("n",), "next match"),
        "previous match": Meaning(("N",), "previous match"),
        "one before": Meaning(("[",), "one before: day, stage, month"),
        "one after": Meaning(("]",), "one after: day, stage, month"),
        "previous chunk": Meaning(("{",), "previous chunk"),
        "next chunk": Meaning(("}",), "next chunk"),
        # Notes.
        "open note": Meaning(("o",), "open a note by a few letters"),
        "edit": Meaning(("e",), "open the note in your editor at this line"),
        "write": Meaning(("i",), "write here; begins a log that is missing"),
        "project": Meaning(("#",), "the project of an entry"),
        "promote": Meaning(("p",), "promote to MEMORY.md"),
        "move": Meaning(("m",), "move lines or a note; merge a twin"),
        "remove": Meaning(("d",), "take away: lines or a note to the trash, a saved query, an approval, a connection"),
        "mark range": Meaning(("V",), "mark lines from here to where the cursor goes"),
        "cite": Meaning(("y",), "copy the citation"),
        "copy": Meaning(("Y",), "copy the text with its citation"),
        "commit": Meaning(("C",), "commit the note to git"),
        "undo": Meaning(("u",), "undo the last step of this view"),
        "redo": Meaning(("ctrl+r",), "redo it"),
        "save": Meaning(("ctrl+s",), "save what this pane holds: note, query, knobs (shows the difference first)"),
        "watch": Meaning(("ctrl+t",), "watch a query while writing"),
        # Decisions.
        "later": Meaning(("s",), "ask again in 1, 7 or 30 days"),
        "never": Meaning(("x",), "keep it, and never ask again"),
        "judge": Meaning(("v",), "judge: right, helpful or wrong"),
        # Ranking.
        "why": Meaning(("w",), "why this row is recalled, or not"),
        "why line": Meaning(("W",), "why another line is not recalled"),
        "tune": Meaning(("t",), "turn the knobs"),
        "compare": Meaning(("c",), "compare with another: profile, OpenClaw's index, then and now"),
        "baseline": Meaning(("b",), "compare from here on, under a name"),
        "reset": Meaning(("0",), "this knob as opened"),
        "reset all": Meaning(("=",), "all knobs as opened"),
        # Go to.
        "go today": Meaning(("gt",), "today's note"),
        "go source": Meaning(("gs",), "the source lines of this row"),
        "go about": Meaning(("gi",), "links and facts of the note"),
        "go annotations": Meaning(("ga",), "triggers, importance and project of entries"),
        "go history": Meaning(("gh",), "history of the note"),
        "go doctor": Meaning(("gd",), "doctor"),
        "go providers": Meaning(("gp",), "providers"),
        "go tables": Meaning(("gb",), "tables and files of the index"),
        "go flush": Meaning(("gf",), "memory flush of the sessions"),
        "go trust": Meaning(("gl",), "OpenClaw's ledger: which notes it trusts"),
        "go queries": Meaning(("gq",), "saved queries"),
        "go memories": Meaning(("gm",), "long-term memories in LanceDB"),
        "go recalls": Meaning(("gr",), "what agents asked"),
        # Show.
        "show picture": Meaning(("zp",), "the next picture: calendar, plane; score against age"),
        "show layer": Meaning(("zl",), "the next layer of the calendar"),
        "show all": Meaning(("ze",), "everything: what was decided, files that agree"),
        "show dreaming": Meaning(("zd",), "what OpenClaw's dreaming promotes next"),
        "show fading": Meaning(("zf",), "hits that fade"),
        "show heat": Meaning(("zh",), "heat: what each word of a hit gives to its score"),
        "show noise": Meaning(("zn",), "noise of unrelated questions"),
        "show better": Meaning(("zs",), "a search for better settings"),
        "show qmd": Meaning(("zq",), "the answer of QMD beside that of the index"),
        "show injected": Meaning(("zi",), "what OpenClaw puts before its agent for a message"),
        "show record": Meaning(("zr",), "the full record, then JSON"),
        "show theme": Meaning(("zt",), "themes"),
    }
)
"""Name -> keys, meaning. Bindings, hints, help, pop-ups and the manual are made from this."""


def letters_markdown() -> str:
    """The manual's table of keys by meaning."""
    rows = [
        f"| {' '.join(f'`{shown(key)}`' for key in meaning.keys)} | {meaning.words} |" for meaning in MEANINGS.values()
    ]
    return "\n".join(["| Keys | Meaning in every view |", "|---|---|", *rows])
