"""A demo has a folder of its own, and touches nothing of its user's."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui import plan
from memory_tui.backends.memories import folder_of
from memory_tui.cli.main import main
from memory_tui.config import places
from memory_tui.config.config_patch import patch


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A temporary folder of its own, for this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_demo_neither_reads_nor_writes_the_configuration_of_its_user(temporary, monkeypatch):
    theirs = places.own_path()
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text('{"query": {"maxResults": 3}}')
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", str(theirs.parent / "openclaw.json"))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    written: list[str] = []

    def screen(options, *_more, **_named):
        chosen = options()
        choices = plan.choose(replace(chosen, changes=(*chosen.changes, ("query.minScore", "0.2"))))
        assert choices.settings.values["query.maxResults"].value == 6
        found = patch(choices.config, choices.settings, choices.as_written())
        assert "0.2" in found.diff()
        assert folder_of(choices).startswith(str(Path(chosen.workspace or "").parent)), "nobody's own memories"
        assert places.openclaw_path().is_relative_to(temporary), "nobody's own OpenClaw"
        written.extend(str(file.path) for file in found.files)
        found.write()
        return 0

    monkeypatch.setattr("memory_tui.tui.run.run", screen)
    assert main(["demo", "--provider", "none"]) == 0
    assert written
    assert all(Path(path).is_relative_to(temporary) for path in written)
    assert theirs.read_text() == '{"query": {"maxResults": 3}}'
