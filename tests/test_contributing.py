"""CONTRIBUTING.md names what is there, and the project names no machine of a developer."""

import os
import re
import subprocess

from tests.support.paths import ROOT


def test_every_named_path_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    paths = set(re.findall(r"(?:memory_tui|tests|screenshots|\.ci)/[\w./-]*\w|\.git-blame-ignore-revs", text))
    assert len(paths) > 5
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_no_path_of_a_developers_machine_is_in_the_project():
    machine = re.compile(r"(?<![\w.])/(root|home/\w+|Users/\w+)/")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.split(b"\0")
    files = [ROOT / os.fsdecode(path) for path in listed if path] or list(ROOT.rglob("*"))
    texts = [path for path in files if path.suffix in {".py", ".md", ".toml", ".tcss", ".txt", ".svg"}]
    assert len(texts) > 100
    assert [str(path) for path in texts if path.is_file() and machine.search(path.read_text("utf-8", "replace"))] == []
