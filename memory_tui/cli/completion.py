"""The command that prints a shell's completion script, made by shtab from the parser."""

from __future__ import annotations

import argparse
import sys

from memory_tui.cli.common import Command

SHELLS = ("bash", "zsh", "fish")


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell whose script is printed")


def _completion(args: argparse.Namespace) -> int:
    import shtab

    from memory_tui.cli.main import build_parser

    sys.stdout.write(f"{shtab.complete(build_parser(), args.shell)}\n")
    return 0


COMMANDS: dict[str, Command] = {"completion": Command(_completion, _declare)}
