"""Sentences that were once untrue, each on an index where it was."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.core.settings import TUNE_KEYS
from memory_tui.engine.engine import Engine
from memory_tui.explain import why, wording
from memory_tui.explain.counterfactuals import NotAlone, flips
from memory_tui.explain.rephrase import Rephrased
from memory_tui.explain.verdicts import NotMatched
from memory_tui.explain.why_never import StoppedTimes
from memory_tui.mcp.tools import memory_search
from memory_tui.openclaw.prompt import GET, SEARCH
from memory_tui.plan import Options
from memory_tui.recalls.recall_log import RecallEntry
from memory_tui.render import past_text, why_text
from memory_tui.search.trace import AllBelowGate, Trace

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
        engines[-1].index.sync()
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
    """A password in every line, inside clauses."""
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
    trace = engine.search.search(query)
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
    assert empty(engine.search.search("giraffe")) == 'No note contains the word "giraffe".'
    assert empty(engine.search.search("rout")) == 'No note contains the word "rout".'
    assert empty(engine.search.search("咖啡馆")) == 'No note contains the word "咖啡馆".'


def test_a_chunk_that_holds_a_word_is_not_said_to_lack_it(chinese: Path, opened: Open) -> None:
    engine = opened("openclaw-2026.3")
    evidence = engine.search.gather("路由器 密码")
    said = wording.sentence(engine.search.why(evidence, "MEMORY.md", 2).fate)
    assert "lacks" not in said
    assert "none of" not in said.lower()
    assert 'It holds "路由器", "密码" only inside longer words' in said


# --- age, variety, settings: alone or not ---------------------------------------------------------------------------


def fading(notes: Path) -> None:
    """A fresh note that answers, and many old ones that answer as well or better."""
    for number in range(30):
        day = dt.date(2026, 11, 19) - dt.timedelta(days=6 * number)
        words = "router omada " * (1 + number // 4) + f"closet{number % 7} cable{number}"
        (notes / "memory" / f"{day}.md").write_text(f"{words}\n")


LOST_SWITCHES = {"LoweredByDecay": "query.hybrid.temporalDecay.enabled", "DisplacedByMmr": "query.hybrid.mmr.enabled"}


def test_a_gate_alone_is_blamed_only_where_the_line_is_recalled_without_it(notes: Path, opened: Open) -> None:
    fading(notes)
    engine = opened("openclaw-2026.3", "builtin")
    seen: set[tuple[str, bool]] = set()
    for query in ("router omada", "omada closet3", "router cable4 closet4"):
        evidence = engine.search.gather(query)
        for decay, mmr, results, floor in [(True, False, 4, 0.4), (True, True, 4, 0.2), (False, True, 3, 0.1)]:
            changes = {
                "query.hybrid.temporalDecay.enabled": decay,
                "query.hybrid.mmr.enabled": mmr,
                "query.hybrid.mmr.lambda": 0.3,
                "query.maxResults": results,
                "query.minScore": floor,
            }
            settings = engine.plan.settings.update(changes, "test")
            for lost in engine.search.rank(evidence, settings).lost:
                kind = type(lost.verdict).__name__
                if kind not in LOST_SWITCHES:
                    continue
                answer = engine.search.why(evidence, lost.chunk.path, 1, settings)
                said = wording.account(answer)
                assert "alone" not in said
                assert "chose first" not in said
                without = engine.search.rank(evidence, settings.set(LOST_SWITCHES[kind], False, "test"))
                place = next((i for i, c in enumerate(without.recalled, 1) if c.chunk == lost.chunk), None)
                assert (f"off it would be recalled ({wording.ordinal(place or 0)})" in said) == (place is not None), (
                    said
                )
                assert ("off it would not be recalled either" in said) == (place is None), said
                seen.add((kind, place is not None))
    assert seen >= {("LoweredByDecay", True), ("LoweredByDecay", False), ("DisplacedByMmr", True)}


def test_no_single_setting_names_the_values_that_were_tried(notes: Path, opened: Open) -> None:
    fading(notes)
    engine = opened("openclaw-2026.3", "builtin")
    evidence = engine.search.gather("cable29")
    settings = engine.plan.settings.update({"query.minScore": 0.9, "query.maxResults": 1}, "test")
    every = (flips(evidence, settings, row, engine.plan.with_profile) for row in range(evidence.chunks))
    changes = next(found for found in every if found.none is not None)
    assert changes.none is not None
    ranges = {tried.key: tried for tried in changes.none.ranges}
    assert set(ranges) == set(TUNE_KEYS) - {"query.hybrid.textWeight"}
    assert (ranges["query.maxResults"].low, ranges["query.maxResults"].high) == (1, 50)
    said = wording.no_single_knob(changes.none)
    assert "results 1 to 50" in said
    assert "half-life 1 to 400" in said
    assert "minScore 0 to 1 by 0.01" in said


def test_a_relaxed_floor_is_not_called_minscore(notes: Path, opened: Open) -> None:
    (notes / "MEMORY.md").write_text("router\n\n" + "filler text\n" * 30)
    (notes / "memory" / "2026-11-01.md").write_text("the router omada " + "other words here " * 40)
    engine = opened("openclaw-2026.3", "builtin")
    checked = 0
    for query in ("router", "omada words", "router omada", "filler omada"):
        evidence = engine.search.gather(query)
        for weight in (0.05, 0.3, 0.6, 0.9):
            settings = engine.plan.settings.update(
                {"query.hybrid.vectorWeight": 1 - weight, "query.hybrid.textWeight": weight, "query.minScore": 0.95},
                "test",
            )
            trace = engine.search.rank(evidence, settings)
            for lost in trace.lost:
                floor = getattr(lost.verdict, "floor", None)
                if floor is not None:
                    assert ("minScore" in wording.sentence(lost.verdict)) == (floor == 0.95)
                    checked += 1
            if isinstance(trace.empty, AllBelowGate):
                best = max(c.score for c in trace.lost)
                assert trace.empty.floor == 0.95
                assert best < trace.empty.floor
    assert checked


# --- words that were left out ---------------------------------------------------------------------------------------


def test_a_word_that_was_left_out_says_why(notes: Path, opened: Open) -> None:
    for day in range(1, 11):
        (notes / "memory" / f"2026-11-{day:02}.md").write_text(f"anna and the router, ticket{day}\n")
    engine = opened("recommended", "builtin")
    trace = engine.search.search("did anna change the router for ticket3")
    text = "anna and the router, ticket3\n"
    said = why.terms_line(text, trace).detail
    assert "anna, router (in over half of the chunks: counted with others)" in said
    assert "(stop words)" in said
    theirs = opened("openclaw-2026.3").search.search("did anna change 42 of it")
    said = why.terms_line(text, theirs).detail
    assert "42 (numbers alone)" in said
    assert "of, it (too short)" in said


def test_words_inside_of_longer_ones_are_not_called_missing(chinese: Path, opened: Open) -> None:
    trace = opened("openclaw-2026.3", "builtin").search.search("密码 giraffe")
    said = why.terms_line("路由器第1的密码是写在柜子里的\n", trace).detail
    assert "missing: giraffe" in said
    assert "not seen: 密码" in said


def test_a_score_just_below_minscore_is_printed_below_it() -> None:
    """No line says "below minScore 1 with 1.000 at most"."""
    nearest = NotAlone("query.hybrid.temporalDecay.enabled", False, 0.99999871, False, None, 6, 1.0)
    assert wording.none_alone([nearest]) == "Not by one of these alone: decay (below minScore 1 with 0.999999 at most)."
    assert "with 0.480 at most" in wording.none_alone([replace(nearest, score=0.4801, floor=0.5)])


def test_a_place_behind_the_candidates_is_not_said_to_be_one_of_them(notes: Path, opened: Open) -> None:
    for number in range(9):
        (notes / "memory" / f"note-{number}.md").write_text(f"{'router ' * (9 - number)}and {'bread ' * number}\n")
    changes = {"query.maxResults": 2, "query.hybrid.candidateMultiplier": 1}
    engine = opened("openclaw-2026.3", "builtin", **changes)
    evidence = engine.search.gather("router")
    places = []
    for number in range(9):
        shown = "\n".join(why_text.answer(engine.search.why(evidence, f"memory/note-{number}.md")))
        places += re.findall(r"(\d+)(?:st|nd|rd|th)(?: of|, beyond the) (\d+)( candidates)?", shown)
    assert {bool(beyond) for _, _, beyond in places} == {True, False}
    assert all((int(place) > int(count)) == bool(beyond) for place, count, beyond in places)


# --- how many words, whose points, which gate ------------------------------------------------------------------------


def line_of(engine: Engine, query: str, path: str, label: str) -> str:
    """The detail of the line with this label in the arithmetic of a note's chunk; empty where there is none."""
    found = engine.search.why(engine.search.gather(query), path)
    assert found.best is not None
    return next((line.detail for line in why_text.steps(found.best, found.trace) if line.label == label), "")


@pytest.mark.parametrize("profile", ["openclaw-2026.3", "openclaw-2026.9"])
def test_of_one_word_it_is_not_said_that_not_all_matched(chinese: Path, opened: Open, profile: str) -> None:
    (chinese / "memory" / "2026-11-17.md").write_text("giraffe\n")
    engine = opened(profile, "builtin")
    assert line_of(engine, "密码", "memory/2026-11-18.md", "text") == "the word did not match"
    assert line_of(engine, "giraffe", "memory/2026-11-18.md", "text") == "the word did not match"
    # Where no chunk holds all of them 2026.9 looks for each.
    few = "giraffe WiFi" if profile == "openclaw-2026.3" else "giraffe zebra"
    assert line_of(engine, few, "memory/2026-11-18.md", "text") == "not all words matched"
    assert line_of(opened("recommended", "builtin"), "giraffe", "memory/2026-11-18.md", "text") == "no word matched"


def test_words_in_the_path_are_counted_only_where_there_are_some(notes: Path, opened: Open) -> None:
    (notes / "memory" / "garden.md").write_text("Garlic is planted in October.\n")
    (notes / "memory" / "router.md").write_text("The router is in the closet.\n")
    engine = opened("openclaw-2026.9")
    assert line_of(engine, "router", "memory/garden.md", "text") == "the word did not match"
    assert "words in path" in line_of(engine, "garden october", "memory/garden.md", "text")


def test_only_where_words_alone_order_hits_they_are_said_to(notes: Path, opened: Open) -> None:
    """Under other rankings a chunk without a word still has points of its letters and its age, which add up."""
    (notes / "MEMORY.md").write_text("The garlic stands in the garden.\n")
    (notes / "memory" / "router.md").write_text("The router is in the closet.\n")
    for provider in ("none", "builtin"):
        engine = opened("recommended", provider)
        assert not line_of(engine, "router", "MEMORY.md", "order")
    for profile, is_said in (("recommended", False), ("openclaw-2026.9", True)):
        found = opened(profile).search.search("closet")
        looked_through = replace(found.recalled[0], hybrid=0.0, score=0.0, merit=0.25)
        said = [line.detail for line in why.explain(looked_through, found) if line.label == "order"]
        assert said == ["its score is 0; among such chunks its words place it, with 0.250"] * is_said


def test_of_one_word_it_is_not_said_that_none_of_them_stands_in_it(notes: Path, opened: Open) -> None:
    (notes / "MEMORY.md").write_text("The garlic stands in the garden.\n")
    (notes / "memory" / "router.md").write_text("The router is in the closet.\n")
    engine = opened("recommended")

    def said(query: str) -> str:
        return why_not_sentence(engine, query)

    assert said("router").startswith('It lacks "router", and ')
    assert said("router closet").startswith('It holds none of "router", "closet", and ')


def why_not_sentence(engine: Engine, query: str) -> str:
    return wording.sentence(engine.search.why(engine.search.gather(query), "MEMORY.md").fate)


def test_what_each_gate_did_over_many_questions_is_a_sentence() -> None:
    gates = ("minScore", "decay", "mmr", "limit", "not a candidate", "no match", "no vector", "in no chunk")
    for gate in (*gates, "excluded: symlink", "too big"):
        said = past_text.claim(StoppedTimes(gate, ("router", "vlan")))
        assert re.match(r"(It|Its|Decay|MMR|Words|Meaning|No chunk)\b.* 2 times: \"router\", \"vlan\"\.$", said), said
    assert past_text.claim(StoppedTimes("too big", ("router",))).startswith("Its note was left out (too big) once: ")


def test_an_answer_without_hits_is_counted() -> None:
    assert RecallEntry(SEARCH, "last week", 0.0, hits=()).got == "no hit"
    assert RecallEntry(SEARCH, "last week", 0.0, hits=(), outcome="No provider.").got == "No provider."
    assert RecallEntry(GET, "MEMORY.md", 0.0, hits=()).got == ""


# --- a question that names a day -------------------------------------------------------------------------------------


@pytest.fixture
def diary(notes: Path) -> Path:
    """Logs of three days, of which no line says a word of what is asked."""
    for day in (16, 17, 19):
        (notes / "memory" / f"2026-11-{day}.md").write_text(f"- The plumber mended tap number {day}.\n")
    (notes / "MEMORY.md").write_text("The router is an Omada ER605.\n")
    return notes


def test_an_agent_gets_the_notes_of_the_day_that_it_asks_for(diary: Path, opened: Open) -> None:
    """Its words stand in no note, but the day is that of a note: that is not nothing."""
    del diary
    engine = opened("recommended", "builtin")
    for question in ("what happened yesterday", "yesterday"):
        found = engine.search.search(question)
        assert found.recalled[0].chunk.path == "memory/2026-11-19.md"
        assert found.level is not None
        assert found.level.level == "nearby only"
        answer = memory_search(engine, {"query": question}).answer
        assert answer["results"][0]["path"] == "memory/2026-11-19.md"
    unrelated = engine.search.search("what happened on 2026-11-02")
    assert unrelated.level is not None
    assert unrelated.level.level == "nothing holds these words", "no note is of that day"


def test_no_hit_is_said_to_be_recalled_that_an_agent_does_not_get(diary: Path, opened: Open) -> None:
    del diary
    engine = opened("recommended", "builtin")
    question = "what happened on 2026-11-02"
    first = engine.search.search(question).recalled[0]
    assert memory_search(engine, {"query": question}).answer["results"] == []
    answer = engine.search.why(engine.search.gather(question), first.chunk.path, first.chunk.start_line)
    said = [*why_text.answer(answer), *(line.detail for line in why.explain(first, answer.trace))]
    assert wording.label(answer.fate) == "NEAREST 1st, kept back"
    assert not [line for line in said if "recalled" in line.lower()]
    assert answer.trace.count.startswith("Nearest ")


def test_a_hit_that_came_by_its_day_is_not_said_to_be_near_in_meaning_alone(diary: Path, opened: Open) -> None:
    del diary
    engine = opened("recommended", "builtin")

    def said(question: str) -> str:
        notices = engine.search.search(question).notices
        return next(notice.message for notice in notices if notice.code == "meaning_alone")

    assert said("what happened yesterday") == (
        "No note holds one of the words that count. 1 hit is of the days that it names; the other 3 may have nothing "
        "to do with it."
    )
    assert "near in meaning alone" in said("zeppelin")


def test_words_of_a_time_are_said_to_be_searched_where_nothing_else_is_asked(diary: Path, opened: Open) -> None:
    del diary
    engine = opened("recommended", "builtin")
    for question, searched in (("yesterday", True), ("the tap yesterday", False)):
        found = engine.search.search(question)
        (read,) = (notice for notice in found.notices if notice.code == "question_time")
        assert ("not searched" in read.message) != searched
        assert read.next_step.startswith("To search its words alone" if searched else "To search its words: ")
        terms = why.terms_line("tap", found).detail
        assert '"yesterday" is read as 2026-11-19' in terms
        assert ("not searched" in terms) != searched
        assert ("yesterday" in found.plan.words) == searched


# --- one, two, and many ----------------------------------------------------------------------------------------------


def test_numbers_of_words_and_chunks_have_their_grammar(notes: Path, opened: Open) -> None:
    (notes / "MEMORY.md").write_text("The garlic stands in the garden.\n")
    (notes / "memory" / "router.md").write_text("The router is in the closet of anna.\n")
    engine = opened("openclaw-2026.9")
    assert why_not_sentence(engine, "router closet").startswith(
        'Both words are needed, and it lacks "router", "closet"'
    )
    assert why_not_sentence(engine, "router closet anna").startswith("All 3 words are needed, and it lacks ")
    one = AllBelowGate(1, 0.482, 0.5, 0)
    assert wording.empty(one, "recommended")[0] == "1 chunk found, but it has 0.482, below minScore 0.5."
    two = replace(one, candidates=2)
    assert wording.empty(two, "recommended")[0] == (
        "2 chunks found, but all score below minScore 0.5; the best has 0.482."
    )
    hidden = NotMatched(("王芳", "生日"), ("王芳", "生日"), (), "AND", ("王芳", "生日"))
    assert wording.sentence(hidden).startswith(
        'Both words are needed, and it holds "王芳", "生日" only inside longer words'
    )
    assert "where this tokenizer cannot see them" in wording.sentence(hidden)


def test_the_next_step_counts_the_words_that_are_absent(notes: Path, opened: Open) -> None:
    (notes / "MEMORY.md").write_text("The garlic stands in the garden.\n")
    engine = opened("recommended")
    for query, step in (("zeppelin", "Try another word for it."), ("zeppelin hovercraft", "Try other words for them.")):
        found = engine.search.search(query)
        assert found.empty is not None
        assert wording.empty(found.empty, found.profile)[1] == step


def test_every_word_to_leave_out_is_named() -> None:
    words = ("where", "is", "spare", "key", "who", "the")
    said = wording.rephrased(Rephrased("plumber", "", words, 1))
    assert said == 'leave out "where", "is", "spare", "key", "who", "the" (1st)'


def test_a_level_of_nothing_does_not_deny_the_words_that_it_counts(notes: Path, opened: Open) -> None:
    (notes / "MEMORY.md").write_text("The garlic stands in the garden.\n")
    level = opened("recommended", "builtin").search.search("memory/garden.md of the hovercraft").level
    assert level is not None
    said = replace(level, level="nothing holds these words").sentence
    assert said.startswith("Probably nothing answers it: the best window holds ")
