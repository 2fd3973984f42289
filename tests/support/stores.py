"""An index that a test writes by itself; each method is one generation or a few."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path

from memory_tui.index import embedding, index_write
from memory_tui.index.database import Recipe
from memory_tui.index.index_write import NewFile, cut
from memory_tui.index.store import Store
from memory_tui.jsstring import sha256_hex
from memory_tui.providers import Vectors
from memory_tui.providers.builtin import Scripted, hash_vector
from memory_tui.workspace import notes

SPACE = Scripted().identity
_SPACE = {"model": SPACE.model, "provider": SPACE.provider, "provider_key": SPACE.key, "vector_dims": SPACE.dims}
_CUT = {"chunk_tokens": 40, "chunk_overlap": 8, "chunk_bytes": 8000}
RECIPE = Recipe(**_SPACE, **_CUT, sources=("memory", "sessions"), scope_hash="")
SECOND = 1_000_000_000


def cut_note(
    path: str, text: str, mtime: int = 1_790_000_000, recipe: Recipe = RECIPE, source: str = "memory"
) -> NewFile:
    """A note cut into chunks, as a sync cuts it; `mtime` is in seconds."""
    read = notes.of_bytes(path, text.encode("utf-8", "surrogatepass"), mtime * SECOND)
    return cut(read, source, recipe, float(mtime))


def vectors_for(files: Sequence[NewFile]) -> dict[str, Vectors]:
    return {chunk.hash: hash_vector(chunk.text) for file in files for chunk in file.chunks}


class Made:
    """An index file, with vec0 where this machine has it."""

    def __init__(self, path: Path, recipe: Recipe = RECIPE) -> None:
        self.path, self.recipe = path, recipe
        self.store = Store.open(path)
        index_write.reset(self.store, recipe)
        index_write.prepare_tables(self.store, recipe)

    def _keep(self, vectors: Mapping[str, Vectors]) -> dict[str, int]:
        return index_write.add_embeddings(self.store, self.recipe.identity, vectors) if vectors else {}

    def add(self, files: Sequence[NewFile], vectors: Mapping[str, Vectors]) -> None:
        self._keep(vectors)
        hashes = [chunk.hash for file in files for chunk in file.chunks]
        known = self.store.cached(self.recipe.identity, hashes)
        index_write.replace_files(self.store, files, self.recipe.identity.model, known)

    def remove(self, paths: Sequence[str]) -> None:
        index_write.remove_files(self.store, [self.store.indexed()[path] for path in paths])

    def touch(self, path: str, mtime: int) -> None:
        index_write.touch_files(self.store, [self.store.indexed()[path]._replace(mtime_ns=mtime * SECOND)])

    def attach(self, vectors: Mapping[str, Vectors]) -> None:
        ids = self._keep(vectors)
        lacking = self.store.without_vector(0, 1_000_000)
        index_write.attach(self.store, {rowid: ids[digest] for rowid, digest, _ in lacking if digest in ids})

    def reject(self, text: str, reason: str) -> None:
        embedding.remember_rejected(self.store, self.recipe.identity, sha256_hex(text), reason)

    def withhold(self, text: str, kind: str) -> None:
        with self.store.writing():
            self.store.query("INSERT OR REPLACE INTO withheld VALUES(?, ?)", (sha256_hex(text), kind))

    def reader(self) -> AbstractContextManager[Store]:
        return closing(Store.open(self.path, read_only=True))

    def close(self) -> None:
        self.store.close()
