"""Who changed a note: transcripts of the three hosts, the ledger and git, held against the bytes before and after."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from memory_tui.hosts import transcripts
from memory_tui.hosts.transcripts import Said, ToolUse
from memory_tui.notes.authors import UNKNOWN, Authors, NoteChange, Repository, name_authors, unknown_share, words
from memory_tui.notes.journal import Author, Journal, Sight
from memory_tui.openclaw.trust import LedgerRow, text_hash
from memory_tui.workspace.roots import Roots
from tests.support import curate
from tests.support.ledger import HostLedger
from tests.support.transcripts import (
    claude,
    claude_file,
    claude_said,
    codex,
    codex_file,
    openclaw,
    openclaw_database,
    openclaw_said,
)

OLD, NEW = b"- router 10.0.0.1\n- printer in the hall\n", b"- router 10.0.0.9\n- printer in the hall\n"
EDIT = {"old_string": "10.0.0.1", "new_string": "10.0.0.9"}
DIFF = "@@ -1,2 +1,2 @@\n-- router 10.0.0.1\n+- router 10.0.0.9\n - printer in the hall\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (".claude", ".codex", ".openclaw", "notes/memory"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


@pytest.fixture
def at():
    """A moment after the birth of every transcript of the test."""
    return time.time() + 1


def authors(home, at, ledger=None):
    del home
    return Authors(transcripts.sessions(at - 600)[0], ledger=ledger)


def note(home):
    return str(home / "notes" / "MEMORY.md")


def changed(home, at, before=OLD, after=NEW):
    return NoteChange(note(home), before, after, at=at)


def test_the_three_hosts_give_one_shape(home, at):
    cwd = str(home / "notes")
    edit = claude("c1", "Edit", {"file_path": note(home), **EDIT}, at, cwd)
    claude_file(home, [claude_said("user", "Fix the router.", at), *edit])
    claude_file(home, claude("c2", "Bash", {"command": "ls"}, at, cwd), below="7")
    step = {"type": "CommandExecution", "command": ["bash", "-lc", "ls"], "cwd": f"file://{cwd}", "exit_code": 0}
    codex_file(home, codex("x1", {"cmd": "ls"}, {**step, "status": "completed"}, at), at, cwd)
    long = "word " * 400
    said = [openclaw_said("user", "Fix it.", at), *openclaw("o1", "write", {"path": "a.md", "content": long}, at + 0.1)]
    openclaw_database(home, said, at, cwd)
    every, problems = transcripts.sessions(at - 60)
    assert problems == []
    uses = {
        (s.host, s.id, s.agent): [(i.name, i.cwd, i.succeeded) for i in s.items if isinstance(i, ToolUse)]
        for s in every
    }
    assert uses == {
        ("claude-code", "s1", ""): [("Edit", cwd, True)],
        ("claude-code", "s1", "7"): [("Bash", cwd, True)],
        ("codex", "t1", ""): [("exec_command", cwd, True)],
        ("openclaw", "agent:main:main", "main"): [("write", cwd, True)],
    }
    said = {item.text for session in every for item in session.items if isinstance(item, Said)}
    assert said == {"Fix the router.", "Fix it."}
    (command,) = [item for session in every if session.host == "codex" for item in session.items]
    assert command.at == pytest.approx(at, abs=0.001), "the call, not the late time of the step"


def test_transcripts_that_are_older_than_what_is_asked_are_not_opened(home, at):
    path = claude_file(home, claude("c1", "Bash", {"command": "ls"}, at, str(home)))
    os.utime(path, (at - 9000, at - 9000))
    path.chmod(0)
    assert transcripts.sessions(at - 60) == ([], [])


def test_a_transcript_that_is_too_long_or_no_file_is_named(home, at, monkeypatch):
    claude_file(home, [claude_said("user", "x" * 2000, at)])
    os.mkfifo(home / ".claude" / "projects" / "-project" / "pipe.jsonl")
    monkeypatch.setattr(transcripts, "MOST_BYTES", 1000)
    sessions, problems = transcripts.sessions(at - 60)
    assert sessions == []
    assert sorted("at most" in problem for problem in problems) == [False, True]
    assert all(str(home) in problem for problem in problems)


def test_lines_that_make_no_sense_are_passed_over(home, at):
    path = claude_file(home, [])
    path.write_bytes(b'{"type": \xff\n[1]\n{"timestamp": {}, "message": {"content": [null, {"type": "tool_use"}]}}\n')
    claude_file(home, claude("c1", "Edit", {"file_path": 7, "old_string": None}, at, str(home)))
    ran(home, at, "rm ~nobody/x a\0b MEMORY.md; 'no end")
    ran(home, at, "rm a\0b MEMORY.md")
    odd = "cat <<E > a{0.b} %d; printf '%d {x}' > MEMORY.md; printf '%s%s' 1 > MEMORY.md; sed -i 's/(/' MEMORY.md"
    ran(home, at, odd)
    ran(home, at, "<<a\n" * 9000)
    claude_file(home, claude("c3", "Bash", {"command": ["rm", 7]}, at, str(home)))
    odd = {"type": "CommandExecution", "command": [], "cwd": "file://[", "exit_code": "x"}
    codex_file(home, codex("x1", {"cmd": None}, odd, at), at, "/")
    claude_file(home, claude("c2", "Edit", {"file_path": note(home), **EDIT}, at, str(home)))
    assert authors(home, at).of(changed(home, at)).rule == "bytes"


def test_a_forked_session_counts_once(home, at):
    lines = claude("c1", "Edit", {"file_path": note(home), **EDIT}, at, "/")
    claude_file(home, lines)
    claude_file(
        home, [{**line, "sessionId": "fork"} for line in lines] + [claude_said("user", "go on", at + 1)], "fork"
    )
    assert authors(home, at).of(changed(home, at)) == Author("claude-code", "s1", "bytes")


Tool = Callable[[Path, float], object]


def _claude(name, args, result=None):
    def tool(home, at):
        return claude_file(home, claude("c1", name, {"file_path": note(home), **args}, at, "/", result))

    return tool


def _codex(change):
    def tool(home, at):
        item = {"type": "FileChange", "changes": {note(home): change}, "status": "completed"}
        return codex_file(home, codex("x1", {"cmd": "apply_patch <<EOF"}, item, at), at, "/")

    return tool


def _openclaw(name, args):
    def tool(home, at):
        return openclaw_database(home, openclaw("o1", name, args, at), at, str(home / "notes"))

    return tool


TWICE = "@@ -3 +3 @@\n-a\n+b\n@@ -4,0 +5 @@\n+c\n"
OPENCLAW_EDIT = {"oldText": "10.0.0.1", "newText": "10.0.0.9"}
PATCH = "*** Begin Patch\n*** Update File: MEMORY.md\n@@\n-- router 10.0.0.1\n+- router 10.0.0.9\n*** End Patch"
TOOLS: dict[str, tuple[Tool, bytes | None, bytes | None]] = {
    "claude write": (_claude("Write", {"content": NEW.decode()}), OLD, NEW),
    "claude write, stamped": (_claude("Write", {"content": "x"}, {"content": NEW.decode()}), None, NEW),
    "claude edit": (_claude("Edit", EDIT), OLD, NEW),
    "claude edit, all": (_claude("Edit", {"old_string": "a", "new_string": "b", "replace_all": True}), b"a a", b"b b"),
    "claude edits": (_claude("MultiEdit", {"edits": [EDIT, {"old_string": "hall", "new_string": "attic"}]}), OLD,
                     NEW.replace(b"hall", b"attic")),
    "codex add": (_codex({"type": "add", "content": NEW.decode()}), None, NEW),
    "codex delete": (_codex({"type": "delete", "content": OLD.decode()}), OLD, None),
    "codex move": (_codex({"type": "update", "unified_diff": "", "move_path": "/tmp/x"}), OLD, None),
    "codex update": (_codex({"type": "update", "unified_diff": DIFF}), OLD, NEW),
    "codex update, no line end": (_codex({"type": "update", "unified_diff": DIFF}), OLD[:-1], NEW[:-1]),
    "codex update, equal lines": (_codex({"type": "update", "unified_diff": TWICE}), b"a\n\na\nz\n", b"a\n\nb\nz\nc\n"),
    "openclaw write": (_openclaw("write", {"path": "MEMORY.md", "content": NEW.decode()}), OLD, NEW),
    "openclaw edit": (_openclaw("edit", {"path": "MEMORY.md", "edits": [OPENCLAW_EDIT]}), OLD, NEW),
    "openclaw patch": (_openclaw("apply_patch", {"input": PATCH}), OLD, NEW),
    "openclaw patch, add": (_openclaw("apply_patch", {"input": "*** Add File: MEMORY.md\n+a\n"}), None, b"a\n"),
    "openclaw patch, delete": (_openclaw("apply_patch", {"input": "*** Delete File: MEMORY.md\n"}), OLD, None),
    "openclaw, a tool that was searched": (
        _openclaw("tool_call", {"id": "write", "args": {"path": "MEMORY.md", "content": NEW.decode()}}), OLD, NEW),
}  # fmt: skip


@pytest.mark.parametrize(("tool", "before", "after"), TOOLS.values(), ids=TOOLS)
def test_what_a_tool_wrote_is_its_agents_and_other_bytes_are_nobodys(tool, before, after, home, at):
    tool(home, at)
    by = authors(home, at).of(changed(home, at + 0.03, before, after))
    assert (by.host in ("claude-code", "codex", "openclaw"), by.rule) == (True, "bytes")
    other = b"something else\n" if after is None else after + b"- and more\n"
    assert authors(home, at).of(changed(home, at + 0.03, before, other)).host == ""
    for second in (-30, 30):
        assert authors(home, at).of(changed(home, at + second, before, after)).host == "", "at another second"


def test_several_acts_of_one_session_lead_from_before_to_after(home, at):
    steps = [("10.0.0.1", "10.0.0.5"), ("hall", "attic"), ("10.0.0.5", "10.0.0.9")]
    for number, (old, new) in enumerate(steps):
        args = {"file_path": note(home), "old_string": old, "new_string": new}
        claude_file(home, claude(f"c{number}", "Edit", args, at + number, "/"))
    after = OLD.replace(b"10.0.0.1", b"10.0.0.9").replace(b"hall", b"attic")
    assert authors(home, at).of(changed(home, at + 2.05, OLD, after)) == Author("claude-code", "s1", "bytes")
    assert authors(home, at).of(changed(home, at + 2.05, OLD, after + b"- mine\n")).host == ""


def ran(home, at, command, *, end=0.0, failed=False, text=""):
    more = {"end": end or at + 0.1, "failed": failed, "text": text}
    claude_file(home, claude("b1", "Bash", {"command": command}, at, str(home / "notes"), **more))


GREW = OLD + b"- scanner in the cellar\n"
COMMANDS = {
    "cat >> MEMORY.md <<'EOF'\n- scanner in the cellar\nEOF": (OLD, GREW),
    "cd /; cd ~/notes && echo '- scanner in the cellar' >> ./MEMORY.md": (OLD, GREW),
    "sed -i 's/10.0.0.1/10.0.0.9/' *.md": (OLD, NEW),
    "echo '- scanner in the cellar' >> memory/../MEMORY.md": (OLD, GREW),
    "sed -i /printer/d MEMORY.md": (OLD, OLD.splitlines(keepends=True)[0]),
    "printf -- '- %s\\n' 'scanner in the cellar' | tee -a MEMORY.md": (OLD, GREW),
    "cd memory; rm ../MEMORY.md": (OLD, None),
}
TWINS = {
    "mv MEMORY.md memory/old.md": ("notes/memory/old.md", None),
    "mv ../draft/MEMORY.md .": ("draft/MEMORY.md", NEW),
    "cp memory/old.md MEMORY.md": ("notes/memory/old.md", NEW),
    "mv ../draft/*.md ./; cp ../draft/MEMORY.md ./": ("draft/MEMORY.md", NEW),
}


@pytest.mark.parametrize(("command", "case"), COMMANDS.items(), ids=COMMANDS)
def test_what_a_command_wrote_is_its_agents(command, case, home, at):
    before, after = case
    ran(home, at, command)
    assert authors(home, at).of(changed(home, at + 0.05, before, after)) == Author("claude-code", "s1", "command")
    for moment in (at - 0.03, at + 0.12):
        assert authors(home, at).of(changed(home, moment, before, after)).host == "", "it did not run then"
    other = NoteChange(str(home / "notes" / "memory" / "2026-11-01.md"), before, after, at=at + 0.05)
    assert authors(home, at).of(other).host == "", "another note"


@pytest.mark.parametrize(("command", "case"), TWINS.items(), ids=TWINS)
def test_what_a_command_moved_or_copied_is_its_agents_where_the_other_note_has_the_text(command, case, home, at):
    twin, after = case
    ran(home, at, command)
    change = changed(home, at + 0.05, OLD, after)
    there = replace(change, twins=frozenset([str(home / twin)]))
    assert authors(home, at).of(there) == Author("claude-code", "s1", "command")
    for twins in ((), [str(home / "other" / "MEMORY.md")]):
        assert authors(home, at).of(replace(change, twins=frozenset(twins))) == UNKNOWN
    ran(home, at, command, text="cannot stat: No such file or directory")
    assert authors(home, at).of(there) == UNKNOWN


UNPROVED = {
    "date >> MEMORY.md": GREW,
    "date | tee -a MEMORY.md": GREW,
    "sed -i /printer/d MEMORY.md": OLD.splitlines(keepends=True)[1],
    "sed -i s/printer/scanner/ MEMORY.md": OLD + b"scanner\n",
    "rm -f MEMORY.md": None,
    "rm *.md": None,
    "rm MEMORY.md 2>/dev/null": None,
    "echo '- one' >> MEMORY.md; echo '- two' >> MEMORY.md": OLD + b"- two\n",
    "echo 'no end >> MEMORY.md": OLD + b"no end\n",
    "cp MEMORY.md ../draft/MEMORY.md": NEW,
    "rm ../draft/MEMORY.md": None,
    "mv ../draft/other.md .": None,
    "cat > MEMORY.md <<'EOF'\n- printer in the hallway\nEOF": OLD + b"- printer in the hall",
    "echo '- scanner' >> MEMORY.md": OLD.splitlines(keepends=True)[0] + b"- scanner\n",
    "echo '- lamp' >> MEMORY.md": b"".join(OLD.splitlines(keepends=True)[::-1]) + b"- lamp\n",
    "echo '- tap' >> MEMORY.md": OLD + b"- tap\n- tap\n",
    "echo '- cup and bowl' >> MEMORY.md": OLD + b"- bowl cup\n",
    "echo '- router 10.0.0.1' >> MEMORY.md": OLD[:2] + OLD[9:],
    "echo '- jar' | tee MEMORY.md": OLD[2:],
    "grep -c '- sink' MEMORY.md": OLD + b"- sink\n",
    "echo '- owl' >> MEMORY.md": OLD + b"- owl",
    "printf '%s\\n' '- a' '- b' '- c' > MEMORY.md": b"- a\n- c\n",
    "python3 -c \"open('MEMORY.md', 'a').write('- jug\\n')\"": OLD + b"- jug\n",
    "echo '- jar' >> ../draft/MEMORY.md": OLD + b"- jar\n",
}


@pytest.mark.parametrize(("command", "after"), UNPROVED.items(), ids=UNPROVED)
def test_what_the_bytes_do_not_prove_is_nobodys(command, after, home, at):
    (home / "draft").mkdir()
    ran(home, at, command)
    assert authors(home, at).of(changed(home, at + 0.05, OLD, after)) == UNKNOWN


def test_a_command_that_failed_ran_and_one_that_was_refused_did_not(home, at):
    ran(home, at, "rm MEMORY.md; false", failed=True, text="Exit code 1")
    assert authors(home, at).of(changed(home, at + 0.05, OLD, None)).rule == "command"
    ran(home, at + 60, "rm MEMORY.md", failed=True, text="The user does not want this.")
    assert authors(home, at).of(changed(home, at + 60.05, OLD, None)).host == ""


def test_codex_command_without_a_step_of_its_own_counts(home, at):
    args = {"cmd": "echo '- scanner in the cellar' >> MEMORY.md; echo x >> /etc/x", "workdir": str(home / "notes")}
    codex_file(home, codex("x1", args, None, at), at, "/")
    assert authors(home, at).of(changed(home, at + 0.1, OLD, GREW)) == Author("codex", "t1", "command")


@pytest.mark.parametrize(
    "command", ["cat MEMORY.md", "grep -n router MEMORY.md", "echo '- scanner' >> MEMORY.md", "ls"]
)
def test_an_edit_of_a_person_beside_a_running_agent_is_nobodys(command, home, at):
    ran(home, at, command, end=at + 5)
    for after in (OLD + b"- mine\n", NEW, OLD[5:], b"", None):
        assert authors(home, at).of(changed(home, at + 1, OLD, after)) == UNKNOWN


def test_what_somebody_brings_back_is_nobodys(home, at):
    _claude("Write", {"content": NEW.decode()})(home, at)
    by = authors(home, at)
    assert by.of(changed(home, at)).host == "claude-code"
    assert by.of(changed(home, at + 1, NEW, OLD)).host == ""
    assert by.of(changed(home, at + 2)).host == "", "a sync client wrote the agent's text again"


def test_two_sessions_that_fit_are_nobody(home, at):
    for session in ("s1", "s2"):
        lines = claude(f"c{session}", "Edit", {"file_path": note(home), **EDIT}, at, "/", session=session)
        claude_file(home, lines, session)
    assert authors(home, at).of(changed(home, at)) == UNKNOWN


def test_failed_calls_claim_nothing(home, at):
    text = "String to replace not found in file."
    lines = claude("c1", "Edit", {"file_path": note(home), **EDIT}, at, "/", f"Error: {text}", text=text, failed=True)
    claude_file(home, lines)
    item = {"type": "FileChange", "changes": {note(home): {"type": "update", "unified_diff": DIFF}}, "status": "failed"}
    codex_file(home, codex("x1", {"cmd": "apply_patch"}, item, at), at, "/")
    args = {"path": note(home), "content": NEW.decode()}
    openclaw_database(home, openclaw("o1", "write", args, at, failed=True), at, "/")
    assert authors(home, at).of(changed(home, at)) == UNKNOWN


def test_backdated_lines_are_not_believed(home):
    before = time.time() - 100
    lie = claude("c1", "Edit", {"file_path": note(home), **EDIT}, before, "/")
    claude_file(home, lie, "new")
    claude_file(home, [claude_said("user", "hello", time.time()), *lie], "old")
    now = time.time()
    openclaw_database(home, [openclaw_said("user", "hello", now), *openclaw(
        "o1", "write", {"path": note(home), "content": NEW.decode()}, before)], now, "/")  # fmt: skip
    assert authors(home, before).of(changed(home, before)) == UNKNOWN


def test_the_ledger_names_the_session_that_wrote_last(home, at):
    row = LedgerRow(1, "MEMORY.md", "agent", text_hash(NEW), at * 1000, "o1", "agent:main:main")
    by = authors(home, at, ledger={note(home): row})
    assert by.of(changed(home, at + 0.9)) == Author("openclaw", "agent:main:main", "ledger")
    assert by.of(changed(home, at + 0.9)).host == "", "the same text again"
    assert by.of(changed(home, at + 0.9, OLD, NEW + b"x")).host == ""
    assert authors(home, at, ledger={note(home): row}).of(changed(home, at + 9)).host == ""


@pytest.fixture
def git(home):
    """Run git in the notes, where a repository is made."""
    run = partial(curate.git, home / "notes")
    run("init")
    return run


@pytest.mark.parametrize("rebases", [False, True])
def test_a_checkout_that_takes_long_made_what_it_wrote(home, git, rebases):
    folder, journal = home / "notes", Journal(home / "journal", home / "state.sqlite")
    names = [f"memory/{number}.md" for number in range(9)]
    for branch, text in (("main", OLD), ("other", NEW)):
        git("checkout", "-B", branch)
        for name in names:
            (folder / name).write_bytes(text)
        git("add", ".")
        git("commit", "-m", branch)
    git("checkout", "main")
    git(*(("rebase", "other") if rebases else ("checkout", "other")))
    end = Repository(folder).moves(0)[-1].at
    # A person who wrote the same before, and in between a text that neither side has, is not git.
    times = {name: end - 0.9 * number for number, name in enumerate(names)} | {names[8]: end - 20}
    sights = [(name, NEW, at) for name, at in times.items()] + [("mine.md", b"mine\n", end - 4)]
    with journal.locked():
        journal.observe([Sight(name, OLD, end - 30, len(OLD), fresh=False) for name in names], 1)
        journal.observe([Sight(name, text, at, len(text)) for name, text, at in sights])
    assert name_authors(journal, Roots.open(folder), end + 200) == []
    git_made = {edit.path for edit in journal.edits() if edit.author.host == "git"}
    assert git_made == set(names[:2] if rebases else names[:8])


def test_git_is_held_against_both_sides(home, at, git):
    folder = home / "notes"
    (folder / "MEMORY.md").write_bytes(OLD)
    git("add", ".")
    git("commit", "-m", "one")
    git("checkout", "-b", "other")
    (folder / "MEMORY.md").write_bytes(NEW)
    git("commit", "-am", "two")
    began = time.time()
    git("checkout", "main")
    history = Repository(folder)
    moves = history.moves(began - 1)

    def by(change, *, session=False):
        sessions = transcripts.sessions(began - 60)[0] if session else []
        return Authors(sessions, moves, history.made).of(change)

    moment = (folder / "MEMORY.md").stat().st_ctime
    made = by(changed(home, moment, NEW, OLD))
    assert (made.host, made.rule) == ("git", "git")
    assert made.session.startswith("checkout: moving from other to main")
    assert by(changed(home, moment, b"mine\n", OLD)).host == "", "only the bytes after fit"
    assert by(changed(home, moment, NEW, b"mine\n")).host == ""
    assert by(changed(home, moment + 60, NEW, OLD)).host == ""
    claude_file(home, claude("c1", "Bash", {"command": "git checkout main"}, moment - 0.02, str(folder)))
    assert by(changed(home, moment, NEW, OLD), session=True) == Author("claude-code", "s1", "git")
    git("reset", "--hard", "other")
    moves = history.moves(began - 1)
    moment = (folder / "MEMORY.md").stat().st_ctime
    assert by(changed(home, moment, b"not committed\n", NEW)).session.startswith("reset")


def test_the_record_gets_its_authors_once(home, at):
    journal = Journal(home / "journal", home / "state.sqlite")

    def saw(data, moment):
        with journal.locked():
            journal.observe([Sight("MEMORY.md", data, moment, len(data), fresh=False)])

    def named(now):
        assert name_authors(journal, Roots.open(home / "notes"), now) == []
        return [words(edit.author) for edit in reversed(journal.edits())]

    saw(OLD, at - 100)
    saw(NEW, at)
    saw(NEW + b"- mine\n", at + 3)
    assert named(at + 4) == ["unknown", "unknown"]
    assert len(journal.without_author()) == 2, "a transcript may still come"
    claude_file(home, claude("c1", "Edit", {"file_path": note(home), **EDIT}, at, "/"))
    assert named(at + 5) == ["claude-code (session s1, by its transcript)", "unknown"]
    assert len(journal.without_author()) == 1
    assert named(at + 200) == ["claude-code (session s1, by its transcript)", "unknown"]
    assert journal.without_author() == ()
    saw(OLD, at + 201)
    saw(NEW, at + 202)
    claude_file(home, claude("c2", "Bash", {"command": "ls"}, at + 203, "/"))
    assert named(at + 900)[2:] == ["unknown", "unknown"], "what was the agent's is brought back by somebody"
    counts = [(edit.author, 1) for edit in journal.edits()]
    assert unknown_share(counts) == "The author of 3 of 4 changes by others (75%) is unknown."
    known = unknown_share((author, 2) for author, _ in counts if author.host)
    assert known == "Of 2 changes by others each has a known author."
    assert unknown_share([]) == ""


def test_a_note_that_a_command_moved_is_known_by_its_text_in_the_record(home, at):
    journal = Journal(home / "journal", home / "state.sqlite")
    with journal.locked():
        journal.observe([Sight("MEMORY.md", OLD, at - 100, len(OLD), fresh=False)], 1)
        journal.observe([Sight("MEMORY.md", None, at + 0.05), Sight("memory/old.md", OLD, at + 0.05, len(OLD))])
    ran(home, at, "mv MEMORY.md memory/old.md")
    assert name_authors(journal, Roots.open(home / "notes"), at + 1) == []
    assert [words(edit.author) for edit in journal.edits()] == ["claude-code (session s1, by its transcript)"] * 2


def test_the_ledger_of_openclaw_is_read_for_the_record(home, at):
    ledger = HostLedger.make(home / ".openclaw", home / "notes")
    journal = Journal(home / "journal", home / "state.sqlite")
    for data, moment in ((OLD, at - 100), (NEW, at)):
        ledger.agent_writes("MEMORY.md", data, moment)
        with journal.locked():
            journal.observe([Sight("MEMORY.md", data, moment, len(data), fresh=False)])
    name_authors(journal, Roots.open(home / "notes"), at + 1)
    (edit,) = journal.edits()
    assert words(edit.author) == "openclaw (session agent:main:main, by its ledger)"
