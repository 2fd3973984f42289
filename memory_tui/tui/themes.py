"""Colours: themes of Textual's; the chosen one is kept for the next start."""

import os

from textual.theme import BUILTIN_THEMES

from memory_tui import state_db
from memory_tui.errors import StateUnavailable

DARK, LIGHT, PLAIN = "textual-dark", "textual-light", "ansi-dark"
_CHOSEN = state_db.Table("chosen_theme")
_SCOPE, _KEY = "screen", "theme"


def keep(name: str) -> None:
    """Write down that each start has this theme. May raise StateUnavailable."""
    _CHOSEN.of(_SCOPE).put(_KEY, name)


def first() -> str:
    """Return the theme to start with: the one without colours, that of TEXTUAL_THEME, the chosen one, the ground's.

    COLORFGBG says what the ground of the terminal is: 7 and 15 are light.
    """
    if "NO_COLOR" in os.environ:
        return PLAIN
    try:
        chosen = _CHOSEN.of(_SCOPE).read().get(_KEY, "")
    except StateUnavailable:
        # Nothing can be said before there is a screen; who chooses a theme there hears of it.
        chosen = ""
    # The last of its numbers, separated by semicolons, is the ground.
    light = os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
    # TEXTUAL_THEME may list several; the first that there is goes.
    wishes = [*map(str.strip, os.environ.get("TEXTUAL_THEME", "").split(",")), chosen]
    return next((name for name in wishes if name in BUILTIN_THEMES), LIGHT if light else DARK)
