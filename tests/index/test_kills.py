"""A sync that is killed at any step leaves the old index or the new one, and little is done again."""

import subprocess
import sys

import pytest

from tests.support.paths import TESTS

HARNESS = TESTS / "harness" / "kill.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


def killed(folder, kills, seed):
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(folder), str(kills), str(seed)],
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    bad = [line for line in done.stdout.splitlines() if not line.endswith("fine")]
    assert done.returncode == 0, "\n".join(bad) + done.stderr
    return done.stdout


def test_kills_at_ten_steps_are_all_clean(tmp_path):
    assert killed(tmp_path, 10, 7).endswith("10 kills, 0 bad\n")


@pytest.mark.soak
def test_kills_at_two_hundred_steps_are_all_clean(tmp_path):
    assert killed(tmp_path, 200, 11).endswith("200 kills, 0 bad\n")
