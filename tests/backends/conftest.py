"""Tables of memories as memory-tui makes them, and as another program does."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.backends.lancedb import Memories
from memory_tui.plan import Options
from memory_tui.providers.chain import Chain
from memory_tui.providers.registry import ProviderSettings
from tests.support.qmd import Bench

TEXTS = ("I prefer tabs to spaces", "The router is in the cellar", "We decided to use Postgres", "Mira likes oranges")
Opened = Callable[..., Memories]


def bytes_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def database(folder: Path) -> Any:
    """Connect to the tables in `folder`; its library takes 2 CPU seconds to import, so only where it is used."""
    import lancedb

    return lancedb.connect(str(folder))


def foreign(folder: Path, texts: Sequence[str], vectors: Any) -> list[str]:
    """Make a table as OpenClaw does: no key is declared, nothing says who made the vectors. Returns the ids."""
    import pyarrow as pa

    ids = [str(uuid.UUID(int=number + 1, version=4)) for number in range(len(texts))]
    columns = {
        "id": ids,
        "text": list(texts),
        "vector": pa.array([list(map(float, row)) for row in vectors], pa.list_(pa.float32(), len(vectors[0]))),
        "importance": [0.7] * len(texts),
        "category": ["fact"] * len(texts),
        "createdAt": [1.7e12 + 1000 * number for number in range(len(texts))],
    }
    database(folder).create_table("memories", pa.table(columns))
    return ids


@pytest.fixture(scope="session")
def embedded() -> Any:
    """Return the vectors of `TEXTS`, by the model in the package."""
    provider = Chain(ProviderSettings("builtin"), lambda _error: None).provider()
    return provider.embed(list(TEXTS), "document")


@pytest.fixture
def copied(tmp_path: Path, embedded: Any) -> Path:
    foreign(tmp_path / "lancedb", TEXTS, embedded)
    return tmp_path / "lancedb"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    every: list[Memories] = []

    def make(place: Path | str | None = None, **more: Any) -> Memories:
        choices = plan.choose(Options(workspace=str(tmp_path), memories=str(place or tmp_path / "memories"), **more))
        every.append(Memories(choices, Approvals(tmp_path)))
        return every[-1]

    yield make
    for memories in every:
        memories.close()


def damage(folder: Path) -> None:
    """Cut every file of data in the middle."""
    for path in (folder / "memories.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes()[:200])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def ready(bench: Bench) -> Bench:
    """Return the same once QMD has its index."""
    bench.updated()
    return bench
