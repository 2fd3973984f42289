"""The library page is true: its examples run, it names every public name, and nothing is imported before it is used."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memory_tui
from memory_tui import library, manual
from memory_tui.demo import materialize

PAGE = manual.text("library")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NAMED = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda code: re.sub(r"\W+", " ", code)[-40:])
def test_every_example_runs_and_prints_something(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    materialize(Path("~/.openclaw/workspace").expanduser(), dt.date.today())
    exec(compile(example, "library.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.strip()


def test_the_page_names_each_public_name_once_and_no_other() -> None:
    assert sorted(NAMED) == sorted(library.__all__)


def test_importing_the_package_loads_nothing_of_it() -> None:
    code = "import sys, memory_tui; print(sorted(m for m in sys.modules if m.startswith('memory_tui.')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_python_runs_the_package() -> None:
    run = subprocess.run([sys.executable, "-m", "memory_tui", "--version"], capture_output=True, text=True, check=True)
    assert memory_tui.__version__ in run.stdout
