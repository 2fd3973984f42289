"""Tables of memories as memory-tui makes them, and as another program does."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memory_tui import plan
from memory_tui.approval import Approvals
from memory_tui.ltm.memories import Memories
from memory_tui.plan import Options
from memory_tui.providers.chain import Chain

TEXTS = ("I prefer tabs to spaces", "The router is in the cellar", "We decided to use Postgres", "Mira likes oranges")
Opened = Callable[..., Memories]


def bytes_of(folder: Path) -> dict[str, str]:
    """Every file below `folder` with a fingerprint of what it holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def foreign(folder: Path, texts: Sequence[str], vectors: Any) -> list[str]:
    """Make a table as OpenClaw does: no key is declared, nothing says who made the vectors. Returns the ids."""
    import lancedb
    import pyarrow as pa

    ids = [str(uuid.UUID(int=number + 1, version=4)) for number in range(len(texts))]
    table = pa.table(
        {
            "id": ids,
            "text": list(texts),
            "vector": pa.array([list(map(float, row)) for row in vectors], pa.list_(pa.float32(), len(vectors[0]))),
            "importance": [0.7] * len(texts),
            "category": ["fact"] * len(texts),
            "createdAt": [1.7e12 + 1000 * number for number in range(len(texts))],
        }
    )
    lancedb.connect(str(folder)).create_table("memories", table)
    return ids


@pytest.fixture(scope="module")
def embedded() -> Any:
    """The vectors of `TEXTS`, by the model in the package."""
    chain = Chain("builtin", lambda _error: None)
    provider = chain.provider()
    assert provider is not None
    return provider.embed(list(TEXTS), "document")


@pytest.fixture(scope="module")
def made_elsewhere(tmp_path_factory: pytest.TempPathFactory, embedded: Any) -> Path:
    """A table of another program, to be copied."""
    folder = tmp_path_factory.mktemp("elsewhere") / "lancedb"
    foreign(folder, TEXTS, embedded)
    return folder


@pytest.fixture
def copied(made_elsewhere: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_elsewhere, tmp_path / "lancedb"))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens the memories in a folder."""
    every: list[Memories] = []

    def make(place: Path | str | None = None, **more: Any) -> Memories:
        named = str(place or tmp_path / "memories")
        choices = plan.choose(Options(workspace=str(tmp_path), memories=named, **more))
        every.append(Memories(choices, Approvals(tmp_path)))
        return every[-1]

    yield make
    for memories in every:
        memories.close()
