"""A note is read whole or not at all, whatever its bytes are and whatever happens to it meanwhile."""

import codecs
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_tui.errors import Unreadable
from memory_tui.workspace.notes import ChangedWhileRead, read
from memory_tui.workspace.roots import Roots, scan
from memory_tui.workspace.scan import MAX_BYTES
from tests.support.workspace import needs_inodes, put, unprivileged_folder


def only_note(workspace):
    (note,) = scan(Roots.open(workspace)).notes
    return note


def read_bytes(folder, data):
    (folder / "MEMORY.md").write_bytes(data)
    return read(only_note(folder))


@pytest.mark.parametrize(
    ("data", "text", "replaced", "nul"),
    [
        (b"", "", 0, False),
        (b"\xef\xbb\xbf# BOM\n", "\ufeff# BOM\n", 0, False),
        (b"a\r\nb\rc", "a\r\nb\rc", 0, False),
        (b"a\0b", "a\0b", 0, True),
        (b"\xff\xfe broken \xc3(", "\ufffd\ufffd broken \ufffd(", 3, False),
        (b"\xe4\xb8 cut \xf0\x9f\x9a", "\ufffd cut \ufffd", 2, False),
        (b"typed \xef\xbf\xbd and broken \xff", "typed \ufffd and broken \ufffd", 1, False),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", 3, False),
        ("\ufeffhi".encode("utf-16-le"), "\ufffd\ufffdh\0i\0", 2, True),
    ],
)
def test_any_bytes_become_text(tmp_path, data, text, replaced, nul):
    document = read_bytes(tmp_path, data)
    assert (document.text, document.replaced, document.nul) == (text, replaced, nul)
    assert document.hash == hashlib.sha256(text.encode()).hexdigest()
    assert (document.path, document.size) == ("MEMORY.md", len(data))
    assert document.mtime_ns == only_note(tmp_path).mtime_ns


def _count(error):
    assert isinstance(error, UnicodeDecodeError)
    _replaced.append(error.start)
    return "\ufffd", error.end


_replaced: list[int] = []
codecs.register_error("counting", _count)


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "replace") + b"\xef\xbf\xbd\xef"))
@example(b"\xef\xbf\xef\xbf\xbd")
def test_replaced_counts_what_the_decoder_replaces(tmp_path_factory, data):
    document = read_bytes(tmp_path_factory.getbasetemp(), data)
    _replaced.clear()
    assert document.text == data.decode("utf-8", "counting")
    assert document.replaced == len(_replaced)


@pytest.mark.parametrize("become", ["gone", "folder", "link", "dangling", "loop", "pipe", "folder gone", "folder link"])
@needs_inodes
def test_what_took_the_place_of_a_note_is_not_read(tmp_path, become):
    put(tmp_path, "ws/memory/sub/a.md", "out/a.md", text="secret")
    note = only_note(tmp_path / "ws")
    path = Path(note.absolute)
    path.unlink()
    match become:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(tmp_path / "out/a.md")
        case "dangling":
            path.symlink_to("nowhere")
        case "loop":
            path.symlink_to("a.md")
        case "pipe":
            os.mkfifo(path)
        case "folder gone":
            path.parent.rmdir()
        case "folder link":
            path.parent.rmdir()
            path.parent.symlink_to(tmp_path / "out")
    with pytest.raises(Unreadable) as caught:
        read(note)
    assert "memory/sub/a.md" in caught.value.message
    assert caught.value.next_step


@needs_inodes
def test_a_note_that_may_not_be_read():
    with unprivileged_folder() as folder:
        put(folder, "MEMORY.md")
        (folder / "MEMORY.md").chmod(0)
        with pytest.raises(Unreadable, match="may not be read"):
            read(only_note(folder))


def test_a_note_grown_past_the_limit_since_the_scan_is_not_read(tmp_path):
    put(tmp_path, "MEMORY.md")
    note = only_note(tmp_path)
    os.truncate(tmp_path / "MEMORY.md", 50 * MAX_BYTES)
    with pytest.raises(Unreadable, match="at most 33,554,432"):
        read(note)


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_note_that_is_written_to_each_time_it_is_read_is_refused(tmp_path, monkeypatch, times):
    put(tmp_path, "MEMORY.md")
    path = tmp_path / "MEMORY.md"
    note, real, left = only_note(tmp_path), os.fdopen, iter(range(times))

    def disturbed(*args, **options):
        if next(left, None) is not None:
            with path.open("a") as file:
                file.write("more\n")
        return real(*args, **options)

    monkeypatch.setattr(os, "fdopen", disturbed)
    if times == 3:
        with pytest.raises(ChangedWhileRead):
            read(note)
    assert read(note).text == "note\n" + "more\n" * times
