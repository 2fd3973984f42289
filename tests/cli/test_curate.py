"""The commands that change notes: they show, ask, write, and take back."""

import json
from functools import partial

import pytest

from tests.support.curate import workspace

DAY = "memory/2026-01-11.md"
NOW = "2026-01-12T14:05:00Z"


@pytest.fixture
def notes(tmp_path, monkeypatch):
    folder = workspace(tmp_path / "notes")
    (folder / DAY).write_bytes(b"# 2026-01-11 (Sunday)\n\n- 09:00 Router one is Omada\n  with VLANs\n- 10:00 bread\n")
    (folder / "MEMORY.md").write_bytes(b"# Memory\n\n## Home\n- Router: Archer\n\n## Food\n- Bread on Friday\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(command):
    return partial(command, "--now", NOW)


def test_remember_undo_redo(notes, run):
    code, out, _ = run("remember", "milk", "--yes")
    assert (code, "+- 14:05 milk" in out) == (0, True)
    log = notes / "memory/2026-01-12.md"
    assert log.read_text() == "# 2026-01-12\n\n- 14:05 milk\n"
    assert run("undo", "--yes")[0] == 0
    assert not log.exists()
    assert run("undo", "--redo", "--yes")[0] == 0
    assert log.exists()
    assert run("undo", "--redo", "--yes")[0] == 2
    assert "Change 3 is a redo of change 1: name that one." in run("undo", "3")[2]
    assert "Change 1 is not undone" in run("undo", "--redo", "1")[2]


def test_nothing_is_written_unless_somebody_says_yes(notes, run):
    before = {path: path.read_bytes() for path in notes.rglob("*.md")}
    code, out, err = run("remember", "milk")
    assert (code, "+- 14:05 milk" in out, "--yes" in err) == (2, True, True)
    assert run("promote", f"{DAY}:3", "--dry-run")[0] == 0
    for words in (("promote", f"{DAY}:3"), ("remember", "milk")):
        code, out, err = run(*words, "--json")
        assert (code, json.loads(out)["made"], "A script adds --yes" in err) == (2, False, True)
    assert run("--read-only", "remember", "milk", "--yes")[0] == 2
    assert {path: path.read_bytes() for path in notes.rglob("*.md")} == before


def test_promote_takes_the_whole_item_and_says_what_it_does_to_the_budget(notes, run):
    code, out, _ = run("promote", f"{DAY}#L3", "--move", "--yes")
    assert (code, "characters (limit 20,000)" in out) == (0, True)
    assert (notes / "MEMORY.md").read_text() == (
        f"# Memory\n\n## Home\n- Router: Archer\n- Router one is Omada (from {DAY})\n  with VLANs\n\n"
        "## Food\n- Bread on Friday\n"
    )
    assert (notes / DAY).read_text() == "# 2026-01-11 (Sunday)\n\n- 10:00 bread\n"
    found = json.loads(run("history", "--json")[1])["changes"]
    found = [(row["id"], row["kind"], row["paths"], row["undoable"]) for row in found]
    assert found == [(1, "promote", ["MEMORY.md", DAY], True)]
    assert "+- Router one is Omada" in run("history", "--show", "1")[1]
    assert run("history", "memory/other.md")[0] == 2


@pytest.mark.parametrize("more", [(), ("--move",), ("--to", "food")])
def test_lines_that_were_promoted_are_not_promoted_again(notes, run, more):
    assert run("promote", f"{DAY}:3", "--yes")[0] == 0
    before = (notes / "MEMORY.md").read_bytes()
    code, _, err = run("promote", f"{DAY}:3", "--yes", *more)
    assert (code, f"{DAY}:3-4 stands at MEMORY.md:5 already" in err) == (2, True), err
    (notes / "memory/2026-01-12.md").write_text("- 09:00 **Router ONE** is Omada.\n- 09:10 router two is Omada\n")
    shown = [run("promote", f"memory/2026-01-12.md:{line}", "--dry-run", *more)[1] for line in (1, 2)]
    assert ["MEMORY.md:5 says the same already." in text for text in shown] == [True, False]
    assert (notes / "MEMORY.md").read_bytes() == before


def test_undo_of_a_note_that_changed_since_needs_merge(notes, run):
    run("promote", f"{DAY}:5", "--to", "food", "--yes")
    with (notes / "MEMORY.md").open("a") as file:
        file.write("\n## More\n- theirs\n")
    code, _, err = run("undo", "--yes")
    assert (code, "has changed since" in err) == (1, True)
    assert run("undo", "1", "--merge", "--yes")[0] == 0
    assert (notes / "MEMORY.md").read_text().endswith("- Bread on Friday\n\n## More\n- theirs\n")


def test_budget_and_archive(notes, run):
    hosts = json.loads(run("prompt", "--budget", "--json")[1])["hosts"]
    cuts = [(host["host"]["name"], host["limit"], host["cut"]) for host in hosts]
    assert cuts == [("openclaw", 20_000, None), ("claude-code", 25_000, None)]
    assert "all of it is read" in run("prompt", "--budget")[1]
    (notes / "memory/2025-01-01.md").write_bytes(b"old\r\n")
    assert run("archive", "--older-than", "99", "--yes")[0] == 0
    assert (notes / "memory/archive/memory/2025-01-01.md").read_bytes() == b"old\r\n"
    assert not (notes / "memory/2025-01-01.md").exists()
    assert run("archive", "--older-than", "99", "--yes")[0] == 2


def test_each_action_that_the_inbox_offers_is_made_and_taken_back(notes, run):
    key = "sk-ant-api03-" + "aB3dE5gH7j" * 9 + "AA"
    twice = "- the guest network is on VLAN 20 behind the switch in the hall, and two cameras of the garden hang on it"
    for path in ("MEMORY.md", "memory/network.md"):
        (notes / path).write_text(f"# Home\n{twice}\n- more\n")
    (notes / "memory/2026-01-01.md").write_text("- The stand-up of the team is at 10:15 in room Elbe\n")
    later = "- Correction: the stand-up of the team is at 09:45 in room Elbe, no longer at 10:15\n"
    (notes / "memory/2026-01-05.md").write_text(f"- key {key}\n- see [this](gone.md)\n{later}")
    (notes / "memory/latin.md").write_bytes("- Die Tür ist grün und schön\n".encode("latin-1"))
    (notes / "memory/2026-02-30.md").write_text("- bread\n")

    def texts():
        return {path: path.read_bytes() for path in notes.rglob("*.md")}

    def groups():
        kinds = [json.loads(run("inbox", *kind, "--json")[1]) for kind in ((), ("--kind", "contradiction"))]
        return {group["id"]: group["actions"] for group in (*kinds[0], *kinds[1])}

    before, offered = texts(), groups()
    for name, action in [(name, action.replace(" ", "-")) for name, actions in offered.items() for action in actions]:
        do = ("inbox", "--id", name, "--do", action)
        assert run(*do, "--dry-run")[0] == 0
        assert (texts(), groups()) == (before, offered), f"{action} is only shown"
        code, _, err = run(*do, "--yes")
        assert (code, err) == (0, ""), action
        assert name not in groups()
        decided = texts() == before
        assert run(*(("inbox", "--id", name, "--do", "reopen") if decided else ("undo", "--yes")))[0] == 0
        assert (texts(), groups()) == (before, offered), f"{action} is taken back"
    made = {action for actions in offered.values() for action in actions}
    assert made == {"mask", "delete", "none", "keep", "snooze", "merge", "merge other", "overtake", "convert", "rename"}
    assert run("inbox", "--id", name, "--do", "gulp")[0] == 2
