"""Commands in forks of one process that has everything imported: a tenth of the time that a process of their own takes.

What each leaves on disk, prints and exits with is its own; where the point is what a start-up loads or costs, `alone`
runs code in a process of its own.
"""

import io
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tests.support.paths import ROOT
from tests.support.waiting import LONG

_RUNNER = """
import json, os, sys, traceback
sys.path.insert(0, sys.argv[1])
from memory_tui.cli import main as cli
import memory_tui.cli.ask, memory_tui.cli.admin, memory_tui.doctor, memory_tui.engine.engine
import memory_tui.index.sync, memory_tui.cli.output, memory_tui.explain.hit_text
import memory_tui.search.rank, memory_tui.search.retrieve

for line in sys.stdin:
    words, code, env, place = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.update(env)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{place}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin = open(0, closefd=False)
        status = 99
        try:
            if code:
                exec(code)
            status = cli.main(words)
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Terminal(io.StringIO):
    """A stream that is a terminal, as far as a command can tell."""

    def isatty(self) -> bool:
        return True


def alone(code: str) -> str:
    """Return what a process prints that has imported nothing before it runs `code`."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Commands:
    """Runs commands in forks of `process`; what they print goes through files in `place`."""

    def __init__(self, process: subprocess.Popen[str], place: Path) -> None:
        self._process, self._place = process, place

    def run(self, *words: str, code: str = "", env: Mapping[str, str] = MappingProxyType({})) -> tuple[int, str, str]:
        """Exit status (negative: the signal that ended it), stdout and stderr.

        `code` is executed first; `env` is set besides what the process was begun with.
        """
        self._process.stdin.write(json.dumps([words, code, dict(env), str(self._place)]) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return status, (self._place / "out").read_text("utf-8"), (self._place / "err").read_text("utf-8")


@contextmanager
def forked(place: Path) -> Iterator[Commands]:
    """The process whose forks run commands, for as long as the block lasts."""
    command = [sys.executable, "-c", _RUNNER, str(ROOT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Commands(process, place)
        process.stdin.close()
