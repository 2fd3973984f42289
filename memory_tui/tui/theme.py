"""Colours of our own, and which theme the app starts with."""

from __future__ import annotations

import os

from textual.theme import Theme

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


def first_theme() -> str:
    """The theme to start with: plain terminal colours under NO_COLOR, else what TEXTUAL_THEME names, else ours."""
    if "NO_COLOR" in os.environ:
        return "ansi-dark"
    from textual.theme import BUILTIN_THEMES

    asked = os.environ.get("TEXTUAL_THEME", "").split(",")
    known = [name.strip() for name in asked if name.strip() in BUILTIN_THEMES or name.strip() in THEMES]
    return known[0] if known else DARK.name


def greys(theme: Theme) -> dict[str, str]:
    """`quiet` for words that stand back and `faint` for rules and what is off, as plain colours."""
    if theme.ansi:
        return {"quiet": "ansi_default", "faint": "ansi_bright_black"}
    return {"quiet": "#97a1b2", "faint": "#697588"} if theme.dark else {"quiet": "#5a6472", "faint": "#868e98"}
