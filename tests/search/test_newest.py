"""The newest value of a line comes first, as does what a question names; a passage of several notes takes one place."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memory_tui.engine.engine import Engine
from memory_tui.explain import wording
from memory_tui.plan import Options
from memory_tui.search.question import holds_value, lately_in, parse
from memory_tui.search.rank import Trace, newer_values
from memory_tui.search.score import newness
from tests.support.tui import TODAY
from tests.support.workspace import put, put_all, synced

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
    assert parse(question, TODAY).plan.for_now == FOR_NOW[question]


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
    for day, host in (("2026-08-03", "Hetzner"), ("2026-10-09", "Contabo"), ("2026-06-01", "Linode")):
        put(tmp_path, f"memory/{day}.md", text=f"# {day}\n\n- The site runs at {host}.\n- Lunch with Ola.\n")
    options = Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), provider="builtin", now=AFTER)
    with synced(options) as opened:
        yield opened


def test_the_newest_value_comes_first_by_a_term_that_a_knob_turns(engine: Engine) -> None:
    trace = ask(engine, "Where does the site run now?")
    assert [hit.chunk.path[7:17] for hit in trace.recalled] == ["2026-10-09", "2026-08-03", "2026-06-01"]
    points = [hit.date_points for hit in trace.recalled]
    assert points[0] > points[1] > points[2] > 0
    assert '"now"' in next(line.detail for line in wording.explain(trace.recalled[0], trace) if line.label == "now")
    assert not any(hit.date_points for hit in ask(engine, "Where does the site run now?", dateBoost=0.0).recalled)
    assert not any(hit.date_points for hit in ask(engine, "Where does the site run?").recalled)


def test_the_newest_comes_first_though_eighty_older_logs_say_more_about_it(tmp_path: Path) -> None:
    for number in range(80):
        day = dt.date(2026, 9, 30) - dt.timedelta(number)
        rest = "" if number else "- Lunch with Ola, then a long walk by the river.\n" * 9
        put(tmp_path, f"memory/{day}.md", text=f"# {day}\n\n- Terraform 1.{200 - number}\n{rest}")
    options = Options(workspace=str(tmp_path), index=str(tmp_path / "index.sqlite"), provider="builtin", now=AFTER)
    with synced(options) as opened:
        trace = ask(opened, "What version is Terraform at?")
        assert [hit.chunk.path for hit in trace.recalled[:2]] == ["memory/2026-09-30.md", "memory/2026-09-29.md"]


@pytest.mark.parametrize("question", ["что было недавно", "最近何があった", "was ist zuletzt passiert"])
def test_what_is_new_is_answered_though_no_note_holds_a_word_of_the_question(engine: Engine, question: str) -> None:
    trace = ask(engine, question)
    assert trace.recalled[0].chunk.path == "memory/2026-10-09.md"
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
    spelled = [text.replace("Guest", "Wi-fi") for text in (line, "- Guest password: lantern-77")]
    assert newer_values(spelled, [90.0, 3.0], ["wi", "fi", "password"]) == [1, -1], "a word of two stems"


NOW = dt.datetime(2026, 3, 20, 12, tzinfo=dt.UTC).timestamp()
LOG = "memory/2026-02-07.md"
ASIDE = [
    "memory/archive/2026-02-07.md",
    "memory/backup-2026-02-08/2026-02-07.md",
    "memory/old/2026-02-07.md",
    "memory/2026-02-07 (conflict 2026-02-09).md",
]
SAME = "# Club\n\n- The bridge club meets at the harbour hall on Thursdays.\n"


def opened(folder, profile="recommended"):
    changes = (("profile", profile), ("query.minScore", "0"))
    options = Options(workspace=str(folder), index=str(folder / "i.sqlite"), now=NOW, changes=changes, provider="none")
    engine = Engine.open(options)
    engine.index.sync()
    return engine


@pytest.mark.parametrize("profile", ["recommended", "openclaw-2026.3"])
def test_copies_take_one_place_and_openclaw_gives_them_all(tmp_path, profile):
    put(tmp_path, LOG, *ASIDE[1:], text=SAME)
    put(tmp_path, ASIDE[0], text=SAME.replace("\n\n", "\r\n \r\n"))
    put(tmp_path, "memory/club.md", text="The bridge club has cards with a red back.\n")
    with opened(tmp_path, profile) as engine:
        trace = engine.search.search("bridge club")
        hits = {hit.chunk.path: hit for hit in trace.recalled}
        if profile != "recommended":
            assert {LOG, *ASIDE} <= hits.keys()
            assert not any(hit.copies for hit in trace.recalled)
            return
        assert hits.keys() == {LOG, "memory/club.md"}
        assert sorted(copy.citation for copy in hits[LOG].copies) == sorted(f"{path}#L1-L3" for path in ASIDE)
        assert (hits[LOG].remarks, hits["memory/club.md"].remarks) == ("also in 4 other notes", "")
        evidence = engine.search.gather(trace.evidence.question.query)
        for path in ASIDE:
            fate = engine.search.why(evidence, path, 3).fate
            assert (fate.kind, fate.fields["citation"]) == ("copy_of", f"{LOG}#L1-L3")


def test_a_sentence_that_many_logs_repeat_takes_one_place(tmp_path):
    said = "- The bridge club meets at the harbour hall on Thursdays."
    days = [dt.date(2025, 3, 1) + dt.timedelta(days) for days in range(300)]
    for day in days:
        put(tmp_path, f"memory/{day}.md", text=f"# Log\n\n- Then there was number{day.toordinal()}.\n{said}\n")
    put(tmp_path, "memory/club.md", text="The bridge club has cards with a red back.\n")
    with opened(tmp_path) as engine:
        evidence = engine.search.gather("when does the bridge club meet")
        trace = engine.search.search(evidence.question.query)
        assert [hit.chunk.path for hit in trace.recalled] == [f"memory/{days[-1]}.md", "memory/club.md"]
        assert trace.recalled[0].remarks == "also in 299 other notes"
        fate = engine.search.why(evidence, f"memory/{days[1]}.md", 4).fate
        assert (fate.kind, fate.fields["citation"]) == ("copy_of", f"memory/{days[-1]}.md#L1-L4")
        assert fate.fields["what"] == "line", "the rest of the note stands there alone"
    with opened(tmp_path, "openclaw-2026.3") as engine:
        assert not any(hit.copies for hit in engine.search.search("bridge club").recalled)


def test_a_line_takes_one_place_only_where_no_other_has_much_more_of_the_question(tmp_path):
    days = [f"memory/2026-02-0{day}.md" for day in (1, 2)]
    for day in days:
        put(tmp_path, day, text=f"# Log\n\n- Then there was {day}.\n- The bridge club meets at the harbour hall.\n")
    question = "who is captain of the bridge club"
    with opened(tmp_path) as engine:
        fate = engine.search.why(engine.search.gather(question), days[0], 3).fate
        assert fate.message == (
            f"Its line with your words stands at {days[1]}#L1-L4, which takes its place: no line has much more of them."
        )
        put(tmp_path, "memory/club.md", text="Mia is captain of the bridge club.\n")
        engine.index.sync()
        evidence = engine.search.gather(question)
        assert "copy_of" not in {engine.search.why(evidence, day, 4).fate.kind for day in days}


def test_the_newest_is_shown_but_that_of_a_day_that_is_asked_for(tmp_path):
    put(tmp_path, "memory/2026-03-05.md", "memory/2026-03-09.md", "memory/2026-03-07.md", text=SAME)
    with opened(tmp_path) as engine:
        for question, path in (
            ("bridge club", "memory/2026-03-09.md"),
            ("bridge club on 5 March", "memory/2026-03-05.md"),
        ):
            (hit,) = engine.search.search(question).recalled
            assert (hit.chunk.path, hit.remarks) == (path, "also in 2 other notes")


NOTES = {
    "memory/List of Plugins.md": "- Dataview\n- Templater\n- Calendar\n",
    "memory/setup.md": "# Vault\n\nThe list of plugins that break is long: plugins in the plugin list.\n",
    "memory/trip.md": "---\ntitle: The long way home\n---\n\nWe took the ferry.\n",
    "memory/network.md": "# Network\n\n| Device | Address |\n|---|---|\n| Router | 192.168.178.1 |\n",
    "memory/commands.md": "# Commands\n\nUse `ip route del` to drop a route on the router. Router ip forwarding.\n",
    "MEMORY.md": "# Memory\n\n- The way home is long.\n- Memory of the server: 64 GB.\n",
}


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = put_all(tmp_path_factory.mktemp("notes"), NOTES)
    with synced(Options(workspace=str(folder), index=str(folder / "i.sqlite"), provider="builtin")) as opened:
        yield opened


def ask(engine: Engine, question: str, profile: str = "recommended", **changes: object) -> Trace:
    settings = engine.plan.with_profile(profile).update(changes, "test")
    return engine.search.rank(engine.search.gather(question), settings)


@pytest.mark.parametrize(
    ("question", "path", "term"),
    [
        ("List of Plugins", "memory/List of Plugins.md", "title"),
        ("list-of_plugins?", "memory/List of Plugins.md", "title"),
        ("List of Plugins.md", "memory/List of Plugins.md", "title"),
        ("memory/trip.md", "memory/trip.md", "title"),
        ("trip", "memory/trip.md", "title"),
        ("the long way home", "memory/trip.md", "title"),
        ("router ip", "memory/network.md", "value"),
        ("what is the IP of the router", "memory/network.md", "value"),
    ],
)
def test_what_a_question_names_comes_first_by_a_term_that_a_knob_turns(
    named: Engine, question: str, path: str, term: str
) -> None:
    trace = ask(named, question)
    assert trace.recalled[0].chunk.path == path
    assert term in {line.label for line in wording.explain(trace.recalled[0], trace)}
    assert trace.level.level == "found"
    assert not any(hit.date_points for hit in ask(named, question, dateBoost=0.0).recalled)
    assert not any(hit.date_points for hit in ask(named, question, "openclaw-2026.3").recalled)


@pytest.mark.parametrize("question", ["which plugins break", "network router", "ip route", "?!"])
def test_a_question_that_names_nothing_gets_nothing_for_it(named: Engine, question: str) -> None:
    assert not any(hit.date_points for hit in ask(named, question).recalled)


def test_a_note_is_found_by_the_words_of_its_file_name_alone(named: Engine) -> None:
    trace = ask(named, "plugins of my list")
    assert "memory/List of Plugins.md" in [hit.chunk.path for hit in trace.recalled if hit.text_points > 0]
    server = next(hit for hit in ask(named, "memory of the server").recalled if hit.chunk.path == "MEMORY.md")
    assert server.bm25 is not None, "by its text: every chunk of MEMORY.md is called memory"


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("nas ipv6", "nas: fe80::1ff:fe23:4567:890a"),
        ("mac of the printer", "printer | 00:1a:2b:3c:4d:5e"),
        ("Anna email", "Anna <anna@example.org>"),
        ("Telefon Ola", "Ola: +49 170 1234567"),
        ("grafana port", "Grafana listens on :3000"),
        ("wiki url", "wiki: https://wiki.example.org/start"),
    ],
)
def test_values_are_known_by_their_form(question: str, line: str) -> None:
    value = parse(question, TODAY).plan.value
    words = [word for word in question.lower().split() if word not in ("of", "the")]
    texts = [line, line.rsplit(" ", 1)[0], f"# {words[0]} {words[-1]}\n\n{line.split()[-1]}"]
    assert holds_value(texts, value, words).tolist() == [1.0, 0.0, 1.0]


def test_who_asks_for_no_value_asks_for_none() -> None:
    assert parse("who reports the imports of Macon", TODAY).plan.value == ""
    assert holds_value(["10.0.0.1"], "ip", ["ip"]).tolist() == [0.0], "any address is of no use"
