"""The inbox of one engine names what in the notes needs a decision, and keeps what was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from msgspec.structs import replace

from memory_tui.approval import cleared
from memory_tui.engine.notes import Notes
from memory_tui.inbox import checks, inputs
from memory_tui.inbox.checks import CheckProgress
from memory_tui.inbox.corrections import Corrections, Line
from memory_tui.inbox.entries import Decisions, Findings
from memory_tui.recalls import recall_log
from memory_tui.workspace.overtaken import is_overtaken

_FEWEST_RECALLS, _FEWEST_SECONDS = 20, 14 * 86_400.0
"""Fewer logged recalls, or over less time, do not tell which notes nobody needs."""


class Inbox:
    """What in `notes` needs a decision; `notice` gets what a person should know."""

    def __init__(self, notes: Notes, notice: Callable[[str], None]) -> None:
        self._notes, self._notice = notes, notice

    @cached_property
    def decisions(self) -> Decisions:
        """Return what was decided about suggestions without changing a note."""
        return Decisions(self._notes.curator.journal.folder, self._notice)

    def examine(
        self,
        progress: CheckProgress = lambda *_: None,
        stopped: Callable[[], bool] = lambda: False,
        *,
        every: bool = False,
    ) -> Findings:
        """Return what should be looked at, by its cause; seconds on a large memory. With `every` what was decided, too.

        `progress` hears how far it is. Raises Cancelled when `stopped` says so, EditRefused.
        """
        plan = self._notes.plan
        now = plan.clock()
        curator = self._notes.curator
        none = cleared(plan.roots.workspace)
        view = inputs.view(plan, now, self._notes.trust(), curator, self.recalled_paths(), none)
        findings = checks.examine(view, progress, stopped)
        if every:
            return findings
        hidden = self.decisions.hidden(findings.suggestions, now)
        return replace(
            findings, groups=tuple(checks.grouped(row for row in findings.suggestions if row.id not in hidden))
        )

    def overtaken(self) -> Mapping[tuple[str, int], Line | None]:
        """Return path and line of every overtaken line, and the line that overtakes it, None where only a mark does.

        Reads every note; the text alone tells a marked line: `memory_tui.workspace.overtaken.is_overtaken`.
        """
        pairs = Corrections(tuple(inputs.notes_of(self._notes.plan.roots)), lambda: False)
        marks: dict[tuple[str, int], Line | None] = {
            (line.path, line.number): None for line in pairs.lines if is_overtaken(line.text)
        }
        found = ((pair.old, pair.new) for pair in pairs.pairs() if not pair.perhaps)
        return marks | {(old.path, old.number): new for old, new in found}

    def recalled_paths(self) -> frozenset[str] | None:
        """Return the paths that logged recalls and reads delivered; None where too few were logged to tell."""
        entries = recall_log.read(recall_log.recall_log_path(self._notes.plan.roots.workspace)).entries
        if len(entries) < _FEWEST_RECALLS or entries[-1].at - entries[0].at < _FEWEST_SECONDS:
            return None
        return frozenset(path for entry in entries for path in entry.delivered)
