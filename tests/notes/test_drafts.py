"""What is typed and not saved outlives the app, is private, and never comes back after it was saved."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from memory_tui.core.errors import EditRefused
from memory_tui.notes.journal import KEEP_DAYS, Typing, left

LOG = "memory/2026-03-20.md"


def test_what_was_kept_last_is_found_with_the_bytes_it_was_begun_on(tmp_path: Path) -> None:
    typing = Typing(tmp_path, LOG)
    typing.keep(1, "one", b"\xff old\r\n")
    typing.keep(2, "two \ud800 林", b"\xff old\r\n")
    Typing(tmp_path, "memory/other.md").keep(1, "other", None)
    (found,) = left(tmp_path, LOG)
    assert (found.path, found.text, found.before) == (LOG, "two \ud800 林", b"\xff old\r\n")
    assert {one.path for one in left(tmp_path)} == {LOG, "memory/other.md"}
    assert stat.S_IMODE(found.file.stat().st_mode) == 0o600


def test_a_slow_writing_does_not_bring_back_what_was_saved(tmp_path: Path) -> None:
    typing = Typing(tmp_path, LOG)
    typing.keep(1, "one", b"")
    typing.drop(3)
    typing.keep(2, "late", b"")
    assert left(tmp_path) == ()


def test_saving_forgets_what_the_editor_began_with_and_nothing_else(tmp_path: Path) -> None:
    Typing(tmp_path, LOG).keep(1, "from a crash", b"")
    (crashed,) = left(tmp_path, LOG)
    moved = crashed.file.rename(crashed.file.with_name(f"{crashed.file.stem}-another.json"))
    Typing(tmp_path, "memory/other.md").keep(1, "other", None)
    (began,) = left(tmp_path, LOG)
    assert began.file == moved
    typing = Typing(tmp_path, LOG, began)
    typing.keep(1, "more", b"")
    typing.drop(2)
    assert [one.path for one in left(tmp_path)] == ["memory/other.md"]


def test_damaged_and_old_files_are_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Typing(tmp_path, LOG).keep(1, "text", b"")
    (found,) = left(tmp_path)
    found.file.with_name("damaged.json").write_bytes(b'{"path": "x"')
    assert left(tmp_path) == (found,)
    later = time.time() + (KEEP_DAYS + 1) * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    assert left(tmp_path) == ()
    assert not found.file.exists()


def test_a_disk_that_takes_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "unsaved").write_text("in the way")
    with pytest.raises(EditRefused, match="not protected against a crash"):
        Typing(tmp_path, LOG).keep(1, "text", b"")
