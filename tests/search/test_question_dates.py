"""What time a question speaks of, in eleven languages, other questions that lose no word, and questions of parts."""

import datetime as dt
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.explain import wording
from memory_tui.search.question import Time, parts_of, time_in, without
from tests.support.tui import NOW, sample
from tests.support.workspace import options_in, put_all, synced

TODAY = dt.date(2026, 3, 20)
"""A Friday."""

SPANS = """
what did I do today = 2026-03-20 ; what happened yesterday = 2026-03-19 ; the day before yesterday = 2026-03-18
what did we say last night = 2026-03-19 ; who called this morning = 2026-03-20 ; three days ago = 2026-03-17
5 days ago = 2026-03-15 ; a couple of days ago = 2026-03-18 ; a week ago = 2026-03-10 to 2026-03-16
two weeks ago = 2026-03-03 to 2026-03-09 ; a few days ago = 2026-03-10 to 2026-03-18
vor ein paar Tagen = 2026-03-10 to 2026-03-18 ; 几天前 = 2026-03-10 to 2026-03-18
a fortnight ago = 2026-03-03 to 2026-03-09 ; a month ago = 2026-02-13 to 2026-02-27
last week = 2026-03-09 to 2026-03-15 ; the week before last = 2026-03-02 to 2026-03-08
this week = 2026-03-16 to 2026-03-22 ; over the past week = 2026-03-13 to 2026-03-20
last weekend = 2026-03-14 to 2026-03-15 ; at the weekend = 2026-03-14 to 2026-03-15
last month = 2026-02-01 to 2026-02-28 ; this month = 2026-03-01 to 2026-03-31 ; last year = 2025-01-01 to 2025-12-31
last Monday = 2026-03-16 ; on Tuesday = 2026-03-17 ; this Wednesday = 2026-03-18 ; Thursday of last week = 2026-03-12
last Friday = 2026-03-13 ; in the last 3 days = 2026-03-17 to 2026-03-20 ; in March = 2026-03-01 to 2026-03-31
in December = 2025-12-01 to 2025-12-31 ; in March 2025 = 2025-03-01 to 2025-03-31
last November = 2025-11-01 to 2025-11-30 ; on March 3 = 03-03 of any year ; the 3rd of March = 03-03 of any year
March 3rd, 2025 = 2025-03-03 ; 2025-03-03 = 2025-03-03 ; 3/15/2025 = 2025-03-15
between March 3 and March 10 = 2026-03-03 to 2026-03-10 ; from 3 to 10 March = 2026-03-03 to 2026-03-10
from December 20 to January 5 = 2025-12-20 to 2026-01-05 ; since Monday = 2026-03-16 to 2026-03-20
since March 3 = 2026-03-03 to 2026-03-20 ; in 2024 = 2024-01-01 to 2024-12-31 ; heute = 2026-03-20
gestern Abend = 2026-03-19 ; vorgestern = 2026-03-18 ; vor drei Tagen = 2026-03-17
vor 2 Wochen = 2026-03-03 to 2026-03-09 ; letzte Woche = 2026-03-09 to 2026-03-15 ; letzten Montag = 2026-03-16
am Dienstag = 2026-03-17 ; diese Woche = 2026-03-16 to 2026-03-22 ; letzten Monat = 2026-02-01 to 2026-02-28
im März = 2026-03-01 to 2026-03-31 ; letztes Jahr = 2025-01-01 to 2025-12-31 ; am 3. März = 03-03 of any year
15.03.2025 = 2025-03-15 ; vom 3. bis 10. März = 2026-03-03 to 2026-03-10
letztes Wochenende = 2026-03-14 to 2026-03-15 ; in den letzten drei Tagen = 2026-03-17 to 2026-03-20
seit Montag = 2026-03-16 to 2026-03-20 ; 今天 = 2026-03-20
昨天做了什么 = 2026-03-19 ; 前天 = 2026-03-18 ; 三天前 = 2026-03-17
上周 = 2026-03-09 to 2026-03-15 ; 上星期三 = 2026-03-11 ; 这周 = 2026-03-16 to 2026-03-22 ; 周三 = 2026-03-18
上周末 = 2026-03-14 to 2026-03-15 ; 上个月 = 2026-02-01 to 2026-02-28 ; 去年 = 2025-01-01 to 2025-12-31
去年三月 = 2025-03-01 to 2025-03-31 ; 三月 = 2026-03-01 to 2026-03-31
3月5日 = 03-05 of any year ; 2025年3月5号 = 2025-03-05
两周前 = 2026-03-03 to 2026-03-09 ; 最近三天 = 2026-03-17 to 2026-03-20 ; 3月3日到3月10日 = 2026-03-03 to 2026-03-10
on the 3rd = 2026-03-03 ; since last Friday = 2026-03-13 to 2026-03-20 ; before March 2025 = until 2025-02-28
the Tuesday before last = 2026-03-10 ; next week = 2026-03-23 to 2026-03-29 ; next Monday = 2026-03-23
between Monday and Wednesday = 2026-03-16 to 2026-03-18 ; from June to August = 2025-06-01 to 2025-08-31
last March = 2025-03-01 to 2025-03-31 ; a few weeks ago = 2026-02-13 to 2026-03-06 ; am Montagabend = 2026-03-16
nächste Woche = 2026-03-23 to 2026-03-29 ; morgen = 2026-03-21 ; vor dem 1. März = until 2026-02-28
von Montag bis Mittwoch = 2026-03-16 to 2026-03-18
前几天 = 2026-03-10 to 2026-03-18 ; 下周 = 2026-03-23 to 2026-03-29
周一到周三 = 2026-03-16 to 2026-03-18 ; 3月1日以来 = 2026-03-01 to 2026-03-20 ; 4月30号的天气 = 04-30 of any year
im Jahr 2015 = 2015-01-01 to 2015-12-31 ; im Januar und Februar = 2026-01-01 to 2026-02-28
с 3 по 10 марта = 2026-03-03 to 2026-03-10 ; 上周一到周三 = 2026-03-09 to 2026-03-11 ; heute Morgen = 2026-03-20
half a year ago = 2025-09-13 to 2025-09-27 ; 今年二月三号 = 2026-02-03 ; Monday's meeting = 2026-03-16
am dritten Februar = 02-03 of any year ; March last year = 2025-03-01 to 2025-03-31
vor anderthalb Jahren = 2024-09-13 to 2024-09-27 ; before last Monday = until 2026-03-15
between last Monday and yesterday = 2026-03-16 to 2026-03-19 ; on Friday the 13th of March 2026 = 2026-03-13
on Monday, I mean in the last three weeks = 2026-02-27 to 2026-03-20
March to May 2025 = 2025-03-01 to 2025-05-31 ; am 10.3. = 03-10 of any year ; what did I say Tuesday = 2026-03-17
hace tres días = 2026-03-17 ; el lunes pasado = 2026-03-16 ; en los últimos tres días = 2026-03-17 to 2026-03-20
desde el lunes = 2026-03-16 to 2026-03-20 ; hier soir = 2026-03-19 ; la semaine dernière = 2026-03-09 to 2026-03-15
il y a trois jours = 2026-03-17 ; na semana passada = 2026-03-09 to 2026-03-15 ; há três dias = 2026-03-17
tre giorni fa = 2026-03-17 ; на прошлой неделе = 2026-03-09 to 2026-03-15 ; неделю назад = 2026-03-10 to 2026-03-16
в понедельник = 2026-03-16 ; за последние три дня = 2026-03-17 to 2026-03-20 ; 3 марта 2025 года = 2025-03-03
先週の金曜日 = 2026-03-13 ; 3日前 = 2026-03-17
3月5日に = 03-05 of any year ; 月曜日から水曜日まで = 2026-03-16 to 2026-03-18
一ヶ月前 = 2026-02-13 to 2026-02-27 ; 上个月三号 = 2026-02-03
上周五下午开了什么会 = 2026-03-13 ; 半年前 = 2025-09-13 to 2025-09-27
지난주 = 2026-03-09 to 2026-03-15 ; 3일 전 = 2026-03-17 ; 지난 월요일 = 2026-03-16 ; drie dagen geleden = 2026-03-17
the weekend before last = 2026-03-07 to 2026-03-08 ; la semana que viene = 2026-03-23 to 2026-03-29
le week-end dernier = 2026-03-14 to 2026-03-15 ; с понедельника по среду = 2026-03-16 to 2026-03-18
this morning's standup = 2026-03-20 ; on the 5th of last month = 2026-02-05 ; last week on Tuesday = 2026-03-10
10-12 February = 2026-02-10 to 2026-02-12 ; Montagmorgen letzter Woche = 2026-03-09
mañana por la mañana = 2026-03-21 ; du 3 au 10 mars = 2026-03-03 to 2026-03-10 ; 三月五日之前 = until 2026-03-04
"""


@pytest.mark.parametrize("row", re.split(r" ; |\n", SPANS.strip()))
def test_the_span_that_is_meant(row):
    question, span = row.split(" = ")
    assert time_in(f"{question} ?", TODAY).spelled == span


NO_TIME = """
may I ask who can may ; march forward ; who is April ; the sat nav ; I sat down in the sun ; what does Mon like
the Sunday routine ; what did I do recently ; the book I mentioned the other day ; version 3.2.1
the router at 192.168.1.1 ; vlan 2024 ; port 8080 ; week numbers ; February 30 ; 2026-13-45 ; 12.5 percent ; 日本
who lives on the 3rd floor ; the last week of the festival ; the second meeting ; in Jan's kitchen ; jeden Morgen
五月天的歌 ; openclaw 2026.3.13 ; ssh 10.10.10.10 ; kernel 6.1.12 ; nginx 1.12.11 ; 1.2.2026.4 build
release 1.2.2026
yt-dlp 2025.03.31 ; release 2.4.26 ; 十月革命 ; 三月兔 ; 星期五餐厅 ; cron job 5 do on mon ; */5 * * * MON-FRI
what may 5 people share ; version 3 may work ; who plays June Carter ; April's number ; Black Friday's deals
the song Yesterday ; USA Today subscription ; Last Week Tonight episode ; the song “Last Year” ; Monday.com token
TGI Friday's menu ; weekend bag ; in 2000 words ; Audi Q3 tyres ; llama Q4 quantization ; every Monday ; jeden Montag
每周三 ; 毎週月曜日 ; каждый понедельник ; los lunes ; 16/9 screen ; score 3-2 ; phone 555-0303 ; section 4.12.
GPT-4.1-2025-04-14 ; week 3 of the training plan ; guten Morgen ; Heute-Journal ; Was steht hier ; 八月照相馆
明日方舟
三月兎 ; 火曜サスペンス ; среда разработки ; Mars attacks ; 日記 ; in the last three minutes of the game
in den 1970er-Jahren
"""


@pytest.mark.parametrize("question", re.split(r" ; |\n", NO_TIME.strip()))
def test_what_names_no_time(question):
    assert time_in(question, TODAY) is None


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("what did Priya decide two weeks ago", "what did Priya decide"),
        ("what did Priya decide two weeks ago about the router", "what did Priya decide about the router"),
        ("was hat Priya vor drei Tagen entschieden", "was hat Priya entschieden"),
        ("昨天做了什么", "做了什么"),
        ("last week", "last week"),
    ],
)
def test_the_words_of_a_time_are_not_searched(question, rest):
    assert without(question, time_in(question, TODAY)) == rest


WORDS = st.sampled_from(
    [
        *[
            "last", "next", "3", "10", "31", "99", "week", "days", "ago", "march", "may", "2025", "vor", "drei",
            "wochen",
        ],
        *["wochen", "monat", "bis", "上", "个", "周", "三", "月", "日", "半", "十", "-", ".", "/", "q1", "of", "the"],
    ]
)  # fmt: skip
DAYS = st.dates(dt.date(1990, 1, 1), dt.date(2090, 1, 1))


@given(st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=40), DAYS)
def test_any_question_is_read(question, today):
    found = time_in(question, today)
    assert found is None or isinstance(found, Time)
    if found is not None:
        assert found.first <= found.last
        assert 0 <= found.start < found.end <= len(question)
        assert without(question, found).strip()


def test_reading_the_time_of_a_question_can_be_turned_off(tmp_path):
    sample(tmp_path / "notes")
    for on in (True, False):
        with synced(options_in(tmp_path, f"questionTime.enabled={on}", provider="none", now=NOW)) as engine:
            found = engine.search.gather("what was moved last sunday")
            assert bool(found.of_named_time) == on
            assert bool(found.recommended.plan.time) == on
            assert ("sunday" in found.recommended.plan.words) == (not on)


def test_a_named_day_comes_first_where_many_other_notes_hold_the_words(tmp_path):
    days = [dt.date(2025, 2, 1) + dt.timedelta(days=day) for day in range(400)]
    notes = {f"memory/{day}.md": f"# Beat\n\nHeartbeat {day:%A %j}: heartbeat {day:%B} fine.\n" for day in days}
    notes["memory/2026-02-10.md"] = "# Tuesday\n\nA long day in the garden, and late a heartbeat that came twice.\n"
    put_all(tmp_path / "notes", notes)
    with synced(options_in(tmp_path, now=NOW)) as engine:
        assert engine.search.search("heartbeat on 2026-02-10").recalled[0].chunk.path == "memory/2026-02-10.md"


def test_a_date_of_no_note_is_searched_as_it_is_written(tmp_path):
    notes = {
        "MEMORY.md": "# Plans\n\n- The class trip to the aquarium is 2026-12-08.\n- The fair is planned for May.\n",
        "memory/2026-11-30.md": "# Monday\n\n- The release is planned for 2026-12-05.\n",
    }
    put_all(tmp_path / "notes", notes)
    with synced(options_in(tmp_path, now=dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC).timestamp())) as engine:
        ahead = engine.search.search("what is on 2026-12-08")
        assert not ahead.side.plan.time
        assert (ahead.recalled[0].chunk.path, ahead.recalled[0].line) == ("MEMORY.md", 3)
        assert engine.search.search("what is on 2026-11-30").side.plan.time == "2026-11-30"
        assert engine.search.search("what is on tomorrow").side.plan.time == "2026-12-02", "no note says tomorrow of it"


def test_a_note_counts_less_each_day_after_the_one_that_is_named_and_nothing_before_it():
    named = time_in("what happened on 2026-03-04", dt.date(2026, 11, 20))
    near = [named.nearness(dt.date(2026, 3, day)) for day in range(3, 9)]
    assert near[0] == near[5] == 0.0
    assert 1.0 == near[1] > near[2] > near[3] > near[4] > 0.0
    any_year = time_in("what happened on March 4", dt.date(2026, 3, 3))
    assert any_year.nearness(dt.date(2024, 3, 5)) == near[2]
    assert [any_year.holds(dt.date(2019, 3, day)) for day in (4, 5)] == [True, False]


ONE = """
Who was our dentist before Dr. Hallett?
Where is St. Mary's church?
Which tools, e.g. Pandas, do we use?
Was steht in Nr. 5?
Welche Geräte, z. B. Drucker, haben wir?
¿Qué dijo el Dr. García?
Что сказал г. Иванов?
What did J. R. R. Tolkien write?
Where is the Yahoo! password?
Who was born in Rome and was married twice?
Who is Anna? Router?
我几天前去了北京，住在哪里？
""".strip().splitlines()


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Who painted it, and where does it hang?", ("Who painted it", "where does it hang?")),
        ("Wann war Anna in Rom und wo hat sie gewohnt?", ("Wann war Anna in Rom", "wo hat sie gewohnt?")),
        ("我什么时候去了北京，住在哪里？", ("我什么时候去了北京", "住在哪里？")),
        ("他喜欢什么书？他在哪里工作？", ("他喜欢什么书？", "他在哪里工作？")),
        ("I visited Rome in May. Where did I stay?", ("I visited Rome in May. Where did I stay?",)),
        ("What does Calvin do to relax?", ("What does Calvin do to relax?",)),
        ("Which is better, tea and coffee?", ("Which is better, tea and coffee?",)),
        ("我喜欢读书，也喜欢散步，对吗？", ("我喜欢读书，也喜欢散步，对吗？",)),
        ("router and switch", ("router and switch",)),
        ("", ("",)),
        ("¿Cuándo llegó Ana y dónde se quedó?", ("¿Cuándo llegó Ana", "dónde se quedó?")),
        ("Quand est-elle arrivée? Où a-t-elle dormi?", ("Quand est-elle arrivée?", "Où a-t-elle dormi?")),
        ("Кто это написал и где это висит?", ("Кто это написал", "где это висит?")),
        ("いつ京都へ行った？どこに泊まった？", ("いつ京都へ行った？", "どこに泊まった？")),
        ("Did I pay the rent? Is the heating on?", ("Did I pay the rent?", "Is the heating on?")),
        ("When did Dr. Klein call? What for?", ("When did Dr. Klein call?", "What for?")),
        *((question, (question,)) for question in ONE),
    ],
)
def test_a_question_is_cut_where_another_one_begins(question, parts):
    assert parts_of(question) == parts


HOW = "answers the part with the highest score, so it comes before others: "
QUESTION = "Which vlan has the router, and where does the garlic grow?"


@pytest.fixture
def engine(tmp_path):
    router = [f"The router vlan of site {n} is admin-{n}, and the router is in rack {n}.\n" for n in range(8)]
    notes = {f"memory/router-{n}.md": text for n, text in enumerate(router)}
    put_all(tmp_path / "notes", notes | {"memory/garden.md": "Garlic grows beside the shed since October.\n"})
    with synced(options_in(tmp_path, "profile=recommended")) as made:
        yield made


def test_the_best_note_of_each_part_comes_first(engine):
    found = engine.search.search(QUESTION)
    assert [notice.fields["parts"] for notice in found.notices if notice.kind == "asked_in_parts"] == [
        ("Which vlan has the router", "where does the garlic grow?")
    ]
    garlic = next(hit for hit in found.recalled if hit.chunk.path == "memory/garden.md")
    assert garlic.second.asked == "where does the garlic grow?"
    assert garlic.second.score == pytest.approx(1.0), "it is the best of its part"
    assert found.recalled.index(garlic) < 2
    assert garlic.second.leads
    assert [hit.second.asked for hit in found.recalled if hit.second and hit.second.leads] == [
        hit.second.asked for hit in found.recalled[:2] if hit.second
    ]
    lines = wording.explain(garlic, found)
    assert any(line.detail == HOW + "where does the garlic grow?" for line in lines)
    assert found.side.plan.readings == ("asked in 2 parts",)


def test_as_written_a_question_is_one(engine):
    evidence = engine.search.gather(QUESTION, as_written=True)
    found = engine.search.rank(evidence, engine.plan.settings)
    assert not found.side.plan.parts
    assert all(hit.second is None or not hit.second.asked for hit in found.recalled)
    theirs = engine.search.rank(engine.search.gather(QUESTION), engine.plan.with_profile("openclaw-2026.3"))
    assert not any(notice.kind == "asked_in_parts" for notice in theirs.notices)
    asks = "router ip"
    assert engine.search.search(asks).side.plan.readings
    assert not engine.search.rank(engine.search.gather(asks, as_written=True), engine.plan.settings).side.plan.readings


def test_function_words_alone_are_no_part(engine):
    assert not engine.search.search("Which vlan has the router and why?").side.plan.parts
