"""One writer at a time, and a dead one stops nobody."""

import os
import stat
import subprocess
import sys

import pytest

from memory_tui.errors import IndexUnavailable
from memory_tui.locks import Holder, WriterLock, holder, is_alive, lock_path, process_start

HOLD = """
import sys
from memory_tui.locks import WriterLock
lock = WriterLock.acquire(sys.argv[1])
print("held" if lock else "refused", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_process(tmp_path):
    """A process that holds the lock of `index` until it is ended."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "index")]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.communicate()


def test_one_writer_at_a_time(tmp_path):
    first = WriterLock.acquire(tmp_path / "index")
    assert WriterLock.acquire(tmp_path / "index") is None
    (tmp_path / "index").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "index")
    assert WriterLock.acquire(tmp_path / "link") is None
    assert WriterLock.acquire(tmp_path / "another") is not None
    with pytest.raises(IndexUnavailable, match="lock file"):
        WriterLock.acquire(tmp_path / "nowhere" / "index")
    first.release()
    with WriterLock.acquire(tmp_path / "index") as second:
        assert second.path == tmp_path / "index.lock"
        assert stat.S_IMODE(second.path.stat().st_mode) == 0o600
    assert holder(tmp_path / "index") is None


def test_another_process_is_named(tmp_path, other_process):
    assert WriterLock.acquire(tmp_path / "index") is None
    who = holder(tmp_path / "index")
    assert who.pid == other_process.pid
    assert who.started == process_start(other_process.pid)
    assert is_alive(who)


def test_a_killed_writer_is_succeeded_at_once(tmp_path, other_process):
    other_process.kill()
    other_process.wait()
    assert not is_alive(holder(tmp_path / "index"))
    lock = WriterLock.acquire(tmp_path / "index")
    assert holder(tmp_path / "index").pid == os.getpid()
    lock.release()


def test_a_process_number_used_again_is_not_the_holder():
    if not process_start(os.getpid()):
        pytest.skip("this system does not tell when a process started")
    assert is_alive(Holder(os.getpid(), process_start(os.getpid()), 0.0))
    assert not is_alive(Holder(os.getpid(), "12", 0.0))


@pytest.mark.parametrize(
    "text", ["", "\0\0", '{"p', '{"pid": 12, "sta', '{"pid": 1}', '{"pid": null, "started": "", "since": 0}']
)
def test_a_lock_file_that_was_cut_off_stops_nobody(tmp_path, text):
    lock_path(tmp_path / "index").write_text(text)
    assert holder(tmp_path / "index") is None
    WriterLock.acquire(tmp_path / "index").release()


@pytest.mark.parametrize("role", ["lock", "keeper"])
@pytest.mark.parametrize("what", ["text", "long", "link", "dangling", "hard link", "pipe", "folder", "loop"])
def test_what_is_not_ours_in_the_place_of_a_lock_stays(tmp_path, role, what):
    path, theirs = lock_path(tmp_path / "index", role), tmp_path / "theirs"
    theirs.write_text("[[package]]\nname = 'uv'\n")
    match what:
        case "text":
            path.write_bytes(theirs.read_bytes())
        case "long":
            path.write_text('{"pid"' + " " * 9000)
        case "link":
            path.symlink_to(theirs)
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "hard link":
            path.hardlink_to(theirs)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)

    def state():
        now = path.lstat()
        return now.st_ino, now.st_mode, now.st_mtime_ns, theirs.read_bytes()

    before = state()
    assert holder(tmp_path / "index", role) is None
    with pytest.raises(IndexUnavailable, match=r"cannot be written: (it is a link, a pipe|another program's)") as error:
        WriterLock.acquire(tmp_path / "index", role)
    assert error.value.next_step
    assert state() == before
    assert not (tmp_path / "nowhere").exists()
