"""An answer is of one state of the index, whoever makes the index anew while it is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import TESTS

HARNESS = TESTS / "harness" / "rebuild.py"


def asked(folder: Path, answers: int, rebuilds: int, seed: int) -> str:
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(folder), str(answers), str(rebuilds), str(seed)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_answers_beside_rebuilds_have_the_text_of_their_lines(tmp_path: Path) -> None:
    assert "beside 3 rebuilds, 0 wrong" in asked(tmp_path, 80, 3, 3)


@pytest.mark.soak
def test_ten_thousand_answers_beside_eighty_rebuilds_have_the_text_of_their_lines(tmp_path: Path) -> None:
    assert "beside 80 rebuilds, 0 wrong" in asked(tmp_path, 10_000, 80, 5)
