"""CONTRIBUTING.md names files, rules and layers that are there."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.support.paths import ROOT
from tests.tools import shape

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PATHS = sorted(set(re.findall(r"(?:memory_tui|tests|screenshots|\.ci)/[\w./-]*\w|\.git-blame-ignore-revs", TEXT)))
RECIPES = ("A knob", "A provider", "An inbox check", "A view", "A CLI command", "A profile", "A store")


@pytest.mark.parametrize("path", PATHS)
def test_every_named_path_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_names_files_and_tables_that_are_there(recipe: str) -> None:
    section = TEXT.partition(f"### {recipe}\n")[2].partition("\n#")[0]
    files = re.findall(r"(?:memory_tui|tests)/[\w./-]*\w", section)
    assert len(files) >= 2
    code = "".join((ROOT / file).read_text("utf-8") for file in files if file.endswith(".py"))
    for table in re.findall(r"`([A-Z]{4,})`", section):
        assert re.search(rf"^{table}\b", code, re.MULTILINE), table


def test_the_picture_shows_the_layers_in_their_order() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    [layout] = [contract for contract in linter["contracts"] if contract["type"] == "layers"]
    layers = [set(re.findall(r"memory_tui\.(\w+)", layer)) for layer in layout["layers"]]
    picture = re.findall(r"^ (\w.*)$", TEXT.partition("## The house")[2].partition("## Rules")[0], re.MULTILINE)
    shown = [set(re.split(r"\s{2,}", line[:33].strip())) for line in picture]
    assert shown == layers


def test_every_rule_of_the_tests_is_described() -> None:
    numbers = {int(rule.split()[0]) for rule in shape.RULES}
    described = {int(number) for number in re.findall(r"^(\d+)\. ", TEXT.partition("## Rules")[2], re.MULTILINE)}
    assert numbers <= described


def test_it_lists_no_module_that_a_library_replaced() -> None:
    table = TEXT.partition("## What we write by hand")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w/.]+)` \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    assert len(rows) >= 10
    assert all((ROOT / path).is_file() and len(reason.split()) >= 5 for path, _, reason in rows)
