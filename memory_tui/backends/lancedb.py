"""Store, search, forget and undo long-term memories by the rules of OpenClaw's plug-in memory-lancedb.

Entries exist nowhere else, so they are sources: nothing is written before a person agrees once, one process at a time
makes a change, and the versions of the table undo it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import importlib
import json
import math
import os
import re
import threading
import time
import unicodedata
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import platformdirs
from msgspec import Struct
from msgspec.structs import replace

from memory_tui import durable, jsstring
from memory_tui import plan as plans
from memory_tui.approval import Approvals, cleared
from memory_tui.config import places
from memory_tui.config.settings import LANCEDB
from memory_tui.errors import IndexUnavailable, MemoryTuiError, ProviderError, QueryError, SettingError
from memory_tui.formatting import install_extra, one_line, safe
from memory_tui.locks import WriterLock
from memory_tui.openclaw.agent_sessions import record_of
from memory_tui.openclaw.prompt import RECALL, STORE
from memory_tui.plan import NAMED, Plan
from memory_tui.providers import Vectors
from memory_tui.providers.chain import NONE, Chain, ChainMember
from memory_tui.providers.registry import ProviderSettings, takes_secrets
from memory_tui.secrets.finder import Known, kinds
from memory_tui.state_db import Table

T = TypeVar("T")
Rows: TypeAlias = Any
"""Whole rows, as a table of Arrow."""
TABLE = "memories"
"""The name of the table, as OpenClaw has it."""
FIELDS = ("id", "text", "importance", "category", "createdAt")
COMPACT_AT = 100
"""Each store makes a small file; from so many on they are joined. Older versions of the table stay for seven days."""
_MODEL = b"memory-tui.model"
"""What the schema of a table that memory-tui made says of who made its vectors, as JSON."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LOADING = threading.Lock()


class MemoriesUnavailable(MemoryTuiError):
    """The table of entries cannot be read, written or trusted."""

    code = "memories"


class TableMissing(MemoriesUnavailable):
    """There is no table of entries yet."""

    code = "memories_missing"


class EntryRefused(MemoryTuiError):
    """A change of entries that is not made; the table is as it was."""

    code = "entry_refused"
    exit_status = 2


class MemoryEntry(Struct, frozen=True):
    """One entry: `importance` from 0 to 1, `created_at` in milliseconds since 1970."""

    id: str
    text: str
    importance: float
    category: str
    created_at: float

    @property
    def day(self) -> str:
        """Return the day on which it was stored."""
        try:
            return dt.datetime.fromtimestamp(self.created_at / 1000, dt.UTC).strftime("%Y-%m-%d")
        except (OverflowError, OSError, ValueError):
            return "no date   "

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as JSON-ready fields, named as in the table."""
        return dict(zip(FIELDS, (self.id, self.text, self.importance, self.category, self.created_at), strict=True))


class EntryHit(Struct, frozen=True):
    """An entry that a search found, with its squared distance."""

    entry: MemoryEntry
    distance: float

    @property
    def score(self) -> float:
        """Return OpenClaw's score."""
        return 1 / (1 + self.distance)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-ready fields."""
        return {**self.entry.as_dict(), "score": round(self.score, 6), "distance": round(self.distance, 6)}


def is_id(text: str) -> bool:
    """Tell whether `text` is a UUID: nothing else is ever put into a filter."""
    return _UUID.fullmatch(text) is not None


# --- where it is ---------------------------------------------------------------------------------------------------


def folder_of(choices: Plan) -> str:
    """Return the folder that `--memories` names, else the configured one, else OpenClaw's. Raises SettingError."""
    named = choices.options.memories.strip()
    if not named and choices.options.sample:
        named = str(choices.workspace.parent / "memories")
    usual = str(places.state_folder() / "memory" / "lancedb")
    folder = (named or choices.config.text(f"{LANCEDB}dbPath").strip() or usual).removeprefix("file://")
    if "\0" in folder or "://" in folder:
        raise SettingError(f"{one_line(folder)!r} is no folder for a LanceDB table.", "Name one: --memories DIR.")
    return os.path.abspath(places.expand(folder))  # noqa: PTH100


# --- the library ---------------------------------------------------------------------------------------------------


def _library(name: str = "lancedb") -> Any:  # noqa: ANN401 - a module without types
    """Return the module `name`, once LanceDB is loaded. Raises MemoriesUnavailable where it is not installed."""
    with _LOADING:
        # Read once, when the library is loaded: what it writes to standard error would lie on the screen.
        for variable, level in (("LANCE_LOG", "error"), ("LANCEDB_LOG", "error"), ("RUST_BACKTRACE", "0")):
            os.environ.setdefault(variable, level)
        try:
            importlib.import_module("lancedb")
            return importlib.import_module(name)
        except ImportError as error:
            reason = f"LanceDB, which keeps the memories, is not installed: {one_line(str(error))}."
            raise MemoriesUnavailable(reason, f"{install_extra('lancedb')}.") from error


def _call(folder: str, doing: str, run: Callable[[], T]) -> T:
    """Return what `run` returns, and turn whatever the library raises into MemoriesUnavailable.

    `doing` names the work for its sentence, such as "Reading".
    """
    try:
        return run()
    except MemoryTuiError:
        raise
    except BaseException as error:
        # A panic in Rust has one of these classes, and may be a BaseException that is no Exception.
        if isinstance(error, Exception) or type(error).__name__ in ("PanicException", "RustPanic"):
            raise _failure(folder, doing, error) from error
        raise


_REASONS = (
    ("denied|read-only|oserror(13|30)|errno13", "{} cannot be written: permission denied.", "Check its rights."),
    ("nospaceleft|oserror28", "The disk of {} is full.", "Free some room and try again."),
    ("conflict|contention|concurrent", "Another program changed {} at the same moment.", "Try again."),
)
"""What the library says, small and without blanks; the sentence; the next step."""
_DAMAGE = "magic|notfound|invalidrange|filesizeistoosmall|corrupt|panic|manifest|decode|protobuf|lanceerror"
_SOURCE = re.compile(r",? ?/\S+\.rs:\d+:\d+")
"""Where in the library's own sources a failure was met."""


def _failure(folder: str, doing: str, error: BaseException) -> MemoriesUnavailable:
    """Return why LanceDB failed at `doing` something with `folder`, as a sentence, or that it is damaged."""
    text = str(error)
    # As the patterns are written: kinds of errors have no blanks, sentences have.
    key = text.lower().replace(" ", "")
    for pattern, sentence, next_step in _REASONS:
        if re.search(pattern, key):
            return MemoriesUnavailable(sentence.format(one_line(folder)), next_step)
    first_line = text.splitlines()[0] if text.strip() else "no reason given"
    reason = one_line(_SOURCE.sub("", first_line).removeprefix("lance error: "), 200).rstrip(". ,")
    if not re.search(_DAMAGE, key):
        return MemoriesUnavailable(f"{doing} {one_line(folder)} failed: {reason}.", "")
    sentence = f"The table in {one_line(folder)} is damaged: {reason}. memory-tui changes nothing in it."
    return MemoriesUnavailable(sentence, "Restore the folder from a backup, or name another one: --memories DIR.")


# --- the table -----------------------------------------------------------------------------------------------------


class EntryTable:
    """An open table. Every method raises MemoriesUnavailable; each sees what other programs wrote meanwhile."""

    def __init__(self, folder: str, table: Any) -> None:  # noqa: ANN401 - a table of LanceDB
        self._folder, self._table = folder, table
        self.closed = False
        """Whether a call failed, after which the table is opened anew."""
        self.dims = _dims(folder, table.schema)
        self.model = record_of((table.schema.metadata or {}).get(_MODEL, b""))
        """What the table says of who made its vectors; empty where it says nothing."""

    @classmethod
    def open(cls, folder: str) -> EntryTable:
        """Open the table. Raises TableMissing, MemoriesUnavailable; makes no folder."""
        try:
            names = os.listdir(folder) if Path(folder).exists() else []
        except OSError as error:
            step = "Name the folder of a LanceDB: --memories DIR."
            raise MemoriesUnavailable(f"{one_line(folder)} cannot be read: {error.strerror}.", step) from error
        if f"{TABLE}.lance" not in names:
            step = 'memory-tui ltm store "TEXT" stores the first one.'
            raise TableMissing(f"There are no memories in {one_line(folder)} yet.", step)
        return _call(folder, "Opening", lambda: cls(folder, _library().connect(folder).open_table(TABLE)))

    @classmethod
    def create(cls, folder: str, dims: int, model: Mapping[str, Any]) -> EntryTable:
        """Make a table of vectors with `dims` numbers; `model` says who makes them."""
        pa = _library("pyarrow")
        number, text = pa.float64(), pa.string()
        columns = [pa.field("id", text, nullable=False), pa.field("text", text)]
        columns += [pa.field("vector", pa.list_(pa.float32(), dims)), pa.field("importance", number)]
        columns += [pa.field("category", text), pa.field("createdAt", number)]
        schema = pa.schema(columns, metadata={_MODEL: json.dumps(dict(model), sort_keys=True)})

        def run() -> EntryTable:
            """Make the table, and return it open."""
            # OpenClaw's plug-in has a library that panics over files of version 2.2.
            options = {"new_table_data_storage_version": "2.0"}
            connection = _library().connect(folder)
            # `exist_ok`: another program may have made it meanwhile.
            return cls(folder, connection.create_table(TABLE, schema=schema, storage_options=options, exist_ok=True))

        return _call(folder, "Making a table in", run)

    # --- reading ---

    def entries(self, version: int = 0) -> tuple[MemoryEntry, ...]:
        """Return every entry, of the newest or of an older `version`."""
        return entries_of(self._use("Reading", _without_vectors, version))

    def rows(self, ids: Sequence[str], version: int = 0) -> Rows:
        """Return the whole rows of `ids`, as a table of Arrow. Raises EntryRefused for what is no id."""
        condition = _filter(ids)
        return self._use("Reading", lambda table: table.search().where(condition).to_arrow(), version)

    def nearest(self, vector: Sequence[float], limit: int) -> list[EntryHit]:
        """Return the nearest entries with their distance (squared L2), exactly: no index may leave one out."""
        numbers = [float(number) for number in vector]

        def run(table: Any) -> Rows:  # noqa: ANN401 - a table of LanceDB
            """Return the rows that are nearest, with their distances."""
            search = table.search(numbers).bypass_vector_index()
            return search.select([*FIELDS, "_distance"]).limit(limit).to_arrow()

        rows = self._use("Searching", run)
        pairs = zip(entries_of(rows), rows["_distance"].to_pylist(), strict=True)
        return [EntryHit(entry, float(distance)) for entry, distance in pairs if distance is not None]

    def versions(self) -> dict[int, float]:
        """Return the versions that the table still has, with the time of each (epoch seconds)."""
        versions = self._use("Reading", lambda table: table.list_versions())
        return {int(item["version"]): item["timestamp"].timestamp() for item in versions}

    # --- changing ---

    def insert(self, entry: MemoryEntry, vector: Sequence[float]) -> int:
        """Add an entry, its other columns empty; returns the version that this made."""
        pa = _library("pyarrow")
        values = {**entry.as_dict(), "vector": [float(number) for number in vector]}

        def run(table: Any) -> int:  # noqa: ANN401 - a table of LanceDB
            """Add the row, and return the version that this made."""
            # A value and its type for each column of the table, which may have columns that memory-tui does not know.
            row = [(_fitting(values.get(column.name), column.type), column.type) for column in table.schema]
            arrays = [pa.array([value], kind) for value, kind in row]
            return int(table.add(pa.Table.from_arrays(arrays, schema=table.schema)).version)

        return self._use("Writing", run)

    def put_back(self, rows: Rows) -> None:
        """Add whole rows that were there.

        LanceDB refuses a vector with a number that is none, so such an entry comes back without one.
        """
        self._use("Writing", lambda table: table.add(rows, on_bad_vectors="null"))

    def delete(self, ids: Sequence[str]) -> int:
        """Delete the rows of `ids`; returns the version that this made. Raises EntryRefused for what is no id."""
        condition = _filter(ids)
        return self._use("Writing", lambda table: int(table.delete(condition).version))

    def compact(self) -> None:
        """Join the small files where there are many; no entry changes."""

        def run(table: Any) -> None:  # noqa: ANN401 - a table of LanceDB
            """Join the files, if it is time to look and there are enough of them."""
            # To count the files takes time, so only at each tenth version.
            if table.version % 10 == 0 and table.stats()["fragment_stats"]["num_small_fragments"] >= COMPACT_AT:
                table.optimize()

        self._use("Joining the files of", run)

    def _use(self, doing: str, use: Callable[[Any], T], version: int = 0) -> T:
        """Return what `use` makes of the table as it was in `version`; 0 stands for the newest.

        After a failure the table counts as closed, so that it is opened anew.
        """

        def run() -> T:
            """Call `use` with the table as it is now, or as it was."""
            if version:
                older = _library().connect(self._folder).open_table(TABLE)
                older.checkout(version)
                return use(older)
            self._table.checkout_latest()
            return use(self._table)

        try:
            return _call(self._folder, doing, run)
        except MemoriesUnavailable:
            self.closed = True
            raise


def entries_of(rows: Rows) -> tuple[MemoryEntry, ...]:
    """Return the entries of rows."""
    return tuple(
        MemoryEntry(
            id=str(row["id"] or ""),
            text=str(row["text"] or ""),
            importance=_number(row.get("importance")),
            category=str(row.get("category") or "other"),
            created_at=_number(row.get("createdAt")),
        )
        for row in rows.to_pylist()
    )


def _number(value: object) -> float:
    """Return a number that other programs wrote; 0 for what is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _fitting(value: Any, kind: Any) -> Any:  # noqa: ANN401 - a value, a type of Arrow
    """Return `value` as a column of `kind` takes it: a time is a whole number where the column has those."""
    return round(value) if isinstance(value, float) and str(kind).startswith(("int", "uint")) else value


def _without_vectors(table: Any) -> Rows:  # noqa: ANN401 - a table of LanceDB
    """Return all rows with those of FIELDS that the table has: an older one may lack some."""
    return table.search().select([name for name in FIELDS if name in table.schema.names]).to_arrow()


def _filter(ids: Sequence[str]) -> str:
    """Return the condition for the rows of `ids`. Raises EntryRefused for what is no id."""
    for text in ids:
        if not is_id(text):
            raise EntryRefused(f"{one_line(text, 60)!r} is no id of an entry.", "memory-tui ltm list shows them.")
    return f"id IN ({', '.join(map(repr, ids))})"


def _dims(folder: str, schema: Any) -> int:  # noqa: ANN401 - a schema of Arrow
    """Return the length of the vectors. Raises MemoriesUnavailable for a table of something else."""
    # A list of Arrow with a fixed length has a `list_size`.
    missing = [name for name in ("id", "text", "vector") if name not in schema.names]
    size = 0 if missing else getattr(schema.field("vector").type, "list_size", 0)
    if not size:
        what = f"it has no column {missing[0]}" if missing else "its vectors have no fixed length"
        sentence = f"The table {TABLE} in {one_line(folder)} holds no memories: {what}."
        raise MemoriesUnavailable(sentence, "Name another place: --memories DIR.")
    return int(size)


CATEGORIES = ("preference", "fact", "decision", "entity", "other")
IMPORTANCE = 0.7
"""The importance of an entry that nobody rated."""
DUPLICATE = 0.95
"""From this score on a new text is a duplicate of the nearest entry."""
LIMIT, COMMAND_MIN, TOOL_MIN = 5, 0.3, 0.1
FORGET_MIN, CLEAR = 0.7, 0.9
"""To be forgotten by a query an entry has at least that score, and alone more than that."""
MOST_STORED = 10_000
"""Characters of the longest text that is stored."""
WRITES = "ltm"
"""What the agreement to write a table is saved under."""
_MOST_QUERY, _LOCK_SECONDS, _PAUSE_SECONDS = 50_000, 60.0, 0.005
_SAME_SECONDS = 120.0
_CHANGES = Table("ltm_changes", most=1000)


# --- the rules of OpenClaw -----------------------------------------------------------------------------------------

_CATEGORY = (
    ("preference", "prefer|radši|like|love|hate|want"),
    ("decision", "rozhodli|decided|will use|budeme"),
    ("entity", r"\+\d{10,}|@[\w.-]+\.\w+|is called|jmenuje se"),
    ("fact", "is|are|has|have|je|má|jsou"),
)
_INJECTIONS = (
    (
        "ignore ... instructions",
        r"ignore (all|any|previous|above|prior)( (all|any|previous|above|prior))* instructions",
    ),
    ("do not follow the system", r"do not follow (the )?(system|developer)"),
    ("system prompt", r"\bsystem prompt\b"),
    ("developer message", r"\bdeveloper message\b"),
    ("<system>", r"<\s*(system|assistant|developer|tool|function|relevant-memories)\b"),
    ("run ... tool", r"\b(run|execute|call|invoke)\b.{0,40}\b(tool|command)\b"),
)


def normalised(text: str) -> str:
    """Return `text` as duplicates are recognised by: NFC, line ends as LF, trimmed."""
    return jsstring.trim(unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n"))


def category_of(text: str) -> str:
    """Return the category that OpenClaw gives `text`: the first whose pattern is anywhere in it, inside words too."""
    return next((name for name, pattern in _CATEGORY if re.search(pattern, text.lower(), re.ASCII)), "other")


def injection(text: str) -> str:
    """Return the pattern by which `text` looks like instructions to an agent; empty where it does not."""
    flat = " ".join(text.split())
    return next((name for name, pattern in _INJECTIONS if re.search(pattern, flat, re.IGNORECASE | re.ASCII)), "")


def require_storable(text: str) -> str:
    """Return `text` normalised, where it may become an entry. Raises EntryRefused with what is wrong with it."""
    text = normalised(text)
    if not text:
        raise EntryRefused("There is no text to store.", 'For instance: memory-tui ltm store "I prefer tabs".')
    if "\0" in text or jsstring.well_formed(text) != text:
        raise EntryRefused("The text holds a NUL or half a character.", "Take it out.")
    if len(text) > MOST_STORED:
        message = f"The text has {len(text):,} characters; an entry has at most {MOST_STORED:,}."
        raise EntryRefused(message, "Store one sentence, or write a note: memory-tui remember.")
    if pattern := injection(text):
        message = f'The text looks like instructions to an agent: it matches the pattern "{pattern}".'
        raise EntryRefused(message, "Say it as a fact.")
    return text


# --- whose vectors -------------------------------------------------------------------------------------------------


class OtherVectors(MemoryTuiError):
    """The vectors of the table were made with another model, so that nothing can be ranked."""

    code = "other_model"


class VectorSpace:
    """Embeds texts for one table by the model that made its vectors, or not at all. Safe for any thread.

    `shared` is the chain of the notes, None where their engine has none; `choices` are what a person chose.
    """

    def __init__(self, choices: Plan, approvals: Approvals, shared: Chain | None) -> None:
        self._choices, self._shared = choices, shared
        self._settings = plans.settings(choices, approvals)
        self._chain: Chain | None = None

    def close(self) -> None:
        """Release the provider, unless it is that of the notes, which their engine closes."""
        if self._chain is not None and self._chain is not self._shared:
            self._chain.close()

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return unit vectors of `texts`. Raises ProviderError, and EntryRefused for a text that may not be sent."""
        provider = self.provider()
        if not takes_secrets(provider.host, self._settings):
            known = Known(cleared=cleared(self._choices.workspace))
            secrets = [kind for text in texts for kind in kinds(text, known)]
            if secrets:
                sentence = f"The text looks like it holds a secret ({secrets[0]}), and {provider.host} would get it."
                raise EntryRefused(sentence, "Take it out, or use a provider of this machine: --provider builtin.")
        return provider.embed(list(texts), "query" if query else "document")

    def require_same(self, table: EntryTable) -> None:
        """Raise OtherVectors unless the provider in use can have made the vectors of `table`; and ProviderError."""
        identity = self.provider().identity
        current = f"{identity.provider} {identity.model}"
        recorded = f"{table.model.get('provider')} {table.model.get('model')}"
        if identity.dims != table.dims or (table.model and current != recorded):
            source = recorded if table.model else f"vectors of {table.dims:,} numbers"
            why = f"The memories were made with another model, {source}; {current} makes {identity.dims:,} numbers."
            raise OtherVectors(f"{why} Nothing can be ranked.", "Name the provider that made them: --provider NAME.")

    def provider(self) -> ChainMember:
        """Return who embeds. Raises ProviderError."""
        if self._chain is None:
            self._chain = self._chosen()
        provider = self._chain.provider()
        if provider is None:
            none = ProviderError("Memories need vectors, and the provider is none.", "Name one: --provider builtin.")
            raise self._chain.state().error or none
        return provider

    def _chosen(self) -> Chain:
        """Return the chain named on the command line, else the plug-in's, else that of the notes."""
        is_named = self._choices.provider_origin == NAMED
        configured = None if is_named else self._configured(self._settings)
        # The chain of the notes, where neither command line nor plug-in names another: so its model is loaded once.
        if configured is None and self._shared is not None and self._shared.name not in (NONE, ""):
            return self._shared
        # Without a fallback, whose vectors could not be compared. Whoever embeds is told of a failure, and nobody else.
        return Chain(replace(configured or self._settings, fallback=""), lambda _error: None)

    def _configured(self, usual: ProviderSettings) -> ProviderSettings | None:
        """Return the settings of OpenClaw's plug-in; None where it has none."""
        config = self._choices.config
        names = ("provider", "model", "baseUrl")
        provider, model, address = (config.text(f"{LANCEDB}embedding.{name}") for name in names)
        key = f"{LANCEDB}embedding.apiKey"
        if not (provider or model or address or key in config.entries):
            return None
        name = provider or "openai"
        return replace(
            usual.for_provider(name),
            requested=name,
            model=model,
            base_url=address,
            api_keys=config.keys(key),
            output_dimensionality=config.whole(f"{LANCEDB}embedding.dimensions") or None,
        )


# --- the memories of one table -------------------------------------------------------------------------------------


class StoredEntry(Struct, frozen=True):
    """What became of a text: `created`, or `duplicate` of the entry that is named with its score."""

    action: Literal["created", "duplicate"]
    entry: MemoryEntry
    score: float = 1.0


class Forgotten(Struct, frozen=True):
    """What was forgotten, or, where it was not clear what was meant, which entries it could be."""

    entries: tuple[MemoryEntry, ...]
    candidates: tuple[EntryHit, ...] = ()


class Undone(Struct, frozen=True):
    """What an undo took back: a `store` or a `forget` of entries."""

    kind: str
    entries: tuple[MemoryEntry, ...]


class Memories:
    """The entries of one table. Every method may be called from any thread, belongs on a worker thread, and may raise
    MemoriesUnavailable; those that embed raise ProviderError and OtherVectors, those that write EntryRefused.
    """

    def __init__(self, choices: Plan, approvals: Approvals, shared: Chain | None = None) -> None:
        self.folder = folder_of(choices)
        self.label = one_line(self.folder)
        """The folder as it is shown, and as an approval names it."""
        self.approvals = Approvals(Path(self.folder))
        """The agreements about this table: they belong to the table, whatever the workspace."""
        self.space = VectorSpace(choices, approvals, shared)
        self._choices = choices
        self._lock = threading.RLock()
        self._table: EntryTable | None = None

    def close(self) -> None:
        """Release the provider and the table."""
        self.space.close()
        self._table = None

    @property
    def _key(self) -> str:
        """Return a short name for what is kept about this table elsewhere; two names of one folder share it."""
        return hashlib.sha256(os.fsencode(f"{os.path.realpath(self.folder)}\0{TABLE}")).hexdigest()[:16]

    # --- agreement ---

    @property
    def writable(self) -> bool:
        """Tell whether a person agreed that memory-tui writes the table, here."""
        return not self._choices.options.read_only and self.approvals.find(WRITES, self.label) is not None

    def approve(self, how: str) -> None:
        """Save that a person agreed. Raises ApprovalUnsaved."""
        self.approvals.approve(WRITES, self.label, how)

    def exists(self) -> bool:
        """Tell whether there is a table."""
        return (Path(self.folder) / f"{TABLE}.lance").exists()

    # --- reading ---

    def table(self) -> EntryTable:
        """Return the table, opened when first needed. Raises TableMissing."""
        with self._lock:
            if self._table is None or self._table.closed:
                self._table = EntryTable.open(self.folder)
            return self._table

    def named(self, text: str) -> MemoryEntry | None:
        """Return the entry whose id is `text`, or the only one whose id begins with it; None where none or several do.

        Fewer than four characters name none.
        """
        entries = [entry for entry in self.table().entries() if len(text) >= 4 and entry.id.startswith(text.lower())]
        return entries[0] if len(entries) == 1 else None

    def search(self, query: str, limit: int = LIMIT, least: float = COMMAND_MIN) -> tuple[EntryHit, ...]:
        """Return the entries nearest to `query` with at least the score `least`."""
        if not query.strip() or len(query) > _MOST_QUERY:
            step = 'For instance: memory-tui ltm search "tabs".'
            raise QueryError(f"A query has 1 to {_MOST_QUERY:,} characters.", step)
        table = self.table()
        self.space.require_same(table)
        # One text, one vector.
        [vector] = self.space.embed([query], query=True)
        if not vector.any():
            raise QueryError("The model knows no word of the query, so nothing can be ranked.", "Ask in other words.")
        return tuple(hit for hit in table.nearest(vector, limit) if hit.score >= least)

    # --- changing ---

    def store(self, text: str, importance: float = IMPORTANCE, category: str = "") -> StoredEntry:
        """Store `text` unless it is a duplicate. A table that is not there yet is made."""
        text = require_storable(text)
        if not 0 <= importance <= 1:
            raise EntryRefused(f"Importance is a number from 0 to 1, not {importance:g}.", "")
        category = category or category_of(text)
        if category not in CATEGORIES:
            raise EntryRefused(f"There is no category {category!r}.", f"Choose one of {', '.join(CATEGORIES)}.")
        with self._changing(make=True) as table:
            for entry in table.entries():
                if normalised(entry.text) == text:
                    return StoredEntry("duplicate", entry)
            self.space.require_same(table)
            [vector] = self.space.embed([text])
            if not vector.any():
                sentence = "The model knows no word of the text, so it could never be found."
                raise EntryRefused(sentence, "Say it in words.")
            for nearest in table.nearest(vector, 1):
                if nearest.score >= DUPLICATE:
                    return StoredEntry("duplicate", nearest.entry, nearest.score)
            milliseconds = round(time.time() * 1000)
            entry = MemoryEntry(str(uuid.uuid4()), text, float(importance), category, created_at=milliseconds)
            self._note(table.insert(entry, vector), "store")
            table.compact()
            return StoredEntry("created", entry)

    def forget(self, ids: Sequence[str]) -> Forgotten:
        """Delete the entries of `ids`. Raises EntryRefused where one is not there."""
        with self._changing() as table:
            entries = entries_of(table.rows(ids))
            if missing := set(ids) - {entry.id for entry in entries}:
                sentence = f"There is no entry {one_line(min(missing), 60)}."
                raise EntryRefused(sentence, "memory-tui ltm list shows the ids.")
            self._note(table.delete(ids), "forget")
            return Forgotten(entries)

    def forget_by_query(self, query: str, least: float = FORGET_MIN) -> Forgotten:
        """Delete the one entry that `query` clearly means; else nothing, and return the candidates from `least` on.

        An entry is meant clearly where it alone has a score from FORGET_MIN on, and that is above CLEAR.
        """
        hits = self.search(query, LIMIT, least)
        near = [hit for hit in hits if hit.score >= FORGET_MIN]
        if len(near) == 1 and near[0].score > CLEAR:
            return self.forget([near[0].entry.id])
        return Forgotten((), hits)

    def undo(self) -> Undone:
        """Take back the last change of ours that is not undone. Raises EntryRefused."""
        with self._changing() as table:
            changes = _CHANGES.of(self._key)
            times = table.versions()
            kind_by_version = {
                int(version): change["kind"]
                for version, change in changes.read().items()
                # The version before has to be there still. A table that was made anew counts its versions again, so the
                # time has to fit too.
                if int(version) - 1 in times and abs(times.get(int(version), 0) - change["at"]) < _SAME_SECONDS
            }
            if not kind_by_version:
                raise EntryRefused("There is nothing to undo.", "Older versions of the table are kept for seven days.")
            last = max(kind_by_version)
            # What one of the two versions has and the other has not.
            entries = frozenset(table.entries(last)) ^ frozenset(table.entries(last - 1))
            ids = [entry.id for entry in entries]
            # They have to be now as the change left them.
            if not ids or _bits(table.rows(ids)) != _bits(table.rows(ids, last)):
                raise EntryRefused("The last change was changed again since, so it stays.", "memory-tui ltm list")
            if kind_by_version[last] == "store":
                table.delete(ids)
            else:
                table.put_back(table.rows(ids, last - 1))
            changes.remove(str(last))
            return Undone(kind_by_version[last], tuple(entries))

    # --- how a change is made ---

    @contextmanager
    def _changing(self, *, make: bool = False) -> Iterator[EntryTable]:
        """Yield the table, while no other process of this user changes it, once a person agreed to that."""
        if self._choices.options.read_only:
            raise EntryRefused("The memories are read-only here.", "Leave --read-only out.")
        # Whoever stores the first entry agrees by that.
        makes_table = make and not self.exists()
        if not self.writable and not makes_table:
            step = "To agree: memory-tui ltm approve."
            raise EntryRefused(f"Nobody has agreed yet that memory-tui writes the memories in {self.label}.", step)
        with self._lock, self._locked():
            # Asked again: another process may have made it while this one waited.
            if make and not self.exists():
                identity = self.space.provider().identity
                model = {"provider": identity.provider, "model": identity.model, "dims": identity.dims}
                self._table = EntryTable.create(self.folder, identity.dims, model)
                self.approve("made the table")
            yield self.table()

    def _locked(self) -> WriterLock:
        """Return the lock of the process that changes the table. Raises MemoriesUnavailable where it waits too long."""
        file = platformdirs.user_state_path("memory-tui", appauthor=False) / "ltm" / self._key
        until = time.monotonic() + _LOCK_SECONDS
        try:
            durable.make_folder(file.parent)
            while (lock := WriterLock.acquire(file)) is None:
                if time.monotonic() > until:
                    raise MemoriesUnavailable("Another memory-tui is changing the memories.", "Try again in a moment.")
                time.sleep(_PAUSE_SECONDS)
        except (OSError, IndexUnavailable) as error:
            raise MemoriesUnavailable(f"{file} cannot be locked: {error}.", "Check its folder.") from error
        return lock

    def _note(self, version: int, kind: str) -> None:
        """Keep what made a version of the table, and when, for `undo`."""
        _CHANGES.of(self._key).put(str(version), {"kind": kind, "at": time.time()})


def _bits(rows: Rows) -> list[str]:
    """Return whole rows as texts in order, to be compared: as numbers two NaN would never be equal."""
    return sorted(map(repr, rows.to_pylist()))


# --- for agents -------------------------------------------------------------------------------------------------------


class ToolAnswer(Struct, frozen=True):
    """What a tool says, and the same as data."""

    text: str
    details: Mapping[str, Any]


def answer(memories: Memories, tool: str, args: Mapping[str, Any]) -> ToolAnswer:
    """Return what `tool` answers to checked arguments. Raises what storing, forgetting and searching raise."""
    if tool == RECALL:
        return _recall(memories, args["query"], args.get("limit", LIMIT))
    if tool == STORE:
        return _store(memories, args["text"], args.get("importance", IMPORTANCE), args.get("category", "other"))
    return _forget(memories, args.get("memoryId", ""), args.get("query", ""))


def _recall(memories: Memories, query: str, limit: int) -> ToolAnswer:
    """Answer memory_recall: the entries most like `query`, by likeness; none where nothing can be ranked."""
    hits: tuple[EntryHit, ...] = ()
    # No table yet, or a query of which the model knows no word: an agent gets an empty answer, not an error.
    with suppress(TableMissing, QueryError):
        hits = memories.search(query, limit, TOOL_MIN)
    if not hits:
        return ToolAnswer("No relevant memories found.", {"count": 0})
    lines = [
        f"{number}. [{safe(hit.entry.category)}] {_clean(hit.entry.text)} ({hit.score * 100:.0f}%)"
        for number, hit in enumerate(hits, 1)
    ]
    details = {"count": len(hits), "memories": [_fields(hit) for hit in hits]}
    return ToolAnswer(f"Found {len(hits)} memories:\n\n" + "\n".join(lines), details)


def _store(memories: Memories, text: str, importance: float, category: str) -> ToolAnswer:
    """Answer memory_store."""
    stored = memories.store(text, importance, category)
    entry = stored.entry
    excerpt = _clean(entry.text)
    if stored.action == "duplicate":
        details = {"action": "duplicate", "existingId": entry.id, "existingText": entry.text}
        return ToolAnswer(f'Similar memory already exists: "{excerpt}"', details)
    return ToolAnswer(f'Stored: "{excerpt[:100]}..."', {"action": "created", "id": entry.id})


def _forget(memories: Memories, key: str, query: str) -> ToolAnswer:
    """Answer memory_forget: by an id, or by a query that means one entry; of several the candidates are named."""
    if key:
        if not is_id(key):
            raise EntryRefused(f"Invalid memory ID format: {safe(key[:60])}", "memory_recall names ids.")
        memories.forget([key.lower()])
        return ToolAnswer(f"Memory {key.lower()} forgotten.", {"action": "deleted", "id": key.lower()})
    if not query.strip():
        return ToolAnswer("Provide query or memoryId.", {"error": "missing_param"})
    forgotten = Forgotten(())
    with suppress(TableMissing):
        forgotten = memories.forget_by_query(query)
    if forgotten.entries:
        entry = forgotten.entries[0]
        return ToolAnswer(f'Forgotten: "{_clean(entry.text)}"', {"action": "deleted", "id": entry.id})
    if not forgotten.candidates:
        return ToolAnswer("No matching memories found.", {"found": 0})
    lines = [f"- [{hit.entry.id}] {_clean(hit.entry.text)[:60]}..." for hit in forgotten.candidates]
    details = {"action": "candidates", "candidates": [_fields(hit) for hit in forgotten.candidates]}
    return ToolAnswer(f"Found {len(lines)} candidates. Specify memoryId:\n" + "\n".join(lines), details)


def _fields(hit: EntryHit) -> dict[str, Any]:
    """Return an entry as OpenClaw's tools give it."""
    entry = hit.entry
    fields = {"id": entry.id, "text": entry.text, "category": entry.category, "importance": entry.importance}
    return {**fields, "score": hit.score}


def _clean(text: str) -> str:
    """Return a text that is safe to show, on its lines."""
    return safe(text, keep_newlines=True)
