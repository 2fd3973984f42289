"""README and manual are true: their commands run, their links lead somewhere, and a person has time to read them."""

from __future__ import annotations

import re

import pytest

from memory_tui import manual
from memory_tui.cli import commands, main
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")
PAGES = {name: manual.text(name) for name in manual.topics()}
COMMAND = re.compile(r"memory-tui ([a-z][a-z-]+(?: [a-z][a-z-]+)?)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN = {"--all-extras"}
"""Options of other programs."""
MOST_WORDS, LONGEST_SENTENCE = 11_000, 30


def test_the_readme_is_a_page_and_its_first_two_commands_start_and_test() -> None:
    assert len(README.splitlines()) <= 150
    first = re.search(r"```\n(.*?)\n(.*?)\n```", README)
    assert first is not None
    assert first[1] == "pip install uv && uv run memory-tui demo"
    assert first[2] in (ROOT / ".ci" / "run").read_text("utf-8")


def test_every_link_and_picture_of_the_readme_is_there() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_lists_every_page_of_the_manual() -> None:
    assert re.findall(r"memory_tui/manual/(\w+)\.md\) \|", README) == list(PAGES)
    assert {path.stem for path in (ROOT / "memory_tui" / "manual").glob("*.md")} == set(PAGES)


def test_the_manual_has_no_more_words_than_a_person_reads() -> None:
    counted = {page: len(text.split()) for page, text in PAGES.items()}
    assert sum(counted.values()) <= MOST_WORDS, counted


@pytest.mark.parametrize("page", ["README", *PAGES])
def test_no_sentence_is_longer_than_a_breath(page: str) -> None:
    text = re.sub(r"```.*?```", "", README if page == "README" else PAGES[page], flags=re.DOTALL)
    # A paragraph, an item of a list and a cell of a table each end a sentence.
    parts = re.split(r"\n\s*\n|\n(?=\||\d+\. |- |#)|\|", text)
    sentences = [sentence for part in parts for sentence in re.split(r"(?<=[.!?])\s+", part)]
    words = {sentence: len(re.findall(r"[\w`$€%]\S*", sentence)) for sentence in sentences}
    assert {sentence: count for sentence, count in words.items() if count > LONGEST_SENTENCE} == {}


@pytest.mark.parametrize("page", ["README", *PAGES])
def test_every_command_that_is_named_exists(page: str) -> None:
    text = README if page == "README" else PAGES[page]
    parsers = [commands.main_parser(), *map(commands.command_parser, commands.COMMANDS)]
    options = {name for parser in parsers for action in parser._actions for name in action.option_strings}
    code = "\n".join(block or inline for block, inline in re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", text, re.DOTALL))
    found = COMMAND.findall(code)
    assert [name for name in found if not {name, name.split()[0]} & set(commands.COMMANDS)] == []
    ours = [line for line in code.splitlines() if "memory-tui" in line]
    assert [name for line in ours for name in OPTION.findall(line) if name not in options | FOREIGN] == []


def test_the_page_of_commands_has_each_of_them() -> None:
    assert [
        name for name in commands.COMMANDS if name != "open" and f"memory-tui {name}" not in PAGES["commands"]
    ] == []


def test_help_lists_the_pages_prints_one_and_refuses_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["help"]) == 0
    listed = capsys.readouterr().out
    for name, title in manual.topics().items():
        assert re.search(rf"^  {name} +{re.escape(title)}$", listed, re.MULTILINE)
    assert main.main(["help", "agents"]) == 0
    assert capsys.readouterr().out == PAGES["agents"]
    assert main.main(["help", "poetry"]) == 2
    assert "no page 'poetry'" in capsys.readouterr().err
