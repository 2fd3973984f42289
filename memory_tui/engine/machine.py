"""Every memory on this machine: OpenClaw's agents, Claude Code's projects, Codex, and folders that were opened here.

Claude Code keeps a project's memory under the project's path, so a project that is renamed or moved leaves it behind.
The project is known again by the first commit of its repository, once that was written down while both were there.
"""

from __future__ import annotations

import os
import shlex
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from memory_tui import durable, plan
from memory_tui.config import config_file as configuration
from memory_tui.config import places
from memory_tui.errors import Cancelled, ConfigError, EditRefused, MemoryTuiError
from memory_tui.formatting import age_words, one_line, plural
from memory_tui.hosts import claude_code, codex
from memory_tui.notes import budget
from memory_tui.notes.authors import Repository
from memory_tui.openclaw.agent_sessions import record_of
from memory_tui.plan import Options, Plan
from memory_tui.state_db import Table
from memory_tui.workspace import roots

_KNOWN, _MOVED = Table("known_memories", 500), Table("moved_memories", 50)
_SCOPE = "machine"
_HEAD_LINES = 40
"""Lines of a transcript in which its folder is looked for."""
_PATIENCE_SECONDS, _MOST_EXAMINED = 2.0, 1 << 19
"""How long the inboxes of all memories are looked through, while a person waits, and the bytes of notes of one."""


class Memory(Struct, frozen=True):
    """One memory: who has it, its folder, of which project it is; its notes, their bytes, when one changed last.

    `moved_to` is where its agent looks now and finds nothing, as its project was renamed or moved. `decisions` wait in
    its inbox, None where it has no index, is large, or there was no time to look. Times are in epoch seconds.
    """

    host: str
    folder: Path
    project: str
    notes: int
    bytes: int
    changed: float
    findings: tuple[str, ...] = ()
    moved_to: Path | None = None
    decisions: int | None = None

    @property
    def facts(self) -> str:
        """Say what is in it."""
        project = f"of {self.project}" if self.project else ""
        size = f"{plural(self.notes, 'note')} of its own, {self.bytes / 1_000:,.0f} KB"
        age = age_words(max(0.0, time.time() - self.changed) / 86_400) if self.notes else ""
        inbox = "inbox not examined, as it is large" if self.bytes > _MOST_EXAMINED else "inbox not examined"
        if self.decisions is not None:
            inbox = f"{plural(self.decisions, 'decision')} in its inbox"
        return ", ".join(filter(None, (project, size, age, inbox)))


def memories(*here: Path) -> list[Memory]:
    """Return every memory that is there, by host, with those in `here`; the first commits of projects are written down.

    Raises StateUnavailable.
    """
    projects = _projects()
    # Host, folder and project, as of all others; of which project a folder is nobody knows.
    opened = [("Folder", Path(folder), "") for folder in (*map(str, here), *_KNOWN.of(_SCOPE).read())]
    until = time.monotonic() + _PATIENCE_SECONDS
    by_path: dict[str, Memory] = {}
    for host, folder, project in (*_of_openclaw(), *_of_claude(projects), *opened):
        real = os.path.realpath(folder)
        # Of two names of one folder the first counts.
        if real not in by_path and folder.is_dir():
            by_path[real] = _memory(host, folder, project, projects, until)
    # Claude Code makes a folder for each project, which stays empty for most.
    return [memory for memory in by_path.values() if memory.notes or memory.findings or memory.host != "Claude Code"]


def remember(folder: Path) -> None:
    """Write down that a folder is a memory, so that it is listed. Raises StateUnavailable."""
    known = _KNOWN.of(_SCOPE)
    key = os.path.realpath(folder)
    if key not in known.read():
        known.put(key, {})


# --- where they are --------------------------------------------------------------------------------------------------


def _of_openclaw() -> Iterator[tuple[str, Path, str]]:
    """Yield the workspaces of OpenClaw's agents; a configuration that cannot be read is told by `status`."""
    with suppress(MemoryTuiError):
        if places.openclaw_path().is_file():
            for agent in configuration.load(str(places.openclaw_path()), None).agents:
                yield f"OpenClaw, agent {agent.id}", agent.workspace, ""


def _of_claude(projects: Mapping[Path, list[Path]]) -> Iterator[tuple[str, Path, str]]:
    """Yield host, folder and project of each memory of Claude Code, and of that of Codex."""
    for memory, folders in projects.items():
        # Where no folder is left, the first names the project that is gone.
        there = [folder for folder in folders if folder.is_dir()] or folders
        yield "Claude Code", memory, str(there[0]) if there else ""
    yield "Codex", codex.memory(), ""


def _projects() -> dict[Path, list[Path]]:
    """Return the folders of the memories of Claude Code's projects, each with the folders in which its sessions began.

    Several projects can share a memory; one of which no transcript is left has no folder.
    """
    seen: defaultdict[Path, list[Path]] = defaultdict(list)
    for folder in sorted((claude_code.home() / "projects").glob("*")):
        memory = folder / "memory"
        began = _began_in(folder)
        if began is not None:
            # Settings may name another place, and worktrees share that of their repository.
            memory = claude_code.auto_memory(began) if began.is_dir() else memory
            seen[memory].append(began)
        elif memory.is_dir():
            # No transcript tells its folder: the key alone lists the memory.
            seen[memory] += []
    return dict(seen)


def _began_in(folder: Path) -> Path | None:
    """Return the folder in which the newest session of a project began, None where no transcript tells it."""
    # Three, because a session that was broken off at once may not tell it.
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: -path.stat().st_mtime)[:3]:
        with suppress(OSError), durable.open_regular(path) as file:
            for _, line in zip(range(_HEAD_LINES), file, strict=False):
                cwd = record_of(line).get("cwd")
                if isinstance(cwd, str) and os.path.isabs(cwd) and "\0" not in cwd:  # noqa: PTH117
                    return Path(cwd)
    return None


# --- what is in them -------------------------------------------------------------------------------------------------


def _memory(host: str, folder: Path, project: str, projects: Mapping[Path, list[Path]], until: float) -> Memory:
    """Return what is in one memory; what cannot be read, or is cut by its host, is a finding.

    `project` is empty where it is of none. `until`, by `time.monotonic`, its inbox may be examined.
    """
    findings: list[str] = []
    files, decisions = [], None
    try:
        chosen = plan.choose(Options(workspace=str(folder), read_only=True))
        files = [note for note in roots.scan(chosen.roots).notes if note.source == roots.MEMORY]
        # The first of the hosts is OpenClaw.
        limit = budget.CLAUDE_CODE if host == "Claude Code" else budget.hosts(chosen.config, folder)[0]
        with suppress(OSError):
            size = budget.measure(durable.read_regular(folder / "MEMORY.md"), limit)
            if size.cut is not None:
                findings.append(size.sentence)
        if sum(note.size for note in files) <= _MOST_EXAMINED:
            decisions = _decisions(chosen, until)
    except MemoryTuiError as error:
        findings.append(f"{error.message} {error.next_step}".rstrip())
    moved_to = None
    if project and not Path(project).is_dir():
        sentence, moved_to = _moved_to(folder, Path(project), projects)
        findings.append(f"The project {project} is gone. {sentence}")
    elif project:
        _keep_root(folder, Path(project))
    changed = max((note.mtime_ns for note in files), default=0) / 1e9
    total = sum(note.size for note in files)
    return Memory(host, folder, project, len(files), total, changed, tuple(findings), moved_to, decisions)


def _decisions(chosen: Plan, until: float) -> int | None:
    """Return how many decisions wait in the inbox of a memory; None without an index, or where `until` is reached.

    Raises MemoryTuiError.
    """
    if chosen.index.exists():
        # With it comes numpy, for which the first frame of the screen does not wait.
        from memory_tui.engine.engine import Engine

        with suppress(Cancelled), Engine(chosen) as engine:
            return len(engine.inbox.examine(stopped=lambda: time.monotonic() > until).groups)
    return None


def _keep_root(folder: Path, project: Path) -> None:
    """Write down the first commit of a project, by which it is known when it has moved."""
    known, key = _KNOWN.of(_SCOPE), os.path.realpath(folder)
    with suppress(MemoryTuiError):
        if not known.read().get(key) and (first_commit := Repository(project).root()):
            known.put(key, {"root": first_commit})


def _moved_to(folder: Path, project: Path, projects: Mapping[Path, list[Path]]) -> tuple[str, Path | None]:
    """Return a sentence about where a project that was renamed or moved is now, and where its memory can be brought.

    None where that is unknown, or where a memory lies already.
    """
    first_commit = (_KNOWN.of(_SCOPE).read().get(os.path.realpath(folder)) or {}).get("root")
    beside = [path for path in project.parent.glob("*") if (path / ".git").exists()]
    sessions = [path for folders in projects.values() for path in folders if path.is_dir()]
    for candidate in dict.fromkeys((*sessions, *beside)):
        with suppress(EditRefused, OSError):
            if first_commit and Repository(candidate).root() == first_commit:
                place = claude_code.auto_memory(candidate)
                if place.is_symlink() or (place.is_dir() and any(place.iterdir())):
                    return f"It is now {candidate}, which has a memory; bring over by hand what that lacks.", None
                return f"It is now {candidate}.", place
    return "Where it is now is not known.", None


# --- bringing one after its project ----------------------------------------------------------------------------------


def last_move() -> tuple[Path, Path]:
    """Return where the memory that was moved last was, and where it is. Raises ConfigError, StateUnavailable."""
    for old, new in reversed(_MOVED.of(_SCOPE).read().values()):
        if Path(new).is_dir():
            return Path(old), Path(new)
    raise ConfigError("No memory was moved by memory-tui.", "There is nothing to take back.")


def move(old: Path, new: Path, *, back: bool = False) -> str:
    """Give a memory another place, or its old one `back`; returns what was done.

    Raises ConfigError, StateUnavailable.
    """
    if not back:
        # Written down first, so that it can be taken back whatever stops this process.
        _MOVED.of(_SCOPE).put(str(time.time_ns()), [str(old), str(new)])
    try:
        durable.make_folder(new.parent)
        # The disk refuses a place that has notes.
        durable.move_file(old, new)
    except OSError as error:
        raise ConfigError(f"{old} cannot be moved to {new}: {error.strerror or error}.", "Nothing was moved.") from None
    return f"{old} is now {new}." + ("" if back else " memory-tui memories --undo takes that back.")


def lines(every: list[Memory]) -> Iterator[str]:
    """Yield the memories, one a line, with what is to be said of each below it."""
    if not every:
        yield "No agent on this machine has a memory yet. memory-tui demo shows one, --workspace FOLDER opens yours."
    for memory in every:
        yield one_line(f"{memory.host}: {memory.folder}  {memory.facts}")
        yield from (f"  {one_line(finding)}" for finding in memory.findings)
        if memory.moved_to is not None:
            step = f"memory-tui memories --move {shlex.quote(str(memory.folder))}"
            yield one_line(f"  {step} brings it to {memory.moved_to}.")
