"""The level of an answer: what it goes by, what it does not."""

import pytest

from memory_tui.mcp.tools import memory_search
from memory_tui.plan import Options
from memory_tui.search.rank import DATED, PAIRS, level_of
from memory_tui.search.score import Rules, tuned
from memory_tui.search.second_stage import KANA, MEANING, AnswerSignals, SecondStage
from tests.support.search import evidence, settings
from tests.support.tui import NOW, sample
from tests.support.workspace import options_in, synced

NOTHING = "nothing holds these words"


def bounds(doubt, nothing):
    return Rules.of(evidence([0.5], {}), tuned(settings("recommended", doubtBelow=doubt, nothingBelow=nothing)))


BOUNDS = bounds(0.4, 0.1)


def level(held, known=0.0, pairs=0.0, cosine=None, **dated):
    return level_of(AnswerSignals(held, known, pairs, cosine), BOUNDS, **dated).level


def test_the_bounds_part_three_levels_and_the_lower_one_never_passes_the_upper():
    assert [level(held) for held in (0.4, 0.39, 0.1, 0.09)] == ["found", "nearby only", "nearby only", NOTHING]
    assert level_of(AnswerSignals(0.4, 0.0, 0.0, None), bounds(0.4, 1.0)).level == "found", "not doubted is not nothing"


def test_pairs_of_a_japanese_question_need_more_than_those_of_a_chinese():
    alike = {"words": ("获奖",), "left_out": (), "frequency": {}, "chunks": 3, "reference": {0: "获奖"}, "meaning": 0.0}
    pairs = [SecondStage(question, **alike).signals.pairs for question in ("谁获奖", "誰が获奖", "获奖ナフサ")]
    assert pairs == pytest.approx([1.0, KANA, KANA]), "kana anywhere"


def test_pairs_of_characters_and_named_days_need_less():
    assert level(0.4 * PAIRS, pairs=1.0) == level(0.4 * DATED, of_its_days=True) == "found"
    assert level(0.4 * PAIRS - 0.01, pairs=1.0) == level(0.4 * DATED - 0.01, of_its_days=True) == "nearby only"


def test_a_window_far_in_meaning_holds_less_as_far_as_the_table_knows_the_words():
    lacks = 0.5 * MEANING * (1 - 0.6)
    assert level(0.4 + lacks, known=0.5, cosine=0.6) == "found"
    assert level(0.4 + lacks - 0.01, known=0.5, cosine=0.6) == "nearby only"
    assert level(0.4, known=0.5) == "found", "no meaning was compared"


def test_the_sentence_says_what_is_held():
    doubtful = level_of(AnswerSignals(0.5, 0.5, 0.0, 0.2), BOUNDS)
    assert doubtful.sentence.startswith("Nearby only")
    assert "match 50% of the question, which distance in meaning lowers to 30%" in doubtful.sentence
    assert all(figure in doubtful.explanation for figure in ("0.300", "0.500", "0.200"))
    assert "cosine" not in level_of(AnswerSignals(0.25, 0.5, 0.0, None), BOUNDS).explanation


NOTES = {
    "en": ["- The workshop opens at nine; Monday is a day off.", "- Moved the site to another host, paid till May."],
    "de": ["- Die Werkstatt hat ab neun Uhr offen. Wie heißt der Nachbar?", "- Wann wurde das Dach geflickt?"],
    "ru": ["- Мастерская открыта с девяти, как зовут соседа: Егор.", "- Сколько стоит доставка, записано в таблице."],
    "zh": ["- 工房周一休息，平时九点开门。", "- 网站搬到了新的服务器，域名付到春天。"],
    "ja": ["- 工房の営業時間は九時から六時、月曜は休み。", "- サイトを新しいサーバーに移した。"],
}
ASKED = {
    "en": ("When does the workshop open?", "What size are my daughter's shoes?"),
    "de": ("Wann hat die Werkstatt offen?", "Wann wurde mein Neffe geboren?"),
    "ru": ("Когда открыта мастерская?", "Как зовут ветеринара нашей собаки?"),
    "zh": ("工房几点开门？", "我女儿的鞋子多大？"),
    "ja": ("工房の営業時間は", "娘の靴のサイズは"),
}


@pytest.mark.parametrize("language", NOTES)
def test_what_no_note_answers_is_not_found_in_any_language(tmp_path, language):
    (tmp_path / "memory").mkdir()
    for day, line in enumerate(NOTES[language], 1):
        (tmp_path / "memory" / f"2026-10-0{day}.md").write_text(f"# 2026-10-0{day}\n{line}\n", "utf-8")
    options = Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), provider="builtin", now=NOW)
    with synced(options) as opened:
        assert [asked(opened, question).level.level == "found" for question in ASKED[language]] == [True, False]


def asked(engine, question, **changes):
    settings = engine.plan.with_profile("recommended").update(changes, "test")
    return engine.search.rank(engine.search.gather(question), settings)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    place = tmp_path_factory.mktemp("level")
    sample(place / "notes")
    with synced(options_in(place, provider="builtin", now=NOW)) as opened:
        yield opened


FOREIGN = (
    "How deep is the Mariana Trench?",
    "When did the Byzantine Empire fall?",
    "Which gases make up Jupiter?",
    "How do emperor penguins survive the winter?",
)


def test_what_the_notes_hold_is_found_and_what_nobody_wrote_of_is_not(engine):
    for question in ("How is the VLAN on the Omada router set up?", "omada er605", *FOREIGN):
        answer = asked(engine, question).level
        assert (answer.level == "found") == (question not in FOREIGN), answer.sentence


NOWHERE = {"query": "cuneiform plutonium stoichiometry of Etruscan Gilgamesh"}


def test_a_question_that_no_note_holds_gives_no_hits_unless_asked_for(engine):
    answer = memory_search(engine, NOWHERE).answer
    held = answer["answerLevel"]
    assert (held["level"], answer["results"]) == (NOTHING, [])
    assert held["nearest"] > 0
    nearest = memory_search(engine, {**NOWHERE, "nearest": True}).answer
    assert len(nearest["results"]) == held["nearest"]
    assert "These hits" in str(nearest["notices"])
    assert "These hits" not in str(answer)
    assert "nearest" not in nearest["answerLevel"]


def test_no_knob_of_the_ranking_changes_the_level(engine):
    question = "Who installed the fibre?"
    plain = asked(engine, question).level
    changes = {"query.hybrid.vectorWeight": 0.9, "query.maxResults": 1, "secondStage.weight": 0.0}
    for key, value in (changes | {"recency.weight": 0.4}).items():
        assert asked(engine, question, **{key: value}).level == plain
