"""Open and change one table of long-term memories. Nothing else imports LanceDB, which takes seconds.

Each change is one commit, so one version of the table. A row travels whole, with columns that only another program
knows.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import importlib
import importlib.util
import json
import math
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct, field

from memory_tui.config import keys, places
from memory_tui.errors import MemoryTuiError, SettingError
from memory_tui.formatting import install_extra
from memory_tui.plan import Plan
from memory_tui.providers.options import Redactor
from memory_tui.sanitize import one_line
from memory_tui.secrets.discreet import Discreet

T = TypeVar("T")
Rows: TypeAlias = Any
"""Whole rows, as a table of Arrow."""
CONFIG = keys.LANCEDB
TABLE = "memories"
"""The name of the table, as OpenClaw has it."""
FIELDS = ("id", "text", "importance", "category", "createdAt")
_TIMES = MappingProxyType({"timeout": "30s", "connect_timeout": "10s", "client_max_retries": "1"})
"""How long a call over the network may take."""
COMPACT_AT = 100
"""Each store makes a small file; from so many on they are joined. Older versions of the table stay for seven days."""
_MODEL = b"memory-tui.model"
"""What the schema of a table that memory-tui made says of who made its vectors, as JSON."""
_REMOTE = re.compile(r"(?:s3|gs|az)://[\w.-]+(?:/|\Z)", re.ASCII)
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")
_SECRET = re.compile("key|secret|token|password|sas|credential", re.IGNORECASE)
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


def is_id(text: str) -> bool:
    """Tell whether `text` is a UUID: nothing else is ever put into a filter."""
    return _UUID.fullmatch(text) is not None


# --- where it is ---------------------------------------------------------------------------------------------------


class TableLocation(Discreet, frozen=True):
    """Where a table is, and how its store is reached; `named_by` says who named it."""

    HIDDEN = ("options",)

    uri: str
    named_by: str
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def remote(self) -> bool:
        """Tell whether it is in an object store."""
        return "://" in self.uri

    @property
    def label(self) -> str:
        """Return the address without what may be secret in it."""
        return one_line(_CREDENTIALS.sub("***@", self.uri))

    @property
    def host(self) -> str:
        """Return what an approval names: the store with its bucket, or the folder."""
        named = [self.options.get(name) for name in ("endpoint", "aws_endpoint")]
        named += [os.environ.get(name) for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL")]
        endpoint = next(filter(None, named), "")
        return f"{self.label} at {endpoint}" if self.remote and endpoint else self.label

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what no message may show."""
        variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        pairs = (*self.options.items(), *variables.items())
        return tuple(value for name, value in pairs if value and _SECRET.search(name))

    @property
    def key(self) -> str:
        """Return a short name for what is kept about this table elsewhere; two names of one folder share it."""
        name = self.uri.rstrip("/") if self.remote else os.path.realpath(self.uri)
        return hashlib.sha256(os.fsencode(f"{name}\0{TABLE}")).hexdigest()[:16]

    @classmethod
    def of(cls, choices: Plan) -> TableLocation:
        """Return the place that `--memories` names, else the configured one, else OpenClaw's. Raises SettingError."""
        config = choices.config
        secrets = config.headers(f"{CONFIG}storageOptions")
        options = MappingProxyType({name: secret.value for name, secret in secrets if secret.exists})
        configured = config.entries.get(f"{CONFIG}dbPath")
        text, named_by = choices.options.memories.strip(), "--memories"
        if not text and choices.options.sample:
            text, named_by = str(choices.workspace.parent / "memories"), "default"
        elif not text and configured is not None and str(configured.value or "").strip():
            text, named_by = str(configured.value).strip(), str(configured.places[-1])
        elif not text:
            text, named_by = str(places.state_folder() / "memory" / "lancedb"), "default"
        remote = "://" in text and not text.startswith("file://")
        if "\0" in text or (remote and not _REMOTE.match(text)):
            raise SettingError(
                f"{_CREDENTIALS.sub('***@', text)!r} is no place for a LanceDB table.",
                "Name a folder, or s3://BUCKET/PREFIX.",
            )
        folder = os.path.abspath(places.expand(text.removeprefix("file://")))  # noqa: PTH100
        return cls(text.rstrip("/") if remote else folder, named_by, options)


# --- the library ---------------------------------------------------------------------------------------------------


def require_library() -> None:
    """Find the library without loading it. Raises MemoriesUnavailable where it is not there."""
    if importlib.util.find_spec("lancedb") is None:
        raise MemoriesUnavailable(
            "LanceDB, which keeps the memories, is not installed.", f"{install_extra('lancedb')}."
        )


def _library(name: str = "lancedb") -> Any:  # noqa: ANN401 - a module without types
    with _LOADING:
        # Read once, when it is loaded: its remarks on standard error would lie on the screen.
        for variable, level in (("LANCE_LOG", "error"), ("LANCEDB_LOG", "error"), ("RUST_BACKTRACE", "0")):
            os.environ.setdefault(variable, level)
        try:
            importlib.import_module("lancedb")
            return importlib.import_module(name)
        except ImportError as error:
            reason = one_line(str(error))
            raise MemoriesUnavailable(f"LanceDB cannot be loaded: {reason}.", f"{install_extra('lancedb')}.") from error


def _call(location: TableLocation, doing: str, run: Callable[[], T]) -> T:
    """Return what `run` returns, and turn whatever the library raises into MemoriesUnavailable."""
    try:
        return run()
    except MemoryTuiError:
        raise
    except BaseException as error:
        # A panic in Rust has one of two classes; one is no Exception, so that nobody swallows it by accident.
        if isinstance(error, Exception) or type(error).__name__ in ("PanicException", "RustPanic"):
            raise _failure(location, doing, error) from error
        raise


_KEYS = "Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
_REASONS = (
    (True, "nosuchbucket|bucketdoesnotexist|bucket.{0,60}notfound", "There is no bucket for {}.", "Create the bucket."),
    (True, "denied|invalidaccesskey|signature|403|401|unauthorized", "The store refuses the keys for {}.", _KEYS),
    (
        True,
        "connect|sendingrequest|dnserror|timedout|timeout",
        "The store of {} cannot be reached.",
        "Check the network.",
    ),
    (True, "credential|imds|169.254", "There are no keys for {}.", _KEYS),
    (False, "denied|read-only|oserror(13|30)|errno13", "{} cannot be written: permission denied.", "Check its rights."),
    (False, "nospaceleft|oserror28", "The disk of {} is full.", "Free some room and try again."),
    (False, "conflict|contention|concurrent", "Another program changed {} at the same moment.", "Try again."),
)
"""Whether the store must be remote; what the library says, small and without blanks; the sentence; the next step."""
_DAMAGE = "magic|notfound|invalidrange|filesizeistoosmall|corrupt|panic|manifest|decode|protobuf|lanceerror"
_SOURCE = re.compile(r",? ?/\S+\.rs:\d+:\d+")
"""Where in the library's own sources a failure was met."""


def _failure(location: TableLocation, doing: str, error: BaseException) -> MemoriesUnavailable:
    text = Redactor(location.secrets)(str(error))
    low = text.lower().replace(" ", "")
    for remote, pattern, sentence, next_step in _REASONS:
        if (location.remote or not remote) and re.search(pattern, low):
            return MemoriesUnavailable(sentence.format(location.label), next_step)
    first = _SOURCE.sub("", text.splitlines()[0] if text.strip() else "no reason given")
    reason = one_line(first.removeprefix("lance error: "), 200).rstrip(". ,")
    if re.search(_DAMAGE, low):
        return _damaged(location, reason)
    return MemoriesUnavailable(f"{doing} {location.label} failed: {reason}.", "")


def _damaged(location: TableLocation, reason: str) -> MemoriesUnavailable:
    return MemoriesUnavailable(
        f"The table in {location.label} is damaged: {reason}. memory-tui changes nothing in it.",
        "Restore the folder from a backup, or name another one: --memories DIR.",
    )


# --- the table -----------------------------------------------------------------------------------------------------


class EntryTable:
    """An open table. Every method raises MemoriesUnavailable; each sees what other programs wrote meanwhile."""

    def __init__(self, location: TableLocation, table: Any) -> None:  # noqa: ANN401 - a table of LanceDB
        self.location = location
        self._table = table
        self.closed = False
        """Whether a call failed, after which the table is opened anew."""
        schema = table.schema
        self.dims = _dims(location, schema)
        self.model = _model_of(schema.metadata)
        """What the table says of who made its vectors; empty where it says nothing."""

    @classmethod
    def open(cls, location: TableLocation) -> EntryTable:
        """Open the table. Raises TableMissing, MemoriesUnavailable; makes no folder."""
        require_library()
        folder = Path(location.uri)
        if not location.remote:
            try:
                if not folder.exists():
                    raise _missing(location)
                next(folder.iterdir(), None)
            except OSError as error:
                raise MemoriesUnavailable(
                    f"{location.label} cannot be read: {error.strerror}.",
                    "Name the folder of a LanceDB: --memories DIR.",
                ) from error

        def run() -> EntryTable:
            try:
                return cls(location, _connected(location).open_table(TABLE))
            except ValueError as error:
                # Files of a table that the library does not find are a damaged one.
                if "was not found" in str(error) and (location.remote or not (folder / f"{TABLE}.lance").exists()):
                    raise _missing(location) from error
                raise

        return _call(location, "Opening", run)

    @classmethod
    def create(cls, location: TableLocation, dims: int, model: Mapping[str, Any]) -> EntryTable:
        """Make a table, whose ids are declared as its key so that two writers cannot add one twice."""
        pa = _library("pyarrow")
        number, text = pa.float64(), pa.string()
        columns = [pa.field("id", text, nullable=False), pa.field("text", text)]
        columns += [pa.field("vector", pa.list_(pa.float32(), dims)), pa.field("importance", number)]
        columns += [pa.field("category", text), pa.field("createdAt", number)]
        schema = pa.schema(columns, metadata={_MODEL: json.dumps(dict(model), sort_keys=True)})

        def run() -> EntryTable:
            # OpenClaw's plug-in has a library that panics over files of version 2.2.
            options = {**location.options, "new_table_data_storage_version": "2.0"}
            table = _connected(location).create_table(TABLE, schema=schema, storage_options=options, exist_ok=True)
            if not _is_key(table.schema):
                table.set_unenforced_primary_key("id")
            return cls(location, table)

        return _call(location, "Making a table in", run)

    # --- reading ---

    def entries(self, version: int = 0) -> tuple[MemoryEntry, ...]:
        """Return every entry, of the newest or of an older `version`."""
        return entries_of(self._use("Reading", _without_vectors, version))

    def rows(self, ids: Sequence[str], version: int = 0) -> Rows:
        """Return the whole rows of `ids`, as a table of Arrow. Raises EntryRefused for what is no id."""
        where = _filter(ids)
        return self._use("Reading", lambda table: table.search().where(where).to_arrow(), version)

    def nearest(self, vector: Sequence[float], limit: int) -> list[tuple[MemoryEntry, float]]:
        """Return the nearest entries with their distance (squared L2), exactly: no index may leave one out."""

        def run(table: Any) -> Rows:  # noqa: ANN401 - a table of LanceDB
            query = table.search([float(number) for number in vector]).bypass_vector_index()
            return query.select([*FIELDS, "_distance"]).limit(limit).to_arrow()

        rows = self._use("Searching", run)
        pairs = zip(entries_of(rows), rows["_distance"].to_pylist(), strict=True)
        return [(entry, float(distance)) for entry, distance in pairs if distance is not None]

    def versions(self) -> dict[int, float]:
        """Return the versions that the table still has, with the time of each (epoch seconds)."""
        versions = self._use("Reading", lambda table: table.list_versions())
        return {int(item["version"]): item["timestamp"].timestamp() for item in versions}

    # --- changing ---

    def insert(self, entry: MemoryEntry, vector: Sequence[float]) -> int:
        """Add an entry, its other columns empty; returns the version that this made, 0 where its id is there."""
        pa = _library("pyarrow")
        values = {**entry.as_dict(), "vector": [float(number) for number in vector]}

        def run(table: Any) -> int:  # noqa: ANN401 - a table of LanceDB
            arrays = [
                pa.array([_fitting(values.get(column.name), column.type)], column.type) for column in table.schema
            ]
            rows = pa.Table.from_arrays(arrays, schema=table.schema)
            done = table.merge_insert("id").when_not_matched_insert_all().execute(rows)
            return int(done.version) if done.num_inserted_rows else 0

        return self._use("Writing", run)

    def put_back(self, rows: Rows) -> None:
        """Add whole rows that were there.

        LanceDB refuses a vector with a number that is none, so such an entry comes back without one.
        """

        def run(table: Any) -> None:  # noqa: ANN401 - a table of LanceDB
            table.merge_insert("id").when_not_matched_insert_all().execute(rows, on_bad_vectors="null")

        self._use("Writing", run)

    def delete(self, ids: Sequence[str]) -> int:
        """Delete the rows of `ids`; returns the version that this made. Raises EntryRefused for what is no id."""
        where = _filter(ids)
        return self._use("Writing", lambda table: int(table.delete(where).version))

    def compact(self) -> None:
        """Join small files where there are many, which is seen to now and then; no entry changes."""

        def run(table: Any) -> None:  # noqa: ANN401 - a table of LanceDB
            if table.version % 10 == 0 and table.stats()["fragment_stats"]["num_small_fragments"] >= COMPACT_AT:
                table.optimize()

        self._use("Joining the files of", run)

    def _use(self, doing: str, use: Callable[[Any], T], version: int = 0) -> T:
        def run() -> T:
            if version:
                older = _connected(self.location).open_table(TABLE)
                older.checkout(version)
                return use(older)
            self._table.checkout_latest()
            return use(self._table)

        try:
            return _call(self.location, doing, run)
        except MemoriesUnavailable:
            self.closed = True
            raise


def entries_of(rows: Rows) -> tuple[MemoryEntry, ...]:
    """Return the entries of rows."""
    return tuple(
        MemoryEntry(
            str(row["id"] or ""),
            str(row["text"] or ""),
            _number(row.get("importance")),
            str(row.get("category") or "other"),
            _number(row.get("createdAt")),
        )
        for row in rows.to_pylist()
    )


def _number(value: object) -> float:
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    timestamp = getattr(value, "timestamp", None)
    return float(timestamp()) * 1000 if callable(timestamp) else 0.0


def _fitting(value: Any, kind: Any) -> Any:  # noqa: ANN401 - a value, a type of Arrow
    """Return times as whole numbers where the column has those."""
    return round(value) if isinstance(value, float) and str(kind).startswith(("int", "uint")) else value


def _without_vectors(table: Any) -> Rows:  # noqa: ANN401 - a table of LanceDB
    names = [name for name in FIELDS if name in table.schema.names]
    return table.search().select(names).to_arrow()


def _connected(location: TableLocation) -> Any:  # noqa: ANN401 - a connection of LanceDB
    options = {**(_TIMES if location.remote else {}), **location.options}
    return _library().connect(location.uri, storage_options=options or None)


def _filter(ids: Sequence[str]) -> str:
    for item in ids:
        if not is_id(item):
            raise EntryRefused(f"{one_line(item, 60)!r} is no id of an entry.", "memory-tui ltm list shows them.")
    return f"id IN ({', '.join(map(repr, ids))})"


def _is_key(schema: Any) -> bool:  # noqa: ANN401 - a schema of Arrow
    return any(b"unenforced-primary-key" in name for name in schema.field("id").metadata or {})


def _model_of(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, Any]:
    with contextlib.suppress(ValueError):
        model = json.loads((metadata or {}).get(_MODEL, b"{}"))
        return model if isinstance(model, dict) else {}
    return {}


def _dims(location: TableLocation, schema: Any) -> int:  # noqa: ANN401 - a schema of Arrow
    """Return the length of the vectors. Raises MemoriesUnavailable for a table of something else."""
    missing = [name for name in ("id", "text", "vector") if name not in schema.names]
    size = 0 if missing else getattr(schema.field("vector").type, "list_size", 0)
    if not size:
        what = f"it has no column {missing[0]}" if missing else "its vectors have no fixed length"
        raise MemoriesUnavailable(
            f"The table {TABLE} in {location.label} holds no memories: {what}.", "Name another place: --memories DIR."
        )
    return int(size)


def _missing(location: TableLocation) -> TableMissing:
    return TableMissing(
        f"There are no memories in {location.label} yet.", 'memory-tui ltm store "TEXT" stores the first one.'
    )
