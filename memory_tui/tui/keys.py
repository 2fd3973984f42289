"""Every key of the app: what it does, where, and how a person changes it in keys.toml."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import Keys, format_key
from textual.widgets import Footer

from memory_tui.errors import ConfigError


class Key(NamedTuple):
    """A key: `id` is `group.name`, `keys` are names of Textual's, `action` is called where the key is bound.

    With `hint` the footer shows it.
    """

    id: str
    keys: str
    action: str
    words: str
    hint: bool = False


TABLE: tuple[Key, ...] = (
    Key("app.notes", "1", "view('notes')", "Notes"),
    Key("app.search", "2", "view('search')", "Search"),
    Key("app.status", "3", "view('status')", "Status"),
    Key("app.inbox", "4", "view('inbox')", "Inbox"),
    Key("app.history", "5", "view('history')", "History"),
    Key("app.agents", "6", "view('agents')", "Agents"),
    Key("app.ask", "slash", "ask", "Ask"),
    Key("app.index", "i", "app.index", "Index now"),
    Key("app.undo", "u", "undo", "Take back"),
    Key("app.palette", "colon", "palette", "Command", hint=True),
    Key("app.help", "question_mark", "help", "Help", hint=True),
    Key("app.quit", "q", "end", "Quit", hint=True),
    Key("list.down", "j,down", "cursor_down", "Next"),
    Key("list.up", "k,up", "cursor_up", "Previous"),
    Key("list.open", "enter", "select", "Open", hint=True),
    Key("note.copy", "y", "copy(True)", "Copy", hint=True),
    Key("note.cite", "Y", "copy(False)", "Copy the citation"),
    Key("note.edit", "e", "edit", "Edit", hint=True),
    Key("note.editor", "E", "editor", "Edit in your editor"),
    Key("note.rendered", "v", "rendered", "Rendered"),
    Key("note.mark", "space", "mark", "Mark the line"),
    Key("note.promote", "p", "promote", "Promote", hint=True),
    Key("note.overtake", "o", "overtake", "A newer line overtakes this"),
    Key("note.delete", "x", "delete", "Delete"),
    Key("note.links", "b", "links", "What links here"),
    Key("note.history", "h", "history", "What changed here"),
    Key("notes.add", "a", "add", "Add to today's log"),
    Key("notes.new", "n", "new", "New note"),
    Key("notes.rename", "R", "rename", "Rename"),
    Key("notes.filter", "f", "filter", "Filter"),
    Key("search.sum", "s", "sum", "Sum"),
    Key("search.miss", "right_square_bracket", "miss", "Why not", hint=True),
    Key("search.turn", "t", "turn", "Turn the ranking", hint=True),
    Key("search.compare", "c", "compare", "Compare"),
    Key("search.judge", "m", "judge", "Mark right or wrong"),
    Key("search.line", "W", "line", "Ask about any line"),
    Key("search.saved", "S", "saved", "Saved questions"),
    Key("knob.less", "left", "step(-1)", "Less", hint=True),
    Key("knob.more", "right", "step(1)", "More", hint=True),
    Key("change.do", "d", "do", "Fix it", hint=True),
    Key("change.keep", "K", "keep", "Keep as it is", hint=True),
    Key("change.later", "z", "later", "Later"),
    Key("history.restore", "r", "restore", "Restore", hint=True),
    Key("text.save", "ctrl+s", "save", "Save", hint=True),
    Key("text.back", "escape", "back", "Back", hint=True),
)
BY_ID = {key.id: key for key in TABLE}


def bindings(*names: str) -> list[BindingType]:
    """Return the bindings of some groups (`note`) or single keys (`note.copy`), in the order given."""
    rows = [key for name in names for key in TABLE if key.id == name or key.id.startswith(f"{name}.")]
    return [Binding(key.keys, key.action, key.words, show=key.hint, id=key.id) for key in rows]


def named(words: str, *names: str, action: str = "") -> list[BindingType]:
    """Return `bindings(*names)` with `words` in the footer, which hides them where that is empty.

    An `action` is called in the place of theirs.
    """
    made = [each for each in bindings(*names) if isinstance(each, Binding)]
    return [replace(b, action=action or b.action, description=words or b.description, show=bool(words)) for b in made]


def by_state(name: str, action: str, *words: str) -> list[BindingType]:
    """Return a binding of the key `name` for each of the `words`, which is also the parameter of its `action`.

    The widget's `check_action` lets through the word that holds at the moment, so that the footer shows it.
    """
    return [each for word in words for each in named(word, name, action=f"{action}('{word}')")]


def read_keymap(path: Path) -> Mapping[str, str]:
    """Return what `path` puts on other keys, by id; nothing where there is no such file. Raises ConfigError.

    Textual takes an unknown id or an impossible key in silence, and of two ids on one key the later one.
    """
    if not path.exists():
        return {}
    # Few have the file, and the first frame waits for what reads it.
    import tomllib

    try:
        chosen = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        next_step = "Correct it; every key works as it came until then."
        raise ConfigError(f"{path} cannot be read: {error}.", next_step) from None
    for id_, keys in chosen.items():
        if id_ not in BY_ID:
            raise ConfigError(f"{path} names {id_}, which is no key of the app.", "memory-tui help keys lists the ids.")
        if not isinstance(keys, str) or not all(map(_exists, keys.split(","))):
            raise ConfigError(f"{path} puts {id_} on {keys}, which is no key.", 'Write it as "x", "ctrl+x" or "f2".')
    # Two keys may share a name as they come, being bound in different places; one that a person chose may not.
    by_key: dict[str, str] = {}
    for key in TABLE:
        for name in chosen.get(key.id, key.keys).split(","):
            holder = by_key.setdefault(format_key(name.strip()), key.id)
            if holder != key.id and (key.id in chosen or holder in chosen):
                raise ConfigError(f"{path} puts both {holder} and {key.id} on {name}.", "Give one of them another key.")
    return chosen


_NAMED = {key.value for key in Keys}


def _exists(name: str) -> bool:
    """Return whether `name` is a key of Textual's, alone or with ctrl, alt or shift."""
    *modifiers, last = name.strip().split("+")
    # `format_key` turns the name of a character, as `right_square_bracket`, into it; other names stay long.
    return (len(last) == 1 or last in _NAMED or len(format_key(last)) == 1) and {*modifiers} <= {"ctrl", "alt", "shift"}


class Hints(Footer):
    """The keys in the last line; a subclass because Textual makes them anew for the same keys, and behind a dialog."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)
        self.keys: list[tuple[str, str]] = []

    async def recompose(self) -> None:
        """Make the keys anew where they changed; only for the screen in front, as one that comes there does so then."""
        if self.is_attached and self.screen.is_active:
            keys = [(key.key, key.description) for _, key, *_ in self.screen.active_bindings.values() if key.show]
            if keys != self.keys:
                self.keys = keys
                await super().recompose()
