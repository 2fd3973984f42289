"""The command `export` copies chunks or long-term memories into a LanceDB table."""

from __future__ import annotations

import argparse
import os

from msgspec import to_builtins
from msgspec.structs import replace

from memory_tui.cli.common import Command, at_least, confirmed, opened, waiting
from memory_tui.core.errors import SettingError


def _declare_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=["lancedb"], help="lancedb is the only one")
    parser.add_argument("place", metavar="PLACE", help="a folder, or s3://BUCKET/PREFIX")
    parser.add_argument("--tables", metavar="A,B", help="chunks (default), memories, or both")
    parser.add_argument("--since", type=at_least(0), metavar="GENERATION", help="only what changed after that export")
    parser.add_argument(
        "--storage-option", metavar="KEY=VALUE", action="append", help="how the store is reached; keys as ${VARIABLE}"
    )
    parser.add_argument("--yes", action="store_true", help="agree that the store gets the notes of this workspace")


def _exported(given: argparse.Namespace) -> int:
    from memory_tui.ltm import export, location
    from memory_tui.render import as_text

    names = [name.strip() for name in getattr(given, "tables", "chunks").split(",")]
    if not set(names) <= set(export.TABLES):
        raise SettingError("--tables takes chunks, memories or both.", "For instance --tables chunks,memories.")
    reports = []
    with opened(given) as engine:
        asked = location.storage_options(getattr(given, "storage_option", ()), engine.plan)
        place = location.at(given.place, "export", asked)
        if place.remote and engine.providers.approvals.find(_EXPORT, place.host) is None:
            question = f"{place.host} would get the texts of this workspace. Export them there?"
            if not confirmed(question, given):
                raise SettingError(f"{place.host} has no approval to get the notes.", "Agree with --yes.")
            engine.providers.approvals.approve(_EXPORT, place.host, "export")
        if "chunks" in names:
            engine.indexer.catch_up()
            since = int(given.since) if hasattr(given, "since") else None
            with engine.queries.reader() as store:
                workspace = os.path.realpath(engine.plan.workspace)
                with waiting("Exporting the chunks"):
                    reports.append(export.export_chunks(store, replace(place, table="chunks"), workspace, since))
        if "memories" in names:
            with waiting("Exporting the memories"):
                reports.append(export.export_entries(engine.memories, replace(place, table="memories")))
    if hasattr(given, "json"):
        as_text.print_json({"place": place.shown, "tables": [to_builtins(one) for one in reports]})
    else:
        as_text.print_lines(
            f"{one.table}: {one.put:,} written, {one.deleted:,} deleted, {one.unchanged:,} unchanged"
            f"{f', {one.withheld:,} withheld that look like secrets' if one.withheld else ''}; version {one.tag}"
            for one in reports
        )
    return 0


_EXPORT = "lancedb export"
"""What the agreement that a store gets the notes is saved under."""

COMMANDS: dict[str, Command] = {"export": Command(_exported, _declare_export)}
