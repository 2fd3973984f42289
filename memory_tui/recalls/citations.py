"""Whether an answer names its sources, and how."""

from __future__ import annotations

from typing import Literal

Mode = Literal["auto", "on", "off"]
MODES: tuple[Mode, ...] = ("auto", "on", "off")
Chat = Literal["direct", "group", "channel"]


def mode_of(value: object) -> Mode:
    """A configured value as a mode; anything else is auto."""
    return next((mode for mode in MODES if mode == value), "auto")


def chat(session_key: str) -> Chat:
    """What kind of chat a session key such as `agent:main:telegram:group:123` speaks of; direct when it does not."""
    head, _, rest = session_key.strip().partition(":")
    agent, _, name = rest.partition(":")
    if head.lower() != "agent" or not agent or not name:
        return "direct"
    tokens = name.lower().split(":")
    return "channel" if "channel" in tokens else "group" if "group" in tokens else "direct"


def included(mode: Mode, session_key: str = "") -> bool:
    """Whether hits carry a citation: always, never, or in direct chats only."""
    return mode == "on" or (mode == "auto" and chat(session_key) == "direct")


def citation(path: str, start: int, end: int) -> str:
    """`path#L3-L9`, or `path#L3` for one line."""
    return f"{path}#L{start}" if start == end else f"{path}#L{start}-L{end}"
