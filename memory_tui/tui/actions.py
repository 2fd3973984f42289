"""Every key once: bindings, key hints, help, palette and the README's key table are made from this table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Context:
    """What decides whether an action can be done now; the screen fills it in."""

    ready: bool = False
    read_only: bool = False
    can_suspend: bool = True
    note: bool = False
    """A note, or a place in one, is under the cursor."""
    answer: bool = False
    """There is a list of hits."""
    found: bool = False
    """Text was found in the note."""
    trail: bool = False
    """A link or a jump was followed."""
    undo: bool = False
    redo: bool = False
    tuned: bool = False
    flips: bool = False
    """It is known what would change the verdict on the hit in the why pane."""
    syncing: bool = False
    zoomed: bool = False
    agents: bool = False
    """The configuration has more than one agent."""


Refusal = Callable[[Context], str]
"""Why an action cannot be done now, as a sentence; empty when it can."""


def _always(context: Context) -> str:
    del context
    return ""


def _needs_engine(context: Context) -> str:
    return "" if context.ready else "The index is still being opened."


def _needs_note(context: Context) -> str:
    return "" if context.note else "There is no note under the cursor."


def _needs_found(context: Context) -> str:
    return "" if context.found else "Nothing was looked for; / in the reader looks for text."


def _needs_trail(context: Context) -> str:
    return "" if context.trail else "No link was followed, so there is no way back to go."


def _needs_answer(context: Context) -> str:
    return "" if context.answer else "There is no answer yet: press / and ask something."


def _edit(context: Context) -> str:
    if context.read_only:
        return "Opened with --read-only: notes are not edited."
    if not context.can_suspend:
        return "This terminal cannot be handed to an editor."
    return _needs_note(context)


def _undo(context: Context) -> str:
    return "" if context.undo else "No knob has been turned: nothing to undo."


def _apply(context: Context) -> str:
    return _needs_answer(context) or ("" if context.flips else "There is no change to apply: w shows what was found.")


def _redo(context: Context) -> str:
    return "" if context.redo else "Nothing was undone."


def _reset_all(context: Context) -> str:
    return "" if context.tuned else "Every knob is as the app was opened."


def _judge(context: Context) -> str:
    return _needs_answer(context) or _needs_note(context)


def _sync(context: Context) -> str:
    return "A sync is running already." if context.syncing else _needs_engine(context)


def _agent(context: Context) -> str:
    if not context.agents:
        return "The configuration lists no other agent."
    return _needs_engine(context)


def _unzoom(context: Context) -> str:
    return "" if context.zoomed else "No pane is enlarged; + enlarges this one."


def _suspend(context: Context) -> str:
    return "" if context.can_suspend else "This terminal cannot put programs into the background."


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that keys do: `where` names the screen or pane it belongs to, `hint` its word in the key hints.

    `hint` is empty for keys that help alone lists. `refuse` tells why not. `priority` keys work while typing too.
    """

    id: str
    keys: tuple[str, ...]
    where: str
    help: str
    hint: str = ""
    refuse: Refusal = _always
    priority: bool = False
    palette: bool = True

    @property
    def shown_keys(self) -> str:
        """The keys as people write them."""
        return " ".join(_SHOWN.get(key, key) for key in self.keys)


_SHOWN = {"escape": "esc", "enter": "enter", "pagedown": "pgdn", "pageup": "pgup"}

PLACES: Mapping[str, str] = MappingProxyType({
    "everywhere": "Everywhere",
    "list": "Every list",
    "notes": "With a note",
    "browse": "Browse (1)",
    "tree": "Files",
    "reader": "Reader",
    "reading": "Browse and reader",
    "search": "Search (2)",
    "query": "Query box",
    "filter": "Filter box",
    "find": "Find box",
    "about": "About the note",
    "results": "Hits",
    "why": "Why",
    "whynot": "Why not a line",
    "book": "Saved questions",
    "sides": "Side by side",
    "tune": "Tune",
    "index": "Index (3)",
    "compare": "OpenClaw's index",
})
"""Where an action can belong, and that place's title."""

ACTIONS: tuple[Action, ...] = (
    Action("help", ("?", "f1"), "everywhere", "what the keys and signs of this pane mean", "Help"),
    Action("ask", ("/",), "everywhere", "ask the memory: go to the query box", "Ask", _needs_engine),
    Action("browse", ("1",), "everywhere", "the notes by day, and a reader", ""),
    Action("search", ("2",), "everywhere", "ask, see why, tune", ""),
    Action("index", ("3",), "everywhere", "what is indexed, what is not, and what happened", ""),
    Action("commands", (":", "ctrl+p"), "everywhere", "find any command by its name", "Cmd", palette=False),
    Action("next_pane", ("tab",), "everywhere", "next pane", "", palette=False),
    Action("previous_pane", ("shift+tab",), "everywhere", "previous pane", palette=False),
    Action("zoom", ("+",), "everywhere", "enlarge this pane to the whole screen"),
    Action("unzoom", ("_",), "everywhere", "back to all panes", refuse=_unzoom),
    Action("jump", ("ctrl+o",), "everywhere", "show a letter on every pane, and go to the one you press",
           palette=False),
    Action("sync", ("r",), "everywhere", "look for changed files and index them", "Sync", _sync),
    Action("agent", ("@",), "everywhere", "go to another agent of the configuration: its notes, settings and index", "",
           _agent),
    Action("compare", (), "everywhere", "compare OpenClaw's own index with the notes on disk; it is only read", "",
           _needs_engine),
    Action("theme", (), "everywhere", "choose a theme: the colours, dark or light"),
    Action("redraw", ("ctrl+l",), "everywhere", "draw the screen again"),
    Action("suspend", ("ctrl+z",), "everywhere", "put the app into the background (fg brings it back)",
           refuse=_suspend),
    Action("back", ("escape",), "everywhere", "one step back", "Back", palette=False),
    Action("leave", ("q",), "everywhere", "one step back, then quit", "Back", palette=False),
    Action("leave_app", ("ctrl+q",), "everywhere", "quit at once", priority=True),

    Action("down", ("j", "down"), "list", "next row", palette=False),
    Action("up", ("k", "up"), "list", "previous row", palette=False),
    Action("top", ("g", "home"), "list", "first row", palette=False),
    Action("bottom", ("G", "end"), "list", "last row", palette=False),
    Action("page_down", ("ctrl+d", "pagedown"), "list", "half a page down", palette=False),
    Action("page_up", ("ctrl+u", "pageup"), "list", "half a page up", palette=False),

    Action("edit", ("e",), "notes", "open the note in $VISUAL or $EDITOR at this line", "Edit", _edit),
    Action("cite", ("y",), "notes", "copy the citation: path#Lfirst-Llast", "Cite", _needs_note),
    Action("copy", ("Y",), "notes", "copy the text with its citation", "", _needs_note),

    Action("open", ("enter",), "tree", "read this note, or fold this group", "Read", palette=False),
    Action("fold", ("h", "left"), "tree", "fold this group", palette=False),
    Action("unfold", ("l", "right"), "tree", "unfold this group", palette=False),
    Action("today", ("T",), "browse", "go to today's note, or the newest", "Today", _needs_engine),
    Action("older", ("[",), "browse", "the day before", "Older", _needs_engine),
    Action("newer", ("]",), "browse", "the day after", "Newer", _needs_engine),
    Action("filter", ("f",), "browse", "show only files whose name holds what you type", "Filter", _needs_engine),
    Action("scroll_down", ("J",), "tree", "scroll the reader without leaving the list", palette=False),
    Action("scroll_up", ("K",), "tree", "scroll the reader back", palette=False),

    Action("find", ("/",), "reader", "look for text in this note", "Find", _needs_note),
    Action("next_match", ("n",), "reader", "next match", "Next", _needs_found),
    Action("previous_match", ("N",), "reader", "previous match", "", _needs_found),
    Action("next_chunk", ("}",), "reader", "next chunk of the note", "Chunk", _needs_note),
    Action("previous_chunk", ("{",), "reader", "previous chunk of the note", "", _needs_note),
    Action("select", ("V",), "reader", "mark lines, from here to where the cursor goes", "Mark", _needs_note),
    Action("open", ("enter",), "reader", "follow the link in this line", "", _needs_note, palette=False),
    Action("pick", ("o",), "reading", "open a note by a few letters of its name", "Open", _needs_engine),
    Action("about", ("L",), "reading", "go to what is known of this note, and its links", "", _needs_note),
    Action("return", ("-",), "reading", "back to where a link or a jump was followed", "", _needs_trail),

    Action("open", ("enter",), "about", "follow this link", "Follow", palette=False),

    Action("to_text", ("enter", "down"), "find", "go to the match", "Text", palette=False),

    Action("to_results", ("enter", "down"), "query", "go to the hits", "Hits", palette=False),
    Action("earlier", ("up",), "query", "an earlier question", "Earlier", palette=False),

    Action("to_files", ("enter", "down"), "filter", "go to the files", "Files", palette=False),

    Action("open", ("enter",), "results", "read the note at the cited lines", "Read", _needs_note),
    Action("tune", ("t",), "search", "turn the knobs of the ranking", "Tune", _needs_answer),
    Action("why", ("w",), "search", "why this hit is recalled or not, and what would change that", "Why",
           _needs_answer),
    Action("apply", ("a",), "search", "turn the knob as the change under the cursor says (the nearest one)", "Apply",
           _apply),
    Action("line", ("o",), "search", "why not another line: name it as PATH:LINE", "Other line", _needs_answer),
    Action("vote", ("v",), "search", "judge this hit: right, helpful or wrong for the question", "Vote", _judge),
    Action("save", ("ctrl+s",), "search", "save the question in the notebook", "", _needs_answer),
    Action("book", ("B",), "search", "the saved questions with their scores; enter asks one", "", _needs_engine),
    Action("base", ("b",), "search", "compare with the knobs as they are now, under a name", "Base", _needs_answer),
    Action("scroll_down", ("J",), "results", "scroll the arithmetic without leaving the list", palette=False),
    Action("scroll_up", ("K",), "results", "scroll the arithmetic back", palette=False),
    Action("sides", ("c",), "search", "two profiles side by side on this question", "", _needs_answer),
    Action("next_stage", (">",), "search", "list what was lost at the next stage of the funnel; esc shows all", "",
           _needs_answer),
    Action("previous_stage", ("<",), "search", "list what was lost at the stage before", "", _needs_answer),
    Action("undo", ("u",), "search", "undo the last step: a knob, a change, the date or the baseline", "Undo", _undo),
    Action("redo", ("ctrl+r",), "search", "redo it", "", _redo),

    Action("deeper", ("enter",), "why", "the full record of this hit, then the raw JSON; esc goes back", "Deeper",
           _needs_answer),
    Action("apply", ("a",), "whynot", "turn the knob as the change under the cursor says", "Apply", _apply),
    Action("undo", ("u",), "whynot", "undo the last step", "Undo", _undo),
    Action("why_line", ("w",), "reader", "why this line is, or is not, recalled for the question on screen", "Why",
           _needs_note),

    Action("left_side", ("h", "left"), "sides", "put another ranking on the left", "Left"),
    Action("right_side", ("l", "right"), "sides", "put another ranking on the right", "Right"),
    Action("open", ("enter",), "sides", "read the note at the cited lines", "Read", _needs_note),

    Action("open", ("enter",), "book", "ask this question", "Ask", palette=False),
    Action("forget", ("d",), "book", "save this question no longer, after asking", "Forget"),

    Action("next_knob", ("j", "down"), "tune", "next knob", "Knob", palette=False),
    Action("previous_knob", ("k", "up"), "tune", "previous knob", palette=False),
    Action("less", ("h", "left"), "tune", "a step less", "Less", palette=False),
    Action("more", ("l", "right"), "tune", "a step more", "More", palette=False),
    Action("less_fine", ("H",), "tune", "a fine step less", palette=False),
    Action("more_fine", ("L",), "tune", "a fine step more", palette=False),
    Action("reset", ("0",), "tune", "this knob as the app was opened (other digits type a value)", "Reset",
           palette=False),
    Action("reset_all", ("=",), "tune", "all knobs as the app was opened", "All", _reset_all),

    Action("reindex", ("R",), "index", "index every note anew, after asking", "Reindex", _sync),
    Action("watch", ("P",), "index", "switch the watcher on or off", "Watcher", _needs_engine),
    Action("pause", ("p",), "index", "hold the event log still, or let it run", "Pause"),
    Action("compare", ("c",), "index", "compare OpenClaw's own index with the notes on disk", "Compare", _needs_engine,
           palette=False),

    Action("open", ("enter",), "compare", "read this note", "Read", palette=False),
    Action("agreeing", ("a",), "compare", "show or hide the files that agree", "All", _needs_engine),
    Action("compare", ("c",), "compare", "look again", "Again", _needs_engine, palette=False),
)


def find(name: str, where: Iterable[str]) -> Action:
    """The action called `name` in the first of the places `where` that has it; any place when none has."""
    same = [action for action in ACTIONS if action.id == name]
    for place in where:
        for action in same:
            if action.where == place:
                return action
    return same[0]


def bindings(where: str) -> list[Binding]:
    """The bindings of a screen or pane; all go through the app, which says why when something cannot be done."""
    return [
        Binding(key, f"app.do('{action.id}')", action.hint or action.help, show=False, priority=action.priority)
        for action in ACTIONS if action.where == where for key in action.keys
    ]


TYPING = frozenset({"query", "filter", "find"})
"""Places where letters are text."""

LAST = ("commands", "help", "leave", "back")
"""The key hints that come last, and stay when there is little room."""


def hints(where: Iterable[str]) -> list[tuple[str, Action]]:
    """The keys that are hinted at for these places with what they do, nearest first.

    While somebody types, letters are text: then only keys with names count, and esc stands in for q.
    """
    places = list(where)
    typing = bool(TYPING & set(places))
    found = []
    taken: set[str] = set()
    for place in places:
        here = [action for action in ACTIONS if action.where == place]
        for action in here:
            keys = [key for key in action.keys if (len(key) > 1 or not typing) and key not in taken]
            if action.hint and keys and (typing or action.id != "back"):
                found.append((_SHOWN.get(keys[0], keys[0]), action))
        taken |= {key for action in here for key in action.keys}
    return sorted(found, key=lambda pair: LAST.index(pair[1].id) if pair[1].id in LAST else -1)


def why_nothing(key: str, where: Iterable[str]) -> str:
    """Why `key` does nothing here, as a sentence that names the place where it does something."""
    places = set(where)
    for action in ACTIONS:
        if key in action.keys and action.where not in places:
            return f"{_SHOWN.get(key, key)} works in {PLACES[action.where]}: {action.help}."
    return f"{key} does nothing here. ? shows the keys of this pane."


def key_table_markdown() -> str:
    """The README's key table: one row per action, grouped by place."""
    lines = ["| Where | Keys | What they do |", "|---|---|---|"]
    for place, title in PLACES.items():
        for action in ACTIONS:
            if action.where == place and action.keys:
                keys = " ".join(f"`{_SHOWN.get(key, key)}`" for key in action.keys)
                lines.append(f"| {title} | {keys} | {action.help} |")
                title = ""
    return "\n".join(lines)
