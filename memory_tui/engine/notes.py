"""The notes of one engine are read, listed, explained, changed, and examined for what needs a decision."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Collection
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from memory_tui import recall_log
from memory_tui.agents import AgentTurn, SessionTurns
from memory_tui.config.settings import MEMORY_GET, NEWEST_OPENCLAW, OWN_PROFILE, profile_named
from memory_tui.engine.index import Index
from memory_tui.engine.search import Backend, Search
from memory_tui.errors import EditRefused, QueryError, SettingError, Unreadable
from memory_tui.formatting import minute, plural
from memory_tui.hosts import claude_code
from memory_tui.inbox import Decisions, Findings, checks
from memory_tui.inbox.checks import CheckProgress
from memory_tui.index.store import Store, WithoutVector
from memory_tui.index.sync import Freshness
from memory_tui.notes import edit, history
from memory_tui.notes.authors import name_authors
from memory_tui.notes.edit import Curator
from memory_tui.notes.history import Recorder
from memory_tui.notes.journal import JournalEntry
from memory_tui.openclaw import prompt
from memory_tui.openclaw.prompt import CuratedEntry, Triggered
from memory_tui.openclaw.trust import FileTrust
from memory_tui.plan import Plan
from memory_tui.workspace.notes import CURATED, Annotations, Document, NoteLines, date_of, note_lines, span
from memory_tui.workspace.roots import NoteMissing, PathVerdict, Roots, document, note, scan, why_path
from memory_tui.workspace.scan import Scan

_LONGEST_SAID, _MOST_UNASKED = 400, 20
"""Characters of what a person said, beyond which it is no question; turns of a session that are looked up."""


class Past(Struct, frozen=True):
    """Changes, newest first; which of them can be taken back or made again; `problem` is why there are none.

    With `more` there are older ones.
    """

    entries: tuple[JournalEntry, ...] = ()
    more: bool = False
    undoable: frozenset[int] = frozenset()
    redoable: frozenset[int] = frozenset()
    problem: str = ""


class FileRow(Struct, frozen=True):
    """One note for a list: `state` is fresh or one of `index.freshness.State`, `detail` why, `mtime` epoch seconds."""

    path: str
    source: str
    state: str
    detail: str
    chunks: int
    size: int
    mtime: float
    day: dt.date | None
    kind: str = ""
    """The type of a fact in Claude Code's memory; empty for other notes."""
    title: str = ""
    """What it is called beside its date, or beside its path where it has none; not yet safe to show."""
    dated: str = ""
    """Its date as in ISO 8601: the day, week or month that begins with `day`."""


class Notes:
    """The notes of `plan`, which is the engine's as it is now; `notice` gets what a person should know."""

    def __init__(
        self, plan: Plan, index: Index, search: Search, backend: Backend | None, notice: Callable[[str], None]
    ) -> None:
        self.plan = plan
        self._index, self._search, self._backend, self._notice = index, search, backend, notice

    @cached_property
    def curator(self) -> Curator:
        """Return what changes notes and takes changes back; after each one the index is brought up to date."""
        return edit.curator(self.plan, lambda _: self._index.request_sync("edit"))

    def read(self, path: str) -> Document:
        """Return a note as it is on disk, a transcript line by line, or as the mirror has it of which these notes are.

        Raises PathRefused, Unreadable, IndexUnavailable.
        """
        return self._copy(path) if self.plan.mirror else document(self.plan.roots, path)

    def _copy(self, path: str) -> Document:
        """Return a note as the mirror has it, put together from its chunks. Raises NoteMissing, Unreadable."""
        with self._search.reader() as store, store.snapshot():
            if (row := store.note(path)) is None:
                raise NoteMissing(f"There is no note {path}.", "Look for its path in an answer of its scope.")
            if not row.chunks and row.detail:
                raise Unreadable(f"{path} has no text here: {row.detail}.", f"Ask {row.workspace} for it.")
            # What is indexed is sound UTF-8, whatever the file was.
            return Document(path, store.last_text(row), row.hash, row.size, row.mtime_ns, replaced=0, nul=False)

    def get(self, path: str, start: int = 1, lines: int | None = None) -> NoteLines:
        """Return some lines of a note: at most 120, and the characters configured. Raises as `read` does."""
        source = self._backend.document(path) if self._backend is not None else None
        source = source or (self._copy(path) if self.plan.mirror else note(self.plan.roots, path))
        return note_lines(source, start, lines, self.plan.config.whole(MEMORY_GET))

    def files(self) -> tuple[FileRow, ...]:
        """Return every note with its state, by path."""
        roots = self.plan.roots
        # Partly: where a root cannot be read, the notes of all others are listed.
        seen = scan(roots, partly=True)
        return self._search.on_snapshot(
            lambda store: _file_rows(store, seen, self._index.freshness(store, seen), roots)
        )

    def why_file(self, path: str) -> PathVerdict:
        """Return why a path is, or is not, part of the memory, and what the index has of it."""
        seen = scan(self.plan.roots)
        verdict = why_path(self.plan.roots, path, seen)

        def indexed(store: Store) -> str:
            """Return what the index has of the note, as a sentence."""
            return _indexed_as(verdict.path, verdict.included, store, self._index.freshness(store, seen))

        return replace(verdict, index=self._search.on_snapshot(indexed))

    def trust_of(self, path: str) -> FileTrust | None:
        """Return what the ledger says of one note; None where it does not cover it."""
        trust = self.curator.plan.trust
        return None if trust is None else trust.of(path)

    def injected(self, message: str) -> list[Triggered]:
        """Return the curated entries that OpenClaw 2026.9 injects for `message`, each with its reason.

        Raises SettingError where the index was cut by another release's rules.
        """
        plan, search = self.plan, self._search
        if plan.profile.chunking != profile_named(NEWEST_OPENCLAW).chunking:
            step = f"Use --profile {NEWEST_OPENCLAW}."
            raise SettingError("Only OpenClaw 2026.9 injects entries by their triggers.", step)
        # As OpenClaw asks for them: so many hits, whatever their scores.
        changes = {"query.maxResults": prompt.SEARCHED, "query.minScore": 0.0}
        settings = plan.settings.update(changes, "trigger recall")
        trace = search.rank(search.gather(message, by_words=True), settings)
        scores = {hit.chunk.id: hit.score for hit in trace.recalled}
        trust = {path: self.trust_of(path) for path in CURATED}
        with search.reader() as store, store.snapshot():
            annotations = {rowid: Annotations(*values) for rowid, values in store.annotations().items()}
            chunks = [
                (path, chunk) for path in CURATED for chunk in store.chunks_of(path) if chunk.rowid in annotations
            ]
            chunks = [(path, chunk) for path, chunk in chunks if annotations[chunk.rowid].triggers]
            chunks = chunks[: prompt.MOST_CANDIDATES]
            texts = store.texts([chunk.rowid for _, chunk in chunks])
        entries = []
        for path, chunk in chunks:
            place = path, chunk.start_line, chunk.end_line, texts.get(chunk.rowid, "")
            score = scores.get(chunk.chunk_id, 0.0)
            # Notes that no ledger covers are injected.
            ledger = trust[path]
            trusted = ledger is None or ledger.state != "untrusted"
            entries.append(CuratedEntry(*place, annotations[chunk.rowid], score, trusted))
        return prompt.triggered(message, entries, plan.projects)

    def with_known(self, session: SessionTurns) -> SessionTurns:
        """Return `session` whose newest turns tell what the memory knew, where the agent did not ask it.

        A turn tells the citation of the best passage alone. It is searched by words, so that nothing of a conversation
        goes to a provider. Raises IndexUnavailable, Cancelled.
        """
        older, newest = session.turns[:-_MOST_UNASKED], session.turns[-_MOST_UNASKED:]
        return replace(session, turns=(*older, *map(self._with_known, newest)))

    def _with_known(self, turn: AgentTurn) -> AgentTurn:
        """Return `turn` with the citation of what the memory knows for it.

        Unchanged where the agent asked the memory, where a person said too much for a question, or nothing is found.
        """
        if turn.recalls or not turn.said.strip() or len(turn.said) > _LONGEST_SAID:
            return turn
        try:
            trace = self._search.search(turn.said, self.plan.with_profile(OWN_PROFILE), by_words=True)
        except QueryError:
            return turn
        if trace.level is None or trace.level.level != "found" or not trace.recalled:
            return turn
        # The best one.
        hit = trace.recalled[0]
        return replace(turn, knew=prompt.citation(hit.chunk.path, hit.chunk.start_line, hit.last_line))

    def attribute(self) -> list[str]:
        """Write down who made the changes of which nobody asked yet; return what cannot be read. Raises EditRefused."""
        if self.plan.options.read_only:
            return []
        return name_authors(self.curator.journal, self.plan.roots, time.time())

    @cached_property
    def recorder(self) -> Recorder | None:
        """Return what records what becomes of the notes; None where it is switched off: then the record is emptied."""
        if self.plan.options.read_only:
            return None
        if self.plan.settings.on("history.enabled"):
            return Recorder(self.plan.roots, self.curator.journal, self._index.writer.closing, self._notice)
        try:
            # None where nothing was recorded yet.
            if self.curator.journal.numbers().began is not None:
                # Changes that were made here stay, so that they can be taken back.
                self.curator.journal.clear(others=True)
        except EditRefused as error:
            self._notice(f"{error.message} {error.next_step}")
        return None

    def record(self) -> None:
        """Record what became of all notes, where that is switched on."""
        if self.recorder is not None:
            self.recorder.see()

    def news(self) -> str:
        """Return what others changed since a person last looked, as a sentence, empty for nothing.

        Raises EditRefused.
        """
        self.record()
        self.attribute()
        words = history.news(self.curator.journal.unviewed())
        return f"Since you last looked: {words}." if words else ""

    def viewed(self) -> None:
        """Find out who made what is new, and write down that a person looked. Raises EditRefused."""
        self.attribute()
        if not self.plan.options.read_only and self.curator.journal.unviewed():
            self.curator.journal.view()

    def past(self, path: str = "", most: int = 500) -> Past:
        """Return the newest `most` changes of the note `path`, or of all notes without one. Raises EditRefused."""
        journal, note = self.curator.journal, path or None
        known = (entry for entry in history.history(journal, note, most=most) if entry.state in ("done", "draft"))
        more = len(journal.edits(note, most=most)) == most
        undoable, redoable = (frozenset(entry.id for entry in self.curator.stack(way)) for way in ("undo", "redo"))
        return Past(tuple(known), more, undoable, redoable)

    def origins(self, path: str) -> dict[int, str]:
        """Return when and by whom each line of a note came that is in the record. Raises EditRefused."""
        data = self.curator.read(path)
        with self.curator.journal.kept():
            # One for each line, None for a line that is older than the record.
            edits = history.blame(self.curator.journal, path, data) if data else []
        words = {edit: f"{minute(edit.at)} by {history.who(edit)}" for edit in edits if edit}
        return {number: f"line {number}: {words[edit]}" for number, edit in enumerate(edits, 1) if edit}


# --- the list of notes ---------------------------------------------------------------------------------------------


def _file_rows(store: Store, scan: Scan, freshness: Freshness, roots: Roots) -> tuple[FileRow, ...]:
    """Return every note on disk and every note that only the index still has, by path.

    The type of a fact in Claude Code's memory stands in its front matter, which is read for it.
    """
    indexed, without_vector = store.indexed(), _withheld_or_rejected(store)
    on_disk = {note.path: note for note in scan.notes}
    facts = claude_code.facts(roots, {note.path: note.absolute for note in scan.notes})
    rows = []
    for path in sorted({*on_disk, *freshness.stale}):
        row, differs = indexed.get(path), freshness.stale.get(path)
        # A note that only the index has is shown as it was.
        file = on_disk.get(path) or row
        dated = row.dated if row else date_of(path)
        remarks = filter(None, (row.detail if row else "", without_vector.get(path)))
        rows.append(
            FileRow(
                path=path,
                source=file.source if file else "memory",
                state=differs.state if differs else "fresh",
                detail=differs.detail if differs else "; ".join(remarks),
                chunks=row.chunks if row else 0,
                size=file.size if file else 0,
                mtime=file.mtime_ns / 1e9 if file else 0.0,
                day=span(dated)[0] if dated else None,
                kind=facts[path].type if path in facts else "",
                title=row.title if row else "",
                dated=dated,
            )
        )
    return tuple(rows)


def _withheld_or_rejected(store: Store) -> dict[str, str]:
    """Return which lines of a note have no vector and why, by path: withheld from the provider, or rejected by it."""
    chunks_of: dict[str, list[WithoutVector]] = {}
    for chunk in (*store.withheld(), *store.rejected()):
        chunks_of.setdefault(chunk.path, []).append(chunk)
    reasons = {}
    for path, chunks in chunks_of.items():
        lines = ", ".join(f"{chunk.start_line}-{chunk.end_line}" for chunk in chunks[:3])
        more = " and more" if len(chunks) > 3 else ""
        # A chunk as text is why it has no vector.
        reasons[path] = f"lines {lines}{more} {chunks[0]}"
    return reasons


def _indexed_as(path: str, included: bool, store: Store, freshness: Freshness) -> str:
    """Return what the index has of the note `path`, which is `included` in the memory or not, as a sentence."""
    row, differs = store.file(path), freshness.stale.get(path)
    if not included:
        return "" if row is None else "The index still has it; the next sync removes it."
    if differs is None:
        index = f"Indexed as it is on disk, in {plural(row.chunks if row else 0, 'chunk')}"
        return "; ".join(filter(None, (index, _withheld_or_rejected(store).get(path)))) + "."
    if differs.state == "missing root":
        return f"The index keeps it although the file is missing: {differs.detail}"
    if differs.state != "pending":
        return f"It could not be indexed: {differs.detail}"
    # A transcript that has not grown enough to be indexed by itself.
    if differs.patient:
        return f"Not searchable as it is on disk, and not being indexed: {differs.detail}."
    return f"Not searchable as it is on disk: {differs.detail}; the next sync indexes it."


# --- the inbox -------------------------------------------------------------------------------------------------------


class Inbox:
    """What in `notes` needs a decision; `notice` gets what a person should know."""

    def __init__(self, notes: Notes, notice: Callable[[str], None]) -> None:
        self._notes, self._notice, self._cache = notes, notice, checks.FindingCache()

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
        kinds: Collection[str] = (),
    ) -> Findings:
        """Return what should be looked at, grouped by cause; takes seconds on a large memory.

        What a person decided already is left out, unless `every` is wanted. A check that is off runs where `kinds`
        names it. `progress` hears how far it is. Raises Cancelled when `stopped` says so, EditRefused.
        """
        plan = self._notes.plan
        log = recall_log.read(recall_log.recall_log_path(plan.roots.workspace))
        # Where too few recalls were logged nothing can be told.
        delivered = frozenset(log.delivered) if log.since else None
        inputs = checks.inputs_of(plan, self._notes.curator, delivered)
        findings = checks.examine(inputs, progress, stopped, kinds, self._cache)
        if every:
            return findings
        hidden = self.decisions.hidden(findings.suggestions, plan.clock())
        undecided = (suggestion for suggestion in findings.suggestions if suggestion.id not in hidden)
        return replace(findings, groups=tuple(checks.grouped(undecided)))
