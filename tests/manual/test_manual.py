"""README and manual are true: commands run, links lead somewhere, tables are complete, a person has time to read."""

import datetime as dt
import json
import os
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from memory_tui import library, manual
from memory_tui.cli import commands
from memory_tui.config import settings
from memory_tui.demo import materialize
from tests.bench.recall import RECORD, table
from tests.support import coding_agents, real_openclaw
from tests.support.commands import alone
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")
PAGES = {name: manual.text(name) for name in manual.topics()}
COMMAND = re.compile(r"memory-tui ([a-z][a-z-]+(?: [a-z][a-z-]+)?)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN = {"--all-extras"}
"""Options of other programs."""
MOST_WORDS, LONGEST_SENTENCE = 11_000, 30


def test_the_readme_is_a_page_and_its_first_two_commands_start_and_test():
    assert len(README.splitlines()) <= 150
    first = re.search(r"```\n(.*?)\n(.*?)\n```", README)
    assert first[1] == "pip install uv && uv run memory-tui demo"
    assert first[2] in (ROOT / ".ci" / "run").read_text("utf-8")


def test_every_link_and_picture_of_the_readme_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_lists_every_page_of_the_manual():
    assert re.findall(r"memory_tui/manual/(\w+)\.md\) \|", README) == list(PAGES)
    assert {path.stem for path in (ROOT / "memory_tui" / "manual").glob("*.md")} == set(PAGES)


def test_the_manual_has_no_more_words_than_a_person_reads():
    counted = {page: len(text.split()) for page, text in PAGES.items()}
    assert sum(counted.values()) <= MOST_WORDS, counted


@pytest.mark.parametrize("page", ["README", *PAGES])
def test_no_sentence_is_longer_than_a_breath(page):
    text = re.sub(r"```.*?```", "", README if page == "README" else PAGES[page], flags=re.DOTALL)
    # A paragraph, an item of a list and a cell of a table each end a sentence.
    parts = re.split(r"\n\s*\n|\n(?=\||\d+\. |- |#)|\|", text)
    sentences = [sentence for part in parts for sentence in re.split(r"(?<=[.!?])\s+", part)]
    words = {sentence: len(re.findall(r"[\w`$€%]\S*", sentence)) for sentence in sentences}
    assert {sentence: count for sentence, count in words.items() if count > LONGEST_SENTENCE} == {}


@pytest.mark.parametrize("page", ["README", *PAGES])
def test_every_command_that_is_named_exists(page):
    text = README if page == "README" else PAGES[page]
    parsers = [commands.main_parser(), *map(commands.command_parser, commands.COMMANDS)]
    options = {name for parser in parsers for action in parser._actions for name in action.option_strings}
    code = "\n".join(block or inline for block, inline in re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", text, re.DOTALL))
    found = COMMAND.findall(code)
    assert [name for name in found if not {name, name.split()[0]} & set(commands.COMMANDS)] == []
    ours = [line for line in code.splitlines() if "memory-tui" in line]
    assert [name for line in ours for name in OPTION.findall(line) if name not in options | FOREIGN] == []


def test_the_page_of_commands_has_each_of_them():
    assert [
        name for name in commands.COMMANDS if name != "open" and f"memory-tui {name}" not in PAGES["commands"]
    ] == []


def test_help_lists_the_pages_prints_one_and_refuses_another(printed):
    listed = printed("help")
    for name, title in manual.topics().items():
        assert re.search(rf"^  {name} +{re.escape(title)}$", listed, re.MULTILINE)
    assert printed("help", "agents") == PAGES["agents"]
    assert "no page 'poetry'" in printed("help", "poetry", code=2)


PAGE = manual.text("library")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NAMED = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda code: re.sub(r"\W+", " ", code)[-40:])
def test_every_example_runs_and_prints_something(example, capsys):
    materialize(Path("~/.openclaw/workspace").expanduser(), dt.date.today())
    exec(compile(example, "library.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.strip()


def test_the_page_names_each_public_name_once_and_no_other():
    assert sorted(NAMED) == sorted(name for name in vars(library) if name[0] != "_" and name != "annotations")


def test_importing_the_package_loads_nothing_of_it():
    code = "import sys, memory_tui; print(sorted(m for m in sys.modules if m.startswith('memory_tui.')))"
    assert alone(code) == "[]\n"


FOLDER = Path(manual.__file__).parent
KEYS = "Keys of the configuration"


class Row(NamedTuple):
    """One documented thing: what became of it here, and how."""

    name: str
    state: str
    how: str


AREAS = tomllib.loads((FOLDER / "openclaw.toml").read_text("utf-8"))["area"]
TABLE = {area["title"]: [Row(*row) for row in area["rows"]] for area in AREAS}
ROWS = [row for rows in TABLE.values() for row in rows]


def page():
    """The page that the table makes."""
    counts = [(state, sum(row.state == state for row in ROWS)) for state in ("works", "differs", "not here")]
    states = ", ".join(f"{number} {state}" for state, number in counts)
    lines = [
        "# What of OpenClaw is here",
        "",
        f"OpenClaw's memory up to 2026.9.6 in {len(ROWS)} rows: {states}. This page lists what differs or is not here.",
        "The table `openclaw.toml` of this folder has every row.",
    ]
    for title, rows in TABLE.items():
        others = [row for row in rows if row.state != "works"]
        lines += ["", f"## {title}: {len(rows) - len(others)} of {len(rows)} work"]
        if others:
            lines += ["", "| OpenClaw | Here |", "|---|---|"]
            names = {f"{row.state}: {row.how}": [] for row in others}
            for row in others:
                names[f"{row.state}: {row.how}"].append(row.name)
            lines += [f"| {', '.join(each)} | {how} |" for how, each in names.items()]
    return "\n".join(lines) + "\n"


def test_the_page_is_what_the_table_makes():
    if os.environ.get("MEMORY_TUI_UPDATE_SCREENS"):
        (FOLDER / "openclaw.md").write_text(page(), "utf-8")
    assert manual.text("openclaw") == page()


def test_each_row_stands_once_with_a_state_and_its_reason():
    assert len(ROWS) >= 239
    for title, rows in TABLE.items():
        names = [row.name for row in rows]
        assert len(set(names)) == len(names), title
    assert {row.state for row in ROWS} == {"works", "differs", "not here"}
    assert [row.name for row in ROWS if row.state != "works" and not row.how] == []
    assert [row.name for row in ROWS if "|" in row.name + row.how or "\n" in row.name + row.how] == []


def test_every_documented_key_is_a_row_and_no_other():
    documented = {key.path: key for key in (*settings.SEARCH_KEYS, *settings.FILE_KEYS)}
    listed = {row.name: row for row in TABLE[KEYS]}
    assert sorted(listed) == sorted(documented)
    for name, key in documented.items():
        assert (listed[name].state == "not here") == bool(key.effect), name
        if key.effect:
            assert listed[name].how == key.effect.removeprefix("none here: "), name


def test_every_documented_command_is_a_row():
    named = " ".join(row.name for row in TABLE["Commands of openclaw memory"])
    for word in ("status", "index", "search", "promote", "promote-explain", "forget", "reset", "rem-harness"):
        assert re.search(rf"\b{word}\b", named), word
    for option in ("--agent", "--json", "--deep", "--index", "--verbose", "--force", "--max-results", "--min-score"):
        assert option in named, option


def test_the_table_names_what_is_run():
    found = re.search(r"<!-- versions -->\n(.*)\n<!-- /versions -->", manual.text("agents"), re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()[2:]]
    run = {
        ("OpenClaw", real_openclaw.NEWEST),
        ("OpenClaw", real_openclaw.OLDEST),
        ("Claude Code", coding_agents.VERSIONS["@anthropic-ai/claude-code"]),
        ("Codex", coding_agents.VERSIONS["@openai/codex"]),
    }
    assert {(program, version) for program, version, _ in rows} == run


FIGURES = json.loads(RECORD.read_text("utf-8"))


def test_the_table_of_the_manual_is_that_of_the_recorded_run() -> None:
    assert table(FIGURES) in (ROOT / "memory_tui/manual/profiles.md").read_text("utf-8")


def test_each_figure_of_the_readme_is_that_of_the_recorded_run() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    one = r"([.0-9]+)"
    numbers = rf"nDCG@10 of {one} \(English\) and {one} \(Chinese\), `openclaw-2026.3` {one} and {one}\."
    stated = re.search(numbers, text)
    assert stated, "the README compares the two profiles"
    names = [f"MemoryBank, {language}{by}" for by in ("", ", openclaw-2026.3") for language in ("English", "Chinese")]
    assert [f"{FIGURES[name]['ndcg@10']:.2f}" for name in names] == list(stated.groups())
