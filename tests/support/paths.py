"""Where the checkout, its tests and the data beside it stand."""

import hashlib
import os
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared" / "data"
"""Recorded answers, labelled questions and a model; tests that need them skip where they are absent."""
MODEL = SHARED / "models" / "all-MiniLM-L6-v2-q8_0.gguf"


@cache
def oracles() -> Path:
    """Return the folder of the recorded answers of real OpenClaw releases, unpacked once for all processes."""
    archive = TESTS / "data" / "oracles.tar.xz"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"memory-tui-oracles-{os.getuid()}-{digest}"
    if not folder.is_dir():
        beside = Path(tempfile.mkdtemp(dir=folder.parent))
        with tarfile.open(archive) as members:
            members.extractall(beside, filter="data")
        try:
            beside.rename(folder)
        except OSError:  # Another process was first.
            shutil.rmtree(beside)
    return folder
