"""The screen's parts that need no screen: cutting and wrapping text, bars, knobs, baselines, pages, editors."""

from __future__ import annotations

import datetime as dt
import signal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from memory_tui import profiles
from memory_tui.engine.status import FileRow
from memory_tui.render.hit_text import bar
from memory_tui.search.trace import ChunkRef
from memory_tui.settings import BY_KEY, TUNE_KEYS, Settings
from memory_tui.tui import draw, external, note_page
from memory_tui.tui.note_page import beside, closest, find_in, groups, head_of, make_page, marks, overlaid
from memory_tui.tui.state import Aging
from memory_tui.tui.tuning import Dial, Tuning, describe, dials, slider, stepped
from memory_tui.tui.widgets.status_bars import BarStatement, fitted
from memory_tui.tui.widgets.tune_strip import explained
from memory_tui.workspace.notes import Document

TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Mn", "Me", "Cf"]), max_size=300)


@given(TEXT, st.integers(1, 60), st.sampled_from(["left", "right"]))
def test_fitted_text_has_exactly_its_width(text: str, width: int, align: str) -> None:
    assert cell_len(draw.fit(text, width, align)) == width


@given(TEXT, st.integers(8, 60))
def test_wrapped_lines_hold_everything_and_fit(text: str, width: int) -> None:
    spans = list(draw.wrap(text, width))
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(cell_len(text[start:end].rstrip(" ")) <= width for start, end in spans)


def test_a_matched_word_takes_the_selector_behind_it_along() -> None:
    pieces = draw.marked("step 1\ufe0f\u20e3 done", [(5, 6)])
    assert sum(cell_len(text) for text, _ in pieces) == cell_len("step 1\ufe0f\u20e3 done")
    assert pieces[1] == ("1\ufe0f", "match")


def test_text_without_spaces_breaks_between_wide_characters() -> None:
    text = "Wei: " + "外婆的机票是几点的" * 4
    first = next(iter(draw.wrap(text, 20)))
    assert cell_len(text[slice(*first)]) >= 19


AMOUNTS = st.lists(st.tuples(st.sampled_from("█▒+·"), st.floats(-1, 2)), max_size=4)


@given(AMOUNTS, st.floats(0.1, 3), st.integers(1, 40))
def test_a_bar_never_leaves_its_frame(parts: list[tuple[str, float]], scale: float, width: int) -> None:
    assert len(bar(parts, scale, width)) == width


def test_a_bar_is_a_share_of_its_scale() -> None:
    assert bar([("█", 0.5), ("▒", 0.25)], 1.0, 8) == "████▒▒  "
    assert bar([("█", 0.5), ("▒", 0.25)], 2.0, 8) == "██▒     "
    assert bar([("█", float("nan"))], 1.0, 4) == "    "


@pytest.mark.parametrize(
    ("path", "width", "shown"),
    [
        ("memory/2026-01-12.md", 30, "memory/2026-01-12.md"),
        ("memory/2026-01-12.md", 14, "2026-01-12.md"),
        ("memory/work/deploy-runbook.md", 14, "…ploy-runbook.md"[-14:].replace("y-r", "y-r")),
    ],
)
def test_paths_lose_their_beginning(path: str, width: int, shown: str) -> None:
    fitted_path = draw.fit_path(path, width)
    assert cell_len(fitted_path) <= width
    assert fitted_path[-8:] == shown[-8:]


def test_the_truth_bar_keeps_what_matters() -> None:
    parts = [
        BarStatement(" MODE ", " M ", 99),
        BarStatement("412 chunks in 37 files", "412c/37f", 75),
        BarStatement("fts5", "fts5", 35),
        BarStatement("rules recommended", "rules recommended", 90),
    ]
    assert [text for text, _ in fitted(parts, 80)] == [part.long for part in parts]
    assert [text for text, _ in fitted(parts, 40)] == [" MODE ", "412c/37f", "rules recommended"]
    assert [text for text, _ in fitted(parts, 24)] == [" M ", "rules recommended"]


# --- knobs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [key for key in TUNE_KEYS if key != "profile"])
def test_a_knob_goes_from_end_to_end_and_back(key: str) -> None:
    knob = BY_KEY[key]
    value = knob.default
    for direction in (-1, 1, -1):
        seen = [value]
        for _ in range(2000):
            value = stepped(knob, value, direction)
            if value == seen[-1]:
                break
            seen.append(value)
        assert seen == sorted(seen, reverse=direction < 0)
    assert value == (False if isinstance(knob.default, bool) else knob.low)


@pytest.mark.parametrize(
    ("value", "direction", "expected"),
    [
        (0.7, 1, 0.75),
        (0.75, -1, 0.7),
        (0.72, 1, 0.75),
        (0.72, -1, 0.7),
        (0.35, -1, 0.3),
        (1.0, 1, 1.0),
        (0.0, -1, 0.0),
    ],
)
def test_steps_stay_on_the_grid(value: float, direction: int, expected: float) -> None:
    assert stepped(BY_KEY["query.hybrid.vectorWeight"], value, direction) == pytest.approx(expected)


@given(st.sampled_from([key for key in TUNE_KEYS if BY_KEY[key].high]), st.floats(0, 1))
def test_a_place_on_the_slider_is_a_value_of_the_knob(key: str, share: float) -> None:
    knob = BY_KEY[key]
    dial = Dial(knob, knob.default, "default", "", False)
    value = dial.at_share(share)
    assert knob.low <= float(value) <= knob.high
    assert len(slider(Dial(knob, value, "", "", False), 9)) == 9


@pytest.mark.parametrize(("profile", "counts"), [("recommended", True), ("openclaw-2026.3", False)])
def test_a_weight_without_hybrid_has_no_effect_only_where_that_is_so(profile: str, *, counts: bool) -> None:
    from memory_tui.search.score import Rules

    def at(weight: float) -> tuple[Rules, str]:
        settings = profiles.compose(profile, {}, {}).update(
            {"query.hybrid.enabled": False, "query.hybrid.vectorWeight": weight, "query.hybrid.textWeight": 1 - weight},
            "test",
        )
        ignored = {dial.knob.key: dial.ignored for dial in dials(settings, settings)}
        return Rules.of(settings, "vectors only"), ignored["query.hybrid.vectorWeight"]

    (one, said), (other, _) = at(0.4), at(0.8)
    assert (one.vector_weight != other.vector_weight) is counts
    assert (not said) is counts


@pytest.mark.parametrize("profile", profiles.PROFILES)
def test_what_a_knob_does_is_never_cut(profile: str) -> None:
    settings = profiles.compose(profile, {}, {})
    for dial in dials(settings, settings, 30):
        for width in (60, 80, 120, 200):
            shown = explained(dial, width)
            assert all(line.cell_length <= width for line in shown)
            words = " ".join(line.plain.strip() for line in shown).split()
            assert words[-len(describe(dial).split()) :] == describe(dial).split()


def test_ignored_knobs_say_why() -> None:
    found = {dial.knob.key: dial.ignored for dial in dials(*[profiles.compose("openclaw-2026.3", {}, {})] * 2)}
    assert found["dateBoost"] == "OpenClaw does not read dates in a query"
    assert found["query.hybrid.temporalDecay.halfLifeDays"] == "decay is off"
    assert found["query.minScore"] == ""


def test_knobs_that_2026_9_fixed_are_shown_as_fixed() -> None:
    said = "2026.9 has no setting for this; recommended has"
    found = {dial.knob.key: dial.ignored for dial in dials(*[profiles.compose("openclaw-2026.9", {}, {})] * 2)}
    fixed = {key for key, why in found.items() if why == said}
    assert fixed == set(found) & set(profiles.get("openclaw-2026.9").fixed)
    assert {"query.hybrid.vectorWeight", "query.hybrid.temporalDecay.halfLifeDays", "query.hybrid.mmr.lambda"} <= fixed
    assert found["query.minScore"] == found["query.maxResults"] == ""


def test_weights_add_up_to_one() -> None:
    tuning = Tuning.start(Settings.defaults()).set("query.hybrid.vectorWeight", 0.55)
    assert tuning.settings.number("query.hybrid.textWeight") == pytest.approx(0.45)
    assert tuning.reset("query.hybrid.textWeight").settings.number("query.hybrid.vectorWeight") == pytest.approx(0.7)


def test_undo_and_redo_walk_the_same_way() -> None:
    start = Tuning.start(Settings.defaults())
    turned = start.set("query.maxResults", 8).set("query.minScore", 0.5)
    assert turned.undo().undo().settings == start.settings
    assert turned.undo().undo().redo().redo().settings == turned.settings
    assert turned.undo().set("query.maxResults", 9).redo().settings.whole("query.maxResults") == 9
    assert start.undo() is start
    assert start.set("query.maxResults", 6) is start


def test_a_baseline_is_named_by_what_differs() -> None:
    tuning = Tuning.start(Settings.defaults()).set("query.maxResults", 8)
    assert tuning.compared
    based = tuning.rebase()
    assert not based.compared
    assert (based.baseline.name, based.baseline.title) == ("B", "results 8")


# --- files and pages -----------------------------------------------------------------------------------------------


def row(path: str, day: dt.date | None) -> FileRow:
    return FileRow(path, "memory", "fresh", "", 1, 10, 0.0, day)


def test_files_are_grouped_by_day() -> None:
    today = dt.date(2026, 3, 1)
    days = ["2026-03-02", "2026-03-01", "2026-02-27", "2026-02-23", "2026-02-22", "2025-12-31"]
    rows = [row(f"memory/{day}.md", dt.date.fromisoformat(day)) for day in days]
    rows += [
        row("MEMORY.md", None),
        row("memory/2026-03-01-router.md", today),
        row("memory/house.md", None),
        row("../shared/notes.md", None),
        replace(row("sessions/a.jsonl", None), source="sessions"),
    ]
    found = groups(rows, today)
    assert [group.title for group in found] == [
        "Read at session start",
        "Dated later than today",
        "Today",
        "Last seven days",
        "February 2026",
        "December 2025",
        "Topics",
        "Extra paths",
        "Sessions",
    ]
    assert [(file.path, file.state) for file in found[0].files] == [
        ("MEMORY.md", "fresh"),
        ("memory/2026-03-01.md", "fresh"),
        ("memory/2026-02-28.md", "absent"),
    ]
    assert [file.path for file in found[3].files] == ["memory/2026-02-27.md", "memory/2026-02-23.md"]
    listed = [file.path for group in found for file in group.files if file.state != "absent"]
    assert sorted(listed) == sorted(file.path for file in rows)


def test_days_are_walked_from_the_newest_that_has_come() -> None:
    today = dt.date(2026, 3, 1)
    rows = [row(f"memory/{day}.md", dt.date.fromisoformat(day)) for day in ("2026-02-01", "2026-02-20", "2026-03-09")]
    first = beside(rows, row("MEMORY.md", None), today, 1)
    assert first is rows[1]
    assert beside(rows, first, today, 1) is rows[0]
    assert beside(rows, first, today, -1) is rows[2]
    assert beside(rows, rows[2], today, -1) is None
    gone = row("memory/2026-02-10.md", dt.date(2026, 2, 10))
    assert beside(rows, gone, today, 1) is rows[0]


# --- long notes and their layout -----------------------------------------------------------------------------------


@given(st.lists(TEXT, max_size=12), st.integers(8, 50), st.booleans())
def test_a_layout_holds_every_character_in_lines_that_fit(lines: list[str], room: int, long: bool) -> None:
    page = make_page(document("\n".join(lines)), [])
    if long:
        page = replace(page, lines=[*page.lines, "x" * note_page.WRAPPED], widths=[*page.widths, note_page.WRAPPED])
    laid = note_page.Layout(page, room, {0: 1})
    for row, text in enumerate(page.lines):
        height = laid.tops[row + 1] - laid.tops[row] - (1 if row == 0 else 0)
        parts = [text[slice(*laid.span(row, part))] for part in range(height)]
        assert "".join(parts) == text
        assert all(cell_len(part.rstrip(" ")) <= laid.room for part in parts)


@given(TEXT)
def test_a_width_is_never_less_than_the_cells_taken(text: str) -> None:
    page = make_page(document(text), [])
    assert all(cell_len(line) <= width for line, width in zip(page.lines, page.widths, strict=True))


def test_the_head_of_a_long_note_is_the_beginning_of_the_whole() -> None:
    text = "".join(f"line {i} 外婆\n" for i in range(60_000))
    head, page = head_of(document(text)), make_page(document(text), [])
    assert head is not None
    assert not head.whole
    assert len(page.lines) == 60_001
    assert list(page.lines[: len(head.lines)]) == list(head.lines)
    assert head_of(document("short\n")) is None


# --- Markdown as typed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("## Head **bold**", [("## Head **bold**", "head")]),
        ("plain", []),
        ("> said", [("> said", "muted")]),
        ("- [x] done", [("-", "mark"), ("[x]", "good")]),
        ("1. [ ] open", [("1.", "mark"), ("[ ]", "warn")]),
        (
            "a `b ** c` **d** *e* _f_",
            [("`b ** c`", "code"), ("**d**", "strong"), ("*e*", "emphasis"), ("_f_", "emphasis")],
        ),
        ("snake_case_word and 2 * 3 * 4", []),
        ("see [[house#roof|the roof]]", [("[[house#roof|the roof]]", "link")]),
        ("[log](2026-03-15.md#L3) http://a.b/c", [("[log](2026-03-15.md#L3)", "link"), ("http://a.b/c", "link")]),
        ("| a | `b` |", [("|", "rule"), ("|", "rule"), ("`b`", "code"), ("|", "rule")]),
        ("---", [("---", "rule")]),
        ("#home is a tag, #1 is not", [("#home", "mark")]),
        ("[b]bold[/b]", []),
    ],
)
def test_marks_of_a_line(line: str, parts: list[tuple[str, str]]) -> None:
    assert [(line[start:end], name) for start, end, name in marks(line)] == parts


@given(st.text(max_size=200).map(lambda text: text.replace("\n", " ")))
def test_marks_are_in_order_and_apart(line: str) -> None:
    found = marks(line)
    assert all(0 <= start < end <= len(line) for start, end, _ in found)
    assert all(one[1] <= other[0] for one, other in pairwise(found))


@given(TEXT, st.integers(0, 50), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=5))
def test_laid_over_each_other_marks_keep_the_text(text: str, first: int, spans: list[tuple[int, int]]) -> None:
    pieces = list(overlaid(text, first, [[(start, start + more, "found")] for start, more in spans]))
    assert "".join(piece for piece, _ in pieces) == text


# --- finding -------------------------------------------------------------------------------------------------------


def test_capitals_matter_when_there_are_any() -> None:
    lines = ["Router and router", "", "the ROUTER"]
    assert find_in(lines, "router") == [(0, 0, 6), (0, 11, 17), (2, 4, 10)]
    assert find_in(lines, "Router") == [(0, 0, 6)]
    assert find_in(lines, "") == []


def test_a_few_letters_find_a_name() -> None:
    names = ["MEMORY.md", "2026-03-15.md", "network.md", "work/deploy-runbook.md", "读书笔记.md"]
    assert [names[at] for at in closest(names, "drb")] == ["work/deploy-runbook.md"]
    assert [names[at] for at in closest(names, "0315")] == ["2026-03-15.md"]
    assert names[closest(names, "读书")[0]] == "读书笔记.md"
    assert names[closest(names, "netwrok")[0]] == "network.md"
    themes = ["memory-light", "ansi-light"]
    assert [themes[at] for at in closest(themes, "light")] == ["ansi-light", "memory-light"]
    assert [themes[at] for at in closest(themes, "light", shortest=False)] == themes
    assert closest(names, "") == [0, 1, 2, 3, 4]


def test_age_is_what_a_search_counts() -> None:
    now = dt.datetime(2026, 3, 31, tzinfo=dt.UTC).timestamp()
    log, topic = row("memory/2026-03-01.md", dt.date(2026, 3, 1)), row("memory/house.md", None)
    slug = row("memory/2026-03-01-router.md", dt.date(2026, 3, 1))
    multiply, add = Aging("multiply", True, 30, now), Aging("add", True, 30, now)
    assert multiply.days(log) == add.days(log) == 30
    assert multiply.factor(log) == pytest.approx(0.5)
    assert multiply.days(topic) is None
    assert (multiply.days(slug), add.days(slug)) == (None, 30)
    assert Aging("add", False, 30, now).factor(log) is None


def document(text: str) -> Document:
    return Document("memory/a.md", text, "", len(text), 0, 0, False)


def test_a_page_knows_its_chunks() -> None:
    chunks = [ChunkRef(i, str(i), "memory/a.md", "memory", *span) for i, span in enumerate([(1, 4), (3, 8), (8, 9)])]
    page = make_page(document("\n".join(map(str, range(1, 11)))), chunks)
    assert list(page.covering(3)) == [0, 1]
    assert [page.chunk_at(line) for line in (1, 3, 8, 9, 10)] == [0, 1, 2, 2, -1]


def test_a_page_tells_headings_and_code_apart() -> None:
    page = make_page(document("# head\n```\n# code\n```\n> quote\ntext\r\n"), [])
    assert [page.in_code(row) for row in range(6)] == [False, True, True, True, False, False]
    assert page.lines[5] == "text"


# --- programs of the desktop ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, ["vi", "+12", "a b.md"]),
        ({"EDITOR": "nano"}, ["nano", "+12", "a b.md"]),
        ({"EDITOR": "nano", "VISUAL": "code -n"}, ["code", "-n", "--wait", "--goto", "a b.md:12"]),
        ({"EDITOR": "/usr/bin/hx"}, ["/usr/bin/hx", "a b.md:12"]),
        ({"EDITOR": "emacs -nw"}, ["emacs", "-nw", "+12", "a b.md"]),
        ({"EDITOR": "subl"}, ["subl", "--wait", "a b.md:12"]),
        ({"EDITOR": " ", "VISUAL": ""}, ["vi", "+12", "a b.md"]),
        ({"EDITOR": "it's nano"}, ["it's", "nano", "+12", "a b.md"]),
        ({"EDITOR": "'/opt/my editor/vim'"}, ["/opt/my editor/vim", "+12", "a b.md"]),
    ],
)
def test_each_editor_is_told_the_line_its_way(environment: dict[str, str], words: list[str]) -> None:
    assert external.command("a b.md", 12, environment) == words


def test_an_editor_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor")
    assert "could not be started" in external.edit("a.md", 1)
    monkeypatch.setenv("VISUAL", "false")
    before = signal.getsignal(signal.SIGINT)
    assert external.edit("a.md", 1) == "The editor false ended with status 1."
    assert signal.getsignal(signal.SIGINT) is before, "ctrl+c ends the app again"
    monkeypatch.setenv("VISUAL", "true")
    assert external.edit("a.md", 1) == ""
