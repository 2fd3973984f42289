"""Configurations as a test writes them down."""

import tempfile
from pathlib import Path

from memory_tui.config import config_file
from memory_tui.config.config_file import Config


def parsed(text: str, agent: str = "", name: str = "openclaw.json") -> Config:
    """Return what a configuration of that name and text says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, "utf-8")
        return config_file.load(str(path), None, agent)
