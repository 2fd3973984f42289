"""The colours of a theme are readable on every background. The terminal is asked for its own background."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from textual.color import Color
from textual.theme import Theme

from memory_tui import state_db
from memory_tui.errors import StateUnavailable

if TYPE_CHECKING:
    from textual.events import Key

DARK = Theme(
    name="memory-dark",
    dark=True,
    primary="#6cb6ff",
    secondary="#8b95a7",
    accent="#f0b35a",
    warning="#f0b35a",
    error="#ff7b72",
    success="#6bd08b",
    foreground="#d7dce4",
    background="#12151b",
    surface="#12151b",
    panel="#1d222c",
    boost="#262d3a",
    variables={
        "border": "#6cb6ff",
        "border-blurred": "#39424f",
        "block-cursor-background": "#2a4365",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-blurred-background": "#232a36",
        "footer-key-foreground": "#6cb6ff",
        "input-selection-background": "#2a4365",
        "scrollbar": "#39424f",
        "scrollbar-hover": "#56637a",
        "scrollbar-active": "#6cb6ff",
        "scrollbar-background": "#12151b",
        "scrollbar-background-hover": "#12151b",
        "scrollbar-background-active": "#12151b",
        "scrollbar-corner-color": "#12151b",
    },
)

LIGHT = Theme(
    name="memory-light",
    dark=False,
    primary="#0b61b8",
    secondary="#5a6472",
    accent="#9a5b00",
    warning="#9a5b00",
    error="#b3261e",
    success="#1a7f37",
    foreground="#1c2128",
    background="#fbfbf9",
    surface="#fbfbf9",
    panel="#ecebe6",
    boost="#e0dfd9",
    variables={
        "border": "#0b61b8",
        "border-blurred": "#c3c5c9",
        "block-cursor-background": "#cfe3fa",
        "block-cursor-foreground": "#10151c",
        "block-cursor-blurred-background": "#e6ebf1",
        "footer-key-foreground": "#0b61b8",
        "input-selection-background": "#cfe3fa",
        "scrollbar": "#c3c5c9",
        "scrollbar-hover": "#9aa1aa",
        "scrollbar-active": "#0b61b8",
        "scrollbar-background": "#fbfbf9",
        "scrollbar-background-hover": "#fbfbf9",
        "scrollbar-background-active": "#fbfbf9",
        "scrollbar-corner-color": "#fbfbf9",
    },
)

THEMES = {theme.name: theme for theme in (DARK, LIGHT)}


def environment_theme() -> str:
    """The theme that the environment asks for: plain terminal colours under NO_COLOR, else what TEXTUAL_THEME names."""
    if "NO_COLOR" in os.environ:
        return "ansi-dark"
    query = [name.strip() for name in os.environ.get("TEXTUAL_THEME", "").split(",")]
    return next((name for name in query if _is_theme(name)), "")


def asked_theme() -> str:
    """The theme that somebody chose: in the environment, else in the app before."""
    return environment_theme() or kept_theme()


def _is_theme(name: object) -> bool:
    from textual.theme import BUILTIN_THEMES

    return isinstance(name, str) and (name in THEMES or name in BUILTIN_THEMES)


_CHOSEN = state_db.Table("chosen_theme")
_SCOPE, _THEME = "screen", "theme"


def keep_theme(name: str) -> str:
    """Write down that each start has this theme, and say so; for worker threads. May raise a state error."""
    _CHOSEN.of(_SCOPE).put(_THEME, name)
    return f"{name}; the next start has it too."


def kept_theme() -> str:
    """The theme that was chosen in the app before; empty where none was, or where that cannot be read."""
    try:
        name = _CHOSEN.of(_SCOPE).read().get(_THEME, "")
    except StateUnavailable:
        # Nothing can be said before there is a screen; what is kept there later says why it cannot be.
        return ""
    return name if _is_theme(name) else ""


def first_theme(answer: str = "") -> str:
    """The theme to start with: the chosen one, else ours for the ground that the terminal has.

    The ground is what the terminal answers (see ask_ground), else what COLORFGBG says: 7 and 15 are light.
    """
    ground = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return asked_theme() or theme_of(answer) or (LIGHT.name if ground in ("7", "15") else DARK.name)


_PART = "([0-9a-f]{1,4})"
_GROUND = re.compile(rf"\]11;rgba?:{_PART}/{_PART}/{_PART}(?:/[0-9a-f]{{1,4}})?(?:\x1b?\\|\x07)", re.IGNORECASE)
_BEGUN = re.compile(r"\]11;rgba?:[0-9a-f/]{0,24}", re.IGNORECASE)
ANSWER_SECONDS = 0.05
"""How long a start waits for the terminal to say what its ground is."""
LATE_SECONDS = 5.0
"""For how long after the start an answer may still come, over a slow line."""


def theme_of(answer: str) -> str:
    """Our theme for the ground in a terminal's `answer` to OSC 11; empty where it holds none."""
    reply = _GROUND.search(answer)
    if reply is None:
        return ""
    parts = [int(part, 16) / (16 ** len(part) - 1) * 255 for part in reply.groups()]
    ground = Color(*map(round, parts))
    dark = contrast(ground, Color(255, 255, 255)) >= contrast(ground, Color(0, 0, 0))
    return DARK.name if dark else LIGHT.name


def ask_ground(terminal: str = "/dev/tty", seconds: float = ANSWER_SECONDS) -> tuple[str, str]:
    """Ask the terminal for the colour of its ground (OSC 11), before Textual takes it.

    Returns its answer, empty where none came in `seconds`, and what somebody typed meanwhile. A terminal that cannot
    be asked so is left alone.
    """
    try:
        import termios
    except ImportError:
        return "", ""
    try:
        line = os.open(terminal, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return "", ""
    try:
        before = termios.tcgetattr(line)
        silent = [*before[:3], before[3] & ~(termios.ECHO | termios.ICANON), *before[4:]]
        termios.tcsetattr(line, termios.TCSANOW, silent)
        try:
            os.write(line, b"\x1b]11;?\x1b\\")
            read = _read(line, seconds)
        finally:
            termios.tcsetattr(line, termios.TCSANOW, before)
    except (termios.error, OSError):
        return "", ""
    finally:
        os.close(line)
    reply = _GROUND.search(read)
    if reply is None:
        return "", read
    return reply[0], read[: reply.start()].removesuffix("\x1b") + read[reply.end() :]


def _read(line: int, seconds: float) -> str:
    """What the terminal sends within `seconds`, until that holds an answer."""
    read, end = "", time.monotonic() + seconds
    while _GROUND.search(read) is None and (left := end - time.monotonic()) > 0:
        if select.select([line], [], [], left)[0]:
            more = os.read(line, 1024)
            if not more:
                break
            read += more.decode("utf-8", "replace")
    return read


class LateAnswer:
    """Tells an answer that comes after the start from keys: Textual hands its letters on as if they were typed."""

    def __init__(self) -> None:
        self._text = ""
        self.held: list[Key] = []

    def take(self, key: Key) -> str | None:
        """Keep `key` if it may be a part of an answer; returns the answer when it is whole, None where it is none.

        Then every key in `held` was typed by somebody.
        """
        self.held.append(key)
        self._text += key.character or "\0"
        if _GROUND.search(self._text):
            self.held.clear()
            return self._text
        text = self._text.removeprefix("^")
        return "" if "]11;rgba:".startswith(text) or _BEGUN.fullmatch(text) else None

    def release(self) -> list[Key]:
        """The keys that were kept, which are no answer."""
        rest, self.held, self._text = self.held, [], ""
        return rest


READABLE, VISIBLE = 4.5, 3.0
"""Contrast of text, and of bars, points and rules (WCAG 2.2, 1.4.3 and 1.4.11)."""

TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "body": "foreground",
        "quiet": "quiet",
        "good": "success",
        "warn": "warning",
        "bad": "error",
        "mark": "accent",
        "match": "warning",
        "key": "primary",
    }
)
"""Role of text -> the colour of the theme that it is taken from."""
SHAPES: Mapping[str, str] = MappingProxyType(
    {"vector": "primary", "words": "warning", "added": "success", "faint": "faint", "rule": "faint"}
)
"""Role of bars, rules and what is off -> the colour of the theme that it is taken from."""
GROUNDS: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "selection": ("primary", 0.28),
        "selection-blurred": ("primary", 0.13),
        "cited": ("foreground", 0.07),
        "good-ground": ("success", 0.3),
        "warn-ground": ("warning", 0.3),
        "bad-ground": ("error", 0.3),
        "busy-ground": ("primary", 0.3),
    }
)
"""Ground -> the colour that is mixed into the background, and its share."""
UNDER_ROLES = ("background", "panel", "selection", "selection-blurred", "cited")
"""Grounds on which every role stands; the others carry `body` alone."""
STEPS = 50


def contrast(one: Color, other: Color) -> float:
    """The contrast ratio of two opaque colours, 1 to 21 (WCAG 2.2)."""
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: Color) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def pushed(colour: Color, grounds: Iterable[Color], ratio: float, *, dark: bool) -> Color:
    """`colour`, lighter on a dark theme and darker on a light one until it has `ratio` on all `grounds`."""
    under = list(grounds)
    for step in range(STEPS + 1):
        tried = colour.lighten(step / STEPS) if dark else colour.darken(step / STEPS)
        if all(contrast(tried, ground) >= ratio for ground in under):
            return tried
    return Color(255, 255, 255) if dark else Color(0, 0, 0)


def roles(theme: Theme, variables: Mapping[str, str]) -> dict[str, str]:
    """The grounds and roles of `theme`, whose own colours are `variables`, as CSS variables.

    A theme of the terminal's own sixteen colours keeps those: nobody knows what they are.
    """
    if theme.ansi:
        return {
            **dict.fromkeys((*TEXTS, *SHAPES), "ansi_default"),
            **dict.fromkeys(GROUNDS, "ansi_default"),
            **{"faint": "ansi_bright_black", "rule": "ansi_bright_black", "key": "ansi_blue", "vector": "ansi_blue"},
            **{"good": "ansi_green", "added": "ansi_green", "warn": "ansi_yellow", "words": "ansi_yellow"},
            **{"bad": "ansi_red", "mark": "ansi_magenta", "match": "ansi_yellow", "selection": "ansi_bright_black"},
        }
    base = Color(*Color.parse(variables["background"]).rgb)
    reply = {"background": base, "panel": base + Color.parse(variables["panel"])}
    new = {
        name: base + Color.parse(variables[name]) for name in ("foreground", "primary", "warning", "error", "success")
    }
    new["accent"] = base + Color.parse(variables.get("accent", variables["warning"]))
    new["quiet"] = base.blend(new["foreground"], 0.68)
    new["faint"] = base.blend(new["foreground"], 0.45)
    for name, (colour, share) in GROUNDS.items():
        reply[name] = base.blend(new[colour], share)
    under = [reply[name] for name in UNDER_ROLES]
    texts = {
        name: pushed(new[colour], reply.values() if name == "body" else under, READABLE, dark=theme.dark)
        for name, colour in TEXTS.items()
    }
    shapes = {name: pushed(new[colour], under, VISIBLE, dark=theme.dark) for name, colour in SHAPES.items()}
    return {name: colour.hex6 for name, colour in {**reply, **texts, **shapes}.items()}
