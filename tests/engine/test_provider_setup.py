"""From configuration to provider: notes go where the person said, with the key they gave, and nowhere else."""

import pytest

from memory_tui.engine.engine import Engine
from tests.support.embed import configure, options

pytest_plugins = ("tests.support.provided",)


def test_a_change_of_profile_pays_for_no_vector_twice(play, notes, tmp_path, monkeypatch):
    """Texts that both ways of cutting have in common are sent once; of an index that cannot be read it is said."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for day in range(1, 4):
        (notes / "memory" / f"2026-11-0{day}.md").write_text(f"# Day {day}\n\nThe vlan of port {day}.\n")
    (notes / "MEMORY.md").write_text("# Facts\n\n- Router: Omada ER605\n- Anna: Graz\n")
    configure(tmp_path, play.url)

    def opened(profile):
        return Engine.open(options(tmp_path, index=None, provider="openai", changes=(("profile", profile),)))

    def sent():
        trial = "memory"
        return [text for request in play.asked for text in request.texts if text != trial]

    with opened("openclaw-2026.3") as engine:
        assert engine.index.sync().shared == 0
        older = engine.plan.index
        with engine.search.reader() as store:
            before = {digest for (digest,) in store.query("SELECT hash FROM chunks")}
    first = sent()
    play.asked.clear()
    with opened("openclaw-2026.9") as engine:
        assert older in engine.plan.siblings
        costs = engine.providers.forecast()
        assert costs is not None
        report = engine.index.sync()
        with engine.search.reader() as store:
            chunks = dict(store.query("SELECT hash, text FROM chunks"))
        assert report.error == report.unshared == ""
        assert report.shared == report.reused == len(before & chunks.keys()) >= 3
        assert (costs.cached, costs.send) == (report.shared, report.embedded)
        assert sorted(sent()) == sorted(text for digest, text in chunks.items() if digest not in before)
        assert not set(sent()) & set(first)
        status = engine.status()
        assert (status.embedded, status.cache.hits) == (status.chunks, report.shared)
        newer, found = engine.plan.index, engine.search.search("vlan port 2").recalled
    newer.unlink()
    older.write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    play.asked.clear()
    with opened("openclaw-2026.9") as engine:
        report = engine.index.sync()
        assert report.shared == 0
        assert older.name in report.unshared
        assert sorted(sent()) == sorted(chunks.values())
        again = engine.search.search("vlan port 2").recalled
        assert [hit.score for hit in again] == pytest.approx([hit.score for hit in found], abs=1e-4)
    assert older.read_bytes().endswith(b"x"), "it is only read"
