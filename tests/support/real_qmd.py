"""The real QMD from npm: installed once into a cache folder, run by a Node that is new enough."""

from pathlib import Path

from tests.support.npm import installed, node

VERSION = "2.8.3"


def qmd() -> str:
    """What `memory.qmd.command` names to run the real QMD. Skips the test, with the reason, where npm cannot."""
    folder = installed(f"qmd-{VERSION}", {"@tobilu/qmd": VERSION})
    return f"{node()} {folder / 'node_modules' / '@tobilu' / 'qmd' / 'dist' / 'cli' / 'qmd.js'}"


def package() -> Path:
    return Path(qmd().split(" ", 1)[1]).parents[2]
