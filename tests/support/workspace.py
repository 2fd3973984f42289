"""Make files for tests of the workspace."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

needs_inodes = pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds and names")


def put(root: Path, *names: str, text: str = "note\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


@contextlib.contextmanager
def unprivileged_folder() -> Iterator[Path]:
    """A folder in which permissions count: the superuser, whom nothing stops, steps down meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid() != 0:
            yield folder
            return
        folder.chmod(0o777)
        os.seteuid(65534)
        try:
            if not os.access(folder, os.W_OK, effective_ids=True):
                pytest.skip("the temporary folder is closed to other users")
            yield folder
        finally:
            os.seteuid(0)
