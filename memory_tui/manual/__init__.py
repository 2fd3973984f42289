"""The manual: one Markdown file a topic, printed by `memory-tui help TOPIC`."""

from __future__ import annotations

from importlib.resources import files

from memory_tui.errors import SettingError


def topics() -> dict[str, str]:
    """Return name -> title of every page, in the order of a reader's needs."""
    return {name: text(name).partition("\n")[0].removeprefix("# ") for name in _ORDER}


_ORDER = (
    "start",
    "notes",
    "search",
    "index",
    "providers",
    "profiles",
    "configuration",
    "agents",
    "memories",
    "shared",
    "openclaw",
    "commands",
    "keys",
    "library",
)


def text(topic: str) -> str:
    """Return the page as Markdown. Raises SettingError for a topic that has no page."""
    if topic not in _ORDER:
        raise SettingError(f"The manual has no page {topic!r}.", f"Pages: {', '.join(_ORDER)}.")
    return files(__name__).joinpath(f"{topic}.md").read_text("utf-8")
