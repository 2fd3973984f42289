"""What is said when only one side is searched, when weights do not add up to 1, and of words without blanks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from memory_tui.engine.engine import Engine
from memory_tui.explain.score_lines import ScoreLine
from memory_tui.explain.why import explain, terms_line
from memory_tui.plan import Options
from memory_tui.search.trace import ChunkRef, Trace
from memory_tui.tui.tuning import describe, dials, weighing
from memory_tui.tui.widgets.tune_strip import placed
from memory_tui.tui.widgets.why_rows import packed_rows
from tests.support.tui import NOW, sample

QUESTION = "how is the omada vlan set up"
PAIRS = "Chinese, Japanese and Korean text is matched as pairs of characters"

Ask = Callable[..., tuple[Trace, Engine]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Asks the sample workspace with some settings."""
    workspace = sample(tmp_path / "notes")
    opened: list[Engine] = []

    def run(question: str, *changes: tuple[str, str], provider: str = "scripted") -> tuple[Trace, Engine]:
        engine = Engine.open(
            Options(
                workspace=str(workspace),
                index=str(tmp_path / f"{provider}.sqlite"),
                now=NOW,
                provider=provider,
                changes=(("sync.watch", "false"), *changes),
            )
        )
        opened.append(engine)
        engine.index.sync()
        return engine.search.search(question), engine

    yield run
    for engine in opened:
        engine.close()


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
@pytest.mark.parametrize(
    ("changes", "provider", "side", "label"),
    [
        ((("query.hybrid.enabled", "false"),), "scripted", "the vector alone", "sum"),
        ((), "none", "the words alone", "sum"),
        ((), "scripted", "sum of both sides", "hybrid"),
    ],
)
def test_each_line_is_true_and_they_add_up(
    ask: Ask, profile: str, changes: tuple[tuple[str, str], ...], provider: str, side: str, label: str
) -> None:
    trace, _ = ask("printer", *changes, ("profile", profile), ("query.minScore", "0"), provider=provider)
    assert trace.recalled
    for hit in trace.recalled:
        lines = {line.label: line for line in explain(hit, trace)}
        assert lines[label].detail == side
        running = 0.0
        for line in lines.values():
            if line.operation == "+":
                running += line.value or 0.0
            elif line.operation == "x":
                running *= line.value or 0.0
            elif line.operation == "=":
                assert line.value == pytest.approx(running), line.label
        text = lines["text"].detail
        if side == "the vector alone":
            assert text == "hybrid is off: words are not searched"
        else:
            assert "hybrid is off" not in text


def test_words_that_nobody_searched_are_only_counted(ask: Ask) -> None:
    trace, _ = ask(QUESTION, ("query.hybrid.enabled", "false"))
    detail = terms_line("omada vlan vlan", trace).detail
    assert "vlan 2x" in detail
    assert detail.endswith("  (not searched, only counted)")


def test_pairs_of_characters_are_explained_where_there_are_some(ask: Ask) -> None:
    trace, _ = ask("外婆 药物过敏")
    assert "missing: 药物过敏" in terms_line("外婆", trace).detail
    assert terms_line("外婆", trace).detail.endswith(f"  ({PAIRS})")
    assert PAIRS not in terms_line("外婆", trace, say_how=False).detail
    trace, _ = ask("printer cellar")
    assert PAIRS not in terms_line("printer", trace).detail
    trace, _ = ask("外婆 药物过敏", ("profile", "openclaw-2026.3"))
    assert PAIRS not in terms_line("外婆", trace).detail, "these rules cut nothing"


def test_words_of_the_date_that_is_indexed_with_a_chunk_are_not_missing(ask: Ask) -> None:
    def detail(chunk: ChunkRef, text: str = "A walk.") -> str:
        return terms_line(text, trace, chunk=chunk).detail

    first = ChunkRef(1, "a", "memory/2023-04-30.md", "memory", 1, 5)
    trace, _ = ask("sunday zebra")
    assert detail(first) == "sunday 1x (date); missing: zebra"
    assert detail(first, "Every Sunday.") == "sunday 2x (1 in the date); missing: zebra"
    assert detail(replace(first, path="MEMORY.md")) == "missing: sunday, zebra"
    below = replace(first, start_line=9)
    assert detail(below) == "sunday 1x (date); not in its lines or date: zebra", "a heading above may hold it"
    trace, _ = ask("sunday zebra", ("profile", "openclaw-2026.3"))
    assert detail(below) == "missing: sunday, zebra", "these rules index the text alone"


@pytest.mark.parametrize("width", [40, 80])
def test_a_low_pane_cuts_no_fact(ask: Ask, width: int) -> None:
    trace, _ = ask("外婆 药物过敏", ("vectorWeight", "0.9"))
    facts = [
        *explain(trace.recalled[0], trace),
        terms_line("外婆", trace),
        *(ScoreLine("notice", notice.message) for notice in trace.notices),
    ]
    rows = ["".join(text for text, _ in row) for row in packed_rows(facts, width)]
    assert all(cell_len(row) <= width for row in rows)
    shown = "".join("".join(rows).split())
    for fact in facts:
        assert "".join(fact.detail.split()) in shown, fact.label


def test_weights_that_do_not_add_up_say_what_they_come_to(ask: Ask) -> None:
    trace, engine = ask("printer", ("vectorWeight", "0.9"))
    said = next(notice.message for notice in trace.notices if notice.code == "weights")
    assert said == (
        "vectorWeight 0.9 (the command line) and textWeight 0.6 (profile recommended) do not add up to 1: "
        "they count as 0.60 and 0.40."
    )
    shown = dials(engine.plan.settings, engine.plan.settings)
    assert weighing(shown) == "weights .90 : .60 count as .60 : .40"
    vector = next(dial for dial in shown if dial.knob.key == "query.hybrid.vectorWeight")
    assert "counts as .60" in describe(vector)
    assert "vec .90→.60  txt .60→.40" in placed(shown, -1, "", 200)[0][0].plain
    assert engine.search.rank(engine.search.gather("printer"), engine.plan.settings).recalled[
        0
    ].vector_weight == pytest.approx(0.6)
    turned = dials(
        engine.plan.settings.update({"query.hybrid.vectorWeight": 0.7, "query.hybrid.textWeight": 0.3}, "here"),
        engine.plan.settings,
    )
    assert weighing(turned) == ""
