"""The table of commands: what --help lists, which module is imported, what a word that is no command is taken for."""

import json
import subprocess
import sys

import pytest

from memory_tui.cli import main
from memory_tui.cli.commands import COMMANDS, GLOBAL, SHARED, named
from memory_tui.errors import SettingError

MODULES = {command.run.partition(":")[0] for command in COMMANDS.values()}


def printed(capsys, *words):
    with pytest.raises(SystemExit):
        main.main([*words, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_function_and_a_help_without_the_options_of_all(name, capsys):
    assert callable(COMMANDS[name].load())
    text = printed(capsys, *name.split())
    described = {line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")}
    assert not {option.names[0] for option in GLOBAL} & described
    assert SHARED in " ".join(text.split())


def test_help_lists_every_command_in_its_group_and_every_shared_option(capsys):
    lines = printed(capsys).splitlines()
    at = 0
    for name, command in COMMANDS.items():
        at = lines.index(f"  {name:<23} {command.help}", at)
        assert f"{command.group}:" in lines[:at]
    assert all(any(line.startswith(f"  {option.names[0]}") for line in lines) for option in GLOBAL)


@pytest.mark.parametrize(
    ("arguments", "module"), [(["search", "--help"], None), (["get", "x.md"], "ask"), (["serch"], None)]
)
def test_only_the_module_of_the_command_is_imported(arguments, module):
    code = (
        "import contextlib, io, json, sys\nfrom memory_tui.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main({arguments!r})\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('memory_tui.cli.')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in json.loads(done.stdout)} & MODULES
    assert loaded - {"provider"} == ({module} if module else set())


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("indx", "index"), ("vlan", ""), ("x" * 50_000, ""), ("Search", "search"), ("version", "--version"),
        ("why-file", "why --file"), ("compare-index", "openclaw compare-index"), ("trust", "openclaw trust"),
        ("write-config", "config --write"), ("redo", "undo --redo"), ("journal", "history"),
        ("budget", "prompt --budget"), ("tune", "eval --tune"), ("completion", "help --completion"),
    ],
)  # fmt: skip
def test_a_word_that_is_no_command_names_the_nearest(words, command):
    with pytest.raises(SettingError) as refused:
        named([words, "--json"])
    assert refused.value.next_step == (
        f"Did you mean {command}?" if command else "memory-tui --help lists the commands."
    )
    assert len(refused.value.message) < 120


def test_a_first_word_alone_names_the_second():
    with pytest.raises(SettingError, match="needs another word") as refused:
        named(["openclaw"])
    assert "openclaw trust" in refused.value.next_step
