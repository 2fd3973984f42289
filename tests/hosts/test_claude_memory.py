"""Claude Code's memory as it is since 2.1: facts with front matter, an index that points to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tui.engine.engine import Engine
from memory_tui.hosts import claude_code
from memory_tui.hosts.claude_code import ClaudeFact, fact_of, written
from memory_tui.notes.links import LinkIndex
from memory_tui.plan import Options

ROLE = """---
name: user-role
description: The user keeps the network of a house
metadata:
  type: user
---

Keeps a house with an Omada router. See [[not-written-yet]].
"""
TESTING = """---
name: feedback-testing
description: "Run the tests: all of them"
type: feedback
---

Run all tests before a commit.
"""


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """The memory of a repository, from a folder deep inside it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    deep = tmp_path / "repo" / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    monkeypatch.chdir(deep)
    folder = claude_code.auto_memory(deep)
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Index\n\n- [Role](user_role.md) — who the user is\n- [Gone](project_gone.md) — a file that went\n"
    )
    (folder / "user_role.md").write_text(ROLE)
    (folder / "feedback_testing.md").write_text(TESTING)
    (folder / "memory").mkdir()
    (folder / "memory" / "2026-11-20.md").write_text("# 2026-11-20\n\n- 10:15 The ferry leaves at 18:10 from pier 3.\n")
    return folder


def opened(folder, tmp_path):
    index = str(tmp_path / "index.sqlite")
    return Engine.open(Options(workspace=str(folder), extra=(str(folder),), index=index, provider="none", now=1.8e9))


def test_front_matter_names_the_fact_and_its_type():
    assert fact_of(ROLE) == ClaudeFact("user-role", "The user keeps the network of a house", "user")
    assert fact_of(TESTING) == ClaudeFact("feedback-testing", "Run the tests: all of them", "feedback")
    assert fact_of("# A note\n") is None
    assert fact_of("---\nname: x\n") is None, "it never ends"
    assert fact_of("---\nname: x\nmetadata:\n  type: poem\n---\n") == ClaudeFact("x", "", "")


LINE = st.text(st.characters(exclude_categories=("C", "Z")), max_size=30)


@given(st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True), LINE, st.sampled_from(claude_code.TYPES))
def test_what_is_written_is_read_back(name, description, kind):
    plain = description.replace('"', "").replace("\\", "").strip("'")
    fact = ClaudeFact(name, plain, kind)
    assert fact_of(written(fact, "A body.\n")) == fact


def test_the_inbox_names_facts_without_a_pointer_and_pointers_without_a_file(memory, tmp_path):
    with opened(memory, tmp_path) as engine:
        engine.index.catch_up()
        found = {(one.kind, one.place.path): one.reason for one in engine.inbox.examine().suggestions}
        kinds = {row.path: row.kind for row in engine.notes.files()}
    assert kinds["user_role.md"] == "user"
    assert kinds["feedback_testing.md"] == "feedback"
    assert kinds["MEMORY.md"] == ""
    assert found["unlisted", "feedback_testing.md"].endswith(
        "Add: - [Feedback testing](feedback_testing.md) — Run the tests: all of them"
    )
    assert found["dead path", "MEMORY.md"] == "project_gone.md is not there."
    assert not {path for kind, path in found if kind in ("unlisted", "dead path")} & {"user_role.md"}


def test_a_link_names_a_fact_whatever_its_file_is_called(memory, tmp_path):
    (memory / "project_boat.md").write_text("---\nname: the-ferry\nmetadata:\n  type: project\n---\n\nPier 3.\n")
    (memory / "user_role.md").write_text(ROLE + "\nTakes [[the-ferry]], and [[feedback-testing]].\n")
    with opened(memory, tmp_path) as engine:
        engine.index.catch_up()
        index = LinkIndex(engine.plan.roots)
        back = index.about("project_boat.md").back
        assert [(link.source, link.written) for link in back] == [("user_role.md", "the-ferry")]
        leads = {link.written: link.target for link in index.about("user_role.md").links}
        assert leads == {
            "not-written-yet": "",
            "the-ferry": "project_boat.md",
            "feedback-testing": "feedback_testing.md",
        }
        # The file stays, the fact gets another name.
        (memory / "project_boat.md").write_text("---\nname: the-boat\nmetadata:\n  type: project\n---\n\nPier 4.\n")
        assert index.about("project_boat.md").back == ()


def test_a_line_is_promoted_as_a_fact_with_its_pointer_and_taken_back(memory, tmp_path):
    before = {path.name: path.read_bytes() for path in memory.iterdir() if path.is_file()}
    with opened(memory, tmp_path) as engine:
        plan = engine.notes.curator.plan
        assert plan.choices(plan.spot("memory/2026-11-20.md", 3)) == claude_code.TYPES
        change = plan.promote(plan.spot("memory/2026-11-20.md", 3), to="reference")
        engine.notes.curator.apply(change)
        text = (memory / "reference_the_ferry_leaves_at_18_10.md").read_text()
        assert fact_of(text) == ClaudeFact(
            "the-ferry-leaves-at-18-10", "The ferry leaves at 18:10 from pier 3.", "reference"
        )
        assert text.endswith("\n- The ferry leaves at 18:10 from pier 3. (from memory/2026-11-20.md)\n")
        index = (memory / "MEMORY.md").read_text()
        assert index.endswith(
            "- [The ferry leaves at 18 10](reference_the_ferry_leaves_at_18_10.md) "
            "— The ferry leaves at 18:10 from pier 3.\n"
        )
        again = plan.promote(plan.spot("memory/2026-11-20.md", 3), to="reference")
        assert again.files[0].path == "reference_the_ferry_leaves_at_18_10_2.md"
        engine.notes.curator.undo()
    assert {path.name: path.read_bytes() for path in memory.iterdir() if path.is_file()} == before
