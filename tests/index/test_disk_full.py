"""With a full disk or a folder that cannot be written the memory still answers, and says what is the matter."""

import os
import subprocess

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.errors import IndexUnavailable
from memory_tui.plan import Options
from tests.support.commands import forked
from tests.support.faults import fill
from tests.support.mcp import Wire
from tests.support.workspace import put_all

NOTES = 12


@pytest.fixture
def notes(tmp_path):
    text = "note {0} about gardens and coffee number{0}\n" * 30
    return put_all(tmp_path / "notes", {f"memory/{number}.md": text.format(number) for number in range(NOTES)})


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    with forked(tmp_path_factory.mktemp("said")) as running:
        yield running


@pytest.fixture
def run(commands, notes, disk, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # The process was begun with the environment of the whole module.
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
    env = {**{name: os.environ[name] for name in names if name in os.environ}, "TMPDIR": str(temporary)}
    usual = ("--workspace", str(notes), "--provider", "scripted", "--index", str(disk / "i" / "index.sqlite"))

    def one(*words, code=""):
        return commands.run(*words, *usual, code=code, env=env)

    return one


def killed(run, index):
    """An index whose writer was killed, with a log that was never folded in."""
    code = (
        "import signal\nfrom memory_tui.cli import admin\n"
        "admin._synced = lambda engine, **_: (engine.index.sync(), os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    assert run("index", code=code)[0] == -9
    assert index.with_name(index.name + "-wal").stat().st_size
    index.with_name(index.name + "-shm").unlink()


@pytest.mark.parametrize(
    ("leave", "left"), [(0, "closed"), (0, "killed"), (20, "killed"), (-1, "closed"), (-1, "killed")]
)
def test_what_is_indexed_answers_when_nothing_can_be_written(run, notes, disk, leave, left):
    index = disk / "i" / "index.sqlite"
    if left == "closed":
        assert run("index")[0] == 0
    else:
        killed(run, index)
    if leave < 0:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    else:
        fill(disk, leave)
    (notes / "memory" / "new.md").write_text("a zebra in the garden\n" * 900)
    code, out, err = run("search", "number7 gardens")
    assert (code, "Traceback" in err) == (0, False), err
    assert "memory/7.md" in out
    what = "cannot be written" if leave < 0 else "full|No space left|cannot be written"
    assert any(word in err for word in what.split("|")), err
    if leave >= 0:
        assert str(disk) in err
        assert "MB left" in err
    for words in (("status",), ("doctor",)) if left == "closed" else ():
        code, out, err = run(*words)
        assert "Traceback" not in out + err
        assert code == 0 or words == ("doctor",), (words, out, err)
        assert "Nothing is indexed" not in out, out


def test_a_first_index_without_room_says_where_another_may_go(notes, disk):
    (disk / "i").mkdir()
    fill(disk, 0)
    index = disk / "i" / "index.sqlite"
    with Engine.open(Options(workspace=str(notes), index=str(index), provider="scripted")) as engine:
        with pytest.raises(IndexUnavailable, match="cannot be written") as error:
            engine.index.sync()
        assert str(disk) in error.value.message
        assert "MB left" in error.value.message
        assert "--index" in error.value.next_step
    assert not index.exists()


def test_an_agent_is_answered_while_the_disk_is_full(notes, disk, run):
    assert run("index")[0] == 0
    fill(disk, 0)
    index = str(disk / "i" / "index.sqlite")
    wire = Wire(["--workspace", str(notes), "--provider", "scripted", "--index", index])
    answer = wire.greet().search(1, "number7 gardens")
    assert "memory/7.md" in answer["result"]["content"][0]["text"], answer
    wire.process.stdin.close()
    assert b"Traceback" not in wire.process.stderr.read()
