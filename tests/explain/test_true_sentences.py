"""Sentences that were once untrue, each on an index where it was."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.mcp.tools import memory_search
from memory_tui.plan import Options
from memory_tui.search.trace import Trace

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC).timestamp()
STILL = (("sync.watch", "false"), ("sync.onSearch", "false"), ("sync.onSessionStart", "false"))
Open = Callable[..., Engine]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    return tmp_path / "notes"


@pytest.fixture
def opened(notes: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens the notes under a profile, indexed; closed at the end."""
    engines: list[Engine] = []

    def made(profile: str, provider: str = "none", **changes: object) -> Engine:
        options = Options(
            workspace=str(notes),
            index=str(tmp_path / f"{profile}.{provider}.sqlite"),
            provider=provider,
            now=NOW,
            changes=(("profile", profile), *STILL, *((key, str(value)) for key, value in changes.items())),
        )
        engines.append(Engine.open(options))
        engines[-1].indexer.sync()
        return engines[-1]

    yield made
    for engine in engines:
        engine.close()


def empty(trace: Trace) -> str:
    assert trace.empty is not None
    return wording.empty(trace.empty, trace.profile)[0]


# --- absent from the text, or invisible to a tokenizer --------------------------------------------------------------


@pytest.fixture
def chinese(notes: Path) -> Path:
    """A password in every line, inside of clauses."""
    (notes / "MEMORY.md").write_text("# 事实\n" + "".join(f"- 路由器第{i}的密码是写在柜子里的\n" for i in range(120)))
    (notes / "memory" / "2026-11-18.md").write_text("我的WiFi密码在纸上\nThe router is documented\n")
    return notes


@pytest.mark.parametrize("provider", ["builtin", "none"])
@pytest.mark.parametrize("profile", ["openclaw-2026.3", "openclaw-2026.2", "openclaw-2026.9"])
@pytest.mark.parametrize("query", ["密码", "密码是什么", "路由器 密码", "WiFi", "我的密码", "管理员密码"])
def test_a_word_in_the_text_is_never_called_absent(
    chinese: Path, opened: Open, profile: str, provider: str, query: str
) -> None:
    engine = opened(profile, provider)
    trace = engine.queries.search(query)
    if trace.empty is None:
        return
    said = empty(trace)
    answered = memory_search(engine, {"query": query}).answer["empty"]["sentence"]
    assert answered == said
    if "score below" not in said:
        held = "密码" if "密码" in query else "wifi"
        assert held in said.partition("Notes hold")[2].lower(), said


def test_a_word_that_stands_nowhere_is_absent(chinese: Path, opened: Open) -> None:
    engine = opened("openclaw-2026.3")
    assert empty(engine.queries.search("giraffe")) == 'No note contains the word "giraffe".'
    assert empty(engine.queries.search("rout")) == 'No note contains the word "rout".'
    assert empty(engine.queries.search("咖啡馆")) == 'No note contains the word "咖啡馆".'


def test_a_chunk_that_holds_a_word_is_not_said_to_lack_it(chinese: Path, opened: Open) -> None:
    engine = opened("openclaw-2026.3")
    evidence = engine.queries.gather("路由器 密码")
    said = wording.sentence(engine.queries.why(evidence, "MEMORY.md", 2).fate)
    assert "lacks" not in said
    assert "none of" not in said.lower()
    assert 'It holds "路由器", "密码" only inside of longer words' in said
