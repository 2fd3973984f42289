"""The schema of an index file. It has the tables and the recipe the index was made with.

`meta`, `files`, `chunks`, `embedding_cache`, `chunks_fts` and `chunks_vec` keep the names and the meaning of
OpenClaw 2026.3.13; inside, rows are tied by integers and vectors are float32 BLOBs. An index file is disposable:
everything in it can be made again from the notes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

import apsw
from msgspec import Struct

from memory_tui.config.places import ExtraPath
from memory_tui.providers.base import Identity, fingerprint
from memory_tui.tokens import STEM_TOKENIZER
from memory_tui.workspace.notes import MediaRules

APPLICATION_ID = 0x6D747569
"""Marks an SQLite file as ours: "mtui"."""
PAGE_SIZE = 16384
WORDS_VERSION = 4
"""Raised when `tokens.indexed_form` changes, because that text is not kept and has to be made again."""
RECIPE = "memory_index_meta_v1"
"""Key of the recipe in `meta`, as documented."""
NO_FOLDER = "no_folder"
"""Key in `meta` of an index that no folder has: it is copied, so nobody compares it with a disk or syncs it."""
KEYWORDS_ONLY = Identity("none", "fts-only", fingerprint(provider="none", model="fts-only"), 0)
"""The identity of an index without vectors, as documented."""

SCHEMA_VERSION = 13
"""Raised when a table changes; an older index is made anew, with the vectors it has."""
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory',
    hash TEXT NOT NULL, mtime INTEGER NOT NULL, size INTEGER NOT NULL,
    state TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '', indexed_at REAL NOT NULL, title TEXT NOT NULL DEFAULT '',
    dated TEXT NOT NULL DEFAULT '', chunks INTEGER NOT NULL DEFAULT 0,
    -- owner/name of the workspace that the note is copied from, and its place in the order there; empty for one's own.
    workspace TEXT NOT NULL DEFAULT '', first_seq INTEGER NOT NULL DEFAULT 0, UNIQUE(path, workspace));
-- Texts come last, so that the columns before them are read without walking over them. `above` are the words that
-- stemmed full-text search sees besides those of the text: the day of the note, and the headings above the chunk.
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY AUTOINCREMENT, file_id INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    occurrence INTEGER NOT NULL DEFAULT 0, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    passage INTEGER NOT NULL, embedding_id INTEGER, updated_at REAL NOT NULL, chunk_id TEXT NOT NULL,
    hash TEXT NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL, above TEXT NOT NULL);
CREATE INDEX chunks_by_file ON chunks(file_id, ordinal);
CREATE INDEX chunks_without_vector ON chunks(id) WHERE embedding_id IS NULL AND occurrence = 0;
CREATE TABLE IF NOT EXISTS embedding_cache(
    id INTEGER PRIMARY KEY, provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
    hash TEXT NOT NULL, dims INTEGER NOT NULL, updated_at REAL NOT NULL, embedding BLOB NOT NULL,
    UNIQUE(provider, model, provider_key, hash));
-- What the annotations of a chunk say, of those chunks that have any.
CREATE TABLE annotations(
    chunk INTEGER PRIMARY KEY, importance INTEGER NOT NULL, triggers TEXT NOT NULL, project TEXT NOT NULL);
-- The vectors of the windows of a chunk, by the hash of its text; a window that got none has that of the chunk.
CREATE TABLE IF NOT EXISTS windows(
    hash TEXT NOT NULL, place INTEGER NOT NULL, embedding_id INTEGER NOT NULL, PRIMARY KEY(hash, place)) WITHOUT ROWID;
-- Texts whose vectors a provider's batch service was asked for, by job; one without `remote_id` is not submitted yet.
CREATE TABLE IF NOT EXISTS batch_jobs(
    id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL,
    dims INTEGER NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, claimed_at REAL NOT NULL,
    file_id TEXT NOT NULL DEFAULT '', remote_id TEXT NOT NULL DEFAULT '', submitted_at REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS batch_texts(hash TEXT NOT NULL, job INTEGER NOT NULL, PRIMARY KEY(hash, job)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS batch_texts_by_job ON batch_texts(job);
-- Hashes of texts that are not sent to the provider, and what secret each looks like. No text is here.
CREATE TABLE IF NOT EXISTS withheld(hash TEXT PRIMARY KEY, kind TEXT NOT NULL) WITHOUT ROWID;
-- Hashes of texts that a provider refused, why in its words, and when. No text is here.
CREATE TABLE IF NOT EXISTS refused(
    provider TEXT NOT NULL, model TEXT NOT NULL, provider_key TEXT NOT NULL, hash TEXT NOT NULL, reason TEXT NOT NULL,
    at REAL NOT NULL, PRIMARY KEY(hash, provider, model, provider_key)) WITHOUT ROWID;
INSERT INTO meta VALUES('generation', 0), ('uuid', lower(hex(randomblob(16))));
"""
REMADE = frozenset({"meta", "files", "chunks", "changes", "annotations", "word_counts"})
"""Tables that an index of an older schema loses; every version had the others as they are."""

TOKENIZERS = {"unicode61": "unicode61", "trigram": "trigram case_sensitive 0"}
"""How OpenClaw's full-text table can cut words: the documented name, and FTS5's arguments."""


def full_text_tables(tokenizer: str) -> str:
    """Return what makes both full-text tables: OpenClaw's with `tokenizer` and filled from the chunks, ours empty."""
    return f"""
DROP TABLE IF EXISTS chunks_fts;
DROP TABLE IF EXISTS chunks_words;
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    text, content='chunks', content_rowid='id', tokenize='{TOKENIZERS[tokenizer]}');
CREATE VIRTUAL TABLE chunks_words USING fts5(
    body, content='', contentless_delete=1, tokenize='{" ".join(STEM_TOKENIZER)}');
INSERT INTO chunks_fts(chunks_fts) VALUES('rebuild');
INSERT OR REPLACE INTO meta VALUES('full_text', '{tokenizer}');
"""


class Recipe(Struct, frozen=True, kw_only=True, rename="camel"):
    """What an index is made with; when any of it changes, every note is cut and written again.

    As JSON it is the documented record, in the documented order, and after that what only memory-tui has. `vector_dims`
    are 0 when there is no provider.
    """

    model: str
    provider: str
    provider_key: str
    sources: tuple[str, ...]
    scope_hash: str
    chunk_tokens: int
    chunk_overlap: int
    vector_dims: int
    fts_tokenizer: str = "unicode61"
    chunk_bytes: int
    words_version: int = WORDS_VERSION
    chunking: str = "2026.3"
    """The release by whose rules notes are cut, or `headings` where chunks end at them."""

    @property
    def identity(self) -> Identity:
        """The space of the vectors."""
        return Identity(self.provider, self.model, self.provider_key, self.vector_dims)


def differences(has: Recipe, wish: Recipe) -> tuple[str, ...]:
    """Return what an index made after `has` lacks to be one made after `wanted`, in words; empty when nothing."""
    old, new = has.identity, wish.identity
    space: tuple[tuple[str, object, object], ...] = (
        ("provider", old.provider, new.provider),
        ("model", old.model, new.model),
        ("endpoint", old.key[:8], new.key[:8]),
        ("dimensions", old.dims, new.dims),
    )
    if old == KEYWORDS_ONLY != new:
        # An index of words alone was made by no provider, and somebody may answer beside it.
        space = (("vectors in the index", "none", f"{new.provider} {new.model}"),)
    pairs = (
        *space,
        ("way of cutting", has.chunking, wish.chunking),
        ("chunk tokens", has.chunk_tokens, wish.chunk_tokens),
        ("overlap", has.chunk_overlap, wish.chunk_overlap),
        ("chunk bytes", has.chunk_bytes, wish.chunk_bytes),
        ("sources", " and ".join(has.sources), " and ".join(wish.sources)),
        ("extra paths", has.scope_hash[:8], wish.scope_hash[:8]),
        ("tokenizer", has.fts_tokenizer, wish.fts_tokenizer),
        ("form of words", has.words_version, wish.words_version),
    )
    changed = [(name, was, now) for name, was, now in pairs if was != now]
    names = {name for name, _, _ in changed}
    # A fingerprint says nothing to a person where a name has changed as well.
    return tuple(
        f"{name}: {was} is now {now}"
        for name, was, now in changed
        if name != "endpoint" or not names & {"provider", "model"}
    )


def scope_hash(extra_paths: Sequence[str], patterns: Sequence[ExtraPath] = (), media: MediaRules | None = None) -> str:
    """Hash what is in scope, as documented: SHA-256 of the absolute extra paths, and of which media are read there.

    With `patterns` an entry that has one is an object, and entries are in the order of their JSON (OpenClaw 2026.8).
    """
    places = ((item.path.replace("\\", "/"), item.pattern) for item in patterns)
    entries = [{"path": path, "pattern": pattern} if pattern else path for path, pattern in places]
    scope = {
        "extraPaths": sorted(entries, key=lambda entry: json.dumps(entry, ensure_ascii=False))
        if patterns
        else sorted(path.replace("\\", "/") for path in extra_paths),
        "multimodal": {
            "enabled": media is not None,
            "modalities": sorted(media.modalities) if media else [],
            "maxFileBytes": media.most_bytes if media else MediaRules().most_bytes,
        },
    }
    text = json.dumps(scope, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


# --- sqlite-vec -------------------------------------------------------------------------------------------------------


class Vec0(Struct, frozen=True):
    """Whether sqlite-vec works; `detail` is its version, or why it does not."""

    ready: bool
    detail: str


def load_vec0(connection: apsw.Connection) -> Vec0:
    """Load sqlite-vec into `connection`, and say whether that works.

    Importing the package instead would load a second SQLite (0.3 s, and two libraries that share vec0 crash).
    """
    path = _library()
    if path is None:
        return Vec0(False, "sqlite-vec is not installed")
    try:
        connection.enable_load_extension(True)
        # Its entry point is named, because SQLite guesses it from the name of the file.
        connection.load_extension(path, "sqlite3_vec_init")
        connection.enable_load_extension(False)
        return Vec0(True, str(connection.execute("SELECT vec_version()").get))
    except apsw.NoMemError as error:
        # That is nothing SQLite is not able to.
        raise MemoryError(str(error)) from error
    except (apsw.Error, AttributeError) as error:
        return Vec0(False, f"load: {error}")


@functools.cache
def vec0() -> Vec0:
    """Say whether sqlite-vec works, tried once a process."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        return load_vec0(connection)


@functools.cache
def _library() -> str | None:
    """Return the path of the loadable file without its suffix, which SQLite adds for the system."""
    spec = importlib.util.find_spec("sqlite_vec")
    places = spec.submodule_search_locations if spec else None
    files = [file for place in places or () for file in Path(place).glob("vec0.*")]
    return str(files[0].with_suffix("")) if files else None
