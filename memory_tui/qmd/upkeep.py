"""Upkeep runs one process of QMD at a time. It brings collections, index and vectors up to date."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable, locks
from memory_tui.config.places import state_folder
from memory_tui.core.cancel import Stop
from memory_tui.core.errors import IndexUnavailable, MemoryTuiError, Unreadable
from memory_tui.core.formatting import plural
from memory_tui.qmd import index, models, program
from memory_tui.qmd.folder import QmdFailure
from memory_tui.qmd.options import QmdOptions, WantedCollection
from memory_tui.qmd.program import Output, Program
from memory_tui.workspace import transcripts

if TYPE_CHECKING:
    from memory_tui.qmd.client import QmdClient

_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0
_TRIES = 3
_BUSY = ("database is locked", "sqlite_busy", "timed out")
_BOOT_PAUSE = 0.5
_MOST_BYTES = 1 << 20


class UpkeepReport(Struct, frozen=True):
    """What a run of upkeep did; `changes` are sentences about collections, `skipped` why nothing was to be done."""

    action: str
    seconds: float
    documents: int
    vectors: int
    changes: tuple[str, ...] = ()
    skipped: str = ""


class Upkeep:
    """Upkeep of one client's QMD. Each method may take minutes, and is for worker threads and commands."""

    def __init__(self, client: QmdClient) -> None:
        self._client = client
        self._place, self._options = client.place, client.options

    def due(self, now: float) -> bool:
        """Whether the interval has passed, and no failure asks for patience."""
        known = self._place.upkeep()
        interval = self._options.interval
        return now >= known.again and interval > 0 and now - known.updated >= interval

    def bearable(self, now: float) -> bool:
        """Whether an update that nobody asked for by hand may run: not too soon after another or a failure."""
        known = self._place.upkeep()
        return now >= known.again and now - known.updated >= self._options.debounce

    def update(self, stop: Stop, *, boot: bool = False) -> UpkeepReport:
        """Mend the collections and read the files anew. Raises QmdFailure, Cancelled."""
        return self._alone("update", stop, lambda found: self._update(found, stop, boot))

    def embed(self, stop: Stop, *, force: bool = True) -> UpkeepReport:
        """Embed texts that have no vector, where it is time or with `force`. Raises QmdFailure, Cancelled."""
        known = self._place.upkeep()
        if not force and time.time() - known.embedded < self._options.embed_interval:
            return UpkeepReport("embed", 0.0, 0, 0, skipped="The interval of embedding has not passed.")
        return self._alone("embed", stop, lambda found: self._embed(found, stop))

    def _alone(self, action: str, stop: Stop, work: Any) -> UpkeepReport:  # noqa: ANN401 - a function of the program
        found = self._client.startable(stop)
        models.unharmed(self._place)
        self._place.make()
        began = time.time()
        try:
            with locks.wait_for(self._place.folder / "upkeep", stop):
                try:
                    changes = work(found)
                except QmdFailure as failure:
                    self._failed(failure)
                    raise
                known = index.read(self._place.index)
                done = self._place.upkeep()
                done = replace(done, failures=0, again=0.0, error="")
                done = replace(done, updated=began) if action == "update" else replace(done, embedded=began)
                self._place.remember(done)
        except IndexUnavailable as error:
            raise QmdFailure("index", "Another memory-tui is bringing QMD up to date.", "Wait for it.") from error
        return UpkeepReport(
            action, time.time() - began, known.documents, index.embedded(self._place.index), tuple(changes)
        )

    def _failed(self, failure: QmdFailure) -> None:
        known = self._place.upkeep()
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**known.failures)
        failed = replace(known, failures=known.failures + 1, again=time.time() + pause, error=failure.message)
        self._place.remember(failed)

    # --- updating ----------------------------------------------------------------------------------------------------

    def _update(self, found: Program, stop: Stop, boot: bool) -> list[str]:
        if self._options.sessions:
            export(self._options, self._client.exported)
        changes = self._mend(found, stop)
        for attempt in range(_TRIES):
            output = self._run(found, ["update"], self._options.update_seconds, stop)
            said = (output.stderr + output.stdout).lower()
            busy = output.code != 0 and any(word in said for word in _BUSY)
            if not (boot and busy) or attempt + 1 == _TRIES or stop.wait(_BOOT_PAUSE * 2**attempt):
                break
        program.finished(output, "update")
        return changes

    def _mend(self, found: Program, stop: Stop) -> list[str]:
        """Let QMD have the wanted collections: what its table says decides, never the text of its listing."""
        try:
            known = index.read(self._place.index)
        except QmdFailure:
            if self._place.index.exists():
                raise
            # The first command makes it.
            known = index.QmdIndex(str(self._place.index), {}, 0)
        changes = []
        wanted = [one for one in self._client.wanted if Path(one.path).is_dir()]
        for name in self._stray(known, wanted):
            self._command(found, ["collection", "remove", name], stop)
            changes.append(f"collection {name} removed")
        for one in wanted:
            if known.serving(one) is None:
                self._add(found, one, stop)
                changes.append(f"collection {one.name} added: {one.path}, {one.pattern}")
        return changes

    def _add(self, found: Program, wanted: WantedCollection, stop: Stop) -> None:
        """Add a collection; one of that name which QMD's configuration alone still has gives way."""
        arguments = ["collection", "add", wanted.path, "--name", wanted.name, "--mask", wanted.pattern]
        output = self._run(found, arguments, self._options.command_seconds, stop)
        if output.code and "already exists" in output.stderr + output.stdout:
            self._command(found, ["collection", "remove", wanted.name], stop)
            output = self._run(found, arguments, self._options.command_seconds, stop)
        program.finished(output, "collection add")

    def _stray(self, known: index.QmdIndex, wanted: Sequence[WantedCollection]) -> list[str]:
        """Collections of ours that are not as wanted; those of other people are left alone."""
        names = {one.name: one for one in self._client.wanted}
        found = []
        for name, collection in known.collections.items():
            asked = names.get(name)
            moved = asked is not None and (asked.path, asked.pattern) != (collection.path, collection.pattern)
            # Nobody wants it, or its folder is gone and QMD would answer from what was there.
            if moved or (self._place.owned and asked not in wanted):
                found.append(name)
        return found

    def _command(self, found: Program, arguments: list[str], stop: Stop) -> None:
        output = self._run(found, arguments, self._options.command_seconds, stop)
        program.finished(output, " ".join(arguments[:2]))

    def _run(self, found: Program, arguments: list[str], seconds: float, stop: Stop) -> Output:
        return program.run(found.words, arguments, self._place.environment(), self._client.folder, seconds, stop)

    # --- embedding ---------------------------------------------------------------------------------------------------

    def _embed(self, found: Program, stop: Stop) -> list[str]:
        models.require(self._place, "embed", ("embed",))
        output = self._run(found, ["embed"], self._options.embed_seconds, stop)
        program.finished(output, "embed")
        return []

    # --- by hand -----------------------------------------------------------------------------------------------------

    def reset(self) -> list[str]:
        """Delete QMD's index and configuration that memory-tui made; returns their paths. Raises QmdFailure."""
        if not self._place.owned:
            raise QmdFailure(
                "index", f"{self._place.folder} is not memory-tui's own, so it stays as it is.", "Leave --qmd-home out."
            )
        gone = []
        try:
            with locks.wait_for(self._place.folder / "upkeep"):
                files = [Path(f"{self._place.index}{side}") for side in ("", "-wal", "-shm")]
                for file in [
                    *files,
                    self._place.index_yml,
                    self._place.record,
                    self._place.fallback,
                ]:
                    if os.path.lexists(file):
                        durable.remove_file(file)
                        gone.append(str(file))
        except (OSError, MemoryTuiError) as error:
            reason = error.strerror if isinstance(error, OSError) else error.message
            raise QmdFailure("index", f"QMD's index cannot be deleted: {reason}.", "Check its folder.") from error
        return gone


def sentence(report: UpkeepReport) -> str:
    """What a run of upkeep did, for a person."""
    if report.skipped:
        return report.skipped
    counts = f"{plural(report.documents, 'document')}, {plural(report.vectors, 'vector')}"
    return f"QMD {report.action}: {counts}, {report.seconds:.1f} s."


_TITLE = "# Session "
_DAY = 86_400.0


def export(options: QmdOptions, folder: Path) -> int:
    """Write the agent's transcripts into `folder` and delete those whose session is gone or too old; returns how many.

    A file that does not begin as an exported transcript does is somebody's own, and stays. Raises QmdFailure.
    """
    sessions = state_folder() / "agents" / options.agent / "sessions"
    oldest = time.time() - options.retention_days * _DAY if options.retention_days else 0.0
    wanted: set[str] = set()
    try:
        durable.make_folder(folder)
        for found in transcripts.listing(str(sessions), archives=False).found:
            if found.mtime_ns / 1e9 < oldest:
                continue
            name = os.path.basename(found.absolute).removesuffix(".jsonl")  # noqa: PTH119 - undecodable names
            try:
                text = transcripts.read(found).text
            except Unreadable:
                # The other sessions are searched all the same; the list of files says why this one is not.
                continue
            wanted.add(f"{name}.md")
            _write(folder / f"{name}.md", f"{_TITLE}{name}\n\n{text or '(empty)'}\n")
        for file in folder.glob("*.md"):
            if file.name not in wanted and _is_exported(file):
                durable.remove_file(file)
    except OSError as error:
        raise QmdFailure(
            "index", f"Transcripts cannot be exported to {folder}: {error.strerror}.", "Check the folder."
        ) from error
    return len(wanted)


def _write(file: Path, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if file.exists() and not _is_exported(file):
        return
    # What did not change keeps its time, so that nothing is behind.
    if not file.exists() or file.read_bytes() != data:
        durable.replace_file(file, data)


def _is_exported(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_TITLE)) == _TITLE.encode()
