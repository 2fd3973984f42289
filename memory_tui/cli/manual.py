"""The command that prints the manual."""

from __future__ import annotations

import argparse
import sys

from memory_tui.cli.common import Declare, Run


def add(command: Declare) -> None:
    """Declare the command."""
    command("help", "list the pages of the manual, or print one").add_argument("topic", nargs="?", metavar="TOPIC")


def _help(given: argparse.Namespace) -> int:
    from memory_tui import manual

    topic = getattr(given, "topic", None)
    if topic:
        body = manual.text(topic)
        if hasattr(given, "json"):
            from memory_tui import report

            report.data({"topic": topic, "text": body})
        else:
            sys.stdout.write(body)
        return 0
    pages = manual.topics()
    if hasattr(given, "json"):
        from memory_tui import report

        report.data({"topics": pages})
        return 0
    sys.stdout.write("memory-tui help TOPIC prints a page of the manual:\n\n")
    for name, title in pages.items():
        sys.stdout.write(f"  {name:<14} {title}\n")
    return 0


RUN: dict[str, Run] = {"help": _help}
