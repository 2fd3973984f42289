"""`memory-tui why`: the answer for a line, as text and as JSON."""

import json

import pytest

from memory_tui.cli import main


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command line on a workspace of twelve small notes; returns exit code, stdout and stderr."""
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n- Router: Omada ER605, VLAN 10\n")
    for day in range(1, 12):
        (folder / "memory" / f"2026-11-{day:02}.md").write_text(f"Router log number {day}\nThe garden got garlic\n")

    def go(*arguments):
        where = ["--workspace", str(folder), "--index", str(tmp_path / "i.sqlite"), "--provider", "scripted"]
        code = main.main([*where, "--now", "2026-11-20", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return go


@pytest.mark.parametrize("asked", [("why", "omada"), ("why", "omada", "--json")])
def test_a_line_behind_the_end_of_a_note_is_an_error_and_no_answer(run, asked):
    code, out, err = run(*asked[:2], "MEMORY.md:99", *asked[2:])
    assert code == 2
    said = out if "--json" in asked else err
    assert "There is no line 99 in MEMORY.md." in said
    assert "Its last line is MEMORY.md:2." in said


def test_text_for_people(run, tmp_path):
    code, out, _ = run("why", "omada router", "MEMORY.md:2")
    assert code == 0
    assert out.startswith("RECALLED 1st  MEMORY.md#L1-L2\n")
    assert "cosine" in out
    (tmp_path / "notes" / "memory" / "empty.md").write_text("\n\n")
    code, out, _ = run("why", "omada router", "memory/empty.md:1")
    assert "NOT RECALLED (in no chunk)" in out
    assert "Line 1 is in no chunk: only blank lines are there." in out


FIXED = ("--profile", "openclaw-2026.9", "--set", "vectorWeight=0.5")
NO_SETTING = "2026.9 has no setting for this; recommended has"


def test_a_setting_that_the_release_fixed_is_not_ignored_in_silence(run, tmp_path):
    """Once as text, among the notices of JSON, for each command that ranks; and not under another profile."""
    place, labels = "MEMORY.md:2", tmp_path / "labels.jsonl"
    labels.write_text('{"query": "router", "relevant": [{"path": "MEMORY.md", "line": 2}]}\n')
    measured = ("eval", "--labels", str(labels))
    for asked in (("search", "router"), ("why", "router", place), measured, ("index",)):
        code, _, err = run(*FIXED, *asked)
        assert err.count(NO_SETTING) == 1, asked
        assert "query.hybrid.vectorWeight" in err
    for asked in (("search", "router"), ("why", "router", place), measured, ("status",)):
        code, out, _ = run(*FIXED, *asked, "--json")
        said = [one for one in json.loads(out)["notices"] if NO_SETTING in one["message"]]
        assert [one["code"] for one in said] == ["setting"], asked
        assert code == 0
    assert run("--profile", "recommended", "--set", "vectorWeight=0.5", "why", "router", place)[2] == ""
