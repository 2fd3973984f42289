"""The table of commands: each row loads, alone, and nothing is declared that has no row."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest

from memory_tui.cli import main

OF_COMMANDS = {
    *("admin", "agent", "ask", "connect", "curate", "hooks", "inbox", "ltm", "measure", "past"),
    *("provider", "qmd", "serve"),
}


def test_every_command_has_one_row_and_every_row_a_command() -> None:
    declared = {name: f"memory_tui.cli.{module}" for module in OF_COMMANDS for name in commands_of(module)}
    declared |= dict.fromkeys(main.OWN, "memory_tui.cli.main")
    assert {name: row.source.partition(":")[0] for name, row in main.COMMANDS.items()} == declared
    assert len(declared) == len(main.OWN) + sum(len(commands_of(module)) for module in OF_COMMANDS)


def commands_of(module: str) -> dict[str, object]:
    found = import_module(f"memory_tui.cli.{module}").COMMANDS
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (["search", "--help"], "ask"),
        (["eval", "--help"], "measure"),
        (["hook", "--help"], "hooks"),
        (["--help"], None),
        (["--version"], None),
        (["serch"], None),
    ],
)
def test_only_the_module_of_the_command_is_imported(arguments: list[str], module: str | None) -> None:
    code = (
        "import contextlib, io, json, sys\nfrom memory_tui.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main({arguments!r})\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('memory_tui.cli.')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in json.loads(done.stdout)} & OF_COMMANDS
    assert loaded == ({module} if module else set())


def test_help_and_did_you_mean_read_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for name, row in main.COMMANDS.items():
        assert f" {name} {row.help.partition(';')[0]}" in shown
    assert main.main(["serch"]) == 2
    assert "Did you mean search?" in capsys.readouterr().err


def test_the_help_of_a_command_leaves_the_global_options_to_that_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str) -> str:
        with pytest.raises(SystemExit):
            main.main([*words, "--help"])
        return capsys.readouterr().out

    names = {name for names, _ in main.GLOBAL for name in names}
    every = shown()
    assert all(f"  {name}" in every for name in names)
    for name in main.COMMANDS:
        said = shown(name)
        described = {line.split()[0].rstrip(",") for line in said.splitlines() if line.startswith("  -")}
        assert not names & described, name
        assert main.ALSO in " ".join(said.split()), name
    parser = main.build_parser("search")
    for one, keywords in main.GLOBAL:
        value = [] if keywords.get("action") == "store_true" else ["x"]
        given = vars(parser.parse_args(["search", "router", *one, *value]))
        assert given[one[0].lstrip("-").replace("-", "_")] in (True, "x", ["x"])
