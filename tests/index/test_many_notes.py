"""A great many notes: all are indexed in bounded memory, and looking again finds nothing to do."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process's memory from /proc")

MEGABYTES = 300
RUN = """
import sys
from memory_tui.cli.main import main
code = main(sys.argv[1:])
# Not getrusage: that starts with the peak of the process that started this one.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(f"\\npeak {int(peak) // 1024}", file=sys.stderr)
sys.exit(code)
"""


def asked(folder, *words):
    """What the command answers, and the most memory it held, in megabytes."""
    places = ["--workspace", str(folder), "--index", str(folder.parent / "i.sqlite")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *places, *words, "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout), int(done.stderr.rsplit("peak ", 1)[1])


@pytest.mark.parametrize("files", [500, pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.timeout(3_600)])])
def test_many_notes_are_indexed_in_bounded_memory_and_then_left_alone(tmp_path, files):
    folder = tmp_path / "notes"
    for number in range(files):
        path = folder / "memory" / f"{number // 200:03}" / f"note-{number}.md"
        if number % 200 == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"# Note {number}\n\nabout gardens, coffee and number {number}\n")
    first, peak = asked(folder, "index")
    assert (first["found"], first["indexed"], first["embedded"], first["failed"]) == (files, files, files, [])
    assert 20 < peak <= MEGABYTES
    again, _ = asked(folder, "index")
    assert (again["unchanged"], again["indexed"], again["embedded"], again["changed"]) == (files, 0, 0, False)
    assert again["generation"] == first["generation"]
    last = files - 1
    answer, _ = asked(folder, "search", f"number {last}")
    assert answer["results"][0]["path"] == f"memory/{last // 200:03}/note-{last}.md"
