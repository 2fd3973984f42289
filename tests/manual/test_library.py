"""The library page is true: its examples run, it names every public name, and nothing is imported before it is used."""

from __future__ import annotations

import ast
import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memory_tui
from memory_tui import manual
from memory_tui.core import errors, events
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
    assert sorted(NAMED) == sorted(memory_tui.__all__)


def test_type_checkers_see_the_same_names() -> None:
    stub = Path(memory_tui.__file__).with_suffix(".pyi").read_text("utf-8")
    names = next(node.value for node in ast.parse(stub).body if isinstance(node, ast.Assign))
    assert ast.literal_eval(names) == sorted(memory_tui.__all__)


def test_every_public_name_is_there_and_others_are_not() -> None:
    for name in memory_tui.__all__:
        assert getattr(memory_tui, name).__name__ == name
    assert memory_tui.MemoryTuiError is errors.MemoryTuiError
    assert memory_tui.Event is events.Event
    with pytest.raises(AttributeError, match="no attribute 'Reader'"):
        memory_tui.Reader  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_or_an_error_loads_nothing_heavy() -> None:
    code = (
        "import sys, memory_tui; own = {m for m in sys.modules if m.startswith('memory_tui.')}; "
        "from memory_tui import IndexBusy; "
        "print(sorted(own), sorted({'numpy', 'apsw', 'textual', 'httpx', 'pydantic'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[] []"


def test_python_runs_the_package() -> None:
    run = subprocess.run([sys.executable, "-m", "memory_tui", "--version"], capture_output=True, text=True, check=True)
    assert memory_tui.__version__ in run.stdout
