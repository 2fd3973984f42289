"""Edits of a note as remedies: what is said of each holds when it is made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.core.errors import Cancelled
from memory_tui.curate import note_edits
from memory_tui.curate.note_edits import EditedLine
from memory_tui.engine import edit_trials, past_questions
from memory_tui.engine.edit_trials import EditsFound, NoEdit
from memory_tui.engine.past_questions import PastQuestions
from memory_tui.explain.why_never import PastQuestion
from memory_tui.render import edit_text
from memory_tui.search.rank import rank
from memory_tui.tune.judgments import Label, Notebook, Query
from tests.harness import edits
from tests.harness.claims import NOW, Report, World, open_world
from tests.harness.edits import EditCase

SHOPPING = [f"- {what} from the market, {at} of them" for at, what in enumerate(("apples", "pears", "plums", "figs"))]


def write_notes(folder: Path) -> None:
    """A few notes of which the question finds the wrong ones."""
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n\n- The router is an Omada ER605\n- Anna likes tea\n")
    for number in range(2):
        lift = f"# Lift {number}\n\nThe lift of floor {number} has a sticker, a gateway to nothing, and a loud bell\n"
        (folder / "memory" / f"lift-{number}.md").write_text(lift)
    (folder / "memory" / "shopping.md").write_text("\n".join(["# Shopping", "", *SHOPPING, ""]))
    (folder / "memory" / "2026-03-04.md").write_text("# 2026-03-04\n\n- the plumber came at noon\n")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_notes(tmp_path / "notes")
    opened = open_world("few", tmp_path / "notes", tmp_path / "i.sqlite", "recommended", "builtin", [])
    yield opened
    opened.engine.close()


def past(*texts: str, saved: tuple[Query, ...] = ()) -> PastQuestions:
    asked = (*(PastQuestion(one.text, "saved") for one in saved), *(PastQuestion(text, "logged") for text in texts))
    return PastQuestions(30, (), Notebook(saved), asked, 0)


def found_for(
    world: World, question: str, path: str, line: int, asked: PastQuestions, results: int = 2
) -> tuple[EditsFound, EditCase]:
    settings = world.engine.plan.settings.update({"query.maxResults": results}, "test")
    evidence = world.engine.queries.gather(question)
    answer = world.engine.queries.why(evidence, path, line, settings)
    found = edit_trials.remedies(world.engine, answer, asked)
    assert found is not None
    return found, EditCase(world, evidence, settings, rank(evidence, settings), path=path, line=line, asked=asked)


def test_what_is_said_of_the_edits_of_a_note_holds_when_they_are_made(world: World) -> None:
    saved = Query("how do I get to the gateway", (Label("MEMORY.md", 3),))
    asked = past("plumber at noon", "pears", "bell of floor 3", saved=(saved,))
    found, case = found_for(world, "which gateway do we have", "MEMORY.md", 3, asked)
    report = Report()
    for claim in found.claims:
        report.check(claim, case)
    assert report.untrue == []
    assert found.found[0].edit.kind == "alias"
    assert found.found[0].edit.words == ("gateway",)
    assert [one.edit.size for one in found.found] == sorted(one.edit.size for one in found.found)
    assert {saved.text, case.evidence.query} >= set(found.found[0].mended)
    assert found.found[0].drops_out, "a hit had to go"
    said = [edit_text.claim(claim) for claim in found.claims]
    assert all(sentence.endswith(".") for sentence in said)
    assert "; the word comes from the question;" in said[0]
    assert len(list(edit_text.lines(found))) > len(found.found)
    assert edit_text.data(found)["found"][0]["diff"]


def test_words_of_an_edit_come_from_the_line_where_they_can_and_a_line_can_move(world: World) -> None:
    found, case = found_for(world, "what did anna say on 2026-03-04", "memory/shopping.md", 5, past("anna"), 1)
    report = Report()
    for claim in found.claims:
        report.check(claim, case)
    assert report.untrue == []
    assert "day" in {claim.edit.kind for claim in found.found}, [edit_text.claim(one) for one in found.claims]


def test_no_edit_adds_a_word_without_which_the_line_is_recalled_too(world: World) -> None:
    """Two of five words do, which are not tried together at first; nor does more than a single one, where one does."""
    found, case = found_for(world, "apples pears plums noon gateway", "MEMORY.md", 3, past())
    assert {one.edit.words for one in found.found} == {("noon", "gateway")}
    edits.check_smallest(found.found[0], case)
    every, _ = found_for(world, "which gateway", "MEMORY.md", 3, past())
    aliases = [set(one.edit.words) for one in every.found if one.edit.kind == "alias"]
    assert not any(one < other for one in aliases for other in aliases)


def test_the_smallest_pair_is_given_where_no_single_edit_helps_and_is_one_step(world: World) -> None:
    asked = past("plumber at noon", "bell of floor 0")
    found, case = found_for(world, "lift of floor 1", "MEMORY.md", 3, asked, 1)
    (pair,) = found.found
    assert pair.edit.first is not None
    assert {edit.first for edit in pair.alone} == {None}
    report = Report()
    report.check(pair, case)
    report.check(replace(pair, alone=()), case)
    report.check(replace(pair, alone=(*pair.alone, pair.edit)), case)
    assert len(report.untrue) == 2, report.untrue
    assert "none of 7 single edits that were tried gets the line recalled" in edit_text.claim(pair)
    curator, notes = world.engine.notes.curator, world.folder / "MEMORY.md"
    was = notes.read_bytes()
    done = curator.apply(pair.edit.change)
    world.engine.indexer.sync()
    hits = [one.chunk for one in world.engine.queries.search(case.evidence.query, case.settings).recalled]
    assert edits.place_of(hits, pair.edit.path, pair.edit.line) == pair.place
    curator.undo(done.entry.id)
    assert notes.read_bytes() == was


def test_no_pair_adds_a_word_without_which_the_line_is_recalled_too(world: World) -> None:
    found, case = found_for(world, "facts omada them lift", "memory/shopping.md", 4, past(), 1)
    (pair,) = found.found
    assert pair.edit.first is not None
    assert pair.edit.first.words == ("facts",)
    edits.check_smallest(pair, case)
    data = (world.folder / "memory/shopping.md").read_bytes()
    wanted = EditedLine("memory/shopping.md", data, 4, ("facts", "omada", "lift"))
    more = next(
        one
        for one in note_edits.pairs(wanted, world.engine.notes.curator.read)
        if one.first and set(one.first.words) > set(pair.edit.first.words) and one.words == pair.edit.words
    )
    with pytest.raises(AssertionError, match=r"(facts|omada|lift) is not needed"):
        edits.check_smallest(replace(pair, edit=more), case)


def test_a_word_goes_from_either_side_of_a_pair_and_an_empty_side_goes_as_a_whole(world: World) -> None:
    read = world.engine.notes.curator.read
    wanted = EditedLine("MEMORY.md", read("MEMORY.md") or b"", 3, ("gateway", "modem"))
    every = note_edits.pairs(wanted, read)

    def fewer(words: tuple[str, ...], kind: str, of: tuple[str, ...]) -> set[tuple[tuple[str, ...], ...]]:
        (pair,) = (one for one in every if one.first and (one.first.words, one.kind, one.words) == (words, kind, of))
        less = note_edits.with_fewer_words(wanted, pair, read)
        return {(one.first.words if one.first else (), one.words) for one in less}

    two = ("gateway", "modem")
    assert fewer(two, "heading", two) == {
        *(((word,), two) for word in two),
        *((two, (word,)) for word in two),
    }
    assert fewer(("gateway",), "heading", two) == {((), two), (("gateway",), ("gateway",)), (("gateway",), ("modem",))}
    assert {own for own, _ in fewer(two, "own note", ("router", "Omada", "ER605"))} == {("gateway",), ("modem",)}
    one_word = EditedLine("MEMORY.md", wanted.data, 3, ("gateway",))
    (pair,) = (one for one in note_edits.pairs(one_word, read) if one.words == ("gateway",))
    assert {(one.kind, one.first) for one in note_edits.with_fewer_words(one_word, pair, read)} == {
        ("heading", None),
        ("alias", None),
    }


def test_a_pair_also_moves_a_line_with_words_behind_it(world: World) -> None:
    data = (world.folder / "MEMORY.md").read_bytes()
    wanted = EditedLine("MEMORY.md", data, 3, ("gateway", "router"), dt.date(2026, 3, 4))
    every = note_edits.pairs(wanted, world.engine.notes.curator.read)
    assert {edit.kind for edit in every} == {"heading", "own note", "day"}
    assert [edit.size for edit in every] == sorted(edit.size for edit in every)
    for edit in every:
        texts = {file.path: (file.after or b"").decode().split("\n") for file in edit.change.files}
        assert texts[edit.path][edit.line - 1] == "- The router is an Omada ER605 (gateway)"
        assert {file.path: file.before for file in edit.change.files}["MEMORY.md"] == data
        origin = note_edits.origins(edit.change, edit)
        assert origin[edit.path, edit.line] == ("MEMORY.md", 3)
        anna = texts["MEMORY.md"].index("- Anna likes tea") + 1
        assert origin["MEMORY.md", anna] == ("MEMORY.md", 4)


def test_where_no_edit_helps_all_that_were_tried_are_named(world: World) -> None:
    found, case = found_for(world, "lift of floor 1", "memory/shopping.md", 3, past())
    tried = NoEdit(tuple(one.edit for one in found.found)) if found.found else found.none
    assert tried is not None
    report = Report()
    report.check(replace(tried, tried=()), case)
    for claim in found.claims:
        false = replace(claim, place=claim.place + 1) if not isinstance(claim, NoEdit) else NoEdit(())
        report.check(false, case)
    assert len(report.untrue) == 1 + len(found.claims), "untrue claims are caught"
    assert {type(claim) for claim in found.claims} <= edits.KINDS


def test_who_leaves_waits_for_one_question_at_most(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying edits is the last step of a pane that a person may close: before each question it is asked to go on."""
    went: list[str] = []
    gather = edit_trials.gather
    monkeypatch.setattr(edit_trials, "gather", lambda *given: went.append("asked") or gather(*given))
    queries = world.engine.queries
    settings = world.engine.plan.settings.set("query.maxResults", 2, "test")
    answer = queries.why(queries.gather("which gateway do we have"), "MEMORY.md", 3, settings)
    edit_trials.remedies(world.engine, answer, past("plumber at noon", "pears"), lambda *_: went.append("on"))
    assert went.count("asked") > 6
    assert "asked asked" not in " ".join(went)
    count = went.count("on")
    for stop in range(0, count, max(1, count // 5)):
        went.clear()

        def gone(_done: int, _of: int, stop: int = stop) -> None:
            if went.count("on") == stop:
                raise Cancelled
            went.append("on")

        with pytest.raises(Cancelled):
            edit_trials.remedies(world.engine, answer, past("plumber at noon", "pears"), gone)
        assert went.count("asked") <= stop


def test_a_recalled_line_and_a_blank_one_need_no_edit(world: World) -> None:
    queries = world.engine.queries
    evidence = queries.gather("plumber at noon")
    assert edit_trials.remedies(world.engine, queries.why(evidence, "memory/2026-03-04.md", 3), None) is None
    assert edit_trials.remedies(world.engine, queries.why(evidence, "memory/shopping.md", 2), None) is None


def test_past_questions_are_replayed_under_the_text_that_a_note_would_have(world: World) -> None:
    asked = past("pears", "plumber at noon", "zebra crossing")
    change = world.engine.notes.curator.plan.new_note("Zebra", "the zebra crossing is closed")
    rows = {one.question.text: one for one in edit_trials.replay_edited(world.engine, asked, change, NOW)}
    assert [ref.path for ref in rows["zebra crossing"].gained] == ["memory/zebra.md"]
    assert set(rows) == {one.text for one in asked.questions}
    assert len(rows) <= past_questions.MOST
