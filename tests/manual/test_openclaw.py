"""The page about OpenClaw is true: one table makes it, which knows every documented key and command."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from memory_tui import manual
from memory_tui.config import keys

FOLDER = Path(manual.__file__).parent
KEYS = "Keys of the configuration"


class Row(NamedTuple):
    """One documented thing: what became of it here, and how."""

    name: str
    state: str
    how: str


TABLE = {
    area["title"]: [Row(*row) for row in area["rows"]]
    for area in tomllib.loads((FOLDER / "openclaw.toml").read_text("utf-8"))["area"]
}
ROWS = [row for rows in TABLE.values() for row in rows]


def page() -> str:
    """The page that the table makes."""
    counts = [(state, sum(row.state == state for row in ROWS)) for state in ("works", "differs", "not here")]
    states = ", ".join(f"{number} {state}" for state, number in counts)
    lines = [
        "# What of OpenClaw is here",
        "",
        f"OpenClaw's memory up to 2026.9.6 in {len(ROWS)} rows: {states}. This page lists what differs or is not here.",
        "The table `openclaw.toml` of this folder has every row.",
    ]
    for title, rows in TABLE.items():
        others = [row for row in rows if row.state != "works"]
        lines += ["", f"## {title}: {len(rows) - len(others)} of {len(rows)} work"]
        if others:
            lines += ["", "| OpenClaw | Here |", "|---|---|"]
            lines += [f"| {row.name} | {row.state}: {row.how} |" for row in others]
    return "\n".join(lines) + "\n"


def test_the_page_is_what_the_table_makes() -> None:
    if os.environ.get("MEMORY_TUI_UPDATE_SCREENS"):
        (FOLDER / "openclaw.md").write_text(page(), "utf-8")
    assert manual.text("openclaw") == page()


def test_each_row_stands_once_with_a_state_and_its_reason() -> None:
    assert len(ROWS) >= 239
    for title, rows in TABLE.items():
        names = [row.name for row in rows]
        assert len(set(names)) == len(names), title
    assert {row.state for row in ROWS} == {"works", "differs", "not here"}
    assert [row.name for row in ROWS if row.state != "works" and not row.how] == []
    assert [row.name for row in ROWS if "|" in row.name + row.how or "\n" in row.name + row.how] == []


def test_every_documented_key_is_a_row_and_no_other() -> None:
    documented = {key.path: key for key in (*keys.SEARCH, *keys.FILE)}
    listed = {row.name: row for row in TABLE[KEYS]}
    assert sorted(listed) == sorted(documented)
    for name, key in documented.items():
        assert (listed[name].state == "not here") == bool(key.effect), name
        if key.effect:
            assert listed[name].how == key.effect.removeprefix("none here: "), name


def test_every_documented_command_is_a_row() -> None:
    named = " ".join(row.name for row in TABLE["Commands of openclaw memory"])
    for word in ("status", "index", "search", "promote", "promote-explain", "forget", "reset", "rem-harness"):
        assert re.search(rf"\b{word}\b", named), word
    for option in ("--agent", "--json", "--deep", "--index", "--verbose", "--force", "--max-results", "--min-score"):
        assert option in named, option
