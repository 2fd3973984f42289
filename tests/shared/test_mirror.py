"""What a mirror answers: the same as the index that was published, whatever changed since, and when it was so."""

import datetime as dt
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui import demo
from memory_tui.engine.engine import Engine
from memory_tui.explain import trace_json
from memory_tui.search.retrieve import Evidence
from memory_tui.shared import publish
from tests.support.shared_index import Home
from tests.support.workspace import synced

PROFILES = ("recommended", "openclaw-2026.3", "openclaw-2026.9")
NOW = dt.datetime(2026, 3, 20, 12, tzinfo=dt.UTC).timestamp()
ASKED = Path(demo.__file__).with_name("queries.jsonl")
QUESTIONS = [json.loads(line)["query"] for line in ASKED.read_text().splitlines()]
QUESTIONS += ["the word after NUL", "日本語のメモ", "x" * 300, "memory/2026-02-30.md", "plumber washing machine"]
ODD = f"# Od\x00d\n\nThe word \x00 after NUL, a word {'x' * 3000}\n\n日本語のメモ <!-- trigger: rose -->\n"
WHERE = "anna/laptop:"


@pytest.fixture
def laptop(server, team, tmp_path):
    home = Home(tmp_path / "laptop", server.url(team, "anna"), "anna/laptop")
    shutil.copytree(Path(demo.__file__).parent / "workspace", home.notes, dirs_exist_ok=True)
    home.write(**{"odd": ODD, "2026-02-30": "An impossible day.\n", "100%27'\"s": "A name with %s in it.\n"})
    (home.notes / "memory" / "surrogate.md").write_bytes(b"# Lone\n\nA lone surrogate: \xed\xa0\x80 here.\n")
    home.options = replace(home.options, now=NOW)
    home.join()
    return home


@pytest.fixture
def desk(server, team, tmp_path):
    home = Home(tmp_path / "desk", server.url(team, "bob"), "bob/desk")
    home.write(MEMORY="# Bob\n\nThe kettle is green.\n")
    home.options = replace(home.options, now=NOW)
    home.join()
    return home


def under(home: Home, profile: str) -> Home:
    home.options = replace(home.options, changes=(("profile", profile),))
    return home


def shared_with_bob(home: Home) -> Home:
    home.publish()
    publish.allow(home.access, "bob", reads=True)
    return home


@contextmanager
def asked(home: Home, scope: str) -> Iterator[Engine]:
    with synced(home.options) as engine:
        engine.scopes.fill(scope)
        yield engine.of_scope(scope)[0]


def told(engine: Engine, question: str) -> dict:
    """Everything that an answer holds but for what is of one index: numbers of rows, times, and where it lies."""
    trace = engine.search.search(question, engine.plan.settings)
    return _bare(trace_json.answer(trace))


def why(engine: Engine, evidence: Evidence, path: str, line: int) -> dict:
    return _bare(trace_json.why(engine.search.why(evidence, path, line)))


def _bare(value):
    if isinstance(value, dict):
        # Whoever wrote them, the notes of somebody else are untrusted.
        left = ("rowid", "timings", "generation", "originClass")
        return {name: _bare(part) for name, part in value.items() if name not in left}
    if isinstance(value, list):
        return [_bare(part) for part in value]
    if isinstance(value, float):
        return round(value, 6)
    return value.replace(WHERE, "") if isinstance(value, str) else value


def assert_same_answers(home: Home, other: Home, lines: int = 3) -> None:
    with Engine.open(home.options) as own, asked(other, home.name) as mirror:
        own.index.sync()
        for question in QUESTIONS:
            assert told(mirror, question) == told(own, question), question
        here, there = own.search.gather(QUESTIONS[0]), mirror.search.gather(QUESTIONS[0])
        for file in sorted(home.notes.rglob("*.md")):
            path = file.relative_to(home.notes).as_posix()
            for line in range(1, lines + 1):
                assert why(mirror, there, WHERE + path, line) == why(own, here, path, line), (path, line)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_mirror_answers_as_the_index_that_was_published_does_and_goes_on_to_after_changes(laptop, desk, profile):
    shared_with_bob(under(laptop, profile))
    assert_same_answers(laptop, under(desk, profile))
    edited = sorted((laptop.notes / "memory").glob("*.md"))
    for path in edited[:4]:
        path.write_text(path.read_text("utf-8") + "\nThe kettle moved to the cellar.\n", "utf-8")
    edited[5].unlink()
    laptop.write(new="# New\n\nThe heating engineer comes on Friday.\n")
    laptop.publish()
    assert_same_answers(laptop, desk, lines=1)


def test_a_command_prints_the_same(laptop, desk, printed):
    """Of a command sqlite-vec finds the nearest, where an app and a server compare all of them."""
    shared_with_bob(laptop)
    asks = [("search", question, "--explain") for question in QUESTIONS[:6]]
    asks += [("why", QUESTIONS[0], f"MEMORY.md:{line}") for line in (1, 3)]
    for word, question, what in asks:
        answers = []
        for home, more in ((laptop, ()), (desk, ("--scope", "anna/laptop"))):
            o = home.options
            where = ["--workspace", o.workspace, "--config", o.config, "--index", o.index]
            where += ["--now", "2026-03-20T12:00:00Z"]
            place = f"{WHERE}{what}" if more and word == "why" else what
            answers.append(json.loads(printed(word, question, place, "--json", *more, *where)))
        assert answers[1].pop("shared")["state"] == "live"
        assert _bare(answers[1]) == _bare(answers[0]), question
