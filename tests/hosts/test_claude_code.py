"""Where Claude Code keeps what it remembers of a project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memory_tui.hosts import claude_code


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "claude"
    folder.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    return folder


def test_a_repository_has_one_memory_for_all_its_folders(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "my.repo"
    inside = root / "src" / "deep"
    inside.mkdir(parents=True)
    alone = claude_code.auto_memory(inside)
    (root / ".git").mkdir()
    name = os.path.realpath(root).replace("/", "-").replace(".", "-").replace("_", "-")
    assert claude_code.auto_memory(inside) == claude_code.auto_memory(root) == home / "projects" / name / "memory"
    assert alone != claude_code.auto_memory(inside)


@pytest.mark.parametrize("scope", ["user", "local"])
def test_a_setting_moves_it(scope: str, home: Path, tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    settings = home / "settings.json" if scope == "user" else root / ".claude" / "settings.local.json"
    settings.write_text("{")
    assert claude_code.auto_memory(root).is_relative_to(home)
    settings.write_text(json.dumps({"autoMemoryDirectory": str(tmp_path / "moved")}))
    assert claude_code.auto_memory(root) == tmp_path / "moved"
    assert claude_code.is_auto_memory(tmp_path / "moved" / "MEMORY.md") == (scope == "user")
    # What a repository brings with it may not say where memories go.
    (root / ".claude" / "settings.json").write_text(json.dumps({"autoMemoryDirectory": "/elsewhere"}))
    assert claude_code.auto_memory(root) == tmp_path / "moved"
