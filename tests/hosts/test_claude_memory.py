"""Claude Code's memory as it is since 2.1: facts with front matter, an index that points to them."""

import pytest

from memory_tui.engine.engine import Engine
from memory_tui.errors import EditRefused
from memory_tui.hosts import claude_code
from memory_tui.hosts.claude_code import ClaudeFact, fact_of
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


def test_the_inbox_names_facts_without_a_pointer_and_pointers_without_a_file(memory, tmp_path):
    with opened(memory, tmp_path) as engine:
        engine.index.catch_up()
        findings = engine.inbox.examine(kinds=["dead path"])
        found = {(one.kind, one.place.path): one.reason for one in findings.suggestions}
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


def test_a_line_is_not_promoted_into_the_index(memory, tmp_path):
    with opened(memory, tmp_path) as engine:
        plan = engine.notes.curator.plan
        with pytest.raises(EditRefused, match="Claude Code's index"):
            plan.promote(plan.spot("memory/2026-11-20.md", 3))
