"""Parts of bm25 and of the cosine: they add up to what was ranked, and each is what its word or line gives alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.core.cancel import Stop
from memory_tui.core.errors import Cancelled
from memory_tui.explain.shares import CosineShare, Shares, WithoutSentence, WordShare, shares, shares_of
from memory_tui.providers.wires.builtin import Builtin
from memory_tui.render import share_text
from memory_tui.search.rank import rank
from memory_tui.tui.views.search.explaining import find_heat
from memory_tui.tui.widgets.quote import heat_rows
from tests.harness.claims import Report, World, adversarial, open_world
from tests.harness.share_checks import ShareCase
from tests.support.provider_server import Play, serving, status

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


def test_another_provider_here_leaves_out_a_sentence_at_a_time(opened: Opened) -> None:
    world, report = opened("recommended", "scripted"), Report()
    found = [own for query in QUESTIONS[:2] for own in parts(world, query, report)]
    assert report.untrue == []
    assert report.counts["WithoutSentence"] > 3
    assert not any(own.tokens for own in found)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[tuple[World, Play]]:
    """A workspace whose vectors a server makes, in the wire format of OpenAI."""
    questions = adversarial(tmp_path / "notes")
    (tmp_path / "notes" / "MEMORY.md").write_text(
        "# Router\n\nThe router is an Omada. Anna put it\ninto the closet. Is it dusty?\n\n"
        "- The password is in a book\n"
    )
    with serving(Play()) as play:
        section = {"provider": "openai", "remote": {"baseUrl": play.url, "apiKey": "sk-shares-0123456789"}}
        config = tmp_path / "openclaw.json"
        config.write_text(json.dumps({"agents": {"defaults": {"memorySearch": section}}}))
        world = open_world(
            "elsewhere", tmp_path / "notes", tmp_path / "i.sqlite", "recommended", "openai", questions, config
        )
        yield world, play
        world.engine.close()


def test_a_provider_elsewhere_embeds_a_chunk_without_each_sentence_when_asked(elsewhere: tuple[World, Play]) -> None:
    world, play = elsewhere
    engine = world.engine
    evidence = engine.queries.gather("router anna")
    answer = engine.queries.why(evidence, "MEMORY.md", 1)
    chain, best, row = engine.providers.chain, answer.best, answer.row
    assert best is not None
    assert best.candidate is not None
    assert row is not None
    asked, calls = len(play.asked), chain.members()[0].calls
    assert not shares_of(engine.queries.reader, chain.of_space, best, answer.trace).without
    assert len(play.asked) == asked, "nothing is sent unless somebody asks"
    stopped = Stop()
    stopped.set()
    with pytest.raises(Cancelled):
        shares_of(engine.queries.reader, chain.of_space, best, answer.trace, send=True, stop=stopped)
    assert len(play.asked) == asked
    own, sentence = find_heat(answer.trace, best.candidate, engine, Stop())
    assert own is not None
    text = best.text
    assert [asked.texts for asked in play.asked[asked:]] == [
        ["router anna"],
        [text, *(text.replace(one, "", 1) for one in sorted((one.text for one in own.without), key=text.index))],
    ], "the question, then one request with all of them"
    assert {one.path for one in play.asked[asked:]} == {"/embeddings"}
    assert chain.members()[0].calls == calls + 2
    assert f"openai embedded {2 + len(own.without)} texts" in sentence
    assert sorted(one.text for one in own.without) == [
        "# Router",
        "- The password is in a book",
        "Anna put it\ninto the closet.",
        "Is it dusty?",
        "The router is an Omada.",
    ]
    report = Report()
    case = ShareCase(
        world, evidence, engine.plan.settings, answer.trace, row, shares=own, provider=chain.of_space(BUILTIN)
    )
    for claim in own.claims:
        report.check(claim, case)
    assert report.untrue == []
    report.check(replace(own.without[0], points=own.without[0].points + 0.01), case)
    assert len(report.untrue) == 1
    asked = len(play.asked)
    again, sentence = find_heat(answer.trace, best.candidate, engine, Stop())
    assert again == own
    assert len(play.asked) == asked
    assert "nothing was sent again" in sentence
    raised = {number for one in own.without if one.points > 0 for number, _, _ in one.pieces}
    bars = [row for row in heat_rows(text, best.chunk.start_line, 70, own) if row[0][0] == "  w/o "]
    assert 0 < len(bars) <= len(raised)


def test_a_provider_that_fails_leaves_the_words_and_the_reason(elsewhere: tuple[World, Play]) -> None:
    world, play = elsewhere
    answer = world.engine.queries.why(world.engine.queries.gather("omada dusty"), "MEMORY.md", 3)
    assert answer.best is not None
    assert answer.best.candidate is not None
    play.usual = status(401, {"error": {"message": "no such key"}})
    own, sentence = find_heat(answer.trace, answer.best.candidate, world.engine, Stop())
    assert own is not None
    assert own.words
    assert not own.without
    assert "401" in sentence or "key" in sentence


def test_an_untrue_part_is_caught(opened: Opened) -> None:
    world = opened("recommended", "builtin")
    engine = world.engine
    evidence = engine.queries.gather(QUESTIONS[0])
    answer = engine.queries.why(evidence, "memory/same-0.md", 3)
    assert answer.best is not None
    with engine.queries.reader() as store:
        own = shares(store, answer.best, answer.trace)
    assert answer.row is not None
    settings = engine.plan.settings
    case = ShareCase(world, answer.evidence, settings, answer.trace, answer.row, shares=own, provider=Builtin())
    report = Report()
    for claim in (
        replace(own.words[0], points=own.words[0].points + 0.01),
        replace(own.tokens[0], times=99),
        WithoutSentence("the router omada", ((3, 0, 16),), 0.9),
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
    assert share_text.share(CosineShare("the", 0, 1, -0.00001)) == "the  0.0000"
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
    assert share_text.cosine_heat(line, 7, found) == [(4, 11, "█"), (16, 20, "▄")]
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
