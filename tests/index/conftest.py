import pytest

from tests.support.index import Memory


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path / "notes", tmp_path / "memory.sqlite")
    yield memory
    memory.store.close()
