"""A note that is not UTF-8 is no silence: the inbox says that its words are not found, and writes it as UTF-8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused
from memory_tui.inbox.checks import changes
from memory_tui.notes.changes import to_utf8
from memory_tui.plan import Options
from memory_tui.workspace.notes import utf16_of

TEXT = "# Day\n\n- The plumber Grigori Müller came at ten.\n"


def _written(data):
    [file] = to_utf8("memory/a.md", data).files
    assert (file.path, file.before) == ("memory/a.md", data)
    assert file.after is not None
    return file.after.decode()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_it_is_written_as_utf8(encoding):
    assert _written(TEXT.encode(encoding)) == TEXT


def test_what_is_utf8_stays_beside_bytes_that_are_not():
    # Two programs wrote into one log, each in its own way.
    assert _written("- Grüße\n".encode() + "- Müller\n".encode("cp1252")) == "- Grüße\n- Müller\n"
    assert _written(b"\x81") == "\x81"


def test_two_accents_that_meet_are_western_and_longer_runs_are_not():
    assert _written("une page créée\n".encode("cp1252")) == "une page créée\n"
    with pytest.raises(EditRefused, match="neither UTF-8"):
        _written("# 笔记\n我们明天去成都\n".encode("gbk"))


def test_zeros_that_a_crash_left_are_no_utf16():
    data = b"# Notes\nhello world, this is fine\n" + b"\0" * 100
    assert not utf16_of(data)
    with pytest.raises(EditRefused, match="UTF-8 already"):
        _written(data)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_known_by_its_zeros(encoding):
    assert utf16_of(TEXT.encode(encoding)) == encoding


@given(st.binary())
def test_any_bytes_are_written_or_refused(data):
    try:
        written = _written(data)
    except EditRefused:
        return
    assert written.encode() != data


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_its_words_are_found_once_it_was_converted_and_undo_puts_its_bytes_back(tmp_path, encoding):
    log = tmp_path / "notes" / "memory" / "2026-11-20.md"
    log.parent.mkdir(parents=True)
    log.write_bytes(TEXT.encode(encoding))
    options = Options(workspace=str(tmp_path / "notes"), index=str(tmp_path / "index.sqlite"), provider="none")
    with Engine.open(options) as engine:

        def found():
            engine.index.sync()
            return bool(engine.search.search("müller").recalled)

        assert not found()
        [suggestion] = [one for one in engine.inbox.examine().suggestions if one.kind == "encoding"]
        engine.notes.curator.apply(changes([suggestion], "convert", engine.notes.curator))
        assert found()
        assert not [one for one in engine.inbox.examine().suggestions if one.kind == "encoding"]
        engine.notes.curator.undo()
        assert log.read_bytes() == TEXT.encode(encoding)
