"""Statements about an answer, without an app: sums, rows, verdicts, remedies, knobs, saved questions, comparison."""

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_tui.config.settings import PROFILES, profile_named
from memory_tui.engine.engine import Engine
from memory_tui.explain import hit_text, wording
from memory_tui.explain.counterfactuals import WEIGHT, Change, flips, that_send
from memory_tui.explain.why_not import row_of
from memory_tui.plan import Options
from memory_tui.search.second_stage import CANDIDATES
from memory_tui.search.trace import ChunkRef
from memory_tui.sentences import notice
from memory_tui.tui import any_line, compare, hits, knobs, ranking, saved
from memory_tui.tui.rows import short_path
from memory_tui.tune import Label, Measured, NoEvidence, Notebook, Query, measure
from tests.support.tui import NOW, QUESTION, sample
from tests.support.workspace import put

DECAY = {"query.hybrid.temporalDecay.enabled": True}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hits")
    workspace = sample(folder / "notes", more=True)
    with Engine.open(Options(workspace=str(workspace), index=str(folder / "index.sqlite"), now=NOW)) as engine:
        engine.index.catch_up()
        yield engine


@pytest.fixture(scope="module")
def evidence(engine):
    return engine.search.gather(QUESTION)


@pytest.fixture(scope="module")
def trace(engine, evidence):
    return engine.search.rank(evidence, engine.plan.settings)


@pytest.fixture(scope="module")
def rows(evidence, trace):
    return hits.rows(evidence, trace, 14)


def spoken(evidence, trace, row):
    return wording.asked_words(trace, evidence.texts[row.hit.chunk.rowid])


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=6))
def test_figures_add_up_exactly_and_each_is_next_to_its_value(values):
    units = wording.hundredths(values, sum(values))
    assert sum(units) == round(sum(values) * 100)
    assert all(abs(unit - value * 100) < 1 + 1e-6 for unit, value in zip(units, values, strict=True))
    assert wording.hundredths([0.2024, 0.3024, 0.1525], 0.6573) == [20, 31, 15], "the largest gets what is over"


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3", "openclaw-2026.2"])
def test_the_sums_of_every_passage_add_up_to_its_score(engine, profile):
    settings = engine.plan.with_profile(profile).update(DECAY, "test")
    questions = QUESTION, "what did we say yesterday", "network.md", "teleporter warranty"
    traces = [engine.search.rank(engine.search.gather(query), settings) for query in questions]
    for hit in (hit for trace in traces for hit in (*trace.recalled, *trace.lost)):
        sums = hits.parts(hit)
        assert [part.name.split()[0] for part in sums[:3]] == ["words", "meaning", "age"]
        assert sum(round(float(part.figure) * 100) for part in sums) == round(hit.score * 100)
        assert sum(part.points for part in sums) == pytest.approx(hit.score, abs=0.005 * len(sums))
        assert not any("release" in part.name for part in sums)


def test_a_passage_beside_a_better_one_has_a_fourth_sum(rows):
    lost = [row for row in rows if row.hit.second and row.hit.second.lost]
    assert lost
    assert all((row.sums[3].name, row.sums[3].figure) == (hits.BESIDE, "-.10") for row in lost)


def test_a_day_has_one_style_under_every_ranking(engine, evidence, rows):
    undated = hits.rows(evidence, engine.search.rank(evidence, engine.plan.with_profile("openclaw-2026.3")), 14)
    dated, others = ({row.hit.chunk: row.name.split()[:2] for row in side} for side in (rows, undated))
    both = {chunk for chunk in dated.keys() & others.keys() if "/2026-" in chunk.path}
    assert both
    assert {chunk: dated[chunk] for chunk in both} == {chunk: others[chunk] for chunk in both}


def test_age_takes_points_under_a_ranking_of_openclaw(engine, evidence):
    settings = engine.plan.with_profile("openclaw-2026.3").update(DECAY, "test")
    dated = [hit for hit in engine.search.rank(evidence, settings).lost if (hit.age_days or 0) > 5]
    assert dated
    assert all(hits.parts(hit)[2].name == "age takes" and hits.parts(hit)[2].points < 0 for hit in dated)


@given(st.integers(0, 30), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_a_bar_fills_its_cells_and_no_more(width, points):
    glyphs = (hits.WORDS, hits.MEANING, hits.AGE)
    drawn = hits.bar([hits.Part("", value, glyph) for value, glyph in zip(points, glyphs, strict=True)], width)
    assert drawn.cell_length == width
    assert len(drawn.plain.rstrip()) == min(width, round(sum(points) * width))


@pytest.mark.parametrize(("width", "lines"), [(55, 2), (95, 2), (79, 1), (58, 1)])
def test_a_row_has_exactly_the_cells_of_the_list(rows, width, lines):
    for row in rows:
        drawn = row.drawn(width, lines).split("\n")
        assert [line.cell_length for line in drawn] == [width] * (lines if row.sent else 1)
        assert f"{row.place:>2} {knobs.figure(row.hit.score):>3} " in drawn[0].plain
        assert drawn[0].plain.endswith(f" {row.age:>9}")


def test_a_row_that_is_too_weak_does_not_seem_to_reach_the_limit(rows):
    shown = {0.3461: ".346 █", 0.34999: ".349 █", 0.3: ".30 ██", 1.0: "1.00 █"}
    weak = {score: replace(rows[0].hit, score=score, verdict=notice("below_min_score", floor=0.35)) for score in shown}
    drawn = {score: dataclasses.replace(rows[0], hit=hit, made={}).drawn(79, 1) for score, hit in weak.items()}
    assert {score: row.plain[4:10] for score, row in drawn.items()} == shown


def test_a_row_shows_what_a_person_said_of_it(evidence, trace):
    plain = hits.rows(evidence, trace, 0)
    right = tuple(Label(row.hit.chunk.path, row.hit.chunk.start_line, 2, "") for row in plain)
    judged = hits.rows(evidence, trace, 0, Query("q", right))
    for row, other in zip(judged, plain, strict=True):
        assert row.drawn(79, 1).plain == f"{other.drawn(79, 1).plain[:3]}✓{other.drawn(79, 1).plain[4:]}"


def test_a_row_with_an_older_value_says_so_first_and_its_verdict_names_the_newer(tmp_path):
    (tmp_path / "memory").mkdir()
    for day, host in (("2026-08-03", "Hetzner"), ("2026-10-09", "Contabo")):
        (tmp_path / "memory" / f"{day}.md").write_text(f"# {day}\n\n- The site runs at {host}.\n")
    with Engine.open(Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), now=NOW)) as engine:
        engine.index.sync()
        evidence = engine.search.gather("Where does the site run?")
        trace = engine.search.rank(evidence, engine.plan.settings)
        newer, older = sorted(hits.rows(evidence, trace, 0), key=lambda row: row.hit.chunk.path, reverse=True)
        assert older.drawn(55, 2).split("\n")[1].plain.strip() == "older value · The site runs at Hetzner."
        assert "older value" in older.drawn(79, 1).plain
        assert "older value" not in newer.drawn(79, 2).plain
        assert [line.cell_length for line in older.drawn(55, 2).split("\n")] == [55, 55]
        said = hits.verdict(older, trace, spoken(evidence, trace, older))
        assert said.endswith(" memory/2026-10-09.md:3 states a newer value.")


def test_an_age_fits_its_column():
    words = {None: "always", 0.5: "today", 14: "14 days", 49: "7 weeks", 300: "10 months", -2: "in 2 days"}
    assert {days: hit_text.age_in_list(days) for days in words} == words
    assert max(map(len, words.values())) <= hits.AGE_CELLS


def test_the_line_below_what_is_sent_says_why_the_others_are_not(engine, evidence):
    def line(changes, profile="recommended"):
        return hits.divider(engine.search.rank(evidence, engine.plan.with_profile(profile).update(changes, "test")))

    assert line({}).endswith("it takes 6")
    assert line({"query.minScore": 0.8}).endswith("they score under .80")
    trace = engine.search.rank(evidence, engine.plan.settings)
    assert trace.level is not None
    kept_back = replace(trace, level=replace(trace.level, level="nothing holds these words"))
    assert "no note answers" in hits.divider(kept_back)
    mixed = "your agent does not get these"
    assert line({"query.minScore": 0.4}) == mixed, "not the reason of all"
    assert line({"query.hybrid.mmr.enabled": True}) == mixed, "variety put another in the place of one"
    strict = engine.search.rank(evidence, engine.plan.settings.update({"query.minScore": 0.8}, "test"))
    rescued = replace(trace.recalled[-1], score=0.3)
    assert hits.divider(replace(strict, recalled=[*strict.recalled, rescued])) == mixed


def test_the_line_above_says_first_whether_the_notes_answer(engine, evidence, trace):
    for width in (60, 80, 120):
        line = hits.level_line(trace, width, "ranking: recommended")
        assert line.cell_length <= width
        assert line.plain.startswith(" ✓ Found: all your words or like ones. ")
        assert "gent gets 6" in line.plain
        assert ("ranking: recommended " in line.plain) == (width >= 80)
        assert line.plain.endswith("c compares ") == (width >= 100)
    # Of passages that the release does not have, what it sends is not claimed.
    foreign = engine.search.rank(evidence, engine.plan.with_profile("openclaw-2026.3"))
    for width in (60, 80, 120):
        line = hits.level_line(foreign, width, "ranking: OpenClaw 2026.3.13, tried").plain
        assert "gent gets about " in line
        assert (" OpenClaw 2026.3.13 cuts notes otherwise  c compares " in line) == (width >= 80)
    assert hits.heading(foreign).startswith("Your agent gets about ")


def test_an_answer_that_lacks_a_word_claims_no_more_than_it_has(engine):
    trace = engine.search.search("printer price")
    assert trace.level is not None
    for width in (80, 120):
        assert hits.level_line(trace, width).plain.startswith(
            ' ~ In part: the best lines lack "price". Your agent gets 6'
        )
    assert trace.level.sentence.startswith('Found in part (the best lines lack "price"): ')
    named = engine.search.search("network history")
    assert named.level is not None
    assert named.level.in_part == "", "a title that is asked for is all of it"


def test_the_lines_that_are_sent_are_named_and_so_is_one_that_is_not(engine, evidence):
    settings = engine.plan.settings.update({"query.maxCharacters": 900}, "test")
    row = hits.rows(evidence, engine.search.rank(evidence, settings), 0)[0]
    part, chunk = row.passage, row.hit.chunk
    assert part is not None
    assert not part.is_whole
    first, last = part.lines
    place, of = f"#L{first}-L{last}", f"  of L1-L{row.hit.last_line}"
    assert hits.reads(row, first, 79).plain == f"The agent reads  {chunk.path}{place}{of}"
    assert hits.reads(row, last + 1, 47).plain == (
        f"Line {last + 1} is not sent; this is:  …/{chunk.path.rpartition('/')[2]}{place}"
    )
    assert row.drawn(55, 2).split("\n")[1].plain.strip().startswith("Ben asked")
    assert part.leaves_out(last) == ""
    assert part.leaves_out(last + 1).startswith(f"Line {last + 1} is not sent: ")
    settings = engine.plan.settings.update({"query.maxCharacters": 200}, "test")
    every = hits.rows(evidence, engine.search.rank(evidence, settings), 0)
    row = next(row for row in every if row.passage and not row.passage.is_whole and len({*row.passage.lines}) == 1)
    assert row.passage is not None
    number = row.passage.first
    assert f"#L{number}  of " in hits.reads(row, number, 79).plain


def test_a_long_figure_stands_apart_from_its_words(evidence, trace, monkeypatch):
    lines = [wording.ScoreLine("vector", "cosine 0.1757", "+", 0.1230191, 7)]
    monkeypatch.setattr(wording, "explain", lambda _hit, _trace: lines)
    first, *_ = hit_text.arithmetic(trace.recalled[0], trace, first=False)
    assert first.strip() == "vector  + 0.1230191 cosine 0.1757"


@pytest.mark.parametrize("width", [80, 120])
def test_the_line_above_says_what_was_read_otherwise(engine, width):
    for query in ("the omda vlan", "omda price"):
        line = hits.level_line(engine.search.search(query), width, "ranking: recommended").plain
        assert line.endswith(' "omda" → "omada"  u undoes ')
        assert "gent gets 6" in line or " 6 sent" in line
    doubted = hits.level_line(engine.search.search("omda zeppelin walrus opera lubricant"), width).plain
    assert "not answered" in doubted.lower()
    assert doubted.endswith(' "omda" → "omada"  u undoes '), "the word is named, however long the verdict is"


@pytest.mark.parametrize("width", [80, 120])
def test_the_line_above_says_in_plain_words_how_much_is_held(engine, width):
    def said(query, **changes):
        trace = engine.search.search(query)
        return hits.level_line(replace(trace, level=replace(trace.level, **changes)), width).plain

    assert said("teleporter warranty").rstrip() == " ✗ Not answered: none of your words. Your agent gets nothing."
    nuts = "what nuts may theo not eat pistachio"
    assert said(nuts).startswith(" ✓ Found: most of your words or like ones. ")
    doubted = said(nuts, level="nearby only")
    assert doubted.startswith(" ? Perhaps not answered: some words match, the subject does not. ")
    assert "gent gets 6" in doubted
    doubted = said(nuts, level="nearby only", doubt_below=1.0)
    assert doubted.startswith(" ? Perhaps not answered: only most of your words. ")
    assert said("bassoon repair").startswith(' ~ In part: the best lines lack "bassoon", "repair". Your agent gets 6')
    assert said("what happened on march 15").startswith((" ~ In part: the time matches; none of your", " ~ In part. "))
    repaired = said("wer hat das dach repariert")
    assert repaired.startswith(" ? Perhaps not answered: none of your main words. ")


def test_a_verdict_names_words_as_the_passage_writes_them(evidence, trace, rows):
    first = spoken(evidence, trace, rows[0])
    assert {word.word: word.form for word in first}["set"] == "settings"
    assert hits.verdict(rows[0], trace, first) == "It has the words you asked for."
    miss = rows[wording.sent_of(trace)]
    assert hits.verdict(miss, trace, spoken(evidence, trace, miss)).startswith(
        'It is 7th, and the agent gets 6. It has "omada"'
    )


def test_a_verdict_quotes_a_word_as_it_was_typed_and_as_it_was_read(engine):
    evidence = engine.search.gather("when is the omda vlan set up")
    trace = engine.search.rank(evidence, engine.plan.settings)
    said = [hits.verdict(row, trace, spoken(evidence, trace, row)) for row in hits.rows(evidence, trace, 30)]
    assert any('but not "omda" (read as "omada")' in text for text in said)
    assert not any('not "omada"' in text or 'or "omada"' in text for text in said)


def test_a_score_beside_a_doubtful_level_is_said_to_compare_passages_alone(engine):
    def said(query):
        evidence = engine.search.gather(query)
        trace = engine.search.rank(evidence, engine.plan.settings)
        return [hits.verdict(row, trace, spoken(evidence, trace, row)) for row in hits.rows(evidence, trace, 0)]

    alone = "A score compares passages only with each other. "
    assert all(text.startswith(alone) for text in said("bassoon repair")), "in part, at .62"
    assert not any(alone in text for text in said(QUESTION))
    both = said(f"{QUESTION} and what may theo not eat")
    assert [text.startswith("It fits one part of the question best") for text in both] == [True, True, *[False] * 4]


def test_logs_of_one_day_in_two_folders_have_two_names(tmp_path):
    for folder in ("memory", "memory/archive"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "2026-02-03.md").write_text(f"# Boiler\n\n- The boiler is off, says {folder}.\n")
    with Engine.open(Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), now=NOW)) as engine:
        engine.index.sync()
        evidence = engine.search.gather("boiler")
        rows = hits.rows(evidence, engine.search.rank(evidence, engine.plan.settings), 9)
        assert {row.name for row in rows} == {"3 Feb Boiler", "archive/2026-02-03 Boiler"}


def test_a_verdict_claims_of_words_what_its_sum_counts(engine):
    """Pieces of words, and words that are left out, are not words like those asked for."""
    said = {"like words": "words like them", "letters": "pieces of them", "line words": "common ones"}
    faint = "a faint likeness to them"
    met = set()
    for query in ("who is the babysitter", "bassoon repair", "tuba lessons", "xylophone"):
        evidence = engine.search.gather(query)
        trace = engine.search.rank(evidence, engine.plan.settings)
        for row in hits.rows(evidence, trace, 60):
            text = hits.verdict(row, trace, spoken(evidence, trace, row))
            claimed = [
                name
                for name, words in said.items()
                if f"asked for, only {words}" in text.replace(faint, said["like words"])
            ]
            measures = {part.name: part for part in row.hit.second.measures} if row.hit.second else {}
            assert all(measures[name].points > 0 for name in claimed), text
            if "like words" in claimed:
                # No single word need be like one of those where all together hold less.
                assert (faint in text) == (measures["like words"].value < 0.6)
            assert "in meaning" not in text, "it has several ranks in meaning"
            met |= {*claimed}
    assert len(met) > 1, met


def test_of_what_no_note_holds_no_like_word_is_claimed_and_a_line_with_letters_decides(engine):
    trace = engine.search.search("quantum chromodynamics lattice")
    assert hits.level_line(trace, 90).plain.rstrip() == " ✗ Not answered: none of your words. Your agent gets nothing."
    for row in hits.rows(trace.evidence, trace, 9):
        text = trace.evidence.texts[row.hit.chunk.rowid]
        assert "like them" not in hits.verdict(row, trace, wording.asked_words(trace, text))
        assert re.search(r"\w", text.split("\n")[row.line - row.hit.chunk.start_line]), row.hit.citation


def test_words_that_stand_apart_are_not_said_to_be_held_where_most_are(tmp_path):
    filler = "\n".join(f"Then came day {number} with nothing to tell at all." for number in range(15))
    put(
        tmp_path,
        "memory/a.md",
        text=f"The printer has a warranty, its price was high.\n{filler}\nThe harbour was closed.\n",
    )
    with Engine.open(Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), now=NOW)) as engine:
        engine.index.sync()
        trace = engine.search.search("printer warranty price harbour")
        (row, *_) = hits.rows(trace.evidence, trace, 0)
        assert trace.level is not None
        found = replace(trace, level=replace(trace.level, level="found"))
        assert hits.level_line(found, 90).plain.startswith(" ✓ Found: most of your words or like ones.")
        text = trace.evidence.texts[row.hit.chunk.rowid]
        said = hits.verdict(row, found, wording.asked_words(found, text))
        assert said == "It has the words you asked for, but not together."


def test_a_remedy_names_what_a_knob_is_at_and_why_a_raised_gate_helps():
    assert knobs.turn("recency.weight", 0.07, 0.02) == "age weighs .07 (now .02)"
    assert knobs.turn(WEIGHT, 0.3, 0.4) == "words : meaning .70 : .30 (now .60 : .40)"
    assert knobs.turn(knobs.FLOOR, 0.2, 0.35) == "too weak under .20 (now .35)"
    assert knobs.turn(knobs.FLOOR, 0.5, 0.35) == "too weak under .50 (now .35), so weaker ones drop out"


def test_every_verdict_has_a_reason(engine, evidence):
    unseen = 0
    for changes in ({}, {"query.minScore": 0.9}, {"query.hybrid.mmr.enabled": True, "query.hybrid.mmr.lambda": 0.1}):
        settings = engine.plan.settings.update(changes, "test")
        trace = engine.search.rank(evidence, settings)
        for row in hits.rows(evidence, trace, 60):
            text = hits.verdict(row, trace, spoken(evidence, trace, row))
            assert text.startswith("It has") == row.sent
            second = row.hit.second
            is_unseen = second is not None and not second.measures and second.weight > row.hit.score and not row.sent
            assert (
                f"the best {CANDIDATES} get a second look, line by line, which gives up to .69" in text
            ) == is_unseen
            assert row.sent or (len(text.split(". ")) == 2 + is_unseen and hits.short_reason(row) != "kept back")
            unseen += is_unseen and not changes
    assert unseen


@pytest.mark.parametrize("width", [56, 77, 58])
def test_sums_fit_their_lines(evidence, trace, rows, width):
    for row in rows:
        lines = hits.sums(row, trace, spoken(evidence, trace, row), width).split("\n")
        assert len(lines) <= 6
        assert max(line.cell_length for line in lines) <= width
        one = hits.sums_in_a_line(row, width)
        assert one.cell_length <= width
        assert f"score {knobs.figure(row.hit.score)}" in one.plain or "…" in one.plain


def test_the_sum_says_first_why_words_may_give_more_than_they_weigh(evidence, trace, rows):
    def head(row):
        return "\n".join(long_sum(evidence, trace, row, 77)).partition("\n How they")[0]

    heavy = next(row for row in rows if row.sums[0].points > trace.rules.text_weight + 0.01)
    first, *sums, score, blank = head(heavy).split("\n")
    assert first == "The best 20 get a second look, line by line: so words can give more than .60."
    assert [line.split()[0] for line in (*sums, score)] == ["words", "meaning", "age", "score"]
    assert not blank
    assert "s shows the sum" in hits.sums_in_a_line(heavy, 79).plain
    assert "s shows the sum" in hits.sums(heavy, trace, spoken(evidence, trace, heavy), 57).plain
    unseen = next(row for row in hits.rows(evidence, trace, 60) if row.hit.second and not row.hit.second.measures)
    assert head(unseen).startswith("words")


def test_the_sum_says_an_age_as_a_person_does(trace, rows):
    def age_line(days):
        row = dataclasses.replace(rows[0], hit=replace(rows[0].hit, age_days=days, age_basis="name"), made={})
        return hits.sums(row, trace, (), 77).plain.split("\n")[2].split("  ")[-1]

    ages = {-3.0: "in 3 days", 0.5: "today", 1.2: "1 day old", 20.0: "20 days old", 3000.0: "8 years old"}
    assert {days: age_line(days) for days in ages} == ages


def test_a_deep_path_keeps_its_end(rows):
    assert short_path("projects/infrastructure-and-network/deploy-runbook-staging") == "…/deploy-runbook-staging"
    assert short_path("work/deploy-runbook") == "work/deploy-runbook"
    assert short_path("anna/laptop:memory/2026-03-10", 20) == "anna/laptop:…/2026-03-10"
    assert short_path("infrastructure/deploy-runbook.md:7-9", 20) == "…/deploy-runbook.md:7-9"


@pytest.mark.parametrize("width", [57, 79])
def test_what_a_knob_is_for_is_not_cut(engine, width):
    for key in knobs.active(engine.plan.settings):
        *words, _ = ranking.detail(key, engine.plan.settings, width).split("\n")
        assert "…" not in words[-1].plain
        assert len(words) <= 2
        assert all(line.cell_length <= width for line in words)
        said = " ".join(line.plain.strip() for line in words)
        assert ("c compares with rankings that cut notes otherwise" in said) == (key == knobs.PROFILE)


def long_sum(evidence, trace, row, width):
    text = evidence.texts[row.hit.chunk.rowid]
    return hits.long_sum(row, trace, spoken(evidence, trace, row), text, width).plain.split("\n")


def test_the_whole_sum_has_every_step_and_fits(evidence, trace, rows):
    lines = long_sum(evidence, trace, rows[0], 54)
    steps = [line.split()[0] for line in lines[lines.index("") + 2 :] if line[1:2] != " "]
    assert steps[:7] == ["words", "meaning", "meaning", "words", "both", "1st", "2nd"]
    assert max(map(len, lines)) <= 54


@pytest.mark.parametrize("profile", PROFILES)
def test_the_whole_sum_leads_to_the_numbers_of_the_pane(engine, evidence, profile):
    trace = engine.search.rank(evidence, engine.plan.with_profile(profile))
    for row in hits.rows(evidence, trace, 30):
        lines = long_sum(evidence, trace, row, 120)
        blank = lines.index("")
        steps = "\n".join(lines[blank + 2 :])
        *sums, score = lines[blank - len(row.sums) - 1 : blank]
        figures = [re.findall(r"^(.+?) +(-?\d?\.\d\d)\b", line) for line in sums]
        assert figures == [[(part.name, part.figure)] for part in row.sums]
        assert score.split()[:2] == ["score", knobs.figure(row.hit.score)]
        for made, total in re.findall(r"(\S+ look .+) = (\S+)$", steps, re.M):
            terms = re.sub(r"(first|second) look ", "", made).replace(" x ", "*")
            assert eval(terms) == pytest.approx(float(total), abs=0.001)
        for gain, left, weight, of in re.findall(r"age +\+ (\S+) +(\S+) x (\S+)/(\S+)", steps):
            assert float(left) * float(weight) / float(of) == pytest.approx(float(gain), abs=0.0006)
            assert (float(weight), float(of)) == (0.02, 1.02), "the knob says .02, too"


def test_each_remedy_does_what_it_says(engine, evidence, trace, rows):
    miss = rows[wording.sent_of(trace)]
    at = row_of(evidence, miss.hit.chunk.rowid)
    assert at is not None
    found = flips(evidence, engine.plan.settings, at, engine.plan.with_profile)
    names = {row.hit.chunk.rowid: (row.place, row.name) for row in rows}
    remedies = hits.remedies([*found.singles, *found.sets], (), names)
    assert remedies[0].text == "7 results instead of 6"
    # What would lose the first passage comes last.
    priced = [*found.singles, *found.sets]
    loser = replace(priced[0], drops_out=(rows[0].hit.chunk,))
    assert hits.remedies([loser, *priced[1:]], (), names)[-1].remedy is loser
    for remedy in remedies:
        assert isinstance(remedy.remedy, Change)
        after = engine.search.rank(evidence, remedy.remedy.settings).recalled
        sent = [hit.chunk.rowid for hit in after]
        assert remedy.place == ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th"][sent.index(miss.hit.chunk.rowid)]
        gone = {hit.chunk.rowid for hit in trace.recalled} - {*sent}
        assert ("drops nothing" in remedy.effect(99).plain) == (not gone)
        assert len(gone) != 1 or names[gone.pop()][1][:10] in remedy.effect(99).plain
        for width in (*range(26, 54), 54, 77):
            line = remedy.drawn(width).plain
            assert len(line) == width
            assert re.search(
                rf" as {remedy.place}(; drops (nothing|\d passages?|the \d..( and \d more)?|.+))?$",
                line,
            ), "no end is cut"
    for out, effect in (
        ([(2, "7 Feb Flush")], "as 6th; drops the 2nd, 7 Feb Flush"),
        ([(0, "people"), (2, "7 Feb Flush"), (3, "MEMORY")], "as 6th; drops the 2nd and 2 more"),
        ([(4, "people"), (5, "MEMORY")], "as 6th; drops 2 passages"),
    ):
        assert dataclasses.replace(remedies[0], out=out, place="6th").effect(99).plain == effect
    # One that sends the passage without the line asked about is none.
    settings, without = engine.plan.settings.update({"query.maxCharacters": 900}, "test"), 0
    for hit in trace.lost[:4]:
        at = row_of(evidence, hit.chunk.rowid)
        assert at is not None
        changes = flips(evidence, settings, at, engine.plan.with_profile)
        for line in range(hit.chunk.start_line, hit.last_line + 1):
            for change in changes.singles:
                rows = hits.rows(evidence, engine.search.rank(evidence, change.settings), 0)
                reads = next(row.passage for row in rows if row.hit.chunk == hit.chunk)
                true = reads is not None and not reads.leaves_out(line)
                kept = that_send(changes, evidence, line)
                assert (change in kept.singles) == true
                # Where the passage is sent and the line is not, that is said.
                assert kept.without is not None or true or reads is None
                assert kept.without is None or kept.without not in kept.singles
                without += not true
    assert without


@pytest.mark.parametrize("profile", [*PROFILES])
def test_only_knobs_with_an_effect_are_listed(engine, profile):
    settings = engine.plan.with_profile(profile)
    keys = knobs.active(settings)
    assert not {*keys} & {*profile_named(profile).ignores}
    assert knobs.HALF_LIFE not in knobs.active(settings.update({knobs.DECAY: False}, "test"))
    for key in keys:
        assert len(knobs.NAMES[key]) + len(knobs.shown(key, settings.values[key].value)) < ranking.LEAD
        assert ranking.row(key, settings, {(key, 1): knobs.moved([1, 2], [2, 3, 4, 5])}, 55).cell_length == 55


def test_a_step_goes_along_the_grid_and_ends_with_the_scale(engine):
    settings = engine.plan.settings
    for key in knobs.active(settings):
        value = settings.values[key].value
        up = knobs.stepped(settings, key, 1, [*PROFILES])
        if isinstance(value, bool | str):
            continue
        assert knobs.share(key, up) >= knobs.share(key, value), "right moves the dot to the right"
        back = knobs.stepped(knobs.with_value(settings, key, up), key, -1, [])
        assert back == value or up == value or value % 5
        for _ in range(800):
            settings = knobs.with_value(settings, key, knobs.stepped(settings, key, 1, []))
        assert knobs.stepped(settings, key, 1, []) == settings.values[key].value


def test_a_score_under_the_floor_reads_so_as_far_as_digits_tell():
    words = {0.3412: ".34", 0.34996: ".34996", 0.3478: ".348", 0.34987: ".3499"}
    assert {score: knobs.under(score, 0.35) for score in words} == words


def test_words_and_meaning_are_one_knob(engine):
    settings = knobs.with_value(engine.plan.settings, WEIGHT, 0.45)
    assert settings.number("query.hybrid.textWeight") == 0.55
    assert knobs.shown(WEIGHT, 0.45) == ".55 : .45"


@pytest.mark.parametrize(("width", "numbers"), [(80, "words weigh .60"), (120, "half-life 30 d"), (60, "6 results")])
def test_the_ranking_in_a_line_fits_and_says_when_it_is_tried(engine, width, numbers):
    opened = engine.plan.settings
    line = ranking.line(opened, opened, width)
    assert numbers in line.plain
    assert "t turn" in line.plain
    tried = ranking.line(knobs.with_value(opened, knobs.RESULTS, 9), opened, width)
    assert tried.plain.startswith(" Tried")
    assert tried.plain.endswith("u takes back")
    assert "9 results instead of 6" in tried.plain
    assert max(line.cell_length, tried.cell_length) <= width
    # What was is left out before a knob is, and knobs that have no room are counted.
    turned = {WEIGHT: 0.7, knobs.FLOOR: 0.5, knobs.RESULTS: 4, "recency.weight": 0.07}
    tried = ranking.line(opened.update(turned, "test"), opened, width)
    assert "…" not in tried.plain
    assert {60: " and 3 more ", 80: "too weak under .50 and 2 more "}.get(width, " age weighs .07 ") in tried.plain
    release = engine.plan.with_profile("openclaw-2026.3").update(turned, "test")
    assert "…" not in ranking.line(release, opened, width).plain
    raised = ranking.line(knobs.with_value(opened, knobs.FLOOR, 0.5), opened, width)
    assert "too weak under .50 (was 0) " in raised.plain


def test_the_stages_of_a_search_are_counted(evidence, trace):
    count = len(trace.recalled) + len(trace.lost)
    assert wording.pipeline(trace).startswith(f"{count} of {len(evidence.refs)} passages compared: ")


def test_a_judgment_replaces_the_one_before(evidence, trace, rows):
    row, before = rows[0], Notebook()
    label = saved.label_of(row, trace, evidence.texts[row.hit.chunk.rowid], 2)
    assert label.line == row.line
    assert label.answer
    right = saved.judged(QUESTION, row.hit.chunk, label)(before)
    wrong = saved.judged(QUESTION, row.hit.chunk, replace(label, grade=0))(right)
    assert [each.grade for each in wrong.queries[0].labels] == [0]
    assert not saved.judged(QUESTION, row.hit.chunk, None)(wrong).queries[0].labels
    assert saved.as_before(QUESTION, None)(wrong) == before
    assert saved.kept(QUESTION, unanswerable=True)(before).queries[0].unanswerable


def test_a_saved_question_counts_passages_and_no_unjudged_one_as_wrong():
    refs = [ChunkRef(at, "", f"{name}.md", "memory", 1, 9) for at, name in enumerate("abcdef")]
    labels = (Label("a.md", 1), Label("b.md", 3), Label("b.md", 4), Label("c.md", 1, 0), Label("z.md", 2))
    query, unknown = Query("q", labels), Query("r", unanswerable=True)
    sent = Measured(query, measure(query, refs), tuple(refs))
    none = Measured(unknown, measure(unknown, refs), tuple(refs))
    assert saved.result(query, sent) == "2 useful, 1 wrong, 3 not judged of 6 sent, 1 missed"
    assert saved.result(unknown, none) == "6 wrong of 6 sent"
    assert saved.result(unknown, Measured(unknown, measure(unknown, []), ())) == "nothing sent"
    assert saved.result(Query("s"), None) == "not judged"
    words = saved.summary({"q": sent, "r": none}, "q")
    assert words.startswith("2 saved questions, each: 1.0 useful, 3.5 wrong, 1.5 not judged, 0.5 missed; order ")
    assert saved.summary({"q": sent}, "q").startswith("This question: 2 useful, 1 wrong, 3 not judged, 1 missed;")
    assert saved.summary({"q": sent}, "r").startswith("1 saved question: 2 useful, ")
    assert saved.summary({}, "q").startswith("m marks")


def test_no_better_setting_is_said_without_a_gain():
    assert "-" not in saved.outcome_text(NoEvidence("within chance", 30, {"query.minScore": 0.1})).plain


def test_two_rankings_are_aligned_and_coloured_where_they_differ(engine, evidence, rows):
    trace = engine.search.rank(evidence, engine.plan.with_profile("openclaw-2026.3"))
    others = hits.rows(evidence, trace, len(trace.lost))
    pairs = compare.pairs(rows, others, same_index=True)
    shown = {row.hit.chunk.rowid for row in (*rows, *others) if row.sent}
    assert [pair.row is not None and pair.row.hit.chunk.rowid in shown for pair in pairs] == [True] * len(shown)
    for pair in pairs:
        drawn = compare.drawn(pair, 70)
        assert [line.cell_length for line in drawn.split("\n")] == [70, 69]
    assert "B   not found among the nearest" in compare.drawn(compare.Pair(rows[0], None), 70).plain
    alike = compare.pairs(rows, rows, same_index=False)
    assert all(pair.left is pair.right for pair in alike)
    mixed = {"query.hybrid.mmr.enabled": True, "query.hybrid.mmr.lambda": 0.5}
    trace = engine.search.rank(evidence, engine.plan.settings.update(mixed, "test"))
    scores = [hit.score for hit in trace.recalled]
    before = [any(score < later for later in scores[at:]) for at, score in enumerate(scores, 1)]
    drawn = [compare.drawn(compare.Pair(None, row), 99).plain for row in hits.rows(evidence, trace, 0)]
    assert ["by variety" in text for text in drawn] == before
    assert any(before)
    # A passage of one cut may cover two of the other: it is sent once.
    first, second = (row for row in rows[:2])
    assert compare.in_both([compare.Pair(first, first), compare.Pair(second, first)]) == (2, 1)


def test_two_rankings_that_send_different_copies_of_a_note_send_the_same(rows):
    other = rows[1]
    kept = dataclasses.replace(rows[0], hit=replace(rows[0].hit, copies=(other.hit.chunk,)))
    for same_index in (True, False):
        pairs = compare.pairs([kept], [other], same_index=same_index)
        assert [(pair.left, pair.right) for pair in pairs] == [(kept, other)], same_index
        assert compare.in_both(pairs) == (1, 1), same_index


def test_a_copy_stands_under_its_own_name(rows):
    first, copy = rows[0], next(row for row in rows if row.hit.chunk.path != rows[0].hit.chunk.path)
    both = dataclasses.replace(first, hit=replace(first.hit, copies=(copy.hit.chunk,)), sent=True)
    pairs = compare.pairs([both], [dataclasses.replace(copy, sent=True), both], same_index=True)
    titles = [compare.drawn(pair, 200).plain.split("\n")[0] for pair in pairs]
    assert f"A {first.name}, B {copy.name}" in "".join(titles)
    assert pairs[0].right is both
    # Another cut begins elsewhere in the same note, under another heading.
    other = compare.Pair(first, dataclasses.replace(first, name="MEMORY Promoted"))
    title, sides = compare.drawn(other, 200).plain.split("\n")
    assert title.startswith(f" A {first.name}, B MEMORY Promoted ")
    assert sides.rstrip().endswith(f"  line {first.hit.chunk.start_line} on"), "two of B may have one name"


def test_a_comparison_says_whose_vectors_they_are(engine, evidence, trace):
    right = compare.Side("OpenClaw", engine.plan.with_profile("openclaw-2026.3"), evidence)
    left = compare.Side("recommended", engine.plan.settings, evidence)
    lines = compare.head(left, right, (trace, engine.search.rank(evidence, right.settings)))
    assert any("vectors of the built-in table" in line.plain for line in lines)
    assert "other passages" in [*compare.head(left, right, None)][1].plain


def test_a_line_is_found_by_its_words_and_by_its_place(engine):
    places = any_line.lines_holding(engine, "stopcock kitchen")
    assert places
    assert all("stopcock" in place.words.casefold() for place in places)
    by_place = any_line.lines_holding(engine, f"{places[0].path}:{places[0].line}")
    assert by_place == [places[0]]
    assert any_line.lines_holding(engine, "no such words anywhere xyzzy") == []
