"""The package weighs no more than `[tool.memory_tui.size]` of pyproject.toml says, and no function has over 60 lines.

`python -m tests.test_size` lowers each ceiling to what is counted today; it raises none.
"""

import ast
import os
import re
import subprocess
import tomllib
from collections import Counter

from tests.support.paths import ROOT

PROJECT = ROOT / "pyproject.toml"
LONGEST_FUNCTION = 60


def code_lines(source):
    """Count the lines of `source` that are no docstring, comment or blank."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        for part in getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else []:
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                skipped |= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    lines = enumerate(source.split("\n"), 1)
    return sum(1 for number, line in lines if number not in skipped and line.strip() and line.strip()[0] != "#")


def weights():
    """Return code lines by package, modules at the top as "root", and their sum as "all"."""
    counted: Counter[str] = Counter()
    for path in (ROOT / "memory_tui").rglob("*.py"):
        parts = path.relative_to(ROOT / "memory_tui").parts
        lines = code_lines(path.read_text("utf-8"))
        counted[parts[0] if len(parts) > 1 else "root"] += lines
        counted["all"] += lines
    return counted


def ceilings():
    """Return the ceilings of pyproject.toml."""
    return tomllib.loads(PROJECT.read_text("utf-8"))["tool"]["memory_tui"]["size"]


def test_no_package_outgrows_its_ceiling():
    limits, counted = ceilings(), weights()
    assert counted["all"] > 1000
    assert {name: lines for name, lines in counted.items() if lines > limits.get(name, 0)} == {}


def test_no_function_has_more_than_sixty_lines():
    long = []
    for path in (ROOT / "memory_tui").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines}")
    assert long == []


def lower(path=PROJECT):
    """Write what is counted over each higher ceiling of `path`, and leave out packages that are gone."""
    limits, counted = ceilings(), weights()
    rows = [f"{name} = {min(lines, limits.get(name, lines))}" for name, lines in sorted(counted.items())]
    text = path.read_text("utf-8")
    path.write_text(re.sub(r"(\[tool\.memory_tui\.size\]\n)[^\[]*", rf"\g<1>{chr(10).join(rows)}\n", text), "utf-8")


if __name__ == "__main__":
    lower()


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
