"""A text that a provider refuses is asked for once, not at every sync; what has no vector is said, with the reason."""

import time

import pytest

from memory_tui.index import embedding
from memory_tui.providers.base import Cause, ProviderFailure
from tests.support.index import Counting, Memory


class Picky(Counting):
    """Refuses every call that holds a text with the word poison."""

    state = Cause.TOO_LONG

    def embed(self, texts, kind):
        if any("poison" in text for text in texts):
            self.calls.append(list(texts))
            raise ProviderFailure(self.state, "too long for me")
        return super().embed(texts, kind)


class Half(Counting):
    """Makes what it can of a call, and then refuses it for the rest."""

    def embed(self, texts, kind):
        bad = [at for at, text in enumerate(texts) if "poison" in text]
        good = [at for at in range(len(texts)) if at not in bad]
        made = super().embed([texts[at] for at in good], kind) if good else []
        if bad:
            self.texts_refused.extend(texts[at] for at in bad)
            failure = ProviderFailure(Cause.NO_VECTOR, "not this one")
            failure.done = dict(zip(good, made, strict=True))
            raise failure
        return made

    def __init__(self):
        super().__init__()
        self.texts_refused: list[str] = []


@pytest.fixture
def memory(tmp_path):
    memory = Memory(tmp_path / "notes", tmp_path / "i" / "memory.sqlite")
    memory.provider = Picky()
    for name in ("a", "b", "poison", "z"):
        memory.write(f"memory/{name}.md", name)
    yield memory
    memory.store.close()


def asked(memory):
    """How often the provider was asked for a refused text since the last time."""
    count = sum("poison" in text for call in memory.provider.calls for text in call)
    memory.provider.calls.clear()
    return count


def later(monkeypatch, seconds):
    now = time.time
    monkeypatch.setattr(embedding.time, "time", lambda: now() + seconds)


def test_it_is_asked_for_once(memory):
    assert memory.sync().error == "too long for me."
    assert asked(memory) == 2, "with the others, and alone"
    assert memory.store.counts().chunks - memory.store.counts().embedded == 1
    for _ in range(3):
        report = memory.sync()
        assert (report.error, report.changed, asked(memory)) == ("", False, 0)
    memory.write("memory/b.md", "another text")
    assert memory.sync().indexed == 1
    assert asked(memory) == 0
    [refused] = memory.store.rejected()
    assert (refused.path, refused.start_line, refused.reason) == ("memory/poison.md", 1, "too long for me.")


def test_a_call_that_was_refused_in_part_tells_which_text_is_to_blame(memory):
    memory.provider = provider = Half()
    memory.sync()
    assert memory.store.counts().embedded == memory.store.counts().chunks - 1
    assert [refused.path for refused in memory.store.rejected()] == ["memory/poison.md"]
    refused = len(provider.texts_refused)
    memory.sync()
    assert len(provider.texts_refused) == refused


def another_text(memory, monkeypatch):
    memory.write("memory/poison.md", "more poison")


def another_provider(memory, monkeypatch):
    memory.provider = Picky("another")


def another_size_of_chunks(memory, monkeypatch):
    memory.settings = memory.settings.set("chunking.tokens", 300, "test")


@pytest.mark.parametrize(
    ("change", "force", "times"),
    [
        (another_text, False, 1),
        (another_provider, False, 2),
        (another_size_of_chunks, False, 0),
        (lambda memory, monkeypatch: None, True, 1),
        (lambda memory, monkeypatch: later(monkeypatch, embedding.SECONDS - 60), False, 0),
        (lambda memory, monkeypatch: later(monkeypatch, embedding.SECONDS + 60), False, 1),
    ],
    ids=["text", "provider", "chunks", "force", "23 h", "a day"],
)
def test_it_is_asked_for_again_when_there_is_hope(memory, monkeypatch, change, force, times):
    memory.sync()
    asked(memory)
    first = memory.provider
    change(memory, monkeypatch)
    memory.sync(force=force)
    assert asked(memory) == times
    memory.sync()
    assert asked(memory) == 0
    assert len(memory.store.rejected()) == 1
    memory.provider = first
    memory.sync()
    assert asked(memory) == 0, "the first refused it already"
    memory.write("memory/poison.md", "none any more")
    memory.sync()
    assert memory.store.rejected() == []
    assert memory.store.counts().embedded == memory.store.counts().chunks
