"""Bring QMD's collections, index and vectors up to date, one process at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_tui import durable, locks
from memory_tui.backends import qmd_index, qmd_program
from memory_tui.backends.qmd import QmdClient
from memory_tui.backends.qmd_index import QmdIndex
from memory_tui.backends.qmd_program import Output, QmdFailure
from memory_tui.cancel import Stop
from memory_tui.config.places import state_folder
from memory_tui.errors import IndexUnavailable, Unreadable
from memory_tui.workspace import transcripts

_FIRST_PAUSE, _LONGEST_PAUSE, _DAY = 60.0, 3600.0, 86_400.0
_TRIES, _BOOT_PAUSE = 3, 0.5
_BUSY = ("database is locked", "sqlite_busy", "timed out")
_TITLE = "# Session "


Report = dict[str, Any]
"""What a run of upkeep did: action, seconds, documents, vectors; changes are sentences about collections."""


def state(client: QmdClient) -> dict[str, Any]:
    """Return what upkeep remembers: times in epoch seconds, 0 for never; after `failures` it waits until `again`."""
    return {
        "updated": 0.0, "embedded": 0.0, "failures": 0, "again": 0.0, "error": "", **client.place.remembered("upkeep")
    }  # fmt: skip


def due(client: QmdClient, *, soon: bool) -> bool:
    """Tell whether an update that nobody asked for by hand may run: `soon` because notes changed, or by interval."""
    record, now, interval = state(client), time.time(), client.options.interval("update.interval", 300.0)
    pause = client.options.seconds("update.debounceMs") if soon else interval or float("inf")
    return bool(now >= record["again"] and now - record["updated"] >= pause)


def update(client: QmdClient, stop: Stop, *, boot: bool = False) -> Report:
    """Mend the collections and read the files anew. Raises QmdFailure, Cancelled."""
    return _alone(client, "update", stop, lambda words: _update(client, words, stop, boot))


def embed(client: QmdClient, stop: Stop, *, force: bool = True) -> Report | None:
    """Embed texts that have no vector; None where it is not time, without `force`. Raises QmdFailure, Cancelled."""
    interval = client.options.interval("update.embedInterval", 3600.0)
    if not force and time.time() - state(client)["embedded"] < interval:
        return None

    def work(words: tuple[str, ...]) -> list[str]:
        qmd_program.require_models(client.place, "embed", ("embed",))
        qmd_program.finished(_run(client, words, ["embed"], "embedTimeoutMs", stop), "embed")
        return []

    return _alone(client, "embed", stop, work)


def _alone(client: QmdClient, action: str, stop: Stop, work: Callable[[tuple[str, ...]], list[str]]) -> Report:
    words = client.startable(stop)
    client.place.make()
    began, record = time.time(), state(client)
    try:
        with locks.wait_for(client.place.folder / "upkeep", stop):
            try:
                changes = work(words)
            except QmdFailure as failure:
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** record["failures"])
                failed = {"failures": record["failures"] + 1, "again": time.time() + pause, "error": failure.message}
                client.place.remember("upkeep", {**record, **failed})
                raise
            done = {"updated" if action == "update" else "embedded": began, "failures": 0, "again": 0.0, "error": ""}
            client.place.remember("upkeep", {**record, **done})
    except IndexUnavailable as error:
        raise QmdFailure("index", "Another memory-tui is bringing QMD up to date.", "Wait for it.") from error
    index = qmd_index.read(client.place.index)
    counts = {"documents": index.documents, "vectors": index.vectors, "changes": changes}
    return {"action": action, "seconds": time.time() - began, **counts}


def _update(client: QmdClient, words: tuple[str, ...], stop: Stop, boot: bool) -> list[str]:
    if client.options.values["sessions.enabled"]:
        export(client)
    changes = _mend(client, words, stop)
    for attempt in range(_TRIES if boot else 1):
        output = _run(client, words, ["update"], "updateTimeoutMs", stop)
        busy = output.code and any(word in (output.stderr + output.stdout).lower() for word in _BUSY)
        if not busy or stop.wait(_BOOT_PAUSE * 2**attempt):
            break
    qmd_program.finished(output, "update")
    return changes


def _mend(client: QmdClient, words: tuple[str, ...], stop: Stop) -> list[str]:
    """Let QMD have the wanted collections; those of other people in a folder that is not ours are left alone."""
    index = qmd_index.read(client.place.index) if client.place.index.exists() else QmdIndex({})
    names = {item.name for item in client.specs}
    # QMD would answer from a folder that is gone as it was.
    specs = [item for item in client.specs if Path(item.path).is_dir()]
    serving = {collection.name for collection in map(index.serving, specs) if collection is not None}
    changes = []
    for name in index.collections:
        if name not in serving and (client.place.owned or name in names):
            qmd_program.finished(_run(client, words, ["collection", "remove", name], "", stop), "collection remove")
            changes.append(f"collection {name} removed")
    for item in specs:
        if index.serving(item) is None:
            args = ["collection", "add", item.path, "--name", item.name, "--mask", item.pattern]
            output = _run(client, words, args, "", stop)
            if output.code and "already exists" in output.stderr + output.stdout:
                # QMD's configuration alone still has that name.
                _run(client, words, ["collection", "remove", item.name], "", stop)
                output = _run(client, words, args, "", stop)
            qmd_program.finished(output, "collection add")
            changes.append(f"collection {item.name} added: {item.path}, {item.pattern}")
    return changes


def _run(client: QmdClient, words: tuple[str, ...], args: list[str], limit: str, stop: Stop) -> Output:
    seconds = client.options.seconds(f"update.{limit or 'commandTimeoutMs'}")
    return qmd_program.run(words, args, client.place.environment(), client.folder, seconds, stop)


def reset(client: QmdClient) -> list[str]:
    """Delete QMD's index and configuration that memory-tui made; returns their paths. Raises QmdFailure."""
    place = client.place
    if not place.owned:
        raise QmdFailure("index", f"{place.folder} is not memory-tui's own, so it stays.", "Leave --qmd-home out.")
    files = [*(Path(f"{place.index}{side}") for side in ("", "-wal", "-shm")), place.index_yml]
    try:
        with locks.wait_for(place.folder / "upkeep"):
            deleted = [str(file) for file in files if os.path.lexists(file) and durable.remove_file(file)]
    except (OSError, IndexUnavailable) as error:
        raise QmdFailure("index", f"QMD's index cannot be deleted: {error}.", "Check its folder.") from error
    for name in ("upkeep", "fallback"):
        place.remember(name, None)
    return deleted


def export(client: QmdClient) -> None:
    """Write the agent's transcripts as notes, and delete those whose session is gone or too old.

    A file that does not begin as an exported transcript does is somebody's own, and stays. Raises QmdFailure.
    """
    folder, days = client.exported, client.options.whole("sessions.retentionDays")
    sessions = state_folder() / "agents" / client.options.agent / "sessions"
    exported: set[str] = set()
    try:
        durable.make_folder(folder)
        for item in transcripts.listing(str(sessions), archives=False).notes:
            if days and item.mtime_ns / 1e9 < time.time() - days * _DAY:
                continue
            name = os.path.basename(item.absolute).removesuffix(".jsonl")  # noqa: PTH119 - undecodable names
            try:
                text = transcripts.read(item).text
            except Unreadable:
                # The other sessions are searched all the same; the list of files says why this one is not.
                continue
            exported.add(f"{name}.md")
            file, data = folder / f"{name}.md", f"{_TITLE}{name}\n\n{text or '(empty)'}\n".encode("utf-8", "replace")
            # What did not change keeps its time, so that nothing is behind.
            if not file.exists() or (_is_exported(file) and file.read_bytes() != data):
                durable.replace_file(file, data)
        for file in folder.glob("*.md"):
            if file.name not in exported and _is_exported(file):
                durable.remove_file(file)
    except OSError as error:
        message = f"Transcripts cannot be exported to {folder}: {error.strerror}."
        raise QmdFailure("index", message, "Check the folder.") from error


def _is_exported(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_TITLE)) == _TITLE.encode()
