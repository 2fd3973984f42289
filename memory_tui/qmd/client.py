"""The client asks QMD a question after it has seen that QMD can answer it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import PathRefused, QueryError, Unreadable
from memory_tui.core.tokens import is_cjk
from memory_tui.qmd import answer, index, models, options, program
from memory_tui.qmd.answer import QmdHit, Source
from memory_tui.qmd.folder import QmdFailure, QmdFolder
from memory_tui.qmd.index import Coverage, QmdIndex
from memory_tui.qmd.options import QmdOptions
from memory_tui.qmd.program import Program
from memory_tui.qmd.remarks import (
    AskedAsTyped,
    BlankForQmd,
    FilesChangedSince,
    NoneHoldsEveryWord,
    NoRequiredWord,
    NothingNear,
    NothingOfSource,
    OutOfScope,
    QmdRemark,
)
from memory_tui.workspace import notes
from memory_tui.workspace.notes import Document
from memory_tui.workspace.scan import Found

if TYPE_CHECKING:
    from memory_tui.approval import Approvals
    from memory_tui.plan import Choices
    from memory_tui.qmd.program import QmdServer

MOST_QUERY = 50_000
"""Characters of the longest question, as of the built-in index."""
APPROVED_AS = "qmd"
"""What the approval to run QMD is saved under."""
Way = Literal["search", "vsearch", "query", "query vec", "server"]


class QmdAnswer(Struct, frozen=True):
    """One answer of QMD, and how it was had.

    `empty` says why there is no hit, None where there is one; `remarks` what else a person should know of it. `ran` is
    the command as a list of words, empty over the server; `asked` names the collections. Times are in milliseconds.
    """

    query: str
    mode: str
    way: Way
    hits: tuple[QmdHit, ...]
    behind: int
    updated: float
    ran: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    empty: QmdRemark | None = None
    remarks: tuple[QmdRemark, ...] = ()
    ms: float = 0.0

    @property
    def claims(self) -> tuple[QmdRemark, ...]:
        """All remarks on the answer; first, where it is empty, the reason."""
        return (*((self.empty,) if self.empty is not None else ()), *self.remarks)

    def trace(self) -> dict[str, Any]:
        """How the answer was made, as JSON-ready data."""
        return {
            "backend": "qmd",
            "mode": self.mode,
            "way": self.way,
            "command": list(self.ran),
            "collections": list(self.asked),
            "behind": self.behind,
            "updatedAt": self.updated or None,
            "milliseconds": round(self.ms, 1),
            "scores": [{"rank": hit.rank, "score": hit.score} for hit in self.hits],
        }


class Ready(Struct, frozen=True):
    """That QMD can be asked: the program, the state of its index, what its collections are called."""

    program: Program
    index: QmdIndex
    coverage: Coverage
    sources: Mapping[str, Source]
    updated: float


def place_of(choices: Choices) -> QmdFolder:
    """The folder of this agent's QMD: as named, else beside the index."""
    if choices.asked.qmd_home:
        return QmdFolder(Path(choices.asked.qmd_home).expanduser().absolute(), owned=False)
    folder = choices.index.absolute()
    return QmdFolder(
        folder.with_name(f"{folder.name}.qmd") if choices.asked.index else folder.parent / "qmd", owned=True
    )


class QmdClient:
    """QMD of one plan. Every method may be called from any thread."""

    def __init__(self, choices: Choices, approvals: Approvals) -> None:
        self.options = QmdOptions.of(choices)
        self.place = place_of(choices)
        exported = Path(self.options.export_folder).expanduser() if self.options.export_folder else self.place.exported
        self.exported = exported
        self.wanted = self.options.collections(exported)
        self._approvals = approvals
        self._server: QmdServer | None = None
        self._resident = False

    @property
    def folder(self) -> Path:
        """Where QMD is run: in the workspace, as OpenClaw does.

        A folder .qmd there, or above, would take the place of the index and of its configuration; then elsewhere.
        """
        workspace = Path(self.options.workspace)
        taken = any((folder / ".qmd").exists() for folder in (workspace, *workspace.parents))
        return self.place.folder if taken else workspace

    # --- who may be started ------------------------------------------------------------------------------------------

    def found(self) -> Program:
        """The program, found and not started. Raises QmdFailure."""
        return program.find(self.options.command)

    def approved(self, found: Program) -> bool:
        """Whether `found` may be started: a person named it, or agreed to the very command line."""
        return not self.options.named_by or self._approvals.find(APPROVED_AS, found.line) is not None

    def approve(self, how: str) -> Program:
        """Save that the program may be started; returns it. Raises QmdFailure, ApprovalUnsaved."""
        found = self.found()
        self._approvals.approve(APPROVED_AS, found.line, how)
        return found

    def startable(self, stop: Stop | None = None) -> Program:
        """The program, approved and of a version that is known. Raises QmdFailure, Cancelled."""
        found = self.found()
        if not self.approved(found):
            raise QmdFailure(
                "approval",
                f"{self.options.named_by} asks for QMD, and you have not agreed to run it: {found.line}",
                "To agree: memory-tui qmd approve.",
            )
        return program.checked(found, self.place, stop)

    # --- asking ------------------------------------------------------------------------------------------------------

    def ready(self, stop: Stop | None = None) -> Ready:
        """Everything that can be known without asking: milliseconds, once the version is known. Raises QmdFailure."""
        found = self.startable(stop)
        models.unharmed(self.place)
        if self.options.mode != "search":
            self._require_models()
        known, updated = index.read(self.place.index), self.place.upkeep().updated
        seen = index.coverage(known, self.wanted, updated)
        sources = {
            one.name: Source(one, wanted.source, self.options.workspace)
            for wanted in self.wanted
            if (one := known.serving(wanted)) is not None
        }
        if not sources or not seen.documents:
            raise QmdFailure("index", seen.sentence(), index.UPDATE)
        if self.options.needs_vectors and not known.vectors:
            raise QmdFailure(
                "models", "QMD's index has no vectors, so it cannot compare meanings.", "Run memory-tui qmd embed."
            )
        return Ready(found, known, seen, sources, updated)

    def _require_models(self) -> None:
        """Raises QmdFailure, with the file that is missing, where QMD would download a model."""
        if self.options.mode == "vsearch" and not models.models(self.place)["generate"].ready:
            # Given as a typed search the question needs no model that rewrites it.
            models.require(self.place, "vsearch", ("embed",))
        else:
            models.require(self.place, self.options.mode, models.NEEDED[self.options.mode])

    def ask(
        self, query: str, most: int, session_key: str = "", source: str = "", stop: Stop | None = None
    ) -> QmdAnswer:
        """QMD's answer of at most `most` hits; `source` is memory, sessions, or empty for both.

        Raises QmdFailure, QueryError, Cancelled.
        """
        if len(query) > MOST_QUERY:
            raise QueryError(
                f"The question has {len(query):,} characters; at most {MOST_QUERY:,} are searched.",
                "Ask in fewer words.",
            )
        mode = self.options.mode
        if not query.strip():
            return QmdAnswer(query, mode, "search", (), 0, 0.0, empty=BlankForQmd())
        if not options.allowed(self.options.scope, session_key):
            return QmdAnswer(query, mode, "search", (), 0, 0.0, empty=OutOfScope(session_key))
        began = time.perf_counter()
        state = self.ready(stop)
        sources = {name: one for name, one in state.sources.items() if source in ("", one.source)}
        limit = min(most, self.options.max_results)
        way, ran, rows = self._rows(state, query, limit, tuple(sources), stop)
        if not rows and not state.coverage.whole:
            raise QmdFailure("index", state.coverage.sentence(), index.UPDATE)
        found, cut = answer.bounded(
            answer.hits(rows, sources), limit, self.options.max_snippet, self.options.max_injected
        )
        remarks: list[QmdRemark] = [cut] if cut is not None else []
        if way == "query vec":
            remarks.append(AskedAsTyped("generate"))
        if state.coverage.behind:
            remarks.append(FilesChangedSince(state.coverage.behind, state.updated))
        return QmdAnswer(
            query,
            mode,
            way,
            tuple(found),
            state.coverage.behind,
            state.updated,
            ran,
            tuple(sources),
            None if rows else _why_empty(query, mode, source, tuple(state.sources), tuple(sources)),
            tuple(remarks),
            ms=(time.perf_counter() - began) * 1000,
        )

    def document(self, path: str) -> Document:
        """The file that a hit calls `qmd/collection/path`. Raises PathRefused, Unreadable."""
        name, _, below = path.removeprefix("qmd/").partition("/")
        known = index.read(self.place.index)
        collection = known.collections.get(name)
        serves = collection is not None and any(known.serving(one) is collection for one in self.wanted)
        if collection is None or not serves or below not in collection.documents:
            raise PathRefused(f"{path} is no document of QMD.", "Name it as memory_search does.")
        absolute = os.path.realpath(os.path.join(collection.path, below))  # noqa: PTH118
        root = os.path.realpath(collection.path)
        if not absolute.startswith(root.rstrip(os.sep) + os.sep):
            raise PathRefused(f"{path} leads out of its collection.", "Only files inside a collection are read.")
        try:
            status = os.lstat(absolute)
        except OSError as error:
            raise Unreadable(f"{path} cannot be read: {error.strerror}.", "Run memory-tui qmd update.") from error
        return notes.read(Found.of(path, absolute, status, root))

    def ranked(self, query: str, most: int, stop: Stop | None = None) -> list[QmdHit]:
        """QMD's first `most` hits as it ranks them, without any bound of ours. Raises QmdFailure, Cancelled."""
        state = self.ready(stop)
        _, _, rows = self._rows(state, query, most, tuple(state.sources), stop)
        return answer.hits(rows, state.sources)

    def _rows(
        self, state: Ready, query: str, limit: int, names: tuple[str, ...], stop: Stop | None
    ) -> tuple[Way, tuple[str, ...], list[Any]]:
        """How it was asked, the command line, and the rows as they came."""
        if not names:
            return "search", (), []
        words = query.replace("\0", " ")
        way: Way = self.options.mode  # type: ignore[assignment]
        if way == "vsearch" and not models.models(self.place)["generate"].ready:
            way = "query vec"
        kind = {"search": "lex", "query vec": "vec"}.get(way)
        if kind is not None and (server := self._serving(state.program)) is not None:
            typed = {"type": kind, "query": " ".join(words.split())}
            # Of named collections the server joins the ranks, of all together it ranks by one score, as `search` does.
            asked = () if set(names) == set(state.index.collections) else names
            return "server", (), server.query([typed], asked, limit, self.options.search_seconds)
        arguments = _arguments(way, words, limit, names)
        output = program.run(
            state.program.words,
            arguments,
            self.place.environment(),
            self.folder,
            self.options.search_seconds,
            stop,
        )
        program.finished(output, arguments[0])
        return way, (*state.program.words, *arguments), answer.rows_of(output.stdout)

    def _serving(self, found: Program) -> QmdServer | None:
        """The server where it is wanted and answers; one that is still starting keeps nobody waiting."""
        if not self.options.server or not self._resident:
            return None
        if self._server is None:
            self.serve(found)
        server = self._server
        if server is not None and not server.ready:
            server.warm()
        return server if server is not None and server.ready else None

    def serve(self, found: Program) -> QmdServer:
        """Keep a server from now on. Raises QmdFailure."""
        from memory_tui.qmd.program import QmdServer

        self._resident = True
        if self._server is None:
            self._server = QmdServer(found, self.place, self.folder)
            self._server.warm()
        return self._server

    def close(self) -> None:
        """End what runs."""
        if self._server is not None:
            self._server.close()


def _why_empty(query: str, mode: str, source: str, every: tuple[str, ...], asked: tuple[str, ...]) -> QmdRemark:
    """Why QMD had no row: of the collections `every` those `asked` are of `source`."""
    if not asked:
        return NothingOfSource(source, every)
    if mode != "search":
        return NothingNear(asked, query)
    parts = terms(query)
    words = tuple(part.words for part in parts if not part.negated)
    if not words:
        return NoRequiredWord(query)
    return NoneHoldsEveryWord(asked, words, tuple(part.words for part in parts if part.negated))


def _arguments(way: Way, words: str, limit: int, names: Sequence[str]) -> list[str]:
    """The words behind `qmd`; all collections are asked in one call."""
    if way == "query vec":
        found = ["query", f"vec: {' '.join(words.split())}", "--no-rerank"]
    else:
        # A leading dash would be an option, and QMD drops the options behind `--`.
        found = [str(way), f" {words}" if words.startswith("-") else words]
    found += ["--json", "-n", str(limit)]
    for name in names:
        found += ["-c", name]
    return found


_HYPHENATED = re.compile(r"[^\W_][\w'-]*-[^\W_][\w'-]*\Z")
_DOTTED = re.compile(r"\w+(?:\.\w+)+\Z")
_PART = re.compile(r'(-?)"([^"]*)"?|([^\s"]+)')


class Term(Struct, frozen=True):
    """A part of a question as QMD asks for it: its words, the full-text expression, and whether it must not match."""

    words: str
    expression: str
    negated: bool = False


def terms(query: str) -> list[Term]:
    """The parts of `query` by QMD's rule: all must match, a word as the beginning of one; those with `-` must not."""
    found = []
    for part in _PART.finditer(query):
        if part[3] is None:
            phrase = " ".join(filter(None, map(_clean, part[2].split())))
            found += [Term(part[2], f'"{phrase}"', bool(part[1]))] if phrase else []
            continue
        negated, word = part[3].startswith("-"), part[3].removeprefix("-")
        found += [Term(word, expression, negated) for expression in _expressions(word)]
    return found


def _expressions(word: str) -> Iterator[str]:
    if _HYPHENATED.match(word):
        yield f'"{" ".join(filter(None, map(_clean, word.split("-"))))}"'
    elif _DOTTED.match(word):
        yield from (f'"{_clean(piece)}"*' for piece in word.split(".") if _clean(piece))
    elif is_cjk(word):
        # QMD stores such text with a blank around each character, and asks for the characters in a row.
        yield f'"{" ".join(letter for letter in word if letter.isalnum())}"'
    elif cleaned := _clean(word):
        yield f'"{cleaned}"*'


def _clean(word: str) -> str:
    return "".join(letter for letter in word if letter.isalnum() or letter in "'_").lower()
