"""Parts of bm25 and of the cosine: they add up to what was ranked, and each is what its word or line gives alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_tui.explain.shares import CosineShare, Shares, WithoutLine, WordShare, shares, shares_of
from memory_tui.providers.wires.builtin import Builtin
from memory_tui.render import share_text
from memory_tui.search.rank import rank
from memory_tui.tui.widgets.quote import heat_rows
from tests.harness.claims import Report, World, adversarial, open_world
from tests.harness.share_checks import ShareCase

Opened = Callable[[str, str], World]
BUILTIN = Builtin().identity
QUESTIONS = ("router omada anna", "did anna move the router", "路由器 密码", "the closet")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    worlds: list[World] = []
    questions = adversarial(tmp_path / "notes")

    def made(profile: str, provider: str) -> World:
        index = tmp_path / f"{profile}.{provider}.sqlite"
        worlds.append(open_world("adversarial", tmp_path / "notes", index, profile, provider, questions))
        return worlds[-1]

    yield made
    for world in worlds:
        world.engine.close()


def parts(world: World, query: str, report: Report) -> list[Shares]:
    """The parts of every hit of a question, checked."""
    engine, settings = world.engine, world.engine.plan.settings
    evidence = engine.queries.gather(query)
    ranked = rank(evidence, settings)
    found = []
    for hit in ranked.recalled:
        answer = engine.queries.why(evidence, hit.chunk.path, hit.chunk.start_line)
        row = answer.row
        assert row is not None
        own = shares_of(engine.queries.reader, engine.providers.chain.of_space, answer.best, answer.trace)
        with engine.queries.reader() as store:
            identity = store.identity()
        provider = engine.providers.chain.of_space(identity) if identity else None
        case = ShareCase(world, answer.evidence, settings, answer.trace, row, shares=own, provider=provider)
        for claim in own.claims:
            report.check(claim, case)
        lexical = case.candidate.lexical
        if lexical is not None and lexical.body:
            assert own.boosts or not lexical.asked + lexical.path_words, "the boost falls into words"
        if case.candidate.text.bm25 is not None:
            assert own.words, "bm25 falls into words"
        if provider is not None and identity == BUILTIN and case.candidate.vector.cosine:
            assert own.tokens, "a cosine of the table falls into words"
        found.append(own)
    return found


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.9"])
def test_the_parts_of_every_hit_add_up(opened: Opened, profile: str) -> None:
    world, report = opened(profile, "builtin"), Report()
    found = [own for query in QUESTIONS for own in parts(world, query, report)]
    assert report.untrue == []
    assert report.counts["WordShare"] > 5
    assert report.counts["CosineShare"] > 50
    assert sum(bool(own.tokens) for own in found) > 8


def test_keywords_that_were_looked_for_alone_fall_into_words_too(opened: Opened) -> None:
    """Under 2026.9 the best of several searches gives the score; the word that was asked twice counts twice."""
    world, report = opened("openclaw-2026.9", "none"), Report()
    found = [own for query in ("did anna move the router", "router router") for own in parts(world, query, report)]
    assert report.untrue == []
    assert report.counts["BoostShare"] > 5
    ranked = rank(world.engine.queries.gather("did anna move the router"), world.engine.plan.settings)
    assert any(hit.lexical is not None and hit.lexical.term for hit in ranked.recalled)
    assert [one.word for one in found[-1].words] == ["router", "router"]


def test_another_provider_leaves_out_a_line_at_a_time(opened: Opened) -> None:
    world, report = opened("recommended", "scripted"), Report()
    found = [own for query in QUESTIONS[:2] for own in parts(world, query, report)]
    assert report.untrue == []
    assert report.counts["WithoutLine"] > 3
    assert not any(own.tokens for own in found)


def test_an_untrue_part_is_caught(opened: Opened) -> None:
    world = opened("recommended", "builtin")
    engine = world.engine
    evidence = engine.queries.gather(QUESTIONS[0])
    answer = engine.queries.why(evidence, "memory/same-0.md", 3)
    assert answer.best is not None
    with engine.queries.reader() as store:
        own = shares(store, answer.best, answer.trace, None)
    assert answer.row is not None
    settings = engine.plan.settings
    case = ShareCase(world, answer.evidence, settings, answer.trace, answer.row, shares=own, provider=Builtin())
    report = Report()
    for claim in (
        dataclasses.replace(own.words[0], points=own.words[0].points + 0.01),
        dataclasses.replace(own.tokens[0], times=99),
        WithoutLine(3, 0.9),
    ):
        report.check(claim, case)
    assert len(report.untrue) == 3


def test_the_words_show_sum_parts_and_heat(opened: Opened) -> None:
    world = opened("recommended", "builtin")
    own = parts(world, QUESTIONS[0], Report())[0]
    lines = list(share_text.share_lines(own))
    assert lines[0].startswith("bm25 by word, ")
    assert any(line.startswith("Cosine by word, ") for line in lines)
    assert share_text.heat(1.0, 1.0) == "█"
    assert share_text.heat(-1.0, 1.0) == " "
    data = share_text.share_data(own)
    assert len(data["cosineByWord"]) == len(own.tokens)
    assert data["words"][0]["points"] == own.words[0].points


def test_the_heat_of_a_text_stands_below_the_words_that_give_it() -> None:
    """Who sees no shades reads the same from the bars: one under each word, taller where it gives more."""
    found = Shares(
        (WordShare("router", 2, 9, 1, 8, 8.0, 1.0, 2.0, 2.0), WordShare("anna", 3, 9, 1, 8, 8.0, 1.0, 1.0, 1.0)),
        (CosineShare("router,", 0, 1, 0.4), CosineShare("anna", 0, 2, 0.4), CosineShare("the", 0, 1, 0.01)),
    )
    line = "the router, 路由器 anna"
    assert share_text.cosine_heat(line, found) == [(4, 11, "█"), (16, 20, "▄")]
    assert share_text.bm25_heat(line, found) == [(4, 10, "█"), (16, 20, "▄")]
    rows = list(heat_rows(line, 7, 60, found))
    drawn = ["".join(text for text, _ in row) for row in rows]
    assert drawn == [
        "    7 the router, 路由器 anna",
        "  cos     ███████        ▄▄▄▄",
        " bm25     ██████         ▄▄▄▄",
    ]
    assert {("router,", "heat3"), ("anna", "heat1")} <= set(rows[0])
    narrow = ["".join(text for text, _ in row) for row in heat_rows(line, 7, 18, found)]
    assert [row for row in narrow if row.startswith("  cos")] == ["  cos     ███████", "  cos        ▄▄▄▄"]
