"""Where a question asks how things are now, the newest of what says the same comes first."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.plan import Options
from memory_tui.search.intent import lately_in, newer_values, newness, words_for_now
from memory_tui.search.trace import Trace
from tests.support.tui import TODAY

AFTER = dt.datetime(2026, 10, 20, tzinfo=dt.UTC).timestamp()
FOR_NOW = {
    "Which router do we have now?": "now",
    "Welche Version läuft derzeit?": "Version",
    "¿Cuál es la versión actual?": "versión actual",
    "Какой сейчас адрес?": "сейчас",
    "现在的路由器是哪个？": "现在",
    "今のルーターは": "今の",
    "What did it actually cost?": "",
    "Which hotel did we recently stay at?": "",
}


@pytest.mark.parametrize("question", FOR_NOW)
def test_words_that_ask_for_now_are_read_in_each_language_without_false_friends(question: str) -> None:
    assert words_for_now(question) == FOR_NOW[question]


@pytest.mark.parametrize(
    ("question", "is_lately"),
    [
        ("what happened recently", True), ("what have I been doing lately", True), ("was ist zuletzt passiert", True),
        ("что было недавно", True), ("最近发生了什么", True), ("which hotel did we recently stay at", False),
        ("wo waren wir zuletzt essen", False), ("最近的旅馆叫什么名字", False), ("what happened", False),
    ],
)  # fmt: skip
def test_who_asks_for_nothing_but_what_is_new_means_the_last_days(question: str, is_lately: bool) -> None:
    time = lately_in(question, TODAY)
    assert (time is not None) == is_lately
    assert time is None or (time.holds(TODAY) and not time.holds(TODAY.replace(year=TODAY.year - 1)))


def test_the_newest_counts_most_of_those_that_hold_about_the_same_and_undated_ones_half() -> None:
    held, ages = np.array([1.0, 0.95, 0.9, 0.5, 1.0]), np.array([30.0, 2.0, 9.0, 1.0, np.nan])
    assert newness(held, ages).tolist() == pytest.approx([1 / 3, 1.0, 1 / 2, 0.0, 0.5])
    assert not newness(held, np.full(5, 3.0)).any(), "all of them are of one day"
    assert newness(np.ones(2), np.array([np.nan, 40.0])).tolist() == [0.5, 1.0]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "memory").mkdir()
    for day, host in (("2026-08-03", "Hetzner"), ("2026-10-09", "Contabo"), ("2026-06-01", "Linode")):
        text = f"# {day}\n\n- The site runs at {host}.\n- Lunch with Ola.\n"
        (tmp_path / "memory" / f"{day}.md").write_text(text)
    options = Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), provider="builtin", now=AFTER)
    with Engine.open(options) as opened:
        opened.index.sync()
        yield opened


def ask(engine: Engine, question: str, **changes: object) -> Trace:
    settings = engine.plan.with_profile("recommended").update(changes, "test")
    return engine.search.rank(engine.search.gather(question), settings)


def test_the_newest_value_comes_first_by_a_term_that_a_knob_turns(engine: Engine) -> None:
    trace = ask(engine, "Where does the site run now?")
    assert [hit.chunk.path[7:17] for hit in trace.recalled] == ["2026-10-09", "2026-08-03", "2026-06-01"]
    points = [hit.date_points for hit in trace.recalled]
    assert points[0] > points[1] > points[2] > 0
    assert '"now"' in next(line.detail for line in wording.explain(trace.recalled[0], trace) if line.label == "now")
    assert not any(hit.date_points for hit in ask(engine, "Where does the site run now?", dateBoost=0.0).recalled)
    assert not any(hit.date_points for hit in ask(engine, "Where does the site run?").recalled)


def test_the_newest_comes_first_though_eighty_older_logs_say_more_about_it(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    for number in range(80):
        day = dt.date(2026, 9, 30) - dt.timedelta(number)
        rest = "" if number else "- Lunch with Ola, then a long walk by the river.\n" * 9
        (tmp_path / "memory" / f"{day}.md").write_text(f"# {day}\n\n- Terraform 1.{200 - number}\n{rest}")
    options = Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), provider="builtin", now=AFTER)
    with Engine.open(options) as opened:
        opened.index.sync()
        trace = ask(opened, "What version is Terraform at?")
        assert [hit.chunk.path for hit in trace.recalled[:2]] == ["memory/2026-09-30.md", "memory/2026-09-29.md"]


@pytest.mark.parametrize("question", ["что было недавно", "最近何があった", "was ist zuletzt passiert"])
def test_what_is_new_is_answered_though_no_note_holds_a_word_of_the_question(engine: Engine, question: str) -> None:
    trace = ask(engine, question)
    assert trace.recalled[0].chunk.path == "memory/2026-10-09.md"
    assert trace.level is not None
    assert trace.level.level == "nearby only"


def test_an_older_value_of_the_same_line_is_marked_with_the_line_that_has_the_newer(engine: Engine) -> None:
    hits = ask(engine, "Where does the site run?").recalled
    assert {hit.chunk.path[7:17]: hit.newer for hit in hits} == {
        "2026-10-09": "",
        "2026-08-03": "memory/2026-10-09.md:3",
        "2026-06-01": "memory/2026-10-09.md:3",
    }
    older = next(hit for hit in hits if hit.newer)
    assert older.remarks == "an older value, newer in memory/2026-10-09.md:3"
    assert not any(hit.newer for hit in ask(engine, "Who had lunch with Ola?").recalled), "the lines are the same"


@pytest.mark.parametrize(
    ("other", "is_newer"),
    [
        ("- **Guest password**: lantern-77", True),
        ("- Guest password: herring-42", False),
        ("- The guest lost the password twice again and we talked about it for an hour", False),
        ("- Guests came again", False),
        ("- Guest password is not herring-42", False),
    ],
)
def test_two_lines_state_one_thing_where_they_hold_what_is_asked_and_little_else(other: str, is_newer: bool) -> None:
    line = "- **Guest password**: herring-42"
    assert newer_values([line, other], [90.0, 3.0], ["guest", "password"]) == [1 if is_newer else -1, -1]
    assert newer_values([line, other], [3.0, 3.0], ["guest", "password"]) == [-1, -1], "of one day nobody knows"
    assert newer_values([line, other], [None, 3.0], ["guest", "password"]) == [-1, -1], "without a day nobody knows"
