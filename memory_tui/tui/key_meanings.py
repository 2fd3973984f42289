"""Meanings of keys: one a key, the same in every view; keys.toml changes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from memory_tui.sanitize import one_line

_SHOWN = {"escape": "esc", "pagedown": "pgdn", "pageup": "pgup"}


def shown(key: str) -> str:
    """A key as people write it."""
    return _SHOWN.get(key, key)


class Meaning(Struct, frozen=True):
    """What `keys` mean wherever they work. A key of two letters is a prefix (see PREFIXES) with a second letter."""

    keys: tuple[str, ...]
    words: str


PREFIXES: Mapping[str, str] = MappingProxyType({"g": "go to", "z": "show"})
"""Keys that wait for a second letter."""


def is_sequence(key: str) -> bool:
    """Whether a key is a prefix with a second letter."""
    return len(key) == 2 and key[0] in PREFIXES


def is_letter(key: str) -> bool:
    """Whether a key is text in a text box."""
    return len(key) == 1 or is_sequence(key)


_MEANINGS: dict[str, Meaning] = {
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
    "narrower": Meaning(("<",), "this pane narrower"),
    "wider": Meaning((">",), "this pane wider; views remember it"),
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
    "next match": Meaning(("n",), "next match; in the calendar the day with the most"),
    "previous match": Meaning(("N",), "previous match"),
    "one before": Meaning(("[",), "one before: day, stage, month"),
    "one after": Meaning(("]",), "one after: day, stage, month"),
    "previous chunk": Meaning(("{",), "previous chunk"),
    "next chunk": Meaning(("}",), "next chunk"),
    # Notes.
    "open note": Meaning(("o",), "open a note by a few letters"),
    "edit": Meaning(("e", "i"), "edit here: the note at this line, an entry; begins a log that is missing"),
    "editor": Meaning(("E",), "open the note in your own editor at this line"),
    "promote": Meaning(("p",), "promote to MEMORY.md"),
    "move": Meaning(("m",), "move lines or a note; merge a twin"),
    "move other": Meaning(("M",), "merge the other way round: the twin goes"),
    "remove": Meaning(("d",), "take away: lines or a note to the trash, a saved query, an approval, a connection"),
    "mark range": Meaning(("V",), "mark lines from here to where the cursor goes"),
    "cite": Meaning(("y",), "copy the citation"),
    "copy": Meaning(("Y",), "copy as: text with citation, citation, Markdown, JSON, command"),
    "undo": Meaning(("u",), "undo the last step of this view"),
    "redo": Meaning(("ctrl+r",), "redo it"),
    "save": Meaning(("ctrl+s",), "save what this pane holds: note, query, knobs (shows the difference first)"),
    "find text": Meaning(("ctrl+f",), "find text while writing, then the next place"),
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
    "go history": Meaning(("gh",), "history of the note"),
    "go doctor": Meaning(("gd",), "doctor"),
    "go providers": Meaning(("gp",), "providers"),
    "go tables": Meaning(("gb",), "tables and files of the index"),
    "go flush": Meaning(("gf",), "memory flush of the sessions"),
    "go trust": Meaning(("gl",), "OpenClaw's ledger: which notes it trusts"),
    "go queries": Meaning(("gq",), "saved queries"),
    "go memories": Meaning(("gm",), "long-term memories in LanceDB"),
    "go recalls": Meaning(("gr",), "the log of what agents asked"),
    # Show.
    "show layer": Meaning(("zl",), "the next layer of the calendar"),
    "show all": Meaning(("ze",), "everything: what was decided, files that agree"),
    "show better": Meaning(("zs",), "a search for better settings"),
    "show poor": Meaning(("zu",), "agents' questions that were answered poorly"),
    "show record": Meaning(("zr",), "the full record, then JSON"),
    "show theme": Meaning(("zt",), "themes"),
}
MEANINGS: Mapping[str, Meaning] = MappingProxyType(_MEANINGS)
"""Name -> keys, meaning. Bindings, hints, help, pop-ups, sentences and the manual are made from this."""


ALWAYS: Mapping[str, str] = MappingProxyType(
    {"do": "enter", "back": "escape", "next pane": "tab", "previous pane": "shift+tab"}
)
"""Meaning -> the key that it keeps, because boxes and dialogs have it too."""
WHILE_TYPING = ("quit", "save", "find text", "up", "down")
"""Meanings that are wanted where letters are text: one of their keys is no letter."""
_NAMED = (
    "space|enter|escape|tab|backspace|delete|insert|home|end|pageup|pagedown|up|down|left|right"
    "|f(?:[1-9]|1[0-9]|2[0-4])"
)
_KEY = re.compile(rf"(?:ctrl\+|shift\+|ctrl\+shift\+)?(?:{_NAMED})|ctrl\+[a-z]|ctrl\+shift\+[a-z]")
_WRITTEN = {"esc": "escape", "pgdn": "pagedown", "pgup": "pageup", " ": "space"}
_TERMINAL: Mapping[str, str] = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+j": "enter",
    "ctrl+h": "backspace",
    "ctrl+c": "the signal that interrupts",
    "ctrl+b": "the prefix of tmux",
}
"""Keys that do not arrive as themselves -> what terminals take them for."""
MOST_BYTES = 100_000


def use(keys: Mapping[str, tuple[str, ...]]) -> None:
    """Give meanings other keys: name -> keys.

    Before the views are imported, because their bindings are made then.
    """
    for name, chosen in keys.items():
        _MEANINGS[name] = replace(_MEANINGS[name], keys=chosen)


def key_of(name: str) -> str:
    """The first key of the meaning called `name`, as people write it, for a sentence."""
    return shown(MEANINGS[name].keys[0])


def bound(*names: str) -> str:
    """Every key of the meanings called `names`, as Textual's bindings take them."""
    return ",".join(key.replace(",", "comma") for name in names for key in MEANINGS[name].keys if not is_sequence(key))


def load_keys(path: Path) -> str:
    """Use the keys of the file at `path`, before the views are imported.

    Returns why it is not used, as sentences; then every key is as usual. A file that is not there says nothing.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _unused(path, [f"It cannot be read: {one_line(error.strerror or str(error))}."])
    if len(data) > MOST_BYTES:
        return _unused(path, [f"It has more than {MOST_BYTES:,} bytes."])
    import tomllib

    try:
        args = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return _unused(path, [f"It is not TOML: {one_line(str(error), 120)}."])
    keys, faults = keys_given(args)
    if faults:
        return _unused(path, faults)
    use(keys)
    return ""


def _unused(path: Path, faults: list[str]) -> str:
    more = f" {len(faults) - 1} more {'fault' if len(faults) == 2 else 'faults'}." if len(faults) > 1 else ""
    return f"{one_line(str(path))} is not used, so every key is as usual. {faults[0]}{more}"


def keys_given(given: Mapping[str, object]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The keys by meaning that a file with the values `given` asks for, and what is wrong with it, as sentences."""
    reply: dict[str, tuple[str, ...]] = {}
    faults: list[str] = []
    for name, value in given.items():
        if name not in MEANINGS:
            faults.append(_unknown(name))
            continue
        listed = value if isinstance(value, list) else [value]
        written = [key for key in listed if isinstance(key, str)]
        if not written or len(written) < len(listed):
            faults.append(f'"{name}" takes a key or a list of keys, such as "U" or ["U", "f5"].')
            continue
        keys = tuple(dict.fromkeys(_WRITTEN.get(key, key) for key in written))
        faults += [f'"{name}": {why}' for key in keys if (why := _refusal(key))]
        if name in ALWAYS and ALWAYS[name] not in keys:
            faults.append(f'"{name}" keeps {shown(ALWAYS[name])}, which boxes and dialogs have too: add it.')
        if name in WHILE_TYPING and all(is_letter(key) for key in keys):
            faults.append(f'"{name}" needs a key that is no letter, because it is wanted while typing.')
        reply[name] = keys
    return reply, faults + _conflicts(reply)


def _unknown(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name.lower(), MEANINGS, n=1, cutoff=0.6)
    hint = f'Did you mean "{near[0]}"?' if near else "memory-tui help keys lists the names."
    return f'There is no meaning called "{one_line(name, 40)}". {hint}'


def _refusal(key: str) -> str:
    """Why `key` cannot be a key, empty where it can."""
    if key in _TERMINAL:
        return f"{key} does not arrive: terminals take it for {_TERMINAL[key]}."
    if len(key) == 1 and key.isprintable():
        return f"{key} waits for a second letter, so it is no key of its own." if key in PREFIXES else ""
    if len(key) == 2 and key[0] in PREFIXES and key[1].isprintable() and key[1] != " ":
        return ""
    if _KEY.fullmatch(key):
        return ""
    return (
        f"“{one_line(key, 20)}” is no key. Keys are one letter or sign, ctrl+x, f5, "
        f"or {' or '.join(PREFIXES)} before a letter."
    )


def _conflicts(found: Mapping[str, tuple[str, ...]]) -> list[str]:
    owner: dict[str, str] = {}
    faults = []
    for name in MEANINGS:
        for key in found.get(name, MEANINGS[name].keys):
            if key in owner:
                faults.append(
                    f'{shown(key)} would mean both "{owner[key]}" ({MEANINGS[owner[key]].words}) and "{name}" '
                    f"({MEANINGS[name].words}). Give one of them another key."
                )
            owner.setdefault(key, name)
    return faults


def letters_markdown() -> str:
    """The manual's table of keys by meaning."""
    rows = [
        f"| {' '.join(f'`{shown(key)}`' for key in meaning.keys)} | {meaning.words} | {name} |"
        for name, meaning in MEANINGS.items()
    ]
    return "\n".join(["| Keys | Meaning in every view | Name in keys.toml |", "|---|---|---|", *rows])
